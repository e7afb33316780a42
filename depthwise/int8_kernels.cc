// Depthwise convolution of bytes, one source for every instruction set: int8_kernel.h has the formula and the layout,
// int8_vectors.h the vectors.
//
//   tile: 1 or 2 rows x RW outputs of L channels, a quarter of them (a vector of sums) at a time: RH*RW sums + RH
//   weights + 1 column, and 3/4 of the tile's results, first as 32, then as 16 bits. RW = 4 of 32 registers, 2 of 16;
//   NEON 2 in two rows, AVX2 4 in one.
//
// Kernel, stride and dilation are numbers at run time: the weights of a column tap are read once for RW outputs, and
// what loops cost is small beside it.
#include "depthwise/int8_kernel.h"
#include "depthwise/int8_vectors.h"
#include "dispatch/kernel.h"
#if defined(__aarch64__) && !defined(SKUA_ISA_scalar)
#include "depthwise/int8_end_in_order.h"
#endif
#if defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
#include "depthwise/int8_taps_in_order.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

// PIXELS in a vector, or a part of the channels of one. `more` of them, less one, are there; the last stands for those
// that are not.
template <class B, int PIXELS, bool PART>
SKUA_INL typename B::I load_pixels(const uint8_t* p, size_t step, size_t more, size_t channels) {
  if constexpr (PIXELS > 1) {
    return B::template pixels<PIXELS>(p, step, more);
  } else {
    if constexpr (!PART) return B::load(p);
    uint8_t all[B::L] = {};
    __builtin_memcpy(all, p, channels);
    return B::load(all);
  }
}

// Rows of the last group that have no taps are constants: LIVE are read. A vector of several pixels is that many
// columns one behind the other; what passes the last one is room, or written later.
template <class B, int PIXELS, bool PART, bool FLIPS, int LIVE>
SKUA_INL void interleave_group(const DepthwiseInt8Columns& t, size_t g, size_t first, uint8_t* at) {
  constexpr int G = B::G;
  [[maybe_unused]] const typename B::I by = B::bytes(t.flip);
  // stores might change what is in memory
  const size_t planes = PIXELS > 1 ? t.layout.planes : 1, column = PIXELS > 1 ? size_t(B::L) : t.layout.column,
               vector = PIXELS > 1 ? t.layout.vector : B::L;
  typename B::I r[G], v[4];
  const uint8_t* p[G];
  size_t steps[G];
  SKUA_UNROLL for (int b = 0; b < G; ++b) {
    r[b] = B::bytes(t.padding);
    p[b] = t.rows[g * G + b] + first * t.steps[g * G + b] + (t.rows[g * G + b] == t.line ? 0 : t.first);
    steps[b] = planes * t.steps[g * G + b];
  }
  const auto next = [&](size_t more) __attribute__((always_inline)) {
    SKUA_UNROLL for (int b = 0; b < LIVE; ++b) {
      r[b] = load_pixels<B, PIXELS, PART>(p[b], steps[b], more, t.channels);
      if constexpr (FLIPS) r[b] = B::flip(r[b], by);
      p[b] += PIXELS * steps[b];
    }
    B::group(r, v);
    SKUA_UNROLL for (int i = 0; i < 4; ++i) B::store(at + size_t(i) * vector, v[i]);
    at += column;
  };
  size_t left = (t.columns - first + planes - 1) / planes;
  for (; left >= size_t(PIXELS); left -= PIXELS) next(PIXELS - 1);
  if (PIXELS > 1 && left) next(left - 1);
}
// Columns of a plane.
template <class B, int PIXELS, bool PART, bool FLIPS>
SKUA_INL void interleave_plane(const DepthwiseInt8Columns& t, size_t first, uint8_t* to) {
  const size_t whole = t.groups - (!PART && t.spare ? 1 : 0);
  for (size_t g = 0; g < whole; ++g)
    interleave_group<B, PIXELS, PART, FLIPS, B::G>(t, g, first, to + g * t.layout.group);
  if (whole == t.groups) return;
  to += whole * t.layout.group;
  if constexpr (B::G == 4 && !PART) {
    if (t.spare == 1) interleave_group<B, PIXELS, PART, FLIPS, 3>(t, whole, first, to);
    else if (t.spare == 2) interleave_group<B, PIXELS, PART, FLIPS, 2>(t, whole, first, to);
    else interleave_group<B, PIXELS, PART, FLIPS, 1>(t, whole, first, to);
  } else {
    interleave_group<B, PIXELS, PART, FLIPS, 1>(t, whole, first, to);
  }
}

