// What matrix products and convolutions share:
// C[row, column] = act(bias + sum over taps and k of A[row under the tap, k] * B[tap, k, column] + residual).
//
//   rows      CONV 0: of A. CONV 1: output pixels, image by image; a tap moves them over the input, and those outside
//             of it are zeros
//   columns   4 to a vector. Weights are packed as B[z][tap][k][columns rounded up to 4], the bias likewise, in float
//   z         batch of a product, group of a convolution
// VECTOR_A, VECTOR_B, VECTOR_C: whether A (along k), B and C with the residual (along columns) are read as vectors: all
// their extents, strides and offsets are multiples of 4 and given in vectors. Else elements have the step a_k, b_n, c_n
// of their own: transposed matrices and NCHW maps. VECTOR_B 2: B^T is read as vectors along k, b_offset, b_n and b_z
// are given in vectors.
// C_FLOAT: C and the residual are f32, whatever A and B are.
// BYTES: product_bytes.h, with arguments of its own in place of the residual's and the activation's.
#if BYTES
CONSTANT(0, RESULT, 0)    // 0 bytes, 1 f16, 2 f32, 4 bf16
CONSTANT(1, ROW_SUMS, 0)  // zero points of B: 1 one, 2 one for each column
CONSTANT(4, RESIDUAL, 0)  // 1 of s8, 2 of u8
CONSTANT(5, FIXED, 0)     // 1 rounded twice, 2 once
#else
CONSTANT(0, ACTIVATION, 0)
CONSTANT(1, RESIDUAL, 0)  // 1 before, 2 after the activation
#endif
CONSTANT(2, BIAS, 0)
#if CONV
CONSTANT(3, TRANSPOSED, 0)
#elif !BYTES
CONSTANT(3, BETA, 0)
#endif
// Of bytes and constant B the buffer of `offsets` has, by vectors of columns: what sums start with, from `scales` on
// scales or multipliers, shifts, and at the end zero points of a product, or a convolution's zero, low, high, r_zero,
// r_scale. b_zero, a_zero and these zero points are of the flipped bytes. r_scale: of two inputs FIXED the shift.
#if BYTES && CONV
#define MORE int r_offset; int r_image; int r_y; int r_x; int r_n; int a_flip; int a_zero; int scales;
#define B_ZERO 0
#elif BYTES
#define MORE                                                                                                     \
  int r_offset; int r_m; int r_n; int r_z; int a_flip; int b_flip; int scales; int zero; int a_zero; int b_zero; \
  int low; int high; int r_zero; int r_scale;
#define B_ZERO p.b_zero
#elif CONV
#define MORE int r_offset; int r_image; int r_y; int r_x; int r_n; int act_a; int act_b;
#else
#define MORE int r_offset; int r_m; int r_n; int r_z; int alpha; int beta; int act_a; int act_b;
#endif
#if CONV
// kernel, stride, dilation, pad: height in the upper 16 bits, width in the lower.
ARGS(int m; int n; int k; int out_w; int out_h; int in_w; int in_h; int kernel_; int stride; int dilation; int pad;
     int a_offset; int a_image; int a_y; int a_x; int a_k; int c_offset; int c_image; int c_y; int c_x; int c_n; MORE)
#else
ARGS(int m; int n; int k; int a_offset; int a_m; int a_k; int a_z; int b_offset; int b_k; int b_n; int b_z;
     int c_offset; int c_m; int c_n; int c_z; MORE)
#endif
#define COLUMNS ((p.n + 3) / 4)
#define HIGH(x) ((x) >> 16)
#define LOW(x) ((x) & 65535)

