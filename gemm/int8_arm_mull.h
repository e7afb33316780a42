// The integer tile of instruction sets without dot products: products of eight bytes in 16 bits, added in pairs to sums of 32. Where no weight is -128 the products of two groups of
// eight are added in 16 bits before (2 * 127 * 128 fits): three instructions for sixteen multiply-adds. Else no two products are, so weights and activations of -128 are as good as others.
//
//   packed B    [depth / 8][width][8]     kr = 8: half a register is a column, eight deep
//   acc[r][j]   four parts of the sum of row r and column j, which come together at the end
//
// At most two instructions for eight multiply-adds, as many as smlal by lane of s16 takes, but A and B are bytes where they are; and on cores with two pipes one multiplies while
// the other adds (smlal by lane: one of them only).
// Registers, 4x4: 16 accumulators + 4 of A + 2 of B + products of 32. AArch32, 2x4: 8 + 1 + 2 + products of 16.
#pragma once
#include "gemm/int8_arm.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Products of a column's eight weights; and their sums in pairs. Both stay where they are written: compilers would multiply more than there are registers for, or turn
// accumulators around.
SKUA_INL int16x8_t products(int8x8_t w, int8x8_t x) {
  int16x8_t y;
#if defined(__aarch64__)
  asm volatile("smull %0.8h, %1.8b, %2.8b" : "=w"(y) : "w"(w), "w"(x));
#else
  asm volatile("vmull.s8 %q0, %P1, %P2" : "=w"(y) : "w"(w), "w"(x));
#endif
  return y;
}
SKUA_INL void add_products(int16x8_t& y, int8x8_t w, int8x8_t x) {
#if defined(__aarch64__)
  asm volatile("smlal %0.8h, %1.8b, %2.8b" : "+w"(y) : "w"(w), "w"(x));
#else
  asm volatile("vmlal.s8 %q0, %P1, %P2" : "+w"(y) : "w"(w), "w"(x));
#endif
}
SKUA_INL void add_pairs(int32x4_t& acc, int16x8_t x) {
#if defined(__aarch64__)
  asm volatile("sadalp %0.4s, %1.8h" : "+w"(acc) : "w"(x));
#else
  asm volatile("vpadal.s16 %q0, %q1" : "+w"(acc) : "w"(x));
#endif
}

template <bool is_u8, int MR, int N> SKUA_INL void mull_sums(const GemmTile& t, int32x4_t (&acc)[MR][N]) {
  const size_t ldb = t.ldb;
  const bool two = t.above_least;
  for (size_t s = 0; s < t.segment_count; ++s) {
    const uint8_t* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = static_cast<const uint8_t*>(t.a[r]) + t.segments[s].a;
    const int8_t* b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 8 * ldb;
    const auto step = [&](const int8x8_t (&x)[MR]) __attribute__((always_inline)) {
      SKUA_UNROLL for (int j = 0; j < N; j += 2) {
#if defined(__aarch64__)
        const int8x8_t w0 = vld1_s8(b + j * 8), w1 = vld1_s8(b + j * 8 + 8);
#else
        const int8x16_t w = vld1q_s8(b + j * 8);
        const int8x8_t w0 = vget_low_s8(w), w1 = vget_high_s8(w);
#endif
        int16x8_t y[2 * MR];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          y[r] = products(w0, x[r]);
          y[MR + r] = products(w1, x[r]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          add_pairs(acc[r][j], y[r]);
          add_pairs(acc[r][j + 1], y[MR + r]);
        }
      }
      b += ldb;
    };
    size_t k = t.k;
    if (two)
      for (; k >= 16; k -= 16) {
        int8x8_t x[2][MR];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
#if defined(__aarch64__)
          SKUA_UNROLL for (int i = 0; i < 2; ++i) x[i][r] = as_s8<is_u8>(vreinterpret_s8_u8(vld1_u8(a[r] + 8 * i)));
#else
          const int8x16_t both = sixteen<is_u8>(a[r]);
          x[0][r] = vget_low_s8(both);
          x[1][r] = vget_high_s8(both);
#endif
          a[r] += 16;
        }
        const auto column = [&](int j, int8x8_t w0, int8x8_t w1) __attribute__((always_inline)) {
          int16x8_t y[MR];
          SKUA_UNROLL for (int r = 0; r < MR; ++r) y[r] = products(w0, x[0][r]);
          SKUA_UNROLL for (int r = 0; r < MR; ++r) add_products(y[r], w1, x[1][r]);
          SKUA_UNROLL for (int r = 0; r < MR; ++r) add_pairs(acc[r][j], y[r]);
        };
#if defined(__aarch64__)
        SKUA_UNROLL for (int j = 0; j < N; ++j) column(j, vld1_s8(b + j * 8), vld1_s8(b + ldb + j * 8));
#else
        SKUA_UNROLL for (int j = 0; j < N; j += 2) {
          const int8x16_t w0 = vld1q_s8(b + j * 8), w1 = vld1q_s8(b + ldb + j * 8);
          column(j, vget_low_s8(w0), vget_low_s8(w1));
          column(j + 1, vget_high_s8(w0), vget_high_s8(w1));
        }
#endif
        b += 2 * ldb;
      }
    for (; k >= 8; k -= 8) {
      int8x8_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        x[r] = as_s8<is_u8>(vreinterpret_s8_u8(vld1_u8(a[r])));
        a[r] += 8;
      }
      step(x);
    }
    if (k) {
      int8x8_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = eight<is_u8>(a[r], k);
      step(x);
    }
  }
}

// The parts of a sum come together, and the offset with them.
template <int MR, int N> SKUA_INL void total(const GemmTile& t, const int32x4_t (&acc)[MR][N], int32x4_t (&sums)[MR][N / 4]) {
  SKUA_UNROLL for (int j = 0; j < N; j += 4) {
    const int32x4_t offset = vld1q_s32(t.offset + j);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
#if defined(__aarch64__)
      sums[r][j / 4] = vaddq_s32(vpaddq_s32(vpaddq_s32(acc[r][j], acc[r][j + 1]), vpaddq_s32(acc[r][j + 2], acc[r][j + 3])), offset);
#else
      int32x2_t x[4];
      SKUA_UNROLL for (int i = 0; i < 4; ++i) x[i] = vpadd_s32(vget_low_s32(acc[r][j + i]), vget_high_s32(acc[r][j + i]));
      sums[r][j / 4] = vaddq_s32(vcombine_s32(vpadd_s32(x[0], x[1]), vpadd_s32(x[2], x[3])), offset);
#endif
    }
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
