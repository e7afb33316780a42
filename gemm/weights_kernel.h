// What the kernels of products with quantised weights in float arithmetic take. Plain data, included by the kernel
// units.
#pragma once
#include "gemm/dynamic_kernel.h"

namespace skua {

// Weights that become floats as they are read. A panel is `nr` columns; each block of the depth is
//
//   s4: [block / 8][nr][4 bytes]    as in dynamic_kernel.h          s8: [block][nr] bytes
//   [nr] scales, [nr] zero points of s8
//
//   w[k][j] = fma(q[k][j], scale[j], -(scale[j] * zero[j]))
//             one rounding; without fused multiply-adds two. Without zero points scale * q.
//   C[r][j] = clamp(sum over k of A[r][k] * w[k][j] + bias[j])
//             one chain in the order of k, as in the tiles of f32: the same bits
struct GemmWeights {
  const char* b;         // panel
  size_t from, k;        // steps of the depth, [from, k): a tile takes all, `from` is 0; else a multiple of 8
  size_t block, nr;      // steps of a block, columns of a panel in memory
  Element scale_type;
  bool zeros;
  bool pages;            // GemmTile::pages
  size_t n;              // columns, of which whole vectors are computed
  // Rows, of a tile.
  const float* a;        // even rows
  size_t a_step, rows;   // rows <= mr
  void* const* c;
  Element c_type;
  const float* bias;     // NULL = none; whole vectors readable
  float low, high;
};

// KernelKind::gemm_nibbles of this variant, Kernel::element = the type of the weights. tile: up to mr rows. widen: a
// part of a panel to floats, [k - from][round_up(n, vector)].
constexpr uint16_t kWeightsVariant = 1;
struct GemmWeightsTable {
  void (*tile)(const GemmWeights&);
  void (*widen)(const GemmWeights&, float* to);
};
using GemmWeightsTableFn = const GemmWeightsTable& (*)();

}  // namespace skua
