// Depthwise convolutions of bytes: every kernel on every instruction set, bit for bit against the formula of
// docs/quantization.md.
#include <skua/conv.h>
#include <skua/packed.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>

#include "dispatch/requantize.h"
#include "tests/support/blob.h"
#include "tests/support/fixed_point.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

struct Layer {
  size_t batch, h, w, channels;
  uint32_t kernel_h, kernel_w, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  skua_padding padding = {};
  bool holes = false, extreme = false;
  size_t multiplier = 1;
  // a skua_rounding, with sums beyond 2^23 and, in fixed point, results beyond 16 bits before they are clamped
  int large = -1;
  // of weights: not 0: they and the inputs are the ends of their types, or this, and results are as a rule not clamped
  int least = 0;
  bool far = false;  // results beyond 32 bits instead
  bool tame = false;  // no weight is -128: two products fit 16 bits
  size_t outputs() const { return channels * multiplier; }
};

class DepthwiseInt8 : public testing::Test {
 protected:
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  std::vector<float> scales;
  std::vector<int32_t> multipliers, shifts;
  Data in;

  skua_conv2d_desc desc(const Layer& l, skua_dtype from, skua_dtype to, Rng& rng) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.kernel_h = l.kernel_h;
    d.kernel_w = l.kernel_w;
    d.stride_h = l.stride_h;
    d.stride_w = l.stride_w;
    d.dilation_h = l.dilation_h;
    d.dilation_w = l.dilation_w;
    d.groups = d.in_channels = uint32_t(l.channels);
    d.out_channels = uint32_t(l.outputs());
    d.padding = l.padding;
    d.input_type = from; d.weight_type = SKUA_DTYPE_S8; d.output_type = to;
    d.weight_layout = rng.integer(0, 1) ? SKUA_WEIGHTS_HWIO : SKUA_WEIGHTS_OHWI;
    const auto zero = [&](skua_dtype type) {
      return (type == SKUA_DTYPE_S8 ? -128 : 0) + (l.extreme ? 255 * rng.integer(0, 1) : rng.integer(0, 255));
    };
    d.input_q.scale = 0.5f; d.input_q.zero_point = zero(from);
    d.output_q.scale = l.extreme ? 1e-6f : l.far ? 1e-9f : l.least ? 12 : 0.25f;
    // where no result is below it, other arithmetic may serve
    d.output_q.zero_point = rng.integer(0, 1) ? zero(to) : to == SKUA_DTYPE_S8 ? -128 : 0;
    const size_t taps = size_t(l.kernel_h) * l.kernel_w;
    weights.resize(taps * l.outputs()), bias.resize(l.outputs()), scales.resize(l.outputs());
    for (int8_t& w : weights) w = int8_t(l.extreme ? (rng.integer(0, 1) ? 127 : -128) : rng.integer(-128, 127));
    for (int8_t& w : weights)
      if (l.tame && w == -128) w = -127;
    for (int32_t& b : bias) b = rng.integer(-9000, 9000);
    for (float& s : scales) s = rng.uniform(0.001f, 0.02f);
    if (rng.integer(0, 3))
      d.weight_q.scales = scales.data(), d.weight_q.axis = d.weight_layout == SKUA_WEIGHTS_HWIO ? 3 : 0;
    else d.weight_q.scale = 0.007f;
    switch (l.least ? 0 : rng.integer(0, 3)) {
      case 1: d.epilogue.activation.kind = SKUA_ACTIVATION_RELU; break;
      case 2: d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6; break;
      case 3: d.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -3.1f, 4.7f}; break;
    }
    if (rng.integer(0, 3) == 0) {
      d.requantization.rounding = skua_rounding(rng.integer(1, 2));
      multipliers.clear(), shifts.clear();
      for (size_t c = 0; c < l.outputs(); ++c) {
        multipliers.push_back(rng.integer(0, 7) ? rng.integer(1 << 30, INT32_MAX - 1) : rng.integer(0, INT32_MAX - 1));
        shifts.push_back(l.extreme ? rng.integer(-31, 30) : rng.integer(-10, -6));
      }
      if (!l.extreme && rng.integer(0, 1)) {
        for (size_t c = 0; c < l.outputs(); ++c)
          std::tie(multipliers[c], shifts[c]) =
              fixed_point_scale(double(d.input_q.scale) * double(d.weight_q.scales ? scales[c] : d.weight_q.scale) /
                                double(d.output_q.scale));
      } else {
        d.requantization.multipliers = multipliers.data(), d.requantization.shifts = shifts.data();
      }
    }
    if (l.large >= 0) {
      d.output_q.scale = 600, d.output_q.zero_point = to == SKUA_DTYPE_S8 ? -128 : 0;
      d.epilogue.activation = {};
      d.requantization = {skua_rounding(l.large), nullptr, nullptr};
      for (int32_t& b : bias) b = rng.integer(9 << 20, 14 << 20);
      multipliers.assign(l.outputs(), 1 << 30), shifts.assign(l.outputs(), -2);
      if (l.large) d.requantization.multipliers = multipliers.data(), d.requantization.shifts = shifts.data();
    }
    skua_tensor t = shape({l.batch, l.h, l.w, l.channels}, from);
    if (l.holes) t = with_holes(t, {0, 3, 1, 5});
    in = make_bytes(t, rng);
    if (l.least) {
      const float low = from == SKUA_DTYPE_S8 ? -128 : 0;
      for (int8_t& w : weights) w = int8_t(rng.integer(0, 2) ? l.least : 127);
      for (float& v : in.v)
        if (!std::isnan(v)) v = rng.integer(0, 2) ? low : low + 255;
    }
    return d;
  }

  std::vector<float> want(const Layer& l, const skua_conv2d_desc& d, size_t out_h, size_t out_w, long top, long left,
                          bool with_bias) const {
    const bool bytes_signed = d.output_type == SKUA_DTYPE_S8;
    const int first = bytes_signed ? -128 : 0;
    const int zero = d.output_q.zero_point;
    const auto bound = [&](float real) {
      return float(std::min(std::max(std::rint(double(real) / double(d.output_q.scale)), double(first - zero)),
                            double(first + 255 - zero)));
    };
    const skua_activation act = d.epilogue.activation;
    const float low =
        act.kind == SKUA_ACTIVATION_NONE ? float(first - zero) : bound(act.kind == SKUA_ACTIVATION_CLAMP ? act.a : 0);
    const float high = act.kind == SKUA_ACTIVATION_NONE || act.kind == SKUA_ACTIVATION_RELU
                           ? float(first + 255 - zero)
                           : bound(act.kind == SKUA_ACTIVATION_CLAMP ? act.b : 6);
    const std::vector<float> x = dense(in);
    std::vector<float> y;
    for (size_t b = 0; b < l.batch; ++b)
      for (size_t oy = 0; oy < out_h; ++oy)
        for (size_t ox = 0; ox < out_w; ++ox)
          for (size_t c = 0; c < l.outputs(); ++c) {
            int64_t sum = with_bias ? bias[c] : 0;
            for (size_t ky = 0; ky < l.kernel_h; ++ky)
              for (size_t kx = 0; kx < l.kernel_w; ++kx) {
                const long iy = long(oy * l.stride_h + ky * l.dilation_h) - top,
                           ix = long(ox * l.stride_w + kx * l.dilation_w) - left;
                if (iy < 0 || ix < 0 || iy >= long(l.h) || ix >= long(l.w)) continue;
                const size_t tap = ky * l.kernel_w + kx;
                const int w = weights[d.weight_layout == SKUA_WEIGHTS_HWIO ? tap * l.outputs() + c
                                                                           : c * l.kernel_h * l.kernel_w + tap];
                sum += (int64_t(x[((b * l.h + size_t(iy)) * l.w + size_t(ix)) * l.channels + c / l.multiplier]) -
                        d.input_q.zero_point) *
                       w;
              }
            if (d.requantization.rounding != SKUA_ROUNDING_FLOAT) {
              const float fixed =
                  float(fixed_point(d.requantization.rounding, int32_t(sum), multipliers[c], shifts[c]));
              y.push_back(std::min(std::max(fixed, low), high) + float(zero));
              continue;
            }
            const double scale = double(d.weight_q.scales ? scales[c] : d.weight_q.scale);
            y.push_back(float(skua::requantize(
                int32_t(sum), float(double(d.input_q.scale) * scale / double(d.output_q.scale)), {low, high, zero})));
          }
    return y;
  }

  void check(const Layer& l, const char* isa, skua_dtype from, skua_dtype to, uint32_t seed,
             const char* kernels = nullptr) {
    SCOPED_TRACE(
        std::string(isa) + " " + skua_dtype_name(from) + " to " + skua_dtype_name(to) + " " +
        testing::PrintToString(std::vector<size_t>{l.batch, l.h, l.w, l.channels, l.multiplier, l.kernel_h, l.kernel_w,
                                                   l.stride_h, l.stride_w, l.dilation_h, l.dilation_w}));
    Rng rng(seed);
    const skua_conv2d_desc d = desc(l, from, to, rng);
    const bool with_bias = rng.integer(0, 3) != 0 || l.large >= 0;
    Context context(isa, kernels);
    Op op;
    const skua_status created = skua_conv2d_create(context, &d, weights.data(), with_bias ? bias.data() : nullptr, &op);
    if (kernels && created == SKUA_STATUS_UNSUPPORTED) return;
    SKUA_EXPECT_OK(created);
    if (!op.op) return;
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &in.t, 1, nullptr, 0, &plan));
    if (!plan) return;
    const std::string kernel = skua_plan_kernel(plan);
    if (!kernels) {
      EXPECT_STREQ(skua_plan_algorithm(plan), "depthwise");
      EXPECT_EQ(kernel.find(from == SKUA_DTYPE_S8 ? "depthwise_s8_" : "depthwise_u8_"), 0u) << kernel;
    }
    skua_tensor t;
    SKUA_EXPECT_OK(skua_plan_outputs(plan, &t, 1));
    skua_plan_destroy(plan);
    long top = l.padding.top, left = l.padding.left;
    if (l.padding.mode != SKUA_PADDING_EXPLICIT) {
      const auto before = [&](size_t in_size, size_t out, uint32_t kernel_size, uint32_t stride, uint32_t dilation) {
        return std::max(0L,
                        (long(out) - 1) * long(stride) + long(kernel_size - 1) * long(dilation) + 1 - long(in_size)) /
               2;
      };
      top = before(l.h, t.shape[1], l.kernel_h, l.stride_h, l.dilation_h);
      left = before(l.w, t.shape[2], l.kernel_w, l.stride_w, l.dilation_w);
    }
    const skua_tensor out =
        l.holes ? with_holes(shape({t.shape[0], t.shape[1], t.shape[2], t.shape[3]}, to), {0, 1, 2, 7}) : t;
    const std::vector<Data> got = run(op, {in}, {out});
    if (got.size() != 1) return;
    const std::vector<float> expected = want(l, d, t.shape[1], t.shape[2], top, left, with_bias);
    const std::vector<float> values = dense(got[0]);
    ASSERT_EQ(values.size(), expected.size());
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] != expected[i] && ++wrong < 5)
        ADD_FAILURE() << kernel << ": element " << i << " is " << values[i] << ", must be " << expected[i];
    EXPECT_EQ(wrong, 0u) << kernel;
  }
};

