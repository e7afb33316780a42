// Pooling over channels-last images, one source for every instruction set. Vectors of channels; four to fifteen of them
// per pass over the window, so that each tap is read as one run of elements and as many chains of operations are in
// flight. Passes share the vectors of a pixel evenly; the last vector overlaps the one before it.
#include "pooling/pool_kernel.h"
#include "dispatch/kernel.h"
#include "simd/half.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// A maximum of halves needs no floats where the instruction set knows halves; everything else is computed in f32.
#if defined(SKUA_HALF)
using V = F16;
SKUA_INL V bound(const float& x) { return V::set1(x); }
#else
using V = F32;
SKUA_INL V bound(const float& x) { return V::broadcast(&x); }
#endif
constexpr size_t L = V::L;

template <class T> SKUA_INL V load(const T* p, bool part, size_t n) { return part ? V::load_n(p, n) : V::load(p); }
SKUA_INL V clamp(V x, const float& low, const float& high) { return clamp_high(clamp_low(x, bound(low)), bound(high)); }

// A maximum that keeps NaN is three instructions and two copies with SSE; here it takes two and one: one remembers that
// there was a NaN, and one may lose it. (AVX2, which needs no copies and has three ports for the three, was 5% slower
// so.)
#if defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
constexpr bool kNansApart = true;
using Nans = M32;
#else
constexpr bool kNansApart = false;
struct Nans {};
#endif

// y or a tap, NaN of either.
#if defined(SKUA_ISA_avx512)
// A NaN in y stays, being the second operand; one in the tap is put back. Its comparison to a mask and a maximum under
// it wait for each other, where masks are slow (Zen 5: twice the time).
SKUA_INL V larger(V y, V a) {
  return {_mm512_fixupimm_ps(_mm512_maskz_max_ps(0xffff, a.v, y.v), a.v, _mm512_set1_epi32(0x22), 0)};
}
#else
SKUA_INL V larger(V y, V a) { return max(y, a); }
#endif

// Maxima of halves are computed as they are, see MaxHalves, but where a register of them is more than the channels.
#if defined(SKUA_HALF) || defined(SKUA_ISA_scalar)
template <class T> constexpr bool kHalvesWhole = false;
#else
template <class T> constexpr bool kHalvesWhole = sizeof(T) == 2;
#endif

// N vectors of one pixel, the last of them `last` floats from the first. `part`: one vector of fewer than L channels.
template <class T> struct Max {
  using Element = T;
  static constexpr size_t most = sizeof(T) == 1                         ? 4
                                 : kHalvesWhole<T>                      ? (L == 16 ? 1 : 2)
                                 : L == 8 && sizeof(T) == sizeof(float) ? 8
                                                                        : 6,
                          lanes = L;
  static constexpr bool nans_apart = kNansApart && sizeof(T) == sizeof(float);
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    V y[N];
    [[maybe_unused]] Nans nans[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      y[v] = V::set1(-__builtin_inff());
      if constexpr (nans_apart) nans[v] = is_nan(y[v]);
    }
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          const V a = load(x + (v < N - 1 ? v * L : last), part, t.channels);
          if constexpr (nans_apart) {
            nans[v] = or_nan(nans[v], a);
            y[v] = max_fast(a, y[v]);
          } else {
            y[v] = larger(y[v], a);
          }
        }
    }
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      if constexpr (nans_apart) y[v] = select(nans[v], V::set1(__builtin_nanf("")), y[v]);
      y[v] = clamp(y[v], t.low, t.high);
      if (part) y[v].store_n(out, t.channels);
      else y[v].store(out + (v < N - 1 ? v * L : last));
    }
  }
};

