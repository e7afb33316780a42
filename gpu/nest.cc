#include "gpu/nest.h"

namespace skua::gpu {
namespace {

constexpr uint32_t kLoops = 3;  // around a row, in a dispatch

// Of the plan's tensors; vectors of `most` elements at most.
skua_status make_nest(const skua_op* op, const NestKernel& kernel, const skua_plan& plan, uint32_t most, Nest& nest) {
  const skua_tensor* tensors[kMostOperands] = {&plan.outputs[0]};
  for (uint32_t o = 1; o < kernel.operands; ++o) tensors[o] = &plan.inputs[o - 1];
  Loops l;
  plan_loops(tensors, kernel.operands, 0, SIZE_MAX, l);
  nest = {};
  for (uint32_t o = 0; o < kernel.operands; ++o)
    if (span_of(*tensors[o]).bytes / l.size[o] > INT32_MAX || l.elements > INT32_MAX)
      return SKUA_UNSUPPORTED_("%s: a tensor reaches over 2^31 elements; kernels count in 32 bits", op->cls->name);
  // Vectors: every operand goes along the row in steps of 1 or is one value, and rows begin at multiples of 4.
  bool vectors = most == 4 && l.row % 4 == 0;
  for (uint32_t o = 0; o < kernel.operands; ++o) {
    const bool scalar = l.row_step[o] == 0 && (kernel.scalars >> o & 1);
    nest.scalars |= uint32_t(scalar) << o;
    if (scalar) continue;
    vectors = vectors && l.row_step[o] == 1;
    for (uint32_t d = 0; d < l.rank; ++d) vectors = vectors && l.step[d][o] % 4 == 0;
  }
  if (!vectors) nest.scalars = 0;
  nest.vector = vectors ? 4 : 1;
  const auto unit = [&](uint32_t o) { return vectors && !(nest.scalars >> o & 1) ? 4u : 1u; };
  size_t n = l.row / nest.vector;
  nest.extent[0] = int32_t(n);
  for (uint32_t o = 0; o < kernel.operands; ++o) nest.step[o][0] = int32_t(l.row_step[o]);
  for (uint32_t d = 0; d < kLoops; ++d) {
    const size_t extent = d < l.rank ? l.extent[d] : 1;
    if (d + 1 < kLoops) nest.extent[d + 1] = int32_t(extent);
    n *= extent;
    for (uint32_t o = 0; o < kernel.operands; ++o) nest.step[o][d + 1] = d < l.rank ? int32_t(l.step[d][o] / unit(o)) : 0;
  }
  nest.n = int32_t(n);
  for (uint32_t d = kLoops; d < l.rank; ++d, ++nest.rounds) {
    nest.round_extent[nest.rounds] = l.extent[d];
    for (uint32_t o = 0; o < kernel.operands; ++o) nest.round_step[nest.rounds][o] = l.step[d][o];
  }
  return SKUA_STATUS_OK;
}

skua_status choose_nest(const skua_op* op, const NestKernel& kernel, const Nest& nest, Chosen& chosen) {
  ProgramKey key = {nest.vector == 4 ? kernel.v4 : kernel.v1, {line_threads(op->ctx->gpu->about), 1, 1}, {nest.n != nest.extent[0], int32_t(nest.scalars)}};
  memcpy(key.constants + 2, kernel.constants, sizeof kernel.constants);
  return choose(op, key, chosen);
}

}  // namespace

skua_status plan_nest(const skua_op* op, const NestKernel& kernel, NestPlan& plan) {
  if (element_count(plan.outputs[0]) == 0) {
    plan.text = kernel.v1;
    return SKUA_STATUS_OK;
  }
  SKUA_TRY(make_nest(op, kernel, plan, 4, plan.nest));
  SKUA_TRY(choose_nest(op, kernel, plan.nest, plan.chosen));
  plan.text = plan.chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_nest(const RecordArgs& args, const NestKernel& kernel) {
  const NestPlan& plan = *static_cast<const NestPlan*>(args.plan);
  const skua_op* const op = plan.op;
  Launch base(args);
  int32_t at[kMostOperands];
  at[0] = base.output(0);
  for (uint32_t o = 1; o < kernel.operands; ++o) at[o] = base.input(o - 1);
  Nest nest = plan.nest;
  Chosen chosen = plan.chosen;
  bool aligned = true;
  for (uint32_t o = 0; o < kernel.operands; ++o) aligned = aligned && (at[o] % 4 == 0 || (nest.scalars >> o & 1));
  for (uint32_t r = 0; r < nest.rounds; ++r)
    for (uint32_t o = 0; o < kernel.operands; ++o) aligned = aligned && nest.round_step[r][o] % 4 == 0;
  if (nest.vector == 4 && !aligned) {  // an offset that the plan could not know
    SKUA_TRY(make_nest(op, kernel, plan, 1, nest));
    SKUA_TRY(choose_nest(op, kernel, nest, chosen));
  }
  for (uint32_t o = 1; o < kernel.operands; ++o)
    if (chosen.text == kernel.v4 && (kernel.scalars >> o & 1)) base.bind_again(o);
  const size_t threads = chosen.local[0], groups = ceil_div(size_t(nest.n), threads);
  const size_t width = min(groups, 65535) * threads;
  size_t rounds = 1;
  for (uint32_t r = 0; r < nest.rounds; ++r) rounds *= nest.round_extent[r];
  for (size_t round = 0; round < rounds; ++round) {
    Launch launch = base;
    launch.add(nest.n);
    launch.add(int32_t(width));
    for (int32_t extent : nest.extent) launch.add(extent);
    for (uint32_t o = 0; o < kernel.operands; ++o) {
      size_t offset = size_t(at[o]), left = round;
      for (uint32_t r = 0; r < nest.rounds; left /= nest.round_extent[r++]) offset += left % nest.round_extent[r] * nest.round_step[r][o];
      launch.add(int32_t(nest.vector == 4 && !(nest.scalars >> o & 1) ? offset / 4 : offset));
      for (int32_t step : nest.step[o]) launch.add(step);
    }
    for (uint32_t i = 0; i < kernel.n_arguments; ++i) launch.add(kernel.arguments[i]);
    SKUA_TRY(launch.record(chosen, width, ceil_div(size_t(nest.n), width)));
  }
  return SKUA_STATUS_OK;
}

}  // namespace skua::gpu
