// The inner loops of GEMM tiles for in-order cores, which issue two instructions a cycle as they come: every multiply
// is followed by at most one instruction that goes beside it. A 128-bit register is filled in halves: `ldr d` (low),
// `ldr x`, and `mov v.d[1], x` (high).
//
//   Cortex-A55, A510   each of the three goes beside a multiply: all of them are free
//   Cortex-A53         only `ldr x` does; `ldr d` and the insert go beside each other, so a register costs one cycle
//
//   packed A  [k][8]          written by pack_a: lane = row
//   packed B  [k][ldb]        rows of 12 f32 or 16 f16
//   f32 8x12, and bytes 8x12 four deep (sdot)
//             24 accumulators, A of this step and the next (v0 v1 | v2 v3), B v4 v5 v6: no second copy, v4 is rewritten
//             when its 8 multiplies are issued
//   f16 8x16  16 accumulators, A v0 | v1, B v4 v5 | v6 v7
//
// Loads lead their inserts by six instructions, inserts their use by more, so a latency of 3 to 6 cycles is hidden. Two
// steps per turn, the last one without loads: nothing is read beyond the operands.
#pragma once

// c: operands of the accumulators of one vector of columns, rows 0..7; h0..h7: what goes beside each multiply.
#define SKUA_EIGHT(MUL, c0, c1, c2, c3, c4, c5, c6, c7, b, a, a1, h0, h1, h2, h3, h4, h5, h6, h7) \
  MUL(c0, b, a, a1, 0) h0 MUL(c1, b, a, a1, 1) h1 MUL(c2, b, a, a1, 2) h2 MUL(c3, b, a, a1, 3) h3 \
  MUL(c4, b, a, a1, 4) h4 MUL(c5, b, a, a1, 5) h5 MUL(c6, b, a, a1, 6) h6 MUL(c7, b, a, a1, 7) h7
#define SKUA_LOW(v, from) "ldr d" #v ", [" from "]\n"
#define SKUA_LOAD_X(x, from) "ldr " x ", [" from "]\n"
#define SKUA_HIGH(v, x) "mov v" #v ".d[1], " x "\n"
// x9: A of this turn; x10: B of this step until its last load, then of the next; x11: turns left; x12..x16: high halves
// on their way.
#define SKUA_NEXT_B "add x10, x10, %[ldb]\n"
#define SKUA_COUNT "subs x11, x11, #1\n"
// Sums have names of their own: GCC keeps an array in memory once one of its elements is an operand.
#define SKUA_NAME(c) decltype(Packed::v) s##c;
#define SKUA_RESULT(i) c[i / 8][i % 8].v = s##i;

#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon_dot)
#if defined(SKUA_ISA_neon)
#define SKUA_LANE(c, b, a, lane) "fmla %" #c ".4s, v" #b ".4s, v" #a ".s[" #lane "]\n"
#else
#define SKUA_LANE(c, b, a, lane) "sdot %" #c ".4s, v" #b ".16b, v" #a ".4b[" #lane "]\n"
#endif
#define SKUA_MUL(c, b, a, a1, row) SKUA_MUL_##row(c, b, a, a1)
#define SKUA_MUL_0(c, b, a, a1) SKUA_LANE(c, b, a, 0)
#define SKUA_MUL_1(c, b, a, a1) SKUA_LANE(c, b, a, 1)
#define SKUA_MUL_2(c, b, a, a1) SKUA_LANE(c, b, a, 2)
#define SKUA_MUL_3(c, b, a, a1) SKUA_LANE(c, b, a, 3)
#define SKUA_MUL_4(c, b, a, a1) SKUA_LANE(c, b, a1, 0)
#define SKUA_MUL_5(c, b, a, a1) SKUA_LANE(c, b, a1, 1)
#define SKUA_MUL_6(c, b, a, a1) SKUA_LANE(c, b, a1, 2)
#define SKUA_MUL_7(c, b, a, a1) SKUA_LANE(c, b, a1, 3)
#define SKUA_B0(a, a1, ...) SKUA_EIGHT(SKUA_MUL, 0, 1, 2, 3, 4, 5, 6, 7, 4, a, a1, __VA_ARGS__)
#define SKUA_B1(a, a1, ...) SKUA_EIGHT(SKUA_MUL, 8, 9, 10, 11, 12, 13, 14, 15, 5, a, a1, __VA_ARGS__)
#define SKUA_B2(a, a1, ...) SKUA_EIGHT(SKUA_MUL, 16, 17, 18, 19, 20, 21, 22, 23, 6, a, a1, __VA_ARGS__)

