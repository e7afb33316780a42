// Depthwise convolution: every kernel gives, bit for bit, the chain bias, then the taps inside the image in the order
// of rows and columns.
#include <skua/conv.h>
#include <skua/kernel.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

struct Layer {
  size_t batch = 1, h, w, channels, multiplier = 1;
  uint32_t kernel_h, kernel_w, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  skua_padding padding = {};
  skua_epilogue epilogue = {};
  std::vector<size_t> in_room = {0, 0, 0, 0}, out_room = {0, 0, 0, 0};  // holes between elements
  bool bias = true;
  skua_dtype type = SKUA_DTYPE_F32;
  skua_numerics numerics = SKUA_NUMERICS_DEFAULT;
  const char* kernels = "depthwise*";
  bool by_name = false;  // only if `kernels`, one, is taken
  size_t out_channels() const { return channels * multiplier; }
};

std::string describe(const Layer& l) {
  return testing::PrintToString(std::vector<size_t>{l.batch, l.h, l.w, l.channels, l.multiplier}) + " kernel " +
         std::to_string(l.kernel_h) + "x" + std::to_string(l.kernel_w) + " stride " + std::to_string(l.stride_h) + "," +
         std::to_string(l.stride_w) + " dilation " + std::to_string(l.dilation_h) + "," + std::to_string(l.dilation_w) +
         " padding " + std::to_string(l.padding.top) + "," + std::to_string(l.padding.left) + "," +
         std::to_string(l.padding.bottom) + "," + std::to_string(l.padding.right);
}

bool ends(const std::string& s, const char* with) {
  return s.size() >= std::strlen(with) && !s.compare(s.size() - std::strlen(with), std::string::npos, with);
}
// The instruction set may be below the context's: vectors no longer than the channels.
bool fused(const std::string& kernel) {
  return ends(kernel, "_avx2") || ends(kernel, "_avx512") || ends(kernel, "_neon") || ends(kernel, "_neon_bf16") ||
         ends(kernel, "_neon32");
}
bool sums_in_halves(const std::string& kernel) { return ends(kernel, "fp16"); }

float activate(const skua_activation& a, float x) {
  const auto clamp = [&](float low, float high) { x = x < low ? low : x; return x > high ? high : x; };
  switch (a.kind) {
    case SKUA_ACTIVATION_RELU: return clamp(0, std::numeric_limits<float>::infinity());
    case SKUA_ACTIVATION_RELU6: return clamp(0, 6);
    case SKUA_ACTIVATION_CLAMP: return clamp(a.a, a.b);
    case SKUA_ACTIVATION_LEAKY_RELU: return x < 0 ? x * a.a : x;
    default: return x;
  }
}

