// Depthwise convolution of bytes tap by tap, for NEON; included by int8_kernels.cc. Pixels are read as they are. The
// products of two taps are added in 16 bits, which hold them, before they go to sums of 32: four multiplications and
// four additions for 16 channels of two taps.
//
// Weights of 16 channels: a vector for each tap, in the order in which they are multiplied (int8_blocks.h).

// Windows of K x K taps of two outputs S columns apart, and of one. rows: at the first column of the first. FLIP:
// inputs are u8.
template <class B, int K, int S, bool FLIP>
SKUA_INL void square_taps(typename B::Sums (&sums)[2], const uint8_t* const (&rows)[K], const size_t (&steps)[K],
                          const uint8_t* w) {
  constexpr int columns = S + K;
  using I = typename B::I;
  SKUA_UNROLL for (int g = 0; g < K / 2; ++g, w += 2 * K * B::L) {
    const uint8_t *p = rows[2 * g], *q = rows[2 * g + 1];
    I a[columns], b[columns];
    SKUA_UNROLL for (int j = 0; j < columns; ++j, p += steps[2 * g], q += steps[2 * g + 1])
      a[j] = B::template pixel<FLIP>(p), b[j] = B::template pixel<FLIP>(q);
    SKUA_UNROLL for (int k = 0; k < K; ++k) {
      const I wa = B::load(w + 2 * k * B::L), wb = B::load(w + (2 * k + 1) * B::L);
      B::two_taps(sums[0], a[k], wa, b[k], wb, sums[1], a[k + S], wa, b[k + S], wb);
    }
  }
  const uint8_t* p = rows[K - 1];
  I last[columns];
  SKUA_UNROLL for (int j = 0; j < columns; ++j, p += steps[K - 1]) last[j] = B::template pixel<FLIP>(p);
  SKUA_UNROLL for (int k = 0; k + 1 < K; k += 2, w += 2 * B::L) {
    const I wa = B::load(w), wb = B::load(w + B::L);
    B::two_taps(sums[0], last[k], wa, last[k + 1], wb, sums[1], last[k + S], wa, last[k + S + 1], wb);
  }
  const I end = B::load(w);
  SKUA_UNROLL for (int x = 0; x < 2; ++x) B::tap(sums[x], last[x * S + K - 1], end);
}
template <class B, int K, int S, bool FLIP>
SKUA_INL void square_taps(typename B::Sums (&sums)[1], const uint8_t* const (&rows)[K], const size_t (&steps)[K],
                          const uint8_t* w) {
  const auto weights = [&]() __attribute__((always_inline)) {
    const typename B::I v = B::load(w);
    w += B::L;
    SKUA_NEW_POINTER(w);
    return v;
  };
  const auto pixel = [&](const uint8_t*& p, size_t step) __attribute__((always_inline)) {
    const typename B::I v = B::template pixel<FLIP>(p);
    p += step;
    return v;
  };
  const auto two = [&](const uint8_t*& p, size_t p_step, const uint8_t*& q, size_t q_step)
      __attribute__((always_inline)) {
    const typename B::I a = pixel(p, p_step), wa = weights(), b = pixel(q, q_step), wb = weights();
    B::template two_taps<false>(sums[0], a, wa, b, wb);
  };
  SKUA_UNROLL for (int g = 0; g < K / 2; ++g) {
    const uint8_t *p = rows[2 * g], *q = rows[2 * g + 1];
    SKUA_UNROLL for (int k = 0; k < K; ++k) two(p, steps[2 * g], q, steps[2 * g + 1]);
  }
  const uint8_t* p = rows[K - 1];
  SKUA_UNROLL for (int k = 0; k + 1 < K; k += 2) two(p, steps[K - 1], p, steps[K - 1]);
  const typename B::I a = B::template pixel<FLIP>(p);
  B::tap(sums[0], a, weights());
}

// Any window, output x of its row. LEAST: some weight is -128.
template <class B, bool LEAST, bool FLIP>
SKUA_INL void any_taps(typename B::Sums& sums, const DepthwiseInt8Direct& d, size_t x, size_t channel,
                       const uint8_t* w) {
  const size_t height = d.height, width = d.tile.kernel_w;
  const auto row = [&](size_t i) __attribute__((always_inline)) {
    return d.rows[i] + (d.rows[i] == d.line ? 0 : channel) + x * d.stride * d.steps[i];
  };
  for (size_t g = 0; g < height / 2; ++g) {
    const uint8_t *p = row(2 * g), *q = row(2 * g + 1);
    const size_t p_step = d.dilation * d.steps[2 * g], q_step = d.dilation * d.steps[2 * g + 1];
    for (size_t k = 0; k < width; ++k, p += p_step, q += q_step, w += 2 * B::L)
      B::template two_taps<LEAST>(sums, B::template pixel<FLIP>(p), B::load(w), B::template pixel<FLIP>(q),
                                  B::load(w + B::L));
  }
  if (height % 2 == 0) return;
  const uint8_t* p = row(height - 1);
  const size_t step = d.dilation * d.steps[height - 1];
  size_t k = 0;
  for (; k + 1 < width; k += 2, p += 2 * step, w += 2 * B::L)
    B::template two_taps<LEAST>(sums, B::template pixel<FLIP>(p), B::load(w), B::template pixel<FLIP>(p + step),
                                B::load(w + B::L));
  if (k < width) B::tap(sums, B::template pixel<FLIP>(p), B::load(w));
}

