// Depthwise convolution: the walk over images, blocks of channels, bands of rows, tiles.
#include <math.h>
#include "depthwise/blocks.h"
#include "depthwise/depthwise_kernel.h"
#include "depthwise/replicate.h"

namespace skua {
using namespace depthwise;
namespace {

struct Run {
  const DepthwiseShape* s;
  const Kernel* kernel;
  OnCores kernels;
  const char *packed, *in, *residual;
  char* out;
  size_t bytes;           // of an element of the feature maps
  Activation activation;  // what runs after the kernel; the clamp below is the kernel's
  float low, high;
  skua_residual residual_mode;
  Blocks b;
  size_t pieces, worker_bytes;
  char* workspace;
};

// Residual and activation function of `pixels` neighbouring outputs: a row of them, as each call begins and ends with a
// chain of twenty and more operations.
template <class T>
void finish_pixels(const Run& r, void* outputs, const void* residuals, size_t pixels, size_t channels) {
  const Activation& a = r.activation;
  T* y = static_cast<T*>(outputs);
  const T* residual = static_cast<const T*>(residuals);
  const bool clamps = r.residual_mode == SKUA_RESIDUAL_BEFORE_ACTIVATION && !a.kernel;
  // pixels without a gap are one: short ones end often
  if (channels == r.s->out_pixel && (!residual || channels == r.s->res_pixel)) { channels *= pixels; pixels = 1; }
  for (size_t p = 0; p < pixels; ++p, y += r.s->out_pixel) {
    if (r.residual_mode == SKUA_RESIDUAL_BEFORE_ACTIVATION)
      for (size_t c = 0; c < channels; ++c) {
        float x = widen(y[c]) + widen(residual[c]);
        if (clamps) {
          x = x < a.low ? a.low : x;
          x = x > a.high ? a.high : x;
        }
        narrow(x, y[c]);
      }
    if (a.kernel) apply_row(a, channels, y);
    if (r.residual_mode == SKUA_RESIDUAL_AFTER_ACTIVATION)
      for (size_t c = 0; c < channels; ++c) narrow(widen(y[c]) + widen(residual[c]), y[c]);
    if (residual) residual += r.s->res_pixel;
  }
}
void finish_pixels(const Run& r, void* y, const void* residual, size_t pixels, size_t channels) {
  switch (r.kernel->element) {
#define SKUA_TYPE(T, name) case Element::name: return finish_pixels<T>(r, y, residual, pixels, channels);
    SKUA_FOR_TYPES(SKUA_TYPE)
#undef SKUA_TYPE
    default: return;
  }
}

// Channels [begin, end) of an image, and the ring that holds rows of it.
struct Block {
  const Kernel* kernel;
  const char* image;   // at channel 0
  char *out, *ring;
  const char* residual;
  const char* w;
  size_t begin, end;
  size_t filled;       // input rows below this one are in the ring, or were never needed
};

void fill_ring(const Run& r, Block& k, size_t first, size_t end) {
  const DepthwiseShape& s = *r.s;
  const size_t n = k.end - k.begin, m = s.multiplier;
  for (size_t y = max(k.filled, first); y < end; ++y) {
    char* to = k.ring + y % r.b.ring_rows * s.in_w * r.b.ring_pixel * r.bytes;
    const char* from = k.image + (y * s.in_row + k.begin / m) * r.bytes;
    if (m == 1 && is_tile(r.kernel))
      code_of<DepthwiseTileTableFn>(r.kernel)().copy(s.in_w, n, from, s.in_pixel, to, r.b.ring_pixel);
    else if (m == 1)
      for (size_t x = 0; x < s.in_w; ++x)
        memcpy(to + x * r.b.ring_pixel * r.bytes, from + x * s.in_pixel * r.bytes, n * r.bytes);
    else if (r.bytes == 4) replicate<float>(from, s.in_pixel, to, r.b.ring_pixel, s.in_w, k.begin % m, n, m);
    else replicate<uint16_t>(from, s.in_pixel, to, r.b.ring_pixel, s.in_w, k.begin % m, n, m);
  }
  k.filled = max(k.filled, end);
}

// Pointer to input row y at the block's first channel, column 0.
const void* input_row(const Run& r, const Block& k, size_t y) {
  return k.ring ? k.ring + y % r.b.ring_rows * r.s->in_w * r.b.ring_pixel * r.bytes
                : k.image + (y * r.s->in_row + k.begin) * r.bytes;
}

void tile_band(const Run& r, Block& k, size_t band) {
  const DepthwiseShape& s = *r.s;
  const DepthwiseTileTable& table = code_of<DepthwiseTileTableFn>(k.kernel)();
  const size_t kernel = s.kernel_h, stride = s.stride_h, y0 = band * r.b.band_rows,
               rows = min(r.b.band_rows, s.out_h - y0);
  const size_t in_rows = (rows - 1) * stride + kernel, top = y0 * stride;
  const void* pointers[16];
  DepthwiseTile t;
  t.rows = pointers;
  t.row_mask = 0;
  if (k.ring)
    fill_ring(r, k, top > s.pad_top ? top - s.pad_top : 0,
              min(s.in_h, top + in_rows > s.pad_top ? top + in_rows - s.pad_top : 0));
  for (size_t i = 0; i < in_rows; ++i) {
    const bool inside = top + i >= s.pad_top && top + i - s.pad_top < s.in_h;
    t.row_mask |= uint32_t(inside) << i;
    pointers[i] = inside ? input_row(r, k, top + i - s.pad_top) : k.image;
  }
  t.in_pixel = k.ring ? r.b.ring_pixel : s.in_pixel;
  t.w = k.w;
  t.channels = k.end - k.begin;
  t.group = s.group;
  t.low = r.low; t.high = r.high;
  t.out_row = s.out_row; t.out_pixel = s.out_pixel;
  const bool rows_whole = t.row_mask == (1u << in_rows) - 1,
             finish = r.activation.kernel || r.residual_mode != SKUA_RESIDUAL_NONE;
  const size_t tiles = tiles_of(s, r.kernel), most = tile_columns(s, r.kernel);
  const bool rows_all = rows == r.kernel->mr;
  for (size_t i = 0, x = 0; i < tiles; ++i) {
    const size_t end = tile_begin(s, most, tiles, i + 1), columns = end - x,
                 in_columns = (columns - 1) * stride + kernel, left = x * stride;
    // columns of padding in the tile
    const size_t before = left < s.pad_left ? s.pad_left - left : 0;
    const size_t after = left + in_columns > s.in_w + s.pad_left ? left + in_columns - s.in_w - s.pad_left : 0;
    t.column_mask = before + after >= in_columns ? 0 : ((uint32_t(1) << (in_columns - before - after)) - 1) << before;
    t.column = (ptrdiff_t(left) - ptrdiff_t(s.pad_left)) * ptrdiff_t(t.in_pixel);
    t.out = k.out + (y0 * s.out_row + x * s.out_pixel + k.begin) * r.bytes;
    t.columns = uint32_t(columns);
    const bool masks = !rows_whole || before || after;
    if (rows_all && columns == r.kernel->nr) {
      DepthwiseTileFn whole = table.whole[masks];
      if (masks)
        for (const auto& e : table.edge)
          if (e.column_mask == t.column_mask && e.row_mask == t.row_mask && e.tile) whole = e.tile;
      whole(t);
    }
    else if (rows_all && columns == table.narrow_columns) table.narrow[masks](t);
    else table.part[rows - 1](t);
    x = end;
  }
  for (size_t y = y0; finish && y < y0 + rows; ++y)
    finish_pixels(r, k.out + (y * s.out_row + k.begin) * r.bytes,
                  k.residual ? k.residual + (y * s.res_row + k.begin) * r.bytes : nullptr, s.out_w, t.channels);
}

// Outputs that no tap reaches, which no kernel is called for.
void put_bias(const DepthwiseRow& t, size_t vector, size_t values) {
  const size_t vectors = vectors_of(t.channels, vector);
  for (size_t p = 0; p < t.outputs; ++p)
    for (size_t v = 0; v < vectors; ++v) {
      const float* bias = t.w + v * values;
      float* out = t.out + p * t.out_pixel + vector_begin(t.channels, vector, v);
      for (size_t i = 0; i < vector; ++i) {
        const float x = bias[i] < t.low ? t.low : bias[i];
        out[i] = x > t.high ? t.high : x;
      }
    }
}
// One row of input after another: see DepthwiseRow.
void rows_band(const Run& r, const Block& k, size_t band, float* sums) {
  const DepthwiseShape& s = *r.s;
  const DepthwiseRowTable& table = code_of<DepthwiseRowTableFn>(k.kernel)();
  const Window1d v = {s.in_h, s.out_h, s.kernel_h, s.stride_h, 1, s.pad_top, 0};
  const size_t last_tap = s.kernel_h - 1, y0 = band * r.b.band_rows, y1 = min(s.out_h, y0 + r.b.band_rows);
  const bool finish = r.activation.kernel || r.residual_mode != SKUA_RESIDUAL_NONE;
  DepthwiseRow t;
  t.in_pixel = s.in_pixel;
  t.channels = k.end - k.begin;
  t.outputs = s.out_w;
  t.left = s.pad_left != 0;
  t.right = (s.out_w - 1) * s.stride_w + s.kernel_w > s.in_w + s.pad_left;
  t.w = reinterpret_cast<const float*>(k.w);
  t.sums = sums;
  t.sums_pixel = block_channels(s, k.kernel, r.b);
  t.low = r.low; t.high = r.high;
  t.out_pixel = s.out_pixel;
  bool begun = false;  // by the row that was the last of the outputs above
  for (size_t y = y0; y < y1; ++y) {
    const size_t first = v.first_tap(y), end = v.end_tap(y);
    t.out = reinterpret_cast<float*>(k.out) + y * s.out_row + k.begin;
    if (first >= end) put_bias(t, k.kernel->vector, vector_values(s, k.kernel->vector));
    for (size_t tap = first + begun; tap < end; ++tap) {
      const bool begins = tap == first, done = tap + 1 == end;
      t.in = static_cast<const float*>(input_row(r, k, y * s.stride_h + tap - s.pad_top));
      t.tap = uint32_t(tap);
      begun = tap == last_tap && !begins && y + 1 < y1 && v.end_tap(y + 1) > 1;
      if (begun) table.next(t);
      else table.at[begins + 2 * done](t);
    }
    if (finish)
      finish_pixels(r, t.out, k.residual ? k.residual + (y * s.res_row + k.begin) * r.bytes : nullptr, s.out_w,
                    t.channels);
  }
}

void any_band(const Run& r, Block& k, size_t y, const void** pointers) {
  const DepthwiseShape& s = *r.s;
  const DepthwisePixelsTable& table = code_of<DepthwisePixelsTableFn>(r.kernel)();
  const Window1d v = {s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, 0},
                 h = {s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, 0};
  const size_t ky0 = v.first_tap(y), ky1 = max(v.end_tap(y), ky0);
  const size_t top = y * s.stride_h;
  if (k.ring && ky1 > ky0)
    fill_ring(r, k, top > s.pad_top ? top - s.pad_top : 0, top + (ky1 - 1) * s.dilation_h + 1 - s.pad_top);
  for (size_t ky = ky0; ky < ky1; ++ky) pointers[ky - ky0] = input_row(r, k, top + ky * s.dilation_h - s.pad_top);
  const size_t pixel = k.ring ? r.b.ring_pixel : s.in_pixel, vector = r.kernel->vector;
  DepthwisePixels t;
  t.rows = pointers;
  t.n_rows = ky1 - ky0;
  t.in_tap = s.dilation_w * pixel;
  t.in_pixel = s.stride_w * pixel;
  t.w = k.w;
  t.w_row = s.kernel_w * vector;
  t.w_vector = (1 + size_t(s.kernel_h) * s.kernel_w) * vector;
  t.channels = k.end - k.begin;
  t.low = r.low; t.high = r.high;
  t.out_pixel = s.out_pixel;
  const bool part = t.channels < vector, finish = r.activation.kernel || r.residual_mode != SKUA_RESIDUAL_NONE;
  for (size_t x = 0, n; x < s.out_w; x += n) {
    const size_t kx0 = h.first_tap(x), kx1 = max(h.end_tap(x), kx0), last = x + r.kernel->nr - 1;
    n = !part && last < s.out_w && h.first_tap(last) == kx0 && h.end_tap(last) == kx1 ? r.kernel->nr : 1;
    t.n_columns = kx1 - kx0;
    t.column = t.n_columns ? ptrdiff_t((x * s.stride_w + kx0 * s.dilation_w - s.pad_left) * pixel) : 0;
    t.w_first = (1 + ky0 * s.kernel_w + kx0) * vector;
    t.out = k.out + (y * s.out_row + x * s.out_pixel + k.begin) * r.bytes;
    table.at[part ? 2 : n > 1 ? 1 : 0](t);
  }
  if (finish)
    finish_pixels(r, k.out + (y * s.out_row + k.begin) * r.bytes,
                  k.residual ? k.residual + (y * s.res_row + k.begin) * r.bytes : nullptr, s.out_w, t.channels);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  if (r.activation.kernel) note_use(r.activation.kernel);
  const size_t units = s.batch * r.b.blocks * r.b.bands, channels = s.out_channels(), vector = r.kernel->vector;
  char* space = r.workspace + worker * r.worker_bytes;
  auto** pointers = reinterpret_cast<const void**>(space);
  Block k = {};
  k.kernel = r.kernels.here();
  note_use(k.kernel);
  k.ring = r.b.ring_rows ? space + pointer_bytes(s, r.kernel) : nullptr;
  const size_t from = piece_begin(units, r.pieces, index), to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    // From the bottom of the piece up where no ring of rows forbids it: the layer before ended there, so these rows are
    // still in the second-level cache, as the upper rows of the output are when the layer after begins with them
    // (MobileNet V1 to V3: 2 to 3% less time). Without a ring neighbouring units are neighbouring rows, also when the
    // channels are cut: a worker has the part of the image that it had in the layer before.
    const size_t unit = k.ring ? u : from + to - 1 - u, image = unit / r.b.bands / r.b.blocks;
    const size_t band = k.ring ? unit % r.b.bands : unit / r.b.blocks % r.b.bands,
                 block = k.ring ? unit / r.b.bands % r.b.blocks : unit % r.b.blocks;
    if (u == from || !k.ring || band == 0) {
      const size_t v0 = block_begin(s, r.kernel, r.b, block), v1 = block_begin(s, r.kernel, r.b, block + 1);
      k.image = r.in + image * s.in_batch * r.bytes;
      k.out = r.out + image * s.out_batch * r.bytes;
      k.residual = r.residual ? r.residual + image * s.res_batch * r.bytes : nullptr;
      k.begin = vector_begin(channels, vector, v0);
      k.end = v1 == r.b.vectors ? channels : v1 * vector;
      k.w = r.packed + v0 * vector_values(s, vector) * element_bytes(summed_in(r.kernel));
      k.filled = 0;
    }
    if (is_tile(r.kernel)) tile_band(r, k, band);
    else if (is_rows(r.kernel)) rows_band(r, k, band, reinterpret_cast<float*>(space));
    else any_band(r, k, band, pointers);
  }
}

// A task of a dilated layer is one of a phase.
struct Phases {
  Run run;
  size_t workers;
};
void phase_task(void* arg, size_t index, uint32_t worker) {
  const Phases& p = *static_cast<const Phases*>(arg);
  const DepthwiseShape& s = *p.run.s;
  const size_t phase = index / p.run.pieces;
  PhaseBegin begin;
  const DepthwiseShape shape = float_phase(s, p.run.bytes, phase / phases_x(s), phase % phases_x(s), &begin);
  Run r = p.run;
  r.s = &shape;
  r.in += begin.in * r.bytes;
  r.out += begin.out * r.bytes;
  if (r.residual) r.residual += begin.residual * r.bytes;
  r.b = blocks_of(shape, r.kernel, p.workers);
  task(&r, index % r.pieces, worker);
}
void run_phases(const RunArgs& args, const Run& run) {
  const DepthwiseShape& s = *run.s;
  const size_t phases = phases_y(s) * phases_x(s);
  if (!s.batch || !phases || !s.channels) return;
  Phases p = {run, args.workers()};
  const Blocks b = blocks_of(float_phase(s, run.bytes, 0, 0), run.kernel, p.workers);
  const size_t units = s.batch * b.blocks * b.bands;
  p.run.pieces =
      max(pieces_for(args, phases * units, depthwise_cycles(run.kernel, s) / double(phases * units)) / phases, 1);
  parallel(args, phases * p.run.pieces, phase_task, &p);
}

}  // namespace

