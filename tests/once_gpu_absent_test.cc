// Without a driver the library works on the CPU and says what is missing. A program of its own: a driver stays loaded.
#include <cstdlib>
#include <cstring>

#include "tests/support/support.h"

TEST(GpuAbsent, NoDriver) {
  setenv("SKUA_OPENCL_LIBRARY", "/nowhere/libOpenCL.so", 1);
  setenv("SKUA_VULKAN_LIBRARY", "/nowhere/libvulkan.so", 1);
  EXPECT_EQ(skua_device_list(nullptr, 0), 1u);
  for (const skua_device_api api : {SKUA_DEVICE_API_OPENCL, SKUA_DEVICE_API_VULKAN}) {
    skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
    options.device = {api, 0};
    skua_context* context = reinterpret_cast<skua_context*>(&options);
    EXPECT_EQ(skua_context_create(&options, &context), SKUA_STATUS_NO_DEVICE);
    EXPECT_EQ(context, nullptr);
    const std::string text = skua_error_text();
    EXPECT_TRUE(text.find("/nowhere/lib") != std::string::npos || text.find("this build has no") != std::string::npos)
        << text;
  }
  skua_context* cpu = nullptr;
  SKUA_EXPECT_OK(skua_context_create(nullptr, &cpu));
  skua_context_destroy(cpu);
}
