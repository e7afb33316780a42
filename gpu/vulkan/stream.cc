// Streams: record, submit, wait. See stream.h.
#include "gpu/vulkan/stream.h"

namespace skua::gpu::vulkan {
namespace {

skua_status make_slot(VulkanDevice* d, Slot& slot) {
  if (!slot.pool) {
    auto info = vk<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    info.queueFamilyIndex = d->family;
    SKUA_VK_NEW(d, CreateCommandPool, slot.pool, d->handle, &info, nullptr);
  }
  if (!slot.fence) {
    auto info = vk<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
    SKUA_VK_NEW(d, CreateFence, slot.fence, d->handle, &info, nullptr);
  }
  if (!slot.descriptors) {
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kSlotDispatches * d->n_bindings},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, kSlotDispatches}};
    auto info = vk<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
    info.maxSets = kSlotDispatches;
    info.poolSizeCount = 2;
    info.pPoolSizes = sizes;
    SKUA_VK_NEW(d, CreateDescriptorPool, slot.descriptors, d->handle, &info, nullptr);
  }
  if (!slot.sets[0]) {
    VkDescriptorSetLayout layouts[kSlotDispatches];
    for (VkDescriptorSetLayout& l : layouts) l = d->set_layout;
    auto info = vk<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
    info.descriptorPool = slot.descriptors;
    info.descriptorSetCount = kSlotDispatches;
    info.pSetLayouts = layouts;
    SKUA_VK_NEW(d, AllocateDescriptorSets, slot.sets[0], d->handle, &info);  // all of them
  }
  if (!slot.queries && d->about.tick_nanoseconds > 0) {
    auto info = vk<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kSlotEvents;
    SKUA_VK_NEW(d, CreateQueryPool, slot.queries, d->handle, &info, nullptr);
  }
  if (!slot.commands) {  // last: a slot with commands is whole
    auto info = vk<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = slot.pool;
    info.commandBufferCount = 1;
    SKUA_VK_NEW(d, AllocateCommandBuffers, slot.commands, d->handle, &info);
  }
  return SKUA_STATUS_OK;
}

// What the slot uses lives until it is over, whatever its owner does.
void hold(Slot& slot, const skua_device_buffer* buffer) {
  auto* b = static_cast<VulkanBuffer*>(const_cast<skua_device_buffer*>(buffer));
  if (__atomic_exchange_n(&b->held_by, slot.id, __ATOMIC_RELAXED) == slot.id) return;
  __atomic_fetch_add(&b->holders, 1, __ATOMIC_RELAXED);
  slot.held[slot.n_held++] = b;
}

// The slot is over, well or not: its events get their times, and it lets go of its buffers.
void retire(VulkanStream* s, Slot& slot, bool well) {
  VulkanDevice* d = device_of(s->device);
  uint64_t ticks[kSlotEvents] = {};
  if (well && slot.n_events && slot.queries)
    well = check(d,
                 d->GetQueryPoolResults(d->handle, slot.queries, 0, slot.n_events, sizeof ticks, ticks, sizeof ticks[0],
                                        VK_QUERY_RESULT_64_BIT),
                 "vkGetQueryPoolResults") == SKUA_STATUS_OK;
  for (VulkanEvent* e = slot.events; e;) {
    VulkanEvent* const next = e->next;
    if (e->destroyed) {
      release(d->ctx, e, sizeof *e);
    } else {
      e->ticks = ticks[e->query];
      __atomic_store_n(&e->state, well ? VulkanEvent::done : VulkanEvent::failed, __ATOMIC_RELEASE);
    }
    e = next;
  }
  slot.events = nullptr;
  for (uint32_t i = 0; i < slot.n_held; ++i) buffer_destroy(slot.held[i]);
  slot.n_held = 0;
  slot.state = Slot::idle;
}

// Waits for everything submitted; the first failure is the answer.
skua_status wait_all(VulkanStream* s) {
  skua_status status = SKUA_STATUS_OK;
  for (uint32_t i = 0; i < kSlots; ++i)
    if (const skua_status one = wait_slot(s, s->slots[(s->current + i) % kSlots]); status == SKUA_STATUS_OK)
      status = one;
  return status;
}

