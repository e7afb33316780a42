// Checks of the convolutions' descriptors, and packing. See skua/conv.h.
#include "conv/conv.h"
#include "core/quantize.h"
#include "core/window.h"
#include "gpu/operators.h"

namespace skua {

bool conv_layout(const ConvConfig& c, size_t (&offset)[kConvAlgorithms], size_t& floats) {
  floats = c.has_bias ? direct_bias_floats(c.out_channels, c.groups) : 0;
  DirectShape s = {};
  s.in_channels = c.in_channels; s.out_channels = c.out_channels; s.groups = c.groups;
  s.kernel_h = c.kernel_h; s.kernel_w = c.kernel_w;
  s.stride_h = c.stride_h; s.stride_w = c.stride_w;
  s.dilation_h = c.dilation_h; s.dilation_w = c.dilation_w;
  s.transposed = c.transposed;
  s.element = map_element(c);
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    offset[a] = floats;
    if (!(c.packed >> a & 1)) continue;
    size_t n = 0;
    if (a == kDirect) {
      if (!c.format.vector || !c.format.nr || !c.format.kr || !direct_packed_floats(s, c.format, n)) return false;
    } else if (a == kDepthwise || a == kGrouped) {
      n = depthwise_packed_floats(c.kernel_h, c.kernel_w, a == kGrouped ? c.in_channels / c.groups : 1, c.out_channels,
                                  c.depthwise);
      if (!n) return false;
    } else {
      if (c.winograd_vector > UINT16_MAX ||
          !winograd_packed_floats(winograd_variant(a), c.in_channels, c.out_channels, winograd_format(c), n))
        return false;
    }
    if (!add(floats, round_up(n, 16), floats)) return false;
  }
  return floats <= SIZE_MAX / 8;
}

// Element steps of the caller's weights; false on overflow.
bool conv_weight_steps(const ConvConfig& c, skua_weight_layout layout, WeightSteps& w) {
  const size_t in = c.in_channels / c.groups, out = c.out_channels;
  size_t taps = 0, all = 0;
  if (!mul(c.kernel_h, c.kernel_w, taps) || !mul(taps, in, all) || !mul(all, out, all) || all > SIZE_MAX / 8)
    return false;
  switch (layout) {
    case SKUA_WEIGHTS_OHWI: w = {taps * in, 1, c.kernel_w * in, in}; break;
    case SKUA_WEIGHTS_OIHW: w = {taps * in, taps, c.kernel_w, 1}; break;
    case SKUA_WEIGHTS_HWIO: w = {1, out, c.kernel_w * in * out, in * out}; break;
  }
  return true;
}

