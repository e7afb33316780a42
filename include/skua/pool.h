/* Pooling on feature maps. */
#ifndef SKUA_POOL_H_
#define SKUA_POOL_H_

#include <string.h>
#include <skua/conv.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_pool_kind {
  SKUA_POOL_MAX = 0,     /* padding counts as -inf; a NaN in the window gives NaN */
  SKUA_POOL_AVERAGE = 1, /* padding counts as 0 */
  /* two outputs: the maximum, and (s32) its position y * in_w + x in the input plane; the first of equal ones in row
   * order; a NaN wins over numbers */
  SKUA_POOL_MAX_INDICES = 2
} skua_pool_kind;

/* Input: x, rank 4 in `layout` (rank 3 for 1D, kernel_h = 1). Outputs: y, and the indices for MAX_INDICES.
 *
 * out = floor((in + padding - dilation*(kernel-1) - 1) / stride) + 1, or ceil with ceil_mode; with ceil_mode a window
 * that would start outside the input and its top/left padding is dropped (PyTorch). Every window must touch the image:
 * padding < dilation*(kernel-1) + 1, or the plan is refused. An input of height or width 0 gives an output of 0 there.
 *
 * Types: f32, f16, bf16, s8 or u8, one for input and output;
 *   of bytes (docs/quantization.md): maxima keep the quantisation (input_q = output_q), AVERAGE is exact sums of at
 *     most 2^23 taps and one rounding, real zeros where padding counts; activations NONE, RELU, RELU6, CLAMP; averages
 *     of NCHW are taken plane by plane, slowly.
 *   Floats: averages are summed in f32 and rounded once, an activation that is no clamp may round once more.
 *
 * A dilation larger than the image with more than 4096 outputs in that dimension answers SKUA_STATUS_UNSUPPORTED. */
typedef struct skua_pool2d_desc {
  size_t struct_size;
  skua_pool_kind kind;
  skua_dtype type;
  skua_layout layout;
  bool global; /* the window is the whole plane; kernel, stride, padding are ignored */
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  skua_padding padding;
  bool ceil_mode;
  /* AVERAGE: divide by kernel_h*kernel_w (true) or by the pixels inside (false). What ceil_mode adds beyond the
   * padding never counts */
  bool count_padding;
  skua_activation activation;
  skua_quantization input_q, output_q;
} skua_pool2d_desc;

static inline skua_pool2d_desc skua_pool2d_desc_init(void) {
  skua_pool2d_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_pool2d_desc); d.kernel_h = 1; d.kernel_w = 1; d.stride_h = 1; d.stride_w = 1;
  d.dilation_h = 1; d.dilation_w = 1;
  return d;
}
#define SKUA_POOL2D_DESC_INIT skua_pool2d_desc_init()

SKUA_API skua_status skua_pool2d_create(skua_context* context, const skua_pool2d_desc* desc, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