constexpr skua_padding same = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};

TEST_F(DepthwiseInt8, GivesTheBitsOfTheFormula) {
  std::vector<Layer> layers = {
      {1, 5, 9, 64, 3, 3, 1, 1, 1, 1, same},
      {2, 6, 7, 70, 3, 3, 2, 2, 1, 1, same, true},
      {1, 7, 11, 32, 5, 5, 1, 1, 1, 1, same, false, true},
      {1, 9, 9, 16, 7, 7, 1, 1, 1, 1, same},
      {1, 9, 10, 33, 5, 5, 2, 2, 1, 1, same, true},
      {1, 4, 6, 3, 3, 3, 1, 1, 1, 1, same, true},
      {1, 1, 9, 20, 1, 7, 1, 1, 1, 1, same},
      {1, 9, 12, 40, 3, 3, 1, 1, 2, 3, same, false, true},
      {1, 8, 5, 17, 4, 2, 3, 1, 1, 1, {SKUA_PADDING_EXPLICIT, 2, 1, 0, 3}},
      {1, 3, 2, 65, 3, 3, 1, 1, 1, 1, {SKUA_PADDING_EXPLICIT, 4, 4, 4, 4}},
      {1, 3, 3, 5, 1, 1, 2, 2, 1, 1, {}},
      {1, 4, 5, 23, 3, 3, 1, 1, 1, 1, same, true, false, 3},
      {1, 4, 5, 32, 3, 3, 2, 2, 1, 1, same, false, false, 2},
      {1, 3, 4, 2, 3, 3, 1, 1, 1, 1, same, false, false, 5},
      {1, 3, 4, 3, 3, 3, 1, 1, 1, 1, same, false, false, 21},
      {1, 3, 3, 3, 3, 3, 1, 1, 1, 1, same, false, false, 150},
      // Several outputs in a vector.
      {1, 5, 37, 16, 3, 3, 1, 1, 1, 1, same},
      {1, 6, 41, 24, 3, 3, 2, 2, 1, 1, same, true},
      {1, 4, 21, 40, 5, 5, 1, 1, 1, 1, same},
      {1, 5, 35, 96, 3, 3, 2, 2, 1, 1, same},
      {1, 3, 47, 48, 3, 3, 1, 3, 1, 2, {SKUA_PADDING_EXPLICIT, 1, 5, 1, 0}},
      {1, 4, 20, 100, 3, 3, 1, 1, 1, 1, same, true},
      {1, 3, 9, 16, 3, 2, 1, 40, 1, 1, same},
      {1, 3, 2, 16, 3, 3, 2, 2, 1, 1, same, false, false, 2},
      // Strides of 2: windows of few and many pairs, half of a pair outside on any side, bands, pieces, tiles of every
      // kind.
      {1, 21, 15, 64, 3, 3, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1}},
      {2, 9, 17, 80, 5, 5, 2, 2, 1, 1, same, true},
      {1, 6, 19, 128, 5, 5, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 2, 3, 1, 2}},
      {1, 5, 58, 16, 3, 3, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 1, 0, 0, 1}, true},
      {1, 7, 30, 96, 2, 4, 2, 2, 1, 1, {}},
      {1, 9, 17, 64, 8, 7, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 7, 5, 3, 6}},
      {1, 1, 1, 64, 3, 3, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 5, 18, 5, 3}},
      {1, 5, 70, 64, 3, 3, 2, 2, 1, 1, same, false, true},
      // Rings of pairs that are passed several times, of blocks of 64, 32 and 16.
      {1, 31, 30, 112, 3, 3, 2, 2, 1, 1, same},
      {1, 31, 60, 16, 3, 3, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1}},
      {1, 37, 29, 80, 5, 5, 2, 2, 1, 1, same, true},
      {1, 40, 31, 64, 7, 8, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 3, 3, 3, 2}},
      // By columns: one output, windows that lie outside altogether, dilations as wide as the image, rows further apart
      // than columns, blocks of 32 and 16.
      {1, 3, 3, 64, 3, 3, 1, 1, 1, 1, {}},
      {1, 2, 2, 80, 3, 3, 1, 1, 1, 1, {SKUA_PADDING_EXPLICIT, 6, 5, 7, 9}},
      {2, 6, 23, 96, 3, 3, 1, 1, 1, 5, same, true},
      {1, 5, 7, 72, 3, 3, 2, 1, 3, 9, same},
      {1, 5, 1, 64, 3, 3, 1, 1, 2, 1, same, true, true},
      {1, 9, 8, 48, 3, 3, 3, 2, 2, 1, {SKUA_PADDING_EXPLICIT, 2, 1, 2, 2}},
      {1, 6, 9, 72, 5, 5, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 7, 9, 8, 9}, true},
      {1, 7, 6, 32, 5, 5, 1, 2, 2, 1, same},
      {1, 8, 11, 48, 3, 3, 3, 3, 1, 1, {SKUA_PADDING_EXPLICIT, 2, 2, 4, 1}, true},
      {1, 5, 17, 96, 3, 3, 1, 3, 2, 1, {}},
      // Windows three columns wide: dilated, of one row and of many, outside on both sides.
      {1, 11, 13, 22, 3, 3, 3, 2, 2, 2, same},
      {2, 5, 14, 40, 1, 3, 2, 2, 1, 2, same, true},
      {1, 7, 9, 48, 4, 3, 2, 3, 1, 2, {SKUA_PADDING_EXPLICIT, 3, 5, 2, 4}, true},
      {1, 2, 3, 33, 9, 3, 2, 2, 1, 3, {SKUA_PADDING_EXPLICIT, 7, 6, 5, 7}},
      {1, 3, 5, 18, 86, 3, 2, 2, 1, 1, {SKUA_PADDING_EXPLICIT, 50, 1, 50, 1}},
  };
  if (!small()) layers.push_back({1, 3, 150, 130, 3, 3, 1, 1, 1, 1, same});
  uint32_t seed = 1;
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const Layer& l : layers)
      for (const skua_dtype from : int8_types()) {
        ++seed;
        check(l, isa, from, seed % 3 ? from : from == SKUA_DTYPE_S8 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8, seed);
      }
}

