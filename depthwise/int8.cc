// Depthwise convolution of bytes: packing, and the walk over images, bands of one or two rows, pieces of a row, blocks
// of channels.
#include "depthwise/int8_blocks.h"
#include "depthwise/phases.h"
#include "depthwise/replicate.h"

namespace skua {
namespace {

constexpr size_t kScratchBytes = 16 << 10;  // of interleaved columns: half of a first-level cache

// Rows of taps that a tile of `rows` rows has, and the groups that hold them.
size_t tap_rows(size_t kernel_h, size_t stride_h, size_t rows) { return kernel_h + (rows - 1) * stride_h; }
size_t groups_of(size_t kernel_h, size_t stride_h, const DepthwiseInt8Format& f) {
  return f.pairs ? ceil_div(kernel_h, 2) : ceil_div(tap_rows(kernel_h, stride_h, f.rows), f.group);
}
size_t columns_of(size_t kernel_w, const DepthwiseInt8Format& f) { return f.pairs ? ceil_div(kernel_w, 2) : kernel_w; }

// Outputs of a row whose columns are interleaved at once, and these columns.
struct Piece {
  size_t outputs, columns;
};
Piece piece_of(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  const size_t column = groups_of(s.kernel_h, s.stride_h, f) * 4 * f.vector,
               span = (size_t(s.kernel_w) - 1) * s.dilation_w + 1;
  const size_t fit = kScratchBytes / column, most = fit > span ? (fit - span) / s.stride_w + 1 : 1;
  // Pieces of a dilated row share most of their columns, which each interleaves for itself (Zen 4, 3x3 dilated by 36,
  // 65x65x64: 190 us in pieces of eight outputs, 72 as one).
  const size_t outputs = ceil_div(s.out_w, ceil_div(s.out_w, max(most, s.dilation_w > 1 ? 2 * span : 8)));
  return {outputs, (outputs - 1) * s.stride_w + span};
}

size_t pointer_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return whole_lines(add_sat(mul_sat(groups_of(s.kernel_h, s.stride_h, f) * f.group, sizeof(void*) + sizeof(size_t)),
                             mul_sat(s.kernel_w, sizeof(size_t))));
}
// Where the columns of a piece are interleaved.
DepthwiseInt8Layout layout_of(const DepthwiseInt8Block& b, const DepthwiseInt8Format& f, size_t groups, size_t stride_w,
                              size_t columns) {
  const size_t vector = f.vector;
  if (b.width == vector) return {1, 1, 0, groups * 4 * vector, 4 * vector, vector};
  // The last vector of a plane may begin with the last output.
  const size_t pixels = vector / b.width, planes = min(stride_w, columns),
               plane = (ceil_div(columns, planes) + pixels) * b.width;
  return {pixels, planes, plane, b.width, 4 * planes * plane, planes * plane};
}
// Room for interleaved columns, as many of a whole vector: more than layout_of() takes.
size_t room_of(const DepthwiseShape& s, const Piece& piece) {
  return add_sat(piece.columns, 2 * min(size_t(s.stride_w), piece.columns));
}
// Fewer channels than the least block are copied to pixels of as many, and so are their outputs: parts of pixels would
// be loaded and stored byte by byte (VNNI: 48x48x8 of 3x3 32 us, by copies 7).
bool fills(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return s.out_channels() < kLeastInt8Block && f.vector >= kLeastInt8Block;
}
size_t filled_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return fills(s, f) ? f.rows * piece_of(s, f).outputs * kLeastInt8Block : 0;
}
// A line of padding, interleaved columns, where pixels are copied the rows under them, with every channel repeated, and
// outputs of few channels.
size_t worker_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  if (!s.out_w) return 0;
  const size_t rows = mul_sat(groups_of(s.kernel_h, s.stride_h, f),
                              (s.multiplier > 1 || fills(s, f) ? 4 + f.group : 4) * size_t(f.vector));
  return whole_lines(add_sat(add_sat(add_sat(pointer_bytes(s, f), 64), mul_sat(rows, room_of(s, piece_of(s, f)))),
                             filled_bytes(s, f)));
}

