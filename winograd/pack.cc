// Transformed weights: U = Gy w Gx^T for every pair of channels.
#include "winograd/points.h"
#include "winograd/winograd.h"

namespace skua {
namespace {

struct Taps {
  double at[8][3];
};
consteval Taps taps(int m) {
  Taps t = {};
  for (int i = 0; i < m + 2; ++i)
    for (int k = 0; k < 3; ++k) t.at[i][k] = winograd::tap(m, i, k);
  return t;
}
constexpr Taps kTaps[3] = {taps(2), taps(4), taps(6)};

}  // namespace

size_t winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format) {
  return winograd_points(variant) * in_channels * round_up(out_channels, format.vector);
}

void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format, const float* weights, size_t stride_o, size_t stride_y,
                   size_t stride_x, size_t stride_i, float* packed) {
  const int my = winograd_rows(variant), mx = winograd_columns(variant), ay = my + 2, ax = mx + 2;
  const Taps &gy = kTaps[my / 2 - 1], &gx = kTaps[mx / 2 - 1];
  const size_t points = winograd_points(variant), nr = winograd_group(format.vector), wide = round_up(out_channels, format.vector);
  const size_t step = in_channels * wide;  // from one point to the next
  for (size_t first = 0; first < out_channels; first += nr) {
    const size_t columns = min(nr, out_channels - first), width = round_up(columns, format.vector);
    for (size_t i = 0; i < in_channels; ++i) {
      const size_t begin = i / kWinogradDepth * kWinogradDepth, depth = min(kWinogradDepth, in_channels - begin);
      for (size_t j = 0; j < width; ++j) {
        float* to = packed + begin * wide + depth * first + (i - begin) * width + j;
        if (j >= columns) {
          for (size_t q = 0; q < points; ++q) to[q * step] = 0;
          continue;
        }
        const float* w = weights + (first + j) * stride_o + i * stride_i;
        double half[3][8];  // w Gx^T
        for (int y = 0; y < 3; ++y) {
          const float* row = w + size_t(y) * stride_y;
          const double w0 = row[0], w1 = row[stride_x], w2 = row[2 * stride_x];
          for (int b = 0; b < ax; ++b) half[y][b] = w0 * gx.at[b][0] + w1 * gx.at[b][1] + w2 * gx.at[b][2];
        }
        for (int a = 0; a < ay; ++a)
          for (int b = 0; b < ax; ++b, to += step) *to = float(gy.at[a][0] * half[0][b] + gy.at[a][1] * half[1][b] + gy.at[a][2] * half[2][b]);
      }
    }
  }
}

}  // namespace skua