TEST_F(DepthwiseInt8, LargeSums) {
  for (const uint32_t stride : {1u, 2u})
    for (const size_t channels : {16, 32, 64}) {
      Layer l = {1, 5, 18, channels, 3, 3, stride, stride, 1, 1, same};
      for (const char* isa : isas(SKUA_DTYPE_S8))
        for (const skua_dtype type : int8_types())
          for (l.large = SKUA_ROUNDING_FLOAT; l.large <= SKUA_ROUNDING_SINGLE; ++l.large) check(l, isa, type, type, 3);
    }
}

// Which of two forms of VNNI a core takes: one kernel has both. The matrix runs this program as a Zen 4 and as a
// Sapphire Rapids.
TEST_F(DepthwiseInt8, StridesOfTwoByTheCore) {
  const char* core = getenv("SKUA_CORE");
  if (!core || !*core || !usable("avx512vnni") || int8_types().empty()) GTEST_SKIP() << "no core is named, or no VNNI";
  const Layer l = {1, 9, 9, 64, 3, 3, 2, 2, 1, 1, same};
  Rng rng(7);
  const skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
  Context context("avx512vnni");
  Op op;
  SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &in.t, 1, nullptr, 0, &plan));
  char text[4000] = "";
  skua_plan_explain(plan, text, sizeof text);
  skua_plan_destroy(plan);
  EXPECT_NE(strstr(text, std::string(core).substr(0, 3) == "zen" ? "by columns" : "pairs of rows and columns"), nullptr)
      << text;
}

