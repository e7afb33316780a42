// Depthwise convolution of bytes by columns; included by int8_kernels.cc. A row of outputs goes over its columns once:
// K pixels are loaded and interleaved in registers, and meet at once the sums of all outputs that they are under.
// Nothing is written but results. VNNI: all three rows together; weights stay in registers.
//
// Sets that multiply 16 bits: pixels are widened, two rows together. Of a last row without a partner two columns go
// together: the one before and this one, where taps 1 and 2 of a window, 3 and 4, ... are under them; tap 0 takes the
// second of two alone.
//
// A block of L/2 channels has two rows of outputs at once, one in each half of the vectors: OUTPUTS is 2. Of L/4 the
// vectors are half as long: W is the bytes of those that weights are packed for.
//
// Sums: of (K-1)/S outputs (the column that ends one begins the next; with a stride of 3 of one) four vectors of L/4
// channels. Weights of 16 bits are operands in memory: the load ports are what a column waits for.

template <class B, int K, int S, int OUTPUTS> struct Streamed {
  using I = typename B::I;
  static constexpr int outputs = K > S ? (K - 1) / S : 1, phases = outputs * S, rows = K * OUTPUTS;
  const uint8_t* p[rows];
  size_t step[rows], left;     // of a stretch of columns: outside at the left, inside, outside at the right
  int stretch;
  size_t warm, done;           // results that are not there yet, and those that are
  typename B::Sum sum[outputs][4];
  I before;                    // the last row's pixel in the column before
};
template <class B, int K, int S, int OUTPUTS>
SKUA_INL void next_stretch(Streamed<B, K, S, OUTPUTS>& s, const DepthwiseInt8Streamed& d, size_t channel) {
  while (!s.left && s.stretch < 3) {
    const bool inside = s.stretch == 1;
    s.left = inside ? d.inside : s.stretch ? d.after : d.before;
    SKUA_UNROLL for (int i = 0; i < s.rows; ++i) {
      const bool is_line = !inside || d.rows[i] == d.line;
      s.p[i] = is_line ? d.line : d.rows[i] + channel;
      s.step[i] = is_line ? 0 : d.step;
    }
    ++s.stretch;
  }
}

// What VNNI keeps for all columns: weights, and B::less() of the scales.
template <class B, int K> struct StreamedWeights {
  typename B::I w[B::G == 4 ? K : 1][4], less[4];
};