#if !defined(SKUA_HALF)
// Halves as they are, in whole registers. As integers those of each sign are in order, and every NaN is beyond its
// infinity: a tap takes three operations for a register; vectors of floats, half as many lanes, take a conversion and a
// maximum that keeps NaN each.
template <class T> [[gnu::noinline]] void clamp_halves(size_t n, T* y, float low, float high) {
  for (size_t i = 0; i < n; i += L) {
    T* const x = y + (i + L <= n ? i : n - L);  // some again, and to the same
    clamp(F32::load(x), low, high).store(x);
  }
}
template <class T, size_t bytes> struct MaxHalves {
  using Element = T;
  static constexpr size_t most = F32::registers == 32 ? 6 : 4, lanes = bytes / sizeof(T);
  typedef int16_t Block __attribute__((vector_size(bytes), may_alias));
  typedef int16_t BlockAt __attribute__((vector_size(bytes), aligned(2), may_alias));
  typedef uint16_t Bits __attribute__((vector_size(bytes), may_alias));
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    constexpr uint16_t infinity = element_of<T> == skua::Element::f16 ? 0xfc00 : 0xff80;  // the negative one
    Block most[N], least[N];
    Bits any[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      any[v] = infinity - Bits{};
      most[v] = least[v] = Block(any[v]);
    }
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          const Block a = *reinterpret_cast<const BlockAt*>(x + (v < N - 1 ? v * lanes : last));
          most[v] = a > most[v] ? a : most[v];
          least[v] = a < least[v] ? a : least[v];
          any[v] = Bits(a) > any[v] ? Bits(a) : any[v];
        }
    }
    // a negative NaN; the largest positive one, or a NaN; the least negative one
    SKUA_UNROLL for (int v = 0; v < N; ++v)
      *reinterpret_cast<BlockAt*>(out + (v < N - 1 ? v * lanes : last)) =
          any[v] > infinity ? Block(any[v]) : most[v] >= 0 ? most[v] : least[v];
    if (t.low > -__builtin_inff() || t.high < __builtin_inff()) clamp_halves(last + lanes, out, t.low, t.high);
  }
};

// Quantised bytes: as they are, in registers of so many; fewer channels than fit the shortest are widened, by the
// template above.
template <class T, size_t bytes = 4 * L> struct MaxBytes {
  using Element = T;
  static constexpr size_t most = 4, lanes = bytes;
  typedef T Block __attribute__((vector_size(bytes), aligned(1), may_alias));
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    Block y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = T(t.low) - Block{};
    const auto tap = [&](const T* x) __attribute__((always_inline)) {
      SKUA_UNROLL for (int v = 0; v < N; ++v) {
        const Block a = *reinterpret_cast<const Block*>(x + (v < N - 1 ? v * lanes : last));
        y[v] = a > y[v] ? a : y[v];
      }
    };
    if (N <= 2 && t.rows == 3 && t.columns == 3) {  // loops of three turns are a third of the instructions
      SKUA_UNROLL for (int r = 0; r < 3; ++r, in += t.row)
        SKUA_UNROLL for (int k = 0; k < 3; ++k)
          tap(in + size_t(k) * t.tap);
    } else {
      for (size_t r = 0; r < t.rows; ++r, in += t.row) {
        const T* x = in;
        for (size_t k = 0; k < t.columns; ++k, x += t.tap) tap(x);
      }
    }
    const Block high = T(t.high) - Block{};
    SKUA_UNROLL for (int v = 0; v < N; ++v)
      *reinterpret_cast<Block*>(out + (v < N - 1 ? v * lanes : last)) = y[v] < high ? y[v] : high;
  }
};

#include "pooling/byte_averages.h"
// Vectors of floats in a pass, two registers each. AVX-512: pixels of 240 channels are read as one stream.
#if defined(SKUA_ISA_avx512)
constexpr size_t kMostAverages = 15;
#elif defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
constexpr size_t kMostAverages = F32::registers == 16 ? 7 : 6;
#else
constexpr size_t kMostAverages = F32::registers == 32 ? 10 : 6;
#endif
template <class T> struct Average {
  using Element = T;
  static constexpr size_t most = sizeof(T) == sizeof(float) ? kMostAverages : F32::registers == 32 ? 10 : 6, lanes = L;
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    F32 y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = F32::zero();
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      // A sum per row first: the rounding error of a large window grows with rows + columns instead of their product.
      F32 sum[N];
      SKUA_UNROLL for (int v = 0; v < N; ++v) sum[v] = F32::zero();
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v)
          sum[v] = sum[v] + load(x + (v < N - 1 ? v * L : last), part, t.channels);
      SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + sum[v];
    }
    const F32 scale = F32::broadcast(&t.scale);
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      y[v] = clamp(y[v] * scale, t.low, t.high);
      if (part) y[v].store_n(out, t.channels);
      else y[v].store(out + (v < N - 1 ? v * L : last));
    }
  }
};

