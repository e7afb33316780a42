// What products of bytes share: operands in words, 4 of the depth each, and the end of a sum in s32, which is
// requantised. product.h says what rows, columns and taps are.
//
//   constant B   words of 4 neighbours along the depth, 4 columns to a vector: B[z][tap][ceil(k / 4)][columns / 4];
//                sums start at bias - a_zero * (sum of the column), so that a tap outside of the image is the zero
//                point. ROW_SUMS: B has a zero point, which takes the sum of the row
//   B an input   (VECTOR_B 0) by elements, zero points subtracted from each
// VECTOR_A: A is read by words, offsets and steps count them; else by bytes with the step a_k. VECTOR_C: results are
// written, residuals read 4 at a time.
#define WORDS ((p.k + 3) / 4)
#if VECTOR_A
#define A_WORD(i, k) (INSIDE(i) ? a[at##i + (k)] ^ p.a_flip : outside)
#else
#define A_BYTE_(i, k, j) (4 * (k) + j < p.k ? BYTE_OF(a, at##i + (4 * (k) + j) * p.a_k) << 8 * j : 0)
#define A_WORD(i, k) \
  (INSIDE(i) ? (A_BYTE_(i, k, 0) | A_BYTE_(i, k, 1) | A_BYTE_(i, k, 2) | A_BYTE_(i, k, 3)) ^ p.a_flip : outside)
#endif
#if VECTOR_C
#define FINISH_BYTES(row, column, y) PUT4(RESULT, c, FINISH_AT(c, row, column), y, SPLAT_I4(zero))
#define OTHER(row, column) UNPACK(r[FINISH_AT(r, row, column)] ^ (RESIDUAL == 2 ? FLIP_U8 : 0))
#else
#define FINISH_ONE_(to, column, j, y) if (COLUMN_OF(column, j) < p.n) PUT1(RESULT, c, to + j * p.c_n, y, zero)
#define FINISH_BYTES(row, column, y)                                    \
  {                                                                     \
    int to = FINISH_AT(c, row, column);                                 \
    FINISH_ONE_(to, column, 0, (y).x) FINISH_ONE_(to, column, 1, (y).y) \
    FINISH_ONE_(to, column, 2, (y).z) FINISH_ONE_(to, column, 3, (y).w) \
  }
#define OTHER_ONE_(at, column, j) \
  (COLUMN_OF(column, j) < p.n ? SIGNED(BYTE_OF(r, (at) + j * p.r_n) ^ (RESIDUAL == 2 ? 128 : 0)) : 0)
#define OTHER_(at, column) \
  MAKE_I4(OTHER_ONE_(at, column, 0), OTHER_ONE_(at, column, 1), OTHER_ONE_(at, column, 2), OTHER_ONE_(at, column, 3))
#define OTHER(row, column) OTHER_(FINISH_AT(r, row, column), column)
#endif

#if VECTOR_B
#define PRODUCT_KERNEL \
  KERNEL6(product, READ1I(0, a), READ4I(1, b), READ4I(2, offsets), READ4F(3, scales), UPDATE1I(4, c), READ1I(5, r))
#define PLACE_OF(column) (p.scales + A_Z_BIAS(column))
#define SCALES scales[ends]
#define MULTIPLIER offsets[ends]
#define SHIFT offsets[ends + p.scales]
#define OUTSIDE ((p.a_zero & 255) * 0x01010101)
#else
#define PRODUCT_KERNEL \
  KERNEL6(product, READ1I(0, a), READ1I(1, b), READ1I(2, bias), READ1I(3, unused), UPDATE1I(4, c), READ1I(5, r))
#define PLACE_OF(column) 0
#define SCALES SPLAT4(AS_FLOAT(p.scales))
#define MULTIPLIER SPLAT_I4(p.scales)
#define SHIFT SPLAT_I4(p.r_scale)
#endif
// What FINISH_SUM wants of its column, which may be any where none of it is written.
#if CONV
#define ENDS(column)                \
  int ends = PLACE_OF(column);      \
  I4 end = offsets[3 * p.scales];   \
  int zero = end.x, r_zero = end.w; \
  F low = AS_FLOAT(end.y), high = AS_FLOAT(end.z), r_scale = scales[3 * p.scales + 1].x;
#else
#define ENDS(column)                    \
  int ends = PLACE_OF(column);          \
  int zero = p.zero, r_zero = p.r_zero; \
  F low = AS_FLOAT(p.low), high = AS_FLOAT(p.high), r_scale = AS_FLOAT(p.r_scale);
#endif
// v less what the zero points of B make of the sum of its row.
#define LESS_ROW_SUM(v, row_sum)                           \
  if (ROW_SUMS == 1) v = v - SPLAT_I4((row_sum) * B_ZERO); \
  if (ROW_SUMS == 2) v = v - SPLAT_I4(row_sum) * offsets[ends + 2 * p.scales];
#define FINISH_SUM(row, column, v)                                                        \
  {                                                                                       \
    EXACT F4 y = TO_FLOAT4(v) * SCALES;                                                   \
    if (FIXED != 0) y = TO_FLOAT4(FIXED4(FIXED, v, MULTIPLIER, SHIFT));                   \
    if (RESIDUAL != 0) {                                                                  \
      EXACT F4 more = TO_FLOAT4(OTHER(row, column) - SPLAT_I4(r_zero)) * SPLAT4(r_scale); \
      y = y + more;                                                                       \
    }                                                                                     \
    y = AT_MOST(AT_LEAST(y, SPLAT4(low)), SPLAT4(high));                                  \
    FINISH_BYTES(row, column, y)                                                          \
  }
