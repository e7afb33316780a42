// Half arithmetic of NEON, AArch64 and AArch32. See half.h for what the operations promise.
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

struct M16 {
  uint16x8_t m;
};

struct I16 {
  int16x8_t v;

  static SKUA_INL I16 set1(int16_t x) { return {vdupq_n_s16(x)}; }
};

struct F16 {
  static constexpr int L = 8;
  static constexpr bool fused = true;
  static constexpr int registers = F32::registers;
  static constexpr bool by_lane = true, has_scalef = false;
  float16x8_t v;

  static SKUA_INL F16 load(const f16* p) { return {vreinterpretq_f16_u16(vld1q_u16(&p->bits))}; }
  static SKUA_INL F16 load_n(const f16* p, size_t n) {
    if (n >= 8) return load(p);
    uint16x4_t low = vdup_n_u16(0), high = low;
    if (n & 4) {
      low = vld1_u16(&p->bits);
      high = part(&p[4].bits, n & 3);
    } else {
      low = part(&p->bits, n);
    }
    return {vreinterpretq_f16_u16(vcombine_u16(low, high))};
  }
  static SKUA_INL F16 broadcast(const f16* p) { return {vreinterpretq_f16_u16(vld1q_dup_u16(&p->bits))}; }
  static SKUA_INL F16 set1(float x) {
    const float16x4_t h = vcvt_f16_f32(vdupq_n_f32(x));
    return {vcombine_f16(h, h)};
  }
  static SKUA_INL F16 zero() { return {vreinterpretq_f16_u16(vdupq_n_u16(0))}; }
  SKUA_INL void store(f16* p) const { vst1q_u16(&p->bits, vreinterpretq_u16_f16(v)); }
  SKUA_INL void store_n(f16* p, size_t n) const {
    if (n >= 8) return store(p);
    const uint16x8_t u = vreinterpretq_u16_f16(v);
    uint16x4_t rest = vget_low_u16(u);
    uint16_t* to = &p->bits;
    if (n & 4) {
      vst1_u16(to, rest);
      rest = vget_high_u16(u);
      to += 4;
    }
    if (n & 2) {
      vst1_lane_u16(to, rest, 0);
      vst1_lane_u16(to + 1, rest, 1);
      if (n & 1) vst1_lane_u16(to + 2, rest, 2);
    } else if (n & 1) {
      vst1_lane_u16(to, rest, 0);
    }
  }

 private:
  static SKUA_INL uint16x4_t part(const uint16_t* p, size_t n) {
    uint16x4_t x = vdup_n_u16(0);
    if (n > 0) x = vld1_lane_u16(p, x, 0);
    if (n > 1) x = vld1_lane_u16(p + 1, x, 1);
    if (n > 2) x = vld1_lane_u16(p + 2, x, 2);
    return x;
  }
};

// gcc for AArch32 takes the plain intrinsics for operators on vectors, which without -ffast-math it does lane by lane.
#if defined(__arm__) && !defined(__clang__)
#define SKUA_HALF_OP(name, instruction)                                      \
  SKUA_INL F16 name(F16 a, F16 b) {                                          \
    float16x8_t r;                                                           \
    asm(instruction ".f16 %q0, %q1, %q2" : "=w"(r) : "w"(a.v), "w"(b.v));    \
    return {r};                                                              \
  }
SKUA_HALF_OP(operator+, "vadd")
SKUA_HALF_OP(operator-, "vsub")
SKUA_HALF_OP(operator*, "vmul")
#undef SKUA_HALF_OP
SKUA_INL M16 gt(F16 a, F16 b) {
  uint16x8_t m;
  asm("vcgt.f16 %q0, %q1, %q2" : "=w"(m) : "w"(a.v), "w"(b.v));
  return {m};
}
#else
SKUA_INL F16 operator+(F16 a, F16 b) { return {vaddq_f16(a.v, b.v)}; }
SKUA_INL F16 operator-(F16 a, F16 b) { return {vsubq_f16(a.v, b.v)}; }
SKUA_INL F16 operator*(F16 a, F16 b) { return {vmulq_f16(a.v, b.v)}; }
SKUA_INL M16 gt(F16 a, F16 b) { return {vcgtq_f16(a.v, b.v)}; }
#endif
SKUA_INL M16 lt(F16 a, F16 b) { return gt(b, a); }
SKUA_INL F16 select(M16 m, F16 a, F16 b) {
  return {vreinterpretq_f16_u16(vbslq_u16(m.m, vreinterpretq_u16_f16(a.v), vreinterpretq_u16_f16(b.v)))};
}
SKUA_INL F16 operator-(F16 a) {
  return {vreinterpretq_f16_u16(veorq_u16(vreinterpretq_u16_f16(a.v), vdupq_n_u16(0x8000)))};
}
SKUA_INL F16 abs(F16 a) { return {vreinterpretq_f16_u16(vandq_u16(vreinterpretq_u16_f16(a.v), vdupq_n_u16(0x7fff)))}; }
SKUA_INL F16 fma(F16 a, F16 b, F16 c) { return {vfmaq_f16(c.v, a.v, b.v)}; }
SKUA_INL F16 fnma(F16 a, F16 b, F16 c) { return {vfmsq_f16(c.v, a.v, b.v)}; }
SKUA_INL F16 min(F16 a, F16 b) { return {vminq_f16(a.v, b.v)}; }
SKUA_INL F16 max(F16 a, F16 b) { return {vmaxq_f16(a.v, b.v)}; }
SKUA_INL F16 clamp_low(F16 x, F16 lo) { return max(x, lo); }
SKUA_INL F16 clamp_high(F16 x, F16 hi) { return min(x, hi); }

