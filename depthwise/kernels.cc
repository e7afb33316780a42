// Depthwise convolution tiles, one source for every instruction set. Picture of the tile and the register budget:
// README.md.
//
//   tile: RH x RW outputs of one channel vector, then the next vector of the same tile: every pixel is walked as one
//   contiguous line.
//   registers: RH*RW accumulators + the tap rows in flight + 1 input. Tap row k enters with input row k and is last
//   used by input row k + (RH-1)*stride.
//
// V is the vector that sums, W what weights are packed as, T what feature maps hold: f32 sums for maps of every type,
// and f16 sums for f16 where the instruction set has them (f16 in, f16 out: no conversions, twice the lanes).
#include "depthwise/depthwise_kernel.h"
#include "dispatch/kernel.h"
#include "simd/half.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#define SKUA_LIKELY(x) __builtin_expect(bool(x), 1)
#if defined(SKUA_HALF)
using V = F16;
using W = f16;
#define SKUA_EACH_TYPE(entry, ...) entry(f16, f16, __VA_ARGS__)
SKUA_INL V bound(const float& x) { return V::set1(x); }
[[maybe_unused]] SKUA_INL V load_whole(const f16* p) { return V::load(p); }
[[maybe_unused]] SKUA_INL void store_whole(V x, f16* p) { x.store(p); }
#else
using V = F32;
using W = float;
#ifdef SKUA_TYPE_f16
#define SKUA_WITH_F16(...) __VA_ARGS__
#else
#define SKUA_WITH_F16(...)
#endif
#ifdef SKUA_TYPE_bf16
#define SKUA_WITH_BF16(...) __VA_ARGS__
#else
#define SKUA_WITH_BF16(...)
#endif
#if defined(SKUA_ISA_neon_bf16)  // the same sums as neon's, rounded by an instruction
#define SKUA_EACH_TYPE(entry, ...) entry(bf16, bf16, __VA_ARGS__)
#else
#define SKUA_EACH_TYPE(entry, ...)                                           \
  entry(float, f32, __VA_ARGS__) SKUA_WITH_F16(entry(f16, f16, __VA_ARGS__)) \
  SKUA_WITH_BF16(entry(bf16, bf16, __VA_ARGS__))
#endif
SKUA_INL V bound(const float& x) { return V::broadcast(&x); }
[[maybe_unused]] SKUA_INL F32 load_whole(const float* p) { return F32::load(p); }
[[maybe_unused]] SKUA_INL void store_whole(F32 x, float* p) { x.store(p); }
[[maybe_unused]] SKUA_INL I32 load_whole(const f16* p) { return load_u16(&p->bits); }
[[maybe_unused]] SKUA_INL void store_whole(I32 x, f16* p) { store_u16(x, &p->bits); }
[[maybe_unused]] SKUA_INL I32 load_whole(const bf16* p) { return load_u16(&p->bits); }
[[maybe_unused]] SKUA_INL void store_whole(I32 x, bf16* p) { store_u16(x, &p->bits); }
#endif
#if defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
// Halves are widened and rounded by integer code here, most of the time whatever the kernel: tiles would be a fifth
// faster for f16, a twentieth for bf16, and five sixths of the code.
#define SKUA_EACH_TILE_TYPE(entry, ...) entry(float, f32, __VA_ARGS__)
#else
#define SKUA_EACH_TILE_TYPE SKUA_EACH_TYPE
#endif
constexpr int L = V::L;
// Whether a sum is done before the next load. gcc otherwise puts every product of a tile after every load where it has
// no fused multiply-add, and so does clang at stride 2, and for Arm for 5x5, with one: the inputs then wait on the
// stack. (clang for x86 at stride 1: up to 12% slower so.)
#if defined(__clang__) && defined(__x86_64__)
template <int kernel, int stride> constexpr bool kInOrder = !V::fused || stride == 2;
#elif defined(__clang__)
template <int kernel, int stride> constexpr bool kInOrder = !V::fused || stride == 2 || kernel == 5;
#else
template <int kernel, int stride> constexpr bool kInOrder = !V::fused;
#endif
constexpr int kAhead = 3;  // columns whose loads may be in flight before their use
// Whether a load adds a multiple of the step to its row's pointer, rather than an instruction for each column: x86 has
// 1, 2, 4 and 8 times a register in an address, in longer instructions (f32: 48 layers take 2% less time).
#if defined(__x86_64__)
template <class T> constexpr bool kIndexed = sizeof(T) == sizeof(float);
#else
template <class T> constexpr bool kIndexed = false;
#endif

