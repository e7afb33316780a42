// Tiles for grouped convolution with as many outputs as inputs per group (G of them): several groups share a vector,
// one fills it, or (floats) it fills some, so no lane is empty.
//
//   lane l of output vector c:  out[c + l] += in[c + l/G*G + i] * w[ky][i][kx][c + l]      i < G
//
// The inputs of a vector of outputs are the vector at the same channels, or all of their group; for every i its lanes
// are permuted, or with one group per vector one of them is broadcast, and then used by up to RH * K sums, like a
// vector of a depthwise tile. Order of a chain: bias, ky, i, kx.
//
// Registers: RH*RW sums + RH*K weights + permuted input + permutation.
SKUA_INL size_t group_begin(size_t c, size_t group) { return group > size_t(L) ? c / group * group : c; }
template <class T, int K, int S, int RH, int RW, bool BROADCAST, bool PART, int r = 0>
SKUA_INL void grouped_rows(const DepthwiseTile& t, size_t c, const float* w, [[maybe_unused]] I32 first,
                           F32 (&acc)[RH][RW]) {
  constexpr int IH = (RH - 1) * S + K, IW = (RW - 1) * S + K;
  if constexpr (r < IH) {
    if (t.row_mask >> r & 1) {
      // Columns outside the image are zeros: no tests in the loop, but in a part of a tile.
      static const T zeros[kMostGrouped] = {};
      const T* in[IW];
      const size_t inputs = BROADCAST ? group_begin(c, t.group) : c;
      SKUA_UNROLL for (int j = 0; j < IW; ++j) {
        in[j] = static_cast<const T*>(t.rows[r]) + t.column + inputs + size_t(j) * t.in_pixel;
        // less than a kernel's width of padding on either side
        if (!PART && (j < K - 1 || j >= IW - K + 1) && !(t.column_mask >> j & 1)) in[j] = zeros;
      }
      // The next row is far behind this one's products: its lines would be waited for (measured: 5% where pixels stay
      // in L2).
      {
        const T* p = static_cast<const T*>(t.rows[r + 1 < IH ? r + 1 : 0]) + t.column + c + (r + 1 < IH ? 0 : L);
        SKUA_UNROLL for (int j = 0; j < IW; ++j, p += t.in_pixel) __builtin_prefetch(p);
      }
      const size_t group = t.group, w_row = K * group * L;
      I32 index = first;
      for (size_t i = 0; i < group; ++i) {
        F32 tap[RH][K];
        SKUA_UNROLL for (int y = 0; y < RH; ++y) {
          const int ky = r - y * S;
          if (ky < 0 || ky >= K) continue;
          SKUA_UNROLL for (int kx = 0; kx < K; ++kx) {
            tap[y][kx] = F32::load(w + size_t(ky) * w_row + (i * K + size_t(kx)) * L);
            pin(tap[y][kx]);
          }
        }
        SKUA_UNROLL for (int j = 0; j < IW; ++j) {
          if (PART && !SKUA_LIKELY(t.column_mask >> j & 1)) continue;
          F32 x;
#if defined(SKUA_ISA_avx2)
          // groups of 8 are broadcast
          if constexpr (!BROADCAST && sizeof(T) == sizeof(float))
            x = F32{_mm256_permutevar_ps(F32::load(in[j]).v, index.v)};
          else
#endif
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
          if constexpr (!BROADCAST) x = permute(F32::load(in[j]), index);
          else
#endif
          x = F32::broadcast(in[j] + i);
          pin(x);
          SKUA_UNROLL for (int y = 0; y < RH; ++y) {
            const int ky = r - y * S;
            if (ky < 0 || ky >= K) continue;
            SKUA_UNROLL for (int kx = 0; kx < K; ++kx) {
              if (j < kx || (j - kx) % S || (j - kx) / S >= RW) continue;
              F32& a = acc[y][(j - kx) / S];
              a = fma(x, tap[y][kx], a);
            }
          }
        }
        // else gcc moves sums between registers
        SKUA_UNROLL for (int y = 0; y < RH; ++y) SKUA_UNROLL for (int x = 0; x < RW; ++x) pin(acc[y][x]);
        if constexpr (!BROADCAST) index = index + I32::set1(1);
      }
    }
    grouped_rows<T, K, S, RH, RW, BROADCAST, PART, r + 1>(t, c, w, first, acc);
  }
}

