// The fixed-point forms of docs/quantization.md, written another way than the library's: divisions of signed numbers as
// gemmlowp has them.
#pragma once
#include <skua/types.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace skua_test {

inline int32_t fixed_point(skua_rounding rounding, int32_t sum, int32_t multiplier, int32_t shift) {
  if (rounding == SKUA_ROUNDING_SINGLE) {
    const int64_t product = int64_t(sum) * multiplier;
    const int right = 31 - shift;
    return int32_t(uint64_t((product >> right) + (product >> (right - 1) & 1)));
  }
  const int64_t product = int64_t(int32_t(uint32_t(sum) << (shift > 0 ? shift : 0))) * multiplier;
  const int64_t high = (product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / (int64_t(1) << 31),
                by = int64_t(1) << (shift < 0 ? -shift : 0);
  const int64_t size = high < 0 ? -high : high, nearest = (size + by / 2) / by;
  return int32_t(high < 0 ? -nearest : nearest);
}

// Multiplier and shift of a scale.
inline std::pair<int32_t, int32_t> fixed_point_scale(double scale) {
  int exponent = 0;
  double multiplier = std::floor(std::frexp(scale, &exponent) * 2147483648.0 + 0.5);
  if (multiplier == 2147483648.0) multiplier /= 2, ++exponent;
  return {int32_t(multiplier), exponent};
}

}  // namespace skua_test
