// Pooling on a device. See skua/pool.h; kernels: gpu/kernels/pool.k and pool_bytes.k.
#include "core/quantize.h"
#include "gpu/maps.h"
#include "gpu/operators.h"
#include "pooling/pool.h"

namespace skua::gpu {
namespace {

struct Op : skua_op {
  PoolConfig config;
  skua_device_buffer* factors;  // of averages of bytes: by the number of taps, from 1 on
};
struct Plan : skua_plan {
  PoolShape shape;
  MapSteps in, out, indices;
  Chosen chosen;
  bool vectors;
  size_t parts;  // of a whole map's pixels; with more than 1 their results are in the workspace, and `joins` joins them
  Chosen joins;
};

constexpr size_t kMostTaps = size_t(1) << 23;      // their sum and that of the zero points fit 32 bits
constexpr size_t kMostFactors = size_t(1) << 16;

bool is_bytes(const PoolConfig& c) { return is_int8(Element(c.type)); }
bool has_factors(const PoolConfig& c) { return is_bytes(c) && c.kind == SKUA_POOL_AVERAGE && !c.global; }
// maps, by kernels of their own
bool is_whole(const PoolConfig& c) { return c.global && c.kind != SKUA_POOL_MAX_INDICES; }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const PoolConfig& c = op.config;
  if (!has_factors(c)) return SKUA_STATUS_OK;
  const size_t n = mul_sat(c.kernel[0], c.kernel[1]), bytes = n * sizeof(float);
  if (n > kMostFactors)
    return SKUA_UNSUPPORTED_("pool2d: a window of %u x %u bytes, more than %zu on a GPU", c.kernel[0], c.kernel[1],
                             kMostFactors);
  auto* const factors = static_cast<float*>(allocate(op.ctx, bytes, 16));
  if (!factors) return out_of_memory("pool2d", bytes);
  for (size_t i = 0; i < n; ++i) factors[i] = float(c.ratio / double(i + 1));
  const skua_status s = upload(&op, factors, bytes, &op.factors);
  release(op.ctx, factors, bytes);
  return s;
}
void close(skua_op* op) { free_buffer(static_cast<Op*>(op)->factors); }

const PoolConfig& config_of(const skua_op* op) { return static_cast<const Op*>(op)->config; }
MapSteps steps_of(const PoolConfig& c, const PoolMap& m) {
  return {m.image, m.row, m.pixel, c.layout == SKUA_LAYOUT_NCHW ? m.plane : 1};
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(pool_shape(base, config_of(base), s, p.shape, p.outputs));
  p.in = steps_of(config_of(base), p.shape.in);
  return SKUA_STATUS_OK;
}

skua_status choose_pool(const skua_op* base, const Plan& p, bool vectors, Chosen& chosen) {
  const PoolConfig& c = config_of(base);
  const WorkGroup group = map_group(base->ctx->gpu->about, p.shape.channels / (vectors ? 4 : 1));
  // a program for each of the common windows
  const int32_t side =
      p.shape.y.kernel == p.shape.x.kernel && p.shape.x.kernel <= 3 && !c.global ? int32_t(p.shape.x.kernel) : 0;
  const bool counts = c.kind == SKUA_POOL_AVERAGE && c.count_padding && !c.global;
  if (is_bytes(c)) {
    const KernelText& text = pool_bytes_texts.texts[vectors ? pool_bytes_s8_v4 : pool_bytes_s8_v1];
    return choose(
        base,
        {&text, {group.local[0], group.local[1], group.local[2]}, {c.kind, c.type == SKUA_DTYPE_U8, counts, side}},
        chosen);
  }
  return choose(base,
                {&text_of(pool_texts, vectors ? pool_f32_v4 : pool_f32_v1, 4, c.type),
                 {group.local[0], group.local[1], group.local[2]},
                 {fused(c.activation).kind, c.kind, counts, side}},
                chosen);
}

// Of whole maps: 16 vectors of channels at most, by 16 slices at most.
WorkGroup whole_group(const skua_op* base, const Plan& p, bool vectors) {
  const WorkGroup group = map_group(base->ctx->gpu->about, p.shape.channels / (vectors ? 4 : 1));
  const uint16_t x = min(group.local[0], uint16_t(16));
  return {{x, uint16_t(min(group.local[0] * group.local[1] / x, 16)), 1}};
}
skua_status choose_whole(const skua_op* base, const Plan& p, bool vectors, Part part, Chosen& chosen) {
  const PoolConfig& c = config_of(base);
  const WorkGroup group = whole_group(base, p, vectors);
  const bool line = p.in.row == p.shape.x.in * p.in.pixel || p.shape.y.in == 1;
  if (is_bytes(c)) {
    const KernelText& text = pool_bytes_texts.texts[vectors ? pool_bytes_s8_global4 : pool_bytes_s8_global1];
    return choose(base,
                  {&text,
                   {group.local[0], group.local[1], 1},
                   {c.kind, c.type == SKUA_DTYPE_U8, int32_t(part), group.local[1], line}},
                  chosen);
  }
  return choose(base,
                {&text_of(pool_texts, vectors ? pool_f32_global4 : pool_f32_global1, 4, c.type),
                 {group.local[0], group.local[1], 1},
                 {fused(c.activation).kind, c.kind, int32_t(part), group.local[1], line}},
                chosen);
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
  const Named small[] = {{"stride", max(s.y.stride, s.x.stride)},
                         {"dilation", max(s.y.dilation, s.x.dilation)},
                         {"padding", max(max(s.y.pad_before, s.x.pad_before), max(s.y.pad_after, s.x.pad_after))}};
  SKUA_TRY(need_pairs(base, small, 3));
  if (s.y.kernel > INT32_MAX / 2 || s.x.kernel > INT32_MAX / 2)
    return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu", base->cls->name, s.y.kernel, s.x.kernel);
  if (is_bytes(c) && c.kind == SKUA_POOL_AVERAGE && mul_sat(s.y.kernel, s.x.kernel) > kMostTaps)
    return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu bytes, more than %zu", base->cls->name, s.y.kernel, s.x.kernel,
                             kMostTaps);
  p.vectors = p.n_outputs == 1 && s.channels % 4 == 0 && fours(p.in) && fours(p.out);
  p.algorithm = c.global ? "global" : "window";
  p.parts = 1;
  if (is_whole(c)) {
    const WorkGroup group = whole_group(base, p, p.vectors);
    const size_t groups = ceil_div(s.channels / (p.vectors ? 4 : 1), group.local[0]) * s.batch;
    p.parts =
        choose_parts(base->ctx->gpu->about, s.y.in * s.x.in, groups, group.local[0] * group.local[1], group.local[1]);
    SKUA_TRY(choose_whole(base, p, p.vectors, p.parts > 1 ? Part::gives : Part::all, p.chosen));
    if (p.parts > 1) SKUA_TRY(choose_whole(base, p, p.vectors, Part::joins, p.joins));
  } else {
    SKUA_TRY(choose_pool(base, p, p.vectors, p.chosen));
  }
  p.text = p.chosen.text;
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* base, uint32_t) {
  const Plan& p = *static_cast<const Plan*>(base);
  return p.parts > 1 ? p.parts * p.shape.batch * p.shape.channels * sizeof(float) : 0;
}

