// What the product's creation and its plans share.
#pragma once
#include <skua/gemm.h>
#include "gemm/driver.h"

namespace skua {

struct GemmConfig {
  uint8_t transpose_a, transpose_b, constant_b, has_bias;
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
  const float* packed;  // panels of a constant B
};

inline size_t gemm_bias_floats(const GemmConfig& c) { return c.has_bias ? round_up(size_t(c.n), 16) : 0; }

extern const OpClass gemm_class;
skua_status gemm_remake(const skua_op* op, const skua_tensor* inputs, uint32_t wanted, skua_op** out);  // OpClass::remake

}  // namespace skua
