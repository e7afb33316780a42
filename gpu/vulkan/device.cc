// Devices: list, open, close; the table of the backend.
#include "gpu/vulkan/vulkan.h"

#include <stdio.h>

namespace skua::gpu::vulkan {
namespace {

const char* result_name(VkResult r) {
  switch (r) {
#define SKUA_VK_RESULT(name) case name: return #name;
    SKUA_VK_RESULT(VK_NOT_READY) SKUA_VK_RESULT(VK_TIMEOUT) SKUA_VK_RESULT(VK_INCOMPLETE)
    SKUA_VK_RESULT(VK_ERROR_OUT_OF_HOST_MEMORY) SKUA_VK_RESULT(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    SKUA_VK_RESULT(VK_ERROR_INITIALIZATION_FAILED) SKUA_VK_RESULT(VK_ERROR_DEVICE_LOST)
    SKUA_VK_RESULT(VK_ERROR_MEMORY_MAP_FAILED) SKUA_VK_RESULT(VK_ERROR_LAYER_NOT_PRESENT)
    SKUA_VK_RESULT(VK_ERROR_EXTENSION_NOT_PRESENT) SKUA_VK_RESULT(VK_ERROR_FEATURE_NOT_PRESENT)
    SKUA_VK_RESULT(VK_ERROR_INCOMPATIBLE_DRIVER) SKUA_VK_RESULT(VK_ERROR_TOO_MANY_OBJECTS)
    SKUA_VK_RESULT(VK_ERROR_FRAGMENTED_POOL) SKUA_VK_RESULT(VK_ERROR_OUT_OF_POOL_MEMORY)
    SKUA_VK_RESULT(VK_ERROR_UNKNOWN)
#undef SKUA_VK_RESULT
    default: return "";
  }
}

size_t list(Description* list, size_t capacity, char* why, size_t why_size) {
  if (why_size) why[0] = 0;
  Instance in;
  const ErrorText before;
  if (open_instance(nullptr, in) != SKUA_STATUS_OK) {
    if (why_size) snprintf(why, why_size, "%s", skua_error_text());
    before.restore();
    return 0;
  }
  const uint32_t n = in.n_devices;
  for (uint32_t i = 0; i < n && i < capacity; ++i) describe(in, i, nullptr, list[i]);
  if (!n && why_size) snprintf(why, why_size, "Vulkan: %s", in.why);
  close_instance(in);
  return n;
}

skua_status find_functions(VulkanDevice* d) {
#define SKUA_VK_FIND(name)                                                                             \
  if (!(d->name = reinterpret_cast<PFN_vk##name>(d->in.GetDeviceProcAddr(d->handle, "vk" #name)))) \
    return fail(SKUA_STATUS_DRIVER_ERROR, "Vulkan: the driver has no vk" #name);
  SKUA_VK_DEVICE(SKUA_VK_FIND)
#undef SKUA_VK_FIND
  d->in.GetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
  return SKUA_STATUS_OK;
}

// The caller's device and queue.
skua_status take_device(VulkanDevice* d, const skua_vulkan_objects& given) {
  VkQueueFamilyProperties families[16];
  uint32_t n = 16;
  d->in.GetPhysicalDeviceQueueFamilyProperties(d->physical, &n, families);
  if (given.queue_family >= n || !(families[given.queue_family].queueFlags & VK_QUEUE_COMPUTE_BIT))
    return SKUA_INVALID("context: vulkan.queue_family is %u, no family that computes", given.queue_family);
  d->given = given;
  d->handle = static_cast<VkDevice>(given.device);
  d->queue = static_cast<VkQueue>(given.queue);
  d->family = given.queue_family;
  d->timestamp_bits = families[d->family].timestampValidBits;
  if (!d->timestamp_bits) d->about.tick_nanoseconds = 0;
  return find_functions(d);
}

skua_status create_device(VulkanDevice* d) {
  d->family = uint32_t(queue_family(d->in, d->physical, &d->timestamp_bits));
  const float priority = 1;
  auto queue = vk<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = d->family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const Features features(d->in, d->physical);
  auto info = vk<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features.all);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = features.n_extensions;
  info.ppEnabledExtensionNames = features.extensions;
  const VkResult made = d->in.CreateDevice(d->physical, &info, nullptr, &d->handle);
  if (made != VK_SUCCESS) d->handle = nullptr;
  SKUA_TRY(check(d, made, "vkCreateDevice"));
  SKUA_TRY(find_functions(d));
  d->GetDeviceQueue(d->handle, d->family, 0, &d->queue);
  return SKUA_STATUS_OK;
}

skua_status create_layout(VulkanDevice* d) {
  auto p = vk<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  d->in.GetPhysicalDeviceProperties2(d->physical, &p);
  d->n_bindings = kMaxBindings;
  if (const uint32_t most = p.properties.limits.maxPerStageDescriptorStorageBuffers; most < d->n_bindings)
    d->n_bindings = most;
  VkDescriptorSetLayoutBinding bindings[kMaxBindings + 1];
  for (uint32_t i = 0; i < d->n_bindings; ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  auto set = vk<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  bindings[d->n_bindings] = {kMaxBindings, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                             nullptr};
  set.bindingCount = d->n_bindings + 1;
  set.pBindings = bindings;
  SKUA_VK_NEW(d, CreateDescriptorSetLayout, d->set_layout, d->handle, &set, nullptr);
  // 128 bytes: what every device has
  const VkPushConstantRange arguments = {VK_SHADER_STAGE_COMPUTE_BIT, 0, (kMaxArguments + 3) * sizeof(int32_t)};
  auto layout = vk<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.setLayoutCount = 1;
  layout.pSetLayouts = &d->set_layout;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &arguments;
  SKUA_VK_NEW(d, CreatePipelineLayout, d->layout, d->handle, &layout, nullptr);
  return create_unused(d);
}

void close(Device* device) {
  VulkanDevice* d = device_of(device);
  if (d->handle && d->DestroyDevice) {
    if (d->DeviceWaitIdle && !d->shared) d->DeviceWaitIdle(d->handle);  // streams have waited
    const ErrorText before;
    if (d->cache) save(d);
    before.restore();
    destroy_transfers(d);
    destroy_programs(d);
    if (d->pipelines) d->DestroyPipelineCache(d->handle, d->pipelines, nullptr);
    if (d->layout) d->DestroyPipelineLayout(d->handle, d->layout, nullptr);
    if (d->set_layout) d->DestroyDescriptorSetLayout(d->handle, d->set_layout, nullptr);
    if (!d->shared) d->DestroyDevice(d->handle, nullptr);
  }
  cache_close(d);
  close_instance(d->in);
  pthread_mutex_destroy(&d->queue_lock);
  pthread_mutex_destroy(&d->program_lock);
  pthread_mutex_destroy(&d->staging_lock);
  release(d->ctx, d, sizeof *d);
}

skua_status open(const skua_context* ctx, const skua_context_options& o, Device** out) {
  *out = nullptr;
  auto* d = make_zeroed<VulkanDevice>(ctx);
  if (!d) return out_of_memory("context", sizeof *d);
  d->api = &vulkan_api;
  d->ctx = ctx;
  pthread_mutex_init(&d->queue_lock, nullptr);
  pthread_mutex_init(&d->program_lock, nullptr);
  pthread_mutex_init(&d->staging_lock, nullptr);
  d->shared = o.vulkan != nullptr;
  const uint32_t index = d->shared ? 0 : o.device.index;
  skua_status s = d->shared ? take_instance(*o.vulkan, d->in) : open_instance(ctx, d->in);
  if (s == SKUA_STATUS_OK && !d->in.n_devices)
    s = fail(SKUA_STATUS_NO_DEVICE, "context: no Vulkan device: %s", d->in.why);
  else if (s == SKUA_STATUS_OK && index >= d->in.n_devices)
    s = fail(SKUA_STATUS_NO_DEVICE, "context: Vulkan device %u does not exist, there %s %u", index,
             d->in.n_devices == 1 ? "is" : "are", d->in.n_devices);
  if (s == SKUA_STATUS_OK) {
    d->physical = d->in.devices[index];
    describe(d->in, index, o.vulkan, d->about);
    s = d->shared ? take_device(d, *o.vulkan) : create_device(d);
  }
  if (s == SKUA_STATUS_OK) s = create_layout(d);
  if (s == SKUA_STATUS_OK) s = cache_open(d);
  if (s == SKUA_STATUS_OK) s = create_pipelines(d);
  if (s != SKUA_STATUS_OK) {
    close(d);
    return s;
  }
  *out = d;
  return SKUA_STATUS_OK;
}

}  // namespace

skua_status check(VulkanDevice* device, VkResult result, const char* call) {
  switch (result) {
    case VK_SUCCESS: return SKUA_STATUS_OK;
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
      return fail(SKUA_STATUS_OUT_OF_MEMORY, "Vulkan: %s returned %d %s", call, int(result), result_name(result));
    case VK_ERROR_DEVICE_LOST:
      if (device) __atomic_store_n(&device->lost, true, __ATOMIC_RELAXED);
      return fail(SKUA_STATUS_DEVICE_LOST,
                  "Vulkan: %s returned %d VK_ERROR_DEVICE_LOST; destroy the context and create another", call,
                  int(result));
    default: return fail(SKUA_STATUS_DRIVER_ERROR, "Vulkan: %s returned %d %s", call, int(result), result_name(result));
  }
}

skua_status wait_fence(VulkanDevice* d, VkFence fence) {
  const skua_status status = check(d, d->WaitForFences(d->handle, 1, &fence, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  if (status != SKUA_STATUS_OK) {
    QueueLock lock(d);
    if (d->shared) d->QueueWaitIdle(d->queue);
    else d->DeviceWaitIdle(d->handle);
  }
  return status;
}

}  // namespace skua::gpu::vulkan

namespace skua::gpu {
const Api vulkan_api = {"Vulkan",
                        "vulkan", 1, vulkan::list, vulkan::open, vulkan::close, vulkan::buffer_create,
                        vulkan::buffer_import, vulkan::buffer_destroy, vulkan::buffer_write, vulkan::buffer_read,
                        vulkan::buffer_map, vulkan::buffer_unmap, vulkan::program, vulkan::save, vulkan::stream_create,
                        vulkan::stream_destroy, vulkan::record, vulkan::submit, vulkan::wait, vulkan::event_record,
                        vulkan::event_wait, vulkan::event_nanoseconds, vulkan::event_destroy};
}  // namespace skua::gpu
