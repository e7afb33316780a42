// Convolutions: every algorithm, on random descriptors with a fixed seed, against the formula of skua/conv.h in double.
#include <skua/conv.h>
#include <skua/packed.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "dispatch/element.h"
#include "tests/support/conv_shape.h"

using namespace skua_test;

namespace {

uint16_t half_bits(skua_dtype type, float value) {
  skua::f16 h;
  skua::bf16 b;
  if (type == SKUA_DTYPE_F16) return skua::narrow(value, h), h.bits;
  return skua::narrow(value, b), b.bits;
}

struct Case : ConvShape {
  std::vector<float> weights, bias;  // filled by prepare()
  bool half_weights = false;         // the caller's are of the maps' type, not of f32

  bool prepare(Rng& rng) {  // false: no output
    weights.resize(weight_count());
    bias.resize(d.out_channels);
    for (float& v : weights) v = rounded(d.input_type, rng.uniform(-1, 1));  // they may be packed in half precision
    for (float& v : bias) v = rng.uniform(-1, 1);
    return place();
  }
  bool nchw() const { return d.layout == SKUA_LAYOUT_NCHW; }
  skua_tensor map(size_t h, size_t w, size_t c) const {
    return nchw() ? shape({batch, c, h, w}, d.input_type) : shape({batch, h, w, c}, d.input_type);
  }
  skua_tensor input() const { return map(in_h, in_w, d.in_channels); }
  skua_tensor output() const { return map(size_t(out_h), size_t(out_w), d.out_channels); }
  size_t at(size_t h, size_t w, size_t c, size_t n, size_t y, size_t x, size_t k) const {
    return nchw() ? ((n * c + k) * h + y) * w + x : ((n * h + y) * w + x) * c + k;
  }
  double weight(size_t o, size_t ky, size_t kx, size_t i) const { return double(weights[weight_at(o, ky, kx, i)]); }
  skua_status create(skua_context* context, skua_op** op) const {
    std::vector<uint16_t> halves;
    const void* w = weights.data();
    if (half_weights) {
      for (float v : weights) halves.push_back(half_bits(d.input_type, v));
      w = halves.data();
    }
    if (!transposed) {
      skua_conv2d_desc typed = d;
      typed.output_type = d.input_type;
      typed.weight_type = half_weights ? d.input_type : SKUA_DTYPE_F32;
      return skua_conv2d_create(context, &typed, w, bias.data(), op);
    }
    skua_conv2d_transpose_desc t = transposed_desc(d, output_padding_h, output_padding_w);
    t.output_type = d.input_type;
    t.weight_type = half_weights ? d.input_type : SKUA_DTYPE_F32;
    return skua_conv2d_transpose_create(context, &t, w, bias.data(), op);
  }
  std::string text() const {
    char s[400];
    snprintf(s, sizeof s,
             "%s %s kernel %ux%u stride %ux%u dilation %ux%u groups %u channels %u -> %u input %zux%zux%zu output "
             "%ldx%ld layout %d weights %d residual %d activation %d hint %u",
             skua_dtype_name(d.input_type), transposed ? "transposed" : "conv", d.kernel_h, d.kernel_w, d.stride_h,
             d.stride_w, d.dilation_h, d.dilation_w, d.groups, d.in_channels, d.out_channels, batch, in_h, in_w, out_h,
             out_w, int(d.layout), int(d.weight_layout), int(d.epilogue.residual), int(d.epilogue.activation.kind),
             d.hint_in_h);
    return s;
  }
};

// The formula, and per element (terms + 3) * epsilon * sum of absolute products.
void reference(const Case& c, const std::vector<float>& x, const std::vector<float>& residual, std::vector<double>& y,
               std::vector<double>& bound) {
  const skua_conv2d_desc& d = c.d;
  const size_t in = d.in_channels / d.groups, out = d.out_channels / d.groups;
  y.assign(c.batch * size_t(c.out_h) * size_t(c.out_w) * d.out_channels, 0);
  bound = y;
  const std::vector<double> w = c.by_tap<double>(c.weights.data());
  std::vector<double> sums(d.out_channels), absolutes(d.out_channels);
  for (size_t n = 0; n < c.batch; ++n)
    for (long oy = 0; oy < c.out_h; ++oy)
      for (long ox = 0; ox < c.out_w; ++ox) {
        for (size_t o = 0; o < d.out_channels; ++o) sums[o] = double(c.bias[o]), absolutes[o] = std::fabs(sums[o]);
        c.taps(oy, ox, [&](size_t tap, size_t iy, size_t ix) {
          for (size_t g = 0; g < d.groups; ++g)
            for (size_t i = 0; i < in; ++i) {
              const double value = double(x[c.at(c.in_h, c.in_w, d.in_channels, n, iy, ix, g * in + i)]);
              add_products(value, &w[(tap * in + i) * d.out_channels + g * out], out, &sums[g * out],
                           &absolutes[g * out]);
            }
        });
        for (size_t o = 0; o < d.out_channels; ++o) {
          const double absolute = absolutes[o];
          double sum = sums[o];
          const size_t at = c.at(size_t(c.out_h), size_t(c.out_w), d.out_channels, n, size_t(oy), size_t(ox), o);
          const double r = residual.empty() ? 0 : double(residual[at]);
          if (d.epilogue.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION) sum += r;
          if (d.epilogue.activation.kind == SKUA_ACTIVATION_RELU6) sum = std::min(std::max(sum, 0.0), 6.0);
          if (d.epilogue.activation.kind == SKUA_ACTIVATION_LEAKY_RELU && sum < 0)
            sum *= double(d.epilogue.activation.a);
          if (d.epilogue.residual == SKUA_RESIDUAL_AFTER_ACTIVATION) sum += r;
          y[at] = sum;
          double e = (double(in * d.kernel_h * d.kernel_w) + 5) * double(FLT_EPSILON);
          // blocks of 64 terms may be summed in f16
          if (d.input_type == SKUA_DTYPE_F16 && d.numerics == SKUA_NUMERICS_DEFAULT) e += 66 * std::ldexp(1.0, -11);
          // or all
          if (d.input_type == SKUA_DTYPE_F16 && d.numerics == SKUA_NUMERICS_FAST)
            e += double(in * d.kernel_h * d.kernel_w + 2) * std::ldexp(1.0, -11);
          bound[at] = e * (absolute + std::fabs(r)) + 1e-30;
          bound[at] += half_ulp(d.input_type, std::fabs(sum) + bound[at]);
          // Depthwise and grouped tiles store their sums before a residual or a function that is no clamp.
          const int steps =
              (d.epilogue.residual != SKUA_RESIDUAL_NONE) + (d.epilogue.activation.kind == SKUA_ACTIVATION_LEAKY_RELU);
          if (d.groups > 1) bound[at] += steps * half_ulp(d.input_type, absolute + std::fabs(r));
        }
      }
}

void check(const Case& c, skua_context* context, Rng& rng, const Rooms& rooms) {
  SCOPED_TRACE(c.text());
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  if (testing::Test::HasFailure()) return;
  std::vector<Data> inputs = {make(with_holes(c.input(), rooms.in), rng)};
  std::vector<float> residual;
  if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) {
    inputs.push_back(make(with_holes(c.output(), rooms.residual), rng));
    residual = dense(inputs[1]);
  }
  std::vector<double> want, bound;
  reference(c, dense(inputs[0]), residual, want, bound);
  const std::vector<Data> got = run(op, inputs, {with_holes(c.output(), rooms.out)});
  ASSERT_EQ(got.size(), 1u);
  expect_close(got[0], want, bound);
}
void check(const Case& c, skua_context* context, Rng& rng, bool holes) {
  if (!holes) return check(c, context, rng, Rooms{});
  if (c.nchw()) return check(c, context, rng, Rooms{{0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}});
  check(c, context, rng, Rooms{{0, 1, 1, 5}, {0, 1, 1, 5}, {0, 2, 1, 3}});
}

// What the case's plan says of itself, and its kernel.
std::string explained(const Case& c, skua_context* context, std::string* kernel = nullptr) {
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  skua_plan* plan = nullptr;
  const skua_tensor input = c.input();
  SKUA_EXPECT_OK(skua_op_plan(op, &input, 1, nullptr, 0, &plan));
  char text[4096];
  skua_plan_explain(plan, text, sizeof text);
  if (kernel) *kernel = skua_plan_kernel(plan);
  skua_plan_destroy(plan);
  return text;
}

