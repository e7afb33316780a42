// Sums in fixed point, a vector of columns at a time: the vector form of requantize_fixed() in dispatch/requantize.h,
// exact for all values.
//
//   fix_columns(sums, step, rows, multiplier, shift, single)   L columns of `rows` rows, `step` sums from a row to the
//                                                              next, become v, which stands for
//   fixed_result(v)                                            the result before it is clamped; kFixedTwice: v is twice
//                                                              the result and rounded down, (v + 1) >> 1 of it, in 32
//                                                              bits or (after v saturated) in 16, and results beyond
//                                                              +-2^13 are any beyond it, of the same sign
//
// x86 from AVX2 on: products of 64 bits of the even and of the odd lanes. Rounding a quotient that was rounded down is
// rounding the whole, so where shifts are -2 and less (scales below 1/4)
//
//   single   v = floor(sum * multiplier / 2^32) >> (-shift - 2)
//            the upper halves of the products, shifted
//   double   v = (h + (sum < 0 ? -1 : 0)) >> (-shift - 1), h = floor((2 * sum * multiplier + 2^31) / 2^32)
//            ties away from 0: of a negative h one less is rounded up
//
// other columns take shifts of 64 bits. 2 * multiplier may have the upper bit, which counts as -2^32: the sum makes it
// good.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(__AVX2__) && !defined(SKUA_ISA_scalar)
constexpr bool kFixedTwice = true;
SKUA_INL I32 fixed_result(I32 v) { return shr<1>(v + I32::set1(1)); }

#if defined(__AVX512F__)
using Products = __m512i;  // of 64 bits
SKUA_INL I32 odd_lanes(I32 x) { return {_mm512_maskz_shuffle_epi32(0xffff, x.v, _MM_PERM_DDBB)}; }
SKUA_INL Products product_of_even(I32 a, I32 b) { return _mm512_maskz_mul_epi32(0xff, a.v, b.v); }
SKUA_INL Products plus(Products x, int64_t y) { return _mm512_add_epi64(x, _mm512_set1_epi64(y)); }
SKUA_INL I32 upper_halves(Products even, Products odd) {
  return {_mm512_permutex2var_epi32(even, _mm512_setr_epi32(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31),
                                    odd)};
}
SKUA_INL I32 shr_by(I32 x, I32 n) { return {_mm512_maskz_srav_epi32(0xffff, x.v, n.v)}; }
SKUA_INL I32 add_where(M32 m, I32 a, I32 b) { return {_mm512_mask_add_epi32(a.v, m.m, a.v, b.v)}; }
SKUA_INL I32 shl_by(I32 x, I32 n) { return {_mm512_maskz_sllv_epi32(0xffff, x.v, n.v)}; }
SKUA_INL Products plus(Products x, Products y) { return _mm512_add_epi64(x, y); }
SKUA_INL Products minus(Products x, Products y) { return _mm512_sub_epi64(x, y); }
SKUA_INL Products shl_by(int64_t x, Products n) { return _mm512_maskz_sllv_epi64(0xff, _mm512_set1_epi64(x), n); }
SKUA_INL Products shr_by(Products x, Products n) { return _mm512_maskz_srlv_epi64(0xff, x, n); }
SKUA_INL Products all(int64_t x) { return _mm512_set1_epi64(x); }
SKUA_INL Products wide_even(I32 x) { return _mm512_and_si512(x.v, _mm512_set1_epi64(0xffffffff)); }
SKUA_INL Products wide_odd(I32 x) { return _mm512_maskz_srli_epi64(0xff, x.v, 32); }
SKUA_INL I32 lower_halves(Products even, Products odd) {
  return {_mm512_mask_shuffle_epi32(even, 0xaaaa, odd, _MM_PERM_CCAA)};
}
#else
using Products = __m256i;
SKUA_INL I32 odd_lanes(I32 x) { return {_mm256_srli_epi64(x.v, 32)}; }
SKUA_INL Products product_of_even(I32 a, I32 b) { return _mm256_mul_epi32(a.v, b.v); }
SKUA_INL Products plus(Products x, int64_t y) { return _mm256_add_epi64(x, _mm256_set1_epi64x(y)); }
SKUA_INL I32 upper_halves(Products even, Products odd) {
  return {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa)};
}
SKUA_INL I32 shr_by(I32 x, I32 n) { return {_mm256_srav_epi32(x.v, n.v)}; }
SKUA_INL I32 add_where(M32 m, I32 a, I32 b) { return a + (as_i32(F32{m.m}) & b); }
SKUA_INL I32 shl_by(I32 x, I32 n) { return {_mm256_sllv_epi32(x.v, n.v)}; }
SKUA_INL Products plus(Products x, Products y) { return _mm256_add_epi64(x, y); }
SKUA_INL Products minus(Products x, Products y) { return _mm256_sub_epi64(x, y); }
SKUA_INL Products shl_by(int64_t x, Products n) { return _mm256_sllv_epi64(_mm256_set1_epi64x(x), n); }
SKUA_INL Products shr_by(Products x, Products n) { return _mm256_srlv_epi64(x, n); }
SKUA_INL Products all(int64_t x) { return _mm256_set1_epi64x(x); }
SKUA_INL Products wide_even(I32 x) { return _mm256_and_si256(x.v, _mm256_set1_epi64x(0xffffffff)); }
SKUA_INL Products wide_odd(I32 x) { return _mm256_srli_epi64(x.v, 32); }
SKUA_INL I32 lower_halves(Products even, Products odd) {
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)};
}
#endif