namespace {

template <class Desc> ConvConfig config_of(const Desc& d, bool transposed) {
  ConvConfig c;
  memset(&c, 0, sizeof c);
  c.transposed = transposed;
  c.layout = uint8_t(d.layout);
  c.residual = uint8_t(d.epilogue.residual);
  c.numerics = uint8_t(d.numerics);
  c.padding_mode = uint8_t(d.padding.mode);
  c.element = uint8_t(d.input_type);
  c.weights = uint8_t(d.weight_type);
  c.kernel_h = d.kernel_h; c.kernel_w = d.kernel_w; c.stride_h = d.stride_h; c.stride_w = d.stride_w;
  c.dilation_h = d.dilation_h; c.dilation_w = d.dilation_w; c.groups = d.groups;
  c.in_channels = d.in_channels; c.out_channels = d.out_channels;
  c.pad_top = d.padding.top;
  c.pad_left = d.padding.left;
  c.pad_bottom = d.padding.bottom;
  c.pad_right = d.padding.right;
  c.activation = d.epilogue.activation;
  return c;
}

template <class Desc> skua_status check_shape(const char* op, const Desc& d) {
  SKUA_TRY(check_epilogue(op, d.epilogue));
  SKUA_TRY(check_window(op, d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w, d.padding));
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("%s: layout is %d, unknown", op, int(d.layout));
  if (unsigned(d.weight_layout) > SKUA_WEIGHTS_HWIO)
    return SKUA_INVALID("%s: weight_layout is %d, unknown", op, int(d.weight_layout));
  if (unsigned(d.numerics) > SKUA_NUMERICS_FAST)
    return SKUA_INVALID("%s: numerics is %d, unknown", op, int(d.numerics));
  if (!d.groups) return SKUA_INVALID("%s: groups is 0, must be 1 or more", op);
  if (!d.in_channels || d.in_channels % d.groups)
    return SKUA_INVALID("%s: in_channels is %u, must be 1 or more and a multiple of groups = %u", op, d.in_channels,
                        d.groups);
  if (!d.out_channels || d.out_channels % d.groups)
    return SKUA_INVALID("%s: out_channels is %u, must be 1 or more and a multiple of groups = %u", op, d.out_channels,
                        d.groups);
  return SKUA_STATUS_OK;
}

template <class Desc> skua_status check(const char* op, const Desc& d) {
  SKUA_TRY(need_float(op, "input_type", d.input_type, true));
  SKUA_TRY(need_same_type_or_f32(op, "weight_type", d.weight_type, "input_type", d.input_type));
  SKUA_TRY(need_same_type(op, "output_type", d.output_type, "input_type", d.input_type));
  SKUA_TRY(need_unquantized(op, "input_q", d.input_q));
  SKUA_TRY(need_unquantized(op, "weight_q", d.weight_q));
  SKUA_TRY(need_unquantized(op, "output_q", d.output_q));
  SKUA_TRY(need_no_requantization(op, d.residual_q, d.requantization));
  return check_shape(op, d);
}

constexpr uint32_t kEvery = (1u << kConvAlgorithms) - 1;

// wanted: which packed format (Choice), kAskTuned for what was measured to be best; out is NULL when there is no such.
skua_status create(const OpClass& cls, const skua_context* ctx, ConvConfig c, skua_weight_layout layout,
                   uint32_t algorithms, const void* weights, const void* bias, size_t hint_h, size_t hint_w,
                   uint32_t wanted, skua_op** out) {
  if (!weights) return SKUA_INVALID("%s: weights is NULL", cls.name);
  c.has_bias = bias != nullptr;
  WeightSteps steps = {};
  if (!conv_weight_steps(c, layout, steps))
    return SKUA_INVALID("%s: the weights are larger than the address space", cls.name);
  // The plan for the hinted size chooses what is packed; without a hint, an image of 56 pixels chooses the panel
  // format.
  skua_op probe = {};
  probe.cls = &cls;
  probe.ctx = ctx;
  ConvPlan p;
  memset(static_cast<void*>(&p), 0, sizeof p);
  p.op = &probe;
  const bool hinted = hint_h && hint_w;
  const size_t least_h = size_t(c.dilation_h) * (c.kernel_h - 1) + 1,
               least_w = size_t(c.dilation_w) * (c.kernel_w - 1) + 1;
  if (hinted) SKUA_TRY(conv_shape(&probe, c, 1, hint_h, hint_w, p.shape));
  else
    // large enough for every padding to leave an output; the phases of a transposed convolution depend on the padding,
    // so it stays as it is
    SKUA_TRY(conv_shape(&probe, c, 1, max(56, least_h) + c.pad_top + c.pad_bottom,
                        max(56, least_w) + c.pad_left + c.pad_right, p.shape));
  const Kernel* tile = direct_tile(ctx, p.shape, nullptr);
  if (!tile) return SKUA_UNSUPPORTED_("%s: no kernel in this build", cls.name);
  // Candidates: direct with the panels of each tile, then every other algorithm.
  const uint64_t key = algorithms == kEvery ? creation_key(ctx, cls.id, &c, sizeof c, hint_h, hint_w) : 0;
  Choice choice = {wanted == kAskTuned ? tuned_creation(ctx, key) : wanted, 0};
  c.format = format_of(tile);
  // Winograd's products are f32 for every type: the vectors of the tile that the direct form would take.
  GemmTypes of_taps;
  of_taps.taps = size_t(c.kernel_h) * c.kernel_w;
  const Kernel* product =
      p.shape.element == Element::f32
          ? tile
          : choose_tile(ctx, 64, c.out_channels, c.in_channels, nullptr, nullptr, nullptr, of_taps);
  c.winograd_vector = product ? product->vector : 0;
  c.winograd_together = 1;
  const PackFormat half =
      p.shape.element == Element::f16 && c.numerics != SKUA_NUMERICS_STRICT ? winograd_half_format(ctx) : PackFormat{};
  if (choice.wanted) {
    uint32_t only = 0;
    if (const Kernel* other = direct_tile(ctx, p.shape, nullptr, nullptr, &choice)) {
      c.format = format_of(other);
      if (p.shape.element == Element::f32) c.winograd_vector = other->vector;
      only = 1u << kDirect;
    }
    for (uint32_t a = 0; a < kConvAlgorithms; ++a)
      if (a != kDirect && conv_applies(c, a) && !choice.skip()) only = 1u << a;
    if (!only && wanted != kAskTuned) return SKUA_STATUS_OK;
    if (only) algorithms = only;
  }
  // Halves are summed in halves where the window is one block of the products' rule.
  const bool f32_sums = c.numerics == SKUA_NUMERICS_STRICT || uint64_t(c.kernel_h) * c.kernel_w > 63;
  c.depthwise = c.groups == c.in_channels
                    ? depthwise_format(ctx, c.out_channels, map_element(c), f32_sums)
                    : grouped_format(ctx, c.out_channels, c.in_channels / c.groups, map_element(c));
  SKUA_TRY(conv_choose(&probe, c, algorithms, p, nullptr));
  if (half.vector) {
    ConvConfig other = c;
    other.winograd_vector = half.vector;
    other.winograd_element = uint32_t(half.element);
    const ConvPlan first = p;
    const bool any = conv_choose(&probe, other, algorithms, p, nullptr) == SKUA_STATUS_OK;
    if (any && p.chosen >= kWinogradF2x2 && (p.chosen == first.chosen || !ctx->filter[0]) && p.cycles < first.cycles)
      c = other;
    else p = first;
  }
  c.packed = 1u << p.chosen;
  // grouped tiles leave small images to it
  if ((!hinted && p.chosen != kDepthwise) || p.chosen == kGrouped) c.packed |= 1u << kDirect;
  size_t offset[kConvAlgorithms], floats = 0;
  if (!conv_layout(c, offset, floats))
    return SKUA_INVALID("%s: the packed weights are larger than the address space", cls.name);
  skua_op* base;
  SKUA_TRY(new_op(cls, ctx, 0, 1, floats * sizeof(float), &base));
  ConvOp& op = *static_cast<ConvOp*>(base);
  op.creation_key = key;
  memcpy(&op.config, &c, sizeof c);
  auto* to = static_cast<float*>(op_weights(base));
  memset(to, 0, floats * sizeof(float));
  const size_t group = c.out_channels / c.groups;
  if (bias)
    for (size_t g = 0; g < c.groups; ++g)
      memcpy(to + g * direct_bias_step(c.out_channels, c.groups), static_cast<const float*>(bias) + g * group,
             group * sizeof(float));
  const auto* w = static_cast<const float*>(weights);
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    if (!(c.packed >> a & 1)) continue;
    if (a == kDirect) direct_pack(ctx, p.shape, c.format, w, steps, to + offset[a]);
    else if (a == kDepthwise || a == kGrouped)
      depthwise_pack(c.kernel_h, c.kernel_w, c.in_channels / c.groups, c.out_channels, c.depthwise, w, steps,
                     static_cast<const float*>(bias), to + offset[a]);
    else
      winograd_pack(ctx, winograd_variant(a), c.in_channels, c.out_channels, winograd_format(c), w, steps,
                    to + offset[a]);
  }
  return open_op(base, out);
}

