// Depthwise convolution of bytes, one source for every instruction set: int8_kernel.h has the formula and the layout, int8_vectors.h the vectors.
//
//   tile: 1 or 2 rows x RW outputs of L channels, a quarter of them (a vector of sums) at a time: RH*RW sums + RH weights + 1 column, and 3/4 of the tile's
//   results, first as 32, then as 16 bits. RW = 4 of 32 registers, 2 of 16.
//
// Kernel, stride and dilation are numbers at run time: the weights of a column tap are read once for RW outputs, and what loops cost is small beside it.
#include "depthwise/int8_kernel.h"
#include "depthwise/int8_vectors.h"
#include "dispatch/kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <class B, bool PART> SKUA_INL typename B::I load_channels(const uint8_t* p, size_t n) {
  if constexpr (!PART) return B::load(p);
  uint8_t all[B::L] = {};
  __builtin_memcpy(all, p, n);
  return B::load(all);
}

// Rows of the last group that have no taps are constants: LIVE are read.
template <class B, bool PART, int LIVE> SKUA_INL void interleave_group(const DepthwiseInt8Columns& t, size_t g, uint8_t* at, size_t step) {
  constexpr int G = B::G;
  const typename B::I by = B::bytes(t.flip);
  typename B::I r[G], v[4];
  const uint8_t* p[G];
  size_t steps[G];
  SKUA_UNROLL for (int b = 0; b < G; ++b) {
    r[b] = B::bytes(t.padding);
    p[b] = t.rows[g * G + b];
    steps[b] = t.steps[g * G + b];
  }
  for (size_t x = 0; x < t.columns; ++x, at += step) {
    SKUA_UNROLL for (int b = 0; b < LIVE; ++b) {
      r[b] = B::flip(load_channels<B, PART>(p[b], t.channels), by);
      p[b] += steps[b];
    }
    B::group(r, v);
    SKUA_UNROLL for (int i = 0; i < 4; ++i) B::store(at + i * B::L, v[i]);
  }
}
template <class B, bool PART> SKUA_INL void interleave_columns(const DepthwiseInt8Columns& t, uint8_t* to, size_t step) {
  const size_t whole = t.groups - (!PART && t.spare ? 1 : 0);
  for (size_t g = 0; g < whole; ++g) interleave_group<B, PART, B::G>(t, g, to + g * 4 * B::L, step);
  if (whole == t.groups) return;
  to += whole * 4 * B::L;
  if constexpr (B::G == 4 && !PART) {
    if (t.spare == 1) interleave_group<B, PART, 3>(t, whole, to, step);
    else if (t.spare == 2) interleave_group<B, PART, 2>(t, whole, to, step);
    else interleave_group<B, PART, 1>(t, whole, to, step);
  } else {
    interleave_group<B, PART, 1>(t, whole, to, step);
  }
}

template <class B> void interleave(const DepthwiseInt8Columns& t) {
  const size_t step = t.groups * 4 * B::L;
  uint8_t* to = static_cast<uint8_t*>(t.to);
  typename B::I padding[B::G], v[4];
  SKUA_UNROLL for (int b = 0; b < B::G; ++b) padding[b] = B::bytes(t.padding);
  B::group(padding, v);
  for (uint8_t *p = to, *end = to + t.before * step; p < end; p += B::L) B::store(p, v[0]);
  to += t.before * step;
  if (t.channels == B::L) interleave_columns<B, false>(t, to, step);
  else interleave_columns<B, true>(t, to, step);
  to += t.columns * step;
  for (uint8_t *p = to, *end = to + t.after * step; p < end; p += B::L) B::store(p, v[0]);
}

template <class B, bool FITS> SKUA_INL auto scaled_sum(typename B::Sum sum, const float* scale, float high) {
  if constexpr (FITS) return B::scaled(sum, scale);
  else return B::scaled(sum, scale, high);
}