bool conflicts(const VulkanStream* s, const Binding& b) {
  if (!b.bytes) return false;
  const auto* whole = static_cast<const VulkanBuffer*>(b.buffer);
  const VkBuffer buffer = whole->handle;
  const size_t begin = whole->begin + b.offset;
  for (uint32_t i = 0; i < s->n_accesses; ++i) {
    const Access& a = s->accesses[i];
    if (a.buffer == buffer && (a.written || b.written) && begin < a.end && a.begin < begin + b.bytes) return true;
  }
  return false;
}

// A barrier before the dispatch if it reads or writes what one since the last barrier wrote, or writes what one read.
void order(VulkanStream* s, VkCommandBuffer commands, const Dispatch& dispatch) {
  bool wanted = s->barrier_wanted || s->n_accesses + dispatch.n_bindings > kMaxAccesses;
  for (uint32_t i = 0; i < dispatch.n_bindings && !wanted; ++i) wanted = conflicts(s, dispatch.bindings[i]);
  if (wanted) {
    auto b = vk<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    b.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    device_of(s->device)->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                             VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &b, 0, nullptr, 0, nullptr);
    s->n_accesses = 0;
    s->barrier_wanted = false;
  }
  for (uint32_t i = 0; i < dispatch.n_bindings; ++i) {
    const Binding& b = dispatch.bindings[i];
    const auto* whole = static_cast<const VulkanBuffer*>(b.buffer);
    if (b.bytes)
      s->accesses[s->n_accesses++] = {whole->handle, whole->begin + b.offset, whole->begin + b.offset + b.bytes,
                                      b.written};
  }
}

// The part of a buffer that is bound: from the last aligned place before the range to its end; the buffer, or what can
// be bound of it, if the kernel does not say how it finds the range.
struct Window {
  size_t begin, bytes;
};
Window window_of(const Description& about, const Binding& b) {
  if (!b.bytes) return {0, 0};
  if (!b.unit) return {0, b.buffer->size > about.binding_bytes ? b.offset + b.bytes : b.buffer->size};
  const size_t alignment = about.offset_alignment;
  const size_t begin = b.offset / alignment * alignment;
  // kernels of bytes see words, of which an imported buffer has whole ones or is refused
  const size_t end = round_up(b.offset + b.bytes, 4);
  return {begin, (static_cast<const VulkanBuffer*>(b.buffer)->imported ? min(end, b.buffer->size) : end) - begin};
}

skua_status check_dispatch(const VulkanDevice* d, const Dispatch& dispatch) {
  const Description& about = d->about;
  for (int i = 0; i < 3; ++i)
    if (dispatch.groups[i] > about.group_count[i])
      return SKUA_UNSUPPORTED_("Vulkan: %u work-groups in dimension %d, %s has at most %u", dispatch.groups[i], i,
                               about.info.name, about.group_count[i]);
  if (dispatch.n_bindings > d->n_bindings)
    return SKUA_UNSUPPORTED_("Vulkan: a kernel with %u buffers, %s has at most %u", dispatch.n_bindings,
                             about.info.name, d->n_bindings);
  for (uint32_t i = 0; i < dispatch.n_bindings; ++i)
    if (const Window w = window_of(about, dispatch.bindings[i]); w.bytes > about.binding_bytes)
      return SKUA_UNSUPPORTED_("Vulkan: a tensor of %zu bytes, a kernel of %s reaches %llu", w.bytes, about.info.name,
                               static_cast<unsigned long long>(about.binding_bytes));
  return SKUA_STATUS_OK;
}

}  // namespace

skua_status check_stream(const VulkanStream* s) {
  SKUA_TRY(check_lost(s->device));
  if (s->broken != SKUA_STATUS_OK)
    return fail(s->broken,
                "Vulkan: an earlier call on this stream failed and what it held is lost; destroy the stream");
  return SKUA_STATUS_OK;
}

