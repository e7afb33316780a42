// exp, sigmoid, tanh, log and softplus where a vector register is a table of 16 floats and two are one of 32: a look-up is one instruction then, and the
// polynomials that follow are short. Included by math.h.
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
SKUA_INL F32 exp_below_40(F32 x) {
  const BySixteenth s = by_sixteenth<1>(clamp_low(x, F32::set1(-105.0f)));
  const F32 t = look_up_16(exp_piece, as_i32(s.shifted));
  return scalef(fma(t * s.r, poly(s.r, 1.0f, 0x1.000222p-1f, 0x1.5556d4p-3f), t), s.n);
}
// What a sum of powers is made of.
constexpr float power_scale = 1.0f;
SKUA_INL F32 scaled_power(F32 x) { return exp_below_40(x); }
// Overflows to infinity.
SKUA_INL F32 exp(F32 x) { return exp_below_40(clamp_high(x, F32::set1(90.0f))); }

// 1 / (1 + e^-x) for x in [-113, 30] or NaN; otherwise than exact with another |x| 2^-28 of it as error.
template <bool exact = true>
SKUA_INL F32 sigmoid_in_range(F32 x) {
  const BySixteenth s = by_sixteenth<-1, exact>(x);
  const F32 power = scalef(look_up_16(sigmoid_piece, as_i32(s.shifted)), s.n), unit = F32::set1(sigmoid_unit);
  if (!exact) return quotient(unit, fma(power, poly(s.r, 1.0f, -1.0f, 0x1.000222p-1f, -0x1.5556d4p-3f), unit));
  return quotient(unit, fma(power * s.r, poly(s.r, -1.0f, 0x1.000222p-1f, -0x1.5556d4p-3f), power + unit));
}

// tanh x = sum of piece[i][k] (x - middle[k])^i, where k is the exponent of 1 + x and two digits of its mantissa: intervals of 1/4 below 1, of 1/2 below 3, of 1 below 7, of 2 beyond. Fits of the
// relative error, below 2^-27.2. A middle's hyperbolic tangent is a float to within 2^-8 of its last digit. (32 pieces of two vectors take a permutation of two sources, slow on Zen 5.)
alignas(64) constexpr float tanh_middle[16] = {
    0x1.400036p+0f, 0x1.bfff90p+0f, 0x1.1ffedcp+1f, 0x1.5fffe6p+1f, 0x1.bfff5cp+1f, 0x1.2000dcp+2f, 0x1.6005f2p+2f, 0x1.9fef28p+2f, 0x1.fe2804p+2f, 0x1.200000p+3f, 0x1.200000p+3f,
     0x1.200000p+3f, 0, 0x1.80002ep-2f, 0x1.3ffe62p-1f, 0x1.c0003ep-1f};
alignas(64) constexpr float tanh_piece[7][16] = {
    {0x1.b2525ap-1f, 0x1.e1fbe0p-1f, 0x1.f4bfa4p-1f, 0x1.fbd508p-1f, 0x1.ff112ap-1f, 0x1.ffdfa8p-1f, 0x1.fffba0p-1f, 0x1.ffff68p-1f, 0x1.fffff8p-1f, 1, 1, 1, 0, 0x1.6ef566p-2f,
     0x1.1bf360p-1f, 0x1.686670p-1f},
    {0x1.1f24a4p-2f, 0x1.d22e14p-4f, 0x1.6416bep-5f, 0x1.09a814p-6f, 0x1.dd3efap-9f, 0x1.02b94ap-11f, 0x1.18006cp-14f, 0x1.30018ep-17f, 0x1.0064fep-21f, 0, 0, 0, 1, 0x1.be3facp-1f,
     0x1.628602p-1f, 0x1.024fdep-1f},
    {-0x1.e7288ap-3f, -0x1.b6d9a0p-4f, -0x1.5c438ap-5f, -0x1.077e88p-6f, -0x1.dc5ed6p-9f, -0x1.02a846p-11f, -0x1.17fd7cp-14f, -0x1.300022p-17f, -0x1.ffda1cp-22f, 0, 0, 0, -0x1.343d66p-20f,
     -0x1.3fd56ep-2f, -0x1.893b26p-2f, -0x1.6ba7acp-2f},
    {0x1.bbb444p-4f, 0x1.01c1a2p-4f, 0x1.bbd592p-6f, 0x1.5994f4p-7f, 0x1.3c1f3ap-9f, 0x1.58571cp-12f, 0x1.74e464p-15f, 0x1.94e536p-18f, 0x1.4f1ff6p-22f, 0, 0, 0, -0x1.554450p-2f,
     -0x1.6dc386p-3f, -0x1.246834p-6f, 0x1.4f142ap-4f},
    {-0x1.9c6fe8p-7f, -0x1.8169fcp-6f, -0x1.93cb60p-7f, -0x1.4e330ap-8f, -0x1.39f1bep-10f, -0x1.581ca0p-13f, -0x1.74ef50p-16f, -0x1.951144p-19f, -0x1.552e74p-23f, 0, 0, 0, -0x1.3ba50ep-10f,
     0x1.5856eap-3f, 0x1.1a6306p-3f, 0x1.f20356p-5f},
    {-0x1.42a7e8p-6f, 0x1.c88122p-9f, 0x1.04a28cp-8f, 0x1.f5f862p-10f, 0x1.011b9cp-11f, 0x1.1e75b4p-14f, 0x1.372832p-17f, 0x1.51fc2ep-20f, 0x1.41a19ep-24f, 0, 0, 0, 0x1.253a3cp-3f,
     0x1.339b8ap-6f, -0x1.bc2c88p-5f, -0x1.dffa4cp-5f},
    {0x1.ef1d02p-7f, 0x1.11c9c6p-9f, -0x1.7c9c0ep-11f, -0x1.209130p-11f, -0x1.496716p-13f, -0x1.7a017ap-16f, -0x1.9caffap-19f, -0x1.beafcep-22f, -0x1.877a60p-26f, 0, 0, 0, -0x1.30226cp-5f,
     -0x1.1f8058p-4f, -0x1.81004cp-6f, 0x1.ab58aap-7f}};

