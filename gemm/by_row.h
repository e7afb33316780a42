// Tiles of AVX2 that end row by row. Included by the units of this family.
#pragma once
#include "gemm/gemm_kernel.h"
#include "gemm/halves.h"
#include "gemm/step.h"
#include "gemm/tile_rows.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// What most tiles are: all of a product's depth at once, whole vectors, a bias and a clamp or less. even_tiles() spends 28 to 39 cycles beside the multiply-adds of such a tile on Zen 3: a store
// of a vector is completed every second cycle, in order, and behind the twelve at the end the registers for results in flight run out. Here the last steps go row by row, or two by two, whose
// stores complete while the next are multiplied, and little is left to decide for each tile: 8 to 15 cycles (3x32 with K = 16: 77 to 93% of the peak).
template <int MR, int NV> constexpr bool kEndsByRow = F32::L == 8 && F32::fused && MR * NV == 12 && NV > 1;
constexpr size_t kLastSteps = 4;
enum class Clamp { none, low, both, asked };  // asked: of halves, whose ends are twice as long as a branch or two for each row; a tile for each clamp would be 80 KiB of code
template <int NV> bool ends_by_row(const GemmTile& t) {
  return t.n == NV * F32::L && t.segment_count == 1 && t.k >= kLastSteps && !t.line && !t.load_c && t.finish && t.alpha == 1 && t.beta == 0 && !t.residual && !t.hard_swish && !t.next;
}
template <int MR, int NV, int lines, bool near, bool widens, Clamp clamp, class C> __attribute__((noinline)) void even_by_row(const GemmTile& t) {
  constexpr int L = F32::L, together = NV < 4 ? 2 : 1;  // rows: a vector of B is loaded for each two or three multiply-adds
  using Rows = EvenRows<!near>;
  Rows rows = {static_cast<const float*>(t.a[0]) + t.segments->a, static_cast<char*>(t.c[0]), nullptr, nullptr, nullptr, t.a_step, t.c_step * ptrdiff_t(sizeof(C)), 0};
  const float *const bias = t.bias, *const b0 = static_cast<const float*>(t.b) + t.segments->b * t.ldb;
  const size_t ldb = t.ldb, depth = t.k - kLastSteps;
  LinesAhead<kLines<NV>> fetch(t.groups, t.ahead);
  [[maybe_unused]] HalvesAhead<MR> halves(t, rows.a0);
  if constexpr (widens) halves.rest(0, t.k);
  for (size_t i = t.groups; i; --i) {
    if constexpr (widens) rows.next = halves.fetched(), rows.below = halves.next(i > 1);
    else rows.below = rows.a0 + MR * rows.a_step;
    const ptrdiff_t ahead = lines ? fetch.next() : 0;
    F32 acc[MR][NV];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
    typename Rows::template A<MR> a(rows, 0);
    const float* b = b0;
    const auto steps = [&](size_t left) __attribute__((always_inline)) {
      for (; left; --left, b += ldb) {
        step<MR, NV, lines>(a, 0, b, ahead, false, acc);
        a.step();
      }
    };
    [[maybe_unused]] size_t k = 0;  // columns of the next tile's rows that are widened
    if constexpr (widens) {
      for (; k + L <= depth; k += L) steps(L), halves.template vectors_as<C>(k);
      steps(depth - k);
      if (k + L <= t.k) halves.template vectors_as<C>(k), k += L;
    } else {
      steps(depth);
    }
    SKUA_UNROLL for (int r0 = 0; r0 < MR; r0 += together) {
      const float* w = b;
      SKUA_UNROLL for (size_t k = 0; k < kLastSteps; ++k) {
        F32 x[together];
        SKUA_UNROLL for (int r = 0; r < together; ++r) x[r] = F32::broadcast(a.at(r0 + r, 0) + k);
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          F32 y = F32::load(w + v * L);
          if constexpr (together > 1) pin(y);
          SKUA_UNROLL for (int r = 0; r < together; ++r) acc[r0 + r][v] = fma(x[r], y, acc[r0 + r][v]);
        }
        w += ldb;
        asm("" : "+r"(w));  // else gcc has an address for each vector
      }
#define SKUA_EACH(statement) SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) { F32& y = acc[r][v]; statement; }
      if (bias) SKUA_EACH(y = y + F32::load(bias + v * L))
      if (clamp == Clamp::low || clamp == Clamp::both || (clamp == Clamp::asked && t.low > -kInfinity)) SKUA_EACH(y = clamp_low(y, F32::set1(t.low)))
      if (clamp == Clamp::both || (clamp == Clamp::asked && t.high < kInfinity)) SKUA_EACH(y = clamp_high(y, F32::set1(t.high)))
#undef SKUA_EACH
      SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) {
        SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v].store(reinterpret_cast<C*>(rows.c0) + v * L);
        rows.c0 += rows.c_bytes;
        asm("" : "+r"(rows.c0));  // else gcc has an address for each row, on the stack
      }
    }
    if constexpr (widens) if (k < t.k) halves.rest(k, t.k);
    rows.a0 = rows.below;
  }
}
// Whether there was such a tile; widens: A and C are of one type. Of bf16 there is none: rounding to it takes integer instructions, ends by row gained nothing.
template <int MR, int NV, int lines, bool near, bool widens> SKUA_INL bool try_by_row(const GemmTile& t) {
  if (!ends_by_row<NV>(t) || t.c_type == Element::bf16 || (widens && t.c_type != t.halves_type)) return false;
  if (t.c_type == Element::f16) even_by_row<MR, NV, lines, near, widens, Clamp::asked, f16>(t);
  else if constexpr (!widens) {
    if (t.high < kInfinity) even_by_row<MR, NV, lines, near, widens, Clamp::both, float>(t);
    else if (t.low > -kInfinity) even_by_row<MR, NV, lines, near, widens, Clamp::low, float>(t);
    else even_by_row<MR, NV, lines, near, widens, Clamp::none, float>(t);
  }
  return true;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
