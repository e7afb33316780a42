// Winograd's algorithm for bytes, exact: points 0, +-1, +-2 and infinity have integer transforms once their
// denominators are left out, 2 of F(2,3) and 24 of F(4,3) in each dimension. V and U fit 16 bits, and what the output
// transform comes to is that many times the sum, in 32 bits that may wrap.
//
//   V = B^T (a - zero) B   at most 100 * 255 of F(4,3)        U = G w G^T      at most 49 * 128
//   D S = A^T (V . U) A    D = 4, 48 or 576 = 2^shift * odd: S = D S / odd mod 2^32, >> shift, right where S fits
//                          32 - shift bits. winograd_fits() knows it of the weights
//
//   ->  M[r][j] += V[r][k] * U[k][j] + V[r][k+1] * U[k+1][j]   two products and their sum at a time, as in tiles of
//                                                              bytes (gemm/int8_dot.h); on Arm one, by lane of V
//
// A tile clipped by the image's end has fewer points, as in points.h: what is left of its V is 4 or 3 times as large,
// which U does not know of.
#include "dispatch/kernel.h"
#if defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
#include "gemm/int8_finish.h"
#else
#include "gemm/int8_dot.h"
#endif
#include "gemm/step.h"
#include "winograd/points.h"
#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
#include "winograd/in_order.h"
#endif
#include "winograd/product_table.h"
#include "winograd/whole_line.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#define SKUA_INL_LAMBDA __attribute__((always_inline))

#if !defined(SKUA_ISA_avx512vnni) && !defined(SKUA_ISA_avxvnni)
#define SKUA_TRANSFORMS 1  // VNNI's products go with AVX-512's and AVX2's
#endif

