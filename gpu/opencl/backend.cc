// OpenCL 1.2: one context and one queue for transfers per device, an in-order queue per stream, so that dispatches need no barriers.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gpu/cache.h"
#include "gpu/opencl/library.h"

namespace skua::gpu {

struct Program {
  Program* next;
  ProgramKey key;
  cl_program program;
  cl_kernel kernel;
  pthread_mutex_t setting;  // a kernel object holds its arguments from clSetKernelArg to the enqueue
};

namespace opencl {
namespace {

struct ClDevice : Device {
  const Functions* cl;
  cl_device_id id;
  cl_context context;
  cl_command_queue transfers;
  uint32_t flush_every;       // dispatches; 0 = when the caller submits
  pthread_mutex_t compiling;  // guards the list
  Program* programs;
};
struct ClBuffer : skua_device_buffer {
  cl_mem memory;
};
struct ClStream : skua_stream {
  cl_command_queue queue;
  uint32_t recorded;
};
struct ClEvent : skua_event {
  cl_event event;
  cl_command_queue queue;
};

ClDevice* of(Device* device) { return static_cast<ClDevice*>(device); }

template <class T> T* make(const Device* device) {
  void* memory = allocate(device->ctx, sizeof(T), alignof(T));
  return memory ? static_cast<T*>(memset(memory, 0, sizeof(T))) : nullptr;
}

// How many dispatches a queue may hold back. Mobile drivers that get hundreds at once stall or are reset; others do not care.
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
  for (Program* p = d->programs; p;) {
    Program* next = p->next;
    cl.clReleaseKernel(p->kernel);
    cl.clReleaseProgram(p->program);
    pthread_mutex_destroy(&p->setting);
    release(d->ctx, p, sizeof *p);
    p = next;
  }
  if (d->transfers) cl.clReleaseCommandQueue(d->transfers);
  if (d->context) cl.clReleaseContext(d->context);
  pthread_mutex_destroy(&d->compiling);
  release(d->ctx, d, sizeof *d);
}

skua_status open(const skua_context* ctx, uint32_t index, Device** out) {
  char why[256] = "";
  const Functions* cl = functions(why, sizeof why);
  if (!cl) return fail(SKUA_STATUS_NO_DEVICE, "context: no OpenCL driver: %s", why);
  Found found[kMostDevices];
  const size_t n = find_devices(*cl, found, why, sizeof why);
  if (!n) return fail(SKUA_STATUS_NO_DEVICE, "context: no OpenCL device: %s", why);
  if (index >= n) return fail(SKUA_STATUS_NO_DEVICE, "context: OpenCL device %u does not exist, there %s %zu", index, n == 1 ? "is" : "are", n);
  auto* d = static_cast<ClDevice*>(allocate(ctx, sizeof(ClDevice), alignof(ClDevice)));
  if (!d) return out_of_memory("context", sizeof(ClDevice));
  memset(static_cast<void*>(d), 0, sizeof *d);
  d->api = &opencl_api;
  d->ctx = ctx;
  d->about = found[index].about;
  d->cl = cl;
  d->id = found[index].id;
  d->flush_every = flush_interval(d->about);
  pthread_mutex_init(&d->compiling, nullptr);
  cl_int error;
  const char* call = "clCreateContext";
  d->context = cl->clCreateContext(nullptr, 1, &d->id, nullptr, nullptr, &error);
  if (error == CL_SUCCESS) {
    call = "clCreateCommandQueue";
    d->transfers = cl->clCreateCommandQueue(d->context, d->id, 0, &error);
  }
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

// ---- buffers -------------------------------------------------------------------------------------------------------------------
skua_status new_buffer(ClDevice* d, cl_mem memory, size_t size, skua_device_buffer** out) {
  auto* b = make<ClBuffer>(d);
  if (!b) return out_of_memory("device_buffer", sizeof *b);
  b->device = d;
  b->size = size;
  b->memory = memory;
  *out = b;
  return SKUA_STATUS_OK;
}

skua_status buffer_create(Device* base, size_t size, skua_device_buffer** out) {
  ClDevice* d = of(base);
  cl_int error;
  const cl_mem memory = d->cl->clCreateBuffer(d->context, CL_MEM_READ_WRITE, size, nullptr, &error);
  if (error != CL_SUCCESS) return driver_error(d, "clCreateBuffer", error);
  const skua_status status = new_buffer(d, memory, size, out);
  if (status != SKUA_STATUS_OK) d->cl->clReleaseMemObject(memory);
  return status;
}

void buffer_destroy(skua_device_buffer* base) {
  auto* b = static_cast<ClBuffer*>(base);
  of(b->device)->cl->clReleaseMemObject(b->memory);
  release(b->device->ctx, b, sizeof *b);
}

skua_status buffer_write(skua_device_buffer* base, size_t offset, const void* data, size_t size) {
  auto* b = static_cast<ClBuffer*>(base);
  ClDevice* d = of(b->device);
  const cl_int error = d->cl->clEnqueueWriteBuffer(d->transfers, b->memory, CL_TRUE, offset, size, data, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clEnqueueWriteBuffer", error);
}

skua_status buffer_read(const skua_device_buffer* base, size_t offset, void* data, size_t size) {
  auto* b = static_cast<const ClBuffer*>(base);
  ClDevice* d = of(b->device);
  const cl_int error = d->cl->clEnqueueReadBuffer(d->transfers, b->memory, CL_TRUE, offset, size, data, 0, nullptr, nullptr);
  return error == CL_SUCCESS ? SKUA_STATUS_OK : driver_error(d, "clEnqueueReadBuffer", error);
}

// ---- programs ------------------------------------------------------------------------------------------------------------------
bool same(const ProgramKey& a, const ProgramKey& b) {
  return a.text == b.text && !memcmp(a.local, b.local, sizeof a.local) && !memcmp(a.constants, b.constants, sizeof a.constants);
}

skua_status build_failure(ClDevice* d, const ProgramKey& key, cl_program program, cl_int error) {
  char log[4096] = "";
  if (d->cl->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, nullptr) != CL_SUCCESS) log[0] = 0;
  if (d->ctx->log && log[0]) d->ctx->log(d->ctx->log_ctx, SKUA_LOG_WARNING, log);
  const char* line = strstr(log, "error");
  line = line ? line : log;
  return fail(SKUA_STATUS_DRIVER_ERROR, "OpenCL: the driver does not compile %s: %s (%d): %.*s", key.text->name, error_name(error), int(error), int(strcspn(line, "\n")), line);
}

// A program of the cache that the driver takes: with its kernel in p.
bool from_cache(ClDevice* d, CacheKey key, const char* options, Program* p) {
  const Functions& cl = *d->cl;
  size_t size;
  const auto* bytes = static_cast<const unsigned char*>(cache_find(d->cache, key, &size));
  if (!bytes) return false;
  cl_int loaded = CL_SUCCESS, error;
  const cl_program program = cl.clCreateProgramWithBinary(d->context, 1, &d->id, &size, &bytes, &loaded, &error);
  if (error == CL_SUCCESS && loaded != CL_SUCCESS) error = loaded;
  if (error == CL_SUCCESS) error = cl.clBuildProgram(program, 1, &d->id, options, nullptr, nullptr);
  if (error == CL_SUCCESS) error = cl.clCreateKernelsInProgram(program, 1, &p->kernel, nullptr);
  if (error == CL_SUCCESS) {
    p->program = program;
    return true;
  }
  if (program) cl.clReleaseProgram(program);
  cache_drop(d->cache, key, error_name(error));
  return false;
}

void to_cache(ClDevice* d, CacheKey key, cl_program program) {
  const Functions& cl = *d->cl;
  size_t size = 0;
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || !size) return;
  auto* bytes = static_cast<unsigned char*>(allocate(d->ctx, size, 16));
  if (bytes && cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) == CL_SUCCESS) cache_put(d->cache, key, bytes, size);
  release(d->ctx, bytes, size);
}

skua_status compile(ClDevice* d, const ProgramKey& key, Program* p) {
  const Functions& cl = *d->cl;
  char options[512];
  int n = snprintf(options, sizeof options, "-cl-std=CL1.2 %s -DL0=%d -DL1=%d -DL2=%d", key.text->options, key.local[0], key.local[1], key.local[2]);
  for (uint32_t i = 0; i < kMaxConstants; ++i) n += snprintf(options + n, sizeof options - size_t(n), " -DC%u=%d", i, int(key.constants[i]));
  cl_int error;
  const CacheKey cached = d->cache ? cache_key(key, false) : CacheKey{};
  if (from_cache(d, cached, options, p)) return SKUA_STATUS_OK;
  p->program = cl.clCreateProgramWithSource(d->context, 1, const_cast<const char**>(&key.text->source), nullptr, &error);
  if (error != CL_SUCCESS) return driver_error(d, "clCreateProgramWithSource", error);
  error = cl.clBuildProgram(p->program, 1, &d->id, options, nullptr, nullptr);
  skua_status status = error == CL_SUCCESS ? SKUA_STATUS_OK : build_failure(d, key, p->program, error);
  if (status == SKUA_STATUS_OK) {
    error = cl.clCreateKernelsInProgram(p->program, 1, &p->kernel, nullptr);
    if (error != CL_SUCCESS) status = driver_error(d, "clCreateKernelsInProgram", error);
  }
  size_t most = 0;
  if (status == SKUA_STATUS_OK && cl.clGetKernelWorkGroupInfo(p->kernel, d->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr) == CL_SUCCESS) {
    const size_t wanted = size_t(key.local[0]) * key.local[1] * key.local[2];
    if (wanted > most) {
      status = SKUA_UNSUPPORTED_("OpenCL: %s wants work-groups of %zu threads, this device allows it %zu", key.text->name, wanted, most);
      cl.clReleaseKernel(p->kernel);
    }
  }
  if (status != SKUA_STATUS_OK) cl.clReleaseProgram(p->program);
  else if (d->cache) to_cache(d, cached, p->program);
  return status;
}

// The binaries of the programs that were compiled here go to the cache as they are made.
skua_status save(Device* base) { return cache_write(base->cache); }

skua_status program(Device* base, const ProgramKey& key, const Program** out) {
  ClDevice* d = of(base);
  pthread_mutex_lock(&d->compiling);
  Program* p = d->programs;
  while (p && !same(p->key, key)) p = p->next;
  skua_status status = SKUA_STATUS_OK;
  if (!p) {
    p = make<Program>(d);
    if (!p) {
      status = out_of_memory("program", sizeof *p);
    } else if ((status = compile(d, key, p)) != SKUA_STATUS_OK) {
      release(d->ctx, p, sizeof *p);
    } else {
      pthread_mutex_init(&p->setting, nullptr);
      p->key = key;
      p->next = d->programs;
      d->programs = p;
    }
  }
  pthread_mutex_unlock(&d->compiling);
  if (status == SKUA_STATUS_OK) *out = p;
  return status;
}

// ---- streams -------------------------------------------------------------------------------------------------------------------
skua_status stream_create(Device* base, skua_stream** out) {
  ClDevice* d = of(base);
  auto* s = make<ClStream>(d);
  if (!s) return out_of_memory("stream", sizeof *s);
  s->device = d;
  cl_int error;
  s->queue = d->cl->clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &error);
  if (error != CL_SUCCESS) {
    release(d->ctx, s, sizeof *s);
    return driver_error(d, "clCreateCommandQueue", error);
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
  for (uint32_t i = 0; i < x.n_bindings && error == CL_SUCCESS; ++i)
    error = cl.clSetKernelArg(p->kernel, i, sizeof(cl_mem), &static_cast<const ClBuffer*>(x.bindings[i].buffer)->memory);
  if (error == CL_SUCCESS && x.n_arguments) error = cl.clSetKernelArg(p->kernel, x.n_bindings, 4 * size_t(x.n_arguments), x.arguments);
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

// ---- events --------------------------------------------------------------------------------------------------------------------
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

const Api opencl_api = {"OpenCL", "opencl", 0, opencl::list, opencl::open, opencl::close, opencl::buffer_create, opencl::buffer_destroy, opencl::buffer_write,
                        opencl::buffer_read, opencl::program, opencl::save, opencl::stream_create, opencl::stream_destroy, opencl::record, opencl::submit, opencl::wait, opencl::event_record,
                        opencl::event_wait, opencl::event_nanoseconds, opencl::event_destroy};

}  // namespace skua::gpu
