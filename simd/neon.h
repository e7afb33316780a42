// NEON of AArch64.
#pragma once

#include "simd/neon_base.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL bool any(M32 m) { return vmaxvq_u32(m.m) != 0; }
SKUA_INL bool all(M32 m) { return vminvq_u32(m.m) != 0; }

SKUA_INL F32 operator/(F32 a, F32 b) { return {vdivq_f32(a.v, b.v)}; }
SKUA_INL F32 quotient(F32 a, F32 b) { return a / b; }
SKUA_INL F32 sqrt(F32 a) { return {vsqrtq_f32(a.v)}; }
SKUA_INL F32 trunc(F32 a) { return {vrndq_f32(a.v)}; }
SKUA_INL F32 round(F32 a) { return {vrndnq_f32(a.v)}; }
SKUA_INL F32 floor(F32 a) { return {vrndmq_f32(a.v)}; }
SKUA_INL F32 ceil(F32 a) { return {vrndpq_f32(a.v)}; }
SKUA_INL I32 round_i32(F32 a) { return {vcvtnq_s32_f32(a.v)}; }

template <int i>
SKUA_INL F32 fma_lane(F32 acc, F32 b, F32 a) {
  return {vfmaq_laneq_f32(acc.v, b.v, a.v, i)};
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
