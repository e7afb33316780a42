#include "tests/support/operators.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace skua_test {

const float* constants() {
  static const std::vector<float> values = [] {
    Rng rng(4711);
    std::vector<float> v(1 << 16);
    for (float& x : v) x = rng.uniform(0.1f, 1);  // positive: they serve as variances too
    return v;
  }();
  return values.data();
}

std::vector<Data> Sample::values(uint32_t seed) const {
  Rng rng(seed);
  std::vector<Data> data;
  for (const skua_tensor& t : inputs)
    data.push_back(t.type == SKUA_DTYPE_S32                             ? make_integers(t, rng)
                   : t.type == SKUA_DTYPE_S8 || t.type == SKUA_DTYPE_U8 ? make_bytes(t, rng)
                                                                        : make(t, rng));
  return data;
}

namespace {

using Create = std::function<skua_status(skua_context*, skua_op**)>;

Sample gemm(const char* name, bool constant, skua_activation_kind activation, skua_residual residual,
            std::vector<skua_tensor> inputs, bool transpose_a = false) {
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.n = 37, d.k = constant ? 24 : 0;
  d.transpose_a = transpose_a;
  d.epilogue = {{activation, 0.1f, 1}, residual};
  return {name,
          [=](skua_context* c, skua_op** out) {
            return skua_gemm_create(c, &d, constant ? constants() : nullptr, constants() + 5000, out);
          },
          std::move(inputs), true};
}

// Weights of bytes are the constants' own, of s4 too; biases of bytes are zeros.
Sample gemm_bytes(const char* name, bool constant, std::vector<skua_tensor> inputs) {
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.n = constant ? 37 : 0, d.k = constant ? 24 : 0;
  d.a_type = SKUA_DTYPE_U8, d.b_type = d.c_type = SKUA_DTYPE_S8;
  d.a_q.scale = 0.02f, d.a_q.zero_point = 131;
  d.b_q.scale = 0.01f;
  d.c_q.scale = 0.5f, d.c_q.zero_point = -3;
  return {name,
          [=](skua_context* c, skua_op** out) {
            return skua_gemm_create(c, &d, constant ? constants() : nullptr, nullptr, out);
          },
          std::move(inputs), constant};
}

// A quantised, or in floats; block 0: one scale.
Sample gemm_weights(const char* name, bool quantize_a, skua_dtype b, uint32_t block, std::vector<skua_tensor> inputs) {
  static const int32_t zeros[37 * 3] = {1, -2, 3, 0, 7, -8};
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.n = 37, d.k = 70, d.ldb = 38;
  d.b_type = b;
  d.quantize_a = quantize_a;
  d.b_q.scale = 0.02f;
  if (block) d.b_q.scales = constants(), d.b_q.axis = 1, d.b_q.block_size = block, d.b_q.zero_points = zeros;
  return {name,
          [=](skua_context* c, skua_op** out) { return skua_gemm_create(c, &d, constants(), constants() + 5000, out); },
          std::move(inputs), true};
}

Sample conv_bytes(const char* name, uint32_t stride, uint32_t groups, skua_tensor input) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.stride_h = d.stride_w = stride;
  d.groups = groups;
  d.in_channels = uint32_t(input.shape[3]), d.out_channels = groups > 1 ? d.in_channels : 19;
  d.padding.mode = SKUA_PADDING_SAME_UPPER;
  d.input_type = d.weight_type = d.output_type = input.type = SKUA_DTYPE_S8;
  d.input_q.scale = 0.02f, d.input_q.zero_point = 4;
  d.weight_q.scale = 0.01f;
  d.output_q.scale = 0.5f, d.output_q.zero_point = -3;
  return {name,
          [=](skua_context* c, skua_op** out) { return skua_conv2d_create(c, &d, constants(), nullptr, out); },
          {input},
          true};
}

