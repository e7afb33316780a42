// Tiles for grouped convolution with as many outputs as inputs per group (G of them), where G or more lanes make a vector: several groups share one, so no lane is empty.
//
//   lane l of output vector c:  out[c + l] += in[c + l/G*G + i] * w[ky][i][kx][c + l]      i < G
//
// The inputs of a vector of outputs are the vector at the same channels; for every i its lanes are permuted, or with one group per vector one of them is broadcast, and
// then used by up to RH * K sums, like a vector of a depthwise tile. Order of a chain: bias, ky, i, kx.
//
// Registers: RH*RW sums + RH*K weights + permuted input + permutation.
template <class T, int K, int S, int RH, int RW, bool BROADCAST, bool PART, int r = 0>
SKUA_INL void grouped_rows(const DepthwiseTile& t, size_t c, const float* w, [[maybe_unused]] I32 first, F32 (&acc)[RH][RW]) {
  constexpr int IH = (RH - 1) * S + K, IW = (RW - 1) * S + K;
  if constexpr (r < IH) {
    if (t.row_mask >> r & 1) {
      // Columns outside the image are zeros: no tests in the loop, but in a part of a tile.
      static const T zeros[16] = {};
      const T* in[IW];
      SKUA_UNROLL for (int j = 0; j < IW; ++j) {
        in[j] = static_cast<const T*>(t.rows[r]) + t.column + c + size_t(j) * t.in_pixel;
        if (!PART && (j < K - 1 || j >= IW - K + 1) && !(t.column_mask >> j & 1)) in[j] = zeros;  // less than a kernel's width of padding on either side
      }
      {  // The next row is far behind this one's products: its lines would be waited for (measured: 5% where pixels stay in L2).
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
        SKUA_UNROLL for (int y = 0; y < RH; ++y) SKUA_UNROLL for (int x = 0; x < RW; ++x) pin(acc[y][x]);  // else gcc moves sums between registers
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
  for (size_t c = 0; c < channels; c += L, w += weights) {
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
template <class T, int K, int S, int RH, int RW> constexpr DepthwiseTileTable grouped_table_of = make_grouped_table<T, K, S, RH, RW>();
template <class T, int K, int S, int RH, int RW> const DepthwiseTileTable& grouped_table() { return grouped_table_of<T, K, S, RH, RW>; }
