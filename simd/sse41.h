// SSE4.1: blends and rounding in one instruction.
#pragma once

#include <smmintrin.h>

#include "simd/sse.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL F32 select(M32 m, F32 a, F32 b) { return {_mm_blendv_ps(b.v, a.v, m.m)}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return as_i32(select(m, as_f32(a), as_f32(b))); }

SKUA_INL F32 trunc(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 round(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 floor(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
SKUA_INL F32 ceil(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
