// Rows of A quantised as they are read, and tiles of weights in four bits. The formulas and the layout of a panel: dynamic_kernel.h.
//
//   acc[r][v] += 4 bytes of a row * 4 nibbles of L columns, of the low nibbles, then of the high ones; a block's sums are exact in 32 bits, then scaled and added in f32
//
//   set                       a     nibbles become                         products
//   avx512vnni, avxvnni       u8    16 w: one mask, or one shift and mask  vpdpbusd; the 16 goes into the row's scale
//   neon_dot, neon32_dot      s8    16 w                                   sdot
//   avx512, avx2, sse41       u8    w, by table                            pmaddubsw: at most 2 * 255 * 8 each, so that eight of them fit 16 bits
//   neon, neon32              s8    w                                      smlal: at most 127 * 8 each, 32 of them fit
//   sse2, scalar              u8    w                                      widened to 16 bits; one by one
#include "dispatch/kernel.h"
#include "dispatch/requantize.h"
#include "gemm/dynamic_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F32::L;

SKUA_INL int32_t word(const uint8_t* p) {
  int32_t w;
  __builtin_memcpy(&w, p, 4);
  return w;
}

// Nibbles: L columns of four. Chunk: what products of kChunk steps (of eight) are summed in before they go to 32 bits.
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
constexpr bool kUnsigned = true;
constexpr float kFactor = 16;
constexpr int kChunk = 0;  // 32 bits at once
#if defined(SKUA_ISA_avx512vnni)
SKUA_INL I32 low(I32 p) { return {_mm512_and_si512(_mm512_slli_epi16(p.v, 4), _mm512_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 high(I32 p) { return {_mm512_and_si512(p.v, _mm512_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm512_dpbusd_epi32(acc.v, a.v, w.v)}; }
SKUA_INL void hold(I32& x) { asm("" : "+v"(x.v)); }
#else
SKUA_INL I32 low(I32 p) { return {_mm256_and_si256(_mm256_slli_epi16(p.v, 4), _mm256_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 high(I32 p) { return {_mm256_and_si256(p.v, _mm256_set1_epi8(char(0xf0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm256_dpbusd_avx_epi32(acc.v, a.v, w.v)}; }
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#endif
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
#elif defined(SKUA_ISA_neon_dot) || defined(SKUA_ISA_neon32_dot)
constexpr bool kUnsigned = false;
constexpr float kFactor = 16;
constexpr int kChunk = 0;
SKUA_INL I32 low(I32 p) { return {vreinterpretq_s32_s8(vshlq_n_s8(vreinterpretq_s8_s32(p.v), 4))}; }
SKUA_INL I32 high(I32 p) { return {vandq_s32(p.v, vdupq_n_s32(int32_t(0xf0f0f0f0)))}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {vdotq_s32(acc.v, vreinterpretq_s8_s32(w.v), vreinterpretq_s8_s32(a.v))}; }
SKUA_INL void hold(I32&) {}
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
#elif defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx2) || defined(SKUA_ISA_sse41)
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 4;
#define SKUA_TABLE 0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1
#if defined(SKUA_ISA_avx512)
SKUA_INL I32 by_table(__m512i x) { return {_mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(SKUA_TABLE)), _mm512_and_si512(x, _mm512_set1_epi8(15)))}; }
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm512_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm512_add_epi16(acc.v, _mm512_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) { return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(c.v, _mm512_set1_epi16(1)))}; }
SKUA_INL void hold(I32& x) { asm("" : "+v"(x.v)); }
#elif defined(SKUA_ISA_avx2)
SKUA_INL I32 by_table(__m256i x) { return {_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_setr_epi8(SKUA_TABLE)), _mm256_and_si256(x, _mm256_set1_epi8(15)))}; }
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm256_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm256_add_epi16(acc.v, _mm256_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) { return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(c.v, _mm256_set1_epi16(1)))}; }
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#else
SKUA_INL I32 by_table(__m128i x) { return {_mm_shuffle_epi8(_mm_setr_epi8(SKUA_TABLE), _mm_and_si128(x, _mm_set1_epi8(15)))}; }
SKUA_INL I32 low(I32 p) { return by_table(p.v); }
SKUA_INL I32 high(I32 p) { return by_table(_mm_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) { return {_mm_add_epi16(acc.v, _mm_maddubs_epi16(a.v, w.v))}; }
SKUA_INL I32 add_chunk(I32 acc, I32 c) { return {_mm_add_epi32(acc.v, _mm_madd_epi16(c.v, _mm_set1_epi16(1)))}; }
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#endif
#undef SKUA_TABLE
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
#elif defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
constexpr bool kUnsigned = false;
constexpr float kFactor = 1;
constexpr int kChunk = 4;
struct Chunk {
  int16x8_t low, high;  // two columns each
};
SKUA_INL Chunk none() { return {vdupq_n_s16(0), vdupq_n_s16(0)}; }
SKUA_INL I32 low(I32 p) { return {vreinterpretq_s32_s8(vshrq_n_s8(vshlq_n_s8(vreinterpretq_s8_s32(p.v), 4), 4))}; }
SKUA_INL I32 high(I32 p) { return {vreinterpretq_s32_s8(vshrq_n_s8(vreinterpretq_s8_s32(p.v), 4))}; }
SKUA_INL Chunk dot(Chunk acc, I32 a, I32 w) {
  const int8x16_t x = vreinterpretq_s8_s32(a.v), y = vreinterpretq_s8_s32(w.v);
  return {vmlal_s8(acc.low, vget_low_s8(x), vget_low_s8(y)), vmlal_s8(acc.high, vget_high_s8(x), vget_high_s8(y))};
}
SKUA_INL I32 add_chunk(I32 acc, Chunk c) {
  const int32x4_t x = vpaddlq_s16(c.low), y = vpaddlq_s16(c.high);
  return {vaddq_s32(acc.v, vcombine_s32(vpadd_s32(vget_low_s32(x), vget_high_s32(x)), vpadd_s32(vget_low_s32(y), vget_high_s32(y))))};
}
SKUA_INL void hold(I32&) {}
#elif defined(SKUA_ISA_sse2)
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 0;
using Chunk = I32;
SKUA_INL Chunk none() { return I32::set1(0); }
SKUA_INL I32 with_sign(__m128i x) { return {_mm_sub_epi8(_mm_xor_si128(_mm_and_si128(x, _mm_set1_epi8(15)), _mm_set1_epi8(8)), _mm_set1_epi8(8))}; }
SKUA_INL I32 low(I32 p) { return with_sign(p.v); }
SKUA_INL I32 high(I32 p) { return with_sign(_mm_srli_epi16(p.v, 4)); }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) {
  const __m128i x = _mm_unpacklo_epi8(a.v, _mm_setzero_si128());
  const __m128 p = _mm_castsi128_ps(_mm_madd_epi16(x, _mm_srai_epi16(_mm_unpacklo_epi8(w.v, w.v), 8))), q = _mm_castsi128_ps(_mm_madd_epi16(x, _mm_srai_epi16(_mm_unpackhi_epi8(w.v, w.v), 8)));
  return {_mm_add_epi32(acc.v, _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(p, q, 0x88)), _mm_castps_si128(_mm_shuffle_ps(p, q, 0xdd))))};
}
SKUA_INL void hold(I32& x) { asm("" : "+x"(x.v)); }
#else
constexpr bool kUnsigned = true;
constexpr float kFactor = 1;
constexpr int kChunk = 0;
using Chunk = I32;
SKUA_INL Chunk none() { return {0}; }
SKUA_INL I32 low(I32 p) { return {int32_t(uint32_t(p.v) << 4 & 0xf0f0f0f0)}; }  // each byte 16 w; the product shifts it back
SKUA_INL I32 high(I32 p) { return {int32_t(uint32_t(p.v) & 0xf0f0f0f0)}; }
SKUA_INL I32 dot(I32 acc, I32 a, I32 w) {
  int32_t sum = acc.v;
  for (int i = 0; i < 4; ++i) sum += int32_t(uint8_t(uint32_t(a.v) >> 8 * i)) * (int8_t(uint32_t(w.v) >> 8 * i) / 16);
  return {sum};
}
SKUA_INL void hold(I32&) {}
#endif

