// What tiles of bytes need beside F32 and I32: products of a group of kr bytes of A by those of L columns of B, added
// in 32 bits, exactly.
//
//   set                     kr  A                              B                      products of L columns
//   avx512vnni, avxvnni     4   in place                       s8 for u8, u8 for s8   vpdpbusd: one operand is signed,
//                                                                                     the other is not
//   avx512, avx2, sse41, 2  2   prepared: widened to 16 bits   s8                     widened as it is loaded, pmaddwd
//                                                                                     and an addition
//   scalar                  4   in place                       s8                     four multiplications
//
// vpdpbusd takes u8 by s8. With A of s8 the weights are the operand without a sign, w + 128, and 128 times the sum of
// the row is taken off: to flip A's bits instead would take a port of the products (measured on Sapphire Rapids: 6x64
// runs at 99% of the peak, with flips 80%).
#pragma once
#include "gemm/int8_finish.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL int32_t word_at(const void* p) {
  int32_t w;
  __builtin_memcpy(&w, p, 4);
  return w;
}

#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
#define SKUA_DOT_IN_PLACE 1
constexpr int kr = 4;
template <class T> constexpr Element packed_b = element_of<T> == Element::s8 ? Element::u8 : Element::s8;
#if defined(SKUA_ISA_avx512vnni)
template <class T> SKUA_INL I32 dot(I32 acc, I32 a, I32 b) {
  if constexpr (element_of<T> == Element::s8) return {_mm512_dpbusd_epi32(acc.v, b.v, a.v)};
  else return {_mm512_dpbusd_epi32(acc.v, a.v, b.v)};
}
#else
template <class T> SKUA_INL I32 dot(I32 acc, I32 a, I32 b) {
  if constexpr (element_of<T> == Element::s8) return {_mm256_dpbusd_avx_epi32(acc.v, b.v, a.v)};
  else return {_mm256_dpbusd_avx_epi32(acc.v, a.v, b.v)};
}
#endif
SKUA_INL I32 load_b(const char* p) { return I32::load(reinterpret_cast<const int32_t*>(p)); }
#elif defined(__SSE2__) && !defined(SKUA_ISA_scalar)
constexpr int kr = 2;
template <class T> constexpr Element packed_b = Element::s8;
#if defined(SKUA_ISA_avx512)
template <class T>
SKUA_INL I32 dot(I32 acc, I32 a, I32 b) {
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(a.v, b.v))};
}
SKUA_INL I32 load_b(const char* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
#elif defined(SKUA_ISA_avx2)
template <class T>
SKUA_INL I32 dot(I32 acc, I32 a, I32 b) {
  return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(a.v, b.v))};
}
SKUA_INL I32 load_b(const char* p) {
  return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
#else
template <class T> SKUA_INL I32 dot(I32 acc, I32 a, I32 b) { return {_mm_add_epi32(acc.v, _mm_madd_epi16(a.v, b.v))}; }
SKUA_INL I32 load_b(const char* p) {
  const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
#if defined(SKUA_ISA_sse41)
  return {_mm_cvtepi8_epi16(x)};
#else
  return {_mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8)};
#endif
}
#endif
#else
#define SKUA_DOT_IN_PLACE 1
constexpr int kr = 4;
template <class T> constexpr Element packed_b = Element::s8;
template <class T> SKUA_INL I32 dot(I32 acc, I32 a, I32 b) {
  uint32_t sum = uint32_t(acc.v);
  SKUA_UNROLL for (int i = 0; i < 4; ++i) sum += uint32_t(T(uint32_t(a.v) >> 8 * i) * int8_t(uint32_t(b.v) >> 8 * i));
  return {int32_t(sum)};
}
SKUA_INL I32 load_b(const char* p) { return {word_at(p)}; }
#endif

#if defined(SKUA_DOT_IN_PLACE)
constexpr bool kPrepared = false;
#else
constexpr bool kPrepared = true;
#endif

