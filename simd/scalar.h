// One lane in portable C++: the instruction set that is always there. See simd.h for what the operations promise.
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

struct M32 {
  bool m;
};

struct F32 {
  static constexpr int L = 1;
  static constexpr bool fused = false;
  static constexpr int registers = 16;
  static constexpr bool by_lane = false;
  static constexpr bool has_scalef = false;
  float v;

  static SKUA_INL F32 load(const float* p) { return {*p}; }
  static SKUA_INL F32 load_n(const float* p, size_t n) { return {n ? *p : 0.0f}; }
  static SKUA_INL F32 broadcast(const float* p) { return {*p}; }
  static SKUA_INL F32 set1(float x) { return {x}; }
  static SKUA_INL F32 zero() { return {0.0f}; }
  SKUA_INL void store(float* p) const { *p = v; }
  SKUA_INL void store_n(float* p, size_t n) const {
    if (n) *p = v;
  }
  SKUA_STORAGE_MEMBERS
};

struct I32 {
  static constexpr int L = 1;
  int32_t v;

  static SKUA_INL I32 load(const int32_t* p) { return {*p}; }
  static SKUA_INL I32 load_n(const int32_t* p, size_t n) { return {n ? *p : 0}; }
  static SKUA_INL I32 set1(int32_t x) { return {x}; }
  SKUA_INL void store(int32_t* p) const { *p = v; }
  SKUA_INL void store_n(int32_t* p, size_t n) const {
    if (n) *p = v;
  }
  SKUA_BYTE_MEMBERS
};

SKUA_INL I32 as_i32(F32 a) { return {__builtin_bit_cast(int32_t, a.v)}; }
SKUA_INL F32 as_f32(I32 a) { return {__builtin_bit_cast(float, a.v)}; }

SKUA_INL M32 operator&(M32 a, M32 b) { return {a.m && b.m}; }
SKUA_INL M32 operator|(M32 a, M32 b) { return {a.m || b.m}; }
SKUA_INL M32 operator~(M32 a) { return {!a.m}; }
SKUA_INL bool any(M32 m) { return m.m; }
SKUA_INL bool all(M32 m) { return m.m; }

SKUA_INL M32 lt(F32 a, F32 b) { return {a.v < b.v}; }
SKUA_INL M32 le(F32 a, F32 b) { return {a.v <= b.v}; }
SKUA_INL M32 gt(F32 a, F32 b) { return {a.v > b.v}; }
SKUA_INL M32 ge(F32 a, F32 b) { return {a.v >= b.v}; }
SKUA_INL M32 eq(F32 a, F32 b) { return {a.v == b.v}; }
SKUA_INL M32 ne(F32 a, F32 b) { return {a.v != b.v}; }
SKUA_INL M32 is_nan(F32 a) { return {a.v != a.v}; }
SKUA_INL F32 select(M32 m, F32 a, F32 b) { return m.m ? a : b; }
SKUA_INL F32 keep_if(M32 m, F32 a) { return {m.m ? a.v : 0.0f}; }

SKUA_INL F32 operator+(F32 a, F32 b) { return {a.v + b.v}; }
SKUA_INL F32 operator-(F32 a, F32 b) { return {a.v - b.v}; }
SKUA_INL F32 operator*(F32 a, F32 b) { return {a.v * b.v}; }
SKUA_INL F32 operator/(F32 a, F32 b) { return {a.v / b.v}; }
SKUA_INL F32 quotient(F32 a, F32 b) { return a / b; }
SKUA_INL F32 operator-(F32 a) { return {-a.v}; }
SKUA_INL F32 fma(F32 a, F32 b, F32 c) { return {a.v * b.v + c.v}; }
SKUA_INL F32 fnma(F32 a, F32 b, F32 c) { return {c.v - a.v * b.v}; }

SKUA_INL F32 min_fast(F32 a, F32 b) { return {a.v < b.v ? a.v : b.v}; }
SKUA_INL F32 max_fast(F32 a, F32 b) { return {a.v > b.v ? a.v : b.v}; }
SKUA_INL F32 clamp_low(F32 x, F32 lo) { return {lo.v > x.v ? lo.v : x.v}; }
SKUA_INL F32 clamp_high(F32 x, F32 hi) { return {hi.v < x.v ? hi.v : x.v}; }
SKUA_INL F32 min(F32 a, F32 b) { return {a.v < b.v || a.v != a.v ? a.v : b.v}; }
SKUA_INL F32 max(F32 a, F32 b) { return {a.v > b.v || a.v != a.v ? a.v : b.v}; }

SKUA_INL F32 abs(F32 a) { return as_f32({as_i32(a).v & 0x7fffffff}); }
SKUA_INL F32 copysign(F32 magnitude, F32 sign) {
  return as_f32({(as_i32(magnitude).v & 0x7fffffff) | (as_i32(sign).v & INT32_MIN)});
}
SKUA_INL F32 sqrt(F32 a) { return {__builtin_sqrtf(a.v)}; }

