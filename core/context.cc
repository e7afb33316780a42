#include "core/context.h"
#include "core/tuning.h"

#include <skua/kernel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace skua {
namespace {

void* default_alloc(void*, size_t size, size_t align) {
  void* p = nullptr;
  if (posix_memalign(&p, align < sizeof(void*) ? sizeof(void*) : align, size) != 0) return nullptr;
#if defined(__linux__)
  // Weights that stream from memory through every run: with large pages they arrive a tenth faster. Where the system
  // declines, nothing is lost.
  if (constexpr size_t page = size_t(2) << 20; align >= page) madvise(p, size / page * page, MADV_HUGEPAGE);
#endif
  return p;
}
void default_free(void*, void* memory, size_t) { free(memory); }

constexpr IsaMask kCompiled = 0
#define SKUA_COMPILED_ISA(name) | isa_bit(Isa::name)
#include "skua_compiled_isas.inc"
#undef SKUA_COMPILED_ISA
    ;

// Instruction sets up to `cap`; false if the name is not one of this architecture's.
bool capped(const char* cap, IsaMask& mask) {
  mask = 0;
  for (int i = 0; i < kIsaCount; ++i) {
    if (!isa_exists_here(Isa(i))) continue;
    mask |= isa_bit(Isa(i));
    if (!strcmp(cap, kIsas[i].name)) return true;
  }
  return false;
}

skua_status unknown_isa(const char* where, const char* name) {
  char list[160] = "";
  for (int i = 0; i < kIsaCount; ++i)
    if (isa_exists_here(Isa(i))) {
      if (list[0]) strncat(list, ", ", sizeof list - strlen(list) - 1);
      strncat(list, kIsas[i].name, sizeof list - strlen(list) - 1);
    }
  return SKUA_INVALID("context: %s \"%.40s\" is no instruction set of this architecture; known: %s", where, name, list);
}

skua_status unknown_core(const char* name) {
  char list[240];
  list_cores(list, sizeof list);
  list_chips(list + strlen(list), sizeof list - strlen(list));
  return SKUA_INVALID("context: environment SKUA_CORE \"%.40s\" is no core that kernels are written for; known: %s",
                      name, list);
}

// The backend of a GPU api; NULL when the build has none.
const gpu::Api* backend(skua_device_api api) {
#ifdef SKUA_BUILT_gpu
  return gpu::api_of(api);
#else
  (void)api;
  return nullptr;
#endif
}

skua_status copy_option(const char* what, const char* value, char* to, size_t size) {
  const size_t n = strlen(value);
  if (n >= size) return SKUA_INVALID("context: %s has %zu characters, at most %zu are possible", what, n, size - 1);
  memcpy(to, value, n + 1);
  return SKUA_STATUS_OK;
}

}  // namespace

bool glob_match(const char* p, const char* s) {
  const char *star = nullptr, *mark = s;
  while (*s) {
    if (*p == '*') { star = p++; mark = s; }
    else if (*p == '?' || *p == *s) { ++p; ++s; }
    else if (star) { p = star + 1; s = ++mark; }
    else return false;
  }
  while (*p == '*') ++p;
  return !*p;
}

void each_kernel(const skua_context* ctx, Family family, KernelKind kind, int variant,
                 void (*visit)(const Kernel*, void*), void* arg, Element element,
                 bool (*usable)(const Kernel*, void*)) {
  bool filtered = false;
  for (bool looks = ctx->filter[0] != 0;; looks = false) {  // at first: whether the filter leaves one
    for (Family t = family; *t; ++t)
      for (size_t i = 0; i < (*t)->count; ++i) {
        const Kernel* k = &(*t)->kernels[i];
        if (!(ctx->isas & isa_bit(k->isa))) break;  // one table, one instruction set
        if (k->tuned_for != Core::any && k->tuned_for != cpu().kinds.all) continue;
        if (k->kind != kind || k->element != element || (variant >= 0 && k->variant != variant)) continue;
        if ((looks || filtered) && !glob_match(ctx->filter, k->name)) continue;
        if (!looks) visit(k, arg);
        else filtered |= !usable || usable(k, arg);
      }
    if (!looks) return;
  }
}

const Kernel* find_kernel(const skua_context* ctx, Family family, KernelKind kind, int variant, Element element) {
  const Kernel* found = nullptr;
  each_kernel(ctx, family, kind, variant, [](const Kernel* k, void* arg) {
    auto* f = static_cast<const Kernel**>(arg);
    if (!*f) *f = k;
  }, &found, element);
  return found;
}

