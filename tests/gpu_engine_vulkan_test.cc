// Contexts over an engine's own VkDevice: its buffers are imported, its queue is shared, and what is the engine's stays
// so.
#include "tests/support/engine.h"

#ifdef SKUA_GPU_VULKAN
#include <algorithm>
#include <string>

#include "gpu/device.h"
#include "tests/support/engine_vulkan.h"

using namespace skua_test;

namespace {

TEST(GpuEngine, BuffersOfAVkDevice) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"));
  ASSERT_TRUE(engine.device);
  const std::vector<float> x = values();
  const Engine::Memory both = engine.make_memory(kBehind + kBytes), before = engine.make_memory(kBytes),
                       behind = engine.make_memory(kBytes);
  {
    const skua_vulkan_objects given = engine.objects();
    Context gpu(given);
    ASSERT_TRUE(gpu.context);
    Work work(gpu, number_of(both.buffer));
    ASSERT_TRUE(work.x && work.y && work.stream && work.plan);
    // The engine's copy, the library's operator, the engine's copy: ordered by the queue, and nobody waits in between.
    std::memcpy(before.mapped, x.data(), kBytes);
    engine.copy(before.buffer, both.buffer, {0, 0, kBytes});
    work.enqueue();
    SKUA_EXPECT_OK(skua_stream_submit(work.stream));
    engine.copy(both.buffer, behind.buffer, {kBehind, 0, kBytes});
    EXPECT_EQ(engine.QueueWaitIdle(engine.queue), VK_SUCCESS);
    EXPECT_EQ(std::vector<float>(behind.mapped, behind.mapped + kCount), absolute(x));
    std::vector<float> got(kCount);
    SKUA_EXPECT_OK(skua_stream_wait(work.stream));
    SKUA_EXPECT_OK(skua_device_buffer_read(work.y, 0, got.data(), kBytes));
    EXPECT_EQ(got, absolute(x));
    SKUA_EXPECT_OK(skua_device_buffer_write(work.x, 0, got.data(), kBytes));
    work.enqueue();
    SKUA_EXPECT_OK(skua_stream_wait(work.stream));
    EXPECT_EQ(std::vector<float>(both.mapped, both.mapped + kCount), absolute(x));
    EXPECT_GT(engine.locks, 0);
    EXPECT_EQ(engine.locks, engine.unlocks);

    refuses_overlap(gpu, number_of(both.buffer), work);
    skua_device_buffer* none = nullptr;
    EXPECT_EQ(skua_device_buffer_import(gpu, number_of(both.buffer), kBehind, size_t(1) << 30, &none),
              SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("end behind the VkBuffer");
    EXPECT_EQ(skua_device_buffer_import(gpu, number_of(both.buffer), 4, 16, &none), SKUA_STATUS_INVALID_ARGUMENT);
    expect_text("offset 4");
    EXPECT_EQ(none, nullptr);
    void* at = nullptr;
    EXPECT_EQ(skua_device_buffer_map(work.x, 0, 4, &at), SKUA_STATUS_UNSUPPORTED);
    expect_text("the caller's");
    // The engine did not say that its device stores f16.
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.input_type = d.output_type = SKUA_DTYPE_F16;
    Op op;
    EXPECT_EQ(skua_unary_create(gpu, &d, &op), SKUA_STATUS_UNSUPPORTED);
    expect_text("f16");
  }
  // The device is the engine's still.
  engine.copy(both.buffer, behind.buffer, {0, 0, kBytes});
  EXPECT_EQ(engine.QueueWaitIdle(engine.queue), VK_SUCCESS);
  EXPECT_EQ(std::vector<float>(behind.mapped, behind.mapped + kCount), absolute(x));
  for (const Engine::Memory& m : {both, before, behind}) engine.free_memory(m);
}

// f16, where the engine says that its device was made for it; two contexts may share one device and queue.
TEST(GpuEngine, HalvesOfAVkDevice) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  if (half_types().empty() || half_types()[0] != SKUA_DTYPE_F16) GTEST_SKIP() << "no f16 in this build";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"), true);
  if (!engine.device) GTEST_SKIP() << "the device does not store f16";
  const size_t count = kCount | 1;  // ends with the VkBuffer, in the middle of a word
  const Engine::Memory both = engine.make_memory(kBehind + count * 2);
  uint16_t* const halves = reinterpret_cast<uint16_t*>(both.mapped);
  for (size_t i = 0; i < count; ++i) halves[i] = uint16_t(i * 7 % 0x7c00 | (i % 3 ? 0x8000 : 0));
  {
    const skua_vulkan_objects given = engine.objects();
    Context first(given), second(given);
    ASSERT_TRUE(first.context && second.context);
    for (Context* gpu : {&first, &second}) {
      std::fill(halves + kBehind / 2, halves + kBehind / 2 + count, uint16_t(0xffff));
      skua_unary_desc d = SKUA_UNARY_DESC_INIT;
      d.kind = SKUA_UNARY_ABS;
      d.input_type = d.output_type = SKUA_DTYPE_F16;
      Op op;
      SKUA_EXPECT_OK(skua_unary_create(*gpu, &d, &op));
      const skua_tensor t = shape({count}, SKUA_DTYPE_F16);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      skua_device_buffer *x = nullptr, *y = nullptr;
      SKUA_EXPECT_OK(skua_device_buffer_import(*gpu, number_of(both.buffer), 0, count * 2, &x));
      SKUA_EXPECT_OK(skua_device_buffer_import(*gpu, number_of(both.buffer), kBehind, count * 2, &y));
      skua_stream* stream = nullptr;
      SKUA_EXPECT_OK(skua_stream_create(*gpu, &stream));
      const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
      SKUA_EXPECT_OK(skua_plan_enqueue(plan, &in, 1, &out, 1, nullptr, stream));
      skua_plan_destroy(plan);
      skua_device_buffer_destroy(x);
      skua_device_buffer_destroy(y);
      SKUA_EXPECT_OK(skua_stream_wait(stream));
      skua_stream_destroy(stream);
      size_t wrong = 0;
      for (size_t i = 0; i < count; ++i) wrong += halves[kBehind / 2 + i] != (halves[i] & 0x7fff);
      EXPECT_EQ(wrong, 0u);
    }
  }
  engine.free_memory(both);
}