#if defined(SKUA_TRANSFORMS)
// Lanes of 16 bits, a channel each. + and - wrap. store(): to a line of V, of 32 lanes the second half to the next one,
// `next` from there; where there is none `next` is 0, and the first half takes the second's place.
#if defined(SKUA_ISA_avx512)
struct I16 {
  static constexpr int L = 32;
  __m512i v;
  static SKUA_INL I16 set1(int x) { return {_mm512_set1_epi16(int16_t(x))}; }
  static SKUA_INL I16 widened(__m256i x, int8_t) { return {_mm512_maskz_cvtepi8_epi16(~__mmask32(0), x)}; }
  static SKUA_INL I16 widened(__m256i x, uint8_t) { return {_mm512_maskz_cvtepu8_epi16(~__mmask32(0), x)}; }
  template <class T>
  static SKUA_INL I16 load(const T* p) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), T());
  }
  template <class T>
  static SKUA_INL I16 load_n(const T* p, size_t n) {
    return widened(_mm256_maskz_loadu_epi8(__mmask32((uint64_t(1) << n) - 1), p), T());
  }
  SKUA_INL void store(int16_t* p, size_t next) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + next), _mm512_maskz_extracti64x4_epi64(0xf, v, 1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_extracti64x4_epi64(0xf, v, 0));
  }
};
SKUA_INL I16 operator+(I16 a, I16 b) { return {_mm512_add_epi16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {_mm512_sub_epi16(a.v, b.v)}; }
#elif defined(SKUA_ISA_avx2)
struct I16 {
  static constexpr int L = 16;
  __m256i v;
  static SKUA_INL I16 set1(int x) { return {_mm256_set1_epi16(int16_t(x))}; }
  static SKUA_INL I16 widened(__m128i x, int8_t) { return {_mm256_cvtepi8_epi16(x)}; }
  static SKUA_INL I16 widened(__m128i x, uint8_t) { return {_mm256_cvtepu8_epi16(x)}; }
  template <class T>
  static SKUA_INL I16 load(const T* p) {
    return widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), T());
  }
  template <class T>
  static SKUA_INL I16 load_n(const T* p, size_t n) {
    return widened(_mm_set_epi64x(int64_t(n > 8 ? first_bytes(p + 8, n - 8) : 0), int64_t(first_bytes(p, n))), T());
  }
  SKUA_INL void store(int16_t* p, size_t) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
};
SKUA_INL I16 operator+(I16 a, I16 b) { return {_mm256_add_epi16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {_mm256_sub_epi16(a.v, b.v)}; }
#elif defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
struct I16 {
  static constexpr int L = 8;
  __m128i v;
  static SKUA_INL I16 set1(int x) { return {_mm_set1_epi16(int16_t(x))}; }
  static SKUA_INL I16 widened(__m128i x, int8_t) { return {_mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8)}; }
  static SKUA_INL I16 widened(__m128i x, uint8_t) { return {_mm_unpacklo_epi8(x, _mm_setzero_si128())}; }
  template <class T>
  static SKUA_INL I16 load(const T* p) {
    return widened(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), T());
  }
  template <class T>
  static SKUA_INL I16 load_n(const T* p, size_t n) {
    return widened(_mm_cvtsi64_si128(int64_t(first_bytes(p, n))), T());
  }
  SKUA_INL void store(int16_t* p, size_t) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
};
SKUA_INL I16 operator+(I16 a, I16 b) { return {_mm_add_epi16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {_mm_sub_epi16(a.v, b.v)}; }
#elif defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
struct I16 {
  static constexpr int L = 8;
  int16x8_t v;
  static SKUA_INL I16 set1(int x) { return {vdupq_n_s16(int16_t(x))}; }
  static SKUA_INL I16 widened(uint8x8_t x, int8_t) { return {vmovl_s8(vreinterpret_s8_u8(x))}; }
  static SKUA_INL I16 widened(uint8x8_t x, uint8_t) { return {vreinterpretq_s16_u16(vmovl_u8(x))}; }
  template <class T>
  static SKUA_INL I16 load(const T* p) {
    return widened(vld1_u8(reinterpret_cast<const uint8_t*>(p)), T());
  }
  template <class T>
  static SKUA_INL I16 load_n(const T* p, size_t n) {
    return widened(vcreate_u8(first_bytes(p, n)), T());
  }
  SKUA_INL void store(int16_t* p, size_t) const { vst1q_s16(p, v); }
};
SKUA_INL I16 operator+(I16 a, I16 b) { return {vaddq_s16(a.v, b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {vsubq_s16(a.v, b.v)}; }
#else
struct I16 {
  static constexpr int L = 1;
  int16_t v;
  static SKUA_INL I16 set1(int x) { return {int16_t(x)}; }
  template <class T> static SKUA_INL I16 load(const T* p) { return {*p}; }
  template <class T> static SKUA_INL I16 load_n(const T* p, size_t) { return {*p}; }
  SKUA_INL void store(int16_t* p, size_t) const { *p = v; }
};
SKUA_INL I16 operator+(I16 a, I16 b) { return {int16_t(a.v + b.v)}; }
SKUA_INL I16 operator-(I16 a, I16 b) { return {int16_t(a.v - b.v)}; }
#endif
template <class V> SKUA_INL V twice(V x) { return x + x; }
template <class V> SKUA_INL V by_four(V x) { return twice(twice(x)); }

// ---- input ----------------------------------------------------------------------------------------------------------
// One dimension of B^T: m+2-clip values -> the points that are left, in the order of points.h.
template <int m, int clip> SKUA_INL void transform_in(const I16* d, I16* t) {
  if constexpr (m == 2 && clip >= 2) {  // of F(3,2)
    t[0] = I16::set1(0) - d[0];
    if constexpr (clip == 2) t[3] = d[1];
  } else if constexpr (m == 2) {
    t[0] = d[2] - d[0];
    t[1] = d[2] + d[1];
    t[2] = d[2] - d[1];
    if constexpr (clip == 0) t[3] = d[3] - d[1];
  } else if constexpr (clip < 2) {
    const I16 two = d[4] - d[2], odd = twice(d[3] - d[1]), even4 = d[4] - by_four(d[2]), odd4 = d[3] - by_four(d[1]);
    t[0] = by_four(d[0] - d[2]) + two;
    t[1] = even4 + odd4;
    t[2] = even4 - odd4;
    t[3] = two + odd;
    t[4] = two - odd;
    if constexpr (clip == 0) t[5] = by_four(d[1] - d[3]) + (d[5] - d[3]);
  } else {
    const I16 sum = d[2] + d[1], difference = d[1] - d[2];
    t[0] = by_four(d[0] - d[2]);
    t[1] = I16::set1(0) - (twice(sum) + sum);
    t[2] = twice(difference) + difference;
    if constexpr (clip == 2) t[5] = d[3] - d[1];
  }
}

template <int m, int clip = 0> void transform_in_clipped(int by, const I16* d, I16* t) {
  if (by == clip) transform_in<m, clip>(d, t);
  else if constexpr (clip + 1 < kClips<m>) transform_in_clipped<m, clip + 1>(by, d, t);
}

// A vector of channels of a tile; value(i, j): a - zero.
template <int my, int mx, int clip_y, int clip_x, class Value>
SKUA_INL void in_tile(const Value& value, int16_t* v, size_t step, size_t next) {
  I16 tile[my + 2][mx + 2];
  SKUA_UNROLL for (int j = 0; j < mx + 2 - clip_x; ++j) {
    I16 d[my + 2], t[my + 2];
    SKUA_UNROLL for (int i = 0; i < my + 2 - clip_y; ++i) d[i] = value(i, j);
    transform_in<my, clip_y>(d, t);
    SKUA_UNROLL for (int i = 0; i < my + 2; ++i) if (winograd::has_point(my, clip_y, i)) tile[i][j] = t[i];
  }
  SKUA_UNROLL for (int i = 0; i < my + 2; ++i) {
    if (!winograd::has_point(my, clip_y, i)) continue;
    I16 t[mx + 2];
    transform_in<mx, clip_x>(tile[i], t);
    SKUA_UNROLL for (int j = 0; j < mx + 2; ++j)
      if (winograd::has_point(mx, clip_x, j)) t[j].store(v + size_t(i * (mx + 2) + j) * step, next);
  }
}
// Whole tiles, and the odd rows and columns of F(3,2).
template <int my, int mx, class Value>
SKUA_INL void in_whole(const Value& value, int clip_y, int clip_x, int16_t* v, size_t step, size_t next) {
  if constexpr (my == 2 && mx == 2) {
    if (clip_y && clip_x) return in_tile<2, 2, 1, 1>(value, v, step, next);
    if (clip_y) return in_tile<2, 2, 1, 0>(value, v, step, next);
    if (clip_x) return in_tile<2, 2, 0, 1>(value, v, step, next);
  }
  in_tile<my, mx, 0, 0>(value, v, step, next);
}
template <int my, int mx>
constexpr bool is_whole(int clip_y, int clip_x) {
  return my == 2 && mx == 2 ? clip_y < 2 && clip_x < 2 : !clip_y && !clip_x;
}
// Of any tile, out of a copy.
template <int my, int mx>
void in_copied(const I16 (&edge)[mx + 2][my + 2], int clip_y, int clip_x, int16_t* v, size_t step, size_t next) {
  if (is_whole<my, mx>(clip_y, clip_x))
    return in_whole<my, mx>([&](int i, int j) SKUA_INL_LAMBDA { return edge[j][i]; }, clip_y, clip_x, v, step, next);
  I16 tile[my + 2][mx + 2];
  for (int j = 0; j < mx + 2 - clip_x; ++j) {
    I16 t[my + 2];
    transform_in_clipped<my>(clip_y, edge[j], t);
    for (int i = 0; i < my + 2; ++i)
      if (winograd::has_point(my, clip_y, i)) tile[i][j] = t[i];
  }
  for (int i = 0; i < my + 2; ++i) {
    if (!winograd::has_point(my, clip_y, i)) continue;
    I16 t[mx + 2];
    transform_in_clipped<mx>(clip_x, tile[i], t);
    for (int j = 0; j < mx + 2; ++j)
      if (winograd::has_point(mx, clip_x, j)) t[j].store(v + size_t(i * (mx + 2) + j) * step, next);
  }
}

template <int my, int mx, class T> void transform_tile_in(const WinogradIn& t) {
  const int rows = my + 2 - t.clip_y, columns = mx + 2 - t.clip_x;
  const bool plain =
      is_whole<my, mx>(t.clip_y, t.clip_x) && t.top == 0 && t.left == 0 && t.bottom == rows && t.right == columns;
  const I16 zero = I16::set1(t.zero);
  I16 edge[mx + 2][my + 2];
  if (!plain)  // what lies outside stays 0 for all channels
    for (int j = 0; j < mx + 2; ++j)
      for (int i = 0; i < my + 2; ++i) edge[j][i] = I16::set1(0);
  for (size_t c = 0; c < t.channels; c += I16::L) {
    const size_t n = t.channels - c;
    const T* in = static_cast<const T*>(t.in) + c;
    int16_t* v = static_cast<int16_t*>(t.v) + c / kWinogradLine * t.line + c % kWinogradLine;
    const size_t next = n > kWinogradLine ? t.line : 0;
    if (plain && n >= size_t(I16::L)) {
      in_whole<my, mx>([&](int i, int j)
                           SKUA_INL_LAMBDA { return I16::load(in + size_t(i) * t.row + size_t(j) * t.pixel) - zero; },
                       t.clip_y, t.clip_x, v, t.step, next);
      continue;
    }
    for (int i = t.top; i < t.bottom; ++i) {
      const T* p = in + size_t(i) * t.row + size_t(t.left) * t.pixel;
      if (n < size_t(I16::L))
        for (int j = t.left; j < t.right; ++j, p += t.pixel) edge[j][i] = I16::load_n(p, n) - zero;
      else for (int j = t.left; j < t.right; ++j, p += t.pixel) edge[j][i] = I16::load(p) - zero;
    }
    in_copied<my, mx>(edge, t.clip_y, t.clip_x, v, t.step, next);
  }
}

#endif

// ---- products -------------------------------------------------------------------------------------------------------
// `steps` <= 16 of V's channels, from x on, each a line apart in rows; u moves on.
#if defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
template <int MR, int NV>
SKUA_INL void multiply(const int16_t* x, size_t steps, const int16_t*& u, I32 (&acc)[MR][NV]) {
  const int16_t* const end = x + steps;
  for (; x + 4 <= end; x += 4) {
    int16x4_t b[MR], w[NV];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) b[r] = vld1_s16(x + r * kWinogradLine);
    __builtin_prefetch(reinterpret_cast<const char*>(u) + kWinogradAhead);
#define SKUA_STEP(i)                                                     \
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = vld1_s16(u + v * L); \
    SKUA_UNROLL for (int r = 0; r < MR; ++r)                             \
      SKUA_UNROLL for (int v = 0; v < NV; ++v)                           \
        acc[r][v].v = vmlal_lane_s16(acc[r][v].v, w[v], b[r], i);        \
    u += NV * L;
    SKUA_STEP(0) SKUA_STEP(1) SKUA_STEP(2) SKUA_STEP(3)
#undef SKUA_STEP
  }
  for (; x < end; ++x, u += NV * L)
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const int16x4_t b = vdup_n_s16(x[r * kWinogradLine]);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v].v = vmlal_s16(acc[r][v].v, vld1_s16(u + v * L), b);
    }
}
#elif defined(SKUA_ISA_scalar)
template <int MR, int NV>
SKUA_INL void multiply(const int16_t* x, size_t steps, const int16_t*& u, I32 (&acc)[MR][NV]) {
  constexpr size_t together = winograd_together(Element::s16);
  for (size_t k = 0; k < steps; k += together, u += NV * together)
    for (size_t i = 0; i < together; ++i)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < NV; ++v)
          acc[r][v].v = int32_t(uint32_t(acc[r][v].v) +
                                uint32_t(x[size_t(r) * kWinogradLine + k + i] * u[size_t(v) * together + i]));
}
#else
// The sum of two products of 16 bits, added.
#if defined(SKUA_ISA_avx512vnni)
constexpr float kRate = 2;
SKUA_INL I32 dot_pair(I32 acc, I32 a, I32 b) { return {_mm512_dpwssd_epi32(acc.v, a.v, b.v)}; }
#elif defined(SKUA_ISA_avxvnni)
constexpr float kRate = 2;
SKUA_INL I32 dot_pair(I32 acc, I32 a, I32 b) { return {_mm256_dpwssd_avx_epi32(acc.v, a.v, b.v)}; }
#else
constexpr float kRate = 1.2f;  // a product of two, and an addition beside it
SKUA_INL I32 dot_pair(I32 acc, I32 a, I32 b) { return dot<int8_t>(acc, a, b); }
#endif
template <int MR, int NV>
SKUA_INL void multiply(const int16_t* x, size_t steps, const int16_t*& u, I32 (&acc)[MR][NV]) {
  if constexpr (kByLine<MR, NV>)
    if (steps == kWinogradLine) {
      multiply_line(x, u, kWinogradAhead, acc);
      u += kWinogradLine * NV * L;
      return;
    }
  const int16_t* const end = x + steps;
  const auto once = [&]() SKUA_INL_LAMBDA {
    I32 w[NV];
    __builtin_prefetch(reinterpret_cast<const char*>(u) + kWinogradAhead);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      w[v] = I32::load(reinterpret_cast<const int32_t*>(u + v * 2 * L));
      if constexpr (MR > 1) pin_word(w[v]);  // else gcc reads U from memory once per row
    }
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const I32 b = I32::set1(word_at(x + r * kWinogradLine));
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot_pair(acc[r][v], b, w[v]);
    }
    x += 2;
    u += 2 * NV * L;
  };
  while (x < end) once();
}
#endif

