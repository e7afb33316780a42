#include "conv/direct.h"

namespace skua {
namespace {

// One dimension of a phase.
struct Axis {
  size_t out_first, out_step, count;  // outputs
  size_t in_step;                     // input positions from one output to the next
  size_t taps;
  ptrdiff_t first, step;              // input offset of tap t: first + t*step, step >= 1
  size_t k_first;                     // tap t is kernel position k_first + t*k_step
  ptrdiff_t k_step;
};

size_t gcd(size_t a, size_t b) { return b ? gcd(b, a % b) : a; }

Axis make_axis(bool transposed, size_t phase, size_t kernel, size_t stride, size_t dilation, size_t pad, size_t out) {
  if (!transposed) return {0, 1, out, stride, kernel, -ptrdiff_t(pad), ptrdiff_t(dilation), 0, 1};
  Axis a = {phase, stride, out > phase ? ceil_div(out - phase, stride) : 0, 1, 0, 0, 1, 0, 0};
  // Kernel positions k with (phase + pad - k*dilation) divisible by the stride; the input offset falls as k grows, so the largest k comes first.
  const size_t between = stride / gcd(stride, dilation);
  size_t k = 0;
  while (k < kernel && k < between && (ptrdiff_t(phase + pad) - ptrdiff_t(k * dilation)) % ptrdiff_t(stride)) ++k;
  if (k >= kernel || k >= between) return a;
  a.taps = (kernel - 1 - k) / between + 1;
  a.k_first = k + (a.taps - 1) * between;
  a.k_step = -ptrdiff_t(between);
  a.first = (ptrdiff_t(phase + pad) - ptrdiff_t(a.k_first * dilation)) / ptrdiff_t(stride);
  a.step = ptrdiff_t(between * dilation / stride);
  return a;
}

struct Phase {
  Axis y, x;
  size_t depth(const DirectShape& s) const { return y.taps * x.taps * (s.in_channels / s.groups); }
};

size_t phase_count(const DirectShape& s) { return s.transposed ? size_t(s.stride_h) * s.stride_w : 1; }
Phase phase_at(const DirectShape& s, size_t i) {
  return {make_axis(s.transposed, i / s.stride_w, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.out_h),
          make_axis(s.transposed, i % s.stride_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.out_w)};
}

bool inside(const Axis& a, size_t in) {
  if (!a.taps || !a.count) return true;
  return a.first >= 0 && size_t(a.first) + size_t(a.step) * (a.taps - 1) + a.in_step * (a.count - 1) < in;
}
size_t span(const Axis& a, size_t count) { return a.taps && count ? (count - 1) * a.in_step + (a.taps - 1) * size_t(a.step) + 1 : 0; }
bool needs_strip(const DirectShape& s, const Phase& p) { return p.depth(s) && !(inside(p.y, s.in_h) && inside(p.x, s.in_w)); }
bool merges(const DirectShape& s, const Phase& p, size_t pixel) { return s.groups == 1 && p.x.step == 1 && p.x.taps > 1 && pixel == s.in_channels; }

}  // namespace

bool direct_packed_floats(const DirectShape& s, const PackFormat& f, size_t& floats) {
  size_t depth = 0, group = 0;
  if (!mul(s.kernel_h, s.kernel_w, depth) || !mul(depth, s.in_channels / s.groups, depth)) return false;
  return mul(depth, round_up(s.out_channels / s.groups, f.vector), group) && mul(group, s.groups, floats);
}

void direct_pack(const skua_context* ctx, const DirectShape& s, const PackFormat& f, const float* weights, const WeightSteps& w, float* packed) {
  const GemmPackFn pack = pack_kernel(ctx, nullptr);
  const size_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const size_t depth = p.depth(s);
    for (size_t g = 0; g < s.groups; ++g, packed += packed_floats(f, out, depth))
      for (size_t panel = 0; panel < panel_count(f, out); ++panel) {
        const size_t columns = panel_columns(f, out, panel), width = panel_width(f, out, panel);
        float* to = packed + panel_offset(f, panel, depth);
        for (size_t ty = 0; ty < p.y.taps; ++ty)
          for (size_t tx = 0; tx < p.x.taps; ++tx, to += in * width)
            pack(in, columns, width,
                 weights + (g * out + panel * f.nr) * w.o + (p.y.k_first + size_t(ptrdiff_t(ty) * p.y.k_step)) * w.y + (p.x.k_first + size_t(ptrdiff_t(tx) * p.x.k_step)) * w.x,
                 w.i, w.o, to);
      }
  }
}

