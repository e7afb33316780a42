// An engine with a VkDevice of its own, for tests of contexts over it.
#pragma once
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "tests/support/engine.h"

namespace skua_test {

inline VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                     const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  ADD_FAILURE() << "a validation layer warns: " << data->pMessage;
  return VK_FALSE;
}

#define SKUA_ENGINE_VK(X)                                                                                 \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceQueueFamilyProperties)                \
  X(GetPhysicalDeviceMemoryProperties) X(CreateDevice) X(DestroyDevice) X(GetDeviceQueue) X(CreateBuffer) \
  X(DestroyBuffer) X(GetBufferMemoryRequirements) X(AllocateMemory) X(FreeMemory) X(BindBufferMemory)     \
  X(MapMemory) X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer) \
  X(EndCommandBuffer) X(CmdCopyBuffer) X(CmdPipelineBarrier) X(QueueSubmit) X(QueueWaitIdle)

// An engine: its instance (with the validation layer, where the environment asks for it), device, queue, and buffers of
// memory that the host sees.
struct Engine {
  explicit Engine(void* library, bool with_half = false, bool with_half_arithmetic = false) : half(with_half) {
    get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    const auto list = reinterpret_cast<PFN_vkEnumerateInstanceExtensionProperties>(
        get(nullptr, "vkEnumerateInstanceExtensionProperties"));
    VkExtensionProperties names[64];
    uint32_t n = 64;
    list(nullptr, &n, names);
    bool speaks = false;
    for (uint32_t i = 0; i < n; ++i)
      speaks = speaks || !std::strcmp(names[i].extensionName, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    VkApplicationInfo app = {};
    app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    app.apiVersion = VK_API_VERSION_1_1;
    VkDebugUtilsMessengerCreateInfoEXT messages = {};
    messages.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messages.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messages.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messages.pfnUserCallback = on_message;
    const char* extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkInstanceCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &app;
    if (speaks) info.pNext = &messages, info.enabledExtensionCount = 1, info.ppEnabledExtensionNames = &extension;
    if (reinterpret_cast<PFN_vkCreateInstance>(get(nullptr, "vkCreateInstance"))(&info, nullptr, &instance) !=
        VK_SUCCESS)
      return;
#define X(name) name = reinterpret_cast<PFN_vk##name>(get(instance, "vk" #name));
    SKUA_ENGINE_VK(X)
#undef X
    if (auto make =
            reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(get(instance, "vkCreateDebugUtilsMessengerEXT"));
        speaks && make)
      make(instance, &messages, nullptr, &messenger);
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
    VkPhysicalDeviceShaderFloat16Int8Features arithmetic = {};
    arithmetic.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    arithmetic.shaderFloat16 = VK_TRUE;
    if (with_half_arithmetic) storage.pNext = &arithmetic;
    const char* const names_16[] = {VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
                                    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME};
    if (half)
      device_info.pNext = &storage, device_info.enabledExtensionCount = with_half_arithmetic ? 2 : 1,
      device_info.ppEnabledExtensionNames = names_16;
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
    if (messenger)
      reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(get(instance, "vkDestroyDebugUtilsMessengerEXT"))(
          instance, messenger, nullptr);
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
    info.usage =
        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    CreateBuffer(device, &info, nullptr, &m.buffer);
    VkMemoryRequirements needs;
    GetBufferMemoryRequirements(device, m.buffer, &needs);
    VkPhysicalDeviceMemoryProperties kinds;
    GetPhysicalDeviceMemoryProperties(physical, &kinds);
    constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo memory = {};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size;
    while (!((needs.memoryTypeBits >> memory.memoryTypeIndex & 1) &&
             (kinds.memoryTypes[memory.memoryTypeIndex].propertyFlags & host) == host))
      ++memory.memoryTypeIndex;
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
    CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &seen, 0, nullptr, 0,
                       nullptr);
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
inline uint64_t number_of(VkBuffer buffer) {
  uint64_t n = 0;
  std::memcpy(&n, &buffer, sizeof buffer);
  return n;
}

}  // namespace skua_test
