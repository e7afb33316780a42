// Every call of the driver that can fail fails once, by a library that stands before the driver (tests/faults): the
// library answers with a status and a text, gives everything back, and a new context works. A context lives through one
// of these stories: made, operator made and planned, buffers written, recorded, timed, waited for, read.
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "tests/faults/faults.h"
#include "tests/support/support.h"

#ifdef SKUA_GPU_OPENCL
#include "tests/support/engine_opencl.h"
#endif
#ifdef SKUA_GPU_VULKAN
#include "tests/support/engine_vulkan.h"
#endif

#if defined(SKUA_GPU_OPENCL) || defined(SKUA_GPU_VULKAN)
namespace skua_test {
namespace {

// An engine's objects and memory, made by the driver itself.
struct Over {
  std::function<void(skua_context_options&)> context;
  uint64_t memory = 0;
};

struct Story {
  skua_device_api api;
  const Over* over;  // NULL: objects and buffers of the library's own
  size_t live = 0;
  skua_status worst = SKUA_STATUS_OK;
  std::string text, where;

  Story(skua_device_api a, const Over* o) : api(a), over(o) {}
  bool ok(skua_status s, const char* what) {
    if (s == SKUA_STATUS_OK) return true;
    if (worst == SKUA_STATUS_OK) worst = s, text = skua_error_text(), where = what;
    return false;
  }
  static void* alloc(void* ctx, size_t size, size_t align) {
    ++static_cast<Story*>(ctx)->live;
    void* memory = nullptr;
    return posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, size) ? nullptr : memory;
  }
  static void free(void* ctx, void* memory, size_t) {
    --static_cast<Story*>(ctx)->live;
    std::free(memory);
  }

  bool tell() {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.allocator = {this, alloc, free};
    o.device = {api, 0};
    if (over) over->context(o);
    skua_context* context = nullptr;
    bool right = false;
    if (ok(skua_context_create(&o, &context), "context_create")) right = operate(context);
    skua_context_destroy(context);
    return right;
  }

