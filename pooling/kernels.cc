// Pooling over channels-last images, one source for every instruction set. Vectors of channels; up to six (ten) of them per pass over the window, so that each tap is read
// as one run of elements and as many chains of operations are in flight. Passes share the vectors of a pixel evenly; the last vector overlaps the one before it.
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

// N vectors of one pixel, the last of them `last` floats from the first. `part`: one vector of fewer than L channels.
template <class T> struct Max {
  using Element = T;
  static constexpr size_t most = sizeof(T) == 1 ? 4 : 6, lanes = L;
  template <int N, bool part> static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    V y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = V::set1(-__builtin_inff());
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = max(y[v], load(x + (v < N - 1 ? v * L : last), part, t.channels));
    }
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      y[v] = clamp(y[v], t.low, t.high);
      if (part) y[v].store_n(out, t.channels);
      else y[v].store(out + (v < N - 1 ? v * L : last));
    }
  }
};

#if !defined(SKUA_HALF)
// Quantised bytes: as they are, in whole registers; fewer channels than fit one are widened, by the template above.
template <class T> struct MaxBytes {
  using Element = T;
  static constexpr size_t most = 4, lanes = 4 * L;
  typedef T Block __attribute__((vector_size(4 * L), aligned(1), may_alias));
  template <int N, bool part> static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    Block y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = T(t.low) - Block{};
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          const Block a = *reinterpret_cast<const Block*>(x + (v < N - 1 ? v * lanes : last));
          y[v] = a > y[v] ? a : y[v];
        }
    }
    const Block high = T(t.high) - Block{};
    SKUA_UNROLL for (int v = 0; v < N; ++v) *reinterpret_cast<Block*>(out + (v < N - 1 ? v * lanes : last)) = y[v] < high ? y[v] : high;
  }
};

// Sums are exact in 32 bits.
template <class T> struct AverageBytes {
  using Element = T;
  static constexpr size_t most = 4, lanes = L;
  template <int N, bool part> static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    I32 y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = I32::set1(-t.zero * int32_t(t.rows * t.columns));
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = y[v] + (part ? I32::load_n(x, t.channels) : I32::load(x + (v < N - 1 ? v * L : last)));
    }
    const Requantizer to(Requantize{t.low, t.high, t.zero_point});
    const F32 scale = F32::set1(t.scale);
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      const I32 q = to(y[v], scale);
      if (part) q.store_n(out, t.channels);
      else q.store(out + (v < N - 1 ? v * L : last));
    }
  }
};

template <class T> struct Average {
  using Element = T;
  static constexpr size_t most = F32::registers == 32 ? 10 : 6, lanes = L;
  template <int N, bool part> static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    F32 y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = F32::zero();
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      // A sum per row first: the rounding error of a large window grows with rows + columns instead of their product.
      F32 sum[N];
      SKUA_UNROLL for (int v = 0; v < N; ++v) sum[v] = F32::zero();
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) sum[v] = sum[v] + load(x + (v < N - 1 ? v * L : last), part, t.channels);
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

template <class T> struct Indices {
  using Element = T;
  static constexpr size_t most = 4, lanes = L;
  template <int N, bool part> static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t* indices, uint32_t first, size_t last) {
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
SKUA_INL void pass_of(size_t vectors, const PoolPixels& t, const typename What::Element* in, typename What::Element* out, int32_t* indices, uint32_t index, size_t last) {
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
        pass_of<What, int(What::most)>(v, t, in + c, out + c, indices ? indices + c : nullptr, index, (end < n ? end : n) - L - c);
        c = end;
      }
    if (indices) indices += t.indices_pixel;
  }
}

#if !defined(SKUA_HALF)
template <class T> void max_bytes(const PoolPixels& t) {
  if (L == 1 || t.channels < MaxBytes<T>::lanes) pixels<Max<T>>(t);
  else pixels<MaxBytes<T>>(t);
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

#define SKUA_POOL(T, type, name, why, kind, variant, fn, function)                                                                                                             \
  {"pool_" name "_" #type "_" SKUA_STRING(SKUA_ISA), "pooling", why, KernelKind::kind, Isa::SKUA_ISA, variant, 1, L, L, reinterpret_cast<AnyCode>(static_cast<fn>(function)), \
   Element::type},
#define SKUA_POOL_MAX(T, type) SKUA_POOL(T, type, "max", "up to six vectors of channels per pass over the window", pool_max, 0, PoolFn, pixels<Max<T>>)
#if defined(SKUA_HALF)
const Kernel kernels[] = {SKUA_POOL_MAX(f16, f16)};
#else
#define SKUA_POOL_PLANES(T, type)                                                                                                                                   \
  SKUA_POOL(T, type, "from_planes", "NCHW: blocks of vectors transposed in registers, as floats", pool_transpose, 0, PoolTransposeFn, to_channels<T>)               \
  SKUA_POOL(T, type, "to_planes", "NCHW: blocks of vectors transposed in registers, from floats", pool_transpose, 1, PoolTransposeFn, from_channels<T>)
#define SKUA_POOL_TYPE(T, type)                                                                                                                                     \
  SKUA_POOL_MAX(T, type)                                                                                                                                            \
  SKUA_POOL(T, type, "average", "up to six vectors of channels per pass over the window, summed in f32 by rows", pool_average, 0, PoolFn, pixels<Average<T>>)       \
  SKUA_POOL(T, type, "indices", "a compare and two selects per tap; up to four vectors of channels per pass", pool_indices, 0, PoolFn, pixels<Indices<T>>)          \
  SKUA_POOL_PLANES(T, type)
#define SKUA_POOL_BYTES(T, type)                                                                                                                                    \
  SKUA_POOL(T, type, "max", "bytes in whole registers, up to four per pass over the window", pool_max, 0, PoolFn, max_bytes<T>)                                     \
  SKUA_POOL(T, type, "average", "exact sums of up to four vectors of channels per pass, requantised once", pool_average, 0, PoolFn, pixels<AverageBytes<T>>) \
  SKUA_POOL(T, type, "indices", "widened; a compare and two selects per tap; up to four vectors of channels per pass", pool_indices, 0, PoolFn, pixels<Indices<T>>) \
  SKUA_POOL_PLANES(T, type)
const Kernel kernels[] = {SKUA_FOR_TYPES(SKUA_POOL_TYPE) SKUA_FOR_INT8(SKUA_POOL_BYTES)};
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
