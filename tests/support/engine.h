// What tests of contexts over an engine's own driver objects share.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "tests/support/support.h"

namespace skua_test {

inline void expect_text(const char* part) {
  EXPECT_NE(std::strstr(skua_error_text(), part), nullptr)
      << "\"" << skua_error_text() << "\" does not say \"" << part << "\"";
}
inline void* open_driver(const char* variable, const char* name) {
  const char* told = std::getenv(variable);
  return dlopen(told && told[0] ? told : name, RTLD_NOW | RTLD_LOCAL);
}
inline bool has_device(skua_device_api api) {
  for (const skua_device_info& d : gpu_devices())
    if (d.device.api == api) return true;
  return false;
}

// where the output begins in the buffer of both
constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float), kBehind = 8192;

// y = |x|, from the front of a buffer to its back.
struct Work {
  Work(skua_context* context, uint64_t memory) {
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.kind = SKUA_UNARY_ABS;
    SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
    const skua_tensor t = shape({kCount});
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    SKUA_EXPECT_OK(skua_device_buffer_import(context, memory, 0, kBytes, &x));
    SKUA_EXPECT_OK(skua_device_buffer_import(context, memory, kBehind, kBytes, &y));
    SKUA_EXPECT_OK(skua_stream_create(context, &stream));
  }
  ~Work() {
    skua_plan_destroy(plan);
    skua_device_buffer_destroy(x);
    skua_device_buffer_destroy(y);
    skua_stream_destroy(stream);
  }
  void enqueue() {
    const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
    SKUA_EXPECT_OK(skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, stream));
  }
  Op op;
  skua_plan* plan = nullptr;
  skua_device_buffer *x = nullptr, *y = nullptr;
  skua_stream* stream = nullptr;
};

// Two imports that share bytes: an output may not be there.
inline void refuses_overlap(skua_context* context, uint64_t memory, const Work& work) {
  for (const size_t begin : {size_t(0), size_t(2048)}) {
    skua_device_buffer* shares = nullptr;
    SKUA_EXPECT_OK(skua_device_buffer_import(context, memory, begin, kBytes, &shares));
    const skua_buffer in = {nullptr, work.x, 0}, out = {nullptr, shares, 0};
    EXPECT_EQ(skua_plan_enqueue(work.plan, &in, 1, &out, 1, nullptr, work.stream), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text(begin ? "overlaps input 0" : "the same device buffer");
    skua_device_buffer_destroy(shares);
  }
}

inline std::vector<float> values() {
  Rng rng(13);
  std::vector<float> v(kCount);
  for (float& f : v) f = rng.uniform(-5, 5);
  return v;
}
inline std::vector<float> absolute(std::vector<float> v) {
  for (float& f : v) f = f < 0 ? -f : f;
  return v;
}

}  // namespace skua_test
