// Every field of every descriptor out of range: refused, and the text names the field.
#include <cmath>
#include <cstring>
#include <string>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

// Creates, and if that is accepted plans; what comes of it.
class Sweep {
 public:
  explicit Sweep(const char* op) : op_(op) {}
  ~Sweep() { EXPECT_GT(refused_ + accepted_, 0) << op_; }

  template <class Desc, class Create>
  void operator()(const Desc& d, Create create, const std::vector<skua_tensor>& inputs, const char* field) {
    Context context;
    Op op;
    op.op = reinterpret_cast<skua_op*>(&context);
    skua_status status = create(context, d, &op.op);
    if (status == SKUA_STATUS_OK && op.op) {
      skua_plan* plan = nullptr;
      status = skua_op_plan(op, inputs.data(), inputs.size(), nullptr, 0, &plan);
      skua_plan_destroy(plan);
    } else {
      EXPECT_EQ(op.op, nullptr) << op_ << ": " << field;
      op.op = nullptr;
    }
    if (status == SKUA_STATUS_UNSUPPORTED && std::strstr(skua_error_text(), "not in this build"))
      return void(++accepted_);
    EXPECT_TRUE(status == SKUA_STATUS_INVALID_ARGUMENT || status == SKUA_STATUS_UNSUPPORTED)
        << op_ << ": " << field << " gives " << skua_status_name(status);
    EXPECT_NE(std::strstr(skua_error_text(), field), nullptr)
        << op_ << ": \"" << skua_error_text() << "\" does not name " << field;
    EXPECT_EQ(std::strncmp(skua_error_text(), op_, std::strlen(op_)), 0)
        << "\"" << skua_error_text() << "\" does not begin with " << op_;
    ++refused_;
  }

 private:
  const char* op_;
  int refused_ = 0, accepted_ = 0;
};

// BAD(field the text names, assignment): in a test with `sweep`, `good`, `create` and `inputs`.
#define BAD(field, ...) BAD_WITH(create, inputs, field, __VA_ARGS__)
#define BAD_WITH(create, inputs, field, ...) \
  do {                                       \
    auto d = good;                           \
    __VA_ARGS__;                             \
    sweep(d, create, inputs, field);         \
  } while (0)

const skua_dtype kUnknownType = skua_dtype(99);

