// 128-bit vectors of x86: what SSE2 and SSE4.1 share. See simd.h for what the operations promise.
// The instruction max(a, b) is "a > b ? a : b": a NaN in either operand gives the second one, which decides the order
// below.
#pragma once

#include <emmintrin.h>

namespace skua {
namespace SKUA_ISA {
namespace {

struct M32 {
  __m128 m;
};

struct F32 {
  static constexpr int L = 4;
  static constexpr bool fused = false;
#if defined(__x86_64__)
  static constexpr int registers = 16;
#else
  static constexpr int registers = 8;
#endif
  static constexpr bool by_lane = false;
  static constexpr bool has_scalef = false;
  __m128 v;

  static SKUA_INL F32 load(const float* p) { return {_mm_loadu_ps(p)}; }
  static SKUA_INL F32 load_n(const float* p, size_t n);
  static SKUA_INL F32 broadcast(const float* p) { return {_mm_load1_ps(p)}; }
  static SKUA_INL F32 set1(float x) { return {_mm_set1_ps(x)}; }
  static SKUA_INL F32 zero() { return {_mm_setzero_ps()}; }
  SKUA_INL void store(float* p) const { _mm_storeu_ps(p, v); }
  SKUA_INL void store_n(float* p, size_t n) const;
  SKUA_STORAGE_MEMBERS
};

struct I32 {
  static constexpr int L = 4;
  __m128i v;

  static SKUA_INL I32 load(const int32_t* p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))}; }
  static SKUA_INL I32 load_n(const int32_t* p, size_t n);
  static SKUA_INL I32 set1(int32_t x) { return {_mm_set1_epi32(x)}; }
  SKUA_INL void store(int32_t* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
  SKUA_INL void store_n(int32_t* p, size_t n) const;
  SKUA_BYTE_MEMBERS
};

SKUA_INL I32 as_i32(F32 a) { return {_mm_castps_si128(a.v)}; }
SKUA_INL F32 as_f32(I32 a) { return {_mm_castsi128_ps(a.v)}; }

SKUA_INL I32 I32::load_n(const int32_t* p, size_t n) {
  if (n >= 4) return load(p);
  const __m128i last = n & 1 ? _mm_cvtsi32_si128(p[n & 2]) : _mm_setzero_si128();
  return {n & 2 ? _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), last) : last};
}
SKUA_INL void I32::store_n(int32_t* p, size_t n) const {
  if (n >= 4) return store(p);
  if (n & 2) _mm_storel_epi64(reinterpret_cast<__m128i*>(p), v);
  if (n & 1) p[n & 2] = _mm_cvtsi128_si32(n & 2 ? _mm_unpackhi_epi64(v, v) : v);
}
SKUA_INL F32 F32::load_n(const float* p, size_t n) {
  if (n >= 4) return load(p);
  const __m128 last = n & 1 ? _mm_load_ss(p + (n & 2)) : _mm_setzero_ps();
  return {n & 2 ? _mm_movelh_ps(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), last) : last};
}
SKUA_INL void F32::store_n(float* p, size_t n) const {
  if (n >= 4) return store(p);
  if (n & 2) _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_castps_si128(v));
  if (n & 1) _mm_store_ss(p + (n & 2), n & 2 ? _mm_movehl_ps(v, v) : v);
}

SKUA_INL M32 operator&(M32 a, M32 b) { return {_mm_and_ps(a.m, b.m)}; }
SKUA_INL M32 operator|(M32 a, M32 b) { return {_mm_or_ps(a.m, b.m)}; }
SKUA_INL M32 operator~(M32 a) { return {_mm_xor_ps(a.m, _mm_castsi128_ps(_mm_set1_epi32(-1)))}; }
SKUA_INL bool any(M32 m) { return _mm_movemask_ps(m.m) != 0; }
SKUA_INL bool all(M32 m) { return _mm_movemask_ps(m.m) == 15; }

SKUA_INL M32 lt(F32 a, F32 b) { return {_mm_cmplt_ps(a.v, b.v)}; }
SKUA_INL M32 le(F32 a, F32 b) { return {_mm_cmple_ps(a.v, b.v)}; }
SKUA_INL M32 gt(F32 a, F32 b) { return {_mm_cmpgt_ps(a.v, b.v)}; }
SKUA_INL M32 ge(F32 a, F32 b) { return {_mm_cmpge_ps(a.v, b.v)}; }
SKUA_INL M32 eq(F32 a, F32 b) { return {_mm_cmpeq_ps(a.v, b.v)}; }
SKUA_INL M32 ne(F32 a, F32 b) { return {_mm_cmpneq_ps(a.v, b.v)}; }
SKUA_INL M32 is_nan(F32 a) { return {_mm_cmpunord_ps(a.v, a.v)}; }
SKUA_INL M32 or_nan(M32 m, F32 a) { return {_mm_cmpunord_ps(m.m, a.v)}; }  // a mask's ones are a NaN
SKUA_INL F32 keep_if(M32 m, F32 a) { return {_mm_and_ps(m.m, a.v)}; }