template <class T, int K, int S, int RH, int RW, bool BROADCAST, bool PART> void grouped_tile(const DepthwiseTile& t) {
  I32 first = I32::set1(0);  // lane of the first input of each lane's group
  if constexpr (!BROADCAST) {
    static const int32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    first = I32::load(lanes) & I32::set1(-int32_t(t.group));
  }
  const size_t channels = t.channels, weights = (1 + K * K * t.group) * L;
  const float* w = static_cast<const float*>(t.w);
  for (size_t from = 0; from < channels; from += L, w += weights) {
    const size_t c = from + L <= channels ? from : channels - L;
    F32 acc[RH][RW];
    const F32 bias = F32::load(w);
    SKUA_UNROLL for (int y = 0; y < RH; ++y) SKUA_UNROLL for (int x = 0; x < RW; ++x) acc[y][x] = bias;
    grouped_rows<T, K, S, RH, RW, BROADCAST, PART>(t, c, w + L, first, acc);
    T* row = static_cast<T*>(t.out) + c;
    SKUA_UNROLL for (int y = 0; y < RH; ++y) {
      T* q = row;
      SKUA_UNROLL for (int x = 0; x < RW; ++x) {
        if (!PART || uint32_t(x) < t.columns) clamp(acc[y][x], t.low, t.high).store(q);
        q += t.out_pixel;
      }
      row += t.out_row;
    }
  }
}
template <class T, int K, int S, int RH, int RW, bool PART> void grouped_any(const DepthwiseTile& t) {
#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
  if (t.group < L || sizeof(T) < sizeof(float)) return grouped_tile<T, K, S, RH, RW, false, PART>(t);
  if constexpr (sizeof(T) == sizeof(float))
#endif
  grouped_tile<T, K, S, RH, RW, true, PART>(t);
}

template <class T, int K, int S, int RH, int RW> constexpr DepthwiseTileTable make_grouped_table() {
  constexpr DepthwiseTileFn whole = grouped_any<T, K, S, RH, RW, false>;
  DepthwiseTileTable t = {copy<T>, 0, {whole, whole}, {}, {grouped_any<T, K, S, 1, RW, true>}};
  if constexpr (RH > 1) t.part[1] = grouped_any<T, K, S, RH, RW, true>;
  return t;
}
template <class T, int K, int S, int RH, int RW>
constexpr DepthwiseTileTable grouped_table_of = make_grouped_table<T, K, S, RH, RW>();
template <class T, int K, int S, int RH, int RW>
const DepthwiseTileTable& grouped_table() {
  return grouped_table_of<T, K, S, RH, RW>;
}

