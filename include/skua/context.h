/* A context: a device, an allocator, and the choice of kernels. Cheap (one allocation), any number of them. Nothing in
 * it changes after create but what skua_op_tune() adds, so any number of threads may create, plan, run and tune with
 * one at once (the allocator must then be thread-safe). */
#ifndef SKUA_CONTEXT_H_
#define SKUA_CONTEXT_H_

#include <skua/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* alloc returns `size` bytes (> 0) at a multiple of `align` (a power of two, up to 2 MiB for large weights), or NULL.
 * Called only inside create, plan, tune and the one-call functions, never inside run. Must be thread-safe if the
 * context is shared. */
typedef struct skua_allocator {
  void* ctx;
  void* (*alloc)(void* ctx, size_t size, size_t align);
  void (*free)(void* ctx, void* memory, size_t size);
} skua_allocator;

typedef enum skua_log_level { SKUA_LOG_INFO = 0, SKUA_LOG_WARNING = 1 } skua_log_level;
typedef void (*skua_log_fn)(void* ctx, skua_log_level level, const char* text);

typedef struct skua_context_options {
  size_t struct_size;       /* sizeof(skua_context_options), set by SKUA_CONTEXT_OPTIONS_INIT */
  skua_allocator allocator; /* zero = malloc and free */
  skua_device device;       /* zero = the CPU */
  /* "avx2": nothing above it is used; NULL = environment SKUA_MAX_ISA, then no cap. An unknown name is refused,
   * with the list of names; of one that the build lacks, what is below it is used. "scalar" = portable C++ only.
   * Nothing on a GPU */
  const char* max_isa;
  /* glob (* and ?, at most 63 characters) that kernel names must match where several could serve, e.g. "*_6x16_*";
   * NULL = environment SKUA_KERNEL, then no filter. Ignored for kinds where nothing matches */
  const char* kernel_filter;
  /* file of measured choices: read now, written by skua_op_tune(); NULL = none. A file of another machine or version,
   * or a damaged line, is ignored, never an error; the log says what and why. One file serves the CPU and GPUs */
  const char* tuning_cache;
  /* NULL = silent: the library itself never prints. Called by create, op_tune, save_programs, destroy, and on GPUs by
   * plans and the driver */
  skua_log_fn log;
  void* log_ctx;
  /* GPU: file of programs as the driver compiled them: read now, written by skua_context_save_programs() and when the
   * context is destroyed; NULL = none. One of another device, driver or version of the library, or a damaged one, is
   * ignored, never an error; the log says why */
  const char* program_cache;
  /* a context over the caller's cl_context: device.api is OPENCL, device.index is not looked at. NULL = the library
   * opens the device. Read by create only */
  const skua_opencl_objects* opencl;
  /* the same with a VkDevice */
  const skua_vulkan_objects* vulkan;
} skua_context_options;

/* An initializer: `skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;`. The descriptors' INIT macros are function
 * calls: assignable, not for static storage. */
#define SKUA_CONTEXT_OPTIONS_INIT \
  {sizeof(skua_context_options), {NULL, NULL, NULL}, SKUA_DEVICE_CPU, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* options may be NULL. The strings are copied. */
SKUA_API skua_status skua_context_create(const skua_context_options* options, skua_context** out);

/* Destroy ops and plans first. NULL is ignored. */
SKUA_API void skua_context_destroy(skua_context* context);

/* Writes what plans have compiled since the program cache was read, if anything, together with what others wrote to the
 * file meanwhile: a temporary file, renamed. Plans compile, so making the plans of a network and saving is all there is
 * to warming up. Nothing to do without a program cache; UNSUPPORTED on the CPU. */
SKUA_API skua_status skua_context_save_programs(skua_context* context);

/* Device of the context, as skua_device_list() describes it. */
SKUA_API skua_status skua_context_device(const skua_context* context, skua_device_info* info);

/* The highest instruction set this context uses for f32, e.g. "avx512"; kernels for half types may use one that adds
 * arithmetic in them (kernel.h). On a GPU "opencl" or "vulkan". Static storage. */
SKUA_API const char* skua_context_isa(const skua_context* context);

#ifdef __cplusplus
}
#endif
#endif