TEST(Descriptor, Gemm) {
  Sweep sweep("gemm");
  skua_gemm_desc good = SKUA_GEMM_DESC_INIT;
  good.n = 7, good.k = 5;
  const std::vector<skua_tensor> inputs = {shape({3, 5})};
  auto create = [](skua_context* c, const skua_gemm_desc& d, skua_op** out) {
    return skua_gemm_create(c, &d, constants(), constants(), out);
  };
  BAD("the residual if there is one", d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION);
  BAD("struct_size", d.struct_size = 0);
  BAD("struct_size", d.struct_size += 4);
  for (skua_dtype type :
       {SKUA_DTYPE_F16, SKUA_DTYPE_BF16, SKUA_DTYPE_S8, SKUA_DTYPE_U8, SKUA_DTYPE_S4, SKUA_DTYPE_S32, kUnknownType}) {
    if (type != SKUA_DTYPE_F16 && type != SKUA_DTYPE_BF16) BAD_WITH(create, inputs, "a_type", d.a_type = type);
    // b_q, where weights of bytes are built
    BAD_WITH(create, inputs, type == SKUA_DTYPE_S8 || type == SKUA_DTYPE_S4 ? "b_" : "b_type", d.b_type = type);
    BAD_WITH(create, inputs, "c_type", d.c_type = type);
  }
  BAD("a_q", d.a_q.scale = 0.5f);
  BAD("b_q", d.b_q.zero_point = 3);
  BAD("c_q", d.c_q.block_size = 32);
  BAD("residual_q", d.residual_q.scale = 1);
  BAD("requantization", d.requantization.rounding = SKUA_ROUNDING_DOUBLE);
  BAD("n is", d.n = 0);
  BAD("k is", d.k = 0);
  BAD("n ", d.n = SIZE_MAX);
  BAD("k ", d.k = SIZE_MAX);
  BAD("address space", d.n = d.k = size_t(1) << (sizeof(size_t) * 4));
  BAD("ldb", d.ldb = 6);
  BAD("ldb", d.ldb = SIZE_MAX);
  BAD("ldb", d.ldb = size_t(1) << (sizeof(size_t) * 8 - 2));
  BAD("ldb", d.transpose_b = true, d.ldb = 4);
  BAD("activation", d.epilogue.activation.kind = skua_activation_kind(14));
  BAD("activation", d.epilogue.activation.kind = skua_activation_kind(-1));
  BAD("activation", d.epilogue.activation = (skua_activation{SKUA_ACTIVATION_CLAMP, 1, 0}));
  BAD("activation", d.epilogue.activation = (skua_activation{SKUA_ACTIVATION_CLAMP, NAN, 0}));
  BAD("residual", d.epilogue.residual = skua_residual(3));
  BAD("numerics", d.numerics = skua_numerics(3));
  BAD("n_inputs", d.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION);
  BAD("K", d.k = 4);
  auto dynamic = [](skua_context* c, const skua_gemm_desc& d, skua_op** out) {
    return skua_gemm_create(c, &d, nullptr, nullptr, out);
  };
  BAD("numerics", d.numerics = skua_numerics(-1));
  sweep(good, dynamic, inputs, "k is 5");
  BAD_WITH(dynamic, inputs, "n is 7", d.k = 0);
  BAD_WITH(dynamic, inputs, "ldb is 9", d.n = d.k = 0, d.ldb = 9);
  auto shapes = [&](std::vector<skua_tensor> list, const char* text) {
    sweep(skua_gemm_desc(SKUA_GEMM_DESC_INIT), dynamic, list, text);
  };
  shapes({shape({5}), shape({5, 7})}, "input 0");
  shapes({shape({3, 5}), shape({7})}, "input 1");
  shapes({shape({3, 5}), shape({6, 7})}, "K");
  shapes({shape({2, 3, 5}), shape({3, 5, 7})}, "batch");
  shapes({shape({3, 5}, SKUA_DTYPE_S32), shape({5, 7})}, "input 0");
  skua_tensor strided = shape({3, 5});
  strided.stride[0] = 10, strided.stride[1] = 2;
  shapes({strided, shape({5, 7})}, "innermost stride");
}