SKUA_INL F32 operator+(F32 a, F32 b) { return {_mm_add_ps(a.v, b.v)}; }
SKUA_INL F32 operator-(F32 a, F32 b) { return {_mm_sub_ps(a.v, b.v)}; }
SKUA_INL F32 operator*(F32 a, F32 b) { return {_mm_mul_ps(a.v, b.v)}; }
SKUA_INL F32 operator/(F32 a, F32 b) { return {_mm_div_ps(a.v, b.v)}; }
SKUA_INL F32 quotient(F32 a, F32 b) { return a / b; }
SKUA_INL F32 operator-(F32 a) { return {_mm_xor_ps(a.v, _mm_set1_ps(-0.0f))}; }
SKUA_INL F32 fma(F32 a, F32 b, F32 c) { return {_mm_add_ps(_mm_mul_ps(a.v, b.v), c.v)}; }
SKUA_INL F32 fnma(F32 a, F32 b, F32 c) { return {_mm_sub_ps(c.v, _mm_mul_ps(a.v, b.v))}; }

SKUA_INL F32 min_fast(F32 a, F32 b) { return {_mm_min_ps(a.v, b.v)}; }
SKUA_INL F32 max_fast(F32 a, F32 b) { return {_mm_max_ps(a.v, b.v)}; }
SKUA_INL F32 clamp_low(F32 x, F32 lo) { return {_mm_max_ps(lo.v, x.v)}; }
SKUA_INL F32 clamp_high(F32 x, F32 hi) { return {_mm_min_ps(hi.v, x.v)}; }
// Both orders agree unless a NaN is there, and a NaN or-ed with anything is a NaN.
SKUA_INL F32 min(F32 a, F32 b) { return {_mm_or_ps(_mm_min_ps(a.v, b.v), _mm_min_ps(b.v, a.v))}; }
SKUA_INL F32 max(F32 a, F32 b) { return {_mm_or_ps(_mm_max_ps(a.v, b.v), _mm_max_ps(b.v, a.v))}; }

SKUA_INL F32 abs(F32 a) { return {_mm_andnot_ps(_mm_set1_ps(-0.0f), a.v)}; }
SKUA_INL F32 copysign(F32 magnitude, F32 sign) {
  const __m128 bit = _mm_set1_ps(-0.0f);
  return {_mm_or_ps(_mm_andnot_ps(bit, magnitude.v), _mm_and_ps(bit, sign.v))};
}
SKUA_INL F32 sqrt(F32 a) { return {_mm_sqrt_ps(a.v)}; }

SKUA_INL I32 to_i32(F32 a) { return {_mm_cvttps_epi32(a.v)}; }
SKUA_INL I32 round_i32(F32 a) { return {_mm_cvtps_epi32(a.v)}; }
SKUA_INL F32 to_f32(I32 a) { return {_mm_cvtepi32_ps(a.v)}; }