Sample conv(const char* name, uint32_t kernel, uint32_t stride, uint32_t groups, uint32_t in, uint32_t out,
            skua_layout layout, skua_residual residual, std::vector<skua_tensor> inputs) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = kernel;
  d.stride_h = d.stride_w = stride;
  d.groups = groups;
  d.in_channels = in, d.out_channels = out;
  d.layout = layout;
  d.padding.mode = SKUA_PADDING_SAME_UPPER;
  d.epilogue = {{SKUA_ACTIVATION_RELU6, 0, 0}, residual};
  return {
      name,
      [=](skua_context* c, skua_op** out) { return skua_conv2d_create(c, &d, constants(), constants() + 100, out); },
      std::move(inputs), true};
}

Sample conv_transpose() {
  skua_conv2d_transpose_desc d = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
  d.kernel_h = d.kernel_w = 3;
  d.stride_h = d.stride_w = 2;
  d.in_channels = 5, d.out_channels = 7;
  d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  d.output_padding_h = d.output_padding_w = 1;
  return {
      "conv2d_transpose",
      [=](skua_context* c, skua_op** out) { return skua_conv2d_transpose_create(c, &d, constants(), nullptr, out); },
      {shape({2, 6, 5, 5})},
      true};
}

Sample inverted_residual() {
  skua_inverted_residual_desc d = SKUA_INVERTED_RESIDUAL_DESC_INIT;
  d.expand.in_channels = d.project.out_channels = 6;
  d.expand.out_channels = d.depthwise.in_channels = d.depthwise.out_channels = d.depthwise.groups =
      d.project.in_channels = 21;
  d.depthwise.kernel_h = d.depthwise.kernel_w = 3;
  d.depthwise.padding.mode = SKUA_PADDING_SAME_UPPER;
  d.depthwise.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
  d.project.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  return {"inverted_residual", [=](skua_context* c, skua_op** out) {
            const void* const weights[] = {constants(), constants() + 1000, constants() + 2000};
            const void* const biases[] = {constants() + 100, nullptr, constants() + 200};
            return skua_inverted_residual_create(c, &d, weights, biases, out);
          }, {shape({2, 9, 8, 6}), shape({2, 9, 8, 6})}, true};
}

Sample pool(const char* name, skua_pool_kind kind, bool global, skua_layout layout) {
  skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
  d.kind = kind;
  d.global = global;
  d.layout = layout;
  d.kernel_h = d.kernel_w = 3;
  d.stride_h = d.stride_w = 2;
  d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  return {name, [=](skua_context* c, skua_op** out) { return skua_pool2d_create(c, &d, out); }, {shape({2, 9, 8, 19})}};
}

Sample unary(const char* name, skua_unary_kind kind) {
  skua_unary_desc d = SKUA_UNARY_DESC_INIT;
  d.kind = kind;
  return {
      name, [=](skua_context* c, skua_op** out) { return skua_unary_create(c, &d, out); }, {shape({3, 37})}, false, 0};
}

Sample binary(const char* name, skua_binary_kind kind, skua_tensor x, skua_tensor y) {
  skua_binary_desc d = SKUA_BINARY_DESC_INIT;
  d.kind = kind;
  return {name, [=](skua_context* c, skua_op** out) { return skua_binary_create(c, &d, out); }, {x, y}, false, 0};
}

Sample norm(const char* name, skua_norm_kind kind) {
  skua_norm_desc d = SKUA_NORM_DESC_INIT;
  d.kind = kind;
  d.channels = 24;
  d.groups = kind == SKUA_NORM_GROUP ? 4 : 1;
  const bool batch = kind == SKUA_NORM_BATCH;
  return {name,
          [=](skua_context* c, skua_op** out) {
            return skua_norm_create(c, &d, constants(), kind == SKUA_NORM_RMS ? nullptr : constants() + 50,
                                    batch ? constants() + 100 : nullptr, batch ? constants() + 200 : nullptr, out);
          },
          {shape({2, 5, 3, 24})},
          true,
          0};
}

