// Packing of weights in four bits: the layout is in dynamic_kernel.h. Columns that lie in memory come 32 steps of four
// at a time, in vectors of four words (of eight values of one column); rows come eight of 32 columns at a time, in
// vectors of bytes. By what the compiler makes of them for the baseline.
#include "core/quantize.h"
#include "gemm/dynamic.h"

namespace skua {
namespace {

using Words = uint32_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(16)));

#if defined(__clang__)
#define SKUA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SKUA_UNROLL _Pragma("GCC unroll 8")
#endif

template <class V = Words> inline V load(const void* p) {
  V x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <class V> inline void store(V x, void* p) { __builtin_memcpy(p, &x, sizeof x); }

// Eight nibbles k..k+7, the first one lowest, to bytes of k + i and k + 4 + i.
template <class T> inline T interleaved(T x) {
  T t = (x ^ x >> 8) & 0x0000ff00;
  x ^= t ^ t << 8;
  t = (x ^ x >> 4) & 0x00f000f0;
  return x ^ t ^ t << 4;
}
// Sums of eight nibbles, two's complement, 8 added to each: of pairs, in bytes; of four bytes.
template <class T> inline T pair_sums(T x) {
  x ^= 0x88888888;
  return (x & 0x0f0f0f0f) + (x >> 4 & 0x0f0f0f0f);
}
template <class T> inline T byte_sums(T x) {
  x = (x & 0x00ff00ff) + (x >> 8 & 0x00ff00ff);
  return (x + (x >> 16)) & 0xffff;
}
inline void add_sums(Words x, int32_t less, int32_t* sums) { store(load(sums) + x - uint32_t(less), sums); }

// The four columns of words x[0..3], one after the other, to four steps of four columns each.
inline void transpose(Words (&x)[4]) {
  const Words a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5), b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
  const Words c = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7), d = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}
template <class V> struct PairOf {
  V low, high;
};
inline PairOf<Bytes> zip(Bytes a, Bytes b) {
  return {__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
          __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
}
inline PairOf<Halves> zip(Halves a, Halves b) {
  return {__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
          __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)};
}

// Eight rows of 32 columns, to four columns a vector. sums: those of the columns, 8 added to each value, at most 120.
inline void by_rows(const Bytes (&r)[8], Halves (&to)[8], uint16_t* sums) {
  Bytes even[8], upper[8], odd[8];
  SKUA_UNROLL for (int i = 0; i < 8; ++i) {
    const Bytes x = r[i] ^ 0x88;
    even[i] = x & 0x0f;
    upper[i] = x & 0xf0;
    odd[i] = Bytes(Halves(upper[i]) >> 4);
  }
  const auto add_up = [](const Bytes(&x)[8]) __attribute__((always_inline)) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  };
  const PairOf<Bytes> sum = zip(add_up(even), add_up(odd));
  const Bytes none = {};
  SKUA_UNROLL for (int i = 0; i < 4; ++i) {
    const PairOf<Bytes> wide = zip(i < 2 ? sum.low : sum.high, none);
    store(load<Halves>(sums + i * 8) + Halves(i % 2 ? wide.high : wide.low), sums + i * 8);
  }
  PairOf<Bytes> column[4];  // byte i of 16 columns
  SKUA_UNROLL for (int i = 0; i < 4; ++i)
    column[i] = zip((even[i] | Bytes(Halves(even[i + 4]) << 4)) ^ 0x88, (odd[i] | upper[i + 4]) ^ 0x88);
  SKUA_UNROLL for (int h = 0; h < 2; ++h) {
    const PairOf<Bytes> x = h ? zip(column[0].high, column[1].high) : zip(column[0].low, column[1].low),
                        y = h ? zip(column[2].high, column[3].high) : zip(column[2].low, column[3].low);
    const PairOf<Halves> a = zip(Halves(x.low), Halves(y.low)), b = zip(Halves(x.high), Halves(y.high));
    to[h * 4] = a.low, to[h * 4 + 1] = a.high, to[h * 4 + 2] = b.low, to[h * 4 + 3] = b.high;
  }
}

// B is [K][N] of nibbles or, transposed, [N][K]; rows begin at bytes.
struct Source {
  const uint8_t* b;
  size_t k_count, n_count, step;  // bytes from a row to the next
  bool transposed;

