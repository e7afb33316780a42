// The tile in local memory: 256 threads in slices of TX x TY sum the same TM * TY rows by 4 * TN * TX columns, a slice
// every so manieth STEP_K of the depth, which runs over the taps too; in the end their sums are added in local memory,
// always in the same order. A thread has 4 neighbouring rows (TM 8: of each half of the tile's) and TN vectors of
// columns TX vectors apart, so that threads side by side read neighbouring vectors: for 16 * TM * TN multiplications
// TM + 4 * TN of them. The next step's vectors are on their way to registers while this one's are multiplied.
//   of A [STEP_K][rows, and 4 more: what is written along k falls on other banks], of B [STEP_K][columns, likewise
//   where B^T is written along k]; both float, BUFFERS of each
// Of bytes the same in words of 4, which STEP_K counts, and sums in s32; 4 words of a row are of one tap.
#define SLICED (TM == 4 && VECTOR_A && VECTOR_B == 1)
#if BYTES
CONSTANT(6, SLICE, 0x1010)
CONSTANT(7, STEP, 0x210)
#define TX (SLICE & 255)
#define TY (SLICE >> 8)
#define STEP_K (STEP & 255)
#define BUFFERS (STEP >> 8)
#else
#if SLICED
CONSTANT(4, TX, 16)
CONSTANT(5, TY, 16)
#else
#define TX 16
#define TY 16
#endif
CONSTANT(6, STEP_K, 16)
CONSTANT(7, BUFFERS, 2)
#endif
#define THREADS (TX * TY)  // of a slice
#define SLICES (256 / THREADS)
#define ROWS (TM * TY)
#define WIDTH (TN * TX)
#define STRIDE_A (ROWS / 4 + 1)
#if VECTOR_B == 2
#define STRIDE_B (WIDTH + 1)
#else
#define STRIDE_B WIDTH
#endif
#define SIZE_A (STEP_K * STRIDE_A)
#define SIZE (STEP_K * (STRIDE_A + STRIDE_B))
#define SIZE_ALL (BUFFERS * SLICES * SIZE)  // 4 * 256 or more where there are slices
#if BYTES
#define S4 I4
#define S4_ZERO SPLAT_I4(0)
#define PUT_ONE PUT_WORD
#define TILE_KERNEL PRODUCT_KERNEL
#else
#define S4 F4
#define S4_ZERO SPLAT4(0.0f)
#define PUT_ONE PUT_FLOAT
#define TILE_KERNEL KERNEL5(product, A_BINDING, B_BINDING, BIAS_BINDING, R_BINDING, C_BINDING)
#endif
#if TM == 8
#define BLOCKS(M) M(0, 0) M(0, 1) M(1, 0) M(1, 1)
#define ROWS_OF_A S4 m0 = tile[at_a + k * STRIDE_A], m1 = tile[at_a + k * STRIDE_A + TY];
#define COLUMNS_OF_B S4 n0 = tile[at_b + k * STRIDE_B], n1 = tile[at_b + k * STRIDE_B + TX];
#else
#define BLOCKS(M) M(0, 0)
#define ROWS_OF_A S4 m0 = tile[at_a + k * STRIDE_A];
#define COLUMNS_OF_B S4 n0 = tile[at_b + k * STRIDE_B];
#endif

