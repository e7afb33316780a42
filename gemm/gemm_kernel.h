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

// The quantisation of a row of A: real = scale * (q - zero).
struct GemmRowQuant {
  float scale;
  int32_t zero;
};

// One tile: up to mr rows times up to nr columns of C.
//
//   C[r][j] = finish( [C[r][j] if load_c] + sum over s, k of A[r][segments[s].a + k] * B[segments[s].b + k][j] )
//
// Every element is one chain of multiply-adds in the order of k (of bf16 where a set multiplies it: in that set's
// order), whatever the tile: all tiles of an instruction set give the same bits, of those that sum in f32
// (gemm_transposed is no tile).
// The types of A, B and C are the table's.
struct GemmTile {
  // row pointers: rows may be anywhere (overlapping, in a padded image); with pack_a the first one is the panel
  const void* const* a;
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
  // tiles whose table says so: y *= (min(y, 3) + 3) / 6 behind the clamp, whose `low` is -3, as the unary function
  // computes it
  bool hard_swish;
  // tables that say so, segments of an odd k: the last pair of B has half a weight for the last but one element, whose
  // other half is in the pair before, and the last one
  bool overlaps;
  // the core adds halves to floats in one instruction: whole tiles that sum in half precision
  bool fhm;
  float low, high;               // clamp; NaN passes
  // with each row of B, a line this many bytes further on is fetched into L2 (whole tiles; 0 costs nothing)
  ptrdiff_t ahead;
  // all rows are more than twice L2 and this is their first panel; C is larger than L2, with vectors of 16 floats and
  // an L3 that is near than a quarter of that
  bool a_far, c_far;
  bool near;                     // into L1 too, where all lines of a row are fetched
  bool pages;                    // these lines out of four pages in turn, wherever `ahead` says (gemm/ahead.h)
  size_t block;                  // tiles that sum in half precision: terms after which sums go to f32
  size_t rows;                   // of a tile by row pointers; of even rows where the table takes runs
  // Even rows, tables that take several: so many panels of whole width, this one the first, b_step bytes apart. C,
  // bias, offsets and scales go on from column to column.
  ptrdiff_t b_step;
  uint16_t panels;
  // of any tile: rows that the table's enter() was told
  uint16_t entered;
  // Even rows: `groups` tiles one below the other; only the first row's pointers above, and the elements from a row to
  // the next.
  // One row over all panels: how many of them side by side, 1, 2 or the table's panels_at_once.
  size_t groups;
  // rows of 16 bits, one behind the other, that are prepared after these: fetched meanwhile; NULL = none
  const void* next;
  ptrdiff_t a_step, c_step, residual_step;
  // Tables that widen: rows of halves as they are in memory. Those of each tile are widened to a[0] on while the tile
  // before is multiplied, to as many places as there is room for: then comes the first again.
  const void* halves;            // NULL = they are there
  Element halves_type;
  ptrdiff_t halves_step;
  size_t room;
  // Lines of even rows, where the table says that it takes them: behind `in_line` rows, and every `line` from there,
  // rows go on so many elements further. line = 0: one line.
  size_t line, in_line;
  ptrdiff_t a_gap, c_gap, residual_gap;
  bool dense;                    // between the first and the last of A's rows every byte is the tensor's
  size_t behind;                 // tables with enter(): bytes behind each row's part of a segment that may be read too
  // Tiles of bytes, see below.
  const float* scale;            // of each column; whole vectors readable, as in the two that follow
  const int32_t* offset;         // where the sums of a column start
  const int32_t* column_sums;    // read with row_quant only
  // of the tile's rows, one after the other (of all groups' rows); NULL = A has one scale, which is in `scale`, and one
  // zero point, which is in `offset`
  const GemmRowQuant* row_quant;
  int32_t b_zero;                // of B as packed; where it is not 0 the tile sums its rows of A,
  const int32_t* b_zeros;        // of each column, whole vectors readable, where they differ: b_zero is 1; else NULL
  // and leaves b_zero times the sums here (of all groups' rows) for the next panel, which finds them known; NULL =
  // nowhere
  int32_t* row_terms;
  bool terms_known;
  int32_t zero;                  // of C: added to a rounded result
  bool fits;                     // all scales are below 1: a sum times its scale stays within 32 bits
  // that, C is of bytes, `zero` its type's least value, no sum reaches 2^23 in amount: nothing below 0 need be told
  // apart; no shift, no residual
  bool positive;
  bool above_least;              // no element of B as packed is -128: two products with s8 fit 16 bits
  // C of bytes in fixed point (dispatch/requantize.h), of each column like `scale`, which then has multipliers of s32;
  // NULL = as below
  const int32_t* shift;
  bool single;                   // fixed point is rounded once
  // `residual` is bytes of C's type: y is float(residual - zero_point) * scale more, product and sum rounded
  QuantizedResidual residual_by;
};

