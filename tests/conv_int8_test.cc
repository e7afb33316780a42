// Convolutions of 8-bit integers: random descriptors with a fixed seed, bit for bit against the formula of skua/conv.h
// in 64-bit integers.
#include <skua/conv.h>
#include <skua/packed.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/support/conv_shape.h"
#include "tests/support/fixed_point.h"

using namespace skua_test;

namespace {

struct Case : ConvShape {
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  std::vector<float> scales;
  std::vector<int32_t> multipliers, shifts;

  bool prepare(Rng& rng) {  // false: no output
    weights.resize(weight_count());
    bias.resize(d.out_channels);
    const bool extreme = rng.integer(0, 3) == 0;
    for (int8_t& w : weights) w = int8_t(extreme ? (rng.integer(0, 1) ? 127 : -128) : rng.integer(-128, 127));
    for (int32_t& b : bias) b = rng.integer(-20000, 20000);
    if (rng.integer(0, 1)) {
      scales.resize(d.out_channels);
      for (float& s : scales) s = rng.uniform(0.001f, 0.03f);
      d.weight_q.scales = scales.data();
      d.weight_q.axis = d.weight_layout == SKUA_WEIGHTS_HWIO ? 3 : 0;
    } else {
      d.weight_q.scale = 0.0123f;
    }
    const bool given = rng.integer(0, 1);
    for (size_t o = 0; d.requantization.rounding != SKUA_ROUNDING_FLOAT && o < d.out_channels; ++o) {
      auto [multiplier, shift] = fixed_point_scale(double(d.input_q.scale) * scale_of(o) / double(d.output_q.scale));
      if (given)
        multiplier = rng.integer(1 << 30, INT32_MAX - 1),
        shift = rng.integer(0, 3) ? rng.integer(-12, -6) : rng.integer(-31, 30);
      multipliers.push_back(multiplier);
      shifts.push_back(shift);
    }
    if (given && !shifts.empty())
      d.requantization.multipliers = multipliers.data(), d.requantization.shifts = shifts.data();
    return place();
  }
  double scale_of(size_t o) const { return double(scales.empty() ? d.weight_q.scale : scales[o]); }
  skua_tensor input() const { return shape({batch, in_h, in_w, d.in_channels}, d.input_type); }
  skua_tensor output() const { return shape({batch, size_t(out_h), size_t(out_w), d.out_channels}, d.output_type); }
  int weight(size_t o, size_t ky, size_t kx, size_t i) const { return weights[weight_at(o, ky, kx, i)]; }
  skua_status create(skua_context* context, skua_op** op, bool has_bias = true) const {
    const int32_t* b = has_bias ? bias.data() : nullptr;
    if (!transposed) return skua_conv2d_create(context, &d, weights.data(), b, op);
    const skua_conv2d_transpose_desc t = transposed_desc(d, output_padding_h, output_padding_w);
    return skua_conv2d_transpose_create(context, &t, weights.data(), b, op);
  }
  std::string text() const {
    char s[400];
    snprintf(
        s, sizeof s,
        "%s (zero point %d) to %s (%d) %s kernel %ux%u stride %ux%u dilation %ux%u groups %u channels %u -> %u input "
        "%zux%zux%zu output %ldx%ld padding %u %u %u %u weights %d activation %d residual %d (%g, %d) rounding %d",
        skua_dtype_name(d.input_type), d.input_q.zero_point, skua_dtype_name(d.output_type), d.output_q.zero_point,
        transposed ? "transposed" : "conv", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w,
        d.groups, d.in_channels, d.out_channels, batch, in_h, in_w, out_h, out_w, d.padding.top, d.padding.left,
        d.padding.bottom, d.padding.right, int(d.weight_layout), int(d.epilogue.activation.kind),
        int(d.epilogue.residual), double(d.residual_q.scale), d.residual_q.zero_point, int(d.requantization.rounding));
    return s;
  }
};

bool is_integer(skua_dtype type) { return type == SKUA_DTYPE_S8 || type == SKUA_DTYPE_U8; }

std::vector<double> reference(const Case& c, const std::vector<float>& x, const std::vector<float>& residual = {}) {
  const skua_conv2d_desc& d = c.d;
  const size_t in = d.in_channels / d.groups, out = d.out_channels / d.groups;
  const bool integer = is_integer(d.output_type);
  std::vector<double> y(c.batch * size_t(c.out_h) * size_t(c.out_w) * d.out_channels);
  const std::vector<int32_t> w = c.by_tap<int32_t>(c.weights.data());
  std::vector<int64_t> sums(d.out_channels);
  for (size_t n = 0; n < c.batch; ++n)
    for (long oy = 0; oy < c.out_h; ++oy)
      for (long ox = 0; ox < c.out_w; ++ox) {
        std::copy(c.bias.begin(), c.bias.end(), sums.begin());
        c.taps(oy, ox, [&](size_t tap, size_t iy, size_t ix) {
          for (size_t g = 0; g < d.groups; ++g)
            for (size_t i = 0; i < in; ++i) {
              const int32_t value =
                  int32_t(x[((n * c.in_h + iy) * c.in_w + ix) * d.in_channels + g * in + i]) - d.input_q.zero_point;
              add_products(value, &w[(tap * in + i) * d.out_channels + g * out], out, &sums[g * out]);
            }
        });
        for (size_t o = 0; o < d.out_channels; ++o) {
          const int64_t sum = sums[o];
          const double real = double(d.input_q.scale) * c.scale_of(o);
          const auto kind = d.epilogue.activation.kind;
          const double low = kind == SKUA_ACTIVATION_NONE    ? -INFINITY
                             : kind == SKUA_ACTIVATION_CLAMP ? double(d.epilogue.activation.a)
                                                             : 0;
          const double high = kind == SKUA_ACTIVATION_RELU6   ? 6
                              : kind == SKUA_ACTIVATION_CLAMP ? double(d.epilogue.activation.b)
                                                              : INFINITY;
          double& to = y[((n * size_t(c.out_h) + size_t(oy)) * size_t(c.out_w) + size_t(ox)) * d.out_channels + o];
          if (!integer) {
            const float value = float(int32_t(sum)) * float(real);
            to = double(rounded(d.output_type, std::min(std::max(value, float(low)), float(high))));
            continue;
          }
          const double step = double(d.output_q.scale), zero = d.output_q.zero_point,
                       least = d.output_type == SKUA_DTYPE_S8 ? -128 : 0;
          const auto bound = [&](double v) {
            return std::isinf(v) ? v : std::nearbyint(double(float(v / step))) + zero;
          };
          const float scaled = float(int32_t(sum)) * float(real / step);
          double value = double(scaled);
          if (!residual.empty()) {
            const float add = (residual[size_t(&to - y.data())] - float(d.residual_q.zero_point)) *
                              float(double(d.residual_q.scale) / step);
            value = double(float(scaled + add));
          }
          if (d.requantization.rounding != SKUA_ROUNDING_FLOAT)
            value = fixed_point(d.requantization.rounding, int32_t(sum), c.multipliers[o], c.shifts[o]);
          to = std::min(std::max(std::nearbyint(value) + zero, std::max(bound(low), least)),
                        std::min(bound(high), least + 255));
        }
      }
  return y;
}

void check(const Case& c, skua_context* context, Rng& rng, const Rooms& rooms) {
  SCOPED_TRACE(c.text());
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  if (testing::Test::HasFailure()) return;
  const int least = c.d.input_type == SKUA_DTYPE_S8 ? -128 : 0;
  const Data x = make_integers(with_holes(c.input(), rooms.in), rng, least, least + 255);
  std::vector<Data> operands = {x};
  if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) {
    const int first = c.d.output_type == SKUA_DTYPE_S8 ? -128 : 0;
    operands.push_back(make_integers(with_holes(c.output(), rooms.residual), rng, first, first + 255));
  }
  const std::vector<double> want =
      reference(c, dense(x), operands.size() > 1 ? dense(operands[1]) : std::vector<float>());
  const std::vector<Data> got = run(op, operands, {with_holes(c.output(), rooms.out)});
  ASSERT_EQ(got.size(), 1u);
  expect_close(got[0], want, 0.0);
}
void check(const Case& c, skua_context* context, Rng& rng, bool holes = false) {
  check(c, context, rng, holes ? Rooms{{0, 1, 1, 5}, {0, 1, 1, 5}, {0, 2, 1, 3}} : Rooms{});
}

