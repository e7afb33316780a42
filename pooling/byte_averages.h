// Averages of quantised bytes; included by kernels.cc, within its namespaces.

// Sums are exact in 32 bits.
template <class T> struct AverageBytes {
  using Element = T;
  static constexpr size_t most = 1, lanes = L;
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    I32 y[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) y[v] = I32::set1(-t.zero * int32_t(t.rows * t.columns));
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v)
          y[v] = y[v] + (part ? I32::load_n(x, t.channels) : I32::load(x + (v < N - 1 ? v * L : last)));
    }
    const Requantizer to(Requantize{t.low, t.high, t.zero_point});
    const F32 scale = F32::set1(t.scale);
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      const I32 q = to(y[v], scale);
      if (part) q.store_n(out, t.channels);
      else q.store(out + (v < N - 1 ? v * L : last));
    }
  }
};

#if !defined(SKUA_ISA_scalar)
// The same of whole registers of bytes: sums in 16 bits of all bytes as pairs and of the upper one of each pair, from
// which those of the lower follow.
constexpr size_t kMostTaps = 257;  // whose sums fit
template <class T> struct AverageOfWholes {
  using Element = T;
  static constexpr size_t most = 2, lanes = 4 * L;
  typedef uint16_t Pairs __attribute__((vector_size(lanes), may_alias));
  typedef uint16_t PairsAt __attribute__((vector_size(lanes), aligned(1), may_alias));
  template <int N, bool part>
  static SKUA_INL void pass(const PoolPixels& t, const T* in, T* out, int32_t*, uint32_t, size_t last) {
    constexpr bool flips = T(-1) < T(0);
    Pairs all[N], upper[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) all[v] = upper[v] = Pairs{};
    for (size_t r = 0; r < t.rows; ++r, in += t.row) {
      const T* x = in;
      for (size_t k = 0; k < t.columns; ++k, x += t.tap)
        SKUA_UNROLL for (int v = 0; v < N; ++v) {
          Pairs pairs = *reinterpret_cast<const PairsAt*>(x + (v < N - 1 ? v * lanes : last));
          if constexpr (flips) pairs ^= uint16_t(0x8080) - Pairs{};
          all[v] += pairs;
          upper[v] += pairs >> 8;
        }
    }
    const Requantizer to(Requantize{t.low, t.high, t.zero_point});
    const F32 scale = F32::set1(t.scale);
    const I32 start = I32::set1((t.zero + (flips ? 128 : 0)) * int32_t(t.rows * t.columns)), word = I32::set1(0xffff),
              byte = I32::set1(0xff);
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      const Pairs of_lower = all[v] - (upper[v] << 8);
      I32 even, odd;
      __builtin_memcpy(&even, &of_lower, sizeof even);
      __builtin_memcpy(&odd, &upper[v], sizeof odd);
      const auto result = [&](I32 sum) __attribute__((always_inline)) { return to(sum - start, scale); };
      const I32 q0 = result(even & word), q1 = result(odd & word), q2 = result(shr_logical<16>(even)),
                q3 = result(shr_logical<16>(odd));
      ((q0 & byte) | shl<8>(q1 & byte) | shl<16>((q2 & byte) | shl<8>(q3)))
          .store(reinterpret_cast<int32_t*>(out + (v < N - 1 ? v * lanes : last)));
    }
  }
};

// Large windows of bytes, as whole maps are: 16-bit sums of all bytes as pairs and of the upper one of each pair, from
// which those of the lower follow; every 256 taps they go on to 32 bits.
// Where channels are few several pixels are one, `together` of them, whose sums are added at the end.
// bytes of a vector; vectors of a pass
constexpr size_t kManyTaps = 32, kWide = 4 * L, kMostWide = F32::registers == 32 ? 8 : 4;
typedef uint16_t Pairs __attribute__((vector_size(kWide), may_alias));
typedef uint16_t PairsAt __attribute__((vector_size(kWide), aligned(1), may_alias));