// Sums of two products that 16 bits hold, and of two that they do not: -128 by -128 twice.
TEST_F(DepthwiseInt8, EndsOfTheTypes) {
  Layer layers[] = {{1, 6, 9, 48, 3, 3, 1, 1, 1, 1, same},       {1, 7, 10, 35, 3, 3, 2, 2, 1, 1, same, true},
                    {1, 7, 9, 32, 5, 5, 1, 1, 1, 1, same},       {1, 8, 11, 16, 5, 5, 2, 2, 1, 1, same},
                    {1, 7, 8, 40, 3, 3, 1, 1, 2, 2, same},       {1, 5, 9, 19, 4, 3, 1, 2, 1, 1, same},
                    {1, 6, 7, 16, 1, 2, 1, 1, 1, 1, same, true}, {1, 9, 8, 64, 7, 7, 1, 1, 1, 1, same},
                    {1, 5, 8, 64, 3, 3, 1, 1, 1, 1, {}},         {1, 7, 7, 16, 3, 3, 3, 3, 1, 1, same}};
  uint32_t seed = 200;
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (Layer& l : layers)
      for (const int least : {-128, -127})
        for (const skua_dtype type : int8_types())
          for (const bool far : {false, true}) {
            l.least = least, l.far = far;
            check(l, isa, type, type, ++seed);
          }
}

