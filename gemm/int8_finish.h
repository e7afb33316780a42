// The end of a tile of bytes: sums to C. See GemmTile for the formula.
#pragma once
#include "gemm/gemm_kernel.h"
#include "simd/fixed.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = I32::L;

SKUA_INL void pin_word(I32& x) {
#if defined(SKUA_ISA_scalar)
  asm("" : "+r"(x.v));
#elif defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni)
  asm("" : "+v"(x.v));
#elif defined(__SSE2__)
  asm("" : "+x"(x.v));
#else
  asm("" : "+w"(x.v));
#endif
}

// The low 32 bits.
#if defined(SKUA_ISA_scalar)
SKUA_INL I32 product(I32 a, I32 b) { return {int32_t(uint32_t(a.v) * uint32_t(b.v))}; }
#else
typedef uint32_t Words __attribute__((vector_size(4 * I32::L)));
SKUA_INL I32 product(I32 a, I32 b) { return {decltype(a.v)(Words(a.v) * Words(b.v))}; }
#endif

constexpr int32_t kTwoTo23 = 0x4b000000;  // the bits of 2^23 as a float

struct ByteStore {
  Requantizer to;
  explicit SKUA_INL ByteStore(const GemmTile& t) : to(Requantize{t.low, t.high, t.zero}) {}
  SKUA_INL void operator()(F32 y, uint8_t* c, size_t n) const {
    const I32 q = to.rounded(y);
    if (n == size_t(L)) q.store(c);
    else q.store_n(c, n);
  }
};
template <class C> struct FloatStore {
  F32 low, high;
  SKUA_INL void operator()(F32 y, C* c, size_t n) const {
    y = clamp_high(clamp_low(y, low), high);
    if (n == size_t(L)) y.store(c);
    else y.store_n(c, n);
  }
};
template <class C, class Store>
SKUA_INL void finish_rows_as(const GemmTile& t, const int32_t* sums, size_t step, size_t rows, void* const* c,
                             const GemmRowQuant* quant, const Store& store) {
  for (size_t r = 0; r < rows; ++r, sums += step) {
    C* to = static_cast<C*>(c[r]);
    for (size_t j = 0; j < t.n; j += L) {
      F32 y = to_f32(I32::load(sums + j)) * F32::load(t.scale + j);
      if (quant) y = y * F32::set1(quant[r].scale);
      if (t.bias) y = y + F32::load(t.bias + j);
      store(y, to + j, t.n - j < size_t(L) ? t.n - j : size_t(L));
    }
  }
}

// C is bytes, and nothing but columns' scales and its zero point come to the sums.
SKUA_INL bool plain_bytes(const GemmTile& t) {
  return (t.c_type == Element::s8 || t.c_type == Element::u8) && !t.row_quant && !t.bias && !t.shift && !t.residual &&
         !t.b_zeros;
}

