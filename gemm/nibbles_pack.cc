// Packing of weights in four bits: the layout is in dynamic_kernel.h. Four columns at a time, in vectors of four words (of eight values of one column), by what the compiler makes of
// them for the baseline.
#include "core/quantize.h"
#include "gemm/dynamic.h"

namespace skua {
namespace {

using Words = uint32_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(16)));
using Pairs = uint64_t __attribute__((vector_size(16)));

inline Words load(const void* p) {
  Words x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline void store(Words x, void* p) { __builtin_memcpy(p, &x, sizeof x); }

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
// The bytes of four words as a matrix of four by four, transposed.
inline Words transpose_bytes(Words x) {
  for (int i = 0; i < 2; ++i) {
    const Bytes b = Bytes(x), upper = Bytes(__builtin_shufflevector(Pairs(x), Pairs(x), 1, 1));
    x = Words(__builtin_shufflevector(b, upper, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  }
  return x;
}

// B is [K][N] of nibbles or, transposed, [N][K]; rows begin at bytes.
struct Source {
  const uint8_t* b;
  size_t k_count, step;  // bytes from a row to the next
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
  // Eight steps of eight columns, the first one even.
  inline void by_rows(size_t k, size_t n, char* to, int32_t* sums) const {
    const uint8_t* p = b + k * step + n / 2;
    const auto word = [&](size_t i) {
      uint32_t x;
      __builtin_memcpy(&x, p + i * step, 4);
      return x;
    };
    const Words first = {word(0), word(1), word(2), word(3)}, second = {word(4), word(5), word(6), word(7)};
    const Words even = transpose_bytes((first & 0x0f0f0f0f) | (second & 0x0f0f0f0f) << 4), odd = transpose_bytes((first >> 4 & 0x0f0f0f0f) | (second & 0xf0f0f0f0));
    const Words x = __builtin_shufflevector(even, odd, 0, 4, 1, 5), y = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
    store(x, to);
    store(y, to + 16);
    add_sums(byte_sums(pair_sums(x)), 8 * 8, sums);
    add_sums(byte_sums(pair_sums(y)), 8 * 8, sums + 4);
  }
};

// Scales of T, or of its bits: those of a column are column_step apart, of a block block_step.
struct Scales {
  const char* from;
  size_t column_step, block_step;
};
template <class T> inline float scale_of(T x) { return widen(x); }
template <> inline float scale_of(f16 x) { return x.bits >= 0x400 ? __builtin_bit_cast(float, (uint32_t(x.bits) << 13) + (uint32_t(112) << 23)) : widen(x); }  // positive and finite
template <class T> inline void put_scales(const Scales& scales, size_t first, size_t columns, size_t block, const int32_t* of_block, char* to, float* sums) {
  const char* from = scales.from + first * scales.column_step + block * scales.block_step;
  for (size_t j = 0; j < columns; ++j, from += scales.column_step) {
    T scale;
    __builtin_memcpy(&scale, from, sizeof scale);
    __builtin_memcpy(to + j * sizeof scale, &scale, sizeof scale);
    sums[j] += scale_of(scale) * float(of_block[j]);
  }
}

constexpr size_t kColumns = 256;  // of a panel, at most

// The values of a block of `steps` times eight of the depth, of columns first..first + columns.
void pack_values(const Source& from, size_t k0, size_t steps, size_t first, size_t columns, size_t nr, char* to, int32_t* sums) {
  const size_t line = nr * 4, whole = k0 < from.k_count ? min((from.k_count - k0) / 8, steps) : 0;
  size_t packed = 0, fast = 0;  // columns and steps that are done
  if (from.transposed) {
    packed = columns / 4 * 4;
    fast = whole / 4 * 4;
    for (size_t j = 0; j < packed; j += 4)
      for (size_t s = 0; s < fast; s += 4) from.by_columns(k0 + s * 8, first + j, to + s * line + j * 4, line, sums + j);
  } else {
    packed = columns / 8 * 8;
    fast = whole;
    for (size_t s = 0; s < fast; ++s) {
      for (size_t i = 0; i < 8; ++i) __builtin_prefetch(from.b + min(k0 + (s + 6) * 8 + i, from.k_count - 1) * from.step + first / 2);  // no prefetcher of a core follows rows
      for (size_t j = 0; j < packed; j += 8) from.by_rows(k0 + s * 8, first + j, to + s * line + j * 4, sums + j);
    }
  }
  for (size_t j = 0; j < columns; ++j)
    for (size_t s = j < packed ? fast : 0; s < steps && k0 + s * 8 < from.k_count; ++s) {
      const uint32_t x = interleaved(from.eight(k0 + s * 8, first + j));
      __builtin_memcpy(to + s * line + j * 4, &x, 4);
      sums[j] += int32_t(byte_sums(pair_sums(x))) - 8 * 8;
    }
}

}  // namespace

void pack_nibbles(const DynamicConfig& c, const skua_gemm_desc& d, const void* b, float* sums, char* to) {
  const size_t n = size_t(c.n), k = size_t(c.k), nr = c.nr, blocks = dynamic_blocks(c), bytes = dynamic_block_bytes(c), dense = d.transpose_b ? k : n;
  const Source from = {static_cast<const uint8_t*>(b), k, (d.ldb ? d.ldb : dense) / 2, d.transpose_b};
  const skua_quantization& q = d.b_q;
  const size_t scale_bytes = element_bytes(c.scale_type);
  // One for all is f32.
  const Scales source = {reinterpret_cast<const char*>(q.scales ? q.scales : &q.scale), q.scales ? scale_bytes * (q.block_size ? blocks : 1) : 0, q.block_size ? scale_bytes : 0};
  const size_t together = c.block < 128 ? 128 / c.block : 1;  // blocks of one line of memory of a column
  for (size_t first = 0; first < n; first += nr) {
    const size_t columns = min(nr, n - first);
    for (size_t block0 = 0; block0 < blocks; block0 += together) {
      const size_t count = min(together, blocks - block0);
      alignas(64) int32_t of_block[4][kColumns];
      for (size_t i = 0; i < count; ++i) {
        memset(of_block[i], 0, columns * sizeof(int32_t));
        char* const values = to + i * bytes;
        if (columns < nr || (block0 + i + 1) * c.block > k) memset(values, 0, bytes);
      }
      const size_t at_once = from.transposed ? 8 : columns;  // along the memory
      for (size_t j = 0; j < columns; j += at_once)
        for (size_t i = 0; i < count; ++i) pack_values(from, (block0 + i) * c.block, c.block / 8, first + j, min(columns - j, at_once), nr, to + i * bytes + j * 4, of_block[i] + j);
      for (size_t i = 0; i < count; ++i, to += bytes) {
        char* const scales = to + nr * c.block / 2;
        char* const zeros = scales + nr * scale_bytes;
        if (c.scale_type == Element::f16) put_scales<f16>(source, first, columns, block0 + i, of_block[i], scales, sums + first);
        else if (c.scale_type == Element::bf16) put_scales<bf16>(source, first, columns, block0 + i, of_block[i], scales, sums + first);
        else put_scales<float>(source, first, columns, block0 + i, of_block[i], scales, sums + first);
        for (size_t j = 0; j < columns && c.has_zeros; ++j) {
          const size_t at = q.block_size ? (first + j) * blocks + block0 + i : first + j;
          const float zero = (q.scales ? quantization_scale(q, at) : q.scale) * float(q.zero_points[at]);
          __builtin_memcpy(zeros + j * sizeof(float), &zero, sizeof zero);
        }
      }
    }
  }
}

}  // namespace skua
