// What a GEMM tile and the kernels around it take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "dispatch/element.h"

namespace skua {

// A part of the depth: where it is in A and in B.
struct GemmSegment {
  ptrdiff_t a;  // elements added to every row pointer
  size_t b;     // first row of the panel; a multiple of the tile's kr
};

// One tile: up to mr rows times up to nr columns of C.
//
//   C[r][j] = finish( [C[r][j] if load_c] + sum over s, k of A[r][segments[s].a + k] * B[segments[s].b + k][j] )
//
// Every element is one chain of multiply-adds in the order of k, whatever the tile: all tiles of an instruction set give the same bits, of those that sum in f32.
// The types of A, B and C are the table's.
struct GemmTile {
  const void* const* a;          // row pointers: rows may be anywhere (overlapping, in a padded image); with pack_a the first one is the panel
  const GemmSegment* segments;
  size_t segment_count, k;       // depth = segment_count * k
  const void* b;                 // panel: rows (of kr steps of the depth) of ldb elements, whole vectors readable
  size_t ldb;
  void* const* c;                // row pointers
  Element c_type;                // of C and the residual
  size_t n;                      // columns of C, 1..nr
  bool load_c;                   // go on from what an earlier part of the depth stored
  bool finish;                   // last part of the depth: apply what follows
  float alpha, beta;             // acc*alpha + beta*C
  const float* bias;             // whole vectors readable; NULL = none
  const void* const* residual;   // row pointers, of C's type; NULL = none
  bool residual_after;           // added after the clamp
  float low, high;               // clamp; NaN passes
  ptrdiff_t ahead;               // with each row of B, a line this many bytes further on is fetched into L2 (whole tiles; 0 costs nothing)
  size_t block;                  // tiles that sum in half precision: terms after which sums go to f32
  // Even rows: `groups` tiles one below the other; only the first row's pointers above, and the elements from a row to the next.
  size_t groups;
  const void* next;              // rows of 16 bits, one behind the other, that are prepared after these: fetched meanwhile; NULL = none
  ptrdiff_t a_step, c_step, residual_step;
};

// KernelKind::gemm_tile; Kernel::element is the type of A in memory. `code` returns a table of functions: at[(vectors - 1) * mr + rows - 1] for row pointers, vectors <= nr / vector,
// rows <= mr; row[rows - 1] for whole tiles, which fetches not a line but the whole row `ahead`; and
// even[vectors - 1] for even rows, even_rows[vectors - 1] at a time: the fewer vectors of columns, the more rows fit the registers; NULL = none (even_rows is mr then);
// and panels for one row and n columns of any number of panels, `b` the first, nr * k elements from a panel to the next, one segment; NULL = none.
//
// Types. A tile reads A where it is if `a` is the type in memory and there is no pack_a. Else the driver prepares blocks of rows in the workspace: widened to f32 rows (`a` is f32), or
// by pack_a. It writes C if `c` is C's type, or any_c; else the driver has it write f32 to a strip that stays in L1, and finishes from there.
//   pack_a   writes a panel of `rows` <= mr rows (the others 0 or whatever: they are not stored) over segment_count * k of the depth in the tile's own order. The panel is
//            panel_bytes(segment_count * k) long, 64-byte aligned; the tile then gets a[0] = the panel, segments[s].a = s * k, even_rows must be mr, and a_step * mr elements (of `a`)
//            are a panel.
using GemmTileFn = void (*)(const GemmTile&);
using GemmPackAFn = void (*)(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t k, void* panel);
struct GemmTileTable {
  GemmTileFn at[32], row[16], even[8], panels;
  uint8_t even_rows[8];
  Element a = Element::f32, b = Element::f32, c = Element::f32;
  uint8_t kr = 1;              // steps of the depth that lie together in packed B: [depth / kr][width][kr], zeros behind an odd depth
  bool any_c = false;          // writes what c_type says, f32 or A's type
  bool half_sums = false;      // sums in A's type, `block` terms at a time; not for SKUA_NUMERICS_STRICT
  float rate = 1;              // multiply-adds of a lane per instruction, for the cost model: the number of `vector` columns times this
  GemmPackAFn pack_a = nullptr;
  uint8_t pack_kr = 1;         // steps of the depth that pack_a rounds up to
};
using GemmTileTableFn = const GemmTileTable& (*)();

// KernelKind::gemm_pack, Kernel::element = the type of b, variant = pack_variant(type of the panel, kr): writes a panel of `depth` rows and `columns` columns, padded with zeros to
// `width` (whole vectors of the tile, whose instruction set may be below the packing kernel's): panel[(k / kr * width + j) * kr + k % kr] = b[k*stride_k + j*stride_n].
using GemmPackFn = void (*)(size_t depth, size_t columns, size_t width, const void* b, size_t stride_k, size_t stride_n, void* panel);
constexpr uint16_t pack_variant(Element to, unsigned kr) { return uint16_t(unsigned(to) << 8 | kr); }

// KernelKind::gemm_rows, Kernel::element = the type in memory: what is done to rows before and after tiles of another type. Rows of f32 lie in the workspace.
struct GemmFinish {
  size_t rows, n;
  float* sums;                  // rows of `step` floats, whole vectors readable
  size_t step;
  void* const* c;               // row pointers
  const void* const* residual;  // likewise; NULL = none
  bool residual_after;
  float beta, low, high;
};
struct GemmRowTable {
  void (*widen)(size_t n, const void* from, float* to);
  void (*widen_rows)(size_t rows, size_t n, const void* from, ptrdiff_t from_step, float* to, size_t to_step);
  void (*finish)(const GemmFinish&);           // c = clamp(sums + beta*c + residual before) + residual after
  void (*finish_in_sums)(const GemmFinish&);   // the same, result to sums: an activation that is no clamp follows
};
using GemmRowTableFn = const GemmRowTable& (*)();

}  // namespace skua
