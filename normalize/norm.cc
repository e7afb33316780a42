// Layer, RMS, batch, group and instance normalisation. See skua/normalize.h for the formulas, normalize/README.md for the way through.
#include <skua/normalize.h>

#include "core/families.h"
#include "core/nest.h"
#include "gpu/operators.h"
#include "normalize/norm_kernel.h"

namespace skua {
namespace {

struct Config {
  uint32_t kind, layout, axes, groups;
  uint64_t channels;
  float epsilon;
  uint32_t type;
};

struct Op : skua_op {
  Config config;
  const float *gamma, *beta;  // BATCH: the factors of y = x * gamma + beta, with mean and variance in them
  const Kernel *rows, *sum, *squares, *affine;
  skua_device_buffer* factors;  // on a GPU: gamma, rounded up to 4 values, and beta
};

struct Plan : skua_plan {
  // LAYER, RMS: `rows` are the leading dimensions, `n` elements each.
  // NHWC: `rows` are the pixels (BATCH: of all images), `n` channels each; images are `image` apart.
  // NCHW: a channel's plane is rows x n, channels `channel` apart.
  Nest rows;
  size_t count;  // rows.count()
  size_t n;
  size_t images, x_image, y_image, x_channel, y_channel;
  gpu::NormShape on_gpu;
  gpu::Chosen chosen;
};

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

bool by_rows(uint32_t kind) { return kind == SKUA_NORM_LAYER || kind == SKUA_NORM_RMS; }
bool has_statistics(uint32_t kind) { return kind == SKUA_NORM_GROUP || kind == SKUA_NORM_INSTANCE; }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const Config& c = op.config;
  if (c.kind > SKUA_NORM_INSTANCE || c.type > SKUA_DTYPE_BF16 || c.layout > SKUA_LAYOUT_NCHW || !c.channels || c.channels > SIZE_MAX / 16 || op.weights_size != size_t(c.channels) * 2 * sizeof(float) ||
      (c.kind == SKUA_NORM_GROUP && (!c.groups || c.channels % c.groups)))
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "norm: packed weights have a wrong size");
  op.n_inputs = op.n_outputs = 1;
  op.gamma = static_cast<const float*>(op.weights);
  op.beta = op.gamma + c.channels;
  const bool nhwc = c.layout == SKUA_LAYOUT_NHWC;
  SKUA_ON_GPU(op.ctx, open_norm(op.ctx, &op, skua_dtype(c.type), op.gamma, op.beta, size_t(c.channels), &op.factors));
  bool found = true;
  auto find = [&](KernelKind kind, int variant) { return find_kernel(op.ctx, norm_tables, kind, variant, Element(c.type)); };
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
    if (channels != c.channels) return SKUA_INVALID("norm: input 0 has %zu elements in its last %u dimensions, channels is %zu", channels, c.axes, size_t(c.channels));
  } else {
    if (x.rank < 2) return SKUA_INVALID("norm: input 0 has rank %u, must be 2 or more", x.rank);
    channels = x.shape[c.layout == SKUA_LAYOUT_NHWC ? x.rank - 1 : 1];
    if (channels != c.channels) return SKUA_INVALID("norm: input 0 has %zu channels, the operator has %zu", channels, size_t(c.channels));
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
    if (p.n > 1 && (p.rows.x[inner] != 1 || p.rows.y[inner] != 1)) p.n = 1;  // planes one pixel wide: their rows stay rows
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
uint32_t channel_dimension(const Plan& p) { return op_of(&p).config.layout == SKUA_LAYOUT_NHWC ? p.inputs[0].rank - 1 : 1; }

skua_status gpu_plan(Plan& p) {
  const Config& c = op_of(&p).config;
  const skua_tensor &x = p.inputs[0], &y = p.outputs[0];
  if (c.kind == SKUA_NORM_BATCH) return gpu::plan_affine(&p, channel_dimension(p));
  gpu::NormShape& s = p.on_gpu;
  s = {{1, 1, 1}, {}, {}, {}, {1, 1, 1}, {}, {}, 0, c.kind == SKUA_NORM_RMS, c.epsilon};
  const auto element = [&](uint32_t d, size_t extent, size_t x_step, size_t y_step, size_t channel) { s.extent[d] = extent; s.x[d] = x_step; s.y[d] = y_step; s.channel[d] = channel; };
  const auto row = [&](uint32_t d, size_t extent, size_t x_step, size_t y_step) { s.rows[d] = extent; s.row_x[d] = x_step; s.row_y[d] = y_step; };
  if (by_rows(c.kind)) {
    element(0, size_t(c.channels), 1, 1, 1);
    if (p.rows.rank > 3) return SKUA_UNSUPPORTED_("norm: input 0 has strides with holes in more than 3 of its leading dimensions, which no kernel for GPUs takes");
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
  if (pixels.rank > 2) return SKUA_UNSUPPORTED_("norm: input 0 has strides with holes in more than 2 of its dimensions of pixels, which no kernel for GPUs takes");
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
  if (op.config.kind == SKUA_NORM_BATCH) return gpu::record_affine(args, channel_dimension(p), op.factors, size_t(op.config.channels));
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

struct Task {
  const Plan* plan;
  const Op* op;
  const char* x;
  char* y;
  size_t element;        // bytes
  float *scale, *shift;  // of all images
  size_t units, pieces;
};

void rows_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const size_t from = piece_begin(p.count, t.pieces, index), to = piece_begin(p.count, t.pieces, index + 1);
  const uint32_t last = p.rows.rank - 1;
  const ptrdiff_t bytes = ptrdiff_t(t.element);
  note_use(t.op->rows);
  walk(p.rows, from, to, [&](ptrdiff_t x, ptrdiff_t y, size_t rows) {
    code_of<NormRowsFn>(t.op->rows)(rows, p.n, t.x + x * bytes, size_t(p.rows.x[last]), t.y + y * bytes, size_t(p.rows.y[last]), t.op->gamma, t.op->beta, t.op->config.epsilon);
  });
}

// NHWC: pixels times scale plus shift; the factors are those of the image.
void pixels_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const size_t image = index / t.pieces, piece = index % t.pieces;
  const uint32_t last = p.rows.rank - 1;
  const float *scale = t.scale + image * p.n, *shift = t.shift + image * p.n;
  const ptrdiff_t bytes = ptrdiff_t(t.element);
  const char* const from = t.x + image * p.x_image * t.element;
  char* const to = t.y + image * p.y_image * t.element;
  note_use(t.op->affine);
  walk(p.rows, piece_begin(p.count, t.pieces, piece), piece_begin(p.count, t.pieces, piece + 1), [&](ptrdiff_t x, ptrdiff_t y, size_t pixels) {
    code_of<NormAffineFn>(t.op->affine)(pixels, p.n, from + x * bytes, size_t(p.rows.x[last]), to + y * bytes, size_t(p.rows.y[last]), scale, shift);
  });
}

size_t group_count(const Op& op) { return op.config.kind == SKUA_NORM_GROUP ? op.config.groups : size_t(op.config.channels); }

// Scale and shift of the channels [c0, c0 + channels), which share mean and squared deviations over `count` elements.
void set_factors(const Op& op, size_t c0, size_t channels, double mean, double squares, double count, float* scale, float* shift) {
  const double factor = 1 / __builtin_sqrt(squares / count + double(op.config.epsilon));
  for (size_t c = 0; c < channels; ++c) {
    const double s = factor * double(op.gamma[c0 + c]);
    scale[c] = float(s);
    shift[c] = float(double(op.beta[c0 + c]) - mean * s);
  }
}

// NHWC: statistics of some groups of an image, all pixels.
void statistics_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const Op& op = *t.op;
  const size_t image = index / t.pieces, piece = index % t.pieces, groups = group_count(op), each = p.n / groups;
  const size_t g0 = piece_begin(groups, t.pieces, piece), g1 = piece_begin(groups, t.pieces, piece + 1), c0 = g0 * each, channels = (g1 - g0) * each;
  if (g0 == g1) return;
  const uint32_t last = p.rows.rank - 1;
  // Until the factors are there, shift holds the means and scale the sums.
  float *scale = t.scale + image * p.n + c0, *shift = t.shift + image * p.n + c0;
  const char* const from = t.x + (image * p.x_image + c0) * t.element;
  auto sums = [&](const Kernel* kernel, const float* mean, float* to) {
    bool add = false;
    note_use(kernel);
    walk(p.rows, 0, p.count, [&](ptrdiff_t x, ptrdiff_t, size_t pixels) {
      code_of<NormSumColumnsFn>(kernel)(pixels, channels, from + x * ptrdiff_t(t.element), size_t(p.rows.x[last]), mean, to, add);
      add = true;
    });
  };
  const double count = double(p.count) * double(each);
  sums(op.sum, nullptr, shift);
  for (size_t g = 0; g < g1 - g0; ++g) {
    double sum = 0;
    for (size_t c = 0; c < each; ++c) sum += double(shift[g * each + c]);
    for (size_t c = 0; c < each; ++c) shift[g * each + c] = float(sum / count);
  }
  sums(op.squares, shift, scale);
  for (size_t g = 0; g < g1 - g0; ++g) {
    double squares = 0;
    for (size_t c = 0; c < each; ++c) squares += double(scale[g * each + c]);
    set_factors(op, c0 + g * each, each, double(shift[g * each]), squares, count, scale + g * each, shift + g * each);
  }
}