// Four vectors of results as one of bytes, first 16 bits each: what is outside the type saturates.
//
//   words(a, b), bytes(x, y)   packed within 128 bits; by_vectors() puts the four one behind the other
//   put<parts, part>(c, q, n)  a part of q, which is n columns of a row
#if defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni)
#define SKUA_FOUR_AT_ONCE 1
using Quad = __m512i;
constexpr __mmask64 kAllBytes = ~__mmask64(0);
SKUA_INL Quad words(I32 a, I32 b) { return _mm512_packs_epi32(a.v, b.v); }
SKUA_INL Quad signed_bytes(Quad a, Quad b) { return _mm512_packs_epi16(a, b); }
SKUA_INL Quad unsigned_bytes(Quad a, Quad b) { return _mm512_packus_epi16(a, b); }
SKUA_INL Quad every_word(int x) { return _mm512_set1_epi16(int16_t(x)); }
SKUA_INL Quad every_byte(int x) { return _mm512_set1_epi8(char(x)); }
SKUA_INL Quad plus_words(Quad a, Quad b) { return _mm512_adds_epi16(a, b); }
SKUA_INL Quad halved_words(Quad x) { return _mm512_maskz_mulhrs_epi16(~__mmask32(0), x, _mm512_set1_epi16(1 << 14)); }
SKUA_INL Quad signed_within(Quad q, Quad low, Quad high) {
  return _mm512_maskz_min_epi8(kAllBytes, _mm512_maskz_max_epi8(kAllBytes, q, low), high);
}
SKUA_INL Quad unsigned_within(Quad q, Quad low, Quad high) {
  return _mm512_maskz_min_epu8(kAllBytes, _mm512_maskz_max_epu8(kAllBytes, q, low), high);
}
SKUA_INL Quad flipped(Quad q) { return _mm512_xor_si512(q, _mm512_set1_epi8(-128)); }
SKUA_INL Quad by_vectors(Quad q) {
  return _mm512_maskz_permutexvar_epi32(0xffff, _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                        q);
}
// A store of a whole part takes no port of the products.
template <int parts, int part> SKUA_INL void put(void* c, Quad q, size_t n) {
  const __mmask64 columns = kAllBytes >> (64 - n);
  if constexpr (parts == 1) {
    _mm512_mask_storeu_epi8(c, columns, q);
  } else if constexpr (parts == 2) {
    const __m256i x = _mm512_maskz_extracti64x4_epi64(0xf, q, part);
    if (n == 32) _mm256_storeu_si256(static_cast<__m256i*>(c), x);
    else _mm256_mask_storeu_epi8(c, __mmask32(columns), x);
  } else {
    const __m128i x = _mm512_maskz_extracti32x4_epi32(0xf, q, part);
    if (n == 16) _mm_storeu_si128(static_cast<__m128i*>(c), x);
    else _mm_mask_storeu_epi8(c, __mmask16(columns), x);
  }
}
SKUA_INL I32 unsigned_of(const void* p, size_t n) {
  return {_mm512_maskz_cvtepu8_epi32(0xffff, _mm_maskz_loadu_epi8(n < size_t(L) ? first_lanes(n) : 0xffff, p))};
}
#elif defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avxvnni)
#define SKUA_FOUR_AT_ONCE 1
using Quad = __m256i;
SKUA_INL Quad words(I32 a, I32 b) { return _mm256_packs_epi32(a.v, b.v); }
SKUA_INL Quad signed_bytes(Quad a, Quad b) { return _mm256_packs_epi16(a, b); }
SKUA_INL Quad unsigned_bytes(Quad a, Quad b) { return _mm256_packus_epi16(a, b); }
SKUA_INL Quad every_word(int x) { return _mm256_set1_epi16(int16_t(x)); }
SKUA_INL Quad every_byte(int x) { return _mm256_set1_epi8(char(x)); }
SKUA_INL Quad plus_words(Quad a, Quad b) { return _mm256_adds_epi16(a, b); }
SKUA_INL Quad halved_words(Quad x) { return _mm256_mulhrs_epi16(x, _mm256_set1_epi16(1 << 14)); }
SKUA_INL Quad signed_within(Quad q, Quad low, Quad high) { return _mm256_min_epi8(_mm256_max_epi8(q, low), high); }
SKUA_INL Quad unsigned_within(Quad q, Quad low, Quad high) { return _mm256_min_epu8(_mm256_max_epu8(q, low), high); }
SKUA_INL Quad flipped(Quad q) { return _mm256_xor_si256(q, _mm256_set1_epi8(-128)); }
SKUA_INL Quad by_vectors(Quad q) { return _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)); }
template <int parts, int part> SKUA_INL void put(void* c, Quad q, size_t n) {
  static_assert(parts > 1);
  const __m128i x = _mm256_extracti128_si256(q, part * 2 / parts);
  uint8_t* p = static_cast<uint8_t*>(c);
  if constexpr (parts == 2) {
    if (n == 16) return _mm_storeu_si128(static_cast<__m128i*>(c), x);
    store_first_bytes(uint64_t(_mm_cvtsi128_si64(x)), p, n < 8 ? n : 8);
    if (n > 8) store_first_bytes(uint64_t(_mm_extract_epi64(x, 1)), p + 8, n - 8);
  } else {
    const uint64_t eight = uint64_t(_mm_extract_epi64(x, part & 1));
    if (n == 8) __builtin_memcpy(p, &eight, 8);
    else store_first_bytes(eight, p, n);
  }
}
SKUA_INL I32 unsigned_of(const void* p, size_t n) { return load_u8(static_cast<const uint8_t*>(p), n); }
#endif

