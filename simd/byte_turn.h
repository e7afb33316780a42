// What a turn of kernels on bytes reads and writes: 4 L bytes as four vectors of floats, in the order that is cheapest,
// and back.
//
//   centred_four(p, zero, x)   the bytes at p less their zero point: exact
//   kTurnInOrder               that order is the one in memory
//   Ends<T> end(to, most);     end(t, p): four vectors in that order, none NaN or above `most`, clamped, rounded and
//                              stored at p as dispatch/requantize.h says
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx2)
constexpr bool kTurnInOrder = false;
// Within 128 bits, where packing puts them back. A byte, without its sign, becomes the last digits of 2^23 as a float;
// results saturate as they become 16 bits and 8.
template <class T> constexpr int kUp = T(-1) < T(0) ? 128 : 0;
template <class T> SKUA_INL void centred_four(const T* p, int32_t zero, F32 (&x)[4]) {
  __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  if constexpr (kUp<T>) v = _mm256_xor_si256(v, _mm256_set1_epi8(-128));
  const __m256i none = _mm256_setzero_si256(), two_to_23 = _mm256_set1_epi16(0x4b00);
  const __m256i low = _mm256_unpacklo_epi8(v, none), high = _mm256_unpackhi_epi8(v, none);
  const __m256i bits[] = {_mm256_unpacklo_epi16(low, two_to_23), _mm256_unpackhi_epi16(low, two_to_23),
                          _mm256_unpacklo_epi16(high, two_to_23), _mm256_unpackhi_epi16(high, two_to_23)};
  const F32 less = F32::set1(8388608.0f + float(zero + kUp<T>));
  SKUA_UNROLL for (int i = 0; i < 4; ++i) x[i] = F32{_mm256_castsi256_ps(bits[i])} - less;
}
template <class T> struct Ends {
  F32 greatest;
  __m256i zero, low, high;
  bool large, bounded;
  SKUA_INL Ends(const Requantize& to, float most)
      : greatest(F32::set1(to.high)), zero(_mm256_set1_epi16(int16_t(to.zero_point))), large(most >= 0x1p31f) {
    const int first = int(to.low) + to.zero_point, last = int(to.high) + to.zero_point;
    low = _mm256_set1_epi8(char(first));
    high = _mm256_set1_epi8(char(last));
    bounded = last - first < 255;
  }
  SKUA_INL void operator()(const F32 (&of)[4], T* p) const {
    F32 t[4] = {of[0], of[1], of[2], of[3]};
    if (large) SKUA_UNROLL for (int i = 0; i < 4; ++i) t[i] = min_fast(t[i], greatest);
    I32 q[4];
    // what is beyond 32 bits becomes the least of them: right below
    SKUA_UNROLL for (int i = 0; i < 4; ++i) q[i] = round_i32(t[i]);
    const __m256i a = _mm256_adds_epi16(_mm256_packs_epi32(q[0].v, q[1].v), zero),
                  b = _mm256_adds_epi16(_mm256_packs_epi32(q[2].v, q[3].v), zero);
    __m256i y = kUp<T> ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    if (bounded)
      y = kUp<T> ? _mm256_min_epi8(_mm256_max_epi8(y, low), high) : _mm256_min_epu8(_mm256_max_epu8(y, low), high);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), y);
  }
};
#elif defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
constexpr bool kTurnInOrder = true;
// The zero point is subtracted as bytes widen to 16 bits; results saturate as they become 32 bits, 16 and 8.
template <class T> constexpr bool kSigned = T(-1) < T(0);
template <class T> SKUA_INL void centred_four(const T* p, int32_t zero, F32 (&x)[4]) {
  const uint8x16_t v = vld1q_u8(reinterpret_cast<const uint8_t*>(p));
  const uint8x8_t z = vdup_n_u8(uint8_t(zero));
  const auto less = [&](uint8x8_t half) __attribute__((always_inline)) {
    return kSigned<T> ? vsubl_s8(vreinterpret_s8_u8(half), vreinterpret_s8_u8(z))
                      : vreinterpretq_s16_u16(vsubl_u8(half, z));
  };
  const int16x8_t words[] = {less(vget_low_u8(v)), less(vget_high_u8(v))};
  SKUA_UNROLL for (int i = 0; i < 2; ++i) {
    x[2 * i] = to_f32(I32{vmovl_s16(vget_low_s16(words[i]))});
    x[2 * i + 1] = to_f32(I32{vmovl_s16(vget_high_s16(words[i]))});
  }
}
template <class T> struct Ends {
  int16x8_t zero;
  uint8x16_t low, high;
  bool bounded;
  SKUA_INL Ends(const Requantize& to, float) : zero(vdupq_n_s16(int16_t(to.zero_point))) {
    const int first = int(to.low) + to.zero_point, last = int(to.high) + to.zero_point;
    low = vdupq_n_u8(uint8_t(first));
    high = vdupq_n_u8(uint8_t(last));
    bounded = last - first < 255;
  }
  SKUA_INL void operator()(const F32 (&t)[4], T* p) const {
    const auto words = [&](F32 a, F32 b) __attribute__((always_inline)) {
      return vqaddq_s16(vcombine_s16(vqmovn_s32(nearest_saturated(a).v), vqmovn_s32(nearest_saturated(b).v)), zero);
    };
    const int16x8_t a = words(t[0], t[1]), b = words(t[2], t[3]);
    uint8x16_t y = kSigned<T> ? vreinterpretq_u8_s8(vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)))
                              : vcombine_u8(vqmovun_s16(a), vqmovun_s16(b));
    if (bounded)
      y = kSigned<T> ? vreinterpretq_u8_s8(vminq_s8(vmaxq_s8(vreinterpretq_s8_u8(y), vreinterpretq_s8_u8(low)),
                                                    vreinterpretq_s8_u8(high)))
                     : vminq_u8(vmaxq_u8(y, low), high);
    vst1q_u8(reinterpret_cast<uint8_t*>(p), y);
  }
};
#else
constexpr bool kTurnInOrder = true;
template <class T> SKUA_INL void centred_four(const T* p, int32_t zero, F32 (&x)[4]) {
  SKUA_UNROLL for (size_t i = 0; i < 4; ++i) x[i] = to_f32(I32::load(p + i * F32::L) - I32::set1(zero));
}
template <class T> struct Ends {
  Requantizer to;
  SKUA_INL Ends(const Requantize& r, float) : to(r) {}
  SKUA_INL void operator()(const F32 (&t)[4], T* p) const {
    I32 q[4];
    SKUA_UNROLL for (size_t i = 0; i < 4; ++i) q[i] = to.rounded(t[i]);
    store_bytes(q, p);
  }
};
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