  // The eight values of steps k..k+7 of one column, the first in the lowest nibble, zeros behind the depth.
  uint32_t eight(size_t k, size_t n) const {
    const size_t count = min(k_count - k, 8);
    uint32_t x = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t row = transposed ? n : k + i, column = transposed ? k + i : n;
      x |= uint32_t(b[row * step + column / 2] >> column % 2 * 4 & 15) << 4 * i;
    }
    return x;
  }
  // 32 steps of four columns.
  inline void by_columns(size_t k, size_t n, char* to, size_t line, int32_t* sums) const {
    Words x[4];
    for (size_t j = 0; j < 4; ++j) x[j] = interleaved(load(b + (n + j) * step + k / 2));
    transpose(x);
    add_sums(byte_sums(pair_sums(x[0]) + pair_sums(x[1]) + pair_sums(x[2]) + pair_sums(x[3])), 32 * 8, sums);
    for (size_t s = 0; s < 4; ++s) store(x[s], to + s * line);
  }
  // Eight steps of 32 columns, the first one even, zeros beyond the ends.
  inline void rows(size_t k, size_t n, Bytes (&r)[8]) const {
    const uint8_t* p = b + k * step + n / 2;
    if (k + 8 <= k_count && n + 32 <= n_count) {
      SKUA_UNROLL for (size_t i = 0; i < 8; ++i) r[i] = load<Bytes>(p + i * step);
      return;
    }
    const size_t columns = min(n_count - n, 32);
    for (size_t i = 0; i < 8; ++i) {
      uint8_t row[16] = {};
      if (k + i < k_count) {
        memcpy(row, p + i * step, ceil_div(columns, 2));
        if (columns % 2) row[columns / 2] &= 15;
      }
      r[i] = load<Bytes>(row);
    }
  }
};

// Scales of T, or of its bits: those of a column are column_step apart, of a block block_step.
struct Scales {
  const char* from;
  size_t column_step, block_step;
};
template <class T> inline float scale_of(T x) { return widen(x); }
// positive and finite
template <>
inline float scale_of(f16 x) {
  return x.bits >= 0x400 ? __builtin_bit_cast(float, (uint32_t(x.bits) << 13) + (uint32_t(112) << 23)) : widen(x);
}
// Scales, and zero points behind those of all `nr` columns (zeros NULL: none).
template <class T>
inline void put_scales(const Scales& scales, const int32_t* zeros, size_t zero_step, size_t first, size_t columns,
                       size_t nr, size_t block, const int32_t* of_block, char* to, size_t at, float* sums) {
  const char* from = scales.from + first * scales.column_step + block * scales.block_step;
  for (size_t j = 0; j < columns; ++j, from += scales.column_step) {
    T scale;
    __builtin_memcpy(&scale, from, sizeof scale);
    __builtin_memcpy(to + (at + j) * sizeof scale, &scale, sizeof scale);
    sums[j] += scale_of(scale) * float(of_block[j]);
    if (!zeros) continue;
    to[nr * sizeof scale + at + j] = char(zeros[j * zero_step]);
  }
}

constexpr size_t kColumns = 256, kSums = 4 * kColumns;  // of a panel, at most; of blocks, at a time

using Floats = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
using FourHalves = uint16_t __attribute__((vector_size(8)));
using FourBytes = uint8_t __attribute__((vector_size(4)));
// Of scales, positive and finite.
template <class T> inline Floats scales_of(Words bits) {
  if constexpr (sizeof(T) == 4) return Floats(bits);
  if constexpr (element_of<T> == Element::bf16) return Floats(bits << 16);
  const Words normal = (bits << 13) + (uint32_t(112) << 23),
              tiny = Words(__builtin_convertvector(Ints(bits), Floats) * 0x1p-24f),
              is_normal = Words(Ints(bits) >= 0x400);
  return Floats((normal & is_normal) | (tiny & ~is_normal));
}
// The same of four blocks, `bytes` apart behind `to`, and of four columns at a time, whose scales and zero points of
// these blocks are a load each.
template <class T>
inline void put_scales_of_four(const Scales& scales, const int32_t* zeros, size_t zero_step, size_t first,
                               size_t columns, size_t nr, size_t block, const int32_t* of_block, size_t apart, char* to,
                               size_t bytes, float* sums) {
  const char* from = scales.from + first * scales.column_step + block * scales.block_step;
  for (size_t j = 0; j < columns; j += 4) {
    Words x[4], z[4] = {};
    SKUA_UNROLL for (size_t i = 0; i < 4; ++i) {
      const char* p = from + (j + i) * scales.column_step;
      if constexpr (sizeof(T) == 4) x[i] = load(p);
      else x[i] = __builtin_convertvector(load<FourHalves>(p), Words);
      __builtin_prefetch(p + 64);  // more columns than prefetchers follow
      if (zeros) z[i] = load(zeros + (j + i) * zero_step), __builtin_prefetch(zeros + (j + i) * zero_step + 16);
    }
    transpose(x);
    transpose(z);
    SKUA_UNROLL for (size_t b = 0; b < 4; ++b) {
      char* const put = to + b * bytes;
      if constexpr (sizeof(T) == 4) store(x[b], put + j * sizeof(T));
      else store(__builtin_convertvector(x[b], FourHalves), put + j * sizeof(T));
      const Floats scale = scales_of<T>(x[b]);
      store(load<Floats>(sums + j) + scale * __builtin_convertvector(load<Ints>(of_block + b * apart + j), Floats),
            sums + j);
      if (zeros) store(__builtin_convertvector(z[b], FourBytes), put + nr * sizeof(T) + j);
    }
  }
}