#if defined(SKUA_FOUR_AT_ONCE)
constexpr int kAcross = L > 8 ? 4 : 2;  // vectors of a tile
// Vectors of results to rows of bytes, four at a time: `across` of a row. End: begin(j, n, v) before the rows of
// columns j to j + n, for the vector that is the v-th of a row; part(row, v) gives L results, which saturate as they
// become 16 bits; words_of(x): what is done to them then. Locals, as what is stored might be the tile.
template <int across, class End>
SKUA_INL void put_rows(const GemmTile& t, size_t j, size_t n, size_t rows, void* const* c, End end) {
  const bool is_u8 = t.c_type == Element::u8;
  const Quad zero = every_word(t.zero), low = every_byte(int(t.low) + t.zero), high = every_byte(int(t.high) + t.zero);
  // sums and scales are whole vectors, no more
  SKUA_UNROLL for (int v = 0; v < across; ++v)
    end.begin(size_t(v * L) < n ? j + size_t(v * L) : j, size_t(v * L) < n ? n - size_t(v * L) : n, v);
  for (size_t r = 0; r < rows; r += 4 / across) {
    I32 x[4];
    SKUA_UNROLL for (int i = 0; i < 4; ++i) {
      const size_t row = r + size_t(i / across);
      x[i] = end.part(row < rows ? row : r, i % across);
    }
    const Quad first = plus_words(End::words_of(words(x[0], x[1])), zero),
               second = plus_words(End::words_of(words(x[2], x[3])), zero);
    const Quad q = by_vectors(is_u8 ? unsigned_within(unsigned_bytes(first, second), low, high)
                                    : signed_within(signed_bytes(first, second), low, high));
    const auto to = [&](size_t row) __attribute__((always_inline)) { return static_cast<char*>(c[row]) + j; };
    if constexpr (across == 4) {
      put<1, 0>(to(r), q, n);
    } else if constexpr (across == 2) {
      put<2, 0>(to(r), q, n);
      if (r + 1 < rows) put<2, 1>(to(r + 1), q, n);
    } else {
      put<4, 0>(to(r), q, n);
      if (r + 1 < rows) put<4, 1>(to(r + 1), q, n);
      if (r + 2 < rows) put<4, 2>(to(r + 2), q, n);
      if (r + 3 < rows) put<4, 3>(to(r + 3), q, n);
    }
  }
}
template <class End> SKUA_INL void put_columns(const GemmTile& t, size_t rows, void* const* c, const End& end) {
  constexpr size_t wide = kAcross * L;
  for (size_t j = 0, columns = t.n; j < columns; j += wide) {
    const size_t n = columns - j < wide ? columns - j : wide;
    if constexpr (kAcross > 2)
      if (n > 2 * L) {
        put_rows<kAcross>(t, j, n, rows, c, end);
        continue;
      }
    if (n > L) put_rows<2>(t, j, n, rows, c, end);
    else put_rows<1>(t, j, n, rows, c, end);
  }
}
struct FixedEnd {
  const int32_t* sums;
  size_t step, at[4];
  SKUA_INL void begin(size_t j, size_t, int v) { at[v] = j; }
  SKUA_INL I32 part(size_t row, int v) const { return I32::load(sums + row * step + at[v]); }
  static SKUA_INL Quad words_of(Quad x) { return halved_words(x); }
};
#endif

