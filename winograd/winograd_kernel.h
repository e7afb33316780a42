// What the transform kernels of Winograd's algorithm take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "dispatch/element.h"

namespace skua {

// F(m_y,r) x F(m_x,r): m_y rows and m_x columns of outputs per tile, (m_y+r-1)(m_x+r-1) products per tile, input and
// output channel. r taps: 3, and 5 for f2x2_5x5.
enum class WinogradVariant : uint8_t { f2x2, f4x2, f4x4, f6x6, f2x2_5x5, f4x4_5x5, f3x3_s2 };
constexpr int kWinogradVariants = 7;
constexpr int winograd_taps(WinogradVariant v) {
  return v == WinogradVariant::f2x2_5x5 || v == WinogradVariant::f4x4_5x5 ? 5 : 3;
}
// Of the convolution, and of the values that one part of a window reads.
constexpr int winograd_stride(WinogradVariant v) { return v == WinogradVariant::f3x3_s2 ? 2 : 1; }
// A window in parts, two in each dimension, whose tiles begin `apart` pixels from each other. Their products have one
// sum: parts are as good as input channels.
//   f4x4_5x5: a window of 5 as two of 3 beside each other, the last tap 0.
//   f3x3_s2:  a window of stride 2 as one of the even rows, 2 taps, and one of the odd rows, 1 tap, both of stride 1:
//             F(3,2), whose infinity takes the last tap, which odd rows do not have.
constexpr int winograd_sides(WinogradVariant v) {
  return v == WinogradVariant::f4x4_5x5 || v == WinogradVariant::f3x3_s2 ? 2 : 1;
}
constexpr int winograd_apart(WinogradVariant v) { return v == WinogradVariant::f4x4_5x5 ? 3 : 1; }
constexpr int winograd_part_taps(WinogradVariant v) {
  return v == WinogradVariant::f4x4_5x5 ? 3 : v == WinogradVariant::f3x3_s2 ? 2 : winograd_taps(v);
}
constexpr size_t winograd_parts(WinogradVariant v) { return size_t(winograd_sides(v)) * size_t(winograd_sides(v)); }
// The order of parts: what an infinity of rows, of columns or of both takes part in lies together.
constexpr int winograd_part_y(size_t part) { return part >= 2; }
constexpr int winograd_part_x(size_t part) { return part == 0 || part == 3; }
constexpr int winograd_rows(WinogradVariant v) {
  return v == WinogradVariant::f2x2 || v == WinogradVariant::f2x2_5x5 ? 2
         : v == WinogradVariant::f6x6                                 ? 6
         : v == WinogradVariant::f3x3_s2                              ? 3
                                                                      : 4;
}
constexpr int winograd_columns(WinogradVariant v) { return v == WinogradVariant::f4x2 ? 2 : winograd_rows(v); }
// Values of a tile, and points, of each dimension.
constexpr int winograd_height(WinogradVariant v) { return winograd_rows(v) + winograd_part_taps(v) - 1; }
constexpr int winograd_width(WinogradVariant v) { return winograd_columns(v) + winograd_part_taps(v) - 1; }
constexpr size_t winograd_points(WinogradVariant v) { return size_t(winograd_height(v)) * size_t(winograd_width(v)); }
// The variants of the input transform, which depends on the points only, and of the output transform.
constexpr WinogradVariant winograd_output(WinogradVariant v) {
  return v == WinogradVariant::f4x4_5x5 ? WinogradVariant::f4x4 : v;
}
constexpr WinogradVariant winograd_input(WinogradVariant v) {
  return v == WinogradVariant::f2x2_5x5  ? WinogradVariant::f4x4
         : v == WinogradVariant::f3x3_s2 ? WinogradVariant::f2x2
                                         : winograd_output(v);
}
// Clips of an input transform of m + 2 points: of F(m,3), and of 2 points F(3,2), which has one output more and of odd
// rows one value less.
template <int m> constexpr int kClips = m == 2 ? 4 : m;
// Parts [begin, end) that point (i, j) sums.
struct WinogradPoint {
  size_t begin, end;
};
constexpr WinogradPoint winograd_point(WinogradVariant v, int i, int j) {
  if (winograd_sides(v) == 1 || winograd_stride(v) == 1) return {0, winograd_parts(v)};
  const bool y = i == winograd_height(v) - 1, x = j == winograd_width(v) - 1;
  return {size_t(x), y ? 2u : x ? 3u : 4u};
}
// Products of a tile for a pair of channels: the parts of all points.
constexpr size_t winograd_products(WinogradVariant v) {
  size_t sum = 0;
  for (int i = 0; i < winograd_height(v); ++i)
    for (int j = 0; j < winograd_width(v); ++j) sum += winograd_point(v, i, j).end - winograd_point(v, i, j).begin;
  return sum;
}

// Transformed tiles V: [point][part][IC / 16][tile][16 channels], the depth of a product: a cache line per tile, so the
// tiles of a product are a constant distance apart and a line is written whole before the next. What is past the last
// channel is not read.
// Transformed weights U: [point][depth / kWinogradDepth][group][kWinogradDepth][width], of the parts that the point
// sums. A group is what one product multiplies by, width = nr columns, in the last group the columns left rounded up to
// whole vectors. The depth is cut so that V of a product stays in L1 while the groups' U stream past: loads of V from
// farther away would wait behind that stream.
// Products M: [point][column / 16][tile][16 columns].
constexpr size_t kWinogradLine = 16;
constexpr size_t kWinogradDepth = 256;
constexpr size_t kWinogradHalfDepth = 64;
constexpr size_t kWinogradAhead = 4096;  // bytes of U that products ask for before they need them
// Channels that lie together in U of that type.
#if defined(__aarch64__) || defined(__arm__)
constexpr size_t winograd_together(Element) { return 1; }
#else
constexpr size_t winograd_together(Element u) { return u == Element::s16 ? 2 : 1; }
#endif
// Channels of a part, zeros in U behind the last.
constexpr size_t winograd_channels(WinogradVariant v, size_t in_channels, Element u) {
  const size_t whole = winograd_parts(v) > 1 ? kWinogradLine : winograd_together(u);
  return (in_channels + whole - 1) / whole * whole;
}
// Columns of a group for weights packed for vectors of that many floats: the same for all instruction sets of that
// vector, so that they share packed weights.
constexpr size_t winograd_group(size_t vector) { return vector >= 16 ? vector : vector >= 4 ? 2 * vector : 4; }
// KernelKind::winograd_in, variant = winograd_input(): V of one tile; point = i*width + j. Points that a clip drops are
// not written.
// Feature maps are of the kernel's type; V of f32, or where kWinogradHalf is added to the variant of f16; of maps of
// bytes s16.
struct WinogradIn {
  const void* in;             // first value of the tile, which may lie outside the image
  size_t row, pixel;          // elements from one row, one pixel to the next
  uint8_t clip_y, clip_x;     // outputs of the tile outside the image: values and points that fall away
  // rows [top, bottom) and columns [left, right) of the tile lie inside the image, the others are 0
  uint8_t top, bottom, left, right;
  int32_t zero;               // maps of bytes: taken off each, and what lies outside the image
  size_t channels;
  void* v;                    // whole vectors are written
  size_t step, line;          // elements from one point, one line of channels to the next
};
using WinogradInFn = void (*)(const WinogradIn&);
constexpr uint16_t kWinogradHalf = 16;

// KernelKind::winograd_product: M[r][j] = sum over k of V[r][k] * U[k][j] for some groups of columns, one chain of
// multiply-adds in the order of k; Kernel::element is the type of V and U, M of f32. In f16 a chain has
// kWinogradHalfDepth terms, and sums of chains are f32. Of s8, which serves u8 too: V and U are s16, M s32, and
// winograd_together() channels lie together in U, [k / 2][width][2] but on Arm, zeros behind an odd depth. `code`
// returns a table of functions: at[(vectors - 1) * mr + rows - 1], vectors <= nr / vector, rows <= mr.
struct WinogradProduct {
  const void* v;
  size_t line;                // elements from one line of channels to the next
  size_t k;
  const void* u;              // groups of k rows of whole vectors
  size_t groups;              // more than one only of nr columns
  void* m;                    // a line per tile; column j is at j / 16 lines of tiles, j % 16
  bool add;                   // to what m holds: the sums over the channels before
  bool pages;                 // of AVX-512: lines of U out of four pages in turn, not 24 KB ahead (gemm/ahead.h)
  size_t part, parts;         // which of so many products of rows by the same u, one after the other, this is
};
using WinogradProductFn = void (*)(const WinogradProduct&);
struct WinogradProductTable {
  WinogradProductFn at[32];
  bool full;       // products of fewer than mr rows take as long: as many of mr rows as there can be, and a rest
  float rate = 1;  // multiply-adds of a lane per instruction, as GemmTileTable's
};
using WinogradProductTableFn = const WinogradProductTable& (*)();

// KernelKind::winograd_out, variant = WinogradVariant. y = finish(A^T M A) for the channels of one tile. Of s8: M and
// bias are s32, `out` takes the sums as s32, whole vectors of them, and nothing else is done to them.
struct WinogradOut {
  const void* m;              // whole vectors readable
  size_t step, line;          // values of M from one point, one line of channels to the next
  uint8_t clip_y, clip_x;
  size_t channels;
  const void* bias;           // whole vectors readable; NULL = none
  const void* residual;       // NULL = none
  size_t residual_row, residual_pixel;
  bool residual_after;        // added after the clamp
  float low, high;            // clamp; NaN passes
  void* out;
  size_t row, pixel;
};
using WinogradOutFn = void (*)(const WinogradOut&);

}  // namespace skua
