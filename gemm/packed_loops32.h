// The inner loops of AArch32 tiles in assembly. 16 vector registers and by-lane multiplies whose lane lies in the lowest eight D registers (f16) leave compilers no room: they move
// registers, split loads of several, or spill.
//
//   packed A  [k][6]      written by pack_a: f32, one step in d0-d2; f16, two steps in d0-d2 without a gap
//   packed B  [k][ldb]    rows of 8 f32 or 16 f16 in d4-d7
//   6 rows x 2 vectors    12 accumulators + A + B of 16 registers; two loads and 12 multiplies a step (f16: three and 24 for two)
//   f16 goes on from halves to f32 here as well: with all registers taken, the compiler would send every sum through memory.
//
// A multiply by lane rounds its product: vmla, as fma_lane() does.
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

// c[v][r] = [from[v][r] if from] + the sum over 2 * turns steps; ldb: bytes from one row of B to the next. a and b move on.
// V: F32, or I32 of dot products of four bytes.
template <class V, class T> SKUA_INL void packed_turns(V (&c)[2][6], const T*& a, const T*& b, size_t ldb, size_t turns, const V* from) {
  SKUA_TO_ALL(SKUA_NAME)
  asm volatile("cmp %[from], #0\n beq 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)
               "2: cmp %[turns], #0\n beq 4f\n"
               "3:\n" SKUA_STEP "subs %[turns], %[turns], #1\n" SKUA_STEP "bne 3b\n"
               "4:\n"
               : SKUA_SUMS, [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from)
               : [ldb] "r"(ldb)
               : "d0", "d1", "d2", "d4", "d5", "d6", "d7", "cc", "memory");
  SKUA_TO_ALL(SKUA_RESULT)
}
#endif

