// Operators on s8 and u8 on every GPU of the machine, by every kernel: the CPU's bits.
#include <skua/conv.h>
#include <skua/data.h>
#include <skua/elementwise.h>
#include <skua/gemm.h>
#include <skua/normalize.h>
#include <skua/pool.h>
#include <skua/reduce.h>
#include <skua/resize.h>

#include <cmath>
#include <functional>

#include "tests/support/gpu.h"
#include "tests/support/support.h"

namespace {
using namespace skua_test;

using Create = std::function<skua_status(skua_context*, skua_op**)>;

// The same operator on the CPU and on every device, by the kernels of these names.
struct Work {
  std::string text;
  Create create;
  std::vector<Data> inputs;
  std::vector<skua_tensor> outputs;
};
void compare(skua_context* context, const Work& w) {
  SCOPED_TRACE(w.text);
  Context cpu;
  Op wanted, op;
  SKUA_EXPECT_OK(w.create(cpu, &wanted));
  SKUA_EXPECT_OK(w.create(context, &op));
  if (!wanted.op || !op.op) return;
  const std::vector<Data> want = run(wanted, w.inputs, w.outputs), got = run(op, w.inputs, w.outputs);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], want[i]);
}
void compare_all(const std::vector<const char*>& filters, const std::vector<Work>& all) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const char* filter : filters) {
      SCOPED_TRACE(std::string(device.name) + " " + filter);
      Context context(device, filter);
      for (const Work& w : all)
        if (context.context) compare(context, w);
    }
}

bool is_int(skua_dtype t) { return t == SKUA_DTYPE_S8 || t == SKUA_DTYPE_U8; }
int least(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
template <class T> std::vector<T> random_bytes(size_t n, Rng& rng, int low) {
  std::vector<T> v(n);
  for (T& x : v) x = T(rng.integer(0, 5) ? rng.integer(low, low + 255) : rng.integer(0, 1) ? low : low + 255);
  return v;
}
skua_tensor holed(const skua_tensor& t, size_t hole) {
  std::vector<size_t> more(t.rank, 0);
  more.back() = hole;
  return hole ? with_holes(t, more) : t;
}

// ---- products ------------------------------------------------------------------------------------------------------------------
struct Gemm {
  size_t m, n, k, hole = 0, batch = 1;
  bool constant = true, transpose_a = false, transpose_b = false, bias = true;
  skua_dtype a = SKUA_DTYPE_S8, b = SKUA_DTYPE_S8, c = SKUA_DTYPE_S8;
  int a_zero = 3, b_zero = 0, c_zero = -2;
  skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0};

  Work work() const {
    const Gemm g = *this;
    Rng rng(uint32_t(m * 7 + n * 3 + k + (a == SKUA_DTYPE_U8)));
    const auto matrix = [&](skua_dtype type, size_t rows, size_t columns, bool transposed) {
      std::vector<size_t> extents = {transposed ? columns : rows, transposed ? rows : columns};
      if (batch > 1) extents.insert(extents.begin(), batch);
      return holed(shape(extents, type), hole);
    };
    std::vector<uint8_t> weights = random_bytes<uint8_t>(constant ? n * k : 0, rng, least(b));
    std::vector<int32_t> biases;
    std::vector<float> scales;
    for (size_t j = 0; j < n; ++j) biases.push_back(rng.integer(-20000, 20000)), scales.push_back(rng.uniform(0.001f, 0.02f));
    Work w;
    char text[200];
    snprintf(text, sizeof text, "%zu x %zu x %zu hole %zu batch %zu%s%s%s types %d %d %d zero points %d %d %d", m, n, k, hole, batch, constant ? " constant" : "", transpose_a ? " A^T" : "",
             transpose_b ? " B^T" : "", int(a), int(b), int(c), a_zero, b_zero, c_zero);
    w.text = text;
    w.create = [=](skua_context* context, skua_op** op) {
      skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
      d.a_type = g.a; d.b_type = g.b; d.c_type = g.c;
      d.transpose_a = g.transpose_a; d.transpose_b = g.transpose_b;
      d.epilogue.activation = g.activation;
      d.a_q.scale = 0.02f; d.a_q.zero_point = g.a_zero;
      if (g.constant && !g.b_zero) d.b_q.scales = scales.data(), d.b_q.axis = g.transpose_b ? 0 : 1;
      else d.b_q.scale = 0.011f, d.b_q.zero_point = g.b_zero;
      if (is_int(g.c)) d.c_q.scale = 0.02f * 0.01f * 60 * std::sqrt(float(g.k) + 1), d.c_q.zero_point = g.c_zero;
      if (g.constant) d.k = g.k;
      if (g.constant || g.bias) d.n = g.n;
      return skua_gemm_create(context, &d, g.constant ? weights.data() : nullptr, g.bias ? biases.data() : nullptr, op);
    };
    w.inputs.push_back(make_bytes(matrix(a, m, k, transpose_a), rng));
    if (!constant) w.inputs.push_back(make_bytes(matrix(b, k, n, transpose_b), rng));
    w.outputs.push_back(matrix(c, m, n, false));
    return w;
  }
};
std::vector<Work> works(const std::vector<Gemm>& cases) {
  std::vector<Work> all;
  for (const Gemm& c : cases) all.push_back(c.work());
  return all;
}
// The same with u8 in places of s8, other results and zero points at the ends.
std::vector<Gemm> in_types(const std::vector<Gemm>& cases) {
  std::vector<Gemm> all;
  for (Gemm c : cases) {
    all.push_back(c);
    c.a = SKUA_DTYPE_U8; c.a_zero = 255; c.c = SKUA_DTYPE_U8; c.c_zero = 128;
    c.activation = {SKUA_ACTIVATION_RELU6, 0, 0};
    all.push_back(c);
  }
  return all;
}

