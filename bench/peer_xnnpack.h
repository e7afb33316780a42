// XNNPACK's operators as the adapter uses them: made, sized and set up in one call each. peer_xnnpack_2022.cc has them
// for the interface in which setup takes sizes and pointers, peer_xnnpack_current.cc for the one with reshape and a
// workspace. The build takes one of the two.
#pragma once
#include <pthreadpool.h>
#include <xnnpack.h>
#include "contestant.h"

namespace bench {

struct XnnOps {
  std::vector<xnn_operator_t> ops;
  std::vector<Memory> workspaces;
  pthreadpool_t pool = nullptr;
  std::string* why = nullptr;
  skua_dtype type = SKUA_DTYPE_F32;
  bool curve = false;  // of s8: products write and what follows reads curve_quantization

  XnnOps() = default;
  XnnOps(const XnnOps&) = delete;
  ~XnnOps() {
    for (xnn_operator_t op : ops) xnn_delete_operator(op);
  }
  bool good(xnn_status status) {
    if (status == xnn_status_success) return true;
    *why = "status " + std::to_string(int(status));
    return false;
  }
  // by reference: the call that gives the status also makes it
  bool keep(xnn_status status, const xnn_operator_t& op) {
    if (!good(status)) return false;
    ops.push_back(op);
    return true;
  }

  static bool has(Op op, skua_dtype type);
  // Each adds one operator of `type`, or more where it takes more; false = there is none. x and y: with strides filled
  // in.
  bool fully_connected(const Layer& l, const float* weights, const float* bias, float low, float high, View x, View y);
  bool matmul(const Layer& l, View x, View second, View y);
  bool convolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x, View y);
  bool deconvolution(const Layer& l, const float* weights, const float* bias, float low, float high, View x, View y);
  bool max_pool(const Layer& l, uint32_t bottom, uint32_t right, float low, float high, View x, View y);
  bool average_pool(const Layer& l, float low, float high, View x, View y);
  bool global_pool(const Layer& l, float low, float high, View x, View y);
  bool softmax(const Layer& l, View x, View y);
  bool resize(const Layer& l, View x, View y);
  bool unary(skua_unary_kind kind, size_t rows, size_t channels, View x, View y);
  // Tensors [rows][channels]; second_rows: 1 = one pixel for all.
  bool binary(skua_binary_kind kind, size_t rows, size_t second_rows, size_t channels, float low, float high,
              const float* a, const float* b, float* y);
};

extern const char* const xnnpack_version;

// The f32 or the f16 form of an operator, which differ in nothing but their names; weights are floats for both, which a
// flag says.
#define BENCH_XNN(call, ...) (type == SKUA_DTYPE_F16 ? call##_f16(__VA_ARGS__) : call##_f32(__VA_ARGS__))

}  // namespace bench
