/* Calibration: from floats that were seen to a skua_quantization, and weights to bytes. Plain functions: no context, no
 * allocation, one thread.
 * real = scale * (q - zero_point); the formulas of all operators are in docs/quantization.md. */
#ifndef SKUA_QUANTIZE_H_
#define SKUA_QUANTIZE_H_

#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Widens [*min, *max] to hold n floats; NaN and infinities are left out. Begin with {INFINITY, -INFINITY} (a NaN there
 * counts as nothing seen too), call it for every tensor that was seen. */
SKUA_API skua_status skua_widen_range(const float* x, size_t n, float* min, float* max);

/* Scale and zero point of s8 or u8 for reals in [min, max], which is widened to hold 0: 0 is always exact
 * (padding, relu).
 *   symmetric   scale = max(|min|, |max|) / 127, zero point 0 (u8: 128)
 *   otherwise   scale = (max - min) / 255, zero point = first - nearest(min / scale), within the type;
 *               first = -128 (u8: 0)
 * A range of 0 gives scale 1, one below 2^-100 the scale 2^-100. Other fields are cleared. INVALID_ARGUMENT: min or max
 * not finite (nothing was seen), min > max, another type. */
SKUA_API skua_status skua_choose_quantization(skua_dtype type, bool symmetric, float min, float max,
                                              skua_quantization* out);

/* Weights of s8, symmetric, a scale for each channel: w is [outer][channels][inner], dense (for the channels of the
 * last dimension inner is 1).
 * For each channel scales[c] = max |w| / 127 (1 if all are 0, 2^-100 at least), q = nearest(w / scales[c]), ties to
 * even. Weights must be finite. q has w's layout. */
SKUA_API skua_status skua_quantize_weights(const float* w, size_t outer, size_t channels, size_t inner, float* scales,
                                           int8_t* q);

/* Weights of s4 for a product: w is B as it is stored, dense: [k][n], or [n][k] with transpose_b.
 *
 * A scale for each column, or for each block_size = 32, 64, 128 or 256 of k of a column:
 * scales[column * blocks + block], blocks = ceil(k / block_size), of scale_type (f32 where block_size is 0).
 * zero_points: as many, or NULL for none.
 *   without   scale = max(max w / 7, -min w / 8), q = nearest(w / scale)
 *   with      of the range widened to hold 0: scale = (max - min) / 15, zero point = nearest(-min / scale) - 8,
 *             q = nearest(w / scale) + zero point
 * q within -8..7, ties to even; scale is rounded to its type first, and is 1 where all weights are 0, 2^-100 (f16:
 * 2^-24) at least. Weights must be finite, scales too: f16 ends at 65504.
 *
 * q: rows of ceil(length / 2) bytes, the even index in the low nibble; where the length of a row is odd,
 * skua_gemm_desc::ldb is one more. */
SKUA_API skua_status skua_quantize_weights_s4(const float* w, size_t k, size_t n, bool transpose_b, uint32_t block_size,
                                              skua_dtype scale_type, void* scales, int32_t* zero_points, uint8_t* q);

/* Biases of s32 in steps of the sums: q[c] = nearest(bias[c] / (input->scale * weight scale of c)), ties to even,
 * within the type; weight->scales, or weight->scale for all. Finite biases. Of an input or weights that are not s8 or
 * u8 there is none: their bias is f32. */
SKUA_API skua_status skua_quantize_bias(const float* bias, size_t channels, const skua_quantization* input,
                                        const skua_quantization* weight, int32_t* q);

#ifdef __cplusplus
}
#endif
#endif
