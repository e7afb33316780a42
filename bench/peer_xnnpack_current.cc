// XNNPACK of today (XNNPACK_ROOT): create packs the weights, reshape takes sizes and says how much workspace, setup
// takes pointers. Operators on one and two tensors are one function each, with the kind as an argument, and without a
// clamp of their own.
#include <math.h>
#include <skua/skua.h>
#include <algorithm>
#include <string>
#include "peer_xnnpack.h"

// Rows quantised to u8, which products by vpdpbusd take: on x86 its graphs rewrite rows of s8 to these, but xnnpack.h
// does not declare them. NULL: a library that has none.
extern "C" {
#define BENCH_WEAK __attribute__((weak))
BENCH_WEAK xnn_status xnn_create_convert_nc_f32_qdu8(uint32_t, xnn_operator_t*);
BENCH_WEAK xnn_status xnn_reshape_convert_nc_f32_qdu8(xnn_operator_t, size_t, size_t, size_t, size_t, pthreadpool_t);
BENCH_WEAK xnn_status xnn_setup_convert_nc_f32_qdu8(xnn_operator_t, const float*, uint8_t*, float*,
                                                    xnn_quantization_params*);
BENCH_WEAK xnn_status xnn_create_fully_connected_nc_qdu8_f32_qc8w(size_t, size_t, size_t, size_t, const float*,
                                                                  const int8_t*, const float*, float, float, uint32_t,
                                                                  xnn_weights_cache_t, xnn_operator_t*);
BENCH_WEAK xnn_status xnn_create_fully_connected_nc_qdu8_f32_qc4w(size_t, size_t, size_t, size_t, uint8_t, const float*,
                                                                  const void*, const float*, float, float, uint32_t,
                                                                  xnn_weights_cache_t, xnn_operator_t*);
BENCH_WEAK xnn_status xnn_create_fully_connected_nc_qdu8_f32_qb4w(size_t, size_t, size_t, size_t, size_t, uint8_t,
                                                                  const uint16_t*, const void*, const float*, float,
                                                                  float, uint32_t, xnn_weights_cache_t,
                                                                  xnn_operator_t*);
#define BENCH_QDU8(type, input)                                                                                   \
  BENCH_WEAK xnn_status xnn_reshape_fully_connected_nc_qdu8_f32_##type(xnn_operator_t, size_t, size_t*,           \
                                                                       pthreadpool_t);                            \
  BENCH_WEAK xnn_status xnn_setup_fully_connected_nc_qdu8_f32_##type(xnn_operator_t, const input*, float*, void*, \
                                                                     const xnn_quantization_params*);
BENCH_QDU8(qc8w, int8_t)
BENCH_QDU8(qc4w, uint8_t)
BENCH_QDU8(qb4w, int8_t)
#undef BENCH_QDU8
#undef BENCH_WEAK
}