// A conversion that does not fit is undefined in C++, so what does not fit is kept out of it.
SKUA_INL bool fits_i32(F32 a) { return a.v >= -2147483648.0f && a.v < 2147483648.0f; }
SKUA_INL I32 to_i32(F32 a) { return {fits_i32(a) ? static_cast<int32_t>(a.v) : INT32_MIN}; }
SKUA_INL bool has_fraction(F32 a) { return abs(a).v < 8388608.0f; }
// Exact in integers, with no help from the rounding of additions: x87 registers would spoil that.
SKUA_INL I32 round_i32(F32 a) {
  const int32_t i = to_i32(a).v;
  if (!has_fraction(a)) return {i};
  const float d = a.v - static_cast<float>(i);
  const bool away = d > 0.5f || d < -0.5f || ((d == 0.5f || d == -0.5f) && (i & 1));
  return {away ? (d > 0.0f ? i + 1 : i - 1) : i};
}
SKUA_INL F32 to_f32(I32 a) { return {static_cast<float>(a.v)}; }

SKUA_INL F32 trunc(F32 a) { return has_fraction(a) ? copysign(to_f32(to_i32(a)), a) : a; }
SKUA_INL F32 round(F32 a) { return has_fraction(a) ? copysign(to_f32(round_i32(a)), a) : a; }
SKUA_INL F32 floor(F32 a) {
  const float t = trunc(a).v;
  return t > a.v ? F32{t - 1.0f} : F32{t};
}
SKUA_INL F32 ceil(F32 a) {
  const float t = trunc(a).v;
  return t < a.v ? F32{t + 1.0f} : F32{t};
}

SKUA_INL I32 operator+(I32 a, I32 b) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) + static_cast<uint32_t>(b.v))};
}
SKUA_INL I32 operator-(I32 a, I32 b) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) - static_cast<uint32_t>(b.v))};
}
SKUA_INL I32 operator&(I32 a, I32 b) { return {a.v & b.v}; }
SKUA_INL I32 operator|(I32 a, I32 b) { return {a.v | b.v}; }
SKUA_INL I32 operator^(I32 a, I32 b) { return {a.v ^ b.v}; }
template <int n>
SKUA_INL I32 shl(I32 a) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) << n)};
}
template <int n>
SKUA_INL I32 shr(I32 a) {
  return {a.v >> n};
}
template <int n>
SKUA_INL I32 shr_logical(I32 a) {
  return {static_cast<int32_t>(static_cast<uint32_t>(a.v) >> n)};
}
SKUA_INL M32 eq(I32 a, I32 b) { return {a.v == b.v}; }
SKUA_INL M32 gt(I32 a, I32 b) { return {a.v > b.v}; }
SKUA_INL I32 select(M32 m, I32 a, I32 b) { return m.m ? a : b; }

SKUA_INL float sum(F32 a) { return a.v; }
SKUA_INL float max_of(F32 a) { return a.v; }
SKUA_INL float min_of(F32 a) { return a.v; }

template <int i>
F32 fma_lane(F32 acc, F32 b, F32 a) = delete;
SKUA_INL void pin(F32&) {}
SKUA_INL void transpose(F32 (&)[1]) {}

#define SKUA_SIMD_CONVERTS_F16 1
SKUA_INL F32 load_as(const f16* p) { return {widen(*p)}; }
SKUA_INL F32 load_as_n(const f16* p, size_t n) { return {n ? widen(*p) : 0.0f}; }
SKUA_INL F32 broadcast_as(const f16* p) { return {widen(*p)}; }
SKUA_INL void store_as(F32 x, f16* p) { narrow(x.v, *p); }
SKUA_INL void store_as_n(F32 x, f16* p, size_t n) {
  if (n) narrow(x.v, *p);
}
SKUA_INL I32 load_u16(const uint16_t* p) { return {*p}; }
SKUA_INL I32 load_u16_n(const uint16_t* p, size_t n) { return {n ? *p : 0}; }
SKUA_INL void store_u16(I32 x, uint16_t* p) { *p = static_cast<uint16_t>(x.v); }
SKUA_INL void store_u16_n(I32 x, uint16_t* p, size_t n) {
  if (n) *p = static_cast<uint16_t>(x.v);
}

// Bytes (bytes.h).
SKUA_INL I32 load_s8(const int8_t* p, size_t n) { return {n ? *p : 0}; }
SKUA_INL I32 load_u8(const uint8_t* p, size_t n) { return {n ? *p : 0}; }
SKUA_INL void store_u8(I32 x, uint8_t* p, size_t n) {
  if (n) *p = static_cast<uint8_t>(x.v);
}
template <class T> SKUA_INL void store_bytes(const I32 (&x)[4], T* p) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<T>(x[i].v);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