TEST(gpu_bytes, gemm_vectors) {
  std::vector<Gemm> cases = in_types({{37, 44, 20}, {70, 132, 36, 4}});  // programs by width: columns of one, drivers take a second for each
  cases.push_back({21, 40, 32, 0, 3});
  cases.back().c = SKUA_DTYPE_F32;
  cases.back().activation = {SKUA_ACTIVATION_CLAMP, -2.5f, 3.25f};
  cases.push_back({9, 36, 16});
  cases.back().c = SKUA_DTYPE_F16;
  cases.back().transpose_b = true;
  cases.push_back({9, 36, 16});
  cases.back().c = SKUA_DTYPE_BF16;
  cases.push_back({9, 36, 16});
  cases.back().b = SKUA_DTYPE_U8;
  cases.back().b_zero = 77;
  cases.back().bias = false;
  compare_all({"gemm_bytes_*_v4x4_*"}, works(cases));
  compare_all({"gemm_bytes_*_dot4x4_*"}, works(std::vector<Gemm>{cases[0], cases[1], cases.back()}));
  compare_all({"gemm_bytes_*_dot4x8_*"}, works(std::vector<Gemm>{cases[2], cases[3]}));
}

TEST(gpu_bytes, gemm_elements) {
  std::vector<Gemm> cases = in_types({{21, 35, 23}, {5, 37, 2, 3}, {18, 40, 5, 1, 2}});
  cases[1].transpose_a = cases[1].transpose_b = true;
  cases[1].b = SKUA_DTYPE_U8;
  cases[1].b_zero = 200;
  cases[2].c = SKUA_DTYPE_F32;
  cases[4].c = SKUA_DTYPE_F16;
  cases[5].c = SKUA_DTYPE_BF16;
  compare_all({"gemm_bytes_*_v1_*"}, works(cases));
}

TEST(gpu_bytes, gemm_of_two_inputs) {
  std::vector<Gemm> cases = in_types({{21, 35, 23}, {6, 36, 12, 0, 3}, {5, 37, 9, 2, 2}, {3, 35, 0}});
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].constant = false;
    cases[i].bias = i % 3 != 1;
    cases[i].b = i % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
    cases[i].b_zero = i % 2 ? 255 : -128;
    cases[i].transpose_a = i % 4 == 2;
    cases[i].transpose_b = i % 4 > 1;
  }
  compare_all({"gemm_bytes_*"}, works(cases));
}

// ---- convolutions --------------------------------------------------------------------------------------------------------------
struct Conv {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  bool transposed = false;
  size_t batch = 1, h = 1, w = 1, hole = 0;