namespace bench {
namespace {

xnn_datatype datatype(skua_dtype type) {
  return type == SKUA_DTYPE_F16    ? xnn_datatype_fp16
         : type == SKUA_DTYPE_BF16 ? xnn_datatype_bf16
         : type == SKUA_DTYPE_S8   ? xnn_datatype_qint8
                                   : xnn_datatype_fp32;
}
uint32_t weights_are_floats(skua_dtype type) { return type == SKUA_DTYPE_F16 ? XNN_FLAG_FP32_STATIC_WEIGHTS : 0; }

// Maps of s8: what elementwise operators are told, and bounds of products and pools, steps from the zero point.
const xnn_quantization_params quantization[2] = {{byte_zero, byte_scale}, {byte_zero, byte_scale}};
const xnn_quantization_params before_curve[2] = {{curve_quantization.zero_point, curve_quantization.scale},
                                                 {curve_quantization.zero_point, curve_quantization.scale}};
const xnn_quantization_params* quantized(skua_dtype type, bool curve = false) {
  return type != SKUA_DTYPE_S8 ? nullptr : curve ? before_curve : quantization;
}
int8_t step(float bound) { return int8_t(std::clamp(nearbyintf(bound / byte_scale) + byte_zero, -128.0f, 127.0f)); }
const int8_t* bytes(View v) { return reinterpret_cast<const int8_t*>(v.data); }
int8_t* bytes_out(View v) { return reinterpret_cast<int8_t*>(v.data); }

// In bytes; nothing for an operator that needs none.
float* workspace(XnnOps& o, size_t bytes) {
  o.workspaces.emplace_back(bytes / sizeof(float) + 1);
  return o.workspaces.back().data();
}

bool clamp(XnnOps& o, size_t rows, size_t channels, View x, View y, float low, float high) {
  xnn_operator_t op = nullptr;
  xnn_unary_params params;
  params.clamp = {low, high};
  return o.keep(xnn_create_unary_elementwise_nc(xnn_unary_clamp, datatype(o.type), datatype(o.type), &params, nullptr,
                                                quantized(o.type), quantized(o.type), 0, &op),
                op) &&
         o.good(xnn_reshape_unary_elementwise_nc(op, rows, channels, x.stride, y.stride, o.pool)) &&
         o.good(xnn_setup_unary_elementwise_nc(op, x.data, y.data));
}

// Whether its kernels for rows of u8 are above those for s8: where the core has VNNI and not AMX.
bool rows_are_unsigned() {
  if (!xnn_create_convert_nc_f32_qdu8 || !xnn_create_fully_connected_nc_qdu8_f32_qb4w) return false;
  bool vnni = false, amx = false;
  skua_isa_info info;
  for (size_t i = 0; i < skua_isa_count(); ++i)
    if (skua_isa_at(i, &info) == SKUA_STATUS_OK && info.detected) {
      const std::string name = info.name;
      vnni |= name == "avx512vnni" || name == "avxvnni";
      amx |= name == "amx_int8";
    }
  return vnni && !amx;
}

}  // namespace

const char* const xnnpack_version = "current";

bool XnnOps::has(Op op, skua_dtype type) {
  if (type == SKUA_DTYPE_S8) return op != Op::softmax && op != Op::average_pool;
  return type != SKUA_DTYPE_BF16 || op == Op::gemm || op == Op::unary || op == Op::binary || op == Op::global_pool ||
         op == Op::resize;
}

// Weights of bytes or nibbles below maps of f32: nibbles have a zero point of 8 here.
static bool quantized_weights(XnnOps& o, const Layer& l, const float* weights, const float* bias, float low, float high,
                              View x, View y) {
  if (o.type != SKUA_DTYPE_F32 || l.zero_points || (l.block && !l.quantize_a)) return false;
  const Constants c(l, weights, bias);
  const bool s4 = l.quantized == SKUA_DTYPE_S4;
  std::vector<uint8_t> flipped;
  if (s4)
    flipped.assign(reinterpret_cast<const uint8_t*>(c.bytes()),
                   reinterpret_cast<const uint8_t*>(c.bytes()) + l.n * ((l.k + 1) / 2));
  for (uint8_t& b : flipped) b ^= 0x88;
  xnn_operator_t op = nullptr;
  const float* const scales = c.scales.data();
  if (!l.quantize_a)
    return s4 ? o.keep(xnn_create_fully_connected_nc_f32_qc4w(l.k, l.n, l.k, l.n, 8, scales, flipped.data(), bias, low,
                                                              high, 0, nullptr, &op),
                       op) &&
                    o.good(xnn_reshape_fully_connected_nc_f32_qc4w(op, l.m, o.pool)) &&
                    o.good(xnn_setup_fully_connected_nc_f32_qc4w(op, x.data, y.data))
              : o.keep(xnn_create_fully_connected_nc_f32_qc8w(l.k, l.n, l.k, l.n, scales, c.bytes(), bias, low, high, 0,
                                                              nullptr, &op),
                       op) &&
                    o.good(xnn_reshape_fully_connected_nc_f32_qc8w(op, l.m, o.pool)) &&
                    o.good(xnn_setup_fully_connected_nc_f32_qc8w(op, x.data, y.data));
  // Rows become bytes in an operator of its own.
  auto* const rows = reinterpret_cast<int8_t*>(workspace(o, l.m * l.k + 64));
  auto* const params =
      reinterpret_cast<xnn_quantization_params*>(workspace(o, (l.m + 16) * sizeof(xnn_quantization_params)));
  size_t room = 0;
#define BENCH_CONVERT(suffix, type)                                               \
  (o.keep(xnn_create_convert_nc_f32_##suffix(0, &op), op) &&                      \
   o.good(xnn_reshape_convert_nc_f32_##suffix(op, l.m, l.k, l.k, l.k, o.pool)) && \
   o.good(xnn_setup_convert_nc_f32_##suffix(op, x.data, reinterpret_cast<type*>(rows), nullptr, params)))
#define BENCH_ROWS(suffix, type, ...)                                                                                \
  (op = nullptr,                                                                                                     \
   o.keep(xnn_create_fully_connected_nc_##suffix(l.k, l.n, l.k, l.n, __VA_ARGS__, bias, low, high, 0, nullptr, &op), \
          op) &&                                                                                                     \
       o.good(xnn_reshape_fully_connected_nc_##suffix(op, l.m, &room, o.pool)) &&                                    \
       o.good(xnn_setup_fully_connected_nc_##suffix(op, reinterpret_cast<const type*>(rows), y.data,                 \
                                                    workspace(o, room), params)))
  if (rows_are_unsigned()) {
    if (!BENCH_CONVERT(qdu8, uint8_t)) return false;
    if (!s4) return BENCH_ROWS(qdu8_f32_qc8w, int8_t, scales, c.bytes());
    if (!l.block) return BENCH_ROWS(qdu8_f32_qc4w, uint8_t, 8, scales, flipped.data());
    return BENCH_ROWS(qdu8_f32_qb4w, int8_t, l.block, 8, c.block_scales.data(), flipped.data());
  }
  if (!BENCH_CONVERT(qd8, int8_t)) return false;
  if (!s4) return BENCH_ROWS(qd8_f32_qc8w, int8_t, scales, c.bytes());
  if (!l.block) return BENCH_ROWS(qd8_f32_qc4w, int8_t, 8, scales, flipped.data());
  return BENCH_ROWS(qd8_f32_qb4w, int8_t, l.block, 8, c.block_scales.data(), flipped.data());
#undef BENCH_CONVERT
#undef BENCH_ROWS
}

bool XnnOps::fully_connected(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                             View y) {
  if (l.quantized_weights()) return quantized_weights(*this, l, weights, bias, low, high, x, y);
  xnn_operator_t op = nullptr;
  if (type == SKUA_DTYPE_S8) {
    const xnn_quantization_params before = *quantized(type, curve);
    const Constants c(l, weights, bias);
    return keep(xnn_create_fully_connected_nc_qs8_qc8w(l.k, l.n, l.k, l.n, byte_zero, byte_scale, c.scales.data(),
                                                       c.bytes(), c.bias_s32(), before.zero_point, before.scale,
                                                       step(low), step(high), XNN_FLAG_TRANSPOSE_WEIGHTS, nullptr, &op),
                op) &&
           good(xnn_reshape_fully_connected_nc_qs8_qc8w(op, l.m, pool)) &&
           good(xnn_setup_fully_connected_nc_qs8_qc8w(op, bytes(x), bytes_out(y)));
  }
  if (type == SKUA_DTYPE_BF16) {  // its product of bf16 gives f32: rounded by an operator of its own
    std::vector<uint16_t> halves(l.weight_count());
    store(weights, halves.size(), type, halves.data());
    workspaces.emplace_back(l.out_count());
    float* const sums = workspaces.back().data();
    return keep(xnn_create_fully_connected_nc_bf16_f32(l.k, l.n, l.k, l.n, halves.data(), bias, low, high,
                                                       XNN_FLAG_TRANSPOSE_WEIGHTS, nullptr, &op),
                op) &&
           good(xnn_reshape_fully_connected_nc_bf16_f32(op, l.m, pool)) &&
           good(xnn_setup_fully_connected_nc_bf16_f32(op, x.data, sums)) &&
           keep(xnn_create_unary_elementwise_nc(xnn_unary_convert, xnn_datatype_fp32, xnn_datatype_bf16, nullptr,
                                                nullptr, nullptr, nullptr, 0, &op),
                op) &&
           good(xnn_reshape_unary_elementwise_nc(op, l.m, l.n, l.n, l.n, pool)) &&
           good(xnn_setup_unary_elementwise_nc(op, sums, y.data));
  }
  return keep(BENCH_XNN(xnn_create_fully_connected_nc, l.k, l.n, l.k, l.n, weights, bias, low, high,
                        XNN_FLAG_TRANSPOSE_WEIGHTS | weights_are_floats(type), nullptr, &op),
              op) &&
         good(BENCH_XNN(xnn_reshape_fully_connected_nc, op, l.m, pool)) &&
         good(BENCH_XNN(xnn_setup_fully_connected_nc, op, x.data, y.data));
}

bool XnnOps::matmul(const Layer& l, View x, View second, View y) {
  if (type != SKUA_DTYPE_F32 && type != SKUA_DTYPE_F16) return false;
  xnn_operator_t op = nullptr;
  size_t room = 0;
  return keep(BENCH_XNN(xnn_create_batch_matrix_multiply_nc, XNN_FLAG_TRANSPOSE_B, &op), op) &&
         good(BENCH_XNN(xnn_reshape_batch_matrix_multiply_nc, op, 0, nullptr, nullptr, l.m, l.k, l.n, &room, pool)) &&
         good(BENCH_XNN(xnn_setup_batch_matrix_multiply_nc, op, workspace(*this, room), x.data, second.data, y.data));
}

bool XnnOps::convolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                         View y) {
  xnn_operator_t op = nullptr;
  size_t room = 0, out_h, out_w;
  if (type == SKUA_DTYPE_S8) {
    const xnn_quantization_params before = *quantized(type, curve);
    const Constants c(l, weights, bias);
    return keep(xnn_create_convolution2d_nhwc_qs8_qc8w(
                    uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom), uint32_t(l.left), uint32_t(l.kh),
                    uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups),
                    l.c / l.groups, l.out_c / l.groups, x.stride, y.stride, byte_zero, byte_scale, c.scales.data(),
                    c.bytes(), c.bias_s32(), before.zero_point, before.scale, step(low), step(high), 0, nullptr, &op),
                op) &&
           good(xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, 1, l.h, l.w, &room, &out_h, &out_w, pool)) &&
           good(xnn_setup_convolution2d_nhwc_qs8_qc8w(op, workspace(*this, room), bytes(x), bytes_out(y)));
  }
  return keep(BENCH_XNN(xnn_create_convolution2d_nhwc, uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                        uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw),
                        uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups,
                        x.stride, y.stride, weights, bias, low, high, weights_are_floats(type), nullptr, &op),
              op) &&
         good(BENCH_XNN(xnn_reshape_convolution2d_nhwc, op, 1, l.h, l.w, &room, &out_h, &out_w, pool)) &&
         good(BENCH_XNN(xnn_setup_convolution2d_nhwc, op, workspace(*this, room), x.data, y.data));
}

