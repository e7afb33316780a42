// The inner loops of AArch32 tiles in assembly. 16 vector registers and by-lane multiplies whose lane lies in the
// lowest eight D registers (f16) leave compilers no room: they move registers, split loads of several, or spill.
//
//   packed A  [k][6]      written by pack_a: f32, one step in d0-d2; f16, two steps in d0-d2 without a gap
//   packed B  [k][ldb]    rows of 8 f32 or 16 f16 in d4-d7
//   6 rows x 2 vectors    12 accumulators + A + B of 16 registers; two loads and 12 multiplies a step (f16: three and
//                         24 for two)
//   f16 goes on from halves to f32 here as well: with all registers taken, the compiler would send every sum through
//   memory.
//
// A multiply by lane rounds its product: vmla, as fma_lane() does.
//
// In-order cores issue two instructions a cycle as they come, so every multiply is followed by at most one instruction
// that goes beside it. Operands of the next step come in halves, D registers, each as soon as its last multiply is
// issued:
//
//   Cortex-A55, A510   a 64-bit load of a vector goes beside a multiply: all of them are free
//   Cortex-A53         only loads to general registers do; the load of one D register goes beside the move of two words
//                      into another, so two of them cost a cycle
//
// f32: A takes three of d0-d3 and moves on by one with each step, so a turn is four steps. Loads lead their use by five
// cycles or more. The last turn stands by itself: it loads nothing for a next one (on condition would take Thumb more
// instructions).
#pragma once

#define SKUA_VMLA(type, c, b, a, lane) "vmla." type " " c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_CLEAR(c) "vmov.i32 %q" #c ", #0\n"
#define SKUA_FILL(c) "vld1.32 {%e" #c ", %f" #c "}, [%[from]]!\n"
#define SKUA_TO_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
// Sums have names of their own: GCC keeps an array in memory once one of its elements is an operand.
#define SKUA_NAME(c) decltype(Packed::v) s##c;
#define SKUA_SUMS                                                                                                \
  "=w"(s0), "=w"(s1), "=w"(s2), "=w"(s3), "=w"(s4), "=w"(s5), "=w"(s6), "=w"(s7), "=w"(s8), "=w"(s9), "=w"(s10), \
      "=w"(s11)
#define SKUA_RESULT(i) c[i / 6][i % 6].v = s##i;

#if defined(SKUA_ISA_neon32) || defined(SKUA_ISA_neon32_dot)
#if defined(SKUA_ISA_neon32)
#define SKUA_LANE(c, b, a, lane) SKUA_VMLA("f32", "%q" #c, b, a, lane)
#else
#define SKUA_LANE(c, b, a, lane) "vsdot.s8 %q" #c ", q" #b ", d" #a "[" #lane "]\n"
#endif
#define SKUA_SIX(b, c0, c1, c2, c3, c4, c5)                            \
  SKUA_LANE(c0, b, 0, 0) SKUA_LANE(c1, b, 0, 1) SKUA_LANE(c2, b, 1, 0) \
  SKUA_LANE(c3, b, 1, 1) SKUA_LANE(c4, b, 2, 0) SKUA_LANE(c5, b, 2, 1)
#define SKUA_STEP                                                \
  "vld1.32 {d0-d2}, [%[a]]!\n vld1.32 {d4-d7}, [%[b]], %[ldb]\n" \
  SKUA_SIX(2, 0, 1, 2, 3, 4, 5) SKUA_SIX(3, 6, 7, 8, 9, 10, 11)

// One step with p, q, r of A; `free` is the next step's first. h0..h11: what goes beside each multiply, or behind it in
// a cycle of its own.
#define SKUA_STEP_WITH(p, q, r, h0, h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11) \
  SKUA_LANE(0, 2, p, 0) h0 SKUA_LANE(1, 2, p, 1) h1 SKUA_LANE(2, 2, q, 0) h2      \
  SKUA_LANE(3, 2, q, 1) h3 SKUA_LANE(4, 2, r, 0) h4 SKUA_LANE(5, 2, r, 1) h5      \
  SKUA_LANE(6, 3, p, 0) h6 SKUA_LANE(7, 3, p, 1) h7 SKUA_LANE(8, 3, q, 0) h8      \
  SKUA_LANE(9, 3, q, 1) h9 SKUA_LANE(10, 3, r, 0) h10 SKUA_LANE(11, 3, r, 1) h11
