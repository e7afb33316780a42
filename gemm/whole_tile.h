// AVX2's tiles of twelve sums as written, from the first product to the last store: what the compiler puts around the
// loop of four_steps.h is a third of the instructions of a tile 16 deep, and beside a busy neighbour on the core (the
// other hardware thread) it is the instructions that count. A product of 3x32 with three segments of nine terms took
// 842 instructions, 513 of them loads and multiply-adds; here it takes 675.
//
// Registers: ymm0-11 sums, row after row; 12-15 elements of A and vectors of B. The last four steps go by row (3x32),
// or by two rows, whose stores complete while the next are multiplied: by_row.h.
#pragma once
#include "gemm/four_steps.h"
#include "gemm/step.h"
#include "gemm/tile_rows.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx2)
alignas(32) constexpr float kNoBias[32] = {
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f,
    // + -0 is nothing, + 0 makes 0 of -0
    -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f, -0.0f};

// What the assembly reads beside its operands, by these offsets.
struct WholeTile {
  size_t segments;           //  0
  size_t fours, ones;        //  8 16  steps of a segment, by four and by one; four more of the last one are the
                             //        tile's end
  ptrdiff_t a_jump, b_jump;  // 24 32  bytes from the end of a segment to the next
  float low, high;           // 40 44
  const float* bias;         // 48
  ptrdiff_t c_step;          // 56     bytes
  const char* residual;      // 64     of this tile; NULL = none
  ptrdiff_t residual_step;   // 72     bytes
};

// Of tiles that end by row: C of f32, at most a residual before the clamp, segments as far from each other as the first
// two are.
inline bool is_whole(const GemmTile& t) {
  if (t.halves || t.c_type != Element::f32 || t.hard_swish || (t.residual && t.residual_after)) return false;
  const GemmSegment* const s = t.segments;
  for (size_t i = 2; i < t.segment_count; ++i)
    if (s[i].a - s[i - 1].a != s[1].a - s[0].a || s[i].b - s[i - 1].b != s[1].b - s[0].b) return false;
  return true;
}

#define SKUA_B2(d) #d "(%[b],%[l],2)"
#define SKUA_B3(d) #d "(%[b],%[l3])"
#undef SKUA_SUM
#define SKUA_SUM(i) "%%ymm" #i
#define SKUA_ZERO(i) "vxorps %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n"

// %[q] counts steps, %[n] segments.
#define SKUA_DEPTH(step, asks)                                                                                        \
  SKUA_ZERO(0) SKUA_ZERO(1) SKUA_ZERO(2) SKUA_ZERO(3) SKUA_ZERO(4) SKUA_ZERO(5)                                       \
  SKUA_ZERO(6) SKUA_ZERO(7) SKUA_ZERO(8) SKUA_ZERO(9) SKUA_ZERO(10) SKUA_ZERO(11)                                     \
  "mov (%[p]), %[n]\n"                                                                                                \
  "1: mov 8(%[p]), %[q]\n"                                                                                            \
  "cmp $2, %[n]\n sbb $0, %[q]\n jz 3f\n" /* of the last one a turn less */                                           \
  ".p2align 5\n"                                                                                                      \
  "2:" step(SKUA_B0, "0") step(SKUA_B1, "4") step(SKUA_B2, "8") step(SKUA_B3, "12") asks                              \
  "add $16, %[a]\n lea (%[b],%[l],4), %[b]\n dec %[q]\n jnz 2b\n"                                                     \
  "3: mov 16(%[p]), %[q]\n test %[q], %[q]\n jz 5f\n"                                                                 \
  "4:" step(SKUA_B0, "0") "add $4, %[a]\n add %[l], %[b]\n dec %[q]\n jnz 4b\n"                                       \
  "5: dec %[n]\n jz 6f\n add 24(%[p]), %[a]\n add 32(%[p]), %[b]\n jmp 1b\n"                                          \
  "6: mov 48(%[p]), %[q]\n mov 64(%[p]), %[n]\n"
