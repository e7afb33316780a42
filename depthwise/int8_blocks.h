// What the packers and walks of depthwise and grouped convolutions of bytes share: blocks of channels, and how the
// weights of one end.
#pragma once
#include <math.h>

#include "core/families.h"
#include "depthwise/int8.h"
#include "depthwise/int8_kernel.h"

namespace skua {

inline const DepthwiseInt8Table& depthwise_int8_table(const Kernel* kernel) {
  return code_of<DepthwiseInt8TableFn>(kernel)();
}

// Bytes in lines of 64; what does not fit stays more than there is.
inline size_t whole_lines(size_t bytes) { return add_sat(bytes, 63) / 64 * 64; }

// Channels that share vectors: `width` of them fill one, or the part of one that an output has of several; only a layer
// of fewer does not.
struct DepthwiseInt8Block {
  size_t first, channels, width;
  size_t end() const { return first + channels; }
};
constexpr size_t kLeastInt8Block = 16;  // widest block that has no parts
// The block that begins at `from`; the last one ends with the channels, and so overlaps the one before.
DepthwiseInt8Block depthwise_int8_block(size_t channels, size_t vector, size_t from);
size_t depthwise_int8_blocks(size_t channels, size_t vector);

// Where tap ky, kx is of those that are multiplied one by one: two rows column by column, then a last row.
inline size_t depthwise_int8_tap(size_t kernel_h, size_t kernel_w, size_t ky, size_t kx) {
  return ky < kernel_h / 2 * 2 ? (ky / 2 * kernel_w + kx) * 2 + ky % 2 : ky * kernel_w + kx;
}
// Vectors of weights for each of the four vectors of sums.
size_t depthwise_int8_taps(size_t kernel_h, size_t kernel_w, size_t stride_h, DepthwiseInt8Format f);
// Of weights that are `taps` such vectors.
inline size_t depthwise_int8_block_bytes(size_t taps, DepthwiseInt8Format f) {
  return (taps + (f.rounding ? 3 : 2)) * 4 * f.vector + 64;
}

// Kernels see q ^ 0x80 where the type is not theirs: q + 128 of s8, q - 128 of u8.
inline int32_t seen_zero_point(DepthwiseInt8Format f, Element element, int32_t zero_point) {
  return zero_point + (f.takes_unsigned ? element == Element::s8 ? 128 : 0 : element == Element::u8 ? -128 : 0);
}

inline DepthwiseInt8Tile depthwise_int8_tile(const DepthwiseShape& s, DepthwiseInt8Format f, const Requantize& to,
                                             Element result) {
  const int32_t less = result == Element::u8 ? 128 : 0;
  DepthwiseInt8Tile t = {};
  t.rows = f.rows;
  t.high = to.high;
  t.low = int16_t(int32_t(to.low) + to.zero_point - less);
  t.top = int8_t(int32_t(to.high) + to.zero_point - less);
  t.is_bounded = t.low > -128 || t.top < 127;
  t.zero_point = int16_t(to.zero_point - less);
  t.rounding = uint8_t(f.rounding);
  t.flip = result == Element::u8 ? 0x80 : 0;
  t.out_pixel = s.out_pixel;
  return t;
}
// A block's weights, of `bytes`.
inline void set_weights(DepthwiseInt8Tile& t, const char* packed, size_t bytes) {
  t.w = packed;
  t.fits = packed[bytes - 64] & kFitsInt8;
  t.positive = is_positive(packed[bytes - 64], t);
}

// What the walks are about.
struct DepthwiseInt8Run {
  const DepthwiseShape* s;
  const Kernel* kernel;
  DepthwiseInt8Format f;
  const char* packed;
  const uint8_t* in;
  uint8_t* out;
  char* workspace;
  uint8_t flip, padding;
  DepthwiseInt8Tile tile;  // what all have in common
  OnCores kernels;         // in the place of `kernel`, for a task's core
};
inline uint8_t depthwise_int8_flip(const Kernel* kernel, DepthwiseInt8Format f) {
  return (kernel->element == Element::s8) == bool(f.takes_unsigned) ? 0x80 : 0;
}

// Tap by tap (int8_direct.cc).
void direct_int8_run(const RunArgs& args, const DepthwiseInt8Run& common);
size_t direct_int8_workspace(const DepthwiseShape& shape, uint32_t concurrency);

// By columns (int8_streamed.cc), with no workspace.
void streamed_int8_run(const RunArgs& args, const DepthwiseInt8Run& common);

// By pairs (int8_pairs.cc).
void paired_int8_run(const RunArgs& args, const DepthwiseInt8Run& common);
size_t paired_int8_workspace(const DepthwiseShape& shape, DepthwiseInt8Format format, uint32_t concurrency);

// Offsets, scales and what is known of the sums, behind a block's weights.
struct DepthwiseInt8End {
  char* to;
  DepthwiseInt8Format f;
  int32_t zero;  // as kernels see it
  const int32_t* bias;
  const void* scale;
  const int32_t* shift;
  bool fits = true, small = true, least = false;

  // Channel c, in `lane` of the block's four vectors of sums. sum: of its weights; amount: of their amounts.
  void set(size_t lane, size_t c, uint32_t sum, double amount) {
    const double most = 255 * amount + (bias ? fabs(double(bias[c])) : 0);
    const uint32_t offset = (bias ? uint32_t(bias[c]) : 0) - uint32_t(zero) * sum;
    memcpy(to + lane * 4, &offset, 4);
    float by;
    memcpy(&by, static_cast<const char*>(scale) + c * 4, 4);
    memcpy(to + 4 * f.vector + lane * 4, &by, 4);
    if (f.rounding) memcpy(to + 8 * f.vector + lane * 4, &shift[c], 4);
    small = small && most < 8388608;
    fits = fits && most < 2147483000.0 && most * double(by) < 2147483000.0;  // 2^31 less more than two roundings to f32
  }
  void finish() {
    to[(f.rounding ? 12 : 8) * f.vector] =
        char((fits ? kFitsInt8 : 0) | (fits && small ? kSmallInt8 : 0) | (least ? kLeastInt8Weight : 0));
  }
};

}  // namespace skua
