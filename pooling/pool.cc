// Pooling: shapes, and the walk over outputs. NHWC: runs of neighbouring outputs whose windows lie alike inside the image go to a kernel. NCHW: the rows of a
// window are combined first, over the whole line with the same kernels (a line is then one pixel whose channels are the columns), then its columns.
#include <math.h>
#include <skua/pool.h>
#include "core/activation.h"
#include "core/families.h"
#include "core/window.h"
#include "pooling/pool_kernel.h"

namespace skua {
namespace {

struct Config {
  skua_pool_kind kind;
  skua_layout layout;
  bool global, ceil_mode, count_padding;
  uint32_t kernel[2], stride[2], dilation[2];
  skua_padding padding;
  skua_activation activation;
};

struct Op : skua_op {
  Config config;
  Activation activation;
};

// Steps of a feature map in floats.
struct Map {
  size_t image, row, pixel, plane;  // NHWC: plane 0; NCHW: pixel 1
};

struct Plan : skua_plan {
  Window1d y, x;
  size_t batch, channels;
  size_t inner_begin, inner_end;  // outputs of a row with every tap inside
  Map in, out, indices;
  const Kernel* line;  // NCHW
};

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  return resolve_activation(base, op.config.activation, op.activation);
}

skua_status map_of(const skua_op* base, const char* what, size_t index, const skua_tensor& t, Map& m) {
  const bool nchw = static_cast<const Op*>(base)->config.layout == SKUA_LAYOUT_NCHW, flat = t.rank == 3;
  if (t.shape[t.rank - 1] > 1 && t.stride[t.rank - 1] != 1) return SKUA_INVALID("%s: %s %zu has innermost stride %zu, must be 1", base->cls->name, what, index, t.stride[t.rank - 1]);
  m.image = t.stride[0];
  m.row = flat ? 0 : t.stride[nchw ? 2 : 1];
  m.pixel = nchw ? 1 : t.stride[t.rank - 2];
  m.plane = nchw ? t.stride[1] : 0;
  return SKUA_STATUS_OK;
}

// Every window must have a pixel of the image in it. Padding shorter than the window's reach ensures that, unless the image fits between two taps.
skua_status check_touches(const skua_op* op, const char* dimension, const Window1d& w) {
  if (w.pad_before >= w.span() || w.pad_after >= w.span())
    return SKUA_INVALID("%s: padding of the %s is %zu and %zu, must be less than the window, which reaches over %zu", op->cls->name, dimension, w.pad_before, w.pad_after, w.span());
  if (w.in < w.dilation)
    for (size_t o = 0; o < w.out; ++o)
      if (w.first_tap(o) >= w.end_tap(o)) return SKUA_INVALID("%s: the input's %s of %zu lies between two taps of a window with dilation %zu", op->cls->name, dimension, w.in, w.dilation);
  return SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& t = s.inputs[0];
  SKUA_TRY(need_type(base, s, 0, SKUA_DTYPE_F32));
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW, flat = t.rank == 3;
  if (t.rank != 4 && !(flat && (c.global || c.kernel[0] == 1))) return SKUA_INVALID("%s: input 0 has rank %u, must be 4 (or 3 when kernel_h is 1)", base->cls->name, t.rank);
  SKUA_TRY(map_of(base, "input", 0, t, p.in));
  const uint32_t dw = nchw ? t.rank - 1 : t.rank - 2, dc = nchw ? 1 : t.rank - 1;
  const size_t h = flat ? 1 : t.shape[dw - 1], w = t.shape[dw];
  p.batch = t.shape[0];
  p.channels = t.shape[dc];
  if (c.global) {
    if ((!h || !w) && p.batch && p.channels) return SKUA_INVALID("%s: input 0 has no pixels, a global window needs some", base->cls->name);
    p.y = {h, 1, h, 1, 1, 0, 0};
    p.x = {w, 1, w, 1, 1, 0, 0};
  } else {
    Window1d both[2];
    SKUA_TRY(make_windows(base->cls->name, {h, w}, c.kernel, c.stride, c.dilation, c.padding, c.ceil_mode, both));
    p.y = both[0];
    p.x = both[1];
    SKUA_TRY(check_touches(base, "height", p.y));
    SKUA_TRY(check_touches(base, "width", p.x));
  }
  const size_t reach = p.x.in + p.x.pad_before;
  p.inner_end = reach >= p.x.span() ? min((reach - p.x.span()) / p.x.stride + 1, p.x.out) : 0;
  p.inner_begin = min(ceil_div(p.x.pad_before, p.x.stride), p.inner_end);
  size_t plane = 0;
  if (c.kind == SKUA_POOL_MAX_INDICES && (!mul(h, w, plane) || plane > INT32_MAX)) return SKUA_INVALID("%s: input 0 has planes of %zu x %zu, positions do not fit s32", base->cls->name, h, w);
  skua_tensor& y = p.outputs[0];
  y = tensor(SKUA_DTYPE_F32, t.rank);
  y.shape[0] = p.batch;
  y.shape[dc] = p.channels;
  y.shape[dw] = p.x.out;
  if (!flat) y.shape[dw - 1] = p.y.out;
  if (c.kind == SKUA_POOL_MAX_INDICES) {
    p.outputs[1] = y;
    p.outputs[1].type = SKUA_DTYPE_S32;
  }
  const KernelKind kinds[] = {KernelKind::pool_max, KernelKind::pool_average, KernelKind::pool_indices};
  if (nchw && c.kind == SKUA_POOL_MAX_INDICES) {
    p.algorithm = "plain";  // no vector kernel
    return SKUA_STATUS_OK;
  }
  p.kernel = find_kernel(op.ctx, pooling_tables, kinds[c.kind]);
  if (nchw) p.line = find_kernel(op.ctx, pooling_tables, KernelKind::pool_line, int(c.kind));
  p.algorithm = nchw ? "rows_then_columns" : "channels";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(map_of(base, "output", 0, p.outputs[0], p.out));
  if (p.n_outputs > 1) SKUA_TRY(map_of(base, "output", 1, p.outputs[1], p.indices));
  return SKUA_STATUS_OK;
}

size_t line_bytes(const Plan& p) { return p.line ? round_up(p.x.in * sizeof(float), 64) : 0; }
size_t workspace(const skua_plan* plan, uint32_t concurrency) { return line_bytes(plan_of(plan)) * concurrency; }

struct Run {
  const RunArgs* args;
  const float* in;
  float* out;
  int32_t* indices;
  size_t blocks, pieces;  // of channels
};

// Taps of output o that average pooling divides by.
size_t counted(const Window1d& w, bool count_padding, size_t o) {
  if (!count_padding) return w.end_tap(o) - w.first_tap(o);
  return min(ceil_div(w.in + w.pad_before + w.pad_after - o * w.stride, w.dilation), w.kernel);
}

// One row of outputs, channels [c0, c1) of NHWC.
void row_nhwc(const Run& r, const Plan& p, size_t image, size_t oy, size_t c0, size_t c1) {
  const Op& op = op_of(&p);
  const Config& c = op.config;
  const PoolFn fn = code_of<PoolFn>(p.kernel);
  const size_t ky = p.y.first_tap(oy), top = oy * p.y.stride + ky * p.y.dilation - p.y.pad_before, count_y = counted(p.y, c.count_padding, oy);
  PoolPixels t = {};
  t.rows = p.y.end_tap(oy) - ky;
  t.row = p.y.dilation * p.in.row;
  t.tap = p.x.dilation * p.in.pixel;
  t.pixel = p.x.stride * p.in.pixel;
  t.channels = c1 - c0;
  t.low = op.activation.low; t.high = op.activation.high;
  t.out_pixel = p.out.pixel;
  t.indices_pixel = p.indices.pixel;
  t.index_row = uint32_t(p.y.dilation * p.x.in);
  t.index_tap = uint32_t(p.x.dilation);
  t.index_pixel = uint32_t(p.x.stride);
  for (size_t x = 0, end; x < p.x.out; x = end) {
    const size_t kx = p.x.first_tap(x), last = p.x.end_tap(x), count_x = counted(p.x, c.count_padding, x);
    end = x == p.inner_begin && x < p.inner_end ? p.inner_end : x + 1;
    const size_t left = x * p.x.stride + kx * p.x.dilation - p.x.pad_before;
    t.columns = last - kx;
    t.in = r.in + image * p.in.image + top * p.in.row + left * p.in.pixel + c0;
    t.pixels = end - x;
    t.scale = 1.0f / float(count_y * count_x);
    t.out = r.out + image * p.out.image + oy * p.out.row + x * p.out.pixel + c0;
    if (r.indices) t.indices = r.indices + image * p.indices.image + oy * p.indices.row + x * p.indices.pixel + c0;
    t.index = uint32_t(top * p.x.in + left);
    fn(t);
    if (op.activation.kernel)
      for (size_t i = 0; i < t.pixels; ++i) apply_row(op.activation, t.channels, t.out + i * t.out_pixel);
  }
}

// One row of outputs of one plane of NCHW.
void row_nchw(const Run& r, const Plan& p, size_t image, size_t channel, size_t oy, float* line) {
  const Op& op = op_of(&p);
  const Config& c = op.config;
  const size_t ky = p.y.first_tap(oy), rows = p.y.end_tap(oy) - ky, top = oy * p.y.stride + ky * p.y.dilation - p.y.pad_before, count_y = counted(p.y, c.count_padding, oy);
  PoolPixels t = {};
  t.in = r.in + image * p.in.image + channel * p.in.plane + top * p.in.row;
  t.rows = rows;
  t.row = p.y.dilation * p.in.row;
  t.columns = 1;
  t.pixels = 1;
  t.channels = p.x.in;
  t.scale = 1;
  t.low = -INFINITY; t.high = INFINITY;
  t.out = line;
  code_of<PoolFn>(p.kernel)(t);
  float* out = r.out + image * p.out.image + channel * p.out.plane + oy * p.out.row;
  for (size_t x = 0, end; x < p.x.out; x = end) {
    const size_t kx = p.x.first_tap(x), last = p.x.end_tap(x), count_x = counted(p.x, c.count_padding, x);
    end = x == p.inner_begin && x < p.inner_end ? p.inner_end : x + 1;
    const float scale = c.kind == SKUA_POOL_AVERAGE ? 1.0f / float(count_y * count_x) : 1.0f;
    code_of<PoolLineFn>(p.line)({line + x * p.x.stride + kx * p.x.dilation - p.x.pad_before, last - kx, p.x.dilation, p.x.stride, end - x, scale, op.activation.low, op.activation.high, out + x});
  }
  if (op.activation.kernel) apply_row(op.activation, p.x.out, out);
}

void row_nchw_indices(const Run& r, const Plan& p, size_t image, size_t channel, size_t oy) {
  const Op& op = op_of(&p);
  const float* in = r.in + image * p.in.image + channel * p.in.plane;
  float* out = r.out + image * p.out.image + channel * p.out.plane + oy * p.out.row;
  int32_t* indices = r.indices + image * p.indices.image + channel * p.indices.plane + oy * p.indices.row;
  const size_t ky0 = p.y.first_tap(oy), ky1 = p.y.end_tap(oy), top = oy * p.y.stride - p.y.pad_before;  // may wrap; inside again with a tap's offset
  for (size_t x = 0; x < p.x.out; ++x) {
    const size_t kx0 = p.x.first_tap(x), kx1 = p.x.end_tap(x), left = x * p.x.stride - p.x.pad_before;
    float best = 0;
    size_t at = SIZE_MAX;
    for (size_t ky = ky0; ky < ky1; ++ky)
      for (size_t kx = kx0; kx < kx1; ++kx) {
        const size_t iy = top + ky * p.y.dilation, ix = left + kx * p.x.dilation;
        const float v = in[iy * p.in.row + ix];
        if (at != SIZE_MAX && (v <= best || best != best)) continue;
        best = v;
        at = iy * p.x.in + ix;
      }
    best = best < op.activation.low ? op.activation.low : best;
    out[x] = best > op.activation.high ? op.activation.high : best;
    indices[x] = int32_t(at);
  }
  if (op.activation.kernel) apply_row(op.activation, p.x.out, out);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  const Op& op = op_of(&p);
  const bool nchw = op.config.layout == SKUA_LAYOUT_NCHW;
  if (p.kernel) note_use(p.kernel);
  if (p.line) note_use(p.line);
  if (op.activation.kernel) note_use(op.activation.kernel);
  const size_t units = p.batch * p.y.out * r.blocks;
  for (size_t u = piece_begin(units, r.pieces, index), end = piece_begin(units, r.pieces, index + 1); u < end; ++u) {
    if (!nchw) {
      const size_t block = u % r.blocks, oy = u / r.blocks % p.y.out, image = u / r.blocks / p.y.out;
      row_nhwc(r, p, image, oy, piece_begin(p.channels, r.blocks, block), piece_begin(p.channels, r.blocks, block + 1));
      continue;
    }
    const size_t oy = u % p.y.out, channel = u / p.y.out % p.channels, image = u / p.y.out / p.channels;
    if (p.line) row_nchw(r, p, image, channel, oy, reinterpret_cast<float*>(static_cast<char*>(r.args->workspace) + worker * line_bytes(p)));
    else row_nchw_indices(r, p, image, channel, oy);
  }
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  Run r = {};
  r.args = &args;
  r.in = args.in<float>(0);
  r.out = args.out<float>(0);
  if (p.n_outputs > 1) r.indices = args.out<int32_t>(1);
  const size_t rows = p.batch * p.y.out;
  if (!rows || !p.x.out || !p.channels) return;
  r.blocks = 1;
  if (op_of(&p).config.layout == SKUA_LAYOUT_NCHW) {
    r.blocks = p.channels;
  } else if (args.concurrency() > 1 && rows < 4 * args.concurrency()) {
    // Too few rows for the workers: cut the channels as well, in pieces of a pass or more.
    r.blocks = min(ceil_div(4 * args.concurrency(), rows), max(p.channels / (4 * p.kernel->vector), 1));
  }
  const size_t units = rows * r.blocks;
  const double taps = double(p.y.kernel) * double(p.x.kernel) * double(p.x.out) * double(p.channels) / double(r.blocks);
  r.pieces = pieces_for(args, units, taps / (p.kernel ? p.kernel->vector : 0.5) + 20);
  parallel(args, r.pieces, task, &r);
}

const OpClass pool2d_class = {"pool2d", 5, sizeof(Op), sizeof(Plan), offsetof(Op, config), sizeof(Config), false, open, make_plan, finish, workspace, run, nullptr};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_pool2d_create(skua_context* context, const skua_pool2d_desc* desc, skua_op** out) {
  skua_pool2d_desc d;
  SKUA_TRY(read_desc("pool2d", context, desc, d, out));
  SKUA_TRY(need_f32("pool2d", "type", d.type));
  SKUA_TRY(check_activation("pool2d", d.activation));
  if (unsigned(d.kind) > SKUA_POOL_MAX_INDICES) return SKUA_INVALID("pool2d: kind is %d, unknown", int(d.kind));
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("pool2d: layout is %d, unknown", int(d.layout));
  if (!d.global) SKUA_TRY(check_window("pool2d", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w, d.padding));
  skua_op* base;
  SKUA_TRY(new_op(pool2d_class, context, 1, d.kind == SKUA_POOL_MAX_INDICES ? 2 : 1, 0, &base));
  Config& c = static_cast<Op*>(base)->config;
  c.kind = d.kind;
  c.layout = d.layout;
  c.global = d.global;
  c.ceil_mode = d.ceil_mode;
  c.count_padding = d.count_padding;
  c.kernel[0] = d.kernel_h; c.kernel[1] = d.kernel_w;
  c.stride[0] = d.stride_h; c.stride[1] = d.stride_w;
  c.dilation[0] = d.dilation_h; c.dilation[1] = d.dilation_w;
  c.padding = d.padding;
  c.activation = d.activation;
  return open_op(base, out);
}