Sample softmax(const char* name, bool log, int axis) {
  skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
  d.log = log;
  d.axis = axis;
  return {name,
          [=](skua_context* c, skua_op** out) { return skua_softmax_create(c, &d, out); },
          {shape({4, 6, 29})},
          false,
          0};
}

Sample reduce(const char* name, skua_reduce_kind kind, int axis) {
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
  d.kind = kind;
  d.axis_count = 1;
  d.axes[0] = axis;
  return {name, [=](skua_context* c, skua_op** out) { return skua_reduce_create(c, &d, out); }, {shape({5, 7, 21})}};
}

Sample resize(const char* name, skua_resize_kind kind) {
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  d.kind = kind;
  d.out_h = 9, d.out_w = 13;
  return {
      name, [=](skua_context* c, skua_op** out) { return skua_resize2d_create(c, &d, out); }, {shape({2, 6, 5, 11})}};
}

// With a scale for each channel, which are no packed weights.
Sample convert() {
  return {"convert", [](skua_context* c, skua_op** out) {
            float scales[37];
            for (int i = 0; i < 37; ++i) scales[i] = 0.01f * float(i + 1);
            skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
            d.input_type = SKUA_DTYPE_S8;
            d.output_type = SKUA_DTYPE_F32;
            d.channels = 37;
            d.input_q.scales = scales;
            d.input_q.axis = 1;
            return skua_convert_create(c, &d, out);
          }, {shape({5, 37}, SKUA_DTYPE_S8)}};
}

std::vector<Sample> data_samples() {
  skua_transpose_desc transpose = SKUA_TRANSPOSE_DESC_INIT;
  transpose.rank = 3;
  transpose.perm[0] = 2, transpose.perm[1] = 0, transpose.perm[2] = 1;
  skua_layout_desc layout = SKUA_LAYOUT_DESC_INIT;
  layout.to = SKUA_LAYOUT_NCHW;
  skua_pad_desc pad = SKUA_PAD_DESC_INIT;
  pad.rank = 2, pad.before[0] = 1, pad.after[1] = 3, pad.mode = SKUA_PAD_REFLECT;
  skua_slice_desc slice = SKUA_SLICE_DESC_INIT;
  slice.rank = 2, slice.begin[1] = 2, slice.size[0] = SIZE_MAX, slice.size[1] = 5, slice.step[1] = 3;
  skua_concat_desc concat = SKUA_CONCAT_DESC_INIT;
  concat.axis = -1;
  skua_rearrange_desc rearrange = SKUA_REARRANGE_DESC_INIT;
  rearrange.block = 2;
  return {
      {"transpose", [=](skua_context* c, skua_op** out) { return skua_transpose_create(c, &transpose, out); },
       {shape({4, 17, 23})}},
      {"layout", [=](skua_context* c, skua_op** out) { return skua_layout_create(c, &layout, out); },
       {shape({2, 5, 7, 19})}},
      {"pad", [=](skua_context* c, skua_op** out) { return skua_pad_create(c, &pad, out); }, {shape({5, 19})}},
      {"slice", [=](skua_context* c, skua_op** out) { return skua_slice_create(c, &slice, out); }, {shape({5, 19})}},
      {"concat", [=](skua_context* c, skua_op** out) { return skua_concat_create(c, &concat, out); },
       {shape({5, 19}), shape({5, 1}), shape({5, 0}), shape({5, 8}), shape({5, 3})}},
      {"rearrange", [=](skua_context* c, skua_op** out) { return skua_rearrange_create(c, &rearrange, out); },
       {shape({2, 3, 5, 12})}},
  };
}