#if defined(SKUA_ISA_scalar)
SKUA_INL void store_totals(const I32 (&x)[4], int32_t* to) {
  for (int i = 0; i < 4; ++i) to[i] = x[i].v;
}
SKUA_INL I32 load_words(const void* p) { return {word_at(p)}; }
#else
SKUA_INL I32 load_words(const void* p) { return I32::load(static_cast<const int32_t*>(p)); }
// The sums of four vectors' lanes: a four by four transpose in every 128 bits, added up on the way.
#if defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni)
SKUA_INL I32 add_32(I32 a, I32 b) {
  return {
      _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(0xffff, a.v, b.v), _mm512_maskz_unpackhi_epi32(0xffff, a.v, b.v))};
}
SKUA_INL I32 add_64(I32 a, I32 b) {
  return {_mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, a.v, b.v), _mm512_maskz_unpackhi_epi64(0xff, a.v, b.v))};
}
SKUA_INL __m128i fold(I32 x) {
  const __m256i h =
      _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xf, x.v, 0), _mm512_maskz_extracti64x4_epi64(0xf, x.v, 1));
  return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}
#elif defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avxvnni)
SKUA_INL I32 add_32(I32 a, I32 b) {
  return {_mm256_add_epi32(_mm256_unpacklo_epi32(a.v, b.v), _mm256_unpackhi_epi32(a.v, b.v))};
}
SKUA_INL I32 add_64(I32 a, I32 b) {
  return {_mm256_add_epi32(_mm256_unpacklo_epi64(a.v, b.v), _mm256_unpackhi_epi64(a.v, b.v))};
}
SKUA_INL __m128i fold(I32 x) { return _mm_add_epi32(_mm256_castsi256_si128(x.v), _mm256_extracti128_si256(x.v, 1)); }
#else
SKUA_INL I32 add_32(I32 a, I32 b) {
  return {_mm_add_epi32(_mm_unpacklo_epi32(a.v, b.v), _mm_unpackhi_epi32(a.v, b.v))};
}
SKUA_INL I32 add_64(I32 a, I32 b) {
  return {_mm_add_epi32(_mm_unpacklo_epi64(a.v, b.v), _mm_unpackhi_epi64(a.v, b.v))};
}
SKUA_INL __m128i fold(I32 x) { return x.v; }
#endif
SKUA_INL void store_totals(const I32 (&x)[4], int32_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), fold(add_64(add_32(x[0], x[1]), add_32(x[2], x[3]))));
}
#endif

// terms[r] = b_zero times the sum of a row (prepared rows: of pairs of 16 bits), four rows at a time. Not inlined: all
// tiles of a unit share it.
template <class T>
__attribute__((noinline)) void sum_rows(const GemmTile& t, size_t rows, const char* const* a, int32_t* terms) {
  const I32 ones = I32::set1(kPrepared ? 0x00010001 : 0x01010101);
  const size_t n = kPrepared ? (t.k + kr - 1) / kr * 4 : t.k;
  for (size_t first = 0; first < rows; first += 4) {
    I32 acc[4];
    uint32_t sums[4] = {};
    SKUA_UNROLL for (int r = 0; r < 4; ++r) acc[r] = I32::set1(0);
    for (size_t s = 0; s < t.segment_count; ++s) {
      const ptrdiff_t segment = kPrepared ? ptrdiff_t(s * n) : t.segments[s].a;
      const char* p[4];
      SKUA_UNROLL for (size_t r = 0; r < 4; ++r) p[r] = a[first + r < rows ? first + r : first] + segment;
      size_t i = 0;
      for (; i + 4 * L <= n; i += 4 * L)
        SKUA_UNROLL for (int r = 0; r < 4; ++r)
          acc[r] = dot<T>(acc[r], load_words(p[r] + i), ones);
#if defined(SKUA_ISA_avx512vnni)
      if (i < n)
        SKUA_UNROLL for (int r = 0; r < 4; ++r)
          acc[r] = dot<T>(acc[r], {_mm512_maskz_loadu_epi8(~uint64_t(0) >> (64 - (n - i)), p[r] + i)}, ones);
#else
      const size_t words = (n - i) / 4;
      if (words)
        SKUA_UNROLL for (int r = 0; r < 4; ++r)
          acc[r] = dot<T>(acc[r], I32::load_n(reinterpret_cast<const int32_t*>(p[r] + i), words), ones);
      for (i += 4 * words; i < n; ++i) SKUA_UNROLL for (size_t r = 0; r < 4; ++r) sums[r] += uint32_t(T(p[r][i]));
#endif
    }
    int32_t totals[4];
    store_totals(acc, totals);
    for (size_t r = 0; r < 4 && first + r < rows; ++r)
      terms[first + r] = int32_t(uint32_t(t.b_zero) * (uint32_t(totals[r]) + sums[r]));
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
