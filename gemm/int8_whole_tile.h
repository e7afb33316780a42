// AVX2's tile of 6x16 bytes as written, from the first sum to the last store, where results are bytes and nothing but
// columns' scales and C's zero point come to them. What the compiler puts around its loop was a third of the
// instructions of a tile 27 deep, and its loop moves a pointer and asks for a line with every pair of the depth: 755
// instructions there, here 592.
//
// Registers: ymm0-11 sums, row after row; 12, 13 B, then scales; 14, 15 A and a product, then what comes to the scaled
// sums.
#pragma once
#include <stddef.h>
#include "gemm/int8_finish.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx2)
// What the assembly reads beside its operands, by these offsets. Bytes are clamped without a sign, those of s8 128
// more.
struct WholeBytes {
  Quad low, high;        //   0  32
  Quad flip;             //  64       what makes C's type of them
  Quad zero;             //  96       words: C's zero point, of s8 128 more; not where GemmTile::positive
  Quad order;            // 128       by_vectors()
  Quad start;            // 160       what sums begin above the offset
  Quad minus;            // 192       floats: what that is of a result before its scale
  size_t fours, ones;    // 224 232   pairs of the depth, by four and by one
  const int32_t* offset; // 240
  const float* scale;    // 248
};

static_assert(alignof(WholeBytes) == 32 && offsetof(WholeBytes, high) == 32 && offsetof(WholeBytes, flip) == 64 &&
              offsetof(WholeBytes, zero) == 96 && offsetof(WholeBytes, order) == 128 &&
              offsetof(WholeBytes, start) == 160 && offsetof(WholeBytes, minus) == 192 &&
              offsetof(WholeBytes, fours) == 224 && offsetof(WholeBytes, ones) == 232 &&
              offsetof(WholeBytes, offset) == 240 && offsetof(WholeBytes, scale) == 248);

// One run of the depth, all 16 columns, and an end that the assembly has.
inline bool is_whole(const GemmTile& t) {
  if (!t.fits || !plain_bytes(t) || t.b_zero || t.n != 2 * L || t.ldb != 2 * L * 2) return false;
  const size_t depth = (t.k + 1) / 2 * 2;  // of a segment
  for (size_t s = 1; s < t.segment_count; ++s)
    if (t.segments[s].b != t.segments[s - 1].b + ptrdiff_t(depth)) return false;
  return true;
}

#define SKUA_PAIRS_OF_ROW(a, s0, s1)                                                                              \
  "vpbroadcastd " a ", %%ymm14\n vpmaddwd %%ymm12, %%ymm14, %%ymm15\n vpmaddwd %%ymm13, %%ymm14, %%ymm14\n"       \
  "vpaddd %%ymm15, %%ymm" #s0 ", %%ymm" #s0 "\n vpaddd %%ymm14, %%ymm" #s1 ", %%ymm" #s1 "\n"
#define SKUA_PAIR(a, b, b2)                                                                                       \
  "vpmovsxbw " b "(%[b]), %%ymm12\n vpmovsxbw " b2 "(%[b]), %%ymm13\n"                                            \
  SKUA_PAIRS_OF_ROW(a "(%[a])", 0, 1) SKUA_PAIRS_OF_ROW(a "(%[a],%[i])", 2, 3)                                    \
  SKUA_PAIRS_OF_ROW(a "(%[a],%[i],2)", 4, 5) SKUA_PAIRS_OF_ROW(a "(%[a],%[j])", 6, 7)                             \
  SKUA_PAIRS_OF_ROW(a "(%[a],%[i],4)", 8, 9) SKUA_PAIRS_OF_ROW(a "(%[a],%[k])", 10, 11)