SKUA_INL V clamp(V x, const float& low, const float& high) { return clamp_high(clamp_low(x, bound(low)), bound(high)); }

// kernels from this size on loop over input rows: as fast as unrolled code of 15 KB a function; 5x5 would lose 5 to 30%
constexpr int kRolled = 7;

// Channel where the vector after the one at c begins: the last one ends at the last channel.
SKUA_INL size_t next_vector(size_t c, size_t channels) { return c + 2 * L <= channels ? c + L : channels - L; }

// Loads of the columns after this point stay after it. gcc's scheduler for Arm moves every load of a tile to its front,
// and then has no registers left.
[[maybe_unused]] SKUA_INL void fence() {
#if defined(__aarch64__) || defined(__arm__)
  asm volatile("" ::: "memory");
#endif
}

// Not compared again at every use, with a vector register for it.
[[maybe_unused]] SKUA_INL int known(int x) {
  asm("" : "+r"(x));
  return x;
}

// Weights after this point are read again: where they do not fit into registers, as an operand of a multiply-add, or
// where a product would need a copy.
[[maybe_unused]] SKUA_INL void reread([[maybe_unused]] const W*& w) {
#if defined(__x86_64__)
  asm("" : "+r"(w));
#endif
}

// One more product of a sum. Written by hand where there is no fused multiply-add: else gcc adds the sum to the
// product, and moves it back to its register.
template <int kernel, int stride> SKUA_INL void accumulate(V& sum, V x, V tap) {
#if defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
  const V product = x * tap;
  asm volatile("addps %1, %0" : "+x"(sum.v) : "x"(product.v));
#else
  sum = fma(x, tap, sum);
  if constexpr (kInOrder<kernel, stride>) pin(sum);
#endif
}

// What of a tile's input may lie outside the image, or is not needed: nothing; rows, and less than a kernel's width of
// columns on either side; any column, and as many outputs.
enum Mask { kInside, kBorder, kPart };
template <Mask mask, int K, int IW>
SKUA_INL bool has_column([[maybe_unused]] const DepthwiseTile& t, [[maybe_unused]] int j) {
  if constexpr (mask == kInside) return true;
  return (mask == kBorder && j >= K - 1 && j < IW - K + 1) || SKUA_LIKELY(t.column_mask >> j & 1);
}

// Input row r of the tile and those after it.
template <class T, int K, int S, int RH, int RW, Mask MASK, int r = 0>
SKUA_INL void input_rows(const DepthwiseTile& t, size_t c, const W* w, V (&acc)[RH][RW], V (&tap)[K][K]) {
  constexpr int IH = (RH - 1) * S + K, IW = (RW - 1) * S + K;
  constexpr int products = V::fused ? 0 : MASK != kInside ? 2 : 1;  // between branches gcc needs a second one
  constexpr bool fits = RH * RW + ((RH - 1) * S + K < 2 * K ? (RH - 1) * S + 1 : K) * K + 1 + products <= V::registers;
  if constexpr (r < IH) {
    if constexpr (fits && r < K)
      SKUA_UNROLL for (int k = 0; k < K; ++k) {
        tap[r][k] = V::load(w + (1 + r * K + k) * L);
        pin(tap[r][k]);  // else gcc reads the weight from memory at every use
      }
    if (MASK == kInside || SKUA_LIKELY(t.row_mask >> r & 1)) {
      const T* p = static_cast<const T*>(t.rows[r]) + t.column + c;
      const size_t step = t.in_pixel;
      SKUA_UNROLL for (int j = 0; j < IW; ++j) {
        if constexpr (!fits) reread(w);
        if (has_column<MASK, K, IW>(t, j)) {
          V x = V::load(kIndexed<T> ? p + j * step : p);
          pin(x);  // loaded once: else gcc reads it again as an operand of every multiply-add
          SKUA_UNROLL for (int y = 0; y < RH; ++y) {
            const int ky = r - y * S;
            if (ky < 0 || ky >= K) continue;
            SKUA_UNROLL for (int kx = 0; kx < K; ++kx) {
              if (j < kx || (j - kx) % S || (j - kx) / S >= RW) continue;
              accumulate<K, S>(acc[y][(j - kx) / S], x, fits ? tap[ky][kx] : V::load(w + (1 + ky * K + kx) * L));
            }
          }
        }
        if constexpr (!kIndexed<T>) p += step;
        if (j % kAhead == kAhead - 1) fence();
      }
      fence();
    }
    input_rows<T, K, S, RH, RW, MASK, r + 1>(t, c, w, acc, tap);
  }
}

