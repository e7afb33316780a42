// XNNPACK through its operators. What it does not fuse
// (residuals, hard swish, sigmoid, silu) runs as operators of its own, as its users do it; hard sigmoid is folded into
// the convolution's weights and clamp.
#include <math.h>
#include <algorithm>

#include "peer_xnnpack.h"
#include "timing.h"

namespace bench {
namespace {

class XnnLayer : public Prepared {
 public:
  XnnOps o;
  Memory gate;  // x * sigmoid(x) is two operators with the sigmoid in between
  void run() override {
    for (xnn_operator_t op : o.ops) xnn_run_operator(op, o.pool);
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
    if (pool)
      pthreadpool_parallelize_1d(
          pool, [](void*, size_t) {}, nullptr, pthreadpool_get_threads_count(pool), flags);
  }
  void wake() override { each_worker(0); }
  void park() override { each_worker(PTHREADPOOL_FLAG_YIELD_WORKERS); }
  std::string version() const override { return xnnpack_version; }

  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second,
                                    View y, std::string* why) override {
    auto made = std::make_unique<XnnLayer>();
    XnnOps& o = made->o;
    o.pool = pool;
    o.why = why;
    o.type = l.type;
    *why = "no such operator";
    if (!o.has(l.op, l.type)) return nullptr;
    float low = -INFINITY, high = INFINITY;
    Folded folded;
    skua_activation_kind after = SKUA_ACTIVATION_NONE;
    switch (l.activation) {
      case SKUA_ACTIVATION_NONE: break;
      case SKUA_ACTIVATION_RELU: low = 0; break;
      case SKUA_ACTIVATION_RELU6: low = 0, high = 6; break;
      case SKUA_ACTIVATION_HARD_SWISH:
      case SKUA_ACTIVATION_SIGMOID:
      case SKUA_ACTIVATION_SILU: after = l.activation, o.curve = !l.residual; break;
      case SKUA_ACTIVATION_HARD_SIGMOID:
        if (!l.multiplies() || !bias) return nullptr;
        folded = fold_hard_sigmoid(l, weights, bias);
        weights = folded.weights.data(), bias = folded.bias.data();
        low = 0, high = 1;
        break;
      default: return nullptr;
    }
    const float inner_low = l.residual ? -INFINITY : low, inner_high = l.residual ? INFINITY : high;
    if (!x.stride) x.stride = l.c;
    if (!y.stride) y.stride = l.out_c;
    const bool dense = y.stride == l.out_c;
    bool done = false;
    switch (l.op) {
      case Op::gemm:
        done = l.two_inputs ? o.matmul(l, x, second, y)
                            : o.fully_connected(l, weights, bias, inner_low, inner_high, x, y);
        break;
      case Op::conv: done = o.convolution(l, weights, bias, inner_low, inner_high, x, y); break;
      case Op::deconv: done = o.deconvolution(l, weights, bias, inner_low, inner_high, x, y); break;
      case Op::max_pool: {
        // ceil mode: more padding at the end, which never wins a maximum.
        const auto end = [](size_t out, size_t stride, size_t kernel, size_t in, size_t before, size_t after) {
          const size_t reach = (out - 1) * stride + kernel;
          return uint32_t(std::max(reach, in + before + after) - in - before);
        };
        done = o.max_pool(l, end(l.out_h, l.sh, l.kh, l.h, l.top, l.bottom),
                          end(l.out_w, l.sw, l.kw, l.w, l.left, l.right), low, high, x, y);
        break;
      }
      case Op::average_pool: done = o.average_pool(l, low, high, x, y); break;
      case Op::global_pool: done = o.global_pool(l, low, high, x, y); break;
      case Op::softmax: done = o.softmax(l, x, y); break;
      case Op::resize: done = l.coordinates != SKUA_RESIZE_ASYMMETRIC && o.resize(l, x, y); break;
      case Op::unary: {
        // One row of channels when dense: the longest runs it can have.
        const size_t count = l.h * l.w * l.c;
        done = dense && x.stride == l.c ? o.unary(l.unary, 1, count, {x.data, count}, {y.data, count})
                                        : o.unary(l.unary, l.h * l.w, l.c, x, y);
        break;
      }
      case Op::binary:
        done = dense && x.stride == l.c &&
               o.binary(l.binary, l.h * l.w, l.broadcast ? 1 : l.h * l.w, l.c, low, high, x.data, second.data, y.data);
        break;
      case Op::concat: break;
    }
    const size_t count = l.out_count();
    const View whole = {y.data, count};
    if (done && l.residual)
      done = dense && o.binary(SKUA_BINARY_ADD, 1, 1, count, low, high, y.data, second.data, y.data);
    if (done && after == SKUA_ACTIVATION_HARD_SWISH)
      done = dense ? o.unary(SKUA_UNARY_HARD_SWISH, 1, count, whole, whole)
                   : o.unary(SKUA_UNARY_HARD_SWISH, count / l.out_c, l.out_c, y, y);
    if (done && after == SKUA_ACTIVATION_SIGMOID) done = dense && o.unary(SKUA_UNARY_SIGMOID, 1, count, whole, whole);
    if (done && after == SKUA_ACTIVATION_SILU) {
      made->gate.resize(count);
      done = dense && o.unary(SKUA_UNARY_SIGMOID, 1, count, whole, {made->gate.data(), count}) &&
             o.binary(SKUA_BINARY_MUL, 1, 1, count, -INFINITY, INFINITY, y.data, made->gate.data(), y.data);
    }
    if (!done) return nullptr;
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