skua_status wait_slot(VulkanStream* s, Slot& slot) {
  if (slot.state != Slot::pending) return SKUA_STATUS_OK;
  VulkanDevice* d = device_of(s->device);
  const skua_status status = wait_fence(d, slot.fence);
  if (status != SKUA_STATUS_OK) s->broken = status;
  retire(s, slot, status == SKUA_STATUS_OK);
  return status;
}

// The slot that is recorded into, begun if it was not.
skua_status begin(VulkanStream* s, Slot** out) {
  VulkanDevice* d = device_of(s->device);
  Slot& slot = s->slots[s->current];
  *out = &slot;
  if (slot.state == Slot::recording) return SKUA_STATUS_OK;
  SKUA_TRY(wait_slot(s, slot));
  SKUA_TRY(make_slot(d, slot));
  SKUA_VK(d, ResetFences, d->handle, 1, &slot.fence);
  auto info = vk<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  SKUA_VK(d, BeginCommandBuffer, slot.commands, &info);
  if (slot.queries) d->CmdResetQueryPool(slot.commands, slot.queries, 0, kSlotEvents);
  if (d->shared) {  // what the caller has put on the queue before
    auto b = vk<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
    b.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    b.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    d->CmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                          &b, 0, nullptr, 0, nullptr);
  }
  slot.n_dispatches = slot.n_events = 0;
  slot.threads = 0;
  slot.bound = nullptr;
  slot.serial = ++s->serial;
  slot.id = __atomic_add_fetch(&d->slots_begun, 1, __ATOMIC_RELAXED);
  slot.state = Slot::recording;
  return SKUA_STATUS_OK;
}

skua_status submit_locked(VulkanStream* s) {
  VulkanDevice* d = device_of(s->device);
  Slot& slot = s->slots[s->current];
  if (slot.state != Slot::recording) return SKUA_STATUS_OK;
  auto seen = vk<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);  // by the host, after the fence
  seen.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  seen.dstAccessMask =
      VK_ACCESS_HOST_READ_BIT | (d->shared ? VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT : 0);
  const VkPipelineStageFlags next = VK_PIPELINE_STAGE_HOST_BIT | (d->shared ? VK_PIPELINE_STAGE_ALL_COMMANDS_BIT : 0);
  if (slot.n_dispatches)
    d->CmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, next, 0, 1, &seen, 0, nullptr, 0,
                          nullptr);
  skua_status status = check(d, d->EndCommandBuffer(slot.commands), "vkEndCommandBuffer");
  if (status == SKUA_STATUS_OK) {
    auto info = vk<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.commandBufferCount = 1;
    info.pCommandBuffers = &slot.commands;
    QueueLock lock(d);
    status = check(d, d->QueueSubmit(d->queue, 1, &info, slot.fence), "vkQueueSubmit");
  }
  if (status != SKUA_STATUS_OK) {
    s->broken = status;
    retire(s, slot, false);
    return status;
  }
  slot.state = Slot::pending;
  __atomic_store_n(&s->submitted, slot.serial, __ATOMIC_RELEASE);
  s->current = (s->current + 1) % kSlots;
  return SKUA_STATUS_OK;
}

skua_status stream_create(Device* device, skua_stream** out) {
  *out = nullptr;
  SKUA_TRY(check_lost(device));
  auto* s = make_zeroed<VulkanStream>(device->ctx);
  if (!s) return out_of_memory("stream", sizeof *s);
  s->device = device;
  s->holders = 1;
  pthread_mutex_init(&s->lock, nullptr);
  *out = s;
  return SKUA_STATUS_OK;
}

void stream_destroy(skua_stream* stream) {
  VulkanStream* s = stream_of(stream);
  VulkanDevice* d = device_of(s->device);
  const ErrorText before;
  {
    Locked lock(s->lock);
    if (check_stream(s) == SKUA_STATUS_OK) submit_locked(s);
    wait_all(s);
    for (Slot& slot : s->slots) {
      retire(s, slot, false);
      if (slot.queries) d->DestroyQueryPool(d->handle, slot.queries, nullptr);
      if (slot.descriptors) d->DestroyDescriptorPool(d->handle, slot.descriptors, nullptr);
      if (slot.fence) d->DestroyFence(d->handle, slot.fence, nullptr);
      if (slot.pool) d->DestroyCommandPool(d->handle, slot.pool, nullptr);
    }
  }
  before.restore();
  let_go(s);
}

