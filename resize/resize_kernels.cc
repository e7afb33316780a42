// Resizing, one source for every instruction set. Bilinear: a source row is blended horizontally into a buffer once,
// two such buffers give an output row:
//
//   source row  y0 ──┐ blend_pixels (channels next to each other, vectors)   a0 a1 a2 ...  ─┐
//   source row  y1 ──┘ or blend_elements (one to three channels, planes)     b0 b1 b2 ...  ─┴─ blend_rows ─► output row
//
// Every blend is a + w * (b - a): equal neighbours stay what they are. Weights of bytes are multiples of 1/256: nothing
// is rounded before the result is.
#include "resize/resize_kernel.h"
#include "dispatch/kernel.h"
#include "simd/byte_turn.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;

SKUA_INL F32 blend(F32 a, F32 b, F32 w) { return fma(w, b - a, a); }

// n bytes in pieces of `most` and, at the end, of the largest power of two that they have, the last one again in part.
template <size_t most> SKUA_INL void copy_bytes(const char* x, char* y, size_t n) {
  if constexpr (most > 1)
    if (n < most) return copy_bytes<most / 2>(x, y, n);
  typedef char Piece __attribute__((vector_size(most), aligned(1), may_alias));
  const auto piece = [&](size_t i) __attribute__((always_inline)) {
    *reinterpret_cast<Piece*>(y + i) = *reinterpret_cast<const Piece*>(x + i);
  };
  if (!n) return;
  size_t i = 0;
  if constexpr (most >= 4 * L) {
    for (; i + 4 * most <= n; i += 4 * most) SKUA_UNROLL for (size_t k = 0; k < 4; ++k) piece(i + k * most);
    for (; i + most <= n; i += most) piece(i);
    if (i == n) return;
  } else {
    piece(0);
  }
  piece(n - most);
}

[[gnu::noinline]] void copy_pixels_of(size_t element, size_t pixels, size_t channels, const void* x, const size_t* at,
                                      void* to, size_t y_pixel) {
  auto* y = static_cast<char*>(to);
  for (size_t p = 0; p < pixels; ++p, y += y_pixel * element)
    copy_bytes<4 * L>(static_cast<const char*>(x) + at[p] * element, y, channels * element);
}
template <class T>
void copy_pixels(size_t pixels, size_t channels, const void* x, const size_t* at, void* y, size_t y_pixel) {
  copy_pixels_of(sizeof(T), pixels, channels, x, at, y, y_pixel);
}

template <class T> void copy_elements(size_t n, const void* from, const size_t* at, void* to) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const T a = x[at[i]], b = x[at[i + 1]], c = x[at[i + 2]], d = x[at[i + 3]];
    y[i] = a; y[i + 1] = b; y[i + 2] = c; y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] = x[at[i]];
}

template <class T>
void blend_pixels(size_t pixels, size_t channels, const void* from, const size_t* at0, const size_t* at1,
                  const float* w, float* y) {
  const T* x = static_cast<const T*>(from);
  for (size_t p = 0; p < pixels; ++p, y += channels) {
    const T *a = x + at0[p], *b = x + at1[p];
    const F32 weight = F32::set1(w[p]);
    size_t c = 0;
    if (w[p] == 0) {
      for (; c + L <= channels; c += L) F32::load(a + c).store(y + c);
      if (c < channels) F32::load_n(a + c, channels - c).store_n(y + c, channels - c);
      continue;
    }
    for (; c + 2 * L <= channels; c += 2 * L) {
      const F32 first = blend(F32::load(a + c), F32::load(b + c), weight),
                second = blend(F32::load(a + c + L), F32::load(b + c + L), weight);
      first.store(y + c);
      second.store(y + c + L);
    }
    for (; c + L <= channels; c += L) blend(F32::load(a + c), F32::load(b + c), weight).store(y + c);
    if (const size_t rest = channels - c; rest)
      blend(F32::load_n(a + c, rest), F32::load_n(b + c, rest), weight).store_n(y + c, rest);
  }
}

