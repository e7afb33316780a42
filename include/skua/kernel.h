/* The registry of kernels, readable: for tools, and for engines that want to know what runs. */
#ifndef SKUA_KERNEL_H_
#define SKUA_KERNEL_H_

#include <skua/context.h>
#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct skua_kernel_info {
  const char* name;    /* "gemm_f32_6x64_avx512": kind, types, tile, instruction set */
  const char* family;  /* "gemm", "depthwise", "unary", ... */
  const char* isa;     /* "avx512"; of kernels for GPUs "opencl" or "vulkan" */
  const char* why;     /* one sentence: why it exists, or its formula */
  uint32_t mr, nr, kr; /* rows and columns of the tile (docs/naming.md), depth where it is fixed; else 0 */
  skua_dtype type;     /* of the feature maps in memory; with float maps of quantised weights theirs */
  bool usable;         /* this CPU has the instruction set; this build has the backend */
  /* times it was chosen for a run since the start (relaxed counter); 0 if the library was built without
   * SKUA_COUNT_CALLS */
  uint64_t calls;
} skua_kernel_info;

SKUA_API size_t skua_kernel_count(void);
SKUA_API skua_status skua_kernel_at(size_t index, skua_kernel_info* info);

/* The instruction sets this build knows, lowest first, and whether the CPU has them. */
typedef struct skua_isa_info {
  const char* name;
  bool compiled; /* this build has kernels for it */
  bool detected; /* cpuinfo (or CPUID/HWCAP) AND the operating system say so, and no veto */
} skua_isa_info;
SKUA_API size_t skua_isa_count(void);
SKUA_API skua_status skua_isa_at(size_t index, skua_isa_info* info);

#ifdef __cplusplus
}
#endif
#endif