// Windows of 3x3 whose products fit 16 bits two by two have programs on in-order cores, of two outputs a turn: few
// turns and many, an output over, every end, products far outside of what is rounded. The last row of windows begins
// with the last row of the input, behind which nothing may be read.
TEST_F(DepthwiseInt8, ThreeByThree) {
  uint32_t seed = 400;
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const uint32_t stride : {1u, 2u})
      for (const size_t width : {2, 3, 4, 5, 12})
        for (const size_t channels : {16, 40})
          for (const int kind : {0, 1, 2}) {
            Layer l = {
                1, 5, width * stride, channels, 3, 3, stride, stride, 1, 1, {SKUA_PADDING_EXPLICIT, 0, 1, stride, 1}};
            l.tame = true, l.extreme = kind == 1, l.far = kind == 2;
            for (const skua_dtype from : int8_types())
              for (const skua_dtype to : int8_types()) check(l, isa, from, to, ++seed);
          }
}

// Two rows of outputs at a time, in phases.
TEST_F(DepthwiseInt8, Dilated) {
  const Layer layers[] = {
      {2, 13, 15, 40, 3, 3, 1, 1, 2, 2, same}, {1, 16, 11, 100, 3, 3, 1, 1, 3, 1, same},
      {1, 17, 14, 7, 5, 5, 1, 1, 4, 2, same},  {1, 9, 20, 64, 3, 3, 1, 1, 2, 3, {SKUA_PADDING_EXPLICIT, 0, 3, 1, 0}},
      {1, 3, 70, 64, 3, 3, 1, 1, 1, 30, same}, {1, 4, 150, 32, 3, 3, 2, 1, 1, 20, same, true},
      {1, 3, 4, 24, 3, 3, 1, 1, 4, 4, same},   {1, 12, 13, 16, 3, 3, 1, 1, 2, 2, same, false, false, 3},
      // few of the columns under a row are taps'
      {2, 3, 5, 40, 3, 3, 1, 1, 2, 300, same}, {1, 4, 6, 100, 1, 5, 1, 1, 1, 90, {SKUA_PADDING_EXPLICIT, 0, 0, 5, 360}},
      {1, 3, 9, 7, 2, 3, 2, 2, 1, 200, same},  {1, 5, 7, 12, 3, 3, 1, 1, 70, 80, same, false, false, 2}};
  uint32_t seed = 500;
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const Layer& l : layers)
      for (const skua_dtype type : int8_types()) check(l, isa, type, type, ++seed);
}

