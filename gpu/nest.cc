#include "gpu/nest.h"

#include "core/nest.h"
#include "gpu/choice.h"

namespace skua::gpu {
namespace {

constexpr uint32_t kLoops = 3;  // around a row, in a dispatch

skua_status too_large(const skua_op* op) {
  return SKUA_UNSUPPORTED_("%s: a tensor reaches over 2^31 elements; kernels count in 32 bits", op->cls->name);
}

// Whether a kernel of vectors can begin there.
bool aligned(const Grid& grid, uint32_t operands, const size_t* at) {
  bool yes = true;
  for (uint32_t o = 0; o < operands; ++o) yes = yes && (at[o] % 4 == 0 || (grid.scalars >> o & 1));
  return yes;
}

}  // namespace

bool make_grid(const Steps& l, uint32_t operands, uint32_t scalars, uint32_t most, Grid& grid) {
  grid = {};
  // Vectors: every operand goes along the row in steps of 1 or is one value, and rows begin at multiples of 4.
  bool vectors = most == 4 && l.extent[0] % 4 == 0;
  size_t reach[kMostOperands] = {}, elements = 1;
  for (uint32_t o = 0; o < operands; ++o) {
    const bool scalar = l.step[0][o] == 0 && (scalars >> o & 1);
    grid.scalars |= uint32_t(scalar) << o;
    if (!scalar) vectors = vectors && l.step[0][o] == 1;
    for (uint32_t d = 0; d < l.rank; ++d) {
      if (d && !scalar) vectors = vectors && l.step[d][o] % 4 == 0;
      reach[o] =
          add_sat(reach[o], mul_sat(l.extent[d] - 1, l.step[d][o] < 0 ? size_t(-l.step[d][o]) : size_t(l.step[d][o])));
    }
  }
  for (uint32_t d = 0; d < l.rank; ++d) elements = mul_sat(elements, l.extent[d]);
  for (uint32_t o = 0; o < operands; ++o)
    if (reach[o] > INT32_MAX || elements > INT32_MAX) return false;
  if (!vectors) grid.scalars = 0;
  grid.vector = vectors ? 4 : 1;
  const auto unit = [&](uint32_t o) { return vectors && !(grid.scalars >> o & 1) ? ptrdiff_t(4) : ptrdiff_t(1); };
  size_t n = l.extent[0] / grid.vector;
  grid.extent[0] = int32_t(n);
  for (uint32_t o = 0; o < operands; ++o) grid.step[o][0] = int32_t(l.step[0][o]);
  for (uint32_t d = 1; d <= kLoops; ++d) {
    const size_t extent = d < l.rank ? l.extent[d] : 1;
    if (d < kLoops) grid.extent[d] = int32_t(extent);
    n *= extent;
    for (uint32_t o = 0; o < operands; ++o) grid.step[o][d] = d < l.rank ? int32_t(l.step[d][o] / unit(o)) : 0;
  }
  grid.n = int32_t(n);
  for (uint32_t d = kLoops + 1; d < l.rank; ++d, ++grid.rounds) {
    grid.round_extent[grid.rounds] = l.extent[d];
    for (uint32_t o = 0; o < operands; ++o) grid.round_step[grid.rounds][o] = l.step[d][o];
  }
  return true;
}

skua_status choose_grid(const skua_op* op, const NestKernel& kernel, const Grid& grid, Chosen& chosen) {
  ProgramKey key = {grid.vector == 4 ? kernel.v4 : kernel.v1,
                    {line_threads(op->ctx->gpu->about), 1, 1},
                    {grid.n != grid.extent[0], int32_t(grid.scalars)}};
  memcpy(key.constants + 2, kernel.constants, sizeof kernel.constants);
  return choose(op, key, chosen);
}

skua_status record_grid(const Launch& base, const NestKernel& kernel, const Grid& grid, const Chosen& chosen,
                        const size_t* at) {
  uint32_t again[kMostOperands] = {};  // the second binding of an operand
  for (uint32_t o = 0, next = kernel.operands; o < kernel.operands && grid.vector == 4; ++o)
    if (kernel.scalars >> o & 1) again[o] = next++;
  size_t rounds = 1;
  for (uint32_t r = 0; r < grid.rounds; ++r) rounds *= grid.round_extent[r];
  for (size_t round = 0; round < rounds; ++round) {
    Launch launch = base;
    launch.add(grid.n);
    for (int32_t extent : grid.extent) launch.add(extent);
    for (uint32_t o = 0; o < kernel.operands; ++o) {
      size_t offset = at[o], left = round;
      for (uint32_t r = 0; r < grid.rounds; left /= grid.round_extent[r++])
        offset += size_t(ptrdiff_t(left % grid.round_extent[r]) * grid.round_step[r][o]);
      launch.add_offset(o, offset, grid.vector == 4 && !(grid.scalars >> o & 1) ? 4 : 1);
      if (again[o]) launch.dispatch.bindings[again[o]] = launch.dispatch.bindings[o];
      for (int32_t step : grid.step[o]) launch.add(step);
    }
    for (uint32_t i = 0; i < kernel.n_arguments; ++i) launch.add(kernel.arguments[i]);
    SKUA_TRY(launch.record(chosen, size_t(grid.n)));
  }
  return SKUA_STATUS_OK;
}

skua_status plan_nest(const skua_op* op, const NestKernel& kernel, NestPlan& plan, const skua_tensor* more) {
  plan.text = kernel.v1;
  if (element_count(plan.outputs[0]) == 0) return SKUA_STATUS_OK;
  const skua_tensor* tensors[kMostOperands] = {&plan.outputs[0]};
  for (uint32_t o = 1; o < kernel.operands; ++o) tensors[o] = o <= plan.n_inputs ? &plan.inputs[o - 1] : more++;
  Loops l;
  plan_loops(tensors, kernel.operands, 0, SIZE_MAX, l);
  plan.steps = {l.rank + 1, {l.row}, {}};
  for (uint32_t o = 0; o < kernel.operands; ++o) {
    plan.steps.step[0][o] = ptrdiff_t(l.row_step[o]);
    for (uint32_t d = 0; d < l.rank; ++d) plan.steps.step[d + 1][o] = ptrdiff_t(l.step[d][o]);
  }
  for (uint32_t d = 0; d < l.rank; ++d) plan.steps.extent[d + 1] = l.extent[d];
  if (!make_grid(plan.steps, kernel.operands, kernel.scalars, 4, plan.grid)) return too_large(op);
  SKUA_TRY(choose_grid(op, kernel, plan.grid, plan.chosen));
  plan.text = plan.chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_nest(const RecordArgs& args, const NestKernel& kernel, const skua_device_buffer* own,
                        size_t second) {
  const NestPlan& plan = *static_cast<const NestPlan*>(args.plan);
  Launch base(args);
  size_t at[kMostOperands];
  at[0] = size_t(base.output(0));
  const uint32_t given = uint32_t(plan.n_inputs) + 1;
  for (uint32_t o = 1; o < kernel.operands; ++o) {
    at[o] = o < given ? size_t(base.input(o - 1)) : (o - given) * second;
    if (o >= given) base.bind_own(own);
  }
  Grid grid = plan.grid;
  Chosen chosen = plan.chosen;
  if (grid.vector == 4 && !aligned(grid, kernel.operands, at)) {  // an offset that the plan could not know
    make_grid(plan.steps, kernel.operands, kernel.scalars, 1, grid);
    SKUA_TRY(choose_grid(plan.op, kernel, grid, chosen));
  }
  for (uint32_t o = 1; o < kernel.operands; ++o)
    if (grid.vector == 4 && (kernel.scalars >> o & 1)) base.bind_again(o);
  if (own && kernel.operands == given) base.bind_own(own);
  return record_grid(base, kernel, grid, chosen, at);
}

// ---- copies ---------------------------------------------------------------------------------------------------------
uint32_t bits_of(skua_dtype type, float value) {
  f16 half;
  bf16 brain;
  switch (type) {
    case SKUA_DTYPE_F16: narrow(value, half); return half.bits;
    case SKUA_DTYPE_BF16: narrow(value, brain); return brain.bits;
    default: return __builtin_bit_cast(uint32_t, value);
  }
}
namespace {

NestKernel copy_kernel(skua_dtype type, CopyFrom from) {
  const bool value = from.kind == CopyFrom::value;
  if (type == SKUA_DTYPE_S8 || type == SKUA_DTYPE_U8)
    return {copy_bytes_texts.texts + copy_bytes_s8_v1,
            copy_bytes_texts.texts + copy_bytes_s8_v4,
            2,
            0,
            {value},
            {int32_t(from.bits)},
            1};
  return {&copy_text(1, type), &copy_text(4, type), 2, 0, {value}, {int32_t(from.bits)}, 1};
}

Steps steps_of(const Nest& nest, bool one_value) {
  Steps s = {nest.rank, {}, {}};
  for (uint32_t d = 0; d < nest.rank; ++d) {
    const uint32_t from = nest.rank - 1 - d;
    s.extent[d] = nest.extent[from];
    s.step[d][0] = nest.y[from];
    s.step[d][1] = one_value ? nest.y[from] : nest.x[from];  // not read
  }
  return s;
}

// Where memory is read along one loop and written along another: copy_tile's loops, 0 that which is written along, 1
// that which is read along.
struct Square {
  size_t extent[4];
  int32_t x[4], y[4];
};
bool square_of(const Steps& s, Square& q) {
  constexpr size_t kLeast = 16;  // half a square
  uint32_t along = 1;
  while (along < s.rank && s.step[along][1] != 1) ++along;
  if (s.rank > 4 || along >= s.rank || s.step[0][0] != 1 || s.step[0][1] == 1 || s.extent[0] < kLeast ||
      s.extent[along] < kLeast)
    return false;
  q = {{1, 1, 1, 1}, {}, {}};
  for (uint32_t d = 0, next = 2; d < s.rank; ++d) {
    const uint32_t to = d == 0 ? 0 : d == along ? 1 : next++;
    q.extent[to] = s.extent[d];
    q.x[to] = int32_t(s.step[d][1]);
    q.y[to] = int32_t(s.step[d][0]);
  }
  return true;
}
bool by_squares(const skua_plan* plan, const Steps& steps, CopyFrom from, Square& q) {
  const skua_dtype type = plan->outputs[0].type;
  Grid grid;
  return make_grid(steps, 2, 0, 1, grid) && from.kind != CopyFrom::value && type != SKUA_DTYPE_S8 &&
         type != SKUA_DTYPE_U8 && choose_squares(plan->op->ctx->gpu->about) && square_of(steps, q);
}
skua_status choose_square(const skua_plan* plan, Chosen& chosen) {
  return choose(plan->op,
                {&copy_tile_texts.texts[plan->outputs[0].type == SKUA_DTYPE_F32 ? copy_tile_f32_v1 : copy_tile_f16_v1],
                 {32, 8, 1},
                 {}},
                chosen);
}

skua_status prepare_copy(const skua_plan* plan, const Nest& nest, CopyFrom from, const size_t* at, Grid& grid,
                         Chosen& chosen) {
  const Steps steps = steps_of(nest, from.kind == CopyFrom::value);
  if (!make_grid(steps, 2, 0, 4, grid)) return too_large(plan->op);
  if (grid.vector == 4 && !aligned(grid, 2, at)) make_grid(steps, 2, 0, 1, grid);
  return choose_grid(plan->op, copy_kernel(plan->outputs[0].type, from), grid, chosen);
}

}  // namespace

skua_status plan_copy(skua_plan* plan, const Nest& nest, CopyFrom from, size_t to) {
  if (!plan->text) plan->text = copy_kernel(plan->outputs[0].type, from).v1;
  if (nest.count() == 0) return SKUA_STATUS_OK;
  Grid grid;
  Square square;
  Chosen chosen;
  const size_t at[] = {to, from.kind == CopyFrom::value ? to : from.offset};
  if (by_squares(plan, steps_of(nest, false), from, square)) SKUA_TRY(choose_square(plan, chosen));
  else SKUA_TRY(prepare_copy(plan, nest, from, at, grid, chosen));
  plan->text = chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_copy(const RecordArgs& args, const Nest& nest, CopyFrom from, size_t to) {
  if (nest.count() == 0) return SKUA_STATUS_OK;
  Launch base(args);
  size_t at[2];
  at[0] = size_t(base.output(0));
  at[1] = (from.kind == CopyFrom::input ? size_t(base.input(from.index)) : at[0]) + from.offset;
  if (from.kind != CopyFrom::input) {
    base.bind_again(0);
    base.dispatch.bindings[1].written = false;
  }
  at[0] += to;
  if (from.kind == CopyFrom::value) at[1] = at[0];
  Grid grid;
  Square q;
  Chosen chosen;
  if (by_squares(args.plan, steps_of(nest, false), from, q)) {
    SKUA_TRY(choose_square(args.plan, chosen));
    for (int i = 0; i < 3; ++i) base.add_size(q.extent[i]);
    base.add_offset(1, at[1]);
    base.add(q.x[0]); base.add(q.x[2]); base.add(q.x[3]);
    base.add_offset(0, at[0]);
    base.add(q.y[1]); base.add(q.y[2]); base.add(q.y[3]);
    return base.record_groups(
        chosen, {{ceil_div(q.extent[0], size_t(32)), ceil_div(q.extent[1], size_t(32)), q.extent[2] * q.extent[3]}});
  }
  SKUA_TRY(prepare_copy(args.plan, nest, from, at, grid, chosen));
  return record_grid(base, copy_kernel(args.plan->outputs[0].type, from), grid, chosen, at);
}

// ---- y = x * gamma + beta -------------------------------------------------------------------------------------------
namespace {

NestKernel affine_kernel(skua_dtype type) {
  return {&text_of(affine_texts, affine_f32_v1, 2, type),
          &text_of(affine_texts, affine_f32_v4, 2, type),
          4,
          1u << 2 | 1u << 3,
          {},
          {},
          0};
}

Steps affine_steps(const skua_plan* plan, uint32_t channel) {
  const skua_tensor &y = plan->outputs[0], &x = plan->inputs[0];
  skua_tensor factors = tensor(SKUA_DTYPE_F32, y.rank);
  for (uint32_t d = 0; d < y.rank; ++d) factors.shape[d] = d == channel ? y.shape[d] : 1;
  set_dense(factors);
  const skua_tensor* const tensors[] = {&y, &x, &factors, &factors};
  Loops l;
  plan_loops(tensors, 4, 0, SIZE_MAX, l);
  Steps s = {l.rank + 1, {l.row}, {}};
  for (uint32_t o = 0; o < 4; ++o) {
    s.step[0][o] = ptrdiff_t(l.row_step[o]);
    for (uint32_t d = 0; d < l.rank; ++d) s.step[d + 1][o] = ptrdiff_t(l.step[d][o]);
  }
  for (uint32_t d = 0; d < l.rank; ++d) s.extent[d + 1] = l.extent[d];
  return s;
}

skua_status prepare_affine(const skua_plan* plan, uint32_t channel, const size_t* at, Grid& grid, Chosen& chosen) {
  const NestKernel kernel = affine_kernel(plan->outputs[0].type);
  const Steps steps = affine_steps(plan, channel);
  if (!make_grid(steps, 4, kernel.scalars, 4, grid)) return too_large(plan->op);
  if (grid.vector == 4 && !aligned(grid, 4, at)) make_grid(steps, 4, kernel.scalars, 1, grid);
  return choose_grid(plan->op, kernel, grid, chosen);
}

}  // namespace

skua_status plan_affine(skua_plan* plan, uint32_t channel) {
  Grid grid;
  Chosen chosen;
  const size_t at[kMostOperands] = {};
  SKUA_TRY(prepare_affine(plan, channel, at, grid, chosen));
  plan->text = chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_affine(const RecordArgs& args, uint32_t channel, const skua_device_buffer* factors,
                          size_t channels) {
  Launch base(args);
  size_t at[kMostOperands] = {size_t(base.output(0))};
  at[1] = size_t(base.input(0));
  at[3] = round_up(channels, 4);
  for (int i = 0; i < 2; ++i) base.bind_own(factors);
  Grid grid;
  Chosen chosen;
  SKUA_TRY(prepare_affine(args.plan, channel, at, grid, chosen));
  if (grid.vector == 4)
    for (int i = 0; i < 2; ++i) base.bind_own(factors);
  return record_grid(base, affine_kernel(args.plan->outputs[0].type), grid, chosen, at);
}

}  // namespace skua::gpu
