// Pooling: shapes, and the walk over outputs. NHWC: runs of neighbouring outputs whose windows lie alike inside the
// image go to a kernel. NCHW: a vector of channels at a time, the rows that a band of output rows needs are transposed
// to channels last, as floats, pooled there, and transposed back.
#include <math.h>
#include <skua/pool.h>
#include "core/activation.h"
#include "core/families.h"
#include "core/quantize.h"
#include "gpu/operators.h"
#include "pooling/pool.h"
#include "pooling/pool_kernel.h"

namespace skua {
namespace {

using Config = PoolConfig;
using Map = PoolMap;

struct Op : skua_op {
  Config config;
  Activation activation, f32_activation;  // of rows of the tensors' type; of floats (of bytes: the same bounds)
};

struct Plan : skua_plan, PoolShape {
  size_t inner_begin, inner_end;  // outputs of a row with every tap inside
  Map out, indices;
  const Kernel* rows_kernel;  // that takes one input row of windows at a time; NULL: none does
  const Kernel* down_kernel;  // that takes windows with every tap inside; NULL: none does
  size_t inner_rows_begin, inner_rows_end;  // rows of outputs with every tap inside, where there is one
  size_t in_any_order;  // bytes of a window that come as fast in any order as in that of addresses
  // NCHW: a band of output rows of one vector of channels. band 0: planes too large to copy are read in place, one
  // channel at a time.
  size_t band, band_in;      // rows of output, of input
  size_t scratch_in, scratch_out;  // floats, whatever the type of the tensors
  const Kernel *from_planes, *to_planes, *indices_to_planes;
  // Separable: the taps of a row are put together once, in the workspace, for all windows over it. NHWC: bands of
  // output rows and blocks of channels that stay in L2. separable_band 0: not so.
  size_t separable_band, separable_blocks, separable_bytes;
};

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  if (is_int8(Element(op.config.type))) {
    op.activation = op.f32_activation = {op.config.low, op.config.high, nullptr, 0, 0};
    return SKUA_STATUS_OK;
  }
  SKUA_TRY(resolve_activation(base, op.config.activation, op.f32_activation));
  return resolve_activation(base, op.config.activation, op.activation, Element(op.config.type));
}

constexpr size_t kMostTapsOfBytes = size_t(1) << 23;  // their sum and that of the zero points fit 32 bits

constexpr double kLargestScratch = 1 << 20;  // floats of a worker

// Input rows that a band of output rows needs, at most.
size_t band_rows(const Window1d& w, size_t band) { return min((band - 1) * w.stride + w.span(), w.in); }
// Output rows that so many input rows are enough for. (No loop: rows of no channels, and rows that padding makes, may
// be any number.)
size_t band_of(const Window1d& w, size_t rows) {
  return rows >= w.in ? w.out : rows < w.span() ? 0 : min((rows - w.span()) / w.stride + 1, w.out);
}

// The kernel that transposes vectors of this length; NULL if the kernel filter leaves none.
const Kernel* transposer(const skua_context* ctx, int variant, size_t vector, Element element) {
  struct Search { size_t vector; const Kernel* found; } s = {vector, nullptr};
  each_kernel(ctx, pooling_tables, KernelKind::pool_transpose, variant, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!s.found && k->vector == s.vector) s.found = k;
  }, &s, element);
  return s.found;
}

// The kernel for rows of windows whose vectors these channels are, of half of the longest at least (Zen 5: 112x112x24
// 30 us by windows, 22 by rows and AVX2's); NULL: none.
const Kernel* row_kernel(const skua_context* ctx, KernelKind kind, size_t channels, Element element) {
  struct Search { size_t channels, longest; const Kernel* found; } s = {channels, 0, nullptr};
  each_kernel(ctx, pooling_tables, kind, 1, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    s.longest = max(s.longest, size_t(k->vector));
    if (!s.found && s.channels % k->vector == 0 && 2 * size_t(k->vector) >= s.longest) s.found = k;
  }, &s, element);
  return s.found;
}

// Channels of a block: whole lines, but for the last one's.
size_t block_begin(const Plan& p, size_t i) {
  const size_t line = 64 / element_bytes(p.kernel->element),
               at = piece_begin(p.channels / line, p.separable_blocks, i) * line;
  return i == p.separable_blocks ? p.channels : at;
}

