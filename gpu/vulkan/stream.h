// What streams and events share. A stream records into one of kSlots command buffers; a slot is submitted when it holds
// kSlotDispatches dispatches or enough threads, or when the caller says so, and taken again when its fence has passed.
// Descriptor sets, timestamps and the list of buffers it holds belong to the slots: recording allocates nothing.
#pragma once
#include "gpu/vulkan/vulkan.h"

namespace skua::gpu::vulkan {

constexpr uint32_t kSlots = 4, kSlotDispatches = 64, kSlotEvents = 32, kMaxAccesses = 64;
// a submit of this many is long enough to start now, and short enough for a display's watchdog
constexpr uint64_t kSlotThreads = uint64_t(1) << 24;

struct VulkanStream;

struct VulkanEvent : skua_event {
  VulkanStream* stream;   // held: it lives as long as the event, whoever destroys it
  uint64_t serial;        // of its slot
  uint32_t query;
  enum State : uint8_t { pending, done, failed } state;
  bool destroyed;         // by its owner, while pending
  uint64_t ticks;
  VulkanEvent* next;      // of its slot
};

struct Slot {
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkFence fence;
  VkDescriptorPool descriptors;
  VkDescriptorSet sets[kSlotDispatches];
  VkQueryPool queries;
  enum State : uint8_t { idle, recording, pending } state;
  uint32_t n_dispatches, n_events;
  uint64_t threads, serial, id;  // id: among all slots that were ever begun on the device
  const Program* bound;
  VulkanEvent* events;
  uint32_t n_held;
  VulkanBuffer* held[kSlotDispatches * kMaxBindings];
};

// What dispatches since the last barrier touched.
struct Access {
  VkBuffer buffer;
  size_t begin, end;
  bool written;
};

struct VulkanStream : skua_stream {
  pthread_mutex_t lock;       // another stream that waits for an event of this one may submit it
  uint32_t holders;           // atomic: its owner, and events of it. The last one frees it
  Slot slots[kSlots];
  uint32_t current;           // being recorded into, or the next to be
  uint64_t serial;            // of the last slot begun
  uint64_t submitted;         // atomic
  skua_status broken;         // a submit failed: what was recorded is lost
  bool barrier_wanted;        // another stream's work comes before
  uint32_t n_accesses;
  Access accesses[kMaxAccesses];
};

inline VulkanStream* stream_of(skua_stream* s) { return static_cast<VulkanStream*>(s); }
skua_status check_stream(const VulkanStream* s);
void let_go(VulkanStream* s);                            // of one hold
// With the stream's lock held:
skua_status begin(VulkanStream* s, Slot** out);          // the slot that is recorded into
skua_status submit_locked(VulkanStream* s);
skua_status wait_slot(VulkanStream* s, Slot& slot);

}  // namespace skua::gpu::vulkan
