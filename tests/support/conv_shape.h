// A convolution's descriptor and the shapes of its maps, as tests of every type make them.
#pragma once
#include <skua/conv.h>

#include <algorithm>

#include "tests/support/support.h"

namespace skua_test {

// What with_holes() adds to each dimension; the strides of each tensor are its own.
struct Rooms {
  std::vector<size_t> in, out, residual;
};

// The transposed convolution of the same window, channels, types and epilogue.
inline skua_conv2d_transpose_desc transposed_desc(const skua_conv2d_desc& d, uint32_t output_padding_h,
                                                  uint32_t output_padding_w) {
  skua_conv2d_transpose_desc t = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
  t.kernel_h = d.kernel_h, t.kernel_w = d.kernel_w;
  t.stride_h = d.stride_h, t.stride_w = d.stride_w;
  t.dilation_h = d.dilation_h, t.dilation_w = d.dilation_w;
  t.groups = d.groups, t.in_channels = d.in_channels, t.out_channels = d.out_channels;
  t.layout = d.layout, t.weight_layout = d.weight_layout;
  t.input_type = d.input_type, t.weight_type = d.weight_type, t.output_type = d.output_type;
  t.input_q = d.input_q, t.weight_q = d.weight_q, t.output_q = d.output_q, t.residual_q = d.residual_q;
  t.requantization = d.requantization, t.padding = d.padding, t.epilogue = d.epilogue, t.numerics = d.numerics;
  t.output_padding_h = output_padding_h, t.output_padding_w = output_padding_w;
  return t;
}

struct ConvShape {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  bool transposed = false;
  uint32_t output_padding_h = 0, output_padding_w = 0;
  size_t batch = 1, in_h = 1, in_w = 1;
  long out_h = 0, out_w = 0, top = 0, left = 0;  // filled by place()

  bool place() {  // false: no output
    extent(in_h, d.kernel_h, d.stride_h, d.dilation_h, d.padding.top, d.padding.bottom, output_padding_h, out_h, top);
    extent(in_w, d.kernel_w, d.stride_w, d.dilation_w, d.padding.left, d.padding.right, output_padding_w, out_w, left);
    return out_h > 0 && out_w > 0;
  }
  size_t weight_count() const { return size_t(d.kernel_h) * d.kernel_w * (d.in_channels / d.groups) * d.out_channels; }
  size_t weight_at(size_t o, size_t ky, size_t kx, size_t i) const {
    const size_t in = d.in_channels / d.groups;
    switch (d.weight_layout) {
      case SKUA_WEIGHTS_OIHW: return ((o * in + i) * d.kernel_h + ky) * d.kernel_w + kx;
      case SKUA_WEIGHTS_HWIO: return ((ky * d.kernel_w + kx) * in + i) * d.out_channels + o;
      default: return ((o * d.kernel_h + ky) * d.kernel_w + kx) * in + i;
    }
  }
  // visit(tap, y, x) for each tap of an output that meets a pixel; taps are counted row by row.
  template <class Visit> void taps(long oy, long ox, Visit visit) const {
    // < 0: outside, or between the pixels
    const auto input = [this](long o, long k, uint32_t stride, uint32_t dilation, long before, size_t size) -> long {
      const long at = transposed ? o + before - k * long(dilation) : o * long(stride) + k * long(dilation) - before;
      if (at < 0 || (transposed && at % long(stride))) return -1;
      const long pixel = transposed ? at / long(stride) : at;
      return pixel < long(size) ? pixel : -1;
    };
    for (long ky = 0; ky < long(d.kernel_h); ++ky) {
      const long y = input(oy, ky, d.stride_h, d.dilation_h, top, in_h);
      if (y < 0) continue;
      for (long kx = 0; kx < long(d.kernel_w); ++kx) {
        const long x = input(ox, kx, d.stride_w, d.dilation_w, left, in_w);
        if (x >= 0) visit(size_t(ky) * d.kernel_w + size_t(kx), size_t(y), size_t(x));
      }
    }
  }
  // Weights as [tap][input of a group][output], which the formulas' inner loops go along.
  template <class To, class From> std::vector<To> by_tap(const From* weights) const {
    const size_t in = d.in_channels / d.groups;
    std::vector<To> w;
    w.reserve(weight_count());
    for (size_t ky = 0; ky < d.kernel_h; ++ky)
      for (size_t kx = 0; kx < d.kernel_w; ++kx)
        for (size_t i = 0; i < in; ++i)
          for (size_t o = 0; o < d.out_channels; ++o) w.push_back(To(weights[weight_at(o, ky, kx, i)]));
    return w;
  }
  // The i-th of many: groups of one or two times `depth` channels, as fill whole registers; lines of up to 40 pixels;
  // every other one 3x3.
  void fill_depth(Rng& rng, int i, uint32_t depth) {
    d.groups = i % 5 ? 1 : 2;
    d.in_channels = d.groups * (i % 3 ? depth : 2 * depth);
    d.out_channels = d.groups * uint32_t(rng.integer(1, 70));
    if (i % 2)
      d.kernel_h = d.kernel_w = 3, d.dilation_h = d.dilation_w = 1,
      d.stride_h = d.stride_w = uint32_t(rng.integer(1, 2));
    output_padding_h = output_padding_w = 0;
    d.hint_in_h = d.hint_in_w = 0;
    in_h = size_t(rng.integer(1, 6));
    in_w = size_t(rng.integer(1, i % 4 ? 40 : 12));
  }

 private:
  void extent(size_t in, long kernel, long stride, long dilation, long before, long after, long extra, long& out,
              long& pad) const {
    const long span = dilation * (kernel - 1) + 1, n = long(in);
    const auto mode = d.padding.mode;
    if (mode != SKUA_PADDING_EXPLICIT) {
      out = transposed ? n * stride : (n + stride - 1) / stride;
      const long total = transposed ? std::max(span - stride, 0l) : std::max((out - 1) * stride + span - n, 0l);
      pad = mode == SKUA_PADDING_SAME_UPPER ? total / 2 : total - total / 2;
      return;
    }
    pad = before;
    if (transposed) out = stride * (n - 1) + span + extra - before - after;
    else out = n + before + after < span ? 0 : (n + before + after - span) / stride + 1;
  }
};

}  // namespace skua_test
