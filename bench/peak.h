// Loops that measure what a core can do at most, one set per instruction set: peak_loops.cc for those of f32,
// peak_half.cc for those that add arithmetic in a half type, peak_int.cc for products of integers.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "dispatch/element.h"

namespace bench {

struct PeakLoops {
  const char* isa;
  skua::Element element;                               // of the factors
  double (*multiply_add)(size_t rounds);               // returns the multiply-adds it did, of one lane each
  // NULL but for f32:
  // count: a multiple of 128; in order, and with lines of several pages asked for in turn
  void (*read[2])(const float* x, size_t count);
  void (*copy)(const float* x, float* y, size_t count);
  struct {
    void (*widen)(const uint16_t* x, size_t count);    // loads them as f32
    void (*narrow)(uint16_t* y, size_t count);         // stores f32 as them
  } convert[2];                                        // f16, bf16
};

// Those this CPU can run, lowest first.
size_t peak_loops(const PeakLoops* out[], size_t capacity);

}  // namespace bench