std::vector<Sample> all_samples() {
  const skua_layout nhwc = SKUA_LAYOUT_NHWC, nchw = SKUA_LAYOUT_NCHW;
  std::vector<Sample> list = {
      gemm("gemm", false, SKUA_ACTIVATION_NONE, SKUA_RESIDUAL_NONE, {shape({5, 24}), shape({24, 37})}),
      gemm("gemm_tall", false, SKUA_ACTIVATION_RELU, SKUA_RESIDUAL_NONE, {shape({24, 70}), shape({2, 24, 37})}, true),
      gemm("gemm_constant", true, SKUA_ACTIVATION_CLAMP, SKUA_RESIDUAL_BEFORE_ACTIVATION,
           {shape({5, 24}), shape({5, 37})}),
      gemm("gemm_gelu", true, SKUA_ACTIVATION_GELU, SKUA_RESIDUAL_AFTER_ACTIVATION,
           {shape({2, 9, 24}), shape({2, 9, 37})}),
      conv("conv_3x3", 3, 1, 1, 16, 19, nhwc, SKUA_RESIDUAL_NONE, {shape({2, 12, 13, 16})}),
      conv("conv_3x3s2", 3, 2, 1, 5, 19, nhwc, SKUA_RESIDUAL_NONE, {shape({2, 12, 13, 5})}),
      conv("conv_1x1_residual", 1, 1, 1, 8, 9, nhwc, SKUA_RESIDUAL_AFTER_ACTIVATION,
           {shape({1, 6, 7, 8}), shape({1, 6, 7, 9})}),
      conv("conv_groups", 3, 1, 2, 6, 8, nhwc, SKUA_RESIDUAL_NONE, {shape({1, 6, 7, 6})}),
      conv("conv_depthwise", 3, 1, 21, 21, 21, nhwc, SKUA_RESIDUAL_NONE, {shape({2, 9, 8, 21})}),
      conv("conv_nchw", 3, 1, 1, 5, 6, nchw, SKUA_RESIDUAL_BEFORE_ACTIVATION,
           {shape({2, 5, 9, 8}), shape({2, 6, 9, 8})}),
      gemm_bytes("gemm_bytes", false, {shape({5, 24}, SKUA_DTYPE_U8), shape({24, 37}, SKUA_DTYPE_S8)}),
      gemm_bytes("gemm_bytes_constant", true, {shape({2, 9, 24}, SKUA_DTYPE_U8)}),
      gemm_weights("gemm_rows_s8", true, SKUA_DTYPE_S8, 0, {shape({2, 9, 70})}),
      gemm_weights("gemm_rows_s4", true, SKUA_DTYPE_S4, 0, {shape({11, 70})}),
      gemm_weights("gemm_rows_s4_blocks", true, SKUA_DTYPE_S4, 32, {shape({5, 70})}),
      gemm_weights("gemm_weights_s4", false, SKUA_DTYPE_S4, 32, {shape({5, 70})}),
      gemm_weights("gemm_weights_s8", false, SKUA_DTYPE_S8, 0, {shape({2, 9, 70})}),
      conv_bytes("conv_bytes", 1, 1, shape({2, 12, 13, 16})),
      conv_bytes("conv_bytes_groups", 2, 2, shape({1, 6, 7, 6})),
      conv_bytes("conv_bytes_depthwise", 1, 21, shape({2, 9, 8, 21})),
      conv_transpose(),
      inverted_residual(),
      pool("pool_max", SKUA_POOL_MAX, false, nhwc),
      pool("pool_average_nchw", SKUA_POOL_AVERAGE, false, nchw),
      pool("pool_indices", SKUA_POOL_MAX_INDICES, false, nhwc),
      pool("pool_global", SKUA_POOL_AVERAGE, true, nhwc),
      unary("relu", SKUA_UNARY_RELU),
      unary("exp", SKUA_UNARY_EXP),
      binary("add", SKUA_BINARY_ADD, shape({3, 37}), shape({3, 37})),
      binary("prelu", SKUA_BINARY_PRELU, shape({2, 3, 37}), shape({37})),
      {"select", [](skua_context* c, skua_op** out) {
         const skua_select_desc d = SKUA_SELECT_DESC_INIT;
         return skua_select_create(c, &d, out);
       }, {shape({3, 1}), shape({3, 37}), shape({37})}, false, 1},
      convert(),
      softmax("softmax", false, -1),
      softmax("log_softmax", true, 1),
      norm("norm_layer", SKUA_NORM_LAYER),
      norm("norm_rms", SKUA_NORM_RMS),
      norm("norm_batch", SKUA_NORM_BATCH),
      norm("norm_group", SKUA_NORM_GROUP),
      norm("norm_instance", SKUA_NORM_INSTANCE),
      reduce("reduce_sum", SKUA_REDUCE_SUM, 1),
      reduce("reduce_argmax", SKUA_REDUCE_ARGMAX, -1),
      resize("resize_nearest", SKUA_RESIZE_NEAREST),
      resize("resize_bilinear", SKUA_RESIZE_BILINEAR),
  };
  for (Sample& s : data_samples()) list.push_back(std::move(s));
  return list;
}

}  // namespace

