// The register tile of bytes: a thread sums TM rows by 4 columns in s32, 4 of the depth at a time.
PRODUCT_KERNEL BODY {
  int column = GLOBAL(0), first = GLOBAL(1) * TM, z = GLOBAL(2);
  if (column >= COLUMNS || first >= p.m) return;
#if VECTOR_B
  I4 begin = offsets[A_Z_BIAS(column)];
#else
#define BIAS_(j) (BIAS == 1 && 4 * column + j < p.n ? bias[4 * column + j] : 0)
  I4 begin = MAKE_I4(BIAS_(0), BIAS_(1), BIAS_(2), BIAS_(3));
#endif
#define START(i) I4 sum##i = begin; int row_sum##i = 0; PLACE(i, min(first + i, p.m - 1))
  REPEAT(TM, START)
#if VECTOR_B
  int outside = OUTSIDE;
  TAPS {
    REPEAT(TM, MOVE)
    for (int k = 0; k < WORDS; k++) {
      I4 w = b[B_AT(B_WORDS(tap, k), column)];
#define STEP(i)                                                                                                   \
  {                                                                                                               \
    int v = A_WORD(i, k);                                                                                         \
    sum##i = MAKE_I4(DOT4(v, w.x, sum##i.x), DOT4(v, w.y, sum##i.y), DOT4(v, w.z, sum##i.z), DOT4(v, w.w, sum##i.w)); \
    if (ROW_SUMS != 0) row_sum##i = DOT4(v, 0x01010101, row_sum##i);                                              \
  }
      REPEAT(TM, STEP)
    }
  }
#else
  for (int k = 0; k < p.k; k++) {
#define B_(j)                                                                                                    \
  (4 * column + j < p.n                                                                                          \
       ? SIGNED(BYTE_OF(b, p.b_offset + z * p.b_z + k * p.b_k + (4 * column + j) * p.b_n) ^ p.b_flip) - p.b_zero \
       : 0)
    I4 w = MAKE_I4(B_(0), B_(1), B_(2), B_(3));
#define STEP(i) sum##i = sum##i + SPLAT_I4(SIGNED(BYTE_OF(a, at##i + k * p.a_k) ^ p.a_flip) - p.a_zero) * w;
    REPEAT(TM, STEP)
  }
#endif
  ENDS(column)
  for (int i = 0; i < TM; i++) {
    if (first + i >= p.m) return;
    I4 v = sum0;
    int row_sum = 0;
#define PICK(j) if (i == j) { v = sum##j; row_sum = row_sum##j; }
    REPEAT(TM, PICK)
#if VECTOR_B
    LESS_ROW_SUM(v, row_sum)
#endif
    FINISH_SUM(first + i, column, v)
  }
} END