Case random_case(Rng& rng) {
  Case c;
  skua_conv2d_desc& d = c.d;
  d.numerics = SKUA_NUMERICS_STRICT;  // Winograd has its own bound and its own test
  c.transposed = rng.integer(0, 3) == 0;
  d.kernel_h = uint32_t(rng.integer(1, 5)); d.kernel_w = uint32_t(rng.integer(1, 5));
  d.stride_h = uint32_t(rng.integer(1, 3)); d.stride_w = uint32_t(rng.integer(1, 3));
  d.dilation_h = uint32_t(rng.integer(1, 3)); d.dilation_w = uint32_t(rng.integer(1, 3));
  d.groups = rng.integer(0, 2) ? 1 : uint32_t(rng.integer(2, 4));
  d.in_channels = d.groups * uint32_t(rng.integer(1, 20));
  d.out_channels = d.groups * uint32_t(rng.integer(1, small() ? 20 : 90));
  if (rng.integer(0, 5) == 0) {
    d.groups = d.in_channels = uint32_t(rng.integer(2, 40));
    d.out_channels = d.groups * uint32_t(rng.integer(1, 3));
  }
  d.layout = rng.integer(0, 3) ? SKUA_LAYOUT_NHWC : SKUA_LAYOUT_NCHW;
  d.weight_layout = skua_weight_layout(rng.integer(0, 2));
  d.padding = {skua_padding_mode(rng.integer(0, 2)), uint32_t(rng.integer(0, 3)), uint32_t(rng.integer(0, 3)),
               uint32_t(rng.integer(0, 3)), uint32_t(rng.integer(0, 3))};
  d.epilogue.residual = rng.integer(0, 2) ? SKUA_RESIDUAL_NONE : skua_residual(rng.integer(1, 2));
  d.epilogue.activation.kind = rng.integer(0, 1)   ? SKUA_ACTIVATION_NONE
                               : rng.integer(0, 2) ? SKUA_ACTIVATION_RELU6
                                                   : SKUA_ACTIVATION_LEAKY_RELU;
  d.epilogue.activation.a = 0.25f;
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

TEST(Conv, RandomDescriptors) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(7);
    for (int i = 0, tried = 0; i < (small() ? 25 : 150) && tried < 2000; ++tried) {
      Case c = random_case(rng);
      if (!c.prepare(rng)) continue;
      check(c, context, rng, i % 3 == 0);
      if (HasFailure()) return;
      ++i;
    }
  }
}

// Maps of half precision: the same descriptors, weights of either type.
TEST(Conv, HalfPrecision) {
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Rng rng(53);
      for (int i = 0, tried = 0; i < (small() ? 10 : 40) && tried < 2000; ++tried) {
        Case c = random_case(rng);
        c.d.input_type = type;
        c.half_weights = rng.integer(0, 1);
        if (rng.integer(0, 1)) c.d.numerics = SKUA_NUMERICS_DEFAULT;
        if (!c.prepare(rng)) continue;
        check(c, context, rng, i % 3 == 0);
        if (HasFailure()) return;
        ++i;
      }
      // One tap with steps, many taps over several bands' worth of channels, a plain product, Winograd.
      struct Layer { uint32_t size, in, out, kernel, stride; skua_numerics numerics; };
      for (const Layer& l :
           {Layer{14, 70, 72, 1, 1, SKUA_NUMERICS_DEFAULT}, Layer{13, 66, 40, 3, 1, SKUA_NUMERICS_STRICT},
            Layer{9, 130, 70, 1, 2, SKUA_NUMERICS_DEFAULT}, Layer{11, 33, 34, 3, 1, SKUA_NUMERICS_DEFAULT},
            Layer{12, 3, 24, 3, 2, SKUA_NUMERICS_DEFAULT}, Layer{1, 96, 100, 1, 1, SKUA_NUMERICS_DEFAULT}}) {
        Case c;
        c.d.input_type = type;
        c.d.numerics = l.numerics;
        c.in_h = c.in_w = small() ? std::min(l.size, 6u) : l.size;
        c.d.kernel_h = c.d.kernel_w = l.kernel; c.d.stride_h = c.d.stride_w = l.stride;
        c.d.in_channels = l.in; c.d.out_channels = l.out;
        c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, false);
        if (HasFailure()) return;
      }
    }
}

// FAST sums all terms of f16 in f16 where the core can: many taps, one, one with steps; more than a block of 64.
TEST(Conv, HalfPrecisionFast) {
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa, "direct");
      Rng rng(54);
      struct Layer { uint32_t size, in, out, kernel, stride; };
      for (const Layer& l : {Layer{7, 40, 34, 3, 1}, Layer{9, 200, 70, 1, 1}, Layer{8, 130, 20, 1, 2},
                             Layer{6, 24, 50, 5, 2}, Layer{1, 300, 100, 1, 1}}) {
        Case c;
        c.d.input_type = type;
        c.d.numerics = SKUA_NUMERICS_FAST;
        c.in_h = c.in_w = l.size;
        c.d.kernel_h = c.d.kernel_w = l.kernel; c.d.stride_h = c.d.stride_w = l.stride;
        c.d.in_channels = l.in; c.d.out_channels = l.out;
        c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
        c.d.epilogue.activation.kind = l.stride == 2 ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, l.kernel == 1);
        if (HasFailure()) return;
      }
    }
}

// The only row of a product passes by the loop nest, more columns than a strip holds in parts; rows without a gap end
// as one.
TEST(Conv, HalfPrecisionOfOnePixelAndOfNarrowMaps) {
  struct Layer { uint32_t size, in, out, kernel; };
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Rng rng(71);
      for (const Layer& l : {Layer{1, 24, 72, 1}, Layer{1, 130, 23, 1}, Layer{1, 3, 4173, 1}, Layer{9, 3, 16, 3},
                             Layer{5, 18, 48, 1}, Layer{13, 7, 20, 1}})
        for (int residual = 0; residual < 3; ++residual)
          for (skua_activation_kind activation :
               {SKUA_ACTIVATION_NONE, SKUA_ACTIVATION_RELU6, SKUA_ACTIVATION_LEAKY_RELU})
            for (skua_numerics numerics : {SKUA_NUMERICS_STRICT, SKUA_NUMERICS_DEFAULT}) {
              Case c;
              c.d.input_type = type;
              c.d.numerics = numerics;
              c.in_h = c.in_w = l.size;
              c.d.kernel_h = c.d.kernel_w = l.kernel;
              c.d.hint_in_h = c.d.hint_in_w = l.size;
              c.d.in_channels = l.in; c.d.out_channels = l.out;
              c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
              c.d.epilogue.residual = skua_residual(residual);
              c.d.epilogue.activation.kind = activation;
              c.d.epilogue.activation.a = 0.25f;
              ASSERT_TRUE(c.prepare(rng));
              check(c, context, rng, false);
              if (HasFailure()) return;
            }
    }
}

// STRICT rounds no weights that are given as f32, however large, and passes over a filter whose tiles it may not use.
TEST(Conv, StrictKeepsWeightsOfF32) {
  for (skua_dtype type : half_types())
    for (const skua_kernel_info& tile : kernels(std::string("gemm_") + skua_dtype_name(type) + "_")) {
      SCOPED_TRACE(tile.name);
      Context context(tile.isa, tile.name);
      Rng rng(61);
      Case c;
      c.d.input_type = type;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.d.in_channels = 4, c.d.out_channels = 20;
      c.in_w = 3;
      ASSERT_TRUE(c.prepare(rng));
      for (size_t o = 0; o < 20; ++o)  // every other output needs the bits that f16 has not, the others its range
        for (size_t i = 0; i < 4; ++i)
          c.weights[o * 4 + i] = o % 2 ? 131072.0f : i == 0 ? 1 + 0x1p-12f : i == 1 ? -1 : 0;
      for (float& v : c.bias) v = 0;
      Op op;
      SKUA_EXPECT_OK(c.create(context, &op));
      Data x = make(c.input(), rng);
      for (float& v : x.v) v = 0x1p-6f;
      const std::vector<Data> got = run(op, {x}, {c.output()});
      ASSERT_EQ(got.size(), 1u);
      for (size_t j = 0; j < got[0].v.size(); ++j) EXPECT_EQ(got[0].v[j], j % 2 ? 8192.0f : 0x1p-18f) << j;
    }
}