#define SKUA_ASK_A_1 "prefetcht0 (%[ahead])\n add $%c[bytes], %[ahead]\n"
#define SKUA_ASK_A_2 "prefetcht0 (%[ahead])\n prefetcht0 64(%[ahead])\n add $%c[bytes], %[ahead]\n"
#define SKUA_ASK_B                                                                                                    \
  "prefetcht1 (%[b],%[panel])\n add %[l], %[panel]\n prefetcht1 (%[b],%[panel])\n add %[l], %[panel]\n"               \
  "prefetcht1 (%[b],%[panel])\n add %[l], %[panel]\n prefetcht1 (%[b],%[panel])\n sub %[l3], %[panel]\n"

// Ends of rows: %[q] is the bias, %[n] the residual.
#define SKUA_FMA_B(b, x, s) "vfmadd231ps " b ", %%ymm" #x ", " SKUA_SUM(s) "\n"
#define SKUA_ADD(from, d, s) "vaddps " #d "(%[" #from "]), " SKUA_SUM(s) ", " SKUA_SUM(s) "\n"
#define SKUA_LOW(low, s) "vmaxps " SKUA_SUM(s) ", %%ymm" #low ", " SKUA_SUM(s) "\n" /* this order passes NaN */
#define SKUA_HIGH(high, s) "vminps " SKUA_SUM(s) ", %%ymm" #high ", " SKUA_SUM(s) "\n"
#define SKUA_STORE(d, s) "vmovups " SKUA_SUM(s) ", " #d "(%[c])\n"
#define SKUA_NEXT_C "add 56(%[p]), %[c]\n"
#define SKUA_NEXT_RESIDUAL "add 72(%[p]), %[n]\n"
#define SKUA_IF_RESIDUAL(...) "test %[n], %[n]\n jz 7f\n" __VA_ARGS__ "7:\n"

// A row of four vectors.
#define SKUA_LAST_4(B, d, a, s0, s1, s2, s3)                                 \
  SKUA_BROADCAST(d a, 12) SKUA_FMA_B(B(0), 12, s0) SKUA_FMA_B(B(32), 12, s1) \
  SKUA_FMA_B(B(64), 12, s2) SKUA_FMA_B(B(96), 12, s3)
#define SKUA_END_4(a, s0, s1, s2, s3)                                                                                 \
  SKUA_LAST_4(SKUA_B0, "0", a, s0, s1, s2, s3) SKUA_LAST_4(SKUA_B1, "4", a, s0, s1, s2, s3)                           \
  SKUA_LAST_4(SKUA_B2, "8", a, s0, s1, s2, s3) SKUA_LAST_4(SKUA_B3, "12", a, s0, s1, s2, s3)                          \
  SKUA_ADD(q, 0, s0) SKUA_ADD(q, 32, s1) SKUA_ADD(q, 64, s2) SKUA_ADD(q, 96, s3)                                      \
  SKUA_IF_RESIDUAL(SKUA_ADD(n, 0, s0) SKUA_ADD(n, 32, s1) SKUA_ADD(n, 64, s2) SKUA_ADD(n, 96, s3) SKUA_NEXT_RESIDUAL) \
  SKUA_LOW(13, s0) SKUA_LOW(13, s1) SKUA_LOW(13, s2) SKUA_LOW(13, s3)                                                 \
  SKUA_HIGH(14, s0) SKUA_HIGH(14, s1) SKUA_HIGH(14, s2) SKUA_HIGH(14, s3)                                             \
  SKUA_STORE(0, s0) SKUA_STORE(32, s1) SKUA_STORE(64, s2) SKUA_STORE(96, s3) SKUA_NEXT_C
#define SKUA_END_3x4                                                                                                  \
  SKUA_BROADCAST("40(%[p])", 13) SKUA_BROADCAST("44(%[p])", 14)                                                       \
  SKUA_END_4("(%[a])", 0, 1, 2, 3) SKUA_END_4("(%[a],%[i])", 4, 5, 6, 7) SKUA_END_4("(%[a],%[j])", 8, 9, 10, 11)

// Two rows of three vectors.
#define SKUA_BOTH(b, s, t) SKUA_LOAD(b, 14) SKUA_FMA(14, 12, s) SKUA_FMA(14, 13, t)
#define SKUA_LAST_3(B, d, a, a2, s0, s1, s2, t0, t1, t2)                   \
  SKUA_BROADCAST(d a, 12) SKUA_BROADCAST(d a2, 13) SKUA_BOTH(B(0), s0, t0) \
  SKUA_BOTH(B(32), s1, t1) SKUA_BOTH(B(64), s2, t2)
