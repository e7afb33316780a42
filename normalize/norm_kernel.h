// Normalisations of elements of the kernel's type; statistics and factors are f32. Plain data, included by the kernel
// units. Steps in elements. y may be x.
#pragma once
#include <stddef.h>

namespace skua {

// KernelKind::norm_rows. Variant 0: y = (x - mean) / sqrt(var + epsilon) * gamma + beta over rows of n >= 1 elements;
// 1: y = x / sqrt(mean(x^2) + epsilon) * gamma.
using NormRowsFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, void* y, size_t y_row,
                            const float* gamma, const float* beta, float epsilon);

// KernelKind::norm_sum_columns. Variant 0: y[c] = sum over n rows of x[r*x_row + c];
// 1: of (x[r*x_row + c] - mean[c])^2. add: to what y holds.
using NormSumColumnsFn = void (*)(size_t n, size_t columns, const void* x, size_t x_row, const float* mean, float* y,
                                  bool add);

// KernelKind::norm_sum_rows. Variant 0: sum of x, 1: of (x - mean)^2, over rows of n elements.
using NormSumRowsFn = float (*)(size_t rows, size_t n, const void* x, size_t x_row, float mean);

// KernelKind::norm_affine. Variant 0: y[r][i] = x[r][i] * scale[i] + shift[i]; 1: one scale and shift for all.
using NormAffineFn = void (*)(size_t rows, size_t n, const void* x, size_t x_row, void* y, size_t y_row,
                              const float* scale, const float* shift);

}  // namespace skua
