// Element types. Suites and formulas see floats, rounded to the layer's type; what lies in memory has the type.
#pragma once
#include <skua/types.h>
#include <stddef.h>
#include <string>
#include <vector>

namespace bench {

constexpr skua_dtype types[] = {SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_BF16, SKUA_DTYPE_S8};

// Maps of s8: all have this scale and zero point, values from 0 to 8. Their bytes with the upper bit flipped are u8
// with a zero point of 0, which is what oneDNN is fastest with.
constexpr float byte_scale = 1.0f / 32;
constexpr int byte_zero = -128;
constexpr skua_quantization byte_quantization = {byte_scale, byte_zero, nullptr, nullptr, 0, 0, SKUA_DTYPE_F32};
// Where a curve (sigmoid, hard swish, ..) is an operator of its own, the map between the product and it: values from -8
// to 8.
constexpr skua_quantization curve_quantization = {2 * byte_scale, 0, nullptr, nullptr, 0, 0, SKUA_DTYPE_F32};

size_t size_of(skua_dtype type);  // bytes of an element
double roundoff(skua_dtype type); // half the distance of neighbours, relative; of s8 absolute
bool parse_type(const std::string& name, skua_dtype* type);

// Conversion to nearest, ties to even.
void store(const float* values, size_t count, skua_dtype type, void* to);
void load(const void* from, size_t count, skua_dtype type, float* values);
void round_to(skua_dtype type, std::vector<float>& values);

}  // namespace bench
