// Convolutions whose taps do not fill groups of the depth: three channels, or twenty under a tile that takes bytes by
// fours or bf16 by 32. What is under an output is copied together into a row of the workspace, tap after tap in the
// order of the packed weights, and rows that fit L1 are multiplied as one matrix whose depth is rounded up once.
//
//   band        the input under a few lines of outputs, with the zero point around the image and in the type that the
//               tile reads, also where that is 16 bits: each pixel is treated once
//   row of A    [tap 0: channels][tap 1: channels] ... up to a whole group: anything, as packed B has zeros there, but
//               zeros for tiles that sum their rows, and of floats, whose infinities times 0 are none
//
// Where taps lie so far apart that a band would hold much more than they read, rows are copied from the image itself.
//
// Every output has the same taps, and so the same sums of weights.
#include "conv/regions.h"

namespace skua {
namespace {

constexpr size_t kMove = 16;         // bytes copied at once: up to 15 more than asked, which what comes next overwrites
constexpr size_t kColumns = 1024;    // most outputs of a part of a line
constexpr size_t kSlack = 4 * kMove;

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  Phase phase;
  size_t first_tap;
  const float* packed;
  size_t rows, unit, pieces;  // outputs of the phase in an image; those that stay together; tasks they are cut into
};

typedef uint8_t Bytes __attribute__((vector_size(kMove)));

template <size_t moves> inline void move(const char* from, char* to) {
  for (size_t i = 0; i < moves * kMove; i += kMove) {
    Bytes x;
    __builtin_memcpy(&x, from + i, kMove);
    __builtin_memcpy(to + i, &x, kMove);
  }
}
inline void move(const char* from, size_t bytes, char* to) {
  for (size_t i = 0; i < bytes; i += kMove) move<1>(from + i, to + i);
}
// What an element of the input becomes on its way to the band: itself, or a byte with the upper bit flipped, or of 16
// bits.
struct Wanted {
  size_t element;     // bytes
  GemmPackAFn widen;  // NULL: as it is
  decltype(GemmTileTable::flip_rows) flip;  // s8 becomes u8
  int16_t padding;

