#include "gpu/opencl/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace skua::gpu::opencl {
namespace {

const char* const library_names[] = {
#ifdef __ANDROID__
    "libOpenCL.so",
    "/vendor/lib64/libOpenCL.so",
    "/system/vendor/lib64/libOpenCL.so",
    "/vendor/lib/libOpenCL.so",
    "libGLES_mali.so",
    "/vendor/lib64/egl/libGLES_mali.so",
    "libPVROCL.so",
    "libOpenCL-pixel.so",
#else
    "libOpenCL.so.1", "libOpenCL.so",
#endif
};

pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
Functions loaded;
bool is_loaded;

void say(char* why, size_t size, const char* format, ...) __attribute__((format(printf, 3, 4)));
void say(char* why, size_t size, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, size, format, args);
  va_end(args);
}
// Behind what is there already.
void also(char* why, size_t size, const char* text, const char* more = "") {
  const size_t n = strlen(why);
  snprintf(why + n, size - n, "%s%s%s", n ? "; " : "", text, more);
}

using Loader = void* (*)(const char* name);
using Enable = void (*)();

// Whether every function was found.
bool find_functions(void* library, Functions& cl, const char*& missing) {
  // Google's phones hand out the functions through one of their own.
  const auto enable = reinterpret_cast<Enable>(dlsym(library, "enableOpenCL"));
  const auto loader = reinterpret_cast<Loader>(dlsym(library, "loadOpenCLPointer"));
  if (enable && loader) enable();
#define X(f)                                                                                            \
  cl.f = reinterpret_cast<decltype(&::f)>(enable && loader ? loader(#f) : dlsym(library, #f));          \
  if (!cl.f) return missing = #f, false;
  SKUA_CL_FUNCTIONS(X)
#undef X
  return true;
}

bool load(Functions& cl, char* why, size_t why_size) {
  const char* const wanted = getenv("SKUA_OPENCL_LIBRARY");
  const bool given = wanted && wanted[0];
  const size_t count = given ? 1 : sizeof library_names / sizeof library_names[0];
  if (why_size) why[0] = 0;
  for (size_t i = 0; i < count; ++i) {
    const char* const name = given ? wanted : library_names[i];
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* const reason = dlerror();
      also(why, why_size, given ? "SKUA_OPENCL_LIBRARY: " : "", reason ? reason : name);
      continue;
    }
    const char* missing = "";
    if (find_functions(library, cl, missing)) return true;  // and never closed: drivers have threads of their own
    also(why, why_size, name, " has no ");
    say(why + strlen(why), why_size - strlen(why), "%s", missing);
    dlclose(library);
  }
  return false;
}

template <class T> T device_value(const Functions& cl, cl_device_id id, cl_device_info what) {
  T value = {};
  if (cl.clGetDeviceInfo(id, what, sizeof value, &value, nullptr) != CL_SUCCESS) return T{};
  return value;
}
template <size_t N> void device_text(const Functions& cl, cl_device_id id, cl_device_info what, char (&to)[N]) {
  char text[1024] = "";
  if (cl.clGetDeviceInfo(id, what, sizeof text - 1, text, nullptr) != CL_SUCCESS) text[0] = 0;
  const char* from = text;
  while (*from == ' ') ++from;
  snprintf(to, N, "%.*s", int(N - 1), from);
}

// Whether the list of names, with spaces between them, has this one.
bool has_name(const char* list, const char* name) {
  const size_t n = strlen(name);
  for (const char* at = list; (at = strstr(at, name)); at += n)
    if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
  return false;
}

// The smallest that kernels may get; 0: not known.
uint32_t subgroup_size(const Functions& cl, cl_device_id id, const char* names) {
  constexpr cl_device_info kSizesIntel = 0x4108, kWavefrontAmd = 0x4043, kWarpNvidia = 0x4003;
  size_t sizes[8] = {}, bytes = 0, least = 0;
  if (has_name(names, "cl_nv_device_attribute_query")) return device_value<cl_uint>(cl, id, kWarpNvidia);
  if (has_name(names, "cl_amd_device_attribute_query")) return device_value<cl_uint>(cl, id, kWavefrontAmd);
  if (!has_name(names, "cl_intel_required_subgroup_size") ||
      cl.clGetDeviceInfo(id, kSizesIntel, sizeof sizes, sizes, &bytes) != CL_SUCCESS)
    return 0;
  for (size_t i = 0; i < bytes / sizeof sizes[0]; ++i)
    if (sizes[i] && (!least || sizes[i] < least)) least = sizes[i];
  return uint32_t(least);
}

}  // namespace