// Fewer channels than the shortest vectors, copied to pixels of as many: also by those that a filter leaves.
TEST_F(DepthwiseInt8, FewChannelsAndLongVectors) {
  const Layer layers[] = {{1, 8, 8, 8, 3, 3, 1, 1, 1, 1, same},
                          {2, 5, 9, 3, 3, 3, 2, 2, 1, 1, same, true},
                          {1, 6, 7, 15, 5, 5, 1, 1, 1, 1, same},
                          {1, 4, 5, 2, 3, 3, 1, 1, 1, 1, same, false, false, 3}};
  uint32_t seed = 100;
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (const char* kernels : {"*x64*", "*x32_*"})
      for (const Layer& l : layers)
        for (const skua_dtype type : int8_types()) check(l, isa, type, type, ++seed, kernels);
}

TEST_F(DepthwiseInt8, PackedWeightsComeBack) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  const Layer l = {1, 5, 9, 64, 3, 3, 1, 1, 1, 1, same};
  Rng rng(7);
  const skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
  Context context;
  Op op, again;
  SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
  const size_t size = skua_op_packed_size(op);
  Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
  SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
  SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &again));
  const std::vector<Data> a = run(op, {in}), b = run(again, {in});
  ASSERT_EQ(a.size(), 1u);
  ASSERT_EQ(b.size(), 1u);
  expect_same_bits(a[0], b[0]);
}

