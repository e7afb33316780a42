// The loop of winograd.h: blocks of tiles, cut over workers.
#include <math.h>
#include <string.h>
#include "winograd/points.h"
#include "winograd/winograd.h"

namespace skua {
namespace {

// Tiles of a block stand in the order of their classes, kinds in y and x, so that those of the product of a point are
// one range, without a dilation: a clip in y drops the last classes, a clip in x the first of the whole rows and the
// last of the others.
using Kind = WinogradTiles::Kind;
constexpr int kKinds = 3, kClasses = kKinds * kKinds;
constexpr int class_of(int y, int x) { return kKinds * y + (y == WinogradTiles::whole ? kKinds - 1 - x : x); }
constexpr int kind_y(int cls) { return cls / kKinds; }
constexpr int kind_x(int cls) { return kind_y(cls) == WinogradTiles::whole ? kKinds - 1 - cls % kKinds : cls % kKinds; }

struct Tile {
  uint32_t image, y, x;  // y, x: its first output
  uint8_t clip_y, clip_x, cls;
};

// Work for several workers: ranges of tiles; where there are too few, every range is also cut into columns.
struct Cut {
  size_t ranges;
  size_t columns;  // of a pass over the points: all, or with several workers a part
  bool shared;     // every range is transformed once, by all workers, before; else every task does it for itself
};

// Bytes from point to point: an odd number of cache lines, so that the streams of a transform fall into different sets
// of L1.
size_t odd_lines(size_t bytes) { return (ceil_div(bytes, 64) | 1) * 64; }

// Where one pass computes all columns, M of a point takes the place of V of the point before, which is in the near
// caches and no longer needed: V begins one point later, `shift` bytes, and M has no memory of its own.
struct Layout {
  size_t list, v, m;      // bytes, of a block
  size_t v_step, m_step;  // bytes from point to point
  size_t shift;
};

Layout layout_of(const WinogradPlan& p, const WinogradShape& s, const Cut& cut) {
  const size_t points = winograd_points(p.variant),
               depth = winograd_parts(p.variant) * round_up(s.in_channels, kWinogradLine) * element_bytes(p.element),
               columns = round_up(cut.columns, kWinogradLine) * sizeof(float);
  const bool together = !cut.shared && cut.columns >= s.out_channels;
  Layout l;
  l.v_step = odd_lines(p.block * (together ? max(depth, columns) : depth));
  l.m_step = together ? l.v_step : odd_lines(p.block * columns);
  l.shift = together ? l.v_step : 0;
  l.list = round_up(p.block * sizeof(Tile), 64);
  l.v = points * l.v_step + l.shift;
  l.m = together ? 0 : points * l.m_step;
  return l;
}

Cut cut(const RunArgs& args, const WinogradPlan& p, const WinogradShape& s) {
  const size_t nr = p.tile->nr, groups = ceil_div(s.out_channels, nr), units = p.tiles * groups, all = groups * nr;
  const size_t pieces = pieces_for(args, units, p.cycles / double(units));
  if (pieces == 1) return {1, all, false};
  // Ranges for each worker alone: as many blocks as one thread would do; where U is little also smaller ones, as long
  // as a product has rows enough. (Zen 3, two workers, U of one to two L2: 14x14x64-64 55 to 47 us, 5x5 of 7x7x32-128
  // 51 to 46, bytes of 14x14x64-128 68 to 60. Of 2.4 MB and more it is no better.)
  const double u_bytes = double(winograd_products(p.variant)) *
                         double(winograd_channels(p.variant, s.in_channels, p.element)) * double(s.out_channels) *
                         element_bytes(p.element);
  const size_t mr = p.tile->mr, workers = args.workers(), blocks = ceil_div(p.tiles, p.block);
  size_t own = max(p.tiles / min(p.block, 2 * mr), blocks);
  // 24 tiles are nearly a whole product of 28 rows (Zen 5, two workers: 49 tiles of 28x28x512-512 in halves 2.36 ms,
  // each with half of the columns 2.48; of 16 tiles columns are 10% faster).
  if (own < workers) own = max(own, p.tiles / 24);
  if (u_bytes < 2 * double(machine_for(p.tile->isa).l2))
    own = max(own, max(p.tiles / mr, min(workers, 2 * p.tiles / mr)));
  own = min(own, pieces);
  if (own >= workers || groups == 1) return {min(round_up(own, workers), p.tiles), all, false};
  // Fewer: their output channels are cut, one part for each worker, for each part reads all of V. A few workers
  // transform for themselves rather than wait for each other and read from another's cache (14x14x256 with two workers:
  // 320 us with four parts each of a shared V, 255 us so).
  const size_t ranges = max(own, blocks), parts = workers % ranges ? ceil_div(2 * workers, ranges) : workers / ranges;
  return {ranges, ceil_div(groups, parts) * nr, workers > 4};
}

struct Run {
  const RunArgs* args;
  const WinogradPlan* plan;
  const WinogradShape* shape;
  const float* packed;
  const void* bias;
  const GemmTile* end;
  const char *in, *residual;
  char* out;
  Activation activation;
  skua_residual residual_mode;
  Cut cut;
  Layout layout;
  char* workspace;
  size_t transform_pieces;

