// Convolutions of 8-bit integers: conv2d and conv2d_transpose where the input is s8 or u8. Exact sums in s32, one
// rounding to the result; see docs/quantization.md for the formula.
// The direct form: as one product (1x1), over regions that are read in place, or over gathered rows; and of 3x3 and 5x5
// Winograd's algorithm, which is exact too (winograd/int8_kernels.cc), where the weights allow and its products of 16
// bits are at least half as fast as direct ones. create.cc sends descriptors here.
//
//   weights block   [bias s32][scales f32; in fixed point multipliers and shifts][of one tap: offsets]
//                   [sums of the weights under each tap s32] vectors of direct_bias_floats(),
//                   [panels: phase by phase, group by group][Winograd's weights], those that ConvConfig::packed says
//
// A region's sums start at bias - zero point * (sums of its live taps): padding is neither copied nor multiplied. Of
// one tap these offsets are packed.
#include "conv/planar.h"
#include "conv/regions.h"

namespace skua {
namespace {

struct Int8Config {
  ConvConfig conv;
  int32_t in_zero, out_zero;
  float low, high;  // clamp of the scaled sums, before out_zero is added
  uint32_t result;  // Element
  uint32_t rounding;  // skua_rounding
  QuantizedResidual residual;
};

struct Int8Op : skua_op {
  Int8Config config;
  Activation clamp;
  DirectQuantized quantized;
  const float *panels, *winograd;  // NULL where they are not packed
};

struct Int8Plan : skua_plan {
  DirectShape shape;
  bool by_winograd;
  DirectPlan direct;
  WinogradShape winograd_shape;
  WinogradPlan winograd;
  PlanarMaps planar;
  OnlyRow row;  // of one pixel in NHWC
};

const Int8Op& op_of(const skua_plan* plan) { return *static_cast<const Int8Op*>(plan->op); }
const Int8Plan& plan_of(const skua_plan* plan) { return *static_cast<const Int8Plan*>(plan); }

// Sums of more terms could pass 2^31.
constexpr uint64_t kMaxDepth = 65536;

uint64_t taps_of(const ConvConfig& c) { return uint64_t(c.kernel_h) * c.kernel_w; }

constexpr uint32_t kInt8Algorithms = 1u << kDirect | 1u << kWinogradF2x2 | 1u << kWinogradF4x2 | 1u << kWinogradF4x4 |
                                     1u << kWinogradF4x4_5x5 | 1u << kWinogradF3x3S2;

size_t scale_vectors(uint32_t rounding) { return rounding != SKUA_ROUNDING_FLOAT ? 3 : 2; }
// before the sums of taps
size_t column_vectors(const ConvConfig& c, uint32_t rounding) { return scale_vectors(rounding) + (taps_of(c) == 1); }

// The variant that is packed; kConvAlgorithms = none.
uint32_t packed_winograd(const ConvConfig& c) {
  uint32_t a = kWinogradF2x2;
  while (a < kConvAlgorithms && !(c.packed >> a & 1)) ++a;
  return a;
}
bool is_packed(const ConvConfig& c, uint32_t algorithm) { return c.packed >> algorithm & 1; }

struct Sizes {
  size_t vector;            // values of a vector
  size_t panels, winograd;  // bytes
  size_t total;
  size_t panels_at() const { return (total - winograd - panels) / sizeof(float); }  // floats
};
bool sizes_of(const skua_op* op, const Int8Config& config, Sizes& z) {
  const ConvConfig& c = config.conv;
  // An image that every window and padding leaves an output of: the taps of a phase do not depend on its size.
  const auto extent = [&](uint32_t kernel, uint32_t dilation, uint32_t before, uint32_t after) {
    size_t span = 0;
    if (!mul(size_t(kernel) - 1, dilation, span)) return SIZE_MAX;
    return add_sat(add_sat(span, size_t(before) + 8), after);
  };
  DirectShape s;
  const size_t h = extent(c.kernel_h, c.dilation_h, c.pad_top, c.pad_bottom),
               w = extent(c.kernel_w, c.dilation_w, c.pad_left, c.pad_right);
  if (h == SIZE_MAX || w == SIZE_MAX || conv_shape(op, c, 1, h, w, s) != SKUA_STATUS_OK) return false;
  z.vector = direct_bias_floats(c.out_channels, c.groups);
  size_t vectors = 0;
  if (!mul(size_t(taps_of(c)) + column_vectors(c, config.rounding), z.vector, vectors) || !mul(vectors, 4, vectors))
    return false;
  z.panels = z.winograd = 0;
  for (size_t i = 0; is_packed(c, kDirect) && i < phase_count(s); ++i) {
    size_t bytes = 0;
    const size_t depth = phase_at(s, i).packed_depth(s, c.format);
    if (!packed_bytes(c.format, c.out_channels / c.groups, depth, bytes) || !mul(round_up(bytes, 4), c.groups, bytes) ||
        !add(z.panels, bytes, z.panels))
      return false;
  }
  z.panels = round_up(z.panels, 64);
  if (const uint32_t a = packed_winograd(c); a < kConvAlgorithms) {
    size_t floats = 0;
    if (c.winograd_vector > UINT16_MAX ||
        !winograd_packed_floats(winograd_variant(a), c.in_channels, c.out_channels, winograd_format(c), floats))
      return false;
    z.winograd = round_up(floats * sizeof(float), 64);
  }
  return add(round_up(vectors, 64), z.panels, z.total) && add(z.total, z.winograd, z.total) && z.total <= SIZE_MAX / 2;
}

skua_status open(skua_op* base) {
  Int8Op& op = *static_cast<Int8Op*>(base);
  const ConvConfig& c = op.config.conv;
  const char* name = op.cls->name;
  const auto result = Element(op.config.result);
  // a blob may hold any number
  const bool eight = op.config.result == uint32_t(Element::s8) || op.config.result == uint32_t(Element::u8);
  const bool sane =
      c.kernel_h && c.kernel_w && c.stride_h && c.stride_w && c.dilation_h && c.dilation_w && c.groups &&
      c.in_channels && c.out_channels && c.in_channels % c.groups == 0 && c.out_channels % c.groups == 0 &&
      c.padding_mode <= SKUA_PADDING_SAME_LOWER && c.layout <= SKUA_LAYOUT_NCHW &&
      (c.element == uint8_t(Element::s8) || c.element == uint8_t(Element::u8)) &&
      (eight || op.config.result <= uint32_t(Element::bf16)) && taps_of(c) * (c.in_channels / c.groups) <= kMaxDepth &&
      c.format.vector && c.format.nr && c.format.kr &&
      (!c.transposed || (uint64_t(c.stride_h) * c.stride_w <= 4096 && c.output_padding_h < c.stride_h &&
                         c.output_padding_w < c.stride_w)) &&
      op.config.low <= op.config.high && op.config.rounding <= SKUA_ROUNDING_SINGLE &&
      c.residual <= SKUA_RESIDUAL_AFTER_ACTIVATION &&
      (eight || (c.residual == SKUA_RESIDUAL_NONE && op.config.rounding == SKUA_ROUNDING_FLOAT)) && c.packed &&
      !(c.packed & ~kInt8Algorithms) &&
      (packed_winograd(c) == kConvAlgorithms || (!no_winograd_window(c, winograd_variant(packed_winograd(c))) &&
                                                 c.winograd_element == uint32_t(Element::s16))) &&
      zero_point_fits(Element(c.element), op.config.in_zero) && (!eight || zero_point_fits(result, op.config.out_zero));
  Sizes z;
  if (!sane || !sizes_of(base, op.config, z) || z.total != op.weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed description is inconsistent", name);
  DirectShape s = {};
  s.in_channels = c.in_channels;
  s.groups = c.groups;
  s.kernel_h = c.kernel_h;
  s.kernel_w = c.kernel_w;
  s.stride_h = s.stride_w = s.dilation_h = s.dilation_w = 1;
  s.element = Element(c.element); s.result = result; s.weights = Element::s8;
  const Kernel* tile =
      is_packed(c, kDirect) ? choose_tile(op.ctx, 1, 1, 1, &c.format, nullptr, nullptr, direct_types(s)) : nullptr;
  if (const uint32_t a = packed_winograd(c); !tile && a < kConvAlgorithms) {
    WinogradShape ws = winograd_shape(s);
    ws.out_channels = c.out_channels;
    WinogradPlan winograd;
    if (!winograd_plan(op.ctx, winograd_variant(a), ws, winograd_format(c), &winograd))
      return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                  "%s: weights are transformed for vectors of %u values, %u channels together; this context (%s) has "
                  "no such kernel",
                  name, c.winograd_vector, c.winograd_together, skua_context_isa(op.ctx));
  } else if (!tile)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                "%s: weights are packed for panels of %u columns, %u bytes of the depth together; this context (%s) "
                "has no such kernel",
                name, c.format.nr, c.format.kr, skua_context_isa(op.ctx));
  const auto* w = static_cast<const float*>(op.weights);
  const bool fixed = op.config.rounding != SKUA_ROUNDING_FLOAT;
  const auto* vectors = reinterpret_cast<const int32_t*>(w);
  if (fixed && !are_fixed_scales(vectors + z.vector, vectors + 2 * z.vector, z.vector))
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed multipliers are outside of their bounds", name);
  op.quantized = {vectors,
                  w + z.vector,
                  vectors + column_vectors(c, op.config.rounding) * z.vector,
                  taps_of(c) == 1 ? vectors + scale_vectors(op.config.rounding) * z.vector : nullptr,
                  op.config.in_zero,
                  op.config.out_zero,
                  !fixed && scales_fit(w + z.vector, z.vector),
                  sums_small(taps_of(c) * (c.in_channels / c.groups), 128, vectors, z.vector),
                  tile && all_above_least(tile, w + z.panels_at(), z.panels),
                  fixed ? vectors + 2 * z.vector : nullptr,
                  op.config.rounding == SKUA_ROUNDING_SINGLE,
                  op.config.residual};
  op.panels = tile ? w + z.panels_at() : nullptr;
  op.winograd = z.winograd ? w + (z.total - z.winograd) / sizeof(float) : nullptr;
  op.clamp = {op.config.low, op.config.high, nullptr, 0, 0};
  op.n_inputs = 1 + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  return SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  const Int8Config& config = static_cast<const Int8Op*>(base)->config;
  const ConvConfig& c = config.conv;
  Int8Plan& p = *static_cast<Int8Plan*>(out);
  DirectShape& s = p.shape;
  ConvMap in;
  SKUA_TRY(conv_plan_shapes(base, c, shapes, skua_dtype(config.result), in, s, p.outputs[0]));
  p.planar = {};
  if (c.layout == SKUA_LAYOUT_NCHW)
    SKUA_TRY(planar_map(base, in, s.in_h, s.in_w, c.in_channels, Element(c.element), p.planar.in));
  else s.in_batch = in.image, s.in_row = in.row, s.in_pixel = in.pixel;
  s.result = Element(config.result);
  s.padding = uint8_t(config.in_zero);
  if (c.residual != SKUA_RESIDUAL_NONE) {
    SKUA_TRY(need_type(base, shapes, 1, skua_dtype(config.result)));
    SKUA_TRY(need_same_shape(base, shapes, 1, p.outputs[0]));
    ConvMap r = {};
    SKUA_TRY(conv_map(base, c, "input", 1, shapes.inputs[1], c.out_channels, r));
    if (c.layout == SKUA_LAYOUT_NCHW)
      SKUA_TRY(planar_map(base, r, s.out_h, s.out_w, c.out_channels, s.result, p.planar.residual));
    else s.res_batch = r.image, s.res_row = r.row, s.res_pixel = r.pixel;
  }
  return SKUA_STATUS_OK;
}

DirectOperands operands(const Int8Op& op, const PlanarRun& maps) {
  return {op.panels, nullptr,        &op.clamp,    skua_residual(op.config.conv.residual), maps.in, maps.residual,
          maps.out,  maps.workspace, &op.quantized};
}

// Whether Winograd's products of words, `rate` multiply-adds an instruction, are worth a look beside the direct form's
// tile: a quarter to three fifths of the products, half as fast or faster. On Arm next to dot products they are slower
// than that, and left to a kernel filter.
bool pays_beside(const Kernel* tile, double rate) { return double(table_of(tile).rate) * tile->vector <= 2 * rate; }

// Why a variant is not: what it would take here, where nothing but the model or its sums can be the reason.
void explain_not_packed(const skua_context* ctx, const ConvConfig& c, const DirectShape& s, uint32_t algorithm,
                        Text& text) {
  double rate = 0;
  const PackFormat format = winograd_int8_format(ctx, &rate);
  const Kernel* tile = direct_tile(ctx, s, nullptr);
  WinogradPlan plan;
  if (const char* why = no_winograd_window(c, winograd_variant(algorithm))) text.add("%s\n", why);
  else if (c.numerics == SKUA_NUMERICS_STRICT) text.add("numerics is STRICT\n");
  else if (tile && format.vector && !pays_beside(tile, rate))
    text.add("products of bytes are more than twice as fast here as its own\n");
  else if (!format.vector || !winograd_plan(ctx, winograd_variant(algorithm), winograd_shape(s), format, &plan))
    text.add("no kernel in this build, or too large\n");
  else
    text.add(
        "the weights were not packed for it: slower by the model where they were, or of sums that may not fit; %.0f "
        "cycles predicted here\n",
        plan.cycles);
}

// Among what is packed; of an operator that is being made, of what `c` says. With text: every candidate.
skua_status choose(const skua_op* op, const ConvConfig& c, Int8Plan& p, Text* text, bool filtered = true) {
  const char* filter = op->ctx->filter;
  const auto named = [&](uint32_t a) {
    return filtered && filter[0] && is_packed(c, a) && glob_match(filter, conv_algorithm_name(a));
  };
  const uint32_t variant = packed_winograd(c);
  const bool forced = named(kDirect) || (variant < kConvAlgorithms && named(variant));
  if (text)
    for (uint32_t a = 0; a < kConvAlgorithms; ++a)
      if ((kInt8Algorithms >> a & 1) && !is_packed(c, a)) {
        text->add("    %s: turned down, ", conv_algorithm_name(a));
        if (a == kDirect) text->add("the weights were not packed for it\n");
        else explain_not_packed(op->ctx, c, p.shape, a, *text);
      }
  p.kernel = nullptr;
  p.by_winograd = false;
  double cycles = 0;
  if (is_packed(c, kDirect) && (!forced || named(kDirect)))
    if (const Kernel* tile = direct_tile(op->ctx, p.shape, &c.format, text, &p.choice)) {
      SKUA_TRY(direct_plan(op, p.shape, tile, false, p.direct));
      p.kernel = tile;
      p.algorithm = p.direct.name;
      cycles = p.direct.cycles;
      if (text)
        text->add("    %s with %s: %.0f cycles predicted%s\n", p.algorithm, tile->name, cycles,
                  taps_of(c) > 1 && !p.direct.gathers && !p.direct.pads ? ", taps in the padding left out" : "");
    }
  if (variant < kConvAlgorithms && (!forced || named(variant))) {
    p.winograd_shape = winograd_shape(p.shape);
    p.winograd_shape.in_zero = p.shape.element == Element::s8 ? int8_t(p.shape.padding) : p.shape.padding;
    const bool can =
        winograd_plan(op->ctx, winograd_variant(variant), p.winograd_shape, winograd_format(c), &p.winograd, &p.choice);
    if (text && can)
      text->add("    %s with %s: %.0f cycles predicted\n", conv_algorithm_name(variant), p.winograd.tile->name,
                p.winograd.cycles);
    if (can && (!p.kernel || p.winograd.cycles < cycles)) {
      p.by_winograd = true;
      p.kernel = p.winograd.tile;
      p.algorithm = conv_algorithm_name(variant);
    }
  }
  p.named = forced && p.kernel;
  if (p.kernel) return SKUA_STATUS_OK;
  if (forced && is_packed(c, kDirect) && !named(kDirect)) return choose(op, c, p, text, false);  // not this shape
  if (variant < kConvAlgorithms)
    return SKUA_UNSUPPORTED_(
        "%s: the feature maps are too large for %s, which alone the weights are packed for; numerics STRICT packs them "
        "otherwise",
        op->cls->name, conv_algorithm_name(variant));
  return SKUA_UNSUPPORTED_("%s: no kernel in this build", op->cls->name);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Int8Config& config = static_cast<const Int8Op*>(base)->config;
  const ConvConfig& c = config.conv;
  Int8Plan& p = *static_cast<Int8Plan*>(out);
  ConvMap m = {};
  SKUA_TRY(conv_map(base, c, "output", 0, p.outputs[0], c.out_channels, m));
  if (c.layout == SKUA_LAYOUT_NCHW)
    SKUA_TRY(planar_map(base, m, p.shape.out_h, p.shape.out_w, c.out_channels, p.shape.result, p.planar.out));
  else p.shape.out_batch = m.image, p.shape.out_row = m.row, p.shape.out_pixel = m.pixel;
  const Int8Op& op = *static_cast<const Int8Op*>(base);
  SKUA_TRY(choose(base, c, p, nullptr));
  if (c.layout == SKUA_LAYOUT_NHWC && !p.by_winograd) pointwise_row(p.direct, p.shape, operands(op, {}), p.row);
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const Int8Plan& p = plan_of(plan);
  return add_sat(planar_workspace(p.planar), p.by_winograd
                                                 ? winograd_workspace(p.winograd, p.winograd_shape, concurrency)
                                                 : direct_workspace(p.direct, concurrency));
}

void winograd(const RunArgs& args, const Int8Plan& p, const PlanarRun& maps) {
  const Int8Op& op = op_of(args.plan);
  const DirectQuantized& q = op.quantized;
  GemmTile end = {};
  end.c_type = p.shape.result;
  end.low = op.clamp.low;
  end.high = op.clamp.high;
  end.scale = q.scales;
  end.zero = q.out_zero;
  end.fits = q.fits;
  end.shift = q.shifts;
  end.single = q.single;
  end.residual_by = q.residual;
  winograd_run(args, p.winograd, p.winograd_shape, op.winograd, q.bias, op.clamp,
               skua_residual(op.config.conv.residual), maps.in, maps.residual, maps.out, maps.workspace, &end);
}

void run(const RunArgs& args) {
  const Int8Plan& p = plan_of(args.plan);
  if (p.row.run && (args.concurrency() == 1 || p.direct.cycles < kAlone))
    return run_only(p.row, p.kernel, args.in<void>(0), args.out<void>(0), p.n_inputs > 1 ? args.in<void>(1) : nullptr);
  const PlanarRun maps = planar_begin(args, p.planar);
  if (p.by_winograd) winograd(args, p, maps);
  else direct_run(args, p.direct, p.shape, operands(op_of(args.plan), maps));
  planar_end(args, p.planar, maps);
}

void explain(const skua_plan* plan, Text& text) {
  const Int8Plan& p = plan_of(plan);
  const DirectShape& s = p.shape;
  text.add("  input %zux%zux%zu, kernel %ux%u, stride %ux%u, dilation %ux%u, groups %zu, padding %zu top, %zu left\n",
           s.in_h, s.in_w, s.in_channels, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
           s.groups, s.pad_top, s.pad_left);
  const double operations = 2.0 * double(s.batch * s.out_h * s.out_w) * double(s.out_channels) *
                            double(s.in_channels / s.groups) * double(s.kernel_h) * double(s.kernel_w);
  const double cycles = p.by_winograd ? p.winograd.cycles : p.direct.cycles;
  if (cycles > 0) text.add("  predicted %.1f operations per cycle\n", operations / cycles);
  if (p.by_winograd) text.add("  %zu tiles, %zu at a time\n", p.winograd.tiles, p.winograd.block);
  else if (p.direct.gathers) explain_gather(p.direct, text);
  else if (kTileRegisters && p.direct.pads) explain_padded(p.direct, text);
  if (p.by_winograd)
    text.add("  weights transformed, as s16, %u of the depth together; sums s32, exact\n",
             op_of(plan).config.conv.winograd_together);
  else text.add("  weights packed as s8, %u of the depth together; sums s32\n", op_of(plan).config.conv.format.kr);
  text.add("  candidates:\n");
  Int8Plan again = p;
  again.choice = {};
  choose(plan->op, op_of(plan).config.conv, again, &text);
  if (!p.by_winograd && !p.direct.row) explain_cores(p.direct.tiles, text);
}

}  // namespace