TEST(Conv, MixesThatAreRefusedSayWhy) {
  if (half_types().size() < 2) return;
  Context context;
  const float weights[4] = {};
  const auto refused = [&](skua_dtype type, const char* why) {
    Op op, transposed;
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.in_channels = d.out_channels = 2;
    d.input_type = d.output_type = SKUA_DTYPE_F16, d.weight_type = type;
    EXPECT_EQ(skua_conv2d_create(context, &d, weights, nullptr, &op), SKUA_STATUS_UNSUPPORTED);
    EXPECT_EQ(std::string(skua_error_text()), std::string("conv2d: ") + why);
    skua_conv2d_transpose_desc t = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
    t.in_channels = t.out_channels = 2;
    t.input_type = t.output_type = SKUA_DTYPE_F16, t.weight_type = type;
    EXPECT_EQ(skua_conv2d_transpose_create(context, &t, weights, nullptr, &transposed), SKUA_STATUS_UNSUPPORTED);
    EXPECT_EQ(std::string(skua_error_text()), std::string("conv2d_transpose: ") + why);
  };
  refused(SKUA_DTYPE_BF16, "weight_type is bf16; with input_type f16 it is f32 or f16");
  refused(SKUA_DTYPE_S8, "weight_type is s8; with input_type f16 it is f32 or f16");
}

// Rows are widened band by band; a band between others has more rows under it than the first and the last.
TEST(Conv, HalfPrecisionInBands) {
  if (small()) GTEST_SKIP() << "large";
  for (const char* isa : isas(half_types().empty() ? SKUA_DTYPE_F32 : half_types()[0])) {
    SCOPED_TRACE(isa);
    Context context(isa, "direct");
    Rng rng(59);
    for (const uint32_t stride : {1u, 2u}) {
      Case c;
      c.d.input_type = half_types().empty() ? SKUA_DTYPE_F32 : half_types()[0];
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.d.kernel_h = c.d.kernel_w = 5;
      c.d.stride_h = c.d.stride_w = stride;
      c.d.in_channels = c.d.out_channels = c.d.groups = 700;
      c.d.padding = {SKUA_PADDING_EXPLICIT, 2, 2, 2, 2};
      c.in_h = 17 * stride; c.in_w = 14;
      ASSERT_TRUE(c.prepare(rng));
      check(c, context, rng, false);
      if (HasFailure()) return;
    }
  }
}

// Outputs whose taps are inside the image in different ways: classes and regions of every kind, strips, taps that are
// never inside.
TEST(Conv, Borders) {
  struct Layer {
    const char* what;
    uint32_t h, w, kernel_h, kernel_w, stride, dilation, top, left, bottom, right, in, out;
    bool transposed;
  };
  const Layer layers[] = {
      {"five classes along each axis", 11, 13, 5, 5, 1, 1, 2, 2, 2, 2, 20, 70, false},
      {"a kernel larger than the image", 7, 7, 7, 7, 1, 1, 3, 3, 3, 3, 12, 40, false},
      {"a kernel twice the image", 3, 4, 9, 8, 1, 1, 4, 4, 4, 4, 5, 9, false},
      {"a dilation larger than the image", 5, 6, 3, 3, 1, 7, 7, 7, 7, 7, 9, 30, false},
      {"a dilation about half the image", 14, 13, 3, 3, 1, 6, 6, 6, 6, 6, 7, 33, false},
      {"more padding than kernel", 4, 5, 2, 3, 1, 1, 5, 4, 6, 5, 6, 20, false},
      {"padding on one side", 9, 9, 4, 3, 2, 1, 3, 0, 0, 2, 10, 50, false},
      {"a stride larger than the kernel", 13, 11, 2, 2, 3, 1, 1, 1, 1, 1, 8, 17, false},
      {"a stride and a dilation", 15, 16, 3, 3, 2, 3, 3, 3, 3, 3, 6, 25, false},
      {"more classes than are cut", 24, 24, 19, 19, 1, 1, 9, 9, 9, 9, 2, 6, false},
      {"one tap, padding above", 20, 18, 1, 1, 1, 1, 1, 0, 0, 0, 20, 70, false},
      {"one tap, padding below", 20, 18, 1, 1, 1, 1, 0, 0, 2, 0, 20, 20, false},
      {"one tap, one line, padding at its ends", 1, 60, 1, 1, 1, 1, 0, 3, 0, 2, 8, 40, false},
      {"one tap, only padding", 1, 8, 1, 1, 3, 1, 1, 0, 0, 0, 8, 12, false},
      {"transposed", 8, 9, 4, 4, 2, 1, 1, 1, 1, 1, 12, 40, true},
      {"transposed, phases without taps", 5, 6, 2, 2, 3, 1, 0, 0, 0, 0, 7, 20, true},
      {"transposed, a kernel larger than the image", 3, 4, 7, 7, 2, 1, 3, 2, 2, 3, 6, 20, true},
      {"transposed and dilated", 6, 5, 3, 3, 2, 3, 2, 3, 1, 0, 5, 18, true},
  };
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(31);
    for (const Layer& l : layers)
      for (const bool groups : {false, true}) {
        SCOPED_TRACE(l.what);
        Case c;
        c.d.numerics = SKUA_NUMERICS_STRICT;
        c.transposed = l.transposed;
        c.in_h = l.h; c.in_w = l.w;
        c.batch = groups ? 2 : 1;
        c.d.groups = groups ? 2 : 1;
        c.d.kernel_h = l.kernel_h; c.d.kernel_w = l.kernel_w;
        c.d.stride_h = c.d.stride_w = l.stride;
        c.d.dilation_h = c.d.dilation_w = l.dilation;
        c.d.padding = {SKUA_PADDING_EXPLICIT, l.top, l.left, l.bottom, l.right};
        c.d.in_channels = (small() ? std::min(l.in, 4u) : l.in) * c.d.groups;
        c.d.out_channels = (small() ? std::min(l.out, 14u) : l.out) * c.d.groups;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, groups);
        if (HasFailure()) return;
      }
  }
}

// One tap of five at the borders: tiles of one segment that begins neither with the weights nor with the map.
TEST(Conv, OneSegmentInTheMiddle) {
  Rng rng(71);
  for (const char* isa : isas())
    for (uint32_t out : {16u, 32u, 64u}) {
      Case c;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.in_h = 3; c.in_w = 40;
      c.d.kernel_h = 5;
      c.d.padding = {SKUA_PADDING_EXPLICIT, 4, 0, 2, 0};
      c.d.in_channels = 16; c.d.out_channels = out;
      ASSERT_TRUE(c.prepare(rng));
      Context context(isa);
      check(c, context, rng, false);
      if (HasFailure()) return;
    }
}

// On every tile of these types, named.
template <class Test> void on_each_tile(const std::vector<skua_dtype>& types, const Test& test) {
  for (skua_dtype type : types)
    for (const skua_kernel_info& tile : kernels("gemm_" + std::string(skua_dtype_name(type)) + "_")) {
      SCOPED_TRACE(tile.name);
      Context context(tile.isa, tile.name);
      test(type, tile, context);
      if (testing::Test::HasFailure()) return;
    }
}

// One tap with steps: lines of pixels with gaps between them, shorter and longer than a tile's rows, tiles that lie in
// two lines and in many; every tile.
TEST(Conv, LinesWithGaps) {
  on_each_tile(float_types(), [](skua_dtype type, const skua_kernel_info&, Context& context) {
    Rng rng(67);
    for (uint32_t width = 1; width <= (small() ? 7u : 17u); width += type == SKUA_DTYPE_F32 ? 1 : 5)
      for (const uint32_t out : {17u, 66u, 128u}) {
        if (out == 128 && (small() || type != SKUA_DTYPE_F32)) continue;
        Case c;
        c.d.input_type = type;
        c.d.numerics = type == SKUA_DTYPE_F32 ? SKUA_NUMERICS_STRICT : SKUA_NUMERICS_DEFAULT;
        c.in_h = 2 * (40 / width + 2) - 1; c.in_w = 2 * width;
        c.d.stride_h = c.d.stride_w = 2;
        c.d.in_channels = 5; c.d.out_channels = out;
        c.d.epilogue.residual = skua_residual((width + 1) % 3);
        c.d.epilogue.activation.kind = width % 4 == 3 ? SKUA_ACTIVATION_LEAKY_RELU : SKUA_ACTIVATION_RELU6;
        c.d.epilogue.activation.a = 0.25f;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, width % 2 == 0);
        if (testing::Test::HasFailure()) return;
      }
  });
}