#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
// bf16 in whole registers: a shift and an "and" give the even and the odd channels as floats, where a load that widens
// takes two operations for half as many. The sums are the same.
struct AverageWhole {
  using Element = bf16;
  static constexpr size_t most = F32::registers == 32 ? 8 : 3, lanes = 2 * L;
  template <int N, bool>
  static SKUA_INL void pass(const PoolPixels& t, const bf16* in, bf16* out, int32_t*, uint32_t, size_t last) {
    const I32 upper = I32::set1(int32_t(0xffff0000));
    F32 y[N][2];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v][0] = y[v][1] = F32::zero();
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      F32 sum[N][2];
      SKUA_UNROLL for (int v = 0; v < N; ++v) sum[v][0] = sum[v][1] = F32::zero();
      const bf16* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          const I32 two = I32::load(reinterpret_cast<const int32_t*>(x + (v < N - 1 ? v * lanes : last)));
          sum[v][0] = sum[v][0] + as_f32(shl<16>(two));
          sum[v][1] = sum[v][1] + as_f32(two & upper);
        }
      SKUA_UNROLL for (int v = 0; v < N; ++v) SKUA_UNROLL for (int i = 0; i < 2; ++i) y[v][i] = y[v][i] + sum[v][i];
    }
    const F32 scale = F32::broadcast(&t.scale);
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      const auto even = clamp(y[v][0] * scale, t.low, t.high).v, odd = clamp(y[v][1] * scale, t.low, t.high).v;
      bf16* const to = out + (v < N - 1 ? v * lanes : last);
#if defined(SKUA_ISA_avx512)
      F32{__builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)}.store(to);
      F32{__builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)}.store(to +
                                                                                                                  L);
#else
      F32{__builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11)}.store(to);
      F32{__builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15)}.store(to + L);
#endif
    }
  }
};
#endif

template <class T> struct Indices {
  using Element = T;
  static constexpr size_t most = 4, lanes = L;
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t* indices, uint32_t first, size_t last) {
    F32 y[N];
    I32 at[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      y[v] = load(in + (v < N - 1 ? v * L : last), part, t.channels);
      at[v] = I32::set1(int32_t(first));
    }
    for (size_t r = 0; r < t.rows; ++r, in += t.row, first += t.index_row) {
      const T* x = in;
      uint32_t index = first;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap, index += t.index_tap) {
        const I32 here = I32::set1(int32_t(index));
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          const F32 a = load(x + (v < N - 1 ? v * L : last), part, t.channels);
          const M32 better = ~(le(a, y[v]) | is_nan(y[v]));
          y[v] = select(better, a, y[v]);
          at[v] = select(better, here, at[v]);
        }
      }
    }
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      y[v] = clamp(y[v], t.low, t.high);
      if (part) {
        y[v].store_n(out, t.channels);
        at[v].store_n(indices, t.channels);
      } else {
        y[v].store(out + (v < N - 1 ? v * L : last));
        at[v].store(indices + (v < N - 1 ? v * L : last));
      }
    }
  }
};

#endif

// A pass of `vectors` vectors, N of them or fewer.
template <class What, int N>
SKUA_INL void pass_of(size_t vectors, const PoolPixels& t, const typename What::Element* in,
                      typename What::Element* out, int32_t* indices, uint32_t index, size_t last) {
  if constexpr (N > 1)
    if (vectors < N) return pass_of<What, N - 1>(vectors, t, in, out, indices, index, last);
  What::template pass<N, false>(t, in, out, indices, index, last);
}

