// Depthwise convolution of bytes by columns (int8_streamed.h): some rows of outputs with all their channels, straight
// from the pixels. What lies outside is a line of padding. A dilated row is as many rows without dilation, whose pixels
// lie further apart.
#include "depthwise/int8_blocks.h"
#include "depthwise/phases.h"

namespace skua {
namespace {

// kLines: of outputs, whose blocks are computed one after the other: what a call and a block's weights take is small
// beside them
constexpr size_t kMostRows = 5, kLine = 64, kLines = 8;

struct Run : DepthwiseInt8Run {
  size_t pieces;
};

// Output rows from y on, at most kLines. Blocks of half a vector have two at once, of one row that twice.
void some_rows(const Run& r, const uint8_t* image, uint8_t* out, size_t y, size_t count, const uint8_t* line) {
  const DepthwiseShape& s = *r.s;
  const size_t vector = r.f.vector,
               bytes = depthwise_int8_block_bytes(depthwise_int8_taps(s.kernel_h, s.kernel_w, s.stride_h, r.f), r.f);
  const uint8_t* rows[kLines * kMostRows];
  DepthwiseInt8Streamed d = {r.tile, 0, bytes, rows, s.in_pixel * s.dilation_w, line, 0, 0, 0, s.stride_w, r.flip};
  d.tile.kernel_w = s.kernel_w;
  d.tile.out_pixel = s.out_pixel * s.dilation_w;
  d.tile.out_row = s.out_row;
  d.tile.lines = count;
  for (size_t phase = 0; phase < depthwise::phases_x(s); ++phase) {
    const depthwise::PhaseAxis x = depthwise::phase_axis(phase, s.stride_w, s.dilation_w, s.pad_left, s.in_w, s.out_w);
    const size_t columns = (x.out - 1) * s.stride_w + s.kernel_w;
    d.tile.outputs = x.out;
    d.before = min(x.pad, columns);
    d.inside = min(x.in, columns - d.before);
    d.after = columns - d.before - d.inside;
    const auto run = [&](size_t blocks, size_t first, size_t from, size_t width) {
      for (size_t j = 0; j < count + count % 2; ++j)
        for (size_t i = 0; i < s.kernel_h; ++i) {
          // above the image: more than any row
          const size_t at = min(y + j, y + count - 1) * s.stride_h + i * s.dilation_h - s.pad_top;
          rows[j * s.kernel_h + i] =
              at < s.in_h && d.inside ? image + at * s.in_row + x.first * s.in_pixel + from : line;
        }
      d.blocks = blocks;
      d.tile.channels = width;
      d.tile.w = r.packed + first * bytes;
      d.tile.out = out + y * s.out_row + phase * s.out_pixel + from;
      depthwise_int8_table(r.kernel).streamed(d);
    };
    const size_t whole = s.channels / vector;
    if (whole) run(whole, 0, 0, vector);
    for (size_t b = whole, at = whole * vector; at < s.channels; ++b) {
      const DepthwiseInt8Block block = depthwise_int8_block(s.channels, vector, at);
      run(1, b, block.first, block.width);
      at = block.end();
    }
  }
}

void task(void* arg, size_t index, uint32_t) {
  Run r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  r.kernel = r.kernels.here();
  note_use(r.kernel);
  alignas(kLine) uint8_t line[kLine];
  memset(line, r.padding ^ r.flip, sizeof line);
  const size_t units = s.batch * s.out_h, to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = piece_begin(units, r.pieces, index); u < to;) {
    const size_t y = u % s.out_h, count = min(min(s.out_h - y, to - u), kLines);
    some_rows(r, r.in + u / s.out_h * s.in_batch, r.out + u / s.out_h * s.out_batch, y, count, line);
    u += count;
  }
}

}  // namespace

// With a stride of 1 an interleaved column serves three outputs: of 16 channels streaming it loses (Zen 3: 112x112x32
// by SSE2 402 us, interleaved 328; by AVX2 123 and 161).
bool depthwise_int8_is_streamed(const DepthwiseShape& window, size_t vector, size_t group) {
  const bool one = window.stride_w == 1 && vector >= 32, two = window.stride_w == 2 && window.dilation_w == 1,
             three = window.stride_w == 3 && window.dilation_w == 1;
  if (group == 4 && (!two || window.kernel_w != 3 || vector < 64)) return false;
  return window.multiplier == 1 && window.channels >= kLeastInt8Block && window.kernel_h == window.kernel_w &&
         (window.kernel_w == 3 ? one || two || three : window.kernel_w == 5 && two);
}

void streamed_int8_run(const RunArgs& args, const DepthwiseInt8Run& common) {
  const DepthwiseShape& s = *common.s;
  Run r = {common, 0};
  const size_t units = s.batch * s.out_h;
  r.pieces = pieces_for(args, units, depthwise_int8_cycles(common.kernel, s, common.f) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
