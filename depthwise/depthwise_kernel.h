// What depthwise kernels take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

// Feature maps hold the kernel's type (Kernel::element), steps are in its elements; packed weights are f16 for kernels
// of instruction sets that sum in f16, else f32.
//
// Packed weights: for each vector of L output channels [bias][tap (0,0)] ... [tap (kernel_h-1, kernel_w-1)], L values
// each. The last vector holds the channels channels-L .. channels-1: when L does not divide the channels it overlaps
// the one before it, so kernels only load and store whole vectors. With fewer channels than L there is one vector,
// padded with zeros.
//
// One tile of outputs times all channels of a block, channels innermost:
//   out[y][x][c] = clamp(bias[c] + sum over ky, kx of rows[y*stride + ky][(x*stride + kx) pixels + c] * w[ky][kx][c])
// in the order of ky, kx; a tap whose row or column the masks leave out is not computed at all. So every output is one
// fixed chain, wherever it lies in a tile.
struct DepthwiseTile {
  const void* const* rows;   // input rows; what lies outside the image is never read
  // elements from rows[r] to the first channel of the tile's first input column; may lie before the row
  ptrdiff_t column;
  size_t in_pixel;           // elements between neighbouring input columns
  uint32_t row_mask;         // bit r: input row r is inside the image
  uint32_t column_mask;      // bit j: input column j is inside the image, and one of these `columns` needs it
  uint32_t columns;          // of outputs; read by functions for parts of a tile, the others compute all of theirs
  const void* w;             // packed weights of the block's first vector
  size_t channels;           // of the block
  size_t group;              // grouped tiles: channels per group
  float low, high;           // clamp; NaN passes
  void* out;
  size_t out_row, out_pixel;
};

// KernelKind::depthwise_tile, variant = kernel * 10 + stride (square kernels, dilation 1). `code` returns a table of
// functions for tiles of mr rows and nr columns, and parts of them. channels >= vector.
using DepthwiseTileFn = void (*)(const DepthwiseTile&);
// KernelKind::grouped_tile: the same for groups of `group` inputs and as many outputs; a vector holds whole groups, or
// of floats a group of kMostGrouped at most holds whole vectors and begins with the block. Weights of a vector: [bias],
// then [ky][input of the group][kx].
constexpr int kMostGrouped = 64;
// Where the second-level cache overflows, kernels up to this size and vectors of this many bytes take narrow tiles
// throughout.
constexpr int kDepthwiseNarrowKernel = 3, kDepthwiseNarrowVector = 64;
#if defined(__aarch64__)
constexpr int kDepthwiseEdges = 11;
#else
constexpr int kDepthwiseEdges = 3;
#endif
struct DepthwiseTileTable {
  // channels >= vector
  void (*copy)(size_t pixels, size_t channels, const void* from, size_t from_pixel, void* to, size_t to_pixel);
  uint32_t narrow_columns;     // of narrow tiles; 0: none
  DepthwiseTileFn whole[2];    // mr rows, nr columns; [1]: masks leave something out
  DepthwiseTileFn narrow[2];   // mr rows, narrow_columns
  DepthwiseTileFn part[2];     // 1 or 2 (if mr is) rows, 1 to nr columns, masks
  bool one_group = false;      // grouped tiles: only for groups that fill a vector, or some
  struct Edge {
    uint32_t column_mask, row_mask;
    DepthwiseTileFn tile;
  } edge[kDepthwiseEdges] = {};  // mr rows, nr columns, exactly these columns and rows inside; column_mask 0: none
};
using DepthwiseTileTableFn = const DepthwiseTileTable& (*)();

// KernelKind::depthwise_row, variant = 32: 3x3 with a stride of 2 and a multiplier of 1. One row of input meets the row
// of outputs that it is under, tap row `tap`; a row under two is tap row 2 of the upper one and begins the lower one
// too. Sums of outputs that are not done are in memory, f32, so that the chain is that of a tile. At most one column of
// taps is outside on either side.
struct DepthwiseRow {
  const float* in;                // its first pixel; with `left` a pixel before it is pointed to, not read
  size_t in_pixel, channels, outputs;
  uint8_t left, right;            // 1: the first output's first tap is outside, the last one's last
  uint32_t tap;
  const float* w;                 // packed weights of the block's first vector
  // of outputs; of a pixel whole vectors, also where the last one overlaps the one before
  float* sums;
  size_t sums_pixel;
  float low, high;                // clamp; NaN passes
  float* out;
  size_t out_pixel;
};
using DepthwiseRowFn = void (*)(const DepthwiseRow&);
struct DepthwiseRowTable {
  DepthwiseRowFn at[4];  // + 1: sums begin, at the bias; + 2: they are done, and go to `out`
  DepthwiseRowFn next;   // done, and those of the next row of outputs begin in the same place
};
using DepthwiseRowTableFn = const DepthwiseRowTable& (*)();

// KernelKind::depthwise_any: any kernel size, stride and dilation. `pixels` neighbouring outputs of a row that all have
// the same taps inside the image.
struct DepthwisePixels {
  const void* const* rows;   // one per tap row, only those inside the image
  size_t n_rows, n_columns;  // taps that are inside
  ptrdiff_t column;          // elements from rows[r] to the first pixel's first tap
  size_t in_tap;             // elements from tap to tap: dilation * pixel
  size_t in_pixel;           // elements from output to output: stride * pixel
  const void* w;             // packed weights of the block's first vector
  size_t w_first, w_row;     // values from there to the first tap inside, and from tap row to tap row
  size_t w_vector;           // values per vector
  size_t channels;
  float low, high;
  void* out;
  size_t out_pixel;
};
// at[0]: one pixel; at[1]: nr pixels; at[2]: one pixel with fewer channels than a vector.
using DepthwisePixelsFn = void (*)(const DepthwisePixels&);
struct DepthwisePixelsTable {
  DepthwisePixelsFn at[3];
};
using DepthwisePixelsTableFn = const DepthwisePixelsTable& (*)();

}  // namespace skua
