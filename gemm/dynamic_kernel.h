// What the kernels of products with a quantised A and of weights in four bits take. Plain data, included by the kernel
// units.
#pragma once
#include "gemm/gemm_kernel.h"

namespace skua {

// KernelKind::gemm_quantize, Kernel::element = the type of x: a row of k floats to bytes, asymmetric, over its range
// and 0, as
//   low = min(x, 0), high = max(x, 0) over the row      scale = (high - low) / 254
//   zero = nearest(-127 - low / scale)                  q = zero + nearest(x / scale)
// within [-127, 127] (u8: 128 more), nearest even; a quotient is the product with the inverse, 254 / (high - low).
// Every instruction set gives these bits. Bytes up to `padded` become the zero point. A row of zeros has scale 0. sums:
// of q - zero over each block of `block` bytes (NULL = not wanted). Ranges below 1e-30 count as 1e-30, those above 3e38
// as 3e38. A row with NaN or infinity gives any bytes.
using GemmQuantizeFn = void (*)(size_t k, const void* x, bool is_unsigned, void* q, size_t padded, GemmRowQuant& row,
                                size_t block, int32_t* sums);

// Weights in four bits. A panel is `nr` columns; each block of the depth is
//
//   [block / 8][nr][4 bytes]    byte i of a column: the value of step k + i in the low nibble, of k + 4 + i in the high
//                               one, both two's complement
//   [nr] scales                 f32, f16 or bf16
//   [nr] s8                     zero points, where there are any
//
//   sum[r][j] = over blocks: scale[j] * (sum over k of a'[r][k] * w[k][j]) - (scale[j] * zero[j]) * sums[r][block]
//               a' = a as a byte; f32, block after block
//   y = (sum - row zero * column_sums[j]) * row scale + bias[j], clamped, rounded once to C's type.
//               column_sums[j] = over blocks: scale[j] * (sum over k of w)
struct GemmNibbles {
  const uint8_t* a;             // rows of bytes, blocks * block each; signed or not as the table says
  size_t a_step;
  const GemmRowQuant* rows;
  const int32_t* sums;          // of a - zero, of each block; NULL = no zero points
  size_t sums_step;             // from a row to the next
  const char* b;                // panel
  size_t blocks, block;
  Element scale_type;
  const float *column_sums, *bias;  // bias NULL = none; whole vectors readable
  void* const* c;
  Element c_type;
  size_t n;                     // columns
  float low, high;
  bool fetched_by_core;         // a row alone: the core runs ahead in the panel by itself, and prefetches hold it up
  bool pages;                   // GemmTile::pages
  // Of a part of the depth in bytes.
  const char* bytes;            // what unpack() wrote for these blocks
  float* y;                     // [row][nr]: sums
  bool more;                    // y has those of an earlier part
  const char* next;             // a line for each eight of the depth is fetched into L2 from here; NULL = nothing
};
// KernelKind::gemm_nibbles: `code` returns a table.
//
// Few rows, or where add_rows is 0 any number: at[rows - 1], rows <= mr, takes nibbles apart in registers, all of the
// depth at a time.
// Many rows, unless add_rows is 0: unpack() makes bytes of a part of a panel, [step][2][nr][4], which stay in L1 for
// all rows; add[rows - 1], rows up to add_rows and at least two thirds of it, adds its products to y;
// finish() makes C of y in the end. The bits are the same.
using GemmNibblesFn = void (*)(const GemmNibbles&);
struct GemmNibblesTable {
  GemmNibblesFn at[6], add[6];
  void (*unpack)(const char* b, size_t steps, char* to);
  void (*finish)(const GemmNibbles&, size_t rows);
  uint8_t add_rows;
  bool unsigned_a;
};
using GemmNibblesTableFn = const GemmNibblesTable& (*)();
// Variant kNibblesRows of it, `code` returns this table: add() adds the products of so many rows, 16 or more, of what
// unpack() of the set's vectors wrote, in blocks that are a multiple of 64; enter() and leave() stand around a worker's
// calls. The bits are the same.
constexpr uint16_t kNibblesRows = 2;  // 1: weights_kernel.h
struct GemmNibblesRows {
  void (*add)(const GemmNibbles&, size_t rows);
  void (*enter)();
  void (*leave)();
};
using GemmNibblesRowsFn = const GemmNibblesRows& (*)();
// Bytes of a block of a panel of s4, or (weights_kernel.h) s8.
inline size_t weights_block_bytes(Element b, size_t nr, size_t block, Element scale, bool zeros) {
  return nr * ((b == Element::s4 ? block / 2 : block) + element_bytes(scale) + (zeros ? 1 : 0));
}

}  // namespace skua