// tanh x to 1.75 ULP.
SKUA_INL F32 tanh(F32 x) {
  const F32 a = clamp_high(abs(x), F32::set1(9.02f));
  const I32 k = shr<21>(as_i32(a + F32::set1(1.0f)));
  const F32 t = a - look_up_16(tanh_middle, k);
  F32 y = look_up_16(tanh_piece[6], k);
  SKUA_UNROLL for (int i = 5; i >= 0; --i) y = fma(y, t, look_up_16(tanh_piece[i], k));
  return copysign(y, x);
}

// By the first four digits of a mantissa in [1, 2): about its reciprocal, and minus the logarithm of that, which is within 2^-34 of a float.
// Above 3/2 the second table has those of half the number. 1 itself stands next to 1, on both sides.
alignas(64) constexpr float reciprocal_piece[16] = {
    0x1.000000p+0f, 0x1.d3ac8ap-1f, 0x1.ba6b1ap-1f, 0x1.a469ccp-1f, 0x1.8ff0f8p-1f, 0x1.7d43b6p-1f, 0x1.6b8e40p-1f, 0x1.5c5efap-1f,
    0x1.4dd37cp-1f, 0x1.417914p-1f, 0x1.34964ap-1f, 0x1.29dbf4p-1f, 0x1.1fc6fep-1f, 0x1.154018p-1f, 0x1.0c8520p-1f, 0x1.048122p-1f};
alignas(64) constexpr float logarithm_piece[16] = {
    0.0f, 0x1.72e7e8p-4f, 0x1.2b260cp-3f, 0x1.93a20cp-3f, 0x1.f9debep-3f, 0x1.2de840p-2f, 0x1.5e9c10p-2f, 0x1.8a4c48p-2f, 0x1.b5f824p-2f,
    0x1.dc94c0p-2f, 0x1.033c74p-1f, 0x1.155a32p-1f, 0x1.26fb84p-1f, 0x1.3a100cp-1f, 0x1.4a71c2p-1f, 0x1.59f5fap-1f};
alignas(64) constexpr float reciprocal_near_1[16] = {
    0x1.000000p+0f, 0x1.d3ac8ap-1f, 0x1.ba6b1ap-1f, 0x1.a469ccp-1f, 0x1.8ff0f8p-1f, 0x1.7d43b6p-1f, 0x1.6b8e40p-1f, 0x1.5c5efap-1f,
    0x1.4ed662p+0f, 0x1.41525ap+0f, 0x1.34e2cap+0f, 0x1.29718cp+0f, 0x1.1ee658p+0f, 0x1.15fa5ap+0f, 0x1.0c29aep+0f, 0x1.000000p+0f};
alignas(64) constexpr float logarithm_near_1[16] = {
    0.0f, 0x1.72e7e8p-4f, 0x1.2b260cp-3f, 0x1.93a20cp-3f, 0x1.f9debep-3f, 0x1.2de840p-2f, 0x1.5e9c10p-2f, 0x1.8a4c48p-2f, -0x1.12e932p-2f,
    -0x1.d1707ap-3f, -0x1.809a66p-3f, -0x1.334bd6p-3f, -0x1.d2c304p-4f, -0x1.515d3ap-4f, -0x1.7c3f34p-5f, 0.0f};

// ln(1 + f) for f in [-1/32, 1/16]: relative error of the polynomial 2^-28.3.
SKUA_INL F32 log1p_of_small(F32 f) { return fma(f * f, poly(f, -0.5f, 0x1.555836p-2f, -0x1.001314p-2f, 0x1.825cbcp-3f), f); }

// ln x to 1.25 ULP: x = 2^e m, m in [3/4, 3/2). The exponent of 0 is -infinity, that of infinity infinite; negative numbers give NaN.
SKUA_INL F32 log(F32 x) {
  const F32 m = mantissa_near_1(x), e = exponent(x) - exponent(m);
  const I32 k = shr<19>(as_i32(m));
  const F32 f = fma(m, look_up_16(reciprocal_near_1, k), F32::set1(-1.0f));
  return fma(e, F32::set1(0x1.62e430p-1f), look_up_16(logarithm_near_1, k) + log1p_of_small(f));
}

// 1 / sqrt(x) to 1 ULP. Of a zero the infinity of its sign.
SKUA_INL F32 rsqrt(F32 x) {
  const F32 m = mantissa_half_to_2(x), half = F32::set1(0.5f), y = rsqrt_14(m), r = fnma(m * y, y, F32::set1(1.0f));
  return special_root<-1>(scalef(fma(y * r, fma(r, F32::set1(0.375f), half), y), exponent(x) * F32::set1(-0.5f)), x);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|, to 2.75 ULP. With 1 + t = m / c, c from the table, m - 1 is taken from t itself; what
// chooses the piece stays below 2.
SKUA_INL F32 softplus(F32 x) {
  const F32 t = exp_below_40(-abs(x)), one = F32::set1(1.0f);
  const I32 k = shr<19>(as_i32(fma(t, F32::set1(0.999f), one)));
  const F32 c = look_up_16(reciprocal_piece, k);
  return look_up_16(logarithm_piece, k) + log1p_of_small(fma(t, c, c - one)) + clamp_low(x, F32::zero());
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