OnCores on_cores(const skua_context* ctx, Family family, const Kernel* chosen,
                 bool (*serves)(const Kernel*, const Kernel*)) {
  OnCores kernels;
  for (const Kernel*& k : kernels.of) k = chosen;
  if (!cpu().kinds.mixed) return kernels;
  const bool named = glob_match(ctx->filter, chosen->name);
  for (; *family; ++family)
    for (const Kernel *k = (*family)->kernels, *end = k + (*family)->count; k < end; ++k) {
      const bool fits = k->tuned_for != Core::any && k->isa == chosen->isa && k->kind == chosen->kind &&
                        k->variant == chosen->variant && k->element == chosen->element && k->vector == chosen->vector;
      if (fits && serves(k, chosen) && (!named || glob_match(ctx->filter, k->name))) kernels.of[int(k->tuned_for)] = k;
    }
  return kernels;
}

}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_context_create(const skua_context_options* options, skua_context** out) {
  if (!out) return SKUA_INVALID("context: out is NULL");
  *out = nullptr;
  skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
  if (options) {
    if (options->struct_size != sizeof o)
      return SKUA_INVALID(
          "context: options.struct_size is %zu, this library has %zu; start from SKUA_CONTEXT_OPTIONS_INIT",
          options->struct_size, sizeof o);
    o = *options;
  }
  if (!o.allocator.alloc != !o.allocator.free)
    return SKUA_INVALID("context: options.allocator has %s and no %s", o.allocator.alloc ? "alloc" : "free",
                        o.allocator.alloc ? "free" : "alloc");
  if (!o.allocator.alloc) o.allocator = {nullptr, default_alloc, default_free};
  if (o.device.api > SKUA_DEVICE_API_VULKAN)
    return SKUA_INVALID("context: device.api is %d, unknown", int(o.device.api));
  const bool on_gpu = o.device.api != SKUA_DEVICE_API_CPU;
  const gpu::Api* const api = on_gpu ? backend(o.device.api) : nullptr;
  if (on_gpu && !api)
    return fail(SKUA_STATUS_NO_DEVICE, "context: this build has no %s backend",
                o.device.api == SKUA_DEVICE_API_OPENCL ? "OpenCL" : "Vulkan");
  if (o.opencl && o.device.api != SKUA_DEVICE_API_OPENCL)
    return SKUA_INVALID("context: opencl is given, device.api must be SKUA_DEVICE_API_OPENCL");
  if (o.vulkan && o.device.api != SKUA_DEVICE_API_VULKAN)
    return SKUA_INVALID("context: vulkan is given, device.api must be SKUA_DEVICE_API_VULKAN");
  if (!on_gpu && o.device.index != 0)
    return fail(SKUA_STATUS_NO_DEVICE, "context: CPU device %u does not exist, there is only 0", o.device.index);

  skua_context c = {};
  c.allocator = o.allocator;
  c.log = o.log;
  c.log_ctx = o.log_ctx;
  IsaMask cap = ~IsaMask(0);
  if (o.max_isa) {
    if (!capped(o.max_isa, cap)) return unknown_isa("max_isa", o.max_isa);
  } else if (const char* e = getenv("SKUA_MAX_ISA"); e && e[0]) {
    if (!capped(e, cap)) return unknown_isa("environment SKUA_MAX_ISA", e);
  }
  if (const char* e = getenv("SKUA_CORE"); e && e[0])
    if (Cores cores; !chip_named(e) && !cores_named(e, cores)) return unknown_core(e);
  const char* const filter = o.kernel_filter ? o.kernel_filter : getenv("SKUA_KERNEL");
  if (filter)
    SKUA_TRY(
        copy_option(o.kernel_filter ? "kernel_filter" : "environment SKUA_KERNEL", filter, c.filter, sizeof c.filter));
  if (o.program_cache) SKUA_TRY(copy_option("program_cache", o.program_cache, c.program_cache, sizeof c.program_cache));
  if (o.tuning_cache) SKUA_TRY(copy_option("tuning_cache", o.tuning_cache, c.tuning_cache, sizeof c.tuning_cache));
  c.isas = kCompiled & cpu().detected & cap;
  for (int i = 0; i < kIsaCount; ++i)
    if ((c.isas & isa_bit(Isa(i))) && kIsas[i].type == Element::f32) c.best = Isa(i);

  auto* context = static_cast<skua_context*>(c.allocator.alloc(c.allocator.ctx, sizeof c, alignof(skua_context)));
  if (!context) return out_of_memory("context", sizeof c);
  memcpy(static_cast<void*>(context), &c, sizeof c);
  if (on_gpu)
    if (const skua_status s = api->open(context, o, &context->gpu); s != SKUA_STATUS_OK) {
      context->gpu = nullptr;
      skua_context_destroy(context);
      return s;
    }
  if (on_gpu) {
    const skua_device_info& info = context->gpu->about.info;
    context->gpu_key =
        hash(info.name, strlen(info.name), hash(info.driver, strlen(info.driver), hash(api->isa, strlen(api->isa))));
  }
  if (c.tuning_cache[0])
    if (const skua_status s = load_tuned(context); s != SKUA_STATUS_OK) {
      skua_context_destroy(context);
      return s;
    }
  *out = context;
  return SKUA_STATUS_OK;
}