#define SKUA_LOAD_D(d, from, at) "vldr d" #d ", [%[" from "], #" #at "]\n"
#define SKUA_NO_LOAD(d, from, at)
#define SKUA_NEXT_B "add %[b], %[b], %[ldb]\n"
#define SKUA_COUNT "subs %[turns], %[turns], #1\n"
// LOAD: of what belongs to the next step, whose A lies `next` bytes behind a. b: the row of this step until all of it
// is loaded, then the next one's.
#define SKUA_STEP_A55(p, q, r, free, next, LOAD, count, next_a)                                                 \
  SKUA_STEP_WITH(p, q, r, SKUA_LOAD_D(7, "b", 24), LOAD(free, "a", next), SKUA_NEXT_B, "", "", LOAD(4, "b", 0), \
                 LOAD(5, "b", 8), LOAD(p, "a", next + 8), count, LOAD(q, "a", next + 16), next_a, LOAD(6, "b", 16))
#define SKUA_LOADS_A55(LOAD)                                                                            \
  SKUA_STEP_A55(0, 1, 2, 3, 24, SKUA_LOAD_D, "", "") SKUA_STEP_A55(3, 0, 1, 2, 48, SKUA_LOAD_D, "", "") \
  SKUA_STEP_A55(2, 3, 0, 1, 72, SKUA_LOAD_D, SKUA_COUNT, "")                                            \
  SKUA_STEP_A55(1, 2, 3, 0, 96, LOAD, "", "add %[a], %[a], #96\n")
#define SKUA_TURN_A55 SKUA_LOADS_A55(SKUA_LOAD_D)
#define SKUA_LAST_A55 SKUA_LOADS_A55(SKUA_NO_LOAD)
#define SKUA_START_A55                                             \
  "vldr d0, [%[a]]\n vldr d1, [%[a], #8]\n vldr d2, [%[a], #16]\n" \
  "vldr d4, [%[b]]\n vldr d5, [%[b], #8]\n vldr d6, [%[b], #16]\n"

// The first of two steps loads one D register of A for the step after the next, so that both load an even number.
#define SKUA_WORD(to, from, at) "ldr %[" to "], [%[" from "], #" #at "]\n"
#define SKUA_BOTH(d, from, at, high, x) SKUA_LOAD_D(d, from, at) "vmov d" #high ", %[" x "0], %[" x "1]\n"
#define SKUA_NO_WORD(to, from, at)
#define SKUA_NO_BOTH(d, from, at, high, x)
#define SKUA_UPPER_B SKUA_BOTH(6, "b", 16, 7, "z")  // first in a turn, for the branch goes beside the last multiply
#define SKUA_FIRST_A53(p, q, r, free, next, WORD)                                                           \
  SKUA_STEP_WITH(p, q, r, SKUA_NEXT_B, SKUA_WORD("x0", "b", 8), SKUA_WORD("x1", "b", 12),                   \
                 SKUA_WORD("y0", "a", next + 8), SKUA_WORD("y1", "a", next + 12), SKUA_WORD("z0", "b", 24), \
                 SKUA_WORD("z1", "b", 28) SKUA_BOTH(4, "b", 0, 5, "x"), WORD("x0", "a", next + 24),         \
                 WORD("x1", "a", next + 28) SKUA_BOTH(free, "a", next, p, "y"), "", "",                     \
                 SKUA_BOTH(q, "a", next + 16, r, "x") SKUA_UPPER_B)
#define SKUA_SECOND_A53(p, q, r, next, WORD, BOTH, count, next_a, upper)                                              \
  SKUA_STEP_WITH(p, q, r, SKUA_NEXT_B, WORD("x0", "b", 8), WORD("x1", "b", 12), WORD("y0", "a", next + 16),           \
                 WORD("y1", "a", next + 20), WORD("z0", "b", 24), WORD("z1", "b", 28) BOTH(4, "b", 0, 5, "x"), count, \
                 "", BOTH(p, "a", next + 8, q, "y"), next_a, upper)
#define SKUA_LOADS_A53(WORD, BOTH)                                                 \
  SKUA_UPPER_B SKUA_FIRST_A53(0, 1, 2, 3, 24, SKUA_WORD)                           \
  SKUA_SECOND_A53(3, 0, 1, 48, SKUA_WORD, SKUA_BOTH, SKUA_COUNT, "", SKUA_UPPER_B) \
  SKUA_FIRST_A53(2, 3, 0, 1, 72, WORD)                                             \
  SKUA_SECOND_A53(1, 2, 3, 96, WORD, BOTH, "", "add %[a], %[a], #96\n", "")
