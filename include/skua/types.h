/* Types shared by all operators: element types, tensors, buffers, quantisation, numerics, epilogues. */
#ifndef SKUA_TYPES_H_
#define SKUA_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <skua/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Values are stored in packed blobs: they never change. */
typedef enum skua_dtype {
  SKUA_DTYPE_F32 = 0,  /* IEEE 754 binary32; 0, so that a zeroed descriptor means f32 */
  SKUA_DTYPE_F16 = 1,  /* IEEE 754 binary16, stored as uint16_t */
  SKUA_DTYPE_BF16 = 2, /* upper half of a binary32, stored as uint16_t */
  SKUA_DTYPE_S8 = 3,   /* int8_t, with a skua_quantization */
  SKUA_DTYPE_U8 = 4,   /* uint8_t, with a skua_quantization */
  SKUA_DTYPE_S4 = 5,   /* -8..7, two values a byte, the even index in the low nibble; weights only */
  SKUA_DTYPE_S32 = 6   /* int32_t: indices (argmax), quantised bias */
} skua_dtype;

/* Name, e.g. "f32"; "?" for an unknown value. */
SKUA_API const char* skua_dtype_name(skua_dtype type);

/* Bits per element: 32, 16, 8 or 4; 0 for an unknown value. */
SKUA_API uint32_t skua_dtype_bits(skua_dtype type);

#define SKUA_MAX_RANK 6

/* Shape and strides of a tensor, without its data.
 *   shape[0..rank-1]: extents, outermost first; a dimension may be 0, then nothing is computed (a plan may ask for
 *     workspace all the same; a window over a whole map, and resize2d, need pixels).
 *   stride[0..rank-1]: elements from one index to the next. All zero means dense row-major. Other strides must not make
 *     two elements of an output overlap (elements of an input may); that of an extent of 1 may be anything. What an
 *     operator can use beyond dense is stated with the operator.
 * The innermost stride of the operators on feature maps must be 1 (channels of NHWC next to each other; the pixel
 * stride may be larger than the number of channels: a slice of the channels of a larger tensor is a valid input or
 * output, so concat and split cost nothing). */
typedef struct skua_tensor {
  skua_dtype type;
  uint32_t rank;
  size_t shape[SKUA_MAX_RANK];
  size_t stride[SKUA_MAX_RANK];
} skua_tensor;

/* A dense tensor of rank 1 to 4; for the others fill the struct. */
static inline skua_tensor skua_tensor_1d(skua_dtype type, size_t d0) {
  skua_tensor t = {type, 1, {0}, {0}};
  t.shape[0] = d0;
  return t;
}
static inline skua_tensor skua_tensor_2d(skua_dtype type, size_t d0, size_t d1) {
  skua_tensor t = {type, 2, {0}, {0}};
  t.shape[0] = d0; t.shape[1] = d1;
  return t;
}
static inline skua_tensor skua_tensor_3d(skua_dtype type, size_t d0, size_t d1, size_t d2) {
  skua_tensor t = {type, 3, {0}, {0}};
  t.shape[0] = d0; t.shape[1] = d1; t.shape[2] = d2;
  return t;
}
static inline skua_tensor skua_tensor_4d(skua_dtype type, size_t d0, size_t d1, size_t d2, size_t d3) {
  skua_tensor t = {type, 4, {0}, {0}};
  t.shape[0] = d0; t.shape[1] = d1; t.shape[2] = d2; t.shape[3] = d3;
  return t;
}

/* Memory that belongs to a device (see device.h). */
typedef struct skua_device_buffer skua_device_buffer;

/* Where a tensor's first element is: `offset` bytes behind `host` (CPU) or behind the start of `device` (GPU). One of
 * the two pointers.
 * Whether as much memory is there is the caller's to know. */
typedef struct skua_buffer {
  void* host;
  skua_device_buffer* device;
  size_t offset;
} skua_buffer;

/* `data`: any alignment that the element type allows. */
static inline skua_buffer skua_host_buffer(const void* data) {
  union { const void* c; void* p; } u; /* inputs are never written, so one buffer type serves both directions */
  skua_buffer b = {NULL, NULL, 0};
  u.c = data;
  b.host = u.p;
  return b;
}

/* Layout of feature maps. */
typedef enum skua_layout {
  SKUA_LAYOUT_NHWC = 0, /* [batch][height][width][channels]: the fast one */
  SKUA_LAYOUT_NCHW = 1  /* [batch][channels][height][width]: converted in the workspace */
} skua_layout;

/* How much rounding an operator may trade for speed. Bounds: docs/numerics.md. */
typedef enum skua_numerics {
  /* Plans call Winograd's F(4,3) in both directions winograd_f4x4, F(4,3) down and F(2,3) across winograd_f4x2, F(3,2)
   * of stride 2 winograd_f3x3_s2, F(2,5) winograd_f2x2_5x5 (docs/winograd.md). */

  /* Winograd F(2,3), F(4,3), F(2,5), F(3,2): at most 2.2 times the rms error of direct f32 sums; maps of f16 and bf16
   * (NHWC) take F(6,3) too, in f32: they are rounded by more. f16: products may be summed in f16, 64 terms at a time,
   * where the CPU does */
  SKUA_NUMERICS_DEFAULT = 0,
  /* f32 accumulation of the direct formula only; weights of bytes stay bytes; long functions
   * of f16 as in f32 (skua/elementwise.h) */
  SKUA_NUMERICS_STRICT = 1,
  /* also Winograd F(6,3) for f32 (about 8 times the rms error); f16: products may be summed in f16 altogether */
  SKUA_NUMERICS_FAST = 2
} skua_numerics;

