#include "depthwise/depthwise.h"

#include <math.h>
#include "core/families.h"
#include "core/window.h"
#include "depthwise/depthwise_kernel.h"

namespace skua {
namespace {

constexpr size_t kStripChannels = 128;  // 512 bytes of a pixel: measured best of 64, 128 and 256

size_t vectors_of(size_t channels, size_t vector) { return ceil_div(channels, vector); }
// Channel at which vector v begins (v may be one past the last: the end).
size_t vector_begin(size_t channels, size_t vector, size_t v) {
  if (v * vector >= channels) return channels;
  return v * vector + vector > channels && channels >= vector ? channels - vector : v * vector;
}

bool is_tile(const Kernel* k) { return k->kind != KernelKind::depthwise_any; }
size_t vector_floats(const DepthwiseShape& s, size_t vector) { return (1 + size_t(s.kernel_h) * s.kernel_w * s.group) * vector; }  // of packed weights
// Whole groups in whole vectors; a vector of several groups takes a permutation, which instruction sets of 4 lanes have not.
bool holds_groups(const Kernel* k, size_t channels, size_t group) { return channels % k->vector == 0 && k->vector % group == 0 && (k->vector > 4 || k->vector == group); }
size_t span(size_t kernel, size_t dilation) { return (kernel - 1) * dilation + 1; }

// Why a tile kernel cannot compute this shape; NULL if it can.
const char* unfit(const Kernel* k, const DepthwiseShape& s) {
  const size_t kernel = k->variant / 10, stride = k->variant % 10;
  if (s.kernel_h != kernel || s.kernel_w != kernel || s.stride_h != stride || s.stride_w != stride) return "another kernel or stride";
  if (s.dilation_h != 1 || s.dilation_w != 1) return "dilated";
  if (s.out_channels() < k->vector) return "fewer channels than a vector";
  if (s.group > 1 && !holds_groups(k, s.channels, s.group)) return "vectors do not hold whole groups";
  if (s.out_w < size_t(k->nr + 1) / 2) return "fewer columns than half a tile";
  if (s.pad_left >= kernel || (s.out_w - 1) * stride + kernel > s.in_w + s.pad_left + kernel - 1) return "as much padding as kernel";
  return nullptr;
}

// Rows of the input that one band of output rows needs are copied to a compact ring of one block of channels: always with a multiplier, which replicates the
// channels on the way; and when pixels are a multiple of 2 KB apart, where the lines of a tile fall into too few sets of a first-level cache of 8 ways (measured:
// 1.2 to 1.6 times faster with 32 KB; with 48 KB in 12 ways the copy costs more than it saves).
bool uses_strip(const DepthwiseShape& s, const Kernel* k) {
  if (s.multiplier > 1) return true;
  return is_tile(k) && s.stride_w == 1 && s.channels > kStripChannels && s.in_pixel % 512 == 0 && machine_for(k->isa).l1 <= 32 << 10;
}

// Tiles across a row of outputs. Where a vector is a whole line and the layer does not fit the second-level cache, narrower ones: fewer lines at once of a pixel's
// length apart, which hardware prefetchers follow better (measured with 2 MB: 4 to 10% faster; a layer that fits becomes as much slower, and so do shorter vectors and larger kernels).
// Pixels a multiple of 1 KB apart share few sets of the first level: there from half of that size on.
size_t tiles_of(const DepthwiseShape& s, const Kernel* k) {
  const double bytes = double(s.batch) * 4 * (double(s.in_h) * double(s.in_w) * double(s.channels) + double(s.out_h) * double(s.out_w) * double(s.out_channels()));
  const bool narrow = k->vector >= 16 && s.kernel_w <= 3 && bytes > double(machine_for(k->isa).l2) * (s.in_pixel % 256 ? 15 : 7) / 16;
  return narrow ? max(s.out_w / (size_t(k->nr + 1) / 2), 1) : ceil_div(s.out_w, k->nr);
}

struct Blocks {
  size_t bands, band_rows;      // of output rows
  size_t blocks, vectors;       // of channels; vectors in all
  size_t ring_rows, ring_pixel; // strip
};
// Every block has two vectors or more if there are two: the last vector may overlap the one before it, and two tasks must not write the same output.
Blocks blocks_of(const DepthwiseShape& s, const Kernel* k, size_t workers) {
  Blocks b = {};
  b.band_rows = is_tile(k) ? k->mr : 1;
  b.bands = ceil_div(s.out_h, b.band_rows);
  b.vectors = vectors_of(s.out_channels(), k->vector);
  b.blocks = 1;
  const size_t most = max(b.vectors / 2, 1);
  if (uses_strip(s, k)) {
    b.blocks = min(ceil_div(b.vectors * k->vector, kStripChannels), most);
    b.ring_rows = (b.band_rows - 1) * s.stride_h + span(s.kernel_h, s.dilation_h);
    b.ring_pixel = ceil_div(b.vectors, b.blocks) * k->vector;
  } else if (workers > 1 && s.batch * b.bands < 4 * workers) {
    b.blocks = min(ceil_div(4 * workers, max(s.batch * b.bands, 1)), most);
  }
  return b;
}

// Per worker: row pointers of the kernel for any shape, then the ring. False: larger than the address space, with room for many workers.
size_t pointer_bytes(const DepthwiseShape& s, const Kernel* k) { return is_tile(k) ? 0 : round_up(size_t(s.kernel_h) * sizeof(float*), 64); }
bool worker_bytes(const DepthwiseShape& s, const Kernel* k, const Blocks& b, size_t& bytes) {
  size_t floats = 0;
  if (!mul(b.ring_rows, s.in_w, floats) || !mul(floats, b.ring_pixel * sizeof(float), bytes) || bytes > SIZE_MAX / 4096) return false;
  bytes = pointer_bytes(s, k) + round_up(bytes, 64);
  return true;
}

struct Run {
  const DepthwiseShape* s;
  const Kernel* kernel;
  const float *packed, *in, *residual;
  float* out;
  Activation activation;  // what runs after the kernel; the clamp below is the kernel's
  float low, high;
  skua_residual residual_mode;
  Blocks b;
  size_t pieces, worker_bytes;
  char* workspace;
};

// Residual and activation function of `pixels` neighbouring outputs, which are in the first-level cache.
void finish_pixels(const Run& r, float* y, const float* residual, size_t pixels, size_t channels) {
  const Activation& a = r.activation;
  for (size_t p = 0; p < pixels; ++p, y += r.s->out_pixel) {
    if (r.residual_mode == SKUA_RESIDUAL_BEFORE_ACTIVATION) {
      for (size_t c = 0; c < channels; ++c) y[c] += residual[c];
      if (!a.kernel)
        for (size_t c = 0; c < channels; ++c) {
          const float x = y[c] < a.low ? a.low : y[c];
          y[c] = x > a.high ? a.high : x;
        }
    }
    if (a.kernel) apply_row(a, channels, y);
    if (r.residual_mode == SKUA_RESIDUAL_AFTER_ACTIVATION)
      for (size_t c = 0; c < channels; ++c) y[c] += residual[c];
    if (residual) residual += r.s->res_pixel;
  }
}

// Channels [begin, end) of an image, and the ring that holds rows of it.
struct Block {
  const float* image;  // at channel 0
  float *out, *ring;
  const float* residual;
  const float* w;
  size_t begin, end;
  size_t filled;       // input rows below this one are in the ring, or were never needed
};

void fill_ring(const Run& r, Block& k, size_t first, size_t end) {
  const DepthwiseShape& s = *r.s;
  const size_t n = k.end - k.begin, m = s.multiplier;
  for (size_t y = max(k.filled, first); y < end; ++y) {
    float* to = k.ring + y % r.b.ring_rows * s.in_w * r.b.ring_pixel;
    const float* from = k.image + y * s.in_row + k.begin / m;
    if (m == 1) {  // only tiles use the ring then
      code_of<DepthwiseTileTableFn>(r.kernel)().copy(s.in_w, n, from, s.in_pixel, to, r.b.ring_pixel);
      continue;
    }
    for (size_t x = 0; x < s.in_w; ++x, from += s.in_pixel, to += r.b.ring_pixel) {
      size_t j = k.begin % m;
      const float* source = from;
      for (size_t i = 0; i < n; ++i) {
        to[i] = *source;
        if (++j == m) { j = 0; ++source; }
      }
    }
  }
  k.filled = max(k.filled, end);
}

// Pointer to input row y at the block's first channel, column 0.
const float* input_row(const Run& r, const Block& k, size_t y) {
  return k.ring ? k.ring + y % r.b.ring_rows * r.s->in_w * r.b.ring_pixel : k.image + y * r.s->in_row + k.begin;
}

void tile_band(const Run& r, Block& k, size_t band) {
  const DepthwiseShape& s = *r.s;
  const DepthwiseTileTable& table = code_of<DepthwiseTileTableFn>(r.kernel)();
  const size_t kernel = s.kernel_h, stride = s.stride_h, y0 = band * r.b.band_rows, rows = min(r.b.band_rows, s.out_h - y0);
  const size_t in_rows = (rows - 1) * stride + kernel, top = y0 * stride;
  const float* pointers[16];
  DepthwiseTile t;
  t.rows = pointers;
  t.row_mask = 0;
  if (k.ring) fill_ring(r, k, top > s.pad_top ? top - s.pad_top : 0, min(s.in_h, top + in_rows > s.pad_top ? top + in_rows - s.pad_top : 0));
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
  const bool rows_whole = t.row_mask == (1u << in_rows) - 1, finish = r.activation.kernel || r.residual_mode != SKUA_RESIDUAL_NONE;
  const size_t tiles = tiles_of(s, r.kernel);
  for (size_t i = 0, x = 0; i < tiles; ++i) {
    const size_t end = piece_begin(s.out_w, tiles, i + 1), columns = end - x, in_columns = (columns - 1) * stride + kernel, left = x * stride;
    const size_t before = left < s.pad_left ? s.pad_left - left : 0;                                                        // columns of padding in the tile
    const size_t after = left + in_columns > s.in_w + s.pad_left ? left + in_columns - s.in_w - s.pad_left : 0;
    t.column_mask = before + after >= in_columns ? 0 : ((uint32_t(1) << (in_columns - before - after)) - 1) << before;
    t.column = (ptrdiff_t(left) - ptrdiff_t(s.pad_left)) * ptrdiff_t(t.in_pixel);
    t.out = k.out + y0 * s.out_row + x * s.out_pixel + k.begin;
    table.at[rows - 1][int(columns) - table.min_columns][!rows_whole || before || after](t);
    if (finish)
      for (size_t y = 0; y < rows; ++y)
        finish_pixels(r, t.out + y * s.out_row, k.residual ? k.residual + (y0 + y) * s.res_row + x * s.res_pixel + k.begin : nullptr, columns, t.channels);
    x = end;
  }
}

void any_band(const Run& r, Block& k, size_t y, const float** pointers) {
  const DepthwiseShape& s = *r.s;
  const DepthwisePixelsTable& table = code_of<DepthwisePixelsTableFn>(r.kernel)();
  const Window1d v = {s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, 0}, h = {s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, 0};
  const size_t ky0 = v.first_tap(y), ky1 = max(v.end_tap(y), ky0);
  const size_t top = y * s.stride_h;
  if (k.ring && ky1 > ky0) fill_ring(r, k, top > s.pad_top ? top - s.pad_top : 0, top + (ky1 - 1) * s.dilation_h + 1 - s.pad_top);
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
    t.out = k.out + y * s.out_row + x * s.out_pixel + k.begin;
    table.at[part ? 2 : n > 1 ? 1 : 0](t);
    if (finish) finish_pixels(r, t.out, k.residual ? k.residual + y * s.res_row + x * s.res_pixel + k.begin : nullptr, n, t.channels);
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  note_use(r.kernel);
  if (r.activation.kernel) note_use(r.activation.kernel);
  const size_t units = s.batch * r.b.blocks * r.b.bands, channels = s.out_channels(), vector = r.kernel->vector;
  char* space = r.workspace + worker * r.worker_bytes;
  auto** pointers = reinterpret_cast<const float**>(space);
  Block k = {};
  k.ring = r.b.ring_rows ? reinterpret_cast<float*>(space + pointer_bytes(s, r.kernel)) : nullptr;
  const size_t from = piece_begin(units, r.pieces, index), to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    // From the bottom of the piece up where no ring of rows forbids it: the layer before ended there, so these rows are still in the second-level cache, as the upper rows of
    // the output are when the layer after begins with them (MobileNet V1 to V3: 2 to 3% less time). Without a ring neighbouring units are neighbouring rows, also when the
    // channels are cut: a worker has the part of the image that it had in the layer before.
    const size_t unit = k.ring ? u : from + to - 1 - u, image = unit / r.b.bands / r.b.blocks;
    const size_t band = k.ring ? unit % r.b.bands : unit / r.b.blocks % r.b.bands, block = k.ring ? unit / r.b.bands % r.b.blocks : unit % r.b.blocks;
    if (u == from || !k.ring || band == 0) {
      const size_t v0 = piece_begin(r.b.vectors, r.b.blocks, block), v1 = piece_begin(r.b.vectors, r.b.blocks, block + 1);
      k.image = r.in + image * s.in_batch;
      k.out = r.out + image * s.out_batch;
      k.residual = r.residual ? r.residual + image * s.res_batch : nullptr;
      k.begin = vector_begin(channels, vector, v0);
      k.end = v1 == r.b.vectors ? channels : v1 * vector;
      k.w = r.packed + v0 * vector_floats(s, vector);
      k.filled = 0;
    }
    if (is_tile(r.kernel)) tile_band(r, k, band);
    else any_band(r, k, band, pointers);
  }
}

}  // namespace