bool XnnOps::deconvolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                           View y) {
  xnn_operator_t op = nullptr;
  size_t out_h, out_w;
  if (type == SKUA_DTYPE_S8) {
    const xnn_quantization_params before = *quantized(type, curve);
    const Constants c(l, weights, bias);
    return keep(xnn_create_deconvolution2d_nhwc_qs8_qc8w(
                    uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom), uint32_t(l.left), uint32_t(l.kh),
                    uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups),
                    l.c / l.groups, l.out_c / l.groups, x.stride, y.stride, byte_zero, byte_scale, c.scales.data(),
                    c.bytes(), c.bias_s32(), before.zero_point, before.scale, step(low), step(high), 0, nullptr, &op),
                op) &&
           good(xnn_reshape_deconvolution2d_nhwc_qs8_qc8w(op, 1, l.h, l.w, 0, 0, &out_h, &out_w, pool)) &&
           good(xnn_setup_deconvolution2d_nhwc_qs8_qc8w(op, bytes(x), bytes_out(y)));
  }
  return keep(BENCH_XNN(xnn_create_deconvolution2d_nhwc, uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                        uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw),
                        uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups,
                        x.stride, y.stride, weights, bias, low, high, weights_are_floats(type), nullptr, &op),
              op) &&
         good(BENCH_XNN(xnn_reshape_deconvolution2d_nhwc, op, 1, l.h, l.w, 0, 0, &out_h, &out_w, pool)) &&
         good(BENCH_XNN(xnn_setup_deconvolution2d_nhwc, op, x.data, y.data));
}

