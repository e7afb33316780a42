// The rows of tiles one below the other, beyond the ends of lines: what even[] of a table with `lines` walks over
// (GemmTile::line). A tile that lies in two lines costs a few instructions.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// A: rows of A are read where they are; packed ones are panels, which know no lines.
template <int MR, bool A> struct EvenLines {
  const void *a[MR], *residual[MR];
  void* c[MR];
  const char *next_a, *next_residual;
  char* next_c;
  ptrdiff_t a_step, a_gap, c_step, c_gap, residual_step, residual_gap;
  size_t left, line;  // rows of this line, and of those that follow
  explicit SKUA_INL EvenLines(const GemmTile& t, unsigned a_bytes) {
    const ptrdiff_t c_bytes = element_bytes(t.c_type);
    next_a = static_cast<const char*>(t.a[0]);
    next_c = static_cast<char*>(t.c[0]);
    next_residual = t.residual ? static_cast<const char*>(t.residual[0]) : nullptr;
    a_step = t.a_step * ptrdiff_t(a_bytes), a_gap = t.a_gap * ptrdiff_t(a_bytes);
    c_step = t.c_step * c_bytes, c_gap = t.c_gap * c_bytes;
    residual_step = t.residual ? t.residual_step * c_bytes : 0,
    residual_gap = t.residual ? t.residual_gap * c_bytes : 0;
    line = t.line;
    left = line ? t.in_line : SIZE_MAX;
  }
  SKUA_INL void point(GemmTile& one) {
    if (A) one.a = a;
    one.c = c;
    if (next_residual) one.residual = residual;
  }
  // Between stores of four pointers, which GCC 12 would put into a vector by way of the stack on AArch32.
  static SKUA_INL void alone() {
#if defined(__arm__)
    if constexpr (MR % 4 == 0) asm volatile("" : : : "memory");
#endif
  }
  SKUA_INL void tile() {
    const char* x = next_a;
    char* y = next_c;
    if (left > size_t(MR)) {
      left -= MR;
      const ptrdiff_t to_c = c_step, to_a = a_step;
      SKUA_UNROLL for (int r = 0; r < MR; ++r, y += to_c) c[r] = y, alone();
      if (A) SKUA_UNROLL for (int r = 0; r < MR; ++r, x += to_a) a[r] = x, alone();
      if (next_residual)
        SKUA_UNROLL for (int r = 0; r < MR; ++r, next_residual += residual_step)
          residual[r] = next_residual;
    } else {
      for (int r = 0; r < MR; ++r) {
        c[r] = y;
        y += c_step;
        if (A) a[r] = x, x += a_step;
        if (next_residual) residual[r] = next_residual, next_residual += residual_step;
        if (--left) continue;
        left = line;
        y += c_gap;
        if (A) x += a_gap;
        if (next_residual) next_residual += residual_gap;
      }
    }
    next_a = x;
    next_c = y;
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