TEST(Descriptor, Conv2d) {
  Sweep sweep("conv2d");
  skua_conv2d_desc good = SKUA_CONV2D_DESC_INIT;
  good.in_channels = 4, good.out_channels = 6;
  good.kernel_h = good.kernel_w = 3;
  const std::vector<skua_tensor> inputs = {shape({1, 8, 8, 4})};
  auto create = [](skua_context* c, const skua_conv2d_desc& d, skua_op** out) {
    return skua_conv2d_create(c, &d, constants(), constants(), out);
  };
  BAD("the residual if there is one", d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION);
  BAD("input_q", d.input_q.scale = 1);
  BAD("weight_q", d.weight_q.axis = 1);
  BAD("output_q", d.output_q.scales = constants());
  BAD("residual_q", d.residual_q.zero_point = 1);
  BAD("requantization", d.requantization.rounding = SKUA_ROUNDING_SINGLE);
  BAD("struct_size", --d.struct_size);
  BAD("input_type", d.input_type = SKUA_DTYPE_S8);
  BAD("weight_type", d.weight_type = SKUA_DTYPE_S4);
  BAD("output_type", d.output_type = kUnknownType);
  BAD("layout", d.layout = skua_layout(2));
  BAD("weight_layout", d.weight_layout = skua_weight_layout(3));
  BAD("hint_in_w is 0", d.hint_in_h = 8);
  BAD("hint_in_h is 0", d.hint_in_w = 8);
  BAD("kernel_h", d.kernel_h = 0);
  BAD("kernel_w", d.kernel_w = 0);
  BAD("stride_h", d.stride_h = 0);
  BAD("stride_w", d.stride_w = 0);
  BAD("dilation_h", d.dilation_h = 0);
  BAD("dilation_w", d.dilation_w = 0);
  BAD("groups", d.groups = 0);
  BAD("groups", d.groups = 3);
  BAD("groups", d.groups = UINT32_MAX);
  BAD("in_channels", d.in_channels = 0);
  BAD("out_channels", d.out_channels = 0);
  BAD("out_channels", d.groups = 4);
  BAD("padding", d.padding.mode = skua_padding_mode(3));
  BAD("activation", d.epilogue.activation.kind = skua_activation_kind(77));
  BAD("residual", d.epilogue.residual = skua_residual(3));
  BAD("numerics", d.numerics = skua_numerics(3));
  BAD("address space", d.in_channels = d.out_channels = UINT32_MAX);
  BAD("address space", d.kernel_h = d.kernel_w = UINT32_MAX);
  BAD("height", d.kernel_h = 9);
  BAD("width", d.dilation_w = 4);
  BAD("input 0", d.in_channels = 5);
  auto shapes = [&](std::vector<skua_tensor> list, const char* text) { sweep(good, create, list, text); };
  shapes({shape({8, 8})}, "input 0");
  shapes({shape({1, 1, 8, 8, 4})}, "input 0");
  shapes({shape({1, 8, 8, 3})}, "input 0");
  shapes({shape({1, 8, 8, 4}, SKUA_DTYPE_S32)}, "input 0");
  skua_tensor apart = shape({1, 8, 8, 4});
  apart.stride[0] = 512, apart.stride[1] = 64, apart.stride[2] = 8, apart.stride[3] = 2;
  shapes({apart}, "input 0");
  auto no_weights = [](skua_context* c, const skua_conv2d_desc& d, skua_op** out) {
    return skua_conv2d_create(c, &d, nullptr, nullptr, out);
  };
  sweep(good, no_weights, inputs, "weights");
}

TEST(Descriptor, Conv2dTranspose) {
  Sweep sweep("conv2d_transpose");
  skua_conv2d_transpose_desc good = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
  good.in_channels = 4, good.out_channels = 6;
  good.kernel_h = good.kernel_w = 3, good.stride_h = good.stride_w = 2;
  const std::vector<skua_tensor> inputs = {shape({1, 8, 8, 4})};
  auto create = [](skua_context* c, const skua_conv2d_transpose_desc& d, skua_op** out) {
    return skua_conv2d_transpose_create(c, &d, constants(), constants(), out);
  };
  BAD("struct_size", ++d.struct_size);
  BAD("input_type", d.input_type = SKUA_DTYPE_F16);
  BAD("weight_type", d.weight_type = SKUA_DTYPE_F16);
  BAD("output_type", d.output_type = SKUA_DTYPE_F16);
  BAD("layout", d.layout = skua_layout(2));
  BAD("weight_layout", d.weight_layout = skua_weight_layout(3));
  BAD("kernel_h", d.kernel_h = 0);
  BAD("kernel_w", d.kernel_w = 0);
  BAD("stride_h", d.stride_h = 0);
  BAD("stride_w", d.stride_w = 0);
  BAD("dilation_h", d.dilation_h = 0);
  BAD("dilation_w", d.dilation_w = 0);
  BAD("groups", d.groups = 0);
  BAD("in_channels", d.in_channels = 0);
  BAD("in_channels", d.groups = 3);
  BAD("out_channels", d.out_channels = 0);
  BAD("out_channels", d.groups = 4);
  BAD("output_padding_h", d.output_padding_h = 2);
  BAD("output_padding_w", d.output_padding_w = 2);
  BAD("padding", d.padding.mode = skua_padding_mode(3));
  BAD("activation", d.epilogue.activation.kind = skua_activation_kind(77));
  BAD("residual", d.epilogue.residual = skua_residual(3));
  BAD("numerics", d.numerics = skua_numerics(3));
  BAD("input 0", d.in_channels = 5);
  BAD("padding", d.padding = (skua_padding{SKUA_PADDING_EXPLICIT, 40, 0, 40, 0}));
  auto no_weights = [](skua_context* c, const skua_conv2d_transpose_desc& d, skua_op** out) {
    return skua_conv2d_transpose_create(c, &d, nullptr, nullptr, out);
  };
  sweep(good, no_weights, inputs, "weights");
}