bool XnnOps::max_pool(const Layer& l, uint32_t bottom, uint32_t right, float low, float high, View x, View y) {
  xnn_operator_t op = nullptr;
  size_t out_h, out_w;
  if (type == SKUA_DTYPE_S8)
    return keep(xnn_create_max_pooling2d_nhwc_s8(uint32_t(l.top), right, bottom, uint32_t(l.left), uint32_t(l.kh),
                                                 uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), uint32_t(l.dh),
                                                 uint32_t(l.dw), step(low), step(high), 0, &op),
                op) &&
           good(xnn_reshape_max_pooling2d_nhwc_s8(op, 1, l.h, l.w, l.c, x.stride, y.stride, &out_h, &out_w, pool)) &&
           good(xnn_setup_max_pooling2d_nhwc_s8(op, bytes(x), bytes_out(y)));
  return keep(BENCH_XNN(xnn_create_max_pooling2d_nhwc, uint32_t(l.top), right, bottom, uint32_t(l.left), uint32_t(l.kh),
                        uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), uint32_t(l.dh), uint32_t(l.dw), low, high, 0,
                        &op),
              op) &&
         good(BENCH_XNN(xnn_reshape_max_pooling2d_nhwc, op, 1, l.h, l.w, l.c, x.stride, y.stride, &out_h, &out_w,
                        pool)) &&
         good(BENCH_XNN(xnn_setup_max_pooling2d_nhwc, op, x.data, y.data));
}