class Depthwise : public testing::Test {
 protected:
  // Weights [kernel_h][kernel_w][1][channels * multiplier]. Runs the layer on this instruction set and compares.
  void check(const Layer& l, const char* isa, const Data& in, const std::vector<float>& weights,
             const std::vector<float>& bias, const Data* residual = nullptr) {
    SCOPED_TRACE(std::string(isa) + ", " + skua_dtype_name(in.t.type) + ": " + describe(l));
    Context context(isa, l.kernels);
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.weight_layout = SKUA_WEIGHTS_HWIO;
    d.kernel_h = l.kernel_h;
    d.kernel_w = l.kernel_w;
    d.stride_h = l.stride_h;
    d.stride_w = l.stride_w;
    d.dilation_h = l.dilation_h;
    d.dilation_w = l.dilation_w;
    d.groups = d.in_channels = uint32_t(l.channels);
    d.out_channels = uint32_t(l.out_channels());
    d.padding = l.padding;
    d.epilogue = l.epilogue;
    d.input_type = d.output_type = in.t.type;
    d.numerics = l.numerics;
    Op op;
    SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), l.bias ? bias.data() : nullptr, &op));
    if (!op.op) return;
    std::vector<Data> inputs = {in};
    std::vector<skua_tensor> shapes = {in.t};
    if (residual) {
      inputs.push_back(*residual);
      shapes.push_back(residual->t);
    }
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, shapes.data(), shapes.size(), nullptr, 0, &plan));
    if (!plan) return;
    const std::string kernel = skua_plan_kernel(plan);
    if (l.by_name && kernel != l.kernels) return skua_plan_destroy(plan);  // not for this layer
    EXPECT_STREQ(skua_plan_algorithm(plan), "depthwise");
    used.insert(kernel);
    const skua_dtype type = in.t.type;
    EXPECT_FALSE(l.numerics == SKUA_NUMERICS_STRICT && sums_in_halves(kernel)) << kernel;
    skua_tensor y;
    SKUA_EXPECT_OK(skua_plan_outputs(plan, &y, 1));
    skua_plan_destroy(plan);
    const std::vector<Data> got = run(op, inputs, {with_holes(y, l.out_room)});
    ASSERT_EQ(got.size(), 1u);
    size_t top = l.padding.top, left = l.padding.left;
    if (l.padding.mode != SKUA_PADDING_EXPLICIT) {
      const auto before = [&](size_t n, size_t out, size_t kernel, size_t stride, size_t dilation) {
        const size_t reach = (out - 1) * stride + dilation * (kernel - 1) + 1, all = reach > n ? reach - n : 0;
        return l.padding.mode == SKUA_PADDING_SAME_UPPER ? all / 2 : all - all / 2;
      };
      top = before(l.h, y.shape[1], l.kernel_h, l.stride_h, l.dilation_h);
      left = before(l.w, y.shape[2], l.kernel_w, l.stride_w, l.dilation_w);
    }
    const std::vector<float> x = dense(in), out = dense(got[0]), r = residual ? dense(*residual) : std::vector<float>();
    const size_t channels = l.out_channels();
    const bool one_rounding = fused(kernel), halves = sums_in_halves(kernel);
    size_t wrong = 0;
    for (size_t i = 0; i < out.size() && wrong < 3; ++i) {
      const size_t c = i % channels, ox = i / channels % y.shape[2], oy = i / channels / y.shape[2] % y.shape[1],
                   n = i / channels / y.shape[2] / y.shape[1];
      float a = l.bias ? bias[c] : 0.0f;
      double exact = double(a), absolute = std::fabs(exact);
      for (size_t ky = 0; ky < l.kernel_h; ++ky)
        for (size_t kx = 0; kx < l.kernel_w; ++kx) {
          // wraps when outside
          const size_t iy = oy * l.stride_h + ky * l.dilation_h - top, ix = ox * l.stride_w + kx * l.dilation_w - left;
          if (iy >= l.h || ix >= l.w) continue;
          const float xi = x[((n * l.h + iy) * l.w + ix) * l.channels + c / l.multiplier],
                      w = weights[(ky * l.kernel_w + kx) * channels + c];
          if (halves) exact += double(xi) * double(w), absolute += std::fabs(double(xi) * double(w));
          if (one_rounding) a = std::fma(xi, w, a);
          else {
            volatile float product = xi * w;
            a = product + a;
          }
        }
      // (K + 2) roundings to f16 of sums and weights, some of them denormal; an activation or residual after them
      // rounds once more
      if (halves) {
        const auto finish = [&](double v) {
          if (l.epilogue.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION) v += double(r[i]);
          v = double(activate(l.epilogue.activation, float(v)));
          return l.epilogue.residual == SKUA_RESIDUAL_AFTER_ACTIVATION ? v + double(r[i]) : v;
        };
        const double terms = l.kernel_h * l.kernel_w, want = finish(exact),
                     bound = (terms + 2) * (0x1p-10 * absolute + 0x1p-24) + 2 * half_ulp(type, want);
        const bool finite = std::isfinite(exact);
        if (finite              ? !(std::fabs(double(out[i]) - want) <= bound)
            : std::isnan(exact) ? !std::isnan(out[i])
                                : double(out[i]) != want) {
          ADD_FAILURE() << "output " << n << ", " << oy << ", " << ox << ", " << c << " is " << out[i] << ", must be "
                        << want << " within " << bound;
          ++wrong;
        }
        continue;
      }
      const bool residual_after = l.epilogue.residual == SKUA_RESIDUAL_AFTER_ACTIVATION,
                 residual_before = l.epilogue.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION;
      const bool function = l.epilogue.activation.kind == SKUA_ACTIVATION_LEAKY_RELU;
      if (residual_before) a = rounded(type, rounded(type, a) + r[i]);  // what stands between two steps is in memory
      else if (function) a = rounded(type, a);
      a = rounded(type, activate(l.epilogue.activation, a));
      if (residual_after) a = rounded(type, a + r[i]);
      if (std::isnan(a) ? !std::isnan(out[i]) : out[i] != a) {
        ADD_FAILURE() << "output " << n << ", " << oy << ", " << ox << ", " << c << " is " << out[i] << ", must be "
                      << a;
        ++wrong;
      }
    }
  }

  void random_layer(const Layer& l, const char* isa) {
    const Data in = make(with_holes(shape({l.batch, l.h, l.w, l.channels}, l.type), l.in_room), rng);
    std::vector<float> weights(l.kernel_h * l.kernel_w * l.out_channels()), bias(l.out_channels());
    for (float& w : weights) w = rng.uniform(-1, 1);
    for (float& b : bias) b = rng.uniform(-1, 1);
    if (l.epilogue.residual == SKUA_RESIDUAL_NONE) return check(l, isa, in, weights, bias);
    const auto outputs = [&](size_t n, size_t kernel, size_t stride, size_t dilation, size_t padding) {
      return l.padding.mode == SKUA_PADDING_EXPLICIT ? (n + padding - dilation * (kernel - 1) - 1) / stride + 1
                                                     : (n + stride - 1) / stride;
    };
    const skua_tensor y =
        shape({l.batch, outputs(l.h, l.kernel_h, l.stride_h, l.dilation_h, l.padding.top + l.padding.bottom),
               outputs(l.w, l.kernel_w, l.stride_w, l.dilation_w, l.padding.left + l.padding.right), l.out_channels()},
              l.type);
    const Data residual = make(with_holes(y, {0, 0, 1, 1}), rng);
    check(l, isa, in, weights, bias, &residual);
  }

  // Each tile of these, made to run whether or not the model takes it anywhere: whole tiles, borders, parts, several
  // vectors of channels and what is left of one.
  void every_tile_by_name(const std::string& prefix) {
    for (const skua_kernel_info& k : kernels(prefix)) {
      unsigned kernel = 0, stride = 0, rows = 0;  // "3x3s1_2x4_..."
      if (std::sscanf(k.name + prefix.size(), "%ux%*us%u_%ux", &kernel, &stride, &rows) != 3) continue;
      if (std::strstr(k.name, "_a5")) continue;  // on that core in the place of the one for any
      SCOPED_TRACE(k.name);
      for (int i = 0; i < (small() ? 6 : 24); ++i) {
        Layer l;
        l.type = k.type;
        l.kernels = k.name;
        l.by_name = true;
        l.kernel_h = l.kernel_w = kernel;
        l.stride_h = l.stride_w = stride;
        l.channels = between(16, i % 3 ? 50 : 120);
        l.h = between(1, 16); l.w = between(1, i % 2 ? 12 : 32);
        l.padding = {SKUA_PADDING_EXPLICIT, between(0, kernel), between(0, kernel), between(0, kernel),
                     between(0, kernel)};
        if (l.h + l.padding.top + l.padding.bottom < kernel || l.w + l.padding.left + l.padding.right < kernel)
          l.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
        if (i == 0) l.h = l.w = 16, l.channels = 64, l.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
        if (i % 4 == 1) l.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
        if (i % 8 == 7) l.dilation_h = l.dilation_w = 2, l.h += kernel, l.w += kernel;
        random_layer(l, k.isa);
        if (HasFailure()) return;
      }
      EXPECT_TRUE(ran(k.name)) << k.name << " never ran";
    }
  }

  // On an in-order core a tile scheduled for it, of the same kernel and stride, stands for the one for any core.
  bool ran(const std::string& name) {
    const size_t type = name.find('_', name.find('_') + 1) + 1;
    const std::string kernel = name.substr(0, name.find('_', type) + 1);
    return used.count(name) || std::any_of(used.begin(), used.end(), [&](const std::string& u) {
             return !u.compare(0, kernel.size(), kernel) && u.find("_a5") != u.npos;
           });
  }

  void expect_all_used(const std::string& prefix) {
    for (const skua_kernel_info& k : kernels(prefix)) {
      if (std::strstr(k.name, "_rows_")) continue;  // RowsOfInput names them
      EXPECT_TRUE(ran(k.name)) << k.name << " never ran";
    }
  }

  uint32_t between(size_t low, size_t high) { return uint32_t(rng.integer(int(low), int(high))); }
  size_t some_channels(size_t multiplier = 1) {
    static const size_t some[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 33, 40};
    const size_t c = some[rng.next() % std::size(some)];
    return std::max<size_t>(c == 1 ? 2 : c / multiplier, 2);  // one channel alone is no depthwise convolution
  }

  Rng rng{7};
  std::set<std::string> used;
};

