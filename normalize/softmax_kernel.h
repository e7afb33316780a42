// Softmax of rows and of columns, of elements of the kernel's type; steps in elements. Plain data, included by the
// kernel units. Variant 0: softmax, 1: its logarithm. y may be x.
#pragma once
#include <stddef.h>
#include "dispatch/requantize.h"

namespace skua {

// KernelKind::softmax_rows: n elements next to each other, n >= 1.
using SoftmaxRowsFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, void* y, size_t y_row, float scale);

// KernelKind::softmax_columns: over n >= 1 rows, for each column.
using SoftmaxColumnsFn = void (*)(size_t n, size_t columns, const void* x, size_t x_row, void* y, size_t y_row,
                                  float scale);

// KernelKind::softmax_bytes, variant 0: softmax, 1: its logarithm; + 2: of columns. x, any bytes, y of the kernel's
// type; y may be x. Over the axis, with u = x ^ flip, d = (greatest u) - u and S = the sum of powers[d], exact:
//   softmax     y = float(powers[d]) * float(1 / (double(S) * step))
//   logarithm   y = float(-d) * slope - float(log(double(S) / 2^30) / step)       a product and a difference, each
//                                                                                 rounded to f32
// clamped and rounded as dispatch/requantize.h says.
struct SoftmaxBytes {
  size_t count, n;         // rows, or columns; elements of the axis, 1 or more
  const void* x;
  void* y;
  size_t x_step, y_step;   // from one row to the next; of columns from one element of the axis to the next
  const int32_t* powers;   // 256 numbers: 2^30 at 0, 0 or more
  uint8_t flip;
  float slope;
  double step;             // of the output
  Requantize to;
};
using SoftmaxBytesFn = void (*)(const SoftmaxBytes&);

}  // namespace skua
