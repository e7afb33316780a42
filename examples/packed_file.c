/* Packs weights once, writes them to a file, maps the file, and runs from the mapping: no copy, shared between
 * processes. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 300, K = 200, M = 5 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, skua_error_text());
  return 1;
}

static skua_status multiply(const skua_op* op, const float* a, float* c) {
  const skua_tensor shape = skua_tensor_2d(SKUA_DTYPE_F32, M, K);
  const skua_buffer in = skua_host_buffer(a), out = skua_host_buffer(c);
  skua_plan* plan;
  skua_status status = skua_op_plan(op, &shape, 1, NULL, 0, &plan);
  if (status) return status;
  void* workspace = NULL;
  const size_t size = skua_plan_workspace(plan, 1);
  if (size && posix_memalign(&workspace, SKUA_WORKSPACE_ALIGNMENT, size)) status = SKUA_STATUS_OUT_OF_MEMORY;
  else status = skua_plan_run(plan, &in, 1, &out, 1, workspace, size, NULL);
  free(workspace);
  skua_plan_destroy(plan);
  return status;
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "weights.skua";
  static float b[K * N], bias[N], a[M * K], before[M * N], after[M * N];
  for (int i = 0; i < K * N; ++i) b[i] = (float)(rand() % 200 - 100) / 100.0f;
  for (int i = 0; i < M * K; ++i) a[i] = (float)(rand() % 200 - 100) / 100.0f;
  for (int i = 0; i < N; ++i) bias[i] = (float)i;

  skua_context* context;
  if (skua_context_create(NULL, &context)) return fail("context");
  skua_gemm_desc desc = SKUA_GEMM_DESC_INIT;
  desc.n = N;
  desc.k = K;
  desc.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
  skua_op* op;
  if (skua_gemm_create(context, &desc, b, bias, &op)) return fail("create");
  if (multiply(op, a, before)) return fail("run");

  const size_t size = skua_op_packed_size(op);
  void* blob = NULL;
  if (posix_memalign(&blob, SKUA_PACKED_ALIGNMENT, size)) return 1;
  if (skua_op_packed_write(op, blob, size)) return fail("packed_write");
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(blob, 1, size, file) != size || fclose(file)) {
    perror(path);
    return 1;
  }
  free(blob);
  skua_op_destroy(op);

  const int fd = open(path, O_RDONLY);
  void* mapped = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    perror(path);
    return 1;
  }
  if (skua_op_create_packed(context, mapped, size, &op)) return fail("create_packed");
  if (multiply(op, a, after)) return fail("run");
  const int same = !memcmp(before, after, sizeof before);
  printf("%zu bytes of packed weights mapped from %s: %s\n", size, path, same ? "the same bits" : "DIFFERENT");
  skua_op_destroy(op);
  skua_context_destroy(context);
  munmap(mapped, size);
  close(fd);
  unlink(path);
  return !same;
}