#if VECTOR_A
#define A_BINDING READ4(0, a)
#define DEPTH (p.k / 4)  // in units of A
#else
#define A_BINDING READ1(0, a)
#define DEPTH p.k
#endif
#if VECTOR_B == 1 && !defined(TN) && !ARITH16  // weights, by register tiles
#define B_BINDING READ4T(1, b)
#define LOAD_B(row, column) LD4T(b, B_AT(row, column))
#elif VECTOR_B
#define B_BINDING READ4(1, b)
#define LOAD_B(row, column) LDH4(b, B_AT(row, column))
#else
#define B_BINDING READ1(1, b)
#endif
#define COLUMN_OF(place, j) (4 * (place) + (j))
#if VECTOR_B == 2
#define BIAS_BINDING READ1F(2, bias)
#define BIAS_ONE_(place, j) (COLUMN_OF(place, j) < p.n ? bias[COLUMN_OF(place, j)] : 0.0f)
#define LOAD_BIAS(place) MAKE4(BIAS_ONE_(place, 0), BIAS_ONE_(place, 1), BIAS_ONE_(place, 2), BIAS_ONE_(place, 3))
#define BT_AT(column, depth) (p.b_offset + z * p.b_z + min(column, p.n - 1) * p.b_n + (depth))  // 4 of k
#define LOAD_BT(column, depth) LD4(b, BT_AT(column, depth))
#else
#define BIAS_BINDING READ4F(2, bias)
#define LOAD_BIAS(place) bias[A_Z_BIAS(place)]
#endif
#if C_FLOAT
#define R_BINDING_(v) READ##v##F(3, r)
#define C_BINDING_(v) UPDATE##v##F(4, c)
#define LOAD_C_(v, from, at) from[at]
#define STORE_C_(v, at, value) c[at] = (value)
#else
#define R_BINDING_(v) READ##v(3, r)
#define C_BINDING_(v) UPDATE##v(4, c)
#define LOAD_C_(v, from, at) LD##v(from, at)
#define STORE_C_(v, at, value) ST##v(c, at, value)
#endif
#if VECTOR_C
#define R_BINDING R_BINDING_(4)
#define C_BINDING C_BINDING_(4)
#define WRITE_RESULT(at, column, v) STORE_C_(4, at, v);
#else
#define R_BINDING R_BINDING_(1)
#define C_BINDING C_BINDING_(1)
#define READ_ONE_(from, at, place, j, step) (COLUMN_OF(place, j) < p.n ? LOAD_C_(1, from, (at) + j * (step)) : 0.0f)
#define READ_RESULT_(from, at, place, step)                                                                            \
  MAKE4(READ_ONE_(from, at, place, 0, step), READ_ONE_(from, at, place, 1, step), READ_ONE_(from, at, place, 2, step), \
        READ_ONE_(from, at, place, 3, step))
#define WRITE_ONE_(at, place, j, v) if (COLUMN_OF(place, j) < p.n) { STORE_C_(1, (at) + j * p.c_n, v); }
#define WRITE_RESULT(at, place, v)                                \
  WRITE_ONE_(at, place, 0, (v).x) WRITE_ONE_(at, place, 1, (v).y) \
  WRITE_ONE_(at, place, 2, (v).z) WRITE_ONE_(at, place, 3, (v).w)
#endif

