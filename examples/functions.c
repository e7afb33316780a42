/* Functions without weights in plain C: a GELU in place, then a softmax of each row, checked against the C library. An
 * operator is made once, planned for a shape, and run by any number of threads. */
#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 12, COLUMNS = 333 };

#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != SKUA_STATUS_OK) {                                                        \
      fprintf(stderr, "%s\n", skua_error_text());                                          \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

/* Plans and runs an operator of one input. Engines keep the plan, and the workspace. */
static void run(skua_op* op, const float* x, float* y) {
  const skua_tensor shape = skua_tensor_2d(SKUA_DTYPE_F32, ROWS, COLUMNS);
  skua_plan* plan;
  CHECK(skua_op_plan(op, &shape, 1, NULL, 0, &plan));
  const size_t size = skua_plan_workspace(plan, 1);
  void* workspace =
      aligned_alloc(SKUA_WORKSPACE_ALIGNMENT, (size / SKUA_WORKSPACE_ALIGNMENT + 1) * SKUA_WORKSPACE_ALIGNMENT);
  const skua_buffer in = skua_host_buffer(x), out = skua_host_buffer(y);
  CHECK(skua_plan_run(plan, &in, 1, &out, 1, workspace, size, NULL));
  free(workspace);
  skua_plan_destroy(plan);
}

int main(void) {
  static float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
  static double expected[ROWS * COLUMNS];
  for (int r = 0; r < ROWS; ++r) {
    double sum = 0;
    for (int i = r * COLUMNS; i < (r + 1) * COLUMNS; ++i) {
      x[i] = 8 * (float)rand() / (float)RAND_MAX - 4;
      expected[i] = exp((double)x[i] / 2 * (1 + erf((double)x[i] / sqrt(2))));
      sum += expected[i];
    }
    for (int i = r * COLUMNS; i < (r + 1) * COLUMNS; ++i) expected[i] /= sum;
  }

  skua_context* context;
  skua_op *gelu, *softmax;
  CHECK(skua_context_create(NULL, &context));
  skua_unary_desc function = SKUA_UNARY_DESC_INIT;
  function.kind = SKUA_UNARY_GELU;
  CHECK(skua_unary_create(context, &function, &gelu));
  skua_softmax_desc rows = SKUA_SOFTMAX_DESC_INIT; /* of the last axis */
  CHECK(skua_softmax_create(context, &rows, &softmax));

  run(gelu, x, x);
  run(softmax, x, y);
  double worst = 0;
  for (int i = 0; i < ROWS * COLUMNS; ++i) {
    const double error = fabs((double)y[i] / expected[i] - 1);
    if (error > worst) worst = error;
  }
  printf("skua %s on %s: softmax(gelu(x)) of %d x %d, largest relative error %.2g\n", skua_version_string(),
         skua_context_isa(context), ROWS, COLUMNS, worst);
  skua_op_destroy(gelu);
  skua_op_destroy(softmax);
  skua_context_destroy(context);
  return worst < 1e-5 ? 0 : 1;
}
