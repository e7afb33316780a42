// What depthwise kernels of bytes take. Plain data, included by the kernel units.
//
//   q[y][x][c] = requantised( offset[c] + sum over ky, kx of a[y*stride + ky*dilation][x*stride + kx*dilation][c] *
//   w[ky][kx][c] )
//
// Two steps, on a block of L channels, or of L/2 or L/4 where a vector holds 2 or 4 outputs next to each other. First G
// input rows are interleaved, so that the G bytes of a channel lie side by side (as bytes, or widened to 16 bits where
// the set multiplies such): four vectors of L/4 channels. Then one dot product takes G taps of a column: each such
// group serves kernel_w columns and both rows of a tile, whose taps are shifted against each other in the packed
// weights, with zeros above and below. A padded tap reads the zero point, so all taps count and `offset` folds it:
// bias - zero point * (sum of the weights).
//
// Weights of a block: for each of the 4 vectors, for each group, for each kx, for each row of a tile one vector; then
// offset (s32) and scale (f32; in fixed point multiplier and shift), 4 vectors each, and 64 bytes of which the first
// has bits: |sum * scale| < 2^31 for any input (1), |sum| < 2^23 too (2), a weight is -128 (4). A vector has L bytes;
// weights of fewer channels are repeated.
// Streamed: for each two rows, for each kx, four vectors, one for each vector of sums; of the last row one before each
// pair of columns, with 0 and tap 0, then pairs. In groups of four: for each kx, four vectors.
// In a group of 1 (tap by tap) a vector for each tap serves the four: first those of each two rows, column by column,
// then a last row's; filled up to a multiple of four.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

constexpr uint16_t kDepthwiseInt8 = 0, kGroupedInt8 = 1;  // variants
// vectors of grouped kernels that load and store a part of their channels
constexpr uint16_t kPartlyGrouped = 64;

// Where interleaved columns are: vector v of group g of column c at
// c % planes * plane + c / planes * column + g * group + v * vector. One pixel in a vector: a column's vectors are one
// behind the other. Several: columns of outputs that follow each other do so too, planes is the stride.
struct DepthwiseInt8Layout {
  size_t pixels;                                // of a vector
  size_t planes, plane, column, group, vector;  // bytes but the first
  __attribute__((always_inline)) size_t at(size_t c) const {
    return planes == 1 ? c * column : c % planes * plane + c / planes * column;
  }
};

struct DepthwiseInt8Columns {
  // G * groups input rows at the first column inside the image, or a line of L padding bytes
  const uint8_t* const* rows;
  const size_t* steps;         // bytes between pixels of each; 0 for padding
  size_t groups, columns;      // columns inside the image
  size_t before, after;        // columns of padding
  size_t spare;                // last rows that have no taps
  size_t channels;             // of a block: those of a vector's pixel, or fewer
  DepthwiseInt8Layout layout;
  uint8_t flip;                // xor of every byte: 0x80 between u8 and s8
  uint8_t padding;             // the zero point, flipped
  void* to;
  size_t first;                // bytes that all rows but `line` begin later
  const uint8_t* line;         // the row of padding; not read with first = 0
  const DepthwiseInt8Columns* next;  // more of the same block, or NULL
};

// What is known of a block, in a byte behind its weights.
// |sum * scale| < 2^31; |sum| < 2^23 too; a weight is -128
constexpr char kFitsInt8 = 1, kSmallInt8 = 2, kLeastInt8Weight = 4;

struct DepthwiseInt8Tile {
  const void* columns;        // as interleaved, for the first output
  const void* w;
  size_t groups, kernel_w;
  DepthwiseInt8Layout layout;
  size_t output;              // bytes of interleaved columns between outputs
  const size_t* taps;         // bytes from an output's first column to each of its kernel_w; of pairs, of each group
  size_t rows, outputs;       // of the output; rows: those that weights are packed for
  size_t channels;
  float high;                 // of the clamp, less zero_point
  int16_t low, zero_point;    // as s8
  int8_t top;                 // as s8, of the clamp
  bool is_bounded;            // low and top are narrower than s8
  bool fits;                  // |sum * scale| < 2^31
  bool positive;              // that, |sum| < 2^23, and no result is below its zero point
  uint8_t rounding;           // skua_rounding; 1, 2: fixed point, twice or once rounded
  uint8_t flip;               // of the output
  uint8_t* out;
  size_t out_row, out_pixel;  // bytes; row 0 is written last, so rows that are not wanted go there by a step of 0
  // Of pairs and by columns: rows of outputs. Of pairs: bytes of interleaved columns between them. Of grouped kernels:
  // the runs that there are weights of, and those of them before the first of `groups`.
  union { size_t lines, all_runs; };
  union { size_t line, skipped_runs; };
};

