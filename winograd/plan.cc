// Which kernels, how many tiles per block, and how long it will take.
#include "winograd/winograd.h"

namespace skua {

namespace {

// The first kernel of that kind for vectors of that length: V, U and M are laid out in vectors.
const Kernel* find(const skua_context* ctx, KernelKind kind, int variant, uint32_t vector) {
  struct Search {
    uint32_t vector;
    const Kernel* found;
  } s = {vector, nullptr};
  each_kernel(ctx, winograd_tables, kind, variant, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!s.found && k->vector == s.vector) s.found = k;
  }, &s);
  return s.found;
}

}  // namespace

bool winograd_plan(const skua_context* ctx, WinogradVariant variant, const WinogradShape& s, const PackFormat& format, WinogradPlan* plan) {
  WinogradPlan& p = *plan;
  p = {};
  p.variant = variant;
  p.in = find(ctx, KernelKind::winograd_in, int(variant), format.vector);
  p.tile = find(ctx, KernelKind::winograd_product, 0, format.vector);
  p.out = find(ctx, KernelKind::winograd_out, int(variant), format.vector);
  if (!p.in || !p.tile || !p.out) return false;
  const size_t my = size_t(winograd_rows(variant)), mx = size_t(winograd_columns(variant)), points = winograd_points(variant);
  p.tiles_y = ceil_div(s.out_h, my);
  p.tiles_x = ceil_div(s.out_w, mx);
  p.clip_y = uint8_t(p.tiles_y * my - s.out_h);
  p.clip_x = uint8_t(p.tiles_x * mx - s.out_w);
  if (!mul(p.tiles_y, p.tiles_x, p.tiles) || !mul(p.tiles, s.batch, p.tiles) || p.tiles > UINT32_MAX || s.in_channels > SIZE_MAX / 65536) return false;
  const Machine m = machine_for(p.tile->isa);
  const size_t mr = p.tile->mr, bytes = points * (round_up(s.in_channels, 16) + kWinogradGroups * p.tile->nr) * sizeof(float);
  p.block = round_up(max(m.l2 / 2 / bytes, 24), mr);
  p.block = ceil_div(p.tiles, ceil_div(p.tiles, p.block));
  p.cycles = double(points) * double(p.tiles) * double(s.in_channels) * double(s.out_channels) / (m.fma_ports * p.tile->vector);
  return true;
}

}  // namespace skua