TEST_F(Depthwise, EveryTile) {
  for (const char* isa : isas()) {
    for (uint32_t kernel : {3u, 5u, 7u})
      for (uint32_t stride : {1u, 2u})
        for (size_t w = 1; w <= 20; w += small() ? 6 : 1) {
          Layer l;
          l.h = (w * 7 + kernel) % 20 + 1; l.w = w;
          l.channels = some_channels();
          l.kernel_h = l.kernel_w = kernel;
          l.stride_h = l.stride_w = stride;
          l.padding = {SKUA_PADDING_EXPLICIT, between(0, kernel - 1), between(0, kernel - 1), between(0, kernel - 1),
                       between(0, kernel - 1)};
          if (w % 4 == 0) l.padding = {w % 8 ? SKUA_PADDING_SAME_UPPER : SKUA_PADDING_SAME_LOWER, 0, 0, 0, 0};
          else if (l.h + l.padding.top + l.padding.bottom < kernel || l.w + l.padding.left + l.padding.right < kernel)
            l.padding = {SKUA_PADDING_EXPLICIT, kernel / 2, kernel / 2, kernel / 2, kernel / 2};
          random_layer(l, isa);
          if (HasFailure()) return;
        }
    for (size_t channels : {size_t(36), size_t(64)}) {  // whole tiles of every kernel, whatever the vector
      Layer l;
      l.h = 10; l.w = 28; l.channels = channels;
      l.padding.mode = SKUA_PADDING_SAME_UPPER;
      if (channels == 36) l.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
      for (uint32_t kernel : {3u, 5u, 7u})
        for (uint32_t stride : {1u, 2u}) {
          l.kernel_h = l.kernel_w = kernel; l.stride_h = l.stride_w = stride;
          random_layer(l, isa);
        }
    }
  }
  every_tile_by_name("depthwise_f32_");
  if (small()) return;
  expect_all_used("depthwise_f32_");
}

