// Compiled once per instruction set that computes with halves: the operations of simd/half.h as loops over arrays, for
// half_test.cc.
#include "tests/half_unit.h"

#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

using skua_test::HalfOp;
using skua_test::HalfUnit;

constexpr int L = F16::L;

// Copied, so that no test looks at one type through another.
SKUA_INL F16 in(const uint16_t* p) {
  f16 h[L];
  for (int i = 0; i < L; ++i) h[i].bits = p[i];
  return F16::load(h);
}
SKUA_INL void out_of(F16 x, uint16_t* p) {
  f16 h[L];
  x.store(h);
  for (int i = 0; i < L; ++i) p[i] = h[i].bits;
}

#define MAP(name, expression)                                                                      \
  {name, [](const uint16_t* pa, const uint16_t* pb, const uint16_t* pc, uint16_t* out, size_t n) { \
     for (size_t i = 0; i < n; i += L) {                                                           \
       [[maybe_unused]] const F16 a = in(pa + i), b = in(pb + i), c = in(pc + i);                  \
       out_of(expression, out + i);                                                                \
     }                                                                                             \
   }}
// a's digits and sign, with an exponent for [1/2, 1).
SKUA_INL F16 mantissa(F16 a) {
  return copysign(as_f16((as_i16(a) & I16::set1(0x3ff)) + I16::set1(0x3800)), a);
}
template <class V> SKUA_INL V scaled(V a, [[maybe_unused]] V n) {
  if constexpr (V::has_scalef) return scalef(a, n);
  else return a;
}
#define TRUTH(mask) select(mask, F16::set1(1.0f), F16::zero())

constexpr HalfOp ops[] = {
    MAP("add", a + b),
    MAP("sub", a - b),
    MAP("mul", a* b),
    MAP("neg", -a),
    MAP("abs", abs(a)),
    MAP("fma", fma(a, b, c)),
    MAP("fnma", fnma(a, b, c)),
    MAP("min", min(a, b)),
    MAP("max", max(a, b)),
    MAP("clamp_low", clamp_low(a, b)),
    MAP("clamp_high", clamp_high(a, b)),
    MAP("lt", TRUTH(lt(a, b))),
    MAP("gt", TRUTH(gt(a, b))),
    MAP("select", select(lt(a, b), a, c)),
    MAP("reciprocal", reciprocal(a)),
    MAP("copysign", copysign(a, b)),
    MAP("floor", floor(a)),
    MAP("ceil", ceil(a)),
    MAP("round", round(a)),
    MAP("trunc", trunc(a)),
    MAP("scalef", scaled(mantissa(a), to_f16((as_i16(b) & I16::set1(63)) - I16::set1(35)))),
    MAP("integers", to_f16((shr<3>(as_i16(a)) & I16::set1(0x7ff)) + as_i16(b) - as_i16(c))),
    MAP("bits", as_f16(shl<3>(shr<5>(as_i16(a))))),
    {nullptr, nullptr},
};

template <class V, int i = 0> SKUA_INL void fma_lanes(V acc, V b, V a, uint16_t* out) {
  out_of(fma_lane<i>(acc, b, a), out + i * V::L);
  if constexpr (i + 1 < V::L) fma_lanes<V, i + 1>(acc, b, a, out);
}
template <class V> void run_fma_lane(const uint16_t* acc, const uint16_t* b, const uint16_t* a, uint16_t* out) {
  if constexpr (V::by_lane) fma_lanes<V>(in(acc), in(b), in(a), out);
}

const HalfUnit unit = {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    TEXT(SKUA_ISA),
    L,
    F16::by_lane,
    F16::has_scalef,
    ops,
    [](const uint16_t* from, uint16_t* out, size_t n) {
      out_of(F16::load_n(reinterpret_cast<const f16*>(from), n), out);
    },
    [](const uint16_t* from, uint16_t* out, size_t n) { in(from).store_n(reinterpret_cast<f16*>(out), n); },
    [](const uint16_t* from, uint16_t* out) { out_of(F16::broadcast(reinterpret_cast<const f16*>(from)), out); },
    [](float x, uint16_t* out) { out_of(F16::set1(x), out); },
    [](const uint16_t* from, float* out) {
      F32 low, high;
      F16 x = in(from);
      pin(x);
      to_f32(x, low, high);
      low.store(out);
      high.store(out + F32::L);
    },
    [](const float* from, uint16_t* out) { out_of(to_f16(F32::load(from), F32::load(from + F32::L)), out); },
    run_fma_lane<F16>,
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua

#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)
extern "C" const skua_test::HalfUnit* JOIN(skua_half_unit_, SKUA_ISA)() { return &skua::SKUA_ISA::unit; }
