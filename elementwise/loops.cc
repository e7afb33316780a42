#include "elementwise/loops.h"

namespace skua {
namespace {

struct Dimension {
  size_t extent;
  size_t step[kMostOperands];
};

// Outermost first: larger steps of the output, then of the inputs, in order.
bool outside_of(const Dimension& a, const Dimension& b, uint32_t operands) {
  for (uint32_t o = 0; o < operands; ++o)
    if (a.step[o] != b.step[o]) return a.step[o] > b.step[o];
  return false;
}

// Dimension `d` of the output, counted from the innermost: an input has it unless it repeats there.
size_t step_behind(const skua_tensor& t, uint32_t behind) {
  if (behind >= t.rank) return 0;
  const uint32_t d = t.rank - 1 - behind;
  return t.shape[d] == 1 ? 0 : t.stride[d];
}

// What the staging buffers of one task hold.
struct Stage {
  char* buffer[kMostOperands];
  const char* filled_from[kMostOperands];
  size_t filled[kMostOperands];  // units
};

// One unit of joined rows is a row, of others an element: `rows` rows of `n` elements either way.
template <class T> void gather(const T* from, size_t rows, size_t row_step, size_t n, size_t step, T* to) {
  for (size_t r = 0; r < rows; ++r, from += row_step, to += n) {
    if (step == 1) memcpy(to, from, n * sizeof(T));
    else
      for (size_t i = 0; i < n; ++i) to[i] = from[i * step];
  }
}
template <class T> void scatter(const T* from, size_t rows, size_t row_step, size_t n, size_t step, T* to) {
  for (size_t r = 0; r < rows; ++r, to += row_step, from += n) {
    if (step == 1) memcpy(to, from, n * sizeof(T));
    else
      for (size_t i = 0; i < n; ++i) to[i * step] = from[i];
  }
}

// Units [first, first + units) of the turn whose operands begin at `turn`, some of them staged; and as many again,
// `buffers` times in all.
void staged_call(const Loops& l, Stage& stage, char* const* turn, size_t first, size_t units, size_t buffers, RowFn fn,
                 const void* op) {
  RowArgs row;
  size_t step[kMostOperands];
  row.n = units * (l.joined ? l.row : 1);
  row.rows = buffers;
  row.step = step;
  row.size = l.size;
  char* out = nullptr;
  const size_t rows = l.joined ? units : 1, n = l.joined ? l.row : units;
  for (uint32_t o = 0; o < l.operands; ++o) {
    const size_t unit_step = l.joined ? l.step[0][o] : l.row_step[o];
    char* p = turn[o] + first * unit_step * l.size[o];
    step[o] = units * unit_step;
    if (l.feed[o] == Feed::staged) {
      if (o == 0) {
        out = p;
      } else if (unit_step != 0 || stage.filled_from[o] != p || stage.filled[o] < units) {
        if (l.size[o] == 4)
          gather(reinterpret_cast<const uint32_t*>(p), rows, unit_step, n, l.row_step[o],
                 reinterpret_cast<uint32_t*>(stage.buffer[o]));
        else if (l.size[o] == 2)
          gather(reinterpret_cast<const uint16_t*>(p), rows, unit_step, n, l.row_step[o],
                 reinterpret_cast<uint16_t*>(stage.buffer[o]));
        else
          gather(reinterpret_cast<const uint8_t*>(p), rows, unit_step, n, l.row_step[o],
                 reinterpret_cast<uint8_t*>(stage.buffer[o]));
        stage.filled_from[o] = p;
        stage.filled[o] = units;
      }
      p = stage.buffer[o];
    }
    row.at[o] = p;
  }
  fn(op, row);
  if (!out) return;
  const size_t row_step = l.joined ? l.step[0][0] : 0;
  if (l.size[0] == 4)
    scatter(reinterpret_cast<const uint32_t*>(row.at[0]), rows, row_step, n, l.row_step[0],
            reinterpret_cast<uint32_t*>(out));
  else if (l.size[0] == 2)
    scatter(reinterpret_cast<const uint16_t*>(row.at[0]), rows, row_step, n, l.row_step[0],
            reinterpret_cast<uint16_t*>(out));
  else
    scatter(reinterpret_cast<const uint8_t*>(row.at[0]), rows, row_step, n, l.row_step[0],
            reinterpret_cast<uint8_t*>(out));
}

// Calls turn_fn(operands' pointers, first unit, units) for the units [begin, end), turn by turn.
template <class Turn> void each_turn(const Loops& l, char* const* base, size_t begin, size_t end, Turn turn_fn) {
  char* at[kMostOperands];
  memcpy(at, base, sizeof at);
  const uint32_t outside = l.by_rows ? 1 : 0;
  size_t index[SKUA_MAX_RANK] = {}, first = 0;
  if (begin) {
    first = begin % l.units;
    size_t rest = begin / l.units;
    for (uint32_t d = outside; d < l.rank; ++d) {
      index[d] = rest % l.extent[d];
      rest /= l.extent[d];
      for (uint32_t o = 0; o < l.operands; ++o) at[o] += index[d] * l.step[d][o] * l.size[o];
    }
  }
  while (begin < end) {
    const size_t units = min(l.units - first, end - begin);
    turn_fn(at, first, units);
    begin += units;
    first = 0;
    for (uint32_t d = outside; d < l.rank; ++d) {
      for (uint32_t o = 0; o < l.operands; ++o) at[o] += l.step[d][o] * l.size[o];
      if (++index[d] < l.extent[d]) break;
      for (uint32_t o = 0; o < l.operands; ++o) at[o] -= l.extent[d] * l.step[d][o] * l.size[o];
      index[d] = 0;
    }
  }
}

// Rows that are read and written where they are.
void walk(const Loops& l, char* const* base, size_t begin, size_t end, RowFn fn, const void* op) {
  const size_t* const unit_step = l.by_rows ? l.step[0] : l.row_step;
  each_turn(l, base, begin, end, [&](char* const* at, size_t first, size_t units) {
    RowArgs row;
    row.step = unit_step;
    row.size = l.size;
    for (uint32_t o = 0; o < kMostOperands; ++o) row.at[o] = at[o] + first * unit_step[o] * l.size[o];
    while (units) {
      const size_t piece = min(units, l.most);
      row.n = l.by_rows ? l.row : piece;
      row.rows = l.by_rows ? piece : 1;
      fn(op, row);
      if ((units -= piece) == 0) break;
      for (uint32_t o = 0; o < kMostOperands; ++o) row.at[o] += piece * unit_step[o] * l.size[o];
    }
  });
}

void walk_staged(const Loops& l, char* const* base, size_t begin, size_t end, RowFn fn, const void* op) {
  alignas(64) char buffers[kMostOperands][kStage * 4];
  Stage stage = {};
  for (uint32_t o = 0; o < kMostOperands; ++o) stage.buffer[o] = buffers[o];
  each_turn(l, base, begin, end, [&](char* const* at, size_t first, size_t units) {
    for (size_t piece; units; first += piece, units -= piece) {
      const size_t buffers = max(min(units / l.most, l.buffers), 1);
      piece = min(units, buffers * l.most);
      staged_call(l, stage, at, first, piece / buffers, buffers, fn, op);
    }
  });
}

struct Task {
  const Loops* loops;
  char* const* base;
  RowFn fn;
  const void* op;
  const Kernel* const* kernels;
  size_t units, grain, grains, pieces;
};

void task(void* arg, size_t i, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const size_t begin = piece_begin(t.grains, t.pieces, i) * t.grain,
               end = min(piece_begin(t.grains, t.pieces, i + 1) * t.grain, t.units);
  for (int k = 0; k < 2; ++k)
    if (t.kernels[k]) note_use(t.kernels[k]);
  (t.loops->staged ? walk_staged : walk)(*t.loops, t.base, begin, end, t.fn, t.op);
}

}  // namespace

void plan_loops(const skua_tensor* const* tensors, uint32_t operands, uint32_t scalars, size_t most, Loops& l) {
  memset(&l, 0, sizeof l);
  const skua_tensor& y = *tensors[0];
  l.operands = operands;
  for (uint32_t o = 0; o < operands; ++o) l.size[o] = uint8_t(skua_dtype_bits(tensors[o]->type) / 8);
  l.elements = element_count(y);
  if (l.elements == 0) return;
  Dimension dims[SKUA_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t behind = 0; behind < y.rank; ++behind) {  // insertion, innermost first
    Dimension dim;
    dim.extent = y.shape[y.rank - 1 - behind];
    if (dim.extent == 1) continue;
    for (uint32_t o = 0; o < operands; ++o) dim.step[o] = step_behind(*tensors[o], behind);
    uint32_t at = n++;
    for (; at > 0 && outside_of(dims[at - 1], dim, operands); --at) dims[at] = dims[at - 1];
    dims[at] = dim;
  }
  uint32_t merged = 0;
  for (uint32_t d = 1; d < n; ++d) {
    bool together = true;
    for (uint32_t o = 0; o < operands; ++o)
      together = together && dims[d].step[o] == dims[merged].step[o] * dims[merged].extent;
    if (together) dims[merged].extent *= dims[d].extent;
    else dims[++merged] = dims[d];
  }
  if (n == 0) {
    dims[0].extent = 1;
    for (uint32_t o = 0; o < operands; ++o) dims[0].step[o] = 1;
  }
  l.row = dims[0].extent;
  l.rank = n ? merged : 0;
  for (uint32_t o = 0; o < operands; ++o) l.row_step[o] = dims[0].step[o];
  for (uint32_t d = 0; d < l.rank; ++d) {
    l.extent[d] = dims[d + 1].extent;
    for (uint32_t o = 0; o < operands; ++o) l.step[d][o] = dims[d + 1].step[o];
  }

  bool staged[2] = {}, copied = false;  // by way of feeding: long rows, short rows
  Feed feed[2][kMostOperands];
  // all inputs along the row, by strides of 0 that the caller gave: one of them then counts as a vector
  bool repeats = true;
  for (uint32_t o = 1; o < operands; ++o) repeats = repeats && l.row_step[o] == 0;
  if (repeats) scalars &= ~2u;
  for (uint32_t o = 0; o < operands; ++o) {
    const bool scalar = scalars >> o & 1, outer = l.rank != 0;
    feed[0][o] = l.row_step[o] == 1 ? Feed::vector : l.row_step[o] == 0 && scalar ? Feed::scalar : Feed::staged;
    feed[1][o] = outer && l.row_step[o] == 1 && l.step[0][o] == l.row ? Feed::vector
                 : outer && l.row_step[o] == 0 && l.step[0][o] == 0 && scalar ? Feed::scalar : Feed::staged;
    for (int way = 0; way < 2; ++way) staged[way] = staged[way] || feed[way][o] == Feed::staged;
    copied = copied || (outer && feed[1][o] == Feed::staged && l.step[0][o] != 0);
  }
  // A row costs about as much as copying eight elements, and a partial vector in each of them more than a copy made
  // once; so do stores across cache lines.
  l.joined = l.rank != 0 && l.row <= kStage / 2 && staged[1] &&
             (l.row < 8 || (!copied && (staged[0] || l.row < 24 || l.row % 16)));
  l.staged = staged[l.joined];
  l.by_rows = l.joined || (l.rank != 0 && !l.staged && l.row <= kLongRow);
  memcpy(l.feed, feed[l.joined], sizeof l.feed);
  l.units = l.by_rows ? l.extent[0] : l.row;
  const size_t at_once = min(most, l.staged ? kStage : SIZE_MAX);
  l.most = max(l.by_rows ? at_once / l.row : at_once, 1);
  l.buffers = 1;
  l.one = l.rank == 0 && !l.staged && l.row <= l.most;
  if (!l.joined || copied) return;
  size_t lines = 1;  // rows that are whole lines
  while (lines * l.row % (64 / l.size[0])) lines *= 2;
  if (l.most > lines) l.most -= l.most % lines;
  l.buffers = max(most / (l.most * l.row), 1);
}

void run_loops(const RunArgs& args, const Loops& l, char* const* base, double cycles_per_element, RowFn fn,
               const void* op, const Kernel* kernel, const Kernel* second) {
  if (l.elements == 0) return;
  const Kernel* const kernels[] = {kernel, second};
  const size_t unit = l.by_rows ? l.row : 1;
  Task t = {&l, base, fn, op, kernels, l.by_rows ? l.elements / unit : l.elements, 1, 1, 1};
  if (args.concurrency() > 1) {
    // Whole cache lines of a dense output, so that two workers do not write the same one.
    t.grain = ceil_div(64 / l.size[0], unit);
    t.grains = ceil_div(t.units, t.grain);
    t.pieces = pieces_for(args, t.grains, cycles_per_element * double(t.grain * unit));
  } else {
    t.grain = t.units;
  }
  parallel(args, t.pieces, task, &t);
}

skua_status broadcast_shape(const skua_op* op, skua_dtype type, const PlanShapes& s, skua_tensor& out) {
  for (size_t i = 0; i < s.n_inputs; ++i) {
    SKUA_TRY(need_type(op, s, i, type));
    if (s.inputs[i].rank > out.rank) out.rank = s.inputs[i].rank;
  }
  out.type = type;
  for (uint32_t d = 0; d < out.rank; ++d) {
    size_t extent = 1;
    for (size_t i = 0; i < s.n_inputs; ++i) {
      const skua_tensor& t = s.inputs[i];
      const uint32_t behind = out.rank - d;
      const size_t e = behind <= t.rank ? t.shape[t.rank - behind] : 1;
      if (e != 1 && extent != 1 && e != extent)
        return SKUA_INVALID("%s: input %zu has extent %zu in dimension %u, which does not broadcast to %zu",
                            op->cls->name, i, e, t.rank - behind, extent);
      if (e != 1) extent = e;
    }
    out.shape[d] = extent;
  }
  return SKUA_STATUS_OK;
}

void explain_loops(const Loops& l, Text& text) {
  static const char* const feeds[] = {"vector", "scalar", "staged"};
  text.add("  %zu elements; rows of %zu%s, %u loops outside; output %s, inputs", l.elements, l.row,
           l.joined ? " taken several at a time" : "", l.rank, feeds[int(l.feed[0])]);
  for (uint32_t o = 1; o < l.operands; ++o) text.add(" %s", feeds[int(l.feed[o])]);
  text.add("\n");
}

}  // namespace skua