SKUA_INL I32 operator+(I32 a, I32 b) { return {_mm_add_epi32(a.v, b.v)}; }
SKUA_INL I32 operator-(I32 a, I32 b) { return {_mm_sub_epi32(a.v, b.v)}; }
SKUA_INL I32 operator&(I32 a, I32 b) { return {_mm_and_si128(a.v, b.v)}; }
SKUA_INL I32 operator|(I32 a, I32 b) { return {_mm_or_si128(a.v, b.v)}; }
SKUA_INL I32 operator^(I32 a, I32 b) { return {_mm_xor_si128(a.v, b.v)}; }
template <int n>
SKUA_INL I32 shl(I32 a) {
  return {_mm_slli_epi32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr(I32 a) {
  return {_mm_srai_epi32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr_logical(I32 a) {
  return {_mm_srli_epi32(a.v, n)};
}
SKUA_INL M32 eq(I32 a, I32 b) { return {_mm_castsi128_ps(_mm_cmpeq_epi32(a.v, b.v))}; }
SKUA_INL M32 gt(I32 a, I32 b) { return {_mm_castsi128_ps(_mm_cmpgt_epi32(a.v, b.v))}; }

SKUA_INL F32 swap_pairs(F32 a) { return {_mm_shuffle_ps(a.v, a.v, 0x4e)}; }
SKUA_INL F32 swap_lanes(F32 a) { return {_mm_shuffle_ps(a.v, a.v, 0xb1)}; }
SKUA_INL float sum(F32 a) {
  a = a + swap_pairs(a);
  return _mm_cvtss_f32((a + swap_lanes(a)).v);
}
SKUA_INL float max_of(F32 a) {
  a = max(a, swap_pairs(a));
  return _mm_cvtss_f32(max(a, swap_lanes(a)).v);
}
SKUA_INL float min_of(F32 a) {
  a = min(a, swap_pairs(a));
  return _mm_cvtss_f32(min(a, swap_lanes(a)).v);
}

template <int i>
F32 fma_lane(F32 acc, F32 b, F32 a) = delete;
SKUA_INL void pin(F32& a) { asm volatile("" : "+x"(a.v)); }
SKUA_INL void transpose(F32 (&r)[4]) {
  const __m128 a = _mm_unpacklo_ps(r[0].v, r[1].v), b = _mm_unpacklo_ps(r[2].v, r[3].v);
  const __m128 c = _mm_unpackhi_ps(r[0].v, r[1].v), d = _mm_unpackhi_ps(r[2].v, r[3].v);
  r[0].v = _mm_movelh_ps(a, b);
  r[1].v = _mm_movehl_ps(b, a);
  r[2].v = _mm_movelh_ps(c, d);
  r[3].v = _mm_movehl_ps(d, c);
}

// Elements of 16 bits (storage.h). Lanes above 0x7fff would saturate in a signed pack: their sign is spread first.
SKUA_INL __m128i first_u16(const uint16_t* p, size_t n) {  // n of 0..4
  if (n >= 4) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  uint32_t low = 0, last = 0;
  if (n & 2) __builtin_memcpy(&low, p, 4);
  if (n & 1) last = p[n & 2];
  return n & 2 ? _mm_unpacklo_epi32(_mm_cvtsi32_si128(static_cast<int>(low)), _mm_cvtsi32_si128(static_cast<int>(last)))
               : _mm_cvtsi32_si128(static_cast<int>(last));
}
SKUA_INL I32 load_u16(const uint16_t* p) { return {_mm_unpacklo_epi16(first_u16(p, 4), _mm_setzero_si128())}; }
SKUA_INL I32 load_u16_n(const uint16_t* p, size_t n) {
  return {_mm_unpacklo_epi16(first_u16(p, n), _mm_setzero_si128())};
}
SKUA_INL void store_u16(I32 x, uint16_t* p) {
  const __m128i spread = _mm_srai_epi32(_mm_slli_epi32(x.v, 16), 16);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi32(spread, spread));
}
SKUA_INL void store_u16_n(I32 x, uint16_t* p, size_t n) {
  uint16_t all[4];
  store_u16(x, all);
  if (n >= 4) __builtin_memcpy(p, all, 8);
  else if (n >= 2) __builtin_memcpy(p, all, 4);
  if (n < 4 && (n & 1)) p[n & 2] = all[n & 2];
}

// Bytes (bytes.h). Without SSE4.1 a byte reaches the top of its lane by unpacking twice, and comes down with its sign.
SKUA_INL __m128i first_4_bytes(const void* p, size_t n) {
  return _mm_cvtsi32_si128(static_cast<int>(first_bytes(p, n < 4 ? n : 4)));
}
SKUA_INL I32 load_s8(const int8_t* p, size_t n) {
  const __m128i x = first_4_bytes(p, n), twice = _mm_unpacklo_epi8(x, x);
  return {_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24)};
}
SKUA_INL I32 load_u8(const uint8_t* p, size_t n) {
  const __m128i zero = _mm_setzero_si128();
  return {_mm_unpacklo_epi16(_mm_unpacklo_epi8(first_4_bytes(p, n), zero), zero)};
}
SKUA_INL void store_u8(I32 x, uint8_t* p, size_t n) {
  const __m128i low = _mm_and_si128(x.v, _mm_set1_epi32(255)), words = _mm_packs_epi32(low, low);
  store_first_bytes(static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words))), p, n < 4 ? n : 4);
}
SKUA_INL __m128i pack_words(__m128i a, __m128i b, const int8_t*) { return _mm_packs_epi16(a, b); }
SKUA_INL __m128i pack_words(__m128i a, __m128i b, const uint8_t*) { return _mm_packus_epi16(a, b); }
template <class T> SKUA_INL void store_bytes(const I32 (&x)[4], T* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   pack_words(_mm_packs_epi32(x[0].v, x[1].v), _mm_packs_epi32(x[2].v, x[3].v), p));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