// Columns [from, end) of padding.
template <class B, int PIXELS>
SKUA_INL void pad_columns(const DepthwiseInt8Columns& t, typename B::I v, size_t from, size_t end) {
  for (size_t c = from; c < end; ++c)
    for (size_t g = 0; g < t.groups; ++g) SKUA_UNROLL for (int i = 0; i < 4; ++i) {
      auto* p = static_cast<uint8_t*>(t.to) + t.layout.at(c) + g * t.layout.group + size_t(i) * t.layout.vector;
      if constexpr (PIXELS == 1) B::store(p, v);
      else __builtin_memcpy(p, &v, B::L / PIXELS);
    }
}

template <class B, int PIXELS, bool FLIPS> SKUA_INL void interleave_all(const DepthwiseInt8Columns& all) {
  constexpr bool several = PIXELS > 1;
  typename B::I v[4] = {B::bytes(all.padding)};
  if constexpr (B::G != 4) {  // of 16 bits
    typename B::I padding[B::G];
    SKUA_UNROLL for (int b = 0; b < B::G; ++b) padding[b] = v[0];
    B::group(padding, v);
  }
  for (const DepthwiseInt8Columns* p = &all; p; p = p->next) {
    const DepthwiseInt8Columns& t = *p;
    pad_columns<B, PIXELS>(t, v[0], 0, t.before);
    for (size_t first = 0; first < (several ? t.layout.planes : 1) && first < t.columns; ++first) {
      uint8_t* to =
          static_cast<uint8_t*>(t.to) + (several ? t.layout.at(t.before + first) : t.before * t.layout.column);
      if (several || t.channels == B::L) interleave_plane<B, PIXELS, false, FLIPS>(t, first, to);
      else if constexpr (!several) interleave_plane<B, 1, true, FLIPS>(t, first, to);
    }
    pad_columns<B, PIXELS>(t, v[0], t.before + t.columns, t.before + t.columns + t.after);
  }
}
template <class B, int PIXELS> void interleave(const DepthwiseInt8Columns& t) {
  if constexpr (SKUA_BY_TAPS == 2)  // flips would be four of 25 instructions for a column
    if (!t.flip) return interleave_all<B, PIXELS, false>(t);
  interleave_all<B, PIXELS, true>(t);
}

