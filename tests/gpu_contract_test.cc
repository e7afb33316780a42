// What the calls of GPU contexts promise whatever the operator: devices, buffers, streams, events, and the texts of
// their refusals.
#include <cstdlib>
#include <cstring>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

void expect_text(const std::string& part) {
  EXPECT_NE(std::strstr(skua_error_text(), part.c_str()), nullptr)
      << "\"" << skua_error_text() << "\" does not say \"" << part << "\"";
}

Op relu(skua_context* context) {
  skua_unary_desc d = SKUA_UNARY_DESC_INIT;
  d.kind = SKUA_UNARY_RELU;
  Op op;
  SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
  return op;
}

struct Buffer {
  Buffer(skua_context* context, size_t size) { SKUA_EXPECT_OK(skua_device_buffer_create(context, size, &buffer)); }
  ~Buffer() { skua_device_buffer_destroy(buffer); }
  operator skua_device_buffer*() const { return buffer; }
  skua_device_buffer* buffer = nullptr;
};
struct Stream {
  explicit Stream(skua_context* context) { SKUA_EXPECT_OK(skua_stream_create(context, &stream)); }
  ~Stream() { skua_stream_destroy(stream); }
  operator skua_stream*() const { return stream; }
  skua_stream* stream = nullptr;
};

// The first test: an OpenCL driver that was opened stays so.
TEST(GpuContract, ALibraryThatCannotBeOpenedSaysWhy) {
  const struct {
    skua_device_api api;
    const char* variable;
  } drivers[] = {{SKUA_DEVICE_API_OPENCL, "SKUA_OPENCL_LIBRARY"}, {SKUA_DEVICE_API_VULKAN, "SKUA_VULKAN_LIBRARY"}};
  for (const auto& driver : drivers) {
    SCOPED_TRACE(driver.variable);
    const char* const told = std::getenv(driver.variable);
    const std::string before = told ? told : "";
    setenv(driver.variable, "/nowhere/libnone.so", 1);
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.device.api = driver.api;
    skua_context* context = nullptr;
    const skua_status status = skua_context_create(&o, &context);
    if (told) setenv(driver.variable, before.c_str(), 1);
    else unsetenv(driver.variable);
    EXPECT_EQ(status, SKUA_STATUS_NO_DEVICE);
    if (std::strstr(skua_error_text(), "no OpenCL backend") || std::strstr(skua_error_text(), "no Vulkan backend"))
      continue;
    for (const char* part : {driver.variable, "/nowhere/libnone.so", "No such file"}) expect_text(part);
  }
}

TEST(GpuContract, Devices) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    skua_device_info info;
    SKUA_EXPECT_OK(skua_context_device(gpu, &info));
    EXPECT_STREQ(info.name, device.name);
    EXPECT_EQ(info.device.api, device.device.api);
    EXPECT_EQ(info.device.index, device.device.index);
    EXPECT_NE(std::strlen(info.driver), 0u);
    EXPECT_GT(info.memory_bytes, 0u);
    EXPECT_GE(info.max_tensor_bytes, size_t(1) << 27);  // what both APIs promise, or nearly
    EXPECT_GE(info.offset_alignment, 1u);
    EXPECT_GE(info.work_group_threads, 128u);
    EXPECT_GE(info.local_memory_bytes, 16u << 10);
    EXPECT_STREQ(skua_context_isa(gpu), info.device.api == SKUA_DEVICE_API_OPENCL ? "opencl" : "vulkan");
  }
}

