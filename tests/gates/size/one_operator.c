/* A program that needs one f32 convolution, as a size-conscious application would write it. */
#include <skua/conv.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  skua_context* context;
  skua_op* op;
  skua_plan* plan;
  skua_conv2d_desc desc = SKUA_CONV2D_DESC_INIT;
  desc.kernel_h = desc.kernel_w = 3;
  desc.in_channels = desc.out_channels = 4;
  desc.padding.top = desc.padding.left = desc.padding.bottom = desc.padding.right = 1;

  float weights[4 * 3 * 3 * 4], x[8 * 8 * 4], y[8 * 8 * 4];
  for (size_t i = 0; i < sizeof weights / sizeof *weights; ++i) weights[i] = 1.0f;
  for (size_t i = 0; i < sizeof x / sizeof *x; ++i) x[i] = 1.0f;
  const skua_tensor input = skua_tensor_4d(SKUA_DTYPE_F32, 1, 8, 8, 4);
  if (skua_context_create(NULL, &context) || skua_conv2d_create(context, &desc, weights, NULL, &op) ||
      skua_op_plan(op, &input, 1, NULL, 0, &plan)) {
    printf("%s\n", skua_error_text());
    return 1;
  }
  const size_t size = skua_plan_workspace(plan, 1);
  void* workspace = size ? aligned_alloc(SKUA_WORKSPACE_ALIGNMENT, (size + 63) / 64 * 64) : NULL;
  const skua_buffer in = skua_host_buffer(x), out = skua_host_buffer(y);
  if (skua_plan_run(plan, &in, 1, &out, 1, workspace, size, NULL)) {
    printf("%s\n", skua_error_text());
    return 1;
  }
  printf("corner %g, middle %g\n", (double)y[0], (double)y[4 * (8 * 4 + 4)]);
  const int good = y[0] > 15.999f && y[0] < 16.001f && y[4 * (8 * 4 + 4)] > 35.999f && y[4 * (8 * 4 + 4)] < 36.001f;
  free(workspace);
  skua_plan_destroy(plan);
  skua_op_destroy(op);
  skua_context_destroy(context);
  return good ? 0 : 1;
}
