// What pooling kernels take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

// Neighbouring outputs of one row whose windows all lie in the same way inside the image, every channel of them.
// Elements of the kernel's type; steps in elements.
//   KernelKind::pool_max      out[p][c] = max over r, k of in[r*row + k*tap + p*pixel + c]; NaN if one of them is
//   KernelKind::pool_average  out[p][c] = scale * sum over r of (sum over k of the same)
//   KernelKind::pool_indices  the maximum, and where it was: index + r*index_row + k*index_tap + p*index_pixel. The
//                             first of equal ones; NaN wins
// Of bytes (quantised as dispatch/requantize.h says):
//   pool_max      the same, clamped to [low, high], which are bytes
//   pool_average  requantised sum of (in - zero), times scale; to [low, high] + zero_point
struct PoolPixels {
  const void* in;             // first tap of the first pixel
  size_t rows, columns;       // taps, those inside the image only; 1 or more
  size_t row, tap, pixel;
  size_t pixels, channels;
  float scale, low, high;     // clamp; NaN passes
  // the window is in L2 or beyond, and what is read in the order of addresses arrives there much faster than anything
  // else
  bool in_order;
  int32_t zero, zero_point;   // of the input and the output of an average of bytes
  void* out;
  size_t out_pixel;
  int32_t* indices;
  size_t indices_pixel;
  uint32_t index, index_row, index_tap, index_pixel;  // unsigned: the steps past the last tap may wrap
};
using PoolFn = void (*)(const PoolPixels&);

// Variant 1 of pool_max and pool_average, floats: one input row of windows of several, in the order of addresses. What
// the output rows hold so far is where their results will be.
struct PoolRow {
  const float* in;                 // first tap of the first pixel
  size_t columns;                  // taps, one of kPoolRowTaps
  size_t tap, pixel, out_pixel;
  size_t pixels, channels;         // whole vectors
  // output rows of whose windows this is the last row, one between, the first; NULL: none. Three different ones
  float *ends, *within, *begins;
  float scale, low, high;          // of those that end
};
using PoolRowFn = void (*)(const PoolRow&);
constexpr size_t kPoolRowTaps[] = {2, 3};

// Variant 2, floats: 3x3 with a stride of 1 where every tap is inside, down the image, a few pixels of a vector of
// channels at a time.
struct PoolDown {
  const float* in;                 // first tap of the first pixel
  size_t row, pixel;               // steps in it
  float* out;
  size_t out_row, out_pixel;
  size_t rows, pixels, channels;   // outputs, kPoolDownPixels or more; whole vectors
  float scale, low, high;
};
using PoolDownFn = void (*)(const PoolDown&);
constexpr size_t kPoolDownPixels = 4;

// KernelKind::pool_transpose, for NCHW: `count` elements of n planes of the kernel's type, n <= L, to and from floats
// [count][L].
//   variant 0: to[i*L + c] = from[c*plane + i], 0 for c >= n      variant 1: to[c*plane + i] = from[i*L + c]
using PoolTransposeFn = void (*)(size_t n, size_t count, const void* from, size_t plane, void* to);

}  // namespace skua