template <int MR, int NV> void product(const WinogradProduct& p) {
  const int16_t* u = static_cast<const int16_t*>(p.u);
  for (size_t column = 0; column < p.groups * (NV * L); column += NV * L) {
    int32_t* const m = static_cast<int32_t*>(p.m) + column / kWinogradLine * p.line + column % kWinogradLine;
    I32 acc[MR][NV];
    if (p.add)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < NV; ++v)
          acc[r][v] = I32::load(m + r * kWinogradLine + v * L);
    else SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = I32::set1(0);
    const int16_t* a = static_cast<const int16_t*>(p.v);
    for (size_t left = p.k, steps; left; left -= steps, a += p.line) {
      steps = left < kWinogradLine ? left : kWinogradLine;
      multiply(a, steps, u, acc);
    }
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[r][v].store(m + r * kWinogradLine + v * L);
  }
}

template <Core core> struct EveryProduct {
#if defined(__SSE2__) && !defined(SKUA_ISA_scalar)
  static constexpr float rate = kRate;
#elif defined(SKUA_ISA_neon32)
  static constexpr bool full = core != Core::any;
#endif
  template <int MR, int NV> static constexpr WinogradProductFn for_core() {
#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
    if constexpr (core != Core::any && kInOrderRows<MR> && NV == 2)
      return product_in_order<int16_t, int32_t, I32, MR, core, product<MR, NV>>;
#endif
    return product<MR, NV>;
  }
  template <int MR, int NV> static constexpr WinogradProductFn of = for_core<MR, NV>();
};
template <int MR, int NV, Core core>
const WinogradProductTable& table() {
  return table_of<EveryProduct<core>, MR, NV>;
}

