// The end of a tile whose sums are not in the type of C: what GemmTile says is done to them, in f32, and rounded once.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// The usual end of a whole tile: bias and clamp, to the type of A.
[[maybe_unused]] SKUA_INL bool ends_plain(const GemmTile& t, size_t columns, Element type) {
  return t.finish && !t.load_c && t.alpha == 1 && t.beta == 0 && !t.residual && t.c_type == type && t.n == columns;
}
// changes no sum, -0 neither
alignas(16) [[maybe_unused]] const float kNoBias[16] = {-0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
                                                        -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f};

// Vector v of a row of T, of which n columns are there.
template <class T> SKUA_INL F32 columns(const T* row, int v, size_t n) {
  const size_t first = size_t(v) * F32::L;
  return n >= first + F32::L ? F32::load(row + first) : F32::load_n(row + first, n > first ? n - first : 0);
}

// One row, N vectors of it.
template <class T, int N> SKUA_INL void finish_row(const GemmTile& t, T* c, const T* residual, F32 (&y)[N]) {
  constexpr int L = F32::L;
  const size_t n = t.n;
  if (t.load_c) SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + columns(c, v, n);
  if (t.finish) {
    if (t.alpha != 1) {
      const F32 alpha = F32::set1(t.alpha);
      SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] * alpha;
    }
    if (t.beta != 0) {
      const F32 beta = F32::set1(t.beta);
      SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = fma(beta, columns(c, v, n), y[v]);
    }
    if (t.bias) SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + F32::load(t.bias + v * L);
    if (residual && !t.residual_after) SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + columns(residual, v, n);
    const F32 low = F32::set1(t.low), high = F32::set1(t.high);
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = clamp_high(clamp_low(y[v], low), high);
    if (residual && t.residual_after) SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + columns(residual, v, n);
  }
  if (n == size_t(N) * L) {
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v].store(c + v * L);
  } else {
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      if (n >= size_t(v + 1) * L) y[v].store(c + v * L);
      else if (n > size_t(v) * L) y[v].store_n(c + v * L, n - size_t(v) * L);
    }
  }
}

template <class T, int N> SKUA_INL void finish_as(const GemmTile& t, const float* sums, size_t rows) {
  for (size_t r = 0; r < rows; ++r, sums += N * F32::L) {
    F32 y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = F32::load(sums + v * F32::L);
    finish_row(t, static_cast<T*>(t.c[r]), t.residual ? static_cast<const T*>(t.residual[r]) : nullptr, y);
  }
}

// Rows of N vectors each, to f32 or T. Not inlined: what every tile of a width shares.
template <class T, int N>
__attribute__((noinline)) void finish_tile(const GemmTile& t, const float* sums, size_t rows) {
  if (t.c_type == Element::f32) finish_as<float, N>(t, sums, rows);
  else finish_as<T, N>(t, sums, rows);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
