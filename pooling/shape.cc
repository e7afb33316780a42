#include "pooling/pool.h"

#include "core/quantize.h"

namespace skua {

PoolConfig pool_config(const skua_pool2d_desc& d) {
  PoolConfig c;
  memset(static_cast<void*>(&c), 0, sizeof c);
  c.type = d.type;
  c.kind = d.kind;
  c.layout = d.layout;
  c.global = d.global;
  c.ceil_mode = d.ceil_mode;
  c.count_padding = d.count_padding;
  c.kernel[0] = d.kernel_h; c.kernel[1] = d.kernel_w;
  c.stride[0] = d.stride_h; c.stride[1] = d.stride_w;
  c.dilation[0] = d.dilation_h; c.dilation[1] = d.dilation_w;
  c.padding = d.padding;
  c.activation = d.activation;
  return c;
}

skua_status pool_quantization(const skua_pool2d_desc& d, PoolConfig& c) {
  c.ratio = double(d.input_q.scale) / double(d.output_q.scale);
  c.zero = d.input_q.zero_point;
  c.zero_point = d.output_q.zero_point;
  SKUA_TRY(quantized_bounds("pool2d", d.activation, Element(d.type), d.output_q, c.low, c.high));
  if (d.kind != SKUA_POOL_AVERAGE) {
    c.low += float(c.zero_point);
    c.high += float(c.zero_point);
  }
  return SKUA_STATUS_OK;
}

skua_status pool_map(const skua_op* base, const PoolConfig& c, const char* what, size_t index, const skua_tensor& t,
                     PoolMap& m) {
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW, flat = t.rank == 3;
  if (t.shape[t.rank - 1] > 1 && t.stride[t.rank - 1] != 1)
    return SKUA_INVALID("%s: %s %zu has innermost stride %zu, must be 1", base->cls->name, what, index,
                        t.stride[t.rank - 1]);
  m.image = t.stride[0];
  m.row = flat ? 0 : t.stride[nchw ? 2 : 1];
  m.pixel = nchw ? 1 : t.stride[t.rank - 2];
  m.plane = nchw ? t.stride[1] : 0;
  return SKUA_STATUS_OK;
}

// Every window must have a pixel of the image in it. Padding shorter than the window's reach ensures that, unless the
// image fits between two taps.
static skua_status check_touches(const skua_op* op, const char* dimension, const char* before, const char* after,
                                 const Window1d& w) {
  if (w.pad_before >= w.span() || w.pad_after >= w.span())
    return SKUA_INVALID(
        "%s: padding.%s is %zu and padding.%s %zu, must be less than the %s of the window, which reaches over %zu",
        op->cls->name, before, w.pad_before, after, w.pad_after, dimension, w.span());
  // Each window is looked at: a plan stays quick by refusing more of them than any such image is worth.
  if (w.in < w.dilation && w.out > 4096)
    return SKUA_UNSUPPORTED_("%s: %zu outputs over the %s, with a dilation of %zu larger than the input's %zu",
                             op->cls->name, w.out, dimension, w.dilation, w.in);
  if (w.in < w.dilation)
    for (size_t o = 0; o < w.out; ++o)
      if (w.first_tap(o) >= w.end_tap(o))
        return SKUA_INVALID("%s: the input's %s of %zu lies between two taps of a window with dilation %zu",
                            op->cls->name, dimension, w.in, w.dilation);
  return SKUA_STATUS_OK;
}

skua_status pool_shape(const skua_op* base, const PoolConfig& c, const PlanShapes& s, PoolShape& p,
                       skua_tensor* outputs) {
  const skua_tensor& t = s.inputs[0];
  SKUA_TRY(need_type(base, s, 0, c.type));
  const bool nchw = c.layout == SKUA_LAYOUT_NCHW, flat = t.rank == 3;
  if (t.rank != 4 && !(flat && (c.global || c.kernel[0] == 1)))
    return SKUA_INVALID("%s: input 0 has rank %u, must be 4 (or 3 when kernel_h is 1)", base->cls->name, t.rank);
  SKUA_TRY(pool_map(base, c, "input", 0, t, p.in));
  const uint32_t dw = nchw ? t.rank - 1 : t.rank - 2, dc = nchw ? 1 : t.rank - 1;
  const size_t h = flat ? 1 : t.shape[dw - 1], w = t.shape[dw];
  p.batch = t.shape[0];
  p.channels = t.shape[dc];
  if (c.global) {
    if ((!h || !w) && p.batch && p.channels)
      return SKUA_INVALID("%s: input 0 has no pixels, a global window needs some", base->cls->name);
    p.y = {h, 1, h, 1, 1, 0, 0};
    p.x = {w, 1, w, 1, 1, 0, 0};
  } else {
    Window1d both[2];
    SKUA_TRY(make_windows(base->cls->name, {h, w}, c.kernel, c.stride, c.dilation, c.padding, c.ceil_mode, both));
    p.y = both[0];
    p.x = both[1];
    SKUA_TRY(check_touches(base, "height", "top", "bottom", p.y));
    SKUA_TRY(check_touches(base, "width", "left", "right", p.x));
  }
  size_t plane = 0;
  if (c.kind == SKUA_POOL_MAX_INDICES && (!mul(h, w, plane) || plane > INT32_MAX))
    return SKUA_INVALID("%s: input 0 has planes of %zu x %zu, positions do not fit s32", base->cls->name, h, w);
  skua_tensor& y = outputs[0];
  y = tensor(c.type, t.rank);
  y.shape[0] = p.batch;
  y.shape[dc] = p.channels;
  y.shape[dw] = p.x.out;
  if (!flat) y.shape[dw - 1] = p.y.out;
  if (c.kind == SKUA_POOL_MAX_INDICES) {
    outputs[1] = y;
    outputs[1].type = SKUA_DTYPE_S32;
  }
  return SKUA_STATUS_OK;
}

}  // namespace skua