// The n bytes of a pixel, less than 16, by two moves that overlap.
template <class T>
void copy_ends(const uint8_t* from, size_t from_step, uint8_t* to, size_t to_step, size_t pixels, size_t n) {
  for (; pixels; --pixels, from += from_step, to += to_step) {
    T first, last;
    memcpy(&first, from, sizeof first);
    memcpy(&last, from + n - sizeof last, sizeof last);
    memcpy(to, &first, sizeof first);
    memcpy(to + n - sizeof last, &last, sizeof last);
  }
}
void copy_pixels(const uint8_t* from, size_t from_step, uint8_t* to, size_t to_step, size_t pixels, size_t n) {
  (n >= 8   ? copy_ends<uint64_t>
   : n >= 4 ? copy_ends<uint32_t>
   : n >= 2 ? copy_ends<uint16_t>
            : copy_ends<uint8_t>)(from, from_step, to, to_step, pixels, n);
}

struct Run : DepthwiseInt8Run {
  size_t bands, pieces, worker_bytes, groups;
  Piece piece;
};

void band(const Run& r, const uint8_t* image, uint8_t* out, size_t y0, char* space) {
  const DepthwiseShape& s = *r.s;
  const DepthwiseInt8Table& table = depthwise_int8_table(r.kernel);
  const size_t count = r.groups * r.f.group, taps = tap_rows(s.kernel_h, s.stride_h, r.f.rows),
               dilation = r.f.rows > 1 ? 1 : s.dilation_h;
  auto** rows = reinterpret_cast<const uint8_t**>(space);
  auto* steps = reinterpret_cast<size_t*>(rows + count);
  auto* offsets = steps + count;
  auto* line = reinterpret_cast<uint8_t*>(space + pointer_bytes(s, r.f));
  DepthwiseInt8Columns c = {rows, steps,  r.groups,  0,         0, 0,       count - taps, 0,
                            {},   r.flip, r.padding, line + 64, 0, nullptr, nullptr};
  DepthwiseInt8Tile t = r.tile;
  t.columns = c.to;
  t.groups = r.groups; t.kernel_w = s.kernel_w; t.taps = offsets;
  t.out_row = y0 + 1 < s.out_h ? s.out_row : 0;
  const size_t channels = s.out_channels(), bytes = depthwise_int8_block_bytes(r.groups * s.kernel_w * r.f.rows, r.f);
  const bool filled = fills(s, r.f), copies = s.multiplier > 1 || filled;
  const size_t step = filled ? kLeastInt8Block : r.f.vector;  // of pixels that are copied
  auto* const copied = line + 64 + r.groups * 4 * room_of(s, r.piece) * r.f.vector;
  auto* const outputs = copied + count * room_of(s, r.piece) * r.f.vector;
  for (size_t x0 = 0; x0 < s.out_w; x0 += r.piece.outputs) {
    t.outputs = min(r.piece.outputs, s.out_w - x0);
    const size_t columns = (t.outputs - 1) * s.stride_w + (size_t(s.kernel_w) - 1) * s.dilation_w + 1,
                 left = x0 * s.stride_w;
    c.before = min(left < s.pad_left ? s.pad_left - left : 0, columns);
    const size_t end = left + columns, inside = s.in_w + s.pad_left;
    c.after = c.before == columns ? 0 : min(end > inside ? end - inside : 0, columns - c.before);
    c.columns = columns - c.before - c.after;
    DepthwiseInt8Block block = {};
    for (size_t b = 0; block.end() < channels; ++b) {
      const size_t before = block.first;
      block = depthwise_int8_block(channels, r.f.vector, block.end());
      const size_t first = block.first;
      c.channels = t.channels = block.channels;
      if (!b || block.width != r.f.vector) {
        c.layout = t.layout = layout_of(block, r.f, r.groups, s.stride_w, columns);
        t.output = t.layout.pixels > 1 ? block.width : t.layout.column * s.stride_w;
        for (size_t i = 0; i < s.kernel_w; ++i) offsets[i] = t.layout.at(i * s.dilation_w);
      }
      if (filled) c.channels = t.channels = kLeastInt8Block;
      for (size_t i = 0; b && !copies && i < count; ++i) rows[i] += rows[i] == line ? 0 : first - before;
      for (size_t i = 0; (!b || copies) && i < count; ++i) {
        const size_t y = y0 * s.stride_h + i * dilation;
        const bool is_inside = i < taps && y >= s.pad_top && y - s.pad_top < s.in_h && c.columns;
        const uint8_t* row =
            is_inside ? image + (y - s.pad_top) * s.in_row + (left + c.before - s.pad_left) * s.in_pixel : line;
        rows[i] = is_inside ? row + first : line;
        steps[i] = is_inside ? s.in_pixel : 0;
        if (!copies || !is_inside) continue;
        uint8_t* const to = copied + i * r.piece.columns * r.f.vector;
        if (s.multiplier > 1)
          depthwise::replicate<uint8_t>(row + first / s.multiplier, s.in_pixel, to, step, c.columns,
                                        first % s.multiplier, block.channels, s.multiplier);
        else copy_pixels(row, s.in_pixel, to, step, c.columns, channels);
        rows[i] = to;
        steps[i] = step;
      }
      table.interleave[t.layout.pixels / 2](c);
      set_weights(t, r.packed + b * bytes, bytes);
      uint8_t* const to = out + y0 * s.out_row + x0 * s.out_pixel + first;
      t.out = to;
      if (filled) {
        t.out = outputs;
        t.out_pixel = kLeastInt8Block;
        t.out_row = t.outputs * kLeastInt8Block;
      }
      table.run[r.f.rows - 1](t);
      for (size_t y = 0; filled && y < min(r.f.rows, s.out_h - y0); ++y)
        copy_pixels(outputs + y * t.out_row, kLeastInt8Block, to + y * s.out_row, s.out_pixel, t.outputs, channels);
    }
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  Run r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  r.kernel = r.kernels.here();
  note_use(r.kernel);
  char* space = r.workspace + worker * r.worker_bytes;
  memset(space + pointer_bytes(s, r.f), r.padding ^ r.flip, 64);
  const size_t units = s.batch * r.bands, from = piece_begin(units, r.pieces, index),
               to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    const size_t image = u / r.bands;
    band(r, r.in + image * s.in_batch, r.out + image * s.out_batch, u % r.bands * r.f.rows, space);
  }
}

}  // namespace