// Input row r of a large kernel for output rows Y0 .. Y1-1. Its tap rows are loaded again for every r, or are operands
// in memory.
template <class T, int K, int S, int RH, int RW, Mask MASK, int Y0, int Y1>
SKUA_INL void input_row(const DepthwiseTile& t, size_t c, const W* w, int r, V (&acc)[RH][RW]) {
  constexpr int IW = (RW - 1) * S + K;
  if (MASK != kInside && !SKUA_LIKELY(t.row_mask >> r & 1)) return;
  constexpr bool fits = RH * RW + RH * K + 1 + !V::fused <= V::registers;
  V tap[RH][K];
  [[maybe_unused]] const W* taps = w + (1 + (r - Y0 * S) * K) * L;
  if constexpr (fits) SKUA_UNROLL for (int y = Y0; y < Y1; ++y) SKUA_UNROLL for (int k = 0; k < K; ++k) {
    tap[y][k] = V::load(w + (1 + (r - y * S) * K + k) * L);
    pin(tap[y][k]);
  }
  const T* p = static_cast<const T*>(t.rows[r]) + t.column + c;
  const size_t step = t.in_pixel;
  SKUA_UNROLL for (int j = 0; j < IW; ++j, p += step) {
    if constexpr (!fits) reread(taps);
    if (has_column<MASK, K, IW>(t, j)) {
      V x = V::load(p);
      pin(x);
      SKUA_UNROLL for (int y = Y0; y < Y1; ++y) SKUA_UNROLL for (int kx = 0; kx < K; ++kx) {
        if (j < kx || (j - kx) % S || (j - kx) / S >= RW) continue;
        accumulate<K, S>(acc[y][(j - kx) / S], x, fits ? tap[y][kx] : V::load(taps + (kx - (y - Y0) * S * K) * L));
      }
    }
    if (j % kAhead == kAhead - 1) fence();
  }
  fence();
}

template <class T, int K, int S, int RH, int RW, Mask MASK> void tile(const DepthwiseTile& t) {
  const size_t channels = t.channels;
  // a bound costs as much as a tap
  const int below = known(t.low > -__builtin_inff()), above = known(t.high < __builtin_inff());
  [[maybe_unused]] const uint32_t columns = t.columns;
  const W* w = static_cast<const W*>(t.w);
  for (size_t c = 0;; w += (1 + K * K) * L) {
    V acc[RH][RW];
    const V bias = V::load(w);
    SKUA_UNROLL for (int y = 0; y < RH; ++y) SKUA_UNROLL for (int x = 0; x < RW; ++x) acc[y][x] = bias;
    if constexpr (K < kRolled) {
      V tap[K][K];
      input_rows<T, K, S, RH, RW, MASK>(t, c, w, acc, tap);
    } else {
      if constexpr (RH > 1) for (int r = 0; r < S; ++r) input_row<T, K, S, RH, RW, MASK, 0, 1>(t, c, w, r, acc);
      for (int r = (RH - 1) * S; r < K; ++r) input_row<T, K, S, RH, RW, MASK, 0, RH>(t, c, w, r, acc);
      if constexpr (RH > 1) for (int r = K; r < K + S; ++r) input_row<T, K, S, RH, RW, MASK, 1, 2>(t, c, w, r, acc);
    }
    if (below)
      SKUA_UNROLL for (int y = 0; y < RH; ++y)
        SKUA_UNROLL for (int x = 0; x < RW; ++x)
          acc[y][x] = clamp_low(acc[y][x], bound(t.low));
    if (above)
      SKUA_UNROLL for (int y = 0; y < RH; ++y)
        SKUA_UNROLL for (int x = 0; x < RW; ++x)
          acc[y][x] = clamp_high(acc[y][x], bound(t.high));
    T* row = static_cast<T*>(t.out) + c;
    // read before the first store: a compiler must take every store for a change of them
    const size_t out_pixel = t.out_pixel, out_row = t.out_row;
    SKUA_UNROLL for (int y = 0; y < RH; ++y) {
      T* q = row;
      SKUA_UNROLL for (int x = 0; x < RW; ++x) {
        if (MASK != kPart || uint32_t(x) < columns) acc[y][x].store(q);
        q += out_pixel;
      }
      row += out_row;
    }
    if (c + L >= channels) break;
    c = next_vector(c, channels);
  }
}

