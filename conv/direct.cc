#include "conv/regions.h"

namespace skua {

// Outputs side by side that have the same taps.
static size_t line_of(const DirectShape& s) {
  if (s.transposed) return s.out_w / s.stride_w;
  const size_t apart = size_t(s.kernel_w - 1) * s.dilation_w;
  return s.dilation_w == 1 ? s.out_w : max(s.out_w > apart ? s.out_w - apart : 1, min(s.dilation_w, s.out_w));
}

// Where stride and dilation have a common factor the first phase may have no tap at all: a tile chosen for its depth
// took twice as long (32x32x160-64, 3x3 of stride and dilation 2 in bf16).
static Phase deepest_phase(const DirectShape& s) {
  Phase deepest = phase_at(s, 0);
  for (size_t i = 1; s.transposed && i < max(s.stride_h, s.stride_w); ++i) {
    const Phase p = phase_at(s, min(i, s.stride_h - 1) * s.stride_w + min(i, s.stride_w - 1));
    if (p.y.taps > deepest.y.taps) deepest.y = p.y;
    if (p.x.taps > deepest.x.taps) deepest.x = p.x;
  }
  return deepest;
}

// Of the phases that have any, on average: a tile chosen for the deepest alone (depths of 128, 64, 64 and 32:
// 56x56x32-32, 3x3 of bytes) took a tenth longer.
static double taps_of_phases(const DirectShape& s) {
  if (!s.transposed) return double(s.kernel_h) * s.kernel_w;
  const size_t y = s.stride_h / gcd(s.stride_h, s.dilation_h), x = s.stride_w / gcd(s.stride_w, s.dilation_w);
  return double(s.kernel_h) * s.kernel_w / (double(min(s.kernel_h, y)) * double(min(s.kernel_w, x)));
}

// Cycles of 16 outputs' products by AMX (Sapphire Rapids): a step that ends a run takes longer than those of one depth.
constexpr double kStep = 25, kRunStep = 34;

bool packs_register_runs(const DirectShape& s) {
  const size_t in = s.in_channels / s.groups, run = s.kernel_w * in;
  // of channels: what strips and gaps take is not counted; of lines between taps: a strip holds them (512x96x48-48
  // dilated by 32 4280 us to 1670, by 64 to 9780)
  constexpr size_t kFewest = 8, kReach = 64;
  if (!is_int8(s.element) || s.transposed || s.groups != 1 || s.kernel_w < 2 || s.dilation_w != 1 || s.stride_w != 1 ||
      s.stride_h != 1 || in < kFewest || in % kRegisterBytes == 0 ||
      uint64_t(s.kernel_h - 1) * s.dilation_h > kReach)
    return false;
  // copying a row's taps, measured at 24 to 480 bytes
  const double columns = double(ceil_div(s.out_channels, 16)), bytes = double(run),
               runs = kRunStep * double(s.kernel_h) * double(ceil_div(run, kRegisterBytes)) * columns,
               copied = double(s.kernel_h) * (bytes > 48 ? bytes / 4 - 8 : bytes / 12),
               gathered = kStep * double(ceil_div(s.kernel_h * run, kRegisterBytes)) * columns + 16 * copied;
  return runs < gathered;
}

bool packs_register_taps(const DirectShape& s) {
  constexpr uint64_t kReach = 16;  // pixels between taps are padded too
  constexpr size_t kFewest = 32;   // bytes of bf16: eight channels of 56x56x48 in place 0.65 of the time
  const size_t in = s.in_channels / s.groups * element_bytes(s.element);  // bytes
  if ((!is_int8(s.element) && (s.element != Element::bf16 || in < kFewest)) || s.transposed || s.groups < 2 ||
      (in % kRegisterBytes == 0 && s.stride_w == 1) ||
      (s.kernel_h == 1 && s.kernel_w == 1) || uint64_t(s.kernel_h - 1) * s.dilation_h > kReach ||
      uint64_t(s.kernel_w - 1) * s.dilation_w > kReach)
    return false;
  // copying a tap to a row, measured at 24 to 48 bytes
  const double taps = double(s.kernel_h * s.kernel_w), columns = double(ceil_div(s.out_channels / s.groups, 16)),
               copied = 5 * double(ceil_div(in, 16));
  const double more =
      taps * double(ceil_div(in, kRegisterBytes)) - double(ceil_div(s.kernel_h * s.kernel_w * in, kRegisterBytes));
  return kStep * more * columns < 16 * taps * copied;
}

// What a region and a panel begin with: of bytes, whose products are soon over, as long as some 600 cycles of them
// (measured on Zen 4: 5x5 of 28x28x16-32 47 us with 25 regions, 43 with nine), else some 350 (Zen 5: 3x3 of 7x7x1024 in
// 32 groups 135 us; Zen 3, with a stride of 2: 9x9x24-40 8.0 us in nine regions, 6.0 as one strip, 15x15x3-32 2.6 in
// five, 2.0).
static double begin_cycles(const DirectShape& s) {
  return kArch != Arch::x86_64 ? 100 : is_int8(s.element) ? 600 : 350;
}

GemmTypes direct_types(const DirectShape& s) {
  const double taps_of_phase = taps_of_phases(s);
  const size_t taps = size_t(taps_of_phase + 0.5);
  double gather = 0, gather_waste = 1;
  const bool bytes = is_int8(s.element);
  const uint64_t reach = max(uint64_t(s.kernel_h - 1) * s.dilation_h, uint64_t(s.kernel_w - 1) * s.dilation_w);
  if (kTileRegisters && (bytes || reach <= kMostGathered)) {
    const Phase p = deepest_phase(s);
    gather = gather_cycles(s, p, machine_for(Isa::avx512), true) * taps_of_phase / double(p.y.taps * p.x.taps);
    // Tiles that read in place leave out taps without a pixel, in regions that cost something too: no gain below 4.
    const double waste = 1 / (live_share(p.y) * live_share(p.x));
    if (bytes && waste > 4) gather_waste = waste;
    // all taps of a row, with a pixel or without
    if (packs_register_runs(s)) {
      const size_t run = s.kernel_w * s.in_channels, registers = ceil_div(run, kRegisterBytes);
      gather = 0;
      gather_waste = kRunStep / kStep * double(s.kernel_h * registers) /
                     double(ceil_div(s.kernel_h * run, kRegisterBytes)) / live_share(p.x);
    } else if (packs_register_taps(s)) {
      const size_t in = s.in_channels / s.groups * element_bytes(s.element), each = s.kernel_h * s.kernel_w;
      const double begin = begin_cycles(s) / double(max(s.out_h * s.out_w, 1));  // of no region
      gather = max(padded_cycles(s, p) - begin, 0.1);
      // Neither the band nor a group's weights come from L2 (Sapphire Rapids: 7x7x1024 in 32 groups 53 us, by VNNI in
      // place 88; 14x14x1024 with a stride of 2 69 and 104).
      gather_waste = 0.8 * double(each * ceil_div(in, kRegisterBytes)) / double(ceil_div(each * in, kRegisterBytes));
    }
  }
  const bool one_tap = s.kernel_h == 1 && s.kernel_w == 1;
  const bool strict = s.numerics == SKUA_NUMERICS_STRICT;
  const size_t in = s.in_channels / s.groups;
  return {s.element,
          s.result,
          strict,
          one_tap ? 0 : in,
          strict && s.weights == Element::f32,
          false,
          taps,
          one_tap && s.stride_h == 1 ? 0 : line_of(s),
          s.in_w,
          !s.transposed && s.groups == 1 && s.dilation_w == 1 && s.kernel_w * in > 1,
          s.in_w && s.in_w < s.kernel_w ? double(s.kernel_w) / double(s.in_w) : 1,
          gather,
          gather_waste};
}

const Kernel* direct_tile(const skua_context* ctx, const DirectShape& s, const PackFormat* format, Text* text,
                          Choice* choice) {
  const size_t depth = size_t(taps_of_phases(s) * double(s.in_channels / s.groups) + 0.5);
  return choose_tile(ctx, s.batch * s.out_h * s.out_w / phase_count(s), s.out_channels / s.groups, depth, format, text,
                     choice, direct_types(s));
}

// What a region costs in one image. cached: its weights were used just before.
static double region_cycles(const DirectShape& s, const Kernel* tile, const Phase& p, const Region& r, bool cached) {
  const size_t n = s.out_channels / s.groups, depth = r.y.taps * r.x.taps * (s.in_channels / s.groups);
  const GemmTileTable& tiles = table_of(tile);
  const size_t m =
      r.rows * (tiles.runs && !tiles.pack_a
                    ? rows_with_gaps(r.columns(), r.strip() ? span(p.x, r.columns(), r.x.taps) : s.in_w, tile->mr)
                    : r.columns());
  double cycles = double(s.groups) * (gemm_cycles(tile, m, n, depth, cached, max(r.y.taps * r.x.taps, 1),
                                                  tiles.overlaps && r.rows > 1 ? r.columns() : 0) +
                                      begin_cycles(s) * double(ceil_div(n, tile->nr)));
  // Groups of few channels: a tile begins a segment for each tap and is at its end after a few steps (measured with 8
  // channels on AVX2: 14 cycles each).
  if (kArch == Arch::x86_64 && s.groups > 1 && !is_int8(s.element))
    cycles += 14 * double(s.groups * ceil_div(m, tile->mr) * ceil_div(n, tile->nr) * r.y.taps * r.x.taps);
  // A strip is read from L2 or L3 and written to L2: about 8 bytes a cycle.
  if (r.strip())
    cycles += double(span(p.y, r.rows, r.y.taps)) * double(span(p.x, r.columns(), r.x.taps)) * double(s.in_channels) *
              element_bytes(table_of(tile).a) / 8;
  return cycles;
}

// Chooses the cuts for a phase.
static void choose_cuts(const DirectShape& s, const Phase& p, DirectPlan& plan) {
  constexpr size_t kMostClasses = 16;  // of an axis that are regions by themselves
  const bool runs = packs_runs(s, format_of(plan.tile));
  plan.copies = runs && s.in_pixel != s.in_channels;
  constexpr Cut cuts[3] = {Cut::exact, Cut::borders_merged, Cut::merged};
  double best = 0;
  for (const Cut rows : cuts) {
    if (rows == Cut::exact && p.y.classes > kMostClasses) continue;
    double cycles[2][3] = {};  // the widest class of rows, and the others; by the cut of the columns
    for (const Cut columns : cuts) {
      if (runs ? columns != Cut::merged : columns == Cut::exact && p.x.classes > kMostClasses) {
        cycles[0][int(columns)] = cycles[1][int(columns)] = 1e300;
        continue;
      }
      DirectPlan d = {};
      d.rows = rows;
      d.columns_inside = d.columns_at_borders = runs ? Cut::whole : columns;
      each_region(d, p, 0, p.y.count, [&](const Region& r) {
        cycles[!is_widest(p.y, r.y)][int(columns)] += region_cycles(s, plan.tile, p, r, true);
      });
    }
    int at[2];
    for (int i = 0; i < 2; ++i) {
      at[i] = 0;
      for (int c = 1; c < 3; ++c)
        if (cycles[i][c] < cycles[i][at[i]]) at[i] = c;
    }
    const double total = cycles[0][at[0]] + cycles[1][at[1]];
    if (best != 0 && total >= best) continue;
    best = total;
    plan.rows = rows;
    plan.columns_inside = runs ? Cut::whole : cuts[at[0]];
    plan.columns_at_borders = runs ? Cut::whole : cuts[at[1]];
  }
}

// Output rows of a task: all panels of weights go over one band of the image before the next. Halved from the whole
// image as long as less comes from beyond L2: the image comes once per panel unless a band of it stays beside the
// panel, the weights come once per band unless all of them stay beside it.
static size_t choose_band(const DirectShape& s, const Kernel* tile, const Phase& p) {
  const GemmTileTable& tiles = table_of(tile);
  const double room = 0.7 * double(machine_for(tile->isa).l2),
               row = double(s.in_w) * double(s.in_channels) * element_bytes(tiles.a), image = double(s.in_h) * row;
  const double column = double(p.depth(s)) * element_bytes(tiles.b), weights = column * double(s.out_channels),
               panel = column * double(min(tile->nr, s.out_channels / s.groups));
  const double panels = double(ceil_div(s.out_channels / s.groups, tile->nr));
  size_t best = max(p.y.count, 1);
  double least = 0;
  for (size_t band = best;; band = (band + 1) / 2) {
    const double kept = double(min(span(p.y, band, p.y.taps), s.in_h)) * row, bands = double(ceil_div(p.y.count, band));
    const double bytes = image * (kept + panel > room ? panels : 1) + weights * (kept + weights > room ? bands : 1);
    if (least == 0 || bytes < least) {
      best = band;
      least = bytes;
    }
    if (band <= 4) return best;
  }
}

skua_status direct_plan(const skua_op* op, const DirectShape& s, const Kernel* tile, bool function, DirectPlan& plan) {
  plan = {};
  plan.tile = tile;
  const GemmTileTable& tiles = table_of(tile);
  if (s.element != Element::f32 && !is_int8(s.element))
    plan.row_kernel = find_kernel(op->ctx, gemm_tables, KernelKind::gemm_rows, 0, s.element);
  if (gathers(s, format_of(tile))) return gather_plan(op, s, function, plan);
  if (packs_taps(s, format_of(tile)) && !tiles.pack_a) return padded_plan(op, s, function, plan);
  // Bytes of strips. Every band reads weights beyond L2 again, while its strips shrink by little where windows are as
  // large as the image: 8x8x256-160 of 7x7 in bands of one row 2700 us on a Zen 5, 1190 in one.
  const size_t l2 = machine_for(tile->isa).l2;
  const bool far = double(s.kernel_h) * s.kernel_w * double(s.in_channels / s.groups) * double(s.out_channels) *
                       element_bytes(tiles.b) >
                   double(l2);
  const size_t budget = max(l2 / (far ? 2 : 4), 16384);
  bool merged = false;
  const Phase representative = deepest_phase(s);
  choose_cuts(s, representative, plan);
  plan.widens = !tiles.pack_a && tiles.a != s.element && representative.y.taps * representative.x.taps > 1;
  const unsigned strip_element = element_bytes(plan.widens ? tiles.a : s.element);  // of widened rows too
  plan.tiles = plan.widens ? OnCores{{tile, tile, tile}} : tiles_on_cores(op->ctx, tile);
  plan.band = choose_band(s, tile, representative);
  for (size_t i = 0; i < phase_count(s);) {
    const Phase p = phase_at(s, i);
    const size_t most_wide = plan.widens ? mul_sat(min(p.y.in, span(p.y, min(plan.band, p.y.count), p.y.taps)),
                                                   s.in_w * s.in_channels * strip_element)
                                         : 0;
    size_t most = 0;
    for (size_t j = 0; j < p.y.count;) {
      size_t bytes = 0, regions = 0, next = j + plan.band;
      each_region(plan, p, j, min(j + plan.band, p.y.count), [&](const Region& r) {
        // bands inside one part are alike
        if (!regions++ && r.y.end >= next + plan.band) next = r.y.end / plan.band * plan.band;
        bytes = add_sat(bytes, mul_sat(strip_elements(s, p, r), strip_element));
        merged |= merges(s, p, r);
        const size_t together = merges(s, p, r) ? r.x.taps : 1, depth = s.in_channels / s.groups * together;
        plan.scratch = max(plan.scratch, scratch_on_cores(plan.tiles, plan.widens ? tiles.a : s.element, s.result,
                                                          function, r.rows * r.columns(), s.out_channels / s.groups,
                                                          r.x.taps ? r.y.taps * r.x.taps / together : 0, depth));
        plan.segments = max(plan.segments, r.y.taps * r.x.taps);
      });
      most = max(most, bytes);
      plan.regions = max(plan.regions, regions);
      j = next;
    }
    plan.strip = max(plan.strip, most);
    plan.wide = max(plan.wide, most_wide);
    ++i;
    if ((most > budget || most_wide > 2 * budget) && plan.band > 1) {
      plan.band = (plan.band + 1) / 2;
      plan.strip = plan.wide = plan.scratch = 0;
      i = 0;  // bands are the same for all phases
    }
  }
  if (plan.strip > SIZE_MAX / 64 || plan.wide > SIZE_MAX / 64)
    return SKUA_INVALID("%s: the padded rows are larger than the address space", op->cls->name);
  plan.uniform = !plan.strip && !plan.wide;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    size_t regions = 0;
    each_region(plan, p, 0, p.y.count, [&](const Region& r) {
      plan.cycles += double(s.batch) * region_cycles(s, tile, p, r, regions++ != 0);
    });
    plan.uniform = plan.uniform && regions <= 1;
  }
  if (plan.widens && is_int8(s.element)) plan.cycles += double(s.batch * s.in_h) * double(s.in_w * s.in_channels) / 32;
  else if (plan.widens)
    plan.cycles += 0.3 * double(s.batch * s.in_h) * double(s.in_w * s.in_channels) * 16 / tile->vector;
  plan.strip = round_up(plan.strip, 64);
  plan.wide = round_up(plan.wide, 64);
  plan.scratch = round_up(plan.scratch, 64);
  if (is_int8(s.element)) plan.offsets = round_up(offset_bytes(s), 64);
  // Every output has its pixel inside the image.
  const bool inside = !s.pad_top && !s.pad_left && s.out_h && s.out_w && (s.out_h - 1) * s.stride_h < s.in_h &&
                      (s.out_w - 1) * s.stride_w < s.in_w;
  const bool point = s.kernel_h == 1 && s.kernel_w == 1 && !s.transposed && inside;
  if (point) pointwise_plan(s, function, plan);
  plan.name = merged ? "direct_rows" : point ? "gemm_1x1" : "implicit_gemm";
  return SKUA_STATUS_OK;
}

}  // namespace skua