// One step: multiplies a, a1 by B and loads the next step's A into na, na1, which begins `next` bytes behind x9.
#define SKUA_STEP_A55(a, a1, na, na1, next, count, next_a)                                                           \
  SKUA_B0(a, a1, SKUA_LOW(6, "x10, #32"), SKUA_LOAD_X("x12", "x10, #40"), SKUA_LOW(na, "x9, #" #next),               \
          SKUA_LOAD_X("x13", "x9, #" #next "+8"), SKUA_LOW(na1, "x9, #" #next "+16"),                                \
          SKUA_LOAD_X("x14", "x9, #" #next "+24"), SKUA_NEXT_B, SKUA_HIGH(6, "x12"))                                 \
  SKUA_B1(a, a1, SKUA_LOW(4, "x10"), SKUA_LOAD_X("x15", "x10, #8"), SKUA_HIGH(na, "x13"), "", SKUA_HIGH(na1, "x14"), \
          "", "", SKUA_LOW(5, "x10, #16"))                                                                           \
  SKUA_B2(a, a1, SKUA_LOAD_X("x16", "x10, #24"), SKUA_HIGH(4, "x15"), count, next_a, "", "", SKUA_HIGH(5, "x16"), "")
#define SKUA_LAST_A55(a, a1)                                                                                       \
  SKUA_B0(a, a1, SKUA_LOW(6, "x10, #32"), SKUA_LOAD_X("x12", "x10, #40"), "", "", "", "", SKUA_HIGH(6, "x12"), "") \
  SKUA_B1(a, a1, "", "", "", "", "", "", "", "") SKUA_B2(a, a1, "", "", "", "", "", "", "", "")

// The same for the A53: the low half of the next register beside the high half of this one. x16 holds the high half of
// v5 when a step begins.
#define SKUA_BOTH(low, from, high, x) SKUA_LOW(low, from) SKUA_HIGH(high, x)
#define SKUA_STEP_A53(a, a1, na, na1, next, count, next_a)                                                      \
  SKUA_B0(a, a1, SKUA_LOAD_X("x12", "x10, #40"), SKUA_BOTH(6, "x10, #32", 5, "x16"),                            \
          SKUA_LOAD_X("x13", "x9, #" #next "+8"), SKUA_NEXT_B, SKUA_LOAD_X("x14", "x9, #" #next "+24"),         \
          SKUA_BOTH(na, "x9, #" #next, 6, "x12"), SKUA_LOAD_X("x15", "x10, #8"), "")                            \
  SKUA_B1(a, a1, "", SKUA_LOAD_X("x16", "x10, #24") SKUA_BOTH(na1, "x9, #" #next "+16", na, "x13"), "", "", "", \
          SKUA_BOTH(4, "x10", na1, "x14"), "", "")                                                              \
  SKUA_B2(a, a1, "", next_a SKUA_BOTH(5, "x10, #16", 4, "x15"), "", "", "", "", count, "")
#define SKUA_LAST_A53(a, a1)                                                                             \
  SKUA_B0(a, a1, SKUA_LOAD_X("x12", "x10, #40"), SKUA_BOTH(6, "x10, #32", 5, "x16"), "", "", "", "", "", \
          SKUA_HIGH(6, "x12"))                                                                           \
  SKUA_B1(a, a1, "", "", "", "", "", "", "", "") SKUA_B2(a, a1, "", "", "", "", "", "", "", "")

#define SKUA_TO_ALL(X)                                                                  \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
  X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define SKUA_CLEAR(c) "movi %" #c ".2d, #0\n"
#define SKUA_FILL(c) "ldr %q" #c ", [%[from], #16*" #c "]\n"
#define SKUA_LOOP(STEP, LAST)                                                                                        \
  SKUA_TO_ALL(SKUA_NAME)                                                                                             \
  asm volatile("cbz %[from], 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"                                                   \
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)                                                                        \
               "2: mov x9, %[a]\n mov x10, %[b]\n sub x11, %[k], #1\n"                                               \
               "ldr q0, [x9]\n ldr q1, [x9, #16]\n ldr q4, [x10]\n ldr q5, [x10, #16]\n ldr x16, [x10, #24]\n"       \
               "lsr x11, x11, #1\n cbz x11, 4f\n"                                                                    \
               "3:\n" STEP(0, 1, 2, 3, 32, SKUA_COUNT, "") STEP(2, 3, 0, 1, 64, "", "add x9, x9, #64\n") "b.ne 3b\n" \
               "4: tbnz %[k], #0, 5f\n" STEP(0, 1, 2, 3, 32, "", "") LAST(2, 3) "b 6f\n"                             \
               "5:\n" LAST(0, 1)                                                                                     \
               "6:\n"                                                                                                \
               : "=w"(s0), "=w"(s1), "=w"(s2), "=w"(s3), "=w"(s4), "=w"(s5), "=w"(s6), "=w"(s7), "=w"(s8),           \
                 "=w"(s9), "=w"(s10), "=w"(s11), "=w"(s12), "=w"(s13), "=w"(s14), "=w"(s15), "=w"(s16),              \
                 "=w"(s17), "=w"(s18), "=w"(s19), "=w"(s20), "=w"(s21), "=w"(s22), "=w"(s23)                         \
               : [a] "r"(a), [b] "r"(b), [ldb] "r"(ldb), [k] "r"(k), [from] "r"(from)                                \
               : "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "v0", "v1", "v2", "v3", "v4", "v5", "v6",    \
                 "v7", "cc", "memory");                                                                              \
  SKUA_TO_ALL(SKUA_RESULT)

// c[v][r] = [from[v][r] if from] + the sum over k >= 1 steps; ldb: bytes from one row of B to the next. V: F32, or I32
// of dot products of four bytes.
template <Core core, class V, class T>
SKUA_INL void packed_loop(V (&c)[3][8], const T* a, const T* b, size_t ldb, size_t k, const V* from) {
  if constexpr (core == Core::a53) {
    SKUA_LOOP(SKUA_STEP_A53, SKUA_LAST_A53)
  } else {
    SKUA_LOOP(SKUA_STEP_A55, SKUA_LAST_A55)
  }
}
#endif

#if defined(SKUA_ISA_neon_fp16)
#define SKUA_MUL(c, b, a, a1, row) "fmla %" #c ".8h, v" #b ".8h, v" #a ".h[" #row "]\n"
// the first products, to which nothing is added
#define SKUA_BEGIN(c, b, a, a1, row) "fmul %" #c ".8h, v" #b ".8h, v" #a ".h[" #row "]\n"
#define SKUA_B0(MUL, b, a, ...) SKUA_EIGHT(MUL, 0, 1, 2, 3, 4, 5, 6, 7, b, a, a, __VA_ARGS__)
#define SKUA_B1(MUL, b, a, ...) SKUA_EIGHT(MUL, 8, 9, 10, 11, 12, 13, 14, 15, b, a, a, __VA_ARGS__)
// One step; the next one's operands, n..: its A lies `next` bytes behind x9, its B at x10.
#define SKUA_STEP(MUL, a, b, b1, na, nb, nb1, next, count, next_a)                                           \
  SKUA_B0(MUL, b, a, SKUA_LOW(nb, "x10"), SKUA_LOAD_X("x12", "x10, #8"), SKUA_LOW(na, "x9, #" #next),        \
          SKUA_LOAD_X("x13", "x9, #" #next "+8"), SKUA_LOW(nb1, "x10, #16"), SKUA_LOAD_X("x14", "x10, #24"), \
          SKUA_NEXT_B, SKUA_HIGH(nb, "x12"))                                                                 \
  SKUA_B1(MUL, b1, a, count, SKUA_HIGH(na, "x13"), next_a, SKUA_HIGH(nb1, "x14"), "", "", "", "")
#define SKUA_LAST(a, b, b1) \
  SKUA_B0(SKUA_MUL, b, a, "", "", "", "", "", "", "", "") SKUA_B1(SKUA_MUL, b1, a, "", "", "", "", "", "", "", "")
#define SKUA_CLEAR(c) "movi %" #c ".8h, #0x80, lsl #8\n"  // -0, as in f16_kernels.cc
#define SKUA_FILL(c) "ldr %q" #c ", [%[from], #16*" #c "]\n"
#define SKUA_TO_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

// c[v][r] = [from[v][r] if from] + the sum over k >= 1 steps; ldb: bytes from one row of B to the next.
template <Core>
SKUA_INL void packed_loop(F16 (&c)[2][8], const f16* a, const f16* b, size_t ldb, size_t k, const F16* from) {
  SKUA_TO_ALL(SKUA_NAME)
  asm volatile("mov x9, %[a]\n add x10, %[b], %[ldb]\n sub x11, %[k], #1\n"
               "ldr q0, [x9]\n ldr q4, [%[b]]\n ldr q5, [%[b], #16]\n"
               "lsr x11, x11, #1\n cbz %[from], 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"
               "1: cbz x11, 7f\n" SKUA_STEP(SKUA_BEGIN, 0, 4, 5, 1, 6, 7, 16, SKUA_COUNT, "")
               SKUA_STEP(SKUA_MUL, 1, 6, 7, 0, 4, 5, 32, "", "add x9, x9, #32\n") "b.eq 4f\n"
               "3:\n" SKUA_STEP(SKUA_MUL, 0, 4, 5, 1, 6, 7, 16, SKUA_COUNT, "")
               SKUA_STEP(SKUA_MUL, 1, 6, 7, 0, 4, 5, 32, "", "add x9, x9, #32\n") "b.ne 3b\n b 4f\n"
               "7:\n" SKUA_TO_ALL(SKUA_CLEAR)
               "2: cbnz x11, 3b\n"
               "4: tbnz %[k], #0, 5f\n" SKUA_STEP(SKUA_MUL, 0, 4, 5, 1, 6, 7, 16, "", "") SKUA_LAST(1, 6, 7) "b 6f\n"
               "5:\n" SKUA_LAST(0, 4, 5)
               "6:\n"
               : "=w"(s0), "=w"(s1), "=w"(s2), "=w"(s3), "=w"(s4), "=w"(s5), "=w"(s6), "=w"(s7), "=w"(s8), "=w"(s9),
                 "=w"(s10), "=w"(s11), "=w"(s12), "=w"(s13), "=w"(s14), "=w"(s15)
               : [a] "r"(a), [b] "r"(b), [ldb] "r"(ldb), [k] "r"(k), [from] "r"(from)
               : "x9", "x10", "x11", "x12", "x13", "x14", "v0", "v1", "v4", "v5", "v6", "v7", "cc", "memory");
  SKUA_TO_ALL(SKUA_RESULT)
}
#endif

#undef SKUA_EIGHT
#undef SKUA_BEGIN
#undef SKUA_LOW
#undef SKUA_LOAD_X
#undef SKUA_HIGH
#undef SKUA_NEXT_B
#undef SKUA_COUNT
#undef SKUA_NAME
#undef SKUA_RESULT
#undef SKUA_LANE
#undef SKUA_MUL
#undef SKUA_MUL_0
#undef SKUA_MUL_1
#undef SKUA_MUL_2
#undef SKUA_MUL_3
#undef SKUA_MUL_4
#undef SKUA_MUL_5
#undef SKUA_MUL_6
#undef SKUA_MUL_7
#undef SKUA_B0
#undef SKUA_B1
#undef SKUA_B2
#undef SKUA_STEP_A55
#undef SKUA_LAST_A55
#undef SKUA_BOTH
#undef SKUA_STEP_A53
#undef SKUA_LAST_A53
#undef SKUA_TO_ALL
#undef SKUA_CLEAR
#undef SKUA_FILL
#undef SKUA_LOOP
#undef SKUA_STEP
#undef SKUA_LAST
