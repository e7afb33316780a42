// What the operators that are one strided copy share: transpose, layout, slice, rearrange.
#pragma once
#include "data/copy.h"
#include "gpu/operators.h"

namespace skua {

struct MoveOp : skua_op {
  CopyKernels kernels;
};
struct MovePlan : skua_plan {
  size_t x_offset;  // elements from the input's first one
  Copy copy;
};

inline skua_status finish_move(const MoveOp& op, MovePlan& plan, const Nest& nest, const char* algorithm) {
  plan.copy = make_copy(op.kernels, nest);
  plan.kernel = plan.copy.kernel;
  plan.algorithm = algorithm;
  if (plan.copy.elements)
    SKUA_ON_GPU(op.ctx, plan_copy(&plan, plan.copy.nest, {gpu::CopyFrom::input, 0, plan.x_offset, 0}, 0));
  return SKUA_STATUS_OK;
}

#ifdef SKUA_BUILT_gpu
inline skua_status record_move(const RecordArgs& args) {
  const MovePlan& p = *static_cast<const MovePlan*>(args.plan);
  return gpu::record_copy(args, p.copy.nest, {gpu::CopyFrom::input, 0, p.x_offset, 0}, 0);
}
#endif

inline void run_move(const RunArgs& args) {
  const MovePlan& p = *static_cast<const MovePlan*>(args.plan);
  if (p.copy.elements) run_copy(args, p.copy, args.in<char>(0) + p.x_offset * p.copy.element, args.out<char>(0));
}

inline skua_status check_layout(const char* op, const char* field, skua_layout layout) {
  if (unsigned(layout) <= SKUA_LAYOUT_NCHW) return SKUA_STATUS_OK;
  return SKUA_INVALID("%s: %s is %d, unknown", op, field, int(layout));
}

}  // namespace skua
