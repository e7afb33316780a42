// What the files of the Vulkan backend share. The library is opened at run time (SKUA_VULKAN_LIBRARY, libvulkan.so.1,
// libvulkan.so) and no function of it is linked.
//
// One VkInstance, one VkDevice and one queue per context, its own or the caller's. All streams share the queue, so a
// barrier in one stream orders it behind everything submitted before: events across streams need no semaphore. One set
// layout (all bindings are storage buffers, and one of texels behind them) and one pipeline layout (all arguments are
// push constants) serve every program.
#pragma once
#define VK_NO_PROTOTYPES
#include <pthread.h>
#include <string.h>
#include <vulkan/vulkan.h>
#include "core/op.h"
#include "gpu/cache.h"
#include "gpu/device.h"

namespace skua::gpu::vulkan {

#define SKUA_VK_GLOBAL(X) X(CreateInstance) X(EnumerateInstanceExtensionProperties)
#define SKUA_VK_INSTANCE(X)                                                                                    \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures2) \
  X(GetPhysicalDeviceMemoryProperties) X(GetPhysicalDeviceQueueFamilyProperties)                               \
  X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)
#define SKUA_VK_DEVICE(X)                                                                                           \
  X(DestroyDevice) X(DeviceWaitIdle) X(QueueWaitIdle) X(GetDeviceQueue) X(QueueSubmit) X(CreateBuffer)              \
  X(DestroyBuffer) X(GetBufferMemoryRequirements) X(CreateBufferView) X(DestroyBufferView) X(AllocateMemory)        \
  X(FreeMemory) X(BindBufferMemory) X(MapMemory) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout)         \
  X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreatePipelineCache) X(DestroyPipelineCache)                   \
  X(GetPipelineCacheData) X(CreateShaderModule) X(DestroyShaderModule) X(CreateComputePipelines) X(DestroyPipeline) \
  X(CreateDescriptorPool) X(DestroyDescriptorPool) X(AllocateDescriptorSets) X(UpdateDescriptorSets)                \
  X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(BeginCommandBuffer) X(EndCommandBuffer)    \
  X(CreateFence) X(DestroyFence) X(ResetFences) X(WaitForFences) X(CreateQueryPool) X(DestroyQueryPool)             \
  X(GetQueryPoolResults) X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch)             \
  X(CmdPipelineBarrier) X(CmdCopyBuffer) X(CmdResetQueryPool) X(CmdWriteTimestamp)

#define SKUA_VK_MEMBER(name) PFN_vk##name name;

struct Instance {
  void* library;
  VkInstance handle;
  VkDebugUtilsMessengerEXT messenger;  // validation layers speak to the context's log
  bool is_callers;                     // and not destroyed
  uint32_t n_devices;
  VkPhysicalDevice devices[16];        // software ones last
  char why[192];                       // there are none
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
  PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion;
  SKUA_VK_GLOBAL(SKUA_VK_MEMBER)
  SKUA_VK_INSTANCE(SKUA_VK_MEMBER)
};

// ctx: whose log hears the layers; NULL: nobody.
skua_status open_instance(const skua_context* ctx, Instance& in);
skua_status take_instance(const skua_vulkan_objects& given, Instance& in);  // the caller's, with its one device
void close_instance(Instance& in);
// given: what a device of the caller's has; NULL: all that it could have.
void describe(const Instance& in, uint32_t index, const skua_vulkan_objects* given, Description& d);
// The family whose queue is used; -1: none computes.
int queue_family(const Instance& in, VkPhysicalDevice device, uint32_t* timestamp_bits);
bool has_extension(const Instance& in, VkPhysicalDevice device, const char* name);

// What device features a kernel may use, chained for vkGetPhysicalDeviceFeatures2 and vkCreateDevice. The structs point
// at one another: never copied.
struct Features {
  VkPhysicalDeviceFeatures2 all;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceShaderFloat16Int8Features arithmetic;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot;
  const char* extensions[8];
  uint32_t n_extensions;
  bool f16_rounding, f16_preserve, f32_nan, f16_nan;  // what texts may ask for
  Features(const Instance& in, VkPhysicalDevice device);
  Features(const Features&) = delete;
};

struct Staging {  // transfers of memory that the host does not see
  VkBuffer buffer;
  VkDeviceMemory memory;
  void* mapped;
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkFence fence;
};

struct VulkanDevice : Device {
  Instance in;
  VkPhysicalDevice physical;
  VkDevice handle;
  VkQueue queue;
  uint32_t family, timestamp_bits;
  uint32_t n_bindings;  // of the set layout
  VkPhysicalDeviceMemoryProperties memory;
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipelineCache pipelines;
  CacheKey pipelines_key;  // of its one entry in the program cache
  Staging staging;
  VkBuffer unused;  // what a binding without bytes gets: nobody's
  VkBufferView unused_texels;
  VkDeviceMemory unused_memory;
  Program* programs;
  uint64_t slots_begun;  // atomic
  bool shared;           // device and queue are the caller's
  skua_vulkan_objects given;
  pthread_mutex_t queue_lock, program_lock, staging_lock;
  SKUA_VK_DEVICE(SKUA_VK_MEMBER)
};
inline VulkanDevice* device_of(Device* d) { return static_cast<VulkanDevice*>(d); }

