// Convolutions, forward, transposed and depthwise, and pooling on every GPU of the machine, by every kernel: as on the
// CPU.
#include <skua/conv.h>
#include <skua/pool.h>

#include <cfloat>
#include <cmath>

#include "gpu/device.h"
#include "tests/support/gpu.h"

namespace {
using namespace skua_test;

struct Case {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  bool transposed = false, holes = false, rank_3 = false, fast = false;
  size_t batch = 1, h = 1, w = 1;

  std::string text() const {
    char s[300];
    snprintf(s, sizeof s,
             "%s kernel %ux%u stride %ux%u dilation %ux%u groups %u channels %u -> %u input %zux%zux%zu layout %d "
             "residual %d activation %d holes %d",
             transposed ? "transposed" : "conv", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h,
             d.dilation_w, d.groups, d.in_channels, d.out_channels, batch, h, w, int(d.layout),
             int(d.epilogue.residual), int(d.epilogue.activation.kind), holes);
    return s;
  }
};

Case of(uint32_t kernel, uint32_t in, uint32_t out, size_t h, size_t w, uint32_t stride = 1, uint32_t groups = 1) {
  Case c;
  c.d = conv_desc(kernel, in, out, stride, groups);
  c.h = h; c.w = w;
  return c;
}

skua_status create(skua_context* context, const Case& c, skua_dtype type, skua_numerics numerics,
                   const std::vector<float>& weights, const std::vector<float>& bias, skua_op** out) {
  skua_conv2d_desc d = c.d;
  d.input_type = d.output_type = type;
  d.weight_type = SKUA_DTYPE_F32;
  d.numerics = numerics;
  if (!c.transposed) return skua_conv2d_create(context, &d, weights.data(), bias.empty() ? nullptr : bias.data(), out);
  const skua_conv2d_transpose_desc t = transposed_desc(d);
  return skua_conv2d_transpose_create(context, &t, weights.data(), bias.empty() ? nullptr : bias.data(), out);
}

// Plans and runs on both, the CPU in strict numerics; sums of `terms` products below 1 each may differ in the order of
// their additions.
void compare(skua_context* context, const Case& c, skua_dtype type) {
  SCOPED_TRACE(c.text() + " " + skua_dtype_name(type));
  Rng rng(uint32_t(c.h * 31 + c.d.out_channels));
  const uint32_t in = c.d.in_channels / c.d.groups;
  std::vector<float> weights(size_t(c.d.kernel_h) * c.d.kernel_w * in * c.d.out_channels), bias(c.d.out_channels);
  for (float& v : weights) v = rounded(type, rng.uniform(-1, 1));
  for (float& v : bias) v = rng.uniform(-1, 1);
  if (c.d.out_channels % 5 == 0) bias.clear();
  Context cpu;
  Op wanted, op;
  SKUA_EXPECT_OK(create(cpu, c, type, SKUA_NUMERICS_STRICT, weights, bias, &wanted));
  SKUA_EXPECT_OK(create(context, c, type, c.fast ? SKUA_NUMERICS_FAST : SKUA_NUMERICS_DEFAULT, weights, bias, &op));
  if (!wanted.op || !op.op) return;
  const bool nchw = c.d.layout == SKUA_LAYOUT_NCHW;
  const auto map = [&](size_t channels, size_t h, size_t w) {
    if (c.rank_3) return shape({c.batch, w, channels}, type);
    const skua_tensor t = nchw ? shape({c.batch, channels, h, w}, type) : shape({c.batch, h, w, channels}, type);
    return c.holes ? with_holes(t, nchw ? std::vector<size_t>{0, 1, 1, 0}
                                        : std::vector<size_t>{0, 1, 1, channels % 4 ? 3u : 4u})
                   : t;
  };
  std::vector<Data> inputs = {make(map(c.d.in_channels, c.h, c.w), rng)};
  if (c.d.epilogue.residual != SKUA_RESIDUAL_NONE) {
    skua_plan* plan = nullptr;
    const skua_tensor both[2] = {inputs[0].t, inputs[0].t};
    // The output's shape: planned without its residual's by an operator that has none.
    Case plain = c;
    plain.d.epilogue.residual = SKUA_RESIDUAL_NONE;
    Op without;
    SKUA_EXPECT_OK(create(cpu, plain, type, SKUA_NUMERICS_STRICT, weights, bias, &without));
    SKUA_EXPECT_OK(skua_op_plan(without, both, 1, nullptr, 0, &plan));
    skua_tensor y;
    SKUA_EXPECT_OK(skua_plan_outputs(plan, &y, 1));
    skua_plan_destroy(plan);
    inputs.push_back(make(map(c.d.out_channels, nchw ? y.shape[2] : y.shape[1], nchw ? y.shape[3] : y.shape[2]), rng));
  }
  const std::vector<Data> want = run(wanted, inputs), got = run(op, inputs);
  ASSERT_EQ(want.size(), 1u);
  ASSERT_EQ(got.size(), 1u);
  const double terms = double(in) * c.d.kernel_h * c.d.kernel_w;
  std::vector<double> value = dense_double(want[0]), bound;
  for (double v : value)
    bound.push_back((2 * terms + 8) * double(FLT_EPSILON) * (std::sqrt(terms) + 2) + 3 * half_ulp(type, v));
  if (c.d.groups > 1 && inputs.size() > 1)  // the CPU rounds a depthwise sum before it adds the residual
    for (double& b : bound) b += half_ulp(type, 4);
  if (c.fast) {  // 64 terms are summed in f16: relative to the sum of the products' sizes
    Case plain = c;
    plain.d.epilogue = {{SKUA_ACTIVATION_NONE, 0, 0}, SKUA_RESIDUAL_NONE};
    std::vector<float> sizes = weights;
    for (float& v : sizes) v = std::fabs(v);
    Data x = inputs[0];
    for (float& v : x.v) v = std::fabs(v);
    Op size;
    SKUA_EXPECT_OK(create(cpu, plain, type, SKUA_NUMERICS_STRICT, sizes, {}, &size));
    const std::vector<double> sum = dense_double(run(size, {x})[0]);
    const double t = std::min(terms, 64.0);
    for (size_t i = 0; i < bound.size(); ++i) bound[i] += (t + 2) * 0x1p-11 * sum[i] + (terms + t) * 0x1p-25;
  }
  expect_close(got[0], value, bound);
}

void compare_all(const std::vector<const char*>& filters, const std::vector<Case>& cases,
                 const std::vector<skua_dtype>& types = gpu_types(false)) {
  by_every_kernel(filters, types, [&](Context& context, skua_dtype type) {
    for (const Case& c : cases) compare(context, c, type);
  });
}

TEST(gpu_conv, taps) {
  std::vector<Case> cases = {of(3, 8, 12, 7, 9), of(3, 16, 72, 12, 11, 2), of(5, 4, 8, 6, 6), of(1, 12, 24, 9, 5, 2),
                             of(3, 8, 16, 6, 7, 1, 2)};
  for (Case& c : cases) c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;  // one program for all of them
  cases[0].batch = 2;
  cases[1].holes = true;
  cases[2].d.dilation_h = 2;
  cases[2].d.padding = {SKUA_PADDING_EXPLICIT, 4, 1, 4, 3};
  const std::vector<const char*> filters = {"conv_f*_v4x4_*",         "conv_f*_v4x8_*",      "conv_tile_*_v4x16_*",
                                            "conv_tile_*_v4x16x32_*", "conv_tile_*_v4x32_*", "conv_tile_*_v4x64_*"};
  compare_all(filters, cases);
  compare_all(filters, {cases[0]}, gpu_types_of(SKUA_DTYPE_BF16));
}

TEST(gpu_conv, epilogue) {
  std::vector<Case> cases = {of(3, 8, 20, 5, 7), of(3, 8, 12, 5, 7)};
  cases[0].d.epilogue = {{SKUA_ACTIVATION_TANH, 0, 0}, SKUA_RESIDUAL_BEFORE_ACTIVATION};
  cases[1].d.epilogue = {{SKUA_ACTIVATION_CLAMP, -1, 0.5f}, SKUA_RESIDUAL_AFTER_ACTIVATION};
  compare_all({"conv_f*"}, cases);
}

TEST(gpu_conv, first_layers_and_odd_channels) {
  std::vector<Case> cases = {of(3, 3, 32, 15, 13, 2), of(3, 3, 7, 9, 8), of(7, 1, 4, 9, 9, 2), of(3, 6, 9, 5, 7, 1, 3)};
  cases[1].d.weight_layout = SKUA_WEIGHTS_OIHW;
  cases[2].d.weight_layout = SKUA_WEIGHTS_HWIO;
  compare_all({"conv_f*", "conv_tile_*"}, cases, gpu_types());
}

TEST(gpu_conv, pointwise) {
  std::vector<Case> cases = {of(1, 24, 40, 6, 7), of(1, 24, 40, 6, 7), of(1, 5, 9, 4, 4)};
  cases[0].d.epilogue = {{SKUA_ACTIVATION_HARD_SWISH, 0, 0}, SKUA_RESIDUAL_AFTER_ACTIVATION};
  cases[0].batch = 2;
  cases[1].holes = true;
  compare_all({"gemm_f*", "gemm_tile_*"}, cases);
}

TEST(gpu_conv, planes) {
  std::vector<Case> cases = {of(3, 8, 12, 7, 9, 2), of(1, 8, 5, 4, 6), of(3, 6, 6, 5, 5, 1, 6)};
  for (Case& c : cases) c.d.layout = SKUA_LAYOUT_NCHW;
  cases[0].holes = true;
  cases[1].d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  compare_all({""}, cases);
}

TEST(gpu_conv, transposed) {
  std::vector<Case> cases = {of(3, 8, 12, 5, 6, 2), of(4, 4, 8, 5, 6, 2), of(3, 6, 9, 4, 4, 3, 3),
                             of(2, 8, 4, 3, 5, 2)};
  for (Case& c : cases) {
    c.transposed = true;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 0, 1, 1};
  }
  cases[1].d.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
  compare_all({"conv_f*", "conv_tile_*"}, cases);
}

