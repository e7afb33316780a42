// What skua_context holds, and how operators allocate through it and ask it for kernels.
#pragma once
#include <skua/context.h>
#include "core/error.h"
#include "dispatch/cpu.h"
#include "dispatch/kernel.h"

namespace skua {
struct Text;
struct TunedChoice;
namespace gpu {
struct Device;
}
}

struct skua_context {
  skua_allocator allocator;
  skua::IsaMask isas;       // usable: compiled in, detected, not above the cap
  skua::Isa best;           // the highest of them that has kernels of every family
  char filter[64];          // glob on kernel names; "" = none
  char tuning_cache[256];
  char program_cache[256];
  mutable bool any_tuned;                 // the table below holds something
  mutable skua::TunedChoice* tuned[32];   // what was measured, by key; grows only, read while others add (tuning.h)
  skua_log_fn log;
  void* log_ctx;
  skua::gpu::Device* gpu;   // NULL = the CPU
  uint64_t gpu_key;         // of a GPU: which one, behind which driver; measured choices are its alone
};

namespace skua {

inline void* allocate(const skua_context* ctx, size_t size, size_t align) {
  return ctx->allocator.alloc(ctx->allocator.ctx, size, align);
}
inline void release(const skua_context* ctx, void* memory, size_t size) {
  if (memory) ctx->allocator.free(ctx->allocator.ctx, memory, size);
}
inline skua_status out_of_memory(const char* op, size_t size) {
  return fail(SKUA_STATUS_OUT_OF_MEMORY, "%s: the allocator returned NULL for %zu bytes", op, size);
}

// A family's kernels: tables of its units, highest instruction set first, ended by NULL. Generated from CMake's list; a
// program that uses one operator links the tables of that operator's families only.
using Family = const KernelTable* const*;

// Calls visit(kernel, arg) for every kernel of the kind, variant and element type that the context may use, best
// instruction set first. When the context's filter matches some of them, of those that are usable(kernel, arg) if that
// is given, only those that it matches; else all.
void each_kernel(const skua_context* ctx, Family family, KernelKind kind, int variant,
                 void (*visit)(const Kernel*, void*), void* arg, Element element = Element::f32,
                 bool (*usable)(const Kernel*, void*) = nullptr);

// The first of them: the kernel of the highest instruction set. NULL if there is none (left out of the build).
const Kernel* find_kernel(const skua_context* ctx, Family family, KernelKind kind, int variant = -1,
                          Element element = Element::f32);

// A chosen kernel, and what takes its place on cores that have one of their own, where the chip has several kinds: same
// packed weights, same bits. A task asks once, and stays with the answer wherever its thread goes on.
struct OnCores {
  const Kernel* of[kCoreCount];
  const Kernel* here() const { return of[int(core_here())]; }
};
void explain_cores(const OnCores& kernels, Text& text);
OnCores on_cores(const skua_context* ctx, Family family, const Kernel* chosen,
                 bool (*serves)(const Kernel* other, const Kernel* chosen));

bool glob_match(const char* pattern, const char* text);

// For the tests' coverage account: this kernel is about to be used by a run.
inline void note_use(const Kernel* kernel) {
#ifdef SKUA_COUNT_CALLS
  __atomic_fetch_add(&kernel->calls, 1, __ATOMIC_RELAXED);
#else
  (void)kernel;
#endif
}

}  // namespace skua
