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

// Positions [from, to) of the nest in runs along its last dimension: run(x offset, y offset, length). No extent may be 0.
template <class Run> void walk(const Nest& nest, size_t from, size_t to, Run run) {
  const uint32_t last = nest.rank - 1;
  while (from < to) {
    size_t outer = from / nest.extent[last];
    const size_t first = from % nest.extent[last], length = min(nest.extent[last] - first, to - from);
    ptrdiff_t x = ptrdiff_t(first) * nest.x[last], y = ptrdiff_t(first) * nest.y[last];
    for (uint32_t d = last; d-- > 0; outer /= nest.extent[d]) {
      const ptrdiff_t i = ptrdiff_t(outer % nest.extent[d]);
      x += i * nest.x[d];
      y += i * nest.y[d];
    }
    run(x, y, length);
    from += length;
  }
}

}  // namespace skua
