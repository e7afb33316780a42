// exp, sigmoid, tanh, log and softplus where a vector register is a table of 16 floats and two are one of 32: a look-up
// is one instruction then, and the polynomials that follow are short. Included by math.h.
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

// 2^(k/16), and 2^(k/16 - 64): the unit keeps what sigmoid divides by finite for the smallest x.
alignas(64) constexpr float exp_piece[16] = {
    0x1.000000p+0f, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fe0p+0f, 0x1.3dea64p+0f,
    0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
    0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
constexpr float sigmoid_unit = 0x1p-64f;
alignas(64) constexpr float sigmoid_piece[16] = {
    0x1.000000p-64f, 0x1.0b5586p-64f, 0x1.172b84p-64f, 0x1.2387a6p-64f, 0x1.306fe0p-64f, 0x1.3dea64p-64f,
    0x1.4bfdaep-64f, 0x1.5ab07ep-64f, 0x1.6a09e6p-64f, 0x1.7a1148p-64f, 0x1.8ace54p-64f, 0x1.9c4918p-64f,
    0x1.ae89fap-64f, 0x1.c199bep-64f, 0x1.d5818ep-64f, 0x1.ea4afap-64f};

// x = sign (n ln 2 + r), |r| <= ln 2 / 32; the low four bits of shifted count the sixteenths of n.
struct BySixteenth {
  F32 shifted, n, r;
};
template <int sign, bool exact = true>
SKUA_INL BySixteenth by_sixteenth(F32 x) {
  const F32 round_to = F32::set1(rounder(0) / 16), inverse = F32::set1(sign * log2_e);
  const F32 shifted = fma(x, inverse, round_to), n = shifted - round_to;
  const F32 r = fma(n, F32::set1(sign * -0x1.62e430p-1f), x);  // off by n 2^-29
  return {shifted, n, exact ? fma(n, F32::set1(sign * 0x1.05c610p-29f), r) : r};
}

// e^x to 1.25 ULP for x up to 90. Underflows through the denormals to zero. Relative error of the polynomial 2^-29.2.
SKUA_INL F32 power_unscaled(BySixteenth s) {
  const F32 t = look_up_16(exp_piece, as_i32(s.shifted));
  return fma(t * s.r, poly(s.r, 1.0f, 0x1.000222p-1f, 0x1.5556d4p-3f), t);
}
SKUA_INL F32 power_from(F32 least, F32 x) {
  const BySixteenth s = by_sixteenth<1>(x);
  return scalef_unless(lt(x, least), power_unscaled(s), s.n);
}
SKUA_INL F32 exp_below_40(F32 x) { return power_from(F32::set1(-104.0f), x); }
// What softmax is made of: 0 below least_power, as without tables.
constexpr float power_scale = 1.0f, least_power = -80.0f;
SKUA_INL F32 scaled_power(F32 x) { return power_from(F32::set1(least_power), x); }
// Overflows to infinity.
SKUA_INL F32 exp(F32 x) { return exp_below_40(clamp_high(x, F32::set1(90.0f))); }

// 1 / (1 + e^-x) for x in [-131, 30] or NaN; otherwise than exact with another |x| 2^-28 of it as error.
template <bool exact = true>
SKUA_INL F32 sigmoid_in_range(F32 x) {
  const BySixteenth s = by_sixteenth<-1, exact>(x);
  const F32 power = scalef(look_up_16(sigmoid_piece, as_i32(s.shifted)), s.n), unit = F32::set1(sigmoid_unit);
  if (!exact) return quotient(unit, fma(power, poly(s.r, 1.0f, -1.0f, 0x1.000222p-1f, -0x1.5556d4p-3f), unit));
  return quotient(unit, fma(power * s.r, poly(s.r, -1.0f, 0x1.000222p-1f, -0x1.5556d4p-3f), power + unit));
}

// tanh x = sum of piece[i][k] (x - middle[k])^i, where k is the exponent of 1 + 1.66 x and two digits of its mantissa:
// intervals of 0.15 below 0.6, of 0.3 below 1.8, of 0.6 below 4.2, of 1.2 beyond, which end where tanh x rounds to 1.
// Fits of the relative error, below 2^-25.4. A middle's hyperbolic tangent is a float to within 2^-8 of its last digit.
// (32 pieces of two vectors take a permutation of two sources, slow on Zen 5.)
alignas(64) constexpr float tanh_middle[16] = {0x1.818ac4p-1f, 0x1.0de162p+0f, 0x1.5afc62p+0f, 0x1.a818d8p+0f,
                                               0x1.0de180p+1f, 0x1.5afcf8p+1f, 0x1.a81824p+1f, 0x1.f5349ap+1f,
                                               0x1.346d32p+2f, 0x1.819e06p+2f, 0x1.ce085ap+2f, 0x1.0a32f8p+3f, 0,
                                               0x1.cea6a0p-3f, 0x1.818af4p-2f, 0x1.0de098p-1f};
alignas(64) constexpr float tanh_piece[6][16] = {
    {0x1.461d4ep-1f, 0x1.911f46p-1f, 0x1.c02a9ap-1f, 0x1.dc09bap-1f, 0x1.f11efep-1f, 0x1.fb7e82p-1f, 0x1.fea52ap-1f,
     0x1.ff97f2p-1f, 0x1.ffeeeap-1f, 0x1.fffe78p-1f, 0x1.ffffdcp-1f, 0x1.fffffcp-1f, 0, 0x1.c6f02ep-3f, 0x1.704d4ap-2f,
     0x1.eec2a4p-2f},
    {0x1.3048aep-1f, 0x1.8b7d02p-2f, 0x1.ded5bap-3f, 0x1.1597a8p-3f, 0x1.d5351ep-5f, 0x1.1f1ab6p-6f, 0x1.5a60a0p-8f,
     0x1.a00ddap-10f, 0x1.116194p-12f, 0x1.880a82p-16f, 0x1.1fef0ap-19f, 0x1.ff0c48p-23f, 1, 0x1.e6bc3ap-1f,
     0x1.bdc436p-1f, 0x1.887988p-1f},
    {-0x1.839f58p-2f, -0x1.35d8aap-2f, -0x1.a32434p-3f, -0x1.0218acp-3f, -0x1.c78ee6p-5f, -0x1.1c8b58p-6f,
     -0x1.5968f8p-8f, -0x1.9fa8dep-10f, -0x1.109b48p-12f, -0x1.87051ep-16f, -0x1.1ebf38p-19f, -0x1.f06b66p-23f,
     0x1.2cfd2ap-20f, -0x1.b07cbcp-3f, -0x1.40a814p-2f, -0x1.7b424cp-2f},
    {0x1.603484p-5f, 0x1.bbaaeep-4f, 0x1.9e8d62p-4f, 0x1.26e0dap-4f, 0x1.1df496p-5f, 0x1.74b63cp-7f, 0x1.ca1c1ap-9f,
     0x1.14aa32p-10f, 0x1.6b56f6p-13f, 0x1.04930cp-16f, 0x1.7fe514p-20f, 0x1.4f0562p-23f, -0x1.5563b0p-2f,
     -0x1.14759ap-2f, -0x1.6bb39cp-3f, -0x1.39a162p-4f},
    {0x1.948a9cp-4f, 0x1.1015b6p-6f, -0x1.47b766p-6f, -0x1.96940ep-6f, -0x1.f91fbap-7f, -0x1.6c3cbep-8f,
     -0x1.cc7e66p-10f, -0x1.186676p-11f, -0x1.85520cp-14f, -0x1.1737dap-17f, -0x1.9ece72p-21f, -0x1.cb1908p-24f,
     0x1.d45b18p-11f, 0x1.09e7c6p-3f, 0x1.57783ep-3f, 0x1.47e2c6p-3f},
    {-0x1.029464p-4f, -0x1.49200ep-5f, -0x1.670136p-7f, 0x1.0f3614p-9f, 0x1.25cad0p-8f, 0x1.0d29e6p-9f, 0x1.680cf6p-11f,
     0x1.bd8914p-13f, 0x1.36a97cp-15f, 0x1.bf7444p-19f, 0x1.3cccb4p-22f, 0x1.b280c4p-25f, 0x1.06bc02p-3f,
     0x1.5320b6p-4f, 0x1.320eeap-6f, -0x1.1a0c74p-5f}};

// tanh x to 1.11 ULP, of every float.
SKUA_INL F32 tanh(F32 x) {
  const F32 a = clamp_high(abs(x), F32::set1(9.02f));
  const I32 k = shr<21>(as_i32(fma(a, F32::set1(1.66f), F32::set1(1.0f))));
  const F32 t = a - look_up_16(tanh_middle, k);
  F32 y = look_up_16(tanh_piece[5], k);
  SKUA_UNROLL for (int i = 4; i >= 0; --i) y = fma(y, t, look_up_16(tanh_piece[i], k));
  return copysign(y, x);
}

// By the first four digits of a mantissa in [1, 2): about its reciprocal, and minus the logarithm of that, which is
// within 2^-34 of a float.
// Above 3/2 the second table has those of half the number. 1 itself stands next to 1, on both sides.
alignas(64) constexpr float reciprocal_piece[16] = {0x1.000000p+0f, 0x1.d3ac8ap-1f, 0x1.ba6b1ap-1f, 0x1.a469ccp-1f,
                                                    0x1.8ff0f8p-1f, 0x1.7d43b6p-1f, 0x1.6b8e40p-1f, 0x1.5c5efap-1f,
                                                    0x1.4dd37cp-1f, 0x1.417914p-1f, 0x1.34964ap-1f, 0x1.29dbf4p-1f,
                                                    0x1.1fc6fep-1f, 0x1.154018p-1f, 0x1.0c8520p-1f, 0x1.048122p-1f};
alignas(64) constexpr float logarithm_piece[16] = {0.0f,           0x1.72e7e8p-4f, 0x1.2b260cp-3f, 0x1.93a20cp-3f,
                                                   0x1.f9debep-3f, 0x1.2de840p-2f, 0x1.5e9c10p-2f, 0x1.8a4c48p-2f,
                                                   0x1.b5f824p-2f, 0x1.dc94c0p-2f, 0x1.033c74p-1f, 0x1.155a32p-1f,
                                                   0x1.26fb84p-1f, 0x1.3a100cp-1f, 0x1.4a71c2p-1f, 0x1.59f5fap-1f};
alignas(64) constexpr float reciprocal_near_1[16] = {0x1.000000p+0f, 0x1.d3ac8ap-1f, 0x1.ba6b1ap-1f, 0x1.a469ccp-1f,
                                                     0x1.8ff0f8p-1f, 0x1.7d43b6p-1f, 0x1.6b8e40p-1f, 0x1.5c5efap-1f,
                                                     0x1.4ed662p+0f, 0x1.41525ap+0f, 0x1.34e2cap+0f, 0x1.29718cp+0f,
                                                     0x1.1ee658p+0f, 0x1.15fa5ap+0f, 0x1.0c29aep+0f, 0x1.000000p+0f};
alignas(64) constexpr float logarithm_near_1[16] = {0.0f, 0x1.72e7e8p-4f, 0x1.2b260cp-3f, 0x1.93a20cp-3f,
                                                    0x1.f9debep-3f, 0x1.2de840p-2f, 0x1.5e9c10p-2f, 0x1.8a4c48p-2f,
                                                    -0x1.12e932p-2f, -0x1.d1707ap-3f, -0x1.809a66p-3f, -0x1.334bd6p-3f,
                                                    -0x1.d2c304p-4f, -0x1.515d3ap-4f, -0x1.7c3f34p-5f, 0.0f};

// ln(1 + f) for f in [-1/32, 1/16]: relative error of the polynomial 2^-28.3.
SKUA_INL F32 log1p_of_small(F32 f, F32 f2) {
  return fma(f2, poly(f, -0.5f, 0x1.555836p-2f, -0x1.001314p-2f, 0x1.825cbcp-3f), f);
}

// ln x to 1.25 ULP: x = 2^e m, m in [3/4, 3/2). The exponent of 0 is -infinity, that of infinity infinite; negative
// numbers give NaN.
SKUA_INL F32 log(F32 x) {
  const F32 m = mantissa_near_1(x), e = exponent(x) - exponent(m);
  const I32 k = shr<19>(as_i32(m));
  const F32 f = fma(m, look_up_16(reciprocal_near_1, k), F32::set1(-1.0f));
  return fma(e, F32::set1(0x1.62e430p-1f), look_up_16(logarithm_near_1, k) + log1p_of_small(f, f * f));
}

// 1 / sqrt(x) to 1 ULP. Of a zero the infinity of its sign.
SKUA_INL F32 rsqrt(F32 x) {
  const F32 m = mantissa_half_to_2(x), half = F32::set1(0.5f), y = rsqrt_14(m), r = fnma(m * y, y, F32::set1(1.0f));
  return special_root<-1>(scalef(fma(y * r, fma(r, F32::set1(0.375f), half), y), exponent(x) * F32::set1(-0.5f)), x);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|, to 2.75 ULP. With 1 + t = m / c, c from the table, m - 1 is taken
// from t itself; what chooses the piece stays below 2.
SKUA_INL F32 softplus(F32 x) {
  const F32 t = exp_below_40(below_zero(x)), one = F32::set1(1.0f);
  const I32 k = shr<19>(as_i32(fma(t, F32::set1(0.999f), one)));
  const F32 c = look_up_16(reciprocal_piece, k), f = fma(t, c, c - one), g = where_squares_count(t, f);
  return look_up_16(logarithm_piece, k) + log1p_of_small(f, g * g) + clamp_low(x, F32::zero());
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
