// Layer, RMS, batch, group and instance normalisation. See skua/normalize.h for the formulas, normalize/README.md for
// the way through.
#include "normalize/norm.h"

#include "core/families.h"
#include "normalize/norm_kernel.h"

namespace skua {
using namespace norm;
namespace {

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const Config& c = op.config;
  if (c.kind > SKUA_NORM_INSTANCE || c.type > SKUA_DTYPE_BF16 || c.layout > SKUA_LAYOUT_NCHW || !c.channels ||
      c.channels > SIZE_MAX / 16 || op.weights_size != size_t(c.channels) * 2 * sizeof(float) ||
      (c.kind == SKUA_NORM_GROUP && (!c.groups || c.channels % c.groups)))
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "norm: packed weights have a wrong size");
  op.n_inputs = op.n_outputs = 1;
  op.gamma = static_cast<const float*>(op.weights);
  op.beta = op.gamma + c.channels;
  const bool nhwc = c.layout == SKUA_LAYOUT_NHWC;
  SKUA_ON_GPU(op.ctx, open_norm(op.ctx, &op, skua_dtype(c.type), op.gamma, op.beta, size_t(c.channels), &op.factors));
  bool found = true;
  auto find = [&](KernelKind kind, int variant) {
    return find_kernel(op.ctx, norm_tables, kind, variant, Element(c.type));
  };
  if (by_rows(c.kind)) {
    op.rows = find(KernelKind::norm_rows, c.kind == SKUA_NORM_RMS);
    found = op.rows;
  } else {
    op.affine = find(KernelKind::norm_affine, !nhwc);
    op.sum = find(nhwc ? KernelKind::norm_sum_columns : KernelKind::norm_sum_rows, 0);
    op.squares = find(nhwc ? KernelKind::norm_sum_columns : KernelKind::norm_sum_rows, 1);
    found = op.affine && op.sum && op.squares;
  }
  return found ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("norm: no kernel in this build");
}

// The last `axes` dimensions lie next to each other.
bool dense_tail(const skua_tensor& t, uint32_t axes) {
  size_t step = 1;
  for (uint32_t d = t.rank; d-- > t.rank - axes; step *= t.shape[d])
    if (t.shape[d] > 1 && t.stride[d] != step) return false;
  return true;
}

// Which strides this operator can use.
skua_status check_strides(const Op& op, const char* what, const skua_tensor& t) {
  if (element_count(t) == 0) return SKUA_STATUS_OK;
  if (by_rows(op.config.kind)) {
    if (dense_tail(t, op.config.axes)) return SKUA_STATUS_OK;
    return SKUA_UNSUPPORTED_("norm: %s 0 has strides with holes inside its last %u dimensions", what, op.config.axes);
  }
  if (t.shape[t.rank - 1] <= 1 || t.stride[t.rank - 1] == 1) return SKUA_STATUS_OK;
  return SKUA_UNSUPPORTED_("norm: %s 0 has innermost stride %zu, must be 1", what, t.stride[t.rank - 1]);
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& x = s.inputs[0];
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  size_t channels = 1;
  if (by_rows(c.kind)) {
    if (x.rank < c.axes) return SKUA_INVALID("norm: input 0 has rank %u, axes is %u", x.rank, c.axes);
    for (uint32_t d = x.rank - c.axes; d < x.rank; ++d) channels *= x.shape[d];
    if (channels != c.channels)
      return SKUA_INVALID("norm: input 0 has %zu elements in its last %u dimensions, channels is %zu", channels, c.axes,
                          size_t(c.channels));
  } else {
    if (x.rank < 2) return SKUA_INVALID("norm: input 0 has rank %u, must be 2 or more", x.rank);
    channels = x.shape[c.layout == SKUA_LAYOUT_NHWC ? x.rank - 1 : 1];
    if (channels != c.channels)
      return SKUA_INVALID("norm: input 0 has %zu channels, the operator has %zu", channels, size_t(c.channels));
  }
  SKUA_TRY(check_strides(op, "input", x));
  p.outputs[0] = tensor(x.type, x.rank);
  memcpy(p.outputs[0].shape, x.shape, sizeof x.shape);
  static const char* const names[] = {"layer", "rms", "batch", "group", "instance"};
  p.algorithm = names[c.kind];
  p.kernel = by_rows(c.kind) ? op.rows : op.affine;
  return SKUA_STATUS_OK;
}