  Wanted(const DirectShape& s, const GemmTileTable& tiles)
      : element(element_bytes(s.element)),
        widen(takes_wide_rows(tiles) ? tiles.pack_a : nullptr),
        flip(tiles.flip_rows) {
    padding = widen && s.element == Element::s8 ? int8_t(s.padding) : int16_t(s.padding ^ (flip ? 0x80 : 0));
  }
  size_t bytes() const { return widen ? 2 : element; }
  void pad(char* to, size_t n) const {
    if (!widen) memset(to, padding, n * element);  // of floats 0
    else
      for (auto* p = reinterpret_cast<int16_t*>(to); n > 0; --n) *p++ = padding;
  }
  void take(const char* from, size_t n, char* to) const {  // widened: an odd n writes another
    static constexpr GemmSegment whole = {0, 0};
    const void* row = from;
    if (widen) widen(1, &row, &whole, 1, n, to);
    else if (flip) flip(1, n, from, ptrdiff_t(n), to, ptrdiff_t(n));
    else memcpy(to, from, n * element);
  }
};

// Lines [y0, y0 + lines) and pixels [x0, x0 + width) of an image, the zero point outside it.
void fill_band(const DirectShape& s, const char* image, ptrdiff_t y0, size_t lines, ptrdiff_t x0, size_t width,
               const Wanted& as, char* to) {
  const size_t c = s.in_channels, left = x0 < 0 ? min(size_t(-x0), width) : 0,
               first = x0 < 0 ? 0 : min(size_t(x0), s.in_w), middle = min(s.in_w - first, width - left),
               pixel = c * as.bytes();
  for (size_t i = 0; i < lines; ++i, to += width * pixel) {
    const ptrdiff_t y = y0 + ptrdiff_t(i);
    if (y < 0 || y >= ptrdiff_t(s.in_h)) {
      as.pad(to, width * c);
      continue;
    }
    const char* line = image + (size_t(y) * s.in_row + first * s.in_pixel) * as.element;
    as.pad(to, left * c);
    if (s.in_pixel == c) as.take(line, middle * c, to + left * pixel);
    else
      for (size_t x = 0; x < middle; ++x) as.take(line + x * s.in_pixel * as.element, c, to + (left + x) * pixel);
    as.pad(to + (left + middle) * pixel, (width - left - middle) * c);
  }
}

// Behind what was copied, up to 15 bytes beyond the row.
inline void clear(char* row, size_t from, size_t to) {
  const Bytes zero = {};
  for (; from < to; from += kMove) __builtin_memcpy(row + from, &zero, kMove);
}

// Rows of A for `count` outputs, `step` bytes apart, each of `runs` runs of bytes that are `next` apart.
template <size_t moves, size_t all>
void gather_runs(size_t count, const char* from, size_t step, size_t runs, size_t next, size_t bytes, bool zeros,
                 char* to, size_t row) {
  if (all) runs = all;
  const size_t depth = runs * bytes;
  for (; count > 0; --count, from += step, to += row) {
    const char* line = from;
    char* tap = to;
#pragma GCC unroll 8
    for (size_t i = 0; i < runs; ++i, line += next, tap += bytes) {
      if (moves) move<moves>(line, tap);
      else move(line, bytes, tap);
    }
    if (zeros) clear(to, depth, row);
  }
}
// Taps that are apart, or of a group.
void gather_taps(size_t count, const char* from, size_t step, const Phase& p, size_t line_bytes, size_t tap_bytes,
                 size_t bytes, char* to, size_t row) {
  for (; count > 0; --count, from += step, to += row) {
    char* tap = to;
    for (size_t ty = 0; ty < p.y.taps; ++ty)
      for (size_t tx = 0; tx < p.x.taps; ++tx, tap += bytes) move(from + ty * line_bytes + tx * tap_bytes, bytes, tap);
    clear(to, size_t(tap - to), row);
  }
}

// Rows of A, `depth` bytes deep, from the image itself: outputs from the i-th of the j-th line of a phase.
void gather_far(const DirectShape& s, const Phase& p, const char* image, const Wanted& as, size_t j, size_t i,
                size_t count, size_t group, size_t depth, char* to, size_t row) {
  const size_t in = s.in_channels / s.groups;
  if (!p.y.taps || !p.x.taps) return;
  for (; count > 0; --count, ++i, to += row) {
    char* tap = to;
    ptrdiff_t y = p.y.first + ptrdiff_t(j * p.y.in_step);
    for (size_t ty = 0; ty < p.y.taps; ++ty, y += p.y.step) {
      ptrdiff_t x = p.x.first + ptrdiff_t(i * p.x.in_step);
      for (size_t tx = 0; tx < p.x.taps; ++tx, x += p.x.step, tap += in * as.bytes()) {
        const bool inside = y >= 0 && y < ptrdiff_t(s.in_h) && x >= 0 && x < ptrdiff_t(s.in_w);
        if (inside) as.take(image + (size_t(y) * s.in_row + size_t(x) * s.in_pixel + group * in) * as.element, in, tap);
        else as.pad(tap, in);
      }
    }
    clear(to, size_t(tap - to), depth);
  }
}

// Rows of A of a part of a line: outputs from the i-th of the j-th line of a band that is `width` pixels wide.
void gather(const DirectShape& s, const Phase& p, const char* band, size_t element, size_t width, size_t j, size_t i,
            size_t count, size_t group, bool zeros, char* to, size_t row) {
  const size_t in = s.in_channels / s.groups * element, pixel = s.in_channels * element, line = width * pixel,
               next = size_t(p.y.step) * line, step = p.x.in_step * pixel, bytes = p.x.taps * in;
  const char* from = band + j * p.y.in_step * line + i * step + group * in;
  if (!p.y.taps || !p.x.taps) return;
  if (s.groups > 1 || p.x.step > 1)
    return gather_taps(count, from, step, p, next, size_t(p.x.step) * pixel, in, to, row);
  const auto runs = bytes <= kMove                      ? (p.y.taps == 3 ? gather_runs<1, 3> : gather_runs<1, 0>)
                    : bytes <= 2 * kMove                ? (p.y.taps == 3   ? gather_runs<2, 3>
                                                           : p.y.taps == 7 ? gather_runs<2, 7>
                                                                           : gather_runs<2, 0>)
                    : bytes <= 3 * kMove && element > 1 ? (p.y.taps == 7 ? gather_runs<3, 7> : gather_runs<3, 0>)
                                                        : gather_runs<0, 0>;
  runs(count, from, step, p.y.taps, next, bytes, zeros, to, row);
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& run = *static_cast<const Run*>(arg);
  const DirectShape& s = *run.s;
  const DirectOperands& x = *run.x;
  const DirectPlan& plan = *run.plan;
  const Phase& p = run.phase;
  const size_t image = index / run.pieces, piece = index % run.pieces, width = p.x.count, depth = p.depth(s);
  char* const scratch = static_cast<char*>(x.workspace) + worker * plan.gather_bytes;
  const bool floats = kTileRegisters && !is_int8(s.element);
  char* const band = scratch + plan.scratch;
  char* const rows = band + plan.gather_band;
  const auto offsets = reinterpret_cast<int32_t*>(rows + plan.gather_rows * plan.gather_row + kSlack);
  const auto from = static_cast<const char*>(at(x.in, s.element, ptrdiff_t(image * s.in_batch)));
  const GemmSegment whole = {0, 0};
  GemmBlock g = {};
  g.tile = plan.tile;
  g.format = format_of(plan.tile);
  g.n = s.out_channels / s.groups;
  g.segment_count = 1;
  g.k = round_up(depth, g.format.kr);
  g.segments = &whole;
  g.packed_depth = depth;
  g.alpha = 1;
  g.activation = *x.activation;
  g.dense = true;
  g.c_step = ptrdiff_t(p.x.out_step * s.out_pixel);
  g.residual = x.residual_mode;
  g.residual_step = ptrdiff_t(p.x.out_step * s.res_pixel);
  const Wanted as(s, table_of(g.tile));
  g.a_type = as.flip ? Element::u8 : s.element;
  g.prepared = as.widen;
  const size_t row = as.widen ? g.k * as.bytes() : plan.gather_row;  // as pack_a leaves them: without a gap
  g.a_step = ptrdiff_t(row / as.bytes());
  g.c_type = s.result;
  g.kc = max(g.k, 1);
  g.rows = plan.row_kernel;
  g.scratch = scratch;
  const bool one_line = p.y.out_step * s.out_row == width * size_t(g.c_step) &&
                        (!x.residual || p.y.out_step * s.res_row == width * size_t(g.residual_step));
  const size_t units = run.rows / run.unit, m1 = piece_begin(units, run.pieces, piece + 1) * run.unit;
  const size_t part_columns = ceil_div(width, ceil_div(width, plan.gather_columns));  // even ones
  for (size_t m = piece_begin(units, run.pieces, piece) * run.unit, count; m < m1; m += count) {
    // Whole lines, or a part of one.
    const bool part = m % width || m1 - m < width || width > plan.gather_columns;
    const size_t j0 = m / width, i0 = m % width, lines = part ? 0 : min(plan.gather_lines, (m1 - m) / width);
    const size_t columns = lines ? width : min(min(width - i0, m1 - m), part_columns),
                 pixels = span(p.x, columns, p.x.taps);
    count = columns * max(lines, 1);
    if (plan.gather_band)
      fill_band(s, from, p.y.first + ptrdiff_t(j0 * p.y.in_step), span(p.y, max(lines, 1), p.y.taps),
                p.x.first + ptrdiff_t(i0 * p.x.in_step), pixels, as, band);
    for (size_t group = 0; group < s.groups; ++group) {
      g.packed = run.packed + group * packed_floats(g.format, g.n, depth);
      const size_t columns_of_group = direct_bias_step(s.out_channels, s.groups);
      if (floats) g.bias = x.bias ? x.bias + group * columns_of_group : nullptr;
      else
        quantize_block(s, *x.quantized, run.first_tap, p.x.taps, {0, 0, 0, p.y.taps, false}, {0, 0, 0, p.x.taps, false},
                       group, 0, columns_of_group, offsets, g);
      for (size_t r0 = 0, turn; r0 < count; r0 += turn) {
        turn = min(plan.gather_rows, count - r0);
        for (size_t r = 0, n; r < turn; r += n) {
          const size_t j = (r0 + r) / columns, i = (r0 + r) % columns;
          n = min(turn - r, columns - i);
          if (plan.gather_band)
            gather(s, p, band, as.bytes(), pixels, j, i, n, group, floats || g.b_zero != 0, rows + r * row, row);
          else gather_far(s, p, from, as, j0 + j, i0 + i, n, group, g.k * as.bytes(), rows + r * row, row);
        }
        run_block(g, 0, turn, 0, panel_count(g.format, g.n), [&](size_t r) {
          const size_t j = (r0 + r) / columns, i = (r0 + r) % columns;
          const size_t y = p.y.out_first + (j0 + j) * p.y.out_step, out_x = p.x.out_first + (i0 + i) * p.x.out_step;
          void* out =
              at(x.out, s.result, ptrdiff_t(image * s.out_batch + y * s.out_row + out_x * s.out_pixel + group * g.n));
          const void* residual =
              x.residual ? at(x.residual, s.result,
                              ptrdiff_t(image * s.res_batch + y * s.res_row + out_x * s.res_pixel + group * g.n))
                         : nullptr;
          return RowPointers{rows + r * row, out, residual, min(one_line ? turn - r : columns - i, turn - r)};
        });
      }
    }
  }
}

}  // namespace

