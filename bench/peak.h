// Loops that measure what a core can do at most, one set per instruction set (peak_loops.cc).
#pragma once
#include <stddef.h>

namespace bench {

struct PeakLoops {
  const char* isa;
  size_t lanes;
  bool fused;
  double (*multiply_add)(size_t rounds);               // returns the multiply-adds it did, of one lane each
  void (*read)(const float* x, size_t count);          // count: a multiple of 128
  void (*copy)(const float* x, float* y, size_t count);
};

// Those this CPU can run, lowest first.
size_t peak_loops(const PeakLoops* out[], size_t capacity);

}  // namespace bench
