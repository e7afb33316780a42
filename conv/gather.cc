// Convolutions whose taps do not fill groups of the depth: three channels, or twenty under a tile that takes bytes by fours. The bytes under an output are copied next to each other into a row of
// the workspace, tap after tap in the order of the packed weights, and rows that fit L1 are multiplied as one matrix whose depth is rounded up once.
//
//   row of A    [tap 0: channels][tap 1: channels] ... [zeros up to a whole group, as behind the depth of packed B]
//
// Taps outside the image are the input's zero point, so that every output has the same sums of weights.
#include "conv/regions.h"

namespace skua {
namespace {

constexpr size_t kMove = 16;  // bytes copied at once: up to 15 more than asked, which the next tap overwrites

struct Run {
  const DirectPlan* plan;
  const DirectShape* s;
  const DirectOperands* x;
  Phase phase;
  size_t first_tap;
  const float* packed;
  size_t rows, pieces;  // outputs of the phase in an image; tasks they are cut into
};

typedef uint8_t Bytes __attribute__((vector_size(kMove)));
inline Bytes every(uint8_t x) { return x - Bytes{}; }

// Copied with some bits flipped.
template <size_t moves> inline void move(const char* from, Bytes flip, char* to) {
  for (size_t i = 0; i < moves * kMove; i += kMove) {
    Bytes x;
    __builtin_memcpy(&x, from + i, kMove);
    x ^= flip;
    __builtin_memcpy(to + i, &x, kMove);
  }
}
inline void move(const char* from, size_t bytes, Bytes flip, char* to) {
  for (size_t i = 0; i < bytes; i += kMove) move<1>(from + i, flip, to + i);
}
inline void copy(const char* from, size_t bytes, uint8_t flip, char* to) {
  for (size_t i = 0; i < bytes; ++i) to[i] = char(from[i] ^ flip);
}

// Outputs whose taps are all inside the image, each row of taps one run of bytes: `rows` runs, in_row apart; outputs `step` bytes apart. Zeros behind them.
template <size_t moves, size_t most> void gather_runs(size_t count, const char* from, ptrdiff_t step, size_t rows, ptrdiff_t in_row, size_t run, Bytes flip, char* to, size_t row) {
  const size_t depth = rows * run;
  for (size_t i = 0; i < count; ++i, from += step, to += row) {
    const char* line = from;
    char* tap = to;
    for (size_t y = 0; y < (most ? most : rows); ++y, line += in_row, tap += run) {
      if (moves) move<moves>(line, flip, tap);
      else move(line, run, flip, tap);
    }
    for (size_t k = depth; k < row; ++k) to[k] = 0;
  }
}

// The bytes under outputs [i0, i1) of line j, channels [first, first + in) of each tap.
void gather_line(const Run& run, const char* image, size_t j, size_t i0, size_t i1, size_t first, uint8_t flip, char* to) {
  const DirectShape& s = *run.s;
  const Axis &y = run.phase.y, &x = run.phase.x;
  const size_t in = s.in_channels / s.groups, row = run.plan->gather_row;
  const Live rows = live_taps(y, j), inside = live_taps(x, x.wide_first);
  const bool together = s.groups == 1 && x.step == 1 && s.in_pixel == in && !rows.first && rows.end == y.taps && !inside.first && inside.end == x.taps;
  const ptrdiff_t top = y.first + ptrdiff_t(j * y.in_step), in_row = ptrdiff_t(s.in_row), pixel = ptrdiff_t(s.in_pixel);
  // What may be read of a line of the image.
  const auto end_of = [&](size_t ty) { return image + (top + ptrdiff_t(ty) * y.step) * in_row + ptrdiff_t((s.in_w - 1) * s.in_pixel + s.in_channels); };
  for (size_t i = i0; i < i1; ++i, to += row) {
    const ptrdiff_t at = x.first + ptrdiff_t(i * x.in_step);
    const char* from = image + ptrdiff_t(first) + top * in_row + at * pixel;
    if (together && i >= x.wide_first && i < x.wide_end) {
      const size_t bytes = x.taps * in, moves = ceil_div(bytes, kMove), step = x.in_step * s.in_pixel;
      // Runs are copied by whole moves as long as these end in the line.
      const ptrdiff_t room = end_of(0) - from - ptrdiff_t(moves * kMove);
      const size_t count = room < 0 ? 0 : min(min(i1, x.wide_end) - i, size_t(room) / step + 1);
      if (count) {
        const auto gather = moves == 1 ? (y.taps == 3 ? gather_runs<1, 3> : gather_runs<1, 0>) : moves == 2 ? gather_runs<2, 0> : gather_runs<0, 0>;
        gather(count, from, ptrdiff_t(step), y.taps, y.step * in_row, bytes, every(flip), to, row);
        i += count - 1;
        to += (count - 1) * row;
        continue;
      }
    }
    const Live columns = live_taps(x, i);
    char* tap = to;
    for (size_t ty = 0; ty < y.taps; ++ty)
      for (size_t tx = 0; tx < x.taps; ++tx, tap += in) {
        const char* p = from + ptrdiff_t(ty) * y.step * in_row + ptrdiff_t(tx) * x.step * pixel;
        if (ty < rows.first || ty >= rows.end || tx < columns.first || tx >= columns.end) memset(tap, s.padding ^ flip, in);
        else if (end_of(ty) - p >= ptrdiff_t(round_up(in, kMove))) move(p, in, every(flip), tap);
        else copy(p, in, flip, tap);
      }
    for (; tap != to + row; ++tap) *tap = 0;  // tiles may sum their rows
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& run = *static_cast<const Run*>(arg);
  const DirectShape& s = *run.s;
  const DirectOperands& x = *run.x;
  const DirectPlan& plan = *run.plan;
  const Phase& p = run.phase;
  const size_t image = index / run.pieces, piece = index % run.pieces, in = s.in_channels / s.groups, width = p.x.count, depth = p.depth(s);
  char* const scratch = static_cast<char*>(x.workspace) + worker * plan.gather_bytes;
  char* const rows = scratch + plan.scratch;
  const auto offsets = reinterpret_cast<int32_t*>(rows + plan.gather_rows * plan.gather_row + kMove * 4);
  const char* const from = static_cast<const char*>(x.in) + image * s.in_batch;
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
  g.a_step = ptrdiff_t(plan.gather_row);
  g.c_step = ptrdiff_t(p.x.out_step * s.out_pixel);
  const uint8_t flip = table_of(g.tile).flip_rows ? 0x80 : 0;  // s8 becomes u8 on the way
  g.a_type = flip ? Element::u8 : s.element;
  g.c_type = s.result;
  g.kc = max(g.k, 1);
  g.scratch = scratch;
  const bool one_line = p.y.out_step * s.out_row == width * size_t(g.c_step);
  for (size_t group = 0; group < s.groups; ++group) {
    g.packed = run.packed + group * packed_floats(g.format, g.n, depth);
    quantize_block(s, *x.quantized, run.first_tap, p.x.taps, {0, 0, 0, p.y.taps, false}, {0, 0, 0, p.x.taps, false}, group, 0, direct_bias_step(s.out_channels, s.groups), offsets, g);
    const size_t m1 = piece_begin(run.rows, run.pieces, piece + 1);
    for (size_t m = piece_begin(run.rows, run.pieces, piece), count; m < m1; m += count) {
      count = min(plan.gather_rows, m1 - m);
      for (size_t r = 0, n; r < count; r += n) {
        const size_t j = (m + r) / width, i = (m + r) % width;
        n = min(count - r, width - i);
        gather_line(run, from, j, i, i + n, group * in, flip, rows + r * plan.gather_row);
      }
      run_block(g, 0, count, 0, panel_count(g.format, g.n), [&](size_t r) {
        const size_t j = (m + r) / width, i = (m + r) % width;
        void* out = at(x.out, s.result, ptrdiff_t(image * s.out_batch + (p.y.out_first + j * p.y.out_step) * s.out_row + (p.x.out_first + i * p.x.out_step) * s.out_pixel + group * g.n));
        return RowPointers{rows + r * plan.gather_row, out, nullptr, min(one_line ? count - r : width - i, count - r)};
      });
    }
  }
}

}  // namespace

bool gathers(const DirectShape& s, const PackFormat& f) { return s.kernel_h * s.kernel_w > 1 && s.in_channels / s.groups % f.kr != 0; }

void gather_plan(const DirectShape& s, DirectPlan& plan) {
  const GemmTileTable& tiles = table_of(plan.tile);
  const Machine machine = machine_for(plan.tile->isa);
  size_t depth = 0, most = 0;
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    depth = max(depth, p.depth(s));
    most = max(most, p.y.count * p.x.count);
  }
  plan.gathers = true;
  plan.gather_row = max(round_up(round_up(depth, tiles.kr), sizeof(int32_t)), sizeof(int32_t));
  // Half of L1 for the rows, as the weights' panels and C want the rest; whole tiles.
  const size_t tall = max(tiles.even_rows[plan.tile->nr / plan.tile->vector - 1], plan.tile->mr);
  plan.gather_rows = min(round_up(max(machine.l1 / 2 / plan.gather_row, 2 * tall), tall), max(most, 1));
  plan.scratch = round_up(staging(plan.tile, tiles.flip_rows ? Element::u8 : s.element, s.result, false, plan.gather_rows, s.out_channels / s.groups, 1, plan.gather_row).bytes, 64);
  plan.gather_bytes = round_up(plan.scratch + plan.gather_rows * plan.gather_row + kMove * 4 + offset_bytes(s), 64);
  for (size_t i = 0; i < phase_count(s); ++i) {
    const Phase p = phase_at(s, i);
    const size_t m = s.batch * p.y.count * p.x.count;
    plan.cycles += double(s.groups) * (gemm_cycles(plan.tile, m, s.out_channels / s.groups, p.depth(s)) + double(m) * double(p.y.taps) * (4 + double(p.x.taps * s.in_channels / s.groups) / 16));
  }
  plan.name = "gathered_rows";
}

void gather_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x) {
  Run r = {&plan, &s, &x, {}, 0, static_cast<const float*>(x.packed), 0, 1};
  for (size_t i = 0; i < phase_count(s); ++i) {
    r.phase = phase_at(s, i);
    const size_t depth = r.phase.depth(s), n = s.out_channels / s.groups;
    r.rows = r.phase.y.count * r.phase.x.count;
    if (r.rows) {
      const double row = double(s.groups) * gemm_cycles(plan.tile, r.rows, n, depth) / double(r.rows) + double(s.groups * r.phase.y.taps) * 4;
      r.pieces = s.batch < 4 * args.concurrency() ? min(max(pieces_for(args, ceil_div(r.rows, plan.tile->mr), row * plan.tile->mr), 1), r.rows) : 1;
      parallel(args, s.batch * r.pieces, task, &r);
    }
    r.packed += s.groups * packed_floats(format_of(plan.tile), n, depth);
    r.first_tap += r.phase.y.taps * r.phase.x.taps;
  }
}

}  // namespace skua
