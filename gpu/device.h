// The small host interface that both GPU backends implement; operators know nothing else of OpenCL or Vulkan.
//
//   operator (gpu/<operator>.cc)  ->  Program (a kernel text with its constants)
//                                     +  Dispatch (bindings, arguments, groups)  ->  Stream
//
// Every function returns a status with a text; none aborts. A backend that meets a lost device sets Device::lost, and
// every later call of that context answers SKUA_STATUS_DEVICE_LOST.
#pragma once
#include <skua/device.h>
#include <skua/stream.h>
#include "core/context.h"

namespace skua::gpu {

enum class Vendor : uint8_t { unknown, adreno, mali, powervr, apple, nvidia, intel, amd, software };

// By what the driver calls the device and its maker.
Vendor vendor_named(const char* name, const char* vendor);

// All that a choice of kernel, tile or work-group depends on. Plain data: tests hold recorded descriptions of devices
// that are not at hand (gpu/choice.h).
struct Description {
  skua_device_info info;
  Vendor vendor;
  uint32_t group_threads, group_extent[3];  // largest work-group
  uint32_t group_count[3];                  // largest number of work-groups
  uint32_t local_bytes;                     // shared by a work-group
  uint32_t subgroup;                        // threads that run in step; 0 = not known
  bool subgroup_sums;                       // with instructions that add up, or compare, what each has
  uint64_t buffer_bytes, binding_bytes;     // largest buffer; largest range that a kernel sees of one
  uint64_t texels;                          // of a buffer that is read through the texture path, at most; 0 = none is
  uint32_t offset_alignment;                // of a binding, bytes
  bool f16_storage, f16_arithmetic, integer_dot, unified_memory;
  // the driver can be told to round f32 to f16 to nearest even (else kernels do), and to keep its smallest values
  bool f16_rounding, f16_preserve;
  bool f32_nan, f16_nan;                    // and not to assume that there are no NaN, infinities or negative zeros
  uint8_t opencl;                           // major version; 0: Vulkan
  double tick_nanoseconds;                  // of a timestamp; 0 = none
};

// The limits that callers are told, once all of these are known.
inline void tell_limits(Description& d) {
  d.info.max_tensor_bytes = d.buffer_bytes < d.binding_bytes ? d.buffer_bytes : d.binding_bytes;
  d.info.offset_alignment = d.offset_alignment;
  d.info.work_group_threads = d.group_threads;
  d.info.local_memory_bytes = d.local_bytes;
}

constexpr uint32_t kMaxConstants = 8, kMaxBindings = 8, kMaxArguments = 29;

// One kernel: a body of gpu/kernels/ in one storage type with one set of macros. Generated from gpu/CMakeLists.txt's
// list.
struct KernelText {
  const char* name;       // "unary_f16_v4"; in the registry "unary_f16_v4_opencl" and "unary_f16_v4_vulkan"
  const char* names[2];   // these
  const char* family;     // "unary": the body
  const char* why;        // one sentence
  skua_dtype type;        // of the feature maps in memory
  const char* source;     // OpenCL C: the body, which follows kernel_prelude
  const char* options;    // "-DSTORE16=1 -DV=4"
  const uint32_t* spirv;  // packed (embed_spirv.cmake). NULL: this build has no Vulkan backend
  size_t spirv_bytes;     // of the packed
  mutable uint64_t calls[2];  // recorded on OpenCL and Vulkan (SKUA_COUNT_CALLS)
  bool has_texels = false;    // its SPIR-V has the binding of texels
  bool by_texels = false;     // and reads it: the binding that a Dispatch says
};
extern const char kernel_prelude[];  // OpenCL C that stands before every source
// All kernels of one body: `extern const KernelTexts unary_texts;`. A program links those of its operators only.
struct KernelTexts {
  const KernelText* texts;
  size_t count;
};
// The kernel of that name; NULL if there is none.
const KernelText* find_text(const KernelTexts& texts, const char* name);

// A text with everything that a driver compiles into it.
struct ProgramKey {
  const KernelText* text;
  uint16_t local[3];                 // work-group
  int32_t constants[kMaxConstants];  // C0 .. C7 of the text: specialisation constants, -D
};

struct Api;
struct Program;  // the backend's own; lives as long as its device

// What both backends' devices begin with.
struct Device {
  const Api* api;
  const skua_context* ctx;  // whose allocator is used
  Description about;
  bool lost;                // atomic
  uint32_t program_count;   // programs made, for whoever counts them
  struct ProgramCache* cache;  // NULL = none (cache.h)
};

struct Binding {
  const skua_device_buffer* buffer;
  size_t offset, bytes;  // the range that the kernel touches: decides about barriers
  bool written;
  // The kernel finds the range by its argument of this number, in units of so many bytes from the start of the buffer
  // (unit 0: it has no such argument, and its range is the buffer). No bytes: the kernel has the binding and does not
  // use it.
  // A backend may bind a window that holds the range instead of the buffer, and lower the argument: what ends beyond
  // the largest binding is reached that way.
  uint8_t argument = 0, unit = 0;
  bool texels = false;  // the kernel reads the buffer by its texels; one binding of a dispatch at most
};

// What a buffer also holds for kernels that read it through the texture path: vectors of four of a type, widened to
// f32.
enum class Texels : uint8_t { none, f32, f16 };

struct Dispatch {
  const Program* program;
  Binding bindings[kMaxBindings];
  uint32_t n_bindings;
  int32_t arguments[kMaxArguments + 3];  // the kernel's ARGS, in order, and its first work-group (launch.h's start())
  uint32_t n_arguments;
  uint32_t groups[3];
};

// A backend. Everything but record() and what follows it may be called by several threads at once.
struct Api {
  const char* name;  // "OpenCL"
  const char* isa;   // "opencl": in the registry
  int number;        // of KernelText::names and calls: 0 OpenCL, 1 Vulkan
  // Devices of this api, software ones last; why: what is missing when there is none ("libvulkan.so.1 cannot be
  // opened").
  size_t (*list)(Description* list, size_t capacity, char* why, size_t why_size);
  // options.device.index, or the caller's objects
  skua_status (*open)(const skua_context* ctx, const skua_context_options& options, Device** out);
  void (*close)(Device* device);