// Weights of 16 bits are widened before they are packed.
template <class T> void widen_all(size_t n, const void* from, float* to) {
  for (size_t i = 0; i < n; ++i) to[i] = widen(static_cast<const T*>(from)[i]);
}
skua_status create(const OpClass& cls, const skua_context* ctx, const ConvConfig& c, skua_dtype type,
                   skua_weight_layout layout, uint32_t algorithms, const void* weights, const void* bias, size_t hint_h,
                   size_t hint_w, skua_op** out) {
  const uint32_t wanted = c.transposed ? 0 : kAskTuned;
  WeightSteps steps;
  if (type == SKUA_DTYPE_F32 || !weights || !conv_weight_steps(c, layout, steps))
    return create(cls, ctx, c, layout, algorithms, weights, bias, hint_h, hint_w, wanted, out);
  const size_t n = size_t(c.kernel_h) * c.kernel_w * (c.in_channels / c.groups) * c.out_channels;
  auto* wide = static_cast<float*>(allocate(ctx, n * sizeof(float), 64));
  if (!wide) return out_of_memory(cls.name, n * sizeof(float));
  if (type == SKUA_DTYPE_F16) widen_all<f16>(n, weights, wide);
  else widen_all<bf16>(n, weights, wide);
  const skua_status s = create(cls, ctx, c, layout, algorithms, wide, bias, hint_h, hint_w, wanted, out);
  release(ctx, wide, n * sizeof(float));
  return s;
}

}  // namespace