// Tiles of bytes. A is s8 or u8 (Kernel::element), B is packed as s8 or u8, sums are exact in 32 bits (beyond that they
// wrap).
//
//   sum[r][j] = offset[j] - row_quant[r].zero * column_sums[j] - b_zero * sum over k of A'[r][k]
//             + sum over k of A'[r][k] * B[k][j]                  A' = A + a_shift of the table
//   y = float(sum) * scale[j] * row_quant[r].scale + bias[j]      from left to right, each operation rounded; without
//                                                                 row_quant and bias the sum times the scale
//   C of 8 bits: y += residual where there is one; zero + nearest_even(clamp(y, low, high)), low and high the type's
//                range less `zero`, or closer; else clamp(y, low, high), rounded once
//
// Zero points are folded: with zero points za and zb (of A, and of B as packed) offset[j] = bias[j] - (za + a_shift) *
// (sum over k of B[k][j] - depth * zb), and b_zero = zb. B of s8 that is packed as u8 has zb = 128, so such a tile sums
// its rows. With b_zeros zb is each column's own, and b_zeros[j] stands before the sum of the row. There is one pass
// over the depth (load_c is false, finish true), no alpha, beta.
// k of a segment need not be a multiple of kr: B has its segments rounded up to kr, zeros behind the depth, so
// segments[s].b is a multiple of kr and depth of the panel segment_count * round_up(k, kr). Nothing behind the k-th
// byte of a row is read.
// row_quant serves rows that were quantised on their way (each its own scale and zero point, za = 0 in `offset` then);
// `bias` is f32 in that case.

// KernelKind::gemm_tile; Kernel::element is the type of A in memory. `code` returns a table of functions:
// at[(vectors - 1) * mr + rows - 1] for row pointers, vectors <= nr / vector, rows <= mr; row[rows - 1] for whole
// tiles, which fetches not a line but the whole row `ahead`; and even[vectors - 1] for even rows,
// even_rows[vectors - 1] at a time: the fewer vectors of columns, the more rows fit the registers; NULL = none
// (even_rows is mr then); and panels for one row and n columns of any number of panels, `b` the first, nr * k elements
// from a panel to the next, one segment; NULL = none. Where its rows are comes beside the tile, of which a plan then
// needs no copy for each run. Where there is flip_rows or pack_a, its row of A is as it is in memory.
//
// Types. A tile reads A where it is if `a` is the type in memory and there is no pack_a. Else the driver prepares
// blocks of rows in the workspace: widened to f32 rows (`a` is f32), or by pack_a. It writes C if `c` is C's type, or
// any_c; else the driver has it write f32 to a strip that stays in L1, and finishes from there.
//   pack_a   writes a panel of `rows` <= mr rows (the others 0 or whatever: they are not stored) over segment_count * k
//            of the depth in the tile's own order. The panel is panel_bytes(segment_count * k) long, 64-byte aligned;
//            the tile then gets a[0] = the panel, segments[s].a = s * k, even_rows must be mr, and a_step * mr elements
//            (of `a`) are a panel.
using GemmTileFn = void (*)(const GemmTile&);
using GemmRowFn = void (*)(const GemmTile&, const void* a, void* c, const void* residual);  // residual NULL = none
using GemmPackAFn = void (*)(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count,
                             size_t k, void* panel);