  Work work() const {
    const Conv c = *this;
    Rng rng(uint32_t(h * 31 + d.out_channels + d.in_channels));
    std::vector<int8_t> weights = random_bytes<int8_t>(size_t(d.kernel_h) * d.kernel_w * (d.in_channels / d.groups) * d.out_channels, rng, -128);
    std::vector<int32_t> bias;
    std::vector<float> scales;
    for (size_t j = 0; j < d.out_channels; ++j) bias.push_back(rng.integer(-20000, 20000)), scales.push_back(rng.uniform(0.001f, 0.02f));
    Work w;
    char text[300];
    snprintf(text, sizeof text, "%s kernel %ux%u stride %ux%u dilation %ux%u groups %u channels %u -> %u input %zux%zux%zu layout %d types %d %d", transposed ? "transposed" : "conv", d.kernel_h,
             d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w, d.groups, d.in_channels, d.out_channels, batch, h, this->w, int(d.layout), int(d.input_type), int(d.output_type));
    w.text = text;
    w.create = [=](skua_context* context, skua_op** op) {
      skua_conv2d_desc e = c.d;
      e.weight_q.scales = scales.data();
      if (!c.transposed) return skua_conv2d_create(context, &e, weights.data(), bias.data(), op);
      skua_conv2d_transpose_desc t = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
      t.kernel_h = e.kernel_h; t.kernel_w = e.kernel_w; t.stride_h = e.stride_h; t.stride_w = e.stride_w;
      t.groups = e.groups; t.in_channels = e.in_channels; t.out_channels = e.out_channels;
      t.input_type = e.input_type; t.weight_type = e.weight_type; t.output_type = e.output_type;
      t.input_q = e.input_q; t.weight_q = e.weight_q; t.output_q = e.output_q;
      t.padding = e.padding; t.epilogue = e.epilogue; t.output_padding_h = t.stride_h > 1;
      return skua_conv2d_transpose_create(context, &t, weights.data(), bias.data(), op);
    };
    const bool nchw = d.layout == SKUA_LAYOUT_NCHW;
    const skua_tensor t = nchw ? shape({batch, d.in_channels, h, this->w}, d.input_type) : shape({batch, h, this->w, d.in_channels}, d.input_type);
    w.inputs.push_back(make_bytes(hole ? with_holes(t, nchw ? std::vector<size_t>{0, 1, 1, 0} : std::vector<size_t>{0, 1, 1, hole}) : t, rng));
    return w;
  }
};
Conv conv(uint32_t kernel, uint32_t in, uint32_t out, size_t h, size_t w, uint32_t stride = 1, uint32_t groups = 1) {
  Conv c;
  c.d.kernel_h = c.d.kernel_w = kernel;
  c.d.stride_h = c.d.stride_w = stride;
  c.d.groups = groups;
  c.d.in_channels = in; c.d.out_channels = out;
  c.d.padding.mode = SKUA_PADDING_SAME_UPPER;
  c.h = h; c.w = w;
  c.d.input_type = c.d.output_type = c.d.weight_type = SKUA_DTYPE_S8;
  c.d.input_q.scale = 0.02f; c.d.input_q.zero_point = -5;
  c.d.output_q.scale = 0.02f * 0.01f * 60 * std::sqrt(float(kernel * kernel * in / groups)); c.d.output_q.zero_point = 9;
  return c;
}
void to_u8(Conv& c) {
  c.d.input_type = c.d.output_type = SKUA_DTYPE_U8;
  c.d.input_q.zero_point = 200; c.d.output_q.zero_point = 0;
  c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
}
void to_float(Conv& c, skua_dtype type) {
  c.d.output_type = type;
  c.d.output_q = {};
}
std::vector<Work> works(const std::vector<Conv>& cases) {
  std::vector<Work> all;
  for (const Conv& c : cases) all.push_back(c.work());
  return all;
}

TEST(gpu_bytes, conv_taps) {
  std::vector<Conv> cases = {conv(3, 8, 36, 7, 9), conv(3, 16, 72, 12, 11, 2), conv(5, 4, 36, 6, 6), conv(1, 12, 40, 9, 5, 2), conv(3, 8, 72, 6, 7, 1, 2), conv(1, 16, 36, 6, 7)};  // programs by width
  cases[0].batch = 2;
  cases[1].hole = 4;
  cases[2].d.dilation_h = 2;
  cases[2].d.padding = {SKUA_PADDING_EXPLICIT, 4, 1, 4, 3};
  for (size_t i : {0, 2, 4, 5}) to_u8(cases[i]);
  to_float(cases[3], SKUA_DTYPE_F32);
  compare_all({"conv_bytes_*_v4x4_*"}, works(cases));
  compare_all({"conv_bytes_*_dot4x4_*", "conv_bytes_*_dot4x8_*"}, works(std::vector<Conv>{cases[0], cases[1], cases[4]}));
}