#define SKUA_END_3(a, a2, s0, s1, s2, t0, t1, t2)                                                                    \
  SKUA_LAST_3(SKUA_B0, "0", a, a2, s0, s1, s2, t0, t1, t2) SKUA_LAST_3(SKUA_B1, "4", a, a2, s0, s1, s2, t0, t1, t2)  \
  SKUA_LAST_3(SKUA_B2, "8", a, a2, s0, s1, s2, t0, t1, t2) SKUA_LAST_3(SKUA_B3, "12", a, a2, s0, s1, s2, t0, t1, t2) \
  SKUA_BROADCAST("44(%[p])", 14)                                                                                     \
  SKUA_ADD(q, 0, s0) SKUA_ADD(q, 32, s1) SKUA_ADD(q, 64, s2)                                                         \
  SKUA_ADD(q, 0, t0) SKUA_ADD(q, 32, t1) SKUA_ADD(q, 64, t2)                                                         \
  SKUA_IF_RESIDUAL(SKUA_ADD(n, 0, s0) SKUA_ADD(n, 32, s1) SKUA_ADD(n, 64, s2) SKUA_NEXT_RESIDUAL                     \
                   SKUA_ADD(n, 0, t0) SKUA_ADD(n, 32, t1) SKUA_ADD(n, 64, t2) SKUA_NEXT_RESIDUAL)                    \
  SKUA_LOW(15, s0) SKUA_LOW(15, s1) SKUA_LOW(15, s2) SKUA_LOW(15, t0) SKUA_LOW(15, t1) SKUA_LOW(15, t2)              \
  SKUA_HIGH(14, s0) SKUA_HIGH(14, s1) SKUA_HIGH(14, s2) SKUA_HIGH(14, t0) SKUA_HIGH(14, t1) SKUA_HIGH(14, t2)        \
  SKUA_STORE(0, s0) SKUA_STORE(32, s1) SKUA_STORE(64, s2) SKUA_NEXT_C                                                \
  SKUA_STORE(0, t0) SKUA_STORE(32, t1) SKUA_STORE(64, t2) SKUA_NEXT_C
#define SKUA_END_4x3                                                                                                  \
  SKUA_BROADCAST("40(%[p])", 15)                                                                                      \
  SKUA_END_3("(%[a])", "(%[a],%[i])", 0, 1, 2, 3, 4, 5) SKUA_END_3("(%[a],%[j])", "(%[a],%[k])", 6, 7, 8, 9, 10, 11)

// Two rows of two vectors.
#define SKUA_LAST_2(B, d, a, a2, s0, s1, t0, t1) \
  SKUA_BROADCAST(d a, 12) SKUA_BROADCAST(d a2, 13) SKUA_BOTH(B(0), s0, t0) SKUA_BOTH(B(32), s1, t1)
#define SKUA_END_2(a, a2, s0, s1, t0, t1)                                                            \
  SKUA_LAST_2(SKUA_B0, "0", a, a2, s0, s1, t0, t1) SKUA_LAST_2(SKUA_B1, "4", a, a2, s0, s1, t0, t1)  \
  SKUA_LAST_2(SKUA_B2, "8", a, a2, s0, s1, t0, t1) SKUA_LAST_2(SKUA_B3, "12", a, a2, s0, s1, t0, t1) \
  SKUA_BROADCAST("44(%[p])", 14)                                                                     \
  SKUA_ADD(q, 0, s0) SKUA_ADD(q, 32, s1) SKUA_ADD(q, 0, t0) SKUA_ADD(q, 32, t1)                      \
  SKUA_IF_RESIDUAL(SKUA_ADD(n, 0, s0) SKUA_ADD(n, 32, s1) SKUA_NEXT_RESIDUAL                         \
                   SKUA_ADD(n, 0, t0) SKUA_ADD(n, 32, t1) SKUA_NEXT_RESIDUAL)                        \
  SKUA_LOW(15, s0) SKUA_LOW(15, s1) SKUA_LOW(15, t0) SKUA_LOW(15, t1)                                \
  SKUA_HIGH(14, s0) SKUA_HIGH(14, s1) SKUA_HIGH(14, t0) SKUA_HIGH(14, t1)                            \
  SKUA_STORE(0, s0) SKUA_STORE(32, s1) SKUA_NEXT_C SKUA_STORE(0, t0) SKUA_STORE(32, t1) SKUA_NEXT_C
