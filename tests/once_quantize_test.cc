// Checks of quantisations, scales of sums and bounds of activations: what every quantised operator does when it is
// created.
#include <cfloat>
#include <cmath>
#include <string>

#include "core/quantize.h"
#include "tests/support/support.h"

using namespace skua;

namespace {

skua_quantization one(float scale, int32_t zero_point = 0) {
  skua_quantization q = {};
  q.scale = scale, q.zero_point = zero_point;
  return q;
}
void expect(skua_status status, skua_status wanted, const std::string& text) {
  EXPECT_EQ(status, wanted) << skua_error_text();
  if (wanted == SKUA_STATUS_OK) return;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text();
}
constexpr skua_status ok = SKUA_STATUS_OK, invalid = SKUA_STATUS_INVALID_ARGUMENT,
                      unsupported = SKUA_STATUS_UNSUPPORTED;

TEST(Quantize, OfATensor) {
  const auto check = [](const skua_quantization& q, skua_dtype type) {
    return need_quantization("conv2d", "input_q", q, type);
  };
  for (int32_t zero : {-128, 0, 127}) expect(check(one(0.1f, zero), SKUA_DTYPE_S8), ok, "");
  for (int32_t zero : {0, 255}) expect(check(one(FLT_MIN, zero), SKUA_DTYPE_U8), ok, "");
  for (int32_t zero : {-129, 128})
    expect(check(one(1, zero), SKUA_DTYPE_S8), invalid,
           "conv2d: input_q.zero_point is " + std::to_string(zero) + ", outside of s8");
  for (int32_t zero : {-1, 256})
    expect(check(one(1, zero), SKUA_DTYPE_U8), invalid,
           "input_q.zero_point is " + std::to_string(zero) + ", outside of u8");
  for (float scale : {0.0f, -1.0f, INFINITY, NAN, FLT_MIN / 2})
    expect(check(one(scale), SKUA_DTYPE_S8), invalid, "input_q.scale is");
  float scales[2] = {1, 1};
  skua_quantization q = one(1);
  q.scales = scales;
  expect(check(q, SKUA_DTYPE_S8), unsupported, "scales per channel");
  expect(need_quantization_of("x", "y_q", one(1), SKUA_DTYPE_F32), invalid,
         "y_q is set, but the tensor is not quantised");
  expect(need_quantization_of("x", "y_q", one(0), SKUA_DTYPE_F16), ok, "");
}

TEST(Quantize, OfWeights) {
  float scales[6] = {1, 2, 3, 4, 5, 6};
  int32_t zeros[6] = {};
  skua_quantization q = {};
  q.scales = scales, q.zero_points = zeros, q.axis = 3;
  const auto check = [&](skua_dtype type = SKUA_DTYPE_S8, size_t reduction = 0) {
    return need_weight_quantization("conv2d", "weight_q", q, type, reduction ? 3 : 6, 3, reduction);
  };
  expect(check(), ok, "");
  zeros[4] = 3;
  expect(check(), unsupported, "weight_q.zero_points[4] is 3; weights of s8 are symmetric");
  expect(check(SKUA_DTYPE_U8), ok, "");
  zeros[4] = 256;
  expect(check(SKUA_DTYPE_U8), invalid, "weight_q.zero_points[4] is 256, outside of u8");
  zeros[4] = 0;
  scales[5] = INFINITY;
  expect(check(), invalid, "weight_q.scales[5] is inf");
  scales[5] = 6;
  q.axis = 0;
  expect(check(), invalid, "weight_q.axis is 0, the channels are axis 3");
  q.axis = 3, q.block_size = 32;
  expect(check(), unsupported, "weight_q.block_size is 32");
  expect(check(SKUA_DTYPE_S8, 33), ok, "");
  q.block_size = 48;
  expect(check(SKUA_DTYPE_S8, 33), invalid, "weight_q.block_size is 48, must be");
  q.block_size = 0, q.scale_type = SKUA_DTYPE_F16;
  expect(check(), unsupported, "weight_q.scale_type is f16");
  q = one(0.5f, 1);
  expect(check(), unsupported, "weight_q.zero_point is 1; weights of s8 are symmetric");
  expect(need_weight_quantization("gemm", "b_q", q, SKUA_DTYPE_S8, 6, 3, 0, true), ok, "");
  expect(check(SKUA_DTYPE_S4), unsupported, "weight_q.zero_point is 1; weights of s4 with one scale have none");
  q.zero_points = zeros;
  expect(check(), invalid, "weight_q.zero_points is set, but scales is NULL");
}

TEST(Quantize, ScaleOfASumIsRoundedOnce) {
  const float in = 0.1f, weight = 0.3f, out = 0.7f;
  skua_quantization w = one(9);
  EXPECT_EQ(sum_scale(one(in), one(weight), 5, Element::u8, one(out)),
            float(double(in) * double(weight) / double(out)));
  EXPECT_EQ(sum_scale(one(in), one(weight), 5, Element::f16, one(out)), float(double(in) * double(weight)));
  const float scales[2] = {1, weight};
  w.scales = scales;
  EXPECT_EQ(sum_scale(one(in), w, 1, Element::s8, one(out)), float(double(in) * double(weight) / double(out)));
  // of infinity a sum of 0 would be NaN
  EXPECT_EQ(sum_scale(one(1e30f), one(1e30f), 0, Element::s8, one(1e-30f)), FLT_MAX);
}

TEST(Quantize, ActivationsBecomeBounds) {
  const auto bounds = [](skua_activation act, Element type, skua_quantization q, float low, float high) {
    float l, h;
    expect(quantized_bounds("gemm", act, type, q, l, h), ok, "");
    EXPECT_EQ(l, low);
    EXPECT_EQ(h, high);
  };
  const skua_activation none = {SKUA_ACTIVATION_NONE, 0, 0}, relu = {SKUA_ACTIVATION_RELU, 0, 0},
                        relu6 = {SKUA_ACTIVATION_RELU6, 0, 0};
  bounds(none, Element::s8, one(0.1f, -5), -123, 132);
  bounds(none, Element::u8, one(0.1f, 255), -255, 0);
  bounds(relu, Element::s8, one(0.1f, -5), 0, 132);
  bounds(relu, Element::s8, one(0.1f, -128), 0, 255);
  bounds(relu6, Element::u8, one(0.25f, 10), 0, 24);
  bounds(relu6, Element::u8, one(1e-6f, 10), 0, 245);
  bounds({SKUA_ACTIVATION_CLAMP, -1, 100}, Element::s8, one(0.4f, 0), -2, 127);     // -2.5 to even
  bounds({SKUA_ACTIVATION_CLAMP, 50, 100}, Element::s8, one(0.1f, 0), 127, 127);    // all above the type
  bounds({SKUA_ACTIVATION_CLAMP, -INFINITY, 1}, Element::s8, one(1, 3), -131, 1);
  bounds(none, Element::f32, one(0), -INFINITY, INFINITY);
  bounds(relu6, Element::bf16, one(0), 0, 6);
  Requantize to;
  expect(quantized_epilogue("gemm", {{SKUA_ACTIVATION_RELU, 0, 0}, SKUA_RESIDUAL_NONE}, Element::u8, one(1, 7), to), ok,
         "");
  EXPECT_EQ(to.zero_point, 7);
  EXPECT_EQ(to.high, 248);
  expect(quantized_epilogue("gemm", {{SKUA_ACTIVATION_SILU, 0, 0}, SKUA_RESIDUAL_NONE}, Element::u8, one(1), to),
         unsupported, "activation.kind is SILU; quantised operators fuse NONE");
  expect(quantized_epilogue("gemm", {{SKUA_ACTIVATION_RELU, 0, 0}, SKUA_RESIDUAL_AFTER_ACTIVATION}, Element::u8, one(1),
                            to),
         unsupported, "epilogue.residual is set");
}

}  // namespace