bool gathers(const DirectShape& s, const PackFormat& f) {
  return (is_int8(s.element) || (kTileRegisters && f.kr > 2)) && s.kernel_h * s.kernel_w > 1 &&
         s.in_channels / s.groups % f.kr != 0 && !packs_runs(s, f) && !packs_taps(s, f);
}

// The band of a phase: as many lines of outputs as `close` bytes have room for, or one, or a part of one that L2 has
// room for.
struct Band {
  size_t lines, columns, bytes;
  bool far;  // none: rows are read from the image
};
static Band band_of(const DirectShape& s, const Phase& p, size_t close, size_t l2, size_t element) {
  constexpr size_t kTile = 16;  // outputs that even a band larger than L2 has: rows of a tile
  const size_t pixel = mul_sat(s.in_channels, element), window = span(p.x, 1, p.x.taps), one = span(p.y, 1, p.y.taps);
  Band b = {1, max(min(p.x.count, kColumns), 1), 0, false};
  const size_t fit_columns = l2 / max(mul_sat(one, pixel), 1);
  b.columns = min(b.columns, max(fit_columns > window ? (fit_columns - window) / p.x.in_step + 1 : 1, kTile));
  const size_t line = mul_sat(span(p.x, b.columns, p.x.taps), pixel), fit = close / max(line, 1);
  if (fit > one) b.lines = (fit - one) / p.y.in_step + 1;
  const size_t lines = max(min(b.lines, p.y.count), 1);
  b.bytes = mul_sat(line, span(p.y, lines, p.y.taps));
  // A tap from the image takes as long as 128 bytes more of it in a band.
  b.far = double(b.bytes) > double(lines * b.columns) * double(p.y.taps * p.x.taps) *
                                (double(pixel) + 128 * double(s.groups));
  return b;
}
// registers of AMX are filled from L2 as well, and B is read once for many rows
static size_t close_to(const Machine& machine, bool registers) { return registers ? machine.l2 / 8 : machine.l1 / 2; }