void let_go(VulkanStream* s) {
  if (__atomic_sub_fetch(&s->holders, 1, __ATOMIC_ACQ_REL)) return;
  pthread_mutex_destroy(&s->lock);
  release(s->device->ctx, s, sizeof *s);
}

skua_status record(skua_stream* stream, const Dispatch& dispatch) {
  VulkanStream* s = stream_of(stream);
  VulkanDevice* d = device_of(s->device);
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  SKUA_TRY(check_dispatch(d, dispatch));
  const uint64_t groups = uint64_t(dispatch.groups[0]) * dispatch.groups[1] * dispatch.groups[2];
  if (!groups) return SKUA_STATUS_OK;
  Slot* slot;
  SKUA_TRY(begin(s, &slot));
  order(s, slot->commands, dispatch);

  const VkDescriptorSet set = slot->sets[slot->n_dispatches++];
  VkDescriptorBufferInfo buffers[kMaxBindings];
  VkWriteDescriptorSet writes[kMaxBindings + 1];
  VkBufferView texels = d->unused_texels;
  int32_t arguments[kMaxArguments + 3];
  uint32_t lowered = 0;
  memcpy(arguments, dispatch.arguments, dispatch.n_arguments * sizeof arguments[0]);
  for (uint32_t i = 0; i < dispatch.n_bindings; ++i) {
    const Binding& b = dispatch.bindings[i];
    const Window w = window_of(d->about, b);
    if (w.begin && !(lowered >> b.argument & 1)) arguments[b.argument] -= int32_t(w.begin / b.unit);
    if (b.unit) lowered |= 1u << b.argument;  // two bindings of one range share the argument
    if (b.bytes) hold(*slot, b.buffer);
    const auto* whole = static_cast<const VulkanBuffer*>(b.buffer);
    if (b.texels) texels = whole->texel_view;
    if (b.bytes) buffers[i] = {whole->handle, whole->begin + w.begin, w.bytes};
    else buffers[i] = {d->unused, 0, VK_WHOLE_SIZE};
    writes[i] = vk<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
  }
  uint32_t n_writes = dispatch.n_bindings;
  if (has_texels(dispatch.program)) {
    VkWriteDescriptorSet& w = writes[n_writes++] = vk<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    w.dstSet = set;
    w.dstBinding = kMaxBindings;
    w.descriptorCount = 1;
    w.descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
    w.pTexelBufferView = &texels;
  }
  d->UpdateDescriptorSets(d->handle, n_writes, writes, 0, nullptr);
  if (slot->bound != dispatch.program)
    d->CmdBindPipeline(slot->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_of(dispatch.program));
  slot->bound = dispatch.program;
  d->CmdBindDescriptorSets(slot->commands, VK_PIPELINE_BIND_POINT_COMPUTE, d->layout, 0, 1, &set, 0, nullptr);
  if (dispatch.n_arguments)
    d->CmdPushConstants(slot->commands, d->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        dispatch.n_arguments * uint32_t(sizeof(int32_t)), arguments);
  d->CmdDispatch(slot->commands, dispatch.groups[0], dispatch.groups[1], dispatch.groups[2]);

  slot->threads += groups * threads_of(dispatch.program);
  if (slot->n_dispatches == kSlotDispatches || slot->threads >= kSlotThreads) return submit_locked(s);
  return SKUA_STATUS_OK;
}

skua_status submit(skua_stream* stream) {
  VulkanStream* s = stream_of(stream);
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  return submit_locked(s);
}

skua_status wait(skua_stream* stream) {
  VulkanStream* s = stream_of(stream);
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  SKUA_TRY(submit_locked(s));
  return wait_all(s);
}

}  // namespace skua::gpu::vulkan
