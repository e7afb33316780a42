// The walk over outputs. NHWC: runs of neighbouring outputs whose windows lie alike inside the image go to a kernel.
// NCHW: a vector of channels at a time, the rows that a band of output rows needs are transposed to channels last, as
// floats, pooled there, and transposed back.
#include <math.h>

#include "core/activation.h"
#include "core/quantize.h"
#include "pooling/pool_kernel.h"
#include "pooling/pool_op.h"

namespace skua {
namespace pool {
namespace {

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
    t.scale = c.ratio != 0 ? float(c.ratio / double(count_y * count_x)) : 1.0f / float(count_y * count_x);
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

// Channels of a block: whole lines, but for the last one's.
size_t block_begin(const Plan& p, size_t i) {
  const size_t line = 64 / element_bytes(p.kernel->element),
               at = piece_begin(p.channels / line, p.separable_blocks, i) * line;
  return i == p.separable_blocks ? p.channels : at;
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

}  // namespace

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
  const size_t workers = args.workers();
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

}  // namespace pool
}  // namespace skua
