// The convolution operators: choice of the algorithm, run. See conv.h.
#include "conv/conv.h"

#include <math.h>

namespace skua {
namespace {

const ConvOp& op_of(const skua_plan* plan) { return *static_cast<const ConvOp*>(plan->op); }
const ConvPlan& plan_of(const skua_plan* plan) { return *static_cast<const ConvPlan*>(plan); }

void use_map(const ConvConfig& c, const ConvMap& m, size_t channels, size_t& batch, size_t& row, size_t& pixel, size_t& image, size_t& plane, size_t& line) {
  if (c.layout == SKUA_LAYOUT_NHWC) {
    batch = m.image; row = m.row; pixel = m.pixel;
    return;
  }
  image = m.image; plane = m.plane; line = m.row;  // of the caller's; converted maps are dense, channels rounded up for whole vectors
  pixel = round_up(channels, 16); row = pixel * m.w; batch = row * m.h;
}

// ---- choice --------------------------------------------------------------------------------------------------------------------
const char* not_winograd(const ConvConfig& c, uint32_t algorithm) {
  if (algorithm == kWinogradF4x4_5x5) return "it is for bytes";
  if (const char* why = no_winograd_window(c, winograd_variant(algorithm))) return why;
  if (c.numerics == SKUA_NUMERICS_STRICT) return "numerics is STRICT";
  if (c.winograd_element != uint32_t(Element::f32)) {
    if (algorithm == kWinogradF6x6) return "it is not computed in f16";
    if (!winograd_half_by_default(winograd_variant(algorithm)) && c.numerics != SKUA_NUMERICS_FAST) return "its error in f16 needs numerics FAST";
  }
  if (c.in_channels < winograd_least_channels(winograd_variant(algorithm), map_element(c)) && c.numerics != SKUA_NUMERICS_FAST) return "its error at this depth needs numerics FAST";
  return nullptr;
}
const char* not_depthwise(const ConvConfig& c) {
  if (c.transposed) return "the convolution is transposed";
  if (c.groups != c.in_channels || c.groups == 1) return "groups is not in_channels";
  return nullptr;
}

const char* not_grouped(const ConvConfig& c) {
  if (c.transposed) return "the convolution is transposed";
  if (c.groups == 1 || c.groups == c.in_channels || c.in_channels != c.out_channels) return "there are no groups of as many inputs as outputs, two or more";
  return c.depthwise.vector ? nullptr : "no kernel holds whole groups in whole vectors";
}

const char* not_applicable(const ConvConfig& c, uint32_t a) {
  return a == kDirect ? nullptr : a == kDepthwise ? not_depthwise(c) : a == kGrouped ? not_grouped(c) : not_winograd(c, a);
}

}  // namespace

const char* no_winograd_window(const ConvConfig& c, WinogradVariant variant) {
  if (c.transposed) return "the convolution is transposed";
  const uint32_t taps = uint32_t(winograd_taps(variant));
  if (c.kernel_h != taps || c.kernel_w != taps) return taps == 3 ? "the kernel is not 3x3" : "the kernel is not 5x5";
  const uint32_t stride = uint32_t(winograd_stride(variant));
  if (c.stride_h != stride || c.stride_w != stride) return stride == 1 ? "the stride is not 1" : "the stride is not 2";
  return c.groups != 1 ? "there are groups" : nullptr;
}

const char* conv_algorithm_name(uint32_t a) {
  if (a == kDirect) return "direct";
  if (a == kDepthwise) return "depthwise";
  if (a == kGrouped) return "grouped";
  return winograd_name(winograd_variant(a));
}

WinogradShape winograd_shape(const DirectShape& s) {
  return {s.batch, s.in_h, s.in_w, s.in_channels, s.out_h, s.out_w, s.out_channels, s.pad_top, s.pad_left, s.dilation_h, s.dilation_w, s.in_row, s.in_pixel, s.in_batch, s.out_row, s.out_pixel,
          s.out_batch, s.res_row, s.res_pixel, s.res_batch, s.element, s.result, 0};
}

bool conv_applies(const ConvConfig& c, uint32_t algorithm) { return !not_applicable(c, algorithm); }

static skua_status choose(const skua_op* op, const ConvConfig& c, uint32_t packed, ConvPlan& p, Text* text, bool forced) {
  const DirectShape& s = p.shape;
  const skua_context* ctx = op->ctx;
  bool any = false;
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    const char* name = conv_algorithm_name(a);
    const char* why = not_applicable(c, a);
    if (!why && !(packed >> a & 1)) why = "the weights were not packed for it";
    if (!why && forced && !glob_match(ctx->filter, name)) why = "the kernel filter asks for another";
    double cycles = 0;
    DirectPlan direct = {};
    WinogradPlan winograd = {};
    WinogradShape ws = {};
    DepthwiseShape ds = {};
    const Kernel* kernel = nullptr;
    if (!why && a == kDirect) {
      kernel = direct_tile(ctx, s, &c.format, nullptr, &p.choice);
      if (!kernel) why = "no kernel for its panel format";
      else {
        SKUA_TRY(direct_plan(op, s, kernel, has_function(c.activation), direct));
        cycles = direct.cycles;
        name = direct.name;
      }
    } else if (!why && (a == kDepthwise || a == kGrouped)) {
      ds = {s.batch, s.in_h, s.in_w, s.in_channels, s.out_channels / s.in_channels, s.out_h, s.out_w, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
            s.pad_top, s.pad_left, s.in_row, s.in_pixel, s.in_batch, s.out_row, s.out_pixel, s.out_batch, s.res_row, s.res_pixel, s.res_batch};
      if (a == kGrouped) ds.group = s.in_channels / s.groups;
      kernel = depthwise_choose(ctx, ds, c.depthwise, nullptr, &p.choice);
      if (!kernel) why = a == kGrouped ? "no kernel for this window or an image this small" : "no kernel for its packed format";
      else cycles = depthwise_cycles(kernel, ds);
    } else if (!why) {
      ws = winograd_shape(s);
      if (!winograd_plan(ctx, winograd_variant(a), ws, winograd_format(c), &winograd, &p.choice)) why = "no kernel for its panel format, or too large";
      else {
        cycles = winograd_cycles(winograd, ws);
        kernel = winograd.tile;
      }
    }
    if (text) {
      if (why) text->add("    %s: turned down, %s\n", name, why);
      else text->add("    %s with %s: %.0f cycles predicted\n", name, kernel->name, cycles);
    }
    if (why || (any && cycles >= p.cycles)) continue;
    any = true;
    p.chosen = a;
    p.cycles = cycles;
    p.algorithm = name;
    p.kernel = kernel;
    p.direct = direct;
    p.depthwise = ds;
    p.winograd = winograd;
    p.winograd_shape = ws;
  }
  if (any) return SKUA_STATUS_OK;
  if (forced && !p.choice.seen) return choose(op, c, packed, p, text, false);  // not this shape
  return SKUA_UNSUPPORTED_("%s: no kernel in this build%s%s", op->cls->name, ctx->filter[0] ? ", under the kernel filter " : "", ctx->filter);
}