bool is_depthwise(const Case& c) { return !c.transposed && c.d.groups > 1 && c.d.groups == c.d.in_channels; }

Case random_case(Rng& rng) {
  Case c;
  skua_conv2d_desc& d = c.d;
  d.input_type = rng.integer(0, 1) ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8;
  d.weight_type = SKUA_DTYPE_S8;
  const std::vector<skua_dtype> floats = float_types();
  d.output_type = rng.integer(0, 3) ? (rng.integer(0, 1) ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8)
                                    : floats[size_t(rng.integer(0, int(floats.size()) - 1))];
  const int least = d.input_type == SKUA_DTYPE_S8 ? -128 : 0,
            zeros[] = {least, least + 255, least + 128, least + rng.integer(0, 255)};
  d.input_q = {};
  d.input_q.scale = rng.uniform(0.01f, 0.1f);
  d.input_q.zero_point = zeros[rng.integer(0, 3)];
  if (is_integer(d.output_type)) {
    d.output_q.scale = rng.uniform(0.5f, 8);
    d.output_q.zero_point = (d.output_type == SKUA_DTYPE_S8 ? -128 : 0) + rng.integer(0, 1) * rng.integer(0, 255);
  }
  c.transposed = rng.integer(0, 3) == 0;
  d.kernel_h = uint32_t(rng.integer(1, 4)); d.kernel_w = uint32_t(rng.integer(1, 4));
  d.stride_h = uint32_t(rng.integer(1, 3)); d.stride_w = uint32_t(rng.integer(1, 3));
  d.dilation_h = uint32_t(rng.integer(1, 2)); d.dilation_w = uint32_t(rng.integer(1, 2));
  d.groups = rng.integer(0, 2) ? 1 : uint32_t(rng.integer(2, 3));
  d.in_channels = d.groups * uint32_t(rng.integer(0, 1) ? 4 * rng.integer(1, 9) : rng.integer(1, 20));
  d.out_channels = d.groups * uint32_t(rng.integer(1, small() ? 20 : 90));
  if (rng.integer(0, 5) == 0) {
    d.groups = d.in_channels = uint32_t(rng.integer(2, 80));
    d.out_channels = d.groups * uint32_t(rng.integer(1, 2));
  }
  d.weight_layout = skua_weight_layout(rng.integer(0, 2));
  d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(rng.integer(0, 3)), uint32_t(rng.integer(0, 3)),
               uint32_t(rng.integer(0, 3)), uint32_t(rng.integer(0, 3))};
  const skua_activation activations[] = {{SKUA_ACTIVATION_NONE, 0, 0},
                                         {SKUA_ACTIVATION_RELU, 0, 0},
                                         {SKUA_ACTIVATION_RELU6, 0, 0},
                                         {SKUA_ACTIVATION_CLAMP, -7.5f, 20}};
  d.epilogue.activation = activations[rng.integer(0, 3)];
  const bool bytes = is_integer(d.output_type);
  if (bytes && rng.integer(0, 2) == 0 && !is_depthwise(c)) {
    d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
    d.residual_q.scale = d.output_q.scale * rng.uniform(0.1f, 3);
    d.residual_q.zero_point = (d.output_type == SKUA_DTYPE_S8 ? -128 : 0) + rng.integer(0, 255);
  } else if (bytes && rng.integer(0, 2) == 0) {
    d.requantization.rounding = skua_rounding(rng.integer(1, 2));
  }
  const int most = small() ? 7 : 14;
  c.batch = size_t(rng.integer(1, 2));
  c.in_h = size_t(rng.integer(1, most));
  c.in_w = size_t(rng.integer(1, most));
  if (c.transposed) {
    c.output_padding_h = uint32_t(rng.integer(0, int(d.stride_h) - 1));
    c.output_padding_w = uint32_t(rng.integer(0, int(d.stride_w) - 1));
  } else if (rng.integer(0, 1)) {
    d.hint_in_h = uint32_t(c.in_h);
    d.hint_in_w = uint32_t(c.in_w);
  }
  return c;
}

TEST(ConvInt8, RandomDescriptorsGiveTheFormulasBits) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(7);
    for (int i = 0, done = 0; done < (small() ? 25 : 120); ++i) {
      Case c = random_case(rng);
      if (!c.prepare(rng)) continue;
      ++done;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// On every instruction set, and with either of AMX's tiles.
template <class Test> void on_each_set(const Test& test) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* filter : {static_cast<const char*>(nullptr), "*_16x32_amx_int8", "*_16x32_packed_amx_int8"}) {
      if (filter && strcmp(isa, "amx_int8")) continue;
      SCOPED_TRACE(testing::Message() << isa << " " << (filter ? filter : ""));
      Context context(isa, filter);
      test(context, filter);
      if (testing::Test::HasFailure()) return;
    }
}

// Turns of 168 rows that end inside lines of more pixels, and go on there: 1x1, lines with a gap behind, a C larger
// than half of L2, several panels.
TEST(ConvInt8, LinesCutByTurns) {
  on_each_set([](Context& context, const char*) {
    Rng rng(1);
    for (int i = 0; i < (small() ? 2 : 6); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = i % 2 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.in_channels = uint32_t(rng.integer(17, 33)), d.out_channels = uint32_t(rng.integer(65, 120));
      d.stride_w = d.stride_h = uint32_t(1 + i % 3 / 2);
      d.input_q.scale = 0.05f, d.input_q.zero_point = 5;
      d.output_q.scale = 2, d.output_q.zero_point = 10;
      if (i % 3 == 0) d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, d.residual_q.scale = 1;
      c.in_h = 12 * d.stride_h, c.in_w = size_t(rng.integer(170, 230)) * d.stride_w;
      if (!c.prepare(rng)) continue;
      const std::vector<size_t> rooms[] = {{0, 0, 1, 0}, {0, 0, 3, 0}, {0, 0, 1, 5}};
      check(c, context, rng, Rooms{rooms[rng.integer(0, 2)], rooms[rng.integer(0, 2)], rooms[rng.integer(0, 2)]});
      if (testing::Test::HasFailure()) return;
    }
  });
}

std::string explained(const Case& c, skua_context* context, size_t* workspace = nullptr) {
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  const skua_tensor in = c.input();
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &in, 1, nullptr, 0, &plan));
  static char text[1 << 16];
  skua_plan_explain(plan, text, sizeof text);
  if (workspace) *workspace = skua_plan_workspace(plan, 1);
  skua_plan_destroy(plan);
  return text;
}

