// Padding. The input is copied into the middle; then, from the innermost dimension outwards, what lies before and after
// the middle is filled: with the value, or from what is already there - mirrored (a copy with a negative stride) or the
// edge repeated (a stride of 0).
#include <skua/data.h>

#include "data/copy.h"
#include "gpu/operators.h"

namespace skua {
namespace {

struct Config {
  uint32_t type, mode, rank, value;  // value: bits, the lowest
  uint64_t before[SKUA_MAX_RANK], after[SKUA_MAX_RANK];
};
struct Op : skua_op {
  CopyKernels kernels;
  Config config;
};
struct Step {
  Copy copy;
  size_t from, to;  // elements of y; from is not used by the middle and by CONSTANT
};
struct Plan : skua_plan {
  size_t steps;
  Step step[1 + 2 * SKUA_MAX_RANK];
};

#ifdef SKUA_BUILT_gpu
gpu::CopyFrom source(const Plan& p, size_t i) {
  const Config& c = static_cast<const Op*>(p.op)->config;
  if (i == 0) return {gpu::CopyFrom::input, 0, 0, 0};
  if (c.mode != SKUA_PAD_CONSTANT) return {gpu::CopyFrom::output, 0, p.step[i].from, 0};
  return {gpu::CopyFrom::value, 0, 0, c.value};
}
skua_status plan_steps(Plan& p) {
  for (size_t i = 0; i < p.steps; ++i)
    if (p.step[i].copy.elements) SKUA_TRY(gpu::plan_copy(&p, p.step[i].copy.nest, source(p, i), p.step[i].to));
  return SKUA_STATUS_OK;
}
skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  for (size_t i = 0; i < p.steps; ++i)
    if (p.step[i].copy.elements) SKUA_TRY(gpu::record_copy(args, p.step[i].copy.nest, source(p, i), p.step[i].to));
  return SKUA_STATUS_OK;
}
#endif

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Config& c = static_cast<const Op*>(base)->config;
  SKUA_TRY(need_rank(base, s, 0, c.rank));
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  skua_tensor& y = out->outputs[0];
  y = tensor(skua_dtype(c.type), c.rank);
  for (uint32_t d = 0; d < c.rank; ++d) {
    const size_t extent = s.inputs[0].shape[d], before = size_t(c.before[d]), after = size_t(c.after[d]);
    if (!add(extent, before, y.shape[d]) || !add(y.shape[d], after, y.shape[d]))
      return SKUA_INVALID("pad: output 0 is larger than the address space");
    if (c.mode == SKUA_PAD_CONSTANT || (!before && !after)) continue;
    if (c.mode == SKUA_PAD_EDGE && !extent)
      return SKUA_INVALID("pad: input 0 has extent 0 in dimension %u: there is no edge to repeat", d);
    if (c.mode != SKUA_PAD_REFLECT) continue;
    if (before >= extent)
      return SKUA_INVALID("pad: before[%u] is %zu, must be below the extent %zu to be reflected", d, before, extent);
    if (after >= extent)
      return SKUA_INVALID("pad: after[%u] is %zu, must be below the extent %zu to be reflected", d, after, extent);
  }
  out->algorithm = c.mode == SKUA_PAD_CONSTANT  ? "pad_constant"
                   : c.mode == SKUA_PAD_REFLECT ? "pad_reflect"
                                                : "pad_edge";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor &x = p.inputs[0], &y = p.outputs[0];
  if (element_count(y) == 0) return SKUA_STATUS_OK;
  Nest nest;
  size_t corner = 0;  // the middle's first element
  for (uint32_t d = 0; d < c.rank; ++d) {
    nest.add(x.shape[d], x.stride[d], y.stride[d]);
    corner += size_t(c.before[d]) * y.stride[d];
  }
  p.step[p.steps++] = {make_copy(op.kernels, nest), 0, corner};
  p.kernel = p.step[0].copy.kernel;
  for (uint32_t d = c.rank; d-- > 0;) {
    const size_t before = size_t(c.before[d]), after = size_t(c.after[d]), extent = x.shape[d], stride = y.stride[d];
    // Dimensions inside are whole by now, those outside still have their middle only.
    corner -= before * stride;
    for (int side = 0; side < 2; ++side) {
      const size_t many = side ? after : before;
      if (!many) continue;
      const size_t to = corner + (side ? before + extent : 0) * stride;
      size_t from = 0;
      ptrdiff_t step = 0;
      if (c.mode == SKUA_PAD_REFLECT) {
        from = corner + (side ? before + extent - 2 : 2 * before) * stride;
        step = -ptrdiff_t(stride);
      } else if (c.mode == SKUA_PAD_EDGE) {
        from = corner + (side ? before + extent - 1 : before) * stride;
      }
      nest.rank = 0;
      for (uint32_t i = 0; i < c.rank; ++i) {
        const ptrdiff_t s = ptrdiff_t(y.stride[i]);
        const bool constant = c.mode == SKUA_PAD_CONSTANT;
        if (i == d) nest.add_signed(many, constant ? 0 : step, s);
        else nest.add_signed(i < d ? x.shape[i] : y.shape[i], constant ? 0 : s, s);
      }
      p.step[p.steps++] = {make_copy(op.kernels, nest), from, to};
    }
  }
  SKUA_ON_GPU_HERE(op.ctx, plan_steps(p));
  return SKUA_STATUS_OK;
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const Config& c = static_cast<const Op*>(p.op)->config;
  if (!p.steps) return;
  char* y = args.out<char>(0);
  for (size_t i = 0; i < p.steps; ++i) {
    const Step& s = p.step[i];
    if (!s.copy.elements) continue;
    const size_t bytes = s.copy.element;
    const void* from = i == 0                        ? args.in<void>(0)
                       : c.mode == SKUA_PAD_CONSTANT ? static_cast<const void*>(&c.value)
                                                     : y + s.from * bytes;
    run_copy(args, s.copy, from, y + s.to * bytes);
  }
}

