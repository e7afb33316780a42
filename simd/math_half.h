// Elementary functions of F16 vectors (simd/half.h), in halves throughout: to 2 ULP of f16 where no comment says
// otherwise. tests/unary_test.cc compares all 65536 arguments. NaN gives NaN.
//
// Coefficients are halves: those of exp and tanh found by search for the least largest error of the function as it is
// computed, those of log by least squares, rounded.
#pragma once

#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL F16 poly(F16, float c) { return F16::set1(c); }
template <class... Rest>
SKUA_INL F16 poly(F16 x, float c, Rest... rest) {
  return fma(poly(x, rest...), x, F16::set1(c));
}

// ln 2 in two parts: the first has 4 bits, so what n times it leaves of x is exact.
constexpr float half_ln2_high = 0x1.6p-1f, half_ln2_low = 0x1.72p-8f, half_log2_e = 0x1.714p+0f;
// Beyond, e^-x is less than half of the least denormal.
constexpr float half_exp_end = 18.0f;

// p * 2^n, n in [-30, 30]: without scalef in two factors, of which the first product is exact and the second rounds
// once, also into the denormals. The low bits of `shifted` are n + half_power_bias: adding 1536 and that rounds to an
// integer, to even.
constexpr int half_power_bias = F16::has_scalef ? 0 : 30;
constexpr float half_rounder = 1536.0f + half_power_bias;
template <class V>
SKUA_INL V times_power(V p, V n, V shifted) {
  if constexpr (V::has_scalef) {
    return scalef(p, n);
  } else {
    const I16 bits = as_i16(shifted), half = shr<1>(bits);
    return p * as_f16(shl<10>(half)) * as_f16(shl<10>(bits - half));
  }
}

// e^x to 1 ULP.
SKUA_INL F16 exp(F16 x) {
  x = clamp_high(clamp_low(x, F16::set1(-half_exp_end)), F16::set1(12.0f));
  const F16 rounder = F16::set1(half_rounder), shifted = fma(x, F16::set1(half_log2_e), rounder), n = shifted - rounder,
            r = fnma(n, F16::set1(half_ln2_low), fnma(n, F16::set1(half_ln2_high), x));
  return times_power(poly(r, 1.0f, 1.0f, 0x1.02p-1f, 0x1.54p-3f), n, shifted);
}
// e^-x for x in [0, half_exp_end] or NaN.
SKUA_INL F16 exp_of_minus(F16 x) {
  const F16 rounder = F16::set1(half_rounder), shifted = fnma(x, F16::set1(half_log2_e), rounder),
            n = shifted - rounder, r = fma(n, F16::set1(half_ln2_low), fma(n, F16::set1(half_ln2_high), x));
  return times_power(poly(r, 1.0f, -1.0f, 0x1.02p-1f, -0x1.54p-3f), n, shifted);
}

// a / b, nearly rounded once: what a product with the reciprocal leaves makes up for its error. For b in
// [2^-13, 2^13]; of a zero the sign is lost. (Sapphire Rapids divides 32 halves in some 40 cycles.)
SKUA_INL F16 quotient(F16 a, F16 b) {
  const F16 inverse = reciprocal(b), q = a * inverse;
  return fma(fnma(q, b, a), inverse, q);
}

// 1 / (1 + e^-x), below 0 as e^x / (1 + e^x), which loses no small result.
SKUA_INL F16 sigmoid(F16 x) {
  const F16 one = F16::set1(1.0f), t = exp_of_minus(clamp_high(abs(x), F16::set1(half_exp_end)));
  return quotient(select(lt(x, F16::zero()), t, one), one + t);
}

// x sigmoid(x) to 3 ULP and 2^-20: powers that are denormal, times x; silu(-infinity) is -0.
SKUA_INL F16 silu(F16 x) {
  x = clamp_low(x, F16::set1(-half_exp_end));
  return x * sigmoid(x);
}

// x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)) to 2 ULP and 2^-12: far below zero the result shrinks as e to the rounded
// cube.
SKUA_INL F16 gelu_tanh(F16 x) {
  x = clamp_low(x, F16::set1(-12.0f));
  return x * sigmoid(x * fma(x * x, F16::set1(0.07135481627f), F16::set1(1.595769122f)));
}

// A quotient of polynomials of x^2 to 3 ULP, which is 1 at the end.
SKUA_INL F16 tanh(F16 x) {
  const F16 end = F16::set1(0x1.134p+2f), c = clamp_high(clamp_low(x, -end), end), c2 = c * c;
  return copysign(quotient(c * poly(c2, 1.0f, 0x1.adp-4f, 0x1.7ep-11f), poly(c2, 1.0f, 0x1.c0cp-2f, 0x1.b9p-7f)), x);
}

// ln x to 1 ULP, of x = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2). ln 0 = -infinity, of negative numbers NaN.
SKUA_INL F16 log(F16 x) {
  const M16 tiny = lt(x, F16::set1(0x1p-14f));
  const I16 root = I16::set1(0x39a8), i = as_i16(select(tiny, x * F16::set1(0x1p10f), x)) - root;
  const F16 e = to_f16(shr<10>(i)) - select(tiny, F16::set1(10.0f), F16::zero()),
            f = as_f16((i & I16::set1(0x3ff)) + root) - F16::set1(1.0f),
            tail = fma(f * f, poly(f, -0.49947277f, 0.33573016f, -0.27054156f, 0.17869985f),
                       e * F16::set1(half_ln2_low)),
            y = fma(e, F16::set1(half_ln2_high), f + tail);
  const F16 not_positive =
      select(lt(abs(x), F16::set1(0x1p-24f)), F16::set1(-__builtin_inff()), F16::set1(__builtin_nanf("")));
  return select(gt(x, F16::zero()), select(lt(x, F16::set1(__builtin_inff())), y, x), not_positive);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