// What is known of sums: nothing; that products fit 32 bits; that no result is below the zero point and sums are small.
// Or the results are those of fixed point.
enum Known { kNothing, kFits, kPositive, kFixed };
template <class B, Known KNOWN> SKUA_INL typename B::Sum start_of(typename B::I offset) {
  if constexpr (KNOWN == kPositive) return B::start_positive(offset);
  else return B::start(offset);
}
// Sums in fixed point; vectors of fewer sums than I32 are filled up.
template <class B, int RH, int RW, class S>
SKUA_INL void fix(const typename B::Sum (&sums)[RH][RW], const float* scale, const DepthwiseInt8Tile& t,
                  S (&to)[RH][RW][2], int i) {
  constexpr size_t n = B::L / 4, lanes = I32::L;
  const auto* multiplier = reinterpret_cast<const int32_t*>(scale);
  alignas(sizeof(I32)) int32_t all[RH][RW][lanes], filled[2][lanes];
  if constexpr (n < lanes) {
    __builtin_memset(all, 0, sizeof all);
    __builtin_memset(filled, 0, sizeof filled);
    __builtin_memcpy(filled[0], multiplier, 4 * n);
    __builtin_memcpy(filled[1], multiplier + B::L, 4 * n);
  }
  SKUA_UNROLL for (int y = 0; y < RH; ++y)
    SKUA_UNROLL for (int x = 0; x < RW; ++x) {
      const auto total = B::total(sums[y][x]);
      __builtin_memcpy(all[y][x], &total, sizeof total);
    }
  fix_columns(all[0][0], lanes, RH * RW, n < lanes ? filled[0] : multiplier, n < lanes ? filled[1] : multiplier + B::L,
              t.rounding == 2);
  SKUA_UNROLL for (int y = 0; y < RH; ++y)
    SKUA_UNROLL for (int x = 0; x < RW; ++x) {
      if constexpr (!B::saturates) {
        const I32 v = I32::load(all[y][x]), low = I32::set1(-512), high = I32::set1(int32_t(t.high)),
                  least = select(gt(low, v), low, v);
        select(gt(least, high), high, least).store(all[y][x]);
      }
      __builtin_memcpy(&to[y][x][i], all[y][x], sizeof to[y][x][i]);
    }
}
template <class B, Known KNOWN>
SKUA_INL auto scaled_sum(typename B::Sum sum, const float* scale, const DepthwiseInt8Tile& t) {
  const float high = t.high;
  if constexpr (KNOWN == kPositive) return B::positive(sum, scale);
  else if constexpr (KNOWN == kFits) return B::scaled(sum, scale);
  else return B::scaled(sum, scale, high);
}
template <class B, Known KNOWN, class S> SKUA_INL auto half_of(S a, S b, const DepthwiseInt8Tile& t) {
  if constexpr (KNOWN == kPositive) return B::half_positive(a, b);
  else if constexpr (KNOWN == kFixed && kFixedTwice) return B::half_fixed(a, b, t.zero_point);
  else return B::half(a, b, t.zero_point, t.low);
}
template <class B, Known KNOWN, class H> SKUA_INL typename B::I whole_of(H a, H b, const DepthwiseInt8Tile& t) {
  if constexpr (KNOWN == kPositive) {
    typename B::I q = B::whole_positive(a, b);
    if (t.is_bounded) q = B::bounded_positive(q, uint8_t(t.low ^ 0x80), uint8_t(t.top ^ 0x80));
    return t.flip ? q : B::flip(q, B::bytes(0x80));
  } else {
    typename B::I q = B::whole(a, b);
    if constexpr (B::saturates)
      if (t.is_bounded) q = B::bounded(q, int8_t(t.low), t.top);
    return B::flip(q, B::bytes(t.flip));
  }
}

// With 16 address registers gcc computes one for every vector that is to come, and loads through them until the sums
// have no register left: on AArch32 a pointer is a new one after each step.
#if defined(__arm__) && !defined(SKUA_ISA_scalar)
constexpr bool kSteps = true;
#define SKUA_NEW_POINTER(p) asm volatile("" : "+r"(p))
#else
constexpr bool kSteps = false;
#define SKUA_NEW_POINTER(p)
#endif

// One tap of a group for RW outputs of RH rows. kSteps: w moves on to the next tap's, else the caller moves it.
template <class B, int RH, int RW>
SKUA_INL void column_tap(typename B::Sum (&sum)[RH][RW], const uint8_t* p, size_t step, const uint8_t*& w) {
  SKUA_NEW_POINTER(p);
  typename B::I weights[RH];
  SKUA_UNROLL for (int y = 0; y < RH; ++y) {
    weights[y] = B::load(kSteps ? w : w + y * B::L);
    if (kSteps) w += B::L;
    SKUA_NEW_POINTER(w);
  }
  SKUA_UNROLL for (int x = 0; x < RW; ++x) {
    const typename B::I taps = B::load(p + size_t(x) * step);
    SKUA_UNROLL for (int y = 0; y < RH; ++y) B::dot(sum[y][x], taps, weights[y]);
  }
}

