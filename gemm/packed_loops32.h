// The inner loops of AArch32 tiles in assembly. 16 vector registers and by-lane multiplies whose lane lies in the lowest eight D registers (f16) leave compilers no room: they move
// registers, split loads of several, or spill.
//
//   packed A  [k][6]      written by pack_a: f32, one step in d0-d2; f16, two steps in d0-d2 without a gap
//   packed B  [k][ldb]    rows of 8 f32 or 16 f16 in d4-d7
//   6 rows x 2 vectors    12 accumulators + A + B of 16 registers; two loads and 12 multiplies a step (f16: three and 24 for two)
//   f16 goes on from halves to f32 here as well: with all registers taken, the compiler would send every sum through memory.
//
// A multiply by lane rounds its product: vmla, as fma_lane() does.
//
// In-order cores issue two instructions a cycle as they come, so every multiply is followed by at most one instruction that goes beside it. Operands of the next step come in halves, D
// registers, each as soon as its last multiply is issued:
//
//   Cortex-A55, A510   a 64-bit load of a vector goes beside a multiply: all of them are free
//   Cortex-A53         only loads to general registers do; the load of one D register goes beside the move of two words into another, so two of them cost a cycle
//
// f32: A takes three of d0-d3 and moves on by one with each step, so a turn is four steps. Loads lead their use by five cycles or more. The last turn stands by itself: it
// loads nothing for a next one (on condition would take Thumb more instructions).
#pragma once

#define SKUA_VMLA(type, c, b, a, lane) "vmla." type " " c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_CLEAR(c) "vmov.i32 %q" #c ", #0\n"
#define SKUA_FILL(c) "vld1.32 {%e" #c ", %f" #c "}, [%[from]]!\n"
#define SKUA_TO_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
// Sums have names of their own: GCC keeps an array in memory once one of its elements is an operand.
#define SKUA_NAME(c) decltype(Packed::v) s##c;
#define SKUA_SUMS "=w"(s0), "=w"(s1), "=w"(s2), "=w"(s3), "=w"(s4), "=w"(s5), "=w"(s6), "=w"(s7), "=w"(s8), "=w"(s9), "=w"(s10), "=w"(s11)
#define SKUA_RESULT(i) c[i / 6][i % 6].v = s##i;

#if defined(SKUA_ISA_neon32) || defined(SKUA_ISA_neon32_dot)
#if defined(SKUA_ISA_neon32)
#define SKUA_LANE(c, b, a, lane) SKUA_VMLA("f32", "%q" #c, b, a, lane)
#else
#define SKUA_LANE(c, b, a, lane) "vsdot.s8 %q" #c ", q" #b ", d" #a "[" #lane "]\n"
#endif
#define SKUA_SIX(b, c0, c1, c2, c3, c4, c5) \
  SKUA_LANE(c0, b, 0, 0) SKUA_LANE(c1, b, 0, 1) SKUA_LANE(c2, b, 1, 0) SKUA_LANE(c3, b, 1, 1) SKUA_LANE(c4, b, 2, 0) SKUA_LANE(c5, b, 2, 1)
#define SKUA_STEP "vld1.32 {d0-d2}, [%[a]]!\n vld1.32 {d4-d7}, [%[b]], %[ldb]\n" SKUA_SIX(2, 0, 1, 2, 3, 4, 5) SKUA_SIX(3, 6, 7, 8, 9, 10, 11)

// One step with p, q, r of A; `free` is the next step's first. h0..h11: what goes beside each multiply, or behind it in a cycle of its own.
#define SKUA_STEP_WITH(p, q, r, h0, h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11) \
  SKUA_LANE(0, 2, p, 0) h0 SKUA_LANE(1, 2, p, 1) h1 SKUA_LANE(2, 2, q, 0) h2 SKUA_LANE(3, 2, q, 1) h3 SKUA_LANE(4, 2, r, 0) h4 SKUA_LANE(5, 2, r, 1) h5 \
  SKUA_LANE(6, 3, p, 0) h6 SKUA_LANE(7, 3, p, 1) h7 SKUA_LANE(8, 3, q, 0) h8 SKUA_LANE(9, 3, q, 1) h9 SKUA_LANE(10, 3, r, 0) h10 SKUA_LANE(11, 3, r, 1) h11
