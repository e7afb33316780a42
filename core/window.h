// One spatial dimension of an operator with a window (convolution, pooling): where the padding is and how many outputs
// there are. And where a convolution's weights are.
#pragma once
#include <skua/conv.h>
#include "core/op.h"

namespace skua {

// Output o covers the input positions o*stride - pad_before + k*dilation, k < kernel; those outside [0, in) are
// padding.
struct Window1d {
  size_t in, out, kernel, stride, dilation, pad_before, pad_after;
  size_t span() const { return dilation * (kernel - 1) + 1; }

  // Taps of output o that lie inside the input: [first, end); first == end if there is none.
  size_t first_tap(size_t o) const {
    const size_t at = o * stride;
    return at >= pad_before ? 0 : min(ceil_div(pad_before - at, dilation), kernel);
  }
  size_t end_tap(size_t o) const {
    const size_t at = o * stride, limit = in + pad_before;  // taps at + k*dilation < limit
    return at >= limit ? 0 : min(ceil_div(limit - at, dilation), kernel);
  }
};

// Elements between a convolution's weights as they are given: w[o*steps.o + i*steps.i + ky*steps.y + kx*steps.x], o
// over all output channels, i inside the group.
struct WeightSteps {
  size_t o, i, y, x;
};

// `dimension`: "height" or "width", for the error text. Explicit padding is taken as before and after.
//   explicit    out = floor((in + padding - span) / stride) + 1
//   ceil_mode   ceil instead of floor, without a last window that would begin at or past the end of the input
//   same        out = ceil(in / stride); padding = max((out - 1)*stride + span - in, 0); the odd one after (upper) or
//               before (lower)
// An input of extent 0 has no outputs. Sums and products that a run forms from the result fit ptrdiff_t.
skua_status make_window(const char* op, const char* dimension, size_t in, uint32_t kernel, uint32_t stride,
                        uint32_t dilation, skua_padding_mode mode, uint32_t before, uint32_t after, bool ceil_mode,
                        Window1d& to);

// Both dimensions of an image; `to` = height, width.
inline skua_status make_windows(const char* op, const size_t (&in)[2], const uint32_t (&kernel)[2],
                                const uint32_t (&stride)[2], const uint32_t (&dilation)[2], const skua_padding& p,
                                bool ceil_mode, Window1d (&to)[2]) {
  SKUA_TRY(
      make_window(op, "height", in[0], kernel[0], stride[0], dilation[0], p.mode, p.top, p.bottom, ceil_mode, to[0]));
  return make_window(op, "width", in[1], kernel[1], stride[1], dilation[1], p.mode, p.left, p.right, ceil_mode, to[1]);
}

// What a descriptor says, before any input is known: every field 1 or more, a known padding mode.
skua_status check_window(const char* op, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride_h, uint32_t stride_w,
                         uint32_t dilation_h, uint32_t dilation_w, const skua_padding& padding);

}  // namespace skua