skua_status shape_plan(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor &x = p.inputs[0], &y = p.outputs[0];
  SKUA_TRY(check_strides(op, "output", y));
  if (element_count(y) == 0) return SKUA_STATUS_OK;
  p.rows = Nest();
  auto add = [&](uint32_t d) { p.rows.add(x.shape[d], x.stride[d], y.stride[d]); };
  const uint32_t last = x.rank - 1;
  p.n = size_t(c.channels);
  if (by_rows(c.kind)) {
    for (uint32_t d = 0; d < x.rank - c.axes; ++d) add(d);
  } else if (c.layout == SKUA_LAYOUT_NHWC) {
    p.images = has_statistics(c.kind) ? x.shape[0] : 1;
    p.x_image = x.stride[0];
    p.y_image = y.stride[0];
    for (uint32_t d = has_statistics(c.kind) ? 1 : 0; d < last; ++d) add(d);
  } else {
    p.images = x.shape[0];
    p.x_image = x.stride[0]; p.y_image = y.stride[0];
    p.x_channel = x.stride[1]; p.y_channel = y.stride[1];
    for (uint32_t d = 2; d <= last; ++d) add(d);
    p.rows.merge();
    // The innermost run is the kernel's; a plane that is one run has one row.
    const uint32_t inner = p.rows.rank - 1;
    p.n = p.rows.extent[inner];
    // planes one pixel wide: their rows stay rows
    if (p.n > 1 && (p.rows.x[inner] != 1 || p.rows.y[inner] != 1)) p.n = 1;
    else if (inner) --p.rows.rank;
    else { p.rows.extent[0] = 1; p.rows.x[0] = p.rows.y[0] = 0; }
    p.count = p.rows.count();
    return SKUA_STATUS_OK;
  }
  p.rows.merge();
  p.count = p.rows.count();
  return SKUA_STATUS_OK;
}

#ifdef SKUA_BUILT_gpu
uint32_t channel_dimension(const Plan& p) {
  return op_of(&p).config.layout == SKUA_LAYOUT_NHWC ? p.inputs[0].rank - 1 : 1;
}

skua_status gpu_plan(Plan& p) {
  const Config& c = op_of(&p).config;
  const skua_tensor &x = p.inputs[0], &y = p.outputs[0];
  if (c.kind == SKUA_NORM_BATCH) return gpu::plan_affine(&p, channel_dimension(p));
  gpu::NormShape& s = p.on_gpu;
  s = {{1, 1, 1}, {}, {}, {}, {1, 1, 1}, {}, {}, 0, c.kind == SKUA_NORM_RMS, c.epsilon};
  const auto element = [&](uint32_t d, size_t extent, size_t x_step, size_t y_step, size_t channel) {
    s.extent[d] = extent;
    s.x[d] = x_step;
    s.y[d] = y_step;
    s.channel[d] = channel;
  };
  const auto row = [&](uint32_t d, size_t extent, size_t x_step, size_t y_step) {
    s.rows[d] = extent;
    s.row_x[d] = x_step;
    s.row_y[d] = y_step;
  };
  if (by_rows(c.kind)) {
    element(0, size_t(c.channels), 1, 1, 1);
    if (p.rows.rank > 3)
      return SKUA_UNSUPPORTED_(
          "norm: input 0 has strides with holes in more than 3 of its leading dimensions, which no kernel for GPUs "
          "takes");
    for (uint32_t d = 0; d < p.rows.rank; ++d) {
      const uint32_t from = p.rows.rank - 1 - d;
      row(d, p.rows.extent[from], size_t(p.rows.x[from]), size_t(p.rows.y[from]));
    }
    return gpu::plan_norm(&p, s, p.chosen);
  }
  const uint32_t channel = channel_dimension(p);
  const size_t groups = c.kind == SKUA_NORM_GROUP ? c.groups : size_t(c.channels), each = size_t(c.channels) / groups;
  Nest pixels;
  for (uint32_t d = 1; d < x.rank; ++d)
    if (d != channel) pixels.add(x.shape[d], x.stride[d], y.stride[d]);
  pixels.merge();
  if (pixels.rank > 2)
    return SKUA_UNSUPPORTED_(
        "norm: input 0 has strides with holes in more than 2 of its dimensions of pixels, which no kernel for GPUs "
        "takes");
  const bool nhwc = c.layout == SKUA_LAYOUT_NHWC;
  element(nhwc ? 0 : 2, each, x.stride[channel], y.stride[channel], 1);
  for (uint32_t d = 0; d < pixels.rank; ++d) {
    const uint32_t from = pixels.rank - 1 - d;
    element(d + (nhwc ? 1 : 0), pixels.extent[from], size_t(pixels.x[from]), size_t(pixels.y[from]), 0);
  }
  row(0, groups, each * x.stride[channel], each * y.stride[channel]);
  s.row_channel = each;
  row(1, x.shape[0], x.stride[0], y.stride[0]);
  return gpu::plan_norm(&p, s, p.chosen);
}

