// Winograd's convolutions on every GPU of the machine against direct sums in double, within the bounds of
// docs/winograd.md; chosen only where they are asked for.
#include <skua/conv.h>

#include <cfloat>
#include <cmath>

#include "core/context.h"
#include "gpu/device.h"
#include "tests/support/gpu.h"
#include "winograd/points.h"

namespace {
using namespace skua_test;

struct Layer {
  uint32_t in = 8, out = 8;
  size_t batch = 1, h = 8, w = 8, hole = 0;
  skua_padding padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
  skua_residual residual = SKUA_RESIDUAL_NONE;
  skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0};
  bool nchw = false, bias = true;
};

skua_status create(skua_context* context, const Layer& l, skua_dtype type, skua_numerics numerics,
                   const std::vector<float>& weights, const std::vector<float>& bias, skua_op** out) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.in_channels = l.in; d.out_channels = l.out;
  d.padding = l.padding;
  d.epilogue = {l.activation, l.residual};
  d.layout = l.nchw ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
  d.input_type = d.output_type = type;
  d.weight_type = SKUA_DTYPE_F32;
  d.numerics = numerics;
  return skua_conv2d_create(context, &d, weights.data(), l.bias ? bias.data() : nullptr, out);
}

void check(skua_context* context, const Layer& l, skua_dtype type, int m, const char* algorithm) {
  SCOPED_TRACE(std::to_string(l.in) + " -> " + std::to_string(l.out) + " channels, " + std::to_string(l.h) + "x" +
               std::to_string(l.w) + " " + skua_dtype_name(type) + (l.nchw ? " NCHW" : ""));
  Rng rng(uint32_t(l.h * 31 + l.in));
  std::vector<float> weights(size_t(9) * l.in * l.out), bias(l.out);
  for (float& v : weights) v = rounded(type, rng.uniform(-1, 1));
  for (float& v : bias) v = rng.uniform(-1, 1);
  Op op;
  SKUA_EXPECT_OK(create(context, l, type, SKUA_NUMERICS_FAST, weights, bias, &op));
  if (!op.op) return;
  const auto map = [&](size_t channels, size_t h, size_t w) {
    const skua_tensor t = l.nchw ? shape({l.batch, channels, h, w}, type) : shape({l.batch, h, w, channels}, type);
    return l.hole ? with_holes(t, l.nchw ? std::vector<size_t>{0, 1, 1, 0} : std::vector<size_t>{0, 1, 1, l.hole}) : t;
  };
  const bool same = l.padding.mode != SKUA_PADDING_EXPLICIT;
  const size_t out_h = same ? l.h : l.h + l.padding.top + l.padding.bottom - 2,
               out_w = same ? l.w : l.w + l.padding.left + l.padding.right - 2;
  const long top = same ? 1 : long(l.padding.top), left = same ? 1 : long(l.padding.left);
  std::vector<Data> inputs = {make(map(l.in, l.h, l.w), rng)};
  if (l.residual != SKUA_RESIDUAL_NONE) inputs.push_back(make(map(l.out, out_h, out_w), rng));
  skua_plan* plan = nullptr;
  const skua_tensor shapes[2] = {inputs[0].t, inputs.back().t};
  SKUA_EXPECT_OK(skua_op_plan(op, shapes, inputs.size(), nullptr, 0, &plan));
  if (!plan) return;
  char text[4000];
  skua_plan_explain(plan, text, sizeof text);
  EXPECT_NE(std::string(text).find("kernel filter \"" + std::string(algorithm) + "\": leaves 1 of "), std::string::npos)
      << text;
  EXPECT_GT(skua_plan_workspace(plan, 1), 0u);
  skua_plan_destroy(plan);
  const std::vector<Data> got = run(op, inputs, {map(l.out, out_h, out_w)});
  ASSERT_EQ(got.size(), 1u);
  const std::vector<double> x = dense_double(inputs[0]), r = dense_double(inputs.back());
  const auto at = [&](size_t n, size_t y, size_t xx, size_t c, size_t h, size_t w, size_t channels) {
    return l.nchw ? ((n * channels + c) * h + y) * w + xx : ((n * h + y) * w + xx) * channels + c;
  };
  std::vector<double> want(l.batch * out_h * out_w * l.out), bound(want.size());
  // Two dimensions of transforms around a sum of `in` terms; the largest |x| and |w| are 1: the a-priori bound of
  // docs/winograd.md.
  const double kappa = m == 2 ? skua::winograd::growth(2, 3).worst : skua::winograd::growth(4, 3).worst;
  for (size_t n = 0; n < l.batch; ++n)
    for (size_t oy = 0; oy < out_h; ++oy)
      for (size_t ox = 0; ox < out_w; ++ox)
        for (size_t o = 0; o < l.out; ++o) {
          double sum = l.bias ? double(bias[o]) : 0;
          for (long ky = 0; ky < 3; ++ky)
            for (long kx = 0; kx < 3; ++kx) {
              const long iy = long(oy) + ky - top, ix = long(ox) + kx - left;
              if (iy < 0 || ix < 0 || iy >= long(l.h) || ix >= long(l.w)) continue;
              for (size_t i = 0; i < l.in; ++i)
                sum += x[at(n, size_t(iy), size_t(ix), i, l.h, l.w, l.in)] *
                       double(weights[((o * 3 + size_t(ky)) * 3 + size_t(kx)) * l.in + i]);
            }
          const size_t to = at(n, oy, ox, o, out_h, out_w, l.out);
          if (l.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION) sum += r[to];
          if (l.activation.kind == SKUA_ACTIVATION_RELU) sum = std::max(sum, 0.0);
          if (l.residual == SKUA_RESIDUAL_AFTER_ACTIVATION) sum += r[to];
          want[to] = sum;
          bound[to] = 9 * kappa * kappa * double(l.in) * (double(l.in) + 16) * double(FLT_EPSILON) / 2 +
                      3 * half_ulp(type, sum);
        }
  expect_close(got[0], want, bound);
  // Far nearer than what cannot be exceeded: the rms error is about that of direct sums.
  double square = 0;
  const std::vector<double> values = dense_double(got[0]);
  for (size_t i = 0; i < want.size(); ++i) square += (values[i] - want[i]) * (values[i] - want[i]);
  if (type == SKUA_DTYPE_F32) {
    EXPECT_LT(std::sqrt(square / double(want.size())),
              (m == 2 ? 4 : 12) * double(FLT_EPSILON) * std::sqrt(9.0 * l.in) / 3)
        << "rms";
  }
}

