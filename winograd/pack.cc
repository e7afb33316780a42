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

void put(double x, float* to) { *to = float(x); }
void put(double x, f16* to) { narrow(float(x), *to); }
void put(double x, int16_t* to) { *to = int16_t(x); }

template <class T, class W>
void pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const W* weights,
          size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i, T* packed) {
  const int ay = winograd_height(variant), ax = winograd_width(variant), all = winograd_taps(variant),
            count = winograd_part_taps(variant), stride = winograd_stride(variant);
  const bool whole = format.element == Element::s16;
  const Taps *const of = whole ? kWhole : kTaps, *const two = whole ? &kWholeTwo : &kTwo;
  const Taps &gy = count == 2 ? *two : of[count == 5 ? 3 : ay / 2 - 2],
             &gx = count == 2 ? *two : of[count == 5 ? 3 : ax / 2 - 2];
  const size_t nr = winograd_group(format.vector), wide = round_up(out_channels, format.vector),
               kr = winograd_together(format.element), parts = winograd_parts(variant);
  const size_t channels = winograd_channels(variant, in_channels, format.element);
  for (size_t first = 0; first < out_channels; first += nr) {
    const size_t columns = min(nr, out_channels - first), width = round_up(columns, format.vector);
    for (size_t d = 0; d < parts * channels; ++d) {
      const size_t part = d / channels, i = d % channels;
      const int from_y = parts > 1 ? winograd_part_y(part) * winograd_apart(variant) : 0,
                from_x = parts > 1 ? winograd_part_x(part) * winograd_apart(variant) : 0;
      for (size_t j = 0; j < width; ++j) {
        const auto put_all = [&](auto value) {
          T* to = packed;
          for (int a = 0; a < ay; ++a)
            for (int b = 0; b < ax; ++b) {
              const WinogradPoint p = winograd_point(variant, a, b);
              const size_t depth = (p.end - p.begin) * channels;
              if (part >= p.begin && part < p.end) {
                const size_t k = d - p.begin * channels, begin = k / kWinogradDepth * kWinogradDepth,
                             deep = min(kWinogradDepth, depth - begin);
                put(value(a, b),
                    to + begin * wide + deep * first + ((k - begin) / kr * width + j) * kr + (k - begin) % kr);
              }
              to += depth * wide;
            }
        };
        if (j >= columns || i >= in_channels) {
          put_all([](int, int) { return 0.0; });
          continue;
        }
        const W* w = weights + (first + j) * stride_o + i * stride_i;
        double half[kMostTaps][8];  // w Gx^T
        for (int y = 0; y < count; ++y)
          for (int b = 0; b < ax; ++b) {
            double sum = 0;
            const int tap_y = from_y + y * stride;
            for (int k = 0, tap_x = from_x; k < count && tap_y < all && tap_x < all; ++k, tap_x += stride)
              sum += double(w[size_t(tap_y) * stride_y + size_t(tap_x) * stride_x]) * gx.at[b][k];
            half[y][b] = sum;
          }
        put_all([&](int a, int b) {
          double sum = 0;
          for (int k = 0; k < count; ++k) sum += gy.at[a][k] * half[k][b];
          return sum;
        });
      }
    }
  }
}

}  // namespace

bool winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                            size_t& floats) {
  if (!format.vector || in_channels > SIZE_MAX / 2 || out_channels > SIZE_MAX / 2) return false;
  size_t bytes = 0;
  if (!mul(winograd_channels(variant, in_channels, format.element), round_up(out_channels, format.vector), bytes) ||
      !mul(bytes, winograd_products(variant) * element_bytes(format.element), bytes))
    return false;
  floats = ceil_div(bytes, sizeof(float));
  return bytes <= SIZE_MAX / 2;
}

void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                   const float* weights, size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i,
                   float* packed) {
  if (format.element == Element::f16)
    pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i,
         reinterpret_cast<f16*>(packed));
  else pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, packed);
}
void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                   const int8_t* weights, size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i,
                   float* packed) {
  pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i,
       reinterpret_cast<int16_t*>(packed));
}

int64_t winograd_largest(size_t taps, size_t in_channels, size_t out_channels, const int8_t* weights, size_t stride_o,
                         size_t stride_y, size_t stride_x, size_t stride_i, int32_t below, int32_t above) {
  int64_t largest = 0;
  for (size_t o = 0; o < out_channels; ++o) {
    int64_t positive = 0, negative = 0;
    for (size_t y = 0; y < taps; ++y)
      for (size_t x = 0; x < taps; ++x) {
        const int8_t* w = weights + o * stride_o + y * stride_y + x * stride_x;
        int64_t sum = 0, amounts = 0;
        for (size_t i = 0; i < in_channels; ++i, w += stride_i) sum += *w, amounts += *w < 0 ? -*w : *w;
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