template <class B>
SKUA_INL void finish_taps(const typename B::Sums& sums, const float* scale, const DepthwiseInt8Tile& t, uint8_t* out) {
  using Scaled = decltype(B::scaled(sums.v[0], scale, 0));
  Scaled scaled[4];
  SKUA_UNROLL for (int i = 0; i < 4; ++i, scale += B::L / 4) {
    SKUA_NEW_POINTER(scale);
    scaled[i] = B::scaled(sums.v[i], scale, t.high);
  }
  B::store(out, whole_of<B, kNothing>(half_of<B, kNothing>(scaled[0], scaled[1], t),
                                      half_of<B, kNothing>(scaled[2], scaled[3], t), t));
}

// Outputs of a row, L channels from `channel` on. K: a window of K x K without dilation, S columns from one output to
// the next; 0: any.
template <class B, int K, int S, bool LEAST, bool FLIP, Core core>
void taps_of_block(const DepthwiseInt8Direct& d, const DepthwiseInt8Tile& t, size_t channel) {
  const auto* const w = static_cast<const uint8_t*>(t.w);
  const uint8_t* offset = w + (d.height * t.kernel_w + 3) / 4 * 4 * B::L;
  const auto* const scale = reinterpret_cast<const float*>(offset + 4 * B::L);
  uint8_t* out = t.out;
  if constexpr (K > 0) {
    constexpr int RW = kTapColumns;
    const uint8_t* rows[K];
    size_t steps[K];
    SKUA_UNROLL for (int i = 0; i < K; ++i)
      rows[i] = d.rows[i] + (d.rows[i] == d.line ? 0 : channel), steps[i] = d.steps[i];
    const auto tile = [&](auto& sums) __attribute__((always_inline)) {
      constexpr int n = sizeof sums / sizeof sums[0];
      asm("" : "+r"(offset));  // else gcc keeps what is there in registers, and copies it for every output
      SKUA_UNROLL for (int x = 0; x < n; ++x) sums[x] = B::offsets(offset);
      square_taps<B, K, S, FLIP>(sums, rows, steps, w);
      SKUA_UNROLL for (int x = 0; x < n; ++x, out += t.out_pixel) finish_taps<B>(sums[x], scale, t, out);
      SKUA_UNROLL for (int i = 0; i < K; ++i) rows[i] += n * S * steps[i];
    };
    size_t left = t.outputs;
    if constexpr (core != Core::any)
      if (left >= 2) {
        taps_in_order<S>(t, rows, steps);
        const size_t done = left / 2 * 2;
        SKUA_UNROLL for (int i = 0; i < K; ++i) rows[i] += done * S * steps[i];
        out += done * t.out_pixel;
        left -= done;
      }
    for (; left >= size_t(RW); left -= RW) {
      typename B::Sums sums[RW];
      tile(sums);
    }
    if (RW > 1 && left) {
      typename B::Sums sums[1];
      tile(sums);
    }
  } else {
    for (size_t x = 0; x < t.outputs; ++x, out += t.out_pixel) {
      typename B::Sums sums = B::offsets(offset);
      any_taps<B, LEAST, FLIP>(sums, d, x, channel, w);
      finish_taps<B>(sums, scale, t, out);
    }
  }
}
template <class B, bool FLIP, Core core>
SKUA_INL void taps_of(const DepthwiseInt8Direct& d, const DepthwiseInt8Tile& t, size_t channel, bool least) {
  const size_t k =
      d.height == t.kernel_w && d.dilation == 1 && !least && (d.stride == 1 || d.stride == 2) ? d.height : 0;
  // beside dot products strides of 1 come with weights packed elsewhere only
  constexpr Core tuned = FLIP ? Core::any : core, tuned_for_one = SKUA_BY_TAPS == 1 ? tuned : Core::any;
  if (k == 3 && d.stride == 1) return taps_of_block<B, 3, 1, false, FLIP, tuned_for_one>(d, t, channel);
  if (k == 3) return taps_of_block<B, 3, 2, false, FLIP, tuned>(d, t, channel);
  if (k == 5 && d.stride == 1) return taps_of_block<B, 5, 1, false, FLIP, Core::any>(d, t, channel);
  if (k == 5) return taps_of_block<B, 5, 2, false, FLIP, Core::any>(d, t, channel);
  least ? taps_of_block<B, 0, 0, true, FLIP, Core::any>(d, t, channel)
        : taps_of_block<B, 0, 0, false, FLIP, Core::any>(d, t, channel);
}