uint32_t depthwise_vector(const skua_context* ctx, size_t out_channels) {
  struct Search { const char* filter; size_t channels; uint32_t vector; bool forced; } s = {ctx->filter, out_channels, 0, false};
  const auto visit = [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    const bool forced = s.filter[0] && glob_match(s.filter, k->name);
    // Highest instruction set first: the first whose vectors are filled; else the shortest that is a vector at all. What the filter names comes before that.
    if (forced > s.forced || !s.vector || (forced == s.forced && s.vector > s.channels && k->vector < s.vector && k->vector > 1)) s.vector = k->vector;
    s.forced |= forced;
  };
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_any, -1, visit, &s);
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_tile, -1, visit, &s);
  return s.vector;
}

uint32_t grouped_vector(const skua_context* ctx, size_t channels, size_t group) {
  struct Search { const char* filter; size_t channels, group; uint32_t vector; bool forced; } s = {ctx->filter, channels, group, 0, false};
  each_kernel(ctx, depthwise_tables, KernelKind::grouped_tile, -1, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    const bool fits = holds_groups(k, s.channels, s.group), forced = s.filter[0] && glob_match(s.filter, k->name);
    if (fits && (!s.vector || forced > s.forced)) s.vector = k->vector;
    s.forced |= fits && forced;
  }, &s);
  return s.vector;
}

