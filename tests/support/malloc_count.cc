// Counts this thread's calls of malloc and its kin while a MallocCount lives. glibc's own functions do the work;
// sanitizers bring theirs, then nothing is counted.
#include <cerrno>
#include <cstdlib>

#include "tests/support/support.h"

namespace {
__attribute__((tls_model("initial-exec"))) thread_local int watched;
__attribute__((tls_model("initial-exec"))) thread_local size_t calls;
}  // namespace

namespace skua_test {
MallocCount::MallocCount() { ++watched, calls = 0; }
MallocCount::~MallocCount() { --watched; }
size_t MallocCount::count() const { return calls; }
}  // namespace skua_test

#if defined(__GLIBC__)
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}
#define COUNT() (watched ? void(++calls) : void())
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SKUA_OWN_MALLOC 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef SKUA_OWN_MALLOC
#endif
#endif
#ifdef SKUA_OWN_MALLOC
extern "C" {
void* malloc(size_t size) { return COUNT(), __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return COUNT(), __libc_calloc(n, size); }
void* realloc(void* p, size_t size) { return COUNT(), __libc_realloc(p, size); }
void* memalign(size_t align, size_t size) { return COUNT(), __libc_memalign(align, size); }
void* aligned_alloc(size_t align, size_t size) { return COUNT(), __libc_memalign(align, size); }
int posix_memalign(void** out, size_t align, size_t size) {
  COUNT();
  void* p = __libc_memalign(align, size);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
}
#endif
#endif
