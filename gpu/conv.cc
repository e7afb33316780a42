// Convolutions on a device, forward and transposed: as a product over the taps (gpu/kernels/product.h), 1x1 without
// them, depthwise by a kernel of its own. See skua/conv.h.
#include "conv/conv.h"
#include "gpu/operators.h"
#include "gpu/winograd.h"

namespace skua::gpu {
namespace {

struct Op : WeightedOp {
  ConvConfig config;
  skua_device_buffer* winograd_there[3];  // by WinogradForm
  ProductBytes q;  // of s8 and u8
};
struct Plan : skua_plan {
  ProductStep step;  // first: product.h
  Product product;
  DirectShape shape;
  MapSteps in, out, residual;
  WinogradLayer layer;
  WinogradStep winograd;
  // depthwise
  Chosen chosen;
  bool vectors;
};

static_assert(sizeof(Plan) <= kConvPlanBytes);

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

bool depthwise(const ConvConfig& c) { return !c.transposed && c.groups == c.in_channels && c.groups > 1; }
// Columns of a group, or of all channels of a depthwise convolution, rounded up to vectors.
size_t columns_of(const ConvConfig& c) {
  return round_up(depthwise(c) ? c.out_channels : c.out_channels / c.groups, 4);
}
size_t groups_of(const ConvConfig& c) { return depthwise(c) ? 1 : c.groups; }
size_t depth_of(const ConvConfig& c) { return depthwise(c) ? 1 : c.in_channels / c.groups; }
bool bytes(const ConvConfig& c) { return is_int8(Element(c.element)); }
size_t all_columns(const ConvConfig& c) { return groups_of(c) * columns_of(c); }
// Of bytes: what sums start with, their scales or multipliers, shifts, two vectors of what product.h says.
size_t bias_of(const ConvConfig& c) { return bytes(c) ? 3 * all_columns(c) + 8 : c.has_bias ? all_columns(c) : 0; }
bool weights_of(const ConvConfig& c, size_t& n) {
  return mul(size_t(c.kernel_h) * c.kernel_w, bytes(c) && !depthwise(c) ? round_up(depth_of(c), 4) : depth_of(c), n) &&
         mul(n, columns_of(c), n) && mul(n, groups_of(c), n) && n <= SIZE_MAX / 8;
}

Element result_of(const skua_op* op) {
  return bytes(static_cast<const Op*>(op)->config) ? static_cast<const Op*>(op)->q.result
                                                   : Element(static_cast<const Op*>(op)->config.element);
}

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const ConvConfig& c = op.config;
  op.n_inputs = 1 + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  size_t n = 0;
  weights_of(c, n);
  SKUA_TRY(upload_weights(op, bias_of(c), Element(c.element), n));
  const auto* from = static_cast<const char*>(op.weights) + bias_bytes(bias_of(c)) +
                     round_up(n * element_bytes(Element(c.element)), 16);
  for (int f = 1; f <= 2; ++f) {
    if (!(c.packed >> f & 1)) continue;
    const size_t bytes = winograd_weights(WinogradForm(f), c.in_channels, c.out_channels) * sizeof(float);
    SKUA_TRY(upload(&op, from, bytes, &op.winograd_there[f], Texels::f32));
    from += bytes;
  }
  return SKUA_STATUS_OK;
}
void close(skua_op* base) {
  for (skua_device_buffer* b : static_cast<Op*>(base)->winograd_there) free_buffer(b);
  free_weights(base);
}

// The forms of Winograd's algorithm that may serve the convolution, bits by WinogradForm.
uint32_t winograd_allowed(const ConvConfig& c) {
  const Element e = Element(c.element);
  if (bytes(c) || c.transposed || c.numerics == SKUA_NUMERICS_STRICT || c.groups != 1 || c.kernel_h != 3 ||
      c.kernel_w != 3 || c.stride_h != 1 || c.stride_w != 1 || c.dilation_h != 1 || c.dilation_w != 1)
    return 0;
  const bool fast = c.numerics == SKUA_NUMERICS_FAST;
  return uint32_t(fast || c.in_channels >= winograd_least_channels(WinogradVariant::f2x2, e))
             << int(WinogradForm::f2x2) |
         uint32_t(fast || c.in_channels >= winograd_least_channels(WinogradVariant::f4x4, e))
             << int(WinogradForm::f4x4);
}
// The filter's, which takes none if it names none; else the device's.
WinogradForm winograd_for(const skua_context* ctx, const WinogradSize& size, uint32_t allowed) {
  if (!ctx->filter[0]) return choose_winograd(ctx->gpu->about, size, allowed);
  for (int f = 2; f > 0; --f)
    if ((allowed >> f & 1) && glob_match(ctx->filter, winograd_form_name(WinogradForm(f)))) return WinogradForm(f);
  return WinogradForm::none;
}

MapSteps steps_of(const ConvConfig& c, const ConvMap& m) {
  return {m.image, m.row, m.pixel, c.layout == SKUA_LAYOUT_NCHW ? m.plane : 1};
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  const ConvConfig& c = static_cast<const Op*>(base)->config;
  Plan& p = *static_cast<Plan*>(out);
  ConvMap in;
  SKUA_TRY(conv_plan_shapes(base, c, shapes, skua_dtype(result_of(base)), in, p.shape, p.outputs[0]));
  p.in = steps_of(c, in);
  if (c.residual == SKUA_RESIDUAL_NONE) return SKUA_STATUS_OK;
  ConvMap r;
  SKUA_TRY(need_type(base, shapes, 1, skua_dtype(result_of(base))));
  SKUA_TRY(need_same_shape(base, shapes, 1, p.outputs[0]));
  SKUA_TRY(conv_map(base, c, "input", 1, shapes.inputs[1], c.out_channels, r));
  p.residual = steps_of(c, r);
  return SKUA_STATUS_OK;
}

// Pixels one behind the other with one step, as rows of a matrix.
bool as_rows(const MapSteps& m, size_t images, size_t h, size_t w) {
  return m.channel == 1 && (h <= 1 || m.row == w * m.pixel) && (images <= 1 || m.image == h * w * m.pixel);
}

skua_status choose_depthwise(const skua_op* base, bool vectors, Chosen& chosen) {
  const ConvConfig& c = static_cast<const Op*>(base)->config;
  const WorkGroup group = map_group(base->ctx->gpu->about, c.out_channels / (vectors ? 4 : 1));
  if (bytes(c))
    return choose(base,
                  {&depthwise_bytes_texts.texts[vectors ? depthwise_bytes_s8_v4 : depthwise_bytes_s8_v1],
                   {group.local[0], group.local[1], group.local[2]},
                   {result_code(result_of(base)), fixed_code(static_cast<const Op*>(base)->q.rounding)}},
                  chosen);
  const ProductSize size = {
      1,    c.out_channels, size_t(c.kernel_h) * c.kernel_w,
      1,    vectors,        true,
      true, false,          c.numerics == SKUA_NUMERICS_FAST && Element(c.element) == Element::f16};
  const bool half = size.k <= 64 && choose_half(base->ctx->gpu->about, size, kRows4);
  const KernelText* text = half ? &depthwise_texts.texts[depthwise_f16_h4]
                                : &text_of(depthwise_texts, vectors ? depthwise_f32_v4 : depthwise_f32_v1,
                                           depthwise_f16_v4 - depthwise_f32_v4, skua_dtype(c.element));
  const auto named = [&](const KernelText* t) {
    return base->ctx->filter[0] && glob_match(base->ctx->filter, t->names[base->ctx->gpu->api->number]);
  };
  const bool window = c.kernel_h == 3 && c.kernel_w == 3 && c.dilation_h == 1 && c.dilation_w == 1 &&
                      c.stride_h == c.stride_w && c.stride_h <= 2;
  if (vectors && !half && window) {
    const KernelText* const block = text + (c.stride_h == 1 ? depthwise_f32_s1 : depthwise_f32_s2) - depthwise_f32_v4;
    const KernelText* const image = image_of(depthwise_texts, text);
    const bool others = named(text) || named(image);
    if (named(block) != others ? named(block) : choose_blocks(base->ctx->gpu->about))
      return choose(
          base,
          {block, {group.local[0], group.local[1], group.local[2]}, {fused(c.activation).kind, c.residual, c.has_bias}},
          chosen);
  }
  if (vectors && !half && has_texels(static_cast<const Op*>(base)->weights_there)) {
    const KernelText* const image = image_of(depthwise_texts, text);
    if (named(image) != named(text) ? named(image) : choose_storage(base->ctx->gpu->about, 1).first == Storage::image)
      text = image;
  }
  return choose(
      base,
      {text, {group.local[0], group.local[1], group.local[2]}, {fused(c.activation).kind, c.residual, c.has_bias}},
      chosen);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const ConvConfig& c = static_cast<const Op*>(base)->config;
  Plan& p = *static_cast<Plan*>(out);
  const DirectShape& s = p.shape;
  ConvMap y;
  SKUA_TRY(conv_map(base, c, "output", 0, p.outputs[0], c.out_channels, y));
  p.out = steps_of(c, y);
  SKUA_TRY(need_small(base, &p));
  if (!s.batch || !s.out_h || !s.out_w) return SKUA_STATUS_OK;
  const bool residual = c.residual != SKUA_RESIDUAL_NONE;
  const Named small[] = {{"kernel", max(s.kernel_h, s.kernel_w)},
                         {"stride", max(s.stride_h, s.stride_w)},
                         {"dilation", max(s.dilation_h, s.dilation_w)},
                         {"padding", max(s.pad_top, s.pad_left)}};
  SKUA_TRY(need_pairs(base, small, 4));
  if (depthwise(c)) {
    p.algorithm = "depthwise";
    p.vectors = c.in_channels == c.out_channels && c.in_channels % 4 == 0 && fours(p.in) && fours(p.out) &&
                (!residual || fours(p.residual));
    SKUA_TRY(choose_depthwise(base, p.vectors, p.chosen));
    p.text = p.chosen.text;
    return SKUA_STATUS_OK;
  }
  Product& g = p.product;
  g.transposed = c.transposed;
  g.constant = true;
  g.bias = c.has_bias;
  g.texels = has_texels(static_cast<const Op*>(base)->weights_there);
  g.element = Element(c.element);
  g.half = c.numerics == SKUA_NUMERICS_FAST;
  g.q = static_cast<const Op*>(base)->q;
  g.k = depth_of(c);
  g.n = c.out_channels / c.groups;
  g.z = c.groups;
  g.residual = c.residual;
  g.activation = fused(c.activation);
  g.m = s.batch * s.out_h * s.out_w;
  const WinogradForm form =
      winograd_for(base->ctx, {s.batch, s.out_h, s.out_w, s.in_channels, s.out_channels}, c.packed);
  const bool named =
      form != WinogradForm::none && base->ctx->filter[0] && glob_match(base->ctx->filter, winograd_form_name(form));
  if (form != WinogradForm::none && !out->choice.skip()) {
    p.algorithm = winograd_form_name(form);
    p.layer = {s.batch, s.in_h, s.in_w, s.in_channels, s.out_h, s.out_w, s.out_channels, s.pad_top, s.pad_left,
               g.element, p.in, p.out, p.residual, c.residual, c.has_bias != 0,
               has_texels(static_cast<const Op*>(base)->winograd_there[int(form)]),
               g.activation};
    SKUA_TRY(make_winograd(base, form, p.layer, p.winograd));
    p.text = p.winograd.multiply.text;
    p.named = p.winograd.multiply.named;
    return SKUA_STATUS_OK;
  }
  if (named) return SKUA_UNSUPPORTED_("%s: the kernel filter leaves one candidate", base->cls->name);
  const bool one_tap = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && !s.pad_top &&
                       !s.pad_left && s.out_h == s.in_h && s.out_w == s.in_w;
  if (one_tap && c.groups == 1 && as_rows(p.in, s.batch, s.in_h, s.in_w) && as_rows(p.out, s.batch, s.out_h, s.out_w) &&
      (!residual || as_rows(p.residual, s.batch, s.out_h, s.out_w))) {
    p.algorithm = "pointwise";
    g.a_m = p.in.pixel; g.a_k = 1;
    g.b_k = columns_of(c); g.b_n = 1;
    g.c_m = p.out.pixel; g.r_m = p.residual.pixel;
    g.alpha = 1;
  } else {
    p.algorithm = c.transposed ? "transposed" : "taps";
    g.conv = true;
    g.batch = s.batch; g.out_w = s.out_w; g.out_h = s.out_h; g.in_w = s.in_w; g.in_h = s.in_h;
    g.kernel_h = s.kernel_h;
    g.kernel_w = s.kernel_w;
    g.stride_h = s.stride_h;
    g.stride_w = s.stride_w;
    g.dilation_h = s.dilation_h;
    g.dilation_w = s.dilation_w;
    g.pad_top = s.pad_top; g.pad_left = s.pad_left;
    g.a = p.in; g.c = p.out; g.r = p.residual;
  }
  SKUA_TRY(make_product(base, g, true, p.step, &out->choice));
  p.text = p.step.text;
  p.named = p.step.named;
  return SKUA_STATUS_OK;
}

skua_status record_depthwise(const RecordArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  const ConvConfig& c = op.config;
  const DirectShape& s = p.shape;
  const bool residual = c.residual != SKUA_RESIDUAL_NONE;
  const auto whole = [](const skua_device_buffer* b) { return Binding{b, 0, b->size, false}; };
  Launch l(args);
  const int32_t x = l.input(0);
  l.dispatch.bindings[l.dispatch.n_bindings++] = whole(op.weights_there);
  l.dispatch.bindings[l.dispatch.n_bindings++] = whole(op.bias_there ? op.bias_there : op.weights_there);
  const int32_t r = residual ? l.input(1) : 0;
  if (!residual) l.bind_again(bytes(c) ? 2 : 1);
  const int32_t y = l.output(0);
  bool vectors = p.vectors;
  Chosen chosen = p.chosen;
  if (vectors && (x | y | r) % 4) {
    vectors = false;
    SKUA_TRY(choose_depthwise(args.plan->op, false, chosen));  // rare: compiled now
  }
  l.dispatch.bindings[1].texels = chosen.text->by_texels;
  const int32_t v = vectors ? 4 : 1, channels = int32_t(c.out_channels) / v;
  l.add(channels); l.add(int32_t(c.out_channels / c.in_channels));
  l.add(int32_t(s.out_w)); l.add(int32_t(s.out_h)); l.add(int32_t(s.in_w)); l.add(int32_t(s.in_h));
  l.add(pair(s.kernel_h, s.kernel_w));
  l.add(pair(s.stride_h, s.stride_w));
  l.add(pair(s.dilation_h, s.dilation_w));
  l.add(pair(s.pad_top, s.pad_left));
  l.add(int32_t(columns_of(c)) / v);
  add_map(l, 0, x, p.in, v);
  add_map(l, 4, y, p.out, v);
  if (bytes(c)) {
    const Element e = Element(c.element);
    l.add(flip_of(e)); l.add(zero_of(e, op.q.a_zero));
    l.add_size(all_columns(c) / size_t(v));
    l.add(op.q.zero); l.add(bits_of(op.q.low)); l.add(bits_of(op.q.high));
  } else {
    add_map(l, 3, r, p.residual, v);
    l.add(bits_of(c.activation.a));
    l.add(bits_of(c.activation.b));
  }
  const bool block = strstr(chosen.text->options, "-DSTRIDE=");  // of 2 by 2 pixels
  return l.record(chosen, size_t(channels),
                  ceil_div(s.out_w, size_t(block     ? 2
                                           : vectors ? 4
                                                     : 1)),
                  (block ? ceil_div(s.out_h, size_t(2)) : s.out_h) * s.batch);
}

skua_status record(const RecordArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  const ProductStep& step = p.step;
  if (!step.text)
    return depthwise(op.config)
               ? record_depthwise(args)
               : record_winograd(args, p.layer, p.winograd, op.winograd_there[int(p.winograd.form)], op.bias_there);
  const bool residual = p.n_inputs > 1;
  const skua_buffer &a = args.inputs[0], &r = args.inputs[residual ? 1 : 0], &c = args.outputs[0];
  Binding bindings[6] = {{a.device, a.offset, p.input_spans[0].bytes, false},
                         {op.weights_there, 0, op.weights_there->size, false},
                         {},
                         {},
                         {c.device, c.offset, p.output_spans[0].bytes, true}};
  if (op.bias_there) bindings[2] = {op.bias_there, 0, op.bias_there->size, false};
  if (residual) bindings[step.bytes ? 5 : 3] = {r.device, r.offset, p.input_spans[1].bytes, false};
  if (step.bytes) bindings[3] = bindings[2];
  return record_product(&p, p.product, step,
                        {a.offset / step.element, 0, c.offset / step.result, residual ? r.offset / step.result : 0},
                        bindings, args.stream);
}

size_t workspace(const skua_plan* plan, uint32_t) { return plan_of(plan).winograd.workspace; }

void explain(const skua_plan* plan, Text& text) {
  const Plan& p = plan_of(plan);
  if (p.winograd.form != WinogradForm::none) explain_winograd(plan, p.winograd, text);
  else if (p.step.text) explain_product(plan, p.product, p.step, text);
  else if (p.chosen.text) {
    const ConvConfig& c = op_of(plan).config;
    const bool half = strstr(p.chosen.text->name, "_h4");
    text.add("  work-group %ux%ux%u; sums %s%s\n", p.chosen.local[0], p.chosen.local[1], p.chosen.local[2],
             bytes(c) ? "s32"
             : half   ? "f16"
                      : "f32",
             half ? ": numerics is FAST"
                  : why_f32_sums(plan->op, Element(c.element), c.numerics == SKUA_NUMERICS_FAST, p.vectors,
                                 ": more than 64 taps"));
  }
  if (p.chosen.text && p.chosen.text->has_texels)
    explain_storage(plan, *p.chosen.text, has_texels(op_of(plan).weights_there), text);
}

const OpClass conv2d_class = {
    .name = "conv2d", .id = 81,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(ConvConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace,
    .explain = explain, .record = record, .close = close,
};
const OpClass conv2d_transpose_class = {
    .name = "conv2d_transpose", .id = 82,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(ConvConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace,
    .explain = explain, .record = record, .close = close,
};

}  // namespace

skua_status create_conv(const skua_context* ctx, const ConvConfig& given, skua_dtype weight_type,
                        skua_weight_layout layout, const void* weights, const void* bias, size_t hint_h, size_t hint_w,
                        skua_op** out) {
  const OpClass& cls = given.transposed ? conv2d_transpose_class : conv2d_class;
  SKUA_TRY(need_gpu_type(ctx, cls.name, "input_type", skua_dtype(given.element)));
  if (!weights) return SKUA_INVALID("%s: weights is NULL", cls.name);
  if (given.numerics == SKUA_NUMERICS_STRICT && weight_type != skua_dtype(given.element))
    return SKUA_UNSUPPORTED_("%s: numerics is STRICT and weight_type %s, must be input_type, %s, on a GPU", cls.name,
                             skua_dtype_name(weight_type), skua_dtype_name(skua_dtype(given.element)));
  ConvConfig c = given;
  c.has_bias = bias != nullptr;
  const Element e = Element(c.element), type = Element(weight_type);
  WeightSteps steps = {};
  size_t n = 0, size = 0;
  // Transformed weights for the size that was hinted at, or a large map, of one image, or of many where one goes
  // directly; direct ones serve others.
  c.packed = 0;
  const uint32_t allowed = winograd_allowed(c);
  WinogradForm form = WinogradForm::none;
  constexpr size_t numbers[] = {1, 16};
  for (const size_t images : numbers)
    if (allowed && form == WinogradForm::none)
      form = winograd_for(ctx, {images, hint_h ? hint_h : 56, hint_w ? hint_w : 56, c.in_channels, c.out_channels},
                          allowed);
  bool ok = conv_weight_steps(c, layout, steps) && weights_of(c, n) && weights_bytes(bias_of(c), e, n, size);
  if (ok && form != WinogradForm::none) {
    c.packed = 1u << int(form);
    ok = add(size, mul_sat(winograd_weights(form, c.in_channels, c.out_channels), sizeof(float)), size);
  }
  if (!ok) return SKUA_INVALID("%s: the weights are larger than the address space", cls.name);
  skua_op* base;
  SKUA_TRY(new_op(cls, ctx, 0, 1, size, &base));
  memcpy(&static_cast<Op*>(base)->config, &c, sizeof c);
  auto* to = static_cast<char*>(op_weights(base));
  memset(to, 0, size);
  const size_t columns = columns_of(c), group = c.out_channels / groups_of(c), in = element_bytes(type);
  for (size_t g = 0; bias && g < groups_of(c); ++g)
    memcpy(to + g * columns * sizeof(float), static_cast<const float*>(bias) + g * group, group * sizeof(float));
  to += bias_bytes(bias_of(c));
  for (size_t g = 0; g < groups_of(c); ++g)
    for (size_t ky = 0; ky < c.kernel_h; ++ky)
      for (size_t kx = 0; kx < c.kernel_w; ++kx)
        for (size_t k = 0; k < depth_of(c); ++k, to += columns * element_bytes(e))
          pack_row(group,
                   static_cast<const char*>(weights) +
                       (g * group * steps.o + k * steps.i + ky * steps.y + kx * steps.x) * in,
                   steps.o, type, to, e);
  if (form != WinogradForm::none)
    winograd_transform_weights(form, c.in_channels, c.out_channels, {weights, type, steps.o, steps.i, steps.y, steps.x},
                               reinterpret_cast<float*>(static_cast<char*>(op_weights(base)) + bias_bytes(bias_of(c)) +
                                                        round_up(n * element_bytes(e), 16)));
  return open_op(base, out);
}

skua_status create_conv_bytes(const skua_context* ctx, const ConvConfig& given, skua_dtype result,
                              const Requantize& bounds, const ConvQuantization& q, const WeightSteps& steps,
                              const void* weights, const void* bias, skua_op** out) {
  constexpr uint64_t kMaxDepth = 65536;  // sums of more terms could pass 2^31
  const OpClass& cls = given.transposed ? conv2d_transpose_class : conv2d_class;
  if (!weights) return SKUA_INVALID("%s: weights is NULL", cls.name);
  ConvConfig c = given;
  c.has_bias = bias != nullptr;
  const size_t depth = c.in_channels / c.groups, group = c.out_channels / groups_of(c), columns = columns_of(c),
               words = round_up(depth, 4);
  if (uint64_t(c.kernel_h) * c.kernel_w * depth > kMaxDepth)
    return SKUA_UNSUPPORTED_("%s: %llu products for an output, sums of more than %llu could pass 32 bits", cls.name,
                             (unsigned long long)(uint64_t(c.kernel_h) * c.kernel_w * depth),
                             (unsigned long long)kMaxDepth);
  size_t n = 0, size = 0;
  if (!weights_of(c, n) || !weights_bytes(bias_of(c), Element::s8, n, size))
    return SKUA_INVALID("%s: the weights are larger than the address space", cls.name);
  skua_op* base;
  SKUA_TRY(new_op(cls, ctx, 0, 1, size, &base));
  Op& op = *static_cast<Op*>(base);
  memcpy(&op.config, &c, sizeof c);
  const uint32_t rounding = uint32_t(q.requantization.rounding);
  op.q = {Element(result), Element::s8, q.input.zero_point, 0, bounds.zero_point, bounds.low, bounds.high, 0,
          false,           q.residual,  rounding,           {}};
  auto* start = static_cast<int32_t*>(op_weights(base));
  memset(start, 0, size);
  const int32_t end[] = {bounds.zero_point, bits_of(bounds.low), bits_of(bounds.high), r_zero_of(op.q),
                         bits_of(q.residual.scale)};
  memcpy(start + 3 * all_columns(c), end, sizeof end);
  auto* to = reinterpret_cast<int8_t*>(start) + bias_bytes(bias_of(c));
  const auto* from = static_cast<const int8_t*>(weights);
  const uint32_t zero = uint32_t(zero_of(Element(c.element), q.input.zero_point));
  for (size_t g = 0; g < groups_of(c); ++g)
    for (size_t o = 0; o < group; ++o) {
      const size_t channel = g * group + o, at = g * columns + o;
      const int8_t* taps = from + channel * steps.o;
      uint32_t sum = bias ? uint32_t(static_cast<const int32_t*>(bias)[channel]) : 0;
      for (size_t tap = 0; tap < size_t(c.kernel_h) * c.kernel_w; ++tap) {
        const int8_t* w = taps + tap / c.kernel_w * steps.y + tap % c.kernel_w * steps.x;
        if (depthwise(c)) to[tap * columns + o] = *w;  // its kernel subtracts the zero point
        else
          sum -= zero * uint32_t(pack_column(depth, w, steps.i, Element::s8, 0, columns, o,
                                             to + (g * c.kernel_h * c.kernel_w + tap) * words * columns));
      }
      start[at] = int32_t(sum);
      set_scale(start, all_columns(c), at, rounding, sum_scale(q.input, q.weight, channel, Element(result), q.output),
                rounding == SKUA_ROUNDING_FLOAT
                    ? FixedScale{}
                    : sum_scale_fixed(q.input, q.weight, channel, q.output, q.requantization));
    }
  return open_op(base, out);
}

}  // namespace skua::gpu
