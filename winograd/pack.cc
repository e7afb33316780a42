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
constexpr Taps kTaps[4] = {taps(2, 3), taps(4, 3), taps(6, 3), taps(4, 5)};
// Rows for bytes, without their denominators (int8_kernels.cc): points 0, +-1 and +-2, infinity.
constexpr Taps kWhole[2] = {{{{1}, {1, 1, 1}, {1, -1, 1}, {0, 0, 1}}}, {{{1}, {1, 1, 1}, {1, -1, 1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 1}}}};

void put(double x, float* to) { *to = float(x); }
void put(double x, f16* to) { narrow(float(x), *to); }
void put(double x, int16_t* to) { *to = int16_t(x); }

template <class T, class W>
void pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const W* weights, size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i, T* packed) {
  const int ay = winograd_height(variant), ax = winograd_width(variant), sides = winograd_sides(variant), all = winograd_taps(variant), count = sides > 1 ? 3 : all;
  const Taps* const of = format.element == Element::s16 ? kWhole : kTaps;
  const Taps &gy = of[count == 5 ? 3 : ay / 2 - 2], &gx = of[count == 5 ? 3 : ax / 2 - 2];
  const size_t points = winograd_points(variant), nr = winograd_group(format.vector), wide = round_up(out_channels, format.vector), kr = winograd_together(format.element);
  const size_t depth = winograd_depth(variant, in_channels, format.element), channels = depth / winograd_parts(variant), step = depth * wide;  // from one point to the next
  for (size_t first = 0; first < out_channels; first += nr) {
    const size_t columns = min(nr, out_channels - first), width = round_up(columns, format.vector);
    for (size_t d = 0; d < depth; ++d) {
      const size_t begin = d / kWinogradDepth * kWinogradDepth, deep = min(kWinogradDepth, depth - begin), i = d % channels;
      const int part = int(d / channels), from_y = part / sides * 3, from_x = part % sides * 3;
      for (size_t j = 0; j < width; ++j) {
        T* to = packed + begin * wide + deep * first + ((d - begin) / kr * width + j) * kr + (d - begin) % kr;
        if (j >= columns || i >= in_channels) {
          for (size_t q = 0; q < points; ++q) to[q * step] = {};
          continue;
        }
        const W* w = weights + (first + j) * stride_o + i * stride_i;
        double half[kMostTaps][8];  // w Gx^T
        for (int y = 0; y < count; ++y)
          for (int b = 0; b < ax; ++b) {
            double sum = 0;
            for (int k = 0; k < count && from_y + y < all && from_x + k < all; ++k) sum += double(w[size_t(from_y + y) * stride_y + size_t(from_x + k) * stride_x]) * gx.at[b][k];
            half[y][b] = sum;
          }
        for (int a = 0; a < ay; ++a)
          for (int b = 0; b < ax; ++b, to += step) {
            double sum = 0;
            for (int k = 0; k < count; ++k) sum += gy.at[a][k] * half[k][b];
            put(sum, to);
          }
      }
    }
  }
}

}  // namespace

size_t winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format) {
  return ceil_div(winograd_points(variant) * winograd_depth(variant, in_channels, format.element) * round_up(out_channels, format.vector) * element_bytes(format.element), sizeof(float));
}

void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const float* weights, size_t stride_o, size_t stride_y,
                   size_t stride_x, size_t stride_i, float* packed) {
  if (format.element == Element::f16) pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, reinterpret_cast<f16*>(packed));
  else pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, packed);
}
void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const int8_t* weights, size_t stride_o, size_t stride_y,
                   size_t stride_x, size_t stride_i, float* packed) {
  pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, reinterpret_cast<int16_t*>(packed));
}

int64_t winograd_largest(size_t taps, size_t in_channels, size_t out_channels, const int8_t* weights, size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i, int32_t below, int32_t above) {
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
