// Depthwise convolution of bytes with a stride of 2 in both directions, where it does not go by columns. A pair is two
// rows of two columns of the image, the four taps that a dot product takes: outputs are a stride, and windows half the
// size, of pairs. So every pixel is interleaved once for all outputs, where columns of four rows would be interleaved
// for one output each:
//
//   rows 2p, 2p+1   a0 b0 | a1 b1 | a2 b2   ->   a0 b0 c0 d0 | a1 b1 c1 d1 | ...   of each channel; 3x3: an output is
//                   c0 d0 | c1 d1 | c2 d2                                          four dot products, of its pair and
//                                                                                  those to the right and below
//
// A piece of a row goes down a band of the image: the pairs under its outputs are a ring of rows, as many as the window
// has or, where there is room, more: these are interleaved by one call, and one call computes all outputs whose windows
// do not pass the ring's end.
#include "depthwise/int8_blocks.h"

namespace skua {
namespace {

// of the ring, for each row of pairs of a window: two or three are a third or half of a first-level cache
constexpr size_t kRowBytes = 8 << 10;
// rows of outputs that share a ring; the next band interleaves what overlaps again
constexpr size_t kBandRows = 8;
constexpr size_t kWindow = 4;         // most rows of pairs of a window
constexpr size_t kRingRows = kBandRows + kWindow - 1;

size_t rows_of(const DepthwiseShape& s) { return ceil_div(s.kernel_h, 2); }
size_t columns_of(const DepthwiseShape& s) { return ceil_div(s.kernel_w, 2); }

size_t piece_outputs(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  const size_t fit = kRowBytes / (4 * f.vector), most = fit >= columns_of(s) ? fit - columns_of(s) + 1 : 1;
  return ceil_div(s.out_w, ceil_div(s.out_w, max(most, 14)));
}
size_t taps_bytes(const DepthwiseShape& s) { return round_up(rows_of(s) * columns_of(s) * sizeof(size_t), 64); }
// The last vector of several pixels may begin with the last output; each of the four parts begins a line.
size_t slot_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return (piece_outputs(s, f) + columns_of(s) + 3) * 4 * f.vector;
}
size_t ring_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return rows_of(s) * max(slot_bytes(s, f), kRowBytes);
}
size_t worker_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return s.out_w ? taps_bytes(s) + 64 + ring_bytes(s, f) : 0;
}

// Pairs of a piece that have the same of their two columns inside the image.
struct Span {
  size_t from, n;
  bool inside[2];
};
struct Spans {
  size_t n, left;  // left: of the piece, padding included
  Span span[5];
  size_t longest() const {
    size_t i = 0;
    for (size_t j = 1; j < n; ++j)
      if (span[j].n > span[i].n) i = j;
    return span[i].from;
  }
};
Spans spans_of(const DepthwiseShape& s, size_t x0, size_t pairs) {
  Spans spans = {0, 2 * x0, {}};
  const auto first_from = [&](size_t edge, size_t j) {
    return min(edge > spans.left + j ? ceil_div(edge - spans.left - j, 2) : 0, pairs);
  };
  for (size_t q = 0; q < pairs;) {
    Span span = {q, pairs - q, {}};
    for (size_t j = 0; j < 2; ++j) {
      const size_t begin = first_from(s.pad_left, j), end = first_from(s.pad_left + s.in_w, j);
      span.inside[j] = q >= begin && q < end;
      if (begin > q) span.n = min(span.n, begin - q);
      if (end > q) span.n = min(span.n, end - q);
    }
    spans.span[spans.n++] = span;
    q += span.n;
  }
  return spans;
}

struct Run : DepthwiseInt8Run {
  size_t bands, pieces, worker_bytes;
};

// The columns under a piece, in parts that have the same columns inside the image. Their rows are found once for all
// blocks.
struct Part {
  const uint8_t* rows[4 * kRingRows];
  size_t steps[4 * kRingRows];
  bool inside[2];
  const uint8_t* at[2];  // its columns in the image's first row
};
struct Parts {
  const Run& r;
  const uint8_t* line;  // of padding
  size_t n, row, count;
  Part part[5];
  DepthwiseInt8Columns columns[5];

  Parts(const Run& run, const uint8_t* padding) : r(run), line(padding) {}  // the rest is filled as far as it is used
  void set(const Spans& spans, const uint8_t* image) {
    n = spans.n;
    row = count = 0;
    for (size_t i = 0; i < n; ++i) {
      const Span& span = spans.span[i];
      Part& p = part[i];
      for (size_t j = 0; j < 2; ++j) {
        p.inside[j] = span.inside[j];
        p.at[j] = span.inside[j] ? image + (spans.left + 2 * span.from + j - r.s->pad_left) * r.s->in_pixel : line;
      }
      columns[i] = {p.rows,    p.steps, 0, span.n, 0,
                    0,         0,       0, {},     r.flip,
                    r.padding, nullptr, 0, line,   i + 1 < n ? &columns[i + 1] : nullptr};
    }
  }
  void find(size_t new_row, size_t new_count) {
    if (new_row == row && new_count == count) return;
    row = new_row;
    count = new_count;
    const DepthwiseShape& s = *r.s;
    for (size_t i = 0; i < n; ++i) {
      Part& p = part[i];
      for (size_t k = 0; k < 2 * count; ++k) {
        const size_t y = 2 * row + k - s.pad_top;  // above the image: more than any row
        for (size_t j = 0; j < 2; ++j) {
          const bool is_inside = p.inside[j] && y < s.in_h;
          p.rows[2 * k + j] = is_inside ? p.at[j] + y * s.in_row : line;
          p.steps[2 * k + j] = is_inside ? 2 * s.in_pixel : 0;
        }
      }
    }
  }
  // Rows of pairs [row, row + count) of a block.
  void interleave(const Spans& spans, size_t new_row, size_t new_count, const DepthwiseInt8Block& block,
                  const DepthwiseInt8Layout& layout, uint8_t* to) {
    find(new_row, new_count);
    for (size_t i = 0; i < n; ++i) {
      DepthwiseInt8Columns& c = columns[i];
      c.groups = count;
      c.channels = block.channels;
      c.first = block.first;
      c.layout = layout;
      c.to = to + spans.span[i].from * layout.column;
    }
    depthwise_int8_table(r.kernel).interleave[layout.pixels / 2](columns[0]);
  }
};

