// The registry of all kernels, for tools and tests (skua/kernel.h). A program that does not ask links only the families of its operators.
#include <skua/kernel.h>
#include "core/context.h"
#include "core/families.h"

using namespace skua;

namespace {
const Family families[] = {
#define SKUA_FAMILY(name) name##_tables,
#include "skua_families.inc"
#undef SKUA_FAMILY
};
}  // namespace

extern "C" {

size_t skua_kernel_count(void) {
  size_t n = 0;
  for (Family f : families)
    for (Family t = f; *t; ++t) n += (*t)->count;
  return n;
}

skua_status skua_kernel_at(size_t index, skua_kernel_info* info) {
  if (!info) return SKUA_INVALID("kernel_at: info is NULL");
  size_t n = 0;
  for (Family f : families)
    for (Family t = f; *t; n += (*t++)->count)
      if (index - n < (*t)->count) {
        const Kernel& k = (*t)->kernels[index - n];
        *info = {k.name, k.family, kIsas[int(k.isa)].name, k.why, k.mr, k.nr, 0, skua_dtype(k.element), (cpu().detected & isa_bit(k.isa)) != 0 && (k.tuned_for == Core::any || k.tuned_for == cpu().core), 0};
#ifdef SKUA_COUNT_CALLS
        info->calls = __atomic_load_n(&k.calls, __ATOMIC_RELAXED);
#endif
        return SKUA_STATUS_OK;
      }
  return SKUA_INVALID("kernel_at: index is %zu, there are %zu", index, n);
}

}  // extern "C"