size_t depthwise_int8_taps(size_t kernel_h, size_t kernel_w, size_t stride_h, DepthwiseInt8Format f) {
  if (f.group == 1) return ceil_div(kernel_h * kernel_w, 4);
  if (f.streamed) return f.group == 4 ? kernel_w : kernel_h / 2 * kernel_w + (kernel_w + 1) / 2;
  return groups_of(kernel_h, stride_h, f) * columns_of(kernel_w, f) * f.rows;
}
DepthwiseInt8Block depthwise_int8_block(size_t channels, size_t vector, size_t from) {
  const size_t left = channels - from, least = min(vector, kLeastInt8Block);
  if (left >= vector) return {from, vector, vector};
  if (channels < least) return {0, channels, least};
  size_t width = least;
  while (width < left) width *= 2;
  if (width > channels) width /= 2;  // two blocks
  return {width < left ? from : channels - width, width, width};
}
size_t depthwise_int8_blocks(size_t channels, size_t vector) {
  size_t n = channels / vector;
  for (size_t from = n * vector; from < channels; ++n) from = depthwise_int8_block(channels, vector, from).end();
  return n;
}

DepthwiseInt8Format depthwise_int8_format(const skua_context* ctx, const DepthwiseShape& window, Element element,
                                          uint16_t rounding) {
  const Kernel* best = nullptr;
  each_kernel(ctx, depthwise_int8_tables, KernelKind::depthwise_int8, kDepthwiseInt8, [](const Kernel* k, void* arg) {
    auto& best = *static_cast<const Kernel**>(arg);
    if (best && best->isa != k->isa) return;  // best set first
    if (!best || k->vector > best->vector) best = k;
  }, &best, element);
  if (!best) return {};
  const DepthwiseInt8Table& table = depthwise_int8_table(best);
  // By three columns and a stride of 2 that takes a fifth less instructions than dot products; by five as many.
  if (table.by_taps && !rounding && depthwise_int8_goes_by_taps(window) && window.stride_w >= table.by_taps &&
      (table.wide_by_taps || window.kernel_w <= 3))
    return {best->vector, 1, 1, table.takes_unsigned, rounding, 0, 0, 0};
  // VNNI by columns: 16 unpackings an output, which by pairs are 8 and four stores. Where they have ports to choose
  // from that takes 0.6 to 0.75 of the time (Zen 4).
  if (table.streamed && !rounding && (table.group == 2 || machine_for(best->isa).logic_apart) &&
      depthwise_int8_is_streamed(window, best->vector, table.group))
    return {best->vector, table.group, 1, 1, rounding, 0, 0, 1};
  DepthwiseInt8Format f = {best->vector,
                           table.group,
                           2,
                           table.takes_unsigned,
                           rounding,
                           0,
                           table.pairs[0] != nullptr && depthwise_int8_takes_pairs(window),
                           0};
  const size_t two = groups_of(window.kernel_h, window.stride_h, f);
  f.rows = 1;
  // Dilated layers have two rows in phases, which pay where they are not too small (Zen 5: 56x56x40 of 5x5 with a
  // dilation of 4 89 us, in phases 64; 33x33x480 of 3x3 with 2 67 and 46; but 28x28x256 with 12 28 and 56) and no
  // stride shares out their columns anyway (64x64x100, stride 3: 12 and 14). Unhinted: an image of 56 pixels.
  const auto large = [](size_t in, size_t dilation) { return (in ? in : 56) >= 6 * dilation; };
  const bool phases = window.stride_h == 1 && window.stride_w == 1 && large(window.in_h, window.dilation_h) &&
                      large(window.in_w, window.dilation_w);
  if (!f.pairs && (window.dilation_h == 1 || phases) && two == groups_of(window.kernel_h, window.stride_h, f))
    f.rows = 2;
  return f;
}
// Strides of 2, of windows whose rows stay close.
bool depthwise_int8_takes_pairs(const DepthwiseShape& s) {
  return s.stride_h == 2 && s.stride_w == 2 && s.dilation_h == 1 && s.dilation_w == 1 && s.multiplier == 1 &&
         s.channels >= kLeastInt8Block && s.kernel_h >= 2 && s.kernel_h <= 8 && s.kernel_w >= 2 && s.kernel_w <= 8;
}

