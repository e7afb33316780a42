// What quantised operators share when they are created: checks of a skua_quantization against a type, the scale of a
// sum, an activation in quantised units. docs/quantization.md has the formulas, dispatch/requantize.h the arithmetic of
// a run.
#pragma once
#include "core/op.h"
#include "dispatch/requantize.h"

namespace skua {

float quantization_scale(const skua_quantization& q, size_t i);  // q.scales[i], which are of q.scale_type

constexpr bool is_int8(Element e) { return e == Element::s8 || e == Element::u8; }
constexpr int32_t least_of(Element e) { return e == Element::s8 ? -128 : e == Element::s4 ? -8 : 0; }
constexpr int32_t greatest_of(Element e) { return e == Element::s8 ? 127 : e == Element::s4 ? 7 : 255; }
constexpr bool zero_point_fits(Element e, int32_t zero_point) {
  return zero_point >= least_of(e) && zero_point <= greatest_of(e);
}

// s8 or u8, in a build that has them.
skua_status need_int8(const char* op, const char* field, skua_dtype type);
// A finite positive scale and a zero point within the type, for the whole tensor.
skua_status need_quantization(const char* op, const char* field, const skua_quantization& q, skua_dtype type);
// The same of a tensor of s8 or u8; of a tensor of floats nothing may be set.
skua_status need_quantization_of(const char* op, const char* field, const skua_quantization& q, skua_dtype type);
// Constant weights: one scale, one for each of the channels along `axis`, or, where blocks of the reduction are taken
// (reduction > 0: its length), for each channel ceil(reduction / block_size). s8 and s4 are symmetric unless asymmetric
// is true: zero points 0.
skua_status need_weight_quantization(const char* op, const char* field, const skua_quantization& q, skua_dtype type,
                                     size_t channels, uint32_t axis, size_t reduction = 0, bool asymmetric = false);

// float(input scale * weight scale of the channel / output scale), in double and rounded once; without the division
// where the result is no byte. At most the largest float: a sum of 0 stays 0.
float sum_scale(const skua_quantization& input, const skua_quantization& weight, size_t channel, Element result,
                const skua_quantization& output);
float sum_scale(double input, double weight, double output);

// What an activation clamps to. A result of bytes: bounds less the zero point, of the type and of
// nearest(bound / scale), for Requantize; floats: real bounds, infinite where there is none.
// UNSUPPORTED for an activation that is no clamp.
skua_status quantized_bounds(const char* op, const skua_activation& activation, Element result,
                             const skua_quantization& output, float& low, float& high,
                             const char* field = "activation");
// The whole of it, and the zero point; checks the residual too, which most quantised operators do not take.
skua_status quantized_epilogue(const char* op, const skua_epilogue& epilogue, Element result,
                               const skua_quantization& output, Requantize& to, bool takes_residual = false);

// The residual of an epilogue, and how sums are rounded: what of it cannot be, is refused. to.scale is 0 without a
// residual.
skua_status quantized_residual(const char* op, const skua_epilogue& epilogue, Element result,
                               const skua_quantization& output, const skua_quantization& residual,
                               QuantizedResidual& to);
skua_status need_requantization(const char* op, const skua_requantization& r, Element result, size_t channels,
                                skua_residual residual);
// Both unset, where the operator's maps are floats.
skua_status need_no_requantization(const char* op, const skua_quantization& residual, const skua_requantization& r);

// multiplier * 2^(shift - 31), the multiplier rounded to nearest, ties away from 0, at least 2^30; 0 where the scale is
// below 2^-32, the most there is where it is 2^30 or more.
struct FixedScale {
  int32_t multiplier, shift;
};
FixedScale fixed_scale(double scale);
FixedScale sum_scale_fixed(const skua_quantization& input, const skua_quantization& weight, size_t channel,
                           const skua_quantization& output, const skua_requantization& r);
bool are_fixed_scales(const int32_t* multipliers, const int32_t* shifts, size_t n);  // within their bounds

}  // namespace skua