// Taps that are gathered, far from each other or in rows far apart: what lies between them takes no workspace.
TEST(ConvInt8, GatheredWindows) {
  on_each_set([](Context& context, const char* filter) {
    struct Window {
      uint32_t dilation, stride, groups;
      bool transposed, far;
    };
    Rng rng(9);
    int gathered = 0;
    for (const Window& w :
         {Window{1, 1, 1, false, false}, Window{3, 1, 2, false, false}, Window{9, 1, 1, false, false},
          Window{1, 2, 1, true, false}, Window{5, 3, 2, true, false}, Window{257, 2, 1, true, true},
          Window{256, 2, 1, true, true}, Window{1024, 1, 1, false, true}, Window{2, 512, 2, false, true},
          Window{100, 1, 64, false, true}}) {
      Case c;
      skua_conv2d_desc& d = c.d;
      c.transposed = w.transposed;
      d.input_type = rng.integer(0, 1) ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.groups = w.groups;
      d.in_channels = d.groups * 21, d.out_channels = d.groups * 18;  // groups of 2, 4, 8 and 64 are not filled
      d.kernel_h = d.kernel_w = 3, d.dilation_h = d.dilation_w = w.dilation;
      d.stride_w = w.stride;
      if (w.transposed) d.stride_h = w.stride;
      d.padding = {SKUA_PADDING_EXPLICIT, w.dilation, w.dilation, w.dilation, w.dilation};
      d.input_q.scale = 0.05f, d.input_q.zero_point = 5;
      d.output_q.scale = 2, d.output_q.zero_point = 10;
      c.batch = 2;
      c.in_h = 9, c.in_w = w.stride > 3 ? 5 * w.stride : 40;
      ASSERT_TRUE(c.prepare(rng));
      size_t bytes = 0;
      const std::string text = explained(c, context, &bytes);
      ASSERT_LE(bytes, 1u << 20) << text;
      if (text.find("algorithm gathered_rows") != std::string::npos) {
        ++gathered;
        EXPECT_EQ(text.find("from the image") != std::string::npos, w.far) << c.text() << "\n" << text;
      }
      check(c, context, rng, true);
      if (HasFailure()) return;
    }
    EXPECT_GE(gathered, filter ? 7 : 0);  // by AMX, which has the first in runs and pads pixels of two
  });
}

// Rows of taps that AMX reads where they lie, though they do not fill its registers: what is behind a run is the next
// pixel's, or nobody's.
TEST(ConvInt8, RunsOfTaps) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    if (strcmp(isa, "amx_int8")) continue;
    Context context(isa, "*_16x32_amx_int8");
    Rng rng(15);
    int runs = 0;
    for (int i = 0; i < (small() ? 12 : 60); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = rng.integer(0, 1) ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.in_channels = uint32_t(rng.integer(8, 100)), d.out_channels = uint32_t(rng.integer(1, 70));
      d.kernel_h = uint32_t(rng.integer(1, 5)), d.kernel_w = uint32_t(rng.integer(2, 6));
      d.dilation_h = uint32_t(rng.integer(1, 2));
      d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(rng.integer(0, 2)), uint32_t(rng.integer(0, 2)),
                   uint32_t(rng.integer(0, 2)), uint32_t(rng.integer(0, 2))};
      d.input_q.scale = 0.05f, d.input_q.zero_point = rng.integer(0, 100);
      d.output_q.scale = 2, d.output_q.zero_point = rng.integer(0, 1) ? -128 : 10;
      if (i % 4 == 0) d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, d.residual_q.scale = 1;
      c.batch = size_t(rng.integer(1, 2));
      c.in_h = size_t(rng.integer(8, 14)), c.in_w = size_t(rng.integer(5, 60));
      if (!c.prepare(rng)) continue;
      if (i % 4) runs += explained(c, context).find("algorithm direct_rows") != std::string::npos;
      check(c, context, rng, i % 3 == 0);
      if (HasFailure()) return;
    }
    EXPECT_GT(runs, small() ? 4 : 25);
  }
}

// Groups whose channels do not fill AMX's registers: padded pixels, a plane for each remainder of the strides.
TEST(ConvInt8, PaddedPixels) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    if (strcmp(isa, "amx_int8")) continue;
    Context context(isa, "*_16x32_amx_int8");
    Rng rng(16);
    int padded = 0, cases = 0;
    for (int i = 0; i < (small() ? 16 : 80); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      const auto u = [&](int low, int high) { return uint32_t(rng.integer(low, high)); };
      d.input_type = rng.integer(0, 1) ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = SKUA_DTYPE_S8;
      constexpr skua_dtype results[] = {SKUA_DTYPE_S8, SKUA_DTYPE_U8, SKUA_DTYPE_F32};
      d.output_type = results[i % 3];
      d.groups = u(2, 5);
      d.in_channels = d.groups * u(3, i % 8 ? 70 : 200), d.out_channels = d.groups * u(1, 70);
      d.kernel_h = u(1, 5), d.kernel_w = u(1, 5);
      d.stride_h = u(1, 3), d.stride_w = u(1, 3);
      d.dilation_h = u(1, 3), d.dilation_w = u(1, 3);
      d.padding = {SKUA_PADDING_EXPLICIT, u(0, 4), u(0, 4), u(0, 4), u(0, 4)};
      d.input_q.scale = 0.05f, d.input_q.zero_point = int(u(0, 100));
      if (d.output_type != SKUA_DTYPE_F32) d.output_q.scale = 2, d.output_q.zero_point = rng.integer(0, 1) ? 0 : 10;
      const bool residual = i % 6 == 0;
      if (residual) d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, d.residual_q.scale = 1;
      c.batch = u(1, 2);
      c.in_h = u(3, 40), c.in_w = u(3, 60);
      if (i % 16 == 15) {  // a line of the band is cut
        d.in_channels = d.groups * 100, d.out_channels = d.groups * 5;
        d.kernel_h = 5, d.dilation_h = 4, d.kernel_w = d.stride_w = 1;
        d.padding.top = d.padding.bottom = 8;
        c.batch = 1;
        c.in_h = 6, c.in_w = 1500;
      }
      if (!c.prepare(rng)) continue;
      cases += !residual;
      if (!residual) padded += explained(c, context).find("algorithm padded_pixels") != std::string::npos;
      check(c, context, rng, i % 5 == 0);
      if (HasFailure()) return;
    }
    EXPECT_GT(padded, cases / 2);
  }
}

// Where most taps have no pixel those that have are read in place.
TEST(ConvInt8, TapsWithoutAPixel) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(12);
    Case c;
    skua_conv2d_desc& d = c.d;
    d.input_type = d.weight_type = d.output_type = SKUA_DTYPE_S8;
    d.in_channels = 80, d.out_channels = 40;
    d.kernel_h = d.kernel_w = 3, d.dilation_h = d.dilation_w = 100;
    d.padding = {SKUA_PADDING_EXPLICIT, 100, 100, 100, 100};
    d.input_q.scale = 0.05f, d.output_q.scale = 2;
    d.hint_in_h = d.hint_in_w = 16;
    c.in_h = c.in_w = 16;
    ASSERT_TRUE(c.prepare(rng));
    EXPECT_EQ(explained(c, context).find("algorithm gathered_rows"), std::string::npos);
    check(c, context, rng);
  }
}

