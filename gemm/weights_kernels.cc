// Quantised weights in float arithmetic: tiles for few rows, which make floats of them in registers, and whole panels
// of floats for the tiles of f32. The formulas: weights_kernel.h.
//
//   set       nibble -> float                                                              byte -> float
//   avx512    a table of 16 floats by the lowest four bits of a word, loaded from the      widened as it is loaded,
//             nibble's byte on: an odd nibble is shifted down first                        converted
//   others    put into the digits of 2^7 to 2^23, which is then taken off: -8 is 0 there   likewise
//
// Registers of a tile of MR rows and NV vectors: MR*NV sums, NV of nibbles, NV scales, NV zeros (tall tiles read
// those), a weight and an element of A. AVX-512: up to 12x2 = 24 sums; one or two rows take four vectors, or the three
// of a panel of 48, for two sums would wait for each other. AVX2: 4x2 sums, 2x3, 1x4.
#include "dispatch/kernel.h"
#include "gemm/ahead.h"
#include "gemm/float_ends.h"
#include "gemm/weights_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F32::L;

constexpr size_t kAhead = 8192;  // bytes: from memory a prefetcher alone does not keep up
// Value i of the eight of each lane: the low nibbles of its four bytes, then the high ones. x: the vector, which is
// also at p.
template <int i> SKUA_INL F32 nibble([[maybe_unused]] I32 x, [[maybe_unused]] const char* p) {
  constexpr int bit = i % 4 * 8 + i / 4 * 4;
#if defined(SKUA_ISA_avx512)
  const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  // not shifted: that is for a port of the products, loads have others. Behind the last values are scales
  if constexpr (bit / 8) x.v = _mm512_loadu_si512(p + bit / 8);
  if constexpr (bit % 8) x = shr_logical<4>(x);
  return {_mm512_maskz_permutexvar_ps(0xffff, x.v, values)};
#else
  constexpr int at = bit > 16 ? bit - 16 : bit, base = (150 - at) << 23 | 8 << at;  // 2^(23 - at) + 8
  if constexpr (bit > 16) x = shr_logical<16>(x);
  return as_f32((x & I32::set1(15 << at)) ^ I32::set1(base)) - F32::set1(__builtin_bit_cast(float, base));
#endif
}

// Scales and zeros of a block, of NV vectors from column `first` on; those of tall tiles leave the registers of zeros
// to sums.
template <int NV, bool tall> struct Scales {
  F32 scale[NV], zero[tall ? 1 : NV];
  alignas(64) float room[tall ? NV * L : 1];
  const float* zeros;
  SKUA_INL Scales(const GemmWeights& t, const char* p, size_t first) {
    // whatever types of maps the build has
    if (t.scale_type == Element::f16) read(reinterpret_cast<const f16*>(p) + first);
    if (t.scale_type == Element::bf16) read(reinterpret_cast<const bf16*>(p) + first);
    if (t.scale_type == Element::f32) read(reinterpret_cast<const float*>(p) + first);
    const auto* from = reinterpret_cast<const int8_t*>(p) + t.nr * (t.scale_type == Element::f32 ? 4 : 2) + first;
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const F32 less = t.zeros ? -(F32::load(from + v * L) * scale[v]) : F32::zero();
      if constexpr (tall) less.store(room + v * L);
      else zero[v] = less;
    }
    zeros = room;
    if constexpr (tall) asm("" : "+r"(zeros) : : "memory");
  }
  template <class S> SKUA_INL void read(const S* p) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      scale[v] = F32::load(p + v * L);
  }
  SKUA_INL F32 operator()(int v, F32 q) const {
    if constexpr (tall) return fma(q, scale[v], F32::load(zeros + v * L));
    else return fma(q, scale[v], zero[v]);
  }
};

// Tall tiles have no register to spare: gcc would make the weights of many steps at once, and spill sums for them.
[[maybe_unused]] SKUA_INL void in_order([[maybe_unused]] F32& w, [[maybe_unused]] I32& x) {
#if defined(SKUA_ISA_avx512)
  asm volatile("" : "+v"(w.v), "+v"(x.v) : : "memory");
#elif defined(__arm__)
  asm volatile("" : "+w"(w.v), "+w"(x.v) : : "memory");
#endif
}