template <class What> void pixels(const PoolPixels& t) {
  using T = typename What::Element;
  constexpr size_t L = What::lanes;
  const T* in = static_cast<const T*>(t.in);
  T* out = static_cast<T*>(t.out);
  int32_t* indices = t.indices;
  uint32_t index = t.index;
  const size_t n = t.channels, vectors = (n + L - 1) / L, passes = (vectors + What::most - 1) / What::most;
  const size_t each = vectors / passes, more = vectors % passes;  // so many of the passes take one more
  for (size_t p = 0; p < t.pixels; ++p, in += t.pixel, out += t.out_pixel, index += t.index_pixel) {
    if (n < L) What::template pass<1, true>(t, in, out, indices, index, 0);
    else
      for (size_t c = 0, pass = 0; pass < passes; ++pass) {
        const size_t v = each + (pass < more), end = c + v * L;
        pass_of<What, int(What::most)>(v, t, in + c, out + c, indices ? indices + c : nullptr, index,
                                       (end < n ? end : n) - L - c);
        c = end;
      }
    if (indices) indices += t.indices_pixel;
  }
}

#if !defined(SKUA_HALF)
// What a row's taps are put together by; as in the passes over whole windows but for the sign of a maximum that is
// zero.
struct RowMax {
  static SKUA_INL F32 with(F32 y, F32 a) { return larger(y, a); }
  static SKUA_INL F32 begin(F32 y) { return y; }
  static SKUA_INL F32 end(F32 y, F32) { return y; }
};
struct RowAverage {
  static SKUA_INL F32 with(F32 y, F32 a) { return y + a; }
  static SKUA_INL F32 begin(F32 y) { return y + F32::zero(); }  // no sum is -0
  static SKUA_INL F32 end(F32 y, F32 scale) { return y * scale; }
};
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
// 2x2 of floats: all channels of an output, then the next, without loops over taps; passes read every pixel in parts
// (Zen 4: averages of 56x56x256 66 to 50 us, of 28x28x32 1.8 to 1.4, AVX2's 2.0 to 1.4).
// The results are the same: of equal zeros the first tap's stays, and a sum of -0 is 0.
template <class What> void four_taps(const PoolPixels& t) {
  const F32 scale = F32::broadcast(&t.scale), low = F32::broadcast(&t.low), high = F32::broadcast(&t.high);
  const float* in = static_cast<const float*>(t.in);
  float* out = static_cast<float*>(t.out);
  const size_t last = t.channels - L, right = t.tap, below = t.row;
  for (size_t p = t.pixels; p > 0; --p, in += t.pixel, out += t.out_pixel)
    for (size_t c = 0;; c = c + L < last ? c + L : last) {
      const float* const x = in + c;
      const F32 y = What::begin(What::with(What::with(F32::load(x), F32::load(x + right)),
                                           What::with(F32::load(x + below), F32::load(x + below + right))));
      clamp_high(clamp_low(What::end(y, scale), low), high).store(out + c);
      if (c == last) break;
    }
}
template <class T>
bool has_four_taps(const PoolPixels& t) {
  return sizeof(T) == sizeof(float) && t.rows == 2 && t.columns == 2 && t.channels >= L;
}
#endif
#endif

template <class T> void maxima(const PoolPixels& t) {
#if !defined(SKUA_HALF)
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
  if (has_four_taps<T>(t)) return four_taps<RowMax>(t);
#endif
  if constexpr (kHalvesWhole<T>) {
    // else every second pixel's vectors would lie in two lines each
    if constexpr (L == 16) if (t.channels % (2 * L) && t.channels >= L) return pixels<MaxHalves<T, 2 * L>>(t);
    if (t.channels >= 2 * L) return pixels<MaxHalves<T, 4 * L>>(t);
  }
#endif
  pixels<Max<T>>(t);
}