TEST(Descriptor, Pool2d) {
  Sweep sweep("pool2d");
  skua_pool2d_desc good = SKUA_POOL2D_DESC_INIT;
  good.kernel_h = good.kernel_w = 3;
  const std::vector<skua_tensor> inputs = {shape({1, 8, 8, 4})};
  auto create = [](skua_context* c, const skua_pool2d_desc& d, skua_op** out) {
    return skua_pool2d_create(c, &d, out);
  };
  BAD("struct_size", d.struct_size = 1);
  BAD("kind", d.kind = skua_pool_kind(3));
  BAD("type", d.type = SKUA_DTYPE_S4);
  BAD("type", d.type = kUnknownType);
  BAD("layout", d.layout = skua_layout(2));
  BAD("kernel_h", d.kernel_h = 0);
  BAD("kernel_w", d.kernel_w = 0);
  BAD("stride_h", d.stride_h = 0);
  BAD("stride_w", d.stride_w = 0);
  BAD("dilation_h", d.dilation_h = 0);
  BAD("dilation_w", d.dilation_w = 0);
  BAD("padding", d.padding.mode = skua_padding_mode(3));
  BAD("padding", d.padding.top = 3);
  BAD("padding", d.padding.right = 3);
  BAD("activation", d.activation.kind = skua_activation_kind(77));
  BAD("height", d.kernel_h = 9);
  BAD("width", d.dilation_w = 4);
  auto shapes = [&](std::vector<skua_tensor> list, const char* text) { sweep(good, create, list, text); };
  shapes({shape({8, 8})}, "input 0");
  shapes({shape({1, 8, 8, 4}, SKUA_DTYPE_S32)}, "input 0");
}

