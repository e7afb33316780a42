// 256-bit vectors: AVX2 with FMA3. See simd.h for what the operations promise.
// The instruction max(a, b) is "a > b ? a : b": a NaN in either operand gives the second one, which decides the order
// below.
#pragma once

#include <immintrin.h>

namespace skua {
namespace SKUA_ISA {
namespace {

struct M32 {
  __m256 m;
};

SKUA_INL __m256i first_lanes(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

struct F32 {
  static constexpr int L = 8;
  static constexpr bool fused = true;
#if defined(__x86_64__)
  static constexpr int registers = 16;
#else
  static constexpr int registers = 8;
#endif
  static constexpr bool by_lane = false;
  static constexpr bool has_scalef = false;
  __m256 v;

  static SKUA_INL F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static SKUA_INL F32 load_n(const float* p, size_t n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
  static SKUA_INL F32 broadcast(const float* p) { return {_mm256_broadcast_ss(p)}; }
  static SKUA_INL F32 set1(float x) { return {_mm256_set1_ps(x)}; }
  static SKUA_INL F32 zero() { return {_mm256_setzero_ps()}; }
  SKUA_INL void store(float* p) const { _mm256_storeu_ps(p, v); }
  SKUA_INL void store_n(float* p, size_t n) const { _mm256_maskstore_ps(p, first_lanes(n), v); }
  SKUA_STORAGE_MEMBERS
};

struct I32 {
  static constexpr int L = 8;
  __m256i v;

  static SKUA_INL I32 load(const int32_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
  static SKUA_INL I32 load_n(const int32_t* p, size_t n) { return {_mm256_maskload_epi32(p, first_lanes(n))}; }
  static SKUA_INL I32 set1(int32_t x) { return {_mm256_set1_epi32(x)}; }
  SKUA_INL void store(int32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  SKUA_INL void store_n(int32_t* p, size_t n) const { _mm256_maskstore_epi32(p, first_lanes(n), v); }
  SKUA_BYTE_MEMBERS
};

SKUA_INL I32 as_i32(F32 a) { return {_mm256_castps_si256(a.v)}; }
SKUA_INL F32 as_f32(I32 a) { return {_mm256_castsi256_ps(a.v)}; }

SKUA_INL M32 operator&(M32 a, M32 b) { return {_mm256_and_ps(a.m, b.m)}; }
SKUA_INL M32 operator|(M32 a, M32 b) { return {_mm256_or_ps(a.m, b.m)}; }
SKUA_INL M32 operator~(M32 a) { return {_mm256_xor_ps(a.m, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
SKUA_INL bool any(M32 m) { return _mm256_movemask_ps(m.m) != 0; }
SKUA_INL bool all(M32 m) { return _mm256_movemask_ps(m.m) == 255; }

SKUA_INL M32 lt(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
SKUA_INL M32 le(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
SKUA_INL M32 gt(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
SKUA_INL M32 ge(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
SKUA_INL M32 eq(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
SKUA_INL M32 ne(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_NEQ_UQ)}; }
SKUA_INL M32 is_nan(F32 a) { return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)}; }
SKUA_INL F32 select(M32 m, F32 a, F32 b) { return {_mm256_blendv_ps(b.v, a.v, m.m)}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return as_i32(select(m, as_f32(a), as_f32(b))); }
SKUA_INL F32 keep_if(M32 m, F32 a) { return {_mm256_and_ps(m.m, a.v)}; }

SKUA_INL F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
SKUA_INL F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
SKUA_INL F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
SKUA_INL F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
SKUA_INL F32 quotient(F32 a, F32 b) { return a / b; }
SKUA_INL F32 operator-(F32 a) { return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))}; }
SKUA_INL F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
SKUA_INL F32 fnma(F32 a, F32 b, F32 c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }

SKUA_INL F32 min_fast(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
SKUA_INL F32 max_fast(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
SKUA_INL F32 clamp_low(F32 x, F32 lo) { return {_mm256_max_ps(lo.v, x.v)}; }
SKUA_INL F32 clamp_high(F32 x, F32 hi) { return {_mm256_min_ps(hi.v, x.v)}; }
// Both orders agree unless a NaN is there, and a NaN or-ed with anything is a NaN; a blend would cost one operation
// more.
SKUA_INL F32 min(F32 a, F32 b) { return {_mm256_or_ps(_mm256_min_ps(a.v, b.v), _mm256_min_ps(b.v, a.v))}; }
SKUA_INL F32 max(F32 a, F32 b) { return {_mm256_or_ps(_mm256_max_ps(a.v, b.v), _mm256_max_ps(b.v, a.v))}; }

SKUA_INL F32 abs(F32 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
SKUA_INL F32 copysign(F32 magnitude, F32 sign) {
  const __m256 bit = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(bit, magnitude.v), _mm256_and_ps(bit, sign.v))};
}
SKUA_INL F32 sqrt(F32 a) { return {_mm256_sqrt_ps(a.v)}; }
SKUA_INL F32 trunc(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 round(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 floor(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 ceil(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }

SKUA_INL I32 to_i32(F32 a) { return {_mm256_cvttps_epi32(a.v)}; }
SKUA_INL I32 round_i32(F32 a) { return {_mm256_cvtps_epi32(a.v)}; }
SKUA_INL F32 to_f32(I32 a) { return {_mm256_cvtepi32_ps(a.v)}; }

SKUA_INL I32 operator+(I32 a, I32 b) { return {_mm256_add_epi32(a.v, b.v)}; }
SKUA_INL I32 operator-(I32 a, I32 b) { return {_mm256_sub_epi32(a.v, b.v)}; }
SKUA_INL I32 operator&(I32 a, I32 b) { return {_mm256_and_si256(a.v, b.v)}; }
SKUA_INL I32 operator|(I32 a, I32 b) { return {_mm256_or_si256(a.v, b.v)}; }
SKUA_INL I32 operator^(I32 a, I32 b) { return {_mm256_xor_si256(a.v, b.v)}; }
template <int n>
SKUA_INL I32 shl(I32 a) {
  return {_mm256_slli_epi32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr(I32 a) {
  return {_mm256_srai_epi32(a.v, n)};
}
template <int n>
SKUA_INL I32 shr_logical(I32 a) {
  return {_mm256_srli_epi32(a.v, n)};
}
SKUA_INL M32 eq(I32 a, I32 b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
SKUA_INL M32 gt(I32 a, I32 b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }

SKUA_INL F32 permute(F32 a, I32 index) { return {_mm256_permutevar8x32_ps(a.v, index.v)}; }
SKUA_INL F32 swap_halves(F32 a) { return {_mm256_permute2f128_ps(a.v, a.v, 1)}; }
SKUA_INL F32 swap_pairs(F32 a) { return {_mm256_permute_ps(a.v, 0x4e)}; }
SKUA_INL F32 swap_lanes(F32 a) { return {_mm256_permute_ps(a.v, 0xb1)}; }
SKUA_INL float sum(F32 a) {
  a = a + swap_halves(a);
  a = a + swap_pairs(a);
  return _mm256_cvtss_f32((a + swap_lanes(a)).v);
}
SKUA_INL float max_of(F32 a) {
  a = max(a, swap_halves(a));
  a = max(a, swap_pairs(a));
  return _mm256_cvtss_f32(max(a, swap_lanes(a)).v);
}
SKUA_INL float min_of(F32 a) {
  a = min(a, swap_halves(a));
  a = min(a, swap_pairs(a));
  return _mm256_cvtss_f32(min(a, swap_lanes(a)).v);
}

template <int i>
F32 fma_lane(F32 acc, F32 b, F32 a) = delete;
SKUA_INL void pin(F32& a) { asm volatile("" : "+x"(a.v)); }
SKUA_INL void transpose(F32 (&r)[8]) {
  __m256 t[8];
  SKUA_UNROLL for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_insertf128_ps(r[i].v, _mm256_castps256_ps128(r[i + 4].v), 1);
    t[i + 4] = _mm256_permute2f128_ps(r[i].v, r[i + 4].v, 0x31);
  }
  SKUA_UNROLL for (int i = 0; i < 8; i += 4) {
    const __m256 a = _mm256_unpacklo_ps(t[i], t[i + 1]), b = _mm256_unpacklo_ps(t[i + 2], t[i + 3]);
    const __m256 c = _mm256_unpackhi_ps(t[i], t[i + 1]), d = _mm256_unpackhi_ps(t[i + 2], t[i + 3]);
    r[i].v = _mm256_shuffle_ps(a, b, 0x44);
    r[i + 1].v = _mm256_shuffle_ps(a, b, 0xee);
    r[i + 2].v = _mm256_shuffle_ps(c, d, 0x44);
    r[i + 3].v = _mm256_shuffle_ps(c, d, 0xee);
  }
}

// Elements of 16 bits (storage.h).
SKUA_INL __m128i first_u16(const uint16_t* p, size_t n) {
  if (n >= 8) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  uint64_t low = 0, high = 0;
  if (n >= 4) {  // what lies before n - 4 comes twice and is shifted out
    __builtin_memcpy(&low, p, 8);
    __builtin_memcpy(&high, p + n - 4, 8);
    high = n > 4 ? high >> 16 * (8 - n) : 0;
  } else {
    uint32_t two;
    if (n & 1) low = p[n & 2];
    if (n & 2) {
      __builtin_memcpy(&two, p, 4);
      low = low << 32 | two;
    }
  }
  return _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
}
SKUA_INL void store_first_u16(__m128i x, uint16_t* p, size_t n) {
  if (n >= 8) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), x);
  if (n & 4) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), x);
    x = _mm_unpackhi_epi64(x, x);
    p += 4;
  }
  if (n & 2) {
    const int two = _mm_cvtsi128_si32(x);
    __builtin_memcpy(p, &two, 4);
    x = _mm_srli_si128(x, 4);
    p += 2;
  }
  if (n & 1) *p = static_cast<uint16_t>(_mm_cvtsi128_si32(x));
}
SKUA_INL __m128i low_halves(I32 x) {
  const __m256i t = _mm256_packus_epi32(x.v, x.v);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(t, 0x08));
}
SKUA_INL I32 load_u16(const uint16_t* p) { return {_mm256_cvtepu16_epi32(first_u16(p, 8))}; }
SKUA_INL I32 load_u16_n(const uint16_t* p, size_t n) { return {_mm256_cvtepu16_epi32(first_u16(p, n))}; }
SKUA_INL void store_u16(I32 x, uint16_t* p) { store_first_u16(low_halves(x), p, 8); }
SKUA_INL void store_u16_n(I32 x, uint16_t* p, size_t n) { store_first_u16(low_halves(x), p, n); }
#define SKUA_SIMD_CONVERTS_F16 1
SKUA_INL F32 load_as(const f16* p) { return {_mm256_cvtph_ps(first_u16(&p->bits, 8))}; }
SKUA_INL F32 load_as_n(const f16* p, size_t n) { return {_mm256_cvtph_ps(first_u16(&p->bits, n))}; }
SKUA_INL F32 broadcast_as(const f16* p) { return {_mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(p->bits)))}; }
SKUA_INL void store_as(F32 x, f16* p) {
  __m128i halves = _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT);
  // else one instruction stores them too, which starts every second cycle on Zen 3; these two start in each
  asm("" : "+x"(halves));
  store_first_u16(halves, &p->bits, 8);
}
SKUA_INL void store_as_n(F32 x, f16* p, size_t n) {
  store_first_u16(_mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT), &p->bits, n);
}

// Bytes (bytes.h).
SKUA_INL __m128i first_8_bytes(const void* p, size_t n) {
  return _mm_cvtsi64_si128(static_cast<long long>(first_bytes(p, n < 8 ? n : 8)));
}
SKUA_INL I32 load_s8(const int8_t* p, size_t n) { return {_mm256_cvtepi8_epi32(first_8_bytes(p, n))}; }
SKUA_INL I32 load_u8(const uint8_t* p, size_t n) { return {_mm256_cvtepu8_epi32(first_8_bytes(p, n))}; }
SKUA_INL void store_u8(I32 x, uint8_t* p, size_t n) {
  // in each lane of 128 bits four times
  const __m256i lowest = _mm256_shuffle_epi8(x.v, _mm256_set1_epi32(0x0c080400));
  const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(lowest), _mm256_extracti128_si256(lowest, 1));
  store_first_bytes(static_cast<uint64_t>(_mm_cvtsi128_si64(bytes)), p, n < 8 ? n : 8);
}
SKUA_INL __m256i pack_words(__m256i a, __m256i b, const int8_t*) { return _mm256_packs_epi16(a, b); }
SKUA_INL __m256i pack_words(__m256i a, __m256i b, const uint8_t*) { return _mm256_packus_epi16(a, b); }
template <class T> SKUA_INL void store_bytes(const I32 (&x)[4], T* p) {
  const __m256i bytes = pack_words(_mm256_packs_epi32(x[0].v, x[1].v), _mm256_packs_epi32(x[2].v, x[3].v), p);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
