// Elementary functions of F32 vectors: one source for every instruction set.
//
// Bounds stand over each function: of the float result against the function in double, in ULP of the result, the
// largest over all arguments and instruction sets, with a fused fma or without. tests/simd_test.cc sweeps them. NaN
// gives NaN. AArch32 flushes denormals: arguments and results below 2^-126 count as zero there, and it divides by way
// of a reciprocal (quotient()), which costs sigmoid, silu and mish up to 0.35 ULP more; where a factor of their product
// is flushed, up to 2^-119.
//
// Polynomials are minimax fits of the relative error (or of the error of the whole result where a comment says so) by
// Lawson's iteration on Chebyshev points in double; coefficients are rounded to float one by one from the lowest order
// up, the others fitted again after each.
#pragma once

#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr float infinity = __builtin_inff();

// c0 + c1 x + c2 x^2 ..., by Horner's rule.
SKUA_INL F32 poly(F32, float c) { return F32::set1(c); }
template <class... Rest>
SKUA_INL F32 poly(F32 x, float c, Rest... rest) {
  return fma(poly(x, rest...), x, F32::set1(c));
}

// The same by its even and odd powers, for a known x^2: as many operations and half as long a chain of them.
SKUA_INL F32 every_second(F32, float c) { return F32::set1(c); }
SKUA_INL F32 every_second(F32, float c, float) { return F32::set1(c); }
template <class... Rest>
SKUA_INL F32 every_second(F32 x2, float c, float, Rest... rest) {
  return fma(every_second(x2, rest...), x2, F32::set1(c));
}
template <class... Rest>
SKUA_INL F32 poly_by_halves(F32 x, F32 x2, float c, Rest... rest) {
  return fma(every_second(x2, rest...), x, every_second(x2, c, rest...));
}

// ln 2 in two parts: the first has 9 bits, so n times it is exact for the n of an exponent.
constexpr float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f, log2_e = 0x1.715476p+0f;

// Where powers are 0, and that fast: Intel's cores take a hundred cycles for a product that is denormal or nearly, as
// e^-105 is made of, and none for one that is much less. 2^n has an exponent of 0 there.
constexpr float power_end = F32::has_scalef ? -1000.0f : -176.0f;

// Adding this rounds to an integer, to even, and leaves the integer plus the bias in the low bits.
constexpr float rounder(int bias) { return 12582912.0f + static_cast<float>(bias); }

// x = n ln 2 + r, |r| <= ln 2 / 2; the low bits of `bits` are n + bias.
struct ByLn2 {
  F32 r, n;
  I32 bits;
};
template <int bias>
SKUA_INL ByLn2 by_ln2(F32 x) {
  const F32 shifted = fma(x, F32::set1(log2_e), F32::set1(rounder(bias)));
  const F32 n = shifted - F32::set1(rounder(bias));
  return {fnma(n, F32::set1(ln2_low), fnma(n, F32::set1(ln2_high), x)), n, as_i32(shifted)};
}

// e^r for |r| <= ln 2 / 2, e^-r with a sign of -1: relative error of the polynomial 2^-28.2.
template <int sign = 1>
SKUA_INL F32 exp_poly(F32 r) {
  return poly(r, 1.0f, sign * 1.0f, 0x1.fffffcp-2f, sign * 0x1.555492p-3f, 0x1.5558b0p-5f, sign * 0x1.12398ep-7f,
              0x1.6a4d60p-10f);
}
// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2: relative error of e^r - 1 from the polynomial 2^-26.1.
SKUA_INL F32 expm1_tail(F32 r) {
  return poly(r, 0x1.fffffep-2f, 0x1.5554b4p-3f, 0x1.5556f2p-5f, 0x1.12254ap-7f, 0x1.6b9c68p-10f);
}

// -|x| for softplus: of more than 40, whose power changes no sum, -40, lest it were denormal; f where its square is not
// nothing beside t, 0 where that might be denormal.
SKUA_INL F32 below_zero(F32 x) { return min_fast(clamp_low(-x, F32::set1(-40.0f)), x); }
SKUA_INL F32 where_squares_count(F32 t, F32 f) { return keep_if(gt(t, F32::set1(0x1p-30f)), f); }

