// The matrix product on every GPU of the machine, by every kernel, against the product in double.
#include "gpu/device.h"
#include "tests/support/gemm_case.h"
#include "tests/support/gpu.h"

namespace {
using namespace skua_test;

// Every case in every type on every device, by the kernels of these names.
void check_all(const std::vector<const char*>& filters, const std::vector<Case>& cases,
               const std::vector<skua_dtype>& types = gpu_types()) {
  by_every_kernel(filters, types, [&](Context& context, skua_dtype type) {
    for (Case c : cases) {
      c.type = c.b_type = c.c_type = type;
      check(context, c);
    }
  });
}
Case of(size_t m, size_t n, size_t k, bool constant = false) {
  Case c;
  c.m = m; c.n = n; c.k = k;
  c.constant_b = c.bias = constant;
  return c;
}

TEST(gpu_gemm, vectors) {
  Case large = of(131, 132, 36, true);
  Case few = of(3, 8, 4, true);
  large.activation = few.activation = {SKUA_ACTIVATION_RELU6, 0, 0};  // one program
  const std::vector<const char*> filters = {"gemm_f*_v4x4_*",         "gemm_f*_v4x8_*",      "gemm_tile_*_v4x16_*",
                                            "gemm_tile_*_v4x16x32_*", "gemm_tile_*_v4x32_*", "gemm_tile_*_v4x64_*",
                                            "gemm_tile_*_v4x128_*"};
  check_all(filters, {of(37, 44, 20), few, large}, gpu_types(false));
  check_all(filters, {large}, gpu_types_of(SKUA_DTYPE_BF16));
}

TEST(gpu_gemm, single_elements) {
  std::vector<Case> cases = {of(21, 19, 23), of(21, 19, 23), of(21, 19, 23), of(70, 67, 33, true),
                             of(70, 67, 33, true)};
  cases[1].transpose_a = cases[2].transpose_a = cases[2].transpose_b = cases[3].transpose_a = cases[3].transpose_b =
      true;
  cases[2].hole = cases[3].hole = 3;
  check_all({"gemm_f*", "gemm_tile_*"}, cases);
}

TEST(gpu_gemm, transposed_b_along_k) {
  std::vector<Case> cases = {of(21, 19, 24), of(70, 67, 36), of(5, 8, 8)};
  for (Case& c : cases) c.transpose_b = true;
  cases[0].a_batch = cases[0].b_batch = {3};
  cases[1].hole = 4;
  cases[1].bias = true;
  for (Case& c : cases) c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  check_all({"gemm_f*_t1_*", "gemm_tile_*_t1_*"}, cases, gpu_types(false));
  check_all({"gemm_f*_t1_*", "gemm_tile_*_t1_*"}, {cases[1]}, gpu_types_of(SKUA_DTYPE_BF16));
}

TEST(gpu_gemm, few_rows) {
  std::vector<Case> cases;
  for (size_t k : {1, 4, 64, 259, 512})
    for (size_t n : {1, 65, 200}) cases.push_back(of(k % 3 + 1, n, k, true));
  check_all({"gemv_*"}, cases);
}

TEST(gpu_gemm, epilogue) {
  Case c = of(4, 36, 12, true);
  c.alpha = 0.5f;
  c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  c.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.1f, 0};
  Case d = c;
  d.beta = -1.5f;
  d.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  d.activation = {SKUA_ACTIVATION_GELU, 0, 0};
  Case e = d;
  e.n = 35;
  e.bias = false;
  check_all({"gemm_f*"}, {c, d, e}, gpu_types(false));
  check_all({"gemm_tile_*", "gemv_*"}, {c, d, e}, {SKUA_DTYPE_F32});  // the same text ends them
}

TEST(gpu_gemm, activations) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context context(device);
    for (int kind = SKUA_ACTIVATION_NONE; kind < SKUA_ACTIVATION_KIND_COUNT; ++kind) {
      Case c = of(9, 12, 8, true);
      c.activation = {skua_activation_kind(kind), kind == SKUA_ACTIVATION_CLAMP ? -0.5f : 0.3f, 0.7f};
      check(context, c);
    }
  }
}

