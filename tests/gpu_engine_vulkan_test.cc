// Contexts over an engine's own VkDevice: its buffers are imported, its queue is shared, and what is the engine's stays so.
#include "tests/support/engine.h"

#ifdef SKUA_GPU_VULKAN
#include <algorithm>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

using namespace skua_test;

namespace {

VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT, const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ADD_FAILURE() << "a validation layer warns: " << data->pMessage;
  return VK_FALSE;
}

#define SKUA_ENGINE_VK(X)                                                                                                                                                       \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceQueueFamilyProperties) X(GetPhysicalDeviceMemoryProperties) X(CreateDevice) X(DestroyDevice) X(GetDeviceQueue) \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(CreateCommandPool) X(DestroyCommandPool)      \
  X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer) X(CmdCopyBuffer) X(CmdPipelineBarrier) X(QueueSubmit) X(QueueWaitIdle)

// An engine: its instance (with the validation layer, where the environment asks for it), device, queue, and buffers of memory that the host sees.
struct Engine {
  explicit Engine(void* library, bool with_half = false) : half(with_half) {
    get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    const auto list = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(get(nullptr, "vkEnumerateInstanceExtensionProperties"));
    VkExtensionProperties names[64];
    uint32_t n = 64;
    list(nullptr, &n, names);
    bool speaks = false;
    for (uint32_t i = 0; i < n; ++i) speaks = speaks || !std::strcmp(names[i].extensionName, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    VkApplicationInfo app = {};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_1;
    VkDebugUtilsMessengerCreateInfoEXT messages = {};
    messages.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messages.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messages.pfnUserCallback = on_message;
    const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    if (speaks) info.pNext = &messages, info.enabledExtensionCount = 1, info.ppEnabledExtensionNames = &extension;
    if (reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"))(&info, nullptr, &instance) != VK_SUCCESS) return;
#define X(name) name = reinterpret_cast<PFN_vk##name>(get(instance, "vk" #name));
    SKUA_ENGINE_VK(X)
#undef X
    if (auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(get(instance, "vkCreateDebugUtilsMessengerEXT")); speaks && make) make(instance, &messages, nullptr, &messenger);
    uint32_t count = 1;
    EnumeratePhysicalDevices(instance, &count, &physical);
    VkQueueFamilyProperties families[16];
    n = 16;
    GetPhysicalDeviceQueueFamilyProperties(physical, &n, families);
    while (family < n && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info = {};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueFamilyIndex = family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    VkDeviceCreateInfo device_info = {};
    device_info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device_info.queueCreateInfoCount = 1;
    device_info.pQueueCreateInfos = &queue_info;
    VkPhysicalDevice16BitStorageFeatures storage = {};
    storage.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    storage.storageBuffer16BitAccess = VK_TRUE;
    const char* float_controls = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME;
    if (half) device_info.pNext = &storage, device_info.enabledExtensionCount = 1, device_info.ppEnabledExtensionNames = &float_controls;
    if (CreateDevice(physical, &device_info, nullptr, &device) != VK_SUCCESS) return;
    GetDeviceQueue(device, family, 0, &queue);
    VkCommandPoolCreateInfo pool_info = {};
    pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool_info.queueFamilyIndex = family;
    CreateCommandPool(device, &pool_info, nullptr, &pool);
  }
  ~Engine() {
    if (device) {
      DestroyCommandPool(device, pool, nullptr);
      DestroyDevice(device, nullptr);  // the layer tells what was left over
    }
    if (messenger) reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(get(instance, "vkDestroyDebugUtilsMessengerEXT"))(instance, messenger, nullptr);
    if (instance) DestroyInstance(instance, nullptr);
  }
  struct Memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    float* mapped;
  };
  Memory make_memory(size_t size) {
    Memory m = {};
    VkBufferCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    info.size = size;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    CreateBuffer(device, &info, nullptr, &m.buffer);
    VkMemoryRequirements needs;
    GetBufferMemoryRequirements(device, m.buffer, &needs);
    VkPhysicalDeviceMemoryProperties kinds;
    GetPhysicalDeviceMemoryProperties(physical, &kinds);
    constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo memory = {};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size;
    while (!((needs.memoryTypeBits >> memory.memoryTypeIndex & 1) && (kinds.memoryTypes[memory.memoryTypeIndex].propertyFlags & host) == host)) ++memory.memoryTypeIndex;
    AllocateMemory(device, &memory, nullptr, &m.memory);
    BindBufferMemory(device, m.buffer, m.memory, 0);
    MapMemory(device, m.memory, 0, VK_WHOLE_SIZE, 0, reinterpret_cast<void**>(&m.mapped));
    return m;
  }
  void free_memory(const Memory& m) {
    DestroyBuffer(device, m.buffer, nullptr);
    FreeMemory(device, m.memory, nullptr);
  }
  // Submits a copy; only what the host does before and after is the engine's to order.
  void copy(VkBuffer from, VkBuffer to, VkBufferCopy range) {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool;
    info.commandBufferCount = 1;
    VkCommandBuffer commands;
    AllocateCommandBuffers(device, &info, &commands);
    VkCommandBufferBeginInfo begin = {};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    BeginCommandBuffer(commands, &begin);
    CmdCopyBuffer(commands, from, to, 1, &range);
    VkMemoryBarrier seen = {};
    seen.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    seen.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    seen.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &seen, 0, nullptr, 0, nullptr);
    EndCommandBuffer(commands);
    VkSubmitInfo submit = {};
    submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    submit.commandBufferCount = 1;
    submit.pCommandBuffers = &commands;
    EXPECT_EQ(QueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  }
  skua_vulkan_objects objects() {
    skua_vulkan_objects o = {};
    o.get_instance_proc_addr = reinterpret_cast<void*>(get);
    o.instance = instance;
    o.physical_device = physical;
    o.device = device;
    o.queue = queue;
    o.queue_family = family;
    o.storage_16bit = o.float_controls = half;
    o.lock_queue = [](void* e) { ++static_cast<Engine*>(e)->locks; };
    o.unlock_queue = [](void* e) { ++static_cast<Engine*>(e)->unlocks; };
    o.lock_ctx = this;
    return o;
  }

  bool half;
  PFN_vkGetInstanceProcAddr get;
#define X(name) PFN_vk##name name;
  SKUA_ENGINE_VK(X)
#undef X
  VkInstance instance = nullptr;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  VkPhysicalDevice physical = nullptr;
  VkDevice device = nullptr;
  VkQueue queue = nullptr;
  VkCommandPool pool = VK_NULL_HANDLE;
  uint32_t family = 0;
  int locks = 0, unlocks = 0;
};
uint64_t number_of(VkBuffer buffer) {
  uint64_t n = 0;
  std::memcpy(&n, &buffer, sizeof buffer);
  return n;
}

TEST(GpuEngine, BuffersOfAVkDevice) {
  if (!has_device(SKUA_DEVICE_API_VULKAN)) GTEST_SKIP() << "no Vulkan device";
  Engine engine(open_driver("SKUA_VULKAN_LIBRARY", "libvulkan.so.1"));
  ASSERT_TRUE(engine.device);
  const std::vector<float> x = values();
  const Engine::Memory both = engine.make_memory(kBehind + kBytes), before = engine.make_memory(kBytes), behind = engine.make_memory(kBytes);
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

    skua_device_buffer* none = nullptr;
    EXPECT_EQ(skua_device_buffer_import(gpu, number_of(both.buffer), kBehind, size_t(1) << 30, &none), SKUA_STATUS_INVALID_ARGUMENT);
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
  const Engine::Memory both = engine.make_memory(kBehind + kBytes);
  uint16_t* const halves = reinterpret_cast<uint16_t*>(both.mapped);
  for (size_t i = 0; i < kCount; ++i) halves[i] = uint16_t(i * 7 % 0x7c00 | (i % 3 ? 0x8000 : 0));
  {
    const skua_vulkan_objects given = engine.objects();
    Context first(given), second(given);
    ASSERT_TRUE(first.context && second.context);
    for (Context* gpu : {&first, &second}) {
      std::fill(halves + kBehind / 2, halves + kBehind / 2 + kCount, uint16_t(0xffff));
      skua_unary_desc d = SKUA_UNARY_DESC_INIT;
      d.kind = SKUA_UNARY_ABS;
      d.input_type = d.output_type = SKUA_DTYPE_F16;
      Op op;
      SKUA_EXPECT_OK(skua_unary_create(*gpu, &d, &op));
      const skua_tensor t = shape({kCount}, SKUA_DTYPE_F16);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      skua_device_buffer *x = nullptr, *y = nullptr;
      SKUA_EXPECT_OK(skua_device_buffer_import(*gpu, number_of(both.buffer), 0, kCount * 2, &x));
      SKUA_EXPECT_OK(skua_device_buffer_import(*gpu, number_of(both.buffer), kBehind, kCount * 2, &y));
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
      for (size_t i = 0; i < kCount; ++i) wrong += halves[kBehind / 2 + i] != (halves[i] & 0x7fff);
      EXPECT_EQ(wrong, 0u);
    }
  }
  engine.free_memory(both);
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