// The same of K taps whose columns, one pixel in each, are those of outputs that follow each other: a column is loaded
// once for the K outputs that it serves. STEP: bytes between columns.
template <class B, int RH, int RW, int K, int STEP>
SKUA_INL void shared_taps(typename B::Sum (&sum)[RH][RW], const uint8_t* p, const uint8_t* w) {
  asm("" : "+r"(p));  // else gcc has a register for each column, and then none for the sums
  typename B::I weights[K][RH];
  SKUA_UNROLL for (int k = 0; k < K; ++k)
    SKUA_UNROLL for (int y = 0; y < RH; ++y)
      weights[k][y] = B::load(w + (k * RH + y) * B::L);
  SKUA_UNROLL for (int j = 0; j < RW + K - 1; ++j) {
    const typename B::I column = B::load(p + j * STEP);
    SKUA_UNROLL for (int k = 0; k < K; ++k)
      if (j >= k && j - k < RW) SKUA_UNROLL for (int y = 0; y < RH; ++y) B::dot(sum[y][j - k], column, weights[k][y]);
  }
}

// KNOWN: of blocks whose channels fill vectors, and all outputs of these. K: a kernel of so many columns (and, of
// groups of four, one group), whose loops are then unrolled; 0 of any. STEP: K columns of every group are
// shared_taps(), of RUNS groups, of those that lie one behind the other (kGroups), or of any number (0); of K = 1 each
// tap is one. count: outputs of each vector that are stored.
constexpr int kGroups = -1;
template <class B, int RH, int RW, Known KNOWN, int K, int STEP = 0, int RUNS = 0>
SKUA_INL void tile(const DepthwiseInt8Tile& t, const uint8_t* columns, uint8_t* out, size_t count) {
  constexpr int L = B::L;
  const size_t groups = STEP || B::G != 4 || !K ? t.groups : 1, kernel_w = K > 1 ? size_t(K) : t.kernel_w,
               pixels = STEP >= 4 * L ? 1 : t.layout.pixels, step = pixels * t.output, out_step = pixels * t.out_pixel;
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
        SKUA_UNROLL for (int x = 0; x < RW; ++x) sum[y][x] = start_of<B, KNOWN>(B::load(offset + v * L));
      const uint8_t* from = columns + size_t(v) * t.layout.vector;
      SKUA_NEW_POINTER(from);
      if constexpr (RUNS == kGroups) {
        SKUA_UNROLL for (int g = 0; g < STEP / (4 * L); ++g, from += 4 * L, w += K * RH * L)
          shared_taps<B, RH, RW, K, STEP>(sum, from, w);
      } else if constexpr (RUNS > 0) {
        SKUA_UNROLL for (int r = 0; r < RUNS; ++r, w += K * RH * L)
          shared_taps<B, RH, RW, K, STEP>(sum, from + t.taps[r * K], w);
      } else if constexpr (STEP > 0) {
        for (size_t r = 0, n = K > 1 ? groups : groups * kernel_w; r < n; ++r, w += K * RH * L)
          shared_taps<B, RH, RW, K, STEP>(sum, from + t.taps[r * K], w);
      } else if constexpr (K > 0) {
        for (size_t g = 0; g < groups; ++g, from += t.layout.group)
          SKUA_UNROLL for (int kx = 0; kx < K; ++kx, w += kSteps ? 0 : RH * L) {
            const uint8_t* p = from + t.taps[kx];
            // else gcc has an address for each column of each tap, most of them on the stack
            if constexpr (B::G == 2) asm("" : "+r"(p));
            column_tap<B, RH, RW>(sum, p, step, w);
          }
      } else {
        for (size_t g = 0; g < t.groups; ++g, from += t.layout.group)
          for (size_t kx = 0; kx < t.kernel_w; ++kx, w += kSteps ? 0 : RH * L)
            column_tap<B, RH, RW>(sum, from + t.taps[kx], step, w);
      }
      if constexpr (KNOWN == kFixed) {
        fix<B, RH, RW>(sum, scale + v * (L / 4), t, scaled, i);
      } else {
        SKUA_UNROLL for (int y = 0; y < RH; ++y)
          SKUA_UNROLL for (int x = 0; x < RW; ++x)
            scaled[y][x][i] = scaled_sum<B, KNOWN>(sum[y][x], scale + v * (L / 4), t);
      }
    }
    SKUA_UNROLL for (int y = 0; y < RH; ++y)
      SKUA_UNROLL for (int x = 0; x < RW; ++x) halves[y][x][h] = half_of<B, KNOWN>(scaled[y][x][0], scaled[y][x][1], t);
  }
  SKUA_UNROLL for (int y = RH - 1; y >= 0; --y)
    SKUA_UNROLL for (int x = 0; x < RW; ++x) {
      const typename B::I q = whole_of<B, KNOWN>(halves[y][x][0], halves[y][x][1], t);
      uint8_t* p = out + size_t(y) * t.out_row + size_t(x) * out_step;
      if constexpr (KNOWN == kFits || KNOWN == kPositive) {
        if (pixels == 1 || t.out_pixel * pixels == L) B::store(p, q);
        else B::parts(q, p, t.out_pixel, pixels);
      } else if (t.channels == size_t(L)) {
        B::store(p, q);
      } else if (B::saturates && KNOWN == kFixed && count == pixels && t.channels * pixels == size_t(L)) {
        if constexpr (B::saturates) B::parts(q, p, t.out_pixel, pixels);
      } else {
        uint8_t all[L];
        B::store(all, q);
        for (size_t i = 0; i < count; ++i) __builtin_memcpy(p + i * t.out_pixel, all + i * (L / pixels), t.channels);
      }
    }
}

