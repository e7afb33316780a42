// Products of a float A, quantised row by row as it is read, and constant weights in 8 or 4 bits. dynamic.cc plans and runs, dynamic_create.cc checks and packs.
#pragma once
#include <skua/gemm.h>
#include "gemm/driver.h"
#include "gemm/dynamic_kernel.h"

namespace skua {

struct DynamicConfig {
  Element a_type, c_type, b_type, scale_type;  // b_type: s8 or s4
  uint8_t has_bias, has_zeros, unsigned_a;
  uint8_t unused;
  uint32_t block;      // of the depth that has one scale, a multiple of 8; s4 only
  uint32_t nr;         // columns of a panel; s4
  PackFormat format;   // s8
  skua_activation activation;
  uint64_t n, k;
};

struct DynamicOp : skua_op {
  DynamicConfig config;
  float low, high;
  const float *bias, *scales, *sums;  // dynamic_vector() values: NULL or f32; s8: scales of columns; sums of the weights of a column, s8: s32, s4: f32, scaled
  const char* panels;
};

inline size_t dynamic_vector(const DynamicConfig& c) { return round_up(size_t(c.n), 64); }
inline size_t dynamic_blocks(const DynamicConfig& c) { return ceil_div(size_t(c.k), c.block); }
inline size_t dynamic_depth(const DynamicConfig& c) { return c.b_type == Element::s4 ? dynamic_blocks(c) * c.block : round_up(size_t(c.k), 32); }  // bytes of a quantised row
bool dynamic_sizes(const DynamicConfig& c, size_t& vectors, size_t& total);  // bytes of the weights block, and of what is before the panels; false: overflow

extern const OpClass gemm_dynamic_class;
skua_status dynamic_create(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias, skua_op** out);
// Tile of s8 and its A; NULL = none.
const Kernel* dynamic_tile(const skua_context* ctx, const DynamicConfig& c, size_t m, const PackFormat* format, bool is_unsigned);

}  // namespace skua
