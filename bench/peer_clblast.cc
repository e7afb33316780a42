// CLBlast, on the OpenCL device of --device, in a context and with buffers of its own. Opened at run time, as is
// OpenCL: nothing to link with.
#include "device_side.h"

#ifdef BENCH_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>

namespace bench {
namespace {

// clblast_c.h's, whose header need not be there.
using Sgemm = int (*)(int layout, int transpose_a, int transpose_b, size_t m, size_t n, size_t k, float alpha, cl_mem a,
                      size_t a_offset, size_t lda, cl_mem b, size_t b_offset, size_t ldb, float beta, cl_mem c,
                      size_t c_offset, size_t ldc, cl_command_queue* queue, cl_event* event);
using Hgemm = int (*)(int layout, int transpose_a, int transpose_b, size_t m, size_t n, size_t k, cl_half alpha,
                      cl_mem a, size_t a_offset, size_t lda, cl_mem b, size_t b_offset, size_t ldb, cl_half beta,
                      cl_mem c, size_t c_offset, size_t ldc, cl_command_queue* queue, cl_event* event);
constexpr int kRowMajor = 101, kNoTranspose = 111;
constexpr cl_half kHalfOne = 0x3c00;

struct Functions {
#define BENCH_CL(X)                                                                                         \
  X(GetPlatformIDs) X(GetDeviceIDs) X(GetDeviceInfo) X(CreateContext) X(CreateCommandQueue) X(CreateBuffer) \
  X(EnqueueReadBuffer) X(EnqueueWriteBuffer) X(EnqueueCopyBuffer) X(EnqueueMarkerWithWaitList) X(Finish)    \
  X(GetEventProfilingInfo) X(ReleaseEvent) X(ReleaseMemObject) X(ReleaseCommandQueue) X(ReleaseContext)
#define BENCH_MEMBER(name) decltype(&cl##name) name = nullptr;
  BENCH_CL(BENCH_MEMBER)
  Sgemm sgemm = nullptr;
  Hgemm hgemm = nullptr;
};

class ClBlastLayer : public Prepared {
 public:
  const Functions& f;
  cl_command_queue queue;
  // bias: repeated for each row, copied to C before each product
  cl_mem a = nullptr, b = nullptr, c = nullptr, bias = nullptr;
  Layer layer;
  View y;
  ClBlastLayer(const Functions& functions, cl_command_queue q, const Layer& l, View to)
      : f(functions), queue(q), layer(l), y(to) {}
  ~ClBlastLayer() override {
    for (cl_mem m : {a, b, c, bias})
      if (m) f.ReleaseMemObject(m);
  }
  size_t c_bytes() const { return layer.m * layer.n * size_of(layer.type); }
  bool once() {
    const size_t m = layer.m, n = layer.n, k = layer.k;
    if (bias && f.EnqueueCopyBuffer(queue, bias, c, 0, 0, c_bytes(), 0, nullptr, nullptr) != CL_SUCCESS) return false;
    if (layer.type == SKUA_DTYPE_F16)
      return f.hgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, kHalfOne, a, 0, k, b, 0, n,
                     bias ? kHalfOne : cl_half(0), c, 0, n, &queue, nullptr) == 0;
    return f.sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1.0f, a, 0, k, b, 0, n, bias ? 1.0f : 0.0f, c, 0, n,
                   &queue, nullptr) == 0;
  }
  void run() override {
    once();
    f.Finish(queue);
  }
  void fetch() override { f.EnqueueReadBuffer(queue, c, CL_TRUE, 0, c_bytes(), y.data, 0, nullptr, nullptr); }
  double device_ns(size_t calls) override {
    cl_event event[2] = {};
    cl_ulong at[2] = {};
    bool ok = f.EnqueueMarkerWithWaitList(queue, 0, nullptr, &event[0]) == CL_SUCCESS;
    for (size_t i = 0; ok && i < calls; ++i) ok = once();
    ok = ok && f.EnqueueMarkerWithWaitList(queue, 0, nullptr, &event[1]) == CL_SUCCESS && f.Finish(queue) == CL_SUCCESS;
    for (int i = 0; i < 2; ++i) {
      ok = ok &&
           f.GetEventProfilingInfo(event[i], CL_PROFILING_COMMAND_END, sizeof at[i], &at[i], nullptr) == CL_SUCCESS;
      if (event[i]) f.ReleaseEvent(event[i]);
    }
    return ok ? double(at[1] - at[0]) / double(calls) : -1;
  }
  std::string kernel() const override { return "clblast"; }
};

