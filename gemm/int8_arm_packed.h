// Tiles of dot products of four bytes over packed A, whose inner loop is assembly: in-order AArch64 cores and AArch32.
//
//   packed A  [depth / 4][kPackedRows][4], written by pack_fours(); rows that are not there repeat the first, and are
//             not stored
//   packed B  [depth / 4][width][4]
//   whole tiles: packed_loop() or packed_turns(); panels of fewer vectors of columns: the template below, over the same
//   A
#pragma once
#include "gemm/int8_arm.h"

namespace skua {
namespace SKUA_ISA {
namespace {

using Packed = I32;
#if defined(__aarch64__)
#include "gemm/packed_loops64.h"
constexpr int kPackedRows = 8;
#else
#include "gemm/packed_loops32.h"
constexpr int kPackedRows = 6;
#endif

// One step for row r and those behind it.
template <int r, int NV>
SKUA_INL void packed_lanes(I32 (&c)[NV][kPackedRows], const int8x16_t (&w)[NV], const int8x16_t (&x)[2]) {
  if constexpr (r < kPackedRows) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) dot_lane<r % 4>(c[v][r].v, w[v], x[r / 4]);
    packed_lanes<r + 1>(c, w, x);
  }
}
template <int NV>
SKUA_INL void packed_steps(I32 (&c)[NV][kPackedRows], const int8_t* a, const int8_t* b, size_t ldb, size_t k) {
  for (; k; --k, a += 4 * kPackedRows, b += ldb) {
    const int8x16_t x[2] = {vld1q_s8(a),
                            kPackedRows == 8 ? vld1q_s8(a + 16) : vcombine_s8(vld1_s8(a + 16), vdup_n_s8(0))};
    int8x16_t w[NV];
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = vld1q_s8(b + v * 16);
    packed_lanes<0>(c, w, x);
  }
}

// c = [from] + k steps over one run of A and B. ldb in bytes.
template <int NV, Core core>
SKUA_INL void packed_run(I32 (&c)[NV][kPackedRows], const int8_t* a, const int8_t* b, size_t ldb, size_t k,
                         const I32* from) {
#if defined(__aarch64__)
  if constexpr (NV == 3) return packed_loop<core>(c, a, b, ldb, k, from);
#else
  if constexpr (NV == 2) {
    const size_t by_turns = k / packed_turn<core> * packed_turn<core>;
    packed_turns<core>(c, a, b, ldb, by_turns, from);
    return packed_steps(c, a, b, ldb, k - by_turns);
  }
#endif
  SKUA_UNROLL for (int v = 0; v < NV; ++v)
    SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r)
      c[v][r] = from ? from[v * kPackedRows + r] : I32::set1(0);
  packed_steps(c, a, b, ldb, k);
}

// The sums of all rows of a panel of A, from the offset on: to C where that is whole rows of bytes (true), else
// sums[row][column].
template <int NV, Core core>
SKUA_INL bool packed_sums(const GemmTile& t, const int8_t* panel, void* const* c_rows, size_t rows, int32_t* sums) {
  constexpr int MR = kPackedRows;
  I32 c[NV][MR], kept[NV * MR];  // kept: sums between runs, at first where they start
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    const I32 offset = I32::load(t.offset + v * 4);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) kept[v * MR + r] = c[v][r] = offset;
  }
  const size_t ldb = t.ldb, segments = t.k ? t.segment_count : 0, steps = (t.k + 3) / 4;
  for (size_t s = 0; s < segments;) {
    const int8_t *a = panel + s * steps * 4 * MR, *b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 4 * ldb;
    size_t k = steps;
    // segments that follow each other in B too are one run
    for (++s; s < segments && t.segments[s].b == t.segments[s - 1].b + steps * 4; ++s) k += steps;
    packed_run<NV, core>(c, a, b, ldb, k, kept);
    if (s < segments)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        SKUA_UNROLL for (int r = 0; r < MR; ++r)
          kept[v * MR + r] = c[v][r];
  }
  if (rows == MR && t.n == size_t(NV * 4) && ends_plain(t)) {
    int32x4_t y[MR][NV];
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) y[r][v] = c[v][r].v;
    put_rows(t, c_rows, y);
    return true;
  }
  SKUA_UNROLL for (int v = 0; v < NV; ++v)
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      c[v][r].store(sums + (r * NV + v) * 4);
  return false;
}

// Of A' of each row of a panel over the depth.
__attribute__((noinline)) void sum_fours(const GemmTile& t, const int8_t* panel, int32_t* sums) {
  int32x4_t acc[2] = {vdupq_n_s32(0), vdupq_n_s32(0)};
  for (size_t left = t.segment_count * ((t.k + 3) / 4); left; --left, panel += 4 * kPackedRows) {
    acc[0] = vpadalq_s16(acc[0], vpaddlq_s8(vld1q_s8(panel)));
    acc[1] = vpadalq_s16(
        acc[1], vpaddlq_s8(kPackedRows == 8 ? vld1q_s8(panel + 16) : vcombine_s8(vld1_s8(panel + 16), vdup_n_s8(0))));
  }
  vst1q_s32(sums, acc[0]);
  vst1q_s32(sums + 4, acc[1]);
}

// Sixteen steps of four rows at a time, turned in registers in groups of four.
template <bool is_u8>
void pack_fours(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t depth,
                void* panel) {
  constexpr int MR = kPackedRows;
  int8_t* to = static_cast<int8_t*>(panel);
  for (size_t s = 0; s < segment_count; ++s) {
    const uint8_t* row[MR];
    for (size_t r = 0; r < MR; ++r) row[r] = static_cast<const uint8_t*>(a[r < rows ? r : 0]) + segments[s].a;
    size_t k = 0;
    for (; k + 16 <= depth; k += 16, to += 16 * MR)
      SKUA_UNROLL for (int first = 0; first < MR; first += 4) {
        F32 x[4];
        SKUA_UNROLL for (int i = 0; i < 4; ++i)
          x[i].v = vreinterpretq_f32_s8(sixteen<is_u8>(row[first + i < MR ? first + i : 0] + k));
        transpose(x);
        SKUA_UNROLL for (int i = 0; i < 4; ++i) {
          const int8x16_t y = vreinterpretq_s8_f32(x[i].v);
          if (first + 4 <= MR) vst1q_s8(to + i * 4 * MR + first * 4, y);
          else vst1_s8(to + i * 4 * MR + first * 4, vget_low_s8(y));
        }
      }
    for (; k < depth; k += 4, to += 4 * MR)
      for (int r = 0; r < MR; ++r) {
        const uint32_t x = word<is_u8>(row[r] + k, depth - k);
        __builtin_memcpy(to + r * 4, &x, 4);
      }
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