// Strips of rows that end inside a line, and go on there: a function behind the sums, lines with and without a gap.
TEST(Conv, LinesCutByStrips) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info& tile, Context& context) {
    const bool registers = std::string(tile.isa) == "amx_bf16";
    Rng rng(1);
    for (int i = 0; i < (!registers ? (small() ? 1 : 3) : small() ? 8 : 30); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.input_type = type;
      c.half_weights = true;
      d.numerics = SKUA_NUMERICS_STRICT;
      d.kernel_h = d.kernel_w = rng.integer(0, 1) ? 1 : 3;
      d.stride_h = d.stride_w = uint32_t(rng.integer(1, 2));
      d.in_channels = rng.integer(0, 1) ? 32 : 64;
      d.out_channels = uint32_t(rng.integer(1, 70));
      d.epilogue.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.25f, 0};
      d.epilogue.residual = skua_residual(rng.integer(0, 2));
      c.in_h = size_t(rng.integer(8, small() ? 16 : 30));
      c.in_w = size_t(rng.integer(5, small() ? 30 : 60));
      if (!c.prepare(rng)) continue;
      const std::vector<size_t> rooms[] = {{0, 0, 0, 0}, {0, 0, 1, 0}, {0, 0, 1, 5}};
      check(c, context, rng, Rooms{rooms[rng.integer(0, 2)], rooms[rng.integer(0, 2)], rooms[rng.integer(0, 2)]});
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Channels that are no whole pairs: a row of taps is one run, whose last pair may overlap the one before. Images
// narrower than the kernel, pixels with and without gaps, padding on all sides; every tile of halves.
TEST(Conv, RunsOfOddChannels) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info& tile, Context& context) {
    const bool pairs = std::string(tile.isa) == "avx512bf16";
    Rng rng(37);
    for (int i = 0, done = 0; done < (pairs ? (small() ? 20 : 120) : 2); ++i) {
      Case c = random_case(rng);
      skua_conv2d_desc& d = c.d;
      d.input_type = type;
      c.half_weights = true;
      c.transposed = false;
      if (i % 8) d.groups = d.dilation_w = 1;
      d.in_channels = d.groups * uint32_t(2 * rng.integer(0, i % 3 ? 2 : 20) + 1);
      d.out_channels = d.groups * uint32_t(rng.integer(1, 80));
      d.hint_in_h = d.hint_in_w = 0;
      c.output_padding_h = c.output_padding_w = 0;
      if (i % 4 == 0) c.in_w = size_t(rng.integer(14, 40));
      if (!c.prepare(rng)) continue;
      ++done;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Odd channels are multiplied in pairs where a set has them, but for taps that are apart.
TEST(Conv, OddChannelsAreMultipliedInPairs) {
  constexpr const char* kTile = "gemm_bf16_6x64_avx512bf16";  // by name: some cores have it at a quarter of the rate
  if (kernels(kTile).empty()) GTEST_SKIP() << "no tile of pairs here";
  Context context("avx512bf16", kTile);
  Rng rng(43);
  struct Layer {
    uint32_t dilation_h, dilation_w, groups;
    bool transposed, f32_weights;
    skua_numerics numerics;
    bool pairs;
  };
  for (const Layer& l : {Layer{1, 1, 1, false, true, SKUA_NUMERICS_DEFAULT, true},
                         Layer{2, 1, 1, false, false, SKUA_NUMERICS_STRICT, true},
                         Layer{1, 2, 1, false, true, SKUA_NUMERICS_DEFAULT, false},
                         Layer{1, 1, 3, false, true, SKUA_NUMERICS_DEFAULT, false},
                         Layer{1, 1, 1, true, true, SKUA_NUMERICS_DEFAULT, false},
                         Layer{1, 1, 1, false, true, SKUA_NUMERICS_STRICT, false}}) {
    Case c;
    skua_conv2d_desc& d = c.d;
    d.input_type = SKUA_DTYPE_BF16;
    d.numerics = l.numerics;
    d.kernel_h = d.kernel_w = 3;
    d.stride_h = d.stride_w = 2;
    d.dilation_h = l.dilation_h;
    d.dilation_w = l.dilation_w;
    d.groups = l.groups;
    d.in_channels = 3 * l.groups; d.out_channels = 32 * l.groups;
    c.transposed = l.transposed;
    c.half_weights = !l.f32_weights;
    c.in_h = c.in_w = 32;
    ASSERT_TRUE(c.prepare(rng));
    std::string kernel;
    const std::string text = explained(c, context, &kernel);
    EXPECT_EQ(kernel == kTile, l.pairs) << c.text() << "\n" << text;
  }
}

// Outputs that see nothing but padding, millions of pixels of it, take no workspace.
TEST(Conv, PaddingWithoutPixelsTakesNoWorkspace) {
  for (skua_dtype type : float_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Rng rng(43);
      Case c;
      c.d.input_type = type;
      c.d.kernel_h = c.d.kernel_w = 3; c.d.in_channels = 3; c.d.out_channels = 32;
      constexpr uint32_t kFar = 1u << (sizeof(void*) > 4 ? 24 : 16);  // a padded map is to fit into the address space
      c.d.stride_w = kFar;
      c.d.padding.mode = SKUA_PADDING_EXPLICIT;
      c.d.padding.left = kFar;
      c.d.padding.right = 2 * kFar;
      c.in_h = c.in_w = 16;
      ASSERT_TRUE(c.prepare(rng));
      const std::string text = explained(c, context);
      size_t bytes = SIZE_MAX;
      const char* const said = strstr(text.c_str(), "workspace: ");
      ASSERT_TRUE(said && sscanf(said, "workspace: %zu", &bytes) == 1) << text;
      EXPECT_LT(bytes, size_t(1) << 16) << text;
      check(c, context, rng, false);
      if (HasFailure()) return;
    }
}

// An infinity of the input makes infinities of the weights' signs, of the outputs that see it and of no others.
TEST(Conv, InfinityStaysInItsReceptiveField) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info&, Context& context) {
    constexpr size_t kIn = 3, kOut = 20, kSize = 9;
    Rng rng(41);
    Case c;
    c.d.kernel_h = c.d.kernel_w = 3;
    c.d.in_channels = kIn;
    c.d.out_channels = kOut;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    c.d.input_type = type;
    c.d.numerics = SKUA_NUMERICS_STRICT;
    c.half_weights = true;
    c.in_h = c.in_w = kSize;
    ASSERT_TRUE(c.prepare(rng));
    for (float& w : c.weights) w = w < 0 ? -1.5f : 1.5f;
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op));
    for (size_t channel = 0; channel < kIn; ++channel)
      for (size_t column : {size_t(0), size_t(4), kSize - 1}) {
        Data x = make(c.input(), rng);
        x.v[c.at(kSize, kSize, kIn, 0, 3, column, channel)] = INFINITY;
        const std::vector<Data> got = run(op, {x});
        ASSERT_EQ(got.size(), 1u);
        const std::vector<float> y = dense(got[0]);
        for (size_t h = 0; h < kSize; ++h)
          for (size_t w = 0; w < kSize; ++w)
            for (size_t o = 0; o < kOut; ++o) {
              const float value = y[(h * kSize + w) * kOut + o];
              const bool sees = h >= 2 && h <= 4 && w + 1 >= column && w <= column + 1;
              if (!sees) EXPECT_TRUE(std::isfinite(value)) << h << " " << w << " " << o;
              else
                EXPECT_EQ(value, std::copysign(INFINITY, float(c.weight(o, 3 + 1 - h, column + 1 - w, channel))))
                    << h << " " << w << " " << o;
            }
        if (testing::Test::HasFailure()) return;
      }
  });
}

// Depths of whole registers (AMX) are multiplied where they are, in taps: lines longer and shorter than a tile, gaps
// between them that are rows and that are not; every tile of halves.
TEST(Conv, DepthsOfWholeRegisters) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info& tile, Context& context) {
    const bool registers = std::string(tile.isa) == "amx_bf16";
    Rng rng(31);
    for (int i = 0, done = 0; done < (registers && !small() ? 40 : 4); ++i) {
      Case c = random_case(rng);
      c.d.input_type = type;
      c.half_weights = true;
      c.fill_depth(rng, i, 32);
      if (!c.prepare(rng)) continue;
      ++done;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
  });
}

