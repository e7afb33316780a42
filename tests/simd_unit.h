// What one instruction set's build of the vector types hands to simd_test.cc: each operation as a loop over arrays.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dispatch/requantize.h"

namespace skua_test {

// Each works on n elements (n is a multiple of the lanes), lane by lane; what it does not need it ignores.
typedef void (*MapFn)(const float* a, const float* b, const float* c, float* out, size_t n);
typedef void (*MapIntFn)(const int32_t* a, const int32_t* b, int32_t* out, size_t n);

struct MapOp {
  const char* name;
  MapFn run;
};
struct MapIntOp {
  const char* name;
  MapIntFn run;
};

struct SimdUnit {
  const char* isa;
  int lanes;
  bool fused, by_lane;
  // Each list ends with a null name. Comparisons come back as 1 and 0, conversions to integers as the bits of floats.
  const MapOp* ops;
  const MapIntOp* int_ops;
  const MapOp* math;
  // One vector in, one float out.
  float (*sum)(const float*);
  float (*max_of)(const float*);
  float (*min_of)(const float*);
  bool (*any_positive)(const float*);
  bool (*all_positive)(const float*);
  void (*copy_n)(const float* in, float* out, size_t n);   // load_n then store of all lanes
  void (*store_n)(const float* in, float* out, size_t n);  // load then store_n
  void (*copy_int_n)(const int32_t* in, int32_t* out, size_t n);
  void (*store_int_n)(const int32_t* in, int32_t* out, size_t n);
  // Elements of 16 bits to floats and back: n of them, the last few by the partial forms; broadcast: each one alone.
  void (*load_f16)(const uint16_t* in, float* out, size_t n);
  void (*load_bf16)(const uint16_t* in, float* out, size_t n);
  void (*broadcast_f16)(const uint16_t* in, float* out, size_t n);
  void (*broadcast_bf16)(const uint16_t* in, float* out, size_t n);
  void (*store_f16)(const float* in, uint16_t* out, size_t n);
  void (*store_bf16)(const float* in, uint16_t* out, size_t n);
  // The same of bytes, and of integers; requantize: sums and a scale each, four vectors at once where there are as
  // many.
  struct Bytes {
    void (*load)(const uint8_t* in, float* out, size_t n);
    void (*broadcast)(const uint8_t* in, float* out, size_t n);
    void (*store)(const float* in, uint8_t* out, size_t n);
    void (*load_int)(const uint8_t* in, int32_t* out, size_t n);
    void (*store_int)(const int32_t* in, uint8_t* out, size_t n);
    void (*requantize)(const int32_t* in, const float* scale, skua::Requantize to, uint8_t* out, size_t n);
  } s8, u8;
  // results within +-2^13, or beyond it on their side
  void (*fix)(int32_t* sums, const int32_t* multiplier, const int32_t* shift, bool single, size_t n);
  void (*transpose)(float* square);         // lanes x lanes, in place
  void (*sum_each)(const float* square, float* sums);
  // out[i * lanes ...] = acc + b * a[i]; nothing if !by_lane.
  void (*fma_lane)(const float* acc, const float* b, const float* a, float* out);
};

}  // namespace skua_test
