// Rows that are a step in bytes apart: x86 reaches eight of them from one pointer and the steps 1, 3, 5 and 7.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <int MR> struct Even {
  static constexpr bool even = true, flips = false;
  const char* block[(MR + 7) / 8];
  ptrdiff_t s1, s3, s5, s7;
  SKUA_INL Even(const char* first, ptrdiff_t bytes) : s1(bytes), s3(3 * bytes), s5(5 * bytes), s7(7 * bytes) {
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] = first + i * 8 * bytes;
  }
  SKUA_INL Even(const GemmTile& t, size_t row, ptrdiff_t segment)
      : Even(static_cast<const char*>(t.a[0]) + ptrdiff_t(row) * t.a_step + segment, t.a_step) {}
  SKUA_INL const char* at(int r) const {
    return block[r >> 3] + (r & 1          ? ((r & 7) == 1   ? s1
                                              : (r & 7) == 3 ? s3
                                              : (r & 7) == 5 ? s5
                                                             : s7)
                            : (r & 7) == 0 ? 0
                            : (r & 7) == 6 ? s3 * 2
                                           : s1 * (r & 7));
  }
  SKUA_INL void step(int bytes) {
    // else the compiler multiplies them ahead and keeps the products on the stack
    if constexpr (MR > 1) asm("" : "+r"(s1));
    if constexpr (MR > 3) asm("" : "+r"(s3));
    if constexpr (MR > 5) asm("" : "+r"(s5));
    if constexpr (MR > 7) asm("" : "+r"(s7));
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] += bytes;
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
