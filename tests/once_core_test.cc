// Which core kernels are chosen for: MIDRs, mixtures, the environment's word, and what is detected.
#include <cstdlib>
#include <string>

#include "dispatch/cpu.h"
#include "tests/support/support.h"

using skua::Core;

namespace {

constexpr uint32_t kA53 = 0x410fd034, kA55 = 0x412fd050, kA510 = 0x410fd461, kA72 = 0x410fd083, kA76 = 0x414fd0b1, kX1 = 0x411fd440, kSilver = 0x51df805e;

TEST(Core, OfAPart) {
  EXPECT_EQ(skua::core_of(kA53), Core::a53);
  for (uint32_t midr : {kA55, kA510, kSilver}) EXPECT_EQ(skua::core_of(midr), Core::a55) << midr;
  for (uint32_t midr : {kA72, kA76, kX1, 0x610f0221u /* Apple */, 0x500fd030u /* that part of another implementer */, 0u}) EXPECT_EQ(skua::core_of(midr), Core::any) << midr;
}

// A thread may move to any core: in-order loops only where all are in order.
TEST(Core, OfAMixture) {
  const auto all = [](std::initializer_list<uint32_t> midrs) { return skua::core_of_all(midrs.begin(), midrs.size()); };
  EXPECT_EQ(all({}), Core::any);
  EXPECT_EQ(all({kA53, kA53, kA53, kA53}), Core::a53);
  EXPECT_EQ(all({kA55, kA55, kA510}), Core::a55);
  EXPECT_EQ(all({kA53, kA53, kA72, kA72}), Core::any);
  EXPECT_EQ(all({kA76, kA55, kA55}), Core::any);
  EXPECT_EQ(all({kA55, kA53}), Core::a53);
  EXPECT_EQ(all({kA53, kA55}), Core::a53);
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
  EXPECT_EQ(arm_features(false, neon | vfpv4 | 1u << 9 | 1u << 10 | 1u << 20, 1u << 13 | 1u << 14), kArmSimd) << "AArch64's bits";
}

// A chip is as able as the least of its cores.
TEST(ArmFeatures, Vetoed) {
  using namespace skua;
  const auto vetoes = [](std::initializer_list<uint32_t> midrs) { return arm_vetoes(midrs.begin(), midrs.size()); };
  constexpr uint32_t kM3 = 0x531f0020, kM4 = 0x531f0030, kA55r0 = 0x410fd050, kA55r1 = 0x411fd050, kA75r1 = 0x411fd0a0, kA75r2 = 0x412fd0a0;
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
  Core core = Core::any;
  EXPECT_TRUE(skua::core_named("cortex-a53", core));
  EXPECT_EQ(core, Core::a53);
  EXPECT_TRUE(skua::core_named("cortex-a510", core));
  EXPECT_EQ(core, Core::a55);
  EXPECT_TRUE(skua::core_named("any", core));
  EXPECT_EQ(core, Core::any);
  EXPECT_FALSE(skua::core_named("cortex", core));
  const char* before = std::getenv("SKUA_CORE");
  const std::string kept = before ? before : "";
  setenv("SKUA_CORE", "cortex-z1", 1);
  skua_context* context = nullptr;
  EXPECT_EQ(skua_context_create(nullptr, &context), SKUA_STATUS_INVALID_ARGUMENT);
  const std::string text = skua_error_text();
  EXPECT_NE(text.find("SKUA_CORE \"cortex-z1\""), std::string::npos) << text;
  EXPECT_NE(text.find("cortex-a34"), std::string::npos) << text;
  EXPECT_NE(text.find("cortex-a520"), std::string::npos) << text;
  if (before) setenv("SKUA_CORE", kept.c_str(), 1);
  else unsetenv("SKUA_CORE");
}

TEST(Core, Detected) {
  const char* told = std::getenv("SKUA_TEST_CORE");  // what the emulator shows
  if (!told) GTEST_SKIP() << "SKUA_TEST_CORE does not say which core this is";
  Core core = Core::any;
  ASSERT_TRUE(skua::core_named(told, core));
  EXPECT_EQ(skua::cpu().core, core);
}

}  // namespace
