// Vectors of bytes for depthwise kernels: L bytes, or L/4 sums of 32 bits.
//
//   Name::G               bytes of a channel in a group
//   load store flip
//   group(rows, out)      G vectors of L channels to four of L/4 channels with G taps each
//   widen_pairs           G = 2, bytes of two rows, as u8: a half of the pairs of 16 bits
//   Sum: start(offset), dot(sum, taps, weights): L/4 sums
//   scaled half whole     requantised: all L channels in order, as s8; where they saturate, bounds other than the
//                         type's are left to `bounded`, and a product that cannot leave 32 bits needs none before it is
//                         rounded (nor does any where the conversion saturates: fits_always)
//   total                 the sums as they are
//   half_fixed            half of what fix_columns() leaves (simd/fixed.h)
//   parts, pixels         stores, and loads, the pixels of a vector that has 2 or 4; `more` than one are there, the
//                         last stands for those that are not
//   positive              where sums below 0 all give the least result: sums of less than 2^23 in amount begin at
//                         0x4b000000, the bits of 2^23, so that from 0 on a sum and 2^23 is what the bits are as a
//                         float, and one operation subtracts 2^23 * scale, which is exact, from its product: rounded
//                         once, as the product of the sum. Below 0 it stays below 0
//   less                  -2^23 * scale, for a positive() that is given it: where it is used again and again
#pragma once
#include "simd/fixed.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_scalar)

// Four channels, one in each "vector" of four bytes.
struct Bytes4 {
  static constexpr int L = 4, G = 4;
  static constexpr bool takes_unsigned = false, saturates = false, fits_always = false, has_positive = false;
  struct I {
    uint32_t v;
  };
  struct Sum {
    uint32_t v;
  };
  static SKUA_INL I load(const void* p) {
    I x;
    __builtin_memcpy(&x, p, 4);
    return x;
  }
  static SKUA_INL void store(void* p, I x) { __builtin_memcpy(p, &x, 4); }
  static SKUA_INL I bytes(uint8_t x) { return {x * 0x01010101u}; }
  static SKUA_INL I flip(I x, I by) { return {x.v ^ by.v}; }
  static SKUA_INL Sum start(I offset) { return {offset.v}; }
  static SKUA_INL void dot(Sum& sum, I taps, I w) {
    for (int b = 0; b < 32; b += 8) sum.v += uint32_t(int8_t(taps.v >> b) * int8_t(w.v >> b));
  }
  static SKUA_INL void group(const I (&r)[G], I (&to)[4]) {
    for (int v = 0; v < 4; ++v) {
      to[v].v = 0;
      for (int b = 0; b < 4; ++b) to[v].v |= (r[b].v >> 8 * v & 255) << 8 * b;
    }
  }
  static SKUA_INL int32_t total(Sum sum) { return int32_t(sum.v); }
  static SKUA_INL int32_t scaled(Sum sum, const float* scale, float high) {
    const float y = float(int32_t(sum.v)) * *scale;
    return skua::nearest_small(y > high ? high : y < -512.0f ? -512.0f : y);
  }
  struct Half {
    int32_t a, b;
  };
  static SKUA_INL int32_t bounded(int32_t x, int32_t low) { return x < low ? low : x; }
  static SKUA_INL Half half(int32_t a, int32_t b, int16_t zero, int16_t low) {
    return {bounded(a + zero, low), bounded(b + zero, low)};
  }
  static SKUA_INL I whole(Half a, Half b) {
    return {uint32_t(a.a & 255) | uint32_t(a.b & 255) << 8 | uint32_t(b.a & 255) << 16 | uint32_t(b.b & 255) << 24};
  }
};

#elif defined(__x86_64__)

