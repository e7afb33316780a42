// OpenCL 1.2: devices, buffers, streams, events; the table of the backend.
#include "gpu/opencl/backend.h"

namespace skua::gpu {

namespace opencl {
namespace {

// How many dispatches a queue may hold back. Mobile drivers that get hundreds at once stall or are reset; others do not
// care.
uint32_t flush_interval(const Description& d) {
  switch (d.vendor) {
    case Vendor::adreno: return 16;
    case Vendor::mali: return 24;
    case Vendor::powervr: return 8;
    case Vendor::unknown: return 10;
    default: return 0;
  }
}

size_t list(Description* to, size_t capacity, char* why, size_t why_size) {
  const Functions* cl = functions(why, why_size);
  if (!cl) return 0;
  Found found[kMostDevices];
  const size_t n = find_devices(*cl, found, why, why_size);
  for (size_t i = 0; i < n && i < capacity; ++i) to[i] = found[i].about;
  return n;
}

void close(Device* base) {
  ClDevice* d = of(base);
  const Functions& cl = *d->cl;
  const ErrorText before;
  cache_write(d->cache);
  cache_close(d);
  before.restore();
  destroy_programs(d);
  if (d->transfers) cl.clReleaseCommandQueue(d->transfers);
  if (d->context) cl.clReleaseContext(d->context);
  pthread_mutex_destroy(&d->compiling);
  release(d->ctx, d, sizeof *d);
}

// The caller's queue, or a new one.
cl_int take_queue(ClDevice* d, cl_command_queue_properties how, cl_command_queue* queue, const char** call) {
  cl_int error;
  *call = d->queue ? "clRetainCommandQueue" : "clCreateCommandQueue";
  if (d->queue) error = d->cl->clRetainCommandQueue(d->queue);
  const cl_command_queue taken = d->queue ? d->queue : d->cl->clCreateCommandQueue(d->context, d->id, how, &error);
  *queue = error == CL_SUCCESS ? taken : nullptr;
  return error;
}

// The caller's device, if its context and queue are of it.
skua_status check_objects(const Functions& cl, const skua_opencl_objects& given, Found& found) {
  const auto context = static_cast<cl_context>(given.context);
  const auto queue = static_cast<cl_command_queue>(given.queue);
  if (!given.context || !given.device)
    return SKUA_INVALID("context: opencl.%s is NULL", given.context ? "device" : "context");
  found.id = static_cast<cl_device_id>(given.device);
  cl_device_id ids[64];
  size_t bytes = 0;
  if (const cl_int error = cl.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof ids, ids, &bytes);
      error != CL_SUCCESS)
    return driver_error(nullptr, "clGetContextInfo", error);
  bool member = false;
  for (size_t i = 0; i < bytes / sizeof ids[0]; ++i) member = member || ids[i] == found.id;
  if (!member) return SKUA_INVALID("context: opencl.device is not one of opencl.context's");
  char why[256] = "";
  if (!describe(cl, found.id, found.about, why, sizeof why))
    return fail(SKUA_STATUS_NO_DEVICE, "context: opencl.device: %s", why);
  if (!queue) return SKUA_STATUS_OK;
  cl_context queue_context;
  cl_device_id queue_device;
  cl_command_queue_properties how;
  cl_int error = cl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof queue_context, &queue_context, nullptr);
  if (error == CL_SUCCESS)
    error = cl.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof queue_device, &queue_device, nullptr);
  if (error == CL_SUCCESS) error = cl.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof how, &how, nullptr);
  if (error != CL_SUCCESS) return driver_error(nullptr, "clGetCommandQueueInfo", error);
  if (queue_context != context || queue_device != found.id)
    return SKUA_INVALID("context: opencl.queue is of another %s than opencl's",
                        queue_context != context ? "context" : "device");
  if (how & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    return SKUA_INVALID("context: opencl.queue is out of order; streams need one that is in order");
  if (!(how & CL_QUEUE_PROFILING_ENABLE)) found.about.tick_nanoseconds = 0;
  return SKUA_STATUS_OK;
}