// Every kernel of the half types: sums in f32, rounded once, bit for bit; sums in halves within their bound.
TEST_F(Depthwise, HalfTypes) {
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      Layer l;
      l.type = type;
      for (size_t channels : {size_t(3), size_t(36), size_t(64), size_t(93)})
        for (uint32_t kernel : {3u, 4u, 5u, 7u})
          for (uint32_t stride : {1u, 2u}) {
            if (small() && (channels + kernel + stride) % 3 == 0 && channels > 3) continue;
            l.h = small() ? 7 : 9; l.w = channels == 93 ? 9 : 15; l.channels = channels;
            l.kernel_h = l.kernel_w = kernel; l.stride_h = l.stride_w = stride;
            l.padding.mode = SKUA_PADDING_SAME_UPPER;
            l.epilogue.activation = {kernel == 5 || channels == 36 ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE, 0,
                                     0};
            random_layer(l, isa);
            if (HasFailure()) return;
          }
      l.epilogue = {};
      l.h = 6; l.w = 9; l.channels = 41; l.kernel_h = l.kernel_w = 3; l.stride_h = l.stride_w = 1;
      for (skua_numerics numerics : {SKUA_NUMERICS_STRICT, SKUA_NUMERICS_FAST}) {
        l.numerics = numerics;
        random_layer(l, isa);
      }
      l.numerics = SKUA_NUMERICS_DEFAULT;
      l.dilation_h = 2; l.kernel_w = 5;
      l.in_room = {0, 0, 1, 3}; l.out_room = {0, 1, 0, 5};
      random_layer(l, isa);
      l.multiplier = 3;
      random_layer(l, isa);
      l = {};
      l.type = type;
      // a ring of rows where the first-level cache has 32 KB
      l.h = 3; l.w = 8; l.channels = 260; l.kernel_h = l.kernel_w = 3;
      l.in_room = {0, 0, 0, 1024 - 260};
      l.padding.mode = SKUA_PADDING_SAME_UPPER;
      random_layer(l, isa);
    }
  for (skua_dtype type : half_types()) {
    const std::string prefix = std::string("depthwise_") + skua_dtype_name(type) + "_";
    every_tile_by_name(prefix);
    if (!small()) expect_all_used(prefix);
  }
}