  static ptrdiff_t bytes(Element e, ptrdiff_t elements) { return elements * ptrdiff_t(element_bytes(e)); }
  ptrdiff_t in_bytes(ptrdiff_t elements) const { return bytes(shape->element, elements); }
  ptrdiff_t out_bytes(ptrdiff_t elements) const { return bytes(shape->result, elements); }
  // list and V: of a worker, or of a range where shared
  char* slot(size_t i) const { return workspace + i * (layout.list + layout.v); }
  Tile* list(size_t i) const { return reinterpret_cast<Tile*>(slot(i)); }
  char* v(size_t i) const { return slot(i) + layout.list + layout.shift; }
  char* m(uint32_t worker) const {
    if (layout.shift) return v(worker) - layout.shift;
    const size_t slots = cut.shared ? cut.ranges : args->concurrency();
    return slot(slots) + worker * layout.m;
  }
};

// Tiles [from, to) of the batch in the order of their classes.
void list_tiles(const WinogradPlan& p, size_t from, size_t to, Tile* list) {
  const size_t per_image = p.tiles_y * p.tiles_x;
  size_t count[kClasses] = {};
  for (int pass = 0; pass < 2; ++pass) {
    size_t image = from / per_image, y = from % per_image / p.tiles_x, x = from % p.tiles_x;
    for (size_t t = from; t < to; ++t) {
      const WinogradTiles::Tile row = p.y.at(uint32_t(y)), column = p.x.at(uint32_t(x));
      const int cls = class_of(row.kind, column.kind);
      if (pass) list[count[cls]] = {uint32_t(image), row.first, column.first, row.clip, column.clip, uint8_t(cls)};
      ++count[cls];
      if (++x == p.tiles_x) {
        x = 0;
        if (++y == p.tiles_y) { y = 0; ++image; }
      }
    }
    if (!pass)
      for (size_t c = 0, at = 0; c < kClasses; ++c) {
        const size_t n = count[c];
        count[c] = at;
        at += n;
      }
  }
}

// Transforms tiles list[i] for i in [from, to) of a block of n into V.
void transform_in(const Run& r, const Tile* list, size_t from, size_t to, size_t n, char* v) {
  const WinogradPlan& p = *r.plan;
  const WinogradShape& s = *r.shape;
  const int my = winograd_rows(p.variant), mx = winograd_columns(p.variant), stride = winograd_stride(p.variant),
            apart = winograd_apart(p.variant);
  const size_t lines = ceil_div(s.in_channels, kWinogradLine);
  const WinogradInFn fn = code_of<WinogradInFn>(p.in);
  WinogradIn t = {};
  // pixels from one value of a tile to the next
  const size_t step_y = size_t(stride) * s.dilation_h, step_x = size_t(stride) * s.dilation_w;
  t.row = s.in_row * step_y;
  t.pixel = s.in_pixel * step_x;
  t.zero = s.in_zero;
  t.channels = s.in_channels;
  t.step = r.layout.v_step / element_bytes(p.element);
  t.line = n * kWinogradLine;
  // Behind the last channel of a part come those of the next one: U is 0 there, and V of floats must not be a NaN.
  const size_t last_line = winograd_parts(p.variant) > 1 && p.element != Element::s16 && s.in_channels % kWinogradLine
                               ? kWinogradLine * element_bytes(p.element)
                               : 0;
  // Values of a tile before the n-th pixel from its first one.
  const auto before = [](ptrdiff_t n, size_t step, int most) {
    return uint8_t(n <= 0 ? 0 : min(ceil_div(size_t(n), step), size_t(most)));
  };
  for (size_t i = from; i < to; ++i) {
    const Tile& tile = list[i];
    for (size_t part = 0; part < winograd_parts(p.variant); ++part) {
      const int part_y = winograd_sides(p.variant) > 1 ? winograd_part_y(part) : 0,
                part_x = winograd_sides(p.variant) > 1 ? winograd_part_x(part) : 0;
      const ptrdiff_t y = ptrdiff_t(tile.y) * stride + ptrdiff_t(s.dilation_h) * part_y * apart - ptrdiff_t(s.pad_top);
      const ptrdiff_t x = ptrdiff_t(tile.x) * stride + ptrdiff_t(s.dilation_w) * part_x * apart - ptrdiff_t(s.pad_left);
      // Odd rows and columns of stride 2 have no infinity, nor the value that only it takes.
      t.clip_y = uint8_t(stride == 2 ? tile.clip_y | part_y : tile.clip_y);
      t.clip_x = uint8_t(stride == 2 ? tile.clip_x | part_x : tile.clip_x);
      const int rows = winograd_height(p.variant) - t.clip_y, columns = winograd_width(p.variant) - t.clip_x;
      // Of odd rows no more than a tile has outputs: what lies behind may be in no window at all, and not finite.
      t.top = before(-y, step_y, rows);
      t.bottom = before(ptrdiff_t(s.in_h) - y, step_y, stride == 2 && part_y ? my - tile.clip_y : rows);
      t.left = before(-x, step_x, columns);
      t.right = before(ptrdiff_t(s.in_w) - x, step_x, stride == 2 && part_x ? mx - tile.clip_x : columns);
      t.in =
          r.in + r.in_bytes(ptrdiff_t(tile.image * s.in_batch) + y * ptrdiff_t(s.in_row) + x * ptrdiff_t(s.in_pixel));
      t.v = at(v, p.element, ptrdiff_t((part * lines * n + i) * kWinogradLine));
      if (last_line)
        for (size_t point = 0; point < winograd_points(p.variant); ++point)
          memset(at(t.v, p.element, ptrdiff_t(point * t.step + (lines - 1) * t.line)), 0, last_line);
      fn(t);
    }
  }
}

constexpr size_t kStrip = 64, kMostOutputs = 36;  // channels and pixels of a tile's outputs on the stack

// Where the outputs of a tile from a channel on are, and its residual.
struct Pixels {
  void* to[kMostOutputs];
  const void* from[kMostOutputs];
};
Pixels pixels_of(const Run& r, size_t rows, size_t columns, size_t channel, char* out, const char* residual) {
  const WinogradShape& s = *r.shape;
  Pixels p;
  for (size_t y = 0, i = 0; y < rows; ++y)
    for (size_t x = 0; x < columns; ++x, ++i) {
      p.to[i] = out + r.out_bytes(ptrdiff_t(y * s.dilation_h * s.out_row + x * s.dilation_w * s.out_pixel + channel));
      p.from[i] =
          residual ? residual +
                         r.out_bytes(ptrdiff_t(y * s.dilation_h * s.res_row + x * s.dilation_w * s.res_pixel + channel))
                   : nullptr;
    }
  return p;
}

// Outputs of a tile with an activation that is no clamp, rounded to the maps' type after it. t: as for the kernel, but
// the residual.
void finish_function(const Run& r, WinogradOut t, size_t rows, size_t columns, char* out, const char* residual) {
  const WinogradOutFn fn = code_of<WinogradOutFn>(r.plan->out_f32);
  const GemmRowTable& finish = code_of<GemmRowTableFn>(r.plan->rows)();
  alignas(64) float sums[kMostOutputs * kStrip];
  const size_t all = t.channels, pixels = rows * columns;
  t.residual = nullptr;
  t.out = sums;
  t.row = columns * kStrip;
  t.pixel = kStrip;
  for (size_t c = 0; c < all; c += kStrip, t.m = static_cast<const float*>(t.m) + kStrip / kWinogradLine * t.line,
              t.bias = t.bias ? static_cast<const float*>(t.bias) + kStrip : nullptr) {
    Pixels p = pixels_of(r, rows, columns, c, out, residual);
    t.channels = min(all - c, kStrip);
    fn(t);
    GemmFinish f = {pixels, t.channels, sums, kStrip, p.to, residual ? p.from : nullptr, false, 0, -INFINITY, INFINITY};
    if (residual && !t.residual_after) finish.finish_in_sums(f);
    if (t.channels == kStrip) apply_row(r.activation, pixels * kStrip, sums);
    else
      for (size_t i = 0; i < pixels; ++i) apply_row(r.activation, t.channels, sums + i * kStrip);
    if (!t.residual_after) f.residual = nullptr;
    finish.finish(f);
  }
}

// Outputs of a tile of maps of bytes, from channel `first` on.
void finish_bytes(const Run& r, WinogradOut t, size_t rows, size_t columns, size_t first, char* out,
                  const char* residual) {
  const WinogradOutFn fn = code_of<WinogradOutFn>(r.plan->out);
  const GemmTileTable& ends = table_of(r.plan->rows);
  alignas(64) int32_t sums[kMostOutputs * kStrip];
  const size_t all = t.channels, pixels = rows * columns;
  GemmTile end = *r.end;
  end.scale += first;
  end.shift += end.shift ? first : 0;
  t.out = sums;
  t.row = columns * kStrip;
  t.pixel = kStrip;
  for (size_t c = 0; c < all; c += kStrip, end.scale += kStrip, end.shift += end.shift ? kStrip : 0,
              t.m = static_cast<const int32_t*>(t.m) + kStrip / kWinogradLine * t.line,
              t.bias = t.bias ? static_cast<const int32_t*>(t.bias) + kStrip : nullptr) {
    Pixels p = pixels_of(r, rows, columns, c, out, residual);
    end.n = t.channels = min(all - c, kStrip);
    end.residual = residual ? p.from : nullptr;
    fn(t);
    ends.finish_sums(end, p.to, sums, kStrip, pixels, nullptr);
  }
}

// Outputs [first, first + channels) of n tiles from M.
void transform_out(const Run& r, const Tile* list, size_t n, const char* m, size_t first, size_t channels) {
  const WinogradPlan& p = *r.plan;
  const WinogradShape& s = *r.shape;
  const size_t my = size_t(winograd_rows(p.variant)), mx = size_t(winograd_columns(p.variant));
  const WinogradOutFn fn = code_of<WinogradOutFn>(p.out);
  const bool rows_after = r.activation.kernel != nullptr,
             residual_after = r.residual_mode == SKUA_RESIDUAL_AFTER_ACTIVATION;
  WinogradOut t = {};
  t.step = r.layout.m_step / sizeof(float);
  t.line = n * kWinogradLine;
  t.channels = channels;
  t.bias = r.bias ? static_cast<const float*>(r.bias) + first : nullptr;
  t.residual_row = s.res_row * s.dilation_h;
  t.residual_pixel = s.res_pixel * s.dilation_w;
  t.residual_after = residual_after;
  t.low = r.activation.low;
  t.high = r.activation.high;
  t.row = s.out_row * s.dilation_h;
  t.pixel = s.out_pixel * s.dilation_w;
  for (size_t i = 0; i < n; ++i) {
    const Tile& tile = list[i];
    t.clip_y = tile.clip_y;
    t.clip_x = tile.clip_x;
    t.m = reinterpret_cast<const float*>(m) + i * kWinogradLine;
    char* const out =
        r.out + r.out_bytes(ptrdiff_t(tile.image * s.out_batch + tile.y * s.out_row + tile.x * s.out_pixel + first));
    const char* const residual =
        r.residual_mode == SKUA_RESIDUAL_NONE
            ? nullptr
            : r.residual +
                  r.out_bytes(ptrdiff_t(tile.image * s.res_batch + tile.y * s.res_row + tile.x * s.res_pixel + first));
    if (r.end) {
      finish_bytes(r, t, my - t.clip_y, mx - t.clip_x, first, out, residual);
      continue;
    }
    if (rows_after && s.element != Element::f32) {
      finish_function(r, t, my - t.clip_y, mx - t.clip_x, out, residual);
      continue;
    }
    t.out = out;
    t.residual = rows_after && residual_after ? nullptr : residual;
    fn(t);
    if (!rows_after) continue;
    for (size_t y = 0; y < my - t.clip_y; ++y)
      for (size_t x = 0; x < mx - t.clip_x; ++x) {
        auto* to = reinterpret_cast<float*>(out) + y * t.row + x * t.pixel;
        apply_row(r.activation, channels, to);
        if (residual_after)
          for (size_t c = 0; c < channels; ++c)
            to[c] += reinterpret_cast<const float*>(residual)[y * t.residual_row + x * t.residual_pixel + c];
      }
  }
}

// Bytes of U that a first-level cache holds beside V.
constexpr size_t kNearBytes = 16 << 10;

// Tiles of one product.
struct Part {
  uint8_t from, tiles;
};
static_assert(kWinogradBlock < 256);

// The parts that have point (i, j), of up to mr tiles, as even as they can be or, full, of mr tiles and a rest. begin:
// of each class of tiles, the last one's end behind them.
size_t parts_of_point(const WinogradPlan& p, const uint8_t* begin, bool full, int i, int j, Part* parts) {
  bool has_y[kKinds], has_x[kKinds];
  for (int k = 0; k < kKinds; ++k) {
    has_y[k] = winograd::has_point(winograd_height(p.variant) - 2, p.y.clip_of(Kind(k)), i);
    has_x[k] = winograd::has_point(winograd_width(p.variant) - 2, p.x.clip_of(Kind(k)), j);
  }
  size_t count = 0;
  for (int c = 0; c < kClasses; ++c) {
    const size_t from = begin[c];
    while (c < kClasses && (begin[c] == begin[c + 1] || (has_y[kind_y(c)] && has_x[kind_x(c)]))) ++c;
    const size_t mr = p.tile->mr, tiles = begin[c] - from, pieces = ceil_div(tiles, mr),
                 less = pieces ? tiles / pieces : 0, more = tiles - pieces * less;
    for (size_t k = 0, at = from; k < pieces; ++k, ++count) {
      parts[count] = {uint8_t(at), uint8_t(full ? min(mr, from + tiles - at) : less + (k < more))};
      at += parts[count].tiles;
    }
  }
  return count;
}

// Products and output transform of columns [first, first + columns) of n transformed tiles; first begins a group.
void multiply(const Run& r, const Kernel* product, const Tile* list, size_t n, const char* v, char* m, size_t first,
              size_t columns) {
  const WinogradPlan& p = *r.plan;
  const WinogradShape& s = *r.shape;
  const int height = winograd_height(p.variant), width = winograd_width(p.variant);
  const size_t mr = p.tile->mr, nr = p.tile->nr, L = p.tile->vector, wide = round_up(s.out_channels, L),
               channels = winograd_channels(p.variant, s.in_channels, p.element);
  uint8_t begin[kClasses + 1] = {};
  for (size_t i = 0; i < n; ++i) ++begin[list[i].cls + 1];
  for (int cls = 0; cls < kClasses; ++cls) begin[cls + 1] = uint8_t(begin[cls + 1] + begin[cls]);
  const WinogradProductTable& table = code_of<WinogradProductTableFn>(product)();
  WinogradProduct t = {};
  t.line = n * kWinogradLine;
  t.pages = p.pages;
  const Element e = p.element;
  const void* u = r.packed;
  const char* a = v;
  char* c = m;
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j, a += r.layout.v_step, c += r.layout.m_step) {
      Part part[kWinogradBlock];
      const size_t parts = t.parts = parts_of_point(p, begin, table.full, i, j, part);
      const WinogradPoint point = winograd_point(p.variant, i, j);
      const size_t begin = point.begin * channels, depth = point.end * channels;
      for (size_t k = begin; k < depth; k += t.k, u = at(u, e, ptrdiff_t(t.k * wide))) {
        t.k = min(kWinogradDepth, depth - k);
        t.add = k != begin;
        t.u = at(u, e, ptrdiff_t(t.k * first));
        // Groups inside tiles where there is one product of tiles, or where the first-level cache holds U; else tiles
        // inside groups.
        const bool groups_inside = parts == 1 || t.k * columns * element_bytes(e) <= kNearBytes;
        for (size_t column = 0, next; column < columns; column = next) {
          t.groups = groups_inside && column + nr <= columns ? (columns - column) / nr : 1;
          next = column + t.groups * nr;
          const size_t vectors = ceil_div(min(nr, columns - column), L);
          float* const to_column =
              reinterpret_cast<float*>(c) + column / kWinogradLine * t.line + column % kWinogradLine;
          for (size_t q = 0; q < parts; ++q) {
            t.part = q;
            t.v = at(a, e, ptrdiff_t(k / kWinogradLine * t.line + part[q].from * kWinogradLine));
            t.m = to_column + part[q].from * kWinogradLine;
            table.at[(vectors - 1) * mr + part[q].tiles - 1](t);
          }
          t.u = at(t.u, e, ptrdiff_t(t.groups * t.k * vectors * L));
        }
      }
    }
  transform_out(r, list, n, m, first, columns);
}

// The product for the core that a task is on, and the notes of all that it uses.
const Kernel* note_kernels(const Run& r) {
  const Kernel* product = r.plan->on_cores.here();
  note_use(product);
  const bool function = r.activation.kernel && r.plan->out_f32;
  note_use(function ? r.plan->out_f32 : r.plan->out);
  if (function) note_use(r.plan->rows);
  if (r.activation.kernel) note_use(r.activation.kernel);
  return product;
}

// Not shared: everything for some columns of one range of tiles, block by block.
void range_task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const WinogradPlan& p = *r.plan;
  note_use(p.in);
  const Kernel* const product = note_kernels(r);
  const size_t out_channels = r.shape->out_channels, passes = ceil_div(out_channels, r.cut.columns),
               range = index / passes, first = index % passes * r.cut.columns;
  const size_t begin = piece_begin(p.tiles, r.cut.ranges, range), end = piece_begin(p.tiles, r.cut.ranges, range + 1);
  const size_t blocks = ceil_div(end - begin, p.block);
  for (size_t b = 0; b < blocks; ++b) {
    const size_t from = begin + (p.full ? b * p.block : piece_begin(end - begin, blocks, b)),
                 to = p.full ? min(end, from + p.block) : begin + piece_begin(end - begin, blocks, b + 1);
    list_tiles(p, from, to, r.list(worker));
    transform_in(r, r.list(worker), 0, to - from, to - from, r.v(worker));
    multiply(r, product, r.list(worker), to - from, r.v(worker), r.m(worker), first,
             min(r.cut.columns, out_channels - first));
  }
}