#if defined(SKUA_ISA_neon32_fp16)
#define SKUA_FIRST(b, c0, c1, c2, c3, c4, c5)                                                                                                    \
  SKUA_VMLA("f16", "q" #c0, b, 0, 0) SKUA_VMLA("f16", "q" #c1, b, 0, 1) SKUA_VMLA("f16", "q" #c2, b, 0, 2) SKUA_VMLA("f16", "q" #c3, b, 0, 3) SKUA_VMLA("f16", "q" #c4, b, 1, 0) \
  SKUA_VMLA("f16", "q" #c5, b, 1, 1)
#define SKUA_SECOND(b, c0, c1, c2, c3, c4, c5)                                                                                                   \
  SKUA_VMLA("f16", "q" #c0, b, 1, 2) SKUA_VMLA("f16", "q" #c1, b, 1, 3) SKUA_VMLA("f16", "q" #c2, b, 2, 0) SKUA_VMLA("f16", "q" #c3, b, 2, 1) SKUA_VMLA("f16", "q" #c4, b, 2, 2) \
  SKUA_VMLA("f16", "q" #c5, b, 2, 3)
// The first products of a block, to which nothing is added.
#define SKUA_BEGIN(b, c0, c1, c2, c3, c4, c5) \
  SKUA_VMUL(c0, b, 0, 0) SKUA_VMUL(c1, b, 0, 1) SKUA_VMUL(c2, b, 0, 2) SKUA_VMUL(c3, b, 0, 3) SKUA_VMUL(c4, b, 1, 0) SKUA_VMUL(c5, b, 1, 1)
#define SKUA_VMUL(c, b, a, lane) "vmul.f16 q" #c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_ROW_OF_B "vld1.16 {d4-d7}, [%[b]], %[ldb]\n"
// Sums of row 0 in q4 and q10, of row 1 in q5 and q11, ...: X(their D registers).
#define SKUA_BY_ROWS(ROW, X) ROW X(8, 9) X(20, 21) ROW X(10, 11) X(22, 23) ROW X(12, 13) X(24, 25) ROW X(14, 15) X(26, 27) ROW X(16, 17) X(28, 29) ROW X(18, 19) X(30, 31)
#define SKUA_PUT(low, high) "vcvt.f32.f16 q0, d" #low "\n vcvt.f32.f16 q1, d" #high "\n vst1.32 {d0-d3}, [%[sums]]!\n"
#define SKUA_ADD_TO(low, high, step) \
  "vld1.32 {d0-d3}, [%[sums]]" step "\n vcvt.f32.f16 q2, d" #low "\n vcvt.f32.f16 q3, d" #high "\n vadd.f32 q0, q0, q2\n vadd.f32 q1, q1, q3\n"
#define SKUA_ADD_PUT(low, high) SKUA_ADD_TO(low, high, "") "vst1.32 {d0-d3}, [%[sums]]!\n"
// a: pointers of C's rows, b: where the row's next columns go, from: the bias, turns: of the next columns, ldb: the bounds.
#define SKUA_ROW "ldr %[b], [%[a]], #4\n mov %[turns], %[from]\n"
#define SKUA_END                                                                                                                                                 \
  "vld1.32 {d4-d7}, [%[turns]]!\n vadd.f32 q0, q0, q2\n vadd.f32 q1, q1, q3\n vcvt.f16.f32 d0, q0\n vcvt.f16.f32 d1, q1\n vld1.16 {d4-d7}, [%[ldb]]\n" \
  "vmax.f16 q0, q0, q2\n vmin.f16 q0, q0, q3\n vst1.16 {d0, d1}, [%[b]]!\n"
#define SKUA_FINISH(low, high) "vcvt.f32.f16 q0, d" #low "\n vcvt.f32.f16 q1, d" #high "\n" SKUA_END
#define SKUA_ADD_FINISH(low, high) SKUA_ADD_TO(low, high, "!") SKUA_END

// `blocks` times: [from if from, the first time] + the sum over k steps (even, of several blocks), and what is then done with it (half_sums.h), after the last time: kept as it is, moved to sums,
// more: to those that are there, or made the result with them. Blocks before it are moved.
SKUA_INL void packed_blocks(const GemmTile& t, const f16* a, const f16* b, size_t k, size_t blocks, const F16* from, Then then, bool more, F16* kept, float* sums) {
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
  asm volatile(
      "cmp %[from], #0\n beq 1f\n"
      "vld1.16 {d8-d11}, [%[from]]!\n vld1.16 {d12-d15}, [%[from]]!\n vld1.16 {d16-d19}, [%[from]]!\n vld1.16 {d20-d23}, [%[from]]!\n vld1.16 {d24-d27}, [%[from]]!\n vld1.16 {d28-d31}, [%[from]]\n b 2f\n"
      // Sums begin at -0: adding a product to it gives the product.
      "1: vmov.i16 q4, #0x8000\n vmov.i16 q5, #0x8000\n vmov.i16 q6, #0x8000\n vmov.i16 q7, #0x8000\n vmov.i16 q8, #0x8000\n vmov.i16 q9, #0x8000\n"
      "vmov.i16 q10, #0x8000\n vmov.i16 q11, #0x8000\n vmov.i16 q12, #0x8000\n vmov.i16 q13, #0x8000\n vmov.i16 q14, #0x8000\n vmov.i16 q15, #0x8000\n"
      "2: cmp %[turns], #0\n beq 4f\n"
      "3: vld1.16 {d0-d2}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_FIRST(2, 4, 5, 6, 7, 8, 9) "subs %[turns], %[turns], #1\n" SKUA_FIRST(3, 10, 11, 12, 13, 14, 15)
      SKUA_ROW_OF_B SKUA_SECOND(2, 4, 5, 6, 7, 8, 9) SKUA_SECOND(3, 10, 11, 12, 13, 14, 15) "bne 3b\n"
      "4: ldr %[turns], [%[late]]\n tst %[turns], #1\n beq 5f\n"
      "vld1.16 {d0}, [%[a]]!\n vld1.32 {d1[0]}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_FIRST(2, 4, 5, 6, 7, 8, 9) SKUA_FIRST(3, 10, 11, 12, 13, 14, 15)
      "5: ldr %[from], [%[late], #12]\n ldr %[turns], [%[late], #4]\n ldr %[sums], [%[late], #56]\n subs %[turns], %[turns], #1\n str %[turns], [%[late], #4]\n bne 51f\n"
      "ldr %[turns], [%[late], #8]\n adds %[turns], %[turns], %[from]\n cmp %[turns], #3\n beq 7f\n bgt 8f\n cmp %[turns], #2\n beq 6f\n"
      "mov %[sums], %[kept]\n"
      "vst1.16 {d8-d11}, [%[sums]]!\n vst1.16 {d12-d15}, [%[sums]]!\n vst1.16 {d16-d19}, [%[sums]]!\n vst1.16 {d20-d23}, [%[sums]]!\n vst1.16 {d24-d27}, [%[sums]]!\n vst1.16 {d28-d31}, [%[sums]]\n b 10f\n"
      "51: cmp %[from], #0\n bne 7f\n mov %[from], #1\n str %[from], [%[late], #12]\n"
      "6:" SKUA_BY_ROWS("", SKUA_PUT) "b 52f\n"
      "7:" SKUA_BY_ROWS("", SKUA_ADD_PUT)
      "52: ldr %[turns], [%[late], #4]\n cmp %[turns], #0\n beq 10f\n ldr %[turns], [%[late], #60]\n"
      "vld1.16 {d0-d2}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_BEGIN(2, 4, 5, 6, 7, 8, 9) "subs %[turns], %[turns], #1\n" SKUA_BEGIN(3, 10, 11, 12, 13, 14, 15)
      SKUA_ROW_OF_B SKUA_SECOND(2, 4, 5, 6, 7, 8, 9) SKUA_SECOND(3, 10, 11, 12, 13, 14, 15) "b 2b\n"
      "8: cmp %[turns], #4\n ldr %[a], [%[late], #16]\n ldr %[from], [%[late], #20]\n add %[ldb], %[late], #24\n bne 9f\n" SKUA_BY_ROWS(SKUA_ROW, SKUA_FINISH) "b 10f\n"
      "9:" SKUA_BY_ROWS(SKUA_ROW, SKUA_ADD_FINISH)
      "10:\n"
      : [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from), [sums] "=&r"(sums), [ldb] "+r"(ldb)
      : [late] "r"(&late), [kept] "r"(kept)
      : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15", "cc", "memory");
}
#endif

#undef SKUA_VMLA
#undef SKUA_LANE
#undef SKUA_CLEAR
#undef SKUA_FILL
#undef SKUA_TO_ALL
#undef SKUA_SUMS
#undef SKUA_NAME
#undef SKUA_RESULT
#undef SKUA_SIX
#undef SKUA_STEP
#undef SKUA_FIRST
#undef SKUA_BEGIN
#undef SKUA_VMUL
#undef SKUA_SECOND
#undef SKUA_ROW_OF_B
#undef SKUA_BY_ROWS
#undef SKUA_PUT
#undef SKUA_ADD_TO
#undef SKUA_ADD_PUT
#undef SKUA_ROW
#undef SKUA_END
#undef SKUA_FINISH
#undef SKUA_ADD_FINISH
