/* Matrix products. Row major throughout. */
#ifndef SKUA_GEMM_H_
#define SKUA_GEMM_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* C = act(alpha * op(A) * op(B) + beta * C + bias), batched; fully connected layers with constant, packed B.
 *
 * Inputs: A, then B if it is not constant, then the residual if the epilogue has one. Output: C.
 *   A [..., M, K], or [..., K, M] with transpose_a        B [..., K, N], or [..., N, K] with transpose_b
 *   C [..., M, N]; leading dimensions broadcast as in NumPy.
 * A of rank 1 and 0 leading dimensions is not a matrix and is refused.
 *
 * The innermost stride of A, B, C must be 1; the others are free (lda, ldb, ldc, batch strides).
 * With beta != 0, C is read before it is written (and NaN in it counts); with beta == 0 it is only written.
 * K = 0 gives act(beta * C + bias). f32 sums each element in one chain over k = 0..K-1 (fused where the instruction set
 * of the chosen kernel has it: skua_plan_kernel()); up to 6 rows by a dynamic B with transpose_b, unless STRICT, in as
 * many chains as a vector has lanes, whose sums are added at the end.
 *
 * Four ways, by the types:
 *
 *                      a_type         constant B         dynamic B   c_type               bias   sums
 *   floats             f32 f16 bf16   a_type or f32      a_type      a_type or f32        f32    f32; f16: see below
 *   bytes              s8 u8          s8 u8              s8 u8       s8 u8 f32 f16 bf16   s32    exact
 *   quantize_a         f32 f16 bf16   s8 s4              none        a_type or f32        f32    exact in a block,
 *                                                                                                f32 over blocks
 *   quantised weights  f32 f16 bf16   s8 s4              none        a_type or f32        f32    f32
 *
 * (on a GPU there are no quantised weights)
 *
 * Floats:
 *   sums are rounded once to c_type, the residual's type too.
 *   DEFAULT and FAST may round a B of f32 to a_type when it is packed, in f16 to infinity from 65520 on;
 *     STRICT does not.
 *   Where the CPU multiplies in f16, DEFAULT sums f16 products in blocks of at most 64 in f16, which overflow at 65504,
 *     FAST all of them; STRICT none.
 *
 * Bytes:
 *   A and B with any zero point but B of s8, which has none; a constant B may have a scale for each column (b_q.scales;
 *     b_q.axis the dimension of N), one of u8 also a zero point for each (b_q.zero_points).
 *   bias + (A - a_zero) * (B - b_zero) is exact in 32 bits, the bias in units of a_q.scale * b_q.scale;
 *     docs/quantization.md tells how it is requantised: the same bits on every CPU. A float C is the sum
 *     times both scales.
 *   Activations are clamps; alpha 1, beta 0.
 *   A residual is of c_type, s8 or u8, with residual_q, and added before the activation; not in fixed point
 *     (requantization).
 *
 * quantize_a:
 *   each row of A becomes bytes over its range and 0 (docs/quantization.md), and C = row scale * sum over the blocks of
 *     B (scale * products) + bias.
 *   A row with NaN or infinity gives any values in its own row of C; one whose range is below 1e-30 or above 3e38 loses
 *     accuracy, as do weights whose scales bring row scale * scale out of the range of f32.
 *   K is 65536 at most with s8.
 *
 * Quantised weights, without quantize_a:
 *   weights become floats, scale * (q - zero point), and all is summed in f32, one chain over k, whatever a_type is;
 *   a zero point costs one more rounding of scale * zero point, so a weight at its zero point may be tiny instead of 0,
 *     and an infinity in A infinite instead of NaN there.
 *   K and the rows of A have no further limits.
 *
 * Both:
 *   B of s8 has a scale for the tensor or for each column.
 *   B of s4 (-8..7, two's complement, two values a byte, the even index in the low nibble; ldb, or the length of a
 *     row, is even) also one for each block_size = 32, 64, 128 or 256 of K of a column
 *     (scales[column * blocks + block], blocks = ceil(K / block_size), of scale_type, cast to the pointer; axis is
 *     1, that of N, or 0 with transpose_b), and zero_points of as many.
 *   One leading dimension of A may be above 1. transpose_a, residual, alpha and beta are not taken;
 *     activations are clamps.
 *
 * Other mixes are UNSUPPORTED.
 *
 * A map of one pixel an image ([N, 1, 1, C], as a global pool gives it) is the dense matrix [N, C]: describe the
 * same memory so. */
typedef struct skua_gemm_desc {
  size_t struct_size;
  skua_dtype a_type, b_type, c_type;
  bool transpose_a, transpose_b;
  float alpha, beta;                  /* taken as they are; the INIT macro sets 1 and 0 */
  /* of a constant B, required then; of a dynamic one 0, but n where there is a bias */
  size_t n, k;
  size_t ldb;                         /* elements from one row of the constant B, as stored, to the next; 0 = dense */
  skua_epilogue epilogue;
  skua_quantization a_q, b_q, c_q;
  skua_numerics numerics;
  size_t hint_m;                      /* M to choose the packed format for: any runs, some slower; 0 = unknown */
  /* float A, weights of s8 or s4: rows of A become bytes as they are read; else weights become floats */
  bool quantize_a;
  skua_quantization residual_q;       /* of a residual of bytes; zeroed without one */
  skua_requantization requantization; /* of sums of bytes, to bytes */
} skua_gemm_desc;

static inline skua_gemm_desc skua_gemm_desc_init(void) {
  skua_gemm_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_gemm_desc); d.alpha = 1.0f;
  return d;
}
#define SKUA_GEMM_DESC_INIT skua_gemm_desc_init()

/* b: constant B [K, N] (or [N, K] with transpose_b), packed now and not needed afterwards; NULL = B is an input.
 * bias: N values of f32, for half types too (s32 for quantised types), copied; NULL = none. */
SKUA_API skua_status skua_gemm_create(skua_context* context, const skua_gemm_desc* desc, const void* b,
                                      const void* bias, skua_op** out);

/* For people who only want a matrix product: C[m x n] = A[m x k] * B[k x n], row major, lda >= k, ldb >= n,
 * ldc >= n (elements).
 * Takes its workspace from the context's allocator. executor NULL = this thread. */
SKUA_API skua_status skua_gemm_f32(skua_context* context, size_t m, size_t n, size_t k, const float* a, size_t lda,
                                   const float* b, size_t ldb, float* c, size_t ldc, const skua_executor* executor);

#ifdef __cplusplus
}
#endif
#endif