// Whether windows of rows first and of columns then take so much less that what lies between is repaid; `band` output
// rows if it is given, of `n` channels. Of sums f32 only, whose order is the same.
void plan_separable(const Config& c, size_t band, size_t n, Plan& p) {
  const Element element = p.kernel->element;
  const bool may = c.kind == SKUA_POOL_MAX || (c.kind == SKUA_POOL_AVERAGE && element == Element::f32);
  if (!may || p.rows_kernel || p.y.dilation != 1 || !p.y.out || !p.x.out || p.y.kernel < 2 || p.x.kernel < 2) return;
  const size_t bytes = element_bytes(element);
  constexpr size_t kBlock = 384;  // bytes of a block at least: a pass over a window
  size_t blocks = 1;
  if (!band) {
    const size_t line = 64 / bytes, limit = machine_for(p.kernel->isa).l2 / 4;
    blocks = max(n * bytes / kBlock, 1);
    n = ceil_div(n / line, blocks) * line + (n % line);
    band = max(min(p.y.out, p.y.kernel), band_of(p.y, limit / max(mul_sat(p.x.out, n * bytes), 1)));
  }
  // In loads of a vector: a window begins and ends in as long as some (measured on a Zen 5), what lies between is
  // written and read.
  const double vectors = max(double(n * bytes) / double(p.kernel->vector * sizeof(float)), 1.0),
               rows = double(band_rows(p.y, band)), again = rows / double(band),
               ends = c.kind == SKUA_POOL_MAX ? 7 : 13;
  const double whole = double(p.y.kernel) * double(p.x.kernel) * vectors + ends,
               apart = (double(p.x.kernel) * vectors + ends) * again + double(p.y.kernel) * vectors + ends +
                       vectors * again;
  // beyond L2 a window waits less for loads than for what it has not read yet
  const double map = double(p.y.in + p.y.out) * double(p.x.in) * double(p.channels) * bytes;
  if (whole < (map > double(machine_for(p.kernel->isa).l2) ? 1.8 : 1.35) * apart ||
      rows * double(p.x.out) * double(n) * bytes > kLargestScratch * sizeof(float))
    return;
  p.separable_band = band;
  p.separable_blocks = blocks;
  p.separable_bytes = round_up(size_t(rows) * p.x.out * n * bytes, 64);
}

// Outputs of an axis with every tap inside: [begin, end).
void inner_outputs(const Window1d& w, size_t& begin, size_t& end) {
  const size_t reach = w.in + w.pad_before;
  end = reach >= w.span() ? min((reach - w.span()) / w.stride + 1, w.out) : 0;
  begin = min(ceil_div(w.pad_before, w.stride), end);
}

