// What a GEMM tile and a packing kernel take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

// A part of the depth: where it is in A and in B.
struct GemmSegment {
  ptrdiff_t a;  // elements added to every row pointer
  size_t b;     // first row of the panel
};

// One tile: up to mr rows times up to nr columns of C.
//
//   C[r][j] = finish( [C[r][j] if load_c] + sum over s, k of A[r][segments[s].a + k] * B[segments[s].b + k][j] )
//
// Every element is one chain of multiply-adds in the order of k, whatever the tile: all tiles of an instruction set give the same bits.
struct GemmTile {
  const float* const* a;         // row pointers; never packed: rows may be anywhere (overlapping, in a padded image, transformed tiles)
  const GemmSegment* segments;
  size_t segment_count, k;       // depth = segment_count * k
  const float* b;                // panel: rows of ldb floats, whole vectors readable
  size_t ldb;
  float* const* c;               // row pointers
  size_t n;                      // columns of C, 1..nr
  bool load_c;                   // go on from what an earlier part of the depth stored
  bool finish;                   // last part of the depth: apply what follows
  float alpha, beta;             // acc*alpha + beta*C
  const float* bias;             // whole vectors readable; NULL = none
  const float* const* residual;  // row pointers; NULL = none
  bool residual_after;           // added after the clamp
  float low, high;               // clamp; NaN passes
  ptrdiff_t ahead;               // with each row of B, a line this many floats further on is fetched into L2 (whole tiles; 0 costs nothing)
  // Even rows: `groups` tiles one below the other; only the first row's pointers above, and the steps from a row to the next.
  size_t groups;
  ptrdiff_t a_step, c_step, residual_step;
};

// KernelKind::gemm_tile. `code` returns a table of functions: at[(vectors - 1) * mr + rows - 1] for row pointers, vectors <= nr / vector, rows <= mr;
// row[rows - 1] for whole tiles, which fetches not a line but the whole row `ahead`; and
// even[vectors - 1] for even rows, even_rows[vectors - 1] at a time: the fewer vectors of columns, the more rows fit the registers; NULL = none;
// and panels for one row and n columns of any number of panels, `b` the first, nr * k floats from a panel to the next, one segment; NULL = none.
using GemmTileFn = void (*)(const GemmTile&);
struct GemmTileTable {
  GemmTileFn at[32], row[16], even[8], panels;
  uint8_t even_rows[8];
};
using GemmTileTableFn = const GemmTileTable& (*)();

// KernelKind::gemm_pack: writes a panel of `depth` rows and `columns` columns, padded with zeros to `width` (whole vectors
// of the tile, whose instruction set may be below the packing kernel's):
// panel[k*width + j] = b[k*stride_k + j*stride_n].
using GemmPackFn = void (*)(size_t depth, size_t columns, size_t width, const float* b, size_t stride_k, size_t stride_n, float* panel);

}  // namespace skua
