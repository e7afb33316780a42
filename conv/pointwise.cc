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
  g.a_step = ptrdiff_t(s.stride_w * s.in_pixel);
  g.c_step = ptrdiff_t(s.out_pixel);
  g.residual_step = ptrdiff_t(s.res_pixel);
}

void task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const DirectShape& s = *r.s;
  const DirectOperands& x = *r.x;
  const size_t column = index % r.grid.columns, piece = index / r.grid.columns % r.grid.rows, image = index / r.grid.columns / r.grid.rows;
  const GemmSegment whole = {0, 0};
  GemmBlock g = {};
  fill(*r.plan, s, x, &whole, g);
  const float *in = x.in + image * s.in_batch, *residual = x.residual ? x.residual + image * s.res_batch : nullptr;
  float* out = x.out + image * s.out_batch;
  const size_t m1 = piece_begin(r.rows, r.grid.rows, piece + 1);
  run_block(g, piece_begin(r.rows, r.grid.rows, piece), m1, piece_begin(r.panels, r.grid.columns, column), piece_begin(r.panels, r.grid.columns, column + 1), [&](size_t m) {
    return RowPointers{in + m * size_t(g.a_step), out + m * s.out_pixel, residual ? residual + m * s.res_pixel : nullptr, m1 - m};
  });
}

}  // namespace

void pointwise_plan(const DirectShape& s, DirectPlan& plan) {
  const bool one_row = s.out_h <= 1, one_column = s.out_w <= 1;
  const auto even = [&](size_t row, size_t pixel, size_t stride_h, size_t stride_w) { return one_row || row * stride_h == s.out_w * pixel * stride_w; };
  plan.flat = s.groups == 1 && (one_row || !one_column) && even(s.in_row, s.in_pixel, s.stride_h, s.stride_w) && even(s.out_row, s.out_pixel, 1, 1) && even(s.res_row, s.res_pixel, 1, 1);
  plan.row = plan.flat && one_row && one_column && s.batch == 1 && has_row(plan.tile, s.out_channels, s.in_channels);
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
