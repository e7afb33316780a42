// Kernels that move elements and keep their bits. Strides are in elements and may be negative or, on the side that is
// read, zero.
// The variant is the size of an element in bytes: 4, 2 or 1. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>

namespace skua {

// KernelKind::copy_rows: y[r*y_row + i] = x[r*x_row + i], i < n.
using CopyRowsFn = void (*)(size_t rows, size_t n, const void* x, ptrdiff_t x_row, void* y, ptrdiff_t y_row);

// KernelKind::copy_transposed: y[r*y_row + i] = x[r + i*x_step], r < rows, i < n.
using CopyTransposedFn = void (*)(size_t rows, size_t n, const void* x, ptrdiff_t x_step, void* y, ptrdiff_t y_row);

// KernelKind::copy_strided: y[r*y_row + i*y_step] = x[r*x_row + i*x_step]. x_step 0 with y_step 1 fills.
using CopyStridedFn = void (*)(size_t rows, size_t n, const void* x, ptrdiff_t x_row, ptrdiff_t x_step, void* y,
                               ptrdiff_t y_row, ptrdiff_t y_step);

}  // namespace skua