const Kernel* depthwise_int8_kernel(const skua_context* ctx, DepthwiseInt8Format format, Element element) {
  struct Found {
    DepthwiseInt8Format format;
    const Kernel* kernel;
  } found = {format, nullptr};
  each_kernel(
      ctx, depthwise_int8_tables, KernelKind::depthwise_int8, format.per_group ? kGroupedInt8 : kDepthwiseInt8,
      [](const Kernel* k, void* arg) {
        auto& f = *static_cast<Found*>(arg);
        const DepthwiseInt8Table& table = depthwise_int8_table(k);
        if (!f.kernel && k->vector == f.format.vector &&
            (table.group == f.format.group || (table.by_taps && f.format.group == 1)) &&
            (f.format.streamed ? table.streamed != nullptr : table.takes_unsigned == bool(f.format.takes_unsigned)) &&
            (table.pairs[0] || !f.format.pairs))
          f.kernel = k;
      },
      &found, element);
  return found.kernel;
}

OnCores depthwise_int8_on_cores(const skua_context* ctx, const Kernel* kernel) {
  return on_cores(ctx, depthwise_int8_tables, kernel, [](const Kernel* other, const Kernel* chosen) {
    return depthwise_int8_table(other).takes_unsigned == depthwise_int8_table(chosen).takes_unsigned;
  });
}

