// oneDNN's primitive of a layer, its constants packed, the reorders that its input needs.
#include "peer_onednn.h"
#include <math.h>
#include <algorithm>

namespace bench::onednn {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

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

}  // namespace

bool build(Engine& cpu, Places& places, const Layer& l, const float* weights, const float* bias, const memory& src,
           const memory* second, Layout layout, Product product, Built& out) {
  const memory::data_type type = data_type(l.type);  // of maps; constants come as floats, bias stays f32
  const bool bytes = l.type == SKUA_DTYPE_S8;
  const memory::data_type weight_type = bytes ? memory::data_type::s8 : type;
  dnnl::post_ops ops;
  dnnl::primitive_attr attr;
  if (l.residual) ops.append_sum(1.0f);
  std::vector<float> integers, integer_bias;  // constants of bytes, in their own units
  if (bytes) {
    const float scale = weight_scale(l);
    if (l.multiplies()) {
      for (size_t i = 0; i < l.weight_count(); ++i) integers.push_back(nearbyintf(weights[i] / scale));
      for (size_t i = 0; bias && i < l.bias_count(); ++i)
        integer_bias.push_back(nearbyintf(bias[i] / (byte_scale * scale)));
      weights = integers.data();
      if (bias) bias = integer_bias.data();
    }
    if (l.op == Op::unary || l.op == Op::softmax) return false;
    const bool clamps = l.activation == SKUA_ACTIVATION_NONE || l.activation == SKUA_ACTIVATION_RELU ||
                        l.activation == SKUA_ACTIVATION_RELU6;
    if (l.residual && !clamps) return false;
    // Sums become steps of the output, which is not negative as it is; functions need the real values.
    if (l.multiplies()) attr.set_output_scales(0, {clamps ? scale : scale * byte_scale});
    if (l.activation == SKUA_ACTIVATION_RELU6) ops.append_eltwise(1, algorithm::eltwise_clip, 0, 6 / byte_scale);
    if (l.op == Op::binary && l.binary == SKUA_BINARY_MUL)
      ops.append_eltwise(1, algorithm::eltwise_linear, byte_scale, 0);
    // in steps at once: of two linear functions oneDNN 2.6 keeps one
    if (l.activation == SKUA_ACTIVATION_HARD_SIGMOID) {
      ops.append_eltwise(1, algorithm::eltwise_linear, 1 / (6 * byte_scale), 0.5f / byte_scale);
      ops.append_eltwise(1, algorithm::eltwise_clip, 0, 1 / byte_scale);
    } else if (!clamps) {
      if (!append_activation(l.activation, ops)) return false;
      ops.append_eltwise(1, algorithm::eltwise_linear, 1 / byte_scale, 0);
    }
  } else if (!append_activation(l.activation, ops)) {
    return false;
  }
  attr.set_post_ops(ops);
  const auto wish = [&](const memory::dims& dims, tag plain) {
    return memory::desc(dims, type, layout == Layout::nhwc ? plain : tag::any);
  };
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
  const auto output = [&](const memory::desc& md) {
    return l.residual ? memory(md, cpu.engine, second->get_data_handle()) : places.get(md);
  };
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
      if (l.two_inputs) {
        if (product != Product::matmul) return false;
        const memory::desc dst({d(l.m), d(l.n)}, type, tag::ab);
        const dnnl::matmul::primitive_desc pd({source, second->get_desc(), dst}, attr, cpu.engine);
        args = {{DNNL_ARG_SRC, src},
                {DNNL_ARG_WEIGHTS, *second},
                {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
        out.call.primitive = dnnl::matmul(pd);
        return true;
      }
      if (product == Product::matmul && source.data.ndims == 2) {
        const memory::desc plain({d(l.k), d(l.n)}, f32, tag::ab), any_w({d(l.k), d(l.n)}, weight_type, tag::any);
        const memory::desc row_bias({1, d(l.n)}, f32, tag::ab), dst({d(l.m), d(l.n)}, type, tag::ab);
        const auto desc =
            bias ? dnnl::matmul::desc(source, any_w, row_bias, dst) : dnnl::matmul::desc(source, any_w, dst);
        const dnnl::matmul::primitive_desc pd(desc, attr, cpu.engine);
        args = {{DNNL_ARG_SRC, src},
                {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())},
                {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
        if (bias) args[DNNL_ARG_BIAS] = constant(bias, row_bias, row_bias);
        out.call.primitive = dnnl::matmul(pd);
        return true;
      }
      memory::dims dims = {d(l.n), d(l.k)}, steps = {1, d(l.n)};
      if (source.data.ndims == 4)
        dims = {d(l.n), d(l.c), d(l.h), d(l.w)}, steps = {1, d(l.n), d(l.w * l.c * l.n), d(l.c * l.n)};
      const memory::desc plain(dims, f32, steps), any_w(dims, weight_type, tag::any),
          dst({d(l.m), d(l.n)}, type, tag::any);
      const memory::desc any_src(source.dims(), type, tag::any);
      const auto desc =
          bias ? dnnl::inner_product_forward::desc(prop_kind::forward_inference, any_src, any_w, bias_md, dst)
               : dnnl::inner_product_forward::desc(prop_kind::forward_inference, any_src, any_w, dst);
      const dnnl::inner_product_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())},
              {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())},
              {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
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
      const memory::desc plain(dims, f32, steps), any_w(dims, weight_type, tag::any),
          bias_md({d(l.out_c)}, f32, tag::a);
      const memory::dims end = {after(l.h, l.out_h, l.kh, l.sh, l.dh, l.top),
                                after(l.w, l.out_w, l.kw, l.sw, l.dw, l.left)};
      const auto how = layout == Layout::winograd ? algorithm::convolution_winograd : algorithm::convolution_direct;
      const dnnl::convolution_forward::desc desc(prop_kind::forward_inference, how,
                                                 wish(map_dims(l.h, l.w, l.c), tag::nhwc), any_w, bias_md,
                                                 result(wish(map_dims(l.out_h, l.out_w, l.out_c), tag::nhwc)), strides,
                                                 {d(l.dh - 1), d(l.dw - 1)}, before, end);
      const dnnl::convolution_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())},
              {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())},
              {DNNL_ARG_BIAS, constant(bias, bias_md, bias_md)},
              {DNNL_ARG_DST, out.output = output(pd.dst_desc())}};
      out.call.primitive = dnnl::convolution_forward(pd);
      return true;
    }
    case Op::deconv: {
      if (l.groups > 1) return false;
      const memory::dims dims = {d(l.out_c), d(l.c), d(l.kh), d(l.kw)},
                         steps = {d(l.kh * l.kw * l.c), 1, d(l.kw * l.c), d(l.c)};
      const memory::desc plain(dims, f32, steps), any_w(dims, weight_type, tag::any),
          bias_md({d(l.out_c)}, f32, tag::a);
      const dnnl::deconvolution_forward::desc desc(prop_kind::forward_inference, algorithm::deconvolution_direct,
                                                   wish(map_dims(l.h, l.w, l.c), tag::nhwc), any_w, bias_md,
                                                   wish(map_dims(l.out_h, l.out_w, l.out_c), tag::nhwc), strides,
                                                   {d(l.dh - 1), d(l.dw - 1)}, before, {d(l.bottom), d(l.right)});
      const dnnl::deconvolution_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, input(pd.src_desc())},
              {DNNL_ARG_WEIGHTS, constant(weights, plain, pd.weights_desc())},
              {DNNL_ARG_BIAS, constant(bias, bias_md, bias_md)},
              {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::deconvolution_forward(pd);
      return true;
    }
    case Op::max_pool: case Op::average_pool: case Op::global_pool: {
      const bool global = l.op == Op::global_pool;
      const size_t kh = global ? l.h : l.kh, kw = global ? l.w : l.kw;
      const memory::dims end = {std::max<memory::dim>(0, after(l.h, l.out_h, kh, l.sh, 1, l.top)),
                                std::max<memory::dim>(0, after(l.w, l.out_w, kw, l.sw, 1, l.left))};
      const dnnl::pooling_forward::desc desc(
          prop_kind::forward_inference,
          l.op == Op::max_pool ? algorithm::pooling_max : algorithm::pooling_avg_exclude_padding, src.get_desc(),
          memory::desc(map_dims(l.out_h, l.out_w, l.out_c), type, tag::any), strides, {d(kh), d(kw)}, before, end);
      const dnnl::pooling_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::pooling_forward(pd);
      return true;
    }
    case Op::unary: {
      algorithm a;
      float alpha, beta;
      if (!unary_algorithm(l.unary, &a, &alpha, &beta)) return false;
      const dnnl::eltwise_forward::primitive_desc pd({prop_kind::forward_inference, a, src.get_desc(), alpha, beta},
                                                     attr, cpu.engine);
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
      const dnnl::softmax_forward::primitive_desc pd({prop_kind::forward_inference, src.get_desc(), 1}, attr,
                                                     cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::softmax_forward(pd);
      return true;
    }
    case Op::resize: {
      if (l.coordinates != SKUA_RESIZE_HALF_PIXEL) return false;
      const dnnl::resampling_forward::desc desc(prop_kind::forward_inference, algorithm::resampling_linear,
                                                src.get_desc(),
                                                memory::desc(map_dims(l.out_h, l.out_w, l.out_c), type, tag::any));
      const dnnl::resampling_forward::primitive_desc pd(desc, attr, cpu.engine);
      args = {{DNNL_ARG_SRC, src}, {DNNL_ARG_DST, out.output = places.get(pd.dst_desc())}};
      out.call.primitive = dnnl::resampling_forward(pd);
      return true;
    }
    case Op::concat: return false;
  }
  return false;
}

}  // namespace bench::onednn
