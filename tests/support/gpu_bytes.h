// What tests of s8 and u8 on GPUs share: the same operator on the CPU and on every device, by the kernels of some
// names. Results have the same bits.
#pragma once
#include <functional>

#include "tests/support/gpu.h"

namespace skua_test {

using Create = std::function<skua_status(skua_context*, skua_op**)>;

struct Work {
  std::string text;
  Create create;
  std::vector<Data> inputs;
  std::vector<skua_tensor> outputs;
};
inline void compare(skua_context* context, const Work& w) {
  SCOPED_TRACE(w.text);
  Context cpu;
  Op wanted, op;
  SKUA_EXPECT_OK(w.create(cpu, &wanted));
  SKUA_EXPECT_OK(w.create(context, &op));
  if (!wanted.op || !op.op) return;
  const std::vector<Data> want = run(wanted, w.inputs, w.outputs), got = run(op, w.inputs, w.outputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], want[i]);
}
inline void compare_all(const std::vector<const char*>& filters, const std::vector<Work>& all) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : filters) {
      SCOPED_TRACE(std::string(device.name) + " " + filter);
      Context& context = shared_gpu(device, filter);
      for (const Work& w : all)
        if (context.context) compare(context, w);
    }
}

inline bool is_int(skua_dtype t) { return t == SKUA_DTYPE_S8 || t == SKUA_DTYPE_U8; }
inline int least(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
template <class T> std::vector<T> random_bytes(size_t n, Rng& rng, int low) {
  std::vector<T> v(n);
  for (T& x : v) x = T(rng.integer(0, 5) ? rng.integer(low, low + 255) : rng.integer(0, 1) ? low : low + 255);
  return v;
}
inline skua_tensor holed(const skua_tensor& t, size_t hole) {
  std::vector<size_t> more(t.rank, 0);
  more.back() = hole;
  return hole ? with_holes(t, more) : t;
}

}  // namespace skua_test
