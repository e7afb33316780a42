// The epilogue's activation: a clamp that kernels apply in registers, or a row function applied while the result is in
// the first-level cache.
#pragma once
#include <float.h>
#include "core/op.h"
#include "elementwise/unary_kernel.h"

namespace skua {

struct Activation {
  float low, high;        // clamp; -inf, +inf = none. NaN passes
  const Kernel* kernel;   // NULL = the clamp is all
  float a, b;
};

// Resolves an activation whose kind was checked; UNSUPPORTED if the function's kernel was left out of the build.
// element: what apply_row() finds in memory.
skua_status resolve_activation(const skua_op* op, const skua_activation& from, Activation& to,
                               Element element = Element::f32);

inline void apply_row(const Activation& act, size_t n, void* y) { code_of<UnaryFn>(act.kernel)(n, y, y, act.a, act.b); }

}  // namespace skua
