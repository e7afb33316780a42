#include "core/quantize.h"

#include <float.h>
#include <math.h>

namespace skua {
namespace {

bool is_scale(float scale) { return scale >= FLT_MIN && scale <= FLT_MAX; }
constexpr float kMostResidualScale = 0x1p100f;  // times any byte it is finite

}  // namespace

float quantization_scale(const skua_quantization& q, size_t i) {
  if (q.scale_type == SKUA_DTYPE_F16) return widen(reinterpret_cast<const f16*>(q.scales)[i]);
  if (q.scale_type == SKUA_DTYPE_BF16) return widen(reinterpret_cast<const bf16*>(q.scales)[i]);
  return q.scales[i];
}

skua_status need_int8(const char* op, const char* field, skua_dtype type) {
  if (!skua_dtype_bits(type)) return SKUA_INVALID("%s: %s is %d, unknown type", op, field, int(type));
  if (!is_int8(Element(type)))
    return SKUA_UNSUPPORTED_("%s: %s is %s, must be s8 or u8 here", op, field, skua_dtype_name(type));
#ifdef SKUA_TYPE_s8
  return SKUA_STATUS_OK;
#else
  return SKUA_UNSUPPORTED_("%s: %s is %s, which this build leaves out (SKUA_TYPES: s8)", op, field,
                           skua_dtype_name(type));
#endif
}

skua_status need_quantization(const char* op, const char* field, const skua_quantization& q, skua_dtype type) {
  if (q.scale_type != SKUA_DTYPE_F32)
    return SKUA_INVALID("%s: %s.scale_type is %s, one scale is f32", op, field, skua_dtype_name(q.scale_type));
  if (q.scales || q.zero_points || q.block_size)
    return SKUA_UNSUPPORTED_("%s: %s has %s; this tensor takes one scale", op, field,
                             q.block_size ? "blocks" : "scales per channel");
  if (!is_scale(q.scale))
    return SKUA_INVALID("%s: %s.scale is %g, must be above 0, finite and no denormal", op, field, double(q.scale));
  if (!zero_point_fits(Element(type), q.zero_point))
    return SKUA_INVALID("%s: %s.zero_point is %d, outside of %s (%d..%d)", op, field, int(q.zero_point),
                        skua_dtype_name(type), int(least_of(Element(type))), int(greatest_of(Element(type))));
  return SKUA_STATUS_OK;
}

skua_status need_quantization_of(const char* op, const char* field, const skua_quantization& q, skua_dtype type) {
  return is_int8(Element(type)) ? need_quantization(op, field, q, type) : need_unquantized(op, field, q);
}

skua_status need_weight_quantization(const char* op, const char* field, const skua_quantization& q, skua_dtype type,
                                     size_t channels, uint32_t axis, size_t reduction, bool asymmetric) {
  const auto need_zero = [&](int32_t zero, size_t i) {
    const bool given = q.zero_points != nullptr;
    if (!zero_point_fits(Element(type), zero))
      return given
                 ? SKUA_INVALID("%s: %s.zero_points[%zu] is %d, outside of %s", op, field, i, int(zero),
                                skua_dtype_name(type))
                 : SKUA_INVALID("%s: %s.zero_point is %d, outside of %s", op, field, int(zero), skua_dtype_name(type));
    if (zero != 0 && type == SKUA_DTYPE_S4 && !q.scales)
      return SKUA_UNSUPPORTED_(
          "%s: %s.zero_point is %d; weights of s4 with one scale have none: give scales and zero_points", op, field,
          int(zero));
    if (zero != 0 && !asymmetric && type != SKUA_DTYPE_U8)
      return given ? SKUA_UNSUPPORTED_("%s: %s.zero_points[%zu] is %d; weights of %s are symmetric, zero point 0", op,
                                       field, i, int(zero), skua_dtype_name(type))
                   : SKUA_UNSUPPORTED_("%s: %s.zero_point is %d; weights of %s are symmetric, zero point 0", op, field,
                                       int(zero), skua_dtype_name(type));
    return SKUA_STATUS_OK;
  };
  if (!q.scales) {
    if (q.block_size) return SKUA_INVALID("%s: %s.block_size is %u, but scales is NULL", op, field, q.block_size);
    if (q.zero_points) return SKUA_INVALID("%s: %s.zero_points is set, but scales is NULL", op, field);
    if (q.scale_type != SKUA_DTYPE_F32)
      return SKUA_INVALID("%s: %s.scale_type is %s, but scales is NULL: one scale is f32", op, field,
                          skua_dtype_name(q.scale_type));
    if (!is_scale(q.scale))
      return SKUA_INVALID("%s: %s.scale is %g, must be above 0, finite and no denormal", op, field, double(q.scale));
    return need_zero(q.zero_point, 0);
  }
  if (q.zero_point)
    return SKUA_INVALID("%s: %s.zero_point is %d beside %s", op, field, int(q.zero_point),
                        q.zero_points           ? "zero_points, must be 0"
                        : type != SKUA_DTYPE_S8 ? "scales; give zero_points, one for each scale"
                                                : "scales; these weights are symmetric, all zero_points are 0");
  if (q.axis != axis) return SKUA_INVALID("%s: %s.axis is %u, the channels are axis %u", op, field, q.axis, axis);
  size_t count = channels;
  if (q.block_size) {
    if (!reduction)
      return SKUA_UNSUPPORTED_("%s: %s.block_size is %u; these weights take a scale for each channel", op, field,
                               q.block_size);
    if (q.block_size != 32 && q.block_size != 64 && q.block_size != 128 && q.block_size != 256)
      return SKUA_INVALID("%s: %s.block_size is %u, must be 32, 64, 128 or 256", op, field, q.block_size);
    if (!mul(channels, ceil_div(reduction, q.block_size), count))
      return SKUA_INVALID("%s: %s has more scales than the address space", op, field);
    if (q.scale_type != SKUA_DTYPE_F32 && q.scale_type != SKUA_DTYPE_F16 && q.scale_type != SKUA_DTYPE_BF16)
      return SKUA_INVALID("%s: %s.scale_type is %s, must be f32, f16 or bf16", op, field,
                          skua_dtype_name(q.scale_type));
  } else if (q.scale_type != SKUA_DTYPE_F32) {
    return SKUA_UNSUPPORTED_("%s: %s.scale_type is %s; scales per channel are f32", op, field,
                             skua_dtype_name(q.scale_type));
  }
  // By their bits, which are in the order of positive floats: blocks of 32 have a sixteenth as many scales as there are
  // bytes of weights, or an eighth.
  const auto good = [count](const auto* scales, auto least, auto most) {
    size_t i = 0;
    while (i < count &&
           decltype(least)(__builtin_bit_cast(decltype(least), scales[i]) - least) <= decltype(least)(most - least))
      ++i;
    return i;
  };
  const size_t bad = q.scale_type == SKUA_DTYPE_F16
                         ? good(reinterpret_cast<const f16*>(q.scales), uint16_t(1), uint16_t(0x7bff))
                     : q.scale_type == SKUA_DTYPE_BF16
                         ? good(reinterpret_cast<const bf16*>(q.scales), uint16_t(0x80), uint16_t(0x7f7f))
                         : good(q.scales, uint32_t(0x00800000), uint32_t(0x7f7fffff));
  for (size_t i = q.zero_points ? 0 : bad; i < count; ++i) {
    if (i == bad)
      return SKUA_INVALID("%s: %s.scales[%zu] is %g, must be above 0, finite and no denormal", op, field, i,
                          double(quantization_scale(q, i)));
    SKUA_TRY(need_zero(q.zero_points ? q.zero_points[i] : 0, i));
  }
  return SKUA_STATUS_OK;
}

float sum_scale(double input, double weight, double output) {
  const double scale = input * weight / output;
  return scale < double(FLT_MAX) ? float(scale) : FLT_MAX;
}
float sum_scale(const skua_quantization& input, const skua_quantization& weight, size_t channel, Element result,
                const skua_quantization& output) {
  return sum_scale(double(input.scale), double(weight.scales ? weight.scales[channel] : weight.scale),
                   is_int8(result) ? double(output.scale) : 1.0);
}

skua_status quantized_bounds(const char* op, const skua_activation& activation, Element result,
                             const skua_quantization& output, float& low, float& high, const char* field) {
  low = -INFINITY;
  high = INFINITY;
  switch (activation.kind) {
    case SKUA_ACTIVATION_NONE: break;
    case SKUA_ACTIVATION_RELU: low = 0; break;
    case SKUA_ACTIVATION_RELU6: low = 0; high = 6; break;
    case SKUA_ACTIVATION_CLAMP: low = activation.a; high = activation.b; break;
    default:
      return SKUA_UNSUPPORTED_(
          "%s: %s.kind is %s; quantised operators fuse NONE, RELU, RELU6 and CLAMP, apply others by "
          "skua_unary_create()",
          op, field, activation_name(activation.kind));
  }
  if (!is_int8(result)) return SKUA_STATUS_OK;
  const double least = double(least_of(result)) - double(output.zero_point),
               greatest = double(greatest_of(result)) - double(output.zero_point), scale = double(output.scale);
  const auto bound = [&](float real) {
    const double steps = rint(double(real) / scale);
    return float(steps < least ? least : steps > greatest ? greatest : steps);
  };
  low = bound(low);
  high = bound(high);
  return SKUA_STATUS_OK;
}

skua_status quantized_epilogue(const char* op, const skua_epilogue& epilogue, Element result,
                               const skua_quantization& output, Requantize& to, bool takes_residual) {
  SKUA_TRY(check_epilogue(op, epilogue));
  if (epilogue.residual != SKUA_RESIDUAL_NONE && !takes_residual)
    return SKUA_UNSUPPORTED_("%s: epilogue.residual is set; this operator takes none, add it by skua_binary_create()",
                             op);
  to.zero_point = is_int8(result) ? output.zero_point : 0;
  return quantized_bounds(op, epilogue.activation, result, output, to.low, to.high, "epilogue.activation");
}

static bool is_unset(const skua_quantization& q) {
  return q.scale == 0 && !q.zero_point && !q.scales && !q.zero_points && !q.axis && !q.block_size &&
         q.scale_type == SKUA_DTYPE_F32;
}

skua_status quantized_residual(const char* op, const skua_epilogue& epilogue, Element result,
                               const skua_quantization& output, const skua_quantization& residual,
                               QuantizedResidual& to) {
  to = {0, 0};
  if (epilogue.residual == SKUA_RESIDUAL_NONE)
    return is_unset(residual) ? SKUA_STATUS_OK
                              : SKUA_INVALID("%s: residual_q is set, but epilogue.residual is NONE", op);
  if (!is_int8(result))
    return SKUA_UNSUPPORTED_(
        "%s: epilogue.residual is set with a result of %s; results of bytes take one, add it by skua_binary_create()",
        op, skua_dtype_name(skua_dtype(result)));
  if (epilogue.residual == SKUA_RESIDUAL_AFTER_ACTIVATION && epilogue.activation.kind != SKUA_ACTIVATION_NONE)
    return SKUA_UNSUPPORTED_(
        "%s: epilogue.residual is AFTER_ACTIVATION; of bytes it is added before, or by skua_binary_create()", op);
  SKUA_TRY(need_quantization(op, "residual_q", residual, skua_dtype(result)));
  to = {sum_scale(double(residual.scale), 1.0, double(output.scale)), residual.zero_point};
  if (to.scale > kMostResidualScale) to.scale = kMostResidualScale;
  return SKUA_STATUS_OK;
}

skua_status need_requantization(const char* op, const skua_requantization& r, Element result, size_t channels,
                                skua_residual residual) {
  if (unsigned(r.rounding) > SKUA_ROUNDING_SINGLE)
    return SKUA_INVALID("%s: requantization.rounding is %d, unknown", op, int(r.rounding));
  if (!r.multipliers != !r.shifts)
    return SKUA_INVALID("%s: requantization has %s without %s", op, r.shifts ? "shifts" : "multipliers",
                        r.shifts ? "multipliers" : "shifts");
  if (r.rounding == SKUA_ROUNDING_FLOAT)
    return r.shifts ? SKUA_INVALID("%s: requantization.multipliers is set, but rounding is FLOAT", op) : SKUA_STATUS_OK;
  const char* rounding = r.rounding == SKUA_ROUNDING_DOUBLE ? "DOUBLE" : "SINGLE";
  if (!is_int8(result))
    return SKUA_UNSUPPORTED_("%s: requantization.rounding is %s with a result of %s, must be s8 or u8", op, rounding,
                             skua_dtype_name(skua_dtype(result)));
  if (residual != SKUA_RESIDUAL_NONE)
    return SKUA_UNSUPPORTED_(
        "%s: requantization.rounding is %s beside a residual, which is added in float arithmetic only", op, rounding);
  for (size_t i = 0; r.shifts && i < channels; ++i)
    if (!are_fixed_scales(r.multipliers + i, r.shifts + i, 1))
      return SKUA_INVALID(
          "%s: requantization.multipliers[%zu] is %d and shifts[%zu] is %d, must be 0 or more and -31..30", op, i,
          int(r.multipliers[i]), i, int(r.shifts[i]));
  return SKUA_STATUS_OK;
}

skua_status need_no_requantization(const char* op, const skua_quantization& residual, const skua_requantization& r) {
  if (r.rounding != SKUA_ROUNDING_FLOAT || r.multipliers || r.shifts)
    return SKUA_INVALID("%s: requantization is set, but nothing is requantised", op);
  return need_unquantized(op, "residual_q", residual);
}

FixedScale fixed_scale(double scale) {
  int exponent = 0;
  auto multiplier = int64_t(round(frexp(scale, &exponent) * 2147483648.0));
  if (multiplier == int64_t(1) << 31) multiplier /= 2, ++exponent;
  if (exponent < -31) return {0, 0};
  if (exponent > 30) return {INT32_MAX, 30};
  return {int32_t(multiplier), exponent};
}
FixedScale sum_scale_fixed(const skua_quantization& input, const skua_quantization& weight, size_t channel,
                           const skua_quantization& output, const skua_requantization& r) {
  if (r.shifts) return {r.multipliers[channel], r.shifts[channel]};
  return fixed_scale(double(input.scale) * double(weight.scales ? weight.scales[channel] : weight.scale) /
                     double(output.scale));
}
bool are_fixed_scales(const int32_t* multipliers, const int32_t* shifts, size_t n) {
  bool fine = true;
  for (size_t i = 0; i < n; ++i) fine &= multipliers[i] >= 0 && shifts[i] >= -31 && shifts[i] <= 30;
  return fine;
}

}  // namespace skua
