// Depthwise convolution of bytes tap by tap (int8_by_taps.h), on NEON: kernels read pixels as they are, nothing is
// interleaved in memory. Outputs whose windows leave the image at the left or right read a copy of their window.
#include "depthwise/int8_blocks.h"

namespace skua {
namespace {

// Rows of a window, in whole groups of two.
size_t rows_of(const DepthwiseShape& s) { return 2 * ceil_div(s.kernel_h, 2); }
size_t pointers_bytes(const DepthwiseShape& s) { return round_up(rows_of(s) * (sizeof(void*) + sizeof(size_t)), 64); }
size_t window_bytes(const DepthwiseShape& s) { return whole_lines(mul_sat(rows_of(s) * s.kernel_w, s.channels)); }
// Pointers and steps, a window, a line of padding.
size_t worker_bytes(const DepthwiseShape& s) { return add_sat(window_bytes(s), pointers_bytes(s) + 64); }

struct Run : DepthwiseInt8Run {
  size_t pieces, worker_bytes;
  size_t from, to;  // outputs of a row whose windows stay inside
};

// Output row y.
void row(const Run& r, const uint8_t* image, uint8_t* out, size_t y, char* space) {
  const DepthwiseShape& s = *r.s;
  const size_t count = rows_of(s), vector = r.f.vector,
               bytes = depthwise_int8_block_bytes(depthwise_int8_taps(s.kernel_h, s.kernel_w, s.stride_h, r.f), r.f);
  auto** const rows = reinterpret_cast<const uint8_t**>(space);
  auto* const steps = reinterpret_cast<size_t*>(rows + count);
  auto* const window = reinterpret_cast<uint8_t*>(space + pointers_bytes(s));
  const uint8_t* const line = window + window_bytes(s);
  DepthwiseInt8Direct d = {r.tile, 0, bytes, rows, steps, line, s.kernel_h, s.stride_w, s.dilation_w, r.flip};
  d.tile.groups = count / 2;
  d.tile.kernel_w = s.kernel_w;
  // Row i of the window, at column 0 of the image; NULL outside. The one behind the last is the last again.
  const auto row_at = [&](size_t i) -> const uint8_t* {
    // above the image: more than any row
    const size_t at = y * s.stride_h + min(i, size_t(s.kernel_h) - 1) * s.dilation_h - s.pad_top;
    return at < s.in_h ? image + at * s.in_row : nullptr;
  };
  // Outputs [x, x + n) of all channels.
  const auto outputs = [&](size_t x, size_t n) {
    d.tile.outputs = n;
    const size_t whole = s.channels / vector;
    const auto blocks = [&](size_t first, size_t from, size_t width) {
      d.tile.channels = width;
      d.tile.w = r.packed + first * bytes;
      d.tile.out = out + y * s.out_row + x * s.out_pixel + from;
      depthwise_int8_table(r.kernel).direct(d);
    };
    d.blocks = whole;
    if (whole) blocks(0, 0, vector);
    d.blocks = 1;
    size_t done = 0;
    for (size_t b = whole, at = whole * vector; at < s.channels; ++b) {
      const DepthwiseInt8Block block = depthwise_int8_block(s.channels, vector, at);
      // not by their step: that may be 0
      for (size_t i = 0; i < count; ++i) rows[i] += rows[i] == line ? 0 : block.first - done;
      blocks(b, block.first, block.width);
      done = block.first;
      at = block.end();
    }
  };
  if (r.from < r.to) {
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* from = row_at(i);
      rows[i] = from ? from + (r.from * s.stride_w - s.pad_left) * s.in_pixel : line;
      steps[i] = from ? s.in_pixel : 0;
    }
    outputs(r.from, r.to - r.from);
  }
  d.dilation = 1;
  for (size_t x = r.from ? 0 : r.to; x < s.out_w; x = x + 1 == r.from ? r.to : x + 1) {
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* from = row_at(i);
      rows[i] = window + i * s.kernel_w * s.channels;
      steps[i] = s.channels;
      for (size_t k = 0; k < s.kernel_w; ++k) {
        const size_t column = x * s.stride_w + k * s.dilation_w - s.pad_left;
        uint8_t* const to = window + (i * s.kernel_w + k) * s.channels;
        if (from && column < s.in_w) memcpy(to, from + column * s.in_pixel, s.channels);
        else memset(to, *line, s.channels);
      }
    }
    outputs(x, 1);
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  Run r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  r.kernel = r.kernels.here();
  note_use(r.kernel);
  char* space = r.workspace + worker * r.worker_bytes;
  memset(space + pointers_bytes(s) + window_bytes(s), r.padding ^ r.flip, 64);
  const size_t units = s.batch * s.out_h, to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = piece_begin(units, r.pieces, index); u < to; ++u)
    row(r, r.in + u / s.out_h * s.in_batch, r.out + u / s.out_h * s.out_batch, u % s.out_h, space);
}

}  // namespace

size_t direct_int8_workspace(const DepthwiseShape& s, uint32_t concurrency) {
  return mul_sat(worker_bytes(s), concurrency);
}

void direct_int8_run(const RunArgs& args, const DepthwiseInt8Run& common) {
  const DepthwiseShape& s = *common.s;
  Run r = {common, 0, worker_bytes(s), 0, 0};
  // windows that end inside
  const size_t span = (size_t(s.kernel_w) - 1) * s.dilation_w,
               last = s.in_w + s.pad_left > span ? (s.in_w + s.pad_left - span - 1) / s.stride_w + 1 : 0;
  r.to = min(last, size_t(s.out_w));
  r.from = min(ceil_div(s.pad_left, s.stride_w), r.to);
  const size_t units = s.batch * s.out_h;
  r.pieces = pieces_for(args, units, depthwise_int8_cycles(common.kernel, s, common.f) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
