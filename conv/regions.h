// Phases of a direct convolution, the classes of their outputs and the regions that these make; direct.cc plans
// them, direct_run.cc runs them. The picture: direct.h.
#pragma once
#include "conv/direct.h"

namespace skua {

// One dimension of a phase.
struct Axis {
  size_t out_first, out_step, count;  // outputs
  size_t in_step;                     // input positions from one output to the next
  size_t taps;
  ptrdiff_t first, step;              // input offset of tap t: first + t*step, step >= 1
  size_t k_first;                     // tap t is kernel position k_first + t*k_step
  ptrdiff_t k_step;
  size_t in;                          // input positions
  size_t classes;                     // ranges of outputs with the same live taps
  size_t wide_first, wide_end;        // outputs of the widest class
};

// Taps [first, end) of output j that are inside the image. Both fall with growing j; first >= end: none.
struct Live {
  size_t first, end;
};
inline Live live_taps(const Axis& a, size_t j) {
  const ptrdiff_t p = a.first + ptrdiff_t(j * a.in_step);
  return {p < 0 ? min(ceil_div(size_t(-p), size_t(a.step)), a.taps) : 0,
          p < ptrdiff_t(a.in) ? min(ceil_div(size_t(ptrdiff_t(a.in) - p), size_t(a.step)), a.taps) : 0};
}
// Of the pairs of an output and a tap those that meet a pixel; of many taps by samples.
inline double live_share(const Axis& a) {
  const size_t n = min(a.taps, 64);
  double live = 0;
  for (size_t i = 0; i < n; ++i) {
    const ptrdiff_t at = a.first + ptrdiff_t(a.taps * i / n) * a.step, end = ptrdiff_t(a.in) - at;
    const size_t to = end > 0 ? min(ceil_div(size_t(end), a.in_step), a.count) : 0;
    live += double(to - (at < 0 ? min(ceil_div(size_t(-at), a.in_step), to) : 0));
  }
  return n && a.count ? (live > 0 ? live : 0.5) / (double(n) * double(a.count)) : 1;
}
// The end of the class that begins at output j.
inline size_t class_end(const Axis& a, size_t j) {
  const Live live = live_taps(a, j);
  size_t end = a.count;
  // A tap enters when its input position becomes 0, the last one leaves when its becomes `in`.
  if (live.first) end = min(end, ceil_div(size_t(-ptrdiff_t(live.first - 1) * a.step - a.first), a.in_step));
  if (live.end)
    end = min(end, ceil_div(size_t(ptrdiff_t(a.in) - ptrdiff_t(live.end - 1) * a.step - a.first), a.in_step));
  return end;
}

inline size_t gcd(size_t a, size_t b) { return b ? gcd(b, a % b) : a; }

inline Axis make_axis(bool transposed, size_t phase, size_t kernel, size_t stride, size_t dilation, size_t pad,
                      size_t in, size_t out) {
  Axis a = {0, 1, out, stride, kernel, -ptrdiff_t(pad), ptrdiff_t(dilation), 0, 1, in, 0, 0, 0};
  if (transposed) {
    a = {phase, stride, out > phase ? ceil_div(out - phase, stride) : 0, 1, 0, 0, 1, 0, 0, in, 0, 0, 0};
    // Kernel positions k with (phase + pad - k*dilation) divisible by the stride; the input offset falls as k grows, so
    // the largest k comes first.
    const size_t between = stride / gcd(stride, dilation);
    const size_t least = min(kernel, between), back = dilation % stride;
    size_t k = 0;
    for (size_t rest = (phase + pad) % stride; rest && k < least; ++k)
      rest = rest >= back ? rest - back : rest + stride - back;
    if (k < kernel && k < between) {
      a.taps = (kernel - 1 - k) / between + 1;
      a.k_first = k + (a.taps - 1) * between;
      a.k_step = -ptrdiff_t(between);
      a.first = (ptrdiff_t(phase + pad) - ptrdiff_t(a.k_first * dilation)) / ptrdiff_t(stride);
      a.step = ptrdiff_t(between * dilation / stride);
    }
  }
  // A kernel of thousands of taps may have as many classes: the middle of the image then stands for the widest.
  constexpr size_t kMostCounted = 64;
  for (size_t j = 0, end; j < a.count && a.classes <= kMostCounted; j = end, ++a.classes) {
    if (a.classes == kMostCounted) j = max(j, a.count / 2);
    end = class_end(a, j);
    const size_t widest = a.wide_end - a.wide_first;
    const Live live = live_taps(a, j), best = live_taps(a, a.wide_first);
    if (end - j > widest ||
        (end - j == widest && live.end - live.first > best.end - best.first && live.end > live.first)) {
      a.wide_first = j;
      a.wide_end = end;
    }
  }
  return a;
}

struct Phase {
  Axis y, x;
  size_t depth(const DirectShape& s) const { return y.taps * x.taps * (s.in_channels / s.groups); }
  // Elements of a tap as they are packed, of a row of taps, and of all.
  size_t packed_tap(const DirectShape& s, const PackFormat& f) const {
    const size_t in = s.in_channels / s.groups;
    return packs_taps(s, f) ? round_up(in, f.kr) : in;
  }
  size_t packed_run(const DirectShape& s, const PackFormat& f) const {
    const size_t run = x.taps * packed_tap(s, f);
    return packs_runs(s, f) ? round_up(run, f.kr) : run;
  }
  size_t packed_depth(const DirectShape& s, const PackFormat& f) const { return y.taps * packed_run(s, f); }
};

inline size_t phase_count(const DirectShape& s) { return s.transposed ? size_t(s.stride_h) * s.stride_w : 1; }
inline Phase phase_at(const DirectShape& s, size_t i) {
  return {make_axis(s.transposed, i / s.stride_w, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.in_h, s.out_h),
          make_axis(s.transposed, i % s.stride_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.in_w, s.out_w)};
}

// Outputs [first, end) of an axis, computed with `taps` taps from `tap` on.
struct Part {
  size_t first, end, tap, taps;
  bool padded;  // some taps of some outputs are outside the image
};
inline Part part_from(const Axis& a, Cut cut, size_t j) {
  if (kArch == Arch::x86_64 && cut == Cut::whole) {  // but for outputs that see no pixel
    if (const Live live = live_taps(a, j); live.first >= live.end) return {j, class_end(a, j), 0, 0, false};
    const size_t end = min(a.count, ceil_div(size_t(ptrdiff_t(a.in) - a.first), a.in_step));
    return {j, end, 0, a.taps,
            a.first + ptrdiff_t(j * a.in_step) < 0 ||
                a.first + ptrdiff_t((end - 1) * a.in_step) + ptrdiff_t(a.taps - 1) * a.step >= ptrdiff_t(a.in)};
  }
  const size_t end = cut == Cut::merged  ? a.count
                     : cut == Cut::exact ? class_end(a, j)
                     : j < a.wide_first  ? a.wide_first
                     : j < a.wide_end    ? a.wide_end
                                         : a.count;
  const size_t t0 = live_taps(a, end - 1).first, t1 = live_taps(a, j).end;
  if (t0 >= t1) return {j, end, 0, 0, false};
  const ptrdiff_t low = a.first + ptrdiff_t(j * a.in_step) + ptrdiff_t(t0) * a.step,
                  high = a.first + ptrdiff_t((end - 1) * a.in_step) + ptrdiff_t(t1 - 1) * a.step;
  return {j, end, t0, t1 - t0, low < 0 || high >= ptrdiff_t(a.in)};
}
inline bool is_widest(const Axis& a, const Part& p) { return p.first == a.wide_first && p.end == a.wide_end; }

// Input positions under `count` outputs with `taps` taps.
inline size_t span(const Axis& a, size_t count, size_t taps) {
  return taps && count ? (count - 1) * a.in_step + (taps - 1) * size_t(a.step) + 1 : 0;
}

// Rows [j, j + rows) of a part of y times a part of x.
struct Region {
  Part y, x;
  size_t j, rows;
  size_t at;  // of its strip in the worker's
  size_t columns() const { return x.end - x.first; }
  size_t size() const { return rows * columns() * y.taps * x.taps; }
  bool strip() const { return (y.padded || x.padded) && y.taps && x.taps; }
};
inline size_t strip_elements(const DirectShape& s, const Phase& p, const Region& r) {
  if (!r.strip()) return 0;
  const size_t row = mul_sat(span(p.x, r.columns(), r.x.taps), s.in_channels);
  return mul_sat(span(p.y, r.rows, r.y.taps), row);
}

// The regions of output rows [j0, j1).
template <class Visit> void each_region(const DirectPlan& plan, const Phase& p, size_t j0, size_t j1, Visit visit) {
  Region r;
  for (size_t j = 0; j < j1; j = r.y.end) {
    r.y = part_from(p.y, plan.rows, j);
    r.j = max(j, j0);
    if (r.y.end <= r.j) continue;
    r.rows = min(r.y.end, j1) - r.j;
    for (size_t i = 0; i < p.x.count; i = r.x.end) {
      r.x = part_from(p.x, is_widest(p.y, r.y) ? plan.columns_inside : plan.columns_at_borders, i);
      if (kArch == Arch::x86_64) r.x.padded |= plan.copies;
      visit(r);
    }
  }
}

// Lines of outputs [j, j + rows) by [i, i + columns) of a phase: their rows of A.
struct Lines {
  size_t j, rows, i, columns;
  const void* a;      // of the first output
  size_t in_y, in_x;  // elements from a line to the next, from an output to the next
};
// Panels [p0, p1) of a group over them. The block has all but where rows are.
void multiply_lines(GemmBlock& g, const DirectShape& s, const DirectOperands& x, const Phase& p, size_t image,
                    size_t group, const Lines& l, size_t p0, size_t p1);

// What a block of integers needs, and the offsets from which its sums start.
inline void quantize_block(const DirectShape& s, const DirectQuantized& q, size_t group, const int32_t* offsets,
                           GemmBlock& g) {
  const size_t step = direct_bias_step(s.out_channels, s.groups);
  g.scale = q.scales + group * step;
  g.offset = offsets;
  g.b_zero = packed_zero(Element::s8, 0, g.format.element);
  g.zero = q.out_zero;
  g.fits = q.fits;
  g.small = q.small;
  g.above_least = q.above_least;
  g.shift = q.shifts ? q.shifts + group * step : nullptr;
  g.single = q.single;
  g.residual_by = q.residual;
}
// The same with the offsets of columns [c0, c1) of a group, whole fours, of the taps of `y` and `x`, which are the
// rectangle between four of DirectQuantized::tap_sums. first_tap, taps_x: of the phase.
// As for every region and panel: by fours, which not every compiler would make of it; and where the zero point is the
// least value of the type, as after relu, A as multiplied has none, so that the offsets are the bias.
typedef uint32_t FourSums __attribute__((vector_size(16), aligned(4), may_alias));
inline void quantize_block(const DirectShape& s, const DirectQuantized& q, size_t first_tap, size_t taps_x,
                           const Part& y, const Part& x, size_t group, size_t c0, size_t c1, int32_t* offsets,
                           GemmBlock& g) {
  const size_t step = direct_bias_step(s.out_channels, s.groups), vector = direct_bias_floats(s.out_channels, s.groups);
  const int32_t *bias = q.bias + group * step, *from = bias;
  if (q.in_zero + table_of(g.tile).a_shift != 0 && y.taps && x.taps) {
    static constexpr int32_t no_sums[4] = {};
    struct Sums {
      const int32_t* at;
      size_t step;
      FourSums next() { return *reinterpret_cast<const FourSums*>((at += step) - step); }
    };
    const auto before = [&](size_t ty, size_t tx) {
      return ty && tx ? Sums{q.tap_sums + (first_tap + (ty - 1) * taps_x + tx - 1) * vector + group * step + c0, 4}
                      : Sums{no_sums, 0};
    };
    Sums all = before(y.tap + y.taps, x.tap + x.taps), above = before(y.tap, x.tap + x.taps),
         left = before(y.tap + y.taps, x.tap), both = before(y.tap, x.tap);
    for (size_t j = c0; j < c1; j += 4)
      *reinterpret_cast<FourSums*>(offsets + j) =
          *reinterpret_cast<const FourSums*>(bias + j) - (all.next() - above.next() - left.next() + both.next());
    from = offsets;
  }
  quantize_block(s, q, group, from, g);
}
inline size_t offset_bytes(const DirectShape& s) {
  return direct_bias_step(s.out_channels, s.groups) * sizeof(int32_t);
}

// Taps of a row are one segment of A.
inline bool merges(const DirectShape& s, const Phase& p, const Region& r) {
  return s.groups == 1 && p.x.step == 1 && r.x.taps > 1 && (r.strip() || s.in_pixel == s.in_channels);
}

}  // namespace skua
