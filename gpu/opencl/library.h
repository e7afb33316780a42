// The OpenCL driver: opened at run time, its functions, its devices.
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "gpu/device.h"

namespace skua::gpu::opencl {

#define SKUA_CL_FUNCTIONS(X)                                                                                  \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext)            \
  X(clRetainContext) X(clReleaseContext) X(clGetContextInfo) X(clCreateCommandQueue) X(clGetCommandQueueInfo) \
  X(clRetainCommandQueue) X(clReleaseCommandQueue) X(clCreateBuffer) X(clCreateSubBuffer) X(clCreateImage)    \
  X(clGetMemObjectInfo) X(clRetainMemObject) X(clReleaseMemObject) X(clEnqueueMapBuffer)                      \
  X(clEnqueueUnmapMemObject) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clCreateProgramWithSource)      \
  X(clCreateProgramWithBinary) X(clGetProgramInfo) X(clBuildProgram) X(clGetProgramBuildInfo)                 \
  X(clReleaseProgram) X(clCreateKernelsInProgram) X(clReleaseKernel) X(clGetKernelWorkGroupInfo)              \
  X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)  \
  X(clWaitForEvents) X(clGetEventProfilingInfo) X(clReleaseEvent) X(clFlush) X(clFinish)

struct Functions {
#define X(f) decltype(&::f) f;
  SKUA_CL_FUNCTIONS(X)
#undef X
};

// The driver's functions, the same for the life of the process; NULL and a reason when there is no driver.
const Functions* functions(char* why, size_t why_size);

// False, and why, for a device that kernels cannot run on.
bool describe(const Functions& cl, cl_device_id id, Description& about, char* why, size_t why_size);

constexpr size_t kMostDevices = 16;
struct Found {
  cl_device_id id;
  Description about;
};
// The devices that can be used, software ones last. `found` has room for kMostDevices.
size_t find_devices(const Functions& cl, Found* found, char* why, size_t why_size);

const char* error_name(cl_int error);
// The status for what `call` returned, with a text; what says that the device is gone marks `device` (may be NULL) as
// lost.
skua_status driver_error(Device* device, const char* call, cl_int error);

}  // namespace skua::gpu::opencl