#if defined(SKUA_SIMD_LOOKS_UP)
}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
#include "simd/math_tables.h"
namespace skua {
namespace SKUA_ISA {
namespace {
#endif

// p * 2^n, n in [-254, 136]: without scalef in two factors, of which the first product is exact and the second rounds
// once, also into the denormals.
constexpr int power_bias = F32::has_scalef ? 0 : 254;
template <class V>
SKUA_INL V times_power(V p, ByLn2 s) {
  if constexpr (V::has_scalef) {
    return scalef(p, s.n);
  } else {
    const I32 half = shr<1>(s.bits);
    return p * as_f32(shl<23>(half)) * as_f32(shl<23>(s.bits - half));
  }
}

#if !defined(SKUA_SIMD_LOOKS_UP)
// e^x to 1.25 ULP. Overflows to infinity, underflows through the denormals to zero.
SKUA_INL F32 exp(F32 x) {
  const ByLn2 s = by_ln2<power_bias>(clamp_high(clamp_low(x, F32::set1(power_end)), F32::set1(90.0f)));
  return times_power(exp_poly(s.r), s);
}
// The same where the result is normal, without what only others need: a third of it. Where x log2(e) is rounded before
// the rounder is added it may be a tie, so that has to be even as exp's is.
SKUA_INL M32 has_normal_power(F32 x) { return lt(abs(x), F32::set1(87.0f)); }
SKUA_INL F32 exp_of_normal(F32 x) {
  constexpr int odd = F32::fused ? 0 : 1;
  const ByLn2 s = by_ln2<127 + odd>(x);
  return exp_poly(s.r) * as_f32(shl<23>(odd ? s.bits - I32::set1(odd) : s.bits));
}
// The same for x up to 40, whose powers of two are normal once they are multiplied by 2^64, or 0.
SKUA_INL F32 exp_below_40(F32 x) {
  const ByLn2 s = by_ln2<127 + 64>(clamp_low(x, F32::set1(-132.35f)));
  return exp_poly(s.r) * as_f32(shl<23>(s.bits)) * F32::set1(0x1p-64f);
}

// What softmax is made of: e^x for x <= 0, times power_scale, to 2.5 + |x| ULP; 0 below least_power, so that neither
// they nor their shares of a sum below 1000 are denormal, which takes Intel's cores a hundred cycles (a masked row of
// attention took twelve times as long), and at no cost: 2^n is 0 where its exponent is. Relative error of the
// polynomial 2^-23.4.
constexpr float power_scale = 0x1p-10f, least_power = -80.4f;
SKUA_INL F32 scaled_power(F32 x) {
  x = clamp_low(x, F32::set1(least_power));
  ByLn2 s = by_ln2<127 - 11>(x);
  if constexpr (F32::fused) s.r = fnma(s.n, F32::set1(0x1.62e430p-1f), x);
  // twice the polynomial, so that it leaves the least power of two normal
  return poly(s.r, 2.0f, 0x1.fffff6p+0f, 0x1.fffdc4p-1f, 0x1.555a80p-2f, 0x1.573ad8p-4f, 0x1.0fa032p-6f) *
         as_f32(shl<23>(s.bits));
}
#endif

// x for x >= 0, a (e^x - 1) below, to 2.5 ULP. n is small where the result is not nearly -a: where fma is fused, one
// product reduces x.
SKUA_INL F32 elu(F32 x, F32 a) {
  const F32 z = clamp_low(x, F32::set1(-20.0f));
  ByLn2 s = by_ln2<127>(z);
  if constexpr (F32::fused) s.r = fnma(s.n, F32::set1(0x1.62e430p-1f), z);
  const F32 power = a * as_f32(shl<23>(s.bits));
  const F32 y = fma(s.r * s.r, expm1_tail(s.r), s.r);
  return select(lt(x, F32::zero()), fma(y, power, power - a), x);
}

#if !defined(SKUA_SIMD_LOOKS_UP)
// tanh x. Where fma is fused to 5 ULP: a quotient of polynomials of x^2, fitted up to 8, whose coefficients and whose
// end are such that no quotient rounds to more than 1 and that of the end to 1: 13 operations, where what follows takes
// 23. Where no instruction divides, quotients grow with x beyond the end and are held at 1. Elsewhere, where each of
// its steps would round twice, to 1.75 ULP: h = tanh r by an odd polynomial, where r is x itself up to where the result
// is 1/2; beyond, x = n ln 2 / 2 + r, and the addition theorem gives how much is missing to 1, which divides by
// 2^n (1 + h) + 1 - h.
SKUA_INL F32 tanh(F32 x) {
  const F32 one = F32::set1(1.0f);
  if constexpr (F32::fused) {
#if defined(SKUA_ISA_neon32)
    constexpr bool divides = false;
#else
    constexpr bool divides = true;
#endif
    constexpr float end = 0x1.01044cp+3f;
    if constexpr (divides) x = clamp_high(clamp_low(x, F32::set1(-end)), F32::set1(end));
    const F32 t = divides ? x * x : clamp_high(x * x, F32::set1(end * end));
    const F32 p = poly(t, 1.0f, 0x1.1353fcp-3f, 0x1.d402b4p-9f, 0x1.6f018ap-16f, 0x1.050aacp-26f);
    const F32 q = poly(t, 1.0f, 0x1.deff54p-2f, 0x1.ac9f1ep-6f, 0x1.658522p-12f, 0x1.c8de1ep-21f);
    const F32 y = quotient(x * p, q);
    return divides ? y : clamp_high(clamp_low(y, -one), one);
  }
  const F32 half = F32::set1(0.5f), a = clamp_high(abs(x), F32::set1(9.02f));
  const M32 large = gt(a, F32::set1(0.55f));
  const F32 shifted = fma(a, F32::set1(2 * log2_e), F32::set1(rounder(126))),
            n = keep_if(large, shifted - F32::set1(rounder(126)));
  const F32 r = fnma(n, F32::set1(ln2_low / 2), fnma(n, F32::set1(ln2_high / 2), a));
  const F32 t = r * r, power = as_f32(shl<23>(as_i32(shifted)));
  const F32 h = fma(r * t, poly(t, -0x1.555452p-2f, 0x1.10cefcp-3f, -0x1.af7d36p-5f, 0x1.0d5176p-6f), r);
  const F32 missing = quotient(one - h, fma(h, power - half, power + half));
  return copysign(select(large, one - missing, h), x);
}

// x = -n ln 2 + r. The sign is in the first product, where it costs nothing.
template <int bias>
SKUA_INL ByLn2 by_minus_ln2(F32 x) {
  const F32 shifted = fnma(x, F32::set1(log2_e), F32::set1(rounder(bias)));
  const F32 n = shifted - F32::set1(rounder(bias));
  return {fma(n, F32::set1(ln2_low), fma(n, F32::set1(ln2_high), x)), n, as_i32(shifted)};
}

// 1 / (1 + e^-x) for x in [-131, 30] or NaN, as u / (u + u e^-x): the unit keeps the sum finite for the smallest x.
template <bool exact = true>
SKUA_INL F32 sigmoid_in_range(F32 x) {
  const ByLn2 s = by_minus_ln2<127 - 64>(x);
  const F32 unit = F32::set1(0x1p-64f);
  return quotient(unit, fma(exp_poly<-1>(s.r), as_f32(shl<23>(s.bits)), unit));
}
#endif

// 1 / (1 + e^-x) to 2.75 ULP (2.1 without tables), also where the result is denormal.
SKUA_INL F32 sigmoid(F32 x) { return sigmoid_in_range(clamp_high(clamp_low(x, F32::set1(-131.0f)), F32::set1(30.0f))); }

// x sigmoid(x) to 3.25 ULP + 2^-142; silu(-infinity) is -0.
SKUA_INL F32 silu(F32 x) {
  x = clamp_low(x, F32::set1(-131.0f));
  return x * sigmoid_in_range(clamp_high(x, F32::set1(30.0f)));
}

// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)) to 4 ULP + 2^-26: far
// below zero the result shrinks as e to the rounded cube does.
#if defined(SKUA_SIMD_LOOKS_UP)
SKUA_INL F32 gelu_tanh(F32 x) {
  x = clamp_low(x, F32::set1(-11.0f));
  const F32 z = x * fma(x * x, F32::set1(0.07135481627f), F32::set1(1.595769122f));
  return x * sigmoid_in_range<false>(clamp_high(z, F32::set1(30.0f)));
}
#else
// A power of two, log2(e) in the coefficients: what its exponent is rounded by is exact then. Relative error of the
// polynomial, which is of 2^-r, 2^-28.3.
SKUA_INL F32 gelu_tanh(F32 x) {
  x = clamp_low(x, F32::set1(-11.0f));
  const F32 z = clamp_high(x * fma(x * x, F32::set1(0.10294324f), F32::set1(2.3022082f)), F32::set1(43.0f));
  const F32 shifted = F32::set1(rounder(127 - 64)) - z, r = z + (shifted - F32::set1(rounder(127 - 64))),
            unit = F32::set1(0x1p-64f);
  const F32 power = poly(r, 1.0f, -0x1.62e430p-1f, 0x1.ebfbdcp-3f, -0x1.c6af7ap-5f, 0x1.3b2ddap-7f, -0x1.5f0976p-10f,
                         0x1.417284p-13f);
  return x * quotient(unit, fma(power, as_f32(shl<23>(as_i32(shifted))), unit));
}
#endif

// The square root of the u-th vector of a turn.
#if !defined(SKUA_SIMD_ROOT_UNIT)
SKUA_INL F32 sqrt(F32 x, size_t) { return sqrt(x); }
#endif

#if !defined(SKUA_SIMD_LOOKS_UP)
// 1 / sqrt(x) to 1.5 ULP.
SKUA_INL F32 rsqrt(F32 x) { return F32::set1(1.0f) / sqrt(x); }
#endif

SKUA_INL F32 power_4(F32 x) {
  x = x * x;
  return x * x;
}

// erf x to 3 ULP: an odd polynomial up to 0.92, beyond 1 - q(|x|)^8, q fitted for the error of that, up to where it is
// 1 in float.
SKUA_INL F32 erf(F32 x) {
  const F32 a = clamp_high(abs(x), F32::set1(3.92f));
  const F32 t = a * a;
  const F32 q = poly(a, 0x1.002b0cp+0f, -0x1.27a75ap-3f, -0x1.002ddep-4f, -0x1.562aa2p-7f, 0x1.99957cp-7f,
                     -0x1.36678cp-9f, 0x1.25a7f8p-13f);
  const F32 p =
      poly(t, 0x1.06eba6p-3f, -0x1.8126eap-2f, 0x1.ce1b0ep-4f, -0x1.b69390p-6f, 0x1.476882p-8f, -0x1.3ac594p-11f);
  return copysign(select(lt(a, F32::set1(0.92f)), fma(a, p, a), F32::set1(1.0f) - power_4(q * q)), x);
}

// x/2 (1 + erf(x / sqrt 2)) to 3 ULP + 2^-24, as max(x, 0) - |x|/2 erfc(|x| / sqrt 2) with erfc as q(|x|)^4: small
// results of negative x keep digits that 1 + erf would lose. q is fitted for the error of the product, relative down to
// 0.001. Below -6 the result is 0, which is off by at most 6e-9.
SKUA_INL F32 gelu_erf(F32 x) {
  const F32 end = F32::set1(6.0f);
  const F32 a = clamp_high(abs(x), end);
  const F32 q = poly_by_halves(a, a * a, 1.0f, -0x1.988434p-3f, -0x1.e8ebbcp-5f, 0x1.65a01ep-8f, 0x1.33513cp-8f,
                               -0x1.187eecp-12f, -0x1.9bcc5ap-13f, -0x1.f6175cp-18f, 0x1.2054d4p-16f, -0x1.ca61c0p-19f,
                               0x1.34858ap-22f, -0x1.411530p-27f);
  return fnma(keep_if(lt(a, end), a * F32::set1(0.5f)), power_4(q), clamp_low(x, F32::zero()));
}

// x = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2).
struct ByPower {
  F32 f, e;
};
SKUA_INL ByPower by_power(F32 x) {
  const I32 root = I32::set1(0x3f3504f3);
  const M32 tiny = lt(x, F32::set1(0x1p-126f));
  const I32 i = as_i32(select(tiny, x * F32::set1(0x1p23f), x)) - root;
  const F32 e = to_f32(shr<23>(i)) - keep_if(tiny, F32::set1(23.0f));
  return {as_f32((i & I32::set1(0x007fffff)) + root) - F32::set1(1.0f), e};
}

// e ln 2 + ln(1 + f) for f in [sqrt 1/2 - 1, sqrt 2 - 1]. f2: f^2, or 0 where it counts for nothing.
SKUA_INL F32 log_sum(F32 e, F32 f, F32 f2) {
  const F32 p = poly_by_halves(f, f2, 0x1.5556d8p-2f, -0x1.000382p-2f, 0x1.98d82ap-3f, -0x1.538234p-3f, 0x1.317234p-3f,
                               -0x1.2432c6p-3f, 0x1.646a50p-4f);
  const F32 tail = fnma(f2, F32::set1(0.5f), fma(f * f2, p, e * F32::set1(ln2_low)));
  return fma(e, F32::set1(ln2_high), f + tail);
}

#if !defined(SKUA_SIMD_LOOKS_UP)
// ln x to 1.25 ULP. ln 0 = -infinity, of negative numbers NaN.
SKUA_INL F32 log(F32 x) {
  const ByPower s = by_power(x);
  const F32 y = select(lt(x, F32::set1(infinity)), log_sum(s.e, s.f, s.f * s.f), x);
  const F32 not_positive = select(eq(x, F32::zero()), F32::set1(-infinity), F32::set1(__builtin_nanf("")));
  return select(le(x, F32::zero()), not_positive, y);
}
// The same of what is positive, finite and no denormal, without what only the others need: 11 operations of 36.
SKUA_INL M32 is_plain(F32 x) {
  return gt(I32::set1(static_cast<int32_t>(0xff000000u)), as_i32(x) + I32::set1(0x7f800000));
}
SKUA_INL F32 log_of_plain(F32 x) {
  const I32 root = I32::set1(0x3f3504f3), i = as_i32(x) - root;
  const F32 f = as_f32((i & I32::set1(0x007fffff)) + root) - F32::set1(1.0f);
  return log_sum(to_f32(shr<23>(i)), f, f * f);
}
#endif

// ln(1 + x) to 1.75 ULP. log1p(-1) = -infinity, of less NaN. With 1 + x = 2^e (1 + f), f is taken from x itself, with
// one rounding:
// f = 2^-e x + (2^-e - 1). A quarter of x and four times 2^-e keep the power normal for the largest x.
SKUA_INL F32 log1p(F32 x) {
  const F32 one = F32::set1(1.0f);
  const I32 power = as_i32(x + one) - I32::set1(0x3f3504f3);
  const F32 inverse = as_f32(I32::set1(0x40800000) - (power & I32::set1(static_cast<int32_t>(0xff800000u))));
  const F32 f = x * F32::set1(0.25f) * inverse + fma(inverse, F32::set1(0.25f), F32::set1(-1.0f));
  F32 y = log_sum(to_f32(shr<23>(power)), f, f * f);
  y = select(lt(x, F32::set1(infinity)), y, x);
  y = select(lt(abs(x), F32::set1(0x1p-25f)), x, y);
  const F32 not_inside = select(eq(x, -one), F32::set1(-infinity), F32::set1(__builtin_nanf("")));
  return select(le(x, -one), not_inside, y);
}

#if !defined(SKUA_SIMD_LOOKS_UP)
// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|) to 2.25 ULP (2.75 with tables).
SKUA_INL F32 softplus(F32 x) {
  const F32 t = exp_below_40(below_zero(x));
  const M32 above = gt(t, F32::set1(0.41421357f));
  const F32 f = select(above, fma(t, F32::set1(0.5f), F32::set1(-0.5f)), t), g = where_squares_count(t, f);
  return log_sum(keep_if(above, F32::set1(1.0f)), f, g * g) + clamp_low(x, F32::zero());
}
#endif

// x tanh(softplus x) = x n / (n + 2), n = e^x (e^x + 2), to 5.25 ULP + 2^-142; mish(-infinity) is -0.
SKUA_INL F32 mish(F32 x) {
  const F32 two = F32::set1(2.0f), y = clamp_low(x, F32::set1(power_end));
  const F32 t = exp(clamp_high(y, F32::set1(20.0f)));
  const F32 n = t * (t + two);
  return y * quotient(n, n + two);
}

// x = q pi/2 + r, |r| <= pi/4: r as a float, q modulo 4.
struct Quadrant {
  F32 r;
  I32 q;
};

// One x of any size: x = m 2^k, with the 96 bits of 2/pi of which m 2^k makes quadrants 0 to 3 and their fraction;
// whole turns drop out of the top of the product, and what lies below changes the result by less than 2^-33 of it.
__attribute__((noinline, cold)) inline void quadrant_of_large(const float* x, float* r, int32_t* q) {
  static constexpr uint32_t two_over_pi[] = {0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                             0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u};
  const uint32_t bits = __builtin_bit_cast(uint32_t, *x), exponent = bits >> 23 & 255;
  if (exponent == 255) {
    *r = *x - *x;
    *q = 0;
    return;
  }
  const uint32_t m = (bits & 0x7fffff) | 0x800000, skip = exponent - 150 + 30, at = skip / 32, shift = skip % 32;
  uint32_t w[3];
  for (uint32_t i = 0; i < 3; ++i) w[i] = two_over_pi[at + i] << shift | two_over_pi[at + i + 1] >> 1 >> (31 - shift);
  const uint64_t low = static_cast<uint64_t>(m) * w[2], middle = static_cast<uint64_t>(m) * w[1] + (low >> 32);
  const uint64_t turns = (static_cast<uint64_t>(m * w[0]) << 32) + middle;
  const uint64_t nearest = (turns + (uint64_t{1} << 61)) >> 62, left = turns - (nearest << 62);
  const double upper = static_cast<double>(static_cast<int32_t>(left >> 32)),
               lower = static_cast<double>(static_cast<uint32_t>(left));
  const double fraction = upper * 4294967296.0 + lower;
  const float magnitude = static_cast<float>(fraction * 0x1.921fb54442d18p-62);
  *r = bits >> 31 ? -magnitude : magnitude;
  *q = static_cast<int32_t>(bits >> 31 ? 0 - nearest : nearest);
}

// Up to the limit by parts of pi/2, all positive, which keeps the sign of a zero: three where fma is fused; otherwise
// four of 12 bits, whose products with n are exact, with what the last two subtractions round off carried along, and a
// rest. Beyond the limit lane by lane, which also makes NaN of infinity.
SKUA_INL Quadrant quadrant(F32 x) {
  const F32 shifted = fma(x, F32::set1(0x1.45f306p-1f), F32::set1(rounder(0)));
  const F32 n = shifted - F32::set1(rounder(0));
  Quadrant s = {x, as_i32(shifted)};
  if constexpr (F32::fused) {
    s.r =
        fnma(n, F32::set1(0x1.84698ap-48f), fnma(n, F32::set1(0x1.4442d0p-24f), fnma(n, F32::set1(0x1.921fb4p+0f), x)));
  } else {
    const F32 r = x - n * F32::set1(0x1.92p+0f) - n * F32::set1(0x1.fb4p-12f);
    const F32 third = n * F32::set1(0x1.444p-24f), after_third = r - third;
    const F32 fourth = n * F32::set1(0x1.68cp-39f), after_fourth = after_third - fourth;
    const F32 lost = ((r - after_third) - third) + ((after_third - after_fourth) - fourth);
    s.r = after_fourth - (n * F32::set1(0x1.1a6264p-54f) - lost);
  }
  constexpr float largest = F32::fused ? 100000.0f : 6400.0f;
  if (!all(le(abs(x), F32::set1(largest)))) {
    alignas(64) float xs[F32::L], rs[F32::L];
    alignas(64) int32_t qs[F32::L];
    x.store(xs), s.r.store(rs), s.q.store(qs);
    for (int i = 0; i < F32::L; ++i)
      if (!(xs[i] <= largest && xs[i] >= -largest)) quadrant_of_large(xs + i, rs + i, qs + i);
    s = {F32::load(rs), I32::load(qs)};
  }
  return s;
}

// sin(q pi/2 + r).
SKUA_INL F32 sin_of(Quadrant s) {
  const F32 t = s.r * s.r, one = F32::set1(1.0f);
  const F32 sine = s.r * fma(t, poly(t, -0x1.555546p-3f, 0x1.110774p-7f, -0x1.9951f8p-13f), one);
  const F32 cosine =
      fma(t * t, poly(t, 0x1.55554ap-5f, -0x1.6c0c28p-10f, 0x1.99e80ep-16f), fnma(t, F32::set1(0.5f), one));
  const F32 y = select(eq(s.q & I32::set1(1), I32::set1(1)), cosine, sine);
  return as_f32(as_i32(y) ^ shl<30>(s.q & I32::set1(2)));
}

// sin x and cos x to 2 ULP, for every x; of infinity NaN.
SKUA_INL F32 sin(F32 x) { return sin_of(quadrant(x)); }
SKUA_INL F32 cos(F32 x) {
  const Quadrant s = quadrant(x);
  return sin_of({s.r, s.q + I32::set1(1)});
}

// a * b - product, exactly, for the rounded product; no overflow for |a|, |b| < 2^104.
SKUA_INL F32 product_error(F32 a, F32 b, F32 product) {
  if constexpr (F32::fused) {
    return fma(a, b, -product);
  } else {
    const I32 upper = I32::set1(static_cast<int32_t>(0xfffff000u));
    const F32 ah = as_f32(as_i32(a) & upper), bh = as_f32(as_i32(b) & upper), al = a - ah, bl = b - bh;
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
  }
}

// x^y to 8 ULP with the special cases of C: e^(y ln |x|), ln |x| and the product in two floats each, and the sign from
// y's parity.
SKUA_INL F32 pow(F32 x, F32 y) {
  const F32 zero = F32::zero(), one = F32::set1(1.0f), a = abs(x);
  const ByPower s = by_power(a);
  // ln(1 + f) = high + low = 2 atanh(f / (2 + f)), with what the sum and the quotient round off.
  const F32 two = F32::set1(2.0f), d = s.f + two, inverse = quotient(one, d), t = s.f * inverse, td = t * d;
  const F32 left = ((s.f - td) - product_error(t, d, td)) - t * (s.f - (d - two));
  const F32 high = t + t, t2 = t * t;
  const F32 low = fma(t * t2, poly(t2, 0x1.55557ap-1f, 0x1.995ed4p-2f, 0x1.31e0dap-2f), two * left * inverse);
  // ln |x| = top + rest.
  const F32 e = s.e * F32::set1(ln2_high), sum1 = e + high;
  const F32 correction = (high - (sum1 - e)) + fma(s.e, F32::set1(ln2_low), low);
  F32 top = sum1 + correction;
  const F32 rest = correction - (top - sum1);
  top = select(eq(a, zero), F32::set1(-infinity), select(lt(a, F32::set1(infinity)), top, a));
  // Beyond 1e30 only the sign of y's product with a logarithm matters; kept finite, y makes 1 of ln 1 times it.
  const F32 factor = clamp_high(clamp_low(y, F32::set1(-1e30f)), F32::set1(1e30f));
  F32 z = factor * top;
  const F32 z_low = keep_if(lt(abs(z), F32::set1(200.0f)), product_error(factor, top, z) + factor * rest);
  z = clamp_high(clamp_low(z, F32::set1(power_end)), F32::set1(90.0f));
  const ByLn2 parts = by_ln2<power_bias>(z);
  F32 r = times_power(exp_poly(parts.r + z_low), parts);

  const F32 y_size = abs(y);
  const M32 whole = eq(round(y), y);
  const M32 odd = whole & lt(y_size, F32::set1(0x1p24f)) & eq(to_i32(y) & I32::set1(1), I32::set1(1));
  r = as_f32(as_i32(r) | (as_i32(keep_if(odd, x)) & I32::set1(INT32_MIN)));
  r = select(lt(x, zero) & gt(x, F32::set1(-infinity)) & ~whole, F32::set1(__builtin_nanf("")), r);
  return select(eq(y, zero) | eq(x, one), one, r);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