  // without texels where the driver makes none
  skua_status (*buffer_create)(Device* device, size_t size, Texels texels, skua_device_buffer** out);
  skua_status (*buffer_import)(Device* device, uint64_t handle, size_t offset, size_t size, skua_device_buffer** out);
  void (*buffer_destroy)(skua_device_buffer* buffer);  // streams keep what they recorded until they are done with it
  // done when it returns
  skua_status (*buffer_write)(skua_device_buffer* buffer, size_t offset, const void* data, size_t size);
  skua_status (*buffer_read)(const skua_device_buffer* buffer, size_t offset, void* data, size_t size);
  skua_status (*buffer_map)(skua_device_buffer* buffer, size_t offset, size_t size, void** data);  // one part at a time
  skua_status (*buffer_unmap)(skua_device_buffer* buffer, void* data);
  // Compiles, or finds what was compiled before.
  skua_status (*program)(Device* device, const ProgramKey& key, const Program** out);
  skua_status (*save)(Device* device);  // what was compiled, to the context's program cache

  skua_status (*stream_create)(Device* device, skua_stream** out);
  void (*stream_destroy)(skua_stream* stream);  // waits
  skua_status (*record)(skua_stream* stream, const Dispatch& dispatch);
  skua_status (*submit)(skua_stream* stream);
  skua_status (*wait)(skua_stream* stream);
  skua_status (*event_record)(skua_stream* stream, skua_event** out);
  skua_status (*event_wait)(skua_stream* stream, skua_event* event);
  skua_status (*event_nanoseconds)(const skua_event* begin, const skua_event* end, double* nanoseconds);
  void (*event_destroy)(skua_event* event);
};

extern const Api opencl_api, vulkan_api;
// NULL when the build leaves it out.
const Api* api_of(skua_device_api api);

}  // namespace skua::gpu

// What the backends' buffers, streams and events begin with.
struct skua_device_buffer {
  skua::gpu::Device* device;
  size_t size;
  // Of an imported one: the driver's object that it is a part of, and where. Two may be parts of one.
  uint64_t whole;
  size_t begin;
  skua::gpu::Texels texels;
  // atomic: what the caller has of it; NULL: not mapped; the buffer itself: about to be, or not any more
  void* mapped_at;
};
struct skua_stream {
  skua::gpu::Device* device;
};
struct skua_event {
  skua::gpu::Device* device;
};