// What the library records, in letters: D a dispatch; B a barrier between dispatches, I one that is behind all that the
// engine has put on the queue, O one before all that it will; S a submit. No layer sees a barrier that is missing
// between two submits.
struct Recorder {
  std::string calls;
  int rounds = -1;  // constant 11 of the last pipeline: whether the kernel rounds to f16
  PFN_vkGetInstanceProcAddr get;
  PFN_vkGetDeviceProcAddr find;
  PFN_vkCmdPipelineBarrier barrier;
  PFN_vkCmdDispatch dispatch;
  PFN_vkQueueSubmit submit;
  PFN_vkCreateComputePipelines pipelines;
} recorder;

template <class F> F real(F& to, PFN_vkVoidFunction from, F mine) { return to = reinterpret_cast<F>(from), mine; }

PFN_vkVoidFunction VKAPI_PTR find_and_record(VkDevice device, const char* name) {
  const PFN_vkVoidFunction from = recorder.find(device, name);
  const auto is = [&](const char* other) { return !std::strcmp(name, other); };
  const auto same = [](auto f) { return reinterpret_cast<PFN_vkVoidFunction>(f); };
  if (is("vkCmdPipelineBarrier"))
    return same(real<PFN_vkCmdPipelineBarrier>(
        recorder.barrier, from,
        [](VkCommandBuffer c, VkPipelineStageFlags src, VkPipelineStageFlags dst, VkDependencyFlags f, uint32_t n,
           const VkMemoryBarrier* b, uint32_t nb, const VkBufferMemoryBarrier* bb, uint32_t ni,
           const VkImageMemoryBarrier* ib) {
          constexpr VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                         compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
          constexpr VkAccessFlags shader = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                                  memory = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
          const bool in =
              n == 1 && (b->srcAccessMask & VK_ACCESS_MEMORY_WRITE_BIT) && (b->dstAccessMask & shader) == shader;
          const bool out =
              n == 1 && (b->srcAccessMask & VK_ACCESS_SHADER_WRITE_BIT) && (b->dstAccessMask & memory) == memory;
          recorder.calls += src == all && in                   ? 'I'
                            : (dst & all) && out               ? 'O'
                            : src == compute && dst == compute ? 'B'
                                                               : '?';
          recorder.barrier(c, src, dst, f, n, b, nb, bb, ni, ib);
        }));
  if (is("vkCmdDispatch"))
    return same(
        real<PFN_vkCmdDispatch>(recorder.dispatch, from, [](VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) {
          recorder.calls += 'D';
          recorder.dispatch(c, x, y, z);
        }));
  if (is("vkQueueSubmit"))
    return same(real<PFN_vkQueueSubmit>(recorder.submit, from,
                                        [](VkQueue q, uint32_t n, const VkSubmitInfo* info, VkFence fence) {
                                          recorder.calls += 'S';
                                          return recorder.submit(q, n, info, fence);
                                        }));
  if (is("vkCreateComputePipelines"))
    return same(real<PFN_vkCreateComputePipelines>(
        recorder.pipelines, from,
        [](VkDevice d, VkPipelineCache cache, uint32_t n, const VkComputePipelineCreateInfo* info,
           const VkAllocationCallbacks* a, VkPipeline* p) {
          const VkSpecializationInfo& s = *info->stage.pSpecializationInfo;
          for (uint32_t i = 0; i < s.mapEntryCount; ++i)
            if (s.pMapEntries[i].constantID == 11)
              std::memcpy(&recorder.rounds, static_cast<const char*>(s.pData) + s.pMapEntries[i].offset, sizeof(int));
          return recorder.pipelines(d, cache, n, info, a, p);
        }));
  return from;
}