#define SKUA_LOAD_D(d, from, at) "vldr d" #d ", [%[" from "], #" #at "]\n"
#define SKUA_NO_LOAD(d, from, at)
#define SKUA_NEXT_B "add %[b], %[b], %[ldb]\n"
#define SKUA_COUNT "subs %[turns], %[turns], #1\n"
// LOAD: of what belongs to the next step, whose A lies `next` bytes behind a. b: the row of this step until all of it is loaded, then the next one's.
#define SKUA_STEP_A55(p, q, r, free, next, LOAD, count, next_a) \
  SKUA_STEP_WITH(p, q, r, SKUA_LOAD_D(7, "b", 24), LOAD(free, "a", next), SKUA_NEXT_B, "", "", LOAD(4, "b", 0), LOAD(5, "b", 8), LOAD(p, "a", next + 8), count, \
                 LOAD(q, "a", next + 16), next_a, LOAD(6, "b", 16))
#define SKUA_LOADS_A55(LOAD) \
  SKUA_STEP_A55(0, 1, 2, 3, 24, SKUA_LOAD_D, "", "") SKUA_STEP_A55(3, 0, 1, 2, 48, SKUA_LOAD_D, "", "") SKUA_STEP_A55(2, 3, 0, 1, 72, SKUA_LOAD_D, SKUA_COUNT, "") \
  SKUA_STEP_A55(1, 2, 3, 0, 96, LOAD, "", "add %[a], %[a], #96\n")
#define SKUA_TURN_A55 SKUA_LOADS_A55(SKUA_LOAD_D)
#define SKUA_LAST_A55 SKUA_LOADS_A55(SKUA_NO_LOAD)
#define SKUA_START_A55 "vldr d0, [%[a]]\n vldr d1, [%[a], #8]\n vldr d2, [%[a], #16]\n vldr d4, [%[b]]\n vldr d5, [%[b], #8]\n vldr d6, [%[b], #16]\n"

// The first of two steps loads one D register of A for the step after the next, so that both load an even number.
#define SKUA_WORD(to, from, at) "ldr %[" to "], [%[" from "], #" #at "]\n"
#define SKUA_BOTH(d, from, at, high, x) SKUA_LOAD_D(d, from, at) "vmov d" #high ", %[" x "0], %[" x "1]\n"
#define SKUA_NO_WORD(to, from, at)
#define SKUA_NO_BOTH(d, from, at, high, x)
#define SKUA_UPPER_B SKUA_BOTH(6, "b", 16, 7, "z")  // first in a turn, for the branch goes beside the last multiply
#define SKUA_FIRST_A53(p, q, r, free, next, WORD) \
  SKUA_STEP_WITH(p, q, r, SKUA_NEXT_B, SKUA_WORD("x0", "b", 8), SKUA_WORD("x1", "b", 12), SKUA_WORD("y0", "a", next + 8), SKUA_WORD("y1", "a", next + 12), SKUA_WORD("z0", "b", 24), \
                 SKUA_WORD("z1", "b", 28) SKUA_BOTH(4, "b", 0, 5, "x"), WORD("x0", "a", next + 24), WORD("x1", "a", next + 28) SKUA_BOTH(free, "a", next, p, "y"), "", "", \
                 SKUA_BOTH(q, "a", next + 16, r, "x") SKUA_UPPER_B)
#define SKUA_SECOND_A53(p, q, r, next, WORD, BOTH, count, next_a, upper) \
  SKUA_STEP_WITH(p, q, r, SKUA_NEXT_B, WORD("x0", "b", 8), WORD("x1", "b", 12), WORD("y0", "a", next + 16), WORD("y1", "a", next + 20), WORD("z0", "b", 24), \
                 WORD("z1", "b", 28) BOTH(4, "b", 0, 5, "x"), count, "", BOTH(p, "a", next + 8, q, "y"), next_a, upper)
#define SKUA_LOADS_A53(WORD, BOTH) \
  SKUA_UPPER_B SKUA_FIRST_A53(0, 1, 2, 3, 24, SKUA_WORD) SKUA_SECOND_A53(3, 0, 1, 48, SKUA_WORD, SKUA_BOTH, SKUA_COUNT, "", SKUA_UPPER_B) SKUA_FIRST_A53(2, 3, 0, 1, 72, WORD) \
  SKUA_SECOND_A53(1, 2, 3, 96, WORD, BOTH, "", "add %[a], %[a], #96\n", "")
