// Debian's XNNPACK: create packs the weights, setup takes sizes and pointers.
#include <math.h>
#include "peer_xnnpack.h"

namespace bench {

const char* const xnnpack_version = "2022";

namespace {
uint32_t weights_are_floats(skua_dtype type) { return type == SKUA_DTYPE_F16 ? XNN_FLAG_FP32_STATIC_WEIGHTS : 0; }
}  // namespace

bool XnnOps::has(Op op, skua_dtype type) {
  return type == SKUA_DTYPE_F32 || (type == SKUA_DTYPE_F16 && op != Op::average_pool && op != Op::softmax);
}

bool XnnOps::fully_connected(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                             View y) {
  if (l.quantized_weights()) return false;
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_fully_connected_nc, l.k, l.n, l.k, l.n, weights, bias, low, high,
                        XNN_FLAG_TRANSPOSE_WEIGHTS | weights_are_floats(type), &op),
              op) &&
         good(BENCH_XNN(xnn_setup_fully_connected_nc, op, l.m, x.data, y.data, pool));
}

bool XnnOps::matmul(const Layer&, View, View, View) { return false; }

bool XnnOps::convolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                         View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_convolution2d_nhwc, uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                        uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw),
                        uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups,
                        x.stride, y.stride, weights, bias, low, high, weights_are_floats(type), &op),
              op) &&
         good(BENCH_XNN(xnn_setup_convolution2d_nhwc, op, 1, l.h, l.w, x.data, y.data, pool));
}

bool XnnOps::deconvolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x,
                           View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_deconvolution2d_nhwc, uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                        uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw),
                        uint32_t(l.dh), uint32_t(l.dw), uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups,
                        x.stride, y.stride, weights, bias, low, high, weights_are_floats(type), &op),
              op) &&
         good(BENCH_XNN(xnn_setup_deconvolution2d_nhwc, op, 1, l.h, l.w, 0, 0, x.data, y.data, pool));
}

bool XnnOps::max_pool(const Layer& l, uint32_t bottom, uint32_t right, float low, float high, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_max_pooling2d_nhwc, uint32_t(l.top), right, bottom, uint32_t(l.left), uint32_t(l.kh),
                        uint32_t(l.kw), uint32_t(l.sh), uint32_t(l.sw), uint32_t(l.dh), uint32_t(l.dw), l.c, x.stride,
                        y.stride, low, high, 0, &op),
              op) &&
         good(BENCH_XNN(xnn_setup_max_pooling2d_nhwc, op, 1, l.h, l.w, x.data, y.data, pool));
}

bool XnnOps::average_pool(const Layer& l, float low, float high, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(xnn_create_average_pooling2d_nhwc_f32(uint32_t(l.top), uint32_t(l.right), uint32_t(l.bottom),
                                                    uint32_t(l.left), uint32_t(l.kh), uint32_t(l.kw), uint32_t(l.sh),
                                                    uint32_t(l.sw), l.c, x.stride, y.stride, low, high, 0, &op),
              op) &&
         good(xnn_setup_average_pooling2d_nhwc_f32(op, 1, l.h, l.w, x.data, y.data, pool));
}

bool XnnOps::global_pool(const Layer& l, float low, float high, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_global_average_pooling_nwc, l.c, x.stride, y.stride, low, high, 0, &op), op) &&
         good(BENCH_XNN(xnn_setup_global_average_pooling_nwc, op, 1, l.h * l.w, x.data, y.data, pool));
}

bool XnnOps::softmax(const Layer& l, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(xnn_create_softmax_nc_f32(l.n, l.n, l.n, 0, &op), op) &&
         good(xnn_setup_softmax_nc_f32(op, l.m, x.data, y.data, pool));
}

bool XnnOps::resize(const Layer& l, View x, View y) {
  xnn_operator_t op = nullptr;
  return keep(BENCH_XNN(xnn_create_resize_bilinear2d_nhwc, l.c, x.stride, y.stride,
                        l.coordinates == SKUA_RESIZE_ALIGN_CORNERS ? XNN_FLAG_ALIGN_CORNERS : 0, &op),
              op) &&
         good(BENCH_XNN(xnn_setup_resize_bilinear2d_nhwc, op, 1, l.h, l.w, l.out_h, l.out_w, x.data, y.data, pool));
}

bool XnnOps::unary(skua_unary_kind kind, size_t rows, size_t channels, View x, View y) {
  xnn_operator_t op = nullptr;
#define BENCH_XNN_UNARY(function)                                                   \
  keep(xnn_create_##function##_nc_f32(channels, x.stride, y.stride, 0, &op), op) && \
      good(xnn_setup_##function##_nc_f32(op, rows, x.data, y.data, pool))
  switch (kind) {
    case SKUA_UNARY_HARD_SWISH:
      return keep(BENCH_XNN(xnn_create_hardswish_nc, channels, x.stride, y.stride, 0, &op), op) &&
             good(BENCH_XNN(xnn_setup_hardswish_nc, op, rows, x.data, y.data, pool));
    case SKUA_UNARY_RELU: case SKUA_UNARY_RELU6:
      return keep(BENCH_XNN(xnn_create_clamp_nc, channels, x.stride, y.stride, 0.0f,
                            kind == SKUA_UNARY_RELU ? INFINITY : 6.0f, 0, &op),
                  op) &&
             good(BENCH_XNN(xnn_setup_clamp_nc, op, rows, x.data, y.data, pool));
    default: break;
  }
  if (type != SKUA_DTYPE_F32) return false;
  switch (kind) {
    case SKUA_UNARY_SIGMOID: return BENCH_XNN_UNARY(sigmoid);
    case SKUA_UNARY_SQRT: return BENCH_XNN_UNARY(square_root);
    case SKUA_UNARY_ABS: return BENCH_XNN_UNARY(abs);
    case SKUA_UNARY_FLOOR: return BENCH_XNN_UNARY(floor);
    case SKUA_UNARY_ELU:
      return keep(xnn_create_elu_nc_f32(channels, x.stride, y.stride, 1.0f, 0, &op), op) &&
             good(xnn_setup_elu_nc_f32(op, rows, x.data, y.data, pool));
    default: return false;
  }
#undef BENCH_XNN_UNARY
}

bool XnnOps::binary(skua_binary_kind kind, size_t rows, size_t second_rows, size_t channels, float low, float high,
                    const float* a, const float* b, float* y) {
  xnn_operator_t op = nullptr;
  const size_t shape[2] = {rows, channels}, other[2] = {second_rows, channels};
#define BENCH_XNN_BINARY(function, type)                            \
  keep(xnn_create_##function##_nd_##type(low, high, 0, &op), op) && \
      good(xnn_setup_##function##_nd_##type(op, 2, shape, 2, other, a, b, y, pool))
  const bool f32 = type == SKUA_DTYPE_F32;
  switch (kind) {
    case SKUA_BINARY_ADD: return f32 ? BENCH_XNN_BINARY(add, f32) : BENCH_XNN_BINARY(add, f16);
    case SKUA_BINARY_MUL: return f32 ? BENCH_XNN_BINARY(multiply, f32) : BENCH_XNN_BINARY(multiply, f16);
    case SKUA_BINARY_SUB: return f32 && BENCH_XNN_BINARY(subtract, f32);
    case SKUA_BINARY_DIV: return f32 && BENCH_XNN_BINARY(divide, f32);
    default: return false;
  }
#undef BENCH_XNN_BINARY
}

}  // namespace bench
