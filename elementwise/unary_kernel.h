// KernelKind::unary, variant = skua_unary_kind: y[i] = f(x[i]) for n elements of the kernel's type; y may be x. a, b:
// the function's parameters. kInHalves more: computed in halves (simd/math_half.h), where the other is as in f32.
// KernelKind::convert, variant = skua_dtype of x, element = that of y: y[i] = x[i], rounded. y is not x.
#pragma once
#include <stddef.h>

namespace skua {
constexpr int kInHalves = 64;
using UnaryFn = void (*)(size_t n, const void* x, void* y, float a, float b);
using ConvertFn = void (*)(size_t n, const void* x, void* y);
}