// What is behind the values of columns first..first + columns of `count` blocks, at most four, whose sums are `apart`.
template <class T>
void put_blocks_as(const Scales& scales, const skua_quantization& q, const DynamicConfig& c, size_t first,
                   size_t columns, size_t block, size_t count, const int32_t* of_block, size_t apart, char* to,
                   size_t bytes, float* sums) {
  const size_t zero_step = q.block_size ? dynamic_blocks(c) : 1,
               four = q.block_size && count == 4 ? columns / 4 * 4 : 0;
  const auto zeros = [&](size_t i, size_t j) {
    return c.has_zeros ? q.zero_points + (first + j) * zero_step + (q.block_size ? block + i : 0) : nullptr;
  };
  if (four)
    put_scales_of_four<T>(scales, zeros(0, 0), zero_step, first, four, c.nr, block, of_block, apart, to, bytes, sums);
  for (size_t i = 0; i < count; ++i)
    put_scales<T>(scales, zeros(i, four), zero_step, first + four, columns - four, c.nr, block + i,
                  of_block + i * apart + four, to + i * bytes, four, sums + four);
}
void put_blocks(const Scales& scales, const skua_quantization& q, const DynamicConfig& c, size_t first, size_t columns,
                size_t block, size_t count, const int32_t* of_block, size_t apart, char* to, size_t bytes,
                float* sums) {
  if (c.scale_type == Element::f16)
    put_blocks_as<f16>(scales, q, c, first, columns, block, count, of_block, apart, to, bytes, sums);
  else if (c.scale_type == Element::bf16)
    put_blocks_as<bf16>(scales, q, c, first, columns, block, count, of_block, apart, to, bytes, sums);
  else put_blocks_as<float>(scales, q, c, first, columns, block, count, of_block, apart, to, bytes, sums);
}

// The values of a block of `steps` times eight of the depth, of columns first..first + columns of a panel whose columns
// lie in memory.
void pack_columns(const Source& from, size_t k0, size_t steps, size_t first, size_t columns, size_t nr, char* to,
                  int32_t* sums) {
  const size_t line = nr * 4, whole = k0 < from.k_count ? min((from.k_count - k0) / 8, steps) : 0,
               packed = columns / 4 * 4, fast = whole / 4 * 4;
  for (size_t j = 0; j < packed; j += 4)
    for (size_t s = 0; s < fast; s += 4) from.by_columns(k0 + s * 8, first + j, to + s * line + j * 4, line, sums + j);
  for (size_t j = 0; j < columns; ++j)
    for (size_t s = j < packed ? fast : 0; s < steps && k0 + s * 8 < from.k_count; ++s) {
      const uint32_t x = interleaved(from.eight(k0 + s * 8, first + j));
      __builtin_memcpy(to + s * line + j * 4, &x, 4);
      sums[j] += int32_t(byte_sums(pair_sums(x))) - 8 * 8;
    }
}
// Likewise where rows lie in memory, and of several panels: each four columns have their place behind `to`.
void pack_rows(const Source& from, size_t k0, size_t steps, size_t first, size_t columns, size_t line, char* to,
               const size_t* places, int32_t* sums) {
  constexpr size_t kSteps = 512;  // whose sums fit 16 bits
  const size_t all = k0 < from.k_count ? min(ceil_div(from.k_count - k0, 8), steps) : 0;
  for (size_t s0 = 0; s0 < all; s0 += kSteps) {
    const size_t s1 = min(all, s0 + kSteps);
    uint16_t part[kColumns] = {};
    for (size_t s = s0; s < s1; ++s) {
      // no prefetcher of a core follows rows
      for (size_t i = 0; i < 8; ++i)
        __builtin_prefetch(from.b + min(k0 + (s + 4) * 8 + i, from.k_count - 1) * from.step + first / 2);
      for (size_t j = 0; j < columns; j += 32) {
        Bytes r[8];
        Halves x[8];
        from.rows(k0 + s * 8, first + j, r);
        by_rows(r, x, part + j);
        SKUA_UNROLL for (size_t i = 0; i < 8; ++i)
          if (j + 4 * i < columns) store(x[i], to + places[j / 4 + i] + s * line);
      }
    }
    for (size_t j = 0; j < columns; ++j) sums[j] += int32_t(part[j]) - int32_t(8 * 8 * (s1 - s0));
  }
}

}  // namespace

