/* Devices: the CPU, and GPUs through OpenCL and Vulkan. Driver libraries are opened at run time; none is linked. */
#ifndef SKUA_DEVICE_H_
#define SKUA_DEVICE_H_

#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_device_api {
  SKUA_DEVICE_API_CPU = 0,
  SKUA_DEVICE_API_OPENCL = 1,
  SKUA_DEVICE_API_VULKAN = 2
} skua_device_api;

/* Which device a context uses. A zeroed struct is the CPU. */
typedef struct skua_device {
  skua_device_api api;
  uint32_t index; /* among the devices of that api, as listed by skua_device_list() */
} skua_device;

#define SKUA_DEVICE_CPU {SKUA_DEVICE_API_CPU, 0}

typedef struct skua_device_info {
  skua_device device;
  char name[96];
  char vendor[48];
  char driver[96];
  /* CPU: instruction sets found, those vetoed in brackets. GPU: f16_storage (tensors of f16 and bf16), f16 (arithmetic
   * in f16 too), integer_dot (products of four bytes), subgroups (sums over them). */
  char features[256];
  uint32_t compute_units;      /* cores; 0 = not known */
  uint64_t memory_bytes;       /* of the device; 0 = not known */
  size_t cache_bytes[3];       /* L1 data, L2, L3; 0 = none or not known */
  bool is_software;            /* a GPU api on a CPU (PoCL, lavapipe). The library never chooses a device */
  /* Arithmetic in f16, in bf16, and products of four bytes summed in 32 bits, by instructions. Tensors of these types
   * need none of it: create says what is not supported. */
  bool has_f16, has_bf16, has_int8_dot;
  /* Limits of a GPU; 0 on a CPU, which has none. */
  uint64_t max_tensor_bytes;   /* from a tensor's first element to its last */
  uint32_t offset_alignment;   /* bytes: offsets of skua_device_buffer_import() are multiples of it */
  uint32_t work_group_threads; /* of the largest work-group */
  uint32_t local_memory_bytes; /* that its threads share */
} skua_device_info;

/* Fills up to `capacity` entries and returns how many devices there are. Entry 0 is the CPU. A driver that is missing,
 * old or broken is left out, never an error; skua_context_create() for index 0 of an api that has none says what is
 * missing. list may be NULL when capacity is 0. */
SKUA_API size_t skua_device_list(skua_device_info* list, size_t capacity);

/* Objects of a driver that the caller made, for a context over them (skua_context_options.opencl or .vulkan): engine
 * and library then share buffers and a queue. Handles are pointers and numbers, so that no header of a driver is needed
 * here. They stay the caller's, and must live as long as the context. */
typedef struct skua_opencl_objects {
  void* context; /* cl_context */
  void* device;  /* cl_device_id, one of the context's, of version 1.2 or later */
  /* cl_command_queue of the two, in order: streams put their work behind what it holds. NULL = a queue for each stream,
   * and the caller waits for its own work, and for streams */
  void* queue;
} skua_opencl_objects;

typedef struct skua_vulkan_objects {
  /* PFN_vkGetInstanceProcAddr; NULL = of the library that the search finds (docs/gpu.md) */
  void* get_instance_proc_addr;
  void* instance;        /* VkInstance, made for version 1.1 or later */
  void* physical_device; /* VkPhysicalDevice, of version 1.1 or later */
  void* device;          /* VkDevice */
  /* VkQueue of `queue_family`, which must compute. Streams submit to it, behind what it holds; each submit is ordered,
   * with barriers, to what is before and behind it */
  void* queue;
  uint32_t queue_family;
  /* What the VkDevice was created with. What is not said is not used. */
  bool storage_16bit;    /* feature storageBuffer16BitAccess: without it there is no f16 */
  bool float_controls;   /* extension VK_KHR_shader_float_controls: without it kernels round to f16 themselves */
  bool float16;          /* feature shaderFloat16 */
  bool integer_dot;      /* features storageBuffer8BitAccess, shaderInt8 and shaderIntegerDotProduct */
  /* Called around every use of the queue; NULL when nobody else uses it while the library may. Two contexts over one
   * queue on two threads need them too. */
  void (*lock_queue)(void* lock_ctx);
  void (*unlock_queue)(void* lock_ctx);
  void* lock_ctx;
} skua_vulkan_objects;

/* Device memory. Thread-safe per context. read and write have copied when they return, and do not wait for streams:
 * wait first. On a CPU context these return SKUA_STATUS_UNSUPPORTED: CPU operators take host pointers. */
SKUA_API skua_status skua_device_buffer_create(skua_context* context, size_t size, skua_device_buffer** out);
/* `size` bytes from `offset` of a buffer that the caller made, on a context over the caller's objects: (uintptr_t) of
 * its cl_mem, or its VkBuffer, which needs the usages STORAGE_BUFFER and, to be read or written by the two calls below,
 * TRANSFER_SRC and TRANSFER_DST. offset is a multiple of what the device wants of bindings. The handle stays the
 * caller's: it must not be destroyed before the device buffer is, and streams are done with it. What is of another
 * cl_context, smaller, or no buffer is refused where the driver can tell: Vulkan cannot tell another device's, and of
 * the size only what the memory requirements say. Imports may overlap; an operator's output and its inputs may not, but
 * in place in one device buffer. */
SKUA_API skua_status skua_device_buffer_import(skua_context* context, uint64_t native_handle, size_t offset,
                                               size_t size, skua_device_buffer** out);
SKUA_API skua_status skua_device_buffer_write(skua_device_buffer* buffer, size_t offset, const void* data, size_t size);
SKUA_API skua_status skua_device_buffer_read(const skua_device_buffer* buffer, size_t offset, void* data, size_t size);
/* The memory itself, from `offset` on, for the host to read and write until it is unmapped: wait for the streams that
 * use it before, and give it to none before unmap. One part of a buffer at a time; destroying the buffer unmaps it.
 * UNSUPPORTED where the host does not see it (most GPUs with memory of their own, on Vulkan) and of an imported
 * VkBuffer, whose memory is the caller's to map: there read and write serve. A cl_mem made with CL_MEM_HOST_NO_ACCESS
 * cannot be mapped, read or written: DRIVER_ERROR, CL_INVALID_OPERATION. */
SKUA_API skua_status skua_device_buffer_map(skua_device_buffer* buffer, size_t offset, size_t size, void** data);
SKUA_API skua_status skua_device_buffer_unmap(skua_device_buffer* buffer, void* data);
SKUA_API void skua_device_buffer_destroy(skua_device_buffer* buffer); /* NULL is ignored */

#ifdef __cplusplus
}
#endif
#endif