TEST(GpuContract, Buffers) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    skua_device_buffer* none = nullptr;
    EXPECT_EQ(skua_device_buffer_create(gpu, 0, &none), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("size");
    EXPECT_EQ(skua_device_buffer_create(gpu, SIZE_MAX / 2, &none), SKUA_STATUS_OUT_OF_MEMORY);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(skua_device_buffer_create(gpu, 4, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_device_buffer_import(gpu, 0, 0, 4, &none), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_device_buffer_import(gpu, 1, 0, 4, &none), SKUA_STATUS_UNSUPPORTED);
    expect_text("of its own");
    Buffer b(gpu, 1000);
    std::vector<unsigned char> all(1000), some(17, 7);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<unsigned char>(i);
    SKUA_EXPECT_OK(skua_device_buffer_write(b, 0, all.data(), 1000));
    SKUA_EXPECT_OK(skua_device_buffer_write(b, 333, some.data(), 17));
    std::vector<unsigned char> back(1000);
    SKUA_EXPECT_OK(skua_device_buffer_read(b, 0, back.data(), 1000));
    std::memcpy(all.data() + 333, some.data(), 17);
    EXPECT_EQ(back, all);
    EXPECT_EQ(skua_device_buffer_write(b, 990, all.data(), 11), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("990");
    EXPECT_EQ(skua_device_buffer_read(b, SIZE_MAX, back.data(), 2), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_device_buffer_write(b, 0, nullptr, 1), SKUA_STATUS_INVALID_ARGUMENT);
    SKUA_EXPECT_OK(skua_device_buffer_write(b, 1000, nullptr, 0));
  }
}

// The host writes and reads the memory itself; a stream's work lies between.
TEST(GpuContract, Map) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    const Op op = relu(gpu);
    if (!op.op) continue;
    const skua_tensor t = shape({16});
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    Buffer b(gpu, 4096);
    Stream stream(gpu);
    void* at = nullptr;
    EXPECT_EQ(skua_device_buffer_map(b, 4000, 97, &at), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("4000");
    EXPECT_EQ(skua_device_buffer_map(b, 0, 0, &at), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_device_buffer_map(b, 0, 4, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_device_buffer_unmap(b, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
    const skua_status mapped = skua_device_buffer_map(b, 64, 64, &at);
    if (mapped == SKUA_STATUS_UNSUPPORTED && !device.is_software) {  // PoCL and lavapipe share the host's memory
      skua_plan_destroy(plan);
      continue;
    }
    SKUA_EXPECT_OK(mapped);
    ASSERT_NE(at, nullptr);
    for (int i = 0; i < 16; ++i) static_cast<float*>(at)[i] = float(i - 8);
    void* second = nullptr;
    EXPECT_EQ(skua_device_buffer_map(b, 1024, 64, &second), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("the buffer is mapped");
    float other = 0;
    for (void* wrong : {static_cast<void*>(&other), static_cast<void*>(static_cast<float*>(at) + 1)}) {
      EXPECT_EQ(skua_device_buffer_unmap(b, wrong), SKUA_STATUS_INVALID_ARGUMENT);
      expect_text("device_buffer_map");
    }
    SKUA_EXPECT_OK(skua_device_buffer_unmap(b, at));
    EXPECT_EQ(skua_device_buffer_unmap(b, at), SKUA_STATUS_INVALID_ARGUMENT);
    const skua_buffer in = {nullptr, b, 64}, out = {nullptr, b, 1024};
    SKUA_EXPECT_OK(skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, stream));
    SKUA_EXPECT_OK(skua_stream_wait(stream));
    SKUA_EXPECT_OK(skua_device_buffer_map(b, 1024, 64, &at));
    for (int i = 0; i < 16; ++i) EXPECT_EQ(static_cast<const float*>(at)[i], float(i < 8 ? 0 : i - 8));
    SKUA_EXPECT_OK(skua_device_buffer_unmap(b, at));
    skua_plan_destroy(plan);
  }
}

TEST(GpuContract, Enqueue) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device), cpu;
    Context other(device);
    const Op op = relu(gpu), on_cpu = relu(cpu);
    if (!op.op) continue;
    const skua_tensor t = shape({5, 4});
    skua_plan *plan = nullptr, *cpu_plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    SKUA_EXPECT_OK(skua_op_plan(on_cpu, &t, 1, nullptr, 0, &cpu_plan));
    Buffer x(gpu, 100), y(gpu, 100), foreign(other, 100);
    Stream stream(gpu), other_stream(other);
    float host[20] = {};
    const auto enqueue = [&](skua_buffer in, skua_buffer out) {
      return skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, stream);
    };
    const auto refuses = [&](skua_buffer in, skua_buffer out, const char* text) {
      EXPECT_EQ(enqueue(in, out), SKUA_STATUS_INVALID_ARGUMENT) << text;
      expect_text(text);
    };
    SKUA_EXPECT_OK(enqueue({nullptr, x, 0}, {nullptr, y, 20}));
    refuses(skua_host_buffer(host), {nullptr, y, 0}, "input 0 is a host pointer");
    refuses({nullptr, nullptr, 0}, {nullptr, y, 0}, "input 0");
    refuses({nullptr, x, 0}, {nullptr, y, 24}, "output 0 needs 80 bytes from offset 24");
    refuses({nullptr, x, 0}, {nullptr, y, SIZE_MAX - 3}, "output 0");
    refuses({nullptr, x, 2}, {nullptr, y, 0}, "input 0 has offset 2");
    refuses({nullptr, foreign, 0}, {nullptr, y, 0}, "another context");
    refuses({nullptr, x, 0}, {nullptr, x, 4}, "overlaps");
    SKUA_EXPECT_OK(enqueue({nullptr, x, 8}, {nullptr, x, 8}));
    SKUA_EXPECT_OK(skua_stream_wait(stream));
    const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
    EXPECT_EQ(skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, other_stream), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(skua_plan_enqueue(plan, &in, 2, &out, 1, nullptr, stream), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("n_inputs");
    EXPECT_EQ(skua_plan_enqueue(cpu_plan, &in, 1, &out, 1, nullptr, stream), SKUA_STATUS_UNSUPPORTED);
    expect_text("skua_plan_run");
    const skua_buffer host_buffer = skua_host_buffer(host);
    EXPECT_EQ(skua_plan_run(plan, &host_buffer, 1, &host_buffer, 1, nullptr, 0, nullptr), SKUA_STATUS_UNSUPPORTED);
    expect_text("skua_plan_enqueue");
    SKUA_EXPECT_OK(skua_op_tune(op.op, &t, 1, nullptr));  // one candidate: nothing remembered
    EXPECT_STREQ(skua_plan_kernel(plan),
                 device.device.api == SKUA_DEVICE_API_OPENCL ? "unary_f32_v4_opencl" : "unary_f32_v4_vulkan");
    char text[512];
    EXPECT_GT(skua_plan_explain(plan, text, sizeof text), 0u);
    EXPECT_NE(std::strstr(text, "unary_f32_v4"), nullptr) << text;
    skua_plan_destroy(plan);
    skua_plan_destroy(cpu_plan);
  }
}

