// Depthwise convolution in NHWC: the packed weights, the choice of a kernel, and the loop nest. conv/ owns the operator
// and calls this.
#pragma once
#include "core/activation.h"
#include "core/op.h"
#include "core/window.h"

namespace skua {

// Output channel c*multiplier + j belongs to input channel c. Strides in elements.
struct DepthwiseShape {
  size_t batch, in_h, in_w, channels, multiplier, out_h, out_w;
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  size_t pad_top, pad_left;
  size_t in_row, in_pixel, in_batch, out_row, out_pixel, out_batch, res_row, res_pixel, res_batch;
  size_t group = 1;  // inputs, and outputs, per group; above 1 for grouped convolution
  double layer_bytes = 0;  // of a phase of a dilated layer: in and out of all of them; else 0
  size_t out_channels() const { return channels * multiplier; }
};

// What packed weights are for: kernels of this vector (values) for feature maps of `element`. weights: the type they
// are packed as, in which these kernels sum too.
// vector 0: there is none.
struct DepthwiseFormat {
  uint16_t vector;
  Element weights, element;
};

// Of the best instruction set whose vectors this many output channels fill. f32_sums: none that sums in halves.
DepthwiseFormat depthwise_format(const skua_context* ctx, size_t out_channels, Element element, bool f32_sums);

// The same for grouped convolution, which sums in f32; vector 0 if no kernel packs whole groups into whole vectors.
DepthwiseFormat grouped_format(const skua_context* ctx, size_t channels, size_t group, Element element);

// Packed weights in floats, whatever their type; 0 if that overflows. Layout: depthwise_kernel.h.
size_t depthwise_packed_floats(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels,
                               DepthwiseFormat format);
// bias: out_channels values, or NULL.
void depthwise_pack(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels, DepthwiseFormat format,
                    const float* weights, const WeightSteps& steps, const float* bias, float* packed);

// The cheapest kernel for weights of this format; NULL if the context has none. With text, every candidate and its
// predicted cycles is added to it.
const Kernel* depthwise_choose(const skua_context* ctx, const DepthwiseShape& shape, DepthwiseFormat format,
                               Text* text = nullptr, Choice* choice = nullptr);
double depthwise_cycles(const Kernel* kernel, const DepthwiseShape& shape);

OnCores depthwise_on_cores(const skua_context* ctx, const Kernel* kernel);  // of the same tiles
size_t depthwise_workspace(const DepthwiseShape& shape, const Kernel* kernel, uint32_t concurrency);  // bytes
// activation: of rows of the feature maps' type.
void depthwise_run(const RunArgs& args, const DepthwiseShape& shape, const Kernel* kernel, const float* packed,
                   const Activation& activation, skua_residual residual_mode, const void* in, const void* residual,
                   void* out, void* workspace);

}  // namespace skua