size_t depthwise_packed_floats(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels, uint32_t vector) {
  size_t taps, floats, bytes;
  if (!mul(kernel_h, kernel_w, taps) || !mul(taps, group, taps) || !add(taps, 1, taps) || !mul(taps, vectors_of(out_channels, vector), floats) || !mul(floats, vector, floats)) return 0;
  return mul(floats, sizeof(float), bytes) && bytes <= SIZE_MAX / 2 ? floats : 0;
}

void depthwise_pack(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels, uint32_t vector, const float* weights, size_t stride_o, size_t stride_i,
                    size_t stride_ky, size_t stride_kx, const float* bias, float* packed) {
  for (size_t v = 0; v < vectors_of(out_channels, vector); ++v) {
    const size_t first = vector_begin(out_channels, vector, v), n = min(vector, out_channels);
    for (size_t i = 0; i < vector; ++i) *packed++ = bias && i < n ? bias[first + i] : 0.0f;
    for (size_t ky = 0; ky < kernel_h; ++ky)
      for (size_t j = 0; j < group; ++j)
        for (size_t kx = 0; kx < kernel_w; ++kx)
          for (size_t i = 0; i < vector; ++i) *packed++ = i < n ? weights[(first + i) * stride_o + j * stride_i + ky * stride_ky + kx * stride_kx] : 0.0f;
  }
}

