// skua_op_tune on GPUs: candidates are measured on the device, the winner is remembered, and one file serves every
// device of a machine.
#include <skua/skua.h>

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/support/support.h"

namespace {
using namespace skua_test;

struct Folder {
  char path[64] = "/tmp/skua-gpu-tune-XXXXXX";
  Folder() { EXPECT_NE(mkdtemp(path), nullptr); }
  ~Folder() {
    unlink(file().c_str());
    rmdir(path);
  }
  std::string file() const { return std::string(path) + "/cache"; }
  std::string content() const {
    std::ostringstream text;
    text << std::ifstream(file(), std::ios::binary).rdbuf();
    return text.str();
  }
};

struct Cached {
  skua_context* context = nullptr;
  std::string log;
  Cached(const std::string& path, skua_device device) {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.device = device;
    o.tuning_cache = path.c_str();
    o.log = [](void* to, skua_log_level, const char* text) {
      static_cast<Cached*>(to)->log += std::string(text) + "\n";
    };
    o.log_ctx = this;
    SKUA_EXPECT_OK(skua_context_create(&o, &context));
  }
  ~Cached() { skua_context_destroy(context); }
  Cached(const Cached&) = delete;
};

constexpr size_t kM = 48, kN = 64, kK = 40;
skua_status product(skua_context* context, skua_op** op) {
  const skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  return skua_gemm_create(context, &d, nullptr, nullptr, op);
}
skua_status convolution(skua_context* context, skua_op** op) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.in_channels = 8, d.out_channels = 16;
  d.padding.mode = SKUA_PADDING_SAME_UPPER;
  const std::vector<float> weights(3 * 3 * 8 * 16, 0.25f);
  return skua_conv2d_create(context, &d, weights.data(), nullptr, op);
}
const skua_tensor kMatrices[2] = {shape({kM, kK}), shape({kK, kN})};
const skua_tensor kMap = shape({1, 12, 10, 8});

std::string explain(const skua_op* op, const skua_tensor* in, size_t n) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, in, n, nullptr, 0, &plan));
  char text[2048] = "";
  skua_plan_explain(plan, text, sizeof text);
  skua_plan_destroy(plan);
  return text;
}
bool measured(const std::string& text) { return text.find("measurement\n") != std::string::npos; }
size_t lines(const std::string& text) { return size_t(std::count(text.begin(), text.end(), '\n')); }

TEST(gpu_tune, remembers_what_is_fastest) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    const Folder folder;
    std::string chosen[2];
    {
      Cached c(folder.file(), device.device);
      Op gemm, conv;
      SKUA_EXPECT_OK(product(c.context, &gemm));
      SKUA_EXPECT_OK(convolution(c.context, &conv));
      EXPECT_FALSE(measured(explain(gemm, kMatrices, 2)));
      SKUA_EXPECT_OK(skua_op_tune(gemm.op, kMatrices, 2, nullptr));
      SKUA_EXPECT_OK(skua_op_tune(conv.op, &kMap, 1, nullptr));
      EXPECT_NE(c.log.find("gemm: "), std::string::npos) << c.log;
      EXPECT_NE(c.log.find(" candidates, "), std::string::npos) << c.log;
      chosen[0] = explain(gemm, kMatrices, 2), chosen[1] = explain(conv, &kMap, 1);
      EXPECT_TRUE(measured(chosen[0])) << chosen[0];
      EXPECT_TRUE(measured(chosen[1])) << chosen[1];
      // Another shape is the model's, and the tuned plan computes what the CPU does.
      const skua_tensor other[2] = {shape({kM + 4, kK}), kMatrices[1]};
      EXPECT_FALSE(measured(explain(gemm, other, 2)));
    }
    {
      Context gpu(device), cpu;
      Op here, there;
      SKUA_EXPECT_OK(product(cpu, &here));
      SKUA_EXPECT_OK(product(gpu, &there));
      SKUA_EXPECT_OK(skua_op_tune(there.op, kMatrices, 2, nullptr));
      Rng rng(3);
      const std::vector<Data> in = {make(kMatrices[0], rng), make(kMatrices[1], rng)};
      expect_close(run(there, in)[0], dense_double(run(here, in)[0]), 1e-4);
    }
    Cached again(folder.file(), device.device);
    Op gemm, conv;
    SKUA_EXPECT_OK(product(again.context, &gemm));
    SKUA_EXPECT_OK(convolution(again.context, &conv));
    EXPECT_NE(again.log.find("read 2 choices"), std::string::npos) << again.log;
    EXPECT_EQ(explain(gemm, kMatrices, 2), chosen[0]);
    EXPECT_EQ(explain(conv, &kMap, 1), chosen[1]);
  }
}

