#include "types.h"

#include <math.h>
#include <string.h>
#include <algorithm>

namespace bench {
namespace {

uint32_t bits_of(float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
float float_of(uint32_t bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

uint16_t to_bf16(float v) {
  const uint32_t bits = bits_of(v);
  return uint16_t(v != v ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t to_f16(float v) {
  const uint32_t bits = bits_of(v), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return uint16_t(sign | 0x7e00);
  if (size >= 0x477ff000) return uint16_t(sign | 0x7c00);  // 65520 and more
  // denormal: a sum whose last bit is 2^-24
  if (size < 0x38800000) return uint16_t(sign | (bits_of(float_of(size) + 0.5f) - 0x3f000000));
  return uint16_t(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

float from_f16(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, size = h & 0x7fff;
  if (size >= 0x7c00) return float_of(sign | 0x7f800000 | (size & 0x3ff) << 13);
  if (size < 0x400) return float_of(sign | bits_of(float(size) * 0x1p-24f));
  return float_of(sign | ((size << 13) + 0x38000000));
}

}  // namespace

size_t size_of(skua_dtype type) { return skua_dtype_bits(type) / 8; }
double roundoff(skua_dtype type) {
  return type == SKUA_DTYPE_F16    ? 0x1p-11
         : type == SKUA_DTYPE_BF16 ? 0x1p-8
         : type == SKUA_DTYPE_S8   ? double(byte_scale) / 2
                                   : 0x1p-24;
}

bool parse_type(const std::string& name, skua_dtype* type) {
  for (skua_dtype t : types)
    if (name == skua_dtype_name(t)) {
      *type = t;
      return true;
    }
  return false;
}

void store(const float* values, size_t count, skua_dtype type, void* to) {
  if (type == SKUA_DTYPE_F32) {
    memcpy(to, values, count * sizeof(float));
    return;
  }
  if (type == SKUA_DTYPE_S8) {
    for (size_t i = 0; i < count; ++i)
      static_cast<int8_t*>(to)[i] =
          int8_t(std::clamp(nearbyintf(values[i] / byte_scale) + float(byte_zero), -128.0f, 127.0f));
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint16_t half = type == SKUA_DTYPE_F16 ? to_f16(values[i]) : to_bf16(values[i]);
    memcpy(static_cast<char*>(to) + 2 * i, &half, 2);
  }
}

void load(const void* from, size_t count, skua_dtype type, float* values) {
  if (type == SKUA_DTYPE_F32) {
    memcpy(values, from, count * sizeof(float));
    return;
  }
  if (type == SKUA_DTYPE_S8) {
    for (size_t i = 0; i < count; ++i) values[i] = byte_scale * float(static_cast<const int8_t*>(from)[i] - byte_zero);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t half;
    memcpy(&half, static_cast<const char*>(from) + 2 * i, 2);
    values[i] = type == SKUA_DTYPE_F16 ? from_f16(half) : float_of(uint32_t(half) << 16);
  }
}

void round_to(skua_dtype type, std::vector<float>& values) {
  if (type == SKUA_DTYPE_F32 || values.empty()) return;
  std::vector<uint16_t> halves(values.size());
  store(values.data(), values.size(), type, halves.data());
  load(halves.data(), values.size(), type, values.data());
}

}  // namespace bench
