// The pooling operator: its plan. The walk over outputs is in run.cc.
#include <skua/pool.h>

#include "core/families.h"
#include "core/quantize.h"
#include "gpu/operators.h"
#include "pooling/pool_kernel.h"
#include "pooling/pool_op.h"

namespace skua {
namespace pool {
namespace {

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  if (is_int8(Element(op.config.type))) {
    op.activation = op.f32_activation = {op.config.low, op.config.high, nullptr, 0, 0};
    return SKUA_STATUS_OK;
  }
  SKUA_TRY(resolve_activation(base, op.config.activation, op.f32_activation));
  return resolve_activation(base, op.config.activation, op.activation, Element(op.config.type));
}

constexpr size_t kMostTapsOfBytes = size_t(1) << 23;  // their sum and that of the zero points fit 32 bits

constexpr double kLargestScratch = 1 << 20;  // floats of a worker

// Input rows that a band of output rows needs, at most.
size_t band_rows(const Window1d& w, size_t band) { return min((band - 1) * w.stride + w.span(), w.in); }
// Output rows that so many input rows are enough for. (No loop: rows of no channels, and rows that padding makes, may
// be any number.)
size_t band_of(const Window1d& w, size_t rows) {
  return rows >= w.in ? w.out : rows < w.span() ? 0 : min((rows - w.span()) / w.stride + 1, w.out);
}

// The kernel that transposes vectors of this length; NULL if the kernel filter leaves none.
const Kernel* transposer(const skua_context* ctx, int variant, size_t vector, Element element) {
  struct Search { size_t vector; const Kernel* found; } s = {vector, nullptr};
  each_kernel(ctx, pooling_tables, KernelKind::pool_transpose, variant, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!s.found && k->vector == s.vector) s.found = k;
  }, &s, element);
  return s.found;
}

// The kernel for rows of windows whose vectors these channels are, of half of the longest at least (Zen 5: 112x112x24
// 30 us by windows, 22 by rows and AVX2's); NULL: none.
const Kernel* row_kernel(const skua_context* ctx, KernelKind kind, size_t channels, Element element) {
  struct Search { size_t channels, longest; const Kernel* found; } s = {channels, 0, nullptr};
  each_kernel(ctx, pooling_tables, kind, 1, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    s.longest = max(s.longest, size_t(k->vector));
    if (!s.found && s.channels % k->vector == 0 && 2 * size_t(k->vector) >= s.longest) s.found = k;
  }, &s, element);
  return s.found;
}

// Whether windows of rows first and of columns then take so much less that what lies between is repaid; `band` output
// rows if it is given, of `n` channels. Of sums f32 only, whose order is the same.
void plan_separable(const Config& c, size_t band, size_t n, Plan& p) {
  const Element element = p.kernel->element;
  const bool may = c.kind == SKUA_POOL_MAX || (c.kind == SKUA_POOL_AVERAGE && element == Element::f32);
  if (!may || p.rows_kernel || p.y.dilation != 1 || !p.y.out || !p.x.out || p.y.kernel < 2 || p.x.kernel < 2) return;
  const size_t bytes = element_bytes(element);
  constexpr size_t kBlock = 384;  // bytes of a block at least: a pass over a window
  size_t blocks = 1;
  if (!band) {
    const size_t line = 64 / bytes, limit = machine_for(p.kernel->isa).l2 / 4;
    blocks = max(n * bytes / kBlock, 1);
    n = ceil_div(n / line, blocks) * line + (n % line);
    band = max(min(p.y.out, p.y.kernel), band_of(p.y, limit / max(mul_sat(p.x.out, n * bytes), 1)));
  }
  // In loads of a vector: a window begins and ends in as long as some (measured on a Zen 5), what lies between is
  // written and read.
  const double vectors = max(double(n * bytes) / double(p.kernel->vector * sizeof(float)), 1.0),
               rows = double(band_rows(p.y, band)), again = rows / double(band),
               ends = c.kind == SKUA_POOL_MAX ? 7 : 13;
  const double whole = double(p.y.kernel) * double(p.x.kernel) * vectors + ends,
               apart = (double(p.x.kernel) * vectors + ends) * again + double(p.y.kernel) * vectors + ends +
                       vectors * again;
  // beyond L2 a window waits less for loads than for what it has not read yet
  const double map = double(p.y.in + p.y.out) * double(p.x.in) * double(p.channels) * bytes;
  if (whole < (map > double(machine_for(p.kernel->isa).l2) ? 1.8 : 1.35) * apart ||
      rows * double(p.x.out) * double(n) * bytes > kLargestScratch * sizeof(float))
    return;
  p.separable_band = band;
  p.separable_blocks = blocks;
  p.separable_bytes = round_up(size_t(rows) * p.x.out * n * bytes, 64);
}

