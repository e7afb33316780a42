// The one definition of how a sum of products becomes a byte. Every kernel on every instruction set gives these bits;
// tests compare with the functions here.
//
//   y = float(sum) * scale       both steps rounded to nearest, ties to even
//   y = min(max(y, low), high)   low and high: the least and the greatest value of the output less its zero point
//   q = nearest integer to y, ties to even, + zero_point
//
// sum is exact in 32 bits; scale of a column = float(double(input scale) * double(weight scale) / double(output
// scale)), rounded once (core/quantize.h). Clamping before rounding keeps every y within +-255, whatever scale is:
// rounding by the addition of 1.5 * 2^23, after which a float counts by ones, is the same as by any other means.
// Plain data: kernel units include it, so what is a function here is inlined everywhere.
#pragma once
#include <stdint.h>

namespace skua {

// What sums of a quantised operator end in.
struct Requantize {
  // bounds of the result less zero_point, integers: [-128 - zero_point, 127 - zero_point] for s8, unless an activation
  // clamps
  float low, high;
  int32_t zero_point;  // of the output
};

// What is added to the scaled sums before they are clamped, bytes of the output's type:
// y += float(residual - zero_point) * scale, product and sum rounded.
struct QuantizedResidual {
  float scale;  // residual scale / output scale; 0 = there is none
  int32_t zero_point;
};

// The fixed-point form, for engines that need its bits: a multiplier of 31 bits and a shift of -31..30 stand for
// scale = multiplier * 2^(shift - 31). Of TensorFlow Lite (kernels/internal/common.h, MultiplyByQuantizedMultiplier)
// and gemmlowp (fixedpoint/fixedpoint.h): all in integers, then clamped to [low, high], + zero_point.
//
//   double rounding   h = nearest(sum * 2^max(shift, 0) * multiplier / 2^31), ties up;
//                     q = nearest(h / 2^max(-shift, 0)), ties away from 0
//   single rounding   q = nearest(sum * multiplier / 2^(31 - shift)), ties up
//
// What leaves 32 bits (sum * 2^shift, and the result of single rounding) wraps.

constexpr float kRoundsToInteger = 12582912.0f;  // 1.5 * 2^23, of the bits 0x4b400000
constexpr int32_t kRoundsToIntegerBits = 0x4b400000;

namespace {

// For |y| <= 2^22; 0 for NaN in the lowest byte.
inline __attribute__((always_inline)) int32_t nearest_small(float y) {
  return __builtin_bit_cast(int32_t, y + kRoundsToInteger) - kRoundsToIntegerBits;
}
inline __attribute__((always_inline)) int32_t requantize(int32_t sum, float scale, const Requantize& r) {
  float y = float(sum) * scale;
  y = y < r.low ? r.low : y;
  y = y > r.high ? r.high : y;
  return nearest_small(y) + r.zero_point;
}

inline __attribute__((always_inline)) int32_t fixed_double(int32_t sum, int32_t multiplier, int32_t shift) {
  const int32_t left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;
  const int64_t product = int64_t(int32_t(uint32_t(sum) << left)) * multiplier + (1 << 30);
  const int32_t high = int32_t(uint32_t(uint64_t(product) >> 31)), mask = int32_t((uint32_t(1) << right) - 1);
  return (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));
}
// 2^62 more keeps what is shifted positive: no vector instruction shifts 64 bits with their sign before AVX-512.
inline __attribute__((always_inline)) int32_t fixed_single(int32_t sum, int32_t multiplier, int32_t shift) {
  const uint32_t right = uint32_t(31 - shift);
  const uint64_t more = uint64_t(1) << 62,
                 product = uint64_t(int64_t(sum) * multiplier) + (uint64_t(1) << (right - 1)) + more;
  return int32_t(uint32_t(product >> right) - uint32_t(more >> right));
}
inline __attribute__((always_inline)) int32_t requantize_fixed(bool single, int32_t sum, int32_t multiplier,
                                                               int32_t shift, const Requantize& r) {
  int32_t y = single ? fixed_single(sum, multiplier, shift) : fixed_double(sum, multiplier, shift);
  const int32_t low = int32_t(r.low), high = int32_t(r.high);
  y = y < low ? low : y;
  y = y > high ? high : y;
  return y + r.zero_point;
}

}  // namespace
}  // namespace skua