bool XnnOps::average_pool(const Layer& l, float low, float high, View x, View y) {
  xnn_operator_t op = nullptr;
  size_t out_h, out_w;
  return keep(BENCH_XNN(xnn_create_average_pooling2d_nhwc, uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                        uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), low, high, 0,
                        &op),
              op) &&
         good(BENCH_XNN(xnn_reshape_average_pooling2d_nhwc, op, 1, l.h, l.w, l.c, x.stride, y.stride, &out_h, &out_w,
                        pool)) &&
         good(BENCH_XNN(xnn_setup_average_pooling2d_nhwc, op, x.data, y.data));
}

bool XnnOps::global_pool(const Layer& l, float low, float high, View x, View y) {
  if (x.stride != l.c || low != -INFINITY || high != INFINITY) return false;
  xnn_operator_t op = nullptr;
  size_t bytes = 0;  // a sum of f32 is made in the output, and must not get one
  const int64_t axes[1] = {0};
  const size_t shape[2] = {l.h * l.w, l.c};
  return keep(xnn_create_reduce_nd(xnn_reduce_mean, datatype(type), quantized(type), quantized(type), 0, &op), op) &&
         good(xnn_reshape_reduce_nd(op, 1, axes, 2, shape, &bytes, pool)) &&
         good(xnn_setup_reduce_nd(op, type == SKUA_DTYPE_F32 ? nullptr : workspace(*this, bytes), x.data, y.data));
}

bool XnnOps::softmax(const Layer& l, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_softmax_nc, 0, &op), op) &&
         good(BENCH_XNN(xnn_reshape_softmax_nc, op, l.n, l.n, l.n, l.m, pool)) &&
         good(BENCH_XNN(xnn_setup_softmax_nc, op, x.data, y.data));
}

bool XnnOps::resize(const Layer& l, View x, View y) {
  xnn_operator_t op = nullptr;
  size_t bytes = 0;
  return keep(xnn_create_resize_bilinear2d_nhwc(datatype(type), l.out_h, l.out_w,
                                                l.coordinates == SKUA_RESIZE_ALIGN_CORNERS ? XNN_FLAG_ALIGN_CORNERS : 0,
                                                &op),
              op) &&
         good(xnn_reshape_resize_bilinear2d_nhwc(op, 1, l.h, l.w, l.c, x.stride, y.stride, &bytes, pool)) &&
         good(xnn_setup_resize_bilinear2d_nhwc(op, workspace(*this, bytes), x.data, y.data));
}

