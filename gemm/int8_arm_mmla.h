// Tiles of smmla, and usmmla of u8: every operand register is a pair of rows of A or of columns of B, eight steps of
// the depth each; every accumulator two by two sums.
//
//   packed A  [depth / 8][row pairs][r0k0..7 r1k0..7]  written by pack_a into the workspace, once for all panels of B
//   packed B  [depth / 8][width][8]                    the format of kr = 8: [c0k0..7 c1k0..7] is a register as it lies
//   acc[p][q] = [r0c0 r0c1 r1c0 r1c1]                  rows come apart at the end: the lower and the upper halves of
//                                                      two neighbours
//
// Registers, 6x16: 24 accumulators + 3 of A + 1 of B of 32; 11 loads feed 24 instructions of 32 multiply-adds. Rows
// where they are, 4x16: 16 accumulators + 4 of A (16 deep, put together in registers) + 1 of B; 20 loads and 4 moves
// feed 32. Both read the same panels of B, so the number of rows decides.
#pragma once
#include "gemm/int8_arm.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Stays where it is written: gcc 12 hoists the loads of a step over its multiplies, more than there are registers for.
template <bool is_u8 = false> SKUA_INL void multiply(int32x4_t& acc, int8x16_t a, int8x16_t b) {
  if constexpr (is_u8) asm volatile("usmmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(a), "w"(b));
  else asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(a), "w"(b));
}

SKUA_INL int8x16_t low_halves(int8x16_t x, int8x16_t y) {
  return vreinterpretq_s8_s64(vzip1q_s64(vreinterpretq_s64_s8(x), vreinterpretq_s64_s8(y)));
}
SKUA_INL int8x16_t high_halves(int8x16_t x, int8x16_t y) {
  return vreinterpretq_s8_s64(vzip2q_s64(vreinterpretq_s64_s8(x), vreinterpretq_s64_s8(y)));
}

template <bool is_u8, int MP, int NQ>
SKUA_INL void pair_step(int32x4_t (&acc)[MP][NQ], const int8x16_t (&x)[MP], const int8_t* b) {
  SKUA_UNROLL for (int q = 0; q < NQ; q += 2) {  // two vectors by one load
    const int8x16_t w0 = vld1q_s8(b + q * 16), w1 = vld1q_s8(b + q * 16 + 16);
    SKUA_UNROLL for (int p = 0; p < MP; ++p) multiply<is_u8>(acc[p][q], x[p], w0);
    SKUA_UNROLL for (int p = 0; p < MP; ++p) multiply<is_u8>(acc[p][q + 1], x[p], w1);
  }
}

// A panel of MR rows, 2 * MP of which are multiplied.
template <bool is_u8, int MR, int MP, int NQ>
SKUA_INL void pair_sums(const GemmTile& t, const int8_t* panel, int32x4_t (&acc)[MP][NQ]) {
  const size_t ldb = t.ldb, steps = (t.k + 7) / 8;
  for (size_t s = 0; s < t.segment_count; ++s) {
    const int8_t *a = panel + s * steps * 8 * MR, *b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 8 * ldb;
    for (size_t left = steps; left; --left, a += 8 * MR, b += ldb) {
      int8x16_t x[MP];
      SKUA_UNROLL for (int p = 0; p < MP; ++p) x[p] = vld1q_s8(a + p * 16);
      pair_step<is_u8>(acc, x, b);
    }
  }
}

// Rows where they are, of u8 as such; the last of an odd number twice.
template <bool is_u8, int MR, int NQ> SKUA_INL void row_sums(const GemmTile& t, int32x4_t (&acc)[(MR + 1) / 2][NQ]) {
  constexpr int MP = (MR + 1) / 2;
  const size_t ldb = t.ldb;
  for (size_t s = 0; s < t.segment_count; ++s) {
    const uint8_t* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = static_cast<const uint8_t*>(t.a[r]) + t.segments[s].a;
    const int8_t* b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 8 * ldb;
    size_t k = t.k;
    for (; k >= 16; k -= 16) {
      int8x16_t x[2][MP];
      SKUA_UNROLL for (int p = 0; p < MP; ++p) {
        const int r1 = 2 * p + 1 < MR ? 2 * p + 1 : 2 * p;
        const int8x16_t y = sixteen<false>(a[2 * p]), z = r1 == 2 * p ? y : sixteen<false>(a[r1]);
        x[0][p] = low_halves(y, z);
        x[1][p] = high_halves(y, z);
      }
      SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] += 16;
      pair_step<is_u8>(acc, x[0], b);
      b += ldb;
      pair_step<is_u8>(acc, x[1], b);
      b += ldb;
    }
    while (k) {
      const size_t n = k < 8 ? k : 8;
      int8x16_t x[MP];
      SKUA_UNROLL for (int p = 0; p < MP; ++p)
        x[p] = vcombine_s8(eight<false>(a[2 * p], n), eight<false>(a[2 * p + 1 < MR ? 2 * p + 1 : 2 * p], n));
      SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] += n;
      pair_step<is_u8>(acc, x, b);
      b += ldb;
      k -= n;
    }
  }
}

