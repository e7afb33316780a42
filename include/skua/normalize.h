/* Softmax and normalisations. */
#ifndef SKUA_NORMALIZE_H_
#define SKUA_NORMALIZE_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Over one axis: y = exp(x - max) / sum(exp(x - max)), or its logarithm x - max - log(sum(exp(x - max))). Dense input
 * and output (a free stride of the outermost dimension). A row with a NaN gives NaN in the whole row; a row of -inf
 * gives NaN. In place (same strides) is allowed. Elements at -inf are a mask and cost no more than others: added by an
 * ADD before it, or as the residual of the product; what is more than 80 below the row's largest may count as 0.
 *
 * Types: f32, f16 or bf16, one for input and output; or s8 and u8, each on either side, with their quantisation: the
 * same bits on every CPU, within one step of the real result (docs/quantization.md); an output scale of 1/256 and the
 * type's first value as zero point hold all that softmax can give.
 *
 * Floats: sums are f32 for every type, of powers in f32. Results of f16 and bf16 are rounded once; where the
 * axis is not the last one, or longer than 2048, the powers too are rounded to the type before they are divided
 * by their sum. */
typedef struct skua_softmax_desc {
  size_t struct_size;
  skua_dtype input_type, output_type;
  int32_t axis;     /* negative counts from the end; INIT sets -1 */
  bool log;
  float scale;      /* x is multiplied by it first; INIT sets 1 */
  skua_quantization input_q, output_q;
} skua_softmax_desc;

static inline skua_softmax_desc skua_softmax_desc_init(void) {
  skua_softmax_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_softmax_desc); d.axis = -1; d.scale = 1.0f;
  return d;
}
#define SKUA_SOFTMAX_DESC_INIT skua_softmax_desc_init()

SKUA_API skua_status skua_softmax_create(skua_context* context, const skua_softmax_desc* desc, skua_op** out);

typedef enum skua_norm_kind {
  /* over the last `axes` dimensions: (x - mean) / sqrt(var + epsilon) * gamma + beta; gamma, beta: their product */
  SKUA_NORM_LAYER = 0,
  SKUA_NORM_RMS = 1,     /* over the last `axes` dimensions: x / sqrt(mean(x^2) + epsilon) * gamma */
  SKUA_NORM_BATCH = 2,   /* inference: (x - mean[c]) / sqrt(variance[c] + epsilon) * gamma[c] + beta[c] */
  SKUA_NORM_GROUP = 3,   /* over the channels of a group and all pixels, per image; gamma, beta per channel */
  SKUA_NORM_INSTANCE = 4 /* over all pixels, per image and channel; gamma, beta per channel */
} skua_norm_kind;

/* var is the mean of squared deviations (not the unbiased estimate).
 * Types: f32, f16 or bf16, one for input and output; everything else, gamma and beta too, is f32 for every type; sums
 * in an order that shapes and strides fix, two passes.
 * Channels: the last dimension (NHWC) or the second one (NCHW). In place (same strides) is allowed. */
typedef struct skua_norm_desc {
  size_t struct_size;
  skua_norm_kind kind;
  skua_dtype type;
  skua_layout layout;  /* BATCH, GROUP, INSTANCE: where the channels are */
  uint32_t axes;       /* LAYER, RMS: number of trailing dimensions, 1 or more; INIT sets 1 */
  uint32_t groups;     /* GROUP */
  size_t channels;     /* number of values in gamma, beta, mean, variance */
  float epsilon;       /* INIT sets 1e-5 */
} skua_norm_desc;

static inline skua_norm_desc skua_norm_desc_init(void) {
  skua_norm_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_norm_desc); d.axes = 1; d.groups = 1; d.epsilon = 1e-5f;
  return d;
}
#define SKUA_NORM_DESC_INIT skua_norm_desc_init()

/* gamma (NULL = 1) and beta (NULL = 0; not for RMS) of `channels` f32 values; mean and variance: BATCH only, both
 * required there. Copied. */
SKUA_API skua_status skua_norm_create(skua_context* context, const skua_norm_desc* desc, const float* gamma,
                                      const float* beta, const float* mean, const float* variance, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