TEST(gpu_conv, depthwise) {
  std::vector<Case> cases = {of(3, 24, 24, 9, 10, 1, 24), of(3, 8, 8, 9, 11, 2, 8), of(5, 12, 12, 6, 5, 1, 12),
                             of(3, 6, 12, 7, 7, 1, 6), of(3, 5, 5, 6, 7, 2, 5)};
  cases[0].d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
  cases[0].batch = 2;
  cases[1].holes = true;
  cases[1].d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  cases[2].d.dilation_w = 2;
  cases[4].d.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  cases[4].d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
  compare_all({""}, cases);
  compare_all({""}, {cases[0], cases[1], cases[2], cases[3]}, gpu_types_of(SKUA_DTYPE_BF16));
}

// In f16, where the device multiplies it. (OpenCL's texts take f32 where the compiler has no f16.)
TEST(gpu_conv, sums_of_f16) {
  if (!gpu_has(SKUA_DTYPE_F16)) GTEST_SKIP() << "no f16 in this build";
  SKUA_NEED_GPU(devices);
  std::vector<Case> cases = {of(3, 8, 12, 7, 9),          of(3, 24, 36, 6, 5, 2),  of(5, 4, 8, 6, 6),
                             of(3, 8, 16, 6, 7, 1, 2),    of(4, 4, 8, 5, 6, 2),    of(1, 96, 40, 6, 7),
                             of(3, 24, 24, 9, 10, 1, 24), of(9, 8, 8, 9, 10, 1, 8)};
  cases[0].batch = 2;
  cases[0].d.epilogue = {{SKUA_ACTIVATION_RELU6, 0, 0}, SKUA_RESIDUAL_BEFORE_ACTIVATION};
  cases[1].holes = true;
  cases[4].transposed = true;
  cases[4].d.padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
  cases[6].d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
  for (const skua_device_info& device : devices)
    for (const char* filter : {"*_f16_h4x4_*", "*_f16_h4x8_*"}) {
      SCOPED_TRACE(std::string(device.name) + " " + filter);
      Context context(device, filter);
      if (!context.context) continue;
      if (device.device.api == SKUA_DEVICE_API_OPENCL) context.context->gpu->about.f16_arithmetic = true;
      for (Case& c : cases) {
        c.fast = true;
        compare(context, c, SKUA_DTYPE_F16);
      }
    }
}

