// An engine with a cl_context of its own, for tests of contexts over it.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "tests/support/engine.h"

namespace skua_test {

struct Cl {
  explicit Cl(void* library) {
#define SKUA_FIND(f) f = reinterpret_cast<decltype(&::f)>(dlsym(library, #f));
    SKUA_FIND(clGetPlatformIDs) SKUA_FIND(clGetDeviceIDs) SKUA_FIND(clCreateContext) SKUA_FIND(clReleaseContext)
    SKUA_FIND(clGetContextInfo) SKUA_FIND(clCreateCommandQueue) SKUA_FIND(clReleaseCommandQueue)
    SKUA_FIND(clCreateBuffer) SKUA_FIND(clReleaseMemObject) SKUA_FIND(clGetMemObjectInfo)
    SKUA_FIND(clEnqueueWriteBuffer) SKUA_FIND(clEnqueueReadBuffer) SKUA_FIND(clFinish)
#undef SKUA_FIND
    cl_platform_id platforms[8];
    cl_uint n = 0;
    clGetPlatformIDs(8, platforms, &n);
    for (cl_uint i = 0; i < n && i < 8 && !device; ++i)
      if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) device = nullptr;
    if (device) context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  }
  ~Cl() {
    if (context) clReleaseContext(context);
  }
#define SKUA_MEMBER(f) decltype(&::f) f;
  SKUA_MEMBER(clGetPlatformIDs) SKUA_MEMBER(clGetDeviceIDs) SKUA_MEMBER(clCreateContext) SKUA_MEMBER(clReleaseContext)
  SKUA_MEMBER(clGetContextInfo) SKUA_MEMBER(clCreateCommandQueue) SKUA_MEMBER(clReleaseCommandQueue)
  SKUA_MEMBER(clCreateBuffer) SKUA_MEMBER(clReleaseMemObject) SKUA_MEMBER(clGetMemObjectInfo)
  SKUA_MEMBER(clEnqueueWriteBuffer) SKUA_MEMBER(clEnqueueReadBuffer) SKUA_MEMBER(clFinish)
#undef SKUA_MEMBER
  cl_device_id device = nullptr;
  cl_context context = nullptr;
};

}  // namespace skua_test