/* real = scale * (q - zero_point). Per tensor, per channel (scales along an axis), or per block of consecutive elements
 * of the reduction (weights only). A zeroed struct means: not quantised; anything else on a float tensor is refused. */
typedef struct skua_quantization {
  float scale;                /* per tensor; > 0; not looked at beside scales */
  int32_t zero_point;         /* per tensor; 0 beside scales */
  /* per channel or block: channel_count * blocks values of scale_type (cast those of 16 bits), read at create;
   * NULL = per tensor */
  const float* scales;
  const int32_t* zero_points; /* likewise; NULL = all zero */
  uint32_t axis;              /* of the dimension that has a scale each: of weights that of the channels */
  uint32_t block_size;        /* 0 = none; else 32, 64, 128 or 256 elements of the reduction share a scale */
  skua_dtype scale_type;      /* F32; F16 or BF16 for block scales */
} skua_quantization;

/* How the exact sums of a quantised product or convolution become bytes; formulas in docs/quantization.md. */
typedef enum skua_rounding {
  SKUA_ROUNDING_FLOAT = 0, /* sum * scale in f32, to the nearest integer, ties to even */
  /* fixed point, rounded twice: gemmlowp's doubling high product, then a division by a power of two. TensorFlow
   * Lite's by default */
  SKUA_ROUNDING_DOUBLE = 1,
  SKUA_ROUNDING_SINGLE = 2 /* fixed point, rounded once: TensorFlow Lite's built with TFLITE_SINGLE_ROUNDING */
} skua_rounding;

/* Zeroed: SKUA_ROUNDING_FLOAT. Fixed point stands for a scale by multiplier * 2^(shift - 31); without arrays both come
 * from input scale * weight scale / output scale. */
typedef struct skua_requantization {
  skua_rounding rounding;
  /* one for each output channel or column (of a product whose B is an input: one), 0 or more; NULL = from the scales.
   * Read at create */
  const int32_t* multipliers;
  const int32_t* shifts; /* likewise, -31..30; both or neither */
} skua_requantization;

/* Activations that operators fuse; each is also a unary operator (elementwise.h). */
typedef enum skua_activation_kind {
  SKUA_ACTIVATION_NONE = 0,
  SKUA_ACTIVATION_RELU,         /* max(x, 0) */
  SKUA_ACTIVATION_RELU6,        /* min(max(x, 0), 6) */
  SKUA_ACTIVATION_CLAMP,        /* min(max(x, a), b), a <= b */
  SKUA_ACTIVATION_LEAKY_RELU,   /* x < 0 ? a*x : x */
  SKUA_ACTIVATION_ELU,          /* x < 0 ? a*(exp(x)-1) : x */
  SKUA_ACTIVATION_SIGMOID,      /* 1 / (1 + exp(-x)) */
  SKUA_ACTIVATION_TANH,
  SKUA_ACTIVATION_HARD_SIGMOID, /* min(max(x/6 + 1/2, 0), 1) */
  SKUA_ACTIVATION_HARD_SWISH,   /* x * hard_sigmoid(x) */
  SKUA_ACTIVATION_SILU,         /* x * sigmoid(x) */
  SKUA_ACTIVATION_MISH,         /* x * tanh(log(1 + exp(x))) */
  SKUA_ACTIVATION_GELU,         /* x/2 * (1 + erf(x/sqrt 2)) */
  SKUA_ACTIVATION_GELU_TANH,    /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
  SKUA_ACTIVATION_KIND_COUNT
} skua_activation_kind;

typedef struct skua_activation {
  skua_activation_kind kind;
  /* parameters, as in the list above; ignored where it names none. Real numbers, of bytes too: not in
   * steps of a scale */
  float a, b;
} skua_activation;

/* When a second input of the output's shape is added: y = act(x + r) or y = act(x) + r. */
typedef enum skua_residual {
  SKUA_RESIDUAL_NONE = 0,
  SKUA_RESIDUAL_BEFORE_ACTIVATION = 1,
  SKUA_RESIDUAL_AFTER_ACTIVATION = 2
} skua_residual;

/* What happens to a result while it is in registers or in the first-level cache. With a residual the operator takes one
 * more input, after its others. */
typedef struct skua_epilogue {
  skua_activation activation;
  skua_residual residual;
} skua_epilogue;

/* Opaque objects. Ops and plans never change after they are made: any number of threads may use one at once. */
typedef struct skua_context skua_context;
typedef struct skua_op skua_op;
typedef struct skua_plan skua_plan;
typedef struct skua_stream skua_stream;

#ifdef __cplusplus
}
#endif
#endif
