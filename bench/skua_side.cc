// This library as a contestant.
#include <atomic>
#include <skua/skua.h>
#include <stdio.h>

#include "device_side.h"
#ifdef BENCH_INTERNALS
#include "core/op.h"
#endif
#include "timing.h"

namespace bench {
namespace {

class SkuaLayer : public Prepared {
 public:
  skua_op* op = nullptr;
  skua_plan* skua = nullptr;
  skua_buffer inputs[3] = {}, output = {};
  size_t n_inputs = 0, workspace_size = 0;
  Memory plan_memory, *workspace = nullptr;

  ~SkuaLayer() override {
    skua_plan_destroy(skua);
    skua_op_destroy(op);
  }
  void run() override {
    skua_plan_run(skua, inputs, n_inputs, &output, 1, workspace_size ? workspace->data() : nullptr, workspace_size,
                  executor());
  }
  std::string algorithm() const override { return skua_plan_algorithm(skua); }
  std::string kernel() const override { return skua_plan_kernel(skua); }
  std::string plan() const override {
    std::string text(skua_plan_explain(skua, nullptr, 0) + 1, 0);
    skua_plan_explain(skua, text.data(), text.size());
    const size_t by = text.find('\n');  // the line behind says who chose
    return text.substr(0, by) +
           text.substr(text.find('\n', by + 1), text.find("candidates:") - text.find('\n', by + 1));
  }
};

// What an operator on s8 does not fuse, as users do it: operators of their own, in place.
class SkuaSteps : public Prepared {
 public:
  std::vector<std::unique_ptr<Prepared>> steps;
  void run() override {
    for (auto& s : steps) s->run();
  }
  std::string algorithm() const override { return steps[0]->algorithm(); }
  std::string kernel() const override { return steps[0]->kernel(); }
  std::string plan() const override { return steps[0]->plan(); }
};

skua_tensor map_tensor(skua_dtype type, size_t h, size_t w, size_t c, size_t stride) {
  skua_tensor t = skua_tensor_4d(type, 1, h, w, c);
  if (stride && stride != c) {
    t.stride[3] = 1;
    t.stride[2] = stride;
    t.stride[1] = w * stride;
    t.stride[0] = h * w * stride;
  }
  return t;
}

size_t operands_of(const Layer& l, size_t x_stride, size_t second_stride, size_t y_stride, skua_tensor in[2],
                   skua_tensor* out) {
  if (l.op == Op::gemm) {
    in[0] = skua_tensor_2d(l.type, l.m, l.k);
    in[1] = *out = skua_tensor_2d(l.type, l.m, l.n);
    if (l.two_inputs) in[1] = skua_tensor_2d(l.type, l.n, l.k);
  } else if (l.op == Op::softmax) {
    in[0] = in[1] = *out = skua_tensor_2d(l.type, l.m, l.n);
  } else if ((l.op == Op::unary || l.op == Op::binary) && l.h * l.w == 1 && !l.broadcast) {
    in[0] = in[1] = *out = skua_tensor_1d(l.type, l.c);
  } else {
    in[0] = map_tensor(l.type, l.h, l.w, l.c, x_stride);
    *out = map_tensor(l.type, l.out_h, l.out_w, l.out_c, y_stride);
    in[1] = l.broadcast ? map_tensor(l.type, 1, 1, l.c, second_stride)
                        : map_tensor(l.type, l.out_h, l.out_w, l.out_c, second_stride);
  }
  return l.second_count() ? 2 : 1;
}

class Skua : public Contestant {
 public:
  skua_context* context = nullptr;
  SkuaOptions how;
  Memory workspace;  // of all its operators: they run one after the other
  ~Skua() override { skua_context_destroy(context); }
  double context_ns = 0;
  const char* name() const override { return how.name.c_str(); }
  std::string version() const override { return skua_version_string(); }
  // Returns when every worker has come, as peers' pools do: a sample is shorter than it may take a sleeping thread to
  // get a core.
  void wake() override {
    const skua_executor* e = executor();
    if (!e) return;
    std::atomic<uint32_t> missing{e->concurrency};
    const auto meet = [](void* arg, size_t, uint32_t) {
      auto& missing = *static_cast<std::atomic<uint32_t>*>(arg);
      for (--missing; missing.load();) {}
    };
    e->parallel_for(e->ctx, e->concurrency, meet, &missing);
  }
  void park() override { park_executor(); }

