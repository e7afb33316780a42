// Winograd's algorithm on a device: three dispatches (input transform, a batch of products, output transform) with
// transformed tiles in the plan's workspace, in f32 for every type of maps.
// Points and errors are the CPU's: docs/winograd.md.
#pragma once
#include "gpu/product.h"

namespace skua::gpu {

// Floats of the transformed weights [point][in rounded up to 4][out rounded up to 4]; and these, of value [o][i][y][x]
// at from[o * steps...], of `type`.
size_t winograd_weights(WinogradForm form, size_t in_channels, size_t out_channels);
struct WinogradWeights {
  const void* from;
  Element type;
  size_t o, i, y, x;
};
void winograd_transform_weights(WinogradForm form, size_t in_channels, size_t out_channels, const WinogradWeights& w,
                                float* to);

struct WinogradLayer {
  size_t batch, in_h, in_w, in_channels, out_h, out_w, out_channels, pad_top, pad_left;
  Element element;
  MapSteps in, out, residual;
  uint32_t residual_kind;
  bool bias, texels;
  Fused activation;
};
struct WinogradStep {
  WinogradForm form;
  Product product;
  ProductStep multiply;
  Chosen in, out;
  bool vector_in, vector_out;
  // k, n: channels rounded up to 4; products_at: bytes in the workspace
  size_t tiles_y, tiles_x, tiles, k, n, products_at;
  size_t workspace;                                   // bytes
};
// Chooses and compiles the three kernels.
skua_status make_winograd(const skua_op* op, WinogradForm form, const WinogradLayer& layer, WinogradStep& to);
// weights: from winograd_transform_weights(); bias: floats, or NULL.
skua_status record_winograd(const RecordArgs& args, const WinogradLayer& layer, const WinogradStep& step,
                            const skua_device_buffer* weights, const skua_device_buffer* bias);
void explain_winograd(const skua_plan* plan, const WinogradStep& step, Text& text);

}  // namespace skua::gpu
