// Runs what direct.cc planned: bands of a phase's lines, their regions one by one, panels of weights over all of them.
#include "conv/regions.h"

namespace skua {

void multiply_lines(GemmBlock& g, const DirectShape& s, const DirectOperands& x, const Phase& p, size_t image,
                    size_t group, const Lines& l, size_t p0, size_t p1) {
  const size_t oy = p.y.out_first + l.j * p.y.out_step, ox = p.x.out_first + l.i * p.x.out_step, columns = l.columns,
               channel = group * g.n;
  void* out = at(x.out, s.result, ptrdiff_t(image * s.out_batch + oy * s.out_row + ox * s.out_pixel + channel));
  const void* residual = x.residual ? at(x.residual, s.result,
                                         ptrdiff_t(image * s.res_batch + oy * s.res_row + ox * s.res_pixel + channel))
                                    : nullptr;
  const size_t out_y = p.y.out_step * s.out_row, residual_y = p.y.out_step * s.res_row;
  g.a_step = ptrdiff_t(l.in_x);
  g.c_step = ptrdiff_t(p.x.out_step * s.out_pixel);
  g.residual_step = ptrdiff_t(p.x.out_step * s.res_pixel);
  // Where a line follows the one before at the same steps, all lines are one.
  const bool one_line_of_c =
                 out_y == columns * size_t(g.c_step) && (!residual || residual_y == columns * size_t(g.residual_step)),
             one_line = l.in_y == columns * l.in_x && one_line_of_c;
  g.line = one_line ? 0 : columns;
  g.a_gap = ptrdiff_t(l.in_y) - ptrdiff_t(columns * l.in_x);
  g.c_gap = ptrdiff_t(out_y) - ptrdiff_t(columns) * g.c_step;
  g.residual_gap = ptrdiff_t(residual_y) - ptrdiff_t(columns) * g.residual_step;
  size_t next = SIZE_MAX, i = 0, j = 0;  // pixels come in order: divide only after a jump
  run_block<true>(g, 0, l.rows * columns, p0, p1, [&](size_t m) {
    if (m != next) { j = m ? m / columns : 0; i = m ? m % columns : 0; }
    const RowPointers q = {
        at(l.a, g.a_type, ptrdiff_t(j * l.in_y + i * l.in_x)),
        at(out, s.result, ptrdiff_t(j * out_y + i * size_t(g.c_step))),
        residual ? at(residual, s.result, ptrdiff_t(j * residual_y + i * size_t(g.residual_step))) : nullptr,
        one_line ? l.rows * columns - m : columns - i, one_line_of_c ? l.rows * columns - m : 0};
    if (++i == columns) { i = 0; ++j; }
    next = m + 1;
    return q;
  });
}

// The driver's scratch, strips, widened rows, lists.
static size_t worker_bytes(const DirectPlan& plan) {
  return plan.scratch + plan.strip + plan.wide +
         round_up(plan.segments * sizeof(GemmSegment) + plan.regions * sizeof(Region), 64) + plan.offsets;
}
size_t direct_workspace(const DirectPlan& plan, uint32_t concurrency) {
  return mul_sat(plan.gathers || plan.pads ? plan.gather_bytes
                 : plan.flat               ? plan.scratch
                                           : worker_bytes(plan),
                 concurrency);
}

namespace {

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  Phase phase;
  size_t first_tap;      // of the phase
  const float* packed;   // of the phase
  size_t bands, pieces;  // the plan's bands, tasks per band; or one band of pieces no larger than the plan's
  size_t across;         // parts of lines, where workers are more than lines
  TaskGrid grid;         // its pieces of columns
  bool own_columns;      // each worker has pieces of columns for itself: neighbouring tasks are all bands of one
};

// Rows of an image, as they lie in memory or widened; the first is row `first` of the image.
struct Image {
  const void* rows;
  Element element;
  size_t first, row, pixel;
  const void* at(ptrdiff_t y, ptrdiff_t x) const {
    return skua::at(rows, element, (y - ptrdiff_t(first)) * ptrdiff_t(row) + x * ptrdiff_t(pixel));
  }
};

// Input rows of an image under the taps of output rows [j0, j1).
struct Rows {
  size_t first, count;
};
Rows rows_under(const DirectPlan& plan, const Phase& p, size_t j0, size_t j1) {
  ptrdiff_t first = PTRDIFF_MAX, end = 0;
  each_region(plan, p, j0, j1, [&](const Region& r) {
    if (!r.y.taps || !r.x.taps) return;
    const ptrdiff_t y = p.y.first + ptrdiff_t(r.j * p.y.in_step) + ptrdiff_t(r.y.tap) * p.y.step,
                    to = y + ptrdiff_t(span(p.y, r.rows, r.y.taps));
    if (y < first) first = y;
    if (to > end) end = to;
  });
  if (first < 0) first = 0;
  if (end > ptrdiff_t(p.y.in)) end = ptrdiff_t(p.y.in);
  return end > first ? Rows{size_t(first), size_t(end - first)} : Rows{0, 0};
}

// Each pixel once, however many taps read it: as f32, or s8 as u8.
Image widen_rows(const Run& run, size_t image, Rows rows, char* to) {
  const DirectShape& s = *run.s;
  const GemmTileTable& tiles = table_of(run.plan->tile);
  const auto widen = tiles.flip_rows ? nullptr : code_of<GemmRowTableFn>(run.plan->row_kernel)().widen;
  if (widen) note_use(run.plan->row_kernel);
  const Image wide = {to, tiles.a, rows.first, s.in_w * s.in_channels, s.in_channels};
  for (size_t y = rows.first; y < rows.first + rows.count; ++y, to += wide.row * element_bytes(tiles.a)) {
    const void* from = at(run.x->in, s.element, ptrdiff_t(image * s.in_batch + y * s.in_row));
    const bool dense = s.in_pixel == s.in_channels;
    if (!widen)
      tiles.flip_rows(dense ? 1 : s.in_w, dense ? wide.row : s.in_channels, from, ptrdiff_t(s.in_pixel), to,
                      ptrdiff_t(s.in_channels));
    else if (dense) widen(wide.row, from, reinterpret_cast<float*>(to));
    else
      for (size_t x = 0; x < s.in_w; ++x)
        widen(s.in_channels, at(from, s.element, ptrdiff_t(x * s.in_pixel)),
              reinterpret_cast<float*>(to) + x * s.in_channels);
  }
  return wide;
}

// A call for each of the parts of a short row takes as long as its products.
constexpr size_t kShortRow = 256;  // bytes
template <size_t bytes> inline bool copy_by(const char* from, size_t n, char* to) {
  if (n < bytes) return false;
  for (size_t i = 0;; i = min(i + bytes, n - bytes)) {  // the last ones overlap
    char block[bytes];
    __builtin_memcpy(block, from + i, bytes);
    __builtin_memcpy(to + i, block, bytes);
    if (i == n - bytes) return true;
  }
}
inline void copy_short(const char* from, size_t n, char* to) {
  if (copy_by<16>(from, n, to) || copy_by<8>(from, n, to) || copy_by<4>(from, n, to)) return;
  for (size_t i = 0; i < n; ++i) to[i] = from[i];
}

// Rows [y0, y0 + rows) and columns [x0, x0 + width) of an image, padding outside it.
void copy_strip(const DirectShape& s, const Image& image, ptrdiff_t y0, size_t rows, ptrdiff_t x0, size_t width,
                char* to) {
  const size_t c = s.in_channels * element_bytes(image.element), row = width * c;  // bytes of a pixel, of a row
  const int padding = s.padding ^ (image.element == Element::u8 && s.element == Element::s8 ? 0x80 : 0);
  const size_t left = min(x0 < 0 ? size_t(-x0) : 0, width), from = x0 < 0 ? 0 : min(size_t(x0), s.in_w),
               middle = min(s.in_w - from, width - left);
  const bool dense = image.pixel == s.in_channels, brief = row <= kShortRow;
  if (brief) memset(to, padding, rows * row);
  for (size_t r = 0; r < rows; ++r, to += row) {
    const ptrdiff_t y = y0 + ptrdiff_t(r);
    const bool inside = y >= 0 && size_t(y) < s.in_h;
    if (!brief && !inside) memset(to, padding, row);
    if (!inside) continue;
    const auto* pixel = static_cast<const char*>(image.at(y, ptrdiff_t(from)));
    char* at = to + left * c;
    if (brief && dense) {
      copy_short(pixel, middle * c, at);
      continue;
    }
    if (!brief) {
      memset(to, padding, left * c);
      memset(at + middle * c, padding, (width - left - middle) * c);
    }
    if (dense) memcpy(at, pixel, middle * c);
    else
      for (size_t i = 0; i < middle; ++i, at += c) memcpy(at, image.at(y, ptrdiff_t(from + i)), c);
  }
}

// Panels [p0, p1) of one group over the pixels of a region. strip: its strip, if it has one.
void multiply(const Run& run, GemmBlock& g, GemmSegment* segments, const Region& r, const Image& in_image,
              const char* strip, size_t image, size_t group, size_t p0, size_t p1, int32_t* offsets) {
  const DirectShape& s = *run.s;
  const DirectOperands& x = *run.x;
  const Phase& p = run.phase;
  const size_t in = s.in_channels / s.groups, packed_row = p.packed_run(s, g.format);
  // Where the pixel under the first tap of the region's first output is, and the steps from there.
  const size_t pixel = strip ? s.in_channels : in_image.pixel,
               row_step = strip ? span(p.x, r.columns(), r.x.taps) * pixel : in_image.row;
  const void* a = strip;
  g.segment_count = 0;
  g.k = 0;
  if (r.y.taps && r.x.taps) {
    if (!strip)
      a = in_image.at(p.y.first + ptrdiff_t(r.j * p.y.in_step) + ptrdiff_t(r.y.tap) * p.y.step,
                      p.x.first + ptrdiff_t(r.x.first * p.x.in_step) + ptrdiff_t(r.x.tap) * p.x.step);
    a = at(a, g.a_type, ptrdiff_t(group * in));
    const size_t together = merges(s, p, r) ? r.x.taps : 1;
    g.k = in * together;
    for (size_t ty = 0; ty < r.y.taps; ++ty)
      for (size_t tx = 0; tx < r.x.taps; tx += together)
        segments[g.segment_count++] = {
            ptrdiff_t(ty) * p.y.step * ptrdiff_t(row_step) + ptrdiff_t(tx) * p.x.step * ptrdiff_t(pixel),
            (r.y.tap + ty) * packed_row + (r.x.tap + tx) * in};
  } else {
    a = in_image.rows;  // not read: no tap, only the bias
  }
  g.kc = depth_per_pass(g.tile, g.segment_count, g.k);
  if (x.quantized)
    quantize_block(s, *x.quantized, run.first_tap, p.x.taps, r.y, r.x, group, p0 * g.format.nr,
                   min(p1 * g.format.nr, direct_bias_step(s.out_channels, s.groups)), offsets, g);
  if (!g.k) return multiply_lines(g, s, x, p, image, group, {r.j, r.rows, r.x.first, r.columns(), a, 0, 0}, p0, p1);
  g.dense = strip || (pixel == s.in_channels && row_step == s.in_w * pixel);
  multiply_lines(g, s, x, p, image, group,
                 {r.j, r.rows, r.x.first, r.columns(), a, p.y.in_step * row_step, p.x.in_step * pixel}, p0, p1);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& run = *static_cast<const Run*>(arg);
  const DirectShape& s = *run.s;
  const DirectOperands& x = *run.x;
  const Phase& p = run.phase;
  const size_t rows = s.batch * run.bands * run.pieces * run.across,
               column = run.own_columns ? index / rows : index % run.grid.columns,
               row = run.own_columns ? index % rows : index / run.grid.columns;
  const size_t line = row / run.across, part = row % run.across, piece = line % run.pieces,
               band = line / run.pieces % run.bands, image = line / run.pieces / run.bands;
  const size_t i0 = piece_begin(p.x.count, run.across, part), i1 = piece_begin(p.x.count, run.across, part + 1);
  const size_t whole = run.bands == 1 ? p.y.count : run.plan->band, band_begin = band * whole,
               band_rows = min(whole, p.y.count - band_begin);
  const size_t j0 = band_begin + piece_begin(band_rows, run.pieces, piece),
               j1 = band_begin + piece_begin(band_rows, run.pieces, piece + 1);
  char* const scratch = static_cast<char*>(x.workspace) + worker * worker_bytes(*run.plan);
  char* const strips = scratch + run.plan->scratch;
  char* const wide = strips + run.plan->strip;
  auto* segments = reinterpret_cast<GemmSegment*>(wide + run.plan->wide);
  auto* regions = reinterpret_cast<Region*>(segments + run.plan->segments);
  auto* offsets = reinterpret_cast<int32_t*>(regions + run.plan->regions);
  size_t count = 0, used = 0;
  const Image in = run.plan->widens
                       ? widen_rows(run, image, rows_under(*run.plan, p, j0, j1), wide)
                       : Image{at(x.in, s.element, ptrdiff_t(image * s.in_batch)), s.element, 0, s.in_row, s.in_pixel};
  each_region(*run.plan, p, j0, j1, [&](Region r) {
    r.x.first = max(r.x.first, i0);
    r.x.end = min(r.x.end, i1);
    if (r.x.first >= r.x.end) return;
    regions[count] = r;
    regions[count++].at = used;
    if (!r.strip()) return;
    copy_strip(s, in, p.y.first + ptrdiff_t(r.j * p.y.in_step) + ptrdiff_t(r.y.tap) * p.y.step,
               span(p.y, r.rows, r.y.taps),
               p.x.first + ptrdiff_t(r.x.first * p.x.in_step) + ptrdiff_t(r.x.tap) * p.x.step,
               span(p.x, r.columns(), r.x.taps), strips + used);
    used += strip_elements(s, p, r) * element_bytes(in.element);
  });
  // The largest first: it has the most to multiply while weights come from far away, and fetches the next panel ahead.
  for (size_t i = 1; i < count; ++i)
    if (regions[i].size() > regions[0].size()) {
      const Region largest = regions[i];
      regions[i] = regions[0];
      regions[0] = largest;
    }
  GemmBlock g = {};
  g.tile = run.plan->tiles.here();
  g.format = format_of(g.tile);
  g.n = s.out_channels / s.groups;
  g.segments = segments;
  g.packed_depth = p.packed_depth(s, g.format);
  g.overlaps = packs_pairs(s, g.format);
  g.alpha = 1;
  g.activation = *x.activation;
  g.residual = x.residual_mode;
  g.a_type = in.element;
  g.c_type = s.result;
  g.block_sums = s.numerics != SKUA_NUMERICS_FAST;
  g.rows = run.plan->row_kernel;
  g.scratch = scratch;
  const size_t panels = panel_count(g.format, g.n);
  const ColumnRange range = columns_of(run.grid, g.n, column);
  g.from = range.from;
  g.to = range.to;
  const size_t pass =
      min(depth_per_pass(g.tile, p.y.taps * p.x.taps, s.in_channels / s.groups), max(g.packed_depth, 1));
  // panels, or a pass's parts of them, beside the image
  const bool two_fit =
      double(pass) * g.format.nr * 2 * element_bytes(g.format.element) < 0.6 * double(machine_for(g.tile->isa).l2);
  for (size_t group = 0; group < s.groups; ++group) {
    g.packed = run.packed + group * packed_floats(g.format, g.n, g.packed_depth);
    g.bias = x.bias ? x.bias + group * direct_bias_step(s.out_channels, s.groups) : nullptr;
    // Panels outside: a panel of weights comes from far away once for all regions. Few weights stay close: C is written
    // in order. Where rows are packed, they are packed once.
    const size_t end = ceil_div(range.to, g.format.nr),
                 together =
                     count == 1 || table_of(g.tile).pack_a || (panels > 1 && b_is_small(g.tile, g.n, g.packed_depth))
                         ? max(panels, 1)
                         : 1;
    for (size_t panel = range.from / g.format.nr; panel < end; panel += together) {
      const size_t next = min(panel + together, end);
      for (size_t i = 0; i < count; ++i) {
        g.more_panels = i || !two_fit ? 0 : end - next;
        multiply(run, g, segments, regions[i], in, regions[i].strip() ? strips + regions[i].at : nullptr, image, group,
                 panel, next, offsets);
      }
    }
  }
}

}  // namespace