// The last tile of RW vectors of outputs overlaps the one before it.
template <class B, int RH, int RW, Known KNOWN, int K, int STEP = 0, int RUNS = 0>
SKUA_INL void run_tiles(const DepthwiseInt8Tile& t) {
  const uint8_t* columns = static_cast<const uint8_t*>(t.columns);
  const size_t pixels = STEP >= 4 * B::L ? 1 : t.layout.pixels, all = RW * pixels;
  if (t.outputs < all) {
    for (size_t x = 0; x < t.outputs; x += pixels)
      tile<B, RH, 1, KNOWN == kFixed ? kFixed : kNothing,
           RUNS == 1 || RUNS == kGroups ? 0
           : STEP                       ? 1
                                        : 0,
           RUNS == 1 || RUNS == kGroups ? 0 : STEP>(t, columns + x * t.output, t.out + x * t.out_pixel,
                                                    t.outputs - x < pixels ? t.outputs - x : pixels);
    return;
  }
  for (size_t x = 0;; x = x + 2 * all <= t.outputs ? x + all : t.outputs - all) {
    tile<B, RH, RW, KNOWN, K, STEP, RUNS>(t, columns + x * t.output, t.out + x * t.out_pixel, pixels);
    if (x + all >= t.outputs) return;
  }
}
template <class B, int RH, int RW> void run(const DepthwiseInt8Tile& given) {
  const DepthwiseInt8Tile t = given;  // what is stored might be it
  constexpr int unrolled = B::G == 4 && (B::L >= 32 || SKUA_BY_TAPS == 2) ? 3 : 0, once = kSteps ? 0 : unrolled,
                twice = once && SKUA_BY_TAPS == 2 && RH == 2 ? 5 : 0;
  constexpr bool by_columns = B::G == 2 && B::L >= 32 && RH == 1;  // two rows gain nothing
  const bool three = t.groups == 1 && t.kernel_w == 3,
             one = t.layout.pixels == 1 && t.output == t.layout.column && t.kernel_w > 1 && t.taps[1] == t.output,
             shared = three && one;
  if (t.rounding) return run_tiles<B, RH, RW, kFixed, 0>(t);
  if constexpr (B::has_positive)
    if (t.positive && t.channels * t.layout.pixels == B::L) {
      if (once && shared) return run_tiles<B, RH, RW, kPositive, once, once ? 4 * B::L : 0, once ? 1 : 0>(t);
      if (unrolled && three) return run_tiles<B, RH, RW, kPositive, unrolled>(t);
      if (by_columns && t.kernel_w == 3) return run_tiles<B, RH, RW, kPositive, by_columns ? 3 : 0>(t);
      return run_tiles<B, RH, RW, kPositive, 0>(t);
    }
  if constexpr (B::saturates)
    if ((B::fits_always || t.fits) && t.channels * t.layout.pixels == B::L) {
      if (once && shared) return run_tiles<B, RH, RW, kFits, once, once ? 4 * B::L : 0, once ? 1 : 0>(t);
      if (unrolled && three) return run_tiles<B, RH, RW, kFits, unrolled>(t);
      if (twice && t.groups == 2 && t.kernel_w == 5 && one)
        return run_tiles < B, RH, RW, kFits, twice, twice ? 8 * B::L : 0, twice ? kGroups : 0 > (t);
      if (by_columns && t.kernel_w == 3) return run_tiles<B, RH, RW, kFits, by_columns ? 3 : 0>(t);
      return run_tiles<B, RH, RW, kFits, 0>(t);
    }
  run_tiles<B, RH, RW, kNothing, 0>(t);
}

