/* Resizing of feature maps. */
#ifndef SKUA_RESIZE_H_
#define SKUA_RESIZE_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_resize_kind { SKUA_RESIZE_NEAREST = 0, SKUA_RESIZE_BILINEAR = 1 } skua_resize_kind;

/* Source coordinate of output pixel o, per dimension (in, out: extents): */
typedef enum skua_resize_coordinates {
  SKUA_RESIZE_HALF_PIXEL = 0,    /* (o + 0.5) * in / out - 0.5 */
  SKUA_RESIZE_ALIGN_CORNERS = 1, /* o * (in - 1) / (out - 1); 0 when out is 1 */
  SKUA_RESIZE_ASYMMETRIC = 2     /* o * in / out */
} skua_resize_coordinates;

/* Input: x, rank 4. Output: y. Bilinear clamps neighbours to the image and blends horizontally, then vertically.
 * Nearest takes floor(coordinate) for ASYMMETRIC, and rounds (ties down for HALF_PIXEL, to even for ALIGN_CORNERS)
 * otherwise, clamped to the image.
 *
 * Types: f32, f16, bf16, s8 or u8, one for input and output (bytes: and one quantisation); blends are f32 and rounded
 * once, nearest moves bits. Weights of bytes are rounded to multiples of 1/256, so that their blends are the same bits
 * on every CPU (docs/quantization.md). */
typedef struct skua_resize2d_desc {
  size_t struct_size;
  skua_resize_kind kind;
  skua_resize_coordinates coordinates;
  skua_dtype type;
  skua_layout layout;
  uint32_t out_h, out_w; /* 1 or more */
  skua_quantization input_q, output_q;
} skua_resize2d_desc;

static inline skua_resize2d_desc skua_resize2d_desc_init(void) {
  skua_resize2d_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_resize2d_desc);
  return d;
}
#define SKUA_RESIZE2D_DESC_INIT skua_resize2d_desc_init()

SKUA_API skua_status skua_resize2d_create(skua_context* context, const skua_resize2d_desc* desc, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