skua_vulkan_objects recorded(Engine& engine) {
  recorder = {};
  recorder.get = engine.get;
  recorder.find = reinterpret_cast<PFN_vkGetDeviceProcAddr>(engine.get(engine.instance, "vkGetDeviceProcAddr"));
  skua_vulkan_objects given = engine.objects();
  const PFN_vkGetInstanceProcAddr get = [](VkInstance instance, const char* name) {
    return std::strcmp(name, "vkGetDeviceProcAddr") ? recorder.get(instance, name)
                                                    : reinterpret_cast<PFN_vkVoidFunction>(&find_and_record);
  };
  given.get_instance_proc_addr = reinterpret_cast<void*>(get);
  return given;
}

TEST(GpuEngine, BarriersOnAVkQueue) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"));
  ASSERT_TRUE(engine.device);
  const Engine::Memory memory = engine.make_memory(3 * kBehind), another = engine.make_memory(2 * kBehind);
  {
    const skua_vulkan_objects given = recorded(engine);
    Context gpu(given);
    ASSERT_TRUE(gpu.context);
    Work work(gpu, number_of(another.buffer));
    skua_device_buffer *middle = nullptr, *last = nullptr;
    SKUA_EXPECT_OK(skua_device_buffer_import(gpu, number_of(memory.buffer), kBehind, kBytes, &middle));
    SKUA_EXPECT_OK(skua_device_buffer_import(gpu, number_of(memory.buffer), 2 * kBehind, kBytes, &last));
    skua_stream* second = nullptr;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &second));
    const auto enqueue = [&](skua_device_buffer* from, skua_device_buffer* to, skua_stream* stream) {
      const skua_buffer in = {nullptr, from, 0}, out = {nullptr, to, 0};
      return skua_plan_enqueue(work.plan, &in, 1, &out, 1, nullptr, stream);
    };
    // Imports of one buffer meet where they lie in it.
    SKUA_EXPECT_OK(enqueue(last, middle, work.stream));
    SKUA_EXPECT_OK(enqueue(middle, work.y, work.stream));
    SKUA_EXPECT_OK(enqueue(last, work.x, work.stream));
    SKUA_EXPECT_OK(skua_stream_submit(work.stream));
    EXPECT_EQ(recorder.calls, "IDBDDOS");
    // A stream that waits for an event is behind what it stands for.
    recorder.calls.clear();
    skua_event* event = nullptr;
    SKUA_EXPECT_OK(enqueue(last, middle, work.stream));
    SKUA_EXPECT_OK(skua_event_record(work.stream, &event));
    SKUA_EXPECT_OK(skua_stream_wait_event(second, event));
    SKUA_EXPECT_OK(enqueue(middle, work.x, second));
    SKUA_EXPECT_OK(skua_stream_wait(second));
    EXPECT_EQ(recorder.calls, "IBDOSIBDOS");  // the first B: dispatches of the submit before
    SKUA_EXPECT_OK(skua_stream_wait(work.stream));
    skua_event_destroy(event);
    skua_stream_destroy(second);
    for (skua_device_buffer* b : {middle, last}) skua_device_buffer_destroy(b);
  }
  for (const Engine::Memory& m : {memory, another}) engine.free_memory(m);
}

