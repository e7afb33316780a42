// The end of a tile whose sums were put down as f32: what GemmTile says is done to them, rounded once to C's type.
// Included by the units of this family.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/hard.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// elsewhere multiply-adds take so long that a pass over C of its own does not show
constexpr bool kSwishes = F32::L >= 8;

// What most products end with; anything else is done an operation at a time.
SKUA_INL bool plain_end(const GemmTile& t) {
  return t.finish && !t.load_c && t.alpha == 1 && t.beta == 0 && !(t.residual && t.residual_after);
}

template <class C, bool residual>
SKUA_INL void finish_plain(const GemmTile& t, const float* sums, size_t step, size_t rows, void* const* c_rows,
                           const void* const* residual_rows) {
  constexpr size_t L = F32::L;
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  const size_t whole = t.n / L * L, tail = t.n - whole;
  for (size_t r = 0; r < rows; ++r, sums += step) {
    C* c = static_cast<C*>(c_rows[r]);
    const C* x = residual ? static_cast<const C*>(residual_rows[r]) : nullptr;
    size_t j = 0;
    for (; j < whole; j += L) {
      F32 y = F32::load(sums + j);
      if (t.bias) y = y + F32::load(t.bias + j);
      if constexpr (residual) y = y + F32::load(x + j);
      clamp_high(clamp_low(y, low), high).store(c + j);
    }
    if (!tail) continue;
    F32 y = F32::load(sums + j);
    if (t.bias) y = y + F32::load(t.bias + j);
    if constexpr (residual) y = y + F32::load_n(x + j, tail);
    clamp_high(clamp_low(y, low), high).store_n(c + j, tail);
  }
}

// Rows of `step` floats of sums. c, residual: pointers of the rows, column 0 of the tile. Not inlined: all tiles of a
// unit share it.
template <class C>
__attribute__((noinline)) void finish_sums_as(const GemmTile& t, const float* sums, size_t step, size_t rows,
                                              void* const* c_rows, const void* const* residual_rows) {
  if (plain_end(t) && !(kSwishes && t.hard_swish))
    return residual_rows ? finish_plain<C, true>(t, sums, step, rows, c_rows, residual_rows)
                         : finish_plain<C, false>(t, sums, step, rows, c_rows, nullptr);
  constexpr size_t L = F32::L;
  const F32 alpha = F32::set1(t.alpha), beta = F32::set1(t.beta), low = F32::set1(t.low), high = F32::set1(t.high);
  for (size_t r = 0; r < rows; ++r, sums += step) {
    C* c = static_cast<C*>(c_rows[r]);
    const C* residual = residual_rows ? static_cast<const C*>(residual_rows[r]) : nullptr;
    for (size_t j = 0; j < t.n; j += L) {
      const size_t n = t.n - j < L ? t.n - j : L;
      F32 y = F32::load(sums + j);
      if (t.load_c) y = y + F32::load_n(c + j, n);
      if (t.finish) {
        if (t.alpha != 1) y = y * alpha;
        if (t.beta != 0) y = fma(beta, F32::load_n(c + j, n), y);
        if (t.bias) y = y + F32::load(t.bias + j);
        if (residual && !t.residual_after) y = y + F32::load_n(residual + j, n);
        y = clamp_high(clamp_low(y, low), high);
        if (kSwishes && t.hard_swish) y = y * up_to_3_by_6(y);
        if (residual && t.residual_after) y = y + F32::load_n(residual + j, n);
      }
      if (n == L) y.store(c + j);
      else y.store_n(c + j, n);
    }
  }
}
SKUA_INL void finish_sums(const GemmTile& t, const float* sums, size_t step, size_t rows, void* const* c,
                          const void* const* residual) {
#ifdef SKUA_TYPE_f16
  if (t.c_type == Element::f16) return finish_sums_as<f16>(t, sums, step, rows, c, residual);
#endif
#ifdef SKUA_TYPE_bf16
  if (t.c_type == Element::bf16) return finish_sums_as<bf16>(t, sums, step, rows, c, residual);
#endif
  finish_sums_as<float>(t, sums, step, rows, c, residual);
}

// Columns [first, first + width) of the only row of `c`, by finish_sums() or, of known types, finish_sums_as().
template <class Finish>
__attribute__((noinline)) void finish_row_part(const GemmTile& t, const Finish& finish, const float* sums, size_t first,
                                               size_t width, void* c, const void* residual) {
  GemmTile part = t;
  part.n = t.n - first < width ? t.n - first : width;
  part.bias = t.bias ? t.bias + first : nullptr;
  const size_t bytes = first * element_bytes(t.c_type);
  c = static_cast<char*>(c) + bytes;
  residual = residual ? static_cast<const char*>(residual) + bytes : nullptr;
  part.residual = residual ? &residual : nullptr;
  finish(part, sums, width, 1, &c, part.residual);
}

// The plain end of sums in registers, of even rows. The last vector has `tail` columns.
struct AllLanes {
  template <class T> SKUA_INL F32 load(const T* p) const { return F32::load(p); }
  template <class T> SKUA_INL void store(F32 x, T* p) const { x.store(p); }
};
struct FirstLanes {
  size_t n;
  template <class T> SKUA_INL F32 load(const T* p) const { return F32::load_n(p, n); }
  template <class T> SKUA_INL void store(F32 x, T* p) const { x.store_n(p, n); }
};
template <class C, class Rows, int MR, int NV>
SKUA_INL void finish_registers(const GemmTile& t, const Rows& rows, F32 (&acc)[MR][NV], size_t tail) {
  constexpr int L = F32::L;
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  // A pass over the registers for each step, as ends in f32: a bound that is none costs as much as one.
#define SKUA_EACH(statement)                   \
  SKUA_UNROLL for (int r = 0; r < MR; ++r)     \
    SKUA_UNROLL for (int v = 0; v < NV; ++v) { \
      F32& y = acc[r][v];                      \
      statement;                               \
    }
  if (t.bias) SKUA_EACH(y = y + F32::load(t.bias + v * L))
  const auto columns = [&](auto column) __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV - 1; ++v) column(v, AllLanes{});
    if (tail == size_t(L)) column(NV - 1, AllLanes{});
    else column(NV - 1, FirstLanes{tail});
  };
  if (t.residual) columns([&](int v, auto lanes) __attribute__((always_inline)) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      acc[r][v] = acc[r][v] + lanes.load(reinterpret_cast<const C*>(rows.residual(r)) + v * L);
  });
  if (t.low > -__builtin_inff()) SKUA_EACH(y = clamp_low(y, low))
  if (t.high < __builtin_inff()) SKUA_EACH(y = clamp_high(y, high))
  if constexpr (kSwishes) if (t.hard_swish) SKUA_EACH(y = y * up_to_3_by_6(y))
#undef SKUA_EACH
  // Row after row: stores to rows 4096 bytes apart, one behind the other, wait for each other's lines (Zen 5:
  // 512x2048x16 of bf16 100 GFLOP/s, so 230).
  const auto store = [&](auto last) __attribute__((always_inline)) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      C* const c = reinterpret_cast<C*>(rows.c(r));
      SKUA_UNROLL for (int v = 0; v < NV - 1; ++v) acc[r][v].store(c + v * L);
      last.store(acc[r][NV - 1], c + (NV - 1) * L);
    }
  };
  if (tail == size_t(L)) store(AllLanes{});
  else store(FirstLanes{tail});
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
