/* Convolutions on feature maps. */
#ifndef SKUA_CONV_H_
#define SKUA_CONV_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_padding_mode {
  SKUA_PADDING_EXPLICIT = 0,  /* top, left, bottom, right as given (the other modes ignore them); zeroed = no padding */
  /* out = ceil(in / stride); an odd pixel of padding goes to the bottom / right (TensorFlow) */
  SKUA_PADDING_SAME_UPPER = 1,
  SKUA_PADDING_SAME_LOWER = 2 /* the same, the odd pixel to the top / left */
} skua_padding_mode;

typedef struct skua_padding {
  skua_padding_mode mode;
  uint32_t top, left, bottom, right;
} skua_padding;

/* How the caller's weights are stored (they are packed at create). I = input channels per group, O = all
 * output channels. */
typedef enum skua_weight_layout {
  SKUA_WEIGHTS_OHWI = 0, /* [O][kernel_h][kernel_w][I]: TensorFlow Lite */
  SKUA_WEIGHTS_OIHW = 1, /* [O][I][kernel_h][kernel_w]: PyTorch, ONNX */
  /* [kernel_h][kernel_w][I][O]: TensorFlow; with I = 1 also TensorFlow Lite's depthwise [1][h][w][O] */
  SKUA_WEIGHTS_HWIO = 2
} skua_weight_layout;

/* y[n, oy, ox, o] = act(bias[o] + sum over ky, kx, i of
 *                       x[n, oy*stride_h + ky*dilation_h - top, ox*stride_w + kx*dilation_w - left, g*I + i]
 *                       * w[o, ky, kx, i]),
 * g = o / (out_channels / groups), x = 0 outside the image.
 *
 * out = floor((in + padding - dilation*(kernel-1) - 1) / stride) + 1 per dimension; an input of height or width 0 gives
 * an output of 0 there, whatever the padding.
 *
 * Depthwise convolution is groups == in_channels, with channel multiplier out_channels / in_channels (output
 * channel c*multiplier + j belongs to input channel c). 1D convolution: kernel_h = 1 and tensors of rank 3,
 * [N, W, C] or [N, C, W].
 *
 * Input: x, then the residual if the epilogue has one (output's shape; not the output's own memory). The pixel, row and
 * batch strides of NHWC tensors are free.
 *
 *             input          weights                      output and residual   bias                        sums
 *   floats    f32 f16 bf16   the input's type or f32      the input's type      f32                         f32
 *   integers  s8 u8          s8 (a scale for each         s8 u8; f32 f16 bf16   s32, scale input * weight   exact
 *                            output channel or for all)   without residual; s8 to u8 and back too
 *
 * Floats:
 *   DEFAULT and FAST may round weights of f32 to the type when they are packed, in f16 to infinity from 65520 on
 *     (Winograd in f16: of their transform); STRICT does not.
 *   Where the CPU multiplies in f16, DEFAULT sums f16 products in blocks of at most 64 in f16, which overflow at 65504,
 *     FAST all of them; STRICT none.
 *   Results are rounded to the type once, after residual and activation, but for two algorithms: "depthwise" and
 *     "grouped" apply a residual, or an activation that is no clamp, to the rounded result and round again. Where
 *     "depthwise" sums in f16 the bias is rounded to f16.
 *   Winograd in f16 holds the transformed input in f16: it may become infinite for inputs beyond 16000, with FAST 2500.
 *   NCHW maps are computed in f32 and rounded once.
 *
 * Integers:
 *   input_q is per tensor, with any zero point; weight_q has zero point 0 and, for a scale each, the axis of O in
 *     weight_layout (0, or 3 of HWIO).
 *   Sums of 32 bits are scaled and rounded once, docs/quantization.md: the same bits on every CPU,
 *     whatever numerics says.
 *   On x86, and on Arm without dot products, 3x3 and 5x5 weights may be packed for Winograd, exact too, but up to 8
 *     bytes for a weight (11 of stride 2, 12 of 5x5); STRICT keeps them at one, and what is
 *     multiplied at once rounds up.
 *   Outside the image x is the input's zero point. NCHW maps are transposed in the workspace; activations are NONE,
 *     RELU, RELU6 and CLAMP.
 *   A residual has residual_q and is added before the activation; not to depthwise convolutions and not in fixed point
 *     (requantization).
 *   kernel_h * kernel_w * in_channels / groups may be 65536 at most. */