// Few programs: drivers take a second for each.
std::vector<Layer> layers() {
  std::vector<Layer> all(4);
  all[0] = {.in = 36, .out = 40, .batch = 2, .h = 9, .w = 7};
  all[1] = {.in = 9,
            .out = 11,
            .h = 6,
            .w = 5,
            .hole = 1,
            .residual = SKUA_RESIDUAL_AFTER_ACTIVATION,
            .activation = {SKUA_ACTIVATION_RELU, 0, 0}};
  all[2] = {.in = 40, .out = 36, .h = 1, .w = 1};
  all[3] = {.in = 10,
            .out = 13,
            .h = 7,
            .w = 6,
            .residual = SKUA_RESIDUAL_BEFORE_ACTIVATION,
            .activation = {SKUA_ACTIVATION_RELU, 0, 0},
            .nchw = true,
            .bias = false};
  all[3].padding = {SKUA_PADDING_EXPLICIT, 2, 0, 1, 2};
  return all;
}

TEST(gpu_winograd, every_form_and_tail) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (int m : {2, 4}) {
      const char* const name = m == 2 ? "winograd_f2x2" : "winograd_f4x4";
      SCOPED_TRACE(std::string(device.name) + " " + name);
      Context context(device, name);
      if (!context.context) continue;
      for (skua_dtype type : gpu_types())
        for (size_t i = 0; i < 4; ++i)
          if (type == SKUA_DTYPE_F32 || i < 2) check(context, layers()[i], type, m, name);
      gpu_skip = 3;
      if (m == 2) check(context, layers()[0], SKUA_DTYPE_F32, m, name);
      gpu_skip = 0;
    }
}

TEST(gpu_winograd, not_where_it_may_not_be) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : {"", "winograd_f4x4"}) {
      Context context(device, filter);
      Layer l;
      const std::vector<float> weights(9 * 64, 0.5f), bias(8);
      // Without the filter on these devices never, with it not under STRICT, nor under DEFAULT at this depth.
      for (skua_numerics numerics : {SKUA_NUMERICS_DEFAULT, SKUA_NUMERICS_STRICT}) {
        Op op;
        SKUA_EXPECT_OK(create(context, l, SKUA_DTYPE_F32, numerics, weights, bias, &op));
        const skua_tensor x = shape({1, 8, 8, 8});
        skua_plan* plan = nullptr;
        SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
        if (!plan) continue;
        EXPECT_EQ(skua_plan_workspace(plan, 1), 0u);
        skua_plan_destroy(plan);
      }
    }
}

// As if the device were an H100 under OpenCL: one image goes directly, four by Winograd, for which the operator has
// weights too.
TEST(gpu_winograd, of_many_images_where_one_goes_directly) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context context(device);
    if (!context.context) continue;
    skua::gpu::Description& about = context.context->gpu->about;
    about.vendor = skua::gpu::Vendor::nvidia;
    about.info.is_software = false;
    about.info.compute_units = 132;
    about.opencl = 3;
    Layer l;
    l.in = l.out = 64;
    const std::vector<float> weights(9 * 64 * 64, 0.5f), bias(64);
    Op op;
    SKUA_EXPECT_OK(create(context, l, SKUA_DTYPE_F32, SKUA_NUMERICS_FAST, weights, bias, &op));
    for (const size_t images : {1, 4}) {
      const skua_tensor x = shape({images, 56, 56, 64});
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
      EXPECT_EQ(plan && skua_plan_workspace(plan, 1), images == 4);
      skua_plan_destroy(plan);
    }
  }
}

}  // namespace
