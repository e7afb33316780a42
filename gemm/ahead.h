// Which lines of B few rows ask for while they read others. Included by the kernel units.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// A core runs some twenty lines ahead in a page of 4096 bytes, whatever it is asked for there, while memory answers
// more (docs/cores.md). So lines of four pages are asked for in turn: of the next four while these four are read.
//
//   address  ...| 13 12 | 11 10  9  8 | 7 6 | 5 ... 0    of the line that is read
//            ...|  7  6 | 13 12 11 10 | 9 8 | 5 ... 0    of the one that is asked for, four pages on
constexpr size_t kPage = 4096, kPages = 4 * kPage;
constexpr bool kByPages = F32::L == 16;  // where lines are that long, no more
struct RowAhead {
#if defined(__clang__)
  static constexpr bool kOneRegister = true;  // for both, or clang has one of them on the stack
#else
  static constexpr bool kOneRegister = false;
#endif
  // From a row of B to the one that is asked for, whole lines; 1: of pages, which go to L1. Where it is one register 2
  // more: to L1.
  ptrdiff_t bytes;
  bool near;  // to L1, else to L2
  SKUA_INL RowAhead(ptrdiff_t on, bool to_l1, bool pages)
      : bytes(kByPages && pages ? 1 : kOneRegister && to_l1 ? on | 2 : on), near(to_l1) {}
  // of as many lines; any: as was said, else lines to L2, out of no pages
  template <int lines, bool any = (lines > 1)> SKUA_INL void ask(const void* row) const {
    const char* const p = static_cast<const char*>(row);
    if (kByPages && any && (bytes & 1)) {
      const char* const next = p + kPages;
      if constexpr (lines == 4) {  // one of each page
        const uintptr_t at = reinterpret_cast<uintptr_t>(p) % kPages, row_at = at / 256 * 64;
        const char* line = next - at + row_at;
#if defined(__clang__)
        asm("" : "+r"(line));  // else a register for each
#endif
        SKUA_UNROLL for (size_t i = 0; i < 4; ++i) __builtin_prefetch(line + i * kPage);
      } else {
        SKUA_UNROLL for (int i = 0; i < lines; ++i) {
          const char* line = next + i * 64;
          asm("" : "+r"(line));  // else a register for each
          const uintptr_t at = reinterpret_cast<uintptr_t>(line) % kPages;
          __builtin_prefetch(line - at + at / 256 * 64 + at / 64 % 4 * kPage);
        }
      }
    } else if (any && (kOneRegister ? (bytes & 2) != 0 : near)) {
      SKUA_UNROLL for (int i = 0; i < lines; ++i) __builtin_prefetch(p + bytes + i * 64);
    } else {
      SKUA_UNROLL for (int i = 0; i < lines; ++i) __builtin_prefetch(p + bytes + i * 64, 0, 2);
    }
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
