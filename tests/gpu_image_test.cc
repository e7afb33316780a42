// Constant weights as an image of their buffer: the bits of the buffer, by every kernel that has both forms; chosen
// where a vendor's textures are faster, or where it is asked for.
#include <skua/conv.h>
#include <skua/gemm.h>

#include <functional>

#include "gpu/device.h"
#include "tests/support/gpu.h"

namespace {
using namespace skua_test;

using Create = std::function<skua_status(skua_context*, skua_dtype, skua_op**)>;

std::vector<float> values(size_t n, skua_dtype type) {
  Rng rng(uint32_t(n) + 1);
  std::vector<float> v(n);
  for (float& x : v) x = rounded(type, rng.uniform(-1, 1));
  return v;
}
Create gemm(size_t k, size_t n) {
  return [=](skua_context* context, skua_dtype type, skua_op** op) {
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.c_type = type;
    d.k = k; d.n = n;
    d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
    return skua_gemm_create(context, &d, values(k * n, type).data(), values(n, SKUA_DTYPE_F32).data(), op);
  };
}
Create conv(uint32_t in, uint32_t out, uint32_t groups = 1, uint32_t stride = 2) {
  return [=](skua_context* context, skua_dtype type, skua_op** op) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.kernel_h = d.kernel_w = 3;
    d.stride_h = d.stride_w = stride;
    d.in_channels = in; d.out_channels = out; d.groups = groups;
    d.input_type = d.output_type = type;
    d.padding.mode = SKUA_PADDING_SAME_UPPER;
    if (stride == 1) d.numerics = SKUA_NUMERICS_FAST;  // Winograd of few channels
    return skua_conv2d_create(context, &d, values(size_t(9) * in / groups * out, type).data(),
                              values(out, SKUA_DTYPE_F32).data(), op);
  };
}
std::string explain(const skua_op* op, const skua_tensor& x) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
  char text[2048] = "";
  if (plan) skua_plan_explain(plan, text, sizeof text);
  skua_plan_destroy(plan);
  return text;
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Kernel {
  const char* name;  // "gemm_*_v4x4"
  Create create;
  Shape input;
};
const Kernel kKernels[] = {
    {"gemm_*_v4x4", gemm(24, 36), {13, 24}},    {"gemm_*_v4x8", gemm(24, 36), {29, 24}},
    {"gemm_*_v1", gemm(23, 35), {13, 23}},      {"gemv_*_a4", gemm(72, 67), {3, 72}},
    {"gemv_*_v1", gemm(71, 64), {2, 71}},       {"conv_*_v4x4", conv(8, 36), {1, 7, 9, 8}},
    {"conv_*_v4x8", conv(8, 36), {1, 7, 9, 8}}, {"conv_*_a1", conv(3, 32), {2, 9, 7, 3}},
    {"conv_*_v1", conv(6, 35), {1, 7, 6, 6}},   {"depthwise_*_v4", conv(12, 12, 12), {1, 9, 7, 12}}};

void bits_of_the_buffer(const std::string& kernels) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const Kernel& k : kKernels) {
      const std::string name = k.name;
      if (name.rfind(kernels, 0)) continue;
      Context buffers(device, (name + "_*").c_str()), images(device, (name + "_image_*").c_str());
      if (!buffers.context || !images.context) continue;
      EXPECT_GT(images.context->gpu->about.texels, 0u) << device.name;
      for (const skua_dtype type : gpu_types()) {
        if (type == SKUA_DTYPE_BF16 && &k != kKernels) continue;  // once says it
        SCOPED_TRACE(std::string(device.name) + " " + name + " " + skua_dtype_name(type));
        Op buffer, image;
        SKUA_EXPECT_OK(k.create(buffers, type, &buffer));
        SKUA_EXPECT_OK(k.create(images, type, &image));
        Rng rng(4);
        const Data x = make(shape(k.input, type), rng);
        const std::string with = explain(image, x.t), without = explain(buffer, x.t);
        const bool has = type != SKUA_DTYPE_BF16;
        EXPECT_EQ(says(with, "weights as an image"), has) << with;
        EXPECT_EQ(says(with, "_image_" + std::string(images.context->gpu->api->isa)), has) << with;
        EXPECT_TRUE(says(without, "weights as a buffer: ")) << without;
        if (has) expect_same_bits(run(image, {x})[0], run(buffer, {x})[0]);
      }
    }
}