// NCHW: groups of channels (BATCH: single channels), each with its statistics, of all images.
void planes_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const Op& op = *t.op;
  const size_t groups = group_count(op), each = size_t(op.config.channels) / groups;
  const uint32_t last = p.rows.rank - 1;
  note_use(op.affine);
  for (size_t u = piece_begin(t.units, t.pieces, index); u < piece_begin(t.units, t.pieces, index + 1); ++u) {
    const size_t image = u / groups, c0 = u % groups * each;
    const ptrdiff_t bytes = ptrdiff_t(t.element);
    const char* x = t.x + (image * p.x_image + c0 * p.x_channel) * t.element;
    char* y = t.y + (image * p.y_image + c0 * p.y_channel) * t.element;
    double mean = 0, squares = 0;
    const double count = double(p.count) * double(p.n) * double(each);
    if (has_statistics(op.config.kind)) {
      auto sums = [&](const Kernel* kernel, float about) {
        double total = 0;
        note_use(kernel);
        for (size_t c = 0; c < each; ++c)
          walk(p.rows, 0, p.count, [&](ptrdiff_t off, ptrdiff_t, size_t rows) {
            total += double(code_of<NormSumRowsFn>(kernel)(rows, p.n, x + (ptrdiff_t(c * p.x_channel) + off) * bytes, size_t(p.rows.x[last]), about));
          });
        return total;
      };
      mean = double(float(sums(op.sum, 0) / count));
      squares = sums(op.squares, float(mean));
    }
    for (size_t c = 0; c < each; ++c) {
      float scale = op.gamma[c0 + c], shift = op.beta[c0 + c];
      if (has_statistics(op.config.kind)) set_factors(op, c0 + c, 1, mean, squares, count, &scale, &shift);
      walk(p.rows, 0, p.count, [&](ptrdiff_t x_off, ptrdiff_t y_off, size_t rows) {
        code_of<NormAffineFn>(op.affine)(rows, p.n, x + (ptrdiff_t(c * p.x_channel) + x_off) * bytes, size_t(p.rows.x[last]), y + (ptrdiff_t(c * p.y_channel) + y_off) * bytes, size_t(p.rows.y[last]), &scale, &shift);
      });
    }
  }
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  const Config& c = op.config;
  if (element_count(p.outputs[0]) == 0) return;
  Task t = {&p, &op, args.in<char>(0), args.out<char>(0), element_bytes(Element(c.type)), nullptr, nullptr, 1, 1};
  const double row_cycles = double(p.n) * 0.3;  // one pass, from the second-level cache
  if (by_rows(c.kind)) {
    t.pieces = pieces_for(args, p.count, 3 * row_cycles + 40);
    parallel(args, t.pieces, rows_task, &t);
  } else if (c.layout == SKUA_LAYOUT_NCHW) {
    t.units = p.images * group_count(op);
    const double plane = row_cycles * double(p.count) * double(c.channels / group_count(op));
    t.pieces = pieces_for(args, t.units, has_statistics(c.kind) ? 3 * plane + 60 : plane + 10);
    parallel(args, t.pieces, planes_task, &t);
  } else {
    t.scale = const_cast<float*>(op.gamma);
    t.shift = const_cast<float*>(op.beta);
    if (has_statistics(c.kind)) {
      t.scale = static_cast<float*>(args.workspace);
      t.shift = t.scale + p.images * p.n;
      const size_t groups = group_count(op);
      // At least a few cache lines of channels a task.
      const size_t units = min(groups, ceil_div(p.n, 64));
      t.pieces = min(units, ceil_div(pieces_for(args, units * p.images, 2 * row_cycles * double(p.count) / double(units)), p.images));
      parallel(args, t.pieces * p.images, statistics_task, &t);
    }
    t.pieces = ceil_div(pieces_for(args, p.count * p.images, row_cycles + 4), p.images);
    parallel(args, t.pieces * p.images, pixels_task, &t);
  }
}

}  // namespace