TEST_F(Depthwise, EveryShape) {
  for (const char* isa : isas())
    for (int i = 0; i < (small() ? 8 : 60); ++i) {
      Layer l;
      l.batch = between(1, 2);
      l.h = between(1, 9); l.w = between(1, 20);
      l.multiplier = i % 3 ? 1 : between(2, 5);
      l.channels = some_channels(l.multiplier);
      l.kernel_h = between(1, 5); l.kernel_w = between(1, 7);
      l.stride_h = between(1, 3); l.stride_w = between(1, 3);
      l.dilation_h = between(1, 3); l.dilation_w = between(1, 3);
      const uint32_t span_h = l.dilation_h * (l.kernel_h - 1) + 1, span_w = l.dilation_w * (l.kernel_w - 1) + 1;
      l.padding = {SKUA_PADDING_EXPLICIT, between(0, span_h + 1), between(0, span_w + 1), between(0, span_h + 1),
                   between(0, span_w + 1)};
      if (i % 4 == 0) l.padding = {i % 8 ? SKUA_PADDING_SAME_UPPER : SKUA_PADDING_SAME_LOWER, 0, 0, 0, 0};
      else {
        if (l.h + l.padding.top + l.padding.bottom < span_h) l.padding.top = span_h;
        if (l.w + l.padding.left + l.padding.right < span_w) l.padding.right = span_w;
      }
      l.bias = i % 5 != 0;
      if (i % 2) { l.in_room = {0, 0, 1, 3}; l.out_room = {0, 1, 0, 5}; }
      random_layer(l, isa);
      if (HasFailure()) return;
    }
}

