// What the product's creation and its plans share.
#pragma once
#include <skua/gemm.h>
#include "gemm/driver.h"

namespace skua {

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
};

struct GemmOp : skua_op {
  GemmConfig config;
  Activation activation;
  const float* bias;    // round_up(n, vector) values
  const void* packed;   // panels of a constant B
};

inline GemmTypes types_of(const GemmConfig& c) {
  const bool strict = c.numerics == SKUA_NUMERICS_STRICT;
  return {c.a_type, c.c_type, strict, 0, strict && c.constant_b && c.b_type == Element::f32};
}

inline size_t gemm_bias_floats(const GemmConfig& c) { return c.has_bias ? round_up(size_t(c.n), 16) : 0; }

extern const OpClass gemm_class;
skua_status gemm_remake(const skua_op* op, const skua_tensor* inputs, uint32_t wanted, skua_op** out);  // OpClass::remake

}  // namespace skua