static skua_status check_hints(const char* op, const skua_conv2d_desc& d) {
  if (!d.hint_in_h != !d.hint_in_w)
    return SKUA_INVALID("%s: hint_in_%c is 0, but hint_in_%c is set: give both (1D: a height of 1) or none", op,
                        d.hint_in_h ? 'w' : 'h', d.hint_in_h ? 'h' : 'w');
  return SKUA_STATUS_OK;
}
skua_status conv_config(const char* op, const skua_conv2d_desc& d, ConvConfig& c) {
  SKUA_TRY(check(op, d));
  SKUA_TRY(check_hints(op, d));
  c = config_of(d, false);
  return SKUA_STATUS_OK;
}

#ifdef SKUA_TYPE_s8
// An input of s8 or u8.
template <class Desc>
static skua_status create_int8(const char* op, const skua_context* ctx, const Desc& d, const ConvConfig& c,
                               const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out) {
  SKUA_TRY(need_int8(op, "input_type", d.input_type));
  if (d.weight_type != SKUA_DTYPE_S8)
    return SKUA_UNSUPPORTED_("%s: weight_type is %s, must be s8 where input_type is %s", op,
                             skua_dtype_name(d.weight_type), skua_dtype_name(d.input_type));
  SKUA_TRY(is_int8(Element(d.output_type)) ? need_int8(op, "output_type", d.output_type)
                                           : need_float(op, "output_type", d.output_type, true));
  SKUA_TRY(check_shape(op, d));
  SKUA_TRY(need_quantization(op, "input_q", d.input_q, d.input_type));
  SKUA_TRY(need_weight_quantization(op, "weight_q", d.weight_q, d.weight_type, d.out_channels,
                                    d.weight_layout == SKUA_WEIGHTS_HWIO ? 3 : 0));
  SKUA_TRY(need_quantization_of(op, "output_q", d.output_q, d.output_type));
  Requantize bounds;
  SKUA_TRY(quantized_epilogue(op, d.epilogue, Element(d.output_type), d.output_q, bounds, true));
  ConvQuantization q = {d.input_q, d.weight_q, d.output_q, d.requantization, {}};
  SKUA_TRY(quantized_residual(op, d.epilogue, Element(d.output_type), d.output_q, d.residual_q, q.residual));
  SKUA_TRY(need_requantization(op, d.requantization, Element(d.output_type), d.out_channels, d.epilogue.residual));
  if (d.epilogue.residual != SKUA_RESIDUAL_NONE && d.groups > 1 && d.groups == d.in_channels && !c.transposed)
    return SKUA_UNSUPPORTED_(
        "%s: epilogue.residual is %d; depthwise convolutions of bytes take none, add it by skua_binary_create()", op,
        int(d.epilogue.residual));
  WeightSteps steps = {};
  if (!conv_weight_steps(c, d.weight_layout, steps))
    return SKUA_INVALID("%s: the weights are larger than the address space", op);
  SKUA_ON_GPU(ctx, create_conv_bytes(ctx, c, d.output_type, bounds, q, steps, weights, bias, out));
  SKUA_TRY(depthwise_int8_create(ctx, c, d.output_type, bounds, q, steps, weights, bias, hint_h, hint_w, out));
  if (*out) return SKUA_STATUS_OK;
  return int8_conv_create(ctx, c, d.output_type, bounds, q, steps, weights, bias, hint_h, hint_w, out);
}
#else
template <class Desc>
static skua_status create_int8(const char* op, const skua_context*, const Desc& d, const ConvConfig&, const void*,
                               const void*, size_t, size_t, skua_op**) {
  return need_int8(op, "input_type", d.input_type);
}
#endif