template <class T>
void blend_elements(size_t n, const void* from, const size_t* at0, const size_t* at1, const float* w, float* y) {
  const T* x = static_cast<const T*>(from);
  for (size_t i = 0; i < n; ++i) {
    const float a = widen(x[at0[i]]), b = widen(x[at1[i]]), blended = a + w[i] * (b - a);
    y[i] = w[i] == 0 ? a : blended;
  }
}

template <class T>
void blend_rows(size_t rows, size_t n, const float* a, const float* b, float w, void* to, size_t y_row) {
  T* y = static_cast<T*>(to);
  const F32 weight = F32::set1(w);
  if (w == 0) b = a;
  const F32 always = F32::set1(w == 0 ? 1.0f : 0.0f);
  const M32 first = gt(always, F32::zero());
  for (; rows; --rows, a += n, b += n, y += y_row) {
    size_t i = 0;
    if constexpr (sizeof(T) == 1 && kTurnInOrder) {
      constexpr float low = T(-1) < T(0) ? -128.0f : 0.0f;
      const Ends<T> end(Requantize{low, low + 255, 0}, 256);
      for (; i + 4 * L <= n; i += 4 * L) {
        F32 v[4];
        SKUA_UNROLL for (size_t u = 0; u < 4; ++u) {
          v[u] = F32::load(a + i + u * L);
          v[u] = select(first, v[u], blend(v[u], F32::load(b + i + u * L), weight));
        }
        end(v, y + i);
      }
    }
    for (; i + L <= n; i += L) {
      const F32 v = F32::load(a + i);
      select(first, v, blend(v, F32::load(b + i), weight)).store(y + i);
    }
    if (const size_t rest = n - i; rest) {
      const F32 v = F32::load_n(a + i, rest);
      select(first, v, blend(v, F32::load_n(b + i, rest), weight)).store_n(y + i, rest);
    }
  }
}

#define SKUA_RESIZE(name, kind, variant, element, Fn, function, why)                                      \
  {name "_" SKUA_STRING(SKUA_ISA), "resize", why, KernelKind::kind, Isa::SKUA_ISA, variant, 0, 0, F32::L, \
   reinterpret_cast<AnyCode>(static_cast<Fn>(function)), element},
#define SKUA_COPIES(T, type)                                                                                         \
  SKUA_RESIZE("resize_copy_" #type "_pixels", resize_copy_pixels, sizeof(T), Element::f32, ResizeCopyPixelsFn,       \
              copy_pixels<T>, "nearest pixels, vectors of channels")                                                 \
  SKUA_RESIZE("resize_copy_" #type "_elements", resize_copy_elements, sizeof(T), Element::f32, ResizeCopyElementsFn, \
              copy_elements<T>, "nearest pixels of few channels or planes")
#define SKUA_BLENDS(T, type)                                                                                        \
  SKUA_RESIZE("resize_blend_" #type "_pixels", resize_blend_pixels, 0, element_of<T>, ResizeBlendPixelsFn,          \
              blend_pixels<T>, "two pixels of a row, vectors of channels")                                          \
  SKUA_RESIZE("resize_blend_" #type "_elements", resize_blend_elements, 0, element_of<T>, ResizeBlendElementsFn,    \
              blend_elements<T>, "two pixels of a row, few channels or planes")                                     \
  SKUA_RESIZE("resize_blend_" #type "_rows", resize_blend_rows, 0, element_of<T>, ResizeBlendRowsFn, blend_rows<T>, \
              "two blended rows")
const Kernel kernels[] = {
    SKUA_COPIES(uint32_t, x32) SKUA_COPIES(uint16_t, x16) SKUA_COPIES(uint8_t, x8)
    SKUA_FOR_TYPES(SKUA_BLENDS) SKUA_FOR_INT8(SKUA_BLENDS)
};
#undef SKUA_BLENDS
#undef SKUA_COPIES
#undef SKUA_RESIZE

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(resize, kernels)
}  // namespace skua
