// Sums in an array whose loop is not taken apart: the compiler keeps them on the stack, behind a pointer.
#include "canary.h"

namespace {
void tile(size_t k, const float* a, const float* b, float* c) {
  Vec acc[6] = {};
  for (; k; --k, a += 6, b += sizeof(Vec) / sizeof(float)) {
    const Vec b0 = *(const Vec*)b;
    _Pragma("GCC unroll 1") for (int i = 0; i < 6; i += 2) {
      acc[i] += a[i] * b0;
      acc[i + 1] += a[i + 1] * b0;
    }
  }
  _Pragma("GCC unroll 8") for (int i = 0; i < 6; ++i) ((Vec*)c)[i] = acc[i];
}
}  // namespace
extern const KernelFn canary_kernels[];
const KernelFn canary_kernels[] = {tile};