TEST(gpu_bytes, conv_elements) {
  std::vector<Conv> cases = {conv(3, 3, 36, 13, 11, 2), conv(3, 5, 37, 6, 7), conv(3, 6, 105, 5, 6, 1, 3), conv(1, 7, 35, 6, 6)};
  to_u8(cases[0]);
  to_u8(cases[2]);
  cases[1].hole = 2;
  to_float(cases[3], SKUA_DTYPE_F16);
  Conv planes = conv(3, 8, 36, 6, 7);
  planes.d.layout = SKUA_LAYOUT_NCHW;
  planes.hole = 1;
  cases.push_back(planes);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, conv_transposed) {
  std::vector<Conv> cases = {conv(3, 8, 36, 5, 6, 2), conv(2, 4, 36, 4, 5, 2), conv(3, 5, 35, 4, 4, 2)};
  for (Conv& c : cases) {
    c.transposed = true;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 0, 1};
  }
  to_u8(cases[1]);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, depthwise) {
  std::vector<Conv> cases = {conv(3, 20, 20, 7, 9, 1, 20), conv(3, 20, 20, 9, 6, 2, 20), conv(5, 6, 6, 6, 7, 1, 6), conv(3, 4, 8, 5, 5, 1, 4), conv(3, 20, 20, 8, 8, 1, 20)};
  cases[0].batch = 2;
  cases[0].hole = 4;
  cases[4].d.dilation_w = 2;
  to_u8(cases[1]);
  to_u8(cases[2]);
  to_float(cases[3], SKUA_DTYPE_F32);
  to_float(cases[4], SKUA_DTYPE_F16);
  Conv planes = conv(3, 8, 8, 6, 7, 1, 8);
  planes.d.layout = SKUA_LAYOUT_NCHW;
  cases.push_back(planes);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, any_offset) {
  std::vector<Work> all = works(std::vector<Gemm>{{5, 8, 8}, {6, 7, 5}});
  for (const Work& w : works(std::vector<Conv>{conv(3, 8, 8, 5, 5), conv(3, 8, 8, 5, 5, 1, 8)})) all.push_back(w);
  for (size_t skip : {1, 3}) {
    gpu_skip = skip;
    compare_all({""}, all);
    gpu_skip = 0;
  }
}

// ---- elementwise ---------------------------------------------------------------------------------------------------------------
Work converting(const skua_tensor& t, skua_dtype from, skua_dtype to, int axis = -1) {
  Rng rng(uint32_t(int(from) * 31 + int(to)));
  Work w;
  w.text = std::string(skua_dtype_name(from)) + " to " + skua_dtype_name(to) + " axis " + std::to_string(axis) + " rank " + std::to_string(t.rank);
  std::vector<float> scales;
  std::vector<int32_t> zeros;
  for (size_t i = 0; axis >= 0 && i < t.shape[axis]; ++i) scales.push_back(rng.uniform(0.005f, 0.03f)), zeros.push_back(rng.integer(0, 100));
  w.create = [=](skua_context* context, skua_op** op) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = from; d.output_type = to;
    if (is_int(from)) d.input_q.scale = 0.017f, d.input_q.zero_point = from == SKUA_DTYPE_U8 ? 255 : -7;
    if (is_int(to)) d.output_q.scale = 0.011f, d.output_q.zero_point = to == SKUA_DTYPE_U8 ? 3 : 127;
    if (axis >= 0) {
      skua_quantization& q = is_int(to) ? d.output_q : d.input_q;
      q.scale = 0; q.zero_point = 0; q.scales = scales.data(); q.zero_points = zeros.data(); q.axis = uint32_t(axis);
      d.channels = scales.size();
    }
    return skua_convert_create(context, &d, op);
  };
  skua_tensor x = t;
  x.type = from;
  w.inputs.push_back(is_int(from) ? make_bytes(x, rng) : make(x, rng, -3, 3));
  if (!is_int(from)) w.inputs[0].v[0] = INFINITY, w.inputs[0].v[1] = -INFINITY;
  return w;
}
TEST(gpu_bytes, convert) {
  const skua_dtype f32 = SKUA_DTYPE_F32, f16 = SKUA_DTYPE_F16, s8 = SKUA_DTYPE_S8, u8 = SKUA_DTYPE_U8;
  std::vector<Work> all;
  all.push_back(converting(shape({3, 5, 8}), f32, s8));
  all.push_back(converting(shape({3, 7}), f16, u8));
  all.push_back(converting(with_holes(shape({3, 4, 8}), {0, 1, 4}), s8, f32));
  all.push_back(converting(with_holes(shape({3, 4, 8}), {0, 1, 1}), u8, f16));
  all.push_back(converting(shape({9, 12}), s8, u8));
  all.push_back(converting(shape({9, 11}), u8, s8));
  all.push_back(converting(shape({3, 5, 8}), f32, u8, 1));
  all.push_back(converting(shape({3, 5, 7}), f16, s8, 2));
  all.push_back(converting(shape({3, 8, 4}), s8, f32, 0));
  compare_all({""}, all);
}

