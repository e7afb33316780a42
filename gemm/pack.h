// Packing of B, and the rows of A and C around tiles of another type. Included by the units of this family, inside
// every one of them.
#pragma once
#include "gemm/gemm_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// panel[(k / kr * width + j) * kr + k % kr] = b[k*stride_k + j*stride_n], from S in memory to T in the panel.
template <class S, class T, size_t kr = 1>
void pack(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n, void* to) {
  constexpr size_t L = F32::L;
  const S* b = static_cast<const S*>(from);
  T* panel = static_cast<T*>(to);
  const size_t whole = columns / L * L;
  if constexpr (kr > 1) {
    // Pairs of the depth are words: rows of B are woven, or words transposed where the pairs of a column lie together.
    static_assert(kr == 2 && sizeof(T) == 2);
    auto* words = reinterpret_cast<float*>(panel);
    const size_t pairs = depth / 2, all = pairs + depth % 2, transposed = __is_same(S, T) && stride_k == 1 ? pairs : 0;
    const auto left = [&](size_t j) { return j >= columns ? 0 : columns - j < L ? columns - j : L; };
    for (size_t j = 0; transposed && j < width; j += L)
      for (size_t k = 0, n = left(j); k < transposed; k += L) {
        const size_t count = transposed - k < L ? transposed - k : L;
        F32 block[L];
        const S* row = b + j * stride_n + 2 * k;
        for (size_t i = 0; i < L; ++i, row += stride_n)
          block[i] = i >= n       ? F32::zero()
                     : count == L ? F32::load(reinterpret_cast<const float*>(row))
                                  : F32::load_n(reinterpret_cast<const float*>(row), count);
        transpose(block);
        for (size_t i = 0; i < count; ++i) block[i].store(words + (k + i) * width + j);
      }
    for (size_t k = transposed; k < all; ++k)
      for (size_t j = 0; j < width; j += L) {
        I32 row[2];
        for (size_t i = 0, n = left(j); i < 2; ++i) {
          const S* x = b + (2 * k + i) * stride_k + j * stride_n;
          if (2 * k + i >= depth || !n) {
            row[i] = I32::set1(0);
            continue;
          }
          if constexpr (__is_same(S, T))
            if (stride_n == 1) {
              row[i] = n == L ? load_u16(&x->bits) : load_u16_n(&x->bits, n);
              continue;
            }
          alignas(4 * L) T of[L];
          if (stride_n == 1) F32::load_n(x, n).store(of);
          else
            for (size_t l = 0; l < L; ++l) narrow(l < n ? widen(x[l * stride_n]) : 0.0f, of[l]);
          row[i] = load_u16(&of->bits);
        }
        as_f32(row[0] | shl<16>(row[1])).store(words + k * width + j);
      }
    return;
  }
  if (stride_n == 1) {
    for (size_t k = 0; k < depth; ++k, b += stride_k, panel += width) {
      for (size_t j = 0; j < whole; j += L) F32::load(b + j).store(panel + j);
      for (size_t j = whole; j < width; j += L)
        F32::load_n(b + j, j < columns ? columns - j : 0).store_n(panel + j, width - j < L ? width - j : L);
    }
    return;
  }
  for (size_t j = 0; j < width; j += L) {
    size_t k = 0;
    if (stride_k == 1 && j < whole)
      for (; k + L <= depth; k += L) {
        F32 block[L];  // one pointer for each side: addresses of all rows would not fit into registers
        const S* row = b + j * stride_n + k;
        T* to_row = panel + k * width + j;
        SKUA_UNROLL for (size_t i = 0; i < L; ++i, row += stride_n) block[i] = F32::load(row);
        transpose(block);
        SKUA_UNROLL for (size_t i = 0; i < L; ++i, to_row += width) block[i].store(to_row);
      }
    for (; k < depth; ++k)
      for (size_t i = j; i < j + L && i < width; ++i)
        narrow(i < columns ? widen(b[k * stride_k + i * stride_n]) : 0.0f, panel[k * width + i]);
  }
}

// Rows in memory to rows of f32 and back: what tiles of f32 need around them where memory holds T.
template <class T> void widen_row(size_t n, const void* from, float* to) {
  constexpr size_t L = F32::L;
  const T* x = static_cast<const T*>(from);
  size_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
    SKUA_UNROLL for (size_t j = 0; j < 4 * L; j += L)
      F32::load(x + i + j).store(to + i + j);
  for (; i + L <= n; i += L) F32::load(x + i).store(to + i);
  if (i < n) F32::load_n(x + i, n - i).store_n(to + i, n - i);
}

template <class T>
void widen_rows(size_t rows, size_t n, const void* from, ptrdiff_t from_step, float* to, size_t to_step) {
  if (size_t(from_step) == n && to_step == n) return widen_row<T>(rows * n, from, to);
  for (const T* x = static_cast<const T*>(from); rows-- > 0; x += from_step, to += to_step) widen_row<T>(n, x, to);
}

template <class T, class C> void finish_rows(const GemmFinish& f) {
  constexpr size_t L = F32::L;
  const F32 beta = F32::set1(f.beta), low = F32::set1(f.low), high = F32::set1(f.high);
  for (size_t r = 0; r < f.rows; ++r) {
    float* sums = f.sums + r * f.step;
    const T *c = static_cast<const T*>(f.c[r]), *residual = f.residual ? static_cast<const T*>(f.residual[r]) : nullptr;
    C* to = static_cast<C*>(element_of<C> == element_of<T> ? f.c[r] : sums);
    size_t j = 0;
    if (f.beta == 0 && !residual) {
      if (f.low == -__builtin_inff() && f.high == __builtin_inff())  // a function went before
        for (; j + L <= f.n; j += L) F32::load(sums + j).store(to + j);
      for (; j + L <= f.n; j += L) clamp_high(clamp_low(F32::load(sums + j), low), high).store(to + j);
    }
    for (; j < f.n; j += L) {
      const size_t n = f.n - j < L ? f.n - j : L;
      F32 y = F32::load(sums + j);
      if (f.beta != 0) y = fma(beta, F32::load_n(c + j, n), y);
      if (residual && !f.residual_after) y = y + F32::load_n(residual + j, n);
      y = clamp_high(clamp_low(y, low), high);
      if (residual && f.residual_after) y = y + F32::load_n(residual + j, n);
      if (n == L) y.store(to + j);
      else y.store_n(to + j, n);
    }
  }
}
template <class T>
constexpr GemmRowTable row_table = {widen_row<T>, widen_rows<T>, finish_rows<T, T>, finish_rows<T, float>};
template <class T> const GemmRowTable& rows_of() { return row_table<T>; }

#define SKUA_PACK_KERNEL(from, from_type, to, to_type, kr)                                              \
  {"gemm_pack_" #from "_" #to "_" #kr "_" SKUA_STRING(SKUA_ISA), "gemm",                                \
   "panels of B: rows copied, or blocks transposed in registers", KernelKind::gemm_pack, Isa::SKUA_ISA, \
   pack_variant(Element::to, kr), 0, 0, F32::L,                                                         \
   reinterpret_cast<AnyCode>(static_cast<GemmPackFn>(pack<from_type, to_type, kr>)), Element::from},

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
