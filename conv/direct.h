// Convolution as a product over rows that are read where they are: no im2col matrix. Serves every kernel size, stride,
// dilation and group count, and the transposed convolution, which is stride_h * stride_w such products (phases) with
// interleaved outputs.
//
//   a phase        out[oy0 + j*oy_step][ox0 + i*ox_step] =
//                  sum over taps (ty, tx) of in[j*step_y + ey(ty)][i*step_x + ex(tx)] * W[ty][tx]
//   ey, ex         arithmetic progressions: convolution ey(t) = t*dilation - top;
//                  transposed ey(t) = (phase + top - dilation*k(t)) / stride
//   rows of A      one per output pixel: a pointer to the pixel under the first tap
//   segments       one per tap, channels deep; when taps of a row lie next to each other (dilation 1, one group), one
//                  per tap row, kernel_w*channels deep: first layers with 3 channels multiply 9 or 21 deep without a
//                  copy
//
// Live taps only: outputs that have the same taps inside the image form a class, along each axis a few ranges of
// outputs (the interior and what is near a border). A region is a class of rows times a class of columns: one product
// over its own taps that reads the image in place, padding is neither copied nor multiplied.
//
//   columns   0   1   2..w-3  w-2 w-1     5x5 with padding 2: 5 classes along each axis, 25 regions, the corners of
//   taps     2-4 1-4   0-4    0-3 0-2     one pixel each
//
// Where classes are too small to fill a tile (corners, images smaller than the kernel), neighbouring classes are
// computed together with the taps of all of them, out of a strip: a copy of the pixels under them with zeros around.
// The cost model decides, per axis: every class by itself, all but the widest one merged, or all of them.
//
// Feature maps of half precision. A tile that computes in that type reads them like those of f32. For a tile of f32 a
// task first widens the rows under its band into the workspace, each pixel once however many taps read it, and goes on
// from there; with one tap the driver widens the rows of a turn. Results are rounded once, on their way from the sums
// to memory.
#pragma once
#include "core/quantize.h"
#include "core/window.h"
#include "gemm/driver.h"

namespace skua {

struct DirectShape {
  size_t batch, in_h, in_w, out_h, out_w;
  size_t in_channels, out_channels, groups;  // of the tensors
  uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  bool transposed;
  Element element, result, weights;          // of the input; of output and residual; of the weights as given
  skua_numerics numerics;
  uint8_t padding;                           // byte that maps of 8 bits have outside the image: the zero point
  size_t pad_top, pad_left;
  size_t in_batch, in_row, in_pixel;     // strides in elements
  size_t out_batch, out_row, out_pixel;
  size_t res_batch, res_row, res_pixel;
};

// which classes of an axis are computed together; whole: all that see a pixel, with all taps
enum class Cut : uint8_t { exact, borders_merged, merged, whole };

constexpr size_t kKeptGrids = 4;  // phases of stride 2 by 2; those of larger strides share

struct Phase;  // regions.h

struct DirectPlan {
  const Kernel* tile;
  OnCores tiles;
  const Kernel* row_kernel;  // gemm_rows, for maps of another type than the tile's
  bool widens;               // rows of a band are widened before
  // every region with taps has a strip: pixels of the input are apart, and taps of a row must not be
  bool copies;
  Cut rows, columns_inside, columns_at_borders;  // of columns: in the widest class of rows, and in the others
  size_t band;         // output rows of a phase that a task works on at most
  size_t strip;        // bytes of a worker's strips
  size_t wide;         // bytes of a worker's widened rows
  size_t scratch;      // bytes of a worker for the driver
  size_t offsets;      // bytes of a worker for the offsets of integer sums
  size_t regions, segments;  // most of a task, most of a region
  bool uniform;        // all lines of a phase are one region in place: any of them may be together
  double cycles;       // predicted
  KeptGrid grids[kKeptGrids];  // of the tasks of a phase
  bool flat;           // a matrix product: the pixels of an image are rows with the same step from each to the next
  bool row;            // and there is one row only
  size_t kc;           // of a flat one
  bool gathers;        // rows of A are copied together (gather.cc), gather_rows at a time
  size_t gather_rows, gather_row, gather_bytes;  // bytes of a row; of a worker
  // lines of outputs that a band serves; outputs of a part of one, where it is too long; the band's bytes, 0: none
  size_t gather_lines, gather_columns, gather_band;
  bool pads;           // pixels of a band are padded to registers (padded.cc), which takes those four too
  const char* name;    // "gemm_1x1", "direct_rows", "implicit_gemm", "gathered_rows", "padded_pixels"
};

// false: overflow. Depends on channels, kernel and stride only
bool direct_packed_floats(const DirectShape& s, const PackFormat& f, size_t& floats);
void direct_pack(const skua_context* ctx, const DirectShape& s, const PackFormat& f, const float* weights,
                 const WeightSteps& steps, float* packed);
GemmTypes direct_types(const DirectShape& s);  // what its tiles must do

// function: the activation is no clamp.
skua_status direct_plan(const skua_op* op, const DirectShape& s, const Kernel* tile, bool function, DirectPlan& plan);
const Kernel* direct_tile(const skua_context* ctx, const DirectShape& s, const PackFormat* format, Text* text = nullptr,
                          Choice* choice = nullptr);
size_t direct_workspace(const DirectPlan& plan, uint32_t concurrency);  // bytes

// What integer maps need beside panels. Vectors have direct_bias_floats() values; the activation's clamp is what the
// sums meet before out_zero is added.
struct DirectQuantized {
  const int32_t* bias;
  const float* scales;      // of the sums
  // vectors, in the order of the panels: for each tap the zero point of A as multiplied times the weights of all taps
  // of its phase that are neither below it nor to its right; mod 2^32. With the a_shift of the panels' format, which
  // all its tiles have
  const int32_t* tap_sums;
  const int32_t* offsets;   // of sums that have the only tap, or NULL: a kernel of several
  int32_t in_zero, out_zero;
  bool fits, small, above_least;  // scales_fit(), sums_small(), all_above_least()
  const int32_t* shifts;    // in fixed point, where scales are multipliers; else NULL
  bool single;
  QuantizedResidual residual;
};
struct DirectOperands {
  const float *packed, *bias;  // bias: per group direct_bias_step() values, or NULL
  const Activation* activation;
  skua_residual residual_mode;
  const void *in, *residual;   // of the shape's element type
  void* out;
  void* workspace;
  const DirectQuantized* quantized = nullptr;  // NULL: maps are floats
};
void direct_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x);