// N vectors of `taps` pixels, the last of them `last` bytes from the first, to sums: of each vector those of the lower
// bytes, then those of the upper ones.
template <int N>
[[gnu::noinline]] void sum_taps(const uint8_t* in, size_t taps, size_t tap, size_t last, uint8_t flip, uint32_t* sums) {
  const Pairs by = uint16_t(flip * 0x101) - Pairs{};
  while (taps > 0) {
    const size_t n = taps < 256 ? taps : 256;
    Pairs all[N], upper[N];
    SKUA_UNROLL for (int v = 0; v < N; ++v) all[v] = upper[v] = Pairs{};
    for (size_t i = 0; i < n; ++i, in += tap)
      SKUA_UNROLL for (int v = 0; v < N; ++v) {
        const Pairs x = *reinterpret_cast<const PairsAt*>(in + (v < N - 1 ? size_t(v) * kWide : last)) ^ by;
        all[v] += x;
        upper[v] += x >> 8;
      }
    SKUA_UNROLL for (int v = 0; v < N; ++v) {
      uint16_t more[kWide];
      *reinterpret_cast<PairsAt*>(more) = all[v] - (upper[v] << 8);
      *reinterpret_cast<PairsAt*>(more + kWide / 2) = upper[v];
      for (size_t i = 0; i < kWide; ++i) sums[size_t(v) * kWide + i] += more[i];
    }
    taps -= n;
  }
}
template <int N>
SKUA_INL void sum_taps_of(size_t vectors, const uint8_t* in, size_t taps, size_t tap, size_t last, uint8_t flip,
                          uint32_t* sums) {
  if constexpr (N > 1)
    if (vectors < N) return sum_taps_of<N - 1>(vectors, in, taps, tap, last, flip, sums);
  sum_taps<N>(in, taps, tap, last, flip, sums);
}

template <class T> void average_of_many(const PoolPixels& t) {
  constexpr uint8_t flip = T(-1) < T(0) ? 0x80 : 0;
  const bool one_row = t.row == t.columns * t.tap;
  const size_t rows = one_row ? 1 : t.rows, columns = one_row ? t.rows * t.columns : t.columns,
               most = kMostWide * kWide;
  size_t together = 1, width = t.channels;  // of a pass
  if (t.channels > most) {
    const size_t vectors = (t.channels + kWide - 1) / kWide;
    width = (vectors + (vectors + kMostWide - 1) / kMostWide - 1) / ((vectors + kMostWide - 1) / kMostWide) * kWide;
  } else if (t.tap == t.channels) {
    // The fewest bytes of vectors for a pixel.
    const auto waste = [&](size_t m) { return double((m * t.channels + kWide - 1) / kWide * kWide) / double(m); };
    for (size_t m = 2; m <= 8 && m * t.channels <= most; ++m)
      if (together * t.channels < kWide || waste(m) < waste(together)) together = m;
  }
  const Requantizer to(Requantize{t.low, t.high, t.zero_point});
  const F32 scale = F32::set1(t.scale);
  const int32_t start = -(t.zero + (flip ? 128 : 0)) * int32_t(t.rows * t.columns);
  const auto* in = static_cast<const uint8_t*>(t.in);
  for (size_t c = 0; c < t.channels; c += width) {
    if (t.channels - c < width) c = t.channels - width;  // the last pass overlaps the one before it
    const size_t bytes = width * together, vectors = (bytes + kWide - 1) / kWide, last = bytes - kWide,
                 groups = columns / together;
    uint32_t halves[kMostWide * kWide] = {}, sums[kMostWide * kWide + L];
    for (size_t r = 0; r < rows; ++r)
      sum_taps_of<int(kMostWide)>(vectors, in + r * t.row + c, groups, together * t.tap, last, flip, halves);
    for (size_t v = 0; v < vectors * kWide; v += kWide) {
      uint64_t both[kWide / 2];
      for (size_t i = 0; i < kWide / 2; ++i) both[i] = halves[v + i] | uint64_t(halves[v + kWide / 2 + i]) << 32;
      __builtin_memcpy(sums + v, both, sizeof both);
    }
    // The last vector's first sums are those of the one before it.
    uint32_t* const tail = sums + (vectors - 1) * kWide;
    const size_t twice = vectors * kWide - bytes;
    for (size_t i = twice; twice && i < kWide; ++i) tail[i - twice] = tail[i];
    for (size_t m = 1; m < together; ++m)
      for (size_t i = 0; i < width; i += L) {  // beyond the pixel: into the one that was added before
        int32_t* p = reinterpret_cast<int32_t*>(sums + i);
        (I32::load(p) + I32::load(p + m * width)).store(p);
      }
    for (size_t r = 0; r < rows; ++r)
      for (size_t k = groups * together; k < columns; ++k)
        for (size_t i = 0; i < width; ++i) sums[i] += in[r * t.row + k * t.tap + c + i] ^ flip;
    T* out = static_cast<T*>(t.out) + c;
    for (size_t i = 0; i < width; i += L) {
      const size_t n = width - i < L ? width - i : L;
      to(I32::load_n(reinterpret_cast<const int32_t*>(sums + i), n) + I32::set1(start), scale).store_n(out + i, n);
    }
    if (c + width == t.channels) break;
  }
}
#endif