size_t depthwise_int8_packed_bytes(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels,
                                   DepthwiseInt8Format f) {
  size_t bytes = 0, rows = 0;
  if (!add(kernel_h, size_t(stride_h), rows) || !add(rows, size_t(f.group), rows) || !mul(rows, kernel_w, bytes) ||
      !mul(bytes, size_t(8) * f.vector, bytes) || !add(bytes, size_t(64), bytes) ||
      !mul(bytes, depthwise_int8_blocks(channels, f.vector), bytes))
    return 0;
  return depthwise_int8_block_bytes(depthwise_int8_taps(kernel_h, kernel_w, stride_h, f), f) *
         depthwise_int8_blocks(channels, f.vector);
}

void depthwise_int8_pack(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels, DepthwiseInt8Format f,
                         Element element, int32_t zero_point, const int8_t* weights, const WeightSteps& steps,
                         const int32_t* bias, const void* scale, const int32_t* shift, void* packed) {
  const size_t groups = groups_of(kernel_h, stride_h, f), columns = columns_of(kernel_w, f), lanes = f.vector / 4;
  const size_t taps = depthwise_int8_taps(kernel_h, kernel_w, stride_h, f), bytes = depthwise_int8_block_bytes(taps, f);
  DepthwiseInt8Block block = {};
  memset(packed, 0, bytes * depthwise_int8_blocks(channels, f.vector));
  for (size_t b = 0; block.end() < channels; ++b) {
    block = depthwise_int8_block(channels, f.vector, block.end());
    const size_t own = block.width / 4;  // lanes of an output
    char* to = static_cast<char*>(packed) + b * bytes;
    DepthwiseInt8End end = {to + 4 * taps * f.vector, f, seen_zero_point(f, element, zero_point), bias, scale, shift};
    for (size_t v = 0; v < 4; ++v)
      for (size_t e = 0; e < lanes; ++e) {
        const size_t c = block.first + depthwise_int8_channel(own, v, e % own);
        if (c >= channels) continue;
        uint32_t sum = 0;
        double amount = 0;
        for (size_t ky = 0; ky < kernel_h; ++ky)
          for (size_t kx = 0; kx < kernel_w; ++kx) {
            const int8_t value = weights[c * steps.o + ky * steps.y + kx * steps.x];
            sum += uint32_t(int32_t(value));
            amount += fabs(double(value));
            end.least |= value == -128;
            if (f.group == 1)
              to[depthwise_int8_tap(kernel_h, kernel_w, ky, kx) * f.vector + v * lanes + e] = char(value);
            else if (f.streamed && f.group == 4) to[(kx * 4 + v) * f.vector + e * 4 + ky] = char(value);
            else if (f.streamed) {
              const size_t at = ky + 1 < kernel_h ? ky / 2 * kernel_w + kx : kernel_h / 2 * kernel_w + (kx + 1) / 2,
                           half = ky + 1 < kernel_h ? ky % 2 : (kx + 1) % 2;
              const int16_t wide = value;
              memcpy(to + (at * 4 + v) * f.vector + (e * 2 + half) * 2, &wide, 2);
            } else if (f.pairs)
              to[((v * groups + ky / 2) * columns + kx / 2) * f.vector + e * 4 + ky % 2 * 2 + kx % 2] = char(value);
            else for (size_t y = 0; y < f.rows; ++y) {
              const size_t row = ky + y * stride_h;
              char* vector = to + (((v * groups + row / f.group) * kernel_w + kx) * f.rows + y) * f.vector;
              const int16_t wide = value;
              if (f.group == 4) vector[e * 4 + row % 4] = char(value);
              else memcpy(vector + (e * 2 + row % 2) * 2, &wide, 2);
            }
          }
        end.set(v * lanes + e, c, sum, amount);
      }
    end.finish();
  }
}

