// Which core kernels are chosen for: MIDRs, mixtures, the environment's word, and what is detected.
#include <skua/conv.h>
#include <skua/gemm.h>
#include <skua/kernel.h>

#include <cstdlib>
#include <cstring>
#include <string>
#ifdef __linux__
#include <sched.h>
#endif

#include "dispatch/cpu.h"
#include "dispatch/element.h"
#include "tests/support/support.h"

using namespace skua_test;
using skua::Core;
using skua::Cores;

namespace {

constexpr uint32_t kA53 = 0x410fd034, kA55 = 0x412fd050, kA510 = 0x410fd461, kA72 = 0x410fd083, kA76 = 0x414fd0b1,
                   kX1 = 0x411fd440, kSilver = 0x51df805e;

TEST(Core, OfAPart) {
  EXPECT_EQ(skua::core_of(kA53), Core::a53);
  for (uint32_t midr : {kA55, kA510, kSilver}) EXPECT_EQ(skua::core_of(midr), Core::a55) << midr;
  for (uint32_t midr :
       {kA72, kA76, kX1, 0x610f0221u /* Apple */, 0x500fd030u /* that part of another implementer */, 0u})
    EXPECT_EQ(skua::core_of(midr), Core::any) << midr;
}

// A thread may move to any core: plans are for in-order loops only where all are in order.
TEST(Core, OfAMixture) {
  const auto all = [](std::initializer_list<uint32_t> midrs) {
    return skua::cores_of(midrs.begin(), midrs.size()).all;
  };
  EXPECT_EQ(all({}), Core::any);
  EXPECT_EQ(all({kA53, kA53, kA53, kA53}), Core::a53);
  EXPECT_EQ(all({kA55, kA55, kA510}), Core::a55);
  EXPECT_EQ(all({kA53, kA53, kA72, kA72}), Core::any);
  EXPECT_EQ(all({kA76, kA55, kA55}), Core::any);
  EXPECT_EQ(all({kA55, kA53}), Core::a53);
  EXPECT_EQ(all({kA53, kA55}), Core::a53);
  EXPECT_EQ(all({kA55, 0, kA55}), Core::a55) << "one is asleep";
}

TEST(Core, OfEachOfAMixture) {
  const auto cores = [](std::initializer_list<uint32_t> midrs) { return skua::cores_of(midrs.begin(), midrs.size()); };
  const Cores phone = cores({kA55, kA55, kA55, kA55, kA76, kA76, 0, kX1});
  EXPECT_TRUE(phone.mixed);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(phone.of[i], Core::a55);
  for (size_t i = 4; i < Cores::kMost; ++i) EXPECT_EQ(phone.of[i], Core::any);
  EXPECT_TRUE(cores({kA53, kA55}).mixed);
  EXPECT_FALSE(cores({kA55, kA510}).mixed);
  EXPECT_FALSE(cores({kA72, kA76, kX1}).mixed);
  EXPECT_FALSE(cores({kA53, 0}).mixed);
  EXPECT_FALSE(cores({}).mixed);
  EXPECT_FALSE(phone.alike);
  EXPECT_TRUE(cores({kA53, kA53}).alike);
  EXPECT_FALSE(cores({kA55, kA510}).alike) << "the same loops, other speeds";
  EXPECT_FALSE(cores({kA72, kA76, kX1}).alike);
  EXPECT_FALSE(cores({kA53, 0}).alike) << "one is asleep";
}

// The same feature, told by other bits.
TEST(ArmFeatures, OfTheAuxiliaryVector) {
  using namespace skua;
  EXPECT_EQ(arm_features(true, 0, 0), kArmSimd);
  EXPECT_EQ(arm_features(true, 1u << 9, 0), kArmSimd) << "scalar halves alone";
  EXPECT_EQ(arm_features(true, 1u << 10, 0), kArmSimd);
  EXPECT_EQ(arm_features(true, 1u << 9 | 1u << 10, 0), kArmSimd | kArmFp16);
  EXPECT_EQ(arm_features(true, 1u << 23, 0), kArmSimd);
  EXPECT_EQ(arm_features(true, 1u << 9 | 1u << 10 | 1u << 23, 0), kArmSimd | kArmFp16 | kArmFhm);
  EXPECT_EQ(arm_features(true, 1u << 20, 0), kArmSimd | kArmDot);
  EXPECT_EQ(arm_features(true, 0, 1u << 13), kArmSimd | kArmI8mm);
  EXPECT_EQ(arm_features(true, 0, 1u << 14), kArmSimd | kArmBf16);
  EXPECT_EQ(arm_features(true, 1u << 22 | 1u << 23 | 1u << 24 | 1u << 26 | 1u << 27, 0), kArmSimd) << "AArch32's bits";

  constexpr uint64_t neon = 1u << 12, vfpv4 = 1u << 16;
  EXPECT_EQ(arm_features(false, 0, 0), 0);
  EXPECT_EQ(arm_features(false, neon, 0), 0) << "Cortex-A8, A9: no fused multiply-add";
  EXPECT_EQ(arm_features(false, vfpv4 | 0xfc00000, ~0ull), 0) << "vectors of half without vectors";
  EXPECT_EQ(arm_features(false, neon | vfpv4, ~0ull), kArmSimd) << "nothing of the second word";
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 22, 0), kArmSimd);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 23, 0), kArmSimd);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 22 | 1u << 23, 0), kArmSimd | kArmFp16);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 25, 0), kArmSimd);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 22 | 1u << 23 | 1u << 25, 0), kArmSimd | kArmFp16 | kArmFhm);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 24, 0), kArmSimd | kArmDot);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 26, 0), kArmSimd | kArmBf16);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 27, 0), kArmSimd | kArmI8mm);
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 9 | 1u << 10 | 1u << 20, 1u << 13 | 1u << 14), kArmSimd)
      << "AArch64's bits";
}