  skua_conv2d_desc conv_desc(const Layer& l) const {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.input_type = d.weight_type = d.output_type = l.type;
    d.kernel_h = uint32_t(l.kh), d.kernel_w = uint32_t(l.kw), d.stride_h = uint32_t(l.sh), d.stride_w = uint32_t(l.sw);
    d.dilation_h = uint32_t(l.dh), d.dilation_w = uint32_t(l.dw), d.groups = uint32_t(l.groups);
    d.in_channels = uint32_t(l.c), d.out_channels = uint32_t(l.out_c);
    d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(l.top), uint32_t(l.left), uint32_t(l.bottom), uint32_t(l.right)};
    d.epilogue = {{l.activation, 0, 1}, l.residual ? SKUA_RESIDUAL_BEFORE_ACTIVATION : SKUA_RESIDUAL_NONE};
    d.numerics = how.numerics;
    d.hint_in_h = uint32_t(l.h), d.hint_in_w = uint32_t(l.w);
    return d;
  }

  skua_status create(const Layer& l, const Constants& constants, skua_op** op) {
    const void *const weights = constants.weights, *const bias = constants.bias;
    const bool bytes = l.type == SKUA_DTYPE_S8;
    const skua_quantization map_q = bytes ? byte_quantization : skua_quantization{};
    const skua_quantization x_q = l.curve_x ? curve_quantization : map_q, y_q = l.curve_y ? curve_quantization : map_q;
    skua_quantization weight_q = {};
    if (bytes) weight_q.scales = constants.scales.data();
    const skua_activation act = {l.activation, 0, 1};  // clamps: a folded hard sigmoid's
    const skua_residual residual = l.residual ? SKUA_RESIDUAL_BEFORE_ACTIVATION : SKUA_RESIDUAL_NONE;
    switch (l.op) {
      case Op::gemm: {
        skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
        d.a_type = d.b_type = d.c_type = l.type;
        d.n = l.two_inputs ? 0 : l.n;
        d.k = l.two_inputs ? 0 : l.k;
        d.transpose_b = l.two_inputs;
        d.hint_m = l.m;
        d.numerics = how.numerics;
        d.epilogue = {act, residual};
        d.a_q = map_q, d.c_q = y_q, d.b_q = weight_q;
        if (bytes && l.residual) d.residual_q = map_q;
        d.b_q.axis = bytes;
        if (l.quantized_weights()) {
          d.b_type = l.quantized;
          d.transpose_b = true;
          d.quantize_a = l.quantize_a;
          if (l.block)
            d.b_q.scales = reinterpret_cast<const float*>(constants.block_scales.data()),
            d.b_q.scale_type = SKUA_DTYPE_BF16, d.b_q.block_size = uint32_t(l.block);
          else d.b_q.scales = constants.scales.data();
          if (l.zero_points) d.b_q.zero_points = constants.zero_points.data();
        }
        return skua_gemm_create(context, &d, l.two_inputs ? nullptr : weights, bias, op);
      }
      case Op::conv: {
        skua_conv2d_desc d = conv_desc(l);
        d.input_q = map_q, d.output_q = y_q, d.weight_q = weight_q;
        if (bytes && l.residual) d.residual_q = map_q;
        return skua_conv2d_create(context, &d, weights, bias, op);
      }
      case Op::deconv: {
        skua_conv2d_transpose_desc d = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
        d.input_type = d.weight_type = d.output_type = l.type;
        d.kernel_h = uint32_t(l.kh), d.kernel_w = uint32_t(l.kw), d.stride_h = uint32_t(l.sh),
        d.stride_w = uint32_t(l.sw);
        d.dilation_h = uint32_t(l.dh), d.dilation_w = uint32_t(l.dw), d.groups = uint32_t(l.groups);
        d.in_channels = uint32_t(l.c), d.out_channels = uint32_t(l.out_c);
        d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(l.top), uint32_t(l.left), uint32_t(l.bottom), uint32_t(l.right)};
        d.epilogue = {act, residual};
        d.numerics = how.numerics;
        d.input_q = map_q, d.output_q = y_q, d.weight_q = weight_q;
        return skua_conv2d_transpose_create(context, &d, weights, bias, op);
      }
      case Op::max_pool: case Op::average_pool: case Op::global_pool: {
        skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
        d.type = l.type;
        d.kind = l.op == Op::max_pool ? SKUA_POOL_MAX : SKUA_POOL_AVERAGE;
        d.global = l.op == Op::global_pool;
        d.kernel_h = uint32_t(l.kh), d.kernel_w = uint32_t(l.kw), d.stride_h = uint32_t(l.sh),
        d.stride_w = uint32_t(l.sw);
        d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(l.top), uint32_t(l.left), uint32_t(l.bottom), uint32_t(l.right)};
        d.ceil_mode = l.ceil_mode;
        d.activation = act;
        d.input_q = d.output_q = map_q;
        return skua_pool2d_create(context, &d, op);
      }
      case Op::unary: {
        skua_unary_desc d = SKUA_UNARY_DESC_INIT;
        d.numerics = bench_numerics;
        d.input_type = d.output_type = l.type;
        d.kind = l.unary;
        d.a = l.unary == SKUA_UNARY_LEAKY_RELU ? 0.1f : l.unary == SKUA_UNARY_CLAMP ? -1.0f : 1.0f;
        d.b = 1.0f;
        d.input_q = x_q, d.output_q = map_q;
        return skua_unary_create(context, &d, op);
      }
      case Op::binary: {
        skua_binary_desc d = SKUA_BINARY_DESC_INIT;
        d.type = l.type;
        d.kind = l.binary;
        d.activation = act;
        d.x_q = d.y_q = d.output_q = map_q;
        return skua_binary_create(context, &d, op);
      }
      case Op::softmax: {
        skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
        d.input_type = d.output_type = l.type;
        d.input_q = d.output_q = map_q;
        return skua_softmax_create(context, &d, op);
      }
      case Op::resize: {
        skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
        d.type = l.type;
        d.kind = SKUA_RESIZE_BILINEAR;
        d.coordinates = l.coordinates;
        d.out_h = uint32_t(l.out_h), d.out_w = uint32_t(l.out_w);
        d.input_q = d.output_q = map_q;
        return skua_resize2d_create(context, &d, op);
      }
      case Op::concat: break;
    }
    return SKUA_STATUS_UNSUPPORTED;
  }

  skua_status plan(SkuaLayer& layer, const skua_tensor* in, const skua_tensor* out) {
#ifdef BENCH_INTERNALS
    if (how.wanted) {
      layer.plan_memory.resize(skua_op_plan_size(layer.op) / sizeof(float));
      auto* p = reinterpret_cast<skua_plan*>(layer.plan_memory.data());
      const skua_status status = skua::fill_plan(layer.op, in, layer.n_inputs, out, 1, how.wanted, p);
      p->in_caller_memory = true;
      if (status == SKUA_STATUS_OK) layer.skua = p;
      return status;
    }
#endif
    return skua_op_plan(layer.op, in, layer.n_inputs, out, 1, &layer.skua);
  }

  bool ready(SkuaLayer& made, View x, View second, View y) {
    made.inputs[0] = skua_host_buffer(x.data);
    made.inputs[1] = skua_host_buffer(second.data);
    made.output = skua_host_buffer(y.data);
    made.workspace_size = skua_plan_workspace(made.skua, uint32_t(effort.threads));
    if (made.workspace_size > workspace.size() * sizeof(float)) workspace.resize((made.workspace_size + 3) / 4);
    made.workspace = &workspace;
    return skua_plan_run(made.skua, made.inputs, made.n_inputs, &made.output, 1,
                         made.workspace_size ? workspace.data() : nullptr, made.workspace_size,
                         executor()) == SKUA_STATUS_OK;
  }

  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second,
                                    View y, std::string* why) override {
    if (how.device.api != SKUA_DEVICE_API_CPU) return device_layer(*this, l, weights, bias, x, second, y, why);
    if (l.type == SKUA_DTYPE_S8 && l.multiplies() && l.activation == SKUA_ACTIVATION_HARD_SIGMOID && bias &&
        !l.residual) {
      const Folded folded = fold_hard_sigmoid(l, weights, bias);
      Layer clamped = l;
      clamped.activation = SKUA_ACTIVATION_CLAMP;
      return prepare(clamped, folded.weights.data(), folded.bias.data(), x, second, y, why);
    }
    if (l.type == SKUA_DTYPE_S8 && l.multiplies() && (!is_clamp(l.activation) || (l.residual && l.depthwise()))) {
      auto made = std::make_unique<SkuaSteps>();
      Layer product = l, then;
      product.residual = false;
      product.activation = SKUA_ACTIVATION_NONE;
      then.type = l.type;
      then.op = l.residual ? Op::binary : Op::unary;
      then.h = then.out_h = l.op == Op::gemm ? 1 : l.out_h, then.w = then.out_w = l.op == Op::gemm ? 1 : l.out_w,
      then.c = then.out_c = l.op == Op::gemm ? l.m * l.n : l.out_c;
      if (l.residual) then.activation = l.activation;
      else parse_unary(activation_name(l.activation), &then.unary), product.curve_y = then.curve_x = true;
      made->steps.push_back(prepare(product, weights, bias, x, {}, y, why));
      if (made->steps[0]) made->steps.push_back(prepare(then, nullptr, nullptr, y, second, y, why));
      if (!made->steps.back()) return nullptr;
      return made;
    }
    auto made = std::make_unique<SkuaLayer>();
    if (create(l, {l, weights, bias}, &made->op) != SKUA_STATUS_OK) {
      *why = skua_error_text();
      return nullptr;
    }
    skua_tensor in[2], out;
    made->n_inputs = operands_of(l, x.stride, second.stride, y.stride, in, &out);
    if (how.tune) {
      skua_tune_options options = SKUA_TUNE_OPTIONS_INIT;
      options.executor = executor();
      if (skua_op_tune(made->op, in, made->n_inputs, &options) != SKUA_STATUS_OK) {
        *why = skua_error_text();
        return nullptr;
      }
      skua_op_destroy(made->op);  // the packed format was measured as well: create finds it
      made->op = nullptr;
      if (create(l, {l, weights, bias}, &made->op) != SKUA_STATUS_OK) {
        *why = skua_error_text();
        return nullptr;
      }
    }
    if (plan(*made, in, &out) != SKUA_STATUS_OK) {
      *why = skua_error_text();
      return nullptr;
    }
    if (!ready(*made, x, second, y)) {
      *why = skua_error_text();
      return nullptr;
    }
    return made;
  }

  // Only where the expanded maps would leave the cache: a block that is computed whole takes the time of its three
  // layers.
  bool has_blocks() const override {
    return how.filter.empty() && !how.wanted && how.device.api == SKUA_DEVICE_API_CPU;
  }
  std::unique_ptr<PreparedNetwork> prepare_network(const Corpus& network, std::string* why) override {
    return how.device.api == SKUA_DEVICE_API_CPU ? Contestant::prepare_network(network, why)
                                                 : device_network(*this, network, why);
  }
  std::unique_ptr<Prepared> prepare_block(const Step* s, const std::vector<float>* weights,
                                          const std::vector<float>* bias, View x, View second, View y) override {
    auto made = std::make_unique<SkuaLayer>();
    skua_inverted_residual_desc d = SKUA_INVERTED_RESIDUAL_DESC_INIT;
    d.expand = conv_desc(s[0].layer), d.depthwise = conv_desc(s[1].layer), d.project = conv_desc(s[2].layer);
    const void *w[3], *b[3];
    std::vector<Constants> constants;
    for (int i = 0; i < 3; ++i)
      constants.emplace_back(s[i].layer, weights[i].data(), bias[i].empty() ? nullptr : bias[i].data());
    for (int i = 0; i < 3; ++i) w[i] = constants[size_t(i)].weights, b[i] = constants[size_t(i)].bias;
    if (skua_inverted_residual_create(context, &d, w, b, &made->op) != SKUA_STATUS_OK) return nullptr;
    const skua_tensor in[2] = {
        map_tensor(s[0].layer.type, s[0].layer.h, s[0].layer.w, s[0].layer.c, x.stride),
        map_tensor(s[2].layer.type, s[2].layer.out_h, s[2].layer.out_w, s[2].layer.out_c, second.stride)};
    const skua_tensor out = map_tensor(s[2].layer.type, s[2].layer.out_h, s[2].layer.out_w, s[2].layer.out_c, y.stride);
    made->n_inputs = s[2].layer.residual ? 2 : 1;
    if (plan(*made, in, &out) != SKUA_STATUS_OK || made->algorithm() != "bands" || !ready(*made, x, second, y))
      return nullptr;
    return made;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_skua(const SkuaOptions& how) {
  auto made = std::make_unique<Skua>();
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  if (!how.filter.empty()) options.kernel_filter = how.filter.c_str();
  const std::string& cap = how.isa.empty() ? isa_cap : how.isa;
  if (!cap.empty()) options.max_isa = cap.c_str();
  options.device = how.device;
  if (!how.program_cache.empty()) options.program_cache = how.program_cache.c_str();
  made->how = how;
  const double start = now_ns();
  if (skua_context_create(&options, &made->context) != SKUA_STATUS_OK) {
    fprintf(stderr, "skua-bench: %s\n", skua_error_text());
    return nullptr;
  }
  made->context_ns = now_ns() - start;
  return made;
}

bool library_tunes(Contestant& ours) { return static_cast<Skua&>(ours).how.tune; }
double library_start_ns(Contestant& ours) { return static_cast<Skua&>(ours).context_ns; }

skua_status library_create(Contestant& ours, const Layer& layer, const Constants& constants, skua_op** op) {
  return static_cast<Skua&>(ours).create(layer, constants, op);
}

size_t library_candidates(Contestant& ours, const Layer& layer, const float* weights, const float* bias) {
  size_t count = 0;
#ifdef BENCH_INTERNALS
  skua_op* op = nullptr;
  if (static_cast<Skua&>(ours).create(layer, {layer, weights, bias}, &op) != SKUA_STATUS_OK) return 0;
  skua_tensor in[2], out;
  const size_t inputs = operands_of(layer, 0, 0, 0, in, &out);
  Memory memory(skua_op_plan_size(op) / sizeof(float));
  auto* plan = reinterpret_cast<skua_plan*>(memory.data());
  for (; count < 256; ++count) {
    skua::fill_plan(op, in, inputs, &out, 1, uint32_t(count + 1), plan);
    if (plan->choice.seen <= count) break;
  }
  skua_op_destroy(op);
#endif
  return count;
}

skua_context* library_context(Contestant& ours) { return static_cast<Skua&>(ours).context; }

size_t library_inputs(const Layer& layer, skua_tensor inputs[2], skua_tensor* out, size_t x_stride,
                      size_t second_stride, size_t y_stride) {
  skua_tensor y;
  return operands_of(layer, x_stride, second_stride, y_stride, inputs, out ? out : &y);
}

}  // namespace bench
