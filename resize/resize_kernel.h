// Resizing of a row of pixels, and the blend of two rows. Plain data, included by the kernel units.
// Blends compute in f32: x of blend_pixels and blend_elements and y of blend_rows have the kernel's type; the variant
// of copies is the bytes of an element, 4, 2 or 1. at, at0, at1: element offsets into x. A weight of 0 takes the first
// neighbour as it is, bit by bit.
#pragma once
#include <stddef.h>

namespace skua {

// KernelKind::resize_copy_pixels: y[p*y_pixel + c] = x[at[p] + c], c < channels.
using ResizeCopyPixelsFn = void (*)(size_t pixels, size_t channels, const void* x, const size_t* at, void* y,
                                    size_t y_pixel);

// KernelKind::resize_copy_elements: y[i] = x[at[i]].
using ResizeCopyElementsFn = void (*)(size_t n, const void* x, const size_t* at, void* y);

// KernelKind::resize_blend_pixels: y[p*channels + c] = a + w[p] * (b - a) with a = x[at0[p] + c], b = x[at1[p] + c].
using ResizeBlendPixelsFn = void (*)(size_t pixels, size_t channels, const void* x, const size_t* at0,
                                     const size_t* at1, const float* w, float* y);

// KernelKind::resize_blend_elements: y[i] = a + w[i] * (b - a) with a = x[at0[i]], b = x[at1[i]].
using ResizeBlendElementsFn = void (*)(size_t n, const void* x, const size_t* at0, const size_t* at1, const float* w,
                                       float* y);

// KernelKind::resize_blend_rows: y[r*y_row + i] = a[r*n + i] + w * (b[r*n + i] - a[r*n + i]), i < n.
using ResizeBlendRowsFn = void (*)(size_t rows, size_t n, const float* a, const float* b, float w, void* y,
                                   size_t y_row);

}  // namespace skua