double gather_cycles(const DirectShape& s, const Phase& p, const Machine& machine, bool registers) {
  const size_t element = element_bytes(s.element);
  const double pixel = double(s.in_channels / s.groups * element), y = double(p.y.taps), x = double(p.x.taps);
  if (band_of(s, p, close_to(machine, registers), machine.l2, element).far) return y * x * (9 + pixel / 16) + 10;
  if (!kTileRegisters || is_int8(s.element)) return y * (1 + x * pixel / 16);
  // What is behind the depth is cleared: half a line on average.
  const bool apart = s.groups > 1 || p.x.step > 1;
  return (apart ? y * x : y) * (2 + (apart ? 1 : x) * pixel / 16) + 10;
}

skua_status gather_plan(const skua_op* op, const DirectShape& s, bool function, DirectPlan& plan) {
  const GemmTileTable& tiles = table_of(plan.tile);
  const Machine machine = machine_for(plan.tile->isa);
  const size_t element = takes_wide_rows(tiles) ? 2 : element_bytes(s.element), close = close_to(machine, tiles.enter);
  size_t depth = 0, most = 0;
  bool far = false;
  plan.gather_lines = SIZE_MAX;
  plan.gather_columns = kColumns;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    depth = max(depth, p.depth(s));
    most = max(most, p.y.count * p.x.count);
    if (!p.y.taps || !p.x.taps) continue;
    const Band b = band_of(s, p, close, machine.l2, element);
    plan.gather_lines = min(plan.gather_lines, b.lines);
    if (b.columns < p.x.count) plan.gather_columns = min(plan.gather_columns, b.columns);
    plan.gather_band = max(plan.gather_band, b.bytes);
    far |= b.far;
  }
  if (far) plan.gather_lines = SIZE_MAX, plan.gather_columns = kColumns, plan.gather_band = 0;
  if (plan.gather_band > SIZE_MAX / 64)
    return SKUA_INVALID("%s: the padded rows are larger than the address space", op->cls->name);
  plan.gathers = true;
  if (!far) plan.gather_band = round_up(plan.gather_band + kSlack, 64);
  plan.gather_row = max(round_up(round_up(depth, tiles.kr) * element, sizeof(int32_t)), sizeof(int32_t));
  // Of L1 a quarter for the rows, as the band, the weights' panels and C want the rest; whole tiles.
  const size_t tall = max(tiles.even_rows[plan.tile->nr / plan.tile->vector - 1], plan.tile->mr);
  plan.gather_rows =
      min(round_up(max((tiles.enter ? close : close / 2) / plan.gather_row, 2 * tall), tall), max(most, 1));
  plan.scratch = takes_wide_rows(tiles)
                     ? 0
                     : round_up(staging(plan.tile, tiles.flip_rows ? Element::u8 : s.element, s.result, function,
                                        plan.gather_rows, s.out_channels / s.groups, 1, plan.gather_row / element)
                                    .bytes,
                                64);
  plan.gather_bytes =
      round_up(plan.scratch + plan.gather_band + plan.gather_rows * plan.gather_row + kSlack +
                   (is_int8(s.element) ? offset_bytes(s) : 0),
               64);
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const size_t m = s.batch * p.y.count * p.x.count;
    plan.cycles += double(s.groups) * (gemm_cycles(plan.tile, m, s.out_channels / s.groups, p.depth(s)) +
                                       double(m) * gather_cycles(s, p, machine, tiles.enter));
  }
  plan.name = "gathered_rows";
  return SKUA_STATUS_OK;
}

