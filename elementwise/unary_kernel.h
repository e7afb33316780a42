// KernelKind::unary, variant = skua_unary_kind: y[i] = f(x[i]) for n elements of the kernel's type; y may be x. a, b:
// the function's parameters.
// KernelKind::convert, variant = skua_dtype of x, element = that of y: y[i] = x[i], rounded. y is not x.
#pragma once
#include <stddef.h>

namespace skua {
using UnaryFn = void (*)(size_t n, const void* x, void* y, float a, float b);
using ConvertFn = void (*)(size_t n, const void* x, void* y);
}
