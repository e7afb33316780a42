// Depthwise convolution of s8 and u8 in NHWC: packed weights, the choice of a kernel, the loop nest. conv/ owns the
// operator.
#pragma once
#include "core/quantize.h"
#include "depthwise/depthwise.h"

namespace skua {

// What weights are packed for; vector 0: no kernel.
struct DepthwiseInt8Format {
  // channels of a block; taps of a column that are multiplied together (1: tap by tap, int8_by_taps.h)
  uint16_t vector, group;
  uint16_t rows;           // of a tile: 2 where the taps of both rows fit the groups that one needs
  uint16_t takes_unsigned;
  uint16_t rounding;       // skua_rounding: not FLOAT: multipliers in the place of scales, and shifts
  uint16_t per_group;      // 0: depthwise; else inputs, and as many outputs, of a group
  uint16_t pairs;          // 1: two taps of two columns are multiplied together (int8_pairs.cc)
  uint16_t streamed;       // 1: each column meets the outputs that it is under at once (int8_streamed.cc)
};

// Of a window only kernel, stride, dilation and channels.
DepthwiseInt8Format depthwise_int8_format(const skua_context* ctx, const DepthwiseShape& window, Element element,
                                          uint16_t rounding);
// Whether a window may be packed tap by tap.
inline bool depthwise_int8_goes_by_taps(const DepthwiseShape& window) {
  return window.multiplier == 1 && window.channels >= 16;
}
bool depthwise_int8_takes_pairs(const DepthwiseShape& window);
bool depthwise_int8_is_streamed(const DepthwiseShape& window, size_t vector, size_t group);  // may be
// channels: of the output.
// 0 if that overflows
size_t depthwise_int8_packed_bytes(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels,
                                   DepthwiseInt8Format format);
// bias: NULL or channels values; scale: of each channel's sum, in fixed point its multiplier, and `shift`.
void depthwise_int8_pack(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels,
                         DepthwiseInt8Format format, Element element, int32_t zero_point, const int8_t* weights,
                         const WeightSteps& steps, const int32_t* bias, const void* scale, const int32_t* shift,
                         void* packed);
// In fixed point, whether multipliers and shifts are within their bounds.
bool depthwise_int8_fixed_fit(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels,
                              DepthwiseInt8Format format, const void* packed);
// The kernel of the best instruction set for this format; NULL if the context has none.
const Kernel* depthwise_int8_kernel(const skua_context* ctx, DepthwiseInt8Format format, Element element);
OnCores depthwise_int8_on_cores(const skua_context* ctx, const Kernel* kernel);  // for the same weights
double depthwise_int8_cycles(const Kernel* kernel, const DepthwiseShape& shape, DepthwiseInt8Format format);
// bytes
size_t depthwise_int8_workspace(const DepthwiseShape& shape, DepthwiseInt8Format format, uint32_t concurrency);
// zero_point: of the input; to: of the output, of type `result`.
void depthwise_int8_run(const RunArgs& args, const DepthwiseShape& shape, const Kernel* kernel,
                        DepthwiseInt8Format format, const void* packed, int32_t zero_point, const Requantize& to,
                        Element result, const void* in, void* out, void* workspace);

// Convolutions in groups of 4, 8 or 16 inputs and as many outputs (int8_grouped.cc): the same for them. Of a window
// only kernel, stride, dilation, channels and group count; vector 0: no kernel.
DepthwiseInt8Format grouped_int8_format(const skua_context* ctx, const DepthwiseShape& window, Element element,
                                        uint16_t rounding);
size_t grouped_int8_packed_bytes(const DepthwiseShape& window, DepthwiseInt8Format format);
void grouped_int8_pack(const DepthwiseShape& window, DepthwiseInt8Format format, Element element, int32_t zero_point,
                       const int8_t* weights, const WeightSteps& steps, const int32_t* bias, const void* scale,
                       const int32_t* shift, void* packed);
bool grouped_int8_fixed_fit(const DepthwiseShape& window, DepthwiseInt8Format format, const void* packed);
size_t grouped_int8_workspace(const DepthwiseShape& shape, const Kernel* kernel, DepthwiseInt8Format format,
                              uint32_t concurrency);
void grouped_int8_run(const RunArgs& args, const DepthwiseShape& shape, const Kernel* kernel,
                      DepthwiseInt8Format format, const void* packed, int32_t zero_point, const Requantize& to,
                      Element result, const void* in, void* out, void* workspace);

}  // namespace skua