struct GemmTileTable {
  GemmTileFn at[32], row[16], even[8];
  GemmRowFn panels;
  uint8_t even_rows[8];
  uint8_t panels_at_once = 2;  // at most, of `panels`
  Element a = Element::f32, b = Element::f32, c = Element::f32;
  // steps of the depth that lie together in packed B: [depth / kr][width][kr], zeros behind an odd depth
  uint8_t kr = 1;
  bool lines = false;          // even[] takes lines
  bool runs = false;           // even[] takes any number of even rows, GemmTile::rows, and lines
  bool hard_swish = false;     // takes GemmTile::hard_swish
  bool pages = false;          // row[] takes GemmTile::pages; of bytes `panels` too
  bool row_at_once = false;    // `panels` goes over four vectors of columns at a time
  bool near = false;           // even[] asks for rows of A where they are a_far only: for segments of a few channels
  bool overlaps = false;       // takes GemmTile::overlaps
  bool any_c = false;          // writes what c_type says, f32 or A's type
  bool widens = false;         // even[] of a table whose `a` is f32 takes GemmTile::halves, in one segment and one line
  bool half_sums = false;      // sums in A's type, `block` terms at a time; not for SKUA_NUMERICS_STRICT
  // multiply-adds of a lane per instruction, for the cost model: the number of `vector` columns times this
  float rate = 1;
  GemmPackAFn pack_a = nullptr;
  uint8_t pack_kr = 1;         // steps of the depth that pack_a rounds up to; tiles of bytes: of each segment
  // Tiles of bytes.
  bool bytes = false;
  uint8_t a_bytes = 0;         // of an element of the panel that pack_a writes; 0 = of `a`
  bool sums_rows = false;      // takes a b_zero that is not 0
  bool adds_products = false;  // two at a time in 16 bits where the tile is told above_least
  // The end of a tile by itself: `n` columns of rows of sums, `step` from a row to the next, whole vectors of scales
  // and sums readable. Sums may be overwritten. Without row_quant and a zero point of B: terms is NULL (Winograd's
  // sums).
  void (*finish_sums)(const GemmTile&, void* const* c, int32_t* sums, size_t step, size_t rows,
                      const int32_t* terms) = nullptr;
  // Where `a` is u8 and memory holds s8: rows with the upper bit flipped, in the workspace; NULL = none.
  void (*flip_rows)(size_t rows, size_t n, const void* from, ptrdiff_t from_step, void* to,
                    ptrdiff_t to_step) = nullptr;
  // around the tiles of a block, on its thread: the state of the core that they need; NULL = none. rows: of the block,
  // or mr if they are more
  void (*enter)(size_t rows) = nullptr;
  void (*leave)() = nullptr;
  bool (*many_panels)(const GemmTile&) = nullptr;  // whether even[] takes several with this tile; NULL = never
  // what it adds to elements of A (as they are in memory: a dot product of u8 by s8 may flip the upper bit)
  int16_t a_shift = 0;
};
inline size_t bytes_of_a(const GemmTileTable& t) { return t.a_bytes ? t.a_bytes : element_bytes(t.a); }
// pack_a leaves rows one after the other, each byte as 16 bits: who copies rows anyway can write them so.
inline bool takes_wide_rows(const GemmTileTable& t) { return t.pack_a && bytes_of_a(t) > element_bytes(t.a); }
constexpr size_t kWideRow = 16384;  // the deepest only row that such a tile widens on its stack
using GemmTileTableFn = const GemmTileTable& (*)();

// KernelKind::gemm_pack, Kernel::element = the type of b, variant = pack_variant(type of the panel, kr): writes a panel
// of `depth` rows and `columns` columns, padded with zeros to `width` (whole vectors of the tile, whose instruction set
// may be below the packing kernel's): panel[(k / kr * width + j) * kr + k % kr] = b[k*stride_k + j*stride_n].
using GemmPackFn = void (*)(size_t depth, size_t columns, size_t width, const void* b, size_t stride_k, size_t stride_n,
                            void* panel);
// The same for bytes, to s8 or u8 (the upper bit flipped where the types differ: zero points move by 128). Adds to
// sums[j], j < width, the sum of b over the depth; NULL = not wanted.
// kr 1 serves rows of A that are stored transposed.
using GemmPackBytesFn = void (*)(size_t depth, size_t columns, size_t width, const void* b, size_t stride_k,
                                 size_t stride_n, void* panel, int32_t* sums);
constexpr uint16_t pack_variant(Element to, unsigned kr) { return uint16_t(unsigned(to) << 8 | kr); }

// KernelKind::gemm_rows, Kernel::element = the type in memory: what is done to rows before and after tiles of another
// type. Rows of f32 lie in the workspace.
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

// KernelKind::gemm_transposed, Kernel::element = the type of A and B in memory; a GemmTileFn. Up to kTransposedRows
// rows by pointers times any number of columns of B as it lies, [n][k]: t.b is its first row, t.ldb the elements from a
// row to the next; all of the depth in one segment. The last vector of columns may begin before the first column.
// C is f32 or of A's type.
constexpr size_t kTransposedRows = 8;
constexpr size_t kTransposedColumns = 64;  // whose sums wait for their end together

}  // namespace skua