#define SKUA_TURN_A53 SKUA_LOADS_A53(SKUA_WORD, SKUA_BOTH)
#define SKUA_LAST_A53 SKUA_LOADS_A53(SKUA_NO_WORD, SKUA_NO_BOTH)
#define SKUA_START_A53 SKUA_START_A55 SKUA_WORD("z0", "b", 24) SKUA_WORD("z1", "b", 28)
// TURN: all turns but the last.
#define SKUA_SCHEDULED(START, TURN, LAST) START SKUA_COUNT "beq 31f\n 3:\n" TURN "bne 3b\n 31:\n" LAST

#define SKUA_TURNS(LOOP, ...)                                                                \
  asm volatile("cmp %[from], #0\n beq 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"                  \
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)                                                \
               "2: cmp %[turns], #0\n beq 4f\n" LOOP                                         \
               "4:\n"                                                                        \
               : SKUA_SUMS, [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from) \
                 __VA_OPT__(, ) __VA_ARGS__                                                  \
               : [ldb] "r"(ldb)                                                              \
               : "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "cc", "memory");

// c[v][r] = [from[v][r] if from] + the sum over `steps` steps, a multiple of packed_turn<core>; ldb: bytes from one row
// of B to the next. a and b move on.
// V: F32, or I32 of dot products of four bytes.
template <Core core> constexpr size_t packed_turn = core == Core::any ? 2 : 4;
template <Core core, class V, class T>
SKUA_INL void packed_turns(V (&c)[2][6], const T*& a, const T*& b, size_t ldb, size_t steps, const V* from) {
  SKUA_TO_ALL(SKUA_NAME)
  size_t turns = steps / packed_turn<core>;
  if constexpr (core == Core::a53) {
    size_t x0, x1, y0, y1, z0, z1;
    SKUA_TURNS(SKUA_SCHEDULED(SKUA_START_A53, SKUA_TURN_A53, SKUA_LAST_A53), [x0] "=&r"(x0), [x1] "=&r"(x1),
               [y0] "=&r"(y0), [y1] "=&r"(y1), [z0] "=&r"(z0), [z1] "=&r"(z1))
  } else if constexpr (core == Core::a55) {
    SKUA_TURNS(SKUA_SCHEDULED(SKUA_START_A55, SKUA_TURN_A55, SKUA_LAST_A55))
  } else {
    SKUA_TURNS("3:\n" SKUA_STEP SKUA_COUNT SKUA_STEP "bne 3b\n")
  }
  SKUA_TO_ALL(SKUA_RESULT)
}
#endif

#if defined(SKUA_ISA_neon32_fp16)
// Lanes of the first and of the second of two steps. MUL: SKUA_VMLA16, or of the first products of a block, to which
// nothing is added, SKUA_VMUL16. h0..h5: what goes beside each.
#define SKUA_VMLA16(c, b, a, lane) SKUA_VMLA("f16", "q" #c, b, a, lane)
#define SKUA_VMUL16(c, b, a, lane) "vmul.f16 q" #c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_FIRST(MUL, b, c0, c1, c2, c3, c4, c5, h0, h1, h2, h3, h4, h5) \
  MUL(c0, b, 0, 0) h0 MUL(c1, b, 0, 1) h1 MUL(c2, b, 0, 2) h2              \
  MUL(c3, b, 0, 3) h3 MUL(c4, b, 1, 0) h4 MUL(c5, b, 1, 1) h5
#define SKUA_SECOND(b, c0, c1, c2, c3, c4, c5, h0, h1, h2, h3, h4, h5)                \
  SKUA_VMLA16(c0, b, 1, 2) h0 SKUA_VMLA16(c1, b, 1, 3) h1 SKUA_VMLA16(c2, b, 2, 0) h2 \
  SKUA_VMLA16(c3, b, 2, 1) h3 SKUA_VMLA16(c4, b, 2, 2) h4 SKUA_VMLA16(c5, b, 2, 3) h5