TEST(gpu_gemm, batches) {
  std::vector<Case> cases;
  for (size_t hole : {0, 4}) {
    Case c = of(6, 8, 12);
    c.hole = hole;
    c.a_batch = {2, 3};
    c.b_batch = {2, 3};
    cases.push_back(c);
    c.b_batch = {3};
    cases.push_back(c);
    c.a_batch = {2, 1, 2};
    c.b_batch = {3, 1};
    c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
    cases.push_back(c);
    c.constant_b = c.bias = true;
    c.b_batch = {};
    cases.push_back(c);
  }
  check_all({""}, cases, gpu_types(false));
  check_all({"gemm_tile_*"}, cases, {SKUA_DTYPE_F32});
}

// What multiplies f16. (OpenCL's texts take f32 where the compiler has no f16.)
bool with_half(Context& gpu) {
  skua::gpu::Description& about = gpu.context->gpu->about;
  const bool has = about.f16_arithmetic;
  if (gpu.context->gpu->api->number == 0) about.f16_arithmetic = true;
  return has;
}

TEST(gpu_gemm, sums_of_f16) {
  if (!gpu_has(SKUA_DTYPE_F16)) GTEST_SKIP() << "no f16 in this build";
  SKUA_NEED_GPU(devices);
  std::vector<Case> cases = {of(37, 44, 20), of(9, 36, 64, true), of(9, 36, 300, true), of(5, 8, 128)};
  cases[1].activation = {SKUA_ACTIVATION_RELU, 0, 0};
  cases[2].residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  cases[3].beta = -0.5f;
  cases[3].a_batch = cases[3].b_batch = {3};
  for (const skua_device_info& device : devices)
    for (const char* filter : {"gemm_f16_h4x4_*", "gemm_f16_h4x8_*"}) {
      SCOPED_TRACE(std::string(device.name) + " " + filter);
      Context gpu(device, filter);
      if (!gpu.context) continue;
      const bool has = with_half(gpu);
      for (Case c : cases) {
        c.type = c.b_type = c.c_type = SKUA_DTYPE_F16;
        c.numerics = SKUA_NUMERICS_FAST;
        c.half = c.blocks = true;
        check(gpu, c);
      }
      // 2048 and 63 ones, each of which f16 loses beside it; then 64 more, which it does not.
      for (const skua_numerics numerics : {SKUA_NUMERICS_FAST, SKUA_NUMERICS_DEFAULT}) {
        Rng rng(1);
        Data a = make(shape({4, 128}, SKUA_DTYPE_F16), rng, 1, 1), b = make(shape({128, 4}, SKUA_DTYPE_F16), rng, 1, 1);
        for (int i = 0; i < 4; ++i) b.v[size_t(i)] = 2048;
        skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
        d.a_type = d.b_type = d.c_type = SKUA_DTYPE_F16;
        d.numerics = numerics;
        Op op;
        SKUA_EXPECT_OK(skua_gemm_create(gpu, &d, nullptr, nullptr, &op));
        const bool fast = numerics == SKUA_NUMERICS_FAST;
        expect_close(run(op, {a, b})[0], std::vector<double>(16, fast && has ? 2048 + 64 : 2176), 0);
        const skua_tensor both[2] = {a.t, b.t};
        skua_plan* plan = nullptr;
        SKUA_EXPECT_OK(skua_op_plan(op, both, 2, nullptr, 0, &plan));
        char text[2000];
        skua_plan_explain(plan, text, sizeof text);
        EXPECT_NE(std::string(text).find(fast ? "sums f16, of at most 64 terms" : "sums f32"), std::string::npos)
            << text;
        skua_plan_destroy(plan);
      }
    }
}

// A and B of 16 bits, C and the residual of f32: sums are not rounded again.
TEST(gpu_gemm, f32_of_halves) {
  std::vector<Case> cases = {of(37, 44, 20), of(21, 19, 23), of(70, 67, 33, true), of(3, 64, 128, true)};
  cases[0].residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  cases[0].a_batch = cases[0].b_batch = {2};
  cases[0].beta = -1.5f;
  cases[1].transpose_b = true;
  cases[1].residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  cases[2].transpose_a = true;
  cases[2].hole = 3;
  std::vector<skua_dtype> halves = gpu_types();
  halves.erase(std::remove(halves.begin(), halves.end(), SKUA_DTYPE_F32), halves.end());
  for (const size_t skip : {0, 3}) {  // any offset, too
    gpu_skip = skip;
    by_every_kernel({""}, halves, [&](Context& context, skua_dtype type) {
      for (Case c : cases) {
        c.type = c.b_type = type;
        c.c_type = SKUA_DTYPE_F32;
        check(context, c);
      }
    });
    gpu_skip = 0;
  }
}

