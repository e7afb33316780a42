// What one instruction set's build of the vectors of halves hands to half_test.cc: each operation as a loop over arrays
// of bit patterns.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace skua_test {

struct HalfOp {
  const char* name;  // null ends the list
  // n is a multiple of the lanes
  void (*run)(const uint16_t* a, const uint16_t* b, const uint16_t* c, uint16_t* out, size_t n);
};

struct HalfUnit {
  const char* isa;
  int lanes;
  bool by_lane, has_scalef;
  const HalfOp* ops;
  void (*copy_n)(const uint16_t* in, uint16_t* out, size_t n);      // load_n then store of all lanes
  void (*store_n)(const uint16_t* in, uint16_t* out, size_t n);     // load then store_n
  void (*broadcast)(const uint16_t* in, uint16_t* out);
  void (*set1)(float x, uint16_t* out);
  void (*to_f32)(const uint16_t* in, float* out);                   // one vector
  void (*to_f16)(const float* in, uint16_t* out);
  // out[i * lanes ...] = acc + b * a[i]
  void (*fma_lane)(const uint16_t* acc, const uint16_t* b, const uint16_t* a, uint16_t* out);
};

}  // namespace skua_test