const std::vector<Sample>& samples() {
  static const std::vector<Sample> list = [] {
    std::vector<Sample> here;
    skua_context* context = nullptr;
    if (skua_context_create(nullptr, &context) != SKUA_STATUS_OK) std::abort();
    for (Sample& sample : all_samples()) {
      skua_op* op = nullptr;
      const skua_status status = sample.create(context, &op);
      if (status == SKUA_STATUS_UNSUPPORTED &&
          (std::strstr(skua_error_text(), "in this build") || std::strstr(skua_error_text(), "this build leaves out")))
        continue;
      skua_op_destroy(op);
      here.push_back(std::move(sample));
    }
    skua_context_destroy(context);
    return here;
  }();
  return list;
}

Planned::Planned(const Sample& sample, skua_context* context) : data(sample.values()) {
  SKUA_EXPECT_OK(sample.create(context, &op));
  if (!op) return;
  SKUA_EXPECT_OK(skua_op_plan(op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, &plan));
  if (!plan) return;
  outputs.resize(skua_op_output_count(op));
  SKUA_EXPECT_OK(skua_plan_outputs(plan, outputs.data(), outputs.size()));
  for (Data& d : data) {  // in place, as what memory holds
    const size_t bytes = skua_dtype_bits(d.t.type) / 8;
    for (size_t i = 0; i < d.v.size() && d.t.type != SKUA_DTYPE_F32; ++i) {
      const int32_t value = int32_t(d.v[i]);
      std::memcpy(reinterpret_cast<char*>(d.v.data()) + i * bytes, &value, bytes);
    }
    inputs.push_back(skua_host_buffer(d.v.data()));
  }
}

Planned::~Planned() {
  skua_plan_destroy(plan);
  skua_op_destroy(op);
}

std::vector<unsigned char> Planned::compute(const skua_executor* executor) const {
  std::vector<unsigned char> bytes;
  if (!plan) return bytes;
  std::vector<std::vector<uint32_t>> memory;
  std::vector<skua_buffer> buffers;
  for (const skua_tensor& t : outputs) {
    memory.emplace_back(extent(t), 0x7fa5a5a5);
    buffers.push_back(skua_host_buffer(memory.back().data()));
  }
  const size_t size = skua_plan_workspace(plan, executor ? executor->concurrency : 1);
  std::vector<unsigned char> space(size + SKUA_WORKSPACE_ALIGNMENT, 0xff);
  void* workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + SKUA_WORKSPACE_ALIGNMENT - 1) /
                                            SKUA_WORKSPACE_ALIGNMENT * SKUA_WORKSPACE_ALIGNMENT);
  SKUA_EXPECT_OK(
      skua_plan_run(plan, inputs.data(), inputs.size(), buffers.data(), buffers.size(), workspace, size, executor));
  for (const auto& m : memory) {
    const auto* from = reinterpret_cast<const unsigned char*>(m.data());
    bytes.insert(bytes.end(), from, from + m.size() * 4);
  }
  return bytes;
}

}  // namespace skua_test