// One tap of a group for RW outputs of RH rows.
template <class B, int RH, int RW> SKUA_INL void column_tap(typename B::Sum (&sum)[RH][RW], const uint8_t* p, size_t step, const uint8_t* w) {
  typename B::I weights[RH];
  SKUA_UNROLL for (int y = 0; y < RH; ++y) weights[y] = B::load(w + y * B::L);
  SKUA_UNROLL for (int x = 0; x < RW; ++x) {
    const typename B::I taps = B::load(p + size_t(x) * step);
    SKUA_UNROLL for (int y = 0; y < RH; ++y) B::dot(sum[y][x], taps, weights[y]);
  }
}

// FITS: all L channels, and products that fit 32 bits. K: 3 of a kernel of three columns and one group, whose loops are then unrolled; 0 of any.
template <class B, int RH, int RW, bool FITS, int K> SKUA_INL void tile(const DepthwiseInt8Tile& t, const uint8_t* columns, uint8_t* out) {
  constexpr int L = B::L;
  const size_t groups = K ? 1 : t.groups, kernel_w = K ? size_t(K) : t.kernel_w, group = 4 * L, column = groups * group, tap = t.tap * column, step = t.step * column;
  const uint8_t* w = static_cast<const uint8_t*>(t.w);
  const uint8_t* offset = w + 4 * groups * kernel_w * RH * L;
  const float* scale = reinterpret_cast<const float*>(offset + 4 * L);
  using Scaled = decltype(B::scaled(B::start(B::load(w)), scale, 0));
  using Half = decltype(B::half(Scaled(), Scaled(), 0, 0));
  Half halves[RH][RW][2];
  SKUA_UNROLL for (int h = 0; h < 2; ++h) {
    Scaled scaled[RH][RW][2];
    SKUA_UNROLL for (int i = 0; i < 2; ++i) {
      const int v = 2 * h + i;
      typename B::Sum sum[RH][RW];
      SKUA_UNROLL for (int y = 0; y < RH; ++y)
        SKUA_UNROLL for (int x = 0; x < RW; ++x) sum[y][x] = B::start(B::load(offset + v * L));
      const uint8_t* from = columns + v * L;
      if constexpr (K > 0) {
        SKUA_UNROLL for (int kx = 0; kx < K; ++kx, w += RH * L) column_tap<B, RH, RW>(sum, from + size_t(kx) * tap, step, w);
      } else {
        for (size_t g = 0; g < t.groups; ++g, from += group) {
          const uint8_t* p = from;
          for (size_t kx = 0; kx < t.kernel_w; ++kx, p += tap, w += RH * L) column_tap<B, RH, RW>(sum, p, step, w);
        }
      }
      SKUA_UNROLL for (int y = 0; y < RH; ++y)
        SKUA_UNROLL for (int x = 0; x < RW; ++x) scaled[y][x][i] = scaled_sum<B, FITS>(sum[y][x], scale + v * (L / 4), t.high);
    }
    SKUA_UNROLL for (int y = 0; y < RH; ++y)
      SKUA_UNROLL for (int x = 0; x < RW; ++x) halves[y][x][h] = B::half(scaled[y][x][0], scaled[y][x][1], t.zero_point, t.low);
  }
  const typename B::I by = B::bytes(t.flip);
  SKUA_UNROLL for (int y = RH - 1; y >= 0; --y)
    SKUA_UNROLL for (int x = 0; x < RW; ++x) {
      typename B::I q = B::whole(halves[y][x][0], halves[y][x][1]);
      if constexpr (B::saturates)
        if (t.is_bounded) q = B::bounded(q, int8_t(t.low), t.top);
      q = B::flip(q, by);
      uint8_t* p = out + size_t(y) * t.out_row + size_t(x) * t.out_pixel;
      if (FITS || t.channels == L) {
        B::store(p, q);
      } else {
        uint8_t all[L];
        B::store(all, q);
        __builtin_memcpy(p, all, t.channels);
      }
    }
}

