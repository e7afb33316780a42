// NEON of AArch32 with VFPv4. Vector arithmetic flushes denormals to zero; division and square root are done lane by
// lane in VFP, which rounds correctly and keeps them.
#pragma once

#include "simd/neon_base.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL bool any(M32 m) {
  const uint32x2_t t = vorr_u32(vget_low_u32(m.m), vget_high_u32(m.m));
  return vget_lane_u64(vreinterpret_u64_u32(t), 0) != 0;
}
SKUA_INL bool all(M32 m) { return !any(~m); }

SKUA_INL F32 operator/(F32 a, F32 b) {
  const float32x4_t x = a.v, y = b.v;
  float32x4_t q = vdupq_n_f32(vgetq_lane_f32(x, 0) / vgetq_lane_f32(y, 0));
  q = vsetq_lane_f32(vgetq_lane_f32(x, 1) / vgetq_lane_f32(y, 1), q, 1);
  q = vsetq_lane_f32(vgetq_lane_f32(x, 2) / vgetq_lane_f32(y, 2), q, 2);
  return {vsetq_lane_f32(vgetq_lane_f32(x, 3) / vgetq_lane_f32(y, 3), q, 3)};
}
// The reciprocal estimate has 8 right bits, a step of Newton's doubles them; the last step corrects by the true
// remainder.
SKUA_INL F32 quotient(F32 a, F32 b) {
  float32x4_t r = vrecpeq_f32(b.v);
  r = vmulq_f32(r, vrecpsq_f32(b.v, r));
  r = vmulq_f32(r, vrecpsq_f32(b.v, r));
  const float32x4_t left = vfmsq_f32(vdupq_n_f32(1.0f), b.v, r);
  return {vmulq_f32(a.v, vfmaq_f32(r, r, left))};
}
SKUA_INL F32 sqrt(F32 a) {
  float32x4_t q = vdupq_n_f32(__builtin_sqrtf(vgetq_lane_f32(a.v, 0)));
  q = vsetq_lane_f32(__builtin_sqrtf(vgetq_lane_f32(a.v, 1)), q, 1);
  q = vsetq_lane_f32(__builtin_sqrtf(vgetq_lane_f32(a.v, 2)), q, 2);
  return {vsetq_lane_f32(__builtin_sqrtf(vgetq_lane_f32(a.v, 3)), q, 3)};
}

// Below 2^23 adding and taking away 2^23 rounds to even (vector arithmetic knows no other rounding here); all others
// are integers.
SKUA_INL F32 round(F32 a) {
  const F32 big = F32::set1(8388608.0f), m = abs(a);
  return select(lt(m, big), copysign((m + big) - big, a), a);
}
SKUA_INL I32 round_i32(F32 a) { return to_i32(round(a)); }
SKUA_INL F32 integer_or_self(F32 x, F32 i) { return select(lt(abs(x), F32::set1(8388608.0f)), copysign(i, x), x); }
SKUA_INL F32 trunc(F32 a) { return integer_or_self(a, to_f32(to_i32(a))); }
SKUA_INL F32 floor(F32 a) {
  const F32 t = to_f32(to_i32(a));
  return integer_or_self(a, t - keep_if(gt(t, a), F32::set1(1.0f)));
}
SKUA_INL F32 ceil(F32 a) {
  const F32 t = to_f32(to_i32(a));
  return integer_or_self(a, t + keep_if(lt(t, a), F32::set1(1.0f)));
}

template <int i>
SKUA_INL F32 fma_lane(F32 acc, F32 b, F32 a) {
  return {vmlaq_lane_f32(acc.v, b.v, i < 2 ? vget_low_f32(a.v) : vget_high_f32(a.v), i & 1)};
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