TEST(Descriptor, InvertedResidual) {
  Sweep sweep("inverted_residual");
  skua_inverted_residual_desc good = SKUA_INVERTED_RESIDUAL_DESC_INIT;
  good.expand.in_channels = good.project.out_channels = 4;
  good.expand.out_channels = good.depthwise.in_channels = good.depthwise.out_channels = good.depthwise.groups =
      good.project.in_channels = 6;
  good.depthwise.kernel_h = good.depthwise.kernel_w = 3;
  const std::vector<skua_tensor> inputs = {shape({1, 8, 8, 4})};
  auto create = [](skua_context* c, const skua_inverted_residual_desc& d, skua_op** out) {
    const void* const weights[] = {constants(), constants(), constants()};
    return skua_inverted_residual_create(c, &d, weights, nullptr, out);
  };
  BAD("the residual if there is one", d.project.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION);
  BAD("struct_size", --d.struct_size);
  BAD("expand: desc.struct_size", ++d.expand.struct_size);
  BAD("project: desc.struct_size", d.project.struct_size = 0);
  BAD("depthwise: output_type", d.depthwise.output_type = SKUA_DTYPE_S8);
  BAD("expand: input_type is s8; it takes f32, f16 and bf16", d.expand.input_type = SKUA_DTYPE_S8);
  BAD("project: hint_in_w", d.project.hint_in_h = 7);
  BAD("layout", d.expand.layout = d.depthwise.layout = d.project.layout = SKUA_LAYOUT_NCHW);
  BAD("expand", d.expand.kernel_h = 3);
  BAD("expand", d.expand.stride_w = 2);
  BAD("project", d.project.padding.left = 1);
  BAD("project", d.project.groups = 2);
  BAD("depthwise", d.depthwise.groups = 3);
  BAD("depthwise", d.depthwise.out_channels = 12);
  BAD("depthwise", d.expand.out_channels = 7);
  BAD("project", d.project.in_channels = 7);
  BAD("residual", d.expand.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION);
  BAD("residual", d.depthwise.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION);
  BAD("n_inputs", d.project.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION);
  BAD("project: epilogue.activation", d.project.epilogue.activation.kind = skua_activation_kind(77));
  BAD("depthwise: kernel_h", d.depthwise.kernel_h = 0);
  BAD("height", d.depthwise.kernel_h = 9);
  BAD("address space", d.expand.in_channels = d.expand.out_channels = d.depthwise.in_channels =
                           d.depthwise.out_channels = d.depthwise.groups = d.project.in_channels = UINT32_MAX);
  auto shapes = [&](std::vector<skua_tensor> list, const char* text) { sweep(good, create, list, text); };
  shapes({shape({8, 8, 4})}, "input 0");
  shapes({shape({1, 8, 8, 3})}, "input 0");
  shapes({shape({1, 8, 8, 4}, SKUA_DTYPE_S32)}, "input 0");
  auto no_weights = [](skua_context* c, const skua_inverted_residual_desc& d, skua_op** out) {
    return skua_inverted_residual_create(c, &d, nullptr, nullptr, out);
  };
  sweep(good, no_weights, inputs, "weights");
  auto one_missing = [](skua_context* c, const skua_inverted_residual_desc& d, skua_op** out) {
    const void* const weights[] = {constants(), nullptr, constants()};
    return skua_inverted_residual_create(c, &d, weights, nullptr, out);
  };
  sweep(good, one_missing, inputs, "depthwise: weights");
}

