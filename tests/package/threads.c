/* Built outside the source tree against an installed Skua and its adapter for pthreadpool. */
#include <pthreadpool.h>
#include <skua/pthreadpool.h>
#include <skua/skua.h>
#include <stdio.h>

enum { kRows = 256 };

int main(void) {
  static float a[kRows * kRows], b[kRows * kRows], c[kRows * kRows];
  for (int i = 0; i < kRows * kRows; ++i) a[i] = (float)(i % 7), b[i] = i / kRows == i % kRows ? 2.f : 0.f;
  skua_context* context;
  const pthreadpool_t pool = pthreadpool_create(2);
  const skua_executor executor = skua_executor_from_pthreadpool(pool);
  if (skua_context_create(NULL, &context) != SKUA_STATUS_OK ||
      skua_gemm_f32(context, kRows, kRows, kRows, a, kRows, b, kRows, c, kRows, &executor) != SKUA_STATUS_OK) {
    fprintf(stderr, "%s\n", skua_error_text());
    return 1;
  }
  for (int i = 0; i < kRows * kRows; ++i)
    if (c[i] != 2 * a[i]) {
      fprintf(stderr, "c[%d] is %g, not %g\n", i, c[i], 2 * a[i]);
      return 1;
    }
  skua_context_destroy(context);
  pthreadpool_destroy(pool);
  return executor.concurrency == 2 ? 0 : 1;
}
