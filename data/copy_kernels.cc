// Moves of elements of 32, 16 and 8 bits: contiguous runs, transposes of matrices, and everything else.
//
// Transpose: x is [n][rows] (rows contiguous), y is [rows][n]. Tiles of L x L words pass through registers: L loads,
// L*log2(L) shuffles, L stores; a word is an element of 32 bits, or two of 16 bits. Bytes go in tiles of 16 x 16, in
// vectors of 16 on every instruction set. Tiles are taken in squares of a cache line's elements (16 x 16, 32 x 32,
// 64 x 64): every line of x and of y is touched by one square only (when aligned, else two), however long the strides
// are. Mostly four squares along x follow each other: x is read 256 bytes at a time from as many pages as it has rows.
// Edges are the same tile with partial loads and stores; up to four runs, or eight without gaps, are woven into one, or
// one is taken apart.
#include "data/copy_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;

// A register's worth of bytes at any address.
typedef uint8_t Block __attribute__((vector_size(4 * F32::L), aligned(1), may_alias));
constexpr size_t B = sizeof(Block);

// Fewer than 2 * size bytes, by halves; they are whole elements.
template <size_t size, size_t element> SKUA_INL void copy_rest(size_t n, const uint8_t* x, uint8_t* y) {
  if (n & size) __builtin_memcpy(y, x, size);
  if constexpr (size > element) copy_rest<size / 2, element>(n, x + (n & size), y + (n & size));
}

template <class T> SKUA_INL void copy_run(size_t n, const T* from, T* to) {
  const uint8_t* x = reinterpret_cast<const uint8_t*>(from);
  uint8_t* y = reinterpret_cast<uint8_t*>(to);
  auto block = [](const uint8_t* p) { return *reinterpret_cast<const Block*>(p); };
  auto put = [](uint8_t* p, Block b) { *reinterpret_cast<Block*>(p) = b; };
  n *= sizeof(T);
  for (; n >= 4 * B; n -= 4 * B, x += 4 * B, y += 4 * B) {
    const Block a = block(x), b = block(x + B), c = block(x + 2 * B), d = block(x + 3 * B);
    put(y, a); put(y + B, b); put(y + 2 * B, c); put(y + 3 * B, d);
  }
  for (; n >= B; n -= B, x += B, y += B) put(y, block(x));
  if constexpr (B > sizeof(T)) copy_rest<B / 2, sizeof(T)>(n, x, y);
}

template <class T> void rows(size_t rows, size_t n, const void* from, ptrdiff_t x_row, void* to, ptrdiff_t y_row) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (; rows; --rows, x += x_row, y += y_row) copy_run(n, x, y);
}

template <class T>
void strided(size_t rows, size_t n, const void* x_bits, ptrdiff_t x_row, ptrdiff_t x_step, void* y_bits,
             ptrdiff_t y_row, ptrdiff_t y_step) {
  const T* x = static_cast<const T*>(x_bits);
  T* y = static_cast<T*>(y_bits);
  for (; rows; --rows, x += x_row, y += y_row) {
    if (x_step == 0 && y_step == 1) {
      constexpr size_t most = B / sizeof(T);
      T block[most];
      for (T& value : block) value = *x;
      size_t i = 0;
      for (; i + most <= n; i += most) copy_run(most, block, y + i);
      copy_run(n - i, block, y + i);
      continue;
    }
    const T* from = x;
    T* to = y;
    size_t i = n;
    for (; i >= 4; i -= 4, from += 4 * x_step, to += 4 * y_step) {
      const T a = from[0], b = from[x_step], c = from[2 * x_step], d = from[3 * x_step];
      to[0] = a; to[y_step] = b; to[2 * y_step] = c; to[3 * y_step] = d;
    }
    for (; i; --i, from += x_step, to += y_step) *to = *from;
  }
}

