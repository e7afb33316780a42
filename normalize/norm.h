// What the operator (norm.cc) and its run on the CPU (run.cc) know of each other.
#pragma once
#include <skua/normalize.h>

#include "core/nest.h"
#include "gpu/operators.h"

namespace skua {
namespace norm {

struct Config {
  uint32_t kind, layout, axes, groups;
  uint64_t channels;
  float epsilon;
  uint32_t type;
};

struct Op : skua_op {
  Config config;
  const float *gamma, *beta;  // BATCH: the factors of y = x * gamma + beta, with mean and variance in them
  const Kernel *rows, *sum, *squares, *affine;
  skua_device_buffer* factors;  // on a GPU: gamma, rounded up to 4 values, and beta
};

struct Plan : skua_plan {
  // LAYER, RMS: `rows` are the leading dimensions, `n` elements each.
  // NHWC: `rows` are the pixels (BATCH: of all images), `n` channels each; images are `image` apart.
  // NCHW: a channel's plane is rows x n, channels `channel` apart.
  Nest rows;
  size_t count;  // rows.count()
  size_t n;
  size_t images, x_image, y_image, x_channel, y_channel;
  gpu::NormShape on_gpu;
  gpu::Chosen chosen;
};

inline const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
inline const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

inline bool by_rows(uint32_t kind) { return kind == SKUA_NORM_LAYER || kind == SKUA_NORM_RMS; }
inline bool has_statistics(uint32_t kind) { return kind == SKUA_NORM_GROUP || kind == SKUA_NORM_INSTANCE; }

void run(const RunArgs& args);

}  // namespace norm
}  // namespace skua
