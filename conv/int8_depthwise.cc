// Depthwise convolutions of bytes: conv2d where every channel of s8 or u8 is a group, and the result is s8 or u8; and
// those in groups of a few channels. Results of floats take the direct form (int8.cc).
#include "conv/planar.h"
#include "depthwise/int8.h"

namespace skua {
namespace {

struct DepthwiseInt8Config {
  ConvConfig conv;
  DepthwiseInt8Format format;
  Requantize to;
  int32_t in_zero;
  uint32_t result;  // Element
};

struct DepthwiseInt8Op : skua_op {
  DepthwiseInt8Config config;
};

struct DepthwiseInt8Plan : skua_plan {
  DepthwiseShape shape;
  PlanarMaps planar;
};

const DepthwiseInt8Config& config_of(const skua_op* op) { return static_cast<const DepthwiseInt8Op*>(op)->config; }

// What packed weights depend on.
DepthwiseShape window_of(const ConvConfig& c) {
  DepthwiseShape s = {};
  s.channels = c.in_channels; s.multiplier = c.out_channels / c.in_channels; s.group = c.in_channels / c.groups;
  s.kernel_h = c.kernel_h;
  s.kernel_w = c.kernel_w;
  s.stride_h = c.stride_h;
  s.stride_w = c.stride_w;
  s.dilation_h = c.dilation_h;
  s.dilation_w = c.dilation_w;
  return s;
}
size_t packed_bytes(const ConvConfig& c, const DepthwiseInt8Format& f) {
  return f.per_group ? grouped_int8_packed_bytes(window_of(c), f)
                     : depthwise_int8_packed_bytes(c.kernel_h, c.kernel_w, c.stride_h, c.out_channels, f);
}

skua_status open(skua_op* op) {
  const DepthwiseInt8Config& config = config_of(op);
  const ConvConfig& c = config.conv;
  const DepthwiseInt8Format& f = config.format;
  const bool fits =
      c.kernel_h && c.kernel_w && c.stride_h && c.stride_w && c.dilation_h && c.dilation_w && c.in_channels &&
      c.groups && c.out_channels && c.out_channels % c.in_channels == 0 &&
      (f.per_group ? c.out_channels == c.in_channels && c.in_channels == uint64_t(c.groups) * f.per_group
                   : c.groups == c.in_channels) &&
      c.layout <= SKUA_LAYOUT_NCHW && !c.transposed && c.padding_mode <= SKUA_PADDING_SAME_LOWER &&
      is_int8(Element(c.element)) && config.result <= uint32_t(Element::u8) && is_int8(Element(config.result)) &&
      zero_point_fits(Element(c.element), config.in_zero) &&
      zero_point_fits(Element(config.result), config.to.zero_point) && config.to.low >= -255 && config.to.high <= 255 &&
      config.to.low <= config.to.high && f.vector && f.vector % 4 == 0 && f.rounding <= SKUA_ROUNDING_SINGLE &&
      (f.group == 2 || f.group == 4 ||
       (f.group == 1 && f.rows == 1 && !f.per_group && !f.pairs && !f.rounding &&
        depthwise_int8_goes_by_taps(window_of(c)))) &&
      (f.rows == 1 || (f.rows == 2 && (c.dilation_h == 1 || !f.per_group))) &&
      (!f.pairs || (f.pairs == 1 && !f.per_group && f.group == 4 && f.rows == 1 && f.vector >= 32 &&
                    depthwise_int8_takes_pairs(window_of(c)))) &&
      (!f.streamed || (f.streamed == 1 && f.takes_unsigned == 1 && f.group >= 2 && f.rows == 1 && !f.per_group &&
                       !f.pairs && !f.rounding && depthwise_int8_is_streamed(window_of(c), f.vector, f.group)));
  const size_t bytes = fits ? packed_bytes(c, f) : 0;
  if (!bytes || bytes != op->weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed description is inconsistent", op->cls->name);
  if (f.rounding &&
      !(f.per_group ? grouped_int8_fixed_fit(window_of(c), f, op->weights)
                    : depthwise_int8_fixed_fit(c.kernel_h, c.kernel_w, c.stride_h, c.out_channels, f, op->weights)))
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed multipliers are outside of their bounds", op->cls->name);
  if (!depthwise_int8_kernel(op->ctx, f, Element(c.element)))
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                "%s: weights are packed for %u channels, %u taps together; this context (%s) has no such kernel",
                op->cls->name, f.vector, f.group, skua_context_isa(op->ctx));
  op->n_inputs = op->n_outputs = 1;
  return SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* op, const PlanShapes& shapes, skua_plan* plan) {
  const DepthwiseInt8Config& config = config_of(op);
  DepthwiseShape& s = static_cast<DepthwiseInt8Plan*>(plan)->shape;
  PlanarMaps& planar = static_cast<DepthwiseInt8Plan*>(plan)->planar;
  ConvMap in;
  DirectShape d;
  SKUA_TRY(conv_plan_shapes(op, config.conv, shapes, skua_dtype(config.result), in, d, plan->outputs[0]));
  s = window_of(config.conv);
  s.batch = d.batch; s.in_h = d.in_h; s.in_w = d.in_w; s.out_h = d.out_h; s.out_w = d.out_w;
  s.pad_top = d.pad_top; s.pad_left = d.pad_left;
  planar = {};
  s.in_row = d.in_row; s.in_pixel = d.in_pixel; s.in_batch = d.in_batch;
  s.out_row = d.out_row; s.out_pixel = d.out_pixel; s.out_batch = d.out_batch;
  if (config.conv.layout == SKUA_LAYOUT_NCHW)
    return planar_map(op, in, s.in_h, s.in_w, s.channels, Element(config.conv.element), planar.in);
  s.in_row = in.row; s.in_pixel = in.pixel; s.in_batch = in.image;
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* op, skua_plan* plan) {
  const DepthwiseInt8Config& config = config_of(op);
  DepthwiseShape& s = static_cast<DepthwiseInt8Plan*>(plan)->shape;
  ConvMap out = {};
  SKUA_TRY(conv_map(op, config.conv, "output", 0, plan->outputs[0], config.conv.out_channels, out));
  if (config.conv.layout == SKUA_LAYOUT_NCHW)
    SKUA_TRY(planar_map(op, out, s.out_h, s.out_w, config.conv.out_channels, Element(config.result),
                        static_cast<DepthwiseInt8Plan*>(plan)->planar.out));
  else s.out_row = out.row, s.out_pixel = out.pixel, s.out_batch = out.image;
  plan->kernel = depthwise_int8_kernel(op->ctx, config.format, Element(config.conv.element));
  plan->algorithm = config.format.per_group ? "grouped" : "depthwise";
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const auto& p = *static_cast<const DepthwiseInt8Plan*>(plan);
  const DepthwiseInt8Format& f = config_of(plan->op).format;
  return add_sat(planar_workspace(p.planar), f.per_group ? grouped_int8_workspace(p.shape, p.kernel, f, concurrency)
                                                         : depthwise_int8_workspace(p.shape, f, concurrency));
}

void run(const RunArgs& args) {
  const DepthwiseInt8Config& config = config_of(args.plan->op);
  const auto& p = *static_cast<const DepthwiseInt8Plan*>(args.plan);
  const PlanarRun maps = planar_begin(args, p.planar);
  (config.format.per_group ? grouped_int8_run : depthwise_int8_run)(
      args, p.shape, p.kernel, config.format, p.op->weights, config.in_zero, config.to, Element(config.result), maps.in,
      maps.out, maps.workspace);
  planar_end(args, p.planar, maps);
}

void explain(const skua_plan* plan, Text& text) {
  const DepthwiseInt8Config& config = config_of(plan->op);
  const DepthwiseShape& s = static_cast<const DepthwiseInt8Plan*>(plan)->shape;
  text.add("  input %zux%zux%zu, kernel %ux%u, stride %ux%u, dilation %ux%u, groups %u, padding %zu top, %zu left\n",
           s.in_h, s.in_w, s.channels, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
           config.conv.groups, s.pad_top, s.pad_left);
  const DepthwiseInt8Format& f = config.format;
  const char* walk = f.per_group    ? "pixels spread over their groups"
                     : f.streamed   ? "by columns, in registers"
                     : f.pairs      ? "pairs of rows and columns interleaved"
                     : f.group == 1 ? "tap by tap"
                                    : "rows interleaved";
  text.add("  %s (depthwise/README.md)\n", walk);
  text.add("  weights packed as %s for %u channels, %u taps of %s together, for %u row%s of outputs; sums s32\n",
           f.group == 2 ? "16 bits" : "s8", f.vector, f.group, f.pairs ? "two columns" : "a column", f.rows,
           f.rows > 1 ? "s" : "");
  if (!config.format.per_group) explain_cores(depthwise_int8_on_cores(plan->op->ctx, plan->kernel), text);
}

}  // namespace

extern const OpClass depthwise_int8_class;
const OpClass depthwise_int8_class = {
    .name = "conv2d", .id = 26,
    .op_size = sizeof(DepthwiseInt8Op), .plan_size = sizeof(DepthwiseInt8Plan),
    .config_offset = offsetof(DepthwiseInt8Op, config), .config_size = sizeof(DepthwiseInt8Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};

skua_status depthwise_int8_create(const skua_context* ctx, const ConvConfig& c, skua_dtype result,
                                  const Requantize& bounds, const ConvQuantization& q, const WeightSteps& steps,
                                  const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out) {
  *out = nullptr;
  const uint64_t taps = uint64_t(c.kernel_h) * c.kernel_w;
  const bool grouped = c.groups > 1 && c.groups < c.in_channels && c.in_channels == c.out_channels;
  if (c.transposed || (c.groups != c.in_channels && !grouped) || (c.in_channels == 1 && c.out_channels > 1) ||
      !is_int8(Element(result)) || taps > 65536 || !weights || c.residual != SKUA_RESIDUAL_NONE)
    return SKUA_STATUS_OK;
  DepthwiseShape window = window_of(c);
  window.in_h = hint_h; window.in_w = hint_w;
  const auto rounding = uint16_t(q.requantization.rounding);
  const DepthwiseInt8Format f =
      (grouped ? grouped_int8_format : depthwise_int8_format)(ctx, window, Element(c.element), rounding);
  if (!f.vector) return SKUA_STATUS_OK;
  DepthwiseInt8Config config;
  memset(static_cast<void*>(&config), 0, sizeof config);
  memcpy(&config.conv, &c, sizeof c);
  config.conv.has_bias = bias != nullptr;
  config.format = f;
  config.to = bounds;
  config.in_zero = q.input.zero_point;
  config.result = uint32_t(result);
  const size_t bytes = packed_bytes(c, f), scale_bytes = size_t(c.out_channels) * 2 * sizeof(float);
  if (!bytes) return SKUA_INVALID("conv2d: the packed weights are larger than the address space");
  auto* scale = static_cast<float*>(allocate(ctx, scale_bytes, 64));
  if (!scale) return out_of_memory("conv2d", scale_bytes);
  int32_t *multiplier = reinterpret_cast<int32_t*>(scale), *shift = multiplier + c.out_channels;
  for (size_t o = 0; o < c.out_channels; ++o) {
    const FixedScale fixed =
        f.rounding ? sum_scale_fixed(q.input, q.weight, o, q.output, q.requantization) : FixedScale{};
    if (f.rounding) multiplier[o] = fixed.multiplier, shift[o] = fixed.shift;
    else scale[o] = sum_scale(q.input, q.weight, o, Element(result), q.output);
  }
  skua_op* op = nullptr;
  const skua_status status = new_op(depthwise_int8_class, ctx, 1, 1, bytes, &op);
  if (status == SKUA_STATUS_OK) {
    memcpy(static_cast<void*>(&static_cast<DepthwiseInt8Op*>(op)->config), &config, sizeof config);
    if (grouped)
      grouped_int8_pack(window, f, Element(c.element), config.in_zero, static_cast<const int8_t*>(weights), steps,
                        static_cast<const int32_t*>(bias), scale, shift, op_weights(op));
    else
      depthwise_int8_pack(c.kernel_h, c.kernel_w, c.stride_h, c.out_channels, f, Element(c.element), config.in_zero,
                          static_cast<const int8_t*>(weights), steps, static_cast<const int32_t*>(bias), scale, shift,
                          op_weights(op));
  }
  release(ctx, scale, scale_bytes);
  return status == SKUA_STATUS_OK ? open_op(op, out) : status;
}

}  // namespace skua
