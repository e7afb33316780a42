// How a layer is cut, for the choice of a kernel (choose.cc) and the run (depthwise.cc) alike: vectors and blocks of
// channels, bands of rows, tiles, and the ring of copied rows.
#pragma once
#include "core/families.h"
#include "core/window.h"
#include "depthwise/depthwise.h"
#include "depthwise/depthwise_kernel.h"
#include "depthwise/phases.h"

namespace skua {
namespace depthwise {

constexpr size_t kStripBytes = 512;  // of a pixel: measured best of 256, 512 and 1024
inline size_t strip_channels(const Kernel* k) { return kStripBytes / element_bytes(k->element); }

// What the kernel's sums and its packed weights are.
inline Element summed_in(const Kernel* k) {
  return kIsas[size_t(k->isa)].type == Element::f16 ? Element::f16 : Element::f32;
}

inline size_t vectors_of(size_t channels, size_t vector) { return ceil_div(channels, vector); }
// Channel at which vector v begins (v may be one past the last: the end).
inline size_t vector_begin(size_t channels, size_t vector, size_t v) {
  if (v * vector >= channels) return channels;
  return v * vector + vector > channels && channels >= vector ? channels - vector : v * vector;
}

inline bool is_tile(const Kernel* k) {
  return k->kind == KernelKind::depthwise_tile || k->kind == KernelKind::grouped_tile;
}
// no code for them elsewhere
inline bool is_rows(const Kernel* k) { return kArch == Arch::x86_64 && k->kind == KernelKind::depthwise_row; }
// of packed weights
inline size_t vector_values(const DepthwiseShape& s, size_t vector) {
  return (1 + size_t(s.kernel_h) * s.kernel_w * s.group) * vector;
}
inline size_t span(size_t kernel, size_t dilation) { return (kernel - 1) * dilation + 1; }

// In and out, once.
inline double map_bytes(const DepthwiseShape& s, size_t each) {
  if (s.layer_bytes > 0) return s.layer_bytes;
  return double(s.batch) * double(each) *
         (double(s.in_h) * double(s.in_w) * double(s.channels) +
          double(s.out_h) * double(s.out_w) * double(s.out_channels()));
}

// A dilated layer in tiles is its phases. Kernels for any shape read each pixel again for every tap (128x128x96 of 5x5
// with a dilation of 2: 1210 us on a Zen 5, in phases 535; 33x33x1024 of 3x3 with 4, of which the ring below is a part,
// 1430 and 190).
inline bool by_phases(const DepthwiseShape& s, const Kernel* k) {
  return k->kind != KernelKind::depthwise_any && is_dilated(s);
}
// each: bytes of an element. A ring is chosen by the whole layer.
inline DepthwiseShape float_phase(const DepthwiseShape& s, size_t each, size_t py, size_t px,
                                  PhaseBegin* begin = nullptr) {
  DepthwiseShape p = phase_of(s, py, px, begin);
  p.layer_bytes = map_bytes(s, each);
  return p;
}

// Rows of the input that one band of output rows needs are copied to a compact ring of one block of channels: always
// with a multiplier, which replicates the channels on the way; and when pixels are a multiple of 2 KB apart, where the
// lines of a tile fall into too few sets of a first-level cache (measured with 32 KB in 8 ways: 1.2 to 1.6 times
// faster; with 48 KB in 12 ways the copy costs more than it saves, unless it reads from an L2 of nearly a line a cycle;
// on Zen 3 3x3 with stride 2 1.6 times slower, 5x5 1.5 times faster; where a vector is a line, which a tile reads once,
// from 4 KB on: Zen 4, 14x14x512 7% slower by a ring, 7x7x1024 13% faster).
// Grouped tiles whose groups fill vectors read each line once for each lane (Zen 4: with AVX-512 the ring is 1.2 to 1.5
// times as fast at 4 KB, 14x14x1024 in 32 groups and with a stride of 2, and 5% slower at 2 KB; with AVX2 1.0 to 1.26
// at 2 KB, 28x28x1024 in 64 groups with a stride of 2 2.9).
// On a Zen 5 out of L3 too: with AVX-512 28x28x512 1.3 times faster, of 5x5 1.7, 19x19x1024 of 7x7 2.3, with AVX2 and
// SSE4.1 1.0 to 2.4; larger kernels with a stride of 1 also where pixels are 1 KB apart (28x28x256 of 5x5: 1.3), and
// kernels for any shape, to which each line comes for every tap (32x32x512 of 7x1 2.3, 56x56x1024 4.3), but where rows
// of outputs share none (14x14x512 of 2x2 with a stride of 2: half as fast).
inline bool uses_strip(const DepthwiseShape& s, const Kernel* k) {
  if (s.multiplier > 1) return true;
  const size_t each = element_bytes(k->element), apart = s.in_pixel * each;
  if (is_rows(k) || s.channels <= strip_channels(k) || apart % 1024) return false;
  const Machine m = machine_for(k->isa);
  if (kArch == Arch::x86_64 && s.group > 1 && s.group >= k->vector && (s.group > k->vector || m.l2_bytes <= 48))
    return m.l2_bytes <= 48 && apart % (k->vector * each < 64 ? 2048 : 4096) == 0;
  if (m.l2_bytes > 48 && s.group == 1) {
    // lines come for more than one row
    const bool large = is_tile(k) && s.kernel_w > 3 && s.stride_w == 1 && s.out_w > k->nr,
               again = s.kernel_h > s.stride_h && s.dilation_h == 1 && map_bytes(s, each) > 2 * double(m.l1);
    return (is_tile(k) || again) && apart % (large ? 1024 : 2048) == 0 && map_bytes(s, each) <= double(m.l3);
  }
  if (!is_tile(k) || apart % 2048) return false;
  if (m.l1 <= 32 << 10 && k->vector * each >= 64 && apart % 4096) return false;
  if (m.l2_bytes > 48) return (s.stride_w == 1 || k->vector >= 16) && map_bytes(s, each) <= double(m.l2);
  return (s.stride_w == 1 || (s.kernel_w > 3 && k->vector == 8)) && m.l1 <= 32 << 10;
}

// Tiles across a row of outputs: columns of each, but the first and the last, which have what is left between them
// (they meet the image's borders anyway).
// Where a vector is a whole line and the layer does not fit the second-level cache, narrower ones: fewer lines at once
// of a pixel's length apart, which hardware prefetchers follow better (measured with 2 MB: 4 to 10% faster; a layer
// that fits becomes as much slower, and so do shorter vectors and larger kernels).
// Pixels a multiple of 1 KB apart share few sets of the first level: there from half of that size on. A ring is read as
// it comes.
inline size_t tile_columns(const DepthwiseShape& s, const Kernel* k) {
  const size_t each = element_bytes(k->element);
  const bool narrow = k->kind == KernelKind::depthwise_tile && !uses_strip(s, k) &&
                      k->vector * each >= kDepthwiseNarrowVector && s.kernel_w <= kDepthwiseNarrowKernel &&
                      map_bytes(s, each) > double(machine_for(k->isa).l2) * (s.in_pixel * each % 1024 ? 15 : 7) / 16;
  return narrow ? size_t(k->nr + 1) / 2 : k->nr;
}
inline size_t tiles_of(const DepthwiseShape& s, const Kernel* k) { return ceil_div(s.out_w, tile_columns(s, k)); }
// Column where tile i of a row begins.
inline size_t tile_begin(const DepthwiseShape& s, size_t columns, size_t tiles, size_t i) {
  return i == 0 ? 0 : i == tiles ? s.out_w : i * columns - (tiles * columns - s.out_w) / 2;
}

// A group's inputs stay together: its vectors, some of which only vectors of eight and sixteen floats may be.
inline size_t vectors_of_group(const DepthwiseShape& s, const Kernel* k) {
  return kArch == Arch::x86_64 ? max(s.group / k->vector, 1) : 1;
}

struct Blocks {
  size_t bands, band_rows;      // of output rows
  size_t blocks, vectors;       // of channels; vectors in all
  size_t ring_rows, ring_pixel; // strip
};
// The first vector of block i (i may be one past the last), and the channels that a block has at most.
inline size_t block_begin(const DepthwiseShape& s, const Kernel* k, const Blocks& b, size_t i) {
  const size_t together = vectors_of_group(s, k);
  return piece_begin(b.vectors / together, b.blocks, i) * together;
}
inline size_t block_channels(const DepthwiseShape& s, const Kernel* k, const Blocks& b) {
  return ceil_div(b.vectors / vectors_of_group(s, k), b.blocks) * vectors_of_group(s, k) * k->vector;
}
// Every block has two vectors or more if there are two: the last vector may overlap the one before it, and two tasks
// must not write the same output. Not in line: 0.6 KiB on armhf.
__attribute__((noinline)) inline Blocks blocks_of(const DepthwiseShape& s, const Kernel* k, size_t workers) {
  workers = min(workers, kMostWorkers);
  Blocks b = {};
  b.band_rows = is_tile(k) ? k->mr : 1;
  b.bands = ceil_div(s.out_h, b.band_rows);
  b.vectors = vectors_of(s.out_channels(), k->vector);
  b.blocks = 1;
  const size_t most = max(b.vectors / max(vectors_of_group(s, k), 2), 1);
  if (is_rows(k)) {  // two bands for each worker: each reads a row that the one above reads too
    b.band_rows = workers > 1 ? ceil_div(s.out_h, ceil_div(2 * workers, max(s.batch, 1))) : s.out_h;
    b.bands = ceil_div(s.out_h, max(b.band_rows, 1));
    if (workers > 1 && s.batch * b.bands < workers)
      b.blocks = min(ceil_div(2 * workers, max(s.batch * b.bands, 1)), most);
  } else if (uses_strip(s, k)) {
    b.blocks = min(ceil_div(b.vectors * k->vector, strip_channels(k)), most);
    b.ring_rows = (b.band_rows - 1) * s.stride_h + span(s.kernel_h, s.dilation_h);
    b.ring_pixel = block_channels(s, k, b);
  } else if (workers > 1 && s.batch * b.bands < 4 * workers) {
    b.blocks = min(ceil_div(4 * workers, max(s.batch * b.bands, 1)), most);
  }
  return b;
}

// Per worker: row pointers of the kernel for any shape, then the ring, or a row of sums. False: larger than the address
// space, with room for many workers.
inline size_t pointer_bytes(const DepthwiseShape& s, const Kernel* k) {
  return k->kind != KernelKind::depthwise_any ? 0 : round_up(size_t(s.kernel_h) * sizeof(void*), 64);
}
inline bool worker_bytes(const DepthwiseShape& s, const Kernel* k, size_t workers, size_t& bytes) {
  if (by_phases(s, k)) {  // the widest of them
    DepthwiseShape p = float_phase(s, element_bytes(k->element), 0, 0);
    p.in_w = ceil_div(s.in_w, s.dilation_w);
    return worker_bytes(p, k, workers, bytes);
  }
  const Blocks b = blocks_of(s, k, workers);
  size_t pixels = 0;
  if (is_rows(k)) {
    if (!mul(s.out_w, block_channels(s, k, b) * sizeof(float), bytes) || bytes > SIZE_MAX / 4096) return false;
    bytes = round_up(bytes, 64);
    return true;
  }
  if (!mul(b.ring_rows, s.in_w, pixels) || !mul(pixels, b.ring_pixel * element_bytes(k->element), bytes) ||
      bytes > SIZE_MAX / 4096)
    return false;
  bytes = pointer_bytes(s, k) + round_up(bytes, 64);
  return true;
}

}  // namespace depthwise
}  // namespace skua
