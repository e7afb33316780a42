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

template <class T>
void pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const float* weights, size_t stride_o, size_t stride_y, size_t stride_x, size_t stride_i,
          T* packed) {
  const int ay = winograd_height(variant), ax = winograd_width(variant), count = winograd_taps(variant);
  const Taps &gy = kTaps[count == 5 ? 3 : ay / 2 - 2], &gx = kTaps[count == 5 ? 3 : ax / 2 - 2];
  const size_t points = winograd_points(variant), nr = winograd_group(format.vector), wide = round_up(out_channels, format.vector);
  const size_t step = in_channels * wide;  // from one point to the next
  for (size_t first = 0; first < out_channels; first += nr) {
    const size_t columns = min(nr, out_channels - first), width = round_up(columns, format.vector);
    for (size_t i = 0; i < in_channels; ++i) {
      const size_t begin = i / kWinogradDepth * kWinogradDepth, depth = min(kWinogradDepth, in_channels - begin);
      for (size_t j = 0; j < width; ++j) {
        T* to = packed + begin * wide + depth * first + (i - begin) * width + j;
        if (j >= columns) {
          for (size_t q = 0; q < points; ++q) to[q * step] = {};
          continue;
        }
        const float* w = weights + (first + j) * stride_o + i * stride_i;
        double half[kMostTaps][8];  // w Gx^T
        for (int y = 0; y < count; ++y)
          for (int b = 0; b < ax; ++b) {
            double sum = 0;
            for (int k = 0; k < count; ++k) sum += double(w[size_t(y) * stride_y + size_t(k) * stride_x]) * gx.at[b][k];
            half[y][b] = sum;
          }
        for (int a = 0; a < ay; ++a)
          for (int b = 0; b < ax; ++b, to += step) {
            double sum = 0;
            for (int k = 0; k < count; ++k) sum += gy.at[a][k] * half[k][b];
            narrow(float(sum), *to);
          }
      }
    }
  }
}

}  // namespace

size_t winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format) {
  return ceil_div(winograd_points(variant) * in_channels * round_up(out_channels, format.vector) * element_bytes(format.element), sizeof(float));
}

void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const float* weights, size_t stride_o, size_t stride_y,
                   size_t stride_x, size_t stride_i, float* packed) {
  if (format.element == Element::f16) pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, reinterpret_cast<f16*>(packed));
  else pack(variant, in_channels, out_channels, format, weights, stride_o, stride_y, stride_x, stride_i, packed);
}

}  // namespace skua
