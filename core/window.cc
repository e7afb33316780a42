#include "core/window.h"

namespace skua {

skua_status make_window(const char* op, const char* dimension, size_t in, uint32_t kernel, uint32_t stride,
                        uint32_t dilation, skua_padding_mode mode, uint32_t before, uint32_t after, bool ceil_mode,
                        Window1d& to) {
  to = {in, 0, kernel, stride, dilation, before, after};
  size_t span = 0, padding = 0, total = 0, reach = 0;
  if (mode != SKUA_PADDING_EXPLICIT) {
    const size_t out = ceil_div(in, stride);
    bool ok = mul(dilation, size_t(kernel) - 1, span) && add(span, 1, span) && mul(out ? out - 1 : 0, stride, reach) &&
              add(reach, span, reach);
    padding = ok && reach > in ? reach - in : 0;
    const size_t half = padding / 2;
    to.pad_before = mode == SKUA_PADDING_SAME_UPPER ? half : padding - half;
    to.pad_after = padding - to.pad_before;
    ok = ok && add(in, padding, total) && add(total, stride, reach) && reach <= SIZE_MAX / 2;
    if (!ok)
      return SKUA_INVALID("%s: input %s %zu with kernel %u, stride %u and dilation %u is larger than the address space",
                          op, dimension, in, kernel, stride, dilation);
    to.out = out;
    return SKUA_STATUS_OK;
  }
  const bool ok = mul(dilation, size_t(kernel) - 1, span) && add(span, 1, span) && add(before, after, padding) &&
                  add(in, padding, total) && add(total, span, reach) && add(reach, stride, reach) &&
                  reach <= SIZE_MAX / 2;
  if (!ok)
    return SKUA_INVALID(
        "%s: input %s %zu with kernel %u, stride %u, dilation %u and padding %u + %u is larger than the address space",
        op, dimension, in, kernel, stride, dilation, before, after);
  if (!in) return SKUA_STATUS_OK;
  if (total < span) {
    if (!ceil_mode || span - total >= stride)
      return SKUA_INVALID("%s: input %s %zu with padding %u + %u is smaller than the kernel, which reaches over %zu",
                          op, dimension, in, before, after, span);
    to.out = 1;
    return SKUA_STATUS_OK;
  }
  to.out = (total - span) / stride + 1;
  if (ceil_mode && (total - span) % stride && to.out * stride < in + before) ++to.out;
  return SKUA_STATUS_OK;
}

skua_status check_window(const char* op, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride_h, uint32_t stride_w,
                         uint32_t dilation_h, uint32_t dilation_w, const skua_padding& padding) {
  const struct {
    const char* name;
    uint32_t value;
  } fields[] = {{"kernel_h", kernel_h}, {"kernel_w", kernel_w},     {"stride_h", stride_h},
                {"stride_w", stride_w}, {"dilation_h", dilation_h}, {"dilation_w", dilation_w}};
  for (const auto& f : fields)
    if (!f.value) return SKUA_INVALID("%s: %s is 0, must be 1 or more", op, f.name);
  if (unsigned(padding.mode) > SKUA_PADDING_SAME_LOWER)
    return SKUA_INVALID("%s: padding.mode is %d, unknown", op, int(padding.mode));
  return SKUA_STATUS_OK;
}

}  // namespace skua
