// What elementwise kernels on quantised bytes take: real = scale * (q - zero point), docs/quantization.md. Plain data,
// included by the kernel units.
#pragma once
#include <stddef.h>
#include "dispatch/requantize.h"
#include "elementwise/binary_kernel.h"

namespace skua {

// KernelKind::convert_bytes, variant = skua_dtype of x, element = that of y, one of them bytes. With t = x[i] * factor,
// or (x[i] - zero) * factor of bytes:
//   y floats: y[i] = t, rounded to the type
//   y bytes:  y[i] = t clamped and rounded as dispatch/requantize.h says; a NaN is the zero point
// y is not x.
struct ConvertBytes {
  size_t n;
  const void* x;
  void* y;
  float factor;
  int32_t zero;          // zero point of x
  Requantize to;         // of y
  // Of each element, or NULL: factors, and zero points of x in the low half and of y in the high one. `to` then has the
  // bounds of the type for a zero point of 0.
  const float* factors;
  const int32_t* zeros;
};
using ConvertBytesFn = void (*)(const ConvertBytes&);

// KernelKind::binary_bytes, x, y and z of one type; z may be x or y. The result is clamped and rounded as
// dispatch/requantize.h says from t =
//   variant 0: (x - x_zero) * a + (y - y_zero) * b, each product and the sum rounded to f32 (never fused)
//   variant 1: (x - x_zero) * (y - y_zero) * a, the first product exact
//   others, of form `vectors` only, with p = x - x_zero and q = y - y_zero (no operation is fused):
//   variant 2: p / q * a; NaN is 0         3: min(p * a, q * b)          4: max(p * a, q * b)
//   variant 5: (p * a - q * b)^2 * c       6: p * a, where p < 0 p * q * c
struct BinaryBytes {
  size_t n, rows;
  BinaryForm form;
  const void *x, *y;
  void* z;
  size_t x_step, y_step, z_step;
  float a, b, c;
  int32_t x_zero, y_zero;
  Requantize to;
};
using BinaryBytesFn = void (*)(const BinaryBytes&);

// KernelKind::table: y[i] = table[x[i] as an unsigned byte]; y may be x.
using TableFn = void (*)(size_t n, const void* x, void* y, const uint8_t* table);

// KernelKind::clamp_bytes: y[i] = min(max(x[i], low), high); y may be x.
using ClampBytesFn = void (*)(size_t n, const void* x, void* y, int32_t low, int32_t high);

}  // namespace skua
