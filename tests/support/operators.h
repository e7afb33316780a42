// One or more samples of every operator, small, for the tests of what all operators share.
#pragma once
#include <functional>

#include "tests/support/support.h"

namespace skua_test {

struct Sample {
  const char* name;
  std::function<skua_status(skua_context*, skua_op**)> create;
  std::vector<skua_tensor> inputs;
  bool weights = false;   // packed weights that can be written and read back
  int in_place = -1;      // the input that output 0 may be; -1: none

  std::vector<Data> values(uint32_t seed = 1) const;
};

// Without the operators that this build leaves out.
const std::vector<Sample>& samples();

// A fixed block of random values for weights, biases and the like.
const float* constants();

// A planned sample with its memory; not guarded. Outputs of different objects are comparable.
struct Planned {
  Planned(const Sample& sample, skua_context* context);
  ~Planned();
  Planned(const Planned&) = delete;
  // A workspace and outputs of their own; returns the outputs' bytes.
  std::vector<unsigned char> compute(const skua_executor* executor = nullptr) const;

  skua_op* op = nullptr;
  skua_plan* plan = nullptr;
  std::vector<Data> data;
  std::vector<skua_buffer> inputs;
  std::vector<skua_tensor> outputs;
};

}  // namespace skua_test