typedef struct skua_conv2d_desc {
  size_t struct_size;
  skua_dtype input_type, weight_type, output_type;
  skua_layout layout;                 /* of input, output and residual */
  skua_weight_layout weight_layout;
  /* all 1 or more */
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, groups;
  uint32_t in_channels, out_channels; /* of the tensors, not per group */
  skua_padding padding;
  skua_epilogue epilogue;
  skua_quantization input_q, weight_q, output_q;
  skua_numerics numerics;
  /* size to choose and pack an algorithm for, both or neither (one alone is an error); 0 = unknown: packed for the
   * direct form and for the winner at 56x56 (up to 5 times a 3x3 layer's weights, 7 of stride 2, 8 with FAST, 13 of
   * bytes; of groups more, hinted or not: those of 2 to 16 channels fill whole vectors each). Small and odd sizes gain
   * most from a hint */
  uint32_t hint_in_h, hint_in_w;
  skua_quantization residual_q;       /* of a residual of bytes; zeroed without one */
  skua_requantization requantization; /* of sums of bytes, to bytes */
} skua_conv2d_desc;

static inline skua_conv2d_desc skua_conv2d_desc_init(void) {
  skua_conv2d_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_conv2d_desc); d.kernel_h = 1; d.kernel_w = 1; d.stride_h = 1; d.stride_w = 1;
  d.dilation_h = 1; d.dilation_w = 1; d.groups = 1;
  return d;
}
#define SKUA_CONV2D_DESC_INIT skua_conv2d_desc_init()

/* weights: see weight_layout; bias: out_channels values of f32, for half types too (s32 for quantised types),
 * NULL = none. Both may be freed after the call. */
SKUA_API skua_status skua_conv2d_create(skua_context* context, const skua_conv2d_desc* desc, const void* weights,
                                        const void* bias, skua_op** out);

/* Transposed convolution (the gradient of a convolution with regard to its input): every input pixel adds its value
 * times the kernel at output pixel iy*stride_h + ky*dilation_h - top.
 *
 * out = stride*(in-1) + dilation*(kernel-1) + 1 - padding + output_padding per dimension; with SAME padding
 * out = in * stride.
 *
 * in_channels are the input's, out_channels the output's; weight layouts: O = out_channels, I = in_channels / groups.
 * stride_h * stride_w may be 4096 at most.
 *
 * Types: as for conv2d. */
typedef struct skua_conv2d_transpose_desc {
  size_t struct_size;
  skua_dtype input_type, weight_type, output_type;
  skua_layout layout;
  skua_weight_layout weight_layout;
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, groups;
  uint32_t in_channels, out_channels;
  skua_padding padding;
  uint32_t output_padding_h, output_padding_w; /* < stride; extra rows and columns at the bottom and right */
  skua_epilogue epilogue;
  skua_quantization input_q, weight_q, output_q;
  skua_numerics numerics;
  skua_quantization residual_q;                /* as conv2d's */
  skua_requantization requantization;
} skua_conv2d_transpose_desc;

static inline skua_conv2d_transpose_desc skua_conv2d_transpose_desc_init(void) {
  skua_conv2d_transpose_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_conv2d_transpose_desc); d.kernel_h = 1; d.kernel_w = 1; d.stride_h = 1;
  d.stride_w = 1; d.dilation_h = 1; d.dilation_w = 1; d.groups = 1;
  return d;
}
#define SKUA_CONV2D_TRANSPOSE_DESC_INIT skua_conv2d_transpose_desc_init()

SKUA_API skua_status skua_conv2d_transpose_create(skua_context* context, const skua_conv2d_transpose_desc* desc,
                                                  const void* weights, const void* bias, skua_op** out);

/* Inverted residual block (MobileNet V2 and later): expand, a 1x1 convolution; a depthwise one with its stride;
 * project, a 1x1 convolution; each with its bias and activation. The result is that of the three operators after each
 * other, bit for bit where conv2d takes the depthwise algorithm, but the expanded maps are computed a few rows at a
 * time and stay in the cache.
 *
 * expand and project: one group, no stride, no padding; depthwise: groups = in_channels = out_channels; NHWC; a
 * residual in project's epilogue only; one type of feature maps, f32, f16 or bf16, to which the expanded maps
 * are rounded too.
 *
 * Input: x, then project's residual if it has one (output's shape; may be x itself).
 *
 * Not tuned: it has one candidate, skua_op_tune() returns OK and remembers nothing. */
typedef struct skua_inverted_residual_desc {
  size_t struct_size;
  skua_conv2d_desc expand, depthwise, project;
} skua_inverted_residual_desc;

static inline skua_inverted_residual_desc skua_inverted_residual_desc_init(void) {
  skua_inverted_residual_desc d;
  d.struct_size = sizeof(skua_inverted_residual_desc);
  d.expand = d.depthwise = d.project = skua_conv2d_desc_init();
  return d;
}
#define SKUA_INVERTED_RESIDUAL_DESC_INIT skua_inverted_residual_desc_init()

/* weights, biases: of expand, depthwise and project, as for skua_conv2d_create(). biases NULL = none has one. All may
 * be freed after the call. */
SKUA_API skua_status skua_inverted_residual_create(skua_context* context, const skua_inverted_residual_desc* desc,
                                                   const void* const* weights, const void* const* biases,
                                                   skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