// Results so far that leave the first level are dear on some cores, where a map stays in the second level (Sapphire
// Rapids: maxima of 28x28x192 59 us by rows of input, 33 so, of 14x14x480 33 and 18; averages of 35x35x192 115 and 61
// to 100. With a stride of 2 it is level, beyond L2 1.3 to 2 times as long.)
void plan_down(const skua_op* op, KernelKind kind, bool nchw, const Machine& machine, Plan& p) {
  const auto three = [](const Window1d& w) { return w.kernel == 3 && w.stride == 1 && w.dilation == 1; };
  if (!p.rows_kernel || nchw || !three(p.y) || !three(p.x)) return;
  inner_outputs(p.y, p.inner_rows_begin, p.inner_rows_end);
  if (p.inner_rows_end - p.inner_rows_begin < 2 || p.inner_end - p.inner_begin < kPoolDownPixels) return;
  const Kernel* k = find_kernel(op->ctx, pooling_tables, kind, 2, Element::f32);
  if (!k || k->vector != p.rows_kernel->vector) return;
  const double map = (double(p.y.in) * double(p.x.in) + double(p.y.out) * double(p.x.out)) * double(p.channels) *
                     sizeof(float);
  const bool named = op->ctx->filter[0] && glob_match(op->ctx->filter, k->name);
  if (named || (machine.write_back > 1 && map <= double(machine.l2))) p.down_kernel = k;
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_shape(base, c, s, p, p.outputs));
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW;
  inner_outputs(p.x, p.inner_begin, p.inner_end);
  const bool bytes = is_int8(Element(c.type));
  if (bytes && c.kind == SKUA_POOL_AVERAGE && mul_sat(p.y.kernel, p.x.kernel) > kMostTapsOfBytes)
    return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu bytes, more than %zu", base->cls->name, p.y.kernel, p.x.kernel,
                             kMostTapsOfBytes);
  const KernelKind kinds[] = {KernelKind::pool_max, KernelKind::pool_average, KernelKind::pool_indices};
  const Element element = Element(c.type);
  const Kernel* f32 = find_kernel(op.ctx, pooling_tables, kinds[c.kind], 0);
  p.kernel = find_kernel(op.ctx, pooling_tables, kinds[c.kind], 0, element);
  if (!p.kernel) return SKUA_UNSUPPORTED_("%s: no kernel in this build", base->cls->name);
  const Machine machine = machine_for(p.kernel->isa);
  p.in_any_order = machine.l2_bytes > 48 ? machine.l1 + machine.l1 / 2 : SIZE_MAX;
  // Windows that share rows: each row is read once, and put together once; results so far are read and written again,
  // which more than three windows over a row, and maps of a few outputs, do not repay.
  // The first and the last window of a row have the fewest taps.
  const auto columns = [&](size_t x) { return p.x.end_tap(x) - p.x.first_tap(x); };
  const size_t fewest = p.x.out ? min(columns(0), columns(p.x.out - 1)) : 0;
  const bool share = p.y.stride < p.y.kernel && ceil_div(p.y.kernel, p.y.stride) <= 3 && p.y.dilation == 1 &&
                     p.x.dilation == 1 && min(p.y.out, p.x.out) > 3;
  if (share && fewest >= kPoolRowTaps[0] && p.x.kernel <= kPoolRowTaps[1])
    // none of positions, bytes and halves
    p.rows_kernel = nchw ? find_kernel(op.ctx, pooling_tables, kinds[c.kind], 1, Element::f32)
                         : row_kernel(op.ctx, kinds[c.kind], p.channels, element);
  plan_down(base, kinds[c.kind], nchw, machine, p);
  // Floats hold a maximum of bytes as it is, of an average not every sum.
  const bool in_place = bytes && c.kind == SKUA_POOL_AVERAGE;
  p.algorithm = !nchw ? "channels" : in_place ? "planes_in_place" : "planes";
  if (in_place) return SKUA_STATUS_OK;
  if (!nchw) plan_separable(c, 0, p.channels, p);
  if (p.separable_band) p.algorithm = "separable";
  if (!nchw || !p.y.out || !p.x.out) return SKUA_STATUS_OK;
  p.from_planes = transposer(op.ctx, 0, f32->vector, element);
  p.to_planes = transposer(op.ctx, 1, f32->vector, element);
  p.indices_to_planes = transposer(op.ctx, 1, f32->vector, Element::f32);
  const double vector = f32->vector;
  if (!p.from_planes || !p.to_planes || !p.indices_to_planes ||
      double(band_rows(p.y, 1)) * double(p.x.in) * vector > kLargestScratch ||
      double(p.x.out) * vector > kLargestScratch) {
    p.algorithm = "planes_in_place";
    return SKUA_STATUS_OK;
  }
  p.kernel = f32;
  // As many rows as fit beside their outputs in an eighth of the second-level cache, so that few input rows are copied
  // twice; one at least.
  const size_t line = p.x.in * p.kernel->vector, out_line = p.x.out * p.kernel->vector * p.n_outputs,
               limit = machine_for(p.kernel->isa).l2 / 8 / sizeof(float);
  p.band = 1;
  while (p.band < p.y.out && band_rows(p.y, p.band + 1) * line + (p.band + 1) * out_line <= limit) ++p.band;
  p.band_in = band_rows(p.y, p.band);
  p.scratch_in = round_up(p.band_in * line, 16);
  p.scratch_out = round_up(p.band * out_line, 16);
  plan_separable(c, p.band, p.kernel->vector, p);
  if (p.separable_band) p.algorithm = "separable_planes";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_map(base, op_of(&p).config, "output", 0, p.outputs[0], p.out));
  if (p.n_outputs > 1) SKUA_TRY(pool_map(base, op_of(&p).config, "output", 1, p.outputs[1], p.indices));
  return SKUA_STATUS_OK;
}

size_t scratch_floats(const Plan& p) { return p.band ? p.scratch_in + p.scratch_out : 0; }
size_t worker_bytes(const Plan& p) { return round_up(scratch_floats(p) * sizeof(float), 64) + p.separable_bytes; }
size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  return mul_sat(worker_bytes(plan_of(plan)), concurrency);
}

