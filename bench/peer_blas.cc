// OpenBLAS and BLIS. Both export cblas_sgemm, so each is opened when the program starts, with its symbols kept to
// itself.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "contestant.h"
#include "timing.h"

namespace bench {
namespace {

using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);
constexpr int kRowMajor = 101, kNoTranspose = 111, kTranspose = 112;

class BlasLayer : public Prepared {
 public:
  Sgemm sgemm;
  int m, n, k;
  const float *a, *bias, *second;  // second: B, transposed; NULL: b
  Memory b;
  float* c;
  void run() override {
    if (bias)
      for (int row = 0; row < m; ++row) memcpy(c + size_t(row) * size_t(n), bias, size_t(n) * sizeof(float));
    sgemm(kRowMajor, kNoTranspose, second ? kTranspose : kNoTranspose, m, n, k, 1.0f, a, k, second ? second : b.data(),
          second ? k : n, bias ? 1.0f : 0.0f, c, n);
  }
};

class Blas : public Contestant {
 public:
  std::string title, text;
  Sgemm sgemm = nullptr;
  void (*set_threads)(int) = nullptr;   // OpenBLAS
  void (*set_ways)(long) = nullptr;     // BLIS
  void (*start)() = nullptr;            // OpenBLAS's own threads, in the build that has them
  int (*stop)() = nullptr;
  const char* name() const override { return title.c_str(); }
  void use_threads(int threads) override {
    if (set_threads) set_threads(threads);
    if (set_ways) set_ways(threads);
  }
  void wake() override { start ? start() : wake_openmp(); }
  void park() override { stop ? void(stop()) : park_openmp(); }
  std::string version() const override { return text; }
  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second,
                                    View y, std::string* why) override {
    if (l.type != SKUA_DTYPE_F32 || l.quantized_weights()) {
      *why = "f32 only";
      return nullptr;
    }
    if (l.op != Op::gemm || l.activation != SKUA_ACTIVATION_NONE || l.residual) {
      *why = "matrix products only";
      return nullptr;
    }
    auto made = std::make_unique<BlasLayer>();
    made->sgemm = sgemm;
    made->m = int(l.m), made->n = int(l.n), made->k = int(l.k);
    made->a = x.data;
    made->second = l.two_inputs ? second.data : nullptr;
    made->b.resize(l.weight_count());
    std::copy_n(weights, l.weight_count(), made->b.data());
    made->bias = bias;
    made->c = y.data;
    return made;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_blas(const char* name, std::string* why) {
  const bool blis = !strcmp(name, "blis");
  std::string wanted;
  const char* const variable = blis ? "BLIS_ARCH_TYPE" : "OPENBLAS_CORETYPE";
  if (!isa_cap.empty()) {
    struct Cap {
      const char *isa, *openblas, *blis;
    };
    static const Cap caps[] = {
        {"avx2", "Haswell", "haswell"}, {"sse41", "Penryn", "penryn"}, {"sse2", nullptr, "generic"}};
    const char* core = nullptr;
    for (const Cap& c : caps)
      if (isa_cap == c.isa) core = blis ? c.blis : c.openblas;
    if (!core) {
      *why = "cannot be capped at " + isa_cap;
      return nullptr;
    }
    wanted = core;
  }
#if defined(__x86_64__)
  // Both pick their kernels by lists of models that end before today's: without a hint they take SSE, AVX2 or no vector
  // kernels at all on a CPU with AVX-512, Intel's or AMD's (1024x1024x1024 on Zen 5: BLIS 39 GFLOP/s without, 204 with
  // it; OpenBLAS 215 either way).
  else if (__builtin_cpu_supports("avx512dq")) wanted = blis ? "skx" : "SkylakeX";
#endif
  // What an environment has for other programs would have half of the kernels' speed here (Haswell's on Zen 5).
  unsetenv(variable);
  if (!wanted.empty() && !blis) setenv(variable, wanted.c_str(), 1);
  void* library = dlopen(blis ? "libblis.so.4" : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *why = dlerror();
    return nullptr;
  }
  auto made = std::make_unique<Blas>();
  made->title = name;
  made->sgemm = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (!made->sgemm) {
    *why = "no cblas_sgemm";
    return nullptr;
  }
  if (blis) {
    // Its variable takes a number, which it reads on first use; the numbers differ from release to release.
    const auto name_of = reinterpret_cast<const char* (*)(int)>(dlsym(library, "bli_arch_string"));
    const auto chosen = reinterpret_cast<int (*)()>(dlsym(library, "bli_arch_query_id"));
    for (int id = 0; !wanted.empty() && name_of && id < 20; ++id)
      if (wanted == name_of(id)) setenv(variable, std::to_string(id).c_str(), 1);
    if (auto init = reinterpret_cast<void (*)()>(dlsym(library, "bli_init"))) init();
    const std::string arch = name_of && chosen ? name_of(chosen()) : "";
    if (!isa_cap.empty() && arch != wanted) {
      *why = "cannot be capped at " + isa_cap;
      return nullptr;
    }
    made->set_ways = reinterpret_cast<void (*)(long)>(dlsym(library, "bli_thread_set_num_threads"));
    if (auto get = reinterpret_cast<const char* (*)()>(dlsym(library, "bli_info_get_version_str")))
      made->text = get() + std::string(" ") + arch;
  } else {
    made->set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    made->start = reinterpret_cast<void (*)()>(dlsym(library, "blas_thread_init"));
    made->stop = reinterpret_cast<int (*)()>(dlsym(library, "blas_thread_shutdown_"));
    if (!made->start || !made->stop) made->start = nullptr, made->stop = nullptr;
    if (auto get = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_config"))) made->text = get();
    if (const size_t space = made->text.find(' ', 9); space != std::string::npos) made->text.resize(space);
    if (made->text.rfind("OpenBLAS ", 0) == 0) made->text.erase(0, 9);
    if (auto core = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_corename")))
      made->text += std::string(" ") + core();
  }
  return made;
}

}  // namespace bench
