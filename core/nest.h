// Dimensions that two operands are walked through together, for operators on strided tensors.
#pragma once
#include "core/op.h"

namespace skua {

// Outermost first; strides in elements, x on the side that is read and y on the side that is written.
struct Nest {
  static constexpr uint32_t kMaxRank = 8;
  uint32_t rank = 0;
  size_t extent[kMaxRank];
  ptrdiff_t x[kMaxRank], y[kMaxRank];

  void add(size_t e, size_t x_stride, size_t y_stride) { add_signed(e, ptrdiff_t(x_stride), ptrdiff_t(y_stride)); }
  void add_signed(size_t e, ptrdiff_t x_stride, ptrdiff_t y_stride) {
    extent[rank] = e; x[rank] = x_stride; y[rank++] = y_stride;
  }
  void swap(uint32_t a, uint32_t b) {
    const size_t e = extent[a];
    const ptrdiff_t s = x[a], t = y[a];
    extent[a] = extent[b]; x[a] = x[b]; y[a] = y[b];
    extent[b] = e; x[b] = s; y[b] = t;
  }
  // Dimensions of one element go; neighbours that both sides see as one run become one. Leaves at least one dimension.
  void merge() {
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; ++d) {
      const ptrdiff_t e = ptrdiff_t(extent[d]);
      if (e == 1) continue;
      if (n && y[n - 1] == e * y[d] && x[n - 1] == e * x[d]) {
        extent[n - 1] *= extent[d]; x[n - 1] = x[d]; y[n - 1] = y[d];
      } else {
        extent[n] = extent[d]; x[n] = x[d]; y[n++] = y[d];
      }
    }
    rank = n;
    if (!n) add_signed(1, 1, 1);
  }
  size_t count() const {
    size_t n = 1;
    for (uint32_t d = 0; d < rank; ++d) n *= extent[d];
    return n;
  }
};

// The offsets of a place in the first `rank` dimensions of a nest, and of the places after it: counted on, for a run
// may be as short as a division. No extent may be 0.
struct Place {
  const Nest& nest;
  const uint32_t rank;
  size_t at[Nest::kMaxRank];
  ptrdiff_t x = 0, y = 0;

  Place(const Nest& n, uint32_t dimensions, size_t index) : nest(n), rank(dimensions) {
    for (uint32_t d = rank; d-- > 0; index /= nest.extent[d]) {
      at[d] = index % nest.extent[d];
      x += ptrdiff_t(at[d]) * nest.x[d];
      y += ptrdiff_t(at[d]) * nest.y[d];
    }
  }
  void next() {
    for (uint32_t d = rank; d-- > 0;) {
      x += nest.x[d];
      y += nest.y[d];
      if (++at[d] < nest.extent[d]) return;
      x -= ptrdiff_t(at[d]) * nest.x[d];
      y -= ptrdiff_t(at[d]) * nest.y[d];
      at[d] = 0;
    }
  }
};

// Positions [from, to) of the nest in runs along its last dimension: run(x offset, y offset, length).
template <class Run> void walk(const Nest& nest, size_t from, size_t to, Run run) {
  if (from >= to) return;
  const uint32_t last = nest.rank - 1;
  size_t first = from % nest.extent[last];
  for (Place outer(nest, last, from / nest.extent[last]); from < to; outer.next(), first = 0) {
    const size_t length = min(nest.extent[last] - first, to - from);
    run(outer.x + ptrdiff_t(first) * nest.x[last], outer.y + ptrdiff_t(first) * nest.y[last], length);
    from += length;
  }
}

}  // namespace skua
