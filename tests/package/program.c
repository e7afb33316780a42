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
  /* An operator of every kind that a convolution may choose must link too: a C program has no libstdc++ and no libm. */
  const float ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  float sums[9] = {0};
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.in_channels = d.out_channels = 1;
  d.padding.mode = SKUA_PADDING_SAME_UPPER;
  const skua_tensor image = skua_tensor_4d(SKUA_DTYPE_F32, 1, 3, 3, 1);
  skua_op* op = NULL;
  skua_plan* plan = NULL;
  static char workspace[1 << 16] __attribute__((aligned(SKUA_WORKSPACE_ALIGNMENT)));
  const skua_buffer in = skua_host_buffer(ones), out = skua_host_buffer(sums);
  if (skua_conv2d_create(context, &d, ones, NULL, &op) != SKUA_STATUS_OK ||
      skua_op_plan(op, &image, 1, NULL, 0, &plan) != SKUA_STATUS_OK ||
      skua_plan_run(plan, &in, 1, &out, 1, workspace, sizeof workspace, NULL) != SKUA_STATUS_OK) {
    fprintf(stderr, "%s\n", skua_error_text());
    return 1;
  }
  if (sums[0] != 4 || sums[1] != 6 || sums[4] != 9) {
    fprintf(stderr, "sums of neighbours are %g, %g, %g, not 4, 6, 9\n", sums[0], sums[1], sums[4]);
    return 1;
  }
  skua_plan_destroy(plan);
  skua_op_destroy(op);
  printf("skua %s on %s: ok\n", skua_version_string(), skua_context_isa(context));
  skua_context_destroy(context);
  return 0;
}