void explain_gather(const DirectPlan& plan, Text& text) {
  text.add("  taps copied to rows of %zu bytes, %zu at a time, ", plan.gather_row, plan.gather_rows);
  if (plan.gather_band) text.add("out of %zu bytes of lines", plan.gather_band);
  else text.add("from the image");
  text.add("; tile %ux%u\n", plan.tile->mr, plan.tile->nr);
}

void gather_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  Run r = {&plan, &s, &x, {}, 0, static_cast<const float*>(x.packed), 0, 1, 1};
  for (size_t i = 0; i < phase_count(s); ++i) {
    r.phase = phase_at(s, i);
    const size_t depth = r.phase.depth(s), n = s.out_channels / s.groups;
    r.rows = r.phase.y.count * r.phase.x.count;
    r.unit = r.phase.y.count >= 2 * args.workers() ? r.phase.x.count : 1;
    if (r.rows) {
      const double row = double(s.groups) * gemm_cycles(plan.tile, r.rows, n, depth) / double(r.rows) +
                         double(s.groups * r.phase.y.taps) * 2;
      const size_t together = max(r.unit, plan.tile->mr);
      r.pieces =
          s.batch < 4 * args.workers()
              ? min(max(pieces_for(args, ceil_div(r.rows, together), row * double(together)), 1), r.rows / r.unit)
              : 1;
      parallel(args, s.batch * r.pieces, task, &r);
    }
    r.packed += s.groups * packed_floats(format_of(plan.tile), n, depth);
    r.first_tap += r.phase.y.taps * r.phase.x.taps;
  }
}

}  // namespace skua
