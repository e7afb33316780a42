#include "gpu/launch.h"

namespace skua::gpu {

skua_status choose(const skua_op* op, const ProgramKey& key, Chosen& chosen) {
  Device* const device = op->ctx->gpu;
  const uint32_t threads = uint32_t(key.local[0]) * key.local[1] * key.local[2];
  if (!key.text->source || threads > device->about.group_threads)
    return SKUA_UNSUPPORTED_(
        "%s: %s %s", op->cls->name, key.text->name,
        key.text->source ? "needs larger work-groups than this device has" : "is left out of this build");
  SKUA_TRY(device->api->program(device, key, &chosen.program));
  chosen.text = key.text;
  memcpy(chosen.local, key.local, sizeof chosen.local);
  return SKUA_STATUS_OK;
}

skua_status need_gpu_type(const skua_context* ctx, const char* op, const char* field, skua_dtype type) {
  if (type == SKUA_DTYPE_F32) return SKUA_STATUS_OK;
  const Description& about = ctx->gpu->about;
  const bool half = type == SKUA_DTYPE_F16 || type == SKUA_DTYPE_BF16;
  if (half && !about.f16_storage)
    return SKUA_UNSUPPORTED_("%s: %s is %s, which %s cannot store on %s", op, field, skua_dtype_name(type),
                             ctx->gpu->api->name, about.info.name);
  if (half) return need_float(op, field, type);
  return SKUA_UNSUPPORTED_("%s: %s is %s, which has no kernel for %s yet; it takes f32, f16 and bf16", op, field,
                           skua_dtype_name(type), ctx->gpu->api->name);
}

skua_status need_gpu_movable(const skua_context* ctx, const char* op, const char* field, skua_dtype type) {
  return type == SKUA_DTYPE_S8 || type == SKUA_DTYPE_U8 ? SKUA_STATUS_OK : need_gpu_type(ctx, op, field, type);
}

uint16_t line_threads(const Description& about) {
  const bool large = about.vendor == Vendor::nvidia || about.vendor == Vendor::amd || about.vendor == Vendor::intel;
  const uint32_t wanted = large ? 256 : 64;
  return uint16_t(wanted < about.group_threads ? wanted : about.group_threads);
}

int32_t Launch::bind(const skua_buffer& buffer, const skua_span& span, bool written) {
  const size_t first = buffer.offset / span.element, last = first + span.bytes / span.element;
  if (last > INT32_MAX && status == SKUA_STATUS_OK)
    status = SKUA_UNSUPPORTED_("%s: binding %u ends behind element 2^31 of its buffer; kernels count in 32 bits",
                               args.plan->op->cls->name, dispatch.n_bindings);
  element[dispatch.n_bindings] = uint8_t(span.element);
  dispatch.bindings[dispatch.n_bindings++] = {buffer.device, buffer.offset, span.bytes, written};
  return int32_t(first);
}
int32_t Launch::input(size_t i) {
  return bind(args.inputs[i], i < kMaxPlanInputs ? args.plan->input_spans[i] : span_of(args.plan->all_inputs[i]),
              false);
}
int32_t Launch::output(size_t i) { return bind(args.outputs[i], args.plan->output_spans[i], true); }

skua_status Launch::record(const Chosen& kernel, size_t x, size_t y, size_t z) {
  return record_groups(kernel,
                       {{ceil_div(x, kernel.local[0]), ceil_div(y, kernel.local[1]), ceil_div(z, kernel.local[2])}});
}

skua_status Launch::record_groups(const Chosen& kernel, const Groups& groups) {
  SKUA_TRY(status);
  for (int i = 0; i < 3; ++i)
    if (groups.count[i] > size_t(INT32_MAX) / kernel.local[i])
      return SKUA_UNSUPPORTED_("%s: %zu work-groups of %u threads; kernels count in 32 bits", args.plan->op->cls->name,
                               groups.count[i], kernel.local[i]);
  dispatch.program = kernel.program;
  return start(args.plan->op, *kernel.text, dispatch, groups, args.stream);
}

skua_status start(const skua_op* op, const KernelText& text, Dispatch& dispatch, const Groups& groups,
                  skua_stream* stream) {
  const Device* const device = op->ctx->gpu;
  int32_t* const first = dispatch.arguments + dispatch.n_arguments;
  dispatch.n_arguments += 3;
  size_t most[3], at[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!groups.count[i]) return SKUA_STATUS_OK;
    most[i] = device->about.group_count[i] ? device->about.group_count[i] : 65535;
  }
#ifdef SKUA_COUNT_CALLS
  __atomic_fetch_add(&text.calls[device->api->number], 1, __ATOMIC_RELAXED);
#else
  (void)text;
#endif
  for (int i = 0; i < 3;) {
    for (int d = 0; d < 3; ++d) {
      first[d] = int32_t(at[d]);
      dispatch.groups[d] = uint32_t(min(groups.count[d] - at[d], most[d]));
    }
    SKUA_TRY(device->api->record(stream, dispatch));
    for (i = 0; i < 3 && (at[i] += most[i]) >= groups.count[i]; ++i) at[i] = 0;
  }
  return SKUA_STATUS_OK;
}

void free_buffer(skua_device_buffer* buffer) {
  if (buffer) buffer->device->api->buffer_destroy(buffer);
}

skua_status upload(const skua_op* op, const void* data, size_t size, skua_device_buffer** out, Texels texels) {
  Device* const device = op->ctx->gpu;
  SKUA_TRY(device->api->buffer_create(device, size, texels, out));
  const skua_status s = device->api->buffer_write(*out, 0, data, size);
  if (s == SKUA_STATUS_OK) return s;
  free_buffer(*out);
  *out = nullptr;
  return s;
}

skua_status open_norm(const skua_context* ctx, const skua_op* op, skua_dtype type, const float* gamma,
                      const float* beta, size_t channels, skua_device_buffer** factors) {
  SKUA_TRY(need_gpu_type(ctx, op->cls->name, "type", type));
  const size_t second = round_up(channels, 4), bytes = 2 * second * sizeof(float);
  auto* both = static_cast<float*>(allocate(ctx, bytes, 16));
  if (!both) return out_of_memory(op->cls->name, bytes);
  memset(both, 0, bytes);
  memcpy(both, gamma, channels * sizeof(float));
  memcpy(both + second, beta, channels * sizeof(float));
  const skua_status s = upload(op, both, bytes, factors);
  release(ctx, both, bytes);
  return s;
}

}  // namespace skua::gpu