// ---- rows of A -----------------------------------------------------------------------------------------------------------------
template <class T> void quantize(size_t k, const void* from, bool is_unsigned, void* to, size_t padded, GemmRowQuant& row, size_t block, int32_t* sums) {
  const T* x = static_cast<const T*>(from);
  F32 least = F32::zero(), most = F32::zero(), least2 = least, most2 = most;
  size_t i = 0;
  for (; i + 2 * L <= k; i += 2 * L) {
    const F32 v = F32::load(x + i), w = F32::load(x + i + L);
    least = min_fast(least, v);
    most = max_fast(most, v);
    least2 = min_fast(least2, w);
    most2 = max_fast(most2, w);
  }
  for (; i < k; i += L) {
    const F32 v = F32::load_n(x + i, k - i < size_t(L) ? k - i : size_t(L));
    least = min_fast(least, v);
    most = max_fast(most, v);
  }
  const float low = min_of(min_fast(least, least2)), high = max_of(max_fast(most, most2));
  float range = high - low;
  range = range > 1e-30f ? range : 1e-30f;  // zeros, or as good as
  range = range < 3e38f ? range : 3e38f;    // beyond it the ends are cut off
  row.scale = high > low ? range * (1.0f / 254) : 0;  // zeros give the bias: sums of blocks are rounded, and what is left of them has no size to be small beside
  const float inverse = 254.0f / range;
  const int32_t zero = skua::nearest_small(-127.0f - low * inverse);
  row.zero = zero + (is_unsigned ? 128 : 0);
  const F32 by = F32::set1(inverse), lowest = F32::set1(float(-127 - zero)), highest = F32::set1(float(127 - zero));
  const I32 bias = I32::set1(row.zero);
  auto* q = static_cast<uint8_t*>(to);
  const auto steps = [&](size_t at) __attribute__((always_inline)) {
    const F32 v = at + L <= k ? F32::load(x + at) : at < k ? F32::load_n(x + at, k - at) : F32::zero();
    return nearest_small(clamp_high(clamp_low(v * by, lowest), highest));
  };
  for (i = 0; i < padded; i += 4 * L) {
    if (i + 4 * L <= padded) {
      I32 y[4];
      SKUA_UNROLL for (int j = 0; j < 4; ++j) y[j] = steps(i + size_t(j) * L) + bias;
      if (is_unsigned) store_bytes(y, q + i);
      else store_bytes(y, reinterpret_cast<int8_t*>(q + i));
    } else {
      for (size_t j = i; j < padded; j += L) (steps(j) + bias).store(q + j);
    }
  }
  for (size_t b = 0; sums && b < padded; b += block) {
    int32_t sum = 0;
    for (i = b; i < b + block; ++i) sum += (is_unsigned ? int32_t(q[i]) : int32_t(int8_t(q[i]))) - row.zero;
    *sums++ = sum;
  }
}