#define SKUA_NONE "", "", "", "", "", ""
#define SKUA_COUNT "subs %[turns], %[turns], #1\n"
// Two steps.
#define SKUA_TURN(MUL)                                                                                             \
  "vld1.16 {d0-d2}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_CALL(SKUA_FIRST, MUL, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE) SKUA_COUNT \
  SKUA_CALL(SKUA_FIRST, MUL, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE)                                                 \
  SKUA_ROW_OF_B SKUA_CALL(SKUA_SECOND, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE)                                             \
  SKUA_CALL(SKUA_SECOND, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE)
#define SKUA_CALL(MACRO, ...) MACRO(__VA_ARGS__)
// Eight steps: A comes in three loads of sixteen, each once the last lane before it is used. ROWi: one lane of A times
// both vectors of B.
#define SKUA_ROW0(MUL, a, lane) MUL(4, 2, a, lane) MUL(10, 3, a, lane)
#define SKUA_ROW1(MUL, a, lane) MUL(5, 2, a, lane) MUL(11, 3, a, lane)
#define SKUA_ROW2(MUL, a, lane) MUL(6, 2, a, lane) MUL(12, 3, a, lane)
#define SKUA_ROW3(MUL, a, lane) MUL(7, 2, a, lane) MUL(13, 3, a, lane)
#define SKUA_ROW4(MUL, a, lane) MUL(8, 2, a, lane) MUL(14, 3, a, lane)
#define SKUA_ROW5(MUL, a, lane) MUL(9, 2, a, lane) MUL(15, 3, a, lane)
#define SKUA_SIXTEEN_OF_A "vld1.16 {d0-d3}, [%[a]]!\n"
#define SKUA_STEPS(MUL, NEXT)                                                                           \
  SKUA_SIXTEEN_OF_A                                                                                     \
  SKUA_ROW_OF_B SKUA_ROW0(MUL, 0, 0) SKUA_ROW1(MUL, 0, 1) SKUA_ROW2(MUL, 0, 2) SKUA_ROW3(MUL, 0, 3)     \
  SKUA_ROW4(MUL, 1, 0) SKUA_ROW5(MUL, 1, 1) SKUA_COUNT                                                  \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 1, 2) SKUA_ROW1(NEXT, 1, 3) SKUA_ROW2(NEXT, 2, 0) SKUA_ROW3(NEXT, 2, 1) \
  SKUA_ROW4(NEXT, 2, 2) SKUA_ROW5(NEXT, 2, 3)                                                           \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 3, 0) SKUA_ROW1(NEXT, 3, 1) SKUA_ROW2(NEXT, 3, 2) SKUA_ROW3(NEXT, 3, 3) \
  SKUA_SIXTEEN_OF_A SKUA_ROW4(NEXT, 0, 0) SKUA_ROW5(NEXT, 0, 1)                                         \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 0, 2) SKUA_ROW1(NEXT, 0, 3) SKUA_ROW2(NEXT, 1, 0) SKUA_ROW3(NEXT, 1, 1) \
  SKUA_ROW4(NEXT, 1, 2) SKUA_ROW5(NEXT, 1, 3)                                                           \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 2, 0) SKUA_ROW1(NEXT, 2, 1) SKUA_ROW2(NEXT, 2, 2) SKUA_ROW3(NEXT, 2, 3) \
  SKUA_ROW4(NEXT, 3, 0) SKUA_ROW5(NEXT, 3, 1)                                                           \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 3, 2) SKUA_ROW1(NEXT, 3, 3) SKUA_SIXTEEN_OF_A SKUA_ROW2(NEXT, 0, 0)     \
  SKUA_ROW3(NEXT, 0, 1) SKUA_ROW4(NEXT, 0, 2) SKUA_ROW5(NEXT, 0, 3)                                     \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 1, 0) SKUA_ROW1(NEXT, 1, 1) SKUA_ROW2(NEXT, 1, 2) SKUA_ROW3(NEXT, 1, 3) \
  SKUA_ROW4(NEXT, 2, 0) SKUA_ROW5(NEXT, 2, 1)                                                           \
  SKUA_ROW_OF_B SKUA_ROW0(NEXT, 2, 2) SKUA_ROW1(NEXT, 2, 3) SKUA_ROW2(NEXT, 3, 0) SKUA_ROW3(NEXT, 3, 1) \
  SKUA_ROW4(NEXT, 3, 2) SKUA_ROW5(NEXT, 3, 3)
