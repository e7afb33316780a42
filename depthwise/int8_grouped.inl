// Grouped convolution of bytes: groups of 4, 8 or 16 inputs and as many outputs. A block of L channels, a vector of L/4
// sums at a time, as in the depthwise tile.
//
//   spread   of every 16 bytes of a pixel the d-th G (as bytes, or widened to 16 bits) are repeated four times: 16/G
//            vectors, so that each lane of sums has inputs of its own group
//   dot      lane e of vector v of sums is channel e/4*16 + v*4 + e%4; its group's inputs are `words` of these vectors,
//            the first of them v*4/group * words
//
//   tile: RW outputs of a row, two vectors of sums at a time: 2*RW sums + RW halves of results + 2*K weights + 1 pixel.
//   RW = 7 of 32 registers, 3 of 16. Where the kernel is three columns wide a pixel feeds three outputs (K).
#if defined(__x86_64__)
template <int d> SKUA_INL __m128i word_of(__m128i x) { return _mm_shuffle_epi32(x, d * 0x55); }
#if !defined(SKUA_ISA_sse2)
template <int d> SKUA_INL __m256i word_of(__m256i x) { return _mm256_shuffle_epi32(x, d * 0x55); }
#endif
#if defined(SKUA_ISA_avx512vnni)
template <int d>
SKUA_INL __m512i word_of(__m512i x) {
  return _mm512_maskz_shuffle_epi32(0xffff, x, _MM_PERM_ENUM(d * 0x55));
}
#endif
#else
template <int d> SKUA_INL int8x16_t word_of(int8x16_t x) {
  const int32x4_t words = vreinterpretq_s32_s8(x);
  return vreinterpretq_s8_s32(vdupq_lane_s32(d < 2 ? vget_low_s32(words) : vget_high_s32(words), d % 2));
}
#endif
template <class B> SKUA_INL void store_words(typename B::I x, uint8_t* to) {
  B::store(to, word_of<0>(x));
  B::store(to + B::L, word_of<1>(x));
  B::store(to + 2 * B::L, word_of<2>(x));
  B::store(to + 3 * B::L, word_of<3>(x));
}
template <class B> SKUA_INL void spread_pixel(typename B::I x, uint8_t* to) {
  if constexpr (B::G == 4) {
    store_words<B>(x, to);
  } else {
    store_words<B>(B::words_low(x), to);
    store_words<B>(B::words_high(x), to + 4 * B::L);
  }
}
template <class B> constexpr int spread_bytes = 16 / B::G * B::L;  // of a pixel

// The channels of a block: a vector, or a part of one of kPartlyGrouped.
template <class B> struct Block {
  explicit SKUA_INL Block(size_t) {}
  SKUA_INL typename B::I load(const uint8_t* p) const { return B::load(p); }
  SKUA_INL void store(uint8_t* p, typename B::I x) const { B::store(p, x); }
};
#if defined(SKUA_ISA_avx512vnni)
template <> struct Block<Bytes64> {
  static_assert(Bytes64::L == kPartlyGrouped);
  __mmask64 channels;
  explicit SKUA_INL Block(size_t n) : channels(~uint64_t(0) >> (64 - n)) {}
  SKUA_INL __m512i load(const uint8_t* p) const { return _mm512_maskz_loadu_epi8(channels, p); }
  SKUA_INL void store(uint8_t* p, __m512i x) const { _mm512_mask_storeu_epi8(p, channels, x); }
};
#endif

// One row of pixels.
template <class B> void spread(const DepthwiseInt8Columns& t) {
  const typename B::I by = B::bytes(t.flip);
  const uint8_t* p = t.rows[0];
  const size_t step = t.steps[0], columns = t.columns, after = t.after;
  uint8_t* to = static_cast<uint8_t*>(t.to);
  const Block<B> block(t.channels);
  for (size_t n = t.before; n > 0; --n, to += spread_bytes<B>) spread_pixel<B>(B::bytes(t.padding), to);
  for (size_t n = columns; n > 0; --n, to += spread_bytes<B>, p += step)
    spread_pixel<B>(B::flip(block.load(p), by), to);
  for (size_t n = after; n > 0; --n, to += spread_bytes<B>) spread_pixel<B>(B::bytes(t.padding), to);
}

