// What makes bytes of sums in programs for in-order cores (int8_in_order.h, int8_dot_in_order.h): scaled in f32,
// rounded, narrowed twice with the zero point between, bounded, flipped.
#pragma once
#include "depthwise/int8_kernel.h"
#include "simd/in_order.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// a, b: vectors of a step; those of b-less steps change in place. A program's own steps come after these.
enum class EndDo : uint8_t { to_float, scale, round, narrow, narrow2, zero, byte, byte2, max, min, flip, count };
constexpr int kEndZero = 28, kEndLow = 29, kEndHigh = 30, kEndFlip = 31, kEndVectors = 32;

SKUA_INL void end_vectors(const DepthwiseInt8Tile& t, int8x16_t (&v)[kEndVectors]) {
  SKUA_UNROLL for (int i = 0; i < kEndVectors; ++i) asm("" : "=w"(v[i]));
  v[kEndZero] = vreinterpretq_s8_s16(vdupq_n_s16(t.zero_point));
  v[kEndLow] = vdupq_n_s8(t.is_bounded ? int8_t(t.low) : int8_t(-128));
  v[kEndHigh] = vdupq_n_s8(t.is_bounded ? t.top : int8_t(127));
  v[kEndFlip] = vdupq_n_s8(int8_t(t.flip));
}

template <int what, int a, int b> SKUA_INL void end_step(int8x16_t (&v)[kEndVectors]) {
  constexpr EndDo d = EndDo(what);
#define SKUA_END(op, A, B, from) asm volatile(op " %0" A ", %1" B : "+w"(v[a]) : "w"(v[from]))
#define SKUA_END_BY(op, A, by) asm volatile(op " %0" A ", %0" A ", %1" A : "+w"(v[a]) : "w"(v[by]))
  if constexpr (d == EndDo::to_float) SKUA_END("scvtf", ".4s", ".4s", a);
  else if constexpr (d == EndDo::scale) SKUA_END_BY("fmul", ".4s", b);
  else if constexpr (d == EndDo::round) SKUA_END("fcvtns", ".4s", ".4s", a);
  else if constexpr (d == EndDo::narrow) SKUA_END("sqxtn", ".4h", ".4s", b);
  else if constexpr (d == EndDo::narrow2) SKUA_END("sqxtn2", ".8h", ".4s", b);
  else if constexpr (d == EndDo::zero) SKUA_END_BY("sqadd", ".8h", kEndZero);
  else if constexpr (d == EndDo::byte) SKUA_END("sqxtn", ".8b", ".8h", a);
  else if constexpr (d == EndDo::byte2) SKUA_END("sqxtn2", ".16b", ".8h", b);
  else if constexpr (d == EndDo::max) SKUA_END_BY("smax", ".16b", kEndLow);
  else if constexpr (d == EndDo::min) SKUA_END_BY("smin", ".16b", kEndHigh);
  else if constexpr (d == EndDo::flip) SKUA_END_BY("eor", ".16b", kEndFlip);
#undef SKUA_END
#undef SKUA_END_BY
}

// Bytes of `outputs` results, whose first eight channels are in vectors from `first` on, `step` apart, and the others
// `other` behind these.
template <class Builder> constexpr void add_bytes(Builder& turn, int outputs, int first, int step, int other) {
  constexpr EndDo bytes[] = {EndDo::byte, EndDo::byte2, EndDo::max, EndDo::min, EndDo::flip};
  for (EndDo what : bytes)
    for (int o = 0; o < outputs; ++o)
      turn.add(what, first + o * step, what == EndDo::byte2 ? first + o * step + other : kNoVector);
}
SKUA_INL void put_16(int8x16_t x, uint8_t* to) {
  asm volatile("str %q1, %0" : "=m"(*reinterpret_cast<int8_t(*)[16]>(to)) : "w"(x));
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