#if defined(SKUA_ISA_neon_dot)
#include "depthwise/int8_dot_in_order.h"
// The same, but what in-order cores have a program for.
void run_in_order(const DepthwiseInt8Tile& t) {
  const bool shared = t.groups == 1 && t.kernel_w == 3 && t.layout.pixels == 1 && t.output == 4 * 16 &&
                      t.output == t.layout.column && t.taps[1] == t.output;
  if (shared && !t.rounding && t.channels == 16 && t.outputs >= 2) return dot_in_order(t);
  run<Bytes16, 2, 2>(t);
}
#endif

// Pairs (int8_pairs.cc), STEP bytes from one vector of outputs to the next: 4 * L where one pixel fills a vector, L
// where there are several. Few outputs, and what is rare, in short tiles.
template <class B, int RW, Known KNOWN, int K, int STEP, int RUNS = 0>
SKUA_INL void run_lines(const DepthwiseInt8Tile& given) {
  DepthwiseInt8Tile t = given;  // what is stored might be it
  for (size_t y = 0, lines = t.lines; y < lines;
       ++y, t.columns = static_cast<const uint8_t*>(t.columns) + t.line, t.out += t.out_row)
    run_tiles<B, 1, RW, KNOWN, K, STEP, RUNS>(t);
}
template <class B, int RW, int STEP> void run_pairs(const DepthwiseInt8Tile& t) {
  constexpr bool one = STEP == 4 * B::L;
  if (t.rounding) return run_lines<B, 3, kFixed, 1, STEP>(t);
  if (!t.fits) return run_lines<B, 3, kNothing, 1, STEP>(t);
  if (RW > 3 && t.outputs < RW * t.layout.pixels) return run_lines<B, 3, kFits, 1, STEP>(t);
  if constexpr (one) {
    if (t.kernel_w == 2 && t.groups == 2)
      return t.positive ? run_lines<B, RW, kPositive, 2, STEP, 2>(t) : run_lines<B, RW, kFits, 2, STEP, 2>(t);
    if (t.kernel_w == 3)
      return t.positive ? run_lines<B, RW, kPositive, 3, STEP>(t) : run_lines<B, RW, kFits, 3, STEP>(t);
  } else if (t.positive) {
    return run_lines<B, RW, kPositive, 1, STEP>(t);
  }
  run_lines<B, RW, kFits, 1, STEP>(t);
}

#if SKUA_STREAMED
#include "depthwise/int8_streamed.h"
#endif

#if SKUA_BY_TAPS
constexpr int kTapColumns = F32::registers >= 32 ? 2 : 1;
#if defined(__aarch64__)
#include "depthwise/int8_in_order.h"
#else
#include "depthwise/int8_in_order32.h"
#endif
#include "depthwise/int8_by_taps.h"
#endif

