// Convolution of bytes in groups of a few channels: packing, and the walk over images, blocks of channels, bands and
// pieces of rows. A piece goes down the image: what the kernel's rows spread of it is a ring, to which each row of
// outputs adds its stride_h.
#include "depthwise/int8_blocks.h"

namespace skua {
namespace {

constexpr size_t kMostRing = 256 << 10;  // bytes of the ring of a tile's width; more goes another way
constexpr size_t kSubblock = 16;         // channels whose groups are spread together

// vectors of spread inputs that a group has
size_t words_of(const DepthwiseInt8Format& f) { return f.per_group / f.group; }
// of weights, for a vector of sums
size_t vectors_of(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return size_t(s.kernel_h) * s.kernel_w * words_of(f);
}
size_t block_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return depthwise_int8_block_bytes(vectors_of(s, f), f);
}
size_t pixel_bytes(const DepthwiseInt8Format& f) { return kSubblock / f.group * f.vector; }
size_t span_h(const DepthwiseShape& s) { return (size_t(s.kernel_h) - 1) * s.dilation_h + 1; }
size_t span_w(const DepthwiseShape& s) { return (size_t(s.kernel_w) - 1) * s.dilation_w + 1; }
// Blocks of channels: the last one ends with them, and so overlaps the one before where they are no multiple. Fewer
// than a block are a part of one.
size_t blocks_of(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return ceil_div(s.channels, size_t(f.vector));
}
size_t block_channels(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return min(s.channels, size_t(f.vector));
}
size_t block_begin(const DepthwiseShape& s, const DepthwiseInt8Format& f, size_t i) {
  return min(i * f.vector, s.channels - block_channels(s, f));
}
bool has_runs(const DepthwiseShape& s) { return s.kernel_w == 3 && s.dilation_w == 1; }  // of three columns

// Outputs of a row whose inputs are spread at once: whole tiles whose ring fills half of a first-level cache.
size_t piece_outputs(const DepthwiseShape& s, const Kernel* kernel, const DepthwiseInt8Format& f) {
  const size_t fit = machine_for(kernel->isa).l1 / 2 / (span_h(s) * pixel_bytes(f)),
               most = fit > span_w(s) ? (fit - span_w(s)) / s.stride_w + 1 : 1;
  return min(max(most / kernel->nr, 1) * kernel->nr, s.out_w);
}
size_t columns_under(const DepthwiseShape& s, size_t outputs) { return (outputs - 1) * s.stride_w + span_w(s); }
size_t taps_bytes(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  return round_up(vectors_of(s, f) * sizeof(size_t), 64);
}
size_t worker_bytes(const DepthwiseShape& s, const Kernel* kernel, const DepthwiseInt8Format& f) {
  return s.out_w ? taps_bytes(s, f) + 64 + span_h(s) * columns_under(s, piece_outputs(s, kernel, f)) * pixel_bytes(f)
                 : 0;
}

struct Run : DepthwiseInt8Run {
  size_t blocks, bands, pieces, worker_bytes;  // blocks of one task: two that overlap are
};

// A block of channels of output rows [y0, y1).
void band(const Run& r, const uint8_t* image, uint8_t* out, size_t block, size_t y0, size_t y1, char* space) {
  const DepthwiseShape& s = *r.s;
  const DepthwiseInt8Table& table = depthwise_int8_table(r.kernel);
  const size_t pixel = pixel_bytes(r.f), ring = span_h(s), words = words_of(r.f),
               most = piece_outputs(s, r.kernel, r.f), first = block_begin(s, r.f, block), bytes = block_bytes(s, r.f);
  auto* taps = reinterpret_cast<size_t*>(space);
  const auto* line = reinterpret_cast<const uint8_t*>(space + taps_bytes(s, r.f));
  auto* rows = reinterpret_cast<uint8_t*>(space + taps_bytes(s, r.f) + 64);
  DepthwiseInt8Tile t = r.tile;
  t.columns = rows;
  t.taps = taps;
  set_weights(t, r.packed + block * bytes, bytes);
  const uint8_t* row;
  size_t step;
  const size_t each = words * (has_runs(s) ? 1 : s.kernel_w);  // runs of a row of taps
  DepthwiseInt8Columns c = {&row, &step,  1,         0,       0, 0,       0,      t.channels,
                            {},   r.flip, r.padding, nullptr, 0, nullptr, nullptr};
  for (size_t x0 = 0; x0 < s.out_w; x0 += most) {
    t.outputs = min(most, s.out_w - x0);
    const size_t columns = columns_under(s, t.outputs), left = x0 * s.stride_w, end = left + columns,
                 inside = s.in_w + s.pad_left;
    const size_t before = min(left < s.pad_left ? s.pad_left - left : 0, columns),
                 after = min(end > inside ? end - inside : 0, columns - before);
    for (size_t y = y0, filled = 0; y < y1; ++y) {
      const size_t top = y * s.stride_h;
      for (size_t p = max(filled, top); p < top + ring; ++p) {
        const bool is_inside = p >= s.pad_top && p - s.pad_top < s.in_h;
        if (!is_inside && !r.padding) continue;  // not read
        c.before = before; c.after = after; c.columns = columns - before - after;
        row = is_inside && c.columns
                  ? image + (p - s.pad_top) * s.in_row + (left + before - s.pad_left) * s.in_pixel + first
                  : line;
        step = is_inside ? s.in_pixel : 0;
        c.to = rows + p % ring * columns * pixel;
        table.interleave[0](c);
      }
      filled = top + ring;
      size_t n = 0, slot = top % ring;  // of the row under the first taps
      t.all_runs = s.kernel_h * each;
      t.skipped_runs = 0;
      for (size_t ky = 0; ky < s.kernel_h;
           ++ky, slot = slot + s.dilation_h < ring ? slot + s.dilation_h : slot + s.dilation_h - ring) {
        // Rows outside the image that are 0 as they are multiplied, as where the zero point is the least value, add
        // nothing (Zen 4: 7x7x256 in 16 groups 10.2 to 9.1 us, 14x14x512 in 32 75 to 71).
        if (const size_t p = top + ky * s.dilation_h; !r.padding && (p < s.pad_top || p - s.pad_top >= s.in_h)) {
          if (!n) t.skipped_runs += each;
          continue;
        }
        for (size_t d = 0; d < words; ++d)
          for (size_t kx = 0; kx < each / words; ++kx)
            taps[n++] = slot * columns * pixel + kx * s.dilation_w * pixel + d * r.f.vector;
      }
      t.groups = n;
      t.out = out + y * s.out_row + x0 * s.out_pixel + first;
      table.run[s.stride_w - 1](t);
    }
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const DepthwiseShape& s = *r.s;
  note_use(r.kernel);
  char* space = r.workspace + worker * r.worker_bytes;
  memset(space + taps_bytes(s, r.f), r.padding ^ r.flip, 64);
  const size_t units = s.batch * r.bands * r.blocks, from = piece_begin(units, r.pieces, index),
               to = piece_begin(units, r.pieces, index + 1);
  for (size_t u = from; u < to; ++u) {
    const size_t block = u % r.blocks, i = u / r.blocks % r.bands, image = u / r.blocks / r.bands;
    for (size_t b = block; b < (block + 1 < r.blocks ? block + 1 : blocks_of(s, r.f)); ++b)
      band(r, r.in + image * s.in_batch, r.out + image * s.out_batch, b, piece_begin(s.out_h, r.bands, i),
           piece_begin(s.out_h, r.bands, i + 1), space);
  }
}

// A ring under a tile stays close, and sums stay in 32 bits.
bool is_small(const DepthwiseShape& s, const DepthwiseInt8Format& f) {
  size_t ring = 0, rows = 0, columns = 0, terms = 0;
  return mul(s.kernel_h - 1, s.dilation_h, rows) && mul(s.kernel_w - 1, s.dilation_w, columns) &&
         mul(rows + 1, columns + 14, ring) && mul(ring, pixel_bytes(f), ring) && ring <= kMostRing &&
         mul(s.kernel_h, s.kernel_w, terms) && terms * f.per_group <= 65536;
}

}  // namespace

DepthwiseInt8Format grouped_int8_format(const skua_context* ctx, const DepthwiseShape& window, Element element,
                                        uint16_t rounding) {
  const DepthwiseShape& s = window;
  struct Best {
    size_t channels;
    const Kernel* kernel;
  } best = {s.channels, nullptr};
  if ((s.group != 4 && s.group != 8 && s.group != 16) || s.channels % s.group || s.stride_w > 2 || s.multiplier != 1)
    return {};
  each_kernel(ctx, depthwise_int8_tables, KernelKind::depthwise_int8, kGroupedInt8, [](const Kernel* k, void* arg) {
    auto& b = *static_cast<Best*>(arg);
    if ((b.channels >= k->vector || k->vector == kPartlyGrouped) &&
        (!b.kernel || (b.kernel->isa == k->isa && k->vector > b.kernel->vector)))
      b.kernel = k;
  }, &best, element);
  if (!best.kernel) return {};
  const DepthwiseInt8Table& table = depthwise_int8_table(best.kernel);
  const DepthwiseInt8Format f = {best.kernel->vector, table.group, 1, table.takes_unsigned, rounding,
                                 uint16_t(s.group),   0,           0};
  return is_small(s, f) ? f : DepthwiseInt8Format{};
}

size_t grouped_int8_packed_bytes(const DepthwiseShape& window, DepthwiseInt8Format f) {
  const DepthwiseShape& s = window;
  size_t bytes = 0;
  const bool sane = (f.group == 2 || f.group == 4) && (f.per_group == 4 || f.per_group == 8 || f.per_group == 16) &&
                    f.rows == 1 && f.vector >= kSubblock && f.vector % kSubblock == 0 &&
                    s.channels >= (f.vector == kPartlyGrouped ? 1 : f.vector) && s.channels % f.per_group == 0 &&
                    s.stride_w <= 2 && is_small(s, f);
  if (!sane || !mul(block_bytes(s, f), blocks_of(s, f), bytes)) return 0;
  return bytes;
}

void grouped_int8_pack(const DepthwiseShape& window, DepthwiseInt8Format f, Element element, int32_t zero_point,
                       const int8_t* weights, const WeightSteps& steps, const int32_t* bias, const void* scale,
                       const int32_t* shift, void* packed) {
  const DepthwiseShape& s = window;
  const size_t terms = vectors_of(s, f), lanes = f.vector / 4, bytes = block_bytes(s, f), words = words_of(f);
  memset(packed, 0, bytes * blocks_of(s, f));
  for (size_t b = 0; b < blocks_of(s, f); ++b) {
    char* to = static_cast<char*>(packed) + b * bytes;
    DepthwiseInt8End end = {to + 4 * terms * f.vector, f, seen_zero_point(f, element, zero_point), bias, scale, shift};
    for (size_t v = 0; v < 4; ++v)
      for (size_t e = 0; e < lanes; ++e) {
        const size_t c = block_begin(s, f, b) + depthwise_int8_channel(lanes, v, e);
        if (c >= s.channels) continue;
        uint32_t sum = 0;
        double amount = 0;
        for (size_t ky = 0; ky < s.kernel_h; ++ky)
          for (size_t kx = 0; kx < s.kernel_w; ++kx)
            for (size_t i = 0; i < f.per_group; ++i) {
              const int8_t value = weights[c * steps.o + i * steps.i + ky * steps.y + kx * steps.x];
              sum += uint32_t(int32_t(value));
              amount += fabs(double(value));
              char* vector =
                  to + ((v / 2 * terms + (ky * words + i / f.group) * s.kernel_w + kx) * 2 + v % 2) * f.vector;
              const int16_t wide = value;
              if (f.group == 4) vector[e * 4 + i % 4] = char(value);
              else memcpy(vector + (e * 2 + i % 2) * 2, &wide, 2);
            }
        end.set(v * lanes + e, c, sum, amount);
      }
    end.finish();
  }
}

bool grouped_int8_fixed_fit(const DepthwiseShape& window, DepthwiseInt8Format f, const void* packed) {
  for (size_t b = 0; b < blocks_of(window, f); ++b) {
    const auto* multipliers = reinterpret_cast<const int32_t*>(
        static_cast<const char*>(packed) + b * block_bytes(window, f) + (vectors_of(window, f) + 1) * 4 * f.vector);
    if (!are_fixed_scales(multipliers, multipliers + f.vector, f.vector)) return false;
  }
  return true;
}

size_t grouped_int8_workspace(const DepthwiseShape& s, const Kernel* kernel, DepthwiseInt8Format f,
                              uint32_t concurrency) {
  return mul_sat(worker_bytes(s, kernel, f), concurrency);
}

void grouped_int8_run(const RunArgs& args, const DepthwiseShape& s, const Kernel* kernel, DepthwiseInt8Format f,
                      const void* packed, int32_t zero_point, const Requantize& to, Element result, const void* in,
                      void* out, void* workspace) {
  if (!s.batch || !s.out_h || !s.out_w) return;
  Run r = {{&s, kernel, f, static_cast<const char*>(packed), static_cast<const uint8_t*>(in),
            static_cast<uint8_t*>(out), static_cast<char*>(workspace), depthwise_int8_flip(kernel, f),
            uint8_t(uint8_t(zero_point) ^ depthwise_int8_flip(kernel, f)),
            depthwise_int8_tile(s, f, to, result),
            {{kernel, kernel, kernel}}},
           max(s.channels / f.vector, 1),
           1,
           0,
           worker_bytes(s, kernel, f)};
  r.tile.kernel_w = has_runs(s) ? 3 : 1;
  r.tile.channels = block_channels(s, f);
  r.tile.layout.pixels = 1;
  r.tile.layout.group = f.per_group == 4 ? words_of(f) * f.vector : 0;
  r.tile.layout.column = size_t(8) / f.per_group * words_of(f) * f.vector;
  // Whole columns of the image, which spread each row once, unless there are too few for the workers.
  r.bands = args.concurrency() > 1 ? min(ceil_div(4 * size_t(args.workers()), s.batch * r.blocks), s.out_h) : 1;
  const size_t units = s.batch * r.blocks * r.bands;
  // cycles of an output: products at two ports, its end, spreading
  const double each = double(f.vector) / 64 * (double(vectors_of(s, f)) * 4 * (f.group == 4 ? 1 : 2) / 2 + 20);
  r.pieces = pieces_for(args, units, each * double(s.out_h) * double(s.out_w) / double(r.bands));
  parallel(args, r.pieces, task, &r);
}

}  // namespace skua