const Kernel* direct_tile(const skua_context* ctx, const DirectShape& s, const PackFormat* format, Text* text) {
  const size_t depth = phase_at(s, 0).depth(s);
  return choose_tile(ctx, s.batch * s.out_h * s.out_w / phase_count(s), s.out_channels / s.groups, depth, format, text);
}

skua_status direct_plan(const skua_op* op, const DirectShape& s, const Kernel* tile, DirectPlan& plan) {
  plan = {};
  plan.tile = tile;
  const size_t budget = max(machine_for(tile->isa).l2 / 4 / sizeof(float), 4096);
  bool merged = false;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const bool strip = needs_strip(s, p);
    merged |= merges(s, p, strip ? s.in_channels : s.in_pixel);
    plan.segments = max(plan.segments, p.y.taps * p.x.taps);
    if (!strip) continue;
    size_t row = 0, floats = 0;
    bool ok = mul(span(p.x, p.x.count), s.in_channels, row);
    size_t band = p.y.count;
    while (band > 1 && ok && span(p.y, band) > budget / max(row, 1)) band = (band + 1) / 2;
    ok = ok && mul(span(p.y, band), row, floats) && floats <= SIZE_MAX / 64;
    if (!ok) return SKUA_INVALID("%s: the padded rows are larger than the address space", op->cls->name);
    plan.band = plan.band ? min(plan.band, band) : band;
    plan.strip = max(plan.strip, floats);
  }
  if (!plan.band) plan.band = max(s.out_h, 1);
  plan.strip = round_up(plan.strip, 16);
  plan.name = merged ? "direct_rows" : s.kernel_h == 1 && s.kernel_w == 1 && !s.transposed && !plan.strip ? "gemm_1x1" : "implicit_gemm";
  return SKUA_STATUS_OK;
}

double direct_cycles(const DirectPlan& plan, const DirectShape& s) {
  double cycles = 0;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    cycles += double(s.groups) * gemm_cycles(plan.tile, s.batch * p.y.count * p.x.count, s.out_channels / s.groups, p.depth(s));
    if (needs_strip(s, p)) {  // read from L2 or L3, written to L2: about 8 bytes a cycle
      const size_t bands = ceil_div(p.y.count, plan.band);
      cycles += double(s.batch * bands) * double(span(p.y, plan.band)) * double(span(p.x, p.x.count) * s.in_channels) * 4 / 8;
    }
  }
  return cycles;
}

static size_t worker_floats(const DirectPlan& plan) {
  return plan.strip + round_up(plan.segments * sizeof(ptrdiff_t), 64) / sizeof(float);
}
size_t direct_workspace(const DirectPlan& plan, uint32_t concurrency) { return mul_sat(worker_floats(plan) * sizeof(float), concurrency); }

namespace {

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  Phase phase;
  const float* packed;   // of the phase
  size_t band, bands;    // output rows per task, tasks per image
  size_t columns;        // pieces of the panels
};