TEST(gpu_gemm, no_depth_no_elements) {
  std::vector<Case> cases = {of(3, 5, 0), of(0, 5, 4)};
  cases[0].bias = true;
  check_all({""}, cases);
}

TEST(gpu_gemm, any_offset) {
  std::vector<Case> cases = {of(5, 8, 8), of(5, 8, 8, true)};
  cases[0].residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  gpu_skip = 3;
  check_all({""}, cases);
  gpu_skip = 0;
}

// More work-groups than a dispatch has, in every dimension.
TEST(gpu_gemm, many_groups) {
  Case large = of(200, 300, 20, true), few = of(3, 200, 64, true);
  large.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  large.a_batch = few.a_batch = {3};
  gpu_groups = 2;
  check_all({"gemm_f*", "gemm_tile_*"}, {large}, {SKUA_DTYPE_F32});
  check_all({"gemv_*"}, {few}, {SKUA_DTYPE_F32});
  gpu_groups = 0;
  Case matrices = of(2, 4, 4);  // of a device whose limit is 65535
  matrices.a_batch = matrices.b_batch = {70000};
  check_all({""}, {matrices}, {SKUA_DTYPE_F32});
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
    EXPECT_NE(refused([](skua_gemm_desc& d) { d.a_type = d.b_type = d.c_type = SKUA_DTYPE_S32; }).find("s32"),
              std::string::npos);
    EXPECT_NE(refused([](skua_gemm_desc& d) { d.b_type = SKUA_DTYPE_S4; }).find("b_type is s4; on a GPU"),
              std::string::npos);
    float x = 1;
    EXPECT_EQ(skua_gemm_f32(context, 1, 1, 1, &x, 1, &x, 1, &x, 1, nullptr), SKUA_STATUS_UNSUPPORTED);
  }
}

std::string explained(const skua_device_info& device, const char* filter, skua_dtype type = SKUA_DTYPE_F32) {
  Context context(device, filter);
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.a_type = d.b_type = d.c_type = type;
  d.numerics = SKUA_NUMERICS_FAST;
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(context, &d, nullptr, nullptr, &op));
  const skua_tensor both[2] = {shape({64, 64}, type), shape({64, 64}, type)};
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, both, 2, nullptr, 0, &plan));
  char text[2000] = "";
  skua_plan_explain(plan, text, sizeof text);
  skua_plan_destroy(plan);
  return text;
}
void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(gpu_gemm, explains_its_choice) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    for (const char* filter : {"gemm_tile_*_v4x64_*", "tile64"}) {
      expect_parts(explained(device, filter),
                   {"gemm_tile_f32_v4x64_", "64 rows, 64 columns, 64 terms", "work-group 16x16x1",
                    "tile64: the kernel filter asks for it", "candidates: ", "tile128", "all by vectors", "sums f32\n",
                    "chosen by the kernel filter",
                    (std::string("kernel filter \"") + filter + "\": leaves 1 of 7 candidates").c_str()});
    }
    expect_parts(explained(device, "rows8"), {"gemm_f32_v4x8_", "leaves 1 of 7 candidates"});
    expect_parts(explained(device, "rows*"), {"gemm_f32_v4x4_", "leaves 2 of 7 candidates", "chosen by the model"});
    expect_parts(explained(device, "rows9"),
                 {"chosen by the model", "kernel filter \"rows9\": matches nothing here, ignored"});
    EXPECT_EQ(explained(device, "").find("kernel filter"), std::string::npos);
    if (gpu_has(SKUA_DTYPE_BF16)) expect_parts(explained(device, "", SKUA_DTYPE_BF16), {"sums f32\n"});
    if (gpu_has(SKUA_DTYPE_F16))
      expect_parts(explained(device, "rows4", SKUA_DTYPE_F16),
                   {device.has_f16 ? "sums f16" : "sums f32: the device has no f16 arithmetic\n"});
  }
}

}  // namespace
