// The end of a tile whose sums were put down as f32: what GemmTile says is done to them, rounded once to C's type. Included by the units of this family.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Rows of `step` floats of sums. c, residual: pointers of the rows, column 0 of the tile. Not inlined: all tiles of a unit share it.
template <class C> __attribute__((noinline)) void finish_sums_as(const GemmTile& t, const float* sums, size_t step, size_t rows, void* const* c_rows, const void* const* residual_rows) {
  constexpr size_t L = F32::L;
  const F32 alpha = F32::set1(t.alpha), beta = F32::set1(t.beta), low = F32::set1(t.low), high = F32::set1(t.high);
  const bool plain = t.finish && !t.load_c && t.alpha == 1 && t.beta == 0 && !residual_rows;
  for (size_t r = 0; r < rows; ++r, sums += step) {
    C* c = static_cast<C*>(c_rows[r]);
    const C* residual = residual_rows ? static_cast<const C*>(residual_rows[r]) : nullptr;
    size_t j = 0;
    if (plain && t.bias)
      for (; j + L <= t.n; j += L) clamp_high(clamp_low(F32::load(sums + j) + F32::load(t.bias + j), low), high).store(c + j);
    for (; j < t.n; j += L) {
      const size_t n = t.n - j < L ? t.n - j : L;
      F32 y = F32::load(sums + j);
      if (t.load_c) y = y + F32::load_n(c + j, n);
      if (t.finish) {
        if (t.alpha != 1) y = y * alpha;
        if (t.beta != 0) y = fma(beta, F32::load_n(c + j, n), y);
        if (t.bias) y = y + F32::load(t.bias + j);
        if (residual && !t.residual_after) y = y + F32::load_n(residual + j, n);
        y = clamp_high(clamp_low(y, low), high);
        if (residual && t.residual_after) y = y + F32::load_n(residual + j, n);
      }
      if (n == L) y.store(c + j);
      else y.store_n(c + j, n);
    }
  }
}
SKUA_INL void finish_sums(const GemmTile& t, const float* sums, size_t step, size_t rows, void* const* c, const void* const* residual) {
#ifdef SKUA_TYPE_f16
  if (t.c_type == Element::f16) return finish_sums_as<f16>(t, sums, step, rows, c, residual);
#endif
#ifdef SKUA_TYPE_bf16
  if (t.c_type == Element::bf16) return finish_sums_as<bf16>(t, sums, step, rows, c, residual);
#endif
  finish_sums_as<float>(t, sums, step, rows, c, residual);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
