// What the operator (pool.cc) and its run on the CPU (run.cc) know of each other.
#pragma once
#include "core/activation.h"
#include "pooling/pool.h"

namespace skua {
namespace pool {

using Config = PoolConfig;
using Map = PoolMap;

struct Op : skua_op {
  Config config;
  Activation activation, f32_activation;  // of rows of the tensors' type; of floats (of bytes: the same bounds)
};

struct Plan : skua_plan, PoolShape {
  size_t inner_begin, inner_end;  // outputs of a row with every tap inside
  Map out, indices;
  const Kernel* rows_kernel;  // that takes one input row of windows at a time; NULL: none does
  const Kernel* down_kernel;  // that takes windows with every tap inside; NULL: none does
  size_t inner_rows_begin, inner_rows_end;  // rows of outputs with every tap inside, where there is one
  size_t in_any_order;  // bytes of a window that come as fast in any order as in that of addresses
  // NCHW: a band of output rows of one vector of channels. band 0: planes too large to copy are read in place, one
  // channel at a time.
  size_t band, band_in;            // rows of output, of input
  size_t scratch_in, scratch_out;  // floats, whatever the type of the tensors
  const Kernel *from_planes, *to_planes, *indices_to_planes;
  // Separable: the taps of a row are put together once, in the workspace, for all windows over it. NHWC: bands of
  // output rows and blocks of channels that stay in L2. separable_band 0: not so.
  size_t separable_band, separable_blocks, separable_bytes;
};

inline const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
inline const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

inline size_t scratch_floats(const Plan& p) { return p.band ? p.scratch_in + p.scratch_out : 0; }
inline size_t worker_bytes(const Plan& p) {
  return round_up(scratch_floats(p) * sizeof(float), 64) + p.separable_bytes;
}

void run(const RunArgs& args);

}  // namespace pool
}  // namespace skua