// A column, PHASE of those that go by before all sums have moved on. Whether it was the last.
template <class B, Known KNOWN, int K, int S, int OUTPUTS, int W, int PHASE>
SKUA_INL bool column(Streamed<B, K, S, OUTPUTS>& s, const typename B::I (&start)[4],
                     const StreamedWeights<B, K>& weights, const DepthwiseInt8Streamed& d, const DepthwiseInt8Tile& t,
                     const uint8_t* w, const float* scale, size_t channel, typename B::I flip) {
  using All = Streamed<B, K, S, OUTPUTS>;
  using I = typename B::I;
  constexpr bool ends = PHASE % S == (K - 1) % S;        // an output
  // under tap 0, 2, ...: two columns of the last row go together
  constexpr bool twos = S == 3 ? PHASE != 1 : PHASE % S == 0;
  static_assert(K % 2 == 1 && (S < 3 || K == S));
  asm volatile("" : "+r"(w), "+r"(scale));  // else gcc keeps what is there, all on the stack, from column to column
  I r[K];
  SKUA_UNROLL for (int i = 0; i < K; ++i) {
    if constexpr (OUTPUTS == 1) r[i] = B::load(s.p[i]);
    else r[i] = B::template pixels<2>(s.p[i], size_t(s.p[K + i] - s.p[i]), 1);
    r[i] = B::flip(r[i], flip);
  }
  SKUA_UNROLL for (int i = 0; i < All::rows; ++i) s.p[i] += s.step[i];
  using Scaled = decltype(B::scaled(s.sum[0][0], scale, 0));
  decltype(B::half(Scaled(), Scaled(), 0, 0)) halves[2];
  [[maybe_unused]] I all[4];
  if constexpr (B::G == 4) {
    static_assert(K == 3);
    const I four[4] = {r[0], r[1], r[2], r[2]};  // the last has a weight of 0
    B::group(four, all);
  }
  SKUA_UNROLL for (int h = 0; h < 2; ++h) {
    [[maybe_unused]] I rows[K / 2 + 1][2];
    if constexpr (B::G == 2) {
      SKUA_UNROLL for (int g = 0; g < K / 2; ++g) B::widen_pairs(r[2 * g], r[2 * g + 1], h, rows[g]);
      if (twos) B::widen_pairs(s.before, r[K - 1], h, rows[K / 2]);
    }
    SKUA_UNROLL for (int k = K - 1; k >= 0; --k) {
      if (k % S != PHASE % S) continue;
      const int slot = (PHASE - k + 2 * All::phases) % All::phases / S;  // the output that tap k is of
      Scaled scaled[2];
      SKUA_UNROLL for (int i = 0; i < 2; ++i) {
        const int q = 2 * h + i;
        typename B::Sum& sum = s.sum[slot][q];
        if (k == 0) sum = B::start(start[q]);
        if constexpr (B::G == 4) {
          B::dot(sum, all[q], weights.w[k][q]);
        } else {
          SKUA_UNROLL for (int g = 0; g < K / 2; ++g) B::dot(sum, rows[g][i], B::load(w + ((g * K + k) * 4 + q) * W));
          if (twos && k % 2 == 0) B::dot(sum, rows[K / 2][i], B::load(w + ((K / 2 * K + k / 2) * 4 + q) * W));
        }
        if (k < K - 1) continue;
        if constexpr (B::G == 4 && KNOWN == kPositive)
          scaled[i] = B::positive(sum, scale + q * (W / 4), weights.less[q]);
        else scaled[i] = scaled_sum<B, KNOWN>(sum, scale + q * (W / 4), t);
      }
      if (k == K - 1) halves[h] = half_of<B, KNOWN>(scaled[0], scaled[1], t);
    }
  }
  s.before = r[K - 1];
  if (!--s.left) next_stretch(s, d, channel);
  if (!ends) return false;
  if (s.warm) {
    --s.warm;
    return false;
  }
  const I q = whole_of<B, KNOWN>(halves[0], halves[1], t);
  uint8_t* const to = t.out + channel + s.done * t.out_pixel;
  if constexpr (OUTPUTS == 1) B::store(to, q);
  else B::parts(q, to, t.out_row, 2);
  return ++s.done == t.outputs;
}

template <class B, Known KNOWN, int K, int S, int OUTPUTS, int W>
void stream(const DepthwiseInt8Streamed& d, const DepthwiseInt8Tile& t, size_t channel) {
  const auto* const w = static_cast<const uint8_t*>(t.w);
  constexpr int taps = B::G == 4 ? K : K / 2 * K + (K + 1) / 2;
  const uint8_t* const offset = w + 4 * taps * W;
  const float* const scale = reinterpret_cast<const float*>(offset + 4 * W);
  StreamedWeights<B, K> weights;
  if constexpr (B::G == 4)
    SKUA_UNROLL for (int k = 0; k < K; ++k)
      SKUA_UNROLL for (int q = 0; q < 4; ++q)
        weights.w[k][q] = B::load(w + (k * 4 + q) * W);
  const typename B::I flip = B::bytes(d.flip);
  if constexpr (B::G == 4 && KNOWN == kPositive)
    SKUA_UNROLL for (int q = 0; q < 4; ++q)
      weights.less[q] = B::less(scale + q * (W / 4));
  typename B::I start[4];
  SKUA_UNROLL for (int q = 0; q < 4; ++q) start[q] = start_of<B, KNOWN>(B::load(offset + q * W)).v;
  const auto line = [&](const DepthwiseInt8Streamed& d, const DepthwiseInt8Tile& t) __attribute__((always_inline)) {
    Streamed<B, K, S, OUTPUTS> s;
    s.left = s.done = 0, s.stretch = 0, s.warm = (K - 1) / S;
    SKUA_UNROLL for (int a = 0; a < s.outputs; ++a)
      SKUA_UNROLL for (int q = 0; q < 4; ++q)
        s.sum[a][q] = B::start(start[q]);
    s.before = B::bytes(0);
    next_stretch(s, d, channel);
    for (;;) {
      if (column<B, KNOWN, K, S, OUTPUTS, W, 0>(s, start, weights, d, t, w, scale, channel, flip)) break;
      if constexpr (s.phases > 1)
        if (column<B, KNOWN, K, S, OUTPUTS, W, 1>(s, start, weights, d, t, w, scale, channel, flip)) break;
      if constexpr (s.phases > 2)
        if (column<B, KNOWN, K, S, OUTPUTS, W, 2>(s, start, weights, d, t, w, scale, channel, flip)) break;
      if constexpr (s.phases > 3)
        if (column<B, KNOWN, K, S, OUTPUTS, W, 3>(s, start, weights, d, t, w, scale, channel, flip)) break;
    }
  };
  if constexpr (B::G == 4) {
    DepthwiseInt8Streamed e = d;  // what is stored might be it
    for (DepthwiseInt8Tile u = t; u.lines;
         u.lines -= u.lines < OUTPUTS ? 1 : OUTPUTS, e.rows += OUTPUTS * K, u.out += OUTPUTS * t.out_row) {
      if (u.lines < OUTPUTS) u.out_row = 0;
      line(e, u);
    }
  } else {
    line(d, t);
  }
}