// In fixed point.
inline void finish_fixed(const GemmTile& t, int32_t* sums, size_t step, size_t rows, void* const* c) {
  for (size_t j = 0; j < t.n; j += L)
    fix_columns(sums + j, step, rows, reinterpret_cast<const int32_t*>(t.scale) + j, t.shift + j, t.single);
#if defined(SKUA_FOUR_AT_ONCE)
  put_columns(t, rows, c, FixedEnd{sums, step, {}});
#else
  const ByteStore store(t);
  for (size_t r = 0; r < rows; ++r, sums += step)
    for (size_t j = 0; j < t.n; j += L)
      store(to_f32(fixed_result(I32::load(sums + j))), static_cast<uint8_t*>(c[r]) + j,
            t.n - j < size_t(L) ? t.n - j : size_t(L));
#endif
}

#if defined(SKUA_FOUR_AT_ONCE)
// By scales below 1 (GemmTile::fits), which saturate as they become 16 bits.
struct ScaledEnd {
  const int32_t* sums;
  const float* scales;
  size_t step, at[4];
  F32 scale[4];
  SKUA_INL void begin(size_t j, size_t, int v) {
    at[v] = j;
    scale[v] = F32::load(scales + j);
  }
  SKUA_INL I32 part(size_t row, int v) const {
    return round_i32(to_f32(I32::load(sums + row * step + at[v])) * scale[v]);
  }
  static SKUA_INL Quad words_of(Quad x) { return x; }
};
#endif

// With a residual.
#if defined(SKUA_FOUR_AT_ONCE)
// Only the upper bound is clamped to before the conversion: what is far below becomes the least integer. Bytes of s8
// are read as u8, 128 more, and become floats as the last digits of 2^23.
struct ResidualEnd {
  const int32_t* sums;
  const void* const* residual;
  const float* scales;
  size_t step, at[4], columns[4];
  F32 high, by, less, scale[4];
  I32 bits;
  SKUA_INL void begin(size_t j, size_t n, int v) {
    at[v] = j;
    scale[v] = F32::load(scales + j);
    columns[v] = n < size_t(L) ? n : size_t(L);
  }
  SKUA_INL I32 part(size_t row, int v) const {
    const F32 add =
        (as_f32(unsigned_of(static_cast<const char*>(residual[row]) + at[v], columns[v]) ^ bits) - less) * by;
    return round_i32(min_fast(to_f32(I32::load(sums + row * step + at[v])) * scale[v] + add, high));
  }
  static SKUA_INL Quad words_of(Quad x) { return x; }
};
inline void finish_residual(const GemmTile& t, const int32_t* sums, size_t step, size_t rows, void* const* c,
                            const void* const* residual) {
  const int32_t flip = t.c_type == Element::s8 ? 128 : 0;
  ResidualEnd end;
  end.sums = sums, end.residual = residual, end.scales = t.scale, end.step = step;
  end.high = F32::set1(t.high), end.by = F32::set1(t.residual_by.scale),
  end.less = F32::set1(8388608.0f + float(t.residual_by.zero_point + flip));
  end.bits = I32::set1(kTwoTo23 ^ flip);
  put_columns(t, rows, c, end);
}
#else
inline void finish_residual(const GemmTile& t, const int32_t* sums, size_t step, size_t rows, void* const* c,
                            const void* const* residual) {
  const Requantizer to({t.low, t.high, t.zero});
  const F32 by = F32::set1(t.residual_by.scale);
  const I32 less = I32::set1(t.residual_by.zero_point);
  for (size_t r = 0; r < rows; ++r, sums += step)
    for (size_t j = 0; j < t.n; j += L) {
      const size_t n = t.n - j < size_t(L) ? t.n - j : size_t(L);
      const I32 x = t.c_type == Element::s8 ? I32::load_n(static_cast<const int8_t*>(residual[r]) + j, n)
                                            : I32::load_n(static_cast<const uint8_t*>(residual[r]) + j, n);
      to.rounded(to_f32(I32::load(sums + j)) * F32::load(t.scale + j) + to_f32(x - less) * by)
          .store_n(static_cast<uint8_t*>(c[r]) + j, n);
    }
}
#endif