TEST(gpu_image, bits_of_the_buffer_of_products) { bits_of_the_buffer("gem"); }
TEST(gpu_image, bits_of_the_buffer_of_convolutions) { bits_of_the_buffer("conv_"); }
TEST(gpu_image, bits_of_the_buffer_of_depthwise_convolutions) { bits_of_the_buffer("depthwise_"); }

// Winograd's products have weights too.
TEST(gpu_image, winograd) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context by_buffer(device, "winograd_f2x2"), by_image(device, "winograd_f2x2");
    by_image.context->gpu->about.vendor = skua::gpu::Vendor::powervr;
    Op buffer, image;
    SKUA_EXPECT_OK(conv(8, 12, 1, 1)(by_buffer, SKUA_DTYPE_F32, &buffer));
    SKUA_EXPECT_OK(conv(8, 12, 1, 1)(by_image, SKUA_DTYPE_F32, &image));
    Rng rng(4);
    const Data x = make({1, 8, 8, 8}, rng);
    EXPECT_TRUE(says(explain(image, x.t), "weights as an image: textures have a cache of their own"))
        << explain(image, x.t);
    EXPECT_TRUE(says(explain(image, x.t), "winograd_f2x2"));
    expect_same_bits(run(image, {x})[0], run(buffer, {x})[0]);
  }
}

// What an Adreno would take, run here; and with one texel less than the weights have: the buffer. A texel is four of
// the type: 24 x 36 are 216 of them.
TEST(gpu_image, by_vendor_within_the_limit) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const skua_dtype type : gpu_types(false))
      for (const bool fits : {true, false}) {
        SCOPED_TRACE(std::string(device.name) + " " + skua_dtype_name(type) + (fits ? "" : ", few texels"));
        Context phone(device), cpu;
        if (!phone.context) continue;
        phone.context->gpu->about.vendor = skua::gpu::Vendor::adreno;
        phone.context->gpu->about.texels = fits ? 216 : 215;
        Op op, reference;
        SKUA_EXPECT_OK(gemm(24, 36)(phone, type, &op));
        SKUA_EXPECT_OK(gemm(24, 36)(cpu, type, &reference));
        Rng rng(8);
        const Data x = make(shape({13, 24}, type), rng);
        const std::string text = explain(op, x.t);
        EXPECT_TRUE(says(text, fits ? "weights as an image: textures have a cache of their own"
                                    : "weights as a buffer: more texels than the device takes of a buffer"))
            << text;
        expect_close(run(op, {x})[0], dense_double(run(reference, {x})[0]),
                     type == SKUA_DTYPE_F32 ? 1e-4 : 2 * half_ulp(type, 8));
      }
}

// Both are candidates of a measurement; a product whose second matrix is an input has one form.
TEST(gpu_image, is_measured) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    for (const bool fits : {true, false}) {
      std::string log;
      skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
      o.device = device.device;
      o.kernel_filter = "gemm_f*_v4x4_*";
      o.log = [](void* to, skua_log_level, const char* line) {
        *static_cast<std::string*>(to) += std::string(line) + "\n";
      };
      o.log_ctx = &log;
      skua_context* context = nullptr;
      SKUA_EXPECT_OK(skua_context_create(&o, &context));
      if (!context) continue;
      if (!fits) context->gpu->about.texels = 0;
      {
        Op op;
        SKUA_EXPECT_OK(gemm(24, 36)(context, SKUA_DTYPE_F32, &op));
        const skua_tensor x = shape({13, 24});
        SKUA_EXPECT_OK(skua_op_tune(op.op, &x, 1, nullptr));
        EXPECT_TRUE(says(log, fits ? "2 candidates" : "one candidate")) << log;
        EXPECT_TRUE(says(explain(op, x), "gemm_f32_v4x4_"));
      }
      skua_context_destroy(context);
    }
  }
}

}  // namespace
