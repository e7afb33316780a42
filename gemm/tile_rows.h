// Where the rows of an f32 tile are: of A, of C and of the residual.
#pragma once
#include "gemm/four_steps.h"
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Scattered: a pointer each; with `fetch` the rows of the next tile are asked for in time, as Even does.
template <bool fetch> struct Scattered {
  static constexpr bool even = false;
  const void* const* a;
  void* const* c_rows;
  const void* const* residual_rows;
  const float* next;
  SKUA_INL float* c(int r) const { return static_cast<float*>(c_rows[r]); }
  SKUA_INL const float* residual(int r) const { return static_cast<const float*>(residual_rows[r]); }
#if defined(__x86_64__)
  template <int MR> struct A {
    static constexpr bool even = false;
    template <int NV> static constexpr bool by_four = kByFour<MR, NV> && MR != 6;  // that has fewer registers than rows
    const char *first, *ahead;
    ptrdiff_t to[MR];  // from the first row: a step then moves one pointer
    SKUA_INL A(const Scattered& s, ptrdiff_t segment)
        : first(static_cast<const char*>(s.a[0]) + segment * ptrdiff_t(sizeof(float))),
          ahead(fetch ? reinterpret_cast<const char*>(s.next + segment) : nullptr) {
      SKUA_UNROLL for (int r = 1; r < MR; ++r)
        to[r] = reinterpret_cast<intptr_t>(s.a[r]) - reinterpret_cast<intptr_t>(s.a[0]);
    }
    SKUA_INL const float* at(int r, size_t) const { return reinterpret_cast<const float*>(r ? first + to[r] : first); }
    SKUA_INL void step() {
      SKUA_UNROLL for (int r = 1; r < MR; ++r) asm("" : "+r"(to[r]));  // else the compiler moves a pointer per row
      first += sizeof(float);
      if constexpr (!fetch) return;
      __builtin_prefetch(ahead);
      ahead += MR * sizeof(float);
    }
    template <int NV> SKUA_INL void four(const float* b, size_t ldb, F32 (&acc)[MR][NV]) {
      four_steps<MR, NV>(first, to[1], to[2], to[MR - 1], b, ldb, acc);
      first += 4 * sizeof(float);
      if constexpr (!fetch) return;
      SKUA_UNROLL for (int i = 0; i < (MR + 3) / 4; ++i) __builtin_prefetch(ahead + i * 64);
      ahead += 4 * MR * sizeof(float);
    }
  };
#else
  template <int MR> struct A {
    static constexpr bool even = false;
    template <int NV> static constexpr bool by_four = false;
    const float* row[MR];
    SKUA_INL A(const Scattered& s, ptrdiff_t segment) {
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        row[r] = static_cast<const float*>(s.a[r]) + segment;
    }
    SKUA_INL const float* at(int r, size_t k) const { return row[r] + k; }
    SKUA_INL void step() {}
  };
#endif
};
// Even: a fixed step from one to the next; x86-64 then reaches eight rows from one pointer and the steps 1, 3, 5 and 7
// (scaled by 1, 2, 4), so that 14 rows need no pointers from memory.
// Without `fetch` nothing is asked for: the rows below are near.
template <bool fetch> struct EvenRows {
  static constexpr bool even = true;
  const float* a0;
  char* c0;
  const char* residual0;
  const char* next;    // what is fetched meanwhile; NULL = the rows below
  const float* below;  // the first of them
  ptrdiff_t a_step, c_bytes, residual_bytes;  // from a row to the next
  SKUA_INL float* c(int r) const { return reinterpret_cast<float*>(c0 + r * c_bytes); }
  SKUA_INL const float* residual(int r) const { return reinterpret_cast<const float*>(residual0 + r * residual_bytes); }
#if defined(__x86_64__)
  template <int MR> struct A {
    static constexpr bool even = true;
    template <int NV> static constexpr bool by_four = kByFour<MR, NV>;
    const char* block[(MR + 7) / 8];
    const char* ahead;  // in what comes next; a step takes MR floats of it
    ptrdiff_t s1, s3, s5, s7;
    SKUA_INL A(const EvenRows& e, ptrdiff_t segment)
        : ahead(!fetch ? nullptr : e.next ? e.next : reinterpret_cast<const char*>(e.below + segment)),
          s1(e.a_step * ptrdiff_t(sizeof(float))), s3(3 * s1), s5(5 * s1), s7(7 * s1) {
      SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i)
        block[i] = reinterpret_cast<const char*>(e.a0 + segment + i * 8 * e.a_step);
    }
    SKUA_INL const float* at(int r, size_t) const {
      const ptrdiff_t s = r & 1          ? ((r & 7) == 1   ? s1
                                            : (r & 7) == 3 ? s3
                                            : (r & 7) == 5 ? s5
                                                           : s7)
                          : (r & 7) == 0 ? 0
                          : (r & 7) == 6 ? s3 * 2
                                         : s1 * (r & 7);
      return reinterpret_cast<const float*>(block[r >> 3] + s);
    }
    SKUA_INL void step() {
      asm("" : "+r"(s1), "+r"(s3));  // else the compiler multiplies them ahead and keeps the products on the stack
      if constexpr (MR > 5) asm("" : "+r"(s5));
      if constexpr (MR > 7) asm("" : "+r"(s7));
      SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] += sizeof(float);
      if constexpr (!fetch) return;
      __builtin_prefetch(ahead);
      ahead += MR * sizeof(float);
    }
    template <int NV> SKUA_INL void four(const float* b, size_t ldb, F32 (&acc)[MR][NV]) {
      if constexpr (MR == 6) four_steps<MR, NV>(block[0], s1, s3, s5, b, ldb, acc);
      else four_steps<MR, NV>(block[0], s1, 2 * s1, s3, b, ldb, acc);
      block[0] += 4 * sizeof(float);
      if constexpr (!fetch) return;
      SKUA_UNROLL for (int i = 0; i < (MR + 3) / 4; ++i) __builtin_prefetch(ahead + i * 64);
      ahead += 4 * MR * sizeof(float);
    }
  };
  // The same for tiles of one vector of columns, whose multiply-adds read A themselves: with an index each is two
  // operations for the core, and those are what the loop waits for. So half of the rows have a pointer, and a few steps
  // share its moves.
  template <int MR> struct Halves {
    static constexpr int kHalf = (MR + 1) / 2;
    const char* row[kHalf];
    const char* ahead;
    ptrdiff_t half;
    SKUA_INL Halves(const EvenRows& e, ptrdiff_t segment)
        : ahead(!fetch ? nullptr : e.next ? e.next : reinterpret_cast<const char*>(e.below + segment)),
          half(kHalf * e.a_step * ptrdiff_t(sizeof(float))) {
      SKUA_UNROLL for (int i = 0; i < kHalf; ++i) row[i] = reinterpret_cast<const char*>(e.a0 + segment + i * e.a_step);
    }
    SKUA_INL const float* at(int r, size_t k) const {
      return reinterpret_cast<const float*>((r < kHalf ? row[r] : row[r - kHalf] + half) + k * sizeof(float));
    }
    SKUA_INL void ask(int step) {
      asm("" : "+r"(half));  // else the compiler keeps sums with it for the next step, on the stack
      if constexpr (fetch) __builtin_prefetch(ahead + step * MR * int(sizeof(float)));
    }
    SKUA_INL void move(int steps) {
      SKUA_UNROLL for (int i = 0; i < kHalf; ++i) {
        row[i] += steps * int(sizeof(float));
        asm("" : "+r"(row[i]));  // else the compiler finds an index that they share
      }
      if constexpr (fetch) ahead += steps * MR * int(sizeof(float));
    }
  };
