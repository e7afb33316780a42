// What the tiles of bytes of Arm share: rows of A read to their last byte and no further, and the end of a tile. The
// formula is GemmTile's.
//
// A of u8 is read as s8, 128 less (a_shift): only sdot and smmla are in all sets that have either, and a bit flipped
// costs one instruction for sixteen bytes of a row.
#pragma once
#include "dispatch/kernel.h"
#include "gemm/gemm_kernel.h"
#include "simd/fixed.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = I32::L;

template <bool is_u8> SKUA_INL int8x16_t as_s8(int8x16_t x) { return is_u8 ? veorq_s8(x, vdupq_n_s8(-128)) : x; }
template <bool is_u8> SKUA_INL int8x8_t as_s8(int8x8_t x) { return is_u8 ? veor_s8(x, vdup_n_s8(-128)) : x; }
template <bool is_u8>
SKUA_INL int8x16_t sixteen(const uint8_t* p) {
  return as_s8<is_u8>(vreinterpretq_s8_u8(vld1q_u8(p)));
}
// The first n bytes, 1 or more, of eight, zeros behind; of four, in every group of four.
template <bool is_u8> SKUA_INL int8x8_t eight(const uint8_t* p, size_t n) {
  n = n < 8 ? n : 8;
  return vcreate_s8(first_bytes(p, n) ^ (is_u8 ? 0x8080808080808080 >> 8 * (8 - n) : 0));
}
template <bool is_u8> SKUA_INL uint32_t word(const uint8_t* p, size_t n) {
  n = n < 4 ? n : 4;
  return uint32_t(first_bytes(p, n)) ^ (is_u8 ? 0x80808080u >> 8 * (4 - n) : 0);
}
template <bool is_u8>
SKUA_INL int8x16_t four(const uint8_t* p, size_t n) {
  return vreinterpretq_s8_u32(vdupq_n_u32(word<is_u8>(p, n)));
}