void skua_context_destroy(skua_context* context) {
  if (!context) return;
  const skua_allocator a = context->allocator;
  if (context->gpu) context->gpu->api->close(context->gpu);
  forget_tuned(context);
  a.free(a.ctx, context, sizeof *context);
}

const char* skua_context_isa(const skua_context* context) {
  if (context && context->gpu) return context->gpu->api->isa;
  return context ? kIsas[int(context->best)].name : "";
}

static void describe_cpu(skua_device_info* info) {
  const Cpu& c = cpu();
  memset(info, 0, sizeof *info);
  snprintf(info->name, sizeof info->name, "%s", c.name);
  snprintf(info->vendor, sizeof info->vendor, "%s", c.vendor);
  size_t n = 0;
  for (int i = 0; i < kIsaCount; ++i)
    if ((c.detected | c.vetoed) & isa_bit(Isa(i)))
      n += size_t(snprintf(info->features + n, sizeof info->features - n,
                           c.vetoed & isa_bit(Isa(i)) ? "%s[%s]" : "%s%s", n ? " " : "", kIsas[i].name));
  for (int i = 0; i < kIsaCount; ++i)
    if (c.detected & isa_bit(Isa(i))) {
      info->has_f16 |= kIsas[i].type == Element::f16;
      info->has_bf16 |= kIsas[i].type == Element::bf16;
      info->has_int8_dot |= kIsas[i].type == Element::s8;
    }
  info->compute_units = c.cores;
  info->cache_bytes[0] = c.l1;
  info->cache_bytes[1] = c.l2;
  info->cache_bytes[2] = c.l3;
}

skua_status skua_context_device(const skua_context* context, skua_device_info* info) {
  if (!context) return SKUA_INVALID("context_device: context is NULL");
  if (!info) return SKUA_INVALID("context_device: info is NULL");
  if (context->gpu) *info = context->gpu->about.info;
  else describe_cpu(info);
  return SKUA_STATUS_OK;
}

size_t skua_device_list(skua_device_info* list, size_t capacity) {
  if (list && capacity) describe_cpu(&list[0]);
  size_t count = 1;
  const gpu::Api* const apis[] = {backend(SKUA_DEVICE_API_OPENCL), backend(SKUA_DEVICE_API_VULKAN)};
  for (const gpu::Api* const api : apis) {
    if (!api) continue;
    constexpr size_t kMost = 16;
    gpu::Description found[kMost];
    char why[256];
    const ErrorText before;  // a driver that is missing is no error
    const size_t n = api->list(found, kMost, why, sizeof why);
    before.restore();
    for (size_t i = 0; i < n && i < kMost; ++i, ++count)
      if (list && count < capacity) list[count] = found[i].info;
  }
  return count;
}

size_t skua_isa_count(void) {
  size_t n = 0;
  for (int i = 0; i < kIsaCount; ++i) n += isa_exists_here(Isa(i));
  return n;
}

skua_status skua_isa_at(size_t index, skua_isa_info* info) {
  if (!info) return SKUA_INVALID("isa_at: info is NULL");
  size_t n = 0;
  for (int i = 0; i < kIsaCount; ++i)
    if (isa_exists_here(Isa(i)) && n++ == index) {
      *info = {kIsas[i].name, (kCompiled & isa_bit(Isa(i))) != 0, (cpu().detected & isa_bit(Isa(i))) != 0};
      return SKUA_STATUS_OK;
    }
  return SKUA_INVALID("isa_at: index is %zu, there are %zu", index, n);
}

}  // extern "C"