#define SKUA_START "cmp %[turns], #0\n beq 4f\n"
#define SKUA_LOOP SKUA_STEPS(SKUA_VMLA16, SKUA_VMLA16) "bne 3b\n"
// Behind the turns of eight of the last block, the only one that has a rest: turns of two.
#define SKUA_REST \
  "ldr %[turns], [%[late], #64]\n cmp %[turns], #0\n beq 34f\n 33:" SKUA_TURN(SKUA_VMLA16) "bne 33b\n 34:"
#define SKUA_AGAIN SKUA_STEPS(SKUA_VMUL16, SKUA_VMLA16)
// The same for the A55. Rows of B may lie at any even address, where only vld1 goes. LOAD: of the next turn's.
#define SKUA_HALF_OF_B(d, step) "vld1.16 {d" #d "}, [%[b]]" step "\n"
#define SKUA_TURN_A55(MUL, LOAD)                                                                                    \
  SKUA_FIRST(MUL, 2, 4, 5, 6, 7, 8, 9, "vldr d2, [%[a], #16]\n", "", SKUA_HALF_OF_B(7, ", %[ldb]"), SKUA_COUNT, "", \
             SKUA_HALF_OF_B(4, "!"))                                                                                \
  SKUA_FIRST(MUL, 3, 10, 11, 12, 13, 14, 15, "", "", SKUA_HALF_OF_B(5, "!"), LOAD("vldr d0, [%[a], #24]\n"), "",    \
             SKUA_HALF_OF_B(6, "!"))                                                                                \
  SKUA_SECOND(2, 4, 5, 6, 7, 8, 9, "", "", SKUA_HALF_OF_B(7, ", %[ldb]"), "", "", LOAD(SKUA_HALF_OF_B(4, "!")))     \
  SKUA_SECOND(3, 10, 11, 12, 13, 14, 15, "", LOAD("vldr d1, [%[a], #32]\n"), LOAD(SKUA_HALF_OF_B(5, "!")),          \
              "add %[a], %[a], #24\n", "", LOAD(SKUA_HALF_OF_B(6, "!")))
#define SKUA_SOME(x) x
#define SKUA_NO(x)
#define SKUA_BEGIN_A55                      \
  "vldr d0, [%[a]]\n vldr d1, [%[a], #8]\n" \
  SKUA_HALF_OF_B(4, "!") SKUA_HALF_OF_B(5, "!") SKUA_HALF_OF_B(6, "!") SKUA_COUNT
#define SKUA_START_A55 "cmp %[turns], #0\n beq 4f\n" SKUA_BEGIN_A55 "beq 31f\n"
#define SKUA_LOOP_A55 SKUA_TURN_A55(SKUA_VMLA16, SKUA_SOME) "bne 3b\n 31:" SKUA_TURN_A55(SKUA_VMLA16, SKUA_NO)
#define SKUA_AGAIN_A55 SKUA_BEGIN_A55 SKUA_TURN_A55(SKUA_VMUL16, SKUA_SOME)
#define SKUA_ROW_A55 SKUA_HALF_OF_B(4, "!") SKUA_HALF_OF_B(5, "!") SKUA_HALF_OF_B(6, "!") SKUA_HALF_OF_B(7, ", %[ldb]")
#define SKUA_ROW_OF_B "vld1.16 {d4-d7}, [%[b]], %[ldb]\n"
// Sums of row 0 in q4 and q10, of row 1 in q5 and q11, ...: X(their D registers).
#define SKUA_BELOW(X) X(10, 11, 22, 23) X(12, 13, 24, 25) X(14, 15, 26, 27)
#define SKUA_LAST(X) X(16, 17, 28, 29) X(18, 19, 30, 31)
#define SKUA_PUT(low0, high0, low1, high1)                       \
  "vcvt.f32.f16 q0, d" #low0 "\n vcvt.f32.f16 q1, d" #high0 "\n" \
  "vcvt.f32.f16 q2, d" #low1 "\n vcvt.f32.f16 q3, d" #high1 "\n vstmia %[sums]!, {d0-d7}\n"
// Row 0 leaves q4 and q10 free for those below, and those q0 to q7 for the last two.
#define SKUA_ADD_PUT_0(low, high)                                                           \
  "vld1.32 {d0-d3}, [%[sums]]\n vcvt.f32.f16 q2, d" #low "\n vcvt.f32.f16 q3, d" #high "\n" \
  "vadd.f32 q0, q0, q2\n vadd.f32 q1, q1, q3\n vst1.32 {d0-d3}, [%[sums]]!\n"