#else
  template <int MR> struct A {
    static constexpr bool even = true;
    template <int NV> static constexpr bool by_four = false;
    const float* row[MR];
    SKUA_INL A(const EvenRows& e, ptrdiff_t segment) {
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        row[r] = e.a0 + segment + r * e.a_step;
    }
    SKUA_INL const float* at(int r, size_t k) const { return row[r] + k; }
    SKUA_INL void step() {}
  };
#endif
};

// Where tiles have many rows, lines end in few of them; shorter vectors would need more registers for the pointers than
// there are.
constexpr bool kTakesLines = F32::L >= 8;

// From tile to tile of a run, across the ends of lines.
template <class Even> struct Lines {
  const GemmTile& t;
  const ptrdiff_t size, residual_gap;
  Even rows;
  size_t left;  // rows of this line
  SKUA_INL explicit Lines(const GemmTile& tile)
      : t(tile),
        size(ptrdiff_t(element_bytes(t.c_type))),
        residual_gap(t.residual ? t.residual_gap * size : 0),
        rows{static_cast<const float*>(t.a[0]),
             static_cast<char*>(t.c[0]),
             static_cast<const char*>(t.residual ? t.residual[0] : nullptr),
             nullptr,
             nullptr,
             t.a_step,
             t.c_step * size,
             t.residual ? t.residual_step * size : 0},
        left(t.line ? t.in_line : SIZE_MAX) {}
  SKUA_INL void go_on(int count) {
    const bool ends = (left -= size_t(count)) == 0;
    rows.a0 += count * rows.a_step + (ends ? t.a_gap : 0);
    rows.c0 += count * rows.c_bytes + (ends ? t.c_gap * size : 0);
    rows.residual0 += count * rows.residual_bytes + (ends ? residual_gap : 0);
    if (ends) left = t.line;
  }
  // The rows of a tile that lie in two lines or more.
  template <int MR> struct Pointers {
    const void *a[MR], *residual[MR];
    void* c[MR];
    SKUA_INL explicit Pointers(Lines& lines) {
      for (int r = 0; r < MR; ++r, lines.go_on(1))
        a[r] = lines.rows.a0, c[r] = lines.rows.c0, residual[r] = lines.rows.residual0;
    }
  };
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
