// Weights of the direct form, packed in panels: tap by tap, row of taps by row, or all taps of a phase as one depth.
#include "conv/regions.h"

namespace skua {

bool direct_packed_floats(const DirectShape& s, const PackFormat& f, size_t& floats) {
  // Every tap's rows are whole groups of kr, unless it is the only one of its phase; or every run of them; or all.
  size_t depth = 0, bytes = 0;
  const bool all = kTileRegisters && gathers(s, f), runs = all || (packs_runs(s, f) && !s.transposed);
  // each phase that has taps is rounded up
  const size_t y = max(min(s.stride_h, s.kernel_h), 1), x = max(min(s.stride_w, s.kernel_w), 1),
               phases = s.transposed ? mul_sat(y, x) : 1;
  if (!mul(runs ? s.kernel_w : 1, s.in_channels / s.groups, depth) || !mul(all ? s.kernel_h : 1, depth, depth) ||
      !add(depth, all ? mul_sat(phases - 1, f.kr) : 0, depth) || depth > SIZE_MAX / 2 ||
      !mul(round_up(depth, f.kr), runs ? 1 : s.kernel_w, depth) || !mul(depth, all ? 1 : s.kernel_h, depth) ||
      !packed_bytes(f, s.out_channels / s.groups, depth, bytes))
    return false;
  return mul(ceil_div(bytes, sizeof(float)), s.groups, floats);
}

// A row of taps for a panel whose first column is at `weights`; see packs_runs().
static void pack_run(GemmPackFn pack, size_t in, size_t run, size_t columns, size_t width, const float* weights,
                     const WeightSteps& w, Element type, void* to) {
  constexpr size_t kSteps = 32, kColumns = 64;  // even; the most of a panel
  const size_t twice = run % 2 ? run - 2 : SIZE_MAX, end = round_up(run, 2);  // the element that two pairs have
  for (size_t k0 = 0, steps; k0 < end; k0 += steps) {
    float rows[kSteps * kColumns];
    steps = min(end - k0, kSteps);
    for (size_t i = 0; i < steps; ++i) {
      const size_t k = k0 + i > twice ? k0 + i - 1 : k0 + i;
      const float* const from = weights + k / in * w.x + k % in * w.i;
      for (size_t j = 0; j < columns; ++j) rows[i * kColumns + j] = k == twice ? from[j * w.o] / 2 : from[j * w.o];
    }
    pack(steps, columns, width, rows, kColumns, 1, at(to, type, ptrdiff_t(k0 * width)));
  }
}

// All taps of a phase for a panel whose first column is at `weights`, as one depth; see gathers().
static void pack_all(GemmPackFn pack, size_t in, const Phase& p, size_t columns, size_t width, const float* weights,
                     const WeightSteps& w, const PackFormat& f, void* to) {
  constexpr size_t kSteps = 32, kColumns = 64;  // whole groups; the most of a panel
  const size_t depth = p.y.taps * p.x.taps * in;
  for (size_t k0 = 0, steps; k0 < depth; k0 += steps) {
    float rows[kSteps * kColumns];
    steps = min(depth - k0, kSteps);
    for (size_t i = 0; i < steps; ++i) {
      const size_t k = k0 + i, tap = k / in, ty = tap / p.x.taps, tx = tap % p.x.taps;
      const float* const from = weights + (p.y.k_first + size_t(ptrdiff_t(ty) * p.y.k_step)) * w.y +
                                (p.x.k_first + size_t(ptrdiff_t(tx) * p.x.k_step)) * w.x + k % in * w.i;
      for (size_t j = 0; j < columns; ++j) rows[i * kColumns + j] = from[j * w.o];
    }
    pack(steps, columns, width, rows, kColumns, 1, at(to, f.element, ptrdiff_t(k0 * width)));
  }
}

void direct_pack(const skua_context* ctx, const DirectShape& s, const PackFormat& f, const float* weights,
                 const WeightSteps& w, float* packed) {
  const Kernel* kernel = find_pack(ctx, Element::f32, f.element, f.kr);
  const auto pack = code_of<GemmPackFn>(kernel);
  note_use(kernel);
  const size_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const bool all = kTileRegisters && gathers(s, f);
    const size_t depth = all ? p.depth(s) : p.packed_depth(s, f), run = p.x.taps * in;
    const ptrdiff_t step_x = p.x.k_step * ptrdiff_t(w.x);
    for (size_t g = 0; g < s.groups; ++g, packed += packed_floats(f, out, depth))
      for (size_t panel = 0; panel < panel_count(f, out); ++panel) {
        const size_t columns = panel_columns(f, out, panel), width = panel_width(f, out, panel);
        void* to = at(packed, f.element, ptrdiff_t(panel_offset(f, panel, depth)));
        if (all) {
          pack_all(pack, in, p, columns, width, weights + (g * out + panel * f.nr) * w.o, w, f, to);
          continue;
        }
        for (size_t ty = 0; ty < p.y.taps; ++ty) {
          const float* const row = weights + (g * out + panel * f.nr) * w.o +
                                   (p.y.k_first + size_t(ptrdiff_t(ty) * p.y.k_step)) * w.y + p.x.k_first * w.x;
          if (packs_runs(s, f)) pack_run(pack, in, run, columns, width, row, w, f.element, to);
          for (size_t tx = 0; tx < p.x.taps && !packs_runs(s, f); ++tx)
            pack(in, columns, width, row + ptrdiff_t(tx) * step_x, w.i, w.o,
                 at(to, f.element, ptrdiff_t(tx * p.packed_tap(s, f) * width)));
          to = at(to, f.element, ptrdiff_t(p.packed_run(s, f) * width));
        }
      }
  }
}

}  // namespace skua
