// The register tile: a thread sums TM rows by 4 columns. Per 4 of k it loads TM vectors of A, which its neighbours
// along columns load too, and 4 of B for 16 * TM multiplications.
// ARITH16: these and 64 additions behind one another are f16, which then goes to sums of f32.
#if ARITH16
#define TERMS 64
#define PART(i) part##i
#define WIDEN(i) sum##i = sum##i + WIDE4(part##i); part##i = SPLAT_H4(0.0f);
#define START(i) F4 sum##i = SPLAT4(0.0f); H4 part##i = SPLAT_H4(0.0f); PLACE(i, min(first + i, p.m - 1))
#else
#define PART(i) sum##i
#define START(i) F4 sum##i = SPLAT4(0.0f); PLACE(i, min(first + i, p.m - 1))
#endif
KERNEL5(product, A_BINDING, B_BINDING, BIAS_BINDING, R_BINDING, C_BINDING) BODY {
  int column = GLOBAL(0), first = GLOBAL(1) * TM, z = GLOBAL(2);
  if (column >= COLUMNS || first >= p.m) return;
#if ARITH16
  int left = TERMS / 4;
#endif
  REPEAT(TM, START)
  TAPS {
    REPEAT(TM, MOVE)
#if CONV
#define ANY(i) || inside##i
    if (!(false REPEAT(TM, ANY))) continue;
#endif
#if VECTOR_B != 2
    int row = B_ROW(tap, 0);
#endif
    for (int k = 0; k < DEPTH; k++) {
#if VECTOR_B == 2
      F4 b0 = LOAD_BT(4 * column, k), b1 = LOAD_BT(4 * column + 1, k), b2 = LOAD_BT(4 * column + 2, k),
         b3 = LOAD_BT(4 * column + 3, k);
#define STEP(i)                                                                  \
  {                                                                              \
    F4 v = LD4(a, at##i + k);                                                    \
    sum##i = sum##i + MAKE4(dot(v, b0), dot(v, b1), dot(v, b2), dot(v, b3));     \
  }
#elif VECTOR_A
      H4 b0 = LOAD_B(row, column), b1 = LOAD_B(row + 1, column), b2 = LOAD_B(row + 2, column),
         b3 = LOAD_B(row + 3, column);
      row += 4;
#define STEP(i)                                            \
  {                                                        \
    H4 v = INSIDE(i) ? LDH4(a, at##i + k) : SPLAT_H4(0.0f); \
    PART(i) = FMA(SPLAT_H4(v.x), b0, PART(i));             \
    PART(i) = FMA(SPLAT_H4(v.y), b1, PART(i));             \
    PART(i) = FMA(SPLAT_H4(v.z), b2, PART(i));             \
    PART(i) = FMA(SPLAT_H4(v.w), b3, PART(i));             \
  }
#else
      F4 b0 = LOAD_B(row, column);
      row += 1;
#define STEP(i) sum##i = FMA(SPLAT4(INSIDE(i) ? LD1(a, at##i + k * p.a_k) : 0.0f), b0, sum##i);
#endif
      REPEAT(TM, STEP)
#if ARITH16
      left -= 1;
      if (left == 0) {
        REPEAT(TM, WIDEN)
        left = TERMS / 4;
      }
#endif
    }
  }
#if ARITH16
  REPEAT(TM, WIDEN)
#endif
  for (int i = 0; i < TM; i++) {
    if (first + i >= p.m) return;
    F4 v = sum0;
#define PICK(j) if (i == j) v = sum##j;
    REPEAT(TM, PICK)
    FINISH(first + i, column, v)
  }
} END