extern const OpClass conv2d_int8_class, conv2d_transpose_int8_class;
const OpClass conv2d_int8_class = {
    .name = "conv2d", .id = 24,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(Int8Op), .plan_size = sizeof(Int8Plan), .config_offset = offsetof(Int8Op, config),
    .config_size = sizeof(Int8Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};
const OpClass conv2d_transpose_int8_class = {
    .name = "conv2d_transpose", .id = 25,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(Int8Op), .plan_size = sizeof(Int8Plan), .config_offset = offsetof(Int8Op, config),
    .config_size = sizeof(Int8Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};

skua_status int8_conv_create(const skua_context* ctx, const ConvConfig& conv, skua_dtype result,
                             const Requantize& bounds, const ConvQuantization& q, const WeightSteps& steps,
                             const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out) {
  const OpClass& cls = conv.transposed ? conv2d_transpose_int8_class : conv2d_int8_class;
  if (!weights) return SKUA_INVALID("%s: weights is NULL", cls.name);
  Int8Config config;
  memset(&config, 0, sizeof config);
  memcpy(&config.conv, &conv, sizeof conv);
  ConvConfig& c = config.conv;
  c.has_bias = bias != nullptr;
  config.result = uint32_t(result);
  config.in_zero = q.input.zero_point;
  config.out_zero = bounds.zero_point;
  config.low = bounds.low;
  config.high = bounds.high;
  config.rounding = uint32_t(q.requantization.rounding);
  config.residual = q.residual;
  if (taps_of(c) * (c.in_channels / c.groups) > kMaxDepth)
    return SKUA_UNSUPPORTED_(
        "%s: kernel_h * kernel_w * in_channels / groups is %llu, with bytes %llu at most: sums of more products could "
        "pass 32 bits",
        cls.name, (unsigned long long)(taps_of(c) * (c.in_channels / c.groups)), (unsigned long long)kMaxDepth);
  skua_op probe = {};
  probe.cls = &cls;
  probe.ctx = ctx;
  DirectShape s;
  const bool hinted = hint_h && hint_w;
  const size_t least_h = size_t(c.dilation_h) * (c.kernel_h - 1) + 1,
               least_w = size_t(c.dilation_w) * (c.kernel_w - 1) + 1;
  SKUA_TRY(conv_shape(&probe, c, 1, hinted ? hint_h : max(56, least_h) + c.pad_top + c.pad_bottom,
                      hinted ? hint_w : max(56, least_w) + c.pad_left + c.pad_right, s));
  s.result = Element(result);
  const Kernel* tile = direct_tile(ctx, s, nullptr);
  if (!tile) return SKUA_UNSUPPORTED_("%s: no kernel in this build", cls.name);
  c.format = format_of(tile);
  const auto* from = static_cast<const int8_t*>(weights);
  double rate = 0;
  const PackFormat transformed = winograd_int8_format(ctx, &rate);
  const auto is_named = [&](uint32_t a) { return ctx->filter[0] && glob_match(ctx->filter, conv_algorithm_name(a)); };
  uint32_t candidates = 1u << kDirect, named = 0;
  int64_t largest = -1;
  for (uint32_t a = kWinogradF2x2; a < kConvAlgorithms; ++a) {
    if (!(kInt8Algorithms >> a & 1) || !transformed.vector || c.numerics == SKUA_NUMERICS_STRICT ||
        no_winograd_window(c, winograd_variant(a)) || (!pays_beside(tile, rate) && !is_named(a)))
      continue;
    const int32_t below = config.in_zero - least_of(Element(c.element)),
                  above = greatest_of(Element(c.element)) - config.in_zero;
    if (largest < 0)
      largest = winograd_largest(c.kernel_h, c.in_channels, c.out_channels, from, steps, below, above);
    if (winograd_fits(winograd_variant(a), largest)) candidates |= 1u << a;
  }
  for (uint32_t a = 0; a < kConvAlgorithms; ++a)
    if ((candidates >> a & 1) && is_named(a)) named |= 1u << a;
  if (named) candidates = named;
  uint32_t best = kDirect;
  Int8Plan p;
  memset(static_cast<void*>(&p), 0, sizeof p);
  double cycles = 0;
  for (uint32_t a = kWinogradF2x2; a < kConvAlgorithms; ++a) {
    if (!(candidates >> a & 1)) continue;
    ConvConfig with;
    memcpy(&with, &c, sizeof c);
    with.winograd_vector = transformed.vector;
    with.winograd_element = uint32_t(transformed.element);
    with.winograd_together = transformed.kr;
    with.packed = 1u << a | (candidates & 1u << kDirect);
    p.shape = s;
    p.shape.padding = uint8_t(config.in_zero);
    if (choose(&probe, with, p, nullptr) != SKUA_STATUS_OK || !p.by_winograd ||
        (best != kDirect && p.winograd.cycles >= cycles))
      continue;
    best = a;
    cycles = p.winograd.cycles;
  }
  if (best != kDirect) {
    c.winograd_vector = transformed.vector;
    c.winograd_element = uint32_t(transformed.element);
    c.winograd_together = transformed.kr;
  }
  c.packed = 1u << best | (hinted ? 0 : 1u << kDirect);
  const Kernel* pack = find_pack(ctx, Element::s8, c.format.element, c.format.kr);
  if (!pack) return SKUA_UNSUPPORTED_("%s: no kernel in this build", cls.name);
  Sizes z;
  if (!sizes_of(&probe, config, z))
    return SKUA_INVALID("%s: the packed weights are larger than the address space", cls.name);
  const size_t in = c.in_channels / c.groups, n = c.out_channels / c.groups,
               step = direct_bias_step(c.out_channels, c.groups),
               row = max(size_t(taps_of(c)) * in, phase_at(s, 0).packed_depth(s, c.format));
  // A group's weights [output][tap][input], as a phase's panels take them.
  auto* rows = static_cast<int8_t*>(allocate(ctx, n * row, 64));
  if (!rows) return out_of_memory(cls.name, n * row);
  skua_op* base = nullptr;
  const skua_status status = new_op(cls, ctx, 1, 1, z.total, &base);
  if (status != SKUA_STATUS_OK) {
    release(ctx, rows, n * row);
    return status;
  }
  memcpy(&static_cast<Int8Op*>(base)->config, &config, sizeof config);
  auto* w = static_cast<float*>(op_weights(base));
  memset(static_cast<void*>(w), 0, z.total);
  auto* vectors = reinterpret_cast<int32_t*>(w);
  auto* sums = reinterpret_cast<uint32_t*>(w) + column_vectors(c, config.rounding) * z.vector;
  const auto zero = uint32_t(config.in_zero + c.format.a_shift);
  float* panels = w + z.panels_at();
  for (size_t g = 0; g < c.groups; ++g) {
    if (bias) memcpy(w + g * step, static_cast<const int32_t*>(bias) + g * n, n * sizeof(int32_t));
    for (size_t o = 0; o < n; ++o) {
      if (config.rounding == SKUA_ROUNDING_FLOAT) {
        w[z.vector + g * step + o] = sum_scale(q.input, q.weight, g * n + o, Element(result), q.output);
        continue;
      }
      const FixedScale scale = sum_scale_fixed(q.input, q.weight, g * n + o, q.output, q.requantization);
      vectors[z.vector + g * step + o] = scale.multiplier;
      vectors[2 * z.vector + g * step + o] = scale.shift;
    }
  }
  if (best != kDirect)
    winograd_pack(winograd_variant(best), c.in_channels, c.out_channels, winograd_format(c), from, steps,
                  w + (z.total - z.winograd) / sizeof(float));
  if (is_packed(c, kDirect)) note_use(pack);
  for (size_t i = 0; is_packed(c, kDirect) && i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const size_t depth = p.packed_depth(s, c.format), run = p.packed_run(s, c.format),
                 of_tap = p.packed_tap(s, c.format);
    memset(rows, 0, n * depth);  // behind runs and taps
    for (size_t g = 0; g < c.groups; ++g, panels += packed_floats(c.format, n, depth)) {
      for (size_t o = 0; o < n; ++o)
        for (size_t ty = 0; ty < p.y.taps; ++ty)
          for (size_t tx = 0; tx < p.x.taps; ++tx) {
            const int8_t* tap = from + (g * n + o) * steps.o +
                                (p.y.k_first + size_t(ptrdiff_t(ty) * p.y.k_step)) * steps.y +
                                (p.x.k_first + size_t(ptrdiff_t(tx) * p.x.k_step)) * steps.x;
            int8_t* to = rows + o * depth + ty * run + tx * of_tap;
            int32_t sum = 0;
            for (size_t k = 0; k < in; ++k) sum += to[k] = tap[k * steps.i];
            // With those of the taps before it: see DirectQuantized::tap_sums.
            uint32_t* const up_to = sums + (ty * p.x.taps + tx) * z.vector + g * step + o;
            *up_to = zero * uint32_t(sum);
            if (tx) *up_to += *(up_to - z.vector);
            if (ty) *up_to += *(up_to - p.x.taps * z.vector);
            if (ty && tx) *up_to -= *(up_to - (p.x.taps + 1) * z.vector);
            if (taps_of(c) == 1) *(up_to - z.vector) = uint32_t(vectors[g * step + o]) - *up_to;
          }
      for (size_t panel = 0; depth && panel < panel_count(c.format, n); ++panel)
        pack_bytes(pack)(
            depth, panel_columns(c.format, n, panel), panel_width(c.format, n, panel),
            rows + panel * c.format.nr * depth, 1, depth,
            at(static_cast<void*>(panels), c.format.element, ptrdiff_t(panel_offset(c.format, panel, depth))), nullptr);
    }
    sums += p.y.taps * p.x.taps * z.vector;
  }
  release(ctx, rows, n * row);
  return open_op(base, out);
}

}  // namespace skua
