// Products of a float A and constant weights in 8 or 4 bits: of an A quantised row by row as it is read (dynamic.cc),
// or of an A and weights in float arithmetic (weights.cc).
// dynamic_create.cc checks and packs.
#pragma once
#include <skua/gemm.h>
#include "gemm/driver.h"
#include "gemm/weights_kernel.h"

namespace skua {

struct DynamicConfig {
  Element a_type, c_type, b_type, scale_type;  // b_type: s8 or s4
  uint8_t has_bias, has_zeros, unsigned_a;
  uint8_t in_floats;   // A is not quantised
  uint32_t block;      // of the depth that has one scale, a multiple of 8; 0 for s8 by a quantised A
  uint32_t nr;         // columns of a panel, likewise
  PackFormat format;   // of the tile of bytes, or in floats of f32; 0 for s4 by a quantised A
  skua_activation activation;
  uint64_t n, k;
};

struct DynamicPlan : skua_plan {
  KeptGrid grid;
  size_t m, rows_bytes, quant_bytes, sums_bytes;  // of the quantised A: all of it; in floats of few rows of f32
  size_t lda, ldc, a_batch, c_batch, batches;
  const Kernel* quantize;  // in floats what prepares rows; NULL = they are f32
  const Kernel* weights;   // in floats
  size_t panel_bytes;      // in floats, of a panel made f32; 0 = few rows
  size_t scratch;          // of a worker
  const Kernel* few;       // s4: takes nibbles apart, for pieces of few rows; `kernel` too, or one of many rows alone
  bool fetched_by_core, pages;  // GemmNibbles, GemmWeights
  size_t rows() const { return m * batches; }
};

struct DynamicOp : skua_op {
  DynamicConfig config;
  float low, high;
  // dynamic_vector() values: NULL or f32; s8: scales of columns; sums of the weights of a column, s8: s32, s4: f32,
  // scaled. In floats the bias alone
  const float *bias, *scales, *sums;
  const char* panels;
  bool above_least;  // of the panels of s8: all_above_least()
};

inline size_t dynamic_vector(const DynamicConfig& c) { return round_up(size_t(c.n), 64); }
inline size_t dynamic_blocks(const DynamicConfig& c) { return ceil_div(size_t(c.k), c.block); }
// Bytes of a block of the depth of a panel.
inline size_t dynamic_block_bytes(const DynamicConfig& c) {
  return weights_block_bytes(c.b_type, c.nr, c.block, c.scale_type, c.has_zeros);
}
// bytes of a quantised row
inline size_t dynamic_depth(const DynamicConfig& c) {
  return c.b_type == Element::s4 ? dynamic_blocks(c) * c.block : round_up(size_t(c.k), 32);
}
// bytes of the weights block, and of what is before the panels; false: overflow
bool dynamic_sizes(const DynamicConfig& c, size_t& vectors, size_t& total);

extern const OpClass gemm_dynamic_class;
skua_status dynamic_create(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias,
                           skua_op** out);
// Panels, and the sums of their scaled columns (nibbles_pack.cc).
void pack_nibbles(const DynamicConfig& c, const skua_gemm_desc& d, const void* b, float* sums, char* to);
// Tile of s8 and its A; NULL = none.
const Kernel* dynamic_tile(const skua_context* ctx, const DynamicConfig& c, size_t m, const PackFormat* format,
                           bool is_unsigned);
// The highest set's kernel of weights, of two the one for this machine, that takes panels of `width` columns, or
// vectors that divide it (0: any); NULL = none.
const Kernel* kernel_of_width(const skua_context* ctx, Family family, uint16_t variant, Element type, uint32_t width);

// A run: what its tasks share.
struct DynamicRun {
  const DynamicPlan* p;
  const DynamicOp* op;
  const void* a;
  void* c;
  uint8_t* rows;
  GemmRowQuant* quant;
  int32_t* sums;
  char* scratch;
  size_t row_pieces, columns, grain;  // grain: of columns, for tiles of bytes
};
inline const void* dynamic_a(const DynamicRun& r, size_t m) {
  return at(r.a, r.op->config.a_type, ptrdiff_t(m / r.p->m * r.p->a_batch + m % r.p->m * r.p->lda));
}
inline void* dynamic_c(const DynamicRun& r, size_t m) {
  return at(r.c, r.op->config.c_type, ptrdiff_t(m / r.p->m * r.p->c_batch + m % r.p->m * r.p->ldc));
}

// In floats (weights.cc).
// that takes panels of c.format; NULL = none
const Kernel* weights_kernel(const skua_context* ctx, const DynamicConfig& c);
const Kernel* weights_tile(const skua_context* ctx, const DynamicConfig& c, size_t m, const PackFormat* format);
skua_status weights_plan(const DynamicOp& op, DynamicPlan& p);
void weights_run(const RunArgs& args, DynamicRun& r);

}  // namespace skua
