/* Reductions over any axes. */
#ifndef SKUA_REDUCE_H_
#define SKUA_REDUCE_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_reduce_kind {
  SKUA_REDUCE_SUM = 0,
  SKUA_REDUCE_MEAN,       /* of no elements: NaN */
  SKUA_REDUCE_MIN,        /* of no elements: +inf; NaN gives NaN */
  SKUA_REDUCE_MAX,        /* of no elements: -inf; NaN gives NaN */
  SKUA_REDUCE_PROD,
  SKUA_REDUCE_SUM_SQUARES,
  SKUA_REDUCE_ARGMIN,     /* s32 output; one axis only, of extent >= 1; the first of equal ones; a NaN wins */
  SKUA_REDUCE_ARGMAX,
  SKUA_REDUCE_KIND_COUNT
} skua_reduce_kind;

/* Input: x (dense). Output: the axes removed, or kept with extent 1.
 *
 * Types: f32, f16, bf16, s8 or u8, one for input and output; the output of ARGMIN and ARGMAX is s32 for each.
 *   Bytes (docs/quantization.md; not PROD, SUM_SQUARES): exact, then one rounding; sums and means of at most 65793
 *     elements; of none: the zero point, or an end of the type for MIN and MAX.
 *   Sums are f32, in an order that depends on the shape and the instruction set only, with several partial sums:
 *     error <= (2 + n/16 + log2 16) * eps * sum|x| for n elements, and one rounding to f16 or bf16. */
typedef struct skua_reduce_desc {
  size_t struct_size;
  skua_reduce_kind kind;
  skua_dtype type;
  uint32_t axis_count;             /* 0 = all axes */
  int32_t axes[SKUA_MAX_RANK];     /* negative counts from the end; no duplicates */
  bool keep_dims;
  skua_quantization input_q, output_q;
} skua_reduce_desc;

static inline skua_reduce_desc skua_reduce_desc_init(void) {
  skua_reduce_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_reduce_desc);
  return d;
}
#define SKUA_REDUCE_DESC_INIT skua_reduce_desc_init()

SKUA_API skua_status skua_reduce_create(skua_context* context, const skua_reduce_desc* desc, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