class ClBlast : public Contestant {
 public:
  Functions f;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  bool half = false;
  ~ClBlast() override {
    if (queue) f.ReleaseCommandQueue(queue);
    if (context) f.ReleaseContext(context);
  }
  const char* name() const override { return "clblast"; }
  bool open(const skua_device_info& wanted, std::string* why) {
    void *const cl = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL), *const blast = dlopen("libclblast.so.1",
                                                                                            RTLD_NOW | RTLD_LOCAL);
    if (!cl || !blast) return *why = dlerror(), false;
    bool found = true;
#define BENCH_LOAD(name) found = (f.name = reinterpret_cast<decltype(f.name)>(dlsym(cl, "cl" #name))) && found;
    BENCH_CL(BENCH_LOAD)
    f.sgemm = reinterpret_cast<Sgemm>(dlsym(blast, "CLBlastSgemm"));
    f.hgemm = reinterpret_cast<Hgemm>(dlsym(blast, "CLBlastHgemm"));
    if (!found || !f.sgemm || !f.hgemm) return *why = "a function is missing", false;
    cl_platform_id platforms[16];
    cl_uint n_platforms = 0;
    f.GetPlatformIDs(16, platforms, &n_platforms);
    for (cl_uint p = 0; p < std::min(n_platforms, 16u); ++p) {
      cl_device_id devices[16];
      cl_uint n = 0;
      if (f.GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &n) != CL_SUCCESS) continue;
      for (cl_uint d = 0; d < std::min(n, 16u); ++d) {
        char name[256] = "", extensions[8192] = "";
        f.GetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
        if (strncmp(name, wanted.name, sizeof wanted.name - 1)) continue;
        f.GetDeviceInfo(devices[d], CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, nullptr);
        half = strstr(extensions, "cl_khr_fp16");
        context = f.CreateContext(nullptr, 1, &devices[d], nullptr, nullptr, nullptr);
        if (context) queue = f.CreateCommandQueue(context, devices[d], CL_QUEUE_PROFILING_ENABLE, nullptr);
        return queue || (*why = "no queue on this device", false);
      }
    }
    return *why = "OpenCL has no such device", false;
  }
  cl_mem buffer(size_t bytes, const void* from) {
    cl_mem made = f.CreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr);
    if (made && from) f.EnqueueWriteBuffer(queue, made, CL_TRUE, 0, bytes, from, 0, nullptr, nullptr);
    return made;
  }
  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View, View y,
                                    std::string* why) override {
    DenseProduct product;
    if (!dense_product(l, weights, bias, half, &product, why)) return nullptr;
    auto made = std::make_unique<ClBlastLayer>(f, queue, l, y);
    made->a = buffer(product.a_bytes, x.data);
    made->b = buffer(product.b.size(), product.b.data());
    made->c = buffer(product.c_bytes, nullptr);
    if (bias) made->bias = buffer(product.c_bytes, product.bias.data());
    if (!made->a || !made->b || !made->c || (bias && !made->bias) || !made->once() || f.Finish(queue) != CL_SUCCESS)
      return *why = "a call failed", nullptr;
    return made;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_clblast(const skua_device_info& device, std::string* why) {
  auto made = std::make_unique<ClBlast>();
  return made->open(device, why) ? std::move(made) : nullptr;
}

}  // namespace bench
#else
namespace bench {
std::unique_ptr<Contestant> make_clblast(const skua_device_info&, std::string*) { return nullptr; }
}  // namespace bench
#endif