// Outputs of an axis with every tap inside: [begin, end).
void inner_outputs(const Window1d& w, size_t& begin, size_t& end) {
  const size_t reach = w.in + w.pad_before;
  end = reach >= w.span() ? min((reach - w.span()) / w.stride + 1, w.out) : 0;
  begin = min(ceil_div(w.pad_before, w.stride), end);
}

// Results so far that leave the first level are dear on some cores (Sapphire Rapids, time by rows of input over this:
// maxima of 28x28x192 1.8, of 14x14x480 1.8, of 112x112x64 1.5; averages of 35x35x192 to 320 1.4 to 1.9. With a stride
// of 2 it is level where a map stays in L2, 1.2 times as long beyond; other cores that are not known: supposed).
void plan_down(const skua_op* op, KernelKind kind, bool nchw, const Machine& machine, Plan& p) {
  const auto three = [](const Window1d& w) { return w.kernel == 3 && w.stride == 1 && w.dilation == 1; };
  if (!p.rows_kernel || nchw || !three(p.y) || !three(p.x)) return;
  inner_outputs(p.y, p.inner_rows_begin, p.inner_rows_end);
  if (p.inner_rows_end - p.inner_rows_begin < 2 || p.inner_end - p.inner_begin < kPoolDownPixels) return;
  const Kernel* k = find_kernel(op->ctx, pooling_tables, kind, 2, Element::f32);
  if (!k || k->vector != p.rows_kernel->vector) return;
  const bool named = op->ctx->filter[0] && glob_match(op->ctx->filter, k->name);
  if (named || machine.write_back > 1) p.down_kernel = k;
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_shape(base, c, s, p, p.outputs));
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW;
  inner_outputs(p.x, p.inner_begin, p.inner_end);
  const bool bytes = is_int8(Element(c.type));
  if (bytes && c.kind == SKUA_POOL_AVERAGE && mul_sat(p.y.kernel, p.x.kernel) > kMostTapsOfBytes)
    return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu bytes, more than %zu", base->cls->name, p.y.kernel, p.x.kernel,
                             kMostTapsOfBytes);
  const KernelKind kinds[] = {KernelKind::pool_max, KernelKind::pool_average, KernelKind::pool_indices};
  const Element element = Element(c.type);
  const Kernel* f32 = find_kernel(op.ctx, pooling_tables, kinds[c.kind], 0);
  p.kernel = find_kernel(op.ctx, pooling_tables, kinds[c.kind], 0, element);
  if (!p.kernel) return SKUA_UNSUPPORTED_("%s: no kernel in this build", base->cls->name);
  const Machine machine = machine_for(p.kernel->isa);
  p.in_any_order = machine.l2_bytes > 48 ? machine.l1 + machine.l1 / 2 : SIZE_MAX;
  // Windows that share rows: each row is read once, and put together once; results so far are read and written again,
  // which more than three windows over a row, and maps of a few outputs, do not repay.
  // The first and the last window of a row have the fewest taps.
  const auto columns = [&](size_t x) { return p.x.end_tap(x) - p.x.first_tap(x); };
  const size_t fewest = p.x.out ? min(columns(0), columns(p.x.out - 1)) : 0;
  const bool share = p.y.stride < p.y.kernel && ceil_div(p.y.kernel, p.y.stride) <= 3 && p.y.dilation == 1 &&
                     p.x.dilation == 1 && min(p.y.out, p.x.out) > 3;
  if (share && fewest >= kPoolRowTaps[0] && p.x.kernel <= kPoolRowTaps[1])
    // none of positions, bytes and halves
    p.rows_kernel = nchw ? find_kernel(op.ctx, pooling_tables, kinds[c.kind], 1, Element::f32)
                         : row_kernel(op.ctx, kinds[c.kind], p.channels, element);
  plan_down(base, kinds[c.kind], nchw, machine, p);
  // Floats hold a maximum of bytes as it is, of an average not every sum.
  const bool in_place = bytes && c.kind == SKUA_POOL_AVERAGE;
  p.algorithm = !nchw ? "channels" : in_place ? "planes_in_place" : "planes";
  if (in_place) return SKUA_STATUS_OK;
  if (!nchw) plan_separable(c, 0, p.channels, p);
  if (p.separable_band) p.algorithm = "separable";
  if (!nchw || !p.y.out || !p.x.out) return SKUA_STATUS_OK;
  p.from_planes = transposer(op.ctx, 0, f32->vector, element);
  p.to_planes = transposer(op.ctx, 1, f32->vector, element);
  p.indices_to_planes = transposer(op.ctx, 1, f32->vector, Element::f32);
  const double vector = f32->vector;
  if (!p.from_planes || !p.to_planes || !p.indices_to_planes ||
      double(band_rows(p.y, 1)) * double(p.x.in) * vector > kLargestScratch ||
      double(p.x.out) * vector > kLargestScratch) {
    p.algorithm = "planes_in_place";
    return SKUA_STATUS_OK;
  }
  p.kernel = f32;
  // As many rows as fit beside their outputs in an eighth of the second-level cache, so that few input rows are copied
  // twice; one at least.
  const size_t line = p.x.in * p.kernel->vector, out_line = p.x.out * p.kernel->vector * p.n_outputs,
               limit = machine_for(p.kernel->isa).l2 / 8 / sizeof(float);
  p.band = 1;
  while (p.band < p.y.out && band_rows(p.y, p.band + 1) * line + (p.band + 1) * out_line <= limit) ++p.band;
  p.band_in = band_rows(p.y, p.band);
  p.scratch_in = round_up(p.band_in * line, 16);
  p.scratch_out = round_up(p.band * out_line, 16);
  plan_separable(c, p.band, p.kernel->vector, p);
  if (p.separable_band) p.algorithm = "separable_planes";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_map(base, op_of(&p).config, "output", 0, p.outputs[0], p.out));
  if (p.n_outputs > 1) SKUA_TRY(pool_map(base, op_of(&p).config, "output", 1, p.outputs[1], p.indices));
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  return mul_sat(worker_bytes(plan_of(plan)), concurrency);
}