TEST(GpuContract, TypesWithoutKernels) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.input_type = d.output_type = SKUA_DTYPE_S32;
    Op op;
    EXPECT_NE(skua_unary_create(gpu, &d, &op), SKUA_STATUS_OK);
    expect_text("input_type is s32");
    skua_transpose_desc t = SKUA_TRANSPOSE_DESC_INIT;
    t.type = SKUA_DTYPE_S32;
    t.rank = 1;
    EXPECT_EQ(skua_transpose_create(gpu, &t, &op), SKUA_STATUS_UNSUPPORTED);
    expect_text("type is s32");
    skua_softmax_desc s = SKUA_SOFTMAX_DESC_INIT;
    s.input_type = s.output_type = SKUA_DTYPE_S32;
    EXPECT_NE(skua_softmax_create(gpu, &s, &op), SKUA_STATUS_OK);
    expect_text("input_type is s32");
  }
}

// A blob that nothing could read would be worth nothing.
TEST(GpuContract, PackedBlobsAreOfTheCpu) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.n = d.k = 2;
    const float b[4] = {1, 2, 3, 4};
    Op op;
    ASSERT_EQ(skua_gemm_create(gpu, &d, b, nullptr, &op), SKUA_STATUS_OK) << skua_error_text();
    EXPECT_EQ(skua_op_packed_size(op), 0u);
    alignas(SKUA_PACKED_ALIGNMENT) unsigned char blob[4096];
    EXPECT_EQ(skua_op_packed_write(op, blob, sizeof blob), SKUA_STATUS_UNSUPPORTED);
    expect_text("gemm is on a GPU");
    skua_op* none = nullptr;
    EXPECT_EQ(skua_op_create_packed(gpu, blob, sizeof blob, &none), SKUA_STATUS_UNSUPPORTED);
    expect_text("CPU");
  }
}

