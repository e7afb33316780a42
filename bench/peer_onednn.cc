// oneDNN 2.x. Convolutions and products let the library choose every layout (format_tag::any); what has to be brought into it is reordered outside of
// the timing for single layers, and inside it for networks. A single layer tries the channels-last layout too, and a product tries matmul and
// inner product: the faster one races.
#include <math.h>
#include <dnnl.hpp>
#include <algorithm>
#include <map>
#include <unordered_map>

#include <dlfcn.h>

#include "contestant.h"
#include "timing.h"

namespace bench {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using tag = dnnl::memory::format_tag;

constexpr auto f32 = memory::data_type::f32;

struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> args;
};

memory::dim d(size_t x) { return memory::dim(x); }
memory::dims map_dims(size_t h, size_t w, size_t c) { return {1, d(c), d(h), d(w)}; }
memory::desc map_desc(size_t h, size_t w, size_t c, size_t stride) {
  return {map_dims(h, w, c), f32, memory::dims{d(h * w * stride), 1, d(w * stride), d(stride)}};
}

bool append_activation(skua_activation_kind kind, dnnl::post_ops& ops) {
  switch (kind) {
    case SKUA_ACTIVATION_NONE: return true;
    case SKUA_ACTIVATION_RELU: ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0); return true;
    case SKUA_ACTIVATION_RELU6: ops.append_eltwise(1, algorithm::eltwise_clip, 0, 6); return true;
    case SKUA_ACTIVATION_HARD_SWISH: ops.append_eltwise(1, algorithm::eltwise_hardswish, 0, 0); return true;
    case SKUA_ACTIVATION_SIGMOID: ops.append_eltwise(1, algorithm::eltwise_logistic, 0, 0); return true;
    case SKUA_ACTIVATION_SILU: ops.append_eltwise(1, algorithm::eltwise_swish, 1, 0); return true;
    case SKUA_ACTIVATION_HARD_SIGMOID:
      ops.append_eltwise(1, algorithm::eltwise_linear, 1.0f / 6, 0.5f);
      ops.append_eltwise(1, algorithm::eltwise_clip, 0, 1);
      return true;
    default: return false;
  }
}

bool unary_algorithm(skua_unary_kind kind, algorithm* a, float* alpha, float* beta) {
  *alpha = *beta = 0;
  switch (kind) {
    case SKUA_UNARY_RELU: *a = algorithm::eltwise_relu; return true;
    case SKUA_UNARY_RELU6: *a = algorithm::eltwise_clip; *beta = 6; return true;
    case SKUA_UNARY_ELU: *a = algorithm::eltwise_elu; *alpha = 1; return true;
    case SKUA_UNARY_SIGMOID: *a = algorithm::eltwise_logistic; return true;
    case SKUA_UNARY_TANH: *a = algorithm::eltwise_tanh; return true;
    case SKUA_UNARY_HARD_SWISH: *a = algorithm::eltwise_hardswish; return true;
    case SKUA_UNARY_SILU: *a = algorithm::eltwise_swish; *alpha = 1; return true;
    case SKUA_UNARY_GELU: *a = algorithm::eltwise_gelu_erf; return true;
    case SKUA_UNARY_GELU_TANH: *a = algorithm::eltwise_gelu_tanh; return true;
    case SKUA_UNARY_SOFTPLUS: *a = algorithm::eltwise_soft_relu; return true;
    case SKUA_UNARY_EXP: *a = algorithm::eltwise_exp; return true;
    case SKUA_UNARY_LOG: *a = algorithm::eltwise_log; return true;
    case SKUA_UNARY_SQRT: *a = algorithm::eltwise_sqrt; return true;
    case SKUA_UNARY_ABS: *a = algorithm::eltwise_abs; return true;
    case SKUA_UNARY_SQUARE: *a = algorithm::eltwise_square; return true;
    default: return false;
  }
}

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Buffers of a network: a tensor's place is free again after its last use.
struct Places {
  Engine& cpu;
  std::multimap<size_t, void*> free;
  std::vector<std::unique_ptr<Memory>> owned;
  std::map<void*, size_t> sizes;
  explicit Places(Engine& e) : cpu(e) {}
  memory get(const memory::desc& md) {
    const size_t size = md.get_size();
    auto it = free.lower_bound(size);
    void* p;
    if (it != free.end()) {
      p = it->second;
      free.erase(it);
    } else {
      owned.push_back(std::make_unique<Memory>(size / sizeof(float) + 1));
      p = owned.back()->data();
      sizes[p] = size;
    }
    return {md, cpu.engine, p};
  }
  void release(const memory& m) {
    void* p = m.get_data_handle();
    if (sizes.count(p)) free.insert({sizes[p], p});
  }
};

