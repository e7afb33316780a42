// Depthwise convolution of bytes with a stride of 2 in both directions. A pair is two rows of two columns of the image, the four taps that a dot product takes: outputs are a stride, and windows
// half the size, of pairs. So every pixel is interleaved once for all outputs, where columns of four rows would be interleaved for one output each:
//
//   rows 2p, 2p+1   a0 b0 | a1 b1 | a2 b2        ->   a0 b0 c0 d0 | a1 b1 c1 d1 | ...   of each channel; 3x3: an output is four dot products, of its pair and those to the right and below
//                   c0 d0 | c1 d1 | c2 d2
//
// A piece of a row goes down a band of the image: the pairs under its outputs are a ring of as many rows as the window has.
#include "depthwise/int8_blocks.h"

namespace skua {
namespace {

constexpr size_t kRingBytes = 16 << 10;  // a third of a first-level cache, or half
constexpr size_t kBandRows = 8;          // rows of outputs that share a ring; the next band interleaves what overlaps again

size_t rows_of(const DepthwiseShape& s) { return ceil_div(s.kernel_h, 2); }
size_t columns_of(const DepthwiseShape& s) { return ceil_div(s.kernel_w, 2); }

size_t piece_outputs(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  const size_t fit = kRingBytes / (rows_of(s) * 4 * f.vector), most = fit >= columns_of(s) ? fit - columns_of(s) + 1 : 1;
  return ceil_div(s.out_w, ceil_div(s.out_w, max(most, 14)));
}
size_t taps_bytes(const DepthwiseShape& s) { return round_up(rows_of(s) * columns_of(s) * sizeof(size_t), 64); }
// The last vector of several pixels may begin with the last output.
size_t slot_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) { return (piece_outputs(s, f) + columns_of(s) + 3) * 4 * f.vector; }
size_t worker_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) { return s.out_w ? taps_bytes(s) + 64 + rows_of(s) * slot_bytes(s, f) : 0; }

// Pairs of a piece that have the same of their two columns inside the image.
struct Span {
  size_t from, n;
  bool inside[2];
};
struct Spans {
  size_t n, left;  // left: of the piece, padding included
  Span span[5];
};
Spans spans_of(const DepthwiseShape& s, size_t x0, size_t pairs) {
  Spans spans = {0, 2 * x0, {}};
  const auto first_from = [&](size_t edge, size_t j) { return min(edge > spans.left + j ? ceil_div(edge - spans.left - j, 2) : 0, pairs); };
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

// A row of pairs of a block whose first channel is `first`.
void interleave_pairs(const Run& r, DepthwiseInt8Columns c, const Spans& spans, const uint8_t* image, size_t row, const uint8_t* line, size_t first, uint8_t* to) {
  const DepthwiseShape& s = *r.s;
  const uint8_t* rows[4];
  size_t steps[4];
  c.rows = rows;
  c.steps = steps;
  for (size_t i = 0; i < spans.n; ++i) {
    const Span& span = spans.span[i];
    for (size_t b = 0; b < 4; ++b) {
      const size_t y = 2 * row + b / 2;
      const bool is_inside = span.inside[b % 2] && y >= s.pad_top && y - s.pad_top < s.in_h;
      rows[b] = is_inside ? image + (y - s.pad_top) * s.in_row + (spans.left + 2 * span.from + b % 2 - s.pad_left) * s.in_pixel + first : line;
      steps[b] = is_inside ? 2 * s.in_pixel : 0;
    }
    c.columns = span.n;
    c.to = to + span.from * c.layout.column;
    depthwise_int8_table(r.kernel).interleave[c.layout.pixels / 2](c);
  }
}

// Output rows [y0, y1).
void band(const Run& r, const uint8_t* image, uint8_t* out, size_t y0, size_t y1, char* space) {
  const DepthwiseShape& s = *r.s;
  const size_t vector = r.f.vector, ring = rows_of(s), window = columns_of(s), most = piece_outputs(s, r.f), slot = slot_bytes(s, r.f), bytes = depthwise_int8_block_bytes(ring * window, r.f);
  auto* taps = reinterpret_cast<size_t*>(space);
  const auto* line = reinterpret_cast<const uint8_t*>(space + taps_bytes(s));
  auto* pairs = reinterpret_cast<uint8_t*>(space + taps_bytes(s) + 64);
  DepthwiseInt8Columns c = {nullptr, nullptr, 1, 0, 0, 0, 0, 0, {}, r.flip, r.padding, nullptr};
  DepthwiseInt8Tile t = r.tile;
  t.columns = pairs;
  t.groups = ring; t.kernel_w = window; t.taps = taps;
  for (size_t x0 = 0; x0 < s.out_w; x0 += most) {
    t.outputs = min(most, s.out_w - x0);
    const size_t under = t.outputs + window - 1;
    const Spans spans = spans_of(s, x0, under);
    DepthwiseInt8Block block = {};
    for (size_t b = 0; block.end() < s.channels; ++b) {
      block = depthwise_int8_block(s.channels, vector, block.end());
      const size_t pixels = vector / block.width;
      c.layout = t.layout = pixels == 1 ? DepthwiseInt8Layout{1, 1, 0, 4 * vector, 0, vector} : DepthwiseInt8Layout{pixels, 1, 0, block.width, 0, (under + pixels) * block.width};
      c.channels = t.channels = block.channels;
      t.output = t.layout.column;
      set_weights(t, r.packed + b * bytes, bytes);
      for (size_t y = y0, filled = y0; y < y1; ++y) {
        for (; filled < y + ring; ++filled) interleave_pairs(r, c, spans, image, filled, line, block.first, pairs + filled % ring * slot);
        for (size_t i = 0; i < ring * window; ++i) taps[i] = (y + i / window) % ring * slot + i % window * t.layout.column;
        t.out = out + y * s.out_row + x0 * s.out_pixel + block.first;
        depthwise_int8_table(r.kernel).pairs[pixels > 1](t);
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
  const size_t units = s.batch * r.bands, from = piece_begin(units, r.pieces, index), to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    const size_t image = u / r.bands, i = u % r.bands;
    band(r, r.in + image * s.in_batch, r.out + image * s.out_batch, piece_begin(s.out_h, r.bands, i), piece_begin(s.out_h, r.bands, i + 1), space);
  }
}

}  // namespace

size_t paired_int8_workspace(const DepthwiseShape& s, DepthwiseInt8Format f, uint32_t concurrency) { return mul_sat(worker_bytes(s, f), concurrency); }

void paired_int8_run(const RunArgs& args, const DepthwiseInt8Run& common) {
  const DepthwiseShape& s = *common.s;
  Run r = {common, ceil_div(s.out_h, kBandRows), 0, worker_bytes(s, common.f)};
  if (args.concurrency() > 1) r.bands = min(max(r.bands, ceil_div(4 * size_t(args.concurrency()), s.batch)), s.out_h);
  const size_t units = s.batch * r.bands;
  r.pieces = pieces_for(args, units, depthwise_int8_cycles(common.kernel, s, common.f) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