#if defined(SKUA_TRANSFORMS)
// ---- output ---------------------------------------------------------------------------------------------------------
// One dimension of A^T times its denominator: the points that are left -> o-clip outputs.
template <int m, int o, int clip> SKUA_INL void transform_out(const I32* t, I32* y) {
  if constexpr (m == 2 && clip == 2) {
    y[0] = twice(t[3] - t[0]);
  } else if constexpr (m == 2) {
    const I32 sum = t[1] + t[2], difference = t[1] - t[2];
    y[0] = sum - twice(t[0]);
    if constexpr (o - clip > 1) y[1] = difference;
    if constexpr (o - clip > 2) y[2] = sum;
    if constexpr (clip == 0) y[o - 1] = y[o - 1] + twice(t[3]);
  } else {
    const I32 sum = t[1] + t[2], difference = t[1] - t[2];
    const I32 even = twice(twice(t[0]) + t[0]) - by_four(sum);
    if constexpr (clip < 2) {
      const I32 sum2 = t[3] + t[4], difference2 = t[3] - t[4];
      y[0] = even + sum2;
      y[1] = twice(difference2) - by_four(difference);
      y[2] = by_four(sum2 - sum);
      if constexpr (clip == 0) y[3] = by_four(twice(difference2 + twice(t[5]) + t[5]) - difference);
    } else {
      y[0] = even;
      if constexpr (clip == 2) y[1] = by_four(twice(twice(t[5]) + t[5]) - difference);
    }
  }
}

