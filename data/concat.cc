// Concatenation of 1 to 64 tensors: one strided copy each.
#include <skua/data.h>

#include "data/copy.h"
#include "gpu/operators.h"

namespace skua {
namespace {

constexpr size_t kMostInputs = 64;

struct Config {
  uint32_t type;
  int32_t axis;
};
struct Op : skua_op {
  CopyKernels kernels;
  Config config;
};
struct Plan : skua_plan {
  uint32_t axis;
  skua_tensor list[kMostInputs];
};

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  skua_tensor& y = p.outputs[0];
  y = s.inputs[0];
  const int32_t rank = int32_t(y.rank), axis = op.config.axis < 0 ? op.config.axis + rank : op.config.axis;
  if (axis < 0 || axis >= rank)
    return SKUA_INVALID("concat: axis is %d, the inputs have rank %d", op.config.axis, rank);
  p.axis = uint32_t(axis);
  for (size_t i = 0; i < s.n_inputs; ++i) {
    SKUA_TRY(need_type(base, s, i, skua_dtype(op.config.type)));
    skua_tensor like = y;
    if (s.inputs[i].rank == y.rank) like.shape[axis] = s.inputs[i].shape[axis];
    SKUA_TRY(need_same_shape(base, s, i, like));
    if (i && !add(y.shape[axis], s.inputs[i].shape[axis], y.shape[axis]))
      return SKUA_INVALID("concat: output 0 is larger than the address space");
    p.list[i] = s.inputs[i];
  }
  memset(y.stride, 0, sizeof y.stride);
  p.all_inputs = p.list;
  p.kernel = op.kernels.rows;
  p.algorithm = "concat";
  return SKUA_STATUS_OK;
}

// Input i, walked beside its part of the output, which begins at element `to`.
Nest part(const Plan& p, size_t i, size_t& to) {
  const skua_tensor &x = p.list[i], &y = p.outputs[0];
  to = 0;
  for (size_t j = 0; j < i; ++j) to += p.list[j].shape[p.axis] * y.stride[p.axis];
  Nest nest;
  for (uint32_t d = 0; d < x.rank; ++d) nest.add(x.shape[d], x.stride[d], y.stride[d]);
  return nest;
}

#ifdef SKUA_BUILT_gpu
skua_status plan_parts(Plan& p) {
  size_t to;
  for (size_t i = 0; i < p.n_inputs; ++i) {
    const Copy copy = make_copy(static_cast<const Op*>(p.op)->kernels, part(p, i, to));
    if (copy.elements) SKUA_TRY(gpu::plan_copy(&p, copy.nest, {gpu::CopyFrom::input, i, 0, 0}, to));
  }
  return SKUA_STATUS_OK;
}
skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  size_t to;
  for (size_t i = 0; i < p.n_inputs; ++i) {
    const Copy copy = make_copy(static_cast<const Op*>(p.op)->kernels, part(p, i, to));
    if (copy.elements) SKUA_TRY(gpu::record_copy(args, copy.nest, {gpu::CopyFrom::input, i, 0, 0}, to));
  }
  return SKUA_STATUS_OK;
}
#endif

skua_status finish([[maybe_unused]] const skua_op* op, [[maybe_unused]] skua_plan* plan) {
  SKUA_ON_GPU_HERE(op->ctx, plan_parts(*static_cast<Plan*>(plan)));
  return SKUA_STATUS_OK;
}

struct Run {
  const RunArgs* args;
  const Plan* plan;
  const Op* op;
  size_t pieces;  // per input
};

void task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const size_t i = index / r.pieces;
  size_t to;
  const Copy copy = make_copy(r.op->kernels, part(*r.plan, i, to));
  if (copy.elements)
    run_copy(copy, r.args->in<char>(i), r.args->out<char>(0) + to * copy.element, index % r.pieces, r.pieces);
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const size_t elements = element_count(p.outputs[0]);
  if (!elements) return;
  Run r = {&args, &p, static_cast<const Op*>(p.op), 1};
  const size_t pieces = pieces_for(args, elements, 0.5);
  if (pieces == 1) {
    for (size_t i = 0; i < p.n_inputs; ++i) task(&r, i, 0);
    return;
  }
  r.pieces = ceil_div(pieces, p.n_inputs);
  parallel(args, r.pieces * p.n_inputs, task, &r);
}

const OpClass concat_class = {
    .name = "concat", .id = 48,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open_copies<Op>, .plan = make_plan, .finish = finish, .run = run,
    .record = SKUA_RECORD(record),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_concat_create(skua_context* context, const skua_concat_desc* desc, skua_op** out) {
  skua_concat_desc d = {};
  SKUA_TRY(read_desc("concat", context, desc, d, out));
  SKUA_TRY(need_movable("concat", d.type));
  if (d.axis < -SKUA_MAX_RANK || d.axis >= SKUA_MAX_RANK)
    return SKUA_INVALID("concat: axis is %d, must be within -%d..%d", d.axis, SKUA_MAX_RANK, SKUA_MAX_RANK - 1);
  skua_op* op;
  SKUA_TRY(new_op(concat_class, context, 0, 1, 0, &op));
  static_cast<Op*>(op)->config = {uint32_t(d.type), d.axis};
  return open_op(op, out);
}
