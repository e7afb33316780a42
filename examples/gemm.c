/* A matrix product in plain C: C = A * B with random A and B, checked against three loops. Links with a C compiler; no
 * C++ library is needed. */
#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  enum { M = 70, N = 90, K = 110 };
  static float a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M * K; ++i) a[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  for (int i = 0; i < K * N; ++i) b[i] = (float)rand() / (float)RAND_MAX - 0.5f;

  skua_context* context;
  if (skua_context_create(NULL, &context) != SKUA_STATUS_OK ||
      skua_gemm_f32(context, M, N, K, a, K, b, N, c, N, NULL) != SKUA_STATUS_OK) {
    fprintf(stderr, "%s\n", skua_error_text());
    return 1;
  }
  double worst = 0;
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) sum += (double)a[i * K + k] * (double)b[k * N + j];
      const double error = fabs(sum - (double)c[i * N + j]);
      if (error > worst) worst = error;
    }
  printf("skua %s on %s: %d x %d x %d, largest error %.2g\n", skua_version_string(), skua_context_isa(context), M, N, K,
         worst);
  skua_context_destroy(context);
  return worst < 1e-4 ? 0 : 1;
}