// A chip is as able as the least of its cores.
TEST(ArmFeatures, Vetoed) {
  using namespace skua;
  const auto vetoes = [](std::initializer_list<uint32_t> midrs) { return arm_vetoes(midrs.begin(), midrs.size()); };
  constexpr uint32_t kM3 = 0x531f0020, kM4 = 0x531f0030, kA55r0 = 0x410fd050, kA55r1 = 0x411fd050, kA75r1 = 0x411fd0a0,
                     kA75r2 = 0x412fd0a0;
  constexpr uint32_t kA510r0p0 = 0x410fd460, kA510r1p1 = 0x411fd461, kA510r1p2 = 0x411fd462;
  EXPECT_EQ(vetoes({}), 0);
  EXPECT_EQ(vetoes({kA53, kA55, kA72, kA76, kX1, kM4, kSilver, kA55r1, kA75r2, kA510r1p2}), 0);
  // Exynos 9810: four and four, whichever Linux names first.
  EXPECT_EQ(vetoes({kA55r1, kA55r1, kA55r1, kA55r1, kM3, kM3, kM3, kM3}), kArmFp16 | kArmDot | kArmI8mm | kArmBf16);
  EXPECT_EQ(vetoes({kM3, kM3, kM3, kM3, kA55r1, kA55r1, kA55r1, kA55r1}), kArmFp16 | kArmDot | kArmI8mm | kArmBf16);
  EXPECT_EQ(vetoes({kA510r0p0, kX1}), kArmBf16);
  EXPECT_EQ(vetoes({kX1, kA510r1p1}), kArmBf16);
  EXPECT_EQ(vetoes({kA55r1, kA55r0}), kArmDot);
  EXPECT_EQ(vetoes({kA55r1, kA75r1}), kArmDot);
  EXPECT_EQ(vetoes({0x411f0020 /* that part of another implementer */, 0x530fd050}), 0);
}

