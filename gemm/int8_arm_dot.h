// The tile of sdot over rows of A where they are: sixteen steps of a row per load, used by lane, four at a time.
//
//   packed B  [depth / 4][width][4]     kr = 4: a register is four columns, four deep
//   acc[r][v] += a[r] lane i (4 deep) . b[v] (4 columns, 4 deep)
//
// Registers, 6x16: 24 accumulators + 6 of A + 1 of B of 32; 22 loads feed 96 instructions of 16 multiply-adds. AArch32,
// 4x8: 8 + 4 + 1 of 16; a lane that multiplies must lie in q0..q7.
#pragma once
#include "gemm/int8_arm.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// In place: clang would take further registers, and spill.
SKUA_INL void flip(int8x16_t& x, int8x16_t bits) {
#if defined(__aarch64__)
  asm volatile("eor %0.16b, %0.16b, %1.16b" : "+w"(x) : "w"(bits));
#else
  x = veorq_s8(x, bits);
#endif
}

// Lane i of every row times one step of B, and those behind it.
template <int i, int lanes, int MR, int NV>
SKUA_INL void lane_steps(int32x4_t (&acc)[MR][NV], const int8x16_t (&x)[MR], const int8_t*& b, size_t ldb) {
  if constexpr (i < lanes) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const int8x16_t w = vld1q_s8(b + v * 16);
      SKUA_UNROLL for (int r = 0; r < MR; ++r) dot_lane<i>(acc[r][v], w, x[r]);
    }
    b += ldb;
    lane_steps<i + 1, lanes, MR, NV>(acc, x, b, ldb);
  }
}

template <bool is_u8, int MR, int NV> SKUA_INL void dot_sums(const GemmTile& t, int32x4_t (&acc)[MR][NV]) {
  const size_t ldb = t.ldb;
  for (size_t s = 0; s < t.segment_count; ++s) {
    const uint8_t* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = static_cast<const uint8_t*>(t.a[r]) + t.segments[s].a;
    const int8_t* b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 4 * ldb;
    size_t k = t.k;
    for (; k >= 16; k -= 16) {
      int8x16_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        x[r] = sixteen<false>(a[r]);
        a[r] += 16;
      }
      if constexpr (is_u8) {
        const int8x16_t bits = vdupq_n_s8(-128);
        SKUA_UNROLL for (int r = 0; r < MR; ++r) flip(x[r], bits);
      }
      lane_steps<0, 4>(acc, x, b, ldb);
    }
    while (k) {
      const size_t n = k < 4 ? k : 4;
      int8x16_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        x[r] = four<is_u8>(a[r], n);
        a[r] += n;
      }
      lane_steps<0, 1>(acc, x, b, ldb);
      k -= n;
    }
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
