// Phases of a dilated layer: every dilation_w-th output of every dilation_h-th row sees only pixels that are as far
// apart, so for each remainder of the two these are a layer without dilation, over pixels and rows that lie further
// apart.
#pragma once
#include "core/op.h"
#include "depthwise/depthwise.h"

namespace skua {
namespace depthwise {

inline bool is_dilated(const DepthwiseShape& s) { return s.dilation_h > 1 || s.dilation_w > 1; }
constexpr size_t kMostPhases = 1024;  // a plan looks at each
inline size_t phases_y(const DepthwiseShape& s) { return min(s.dilation_h, s.out_h); }
inline size_t phases_x(const DepthwiseShape& s) { return min(s.dilation_w, s.out_w); }

// Along one axis: where its input begins, in positions of the image, and what is left of the padding.
struct PhaseAxis {
  size_t first, in, out, pad;
};
inline PhaseAxis phase_axis(size_t phase, size_t stride, size_t dilation, size_t pad, size_t in, size_t out) {
  const size_t from = phase * stride;  // of the first tap, `pad` to the right
  PhaseAxis a = {from >= pad ? from - pad : (dilation - (pad - from) % dilation) % dilation, 0,
                 ceil_div(out - phase, dilation), from >= pad ? 0 : ceil_div(pad - from, dilation)};
  a.in = in > a.first ? ceil_div(in - a.first, dilation) : 0;
  if (!a.in) a.first = 0;  // nothing is read
  return a;
}
// Elements from where the layer's maps begin.
struct PhaseBegin {
  size_t in, out, residual;
};
// The phase of every dilation_w-th output, of all rows: dilated down the image still.
inline DepthwiseShape phase_across(const DepthwiseShape& s, size_t px, PhaseBegin* begin) {
  const PhaseAxis x = phase_axis(px, s.stride_w, s.dilation_w, s.pad_left, s.in_w, s.out_w);
  if (begin) *begin = {x.first * s.in_pixel, px * s.out_pixel, px * s.res_pixel};
  DepthwiseShape p = s;
  p.dilation_w = 1;
  p.in_w = x.in; p.out_w = x.out; p.pad_left = x.pad;
  p.in_pixel *= s.dilation_w; p.out_pixel *= s.dilation_w; p.res_pixel *= s.dilation_w;
  return p;
}
inline DepthwiseShape phase_of(const DepthwiseShape& s, size_t py, size_t px, PhaseBegin* begin) {
  DepthwiseShape p = phase_across(s, px, begin);
  const PhaseAxis y = phase_axis(py, s.stride_h, s.dilation_h, s.pad_top, s.in_h, s.out_h);
  if (begin) {
    begin->in += y.first * s.in_row;
    begin->out += py * s.out_row;
    begin->residual += py * s.res_row;
  }
  p.dilation_h = 1;
  p.in_h = y.in; p.out_h = y.out; p.pad_top = y.pad;
  p.in_row *= s.dilation_h; p.out_row *= s.dilation_h; p.res_row *= s.dilation_h;
  return p;
}

}  // namespace depthwise
}  // namespace skua