#define SKUA_TURN_A53 SKUA_LOADS_A53(SKUA_WORD, SKUA_BOTH)
#define SKUA_LAST_A53 SKUA_LOADS_A53(SKUA_NO_WORD, SKUA_NO_BOTH)
#define SKUA_START_A53 SKUA_START_A55 SKUA_WORD("z0", "b", 24) SKUA_WORD("z1", "b", 28)
// TURN: all turns but the last.
#define SKUA_SCHEDULED(START, TURN, LAST) START SKUA_COUNT "beq 31f\n 3:\n" TURN "bne 3b\n 31:\n" LAST

#define SKUA_TURNS(LOOP, ...)                                                                                           \
  asm volatile("cmp %[from], #0\n beq 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"                                             \
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)                                                                           \
               "2: cmp %[turns], #0\n beq 4f\n" LOOP                                                                    \
               "4:\n"                                                                                                   \
               : SKUA_SUMS, [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from) __VA_OPT__(, ) __VA_ARGS__ \
               : [ldb] "r"(ldb)                                                                                         \
               : "d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7", "cc", "memory");

// c[v][r] = [from[v][r] if from] + the sum over `steps` steps, a multiple of packed_turn<core>; ldb: bytes from one row of B to the next. a and b move on.
// V: F32, or I32 of dot products of four bytes.
template <Core core> constexpr size_t packed_turn = core == Core::any ? 2 : 4;
template <Core core, class V, class T> SKUA_INL void packed_turns(V (&c)[2][6], const T*& a, const T*& b, size_t ldb, size_t steps, const V* from) {
  SKUA_TO_ALL(SKUA_NAME)
  size_t turns = steps / packed_turn<core>;
  if constexpr (core == Core::a53) {
    size_t x0, x1, y0, y1, z0, z1;
    SKUA_TURNS(SKUA_SCHEDULED(SKUA_START_A53, SKUA_TURN_A53, SKUA_LAST_A53), [x0] "=&r"(x0), [x1] "=&r"(x1), [y0] "=&r"(y0), [y1] "=&r"(y1), [z0] "=&r"(z0), [z1] "=&r"(z1))
  } else if constexpr (core == Core::a55) {
    SKUA_TURNS(SKUA_SCHEDULED(SKUA_START_A55, SKUA_TURN_A55, SKUA_LAST_A55))
  } else {
    SKUA_TURNS("3:\n" SKUA_STEP SKUA_COUNT SKUA_STEP "bne 3b\n")
  }
  SKUA_TO_ALL(SKUA_RESULT)
}
#endif

#if defined(SKUA_ISA_neon32_fp16)
// Lanes of the first and of the second of two steps. MUL: SKUA_VMLA16, or of the first products of a block, to which nothing is added, SKUA_VMUL16. h0..h5: what goes beside each.
#define SKUA_VMLA16(c, b, a, lane) SKUA_VMLA("f16", "q" #c, b, a, lane)
#define SKUA_VMUL16(c, b, a, lane) "vmul.f16 q" #c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_FIRST(MUL, b, c0, c1, c2, c3, c4, c5, h0, h1, h2, h3, h4, h5) \
  MUL(c0, b, 0, 0) h0 MUL(c1, b, 0, 1) h1 MUL(c2, b, 0, 2) h2 MUL(c3, b, 0, 3) h3 MUL(c4, b, 1, 0) h4 MUL(c5, b, 1, 1) h5
#define SKUA_SECOND(b, c0, c1, c2, c3, c4, c5, h0, h1, h2, h3, h4, h5) \
  SKUA_VMLA16(c0, b, 1, 2) h0 SKUA_VMLA16(c1, b, 1, 3) h1 SKUA_VMLA16(c2, b, 2, 0) h2 SKUA_VMLA16(c3, b, 2, 1) h3 SKUA_VMLA16(c4, b, 2, 2) h4 SKUA_VMLA16(c5, b, 2, 3) h5
