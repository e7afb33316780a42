// The registry of all kernels, for tools and tests (skua/kernel.h). A program that does not ask links only the families
// of its operators.
#include <skua/kernel.h>
#include "core/context.h"
#include "core/families.h"
#ifdef SKUA_BUILT_gpu
#include "gpu/kernel_texts.h"
#endif

using namespace skua;

namespace {
const Family families[] = {
#define SKUA_FAMILY(name) name##_tables,
#include "skua_families.inc"
#undef SKUA_FAMILY
};

#ifdef SKUA_BUILT_gpu
// The kernels of GPUs, which stand behind those of the CPU: each text once for every backend, but those without a
// source, which this build has not.
constexpr skua_device_api gpu_apis[] = {SKUA_DEVICE_API_OPENCL, SKUA_DEVICE_API_VULKAN};

size_t gpu_kernel_count() {
  size_t n = 0;
  for (const skua_device_api id : gpu_apis)
    for (auto* t = gpu::kernel_texts; gpu::api_of(id) && *t; ++t)
      for (size_t i = 0; i < (*t)->count; ++i) n += (*t)->texts[i].source != nullptr;
  return n;
}

bool gpu_kernel_at(size_t index, skua_kernel_info* info) {
  for (const skua_device_api id : gpu_apis) {
    const gpu::Api* const api = gpu::api_of(id);
    for (auto* t = gpu::kernel_texts; api && *t; ++t)
      for (size_t i = 0; i < (*t)->count; ++i) {
        const gpu::KernelText& k = (*t)->texts[i];
        if (!k.source || index--) continue;
        *info = {k.names[api->number], k.family, api->isa, k.why, 0, 0, 0, k.type, true, 0};
#ifdef SKUA_COUNT_CALLS
        info->calls = __atomic_load_n(&k.calls[api->number], __ATOMIC_RELAXED);
#endif
        return true;
      }
  }
  return false;
}
#else
size_t gpu_kernel_count() { return 0; }
bool gpu_kernel_at(size_t, skua_kernel_info*) { return false; }
#endif

size_t cpu_kernel_count() {
  size_t n = 0;
  for (Family f : families)
    for (Family t = f; *t; ++t) n += (*t)->count;
  return n;
}
}  // namespace

extern "C" {

size_t skua_kernel_count(void) { return cpu_kernel_count() + gpu_kernel_count(); }

skua_status skua_kernel_at(size_t index, skua_kernel_info* info) {
  if (!info) return SKUA_INVALID("kernel_at: info is NULL");
  size_t n = 0;
  for (Family f : families)
    for (Family t = f; *t; n += (*t++)->count)
      if (index - n < (*t)->count) {
        const Kernel& k = (*t)->kernels[index - n];
        *info = {k.name, k.family, kIsas[int(k.isa)].name, k.why, k.mr, k.nr, 0, skua_dtype(k.element),
                 (cpu().detected & isa_bit(k.isa)) != 0 &&
                     (k.tuned_for == Core::any || k.tuned_for == cpu().kinds.all),
                 0};
#ifdef SKUA_COUNT_CALLS
        info->calls = __atomic_load_n(&k.calls, __ATOMIC_RELAXED);
#endif
        return SKUA_STATUS_OK;
      }
  if (gpu_kernel_at(index - n, info)) return SKUA_STATUS_OK;
  return SKUA_INVALID("kernel_at: index is %zu, there are %zu", index, skua_kernel_count());
}

}  // extern "C"
