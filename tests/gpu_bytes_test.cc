// Operators on s8 and u8 on every GPU of the machine, by every kernel: the CPU's bits.
#include <skua/data.h>
#include <skua/elementwise.h>
#include <skua/normalize.h>
#include <skua/pool.h>
#include <skua/reduce.h>
#include <skua/resize.h>

#include <cmath>

#include "tests/support/gpu_bytes.h"

namespace {
using namespace skua_test;

// ---- elementwise ----------------------------------------------------------------------------------------------------
Work converting(const skua_tensor& t, skua_dtype from, skua_dtype to, int axis = -1) {
  Rng rng(uint32_t(int(from) * 31 + int(to)));
  Work w;
  w.text = std::string(skua_dtype_name(from)) + " to " + skua_dtype_name(to) + " axis " + std::to_string(axis) +
           " rank " + std::to_string(t.rank);
  std::vector<float> scales;
  std::vector<int32_t> zeros;
  for (size_t i = 0; axis >= 0 && i < t.shape[axis]; ++i)
    scales.push_back(rng.uniform(0.005f, 0.03f)), zeros.push_back(rng.integer(0, 100));
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
  // a scale each: all kinds of ends to round, and denormals
  w = converting(shape({4096}), SKUA_DTYPE_S8, SKUA_DTYPE_F16, 0);
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
  const std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>> shapes = {
      {{3, 5, 8}, {3, 5, 8}}, {{3, 5, 8}, {8}}, {{4, 1, 8}, {1, 5, 1}}, {{7, 5}, {7, 5}}, {{3, 1}, {3, 7}}};
  for (skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
    for (skua_binary_kind kind : {SKUA_BINARY_ADD, SKUA_BINARY_SUB, SKUA_BINARY_MUL, SKUA_BINARY_MIN, SKUA_BINARY_MAX,
                                  SKUA_BINARY_SQUARED_DIFFERENCE, SKUA_BINARY_PRELU})
      for (size_t i = 0; i < shapes.size(); ++i) {
        // A program for each function, type and way to read: some of all.
        if (i != (kind == SKUA_BINARY_ADD && type == SKUA_DTYPE_S8 ? i
                  : type == SKUA_DTYPE_U8                          ? 3
                                                                   : 1) ||
            (type == SKUA_DTYPE_U8 && kind != SKUA_BINARY_PRELU))
          continue;
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

// ---- maps and rows --------------------------------------------------------------------------------------------------
struct Works {
  std::vector<Work> all;
  Rng rng{11};
  void add(const std::string& text, const skua_tensor& x, Create create, const std::vector<skua_tensor>& outputs = {}) {
    all.push_back({text, std::move(create), {make_bytes(x, rng)}, outputs});
  }
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
        const skua_tensor x =
            way == 3 ? shape({2, 5, 7, 6}, type) : holed(shape({2, 9, 7, way % 2 ? 6u : 8u}, type), way == 4 ? 4 : 0);
        w.add("pool kind " + std::to_string(kind) + " way " + std::to_string(way) + " " + skua_dtype_name(type), x,
              [=](skua_context* context, skua_op** op) { return skua_pool2d_create(context, &d, op); });
      }
  compare_all({""}, w.all);
}

// Few results of many terms, which work-groups share and a second dispatch joins.
TEST(gpu_bytes, pooling_and_reductions_in_parts) {
  Works w;
  for (const skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8})
    for (const skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE})
      for (const unsigned channels : {8, 5}) {
        skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
        d.type = type;
        d.kind = kind;
        d.global = true;
        quantize(d.input_q, d.output_q, type, 0.02f, 0.001f);
        if (kind != SKUA_POOL_AVERAGE) d.output_q = d.input_q;
        w.add(
            "pool kind " + std::to_string(kind) + " channels " + std::to_string(channels) + " " + skua_dtype_name(type),
            holed(shape({2, 67, 61, channels}, type), type == SKUA_DTYPE_U8 ? 4 : 0),
            [=](skua_context* context, skua_op** op) { return skua_pool2d_create(context, &d, op); });
      }
  for (const skua_reduce_kind kind : {SKUA_REDUCE_MEAN, SKUA_REDUCE_MAX, SKUA_REDUCE_ARGMIN, SKUA_REDUCE_ARGMAX})
    for (const auto& extents : {std::vector<size_t>{2, 2100, 5}, {1, 33001, 1}}) {
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = kind;
      d.type = extents[0] == 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
      d.axis_count = 1;
      d.axes[0] = 1;
      if (kind < SKUA_REDUCE_ARGMIN) quantize(d.input_q, d.output_q, d.type, 0.02f, 0.001f);
      w.add("reduce kind " + std::to_string(kind) + " of " + std::to_string(extents[1]), shape(extents, d.type),
            [=](skua_context* context, skua_op** op) { return skua_reduce_create(context, &d, op); });
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
      w.add("softmax axis " + std::to_string(axis) + " of " + std::to_string(s.size()) + " last " +
                std::to_string(s.back()),
            holed(shape(s, d.input_type), 0),
            [=](skua_context* context, skua_op** op) { return skua_softmax_create(context, &d, op); });
    }
  compare_all({""}, w.all);
}

TEST(gpu_bytes, reductions) {
  Works w;
  const std::vector<std::vector<int32_t>> axes = {{}, {0}, {3}, {1, 2}, {0, 2}, {0, 1, 3}};
  for (const int kind :
       {SKUA_REDUCE_SUM, SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX, SKUA_REDUCE_ARGMIN, SKUA_REDUCE_ARGMAX})
    for (const auto& a : axes) {
      const bool arg = kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX;
      if (arg && a.size() != 1) continue;
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = skua_reduce_kind(kind);
      d.type = a.size() % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
      d.axis_count = uint32_t(a.size());
      for (size_t i = 0; i < a.size(); ++i) d.axes[i] = a[i];
      if (!arg) quantize(d.input_q, d.output_q, d.type, 0.02f, kind == SKUA_REDUCE_SUM ? 1.7f : 0.021f);
      w.add("reduce kind " + std::to_string(kind) + " axes " + std::to_string(a.size()), shape({3, 5, 4, 70}, d.type),
            [=](skua_context* context, skua_op** op) { return skua_reduce_create(context, &d, op); });
    }
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;  // nothing to reduce
  d.kind = SKUA_REDUCE_MAX;
  d.type = SKUA_DTYPE_S8;
  d.axis_count = 1;
  d.axes[0] = 1;
  quantize(d.input_q, d.output_q, d.type, 0.02f, 0.02f);
  w.add("reduce nothing", shape({3, 0, 4}, d.type),
        [=](skua_context* context, skua_op** op) { return skua_reduce_create(context, &d, op); });
  compare_all({""}, w.all);
}

TEST(gpu_bytes, resize) {
  Works w;
  for (const skua_resize_kind kind : {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR})
    for (const skua_resize_coordinates coordinates :
         {SKUA_RESIZE_HALF_PIXEL, SKUA_RESIZE_ALIGN_CORNERS, SKUA_RESIZE_ASYMMETRIC})
      for (int way = 0; way < 3; ++way) {
        skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
        d.kind = kind;
        d.coordinates = coordinates;
        d.type = way ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
        d.layout = way == 2 ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
        d.out_h = way == 1 ? 4 : 13; d.out_w = 11;
        d.input_q.scale = d.output_q.scale = 0.02f;
        w.add("resize kind " + std::to_string(kind) + " coordinates " + std::to_string(coordinates) + " way " +
                  std::to_string(way),
              way == 2 ? shape({2, 3, 6, 5}, d.type) : shape({2, 6, 5, way ? 7u : 8u}, d.type),
              [=](skua_context* context, skua_op** op) { return skua_resize2d_create(context, &d, op); });
      }
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  d.kind = SKUA_RESIZE_BILINEAR;
  d.type = SKUA_DTYPE_U8;
  d.out_h = 1; d.out_w = 2093063;  // the largest whose weights are counted in 32 bits
  d.input_q.scale = d.output_q.scale = 0.02f;
  const skua_tensor row = shape({1, 1, 17, 1}, d.type);
  if (!small())
    w.add("resize to the limit", row,
          [=](skua_context* context, skua_op** op) { return skua_resize2d_create(context, &d, op); });
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
    skua_binary_desc d = SKUA_BINARY_DESC_INIT;
    d.kind = SKUA_BINARY_DIV;
    d.type = SKUA_DTYPE_S8;
    d.x_q.scale = d.y_q.scale = d.output_q.scale = 0.1f;
    refused("binary: kind is DIV", [&](skua_context* c, skua_op** op) { return skua_binary_create(c, &d, op); });
    const std::vector<int8_t> weights(16, 1);
    skua_gemm_desc g = SKUA_GEMM_DESC_INIT;
    g.a_type = g.c_type = SKUA_DTYPE_F32;
    g.b_type = SKUA_DTYPE_S8;
    g.b_q.scale = 0.1f;
    g.n = g.k = 4;
    refused("b_type",
            [&](skua_context* c, skua_op** op) { return skua_gemm_create(c, &g, weights.data(), nullptr, op); });
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
      EXPECT_EQ(skua_op_plan(op, &x, 1, nullptr, 0, &plan), refusal ? SKUA_STATUS_UNSUPPORTED : SKUA_STATUS_OK)
          << skua_error_text();
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
    EXPECT_NE(std::string(skua_error_text()).find("a window of 256 x 257 bytes, more than 65536"), std::string::npos)
        << skua_error_text();
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
      plans(op, columns ? shape({65001, 2}, SKUA_DTYPE_S8) : shape({2, 65001}, SKUA_DTYPE_S8),
            "softmax: 65001 bytes along the axis, at most 65000 on a GPU");
    }
  }
}

}  // namespace
