// What the transform kernels of Winograd's algorithm take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

// F(m_y,3) x F(m_x,3): m_y rows and m_x columns of outputs per tile, (m_y+2)(m_x+2) products per tile, input and output channel.
enum class WinogradVariant : uint8_t { f2x2, f4x2, f4x4, f6x6 };
constexpr int kWinogradVariants = 4;
constexpr int winograd_rows(WinogradVariant v) { return v == WinogradVariant::f2x2 ? 2 : v == WinogradVariant::f6x6 ? 6 : 4; }
constexpr int winograd_columns(WinogradVariant v) { return v == WinogradVariant::f6x6 ? 6 : v == WinogradVariant::f4x4 ? 4 : 2; }
constexpr size_t winograd_points(WinogradVariant v) { return size_t(winograd_rows(v) + 2) * size_t(winograd_columns(v) + 2); }

// KernelKind::winograd_in, variant = WinogradVariant. V[point][c] = (B^T d B)[point] for the channels of one tile; point = i*(m_x+2) + j. Points that a clip
// drops are not written.
struct WinogradIn {
  const float* in;            // first value of the tile, which may lie outside the image
  size_t row, pixel;          // floats from one row, one pixel to the next
  uint8_t clip_y, clip_x;     // outputs of the tile outside the image: values and points that fall away
  uint8_t top, bottom, left, right;  // rows [top, bottom) and columns [left, right) of the tile lie inside the image, the others are 0
  size_t channels;
  float* v;                   // whole vectors are written
  size_t step;                // floats from one point to the next
};
using WinogradInFn = void (*)(const WinogradIn&);

// KernelKind::winograd_out, variant = WinogradVariant. y = finish(A^T M A) for the channels of one tile.
struct WinogradOut {
  const float* m;             // whole vectors readable
  size_t step;                // floats from one point to the next
  uint8_t clip_y, clip_x;
  size_t channels;
  const float* bias;          // whole vectors readable; NULL = none
  const float* residual;      // NULL = none
  size_t residual_row, residual_pixel;
  bool residual_after;        // added after the clamp
  float low, high;            // clamp; NaN passes
  float* out;
  size_t row, pixel;
};
using WinogradOutFn = void (*)(const WinogradOut&);

}  // namespace skua