bool XnnOps::unary(skua_unary_kind kind, size_t rows, size_t channels, View x, View y) {
  xnn_unary_operator kind_of;
  xnn_unary_params params = {};
  switch (kind) {
    case SKUA_UNARY_RELU: return clamp(*this, rows, channels, x, y, 0, INFINITY);
    case SKUA_UNARY_RELU6: return clamp(*this, rows, channels, x, y, 0, 6);
    case SKUA_UNARY_CLAMP: return clamp(*this, rows, channels, x, y, -1, 1);
    case SKUA_UNARY_ELU: kind_of = xnn_unary_elu, params.elu.alpha = 1; break;
    case SKUA_UNARY_LEAKY_RELU: kind_of = xnn_unary_leaky_relu, params.leaky_relu.negative_slope = 0.1f; break;
    case SKUA_UNARY_SIGMOID: kind_of = xnn_unary_sigmoid; break;
    case SKUA_UNARY_TANH: kind_of = xnn_unary_tanh; break;
    case SKUA_UNARY_HARD_SWISH: kind_of = xnn_unary_hardswish; break;
    case SKUA_UNARY_GELU: kind_of = xnn_unary_gelu; break;
    case SKUA_UNARY_GELU_TANH: kind_of = xnn_unary_approxgelu; break;
    case SKUA_UNARY_EXP: kind_of = xnn_unary_exp; break;
    case SKUA_UNARY_LOG: kind_of = xnn_unary_log; break;
    case SKUA_UNARY_SQRT: kind_of = xnn_unary_square_root; break;
    case SKUA_UNARY_RSQRT: kind_of = xnn_unary_reciprocal_square_root; break;
    case SKUA_UNARY_ABS: kind_of = xnn_unary_abs; break;
    case SKUA_UNARY_NEG: kind_of = xnn_unary_negate; break;
    case SKUA_UNARY_SQUARE: kind_of = xnn_unary_square; break;
    case SKUA_UNARY_FLOOR: kind_of = xnn_unary_floor; break;
    case SKUA_UNARY_CEIL: kind_of = xnn_unary_ceiling; break;
    case SKUA_UNARY_ROUND: kind_of = xnn_unary_bankers_rounding; break;
    case SKUA_UNARY_SIGN: kind_of = xnn_unary_sign; break;
    case SKUA_UNARY_SIN: kind_of = xnn_unary_sine; break;
    case SKUA_UNARY_COS: kind_of = xnn_unary_cosine; break;
    default: return false;
  }
  xnn_operator_t op = nullptr;
  return keep(xnn_create_unary_elementwise_nc(kind_of, datatype(type), datatype(type), &params, nullptr,
                                              quantized(type, curve), quantized(type), 0, &op),
              op) &&
         good(xnn_reshape_unary_elementwise_nc(op, rows, channels, x.stride, y.stride, pool)) &&
         good(xnn_setup_unary_elementwise_nc(op, x.data, y.data));
}

bool XnnOps::binary(skua_binary_kind kind, size_t rows, size_t second_rows, size_t channels, float low, float high,
                    const float* a, const float* b, float* y) {
  xnn_binary_operator kind_of;
  switch (kind) {
    case SKUA_BINARY_ADD: kind_of = xnn_binary_add; break;
    case SKUA_BINARY_SUB: kind_of = xnn_binary_subtract; break;
    case SKUA_BINARY_MUL: kind_of = xnn_binary_multiply; break;
    case SKUA_BINARY_DIV: kind_of = xnn_binary_divide; break;
    case SKUA_BINARY_MIN: kind_of = xnn_binary_minimum; break;
    case SKUA_BINARY_MAX: kind_of = xnn_binary_maximum; break;
    case SKUA_BINARY_PRELU: kind_of = xnn_binary_prelu; break;
    default: return false;
  }
  xnn_operator_t op = nullptr;
  const size_t shape[2] = {rows, channels}, other[2] = {second_rows, channels};
  if (!keep(xnn_create_binary_elementwise_nd(kind_of, datatype(type), quantized(type, curve), quantized(type),
                                             quantized(type), 0, &op),
            op) ||
      !good(xnn_reshape_binary_elementwise_nd(op, 2, shape, 2, other, pool)) ||
      !good(xnn_setup_binary_elementwise_nd(op, a, b, y)))
    return false;
  if (low == -INFINITY && high == INFINITY) return true;
  const View whole = {y, rows * channels};
  return clamp(*this, 1, rows * channels, whole, whole, low, high);
}

}  // namespace bench
