// SSE2, the baseline of x86-64: selection by bit masks, rounding by way of integers.
#pragma once

#include "simd/sse.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL F32 select(M32 m, F32 a, F32 b) { return {_mm_or_ps(_mm_and_ps(m.m, a.v), _mm_andnot_ps(m.m, b.v))}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return as_i32(select(m, as_f32(a), as_f32(b))); }

// Of x with |x| < 2^23 the integer i, with the sign of x where it is zero; all others, NaN and infinity too, are
// integers already.
SKUA_INL F32 integer_or_self(F32 x, F32 i) {
  return select(lt(abs(x), F32::set1(8388608.0f)), {_mm_or_ps(i.v, _mm_and_ps(x.v, _mm_set1_ps(-0.0f)))}, x);
}
SKUA_INL F32 trunc(F32 a) { return integer_or_self(a, to_f32(to_i32(a))); }
SKUA_INL F32 round(F32 a) { return integer_or_self(a, to_f32(round_i32(a))); }
SKUA_INL F32 floor(F32 a) {
  const F32 t = to_f32(to_i32(a));
  return integer_or_self(a, t - keep_if(gt(t, a), F32::set1(1.0f)));
}
SKUA_INL F32 ceil(F32 a) {
  const F32 t = to_f32(to_i32(a));
  return integer_or_self(a, t + keep_if(lt(t, a), F32::set1(1.0f)));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
