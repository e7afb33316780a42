// Bytes: how I32 and F32 load and store int8_t and uint8_t, and the vector form of dispatch/requantize.h. Each
// instruction set gives four functions: load_s8 and load_u8 widen the first n bytes (0..L, constant where a whole
// vector is meant), store_u8 writes the lowest byte of n lanes, store_bytes writes 4 L lanes at once.
//
//   store_bytes(x, p)      four I32 whose lanes are within the range of p's type, as 4 L bytes; all bits above count
//   Requantizer to(r);     the vector form of a Requantize:
//     to(sums, scale)      lane by lane requantize(sum, scale, r)
//     to.rounded(y)        the same from y on
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL I32 I32::load(const int8_t* p) { return load_s8(p, L); }
SKUA_INL I32 I32::load_n(const int8_t* p, size_t n) { return load_s8(p, n); }
SKUA_INL void I32::store(int8_t* p) const { store_u8(*this, reinterpret_cast<uint8_t*>(p), L); }
SKUA_INL void I32::store_n(int8_t* p, size_t n) const { store_u8(*this, reinterpret_cast<uint8_t*>(p), n); }
SKUA_INL I32 I32::load(const uint8_t* p) { return load_u8(p, L); }
SKUA_INL I32 I32::load_n(const uint8_t* p, size_t n) { return load_u8(p, n); }
SKUA_INL void I32::store(uint8_t* p) const { store_u8(*this, p, L); }
SKUA_INL void I32::store_n(uint8_t* p, size_t n) const { store_u8(*this, p, n); }

// The nearest integer, ties to even, of |y| <= 2^22; the lowest byte is 0 for NaN. AArch32 has no conversion that
// rounds so.
#if defined(__arm__) && !defined(SKUA_ISA_scalar)
SKUA_INL I32 nearest_small(F32 y) { return as_i32(y + F32::set1(kRoundsToInteger)) - I32::set1(kRoundsToIntegerBits); }
#else
SKUA_INL I32 nearest_small(F32 y) { return round_i32(y); }
#endif

// The same of any y that is no NaN; beyond 2^22 some integer that is too, on the same side.
#if defined(__ARM_NEON) && !defined(SKUA_ISA_scalar)
SKUA_INL I32 nearest_saturated(F32 y) {
#if defined(__aarch64__)
  return round_i32(y);
#elif __ARM_ARCH >= 8
  I32 n;  // gcc has no name for it
  asm("vcvtn.s32.f32 %q0, %q1" : "=w"(n.v) : "w"(y.v));
  return n;
#else
  // the bits of a float grow as it does
  return {vqsubq_s32(as_i32(y + F32::set1(kRoundsToInteger)).v, vdupq_n_s32(kRoundsToIntegerBits))};
#endif
}
#endif

struct Requantizer {
  F32 low, high;
  I32 zero_point;
  explicit SKUA_INL Requantizer(const Requantize& r)
      : low(F32::set1(r.low)), high(F32::set1(r.high)), zero_point(I32::set1(r.zero_point)) {}
  SKUA_INL I32 rounded(F32 y) const { return nearest_small(clamp_high(clamp_low(y, low), high)) + zero_point; }
  SKUA_INL I32 operator()(I32 sums, F32 scale) const { return rounded(to_f32(sums) * scale); }
};

SKUA_INL I32 saturated(F32 x, const int8_t*) {
  return nearest_small(clamp_high(clamp_low(x, F32::set1(-128.0f)), F32::set1(127.0f)));
}
SKUA_INL I32 saturated(F32 x, const uint8_t*) {
  return nearest_small(clamp_high(clamp_low(x, F32::zero()), F32::set1(255.0f)));
}
#define SKUA_BYTES(T)                                                                              \
  SKUA_INL F32 F32::load(const T* p) { return to_f32(I32::load(p)); }                              \
  SKUA_INL F32 F32::load_n(const T* p, size_t n) { return to_f32(I32::load_n(p, n)); }             \
  SKUA_INL F32 F32::broadcast(const T* p) { return set1(static_cast<float>(*p)); }                 \
  SKUA_INL void F32::store(T* p) const { saturated(*this, p).store(p); }                           \
  SKUA_INL void F32::store_n(T* p, size_t n) const { saturated(*this, p).store_n(p, n); }
SKUA_BYTES(int8_t)
SKUA_BYTES(uint8_t)
#undef SKUA_BYTES

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
