/* A convolution in 8 bits in plain C, from floats to bytes and back: what the floats' ranges are is seen on a sample,
 * weights and bias become integers, and the result is compared with the convolution in floats. */
#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>

enum { H = 20, W = 24, IN = 16, OUT = 32, TAPS = 9 };

#define CHECK(call)                                                                        \
  do {                                                                                     \
    if ((call) != SKUA_STATUS_OK) {                                                        \
      fprintf(stderr, "%s\n", skua_error_text());                                          \
      exit(1);                                                                             \
    }                                                                                      \
  } while (0)

static void fill(float* x, int n, float low, float high) {
  for (int i = 0; i < n; ++i) x[i] = low + (high - low) * (float)rand() / (float)RAND_MAX;
}

/* Plans and runs an operator of one input on a map of H x W pixels. Engines keep the plan, and the workspace. */
static void run(skua_op* op, skua_dtype type, size_t channels, const void* x, void* y) {
  const skua_tensor shape = skua_tensor_4d(type, 1, H, W, channels);
  skua_plan* plan;
  CHECK(skua_op_plan(op, &shape, 1, NULL, 0, &plan));
  const size_t size = skua_plan_workspace(plan, 1);
  void* workspace = aligned_alloc(64, (size + 64) / 64 * 64);
  const skua_buffer in = skua_host_buffer(x), out = skua_host_buffer(y);
  CHECK(skua_plan_run(plan, &in, 1, &out, 1, workspace, size, NULL));
  free(workspace);
  skua_plan_destroy(plan);
}

int main(void) {
  static float x[H * W * IN], weights[OUT * TAPS * IN], bias[OUT], exact[H * W * OUT], real[H * W * OUT];
  fill(x, H * W * IN, -1, 2);
  fill(weights, OUT * TAPS * IN, -0.5f, 0.5f);
  fill(bias, OUT, -1, 1);
  skua_context* context;
  CHECK(skua_context_create(NULL, &context));

  /* In floats. */
  skua_conv2d_desc conv = SKUA_CONV2D_DESC_INIT;
  conv.in_channels = IN;
  conv.out_channels = OUT;
  conv.kernel_h = conv.kernel_w = 3;
  conv.padding.mode = SKUA_PADDING_SAME_UPPER;
  conv.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
  skua_op* op;
  CHECK(skua_conv2d_create(context, &conv, weights, bias, &op));
  run(op, SKUA_DTYPE_F32, IN, x, exact);
  skua_op_destroy(op);

  /* Ranges that were seen, here on one map; networks take those of some dozens. */
  float x_low = INFINITY, x_high = -INFINITY, y_low = INFINITY, y_high = -INFINITY;
  CHECK(skua_widen_range(x, H * W * IN, &x_low, &x_high));
  CHECK(skua_widen_range(exact, H * W * OUT, &y_low, &y_high));
  conv.input_type = conv.weight_type = conv.output_type = SKUA_DTYPE_S8;
  CHECK(skua_choose_quantization(SKUA_DTYPE_S8, false, x_low, x_high, &conv.input_q));
  CHECK(skua_choose_quantization(SKUA_DTYPE_S8, false, y_low, y_high, &conv.output_q));

  /* Weights [OUT][3][3][IN]: a scale for each output channel. The bias counts in steps of the sums. */
  static int8_t weights_q[OUT * TAPS * IN];
  static float scales[OUT];
  static int32_t bias_q[OUT];
  CHECK(skua_quantize_weights(weights, 1, OUT, TAPS * IN, scales, weights_q));
  conv.weight_q.scales = scales; /* axis 0 */
  CHECK(skua_quantize_bias(bias, OUT, &conv.input_q, &conv.weight_q, bias_q));
  skua_op *convolve, *quantise, *dequantise;
  CHECK(skua_conv2d_create(context, &conv, weights_q, bias_q, &convolve));

  skua_convert_desc convert = SKUA_CONVERT_DESC_INIT;
  convert.output_type = SKUA_DTYPE_S8;
  convert.output_q = conv.input_q;
  CHECK(skua_convert_create(context, &convert, &quantise));
  convert = skua_convert_desc_init();
  convert.input_type = SKUA_DTYPE_S8;
  convert.input_q = conv.output_q;
  CHECK(skua_convert_create(context, &convert, &dequantise));

  static int8_t x_q[H * W * IN], y_q[H * W * OUT];
  run(quantise, SKUA_DTYPE_F32, IN, x, x_q);
  run(convolve, SKUA_DTYPE_S8, IN, x_q, y_q);
  run(dequantise, SKUA_DTYPE_S8, OUT, y_q, real);

  double squares = 0, worst = 0;
  for (int i = 0; i < H * W * OUT; ++i) {
    const double error = fabs((double)real[i] - (double)exact[i]) / (double)conv.output_q.scale;
    squares += error * error;
    if (error > worst) worst = error;
  }
  printf("skua %s on %s: 3x3 convolution of bytes, steps of %.3g; error against floats %.2f steps rms, %.2f at most\n",
         skua_version_string(), skua_context_isa(context), (double)conv.output_q.scale,
         sqrt(squares / (H * W * OUT)), worst);
  skua_op_destroy(convolve);
  skua_op_destroy(quantise);
  skua_op_destroy(dequantise);
  skua_context_destroy(context);
  return worst < 3 ? 0 : 1;
}