// Extents whose products fit size_t and no kernel.
TEST(GpuContract, TooLargeForKernels) {
  SKUA_NEED_GPU(devices);
  if (sizeof(size_t) < 8) GTEST_SKIP() << "32-bit sizes";
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    const Op op = relu(gpu);
    if (!op.op) continue;
    const skua_tensor t = shape({size_t(1) << 20, size_t(1) << 12});
    skua_plan* plan = nullptr;
    EXPECT_EQ(skua_op_plan(op, &t, 1, nullptr, 0, &plan), SKUA_STATUS_UNSUPPORTED);
    expect_text("2^31");
    EXPECT_EQ(plan, nullptr);
  }
}

// A chain through one stream, then through two that an event orders.
TEST(GpuContract, StreamsAndEvents) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.kind = SKUA_UNARY_LEAKY_RELU;
    d.a = 0.5f;
    Op half;
    SKUA_EXPECT_OK(skua_unary_create(gpu, &d, &half));
    if (!half.op) continue;
    const size_t n = 4096;
    const skua_tensor t = shape({n});
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(half, &t, 1, nullptr, 0, &plan));
    Buffer a(gpu, n * 4), b(gpu, n * 4);
    std::vector<float> values(n, -1024.0f), back(n);
    SKUA_EXPECT_OK(skua_device_buffer_write(a, 0, values.data(), n * 4));
    const skua_buffer at_a = {nullptr, a, 0}, at_b = {nullptr, b, 0};
    {
      Stream first(gpu), second(gpu);
      skua_event *begin = nullptr, *end = nullptr;
      SKUA_EXPECT_OK(skua_event_record(first, &begin));
      for (int i = 0; i < 2; ++i) {
        SKUA_EXPECT_OK(skua_plan_enqueue(plan, &at_a, 1, &at_b, 1, nullptr, first));
        SKUA_EXPECT_OK(skua_plan_enqueue(plan, &at_b, 1, &at_a, 1, nullptr, first));
      }
      SKUA_EXPECT_OK(skua_event_record(first, &end));
      SKUA_EXPECT_OK(skua_stream_submit(first));
      SKUA_EXPECT_OK(skua_stream_wait_event(second, end));
      SKUA_EXPECT_OK(skua_plan_enqueue(plan, &at_a, 1, &at_b, 1, nullptr, second));
      SKUA_EXPECT_OK(skua_stream_wait(second));
      SKUA_EXPECT_OK(skua_device_buffer_read(b, 0, back.data(), n * 4));
      EXPECT_EQ(back, std::vector<float>(n, -32.0f));
      double ns = -1;
      const skua_status timed = skua_event_nanoseconds(begin, end, &ns);
      EXPECT_TRUE(timed == SKUA_STATUS_UNSUPPORTED || (timed == SKUA_STATUS_OK && ns > 0)) << skua_error_text() << ns;
      EXPECT_EQ(skua_event_nanoseconds(begin, nullptr, &ns), SKUA_STATUS_INVALID_ARGUMENT);
      skua_event_destroy(begin);
      skua_event_destroy(end);
    }
    skua_plan_destroy(plan);
  }
}

}  // namespace