#if defined(SKUA_ISA_avx2)
// N vectors of a row of pixels to the sums so far; the last of them `last` floats from the first.
template <int N> SKUA_INL void add_row(size_t columns, size_t tap, const float* x, size_t last, float* sums) {
  F32 sum[N];
  SKUA_UNROLL for (int v = 0; v < N; ++v) sum[v] = F32::zero();
  for (size_t k = 0; k < columns; ++k, x += tap)
    SKUA_UNROLL for (int v = 0; v < N; ++v)
      sum[v] = sum[v] + F32::load(x + (v < N - 1 ? v * L : last));
  SKUA_UNROLL for (int v = 0; v < N; ++v) (F32::load(sums + v * L) + sum[v]).store(sums + v * L);
}

// Large windows of more channels than a pass takes, as whole maps are, and registers for few vectors: a row of pixels
// is read to its end, in passes of whole lines, before the next one, and the sums so far are in memory. A pass over the
// whole map reads a part of every pixel instead; what was fetched ahead with it is gone before the next pass wants it,
// above all where pixels are a power of two apart. The sums are the same. (Longer or shorter vectors gain nothing:
// SSE4.1 loses a fifth where pixels are not, AVX-512 a tenth.)
void average_by_rows(const PoolPixels& t) {
  constexpr size_t block = 64 * L;
  const F32 scale = F32::broadcast(&t.scale);
  for (size_t c = 0, end; c < t.channels; c = end) {
    if (t.channels - c < L) c = t.channels - L;  // again, and to the same sums
    end = c + block < t.channels ? c + block : t.channels;
    const size_t n = end - c, vectors = (n + L - 1) / L, last = n - L;
    const float* in = static_cast<const float*>(t.in) + c;
    float sums[block];
    for (size_t i = 0; i < vectors; ++i) F32::zero().store(sums + i * L);
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      size_t v = 0;
      for (; v + 8 <= vectors; v += 8)
        add_row<8>(t.columns, t.tap, in + v * L, v + 8 < vectors ? 7 * L : last - v * L, sums + v * L);
      for (; v + 2 <= vectors; v += 2)
        add_row<2>(t.columns, t.tap, in + v * L, v + 2 < vectors ? L : last - v * L, sums + v * L);
      if (v < vectors) add_row<1>(t.columns, t.tap, in + last, 0, sums + v * L);
    }
    float* out = static_cast<float*>(t.out) + c;
    for (size_t v = 0; v < vectors; ++v)
      clamp(F32::load(sums + v * L) * scale, t.low, t.high).store(out + (v + 1 < vectors ? v * L : last));
  }
}
#endif

#if defined(SKUA_ISA_avx512)
// f(i, part): vectors of n elements, the last one in part.
template <class F> SKUA_INL void each_vector(size_t n, const F& f) {
  size_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    f(i, false);
    f(i + L, false);
  }
  if (i + L <= n) {
    f(i, false);
    i += L;
  }
  if (i < n) f(i, true);
}

// Large windows where only what is read in the order of addresses arrives at the speed of L2: all channels of a pixel,
// then those of the next, the row's sums and those of all rows in memory.
// The sums are the same. (Halves, half as many lines, are 3 to 15% slower so.)
void average_by_pixels(const PoolPixels& t) {
  constexpr size_t block = 128 * L;
  const F32 scale = F32::broadcast(&t.scale), low = F32::broadcast(&t.low), high = F32::broadcast(&t.high);
  for (size_t c = 0; c < t.channels; c += block) {
    const size_t n = t.channels - c < block ? t.channels - c : block;
    alignas(4 * L) float row[block], all[block];
    each_vector(n, [&](size_t i, bool) { F32::zero().store(all + i); });
    const float* in = static_cast<const float*>(t.in) + c;
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const float* x = in;
      const auto at = [&](size_t i, bool part) { return load(x + i, part, n - i); };
      each_vector(n, [&](size_t i, bool part) { at(i, part).store(row + i); });
      for (size_t k = 2; k < t.columns; ++k) {
        x += t.tap;
        each_vector(n, [&](size_t i, bool part) { (F32::load(row + i) + at(i, part)).store(row + i); });
      }
      x += t.tap;
      each_vector(
          n, [&](size_t i, bool part) { (F32::load(all + i) + (F32::load(row + i) + at(i, part))).store(all + i); });
    }
    float* out = static_cast<float*>(t.out) + c;
    each_vector(n, [&](size_t i, bool part) {
      const F32 y = clamp_high(clamp_low(F32::load(all + i) * scale, low), high);
      if (part) y.store_n(out + i, n - i);
      else y.store(out + i);
    });
  }
}
#endif