#define SKUA_ADD(t0, t1, low0, high0, low1, high1)                           \
  "vcvt.f32.f16 q" #t0 ", d" #low0 "\n vcvt.f32.f16 q" #t1 ", d" #high0 "\n" \
  "vadd.f32 q0, q0, q" #t0 "\n vadd.f32 q1, q1, q" #t1 "\n"                  \
  "vcvt.f32.f16 q" #t0 ", d" #low1 "\n vcvt.f32.f16 q" #t1 ", d" #high1 "\n" \
  "vadd.f32 q2, q2, q" #t0 "\n vadd.f32 q3, q3, q" #t1 "\n"
#define SKUA_ADD_PUT(low0, high0, low1, high1) \
  "vldmia %[sums], {d0-d7}\n" SKUA_ADD(4, 10, low0, high0, low1, high1) "vstmia %[sums]!, {d0-d7}\n"
#define SKUA_ADD_PUT_LAST                                                                           \
  "vldmia %[sums], {d0-d15}\n" SKUA_ADD(10, 11, 16, 17, 28, 29)                                     \
  "vcvt.f32.f16 q10, d18\n vcvt.f32.f16 q11, d19\n vcvt.f32.f16 q12, d30\n vcvt.f32.f16 q13, d31\n" \
  "vadd.f32 q4, q4, q10\n vadd.f32 q5, q5, q11\n vadd.f32 q6, q6, q12\n vadd.f32 q7, q7, q13\n"     \
  "vstmia %[sums], {d0-d15}\n"
// The end, two rows in q4, q10 and q5, q11 at a time while the others wait in `kept`; the bias in q12 to q15, the
// bounds in q8 and q9. a: pointers of C's rows.
#define SKUA_ROWS_WAIT                                                                                     \
  "mov %[turns], %[kept]\n add %[b], %[kept], #64\n vstmia %[turns], {d12-d19}\n vstmia %[b], {d24-d31}\n" \
  "vldmia %[from], {d24-d31}\n vld1.16 {d16-d19}, [%[ldb]]\n"
#define SKUA_NEXT_ROWS "vldmia %[turns]!, {d8-d11}\n vldmia %[b]!, {d20-d23}\n"
#define SKUA_END                                                                                \
  "vadd.f32 q0, q0, q12\n vadd.f32 q1, q1, q13\n vadd.f32 q2, q2, q14\n vadd.f32 q3, q3, q15\n" \
  "ldr %[from], [%[a]], #4\n"                                                                   \
  "vcvt.f16.f32 d0, q0\n vcvt.f16.f32 d1, q1\n vcvt.f16.f32 d2, q2\n vcvt.f16.f32 d3, q3\n"     \
  "vmax.f16 q0, q0, q8\n vmax.f16 q1, q1, q8\n vmin.f16 q0, q0, q9\n vmin.f16 q1, q1, q9\n vst1.16 {d0-d3}, [%[from]]\n"
#define SKUA_FINISH(low0, high0, low1, high1)                    \
  "vcvt.f32.f16 q0, d" #low0 "\n vcvt.f32.f16 q1, d" #high0 "\n" \
  "vcvt.f32.f16 q2, d" #low1 "\n vcvt.f32.f16 q3, d" #high1 "\n" SKUA_END
#define SKUA_ADD_FINISH(low0, high0, low1, high1) \
  "vldmia %[sums]!, {d0-d7}\n" SKUA_ADD(6, 7, low0, high0, low1, high1) SKUA_END
#define SKUA_TWO_ROWS(X) X(8, 9, 20, 21) X(10, 11, 22, 23)
#define SKUA_ALL_ROWS(X) SKUA_ROWS_WAIT SKUA_TWO_ROWS(X) SKUA_NEXT_ROWS SKUA_TWO_ROWS(X) SKUA_NEXT_ROWS SKUA_TWO_ROWS(X)

