// Events: a place in a stream, with the time when the device came past it. Its slot fills the time in when it retires;
// an event that is destroyed before is freed there.
// Streams and their events may go in any order, on any threads: an event holds its stream, of which nothing but the
// lock and the state of its slots is used once its owner has destroyed it.
#include "gpu/vulkan/stream.h"

namespace skua::gpu::vulkan {

skua_status event_record(skua_stream* stream, skua_event** out) {
  *out = nullptr;
  VulkanStream* s = stream_of(stream);
  VulkanDevice* d = device_of(s->device);
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  auto* e = make_zeroed<VulkanEvent>(d->ctx);
  if (!e) return out_of_memory("event", sizeof *e);
  Slot* slot;
  if (const skua_status status = begin(s, &slot); status != SKUA_STATUS_OK) {
    release(d->ctx, e, sizeof *e);
    return status;
  }
  e->device = d;
  e->stream = s;
  e->serial = slot->serial;
  e->query = slot->n_events++;
  e->next = slot->events;
  slot->events = e;
  if (slot->queries)
    d->CmdWriteTimestamp(slot->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot->queries, e->query);
  if (slot->n_events == kSlotEvents)
    if (const skua_status status = submit_locked(s); status != SKUA_STATUS_OK) {
      release(d->ctx, e, sizeof *e);  // the slot has let go of it
      return status;
    }
  __atomic_fetch_add(&s->holders, 1, __ATOMIC_RELAXED);
  *out = e;
  return SKUA_STATUS_OK;
}

// An event that is not submitted yet is submitted: the wait is a barrier on the queue that all streams share.
static skua_status submit_event(const VulkanEvent* e) {
  if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != VulkanEvent::pending) return SKUA_STATUS_OK;
  VulkanStream* s = e->stream;
  if (__atomic_load_n(&s->submitted, __ATOMIC_ACQUIRE) >= e->serial) return SKUA_STATUS_OK;
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  return s->submitted >= e->serial ? SKUA_STATUS_OK : submit_locked(s);
}

skua_status event_wait(skua_stream* stream, skua_event* event) {
  VulkanStream* s = stream_of(stream);
  auto* e = static_cast<VulkanEvent*>(event);
  if (e->device != s->device) return SKUA_INVALID("stream_wait_event: the event is of another context");
  if (e->stream == s) return SKUA_STATUS_OK;  // comes before anyway
  SKUA_TRY(submit_event(e));
  if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == VulkanEvent::failed)
    return fail(SKUA_STATUS_DRIVER_ERROR, "stream_wait_event: the event's stream failed");
  Locked lock(s->lock);
  SKUA_TRY(check_stream(s));
  s->barrier_wanted = true;
  return SKUA_STATUS_OK;
}

// Waits until the event has its time.
static skua_status settle(VulkanEvent* e) {
  SKUA_TRY(submit_event(e));
  if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == VulkanEvent::pending) {
    VulkanStream* s = e->stream;
    Locked lock(s->lock);
    SKUA_TRY(check_stream(s));
    for (Slot& slot : s->slots)
      if (e->state == VulkanEvent::pending && slot.serial == e->serial) SKUA_TRY(wait_slot(s, slot));
  }
  SKUA_TRY(check_lost(e->device));
  if (e->state != VulkanEvent::done)
    return fail(SKUA_STATUS_DRIVER_ERROR, "event_nanoseconds: the event's stream failed");
  return SKUA_STATUS_OK;
}

skua_status event_nanoseconds(const skua_event* begin, const skua_event* end, double* nanoseconds) {
  *nanoseconds = 0;
  VulkanDevice* d = device_of(begin->device);
  if (end->device != d) return SKUA_INVALID("event_nanoseconds: the events are of two contexts");
  SKUA_TRY(check_lost(d));
  if (!(d->about.tick_nanoseconds > 0))
    return SKUA_UNSUPPORTED_("event_nanoseconds: %s has no timestamps", d->about.info.name);
  auto* b = static_cast<VulkanEvent*>(const_cast<skua_event*>(begin));
  auto* e = static_cast<VulkanEvent*>(const_cast<skua_event*>(end));
  SKUA_TRY(settle(b));
  SKUA_TRY(settle(e));
  // Ticks wrap at their width; a time before `begin` is negative.
  const uint32_t unused = 64 - d->timestamp_bits;
  *nanoseconds = double(int64_t((e->ticks - b->ticks) << unused) >> unused) * d->about.tick_nanoseconds;
  return SKUA_STATUS_OK;
}

void event_destroy(skua_event* event) {
  auto* e = static_cast<VulkanEvent*>(event);
  VulkanStream* s = e->stream;
  bool pending = __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == VulkanEvent::pending;
  if (pending) {
    Locked lock(s->lock);
    pending = e->state == VulkanEvent::pending;
    e->destroyed = pending;  // its slot frees it
  }
  if (!pending) release(e->device->ctx, e, sizeof *e);
  let_go(s);
}

}  // namespace skua::gpu::vulkan