struct Run {
  const RunArgs* args;
  const char* in;
  char* out;
  int32_t* indices;
  size_t bytes;                  // of an element of in and out
  size_t blocks, bands, pieces;  // blocks of channels, bands of output rows
};

// Taps of output o that average pooling divides by.
size_t counted(const Window1d& w, bool count_padding, size_t o) {
  if (!count_padding) return w.end_tap(o) - w.first_tap(o);
  return min(ceil_div(w.in + w.pad_before + w.pad_after - o * w.stride, w.dilation), w.kernel);
}

// Channels last: n channels of one image, of the kernel's type. `in` is input row `first_row`, `out` and `indices` the
// output row.
struct Channels {
  const void* in;
  size_t first_row, in_row, in_pixel, n;
  void* out;
  size_t out_pixel;
  int32_t* indices;
  size_t indices_pixel;
};

// f(x, pixels, left, columns): outputs of a row from x on that have the same columns of taps inside; left: the first
// column of the first.
template <class F> void each_run(const Plan& p, const F& f) {
  for (size_t x = 0, end; x < p.x.out; x = end) {
    const size_t kx = p.x.first_tap(x);
    end = x == p.inner_begin && x < p.inner_end ? p.inner_end : x + 1;
    f(x, end - x, x * p.x.stride + kx * p.x.dilation - p.x.pad_before, p.x.end_tap(x) - kx);
  }
}

// borders: only outputs with taps outside, left and right.
void pool_row(const Plan& p, const Channels& m, size_t oy, bool borders = false) {
  const Op& op = op_of(&p);
  const Config& c = op.config;
  const PoolFn fn = code_of<PoolFn>(p.kernel);
  const Activation& activation = p.kernel->element == Element::f32 ? op.f32_activation : op.activation;
  const size_t bytes = element_bytes(p.kernel->element);
  const size_t ky = p.y.first_tap(oy), top = oy * p.y.stride + ky * p.y.dilation - p.y.pad_before,
               count_y = counted(p.y, c.count_padding, oy);
  PoolPixels t = {};
  t.rows = p.y.end_tap(oy) - ky;
  t.row = p.y.dilation * m.in_row;
  t.tap = p.x.dilation * m.in_pixel;
  t.pixel = p.x.stride * m.in_pixel;
  t.channels = m.n;
  t.low = activation.low; t.high = activation.high;
  t.zero = c.zero; t.zero_point = c.zero_point;
  t.out_pixel = m.out_pixel;
  t.indices_pixel = m.indices ? m.indices_pixel : 0;
  t.index_row = uint32_t(p.y.dilation * p.x.in);
  t.index_tap = uint32_t(p.x.dilation);
  t.index_pixel = uint32_t(p.x.stride);
  each_run(p, [&](size_t x, size_t pixels, size_t left, size_t columns) {
    if (borders && x >= p.inner_begin && x < p.inner_end) return;
    const size_t count_x = counted(p.x, c.count_padding, x);
    t.columns = columns;
    t.in = static_cast<const char*>(m.in) + ((top - m.first_row) * m.in_row + left * m.in_pixel) * bytes;
    t.pixels = pixels;
    t.in_order = mul_sat(mul_sat(t.rows, t.columns), m.n * bytes) > p.in_any_order;
    t.scale = c.ratio ? float(c.ratio / double(count_y * count_x)) : 1.0f / float(count_y * count_x);
    char* to = static_cast<char*>(m.out) + x * m.out_pixel * bytes;
    t.out = to;
    t.indices = m.indices ? m.indices + x * m.indices_pixel : nullptr;
    t.index = uint32_t(top * p.x.in + left);
    fn(t);
    if (activation.kernel)
      for (size_t i = 0; i < t.pixels; ++i) apply_row(activation, m.n, to + i * m.out_pixel * bytes);
  });
}