// PLACE(i, row): what is known of a row before the taps, in variables numbered i. MOVE(i): its place under the tap (ky,
// kx). A_AT(i, k): 4 or 1 elements from k on.
#if CONV
#define PLACE(i, row)                                                                                            \
  int t##i = (row) / p.out_w;                                                                                    \
  int x##i =                                                                                                     \
      TRANSPOSED == 1 ? (row)-t##i * p.out_w + LOW(p.pad) : ((row)-t##i * p.out_w) * LOW(p.stride) - LOW(p.pad); \
  int image##i = t##i / p.out_h;                                                                                 \
  int y##i = TRANSPOSED == 1 ? t##i - image##i * p.out_h + HIGH(p.pad)                                           \
                             : (t##i - image##i * p.out_h) * HIGH(p.stride) - HIGH(p.pad);                       \
  int base##i = p.a_offset + image##i * p.a_image + z * DEPTH * p.a_k, at##i = base##i;                          \
  bool inside##i = false;
#define MOVE(i)                                                                \
  {                                                                            \
    int iy, ix;                                                                \
    if (TRANSPOSED == 1) {                                                     \
      int ty = y##i - ky * HIGH(p.dilation), tx = x##i - kx * LOW(p.dilation); \
      iy = ty / HIGH(p.stride);                                                \
      ix = tx / LOW(p.stride);                                                 \
      inside##i = ty >= 0 && tx >= 0 && iy < p.in_h && ix < p.in_w &&          \
                  iy * HIGH(p.stride) == ty && ix * LOW(p.stride) == tx;       \
    } else {                                                                   \
      iy = y##i + ky * HIGH(p.dilation);                                       \
      ix = x##i + kx * LOW(p.dilation);                                        \
      inside##i = iy >= 0 && ix >= 0 && iy < p.in_h && ix < p.in_w;            \
    }                                                                          \
    at##i = base##i + iy * p.a_y + ix * p.a_x;                                 \
  }
#define INSIDE(i) inside##i
#define TAPS for (int ky = 0, tap = 0; ky < HIGH(p.kernel_); ky++) for (int kx = 0; kx < LOW(p.kernel_); kx++, tap++)
#define B_ROW(tap, depth) ((z * HIGH(p.kernel_) * LOW(p.kernel_) + (tap)) * p.k + (depth))
#define B_WORDS(tap, depth) ((z * HIGH(p.kernel_) * LOW(p.kernel_) + (tap)) * WORDS + (depth))  // bytes
#define B_AT(row, column) ((row) * COLUMNS + (column))
#define A_Z_BIAS(column) (z * COLUMNS + (column))
#else
#define PLACE(i, row) int at##i = p.a_offset + z * p.a_z + (row) * p.a_m;
#define MOVE(i)
#define INSIDE(i) true
#define TAPS
#define B_ROW(tap, depth) (depth)
#define B_WORDS(tap, depth) (depth)
#define B_AT(row, column) (p.b_offset + z * p.b_z + (row) * p.b_k + (column) * B_STEP)
#define A_Z_BIAS(column) (column)
#if VECTOR_B
#define B_STEP 1
#else
#define B_STEP (4 * p.b_n)
#endif
#endif

#if !VECTOR_B
#define B_ONE_(row, column, j) (4 * (column) + j < p.n ? LD1(b, B_AT(row, column) + j * p.b_n) : 0.0f)
#define LOAD_B(row, column) \
  MAKE4(B_ONE_(row, column, 0), B_ONE_(row, column, 1), B_ONE_(row, column, 2), B_ONE_(row, column, 3))
#endif

// Finishes the sum v of (row, column) and writes it.
#if CONV
#define RESULT_AT(name, row)                                                                               \
  (p.name##_offset + (row) / p.out_w / p.out_h * p.name##_image + (row) / p.out_w % p.out_h * p.name##_y + \
   (row) % p.out_w * p.name##_x)
#if VECTOR_C
#define GROUP_COLUMN(name, column) (z * COLUMNS + (column))
#else
#define GROUP_COLUMN(name, column) ((z * p.n + 4 * (column)) * p.name##_n)
#endif
#define FINISH_AT(name, row, column) (RESULT_AT(name, row) + GROUP_COLUMN(name, column))
#else
#if VECTOR_C
#define FINISH_AT(name, row, column) (p.name##_offset + z * p.name##_z + (row) * p.name##_m + (column))
#else
#define FINISH_AT(name, row, column) (p.name##_offset + z * p.name##_z + (row) * p.name##_m + 4 * (column) * p.name##_n)
#endif
#endif
#if VECTOR_C
#define LOAD_RESULT(name, at, column) LOAD_C_(4, name, at)
#else
#define LOAD_RESULT(name, at, column) READ_RESULT_(name, at, column, p.name##_n)
#endif
#if CONV
#define SCALE(v, at, column)
#else
#define SCALE(v, at, column)                                                                             \
  v = v * SPLAT4(AS_FLOAT(p.alpha));                                                                     \
  if (BETA == 1) v = FMA(SPLAT4(AS_FLOAT(p.beta)), LOAD_RESULT(c, at, column), v);
#endif
#define FINISH(row, column, v)                                                                           \
  {                                                                                                      \
    int to = FINISH_AT(c, row, column);                                                                  \
    SCALE(v, to, column)                                                                                 \
    if (BIAS == 1) v = v + LOAD_BIAS(column);                                                             \
    F4 other = SPLAT4(0.0f);                                                                             \
    if (RESIDUAL != 0) other = LOAD_RESULT(r, FINISH_AT(r, row, column), column);                        \
    if (RESIDUAL == 1) v = v + other;                                                                    \
    v = activate(ACTIVATION, v, AS_FLOAT(p.act_a), AS_FLOAT(p.act_b));                                   \
    if (RESIDUAL == 2) v = v + other;                                                                    \
    WRITE_RESULT(to, column, v)                                                                          \
  }