// Taps that do not fill registers (AMX) are copied together, or their pixels padded: groups, dilation, phases of a
// transposed convolution, pixels with gaps, functions behind the sums.
TEST(Conv, TapsGatheredToRegisters) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info& tile, Context& context) {
    if (std::string(tile.isa) != "amx_bf16" || std::string(tile.name).find("packed") != std::string::npos) return;
    Rng rng(41);
    int gathered = 0, padded = 0;
    for (int i = 0, done = 0; done < (small() ? 16 : 110); ++i) {
      Case c = random_case(rng);
      skua_conv2d_desc& d = c.d;
      d.input_type = type;
      c.half_weights = i % 2;
      d.in_channels = d.groups * uint32_t(rng.integer(1, i % 3 && d.groups == 1 ? 12 : 70));
      d.out_channels = d.groups * uint32_t(rng.integer(1, 80));
      d.hint_in_h = d.hint_in_w = 0;
      if (i % 4 == 0) d.epilogue.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.25f, 0};
      if (i % 4 == 1) c.in_w = size_t(rng.integer(14, 40));
      if (!c.prepare(rng)) continue;
      ++done;
      Case alone = c;
      alone.d.epilogue.residual = SKUA_RESIDUAL_NONE;
      const std::string text = explained(alone, context);
      gathered += text.find("algorithm gathered_rows") != std::string::npos;
      padded += text.find("algorithm padded_pixels") != std::string::npos;
      check(c, context, rng, i % 3 == 0);
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GE(gathered, small() ? 3 : 25);
    EXPECT_GE(padded, small() ? 1 : 6);
  });
}

// Taps that lie far apart are read in place; windows that do are copied from the image itself, not out of a band with
// all that lies between.
TEST(Conv, GatheredWindows) {
  on_each_tile(half_types(), [](skua_dtype type, const skua_kernel_info& tile, Context& context) {
    if (std::string(tile.isa) != "amx_bf16" || std::string(tile.name).find("packed") != std::string::npos) return;
    Rng rng(47);
    for (const uint32_t dilation : {1u, 8u, 9u, 4096u}) {
      Case c;
      c.d.input_type = type;
      c.d.kernel_h = c.d.kernel_w = 3;
      c.d.in_channels = 24; c.d.out_channels = 20;
      c.d.dilation_h = c.d.dilation_w = dilation;
      c.d.padding = {SKUA_PADDING_EXPLICIT, dilation, dilation, dilation, dilation};
      c.in_h = c.in_w = 20;
      ASSERT_TRUE(c.prepare(rng));
      const std::string text = explained(c, context);
      EXPECT_EQ(text.find("algorithm gathered_rows") != std::string::npos, dilation <= 8) << text;
      check(c, context, rng, true);
    }
    Case c;  // 54 KB from an output to the next
    c.d.input_type = type;
    c.d.kernel_h = c.d.kernel_w = 3;
    c.d.in_channels = 150; c.d.out_channels = 20;
    c.d.stride_w = 60;
    c.in_h = 3;
    c.in_w = small() ? 300 : 6000;
    ASSERT_TRUE(c.prepare(rng));
    EXPECT_NE(explained(c, context).find("from the image"), std::string::npos);
    check(c, context, rng, false);
  });
}

// Groups of as many outputs as inputs, several of them in a vector.
TEST(Conv, Groups) {
  struct Layer {
    uint32_t h, w, group, channels, stride, pad, residual, dilation = 1;
  };
  for (skua_dtype type : float_types()) for (const char* isa : isas(type)) {
    SCOPED_TRACE(isa);
    Context context(isa, "grouped");
    Rng rng(37);
    size_t halves = 0;
    for (const Layer& l :
         {Layer{14, 14, 4, 64, 1, 1, 0},    Layer{9, 11, 4, 16, 1, 1, 1},     Layer{9, 11, 8, 48, 1, 1, 2},
          Layer{7, 5, 16, 32, 1, 2, 0},     Layer{6, 30, 2, 32, 1, 0, 0},     Layer{15, 17, 4, 32, 2, 1, 2},
          Layer{8, 13, 8, 32, 2, 1, 0},     Layer{12, 16, 16, 16, 2, 1, 1},   Layer{3, 3, 4, 16, 1, 1, 0},
          Layer{1, 9, 4, 32, 1, 1, 0},      Layer{8, 8, 4, 24, 1, 1, 0},      Layer{8, 8, 3, 48, 1, 1, 0},
          Layer{9, 10, 4, 20, 1, 1, 1},     Layer{7, 9, 8, 104, 1, 1, 2},     Layer{5, 12, 4, 68, 2, 1, 0},
          Layer{6, 15, 8, 24, 1, 2, 0, 2},  Layer{7, 8, 32, 64, 1, 1, 0},     Layer{6, 17, 48, 96, 1, 2, 1},
          Layer{9, 7, 64, 128, 2, 1, 2},    Layer{8, 9, 40, 80, 1, 1, 0},     Layer{5, 6, 96, 192, 1, 1, 0},
          Layer{13, 15, 4, 32, 1, 2, 1, 2}, Layer{14, 14, 8, 32, 1, 3, 0, 3}, Layer{17, 20, 16, 32, 2, 2, 2, 2},
          Layer{5, 9, 4, 16, 1, 4, 0, 4}})
      for (const bool hinted : {false, true}) {
        if (type != SKUA_DTYPE_F32 && hinted) continue;
        // Under an emulator each layer in one of the half types.
        if (small() && type != SKUA_DTYPE_F32 && (++halves + (type == SKUA_DTYPE_BF16)) % 2) continue;
        Case c;
        c.d.numerics = SKUA_NUMERICS_STRICT;
        c.d.input_type = type;
        c.batch = small() ? 1 : 2;
        c.in_h = small() && l.group >= 32 ? 3 : l.h; c.in_w = l.w;  // deep ones are most of the time
        c.d.kernel_h = c.d.kernel_w = 3;
        c.d.stride_h = c.d.stride_w = l.stride;
        c.d.dilation_h = c.d.dilation_w = l.dilation;
        c.d.in_channels = c.d.out_channels = l.channels; c.d.groups = l.channels / l.group;
        c.d.padding = {SKUA_PADDING_EXPLICIT, l.pad, l.pad, l.pad, l.pad};
        c.d.weight_layout = skua_weight_layout(rng.integer(0, 2));
        c.d.epilogue.residual = skua_residual(l.residual);
        c.d.epilogue.activation.kind = l.residual == 1 || (l.residual && type != SKUA_DTYPE_F32) ? SKUA_ACTIVATION_RELU6
                                       : l.residual ? SKUA_ACTIVATION_LEAKY_RELU
                                                    : SKUA_ACTIVATION_NONE;
        c.d.epilogue.activation.a = 0.25f;
        if (hinted) c.d.hint_in_h = c.d.hint_in_w = 28;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, hinted);
        if (HasFailure()) return;
        Op op;
        SKUA_EXPECT_OK(c.create(context, &op));
        skua_plan* plan = nullptr;
        const std::vector<skua_tensor> inputs = {c.input(), c.output()};
        SKUA_EXPECT_OK(skua_op_plan(op, inputs.data(), l.residual ? 2 : 1, nullptr, 0, &plan));
        if (l.group == 4 && l.channels % 4 == 0 && l.w >= 9 && strcmp(isa, "scalar") != 0 &&
            (type == SKUA_DTYPE_F32 || strncmp(isa, "sse", 3) != 0)) {
          EXPECT_STREQ(skua_plan_algorithm(plan), "grouped") << c.text();
        }
        if (l.group > 64) {
          EXPECT_STRNE(skua_plan_algorithm(plan), "grouped") << c.text();
        }
        skua_plan_destroy(plan);
      }
    // Few rows, so that channels are cut too: vectors that overlap are one task's.
    for (const uint32_t channels : {20u, 24u, 40u, 68u}) {
      Case c;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.d.input_type = type;
      c.in_h = c.d.hint_in_h = 4; c.in_w = c.d.hint_in_w = small() ? 150 : 400;
      c.d.kernel_h = c.d.kernel_w = 3; c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      c.d.in_channels = c.d.out_channels = channels; c.d.groups = channels / 4;
      ASSERT_TRUE(c.prepare(rng));
      Op op;
      SKUA_EXPECT_OK(c.create(context, &op));
      expect_tasks_apart(op, {make(c.input(), rng)}, 7);
      if (HasFailure()) return;
    }
  }
}

