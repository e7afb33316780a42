/* Causal attention of several heads in plain C: softmax(Q K^T / sqrt(D) + mask) V, checked against loops. Heads lie
 * side by side in a row, as a layer writes them: they are tensors with strides, nothing is copied. */
#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 37, HEADS = 4, D = 32, ROW = HEADS * D };

#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != SKUA_STATUS_OK) {                                                        \
      fprintf(stderr, "%s\n", skua_error_text());                                          \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

/* Plans and runs an operator. Engines keep the plan, and the workspace. */
static void run(skua_op* op, int inputs, const skua_tensor* shapes, const skua_buffer* in, const skua_tensor* shape,
                void* y) {
  skua_plan* plan;
  CHECK(skua_op_plan(op, shapes, (size_t)inputs, shape, 1, &plan));
  const size_t size = skua_plan_workspace(plan, 1);
  void* workspace =
      aligned_alloc(SKUA_WORKSPACE_ALIGNMENT, (size / SKUA_WORKSPACE_ALIGNMENT + 1) * SKUA_WORKSPACE_ALIGNMENT);
  const skua_buffer out = skua_host_buffer(y);
  CHECK(skua_plan_run(plan, in, (size_t)inputs, &out, 1, workspace, size, NULL));
  free(workspace);
  skua_plan_destroy(plan);
}

static void by_loops(const float* q, const float* k, const float* v, int head, int token, double* y) {
  double p[TOKENS], sum = 0;
  for (int j = 0; j <= token; ++j) {
    double s = 0;
    for (int i = 0; i < D; ++i) s += (double)q[token * ROW + head * D + i] * k[j * ROW + head * D + i];
    sum += p[j] = exp(s / sqrt(D));
  }
  for (int i = 0; i < D; ++i) {
    y[i] = 0;
    for (int j = 0; j <= token; ++j) y[i] += p[j] / sum * v[j * ROW + head * D + i];
  }
}

int main(void) {
  static float q[TOKENS * ROW], k[TOKENS * ROW], v[TOKENS * ROW], y[TOKENS * ROW], mask[TOKENS * TOKENS],
      scores[HEADS * TOKENS * TOKENS];
  for (int i = 0; i < TOKENS * ROW; ++i) {
    q[i] = 4 * (float)rand() / (float)RAND_MAX - 2;
    k[i] = 4 * (float)rand() / (float)RAND_MAX - 2;
    v[i] = 4 * (float)rand() / (float)RAND_MAX - 2;
  }
  for (int i = 0; i < TOKENS; ++i)
    for (int j = 0; j < TOKENS; ++j) mask[i * TOKENS + j] = j > i ? -INFINITY : 0;

  /* [HEADS][TOKENS][D] of memory that is [TOKENS][HEADS][D]; scores; the mask, the same for all heads. */
  skua_tensor heads = skua_tensor_3d(SKUA_DTYPE_F32, HEADS, TOKENS, D);
  heads.stride[0] = D, heads.stride[1] = ROW, heads.stride[2] = 1;
  const skua_tensor square = skua_tensor_3d(SKUA_DTYPE_F32, HEADS, TOKENS, TOKENS);
  skua_tensor masks = square;
  masks.stride[0] = 0, masks.stride[1] = TOKENS, masks.stride[2] = 1;

  skua_context* context;
  skua_op *score, *softmax, *mix;
  CHECK(skua_context_create(NULL, &context));
  skua_gemm_desc product = SKUA_GEMM_DESC_INIT; /* of two inputs */
  CHECK(skua_gemm_create(context, &product, NULL, NULL, &mix));
  product.transpose_b = true;
  product.alpha = 1 / sqrtf(D);
  product.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  CHECK(skua_gemm_create(context, &product, NULL, NULL, &score));
  const skua_softmax_desc rows = SKUA_SOFTMAX_DESC_INIT; /* of the last axis */
  CHECK(skua_softmax_create(context, &rows, &softmax));

  const skua_tensor for_scores[] = {heads, heads, masks}, for_mix[] = {square, heads};
  const skua_buffer qk[] = {skua_host_buffer(q), skua_host_buffer(k), skua_host_buffer(mask)},
                    pv[] = {skua_host_buffer(scores), skua_host_buffer(v)};
  run(score, 3, for_scores, qk, &square, scores);
  run(softmax, 1, &square, pv, &square, scores); /* in place */
  run(mix, 2, for_mix, pv, &heads, y);

  double worst = 0;
  for (int h = 0; h < HEADS; ++h)
    for (int t = 0; t < TOKENS; ++t) {
      double expected[D];
      by_loops(q, k, v, h, t, expected);
      for (int i = 0; i < D; ++i) {
        const double error = fabs((double)y[t * ROW + h * D + i] - expected[i]);
        if (error > worst) worst = error;
      }
    }
  printf("skua %s on %s: attention of %d heads over %d tokens, largest error %.2g\n", skua_version_string(),
         skua_context_isa(context), HEADS, TOKENS, worst);
  skua_op_destroy(score);
  skua_op_destroy(softmax);
  skua_op_destroy(mix);
  skua_context_destroy(context);
  return worst < 1e-5 ? 0 : 1;
}
