/* Operators that move data and compute nothing: bits are kept, NaN payloads included. Elements of 32, 16 and 8 bits:
 * f32, s32, f16, bf16, s8, u8. And conversion between types. */
#ifndef SKUA_DATA_H_
#define SKUA_DATA_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y[i[perm[0]], i[perm[1]], ...] = x[i]: output dimension d is input dimension perm[d], as in NumPy. Any
 * input strides. */
typedef struct skua_transpose_desc {
  size_t struct_size;
  skua_dtype type;
  uint32_t rank;
  uint32_t perm[SKUA_MAX_RANK];
} skua_transpose_desc;
static inline skua_transpose_desc skua_transpose_desc_init(void) {
  skua_transpose_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_transpose_desc);
  return d;
}
#define SKUA_TRANSPOSE_DESC_INIT skua_transpose_desc_init()
SKUA_API skua_status skua_transpose_create(skua_context* context, const skua_transpose_desc* desc, skua_op** out);

/* NHWC -> NCHW or back: the transpose that networks need most. Rank 4. */
typedef struct skua_layout_desc {
  size_t struct_size;
  skua_dtype type;
  skua_layout from, to;
} skua_layout_desc;
static inline skua_layout_desc skua_layout_desc_init(void) {
  skua_layout_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_layout_desc);
  return d;
}
#define SKUA_LAYOUT_DESC_INIT skua_layout_desc_init()
SKUA_API skua_status skua_layout_create(skua_context* context, const skua_layout_desc* desc, skua_op** out);

typedef enum skua_pad_mode {
  SKUA_PAD_CONSTANT = 0,
  SKUA_PAD_REFLECT = 1, /* mirrored without the edge: before, after < extent */
  SKUA_PAD_EDGE = 2     /* the edge repeated: extent >= 1 */
} skua_pad_mode;

typedef struct skua_pad_desc {
  size_t struct_size;
  skua_dtype type;
  skua_pad_mode mode;
  uint32_t rank;
  size_t before[SKUA_MAX_RANK], after[SKUA_MAX_RANK];
  /* CONSTANT; converted to the type. Of s32, s8 and u8 it is the stored integer (rounded to nearest even, saturated;
   * NaN: 0): the tensor's zero point pads with real 0, round(v / scale) + zero_point with real v */
  float value;
} skua_pad_desc;
static inline skua_pad_desc skua_pad_desc_init(void) {
  skua_pad_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_pad_desc);
  return d;
}
#define SKUA_PAD_DESC_INIT skua_pad_desc_init()
SKUA_API skua_status skua_pad_create(skua_context* context, const skua_pad_desc* desc, skua_op** out);

/* y = x[begin : begin + size*step : step] per dimension. A size of SIZE_MAX means up to the end. step >= 1. */
typedef struct skua_slice_desc {
  size_t struct_size;
  skua_dtype type;
  uint32_t rank;
  size_t begin[SKUA_MAX_RANK], size[SKUA_MAX_RANK], step[SKUA_MAX_RANK];
} skua_slice_desc;
static inline skua_slice_desc skua_slice_desc_init(void) {
  skua_slice_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_slice_desc); d.step[0] = 1; d.step[1] = 1; d.step[2] = 1; d.step[3] = 1;
  d.step[4] = 1; d.step[5] = 1;
  return d;
}
#define SKUA_SLICE_DESC_INIT skua_slice_desc_init()
SKUA_API skua_status skua_slice_create(skua_context* context, const skua_slice_desc* desc, skua_op** out);

/* Inputs: 1 to 64 tensors equal in all dimensions but `axis`. */
typedef struct skua_concat_desc {
  size_t struct_size;
  skua_dtype type;
  int32_t axis; /* negative counts from the end */
} skua_concat_desc;
static inline skua_concat_desc skua_concat_desc_init(void) {
  skua_concat_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_concat_desc);
  return d;
}
#define SKUA_CONCAT_DESC_INIT skua_concat_desc_init()
SKUA_API skua_status skua_concat_create(skua_context* context, const skua_concat_desc* desc, skua_op** out);

/* DEPTH_TO_SPACE: [N, H, W, C] -> [N, H*b, W*b, C/(b*b)], channel ((y % b)*b + x % b)*C' + c; SPACE_TO_DEPTH is its
 *   inverse (TensorFlow's order).
 * CHANNEL_SHUFFLE: channels seen as [groups][C/groups] are transposed to [C/groups][groups].
 * All in either layout. */
typedef enum skua_rearrange_kind {
  SKUA_REARRANGE_DEPTH_TO_SPACE = 0,
  SKUA_REARRANGE_SPACE_TO_DEPTH = 1,
  SKUA_REARRANGE_CHANNEL_SHUFFLE = 2
} skua_rearrange_kind;

typedef struct skua_rearrange_desc {
  size_t struct_size;
  skua_rearrange_kind kind;
  skua_dtype type;
  skua_layout layout;
  uint32_t block; /* b, or groups */
} skua_rearrange_desc;
static inline skua_rearrange_desc skua_rearrange_desc_init(void) {
  skua_rearrange_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_rearrange_desc);
  return d;
}
#define SKUA_REARRANGE_DESC_INIT skua_rearrange_desc_init()
SKUA_API skua_status skua_rearrange_create(skua_context* context, const skua_rearrange_desc* desc, skua_op** out);

/* Conversion between element types: f32, f16, bf16, s8 and u8, each to each. Any rank, any strides.
 *
 * Widening is exact; narrowing rounds to nearest even, beyond the largest number to infinity, below the smallest normal
 * one to denormals. NaN stays NaN (with its sign and the upper bits of its payload, but on AArch32).
 *
 * s8 and u8 have a quantisation, per tensor or per channel (`channels` scales along `axis`, any dimension); one
 * rounding to nearest even, saturating, the same bits on every CPU:
 *   quantise    q = clamp(nearest(x * f)) + zero_point, f = 1 / scale rounded to f32; NaN gives the zero point,
 *               infinities the ends
 *   dequantise  x = (q - zero_point) * scale, rounded to the type
 *   requantise  q = clamp(nearest((q0 - zero_point0) * f)) + zero_point, f = scale0 / scale rounded to f32
 * More in docs/quantization.md. */
typedef struct skua_convert_desc {
  size_t struct_size;
  skua_dtype input_type, output_type;
  skua_quantization input_q, output_q;
  size_t channels; /* number of scales where input_q or output_q has them; else 0 */
} skua_convert_desc;
static inline skua_convert_desc skua_convert_desc_init(void) {
  skua_convert_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_convert_desc);
  return d;
}
#define SKUA_CONVERT_DESC_INIT skua_convert_desc_init()
SKUA_API skua_status skua_convert_create(skua_context* context, const skua_convert_desc* desc, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
