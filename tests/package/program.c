/* Built outside the source tree against an installed Skua, by a C compiler alone. */
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const float a[2 * 3] = {1, 2, 3, 4, 5, 6}, b[3 * 2] = {7, 8, 9, 10, 11, 12}, expected[2 * 2] = {58, 64, 139, 154};
  float c[2 * 2] = {0};
  skua_context* context;
  if (skua_version() >> 16 != SKUA_VERSION_MAJOR || strcmp(skua_version_string(), SKUA_VERSION_STRING) != 0) {
    fprintf(stderr, "headers of %s, library %s\n", SKUA_VERSION_STRING, skua_version_string());
    return 1;
  }
  if (skua_context_create(NULL, &context) != SKUA_STATUS_OK ||
      skua_gemm_f32(context, 2, 2, 3, a, 3, b, 2, c, 2, NULL) != SKUA_STATUS_OK) {
    fprintf(stderr, "%s\n", skua_error_text());
    return 1;
  }
  for (int i = 0; i < 4; ++i) {
    if (c[i] != expected[i]) {
      fprintf(stderr, "c[%d] is %g, not %g\n", i, c[i], expected[i]);
      return 1;
    }
  }
  printf("skua %s on %s: ok\n", skua_version_string(), skua_context_isa(context));
  skua_context_destroy(context);
  return 0;
}