bool depthwise_int8_fixed_fit(size_t kernel_h, size_t kernel_w, uint32_t stride_h, size_t channels,
                              DepthwiseInt8Format f, const void* packed) {
  const size_t taps = depthwise_int8_taps(kernel_h, kernel_w, stride_h, f), bytes = depthwise_int8_block_bytes(taps, f);
  for (size_t b = 0; b < depthwise_int8_blocks(channels, f.vector); ++b) {
    const auto* multipliers =
        reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) + b * bytes + (taps + 1) * 4 * f.vector);
    if (!are_fixed_scales(multipliers, multipliers + f.vector, f.vector)) return false;
  }
  return true;
}

// Per output and vector of L bytes: its share of interleaving (measured: about 12 cycles for a column of a group), dot
// products at two ports of which the set may do one with two instructions, and about 10 for the end. Tap by tap: four
// operations for each. By columns: nothing is written, eight operations for each two taps; of VNNI measured.
double depthwise_int8_cycles(const Kernel* kernel, const DepthwiseShape& s, DepthwiseInt8Format f) {
  const double groups = double(f.group == 1 ? 0 : groups_of(s.kernel_h, s.stride_h, f)),
               taps = f.group == 1 ? double(size_t(s.kernel_h) * s.kernel_w) : 0, wide = kernel->vector > 32 ? 1 : 0.7,
               pairs = f.group == 4 ? 1 : 2;
  const double interleaving = f.pairs ? 12 : groups * double(s.stride_w) * 12 / double(f.rows);
  const double each =
      f.streamed && f.group == 4 ? 33
      : f.streamed               ? double(s.stride_w * s.kernel_h) * 1.5 +
                         double(depthwise_int8_taps(s.kernel_h, s.kernel_w, s.stride_h, f)) * 2 + 8
                   : interleaving + groups * double(columns_of(s.kernel_w, f)) * 4 * pairs * 0.75 + taps * 4 + 12;
  const size_t channels = s.out_channels(), whole = channels / f.vector;
  double vectors = double(whole);
  for (size_t from = whole * f.vector; from < channels;) {
    const DepthwiseInt8Block b = depthwise_int8_block(channels, f.vector, from);
    vectors += double(b.width) / f.vector;
    from = b.end();
  }
  return double(s.batch * s.out_h * s.out_w) * vectors * each * wide;
}

// Two rows of outputs that share taps are of a phase (both). Rows so dilated that most columns under them are no tap's
// go by phases across: one takes as long as 8 to 24 columns by itself (Xeon, one row of taps: of 256 channels 7, of 64
// 18, of 16 23).
enum class Split { none, both, across };
static Split split_of(const DepthwiseShape& s, DepthwiseInt8Format f) {
  if (f.rows > 1 && s.dilation_h > 1) return Split::both;
  if (f.streamed || f.group == 1 || f.pairs || s.dilation_w <= 1 || !s.out_w) return Split::none;
  const double outputs = double(s.out_w), phases = double(depthwise::phases_x(s)), taps = double(s.kernel_w),
               columns = (outputs - 1) * double(s.stride_w) + (taps - 1) * double(s.dilation_w) + 1,
               of_phases = (outputs - phases) * double(s.stride_w) + phases * taps,
               alone = 8 + 512 / double(max(s.out_channels(), 32));
  return columns > of_phases + alone * phases ? Split::across : Split::none;
}
static size_t phases_of(const DepthwiseShape& s, Split split) {
  return depthwise::phases_x(s) * (split == Split::both ? depthwise::phases_y(s) : 1);
}
static DepthwiseShape phase_of(const DepthwiseShape& s, Split split, size_t i, depthwise::PhaseBegin* begin) {
  const size_t across = depthwise::phases_x(s);
  if (split == Split::both) return depthwise::phase_of(s, i / across, i % across, begin);
  return depthwise::phase_across(s, i, begin);
}