#if SKUA_BY_TAPS
template <class B, Core core> void direct(const DepthwiseInt8Direct& d) {
  DepthwiseInt8Tile t = d.tile;  // what is stored might be it
  for (size_t b = 0; b < d.blocks; ++b, t.w = static_cast<const char*>(t.w) + d.bytes, t.out += B::L) {
    const char known = static_cast<const char*>(t.w)[d.bytes - 64];
    d.flip ? taps_of<B, true, core>(d, t, b * B::L, known & kLeastInt8Weight)
           : taps_of<B, false, core>(d, t, b * B::L, known & kLeastInt8Weight);
  }
}
#endif

// Of two rows; four columns of NEON would keep results on the stack.
#if defined(SKUA_ISA_avx512vnni)
#define SKUA_COLUMNS 4
#else
#define SKUA_COLUMNS 2
#endif
constexpr int kColumns = SKUA_COLUMNS, kColumnsOfRow = F32::registers >= 32 ? 4 : 2;
// most: pixels in a vector.
template <class B, int most, Core core = Core::any> constexpr DepthwiseInt8Table make_table() {
  DepthwiseInt8Table t = {B::G,
                          B::takes_unsigned,
                          {interleave<B, 1>, nullptr, nullptr},
                          {run < B, 1, B::G == 2 && B::L >= 32 ? 4 : kColumnsOfRow >, run<B, 2, kColumns>}};
#if SKUA_BY_TAPS
  t.direct = direct<B, core>;
  t.by_taps = SKUA_BY_TAPS;
  t.wide_by_taps = SKUA_BY_TAPS == 1;
#elif SKUA_STREAMED
  if constexpr (B::G == 2 || B::L == 64) t.streamed = streamed<B>;
#endif
  if constexpr (most >= 2) t.interleave[1] = interleave<B, 2>;
  if constexpr (most >= 4) t.interleave[2] = interleave<B, 4>;
#if defined(SKUA_ISA_neon_dot)
  if constexpr (core != Core::any) t.run[1] = run_in_order;
#endif
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
  if constexpr (most > 1)
    t.pairs[0] = run_pairs < B, F32::registers >= 32 ? 7 : 3, 4 * B::L >, t.pairs[1] = run_pairs < B,
    F32::registers >= 32 ? 7 : 3, B::L > ;
#endif
  return t;
}
template <class B> constexpr DepthwiseInt8Table functions = make_table<B, 1>();
template <class B, Core core> constexpr DepthwiseInt8Table functions_of_core = make_table<B, 1, core>();
#if defined(SKUA_ISA_avx512vnni)
template <> constexpr DepthwiseInt8Table functions<Bytes64> = make_table<Bytes64, 4>();
#endif
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avxvnni)
template <> constexpr DepthwiseInt8Table functions<Bytes32> = make_table<Bytes32, 2>();
#endif
template <class B, Core core = Core::any> const DepthwiseInt8Table& table() {
  if constexpr (core == Core::any) return functions<B>;
  else return functions_of_core<B, core>;
}

