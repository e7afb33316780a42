// Products of bytes by register tiles: a thread sums TM rows by 4 columns in s32, 4 of the depth at a time, and requantises them. product.h says what rows, columns and taps are.
//
//   constant B   words of 4 neighbours along the depth, 4 columns to a vector: B[z][tap][ceil(k / 4)][columns / 4]; sums start at bias - a_zero * (sum of the column), so that a tap outside of
//                the image is the zero point. ROW_SUMS: B has a zero point, which takes the sum of the row
//   B an input   (VECTOR_B 0) by elements, zero points subtracted from each
// VECTOR_A: A is read by words, offsets and steps count them; else by bytes with the step a_k. VECTOR_C: results are written, residuals read 4 at a time.
#define WORDS ((p.k + 3) / 4)
#if VECTOR_A
#define A_WORD(i, k) (INSIDE(i) ? a[at##i + (k)] ^ p.a_flip : outside)
#else
#define A_BYTE_(i, k, j) (4 * (k) + j < p.k ? BYTE_OF(a, at##i + (4 * (k) + j) * p.a_k) << 8 * j : 0)
#define A_WORD(i, k) (INSIDE(i) ? (A_BYTE_(i, k, 0) | A_BYTE_(i, k, 1) | A_BYTE_(i, k, 2) | A_BYTE_(i, k, 3)) ^ p.a_flip : outside)
#endif
#if VECTOR_C
#define FINISH_BYTES(row, column, y) PUT4(RESULT, c, FINISH_AT(c, row, column), y, SPLAT_I4(zero))
#define OTHER(row, column) UNPACK(r[FINISH_AT(r, row, column)] ^ (RESIDUAL == 2 ? FLIP_U8 : 0))
#else
#define FINISH_ONE_(to, column, j, y) if (COLUMN_OF(column, j) < p.n) PUT1(RESULT, c, to + j * p.c_n, y, zero)
#define FINISH_BYTES(row, column, y)                                                                                              \
  {                                                                                                                               \
    int to = FINISH_AT(c, row, column);                                                                                           \
    FINISH_ONE_(to, column, 0, (y).x) FINISH_ONE_(to, column, 1, (y).y) FINISH_ONE_(to, column, 2, (y).z) FINISH_ONE_(to, column, 3, (y).w) \
  }
#define OTHER_ONE_(at, column, j) (COLUMN_OF(column, j) < p.n ? SIGNED(BYTE_OF(r, (at) + j * p.r_n) ^ (RESIDUAL == 2 ? 128 : 0)) : 0)
#define OTHER_(at, column) MAKE_I4(OTHER_ONE_(at, column, 0), OTHER_ONE_(at, column, 1), OTHER_ONE_(at, column, 2), OTHER_ONE_(at, column, 3))
#define OTHER(row, column) OTHER_(FINISH_AT(r, row, column), column)
#endif

#if VECTOR_B
KERNEL6(product, READ1I(0, a), READ4I(1, b), READ4I(2, offsets), READ4F(3, scales), UPDATE1I(4, c), READ1I(5, r)) BODY {
#else
KERNEL6(product, READ1I(0, a), READ1I(1, b), READ1I(2, bias), READ1I(3, unused), UPDATE1I(4, c), READ1I(5, r)) BODY {
#endif
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
  int outside = (p.a_zero & 255) * 0x01010101;
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
#define B_(j) (4 * column + j < p.n ? SIGNED(BYTE_OF(b, p.b_offset + z * p.b_z + k * p.b_k + (4 * column + j) * p.b_n) ^ p.b_flip) - p.b_zero : 0)
    I4 w = MAKE_I4(B_(0), B_(1), B_(2), B_(3));
#define STEP(i) sum##i = sum##i + SPLAT_I4(SIGNED(BYTE_OF(a, at##i + k * p.a_k) ^ p.a_flip) - p.a_zero) * w;
    REPEAT(TM, STEP)
  }
#endif
#if CONV
  I4 end = offsets[3 * p.scales];
  int zero = end.x, r_zero = end.w;
  F low = AS_FLOAT(end.y), high = AS_FLOAT(end.z), r_scale = scales[3 * p.scales + 1].x;
#else
  int zero = p.zero, r_zero = p.r_zero;
  F low = AS_FLOAT(p.low), high = AS_FLOAT(p.high), r_scale = AS_FLOAT(p.r_scale);
#endif
#if VECTOR_B
  int place = p.scales + A_Z_BIAS(column);
#define MULTIPLIER offsets[place]
#define SHIFT offsets[place + p.scales]
#else
#define MULTIPLIER SPLAT_I4(p.scales)
#define SHIFT SPLAT_I4(p.r_scale)
#endif
  for (int i = 0; i < TM; i++) {
    if (first + i >= p.m) return;
    I4 v = sum0;
    int row_sum = 0;
#define PICK(j) if (i == j) { v = sum##j; row_sum = row_sum##j; }
    REPEAT(TM, PICK)
#if VECTOR_B
    if (ROW_SUMS == 1) v = v - SPLAT_I4(row_sum * B_ZERO);
    if (ROW_SUMS == 2) v = v - SPLAT_I4(row_sum) * offsets[place + 2 * p.scales];
    F4 scale = scales[place];
#else
    F4 scale = SPLAT4(AS_FLOAT(p.scales));
#endif
    EXACT F4 y = TO_FLOAT4(v) * scale;
    if (FIXED != 0) y = TO_FLOAT4(FIXED4(FIXED, v, MULTIPLIER, SHIFT));
    if (RESIDUAL != 0) {
      EXACT F4 more = TO_FLOAT4(OTHER(first + i, column) - SPLAT_I4(r_zero)) * SPLAT4(r_scale);
      y = y + more;
    }
    y = AT_MOST(AT_LEAST(y, SPLAT4(low)), SPLAT4(high));
    FINISH_BYTES(first + i, column, y)
  }
} END