template <class T>
void copy(size_t pixels, size_t channels, const void* source, size_t from_pixel, void* ring, size_t to_pixel) {
  const T* from = static_cast<const T*>(source);
  T* to = static_cast<T*>(ring);
  for (; pixels; --pixels, from += from_pixel, to += to_pixel) {
    size_t c = 0;
    for (; c + 4 * L <= channels; c += 4 * L) {
      decltype(load_whole(from)) x[4];
      SKUA_UNROLL for (int i = 0; i < 4; ++i) x[i] = load_whole(from + c + i * L);
      SKUA_UNROLL for (int i = 0; i < 4; ++i) store_whole(x[i], to + c + i * L);
    }
    for (; c < channels; c += L) {
      const size_t at = c + L <= channels ? c : channels - L;
      store_whole(load_whole(from + at), to + at);
    }
  }
}

// A tile of few columns also has one of a column less, for the ends of rows: a part takes up to a seventh longer.
template <class T, int K, int S, int RH, int RW> constexpr DepthwiseTileTable make_table() {
  DepthwiseTileTable t = {
      copy<T>, 0, {tile<T, K, S, RH, RW, kInside>, tile<T, K, S, RH, RW, kBorder>}, {}, {tile<T, K, S, 1, RW, kPart>}};
  if constexpr (RH > 1) t.part[1] = tile<T, K, S, RH, RW, kPart>;
  constexpr bool lines = K <= kDepthwiseNarrowKernel && L * sizeof(T) >= kDepthwiseNarrowVector,
                 ends = K <= 3 && RW > 1 && RW <= 4 && (L > 4 || sizeof(T) == sizeof(float));
  constexpr int columns = lines ? (RW + 1) / 2 : RW - 1;
  if constexpr (lines || ends) {
    t.narrow_columns = columns;
    t.narrow[0] = t.narrow[1] = tile<T, K, S, RH, columns, kBorder>;
    if constexpr (lines) t.narrow[0] = tile<T, K, S, RH, columns, kInside>;
  }
  return t;
}
template <class T, int K, int S, int RH, int RW> constexpr DepthwiseTileTable table_of = make_table<T, K, S, RH, RW>();
template <class T, int K, int S, int RH, int RW>
const DepthwiseTileTable& tile_table() {
  return table_of<T, K, S, RH, RW>;
}

#if defined(__aarch64__) || defined(__arm__)
#if !defined(SKUA_ISA_scalar)
#include "depthwise/in_order.inl"
#endif
#endif

#if defined(__x86_64__) && !defined(SKUA_ISA_scalar) && !defined(SKUA_ISA_sse2) && !defined(SKUA_HALF)
#define SKUA_HAS_ROWS
#include "depthwise/rows.inl"
#endif

// ---- any kernel size, stride and dilation ---------------------------------------------------------------------------
// P pixels times N vectors at vector offset w, channel c.
template <class T, int P, int N, bool PART>
SKUA_INL void pixels(const DepthwisePixels& t, const W* w, const size_t (&c)[N]) {
  V acc[P][N];
  SKUA_UNROLL for (int v = 0; v < N; ++v) {
    const V bias = V::load(w + v * t.w_vector);
    SKUA_UNROLL for (int p = 0; p < P; ++p) acc[p][v] = bias;
  }
  const W* row_weights = w + t.w_first;
  for (size_t r = 0; r < t.n_rows; ++r, row_weights += t.w_row) {
    const T* at = static_cast<const T*>(t.rows[r]) + t.column;
    const W* weights = row_weights;
    for (size_t k = 0; k < t.n_columns; ++k, at += t.in_tap, weights += L) {
      SKUA_UNROLL for (int v = 0; v < N; ++v) {
        const V tap = V::load(weights + v * t.w_vector);
        const T* x = at + c[v];
        SKUA_UNROLL for (int p = 0; p < P; ++p) {
          acc[p][v] = fma(PART ? V::load_n(x, t.channels) : V::load(x), tap, acc[p][v]);
          x += t.in_pixel;
        }
      }
    }
  }
  SKUA_UNROLL for (int v = 0; v < N; ++v) {
    T* out = static_cast<T*>(t.out) + c[v];
    SKUA_UNROLL for (int p = 0; p < P; ++p) {
      const V y = clamp(acc[p][v], t.low, t.high);
      if (PART) y.store_n(out, t.channels);
      else y.store(out);
      out += t.out_pixel;
    }
  }
}