template <int MP, int NQ> SKUA_INL void start_pairs(const GemmTile& t, int32x4_t (&acc)[MP][NQ]) {
  SKUA_UNROLL for (int q = 0; q < NQ; ++q) {
    const int32x2_t two = vld1_s32(t.offset + 2 * q);
    SKUA_UNROLL for (int p = 0; p < MP; ++p) acc[p][q] = vcombine_s32(two, two);
  }
}
// Rows come apart.
template <int MR, int NQ>
SKUA_INL void rows_of(const int32x4_t (&acc)[(MR + 1) / 2][NQ], int32x4_t (&sums)[MR][NQ / 2]) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NQ / 2; ++v) {
    const int8x16_t x = vreinterpretq_s8_s32(acc[r / 2][2 * v]), y = vreinterpretq_s8_s32(acc[r / 2][2 * v + 1]);
    sums[r][v] = vreinterpretq_s32_s8(r % 2 ? high_halves(x, y) : low_halves(x, y));
  }
}

// Whole rows of bytes, an even number of them: sums stay pairs until they are bytes. [r0 c0 c1 | r1 c0 c1] of 32 bits,
// four of them [r0 c0 c1 | r1 c0 c1 | r0 c2 c3 | ...] of 8, whose halves of 16 bits come apart.
template <int MP, int NQ> SKUA_INL void put_pairs(const GemmTile& t, void* const* c_rows, int32x4_t (&acc)[MP][NQ]) {
  const ByteEnd end(t);
  SKUA_UNROLL for (int q = 0; q < NQ; ++q) {
    const float32x2_t two = vld1_f32(t.scale + 2 * q);
    const F32 scale = {vcombine_f32(two, two)};
    SKUA_UNROLL for (int p = 0; p < MP; ++p) acc[p][q] = end.rounded(acc[p][q], scale);
  }
  SKUA_UNROLL for (int p = 0; p < MP; ++p) {
    int16x8_t bytes[(NQ + 3) / 4];
    SKUA_UNROLL for (int i = 0; i < NQ; i += 4) {
      const int16x8_t x = ByteEnd::words(acc[p][i], acc[p][i + 1]),
                      y = i + 2 < NQ ? ByteEnd::words(acc[p][(i + 2) % NQ], acc[p][(i + 3) % NQ]) : x;
      bytes[i / 4] =
          vreinterpretq_s16_s8(vaddq_s8(vuzp1q_s8(vreinterpretq_s8_s16(x), vreinterpretq_s8_s16(y)), end.zero));
    }
    SKUA_UNROLL for (int row = 0; row < 2; ++row) {
      uint8_t* c = static_cast<uint8_t*>(c_rows[2 * p + row]);
      SKUA_UNROLL for (int i = 0; i < NQ / 4; i += 2) {
        const int16x8_t x = bytes[i], y = bytes[i + 1 < NQ / 4 ? i + 1 : i];
        const uint8x16_t z = vreinterpretq_u8_s16(row ? vuzp2q_s16(x, y) : vuzp1q_s16(x, y));
        if (i + 1 < NQ / 4) vst1q_u8(c + i * 8, z);
        else vst1_u8(c + i * 8, vget_low_u8(z));
      }
      if constexpr (NQ % 4) {
        const int16x8_t x = bytes[NQ / 4];
        const uint32_t four = vgetq_lane_u32(vreinterpretq_u32_s16(row ? vuzp2q_s16(x, x) : vuzp1q_s16(x, x)), 0);
        __builtin_memcpy(c + NQ / 4 * 8, &four, 4);
      }
    }
  }
}

// Of each row of a panel over the depth.
template <bool is_u8, int MR>
__attribute__((noinline)) void sum_pairs(const GemmTile& t, const int8_t* panel, int32_t* sums) {
  for (int p = 0; p < MR / 2; ++p) {
    int32x4_t acc = vdupq_n_s32(0);
    const int8_t* a = panel + p * 16;
    for (size_t left = t.segment_count * ((t.k + 7) / 8); left; --left, a += 8 * MR) {
      if constexpr (is_u8)
        acc = vreinterpretq_s32_u32(
            vpadalq_u16(vreinterpretq_u32_s32(acc), vpaddlq_u8(vreinterpretq_u8_s8(vld1q_s8(a)))));
      else acc = vpadalq_s16(acc, vpaddlq_s8(vld1q_s8(a)));
    }
    vst1_s32(sums + 2 * p, vpadd_s32(vget_low_s32(acc), vget_high_s32(acc)));
  }
}

template <int MR>
void pack_pairs(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t depth,
                void* panel) {
  int8_t* to = static_cast<int8_t*>(panel);
  for (size_t s = 0; s < segment_count; ++s) {
    const uint8_t* row[MR];
    // any values for rows that are not there
    for (size_t r = 0; r < MR; ++r) row[r] = static_cast<const uint8_t*>(a[r < rows ? r : 0]) + segments[s].a;
    size_t k = 0;
    for (; k + 16 <= depth; k += 16, to += 16 * MR)
      SKUA_UNROLL for (int p = 0; p < MR / 2; ++p) {
        const int8x16_t x = sixteen<false>(row[2 * p] + k), y = sixteen<false>(row[2 * p + 1] + k);
        vst1q_s8(to + p * 16, low_halves(x, y));
        vst1q_s8(to + (MR / 2 + p) * 16, high_halves(x, y));
      }
    for (; k < depth; k += 8, to += 8 * MR)
      for (int p = 0; p < MR / 2; ++p)
        vst1q_s8(to + p * 16,
                 vcombine_s8(eight<false>(row[2 * p] + k, depth - k), eight<false>(row[2 * p + 1] + k, depth - k)));
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