// Kernels round to f16 themselves where the engine does not say that the driver can be told to.
TEST(GpuEngine, WhoRoundsToHalves) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  if (half_types().empty() || half_types()[0] != SKUA_DTYPE_F16) GTEST_SKIP() << "no f16 in this build";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"), true);
  if (!engine.device) GTEST_SKIP() << "the device does not store f16";
  for (const bool said : {false, true}) {
    skua_vulkan_objects given = recorded(engine);
    given.float_controls = said;
    Context gpu(given);
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.input_type = d.output_type = SKUA_DTYPE_F16;
    Op op;
    SKUA_EXPECT_OK(skua_unary_create(gpu, &d, &op));
    const skua_tensor t = shape({kCount}, SKUA_DTYPE_F16);
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    EXPECT_EQ(recorder.rounds, said ? !gpu.context->gpu->about.f16_rounding : 1);
    skua_plan_destroy(plan);
  }
}

// What the engine does not say of its device is not used: arithmetic of f16, promises about NaN. Subgroups are no
// feature.
TEST(GpuEngine, WhatIsSaidIsUsed) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  if (half_types().empty() || half_types()[0] != SKUA_DTYPE_F16) GTEST_SKIP() << "no f16 in this build";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"), true, true);
  if (!engine.device) GTEST_SKIP() << "the device does not compute in f16";
  for (const bool said : {false, true}) {
    skua_vulkan_objects given = engine.objects();
    given.float_controls = given.float16 = said;
    Context gpu(given);
    ASSERT_TRUE(gpu.context);
    const skua::gpu::Description& about = gpu.context->gpu->about;
    EXPECT_EQ(about.f16_arithmetic, said);
    if (!said) { EXPECT_FALSE(about.f32_nan || about.f16_nan || about.f16_rounding); }
    const auto kernel = [&](const skua_op* op, const std::vector<skua_tensor>& in) {
      skua_plan* plan = nullptr;
      // the validation layer sees the program
      SKUA_EXPECT_OK(skua_op_plan(op, in.data(), in.size(), nullptr, 0, &plan));
      const std::string name = skua_plan_kernel(plan);
      skua_plan_destroy(plan);
      return name;
    };
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.b_type = d.c_type = SKUA_DTYPE_F16;
    d.numerics = SKUA_NUMERICS_FAST;
    Op product, softmax;
    SKUA_EXPECT_OK(skua_gemm_create(gpu, &d, nullptr, nullptr, &product));
    EXPECT_EQ(kernel(product, {shape({4, 8}, SKUA_DTYPE_F16), shape({8, 4}, SKUA_DTYPE_F16)}).find("_h4") !=
                  std::string::npos,
              said);
    skua_softmax_desc s = SKUA_SOFTMAX_DESC_INIT;
    s.axis = 1;
    SKUA_EXPECT_OK(skua_softmax_create(gpu, &s, &softmax));
    EXPECT_EQ(kernel(softmax, {shape({4, 40})}).find("subgroup") != std::string::npos,
              about.subgroup_sums && about.subgroup >= 4);
  }
}

TEST(GpuEngine, VkObjectsThatCannotBeUsed) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"));
  ASSERT_TRUE(engine.device);
  const auto refused = [&](auto change, const char* text, skua_device_api api = SKUA_DEVICE_API_VULKAN) {
    skua_vulkan_objects given = engine.objects();
    change(given);
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.device.api = api;
    o.vulkan = &given;
    skua_context* none = nullptr;
    EXPECT_EQ(skua_context_create(&o, &none), SKUA_STATUS_INVALID_ARGUMENT) << text;
    expect_text(text);
    skua_context_destroy(none);
  };
  refused([](skua_vulkan_objects& o) { o.instance = nullptr; }, "vulkan.instance is NULL");
  refused([](skua_vulkan_objects& o) { o.queue = nullptr; }, "vulkan.queue is NULL");
  refused([](skua_vulkan_objects& o) { o.queue_family = 99; }, "queue_family is 99");
  refused([](skua_vulkan_objects& o) { o.unlock_queue = nullptr; }, "only one of lock_queue");
  refused([](skua_vulkan_objects&) {}, "device.api", SKUA_DEVICE_API_OPENCL);
}

}  // namespace
#endif