constexpr int kGroupedColumns = F32::registers >= 32 ? 7 : 3;
// K columns of taps in each of t.groups runs, which begin at t.taps. ONE: two vectors of sums side by side have the
// same inputs, as groups of 8 and 16 do.
template <class B, int RW, Known KNOWN, int K, int S, bool ONE = false>
SKUA_INL void grouped_tile(const DepthwiseInt8Tile& t, const uint8_t* columns, uint8_t* out) {
  constexpr int L = B::L, IW = (RW - 1) * S + K;
  const size_t runs = t.groups, half = t.all_runs * 2 * K * L;
  const auto block_weights = static_cast<const uint8_t*>(t.w);
  const uint8_t* offset = block_weights + 2 * half;
  const float* scale = reinterpret_cast<const float*>(offset + 4 * L);
  using Scaled = decltype(B::scaled(B::start(B::load(offset)), scale, 0));
  using Half = decltype(B::half(Scaled(), Scaled(), 0, 0));
  Half halves[RW][2];
  SKUA_UNROLL for (int h = 0; h < 2; ++h) {
    typename B::Sum sum[2][1][RW];
    SKUA_UNROLL for (int i = 0; i < 2; ++i)
      SKUA_UNROLL for (int x = 0; x < RW; ++x) sum[i][0][x] = start_of<B, KNOWN>(B::load(offset + (2 * h + i) * L));
    const uint8_t *w = block_weights + size_t(h) * half + t.skipped_runs * 2 * K * L,
                  *first = columns + size_t(h) * t.layout.column, *second = first + t.layout.group;
    for (size_t r = 0; r < runs; ++r, w += 2 * K * L) {
      const uint8_t* p[2] = {first + t.taps[r], second + t.taps[r]};
      typename B::I weights[2][K];
      SKUA_UNROLL for (int i = 0; i < 2; ++i)
        SKUA_UNROLL for (int k = 0; k < K; ++k)
          weights[i][k] = B::load(w + (2 * k + i) * L);
      SKUA_UNROLL for (int j = 0; j < IW; ++j) {
        typename B::I pixel = B::load(p[0] + j * spread_bytes<B>);
        SKUA_UNROLL for (int i = 0; i < 2; ++i) {
          if (i && !ONE) pixel = B::load(p[1] + j * spread_bytes<B>);
          SKUA_UNROLL for (int k = 0; k < K; ++k)
            if (j >= k && (j - k) % S == 0 && (j - k) / S < RW) B::dot(sum[i][0][(j - k) / S], pixel, weights[i][k]);
        }
      }
    }
    Scaled scaled[1][RW][2];
    SKUA_UNROLL for (int i = 0; i < 2; ++i) {
      const float* by = scale + (2 * h + i) * (L / 4);
      if constexpr (KNOWN == kFixed) fix<B, 1, RW>(sum[i], by, t, scaled, i);
      else SKUA_UNROLL for (int x = 0; x < RW; ++x) scaled[0][x][i] = scaled_sum<B, KNOWN>(sum[i][0][x], by, t);
    }
    SKUA_UNROLL for (int x = 0; x < RW; ++x) halves[x][h] = half_of<B, KNOWN>(scaled[0][x][0], scaled[0][x][1], t);
    // else weights are there, and read with every product
    if constexpr (!ONE && kGroupedColumns > 3)
      SKUA_UNROLL for (int x = 0; x < RW; ++x)
        if (!h) asm("" : "+m"(halves[x][0]));
  }
  const Block<B> block(t.channels);
  SKUA_UNROLL for (int x = 0; x < RW; ++x)
    block.store(out + size_t(x) * t.out_pixel, whole_of<B, KNOWN>(halves[x][0], halves[x][1], t));
}

// The last tile overlaps the one before it; narrower rows are computed one by one.
template <class B, Known KNOWN, int K, int S, bool ONE = false> SKUA_INL void grouped_row(const DepthwiseInt8Tile& t) {
  constexpr int RW = sizeof(typename B::Sum) > size_t(B::L) ? 3 : kGroupedColumns;
  const uint8_t* columns = static_cast<const uint8_t*>(t.columns);
  if (t.outputs < size_t(RW)) {
    for (size_t x = 0; x < t.outputs; ++x)
      grouped_tile<B, 1, KNOWN == kFixed ? kFixed : kNothing, K, 1>(t, columns + x * S * spread_bytes<B>,
                                                                    t.out + x * t.out_pixel);
    return;
  }
  for (size_t x = 0;; x = x + 2 * RW <= t.outputs ? x + RW : t.outputs - RW) {
    grouped_tile<B, RW, KNOWN, K, S, ONE>(t, columns + x * S * spread_bytes<B>, t.out + x * t.out_pixel);
    if (x + RW >= t.outputs) return;
  }
}
template <class B, int S> void grouped(const DepthwiseInt8Tile& given) {
  const DepthwiseInt8Tile t = given;  // what is stored might be it
  const bool three = t.kernel_w == 3;
  if (t.rounding) return three ? grouped_row<B, kFixed, 3, S>(t) : grouped_row<B, kFixed, 1, S>(t);
  // Stride 2: 21 loads for 42 products in place of 36, where one of each starts in a cycle (Zen 4: 112x112x64 in 4
  // groups 203 to 180 us; stride 1, 14x14x512 in 32, 88 to 80).
  constexpr bool may_share = kGroupedColumns > 3;
  const bool one = may_share && !t.layout.group;
  if constexpr (B::has_positive)
    if (t.positive && three)
      return one ? grouped_row<B, kPositive, 3, S, may_share>(t) : grouped_row<B, kPositive, 3, S>(t);
  if constexpr (B::saturates)
    if ((B::fits_always || t.fits) && three)
      return one ? grouped_row<B, kFits, 3, S, may_share>(t) : grouped_row<B, kFits, 3, S>(t);
  three ? grouped_row<B, kNothing, 3, S>(t) : grouped_row<B, kNothing, 1, S>(t);
}
// run: strides 1 and 2.
template <class B>
constexpr DepthwiseInt8Table grouped_functions = {
    B::G, B::takes_unsigned, {spread<B>, nullptr, nullptr}, {grouped<B, 1>, grouped<B, 2>}};
template <class B> const DepthwiseInt8Table& grouped_functions_of() { return grouped_functions<B>; }
#define SKUA_GROUPED(T, type, bytes, why)                                                                         \
  {"grouped_" #type "_" SKUA_STRING(SKUA_GROUPED_COLUMNS) "x" #bytes "_" SKUA_STRING(SKUA_ISA), "depthwise", why, \
   KernelKind::depthwise_int8, Isa::SKUA_ISA, kGroupedInt8, 1, SKUA_GROUPED_COLUMNS, bytes,                       \
   reinterpret_cast<AnyCode>(static_cast<DepthwiseInt8TableFn>(grouped_functions_of<Bytes##bytes>)), Element::type},