  bool operate(skua_context* context) {
    skua_unary_desc desc = SKUA_UNARY_DESC_INIT;
    desc.kind = SKUA_UNARY_SQUARE;
    constexpr size_t n = 1000;
    const skua_tensor shape = skua_tensor_1d(SKUA_DTYPE_F32, n);
    skua_op* op = nullptr;
    skua_plan* plan = nullptr;
    skua_device_buffer *x = nullptr, *y = nullptr;
    skua_stream *stream = nullptr, *other = nullptr;
    skua_event *begin = nullptr, *end = nullptr;
    float in[n], out[n] = {};
    for (size_t i = 0; i < n; ++i) in[i] = float(i) / 16 - 20;
    double nanoseconds = 0;
    bool right = false;
    const auto make = [&](size_t begin, skua_device_buffer** out) {
      return over ? ok(skua_device_buffer_import(context, over->memory, begin, sizeof in, out), "device_buffer_import")
                  : ok(skua_device_buffer_create(context, sizeof in, out), "device_buffer_create");
    };
    auto enqueue = [&](skua_device_buffer* from, skua_device_buffer* to, skua_stream* s) {
      const skua_buffer a = {nullptr, from, 0}, b = {nullptr, to, 0};
      return ok(skua_plan_enqueue(plan, &a, 1, &b, 1, nullptr, s), "plan_enqueue");
    };
    if (ok(skua_unary_create(context, &desc, &op), "unary_create") &&
        ok(skua_op_plan(op, &shape, 1, nullptr, 0, &plan), "op_plan") && make(0, &x) && make(kBehind, &y) &&
        ok(skua_device_buffer_write(x, 0, in, sizeof in), "device_buffer_write") &&
        ok(skua_stream_create(context, &stream), "stream_create") &&
        ok(skua_stream_create(context, &other), "stream_create") &&
        ok(skua_event_record(stream, &begin), "event_record") && enqueue(x, y, stream) && enqueue(y, x, stream) &&
        ok(skua_event_record(stream, &end), "event_record") && ok(skua_stream_submit(stream), "stream_submit") &&
        ok(skua_stream_wait_event(other, end), "stream_wait_event") && enqueue(x, y, other) &&
        ok(skua_stream_wait(other), "stream_wait") &&
        ok(skua_event_nanoseconds(begin, end, &nanoseconds), "event_nanoseconds") &&
        ok(skua_device_buffer_read(y, 0, out, sizeof out), "device_buffer_read")) {
      right = nanoseconds > 0;
      for (size_t i = 0; i < n; ++i)
        right = right && std::fabs(out[i] - std::pow(in[i], 8)) <= 1e-5 * std::pow(in[i], 8);
    }
    skua_event_destroy(begin);
    skua_event_destroy(end);
    skua_stream_destroy(stream);
    skua_stream_destroy(other);
    skua_device_buffer_destroy(x);
    skua_device_buffer_destroy(y);
    skua_plan_destroy(plan);
    skua_op_destroy(op);
    return right;
  }
};

Faults* faults_of(const char* variable, const char* library) {
  const std::string path = std::string(SKUA_FAULTS_DIR) + "/" + library;
  setenv(variable, path.c_str(), 1);
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto get = opened ? reinterpret_cast<Faults* (*)()>(dlsym(opened, "skua_faults")) : nullptr;
  return get ? get() : nullptr;
}

void every_call_fails(skua_device_api api, Faults* faults, std::initializer_list<int> codes, int lost,
                      const Over* over = nullptr) {
  ASSERT_TRUE(faults);
  skua_device_list(nullptr, 0);
  // the first instance of a process stays, so that its driver does (gpu/vulkan/instance.cc)
  ASSERT_LE(faults->live, api == SKUA_DEVICE_API_VULKAN);
  faults->live = 0;
  {
    Story story(api, over);
    const bool right = story.tell();
    const char* required = std::getenv("SKUA_TEST_GPU");
    if (story.worst == SKUA_STATUS_NO_DEVICE && !(required && !std::strcmp(required, "required")))
      GTEST_SKIP() << story.text;
    ASSERT_TRUE(right) << story.where << ": " << story.text;
    EXPECT_EQ(story.live, 0u);
    ASSERT_EQ(faults->live, 0) << "objects of the driver are left over when nothing fails";
  }
  for (const int code : codes) {
    long survived = 0, n = 1;
    for (;; ++n) {
      faults->calls = faults->failed = 0;
      faults->name[0] = 0;
      faults->fail_at = n;
      faults->code = code;
      Story story(api, over);
      const bool right = story.tell();
      faults->fail_at = 0;
      SCOPED_TRACE("call " + std::to_string(n) + " (" + faults->name + ") returns " + std::to_string(code) + "; " +
                   story.where + ": " + story.text);
      EXPECT_EQ(story.live, 0u);
      EXPECT_EQ(faults->live, 0);
      faults->live = 0;
      if (!faults->failed) break;
      if (right) {
        ++survived;  // the library can do without
        continue;
      }
      ASSERT_NE(story.worst, SKUA_STATUS_OK) << "wrong results, and no status";
      EXPECT_FALSE(story.text.empty());
      if (story.where != "context_create") { EXPECT_EQ(story.worst == SKUA_STATUS_DEVICE_LOST, code == lost); }
    }
    EXPECT_GT(n, 20);
    testing::Test::RecordProperty("calls", int(n - 1));
    testing::Test::RecordProperty("survived", int(survived));
    Story again(api, over);
    EXPECT_TRUE(again.tell()) << again.where << ": " << again.text;
  }
}

// Devices that are too old are left out of the list, and a context says why there is none.
void old_drivers(skua_device_api api, Faults* faults, const std::vector<std::pair<int, const char*>>& kinds) {
  ASSERT_TRUE(faults);
  const size_t all = skua_device_list(nullptr, 0);
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  o.device = {api, 0};
  skua_context* context = nullptr;
  if (skua_context_create(&o, &context) != SKUA_STATUS_OK) GTEST_SKIP() << skua_error_text();
  skua_context_destroy(context);
  for (const auto& [kind, why] : kinds) {
    faults->old = kind;
    EXPECT_LT(skua_device_list(nullptr, 0), all) << why;
    EXPECT_EQ(skua_context_create(&o, &context), SKUA_STATUS_NO_DEVICE);
    EXPECT_EQ(context, nullptr);
    EXPECT_NE(strstr(skua_error_text(), why), nullptr) << skua_error_text();
    faults->old = 0;
  }
  EXPECT_EQ(skua_device_list(nullptr, 0), all);
}

#ifdef SKUA_GPU_OPENCL
TEST(GpuFaults, OldOpenCl) {
  old_drivers(SKUA_DEVICE_API_OPENCL, faults_of("SKUA_OPENCL_LIBRARY", "libskua_faults_opencl.so"),
              {{1, "has OpenCL 1.1 of old, 1.2 is needed"}});
}
#endif

#ifdef SKUA_GPU_VULKAN
TEST(GpuFaults, OldVulkan) {
  old_drivers(SKUA_DEVICE_API_VULKAN, faults_of("SKUA_VULKAN_LIBRARY", "libskua_faults_vulkan.so"),
              {{1, "is of version 1.0, 1.1 is needed"},
               {2, "the library is of version 1.0, 1.1 is needed"},
               {3, "has no queue that computes"}});
}
#endif

#ifdef SKUA_GPU_OPENCL
TEST(GpuFaults, EveryOpenClCallFails) {
  // CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY
  every_call_fails(SKUA_DEVICE_API_OPENCL, faults_of("SKUA_OPENCL_LIBRARY", "libskua_faults_opencl.so"), {-5, -6}, 1);
}
#endif

#ifdef SKUA_GPU_OPENCL
// Over an engine's cl_context and queue, in its memory.
TEST(GpuFaults, EveryOpenClCallOfAnEngineFails) {
  Cl cl(dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!cl.context) GTEST_SKIP() << "no OpenCL device";
  const cl_command_queue queue = cl.clCreateCommandQueue(cl.context, cl.device, CL_QUEUE_PROFILING_ENABLE, nullptr);
  const cl_mem memory = cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE, kBehind + kBytes, nullptr, nullptr);
  const skua_opencl_objects given = {cl.context, cl.device, queue};
  const Over over = {[&](skua_context_options& o) { o.opencl = &given; }, uintptr_t(memory)};
  every_call_fails(SKUA_DEVICE_API_OPENCL, faults_of("SKUA_OPENCL_LIBRARY", "libskua_faults_opencl.so"), {-5}, 1,
                   &over);
  cl_uint references = 0;
  EXPECT_EQ(cl.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr), CL_SUCCESS);
  EXPECT_EQ(references, 1u);
  cl.clReleaseMemObject(memory);
  cl.clReleaseCommandQueue(queue);
}