skua_status conv_create(const OpClass& cls, skua_context* ctx, const skua_conv2d_desc& d, uint32_t algorithms,
                        const void* weights, const void* bias, skua_op** out) {
  ConvConfig c;
  SKUA_TRY(conv_config(cls.name, d, c));
  return create(cls, ctx, c, d.weight_type, d.weight_layout, algorithms, weights, bias, d.hint_in_h, d.hint_in_w, out);
}

skua_status conv_remake(const skua_op* base, const skua_tensor* inputs, uint32_t wanted, skua_op** out) {
  ConvConfig c;
  memcpy(&c, &static_cast<const ConvOp*>(base)->config, sizeof c);
  *out = nullptr;
  c.packed = 0;
  c.format = {};
  c.depthwise = {};
  c.winograd_vector = c.winograd_element = c.winograd_together = 0;
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW;
  const skua_tensor& x = inputs[0];
  const size_t h = x.rank == 4 ? x.shape[nchw ? 2 : 1] : 1, w = x.shape[nchw ? x.rank - 1 : x.rank - 2];
  const size_t bytes = size_t(c.kernel_h) * c.kernel_w * (c.in_channels / c.groups) * c.out_channels * sizeof(float);
  if (c.transposed || !creation_key(base->ctx, base->cls->id, &c, sizeof c, h, w)) return SKUA_STATUS_OK;
  void* weights = allocate(base->ctx, bytes, 64);
  if (!weights) return out_of_memory(base->cls->name, bytes);
  memset(weights, 0x3c, bytes);
  const skua_status s = create(*base->cls, base->ctx, c, SKUA_WEIGHTS_OHWI, kEvery, weights,
                               c.has_bias ? weights : nullptr, h, w, wanted, out);
  release(base->ctx, weights, bytes);
  return s;
}

extern const OpClass conv2d_class, conv2d_transpose_class;

}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_conv2d_create(skua_context* context, const skua_conv2d_desc* desc, const void* weights,
                               const void* bias, skua_op** out) {
  skua_conv2d_desc d;
  SKUA_TRY(read_desc("conv2d", context, desc, d, out));
  if (is_int8(Element(d.input_type))) {
    SKUA_TRY(check_hints("conv2d", d));
    return create_int8("conv2d", context, d, config_of(d, false), weights, bias, d.hint_in_h, d.hint_in_w, out);
  }
  [[maybe_unused]] ConvConfig c;
  if (context->gpu) SKUA_TRY(conv_config("conv2d", d, c));
  SKUA_ON_GPU(context,
              create_conv(context, c, d.weight_type, d.weight_layout, weights, bias, d.hint_in_h, d.hint_in_w, out));
  return conv_create(conv2d_class, context, d, kEvery, weights, bias, out);
}

skua_status skua_conv2d_transpose_create(skua_context* context, const skua_conv2d_transpose_desc* desc,
                                         const void* weights, const void* bias, skua_op** out) {
  skua_conv2d_transpose_desc d;
  SKUA_TRY(read_desc("conv2d_transpose", context, desc, d, out));
  const bool bytes = is_int8(Element(d.input_type));
  if (!bytes) SKUA_TRY(check("conv2d_transpose", d));
  if (d.output_padding_h >= d.stride_h)
    return SKUA_INVALID("conv2d_transpose: output_padding_h is %u, must be less than stride_h = %u", d.output_padding_h,
                        d.stride_h);
  if (d.output_padding_w >= d.stride_w)
    return SKUA_INVALID("conv2d_transpose: output_padding_w is %u, must be less than stride_w = %u", d.output_padding_w,
                        d.stride_w);
  if (uint64_t(d.stride_h) * d.stride_w > 4096)
    return SKUA_UNSUPPORTED_("conv2d_transpose: strides of %u x %u, their product may be 4096 at most", d.stride_h,
                             d.stride_w);
  ConvConfig c = config_of(d, true);
  c.output_padding_h = d.output_padding_h;
  c.output_padding_w = d.output_padding_w;
  if (bytes) return create_int8("conv2d_transpose", context, d, c, weights, bias, 0, 0, out);
  SKUA_ON_GPU(context, create_conv(context, c, d.weight_type, d.weight_layout, weights, bias, 0, 0, out));
  return create(conv2d_transpose_class, context, c, d.weight_type, d.weight_layout, kEvery, weights, bias, 0, 0, out);
}

}  // extern "C"
