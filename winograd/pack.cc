// Transformed weights: U = Gy w Gx^T for every pair of channels.
#include "winograd/points.h"
#include "winograd/winograd.h"

namespace skua {
namespace {

constexpr int kMostTaps = 5;
struct Taps {
  double at[8][kMostTaps];
};
consteval Taps taps(int m, int count) {
  Taps t = {};
  for (int i = 0; i < m + 2; ++i)
    for (int k = 0; k < count; ++k) t.at[i][k] = winograd::tap(m, i, k, count);
  return t;
}
constexpr Taps kTaps[4] = {taps(2, 3), taps(4, 3), taps(6, 3), taps(4, 5)}, kTwo = taps(2, 2);
// Rows for bytes, without their denominators (int8_kernels.cc): points 0, +-1 and +-2, infinity.
constexpr Taps kWhole[2] = {{{{1}, {1, 1, 1}, {1, -1, 1}, {0, 0, 1}}},
                            {{{1}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}}}},
               kWholeTwo = {{{1}, {1, 1}, {1, -1}, {0, 1}}};

// Columns that are transformed together, channels whose results are gathered before they are written, a run for each
// point: points lie a power of two apart often, so that single lines of all would meet in one set of the caches.
constexpr size_t kLanes = 8, kChannels = 8;
using Block = float[kMostTaps * kMostTaps][kChannels][kLanes];
// Results of a channel at most: F(6x6) has groups of 16 columns, halves and bytes 36 points and groups of 32.
constexpr size_t kMostResults = 36 * 32;

// Weights of bytes, which are transformed by whole numbers, are exact in f32 too.
template <class W> struct Columns {
  using Real = double;
  typedef double Vector __attribute__((vector_size(16)));
  typedef float Floats __attribute__((vector_size(8)));
  static constexpr size_t kVector = 2, kVectors = kLanes / kVector;
  Vector at[kVectors];
};
template <> struct Columns<int8_t> {
  using Real = float;
  typedef float Vector __attribute__((vector_size(16)));
  using Floats = Vector;
  static constexpr size_t kVector = 4, kVectors = kLanes / kVector;
  Vector at[kVectors];
};

// Of a window's taps those that one part has.
struct WindowPart {
  int y, x, step, end, count;  // its first tap, from one to the next, what lies outside, taps of an axis
};

// Weights of a part, zeros where it has none: `columns` of `channels` from element `first` on.
template <class W>
void fetch(const W* weights, size_t first, const WeightSteps& steps, const WindowPart& part, size_t columns,
           size_t channels, Block& to) {
  memset(to, 0, sizeof to);
  const bool by_columns = steps.o < steps.i;
  const size_t outer = by_columns ? channels : columns, inner = by_columns ? columns : channels,
               step = by_columns ? steps.i : steps.o, next = by_columns ? steps.o : steps.i;
  for (size_t i = 0; i < outer; ++i)
    for (int y = 0, tap_y = part.y; y < part.count && tap_y < part.end; ++y, tap_y += part.step)
      for (int x = 0, tap_x = part.x; x < part.count && tap_x < part.end; ++x, tap_x += part.step) {
        const W* w = weights + first + i * step + size_t(tap_y) * steps.y + size_t(tap_x) * steps.x;
        float* t = to[y * part.count + x][by_columns ? i : 0] + (by_columns ? 0 : i);
        for (size_t j = 0; j < inner; ++j, t += by_columns ? 1 : kLanes) *t = float(w[j * next]);
      }
}

// G x: point 0 has the first tap, infinity the last; of a pair the even terms are the same and the odd ones differ in
// their sign. Results lie `step` apart.
template <int count, class W>
void transform(const Taps& g, int points, const Columns<W>* x, Columns<W>* to, size_t step) {
  using Real = typename Columns<W>::Real;
  for (size_t l = 0; l < Columns<W>::kVectors; ++l) {
    to[0].at[l] = x[0].at[l] * Real(g.at[0][0]);
    to[size_t(points - 1) * step].at[l] = x[count - 1].at[l];
  }
  for (int p = 1; p + 1 < points; p += 2) {
    const double* const row = g.at[p];
    Columns<W> &plus = to[size_t(p) * step], &minus = to[size_t(p + 1) * step];
    for (size_t l = 0; l < Columns<W>::kVectors; ++l) {
      auto even = x[0].at[l] * Real(row[0]), odd = x[1].at[l] * Real(row[1]);
      for (int k = 2; k < count; k += 2) even += x[k].at[l] * Real(row[k]);
      for (int k = 3; k < count; k += 2) odd += x[k].at[l] * Real(row[k]);
      plus.at[l] = even + odd;
      minus.at[l] = even - odd;
    }
  }
}

template <class W> Columns<W> widened(const float (&from)[kLanes]) {
  Columns<W> x;
  for (size_t l = 0; l < Columns<W>::kVectors; ++l) {
    typename Columns<W>::Floats f;
    __builtin_memcpy(&f, from + l * Columns<W>::kVector, sizeof f);
    x.at[l] = __builtin_convertvector(f, typename Columns<W>::Vector);
  }
  return x;
}

// The first n of some columns, rounded once (of bytes they are whole).
template <class W> inline __attribute__((always_inline)) void put(const Columns<W>& x, size_t n, float* to) {
  constexpr size_t kVector = Columns<W>::kVector;
  if (n < kLanes) {
    for (size_t j = 0; j < n; ++j) to[j] = float(x.at[j / kVector][j % kVector]);
    return;
  }
#pragma GCC unroll 4
  for (size_t l = 0; l < Columns<W>::kVectors; ++l) {
    const auto f = __builtin_convertvector(x.at[l], typename Columns<W>::Floats);
    __builtin_memcpy(to + l * kVector, &f, sizeof f);
  }
}

// Whole numbers [deep][width] as 16 bits, `together` of the depth in pairs.
void whole_numbers(size_t deep, size_t width, size_t together, const float* from, int16_t* to) {
  typedef int32_t Words __attribute__((vector_size(16)));
  typedef int16_t Halves __attribute__((vector_size(8)));
  for (size_t k = 0; k < deep; k += together, from += together * width, to += together * width) {
    size_t j = 0;
    for (; j + 4 <= width; j += 4) {
      Columns<int8_t>::Floats f[2];
      for (size_t i = 0; i < together; ++i) __builtin_memcpy(&f[i], from + i * width + j, sizeof f[i]);
      const Words even = __builtin_convertvector(f[0], Words);
      if (together == 1) {
        const Halves x = __builtin_convertvector(even, Halves);
        __builtin_memcpy(to + j, &x, sizeof x);
      } else {
        const Words pairs = (even & 0xffff) | (__builtin_convertvector(f[1], Words) << 16);
        __builtin_memcpy(to + 2 * j, &pairs, sizeof pairs);
      }
    }
    for (; j < width; ++j)
      for (size_t i = 0; i < together; ++i) to[j * together + i] = int16_t(from[i * width + j]);
  }
}

// to_half: of products in f16, else NULL.
template <class W>
void pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
          GemmPackFn to_half, const W* weights, const WeightSteps& steps, float* packed) {
  const int ay = winograd_height(variant), ax = winograd_width(variant), all = winograd_taps(variant),
            count = winograd_part_taps(variant), stride = winograd_stride(variant);
  constexpr int kFive = sizeof(W) > 1 ? 5 : 3;  // bytes have 5x5 in parts of 3
  const auto by_points = count == 2 ? transform<2, W> : count == 3 ? transform<3, W> : transform<kFive, W>;
  const bool whole = format.element == Element::s16;
  const Taps *const of = whole ? kWhole : kTaps, *const two = whole ? &kWholeTwo : &kTwo;
  const Taps &gy = count == 2 ? *two : of[count == 5 ? 3 : ay / 2 - 2],
             &gx = count == 2 ? *two : of[count == 5 ? 3 : ax / 2 - 2];
  const size_t nr = winograd_group(format.vector), wide = round_up(out_channels, format.vector),
               together = winograd_together(format.element), parts = winograd_parts(variant);
  const size_t channels = winograd_channels(variant, in_channels, format.element);
  for (size_t first = 0; first < out_channels; first += nr) {
    const size_t columns = min(nr, out_channels - first), width = round_up(columns, format.vector);
    for (size_t i = 0; i < channels; i += kChannels) {
      const size_t deep = min(kChannels, channels - i), some = min(deep, i < in_channels ? in_channels - i : 0),
                   run = deep * width;
      float u[kMostResults * kChannels];
      for (size_t part = 0; part < parts; ++part) {
        const int apart = parts > 1 ? winograd_apart(variant) : 0;
        const WindowPart taken = {winograd_part_y(part) * apart, winograd_part_x(part) * apart, stride, all, count};
        for (size_t j = 0; j < width; j += kLanes) {
          Block block;
          fetch(weights, (first + j) * steps.o + i * steps.i, steps, taken,
                min(kLanes, j < columns ? columns - j : 0), some, block);
          for (size_t k = 0; k < deep; ++k) {
            Columns<W> half[8][kMostTaps], points[8];  // w Gx^T: taps of y for each point
            for (int y = 0; y < count; ++y) {
              Columns<W> w[kMostTaps];
              for (int t = 0; t < count; ++t) w[t] = widened<W>(block[y * count + t][k]);
              by_points(gx, ax, w, &half[0][y], kMostTaps);
            }
            float* to = u + k * width + j;
            for (int x = 0; x < ax; ++x) {
              by_points(gy, ay, half[x], points, 1);
              for (int y = 0; y < ay; ++y) put(points[y], min(kLanes, width - j), to + size_t(y * ax + x) * run);
            }
          }
        }
        size_t point = 0;
        for (int y = 0; y < ay; ++y)
          for (int x = 0; x < ax; ++x) {
            const WinogradPoint p = winograd_point(variant, y, x);
            const size_t depth = (p.end - p.begin) * channels;
            if (part >= p.begin && part < p.end) {
              const size_t k = (part - p.begin) * channels + i, begin = k / kWinogradDepth * kWinogradDepth;
              void* const to = at(packed, format.element, ptrdiff_t(point + begin * wide + (k - begin) * width +
                                                                    min(kWinogradDepth, depth - begin) * first));
              const float* const from = u + size_t(y * ax + x) * run;
              if (to_half) to_half(deep, width, width, from, width, 1, to);
              else if (sizeof(W) == 1) whole_numbers(deep, width, together, from, static_cast<int16_t*>(to));
              else memcpy(to, from, run * sizeof(float));
            }
            point += depth * wide;
          }
      }
    }
  }
}

}  // namespace