TEST(Core, NamedByTheEnvironment) {
  Cores cores = {};
  EXPECT_TRUE(skua::cores_named("cortex-a53", cores));
  EXPECT_EQ(cores.all, Core::a53);
  EXPECT_TRUE(skua::cores_named("cortex-a510", cores));
  EXPECT_EQ(cores.all, Core::a55);
  EXPECT_FALSE(cores.mixed);
  EXPECT_TRUE(cores.alike);
  EXPECT_TRUE(skua::cores_named("any", cores));
  EXPECT_EQ(cores.all, Core::any);
  EXPECT_TRUE(skua::cores_named("cortex-a55,cortex-a53,any", cores));
  EXPECT_EQ(cores.all, Core::any);
  EXPECT_TRUE(cores.mixed);
  EXPECT_FALSE(cores.alike);
  EXPECT_EQ(cores.of[0], Core::a55);
  EXPECT_EQ(cores.of[1], Core::a53);
  EXPECT_EQ(cores.of[2], Core::any);
  EXPECT_EQ(cores.of[Cores::kMost - 1], Core::any);
  for (const char* wrong : {"", ",", "cortex", "cortex-a5", "cortex-a55,", "cortex-a55,,any", "cortex-a55 any"})
    EXPECT_FALSE(skua::cores_named(wrong, cores)) << wrong;
  const char* before = std::getenv("SKUA_CORE");
  const std::string kept = before ? before : "";
  setenv("SKUA_CORE", "cortex-z1", 1);
  skua_context* context = nullptr;
  EXPECT_EQ(skua_context_create(nullptr, &context), SKUA_STATUS_INVALID_ARGUMENT);
  const std::string text = skua_error_text();
  EXPECT_NE(text.find("SKUA_CORE \"cortex-z1\""), std::string::npos) << text;
  EXPECT_NE(text.find("cortex-a34"), std::string::npos) << text;
  EXPECT_NE(text.find("cortex-a520"), std::string::npos) << text;
#if defined(__x86_64__)
  EXPECT_NE(text.find(", zen3, "), std::string::npos) << text;
  setenv("SKUA_CORE", "zen3", 1);
  ASSERT_EQ(skua_context_create(nullptr, &context), SKUA_STATUS_OK) << skua_error_text();
  skua_context_destroy(context);
#endif
  for (const char* wrong : {"", "zen", "zen33", "zen3,zen3"}) EXPECT_FALSE(skua::chip_named(wrong)) << wrong;
  if (before) setenv("SKUA_CORE", kept.c_str(), 1);
  else unsetenv("SKUA_CORE");
}

TEST(Core, Detected) {
  const char* told = std::getenv("SKUA_TEST_CORE");  // what the emulator shows
  if (!told) GTEST_SKIP() << "SKUA_TEST_CORE does not say which core this is";
  Cores cores = {};
  ASSERT_TRUE(skua::cores_named(told, cores));
  EXPECT_EQ(skua::cpu().kinds.all, cores.all);
  EXPECT_EQ(skua::cpu().kinds.mixed, cores.mixed);
}