extern const OpClass norm_class;
const OpClass norm_class = {"norm", 41, sizeof(Op), sizeof(Plan), offsetof(Op, config), sizeof(Config), true, open, make_plan, finish, workspace, run, nullptr, nullptr, SKUA_RECORD(record), SKUA_RECORD(close)};

}  // namespace skua

using namespace skua;

extern "C" skua_status skua_norm_create(skua_context* context, const skua_norm_desc* desc, const float* gamma, const float* beta, const float* mean, const float* variance,
                                        skua_op** out) {
  skua_norm_desc d = {};
  SKUA_TRY(read_desc("norm", context, desc, d, out));
  SKUA_TRY(need_float("norm", "type", d.type));
  if (unsigned(d.kind) > SKUA_NORM_INSTANCE) return SKUA_INVALID("norm: kind is %d, unknown", int(d.kind));
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("norm: layout is %d, unknown", int(d.layout));
  if (by_rows(d.kind) && (d.axes < 1 || d.axes > SKUA_MAX_RANK)) return SKUA_INVALID("norm: axes is %u, must be 1..%d", d.axes, SKUA_MAX_RANK);
  if (!d.channels) return SKUA_INVALID("norm: channels is 0, must be 1 or more");
  if (d.channels > SIZE_MAX / 16) return SKUA_INVALID("norm: channels is %zu, larger than the address space", d.channels);
  if (d.kind == SKUA_NORM_GROUP && (!d.groups || d.channels % d.groups)) return SKUA_INVALID("norm: groups is %u, must divide channels = %zu", d.groups, d.channels);
  if (!(d.epsilon >= 0 && d.epsilon <= 3.402823466e38f)) return SKUA_INVALID("norm: epsilon is %g, must be 0 or more and finite", double(d.epsilon));
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
