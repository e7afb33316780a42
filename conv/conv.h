// The convolution operators: what conv2d and conv2d_transpose share. create.cc checks descriptors and packs; conv.cc
// plans and runs.
#pragma once
#include <skua/conv.h>
#include "conv/direct.h"
#include "depthwise/depthwise.h"
#include "winograd/winograd.h"

namespace skua {

// Ways to compute a convolution. Each has its own packed weights, or shares the direct ones.
enum ConvAlgorithm : uint32_t {
  kDirect,
  kDepthwise,
  kGrouped,
  kWinogradF2x2,
  kWinogradF4x2,
  kWinogradF4x4,
  kWinogradF6x6,
  kWinogradF2x2_5x5,
  kWinogradF4x4_5x5,
  kWinogradF3x3S2,
  kConvAlgorithms
};
inline WinogradVariant winograd_variant(uint32_t algorithm) { return WinogradVariant(algorithm - kWinogradF2x2); }

struct ConvConfig {
  uint8_t transposed, layout, residual, numerics, has_bias;
  uint8_t padding_mode;
  uint8_t element;             // of the feature maps
  uint8_t weights;             // as given: f32 or the same
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, groups, in_channels, out_channels;
  uint32_t pad_top, pad_left, pad_bottom, pad_right, output_padding_h, output_padding_w;
  skua_activation activation;
  uint32_t packed;             // bit per ConvAlgorithm whose weights are there
  PackFormat format;           // of the direct panels
  DepthwiseFormat depthwise;   // of the depthwise or grouped weights
  uint32_t winograd_vector;    // of Winograd's
  uint32_t winograd_element;
  uint32_t winograd_together;  // channels that lie together: not the same on every architecture
};

// What the algorithms see: NCHW maps of floats are f32 in the workspace, whatever they are in memory.
inline Element map_element(const ConvConfig& c) {
  return c.layout == SKUA_LAYOUT_NCHW && !is_int8(Element(c.element)) ? Element::f32 : Element(c.element);
}
inline bool has_function(const skua_activation& a) {  // that is no clamp
  return a.kind != SKUA_ACTIVATION_NONE && a.kind != SKUA_ACTIVATION_RELU && a.kind != SKUA_ACTIVATION_RELU6 &&
         a.kind != SKUA_ACTIVATION_CLAMP;
}
inline PackFormat winograd_format(const ConvConfig& c) {
  return {uint16_t(c.winograd_vector), uint16_t(c.winograd_vector), Element(c.winograd_element),
          uint8_t(c.winograd_together), 0};
}

struct ConvOp : skua_op {
  ConvConfig config;
  Activation activation, map_activation;  // of rows of f32; of what map_element() says
  const float* bias;                      // direct_bias_floats values
  const float* weights_of[kConvAlgorithms];
};

// What an operator made of convolutions builds on (create.cc): the checked description, and conv2d's create under
// another name, packed for `algorithms` (bits) at most.
skua_status conv_config(const char* op, const skua_conv2d_desc& d, ConvConfig& c);
skua_status conv_create(const OpClass& cls, skua_context* ctx, const skua_conv2d_desc& d, uint32_t algorithms,
                        const void* weights, const void* bias, skua_op** out);

// Element steps of the caller's weights; false on overflow.
bool conv_weight_steps(const ConvConfig& c, skua_weight_layout layout, WeightSteps& w);

bool conv_applies(const ConvConfig& c, uint32_t algorithm);
const char* conv_algorithm_name(uint32_t algorithm);
// Why it is no convolution for Winograd's algorithm of that variant, whatever the types; NULL if it is.
const char* no_winograd_window(const ConvConfig& c, WinogradVariant variant);
WinogradShape winograd_shape(const DirectShape& s);
// OpClass::remake
skua_status conv_remake(const skua_op* op, const skua_tensor* inputs, uint32_t wanted, skua_op** out);

// Floats of the weights block: bias, then the packed weights of each algorithm in `config.packed`. offset[a] is filled
// for those. False: overflow.
bool conv_layout(const ConvConfig& c, size_t (&offset)[kConvAlgorithms], size_t& floats);

// The dense NHWC shape that an algorithm sees, for inputs of this size.
skua_status conv_shape(const skua_op* op, const ConvConfig& c, size_t batch, size_t in_h, size_t in_w, DirectShape& s);

// Steps of a feature map of rank 4, or 3 (one row); its batch, height and width. The channels are checked.
struct ConvMap {
  size_t batch, h, w, image, row, pixel, plane;  // NHWC: image, row, pixel; NCHW: image, plane, row
};
skua_status conv_map(const skua_op* op, const ConvConfig& c, const char* what, size_t index, const skua_tensor& t,
                     size_t channels, ConvMap& m);
// What every plan begins with: the input, the shape that the algorithms see, and the output's extents.
skua_status conv_plan_shapes(const skua_op* op, const ConvConfig& c, const PlanShapes& shapes, skua_dtype result,
                             ConvMap& in, DirectShape& s, skua_tensor& y);

// Convolutions of 8-bit integers (int8.cc), in builds with s8: the checked description, what the types are quantised
// with, and the caller's weights. The other classes end here.
struct ConvQuantization {
  skua_quantization input, weight, output;
  skua_requantization requantization;
  QuantizedResidual residual;
};
skua_status int8_conv_create(const skua_context* ctx, const ConvConfig& conv, skua_dtype result,
                             const Requantize& bounds, const ConvQuantization& q, const WeightSteps& steps,
                             const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out);
// By depthwise kernels of bytes (int8_depthwise.cc). NULL in `out` and OK where there is none for it, as for results of
// floats.
skua_status depthwise_int8_create(const skua_context* ctx, const ConvConfig& conv, skua_dtype result,
                                  const Requantize& bounds, const ConvQuantization& q, const WeightSteps& steps,
                                  const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out);

struct ConvPlan : skua_plan {
  DirectShape shape;
  uint32_t chosen;             // ConvAlgorithm
  double cycles;
  DirectPlan direct;
  OnlyRow row;                 // of one pixel in NHWC
  DepthwiseShape depthwise;
  WinogradShape winograd_shape;
  WinogradPlan winograd;
  // NCHW: feature maps are converted in the workspace.
  size_t in_floats, res_floats, out_floats;
  size_t in_plane, in_line, res_plane, res_line, out_plane, out_line;  // NCHW strides
  size_t in_image, res_image, out_image;
};

// Chooses among the algorithms of `packed` that apply; fills the plan's algorithm, kernel and sub-plans. With text:
// every candidate, or why it was turned down.
skua_status conv_choose(const skua_op* op, const ConvConfig& c, uint32_t packed, ConvPlan& p, Text* text);

}  // namespace skua