// Dilated layers in tiles: phases of unequal numbers of rows and columns, with all of their padding and without, of
// pixels a page apart, of two rows and columns.
TEST_F(Depthwise, Dilated) {
  const size_t sizes[] = {8, 9, 13, 16, 23};
  for (const char* isa : isas())
    for (uint32_t kernel : {3u, 5u, 7u})
      for (uint32_t stride : {1u, 2u})
        for (const auto& [dilation_h, dilation_w] : {std::pair{2u, 2u}, {3u, 1u}, {1u, 2u}, {4u, 3u}}) {
          Layer l;
          l.batch = between(1, 2);
          l.h = sizes[rng.next() % (small() ? 3 : 5)]; l.w = sizes[rng.next() % (small() ? 3 : 5)];
          l.channels = kernel == 5 && dilation_h == 2 && !small() ? 512 : some_channels();
          l.kernel_h = l.kernel_w = kernel;
          l.stride_h = l.stride_w = stride;
          l.dilation_h = dilation_h; l.dilation_w = dilation_w;
          const uint32_t span_h = dilation_h * (kernel - 1) + 1, span_w = dilation_w * (kernel - 1) + 1;
          l.padding = {SKUA_PADDING_EXPLICIT, between(0, span_h - 1), between(0, span_w - 1), between(0, span_h - 1),
                       between(0, span_w - 1)};
          if (dilation_h == 2 || l.h + l.padding.top + l.padding.bottom < span_h ||
              l.w + l.padding.left + l.padding.right < span_w)
            l.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
          if (dilation_w == 3) l.in_room = {0, 0, 1, 3}, l.out_room = {0, 1, 0, 5};
          l.epilogue.residual = skua_residual(between(0, 2));
          l.epilogue.activation = {l.epilogue.residual ? SKUA_ACTIVATION_LEAKY_RELU : SKUA_ACTIVATION_RELU6, 0.25f, 0};
          used.clear();
          random_layer(l, isa);
          if (HasFailure()) return;
          if (dilation_h == 2 && stride == 1 && l.channels >= 16 && std::strcmp(isa, "scalar") != 0) {
            EXPECT_NE(used.begin()->find(std::to_string(kernel) + "x" + std::to_string(kernel) + "s1_"),
                      std::string::npos)
                << *used.begin();
          }
        }
}

TEST_F(Depthwise, Multipliers) {
  for (const char* isa : isas())
    for (size_t multiplier : {2, 3, 8, 40, 300}) {
      Layer l;
      l.h = 6; l.w = 9; l.channels = 5; l.multiplier = multiplier;
      l.kernel_h = l.kernel_w = 3;
      l.padding.mode = SKUA_PADDING_SAME_UPPER;
      random_layer(l, isa);
    }
}

// Pixels a multiple of 2 KB apart: rows are copied to a ring of some channels.
TEST_F(Depthwise, PixelsOnePageApart) {
  for (const char* isa : isas())
    for (size_t channels : {130, 260, 512}) for (uint32_t stride : {1u, 2u}) {
      Layer l;
      l.batch = 2;
      l.h = small() ? 3 : 7; l.w = 8; l.channels = channels;
      l.kernel_h = l.kernel_w = 3;
      l.stride_h = l.stride_w = stride;
      l.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      l.in_room = {0, 0, 0, 512 - channels};
      random_layer(l, isa);
      l.kernels = "depthwise_*_2x?_*";  // tiles, where rows of input come first
      if (stride > 1 && !kernels(std::string("depthwise_f32_3x3s2_rows_") + isa).empty()) random_layer(l, isa);
      l.kernels = "depthwise*";
      l.kernel_h = 5; l.kernel_w = stride > 1 ? 1 : 5;
      l.padding = {SKUA_PADDING_EXPLICIT, 2, l.kernel_w / 2, 1, l.kernel_w / 2};
      random_layer(l, isa);
      l.kernel_w = 3; l.stride_h = 3; l.stride_w = stride;  // kernels for any shape
      random_layer(l, isa);
    }
}