SKUA_INL void to_f32(F16 a, F32& low, F32& high) {
  low = {vcvt_f32_f16(vget_low_f16(a.v))};
#if defined(__aarch64__)
  high = {vcvt_high_f32_f16(a.v)};
#else
  high = {vcvt_f32_f16(vget_high_f16(a.v))};
#endif
}
SKUA_INL F16 to_f16(F32 low, F32 high) {
#if defined(__aarch64__)
  return {vcvt_high_f16_f32(vcvt_f16_f32(low.v), high.v)};
#else
  return {vcombine_f16(vcvt_f16_f32(low.v), vcvt_f16_f32(high.v))};
#endif
}

// eight bits, and a step of Newton's
SKUA_INL F16 reciprocal(F16 a) {
  const F16 r = {vrecpeq_f16(a.v)};
  return r * F16{vrecpsq_f16(a.v, r.v)};
}
SKUA_INL F16 trunc(F16 a) { return {vrndq_f16(a.v)}; }
SKUA_INL F16 round(F16 a) { return {vrndnq_f16(a.v)}; }
SKUA_INL F16 floor(F16 a) { return {vrndmq_f16(a.v)}; }
SKUA_INL F16 ceil(F16 a) { return {vrndpq_f16(a.v)}; }

SKUA_INL I16 as_i16(F16 a) { return {vreinterpretq_s16_f16(a.v)}; }
SKUA_INL F16 as_f16(I16 a) { return {vreinterpretq_f16_s16(a.v)}; }
SKUA_INL F16 to_f16(I16 a) { return {vcvtq_f16_s16(a.v)}; }
SKUA_INL I16 operator+(I16 a, I16 b) { return {vaddq_s16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {vsubq_s16(a.v, b.v)}; }
SKUA_INL I16 operator&(I16 a, I16 b) { return {vandq_s16(a.v, b.v)}; }
template <int n>
SKUA_INL I16 shl(I16 a) {
  return {vshlq_n_s16(a.v, n)};
}
template <int n>
SKUA_INL I16 shr(I16 a) {
  return {vshrq_n_s16(a.v, n)};
}
SKUA_INL F16 copysign(F16 magnitude, F16 sign) {
  return {vreinterpretq_f16_u16(
      vbslq_u16(vdupq_n_u16(0x8000), vreinterpretq_u16_f16(sign.v), vreinterpretq_u16_f16(magnitude.v)))};
}

SKUA_INL void pin(F16& a) { asm volatile("" : "+w"(a.v)); }

// gcc 12 has no by-lane form (it makes a dup and a multiply) and hoists loads over multiplies until registers spill; a
// statement that stays where it is written cures both. The lane lies in registers 0..15; on AArch32 in d0..d7, and
// there the product is rounded by itself.
template <int i>
SKUA_INL F16 fma_lane(F16 acc, F16 b, F16 a) {
#if defined(__aarch64__)
  asm volatile("fmla %0.8h, %1.8h, %2.h[%3]" : "+w"(acc.v) : "w"(b.v), "x"(a.v), "i"(i));
#else
  const float16x4_t half = i < 4 ? vget_low_f16(a.v) : vget_high_f16(a.v);
  asm volatile("vmla.f16 %q0, %q1, %P2[%c3]" : "+w"(acc.v) : "w"(b.v), "x"(half), "i"(i & 3));
#endif
  return acc;
}

template <int i>
SKUA_INL F16 mul_lane(F16 b, F16 a) {
  F16 y;
#if defined(__aarch64__)
  asm volatile("fmul %0.8h, %1.8h, %2.h[%3]" : "=w"(y.v) : "w"(b.v), "x"(a.v), "i"(i));
#else
  const float16x4_t half = i < 4 ? vget_low_f16(a.v) : vget_high_f16(a.v);
  asm volatile("vmul.f16 %q0, %q1, %P2[%c3]" : "=w"(y.v) : "w"(b.v), "x"(half), "i"(i & 3));
#endif
  return y;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