// Output rows [y0, y1) of floats, `out_row` apart: one input row after another, each read once and in the order of
// addresses.
void pool_in_order(const Plan& p, const Channels& m, size_t out_row, size_t y0, size_t y1) {
  const Op& op = op_of(&p);
  const Activation& activation = op.f32_activation;
  note_use(p.rows_kernel);
  const auto first = [&](size_t oy) { return oy * p.y.stride + p.y.first_tap(oy) - p.y.pad_before; };
  const auto end = [&](size_t oy) { return oy * p.y.stride + p.y.end_tap(oy) - p.y.pad_before; };
  PoolRow t = {};
  t.tap = m.in_pixel;
  t.pixel = p.x.stride * m.in_pixel;
  t.out_pixel = m.out_pixel;
  t.channels = m.n;
  t.low = activation.low; t.high = activation.high;
  float *ends = nullptr, *within = nullptr, *begins = nullptr;
  size_t count_y = 1;
  const auto run = [&](size_t r) {
    each_run(p, [&](size_t x, size_t pixels, size_t left, size_t columns) {
      const size_t at = x * m.out_pixel;
      t.in = static_cast<const float*>(m.in) + (r - m.first_row) * m.in_row + left * m.in_pixel;
      t.columns = columns;
      t.pixels = pixels;
      t.ends = ends ? ends + at : nullptr;
      t.within = within ? within + at : nullptr;
      t.begins = begins ? begins + at : nullptr;
      t.scale = 1.0f / float(count_y * counted(p.x, op.config.count_padding, x));
      code_of<PoolRowFn>(p.rows_kernel)(t);
      if (ends && activation.kernel)
        for (size_t i = 0; i < pixels; ++i) apply_row(activation, m.n, ends + at + i * m.out_pixel);
    });
    ends = within = begins = nullptr;
  };
  for (size_t r = first(y0), from = y0; from < y1; ++r) {
    for (size_t oy = from; oy < y1 && first(oy) <= r; ++oy) {
      const bool last = r + 1 == end(oy);
      float*& to = last ? ends : r == first(oy) ? begins : within;
      if (to) run(r);  // windows cut by the padding end or begin together
      to = static_cast<float*>(m.out) + (oy - y0) * out_row;
      if (last) {
        count_y = counted(p.y, op.config.count_padding, oy);
        from = oy + 1;
      }
    }
    if (ends || within || begins) run(r);
  }
}

// Output rows [y0, y1), a band at most, `out_row` apart: first what each row's windows have in every input row, then
// those of the columns.
void pool_separably(const Plan& p, const Channels& m, size_t out_row, size_t y0, size_t y1, void* scratch) {
  const Op& op = op_of(&p);
  const Config& c = op.config;
  const PoolFn fn = code_of<PoolFn>(p.kernel);
  const Element element = p.kernel->element;
  const Activation& activation = element == Element::f32 ? op.f32_activation : op.activation;
  const size_t bytes = element_bytes(element), line = p.x.out * m.n;
  const auto first = [&](size_t oy) { return oy * p.y.stride + p.y.first_tap(oy) - p.y.pad_before; };
  const size_t begin = first(y0), end = (y1 - 1) * p.y.stride + p.y.end_tap(y1 - 1) - p.y.pad_before;
  PoolPixels t = {};
  t.channels = t.out_pixel = m.n;
  t.rows = 1;
  t.tap = p.x.dilation * m.in_pixel;
  t.pixel = p.x.stride * m.in_pixel;
  t.scale = 1;
  t.low = is_int8(element) ? float(least_of(element)) : -INFINITY;
  t.high = is_int8(element) ? float(greatest_of(element)) : INFINITY;
  for (size_t r = begin; r < end; ++r)
    each_run(p, [&](size_t x, size_t pixels, size_t left, size_t columns) {
      t.in = static_cast<const char*>(m.in) + ((r - m.first_row) * m.in_row + left * m.in_pixel) * bytes;
      t.columns = columns;
      t.pixels = pixels;
      t.out = static_cast<char*>(scratch) + ((r - begin) * line + x * m.n) * bytes;
      fn(t);
    });
  t.columns = 1;
  t.row = line;
  t.pixel = m.n;
  t.low = activation.low; t.high = activation.high;
  t.out_pixel = m.out_pixel;
  for (size_t oy = y0; oy < y1; ++oy) {
    const size_t count_y = counted(p.y, c.count_padding, oy);
    t.rows = p.y.end_tap(oy) - p.y.first_tap(oy);
    each_run(p, [&](size_t x, size_t pixels, size_t, size_t) {
      char* const to = static_cast<char*>(m.out) + ((oy - y0) * out_row + x * m.out_pixel) * bytes;
      t.in = static_cast<const char*>(scratch) + ((first(oy) - begin) * line + x * m.n) * bytes;
      t.pixels = pixels;
      t.out = to;
      t.scale = 1.0f / float(count_y * counted(p.x, c.count_padding, x));
      fn(t);
      if (activation.kernel)
        for (size_t i = 0; i < pixels; ++i) apply_row(activation, m.n, to + i * m.out_pixel * bytes);
    });
  }
}

