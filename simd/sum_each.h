// sum_each(r): lane l of the result is the sum over the lanes of r[l], by halves as sum() adds them. Half of the
// shuffles of a transposition: with each step vectors become half as many.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(__SSE2__) && !defined(SKUA_ISA_scalar)
#if defined(__AVX512F__)
#define SKUA_SHUFFLED(a, b, order) _mm512_maskz_shuffle_ps(0xffff, (a).v, (b).v, order)
#elif defined(__AVX2__)
#define SKUA_SHUFFLED(a, b, order) _mm256_shuffle_ps((a).v, (b).v, order)
#else
#define SKUA_SHUFFLED(a, b, order) _mm_shuffle_ps((a).v, (b).v, order)
#endif
// The same in each 128 bits.
SKUA_INL F32 sum_fours(F32 a, F32 b, F32 c, F32 d) {
  const F32 ab = F32{SKUA_SHUFFLED(a, b, 0x44)} + F32{SKUA_SHUFFLED(a, b, 0xee)},
            cd = F32{SKUA_SHUFFLED(c, d, 0x44)} + F32{SKUA_SHUFFLED(c, d, 0xee)};
  return F32{SKUA_SHUFFLED(ab, cd, 0x88)} + F32{SKUA_SHUFFLED(ab, cd, 0xdd)};
}
#undef SKUA_SHUFFLED
#endif

SKUA_INL F32 sum_each(const F32 (&r)[F32::L]) {
#if defined(SKUA_ISA_scalar)
  return r[0];
#elif defined(__AVX512F__)
  const auto halves = [](F32 a, F32 b) __attribute__((always_inline)) {
    return F32{_mm512_maskz_shuffle_f32x4(0xffff, a.v, b.v, 0x44)} +
           F32{_mm512_maskz_shuffle_f32x4(0xffff, a.v, b.v, 0xee)};
  };
  F32 t[4];
  SKUA_UNROLL for (int i = 0; i < 4; ++i) {
    const F32 a = halves(r[i], r[i + 4]), b = halves(r[i + 8], r[i + 12]);
    t[i] = F32{_mm512_maskz_shuffle_f32x4(0xffff, a.v, b.v, 0x88)} +
           F32{_mm512_maskz_shuffle_f32x4(0xffff, a.v, b.v, 0xdd)};
  }
  return sum_fours(t[0], t[1], t[2], t[3]);
#elif defined(__AVX2__)
  F32 t[4];
  SKUA_UNROLL for (int i = 0; i < 4; ++i)
    t[i] = F32{_mm256_permute2f128_ps(r[i].v, r[i + 4].v, 0x20)} +
           F32{_mm256_permute2f128_ps(r[i].v, r[i + 4].v, 0x31)};
  return sum_fours(t[0], t[1], t[2], t[3]);
#elif defined(__SSE2__)
  return sum_fours(r[0], r[1], r[2], r[3]);
#else
  float32x2_t t[4];
  SKUA_UNROLL for (int i = 0; i < 4; ++i) t[i] = vadd_f32(vget_low_f32(r[i].v), vget_high_f32(r[i].v));
  return {vcombine_f32(vpadd_f32(t[0], t[1]), vpadd_f32(t[2], t[3]))};
#endif
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