// The last tile of RW outputs overlaps the one before it.
template <class B, int RH, int RW, bool FITS, int K> SKUA_INL void run_tiles(const DepthwiseInt8Tile& t) {
  const uint8_t* columns = static_cast<const uint8_t*>(t.columns);
  const size_t step = t.step * t.groups * 4 * B::L;
  if (t.outputs < RW) {
    for (size_t x = 0; x < t.outputs; ++x) tile<B, RH, 1, false, 0>(t, columns + x * step, t.out + x * t.out_pixel);
    return;
  }
  for (size_t x = 0;; x = x + 2 * RW <= t.outputs ? x + RW : t.outputs - RW) {
    tile<B, RH, RW, FITS, K>(t, columns + x * step, t.out + x * t.out_pixel);
    if (x + RW >= t.outputs) return;
  }
}
template <class B, int RH, int RW> void run(const DepthwiseInt8Tile& t) {
  if constexpr (B::saturates)
    if (t.fits && t.channels == B::L) {
      if constexpr (B::G == 4 && B::L >= 32)
        if (t.groups == 1 && t.kernel_w == 3) return run_tiles<B, RH, RW, true, 3>(t);
      return run_tiles<B, RH, RW, true, 0>(t);
    }
  run_tiles<B, RH, RW, false, 0>(t);
}

constexpr int kColumns = F32::registers >= 32 ? 4 : 2;
template <class B> constexpr DepthwiseInt8Table functions = {B::G, B::takes_unsigned, interleave<B>, {run<B, 1, kColumns>, run<B, 2, kColumns>}};
template <class B> const DepthwiseInt8Table& table() { return functions<B>; }

#define SKUA_ENTRY(T, type, bytes, why)                                                                                                                                           \
  {"depthwise_" #type "_2x" SKUA_STRING(SKUA_COLUMNS) "x" #bytes "_" SKUA_STRING(SKUA_ISA), "depthwise", why, KernelKind::depthwise_int8, Isa::SKUA_ISA, 0, 2, kColumns, bytes, \
   reinterpret_cast<AnyCode>(static_cast<DepthwiseInt8TableFn>(table<Bytes##bytes>)), Element::type},
#if defined(SKUA_ISA_avx512vnni) || (defined(__aarch64__) && !defined(SKUA_ISA_scalar))
#define SKUA_COLUMNS 4
#else
#define SKUA_COLUMNS 2
#endif
static_assert(kColumns == SKUA_COLUMNS);

const Kernel kernels[] = {
#if defined(SKUA_ISA_avx512vnni)
    SKUA_FOR_INT8(SKUA_ENTRY, 64, "8 sums + 2 weights + 1 column of 32 registers; four rows of 64 channels interleaved feed 6 dot products of each 3x3 output")
#endif
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
    SKUA_FOR_INT8(SKUA_ENTRY, 32, "layers that 32 channels fill better than 64; and all that have no longer vectors")
    SKUA_FOR_INT8(SKUA_ENTRY, 16, "layers of few channels")
#elif defined(SKUA_ISA_avx2)
    SKUA_FOR_INT8(SKUA_ENTRY, 32, "two rows of 32 channels widened to 16 bits and interleaved: vpmaddwd adds two taps")
    SKUA_FOR_INT8(SKUA_ENTRY, 16, "layers of few channels")
#elif defined(SKUA_ISA_sse2)
    SKUA_FOR_INT8(SKUA_ENTRY, 16, "two rows of 16 channels widened to 16 bits and interleaved: pmaddwd adds two taps")
#elif !defined(SKUA_ISA_scalar)
    SKUA_FOR_INT8(SKUA_ENTRY, 16, "four rows of 16 channels zipped: a dot product, or two multiplications and two additions of pairs, for four taps")
#else
    SKUA_FOR_INT8(SKUA_ENTRY, 4, "portable C++, one byte at a time")
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(depthwise_int8, kernels)
}  // namespace skua
