// Which kernels, how many tiles per block, and how long it will take.
#include "winograd/winograd.h"

namespace skua {

bool winograd_plan(const skua_context* ctx, WinogradVariant variant, const WinogradShape& s, const PackFormat& format, WinogradPlan* plan) {
  WinogradPlan& p = *plan;
  p = {};
  p.variant = variant;
  p.format = format;
  p.in = find_kernel(ctx, winograd_tables, KernelKind::winograd_in, int(variant));
  p.out = find_kernel(ctx, winograd_tables, KernelKind::winograd_out, int(variant));
  if (!p.in || !p.out) return false;
  const size_t my = size_t(winograd_rows(variant)), mx = size_t(winograd_columns(variant)), points = winograd_points(variant);
  p.tiles_y = ceil_div(s.out_h, my);
  p.tiles_x = ceil_div(s.out_w, mx);
  p.clip_y = uint8_t(p.tiles_y * my - s.out_h);
  p.clip_x = uint8_t(p.tiles_x * mx - s.out_w);
  if (!mul(p.tiles_y, p.tiles_x, p.tiles) || !mul(p.tiles, s.batch, p.tiles) || p.tiles > UINT32_MAX || s.in_channels > SIZE_MAX / 65536) return false;
  const size_t tiles = max(p.tiles, 1);  // an empty output is planned like one tile
  p.tile = choose_tile(ctx, min(tiles, 24), s.out_channels, s.in_channels, &format);
  if (!p.tile) return false;
  p.kc = depth_per_pass(p.tile, 1, s.in_channels);
  p.v_row = round_up(s.in_channels, 16);
  const Machine m = machine_for(p.tile->isa);
  const size_t mr = p.tile->mr, bytes = points * (p.v_row + format.nr) * sizeof(float);
  p.block = round_up(min(max(m.l2 / 2 / bytes, 2 * mr), 4 * mr), mr);
  if (tiles < 2 * p.block) p.block = min(tiles, p.block);
  p.block = ceil_div(tiles, ceil_div(tiles, p.block));
  p.v_step = winograd_odd_lines(p.block * p.v_row);
  p.cycles = double(ceil_div(p.tiles, p.block)) * double(points) * gemm_cycles(p.tile, p.block, s.out_channels, s.in_channels);
  return true;
}

}  // namespace skua
