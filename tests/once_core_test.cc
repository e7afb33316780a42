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
