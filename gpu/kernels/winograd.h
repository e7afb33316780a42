// One dimension of Winograd's transforms in place: values of a tile become values of polynomials at the points 0, +-p,
// infinity (FORWARD), and back to the tile's outputs (INVERSE), the first OUT of the variables. Points and coefficients
// are those of winograd/points.h. OUT 2: +-1; OUT 4: +-sqrt(1/2), +-sqrt(2).
#if OUT == 4
#define SIDE 6
#define REPEAT_SIDE REPEAT_6
#define EACH(M, i) M(i, 0) M(i, 1) M(i, 2) M(i, 3) M(i, 4) M(i, 5)
#define ACROSS(F, y) F(v##y##0, v##y##1, v##y##2, v##y##3, v##y##4, v##y##5)
#define ALONG(F, x) F(v0##x, v1##x, v2##x, v3##x, v4##x, v5##x)
#define FORWARD(a0, a1, a2, a3, a4, a5)                                                            \
  {                                                                                                \
    T zero = FMA(a2, SPLAT(-2.5f), a0 + a4), infinite = FMA(a3, SPLAT(-2.5f), a1 + a5);            \
    T e = FMA(a2, SPLAT(-2.0f), a4), o = FMA(a1, SPLAT(-2.0f), a3), f = FMA(a2, SPLAT(-0.5f), a4), \
      q = FMA(a1, SPLAT(-0.5f), a3);                                                               \
    a0 = zero;                                                                                     \
    a1 = FMA(o, SPLAT(0.70710678f), e);                                                            \
    a2 = FMA(o, SPLAT(-0.70710678f), e);                                                           \
    a3 = FMA(q, SPLAT(1.41421356f), f);                                                            \
    a4 = FMA(q, SPLAT(-1.41421356f), f);                                                           \
    a5 = infinite;                                                                                 \
  }
#define INVERSE(a0, a1, a2, a3, a4, a5)                           \
  {                                                               \
    T s = a1 + a2, d = a1 - a2, u = a3 + a4, w = a3 - a4;         \
    a0 = a0 + (s + u);                                            \
    a1 = FMA(w, SPLAT(1.41421356f), d * SPLAT(0.70710678f));      \
    a2 = FMA(u, SPLAT(2.0f), s * SPLAT(0.5f));                    \
    a3 = FMA(w, SPLAT(2.82842712f), d * SPLAT(0.35355339f)) + a5; \
  }
#else
#define SIDE 4
#define REPEAT_SIDE REPEAT_4
#define EACH(M, i) M(i, 0) M(i, 1) M(i, 2) M(i, 3)
#define ACROSS(F, y) F(v##y##0, v##y##1, v##y##2, v##y##3)
#define ALONG(F, x) F(v0##x, v1##x, v2##x, v3##x)
#define FORWARD(a0, a1, a2, a3)                                                \
  {                                                                            \
    T zero = a2 - a0, plus = a2 + a1, minus = a2 - a1, infinite = a3 - a1;     \
    a0 = zero;                                                                 \
    a1 = plus;                                                                 \
    a2 = minus;                                                                \
    a3 = infinite;                                                             \
  }
#define INVERSE(a0, a1, a2, a3)                                                \
  {                                                                            \
    T s = a1 + a2, d = a1 - a2;                                                \
    a0 = a0 + s;                                                               \
    a1 = d + a3;                                                               \
  }
#endif
// tile: image by image, row by row. The place of its first output in an image.
#define TILE_PLACE                                                                      \
  int c = GLOBAL(0), tile = GLOBAL(1);                                                  \
  if (c >= p.n || tile >= p.tiles) return;                                              \
  int t = tile / p.tiles_x, image = t / p.tiles_y, top = (t - image * p.tiles_y) * OUT, \
      left = (tile - t * p.tiles_x) * OUT;