skua_status find(const Functions& cl, uint32_t index, Found& to) {
  char why[256] = "";
  Found found[kMostDevices];
  const size_t n = find_devices(cl, found, why, sizeof why);
  if (!n) return fail(SKUA_STATUS_NO_DEVICE, "context: no OpenCL device: %s", why);
  if (index >= n)
    return fail(SKUA_STATUS_NO_DEVICE, "context: OpenCL device %u does not exist, there %s %zu", index,
                n == 1 ? "is" : "are", n);
  to = found[index];
  return SKUA_STATUS_OK;
}

skua_status open(const skua_context* ctx, const skua_context_options& o, Device** out) {
  char why[256] = "";
  const Functions* cl = functions(why, sizeof why);
  if (!cl) return fail(SKUA_STATUS_NO_DEVICE, "context: no OpenCL driver: %s", why);
  Found found;
  SKUA_TRY(o.opencl ? check_objects(*cl, *o.opencl, found) : find(*cl, o.device.index, found));
  auto* d = static_cast<ClDevice*>(allocate(ctx, sizeof(ClDevice), alignof(ClDevice)));
  if (!d) return out_of_memory("context", sizeof(ClDevice));
  memset(static_cast<void*>(d), 0, sizeof *d);
  d->api = &opencl_api;
  d->ctx = ctx;
  d->about = found.about;
  d->cl = cl;
  d->id = found.id;
  d->flush_every = flush_interval(d->about);
  pthread_mutex_init(&d->compiling, nullptr);
  cl_int error;
  const char* call = o.opencl ? "clRetainContext" : "clCreateContext";
  if (o.opencl) {
    error = cl->clRetainContext(static_cast<cl_context>(o.opencl->context));
    if (error == CL_SUCCESS) d->context = static_cast<cl_context>(o.opencl->context);
    d->shared = true;
    d->queue = static_cast<cl_command_queue>(o.opencl->queue);
  } else {
    d->context = cl->clCreateContext(nullptr, 1, &d->id, nullptr, nullptr, &error);
  }
  if (error == CL_SUCCESS) error = take_queue(d, 0, &d->transfers, &call);
  if (error != CL_SUCCESS) {
    const skua_status status = driver_error(nullptr, call, error);
    close(d);
    return status;
  }
  if (const skua_status status = cache_open(d); status != SKUA_STATUS_OK) {
    close(d);
    return status;
  }
  *out = d;
  return SKUA_STATUS_OK;
}

// ---- buffers --------------------------------------------------------------------------------------------------------
skua_status new_buffer(ClDevice* d, cl_mem memory, size_t size, skua_device_buffer** out) {
  auto* b = make<ClBuffer>(d);
  if (!b) return out_of_memory("device_buffer", sizeof *b);
  b->device = d;
  b->size = size;
  b->memory = memory;
  *out = b;
  return SKUA_STATUS_OK;
}

// The same memory as an image of one line. A driver may refuse formats and sizes: the buffer serves without.
void add_texels(ClBuffer* b, Texels texels) {
  ClDevice* d = of(b->device);
  const cl_image_format format = {CL_RGBA, cl_channel_type(texels == Texels::f16 ? CL_HALF_FLOAT : CL_FLOAT)};
  cl_image_desc desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  desc.image_width = b->size / (texels == Texels::f16 ? 8 : 16);
  desc.buffer = b->memory;
  if (texels == Texels::none || !desc.image_width || desc.image_width > d->about.texels) return;
  cl_int error;
  b->image = d->cl->clCreateImage(d->context, CL_MEM_READ_ONLY, &format, &desc, nullptr, &error);
  if (error == CL_SUCCESS) b->texels = texels;
  else b->image = nullptr;
}

skua_status buffer_create(Device* base, size_t size, Texels texels, skua_device_buffer** out) {
  ClDevice* d = of(base);
  cl_int error;
  // kernels of bytes read words
  const cl_mem memory = d->cl->clCreateBuffer(d->context, CL_MEM_READ_WRITE, (size + 3) & ~size_t(3), nullptr, &error);
  if (error != CL_SUCCESS) return driver_error(d, "clCreateBuffer", error);
  const skua_status status = new_buffer(d, memory, size, out);
  if (status != SKUA_STATUS_OK) return d->cl->clReleaseMemObject(memory), status;
  add_texels(static_cast<ClBuffer*>(*out), texels);
  return SKUA_STATUS_OK;
}