template <class T, int P> void any_pixels(const DepthwisePixels& t) {
  const size_t channels = t.channels;
  const W* w = static_cast<const W*>(t.w);
  for (size_t c = 0;; w += t.w_vector) {
    pixels<T, P, 1, false>(t, w, {c});
    if (c + L >= channels) break;
    c = next_vector(c, channels);
  }
}
template <class T> void any_pixel(const DepthwisePixels& t) {
  const size_t channels = t.channels;
  const W* w = static_cast<const W*>(t.w);
  size_t c = 0;
  for (; c + 4 * L <= channels; c += 4 * L, w += 4 * t.w_vector)
    pixels<T, 1, 4, false>(t, w, {c, c + L, c + 2 * L, c + 3 * L});
  for (; c < channels; c += L, w += t.w_vector) pixels<T, 1, 1, false>(t, w, {c + L <= channels ? c : channels - L});
}
template <class T>
void any_part(const DepthwisePixels& t) {
  pixels<T, 1, 1, true>(t, static_cast<const W*>(t.w), {0});
}

constexpr int kAnyPixels = V::registers >= 32 ? 8 : 6;
template <class T>
constexpr DepthwisePixelsTable any_functions = {{any_pixel<T>, any_pixels<T, kAnyPixels>, any_part<T>}};
template <class T> const DepthwisePixelsTable& any_table() { return any_functions<T>; }

#if !defined(SKUA_ISA_scalar) && !defined(SKUA_HALF)
#include "depthwise/grouped.inl"
#endif

#define SKUA_ENTRY(type, name, kind, variant, rows, columns, why, fn, function)                                  \
  {name "_" SKUA_STRING(SKUA_ISA), "depthwise", why, KernelKind::kind, Isa::SKUA_ISA, variant, rows, columns, L, \
   reinterpret_cast<AnyCode>(static_cast<fn>(function)), Element::type},
#define SKUA_TILE_OF(T, type, kernel, stride, rows, columns, why)                                                 \
  SKUA_ENTRY(type, "depthwise_" #type "_" #kernel "x" #kernel "s" #stride "_" #rows "x" #columns, depthwise_tile, \
             kernel * 10 + stride, rows, columns, why, DepthwiseTileTableFn,                                      \
             (tile_table<T, kernel, stride, rows, columns>))
#define SKUA_SCHEDULED(T, type, kernel, stride, rows, columns, core)                                                  \
  {"depthwise_" #type "_" #kernel "x" #kernel "s" #stride "_" #rows "x" #columns "_" #core "_" SKUA_STRING(SKUA_ISA), \
   "depthwise",                                                                                                       \
   "scheduled for the in-order core that its name ends in: inputs and weights in halves beside the multiply-adds",    \
   KernelKind::depthwise_tile, Isa::SKUA_ISA, kernel * 10 + stride, rows, columns, L,                                 \
   reinterpret_cast<AnyCode>(                                                                                         \
       static_cast<DepthwiseTileTableFn>(scheduled_table<T, kernel, stride, rows, columns, Core::core>)),             \
   Element::type, Core::core},
#define SKUA_GROUPED_OF(T, type, kernel, stride, rows, columns, why)                                          \
  SKUA_ENTRY(type, "grouped_" #type "_" #kernel "x" #kernel "s" #stride "_" #rows "x" #columns, grouped_tile, \
             kernel * 10 + stride, rows, columns, why, DepthwiseTileTableFn,                                  \
             (grouped_table<T, kernel, stride, rows, columns>))
#define SKUA_ANY_OF(T, type, why)                                                                           \
  SKUA_ENTRY(type, "depthwise_" #type "_any", depthwise_any, 0, 1, kAnyPixels, why, DepthwisePixelsTableFn, \
             (any_table<T>))

