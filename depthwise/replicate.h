// Channels repeated for a multiplier, as they are copied.
#pragma once
#include "core/op.h"

namespace skua {
namespace depthwise {

// n channels of a row of pixels, each m times, from its `first` time on. M: m, or 0 of any.
template <class U, size_t M>
inline void replicate(const U* from, size_t from_pixel, U* to, size_t to_pixel, size_t pixels, size_t first, size_t n,
                      size_t times) {
  const size_t m = M ? M : times;
  for (; pixels; --pixels, from += from_pixel, to += to_pixel) {
    const U* source = from;
    size_t i = 0;
    for (; first && i < min(m - first, n); ++i) to[i] = *source;
    source += first != 0;
    for (; i + m <= n; i += m, ++source)
      for (size_t j = 0; j < m; ++j) to[i + j] = *source;
    for (; i < n; ++i) to[i] = *source;
  }
}
template <class U>
inline void replicate(const void* from, size_t from_pixel, void* to, size_t to_pixel, size_t pixels, size_t first,
                      size_t n, size_t m) {
  (m == 2   ? replicate<U, 2>
   : m == 3 ? replicate<U, 3>
   : m == 4
       ? replicate<U, 4>
       : replicate<U, 0>)(static_cast<const U*>(from), from_pixel, static_cast<U*>(to), to_pixel, pixels, first, n, m);
}

}  // namespace depthwise
}  // namespace skua
