// Types of the elements that kernels read and write. Plain data: kernel units include it, so what is a function here is
// inlined everywhere.
#pragma once
#include <stdint.h>
#include "dispatch/requantize.h"

namespace skua {

// The values of skua_dtype, and s16: inside the library only, of bytes that Winograd's algorithm has transformed.
enum class Element : uint8_t { f32 = 0, f16 = 1, bf16 = 2, s8 = 3, u8 = 4, s4 = 5, s32 = 6, s16 = 7 };

struct f16 {
  uint16_t bits;  // IEEE 754 binary16
};
struct bf16 {
  uint16_t bits;  // the upper half of a binary32
};

template <class T> constexpr Element element_of = Element::f32;
template <> inline constexpr Element element_of<f16> = Element::f16;
template <> inline constexpr Element element_of<bf16> = Element::bf16;
template <> inline constexpr Element element_of<int8_t> = Element::s8;
template <> inline constexpr Element element_of<uint8_t> = Element::u8;
template <> inline constexpr Element element_of<int32_t> = Element::s32;

constexpr unsigned element_bytes(Element e) {
  return e == Element::f32 || e == Element::s32                         ? 4
         : e == Element::f16 || e == Element::bf16 || e == Element::s16 ? 2
                                                                        : 1;
}

// The types of this build: X(C++ type, name, what follows X here).
#ifdef SKUA_TYPE_f16
#define SKUA_FOR_F16(X, ...) X(f16, f16 __VA_OPT__(,) __VA_ARGS__)
#else
#define SKUA_FOR_F16(X, ...)
#endif
#ifdef SKUA_TYPE_bf16
#define SKUA_FOR_BF16(X, ...) X(bf16, bf16 __VA_OPT__(,) __VA_ARGS__)
#else
#define SKUA_FOR_BF16(X, ...)
#endif
#define SKUA_FOR_TYPES(X, ...)                                                      \
  X(float, f32 __VA_OPT__(,) __VA_ARGS__) SKUA_FOR_F16(X __VA_OPT__(,) __VA_ARGS__) \
  SKUA_FOR_BF16(X __VA_OPT__(,) __VA_ARGS__)
// Bytes, quantised; apart from the types above, which are numbers as they stand. The type s8 of a build stands for all
// kernels on integers.
#ifdef SKUA_TYPE_s8
#define SKUA_FOR_INT8(X, ...) X(int8_t, s8 __VA_OPT__(,) __VA_ARGS__) X(uint8_t, u8 __VA_OPT__(,) __VA_ARGS__)
#else
#define SKUA_FOR_INT8(X, ...)
#endif

namespace {

// Bytes widen exactly; a number becomes the nearest one, ties to even, or the last one on its side; NaN becomes 0.
inline __attribute__((always_inline)) float widen(int8_t x) { return x; }
inline __attribute__((always_inline)) float widen(uint8_t x) { return x; }
inline __attribute__((always_inline)) void narrow(float x, int8_t& to) {
  x = x < -128.0f ? -128.0f : x > 127.0f ? 127.0f : x;
  to = int8_t(nearest_small(x != x ? 0.0f : x));
}
inline __attribute__((always_inline)) void narrow(float x, uint8_t& to) {
  x = x < 0.0f ? 0.0f : x > 255.0f ? 255.0f : x;
  to = uint8_t(nearest_small(x != x ? 0.0f : x));
}

// One element at a time, in integers. Widening is exact; narrowing rounds to nearest, ties to even. A NaN stays one
// (quiet, with the upper bits of its payload).
inline __attribute__((always_inline)) float widen(float x) { return x; }
inline __attribute__((always_inline)) float widen(bf16 x) { return __builtin_bit_cast(float, uint32_t(x.bits) << 16); }
inline __attribute__((always_inline)) float widen(f16 x) {
  const uint32_t sign = uint32_t(x.bits & 0x8000) << 16, m = x.bits & 0x7fff;
  const uint32_t special = 0x7f800000 | m << 13 | (m > 0x7c00 ? 0x400000 : 0),
                 normal = (m << 13) + (uint32_t(112) << 23);
  const uint32_t tiny = __builtin_bit_cast(uint32_t, float(m) * 0x1p-24f);
  return __builtin_bit_cast(float, sign | (m >= 0x7c00 ? special : m >= 0x400 ? normal : tiny));
}
inline __attribute__((always_inline)) void narrow(float x, float& to) { to = x; }
inline __attribute__((always_inline)) void narrow(float x, bf16& to) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x);
  to.bits = uint16_t(((u & 0x7fffffff) > 0x7f800000 ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline __attribute__((always_inline)) void narrow(float x, f16& to) {
  const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  uint32_t m;
  if (a > 0x7f800000) {
    m = 0x7e00 | (a >> 13 & 0x3ff);
  } else if (a >= 0x477ff000) {  // 65520: half way from the largest to the next
    m = 0x7c00;
  } else if (a >= 0x38800000) {  // 2^-14, the smallest normal one
    m = (a - (uint32_t(112) << 23) + 0xfff + (a >> 13 & 1)) >> 13;
  } else {
    const uint32_t digits = (a & 0x7fffff) | 0x800000, exponent = a >> 23, shift = exponent < 102 ? 25 : 126 - exponent;
    m = (digits + (uint32_t(1) << (shift - 1)) - 1 + (digits >> shift & 1)) >> shift;
  }
  to.bits = uint16_t(sign | m);
}

}  // namespace
}  // namespace skua
