// Contexts over an engine's own cl_context: its buffers are imported, its queue may be shared, and what is the engine's
// stays so.
#include "tests/support/engine.h"

#ifdef SKUA_GPU_OPENCL
#include "gpu/opencl/backend.h"
#include "tests/support/engine_opencl.h"

using namespace skua_test;

namespace {

TEST(GpuEngine, BuffersOfAClContext) {
  if (!has_device(SKUA_DEVICE_API_OPENCL)) GTEST_SKIP() << "no OpenCL device";
  Cl cl(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1"));
  ASSERT_TRUE(cl.context);
  const std::vector<float> x = values();
  for (const bool with_queue : {true, false}) {
    SCOPED_TRACE(with_queue ? "with the engine's queue" : "with queues of its own");
    const cl_command_queue queue = cl.clCreateCommandQueue(cl.context, cl.device, CL_QUEUE_PROFILING_ENABLE, nullptr);
    const cl_mem memory = cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE, kBehind + kBytes, nullptr, nullptr);
    ASSERT_TRUE(queue && memory);
    const skua_opencl_objects given = {cl.context, cl.device, with_queue ? queue : nullptr};
    {
      Context gpu(given);
      ASSERT_TRUE(gpu.context);
      skua_device_info info;
      SKUA_EXPECT_OK(skua_context_device(gpu, &info));
      EXPECT_EQ(info.device.api, SKUA_DEVICE_API_OPENCL);
      Work work(gpu, uintptr_t(memory));
      ASSERT_TRUE(work.x && work.y && work.stream && work.plan);
      std::vector<float> got(kCount);
      EXPECT_EQ(cl.clEnqueueWriteBuffer(queue, memory, CL_FALSE, 0, kBytes, x.data(), 0, nullptr, nullptr), CL_SUCCESS);
      if (!with_queue) cl.clFinish(queue);
      work.enqueue();
      if (with_queue) SKUA_EXPECT_OK(skua_stream_submit(work.stream));
      else SKUA_EXPECT_OK(skua_stream_wait(work.stream));
      EXPECT_EQ(cl.clEnqueueReadBuffer(queue, memory, CL_TRUE, kBehind, kBytes, got.data(), 0, nullptr, nullptr),
                CL_SUCCESS);
      EXPECT_EQ(got, absolute(x));
      SKUA_EXPECT_OK(skua_device_buffer_read(work.y, 0, got.data(), kBytes));
      EXPECT_EQ(got, absolute(x));

      // A part is no more than that to a kernel.
      size_t reach = 0;
      EXPECT_EQ(cl.clGetMemObjectInfo(static_cast<skua::gpu::opencl::ClBuffer*>(work.x)->memory, CL_MEM_SIZE,
                                      sizeof reach, &reach, nullptr),
                CL_SUCCESS);
      EXPECT_EQ(reach, kBytes);
      refuses_overlap(gpu, uintptr_t(memory), work);
      // Destroying unmaps.
      skua_device_buffer* all = nullptr;
      void* at = nullptr;
      cl_uint maps = 0;
      SKUA_EXPECT_OK(skua_device_buffer_import(gpu, uintptr_t(memory), 0, kBehind + kBytes, &all));
      SKUA_EXPECT_OK(skua_device_buffer_map(all, 0, kBytes, &at));
      EXPECT_EQ(cl.clGetMemObjectInfo(memory, CL_MEM_MAP_COUNT, sizeof maps, &maps, nullptr), CL_SUCCESS);
      EXPECT_EQ(maps, 1u);
      skua_device_buffer_destroy(all);
      EXPECT_EQ(cl.clGetMemObjectInfo(memory, CL_MEM_MAP_COUNT, sizeof maps, &maps, nullptr), CL_SUCCESS);
      EXPECT_EQ(maps, 0u);
      skua_device_buffer* none = nullptr;
      EXPECT_EQ(skua_device_buffer_import(gpu, uintptr_t(memory), kBehind, kBytes + 1, &none),
                SKUA_STATUS_INVALID_ARGUMENT);
      expect_text("end behind the cl_mem's 12192 bytes");
      EXPECT_EQ(skua_device_buffer_import(gpu, uintptr_t(memory), SIZE_MAX, 2, &none), SKUA_STATUS_INVALID_ARGUMENT);
      EXPECT_EQ(skua_device_buffer_import(gpu, uintptr_t(memory), 1, 16, &none), SKUA_STATUS_INVALID_ARGUMENT);
      expect_text("offset 1");
      Cl other(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1"));
      const cl_mem foreign = other.clCreateBuffer(other.context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
      EXPECT_EQ(skua_device_buffer_import(gpu, uintptr_t(foreign), 0, 64, &none), SKUA_STATUS_INVALID_ARGUMENT);
      expect_text("another cl_context");
      other.clReleaseMemObject(foreign);
      EXPECT_EQ(none, nullptr);
    }
    // Nothing of the library's is left on the engine's objects.
    cl_uint references = 0;
    EXPECT_EQ(cl.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(references, 1u);
    EXPECT_EQ(cl.clReleaseMemObject(memory), CL_SUCCESS);
    EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
  }
}

// Kernels of bytes see words: the last one must be the caller's, whole.
TEST(GpuEngine, BytesOfAnImportedBufferInWords) {
  if (!has_device(SKUA_DEVICE_API_OPENCL)) GTEST_SKIP() << "no OpenCL device";
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  Cl cl(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1"));
  ASSERT_TRUE(cl.context);
  const cl_mem memory = cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
  {
    Context gpu(skua_opencl_objects{cl.context, cl.device, nullptr});
    ASSERT_TRUE(gpu.context);
    skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
    d.type = SKUA_DTYPE_S8;
    d.rank = 1;
    Op op;
    SKUA_EXPECT_OK(skua_transpose_create(gpu, &d, &op));
    const skua_tensor t = shape({13}, SKUA_DTYPE_S8);
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    skua_stream* stream = nullptr;
    skua_device_buffer *x = nullptr, *y = nullptr;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
    SKUA_EXPECT_OK(skua_device_buffer_create(gpu, 13, &y));
    for (const size_t size : {13, 15, 16, 64}) {
      SKUA_EXPECT_OK(skua_device_buffer_import(gpu, uintptr_t(memory), 0, size, &x));
      const skua_buffer in = {nullptr, x, 0}, out = {nullptr, y, 0};
      for (const bool written : {false, true}) {
        const skua_status s =
            skua_plan_enqueue(plan, written ? &out : &in, 1, written ? &in : &out, 1, nullptr, stream);
        EXPECT_EQ(s, size < 16 ? SKUA_STATUS_UNSUPPORTED : SKUA_STATUS_OK) << size;
        if (size < 16)
          expect_text(written ? "output 0 ends with an imported buffer, at byte 13"
                              : "input 0 ends with an imported buffer, at byte 13");
      }
      SKUA_EXPECT_OK(skua_stream_wait(stream));
      skua_device_buffer_destroy(x);
    }
    skua_plan_destroy(plan);
    skua_stream_destroy(stream);
    skua_device_buffer_destroy(y);
  }
  cl.clReleaseMemObject(memory);
}

TEST(GpuEngine, WhatAClQueueAndBufferCannot) {
  if (!has_device(SKUA_DEVICE_API_OPENCL)) GTEST_SKIP() << "no OpenCL device";
  Cl cl(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1"));
  ASSERT_TRUE(cl.context);
  const cl_command_queue without_profiling = cl.clCreateCommandQueue(cl.context, cl.device, 0, nullptr);
  const cl_mem hidden =
      cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, kBytes, nullptr, nullptr);
  ASSERT_TRUE(without_profiling && hidden);
  {
    Context gpu(skua_opencl_objects{cl.context, cl.device, without_profiling});
    ASSERT_TRUE(gpu.context);
    skua_stream* stream = nullptr;
    skua_event* event = nullptr;
    double nanoseconds = 0;
    SKUA_EXPECT_OK(skua_stream_create(gpu, &stream));
    SKUA_EXPECT_OK(skua_event_record(stream, &event));
    EXPECT_EQ(skua_event_nanoseconds(event, event, &nanoseconds), SKUA_STATUS_UNSUPPORTED);
    expect_text("no timestamps");
    skua_event_destroy(event);
    skua_stream_destroy(stream);
    skua_device_buffer* b = nullptr;
    void* at = nullptr;
    SKUA_EXPECT_OK(skua_device_buffer_import(gpu, uintptr_t(hidden), 0, kBytes, &b));
    for (int i = 0; i < 2; ++i) {  // the first failure does not leave it mapped
      EXPECT_EQ(skua_device_buffer_map(b, 0, kBytes, &at), SKUA_STATUS_DRIVER_ERROR);
      expect_text("CL_INVALID_OPERATION");
    }
    skua_device_buffer_destroy(b);
  }
  cl.clReleaseMemObject(hidden);
  cl.clReleaseCommandQueue(without_profiling);
}

TEST(GpuEngine, ClObjectsThatDoNotBelongTogether) {
  if (!has_device(SKUA_DEVICE_API_OPENCL)) GTEST_SKIP() << "no OpenCL device";
  Cl cl(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1")),
      other(open_driver("SKUA_OPENCL_LIBRARY", "libOpenCL.so.1"));
  ASSERT_TRUE(cl.context && other.context);
  const cl_command_queue foreign = other.clCreateCommandQueue(other.context, other.device, 0, nullptr),
                         unordered = cl.clCreateCommandQueue(cl.context, cl.device,
                                                             CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, nullptr);
  const auto refused = [&](skua_opencl_objects given, const char* text, skua_device_api api = SKUA_DEVICE_API_OPENCL) {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.device.api = api;
    o.opencl = &given;
    skua_context* none = nullptr;
    EXPECT_EQ(skua_context_create(&o, &none), SKUA_STATUS_INVALID_ARGUMENT) << text;
    expect_text(text);
    skua_context_destroy(none);
  };
  refused({nullptr, cl.device, nullptr}, "opencl.context is NULL");
  refused({cl.context, nullptr, nullptr}, "opencl.device is NULL");
  refused({cl.context, cl.device, foreign}, "another context");
  if (unordered) refused({cl.context, cl.device, unordered}, "out of order");
  refused({cl.context, cl.device, nullptr}, "device.api", SKUA_DEVICE_API_CPU);
  other.clReleaseCommandQueue(foreign);
  if (unordered) cl.clReleaseCommandQueue(unordered);
}

}  // namespace
#endif
