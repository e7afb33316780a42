// The inner loops of AArch32 tiles in assembly. 16 vector registers and by-lane multiplies whose lane lies in the lowest eight D registers (f16) leave compilers no room: they move
// registers, split loads of several, or spill.
//
//   packed A  [k][6]      written by pack_a: f32, one step in d0-d2; f16, two steps in d0-d2 without a gap
//   packed B  [k][ldb]    rows of 8 f32 or 16 f16 in d4-d7
//   6 rows x 2 vectors    12 accumulators + A + B of 16 registers; two loads and 12 multiplies a step (f16: three and 24 for two)
//
// A multiply by lane rounds its product: vmla, as fma_lane() does.
#pragma once

#define SKUA_VMLA(type, c, b, a, lane) "vmla." type " %q" #c ", q" #b ", d" #a "[" #lane "]\n"
#define SKUA_CLEAR(c) "vmov.i32 %q" #c ", #0\n"
#define SKUA_FILL(c) "vld1.32 {%e" #c ", %f" #c "}, [%[from]]!\n"
#define SKUA_TO_ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define SKUA_SUMS                                                                                                                       \
  "=w"(c[0][0].v), "=w"(c[0][1].v), "=w"(c[0][2].v), "=w"(c[0][3].v), "=w"(c[0][4].v), "=w"(c[0][5].v), "=w"(c[1][0].v), "=w"(c[1][1].v), \
      "=w"(c[1][2].v), "=w"(c[1][3].v), "=w"(c[1][4].v), "=w"(c[1][5].v)

#if defined(SKUA_ISA_neon32)
#define SKUA_SIX(b, c0, c1, c2, c3, c4, c5)                                                                                                      \
  SKUA_VMLA("f32", c0, b, 0, 0) SKUA_VMLA("f32", c1, b, 0, 1) SKUA_VMLA("f32", c2, b, 1, 0) SKUA_VMLA("f32", c3, b, 1, 1) SKUA_VMLA("f32", c4, b, 2, 0) \
  SKUA_VMLA("f32", c5, b, 2, 1)
#define SKUA_STEP "vld1.32 {d0-d2}, [%[a]]!\n vld1.32 {d4-d7}, [%[b]], %[ldb]\n" SKUA_SIX(2, 0, 1, 2, 3, 4, 5) SKUA_SIX(3, 6, 7, 8, 9, 10, 11)

// c[v][r] = [from[v][r] if from] + the sum over 2 * turns steps; ldb: bytes from one row of B to the next. a and b move on.
SKUA_INL void packed_turns(F32 (&c)[2][6], const float*& a, const float*& b, size_t ldb, size_t turns, const F32* from) {
  asm volatile("cmp %[from], #0\n beq 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)
               "2: cmp %[turns], #0\n beq 4f\n"
               "3:\n" SKUA_STEP "subs %[turns], %[turns], #1\n" SKUA_STEP "bne 3b\n"
               "4:\n"
               : SKUA_SUMS, [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from)
               : [ldb] "r"(ldb)
               : "d0", "d1", "d2", "d4", "d5", "d6", "d7", "cc", "memory");
}
#endif

#if defined(SKUA_ISA_neon32_fp16)
#define SKUA_FIRST(b, c0, c1, c2, c3, c4, c5)                                                                                                    \
  SKUA_VMLA("f16", c0, b, 0, 0) SKUA_VMLA("f16", c1, b, 0, 1) SKUA_VMLA("f16", c2, b, 0, 2) SKUA_VMLA("f16", c3, b, 0, 3) SKUA_VMLA("f16", c4, b, 1, 0) \
  SKUA_VMLA("f16", c5, b, 1, 1)
#define SKUA_SECOND(b, c0, c1, c2, c3, c4, c5)                                                                                                   \
  SKUA_VMLA("f16", c0, b, 1, 2) SKUA_VMLA("f16", c1, b, 1, 3) SKUA_VMLA("f16", c2, b, 2, 0) SKUA_VMLA("f16", c3, b, 2, 1) SKUA_VMLA("f16", c4, b, 2, 2) \
  SKUA_VMLA("f16", c5, b, 2, 3)
#define SKUA_ROW_OF_B "vld1.16 {d4-d7}, [%[b]], %[ldb]\n"

// c[v][r] = [from[v][r] if from] + the sum over k steps; ldb: bytes from one row of B to the next.
template <Core> SKUA_INL void packed_loop(F16 (&c)[2][6], const f16* a, const f16* b, size_t ldb, size_t k, const F16* from) {
  size_t turns = k / 2;
  asm volatile("cmp %[from], #0\n beq 1f\n" SKUA_TO_ALL(SKUA_FILL) "b 2f\n"
               "1:\n" SKUA_TO_ALL(SKUA_CLEAR)
               "2: cmp %[turns], #0\n beq 4f\n"
               "3: vld1.16 {d0-d2}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_FIRST(2, 0, 1, 2, 3, 4, 5) "subs %[turns], %[turns], #1\n" SKUA_FIRST(3, 6, 7, 8, 9, 10, 11)
               SKUA_ROW_OF_B SKUA_SECOND(2, 0, 1, 2, 3, 4, 5) SKUA_SECOND(3, 6, 7, 8, 9, 10, 11) "bne 3b\n"
               "4: tst %[k], #1\n beq 5f\n"
               "vld1.16 {d0}, [%[a]]!\n vld1.32 {d1[0]}, [%[a]]!\n" SKUA_ROW_OF_B SKUA_FIRST(2, 0, 1, 2, 3, 4, 5) SKUA_FIRST(3, 6, 7, 8, 9, 10, 11)
               "5:\n"
               : SKUA_SUMS, [a] "+r"(a), [b] "+r"(b), [turns] "+r"(turns), [from] "+r"(from)
               : [ldb] "r"(ldb), [k] "r"(k)
               : "d0", "d1", "d2", "d4", "d5", "d6", "d7", "cc", "memory");
}
#endif

#undef SKUA_VMLA
#undef SKUA_CLEAR
#undef SKUA_FILL
#undef SKUA_TO_ALL
#undef SKUA_SUMS
#undef SKUA_SIX
#undef SKUA_STEP
#undef SKUA_FIRST
#undef SKUA_SECOND
#undef SKUA_ROW_OF_B
