// 3x3 with a stride of 2, one row of input at a time: see DepthwiseRow. Included by kernels.cc.
//
// A tile reads a vector of each of its pixels, then the next one: 35 to 75 lines at a pixel's distance, which hardware
// does not fetch ahead. Here whole pixels are read one after another, every line once, and sums that wait for their
// next row of taps are in memory, close.

// Outputs side by side share weights and every other column. AVX-512: one, a pixel's lines in their order matter more
// (28x28x256 in a loop 9.5 us, of two 10.7).
constexpr int kRowOutputs = L == 16 ? 1 : 3;

// Outputs p to p + P - 1. edge: a column of taps may be outside on either side of the only one.
template <int P, bool first, bool last, bool next, bool edge>
SKUA_INL void row_outputs(const DepthwiseRow& t, size_t p) {
  static_assert(P == 1 || !edge);
  const size_t in_pixel = t.in_pixel, out_pixel = t.out_pixel, sums_pixel = t.sums_pixel, channels = t.channels,
               last_vector = channels - L;
  const bool left = !edge || p || !t.left, right = !edge || p + 1 < t.outputs || !t.right;  // inside
  const float* const in = t.in + (ptrdiff_t(2 * p) - t.left) * ptrdiff_t(in_pixel);
  const float* w = t.w + (next ? 0 : 1 + 3 * t.tap) * L;  // at the bias, or at the row of taps
  const ptrdiff_t bias = first ? t.w - w : 0;
  float *sums = t.sums + p * sums_pixel, *const out = t.out + p * out_pixel;
  const V low = V::broadcast(&t.low), high = V::broadcast(&t.high);
  for (size_t c = 0;; w += 10 * L, sums += L) {
    const float* const pixels = in + c;
    V x[2 * P + 1], y[P];
    SKUA_UNROLL for (int j = 0; j <= 2 * P; ++j) {
      if ((j == 0 && !left) || (j == 2 * P && !right)) continue;
      x[j] = V::load(pixels + size_t(j) * in_pixel);
      pin(x[j]);
    }
    const auto add = [&](const float* taps) __attribute__((always_inline)) {
      SKUA_UNROLL for (int k = 0; k < 3; ++k) {
        if ((k == 0 && !left) || (k == 2 && !right)) continue;
        const V tap = V::load(taps + k * L);
        SKUA_UNROLL for (int q = 0; q < P; ++q) accumulate<3, 2>(y[q], x[2 * q + k], tap);
      }
    };
    SKUA_UNROLL for (int q = 0; q < P; ++q) y[q] = first ? V::load(w + bias) : V::load(sums + size_t(q) * sums_pixel);
    add(next ? w + 7 * L : w);
    SKUA_UNROLL for (int q = 0; q < P; ++q) {
      if (last) clamp_high(clamp_low(y[q], low), high).store(out + c + size_t(q) * out_pixel);
      else y[q].store(sums + size_t(q) * sums_pixel);
    }
    if (next) {
      SKUA_UNROLL for (int q = 0; q < P; ++q) y[q] = V::load(w);
      add(w + L);
      SKUA_UNROLL for (int q = 0; q < P; ++q) y[q].store(sums + size_t(q) * sums_pixel);
    }
    c += L;
    if (c <= last_vector) continue;
    if (c >= channels) break;
    c = last_vector;  // overlaps the one before
  }
}

template <bool first, bool last, bool next> void row(const DepthwiseRow& given) {
  const DepthwiseRow t = given;  // a compiler must take every store for a change of what it cannot see
  size_t p = 0;
  const size_t end = t.outputs - t.right;
  if (t.left) row_outputs<1, first, last, next, true>(t, p++);
  for (; p + kRowOutputs <= end; p += kRowOutputs) row_outputs<kRowOutputs, first, last, next, false>(t, p);
  for (; p < t.outputs; ++p) row_outputs<1, first, last, next, true>(t, p);
}

constexpr DepthwiseRowTable row_functions = {
    {row<false, false, false>, row<true, false, false>, row<false, true, false>, row<true, true, false>},
    row<false, true, true>};
const DepthwiseRowTable& row_table() { return row_functions; }