TEST(Descriptor, Elementwise) {
  {
    Sweep sweep("unary");
    const skua_unary_desc good = SKUA_UNARY_DESC_INIT;
    const std::vector<skua_tensor> inputs = {shape({3, 4})};
    auto create = [](skua_context* c, const skua_unary_desc& d, skua_op** out) {
      return skua_unary_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("kind", d.kind = SKUA_UNARY_KIND_COUNT);
    BAD("kind", d.kind = skua_unary_kind(-1));
    BAD("input_type", d.input_type = SKUA_DTYPE_S4);
    BAD("output_type", d.output_type = SKUA_DTYPE_S8);
    BAD("a must be <= b", d.kind = SKUA_UNARY_CLAMP, d.a = 2, d.b = 1);
    BAD("a must be <= b", d.kind = SKUA_UNARY_CLAMP, d.a = NAN);
    sweep(good, create, {shape({3}, SKUA_DTYPE_S32)}, "input 0");
  }
  {
    Sweep sweep("binary");
    const skua_binary_desc good = SKUA_BINARY_DESC_INIT;
    const std::vector<skua_tensor> inputs = {shape({3, 4}), shape({4})};
    auto create = [](skua_context* c, const skua_binary_desc& d, skua_op** out) {
      return skua_binary_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("kind", d.kind = SKUA_BINARY_KIND_COUNT);
    BAD("type", d.type = SKUA_DTYPE_S32);
    BAD("type", d.type = kUnknownType);
    BAD("activation", d.activation.kind = skua_activation_kind(77));
    sweep(good, create, {shape({3, 4}), shape({3})}, "input 1");
    sweep(good, create, {shape({3, 4}), shape({2, 4})}, "input 1");
    sweep(good, create, {shape({3, 4}), shape({4}, SKUA_DTYPE_S32)}, "input 1");
  }
  {
    Sweep sweep("select");
    const skua_select_desc good = SKUA_SELECT_DESC_INIT;
    const std::vector<skua_tensor> inputs = {shape({3, 4}), shape({4}), shape({1})};
    auto create = [](skua_context* c, const skua_select_desc& d, skua_op** out) {
      return skua_select_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S8);
    sweep(good, create, {shape({3, 4}), shape({4}), shape({5})}, "input 2");
  }
}

TEST(Descriptor, SoftmaxAndNorm) {
  const std::vector<skua_tensor> inputs = {shape({2, 3, 4})};
  {
    Sweep sweep("softmax");
    const skua_softmax_desc good = SKUA_SOFTMAX_DESC_INIT;
    auto create = [](skua_context* c, const skua_softmax_desc& d, skua_op** out) {
      return skua_softmax_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("input_type", d.input_type = SKUA_DTYPE_S8);
    BAD("output_type", d.output_type = SKUA_DTYPE_S8);
    BAD("axis", d.axis = 3);
    BAD("axis", d.axis = -4);
    BAD("axis", d.axis = INT32_MIN);
    BAD("axis", d.axis = INT32_MAX);
    BAD("scale", d.scale = NAN);
  }
  Sweep sweep("norm");
  skua_norm_desc good = SKUA_NORM_DESC_INIT;
  good.channels = 4;
  auto create = [](skua_context* c, const skua_norm_desc& d, skua_op** out) {
    const bool batch = d.kind == SKUA_NORM_BATCH;
    return skua_norm_create(c, &d, constants(), d.kind == SKUA_NORM_RMS ? nullptr : constants(),
                            batch ? constants() : nullptr, batch ? constants() : nullptr, out);
  };
  BAD("struct_size", d.struct_size = 0);
  BAD("kind", d.kind = skua_norm_kind(5));
  BAD("type", d.type = SKUA_DTYPE_S8);
  BAD("layout", d.kind = SKUA_NORM_BATCH, d.layout = skua_layout(2));
  BAD("axes", d.axes = 0);
  BAD("axes", d.axes = 7);
  BAD("axes", d.axes = 4);
  BAD("groups", d.kind = SKUA_NORM_GROUP, d.groups = 0);
  BAD("groups", d.kind = SKUA_NORM_GROUP, d.groups = 3);
  BAD("channels", d.channels = 0);
  BAD("channels", d.channels = 5);
  BAD("channels", d.kind = SKUA_NORM_INSTANCE, d.channels = 5);
  BAD("channels", d.channels = SIZE_MAX);
  BAD("epsilon", d.epsilon = -1);
  BAD("epsilon", d.epsilon = NAN);
  BAD("epsilon", d.epsilon = INFINITY);
  auto refuse = [&](skua_norm_kind kind, const char* text, const float* gamma, const float* beta, const float* mean,
                    const float* variance) {
    const auto create = [=](skua_context* c, const skua_norm_desc& d, skua_op** out) {
      return skua_norm_create(c, &d, gamma, beta, mean, variance, out);
    };
    BAD_WITH(create, inputs, text, d.kind = kind);
  };
  const float* v = constants();
  refuse(SKUA_NORM_BATCH, "mean", v, v, nullptr, v);
  refuse(SKUA_NORM_BATCH, "variance", v, v, v, nullptr);
  refuse(SKUA_NORM_RMS, "beta", v, v, nullptr, nullptr);
  refuse(SKUA_NORM_LAYER, "mean", v, v, v, nullptr);
  refuse(SKUA_NORM_GROUP, "variance", v, v, nullptr, v);
}

TEST(Descriptor, ReduceAndResize) {
  {
    Sweep sweep("reduce");
    skua_reduce_desc good = SKUA_REDUCE_DESC_INIT;
    good.axis_count = 1;
    const std::vector<skua_tensor> inputs = {shape({2, 3, 4})};
    auto create = [](skua_context* c, const skua_reduce_desc& d, skua_op** out) {
      return skua_reduce_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("kind", d.kind = SKUA_REDUCE_KIND_COUNT);
    BAD("type", d.type = SKUA_DTYPE_S32);
    BAD("axis_count", d.axis_count = 7);
    BAD("axis_count", d.kind = SKUA_REDUCE_ARGMAX, d.axis_count = 2, d.axes[1] = 1);
    BAD("axis_count", d.kind = SKUA_REDUCE_ARGMIN, d.axis_count = 0);
    BAD("axes[0]", d.axes[0] = 3);
    BAD("axes[0]", d.axes[0] = -4);
    BAD("axes[0]", d.axes[0] = INT32_MIN);
    BAD("axes[1]", d.axis_count = 2, d.axes[0] = 2, d.axes[1] = -1);
    BAD("axes[1]", d.axis_count = 2, d.axes[1] = 0);
  }
  Sweep sweep("resize2d");
  skua_resize2d_desc good = SKUA_RESIZE2D_DESC_INIT;
  good.out_h = good.out_w = 3;
  const std::vector<skua_tensor> inputs = {shape({1, 4, 5, 6})};
  auto create = [](skua_context* c, const skua_resize2d_desc& d, skua_op** out) {
    return skua_resize2d_create(c, &d, out);
  };
  BAD("struct_size", d.struct_size = 0);
  BAD("kind", d.kind = skua_resize_kind(2));
  BAD("coordinates", d.coordinates = skua_resize_coordinates(3));
  BAD("type", d.type = SKUA_DTYPE_S4);
  BAD("layout", d.layout = skua_layout(2));
  BAD("out_h", d.out_h = 0);
  BAD("out_w", d.out_w = 0);
  sweep(good, create, {shape({4, 5, 6})}, "input 0");
  sweep(good, create, {shape({1, 0, 5, 6})}, "input 0");
}

TEST(Descriptor, Data) {
  const std::vector<skua_tensor> inputs = {shape({2, 3, 4})};
  {
    Sweep sweep("transpose");
    skua_transpose_desc good = SKUA_TRANSPOSE_DESC_INIT;
    good.rank = 3, good.perm[1] = 1, good.perm[2] = 2;
    auto create = [](skua_context* c, const skua_transpose_desc& d, skua_op** out) {
      return skua_transpose_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S4);
    BAD("type", d.type = kUnknownType);
    BAD("rank", d.rank = 0);
    BAD("rank", d.rank = 7);
    BAD("rank", d.rank = 2);
    BAD("perm[2]", d.perm[2] = 3);
    BAD("perm[2]", d.perm[2] = 1);
    BAD("perm[0]", d.perm[0] = UINT32_MAX);
    BAD("input 0", d.type = SKUA_DTYPE_S32);
  }
  {
    Sweep sweep("layout");
    const skua_layout_desc good = SKUA_LAYOUT_DESC_INIT;
    auto create = [](skua_context* c, const skua_layout_desc& d, skua_op** out) {
      return skua_layout_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S4);
    BAD("from", d.from = skua_layout(2));
    BAD("to", d.to = skua_layout(2));
    BAD("input 0", (void)d);
  }
  {
    Sweep sweep("pad");
    skua_pad_desc good = SKUA_PAD_DESC_INIT;
    good.rank = 3;
    auto create = [](skua_context* c, const skua_pad_desc& d, skua_op** out) { return skua_pad_create(c, &d, out); };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S4);
    BAD("mode", d.mode = skua_pad_mode(3));
    BAD("rank", d.rank = 0);
    BAD("rank", d.rank = 7);
    BAD("rank", d.rank = 4);
    BAD("before[2]", d.mode = SKUA_PAD_REFLECT, d.before[2] = 4);
    BAD("after[1]", d.mode = SKUA_PAD_REFLECT, d.after[1] = 3);
    BAD("output 0", d.before[0] = SIZE_MAX);
    BAD("output 0", d.after[0] = SIZE_MAX - 2);
    BAD("output 0", d.after[0] = SIZE_MAX / 32);
    const std::vector<skua_tensor> empty = {shape({2, 0, 4})};
    BAD_WITH(create, empty, "input 0", d.mode = SKUA_PAD_EDGE, d.before[1] = 1);
  }
  {
    Sweep sweep("slice");
    skua_slice_desc good = SKUA_SLICE_DESC_INIT;
    good.rank = 3;
    for (size_t& size : good.size) size = 1;
    auto create = [](skua_context* c, const skua_slice_desc& d, skua_op** out) {
      return skua_slice_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S4);
    BAD("rank", d.rank = 0);
    BAD("rank", d.rank = 7);
    BAD("begin[1]", d.begin[1] = 4);
    BAD("size[1]", d.begin[1] = 3);
    BAD("size[2]", d.size[2] = 5);
    BAD("size[2]", d.size[2] = 3, d.step[2] = 2);
    BAD("size[2]", d.size[2] = SIZE_MAX - 1, d.step[2] = 2);
    BAD("step[0]", d.step[0] = 0);
    BAD("begin[0]", d.begin[0] = SIZE_MAX);
  }
  {
    Sweep sweep("concat");
    const skua_concat_desc good = SKUA_CONCAT_DESC_INIT;
    auto create = [](skua_context* c, const skua_concat_desc& d, skua_op** out) {
      return skua_concat_create(c, &d, out);
    };
    BAD("struct_size", d.struct_size = 0);
    BAD("type", d.type = SKUA_DTYPE_S4);
    BAD("axis", d.axis = 3);
    BAD("axis", d.axis = -4);
    BAD("axis", d.axis = INT32_MIN);
    sweep(good, create, {shape({2, 3}), shape({2, 3, 1})}, "input 1");
    sweep(good, create, {shape({2, 3}), shape({2, 4})}, "input 1");
    sweep(good, create, {shape({2, 3}), shape({2, 3}, SKUA_DTYPE_S32)}, "input 1");
  }
  Sweep sweep("rearrange");
  skua_rearrange_desc good = SKUA_REARRANGE_DESC_INIT;
  good.block = 2;
  auto create = [](skua_context* c, const skua_rearrange_desc& d, skua_op** out) {
    return skua_rearrange_create(c, &d, out);
  };
  BAD("struct_size", d.struct_size = 0);
  BAD("kind", d.kind = skua_rearrange_kind(3));
  BAD("type", d.type = SKUA_DTYPE_S4);
  BAD("layout", d.layout = skua_layout(2));
  BAD("block", d.block = 0);
  BAD("input 0", (void)d);
  const std::vector<skua_tensor> image = {shape({1, 4, 6, 8})};
  BAD_WITH(create, image, "block", d.block = 3);
  BAD_WITH(create, image, "block", d.block = UINT32_MAX);
  BAD_WITH(create, image, "block", d.kind = SKUA_REARRANGE_SPACE_TO_DEPTH, d.block = 4);
  BAD_WITH(create, image, "block", d.kind = SKUA_REARRANGE_CHANNEL_SHUFFLE, d.block = 3);
}

TEST(Descriptor, Convert) {
  Sweep sweep("convert");
  const skua_convert_desc good = SKUA_CONVERT_DESC_INIT;
  const std::vector<skua_tensor> inputs = {shape({2, 3})};
  auto create = [](skua_context* c, const skua_convert_desc& d, skua_op** out) {
    return skua_convert_create(c, &d, out);
  };
  BAD("struct_size", d.struct_size = 0);
  BAD("input_type", d.input_type = SKUA_DTYPE_S4);
  BAD("output_type", d.output_type = SKUA_DTYPE_S32);
  BAD("output_type", d.output_type = kUnknownType);
  BAD("input_q", d.input_q.scale = 1);
  BAD("output_q", d.output_q.zero_point = 1);
  BAD("input_q.scale", d.input_type = SKUA_DTYPE_S8, d.input_q.scale = -1);
  BAD("output_q.zero_point", d.output_type = SKUA_DTYPE_U8, d.output_q.scale = 1, d.output_q.zero_point = -1);
  BAD("channels", d.channels = 3);
  sweep(good, create, {shape({2, 3}, SKUA_DTYPE_S32)}, "input 0");
}

}  // namespace
