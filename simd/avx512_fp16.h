// Half arithmetic of AVX512-FP16. See half.h for what the operations promise, avx512.h for NaN in min and max and for
// the zero-masked forms.
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

struct M16 {
  __mmask32 m;
};

struct I16 {
  __m512i v;

  static SKUA_INL I16 set1(int16_t x) { return {_mm512_set1_epi16(x)}; }
};

struct F16 {
  static constexpr int L = 32;
  static constexpr bool fused = true;
  static constexpr int registers = 32;
  static constexpr bool by_lane = false, has_scalef = true;
  __m512h v;

  static SKUA_INL __mmask32 first(size_t n) { return static_cast<__mmask32>((uint64_t{1} << n) - 1); }
  static SKUA_INL F16 load(const f16* p) { return {_mm512_castsi512_ph(_mm512_loadu_si512(p))}; }
  static SKUA_INL F16 load_n(const f16* p, size_t n) {
    return {_mm512_castsi512_ph(_mm512_maskz_loadu_epi16(first(n), p))};
  }
  static SKUA_INL F16 broadcast(const f16* p) {
    return {_mm512_castsi512_ph(_mm512_set1_epi16(static_cast<short>(p->bits)))};
  }
  static SKUA_INL F16 set1(float x) { return {_mm512_set1_ph(static_cast<_Float16>(x))}; }
  static SKUA_INL F16 zero() { return {_mm512_setzero_ph()}; }
  SKUA_INL void store(f16* p) const { _mm512_storeu_si512(p, _mm512_castph_si512(v)); }
  SKUA_INL void store_n(f16* p, size_t n) const { _mm512_mask_storeu_epi16(p, first(n), _mm512_castph_si512(v)); }
};

SKUA_INL F16 operator+(F16 a, F16 b) { return {_mm512_add_ph(a.v, b.v)}; }
SKUA_INL F16 operator-(F16 a, F16 b) { return {_mm512_sub_ph(a.v, b.v)}; }
SKUA_INL F16 operator*(F16 a, F16 b) { return {_mm512_mul_ph(a.v, b.v)}; }
SKUA_INL F16 operator-(F16 a) {
  return {_mm512_castsi512_ph(_mm512_xor_si512(_mm512_castph_si512(a.v), _mm512_set1_epi16(INT16_MIN)))};
}
SKUA_INL F16 abs(F16 a) {
  return {_mm512_castsi512_ph(_mm512_and_si512(_mm512_castph_si512(a.v), _mm512_set1_epi16(INT16_MAX)))};
}
SKUA_INL F16 fma(F16 a, F16 b, F16 c) { return {_mm512_fmadd_ph(a.v, b.v, c.v)}; }
SKUA_INL F16 fnma(F16 a, F16 b, F16 c) { return {_mm512_fnmadd_ph(a.v, b.v, c.v)}; }
SKUA_INL M16 lt(F16 a, F16 b) { return {_mm512_cmp_ph_mask(a.v, b.v, _CMP_LT_OQ)}; }
SKUA_INL M16 gt(F16 a, F16 b) { return lt(b, a); }
SKUA_INL F16 select(M16 m, F16 a, F16 b) { return {_mm512_mask_blend_ph(m.m, b.v, a.v)}; }

SKUA_INL F16 clamp_low(F16 x, F16 lo) { return {_mm512_max_ph(lo.v, x.v)}; }
SKUA_INL F16 clamp_high(F16 x, F16 hi) { return {_mm512_min_ph(hi.v, x.v)}; }
SKUA_INL F16 min(F16 a, F16 b) { return {_mm512_mask_min_ph(a.v, _mm512_cmp_ph_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)}; }
SKUA_INL F16 max(F16 a, F16 b) { return {_mm512_mask_max_ph(a.v, _mm512_cmp_ph_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)}; }

template <int mode>
SKUA_INL F16 rounded(F16 a) {
  return {_mm512_maskz_roundscale_ph(0xffffffff, a.v, mode | _MM_FROUND_NO_EXC)};
}
SKUA_INL F16 trunc(F16 a) { return rounded<_MM_FROUND_TO_ZERO>(a); }
SKUA_INL F16 round(F16 a) { return rounded<_MM_FROUND_TO_NEAREST_INT>(a); }
SKUA_INL F16 floor(F16 a) { return rounded<_MM_FROUND_TO_NEG_INF>(a); }
SKUA_INL F16 ceil(F16 a) { return rounded<_MM_FROUND_TO_POS_INF>(a); }
SKUA_INL F16 scalef(F16 a, F16 n) { return {_mm512_maskz_scalef_ph(0xffffffff, a.v, n.v)}; }

SKUA_INL I16 as_i16(F16 a) { return {_mm512_castph_si512(a.v)}; }
SKUA_INL F16 as_f16(I16 a) { return {_mm512_castsi512_ph(a.v)}; }
SKUA_INL F16 to_f16(I16 a) { return {_mm512_maskz_cvtepi16_ph(0xffffffff, a.v)}; }
SKUA_INL I16 operator+(I16 a, I16 b) { return {_mm512_add_epi16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {_mm512_sub_epi16(a.v, b.v)}; }
SKUA_INL I16 operator&(I16 a, I16 b) { return {_mm512_and_si512(a.v, b.v)}; }
template <int n>
SKUA_INL I16 shl(I16 a) {
  return {_mm512_slli_epi16(a.v, n)};
}
template <int n>
SKUA_INL I16 shr(I16 a) {
  return {_mm512_srai_epi16(a.v, n)};
}
// Bits of 1 / a within a tenth, and two steps of Newton's: five operations where vrcpph is three (Bochs has it wrong).
SKUA_INL F16 reciprocal(F16 a) {
  const F16 one = F16::set1(1.0f);
  F16 r = as_f16(I16::set1(0x7799) - as_i16(a));
  r = fma(fnma(a, r, one), r, r);
  return fma(fnma(a, r, one), r, r);
}
SKUA_INL F16 copysign(F16 magnitude, F16 sign) {
  return as_f16(
      {_mm512_ternarylogic_epi32(as_i16(magnitude).v, as_i16(sign).v, _mm512_set1_epi16(INT16_MAX), 0xe4)});
}

SKUA_INL F32 half_of(F16 a, int half) {  // 0: the lower lanes
  const __m512i u = _mm512_castph_si512(a.v);
  return {_mm512_maskz_cvtph_ps(
      0xffff, half ? _mm512_maskz_extracti64x4_epi64(0xff, u, 1) : _mm512_maskz_extracti64x4_epi64(0xff, u, 0))};
}
SKUA_INL void to_f32(F16 a, F32& low, F32& high) {
  low = half_of(a, 0);
  high = half_of(a, 1);
}
SKUA_INL F16 to_f16(F32 low, F32 high) {
  constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  const __m512i u = _mm512_castsi256_si512(_mm512_maskz_cvtps_ph(0xffff, low.v, nearest));
  return {_mm512_castsi512_ph(_mm512_maskz_inserti64x4(0xff, u, _mm512_maskz_cvtps_ph(0xffff, high.v, nearest), 1))};
}

SKUA_INL void pin(F16& a) { asm volatile("" : "+v"(a.v)); }

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