struct Built {
  std::vector<Call> reorders;  // of the input into the layout the primitive wants
  Call call;
  memory output;
};

enum class Layout { any, nhwc, winograd };  // winograd: any, and Winograd's algorithm, which convolution_auto never takes
bool has_winograd(const Layer& l) { return l.op == Op::conv && l.groups == 1 && l.kh == 3 && l.kw == 3 && l.sh == 1 && l.sw == 1 && l.dh == 1 && l.dw == 1; }
enum class Product { inner, matmul };

// Prepares one layer on an input that lies in `src`. Constants are packed here. Throws dnnl::error where oneDNN has no implementation.
bool build(Engine& cpu, Places& places, const Layer& l, const float* weights, const float* bias, const memory& src, const memory* second, Layout layout,
           Product product, Built& out) {
  dnnl::post_ops ops;
  dnnl::primitive_attr attr;
  if (l.residual) ops.append_sum(1.0f);
  if (!append_activation(l.activation, ops)) return false;
  attr.set_post_ops(ops);
  const auto wish = [&](const memory::dims& dims, tag plain) { return memory::desc(dims, f32, layout == Layout::nhwc ? plain : tag::any); };
  const auto constant = [&](const float* values, const memory::desc& from, const memory::desc& to) {
    memory plain(from, cpu.engine, const_cast<float*>(values)), packed(to, cpu.engine);
    if (layout == Layout::winograd && from.dims().size() == 4) {  // its weights can only be made from plain OIHW
      memory oihw(memory::desc(from.dims(), f32, tag::abcd), cpu.engine);
      dnnl::reorder(plain, oihw).execute(cpu.stream, plain, oihw);
      cpu.stream.wait();
      plain = oihw;
    }
    dnnl::reorder(plain, packed).execute(cpu.stream, plain, packed);
    cpu.stream.wait();
    return packed;
  };
  const auto input = [&](const memory::desc& wanted) {
    if (src.get_desc() == wanted) return src;
    memory to = places.get(wanted);
    out.reorders.push_back({dnnl::reorder(src, to), {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, to}}});
    return to;
  };
  const auto output = [&](const memory::desc& md) { return l.residual ? memory(md, cpu.engine, second->get_data_handle()) : places.get(md); };
  const auto result = [&](memory::desc md) { return l.residual ? second->get_desc() : md; };
  std::unordered_map<int, memory>& args = out.call.args;
  const memory::dims strides = {d(l.sh), d(l.sw)}, before = {d(l.top), d(l.left)};
  // ceil mode: what the last window takes beyond the padding.
  const auto after = [&](size_t in, size_t o, size_t kernel, size_t stride, size_t dilation, size_t first) {
    return memory::dim((o - 1) * stride + dilation * (kernel - 1) + 1) - memory::dim(in + first);
  };

  switch (l.op) {
    case Op::gemm: {
      memory::desc bias_md({d(l.n)}, f32, tag::a);
      const memory::desc source = src.get_desc();
      if (product == Product::matmul && source.data.ndims == 2) {
        const memory::desc plain({d(l.k), d(l.n)}, f32, tag::ab), any_w({d(l.k), d(l.n)}, f32, tag::any);
        const memory::desc row_bias({1, d(l.n)}, f32, tag::ab), dst({d(l.m), d(l.n)}, f32, tag::ab);
        const auto desc = bias ? dnnl::matmul::desc(source, any_w, row_bias, dst) : dnnl::matmul::desc(source, any_w, dst);
        const dnnl::matmul::primitive_desc pd(desc, attr, cpu.engine);
        args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
        if (bias) args[DNNL_ARG_BIAS] = constant(bias, row_bias, row_bias);
        out.call.primitive = dnnl::matmul(pd);
        return true;
      }
      memory::dims dims = {d(l.n), d(l.k)}, steps = {1, d(l.n)};
      if (source.data.ndims == 4) dims = {d(l.n), d(l.c), d(l.h), d(l.w)}, steps = {1, d(l.n), d(l.w * l.c * l.n), d(l.c * l.n)};
      const memory::desc plain(dims, f32, steps), any_w(dims, f32, tag::any), dst({d(l.m), d(l.n)}, f32, tag::any);
      const memory::desc any_src(source.dims(), f32, tag::any);
      const auto desc = bias ? dnnl::inner_product_forward::desc(prop_kind::forward_inference, any_src, any_w, bias_md, dst)
                             : dnnl::inner_product_forward::desc(prop_kind::forward_inference, any_src, any_w, dst);
      const dnnl::inner_product_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())}, {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      if (bias) args[DNNL_ARG_BIAS] = constant(bias, bias_md, bias_md);
      out.call.primitive = dnnl::inner_product_forward(pd);
      return true;
    }
    case Op::conv: {
      const size_t per = l.c / l.groups, area = l.kh * l.kw;
      memory::dims dims = {d(l.out_c), d(per), d(l.kh), d(l.kw)}, steps = {d(area * per), 1, d(l.kw * per), d(per)};
      if (l.groups > 1) {
        dims = {d(l.groups), d(l.out_c / l.groups), d(per), d(l.kh), d(l.kw)};
        steps = {d(l.out_c / l.groups * area * per), d(area * per), 1, d(l.kw * per), d(per)};
      }
      const memory::desc plain(dims, f32, steps), any_w(dims, f32, tag::any), bias_md({d(l.out_c)}, f32, tag::a);
      const memory::dims end = {after(l.h, l.out_h, l.kh, l.sh, l.dh, l.top), after(l.w, l.out_w, l.kw, l.sw, l.dw, l.left)};
      const auto how = layout == Layout::winograd ? algorithm::convolution_winograd : algorithm::convolution_direct;
      const dnnl::convolution_forward::desc desc(prop_kind::forward_inference, how, wish(map_dims(l.h, l.w, l.c), tag::nhwc), any_w, bias_md,
                                                 result(wish(map_dims(l.out_h, l.out_w, l.out_c), tag::nhwc)), strides, {d(l.dh - 1), d(l.dw - 1)}, before, end);
      const dnnl::convolution_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())}, {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())}, {DNNL_ARG_BIAS, constant(bias, bias_md, bias_md)},
              {DNNL_ARG_DST, out.output = output(pd.dst_desc())}};
      out.call.primitive = dnnl::convolution_forward(pd);
      return true;
    }
    case Op::deconv: {
      if (l.groups > 1) return false;
      const memory::dims dims = {d(l.out_c), d(l.c), d(l.kh), d(l.kw)}, steps = {d(l.kh * l.kw * l.c), 1, d(l.kw * l.c), d(l.c)};
      const memory::desc plain(dims, f32, steps), any_w(dims, f32, tag::any), bias_md({d(l.out_c)}, f32, tag::a);
      const dnnl::deconvolution_forward::desc desc(prop_kind::forward_inference, algorithm::deconvolution_direct, wish(map_dims(l.h, l.w, l.c), tag::nhwc), any_w, bias_md,
                                                   wish(map_dims(l.out_h, l.out_w, l.out_c), tag::nhwc), strides, {d(l.dh - 1), d(l.dw - 1)}, before,
                                                   {d(l.bottom), d(l.right)});
      const dnnl::deconvolution_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())}, {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())}, {DNNL_ARG_BIAS, constant(bias, bias_md, bias_md)},
              {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::deconvolution_forward(pd);
      return true;
    }
    case Op::max_pool: case Op::average_pool: case Op::global_pool: {
      const bool global = l.op == Op::global_pool;
      const size_t kh = global ? l.h : l.kh, kw = global ? l.w : l.kw;
      const memory::dims end = {std::max<memory::dim>(0, after(l.h, l.out_h, kh, l.sh, 1, l.top)), std::max<memory::dim>(0, after(l.w, l.out_w, kw, l.sw, 1, l.left))};
      const dnnl::pooling_forward::desc desc(prop_kind::forward_inference, l.op == Op::max_pool ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding,
                                             src.get_desc(), memory::desc(map_dims(l.out_h, l.out_w, l.out_c), f32, tag::any), strides, {d(kh), d(kw)}, before, end);
      const dnnl::pooling_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::pooling_forward(pd);
      return true;
    }
    case Op::unary: {
      algorithm a;
      float alpha, beta;
      if (!unary_algorithm(l.unary, &a, &alpha, &beta)) return false;
      const dnnl::eltwise_forward::primitive_desc pd({prop_kind::forward_inference, a, src.get_desc(), alpha, beta}, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::eltwise_forward(pd);
      return true;
    }
    case Op::binary: {
      algorithm a;
      if (l.binary == SKUA_BINARY_ADD) a = algorithm::binary_add;
      else if (l.binary == SKUA_BINARY_SUB) a = algorithm::binary_sub;
      else if (l.binary == SKUA_BINARY_MUL) a = algorithm::binary_mul;
      else if (l.binary == SKUA_BINARY_DIV) a = algorithm::binary_div;
      else return false;
      const dnnl::binary::primitive_desc pd({a, src.get_desc(), second->get_desc(), src.get_desc()}, attr, cpu.engine);
      args = {{DNNL_ARG_SRC_0, src}, {DNNL_ARG_SRC_1, *second}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::binary(pd);
      return true;
    }
    case Op::softmax: {
      const dnnl::softmax_forward::primitive_desc pd({prop_kind::forward_inference, src.get_desc(), 1}, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::softmax_forward(pd);
      return true;
    }
    case Op::resize: {
      if (l.coordinates != SKUA_RESIZE_HALF_PIXEL) return false;
      const dnnl::resampling_forward::desc desc(prop_kind::forward_inference, algorithm::resampling_linear, src.get_desc(),
                                                memory::desc(map_dims(l.out_h, l.out_w, l.out_c), f32, tag::any));
      const dnnl::resampling_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::resampling_forward(pd);
      return true;
    }
    case Op::concat: return false;
  }
  return false;
}

void execute(Engine& cpu, const Call& call) {
  call.primitive.execute(cpu.stream, call.args);
  cpu.stream.wait();
}

class OnednnLayer : public Prepared {
 public:
  Engine& cpu;
  Places places;
  Built built;
  std::string variant;
  memory result;  // over the caller's output
  explicit OnednnLayer(Engine& e) : cpu(e), places(e) {}
  void run() override { execute(cpu, built.call); }
  void fetch() override {
    dnnl::reorder(built.output, result).execute(cpu.stream, built.output, result);
    cpu.stream.wait();
  }
  std::string algorithm() const override { return variant; }
};

class OnednnNetwork : public PreparedNetwork {
 public:
  Engine& cpu;
  Places places;
  const Corpus* network;
  std::vector<std::vector<Call>> steps;
  std::vector<memory> tensors;
  explicit OnednnNetwork(Engine& e) : cpu(e), places(e) {}
  void run() override {
    for (auto& calls : steps)
      for (const Call& c : calls) execute(cpu, c);
  }
  void run_step(size_t step) override {
    for (const Call& c : steps[step]) execute(cpu, c);
  }
  void read(int tensor, std::vector<float>& out) override {
    const FeatureMap& t = network->tensors[size_t(tensor)];
    out.resize(t.count());
    memory& from = tensors[size_t(tensor)];
    const memory::desc md = from.get_desc().data.ndims == 2 ? memory::desc({1, d(t.c)}, f32, tag::ab) : map_desc(t.h, t.w, t.c, t.c);
    memory to(md, cpu.engine, out.data());
    dnnl::reorder(from, to).execute(cpu.stream, from, to);
    cpu.stream.wait();
  }
};

class Onednn : public Contestant {
 public:
  Engine cpu;
  const char* name() const override { return "onednn"; }
  void use_threads(int threads) override {  // it runs on OpenMP, which was loaded with it
    if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
  }
  void wake() override { wake_openmp(); }
  void park() override { park_openmp(); }
  std::string version() const override {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }

  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second, View y, std::string* why) override {
    const bool flat = l.op == Op::gemm || l.op == Op::softmax || ((l.op == Op::unary || l.op == Op::binary) && l.h * l.w == 1);
    const size_t rows = l.op == Op::gemm || l.op == Op::softmax ? l.m : 1;
    const auto desc = [&](size_t h, size_t w, size_t c, size_t stride) {
      return flat ? memory::desc({d(rows), d(c)}, f32, tag::ab) : map_desc(h, w, c, stride ? stride : c);
    };
    const size_t in_c = l.op == Op::gemm ? l.k : l.op == Op::softmax ? l.n : l.c, out_c = l.op == Op::gemm || l.op == Op::softmax ? l.n : l.out_c;
    std::unique_ptr<OnednnLayer> best;
    double best_ns = INFINITY;
    *why = "no such operator";
    for (int variant = 0; variant < (has_winograd(l) ? 3 : l.multiplies() ? 2 : 1); ++variant) try {
        auto made = std::make_unique<OnednnLayer>(cpu);
        memory src(desc(l.h, l.w, in_c, x.stride), cpu.engine, x.data), other;
        if (second.data) other = memory(l.broadcast ? desc(1, 1, l.c, second.stride) : desc(l.out_h, l.out_w, out_c, second.stride), cpu.engine, second.data);
        if (l.residual) {  // the sum overwrites it
          memory copy = made->places.get(other.get_desc());
          dnnl::reorder(other, copy).execute(cpu.stream, other, copy);
          other = copy;
        }
        if (!build(cpu, made->places, l, weights, bias, src, &other, variant == 0 ? Layout::any : variant == 1 ? Layout::nhwc : Layout::winograd, variant ? Product::matmul : Product::inner,
                   made->built)) continue;
        made->result = memory(desc(l.out_h, l.out_w, out_c, y.stride), cpu.engine, y.data);
        made->variant = l.op == Op::gemm ? (variant ? "matmul" : "inner_product") : variant == 0 ? "any" : variant == 1 ? "nhwc" : "winograd";
        for (const Call& c : made->built.reorders) execute(cpu, c);
        double ns = INFINITY;
        made->run();
        for (int i = 0; i < 3; ++i) {
          const double start = busy_ns();
          made->run();
          ns = std::min(ns, busy_ns() - start);
        }
        if (ns < best_ns) {
          best_ns = ns;
          best = std::move(made);
        }
      } catch (const dnnl::error& e) {
        *why = e.what();
      }
    return best;
  }

  std::unique_ptr<PreparedNetwork> prepare_network(const Corpus& net, std::string* why) override try {
    auto made = std::make_unique<OnednnNetwork>(cpu);
    made->network = &net;
    made->tensors.resize(net.tensors.size());
    std::vector<int> last(net.tensors.size(), -1);
    for (size_t i = 0; i < net.steps.size(); ++i)
      for (int t : {net.steps[i].x, net.steps[i].second})
        if (t >= 0) last[size_t(t)] = int(i);
    const FeatureMap& in = net.tensors[size_t(net.input)];
    made->tensors[size_t(net.input)] = memory(map_desc(in.h, in.w, in.c, in.c), cpu.engine);
    std::vector<float> input;
    fill(input, in.count(), 7, -1, 1);
    std::copy(input.begin(), input.end(), static_cast<float*>(made->tensors[size_t(net.input)].get_data_handle()));

    for (size_t i = 0; i < net.steps.size(); ++i) {
      const Step& s = net.steps[i];
      std::vector<Call>& calls = made->steps.emplace_back();
      const auto ready = [&](int tensor) -> memory& {
        memory& m = made->tensors[size_t(tensor)];
        if (m) return m;
        std::vector<memory::desc> parts;  // a concatenation, on its first use
        std::vector<memory> sources;
        for (size_t t = 0; t < net.tensors.size(); ++t)
          if (net.tensors[t].parent == tensor) parts.push_back(made->tensors[t].get_desc()), sources.push_back(made->tensors[t]);
        const dnnl::concat::primitive_desc pd(1, parts, cpu.engine);
        m = made->places.get(pd.dst_desc());
        Call call{dnnl::concat(pd), {{DNNL_ARG_DST, m}}};
        for (size_t t = 0; t < sources.size(); ++t) call.args[int(DNNL_ARG_MULTIPLE_SRC + t)] = sources[t];
        calls.push_back(call);
        for (const memory& source : sources) made->places.release(source);
        return m;
      };
      const memory src = ready(s.x);
      memory second;
      if (s.second >= 0) second = ready(s.second);
      const std::vector<float> weights = make_weights(s.layer, unsigned(100 + i)), bias = make_bias(s.layer, unsigned(500 + i));
      Built built;
      const auto with = [&](Layout layout) {
        built = {};
        return build(cpu, made->places, s.layer, weights.data(), bias.empty() ? nullptr : bias.data(), src, &second, layout, Product::inner, built);
      };
      bool done = false;
      if (has_winograd(s.layer) && s.layer.c >= 32) try {  // faster than the direct form on every such layer that was measured
          done = with(Layout::winograd);
        } catch (const dnnl::error&) {  // not for this shape
        }
      if (!done && !with(Layout::any)) {
        *why = s.layer.kind() + "/" + s.layer.label() + ": no such operator";
        return nullptr;
      }
      for (Call& c : built.reorders) {
        made->places.release(c.args[DNNL_ARG_DST]);
        calls.push_back(c);
      }
      calls.push_back(built.call);
      made->tensors[size_t(s.y)] = built.output;
      for (int t : {s.x, s.second}) {
        if (t < 0 || last[size_t(t)] != int(i) || t == net.input) continue;
        if (t == s.second && s.layer.residual) continue;  // the result lies there
        if (i + 1 < net.steps.size()) made->places.release(made->tensors[size_t(t)]);
      }
    }
    return made;
  } catch (const dnnl::error& e) {
    *why = e.what();
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_onednn(std::string* why) try {
  if (!isa_cap.empty()) {
    const std::map<std::string, const char*> caps = {{"sse41", "SSE41"}, {"avx2", "AVX2"}};
    const auto cap = caps.find(isa_cap);
    if (cap == caps.end() || dnnl::set_max_cpu_isa(isa_cap == "avx2" ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41) != dnnl::status::success) {
      *why = "cannot be capped at " + isa_cap;
      return nullptr;
    }
  }
  return std::make_unique<Onednn>();
} catch (const dnnl::error& e) {
  *why = e.what();
  return nullptr;
}

}  // namespace bench