#if defined(__FMA__)
#define SKUA_POSITIVE 1
#else
#define SKUA_POSITIVE 0
#endif
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
#define SKUA_TAKES_UNSIGNED 1
#else
#define SKUA_TAKES_UNSIGNED 0
#endif
#if defined(SKUA_ISA_avx512vnni)
#define SKUA_IN_REGISTER "+v"
#else
#define SKUA_IN_REGISTER "+x"
#endif
SKUA_INL __m128 product(__m128i x, const float* scale) { return _mm_mul_ps(_mm_cvtepi32_ps(x), _mm_loadu_ps(scale)); }
SKUA_INL __m128 at_most(__m128 y, __m128 high) { return _mm_min_ps(y, high); }
#if defined(SKUA_ISA_sse2)
SKUA_INL __m128i bounded_bytes(__m128i x, int8_t low, int8_t high) {
  const __m128i upper = _mm_set1_epi8(-128);  // the bounds of u8 are in SSE2, those of s8 are not
  return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(_mm_xor_si128(x, upper), _mm_set1_epi8(char(low ^ -128))),
                                    _mm_set1_epi8(char(high ^ -128))),
                       upper);
}
#else
SKUA_INL __m128i bounded_bytes(__m128i x, int8_t low, int8_t high) {
  return _mm_min_epi8(_mm_max_epi8(x, _mm_set1_epi8(low)), _mm_set1_epi8(high));
}
#endif
SKUA_INL __m128i nearest(__m128 y) { return _mm_cvtps_epi32(y); }
#if defined(SKUA_ISA_avx512vnni)
SKUA_INL __m128i dot_of(__m128i sum, __m128i a, __m128i w) { return _mm_dpbusd_epi32(sum, a, w); }
SKUA_INL __m256i dot_of(__m256i sum, __m256i a, __m256i w) { return _mm256_dpbusd_epi32(sum, a, w); }
SKUA_INL __m512i dot_of(__m512i sum, __m512i a, __m512i w) { return _mm512_dpbusd_epi32(sum, a, w); }
SKUA_INL __m512 product(__m512i x, const float* scale) {
  return _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, x), _mm512_loadu_ps(scale));
}
SKUA_INL __m512 at_most(__m512 y, __m512 high) { return _mm512_maskz_min_ps(0xffff, y, high); }
SKUA_INL __m512i bounded_bytes(__m512i x, int8_t low, int8_t high) {
  return _mm512_maskz_min_epi8(~__mmask64(0), _mm512_maskz_max_epi8(~__mmask64(0), x, _mm512_set1_epi8(low)),
                               _mm512_set1_epi8(high));
}
SKUA_INL __m512i nearest(__m512 y) { return _mm512_maskz_cvtps_epi32(0xffff, y); }
#elif defined(SKUA_ISA_avxvnni)
SKUA_INL __m128i dot_of(__m128i sum, __m128i a, __m128i w) { return _mm_dpbusd_avx_epi32(sum, a, w); }
SKUA_INL __m256i dot_of(__m256i sum, __m256i a, __m256i w) { return _mm256_dpbusd_avx_epi32(sum, a, w); }
#else
SKUA_INL __m128i dot_of(__m128i sum, __m128i a, __m128i w) { return _mm_add_epi32(sum, _mm_madd_epi16(a, w)); }
#if !defined(SKUA_ISA_sse2)
SKUA_INL __m256i dot_of(__m256i sum, __m256i a, __m256i w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, w)); }
#endif
#endif
#if !defined(SKUA_ISA_sse2)
SKUA_INL __m256 product(__m256i x, const float* scale) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_loadu_ps(scale));
}
SKUA_INL __m256 at_most(__m256 y, __m256 high) { return _mm256_min_ps(y, high); }
SKUA_INL __m256i bounded_bytes(__m256i x, int8_t low, int8_t high) {
  return _mm256_min_epi8(_mm256_max_epi8(x, _mm256_set1_epi8(low)), _mm256_set1_epi8(high));
}
SKUA_INL __m256i nearest(__m256 y) { return _mm256_cvtps_epi32(y); }
#endif

