// 128-bit NEON: what AArch64 and AArch32 share. See simd.h for what the operations promise.
// The instructions FMAX and FMIN give NaN for a NaN in either operand, so one form serves min, min_fast and clamp
// alike.
#pragma once

#include <arm_neon.h>

#include "simd/neon_checked.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct M32 {
  uint32x4_t m;
};

struct F32 {
  static constexpr int L = 4;
  static constexpr bool fused = true;
#if defined(__aarch64__)
  static constexpr int registers = 32;
#else
  static constexpr int registers = 16;
#endif
  static constexpr bool by_lane = true;
  static constexpr bool has_scalef = false;
  float32x4_t v;

  static SKUA_INL F32 load(const float* p) { return {vld1q_f32(p)}; }
  static SKUA_INL F32 load_n(const float* p, size_t n) {
    if (n >= 4) return load(p);
    const float32x2_t none = vdup_n_f32(0.0f);
    const float32x2_t last = n & 1 ? vld1_lane_f32(p + (n & 2), none, 0) : none;
    return {n & 2 ? vcombine_f32(vld1_f32(p), last) : vcombine_f32(last, none)};
  }
  static SKUA_INL F32 broadcast(const float* p) { return {vld1q_dup_f32(p)}; }
  static SKUA_INL F32 set1(float x) { return {vdupq_n_f32(x)}; }
  static SKUA_INL F32 zero() { return {vdupq_n_f32(0.0f)}; }
  SKUA_INL void store(float* p) const { vst1q_f32(p, v); }
  SKUA_INL void store_n(float* p, size_t n) const {
    if (n >= 4) return store(p);
    if (n & 2) vst1_f32(p, vget_low_f32(v));
    if (n & 1) vst1_lane_f32(p + (n & 2), n & 2 ? vget_high_f32(v) : vget_low_f32(v), 0);
  }
  SKUA_STORAGE_MEMBERS
};

struct I32 {
  static constexpr int L = 4;
  int32x4_t v;

  static SKUA_INL I32 load(const int32_t* p) { return {vld1q_s32(p)}; }
  static SKUA_INL I32 load_n(const int32_t* p, size_t n) {
    if (n >= 4) return load(p);
    const int32x2_t none = vdup_n_s32(0);
    const int32x2_t last = n & 1 ? vld1_lane_s32(p + (n & 2), none, 0) : none;
    return {n & 2 ? vcombine_s32(vld1_s32(p), last) : vcombine_s32(last, none)};
  }
  static SKUA_INL I32 set1(int32_t x) { return {vdupq_n_s32(x)}; }
  SKUA_INL void store(int32_t* p) const { vst1q_s32(p, v); }
  SKUA_INL void store_n(int32_t* p, size_t n) const {
    if (n >= 4) return store(p);
    if (n & 2) vst1_s32(p, vget_low_s32(v));
    if (n & 1) vst1_lane_s32(p + (n & 2), n & 2 ? vget_high_s32(v) : vget_low_s32(v), 0);
  }
  SKUA_BYTE_MEMBERS
};

SKUA_INL I32 as_i32(F32 a) { return {vreinterpretq_s32_f32(a.v)}; }
SKUA_INL F32 as_f32(I32 a) { return {vreinterpretq_f32_s32(a.v)}; }

SKUA_INL M32 operator&(M32 a, M32 b) { return {vandq_u32(a.m, b.m)}; }
SKUA_INL M32 operator|(M32 a, M32 b) { return {vorrq_u32(a.m, b.m)}; }
SKUA_INL M32 operator~(M32 a) { return {vmvnq_u32(a.m)}; }

// gcc for AArch32 takes these intrinsics for operators on vectors, which without -ffast-math it does lane by lane in
// VFP.
#if defined(__arm__) && !defined(__clang__)
SKUA_INL M32 gt(F32 a, F32 b) {
  uint32x4_t m;
  asm("vcgt.f32 %q0, %q1, %q2" : "=w"(m) : "w"(a.v), "w"(b.v));
  return {m};
}
SKUA_INL M32 ge(F32 a, F32 b) {
  uint32x4_t m;
  asm("vcge.f32 %q0, %q1, %q2" : "=w"(m) : "w"(a.v), "w"(b.v));
  return {m};
}
SKUA_INL F32 operator-(F32 a) {
  return {vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a.v), vdupq_n_u32(0x80000000u)))};
}
#else
SKUA_INL F32 operator-(F32 a) { return {vnegq_f32(a.v)}; }
SKUA_INL M32 gt(F32 a, F32 b) { return {vcgtq_f32(a.v, b.v)}; }
SKUA_INL M32 ge(F32 a, F32 b) { return {vcgeq_f32(a.v, b.v)}; }
#endif
SKUA_INL M32 lt(F32 a, F32 b) { return gt(b, a); }
SKUA_INL M32 le(F32 a, F32 b) { return ge(b, a); }
SKUA_INL M32 eq(F32 a, F32 b) { return {vceqq_f32(a.v, b.v)}; }
SKUA_INL M32 ne(F32 a, F32 b) { return ~eq(a, b); }
SKUA_INL M32 is_nan(F32 a) { return ne(a, a); }
SKUA_INL F32 select(M32 m, F32 a, F32 b) { return {vbslq_f32(m.m, a.v, b.v)}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return {vbslq_s32(m.m, a.v, b.v)}; }
SKUA_INL F32 keep_if(M32 m, F32 a) { return {vreinterpretq_f32_u32(vandq_u32(m.m, vreinterpretq_u32_f32(a.v)))}; }

