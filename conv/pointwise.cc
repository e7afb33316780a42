// 1x1 convolutions whose pixels are rows with the same step from each to the next: the matrix product that they are,
// without regions and bands.
#include "conv/regions.h"

namespace skua {
namespace {

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  size_t rows;
  TaskGrid grid;
};

// Lines follow one another: with a stride, pixels may be as far apart across a hole behind a line.
bool dense(const DirectShape& s) {
  return s.in_pixel == s.in_channels && (s.out_h <= 1 || s.in_row == s.in_w * s.in_pixel);
}

// Fields by name: zeroing all of them first would take as long as a small product.
GemmBlock block_of(const DirectPlan& plan, const DirectShape& s, const DirectOperands& x, const GemmSegment* whole) {
  return {.tile = plan.tile,
          .format = format_of(plan.tile),
          .n = s.out_channels,
          .segment_count = 1,
          .k = s.in_channels,
          .segments = whole,
          .kc = plan.kc,
          .packed = x.packed,
          .packed_depth = s.in_channels,
          .in_place = nullptr,
          .ldb = 0,
          .alpha = 1,
          .beta = 0,
          .bias = x.bias,
          .activation = *x.activation,
          .residual = x.residual_mode,
          .a_step = ptrdiff_t(s.stride_w * s.in_pixel),
          .c_step = ptrdiff_t(s.out_pixel),
          .residual_step = ptrdiff_t(s.res_pixel),
          .more_panels = 0,
          .a_type = s.element,
          .c_type = s.result,
          .block_sums = s.numerics != SKUA_NUMERICS_FAST,
          .rows = plan.row_kernel,
          .scratch = nullptr,
          .dense = dense(s)};
}

void quantize(const DirectShape& s, const DirectOperands& x, GemmBlock& g) {
  if (x.quantized) quantize_block(s, *x.quantized, 0, x.quantized->offsets, g);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DirectShape& s = *r.s;
  const DirectOperands& x = *r.x;
  const size_t column = index % r.grid.columns, piece = index / r.grid.columns % r.grid.rows,
               image = index / r.grid.columns / r.grid.rows;
  const GemmSegment whole = {0, 0};
  GemmBlock g = block_of(*r.plan, s, x, &whole);
  g.scratch = static_cast<char*>(x.workspace) + worker * r.plan->scratch;
  const void *in = at(x.in, s.element, ptrdiff_t(image * s.in_batch)),
             *residual = x.residual ? at(x.residual, s.result, ptrdiff_t(image * s.res_batch)) : nullptr;
  void* out = at(x.out, s.result, ptrdiff_t(image * s.out_batch));
  const size_t m1 = piece_begin(r.rows, r.grid.rows, piece + 1);
  const ColumnRange range = columns_of(r.grid, g.n, column);
  const size_t p0 = range.from / g.format.nr, p1 = ceil_div(range.to, g.format.nr);
  g.from = range.from;
  g.to = range.to;
  quantize(s, x, g);
  if (r.plan->row) return run_row(g, {in, out, residual, 1}, p0, p1);
  g.tile = r.plan->tiles.here();
  run_block(g, piece_begin(r.rows, r.grid.rows, piece), m1, p0, p1, [&](size_t m) {
    return RowPointers{at(in, s.element, ptrdiff_t(m) * g.a_step), at(out, s.result, ptrdiff_t(m * s.out_pixel)),
                       residual ? at(residual, s.result, ptrdiff_t(m * s.res_pixel)) : nullptr, m1 - m};
  });
}

}  // namespace

void pointwise_plan(const DirectShape& s, bool function, DirectPlan& plan) {
  const bool one_row = s.out_h <= 1, one_column = s.out_w <= 1;
  const auto even = [&](size_t row, size_t pixel, size_t stride_h, size_t stride_w) {
    return one_row || row * stride_h == s.out_w * pixel * stride_w;
  };
  plan.flat = s.groups == 1 && (one_row || !one_column) && even(s.in_row, s.in_pixel, s.stride_h, s.stride_w) &&
              even(s.out_row, s.out_pixel, 1, 1) && even(s.res_row, s.res_pixel, 1, 1);
  const size_t scratch =
      scratch_on_cores(plan.tiles, s.element, s.result, function, s.out_h * s.out_w, s.out_channels, 1, s.in_channels);
  const bool bytes = table_of(plan.tile).bytes;
  plan.row = plan.flat && s.out_h * s.out_w == 1 && s.batch == 1 && has_row(plan.tile, s.out_channels, s.in_channels);
  if (plan.flat)
    plan.scratch = !plan.row ? round_up(scratch, 64)
                   : bytes   ? 0
                             : row_scratch(s.element, s.result, plan.tile, function, s.in_channels);
  plan.kc = depth_per_pass(plan.tile, 1, s.in_channels);
}

void pointwise_row(const DirectPlan& plan, const DirectShape& s, const DirectOperands& x, OnlyRow& row) {
  row.run = nullptr;
  if (!plan.row) return;
  GemmBlock g = block_of(plan, s, x, nullptr);
  quantize(s, x, g);
  prepare_row(g, x.activation, row);
}

void pointwise_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  if (plan.row && (args.concurrency() == 1 || plan.cycles < kAlone)) {
    GemmBlock g = block_of(plan, s, x, nullptr);
    g.scratch = x.workspace;
    quantize(s, x, g);
    return run_row(g, {x.in, x.out, x.residual, 1}, 0, panel_count(g.format, g.n));
  }
  Run r = {&plan, &s, &x, s.out_h * s.out_w, {1, 1, plan.tile->nr}};
  if (s.batch < args.workers())
    r.grid = cut_tasks(args, plan.grids[0], plan.tile, r.rows, r.rows, s.out_channels, s.in_channels);
  parallel(args, s.batch * r.grid.rows * r.grid.columns, task, &r);
}

}  // namespace skua
