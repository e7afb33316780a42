// The tile in local memory: 256 threads as 16 x 16 sum 16 * TM rows by 64 * TN columns, 16 of k at a time. A thread has TM neighbouring rows and TN vectors of columns 16 vectors apart,
// so that threads side by side read neighbouring vectors of B. Per 4 of k it reads TM + 4 * TN vectors from local memory for 16 * TM * TN multiplications.
//   tile_a [16 * TM rows][4 vectors along k], tile_b [16 of k][16 * TN vectors along columns]; both float. TM 4, TN 1: 8 KiB; TM 8, TN 2: 16 KiB
#if VECTOR_A
#define LOAD_A(i, at, depth) (INSIDE(i) && (depth) < p.k ? LD4(a, at + (depth) / 4) : SPLAT4(0.0f))
#else
#define LOAD_1_(i, at, depth) (INSIDE(i) && (depth) < p.k ? LD1(a, at + (depth) * p.a_k) : 0.0f)
#define LOAD_A(i, at, depth) MAKE4(LOAD_1_(i, at, depth), LOAD_1_(i, at, (depth) + 1), LOAD_1_(i, at, (depth) + 2), LOAD_1_(i, at, (depth) + 3))
#endif
#define LOADS_A CAT(LOADS_, TM)  // vectors of tile_a for each thread to load: rows 64 apart
#define LOADS_4 1
#define LOADS_8 2
#define WIDTH (16 * TN)
#if VECTOR_B == 2  // tile_b [64 columns][4 vectors along k, and one that spreads the columns over the banks]
#define SIZE_B 320
#define LAST p.n
#define PLACES 64
#else
#define SIZE_B (256 * TN)
#define LAST COLUMNS
#define PLACES WIDTH
#endif

KERNEL5(product, A_BINDING, B_BINDING, BIAS_BINDING, R_BINDING, C_BINDING) SHARED(F4, tile_a, 64 * TM) SHARED(F4, tile_b, SIZE_B) BODY {
  int lx = LOCAL(0), ly = LOCAL(1), thread = ly * 16 + lx, z = GLOBAL(2);
  int column = GROUP(0) * PLACES + lx, block = GROUP(1) * 16 * TM, first = block + ly * TM;
  int load_row = thread / 4, load_k = thread % 4 * 4;
#define ROW_TO_LOAD(i) PLACE(i, min(block + load_row + 64 * i, p.m - 1))
  REPEAT(LOADS_A, ROW_TO_LOAD)
#if TN == 2
#define START(i) F4 sum##i = SPLAT4(0.0f), more##i = SPLAT4(0.0f);
#else
#define START(i) F4 sum##i = SPLAT4(0.0f);
#endif
  REPEAT(TM, START)
  TAPS {
    REPEAT(LOADS_A, MOVE)
    for (int k0 = 0; k0 < p.k; k0 += 16) {
      BARRIER;
#define FETCH_A(i) tile_a[thread + 256 * i] = LOAD_A(i, at##i, k0 + load_k);
      REPEAT(LOADS_A, FETCH_A)
#if VECTOR_B == 2
      tile_b[thread / 4 * 5 + thread % 4] =
          k0 + load_k < p.k && GROUP(0) * PLACES + thread / 4 < p.n ? LOAD_BT(GROUP(0) * PLACES + thread / 4, (k0 + load_k) / 4) : SPLAT4(0.0f);
#else
#define FETCH_B(i)                                                                                                             \
  {                                                                                                                            \
    int row = (thread + 256 * i) / WIDTH, place = GROUP(0) * WIDTH + (thread + 256 * i) % WIDTH;                               \
    tile_b[thread + 256 * i] = k0 + row < p.k && place < COLUMNS ? LOAD_B(B_ROW(tap, k0 + row), place) : SPLAT4(0.0f);         \
  }
      REPEAT(TN, FETCH_B)
#endif
      BARRIER;
      for (int q = 0; q < 4; q++) {
#if VECTOR_B == 2
        F4 b0 = tile_b[lx * 5 + q], b1 = tile_b[(lx + 16) * 5 + q], b2 = tile_b[(lx + 32) * 5 + q], b3 = tile_b[(lx + 48) * 5 + q];
#define STEP(i)                                                                  \
  {                                                                              \
    F4 v = tile_a[(ly * TM + i) * 4 + q];                                        \
    sum##i = sum##i + MAKE4(dot(v, b0), dot(v, b1), dot(v, b2), dot(v, b3));     \
  }
#else
        F4 b0 = tile_b[4 * q * WIDTH + lx], b1 = tile_b[(4 * q + 1) * WIDTH + lx], b2 = tile_b[(4 * q + 2) * WIDTH + lx], b3 = tile_b[(4 * q + 3) * WIDTH + lx];
#define STEP(i)                                        \
  {                                                    \
    F4 v = tile_a[(ly * TM + i) * 4 + q];              \
    sum##i = FMA(SPLAT4(v.x), b0, sum##i);             \
    sum##i = FMA(SPLAT4(v.y), b1, sum##i);             \
    sum##i = FMA(SPLAT4(v.z), b2, sum##i);             \
    sum##i = FMA(SPLAT4(v.w), b3, sum##i);             \
  }
#endif
        REPEAT(TM, STEP)
#if TN == 2
        b0 = tile_b[4 * q * WIDTH + lx + 16];
        b1 = tile_b[(4 * q + 1) * WIDTH + lx + 16];
        b2 = tile_b[(4 * q + 2) * WIDTH + lx + 16];
        b3 = tile_b[(4 * q + 3) * WIDTH + lx + 16];
#define STEP2(i)                                       \
  {                                                    \
    F4 v = tile_a[(ly * TM + i) * 4 + q];              \
    more##i = FMA(SPLAT4(v.x), b0, more##i);           \
    more##i = FMA(SPLAT4(v.y), b1, more##i);           \
    more##i = FMA(SPLAT4(v.z), b2, more##i);           \
    more##i = FMA(SPLAT4(v.w), b3, more##i);           \
  }
        REPEAT(TM, STEP2)
#endif
      }
    }
  }
  for (int i = 0; i < TM * TN; i++) {
    int row = first + i % TM, place = column + i / TM * 16;
    F4 v = sum0;
#define PICK(j) if (i == j) v = sum##j;
    REPEAT(TM, PICK)
#if TN == 2
#define PICK2(j) if (i == TM + j) v = more##j;
    REPEAT(TM, PICK2)
#endif
    if (row < p.m && place < LAST) FINISH(row, place, v)
  }
} END
