// What binary and select kernels take. Plain data, included by the kernel units.
#pragma once
#include <stddef.h>

namespace skua {

enum class BinaryForm : int {
  vectors,   // x[i], y[i]
  x_scalar,  // x[0], y[i]
  y_scalar,  // x[i], y[0]
};

// `rows` rows of n elements of the kernel's type; the steps are from one row to the next, in elements.
struct BinaryRows {
  size_t n, rows;
  BinaryForm form;
  const void *x, *y;
  void* z;
  size_t x_step, y_step, z_step;
  float low, high;
};

// KernelKind::binary, variant = skua_binary_kind: z[i] = min(max(f(x, y), low), high), NaN passes. z may be x or y.
using BinaryFn = void (*)(const BinaryRows&);

// KernelKind::select, variant = bytes of an element, 4 or 2: z[i] = condition[i] != 0 ? x[i] : y[i] for n elements,
// bits kept. z may be any of them.
using SelectFn = void (*)(size_t n, const void* condition, const void* x, const void* y, void* z);

}  // namespace skua
