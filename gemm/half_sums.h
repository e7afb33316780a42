// Sums of halves: a block of at most GemmTile::block terms is summed in f16, blocks in f32, which wait in memory as
// rows of NV * F16::L floats. Included by units that have F16.
#pragma once
#include "gemm/gemm_kernel.h"
#include "gemm/half_finish.h"
#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// what is done with the sums of a block: they stay halves, go on to f32, or are the last
enum class Then { keep, move, finish };

// A vector of sums goes on to f32.
template <bool more> SKUA_INL void move_sum(F16 c, float*& sum) {
  F32 low, high;
  to_f32(c, low, high);
  if constexpr (more) low = low + F32::load(sum), high = high + F32::load(sum + F32::L);
  low.store(sum);
  high.store(sum + F32::L);
  sum += F16::L;
}
#if defined(__aarch64__)
// FHM widens halves and adds them, to the same bits: a product by 1 is exact.
SKUA_INL void add_halves(F16 c, F16 one, F32& low, F32& high) {
  asm(".arch_extension fp16fml\n fmlal %0.4s, %2.4h, %3.4h\n fmlal2 %1.4s, %2.4h, %3.4h"
      : "+&w"(low.v), "+w"(high.v)
      : "w"(c.v), "w"(one.v));
}
#endif
template <bool is> struct More {
  static constexpr bool more = is;
};
// Sums of a tile are [rows][vectors], or [vectors][rows] where by_vector. An array that a closure refers to would stay
// in memory.
template <bool by_vector, int A, int B>
SKUA_INL F16 sum_of(const F16 (&c)[A][B], int r, int v) {
  return by_vector ? c[v % A][r % B] : c[r % A][v % B];
}
// more: to those that are there already. fhm: GemmTile::fhm.
template <bool by_vector, int A, int B>
SKUA_INL void move_sums(const F16 (&c)[A][B], bool more, float* sums, [[maybe_unused]] bool fhm = false) {
  constexpr int MR = by_vector ? B : A, NV = by_vector ? A : B;
#if defined(__aarch64__)
  if (more && fhm) {
    const F16 one = F16::set1(1);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v, sums += F16::L) {
      F32 low = F32::load(sums), high = F32::load(sums + F32::L);
      add_halves(sum_of<by_vector>(c, r, v), one, low, high);
      low.store(sums);
      high.store(sums + F32::L);
      asm volatile("" ::: "memory");  // as below
    }
    return;
  }
#endif
  const auto all = [&](auto to) __attribute__((always_inline)) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      move_sum<decltype(to)::more>(sum_of<by_vector>(c, r, v), sums);
#if defined(__aarch64__)
      // else gcc mixes the stores of several, so that fewer are pairs; only in-order cores would gain by it
      if constexpr (!by_vector) asm volatile("" ::: "memory");
#endif
    }
  };
  if (more) all(More<true>());
  else all(More<false>());
}

// The usual end: the last sums need not be put down for it. Clamping what is rounded gives what rounding what is
// clamped does, to rounded bounds.
template <bool by_vector, bool more, bool fhm, int A, int B>
SKUA_INL void finish_plain_sums(const GemmTile& t, const F16 (&c)[A][B], const float* sums) {
  constexpr int MR = by_vector ? B : A, NV = by_vector ? A : B;
  const float* bias = t.bias ? t.bias : kNoBias;
  const F16 low = F16::set1(t.low), high = F16::set1(t.high);
  [[maybe_unused]] const F16 one = F16::set1(1);
  F32 b[2 * NV];  // before the first store: for all the compiler knows C lies over it
  SKUA_UNROLL for (int v = 0; v < 2 * NV; ++v) b[v] = F32::load(bias + v * F32::L);
  SKUA_UNROLL for (int r = 0; r < MR; ++r) {
    f16* to = static_cast<f16*>(t.c[r]);
    F16 y[NV];
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const float* sum = sums + (r * NV + v) * F16::L;
      F32 x0, x1;
#if defined(__aarch64__)
      if constexpr (fhm) {
        x0 = F32::load(sum), x1 = F32::load(sum + F32::L);
        add_halves(sum_of<by_vector>(c, r, v), one, x0, x1);
      } else
#endif
        to_f32(sum_of<by_vector>(c, r, v), x0, x1);
      if constexpr (more && !fhm) x0 = x0 + F32::load(sum), x1 = x1 + F32::load(sum + F32::L);
      y[v] = clamp_high(clamp_low(to_f16(x0 + b[2 * v], x1 + b[2 * v + 1]), low), high);
    }
    SKUA_UNROLL for (int v = 0; v < NV; ++v) y[v].store(to + v * F16::L);
#if defined(__aarch64__)
    if constexpr (!by_vector) asm volatile("" ::: "memory");
#endif
  }
}
template <bool by_vector, int A, int B>
SKUA_INL void finish_plain(const GemmTile& t, const F16 (&c)[A][B], bool more, const float* sums,
                           [[maybe_unused]] bool fhm = false) {
#if defined(__aarch64__)
  if (more && fhm) return finish_plain_sums<by_vector, true, true>(t, c, sums);
#endif
  if (more) finish_plain_sums<by_vector, true, false>(t, c, sums);
  else finish_plain_sums<by_vector, false, false>(t, c, sums);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
