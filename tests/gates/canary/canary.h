// A small GEMM tile whose number of accumulators decides whether it fits the registers.
#pragma once
#include <stddef.h>

typedef float Vec __attribute__((vector_size(SKUA_CANARY_VECTOR), aligned(4), may_alias));
using KernelFn = void (*)(size_t k, const float* a, const float* b, float* c);

// c[ROWS][2 vectors] += a[k][ROWS] * b[k][2 vectors]
#define SKUA_CANARY_TILE(name, ROWS)                                              \
  void name(size_t k, const float* a, const float* b, float* c) {                 \
    Vec acc[ROWS][2] = {};                                                        \
    for (; k; --k, a += (ROWS), b += 2 * sizeof(Vec) / sizeof(float)) {           \
      const Vec b0 = ((const Vec*)b)[0], b1 = ((const Vec*)b)[1];                 \
      _Pragma("GCC unroll 32") for (int i = 0; i < (ROWS); ++i) {                 \
        acc[i][0] += a[i] * b0;                                                   \
        acc[i][1] += a[i] * b1;                                                   \
      }                                                                           \
    }                                                                             \
    _Pragma("GCC unroll 32") for (int i = 0; i < (ROWS); ++i) {                   \
      ((Vec*)c)[2 * i] = acc[i][0];                                               \
      ((Vec*)c)[2 * i + 1] = acc[i][1];                                           \
    }                                                                             \
  }
