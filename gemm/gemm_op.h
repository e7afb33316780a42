// What the product's creation and its plans share.
#pragma once
#include <skua/gemm.h>
#include "gemm/driver.h"

namespace skua {

// Products of bytes: zero points of A, of B as given, and of C, bounds of C less its zero point (C of floats: real
// ones), and the scale of sums, where it is one for all columns.
struct GemmQuantized {
  int32_t a_zero, b_zero, zero;
  float low, high, scale;
  // skua_rounding; not FLOAT: `fixed` is in the place of scale, and scales of columns are multipliers, shifts behind
  // them
  uint32_t rounding;
  FixedScale fixed;
  QuantizedResidual residual;
  // columns of B have zero points of their own: as packed, behind the other vectors of columns; b_zero is 0
  uint32_t each_zero;
};

struct GemmConfig {
  uint8_t transpose_a, transpose_b, constant_b, has_bias;
  Element a_type, c_type;  // in memory; a dynamic B and the residual are of these
  uint8_t numerics;
  Element b_type;          // as given; what is packed says the format
  uint32_t residual;
  float alpha, beta;
  skua_activation activation;
  PackFormat format;   // of a constant B
  uint64_t n, k;       // of a constant B, or n of the bias
  GemmQuantized q;     // of bytes; else zeros
  uint64_t small;      // bytes: sums_small(); else 0
};

struct GemmOp : skua_op {
  GemmConfig config;
  Activation activation;
  const float* bias;    // round_up(n, vector) values
  const int32_t* offset;  // bytes, likewise: where sums start; of a B that is an input its bias, or NULL
  const float* scale;     // likewise; NULL: B is an input
  const int32_t* shift;   // likewise, in fixed point
  const int32_t* b_zeros; // likewise, where columns have zero points of their own
  bool fits, small, above_least;  // bytes: scales_fit(), sums_small(), all_above_least()
  const void* packed;   // panels of a constant B
};

inline GemmTypes types_of(const GemmConfig& c) {
  const bool strict = c.numerics == SKUA_NUMERICS_STRICT;
  return {.a = c.a_type,
          .c = c.c_type,
          .strict = strict,
          .exact_b = strict && c.constant_b && c.b_type == Element::f32,
          .b_zero = is_int8(c.a_type) && (c.q.b_zero != 0 || c.q.each_zero || c.b_type == Element::u8),
          .in_place = !c.constant_b && !c.transpose_b};
}

// Vectors of columns that a product of bytes has: offsets, scales, in fixed point shifts, zero points.
inline size_t gemm_column_vectors(const GemmConfig& c) {
  return 2 + (c.q.rounding != SKUA_ROUNDING_FLOAT) + (c.q.each_zero != 0);
}
// In front of the panels: the bias; of bytes these vectors, or the bias alone.
inline size_t gemm_bias_floats(const GemmConfig& c) {
  const size_t one = round_up(size_t(c.n), 16);
  return is_int8(c.a_type) && c.constant_b ? gemm_column_vectors(c) * one : c.has_bias ? one : 0;
}

struct GemmShape {
  static constexpr size_t kMaxBatch = SKUA_MAX_RANK - 2;
  size_t m, n, k;
  size_t batch_rank, batch[kMaxBatch];                                                // of the output
  // elements per batch index; 0 where it repeats
  size_t a_step[kMaxBatch], b_step[kMaxBatch], c_step[kMaxBatch], r_step[kMaxBatch];
  size_t batches;
  size_t lda, ldb, ldc, ldr;
};
// shape.cc: checks the inputs and gives the output's shape; after its strides are final, ldc and c_step.
skua_status gemm_shape(const skua_op* op, const GemmConfig& c, const PlanShapes& s, GemmShape& p, skua_tensor& y);
skua_status gemm_output(const skua_tensor& y, GemmShape& p);

// int8.cc
skua_status gemm_create_bytes(skua_context* context, const skua_gemm_desc& d, const void* b, const int32_t* bias,
                              skua_op** out);
bool gemm_open_bytes(GemmOp& op);  // false: the blob is damaged
skua_status check_gemm_shape(const skua_gemm_desc& d, const void* b, const void* bias);  // create.cc
// offset[j] = bias[j] - (a_zero + shift) * (sums[j] - depth * b_zero), modulo 2^32; `offset` holds the sums of B as
// given. NULL = no bias. b_zeros: of each column; NULL = q.b_zero.
void gemm_offsets(const GemmQuantized& q, const Kernel* tile, size_t n, size_t depth, const int32_t* bias,
                  int32_t* offset, const int32_t* b_zeros = nullptr);

extern const OpClass gemm_class;
// OpClass::remake
skua_status gemm_remake(const skua_op* op, const skua_tensor* inputs, uint32_t wanted, skua_op** out);

}  // namespace skua