void direct_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  if (!s.batch || !s.out_h || !s.out_w) return;
  if (plan.gathers) return gather_run(args, plan, s, x);
  if (kTileRegisters && plan.pads) return padded_run(args, plan, s, x);
  if (plan.flat) return pointwise_run(args, plan, s, x);
  Run r = {&plan, &s, &x, {}, 0, x.packed, 0, 0, 1, {}, false};
  for (size_t i = 0; i < phase_count(s); ++i) {
    r.phase = phase_at(s, i);
    const size_t depth = r.phase.depth(s), count = r.phase.y.count, n = s.out_channels / s.groups;
    if (count && r.phase.x.count) {
      const size_t lines = s.batch * count, m = lines * r.phase.x.count,
                   most = lines < args.workers() && !plan.widens ? max(r.phase.x.count / plan.tile->mr, 1) : 1;
      r.grid = cut_tasks(args, plan.grids[i % kKeptGrids], plan.tile, m, lines * most, n, depth, s.groups);
      r.across = ceil_div(r.grid.rows, lines);
      r.bands = ceil_div(count, plan.band);
      // Tasks cut the plan's bands further, so that strips never grow.
      r.pieces = min(min(plan.band, count), ceil_div(r.grid.rows, s.batch * r.bands));
      const size_t workers = args.workers();
      // Lines that are all alike may be together as they like: as many tasks for each worker (Zen 4, two workers: 28x28
      // outputs of 256-512 in seven bands of four rows 1070 us, in eight tasks 900).
      if (plan.uniform && r.grid.columns % workers && s.batch * r.bands * r.pieces * r.across < 8 * workers) {
        size_t tasks = r.bands * r.pieces;
        while (tasks < count && s.batch * tasks * r.across * r.grid.columns % workers) ++tasks;
        r.bands = 1, r.pieces = tasks;
      }
      // Where bands are not alike (Zen 5, two workers: 14x14x1024-2048 with a stride of 2, in bands of four rows and
      // three, 490 us, so 430); else both read less of A (56x56x64-128 26 us, so 39).
      const size_t rows = s.batch * r.bands * r.pieces * r.across;
      r.own_columns = r.grid.columns % workers == 0 && (rows % workers || (count % plan.band && r.bands < 4 * workers));
      parallel(args, rows * r.grid.columns, task, &r);
    }
    r.packed += s.groups * packed_floats(format_of(plan.tile), n, r.phase.packed_depth(s, format_of(plan.tile)));
    r.first_tap += r.phase.y.taps * r.phase.x.taps;
  }
}

}  // namespace skua