// Output rows [y0, y1) of floats, `out_row` apart: windows with every tap inside down the image, the others one by one.
void pool_down(const Plan& p, const Channels& m, size_t out_row, size_t y0, size_t y1) {
  const Activation& activation = op_of(&p).f32_activation;
  const size_t first = max(p.inner_rows_begin, y0), end = min(p.inner_rows_end, y1), x = p.inner_begin;
  float* const out = static_cast<float*>(m.out);
  for (size_t y = y0; y < y1; ++y) {
    Channels row = m;
    row.out = out + (y - y0) * out_row;
    pool_row(p, row, y, y >= first && y < end);
  }
  if (first >= end) return;
  note_use(p.down_kernel);
  const float* in = static_cast<const float*>(m.in) + (first - p.y.pad_before - m.first_row) * m.in_row +
                    (x - p.x.pad_before) * m.in_pixel;
  float* const to = out + (first - y0) * out_row + x * m.out_pixel;
  const size_t rows = end - first, pixels = p.inner_end - x;
  code_of<PoolDownFn>(p.down_kernel)({in, m.in_row, m.in_pixel, to, out_row, m.out_pixel, rows, pixels, m.n,
                                      1.0f / float(p.y.kernel * p.x.kernel), activation.low, activation.high});
  for (size_t r = 0; activation.kernel && r < rows; ++r)
    for (size_t i = 0; i < pixels; ++i) apply_row(activation, m.n, to + r * out_row + i * m.out_pixel);
}

// Output rows [y0, y1), `out_row` and `indices_row` apart; m.out and m.indices are the first.
void pool_rows(const Plan& p, Channels m, size_t out_row, size_t indices_row, size_t y0, size_t y1) {
  if (p.down_kernel) return pool_down(p, m, out_row, y0, y1);
  const bool in_order = p.rows_kernel;
  while (y0 < y1) {
    size_t end = y0;
    while (in_order && end < y1 && p.y.end_tap(end) > p.y.first_tap(end) + 1) ++end;
    if (end > y0) pool_in_order(p, m, out_row, y0, end);
    else pool_row(p, m, end++);
    m.out = static_cast<char*>(m.out) + (end - y0) * out_row * element_bytes(p.kernel->element);
    if (m.indices) m.indices += (end - y0) * indices_row;
    y0 = end;
  }
}

// Between planes of the caller's and the scratch's [rows][columns][L]. Rows without a gap are one.
void transpose_rows(const Kernel* kernel, size_t n, size_t rows, size_t columns, const void* from, size_t from_row,
                    void* to, size_t to_row, size_t plane, size_t plane_row) {
  const size_t from_bytes = kernel->variant ? sizeof(float) : element_bytes(kernel->element),
               to_bytes = kernel->variant ? element_bytes(kernel->element) : sizeof(float);
  if (plane_row == columns || rows == 1) {
    columns *= rows;
    rows = 1;
  }
  for (size_t y = 0; y < rows; ++y)
    code_of<PoolTransposeFn>(kernel)(n, columns, static_cast<const char*>(from) + y * from_row * from_bytes, plane,
                                     static_cast<char*>(to) + y * to_row * to_bytes);
}

