// The registry as a list: every kernel says who it is, and no two have the same name.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "skua/kernel.h"

TEST(Registry, EveryKernelDescribesItself) {
  std::set<std::string> names, isas, reasons;
  for (size_t i = 0; i < skua_isa_count(); ++i) {
    skua_isa_info isa;
    ASSERT_EQ(skua_isa_at(i, &isa), SKUA_STATUS_OK);
    EXPECT_TRUE(isas.insert(isa.name).second) << isa.name;
  }
  isas.insert({"opencl", "vulkan"});
  ASSERT_GT(skua_kernel_count(), 0u);
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    skua_kernel_info kernel;
    ASSERT_EQ(skua_kernel_at(i, &kernel), SKUA_STATUS_OK);
    EXPECT_TRUE(names.insert(kernel.name).second) << "two kernels are called " << kernel.name;
    EXPECT_TRUE(isas.count(kernel.isa)) << kernel.name << " is for " << kernel.isa;
    EXPECT_NE(std::string(kernel.name).find(kernel.isa), std::string::npos)
        << kernel.name << " does not name " << kernel.isa;
    EXPECT_NE(std::string(kernel.why), "") << kernel.name;
    EXPECT_FALSE(kernel.type == SKUA_DTYPE_BF16 && std::string(kernel.name).find("_image_") != std::string::npos)
        << kernel.name << ": images hold no bf16";
    const std::string family = kernel.family;
    if ((kernel.isa == std::string("opencl") || kernel.isa == std::string("vulkan")) &&
        (family.rfind("gemm", 0) == 0 || family.rfind("conv", 0) == 0) && family.rfind("convert", 0) != 0) {
      EXPECT_TRUE(
          reasons.insert(family + " " + kernel.isa + " " + skua_dtype_name(kernel.type) + ": " + kernel.why).second)
          << kernel.name << " has the reason of another: " << kernel.why;
    }
  }
  skua_kernel_info beyond;
  EXPECT_EQ(skua_kernel_at(skua_kernel_count(), &beyond), SKUA_STATUS_INVALID_ARGUMENT);
}