// NCHW of one pixel: rows of channels, of several images, whose last one ends with the workspace; the same and a column
// of pixels with planes that lie apart.
TEST(Conv, PlanarPixels) {
  for (skua_dtype type : float_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Rng rng(44);
      for (size_t channels : {3, 5, 33})
        for (const bool holes : {false, true})
          for (const bool column : {false, true}) {
            Case c;
            c.batch = 3;
            c.in_h = column ? 18 : 1; c.in_w = column ? 3 : 1;
            c.d.numerics = SKUA_NUMERICS_STRICT;
            c.d.input_type = type;
            c.d.layout = SKUA_LAYOUT_NCHW;
            c.d.stride_h = c.d.stride_w = column ? 3 : 1;
            c.d.in_channels = 7; c.d.out_channels = uint32_t(channels);
            ASSERT_TRUE(c.prepare(rng));
            check(c, context, rng, holes);
            if (HasFailure()) return;
          }
    }
}

// NCHW in several stretches, whole sixteens of pixels and channels and what is left of them, lines with a gap and
// without.
TEST(Conv, PlanarStretches) {
  for (skua_dtype type : float_types()) {
    Context context(nullptr);
    Rng rng(43);
    struct Layer {
      size_t h, w;
      uint32_t in, out, stride;
    };
    for (const Layer& l :
         {Layer{19, 23, 3, 70, 2}, small() ? Layer{17, 16, 18, 17, 1} : Layer{17, 16, 100, 33, 1},
          Layer{5, 3, 129, 5, 1}, small() ? Layer{6, 14, 48, 64, 1} : Layer{14, 14, 48, 64, 1}})
      for (const bool holes : {false, true}) {
        if (small() && type != SKUA_DTYPE_F32 && holes != (type == SKUA_DTYPE_BF16)) continue;
        Case c;
        c.batch = 2;
        c.in_h = l.h; c.in_w = l.w;
        c.d.numerics = SKUA_NUMERICS_STRICT;
        c.d.input_type = type;
        c.d.layout = SKUA_LAYOUT_NCHW;
        c.d.kernel_h = c.d.kernel_w = 3; c.d.stride_h = c.d.stride_w = l.stride;
        c.d.in_channels = l.in; c.d.out_channels = l.out;
        c.d.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
        c.d.epilogue.residual = l.h == 17 ? SKUA_RESIDUAL_BEFORE_ACTIVATION : SKUA_RESIDUAL_NONE;
        ASSERT_TRUE(c.prepare(rng));
        check(c, context, rng, holes);
        if (HasFailure()) return;
      }
  }
}

// Groups that fill a vector, or some: as wide as tiles and not, padding at either end of a row; the same bits from
// every tile.
TEST(Conv, GroupsOfAVector) {
  struct Layer {
    uint32_t h, w, channels, pad, residual, group = 16;
  };
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Rng rng(41);
    for (const uint32_t stride : {1u, 2u})
      for (const Layer& l : {Layer{14, 14, 512, 1, 0}, Layer{5, 26, 48, 2, 1}, Layer{3, 16, 32, 0, 2},
                             Layer{2, 42, 32, 1, 0}, Layer{4, 31, 32, 2, 0}, Layer{3, 7, 32, 1, 0},
                             Layer{5, 14, 96, 1, 0, 32}, Layer{3, 28, 96, 1, 1, 48}, Layer{2, 14, 128, 1, 0, 64},
                             // pixels a page apart: blocks of whole groups are copied
                             Layer{4, 9, 1024, 1, 1, 32}, Layer{3, 7, 3072, 1, 0, 48}, Layer{3, 15, 1024, 1, 0}}) {
        if (small() && l.channels >= 512) continue;
        Case c;
        c.in_h = c.d.hint_in_h = l.h;
        c.in_w = c.d.hint_in_w = l.w;
        c.d.numerics = SKUA_NUMERICS_STRICT;
        c.d.kernel_h = c.d.kernel_w = 3;
        c.d.stride_h = c.d.stride_w = stride;
        c.d.in_channels = c.d.out_channels = l.channels;
        c.d.groups = l.channels / l.group;
        c.d.padding = {SKUA_PADDING_EXPLICIT, l.pad, l.pad, l.pad, l.pad};
        c.d.epilogue.residual = skua_residual(l.residual);
        c.d.epilogue.activation.kind = l.residual ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE;
        ASSERT_TRUE(c.prepare(rng));
        std::vector<Data> inputs = {make(c.input(), rng)}, first;
        if (l.residual) inputs.push_back(make(c.output(), rng));
        for (const char* filter : {"grouped", stride == 1 ? "grouped_f32_3x3s1_2x7*" : "grouped_f32_3x3s2_2x7*",
                                   stride == 1 ? "grouped_f32_3x3s1_1x14*" : "grouped_f32_3x3s2_1x7*"}) {
          Context context(isa, filter);
          if (!strcmp(filter, "grouped")) check(c, context, rng, true);
          Op op;
          SKUA_EXPECT_OK(c.create(context, &op));
          skua_plan* plan = nullptr;
          const std::vector<skua_tensor> shapes = {c.input(), c.output()};
          SKUA_EXPECT_OK(skua_op_plan(op, shapes.data(), l.residual ? 2 : 1, nullptr, 0, &plan));
          if (HasFailure()) return;
          const bool grouped = strcmp(skua_plan_algorithm(plan), "grouped") == 0,
                     line = strstr(skua_plan_kernel(plan), "_2x7_") == nullptr;
          // A tile's name does not name the algorithm: that is the model's choice, which for 48 channels is this one on
          // every chip.
          if (strcmp(isa, "avx512") == 0 && (l.channels == 48 || !strcmp(filter, "grouped"))) {
            EXPECT_TRUE(grouped) << c.text();
            // without a tile's name the core's model chooses
            if ((stride == 2 || (l.w + 2 * l.pad - 2) % 14 == 0) && strcmp(filter, "grouped")) {
              EXPECT_EQ(line, strstr(filter, "2x7") == nullptr) << filter << " " << c.text();
            }
          }
          skua_plan_destroy(plan);
          if (!grouped) continue;
          const std::vector<Data> got = run(op, inputs, {c.output()});
          ASSERT_EQ(got.size(), 1u);
          if (first.empty())
            first = got;
          else
            expect_same_bits(got[0], first[0]);
        }
      }
  }
}

// Shapes that networks have, in which several bands, passes over the depth and panels meet.
TEST(Conv, NetworkShapes) {
  struct Layer { uint32_t size, in, out, kernel, stride; };
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(3);
    // these two: several passes over the depth
    for (const Layer& l :
         {Layer{33, 3, 24, 3, 2}, Layer{40, 3, 64, 7, 2}, Layer{14, 96, 72, 1, 1}, Layer{13, 200, 40, 3, 1},
          Layer{7, 320, 70, 1, 2}, Layer{6, 490, 16, 1, 1}, Layer{5, 460, 70, 3, 2}, Layer{7, 576, 160, 1, 1},
          Layer{7, 300, 95, 1, 1}}) {  // workers begin inside a panel
      if (small() && l.size > 14) continue;
      Case c;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.in_h = c.in_w = small() ? 5 : l.size;
      c.d.kernel_h = c.d.kernel_w = l.kernel; c.d.stride_h = c.d.stride_w = l.stride;
      c.d.in_channels = l.in; c.d.out_channels = l.out;
      c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
      ASSERT_TRUE(c.prepare(rng));
      check(c, context, rng, false);
      if (HasFailure()) return;
    }
  }
}

// Rows, pixels and images of the residual apart from the output's: where all pixels are one line of rows, and where
// only those of input and output are.
TEST(Conv, ResidualHasItsOwnStrides) {
  struct Layer { uint32_t kernel_h, kernel_w; };
  const Rooms rooms[] = {{{}, {}, {0, 0, 0, 3}},
                         {{}, {}, {0, 0, 2, 0}},
                         {{}, {}, {0, 2, 0, 0}},
                         {{}, {0, 0, 0, 4}, {}},
                         {{0, 1, 0, 2}, {0, 2, 0, 1}, {0, 3, 0, 3}},
                         {{0, 0, 1, 2}, {0, 1, 2, 1}, {0, 2, 3, 4}}};
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(41);
    for (const Layer& l : {Layer{1, 1}, Layer{3, 3}, Layer{3, 1}})
      for (const Rooms& room : rooms)
        for (const skua_residual residual : {SKUA_RESIDUAL_BEFORE_ACTIVATION, SKUA_RESIDUAL_AFTER_ACTIVATION}) {
          Case c;
          c.d.numerics = SKUA_NUMERICS_STRICT;
          c.batch = 3;
          c.in_h = 7; c.in_w = 5;
          c.d.kernel_h = l.kernel_h; c.d.kernel_w = l.kernel_w;
          c.d.in_channels = 6; c.d.out_channels = small() ? 9 : 37;
          c.d.epilogue.residual = residual;
          c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
          ASSERT_TRUE(c.prepare(rng));
          check(c, context, rng, room);
          if (HasFailure()) return;
        }
  }
}