skua_status conv_choose(const skua_op* op, const ConvConfig& c, uint32_t packed, ConvPlan& p, Text* text) {
  const char* filter = op->ctx->filter;
  bool forced = false;  // the filter names an algorithm that can serve this convolution
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) forced |= filter[0] && (packed >> a & 1) && !not_applicable(c, a) && glob_match(filter, conv_algorithm_name(a));
  return choose(op, c, packed, p, text, forced);
}

namespace {

skua_status open(skua_op* base) {
  ConvOp& op = *static_cast<ConvOp*>(base);
  const ConvConfig& c = op.config;
  const char* name = op.cls->name;
  size_t offset[kConvAlgorithms], floats = 0;
  const bool sane = c.kernel_h && c.kernel_w && c.stride_h && c.stride_w && c.dilation_h && c.dilation_w && c.groups && c.in_channels && c.out_channels && c.in_channels % c.groups == 0 &&
                    c.out_channels % c.groups == 0 && c.residual <= SKUA_RESIDUAL_AFTER_ACTIVATION && c.numerics <= SKUA_NUMERICS_FAST && c.layout <= SKUA_LAYOUT_NCHW &&
                    c.padding_mode <= SKUA_PADDING_SAME_LOWER && c.element <= uint8_t(Element::bf16) && (!c.weights || c.weights == c.element) && (!c.winograd_element || (c.winograd_element == uint32_t(Element::f16) && map_element(c) == Element::f16)) && c.packed && !(c.packed >> kConvAlgorithms) && bool(c.transposed) == !strcmp(name, "conv2d_transpose") &&
                    (!c.transposed || (uint64_t(c.stride_h) * c.stride_w <= 4096 && c.output_padding_h < c.stride_h && c.output_padding_w < c.stride_w));
  if (!sane || !conv_layout(c, offset, floats) || floats * sizeof(float) != op.weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed description is inconsistent", name);
  SKUA_TRY(need_float(name, "input_type", skua_dtype(c.element)));
  SKUA_TRY(check_activation(name, c.activation));
  const auto* w = static_cast<const float*>(op.weights);
  op.bias = c.has_bias ? w : nullptr;
  bool usable = false;
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    if (!(c.packed >> a & 1)) continue;
    op.weights_of[a] = w + offset[a];
    if (a == kDepthwise || a == kGrouped) {
      DepthwiseShape s = {1, 8, 8, c.in_channels, c.out_channels / c.in_channels, 8, 8, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w, c.dilation_h, c.dilation_w, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      if (a == kGrouped) s.group = c.in_channels / c.groups;
      usable |= !not_applicable(c, a) && c.depthwise.element == map_element(c) && depthwise_choose(op.ctx, s, c.depthwise, nullptr);
    } else {
      DirectShape s = {};
      s.batch = 1; s.in_h = s.in_w = s.out_h = s.out_w = 8;
      s.in_channels = c.in_channels; s.out_channels = c.out_channels; s.groups = c.groups;
      s.kernel_h = c.kernel_h; s.kernel_w = c.kernel_w; s.stride_h = c.stride_h; s.stride_w = c.stride_w; s.dilation_h = s.dilation_w = 1;
      s.element = s.result = map_element(c); s.weights = Element(c.weights); s.numerics = skua_numerics(c.numerics);
      const WinogradShape ws = winograd_shape(s);
      WinogradPlan winograd;
      s.dilation_w = c.dilation_w;
      s.transposed = c.transposed;
      usable |= a == kDirect ? choose_tile(op.ctx, 1, 1, 1, &c.format, nullptr, nullptr, direct_types(s)) != nullptr
                             : !not_winograd(c, a) && winograd_plan(op.ctx, winograd_variant(a), ws, winograd_format(c), &winograd);
    }
  }
  if (!usable)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: weights are packed as %s for panels of %u columns and vectors of %u, %u of the depth together; this context (%s) has no such kernel", name,
                skua_dtype_name(skua_dtype(c.format.element)), c.format.nr, c.format.vector, c.format.kr, skua_context_isa(op.ctx));
  op.n_inputs = 1 + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  SKUA_TRY(resolve_activation(&op, c.activation, op.activation));
  return c.packed & (1u << kDepthwise | 1u << kGrouped) ? resolve_activation(&op, c.activation, op.map_activation, map_element(c)) : SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  const ConvConfig& c = static_cast<const ConvOp*>(base)->config;
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  DirectShape& s = p.shape;
  ConvMap in;
  SKUA_TRY(conv_plan_shapes(base, c, shapes, skua_dtype(c.element), in, s, p.outputs[0]));
  use_map(c, in, c.in_channels, s.in_batch, s.in_row, s.in_pixel, p.in_image, p.in_plane, p.in_line);
  if (c.residual != SKUA_RESIDUAL_NONE) {
    SKUA_TRY(need_type(base, shapes, 1, skua_dtype(c.element)));
    SKUA_TRY(need_same_shape(base, shapes, 1, p.outputs[0]));
    ConvMap r = {};
    SKUA_TRY(conv_map(base, c, "input", 1, shapes.inputs[1], c.out_channels, r));
    use_map(c, r, c.out_channels, s.res_batch, s.res_row, s.res_pixel, p.res_image, p.res_plane, p.res_line);
  }
  return SKUA_STATUS_OK;
}

DirectOperands operands(const ConvOp& op) { return {op.weights_of[kDirect], op.bias, &op.activation, skua_residual(op.config.residual), nullptr, nullptr, nullptr, nullptr}; }

skua_status finish(const skua_op* base, skua_plan* out) {
  const ConvConfig& c = static_cast<const ConvOp*>(base)->config;
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  DirectShape& s = p.shape;
  ConvMap m = {};
  SKUA_TRY(conv_map(base, c, "output", 0, p.outputs[0], c.out_channels, m));
  use_map(c, m, c.out_channels, s.out_batch, s.out_row, s.out_pixel, p.out_image, p.out_plane, p.out_line);
  if (c.layout == SKUA_LAYOUT_NCHW) {
    size_t total = 0;
    bool ok = mul(s.batch, s.in_batch, p.in_floats) && mul(s.batch, s.out_batch, p.out_floats) && add(p.in_floats, p.out_floats, total) && add(total, p.out_floats, total) && total <= SIZE_MAX / 16;
    if (!ok) return SKUA_INVALID("%s: the feature maps are larger than the address space", base->cls->name);
    if (c.residual != SKUA_RESIDUAL_NONE) p.res_floats = p.out_floats;
  }
  SKUA_TRY(conv_choose(base, c, c.packed, p, nullptr));
  p.named = base->ctx->filter[0] && glob_match(base->ctx->filter, conv_algorithm_name(p.chosen));
  if (c.layout == SKUA_LAYOUT_NHWC && p.chosen == kDirect) pointwise_row(p.direct, s, operands(*static_cast<const ConvOp*>(base)), p.row);
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const ConvPlan& p = plan_of(plan);
  const size_t maps = (p.in_floats + p.res_floats + p.out_floats) * sizeof(float);
  switch (p.chosen) {
    case kDirect: return add_sat(maps, direct_workspace(p.direct, concurrency));
    case kDepthwise: case kGrouped: return add_sat(maps, depthwise_workspace(p.depthwise, p.kernel, concurrency));
    default: return add_sat(maps, winograd_workspace(p.winograd, p.winograd_shape, concurrency));
  }
}

// ---- NCHW ----------------------------------------------------------------------------------------------------------------------
// One line (image, y): [channels][w] of any type <-> [w][channels rounded up to 16] of f32.
struct Convert {
  const void* from;
  void* to;
  Element element;              // of the NCHW side
  size_t h, w, channels;
  size_t image, plane, line;    // NCHW strides
  size_t batch, row, pixel;     // NHWC strides
  const Kernel* kernel;         // gemm_pack; gemm_rows on the way out of f32
};

void to_nhwc_task(void* arg, size_t index, uint32_t) {
  const Convert& c = *static_cast<const Convert*>(arg);
  const size_t n = index / c.h, y = index % c.h;
  note_use(c.kernel);
  code_of<GemmPackFn>(c.kernel)(c.w, c.channels, c.pixel, at(c.from, c.element, ptrdiff_t(n * c.image + y * c.line)), 1, c.plane, static_cast<float*>(c.to) + n * c.batch + y * c.row);
}

void to_nchw_task(void* arg, size_t index, uint32_t) {
  const Convert& c = *static_cast<const Convert*>(arg);
  const size_t n = index / c.h, y = index % c.h;
  const float* from = static_cast<const float*>(c.from) + n * c.batch + y * c.row;
  void* const line = at(c.to, c.element, ptrdiff_t(n * c.image + y * c.line));
  if (c.element != Element::f32) {
    constexpr size_t wide = 64;
    float block[16 * wide];
    void* rows[16];
    note_use(c.kernel);
    for (size_t x0 = 0; x0 < c.w; x0 += wide)
      for (size_t k0 = 0; k0 < c.channels; k0 += 16) {
        const size_t count = min(c.channels - k0, 16), width = min(c.w - x0, wide);
        for (size_t k = 0; k < count; ++k) {
          rows[k] = at(line, c.element, ptrdiff_t((k0 + k) * c.plane + x0));
          for (size_t x = 0; x < width; ++x) block[k * wide + x] = from[(x0 + x) * c.pixel + k0 + k];
        }
        code_of<GemmRowTableFn>(c.kernel)().finish({count, width, block, wide, rows, nullptr, false, 0, -INFINITY, INFINITY});
      }
    return;
  }
  auto* to = static_cast<float*>(line);
  for (size_t x0 = 0; x0 < c.w; x0 += 16)  // blocks of 16x16 so that the lines of both sides stay in L1
    for (size_t k0 = 0; k0 < c.channels; k0 += 16)
      for (size_t k = k0; k < min(k0 + 16, c.channels); ++k)
        for (size_t x = x0; x < min(x0 + 16, c.w); ++x) to[k * c.plane + x] = from[x * c.pixel + k];
}

void run(const RunArgs& args) {
  const ConvPlan& p = plan_of(args.plan);
  const ConvOp& op = op_of(args.plan);
  const DirectShape& s = p.shape;
  if (!s.batch || !s.out_h || !s.out_w) return;
  const bool residual = op.config.residual != SKUA_RESIDUAL_NONE;
  if (p.row.run && (args.concurrency() == 1 || p.cycles < kAlone)) return run_only(p.row, p.kernel, args.in<void>(0), args.out<void>(0), residual ? args.in<void>(1) : nullptr);
  const void* in = args.in<char>(0);
  const void* res = residual ? args.in<char>(1) : nullptr;
  void* out = args.out<char>(0);
  auto* space = static_cast<float*>(args.workspace);
  const bool nchw = op.config.layout == SKUA_LAYOUT_NCHW;
  if (nchw) {
    const auto element = Element(op.config.element);
    const Kernel* pack = find_pack(op.ctx, element, Element::f32);
    Convert c = {in, space, element, s.in_h, s.in_w, s.in_channels, p.in_image, p.in_plane, p.in_line, s.in_batch, s.in_row, s.in_pixel, pack};
    in = space;
    parallel(args, s.batch * s.in_h, to_nhwc_task, &c);
    space += p.in_floats;
    if (residual) {
      c = {res, space, element, s.out_h, s.out_w, s.out_channels, p.res_image, p.res_plane, p.res_line, s.res_batch, s.res_row, s.res_pixel, pack};
      res = space;
      parallel(args, s.batch * s.out_h, to_nhwc_task, &c);
      space += p.res_floats;
    }
    out = space;
    space += p.out_floats;
  }
  const auto mode = skua_residual(op.config.residual);
  switch (p.chosen) {
    case kDirect: direct_run(args, p.direct, s, {op.weights_of[kDirect], op.bias, &op.activation, mode, in, res, out, space}); break;
    case kDepthwise: case kGrouped:
      depthwise_run(args, p.depthwise, p.kernel, op.weights_of[p.chosen], op.map_activation, mode, in, res, out, space);
      break;
    default: winograd_run(args, p.winograd, p.winograd_shape, op.weights_of[p.chosen], op.bias, op.activation, mode, in, res, out, space); break;
  }
  if (nchw) {
    const auto element = Element(op.config.element);
    const Kernel* rows = element == Element::f32 ? nullptr : find_kernel(op.ctx, gemm_tables, KernelKind::gemm_rows, 0, element);
    Convert c = {out, args.out<char>(0), element, s.out_h, s.out_w, s.out_channels, p.out_image, p.out_plane, p.out_line, s.out_batch, s.out_row, s.out_pixel, rows};
    parallel(args, s.batch * s.out_h, to_nchw_task, &c);
  }
}

void explain(const skua_plan* plan, Text& text) {
  const ConvPlan& p = plan_of(plan);
  const ConvOp& op = op_of(plan);
  const DirectShape& s = p.shape;
  const Machine m = machine_for(p.kernel->isa);
  const double flops = 2.0 * double(s.batch * s.out_h * s.out_w) * double(s.out_channels) * double(s.in_channels / s.groups) * double(s.kernel_h) * double(s.kernel_w);
  text.add("  input %zux%zux%zu, kernel %ux%u, stride %ux%u, dilation %ux%u, groups %zu, padding %zu top, %zu left\n", s.in_h, s.in_w, s.in_channels, s.kernel_h, s.kernel_w, s.stride_h,
           s.stride_w, s.dilation_h, s.dilation_w, s.groups, s.pad_top, s.pad_left);
  if (p.chosen == kDirect) text.add("  bands of %zu output rows, %zu regions, strips %zu bytes, tile %ux%u\n", p.direct.band, p.direct.regions, p.direct.strip, p.kernel->mr, p.kernel->nr);
  if (p.cycles > 0) text.add("  predicted %.1f direct flops per cycle, roofline of the multiply-adds %.1f\n", flops / p.cycles, 2 * m.fma_ports * p.kernel->vector * (p.chosen == kDirect ? double(table_of(p.kernel).rate) : 1));
  if (p.chosen == kDirect && !p.direct.row) explain_cores(p.direct.tiles, text);
  if (p.chosen == kDepthwise) explain_cores(depthwise_on_cores(op.ctx, p.kernel), text);
  if (p.chosen >= kWinogradF2x2) text.add("  %zu tiles, %zu at a time\n", p.winograd.tiles, p.winograd.block);
  if (p.chosen >= kWinogradF2x2) explain_cores(p.winograd.on_cores, text);
  if (p.chosen == kDirect) explain_types(p.kernel, s.numerics, "weights packed", text);
  else {
    const bool depthwise = p.chosen == kDepthwise || p.chosen == kGrouped, half = (depthwise ? op.config.depthwise.weights : p.winograd.element) != Element::f32;
    text.add("  weights packed as %s; sums %s\n", half ? "f16" : "f32", !half ? "f32" : depthwise ? "f16" : "f16, 64 terms at a time, then f32");
  }
  text.add("  candidates:\n");
  ConvPlan again = p;
  again.choice = {};
  conv_choose(&op, op.config, op.config.packed, again, &text);
}

}  // namespace

extern const OpClass conv2d_class, conv2d_transpose_class, inverted_residual_part_class;
const OpClass conv2d_class = {"conv2d", 3, sizeof(ConvOp), sizeof(ConvPlan), offsetof(ConvOp, config), sizeof(ConvConfig), false, open, make_plan, finish, workspace, run, explain, conv_remake};
const OpClass conv2d_transpose_class = {"conv2d_transpose", 4, sizeof(ConvOp), sizeof(ConvPlan), offsetof(ConvOp, config), sizeof(ConvConfig), false, open, make_plan, finish, workspace, run, explain};
const OpClass inverted_residual_part_class = {"inverted_residual", 0, sizeof(ConvOp), sizeof(ConvPlan), offsetof(ConvOp, config), sizeof(ConvConfig), false, open, make_plan, finish, workspace, run, explain};

}  // namespace skua