TEST(gpu_bytes, every_f16) {  // to bytes and back to f16, whatever the driver rounds
  std::vector<Work> all;
  Work w = converting(shape({65536}), SKUA_DTYPE_F16, SKUA_DTYPE_S8);
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint32_t e = i >> 10 & 31;
    const float v = std::ldexp(float(e ? 1024 + (i & 1023) : i & 1023), e ? int(e) - 25 : -24);
    w.inputs[0].v[i] = (e == 31 ? 1.0f : v) * (i >> 15 ? -1 : 1);
  }
  all.push_back(w);
  w = converting(shape({4096}), SKUA_DTYPE_S8, SKUA_DTYPE_F16, 0);  // a scale each: all kinds of ends to round, and denormals
  all.push_back(w);
  std::vector<float> scales;
  for (int i = 0; i < 4096; ++i) scales.push_back(std::ldexp(1.0f + float(i * 2) / 8192, i % 44 - 31));
  all.back().create = [=](skua_context* context, skua_op** op) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = SKUA_DTYPE_S8; d.output_type = SKUA_DTYPE_F16;
    d.input_q.scales = scales.data(); d.channels = 4096;
    return skua_convert_create(context, &d, op);
  };
  compare_all({""}, all);
}

TEST(gpu_bytes, unary) {
  std::vector<Work> all;
  for (skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
    for (skua_unary_kind kind : {SKUA_UNARY_RELU, SKUA_UNARY_SIGMOID, SKUA_UNARY_LOG})
      for (const skua_tensor& t : {shape({5, 12}, type), with_holes(shape({3, 3, 7}, type), {0, 1, 2})}) {
        Rng rng(3);
        Work w;
        w.text = std::string(skua_dtype_name(type)) + " function " + std::to_string(kind);
        w.create = [=](skua_context* context, skua_op** op) {
          skua_unary_desc d = SKUA_UNARY_DESC_INIT;
          d.kind = kind;
          d.input_type = type; d.output_type = type == SKUA_DTYPE_S8 ? SKUA_DTYPE_U8 : type;
          d.input_q.scale = 0.05f; d.input_q.zero_point = 11;
          d.output_q.scale = 1.0f / 256; d.output_q.zero_point = 2;
          return skua_unary_create(context, &d, op);
        };
        w.inputs.push_back(make_bytes(t, rng));
        all.push_back(w);
      }
  compare_all({""}, all);
}

TEST(gpu_bytes, binary) {
  std::vector<Work> all;
  const std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>> shapes = {{{3, 5, 8}, {3, 5, 8}}, {{3, 5, 8}, {8}}, {{4, 1, 8}, {1, 5, 1}}, {{7, 5}, {7, 5}}, {{3, 1}, {3, 7}}};
  for (skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
    for (skua_binary_kind kind : {SKUA_BINARY_ADD, SKUA_BINARY_SUB, SKUA_BINARY_MUL, SKUA_BINARY_MIN, SKUA_BINARY_MAX, SKUA_BINARY_SQUARED_DIFFERENCE, SKUA_BINARY_PRELU})
      for (size_t i = 0; i < shapes.size(); ++i) {
        // A program for each function, type and way to read: some of all.
        if (i != (kind == SKUA_BINARY_ADD && type == SKUA_DTYPE_S8 ? i : type == SKUA_DTYPE_U8 ? 3 : 1) || (type == SKUA_DTYPE_U8 && kind != SKUA_BINARY_PRELU)) continue;
        Rng rng(uint32_t(i + 5));
        Work w;
        w.text = std::string(skua_dtype_name(type)) + " kind " + std::to_string(kind) + " shapes " + std::to_string(i);
        w.create = [=](skua_context* context, skua_op** op) {
          skua_binary_desc d = SKUA_BINARY_DESC_INIT;
          d.kind = kind;
          d.type = type;
          d.x_q.scale = 0.043f; d.x_q.zero_point = 100;
          d.y_q.scale = 0.0191f; d.y_q.zero_point = 3;
          d.output_q.scale = kind == SKUA_BINARY_SQUARED_DIFFERENCE ? 0.3f : 0.0517f; d.output_q.zero_point = 31;
          if (i == 1) d.activation = {SKUA_ACTIVATION_RELU6, 0, 0};
          return skua_binary_create(context, &d, op);
        };
        w.inputs.push_back(make_bytes(shape(shapes[i].first, type), rng));
        w.inputs.push_back(make_bytes(shape(shapes[i].second, type), rng));
        all.push_back(w);
      }
  compare_all({""}, all);
}

TEST(gpu_bytes, data_movement) {
  std::vector<Work> all;
  const auto add = [&](const char* text, const skua_tensor& t, Create create, size_t inputs = 1) {
    Rng rng(9);
    Work w;
    w.text = text;
    w.create = create;
    for (size_t i = 0; i < inputs; ++i) w.inputs.push_back(make_bytes(t, rng));
    all.push_back(w);
  };
  for (const skua_tensor& t : {shape({2, 6, 5, 8}, SKUA_DTYPE_S8), shape({2, 3, 5, 7}, SKUA_DTYPE_U8)}) {
    add("transpose", t, [=](skua_context* context, skua_op** op) {
      skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
      d.type = t.type; d.rank = 4;
      const uint32_t order[4] = {0, 3, 1, 2};
      for (int i = 0; i < 4; ++i) d.perm[i] = order[i];
      return skua_transpose_create(context, &d, op);
    });
    add("concat", t, [=](skua_context* context, skua_op** op) {
      skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
      d.type = t.type; d.axis = 3;
      return skua_concat_create(context, &d, op);
    }, 2);
    add("pad", t, [=](skua_context* context, skua_op** op) {
      skua_pad_desc d = SKUA_PAD_DESC_INIT;
      d.type = t.type; d.rank = 4;
      d.before[1] = 1; d.after[2] = 2; d.before[3] = 4;
      d.value = 7;
      return skua_pad_create(context, &d, op);
    });
  }
  compare_all({""}, all);
}

// ---- maps and rows -------------------------------------------------------------------------------------------------------------
struct Works {
  std::vector<Work> all;
  Rng rng{11};
  void add(const std::string& text, const skua_tensor& x, Create create, const std::vector<skua_tensor>& outputs = {}) { all.push_back({text, std::move(create), {make_bytes(x, rng)}, outputs}); }
};
void quantize(skua_quantization& from, skua_quantization& to, skua_dtype type, float scale, float to_scale) {
  from.scale = scale; from.zero_point = type == SKUA_DTYPE_S8 ? -7 : 200;
  to.scale = to_scale; to.zero_point = type == SKUA_DTYPE_S8 ? 5 : 128;
}

TEST(gpu_bytes, pooling) {
  Works w;
  for (const skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
    for (const skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE, SKUA_POOL_MAX_INDICES})
      for (int way = 0; way < 5; ++way) {
        skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
        d.type = type;
        d.kind = kind;
        quantize(d.input_q, d.output_q, type, 0.02f, 0.03f);
        if (kind != SKUA_POOL_AVERAGE) d.output_q = d.input_q;
        d.kernel_h = 3; d.kernel_w = 2;
        d.stride_h = way == 1 ? 1 : 2; d.stride_w = 2;
        d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 0};
        d.count_padding = way == 1;
        d.global = way == 2;
        d.layout = way == 3 ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
        if (way == 4) d.activation = {SKUA_ACTIVATION_CLAMP, -0.5f, 0.75f};
        if (way == 1) d.dilation_h = 2;
        const skua_tensor x = way == 3 ? shape({2, 5, 7, 6}, type) : holed(shape({2, 9, 7, way % 2 ? 6u : 8u}, type), way == 4 ? 4 : 0);
        w.add("pool kind " + std::to_string(kind) + " way " + std::to_string(way) + " " + skua_dtype_name(type), x, [=](skua_context* context, skua_op** op) { return skua_pool2d_create(context, &d, op); });
      }
  compare_all({""}, w.all);
}

TEST(gpu_bytes, softmax) {
  Works w;
  const std::vector<size_t> shapes[] = {{5, 7}, {3, 700}, {2, 6, 5, 4}, {1, 2049}};
  for (const auto& s : shapes)
    for (int axis = 0; axis < int(s.size()); ++axis) {
      skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
      d.input_type = axis % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
      d.output_type = axis % 3 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8;
      d.axis = axis;
      d.scale = axis == 1 ? -0.7f : 1.3f;
      quantize(d.input_q, d.output_q, d.input_type, 0.03f, axis == 2 ? 0.0042f : 1.0f / 256);
      d.output_q.zero_point = d.output_type == SKUA_DTYPE_S8 ? -128 : 0;
      w.add("softmax axis " + std::to_string(axis) + " of " + std::to_string(s.size()) + " last " + std::to_string(s.back()), holed(shape(s, d.input_type), 0),
            [=](skua_context* context, skua_op** op) { return skua_softmax_create(context, &d, op); });
    }
  compare_all({""}, w.all);
}

TEST(gpu_bytes, reductions) {
  Works w;
  const std::vector<std::vector<int32_t>> axes = {{}, {0}, {3}, {1, 2}, {0, 2}, {0, 1, 3}};
  for (const int kind : {SKUA_REDUCE_SUM, SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX, SKUA_REDUCE_ARGMIN, SKUA_REDUCE_ARGMAX})
    for (const auto& a : axes) {
      const bool arg = kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX;
      if (arg && a.size() != 1) continue;
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = skua_reduce_kind(kind);
      d.type = a.size() % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
      d.axis_count = uint32_t(a.size());
      for (size_t i = 0; i < a.size(); ++i) d.axes[i] = a[i];
      if (!arg) quantize(d.input_q, d.output_q, d.type, 0.02f, kind == SKUA_REDUCE_SUM ? 1.7f : 0.021f);
      w.add("reduce kind " + std::to_string(kind) + " axes " + std::to_string(a.size()), shape({3, 5, 4, 70}, d.type), [=](skua_context* context, skua_op** op) { return skua_reduce_create(context, &d, op); });
    }
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;  // nothing to reduce
  d.kind = SKUA_REDUCE_MAX;
  d.type = SKUA_DTYPE_S8;
  d.axis_count = 1;
  d.axes[0] = 1;
  quantize(d.input_q, d.output_q, d.type, 0.02f, 0.02f);
  w.add("reduce nothing", shape({3, 0, 4}, d.type), [=](skua_context* context, skua_op** op) { return skua_reduce_create(context, &d, op); });
  compare_all({""}, w.all);
}

TEST(gpu_bytes, resize) {
  Works w;
  for (const skua_resize_kind kind : {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR})
    for (const skua_resize_coordinates coordinates : {SKUA_RESIZE_HALF_PIXEL, SKUA_RESIZE_ALIGN_CORNERS, SKUA_RESIZE_ASYMMETRIC})
      for (int way = 0; way < 3; ++way) {
        skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
        d.kind = kind;
        d.coordinates = coordinates;
        d.type = way ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
        d.layout = way == 2 ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
        d.out_h = way == 1 ? 4 : 13; d.out_w = 11;
        d.input_q.scale = d.output_q.scale = 0.02f;
        w.add("resize kind " + std::to_string(kind) + " coordinates " + std::to_string(coordinates) + " way " + std::to_string(way), way == 2 ? shape({2, 3, 6, 5}, d.type) : shape({2, 6, 5, way ? 7u : 8u}, d.type),
              [=](skua_context* context, skua_op** op) { return skua_resize2d_create(context, &d, op); });
      }
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  d.kind = SKUA_RESIZE_BILINEAR;
  d.type = SKUA_DTYPE_U8;
  d.out_h = 1; d.out_w = 2093063;  // the largest whose weights are counted in 32 bits
  d.input_q.scale = d.output_q.scale = 0.02f;
  const skua_tensor row = shape({1, 1, 17, 1}, d.type);
  if (!small()) w.add("resize to the limit", row, [=](skua_context* context, skua_op** op) { return skua_resize2d_create(context, &d, op); });
  compare_all({""}, w.all);
  ++d.out_w;
  on_every_gpu([&](Context& gpu) {
    Op op;
    SKUA_EXPECT_OK(skua_resize2d_create(gpu, &d, &op));
    skua_plan* plan = nullptr;
    EXPECT_EQ(skua_op_plan(op, &row, 1, nullptr, 0, &plan), SKUA_STATUS_UNSUPPORTED);
    EXPECT_NE(std::string(skua_error_text()).find("2093063"), std::string::npos) << skua_error_text();
    skua_plan_destroy(plan);
  });
}

// What is left to the CPU says so, and why.
TEST(gpu_bytes, refuses_what_it_has_no_kernel_for) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    Context context(device);
    const auto refused = [&](const char* part, const Create& create) {
      Op op;
      EXPECT_EQ(create(context, &op), SKUA_STATUS_UNSUPPORTED) << part;
      EXPECT_NE(std::string(skua_error_text()).find(part), std::string::npos) << skua_error_text();
    };
    skua_softmax_desc s = SKUA_SOFTMAX_DESC_INIT;
    s.input_type = s.output_type = SKUA_DTYPE_S8;
    s.input_q.scale = s.output_q.scale = 0.1f;
    s.log = true;
    refused("softmax: log is true", [&](skua_context* c, skua_op** op) { return skua_softmax_create(c, &s, op); });
    const std::vector<int8_t> weights(16, 1);
    skua_gemm_desc g = SKUA_GEMM_DESC_INIT;
    g.a_type = g.b_type = g.c_type = SKUA_DTYPE_S8;
    g.a_q.scale = g.b_q.scale = g.c_q.scale = 0.1f;
    g.n = g.k = 4;
    refused("residual", [&](skua_context* c, skua_op** op) {
      skua_gemm_desc d = g;
      d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
      d.residual_q.scale = 0.1f;
      return skua_gemm_create(c, &d, weights.data(), nullptr, op);
    });
    refused("requantization", [&](skua_context* c, skua_op** op) {
      skua_gemm_desc d = g;
      d.requantization.rounding = SKUA_ROUNDING_SINGLE;
      return skua_gemm_create(c, &d, weights.data(), nullptr, op);
    });
  }
}

