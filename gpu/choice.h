// Which kernel and which work-group: pure functions of a device's description, so that tests ask them about devices
// that are not at hand (tests/gpu_choice_test.cc).
#pragma once
#include "gpu/device.h"

namespace skua::gpu {

// Ways to compute a product (gpu/kernels/product.h): by register tiles of 4 x 4 or 8 x 4 sums a thread, tiles in local
// memory of 16 x 16 to 128 x 128 (the smaller ones by slices of the depth), or a work-group for some columns of one
// row.
enum ProductKind : uint8_t { kRows4, kRows8, kTile16, kTile16x32, kTile32, kTile64, kTile128, kVector, kProductKinds };
const char* product_kind_name(int kind);
// A tile in local memory, gpu/kernels/product_tile.h. NULL of other kinds.
struct ProductTile {
  uint16_t rows, columns, x, y, step, buffers;  // x, y: threads of a slice; step: of the depth
  uint32_t local_bytes;
  float rate[3];  // of multiplications on a unit with 1, 2 or more work-groups of it
};
const ProductTile* product_tile(int kind);

struct ProductSize {
  size_t m, n, k, z;      // rows, columns, terms of a sum (over all taps), batches or groups
  bool vectors;           // A, B and C are read as vectors of 4: all but kRows4, kTile64 and kVector need it
  bool constant, window;  // B was packed; it is a convolution with more than one tap, or a step between pixels
  bool bytes = false;     // of s8 and u8: register tiles, and those in local memory up to 64 x 64
  bool half = false;      // of f16, and numerics lets 64 terms be summed in f16
  bool sixteens = false;  // each tap has a multiple of 16 terms
};

struct WorkGroup {
  uint16_t local[3];
};

// Where constant weights are read: as vectors of their buffer, or as texels of it, through the caches of textures.
enum class Storage : uint8_t { buffer, image };
struct StorageChoice {
  Storage first;
  bool both;        // the device can make an image of so many texels
  const char* why;
};
StorageChoice choose_storage(const Description& d, size_t texels);

struct ProductChoice {
  uint8_t order[kProductKinds];  // the best first; `count` of them can be used
  uint8_t count;
  const char* why;               // of the first
};
ProductChoice choose_product(const Description& d, const ProductSize& s);
// Whether that kind multiplies and sums in f16.
bool choose_half(const Description& d, const ProductSize& s, ProductKind kind);
// Ways to compute a 3x3 convolution of stride 1: directly, or by Winograd's F(2x2,3x3) and F(4x4,3x3), of which
// `allowed` (bits by value) are at hand and good enough for its numerics.
enum class WinogradForm : uint8_t { none, f2x2, f4x4 };
const char* winograd_form_name(WinogradForm form);
struct WinogradSize {
  size_t batch, out_h, out_w, in_channels, out_channels;
};
WinogradForm choose_winograd(const Description& d, const WinogradSize& s, uint32_t allowed);

// Whether a work-group of so many threads, a power of 2, reduces by the instructions of its subgroups first
// (gpu/kernels/group.h).
bool choose_subgroups(const Description& d, uint32_t threads);

// Into how many parts the `n` terms of each result of a reduction are cut, when without parts it has `groups`
// work-groups of `threads`, `slices` of which share a result: 1, or what a second dispatch joins (gpu/kernels/parts.h).
// No more than the square root of n, so that parts of equal size, rounded up, are as many.
size_t choose_parts(const Description& d, size_t n, size_t groups, uint32_t threads, uint32_t slices);

// Whether a thread of a depthwise convolution takes 2 by 2 vectors of outputs, which needs some 70 registers without
// losing threads that hide its loads.
bool choose_blocks(const Description& d);
// Whether copies whose neighbours change go through local memory by squares of 32 by 32 (gpu/kernels/copy_tile.k).
bool choose_squares(const Description& d);

// Threads of a register tile: x along the vectors of columns, y along blocks of rows; of kVector x vectors of columns,
// y that share the sum of each.
WorkGroup product_group(const Description& d, ProductKind kind, size_t columns);
// Threads of a kernel that goes over maps: x along `channels` (vectors), y along a row; its rows are groups of their
// own, in z.
WorkGroup map_group(const Description& d, size_t channels);

}  // namespace skua::gpu
