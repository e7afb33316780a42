// What the files of the OpenCL backend share: one context and one queue for transfers per device, an in-order queue per
// stream, so that dispatches need no barriers.
#pragma once
#include <pthread.h>
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
  // The buffers among them that it still has: setting the same again costs as much. None once a buffer was destroyed,
  // whose handle may come back as another's.
  cl_mem bound[kMaxBindings];
  uint64_t bound_at;  // ClDevice::destroyed
};

namespace opencl {

struct ClDevice : Device {
  const Functions* cl;
  cl_device_id id;
  cl_context context;
  cl_command_queue transfers;
  bool shared;             // the context is the caller's
  cl_command_queue queue;  // the caller's, for everything; NULL = each stream has one, and transfers have another
  uint32_t flush_every;       // dispatches; 0 = when the caller submits
  uint64_t destroyed;         // atomic: buffers
  pthread_mutex_t compiling;  // guards the list
  Program* programs;
};
struct alignas(64) ClBuffer : skua_device_buffer {  // one cache line
  cl_mem memory, image;  // image: its texels
};
struct ClStream : skua_stream {
  cl_command_queue queue;
  uint32_t recorded;
};
struct ClEvent : skua_event {
  cl_event event;
  cl_command_queue queue;
};

inline ClDevice* of(Device* device) { return static_cast<ClDevice*>(device); }

template <class T> T* make(const Device* device) {
  void* memory = allocate(device->ctx, sizeof(T), alignof(T));
  return memory ? static_cast<T*>(memset(memory, 0, sizeof(T))) : nullptr;
}

// program.cc
skua_status program(Device* device, const ProgramKey& key, const Program** out);
void destroy_programs(ClDevice* d);

}  // namespace opencl
}  // namespace skua::gpu