bool winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                            size_t& floats) {
  if (!format.vector || in_channels > SIZE_MAX / 2 || out_channels > SIZE_MAX / 2 ||
      size_t(winograd_height(variant) * winograd_width(variant)) * winograd_group(format.vector) > kMostResults)
    return false;
  size_t bytes = 0;
  if (!mul(winograd_channels(variant, in_channels, format.element), round_up(out_channels, format.vector), bytes) ||
      !mul(bytes, winograd_products(variant) * element_bytes(format.element), bytes))
    return false;
  floats = ceil_div(bytes, sizeof(float));
  return bytes <= SIZE_MAX / 2;
}

void winograd_pack(const skua_context* ctx, WinogradVariant variant, size_t in_channels, size_t out_channels,
                   const PackFormat& format, const float* weights, const WeightSteps& steps, float* packed) {
  const Kernel* const kernel =
      format.element == Element::f16 ? find_pack(ctx, Element::f32, Element::f16) : nullptr;
  if (kernel) note_use(kernel);
  pack(variant, in_channels, out_channels, format, kernel ? code_of<GemmPackFn>(kernel) : nullptr, weights, steps,
       packed);
}
void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                   const int8_t* weights, const WeightSteps& steps, float* packed) {
  pack(variant, in_channels, out_channels, format, nullptr, weights, steps, packed);
}