// A depthwise sum has no blocks: of more than 64 taps it is made in f32.
TEST(gpu_conv, depthwise_sums_of_f16) {
  if (!gpu_has(SKUA_DTYPE_F16)) GTEST_SKIP() << "no f16 in this build";
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context context(device);
    if (!context.context) continue;
    if (device.device.api == SKUA_DEVICE_API_OPENCL) context.context->gpu->about.f16_arithmetic = true;
    const bool can = context.context->gpu->about.f16_arithmetic;
    EXPECT_TRUE(can || !device.is_software);  // lavapipe has it
    const struct {
      uint32_t h, w;
      bool fast, half;
    } kernels[] = {
        {3, 3, true, true}, {8, 8, true, true}, {5, 13, true, false}, {9, 9, true, false}, {3, 3, false, false}};
    for (const auto& k : kernels) {
      SCOPED_TRACE(std::to_string(k.h) + "x" + std::to_string(k.w) + (k.fast ? " fast" : ""));
      Case c = of(k.h, 8, 8, 16, 16, 1, 8);
      c.d.kernel_w = k.w;
      Op op;
      SKUA_EXPECT_OK(create(context, c, SKUA_DTYPE_F16, k.fast ? SKUA_NUMERICS_FAST : SKUA_NUMERICS_DEFAULT,
                            std::vector<float>(size_t(k.h) * k.w * 8, 0.5f), {}, &op));
      const skua_tensor x = shape({1, 16, 16, 8}, SKUA_DTYPE_F16);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
      if (!plan) continue;
      const std::string kernel = skua_plan_kernel(plan);
      EXPECT_EQ(kernel.rfind("depthwise_f16_h4_", 0) == 0, k.half && can) << kernel;
      EXPECT_EQ(kernel.rfind("depthwise_f16_v4_", 0) == 0 || kernel.rfind("depthwise_f16_s1_", 0) == 0,
                !(k.half && can))
          << kernel;
      skua_plan_destroy(plan);
    }
  }
}