// Rows of a layer whose image is larger than the second-level cache are computed in bands.
TEST(Conv, ManyBands) {
  if (small()) GTEST_SKIP() << "large";
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(43);
    Case c;
    c.d.numerics = SKUA_NUMERICS_STRICT;
    c.d.kernel_h = 2; c.d.stride_h = 2; c.d.padding.top = 1;
    c.d.in_channels = 64; c.d.out_channels = 65;
    c.in_w = 60;
    // As high as it takes for four bands.
    size_t band = SIZE_MAX;
    for (c.in_h = 63; c.in_h < 4000 && band > size_t(c.out_h) / 4; c.in_h *= 2) {
      ASSERT_TRUE(c.prepare(rng));
      const std::string text = explained(c, context);
      const char* at = strstr(text.c_str(), "bands of ");
      ASSERT_NE(at, nullptr) << text;
      band = size_t(strtoull(at + 9, nullptr, 10));
      if (band <= size_t(c.out_h) / 4) break;
    }
    ASSERT_LE(band, size_t(c.out_h) / 4);
    check(c, context, rng, false);
    if (HasFailure()) return;
  }
}

// Fewer lines than workers are cut along the line: borders and what lies between them in several parts, one of which
// may see padding alone; strides, dilations, the phases of a transposed one.
TEST(Conv, FewLinesForManyWorkers) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(11);
    for (int i = 0; i < (small() ? 4 : 12); ++i) {
      Case c;
      skua_conv2d_desc& d = c.d;
      d.numerics = SKUA_NUMERICS_STRICT;
      d.kernel_h = uint32_t(1 + i % 2), d.kernel_w = uint32_t(rng.integer(2, 9));
      d.stride_w = uint32_t(i % 3 ? 1 : 2), d.dilation_w = uint32_t(i % 4 == 1 ? 3 : 1);
      d.padding.top = d.padding.bottom = d.kernel_h - 1, d.padding.left = uint32_t(rng.integer(0, 40)),
      d.padding.right = uint32_t(rng.integer(0, 40));
      d.in_channels = uint32_t(rng.integer(3, 40)), d.out_channels = uint32_t(rng.integer(1, 40));
      if (i % 5 == 4) c.transposed = true, d.padding = {SKUA_PADDING_EXPLICIT, 0, 0, 1, 1};
      if (i % 3 == 1) d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
      c.in_h = size_t(rng.integer(1, 2)), c.in_w = size_t(rng.integer(60, 200)), c.batch = size_t(rng.integer(1, 2));
      if (!c.prepare(rng)) continue;
      check(c, context, rng, i % 2 == 1);
      if (HasFailure()) return;
    }
  }
}

// Pixels with holes between lines, whose bands the workers cannot share evenly: these are cut anew.
TEST(Conv, LinesOfAStrideForEveryWorker) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(12);
    for (const uint32_t lines : {28u, 9u, 7u}) {
      if (small() && lines > 7) continue;
      Case c;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.d.kernel_h = c.d.kernel_w = 1;
      c.d.stride_h = c.d.stride_w = 2;
      c.d.in_channels = lines == 28 ? 256 : 40, c.d.out_channels = lines == 28 ? 512 : 70;
      c.in_h = 2 * lines, c.in_w = lines == 7 ? 90 : 56;
      ASSERT_TRUE(c.prepare(rng));
      check(c, context, rng, lines == 9);
      if (HasFailure()) return;
    }
  }
}

// Bands whose lines are alike, each, but not those of the next: where a window leaves the padding as a band ends. They
// are not cut anew. A band's size is the core's L2's (tests/matrix asks for some).
TEST(Conv, BandsThatEndWhereThePaddingDoes) {
  if (small()) GTEST_SKIP() << "large";
  struct Layer { uint32_t dilation, stride, in, out, h, w; };
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(13);
    for (const Layer& l : {Layer{3, 1, 640, 80, 24, 18}, Layer{5, 1, 512, 96, 38, 12}, Layer{8, 1, 320, 112, 32, 17},
                           Layer{3, 1, 448, 80, 20, 35}, Layer{4, 1, 448, 96, 16, 25}, Layer{20, 2, 192, 80, 76, 22}}) {
      Case c;
      c.d.numerics = SKUA_NUMERICS_STRICT;
      c.d.kernel_h = 2, c.d.kernel_w = 1;
      c.d.stride_h = l.stride, c.d.dilation_h = l.dilation;
      c.d.padding.top = l.dilation;
      c.d.in_channels = l.in, c.d.out_channels = l.out;
      c.in_h = l.h, c.in_w = l.w;
      ASSERT_TRUE(c.prepare(rng));
      check(c, context, rng, false);
      if (HasFailure()) return;
    }
  }
}

TEST(Conv, OneDimensionIsATensorOfRankThree) {
  Context context;
  Rng rng(5);
  Case c;
  c.d.kernel_w = 3; c.d.stride_w = 2; c.d.in_channels = 5; c.d.out_channels = 9; c.d.padding.left = 1;
  c.in_w = 11; c.batch = 2;
  ASSERT_TRUE(c.prepare(rng));
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  const Data x = make({2, 11, 5}, rng);
  std::vector<double> want, bound;
  reference(c, x.v, {}, want, bound);
  const std::vector<Data> got = run(op, {x});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].t.rank, 3u);
  EXPECT_EQ(got[0].t.shape[1], size_t(c.out_w));
  expect_close(got[0], want, bound);
}

// explain() does not deny what a filter did: a tile's name decides the panels, and with them which product of
// Winograd's algorithm there is; an algorithm's name what weights are packed for.
TEST(Conv, ExplainSaysWhatAFilterDecided) {
  Rng rng(24);
  const auto filtered = [&](const char* filter, std::string& kernel) {
    Context context(nullptr, filter);
    Case c;
    c.d.kernel_h = c.d.kernel_w = 3, c.d.in_channels = c.d.out_channels = 32,
    c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
    c.in_h = c.in_w = c.d.hint_in_h = c.d.hint_in_w = 28;
    EXPECT_TRUE(c.prepare(rng));
    return explained(c, context, &kernel);
  };
  std::string plain, kernel;
  filtered(nullptr, plain);
  for (const skua_kernel_info& info : kernels("gemm_f32_")) {
    const std::string text = filtered(info.name, kernel);
    if (kernel != plain) {
      EXPECT_EQ(text.find("matches nothing here, ignored"), std::string::npos) << text;
    }
  }
  const std::string text = filtered("winograd_f2x2", kernel);
  EXPECT_NE(text.find("chosen by the kernel filter"), std::string::npos) << text;
  EXPECT_NE(text.find("names the algorithm that the weights are packed for"), std::string::npos) << text;
}

TEST(Conv, OneHintAlone) {
  Context context(nullptr);
  for (skua_dtype type : {SKUA_DTYPE_F32, SKUA_DTYPE_S8}) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.input_type = d.output_type = d.weight_type = type, d.in_channels = d.out_channels = 1;
    if (type == SKUA_DTYPE_S8) d.input_q.scale = d.output_q.scale = d.weight_q.scale = 1;
    d.hint_in_h = 5;
    skua_op* op = nullptr;
    const float weight = 0;
    const skua_status status = skua_conv2d_create(context, &d, &weight, nullptr, &op);
    if (status == SKUA_STATUS_UNSUPPORTED) continue;  // a build without the type
    EXPECT_EQ(status, SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(skua_error_text()).find("hint_in_w is 0"), std::string::npos) << skua_error_text();
    EXPECT_EQ(op, nullptr);
  }
}