int64_t winograd_largest(size_t taps, size_t in_channels, size_t out_channels, const int8_t* weights,
                         const WeightSteps& steps, int32_t below, int32_t above) {
  int64_t largest = 0;
  for (size_t o = 0; o < out_channels; ++o) {
    int64_t positive = 0, negative = 0;
    for (size_t y = 0; y < taps; ++y)
      for (size_t x = 0; x < taps; ++x) {
        const int8_t* w = weights + o * steps.o + y * steps.y + x * steps.x;
        int64_t sum = 0, amounts = 0;
        for (size_t i = 0; i < in_channels; ++i, w += steps.i) sum += *w, amounts += *w < 0 ? -*w : *w;
        positive += (amounts + sum) / 2;
        negative += (amounts - sum) / 2;
      }
    largest = max(largest, max(positive * above + negative * below, positive * below + negative * above));
  }
  return largest;
}

bool winograd_fits(WinogradVariant variant, int64_t largest) {
  if (variant == WinogradVariant::f6x6 || variant == WinogradVariant::f2x2_5x5) return false;
  const int more = (winograd_rows(variant) == 4 ? 3 : 1) + (winograd_columns(variant) == 4 ? 3 : 1);
  return largest < int64_t(1) << (31 - more);
}

}  // namespace skua