// Streams have queues of their own: what the host wrote must be there when unmap returns, by whoever it is called.
TEST(GpuFaults, UnmapWaits) {
  Faults* faults = faults_of("SKUA_OPENCL_LIBRARY", "libskua_faults_opencl.so");
  ASSERT_TRUE(faults);
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  o.device = {SKUA_DEVICE_API_OPENCL, 0};
  skua_context* context = nullptr;
  if (skua_context_create(&o, &context) != SKUA_STATUS_OK) GTEST_SKIP() << skua_error_text();
  skua_device_buffer* buffer = nullptr;
  EXPECT_EQ(skua_device_buffer_create(context, 64, &buffer), SKUA_STATUS_OK);
  void* data = nullptr;
  for (const bool by_destroy : {false, true}) {
    EXPECT_EQ(skua_device_buffer_map(buffer, 0, 64, &data), SKUA_STATUS_OK);
    faults->unwaited = 0;
    const long before = faults->calls;
    if (by_destroy) skua_device_buffer_destroy(buffer);
    else EXPECT_EQ(skua_device_buffer_unmap(buffer, data), SKUA_STATUS_OK);
    EXPECT_GE(faults->calls, before + 2) << "unmapped, and waited for";
    EXPECT_EQ(faults->unwaited, 0);
  }
  skua_context_destroy(context);
}
#endif

#ifdef SKUA_GPU_VULKAN
TEST(GpuFaults, EveryVulkanCallFails) {
  Faults* faults = faults_of("SKUA_VULKAN_LIBRARY", "libskua_faults_vulkan.so");
  // VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST
  every_call_fails(SKUA_DEVICE_API_VULKAN, faults, {-2, -4}, -4);
}

// Over an engine's VkDevice and queue, in its memory.
TEST(GpuFaults, EveryVulkanCallOfAnEngineFails) {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) GTEST_SKIP() << "no Vulkan loader";
  Engine engine(library);
  if (!engine.device) GTEST_SKIP() << "no Vulkan device";
  const Engine::Memory memory = engine.make_memory(kBehind + kBytes);
  Faults* const faults = faults_of("SKUA_VULKAN_LIBRARY", "libskua_faults_vulkan.so");
  skua_vulkan_objects given = engine.objects();
  given.get_instance_proc_addr = nullptr;  // the library looks for its own: the one that fails
  const Over over = {[&](skua_context_options& o) { o.vulkan = &given; }, number_of(memory.buffer)};
  every_call_fails(SKUA_DEVICE_API_VULKAN, faults, {-2, -4}, -4, &over);
  engine.free_memory(memory);
}

// Memory that the host does not see: every transfer goes through the staging buffer.
TEST(GpuFaults, EveryVulkanCallFailsWithMemoryOfItsOwn) {
  Faults* faults = faults_of("SKUA_VULKAN_LIBRARY", "libskua_faults_vulkan.so");
  ASSERT_TRUE(faults);
  faults->discrete = 1;
  every_call_fails(SKUA_DEVICE_API_VULKAN, faults, {-1}, -4);
  faults->discrete = 0;
}
#endif

}  // namespace
}  // namespace skua_test
#endif