template <int m, int o, int clip = 0> void transform_out_clipped(int by, const I32* t, I32* y) {
  if (by == clip) transform_out<m, o, clip>(t, y);
  else if constexpr (clip + 1 < o) transform_out_clipped<m, o, clip + 1>(by, t, y);
}

template <int my, int mx> SKUA_INL I32 sum_of(I32 x) {
  constexpr int shift = (my == 4 ? 3 : 1) + (mx == 4 ? 3 : 1);
  constexpr uint32_t odd = (my == 4 ? 3 : 1) * (mx == 4 ? 3 : 1), inverse = odd == 9   ? 0x38e38e39
                                                                            : odd == 3 ? 0xaaaaaaab
                                                                                       : 1;
  static_assert(odd * inverse == 1);
  return shr<shift>(odd == 1 ? x : product(x, I32::set1(int32_t(inverse))));
}
template <int my, int mx, int oy, int ox> void transform_tile_out(const WinogradOut& t) {
  for (size_t c = 0; c < t.channels; c += L) {
    const int32_t* from = static_cast<const int32_t*>(t.m) + c / kWinogradLine * t.line + c % kWinogradLine;
    int32_t* to = static_cast<int32_t*>(t.out) + c;
    const I32 bias = t.bias ? I32::load(static_cast<const int32_t*>(t.bias) + c) : I32::set1(0);
    I32 tile[oy][mx + 2];
    if (!t.clip_y && !t.clip_x) {
      SKUA_UNROLL for (int j = 0; j < mx + 2; ++j) {
        I32 p[my + 2], y[oy];
        SKUA_UNROLL for (int i = 0; i < my + 2; ++i) p[i] = I32::load(from + size_t(i * (mx + 2) + j) * t.step);
        transform_out<my, oy, 0>(p, y);
        SKUA_UNROLL for (int i = 0; i < oy; ++i) tile[i][j] = y[i];
      }
      SKUA_UNROLL for (int i = 0; i < oy; ++i) {
        I32 y[ox];
        transform_out<mx, ox, 0>(tile[i], y);
        SKUA_UNROLL for (int j = 0; j < ox; ++j)
          (sum_of<my, mx>(y[j]) + bias).store(to + size_t(i) * t.row + size_t(j) * t.pixel);
      }
      continue;
    }
    for (int j = 0; j < mx + 2; ++j) {
      if (!winograd::has_point(mx, t.clip_x, j)) continue;
      I32 p[my + 2], y[oy];
      for (int i = 0; i < my + 2; ++i)
        if (winograd::has_point(my, t.clip_y, i)) p[i] = I32::load(from + size_t(i * (mx + 2) + j) * t.step);
      transform_out_clipped<my, oy>(t.clip_y, p, y);
      for (int i = 0; i < oy - t.clip_y; ++i) tile[i][j] = y[i];
    }
    for (int i = 0; i < oy - t.clip_y; ++i) {
      I32 y[ox];
      transform_out_clipped<mx, ox>(t.clip_x, tile[i], y);
      for (int j = 0; j < ox - t.clip_x; ++j)
        (sum_of<my, mx>(y[j]) + bias).store(to + size_t(i) * t.row + size_t(j) * t.pixel);
    }
  }
}