// use(i, w) for each step of the depth, in order: NV vectors of weights from column `first` on, i steps behind those
// that moved(n) has passed.
template <bool s4, int NV, bool tall, class Use, class Moved>
SKUA_INL void each_step(const GemmWeights& t, size_t first, Use use, Moved moved) {
  const size_t data = t.nr * (s4 ? t.block / 2 : t.block),
               bytes = weights_block_bytes(s4 ? Element::s4 : Element::s8, t.nr, t.block, t.scale_type, t.zeros);
  const RowAhead ahead(kAhead, true, t.pages && NV * L == int(t.nr));  // what is passed over need not be asked for
  size_t k = t.from, skip = k % t.block;  // of the first block
  for (const char* block = t.b + k / t.block * bytes; k < t.k; block += bytes, skip = 0) {
    const Scales<NV, tall> scales(t, block + data, first);
    const char* p = block + skip * t.nr / (s4 ? 2 : 1);
    const size_t end = t.k - k < t.block - skip ? t.k : k + t.block - skip;
    if constexpr (s4) {
      I32 x[NV];
      F32 w[NV];
      const char* from = p;
      SKUA_UNROLL for (int v = 0; v < NV; ++v) x[v] = I32::set1(0);
      const auto step = [&]<int i>(int at) __attribute__((always_inline)) {
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = scales(v, nibble<i>(x[v], from + size_t(v) * L * 4));
          if constexpr (tall) in_order(w[v], x[v]);
        }
        use(at, w);
      };
      const auto load = [&]() __attribute__((always_inline)) {
        from = p + first * 4;
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          x[v] = I32::load(reinterpret_cast<const int32_t*>(from) + size_t(v) * L);
        }
        if constexpr (L >= 8) ahead.ask<(NV * L + 15) / 16, true>(from);
        p += t.nr * 4;
      };
      for (; k + 8 <= end; k += 8) {
        load();
        step.template operator()<0>(0), step.template operator()<1>(1), step.template operator()<2>(2),
            step.template operator()<3>(3);
        step.template operator()<4>(4), step.template operator()<5>(5), step.template operator()<6>(6),
            step.template operator()<7>(7);
        moved(8);
      }
      for (; k < end; ++k) {  // a step at a time, the next nibble at the place of the first
        if (k % 8 == 0) load();
        if (k % 8 == 4) {
          p -= t.nr * 4;
          load();
          SKUA_UNROLL for (int v = 0; v < NV; ++v) x[v] = shr_logical<4>(x[v]);
        }
        step.template operator()<0>(0);
        moved(1);
        SKUA_UNROLL for (int v = 0; v < NV; ++v) x[v] = shr_logical<8>(x[v]);
      }
    } else {
      const auto step = [&](int i) __attribute__((always_inline)) {
        F32 w[NV];
        SKUA_UNROLL for (int v = 0; v < NV; ++v)
          w[v] = scales(v, F32::load(reinterpret_cast<const int8_t*>(p) + first + size_t(v) * L));
        if constexpr (L >= 8 && NV > 1) ahead.ask<1, true>(p + first);
        p += t.nr;
        use(i, w);
      };
      for (; k + 4 <= end; k += 4) {
        SKUA_UNROLL for (int i = 0; i < 4; ++i) step(i);
        moved(4);
      }
      for (; k < end; ++k) {
        step(0);
        moved(1);
      }
    }
  }
}

// As the tiles of f32 do it: on AArch32 four steps at a time by lane, where a product is rounded before it is added.
SKUA_INL F32 multiply_add(F32 x, F32 w, F32 acc, [[maybe_unused]] bool of_four) {
#if defined(SKUA_ISA_neon32)
  if (of_four) return {vmlaq_f32(acc.v, x.v, w.v)};
#endif
  return fma(x, w, acc);
}

// Rows of a tile up to which zeros have registers of their own.
#if defined(__arm__)
constexpr int kZerosFit = 2;
#else
constexpr int kZerosFit = 4;
#endif