// What kernels' 32 bits can count is made, one more is refused when it is planned or, where it is known, created.
TEST(gpu_bytes, limits_of_sums) {
  if (int8_types().empty()) GTEST_SKIP() << "a build without s8";
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context context(device);
    if (!context.context) continue;
    const auto plans = [&](const Op& op, const skua_tensor& x, const char* refusal) {
      SCOPED_TRACE(refusal ? refusal : "the most");
      skua_plan* plan = nullptr;
      if (!op.op) return;
      EXPECT_EQ(skua_op_plan(op, &x, 1, nullptr, 0, &plan), refusal ? SKUA_STATUS_UNSUPPORTED : SKUA_STATUS_OK) << skua_error_text();
      if (refusal) {
        EXPECT_NE(std::string(skua_error_text()).find(refusal), std::string::npos) << skua_error_text();
      }
      skua_plan_destroy(plan);
    };
    skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
    d.kind = SKUA_POOL_AVERAGE;
    d.type = SKUA_DTYPE_S8;
    d.input_q.scale = d.output_q.scale = 0.1f;
    d.global = true;
    {
      Op global;
      SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &global));
      plans(global, shape({1, 4096, 2048, 1}, SKUA_DTYPE_S8), nullptr);
      plans(global, shape({1, 4096, 2049, 1}, SKUA_DTYPE_S8), "a window of 4096 x 2049 bytes, more than 8388608");
    }
    d.global = false;
    d.kernel_h = d.kernel_w = 256;
    Op most, more;
    SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &most));
    d.kernel_w = 257;
    EXPECT_EQ(skua_pool2d_create(context, &d, &more), SKUA_STATUS_UNSUPPORTED);
    EXPECT_NE(std::string(skua_error_text()).find("a window of 256 x 257 bytes, more than 65536"), std::string::npos) << skua_error_text();
    // Their exponentials are the largest: all alike. By groups and by threads.
    for (const bool columns : {false, true}) {
      skua_softmax_desc s = SKUA_SOFTMAX_DESC_INIT;
      s.input_type = s.output_type = SKUA_DTYPE_S8;
      s.input_q.scale = 0.1f;
      s.output_q.scale = 1e-7f;
      s.axis = columns ? 0 : 1;
      Context cpu;
      Op op, wanted;
      SKUA_EXPECT_OK(skua_softmax_create(context, &s, &op));
      SKUA_EXPECT_OK(skua_softmax_create(cpu, &s, &wanted));
      Data x;
      x.t = columns ? shape({65000, 2}, SKUA_DTYPE_S8) : shape({2, 65000}, SKUA_DTYPE_S8);
      x.v.assign(130000, 100);
      if (op.op && wanted.op) expect_same_bits(run(op, {x})[0], run(wanted, {x})[0]);
      plans(op, columns ? shape({65001, 2}, SKUA_DTYPE_S8) : shape({2, 65001}, SKUA_DTYPE_S8), "softmax: 65001 bytes along the axis, at most 65000 on a GPU");
    }
  }
}

}  // namespace