// ---- tiles ---------------------------------------------------------------------------------------------------------------------
template <class C> SKUA_INL void put(F32 y, void* c, size_t j, size_t n) {
  if (n >= size_t(L)) y.store(static_cast<C*>(c) + j);
  else y.store_n(static_cast<C*>(c) + j, n);
}

// Scaled sums of a tile: in registers next to the sums of a block, or in memory where those take most registers.
template <int MR, int NV, bool memory> struct Scaled {
  F32 y[MR][NV];
  SKUA_INL F32 get(int r, int v) const { return y[r][v]; }
  SKUA_INL void set(int r, int v, F32 x) { y[r][v] = x; }
};
template <int MR, int NV> struct Scaled<MR, NV, true> {
  alignas(64) float room[MR * NV * L];
  float* y = room;
  SKUA_INL Scaled() { asm("" : "+r"(y) : : "memory"); }
  SKUA_INL F32 get(int r, int v) const { return F32::load(y + (r * NV + v) * L); }
  SKUA_INL void set(int r, int v, F32 x) { x.store(y + (r * NV + v) * L); }
};

// `width` columns of a panel, of which the sums belong to NV vectors from `first` on.
template <int MR, int NV, class Y> SKUA_INL void scale_block(const GemmNibbles& t, const char* scales, int width, int first, size_t block, const I32 (&sums)[MR][NV], Y& y) {
  const auto of = [&](auto* p) __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const F32 scale = F32::load(p + first + v * L);
      SKUA_UNROLL for (int r = 0; r < MR; ++r) y.set(r, v, fma(to_f32(sums[r][v]), scale, y.get(r, v)));
    }
    if (!t.sums) return;
    const float* zeros = reinterpret_cast<const float*>(p + width) + first;
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const F32 sum = F32::set1(kFactor * float(t.sums[size_t(r) * t.blocks + block]));
      SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, fnma(sum, F32::load(zeros + v * L), y.get(r, v)));
    }
  };
