// A step of the depth in tiles of f32, and what is fetched meanwhile. Included by the units of this family.
#pragma once
#include "gemm/ahead.h"
#include "gemm/four_steps.h"
#include "gemm/no_addresses.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Before a loop that is worth four copies: its additions and its branch take turns with multiply-adds on their ports
// (256x256x256: 97% of the peak become 99).
// Clang would load ahead across the copies and spill.
#if defined(__clang__)
#define SKUA_FOUR_TIMES _Pragma("clang loop unroll(disable)")
#else
#define SKUA_FOUR_TIMES _Pragma("GCC unroll 4")
#endif

template <class B> constexpr int kLine = 64 / sizeof(B);                            // elements of a cache line
// of a row of B
template <int NV, class B = float> constexpr int kLines = F32::by_lane ? 0 : (NV * F32::L + kLine<B> - 1) / kLine<B>;
constexpr int kOne = !F32::by_lane;
constexpr float kInfinity = __builtin_inff();
constexpr size_t kLastSteps = 4;  // of tiles that end row by row

// Where a vector of B meets all rows before the next is loaded, and the elements of A are in registers: 3x32 on AVX2, 7
// loads feed 12 multiply-adds. Such a tile serves layers whose rows are near, overlapping windows of a few channels,
// and it asks for nothing ahead but rows that are far, which would cost a tenth of segments so short.
template <int MR, int NV>
constexpr bool kByColumn =
    F32::fused && !F32::by_lane && MR > 1 && MR* NV + NV + 1 > F32::registers&& MR* NV + MR + 1 <= F32::registers;

// One step of the depth.
template <int MR, int NV, int lines, class A, class B>
SKUA_INL void step(const A& a, size_t k, const B* b, const RowAhead& ahead, F32 (&acc)[MR][NV]) {
  ahead.ask<lines>(b);
  if constexpr (kByColumn<MR, NV>) {
    F32 x[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = F32::broadcast(a.at(r, k));
    SKUA_UNROLL for (int r = 0; r < MR; ++r) pin(x[r]);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      F32 w = F32::load(b + v * F32::L);
      pin(w);  // else gcc loads it once per row
      SKUA_UNROLL for (int r = 0; r < MR; ++r) acc[r][v] = fma(x[r], w, acc[r][v]);
    }
    return;
  }
  if constexpr (!F32::fused && !F32::by_lane && F32::L > 1 && MR > 1 && MR * NV + NV + 2 > F32::registers) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const F32 x = F32::broadcast(a.at(r, k));
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(x, F32::load(b + v * F32::L), acc[r][v]);
      // a load for each row takes the place of the copy that a product needs; gcc would keep B and spill sums
      asm("" : "+r"(b));
    }
    return;
  }
  F32 w[NV];
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    w[v] = F32::load(b + v * F32::L);
    if constexpr (MR > 1 && MR * NV + NV + 1 <= F32::registers) pin(w[v]);  // else gcc reads B from memory once per row
  }
  SKUA_UNROLL for (int r = 0; r < MR; ++r) {
    // no register for the next row's x: clang would load it early and spill
    constexpr bool full = MR * NV + NV + 1 == F32::registers;
    F32 x = F32::broadcast(a.at(r, k));
    if constexpr (full) pin(x);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(x, w[v], acc[r][v]);
    if constexpr (full) SKUA_UNROLL for (int v = 0; v < NV; ++v) pin(acc[r][v]);
  }
}

#if defined(__aarch64__) && !defined(__clang__)
// Stays where it is written: gcc moves a sum of 4x12 to another register and back with every turn, which in the model
// of the X1 costs a quarter of the rate.
template <int i>
SKUA_INL void add_lane(F32& acc, F32 b, F32 a) {
  asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(acc.v) : "w"(b.v), "w"(a.v), "i"(i));
}
#elif defined(SKUA_ISA_neon32) && !defined(__clang__)
// Likewise: gcc loads rows of A into registers that no lane can be taken from, and moves them through the stack.
template <int i> SKUA_INL void add_lane(F32& acc, F32 b, F32 a) {
  const float32x2_t half = i < 2 ? vget_low_f32(a.v) : vget_high_f32(a.v);
  asm volatile("vmla.f32 %q0, %q1, %P2[%c3]" : "+w"(acc.v) : "w"(b.v), "t"(half), "i"(i & 1));
}
#elif defined(__aarch64__) || defined(__arm__)
template <int i> SKUA_INL void add_lane(F32& acc, F32 b, F32 a) { acc = fma_lane<i>(acc, b, a); }
#endif

// Steps k..depth; with each, `lines` lines further on in B are asked for.
template <int MR, int NV, int lines, class A, class B>
SKUA_INL void steps(A& a, const B* b, size_t ldb, size_t k, size_t depth, const RowAhead& ahead,
                    F32 (&acc)[MR][NV]) {
  size_t left = depth - k;
  constexpr bool by_four = A::template by_four<NV> && sizeof(B) == sizeof(float);
  if constexpr (by_four) {
    for (; left >= 4; left -= 4, k += 4, b += 4 * ldb) {
      if (lines && ahead.bytes) SKUA_UNROLL for (int i = 0; i < 4; ++i) ahead.ask<1>(b + size_t(i) * ldb);
      a.four(b, ldb, acc);
    }
  }
  const auto once = [&]() __attribute__((always_inline)) {
    step<MR, NV, lines>(a, k, b, ahead, acc);
    a.step();
    ++k;
    b += ldb;
    --left;
    if constexpr (A::even && NV != 3) no_addresses<MR * NV>();  // 9x48 loses by it
  };
  if constexpr (NV > 1 && MR * NV + NV + 5 >= F32::registers && lines <= 1 && !by_four) {
    SKUA_FOUR_TIMES while (left) once();
  } else {
    while (left) once();
  }
}

#if defined(SKUA_ISA_avx512)
template <int steps, int MR, class Halves>
SKUA_INL void narrow_steps(Halves& a, const float*& b, size_t ldb, F32 (&acc)[MR][1]) {
  SKUA_UNROLL for (int i = 0; i < steps; ++i, b += ldb) {
    const F32 w = F32::load(b);
    // As written: gcc would put the last sum of a step where w was and move it back.
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      asm("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(acc[r][0].v) : "m"(*a.at(r, size_t(i))), "v"(w.v));
    a.ask(i);
  }
  a.move(steps);
}
#endif

// A run of tiles fetches lines of the next panel of B, `first` bytes further on (0: none), with groups as far apart as
// they can be: in the first few they would be asked for faster than memory gives them.
template <int lines> struct LinesAhead {
  size_t groups, spread, due;
  ptrdiff_t first, line = 0;
  SKUA_INL LinesAhead(size_t count, ptrdiff_t from)
      : groups(count), spread(count < size_t(lines) ? count : size_t(lines)), due(count), first(from) {}
  SKUA_INL ptrdiff_t next() {
    if (!first) return 0;
    ptrdiff_t now = 0;
    if (due >= groups) {
      now = first + line;
      line += 64;
      due -= groups;
    }
    due += spread;
    return now;
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
