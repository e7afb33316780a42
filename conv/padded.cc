// Bytes and bf16 in groups, by AMX: the input under a few lines of outputs is copied, group by group, into pixels of
// whole registers, which lie close and on lines of the cache. Each tap is then a segment of even rows: nothing is
// gathered, and no row is in two lines, as those of a group are in the image.
//
//   band     a plane for each pair of the strides' remainders that a tap has, so that rows are even with a stride too:
//            plane (y % stride_h, x % stride_w) has pixels [lines and those below][columns and those to the right], the
//            zero point outside the image
//   pixel    [channels of the group][up to a whole register: of bytes anything, as packed B has zeros there; of floats
//            zeros, as an infinity times 0 is none]
//
// Every output has the same taps, and so the same sums of weights.
#include "conv/regions.h"

namespace skua {
namespace {

// Taps along an axis as places in planes: tap t of output j is position j + shift(t) of plane(t).
struct Planes {
  size_t count, more;  // planes; positions beyond those of the outputs
  size_t stride, step;
  Planes(const Axis& a) : stride(a.in_step), step(size_t(a.step)) {
    const size_t reach = (a.taps - 1) * step;
    count = min(stride, reach + 1);
    more = reach / stride;
  }
  size_t plane(size_t tap) const { return tap * step % stride; }
  size_t shift(size_t tap) const { return tap * step / stride; }
  bool has_tap(const Axis& a, size_t wanted) const {
    for (size_t t = 0; t < a.taps; ++t)
      if (plane(t) == wanted) return true;
    return false;
  }
};

// Bytes of a group's channels, as they are and padded.
size_t group_bytes(const DirectShape& s) { return s.in_channels / s.groups * element_bytes(s.element); }
size_t pixel_bytes(const DirectShape& s) { return round_up(group_bytes(s), kRegisterBytes); }

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  Phase phase;
  Planes y_planes, x_planes;
  size_t bands, parts, chunks;  // of lines, of columns, of groups
};

// `count` pixels of n bytes, n > 16 * (moves - 1); moves = 0: any n.
template <size_t moves>
void copy_pixels(size_t count, const char* from, size_t step, size_t n, char* to, size_t pixel) {
  constexpr size_t kMove = 16;
  for (; count > 0; --count, from += step, to += pixel) {
    if constexpr (moves == 0) {
      memcpy(to, from, n);
    } else {
      char block[kMove];
#pragma GCC unroll 8
      for (size_t i = 0; i + 1 < moves; ++i) {
        __builtin_memcpy(block, from + i * kMove, kMove);
        __builtin_memcpy(to + i * kMove, block, kMove);
      }
      __builtin_memcpy(block, from + n - kMove, kMove);
      __builtin_memcpy(to + n - kMove, block, kMove);
    }
  }
}
using CopyPixels = void (*)(size_t count, const char* from, size_t step, size_t n, char* to, size_t pixel);
CopyPixels copier(size_t n) {
  constexpr CopyPixels of[] = {copy_pixels<0>, copy_pixels<1>, copy_pixels<2>, copy_pixels<3>, copy_pixels<4>};
  return of[n < 16 || n > 64 ? 0 : ceil_div(n, 16)];
}

// The planes under `lines` by `columns` outputs from (j0, i0) on.
void fill(const Run& run, const char* image, size_t group, size_t j0, size_t lines, size_t i0, size_t columns,
          char* to) {
  const DirectShape& s = *run.s;
  const Phase& p = run.phase;
  const size_t e = element_bytes(s.element), in = group_bytes(s), pixel = pixel_bytes(s),
               rows = lines + run.y_planes.more, width = columns + run.x_planes.more,
               step = s.in_pixel * p.x.in_step * e;
  const CopyPixels copy = copier(in);
  const bool floats = !is_int8(s.element);
  if (floats) memset(to, 0, run.plan->gather_band);
  for (size_t ry = 0; ry < run.y_planes.count; ++ry)
    for (size_t rx = 0; rx < run.x_planes.count; ++rx) {
      if (!run.y_planes.has_tap(p.y, ry) || !run.x_planes.has_tap(p.x, rx)) {
        to += rows * width * pixel;
        continue;
      }
      // Pixels [left, left + inside) of a row are the image's.
      const ptrdiff_t x0 = p.x.first + ptrdiff_t(i0 * p.x.in_step + rx);
      const size_t left = x0 < 0 ? min(ceil_div(size_t(-x0), p.x.in_step), width) : 0,
                   end = x0 < ptrdiff_t(s.in_w) ? min(ceil_div(size_t(ptrdiff_t(s.in_w) - x0), p.x.in_step), width) : 0,
                   inside = end > left ? end - left : 0;
      const ptrdiff_t first = x0 + ptrdiff_t(left * p.x.in_step);
      for (size_t r = 0; r < rows; ++r, to += width * pixel) {
        const ptrdiff_t y = p.y.first + ptrdiff_t((j0 + r) * p.y.in_step + ry);
        const bool none = y < 0 || y >= ptrdiff_t(s.in_h) || !inside;
        if (!floats) {
          memset(to, s.padding, (none ? width : left) * pixel);
          if (!none) memset(to + (left + inside) * pixel, s.padding, (width - left - inside) * pixel);
        }
        if (none) continue;
        copy(inside, image + (size_t(y) * s.in_row + size_t(first) * s.in_pixel) * e + group * in, step, in,
             to + left * pixel, pixel);
      }
    }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& run = *static_cast<const Run*>(arg);
  const DirectShape& s = *run.s;
  const DirectOperands& x = *run.x;
  const DirectPlan& plan = *run.plan;
  const Phase& p = run.phase;
  // Neighbouring tasks have the same weights.
  const size_t part = index % run.parts, band = index / run.parts % run.bands,
               image = index / run.parts / run.bands % s.batch, chunk = index / run.parts / run.bands / s.batch;
  const size_t j0 = piece_begin(p.y.count, run.bands, band), lines = piece_begin(p.y.count, run.bands, band + 1) - j0,
               i0 = piece_begin(p.x.count, run.parts, part), columns = piece_begin(p.x.count, run.parts, part + 1) - i0;
  const bool floats = !is_int8(s.element);
  // elements
  const size_t in = s.in_channels / s.groups, pixel = pixel_bytes(s) / element_bytes(s.element),
               rows = lines + run.y_planes.more, width = columns + run.x_planes.more;
  char* const scratch = static_cast<char*>(x.workspace) + worker * plan.gather_bytes;
  char* const planes = scratch + plan.scratch;
  auto* const segments = reinterpret_cast<GemmSegment*>(planes + plan.gather_band);
  auto* const offsets = reinterpret_cast<int32_t*>(segments + p.y.taps * p.x.taps);
  const auto from = static_cast<const char*>(at(x.in, s.element, ptrdiff_t(image * s.in_batch)));
  GemmBlock g = {};
  g.tile = plan.tile;
  g.format = format_of(plan.tile);
  g.n = s.out_channels / s.groups;
  g.k = floats ? pixel : in;
  g.kc = g.k * p.y.taps * p.x.taps;
  g.segments = segments;
  for (size_t ty = 0; ty < p.y.taps; ++ty)
    for (size_t tx = 0; tx < p.x.taps; ++tx) {
      const size_t plane = run.y_planes.plane(ty) * run.x_planes.count + run.x_planes.plane(tx);
      segments[g.segment_count++] = {
          ptrdiff_t(((plane * rows + run.y_planes.shift(ty)) * width + run.x_planes.shift(tx)) * pixel),
          (ty * p.x.taps + tx) * p.packed_tap(s, g.format)};
    }
  g.packed_depth = p.packed_depth(s, g.format);
  g.alpha = 1;
  g.activation = *x.activation;
  g.residual = x.residual_mode;
  g.a_type = s.element;
  g.c_type = s.result;
  g.dense = true;
  g.behind = pixel - in;
  g.rows = plan.row_kernel;
  g.scratch = scratch;
  for (size_t group = piece_begin(s.groups, run.chunks, chunk); group < piece_begin(s.groups, run.chunks, chunk + 1);
       ++group) {
    fill(run, from, group, j0, lines, i0, columns, planes);
    g.packed = x.packed + group * packed_floats(g.format, g.n, g.packed_depth);
    const size_t step = direct_bias_step(s.out_channels, s.groups);
    if (floats) g.bias = x.bias ? x.bias + group * step : nullptr;
    else
      quantize_block(s, *x.quantized, 0, p.x.taps, {0, 0, 0, p.y.taps, false}, {0, 0, 0, p.x.taps, false}, group, 0,
                     step, offsets, g);
    multiply_lines(g, s, x, p, image, group, {j0, lines, i0, columns, planes, width * pixel, pixel}, 0,
                   panel_count(g.format, g.n));
  }
}

}  // namespace

