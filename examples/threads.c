/* Brings its own threads: an executor is one function. Here POSIX threads are started for each call; an engine hands
 * over its pool. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <skua/skua.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4 };

typedef struct {
  skua_task task;
  void* arg;
  size_t count;
  atomic_size_t next;
} work;
typedef struct {
  work* w;
  uint32_t worker;
} seat;

static void* take_tasks(void* p) {
  seat* s = p;
  for (size_t i; (i = atomic_fetch_add(&s->w->next, 1)) < s->w->count;) s->w->task(s->w->arg, i, s->worker);
  return NULL;
}

static void parallel_for(void* ctx, size_t count, skua_task task, void* arg) {
  (void)ctx;
  work w = {task, arg, count, 0};
  pthread_t threads[WORKERS];
  seat seats[WORKERS];
  uint32_t started = 0;
  for (uint32_t i = 0; i < WORKERS; ++i) seats[i] = (seat){&w, i};
  for (uint32_t i = 1; i < WORKERS && !pthread_create(&threads[i], NULL, take_tasks, &seats[i]); ++i) started = i;
  take_tasks(&seats[0]); /* this thread works too, so all tasks get done even if no thread could be started */
  for (uint32_t i = 1; i <= started; ++i) pthread_join(threads[i], NULL);
}

int main(void) {
  enum { H = 56, C = 64 };
  const skua_executor executor = {NULL, WORKERS, parallel_for};
  float* weights = calloc(9 * C * C, sizeof *weights);
  float* image = calloc((size_t)H * H * C, sizeof *image);
  float* out[2] = {calloc((size_t)H * H * C, sizeof(float)), calloc((size_t)H * H * C, sizeof(float))};
  if (!weights || !image || !out[0] || !out[1]) return 1;
  for (int i = 0; i < 9 * C * C; ++i) weights[i] = (float)(rand() % 200 - 100) / 1000.0f;
  for (int i = 0; i < H * H * C; ++i) image[i] = (float)(rand() % 200 - 100) / 100.0f;

  skua_context* context = NULL;
  skua_op* op = NULL;
  skua_plan* plan = NULL;
  skua_conv2d_desc desc = SKUA_CONV2D_DESC_INIT;
  desc.kernel_h = desc.kernel_w = 3;
  desc.in_channels = desc.out_channels = C;
  desc.padding.mode = SKUA_PADDING_SAME_UPPER;
  desc.hint_in_h = desc.hint_in_w = H;
  const skua_tensor input = skua_tensor_4d(SKUA_DTYPE_F32, 1, H, H, C);
  skua_status status = skua_context_create(NULL, &context);
  if (!status) status = skua_conv2d_create(context, &desc, weights, NULL, &op);
  if (!status) status = skua_op_plan(op, &input, 1, NULL, 0, &plan);
  if (status) {
    fprintf(stderr, "%s\n", skua_error_text());
    return 1;
  }
  const size_t size = skua_plan_workspace(plan, WORKERS);
  void* workspace = NULL;
  if (posix_memalign(&workspace, SKUA_WORKSPACE_ALIGNMENT, size ? size : 1)) return 1;
  const skua_buffer in = skua_host_buffer(image);
  for (int i = 0; i < 2; ++i) { /* first on this thread alone, then on four */
    const skua_buffer to = skua_host_buffer(out[i]);
    if (skua_plan_run(plan, &in, 1, &to, 1, workspace, size, i ? &executor : NULL)) {
      fprintf(stderr, "%s\n", skua_error_text());
      return 1;
    }
  }
  const int same = !memcmp(out[0], out[1], (size_t)H * H * C * sizeof(float));
  printf("%s, %d workers: %s\n", skua_plan_algorithm(plan), WORKERS,
         same ? "the same bits as one thread" : "DIFFERENT from one thread");
  skua_plan_destroy(plan);
  skua_op_destroy(op);
  skua_context_destroy(context);
  free(workspace); free(weights); free(image); free(out[0]); free(out[1]);
  return !same;
}
