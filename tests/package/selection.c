/* A build with GEMM alone, f32 alone and portable C++ alone: what was left out answers UNSUPPORTED and says so. */
#include <skua/skua.h>
#include <stdio.h>
#include <string.h>

static int fail(const char* what) {
  fprintf(stderr, "%s (%s)\n", what, skua_error_text());
  return 1;
}

int main(void) {
  skua_context* context;
  if (skua_context_create(NULL, &context) != SKUA_STATUS_OK) return fail("no context");

  const float a[2] = {2, 3}, b[2] = {5, 7};
  float c[1] = {0};
  if (skua_gemm_f32(context, 1, 1, 2, a, 2, b, 1, c, 1, NULL) != SKUA_STATUS_OK || c[0] != 31)
    return fail("the GEMM is wrong");

  skua_conv2d_desc desc = SKUA_CONV2D_DESC_INIT;
  desc.in_channels = desc.out_channels = 1;
  skua_op* op = NULL;
  if (skua_conv2d_create(context, &desc, a, NULL, &op) != SKUA_STATUS_UNSUPPORTED || op)
    return fail("a convolution that was left out");
  if (!strstr(skua_error_text(), "conv")) return fail("the text does not name the operator");

  skua_gemm_desc half = SKUA_GEMM_DESC_INIT;
  half.a_type = half.b_type = half.c_type = SKUA_DTYPE_F16;
  if (skua_gemm_create(context, &half, NULL, NULL, &op) != SKUA_STATUS_UNSUPPORTED || op)
    return fail("a product of a type that was left out");
  if (!strstr(skua_error_text(), "f16") || !strstr(skua_error_text(), "SKUA_TYPES"))
    return fail("the text does not name the type and what left it out");

  if (skua_kernel_count() == 0) return fail("no kernel");
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    skua_kernel_info kernel;
    if (skua_kernel_at(i, &kernel) != SKUA_STATUS_OK || strcmp(kernel.isa, "scalar") != 0)
      return fail("a kernel beyond scalar");
  }
  skua_context_destroy(context);
  puts("ok");
  return 0;
}