// Columns that no tap sees take no memory, however many lie between.
TEST_F(DepthwiseInt8, FarTapsTakeLittleWorkspace) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (size_t channels : {8, 100}) {
      const Layer l = {1, 3, 4, channels, 3, 3, 1, 1, 1, 100000, same};
      Rng rng(6);
      const skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
      Context context(isa);
      Op op;
      SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &in.t, 1, nullptr, 0, &plan));
      EXPECT_LE(skua_plan_workspace(plan, 1), 16384u) << isa << " " << channels;
      skua_plan_destroy(plan);
      check(l, isa, SKUA_DTYPE_S8, SKUA_DTYPE_S8, 7);
    }
}

// A workspace that does not fit is refused, not taken for none.
TEST_F(DepthwiseInt8, StridesBeyondTheAddressSpace) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (size_t channels : {8, 32}) {
      // two windows, far apart
      const Layer l = {1, 1, 2, channels, 1, 3, 1, 0x10000000, 1, 1, {SKUA_PADDING_EXPLICIT, 0, 0, 0, 0x10000001}};
      Rng rng(5);
      const skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
      Context context(isa);
      Op op;
      SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
      skua_plan* plan = nullptr;
      if (skua_op_plan(op, &in.t, 1, nullptr, 0, &plan) == SKUA_STATUS_OK) {
        EXPECT_GT(skua_plan_workspace(plan, 1), 0u) << isa;
      } else {
        EXPECT_NE(std::string(skua_error_text()).find("address space"), std::string::npos) << skua_error_text();
      }
      skua_plan_destroy(plan);
    }
}

// Tap by tap whole blocks of 16 channels are read: a blob of fewer would make kernels read outside of their memory.
TEST_F(DepthwiseInt8, TapByTapOfFewChannelsIsRefused) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  const Layer l = {1, 9, 9, 16, 3, 3, 3, 3, 1, 1, same};
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    Rng rng(7);
    skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
    d.requantization = {};
    Context context(isa);
    Op op;
    SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
    const size_t size = skua_op_packed_size(op);
    Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
    SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
    auto* bytes = static_cast<unsigned char*>(blob.memory());
    const uint32_t window[] = {3, 3, 3, 3, 1, 1, 16, 16, 16}, fewer[] = {3, 3, 3, 3, 1, 1, 5, 5, 5};
    unsigned char* at = std::search(bytes, bytes + size, reinterpret_cast<const unsigned char*>(window),
                                    reinterpret_cast<const unsigned char*>(window + 9));
    ASSERT_NE(at, bytes + size);
    std::memcpy(at, fewer, sizeof fewer);
    reseal(bytes, size);
    Op forged;
    const skua_status status = skua_op_create_packed(context, bytes, size, &forged);
    if (std::string(isa).find("neon") == 0) EXPECT_EQ(status, SKUA_STATUS_INCOMPATIBLE_BLOB) << isa;
    else EXPECT_TRUE(status == SKUA_STATUS_OK || status == SKUA_STATUS_INCOMPATIBLE_BLOB) << isa;
  }
}