// 3x3 with a stride of 2 by rows of input: outputs of no, one, two and three live rows of taps, first and last ones
// without a column, bands and blocks of channels for several workers, residuals.
TEST_F(Depthwise, RowsOfInput) {
  for (const skua_kernel_info& k : kernels("depthwise_f32_3x3s2_rows_")) {
    SCOPED_TRACE(k.name);
    used.clear();
    for (int i = 0; i < (small() ? 60 : 400); ++i) {
      Layer l;
      l.batch = i % 7 ? 1 : 2;
      l.kernels = k.name;
      l.kernel_h = l.kernel_w = 3;
      l.stride_h = l.stride_w = 2;
      l.channels = size_t(rng.integer(16, i % 4 ? 50 : 100));  // a vector of any set and more
      l.h = size_t(rng.integer(1, i % 4 ? 9 : 24));
      l.w = size_t(rng.integer(1, i % 3 ? 9 : 24));
      const size_t far = i % 5 ? 2 : 4;  // rows of outputs that no tap reaches
      l.padding = {SKUA_PADDING_EXPLICIT, between(0, far), between(0, 1), between(0, far), between(0, 2)};
      if (l.h + l.padding.top + l.padding.bottom < 3 || l.w + l.padding.left + l.padding.right < 3)
        l.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
      if (i % 11 == 0) l.multiplier = 2, l.channels /= 2;  // turned down
      if (i % 2) l.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
      else if (i % 5 == 0) l.epilogue.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0};
      if (i % 3 == 0) l.epilogue.residual = skua_residual(rng.integer(1, 2));
      l.in_room = {0, size_t(i % 2), 0, size_t(rng.integer(0, 2))};
      l.out_room = {0, 0, 0, size_t(rng.integer(0, 2))};
      l.bias = i % 6 != 0;
      random_layer(l, k.isa);
      if (HasFailure()) return;
    }
    EXPECT_TRUE(used.count(k.name));
  }
}

// A filter that names kernels of one kind leaves no others, under the cap of any set.
TEST_F(Depthwise, FiltersNameAKind) {
  if (kernels("depthwise_f32_3x3s2_rows_").empty())
    GTEST_SKIP() << "no kernels by rows of input here, which are a kind of their own";
  for (const skua_kernel_info& k : kernels("depthwise_f32_")) {
    const std::string name = k.name;
    if ((name.find("_3x3s2_") == name.npos && name.find("_any_") == name.npos) || name.find("_a5") != name.npos)
      continue;
    Layer l;
    l.h = l.w = 4; l.channels = 512;
    l.kernels = k.name;
    l.kernel_h = l.kernel_w = 3;
    l.stride_h = l.stride_w = 2;
    l.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    used.clear();
    random_layer(l, isas().back());
    EXPECT_TRUE(used.count(name)) << name << " was named, not taken";
  }
}

TEST_F(Depthwise, Epilogues) {
  for (skua_dtype type : float_types()) {
    const skua_activation activations[] = {{SKUA_ACTIVATION_NONE, 0, 0},
                                           {SKUA_ACTIVATION_RELU6, 0, 0},
                                           {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f},
                                           {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0}};
    for (const char* isa : isas(type)) for (const skua_activation& activation : activations)
      for (skua_residual mode : {SKUA_RESIDUAL_NONE, SKUA_RESIDUAL_BEFORE_ACTIVATION, SKUA_RESIDUAL_AFTER_ACTIVATION})
        for (uint32_t kernel : {3u, 4u}) {
          Layer l;
          l.batch = 2;
          l.h = 5; l.w = 9; l.channels = 19;
          l.kernel_h = l.kernel_w = kernel;
          l.padding.mode = SKUA_PADDING_SAME_UPPER;
          l.epilogue = {activation, mode};
          l.out_room = {0, 0, 0, 2};
          const Data in = make(shape({2, 5, 9, 19}, type), rng),
                     residual = make(with_holes(shape({2, 5, 9, 19}, type), {0, 0, 1, 1}), rng);
          std::vector<float> weights(kernel * kernel * 19), bias(19);
          for (float& w : weights) w = rng.uniform(-1, 1);
          for (float& b : bias) b = rng.uniform(-1, 1);
          check(l, isa, in, weights, bias, mode == SKUA_RESIDUAL_NONE ? nullptr : &residual);
        }
  }
}