const Kernel kernels[] = {
#if defined(SKUA_ISA_neon)
    SKUA_SCHEDULED(float, f32, 3, 1, 2, 7, a53) SKUA_SCHEDULED(float, f32, 3, 2, 2, 7, a53)
    SKUA_SCHEDULED(float, f32, 5, 1, 2, 7, a53) SKUA_SCHEDULED(float, f32, 5, 2, 2, 7, a53)
    SKUA_SCHEDULED(float, f32, 3, 1, 2, 7, a55) SKUA_SCHEDULED(float, f32, 3, 2, 2, 7, a55)
    SKUA_SCHEDULED(float, f32, 5, 1, 2, 7, a55) SKUA_SCHEDULED(float, f32, 5, 2, 2, 7, a55)
#elif defined(SKUA_ISA_neon32)
    SKUA_SCHEDULED(float, f32, 3, 1, 1, 7, a53) SKUA_SCHEDULED(float, f32, 5, 1, 1, 7, a53)
    SKUA_SCHEDULED(float, f32, 3, 1, 1, 7, a55) SKUA_SCHEDULED(float, f32, 3, 2, 1, 7, a55)
    SKUA_SCHEDULED(float, f32, 5, 1, 1, 7, a55)
#elif defined(SKUA_ISA_neon32_fp16)
    SKUA_SCHEDULED(f16, f16, 3, 1, 1, 7, a55) SKUA_SCHEDULED(f16, f16, 3, 2, 1, 7, a55)
    SKUA_SCHEDULED(f16, f16, 5, 1, 1, 7, a55)
#elif defined(SKUA_ISA_neon_fp16)
    SKUA_SCHEDULED(f16, f16, 3, 1, 2, 7, a55) SKUA_SCHEDULED(f16, f16, 3, 2, 2, 7, a55)
    SKUA_SCHEDULED(f16, f16, 5, 1, 2, 7, a55) SKUA_SCHEDULED(f16, f16, 5, 2, 2, 7, a55)
#endif
#if defined(SKUA_HAS_ROWS)
    SKUA_ENTRY(f32, "depthwise_f32_3x3s2_rows", depthwise_row, 32, 1, kRowOutputs,
               "one row of input at a time, its pixels in their order; sums wait in memory", DepthwiseRowTableFn,
               row_table)
#endif
#define SKUA_TILE(...) SKUA_EACH_TILE_TYPE(SKUA_TILE_OF, __VA_ARGS__)
#include "depthwise/tiles.def"
#undef SKUA_TILE
#define SKUA_TILE(...) SKUA_EACH_TILE_TYPE(SKUA_GROUPED_OF, __VA_ARGS__)
#if defined(SKUA_ISA_avx512) || defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon_bf16)
// above the next one: where one port multiplies the model finds both equal, and this is 2% faster (Zen 4)
#if defined(SKUA_ISA_avx512)
    SKUA_ENTRY(f32, "grouped_f32_3x3s1_1x14", grouped_tile, 31, 1, 14,
               "groups that fill a vector: 14 sums + 3 weights + 1 input of 32 registers; 48 inputs feed 126 "
               "multiply-adds, 14 chains in every row", DepthwiseTileTableFn, (grouped_line_table<1, 14>))
    SKUA_ENTRY(f32, "grouped_f32_3x3s2_1x7", grouped_tile, 32, 1, 7,
               "groups that fill a vector: 7 sums + 3 weights + 1 input of 32 registers; 45 inputs feed 63 "
               "multiply-adds, 21 of them broadcast by these", DepthwiseTileTableFn, (grouped_line_table<2, 7>))
#endif
    SKUA_TILE(3, 1, 2, 7,
              "14 sums + 6 weights + 1 input + 1 permutation of 32 registers; 36 permuted inputs feed 126 "
              "multiply-adds")
    SKUA_TILE(3, 2, 2, 7,
              "14 sums + 6 weights + 1 input + 1 permutation of 32 registers; 75 permuted inputs feed 126 "
              "multiply-adds")
#elif !defined(SKUA_ISA_scalar) && !defined(SKUA_HALF)
    SKUA_TILE(3, 1, 1, 7,
              "7 sums + 3 weights + 1 input + 1 permutation or product of 16 registers; 27 inputs feed 63 "
              "multiply-adds")
    SKUA_TILE(3, 2, 1, 7,
              "7 sums + 3 weights + 1 input + 1 permutation or product of 16 registers; 45 inputs feed 63 "
              "multiply-adds")
#endif
#undef SKUA_TILE
    SKUA_EACH_TYPE(SKUA_ANY_OF,
                   "any kernel, stride and dilation: several pixels, or one pixel and four vectors, per pass over the "
                   "taps")
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(depthwise, kernels)
}  // namespace skua
