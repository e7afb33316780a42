// Reductions of rows and of columns of elements of the kernel's type, with f32 results. Plain data, included by the
// kernel units. The variant says what is computed.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

enum ReduceVariant : uint16_t {
  kReduceSum,
  kReduceMin,
  kReduceMax,
  kReduceProd,
  kReduceSumSquares,
  kReduceArgmin,
  kReduceArgmax
};

// KernelKind::reduce_rows: y[r] = (x[r*x_row] op ... op x[r*x_row + n-1]) / divisor, n >= 1.
using ReduceRowsFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, float* y, float divisor);

// KernelKind::reduce_columns: y[c] = (x[c] op x[x_row + c] op ...) / divisor over n >= 1 rows.
using ReduceColumnsFn = void (*)(size_t n, size_t columns, const void* x, size_t x_row, float* y, float divisor);

// The same kinds with the variants kReduceArgmin, kReduceArgmax: the index of the first smallest or largest element, of
// the first NaN if there is one.
using ArgRowsFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, int32_t* y);
using ArgColumnsFn = void (*)(size_t n, size_t columns, const void* x, size_t x_row, int32_t* y);

}  // namespace skua
