// XNNPACK through its operator API of 2022 (Debian's): create packs the weights, setup takes pointers and sizes, run computes. What it does not fuse
// (residuals, hard swish, sigmoid, silu) runs as operators of its own, as its users do it; hard sigmoid is folded into the convolution's weights and clamp.
#include <math.h>
#include <pthreadpool.h>
#include <xnnpack.h>

#include "contestant.h"
#include "timing.h"

namespace bench {
namespace {

class XnnLayer : public Prepared {
 public:
  std::vector<xnn_operator_t> ops;
  pthreadpool_t pool;
  Memory gate;  // x * sigmoid(x) is two operators with the sigmoid in between
  ~XnnLayer() override {
    for (xnn_operator_t op : ops) xnn_delete_operator(op);
  }
  void run() override {
    for (xnn_operator_t op : ops) xnn_run_operator(op, pool);
  }
};

class Xnnpack : public Contestant {
 public:
  pthreadpool_t pool = nullptr;
  ~Xnnpack() override {
    if (pool) pthreadpool_destroy(pool);
  }
  const char* name() const override { return "xnnpack"; }
  void use_threads(int threads) override {
    if (pool) pthreadpool_destroy(pool);
    pool = threads > 1 ? pthreadpool_create(size_t(threads)) : nullptr;
    park();
  }
  void each_worker(uint32_t flags) {
    if (pool) pthreadpool_parallelize_1d(pool, [](void*, size_t) {}, nullptr, pthreadpool_get_threads_count(pool), flags);
  }
  void wake() override { each_worker(0); }
  void park() override { each_worker(PTHREADPOOL_FLAG_YIELD_WORKERS); }
  std::string version() const override { return BENCH_XNNPACK; }

  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second, View y, std::string* why) override {
    auto made = std::make_unique<XnnLayer>();
    made->pool = pool;
    *why = "no such operator";
    float low = -INFINITY, high = INFINITY;
    std::vector<float> scaled_weights, scaled_bias;
    skua_activation_kind after = SKUA_ACTIVATION_NONE;
    switch (l.activation) {
      case SKUA_ACTIVATION_NONE: break;
      case SKUA_ACTIVATION_RELU: low = 0; break;
      case SKUA_ACTIVATION_RELU6: low = 0, high = 6; break;
      case SKUA_ACTIVATION_HARD_SWISH: case SKUA_ACTIVATION_SIGMOID: case SKUA_ACTIVATION_SILU: after = l.activation; break;
      case SKUA_ACTIVATION_HARD_SIGMOID:
        if (!l.multiplies() || !bias) return nullptr;
        scaled_weights.assign(weights, weights + l.weight_count());
        scaled_bias.assign(bias, bias + l.bias_count());
        for (float& w : scaled_weights) w /= 6;
        for (float& b : scaled_bias) b = b / 6 + 0.5f;
        weights = scaled_weights.data();
        bias = scaled_bias.data();
        low = 0, high = 1;
        break;
      default: return nullptr;
    }
    const float inner_low = l.residual ? -INFINITY : low, inner_high = l.residual ? INFINITY : high;
    const size_t xs = x.stride ? x.stride : l.c, ys = y.stride ? y.stride : l.out_c;
    xnn_operator_t op = nullptr;
    const auto good = [&](xnn_status status) {
      if (status == xnn_status_success) return true;
      *why = "status " + std::to_string(int(status));
      return false;
    };
    const auto keep = [&](xnn_status status) {
      if (!good(status)) return false;
      made->ops.push_back(op);
      return true;
    };
    const uint32_t top = uint32_t(l.top), left = uint32_t(l.left), bottom = uint32_t(l.bottom), right = uint32_t(l.right);
    const uint32_t kh = uint32_t(l.kh), kw = uint32_t(l.kw), sh = uint32_t(l.sh), sw = uint32_t(l.sw), dh = uint32_t(l.dh), dw = uint32_t(l.dw);
    switch (l.op) {
      case Op::gemm:
        if (!keep(xnn_create_fully_connected_nc_f32(l.k, l.n, l.k, l.n, weights, bias, inner_low, inner_high, XNN_FLAG_TRANSPOSE_WEIGHTS, &op)) ||
            !good(xnn_setup_fully_connected_nc_f32(op, l.m, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::conv:
        if (!keep(xnn_create_convolution2d_nhwc_f32(top, right, bottom, left, kh, kw, sh, sw, dh, dw, uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups, xs, ys,
                                                    weights, bias, inner_low, inner_high, 0, &op)) ||
            !good(xnn_setup_convolution2d_nhwc_f32(op, 1, l.h, l.w, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::deconv:
        if (!keep(xnn_create_deconvolution2d_nhwc_f32(top, right, bottom, left, kh, kw, sh, sw, dh, dw, uint32_t(l.groups), l.c / l.groups, l.out_c / l.groups, xs, ys,
                                                      weights, bias, inner_low, inner_high, 0, &op)) ||
            !good(xnn_setup_deconvolution2d_nhwc_f32(op, 1, l.h, l.w, 0, 0, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::max_pool: {
        // ceil mode: more padding at the end, which never wins a maximum.
        const uint32_t more_h = uint32_t((l.out_h - 1) * l.sh + l.kh > l.h + l.top + l.bottom ? (l.out_h - 1) * l.sh + l.kh - l.h - l.top - l.bottom : 0);
        const uint32_t more_w = uint32_t((l.out_w - 1) * l.sw + l.kw > l.w + l.left + l.right ? (l.out_w - 1) * l.sw + l.kw - l.w - l.left - l.right : 0);
        if (!keep(xnn_create_max_pooling2d_nhwc_f32(top, right + more_w, bottom + more_h, left, kh, kw, sh, sw, dh, dw, l.c, xs, ys, low, high, 0, &op)) ||
            !good(xnn_setup_max_pooling2d_nhwc_f32(op, 1, l.h, l.w, x.data, y.data, pool)))
          return nullptr;
        break;
      }
      case Op::average_pool:
        if (!keep(xnn_create_average_pooling2d_nhwc_f32(top, right, bottom, left, kh, kw, sh, sw, l.c, xs, ys, low, high, 0, &op)) ||
            !good(xnn_setup_average_pooling2d_nhwc_f32(op, 1, l.h, l.w, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::global_pool:
        if (!keep(xnn_create_global_average_pooling_nwc_f32(l.c, xs, ys, low, high, 0, &op)) ||
            !good(xnn_setup_global_average_pooling_nwc_f32(op, 1, l.h * l.w, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::softmax:
        if (!keep(xnn_create_softmax_nc_f32(l.n, l.n, l.n, 0, &op)) || !good(xnn_setup_softmax_nc_f32(op, l.m, x.data, y.data, pool))) return nullptr;
        break;
      case Op::resize:
        if (l.coordinates == SKUA_RESIZE_ASYMMETRIC) return nullptr;
        if (!keep(xnn_create_resize_bilinear2d_nhwc_f32(l.c, xs, ys, l.coordinates == SKUA_RESIZE_ALIGN_CORNERS ? XNN_FLAG_ALIGN_CORNERS : 0, &op)) ||
            !good(xnn_setup_resize_bilinear2d_nhwc_f32(op, 1, l.h, l.w, l.out_h, l.out_w, x.data, y.data, pool)))
          return nullptr;
        break;
      case Op::unary: {
        // One row of channels when dense: the longest runs it can have.
        const bool dense = xs == l.c && ys == l.c;
        const size_t rows = dense ? 1 : l.h * l.w, channels = dense ? l.h * l.w * l.c : l.c, xr = dense ? channels : xs, yr = dense ? channels : ys;
#define BENCH_XNN_UNARY(function) keep(xnn_create_##function##_nc_f32(channels, xr, yr, 0, &op)) && good(xnn_setup_##function##_nc_f32(op, rows, x.data, y.data, pool))
        bool done = false;
        switch (l.unary) {
          case SKUA_UNARY_SIGMOID: done = BENCH_XNN_UNARY(sigmoid); break;
          case SKUA_UNARY_HARD_SWISH: done = BENCH_XNN_UNARY(hardswish); break;
          case SKUA_UNARY_SQRT: done = BENCH_XNN_UNARY(square_root); break;
          case SKUA_UNARY_ABS: done = BENCH_XNN_UNARY(abs); break;
          case SKUA_UNARY_FLOOR: done = BENCH_XNN_UNARY(floor); break;
          case SKUA_UNARY_ELU: done = keep(xnn_create_elu_nc_f32(channels, xr, yr, 1.0f, 0, &op)) && good(xnn_setup_elu_nc_f32(op, rows, x.data, y.data, pool)); break;
          case SKUA_UNARY_RELU: case SKUA_UNARY_RELU6:
            done = keep(xnn_create_clamp_nc_f32(channels, xr, yr, 0.0f, l.unary == SKUA_UNARY_RELU ? INFINITY : 6.0f, 0, &op)) &&
                   good(xnn_setup_clamp_nc_f32(op, rows, x.data, y.data, pool));
            break;
          default: break;
        }
#undef BENCH_XNN_UNARY
        if (!done) return nullptr;
        break;
      }
      case Op::binary: {
        if (xs != l.c || ys != l.c) return nullptr;
        const size_t shape[2] = {l.h * l.w, l.c}, pixel[2] = {1, l.c};
        const size_t* other = l.broadcast ? pixel : shape;
#define BENCH_XNN_BINARY(function) keep(xnn_create_##function##_nd_f32(low, high, 0, &op)) && good(xnn_setup_##function##_nd_f32(op, 2, shape, 2, other, x.data, second.data, y.data, pool))
        bool done = false;
        switch (l.binary) {
          case SKUA_BINARY_ADD: done = BENCH_XNN_BINARY(add); break;
          case SKUA_BINARY_SUB: done = BENCH_XNN_BINARY(subtract); break;
          case SKUA_BINARY_MUL: done = BENCH_XNN_BINARY(multiply); break;
          case SKUA_BINARY_DIV: done = BENCH_XNN_BINARY(divide); break;
          default: break;
        }
#undef BENCH_XNN_BINARY
        if (!done) return nullptr;
        break;
      }
      case Op::concat: return nullptr;
    }
    if (l.residual) {
      const size_t shape[1] = {l.out_count()};
      if (ys != l.out_c) return nullptr;
      if (!keep(xnn_create_add_nd_f32(low, high, 0, &op)) || !good(xnn_setup_add_nd_f32(op, 1, shape, 1, shape, y.data, second.data, y.data, pool))) return nullptr;
    }
    if (after == SKUA_ACTIVATION_HARD_SWISH) {
      const bool dense = ys == l.out_c;
      const size_t channels = dense ? l.out_count() : l.out_c, row = dense ? channels : ys;
      if (!keep(xnn_create_hardswish_nc_f32(channels, row, row, 0, &op)) || !good(xnn_setup_hardswish_nc_f32(op, l.out_count() / channels, y.data, y.data, pool)))
        return nullptr;
    }
    if (after == SKUA_ACTIVATION_SIGMOID || after == SKUA_ACTIVATION_SILU) {
      const size_t shape[1] = {l.out_count()};
      if (ys != l.out_c) return nullptr;
      float* to = y.data;
      if (after == SKUA_ACTIVATION_SILU) made->gate.resize(l.out_count()), to = made->gate.data();
      if (!keep(xnn_create_sigmoid_nc_f32(shape[0], shape[0], shape[0], 0, &op)) || !good(xnn_setup_sigmoid_nc_f32(op, 1, y.data, to, pool))) return nullptr;
      if (after == SKUA_ACTIVATION_SILU &&
          (!keep(xnn_create_multiply_nd_f32(low, high, 0, &op)) || !good(xnn_setup_multiply_nd_f32(op, 1, shape, 1, shape, y.data, to, y.data, pool))))
        return nullptr;
    }
    return made;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_xnnpack(std::string* why) {
  if (!isa_cap.empty()) {
    *why = "has no cap on its instruction set";
    return nullptr;
  }
  if (xnn_initialize(nullptr) != xnn_status_success) {
    *why = "xnn_initialize failed";
    return nullptr;
  }
  return std::make_unique<Xnnpack>();
}

}  // namespace bench