// Weights in pairs serve strides of 2 and no other window, those of columns no stride above and no dilation beside it:
// a blob that says so and is otherwise right would make kernels read outside of their memory.
TEST_F(DepthwiseInt8, PairsOfOtherWindowsAreRefused) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  for (const uint32_t width : {3u, 5u})
    for (const char* isa : isas(SKUA_DTYPE_S8)) {
      const Layer l = {1, 9, 9, 64, width, width, 2, 2, 1, 1, same};
      Rng rng(7);
      const skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
      Context context(isa);
      Op op;
      SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
      const size_t size = skua_op_packed_size(op);
      Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
      SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
      auto* bytes = static_cast<unsigned char*>(blob.memory());
      const auto opens = [&](uint32_t kernel, uint32_t stride_h, uint32_t stride_w, uint32_t dilation) {
        const uint32_t window[] = {width, width, 2, 2, 1, 1, 64, 64, 64},
                       other[] = {kernel, kernel, stride_h, stride_w, dilation, dilation, 64, 64, 64};
        unsigned char* at = std::search(bytes, bytes + size, reinterpret_cast<const unsigned char*>(window),
                                        reinterpret_cast<const unsigned char*>(window + 9));
        if (at == bytes + size) {
          ADD_FAILURE() << "the blob does not hold its window";
          return false;
        }
        std::memcpy(at, other, sizeof other);
        reseal(bytes, size);
        Op forged;
        const skua_status status = skua_op_create_packed(context, bytes, size, &forged);
        std::memcpy(at, window, sizeof window);
        EXPECT_TRUE(status == SKUA_STATUS_OK || status == SKUA_STATUS_INCOMPATIBLE_BLOB) << isa;
        return status == SKUA_STATUS_OK;
      };
      EXPECT_TRUE(opens(width, 2, 2, 1)) << isa;
      const std::string name = isa;
      if (width == 3 && (name == "sse2" || name == "sse41" || name == "avx2")) {
        EXPECT_FALSE(opens(3, 3, 4, 1)) << isa;
        EXPECT_FALSE(opens(3, 3, 3, 2)) << isa;
        EXPECT_EQ(opens(3, 1, 1, 1), name == "avx2") << isa;
        EXPECT_FALSE(opens(3, 2, 2, 2)) << isa;
        EXPECT_FALSE(opens(4, 2, 2, 1)) << isa;
      }
      if (name != "avx512vnni" && name != "avxvnni") continue;
      EXPECT_FALSE(opens(width, 1, 1, 1)) << isa;
      EXPECT_TRUE(!opens(width, 1, 2, 1) || width == 3) << isa;  // by columns any rows would do
      EXPECT_FALSE(opens(width, 2, 1, 1)) << isa;
      EXPECT_FALSE(opens(width, 2, 2, 2)) << isa;
      EXPECT_FALSE(opens(width + 1, 1, 1, 1)) << isa;  // as many pairs
    }
}

// The type of the results is a number of four bytes in a blob, of which a type has one. Of depthwise layers and of
// others.
TEST_F(DepthwiseInt8, ResultsOfNoTypeAreRefused) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  const Layer l = {1, 9, 9, 16, 3, 3, 1, 1, 1, 1, same};
  Rng rng(7);
  skua_conv2d_desc d = desc(l, SKUA_DTYPE_S8, SKUA_DTYPE_S8, rng);
  d.epilogue.activation = {};
  d.requantization = {};
  d.output_q.zero_point = 1;
  weights.resize(9 * 16 * 16);
  for (const uint32_t groups : {16u, 1u}) {
    d.groups = groups;
    std::vector<unsigned char> blobs[2];
    Context context("scalar");
    for (const skua_dtype to : {SKUA_DTYPE_S8, SKUA_DTYPE_U8}) {
      d.output_type = to;
      Op op;
      SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &op));
      auto& blob = blobs[to == SKUA_DTYPE_U8];
      blob.resize(skua_op_packed_size(op));
      Guarded memory = Guarded::bytes(blob.size(), SKUA_PACKED_ALIGNMENT);
      SKUA_EXPECT_OK(skua_op_packed_write(op, memory.memory(), blob.size()));
      std::memcpy(blob.data(), memory.memory(), blob.size());
    }
    ASSERT_EQ(blobs[0].size(), blobs[1].size());
    size_t places = 0;
    Guarded memory = Guarded::bytes(blobs[0].size(), SKUA_PACKED_ALIGNMENT);
    for (size_t at = 0; at + 4 <= blobs[0].size(); at += 4) {
      if (blobs[0][at] != 3 || blobs[1][at] != 4 || std::memcmp(&blobs[0][at + 1], "\0\0\0", 3) ||
          std::memcmp(&blobs[1][at + 1], "\0\0\0", 3))
        continue;
      ++places;
      for (const uint32_t type : {0x103u, 0x02000003u, 0xffffff04u, 0x01000000u, 7u}) {
        auto* bytes = static_cast<unsigned char*>(memory.memory());
        std::memcpy(bytes, blobs[0].data(), blobs[0].size());
        std::memcpy(bytes + at, &type, 4);
        reseal(bytes, blobs[0].size());
        Op forged;
        EXPECT_EQ(skua_op_create_packed(context, bytes, blobs[0].size(), &forged), SKUA_STATUS_INCOMPATIBLE_BLOB)
            << groups << " groups, " << type;
      }
    }
    EXPECT_EQ(places, 1u) << groups;
  }
}

}  // namespace