#define SKUA_COPY(from, to) "vmovdqa %%ymm" #from ", %%ymm" #to "\n"
#define SKUA_SUMS                                                                                                 \
  "mov 240(%[p]), %[q]\n vmovdqa 160(%[p]), %%ymm14\n"                                                            \
  "vpaddd (%[q]), %%ymm14, %%ymm0\n vpaddd 32(%[q]), %%ymm14, %%ymm1\n"                                           \
  SKUA_COPY(0, 2) SKUA_COPY(1, 3) SKUA_COPY(0, 4) SKUA_COPY(1, 5) SKUA_COPY(0, 6) SKUA_COPY(1, 7)                 \
  SKUA_COPY(0, 8) SKUA_COPY(1, 9) SKUA_COPY(0, 10) SKUA_COPY(1, 11)                                               \
  "mov 224(%[p]), %[q]\n test %[q], %[q]\n jz 2f\n"                                                               \
  ".p2align 5\n"                                                                                                  \
  "1:" SKUA_PAIR("0", "0", "16") "prefetcht1 (%[b],%[ahead])\n" SKUA_PAIR("4", "32", "48")                        \
  SKUA_PAIR("8", "64", "80") "prefetcht1 64(%[b],%[ahead])\n" SKUA_PAIR("12", "96", "112")                        \
  "add $16, %[a]\n sub $-128, %[b]\n dec %[q]\n jnz 1b\n"                                                         \
  "2: mov 232(%[p]), %[q]\n test %[q], %[q]\n jz 4f\n"                                                            \
  "3:" SKUA_PAIR("0", "0", "16") "add $4, %[a]\n add $32, %[b]\n dec %[q]\n jnz 3b\n"                             \
  "4: mov 248(%[p]), %[q]\n vmovups (%[q]), %%ymm12\n vmovups 32(%[q]), %%ymm13\n"

#define SKUA_CONVERT(name, s) name " %%ymm" #s ", %%ymm" #s "\n"
#define SKUA_BY(name, from, s) name " " from ", %%ymm" #s ", %%ymm" #s "\n"
#define SKUA_SCALED_FROM_0(s, t)                            \
  SKUA_CONVERT("vcvtdq2ps", s) SKUA_CONVERT("vcvtdq2ps", t) \
  SKUA_BY("vmulps", "%%ymm12", s) SKUA_BY("vmulps", "%%ymm13", t)
#define SKUA_SCALED_FROM_2_23(s, t) \
  "vfmadd213ps %%ymm14, %%ymm12, %%ymm" #s "\n vfmadd213ps %%ymm15, %%ymm13, %%ymm" #t "\n"