skua_status buffer_import(Device* base, uint64_t handle, size_t offset, size_t size, skua_device_buffer** out) {
  ClDevice* d = of(base);
  const Functions& cl = *d->cl;
  constexpr const char* call = "device_buffer_import";
  const auto given = reinterpret_cast<cl_mem>(uintptr_t(handle));
  if (!d->shared)
    return SKUA_UNSUPPORTED_(
        "%s: the context has a cl_context of its own, which no buffer of the caller's belongs to; make it over the "
        "caller's (skua_context_options.opencl)",
        call);
  cl_mem_object_type type;
  cl_context context;
  size_t bytes, begin = 0;
  cl_mem whole = nullptr;  // of a sub-buffer
  cl_int error = cl.clGetMemObjectInfo(given, CL_MEM_TYPE, sizeof type, &type, nullptr);
  if (error == CL_INVALID_MEM_OBJECT) return SKUA_INVALID("%s: native_handle is no cl_mem", call);
  if (error == CL_SUCCESS) error = cl.clGetMemObjectInfo(given, CL_MEM_CONTEXT, sizeof context, &context, nullptr);
  if (error == CL_SUCCESS) error = cl.clGetMemObjectInfo(given, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
  if (error == CL_SUCCESS)
    error = cl.clGetMemObjectInfo(given, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, nullptr);
  if (error == CL_SUCCESS && whole) error = cl.clGetMemObjectInfo(given, CL_MEM_OFFSET, sizeof begin, &begin, nullptr);
  if (error != CL_SUCCESS) return driver_error(d, "clGetMemObjectInfo", error);
  if (type != CL_MEM_OBJECT_BUFFER)
    return SKUA_INVALID("%s: native_handle is an image or a pipe, must be a buffer", call);
  if (context != d->context)
    return SKUA_INVALID("%s: native_handle belongs to another cl_context than skua_context_options.opencl's", call);
  if (offset > bytes || size > bytes - offset)
    return SKUA_INVALID("%s: offset %zu and size %zu end behind the cl_mem's %zu bytes", call, offset, size, bytes);
  cl_mem memory = given;
  if (offset || size < bytes) {  // also so that a kernel cannot reach what was not given
    const cl_buffer_region region = {offset, size};
    memory = cl.clCreateSubBuffer(given, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (error == CL_MISALIGNED_SUB_BUFFER_OFFSET)
      return SKUA_INVALID(
          "%s: offset %zu is no multiple of what the device wants of sub-buffers (CL_DEVICE_MEM_BASE_ADDR_ALIGN)", call,
          offset);
    if (error == CL_INVALID_MEM_OBJECT)
      return SKUA_INVALID("%s: native_handle is a sub-buffer, of which there are no parts", call);
    if (error != CL_SUCCESS) return driver_error(d, "clCreateSubBuffer", error);
  } else if (error = cl.clRetainMemObject(given); error != CL_SUCCESS) {
    return driver_error(d, "clRetainMemObject", error);
  }
  const skua_status status = new_buffer(d, memory, size, out);
  if (status != SKUA_STATUS_OK) return cl.clReleaseMemObject(memory), status;
  (*out)->whole = whole ? reinterpret_cast<uintptr_t>(whole) : handle;
  (*out)->begin = begin + offset;
  return SKUA_STATUS_OK;
}

void buffer_destroy(skua_device_buffer* base) {
  auto* b = static_cast<ClBuffer*>(base);
  __atomic_fetch_add(&of(b->device)->destroyed, 1, __ATOMIC_RELAXED);
  if (b->image) of(b->device)->cl->clReleaseMemObject(b->image);
  of(b->device)->cl->clReleaseMemObject(b->memory);
  release(b->device->ctx, b, sizeof *b);
}

skua_status buffer_write(skua_device_buffer* base, size_t offset, const void* data, size_t size) {
  auto* b = static_cast<ClBuffer*>(base);
  ClDevice* d = of(b->device);
  const cl_int error =
      d->cl->clEnqueueWriteBuffer(d->transfers, b->memory, CL_TRUE, offset, size, data, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clEnqueueWriteBuffer", error);
}

skua_status buffer_read(const skua_device_buffer* base, size_t offset, void* data, size_t size) {
  auto* b = static_cast<const ClBuffer*>(base);
  ClDevice* d = of(b->device);
  const cl_int error =
      d->cl->clEnqueueReadBuffer(d->transfers, b->memory, CL_TRUE, offset, size, data, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clEnqueueReadBuffer", error);
}

skua_status buffer_map(skua_device_buffer* base, size_t offset, size_t size, void** data) {
  ClDevice* d = of(base->device);
  cl_int error;
  void* const at = d->cl->clEnqueueMapBuffer(d->transfers, static_cast<ClBuffer*>(base)->memory, CL_TRUE,
                                             CL_MAP_READ | CL_MAP_WRITE, offset, size, 0, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return driver_error(d, "clEnqueueMapBuffer", error);
  *data = at;
  return SKUA_STATUS_OK;
}

skua_status buffer_unmap(skua_device_buffer* base, void* data) {
  ClDevice* d = of(base->device);
  cl_int error =
      d->cl->clEnqueueUnmapMemObject(d->transfers, static_cast<ClBuffer*>(base)->memory, data, 0, nullptr, nullptr);
  if (error != CL_SUCCESS) return driver_error(d, "clEnqueueUnmapMemObject", error);
  error = d->cl->clFinish(d->transfers);  // streams have queues of their own
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clFinish", error);
}

// The binaries of the programs that were compiled here go to the cache as they are made.
skua_status save(Device* base) { return cache_write(base->cache); }

// ---- streams --------------------------------------------------------------------------------------------------------
skua_status stream_create(Device* base, skua_stream** out) {
  ClDevice* d = of(base);
  auto* s = make<ClStream>(d);
  if (!s) return out_of_memory("stream", sizeof *s);
  s->device = d;
  const char* call;
  if (const cl_int error = take_queue(d, CL_QUEUE_PROFILING_ENABLE, &s->queue, &call); error != CL_SUCCESS) {
    release(d->ctx, s, sizeof *s);
    return driver_error(d, call, error);
  }
  *out = s;
  return SKUA_STATUS_OK;
}

void stream_destroy(skua_stream* base) {
  auto* s = static_cast<ClStream*>(base);
  ClDevice* d = of(s->device);
  d->cl->clFinish(s->queue);
  d->cl->clReleaseCommandQueue(s->queue);
  release(d->ctx, s, sizeof *s);
}

skua_status submit(skua_stream* base) {
  auto* s = static_cast<ClStream*>(base);
  s->recorded = 0;
  const cl_int error = of(s->device)->cl->clFlush(s->queue);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(s->device, "clFlush", error);
}

skua_status record(skua_stream* base, const Dispatch& x) {
  auto* s = static_cast<ClStream*>(base);
  ClDevice* d = of(s->device);
  const Functions& cl = *d->cl;
  auto* p = const_cast<Program*>(x.program);
  size_t local[3], global[3];
  for (int i = 0; i < 3; ++i) {
    local[i] = p->key.local[i];
    global[i] = local[i] * x.groups[i];
  }
  pthread_mutex_lock(&p->setting);
  cl_int error = CL_SUCCESS;
  const char* call = "clSetKernelArg";
  if (const uint64_t destroyed = __atomic_load_n(&d->destroyed, __ATOMIC_RELAXED); p->bound_at != destroyed) {
    memset(p->bound, 0, sizeof p->bound);
    p->bound_at = destroyed;
  }
  for (uint32_t i = 0; i < x.n_bindings && error == CL_SUCCESS; ++i) {
    const auto* b = static_cast<const ClBuffer*>(x.bindings[i].buffer);
    const cl_mem memory = x.bindings[i].texels ? b->image : b->memory;
    if (p->bound[i] == memory) continue;
    error = cl.clSetKernelArg(p->kernel, i, sizeof memory, &memory);
    p->bound[i] = error == CL_SUCCESS ? memory : nullptr;
  }
  if (error == CL_SUCCESS && x.n_arguments)
    error = cl.clSetKernelArg(p->kernel, x.n_bindings, 4 * size_t(x.n_arguments), x.arguments);
  if (error == CL_SUCCESS) {
    call = "clEnqueueNDRangeKernel";
    error = cl.clEnqueueNDRangeKernel(s->queue, p->kernel, 3, nullptr, global, local, 0, nullptr, nullptr);
  }
  pthread_mutex_unlock(&p->setting);
  if (error != CL_SUCCESS) return driver_error(d, call, error);
  if (d->flush_every && ++s->recorded >= d->flush_every) return submit(s);
  return SKUA_STATUS_OK;
}

skua_status wait(skua_stream* base) {
  auto* s = static_cast<ClStream*>(base);
  s->recorded = 0;
  const cl_int error = of(s->device)->cl->clFinish(s->queue);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(s->device, "clFinish", error);
}

// ---- events ---------------------------------------------------------------------------------------------------------
skua_status event_record(skua_stream* base, skua_event** out) {
  auto* s = static_cast<ClStream*>(base);
  ClDevice* d = of(s->device);
  auto* e = make<ClEvent>(d);
  if (!e) return out_of_memory("event", sizeof *e);
  e->device = d;
  const cl_int error = d->cl->clEnqueueMarkerWithWaitList(s->queue, 0, nullptr, &e->event);
  if (error != CL_SUCCESS) {
    release(d->ctx, e, sizeof *e);
    return driver_error(d, "clEnqueueMarkerWithWaitList", error);
  }
  e->queue = s->queue;  // may outlive the stream
  if (const cl_int kept = d->cl->clRetainCommandQueue(e->queue); kept != CL_SUCCESS) {
    d->cl->clReleaseEvent(e->event);
    release(d->ctx, e, sizeof *e);
    return driver_error(d, "clRetainCommandQueue", kept);
  }
  *out = e;
  return SKUA_STATUS_OK;
}

skua_status event_wait(skua_stream* base, skua_event* event) {
  auto* s = static_cast<ClStream*>(base);
  ClDevice* d = of(s->device);
  auto* e = static_cast<ClEvent*>(event);
  cl_int error = d->cl->clFlush(e->queue);  // or it might never begin
  if (error != CL_SUCCESS) return driver_error(d, "clFlush", error);
  error = d->cl->clEnqueueBarrierWithWaitList(s->queue, 1, &e->event, nullptr);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clEnqueueBarrierWithWaitList", error);
}

skua_status event_nanoseconds(const skua_event* begin, const skua_event* end, double* nanoseconds) {
  ClDevice* d = of(begin->device);
  cl_ulong at[2] = {};
  const skua_event* const events[] = {begin, end};
  for (int i = 0; i < 2; ++i) {
    auto* e = static_cast<const ClEvent*>(events[i]);
    cl_int error = d->cl->clWaitForEvents(1, &e->event);
    if (error != CL_SUCCESS) return driver_error(d, "clWaitForEvents", error);
    error = d->cl->clGetEventProfilingInfo(e->event, CL_PROFILING_COMMAND_END, sizeof at[i], &at[i], nullptr);
    if (error != CL_SUCCESS) return driver_error(d, "clGetEventProfilingInfo", error);
  }
  *nanoseconds = double(at[1]) - double(at[0]);
  return SKUA_STATUS_OK;
}

void event_destroy(skua_event* base) {
  auto* e = static_cast<ClEvent*>(base);
  ClDevice* d = of(e->device);
  d->cl->clReleaseEvent(e->event);
  d->cl->clReleaseCommandQueue(e->queue);
  release(d->ctx, e, sizeof *e);
}

}  // namespace
}  // namespace opencl

const Api opencl_api = {"OpenCL",
                        "opencl", 0, opencl::list, opencl::open, opencl::close, opencl::buffer_create,
                        opencl::buffer_import, opencl::buffer_destroy, opencl::buffer_write, opencl::buffer_read,
                        opencl::buffer_map, opencl::buffer_unmap, opencl::program, opencl::save, opencl::stream_create,
                        opencl::stream_destroy, opencl::record, opencl::submit, opencl::wait, opencl::event_record,
                        opencl::event_wait, opencl::event_nanoseconds, opencl::event_destroy};

}  // namespace skua::gpu
