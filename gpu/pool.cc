// Pooling on a device. See skua/pool.h; kernel: gpu/kernels/pool.k.
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
};

constexpr size_t kMostTaps = size_t(1) << 23;      // their sum and that of the zero points fit 32 bits
constexpr size_t kMostFactors = size_t(1) << 16;

bool is_bytes(const PoolConfig& c) { return is_int8(Element(c.type)); }
bool has_factors(const PoolConfig& c) { return is_bytes(c) && c.kind == SKUA_POOL_AVERAGE && !c.global; }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const PoolConfig& c = op.config;
  if (!has_factors(c)) return SKUA_STATUS_OK;
  const size_t n = mul_sat(c.kernel[0], c.kernel[1]), bytes = n * sizeof(float);
  if (n > kMostFactors) return SKUA_UNSUPPORTED_("pool2d: a window of %u x %u bytes, more than %zu on a GPU", c.kernel[0], c.kernel[1], kMostFactors);
  auto* const factors = static_cast<float*>(allocate(op.ctx, bytes, 16));
  if (!factors) return out_of_memory("pool2d", bytes);
  for (size_t i = 0; i < n; ++i) factors[i] = float(c.ratio / double(i + 1));
  const skua_status s = upload(&op, factors, bytes, &op.factors);
  release(op.ctx, factors, bytes);
  return s;
}
void close(skua_op* op) { free_buffer(static_cast<Op*>(op)->factors); }

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
  if (is_bytes(c)) {
    const KernelText& text = pool_bytes_texts.texts[vectors ? pool_bytes_s8_v4 : pool_bytes_s8_v1];
    return choose(base, {&text, {group.local[0], group.local[1], group.local[2]}, {c.kind, counts, c.global, c.type == SKUA_DTYPE_U8}}, chosen);
  }
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
  if (is_bytes(c) && c.kind == SKUA_POOL_AVERAGE && mul_sat(s.y.kernel, s.x.kernel) > kMostTaps)
    return SKUA_UNSUPPORTED_("%s: a window of %zu x %zu bytes, more than %zu", base->cls->name, s.y.kernel, s.x.kernel, kMostTaps);
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
  l.add(pair(s.y.stride, s.x.stride)); l.add(pair(s.y.dilation, s.x.dilation)); l.add(pair(s.y.pad_before, s.x.pad_before)); l.add(pair(s.y.pad_after, s.x.pad_after));
  add_map(l, 0, x, p.in, v);
  add_map(l, 1, y, p.out, v);
  if (is_bytes(c)) {
    const int32_t shift = c.type == SKUA_DTYPE_U8 ? 128 : 0;  // kernels take bytes as s8
    const bool average = c.kind == SKUA_POOL_AVERAGE;
    if (average) {
      const int32_t unused[] = {0, bits_of(float(c.ratio / double(s.y.kernel * s.x.kernel))), 0, 0, 0};  // the factor of a global one
      for (int32_t v : unused) l.add(v);
    } else {
      add_map(l, 2, positions, p.indices, 1);
    }
    l.add(int32_t(uint32_t(uint16_t(c.zero - shift)) | uint32_t(average ? c.zero_point : shift) << 16));
    l.add(bits_of(c.low - float(average ? 0 : shift)));
    l.add(bits_of(c.high - float(average ? 0 : shift)));
  } else {
    add_map(l, 2, positions, p.indices, 1);
    l.add(bits_of(c.activation.a));
    l.add(bits_of(c.activation.b));
  }
  return l.record(chosen, size_t(channels), s.x.out, s.y.out * s.batch);
}

void explain(const skua_plan* plan, Text& text) {
  const Chosen& chosen = static_cast<const Plan*>(plan)->chosen;
  if (chosen.text) text.add("  work-group %ux%ux%u\n", chosen.local[0], chosen.local[1], chosen.local[2]);
}

const OpClass pool2d_class = {"pool2d", 83, sizeof(Op), sizeof(Plan), offsetof(Op, config), sizeof(PoolConfig), false, open, make_plan, finish, nullptr, nullptr, explain, nullptr, record, close};

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