SKUA_INL F32 operator+(F32 a, F32 b) { return {vaddq_f32(a.v, b.v)}; }
SKUA_INL F32 operator-(F32 a, F32 b) { return {vsubq_f32(a.v, b.v)}; }
SKUA_INL F32 operator*(F32 a, F32 b) { return {vmulq_f32(a.v, b.v)}; }
SKUA_INL F32 fma(F32 a, F32 b, F32 c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
SKUA_INL F32 fnma(F32 a, F32 b, F32 c) { return {vfmsq_f32(c.v, a.v, b.v)}; }

SKUA_INL F32 min(F32 a, F32 b) { return {vminq_f32(a.v, b.v)}; }
SKUA_INL F32 max(F32 a, F32 b) { return {vmaxq_f32(a.v, b.v)}; }
SKUA_INL F32 min_fast(F32 a, F32 b) { return min(a, b); }
SKUA_INL F32 max_fast(F32 a, F32 b) { return max(a, b); }
SKUA_INL F32 clamp_low(F32 x, F32 lo) { return max(x, lo); }
SKUA_INL F32 clamp_high(F32 x, F32 hi) { return min(x, hi); }

SKUA_INL F32 abs(F32 a) { return {vabsq_f32(a.v)}; }
SKUA_INL F32 copysign(F32 magnitude, F32 sign) { return {vbslq_f32(vdupq_n_u32(0x80000000u), sign.v, magnitude.v)}; }

SKUA_INL I32 to_i32(F32 a) { return {vcvtq_s32_f32(a.v)}; }
SKUA_INL F32 to_f32(I32 a) { return {vcvtq_f32_s32(a.v)}; }

SKUA_INL I32 operator+(I32 a, I32 b) { return {vaddq_s32(a.v, b.v)}; }
SKUA_INL I32 operator-(I32 a, I32 b) { return {vsubq_s32(a.v, b.v)}; }
SKUA_INL I32 operator&(I32 a, I32 b) { return {vandq_s32(a.v, b.v)}; }
SKUA_INL I32 operator|(I32 a, I32 b) { return {vorrq_s32(a.v, b.v)}; }
SKUA_INL I32 operator^(I32 a, I32 b) { return {veorq_s32(a.v, b.v)}; }
template <int n>
SKUA_INL I32 shl(I32 a) {
  return {vshlq_n_s32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr(I32 a) {
  return {vshrq_n_s32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr_logical(I32 a) {
  return {vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v), n))};
}
SKUA_INL M32 eq(I32 a, I32 b) { return {vceqq_s32(a.v, b.v)}; }
SKUA_INL M32 gt(I32 a, I32 b) { return {vcgtq_s32(a.v, b.v)}; }

SKUA_INL float sum(F32 a) {
  const float32x2_t s = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(vpadd_f32(s, s), 0);
}
SKUA_INL float max_of(F32 a) {
  const float32x2_t s = vmax_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(vpmax_f32(s, s), 0);
}
SKUA_INL float min_of(F32 a) {
  const float32x2_t s = vmin_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(vpmin_f32(s, s), 0);
}

SKUA_INL void pin(F32& a) { asm volatile("" : "+w"(a.v)); }
SKUA_INL void transpose(F32 (&r)[4]) {
  const float32x4x2_t a = vtrnq_f32(r[0].v, r[1].v), b = vtrnq_f32(r[2].v, r[3].v);
  r[0].v = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  r[1].v = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  r[2].v = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  r[3].v = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

// Elements of 16 bits (storage.h). The conversions of f16 are assembly on AArch32: its compilers know the type by an
// option only, and each by another one.
SKUA_INL uint16x4_t first_u16(const uint16_t* p, size_t n) {
  if (n >= 4) return vld1_u16(p);
  uint16x4_t x = vdup_n_u16(0);
  if (n > 0) x = vld1_lane_u16(p, x, 0);
  if (n > 1) x = vld1_lane_u16(p + 1, x, 1);
  if (n > 2) x = vld1_lane_u16(p + 2, x, 2);
  return x;
}
SKUA_INL void store_first_u16(uint16x4_t x, uint16_t* p, size_t n) {
  if (n >= 4) return vst1_u16(p, x);
  if (n > 0) vst1_lane_u16(p, x, 0);
  if (n > 1) vst1_lane_u16(p + 1, x, 1);
  if (n > 2) vst1_lane_u16(p + 2, x, 2);
}
SKUA_INL I32 load_u16(const uint16_t* p) { return {vreinterpretq_s32_u32(vmovl_u16(vld1_u16(p)))}; }
SKUA_INL I32 load_u16_n(const uint16_t* p, size_t n) { return {vreinterpretq_s32_u32(vmovl_u16(first_u16(p, n)))}; }
SKUA_INL void store_u16(I32 x, uint16_t* p) { vst1_u16(p, vmovn_u32(vreinterpretq_u32_s32(x.v))); }
SKUA_INL void store_u16_n(I32 x, uint16_t* p, size_t n) {
  store_first_u16(vmovn_u32(vreinterpretq_u32_s32(x.v)), p, n);
}
#define SKUA_SIMD_CONVERTS_F16 1
#if defined(__aarch64__)
SKUA_INL F32 widen_f16(uint16x4_t h) { return {vcvt_f32_f16(vreinterpret_f16_u16(h))}; }
SKUA_INL uint16x4_t narrow_f16(F32 x) { return vreinterpret_u16_f16(vcvt_f16_f32(x.v)); }
#else
SKUA_INL F32 widen_f16(uint16x4_t h) {
  F32 x;
  asm("vcvt.f32.f16 %q0, %P1" : "=w"(x.v) : "w"(h));
  return x;
}
SKUA_INL uint16x4_t narrow_f16(F32 x) {
  uint16x4_t h;
  asm("vcvt.f16.f32 %P0, %q1" : "=w"(h) : "w"(x.v));
  return h;
}
#endif
// One shift that widens; gcc makes two instructions of the intrinsics, clang refuses to shift by all bits.
#define SKUA_SIMD_WIDENS_BF16 1
SKUA_INL F32 widen_bf16(uint16x4_t h) {
  F32 x;
#if defined(__aarch64__)
  asm("shll %0.4s, %1.4h, #16" : "=w"(x.v) : "w"(h));
#else
  asm("vshll.i16 %q0, %P1, #16" : "=w"(x.v) : "w"(h));
#endif
  return x;
}
SKUA_INL F32 load_as(const bf16* p) { return widen_bf16(vld1_u16(&p->bits)); }
SKUA_INL F32 load_as_n(const bf16* p, size_t n) { return widen_bf16(first_u16(&p->bits, n)); }
SKUA_INL F32 load_as(const f16* p) { return widen_f16(vld1_u16(&p->bits)); }
SKUA_INL F32 load_as_n(const f16* p, size_t n) { return widen_f16(first_u16(&p->bits, n)); }
SKUA_INL F32 broadcast_as(const f16* p) { return widen_f16(vld1_dup_u16(&p->bits)); }
SKUA_INL void store_as(F32 x, f16* p) { vst1_u16(&p->bits, narrow_f16(x)); }
SKUA_INL void store_as_n(F32 x, f16* p, size_t n) { store_first_u16(narrow_f16(x), &p->bits, n); }

// Bytes (bytes.h).
SKUA_INL uint8x8_t first_4_bytes(const void* p, size_t n) { return vcreate_u8(first_bytes(p, n < 4 ? n : 4)); }
SKUA_INL I32 load_s8(const int8_t* p, size_t n) {
  return {vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(first_4_bytes(p, n)))))};
}
SKUA_INL I32 load_u8(const uint8_t* p, size_t n) {
  return {vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(first_4_bytes(p, n)))))};
}
SKUA_INL void store_u8(I32 x, uint8_t* p, size_t n) {
  const uint16x4_t words = vmovn_u32(vreinterpretq_u32_s32(x.v));
  store_first_bytes(vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0), p, n < 4 ? n : 4);
}
template <class T> SKUA_INL void store_bytes(const I32 (&x)[4], T* p) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x[0].v), vmovn_s32(x[1].v)),
                  high = vcombine_s16(vmovn_s32(x[2].v), vmovn_s32(x[3].v));
  vst1q_u8(reinterpret_cast<uint8_t*>(p), vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high))));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