// Rows of `step` sums. Not inlined: all tiles of a unit share it.
__attribute__((noinline)) inline void finish_rows(const GemmTile& t, int32_t* sums, size_t step, size_t rows,
                                                  void* const* c, const GemmRowQuant* quant,
                                                  const void* const* residual, const int32_t* terms) {
  for (size_t r = 0; t.b_zeros && r < rows; ++r)
    for (size_t j = 0; j < t.n; j += L)
      (I32::load(sums + r * step + j) - product(I32::load(t.b_zeros + j), I32::set1(terms[r])))
          .store(sums + r * step + j);
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  switch (t.c_type) {
#ifdef SKUA_TYPE_f16
    case Element::f16: return finish_rows_as<f16>(t, sums, step, rows, c, quant, FloatStore<f16>{low, high});
#endif
#ifdef SKUA_TYPE_bf16
    case Element::bf16: return finish_rows_as<bf16>(t, sums, step, rows, c, quant, FloatStore<bf16>{low, high});
#endif
    case Element::f32: return finish_rows_as<float>(t, sums, step, rows, c, quant, FloatStore<float>{low, high});
    default:
      if (t.shift) return finish_fixed(t, sums, step, rows, c);
      if (t.residual) return finish_residual(t, sums, step, rows, c, residual);
#if defined(SKUA_FOUR_AT_ONCE)
      if (t.fits && !quant && !t.bias) return put_columns(t, rows, c, ScaledEnd{sums, t.scale, step, {}, {}});
#endif
      return finish_rows_as<uint8_t>(t, sums, step, rows, c, quant, ByteStore(t));
  }
}

inline void finish_sums(const GemmTile& t, void* const* c, int32_t* sums, size_t step, size_t rows,
                        const int32_t* terms) {
  finish_rows(t, sums, step, rows, c, t.row_quant, t.residual, terms);
}