#ifdef __linux__
// Where one of the processors 0 and 1 is an in-order core and the other is not, by SKUA_CORE: what runs on them.
class MixedCores : public testing::Test {
 protected:
  void SetUp() override {
    sched_getaffinity(0, sizeof before, &before);
    const Cores& kinds = skua::cpu().kinds;
    if ((kinds.of[0] == Core::any) == (kinds.of[1] == Core::any))
      GTEST_SKIP() << "processors 0 and 1 are not an in-order core and another one";
    if (!go_to(0) || !go_to(1)) GTEST_SKIP() << "this process may not use processors 0 and 1";
  }
  void TearDown() override { sched_setaffinity(0, sizeof before, &before); }
  static bool go_to(size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    return !sched_setaffinity(0, sizeof one, &one);
  }
  // Tasks on the processors `first` and `second` in turn.
  struct Walk {
    size_t first, second;
    operator skua_executor() {
      return {this, 2, [](void* ctx, size_t count, skua_task task, void* arg) {
                const Walk& w = *static_cast<Walk*>(ctx);
                for (size_t i = 0; i < count; ++i) {
                  EXPECT_TRUE(go_to(i % 2 ? w.second : w.first));
                  task(arg, i, uint32_t(i % 2));
                }
              }};
    }
  };
  // Calls of kernels for in-order cores, and of the others of the kind of work.
  struct Calls {
    uint64_t in_order = 0, any = 0;
  };
  static Calls calls(const std::string& kind) {
    Calls c;
    for (size_t i = 0; i < skua_kernel_count(); ++i) {
      skua_kernel_info info;
      if (skua_kernel_at(i, &info) != SKUA_STATUS_OK || std::string(info.name).compare(0, kind.size(), kind)) continue;
      (std::string(info.name).find("_a5") == std::string::npos ? c.any : c.in_order) += info.calls;
    }
    return c;
  }
  static std::string kernel_of(const skua_op* op, const skua_tensor& x) {
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
    if (!plan) return "";
    char text[16384];
    skua_plan_explain(plan, text, sizeof text);
    EXPECT_NE(std::string(text).find("on a Cortex-A5"), std::string::npos) << text;
    const std::string name = skua_plan_kernel(plan);
    skua_plan_destroy(plan);
    return name;
  }
  static std::vector<unsigned char> run_on(const skua_op* op, const skua_tensor& x, const std::vector<float>& values,
                                           size_t first, size_t second) {
    skua_plan* plan = nullptr;
    skua_tensor y;
    SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
    if (!plan) return {};
    SKUA_EXPECT_OK(skua_plan_outputs(plan, &y, 1));
    const size_t each = x.type == SKUA_DTYPE_F32  ? 4
                        : x.type == SKUA_DTYPE_S8 ? 1
                                                  : 2,
                 space = skua_plan_workspace(plan, 2);
    Guarded in = Guarded::bytes(values.size() * each, each), out = Guarded::bytes(elements(y) * each, each),
            workspace = Guarded::bytes(space, SKUA_WORKSPACE_ALIGNMENT);
    for (size_t i = 0; i < values.size(); ++i)
      if (each == 4) in.data()[i] = values[i];
      else if (each == 1) static_cast<int8_t*>(in.memory())[i] = int8_t(values[i] * 128);
      else skua::narrow(values[i], static_cast<skua::f16*>(in.memory())[i]);
    const skua_buffer from = skua_host_buffer(in.memory()), to = skua_host_buffer(out.memory());
    EXPECT_TRUE(go_to(first));  // where there is one task only
    Walk walk = {first, second};
    const skua_executor executor = walk;
    SKUA_EXPECT_OK(skua_plan_run(plan, &from, 1, &to, 1, workspace.memory(), space, &executor));
    EXPECT_TRUE(out.untouched_outside() && workspace.untouched_outside());
    skua_plan_destroy(plan);
    const auto* bytes = static_cast<const unsigned char*>(out.memory());
    return std::vector<unsigned char>(bytes, bytes + elements(y) * each);
  }
  // On each of the two processors, and from one to the other within a run: its kernels, and the same bits.
  static void check(const std::string& family, const skua_op* op, const skua_tensor& x) {
    const std::string kind = family + "_" + skua_dtype_name(x.type) + "_";
    SCOPED_TRACE(kind + ": " + kernel_of(op, x));
    Rng rng(7);
    std::vector<float> values(elements(x));
    for (float& v : values) v = rng.uniform(-1, 1);
    const size_t in_order = skua::cpu().kinds.of[0] == Core::any ? 1 : 0, other = 1 - in_order;
    const Calls c0 = calls(kind);
    const auto want = run_on(op, x, values, other, other);
    const Calls c1 = calls(kind);
    const auto little = run_on(op, x, values, in_order, in_order);
    const Calls c2 = calls(kind);
    const auto both = run_on(op, x, values, in_order, other);
    const Calls c3 = calls(kind);
    EXPECT_EQ(want, little);
    EXPECT_EQ(want, both);
    EXPECT_EQ(c1.in_order, c0.in_order);
    EXPECT_GT(c1.any, c0.any);
    EXPECT_GT(c2.in_order, c1.in_order);
    EXPECT_EQ(c2.any, c1.any);
    EXPECT_GT(c3.in_order, c2.in_order);
    EXPECT_GT(c3.any, c2.any);
  }
  static bool any_is(Core core) { return skua::cpu().kinds.of[0] == core || skua::cpu().kinds.of[1] == core; }
  // Those that there are kernels of for the in-order core.
  std::vector<skua_dtype> types() const {
    if (!any_is(Core::a53) && (usable("neon_fp16") || usable("neon32_fp16"))) return {SKUA_DTYPE_F32, SKUA_DTYPE_F16};
    return {SKUA_DTYPE_F32};
  }
  cpu_set_t before;
};

TEST_F(MixedCores, Products) {
  for (const skua_dtype type : types()) {
    Context context;
    Rng rng(1);
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.c_type = type;
    d.n = 75;
    d.k = 147;
    d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
    const Data b = make({d.k, d.n}, rng), bias = make({d.n}, rng);
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &d, b.v.data(), bias.v.data(), &op));
    if (op.op) check("gemm", op, shape({811, d.k}, type));
  }
}