// Fewer lines than workers are cut along the line.
TEST(ConvInt8, FewLinesForManyWorkers) {
  on_each_set([](Context& context, const char*) {
    Rng rng(3);
    for (int i = 0; i < (small() ? 3 : 8); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = i % 2 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.kernel_h = uint32_t(1 + i % 2), d.kernel_w = uint32_t(rng.integer(2, 9)), d.stride_w = uint32_t(1 + i % 3 / 2);
      d.padding.top = d.padding.bottom = d.kernel_h - 1, d.padding.left = uint32_t(rng.integer(0, 40)),
      d.padding.right = uint32_t(rng.integer(0, 40));
      d.in_channels = uint32_t(4 * rng.integer(1, 10)), d.out_channels = uint32_t(rng.integer(1, 70));
      d.input_q.scale = 0.05f, d.input_q.zero_point = 5;
      d.output_q.scale = 2, d.output_q.zero_point = 10;
      c.in_h = size_t(rng.integer(1, 2)), c.in_w = size_t(rng.integer(150, 400));
      if (!c.prepare(rng)) continue;
      check(c, context, rng, i % 2 == 1);
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Lines shorter than a few tiles, whose rows go on behind a gap: by each tile of each set, also those that sum their
// rows for the panels that follow.
TEST(ConvInt8, ShortLines) {
  const std::vector<const char*> sets = isas(SKUA_DTYPE_S8);
  const auto tested = [&](const char* isa) {
    return std::any_of(sets.begin(), sets.end(), [&](const char* s) { return !strcmp(s, isa); });
  };
  const size_t kernels = skua_kernel_count();
  for (size_t k = 0; k < kernels; ++k) {
    skua_kernel_info info;
    SKUA_EXPECT_OK(skua_kernel_at(k, &info));
    const bool is_s8 = !strncmp(info.name, "gemm_s8_", 8);
    if (!info.usable || !tested(info.isa) || (!is_s8 && strncmp(info.name, "gemm_u8_", 8))) continue;
    SCOPED_TRACE(info.name);
    Context context(info.isa, info.name);
    Rng rng(int(k) + 1);
    for (int i = 0; i < (small() ? 3 : 8); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = is_s8 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.kernel_h = d.kernel_w = 3;
      d.padding.mode = i % 2 ? SKUA_PADDING_SAME_UPPER : SKUA_PADDING_EXPLICIT;
      d.in_channels = uint32_t(4 * rng.integer(1, 3)), d.out_channels = uint32_t(rng.integer(1, 140));
      d.input_q.scale = 0.05f, d.input_q.zero_point = 5;
      d.output_q.scale = 2, d.output_q.zero_point = 10;
      if (i % 3 == 0) d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, d.residual_q.scale = 1;
      c.in_h = size_t(rng.integer(4, 9)), c.in_w = size_t(rng.integer(4, 40));
      if (!c.prepare(rng)) continue;
      check(c, context, rng, i % 4 == 1);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Depths that fill AMX's registers are multiplied where they are: lines longer and shorter than a tile, gaps between
// them that are rows and that are not, rows packed.
TEST(ConvInt8, DepthsThatFillRegisters) {
  on_each_set([](Context& context, const char* filter) {
    Rng rng(31);
    for (int i = 0, done = 0; done < (small() ? 4 : filter ? 40 : 12); ++i) {
      Case c = random_case(rng);
      c.fill_depth(rng, i, 64);
      if (!c.prepare(rng)) continue;
      ++done;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
  });
}

// The map at `at` with these strides, in bytes, through the operator.
void run_strided(const skua_op* op, const skua_tensor& in, void* at, std::vector<int8_t>& out) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &in, 1, nullptr, 0, &plan));
  if (!plan) return;
  const size_t bytes = skua_plan_workspace(plan, 1);
  Guarded workspace = Guarded::bytes(bytes, 64);
  const skua_buffer from = skua_host_buffer(at), to = skua_host_buffer(out.data());
  SKUA_EXPECT_OK(skua_plan_run(plan, &from, 1, &to, 1, workspace.memory(), bytes, nullptr));
  skua_plan_destroy(plan);
}

// What lies between two rows of a matrix or of an image may be anybody's: here pages that are not there.
TEST(ConvInt8, HolesBetweenRowsAreNotRead) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  const char* const filters[] = {nullptr, "*_16x32_amx_int8"};
  // Also between pixels, with one that ends where a page does; and such that with a stride all pixels are as far apart,
  // across the ends of lines too.
  const struct {
    size_t rows, columns, channels;
    uint32_t kernel;
    bool pixels;
    uint32_t stride;
  } cases[] = {{6, 14, 512, 3, false, 1},  {20, 14, 128, 3, false, 1}, {6, 17, 192, 1, false, 1},
               {6, 40, 65, 1, false, 1},   {1, 40, 65, 1, true, 1},    {5, 36, 70, 3, true, 1},
               {3, 497, 520, 1, false, 16}};
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* filter : filters)
      for (const auto& c : cases) {
        if (filter && strcmp(isa, "amx_int8")) continue;
        SCOPED_TRACE(testing::Message() << isa << " " << c.rows << "x" << c.columns << "x" << c.channels);
        Context context(isa, filter);
        const size_t line = c.columns * c.channels, run = c.pixels ? c.channels : line, runs = c.rows * line / run;
        const size_t apart =
            c.stride > 1 ? (c.columns + c.stride - 1) * c.channels : (run + page - 1) / page * page + page;
        if (apart % page) continue;  // pages of 64 KB
        char* const base =
            static_cast<char*>(mmap(nullptr, runs * apart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        ASSERT_NE(base, MAP_FAILED);
        char* const first = base + apart - page - run;
        Rng rng(7);
        std::vector<int8_t> dense(c.rows * line), weights(size_t(c.kernel) * c.kernel * c.channels * 40);
        for (int8_t& x : dense) x = int8_t(rng.integer(-128, 127));
        for (int8_t& w : weights) w = int8_t(rng.integer(-128, 127));
        for (size_t i = 0; i < runs; ++i) {
          memcpy(first + i * apart, &dense[i * run], run);
          ASSERT_EQ(mprotect(first + i * apart + run, page, PROT_NONE), 0);
        }
        skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
        d.input_type = d.weight_type = d.output_type = SKUA_DTYPE_S8;
        d.kernel_h = d.kernel_w = c.kernel;
        d.stride_w = c.stride;
        d.in_channels = uint32_t(c.channels);
        d.out_channels = 40;
        d.input_q.scale = d.weight_q.scale = 0.01f;
        d.output_q.scale = 0.1f;
        Op op;
        SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), nullptr, &op));
        const size_t h = c.rows - c.kernel + 1, w = (c.columns - c.kernel) / c.stride + 1;
        std::vector<int8_t> expected(h * w * 40), got(h * w * 40);
        skua_tensor in = skua_tensor_4d(SKUA_DTYPE_S8, 1, int64_t(c.rows), int64_t(c.columns), int64_t(c.channels));
        run_strided(op, in, dense.data(), expected);
        in.stride[3] = 1, in.stride[2] = int64_t(c.pixels ? apart : c.channels),
        in.stride[1] = int64_t(c.pixels ? apart * c.columns : apart), in.stride[0] = int64_t(runs * apart);
        run_strided(op, in, first, got);
        EXPECT_EQ(expected, got);
        munmap(base, runs * apart);
      }
}

// All pixels of a line are one, which is read where it is, in all blocks of channels.
TEST(ConvInt8, PixelsWithoutAStep) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  constexpr int64_t rows = 5, columns = 9, channels = 200;
  Rng rng(9);
  std::vector<int8_t> pixels(rows * channels), dense(rows * columns * channels), weights(9 * channels);
  for (int8_t& x : pixels) x = int8_t(rng.integer(-128, 127));
  for (int8_t& w : weights) w = int8_t(rng.integer(-128, 127));
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = pixels[i / (columns * channels) * channels + i % channels];
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const uint32_t stride : {1u, 2u}) {
      SCOPED_TRACE(testing::Message() << isa << " stride " << stride);
      Context context(isa);
      skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
      d.input_type = d.weight_type = d.output_type = SKUA_DTYPE_S8;
      d.kernel_h = d.kernel_w = 3;
      d.stride_h = d.stride_w = stride;
      d.padding.mode = SKUA_PADDING_SAME_UPPER;
      d.in_channels = d.out_channels = d.groups = channels;
      d.input_q.scale = d.weight_q.scale = 0.01f;
      d.output_q.scale = 0.02f;
      Op op;
      SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), nullptr, &op));
      const size_t outputs = size_t((rows + stride - 1) / stride * ((columns + stride - 1) / stride) * channels);
      std::vector<int8_t> expected(outputs), got(outputs);
      skua_tensor in = skua_tensor_4d(SKUA_DTYPE_S8, 1, rows, columns, channels);
      run_strided(op, in, dense.data(), expected);
      in.stride[3] = 1, in.stride[2] = 0, in.stride[1] = channels, in.stride[0] = rows * channels;
      run_strided(op, in, pixels.data(), got);
      EXPECT_EQ(expected, got);
    }
}