#endif

const Kernel kernels[] = {
#if defined(SKUA_TRANSFORMS)
#define SKUA_WINOGRAD_IN(T, type, my, mx, name, why)                                                           \
  {"winograd_in_" #type "_" #name "_" SKUA_STRING(SKUA_ISA), "winograd", "input transform in 16 bits of " why, \
   KernelKind::winograd_in, Isa::SKUA_ISA, uint16_t(WinogradVariant::name), my, mx, I16::L,                    \
   reinterpret_cast<AnyCode>(static_cast<WinogradInFn>(transform_tile_in<my, mx, T>)), Element::type},
#define SKUA_WINOGRAD_OUT(my, mx, oy, ox, name, why)                                                              \
  {"winograd_out_s8_" #name "_" SKUA_STRING(SKUA_ISA), "winograd", "output transform to sums of 32 bits of " why, \
   KernelKind::winograd_out, Isa::SKUA_ISA, uint16_t(WinogradVariant::name), oy, ox, L,                           \
   reinterpret_cast<AnyCode>(static_cast<WinogradOutFn>(transform_tile_out<my, mx, oy, ox>)), Element::s8},
#define SKUA_WINOGRAD(my, mx, name, why) \
  SKUA_FOR_INT8(SKUA_WINOGRAD_IN, my, mx, name, why) SKUA_WINOGRAD_OUT(my, mx, my, mx, name, why)
    SKUA_WINOGRAD(2, 2, f2x2, "F(2,3): 4 products per output")
    SKUA_WINOGRAD(4, 2, f4x2, "F(4,3) x F(2,3): 3 products per output, sums of 28 bits")
    SKUA_WINOGRAD(4, 4, f4x4, "F(4,3) with the points 0, +-1, +-2: 2.25 products per output, sums of 26 bits")
    SKUA_WINOGRAD_OUT(2, 2, 3, 3, f3x3_s2, "F(3,2) of stride 2: 5.4 products per output instead of 9")
#undef SKUA_WINOGRAD_IN
#undef SKUA_WINOGRAD_OUT
#undef SKUA_WINOGRAD
#endif
#define SKUA_PRODUCT(mr, nr, why) SKUA_CORE_PRODUCT(mr, nr, any, "", why)
#define SKUA_CORE_PRODUCT(mr, nr, core, suffix, why)                                                                   \
  {"winograd_product_s8_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "winograd", why, KernelKind::winograd_product, \
   Isa::SKUA_ISA, 0, mr, nr, L,                                                                                        \
   reinterpret_cast<AnyCode>(static_cast<WinogradProductTableFn>(table<mr, nr / L, Core::core>)), Element::s8,         \
   Core::core},
#if defined(SKUA_ISA_avx512vnni)
    SKUA_PRODUCT(28, 16, "28 accumulators + 1 U of 32 registers, V as a broadcast operand, of 16 bits two deep")
#elif defined(SKUA_ISA_avx512)
    SKUA_PRODUCT(28, 16, "28 accumulators + 1 U + 1 V, then the product, of 32 registers, of 16 bits two deep")
#elif defined(SKUA_ISA_avxvnni)
    SKUA_PRODUCT(6, 16, "12 accumulators + 2 U + 1 V of 16 registers, of 16 bits two deep")
#elif defined(SKUA_ISA_avx2)
    SKUA_PRODUCT(6, 16, "12 accumulators + 2 U + 1 V + 1 product of 16 registers, of 16 bits two deep")
#elif defined(SKUA_ISA_scalar)
    SKUA_PRODUCT(4, 4, "portable C++: sixteen sums in registers")
#elif defined(SKUA_ISA_neon)
    SKUA_CORE_PRODUCT(6, 8, a53, "_a53",
                      "scheduled for the Cortex-A53: 12 accumulators + 6 V (eight deep, by lane) + 8 U of 32 "
                      "registers, of 16 bits; loads in halves beside multiply-adds")
    SKUA_PRODUCT(6, 8, "12 accumulators + 6 V (four deep, by lane) + 2 U of 32 registers, of 16 bits")
#elif defined(SKUA_ISA_neon32)
    SKUA_CORE_PRODUCT(4, 8, a53, "_a53",
                      "scheduled for the Cortex-A53: 8 accumulators + 4 V (eight deep, by lane) + 4 U, of 16 bits; a "
                      "vector in a D register and two words beside multiply-adds")
    SKUA_PRODUCT(4, 8, "8 accumulators + 2 V (four deep, by lane) + 1 U of 16 registers, of 16 bits")
#else
    SKUA_PRODUCT(4, 8, "8 accumulators + 2 U + 1 V + 1 product of 16 registers, of 16 bits two deep")
#endif
#undef SKUA_PRODUCT
#undef SKUA_CORE_PRODUCT
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(winograd_int8, kernels)
}  // namespace skua
