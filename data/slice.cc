// Slice: y = x[begin : begin + size*step : step], per dimension.
#include <skua/data.h>

#include "data/move.h"

namespace skua {
namespace {

struct Config {
  uint32_t type, rank;
  uint64_t begin[SKUA_MAX_RANK], size[SKUA_MAX_RANK], step[SKUA_MAX_RANK];
};
struct Op : MoveOp {
  Config config;
};

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Config& c = static_cast<const Op*>(base)->config;
  MovePlan& p = *static_cast<MovePlan*>(out);
  SKUA_TRY(need_rank(base, s, 0, c.rank));
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  const skua_tensor& x = s.inputs[0];
  p.outputs[0] = tensor(skua_dtype(c.type), c.rank);
  for (uint32_t d = 0; d < c.rank; ++d) {
    const size_t begin = size_t(c.begin[d]), step = size_t(c.step[d]), extent = x.shape[d];
    if (begin > extent) return SKUA_INVALID("slice: begin[%u] is %zu, input 0 has extent %zu there", d, begin, extent);
    const size_t most = ceil_div(extent - begin, step);
    const size_t size = c.size[d] == SIZE_MAX ? most : size_t(c.size[d]);
    if (size > most)
      return SKUA_INVALID("slice: size[%u] is %zu, from %zu in steps of %zu there are %zu", d, size, begin, step, most);
    p.outputs[0].shape[d] = size;
    if (begin < extent) p.x_offset += begin * x.stride[d];
  }
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const skua_tensor &x = out->inputs[0], &y = out->outputs[0];
  Nest nest;
  // A dimension of one element may have any step.
  for (uint32_t d = 0; d < op.config.rank; ++d)
    nest.add(y.shape[d], y.shape[d] > 1 ? x.stride[d] * size_t(op.config.step[d]) : 0, y.stride[d]);
  return finish_move(op, *static_cast<MovePlan*>(out), nest, "slice");
}

const OpClass slice_class = {
    .name = "slice", .id = 47,
    .op_size = sizeof(Op), .plan_size = sizeof(MovePlan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open_copies<Op>, .plan = make_plan, .finish = finish, .run = run_move,
    .record = SKUA_RECORD(record_move),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_slice_create(skua_context* context, const skua_slice_desc* desc, skua_op** out) {
  skua_slice_desc d = {};
  SKUA_TRY(read_desc("slice", context, desc, d, out));
  SKUA_TRY(need_movable("slice", d.type));
  if (d.rank < 1 || d.rank > SKUA_MAX_RANK)
    return SKUA_INVALID("slice: rank is %u, must be 1..%d", d.rank, SKUA_MAX_RANK);
  Config c = {};
  c.type = uint32_t(d.type);
  c.rank = d.rank;
  for (uint32_t i = 0; i < d.rank; ++i) {
    if (!d.step[i]) return SKUA_INVALID("slice: step[%u] is 0, must be 1 or more", i);
    c.begin[i] = d.begin[i];
    c.size[i] = d.size[i];
    c.step[i] = d.step[i];
  }
  skua_op* op;
  SKUA_TRY(new_op(slice_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}
