// 512-bit vectors: AVX-512 F, BW, DQ and VL; masks live in k registers. See simd.h for what the operations promise.
// The instruction max(a, b) is "a > b ? a : b": a NaN in either operand gives the second one, which decides the order
// below.
// Zero-masked forms with a full mask stand where gcc 12 warns about the undefined vector inside its plain intrinsics;
// they compile to the plain instruction.
#pragma once

#include <immintrin.h>

namespace skua {
namespace SKUA_ISA {
namespace {

struct M32 {
  __mmask16 m;
};

SKUA_INL __mmask16 first_lanes(size_t n) { return static_cast<__mmask16>((1u << n) - 1); }

struct F32 {
  static constexpr int L = 16;
  static constexpr bool fused = true;
#if defined(__x86_64__)
  static constexpr int registers = 32;
#else
  static constexpr int registers = 8;
#endif
  static constexpr bool by_lane = false;
  static constexpr bool has_scalef = true;
  __m512 v;

  static SKUA_INL F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static SKUA_INL F32 load_n(const float* p, size_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
  static SKUA_INL F32 broadcast(const float* p) { return {_mm512_set1_ps(*p)}; }
  static SKUA_INL F32 set1(float x) { return {_mm512_set1_ps(x)}; }
  static SKUA_INL F32 zero() { return {_mm512_setzero_ps()}; }
  SKUA_INL void store(float* p) const { _mm512_storeu_ps(p, v); }
  SKUA_INL void store_n(float* p, size_t n) const { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
  SKUA_STORAGE_MEMBERS
};

struct I32 {
  static constexpr int L = 16;
  __m512i v;

  static SKUA_INL I32 load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
  static SKUA_INL I32 load_n(const int32_t* p, size_t n) { return {_mm512_maskz_loadu_epi32(first_lanes(n), p)}; }
  static SKUA_INL I32 set1(int32_t x) { return {_mm512_set1_epi32(x)}; }
  SKUA_INL void store(int32_t* p) const { _mm512_storeu_si512(p, v); }
  SKUA_INL void store_n(int32_t* p, size_t n) const { _mm512_mask_storeu_epi32(p, first_lanes(n), v); }
  SKUA_BYTE_MEMBERS
};

SKUA_INL I32 as_i32(F32 a) { return {_mm512_castps_si512(a.v)}; }
SKUA_INL F32 as_f32(I32 a) { return {_mm512_castsi512_ps(a.v)}; }

SKUA_INL M32 operator&(M32 a, M32 b) { return {_kand_mask16(a.m, b.m)}; }
SKUA_INL M32 operator|(M32 a, M32 b) { return {_kor_mask16(a.m, b.m)}; }
SKUA_INL M32 operator~(M32 a) { return {_knot_mask16(a.m)}; }
SKUA_INL bool any(M32 m) { return m.m != 0; }
SKUA_INL bool all(M32 m) { return m.m == 0xffff; }

SKUA_INL M32 lt(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
SKUA_INL M32 le(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
SKUA_INL M32 gt(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
SKUA_INL M32 ge(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
SKUA_INL M32 eq(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
SKUA_INL M32 ne(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
SKUA_INL M32 is_nan(F32 a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
SKUA_INL F32 select(M32 m, F32 a, F32 b) { return {_mm512_mask_blend_ps(m.m, b.v, a.v)}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return {_mm512_mask_blend_epi32(m.m, b.v, a.v)}; }
SKUA_INL F32 keep_if(M32 m, F32 a) { return {_mm512_maskz_mov_ps(m.m, a.v)}; }

SKUA_INL F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
SKUA_INL F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
SKUA_INL F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
SKUA_INL F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
SKUA_INL F32 operator-(F32 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))}; }
SKUA_INL F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
SKUA_INL F32 fnma(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
// The divider takes 10 cycles for a vector; 14 bits of the reciprocal and what a product with them leaves take 3.
SKUA_INL F32 quotient(F32 a, F32 b) {
  const F32 inverse = {_mm512_maskz_rcp14_ps(0xffff, b.v)}, q = a * inverse;
  return fma(fnma(q, b, a), inverse, q);
}

SKUA_INL F32 min_fast(F32 a, F32 b) { return {_mm512_maskz_min_ps(0xffff, a.v, b.v)}; }
SKUA_INL F32 max_fast(F32 a, F32 b) { return {_mm512_maskz_max_ps(0xffff, a.v, b.v)}; }
SKUA_INL F32 clamp_low(F32 x, F32 lo) { return max_fast(lo, x); }
SKUA_INL F32 clamp_high(F32 x, F32 hi) { return min_fast(hi, x); }
// A lane in which a is NaN keeps a.
SKUA_INL F32 min(F32 a, F32 b) { return {_mm512_mask_min_ps(a.v, _mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)}; }
SKUA_INL F32 max(F32 a, F32 b) { return {_mm512_mask_max_ps(a.v, _mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)}; }

SKUA_INL F32 abs(F32 a) { return {_mm512_and_ps(a.v, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fffffff)))}; }
SKUA_INL F32 copysign(F32 magnitude, F32 sign) {
  // abs() has that mask too
  return as_f32({_mm512_ternarylogic_epi32(as_i32(magnitude).v, as_i32(sign).v, _mm512_set1_epi32(0x7fffffff), 0xe4)});
}
SKUA_INL F32 trunc(F32 a) { return {_mm512_maskz_roundscale_ps(0xffff, a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 round(F32 a) {
  return {_mm512_maskz_roundscale_ps(0xffff, a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
SKUA_INL F32 floor(F32 a) {
  return {_mm512_maskz_roundscale_ps(0xffff, a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
SKUA_INL F32 ceil(F32 a) {
  return {_mm512_maskz_roundscale_ps(0xffff, a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)};
}

SKUA_INL I32 to_i32(F32 a) { return {_mm512_maskz_cvttps_epi32(0xffff, a.v)}; }
SKUA_INL I32 round_i32(F32 a) { return {_mm512_maskz_cvtps_epi32(0xffff, a.v)}; }
SKUA_INL F32 to_f32(I32 a) { return {_mm512_maskz_cvtepi32_ps(0xffff, a.v)}; }

SKUA_INL I32 operator+(I32 a, I32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
SKUA_INL I32 operator-(I32 a, I32 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
SKUA_INL I32 operator&(I32 a, I32 b) { return {_mm512_and_si512(a.v, b.v)}; }
SKUA_INL I32 operator|(I32 a, I32 b) { return {_mm512_or_si512(a.v, b.v)}; }
SKUA_INL I32 operator^(I32 a, I32 b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int n>
SKUA_INL I32 shl(I32 a) {
  return {_mm512_maskz_slli_epi32(0xffff, a.v, n)};
}
template <int n>
SKUA_INL I32 shr(I32 a) {
  return {_mm512_maskz_srai_epi32(0xffff, a.v, n)};
}
template <int n>
SKUA_INL I32 shr_logical(I32 a) {
  return {_mm512_maskz_srli_epi32(0xffff, a.v, n)};
}
SKUA_INL M32 eq(I32 a, I32 b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
SKUA_INL M32 gt(I32 a, I32 b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }

// x * 2^n for an integral n; overflows to infinity and underflows through the denormals with one rounding.
SKUA_INL F32 scalef(F32 x, F32 n) { return {_mm512_maskz_scalef_ps(0xffff, x.v, n.v)}; }
// 0 where the mask is set, and nothing computed there.
SKUA_INL F32 scalef_unless(M32 m, F32 x, F32 n) { return {_mm512_maskz_scalef_ps(_knot_mask16(m.m), x.v, n.v)}; }

// |x| by a power of two (of four) in the range, NaN for negative x, 1 for zeros and infinity.
SKUA_INL F32 mantissa_near_1(F32 x) {
  return {_mm512_maskz_getmant_ps(0xffff, x.v, _MM_MANT_NORM_p75_1p5, static_cast<_MM_MANTISSA_SIGN_ENUM>(3))};
}
SKUA_INL F32 mantissa_half_to_2(F32 x) {
  return {_mm512_maskz_getmant_ps(0xffff, x.v, _MM_MANT_NORM_p5_2, static_cast<_MM_MANTISSA_SIGN_ENUM>(3))};
}
// The exponent of |x|: -infinity of a zero.
SKUA_INL F32 exponent(F32 x) { return {_mm512_maskz_getexp_ps(0xffff, x.v)}; }
// 14 bits of 1 / sqrt(x).
SKUA_INL F32 rsqrt_14(F32 x) { return {_mm512_maskz_rsqrt14_ps(0xffff, x.v)}; }
// y, but NaN where x is -infinity, and x where it is infinite or a zero (root 1), infinities of zeros' signs (root -1).
template <int root>
SKUA_INL F32 special_root(F32 y, F32 x) {
  return {_mm512_fixupimm_ps(y.v, x.v, _mm512_set1_epi32(root > 0 ? 0x130100 : 0x30600), 0)};
}

SKUA_INL F32 root_by_unit(F32 x) { return {_mm512_maskz_sqrt_ps(0xffff, x.v)}; }
// Correctly rounded, as the instruction, which takes 12 cycles (Zen 5: 4.5), does it; this takes 7: two steps from 14
// bits, the last with what the square leaves, which is no float below 2^-101.
SKUA_INL F32 sqrt(F32 x) {
  if (__builtin_expect(_mm512_cmplt_epu32_mask(_mm512_sub_epi32(as_i32(x).v, _mm512_set1_epi32(1)),
                                               _mm512_set1_epi32(26 << 23)) != 0,
                       0))
    return root_by_unit(x);
  const F32 half = F32::set1(0.5f), y = rsqrt_14(x), g = x * y, h = y * half;
  const F32 r = fnma(g, h, half), root = fma(g, r, g);
  return special_root<1>(fma(fnma(root, root, x), fma(h, r, h), root), x);
}
// Every second one by the instruction: its unit works beside the others' multiply-adds. The same value.
#define SKUA_SIMD_ROOT_UNIT 1
SKUA_INL F32 sqrt(F32 x, size_t u) { return u % 2 ? root_by_unit(x) : sqrt(x); }

#define SKUA_SIMD_LOOKS_UP 1
// table[i mod 16]; the table is aligned to a vector.
SKUA_INL F32 look_up_16(const float* table, I32 i) {
  return {_mm512_maskz_permutexvar_ps(0xffff, i.v, _mm512_load_ps(table))};
}

SKUA_INL F32 permute(F32 a, I32 index) { return {_mm512_maskz_permutexvar_ps(0xffff, index.v, a.v)}; }
SKUA_INL F32 swap_halves(F32 a) { return {_mm512_maskz_shuffle_f32x4(0xffff, a.v, a.v, 0x4e)}; }
SKUA_INL F32 swap_quarters(F32 a) { return {_mm512_maskz_shuffle_f32x4(0xffff, a.v, a.v, 0xb1)}; }
SKUA_INL F32 swap_pairs(F32 a) { return {_mm512_maskz_permute_ps(0xffff, a.v, 0x4e)}; }
SKUA_INL F32 swap_lanes(F32 a) { return {_mm512_maskz_permute_ps(0xffff, a.v, 0xb1)}; }
SKUA_INL float sum(F32 a) {
  a = a + swap_halves(a);
  a = a + swap_quarters(a);
  a = a + swap_pairs(a);
  return _mm512_cvtss_f32((a + swap_lanes(a)).v);
}
SKUA_INL float max_of(F32 a) {
  a = max(a, swap_halves(a));
  a = max(a, swap_quarters(a));
  a = max(a, swap_pairs(a));
  return _mm512_cvtss_f32(max(a, swap_lanes(a)).v);
}
SKUA_INL float min_of(F32 a) {
  a = min(a, swap_halves(a));
  a = min(a, swap_quarters(a));
  a = min(a, swap_pairs(a));
  return _mm512_cvtss_f32(min(a, swap_lanes(a)).v);
}

template <int i>
F32 fma_lane(F32 acc, F32 b, F32 a) = delete;
SKUA_INL void pin(F32& a) { asm volatile("" : "+v"(a.v)); }
// 4x4 blocks within 128 bits, then the 4x4 matrix of the 128-bit blocks.
SKUA_INL void transpose(F32 (&r)[16]) {
  constexpr __mmask16 every = 0xffff;
  __m512 t[16];
  SKUA_UNROLL for (int i = 0; i < 16; i += 4) {
    const __m512 a = _mm512_maskz_unpacklo_ps(every, r[i].v, r[i + 1].v),
                 b = _mm512_maskz_unpacklo_ps(every, r[i + 2].v, r[i + 3].v);
    const __m512 c = _mm512_maskz_unpackhi_ps(every, r[i].v, r[i + 1].v),
                 d = _mm512_maskz_unpackhi_ps(every, r[i + 2].v, r[i + 3].v);
    t[i] = _mm512_maskz_shuffle_ps(every, a, b, 0x44);
    t[i + 1] = _mm512_maskz_shuffle_ps(every, a, b, 0xee);
    t[i + 2] = _mm512_maskz_shuffle_ps(every, c, d, 0x44);
    t[i + 3] = _mm512_maskz_shuffle_ps(every, c, d, 0xee);
  }
  SKUA_UNROLL for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_maskz_shuffle_f32x4(every, t[i], t[i + 4], 0x44);
    const __m512 b = _mm512_maskz_shuffle_f32x4(every, t[i + 8], t[i + 12], 0x44);
    const __m512 c = _mm512_maskz_shuffle_f32x4(every, t[i], t[i + 4], 0xee);
    const __m512 d = _mm512_maskz_shuffle_f32x4(every, t[i + 8], t[i + 12], 0xee);
    r[i].v = _mm512_maskz_shuffle_f32x4(every, a, b, 0x88);
    r[i + 4].v = _mm512_maskz_shuffle_f32x4(every, a, b, 0xdd);
    r[i + 8].v = _mm512_maskz_shuffle_f32x4(every, c, d, 0x88);
    r[i + 12].v = _mm512_maskz_shuffle_f32x4(every, c, d, 0xdd);
  }
}

// Elements of 16 bits (storage.h).
SKUA_INL I32 load_u16(const uint16_t* p) {
  return {_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
SKUA_INL I32 load_u16_n(const uint16_t* p, size_t n) {
  return {_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(first_lanes(n), p))};
}
SKUA_INL void store_u16(I32 x, uint16_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, x.v));
}
SKUA_INL void store_u16_n(I32 x, uint16_t* p, size_t n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_maskz_cvtepi32_epi16(0xffff, x.v));
}
#define SKUA_SIMD_CONVERTS_F16 1
SKUA_INL F32 load_as(const f16* p) {
  return {_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
SKUA_INL F32 load_as_n(const f16* p, size_t n) {
  return {_mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(first_lanes(n), &p->bits))};
}
SKUA_INL F32 broadcast_as(const f16* p) {
  return {_mm512_maskz_cvtph_ps(0xffff, _mm256_set1_epi16(static_cast<short>(p->bits)))};
}
SKUA_INL __m256i to_f16(F32 x) { return _mm512_maskz_cvtps_ph(0xffff, x.v, _MM_FROUND_TO_NEAREST_INT); }
SKUA_INL void store_as(F32 x, f16* p) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_f16(x)); }
SKUA_INL void store_as_n(F32 x, f16* p, size_t n) { _mm256_mask_storeu_epi16(p, first_lanes(n), to_f16(x)); }
#define SKUA_SIMD_CONVERTS_BF16 1
SKUA_INL F32 load_as(const bf16* p) { return as_f32(shl<16>(load_u16(&p->bits))); }
SKUA_INL F32 load_as_n(const bf16* p, size_t n) { return as_f32(shl<16>(load_u16_n(&p->bits, n))); }
SKUA_INL F32 broadcast_as(const bf16* p) { return as_f32(I32::set1(int32_t(uint32_t(p->bits) << 16))); }
#if defined(SKUA_ISA_avx512bf16)
// Takes denormals for zero, as products of this set do.
SKUA_INL __m256i to_bf16(F32 x) { return (__m256i)_mm512_cvtneps_pbh(x.v); }
#else
// To nearest even in five instructions: a NaN first becomes one that the sum cannot carry out of; an odd last digit
// that stays adds one.
SKUA_INL __m256i to_bf16(F32 x) {
  const __m512i u = as_i32({_mm512_fixupimm_ps(x.v, x.v, _mm512_set1_epi32(0x33), 0)}).v,
                half = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));
  const __m512i y =
      _mm512_mask_sub_epi32(half, _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000)), half, _mm512_set1_epi32(-1));
  const __m512i odd = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x1f001d, 0x1b0019, 0x170015, 0x130011, 0xf000d, 0xb0009,
                                       0x70005, 0x30001);
  const __m512i words = _mm512_maskz_permutexvar_epi16(0xffffffff, odd, y);
  return __builtin_shufflevector(words, words, 0, 1, 2, 3);
}
#endif
SKUA_INL void store_as(F32 x, bf16* p) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(x)); }
SKUA_INL void store_as_n(F32 x, bf16* p, size_t n) { _mm256_mask_storeu_epi16(p, first_lanes(n), to_bf16(x)); }

// Bytes (bytes.h).
SKUA_INL __m128i first_16_bytes(const void* p, size_t n) {
  return n >= 16 ? _mm_loadu_si128(static_cast<const __m128i*>(p)) : _mm_maskz_loadu_epi8(first_lanes(n), p);
}
SKUA_INL I32 load_s8(const int8_t* p, size_t n) { return {_mm512_maskz_cvtepi8_epi32(0xffff, first_16_bytes(p, n))}; }
SKUA_INL I32 load_u8(const uint8_t* p, size_t n) { return {_mm512_maskz_cvtepu8_epi32(0xffff, first_16_bytes(p, n))}; }
SKUA_INL void store_u8(I32 x, uint8_t* p, size_t n) {
  const __m128i bytes = _mm512_maskz_cvtepi32_epi8(0xffff, x.v);
  if (n >= 16) _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  else _mm_mask_storeu_epi8(p, first_lanes(n), bytes);
}
SKUA_INL __m512i pack_words(__m512i a, __m512i b, const int8_t*) { return _mm512_packs_epi16(a, b); }
SKUA_INL __m512i pack_words(__m512i a, __m512i b, const uint8_t*) { return _mm512_packus_epi16(a, b); }
template <class T> SKUA_INL void store_bytes(const I32 (&x)[4], T* p) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = pack_words(_mm512_packs_epi32(x[0].v, x[1].v), _mm512_packs_epi32(x[2].v, x[3].v), p);
  _mm512_storeu_si512(p, _mm512_maskz_permutexvar_epi32(0xffff, order, bytes));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
