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

// tanh x = sum of piece[i][k] (x - k step)^i for x within step / 2 of k step; minimax fits of the relative error, below 2^-24.7. The last
// piece is 1.
constexpr float tanh_step = 73 / 256.0f;
alignas(64) constexpr float tanh_piece[7][32] = {
    {0, 0x1.1c55acp-2f, 0x1.07fb40p-1f, 0x1.6348eap-1f, 0x1.a11674p-1f, 0x1.c816c8p-1f, 0x1.df9f54p-1f, 0x1.ed70b6p-1f, 0x1.f56c8ap-1f,
     0x1.f9fe70p-1f, 0x1.fc9884p-1f, 0x1.fe1298p-1f, 0x1.fee8d4p-1f, 0x1.ff6218p-1f, 0x1.ffa6b4p-1f, 0x1.ffcd82p-1f, 0x1.ffe374p-1f,
     0x1.ffefdcp-1f, 0x1.fff6e0p-1f, 0x1.fffad8p-1f, 0x1.fffd16p-1f, 0x1.fffe5ap-1f, 0x1.ffff12p-1f, 0x1.ffff7ap-1f, 0x1.ffffb4p-1f,
     0x1.ffffd4p-1f, 0x1.ffffe8p-1f, 0x1.fffff2p-1f, 0x1.fffff8p-1f, 0x1.fffffcp-1f, 0x1.fffffep-1f, 1},
    {1, 0x1.d8863ap-1f, 0x1.77e4e8p-1f, 0x1.097658p-1f, 0x1.5875d6p-2f, 0x1.a6ddb0p-3f, 0x1.f5a97ap-4f, 0x1.2392bcp-4f, 0x1.4ef002p-5f,
     0x1.7e22e0p-6f, 0x1.b24ac0p-7f, 0x1.ec799ep-8f, 0x1.16e052p-8f, 0x1.3b9de8p-9f, 0x1.650dd8p-10f, 0x1.93d6f8p-11f, 0x1.c8b270p-12f,
     0x1.0237b0p-12f, 0x1.23fb46p-13f, 0x1.4a271cp-14f, 0x1.754f2ep-15f, 0x1.a61a9cp-16f, 0x1.dd4644p-17f, 0x1.0dd3cep-17f,
     0x1.3117fap-18f, 0x1.58f80ep-19f, 0x1.860e46p-20f, 0x1.b90902p-21f, 0x1.f2ad70p-22f, 0x1.19ed3cp-22f, 0x1.3ec61ap-23f, 0},
    {0, -0x1.0669fep-2f, -0x1.83a0f0p-2f, -0x1.70663ep-2f, -0x1.1897eep-2f, -0x1.78b8bep-3f, -0x1.d5e3f2p-4f, -0x1.18f116p-4f,
     -0x1.4824d0p-5f, -0x1.79bcaap-6f, -0x1.aeb3f6p-7f, -0x1.e984cap-8f, -0x1.1707a2p-8f, -0x1.38d5d4p-9f, -0x1.5fa326p-10f,
     -0x1.8ae42ep-11f, -0x1.c72a8ep-12f, -0x1.f5c9a4p-13f, -0x1.204ef8p-13f, -0x1.903130p-14f, -0x1.ff2b16p-15f, -0x1.d4f93ap-16f,
     -0x1.03a690p-15f, -0x1.0c756cp-15f, -0x1.892538p-17f, 0x1.5771b6p-16f, -0x1.7db01ep-17f, 0x1.47cd28p-18f, 0x1.4f0666p-18f,
     -0x1.6d263cp-17f, -0x1.b462d8p-17f, 0},
    {-0x1.5552d6p-2f, -0x1.e44f6ep-3f, -0x1.96254ap-5f, 0x1.3ab82ep-4f, 0x1.c715e6p-4f, 0x1.8531ccp-4f, 0x1.110156p-4f, 0x1.5b41fap-5f,
     0x1.a3306ap-6f, 0x1.ebb086p-7f, 0x1.1bc5e6p-7f, 0x1.449d62p-8f, 0x1.717748p-9f, 0x1.a34c34p-10f, 0x1.db18acp-11f, 0x1.0ce9acp-11f,
     0x1.30430cp-12f, 0x1.582888p-13f, 0x1.8538dap-14f, 0x1.b825f8p-15f, 0x1.f1b50ep-16f, 0x1.19648cp-16f, 0x1.3e2d42p-17f,
     0x1.67c3a2p-18f, 0x1.96c8d6p-19f, 0x1.cbf47cp-20f, 0x1.04091cp-20f, 0x1.260638p-21f, 0x1.4c728cp-22f, 0x1.77e802p-23f,
     0x1.a90848p-24f, 0},
    {0, 0x1.35c75cp-3f, 0x1.3a7356p-3f, 0x1.081590p-4f, -0x1.763cccp-11f, -0x1.5bde1ep-6f, -0x1.a54258p-6f, -0x1.4706fep-6f,
     -0x1.3e9820p-7f, -0x1.a8c204p-8f, -0x1.cb32a6p-8f, -0x1.2fb172p-8f, 0x1.7cfcd8p-14f, -0x1.a19e4ap-9f, -0x1.8cb92ap-9f,
     -0x1.405ccep-9f, -0x1.52bd04p-12f, -0x1.0356bcp-10f, -0x1.1ea4e8p-12f, 0x1.1a2e90p-9f, 0x1.171d64p-9f, 0x1.756baep-12f,
     0x1.1d76b6p-9f, 0x1.996a4ep-9f, 0x1.e9b1e2p-11f, -0x1.8a244cp-9f, 0x1.5339ecp-10f, -0x1.8677eap-11f, -0x1.75556cp-11f,
     0x1.6b30a0p-10f, 0x1.b7b7e0p-10f, 0},
    {0x1.0df638p-3f, 0x1.d6728ep-5f, -0x1.65edfep-5f, -0x1.ee3114p-5f, -0x1.f2b5b4p-6f, -0x1.a15208p-8f, 0x1.92018ap-9f, 0x1.372c60p-8f,
     0x1.fa01eep-9f, 0x1.5232b0p-9f, 0x1.a214acp-10f, 0x1.f1201ap-11f, 0x1.1fddc8p-11f, 0x1.4bf96ep-12f, 0x1.7a333ap-13f, 0x1.adf546p-14f,
     0x1.e7bda0p-15f, 0x1.14307cp-15f, 0x1.3895dcp-16f, 0x1.6133cap-17f, 0x1.8fb202p-18f, 0x1.c2d87cp-19f, 0x1.fde546p-20f,
     0x1.209662p-20f, 0x1.46c042p-21f, 0x1.71003ap-22f, 0x1.a138eap-23f, 0x1.d706c6p-24f, 0x1.0b1fe2p-24f, 0x1.2cb102p-25f,
     0x1.549c66p-26f, 0},
    {0, -0x1.36ad20p-4f, -0x1.77955ap-4f, 0x1.450366p-4f, 0x1.18ac60p-4f, -0x1.e3f336p-5f, 0x1.ab61b2p-5f, 0x1.078d38p-4f, -0x1.0cc792p-4f,
     -0x1.6e8daep-6f, 0x1.73910cp-4f, 0x1.245170p-4f, -0x1.8f8124p-5f, 0x1.3f4060p-4f, 0x1.581ffap-4f, 0x1.247f96p-4f, 0x1.7bcfa0p-8f,
     0x1.e52d72p-6f, 0x1.e443f0p-8f, -0x1.2372fcp-4f, -0x1.1ec9f4p-4f, -0x1.86052cp-7f, -0x1.23e97ap-4f, -0x1.a21c3ep-4f, -0x1.f47a76p-6f,
     0x1.920d08p-4f, -0x1.5a427ep-5f, 0x1.8e454ep-6f, 0x1.7cd8b0p-6f, -0x1.729ac0p-5f, -0x1.c0ae8cp-5f, 0}};

// tanh x to 1.5 ULP.
SKUA_INL F32 tanh(F32 x) {
  const F32 a = clamp_high(abs(x), F32::set1(31 * tanh_step));
  const F32 shifted = fma(a, F32::set1(1 / tanh_step), F32::set1(rounder(0)));
  const F32 t = fnma(shifted - F32::set1(rounder(0)), F32::set1(tanh_step), a);
  const I32 k = as_i32(shifted);
  F32 y = look_up_32(tanh_piece[6], k);
  SKUA_UNROLL for (int i = 5; i >= 0; --i) y = fma(y, t, look_up_32(tanh_piece[i], k));
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
  return special_root<1>(scalef(fma(y * r, fma(r, F32::set1(0.375f), half), y), exponent(x) * F32::set1(-0.5f)), x);
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