#define SKUA_NONE "", "", "", "", "", ""
#define SKUA_COUNT "subs %[turns], %[turns], #1\n"
// Two steps.
#define SKUA_TURN(MUL)                                                                                                                  \
  "vld1.16 {d0-d2}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_CALL(SKUA_FIRST, MUL, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE) SKUA_COUNT                      \
  SKUA_CALL(SKUA_FIRST, MUL, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE) SKUA_ROW_OF_B SKUA_CALL(SKUA_SECOND, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE) \
  SKUA_CALL(SKUA_SECOND, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE)
#define SKUA_CALL(MACRO, ...) MACRO(__VA_ARGS__)
#define SKUA_LOOP "3:" SKUA_TURN(SKUA_VMLA16) "bne 3b\n"
#define SKUA_AGAIN SKUA_TURN(SKUA_VMUL16)
// The same for the A55. Rows of B may lie at any even address, where only vld1 goes. LOAD: of the next turn's.
#define SKUA_HALF_OF_B(d, step) "vld1.16 {d" #d "}, [%[b]]" step "\n"
#define SKUA_TURN_A55(MUL, LOAD)                                                                                                            \
  SKUA_FIRST(MUL, 2, 4, 5, 6, 7, 8, 9, "vldr d2, [%[a], #16]\n", "", SKUA_HALF_OF_B(7, ", %[ldb]"), SKUA_COUNT, "", SKUA_HALF_OF_B(4, "!")) \
  SKUA_FIRST(MUL, 3, 10, 11, 12, 13, 14, 15, "", "", SKUA_HALF_OF_B(5, "!"), LOAD("vldr d0, [%[a], #24]\n"), "", SKUA_HALF_OF_B(6, "!"))    \
  SKUA_SECOND(2, 4, 5, 6, 7, 8, 9, "", "", SKUA_HALF_OF_B(7, ", %[ldb]"), "", "", LOAD(SKUA_HALF_OF_B(4, "!")))                             \
  SKUA_SECOND(3, 10, 11, 12, 13, 14, 15, "", LOAD("vldr d1, [%[a], #32]\n"), LOAD(SKUA_HALF_OF_B(5, "!")), "add %[a], %[a], #24\n", "", LOAD(SKUA_HALF_OF_B(6, "!")))
#define SKUA_SOME(x) x
#define SKUA_NO(x)
#define SKUA_START_A55 "vldr d0, [%[a]]\n vldr d1, [%[a], #8]\n" SKUA_HALF_OF_B(4, "!") SKUA_HALF_OF_B(5, "!") SKUA_HALF_OF_B(6, "!") SKUA_COUNT
#define SKUA_LOOP_A55 SKUA_START_A55 "beq 31f\n 3:" SKUA_TURN_A55(SKUA_VMLA16, SKUA_SOME) "bne 3b\n 31:" SKUA_TURN_A55(SKUA_VMLA16, SKUA_NO)
#define SKUA_AGAIN_A55 SKUA_START_A55 SKUA_TURN_A55(SKUA_VMUL16, SKUA_SOME)
#define SKUA_ROW_A55 SKUA_HALF_OF_B(4, "!") SKUA_HALF_OF_B(5, "!") SKUA_HALF_OF_B(6, "!") SKUA_HALF_OF_B(7, ", %[ldb]")
#define SKUA_ROW_OF_B "vld1.16 {d4-d7}, [%[b]], %[ldb]\n"
// Sums of row 0 in q4 and q10, of row 1 in q5 and q11, ...: X(their D registers).
#define SKUA_BELOW(X) X(10, 11, 22, 23) X(12, 13, 24, 25) X(14, 15, 26, 27) X(16, 17, 28, 29) X(18, 19, 30, 31)
#define SKUA_BY_ROWS(ROW, X) ROW X(8, 9) X(20, 21) ROW X(10, 11) X(22, 23) ROW X(12, 13) X(24, 25) ROW X(14, 15) X(26, 27) ROW X(16, 17) X(28, 29) ROW X(18, 19) X(30, 31)
#define SKUA_PUT(low0, high0, low1, high1) \
  "vcvt.f32.f16 q0, d" #low0 "\n vcvt.f32.f16 q1, d" #high0 "\n vcvt.f32.f16 q2, d" #low1 "\n vcvt.f32.f16 q3, d" #high1 "\n vstmia %[sums]!, {d0-d7}\n"