static double larger(double a, double b) { return a > b ? a : b; }  // fmax() would make a C program link libm

double depthwise_cycles(const Kernel* k, const DepthwiseShape& s) {
  const Machine m = machine_for(k->isa);
  const double vectors = double(vectors_of(s.out_channels(), k->vector)), taps = double(s.kernel_h) * s.kernel_w;
  auto bound = [&](double multiplies, double loads, double stores) {
    double c = (multiplies + 2 * stores) / m.fma_ports;  // the clamp runs where multiply-adds do
    c = larger(c, (loads + stores) / m.load_ports);
    return larger(c, (multiplies + 2 * loads + 2 * stores) / m.issue);
  };
  double compute = 0, calls = 0, reread = 1;  // reread: times that an input line comes from the second-level cache
  if (is_tile(k)) {
    const size_t tiles = tiles_of(s, k);
    const double columns = double(s.out_w) / double(tiles), in_columns = (columns - 1) * s.stride_w + s.kernel_w;
    auto band = [&](size_t rows) {
      const double in_rows = double(rows - 1) * s.stride_h + s.kernel_h;
      reread = in_rows * in_columns / (double(rows) * s.stride_h * columns * s.stride_w);
      if (s.group == 1) return double(tiles) * bound(double(rows) * columns * taps, in_rows * in_columns + taps + 1, double(rows) * columns);
      // Permutations of 512-bit vectors take a port of the multiply-adds.
      const double multiplies = double(rows) * columns * taps, inputs = in_rows * in_columns, permutes = k->vector > 8 && s.group < k->vector ? inputs : 0;
      return double(tiles) * bound((multiplies + permutes) * double(s.group), (inputs + taps * double(rows)) * double(s.group), double(rows) * columns);
    };
    compute = s.out_h % k->mr ? band(s.out_h % k->mr) : 0;
    if (s.out_h >= k->mr) compute += double(s.out_h / k->mr) * band(k->mr);
    calls = double(tiles) * double(ceil_div(s.out_h, k->mr));
  } else {
    const size_t reach = span(s.kernel_w, s.dilation_w), inner = s.in_w >= reach ? min((s.in_w - reach) / s.stride_w + 1, s.out_w) : 0, together = inner / k->nr * k->nr;
    const double alone = double(s.out_w - together);
    compute = double(s.out_h) * (double(together / k->nr) * bound(double(k->nr) * taps, double(k->nr + 1) * taps + taps, k->nr) + alone * bound(taps, 3 * taps, 1));
    calls = double(s.out_h) * (alone + double(together / k->nr));
    reread = double(s.kernel_h) * (double(k->nr - 1) * s.stride_w + s.kernel_w) / (double(s.stride_h) * s.stride_w * k->nr);
  }
  const double images = double(s.batch), pixels = double(s.in_h) * double(s.in_w);
  const double in = images * pixels * double(s.channels) * 4, out = images * double(s.out_h) * double(s.out_w) * double(s.out_channels()) * 4;
  double traffic = (in * reread + 2 * out) / m.l2_bytes;  // what is written is read before
  if (in + out > double(m.l2)) traffic = larger(traffic, (in + 2 * out) / (in + out > double(m.l3) ? m.memory_bytes : m.l3_bytes));
  double cycles = larger(compute * vectors * images, traffic) + 25 * calls * images + 200;
  if (uses_strip(s, k)) cycles += in * double(s.multiplier) / (s.multiplier > 1 ? 2 : m.l2_bytes);
  return cycles;
}