#define SKUA_END_6x2                                                                                     \
  SKUA_BROADCAST("40(%[p])", 15)                                                                         \
  SKUA_END_2("(%[a])", "(%[a],%[i])", 0, 1, 2, 3) SKUA_END_2("(%[a],%[i],2)", "(%[a],%[j])", 4, 5, 6, 7) \
  SKUA_END_2("(%[a],%[i],4)", "(%[a],%[k])", 8, 9, 10, 11)

// A tile: rows of A as four_steps() has them, `ahead` of the next ones, `panel` bytes from a row of B to what is asked
// for beside it.
enum class Asks { nothing, a, a_and_b };
template <int MR, int NV, Asks asks>
SKUA_INL void whole_tile(const WholeTile& w, const char* a, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, const char* b,
                         ptrdiff_t l, ptrdiff_t l3, char* c, const char* ahead, ptrdiff_t panel) {
  size_t q, n;
#define SKUA_BY_ASKS(step, ask_a, end)                                                  \
  if constexpr (asks == Asks::nothing) { SKUA_AS_WRITTEN(SKUA_DEPTH(step, "") end); }   \
  else if constexpr (asks == Asks::a) { SKUA_AS_WRITTEN(SKUA_DEPTH(step, ask_a) end); } \
  else { SKUA_AS_WRITTEN(SKUA_DEPTH(step, ask_a SKUA_ASK_B) end); }
#define SKUA_AS_WRITTEN(text)                                                                                    \
  asm volatile(text : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [ahead] "+&r"(ahead), [panel] "+&r"(panel),      \
                 [q] "=&r"(q), [n] "=&r"(n)                                                                      \
               : [p] "r"(&w), [i] "r"(i), [j] "r"(j), [k] "r"(k), [l] "r"(l), [l3] "r"(l3), [bytes] "i"(16 * MR) \
               : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
  if constexpr (NV == 2) { SKUA_BY_ASKS(SKUA_STEP_6x2, SKUA_ASK_A_2, SKUA_END_6x2) }
  else if constexpr (NV == 3) { SKUA_BY_ASKS(SKUA_STEP_4x3, SKUA_ASK_A_1, SKUA_END_4x3) }
  else { SKUA_BY_ASKS(SKUA_STEP_3x4, SKUA_ASK_A_1, SKUA_END_3x4) }
}
#undef SKUA_B0
#undef SKUA_B1
#undef SKUA_B2
#undef SKUA_B3
#undef SKUA_SUM
#undef SKUA_LOAD
#undef SKUA_BROADCAST
#undef SKUA_FMA
#undef SKUA_ROW_OF_2
#undef SKUA_STEP_6x2
#undef SKUA_ROW_OF_3
#undef SKUA_STEP_4x3
#undef SKUA_COLUMN_OF_3
#undef SKUA_STEP_3x4
#undef SKUA_ZERO
#undef SKUA_DEPTH
#undef SKUA_ASK_A_1
#undef SKUA_ASK_A_2
#undef SKUA_ASK_B
#undef SKUA_FMA_B
#undef SKUA_ADD
#undef SKUA_LOW
#undef SKUA_HIGH
#undef SKUA_STORE
#undef SKUA_NEXT_C
#undef SKUA_NEXT_RESIDUAL
#undef SKUA_IF_RESIDUAL
#undef SKUA_LAST_4
#undef SKUA_END_4
#undef SKUA_END_3x4
#undef SKUA_BOTH
#undef SKUA_LAST_3
#undef SKUA_END_3
#undef SKUA_END_4x3
#undef SKUA_LAST_2
#undef SKUA_END_2
#undef SKUA_END_6x2
#undef SKUA_BY_ASKS
#undef SKUA_AS_WRITTEN
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