#define SKUA_ADD_TO(low, high, step) \
  "vld1.32 {d0-d3}, [%[sums]]" step "\n vcvt.f32.f16 q2, d" #low "\n vcvt.f32.f16 q3, d" #high "\n vadd.f32 q0, q0, q2\n vadd.f32 q1, q1, q3\n"
// Row 0 leaves q4 and q10 free for those below.
#define SKUA_ADD_PUT_0(low, high) SKUA_ADD_TO(low, high, "") "vst1.32 {d0-d3}, [%[sums]]!\n"
#define SKUA_ADD_PUT(low0, high0, low1, high1) \
  "vldmia %[sums], {d0-d7}\n vcvt.f32.f16 q4, d" #low0 "\n vcvt.f32.f16 q10, d" #high0 "\n vadd.f32 q0, q0, q4\n vadd.f32 q1, q1, q10\n" \
  "vcvt.f32.f16 q4, d" #low1 "\n vcvt.f32.f16 q10, d" #high1 "\n vadd.f32 q2, q2, q4\n vadd.f32 q3, q3, q10\n vstmia %[sums]!, {d0-d7}\n"
// a: pointers of C's rows, b: where the row's next columns go, from: the bias, turns: of the next columns, ldb: the bounds.
#define SKUA_ROW "ldr %[b], [%[a]], #4\n mov %[turns], %[from]\n"
#define SKUA_END \
  "vld1.32 {d4-d7}, [%[turns]]!\n vadd.f32 q0, q0, q2\n vadd.f32 q1, q1, q3\n vcvt.f16.f32 d0, q0\n vcvt.f16.f32 d1, q1\n vld1.16 {d4-d7}, [%[ldb]]\n" \
  "vmax.f16 q0, q0, q2\n vmin.f16 q0, q0, q3\n vst1.16 {d0, d1}, [%[b]]!\n"
#define SKUA_FINISH(low, high) "vcvt.f32.f16 q0, d" #low "\n vcvt.f32.f16 q1, d" #high "\n" SKUA_END
#define SKUA_ADD_FINISH(low, high) SKUA_ADD_TO(low, high, "!") SKUA_END

