// Windows of floats that share rows; included by kernels.cc, within its namespaces. Each input row is put together
// once, in the order of addresses (row), or, 3x3 with a stride of 1, a few pixels at a time down the image (down).

template <class What, int K, bool ends, bool within, bool begins> SKUA_INL void row_of(const PoolRow& t) {
  const F32 scale = F32::broadcast(&t.scale), low = F32::broadcast(&t.low), high = F32::broadcast(&t.high);
  const size_t pixels = t.pixels, n = t.channels, tap = t.tap, pixel = t.pixel, out_pixel = t.out_pixel;
  const float* in = t.in;
  for (size_t p = 0, o = 0; p < pixels; ++p, in += pixel, o += out_pixel) {
    float *const e = ends ? t.ends + o : nullptr, *const w = within ? t.within + o : nullptr,
                 *const b = begins ? t.begins + o : nullptr;
    for (size_t c = 0; c < n; c += L) {
      F32 y = F32::load(in + c);
      SKUA_UNROLL for (int k = 1; k < K; ++k) y = What::with(y, F32::load(in + k * tap + c));
      if (ends) clamp_high(clamp_low(What::end(What::with(F32::load(e + c), y), scale), low), high).store(e + c);
      if (within) What::with(F32::load(w + c), y).store(w + c);
      if (begins) What::begin(y).store(b + c);
    }
  }
}
template <class What, int K> SKUA_INL void row_to(const PoolRow& t) {
  if (t.ends && t.begins && t.within) row_of<What, K, true, true, true>(t);
  else if (t.ends && t.begins) row_of<What, K, true, false, true>(t);
  else {  // one, but for rows near the border
    if (t.ends) row_of<What, K, true, false, false>(t);
    if (t.within) row_of<What, K, false, true, false>(t);
    if (t.begins) row_of<What, K, false, false, true>(t);
  }
}
template <class What> void row(const PoolRow& t) {
  if (t.columns == kPoolRowTaps[0]) row_to<What, kPoolRowTaps[0]>(t);
  else row_to<What, kPoolRowTaps[1]>(t);
}

#if defined(SKUA_ISA_avx512)
// What rows of windows share is in registers: nothing goes to memory but results.
template <class What> void down(const PoolDown& t) {
  constexpr int P = kPoolDownPixels;
  const F32 scale = F32::broadcast(&t.scale), low = F32::broadcast(&t.low), high = F32::broadcast(&t.high);
  const size_t last = t.pixels - P, pixel = t.pixel;
  const auto taps = [&](const float* x, F32 (&y)[P]) __attribute__((always_inline)) {
    F32 a[P + 2];
    SKUA_UNROLL for (int i = 0; i < P + 2; ++i) a[i] = F32::load(x + size_t(i) * pixel);
    SKUA_UNROLL for (int p = 0; p < P; ++p) y[p] = What::with(What::with(a[p], a[p + 1]), a[p + 2]);
  };
  // Bands of rows: a pixel of every row of a map is a page of its own, more than a core has addresses of at hand.
  constexpr size_t kBand = 8;
  for (size_t r0 = 0, end; r0 < t.rows; r0 = end) {
    end = t.rows - r0 > kBand ? r0 + kBand : t.rows;
    for (size_t x = 0;; x = x + P < last ? x + P : last) {  // the last ones overlap
      for (size_t c = 0; c < t.channels; c += L) {
        const float* in = t.in + r0 * t.row + x * pixel + c;
        float* out = t.out + r0 * t.out_row + x * t.out_pixel + c;
        F32 first[P], second[P], third[P];
        taps(in, first);
        taps(in += t.row, second);
        for (size_t r = r0; r < end; ++r, out += t.out_row) {
          taps(in += t.row, third);
          SKUA_UNROLL for (int p = 0; p < P; ++p) {
            const F32 y = What::with(What::with(What::begin(first[p]), second[p]), third[p]);
            clamp_high(clamp_low(What::end(y, scale), low), high).store(out + size_t(p) * t.out_pixel);
            first[p] = second[p];
            second[p] = third[p];
          }
        }
      }
      if (x == last) break;
    }
  }
}
#endif