// y[r][i] = x[i][r] for `high` rows (edge: 1..high) and `wide` i (1..wide).
template <class T> struct Tile;
template <> struct Tile<uint32_t> {
  static constexpr size_t high = L, wide = L;
  static SKUA_INL void edge(size_t rows, size_t n, const uint32_t* x_bits, ptrdiff_t x_step, uint32_t* y_bits,
                            ptrdiff_t y_row) {
    const float* x = reinterpret_cast<const float*>(x_bits);
    F32 t[L];
    for (size_t i = 0; i < L; ++i) t[i] = i < n ? F32::load_n(x + ptrdiff_t(i) * x_step, rows) : F32::zero();
    transpose(t);
    for (size_t r = 0; r < rows; ++r) t[r].store_n(reinterpret_cast<float*>(y_bits) + ptrdiff_t(r) * y_row, n);
  }
  static SKUA_INL void full(const uint32_t* x_bits, ptrdiff_t x_step, uint32_t* y_bits, ptrdiff_t y_row) {
    F32 t[L];
    SKUA_UNROLL for (size_t i = 0; i < L; ++i)
      t[i] = F32::load(reinterpret_cast<const float*>(x_bits) + ptrdiff_t(i) * x_step);
    transpose(t);
    SKUA_UNROLL for (size_t r = 0; r < L; ++r) t[r].store(reinterpret_cast<float*>(y_bits) + ptrdiff_t(r) * y_row);
  }
};
// Neighbouring runs of x in the halves of 32 bits: a vector of them has L rows of two runs, and leaves the transpose as
// two elements of y next to each other.
template <> struct Tile<uint16_t> {
  static constexpr size_t high = L, wide = 2 * L;
  static SKUA_INL F32 pair(I32 even, I32 odd) { return as_f32(even | shl<16>(odd)); }
  static SKUA_INL void edge(size_t rows, size_t n, const uint16_t* x, ptrdiff_t x_step, uint16_t* y, ptrdiff_t y_row) {
    F32 t[L];
    auto run = [&](size_t i) { return i < n ? load_u16_n(x + ptrdiff_t(i) * x_step, rows) : I32::set1(0); };
    for (size_t j = 0; j < L; ++j) t[j] = pair(run(2 * j), run(2 * j + 1));
    transpose(t);
    for (size_t r = 0; r < rows; ++r, y += y_row) {
      const Block block = __builtin_bit_cast(Block, t[r].v);
      copy_run(n, reinterpret_cast<const uint16_t*>(&block), y);
    }
  }
  static SKUA_INL void full(const uint16_t* x, ptrdiff_t x_step, uint16_t* y, ptrdiff_t y_row) {
    F32 t[L];
    SKUA_UNROLL for (size_t j = 0; j < L; ++j)
      t[j] = pair(load_u16(x + ptrdiff_t(2 * j) * x_step), load_u16(x + ptrdiff_t(2 * j + 1) * x_step));
    transpose(t);
    SKUA_UNROLL for (size_t r = 0; r < L; ++r)
      *reinterpret_cast<Block*>(y + ptrdiff_t(r) * y_row) = __builtin_bit_cast(Block, t[r].v);
  }
};
// Four times every vector is interleaved with the one eight behind it: the four bits of an element's row and column
// change places.
typedef uint8_t Bytes __attribute__((vector_size(16), aligned(1), may_alias));
template <> struct Tile<uint8_t> {
  static constexpr size_t high = 16, wide = 16;
  static SKUA_INL void transpose(Bytes (&t)[16]) {
    SKUA_UNROLL for (int turn = 0; turn < 4; ++turn) {
      Bytes u[16];
      SKUA_UNROLL for (int i = 0; i < 8; ++i) {
        u[2 * i] = __builtin_shufflevector(t[i], t[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        u[2 * i + 1] =
            __builtin_shufflevector(t[i], t[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      }
      SKUA_UNROLL for (int i = 0; i < 16; ++i) t[i] = u[i];
    }
  }
  static SKUA_INL void edge(size_t rows, size_t n, const uint8_t* x, ptrdiff_t x_step, uint8_t* y, ptrdiff_t y_row) {
    for (size_t r = 0; r < rows; ++r, y += y_row)
      for (size_t i = 0; i < n; ++i) y[i] = x[ptrdiff_t(i) * x_step + ptrdiff_t(r)];
  }
  static SKUA_INL void full(const uint8_t* x, ptrdiff_t x_step, uint8_t* y, ptrdiff_t y_row) {
    Bytes t[16];
    SKUA_UNROLL for (ptrdiff_t i = 0; i < 16; ++i) t[i] = *reinterpret_cast<const Bytes*>(x + i * x_step);
    transpose(t);
    SKUA_UNROLL for (ptrdiff_t r = 0; r < 16; ++r) *reinterpret_cast<Bytes*>(y + r * y_row) = t[r];
  }
};

// Vectors of 16 bytes whose elements take turns, and back.
template <class T, size_t... I> struct Turns {
  static constexpr size_t W = sizeof...(I);
  typedef T V __attribute__((vector_size(16), aligned(1), may_alias));
  template <size_t G> static SKUA_INL void weave(const V (&x)[G], V* y) {
    if constexpr (G == 1) y[0] = x[0];
    else {
      V low[G / 2], high[G / 2];
      SKUA_UNROLL for (size_t i = 0; i < G / 2; ++i) {
        low[i] = __builtin_shufflevector(x[i], x[i + G / 2], (I % 2 * W + I / 2)...);
        high[i] = __builtin_shufflevector(x[i], x[i + G / 2], (I % 2 * W + (W + I) / 2)...);
      }
      weave(low, y);
      weave(high, y + G / 2);
    }
  }
  template <size_t G> static SKUA_INL void unweave(const V (&x)[G], T* y, ptrdiff_t y_row) {
    if constexpr (G == 1) *reinterpret_cast<V*>(y) = x[0];
    else {
      V even[G / 2], odd[G / 2];
      SKUA_UNROLL for (size_t i = 0; i < G / 2; ++i) {
        even[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], (2 * I)...);
        odd[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], (2 * I + 1)...);
      }
      unweave(even, y, 2 * y_row);
      unweave(odd, y + y_row, 2 * y_row);
    }
  }
};
template <class T> struct TurnsOf;
template <> struct TurnsOf<uint32_t> : Turns<uint32_t, 0, 1, 2, 3> {};
template <> struct TurnsOf<uint16_t> : Turns<uint16_t, 0, 1, 2, 3, 4, 5, 6, 7> {};
template <> struct TurnsOf<uint8_t> : Turns<uint8_t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15> {};
template <size_t G> constexpr bool kTurns = L > 1 && G > 1 && (G & (G - 1)) == 0;

// G runs of x woven into one of y, or one of x taken apart into G: tiles would be mostly empty. Without gaps by
// vectors, the last of which may overlap the one before.
template <size_t G, class T> SKUA_INL void weave(size_t rows, const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_row) {
  using Of = TurnsOf<T>;
  using V = typename Of::V;
  if constexpr (kTurns<G>)
    if (y_row == ptrdiff_t(G) && rows >= Of::W) {
      for (size_t r = 0;; r = rows - r < 2 * Of::W ? rows - Of::W : r + Of::W) {
        V in[G], out[G];
        SKUA_UNROLL for (size_t i = 0; i < G; ++i)
          in[i] = *reinterpret_cast<const V*>(x + ptrdiff_t(i) * x_step + ptrdiff_t(r));
        Of::weave(in, out);
        SKUA_UNROLL for (size_t i = 0; i < G; ++i) *reinterpret_cast<V*>(y + r * G + i * Of::W) = out[i];
        if (r + Of::W == rows) return;
      }
    }
  for (size_t r = 0; r < rows; ++r, y += y_row)
    SKUA_UNROLL for (size_t i = 0; i < G; ++i)
      y[i] = x[ptrdiff_t(i) * x_step + ptrdiff_t(r)];
}
template <size_t G, class T> SKUA_INL void unweave(size_t n, const T* x, ptrdiff_t x_step, T* y, ptrdiff_t y_row) {
  using Of = TurnsOf<T>;
  using V = typename Of::V;
  if constexpr (kTurns<G>)
    if (x_step == ptrdiff_t(G) && n >= Of::W) {
      for (size_t i = 0;; i = n - i < 2 * Of::W ? n - Of::W : i + Of::W) {
        V in[G];
        SKUA_UNROLL for (size_t r = 0; r < G; ++r) in[r] = *reinterpret_cast<const V*>(x + i * G + r * Of::W);
        Of::unweave(in, y + i, y_row);
        if (i + Of::W == n) return;
      }
    }
  for (size_t i = 0; i < n; ++i, x += x_step)
    SKUA_UNROLL for (size_t r = 0; r < G; ++r)
      y[ptrdiff_t(r) * y_row + ptrdiff_t(i)] = x[r];
}

template <class T>
void transposed(size_t rows, size_t n, const void* x_bits, ptrdiff_t x_step, void* y_bits, ptrdiff_t y_row) {
  const T* x = static_cast<const T*>(x_bits);
  T* y = static_cast<T*>(y_bits);
  constexpr size_t kHigh = Tile<T>::high, kWide = Tile<T>::wide, kThin = kWide > 1 ? 4 : 0;
  if (kTurns<8> && n == 8 && y_row == 8) return weave<8>(rows, x, x_step, y, y_row);
  if (kTurns<8> && rows == 8 && x_step == 8) return unweave<8>(n, x, x_step, y, y_row);
  // What is left beside whole tiles is woven when it is thin.
  const size_t n_thin = n % kWide <= kThin ? n % kWide : n <= kThin ? n : 0;
  n -= n_thin;
  const T* x_end = x + ptrdiff_t(n) * x_step;
  switch (n_thin) {
    case 1: weave<1>(rows, x_end, x_step, y + n, y_row); break;
    case 2: weave<2>(rows, x_end, x_step, y + n, y_row); break;
    case 3: weave<3>(rows, x_end, x_step, y + n, y_row); break;
    case 4: weave<4>(rows, x_end, x_step, y + n, y_row); break;
    default: break;
  }
  const size_t rows_thin = rows % kHigh <= kThin ? rows % kHigh : rows <= kThin ? rows : 0;
  rows -= rows_thin;
  T* y_end = y + ptrdiff_t(rows) * y_row;
  switch (rows_thin) {
    case 1: unweave<1>(n, x + rows, x_step, y_end, y_row); break;
    case 2: unweave<2>(n, x + rows, x_step, y_end, y_row); break;
    case 3: unweave<3>(n, x + rows, x_step, y_end, y_row); break;
    case 4: unweave<4>(n, x + rows, x_step, y_end, y_row); break;
    default: break;
  }
  // Rows of y that share sets of the caches push each other out: they are written 1024 bytes at a time then (Zen 5:
  // 1024x1024 of f32 410 to 180 us).
  constexpr size_t kLine = 64 / sizeof(T);
  const bool share = y_row * ptrdiff_t(sizeof(T)) % 2048 == 0;
  const size_t block = share ? kLine : 4 * kLine, across = share ? 16 * kLine : n;
  for (size_t begin = 0; begin < n; begin += across)
    for (size_t r0 = 0; r0 < rows; r0 += block)
      for (size_t i0 = begin; i0 < n && i0 < begin + across; i0 += kLine) {
        const size_t i1 = n - i0 < kLine ? n : i0 + kLine, r_end = rows - r0 < block ? rows : r0 + block;
        for (size_t r1 = r0; r1 < r_end; r1 += kLine) {
          const size_t r2 = r_end - r1 < kLine ? r_end : r1 + kLine;
          for (size_t r = r1; r < r2; r += kHigh)
            for (size_t i = i0; i < i1; i += kWide) {
              const T* from = x + ptrdiff_t(i) * x_step + r;
              T* to = y + ptrdiff_t(r) * y_row + i;
              if (r2 - r >= kHigh && i1 - i >= kWide) Tile<T>::full(from, x_step, to, y_row);
              else
                Tile<T>::edge(r2 - r < kHigh ? r2 - r : kHigh, i1 - i < kWide ? i1 - i : kWide, from, x_step, to,
                              y_row);
            }
        }
      }
}

#define SKUA_COPIES(T, name)                                                                                        \
  {"copy_rows_" name "_" SKUA_STRING(SKUA_ISA), "data", "runs of elements next to each other, four vectors a turn", \
   KernelKind::copy_rows, Isa::SKUA_ISA, sizeof(T), 0, 0, F32::L,                                                   \
   reinterpret_cast<AnyCode>(static_cast<CopyRowsFn>(rows<T>))},                                                    \
  {"copy_transposed_" name "_" SKUA_STRING(SKUA_ISA), "data",                                                       \
   "vectors transposed in registers, in squares of whole cache lines", KernelKind::copy_transposed, Isa::SKUA_ISA,  \
   sizeof(T), Tile<T>::high, Tile<T>::wide, F32::L,                                                                 \
   reinterpret_cast<AnyCode>(static_cast<CopyTransposedFn>(transposed<T>))},                                        \
  {"copy_strided_" name "_" SKUA_STRING(SKUA_ISA), "data", "any strides, one element at a time; fills",             \
   KernelKind::copy_strided, Isa::SKUA_ISA, sizeof(T), 0, 0, F32::L,                                                \
   reinterpret_cast<AnyCode>(static_cast<CopyStridedFn>(strided<T>))},
const Kernel kernels[] = {SKUA_COPIES(uint32_t, "x32") SKUA_COPIES(uint16_t, "x16") SKUA_COPIES(uint8_t, "x8")};
#undef SKUA_COPIES

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(data, kernels)
}  // namespace skua