OnCores depthwise_on_cores(const skua_context* ctx, const Kernel* kernel) {
  return on_cores(ctx, depthwise_tables, kernel, [](const Kernel* other, const Kernel* tile) {
    return other->mr == tile->mr && other->nr == tile->nr;
  });
}

size_t depthwise_workspace(const DepthwiseShape& shape, const Kernel* kernel, uint32_t concurrency) {
  size_t bytes = 0;
  worker_bytes(shape, kernel, concurrency, bytes);
  return mul_sat(bytes, concurrency);
}

void depthwise_run(const RunArgs& args, const DepthwiseShape& shape, const Kernel* kernel, const float* packed,
                   const Activation& activation, skua_residual residual_mode, const void* in, const void* residual,
                   void* out, void* workspace) {
  Run r = {};
  r.s = &shape;
  r.kernel = kernel;
  r.kernels = depthwise_on_cores(args.plan->op->ctx, kernel);
  r.packed = reinterpret_cast<const char*>(packed);
  r.in = static_cast<const char*>(in);
  r.out = static_cast<char*>(out);
  r.bytes = element_bytes(kernel->element);
  r.activation = activation;
  r.residual_mode = residual ? residual_mode : SKUA_RESIDUAL_NONE;
  r.residual = r.residual_mode == SKUA_RESIDUAL_NONE ? nullptr : static_cast<const char*>(residual);
  const bool clamps = !activation.kernel && r.residual_mode != SKUA_RESIDUAL_BEFORE_ACTIVATION;
  r.low = clamps ? activation.low : -INFINITY;
  r.high = clamps ? activation.high : INFINITY;
  worker_bytes(shape, kernel, args.concurrency(), r.worker_bytes);
  r.workspace = static_cast<char*>(workspace);
  if (by_phases(shape, kernel)) return run_phases(args, r);
  r.b = blocks_of(shape, kernel, args.concurrency());
  const size_t units = shape.batch * r.b.blocks * r.b.bands;
  if (!units || !shape.out_w || !shape.channels) return;
  r.pieces = pieces_for(args, units, depthwise_cycles(kernel, shape) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