// A filter that names an algorithm forces it where it can serve, and is no obstacle elsewhere.
TEST(Conv, FilterOnAnAlgorithmLeavesOtherLayersAlone) {
  Rng rng(23);
  for (const char* filter :
       {"winograd_f2x2", "winograd_f2x2_5x5", "winograd_f3x3_s2", "winograd*", "depthwise", "direct"}) {
    SCOPED_TRACE(filter);
    Context context(nullptr, filter);
    struct Layer { uint32_t kernel, stride, groups; const char *only, *algorithm; };
    for (const Layer& l :
         {Layer{3, 2, 1, "", ""}, Layer{1, 1, 1, "", ""}, Layer{3, 1, 32, "depthwise", "depthwise"},
          Layer{3, 1, 1, "winograd_f2x2", "winograd_f2x2"}, Layer{5, 1, 1, "winograd_f2x2_5x5", "winograd_f2x2_5x5"},
          Layer{3, 2, 1, "winograd_f3x3_s2", "winograd_f3x3_s2"}}) {
      Case c;
      c.d.kernel_h = c.d.kernel_w = l.kernel; c.d.stride_h = c.d.stride_w = l.stride; c.d.groups = l.groups;
      c.d.in_channels = c.d.out_channels = 32;
      c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
      c.d.hint_in_h = c.d.hint_in_w = 9;
      c.in_h = c.in_w = 9;
      ASSERT_TRUE(c.prepare(rng));
      Op op;
      SKUA_EXPECT_OK(c.create(context, &op));
      skua_plan* plan = nullptr;
      const skua_tensor input = c.input();
      SKUA_EXPECT_OK(skua_op_plan(op, &input, 1, nullptr, 0, &plan));
      if (!strcmp(filter, l.only)) {
        EXPECT_STREQ(skua_plan_algorithm(plan), l.algorithm);
        // Nor does it let tuning take another algorithm: the direct one, packed too without a hint, is no candidate.
        c.d.hint_in_h = c.d.hint_in_w = 0;
        Op both;
        SKUA_EXPECT_OK(c.create(context, &both));
        skua_plan_destroy(plan);
        SKUA_EXPECT_OK(skua_op_plan(both, &input, 1, nullptr, 0, &plan));
        char text[4000];
        skua_plan_explain(plan, text, sizeof text);
        unsigned left = 0, all = 0;
        const char* const said = strstr(text, ": leaves ");
        ASSERT_TRUE(said && sscanf(said, ": leaves %u of %u", &left, &all) == 2) << text;
        EXPECT_TRUE(l.groups > 1 ? left <= all : left < all) << text;
        skua_plan_destroy(plan);
        plan = nullptr;
      }
      skua_plan_destroy(plan);
    }
  }
}

TEST(Conv, WorkspaceOfTooManyWorkersIsSizeMax) {
  if (sizeof(size_t) < 8) return;  // the shape does not exist there
  Context context(nullptr, "depthwise");
  Rng rng(29);
  Case c;
  // Depthwise with a multiplier copies the rows of a band.
  c.d.kernel_h = c.d.kernel_w = 3;
  c.d.in_channels = c.d.groups = 2;
  c.d.out_channels = 4;
  c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  c.d.numerics = SKUA_NUMERICS_STRICT;
  c.in_h = 3; c.in_w = size_t(1) << 30 << 9;
  ASSERT_TRUE(c.prepare(rng));
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op));
  skua_plan* plan = nullptr;
  const skua_tensor input = c.input();
  SKUA_EXPECT_OK(skua_op_plan(op, &input, 1, nullptr, 0, &plan));
  size_t before = 0;
  for (uint32_t workers = 1; workers < (1u << 31); workers *= 2) {
    const size_t bytes = skua_plan_workspace(plan, workers);
    EXPECT_GE(bytes, before) << workers;
    before = bytes;
  }
  EXPECT_EQ(before, SIZE_MAX);
  float one = 0;
  const skua_buffer buffer = skua_host_buffer(&one), other = skua_host_buffer(&one + 1);
  skua_executor many = {nullptr, 1u << 30, [](void*, size_t, skua_task, void*) {}};
  alignas(64) static char workspace[64];
  EXPECT_EQ(skua_plan_run(plan, &buffer, 1, &other, 1, workspace, SIZE_MAX, &many), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(strstr(skua_error_text(), "workers"), nullptr) << skua_error_text();
  skua_plan_destroy(plan);
}

// With small integers every order of summation is exact, so all instruction sets and algorithms that do not transform
// agree to the bit.
TEST(Conv, ExactModeAgreesAcrossInstructionSets) {
  Rng rng(11);
  Case c;
  c.d.kernel_h = c.d.kernel_w = 3;
  c.d.in_channels = 19;
  c.d.out_channels = 37;
  c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  c.d.numerics = SKUA_NUMERICS_STRICT;
  c.in_h = 9; c.in_w = 8;
  ASSERT_TRUE(c.prepare(rng));
  for (float& v : c.weights) v = float(rng.integer(-4, 4));
  for (float& v : c.bias) v = float(rng.integer(-4, 4));
  const Data x = make_integers(c.input(), rng);
  Data first;
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op));
    const std::vector<Data> got = run(op, {x});
    ASSERT_EQ(got.size(), 1u);
    if (first.v.empty()) first = got[0];
    else expect_same_bits(got[0], first);
  }
}

TEST(Conv, NanStaysInItsReceptiveField) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(13);
    Case c;
    c.d.kernel_h = c.d.kernel_w = 3;
    c.d.in_channels = 6;
    c.d.out_channels = 5;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    c.d.numerics = SKUA_NUMERICS_STRICT;
    c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
    c.in_h = c.in_w = 7;
    ASSERT_TRUE(c.prepare(rng));
    Data x = make(c.input(), rng);
    x.v[c.at(7, 7, 6, 0, 3, 4, 2)] = NAN;
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op));
    const std::vector<Data> got = run(op, {x});
    ASSERT_EQ(got.size(), 1u);
    for (size_t y = 0; y < 7; ++y)
      for (size_t w = 0; w < 7; ++w)
        for (size_t o = 0; o < 5; ++o)
          EXPECT_EQ(std::isnan(got[0].v[(y * 7 + w) * 5 + o]), y >= 2 && y <= 4 && w >= 3 && w <= 5)
              << y << " " << w << " " << o;
  }
}

TEST(Conv, EmptyInputsGiveEmptyOutputs) {
  Context context;
  Rng rng(17);
  struct Channels { uint32_t in, out, groups; };
  for (const Channels& channels : {Channels{4, 6, 1}, {64, 64, 4}, {24, 24, 24}}) {
    Case c;
    c.d.in_channels = channels.in; c.d.out_channels = channels.out; c.d.groups = channels.groups;
    c.d.kernel_h = c.d.kernel_w = 3;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    c.in_h = c.in_w = 3;
    ASSERT_TRUE(c.prepare(rng));
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op));
    for (const skua_tensor& t :
         {shape({0, 5, 5, channels.in}), shape({2, 0, 5, channels.in}), shape({2, 5, 0, channels.in})}) {
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      skua_tensor y;
      SKUA_EXPECT_OK(skua_plan_outputs(plan, &y, 1));
      EXPECT_EQ(elements(y), 0u);
      char text[4096];
      skua_plan_explain(plan, text, sizeof text);
      EXPECT_EQ(std::strstr(text, "nan"), nullptr) << text;
      const skua_buffer none = skua_host_buffer(nullptr);
      alignas(64) static char workspace[1 << 16];
      SKUA_EXPECT_OK(skua_plan_run(plan, &none, 1, &none, 1, workspace, sizeof workspace, nullptr));
      skua_plan_destroy(plan);
    }
  }
}

TEST(Conv, PackedWeightsGiveTheSameBits) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(19);
    for (int i = 0, tried = 0; i < (small() ? 4 : 12) && tried < 500; ++tried) {
      Case c = random_case(rng);
      c.d.numerics = SKUA_NUMERICS_FAST;
      if (!c.prepare(rng)) continue;
      ++i;
      SCOPED_TRACE(c.text());
      Op op, borrowed;
      SKUA_EXPECT_OK(c.create(context, &op));
      const size_t size = skua_op_packed_size(op);
      ASSERT_GT(size, 0u);
      Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
      SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
      blob.read_only();
      SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &borrowed));
      std::vector<Data> inputs = {make(c.input(), rng)};
      if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) inputs.push_back(make(c.output(), rng));
      const std::vector<Data> a = run(op, inputs), b = run(borrowed, inputs);
      ASSERT_EQ(a.size(), 1u);
      ASSERT_EQ(b.size(), 1u);
      expect_same_bits(a[0], b[0]);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