#if defined(SKUA_ISA_avx512)
// One row of outputs where a group fills the vector, or some. Of a tile of two rows a row of pixels that serves one of
// them has half of the chains, which wait for their latency (stride 1), and its pixels have more pointers than there
// are registers: each comes back from a vector (stride 2). An input of one product is broadcast by it (Zen 4: 0.95 of
// the time of a tile of two rows).
SKUA_INL void add_product(F32& sum, const F32& tap, const float* input) {
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum.v) : "v"(tap.v), "m"(*input));
}
template <int S, int RW> void grouped_line(const DepthwiseTile& t) {
  constexpr int K = 3, IW = (RW - 1) * S + K;
  static_assert(IW <= 16);
  static const float zeros[kMostGrouped] = {};  // columns outside the image
  const size_t channels = t.channels;
  const float* w = static_cast<const float*>(t.w);
  const ptrdiff_t pixel = ptrdiff_t(t.in_pixel * sizeof(float)), pixel3 = 3 * pixel;
  for (size_t from = 0; from < channels; from += L) {
    const size_t c = from + L <= channels ? from : channels - L;
    F32 acc[RW];
    const F32 bias = F32::load(w);
    SKUA_UNROLL for (int x = 0; x < RW; ++x) acc[x] = bias;
    w += L;
    const size_t inputs = group_begin(c, t.group), taps = K * L * t.group;
    for (int r = 0; r < K; ++r) {
      if (!(t.row_mask >> r & 1)) {
        w += taps;
        continue;
      }
      const char* row = reinterpret_cast<const char*>(static_cast<const float*>(t.rows[r]) + t.column + inputs);
      const char* next = reinterpret_cast<const char*>(static_cast<const float*>(t.rows[r + 1 < K ? r + 1 : 0]) +
                                                       t.column + c + (r + 1 < K ? 0 : L));
      SKUA_UNROLL for (int j = 0; j < IW; ++j, next += pixel) __builtin_prefetch(next);
      // Pointers of the four columns that may be outside; the others are at 0 to 3 pixels from three more, all in
      // registers.
      const char *in[4], *inner[3] = {row + 2 * pixel, row + 6 * pixel, row + 10 * pixel};
      SKUA_UNROLL for (int e = 0; e < 4; ++e) {
        const int j = e < 2 ? e : IW - 4 + e;
        in[e] = t.column_mask >> j & 1 ? row + j * pixel : reinterpret_cast<const char*>(zeros);
      }
      for (const float* end = w + taps; w != end; w += K * L) {
        F32 tap[K];
        SKUA_UNROLL for (int kx = 0; kx < K; ++kx) {
          tap[kx] = F32::load(w + kx * L);
          pin(tap[kx]);
        }
        SKUA_UNROLL for (int j = 0; j < IW; ++j) {
          const int p = (j - 2) & 3;
          const char* at = j < 2 ? in[j]
                           : j >= IW - 2
                               ? in[j - IW + 4]
                               : inner[(j - 2) / 4] + (p == 0 ? 0 : p == 1 ? pixel : p == 2 ? 2 * pixel : pixel3);
          if (S == 2 && j % 2) {
            add_product(acc[j / 2], tap[1], reinterpret_cast<const float*>(at));
            continue;
          }
          F32 x = F32::broadcast(reinterpret_cast<const float*>(at));
          pin(x);
          SKUA_UNROLL for (int kx = 0; kx < K; ++kx)
            if (j >= kx && (j - kx) % S == 0 && (j - kx) / S < RW)
              acc[(j - kx) / S] = fma(x, tap[kx], acc[(j - kx) / S]);
        }
        SKUA_UNROLL for (int x = 0; x < RW; ++x) pin(acc[x]);
        SKUA_UNROLL for (int e = 0; e < 4; ++e) in[e] += sizeof(float);
        SKUA_UNROLL for (int e = 0; e < 3; ++e) {
          inner[e] += sizeof(float);
          asm("" : "+r"(inner[e]));  // else each pixel has a pointer of its own, too many for the registers
        }
      }
    }
    float* q = static_cast<float*>(t.out) + c;
    SKUA_UNROLL for (int x = 0; x < RW; ++x, q += t.out_pixel) clamp(acc[x], t.low, t.high).store(q);
  }
}
template <int S, int RW>
constexpr DepthwiseTileTable grouped_line_table_of = {
    copy<float>, 0, {grouped_line<S, RW>, grouped_line<S, RW>}, {}, {grouped_tile<float, 3, S, 1, RW, true, true>},
    true};
template <int S, int RW> const DepthwiseTileTable& grouped_line_table() { return grouped_line_table_of<S, RW>; }
#endif