// 1x1 without padding: whether the pixels are even rows, and the run if they are.
void pointwise_plan(const DirectShape& s, bool function, DirectPlan& plan);
// Of one pixel; run is NULL if there are more. x has what is the operator's.
void pointwise_row(const DirectPlan& plan, const DirectShape& s, const DirectOperands& x, OnlyRow& row);
void pointwise_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x);

// Floats whose taps do not fill pairs of the depth: those of a row are packed as one run of whole pairs, and read as
// one where they lie or out of a strip, always all of them. The last pair of an odd run overlaps the one before
// (GemmTile::overlaps). On x86: no tile of Arm does so.
inline bool packs_pairs(const DirectShape& s, const PackFormat& f) {
  return kArch == Arch::x86_64 && !is_int8(s.element) && f.kr == 2 && s.in_channels / s.groups % 2 != 0 &&
         s.kernel_h * s.kernel_w > 1;
}
// Bytes whose taps do not fill AMX's registers: those of a row are packed as one run of whole registers, and read as
// the runs above, where that multiplies fewer bytes for nothing than gathering them copies. By what is known as weights
// are packed.
constexpr size_t kRegisterBytes = 64;
bool packs_register_runs(const DirectShape& s);
inline bool packs_runs(const DirectShape& s, const PackFormat& f) {
  return packs_pairs(s, f) || (kTileRegisters && f.kr == kRegisterBytes && packs_register_runs(s));
}

// Bytes and bf16 in groups whose channels do not fill AMX's registers, or with a stride: each tap is packed as whole
// registers, and read out of pixels that are padded to as many (padded.cc), where that multiplies less for nothing than
// gathering copies.
bool packs_register_taps(const DirectShape& s);
inline bool packs_taps(const DirectShape& s, const PackFormat& f) {
  return kTileRegisters && f.kr * element_bytes(s.element) == kRegisterBytes && packs_register_taps(s);
}

// Whether taps do not fill groups of the depth, of bytes or of AMX's registers, and must be gathered; plan and run if
// so (gather.cc).
bool gathers(const DirectShape& s, const PackFormat& f);
// Cycles to copy a row of A with what lies under it (rows side by side share that), registers: to those of AMX.
double gather_cycles(const DirectShape& s, const Phase& p, const Machine& machine, bool registers);
// Lines, and columns, under an output of floats whose taps are gathered, which is for AMX alone. (3x3 of 24 to 144
// channels dilated by 8 are level with reading them in place, by 12 and more they lose.)
constexpr uint64_t kMostGathered = 16;
// Cycles to pad what is under an output.
double padded_cycles(const DirectShape& s, const Phase& p);
skua_status padded_plan(const skua_op* op, const DirectShape& s, bool function, DirectPlan& plan);
void padded_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x);
void explain_padded(const DirectPlan& plan, Text& text);
skua_status gather_plan(const skua_op* op, const DirectShape& s, bool function, DirectPlan& plan);
void gather_run(const RunArgs& args, const DirectPlan& plan, const DirectShape& s, const DirectOperands& x);
void explain_gather(const DirectPlan& plan, Text& text);

// Whole vectors of every tile, of 32 values in half precision.
inline size_t direct_bias_step(size_t out_channels, size_t groups) { return round_up(out_channels / groups, 32); }
inline size_t direct_bias_floats(size_t out_channels, size_t groups) {
  return groups * direct_bias_step(out_channels, groups);
}

}  // namespace skua
