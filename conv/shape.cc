// Shapes of the convolution operators: what a tensor is to them, the output they make.
#include "conv/conv.h"

#include "core/window.h"

namespace skua {

static skua_status transposed_extent(const char* op, const char* dimension, const ConvConfig& c, size_t in,
                                     uint32_t kernel, uint32_t stride, uint32_t dilation, size_t before, size_t after,
                                     size_t extra, size_t& out, size_t& pad) {
  size_t span = 0, reach = 0;
  bool ok = mul(dilation, size_t(kernel) - 1, span) && add(span, 1, span) && mul(in, stride, reach) &&
            add(reach, span, reach) && add(reach, before + extra, reach) && reach <= SIZE_MAX / 4;
  if (!ok)
    return SKUA_INVALID("%s: input %s %zu with kernel %u, stride %u and dilation %u is larger than the address space",
                        op, dimension, in, kernel, stride, dilation);
  out = 0;
  pad = before;
  if (!in) return SKUA_STATUS_OK;
  if (c.padding_mode != SKUA_PADDING_EXPLICIT) {
    const size_t total = span > stride ? span - stride : 0;
    pad = c.padding_mode == SKUA_PADDING_SAME_UPPER ? total / 2 : total - total / 2;
    out = in * stride;
    return SKUA_STATUS_OK;
  }
  const size_t whole = stride * (in - 1) + span + extra;
  if (whole <= before + after)
    return SKUA_INVALID("%s: input %s %zu gives an output of %zu, padding of %zu + %zu leaves nothing", op, dimension,
                        in, whole, before, after);
  out = whole - before - after;
  return SKUA_STATUS_OK;
}

skua_status conv_map(const skua_op* op, const ConvConfig& c, const char* what, size_t index, const skua_tensor& t,
                     size_t channels, ConvMap& m) {
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW;
  if (t.rank != 4 && !(t.rank == 3 && c.kernel_h == 1))
    return SKUA_INVALID("%s: %s %zu has rank %u, must be 4 (or 3 when kernel_h is 1)", op->cls->name, what, index,
                        t.rank);
  const bool flat = t.rank == 3;
  const uint32_t dc = nchw ? 1 : t.rank - 1, dw = nchw ? t.rank - 1 : t.rank - 2, dh = nchw ? 2 : 1;
  if (t.shape[dc] != channels)
    return SKUA_INVALID("%s: %s %zu has %zu channels, must be %zu", op->cls->name, what, index, t.shape[dc], channels);
  if (t.shape[t.rank - 1] > 1 && t.stride[t.rank - 1] != 1)
    return SKUA_INVALID("%s: %s %zu has innermost stride %zu, must be 1", op->cls->name, what, index,
                        t.stride[t.rank - 1]);
  m.batch = t.shape[0];
  m.h = flat ? 1 : t.shape[dh];
  m.w = t.shape[dw];
  m.image = t.stride[0];
  m.row = flat ? 0 : t.stride[dh];
  m.pixel = nchw ? 1 : t.stride[dw];
  m.plane = nchw ? t.stride[1] : 0;
  return SKUA_STATUS_OK;
}

skua_status conv_shape(const skua_op* op, const ConvConfig& c, size_t batch, size_t in_h, size_t in_w, DirectShape& s) {
  s = {};
  s.batch = batch; s.in_h = in_h; s.in_w = in_w;
  s.in_channels = c.in_channels; s.out_channels = c.out_channels; s.groups = c.groups;
  s.kernel_h = c.kernel_h;
  s.kernel_w = c.kernel_w;
  s.stride_h = c.stride_h;
  s.stride_w = c.stride_w;
  s.dilation_h = c.dilation_h;
  s.dilation_w = c.dilation_w;
  s.transposed = c.transposed;
  s.element = s.result = map_element(c);
  s.weights = Element(c.weights);
  s.numerics = skua_numerics(c.numerics);
  if (c.transposed) {
    SKUA_TRY(transposed_extent(op->cls->name, "height", c, in_h, c.kernel_h, c.stride_h, c.dilation_h, c.pad_top,
                               c.pad_bottom, c.output_padding_h, s.out_h, s.pad_top));
    SKUA_TRY(transposed_extent(op->cls->name, "width", c, in_w, c.kernel_w, c.stride_w, c.dilation_w, c.pad_left,
                               c.pad_right, c.output_padding_w, s.out_w, s.pad_left));
  } else {
    Window1d y, x;
    const auto mode = skua_padding_mode(c.padding_mode);
    SKUA_TRY(make_window(op->cls->name, "height", in_h, c.kernel_h, c.stride_h, c.dilation_h, mode, c.pad_top,
                         c.pad_bottom, false, y));
    SKUA_TRY(make_window(op->cls->name, "width", in_w, c.kernel_w, c.stride_w, c.dilation_w, mode, c.pad_left,
                         c.pad_right, false, x));
    s.out_h = y.out; s.out_w = x.out; s.pad_top = y.pad_before; s.pad_left = x.pad_before;
  }
  size_t n = 0;
  const bool ok = mul(batch, in_h ? in_h : 1, n) && mul(n, in_w ? in_w : 1, n) && mul(n, c.in_channels, n) &&
                  n <= SIZE_MAX / 8 && mul(batch, s.out_h, n) && mul(n, s.out_w, n) && mul(n, c.out_channels, n) &&
                  n <= SIZE_MAX / 8;
  if (!ok) return SKUA_INVALID("%s: the feature maps are larger than the address space", op->cls->name);
  s.in_pixel = c.in_channels; s.in_row = in_w * s.in_pixel; s.in_batch = in_h * s.in_row;
  s.out_pixel = c.out_channels; s.out_row = s.out_w * s.out_pixel; s.out_batch = s.out_h * s.out_row;
  s.res_pixel = s.out_pixel; s.res_row = s.out_row; s.res_batch = s.out_batch;
  return SKUA_STATUS_OK;
}

skua_status conv_plan_shapes(const skua_op* op, const ConvConfig& c, const PlanShapes& shapes, skua_dtype result,
                             ConvMap& in, DirectShape& s, skua_tensor& y) {
  SKUA_TRY(need_type(op, shapes, 0, skua_dtype(c.element)));
  const skua_tensor& x = shapes.inputs[0];
  SKUA_TRY(conv_map(op, c, "input", 0, x, c.in_channels, in));
  SKUA_TRY(conv_shape(op, c, in.batch, in.h, in.w, s));
  y = tensor(result, x.rank);
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW;
  y.shape[0] = in.batch;
  y.shape[nchw ? 1 : x.rank - 1] = c.out_channels;
  y.shape[nchw ? x.rank - 1 : x.rank - 2] = s.out_w;
  if (x.rank == 4) y.shape[nchw ? 2 : 1] = s.out_h;
  else if (s.out_h > 1)
    return SKUA_INVALID("%s: padding makes %zu output rows of one input row; input 0 must have rank 4", op->cls->name,
                        s.out_h);
  return SKUA_STATUS_OK;
}

}  // namespace skua
