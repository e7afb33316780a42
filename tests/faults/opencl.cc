// libskua_faults_opencl.so: every function of OpenCL that the library uses, wrapped.
#include <dlfcn.h>
#include <string.h>

#include <type_traits>

#include "gpu/opencl/library.h"
#include "tests/faults/counted.h"

namespace {

bool begins(const char* name, const char* with) { return !strncmp(name, with, strlen(with)); }

void* real(const char* name) {
  static void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, name) : nullptr;
}

// The last argument of what returns an object is where the error goes; of what enqueues, the event.
cl_int* error_of(cl_int* e) { return e; }
template <class T> cl_int* error_of(T) { return nullptr; }
void made_event(cl_event* e) { if (e) count(1); }
template <class T> void made_event(T) {}
template <class T> T last(T t) { return t; }
template <class T, class... Rest> auto last(T, Rest... rest) { return last(rest...); }

template <class... A> void aged(A...) {}
void aged(cl_device_id, cl_device_info what, size_t size, void* value, size_t*) {
  if (faults.old && what == CL_DEVICE_VERSION && value) strncpy(static_cast<char*>(value), "OpenCL 1.1 of old", size);
}

template <class Tag, class Function> struct Wrapped;
template <class Tag, class R, class... A> struct Wrapped<Tag, R(CL_API_CALL*)(A...)> {
  static inline R (CL_API_CALL* real)(A...);
  static R CL_API_CALL call(A... a) {
    if constexpr (std::is_same_v<R, cl_int>) {
      if (begins(Tag::name, "clRelease")) count(-1);
      else if (fails(Tag::name)) return faults.code;
      const R r = real(a...);
      if (r == CL_SUCCESS) aged(a...);
      if (r == CL_SUCCESS && (begins(Tag::name, "clRetain") || begins(Tag::name, "clCreateKernels"))) count(1);
      if (r == CL_SUCCESS && begins(Tag::name, "clEnqueue")) made_event(last(a...));
      if (r == CL_SUCCESS && begins(Tag::name, "clEnqueueUnmap")) ++faults.unwaited;
      if (r == CL_SUCCESS && begins(Tag::name, "clFinish")) faults.unwaited = 0;
      return r;
    } else {
      if (fails(Tag::name)) {
        if (cl_int* e = error_of(last(a...))) *e = faults.code;
        return nullptr;
      }
      const R r = real(a...);
      if (r) count(1);
      return r;
    }
  }
};
#define X(function) struct Tag_##function { static constexpr const char* name = #function; };
SKUA_CL_FUNCTIONS(X)
#undef X

}  // namespace

// Handed out as the drivers of Google's phones do it.
extern "C" {
Faults* skua_faults(void) { return &faults; }
void enableOpenCL(void) {}
void* loadOpenCLPointer(const char* name) {
  void* const found = real(name);
  if (!found) return nullptr;
#define X(function)                                                             \
  if (!strcmp(name, #function)) {                                              \
    using W = Wrapped<Tag_##function, decltype(&::function)>;                   \
    W::real = reinterpret_cast<decltype(W::real)>(found);                       \
    return reinterpret_cast<void*>(W::call);                                    \
  }
  SKUA_CL_FUNCTIONS(X)
#undef X
  return found;
}
}