#define SKUA_WORDS(s, t) SKUA_CONVERT("vcvtps2dq", s) SKUA_CONVERT("vcvtps2dq", t) SKUA_BY("vpackssdw", "%%ymm" #t, s)
// Two rows; ymm1 has the order of their words once its sum is in ymm0.
#define SKUA_ROWS(scaled, zero, order, s0, s1, s2, s3)                                        \
  scaled(s0, s1) scaled(s2, s3) SKUA_WORDS(s0, s1) SKUA_WORDS(s2, s3) zero(s0) zero(s2) order \
  SKUA_BY("vpackuswb", "%%ymm" #s2, s0) SKUA_BY("vpmaxub", "(%[p])", s0)                      \
  SKUA_BY("vpminub", "32(%[p])", s0) SKUA_BY("vpxor", "64(%[p])", s0)                         \
  "vpermd %%ymm" #s0 ", %%ymm1, %%ymm" #s0 "\n"                                               \
  "vmovdqu %%xmm" #s0 ", (%[c])\n vextracti128 $1, %%ymm" #s0 ", (%[c],%[l])\n"
#define SKUA_ENDS(scaled, zero)                                                                                   \
  SKUA_ROWS(scaled, zero, "vmovdqa 128(%[p]), %%ymm1\n", 0, 1, 2, 3) "lea (%[c],%[l],2), %[c]\n"                   \
  SKUA_ROWS(scaled, zero, "", 4, 5, 6, 7) "lea (%[c],%[l],2), %[c]\n" SKUA_ROWS(scaled, zero, "", 8, 9, 10, 11)
#define SKUA_PLUS_ZERO(s) SKUA_BY("vpaddsw", "%%ymm14", s)
#define SKUA_NO_ZERO(s)
#define SKUA_END_FROM_0 "vmovdqa 96(%[p]), %%ymm14\n" SKUA_ENDS(SKUA_SCALED_FROM_0, SKUA_PLUS_ZERO)
#define SKUA_END_FROM_2_23                                                    \
  "vmulps 192(%[p]), %%ymm12, %%ymm14\n vmulps 192(%[p]), %%ymm13, %%ymm15\n" \
  SKUA_ENDS(SKUA_SCALED_FROM_2_23, SKUA_NO_ZERO)

// A tile: rows of A at i, 2i, j = 3i, 4i and k = 5i bytes, `ahead` bytes from a row of B to the one that is asked for
// beside it, `l` bytes from a row of C to the next.
template <bool positive>
SKUA_INL void whole_tile(const WholeBytes& w, const char* a, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k, const char* b,
                         ptrdiff_t ahead, char* c, ptrdiff_t l) {
  size_t q;
#define SKUA_AS_WRITTEN(text)                                                                                    \
  asm volatile(text : [a] "+&r"(a), [b] "+&r"(b), [c] "+&r"(c), [q] "=&r"(q)                                     \
               : [p] "r"(&w), [i] "r"(i), [j] "r"(j), [k] "r"(k), [ahead] "r"(ahead), [l] "r"(l)                 \
               : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")
  if constexpr (positive) SKUA_AS_WRITTEN(SKUA_SUMS SKUA_END_FROM_2_23);
  else SKUA_AS_WRITTEN(SKUA_SUMS SKUA_END_FROM_0);
#undef SKUA_AS_WRITTEN
}
#undef SKUA_PAIRS_OF_ROW
#undef SKUA_PAIR
#undef SKUA_COPY
#undef SKUA_SUMS
#undef SKUA_CONVERT
#undef SKUA_BY
#undef SKUA_SCALED_FROM_0
#undef SKUA_SCALED_FROM_2_23
#undef SKUA_WORDS
#undef SKUA_ROWS
#undef SKUA_ENDS
#undef SKUA_PLUS_ZERO
#undef SKUA_NO_ZERO
#undef SKUA_END_FROM_0
#undef SKUA_END_FROM_2_23

template <bool positive> __attribute__((noinline)) void whole_tiles(const GemmTile& t) {
  const int up = t.c_type == Element::s8 ? 128 : 0, first = t.zero + up;  // 0 where GemmTile::positive
  const size_t pairs = t.segment_count * ((t.k + 1) / 2);
  WholeBytes w;
  w.low = every_byte(int(t.low) + first), w.high = every_byte(int(t.high) + first), w.flip = every_byte(up),
  w.zero = every_word(t.zero + up);
  w.order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  w.start = _mm256_set1_epi32(positive ? kTwoTo23 : 0);
  w.minus = _mm256_castps_si256(_mm256_set1_ps(-8388608.0f));
  w.fours = pairs / 4, w.ones = pairs % 4;
  w.offset = t.offset, w.scale = t.scale;
  const ptrdiff_t row = ptrdiff_t(pairs * 4), step = t.a_step * 2 * 6, c_row = t.c_step;
  const char *a = static_cast<const char*>(t.a[0]), *b = static_cast<const char*>(t.b) + t.segments[0].b * 2 * L;
  char* c = static_cast<char*>(t.c[0]);
  for (size_t i = 0, groups = t.groups, ahead = size_t(t.ahead); i < groups; ++i, a += step, c += 6 * c_row)
    whole_tile<positive>(w, a, row, 3 * row, 5 * row, b, ahead && i < 2 ? ptrdiff_t(ahead + i * 64) : 0, c, c_row);
}
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