// Sums begin at -0: adding a product to it gives the product.
// AGAIN: the first turn of a block that follows one or that sums begin with, of three turns or more. At 6 and 7 Z is set after the last block, and stays.
#define SKUA_BLOCKS(LOOP, AGAIN, ROW) \
  asm volatile( \
    "cmp %[from], #0\n beq 1f\n" \
    "vld1.16 {d8-d11}, [%[from]]!\n vld1.16 {d12-d15}, [%[from]]!\n vld1.16 {d16-d19}, [%[from]]!\n vld1.16 {d20-d23}, [%[from]]!\n vld1.16 {d24-d27}, [%[from]]!\n vld1.16 {d28-d31}, [%[from]]\n b 2f\n" \
    "1: cmp %[turns], #3\n bge 53f\n" \
    "vmov.i16 q4, #0x8000\n vmov.i16 q5, #0x8000\n vmov.i16 q6, #0x8000\n vmov.i16 q7, #0x8000\n vmov.i16 q8, #0x8000\n vmov.i16 q9, #0x8000\n" \
    "vmov.i16 q10, #0x8000\n vmov.i16 q11, #0x8000\n vmov.i16 q12, #0x8000\n vmov.i16 q13, #0x8000\n vmov.i16 q14, #0x8000\n vmov.i16 q15, #0x8000\n" \
    "2: cmp %[turns], #0\n beq 4f\n" LOOP \
    "4: ldr %[turns], [%[late], #4]\n ldr %[from], [%[late], #12]\n ldr %[sums], [%[late], #56]\n subs %[turns], %[turns], #1\n str %[turns], [%[late], #4]\n bne 51f\n" \
    "ldr %[turns], [%[late]]\n tst %[turns], #1\n beq 5f\n" \
    "vld1.16 {d0}, [%[a]]!\n vld1.32 {d1[0]}, [%[a]]!\n" ROW SKUA_CALL(SKUA_FIRST, SKUA_VMLA16, 2, 4, 5, 6, 7, 8, 9, SKUA_NONE) SKUA_CALL(SKUA_FIRST, SKUA_VMLA16, 3, 10, 11, 12, 13, 14, 15, SKUA_NONE) \
    "5: ldr %[turns], [%[late], #8]\n adds %[turns], %[turns], %[from]\n cmp %[turns], #3\n beq 7f\n bgt 8f\n cmp %[turns], #2\n beq 6f\n" \
    "mov %[sums], %[kept]\n" \
    "vst1.16 {d8-d11}, [%[sums]]!\n vst1.16 {d12-d15}, [%[sums]]!\n vst1.16 {d16-d19}, [%[sums]]!\n vst1.16 {d20-d23}, [%[sums]]!\n vst1.16 {d24-d27}, [%[sums]]!\n vst1.16 {d28-d31}, [%[sums]]\n b 10f\n" \
    "51: cmp %[from], #0\n bne 7f\n movs %[from], #1\n str %[from], [%[late], #12]\n" \
    "6:" SKUA_PUT(8, 9, 20, 21) SKUA_BELOW(SKUA_PUT) "b 52f\n" \
    "7:" SKUA_ADD_PUT_0(8, 9) SKUA_ADD_PUT_0(20, 21) SKUA_BELOW(SKUA_ADD_PUT) \
    "52: beq 10f\n ldr %[turns], [%[late], #60]\n" \
    "53:" AGAIN "b 3b\n" \
    "8: cmp %[turns], #4\n ldr %[a], [%[late], #16]\n ldr %[from], [%[late], #20]\n add %[ldb], %[late], #24\n bne 9f\n" SKUA_BY_ROWS(SKUA_ROW, SKUA_FINISH) "b 10f\n" \
    "9:" SKUA_BY_ROWS(SKUA_ROW, SKUA_ADD_FINISH) \
    "10:\n" \
    : [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from), [sums] "=&r"(sums), [ldb] "+r"(ldb) \
    : [late] "r"(&late), [kept] "r"(kept) \
    : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", "memory");

// `blocks` times: [from if from, the first time] + the sum over k steps (even, of several blocks), and what is then done with it (half_sums.h), after the last time: kept as it is, moved to sums,
// more: to those that are there, or made the result with them. Blocks before it are moved.
template <Core core> SKUA_INL void packed_blocks(const GemmTile& t, const f16* a, const f16* b, size_t k, size_t blocks, const F16* from, Then then, bool more, F16* kept, float* sums) {
  size_t turns = k / 2, ldb = t.ldb * sizeof(f16);
  struct {
    size_t k, blocks, then, more;
    void* const* c;
    const float* bias;
    f16 low[F16::L], high[F16::L];
    float* sums;
    size_t turns;
  } late;  // what is read when the loop has left registers free
  late.k = k;
  late.blocks = blocks;
  late.then = size_t(then) * 2;
  late.more = more;
  late.sums = sums;
  late.turns = turns;
  if (then == Then::finish) {
    late.c = t.c;
    late.bias = t.bias ? t.bias : kNoBias;
    F16::set1(t.low).store(late.low);
    F16::set1(t.high).store(late.high);
  }
  if constexpr (core == Core::a55) {
    ldb -= 24;
    SKUA_BLOCKS(SKUA_LOOP_A55, SKUA_AGAIN_A55, SKUA_ROW_A55)
  } else {
    SKUA_BLOCKS(SKUA_LOOP, SKUA_AGAIN, SKUA_ROW_OF_B)
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
#undef SKUA_LOOP
#undef SKUA_AGAIN
#undef SKUA_HALF_OF_B
#undef SKUA_SOME
#undef SKUA_NO
#undef SKUA_LOOP_A55
#undef SKUA_AGAIN_A55
#undef SKUA_ROW_A55
#undef SKUA_ROW_OF_B
#undef SKUA_BY_ROWS
#undef SKUA_PUT
#undef SKUA_ADD_TO
#undef SKUA_ADD_PUT_0
#undef SKUA_ADD_PUT
#undef SKUA_BELOW
#undef SKUA_ROW
#undef SKUA_END
#undef SKUA_FINISH
#undef SKUA_ADD_FINISH
#undef SKUA_BLOCKS
