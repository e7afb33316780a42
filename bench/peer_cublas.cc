// NVIDIA's own matrix products, where its libraries are: opened at run time, by prototypes of our own. f32 in f32 (no
// TF32), f16 summed in f32.
#include "device_side.h"

#ifdef BENCH_GPU
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

namespace bench {
namespace {

using Pointer = unsigned long long;  // CUdeviceptr
struct Functions {
  int (*Init)(unsigned) = nullptr;
  int (*DeviceGetCount)(int*) = nullptr;
  int (*DeviceGet)(int*, int) = nullptr;
  int (*DeviceGetName)(char*, int, int) = nullptr;
  int (*DevicePrimaryCtxRetain)(void**, int) = nullptr;
  int (*DevicePrimaryCtxRelease)(int) = nullptr;
  int (*CtxSetCurrent)(void*) = nullptr;
  int (*MemAlloc)(Pointer*, size_t) = nullptr;
  int (*MemFree)(Pointer) = nullptr;
  int (*MemcpyHtoD)(Pointer, const void*, size_t) = nullptr;
  int (*MemcpyDtoH)(void*, Pointer, size_t) = nullptr;
  int (*MemcpyDtoDAsync)(Pointer, Pointer, size_t, void*) = nullptr;
  int (*EventCreate)(void**, unsigned) = nullptr;
  int (*EventRecord)(void*, void*) = nullptr;
  int (*EventSynchronize)(void*) = nullptr;
  int (*EventElapsedTime)(float*, void*, void*) = nullptr;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*version)(void*, int*) = nullptr;
  int (*gemm)(void*, int, int, int, int, int, const void*, Pointer, int, int, Pointer, int, int, const void*, Pointer,
              int, int, int, int) = nullptr;
};
constexpr int kF32 = 0, kF16 = 2, kComputeF32 = 68, kDefault = -1;

class CublasLayer : public Prepared {
 public:
  const Functions& f;
  void* handle;
  Pointer a = 0, b = 0, c = 0, bias = 0;
  void* events[2] = {};
  Layer layer;
  View y;
  CublasLayer(const Functions& functions, void* h, const Layer& l, View to)
      : f(functions), handle(h), layer(l), y(to) {}
  ~CublasLayer() override {
    for (Pointer p : {a, b, c, bias})
      if (p) f.MemFree(p);
  }
  size_t c_bytes() const { return layer.m * layer.n * size_of(layer.type); }
  // Columns first: C^T = B^T A^T.
  bool once() {
    const float one = 1, beta = bias ? 1 : 0;
    const int m = int(layer.m), n = int(layer.n), k = int(layer.k), type = layer.type == SKUA_DTYPE_F16 ? kF16 : kF32;
    if (bias && f.MemcpyDtoDAsync(c, bias, c_bytes(), nullptr)) return false;
    return f.gemm(handle, 0, 0, n, m, k, &one, b, type, n, a, type, k, &beta, c, type, n, kComputeF32, kDefault) == 0;
  }
  bool wait() { return f.EventRecord(events[1], nullptr) == 0 && f.EventSynchronize(events[1]) == 0; }
  void run() override {
    once();
    wait();
  }
  void fetch() override { f.MemcpyDtoH(y.data, c, c_bytes()); }
  double device_ns(size_t calls) override {
    float ms = 0;
    bool ok = f.EventRecord(events[0], nullptr) == 0;
    for (size_t i = 0; ok && i < calls; ++i) ok = once();
    ok = ok && wait() && f.EventElapsedTime(&ms, events[0], events[1]) == 0;
    return ok ? 1e6 * double(ms) / double(calls) : -1;
  }
  std::string kernel() const override { return "cublas"; }
};

class Cublas : public Contestant {
 public:
  Functions f;
  void *context = nullptr, *handle = nullptr;
  int device = 0;
  std::string text;
  ~Cublas() override {
    if (handle) f.destroy(handle);
    if (context) f.DevicePrimaryCtxRelease(device);
  }
  const char* name() const override { return "cublas"; }
  std::string version() const override { return text; }
  bool open(const skua_device_info& wanted, std::string* why) {
    void *const cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *blas = nullptr;
    if (const char* named = getenv("SKUA_CUBLAS_LIBRARY")) blas = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"})
      if (!blas) blas = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!cuda || !blas) return *why = cuda ? "libcublas.so cannot be opened" : "libcuda.so.1 cannot be opened", false;
    bool found = true;
    const auto load = [&](void* from, auto& to, const char* symbol) {
      to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(dlsym(from, symbol));
      found = found && to;
    };
    load(cuda, f.Init, "cuInit");
    load(cuda, f.DeviceGetCount, "cuDeviceGetCount");
    load(cuda, f.DeviceGet, "cuDeviceGet");
    load(cuda, f.DeviceGetName, "cuDeviceGetName");
    load(cuda, f.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    load(cuda, f.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    load(cuda, f.CtxSetCurrent, "cuCtxSetCurrent");
    load(cuda, f.MemAlloc, "cuMemAlloc_v2");
    load(cuda, f.MemFree, "cuMemFree_v2");
    load(cuda, f.MemcpyHtoD, "cuMemcpyHtoD_v2");
    load(cuda, f.MemcpyDtoH, "cuMemcpyDtoH_v2");
    load(cuda, f.MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
    load(cuda, f.EventCreate, "cuEventCreate");
    load(cuda, f.EventRecord, "cuEventRecord");
    load(cuda, f.EventSynchronize, "cuEventSynchronize"); load(cuda, f.EventElapsedTime, "cuEventElapsedTime");
    load(blas, f.create, "cublasCreate_v2");
    load(blas, f.destroy, "cublasDestroy_v2");
    load(blas, f.version, "cublasGetVersion_v2");
    load(blas, f.gemm, "cublasGemmEx");
    if (!found) return *why = "a function is missing", false;
    int count = 0;
    if (f.Init(0) || f.DeviceGetCount(&count)) return *why = "CUDA does not start", false;
    for (int i = 0; i < count; ++i) {
      char name[256] = "";
      if (f.DeviceGet(&device, i) || f.DeviceGetName(name, sizeof name, device) ||
          strncmp(name, wanted.name, strlen(name)))
        continue;
      if (f.DevicePrimaryCtxRetain(&context, device) || f.CtxSetCurrent(context) || f.create(&handle))
        return *why = "no context on this device", false;
      int number = 0;
      f.version(handle, &number);
      text = std::to_string(number);
      return true;
    }
    return *why = "CUDA has no such device", false;
  }
  Pointer buffer(size_t bytes, const void* from) {
    Pointer made = 0;
    if (f.MemAlloc(&made, bytes)) return 0;
    if (from) f.MemcpyHtoD(made, from, bytes);
    return made;
  }
  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View, View y,
                                    std::string* why) override {
    DenseProduct product;
    if (!dense_product(l, weights, bias, true, &product, why)) return nullptr;
    auto made = std::make_unique<CublasLayer>(f, handle, l, y);
    made->a = buffer(product.a_bytes, x.data);
    made->b = buffer(product.b.size(), product.b.data());
    made->c = buffer(product.c_bytes, nullptr);
    if (bias) made->bias = buffer(product.c_bytes, product.bias.data());
    if (!made->a || !made->b || !made->c || (bias && !made->bias) || f.EventCreate(&made->events[0], 0) ||
        f.EventCreate(&made->events[1], 0) || !made->once() || !made->wait())
      return *why = "a call failed", nullptr;
    return made;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_cublas(const skua_device_info& device, std::string* why) {
  auto made = std::make_unique<Cublas>();
  return made->open(device, why) ? std::move(made) : nullptr;
}

}  // namespace bench
#else
namespace bench {
std::unique_ptr<Contestant> make_cublas(const skua_device_info&, std::string*) { return nullptr; }
}  // namespace bench
#endif