template <bool single>
SKUA_INL void fix_small_scales(int32_t* sums, size_t step, size_t rows, I32 multiplier, I32 right) {
  const I32 m = single ? multiplier : shl<1>(multiplier), odd = odd_lanes(m);
  const M32 is_more = gt(I32::set1(0), m);
  for (; rows; --rows, sums += step) {
    const I32 x = I32::load(sums);
    const Products even_product = product_of_even(x, m), odd_product = product_of_even(odd_lanes(x), odd);
    if constexpr (single) {
      shr_by(upper_halves(even_product, odd_product), right).store(sums);
    } else {
      const I32 h = add_where(
          is_more, upper_halves(plus(even_product, int64_t(1) << 31), plus(odd_product, int64_t(1) << 31)), x);
      shr_by(h + shr<31>(x), right).store(sums);
    }
  }
}

// Of any scale: fixed_single() and fixed_double() lane by lane.
SKUA_INL Products fix_wide(Products product, Products right) {
  const Products more = all(int64_t(1) << 62), half = shl_by(1, minus(right, all(1)));
  return minus(shr_by(plus(plus(product, half), more), right), shr_by(more, right));
}
template <bool single> SKUA_INL void fix_any_scales(int32_t* sums, size_t step, size_t rows, I32 m, I32 e) {
  const I32 odd = odd_lanes(m), zero = I32::set1(0), one = I32::set1(1);
  const M32 to_left = gt(e, zero);
  const I32 left = select(to_left, e, zero), right = single ? I32::set1(31) - e : select(to_left, zero, zero - e),
            mask = shl_by(one, right) - one;
  for (; rows; --rows, sums += step) {
    const I32 x = single ? I32::load(sums) : shl_by(I32::load(sums), left);
    const Products even_product = product_of_even(x, m), odd_product = product_of_even(odd_lanes(x), odd);
    I32 y;
    if constexpr (single) {
      y = lower_halves(fix_wide(even_product, wide_even(right)), fix_wide(odd_product, wide_odd(right)));
    } else {
      const Products n = all(31);
      const I32 high =
          lower_halves(shr_by(plus(even_product, int64_t(1) << 30), n), shr_by(plus(odd_product, int64_t(1) << 30), n));
      y = add_where(gt(high & mask, shr<1>(mask) - shr<31>(high)), shr_by(high, right), one);
    }
    const I32 most = I32::set1(8192), least = I32::set1(-8192);
    y = select(gt(y, most), most, y);
    shl<1>(select(gt(least, y), least, y)).store(sums);
  }
}

__attribute__((noinline)) inline void fix_columns(int32_t* sums, size_t step, size_t rows, const int32_t* multiplier,
                                                  const int32_t* shift, bool single) {
  const I32 m = I32::load(multiplier), e = I32::load(shift);
  const M32 is_zero = eq(m, I32::set1(0));  // as behind the last column; of any shift
  if (!any(gt(e, I32::set1(-2)) & ~is_zero)) {
    const I32 left = select(is_zero, I32::set1(-2), e);
    if (single) fix_small_scales<true>(sums, step, rows, m, I32::set1(-2) - left);
    else fix_small_scales<false>(sums, step, rows, m, I32::set1(-1) - left);
    return;
  }
  if (single) fix_any_scales<true>(sums, step, rows, m, e);
  else fix_any_scales<false>(sums, step, rows, m, e);
}

#elif defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
constexpr bool kFixedTwice = false;
SKUA_INL I32 fixed_result(I32 v) { return v; }
// Its products round doubled, its shifts by lane round, in more bits than they hold.
struct FixedColumns {
  int32x4_t multiplier, left, right;  // right: 0 or less
  int64x2_t low, high;                // shifts of products of 64 bits
  SKUA_INL FixedColumns(const int32_t* m, const int32_t* shift) : multiplier(vld1q_s32(m)) {
    const int32x4_t e = vld1q_s32(shift), zero = vdupq_n_s32(0), of_product = vsubq_s32(e, vdupq_n_s32(31));
    left = vmaxq_s32(e, zero);
    right = vminq_s32(e, zero);
    low = vmovl_s32(vget_low_s32(of_product));
    high = vmovl_s32(vget_high_s32(of_product));
  }
  SKUA_INL I32 twice_rounded(I32 x) const {
    const int32x4_t h = vqrdmulhq_s32(vshlq_s32(x.v, left), multiplier);
    return {vrshlq_s32(vaddq_s32(h, vshrq_n_s32(vandq_s32(h, right), 31)), right)};
  }
  SKUA_INL I32 once_rounded(I32 x) const {
    const int64x2_t a = vmull_s32(vget_low_s32(x.v), vget_low_s32(multiplier)),
                    b = vmull_s32(vget_high_s32(x.v), vget_high_s32(multiplier));
    return {vcombine_s32(vmovn_s64(vrshlq_s64(a, low)), vmovn_s64(vrshlq_s64(b, high)))};
  }
};
__attribute__((noinline)) inline void fix_columns(int32_t* sums, size_t step, size_t rows, const int32_t* multiplier,
                                                  const int32_t* shift, bool single) {
  const FixedColumns columns(multiplier, shift);
  for (; rows; --rows, sums += step) {
    const I32 x = I32::load(sums);
    (single ? columns.once_rounded(x) : columns.twice_rounded(x)).store(sums);
  }
}

#else
constexpr bool kFixedTwice = false;
SKUA_INL I32 fixed_result(I32 v) { return v; }
__attribute__((noinline)) inline void fix_columns(int32_t* sums, size_t step, size_t rows, const int32_t* multiplier,
                                                  const int32_t* shift, bool single) {
  for (; rows; --rows, sums += step)
    for (int l = 0; l < I32::L; ++l)
      sums[l] =
          single ? fixed_single(sums[l], multiplier[l], shift[l]) : fixed_double(sums[l], multiplier[l], shift[l]);
}
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
