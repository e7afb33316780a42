// The public calls of GPU contexts: device buffers, streams, events, skua_plan_enqueue(). What is checked is checked
// here; the backends do it.
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "gpu/device.h"

namespace skua::gpu {

const Api* api_of(skua_device_api api) {
#ifdef SKUA_GPU_OPENCL
  if (api == SKUA_DEVICE_API_OPENCL) return &opencl_api;
#endif
#ifdef SKUA_GPU_VULKAN
  if (api == SKUA_DEVICE_API_VULKAN) return &vulkan_api;
#endif
  (void)api;
  return nullptr;
}

const KernelText* find_text(const KernelTexts& texts, const char* name) {
  for (size_t i = 0; i < texts.count; ++i)
    if (!strcmp(texts.texts[i].name, name)) return &texts.texts[i];
  return nullptr;
}

Vendor vendor_named(const char* name, const char* vendor) {
  static const struct {
    const char* part;
    Vendor vendor;
  } parts[] = {{"adreno", Vendor::adreno},     {"qualcomm", Vendor::adreno},
               {"mali", Vendor::mali},         {"immortalis", Vendor::mali},
               {"powervr", Vendor::powervr},   {"imagination", Vendor::powervr},
               {"apple", Vendor::apple},       {"nvidia", Vendor::nvidia},
               {"intel", Vendor::intel},       {"advanced micro devices", Vendor::amd},
               {"amd", Vendor::amd},           {"radeon", Vendor::amd},
               {"llvmpipe", Vendor::software}, {"swiftshader", Vendor::software},
               {"pocl", Vendor::software}};
  for (const auto& p : parts)
    if (strcasestr(name, p.part) || strcasestr(vendor, p.part)) return p.vendor;
  return Vendor::unknown;
}

namespace {

skua_status need_gpu(const char* call, const skua_context* context) {
  if (!context) return SKUA_INVALID("%s: context is NULL", call);
  if (!context->gpu)
    return SKUA_UNSUPPORTED_("%s: the context is on the CPU, where operators take host pointers", call);
  return SKUA_STATUS_OK;
}
skua_status need_alive(const char* call, const Device* device) {
  if (!__atomic_load_n(&device->lost, __ATOMIC_ACQUIRE)) return SKUA_STATUS_OK;
  return fail(SKUA_STATUS_DEVICE_LOST, "%s: the device was lost; destroy the context and make another", call);
}
skua_status need_stream(const char* call, const skua_stream* stream) {
  if (!stream) return SKUA_INVALID("%s: stream is NULL", call);
  return need_alive(call, stream->device);
}
skua_status need_part(const char* call, const skua_device_buffer* buffer, size_t offset, const void* data,
                      size_t size) {
  if (!buffer) return SKUA_INVALID("%s: buffer is NULL", call);
  if (!data && size) return SKUA_INVALID("%s: data is NULL", call);
  if (offset > buffer->size || size > buffer->size - offset)
    return SKUA_INVALID("%s: offset %zu and size %zu end behind the buffer's %zu bytes", call, offset, size,
                        buffer->size);
  return need_alive(call, buffer->device);
}

skua_span span_of_input(const skua_plan* plan, size_t i) {
  return i < kMaxPlanInputs ? plan->input_spans[i] : span_of(plan->all_inputs[i]);
}

// `i`: SIZE_MAX for what there is one of.
skua_status check_buffer(const skua_plan* plan, const char* what, size_t i, const skua_buffer& b, size_t bytes,
                         uint32_t alignment) {
  const char* const op = plan->op->cls->name;
  char name[32];
  if (i == SIZE_MAX) snprintf(name, sizeof name, "%s", what);
  else snprintf(name, sizeof name, "%s %zu", what, i);
  if (b.host) return SKUA_INVALID("%s: %s is a host pointer, the context is on a GPU", op, name);
  if (bytes == 0) return SKUA_STATUS_OK;
  if (!b.device) return SKUA_INVALID("%s: %s has no device buffer", op, name);
  if (b.device->device != plan->op->ctx->gpu) return SKUA_INVALID("%s: %s is a buffer of another context", op, name);
  if (b.offset % alignment)
    return SKUA_INVALID("%s: %s has offset %zu, which is no multiple of %u bytes", op, name, b.offset, alignment);
  if (b.offset > b.device->size || bytes > b.device->size - b.offset)
    return SKUA_INVALID("%s: %s needs %zu bytes from offset %zu, its buffer has %zu", op, name, bytes, b.offset,
                        b.device->size);
  if (plan->text && plan->text->type == SKUA_DTYPE_S8 && b.device->whole &&
      round_up(b.offset + bytes, 4) > b.device->size)
    return SKUA_UNSUPPORTED_(
        "%s: %s ends with an imported buffer, at byte %zu; kernels of bytes see words of 4, import it up to a multiple "
        "of them",
        op, name, b.offset + bytes);
  return SKUA_STATUS_OK;
}

size_t start_of(const skua_buffer& b) { return b.device->begin + b.offset; }
bool meet(const skua_buffer& a, size_t a_bytes, const skua_buffer& b, size_t b_bytes) {
  if (!a_bytes || !b_bytes || (a.device != b.device && (!a.device->whole || a.device->whole != b.device->whole)))
    return false;
  return start_of(a) < start_of(b) + b_bytes && start_of(b) < start_of(a) + a_bytes;
}
bool same_layout(const skua_tensor& a, const skua_tensor& b) {
  bool same = a.rank == b.rank;
  for (uint32_t d = 0; same && d < a.rank; ++d)
    same = a.shape[d] == b.shape[d] && (a.shape[d] == 1 || a.stride[d] == b.stride[d]);
  return same;
}

// A network returns to a plan when its own work has driven it out of the caches: what recording reads first is asked
// for at once, not as it is met.
void fetch_lines(const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(from) + i);
}

bool change_mapped(skua_device_buffer* buffer, void* from, void* to) {
  return __atomic_compare_exchange_n(&buffer->mapped_at, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

skua_status check_overlap(const RecordArgs& r, size_t workspace) {
  const skua_plan* const plan = r.plan;
  const OpClass& cls = *plan->op->cls;
  for (size_t o = 0; o < plan->n_outputs; ++o) {
    const skua_span to = plan->output_spans[o];
    if (workspace && meet(r.outputs[o], to.bytes, *r.workspace, workspace))
      return SKUA_INVALID("%s: the workspace overlaps output %zu", cls.name, o);
    for (size_t i = 0; i < plan->n_inputs; ++i) {
      const skua_span from = span_of_input(plan, i);
      if (!meet(r.inputs[i], from.bytes, r.outputs[o], to.bytes)) continue;
      if (start_of(r.inputs[i]) == start_of(r.outputs[o])) {
        if (cls.in_place && r.inputs[i].device == r.outputs[o].device &&
            same_layout(plan->all_inputs[i], plan->outputs[o]))
          continue;
        return SKUA_INVALID("%s: output %zu overlaps input %zu%s", cls.name, o, i,
                            cls.in_place ? ": in place needs the same device buffer, shape and strides" : "");
      }
      if (from.dense && to.dense) return SKUA_INVALID("%s: output %zu overlaps input %zu", cls.name, o, i);
    }
    for (size_t p = 0; p < o; ++p)
      if (to.dense && plan->output_spans[p].dense &&
          meet(r.outputs[p], plan->output_spans[p].bytes, r.outputs[o], to.bytes))
        return SKUA_INVALID("%s: output %zu overlaps output %zu", cls.name, o, p);
  }
  for (size_t i = 0; workspace && i < plan->n_inputs; ++i)
    if (meet(r.inputs[i], span_of_input(plan, i).bytes, *r.workspace, workspace))
      return SKUA_INVALID("%s: the workspace overlaps input %zu", cls.name, i);
  return SKUA_STATUS_OK;
}

}  // namespace
}  // namespace skua::gpu

using namespace skua;
using namespace skua::gpu;

extern "C" {

skua_status skua_context_save_programs(skua_context* context) {
  SKUA_TRY(need_gpu("context_save_programs", context));
  SKUA_TRY(need_alive("context_save_programs", context->gpu));
  return context->gpu->api->save(context->gpu);
}

skua_status skua_device_buffer_create(skua_context* context, size_t size, skua_device_buffer** out) {
  constexpr const char* call = "device_buffer_create";
  if (!out) return SKUA_INVALID("%s: out is NULL", call);
  *out = nullptr;
  SKUA_TRY(need_gpu(call, context));
  if (size == 0) return SKUA_INVALID("%s: size is 0", call);
  SKUA_TRY(need_alive(call, context->gpu));
  const uint64_t most = context->gpu->about.buffer_bytes;
  if (most && size > most)
    return fail(SKUA_STATUS_OUT_OF_MEMORY, "%s: size is %zu, a buffer of this device has %llu bytes at most", call,
                size, static_cast<unsigned long long>(most));
  return context->gpu->api->buffer_create(context->gpu, size, Texels::none, out);
}

skua_status skua_device_buffer_import(skua_context* context, uint64_t native_handle, size_t offset, size_t size,
                                      skua_device_buffer** out) {
  constexpr const char* call = "device_buffer_import";
  if (!out) return SKUA_INVALID("%s: out is NULL", call);
  *out = nullptr;
  SKUA_TRY(need_gpu(call, context));
  if (!native_handle) return SKUA_INVALID("%s: native_handle is 0", call);
  if (size == 0) return SKUA_INVALID("%s: size is 0", call);
  SKUA_TRY(need_alive(call, context->gpu));
  return context->gpu->api->buffer_import(context->gpu, native_handle, offset, size, out);
}

skua_status skua_device_buffer_write(skua_device_buffer* buffer, size_t offset, const void* data, size_t size) {
  SKUA_TRY(need_part("device_buffer_write", buffer, offset, data, size));
  return size ? buffer->device->api->buffer_write(buffer, offset, data, size) : SKUA_STATUS_OK;
}

skua_status skua_device_buffer_read(const skua_device_buffer* buffer, size_t offset, void* data, size_t size) {
  SKUA_TRY(need_part("device_buffer_read", buffer, offset, data, size));
  return size ? buffer->device->api->buffer_read(buffer, offset, data, size) : SKUA_STATUS_OK;
}

skua_status skua_device_buffer_map(skua_device_buffer* buffer, size_t offset, size_t size, void** data) {
  if (!data) return SKUA_INVALID("device_buffer_map: data is NULL");
  *data = nullptr;
  SKUA_TRY(need_part("device_buffer_map", buffer, offset, data, size));
  if (!size) return SKUA_INVALID("device_buffer_map: size is 0");
  if (!change_mapped(buffer, nullptr, buffer))
    return SKUA_INVALID("device_buffer_map: the buffer is mapped; unmap it first");
  const skua_status status = buffer->device->api->buffer_map(buffer, offset, size, data);
  __atomic_store_n(&buffer->mapped_at, status == SKUA_STATUS_OK ? *data : nullptr, __ATOMIC_RELEASE);
  return status;
}

skua_status skua_device_buffer_unmap(skua_device_buffer* buffer, void* data) {
  if (!data) return SKUA_INVALID("device_buffer_unmap: data is NULL");
  SKUA_TRY(need_part("device_buffer_unmap", buffer, 0, data, 0));
  if (data == buffer || !change_mapped(buffer, data, buffer))
    return SKUA_INVALID(
        "device_buffer_unmap: data is not what device_buffer_map gave for this buffer, or was unmapped");
  const skua_status status = buffer->device->api->buffer_unmap(buffer, data);
  __atomic_store_n(&buffer->mapped_at, status == SKUA_STATUS_OK ? nullptr : data, __ATOMIC_RELEASE);
  return status;
}

void skua_device_buffer_destroy(skua_device_buffer* buffer) {
  if (!buffer) return;
  if (void* const data = __atomic_load_n(&buffer->mapped_at, __ATOMIC_ACQUIRE)) {
    const ErrorText before;
    if (buffer->device->api->buffer_unmap(buffer, data) != SKUA_STATUS_OK) before.restore();
  }
  buffer->device->api->buffer_destroy(buffer);
}

skua_status skua_stream_create(skua_context* context, skua_stream** out) {
  if (!out) return SKUA_INVALID("stream_create: out is NULL");
  *out = nullptr;
  SKUA_TRY(need_gpu("stream_create", context));
  SKUA_TRY(need_alive("stream_create", context->gpu));
  return context->gpu->api->stream_create(context->gpu, out);
}

void skua_stream_destroy(skua_stream* stream) {
  if (stream) stream->device->api->stream_destroy(stream);
}

skua_status skua_plan_enqueue(const skua_plan* plan, const skua_buffer* inputs, size_t n_inputs,
                              const skua_buffer* outputs, size_t n_outputs, const skua_buffer* workspace,
                              skua_stream* stream) {
  if (!plan) return SKUA_INVALID("enqueue: plan is NULL");
  fetch_lines(plan->input_spans, 384);
  const OpClass& cls = *plan->op->cls;
  if (!plan->op->ctx->gpu)
    return SKUA_UNSUPPORTED_("%s: the plan is one for the CPU; it runs with skua_plan_run()", cls.name);
  SKUA_TRY(need_stream(cls.name, stream));
  if (stream->device != plan->op->ctx->gpu)
    return SKUA_INVALID("%s: the stream is of another context than the plan", cls.name);
  if (!inputs) return SKUA_INVALID("%s: inputs is NULL", cls.name);
  if (!outputs) return SKUA_INVALID("%s: outputs is NULL", cls.name);
  if (n_inputs != plan->n_inputs)
    return wrong_number_of_inputs(cls, n_inputs, plan->n_inputs);
  if (n_outputs != plan->n_outputs)
    return SKUA_INVALID("%s: n_outputs is %zu, must be %zu", cls.name, n_outputs, plan->n_outputs);
  for (size_t i = 0; i < n_inputs; ++i) {
    const skua_span span = span_of_input(plan, i);
    SKUA_TRY(check_buffer(plan, "input", i, inputs[i], span.bytes, span.element));
  }
  for (size_t o = 0; o < n_outputs; ++o)
    SKUA_TRY(check_buffer(plan, "output", o, outputs[o], plan->output_spans[o].bytes, plan->output_spans[o].element));
  const size_t space = plan->workspace;
  if (space && !workspace) return SKUA_INVALID("%s: workspace is NULL, %zu bytes are needed", cls.name, space);
  if (space) SKUA_TRY(check_buffer(plan, "workspace", SIZE_MAX, *workspace, space, SKUA_WORKSPACE_ALIGNMENT));
  const RecordArgs args = {plan, inputs, outputs, workspace, stream};
  SKUA_TRY(check_overlap(args, space));
  for (size_t o = 0; o < n_outputs; ++o)
    if (plan->output_spans[o].bytes) return cls.record(args);
  return SKUA_STATUS_OK;  // no elements
}

skua_status skua_stream_submit(skua_stream* stream) {
  SKUA_TRY(need_stream("stream_submit", stream));
  return stream->device->api->submit(stream);
}

skua_status skua_stream_wait(skua_stream* stream) {
  SKUA_TRY(need_stream("stream_wait", stream));
  return stream->device->api->wait(stream);
}

skua_status skua_event_record(skua_stream* stream, skua_event** out) {
  if (!out) return SKUA_INVALID("event_record: out is NULL");
  *out = nullptr;
  SKUA_TRY(need_stream("event_record", stream));
  return stream->device->api->event_record(stream, out);
}

skua_status skua_stream_wait_event(skua_stream* stream, skua_event* event) {
  SKUA_TRY(need_stream("stream_wait_event", stream));
  if (!event) return SKUA_INVALID("stream_wait_event: event is NULL");
  if (event->device != stream->device)
    return SKUA_INVALID("stream_wait_event: the event is of another context than the stream");
  return stream->device->api->event_wait(stream, event);
}

skua_status skua_event_nanoseconds(const skua_event* begin, const skua_event* end, double* nanoseconds) {
  if (!nanoseconds) return SKUA_INVALID("event_nanoseconds: nanoseconds is NULL");
  *nanoseconds = 0;
  if (!begin || !end) return SKUA_INVALID("event_nanoseconds: %s is NULL", begin ? "end" : "begin");
  if (begin->device != end->device) return SKUA_INVALID("event_nanoseconds: the events are of two contexts");
  SKUA_TRY(need_alive("event_nanoseconds", begin->device));
  if (begin->device->about.tick_nanoseconds == 0)
    return SKUA_UNSUPPORTED_("event_nanoseconds: the device has no timestamps");
  return begin->device->api->event_nanoseconds(begin, end, nanoseconds);
}

void skua_event_destroy(skua_event* event) {
  if (event) event->device->api->event_destroy(event);
}

}  // extern "C"
