// The one definition of how a sum of products becomes a byte. Every kernel on every instruction set gives these bits; tests compare with the functions here.
//
//   y = float(sum) * scale               both steps rounded to nearest, ties to even
//   y = min(max(y, low), high)           low and high: the least and the greatest value of the output less its zero point
//   q = nearest integer to y, ties to even, + zero_point
//
// sum is exact in 32 bits; scale of a column = float(double(input scale) * double(weight scale) / double(output scale)), rounded once (core/quantize.h). Clamping before rounding
// keeps every y within +-255, whatever scale is: rounding by the addition of 1.5 * 2^23, after which a float counts by ones, is the same as by any other means.
// Plain data: kernel units include it, so what is a function here is inlined everywhere.
#pragma once
#include <stdint.h>

namespace skua {

// What sums of a quantised operator end in.
struct Requantize {
  float low, high;     // bounds of the result less zero_point, integers: [-128 - zero_point, 127 - zero_point] for s8, unless an activation clamps
  int32_t zero_point;  // of the output
};

constexpr float kRoundsToInteger = 12582912.0f;  // 1.5 * 2^23, of the bits 0x4b400000
constexpr int32_t kRoundsToIntegerBits = 0x4b400000;

namespace {

// For |y| <= 2^22; 0 for NaN in the lowest byte.
inline __attribute__((always_inline)) int32_t nearest_small(float y) { return __builtin_bit_cast(int32_t, y + kRoundsToInteger) - kRoundsToIntegerBits; }
inline __attribute__((always_inline)) int32_t requantize(int32_t sum, float scale, const Requantize& r) {
  float y = float(sum) * scale;
  y = y < r.low ? r.low : y;
  y = y > r.high ? r.high : y;
  return nearest_small(y) + r.zero_point;
}

}  // namespace
}  // namespace skua