#if !defined(SKUA_HALF)
template <class T> void averages(const PoolPixels& t) {
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
  if constexpr (element_of<T> == skua::Element::bf16)
    if (t.channels >= AverageWhole::lanes) return pixels<AverageWhole>(t);
#endif
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
  if (has_four_taps<T>(t)) return four_taps<RowAverage>(t);
#endif
#if defined(SKUA_ISA_avx512)
  if constexpr (sizeof(T) == sizeof(float))
    if (t.in_order && t.pixels == 1 && t.columns > 1 && t.channels > Average<T>::most * L) return average_by_pixels(t);
#elif defined(SKUA_ISA_avx2)
  if constexpr (sizeof(T) == sizeof(float))
    // not in L1
    if (const size_t taps = t.rows * t.columns;
        t.pixels == 1 && taps >= 32 && t.channels > Average<T>::most * L && taps * t.channels * sizeof(T) > 32 << 10)
      return average_by_rows(t);
#endif
  pixels<Average<T>>(t);
}

#include "pooling/shared_rows.h"

template <class T> void max_bytes(const PoolPixels& t) {
  if constexpr (L > 1) {
    if (t.channels >= 4 * L) return pixels<MaxBytes<T>>(t);
    if constexpr (L > 8) if (t.channels >= 2 * L) return pixels<MaxBytes<T, 2 * L>>(t);
    if constexpr (L > 4) if (t.channels >= 16) return pixels<MaxBytes<T, 16>>(t);
  }
  pixels<Max<T>>(t);
}

template <class T> void average_bytes(const PoolPixels& t) {
#if !defined(SKUA_ISA_scalar)
  // A vector of bytes or more, one pixel after another if that takes several.
  if (t.pixels == 1 && t.rows * t.columns >= kManyTaps &&
      (t.channels >= kWide || (t.tap == t.channels && t.channels * 8 >= kWide && t.row == t.columns * t.tap)))
    return average_of_many<T>(t);
  if (t.channels >= AverageOfWholes<T>::lanes && t.rows <= kMostTaps && t.columns <= kMostTaps &&
      t.rows * t.columns <= kMostTaps)
    return pixels<AverageOfWholes<T>>(t);
#endif
  pixels<AverageBytes<T>>(t);
}

// Planes hold T, what the kernels above then pool floats: a half is converted once, not once per window.
template <class T> void to_channels(size_t n, size_t count, const void* planes, size_t plane, void* channels) {
  const T* from = static_cast<const T*>(planes);
  float* to = static_cast<float*>(channels);
  for (size_t i = 0; i < count; i += L) {
    const size_t m = count - i < L ? count - i : L;
    F32 block[L];
    for (size_t c = 0; c < L; ++c) block[c] = c < n ? load(from + c * plane + i, m < L, m) : F32::zero();
    transpose(block);
    for (size_t k = 0; k < m; ++k) block[k].store(to + (i + k) * L);
  }
}
template <class T> void from_channels(size_t n, size_t count, const void* channels, size_t plane, void* planes) {
  const float* from = static_cast<const float*>(channels);
  T* to = static_cast<T*>(planes);
  for (size_t i = 0; i < count; i += L) {
    const size_t m = count - i < L ? count - i : L;
    F32 block[L];
    for (size_t k = 0; k < L; ++k) block[k] = k < m ? F32::load(from + (i + k) * L) : F32::zero();
    transpose(block);
    for (size_t c = 0; c < n; ++c) {
      if (m < L) block[c].store_n(to + c * plane + i, m);
      else block[c].store(to + c * plane + i);
    }
  }
}