// A thread loads a vector of A and one of B, or two where the slices are small; along k two neighbours of a row by
// threads side by side. They wait in registers as they are stored (RAW4).
#define LOAD_ROW(i, rows) ((THREADS * i + t) / 2 % (rows))
#define LOAD_K(i, rows) ((THREADS * i + t) % 2 * 4 + (THREADS * i + t) / 2 / (rows) * 8)
#if BYTES
#define TYPE_A I4
#define ZERO_A S4_ZERO
#define WIDE_A(v) (v)
#elif VECTOR_A
#define TYPE_A RAW4
#define ZERO_A RAW4_ZERO
#define WIDE_A WIDE_RAW4
#else
#define TYPE_A F4
#define ZERO_A SPLAT4(0.0f)
#define WIDE_A(v) (v)
#endif
#if BYTES
#define TYPE_B I4
#define ZERO_B S4_ZERO
#define WIDE_B(v) (v)
#define TILE_B(row, column) b[B_AT(row, column)]
#elif VECTOR_B
#define TYPE_B RAW4
#define ZERO_B RAW4_ZERO
#define WIDE_B WIDE_RAW4
#define TILE_B(row, column) LDRAW4(b, B_AT(row, column))
#else
#define TYPE_B F4
#define ZERO_B SPLAT4(0.0f)
#define WIDE_B(v) (v)
#define TILE_B LOAD_B
#endif
#if BYTES && CONV
#define DEPTHS (HIGH(p.kernel_) * LOW(p.kernel_) * WORDS)
#define WORD_OF_A(at, j) (a[(at) + j] ^ p.a_flip)
#define TAKE_A(i)                                                                      \
  {                                                                                    \
    int depth = begin + LOAD_K(i, ROWS), tap = depth / WORDS, k = depth - tap * WORDS, \
        ky = tap / LOW(p.kernel_), kx = tap - ky * LOW(p.kernel_);                     \
    MOVE(i)                                                                            \
    a##i = depth < depths ? SPLAT_I4(OUTSIDE) : S4_ZERO;                               \
    if (INSIDE(i) && depth < depths)                                                   \
      a##i = MAKE_I4(WORD_OF_A(at##i + k, 0), WORD_OF_A(at##i + k, 1),                 \
                     WORD_OF_A(at##i + k, 2), WORD_OF_A(at##i + k, 3));                \
  }
#elif BYTES
#define DEPTHS WORDS
#define WORD_OF_A(at, j) (depth + j < depths ? a[(at) + j] ^ p.a_flip : 0)
#define TAKE_A(i)                                                             \
  {                                                                           \
    int depth = begin + LOAD_K(i, ROWS);                                      \
    a##i = MAKE_I4(WORD_OF_A(at##i + depth, 0), WORD_OF_A(at##i + depth, 1),  \
                   WORD_OF_A(at##i + depth, 2), WORD_OF_A(at##i + depth, 3)); \
  }
#elif CONV
#define DEPTHS (HIGH(p.kernel_) * LOW(p.kernel_) * p.k)
#define TAKE_A(i)                                                                  \
  {                                                                                \
    int depth = begin + LOAD_K(i, ROWS), tap = depth / p.k, k = depth - tap * p.k, \
        ky = tap / LOW(p.kernel_), kx = tap - ky * LOW(p.kernel_);                 \
    TAKE_TAPS_(i)                                                                  \
  }
#if VECTOR_A
#define TAKE_TAPS_(i) MOVE(i) if (INSIDE(i) && depth < depths) a##i = LDRAW4(a, at##i + k / 4); else a##i = RAW4_ZERO;
#else
#define TAKE_TAPS_(i) TAKE_TAP_(i, x) TAKE_TAP_(i, y) TAKE_TAP_(i, z) TAKE_TAP_(i, w)
#define TAKE_TAP_(i, c)                                                    \
  MOVE(i)                                                                  \
  a##i.c = INSIDE(i) && depth < depths ? LD1(a, at##i + k * p.a_k) : 0.0f; \
  depth += 1;                                                              \
  k += 1;                                                                  \
  if (k == p.k) { k = 0; kx += 1; }                                        \
  if (kx == LOW(p.kernel_)) { kx = 0; ky += 1; }
#endif
#else
#define DEPTHS p.k
#if VECTOR_A
#define TAKE_A(i)                                                                   \
  {                                                                                 \
    int depth = begin + LOAD_K(i, ROWS);                                            \
    if (depth < depths) a##i = LDRAW4(a, at##i + depth / 4); else a##i = RAW4_ZERO; \
  }
#else
#define TAKE_ONE_(i, depth) ((depth) < depths ? LD1(a, at##i + (depth) * p.a_k) : 0.0f)
#define TAKE_A(i)                                                   \
  {                                                                 \
    int depth = begin + LOAD_K(i, ROWS);                            \
    a##i = MAKE4(TAKE_ONE_(i, depth), TAKE_ONE_(i, depth + 1),      \
                 TAKE_ONE_(i, depth + 2), TAKE_ONE_(i, depth + 3)); \
  }
#endif
#endif
#define PUT_ALONG_K_(first, v, stride, i, rows)                            \
  {                                                                        \
    int at = 4 * ((first) + LOAD_K(i, rows) * stride) + LOAD_ROW(i, rows); \
    PUT_ONE(tile, at, (v).x);                                              \
    PUT_ONE(tile, at + 4 * stride, (v).y);                                 \
    PUT_ONE(tile, at + 8 * stride, (v).z);                                 \
    PUT_ONE(tile, at + 12 * stride, (v).w);                                \
  }
#if VECTOR_B == 2
#define TAKE_B(i)                                                                                          \
  {                                                                                                        \
    int depth = begin + LOAD_K(i, 4 * WIDTH), column = 4 * left + LOAD_ROW(i, 4 * WIDTH);                  \
    if (depth < depths && column < p.n) b##i = LDRAW4(b, BT_AT(column, depth / 4)); else b##i = RAW4_ZERO; \
  }
#define PUT_B(i) PUT_ALONG_K_(from + SIZE_A, WIDE_B(b##i), STRIDE_B, i, 4 * WIDTH)
#else
#define TAKE_B(i)                                                                                     \
  {                                                                                                   \
    int depth = begin + (THREADS * i + t) / WIDTH, place = left + (THREADS * i + t) % WIDTH;          \
    if (depth < depths && place < COLUMNS) b##i = TILE_B(TILE_ROW(depth), place); else b##i = ZERO_B; \
  }
#define PUT_B(i) tile[from + SIZE_A + THREADS * i + t] = WIDE_B(b##i);
#endif
#if BYTES
#define TILE_ROW(depth) B_WORDS(0, depth)
#else
#define TILE_ROW(depth) B_ROW(0, depth)
#endif
#define PUT_A(i) PUT_ALONG_K_(from, WIDE_A(a##i), STRIDE_A, i, ROWS)
#if SLICED
#define TAKE { TAKE_A(0) if (STEP_K > TX) TAKE_A(1) TAKE_B(0) if (STEP_K > TY) TAKE_B(1) }
#define SHARE { PUT_A(0) if (STEP_K > TX) PUT_A(1) PUT_B(0) if (STEP_K > TY) { PUT_B(1) } }
#else
#define TAKE { TAKE_A(0) TAKE_B(0) }
#define SHARE { PUT_A(0) PUT_B(0) }
#endif

TILE_KERNEL SHARED(S4, tile, SIZE_ALL) BODY {
  int thread = LOCAL(1) * 16 + LOCAL(0), slice = thread / THREADS, t = thread % THREADS, lx = t % TX, ly = t / TX,
      z = GLOBAL(2);
  if (TX == 16) {  // 8 x 4 threads in step, pairs of rows side by side
    lx = (t >> 1 & 7) | (t >> 2 & 8);
    ly = (t & 1) | (t >> 3 & 2) | (t >> 4 & 12);
  }
  int left = GROUP(0) * WIDTH, top = GROUP(1) * ROWS, depths = DEPTHS, begin = slice * STEP_K, from = slice * SIZE;
  TYPE_A a0 = ZERO_A, a1 = ZERO_A;
  TYPE_B b0 = ZERO_B, b1 = ZERO_B;
  PLACE(0, min(top + LOAD_ROW(0, ROWS), p.m - 1))
#if SLICED
  PLACE(1, min(top + LOAD_ROW(1, ROWS), p.m - 1))
#endif
#define START(r, c) S4 s##r##c##0 = S4_ZERO, s##r##c##1 = S4_ZERO, s##r##c##2 = S4_ZERO, s##r##c##3 = S4_ZERO;
  BLOCKS(START)
#if BYTES
  I4 row_sums = S4_ZERO;
#endif
  for (int done = -SLICES * STEP_K; done < depths; done += SLICES * STEP_K) {
    bool more = done + SLICES * STEP_K < depths;
    if (more) TAKE
    int at_a = from + ly, at_b = from + SIZE_A + lx;
    if (done >= 0) {
      UNROLLED for (int k = 0; k < STEP_K; k++) {
        ROWS_OF_A
        COLUMNS_OF_B
#if BYTES
#define ROW_BY_COLUMNS(s, m, n) s = MAKE_I4(DOT4(m, n.x, s.x), DOT4(m, n.y, s.y), DOT4(m, n.z, s.z), DOT4(m, n.w, s.w));
        ROW_BY_COLUMNS(s000, m0.x, n0)
        ROW_BY_COLUMNS(s001, m0.y, n0)
        ROW_BY_COLUMNS(s002, m0.z, n0)
        ROW_BY_COLUMNS(s003, m0.w, n0)
        if (ROW_SUMS != 0) ROW_BY_COLUMNS(row_sums, 0x01010101, m0)
#else
#define MULTIPLY(r, c)                                \
  s##r##c##0 = FMA(SPLAT4(m##r.x), n##c, s##r##c##0); \
  s##r##c##1 = FMA(SPLAT4(m##r.y), n##c, s##r##c##1); \
  s##r##c##2 = FMA(SPLAT4(m##r.z), n##c, s##r##c##2); \
  s##r##c##3 = FMA(SPLAT4(m##r.w), n##c, s##r##c##3);
        BLOCKS(MULTIPLY)
#endif
      }
    }
    if (BUFFERS == 2) from = from < SLICES * SIZE ? from + SLICES * SIZE : from - SLICES * SIZE;
    else BARRIER;
    if (more) SHARE
    begin += SLICES * STEP_K;
    BARRIER;
  }
  for (int q = 0; q < TM / 4 * TN; q++) {
    S4 v0 = s000, v1 = s001, v2 = s002, v3 = s003;
#define PICK(r, c) if (q == r * TN + c) { v0 = s##r##c##0; v1 = s##r##c##1; v2 = s##r##c##2; v3 = s##r##c##3; }
    BLOCKS(PICK)
    int row = top + q / TN * 4 * TY + 4 * ly, place = left + q % TN * TX + lx;
#if BYTES
    ENDS(min(place, COLUMNS - 1))
    LESS_ROW_SUM(v0, row_sums.x)
    LESS_ROW_SUM(v1, row_sums.y)
    LESS_ROW_SUM(v2, row_sums.z)
    LESS_ROW_SUM(v3, row_sums.w)
#endif
    if (SLICES > 1) {
      BARRIER;
      tile[thread] = v0;
      tile[256 + thread] = v1;
      tile[512 + thread] = v2;
      tile[768 + thread] = v3;
      BARRIER;
    }
    for (int i = slice; i < 4; i += SLICES) {
      S4 v = i == 0 ? v0 : i == 1 ? v1 : i == 2 ? v2 : v3;
      if (SLICES > 1) {
        v = tile[256 * i + t];
        for (int j = 1; j < SLICES; j++) v = v + tile[256 * i + THREADS * j + t];
      }
#if BYTES
      v = v + offsets[A_Z_BIAS(min(place, COLUMNS - 1))];
      if (row + i < p.m && place < COLUMNS) FINISH_SUM(row + i, place, v)
#else
      if (row + i < p.m && place < COLUMNS) FINISH(row + i, place, v)
#endif
    }
  }
} END
