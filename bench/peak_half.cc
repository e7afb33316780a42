// Multiply-adds of a set's own half type, compiled for those sets alone: f16 in sums of f16, bf16 in pairs that are
// summed in f32. Sixteen chains where there are registers for them: a pair of bf16 takes six cycles on a Zen 5, which
// starts two in each.
#include "bench/peak.h"
#include "dispatch/kernel.h"
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

#if SKUA_ISA_avx512fp16
using Sum = __m512h;
constexpr Element kElement = Element::f16;
constexpr int kProducts = 32;  // of an instruction
inline Sum start(float x) { return _mm512_set1_ph(_Float16(x)); }
inline Sum step(Sum sum, Sum factor) { return _mm512_fmadd_ph(sum, factor, factor); }
inline Sum factor() { return start(0.5f); }
#define SKUA_PIN "+v"
#elif SKUA_ISA_avx512bf16
using Sum = __m512;
constexpr Element kElement = Element::bf16;
constexpr int kProducts = 32;
inline Sum start(float x) { return _mm512_set1_ps(x); }
inline __m512bh factor() { return _mm512_cvtne2ps_pbh(start(0.5f), start(0.25f)); }
inline Sum step(Sum sum, __m512bh factor) { return _mm512_dpbf16_ps(sum, factor, factor); }
#define SKUA_PIN "+v"
#elif SKUA_ISA_neon_bf16
using Sum = float32x4_t;
constexpr Element kElement = Element::bf16;
constexpr int kProducts = 16;  // 2x4 by 4x2
inline Sum start(float x) { return vdupq_n_f32(x); }
inline bfloat16x8_t factor() {
  uint16_t half = 0x3f00;
  asm volatile("" : "+r"(half));  // as a constant, gcc 12 makes an FP16 instruction of it
  return vreinterpretq_bf16_u16(vdupq_n_u16(half));
}
inline Sum step(Sum sum, bfloat16x8_t factor) { return vbfmmlaq_f32(sum, factor, factor); }
#define SKUA_PIN "+w"
#else
using Sum = float16x8_t;
constexpr Element kElement = Element::f16;
constexpr int kProducts = 8;
inline Sum start(float x) { return vdupq_n_f16(float16_t(x)); }
inline Sum factor() { return start(0.5f); }
inline Sum step(Sum sum, Sum factor) { return vfmaq_f16(factor, sum, factor); }
#define SKUA_PIN "+w"
#endif

volatile Sum sink;
#if defined(__arm__)
constexpr int kChains = 12;
#else
constexpr int kChains = 16;
#endif

double multiply_add(size_t rounds) {
  Sum chain[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) chain[i] = start(float(i));
  auto by = factor();
  asm volatile("" : SKUA_PIN(by));
  for (size_t r = 0; r < rounds; ++r)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) {
      chain[i] = step(chain[i], by);
      asm volatile("" : SKUA_PIN(chain[i]));
    }
  Sum all = chain[0];
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) all = all + chain[i];
  sink = all;
  return double(rounds) * kChains * kProducts;
}

}  // namespace
}  // namespace SKUA_ISA

extern const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA);
const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA) = {
    SKUA_STRING(SKUA_ISA), SKUA_ISA::kElement, SKUA_ISA::multiply_add, {}, nullptr, {}};

}  // namespace skua
