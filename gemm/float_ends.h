// The end of tiles whose sums are floats: a vector of them, plus bias, clamped, rounded once to the type of C.
#pragma once
#include "dispatch/element.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct FloatEnd {
  const float* bias;  // NULL = none; whole vectors readable
  Element type;
  size_t n;           // columns
  F32 low, high;
  template <class T>
  SKUA_INL FloatEnd(const T& t)
      : bias(t.bias), type(t.c_type), n(t.n), low(F32::set1(t.low)), high(F32::set1(t.high)) {}
  template <class C> SKUA_INL void put(F32 y, void* c, size_t j) const {
    if (n - j >= size_t(F32::L)) y.store(static_cast<C*>(c) + j);
    else y.store_n(static_cast<C*>(c) + j, n - j);
  }
  // Column j < n on, of a row of C.
  SKUA_INL void operator()(F32 y, void* c, size_t j) const {
    if (bias) y = y + F32::load(bias + j);
    y = clamp_high(clamp_low(y, low), high);
    switch (type) {
#ifdef SKUA_TYPE_f16
      case Element::f16: return put<f16>(y, c, j);
#endif
#ifdef SKUA_TYPE_bf16
      case Element::bf16: return put<bf16>(y, c, j);
#endif
      default: put<float>(y, c, j);
    }
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