void pack_nibbles(const DynamicConfig& c, const skua_gemm_desc& d, const void* b, float* sums, char* to) {
  const size_t n = size_t(c.n), k = size_t(c.k), nr = c.nr, blocks = dynamic_blocks(c), bytes = dynamic_block_bytes(c),
               dense = d.transpose_b ? k : n;
  const Source from = {static_cast<const uint8_t*>(b), k, n, (d.ldb ? d.ldb : dense) / 2, d.transpose_b};
  const skua_quantization& q = d.b_q;
  const size_t scale_bytes = element_bytes(c.scale_type);
  // One for all is f32.
  const Scales source = {reinterpret_cast<const char*>(q.scales ? q.scales : &q.scale),
                         q.scales ? scale_bytes * (q.block_size ? blocks : 1) : 0, q.block_size ? scale_bytes : 0};
  // columns of two lines of memory of a row
  const size_t group = from.transposed ? nr : max(kColumns / nr, 1) * nr, panel_bytes = blocks * bytes;
  // Blocks at a time: of four lines of memory of a column, one after the other (Zen 4: one line is read at half of the
  // speed); of rows as many as have their scales together.
  const size_t together = from.transposed ? min(max(512 / c.block, 1), kSums / nr) : 4;
  size_t places[kColumns / 4];
  for (size_t j = 0; j < group; j += 4) places[j / 4] = j / nr * panel_bytes + j % nr * 4;
  for (size_t first = 0; first < n; first += group, to += group / nr * panel_bytes) {
    const size_t columns = min(group, n - first);
    for (size_t block0 = 0; block0 < blocks; block0 += together) {
      const size_t count = min(together, blocks - block0);
      alignas(64) int32_t of_block[kSums];
      const auto sums_of = [&](size_t i) { return of_block + i * group; };
      char* const parts = to + block0 * bytes;
      for (size_t i = 0; i < count; ++i) {
        memset(sums_of(i), 0, columns * sizeof(int32_t));
        for (size_t j = 0; j < columns; j += nr)
          if (j + nr > columns || (block0 + i + 1) * c.block > k)
            memset(parts + j / nr * panel_bytes + i * bytes, 0, bytes);
      }
      if (from.transposed) {
        for (size_t j = 0; j < columns; j += 8)  // along the memory
          for (size_t i = 0; i < count; ++i)
            pack_columns(from, (block0 + i) * c.block, c.block / 8, first + j, min(columns - j, 8), nr,
                         parts + i * bytes + j * 4, sums_of(i) + j);
      } else {
        for (size_t i = 0; i < count; ++i)
          pack_rows(from, (block0 + i) * c.block, c.block / 8, first, columns, nr * 4, parts + i * bytes, places,
                    sums_of(i));
      }
      for (size_t at = 0; at < columns; at += nr)
        for (size_t i = 0; i < count; i += 4)
          put_blocks(source, q, c, first + at, min(nr, columns - at), block0 + i, min(count - i, 4), sums_of(i) + at,
                     group, parts + at / nr * panel_bytes + i * bytes + nr * c.block / 2, bytes, sums + first + at);
    }
  }
}

}  // namespace skua