// t.rows of MR rows; those beyond are the last one again, and not stored: at most one, from four on.
template <bool s4, int MR, int NV> void columns_of(const GemmWeights& t, size_t first) {
  constexpr int kBases = (MR + 2) / 3;  // rows are a base, and one or two steps: what an address can say
  F32 acc[MR][NV];
  const size_t step = t.a_step;
  const float *base[kBases], *last = t.a + (t.rows - 1) * step;
  SKUA_UNROLL for (int i = 0; i < kBases; ++i)
    base[i] = t.a + (size_t(i) * 3 < t.rows ? size_t(i) * 3 : t.rows - 1) * step;
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
  [[maybe_unused]] size_t fours = t.k / 4 * 4;
  each_step<s4, NV, (MR > kZerosFit)>(t, first, [&](int i, const F32 (&w)[NV]) __attribute__((always_inline)) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const F32 x = F32::broadcast((MR > 1 && r == MR - 1 ? last : base[r / 3] + size_t(r % 3) * step) + i);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = multiply_add(x, w[v], acc[r][v], size_t(i) < fours);
    }
  }, [&](size_t n) __attribute__((always_inline)) {
    SKUA_UNROLL for (int j = 0; j < kBases; ++j) base[j] += n;
    if constexpr (MR > 1) last += n;
    fours -= n < fours ? n : fours;
  });
  const FloatEnd end(t);
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    const size_t j = first + size_t(v) * L;
    if (size_t(r) < t.rows && j < t.n) end(acc[r][v], t.c[r], j);
  }
}

// As many rows at once as registers hold the sums of: weights become floats once for all of them.
constexpr int kMostRows = L == 16 ? 12 : 4;
// vectors of these rows
constexpr size_t wide(int rows) { return rows > 2 || L < 8 ? 2 : L == 8 && rows == 2 ? 3 : 4; }
template <bool s4, int MR, int NV = int(wide(MR))>
SKUA_INL void columns_left(const GemmWeights& t, size_t first, size_t vectors) {
  if (vectors >= size_t(NV)) columns_of<s4, MR, NV>(t, first);
  else if constexpr (NV > 1) columns_left<s4, MR, NV - 1>(t, first, vectors);
}
template <bool s4, int MR = 1> SKUA_INL void rows_of(const GemmWeights& t) {
  if (MR < kMostRows && t.rows > size_t(MR)) {
    if constexpr (MR < kMostRows) rows_of<s4, MR == 1 ? 2 : MR + 2>(t);
    return;
  }
  const size_t width = (t.n + L - 1) / L;
  for (size_t v = 0; v < width; v += wide(MR)) columns_left<s4, MR>(t, v * L, width - v);
}
template <bool s4> void tile(const GemmWeights& t) { rows_of<s4>(t); }

template <bool s4, int NV> SKUA_INL void widen_columns(const GemmWeights& t, size_t first, size_t width, float* to) {
  each_step<s4, NV, false>(t, first, [&](int i, const F32 (&w)[NV]) __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      w[v].store(to + size_t(i) * width + v * L);
  },
                           [&](size_t n) __attribute__((always_inline)) { to += n * width; });
}
template <bool s4> void widen_panel(const GemmWeights& t, float* to) {
  const size_t width = (t.n + L - 1) / L * L;
  size_t first = 0;
  if constexpr (L == 8)  // whole lines, where there are registers for no more
    for (; first + 2 * L <= width; first += 2 * L) widen_columns<s4, 2>(t, first, width, to + first);
  for (; first < width; first += L) widen_columns<s4, 1>(t, first, width, to + first);
}

template <bool s4> constexpr GemmWeightsTable table = {tile<s4>, widen_panel<s4>};
template <bool s4> const GemmWeightsTable& table_of() { return table<s4>; }

#define SKUA_WEIGHTS(type, s4)                                                                                \
  {"gemm_weights_" #type "_" SKUA_STRING(SKUA_ISA), "gemm",                                                   \
   "floats of " #type " in registers, two vectors of columns; or panels of floats", KernelKind::gemm_nibbles, \
   Isa::SKUA_ISA, kWeightsVariant, kMostRows, 0, L,                                                           \
   reinterpret_cast<AnyCode>(static_cast<GemmWeightsTableFn>(table_of<s4>)), Element::type},
const Kernel kernels[] = {SKUA_WEIGHTS(s8, false) SKUA_WEIGHTS(s4, true)};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_weights, kernels)
}  // namespace skua
