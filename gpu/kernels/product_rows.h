// The register tile: a thread sums TM rows by 4 columns. Per 4 of k it loads TM vectors of A, which its neighbours along columns load too, and 4 of B for 16 * TM multiplications.
KERNEL5(product, A_BINDING, B_BINDING, BIAS_BINDING, R_BINDING, C_BINDING) BODY {
  int column = GLOBAL(0), first = GLOBAL(1) * TM, z = GLOBAL(2);
  if (column >= COLUMNS || first >= p.m) return;
#define START(i) F4 sum##i = SPLAT4(0.0f); PLACE(i, min(first + i, p.m - 1))
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
      F4 b0 = LOAD_BT(4 * column, k), b1 = LOAD_BT(4 * column + 1, k), b2 = LOAD_BT(4 * column + 2, k), b3 = LOAD_BT(4 * column + 3, k);
#define STEP(i)                                                                  \
  {                                                                              \
    F4 v = LD4(a, at##i + k);                                                    \
    sum##i = sum##i + MAKE4(dot(v, b0), dot(v, b1), dot(v, b2), dot(v, b3));     \
  }
#elif VECTOR_A
      F4 b0 = LOAD_B(row, column), b1 = LOAD_B(row + 1, column), b2 = LOAD_B(row + 2, column), b3 = LOAD_B(row + 3, column);
      row += 4;
#define STEP(i)                                         \
  {                                                     \
    F4 v = INSIDE(i) ? LD4(a, at##i + k) : SPLAT4(0.0f); \
    sum##i = FMA(SPLAT4(v.x), b0, sum##i);              \
    sum##i = FMA(SPLAT4(v.y), b1, sum##i);              \
    sum##i = FMA(SPLAT4(v.z), b2, sum##i);              \
    sum##i = FMA(SPLAT4(v.w), b3, sum##i);              \
  }
#else
      F4 b0 = LOAD_B(row, column);
      row += 1;
#define STEP(i) sum##i = FMA(SPLAT4(INSIDE(i) ? LD1(a, at##i + k * p.a_k) : 0.0f), b0, sum##i);
#endif
      REPEAT(TM, STEP)
    }
  }
  for (int i = 0; i < TM; i++) {
    if (first + i >= p.m) return;
    F4 v = sum0;
#define PICK(j) if (i == j) v = sum##j;
    REPEAT(TM, PICK)
    FINISH(first + i, column, v)
  }
} END