// Shared, first all input transforms, then ranges times columns.
void transform_task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const WinogradPlan& p = *r.plan;
  note_use(p.in);
  size_t from = piece_begin(p.tiles, r.transform_pieces, index);
  const size_t to = piece_begin(p.tiles, r.transform_pieces, index + 1);
  for (size_t range = 0; from < to; ++range) {
    const size_t begin = piece_begin(p.tiles, r.cut.ranges, range),
                 range_end = piece_begin(p.tiles, r.cut.ranges, range + 1), end = min(to, range_end);
    if (from >= end) continue;
    transform_in(r, r.list(range), from - begin, end - begin, range_end - begin, r.v(range));
    from = end;
  }
}
void columns_task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const WinogradPlan& p = *r.plan;
  const Kernel* const product = note_kernels(r);
  const size_t out_channels = r.shape->out_channels, passes = ceil_div(out_channels, r.cut.columns),
               range = index / passes, first = index % passes * r.cut.columns;
  const size_t n = piece_begin(p.tiles, r.cut.ranges, range + 1) - piece_begin(p.tiles, r.cut.ranges, range);
  multiply(r, product, r.list(range), n, r.v(range), r.m(worker), first, min(r.cut.columns, out_channels - first));
}

}  // namespace

size_t winograd_workspace(const WinogradPlan& plan, const WinogradShape& shape, uint32_t concurrency) {
  skua_executor executor = {};
  executor.concurrency = concurrency ? concurrency : 1;
  RunArgs args = {};
  args.executor = &executor;
  const Cut c = cut(args, plan, shape);
  const Layout l = layout_of(plan, shape, c);
  size_t slots, m, total;
  const bool fits = mul(c.shared ? c.ranges : size_t(executor.concurrency), l.list + l.v, slots) &&
                    mul(size_t(executor.concurrency), l.m, m) && add(slots, m, total);
  return fits ? total : SIZE_MAX;
}

void winograd_run(const RunArgs& args, const WinogradPlan& plan, const WinogradShape& shape, const float* packed,
                  const void* bias, const Activation& activation, skua_residual residual_mode, const void* in,
                  const void* residual, void* out, void* workspace, const GemmTile* end) {
  const Cut c = cut(args, plan, shape);
  Run r = {&args, &plan, &shape, packed, bias, end, static_cast<const char*>(in), static_cast<const char*>(residual),
           static_cast<char*>(out), activation, residual_mode, c, layout_of(plan, shape, c),
           static_cast<char*>(workspace),
           1};
  const size_t tasks = c.ranges * ceil_div(shape.out_channels, c.columns);
  if (!c.shared) return parallel(args, tasks, range_task, &r);
  for (size_t i = 0; i < r.cut.ranges; ++i)
    list_tiles(plan, piece_begin(plan.tiles, r.cut.ranges, i), piece_begin(plan.tiles, r.cut.ranges, i + 1), r.list(i));
  r.transform_pieces = pieces_for(args, plan.tiles, double(shape.in_channels) * 30);
  parallel(args, r.transform_pieces, transform_task, &r);
  parallel(args, tasks, columns_task, &r);
}

}  // namespace skua