TEST(gpu_conv, rows_of_rank_3_and_any_offset) {
  std::vector<Case> cases = {of(3, 8, 8, 1, 21), of(3, 8, 8, 1, 21, 1, 8), of(1, 8, 8, 1, 5)};
  for (Case& c : cases) {
    c.d.kernel_h = 1;
    c.rank_3 = true;
  }
  compare_all({""}, cases);
  gpu_skip = 2;
  compare_all({""}, cases);
  gpu_skip = 0;
}

// More work-groups than a dispatch has, in every dimension.
TEST(gpu_conv, many_groups) {
  std::vector<Case> cases = {of(1, 8, 132, 16, 20), of(3, 8, 140, 13, 11, 2), of(3, 12, 12, 5, 7, 1, 4),
                             of(3, 36, 36, 9, 37, 1, 36)};
  for (Case& c : cases) c.batch = 2;
  gpu_groups = 2;
  compare_all({""}, cases, {SKUA_DTYPE_F32});
  gpu_groups = 0;
  Case images = of(3, 4, 4, 1, 2, 1, 4);  // of a device whose limit is 65535
  images.batch = 70000;
  compare_all({""}, {images}, {SKUA_DTYPE_F32});
}

struct PoolCase {
  skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
  size_t batch = 1, h = 1, w = 1, channels = 1;
};
PoolCase pool(skua_pool_kind kind, uint32_t kernel, uint32_t stride, uint32_t pad, size_t h, size_t w,
              size_t channels) {
  PoolCase c;
  c.d.kind = kind;
  c.d.kernel_h = c.d.kernel_w = kernel;
  c.d.stride_h = c.d.stride_w = stride;
  c.d.padding = {SKUA_PADDING_EXPLICIT, pad, pad, pad, pad};
  c.h = h; c.w = w; c.channels = channels;
  return c;
}

void check_all(const std::vector<PoolCase>& cases) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context context(device), cpu;
    for (skua_dtype type : gpu_types())
      for (PoolCase c : cases)
        for (bool strange : {false, true}) {  // NaN in some windows
          SCOPED_TRACE(std::string(device.name) + " pool " + std::to_string(&c - cases.data()) + " kind " +
                       std::to_string(c.d.kind) + " " + skua_dtype_name(type));
          if (strange && c.d.kind == SKUA_POOL_AVERAGE) continue;
          c.d.type = type;
          Op wanted, op;
          SKUA_EXPECT_OK(skua_pool2d_create(cpu, &c.d, &wanted));
          SKUA_EXPECT_OK(skua_pool2d_create(context, &c.d, &op));
          Rng rng(7);
          Data x = make(c.d.layout == SKUA_LAYOUT_NCHW ? shape({c.batch, c.channels, c.h, c.w}, type)
                                                       : shape({c.batch, c.h, c.w, c.channels}, type),
                        rng);
          if (strange) x.v[x.v.size() / 2] = NAN;
          const std::vector<Data> want = run(wanted, {x}), got = run(op, {x});
          ASSERT_EQ(want.size(), got.size());
          std::vector<double> value = dense_double(want[0]), bound;
          for (double v : value)
            bound.push_back(c.d.kind == SKUA_POOL_AVERAGE ? 60 * double(FLT_EPSILON) + 2 * half_ulp(type, v) : 0);
          expect_close(got[0], value, bound);
          if (want.size() > 1) expect_close(got[1], dense_double(want[1]), 0);
        }
  }
}

