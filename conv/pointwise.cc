// 1x1 convolutions whose pixels are rows with the same step from each to the next: the matrix product that they are, without regions and bands.
#include "conv/direct.h"

namespace skua {
namespace {

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  size_t rows, panels;
  TaskGrid grid;
};

void fill(const DirectPlan& plan, const DirectShape& s, const DirectOperands& x, const GemmSegment* whole, GemmBlock& g) {
  g.tile = plan.tile;
  g.format = format_of(plan.tile);
  g.n = s.out_channels;
  g.segment_count = 1;
  g.k = g.packed_depth = s.in_channels;
  g.segments = whole;
  g.kc = plan.kc;
  g.packed = x.packed;
  g.in_place = nullptr;
  g.ldb = 0;
  g.alpha = 1;
  g.beta = 0;
  g.bias = x.bias;
  g.activation = *x.activation;
  g.residual = x.residual_mode;
  g.a_type = g.c_type = s.element;
  g.block_sums = s.numerics != SKUA_NUMERICS_FAST;
  g.rows = plan.row_kernel;
  g.a_step = ptrdiff_t(s.stride_w * s.in_pixel);
  g.c_step = ptrdiff_t(s.out_pixel);
  g.residual_step = ptrdiff_t(s.res_pixel);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DirectShape& s = *r.s;
  const DirectOperands& x = *r.x;
  const size_t column = index % r.grid.columns, piece = index / r.grid.columns % r.grid.rows, image = index / r.grid.columns / r.grid.rows;
  const GemmSegment whole = {0, 0};
  GemmBlock g = {};
  fill(*r.plan, s, x, &whole, g);
  g.scratch = static_cast<char*>(x.workspace) + worker * r.plan->scratch;
  const void *in = at(x.in, s.element, ptrdiff_t(image * s.in_batch)), *residual = x.residual ? at(x.residual, s.element, ptrdiff_t(image * s.res_batch)) : nullptr;
  void* out = at(x.out, s.element, ptrdiff_t(image * s.out_batch));
  const size_t m1 = piece_begin(r.rows, r.grid.rows, piece + 1);
  run_block(g, piece_begin(r.rows, r.grid.rows, piece), m1, piece_begin(r.panels, r.grid.columns, column), piece_begin(r.panels, r.grid.columns, column + 1), [&](size_t m) {
    return RowPointers{at(in, s.element, ptrdiff_t(m) * g.a_step), at(out, s.element, ptrdiff_t(m * s.out_pixel)), residual ? at(residual, s.element, ptrdiff_t(m * s.res_pixel)) : nullptr,
                       m1 - m};
  });
}

}  // namespace

void pointwise_plan(const DirectShape& s, bool function, DirectPlan& plan) {
  const bool one_row = s.out_h <= 1, one_column = s.out_w <= 1;
  const auto even = [&](size_t row, size_t pixel, size_t stride_h, size_t stride_w) { return one_row || row * stride_h == s.out_w * pixel * stride_w; };
  plan.flat = s.groups == 1 && (one_row || !one_column) && even(s.in_row, s.in_pixel, s.stride_h, s.stride_w) && even(s.out_row, s.out_pixel, 1, 1) && even(s.res_row, s.res_pixel, 1, 1);
  const size_t scratch = staging(plan.tile, s.element, s.element, function, s.out_h * s.out_w, s.out_channels, 1, s.in_channels).bytes;
  plan.row = plan.flat && !scratch && one_row && one_column && s.batch == 1 && has_row(plan.tile, s.out_channels, s.in_channels);
  if (plan.flat) plan.scratch = round_up(scratch, 64);
  plan.kc = depth_per_pass(plan.tile, 1, s.in_channels);
}

void pointwise_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  if (plan.row && (args.concurrency() == 1 || plan.cycles < 30e3)) {
    GemmBlock g = {};
    fill(plan, s, x, nullptr, g);
    return run_row(g, {x.in, x.out, x.residual, 1});
  }
  Run r = {&plan, &s, &x, s.out_h * s.out_w, panel_count(format_of(plan.tile), s.out_channels), {1, 1}};
  if (s.batch < args.concurrency()) {
    const double cycles = gemm_cycles(plan.tile, r.rows, s.out_channels, s.in_channels);
    r.grid = cut_tasks(args, plan.tile, r.rows, ceil_div(r.rows, plan.tile->mr), s.out_channels, s.in_channels, cycles);
  }
  parallel(args, s.batch * r.grid.rows * r.grid.columns, task, &r);
}

}  // namespace skua