size_t depthwise_int8_workspace(const DepthwiseShape& s, DepthwiseInt8Format f, uint32_t concurrency) {
  // what they need depends on their outputs in a row, which are of two numbers
  if (const Split split = split_of(s, f); split != Split::none && s.out_h && s.out_w)
    return max(depthwise_int8_workspace(phase_of(s, split, 0, nullptr), f, concurrency),
               depthwise_int8_workspace(phase_of(s, split, depthwise::phases_x(s) - 1, nullptr), f, concurrency));
  if (f.streamed) return 0;
  if (f.group == 1) return direct_int8_workspace(s, concurrency);
  return f.pairs ? paired_int8_workspace(s, f, concurrency) : mul_sat(worker_bytes(s, f), concurrency);
}

namespace {

// Phases by themselves, some to a task; few that are large one after the other.
struct Phases {
  RunArgs args;
  const DepthwiseShape* s;
  Split split;
  const Kernel* kernel;
  DepthwiseInt8Format f;
  const void* packed;
  int32_t zero_point;
  const Requantize* to;
  Element result;
  const char* in;
  char *out, *workspace;
  size_t worker_bytes, phases, pieces;
};
void phase_task(void* arg, size_t index, uint32_t worker) {
  const Phases& p = *static_cast<const Phases*>(arg);
  for (size_t i = piece_begin(p.phases, p.pieces, index), end = piece_begin(p.phases, p.pieces, index + 1); i < end;
       ++i) {
    depthwise::PhaseBegin begin;
    const DepthwiseShape s = phase_of(*p.s, p.split, i, &begin);
    depthwise_int8_run(p.args, s, p.kernel, p.f, p.packed, p.zero_point, *p.to, p.result, p.in + begin.in,
                       p.out + begin.out, p.workspace + worker * p.worker_bytes);
  }
}

}  // namespace

void depthwise_int8_run(const RunArgs& args, const DepthwiseShape& s, const Kernel* kernel, DepthwiseInt8Format f,
                        const void* packed, int32_t zero_point, const Requantize& to, Element result, const void* in,
                        void* out, void* workspace) {
  if (!s.batch || !s.out_h || !s.out_w || !s.channels) return;
  if (const Split split = split_of(s, f); split != Split::none) {
    const size_t phases = phases_of(s, split);
    Phases p = {args, &s, split, kernel, f, packed, zero_point, &to, result, static_cast<const char*>(in),
                static_cast<char*>(out), static_cast<char*>(workspace), 0, phases, 1};
    const double each = depthwise_int8_cycles(kernel, s, f) / double(phases);
    if (phases < 2 * size_t(args.workers()) && each >= kAlone) return phase_task(&p, 0, 0);
    p.worker_bytes = depthwise_int8_workspace(s, f, 1);
    p.args.executor = nullptr;
    p.pieces = pieces_for(args, phases, each);
    return parallel(args, p.pieces, phase_task, &p);
  }
  const DepthwiseInt8Run common = {&s, kernel, f, static_cast<const char*>(packed), static_cast<const uint8_t*>(in),
                                   static_cast<uint8_t*>(out), static_cast<char*>(workspace),
                                   depthwise_int8_flip(kernel, f),
                                   uint8_t(uint8_t(zero_point) ^ depthwise_int8_flip(kernel, f)),
                                   depthwise_int8_tile(s, f, to, result),
                                   depthwise_int8_on_cores(args.plan->op->ctx, kernel)};
  if (f.streamed) return streamed_int8_run(args, common);
  if (f.group == 1) return direct_int8_run(args, common);
  if (f.pairs) return paired_int8_run(args, common);
  Run r = {common,        ceil_div(s.out_h, f.rows), 0, worker_bytes(s, f), groups_of(s.kernel_h, s.stride_h, f),
           piece_of(s, f)};
  const size_t units = s.batch * r.bands;
  r.pieces = pieces_for(args, units, depthwise_int8_cycles(kernel, s, f) / double(units));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