#ifdef SKUA_TYPE_f16
  if (t.scale_type == Element::f16) return of(reinterpret_cast<const f16*>(scales));
#endif
#ifdef SKUA_TYPE_bf16
  if (t.scale_type == Element::bf16) return of(reinterpret_cast<const bf16*>(scales));
#endif
  of(reinterpret_cast<const float*>(scales));
}

// MR rows by NV of the PV vectors of a panel at a time.
template <int MR, int NV, int PV> void tile(const GemmNibbles& t) {
  constexpr int kBases = (MR + 2) / 3;  // rows are a base, and one or two steps: what an address can say
  for (int first = 0; first < PV * L; first += NV * L) {
    Scaled<MR, NV, (MR * NV > 12)> y;
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, F32::zero());
    const char* b = t.b + first * 4;
    const uint8_t* a[kBases];
    const size_t step = t.a_step;
    SKUA_UNROLL for (int i = 0; i < kBases; ++i) {
      a[i] = t.a + size_t(i * 3) * step;
      if constexpr (MR > 3) asm("" : "+r"(a[i]));
    }
    const auto row = [&](int r) __attribute__((always_inline)) { return a[r / 3] + size_t(r % 3) * step; };
    for (size_t block = 0; block < t.blocks; ++block) {
      I32 sums[MR][NV];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) sums[r][v] = I32::set1(0);
      for (size_t left = t.block / 8; left;) {
        size_t steps = kChunk && left > size_t(kChunk) ? size_t(kChunk) : left;
        left -= steps;
        Chunk acc[MR][NV];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = none();
        for (; steps; --steps, b += PV * L * 4) {
          const auto* p = reinterpret_cast<const int32_t*>(b);
          I32 w[NV];
          SKUA_UNROLL for (int v = 0; v < NV; ++v) {
            w[v] = low(I32::load(p + v * L));
            if constexpr (MR > 1) hold(w[v]);  // else gcc loads and masks them again for every row
          }
          SKUA_UNROLL for (int r = 0; r < MR; ++r) {
            const I32 x = I32::set1(word(row(r)));
            SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot(acc[r][v], x, w[v]);
          }
          if constexpr (MR > 3) asm("" : "+r"(p));  // loaded again: registers are for sums
          SKUA_UNROLL for (int v = 0; v < NV; ++v) {
            w[v] = high(I32::load(p + v * L));
            if constexpr (MR > 1) hold(w[v]);
          }
          SKUA_UNROLL for (int r = 0; r < MR; ++r) {
            const I32 x = I32::set1(word(row(r) + 4));
            SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot(acc[r][v], x, w[v]);
          }
          SKUA_UNROLL for (int i = 0; i < kBases; ++i) a[i] += 8;
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          if constexpr (kChunk == 0) sums[r][v] = acc[r][v];
          else sums[r][v] = add_chunk(sums[r][v], acc[r][v]);
          hold(sums[r][v]);  // else the scaling's copies spill inside the loop
        }
      }
      scale_block<MR, NV>(t, b - first * 4, PV * L, first, block, sums, y);
      b += weights_block_bytes(Element::s4, PV * L, 0, t.scale_type, t.sums != nullptr);
    }
    const F32 lowest = F32::set1(t.low), highest = F32::set1(t.high);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const F32 zero = F32::set1(float(t.rows[r].zero)), scale = F32::set1(t.rows[r].scale);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) {
        const size_t j = size_t(first + v * L);
        if (j >= t.n) continue;
        F32 z = fnma(zero, F32::load(t.column_sums + j), y.get(r, v) * F32::set1(1 / kFactor)) * scale;
        if (t.bias) z = z + F32::load(t.bias + j);
        z = clamp_high(clamp_low(z, lowest), highest);
        switch (t.c_type) {
#ifdef SKUA_TYPE_f16
          case Element::f16: put<f16>(z, t.c[r], j, t.n - j); break;
#endif
#ifdef SKUA_TYPE_bf16
          case Element::bf16: put<bf16>(z, t.c[r], j, t.n - j); break;
#endif
          default: put<float>(z, t.c[r], j, t.n - j);
        }
      }
    }
  }
}