#if defined(SKUA_FOUR_AT_ONCE)
// Four vectors of results at a time where products fit 32 bits (GemmTile::fits): what is outside the type saturates as
// it is packed, and only closer bounds are clamped to, as bytes.
// The zero point is added in 16 bits. Branches cost less than operations here: the ports of products are what a tile
// waits for.
//
// POSITIVE (GemmTile::positive): sums began at the bits of 2^23, so that from 0 on 2^23 + sum is what the bits are as a
// float, and one operation takes 2^23 * scale, which is exact, off its product: rounded once, as the product of the
// sum. Sums below 0 stay below 0, which is all that matters of them.
template <bool POSITIVE> struct WideStore {
  Quad zero, low, high;
  bool is_u8, bounded;
  explicit SKUA_INL WideStore(const GemmTile& t) : zero(every_word(t.zero)), is_u8(t.c_type == Element::u8) {
    const int first = int(t.low) + (POSITIVE ? 0 : t.zero), last = int(t.high) + (POSITIVE ? 0 : t.zero);
    low = every_byte(first);
    high = every_byte(last);
    bounded = last - first < 255;
  }
  struct Scale {
    F32 scale, less;
  };
  static SKUA_INL Scale scale_of(const float* p) {
    const F32 scale = F32::load(p);
    return {scale, scale * F32::set1(-8388608.0f)};
  }
  static SKUA_INL I32 rounded(I32 sum, Scale s) {
    if constexpr (POSITIVE) return round_i32(fma(as_f32(sum), s.scale, s.less));
    else return round_i32(to_f32(sum) * s.scale);
  }
  // L bytes of each vector, one behind the other.
  SKUA_INL Quad operator()(I32 a, Scale a_scale, I32 b, Scale b_scale, I32 c, Scale c_scale, I32 d,
                           Scale d_scale) const {
    Quad first = words(rounded(a, a_scale), rounded(b, b_scale)),
         second = words(rounded(c, c_scale), rounded(d, d_scale)), q;
    if constexpr (!POSITIVE) {
      first = plus_words(first, zero);
      second = plus_words(second, zero);
    }
    if (POSITIVE || is_u8) {
      q = unsigned_bytes(first, second);
      if (bounded) q = unsigned_within(q, low, high);
      if (POSITIVE && !is_u8) q = flipped(q);
    } else {
      q = signed_bytes(first, second);
      if (bounded) q = signed_within(q, low, high);
    }
    return by_vectors(q);
  }
};
template <bool POSITIVE, int MR, int NV, class C>
SKUA_INL void finish_wide(const GemmTile& t, I32 (&acc)[MR][NV], const C& c) {
  using Store = WideStore<POSITIVE>;
  const Store store(t);
  const size_t n = t.n;
  // rows of C are one behind the other: a vector of them is one store
  const bool dense = MR > 1 && n == size_t(NV) * L && c.dense(n);
  typename Store::Scale s[NV];
  SKUA_UNROLL for (int v = 0; v < NV; ++v) s[v] = Store::scale_of(t.scale + v * L);
  if constexpr (NV >= 3) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      put<1, 0>(c(r), store(acc[r][0], s[0], acc[r][1], s[1], acc[r][2], s[2], acc[r][NV - 1], s[NV - 1]), n);
  } else if constexpr (NV == 2) {
    SKUA_UNROLL for (int r = 0; r < MR; r += 2) {
      const int next = r + 1 < MR ? r + 1 : r;
      const Quad q = store(acc[r][0], s[0], acc[r][1], s[1], acc[next][0], s[0], acc[next][1], s[1]);
      if (dense && r + 1 < MR) {
        __builtin_memcpy(c(r), &q, sizeof q);
        continue;
      }
      put<2, 0>(c(r), q, n);
      if (r + 1 < MR) put<2, 1>(c(next), q, n);
    }
  } else {
    SKUA_UNROLL for (int r = 0; r < MR; r += 4) {
      const int r1 = r + 1 < MR ? r + 1 : r, r2 = r + 2 < MR ? r + 2 : r, r3 = r + 3 < MR ? r + 3 : r;
      const Quad q = store(acc[r][0], s[0], acc[r1][0], s[0], acc[r2][0], s[0], acc[r3][0], s[0]);
      if (dense && r + 3 < MR) {
        __builtin_memcpy(c(r), &q, sizeof q);
        continue;
      }
      put<4, 0>(c(r), q, n);
      if (r + 1 < MR) put<4, 1>(c(r1), q, n);
      if (r + 2 < MR) put<4, 2>(c(r2), q, n);
      if (r + 3 < MR) put<4, 3>(c(r3), q, n);
    }
  }
}
constexpr bool kPositive = true;
#else
constexpr bool kPositive = false;
#endif

// C of 8 bits from registers; all else by way of the stack. positive: GemmTile's, where sums began accordingly.
template <int MR, int NV, class C>
SKUA_INL void finish(const GemmTile& t, size_t row, I32 (&acc)[MR][NV], const C& c, [[maybe_unused]] bool positive,
                     const int32_t* terms) {
  if (plain_bytes(t)) {
#if defined(SKUA_FOUR_AT_ONCE)
    static_assert(NV <= kAcross);
    if (positive) return finish_wide<true>(t, acc, c);
    if (t.fits) return finish_wide<false>(t, acc, c);
#else
    const size_t tail = t.n - size_t(NV - 1) * L;
    const ByteStore store(t);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const F32 scale = F32::load(t.scale + v * L);
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        store(to_f32(acc[r][v]) * scale, static_cast<uint8_t*>(c(r)) + v * L, v < NV - 1 ? size_t(L) : tail);
    }
    return;
#endif
  }
  alignas(sizeof(I32)) int32_t sums[MR * NV * L];
  void* rows[MR];
  const void* residual[MR];
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      acc[r][v].store(sums + (r * NV + v) * L);
  for (int r = 0; r < MR; ++r) rows[r] = c(r);
  if (t.residual)
    for (int r = 0; r < MR; ++r) residual[r] = C::residual(t, row, r);
  finish_rows(t, sums, NV * L, MR, rows, t.row_quant ? t.row_quant + row : nullptr, residual, terms);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
