// Sums of halves: a block of at most GemmTile::block terms is summed in f16, blocks in f32, which wait in memory as rows of NV * F16::L floats. Included by units that have F16.
#pragma once
#include "gemm/gemm_kernel.h"
#include "gemm/half_finish.h"
#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

enum class Then { keep, move, finish };  // what is done with the sums of a block: they stay halves, go on to f32, or are the last

// A vector of sums goes on to f32.
template <bool more> SKUA_INL void move_sum(F16 c, float*& sum) {
  F32 low, high;
  to_f32(c, low, high);
  if constexpr (more) low = low + F32::load(sum), high = high + F32::load(sum + F32::L);
  low.store(sum);
  high.store(sum + F32::L);
  sum += F16::L;
}
// Sums of a tile are [rows][vectors], or [vectors][rows] where by_vector. An array that a closure refers to would stay in memory.
template <bool by_vector, int A, int B> SKUA_INL F16 sum_of(const F16 (&c)[A][B], int r, int v) { return by_vector ? c[v % A][r % B] : c[r % A][v % B]; }
// more: to those that are there already.
template <bool by_vector, int A, int B> SKUA_INL void move_sums(const F16 (&c)[A][B], bool more, float* sums) {
  constexpr int MR = by_vector ? B : A, NV = by_vector ? A : B;
  if (more) SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) move_sum<true>(sum_of<by_vector>(c, r, v), sums);
  else SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) move_sum<false>(sum_of<by_vector>(c, r, v), sums);
}

// The usual end: the last sums need not be put down for it. Clamping what is rounded gives what rounding what is clamped does, to rounded bounds.
template <bool by_vector, bool more, int A, int B> SKUA_INL void finish_plain_sums(const GemmTile& t, const F16 (&c)[A][B], const float* sums) {
  constexpr int MR = by_vector ? B : A, NV = by_vector ? A : B;
  const float* bias = t.bias ? t.bias : kNoBias;
  const F16 low = F16::set1(t.low), high = F16::set1(t.high);
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    const F32 bias_low = F32::load(bias + v * F16::L), bias_high = F32::load(bias + v * F16::L + F32::L);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const float* sum = sums + (r * NV + v) * F16::L;
      F32 x, y;
      to_f32(sum_of<by_vector>(c, r, v), x, y);
      if constexpr (more) x = x + F32::load(sum), y = y + F32::load(sum + F32::L);
      clamp_high(clamp_low(to_f16(x + bias_low, y + bias_high), low), high).store(static_cast<f16*>(t.c[r]) + v * F16::L);
    }
  }
}
template <bool by_vector, int A, int B> SKUA_INL void finish_plain(const GemmTile& t, const F16 (&c)[A][B], bool more, const float* sums) {
  if (more) finish_plain_sums<by_vector, true>(t, c, sums);
  else finish_plain_sums<by_vector, false>(t, c, sums);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
