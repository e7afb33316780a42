// What tiles of weights in four bits need beside F32 and I32: nibbles to bytes, and products of four bytes of A by
// those of L columns.
//
//   set                       a     nibbles become                         products
//   avx512vnni, avxvnni       u8    16 w: one mask, or one shift and mask  vpdpbusd; the 16 goes into the row's scale
//   neon_dot, neon32_dot      s8    16 w                                   sdot
//   avx512, avx2, sse41       u8    w, by table                            pmaddubsw: at most 2 * 255 * 8 each, so that
//                                                                          eight of them fit 16 bits
//   neon, neon32              s8    w                                      smlal: at most 127 * 8 each, 32 of them fit
//   sse2, scalar              u8    w                                      widened to 16 bits; one by one
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F32::L;

SKUA_INL int32_t word(const uint8_t* p) {
  int32_t w;
  __builtin_memcpy(&w, p, 4);
  return w;
}

// Nibbles: L columns of four. Chunk: what products of kChunk steps (of eight) are summed in before they go to 32 bits.
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
constexpr bool kUnsigned = true;
constexpr float kFactor = 16;
constexpr int kChunk = 0;  // 32 bits at once
#if defined(SKUA_ISA_avx512vnni)
SKUA_INL I32 low(I32 p) { return {_mm512_and_si512(_mm512_slli_epi16(p.v, 4), _mm512_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 high(I32 p) { return {_mm512_and_si512(p.v, _mm512_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm512_dpbusd_epi32(acc.v, a.v, w.v)}; }
SKUA_INL void hold(I32& x) { asm("" : "+v"(x.v)); }
#else
SKUA_INL I32 low(I32 p) { return {_mm256_and_si256(_mm256_slli_epi16(p.v, 4), _mm256_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 high(I32 p) { return {_mm256_and_si256(p.v, _mm256_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm256_dpbusd_avx_epi32(acc.v, a.v, w.v)}; }
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#endif
using Chunk = I32;
SKUA_INL Chunk none() {
#if defined(SKUA_ISA_avx512vnni)
  I32 x;
  asm("vpxord %0, %0, %0" : "=v"(x.v));  // each register by itself: gcc would clear one and copy it
  return x;
#else
  return I32::set1(0);
#endif
}
#elif defined(SKUA_ISA_neon_dot) || defined(SKUA_ISA_neon32_dot)
constexpr bool kUnsigned = false;
constexpr float kFactor = 16;
constexpr int kChunk = 0;
SKUA_INL I32 low(I32 p) { return {vreinterpretq_s32_s8(vshlq_n_s8(vreinterpretq_s8_s32(p.v), 4))}; }
SKUA_INL I32 high(I32 p) { return {vandq_s32(p.v, vdupq_n_s32(int32_t(0xf0f0f0f0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) {
  return {vdotq_s32(acc.v, vreinterpretq_s8_s32(w.v), vreinterpretq_s8_s32(a.v))};
}
SKUA_INL void hold(I32&) {}
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
#elif defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx2) || defined(SKUA_ISA_sse41)
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 4;
#define SKUA_TABLE 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1
#if defined(SKUA_ISA_avx512)
SKUA_INL I32 by_table(__m512i x) {
  return {_mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(SKUA_TABLE)),
                              _mm512_and_si512(x, _mm512_set1_epi8(15)))};
}
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm512_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm512_add_epi16(acc.v, _mm512_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) {
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(c.v, _mm512_set1_epi16(1)))};
}
SKUA_INL void hold(I32& x) { asm("" : "+v"(x.v)); }
#elif defined(SKUA_ISA_avx2)
SKUA_INL I32 by_table(__m256i x) {
  return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi8(SKUA_TABLE)),
                              _mm256_and_si256(x, _mm256_set1_epi8(15)))};
}
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm256_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm256_add_epi16(acc.v, _mm256_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) {
  return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(c.v, _mm256_set1_epi16(1)))};
}
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#else
SKUA_INL I32 by_table(__m128i x) {
  return {_mm_shuffle_epi8(_mm_setr_epi8(SKUA_TABLE), _mm_and_si128(x, _mm_set1_epi8(15)))};
}
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm_add_epi16(acc.v, _mm_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) { return {_mm_add_epi32(acc.v, _mm_madd_epi16(c.v, _mm_set1_epi16(1)))}; }
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#endif
#undef SKUA_TABLE
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
#elif defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
constexpr bool kUnsigned = false;
constexpr float kFactor = 1;
constexpr int kChunk = 4;
struct Chunk {
  int16x8_t low, high;  // two columns each
};
SKUA_INL Chunk none() { return {vdupq_n_s16(0), vdupq_n_s16(0)}; }
SKUA_INL I32 low(I32 p) { return {vreinterpretq_s32_s8(vshrq_n_s8(vshlq_n_s8(vreinterpretq_s8_s32(p.v), 4), 4))}; }
SKUA_INL I32 high(I32 p) { return {vreinterpretq_s32_s8(vshrq_n_s8(vreinterpretq_s8_s32(p.v), 4))}; }
SKUA_INL Chunk dot(Chunk acc, I32 a, I32 w) {
  const int8x16_t x = vreinterpretq_s8_s32(a.v), y = vreinterpretq_s8_s32(w.v);
  return {vmlal_s8(acc.low, vget_low_s8(x), vget_low_s8(y)), vmlal_s8(acc.high, vget_high_s8(x), vget_high_s8(y))};
}
SKUA_INL I32 add_chunk(I32 acc, Chunk c) {
  const int32x4_t x = vpaddlq_s16(c.low), y = vpaddlq_s16(c.high);
  return {vaddq_s32(
      acc.v, vcombine_s32(vpadd_s32(vget_low_s32(x), vget_high_s32(x)), vpadd_s32(vget_low_s32(y), vget_high_s32(y))))};
}
SKUA_INL void hold(I32&) {}
#elif defined(SKUA_ISA_sse2)
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 0;
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
SKUA_INL I32 with_sign(__m128i x) {
  return {_mm_sub_epi8(_mm_xor_si128(_mm_and_si128(x, _mm_set1_epi8(15)), _mm_set1_epi8(8)), _mm_set1_epi8(8))};
}
SKUA_INL I32 low(I32 p) { return with_sign(p.v); }
SKUA_INL I32 high(I32 p) { return with_sign(_mm_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) {
  const __m128i x = _mm_unpacklo_epi8(a.v, _mm_setzero_si128());
  const __m128 p = _mm_castsi128_ps(_mm_madd_epi16(x, _mm_srai_epi16(_mm_unpacklo_epi8(w.v, w.v), 8))),
               q = _mm_castsi128_ps(_mm_madd_epi16(x, _mm_srai_epi16(_mm_unpackhi_epi8(w.v, w.v), 8)));
  return {_mm_add_epi32(acc.v, _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(p, q, 0x88)),
                                             _mm_castps_si128(_mm_shuffle_ps(p, q, 0xdd))))};
}
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#else
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 0;
using Chunk = I32;
SKUA_INL Chunk none() { return {0}; }
// each byte 16 w; the product shifts it back
SKUA_INL I32 low(I32 p) { return {int32_t(uint32_t(p.v) << 4 & 0xf0f0f0f0)}; }
SKUA_INL I32 high(I32 p) { return {int32_t(uint32_t(p.v) & 0xf0f0f0f0)}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) {
  int32_t sum = acc.v;
  for (int i = 0; i < 4; ++i) sum += int32_t(uint8_t(uint32_t(a.v) >> 8 * i)) * (int8_t(uint32_t(w.v) >> 8 * i) / 16);
  return {sum};
}
SKUA_INL void hold(I32&) {}
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