TEST_F(MixedCores, Convolutions) {
  for (const skua_dtype type : types())
    for (const uint32_t kernel : {1u, 3u})
      for (const char* way : {"gemm", "depthwise", "winograd_product"}) {
        const bool depthwise = !strcmp(way, "depthwise"), winograd = !strcmp(way, "winograd_product");
#if !defined(__aarch64__)
        if (depthwise && !any_is(Core::a55)) continue;  // stride 2 is the compiler's on the A53
#endif
        if ((kernel == 1 && way[0] != 'g') || (winograd && type != SKUA_DTYPE_F32)) continue;
        Context context(nullptr, depthwise ? nullptr : winograd ? "winograd_f4x4" : "direct");
        Rng rng(2);
        const uint32_t channels = depthwise ? 104 : 24, out = depthwise ? channels : 28;
        skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
        d.weight_layout = SKUA_WEIGHTS_HWIO;
        d.kernel_h = d.kernel_w = kernel;
        if (depthwise) d.stride_h = d.stride_w = 2, d.groups = channels;
        d.in_channels = channels;
        d.out_channels = out;
        d.padding.mode = SKUA_PADDING_SAME_UPPER;
        d.input_type = d.output_type = type;
        const Data w = make({kernel * kernel, depthwise ? 1u : channels, out}, rng), bias = make({out}, rng);
        Op op;
        SKUA_EXPECT_OK(skua_conv2d_create(context, &d, w.v.data(), bias.v.data(), &op));
        if (op.op) check(way, op, shape({1, 45, 43, channels}, type));
      }
}

#if defined(__aarch64__)
// A convolution of bytes, for a map of the shape returned: depthwise of 3x3, of stride 0 a product.
skua_tensor make_bytes(skua_context* context, uint32_t stride, skua_op** op) {
  Rng rng(3);
  const uint32_t channels = stride ? 104 : 50, out = stride ? channels : 37;
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.input_type = d.weight_type = d.output_type = SKUA_DTYPE_S8;
  d.input_q.scale = d.output_q.scale = 0.02f;
  d.weight_q.scale = 0.01f;
  d.kernel_h = d.kernel_w = stride ? 3 : 1;
  if (stride) d.stride_h = d.stride_w = stride, d.groups = channels;
  d.in_channels = channels;
  d.out_channels = out;
  std::vector<int8_t> w(size_t(out) * (stride ? 9 : channels));
  for (int8_t& x : w) x = int8_t(rng.integer(-127, 127));
  SKUA_EXPECT_OK(skua_conv2d_create(context, &d, w.data(), nullptr, op));
  return shape({1, 45, 43, channels}, SKUA_DTYPE_S8);
}

std::vector<skua_kernel_info> kernels() {
  std::vector<skua_kernel_info> all(skua_kernel_count());
  for (size_t i = 0; i < all.size(); ++i) SKUA_EXPECT_OK(skua_kernel_at(i, &all[i]));
  return all;
}

// Products on the Cortex-A53; windows of 3x3 on either, by dot products on the A55 but with a stride of 2.
TEST_F(MixedCores, Bytes) {
  const bool a53 = any_is(Core::a53);
  for (const uint32_t stride : {0u, 1u, 2u}) {
    if (!stride && !a53) continue;
    Context context(a53 ? "neon" : nullptr, stride ? nullptr : "direct");
    Op op;
    const skua_tensor x = make_bytes(context, stride, &op);
    if (op.op) check(stride ? "depthwise" : "gemm", op, x);
  }
}

// A kernel for the in-order core is of the instruction set that the plan took: neither of a higher one than the context
// may use nor, where big cores have more, of a lower one.
TEST_F(MixedCores, KernelsOfOneSet) {
  for (const char* isa : {"neon", "neon_dot", static_cast<const char*>(nullptr)})
    for (const uint32_t stride : {0u, 1u, 2u}) {
      if (isa && !usable(isa)) continue;
      SCOPED_TRACE(testing::Message() << (isa ? isa : "") << " stride " << stride);
      Context context(isa, stride ? nullptr : "direct");
      Op op;
      const skua_tensor x = make_bytes(context, stride, &op);
      if (!op.op) continue;
      std::vector<float> values(elements(x), 0.5f);
      const std::string kind = stride ? "depthwise_s8_" : "gemm_s8_";
      std::vector<skua_kernel_info> before = kernels();
      EXPECT_EQ(run_on(op, x, values, 0, 0), run_on(op, x, values, 1, 1));
      std::string set;
      size_t called = 0;
      for (size_t i = 0; i < before.size(); ++i) {
        const skua_kernel_info now = kernels()[i];
        if (std::string(now.name).compare(0, kind.size(), kind) || !now.mr || now.calls == before[i].calls) continue;
        if (set.empty()) set = now.isa;
        EXPECT_EQ(set, now.isa) << now.name;
        ++called;
      }
      EXPECT_GT(called, 0u);
    }
}
#endif
#endif

}  // namespace
