// Calibration helpers. See skua/quantize.h.
#include <skua/quantize.h>

#include <float.h>
#include <math.h>

#include "core/error.h"
#include "dispatch/element.h"

using namespace skua;

namespace {

constexpr double kLeastScale = 0x1p-100;

float scale_of(double range, double steps) {
  if (range == 0) return 1;
  const double scale = range / steps;
  return float(scale < kLeastScale ? kLeastScale : scale);
}

bool is_finite(float x) { return x - x == 0; }

}  // namespace

extern "C" {

skua_status skua_widen_range(const float* x, size_t n, float* min, float* max) {
  if (!min || !max) return SKUA_INVALID("widen_range: %s is NULL", min ? "max" : "min");
  if (n && !x) return SKUA_INVALID("widen_range: x is NULL");
  float low = *min, high = *max;
  for (size_t i = 0; i < n; ++i) {
    if (!is_finite(x[i])) continue;
    low = x[i] >= low ? low : x[i];  // also of a NaN
    high = x[i] <= high ? high : x[i];
  }
  *min = low;
  *max = high;
  return SKUA_STATUS_OK;
}

skua_status skua_choose_quantization(skua_dtype type, bool symmetric, float min, float max, skua_quantization* out) {
  if (!out) return SKUA_INVALID("choose_quantization: out is NULL");
  if (type != SKUA_DTYPE_S8 && type != SKUA_DTYPE_U8)
    return SKUA_INVALID("choose_quantization: type is %s, must be s8 or u8", skua_dtype_name(type));
  if (!is_finite(min) || !is_finite(max) || min > max)
    return SKUA_INVALID(
        "choose_quantization: the range is [%g, %g], must be finite with min <= max (inf, -inf: no value was seen)",
        double(min), double(max));
  const double low = min < 0 ? double(min) : 0, high = max > 0 ? double(max) : 0;
  const int32_t first = type == SKUA_DTYPE_S8 ? -128 : 0;
  *out = {};
  if (symmetric) {
    out->scale = scale_of(-low > high ? -low : high, 127);
    out->zero_point = first + 128;
    return SKUA_STATUS_OK;
  }
  out->scale = scale_of(high - low, 255);
  const double steps = rint(-low / double(out->scale));  // 0 or more
  out->zero_point = first + int32_t(steps > 255 ? 255 : steps);
  return SKUA_STATUS_OK;
}

skua_status skua_quantize_weights(const float* w, size_t outer, size_t channels, size_t inner, float* scales,
                                  int8_t* q) {
  size_t n;
  if (__builtin_mul_overflow(outer, channels, &n) || __builtin_mul_overflow(n, inner, &n))
    return SKUA_INVALID("quantize_weights: %zu x %zu x %zu are more than the address space", outer, channels, inner);
  if (n && (!w || !q)) return SKUA_INVALID("quantize_weights: %s is NULL", w ? "q" : "w");
  if (channels && !scales) return SKUA_INVALID("quantize_weights: scales is NULL");
  for (size_t i = 0; i < n; ++i)
    if (!is_finite(w[i])) return SKUA_INVALID("quantize_weights: w[%zu] is %g, must be finite", i, double(w[i]));
  for (size_t c = 0; c < channels; ++c) scales[c] = 0;
  const auto each = [&](auto fn) {
    for (size_t i = 0, o = 0; o < outer; ++o)
      for (size_t c = 0; c < channels; ++c)
        for (size_t k = 0; k < inner; ++k, ++i) fn(i, c);
  };
  each([&](size_t i, size_t c) { scales[c] = fabsf(w[i]) > scales[c] ? fabsf(w[i]) : scales[c]; });
  for (size_t c = 0; c < channels; ++c) scales[c] = scale_of(double(scales[c]), 127);
  each([&](size_t i, size_t c) {
    const double steps = rint(double(w[i]) / double(scales[c]));
    q[i] = int8_t(steps > 127 ? 127 : steps < -127 ? -127 : steps);
  });
  return SKUA_STATUS_OK;
}

skua_status skua_quantize_weights_s4(const float* w, size_t k, size_t n, bool transpose_b, uint32_t block_size,
                                     skua_dtype scale_type, void* scales, int32_t* zero_points, uint8_t* q) {
  size_t count;
  if (__builtin_mul_overflow(k, n, &count) || count > SIZE_MAX / sizeof(float))
    return SKUA_INVALID("quantize_weights_s4: %zu x %zu are more than the address space", k, n);
  if (block_size && block_size != 32 && block_size != 64 && block_size != 128 && block_size != 256)
    return SKUA_INVALID("quantize_weights_s4: block_size is %u, must be 0, 32, 64, 128 or 256", block_size);
  if (scale_type != SKUA_DTYPE_F32 && (!block_size || (scale_type != SKUA_DTYPE_F16 && scale_type != SKUA_DTYPE_BF16)))
    return SKUA_INVALID("quantize_weights_s4: scale_type is %s, must be f32%s", skua_dtype_name(scale_type),
                        block_size ? ", f16 or bf16" : " where block_size is 0");
  if (!count) return SKUA_STATUS_OK;
  if (!w || !scales || !q) return SKUA_INVALID("quantize_weights_s4: %s is NULL", !w ? "w" : !scales ? "scales" : "q");
  for (size_t i = 0; i < count; ++i)
    if (!is_finite(w[i])) return SKUA_INVALID("quantize_weights_s4: w[%zu] is %g, must be finite", i, double(w[i]));
  constexpr size_t kColumns = 64;  // at once, so that rows of B are read along the memory
  const size_t block = block_size ? block_size : k, blocks = (k - 1) / block + 1,
               row_bytes = (transpose_b ? k + 1 : n + 1) / 2;
  for (size_t first = 0; first < n; first += kColumns)
    for (size_t b = 0; b < blocks; ++b) {
      const size_t columns = n - first < kColumns ? n - first : kColumns, begin = b * block,
                   end = k - begin < block ? k : begin + block;
      const auto each = [&](auto fn) {  // columns in the inner loop, or steps
        for (size_t o = transpose_b ? 0 : begin; o < (transpose_b ? columns : end); ++o)
          for (size_t i = transpose_b ? begin : 0; i < (transpose_b ? end : columns); ++i) {
            const size_t j = transpose_b ? o : i, row = transpose_b ? first + o : o,
                         column = transpose_b ? i : first + i;
            fn(j, w[row * (transpose_b ? k : n) + column], q[row * row_bytes + column / 2], column % 2 != 0);
          }
      };
      float low[kColumns] = {}, high[kColumns] = {};
      double scale[kColumns];
      int32_t zero[kColumns];
      each([&](size_t j, float x, uint8_t&, bool) {
        low[j] = x < low[j] ? x : low[j];
        high[j] = x > high[j] ? x : high[j];
      });
      for (size_t j = 0; j < columns; ++j) {
        const size_t at = (first + j) * blocks + b;
        const double least = double(low[j]), most = double(high[j]);
        float s = zero_points             ? scale_of(most - least, 15)
                  : most / 7 > -least / 8 ? scale_of(most, 7)
                                          : scale_of(-least, 8);
        if (scale_type == SKUA_DTYPE_F16) {
          f16& to = static_cast<f16*>(scales)[at];
          narrow(s, to);
          if (!to.bits) to.bits = 1;
          s = widen(to);
        } else if (scale_type == SKUA_DTYPE_BF16) {
          bf16& to = static_cast<bf16*>(scales)[at];
          narrow(s, to);
          s = widen(to);
        } else {
          static_cast<float*>(scales)[at] = s;
        }
        if (!is_finite(s))
          return SKUA_INVALID("quantize_weights_s4: weights of column %zu reach %g, too large for a scale of %s",
                              first + j, most > -least ? most : least, skua_dtype_name(scale_type));
        scale[j] = double(s);
        const double steps = zero_points ? rint(-least / scale[j]) : 8;
        zero[j] = int32_t(steps > 15 ? 15 : steps) - 8;
        if (zero_points) zero_points[at] = zero[j];
      }
      each([&](size_t j, float x, uint8_t& to, bool upper) {
        const double steps = rint(double(x) / scale[j]) + zero[j];
        const int value = int(steps > 7 ? 7 : steps < -8 ? -8 : steps) & 15;
        to = uint8_t(upper ? to | value << 4 : value);
      });
    }
  return SKUA_STATUS_OK;
}

skua_status skua_quantize_bias(const float* bias, size_t channels, const skua_quantization* input,
                               const skua_quantization* weight, int32_t* q) {
  if (!input || !weight) return SKUA_INVALID("quantize_bias: %s is NULL", input ? "weight" : "input");
  if (channels && (!bias || !q)) return SKUA_INVALID("quantize_bias: %s is NULL", bias ? "q" : "bias");
  if (weight->block_size || weight->scale_type != SKUA_DTYPE_F32)
    return SKUA_INVALID("quantize_bias: weight has blocks or scales of 16 bits, whose bias is f32");
  const auto bad = [](float scale) { return !(scale > 0) || !is_finite(scale); };
  if (bad(input->scale))
    return SKUA_INVALID("quantize_bias: input.scale is %g, must be above 0 and finite", double(input->scale));
  for (size_t c = 0; c < channels; ++c) {
    const float scale = weight->scales ? weight->scales[c] : weight->scale;
    if (bad(scale))
      return SKUA_INVALID("quantize_bias: the weights' scale of channel %zu is %g, must be above 0 and finite", c,
                          double(scale));
    if (!is_finite(bias[c])) return SKUA_INVALID("quantize_bias: bias[%zu] is %g, must be finite", c, double(bias[c]));
    const double steps = rint(double(bias[c]) / (double(input->scale) * double(scale)));
    q[c] = steps >= 2147483647.0 ? INT32_MAX : steps <= -2147483648.0 ? INT32_MIN : int32_t(steps);
  }
  return SKUA_STATUS_OK;
}

}  // extern "C"
