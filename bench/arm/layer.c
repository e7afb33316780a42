/* One run of one layer, for bench/arm/count.py, which counts the instructions between count_begin() and count_end()
 * under qemu.
 *
 *   skua-arm-layer conv HEIGHT WIDTH IN OUT KERNEL TYPE | depthwise HEIGHT WIDTH CHANNELS KERNEL TYPE |
 *                  gemm M N K TYPE | dynamic M N K TYPE
 *
 * KERNEL: 3, or 3s2 with a stride of 2. As much padding as keeps the size (by a stride of 2 half of it), ReLU6. TYPE:
 * f32, f16, bf16, of the activations, weights and bias are f32; or s8 and u8, weights s8 and bias s32. dynamic: A of
 * TYPE is quantised row by row, weights s8. What is chosen follows the environment (SKUA_MAX_ISA, SKUA_KERNEL,
 * SKUA_CORE) and the core that qemu shows. Prints multiply-accumulates of the direct formula, algorithm, kernel.
 */
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void count_begin(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void count_end(void) { __asm__ volatile("nop" ::: "memory"); }

static void check(skua_status status) {
  if (status == SKUA_STATUS_OK) return;
  fprintf(stderr, "%s\n", skua_error_text());
  exit(1);
}

static void* zeros(size_t bytes) {
  void* p = NULL;
  if (posix_memalign(&p, 64, bytes + 64) != 0) exit(1);
  return memset(p, 0, bytes + 64);
}

static size_t elements(const skua_tensor* t) {
  size_t n = 1;
  for (uint32_t i = 0; i < t->rank; ++i) n *= t->shape[i];
  return n;
}

int main(int argc, char** argv) {
  const int conv = argc == 8 && !strcmp(argv[1], "conv"), depthwise = argc == 7 && !strcmp(argv[1], "depthwise"),
            dynamic = argc == 6 && !strcmp(argv[1], "dynamic"),
            gemm = dynamic || (argc == 6 && !strcmp(argv[1], "gemm"));
  if (!conv && !depthwise && !gemm) {
    fprintf(stderr,
            "skua-arm-layer conv HEIGHT WIDTH IN OUT KERNEL TYPE | depthwise HEIGHT WIDTH CHANNELS KERNEL TYPE | "
            "gemm M N K TYPE | dynamic M N K TYPE\n");
    return 2;
  }
  size_t v[5], stride = 1;
  for (int i = 0; i < argc - 3; ++i) {
    char* end;
    v[i] = strtoul(argv[i + 2], &end, 10);
    if (*end == 's') stride = strtoul(end + 1, NULL, 10);
  }
  skua_dtype type = SKUA_DTYPE_F32;
  while (strcmp(skua_dtype_name(type), argv[argc - 1])) {
    if (type++ == SKUA_DTYPE_U8) return 2;
  }

  const int bytes_in = type == SKUA_DTYPE_S8 || type == SKUA_DTYPE_U8;
  skua_context* context;
  check(skua_context_create(NULL, &context));
  skua_op* op;
  skua_tensor in;
  double macs;
  if (gemm) {
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.c_type = type;
    d.n = v[1]; d.k = v[2]; d.hint_m = v[0];
    if (dynamic) {
      d.b_type = SKUA_DTYPE_S8;
      d.b_q.scale = 1;
      d.quantize_a = 1;
    }
    if (bytes_in) {
      d.b_type = SKUA_DTYPE_S8;
      d.a_q.scale = d.b_q.scale = d.c_q.scale = 1;
      d.a_q.zero_point = d.c_q.zero_point = 3;
    }
    d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
    check(skua_gemm_create(context, &d, zeros(v[1] * v[2] * 4), zeros(v[1] * 4), &op));
    in = skua_tensor_2d(type, v[0], v[2]);
    macs = (double)v[0] * (double)v[1] * (double)v[2];
  } else {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    const size_t out = conv ? v[3] : v[2], kernel = conv ? v[4] : v[3];
    d.input_type = d.output_type = type;
    if (bytes_in) {
      d.weight_type = SKUA_DTYPE_S8;
      d.input_q.scale = d.weight_q.scale = d.output_q.scale = 1;
      d.input_q.zero_point = d.output_q.zero_point = 3;
    }
    d.in_channels = (uint32_t)v[2]; d.out_channels = (uint32_t)out;
    d.groups = depthwise ? (uint32_t)v[2] : 1;
    d.kernel_h = d.kernel_w = (uint32_t)kernel;
    d.stride_h = d.stride_w = (uint32_t)stride;
    d.padding.mode = SKUA_PADDING_SAME_UPPER;
    d.hint_in_h = (uint32_t)v[0]; d.hint_in_w = (uint32_t)v[1];
    d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
    const size_t depth = kernel * kernel * (depthwise ? 1 : v[2]);
    check(skua_conv2d_create(context, &d, zeros(depth * out * 4), zeros(out * 4), &op));
    in = skua_tensor_4d(type, 1, v[0], v[1], v[2]);
    macs = (double)((v[0] + stride - 1) / stride * ((v[1] + stride - 1) / stride)) * (double)depth * (double)out;
  }
  skua_plan* plan;
  skua_tensor outputs;
  check(skua_op_plan(op, &in, 1, NULL, 0, &plan));
  check(skua_plan_outputs(plan, &outputs, 1));
  const size_t bytes = skua_plan_workspace(plan, 1);
  void* workspace = zeros(bytes);
  const skua_buffer x = skua_host_buffer(zeros(elements(&in) * 4)), y = skua_host_buffer(zeros(elements(&outputs) * 4));
  count_begin();
  const skua_status status = skua_plan_run(plan, &x, 1, &y, 1, workspace, bytes, NULL);
  count_end();
  check(status);
  printf("%.0f %s %s\n", macs, skua_plan_algorithm(plan), skua_plan_kernel(plan));
  return 0;
}