// Groups of 4, 8 and 16 channels have kernels of their own, by blocks of channels: a part of one, whole ones, and a
// last one that overlaps; whole tiles and rows that are narrower, borders, every end.
TEST(ConvInt8, GroupsOfAFewChannels) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(23);
    for (int i = 0, done = 0; done < (small() ? 12 : 60); ++i) {
      Case c = random_case(rng);
      c.transposed = false;
      c.output_padding_h = c.output_padding_w = 0;
      skua_conv2d_desc& d = c.d;
      const uint32_t group = 4u << i % 3;
      d.in_channels = d.out_channels =
          i / 3 % 2 ? 64 : group * uint32_t(rng.integer(1, (small() ? 80 : 144) / int(group)));
      d.groups = d.in_channels / group;
      if (i % 4) d.kernel_h = d.kernel_w = 3, d.dilation_w = 1;
      if (i % 5) d.stride_h = d.stride_w = uint32_t(rng.integer(1, 2));
      d.output_type = i % 7 ? d.input_type : SKUA_DTYPE_F32;
      d.output_q = {};
      if (i % 7)
        d.output_q.scale = i % 2   ? 4.0f
                           : i % 4 ? 0.05f
                                   : 1e-6f,
        d.output_q.zero_point = (d.output_type == SKUA_DTYPE_S8 ? -128 : 0) + rng.integer(0, 1) * rng.integer(0, 255);
      d.epilogue.residual = SKUA_RESIDUAL_NONE;
      d.residual_q = {};
      d.requantization.rounding = i % 7 && i % 11 == 0 ? skua_rounding(1 + i / 11 % 2) : SKUA_ROUNDING_FLOAT;
      d.hint_in_h = d.hint_in_w = 0;
      c.in_w = size_t(rng.integer(1, 24));
      if (!c.prepare(rng)) continue;
      ++done;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
    // Blocks that overlap are one task's.
    for (const uint32_t channels : {20u, 40u, 104u}) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = d.output_type = SKUA_DTYPE_S8, d.weight_type = SKUA_DTYPE_S8;
      d.kernel_h = d.kernel_w = 3, d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      d.in_channels = d.out_channels = channels, d.groups = channels / 4;
      d.input_q.scale = d.output_q.scale = 0.1f;
      c.in_h = c.in_w = small() ? 12 : 20;
      ASSERT_TRUE(c.prepare(rng));
      Op op;
      SKUA_EXPECT_OK(c.create(context, &op));
      expect_tasks_apart(op, {make_integers(c.input(), rng, -128, 127)}, 7);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Sums beyond 2^23 and results beyond 16 bits before they are clamped; in fixed point half a step less of the sum
// before it is scaled, where the roundings differ.
TEST(ConvInt8, GroupsOfLargeSums) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
      for (const uint32_t rounding : {SKUA_ROUNDING_FLOAT, SKUA_ROUNDING_DOUBLE, SKUA_ROUNDING_SINGLE}) {
        SCOPED_TRACE(isa);
        Context context(isa);
        Rng rng(29);
        Case c;
        skua_conv2d_desc& d = c.d;
        d.input_type = d.output_type = type, d.weight_type = SKUA_DTYPE_S8, d.weight_layout = SKUA_WEIGHTS_OHWI;
        d.kernel_h = d.kernel_w = 3, d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
        d.in_channels = d.out_channels = 64, d.groups = 16u >> rounding;
        d.input_q.scale = 0.05f, d.output_q.scale = 60;
        d.input_q.zero_point = d.output_q.zero_point = type == SKUA_DTYPE_S8 ? -128 : 0;
        d.requantization.rounding = skua_rounding(rounding);
        c.in_h = 3, c.in_w = 9;
        ASSERT_TRUE(c.prepare(rng));
        const size_t terms = c.weights.size() / d.out_channels;
        for (size_t o = 0; o < d.out_channels; ++o) {
          c.bias[o] = rng.integer(9 << 20, 14 << 20);
          if (!rounding) continue;
          c.multipliers[o] = 1 << 30, c.shifts[o] = -2;
          if (o % 4) continue;
          c.shifts[o] = -9, c.bias[o] = 512 * (2 * rng.integer(0, 90) + 1) - 1;
          std::fill_n(c.weights.begin() + long(o * terms), terms, int8_t(0));
        }
        if (rounding) d.requantization.multipliers = c.multipliers.data(), d.requantization.shifts = c.shifts.data();
        check(c, context, rng);
      }
}

// Planes give what pixels give: the same bits in another order, whatever the steps.
TEST(ConvInt8, PlanesGiveTheSame) {
  Rng rng(19);
  const auto planes = [](const skua_tensor& t) {
    return shape({t.shape[0], t.shape[3], t.shape[1], t.shape[2]}, t.type);
  };
  const auto moved = [](const std::vector<float>& x, const skua_tensor& t) {  // NHWC to NCHW
    std::vector<float> y;
    const size_t h = t.shape[1], w = t.shape[2], c = t.shape[3];
    for (size_t n = 0; n < t.shape[0]; ++n)
      for (size_t k = 0; k < c; ++k)
        for (size_t p = 0; p < h * w; ++p) y.push_back(x[(n * h * w + p) * c + k]);
    return y;
  };
  Context context;
  for (int i = 0, done = 0; done < (small() ? 12 : 60); ++i) {
    Case c = random_case(rng);
    if (!c.prepare(rng)) continue;
    ++done;
    SCOPED_TRACE(c.text());
    Op pixels, planar;
    SKUA_EXPECT_OK(c.create(context, &pixels));
    c.d.layout = SKUA_LAYOUT_NCHW;
    SKUA_EXPECT_OK(c.create(context, &planar));
    if (testing::Test::HasFailure()) return;
    const int least = c.d.input_type == SKUA_DTYPE_S8 ? -128 : 0;
    const Data x = make_integers(c.input(), rng, least, least + 255);
    const std::vector<size_t> room = {0, 1, 2, 3};
    Data other =
        make_integers(i % 2 ? with_holes(planes(c.input()), room) : planes(c.input()), rng, least, least + 255);
    const std::vector<float> values = moved(dense(x), c.input());
    for (size_t e = 0; e < values.size(); ++e) other.v[offset(resolved(other.t), e)] = values[e];
    std::vector<Data> xs = {x}, others = {other};
    if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) {
      const int first = c.d.output_type == SKUA_DTYPE_S8 ? -128 : 0;
      xs.push_back(make_integers(c.output(), rng, first, first + 255));
      others.push_back(
          make_integers(i % 2 ? with_holes(planes(c.output()), room) : planes(c.output()), rng, first, first + 255));
      const std::vector<float> added = moved(dense(xs[1]), c.output());
      for (size_t e = 0; e < added.size(); ++e) others[1].v[offset(resolved(others[1].t), e)] = added[e];
    }
    const std::vector<float> want = moved(dense(run(pixels, xs)[0]), c.output());
    const std::vector<float> got =
        dense(run(planar, others, {i % 2 ? with_holes(planes(c.output()), room) : planes(c.output())})[0]);
    ASSERT_EQ(got, want);
  }
}

// Winograd's algorithm is exact: every clip of every variant, borders, depths that leave half a pair and that take
// several passes, every end, zero points at both ends of the type.
std::string algorithm_of(const Case& c, skua_context* context) {
  Op op;
  if (c.create(context, &op)) return "";
  std::vector<skua_tensor> inputs = {c.input()};
  if (c.d.epilogue.residual) inputs.push_back(c.output());
  skua_plan* plan = nullptr;
  if (skua_op_plan(op, inputs.data(), inputs.size(), nullptr, 0, &plan)) return "";
  const std::string name = skua_plan_algorithm(plan);
  skua_plan_destroy(plan);
  return name;
}
Case random_winograd(Rng& rng) {
  Case c = random_case(rng);
  c.transposed = false;
  c.output_padding_h = c.output_padding_w = 0;
  skua_conv2d_desc& d = c.d;
  d.kernel_h = d.kernel_w = 3;
  d.stride_h = d.stride_w = d.groups = 1;
  d.dilation_h = d.dilation_w = 1;
  if (rng.integer(0, 2) == 0) d.dilation_h = uint32_t(rng.integer(1, 4)), d.dilation_w = uint32_t(rng.integer(1, 4));
  d.in_channels = uint32_t(rng.integer(0, 3) ? rng.integer(1, 20) : 16 * rng.integer(1, 4));
  d.out_channels = uint32_t(rng.integer(1, small() ? 20 : 90));
  c.in_h = size_t(rng.integer(1, small() ? 7 : 14));
  c.in_w = size_t(rng.integer(1, small() ? 7 : 14));
  d.hint_in_h = rng.integer(0, 1) ? uint32_t(c.in_h) : 0;
  d.hint_in_w = d.hint_in_h ? uint32_t(c.in_w) : 0;
  return c;
}
const char* const kWinograds[] = {"winograd_f2x2", "winograd_f4x2", "winograd_f4x4", "winograd_f4x4_5x5",
                                  "winograd_f3x3_s2"};
