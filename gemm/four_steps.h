// Four steps of the depth of AVX2's whole tiles, as written: 12 sums and four more vectors fill the registers, and gcc,
// which unrolls such a loop by itself, moves sums to the stack and back.
// Beside a busy neighbour on the core (the other hardware thread) it is the instructions that count, and a loop that
// turns with every step most of all: 3x32 ran at 70 GFLOP/s there, and runs at 90 by turns of four; alone on the core
// both run at 100 (Zen 3).
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx2)
template <int MR, int NV> constexpr bool kByFour = (MR == 6 && NV == 2) || (MR == 4 && NV == 3) || (MR == 3 && NV == 4);
// A row of B, `d` bytes into it, and the next one.
#define SKUA_B0(d) #d "(%[b])"
#define SKUA_B1(d) #d "(%[b],%[l])"
#define SKUA_LOAD(from, x) "vmovups " from ", %%ymm" #x "\n"
#define SKUA_BROADCAST(from, x) "vbroadcastss " from ", %%ymm" #x "\n"
#define SKUA_SUM(i) "%" #i
#define SKUA_FMA(x, y, sum) "vfmadd231ps %%ymm" #x ", %%ymm" #y ", " SKUA_SUM(sum) "\n"

#define SKUA_ROW_OF_2(a, x, s0, s1) SKUA_BROADCAST(a, x) SKUA_FMA(12, x, s0) SKUA_FMA(13, x, s1)
#define SKUA_STEP_6x2(B, d)                                                                              \
  SKUA_LOAD(B(0), 12) SKUA_LOAD(B(32), 13)                                                               \
  SKUA_ROW_OF_2(d "(%[a])", 14, 0, 1) SKUA_ROW_OF_2(d "(%[a],%[i])", 15, 2, 3)                           \
  SKUA_ROW_OF_2(d "(%[a],%[i],2)", 14, 4, 5) SKUA_ROW_OF_2(d "(%[a],%[j])", 15, 6, 7)                    \
  SKUA_ROW_OF_2(d "(%[a],%[i],4)", 14, 8, 9) SKUA_ROW_OF_2(d "(%[a],%[k])", 15, 10, 11)

#define SKUA_ROW_OF_3(a, s0, s1, s2) \
  SKUA_BROADCAST(a, 15) SKUA_FMA(12, 15, s0) SKUA_FMA(13, 15, s1) SKUA_FMA(14, 15, s2)
#define SKUA_STEP_4x3(B, d)                                                                              \
  SKUA_LOAD(B(0), 12) SKUA_LOAD(B(32), 13) SKUA_LOAD(B(64), 14)                                          \
  SKUA_ROW_OF_3(d "(%[a])", 0, 1, 2) SKUA_ROW_OF_3(d "(%[a],%[i])", 3, 4, 5)                             \
  SKUA_ROW_OF_3(d "(%[a],%[j])", 6, 7, 8) SKUA_ROW_OF_3(d "(%[a],%[k])", 9, 10, 11)

#define SKUA_COLUMN_OF_3(b, s0, s1, s2) SKUA_LOAD(b, 12) SKUA_FMA(12, 13, s0) SKUA_FMA(12, 14, s1) SKUA_FMA(12, 15, s2)
#define SKUA_STEP_3x4(B, d)                                                                              \
  SKUA_BROADCAST(d "(%[a])", 13) SKUA_BROADCAST(d "(%[a],%[i])", 14) SKUA_BROADCAST(d "(%[a],%[j])", 15)  \
  SKUA_COLUMN_OF_3(B(0), 0, 4, 8) SKUA_COLUMN_OF_3(B(32), 1, 5, 9)                                       \
  SKUA_COLUMN_OF_3(B(64), 2, 6, 10) SKUA_COLUMN_OF_3(B(96), 3, 7, 11)

// Two steps: an asm has thirty operands at most, and a sum is two.
#define SKUA_IN(i) "+x"(acc[(i) / NV][(i) % NV].v)
#define SKUA_TWO(step, a0, a1, row)                                                                      \
  asm volatile(step(SKUA_B0, a0) step(SKUA_B1, a1)                                                       \
               : SKUA_IN(0), SKUA_IN(1), SKUA_IN(2), SKUA_IN(3), SKUA_IN(4), SKUA_IN(5),           \
                 SKUA_IN(6), SKUA_IN(7), SKUA_IN(8), SKUA_IN(9), SKUA_IN(10), SKUA_IN(11)          \
               : [a] "r"(a), [i] "r"(i), [j] "r"(j), [k] "r"(k), [b] "r"(row), [l] "r"(l)                 \
               : "xmm12", "xmm13", "xmm14", "xmm15", "memory")
#define SKUA_FOUR(step) SKUA_TWO(step, "0", "4", b); SKUA_TWO(step, "8", "12", third)
// Rows of A: the first at a, three or four in all at i, j and k bytes from there, six at i, 2i, j, 4i and k.
template <int MR, int NV>
SKUA_INL void four_steps(const char* a, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, const float* b, size_t ldb,
                         F32 (&acc)[MR][NV]) {
  const size_t l = ldb * sizeof(float);
  const float* const third = b + 2 * ldb;
  if constexpr (NV == 2) { SKUA_FOUR(SKUA_STEP_6x2); }
  else if constexpr (NV == 3) { SKUA_FOUR(SKUA_STEP_4x3); }
  else { SKUA_FOUR(SKUA_STEP_3x4); }
}
#undef SKUA_IN
#undef SKUA_TWO
#undef SKUA_FOUR
// The words for loads and steps are whole_tile.h's too.
#else
template <int MR, int NV> constexpr bool kByFour = false;
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