// Pixels of the band under so many lines and columns of outputs.
static size_t band_pixels(const Planes& y, const Planes& x, size_t lines, size_t columns) {
  return mul_sat(mul_sat(y.count, lines + y.more), mul_sat(x.count, columns + x.more));
}

double padded_cycles(const DirectShape& s, const Phase& p) {
  const Planes y(p.y), x(p.x);
  // measured at 24 to 64 bytes
  const double pixel = 3 + double(ceil_div(group_bytes(s), 16));
  return pixel * double(band_pixels(y, x, p.y.count, p.x.count)) / double(max(p.y.count * p.x.count, 1));
}

skua_status padded_plan(const skua_op* op, const DirectShape& s, bool function, DirectPlan& plan) {
  const Machine machine = machine_for(plan.tile->isa);
  const Phase p = phase_at(s, 0);
  const Planes y(p.y), x(p.x);
  const size_t pixel = pixel_bytes(s), n = s.out_channels / s.groups, depth = pixel / element_bytes(s.element),
               count = max(p.y.count, 1), across = max(p.x.count, 1);
  // L1 holds a panel of weights too. Where these come from L2 in any case, and of wide images, bands are higher, so
  // that weights are read, and products begin, less often.
  const double weights = double(p.packed_depth(s, format_of(plan.tile))) * double(n) * element_bytes(s.element);
  const auto fits = [&](size_t lines) {
    constexpr size_t kRows = 512;
    const size_t bytes = mul_sat(band_pixels(y, x, lines, plan.gather_columns), pixel);
    const bool high = weights > double(machine.l1 / 2) || lines * plan.gather_columns <= kRows;
    return bytes <= (high ? machine.l2 / 16 : machine.l1 / 2);
  };
  // A line that is larger is cut.
  size_t most = across;
  while (most > plan.tile->mr && mul_sat(band_pixels(y, x, 1, most), pixel) > machine.l2 / 2)
    most = ceil_div(most, 2);
  plan.gather_columns = ceil_div(across, ceil_div(across, most));
  plan.gather_lines = 1;
  while (plan.gather_lines < count && fits(plan.gather_lines + 1)) ++plan.gather_lines;
  plan.gather_lines = ceil_div(count, ceil_div(count, plan.gather_lines));
  plan.gather_band = mul_sat(band_pixels(y, x, plan.gather_lines, plan.gather_columns), pixel);
  if (plan.gather_band > SIZE_MAX / 64)
    return SKUA_INVALID("%s: the padded rows are larger than the address space", op->cls->name);
  plan.pads = true;
  plan.scratch = round_up(staging(plan.tile, s.element, s.result, function, plan.gather_lines * plan.gather_columns, n,
                                  p.y.taps * p.x.taps, depth)
                              .bytes,
                          64);
  plan.gather_bytes =
      round_up(plan.scratch + plan.gather_band + p.y.taps * p.x.taps * sizeof(GemmSegment) + offset_bytes(s), 64);
  const size_t line = rows_with_gaps(p.x.count, p.x.count + x.more, plan.tile->mr);
  plan.cycles = double(s.batch * s.groups) *
                (gemm_cycles(plan.tile, p.y.count * line, n, p.packed_depth(s, format_of(plan.tile)), true) +
                 double(p.y.count * p.x.count) * padded_cycles(s, p));
  plan.name = "padded_pixels";
  return SKUA_STATUS_OK;
}

void explain_padded(const DirectPlan& plan, Text& text) {
  text.add("  pixels padded to registers, %zu lines of outputs by %zu at a time: %zu bytes; tile %ux%u\n",
           plan.gather_lines, plan.gather_columns, plan.gather_band, plan.tile->mr, plan.tile->nr);
}

void padded_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  const Phase p = phase_at(s, 0);
  Run r = {&plan, &s, &x, p, p.y, p.x, ceil_div(p.y.count, plan.gather_lines), ceil_div(p.x.count, plan.gather_columns),
           1};
  const double group = plan.cycles / double(s.groups);
  r.chunks = min(max(pieces_for(args, s.groups, group), 1), s.groups);
  // few groups for so many workers: fewer lines
  while (s.batch * r.bands * r.parts * r.chunks < args.workers() && r.bands < p.y.count &&
         plan.cycles > double(args.workers()) * 20000)
    ++r.bands;
  parallel(args, s.batch * r.bands * r.parts * r.chunks, task, &r);
}

}  // namespace skua