#endif

#define SKUA_POOL(T, type, name, why, kind, variant, fn, function)                                                   \
  {"pool_" name "_" #type "_" SKUA_STRING(SKUA_ISA), "pooling", why, KernelKind::kind, Isa::SKUA_ISA, variant, 1, L, \
   L, reinterpret_cast<AnyCode>(static_cast<fn>(function)), Element::type},
#define SKUA_POOL_MAX(T, type) \
  SKUA_POOL(T, type, "max", "several vectors of channels per pass over the window", pool_max, 0, PoolFn, maxima<T>)
#if defined(SKUA_HALF)
const Kernel kernels[] = {SKUA_POOL_MAX(f16, f16)};
#else
#define SKUA_POOL_PLANES(T, type)                                                                                    \
  SKUA_POOL(T, type, "from_planes", "NCHW: blocks of vectors transposed in registers, as floats", pool_transpose, 0, \
            PoolTransposeFn, to_channels<T>)                                                                         \
  SKUA_POOL(T, type, "to_planes", "NCHW: blocks of vectors transposed in registers, from floats", pool_transpose, 1, \
            PoolTransposeFn, from_channels<T>)
#define SKUA_POOL_TYPE(T, type)                                                                                       \
  SKUA_POOL_MAX(T, type)                                                                                              \
  SKUA_POOL(T, type, "average", "six to fifteen vectors of channels per pass over the window, summed in f32 by rows", \
            pool_average, 0, PoolFn, averages<T>)                                                                     \
  SKUA_POOL(T, type, "indices", "a compare and two selects per tap; up to four vectors of channels per pass",         \
            pool_indices, 0, PoolFn, pixels<Indices<T>>)                                                              \
  SKUA_POOL_PLANES(T, type)
#define SKUA_POOL_BYTES(T, type)                                                                                       \
  SKUA_POOL(T, type, "max", "bytes in whole registers, up to four per pass over the window", pool_max, 0, PoolFn,      \
            max_bytes<T>)                                                                                              \
  SKUA_POOL(T, type, "average", "exact sums, of whole registers of bytes in 16 bits first; requantised once",          \
            pool_average, 0, PoolFn, average_bytes<T>)                                                                 \
  SKUA_POOL(T, type, "indices", "widened; a compare and two selects per tap; up to four vectors of channels per pass", \
            pool_indices, 0, PoolFn, pixels<Indices<T>>)                                                               \
  SKUA_POOL_PLANES(T, type)
#define SKUA_POOL_ROWS                                                                                                 \
  SKUA_POOL(float, f32, "max_row", "one input row at a time, its lines in order", pool_max, 1, PoolRowFn, row<RowMax>) \
  SKUA_POOL(float, f32, "average_row", "one input row at a time, its lines in order", pool_average, 1, PoolRowFn,      \
            row<RowAverage>)
#if defined(SKUA_ISA_avx512)
#define SKUA_POOL_DOWN                                                                                                \
  SKUA_POOL(float, f32, "max_down", "3x3 in place: four pixels of a vector, row after row", pool_max, 2, PoolDownFn,  \
            down<RowMax>)                                                                                             \
  SKUA_POOL(float, f32, "average_down", "3x3 in place: four pixels of a vector, row after row", pool_average, 2,      \
            PoolDownFn, down<RowAverage>)
#else
#define SKUA_POOL_DOWN
#endif
const Kernel kernels[] = {SKUA_POOL_ROWS SKUA_POOL_DOWN SKUA_FOR_TYPES(SKUA_POOL_TYPE) SKUA_FOR_INT8(SKUA_POOL_BYTES)};
#undef SKUA_POOL_ROWS
#undef SKUA_POOL_DOWN
#undef SKUA_POOL_BYTES
#undef SKUA_POOL_TYPE
#undef SKUA_POOL_PLANES
#endif
#undef SKUA_POOL_MAX
#undef SKUA_POOL

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(pooling, kernels)
}  // namespace skua