template <class B, int K, int S, int OUTPUTS, int W> void stream_blocks(const DepthwiseInt8Streamed& d) {
  DepthwiseInt8Tile t = d.tile;  // what is stored might be it
  for (size_t b = 0; b < d.blocks; ++b, t.w = static_cast<const char*>(t.w) + d.bytes) {
    const char known = static_cast<const char*>(t.w)[d.bytes - 64];
    const auto lines = [&](const DepthwiseInt8Streamed& d) __attribute__((always_inline)) {
      if constexpr (B::has_positive)
        if (is_positive(known, t)) return stream<B, kPositive, K, S, OUTPUTS, W>(d, t, b * B::L);
      constexpr Known fits = B::G == 4 ? kNothing : kFits;  // four operations in sixty, not a program of its own
      known& kFitsInt8 ? stream<B, fits, K, S, OUTPUTS, W>(d, t, b * B::L)
                       : stream<B, kNothing, K, S, OUTPUTS, W>(d, t, b * B::L);
    };
    if constexpr (B::G == 4) {
      lines(d);
    } else {  // one after the other: sixteen registers have no room for what gcc would keep of all
      DepthwiseInt8Streamed e = d;
      for (size_t left = d.tile.lines; left;
           left -= left < OUTPUTS ? 1 : OUTPUTS, e.rows += OUTPUTS * K, t.out += OUTPUTS * d.tile.out_row) {
        t.out_row = left < OUTPUTS ? 0 : d.tile.out_row;
        lines(e);
      }
      t.out = d.tile.out;
    }
  }
}
template <class B, int OUTPUTS, int W = B::L> SKUA_INL void stream_of(const DepthwiseInt8Streamed& d) {
  if constexpr (B::G == 4) return stream_blocks<B, 3, 2, OUTPUTS, W>(d);
  else {
    if constexpr (B::L > 16)
      if (d.stride == 1) return stream_blocks<B, 3, 1, OUTPUTS, W>(d);
    if (d.stride == 3) return stream_blocks<B, 3, 3, OUTPUTS, W>(d);
    d.tile.kernel_w == 3 ? stream_blocks<B, 3, 2, OUTPUTS, W>(d) : stream_blocks<B, 5, 2, OUTPUTS, W>(d);
  }
}
template <class B> void streamed(const DepthwiseInt8Streamed& d) {
  if constexpr (B::L > 16) {
#if defined(SKUA_ISA_avx512vnni)
    if constexpr (B::L == 64)
      if (d.tile.channels == 16) return stream_of<Bytes32, 2, 64>(d);
#endif
    if (d.tile.channels < size_t(B::L)) return stream_of<B, 2>(d);
  }
  stream_of<B, 1>(d);
}