const OpClass pool2d_class = {
    .name = "pool2d", .id = 5,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
};

}  // namespace
}  // namespace pool
}  // namespace skua

using namespace skua;
using namespace skua::pool;

extern "C" skua_status skua_pool2d_create(skua_context* context, const skua_pool2d_desc* desc, skua_op** out) {
  skua_pool2d_desc d;
  SKUA_TRY(read_desc("pool2d", context, desc, d, out));
  const bool bytes = is_int8(Element(d.type));
  SKUA_TRY(bytes ? need_int8("pool2d", "type", d.type) : need_float("pool2d", "type", d.type, true));
  SKUA_TRY(need_quantization_of("pool2d", "input_q", d.input_q, d.type));
  SKUA_TRY(need_quantization_of("pool2d", "output_q", d.output_q, d.type));
  SKUA_TRY(check_activation("pool2d", d.activation));
  if (unsigned(d.kind) > SKUA_POOL_MAX_INDICES) return SKUA_INVALID("pool2d: kind is %d, unknown", int(d.kind));
  if (bytes && d.kind != SKUA_POOL_AVERAGE &&
      (d.input_q.scale != d.output_q.scale || d.input_q.zero_point != d.output_q.zero_point))
    return SKUA_UNSUPPORTED_(
        "pool2d: input_q and output_q differ; a maximum keeps the quantisation, use convert for another");
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("pool2d: layout is %d, unknown", int(d.layout));
  if (!d.global)
    SKUA_TRY(
        check_window("pool2d", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w, d.padding));
  SKUA_ON_GPU(context, create_pool(context, d, out));
  skua_op* base;
  SKUA_TRY(new_op(pool2d_class, context, 1, d.kind == SKUA_POOL_MAX_INDICES ? 2 : 1, 0, &base));
  Config& c = static_cast<Op*>(base)->config;
  c = pool_config(d);
  if (bytes) {
    const skua_status s = pool_quantization(d, c);
    if (s != SKUA_STATUS_OK) {
      skua_op_destroy(base);
      return s;
    }
  }
  return open_op(base, out);
}