// A tap outside the image does not count, be it infinite; NaN passes through the clamp.
TEST_F(Depthwise, NaNAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (skua_dtype type : float_types()) for (const char* isa : isas(type))
    for (uint32_t kernel : {3u, 5u, 2u, 7u}) {
      Layer l;
      l.h = l.w = 8; l.channels = 21;
      l.kernel_h = l.kernel_w = kernel;
      l.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      l.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
      Data in = make(shape({1, 8, 8, 21}, type), rng);
      in.v[3] = nan; in.v[21 * 20 + 4] = inf; in.v[21 * 30 + 5] = -inf;
      std::vector<float> weights(kernel * kernel * 21), bias(21);
      for (float& w : weights) w = rng.uniform(-1, 1);
      weights[7] = inf; weights[8] = nan; weights[(kernel * kernel - 1) * 21 + 9] = -inf;
      bias[10] = nan; bias[11] = inf;
      check(l, isa, in, weights, bias);
    }
}

// Whole tiles of seven columns that lie at the left border, the right one, and both: what a tap outside the image would
// be multiplied with is infinite, NaN or zero.
TEST_F(Depthwise, WholeTilesAtBorders) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (skua_dtype type : float_types()) for (const char* isa : isas(type))
    for (uint32_t kernel : {3u, 5u}) for (uint32_t stride : {1u, 2u})
      for (size_t tiles : {1, 2}) for (uint32_t side : {0u, 1u}) {
        Layer l;
        const uint32_t pad = kernel / 2;
        l.type = type;
        l.h = 6 * stride; l.w = 7 * tiles * stride; l.channels = small() ? 20 : 36;
        l.kernel_h = l.kernel_w = kernel; l.stride_h = l.stride_w = stride;
        l.padding = {SKUA_PADDING_EXPLICIT, pad, pad, pad, pad};
        if (stride == 2) (side ? l.padding.left : l.padding.right) = pad - 1;
        else if (side) l.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
        const Data in = make(with_holes(shape({1, l.h, l.w, l.channels}, type), {0, 0, 1, 3}), rng);
        std::vector<float> weights(kernel * kernel * l.channels), bias(l.channels);
        for (float& w : weights) w = rng.uniform(-1, 1);
        for (uint32_t ky = 0; ky < kernel; ++ky) {
          float *left = &weights[ky * kernel * l.channels], *right = left + (kernel - 1) * l.channels;
          left[1] = inf; right[2] = inf; left[l.channels - 1] = nan; right[l.channels - 2] = nan;
        }
        for (float& b : bias) b = rng.uniform(-1, 1);
        l.in_room = {0, 0, 1, 3};
        check(l, isa, in, weights, bias);
        if (HasFailure()) return;
      }
}

// Larger than a second-level cache of 2 MB: other tile widths.
TEST_F(Depthwise, LargeLayers) {
  if (small()) GTEST_SKIP() << "large";
  for (const char* isa : isas())
    for (uint32_t stride : {1u, 2u}) {
      Layer l;
      l.h = 40 * stride; l.w = 75; l.channels = 120;
      l.kernel_h = l.kernel_w = 3;
      l.stride_h = l.stride_w = stride;
      l.padding.mode = SKUA_PADDING_SAME_UPPER;
      random_layer(l, isa);
    }
}

TEST_F(Depthwise, NothingToDo) {
  for (const char* isa : isas()) {
    Layer l;
    l.batch = 0; l.h = l.w = 4; l.channels = 8;
    l.kernel_h = l.kernel_w = 3;
    random_layer(l, isa);
  }
}

}  // namespace