const OpClass pad_class = {
    .name = "pad", .id = 46,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open_copies<Op>, .plan = make_plan, .finish = finish, .run = run,
    .record = SKUA_RECORD(record),
};

// Rounded to nearest even, saturated to [low, high]; NaN gives 0.
int32_t to_integer(float x, int32_t low, int32_t high) {
  if (!(x == x)) return 0;
  if (x >= float(high)) return high;
  if (x <= float(low)) return low;
  const int32_t whole = int32_t(x);
  const double rest = double(x) - double(whole);
  if (rest > 0.5 || (rest == 0.5 && (whole & 1))) return whole + 1;
  if (rest < -0.5 || (rest == -0.5 && (whole & 1))) return whole - 1;
  return whole;
}

template <class T> uint16_t narrowed(float x) {
  T to;
  narrow(x, to);
  return to.bits;
}

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_pad_create(skua_context* context, const skua_pad_desc* desc, skua_op** out) {
  skua_pad_desc d = {};
  SKUA_TRY(read_desc("pad", context, desc, d, out));
  SKUA_TRY(need_movable("pad", d.type));
  if (unsigned(d.mode) > SKUA_PAD_EDGE) return SKUA_INVALID("pad: mode is %d, unknown", int(d.mode));
  if (d.rank < 1 || d.rank > SKUA_MAX_RANK)
    return SKUA_INVALID("pad: rank is %u, must be 1..%d", d.rank, SKUA_MAX_RANK);
  Config c = {};
  c.type = uint32_t(d.type);
  c.mode = uint32_t(d.mode);
  c.rank = d.rank;
  for (uint32_t i = 0; i < d.rank; ++i) {
    c.before[i] = d.before[i];
    c.after[i] = d.after[i];
  }
  if (d.type == SKUA_DTYPE_S32) c.value = uint32_t(to_integer(d.value, INT32_MIN, INT32_MAX));
  else if (d.type == SKUA_DTYPE_S8) c.value = uint8_t(to_integer(d.value, INT8_MIN, INT8_MAX));
  else if (d.type == SKUA_DTYPE_U8) c.value = uint8_t(to_integer(d.value, 0, UINT8_MAX));
  else if (d.type == SKUA_DTYPE_F16) c.value = narrowed<f16>(d.value);
  else if (d.type == SKUA_DTYPE_BF16) c.value = narrowed<bf16>(d.value);
  else memcpy(&c.value, &d.value, sizeof d.value);
  skua_op* op;
  SKUA_TRY(new_op(pad_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}
