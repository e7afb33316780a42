// Softmax of quantised bytes, one source for every instruction set; the formula is at SoftmaxBytes. The powers are a
// table of integers, so that their sum is exact in any order; what follows is one rounding at a time in f32 or double:
// every set gives the same bits.
//
//   rows      greatest byte by vectors; powers looked up eight bytes at a time and summed; results: rows of up to 256
//             elements from the powers, which stand in a buffer, longer ones by a table of their own, of the 256
//             results that a byte can have. As many rows at once as the buffer holds, up to eight: powers are written
//             one by one and read by vectors, which would wait for the last of them
//   columns   the same down strips of 64 columns
#include "normalize/softmax_kernel.h"
#include "dispatch/kernel.h"
#include "simd/look_up.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;
constexpr size_t kShort = 256;   // elements of a row whose powers are kept
constexpr size_t kStrip = 64;    // columns
constexpr size_t kRows = 8;      // short rows at once
typedef uint8_t Block __attribute__((vector_size(4 * L), aligned(1), may_alias));

typedef uint8_t Whole __attribute__((vector_size(4 * L)));
typedef uint8_t V16 __attribute__((vector_size(16)));
template <class V> SKUA_INL V bytes_at(const uint8_t* p) {  // a type given to a template has no alignment of its own
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Blocks of vectors, the last one over those before it; then 16 lanes by halves.
template <class V> SKUA_INL V greatest_block(size_t n, const uint8_t* x, uint8_t flip) {
  const V flips = flip - V{};
  V m = bytes_at<V>(x + n - sizeof(V)) ^ flips;
  for (size_t i = 0; i + sizeof(V) < n; i += sizeof(V)) {
    const V v = bytes_at<V>(x + i) ^ flips;
    m = v > m ? v : m;
  }
  return m;
}
SKUA_INL uint8_t greatest(size_t n, const uint8_t* x, uint8_t flip) {
  if (L == 1 || n < 8) {
    uint8_t top = 0;
    for (size_t i = 0; i < n; ++i) {
      const uint8_t u = static_cast<uint8_t>(x[i] ^ flip);
      top = u > top ? u : top;
    }
    return top;
  }
  V16 m;
  if (n >= sizeof(Block)) {
    const Whole all = greatest_block<Whole>(n, x, flip);
    uint8_t lanes[sizeof(Whole) + 16];
    __builtin_memcpy(lanes, &all, sizeof all);
    m = bytes_at<V16>(lanes);
    for (size_t i = 16; i < sizeof(Block); i += 16) {
      const V16 v = bytes_at<V16>(lanes + i);
      m = v > m ? v : m;
    }
  } else if (n >= 16) {
    m = greatest_block<V16>(n, x, flip);
  } else {
    uint64_t ends[2];
    __builtin_memcpy(ends, x, 8);
    __builtin_memcpy(ends + 1, x + n - 8, 8);
    __builtin_memcpy(&m, ends, sizeof m);
    m ^= flip - V16{};
  }
  const auto with = [&m](V16 v) { m = v > m ? v : m; };
  with(__builtin_shufflevector(m, m, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  with(__builtin_shufflevector(m, m, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  with(__builtin_shufflevector(m, m, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
  with(__builtin_shufflevector(m, m, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
  return m[0];
}

// Sums powers[top - u]; fn(i, d) sees each.
template <class F>
SKUA_INL uint64_t sum_powers(size_t n, const uint8_t* x, uint8_t flip, uint8_t top, const int32_t* powers, F fn) {
  const uint64_t every = 0x0101010101010101u, flips = every * flip, tops = every * top;
  uint64_t sum = 0, other = 0;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t d;
    __builtin_memcpy(&d, x + i, 8);
    d = tops - (d ^ flips);  // no byte borrows: none is above its top
    SKUA_UNROLL for (size_t k = 0; k < 8; ++k) {
      const size_t one = d >> 8 * k & 255;
      (k % 2 ? sum : other) += static_cast<uint32_t>(powers[one]);
      fn(i + k, one);
    }
  }
  for (; i < n; ++i) {
    const size_t one = static_cast<size_t>(top - (x[i] ^ flip));
    sum += static_cast<uint32_t>(powers[one]);
    fn(i, one);
  }
  return sum + other;
}

// To nearest, in one rounding.
SKUA_INL double to_double(uint64_t x) { return double(uint32_t(x >> 32)) * 0x1p32 + double(uint32_t(x)); }
// For 1 <= x < 2^64, within 2^-48: twice the series of the inverse hyperbolic tangent of (m - 1) / (m + 1), m within a
// factor of sqrt 2 of 1.
SKUA_INL double logarithm_of(double x) {
  const uint64_t bits = __builtin_bit_cast(uint64_t, x), up = (bits & 0xfffffffffffffu) > 0x6a09e667f3bcdu;
  const double m = __builtin_bit_cast(double, (bits & 0xfffffffffffffu) | (1023 - up) << 52), z = (m - 1) / (m + 1),
               z2 = z * z;
  double series = 0;
  for (int k = 17; k > 0; k -= 2) series = series * z2 + 1.0 / k;
  return double(int32_t(bits >> 52) - 1023 + int32_t(up)) * 0x1.62e42fefa39efp-1 + 2 * z * series;
}
// What belongs to a sum: the factor, or what is subtracted.
template <bool logarithm> SKUA_INL float of_sum(const SoftmaxBytes& s, uint64_t sum) {
  if constexpr (logarithm) {
    const double shift = logarithm_of(to_double(sum) * 0x1p-30) / s.step;
    return shift < 0x1p100 ? float(shift) : 0x1p100f;
  }
  return float(1 / (to_double(sum) * s.step));
}
template <bool logarithm>
SKUA_INL int32_t kept(const SoftmaxBytes& s, size_t d) {
  return logarithm ? -static_cast<int32_t>(d) : s.powers[d];
}

// From what was kept; by(i) gives what belongs to the sums of elements i and on, of n or of a vector.
template <bool logarithm, class T, class By>
SKUA_INL void finish(size_t n, const int32_t* x, T* y, F32 slope, const Requantizer& to, By by) {
  size_t i = 0;
  const auto value = [&](I32 v, F32 of) { return to.rounded(logarithm ? to_f32(v) * slope - of : to_f32(v) * of); };
  for (; i + 4 * L <= n; i += 4 * L) {
    I32 q[4];
    SKUA_UNROLL for (size_t u = 0; u < 4; ++u) q[u] = value(I32::load(x + i + u * L), by(i + u * L, L));
    store_bytes(q, y + i);
  }
  for (size_t m; i < n; i += m) {
    m = n - i < L ? n - i : L;
    value(I32::load_n(x + i, m), by(i, m)).store_n(y + i, m);
  }
}

template <bool logarithm, class T> void rows(const SoftmaxBytes& s) {
  const Requantizer to(s.to);
  const F32 slope = F32::set1(s.slope);
  const uint8_t* x = static_cast<const uint8_t*>(s.x);
  T* y = static_cast<T*>(s.y);
  alignas(64) int32_t buffer[kShort];
  if (s.n <= kShort) {
    const size_t n = s.n, step = (n + 15) / 16 * 16, most = kShort / step < kRows ? kShort / step : kRows;
    uint64_t sums[kRows];
    float of[kRows];
    for (size_t r = 0, count; r < s.count; r += count) {
      count = s.count - r < most ? s.count - r : most;
      for (size_t i = 0; i < count; ++i, x += s.x_step) {
        int32_t* const to_row = buffer + i * step;
        sums[i] = sum_powers(n, x, s.flip, greatest(n, x, s.flip), s.powers,
                             [&](size_t at, size_t d) { to_row[at] = kept<logarithm>(s, d); });
      }
      for (size_t i = 0; i < count; ++i) of[i] = of_sum<logarithm>(s, sums[i]);
      for (size_t i = 0; i < count; ++i, y += s.y_step) {
        const F32 by = F32::set1(of[i]);
        finish<logarithm>(n, buffer + i * step, y, slope, to, [by](size_t, size_t) { return by; });
      }
    }
    return;
  }
  for (size_t r = 0; r < s.count; ++r, x += s.x_step, y += s.y_step) {
    const uint8_t top = greatest(s.n, x, s.flip);
    const uint64_t sum = sum_powers(s.n, x, s.flip, top, s.powers, [](size_t, size_t) {});
    const F32 of = F32::set1(of_sum<logarithm>(s, sum));
    const auto same = [of](size_t, size_t) { return of; };
    if (logarithm) for (size_t d = 0; d < 256; ++d) buffer[d] = kept<logarithm>(s, d);
    T results[256];
    finish<logarithm>(256, logarithm ? buffer : s.powers, results, slope, to, same);
    // top - u = ~u + top + 1
    look_up(s.n, x, reinterpret_cast<uint8_t*>(y), reinterpret_cast<const uint8_t*>(results), uint8_t(~s.flip),
            uint8_t(top + 1));
  }
}

template <bool logarithm, class T> void columns(const SoftmaxBytes& s) {
  const Requantizer to(s.to);
  const F32 slope = F32::set1(s.slope);
  alignas(64) uint8_t top[kStrip];
  alignas(64) uint64_t sums[kStrip];
  alignas(64) float of[kStrip];
  alignas(64) int32_t buffer[kStrip];
  for (size_t c0 = 0, m; c0 < s.count; c0 += m) {
    m = s.count - c0 < kStrip ? s.count - c0 : kStrip;
    const uint8_t* const x = static_cast<const uint8_t*>(s.x) + c0;
    T* const y = static_cast<T*>(s.y) + c0;
    for (size_t c = 0; c < kStrip; ++c) top[c] = 0, sums[c] = 0;
    for (size_t r = 0; r < s.n; ++r) {
      const uint8_t* const row = x + r * s.x_step;
      size_t c = 0;
      if (L > 1) for (; c + sizeof(Block) <= m; c += sizeof(Block)) {
        Block& best = *reinterpret_cast<Block*>(top + c);
        const Block v = *reinterpret_cast<const Block*>(row + c) ^ (s.flip - Block{});
        best = v > best ? v : best;
      }
      for (; c < m; ++c) {
        const uint8_t u = static_cast<uint8_t>(row[c] ^ s.flip);
        top[c] = u > top[c] ? u : top[c];
      }
    }
    for (size_t r = 0; r < s.n; ++r)
      for (size_t c = 0; c < m; ++c)
        sums[c] += static_cast<uint32_t>(s.powers[top[c] - (x[r * s.x_step + c] ^ s.flip)]);
    for (size_t c = 0; c < m; ++c) of[c] = of_sum<logarithm>(s, sums[c]);
    for (size_t r = 0; r < s.n; ++r) {
      for (size_t c = 0; c < m; ++c)
        buffer[c] = kept<logarithm>(s, static_cast<size_t>(top[c] - (x[r * s.x_step + c] ^ s.flip)));
      finish<logarithm>(m, buffer, y + r * s.y_step, slope, to,
                        [&](size_t c, size_t n) { return n == L ? F32::load(of + c) : F32::load_n(of + c, n); });
    }
  }
}

#define SKUA_SOFTMAX_ONE(name, T, type, variant, code)                                                   \
  {name "_" #type "_" SKUA_STRING(SKUA_ISA), "normalize", "powers from a table of integers, exact sums", \
   KernelKind::softmax_bytes, Isa::SKUA_ISA, variant, 0, 0, F32::L,                                      \
   reinterpret_cast<AnyCode>(static_cast<SoftmaxBytesFn>(code)), element_of<T>},
#define SKUA_SOFTMAX(T, type)                                          \
  SKUA_SOFTMAX_ONE("softmax_rows", T, type, 0, (rows<false, T>))       \
  SKUA_SOFTMAX_ONE("log_softmax_rows", T, type, 1, (rows<true, T>))    \
  SKUA_SOFTMAX_ONE("softmax_columns", T, type, 2, (columns<false, T>)) \
  SKUA_SOFTMAX_ONE("log_softmax_columns", T, type, 3, (columns<true, T>))
const Kernel kernels[] = {SKUA_FOR_INT8(SKUA_SOFTMAX)};
#undef SKUA_SOFTMAX
#undef SKUA_SOFTMAX_ONE

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(softmax_bytes, kernels)
}  // namespace skua