// A band of output rows of one vector of channels, or of one channel in place.
void pool_planes(const Run& r, const Plan& p, size_t image, size_t block, size_t band, float* scratch,
                 void* separable) {
  const size_t vector = p.kernel->vector, c0 = block * (p.band ? vector : 1),
               n = p.band ? min(vector, p.channels - c0) : 1;
  const char* in = r.in + (image * p.in.image + c0 * p.in.plane) * r.bytes;
  char* out = r.out + (image * p.out.image + c0 * p.out.plane) * r.bytes;
  int32_t* indices = r.indices ? r.indices + image * p.indices.image + c0 * p.indices.plane : nullptr;
  if (!p.band) {
    pool_row(p,
             {in, 0, p.in.row, 1, 1, out + band * p.out.row * r.bytes, 1,
              indices ? indices + band * p.indices.row : nullptr, 1},
             band);
    return;
  }
  const size_t y0 = band * p.band, y1 = min(y0 + p.band, p.y.out), top = y0 * p.y.stride,
               reach = (y1 - 1) * p.y.stride + p.y.span();
  const size_t first = top > p.y.pad_before ? top - p.y.pad_before : 0,
               end = min(reach > p.y.pad_before ? reach - p.y.pad_before : 0, p.y.in);
  const size_t line = p.x.in * vector, out_line = p.x.out * vector, outputs = p.band * out_line;
  float* to = scratch + p.scratch_in;
  transpose_rows(p.from_planes, n, end - first, p.x.in, in + first * p.in.row * r.bytes, p.in.row, scratch, line,
                 p.in.plane, p.in.row);
  const Channels m = {scratch, first, line,   vector,
                      vector,  to,    vector, indices ? reinterpret_cast<int32_t*>(to + outputs) : nullptr,
                      vector};
  if (p.separable_band) pool_separably(p, m, out_line, y0, y1, separable);
  else pool_rows(p, m, out_line, out_line, y0, y1);
  transpose_rows(p.to_planes, n, y1 - y0, p.x.out, to, out_line, out + y0 * p.out.row * r.bytes, p.out.row, p.out.plane,
                 p.out.row);
  if (indices)  // moved as they are
    transpose_rows(p.indices_to_planes, n, y1 - y0, p.x.out, to + outputs, out_line, indices + y0 * p.indices.row,
                   p.indices.row, p.indices.plane, p.indices.row);
}

// Where block i of a row begins: whole lines, but for the last one's.
size_t lines_of(const Run& r, const Plan& p) { return p.channels * r.bytes / 64; }
size_t first_channel(const Run& r, const Plan& p, size_t i) {
  return i == r.blocks ? p.channels : piece_begin(lines_of(r, p), r.blocks, i) * 64 / r.bytes;
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  note_use(p.kernel);
  if (p.band) {
    note_use(p.from_planes);
    note_use(p.to_planes);
    if (r.indices) note_use(p.indices_to_planes);
  }
  const Op& op = op_of(&p);
  if (const Kernel* k = p.kernel->element == Element::f32 ? op.f32_activation.kernel : op.activation.kernel)
    note_use(k);
  const bool nchw = op.config.layout == SKUA_LAYOUT_NCHW;
  const size_t units = p.batch * r.bands * r.blocks;
  for (size_t u = piece_begin(units, r.pieces, index), end = piece_begin(units, r.pieces, index + 1), together; u < end;
       u += together) {
    const size_t band = nchw ? u % r.bands : u / r.blocks % r.bands,
                 block = nchw ? u / r.bands % r.blocks : u % r.blocks, image = u / r.bands / r.blocks;
    together = 1;
    char* const scratch = static_cast<char*>(r.args->workspace) + worker * worker_bytes(p);
    void* const separable = scratch + worker_bytes(p) - p.separable_bytes;
    if (nchw) {
      pool_planes(r, p, image, block, band, reinterpret_cast<float*>(scratch), separable);
      continue;
    }
    if (p.separable_band) {
      const size_t c0 = block_begin(p, block), y0 = band * p.separable_band;
      const Channels m = {r.in + (image * p.in.image + c0) * r.bytes,
                          0,
                          p.in.row,
                          p.in.pixel,
                          block_begin(p, block + 1) - c0,
                          r.out + (image * p.out.image + y0 * p.out.row + c0) * r.bytes,
                          p.out.pixel,
                          nullptr,
                          0};
      pool_separably(p, m, p.out.row, y0, min(y0 + p.separable_band, p.y.out), separable);
      continue;
    }
    // Blocks of a row are one, and so are rows that are not cut into blocks.
    together = min(end - u, r.blocks > 1 ? r.blocks - block : r.bands - band);
    const size_t blocks = r.blocks > 1 ? together : 1, c0 = first_channel(r, p, block),
                 c1 = first_channel(r, p, block + blocks);
    const Channels m = {r.in + (image * p.in.image + c0) * r.bytes,
                        0,
                        p.in.row,
                        p.in.pixel,
                        c1 - c0,
                        r.out + (image * p.out.image + band * p.out.row + c0) * r.bytes,
                        p.out.pixel,
                        r.indices ? r.indices + image * p.indices.image + band * p.indices.row + c0 : nullptr,
                        p.indices.pixel};
    pool_rows(p, m, p.out.row, p.indices.row, band, r.blocks > 1 ? band + 1 : band + together);
  }
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  Run r = {};
  r.args = &args;
  r.in = args.in<char>(0);
  r.out = args.out<char>(0);
  r.bytes = element_bytes(Element(op_of(&p).config.type));
  if (p.n_outputs > 1) r.indices = args.out<int32_t>(1);
  if (!p.batch || !p.y.out || !p.x.out || !p.channels) return;
  r.blocks = 1;
  r.bands = p.y.out;
  const uint32_t workers = args.concurrency();
  const Machine m = machine_for(p.kernel->isa);
  const double bytes = double(p.batch) * double(p.channels) * double(r.bytes) *
                       (double(p.y.in) * double(p.x.in) + double(p.y.out) * double(p.x.out));
  // else what is read comes from the last cache level, or from what another core wrote
  const bool near = bytes < double(m.l2);
  if (op_of(&p).config.layout == SKUA_LAYOUT_NCHW) {
    r.blocks = p.band ? ceil_div(p.channels, p.kernel->vector) : p.channels;
    if (p.band) r.bands = ceil_div(p.y.out, p.band);
  } else if (p.separable_band) {
    r.blocks = p.separable_blocks;
    r.bands = ceil_div(p.y.out, p.separable_band);
  } else if (workers > 1 && p.batch * r.bands < 4 * workers) {
    // Too few rows for the workers: cut the channels as well, in pieces of four lines or more, of three if there are no
    // more; of maps beyond L2, which arrive line by line, of two or one (Zen 5, two workers: 56x56x96 of f32 8.8 us in
    // one, 4.8 in halves).
    const size_t lines = lines_of(r, p);
    r.blocks = min(ceil_div(4 * workers, p.batch * r.bands),
                   max(near ? max(lines / 4, min(lines / 3, workers)) : max(lines / 2, min(lines, workers)), 1));
    if (r.blocks > workers) r.blocks -= r.blocks % workers;
  }
  const size_t units = p.batch * r.bands * r.blocks;
  const double window = p.separable_band ? double(p.x.kernel) * double(min(p.y.stride, p.y.kernel)) + double(p.y.kernel)
                                         : double(p.y.kernel) * double(p.x.kernel);
  const double taps = double(p.y.out) * window * double(p.x.out) * double(p.channels) * double(p.batch);
  const double traffic = bytes / (near ? m.l2_bytes : m.l3_bytes), cycles = taps / p.kernel->vector;
  r.pieces = pieces_for(args, units, (cycles > traffic ? cycles : traffic) / double(units) + 20);
  parallel(args, r.pieces, task, &r);
}