skua_status record(const RecordArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  if (op.config.kind == SKUA_NORM_BATCH)
    return gpu::record_affine(args, channel_dimension(p), op.factors, size_t(op.config.channels));
  return gpu::record_norm(args, p.on_gpu, p.chosen, op.factors, size_t(op.config.channels));
}
void close(skua_op* op) { gpu::free_buffer(static_cast<Op*>(op)->factors); }
#endif

skua_status finish(const skua_op* op, skua_plan* plan) {
  SKUA_TRY(shape_plan(op, plan));
  if (element_count(plan->outputs[0])) SKUA_ON_GPU_HERE(op->ctx, gpu_plan(*static_cast<Plan*>(plan)));
  return SKUA_STATUS_OK;
}

// NHWC with statistics: scale and shift of each channel of each image.
size_t workspace(const skua_plan* plan, uint32_t) {
  const Plan& p = plan_of(plan);
  const Config& c = op_of(plan).config;
  if (plan->op->ctx->gpu || !has_statistics(c.kind) || c.layout != SKUA_LAYOUT_NHWC) return 0;
  return 2 * p.images * size_t(c.channels) * sizeof(float);
}

}  // namespace

extern const OpClass norm_class;
const OpClass norm_class = {
    .name = "norm", .id = 41,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = norm::run,
    .record = SKUA_RECORD(record), .close = SKUA_RECORD(close),
};

}  // namespace skua

using namespace skua;

extern "C" skua_status skua_norm_create(skua_context* context, const skua_norm_desc* desc, const float* gamma,
                                        const float* beta, const float* mean, const float* variance, skua_op** out) {
  skua_norm_desc d = {};
  SKUA_TRY(read_desc("norm", context, desc, d, out));
  SKUA_TRY(need_float("norm", "type", d.type));
  if (unsigned(d.kind) > SKUA_NORM_INSTANCE) return SKUA_INVALID("norm: kind is %d, unknown", int(d.kind));
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("norm: layout is %d, unknown", int(d.layout));
  if (by_rows(d.kind) && (d.axes < 1 || d.axes > SKUA_MAX_RANK))
    return SKUA_INVALID("norm: axes is %u, must be 1..%d", d.axes, SKUA_MAX_RANK);
  if (!d.channels) return SKUA_INVALID("norm: channels is 0, must be 1 or more");
  if (d.channels > SIZE_MAX / 16)
    return SKUA_INVALID("norm: channels is %zu, larger than the address space", d.channels);
  if (d.kind == SKUA_NORM_GROUP && (!d.groups || d.channels % d.groups))
    return SKUA_INVALID("norm: groups is %u, must divide channels = %zu", d.groups, d.channels);
  if (!(d.epsilon >= 0 && d.epsilon <= 3.402823466e38f))
    return SKUA_INVALID("norm: epsilon is %g, must be 0 or more and finite", double(d.epsilon));
  if (d.kind == SKUA_NORM_RMS && beta) return SKUA_INVALID("norm: beta is given, RMS has none");
  if (d.kind == SKUA_NORM_BATCH && !mean) return SKUA_INVALID("norm: mean is NULL, BATCH needs it");
  if (d.kind == SKUA_NORM_BATCH && !variance) return SKUA_INVALID("norm: variance is NULL, BATCH needs it");
  if (d.kind != SKUA_NORM_BATCH && mean) return SKUA_INVALID("norm: mean is given, only BATCH takes it");
  if (d.kind != SKUA_NORM_BATCH && variance) return SKUA_INVALID("norm: variance is given, only BATCH takes it");
  skua_op* base;
  SKUA_TRY(new_op(norm_class, context, 1, 1, d.channels * 2 * sizeof(float), &base));
  Op& op = *static_cast<Op*>(base);
  op.config.kind = uint32_t(d.kind);
  op.config.layout = uint32_t(d.layout);
  op.config.axes = d.axes;
  op.config.groups = d.groups;
  op.config.channels = d.channels;
  op.config.epsilon = d.epsilon;
  op.config.type = uint32_t(d.type);
  float *scale = static_cast<float*>(op_weights(base)), *shift = scale + d.channels;
  for (size_t c = 0; c < d.channels; ++c) {
    double g = gamma ? double(gamma[c]) : 1, b = beta ? double(beta[c]) : 0;
    if (d.kind == SKUA_NORM_BATCH) {
      g /= __builtin_sqrt(double(variance[c]) + double(d.epsilon));
      b -= double(mean[c]) * g;
    }
    scale[c] = float(g);
    shift[c] = float(b);
  }
  return open_op(base, out);
}
