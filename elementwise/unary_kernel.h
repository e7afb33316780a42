// KernelKind::unary, variant = skua_unary_kind: y[i] = f(x[i]) for n elements; y may be x. a, b: the function's parameters.
#pragma once
#include <stddef.h>

namespace skua {
using UnaryFn = void (*)(size_t n, const float* x, float* y, float a, float b);
}
