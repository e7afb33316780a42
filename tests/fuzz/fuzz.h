// What the fuzz targets share: a reader of the fuzzer's bytes, a context whose allocator is small, and a run in memory
// of the exact size, so that AddressSanitizer sees every byte read or written outside.
#pragma once
#include <skua/op.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <vector>

namespace skua_fuzz {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  uint32_t byte() { return at_ < end_ ? *at_++ : 0; }
  // 0 .. limit - 1
  uint32_t below(uint32_t limit) { return byte() % limit; }
  bool flag() { return byte() & 1; }
  // Mostly small, sometimes anything at all.
  uint32_t extent(uint32_t usual) {
    const uint32_t kind = byte();
    if (kind < 250) return kind % usual;
    return byte() << 24 | byte() << 16 | byte() << 8 | byte();
  }
  // Mostly a listed value, sometimes one beyond.
  template <class Enum> Enum value(uint32_t listed) {
    const uint32_t kind = byte();
    return static_cast<Enum>(kind < 250 ? kind % listed : listed);
  }
  float real() {
    static const float values[] = {
        0, 1, -1, 0.5f, 6, 1e30f, -1e-40f, __builtin_inff(), -__builtin_inff(), __builtin_nanf("")};
    return values[below(sizeof values / sizeof *values)];
  }

 private:
  const uint8_t *at_, *end_;
};

constexpr size_t kMostMemory = size_t(16) << 20;

inline void* allocate(void*, size_t size, size_t align) {
  if (size > kMostMemory) return nullptr;
  return aligned_alloc(align, (size + align - 1) / align * align);
}
inline void release(void*, void* memory, size_t) { free(memory); }

inline skua_context* context() {
  static skua_context* const made = [] {
    skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
    options.allocator = {nullptr, allocate, release};
    skua_context* c = nullptr;
    if (skua_context_create(&options, &c) != SKUA_STATUS_OK) abort();
    return c;
  }();
  return made;
}

// `count` values in memory of just that size; beyond what an operator's create can take from the allocator, one shared
// buffer.
class Values {
 public:
  explicit Values(unsigned __int128 count) {
    if (count <= 1 << 16) {
      own_.reset(new float[size_t(count)]);
      for (size_t i = 0; i < size_t(count); ++i) own_[i] = float(int(i * 37 % 19) - 9);
      at_ = own_.get();
    } else {
      static const std::vector<float> shared(kMostMemory + 1);  // rows of one element may lie four apart
      at_ = shared.data();
    }
  }
  const float* data() const { return at_; }

 private:
  std::unique_ptr<float[]> own_;
  const float* at_;
};

// Elements of a tensor, whatever its numbers.
inline unsigned __int128 elements(const skua_tensor& t) {
  unsigned __int128 n = 1;
  for (uint32_t i = 0; i < t.rank && i < SKUA_MAX_RANK; ++i) {
    if (!t.shape[i]) return 0;
    n = n > (unsigned __int128)1 << 63 ? n : n * t.shape[i];
  }
  return n;
}

// Elements from a tensor's first to one past its last: of a repeated dimension (stride 0 beside others) one.
inline unsigned __int128 span(const skua_tensor& t) {
  unsigned __int128 last = 1;
  bool strided = false;
  for (uint32_t i = 0; i < t.rank && i < SKUA_MAX_RANK; ++i) {
    if (!t.shape[i]) return 0;
    last += (unsigned __int128)(t.shape[i] - 1) * t.stride[i];
    strided |= t.stride[i] != 0;
  }
  return strided ? last : elements(t);
}

// Little enough to run: in memory, and in work, which a row repeated 4 billion times is not.
inline bool small(const skua_tensor& t) { return span(t) <= 1 << 12 && elements(t) <= 1 << 16; }

// Plans, runs if the tensors are small, and destroys. Every failure must leave a text. wanted: strides of the only
// output, or NULL.
inline void plan_and_run(skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* wanted = nullptr) {
  skua_plan* plan = nullptr;
  const skua_status planned = skua_op_plan(op, inputs, n_inputs, wanted, wanted ? 1 : 0, &plan);
  if (planned != SKUA_STATUS_OK) {
    if (plan || !*skua_error_text()) abort();
    return;
  }
  const size_t n_outputs = skua_op_output_count(op);
  std::vector<skua_tensor> outputs(n_outputs);
  if (skua_plan_outputs(plan, outputs.data(), n_outputs) != SKUA_STATUS_OK) abort();
  char text[4096];
  skua_plan_explain(plan, text, sizeof text);

  bool runs = skua_plan_workspace(plan, 1) < kMostMemory;
  for (size_t i = 0; i < n_inputs; ++i) runs = runs && small(inputs[i]);
  for (const skua_tensor& t : outputs) runs = runs && small(t);
  if (runs) {
    std::vector<std::unique_ptr<char[]>> memory;
    std::vector<skua_buffer> in, out;
    for (size_t i = 0; i < n_inputs; ++i) {
      const size_t n = size_t(span(inputs[i])), bytes = skua_dtype_bits(inputs[i].type) / 8;
      memory.emplace_back(new char[n * bytes]);
      for (size_t j = 0; j < n; ++j) {
        const float value = float(j % 7) - 3;
        const uint16_t half = uint16_t(0x3c00 + j % 7 * 64);
        memcpy(&memory.back()[j * bytes], bytes == 4 ? static_cast<const void*>(&value) : &half,
               bytes < 4 ? bytes < 2 ? bytes : 2 : 4);
      }
      in.push_back(skua_host_buffer(memory.back().get()));
    }
    for (const skua_tensor& t : outputs) {
      memory.emplace_back(new char[size_t(span(t)) * skua_dtype_bits(t.type) / 8]);
      out.push_back(skua_host_buffer(memory.back().get()));
    }
    const size_t size = skua_plan_workspace(plan, 1);
    void* workspace = size ? aligned_alloc(SKUA_WORKSPACE_ALIGNMENT, (size + 63) / 64 * 64) : nullptr;
    if (skua_plan_run(plan, in.data(), in.size(), out.data(), out.size(), workspace, size, nullptr) != SKUA_STATUS_OK)
      abort();
    free(workspace);
  }
  skua_plan_destroy(plan);
}

// What every create must keep to.
inline bool made(skua_status status, const skua_op* op) {
  if ((status == SKUA_STATUS_OK) != (op != nullptr)) abort();
  if (status != SKUA_STATUS_OK && !*skua_error_text()) abort();
  return op != nullptr;
}

}  // namespace skua_fuzz
