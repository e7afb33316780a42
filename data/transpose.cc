// Transpose, change of layout, and the rearrangements of depth and space: permutations of dimensions, seen through
// strides.
#include <skua/data.h>

#include "data/move.h"

namespace skua {
namespace {

// ---- transpose and layout -------------------------------------------------------------------------------------------
struct TransposeConfig {
  uint32_t type, rank, perm[SKUA_MAX_RANK];
};
struct TransposeOp : MoveOp {
  TransposeConfig config;
};

skua_status plan_transpose(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const TransposeConfig& c = static_cast<const TransposeOp*>(base)->config;
  SKUA_TRY(need_rank(base, s, 0, c.rank));
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  plan->outputs[0] = tensor(skua_dtype(c.type), c.rank);
  for (uint32_t d = 0; d < c.rank; ++d) plan->outputs[0].shape[d] = s.inputs[0].shape[c.perm[d]];
  return SKUA_STATUS_OK;
}

skua_status finish_transpose(const skua_op* base, skua_plan* plan) {
  const TransposeOp& op = *static_cast<const TransposeOp*>(base);
  const skua_tensor &x = plan->inputs[0], &y = plan->outputs[0];
  Nest nest;
  for (uint32_t d = 0; d < op.config.rank; ++d) nest.add(y.shape[d], x.stride[op.config.perm[d]], y.stride[d]);
  return finish_move(op, *static_cast<MovePlan*>(plan), nest, "permute");
}

const OpClass transpose_class = {
    .name = "transpose", .id = 44,
    .op_size = sizeof(TransposeOp), .plan_size = sizeof(MovePlan), .config_offset = offsetof(TransposeOp, config),
    .config_size = sizeof(TransposeConfig),
    .open = open_copies<TransposeOp>, .plan = plan_transpose, .finish = finish_transpose, .run = run_move,
    .record = SKUA_RECORD(record_move),
};
const OpClass layout_class = {
    .name = "layout", .id = 45,
    .op_size = sizeof(TransposeOp), .plan_size = sizeof(MovePlan), .config_offset = offsetof(TransposeOp, config),
    .config_size = sizeof(TransposeConfig),
    .open = open_copies<TransposeOp>, .plan = plan_transpose, .finish = finish_transpose, .run = run_move,
    .record = SKUA_RECORD(record_move),
};

skua_status new_transpose(const OpClass& cls, const skua_context* context, const TransposeConfig& config,
                          skua_op** out) {
  skua_op* op;
  SKUA_TRY(new_op(cls, context, 1, 1, 0, &op));
  static_cast<TransposeOp*>(op)->config = config;
  return open_op(op, out);
}

// ---- depth to space, space to depth, channel shuffle ----------------------------------------------------------------
struct RearrangeConfig {
  uint32_t type, kind, layout, block;
};
struct RearrangeOp : MoveOp {
  RearrangeConfig config;
};

struct Axes {
  uint32_t h, w, c;
};
Axes axes_of(const RearrangeConfig& c) { return c.layout == SKUA_LAYOUT_NHWC ? Axes{1, 2, 3} : Axes{2, 3, 1}; }

skua_status plan_rearrange(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const RearrangeConfig& c = static_cast<const RearrangeOp*>(base)->config;
  SKUA_TRY(need_rank(base, s, 0, 4));
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  const Axes a = axes_of(c);
  const skua_tensor& x = s.inputs[0];
  skua_tensor& y = plan->outputs[0];
  y = tensor(skua_dtype(c.type), 4);
  memcpy(y.shape, x.shape, sizeof y.shape);
  const size_t b = c.block;
  size_t square;
  if (!mul(b, b, square)) return SKUA_INVALID("rearrange: block is %u, too large", c.block);
  switch (c.kind) {
    case SKUA_REARRANGE_DEPTH_TO_SPACE:
      if (x.shape[a.c] % square)
        return SKUA_INVALID("rearrange: input 0 has %zu channels, not a multiple of block * block = %zu", x.shape[a.c],
                            square);
      y.shape[a.c] = x.shape[a.c] / square;
      if (!mul(x.shape[a.h], b, y.shape[a.h]) || !mul(x.shape[a.w], b, y.shape[a.w]))
        return SKUA_INVALID("rearrange: output 0 is larger than the address space");
      return SKUA_STATUS_OK;
    case SKUA_REARRANGE_SPACE_TO_DEPTH:
      if (x.shape[a.h] % b)
        return SKUA_INVALID("rearrange: input 0 has height %zu, not a multiple of block = %u", x.shape[a.h], c.block);
      if (x.shape[a.w] % b)
        return SKUA_INVALID("rearrange: input 0 has width %zu, not a multiple of block = %u", x.shape[a.w], c.block);
      y.shape[a.h] = x.shape[a.h] / b;
      y.shape[a.w] = x.shape[a.w] / b;
      if (!mul(x.shape[a.c], square, y.shape[a.c]))
        return SKUA_INVALID("rearrange: output 0 is larger than the address space");
      return SKUA_STATUS_OK;
    default:
      if (x.shape[a.c] % b)
        return SKUA_INVALID("rearrange: input 0 has %zu channels, not a multiple of block = %u groups", x.shape[a.c],
                            c.block);
      return SKUA_STATUS_OK;
  }
}

skua_status finish_rearrange(const skua_op* base, skua_plan* plan) {
  const RearrangeOp& op = *static_cast<const RearrangeOp*>(base);
  const Axes a = axes_of(op.config);
  const skua_tensor &x = plan->inputs[0], &y = plan->outputs[0];
  const size_t b = op.config.block;
  Nest nest;
  auto stride = [](const skua_tensor& t, uint32_t d) { return t.stride[d]; };
  nest.add(x.shape[0], stride(x, 0), stride(y, 0));
  const char* algorithm = "channel_shuffle";
  if (op.config.kind == SKUA_REARRANGE_CHANNEL_SHUFFLE) {
    const size_t each = x.shape[a.c] / b;
    nest.add(x.shape[a.h], stride(x, a.h), stride(y, a.h));
    nest.add(x.shape[a.w], stride(x, a.w), stride(y, a.w));
    nest.add(b, stride(x, a.c) * each, stride(y, a.c));
    nest.add(each, stride(x, a.c), stride(y, a.c) * b);
  } else {
    // deep: [h][w][(by*b + bx)*channels + c]; wide: [h*b + by][w*b + bx][c].
    const bool to_space = op.config.kind == SKUA_REARRANGE_DEPTH_TO_SPACE;
    const skua_tensor &deep = to_space ? x : y, &wide = to_space ? y : x;
    const size_t channels = wide.shape[a.c];
    auto add = [&](size_t extent, size_t of_deep, size_t of_wide) {
      nest.add(extent, to_space ? of_deep : of_wide, to_space ? of_wide : of_deep);
    };
    add(deep.shape[a.h], stride(deep, a.h), stride(wide, a.h) * b);
    add(deep.shape[a.w], stride(deep, a.w), stride(wide, a.w) * b);
    add(b, stride(deep, a.c) * b * channels, stride(wide, a.h));
    add(b, stride(deep, a.c) * channels, stride(wide, a.w));
    add(wide.shape[a.c], stride(deep, a.c), stride(wide, a.c));
    algorithm = to_space ? "depth_to_space" : "space_to_depth";
  }
  return finish_move(op, *static_cast<MovePlan*>(plan), nest, algorithm);
}

const OpClass rearrange_class = {
    .name = "rearrange", .id = 49,
    .op_size = sizeof(RearrangeOp), .plan_size = sizeof(MovePlan), .config_offset = offsetof(RearrangeOp, config),
    .config_size = sizeof(RearrangeConfig),
    .open = open_copies<RearrangeOp>, .plan = plan_rearrange, .finish = finish_rearrange, .run = run_move,
    .record = SKUA_RECORD(record_move),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_transpose_create(skua_context* context, const skua_transpose_desc* desc, skua_op** out) {
  skua_transpose_desc d = {};
  SKUA_TRY(read_desc("transpose", context, desc, d, out));
  SKUA_TRY(need_movable("transpose", d.type));
  if (d.rank < 1 || d.rank > SKUA_MAX_RANK)
    return SKUA_INVALID("transpose: rank is %u, must be 1..%d", d.rank, SKUA_MAX_RANK);
  TransposeConfig c = {uint32_t(d.type), d.rank, {}};
  uint32_t seen = 0;
  for (uint32_t i = 0; i < d.rank; ++i) {
    if (d.perm[i] >= d.rank)
      return SKUA_INVALID("transpose: perm[%u] is %u, must be below rank = %u", i, d.perm[i], d.rank);
    if (seen >> d.perm[i] & 1) return SKUA_INVALID("transpose: perm[%u] is %u, which is there already", i, d.perm[i]);
    seen |= 1u << d.perm[i];
    c.perm[i] = d.perm[i];
  }
  return new_transpose(transpose_class, context, c, out);
}

skua_status skua_layout_create(skua_context* context, const skua_layout_desc* desc, skua_op** out) {
  skua_layout_desc d = {};
  SKUA_TRY(read_desc("layout", context, desc, d, out));
  SKUA_TRY(need_movable("layout", d.type));
  SKUA_TRY(check_layout("layout", "from", d.from));
  SKUA_TRY(check_layout("layout", "to", d.to));
  TransposeConfig c = {uint32_t(d.type), 4, {0, 1, 2, 3}};
  static const uint8_t to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};
  if (d.from != d.to)
    for (uint32_t i = 0; i < 4; ++i) c.perm[i] = d.to == SKUA_LAYOUT_NCHW ? to_nchw[i] : to_nhwc[i];
  return new_transpose(layout_class, context, c, out);
}

skua_status skua_rearrange_create(skua_context* context, const skua_rearrange_desc* desc, skua_op** out) {
  skua_rearrange_desc d = {};
  SKUA_TRY(read_desc("rearrange", context, desc, d, out));
  SKUA_TRY(need_movable("rearrange", d.type));
  SKUA_TRY(check_layout("rearrange", "layout", d.layout));
  if (unsigned(d.kind) > SKUA_REARRANGE_CHANNEL_SHUFFLE)
    return SKUA_INVALID("rearrange: kind is %d, unknown", int(d.kind));
  if (!d.block) return SKUA_INVALID("rearrange: block is 0, must be 1 or more");
  skua_op* op;
  SKUA_TRY(new_op(rearrange_class, context, 1, 1, 0, &op));
  static_cast<RearrangeOp*>(op)->config = {uint32_t(d.type), uint32_t(d.kind), uint32_t(d.layout), d.block};
  return open_op(op, out);
}

}  // extern "C"