// Output rows [y0, y1).
void band(const Run& r, const uint8_t* image, uint8_t* out, size_t y0, size_t y1, char* space) {
  const DepthwiseShape& s = *r.s;
  const size_t vector = r.f.vector, tall = rows_of(s), window = columns_of(s), most = piece_outputs(s, r.f),
               room = ring_bytes(s, r.f), bytes = depthwise_int8_block_bytes(tall * window, r.f);
  auto* taps = reinterpret_cast<size_t*>(space);
  auto* pairs = reinterpret_cast<uint8_t*>(space + taps_bytes(s) + 64);
  DepthwiseInt8Tile t = r.tile;
  t.groups = tall; t.kernel_w = window; t.taps = taps;
  t.out_row = s.out_row;
  Parts parts(r, reinterpret_cast<const uint8_t*>(space + taps_bytes(s)));
  for (size_t x0 = 0; x0 < s.out_w; x0 += most) {
    t.outputs = min(most, s.out_w - x0);
    const size_t under = t.outputs + window - 1;
    const Spans spans = spans_of(s, x0, under);
    parts.set(spans, image);
    DepthwiseInt8Block block = {};
    for (size_t b = 0; block.end() < s.channels; ++b) {
      block = depthwise_int8_block(s.channels, vector, block.end());
      const size_t pixels = vector / block.width, plane = round_up((under + 2 * pixels) * block.width, 64),
                   slot = pixels == 1 ? under * 4 * vector : 4 * plane;
      const size_t ring = min(min(room / slot, kRingRows), y1 - y0 + tall - 1);
      t.layout = pixels == 1 ? DepthwiseInt8Layout{1, 1, 0, 4 * vector, slot, vector}
                             : DepthwiseInt8Layout{pixels, 1, 0, block.width, slot, plane};
      t.channels = block.channels;
      t.output = t.layout.column;
      t.line = slot;
      set_weights(t, r.packed + b * bytes, bytes);
      uint8_t* to = out + x0 * s.out_pixel + block.first;
      // the longest part begins a line
      auto* const begin = pairs + (pixels - spans.longest() % pixels) % pixels * block.width;
      size_t fill = 0, at = 0;  // where the next row of pairs goes, and where the next output's are
      for (size_t y = y0, filled = y0; y < y1;) {
        for (const size_t end = min(y + ring, y1 + tall - 1); filled < end;) {
          const size_t n = min(end - filled, ring - fill);
          parts.interleave(spans, filled, n, block, t.layout, begin + fill * slot);
          filled += n;
          fill = fill + n == ring ? 0 : fill + n;
        }
        for (const size_t end = filled - tall + 1; y < end;) {
          t.lines = at + tall <= ring ? min(end - y, ring - tall - at + 1) : 1;
          for (size_t k = 0, row = at; k < tall; ++k, row = row + 1 == ring ? 0 : row + 1)
            for (size_t x = 0; x < window; ++x) taps[k * window + x] = row * slot + x * t.layout.column;
          t.columns = begin;
          t.out = to + y * s.out_row;
          depthwise_int8_table(r.kernel).pairs[pixels > 1](t);
          y += t.lines;
          at = at + t.lines >= ring ? at + t.lines - ring : at + t.lines;
        }
      }
    }
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  note_use(r.kernel);
  char* space = r.workspace + worker * r.worker_bytes;
  memset(space + taps_bytes(s), r.padding ^ r.flip, 64);
  const size_t units = s.batch * r.bands, from = piece_begin(units, r.pieces, index),
               to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    const size_t image = u / r.bands, i = u % r.bands;
    band(r, r.in + image * s.in_batch, r.out + image * s.out_batch, piece_begin(s.out_h, r.bands, i),
         piece_begin(s.out_h, r.bands, i + 1), space);
  }
}

}  // namespace

size_t paired_int8_workspace(const DepthwiseShape& s, DepthwiseInt8Format f, uint32_t concurrency) {
  return mul_sat(worker_bytes(s, f), concurrency);
}

void paired_int8_run(const RunArgs& args, const DepthwiseInt8Run& common) {
  const DepthwiseShape& s = *common.s;
  Run r = {common, ceil_div(s.out_h, kBandRows), 0, worker_bytes(s, common.f)};
  if (args.concurrency() > 1) r.bands = min(max(r.bands, ceil_div(4 * size_t(args.workers()), s.batch)), s.out_h);
  const size_t units = s.batch * r.bands;
  r.pieces = pieces_for(args, units, depthwise_int8_cycles(common.kernel, s, common.f) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