// Of bytes, which kernels take as s8: zero points, of x in the lower half, of y in the upper, and the bounds of the
// result.
void add_requantization(Launch& l, const PoolConfig& c) {
  const bool average = c.kind == SKUA_POOL_AVERAGE;
  const int32_t shift = c.type == SKUA_DTYPE_U8 ? 128 : 0;
  l.add(int32_t(uint32_t(uint16_t(c.zero - shift)) | uint32_t(average ? c.zero_point : shift) << 16));
  l.add(bits_of(c.low - float(average ? 0 : shift)));
  l.add(bits_of(c.high - float(average ? 0 : shift)));
}

skua_status record_whole(const RecordArgs& args, Part part) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const PoolConfig& c = config_of(p.op);
  const PoolShape& s = p.shape;
  Launch l(args);
  const int32_t x = l.input(0), y = l.output(0),
                space = part == Part::all
                            ? 0
                            : l.bind(*args.workspace, {p.workspace, sizeof(float), true}, part == Part::gives);
  bool vectors = p.vectors;
  Chosen chosen = part == Part::joins ? p.joins : p.chosen;
  if (vectors && (x | y) % 4) {
    vectors = false;
    SKUA_TRY(choose_whole(p.op, p, false, part, chosen));  // rare: compiled now
  }
  // no part is empty: choose_parts()
  const size_t v = vectors ? 4 : 1, channels = s.channels / v, pixels = s.y.in * s.x.in, parts = p.parts,
               share = ceil_div(pixels, parts);
  l.add_size(channels);
  l.add_size(part == Part::joins ? parts : pixels);
  l.add_size(part == Part::joins ? parts : share);
  l.add_size(parts);
  l.add_size(s.x.in);
  l.add(is_bytes(c) ? bits_of(float(c.ratio / double(pixels))) : int32_t(pixels));
  add_map(l, 0, x, p.in, int32_t(v));
  l.add_offset(1, size_t(y), uint32_t(v));
  l.add_size(p.out.image / v);
  l.add_size(p.out.channel);
  if (part == Part::all) l.bind_again(1);
  l.add_offset(2, size_t(space), uint32_t(v));
  if (is_bytes(c)) {
    add_requantization(l, c);
  } else {
    l.add(bits_of(c.activation.a));
    l.add(bits_of(c.activation.b));
  }
  return l.record_groups(chosen, {{ceil_div(channels, chosen.local[0]), part == Part::gives ? parts : 1, s.batch}});
}

skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const PoolConfig& c = config_of(p.op);
  const PoolShape& s = p.shape;
  if (is_whole(c)) {
    SKUA_TRY(record_whole(args, p.parts > 1 ? Part::gives : Part::all));
    return p.parts > 1 ? record_whole(args, Part::joins) : SKUA_STATUS_OK;
  }
  Launch l(args);
  const int32_t x = l.input(0), y = l.output(0), positions = p.n_outputs > 1 ? l.output(1) : 0;
  if (p.n_outputs == 1) l.bind_again(1);
  if (has_factors(c)) l.bind_own(static_cast<const Op*>(p.op)->factors);
  else if (is_bytes(c)) l.bind_again(0);
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
  l.add(pair(s.y.stride, s.x.stride));
  l.add(pair(s.y.dilation, s.x.dilation));
  l.add(pair(s.y.pad_before, s.x.pad_before));
  l.add(pair(s.y.pad_after, s.x.pad_after));
  add_map(l, 0, x, p.in, v);
  add_map(l, 1, y, p.out, v);
  add_map(l, 2, positions, p.indices, 1);
  if (is_bytes(c)) {
    add_requantization(l, c);
  } else {
    l.add(bits_of(c.activation.a));
    l.add(bits_of(c.activation.b));
  }
  return l.record(chosen, size_t(channels), s.x.out, s.y.out * s.batch);
}

void explain(const skua_plan* plan, Text& text) {
  const Plan& p = *static_cast<const Plan*>(plan);
  if (p.chosen.text) text.add("  work-group %ux%ux%u\n", p.chosen.local[0], p.chosen.local[1], p.chosen.local[2]);
  if (p.parts > 1) text.add("  %zu parts of the map, joined by a second dispatch\n", p.parts);
}

const OpClass pool2d_class = {
    .name = "pool2d", .id = 83,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(PoolConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace,
    .explain = explain, .record = record, .close = close,
};

}  // namespace

skua_status create_pool(const skua_context* ctx, const skua_pool2d_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_movable(ctx, "pool2d", "type", d.type));
  PoolConfig c = pool_config(d);
  if (is_bytes(c)) SKUA_TRY(pool_quantization(d, c));
  skua_op* op;
  SKUA_TRY(new_op(pool2d_class, ctx, 1, d.kind == SKUA_POOL_MAX_INDICES ? 2 : 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}

}  // namespace skua::gpu
