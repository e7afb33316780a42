/* Devices: the CPU, and GPUs through OpenCL and Vulkan. Driver libraries are opened at run time; none is linked. */
#ifndef SKUA_DEVICE_H_
#define SKUA_DEVICE_H_

#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_device_api { SKUA_DEVICE_API_CPU = 0, SKUA_DEVICE_API_OPENCL = 1, SKUA_DEVICE_API_VULKAN = 2 } skua_device_api;

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
  char features[256];      /* CPU: instruction sets found, those vetoed in brackets; GPU: f16, integer dot, subgroups   */
  uint32_t compute_units;  /* cores; 0 = not known                                                                                     */
  uint64_t memory_bytes;   /* of the device; 0 = not known                                                              */
  size_t cache_bytes[3];   /* L1 data, L2, L3; 0 = none or not known                                                    */
  bool is_software;        /* a GPU api on a CPU (PoCL, lavapipe). The library never chooses a device                     */
  bool has_f16, has_bf16, has_int8_dot;
} skua_device_info;

/* Fills up to `capacity` entries and returns how many devices there are. Entry 0 is the CPU. A driver that is missing, old or
 * broken is left out, never an error. list may be NULL when capacity is 0. */
SKUA_API size_t skua_device_list(skua_device_info* list, size_t capacity);

/* Device memory. Thread-safe per context. read and write have copied when they return, and do not wait for streams: wait first. On a CPU context these return SKUA_STATUS_UNSUPPORTED: CPU operators take host pointers. */
SKUA_API skua_status skua_device_buffer_create(skua_context* context, size_t size, skua_device_buffer** out);
/* Of a cl_mem or a VkBuffer that the caller made. UNSUPPORTED for now: such memory belongs to the cl_context or VkDevice it was made in, and a context makes its own. */
SKUA_API skua_status skua_device_buffer_import(skua_context* context, void* native_handle, size_t size, skua_device_buffer** out);
SKUA_API skua_status skua_device_buffer_write(skua_device_buffer* buffer, size_t offset, const void* data, size_t size);
SKUA_API skua_status skua_device_buffer_read(const skua_device_buffer* buffer, size_t offset, void* data, size_t size);
SKUA_API void skua_device_buffer_destroy(skua_device_buffer* buffer); /* NULL is ignored */

#ifdef __cplusplus
}
#endif
#endif
