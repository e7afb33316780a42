// Winograd's algorithm for 3x3 and 5x5 convolutions of stride 1, 3x3 of stride 2 too, and any dilation, as plain
// functions for the conv2d operator.
//
//   tasks = ranges of tiles; each: for block of tiles {
//     V = input transform                                                       winograd_in
//     for point: M = V * U, one product per 256 channels and group of columns   winograd_product
//     y = output transform, bias, residual, activation                          winograd_out
//   }
//
// The layouts of V, U and M are in winograd_kernel.h. A product reads every line of U once for up to mr tiles, at a few
// bytes per cycle, so that U may come from the last cache level.
#pragma once
#include "core/activation.h"
#include "core/op.h"
#include "core/window.h"
#include "gemm/driver.h"
#include "winograd/winograd_kernel.h"

namespace skua {

// Sizes, and strides in elements of the feature maps. Padding at the bottom and right follows from the output's size.
struct WinogradShape {
  size_t batch, in_h, in_w, in_channels, out_h, out_w, out_channels, pad_top, pad_left;
  size_t dilation_h, dilation_w;
  size_t in_row, in_pixel, in_batch;
  size_t out_row, out_pixel, out_batch;
  size_t res_row, res_pixel, res_batch;
  Element element = Element::f32;  // of the feature maps
  Element result = Element::f32;   // of output and residual
  int32_t in_zero = 0;             // of maps of bytes
};

// Whether SKUA_NUMERICS_DEFAULT takes it with products in f16; docs/winograd.md.
constexpr bool winograd_half_by_default(WinogradVariant v) {
  return v == WinogradVariant::f2x2 || v == WinogradVariant::f3x3_s2;
}

// The tiles along one dimension. Outputs that are a dilation apart are a convolution without one, of inputs as far
// apart: each such phase has tiles of its own, and phases of one output more come first.
struct WinogradTiles {
  uint32_t outputs, dilation;  // of a tile; phases
  uint32_t longer;             // phases of one output more than the others
  uint32_t tiles[2];           // of a longer phase, of another
  uint8_t clip[2];             // outputs of its last tile outside the image
  enum Kind : uint8_t { clipped_longer, whole, clipped };
  struct Tile {
    uint32_t first;  // output
    uint8_t clip;
    Kind kind;
  };
  uint8_t clip_of(Kind k) const { return k == whole ? 0 : clip[k == clipped]; }
  Tile at(uint32_t i) const {
    const uint32_t before = longer * tiles[0], other = i >= before;
    if (other) i -= before;
    const uint32_t phase = i / tiles[other], tile = i % tiles[other];
    const Kind kind = tile + 1 < tiles[other] || !clip[other] ? whole : other ? clipped : clipped_longer;
    return {phase + (other ? longer : 0) + tile * outputs * dilation, clip_of(kind), kind};
  }
};

constexpr size_t kWinogradBlock = 128;  // most tiles of a block

struct WinogradPlan {
  WinogradVariant variant;
  Element element;                  // of V and U
  const Kernel *tile, *in, *out;    // product and transforms
  OnCores on_cores;                 // the product
  // for maps of half precision and an activation that is no clamp: outputs to f32, and from there to memory
  // (gemm_rows). Of bytes `rows` is a tile, for its ends
  const Kernel *out_f32, *rows;
  WinogradTiles y, x;
  size_t tiles_y, tiles_x, tiles;   // rows and columns of tiles in an image, tiles in the batch
  size_t block;                     // most tiles per block, no more than kWinogradBlock
  // WinogradProductTable's: blocks are multiples of mr and a rest; else as even as they can be
  bool full;
  bool pages;                       // WinogradProduct's
  double cycles;                    // predicted, one thread
};

constexpr const char* winograd_name(WinogradVariant v) {
  constexpr const char* names[kWinogradVariants] = {"winograd_f2x2",   "winograd_f4x2",     "winograd_f4x4",
                                                    "winograd_f6x6",   "winograd_f2x2_5x5", "winograd_f4x4_5x5",
                                                    "winograd_f3x3_s2"};
  return names[int(v)];
}

// From this many input channels on the rms error is at most about twice that of direct sums in f32, what
// SKUA_NUMERICS_DEFAULT promises; docs/winograd.md.
// Results in half precision are rounded by more than that of any variant.
constexpr size_t winograd_least_channels(WinogradVariant v, Element element) {
  constexpr size_t least[kWinogradVariants] = {1, 8, 32, SIZE_MAX, 8, SIZE_MAX, 1};
  return element == Element::f32 ? least[int(v)] : 1;
}

// The format of U for products of maps of bytes, and their multiply-adds per instruction; where there are none a vector
// of 0.
PackFormat winograd_int8_format(const skua_context* ctx, double* rate = nullptr);

// The format of U for products in f16, where the context has them: its type and vector; else a vector of 0.
PackFormat winograd_half_format(const skua_context* ctx);

// Floats of packed weights, of which only format.vector and format.element matter; false: their bytes do not fit half
// of the address space, or a group's results the packing's room.
bool winograd_packed_floats(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                            size_t& floats);

// Transforms in double and rounds to f32, for products in f16 then to that, by a kernel of ctx.
void winograd_pack(const skua_context* ctx, WinogradVariant variant, size_t in_channels, size_t out_channels,
                   const PackFormat& format, const float* weights, const WeightSteps& steps, float* packed);

// The same of bytes, exactly, for format.element s16. It serves where no sum leaves what the output transform can tell
// apart: the largest amount of a sum of these weights, for inputs from zero point - below to zero point + above, must
// fit the variant.
void winograd_pack(WinogradVariant variant, size_t in_channels, size_t out_channels, const PackFormat& format,
                   const int8_t* weights, const WeightSteps& steps, float* packed);
int64_t winograd_largest(size_t taps, size_t in_channels, size_t out_channels, const int8_t* weights,
                         const WeightSteps& steps, int32_t below, int32_t above);
bool winograd_fits(WinogradVariant variant, int64_t largest);

// False: a kernel is not in this build or not for vectors of this format, or a size does not fit. An empty output is
// planned, never run. Strides may change after.
bool winograd_plan(const skua_context* ctx, WinogradVariant variant, const WinogradShape& shape,
                   const PackFormat& format, WinogradPlan* plan, Choice* choice = nullptr);
// predicted, one thread
inline double winograd_cycles(const WinogradPlan& plan, const WinogradShape&) { return plan.cycles; }
size_t winograd_workspace(const WinogradPlan& plan, const WinogradShape& shape, uint32_t concurrency);  // bytes

// bias: round_up(out_channels, vector) values, or NULL; of maps of bytes s32. residual: NULL without one. end: of maps
// of bytes, what becomes of sums, as a tile is told (of its columns the first one, `bias` and `activation` are not in
// it); else NULL.
void winograd_run(const RunArgs& args, const WinogradPlan& plan, const WinogradShape& shape, const float* packed,
                  const void* bias, const Activation& activation, skua_residual residual_mode, const void* in,
                  const void* residual, void* out, void* workspace, const GemmTile* end = nullptr);

}  // namespace skua