// Rows [y0, y0 + rows) and columns [x0, x0 + width) of an image, zeros outside it.
void copy_strip(const DirectShape& s, const float* image, ptrdiff_t y0, size_t rows, ptrdiff_t x0, size_t width, float* to) {
  const size_t c = s.in_channels;
  const size_t left = min(x0 < 0 ? size_t(-x0) : 0, width), from = x0 < 0 ? 0 : min(size_t(x0), s.in_w), middle = min(s.in_w - from, width - left);
  for (size_t r = 0; r < rows; ++r, to += width * c) {
    const ptrdiff_t y = y0 + ptrdiff_t(r);
    if (y < 0 || size_t(y) >= s.in_h) {
      memset(to, 0, width * c * sizeof(float));
      continue;
    }
    const float* row = image + size_t(y) * s.in_row + from * s.in_pixel;
    memset(to, 0, left * c * sizeof(float));
    if (s.in_pixel == c) memcpy(to + left * c, row, middle * c * sizeof(float));
    else
      for (size_t i = 0; i < middle; ++i) memcpy(to + (left + i) * c, row + i * s.in_pixel, c * sizeof(float));
    memset(to + (left + middle) * c, 0, (width - left - middle) * c * sizeof(float));
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DirectShape& s = *r.s;
  const DirectOperands& x = *r.x;
  const Phase& p = r.phase;
  const size_t column = index % r.columns, band = index / r.columns % r.bands, image = index / r.columns / r.bands;
  const size_t j0 = band * r.band, rows = min(r.band, p.y.count - j0);
  float* strip = static_cast<float*>(x.workspace) + worker * worker_floats(*r.plan);
  auto* segments = reinterpret_cast<ptrdiff_t*>(strip + r.plan->strip);

  // Where the pixel under the first tap of output (j0, 0) is, and the steps from there.
  const float* origin = x.in + image * s.in_batch;
  size_t row_step = s.in_row, pixel = s.in_pixel;
  if (needs_strip(s, p)) {
    pixel = s.in_channels;
    row_step = span(p.x, p.x.count) * pixel;
    copy_strip(s, origin, ptrdiff_t(j0 * p.y.in_step) + p.y.first, span(p.y, rows), p.x.first, span(p.x, p.x.count), strip);
    origin = strip;
  } else if (p.depth(s)) {
    origin += (ptrdiff_t(j0 * p.y.in_step) + p.y.first) * ptrdiff_t(row_step) + p.x.first * ptrdiff_t(pixel);
  }
  const bool merged = merges(s, p, pixel);
  GemmBlock g = {};
  g.tile = r.plan->tile;
  g.format = format_of(g.tile);
  g.n = s.out_channels / s.groups;
  g.k = p.depth(s) ? s.in_channels / s.groups * (merged ? p.x.taps : 1) : 0;  // a phase of a transposed convolution may have no taps
  g.segments = segments;
  for (size_t ty = 0; ty < p.y.taps; ++ty)
    for (size_t tx = 0; tx < (merged ? 1 : p.x.taps); ++tx) segments[g.segment_count++] = ptrdiff_t(ty) * p.y.step * ptrdiff_t(row_step) + ptrdiff_t(tx) * p.x.step * ptrdiff_t(pixel);
  g.kc = depth_per_pass(g.tile, g.segment_count, g.k);
  g.alpha = 1;
  g.activation = *x.activation;
  g.residual = x.residual_mode;
  float* out = x.out + image * s.out_batch + (p.y.out_first + j0 * p.y.out_step) * s.out_row + p.x.out_first * s.out_pixel;
  const float* residual = x.residual ? x.residual + image * s.res_batch + (p.y.out_first + j0 * p.y.out_step) * s.res_row + p.x.out_first * s.res_pixel : nullptr;
  const size_t panels = panel_count(g.format, g.n), width = p.x.count;
  const size_t in_y = p.y.in_step * row_step, in_x = p.x.in_step * pixel;
  for (size_t group = 0; group < s.groups; ++group) {
    g.packed = r.packed + group * packed_floats(g.format, g.n, p.depth(s));
    g.bias = x.bias ? x.bias + group * round_up(g.n, 16) : nullptr;
    const float* a = origin + group * (s.in_channels / s.groups);
    const size_t channel = group * g.n;
    size_t next = SIZE_MAX, i = 0, j = 0;  // pixels come in order: divide only at the start of a panel
    run_block(g, 0, rows * width, piece_begin(panels, r.columns, column), piece_begin(panels, r.columns, column + 1), [&](size_t m) {
      if (m != next) { j = m / width; i = m % width; }
      const size_t o = j * p.y.out_step * s.out_row + i * p.x.out_step * s.out_pixel + channel;
      const RowPointers q = {a + j * in_y + i * in_x, out + o, residual ? residual + j * p.y.out_step * s.res_row + i * p.x.out_step * s.res_pixel + channel : nullptr};
      if (++i == width) { i = 0; ++j; }
      next = m + 1;
      return q;
    });
  }
}

}  // namespace

void direct_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  if (!s.batch || !s.out_h || !s.out_w) return;
  Run r = {&plan, &s, &x, {}, x.packed, 0, 0, 0};
  for (size_t i = 0; i < phase_count(s); ++i) {
    r.phase = phase_at(s, i);
    const size_t depth = r.phase.depth(s), count = r.phase.y.count, n = s.out_channels / s.groups;
    if (count && r.phase.x.count) {
      const double cycles = double(s.groups) * gemm_cycles(plan.tile, s.batch * count * r.phase.x.count, n, depth);
      const size_t panels = ceil_div(n, plan.tile->nr);
      const size_t pieces = pieces_for(args, s.batch * count * panels, cycles / double(s.batch * count * panels));
      r.bands = max(ceil_div(count, plan.band), min(count, ceil_div(pieces, s.batch)));
      r.band = ceil_div(count, r.bands);
      r.bands = ceil_div(count, r.band);
      r.columns = s.groups == 1 ? min(panels, max(pieces / max(r.bands * s.batch, 1), 1)) : 1;
      parallel(args, s.batch * r.bands * r.columns, task, &r);
    }
    r.packed += s.groups * packed_floats(format_of(plan.tile), n, depth);
  }
}

}  // namespace skua
