// What hard swish and hard sigmoid are made of, of any vector: the unary functions and the tiles that end with them
// give the same bits.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// (x + 3) / 6, at most 1; x is -3 or more. The sum with 3 is exact where the result is small, unlike x/6 + 1/2.
template <class V>
SKUA_INL V up_to_3_by_6(V x) {
  return (clamp_high(x, V::set1(3.0f)) + V::set1(3.0f)) * V::set1(0.166666667f);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