// Tables: at most `mr` rows of all `NV` vectors; `tall`: 4, 6 and 8 rows of two vectors too.
template <int MR, int NV, bool tall> constexpr GemmNibblesTable make_table() {
  GemmNibblesTable table = {};
  table.at[0] = tile<1, NV, NV>;
  if constexpr (MR > 1) table.at[1] = tile<2, NV, NV>;
  if constexpr (MR > 2) table.at[2] = tile<3, NV, NV>;
  if constexpr (tall) table.at[3] = tile<4, 2, NV>, table.at[5] = tile<6, 2, NV>, table.at[7] = tile<8, 2, NV>;
  table.unsigned_a = kUnsigned;
  return table;
}
template <int MR, int NV, bool tall> constexpr GemmNibblesTable table_of = make_table<MR, NV, tall>();
template <int MR, int NV, bool tall> const GemmNibblesTable& nibbles_table() { return table_of<MR, NV, tall>; }

#define SKUA_NIBBLES(mr, nv, why)                                                                                                                     \
  {"gemm_s4_" #mr "x" SKUA_STRING(SKUA_NIBBLE_COLUMNS) "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_nibbles, Isa::SKUA_ISA, 0, mr, nv * L, L, \
   reinterpret_cast<AnyCode>(static_cast<GemmNibblesTableFn>(nibbles_table<(mr > 3 ? 3 : mr), nv, (mr > 3)>)), Element::s4},
#define SKUA_QUANTIZE(T, type)                                                                                                                        \
  {"gemm_quantize_" #type "_" SKUA_STRING(SKUA_ISA), "gemm", "a row's range, then its bytes", KernelKind::gemm_quantize, Isa::SKUA_ISA, 0, 0, 0, L,  \
   reinterpret_cast<AnyCode>(static_cast<GemmQuantizeFn>(quantize<T>)), Element::type},
const Kernel kernels[] = {
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avx512)
#define SKUA_NIBBLE_COLUMNS 64
    SKUA_NIBBLES(8, 4, "8x2 vectors at a time: 16 sums + 2 of nibbles + 2 of 32 registers; 3x4: 12 sums + 12 scaled + 4 of nibbles + 2")
#elif defined(SKUA_ISA_avxvnni) || defined(SKUA_ISA_avx2)
#define SKUA_NIBBLE_COLUMNS 16
    SKUA_NIBBLES(2, 2, "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers")
#elif defined(SKUA_ISA_sse41) || defined(SKUA_ISA_sse2)
#define SKUA_NIBBLE_COLUMNS 8
    SKUA_NIBBLES(2, 2, "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers")
#elif defined(SKUA_ISA_scalar)
#define SKUA_NIBBLE_COLUMNS 4
    SKUA_NIBBLES(1, 4, "portable C++")
#elif defined(__aarch64__)
#define SKUA_NIBBLE_COLUMNS 16
    SKUA_NIBBLES(3, 4, "12 sums + 12 scaled sums + 4 of bytes + 4 of nibbles of 32 registers")
#else
#define SKUA_NIBBLE_COLUMNS 8
    SKUA_NIBBLES(2, 2, "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers")
#endif
#if !defined(SKUA_ISA_avx512vnni) && !defined(SKUA_ISA_avxvnni) && !defined(SKUA_ISA_neon_dot) && !defined(SKUA_ISA_neon32_dot)
    SKUA_FOR_TYPES(SKUA_QUANTIZE)
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_dynamic, kernels)
}  // namespace skua