// fl(s * (2^23 + sum) - s * 2^23) = fl(s * sum); without FMA not called.
#if defined(SKUA_ISA_avx512vnni)
SKUA_INL __m512 product_positive(__m512i x, const float* scale) {
  const __m512 s = _mm512_loadu_ps(scale);
  return _mm512_fmadd_ps(_mm512_castsi512_ps(x), s, _mm512_mul_ps(s, _mm512_set1_ps(-8388608.0f)));
}
SKUA_INL __m512i less_positive(__m512i, const float* scale) {
  return _mm512_castps_si512(_mm512_mul_ps(_mm512_loadu_ps(scale), _mm512_set1_ps(-8388608.0f)));
}
SKUA_INL __m256i less_positive(__m256i, const float* scale) {
  return _mm256_castps_si256(_mm256_mul_ps(_mm256_loadu_ps(scale), _mm256_set1_ps(-8388608.0f)));
}
SKUA_INL __m128i less_positive(__m128i, const float* scale) {
  return _mm_castps_si128(_mm_mul_ps(_mm_loadu_ps(scale), _mm_set1_ps(-8388608.0f)));
}
SKUA_INL __m512 product_positive(__m512i x, const float* scale, __m512i less) {
  return _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_loadu_ps(scale), _mm512_castsi512_ps(less));
}
SKUA_INL __m256 product_positive(__m256i x, const float* scale, __m256i less) {
  return _mm256_fmadd_ps(_mm256_castsi256_ps(x), _mm256_loadu_ps(scale), _mm256_castsi256_ps(less));
}
SKUA_INL __m128 product_positive(__m128i x, const float* scale, __m128i less) {
  return _mm_fmadd_ps(_mm_castsi128_ps(x), _mm_loadu_ps(scale), _mm_castsi128_ps(less));
}
SKUA_INL __m512i bounded_unsigned(__m512i x, uint8_t low, uint8_t high) {
  return _mm512_maskz_min_epu8(~__mmask64(0), _mm512_maskz_max_epu8(~__mmask64(0), x, _mm512_set1_epi8(char(low))),
                               _mm512_set1_epi8(char(high)));
}
SKUA_INL void store_parts(__m512i x, uint8_t* to, size_t step, size_t pixels) {
  if (pixels == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_maskz_extracti64x4_epi64(0xf, x, 0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + step), _mm512_maskz_extracti64x4_epi64(0xf, x, 1));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_maskz_extracti32x4_epi32(0xf, x, 0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + step), _mm512_maskz_extracti32x4_epi32(0xf, x, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * step), _mm512_maskz_extracti32x4_epi32(0xf, x, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * step), _mm512_maskz_extracti32x4_epi32(0xf, x, 3));
  }
}
#endif
#if SKUA_POSITIVE
SKUA_INL __m256 product_positive(__m256i x, const float* scale) {
  const __m256 s = _mm256_loadu_ps(scale);
  return _mm256_fmadd_ps(_mm256_castsi256_ps(x), s, _mm256_mul_ps(s, _mm256_set1_ps(-8388608.0f)));
}
SKUA_INL __m128 product_positive(__m128i x, const float* scale) {
  const __m128 s = _mm_loadu_ps(scale);
  return _mm_fmadd_ps(_mm_castsi128_ps(x), s, _mm_mul_ps(s, _mm_set1_ps(-8388608.0f)));
}
SKUA_INL __m256i bounded_unsigned(__m256i x, uint8_t low, uint8_t high) {
  return _mm256_min_epu8(_mm256_max_epu8(x, _mm256_set1_epi8(char(low))), _mm256_set1_epi8(char(high)));
}
SKUA_INL void store_parts(__m256i x, uint8_t* to, size_t step, size_t) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_extracti128_si256(x, 0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + step), _mm256_extracti128_si256(x, 1));
}
#else
SKUA_INL __m128 product_positive(__m128i x, const float* scale) { return product(x, scale); }
#endif
SKUA_INL __m128i bounded_unsigned(__m128i x, uint8_t low, uint8_t high) {
  return _mm_min_epu8(_mm_max_epu8(x, _mm_set1_epi8(char(low))), _mm_set1_epi8(char(high)));
}
SKUA_INL void store_parts(__m128i, uint8_t*, size_t, size_t) {}

// Pixels in a vector: inserted from memory they take no port of shuffles.
#if defined(__AVX2__)
template <int n> SKUA_INL __m256i pixels_of(const uint8_t* p, size_t step, size_t more, __m256i) {
  const auto part = [&](size_t i) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + (i < more ? i : more) * step));
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(part(0)), part(1), 1);
}
#endif
#if defined(SKUA_ISA_avx512vnni)
template <int n> SKUA_INL __m512i pixels_of(const uint8_t* p, size_t step, size_t more, __m512i) {
  if constexpr (n == 2) {
    const auto part = [&](size_t i) __attribute__((always_inline)) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + (i < more ? i : more) * step));
    };
    return _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(part(0)), part(1), 1);
  } else {
    const auto part = [&](size_t i) __attribute__((always_inline)) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + (i < more ? i : more) * step));
    };
    const __m512i first = _mm512_castsi256_si512(_mm256_inserti128_si256(_mm256_castsi128_si256(part(0)), part(1), 1));
    return _mm512_maskz_inserti32x4(0xffff, _mm512_maskz_inserti32x4(0xffff, first, part(2), 2), part(3), 3);
  }
}
#endif