// The window of a variant.
void set_window(skua_conv2d_desc& d, const char* variant) {
  if (strstr(variant, "_5x5")) d.kernel_h = d.kernel_w = 5;
  if (strstr(variant, "_s2")) d.stride_h = d.stride_w = 2;
}
TEST(ConvInt8, WinogradGivesTheFormulasBits) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* variant : kWinograds) {
      SCOPED_TRACE(testing::Message() << isa << " " << variant);
      Context context(isa, variant);
      Rng rng(41);
      for (int i = 0, done = 0; done < (small() ? 5 : 32); ++i) {
        Case c = random_winograd(rng);
        set_window(c.d, variant);
        if (i % 4 == 1) {  // once rounded, by scales so large that twice would show
          c.d.output_type = i % 8 == 1 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8;
          c.d.output_q.scale = 30, c.d.output_q.zero_point = 3;
          c.d.epilogue.residual = SKUA_RESIDUAL_NONE, c.d.residual_q = {};
          c.d.requantization.rounding = SKUA_ROUNDING_SINGLE;
        } else if (i % 8 == 7 && is_integer(c.d.output_type) && !c.d.epilogue.residual &&
                   !c.d.requantization.rounding) {
          c.d.output_q.scale = 1e-7f;  // sums times scale leave 32 bits
        }
        if (i % 8 == 4) c.d.in_channels = uint32_t(rng.integer(257, small() ? 270 : 530));
        if (!c.prepare(rng)) continue;
        if (i % 8 == 4)  // sums of so many weights fit when they are small
          for (int8_t& w : c.weights) w = int8_t(w / (c.d.kernel_h == 5 ? 32 : 8));
        ++done;
        EXPECT_EQ(algorithm_of(c, context), variant) << c.text();
        check(c, context, rng, i % 3 == 0);
        if (testing::Test::HasFailure()) return;
      }
    }
}

// Products of whole lines of channels and of a rest behind them, in one piece of the depth and added to the piece
// before, for tiles that fill a kernel's rows and some that do not.
TEST(ConvInt8, WinogradsProductsInPieces) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* variant : kWinograds)
      for (const uint32_t channels : {73u, 281u}) {
        if (small() && channels == 73) continue;
        SCOPED_TRACE(testing::Message() << isa << " " << variant << " " << channels);
        Context context(isa, variant);
        Rng rng(47);
        Case c = random_winograd(rng);
        set_window(c.d, variant);
        c.d.dilation_h = c.d.dilation_w = 1;
        c.d.in_channels = channels, c.d.out_channels = 11;
        c.in_h = small() ? 9 : 13, c.in_w = small() ? 10 : 14;
        c.d.hint_in_h = c.d.hint_in_w = 0;
        ASSERT_TRUE(c.prepare(rng));
        for (int8_t& w : c.weights) w = int8_t(w / (c.d.kernel_h == 5 ? 32 : 8));
        EXPECT_EQ(algorithm_of(c, context), variant) << c.text();
        check(c, context, rng, true);
        if (testing::Test::HasFailure()) return;
      }
}

// At the largest sums that an output transform can tell apart, at both ends of the type, of one sign and of both, in
// the last of several channels; one more, and the operator is made otherwise.
TEST(ConvInt8, WinogradAtItsLargestSums) {
  struct {
    int zero, first, second;
  } const cases[] = {{0, 127, 127},   {0, -128, -128},  {255, 127, 127},
                     {127, 127, 127}, {127, 127, -128}, {100, -128, -128}};
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (int v = 0; v < 5; ++v)
      for (const auto& kind : cases) {
        if ((v == 0 || v == 4) && (small() || kind.zero != 127)) continue;  // 4000 channels
        SCOPED_TRACE(testing::Message() << isa << " " << kWinograds[v] << " zero point " << kind.zero << " weights "
                                        << kind.first << " " << kind.second);
        Context context(isa, kWinograds[v]);
        Rng rng(43);
        Case c = random_winograd(rng);
        skua_conv2d_desc& d = c.d;
        d.input_type = SKUA_DTYPE_U8;
        d.output_type = SKUA_DTYPE_F32;
        d.output_q = {}, d.residual_q = {}, d.requantization = {}, d.epilogue = {};
        d.input_q.zero_point = kind.zero;
        d.weight_layout = SKUA_WEIGHTS_OHWI;
        d.padding = {SKUA_PADDING_EXPLICIT, 2, 2, 2, 2};
        set_window(d, kWinograds[v]);
        d.hint_in_h = d.hint_in_w = 0;
        d.out_channels = 3;
        // For inputs of 255 where weights are positive and 0 where they are not, or the other way: what a unit of
        // weight adds.
        const long limit = 1l << (31 - (v == 0 || v == 4 ? 2
                                        : v == 1         ? 4
                                                         : 6)),
                   above = 255 - kind.zero, below = kind.zero;
        long positive = 0, negative = 0;
        const auto largest = [&] {
          return std::max(positive * above + negative * below, positive * below + negative * above);
        };
        const auto add = [&](long x) { (x > 0 ? positive : negative) += std::labs(x); };
        const bool mixed = kind.first * kind.second < 0;
        const long by = mixed ? 127 * above + 128 * below : std::labs(kind.first) * std::max(above, below);
        std::vector<long> w(size_t(limit / by) * (mixed ? 2 : 1) + 2);
        for (size_t i = 0;; ++i) {
          w[i] = i % 2 ? kind.second : kind.first;
          add(w[i]);
          if (largest() < limit) continue;
          const long sign = w[i] < 0 ? -1 : 1;
          for (long& of = sign > 0 ? positive : negative; largest() >= limit; --of) w[i] -= sign;
          d.in_channels = uint32_t(w.size() / (d.kernel_h * d.kernel_w) + 1);
          c.batch = 1, c.in_h = c.in_w = 4;
          ASSERT_TRUE(c.prepare(rng));
          const size_t all = c.weights.size() / 3, from = 2 * all;
          for (int8_t& x : c.weights) x = 1;
          for (size_t j = 0; j < all; ++j) c.weights[from + j] = int8_t(j < w.size() ? w[j] : 0);
          EXPECT_EQ(algorithm_of(c, context), kWinograds[v]);
          Op op;
          SKUA_EXPECT_OK(c.create(context, &op));
          for (bool turned : {false, true}) {
            Data x = make_integers(c.input(), rng, 255, 255);
            // Values are [y][x][channel]: the sign of a weight of this channel at the middle tap decides.
            for (size_t e = 0; e < x.v.size(); ++e)
              x.v[e] = (c.weight(2, 1, 1, e % d.in_channels) < 0) != turned ? 0.0f : 255.0f;
            expect_close(run(op, {x})[0], reference(c, dense(x)), 0.0);
          }
          c.weights[from + i] = int8_t(c.weights[from + i] + sign);
          EXPECT_NE(algorithm_of(c, context), kWinograds[v]);
          if (v == 2) {  // and STRICT keeps weights in their bytes
            c.weights[from + i] = int8_t(c.weights[from + i] - sign);
            c.d.numerics = SKUA_NUMERICS_STRICT;
            EXPECT_NE(algorithm_of(c, context), kWinograds[v]);
          }
          break;
        }
        if (testing::Test::HasFailure()) return;
      }
}

