// Softmax of rows and of columns, of elements of the kernel's type; steps in elements. Plain data, included by the kernel units. Variant 0: softmax,
// 1: its logarithm. y may be x.
#pragma once
#include <stddef.h>

namespace skua {

// KernelKind::softmax_rows: n elements next to each other, n >= 1.
using SoftmaxRowsFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, void* y, size_t y_row, float scale);

// KernelKind::softmax_columns: over n >= 1 rows, for each column.
using SoftmaxColumnsFn = void (*)(size_t n, size_t columns, const void* x, size_t x_row, void* y, size_t y_row, float scale);

}  // namespace skua