// Results of twice as much, rounded down (simd/fixed.h).
#if defined(__AVX2__)
SKUA_INL __m128i halved(__m128i x) { return _mm_mulhrs_epi16(x, _mm_set1_epi16(1 << 14)); }
SKUA_INL __m256i halved(__m256i x) { return _mm256_mulhrs_epi16(x, _mm256_set1_epi16(1 << 14)); }
#if defined(SKUA_ISA_avx512vnni)
SKUA_INL __m512i halved(__m512i x) { return _mm512_maskz_mulhrs_epi16(~__mmask32(0), x, _mm512_set1_epi16(1 << 14)); }
#endif
#else
SKUA_INL __m128i halved(__m128i x) { return x; }
#endif

#if defined(SKUA_ISA_avx512vnni)
#define SKUA_LESS_POSITIVE                                                           \
    static SKUA_INL I less(const float* scale) { return less_positive(I{}, scale); } \
    static SKUA_INL I positive(Sum sum, const float* scale, I less) {                \
      return nearest(product_positive(sum.v, scale, less));                          \
    }
#else
#define SKUA_LESS_POSITIVE
#endif
// P: prefix of the intrinsics, SI: of the whole register. Only the upper bound is needed before the conversion: what is
// far below becomes the least integer, packing saturates, and the lower bound follows in 16 bits.
#define SKUA_BYTE_VECTOR(Name, T, P, SI)                                                                           \
  struct Name {                                                                                                    \
    static constexpr int L = sizeof(T), G = SKUA_TAKES_UNSIGNED ? 4 : 2;                                           \
    static constexpr bool takes_unsigned = SKUA_TAKES_UNSIGNED, saturates = true, fits_always = false,             \
                          has_positive = SKUA_POSITIVE;                                                            \
    using I = T;                                                                                                   \
    struct Sum {                                                                                                   \
      I v;                                                                                                         \
    };                                                                                                             \
    static SKUA_INL I load(const void* p) { return P##_loadu_##SI(static_cast<const T*>(p)); }                     \
    static SKUA_INL void store(void* p, I x) { P##_storeu_##SI(static_cast<T*>(p), x); }                           \
    static SKUA_INL I bytes(uint8_t x) { return P##_set1_epi8(static_cast<char>(x)); }                             \
    static SKUA_INL I flip(I x, I by) { return P##_xor_##SI(x, by); }                                              \
    static SKUA_INL Sum start(I offset) { return {offset}; }                                                       \
    static SKUA_INL void dot(Sum& sum, I taps, I w) {                                                              \
      sum.v = dot_of(sum.v, taps, w);                                                                              \
      asm volatile("" : SKUA_IN_REGISTER(sum.v)); /* else gcc copies the sum before every product */               \
    }                                                                                                              \
    static SKUA_INL I words_low(I x) { return P##_srai_epi16(P##_unpacklo_epi8(x, x), 8); }                        \
    static SKUA_INL I words_high(I x) { return P##_srai_epi16(P##_unpackhi_epi8(x, x), 8); }                       \
    static SKUA_INL void group(const I (&r)[G], I (&to)[4]) {                                                      \
      const I a = P##_unpacklo_epi8(r[0], r[1]), b = P##_unpackhi_epi8(r[0], r[1]);                                \
      if constexpr (G == 4) {                                                                                      \
        const I c = P##_unpacklo_epi8(r[G - 2], r[G - 1]), d = P##_unpackhi_epi8(r[G - 2], r[G - 1]);              \
        to[0] = P##_unpacklo_epi16(a, c);                                                                          \
        to[1] = P##_unpackhi_epi16(a, c);                                                                          \
        to[2] = P##_unpacklo_epi16(b, d);                                                                          \
        to[3] = P##_unpackhi_epi16(b, d);                                                                          \
      } else {                                                                                                     \
        to[0] = words_low(a);                                                                                      \
        to[1] = words_high(a);                                                                                     \
        to[2] = words_low(b);                                                                                      \
        to[3] = words_high(b);                                                                                     \
      }                                                                                                            \
    }                                                                                                              \
    static SKUA_INL void widen_pairs(I a, I b, int half, I (&to)[2]) {                                             \
      const I zero = P##_setzero_##SI(), pairs = half ? P##_unpackhi_epi8(a, b) : P##_unpacklo_epi8(a, b);         \
      to[0] = P##_unpacklo_epi8(pairs, zero);                                                                      \
      to[1] = P##_unpackhi_epi8(pairs, zero);                                                                      \
    }                                                                                                              \
    static SKUA_INL I total(Sum sum) { return sum.v; }                                                             \
    static SKUA_INL I scaled(Sum sum, const float* scale) { return nearest(product(sum.v, scale)); }               \
    static SKUA_INL I scaled(Sum sum, const float* scale, float high) {                                            \
      return nearest(at_most(product(sum.v, scale), P##_set1_ps(high)));                                           \
    }                                                                                                              \
    static SKUA_INL Sum start_positive(I offset) { return {P##_add_epi32(offset, P##_set1_epi32(0x4b000000))}; }   \
    static SKUA_INL I positive(Sum sum, const float* scale) { return nearest(product_positive(sum.v, scale)); }    \
    SKUA_LESS_POSITIVE                                                                                             \
    static SKUA_INL I half_positive(I a, I b) { return P##_packs_epi32(a, b); }                                    \
    static SKUA_INL I whole_positive(I a, I b) { return P##_packus_epi16(a, b); }                                  \
    static SKUA_INL I bounded_positive(I x, uint8_t low, uint8_t high) { return bounded_unsigned(x, low, high); }  \
    static SKUA_INL void parts(I x, uint8_t* to, size_t step, size_t pixels) { store_parts(x, to, step, pixels); } \
    template <int n> static SKUA_INL I pixels(const uint8_t* p, size_t step, size_t more) {                        \
      return pixels_of<n>(p, step, more, I());                                                                     \
    }                                                                                                              \
    static SKUA_INL I half(I a, I b, int16_t zero, int16_t) {                                                      \
      return P##_adds_epi16(P##_packs_epi32(a, b), P##_set1_epi16(zero));                                          \
    }                                                                                                              \
    static SKUA_INL I half_fixed(I a, I b, int16_t zero) {                                                         \
      return P##_adds_epi16(halved(P##_packs_epi32(a, b)), P##_set1_epi16(zero));                                  \
    }                                                                                                              \
    static SKUA_INL I bounded(I x, int8_t low, int8_t high) { return bounded_bytes(x, low, high); }                \
    static SKUA_INL I whole(I a, I b) { return P##_packs_epi16(a, b); }                                            \
  };
SKUA_BYTE_VECTOR(Bytes16, __m128i, _mm, si128)
#if !defined(SKUA_ISA_sse2)
SKUA_BYTE_VECTOR(Bytes32, __m256i, _mm256, si256)
#endif
#if defined(SKUA_ISA_avx512vnni)
#define _mm512_srai_epi16(x, n) _mm512_maskz_srai_epi16(~__mmask32(0), x, n)
SKUA_BYTE_VECTOR(Bytes64, __m512i, _mm512, si512)
#undef _mm512_srai_epi16
#endif

#else  // NEON

#if defined(SKUA_ISA_neon_dot) || defined(SKUA_ISA_neon32_dot)
#define SKUA_BY_TAPS 2
#else
#define SKUA_BY_TAPS 1
#endif
struct Bytes16 {
  static constexpr int L = 16, G = 4;
  // What is far outside stays so on its way through narrower and narrower numbers.
  static constexpr bool saturates = true, fits_always = true;
  static constexpr bool takes_unsigned = false, has_positive = false;
  using I = int8x16_t;
  static SKUA_INL I load(const void* p) { return vld1q_s8(static_cast<const int8_t*>(p)); }
  static SKUA_INL void store(void* p, I x) { vst1q_s8(static_cast<int8_t*>(p), x); }
  static SKUA_INL I bytes(uint8_t x) { return vreinterpretq_s8_u8(vdupq_n_u8(x)); }
  static SKUA_INL I flip(I x, I by) { return veorq_s8(x, by); }
#if defined(SKUA_ISA_neon_dot) || defined(SKUA_ISA_neon32_dot)
  struct Sum {
    int32x4_t v;
  };
  static SKUA_INL Sum start(I offset) { return {vreinterpretq_s32_s8(offset)}; }
  static SKUA_INL void dot(Sum& sum, I taps, I w) {
    sum.v = vdotq_s32(sum.v, taps, w);
#if defined(__arm__)
    asm volatile("" : "+w"(sum.v));  // one after the other: gcc would have all columns of a tile in registers first
#endif
  }
  static SKUA_INL int32x4_t total(Sum sum) { return sum.v; }
#else
  // Pairs of products have their own sums until the end: two multiplications and two additions of pairs for 16
  // products.
  struct Sum {
    int32x4_t offset, low, high;
  };
  static SKUA_INL Sum start(I offset) { return {vreinterpretq_s32_s8(offset), vdupq_n_s32(0), vdupq_n_s32(0)}; }
  static SKUA_INL void dot(Sum& sum, I taps, I w) {
    sum.low = vpadalq_s16(sum.low, vmull_s8(vget_low_s8(taps), vget_low_s8(w)));
    sum.high = vpadalq_s16(sum.high, vmull_s8(vget_high_s8(taps), vget_high_s8(w)));
  }
  static SKUA_INL int32x4_t total(Sum sum) {
    const int32x2_t low = vpadd_s32(vget_low_s32(sum.low), vget_high_s32(sum.low)),
                    high = vpadd_s32(vget_low_s32(sum.high), vget_high_s32(sum.high));
    return vaddq_s32(sum.offset, vcombine_s32(low, high));
  }
#endif
  // Tap by tap (int8_by_taps.h): sums of 16 channels in order.
  struct Sums {
    int32x4_t v[4];
  };
  static SKUA_INL Sums offsets(const void* p) {
    const auto* from = static_cast<const int32_t*>(p);
    return {{vld1q_s32(from), vld1q_s32(from + 4), vld1q_s32(from + 8), vld1q_s32(from + 12)}};
  }
  template <bool FLIP> static SKUA_INL I pixel(const void* p) { return FLIP ? flip(load(p), bytes(0x80)) : load(p); }
  static SKUA_INL void widen(Sums& sums, int16x8_t low, int16x8_t high) {
    sums.v[0] = vaddw_s16(sums.v[0], vget_low_s16(low));
    sums.v[1] = vaddw_s16(sums.v[1], vget_high_s16(low));
    sums.v[2] = vaddw_s16(sums.v[2], vget_low_s16(high));
    sums.v[3] = vaddw_s16(sums.v[3], vget_high_s16(high));
  }
  static SKUA_INL void widen_less(Sums& sums, int16x8_t low, int16x8_t high) {
    sums.v[0] = vsubw_s16(sums.v[0], vget_low_s16(low));
    sums.v[1] = vsubw_s16(sums.v[1], vget_high_s16(low));
    sums.v[2] = vsubw_s16(sums.v[2], vget_low_s16(high));
    sums.v[3] = vsubw_s16(sums.v[3], vget_high_s16(high));
  }
  static SKUA_INL void tap(Sums& sums, I a, I w) {
    widen(sums, vmull_s8(vget_low_s8(a), vget_low_s8(w)), vmull_s8(vget_high_s8(a), vget_high_s8(w)));
  }
  // Two taps of two outputs, in an order that waits for no result, and with no copy of a vector's upper half, which gcc
  // makes.
  static SKUA_INL void two_taps(Sums& p, I pa, I pwa, I pb, I pwb, Sums& q, I qa, I qwa, I qb, I qwb) {
#if defined(__aarch64__)
    int16x8_t t0, t1, t2, t3;
    asm("smull %[t0].8h, %[pa].8b, %[pwa].8b\n\tsmull2 %[t1].8h, %[pa].16b, %[pwa].16b\n\tsmull %[t2].8h, %[qa].8b, "
        "%[qwa].8b\n\tsmull2 %[t3].8h, %[qa].16b, %[qwa].16b\n\t"
        "smlal %[t0].8h, %[pb].8b, %[pwb].8b\n\tsmlal2 %[t1].8h, %[pb].16b, %[pwb].16b\n\tsmlal %[t2].8h, %[qb].8b, "
        "%[qwb].8b\n\tsmlal2 %[t3].8h, %[qb].16b, %[qwb].16b\n\t"
        "saddw %[p0].4s, %[p0].4s, %[t0].4h\n\tsaddw2 %[p1].4s, %[p1].4s, %[t0].8h\n\tsaddw %[p2].4s, %[p2].4s, "
        "%[t1].4h\n\tsaddw2 %[p3].4s, %[p3].4s, %[t1].8h\n\t"
        "saddw %[q0].4s, %[q0].4s, %[t2].4h\n\tsaddw2 %[q1].4s, %[q1].4s, %[t2].8h\n\tsaddw %[q2].4s, %[q2].4s, "
        "%[t3].4h\n\tsaddw2 %[q3].4s, %[q3].4s, %[t3].8h"
        : [t0] "=&w"(t0), [t1] "=&w"(t1), [t2] "=&w"(t2), [t3] "=&w"(t3), [p0] "+w"(p.v[0]), [p1] "+w"(p.v[1]),
          [p2] "+w"(p.v[2]), [p3] "+w"(p.v[3]), [q0] "+w"(q.v[0]), [q1] "+w"(q.v[1]), [q2] "+w"(q.v[2]),
          [q3] "+w"(q.v[3])
        : [pa] "w"(pa), [pwa] "w"(pwa), [pb] "w"(pb), [pwb] "w"(pwb), [qa] "w"(qa), [qwa] "w"(qwa), [qb] "w"(qb),
          [qwb] "w"(qwb));
#else
    two_taps<false>(p, pa, pwa, pb, pwb);
    two_taps<false>(q, qa, qwa, qb, qwb);
#endif
  }
  // Two products fit 16 bits unless all four numbers are -128; less than nothing they do even then.
  template <bool LEAST> static SKUA_INL void two_taps(Sums& sums, I a, I wa, I b, I wb) {
    if constexpr (LEAST) {
      const int16x8_t zero = vdupq_n_s16(0);
      widen_less(sums, vmlsl_s8(vmlsl_s8(zero, vget_low_s8(a), vget_low_s8(wa)), vget_low_s8(b), vget_low_s8(wb)),
                 vmlsl_s8(vmlsl_s8(zero, vget_high_s8(a), vget_high_s8(wa)), vget_high_s8(b), vget_high_s8(wb)));
    } else {
      widen(sums, vmlal_s8(vmull_s8(vget_low_s8(a), vget_low_s8(wa)), vget_low_s8(b), vget_low_s8(wb)),
            vmlal_s8(vmull_s8(vget_high_s8(a), vget_high_s8(wa)), vget_high_s8(b), vget_high_s8(wb)));
    }
  }
  static SKUA_INL void group(const I (&r)[G], I (&to)[4]) {
    const int8x16x2_t a = vzipq_s8(r[0], r[1]), c = vzipq_s8(r[2], r[3]);
    const int16x8x2_t x = vzipq_s16(vreinterpretq_s16_s8(a.val[0]), vreinterpretq_s16_s8(c.val[0])),
                      y = vzipq_s16(vreinterpretq_s16_s8(a.val[1]), vreinterpretq_s16_s8(c.val[1]));
    to[0] = vreinterpretq_s8_s16(x.val[0]);
    to[1] = vreinterpretq_s8_s16(x.val[1]);
    to[2] = vreinterpretq_s8_s16(y.val[0]);
    to[3] = vreinterpretq_s8_s16(y.val[1]);
  }
  static SKUA_INL int32x4_t scaled(int32x4_t sum, const float* scale, float = 0) {
    return nearest_saturated(to_f32({sum}) * F32::load(scale)).v;
  }
  static SKUA_INL int32x4_t scaled(Sum sum, const float* scale, float = 0) { return scaled(total(sum), scale); }
  static SKUA_INL int16x8_t half(int32x4_t a, int32x4_t b, int16_t zero, int16_t) {
    return vqaddq_s16(vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)), vdupq_n_s16(zero));
  }
  static SKUA_INL I whole(int16x8_t a, int16x8_t b) { return vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)); }
  static SKUA_INL I bounded(I x, int8_t low, int8_t high) {
    return vminq_s8(vmaxq_s8(x, vdupq_n_s8(low)), vdupq_n_s8(high));
  }
  static SKUA_INL void parts(I, uint8_t*, size_t, size_t) {}
};

#endif
#if !defined(SKUA_BY_TAPS)
#define SKUA_BY_TAPS 0
#endif
#if defined(__x86_64__) && !defined(SKUA_ISA_scalar) && !defined(SKUA_ISA_avxvnni)
#define SKUA_STREAMED 1
#else
#define SKUA_STREAMED 0
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