struct VulkanBuffer : skua_device_buffer {
  VkBuffer handle;
  VkBufferView texel_view;
  VkDeviceMemory memory;
  bool imported;          // the handle is the caller's, the memory behind it not known
  void* mapped;           // NULL: reached through staging
  uint32_t holders;       // atomic: its owner, and slots that recorded it. The last one frees it
  uint64_t held_by;       // atomic: the slot that took hold of it last, which needs to once
};

// OK, or a status whose text names the call and its code. A lost device is remembered.
skua_status check(VulkanDevice* device, VkResult result, const char* call);
// Waits. If that fails, for everything on the device: what a fence guards is about to be freed.
skua_status wait_fence(VulkanDevice* device, VkFence fence);
inline skua_status check_lost(const Device* device) {
  if (!__atomic_load_n(&device->lost, __ATOMIC_RELAXED)) return SKUA_STATUS_OK;
  return fail(SKUA_STATUS_DEVICE_LOST, "Vulkan: the device %s is lost; destroy the context and create another",
              device->about.info.name);
}
// A call that makes an object. What a driver leaves in the handle when it fails is undefined: NULL here.
template <class Handle> skua_status created(VulkanDevice* device, VkResult result, const char* call, Handle& handle) {
  if (result != VK_SUCCESS) handle = Handle{};
  return check(device, result, call);
}
#define SKUA_VK_NEW(device, name, handle, ...) \
  SKUA_TRY(created(device, (device)->name(__VA_ARGS__, &(handle)), "vk" #name, handle))
#define SKUA_VK(device, name, ...) SKUA_TRY(check(device, (device)->name(__VA_ARGS__), "vk" #name))

struct Locked {
  explicit Locked(pthread_mutex_t& m) : mutex(m) { pthread_mutex_lock(&mutex); }
  ~Locked() { pthread_mutex_unlock(&mutex); }
  Locked(const Locked&) = delete;
  pthread_mutex_t& mutex;
};

// Around every use of the queue.
struct QueueLock {
  explicit QueueLock(VulkanDevice* d) : device(d) {
    pthread_mutex_lock(&d->queue_lock);
    if (d->given.lock_queue) d->given.lock_queue(d->given.lock_ctx);
  }
  ~QueueLock() {
    if (device->given.unlock_queue) device->given.unlock_queue(device->given.lock_ctx);
    pthread_mutex_unlock(&device->queue_lock);
  }
  QueueLock(const QueueLock&) = delete;
  VulkanDevice* device;
};

template <class T> T vk(VkStructureType type, const void* next = nullptr) {
  T t = {};
  t.sType = type;
  t.pNext = const_cast<void*>(next);
  return t;
}

// A block of zeros from the context's allocator.
template <class T> T* make_zeroed(const skua_context* ctx) {
  void* memory = allocate(ctx, sizeof(T), alignof(T) < 8 ? 8 : alignof(T));
  return memory ? static_cast<T*>(memset(memory, 0, sizeof(T))) : nullptr;
}

// buffer.cc
skua_status buffer_create(Device* device, size_t size, Texels texels, skua_device_buffer** out);
skua_status buffer_import(Device* device, uint64_t handle, size_t offset, size_t size, skua_device_buffer** out);
void buffer_destroy(skua_device_buffer* buffer);  // lets go of it
skua_status buffer_write(skua_device_buffer* buffer, size_t offset, const void* data, size_t size);
skua_status buffer_read(const skua_device_buffer* buffer, size_t offset, void* data, size_t size);
skua_status create_unused(VulkanDevice* device);
void destroy_transfers(VulkanDevice* device);  // and the unused one
skua_status buffer_map(skua_device_buffer* buffer, size_t offset, size_t size, void** data);
skua_status buffer_unmap(skua_device_buffer* buffer, void* data);
// program.cc
skua_status program(Device* device, const ProgramKey& key, const Program** out);
void destroy_programs(VulkanDevice* device);
skua_status create_pipelines(VulkanDevice* device);  // the pipeline cache, from the program cache if it has one
skua_status save(Device* device);
VkPipeline pipeline_of(const Program* program);
bool has_texels(const Program* program);      // a binding that must be there, used or not
uint32_t threads_of(const Program* program);  // of a work-group
// stream.cc
skua_status stream_create(Device* device, skua_stream** out);
void stream_destroy(skua_stream* stream);
skua_status record(skua_stream* stream, const Dispatch& dispatch);
skua_status submit(skua_stream* stream);
skua_status wait(skua_stream* stream);
skua_status event_record(skua_stream* stream, skua_event** out);
skua_status event_wait(skua_stream* stream, skua_event* event);
skua_status event_nanoseconds(const skua_event* begin, const skua_event* end, double* nanoseconds);
void event_destroy(skua_event* event);

}  // namespace skua::gpu::vulkan