#define SKUA_ENTRY(T, type, bytes, why) SKUA_CORE_ENTRY(T, type, bytes, any, "", why)
#define SKUA_CORE_ENTRY(T, type, bytes, core, suffix, why)                                                           \
  {"depthwise_" #type "_2x" SKUA_STRING(SKUA_COLUMNS) "x" #bytes suffix "_" SKUA_STRING(SKUA_ISA), "depthwise", why, \
   KernelKind::depthwise_int8, Isa::SKUA_ISA, kDepthwiseInt8, 2, kColumns, bytes,                                    \
   reinterpret_cast<AnyCode>(static_cast<DepthwiseInt8TableFn>(table<Bytes##bytes, Core::core>)), Element::type,     \
   Core::core},
// 32-bit Arm has programs that count kilobytes: products of each group
#if !defined(SKUA_ISA_scalar) && !defined(__arm__)
#if defined(SKUA_ISA_avx512vnni) || (defined(__aarch64__) && !defined(SKUA_ISA_scalar))
#define SKUA_GROUPED_COLUMNS 7
#else
#define SKUA_GROUPED_COLUMNS 3
#endif
#include "depthwise/int8_grouped.inl"
static_assert(kGroupedColumns == SKUA_GROUPED_COLUMNS);
#endif

const Kernel kernels[] = {
#if defined(SKUA_ISA_avx512vnni)
    SKUA_FOR_INT8(SKUA_GROUPED, 64, "two vectors of sums for seven outputs; groups of 4, 8 and 16 channels")
#elif defined(SKUA_ISA_avxvnni) || defined(SKUA_ISA_avx2)
    SKUA_FOR_INT8(SKUA_GROUPED, 32, "two vectors of sums for three outputs; groups of 4, 8 and 16 channels")
    SKUA_FOR_INT8(SKUA_GROUPED, 16, "channels that do not fill blocks of 32")
#elif !defined(SKUA_ISA_scalar) && !defined(__arm__)
    SKUA_FOR_INT8(SKUA_GROUPED, 16, "two vectors of sums for three or seven outputs; groups of 4, 8 and 16 channels")
#endif
#if defined(SKUA_ISA_avx512vnni)
    SKUA_FOR_INT8(SKUA_ENTRY, 64,
                  "8 sums + 2 weights + 1 column of 32 registers; four rows of 64 channels interleaved feed 6 dot "
                  "products of each 3x3 output; strides of 2 by columns or pairs")
#elif defined(SKUA_ISA_avxvnni)
    SKUA_FOR_INT8(SKUA_ENTRY, 32, "6 dot products of each 3x3 output of 32 channels, or of two outputs of 16")
#elif defined(SKUA_ISA_avx2)
    SKUA_FOR_INT8(SKUA_ENTRY, 32,
                  "32 channels of two rows widened to 16 bits: vpmaddwd adds two taps; 3x3, and 5x5 with a stride of "
                  "2, by columns (int8_streamed.h), else interleaved in memory")
#elif defined(SKUA_ISA_sse2)
    SKUA_FOR_INT8(SKUA_ENTRY, 16,
                  "16 channels of two rows widened to 16 bits: pmaddwd adds two taps; 3x3 and 5x5 with strides by "
                  "columns (int8_streamed.h), else interleaved in memory")
#elif !defined(SKUA_ISA_scalar)
#if defined(SKUA_ISA_neon)
    SKUA_FOR_INT8(SKUA_CORE_ENTRY, 16, a53, "_a53",
                  "3x3 tap by tap, scheduled for the Cortex-A53 and A55: two outputs in 122 vector instructions, loads "
                  "in halves beside them")
#elif defined(SKUA_ISA_neon32)
    SKUA_FOR_INT8(SKUA_CORE_ENTRY, 16, a53, "_a53",
                  "3x3 tap by tap, scheduled for the Cortex-A53: two outputs of eight channels in 60 vector "
                  "instructions, 24 loads of D registers between them")
#elif defined(SKUA_ISA_neon32_dot)
    SKUA_FOR_INT8(SKUA_CORE_ENTRY, 16, a55, "_a55",
                  "strides of 2 tap by tap, scheduled for the Cortex-A55: the same program, loads beside multiplies")
#elif defined(SKUA_ISA_neon_dot)
    SKUA_FOR_INT8(SKUA_CORE_ENTRY, 16, a55, "_a55",
                  "3x3 scheduled for the Cortex-A55: tiles of 2x2 outputs in 152 vector instructions, loads in halves "
                  "beside them; strides of 2 tap by tap")
#endif
    SKUA_FOR_INT8(SKUA_ENTRY, 16,
                  "four rows of 16 channels zipped for dot products; without, and where strides are 2, pixels as they "
                  "lie, tap by tap")
#else
    SKUA_FOR_INT8(SKUA_ENTRY, 4, "portable C++, one byte at a time")
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(depthwise_int8, kernels)
}  // namespace skua
