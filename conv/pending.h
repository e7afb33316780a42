// Algorithms whose folders are not in the build: they never apply.
#pragma once
#include "gemm/driver.h"

namespace skua {

struct DepthwiseShape {
  size_t batch, in_h, in_w, channels, multiplier, out_h, out_w;
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  size_t pad_top, pad_left, in_row, in_pixel, in_batch, out_row, out_pixel, out_batch, res_row, res_pixel, res_batch;
};
inline size_t depthwise_packed_floats(size_t, size_t, size_t, size_t) { return 0; }
inline void depthwise_pack(size_t, size_t, size_t, size_t, const float*, size_t, size_t, size_t, const float*, float*) {}
inline const Kernel* depthwise_choose(const skua_context*, const DepthwiseShape&, uint32_t, Text*) { return nullptr; }
inline double depthwise_cycles(const Kernel*, const DepthwiseShape&) { return 0; }
inline size_t depthwise_workspace(const DepthwiseShape&, const Kernel*, uint32_t) { return 0; }
inline void depthwise_run(const RunArgs&, const DepthwiseShape&, const Kernel*, const float*, const Activation&, skua_residual, const float*, const float*, float*, void*) {}

}  // namespace skua