// Sums begin at -0: adding a product to it gives the product.
// AGAIN: the first turns of a block that follows one or that sums begin with, of `least` turns or more. At 6 and 7 Z is
// set after the last block, and stays.
#define SKUA_BLOCKS(START, AGAIN, LOOP, REST, ROW, least)                                                         \
  asm volatile(                                                                                                   \
    "cmp %[from], #0\n beq 1f\n"                                                                                  \
    "vld1.16 {d8-d11}, [%[from]]!\n vld1.16 {d12-d15}, [%[from]]!\n vld1.16 {d16-d19}, [%[from]]!\n"              \
    "vld1.16 {d20-d23}, [%[from]]!\n vld1.16 {d24-d27}, [%[from]]!\n vld1.16 {d28-d31}, [%[from]]\n"              \
    "ldr %[from], [%[late], #12]\n b 2f\n"                                                                        \
    "1: ldr %[from], [%[late], #12]\n cmp %[turns], #" #least "\n bge 53f\n"                                      \
    "vmov.i16 q4, #0x8000\n vmov.i16 q5, #0x8000\n vmov.i16 q6, #0x8000\n vmov.i16 q7, #0x8000\n"                 \
    "vmov.i16 q8, #0x8000\n vmov.i16 q9, #0x8000\n vmov.i16 q10, #0x8000\n vmov.i16 q11, #0x8000\n"               \
    "vmov.i16 q12, #0x8000\n vmov.i16 q13, #0x8000\n vmov.i16 q14, #0x8000\n vmov.i16 q15, #0x8000\n"             \
    "2:" START "b 3f\n"                                                                                           \
    "53:" AGAIN "3:" LOOP                                                                                         \
    "4: ldr %[turns], [%[late], #4]\n ldr %[sums], [%[late], #56]\n subs %[turns], %[turns], #1\n"                \
    "str %[turns], [%[late], #4]\n bne 51f\n"                                                                     \
    REST "ldr %[turns], [%[late]]\n tst %[turns], #1\n beq 5f\n"                                                  \
    "vld1.16 {d0}, [%[a]]!\n vld1.32 {d1[0]}, [%[a]]!\n" ROW                                                      \
    SKUA_CALL(SKUA_FIRST, SKUA_VMLA16, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE)                                            \
    SKUA_CALL(SKUA_FIRST, SKUA_VMLA16, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE)                                      \
    "5: ldr %[turns], [%[late], #8]\n add %[turns], %[turns], %[from]\n cmp %[turns], #3\n bgt 8f\n beq 7f\n"     \
    "cmp %[turns], #2\n beq 6f\n"                                                                                 \
    "mov %[sums], %[kept]\n"                                                                                      \
    "vst1.16 {d8-d11}, [%[sums]]!\n vst1.16 {d12-d15}, [%[sums]]!\n vst1.16 {d16-d19}, [%[sums]]!\n"              \
    "vst1.16 {d20-d23}, [%[sums]]!\n vst1.16 {d24-d27}, [%[sums]]!\n vst1.16 {d28-d31}, [%[sums]]\n b 10f\n"      \
    "51: cmp %[from], #0\n bne 7f\n movs %[from], #1\n"                                                           \
    "6:" SKUA_PUT(8, 9, 20, 21) SKUA_BELOW(SKUA_PUT) SKUA_LAST(SKUA_PUT) "b 52f\n"                                \
    "7:" SKUA_ADD_PUT_0(8, 9) SKUA_ADD_PUT_0(20, 21) SKUA_BELOW(SKUA_ADD_PUT) SKUA_ADD_PUT_LAST                   \
    "52: beq 10f\n ldr %[turns], [%[late], #60]\n b 53b\n"                                                        \
    "8: cmp %[turns], #4\n ldr %[a], [%[late], #16]\n ldr %[from], [%[late], #20]\n add %[ldb], %[late], #24\n"   \
    "bne 9f\n" SKUA_ALL_ROWS(SKUA_FINISH) "b 10f\n"                                                               \
    "9:" SKUA_ALL_ROWS(SKUA_ADD_FINISH)                                                                           \
    "10:\n"                                                                                                       \
    : [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from), [sums] "=&r"(sums), [ldb] "+r"(ldb)       \
    : [late] "r"(&late), [kept] "r"(kept)                                                                         \
    : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", \
      "memory");

// `blocks` times: [from if from, the first time] + the sum over k steps (a multiple of eight, of several blocks), and
// what is then done with it (half_sums.h), after the last time: kept as it is, moved to sums, more: to those that are
// there, or made the result with them. Blocks before it are moved.
struct PackedBlocks {
  size_t k, blocks, then, more;  // read, as what follows, when the loop has left registers free; blocks changes
  void* const* c;
  const float* bias;
  f16 low[F16::L], high[F16::L];
  float* sums;
  size_t turns, rest;  // turns of the loop, and the pairs of steps behind them
  const f16 *a, *b;
  size_t ldb;  // bytes
  const F16* from;
  F16* kept;
  template <Core core>
  SKUA_INL void set(const f16* at_a, const f16* at_b, size_t steps, size_t count, const F16* start, Then after,
                    bool adds) {
    a = at_a;
    b = at_b;
    k = steps;
    turns = core == Core::a55 ? steps / 2 : steps / 8;
    rest = steps % 8 / 2;
    blocks = count;
    from = start;
    then = size_t(after) * 2;
    more = adds;
  }
  SKUA_INL void set_end(const GemmTile& t) {
    c = t.c;
    bias = t.bias ? t.bias : kNoBias;
    F16::set1(t.low).store(low);
    F16::set1(t.high).store(high);
  }
};
static_assert(offsetof(PackedBlocks, low) == 24 && offsetof(PackedBlocks, sums) == 56 &&
                  offsetof(PackedBlocks, turns) == 60 && offsetof(PackedBlocks, rest) == 64,
              "the assembly knows where they are");
template <Core core> __attribute__((noinline)) void packed_blocks(PackedBlocks& late) {
  size_t turns = late.turns, ldb = late.ldb;
  const f16 *a = late.a, *b = late.b;
  const F16* from = late.from;
  F16* kept = late.kept;
  float* sums;
  if constexpr (core == Core::a55) {
    ldb -= 24;
    SKUA_BLOCKS(SKUA_START_A55, SKUA_AGAIN_A55, SKUA_LOOP_A55, "", SKUA_ROW_A55, 3)
  } else {
    SKUA_BLOCKS(SKUA_START, SKUA_AGAIN, SKUA_LOOP, SKUA_REST, SKUA_ROW_OF_B, 2)
  }
}
#endif

#undef SKUA_VMLA
#undef SKUA_CLEAR
#undef SKUA_FILL
#undef SKUA_TO_ALL
#undef SKUA_NAME
#undef SKUA_SUMS
#undef SKUA_RESULT
#undef SKUA_LANE
#undef SKUA_SIX
#undef SKUA_STEP
#undef SKUA_STEP_WITH
#undef SKUA_LOAD_D
#undef SKUA_NO_LOAD
#undef SKUA_NEXT_B
#undef SKUA_COUNT
#undef SKUA_STEP_A55
#undef SKUA_LOADS_A55
#undef SKUA_TURN_A55
#undef SKUA_LAST_A55
#undef SKUA_START_A55
#undef SKUA_WORD
#undef SKUA_BOTH
#undef SKUA_NO_WORD
#undef SKUA_NO_BOTH
#undef SKUA_FIRST_A53
#undef SKUA_SECOND_A53
#undef SKUA_LOADS_A53
#undef SKUA_TURN_A53
#undef SKUA_LAST_A53
#undef SKUA_START_A53
#undef SKUA_SCHEDULED
#undef SKUA_TURNS
#undef SKUA_VMLA16
#undef SKUA_VMUL16
#undef SKUA_FIRST
#undef SKUA_SECOND
#undef SKUA_NONE
#undef SKUA_TURN
#undef SKUA_CALL
#undef SKUA_ROW0
#undef SKUA_ROW1
#undef SKUA_ROW2
#undef SKUA_ROW3
#undef SKUA_ROW4
#undef SKUA_ROW5
#undef SKUA_SIXTEEN_OF_A
#undef SKUA_STEPS
#undef SKUA_START
#undef SKUA_BEGIN_A55
#undef SKUA_LOOP
#undef SKUA_REST
#undef SKUA_AGAIN
#undef SKUA_HALF_OF_B
#undef SKUA_SOME
#undef SKUA_NO
#undef SKUA_LOOP_A55
#undef SKUA_AGAIN_A55
#undef SKUA_ROW_A55
#undef SKUA_ROW_OF_B
#undef SKUA_PUT
#undef SKUA_ADD_PUT_0
#undef SKUA_ADD_PUT
#undef SKUA_BELOW
#undef SKUA_LAST
#undef SKUA_ADD
#undef SKUA_ADD_PUT_LAST
#undef SKUA_ROWS_WAIT
#undef SKUA_NEXT_ROWS
#undef SKUA_TWO_ROWS
#undef SKUA_ALL_ROWS
#undef SKUA_END
#undef SKUA_FINISH
#undef SKUA_ADD_FINISH
#undef SKUA_BLOCKS