// Of pixels as they are, tap by tap (int8_direct.cc).
// The tile's `columns`, `layout`, `output`, `taps`, `out_row` and `lines` are not read; no rounding.
struct DepthwiseInt8Direct {
  DepthwiseInt8Tile tile;      // of the first block; its groups are of two rows
  size_t blocks, bytes;        // of a vector's channels each, one behind the other, and of their packed weights
  // at the first output's first column. Of groups: 2 * groups; where the last has one row, that twice: the other's
  // weights are 0
  const uint8_t* const* rows;
  const size_t* steps;         // bytes from a column to the next of each; 0 for padding
  const uint8_t* line;         // the row of padding, the same for all blocks
  size_t height;               // rows that have taps
  size_t stride, dilation;     // columns
  uint8_t flip;                // xor of every byte
};

// Rows of outputs by columns (int8_streamed.h): windows of 3x3 with a stride of 1 to 3, and of 5x5 with one of 2.
// Outputs of the tile are out_pixel apart; of it `w`, `out`, `out_row`, `lines`, `kernel_w`, `outputs`, `channels` and
// what results are made by are read.
struct DepthwiseInt8Streamed {
  DepthwiseInt8Tile tile;      // of the first block
  size_t blocks, bytes;        // of a vector's channels each, one behind the other, and of their packed weights
  // of the window, at the first column inside the image, or `line`; then those of each line below; where channels are
  // half a vector of an even number of lines
  const uint8_t* const* rows;
  size_t step;                 // bytes between columns
  const uint8_t* line;         // a vector of padding, flipped back
  size_t before, inside, after;  // columns: outside, inside, outside; (outputs - 1) * stride + kernel_w at least
  size_t stride;
  uint8_t flip;                // xor of every byte
};

// KernelKind::depthwise_int8, variant kDepthwiseInt8: vector = L, mr and nr rows and columns of a tile, element s8 or
// u8: the same code, by `flip`.
struct DepthwiseInt8Table {
  uint8_t group;       // G
  bool takes_unsigned; // what products take: u8, to which s8 is flipped, or s8
  void (*interleave[3])(const DepthwiseInt8Columns&);  // of 1, 2, 4 pixels in a vector; NULL = none
  void (*run[2])(const DepthwiseInt8Tile&);  // weights packed for 1 and 2 rows
  void (*streamed)(const DepthwiseInt8Streamed&) = nullptr;          // NULL = none
  void (*direct)(const DepthwiseInt8Direct&) = nullptr;              // NULL = none
  // in a group of 1: where strides are at least this; 0 = never.
  uint8_t by_taps = 0;
  bool wide_by_taps = false;                                         // Windows of more than three columns too
  // of pairs (int8_pairs.cc), one and several pixels in a vector; NULL = none
  void (*pairs[2])(const DepthwiseInt8Tile&) = {nullptr, nullptr};
};
using DepthwiseInt8TableFn = const DepthwiseInt8Table& (*)();

// No result of such a block is below its zero point, the least s8.
inline __attribute__((always_inline)) bool is_positive(char known, const DepthwiseInt8Tile& t) {
  return (known & (kFitsInt8 | kSmallInt8)) == (kFitsInt8 | kSmallInt8) && t.zero_point == -128;
}

// variant kGroupedInt8, by the same structs: groups of 4, 8 or 16 inputs and as many outputs, blocks of L channels; of
// kPartlyGrouped also fewer.
//   interleave[0]   spreads one row of pixels: to 16/G vectors of L bytes each, the d-th G bytes of every 16 repeated
//                   (int8_grouped.inl)
//   run             strides 1 and 2 of a row of outputs: `groups` runs of kernel_w (1 or 3) columns of taps, which
//                   begin at `taps` for the first output, of `all_runs` those behind `skipped_runs`; layout.group:
//                   bytes from the inputs of an even vector of sums to those of the next; layout.column: from those of
//                   the first two to those of the others
//   weights         for each half of the 4 vectors, each run and column, a vector for each of two; the rest as above

// Channel of a block in which lane e of vector v of `lanes` is: unpacking and packing work within 128 bits.
inline size_t depthwise_int8_channel(size_t lanes, size_t v, size_t e) {
  return lanes < 4 ? v * lanes + e : e / 4 * 16 + v * 4 + e % 4;
}

}  // namespace skua
