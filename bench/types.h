// Element types. Suites and formulas see floats, rounded to the layer's type; what lies in memory has the type.
#pragma once
#include <skua/types.h>
#include <stddef.h>
#include <string>
#include <vector>

namespace bench {

constexpr skua_dtype float_types[] = {SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_BF16};
size_t size_of(skua_dtype type);  // bytes of an element
double roundoff(skua_dtype type); // half the distance of neighbours, relative
bool parse_type(const std::string& name, skua_dtype* type);

// Conversion to nearest, ties to even.
void store(const float* values, size_t count, skua_dtype type, void* to);
void load(const void* from, size_t count, skua_dtype type, float* values);
void round_to(skua_dtype type, std::vector<float>& values);

}  // namespace bench
