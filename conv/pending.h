// Algorithms whose folders are not in the build: they never apply.
#pragma once
#include "gemm/driver.h"

namespace skua {

enum class WinogradVariant : uint8_t { f2x2, f4x2, f4x4, f6x6 };
struct WinogradShape {
  size_t batch, in_h, in_w, in_channels, out_h, out_w, out_channels, pad_top, pad_left, in_row, in_pixel, in_batch, out_row, out_pixel, out_batch, res_row, res_pixel, res_batch;
};
struct WinogradPlan { const Kernel* tile; };
inline const char* winograd_name(WinogradVariant) { return "winograd"; }
inline bool winograd_plan(const skua_context*, WinogradVariant, const WinogradShape&, PackFormat, WinogradPlan*) { return false; }
inline double winograd_cycles(const WinogradPlan&, const WinogradShape&) { return 0; }
inline size_t winograd_workspace(const WinogradPlan&, const WinogradShape&, uint32_t) { return 0; }
inline size_t winograd_packed_floats(WinogradVariant, size_t, size_t, PackFormat) { return 0; }
inline void winograd_pack(WinogradVariant, size_t, size_t, PackFormat, const float*, size_t, size_t, size_t, size_t, float*) {}
inline void winograd_run(const RunArgs&, const WinogradPlan&, const WinogradShape&, const float*, const float*, const Activation&, skua_residual, const float*, const float*, float*, void*) {}

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
