// Buffers: one VkDeviceMemory each. Where host and device share memory it stays mapped; elsewhere, and for imported
// buffers, transfers go through a staging buffer.
#include "gpu/vulkan/vulkan.h"

namespace skua::gpu::vulkan {
namespace {

constexpr size_t kStagingBytes = size_t(4) << 20;

// A type among `allowed` with all of `wanted`; -1: none.
int memory_type(const VulkanDevice* d, uint32_t allowed, VkMemoryPropertyFlags wanted) {
  for (uint32_t i = 0; i < d->memory.memoryTypeCount; ++i)
    if ((allowed >> i & 1) && (d->memory.memoryTypes[i].propertyFlags & wanted) == wanted) return int(i);
  return -1;
}

// A buffer with memory of the first of the `kinds` that exists.
skua_status allocate_buffer(VulkanDevice* d, size_t size, VkBufferUsageFlags usage, const VkMemoryPropertyFlags* kinds,
                            uint32_t n_kinds, VkBuffer* buffer, VkDeviceMemory* memory, void** mapped) {
  auto info = vk<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = round_up(size, 16);  // kernels see vectors of four
  info.usage = usage;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  SKUA_VK_NEW(d, CreateBuffer, *buffer, d->handle, &info, nullptr);
  VkMemoryRequirements needs;
  d->GetBufferMemoryRequirements(d->handle, *buffer, &needs);
  int type = -1;
  for (uint32_t i = 0; i < n_kinds && type < 0; ++i) type = memory_type(d, needs.memoryTypeBits, kinds[i]);
  if (type < 0) return fail(SKUA_STATUS_DRIVER_ERROR, "Vulkan: no memory type fits a storage buffer");
  auto memory_info = vk<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  memory_info.allocationSize = needs.size;
  memory_info.memoryTypeIndex = uint32_t(type);
  SKUA_VK_NEW(d, AllocateMemory, *memory, d->handle, &memory_info, nullptr);
  SKUA_VK(d, BindBufferMemory, d->handle, *buffer, *memory, 0);
  constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  if (mapped && (d->memory.memoryTypes[type].propertyFlags & host) == host)
    SKUA_VK_NEW(d, MapMemory, *mapped, d->handle, *memory, 0, VK_WHOLE_SIZE, 0);
  return SKUA_STATUS_OK;
}

skua_status create_staging(VulkanDevice* d) {
  Staging& s = d->staging;
  if (!s.mapped) {
    if (s.memory) d->FreeMemory(d->handle, s.memory, nullptr);
    if (s.buffer) d->DestroyBuffer(d->handle, s.buffer, nullptr);
    s.memory = VK_NULL_HANDLE, s.buffer = VK_NULL_HANDLE;
    constexpr VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags kinds[] = {visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, visible};
    SKUA_TRY(allocate_buffer(d, kStagingBytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                             kinds, 2, &s.buffer, &s.memory, &s.mapped));
  }
  if (!s.pool) {
    auto info = vk<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    info.queueFamilyIndex = d->family;
    SKUA_VK_NEW(d, CreateCommandPool, s.pool, d->handle, &info, nullptr);
  }
  if (!s.commands) {
    auto info = vk<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = s.pool;
    info.commandBufferCount = 1;
    SKUA_VK_NEW(d, AllocateCommandBuffers, s.commands, d->handle, &info);
  }
  if (!s.fence) {
    auto info = vk<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    SKUA_VK_NEW(d, CreateFence, s.fence, d->handle, &info, nullptr);
  }
  return SKUA_STATUS_OK;
}

void barrier(VulkanDevice* d, VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
             VkAccessFlags wanted) {
  auto b = vk<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  b.srcAccessMask = written;
  b.dstAccessMask = wanted;
  d->CmdPipelineBarrier(d->staging.commands, from, to, 0, 1, &b, 0, nullptr, 0, nullptr);
}

// Copies between a buffer and the staging buffer, after everything that was submitted, and waits.
skua_status transfer(VulkanDevice* d, VkBuffer from, VkBuffer to, const VkBufferCopy& range, bool read) {
  Staging& s = d->staging;
  auto begin = vk<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  SKUA_VK(d, BeginCommandBuffer, s.commands, &begin);
  constexpr VkPipelineStageFlags compute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, copy = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr VkAccessFlags write = VK_ACCESS_MEMORY_WRITE_BIT,
                          any = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  if (d->shared)
    barrier(d, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, write, copy,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  else
    barrier(d, compute | copy, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, copy,
            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  d->CmdCopyBuffer(s.commands, from, to, 1, &range);
  if (read) barrier(d, copy, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  else if (d->shared) barrier(d, copy, VK_ACCESS_TRANSFER_WRITE_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, any);
  else
    barrier(d, copy, VK_ACCESS_TRANSFER_WRITE_BIT, compute | copy,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT);
  SKUA_VK(d, EndCommandBuffer, s.commands);
  SKUA_VK(d, ResetFences, d->handle, 1, &s.fence);
  auto info = vk<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &s.commands;
  {
    QueueLock lock(d);
    SKUA_VK(d, QueueSubmit, d->queue, 1, &info, s.fence);
  }
  return wait_fence(d, s.fence);
}

}  // namespace

// Vectors of four; every device reads these formats so.
static skua_status create_texels(VulkanDevice* d, VkBuffer buffer, Texels texels, VkBufferView* view) {
  auto info = vk<VkBufferViewCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO);
  info.buffer = buffer;
  info.format = texels == Texels::f16 ? VK_FORMAT_R16G16B16A16_SFLOAT : VK_FORMAT_R32G32B32A32_SFLOAT;
  info.range = VK_WHOLE_SIZE;
  SKUA_VK_NEW(d, CreateBufferView, *view, d->handle, &info, nullptr);
  return SKUA_STATUS_OK;
}

skua_status create_unused(VulkanDevice* d) {
  const VkMemoryPropertyFlags kinds[] = {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  SKUA_TRY(allocate_buffer(d, 64, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT, kinds,
                           2, &d->unused, &d->unused_memory, nullptr));
  return create_texels(d, d->unused, Texels::f32, &d->unused_texels);
}

void destroy_transfers(VulkanDevice* d) {
  if (d->unused_texels) d->DestroyBufferView(d->handle, d->unused_texels, nullptr);
  if (d->unused) d->DestroyBuffer(d->handle, d->unused, nullptr);
  if (d->unused_memory) d->FreeMemory(d->handle, d->unused_memory, nullptr);
  Staging& s = d->staging;
  if (s.fence) d->DestroyFence(d->handle, s.fence, nullptr);
  if (s.pool) d->DestroyCommandPool(d->handle, s.pool, nullptr);
  if (s.buffer) d->DestroyBuffer(d->handle, s.buffer, nullptr);
  if (s.memory) d->FreeMemory(d->handle, s.memory, nullptr);
  s = {};
}

skua_status buffer_create(Device* device, size_t size, Texels texels, skua_device_buffer** out) {
  *out = nullptr;
  VulkanDevice* d = device_of(device);
  SKUA_TRY(check_lost(d));
  auto* b = make_zeroed<VulkanBuffer>(d->ctx);
  if (!b) return out_of_memory("device_buffer", sizeof *b);
  b->device = d;
  b->size = size;
  b->holders = 1;
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                  visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags kinds[] = {local | visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, local | visible, local,
                                         0};
  const uint32_t first = d->about.unified_memory ? 0 : 2;
  if (round_up(size, 16) / (texels == Texels::f16 ? 8 : 16) <= d->about.texels) b->texels = texels;
  const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                   VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                   (b->texels == Texels::none ? 0 : VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT);
  skua_status s =
      allocate_buffer(d, size, usage, kinds + first, 4 - first, &b->handle, &b->memory, first ? nullptr : &b->mapped);
  if (s == SKUA_STATUS_OK && b->texels != Texels::none) s = create_texels(d, b->handle, b->texels, &b->texel_view);
  if (s != SKUA_STATUS_OK) {
    buffer_destroy(b);
    return s;
  }
  *out = b;
  return SKUA_STATUS_OK;
}

skua_status buffer_import(Device* device, uint64_t handle, size_t offset, size_t size, skua_device_buffer** out) {
  VulkanDevice* d = device_of(device);
  constexpr const char* call = "device_buffer_import";
  if (!d->shared)
    return SKUA_UNSUPPORTED_(
        "%s: the context has a VkDevice of its own, which no buffer of the caller's belongs to; make it over the "
        "caller's (skua_context_options.vulkan)",
        call);
  VkBuffer given;
  static_assert(sizeof given <= sizeof handle, "a handle is a pointer or 64 bits");
  memcpy(&given, &handle, sizeof given);
  VkMemoryRequirements needs;  // at least the buffer's size
  d->GetBufferMemoryRequirements(d->handle, given, &needs);
  if (offset > needs.size || size > needs.size - offset)
    return SKUA_INVALID("%s: offset %zu and size %zu end behind the VkBuffer, which needs %llu bytes of memory", call,
                        offset, size, static_cast<unsigned long long>(needs.size));
  if (const uint32_t alignment = d->about.offset_alignment; offset % alignment)
    return SKUA_INVALID("%s: offset %zu is no multiple of %u, which the device wants of bindings", call, offset,
                        alignment);
  auto* b = make_zeroed<VulkanBuffer>(d->ctx);
  if (!b) return out_of_memory("device_buffer", sizeof *b);
  b->device = d;
  b->size = size;
  b->holders = 1;
  b->handle = given;
  b->whole = handle;
  b->begin = offset;
  b->imported = true;
  *out = b;
  return SKUA_STATUS_OK;
}

void buffer_destroy(skua_device_buffer* buffer) {
  auto* b = static_cast<VulkanBuffer*>(buffer);
  if (__atomic_sub_fetch(&b->holders, 1, __ATOMIC_ACQ_REL)) return;
  VulkanDevice* d = device_of(b->device);
  if (b->texel_view) d->DestroyBufferView(d->handle, b->texel_view, nullptr);
  if (b->handle && !b->imported) d->DestroyBuffer(d->handle, b->handle, nullptr);
  if (b->memory) d->FreeMemory(d->handle, b->memory, nullptr);
  release(d->ctx, b, sizeof *b);
}

skua_status buffer_write(skua_device_buffer* buffer, size_t offset, const void* data, size_t size) {
  auto* b = static_cast<VulkanBuffer*>(buffer);
  VulkanDevice* d = device_of(b->device);
  SKUA_TRY(check_lost(d));
  if (b->mapped) {
    if (size) memcpy(static_cast<char*>(b->mapped) + offset, data, size);
    return SKUA_STATUS_OK;
  }
  Locked lock(d->staging_lock);
  SKUA_TRY(create_staging(d));
  for (size_t at = 0; at < size; at += kStagingBytes) {
    const size_t n = min(size - at, kStagingBytes);
    memcpy(d->staging.mapped, static_cast<const char*>(data) + at, n);
    SKUA_TRY(transfer(d, d->staging.buffer, b->handle, {0, b->begin + offset + at, n}, false));
  }
  return SKUA_STATUS_OK;
}

skua_status buffer_read(const skua_device_buffer* buffer, size_t offset, void* data, size_t size) {
  auto* b = static_cast<const VulkanBuffer*>(buffer);
  VulkanDevice* d = device_of(b->device);
  SKUA_TRY(check_lost(d));
  if (b->mapped) {
    if (size) memcpy(data, static_cast<const char*>(b->mapped) + offset, size);
    return SKUA_STATUS_OK;
  }
  Locked lock(d->staging_lock);
  SKUA_TRY(create_staging(d));
  for (size_t at = 0; at < size; at += kStagingBytes) {
    const size_t n = min(size - at, kStagingBytes);
    SKUA_TRY(transfer(d, b->handle, d->staging.buffer, {b->begin + offset + at, 0, n}, true));
    memcpy(static_cast<char*>(data) + at, d->staging.mapped, n);
  }
  return SKUA_STATUS_OK;
}

// What the host sees stays mapped as long as the buffer lives, and is coherent.
skua_status buffer_map(skua_device_buffer* buffer, size_t offset, size_t, void** data) {
  auto* b = static_cast<VulkanBuffer*>(buffer);
  if (!b->mapped)
    return SKUA_UNSUPPORTED_("device_buffer_map: %s",
                             b->imported ? "the VkBuffer is the caller's, who can map its memory"
                                         : "the host does not see the device's memory; read and write copy it");
  *data = static_cast<char*>(b->mapped) + offset;
  return SKUA_STATUS_OK;
}

skua_status buffer_unmap(skua_device_buffer*, void*) { return SKUA_STATUS_OK; }

}  // namespace skua::gpu::vulkan
