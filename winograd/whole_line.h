// AVX2's products of a line of 16 channels as written: rows of V and steps of U are numbers in addresses. gcc moves
// pointers with every step: of five rows it took 352 instructions for floats, here 301, and 271 for bytes (two channels
// a step), here 231; beside a busy neighbour on the core it is the instructions that count.
//
//   multiply_line(x, u, ahead, acc)   acc[r][v] += V[r][k] * U[k][v] for the 16 channels from x on, three rows and
//                                     more, two vectors of columns; what is `ahead` bytes behind U is asked for
//
// Registers: sums wherever the compiler has them; ymm12, 13 U, 14 V, 15 a product.
#pragma once
#include "simd/simd.h"
#include "winograd/winograd_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx2)
template <int MR, int NV> constexpr bool kByLine = MR > 2 && NV == 2;
static_assert(kWinogradLine == 16);
// What a product asks for, a line after the other: what it needs 4 KiB later. Where four to six parts of tiles take
// turns with the same U, its first part alone would wait for memory and the others leave it idle: there each asks for
// its share of the U that follows, a line in turn so that no more are on their way than the core can wait for, and else
// for the line that is next (Zen 3, 25 tiles of 28x28x256-256 with a stride of 2: 1.2 to 1.4 times as fast; two and
// three parts are bound by memory all the same, more keep L1 and hide the first).
class Ahead {
 public:
  // row: bytes of a group for one channel
  Ahead(const WinogradProduct& p, size_t row) : next_u_(p.groups * p.k * row), parts_(p.parts), until_(p.part) {}
  SKUA_INL size_t next() {
    if (parts_ < 4 || parts_ > 6) return kWinogradAhead;
    const bool now = until_ == 0;
    until_ = (now ? parts_ : until_) - 1;
    return now ? next_u_ : 1024;
  }

 private:
  size_t next_u_, parts_, until_;
};
#define SKUA_FLOATS(x, s, t)            \
  "vbroadcastss " x "(%[x]), %%ymm14\n" \
  "vfmadd231ps %%ymm12, %%ymm14, %" #s "\n vfmadd231ps %%ymm13, %%ymm14, %" #t "\n"
#define SKUA_WORDS(x, s, t)                                                                                       \
  "vpbroadcastd " x "(%[x]), %%ymm14\n vpmaddwd %%ymm12, %%ymm14, %%ymm15\n vpmaddwd %%ymm13, %%ymm14, %%ymm14\n" \
  "vpaddd %%ymm15, %" #s ", %" #s "\n vpaddd %%ymm14, %" #t ", %" #t "\n"
// Rows are `line` bytes apart.
#define SKUA_ROWS_3(row, line, i) row("4*" #i, 0, 1) row(#line "+4*" #i, 2, 3) row("2*" #line "+4*" #i, 4, 5)
#define SKUA_ROWS_4(row, line, i) SKUA_ROWS_3(row, line, i) row("3*" #line "+4*" #i, 6, 7)
#define SKUA_ROWS_5(row, line, i) SKUA_ROWS_4(row, line, i) row("4*" #line "+4*" #i, 8, 9)
#define SKUA_ROWS_6(row, line, i) SKUA_ROWS_5(row, line, i) row("5*" #line "+4*" #i, 10, 11)
#define SKUA_STEP(rows, row, line, i)     \
  "prefetcht0 64*" #i "(%[u],%[ahead])\n" \
  "vmovdqu 64*" #i "(%[u]), %%ymm12\n vmovdqu 32+64*" #i "(%[u]), %%ymm13\n" rows(row, line, i)
#define SKUA_STEPS_8(rows, row, line)                         \
  SKUA_STEP(rows, row, line, 0) SKUA_STEP(rows, row, line, 1) \
  SKUA_STEP(rows, row, line, 2) SKUA_STEP(rows, row, line, 3) \
  SKUA_STEP(rows, row, line, 4) SKUA_STEP(rows, row, line, 5) \
  SKUA_STEP(rows, row, line, 6) SKUA_STEP(rows, row, line, 7)
#define SKUA_STEPS_16(rows, row, line)                          \
  SKUA_STEPS_8(rows, row, line)                                 \
  SKUA_STEP(rows, row, line, 8) SKUA_STEP(rows, row, line, 9)   \
  SKUA_STEP(rows, row, line, 10) SKUA_STEP(rows, row, line, 11) \
  SKUA_STEP(rows, row, line, 12) SKUA_STEP(rows, row, line, 13) \
  SKUA_STEP(rows, row, line, 14) SKUA_STEP(rows, row, line, 15)
#define SKUA_SUMS(r) "+x"(acc[r][0].v), "+x"(acc[r][1].v)
#define SKUA_LINE(text, ...)                                \
  asm volatile(text                                         \
               : __VA_ARGS__                                \
               : [x] "r"(x), [u] "r"(u), [ahead] "r"(ahead) \
               : "xmm12", "xmm13", "xmm14", "xmm15", "memory")
#define SKUA_WHOLE_LINE(T, V, steps, row, line)                                                                       \
  template <int MR, int NV> SKUA_INL void multiply_line(const T* x, const T* u, size_t ahead, V (&acc)[MR][NV]) {     \
    static_assert(kByLine<MR, NV> && MR <= 6);                                                                        \
    if constexpr (MR == 3) SKUA_LINE(steps(SKUA_ROWS_3, row, line), SKUA_SUMS(0), SKUA_SUMS(1), SKUA_SUMS(2));        \
    else if constexpr (MR == 4)                                                                                       \
      SKUA_LINE(steps(SKUA_ROWS_4, row, line), SKUA_SUMS(0), SKUA_SUMS(1), SKUA_SUMS(2), SKUA_SUMS(3));               \
    else if constexpr (MR == 5)                                                                                       \
      SKUA_LINE(steps(SKUA_ROWS_5, row, line), SKUA_SUMS(0), SKUA_SUMS(1), SKUA_SUMS(2), SKUA_SUMS(3), SKUA_SUMS(4)); \
    else                                                                                                              \
      SKUA_LINE(steps(SKUA_ROWS_6, row, line), SKUA_SUMS(0), SKUA_SUMS(1), SKUA_SUMS(2), SKUA_SUMS(3), SKUA_SUMS(4),  \
                SKUA_SUMS(5));                                                                                        \
  }
SKUA_WHOLE_LINE(float, F32, SKUA_STEPS_16, SKUA_FLOATS, 64)
SKUA_WHOLE_LINE(int16_t, I32, SKUA_STEPS_8, SKUA_WORDS, 32)
#undef SKUA_FLOATS
#undef SKUA_WORDS
#undef SKUA_ROWS_3
#undef SKUA_ROWS_4
#undef SKUA_ROWS_5
#undef SKUA_ROWS_6
#undef SKUA_STEP
#undef SKUA_STEPS_8
#undef SKUA_STEPS_16
#undef SKUA_SUMS
#undef SKUA_LINE
#undef SKUA_WHOLE_LINE
#else
template <int MR, int NV> constexpr bool kByLine = false;
struct Ahead {
  Ahead(const WinogradProduct&, size_t) {}
  size_t next() { return 0; }
};
template <int MR, int NV, class T, class V> SKUA_INL void multiply_line(const T*, const T*, size_t, V (&)[MR][NV]) {}
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