// The CPU and each GPU add to one file; each takes its own.
TEST(gpu_tune, one_file_for_every_device) {
  SKUA_NEED_GPU(devices);
  const Folder folder;
  std::vector<skua_device> all = {SKUA_DEVICE_CPU};
  for (const skua_device_info& device : devices) all.push_back(device.device);
  size_t others = 0;
  for (const skua_device& device : all) {
    Cached c(folder.file(), device);
    if (others) { EXPECT_NE(c.log.find("of other devices passed over"), std::string::npos) << c.log; }
    EXPECT_EQ(c.log.find("read "), std::string::npos) << c.log;
    Op gemm;
    SKUA_EXPECT_OK(product(c.context, &gemm));
    SKUA_EXPECT_OK(skua_op_tune(gemm.op, kMatrices, 2, nullptr));
    EXPECT_GT(lines(folder.content()), others + 1) << folder.content();
    others = lines(folder.content()) - 1;
  }
  for (const skua_device& device : all) {
    Cached c(folder.file(), device);
    EXPECT_NE(c.log.find("read 1 choice"), std::string::npos) << c.log;
    Op gemm;
    SKUA_EXPECT_OK(product(c.context, &gemm));
    EXPECT_TRUE(measured(explain(gemm, kMatrices, 2)));
  }
}

TEST(gpu_tune, ignores_what_is_damaged) {
  SKUA_NEED_GPU(devices);
  const skua_device_info& device = devices[0];
  const Folder folder;
  {
    Cached c(folder.file(), device.device);
    Op gemm, conv;
    SKUA_EXPECT_OK(product(c.context, &gemm));
    SKUA_EXPECT_OK(convolution(c.context, &conv));
    SKUA_EXPECT_OK(skua_op_tune(gemm.op, kMatrices, 2, nullptr));
    SKUA_EXPECT_OK(skua_op_tune(conv.op, &kMap, 1, nullptr));
  }
  std::string text = folder.content();
  ASSERT_EQ(lines(text), 3u) << text;
  text[text.find("gemm")] = 'G';
  std::ofstream(folder.file(), std::ios::binary | std::ios::trunc) << text;
  Cached c(folder.file(), device.device);
  EXPECT_NE(c.log.find("is damaged; ignored"), std::string::npos) << c.log;
  Op gemm, conv;
  SKUA_EXPECT_OK(product(c.context, &gemm));
  SKUA_EXPECT_OK(convolution(c.context, &conv));
  EXPECT_FALSE(measured(explain(gemm, kMatrices, 2)));
  EXPECT_TRUE(measured(explain(conv, &kMap, 1)));
}

// A filter leaves one candidate.
TEST(gpu_tune, keeps_to_the_kernel_filter) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context context(device, "gemm_f32_v4x4_*");
    Op gemm;
    SKUA_EXPECT_OK(product(context, &gemm));
    SKUA_EXPECT_OK(skua_op_tune(gemm.op, kMatrices, 2, nullptr));
    EXPECT_NE(explain(gemm, kMatrices, 2).find("gemm_f32_v4x4_"), std::string::npos);
    EXPECT_NE(explain(gemm, kMatrices, 2).find("leaves 1 of "), std::string::npos);
  }
}

}  // namespace