#if defined(__ARM_FEATURE_DOTPROD)
// acc += the four columns of b times the four bytes of lane i of a. Stays where it is written: gcc 12 would hoist loads
// over the multiplies, and move registers around.
template <int i> SKUA_INL void dot_lane(int32x4_t& acc, int8x16_t b, int8x16_t a) {
#if defined(__aarch64__)
  asm volatile("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(acc) : "w"(b), "w"(a), "i"(i));
#else
  if constexpr (i < 2) asm volatile("vsdot.s8 %q0, %q1, %e2[%c3]" : "+w"(acc) : "w"(b), "t"(a), "i"(i));
  else asm volatile("vsdot.s8 %q0, %q1, %f2[%c3]" : "+w"(acc) : "w"(b), "t"(a), "i"(i - 2));
#endif
}
#endif

// ---- the end --------------------------------------------------------------------------------------------------------
// Sums, scaled, to bytes: one form for s8 and u8. Adding 1.5 * 2^23 rounds to the nearest integer, of which the lane's
// lowest byte is kept; the zero point is added to bytes.
struct ByteEnd {
  F32 low, high, magic;
  int8x16_t zero;
  explicit SKUA_INL ByteEnd(const GemmTile& t)
      : low(F32::set1(t.low)),
        high(F32::set1(t.high)),
        magic(F32::set1(kRoundsToInteger)),
        zero(vdupq_n_s8(int8_t(t.zero))) {}
  SKUA_INL int32x4_t rounded(int32x4_t sum, F32 scale) const {
    return as_i32(clamp_high(clamp_low(to_f32(I32{sum}) * scale, low), high) + magic).v;
  }
  static SKUA_INL int16x8_t words(int32x4_t a, int32x4_t b) {
#if defined(__aarch64__)
    return vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
#else
    return vcombine_s16(vmovn_s32(a), vmovn_s32(b));
#endif
  }
  // Rounded vectors to columns of a row.
  SKUA_INL void put_16(int32x4_t a, int32x4_t b, int32x4_t c, int32x4_t d, uint8_t* to) const {
    const int16x8_t x = words(a, b), y = words(c, d);
#if defined(__aarch64__)
    const int8x16_t bytes = vuzp1q_s8(vreinterpretq_s8_s16(x), vreinterpretq_s8_s16(y));
#else
    const int8x16_t bytes = vcombine_s8(vmovn_s16(x), vmovn_s16(y));
#endif
    vst1q_u8(to, vreinterpretq_u8_s8(vaddq_s8(bytes, zero)));
  }
  SKUA_INL int8x8_t bytes_8(int32x4_t a, int32x4_t b) const {
    return vadd_s8(vmovn_s16(words(a, b)), vget_low_s8(zero));
  }
  SKUA_INL void put_8(int32x4_t a, int32x4_t b, uint8_t* to) const { vst1_u8(to, vreinterpret_u8_s8(bytes_8(a, b))); }
  SKUA_INL void put_4(int32x4_t a, uint8_t* to) const {
    const uint32_t four = vget_lane_u32(vreinterpret_u32_s8(bytes_8(a, a)), 0);
    __builtin_memcpy(to, &four, 4);
  }
  // Four columns of two rows.
  static SKUA_INL void put_two_4(int8x8_t bytes, uint8_t* to, uint8_t* below) {
    const uint32x2_t x = vreinterpret_u32_s8(bytes);
    const uint32_t first = vget_lane_u32(x, 0), second = vget_lane_u32(x, 1);
    __builtin_memcpy(to, &first, 4);
    __builtin_memcpy(below, &second, 4);
  }
};

// What is subtracted from the sums of a row beside the offset: by its zero point, and by B's.
struct RowEnd {
  int32_t zero, less;
  float scale;
};
// All that a row may have, from column j on.
template <class C>
SKUA_INL void finish_row(const GemmTile& t, const int32_t* sums, C* c, const RowEnd& row, size_t j,
                         [[maybe_unused]] const void* residual = nullptr) {
  constexpr bool bytes = sizeof(C) == 1;
  const Requantizer to({t.low, t.high, t.zero});
  const F32 row_scale = F32::set1(row.scale);
  for (; j < t.n; j += L) {
    const size_t n = t.n - j < size_t(L) ? t.n - j : size_t(L);
    I32 s = I32::load(sums + j);
    if (t.b_zeros) s.v = vmlsq_s32(s.v, vld1q_s32(t.b_zeros + j), vdupq_n_s32(row.less));
    else s = s - I32::set1(row.less);
    if (t.row_quant) s.v = vmlsq_s32(s.v, vld1q_s32(t.column_sums + j), vdupq_n_s32(row.zero));
    if constexpr (bytes)
      if (t.shift) {
        const FixedColumns columns(reinterpret_cast<const int32_t*>(t.scale) + j, t.shift + j);
        to.rounded(to_f32(t.single ? columns.once_rounded(s) : columns.twice_rounded(s))).store_n(c + j, n);
        continue;
      }
    F32 y = to_f32(s) * F32::load(t.scale + j);
    if constexpr (bytes)
      if (residual) {
        const I32 x = t.c_type == Element::s8 ? I32::load_n(static_cast<const int8_t*>(residual) + j, n)
                                              : I32::load_n(static_cast<const uint8_t*>(residual) + j, n);
        y = y + to_f32(x - I32::set1(t.residual_by.zero_point)) * F32::set1(t.residual_by.scale);
      }
    if (t.row_quant) y = y * row_scale;
    if (t.bias) y = y + F32::load(t.bias + j);
    if constexpr (bytes) {
      to.rounded(y).store_n(c + j, n);
    } else {
      y = clamp_high(clamp_low(y, to.low), to.high);
      if (n == size_t(L)) y.store(c + j);
      else y.store_n(c + j, n);
    }
  }
}

SKUA_INL bool ends_plain(const GemmTile& t) {
  return (t.c_type == Element::s8 || t.c_type == Element::u8) && !t.b_zero && !t.row_quant && !t.bias && !t.shift &&
         !t.residual;
}

// Sums, which begin at the offset, `step` from a row to the next, to rows of C. terms: of each row where B has a zero
// point. Not inlined: all tiles of a unit share it.
__attribute__((noinline)) void finish_sums(const GemmTile& t, void* const* c_rows, int32_t* sums, size_t step,
                                           size_t rows, const int32_t* terms) {
  const bool plain = ends_plain(t);
  const ByteEnd end(t);
  for (size_t r = 0; r < rows; ++r, sums += step) {
    const RowEnd row = {t.row_quant ? t.row_quant[r].zero : 0, t.b_zero ? terms[r] : 0,
                        t.row_quant ? t.row_quant[r].scale : 1};
    switch (t.c_type) {
#ifdef SKUA_TYPE_f16
      case Element::f16: finish_row(t, sums, static_cast<f16*>(c_rows[r]), row, 0); break;
#endif
#ifdef SKUA_TYPE_bf16
      case Element::bf16: finish_row(t, sums, static_cast<bf16*>(c_rows[r]), row, 0); break;
#endif
      case Element::f32: finish_row(t, sums, static_cast<float*>(c_rows[r]), row, 0); break;
      default: {
        auto* c = static_cast<uint8_t*>(c_rows[r]);
        size_t j = 0;
        if (plain) {
          const auto rounded = [&](size_t i) __attribute__((always_inline)) {
            return end.rounded(vld1q_s32(sums + i), F32::load(t.scale + i));
          };
          for (; j + 8 <= t.n; j += 8) end.put_8(rounded(j), rounded(j + 4), c + j);
          if (j + 4 <= t.n) end.put_4(rounded(j), c + j), j += 4;
        }
        if (j < t.n) finish_row(t, sums, c, row, j, t.residual ? t.residual[r] : nullptr);
      }
    }
  }
}

// The terms of rows with B's zero point: found by the panel before, or made by sum(sums of A') for all rows of the
// tile, and left for the next panel.
template <int MR, class Sum>
SKUA_INL void find_terms(const GemmTile& t, size_t rows, int32_t (&terms)[MR], const Sum& sum) {
  if (!t.b_zero) return;
  if (!t.terms_known) {
    sum(terms);
    for (size_t r = 0; r < rows; ++r) terms[r] = int32_t(uint32_t(terms[r]) * uint32_t(t.b_zero));
  }
  if (t.row_terms)
    for (size_t r = 0; r < rows; ++r)
      (t.terms_known ? terms[r] : t.row_terms[r]) = t.terms_known ? t.row_terms[r] : terms[r];
}

// Sums of A' over the depth, rows where they are; shift: what A' is more than A.
template <bool is_u8>
__attribute__((noinline)) void sum_rows(const GemmTile& t, size_t rows, int shift, int32_t* sums) {
  for (size_t r = 0; r < rows; ++r) {
    int32x4_t acc = vdupq_n_s32(0);
    for (size_t s = 0; s < t.segment_count; ++s) {
      const uint8_t* a = static_cast<const uint8_t*>(t.a[r]) + t.segments[s].a;
      size_t k = t.k;
      for (; k >= 16; k -= 16, a += 16) acc = vpadalq_s16(acc, vpaddlq_s8(sixteen<is_u8>(a)));
      for (; k; k -= k < 8 ? k : 8, a += 8) acc = vpadalq_s16(acc, vmovl_s8(eight<is_u8>(a, k)));
    }
    const int32x2_t half = vadd_s32(vget_low_s32(acc), vget_high_s32(acc));
    sums[r] = vget_lane_s32(vpadd_s32(half, half), 0) + int32_t(t.segment_count * t.k) * (shift + (is_u8 ? 128 : 0));
  }
}

// Whole rows of bytes from registers. All are rounded before the first is stored: for all the compiler knows bytes are
// stored over the scales.
template <int MR, int NV> SKUA_INL void put_rows(const GemmTile& t, void* const* c_rows, int32x4_t (&sums)[MR][NV]) {
  const ByteEnd end(t);
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    const F32 scale = F32::load(t.scale + v * 4);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) sums[r][v] = end.rounded(sums[r][v], scale);
  }
  constexpr bool pairs = NV % 2 && MR % 2 == 0;  // the last four columns of two rows together
  int8x8_t last[pairs ? MR / 2 : 1];
  if constexpr (pairs)
    SKUA_UNROLL for (int r = 0; r < MR; r += 2)
      last[r / 2] = end.bytes_8(sums[r][NV - 1], sums[r + 1][NV - 1]);
  SKUA_UNROLL for (int r = 0; r < MR; ++r) {
    uint8_t* c = static_cast<uint8_t*>(c_rows[r]);
    SKUA_UNROLL for (int v = 0; v + 4 <= NV; v += 4)
      end.put_16(sums[r][v], sums[r][v + 1], sums[r][v + 2], sums[r][v + 3], c + v * 4);
    if constexpr (NV % 4 >= 2) end.put_8(sums[r][NV / 4 * 4], sums[r][NV / 4 * 4 + 1], c + NV / 4 * 16);
    if constexpr (pairs) {
      if (r % 2 == 0) end.put_two_4(last[r / 2], c + (NV - 1) * 4, static_cast<uint8_t*>(c_rows[r + 1]) + (NV - 1) * 4);
    } else if constexpr (NV % 2) {
      end.put_4(sums[r][NV - 1], c + (NV - 1) * 4);
    }
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