bool describe(const Functions& cl, cl_device_id id, Description& d, char* why, size_t why_size) {
  d = {};
  skua_device_info& info = d.info;
  info.device.api = SKUA_DEVICE_API_OPENCL;
  device_text(cl, id, CL_DEVICE_NAME, info.name);
  device_text(cl, id, CL_DEVICE_VENDOR, info.vendor);
  device_text(cl, id, CL_DRIVER_VERSION, info.driver);
  char version[64];
  device_text(cl, id, CL_DEVICE_VERSION, version);
  int major = 0, minor = 0;
  if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2 || major < 1 || (major == 1 && minor < 2))
    return say(why, why_size, "%s has %.40s, 1.2 is needed", info.name, version), false;
  if (!device_value<cl_bool>(cl, id, CL_DEVICE_AVAILABLE) ||
      !device_value<cl_bool>(cl, id, CL_DEVICE_COMPILER_AVAILABLE) ||
      !device_value<cl_bool>(cl, id, CL_DEVICE_ENDIAN_LITTLE))
    return say(why, why_size, "%s is not available, has no compiler or is big-endian", info.name), false;

  char names[8192] = "";
  if (cl.clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof names - 1, names, nullptr) != CL_SUCCESS) names[0] = 0;
  const cl_device_type type = device_value<cl_device_type>(cl, id, CL_DEVICE_TYPE);
  info.is_software = (type & CL_DEVICE_TYPE_CPU) != 0;
  d.vendor = info.is_software ? Vendor::software : vendor_named(info.name, info.vendor);
  d.f16_storage = d.f16_rounding = d.f16_preserve = true;  // vload_half and vstore_half_rte are in every version
  d.f32_nan = d.f16_nan = true;                            // compilers are not told otherwise
  d.f16_arithmetic = has_name(names, "cl_khr_fp16");
  d.integer_dot = has_name(names, "cl_khr_integer_dot_product");
  d.unified_memory = device_value<cl_bool>(cl, id, CL_DEVICE_HOST_UNIFIED_MEMORY);
  info.has_f16 = d.f16_arithmetic;
  info.has_int8_dot = d.integer_dot;
  snprintf(info.features, sizeof info.features, "f16_storage%s%s%s", d.f16_arithmetic ? " f16" : "",
           d.integer_dot ? " integer_dot" : "", has_name(names, "cl_khr_subgroups") ? " subgroups" : "");
  info.compute_units = device_value<cl_uint>(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.memory_bytes = device_value<cl_ulong>(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE);
  d.buffer_bytes = d.binding_bytes = device_value<cl_ulong>(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  d.local_bytes = uint32_t(device_value<cl_ulong>(cl, id, CL_DEVICE_LOCAL_MEM_SIZE));
  d.group_threads = uint32_t(device_value<size_t>(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE));
  size_t extents[8] = {};
  if (cl.clGetDeviceInfo(id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof extents, extents, nullptr) != CL_SUCCESS)
    extents[0] = extents[1] = extents[2] = 1;
  for (int i = 0; i < 3; ++i) {
    d.group_extent[i] = uint32_t(extents[i]);
    d.group_count[i] = INT32_MAX;
  }
  if (device_value<cl_bool>(cl, id, CL_DEVICE_IMAGE_SUPPORT))
    d.texels = device_value<size_t>(cl, id, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
  d.offset_alignment = 1;  // buffers are bound whole
  d.opencl = uint8_t(major);
  d.subgroup = subgroup_size(cl, id, names);
  constexpr cl_device_info kMostSubgroups = 0x105C;
  d.subgroup_sums = major >= 2 && (has_name(names, "cl_khr_subgroups") ||
                                   (major >= 3 && device_value<cl_uint>(cl, id, kMostSubgroups)));
  d.tick_nanoseconds = 1;  // of profiling, whatever its resolution
  tell_limits(d);
  return true;
}

const Functions* functions(char* why, size_t why_size) {
  pthread_mutex_lock(&loading);
  if (!is_loaded) is_loaded = load(loaded, why, why_size);
  const Functions* cl = is_loaded ? &loaded : nullptr;
  pthread_mutex_unlock(&loading);
  return cl;
}

size_t find_devices(const Functions& cl, Found* found, char* why, size_t why_size) {
  cl_platform_id platforms[kMostDevices];
  cl_uint n_platforms = 0;
  const cl_int error = cl.clGetPlatformIDs(kMostDevices, platforms, &n_platforms);
  if (error != CL_SUCCESS || !n_platforms)
    return say(why, why_size, "the driver has no platform (%s)", error_name(error)), 0;
  say(why, why_size, "no platform has a device");
  size_t n = 0;
  for (int software = 0; software < 2; ++software)
    for (cl_uint p = 0; p < n_platforms && p < kMostDevices; ++p) {
      cl_device_id ids[kMostDevices];
      cl_uint n_ids = 0;
      if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, kMostDevices, ids, &n_ids) != CL_SUCCESS) continue;
      for (cl_uint i = 0; i < n_ids && i < kMostDevices && n < kMostDevices; ++i) {
        if (((device_value<cl_device_type>(cl, ids[i], CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0) != (software != 0))
          continue;
        if (!describe(cl, ids[i], found[n].about, why, why_size)) continue;
        found[n].id = ids[i];
        found[n].about.info.device.index = uint32_t(n);
        ++n;
      }
    }
  return n;
}

const char* error_name(cl_int error) {
  static const struct {
    cl_int code;
    const char* name;
  } names[] = {
      {0, "no error"},
      {-1, "CL_DEVICE_NOT_FOUND"},
      {-2, "CL_DEVICE_NOT_AVAILABLE"},
      {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {-5, "CL_OUT_OF_RESOURCES"},
      {-6, "CL_OUT_OF_HOST_MEMORY"},
      {-11, "CL_BUILD_PROGRAM_FAILURE"},
      {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
      {-30, "CL_INVALID_VALUE"},
      {-34, "CL_INVALID_CONTEXT"},
      {-36, "CL_INVALID_COMMAND_QUEUE"},
      {-38, "CL_INVALID_MEM_OBJECT"},
      {-49, "CL_INVALID_ARG_INDEX"},
      {-51, "CL_INVALID_ARG_SIZE"},
      {-52, "CL_INVALID_KERNEL_ARGS"},
      {-54, "CL_INVALID_WORK_GROUP_SIZE"},
      {-55, "CL_INVALID_WORK_ITEM_SIZE"},
      {-59, "CL_INVALID_OPERATION"},
      {-61, "CL_INVALID_BUFFER_SIZE"},
      {-1001, "CL_PLATFORM_NOT_FOUND"},
  };
  for (const auto& entry : names)
    if (entry.code == error) return entry.name;
  return "an OpenCL error";
}

skua_status driver_error(Device* device, const char* call, cl_int error) {
  skua_status status = SKUA_STATUS_DRIVER_ERROR;
  if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_HOST_MEMORY) status = SKUA_STATUS_OUT_OF_MEMORY;
  if (error == CL_DEVICE_NOT_AVAILABLE || error == CL_INVALID_CONTEXT || error == CL_INVALID_COMMAND_QUEUE)
    status = SKUA_STATUS_DEVICE_LOST;
  if (status == SKUA_STATUS_DEVICE_LOST && device) __atomic_store_n(&device->lost, true, __ATOMIC_RELEASE);
  return fail(status, "OpenCL: %s failed: %s (%d)", call, error_name(error), int(error));
}

}  // namespace skua::gpu::opencl