const OpClass pool2d_class = {
    .name = "pool2d", .id = 5,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_pool2d_create(skua_context* context, const skua_pool2d_desc* desc, skua_op** out) {
  skua_pool2d_desc d;
  SKUA_TRY(read_desc("pool2d", context, desc, d, out));
  const bool bytes = is_int8(Element(d.type));
  SKUA_TRY(bytes ? need_int8("pool2d", "type", d.type) : need_float("pool2d", "type", d.type, true));
  SKUA_TRY(need_quantization_of("pool2d", "input_q", d.input_q, d.type));
  SKUA_TRY(need_quantization_of("pool2d", "output_q", d.output_q, d.type));
  SKUA_TRY(check_activation("pool2d", d.activation));
  if (unsigned(d.kind) > SKUA_POOL_MAX_INDICES) return SKUA_INVALID("pool2d: kind is %d, unknown", int(d.kind));
  if (bytes && d.kind != SKUA_POOL_AVERAGE &&
      (d.input_q.scale != d.output_q.scale || d.input_q.zero_point != d.output_q.zero_point))
    return SKUA_UNSUPPORTED_(
        "pool2d: input_q and output_q differ; a maximum keeps the quantisation, use convert for another");
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("pool2d: layout is %d, unknown", int(d.layout));
  if (!d.global)
    SKUA_TRY(
        check_window("pool2d", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.dilation_w, d.padding));
  SKUA_ON_GPU(context, create_pool(context, d, out));
  skua_op* base;
  SKUA_TRY(new_op(pool2d_class, context, 1, d.kind == SKUA_POOL_MAX_INDICES ? 2 : 1, 0, &base));
  Config& c = static_cast<Op*>(base)->config;
  c = pool_config(d);
  if (bytes) {
    const skua_status s = pool_quantization(d, c);
    if (s != SKUA_STATUS_OK) {
      skua_op_destroy(base);
      return s;
    }
  }
  return open_op(base, out);
}
