/* Elementwise operators: unary, binary with broadcasting, select. Any rank up to SKUA_MAX_RANK, any strides (dense is
 * fastest). In place is allowed: an output may be exactly an input of the same shape and strides; the same address with
 * others is refused.
 *
 * Types:
 *   f32, f16, bf16, one for all inputs and the output;
 *   s8 and u8 with their quantisations (docs/quantization.md), the same bits on every CPU: all unary functions (s8 to
 *     u8 and back too), ADD, SUB, MUL, DIV, MIN, MAX, SQUARED_DIFFERENCE and PRELU of any scales with activations NONE,
 *     RELU, RELU6 and CLAMP.
 *
 * The functions are computed as in f32 and rounded once to the type. Where the CPU computes in f16 those of a few
 * operations may be computed in f16 and, unless a unary operator's numerics is STRICT, EXP and LOG to 1 ULP of f16,
 * SIGMOID to 2, TANH to 3, SILU to 3 and 2^-20, GELU_TANH to 2 and 2^-12 (elementwise/README.md). */
#ifndef SKUA_ELEMENTWISE_H_
#define SKUA_ELEMENTWISE_H_

#include <string.h>
#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NaN gives NaN everywhere (sign: NaN; comparisons of binary operators: 0, NOT_EQUAL: 1). Error bounds in ULP:
 * elementwise/README.md. */
typedef enum skua_unary_kind {
  SKUA_UNARY_RELU = 0,     /* max(x, 0) */
  SKUA_UNARY_RELU6,        /* min(max(x, 0), 6) */
  SKUA_UNARY_CLAMP,        /* min(max(x, a), b), a <= b */
  SKUA_UNARY_LEAKY_RELU,   /* x < 0 ? a*x : x */
  SKUA_UNARY_ELU,          /* x < 0 ? a*(exp(x)-1) : x */
  SKUA_UNARY_SELU,         /* 1.0507010 * (x < 0 ? 1.6732632*(exp(x)-1) : x) */
  SKUA_UNARY_SIGMOID,      /* 1 / (1 + exp(-x)) */
  SKUA_UNARY_TANH,
  SKUA_UNARY_HARD_SIGMOID, /* min(max(x/6 + 1/2, 0), 1) */
  SKUA_UNARY_HARD_SWISH,   /* x * hard_sigmoid(x) */
  SKUA_UNARY_SILU,         /* x * sigmoid(x) */
  SKUA_UNARY_MISH,         /* x * tanh(softplus(x)) */
  SKUA_UNARY_GELU,         /* x/2 * (1 + erf(x/sqrt 2)) */
  SKUA_UNARY_GELU_TANH,    /* x/2 * (1 + tanh(sqrt(2/pi)*(x + 0.044715 x^3))) */
  SKUA_UNARY_SOFTPLUS,     /* log(1 + exp(x)) */
  SKUA_UNARY_EXP,
  SKUA_UNARY_LOG,          /* log(0) = -inf, x < 0: NaN */
  SKUA_UNARY_SQRT,         /* x < 0: NaN */
  SKUA_UNARY_RSQRT,        /* 1 / sqrt(x) */
  SKUA_UNARY_RECIPROCAL,   /* 1 / x */
  SKUA_UNARY_ABS,
  SKUA_UNARY_NEG,
  SKUA_UNARY_SQUARE,
  SKUA_UNARY_FLOOR,
  SKUA_UNARY_CEIL,
  SKUA_UNARY_ROUND,        /* to nearest, ties to even */
  SKUA_UNARY_TRUNC,
  SKUA_UNARY_SIGN,         /* -1, 0, 1; keeps -0 */
  SKUA_UNARY_ERF,
  SKUA_UNARY_SIN,
  SKUA_UNARY_COS,
  SKUA_UNARY_KIND_COUNT
} skua_unary_kind;

typedef struct skua_unary_desc {
  size_t struct_size;
  skua_unary_kind kind;
  skua_dtype input_type, output_type;
  float a, b; /* parameters, as in the list above */
  skua_quantization input_q, output_q;
  skua_numerics numerics; /* STRICT: those six as in f32, rounded once */
} skua_unary_desc;

static inline skua_unary_desc skua_unary_desc_init(void) {
  skua_unary_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_unary_desc);
  return d;
}
#define SKUA_UNARY_DESC_INIT skua_unary_desc_init()

/* Input: x. Output: y, x's shape. PReLU has a slope per channel: it is a binary operator. */
SKUA_API skua_status skua_unary_create(skua_context* context, const skua_unary_desc* desc, skua_op** out);

typedef enum skua_binary_kind {
  SKUA_BINARY_ADD = 0,
  SKUA_BINARY_SUB,
  SKUA_BINARY_MUL,
  SKUA_BINARY_DIV,
  SKUA_BINARY_MIN,                /* NaN in either gives NaN */
  SKUA_BINARY_MAX,
  SKUA_BINARY_POW,                /* x^y, special cases as C's pow */
  SKUA_BINARY_SQUARED_DIFFERENCE, /* (x - y)^2 */
  SKUA_BINARY_COPYSIGN,           /* |x| with the sign of y */
  SKUA_BINARY_PRELU,              /* x < 0 ? x*y : x, y = slope, usually of shape [C] */
  SKUA_BINARY_EQUAL,              /* 1 or 0 in the input's type; with NaN only NOT_EQUAL is 1 */
  SKUA_BINARY_NOT_EQUAL,
  SKUA_BINARY_LESS,
  SKUA_BINARY_LESS_EQUAL,
  SKUA_BINARY_GREATER,
  SKUA_BINARY_GREATER_EQUAL,
  SKUA_BINARY_KIND_COUNT
} skua_binary_kind;

/* Inputs: x, y; shapes broadcast as in NumPy (aligned at the innermost dimension; an extent of 1 repeats). Of 16-bit
 * types an activation that is not a clamp takes the rounded result. */
typedef struct skua_binary_desc {
  size_t struct_size;
  skua_binary_kind kind;
  skua_dtype type;
  skua_activation activation;
  skua_quantization x_q, y_q, output_q;
} skua_binary_desc;

static inline skua_binary_desc skua_binary_desc_init(void) {
  skua_binary_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_binary_desc);
  return d;
}
#define SKUA_BINARY_DESC_INIT skua_binary_desc_init()

SKUA_API skua_status skua_binary_create(skua_context* context, const skua_binary_desc* desc, skua_op** out);

/* Inputs: condition, x, y, broadcast against each other. Output: condition != 0 ? x : y (NaN counts as not 0). Of f32,
 * f16 or bf16; x and y are moved bit by bit. */
typedef struct skua_select_desc {
  size_t struct_size;
  skua_dtype type; /* of all four */
} skua_select_desc;

static inline skua_select_desc skua_select_desc_init(void) {
  skua_select_desc d;
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof(skua_select_desc);
  return d;
}
#define SKUA_SELECT_DESC_INIT skua_select_desc_init()

SKUA_API skua_status skua_select_create(skua_context* context, const skua_select_desc* desc, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
