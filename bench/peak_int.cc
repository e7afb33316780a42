// Multiply-adds of integers in sums of 32 bits: products of four bytes in one instruction where a set has it, else of
// pairs of 16-bit numbers and an addition, to which bytes are widened. Twelve chains, as in peak_loops.cc.
#include "bench/peak.h"
#include "dispatch/kernel.h"
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

#if SKUA_ISA_avx512vnni
using Sum = __m512i;
constexpr int kProducts = 64;  // of a step
inline Sum start(int x) { return _mm512_set1_epi32(x); }
inline Sum step(Sum sum, Sum factor) { return _mm512_dpbusd_epi32(sum, factor, factor); }
#elif SKUA_ISA_avxvnni
using Sum = __m256i;
constexpr int kProducts = 32;
inline Sum start(int x) { return _mm256_set1_epi32(x); }
inline Sum step(Sum sum, Sum factor) { return _mm256_dpbusd_avx_epi32(sum, factor, factor); }
#elif SKUA_ISA_avx512
using Sum = __m512i;
constexpr int kProducts = 32;
inline Sum start(int x) { return _mm512_set1_epi32(x); }
inline Sum step(Sum sum, Sum factor) { return _mm512_add_epi32(sum, _mm512_madd_epi16(factor, factor)); }
#define SKUA_PIN_FACTOR
#elif SKUA_ISA_avx2
using Sum = __m256i;
constexpr int kProducts = 16;
inline Sum start(int x) { return _mm256_set1_epi32(x); }
inline Sum step(Sum sum, Sum factor) { return _mm256_add_epi32(sum, _mm256_madd_epi16(factor, factor)); }
#define SKUA_PIN_FACTOR
#elif defined(__x86_64__)
using Sum = __m128i;
constexpr int kProducts = 8;
inline Sum start(int x) { return _mm_set1_epi32(x); }
inline Sum step(Sum sum, Sum factor) { return _mm_add_epi32(sum, _mm_madd_epi16(factor, factor)); }
#define SKUA_PIN_FACTOR
#else
using Sum = int32x4_t;
inline Sum start(int x) { return vdupq_n_s32(x); }
#if SKUA_ISA_neon_i8mm
constexpr int kProducts = 32;  // 2x8 by 8x2
inline Sum step(Sum sum, Sum factor) {
  return vmmlaq_s32(sum, vreinterpretq_s8_s32(factor), vreinterpretq_s8_s32(factor));
}
#elif SKUA_ISA_neon_dot || SKUA_ISA_neon32_dot
constexpr int kProducts = 16;
inline Sum step(Sum sum, Sum factor) {
  return vdotq_s32(sum, vreinterpretq_s8_s32(factor), vreinterpretq_s8_s32(factor));
}
#else
constexpr int kProducts = 4;
inline Sum step(Sum sum, Sum factor) {
  return vmlal_s16(sum, vget_low_s16(vreinterpretq_s16_s32(factor)), vget_low_s16(vreinterpretq_s16_s32(factor)));
}
#endif
#endif
#if defined(__x86_64__)
#define SKUA_PIN "+v"
#else
#define SKUA_PIN "+w"
#endif

volatile Sum sink;

double multiply_add(size_t rounds) {
  Sum chain[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) chain[i] = start(i);
  Sum by = start(0x01010101);
  for (size_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) {
#ifdef SKUA_PIN_FACTOR
      asm volatile("" : SKUA_PIN(by));  // else the product is computed once
#endif
      chain[i] = step(chain[i], by);
      asm volatile("" : SKUA_PIN(chain[i]));
    }
  Sum all = chain[0];
#pragma GCC unroll 12
  for (int i = 1; i < 12; ++i) all = all + chain[i];
  sink = all;
  return double(rounds) * 12 * kProducts;
}

}  // namespace
}  // namespace SKUA_ISA

extern const bench::PeakLoops SKUA_PASTE(bench_peak_int, SKUA_ISA);
const bench::PeakLoops SKUA_PASTE(bench_peak_int, SKUA_ISA) = {
    SKUA_STRING(SKUA_ISA), Element::s8, SKUA_ISA::multiply_add, {}, nullptr, {}};

}  // namespace skua
