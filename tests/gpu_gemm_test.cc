// The matrix product on every GPU of the machine, by every kernel, against the product in double.
#include "tests/support/gemm_case.h"

namespace {
using namespace skua_test;

// Kernels that serve what the case asks for, so that tests do not depend on what a device would choose.
const char* const kFilters[] = {"gemm_f*_v4x4_*", "gemm_f*_v4x8_*", "gemm_tile_*_v4x64_*", "gemm_tile_*_v4x128_*"};

void check_all(const skua_device_info& device, const Case& c, const char* filter) {
  SCOPED_TRACE(std::string(device.name) + " " + filter);
  Context context(device, filter);
  if (!context.context) return;
  for (skua_dtype type : {SKUA_DTYPE_F32, SKUA_DTYPE_F16}) {
    Case typed = c;
    typed.type = typed.b_type = typed.c_type = type;
    check(context, typed);
  }
}

TEST(gpu_gemm, vectors) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : kFilters) {
      Case c;
      c.m = 37; c.n = 44; c.k = 20;
      check_all(device, c, filter);
      c.constant_b = c.bias = true;
      c.m = 3; c.n = 8; c.k = 4;
      check_all(device, c, filter);
      c.m = 131; c.n = 132; c.k = 36;
      c.activation = {SKUA_ACTIVATION_RELU6, 0, 0};
      check_all(device, c, filter);
    }
}

TEST(gpu_gemm, single_elements) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : {"gemm_f*", "gemm_tile_*"}) {
      Case c;
      c.m = 21; c.n = 19; c.k = 23;
      check_all(device, c, filter);
      c.transpose_a = true;
      check_all(device, c, filter);
      c.transpose_b = true;
      c.hole = 3;
      check_all(device, c, filter);
      c.constant_b = c.bias = true;
      c.m = 70; c.n = 67; c.k = 33;
      check_all(device, c, filter);
      c.transpose_a = c.transpose_b = false;
      c.hole = 0;
      check_all(device, c, filter);
    }
}

TEST(gpu_gemm, few_rows) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Case c;
    c.constant_b = c.bias = true;
    for (size_t k : {1, 4, 64, 259, 512})
      for (size_t n : {1, 65, 200}) {
        c.m = k % 3 + 1;
        c.n = n;
        c.k = k;
        check_all(device, c, "gemv_*");
      }
  }
}

TEST(gpu_gemm, epilogue) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : {"gemm_f*", "gemm_tile_*", "gemv_*"}) {
      Case c;
      c.m = 4; c.n = 36; c.k = 12;
      c.constant_b = c.bias = true;
      c.alpha = 0.5f;
      c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
      c.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.1f, 0};
      check_all(device, c, filter);
      c.beta = -1.5f;
      c.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
      c.activation = {SKUA_ACTIVATION_GELU, 0, 0};
      check_all(device, c, filter);
      c.n = 35;
      c.bias = false;
      check_all(device, c, filter);
    }
}

TEST(gpu_gemm, activations) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (int kind = SKUA_ACTIVATION_NONE; kind <= SKUA_ACTIVATION_GELU_TANH; ++kind) {
      Case c;
      c.m = 9; c.n = 12; c.k = 8;
      c.constant_b = true;
      c.activation = {skua_activation_kind(kind), kind == SKUA_ACTIVATION_CLAMP ? -0.5f : 0.3f, 0.7f};
      Context context(device);
      check(context, c);
    }
}

TEST(gpu_gemm, batches) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (size_t hole : {0, 4}) {
      Case c;
      c.m = 6; c.n = 8; c.k = 12;
      c.hole = hole;
      c.a_batch = {2, 3};
      c.b_batch = {2, 3};
      check_all(device, c, "");
      c.b_batch = {3};
      check_all(device, c, "");
      c.a_batch = {2, 1, 2};
      c.b_batch = {3, 1};
      c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
      check_all(device, c, "");
      c.constant_b = c.bias = true;
      c.b_batch = {};
      check_all(device, c, "gemm_tile_*");
    }
}

TEST(gpu_gemm, no_depth_no_elements) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Case c;
    c.m = 3; c.n = 5; c.k = 0;
    c.bias = true;
    check_all(device, c, "");
    c.m = 0;
    check_all(device, c, "");
  }
}

TEST(gpu_gemm, any_offset) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (gpu_skip = 1; gpu_skip < 4; ++gpu_skip) {
      Case c;
      c.m = 5; c.n = 8; c.k = 8;
      c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
      check_all(device, c, "");
      c.constant_b = true;
      check_all(device, c, "");
    }
  gpu_skip = 0;
}

TEST(gpu_gemm, refuses_what_it_has_no_kernel_for) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context context(device);
    const auto refused = [&](auto change) {
      skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
      change(d);
      Op op;
      EXPECT_EQ(skua_gemm_create(context, &d, nullptr, nullptr, &op), SKUA_STATUS_UNSUPPORTED);
      return std::string(skua_error_text());
    };
    EXPECT_NE(refused([](skua_gemm_desc& d) { d.a_type = d.b_type = d.c_type = SKUA_DTYPE_BF16; }).find("bf16"), std::string::npos);
    EXPECT_NE(refused([](skua_gemm_desc& d) { d.a_type = d.b_type = SKUA_DTYPE_F16; }).find("c_type"), std::string::npos);
  }
}

}  // namespace