// One tap with a stride: rows that were copied are even over lines where C is, and the residual.
TEST(ConvInt8, StridedPointwiseWithGaps) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(61);
    for (int gaps = 0; gaps < 8; ++gaps)
      for (uint32_t channels : {20u, 64u}) {
        Case c;
        skua_conv2d_desc& d = c.d;
        d.input_type = d.output_type = d.weight_type = SKUA_DTYPE_S8;
        d.input_q.scale = 0.05f, d.input_q.zero_point = 3, d.weight_q.scale = 0.02f, d.output_q.scale = 0.5f;
        d.residual_q.scale = 0.3f, d.residual_q.zero_point = -7;
        d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
        d.stride_h = d.stride_w = 2;
        d.in_channels = channels, d.out_channels = channels + 10;
        c.in_h = c.d.hint_in_h = 13, c.in_w = c.d.hint_in_w = 14;
        ASSERT_TRUE(c.prepare(rng));
        c.scales.clear(), d.weight_q = {}, d.weight_q.scale = 0.02f;
        Op op;
        SKUA_EXPECT_OK(c.create(context, &op));
        if (testing::Test::HasFailure()) return;
        const auto laid_out = [&](skua_tensor t, int gap) { return gaps & gap ? with_holes(t, {0, 0, 3, 0}) : t; };
        const Data x = make_integers(laid_out(c.input(), 1), rng, -128, 127),
                   residual = make_integers(laid_out(c.output(), 2), rng, -128, 127);
        expect_close(run(op, {x, residual}, {laid_out(c.output(), 4)})[0], reference(c, dense(x), dense(residual)),
                     0.0);
        if (testing::Test::HasFailure()) return;
      }
  }
}

// Sums of a point leave 32 bits though no output does: weights of the signs of G's rows, a pair of rows for each output
// channel, and images of one tile of the signs of B^T's.
TEST(ConvInt8, WinogradsProductsWrap) {
  const int rows_b[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                            {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
  const int rows_g[6][3] = {{1, 0, 0}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}};
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa, "winograd_f4x4");
    Rng rng(53);
    Case c = random_winograd(rng);
    skua_conv2d_desc& d = c.d;
    d.input_type = SKUA_DTYPE_U8, d.output_type = SKUA_DTYPE_F32;
    d.output_q = {}, d.residual_q = {}, d.requantization = {}, d.epilogue = {};
    d.input_q.zero_point = 0;
    d.weight_layout = SKUA_WEIGHTS_OHWI;
    d.padding = {SKUA_PADDING_EXPLICIT, 0, 0, 0, 0};
    d.dilation_h = d.dilation_w = 1;
    // of the points +-2 and +-2: 49 * 127 * 64 * 255 * 100, eight times what 32 bits hold
    d.in_channels = 100, d.out_channels = 36;
    c.batch = 72, c.in_h = c.in_w = d.hint_in_h = d.hint_in_w = 6;
    ASSERT_TRUE(c.prepare(rng));
    for (size_t i = 0; i < c.weights.size(); ++i) {
      const size_t o = i / 900, tap = i / 100 % 9;
      c.weights[i] = rows_g[o / 6][tap / 3] * rows_g[o % 6][tap % 3] < 0 ? -127 : 127;
    }
    EXPECT_EQ(algorithm_of(c, context), "winograd_f4x4");
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op));
    Data x = make_integers(c.input(), rng, 0, 255);
    for (size_t i = 0; i < x.v.size(); ++i) {
      const size_t n = i / 3600, pixel = i / 100 % 36;
      x.v[i] = (rows_b[n % 36 / 6][pixel / 6] * rows_b[n % 6][pixel % 6] > 0) == (n < 36) ? 255.0f : 0.0f;
    }
    expect_close(run(op, {x})[0], reference(c, dense(x)), 0.0);
    if (testing::Test::HasFailure()) return;
  }
}

// Where an instruction multiplies bytes at most twice as fast as words, a quarter of the products pays.
TEST(ConvInt8, WinogradIsTakenBesideVnni) {
  for (const char* isa : {"avxvnni", "avx512vnni"}) {
    if (!usable(isa)) continue;
    Context context(isa);
    Rng rng(59);
    Case c = random_winograd(rng);
    c.d.dilation_h = c.d.dilation_w = 1;
    c.d.in_channels = c.d.out_channels = 128;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    c.in_h = c.in_w = c.d.hint_in_h = c.d.hint_in_w = 28;
    ASSERT_TRUE(c.prepare(rng));
    for (int8_t& w : c.weights) w = int8_t(w / 4);  // sums fit
    EXPECT_EQ(algorithm_of(c, context), "winograd_f4x4") << isa;
  }
}

// Weights packed by one set are another's, or are refused.
TEST(ConvInt8, WinogradsWeightsOnOtherSets) {
  for (const char* by : isas(SKUA_DTYPE_S8))
    for (const char* to : isas(SKUA_DTYPE_S8)) {
      SCOPED_TRACE(testing::Message() << by << " to " << to);
      Context context(by, "winograd_f4x4"), other(to);
      Rng rng(47);
      Case c = random_winograd(rng);
      c.d.in_channels = 16, c.d.out_channels = 24, c.d.epilogue.residual = SKUA_RESIDUAL_NONE, c.d.residual_q = {};
      c.d.hint_in_h = uint32_t(c.in_h), c.d.hint_in_w = uint32_t(c.in_w);
      ASSERT_TRUE(c.prepare(rng));
      Op op, again;
      SKUA_EXPECT_OK(c.create(context, &op));
      const size_t size = skua_op_packed_size(op);
      Guarded blob = Guarded::bytes(size, 64);
      SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
      const skua_status status = skua_op_create_packed(other, blob.memory(), size, &again);
      EXPECT_TRUE(status == SKUA_STATUS_OK || status == SKUA_STATUS_INCOMPATIBLE_BLOB) << skua_error_text();
      EXPECT_TRUE(status == SKUA_STATUS_OK || strcmp(by, to)) << skua_error_text();
      if (status) continue;
      const int least = c.d.input_type == SKUA_DTYPE_S8 ? -128 : 0;
      const Data x = make_integers(c.input(), rng, least, least + 255);
      expect_close(run(again, {x})[0], reference(c, dense(x)), 0.0);
    }
}

