// Pooling on a device. See skua/pool.h; kernel: gpu/kernels/pool.k.
#include "gpu/maps.h"
#include "gpu/operators.h"
#include "pooling/pool.h"

namespace skua::gpu {
namespace {

struct Op : skua_op {
  PoolConfig config;
};
struct Plan : skua_plan {
  PoolShape shape;
  MapSteps in, out, indices;
  Chosen chosen;
  bool vectors;
};

const PoolConfig& config_of(const skua_op* op) { return static_cast<const Op*>(op)->config; }
MapSteps steps_of(const PoolConfig& c, const PoolMap& m) { return {m.image, m.row, m.pixel, c.layout == SKUA_LAYOUT_NCHW ? m.plane : 1}; }

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_shape(base, config_of(base), s, p.shape, p.outputs));
  p.in = steps_of(config_of(base), p.shape.in);
  return SKUA_STATUS_OK;
}

skua_status choose_pool(const skua_op* base, const Plan& p, bool vectors, Chosen& chosen) {
  const PoolConfig& c = config_of(base);
  const WorkGroup group = map_group(base->ctx->gpu->about, p.shape.channels / (vectors ? 4 : 1));
  const bool counts = c.kind == SKUA_POOL_AVERAGE && c.count_padding && !c.global;
  return choose(base, {&text_of(pool_texts, vectors ? pool_f32_v4 : pool_f32_v1, 2, c.type), {group.local[0], group.local[1], group.local[2]}, {fused(c.activation).kind, c.kind, counts}}, chosen);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const PoolConfig& c = config_of(base);
  Plan& p = *static_cast<Plan*>(out);
  const PoolShape& s = p.shape;
  PoolMap y;
  SKUA_TRY(pool_map(base, c, "output", 0, p.outputs[0], y));
  p.out = steps_of(c, y);
  if (p.n_outputs > 1) {
    SKUA_TRY(pool_map(base, c, "output", 1, p.outputs[1], y));
    p.indices = steps_of(c, y);
  }
  SKUA_TRY(need_small(base, &p));
  if (!s.batch || !s.channels || !s.y.out || !s.x.out) return SKUA_STATUS_OK;
  const Named small[] = {{"stride", max(s.y.stride, s.x.stride)}, {"dilation", max(s.y.dilation, s.x.dilation)}, {"padding", max(max(s.y.pad_before, s.x.pad_before), max(s.y.pad_after, s.x.pad_after))}};
  SKUA_TRY(need_pairs(base, small, 3));
  if (s.y.kernel > INT32_MAX / 2 || s.x.kernel > INT32_MAX / 2) return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu", base->cls->name, s.y.kernel, s.x.kernel);
  p.vectors = p.n_outputs == 1 && s.channels % 4 == 0 && fours(p.in) && fours(p.out);
  p.algorithm = c.global ? "global" : "window";
  SKUA_TRY(choose_pool(base, p, p.vectors, p.chosen));
  p.text = p.chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const PoolConfig& c = config_of(p.op);
  const PoolShape& s = p.shape;
  Launch l(args);
  const int32_t x = l.input(0), y = l.output(0), positions = p.n_outputs > 1 ? l.output(1) : 0;
  if (p.n_outputs == 1) l.bind_again(1);
  bool vectors = p.vectors;
  Chosen chosen = p.chosen;
  if (vectors && (x | y) % 4) {
    vectors = false;
    SKUA_TRY(choose_pool(p.op, p, false, chosen));  // rare: compiled now
  }
  const int32_t v = vectors ? 4 : 1, channels = int32_t(s.channels) / v;
  l.add(channels);
  l.add(int32_t(s.x.out)); l.add(int32_t(s.y.out)); l.add(int32_t(s.x.in)); l.add(int32_t(s.y.in));
  l.add(int32_t(s.y.kernel)); l.add(int32_t(s.x.kernel));
  l.add(pair(s.y.stride, s.x.stride)); l.add(pair(s.y.dilation, s.x.dilation)); l.add(pair(s.y.pad_before, s.x.pad_before)); l.add(pair(s.y.pad_after, s.x.pad_after));
  add_map(l, 0, x, p.in, v);
  add_map(l, 1, y, p.out, v);
  add_map(l, 2, positions, p.indices, 1);
  l.add(bits_of(c.activation.a));
  l.add(bits_of(c.activation.b));
  return l.record(chosen, size_t(channels), s.x.out, s.y.out * s.batch);
}

void explain(const skua_plan* plan, Text& text) {
  const Chosen& chosen = static_cast<const Plan*>(plan)->chosen;
  if (chosen.text) text.add("  work-group %ux%ux%u\n", chosen.local[0], chosen.local[1], chosen.local[2]);
}

const OpClass pool2d_class = {"pool2d", 83, sizeof(Op), sizeof(Plan), offsetof(Op, config), sizeof(PoolConfig), false, nullptr, make_plan, finish, nullptr, nullptr, explain, nullptr, record, nullptr};

}  // namespace

skua_status create_pool(const skua_context* ctx, const skua_pool2d_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_type(ctx, "pool2d", "type", d.type));
  skua_op* op;
  SKUA_TRY(new_op(pool2d_class, ctx, 1, d.kind == SKUA_POOL_MAX_INDICES ? 2 : 1, 0, &op));
  static_cast<Op*>(op)->config = pool_config(d);
  return open_op(op, out);
}

}  // namespace skua::gpu
