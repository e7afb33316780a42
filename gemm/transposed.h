// A few rows times a B that is an input and lies transposed, [n][k], as keys do in attention. Neither is packed: an
// element is a product of two rows, summed lane by lane, and the sums of L lanes of L elements become one vector.
//
//   acc[j] += a[k...k + L) * b[j][k...k + L)     L rows of B for MR = 1: with loads of B alone, as fast as they come
//   c[j..j + L) = sum_each(acc)
//
// B comes from L2 or beyond for the first rows of A, from L1 for the others if L rows of it fit. What is widened as
// it is loaded is so for two rows of A at once. Included by the units of this family.
#pragma once
#include "gemm/even_rows.h"
#include "gemm/finish.h"
#include "gemm/gemm_kernel.h"
#include "simd/sum_each.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// MR rows by L / MR columns from `first`, a row of B, on.
template <int MR, class T>
__attribute__((noinline)) void dots(const GemmTile& t, const T* const* a, const T* first, float* sums) {
  constexpr int L = F32::L, R = L / MR, sets = L < 8 ? 2 : 1;  // chains enough for the latency of a multiply-add
  Even<R> b(reinterpret_cast<const char*>(first), ptrdiff_t(t.ldb * sizeof(T)));
  F32 acc[sets][L];
  SKUA_UNROLL for (int s = 0; s < sets; ++s) SKUA_UNROLL for (int i = 0; i < L; ++i) acc[s][i] = F32::zero();
  const auto step = [&](int set, size_t at, auto load) __attribute__((always_inline)) {
    F32 x[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = load(a[r] + at);
    SKUA_UNROLL for (int i = 0; i < R; ++i) {
      const F32 w = load(reinterpret_cast<const T*>(b.at(i)));
      SKUA_UNROLL for (int r = 0; r < MR; ++r) acc[set][r * R + i] = fma(x[r], w, acc[set][r * R + i]);
    }
    b.step(L * sizeof(T));
  };
  const auto whole = [](const T* p) __attribute__((always_inline)) { return F32::load(p); };
  size_t at = 0;
  for (; at + sets * L <= t.k; at += sets * L)
    SKUA_UNROLL for (int s = 0; s < sets; ++s) step(s, at + size_t(s * L), whole);
  for (; at + L <= t.k; at += L) step(0, at, whole);
  if (const size_t left = t.k - at)
    step(0, at, [&](const T* p) __attribute__((always_inline)) { return F32::load_n(p, left); });
  SKUA_UNROLL for (int s = 1; s < sets; ++s)
    SKUA_UNROLL for (int i = 0; i < L; ++i)
      acc[0][i] = acc[0][i] + acc[s][i];
  sum_each(acc[0]).store(sums);
}
// The same from column j on, to sums and a row of them further; columns beyond the last one are left out, by those
// before them.
template <int MR, class T>
SKUA_INL void dots_from(const GemmTile& t, const T* const* a, size_t j, float* sums, size_t step) {
  constexpr size_t R = size_t(F32::L / MR);
  const ptrdiff_t begin = t.n - j < R ? ptrdiff_t(t.n) - ptrdiff_t(R) : ptrdiff_t(j);
  const T* const first = static_cast<const T*>(t.b) + begin * ptrdiff_t(t.ldb);
  const size_t before = size_t(ptrdiff_t(j) - begin);
  if (MR == 1 && !before) return dots<MR>(t, a, first, sums);
  alignas(64) float all[F32::L];
  dots<MR>(t, a, first, all);
  for (size_t r = 0; r < size_t(MR); ++r)
    __builtin_memcpy(sums + r * step, all + r * R + before, (R - before) * sizeof(float));
}

template <class T> void transposed(const GemmTile& t) {
  constexpr size_t L = F32::L, kAtOnce = kTransposedColumns;
  static_assert(kAtOnce % L == 0, "whole vectors of columns");
  constexpr int pair = L < 8 || __is_same(T, float) ? 1 : 2;
  alignas(64) float sums[kTransposedRows * kAtOnce];
  GemmTile part = t;
  for (size_t j0 = 0; j0 < t.n; j0 += kAtOnce) {
    part.n = t.n - j0 < kAtOnce ? t.n - j0 : kAtOnce;
    for (size_t j = 0; j < part.n; j += L) {
      const T* const* a = reinterpret_cast<const T* const*>(t.a);
      float* to = sums + j;
      size_t rows = t.rows;
      if constexpr (pair > 1)
        for (; rows >= size_t(pair); rows -= pair, a += pair, to += pair * kAtOnce)
          for (size_t half = 0; half < L && j + half < part.n; half += L / pair)
            dots_from<pair>(t, a, j0 + j + half, to + half, kAtOnce);
      for (; rows; --rows, ++a, to += kAtOnce) dots_from<1>(t, a, j0 + j, to, kAtOnce);
    }
    void* c[kTransposedRows];
    const void* residual[kTransposedRows];
    for (size_t r = 0; r < t.rows; ++r) {
      c[r] = static_cast<char*>(t.c[r]) + j0 * element_bytes(t.c_type);
      if (t.residual) residual[r] = static_cast<const char*>(t.residual[r]) + j0 * element_bytes(t.c_type);
    }
    part.bias = t.bias ? t.bias + j0 : nullptr;
    finish_sums(part, sums, kAtOnce, t.rows, c, t.residual ? residual : nullptr);
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