// Layers as networks have them: first layers, 1x1 with and without stride, 3x3 at depths that fill the tiles.
TEST(ConvInt8, LayersOfNetworks) {
  struct {
    uint32_t k, stride, pad, in, out;
    size_t h;
  } const layers[] = {{3, 2, 1, 3, 32, 23},
                      {7, 2, 3, 3, 64, 20},
                      {1, 1, 0, 64, 96, 9},
                      {1, 2, 0, 32, 130, 9},
                      {3, 1, 1, 64, 64, 10},
                      {3, 2, 1, 36, 70, 11},
                      {5, 1, 2, 24, 17, 8},
                      {1, 1, 0, 130, 1000, 1},
                      {1, 1, 0, 19, 5, 6},
                      {3, 1, 1, 1, 8, 30},
                      // workers begin inside a panel
                      {1, 1, 0, 900, 160, 7},
                      {1, 1, 0, 1200, 95, 7}};
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(3);
    for (const auto& l : layers) {
      Case c;
      c.d.input_type = c.d.output_type = c.d.weight_type = SKUA_DTYPE_S8;
      c.d.kernel_h = c.d.kernel_w = l.k;
      c.d.stride_h = c.d.stride_w = l.stride;
      c.d.padding = {SKUA_PADDING_EXPLICIT, l.pad, l.pad, l.pad, l.pad};
      c.d.in_channels = l.in; c.d.out_channels = l.out;
      c.d.input_q.scale = 0.05f; c.d.input_q.zero_point = -128;
      c.d.output_q.scale = 0.3f * std::sqrt(float(l.k * l.k * l.in)); c.d.output_q.zero_point = l.out % 32 ? -3 : -128;
      c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
      c.in_h = c.in_w = small() ? std::min<size_t>(l.h, 9) : l.h;
      ASSERT_TRUE(c.prepare(rng));
      check(c, context, rng);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// The only pixel goes to its tile past everything else: every number of vectors, depths that leave a part of a group,
// every end, whichever tile packs the weights.
TEST(ConvInt8, OnePixel) {
  const char* const filters[] = {nullptr, "*_flip_*", "*_xor_*", "*_8x48_avx512vnni"};
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* filter : filters) {
      SCOPED_TRACE(testing::Message() << isa << " " << (filter ? filter : ""));
      Context context(isa, filter);
      Rng rng(17);
      for (uint32_t out : {1, 10, 16, 24, 33, 48, 64, 65, 112, 130})
        for (uint32_t in : {1, 7, 32, 75}) {
          Case c = random_case(rng);
          c.transposed = false;
          c.output_padding_h = c.output_padding_w = 0;
          c.d.kernel_h = c.d.kernel_w = c.d.stride_h = c.d.stride_w = c.d.groups = 1;
          c.d.padding = {SKUA_PADDING_EXPLICIT, 0, 0, 0, 0};
          c.d.in_channels = in, c.d.out_channels = out;
          c.d.hint_in_h = c.d.hint_in_w = 1;
          c.batch = c.in_h = c.in_w = 1;
          ASSERT_TRUE(c.prepare(rng));
          check(c, context, rng, in % 2);
          if (testing::Test::HasFailure()) return;
        }
    }
}

// Windows larger than small images, and paddings that eat them: what is packed does not depend on the image.
TEST(ConvInt8, WideWindows) {
  Context context;
  Rng rng(17);
  struct {
    uint32_t kernel, dilation, pad, groups;
    bool transposed;
    size_t h;
  } const cases[] = {{3, 7, 7, 1, false, 25},  {3, 4, 0, 1, false, 11}, {9, 1, 0, 1, false, 12},
                     {11, 1, 1, 2, false, 12}, {3, 1, 5, 1, true, 16},  {20, 1, 14, 1, true, 16}};
  for (const auto& w : cases) {
    Case c;
    c.transposed = w.transposed;
    c.d.input_type = c.d.output_type = c.d.weight_type = SKUA_DTYPE_S8;
    c.d.kernel_h = c.d.kernel_w = w.kernel;
    c.d.dilation_h = c.d.dilation_w = w.dilation;
    c.d.groups = w.groups;
    c.d.padding = {SKUA_PADDING_EXPLICIT, w.pad, w.pad, w.pad, w.pad};
    // a whole panel, so that it is seen whether runs of taps lie one behind the other
    c.d.in_channels = 8, c.d.out_channels = 16;
    c.d.input_q.scale = 0.05f; c.d.input_q.zero_point = 7;
    c.d.output_q.scale = 3; c.d.output_q.zero_point = -3;
    c.in_h = c.in_w = w.h;
    ASSERT_TRUE(c.prepare(rng)) << c.text();
    check(c, context, rng);
    if (testing::Test::HasFailure()) return;
  }
}

// Sums go on from tap to tap in loops that are sixteen and more deep, with and without a tail, where products are added
// in 16 bits; pixels that see no tap are none.
TEST(ConvInt8, TapsOfWholeTurns) {
  struct {
    uint32_t stride, dilation, pad, in;
  } const layers[] = {{1, 1, 1, 16}, {1, 2, 2, 32}, {2, 1, 0, 24}, {1, 1, 5, 40}};
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa, "direct");
    Rng rng(23);
    for (skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
      for (const auto& l : layers) {
        Case c;
        c.d.input_type = c.d.output_type = type, c.d.weight_type = SKUA_DTYPE_S8;
        c.d.kernel_h = c.d.kernel_w = 3;
        c.d.stride_h = c.d.stride_w = l.stride;
        c.d.dilation_h = c.d.dilation_w = l.dilation;
        c.d.padding = {SKUA_PADDING_EXPLICIT, l.pad, l.pad, l.pad, l.pad};
        c.d.in_channels = l.in, c.d.out_channels = 9;
        c.d.input_q.scale = 0.05f, c.d.input_q.zero_point = 5;
        c.d.output_q.scale = 2, c.d.output_q.zero_point = 100;
        c.in_h = 7, c.in_w = 9;
        ASSERT_TRUE(c.prepare(rng));
        for (int8_t& w : c.weights) w = std::max<int8_t>(w, -127);
        check(c, context, rng);
        if (testing::Test::HasFailure()) return;
      }
  }
}

TEST(ConvInt8, PackedWeightsComeBack) {
  Context context;
  Rng rng(11);
  for (int i = 0; i < 24; ++i) {
    Case c = i % 2 ? random_winograd(rng) : random_case(rng);
    if (!c.prepare(rng)) continue;
    SCOPED_TRACE(c.text());
    Op op, again;
    SKUA_EXPECT_OK(c.create(context, &op));
    if (testing::Test::HasFailure()) return;
    const size_t size = skua_op_packed_size(op);
    ASSERT_GT(size, 0u);
    Guarded blob = Guarded::bytes(size, 64);
    SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
    SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &again));
    const int least = c.d.input_type == SKUA_DTYPE_S8 ? -128 : 0;
    const Data x = make_integers(c.input(), rng, least, least + 255);
    std::vector<Data> operands = {x};
    if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) operands.push_back(make_integers(c.output(), rng, 0, 100));
    expect_same_bits(run(again, operands)[0], run(op, operands)[0]);
    if (testing::Test::HasFailure()) return;
  }
}

// What an engine may get wrong: each is refused with a text that names the field.
TEST(ConvInt8, WhatIsRefused) {
  Context context;
  const int8_t w[64] = {};
  skua_conv2d_desc good = SKUA_CONV2D_DESC_INIT;
  good.input_type = good.weight_type = good.output_type = SKUA_DTYPE_S8;
  good.in_channels = good.out_channels = 8;
  good.input_q.scale = good.weight_q.scale = good.output_q.scale = 0.5f;
  const auto refused = [&](const skua_conv2d_desc& d, const char* field, skua_status status) {
    skua_op* op = nullptr;
    EXPECT_EQ(skua_conv2d_create(context, &d, w, nullptr, &op), status) << field;
    EXPECT_EQ(op, nullptr);
    EXPECT_NE(std::string(skua_error_text()).find(field), std::string::npos)
        << skua_error_text() << " does not name " << field;
    skua_op_destroy(op);
  };
  {
    Op op;
    SKUA_EXPECT_OK(skua_conv2d_create(context, &good, w, nullptr, &op));
  }
  skua_conv2d_desc d = good;
  d.input_q.scale = 0; refused(d, "input_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.input_q.scale = NAN; refused(d, "input_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.input_q.zero_point = 128; refused(d, "input_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.output_q.scale = -1; refused(d, "output_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.output_q.zero_point = -129; refused(d, "output_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.weight_q.scale = INFINITY; refused(d, "weight_q", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.weight_q.zero_point = 1; refused(d, "weight_q", SKUA_STATUS_UNSUPPORTED);
  d = good; d.weight_type = SKUA_DTYPE_F32; refused(d, "weight_type", SKUA_STATUS_UNSUPPORTED);
  d = good; d.output_type = SKUA_DTYPE_S32; refused(d, "output_type", SKUA_STATUS_UNSUPPORTED);
  d = good;
  d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  refused(d, "residual_q.scale", SKUA_STATUS_INVALID_ARGUMENT);
  d.residual_q.scale = 1;
  d.groups = 8;
  refused(d, "depthwise convolutions of bytes take none", SKUA_STATUS_UNSUPPORTED);
  d = good;
  d.requantization.rounding = skua_rounding(-1);
  refused(d, "requantization.rounding", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.epilogue.activation.kind = SKUA_ACTIVATION_SILU; refused(d, "activation", SKUA_STATUS_UNSUPPORTED);
  d = good; d.layout = skua_layout(2); refused(d, "layout", SKUA_STATUS_INVALID_ARGUMENT);
  d = good; d.output_type = SKUA_DTYPE_F32; refused(d, "output_q", SKUA_STATUS_INVALID_ARGUMENT);
}

}  // namespace