TEST(gpu_pool, as_on_the_cpu) {
  std::vector<PoolCase> cases = {
      pool(SKUA_POOL_MAX, 3, 2, 1, 9, 11, 8),     pool(SKUA_POOL_AVERAGE, 3, 2, 1, 9, 8, 8),
      pool(SKUA_POOL_AVERAGE, 3, 2, 1, 9, 8, 8),  pool(SKUA_POOL_MAX_INDICES, 2, 2, 0, 7, 6, 8),
      pool(SKUA_POOL_AVERAGE, 1, 1, 0, 7, 7, 12), pool(SKUA_POOL_MAX, 2, 1, 0, 5, 5, 3),
      pool(SKUA_POOL_MAX, 3, 2, 1, 6, 7, 4),      pool(SKUA_POOL_AVERAGE, 3, 2, 2, 9, 8, 8),
      pool(SKUA_POOL_MAX, 1, 1, 0, 21, 5, 6),     pool(SKUA_POOL_AVERAGE, 1, 1, 0, 19, 3, 20),
      pool(SKUA_POOL_AVERAGE, 1, 1, 0, 2, 9, 72)};
  cases[1].d.count_padding = true;
  cases[2].d.ceil_mode = cases[2].d.count_padding = true;
  cases[7].d.ceil_mode = cases[7].d.count_padding = true;
  cases[7].d.dilation_h = cases[7].d.dilation_w = 2;
  cases[4].d.global = true;
  cases[4].batch = 2;
  cases[5].d.dilation_w = 2;
  cases[6].d.layout = SKUA_LAYOUT_NCHW;
  cases[6].d.activation.kind = SKUA_ACTIVATION_RELU;
  cases[8].d.global = cases[9].d.global = cases[10].d.global = true;
  cases[8].batch = cases[10].batch = 3;
  cases[9].d.layout = SKUA_LAYOUT_NCHW;
  cases[10].d.activation.kind = SKUA_ACTIVATION_RELU;
  check_all(cases);
}

// Work-groups share the pixels of a map, and a second dispatch joins what they have: by vectors and by channels, of
// maps with holes, at any offset; a NaN in one part.
TEST(gpu_pool, large_maps_in_parts) {
  PoolCase most[] = {pool(SKUA_POOL_MAX, 1, 1, 0, 67, 61, 8), pool(SKUA_POOL_MAX, 1, 1, 0, 67, 61, 5)};
  for (PoolCase& c : most) c.d.global = true;
  check_all({most[0], most[1]});
  const auto average = [](skua_context* context, skua_dtype type, skua_op** op) {
    skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
    d.kind = SKUA_POOL_AVERAGE;
    d.type = type;
    d.global = true;
    return skua_pool2d_create(context, &d, op);
  };
  compare_on_gpus({{{2, 67, 61, 8}}, {{1, 67, 61, 5}}}, Holes::all, average, [](const Data& got, const Data& want) {
    const std::vector<double> value = dense_double(want);
    std::vector<double> bound;
    for (double v : value) bound.push_back(200 * double(FLT_EPSILON) + 2 * half_ulp(got.t.type, v));
    expect_close(got, value, bound);
  });
  on_every_gpu([&](Context& gpu) {
    Op op;
    SKUA_EXPECT_OK(average(gpu, SKUA_DTYPE_F32, &op));
    expect_explained(op, shape({2, 67, 61, 8}, SKUA_DTYPE_F32), "parts of the map, joined by a second dispatch");
  });
}

// More work-groups than a dispatch has, in every dimension.
TEST(gpu_pool, many_groups) {
  gpu_groups = 2;
  check_all({pool(SKUA_POOL_MAX, 3, 2, 1, 11, 40, 132), pool(SKUA_POOL_MAX_INDICES, 2, 2, 0, 7, 60, 37)});
  gpu_groups = 0;
  if (small()) return;  // minutes of a simulated device
  PoolCase images = pool(SKUA_POOL_AVERAGE, 1, 1, 0, 1, 2, 4);  // of a device whose limit is 65535
  images.batch = 70000;
  check_all({images});
}

}  // namespace