const Kernel* depthwise_choose(const skua_context* ctx, const DepthwiseShape& shape, uint32_t vector, Text* text, Choice* choice) {
  struct Search {
    const DepthwiseShape* shape;
    uint32_t vector;
    Text* text;
    Choice* choice;
    const Kernel* best;
    double cycles;
  } s = {&shape, vector, text, choice, nullptr, 0};
  auto visit = [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (k->vector != s.vector) return;
    if (const char* why = is_tile(k) ? unfit(k, *s.shape) : nullptr) {
      if (s.text) s.text->add("    %s: turned down, %s\n", k->name, why);
      return;
    }
    size_t bytes;
    if (!worker_bytes(*s.shape, k, blocks_of(*s.shape, k, 1), bytes)) return;
    if (s.choice && s.choice->skip()) return;
    const double cycles = depthwise_cycles(k, *s.shape);
    if (s.text) s.text->add("    %s: %.0f cycles predicted\n", k->name, cycles);
    if (!s.best || cycles < s.cycles) { s.best = k; s.cycles = cycles; }
  };
  if (shape.group > 1) {
    each_kernel(ctx, depthwise_tables, KernelKind::grouped_tile, -1, visit, &s);
    return s.best;
  }
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_tile, -1, visit, &s);
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_any, -1, visit, &s);
  return s.best;
}

size_t depthwise_workspace(const DepthwiseShape& shape, const Kernel* kernel, uint32_t concurrency) {
  size_t bytes = 0;
  worker_bytes(shape, kernel, blocks_of(shape, kernel, concurrency), bytes);
  return mul_sat(bytes, concurrency);
}

void depthwise_run(const RunArgs& args, const DepthwiseShape& shape, const Kernel* kernel, const float* packed, const Activation& activation,
                   skua_residual residual_mode, const float* in, const float* residual, float* out, void* workspace) {
  Run r = {};
  r.s = &shape;
  r.kernel = kernel;
  r.packed = packed; r.in = in; r.out = out;
  r.activation = activation;
  r.residual_mode = residual ? residual_mode : SKUA_RESIDUAL_NONE;
  r.residual = r.residual_mode == SKUA_RESIDUAL_NONE ? nullptr : residual;
  const bool clamps = !activation.kernel && r.residual_mode != SKUA_RESIDUAL_BEFORE_ACTIVATION;
  r.low = clamps ? activation.low : -INFINITY;
  r.high = clamps ? activation.high : INFINITY;
  r.b = blocks_of(shape, kernel, args.concurrency());
  worker_bytes(shape, kernel, r.b, r.worker_bytes);
  r.workspace = static_cast<char*>(workspace);
  const size_t units = shape.batch * r.b.blocks * r.b.bands;
  if (!units || !shape.out_w || !shape.channels) return;
  r.pieces = pieces_for(args, units, depthwise_cycles(kernel, shape) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
