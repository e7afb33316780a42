// Linked into every test program: when SKUA_TEST_ACCOUNT names a folder, the program leaves a file there that says
// which kernels it executed, which it only knew, and which tests it skipped and why. tests/account.py adds the files
// up.
//
//   isa NAME 0|1          whether this machine (or the emulated one) has the instruction set, and the program is to go
//                         through it (SKUA_TEST_FROM_ISA), or has a driver of that API.
//                         SKUA_TEST_PARTIAL: too few programs go through it for all of its kernels to be executed: 0
//   kernel NAME ISA CALLS
//   pairs                 SKUA_TEST_GPU_PAIRS: kernels of GPUs were left out in some types on some devices (gpu.cc)
//   skip TEST REASON
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "skua/kernel.h"
#include "tests/support/support.h"

namespace {

class Account : public testing::EmptyTestEventListener {
  std::string skips_;

  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Skipped()) return;
    std::string reason;
    for (int i = 0; i < info.result()->total_part_count(); ++i) {
      const testing::TestPartResult& part = info.result()->GetTestPartResult(i);
      if (part.skipped()) reason += part.summary();
    }
    for (char& c : reason) c = c == '\n' ? ' ' : c;
    skips_ += std::string("skip ") + info.test_suite_name() + "." + info.name() + " " + reason + "\n";
  }

  void OnTestProgramEnd(const testing::UnitTest&) override {
    const char* folder = std::getenv("SKUA_TEST_ACCOUNT");
    if (!folder || !*folder) return;
    std::string path = std::string(folder) + "/account.XXXXXX";
    const int fd = mkstemp(path.data());
    std::FILE* file = fd < 0 ? nullptr : fdopen(fd, "w");
    if (!file) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      std::exit(1);
    }
    const bool whole = !std::getenv("SKUA_TEST_PARTIAL");
    for (size_t i = 0; i < skua_isa_count(); ++i) {
      skua_isa_info info;
      if (skua_isa_at(i, &info) == SKUA_STATUS_OK)
        std::fprintf(file, "isa %s %d\n", info.name, whole && info.detected && skua_test::usable(info.name));
    }
    skua_device_info devices[32];
    const size_t n_devices = skua_device_list(devices, 32);
    for (const skua_device_api api : {SKUA_DEVICE_API_OPENCL, SKUA_DEVICE_API_VULKAN}) {
      bool has = false;
      for (size_t i = 0; i < n_devices && i < 32; ++i) has |= devices[i].device.api == api;
      std::fprintf(file, "isa %s %d\n", api == SKUA_DEVICE_API_OPENCL ? "opencl" : "vulkan", has);
    }
    for (size_t i = 0, n = skua_kernel_count(); i < n; ++i) {
      skua_kernel_info info;
      if (skua_kernel_at(i, &info) == SKUA_STATUS_OK)
        std::fprintf(file, "kernel %s %s %llu\n", info.name, info.isa, static_cast<unsigned long long>(info.calls));
    }
    if (std::getenv("SKUA_TEST_GPU_PAIRS")) std::fputs("pairs\n", file);
    std::fputs(skips_.c_str(), file);
    std::fclose(file);
  }
};

const bool registered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Account);
  return true;
}();

}  // namespace
