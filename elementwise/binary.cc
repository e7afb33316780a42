// Binary operators z = act(f(x, y)) and select, with broadcasting. See skua/elementwise.h for the functions.
#include <skua/elementwise.h>

#include "core/activation.h"
#include "core/families.h"
#include "elementwise/binary_kernel.h"
#include "elementwise/loops.h"
#include "elementwise/quantized.h"
#include "gpu/operators.h"

namespace skua {
namespace {

#define SKUA_BINARY(number, kind, name, cycles, expression) static_assert(number == SKUA_BINARY_##kind);
#include "elementwise/binary.def"
#undef SKUA_BINARY

constexpr uint8_t cycles_per_vector[SKUA_BINARY_KIND_COUNT] = {
#define SKUA_BINARY(number, kind, name, cycles, expression) cycles,
#include "elementwise/binary.def"
#undef SKUA_BINARY
};
constexpr const char* names[SKUA_BINARY_KIND_COUNT] = {
#define SKUA_BINARY(number, kind, name, cycles, expression) #name,
#include "elementwise/binary.def"
#undef SKUA_BINARY
};

// An activation that is not a clamp finds a call's results in the first-level cache.
constexpr size_t kActivationRow = 2048;

struct Config {
  uint32_t kind, type;
  skua_activation activation;
};

struct Op : skua_op {
  Config config;
  const Kernel* kernel;
  Activation activation;
};

struct Plan : skua_plan {
  Loops loops;
  double cycles;  // per element
  BinaryForm form;
};

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  op.kernel = find_kernel(op.ctx, binary_tables, KernelKind::binary, int(op.config.kind), Element(op.config.type));
  if (!op.kernel) return SKUA_UNSUPPORTED_("binary: %s has no kernel in this build", names[op.config.kind]);
  return resolve_activation(&op, op.config.activation, op.activation, Element(op.config.type));
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const Op& op = *static_cast<const Op*>(base);
  plan->algorithm = names[op.config.kind];
  plan->kernel = op.kernel;
  return broadcast_shape(base, skua_dtype(op.config.type), s, plan->outputs[0]);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0], &p.inputs[1]};
  plan_loops(tensors, 3, 1u << 1 | 1u << 2, op.activation.kernel ? kActivationRow : SIZE_MAX, p.loops);
  p.form = p.loops.feed[1] == Feed::scalar   ? BinaryForm::x_scalar
           : p.loops.feed[2] == Feed::scalar ? BinaryForm::y_scalar
                                             : BinaryForm::vectors;
  const double arithmetic =
      double(cycles_per_vector[op.config.kind] + (op.activation.kernel ? 12 : 0)) / op.kernel->vector;
  const double memory = 0.375 * p.loops.size[0];  // 1.5 for 12 bytes through it
  p.cycles = arithmetic > memory ? arithmetic : memory;
  return SKUA_STATUS_OK;
}

void compute_rows(const void* arg, const RowArgs& row) {
  const Plan& p = *static_cast<const Plan*>(arg);
  const Op& op = *static_cast<const Op*>(p.op);
  const size_t* const step = row.step;
  const BinaryRows rows = {row.n,   row.rows, p.form,  row.at[1],         row.at[2],         row.at[0],
                           step[1], step[2],  step[0], op.activation.low, op.activation.high};
  code_of<BinaryFn>(op.kernel)(rows);
  if (op.activation.kernel)
    for (size_t r = 0; r < row.rows; ++r) apply_row(op.activation, row.n, row.row(0, r));
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const Activation& activation = static_cast<const Op*>(p.op)->activation;
  if (one_call(args, p.loops)) {
    note_use(p.kernel);
    code_of<BinaryFn>(p.kernel)({p.loops.row, 1, p.form, args.in<void>(0), args.in<void>(1), args.out<void>(0), 0, 0, 0,
                                 activation.low, activation.high});
    if (!activation.kernel) return;
    note_use(activation.kernel);
    return apply_row(activation, p.loops.row, args.out<void>(0));
  }
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0)),
                                     const_cast<char*>(args.in<char>(1))};
  run_loops(args, p.loops, base, p.cycles, compute_rows, &p, p.kernel, activation.kernel);
}

void explain(const skua_plan* plan, Text& text) { explain_loops(static_cast<const Plan*>(plan)->loops, text); }

const OpClass binary_class = {
    .name = "binary", .id = 9,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .explain = explain,
};

// ---- select ---------------------------------------------------------------------------------------------------------
struct SelectOp : skua_op {
  uint32_t config;  // the type
  const Kernel* kernel;
};
struct SelectPlan : skua_plan {
  Loops loops;
};

skua_status select_open(skua_op* base) {
  SelectOp& op = *static_cast<SelectOp*>(base);
  op.kernel = find_kernel(op.ctx, binary_tables, KernelKind::select, int(element_bytes(Element(op.config))));
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("select: no kernel in this build");
}

skua_status select_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  plan->kernel = static_cast<const SelectOp*>(base)->kernel;
  return broadcast_shape(base, skua_dtype(static_cast<const SelectOp*>(base)->config), s, plan->outputs[0]);
}

skua_status select_finish(const skua_op*, skua_plan* out) {
  SelectPlan& p = *static_cast<SelectPlan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0], &p.inputs[1], &p.inputs[2]};
  plan_loops(tensors, 4, 0, SIZE_MAX, p.loops);
  return SKUA_STATUS_OK;
}

void select_rows(const void* arg, const RowArgs& row) {
  const Kernel* kernel = static_cast<const Kernel*>(arg);
  const auto fn = code_of<SelectFn>(kernel);
  for (size_t r = 0; r < row.rows; ++r) fn(row.n, row.row(1, r), row.row(2, r), row.row(3, r), row.row(0, r));
}

void select_run(const RunArgs& args) {
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0)),
                                     const_cast<char*>(args.in<char>(1)), const_cast<char*>(args.in<char>(2))};
  const Kernel* kernel = args.plan->kernel;
  run_loops(args, static_cast<const SelectPlan*>(args.plan)->loops, base, 2, select_rows, kernel, kernel);
}

void select_explain(const skua_plan* plan, Text& text) {
  explain_loops(static_cast<const SelectPlan*>(plan)->loops, text);
}

const OpClass select_class = {
    .name = "select", .id = 10,
    .op_size = sizeof(SelectOp), .plan_size = sizeof(SelectPlan), .config_offset = offsetof(SelectOp, config),
    .config_size = sizeof(uint32_t),
    .in_place = true,
    .open = select_open, .plan = select_plan, .finish = select_finish, .run = select_run,
    .explain = select_explain,
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_binary_create(skua_context* context, const skua_binary_desc* desc, skua_op** out) {
  skua_binary_desc d = {};
  SKUA_TRY(read_desc("binary", context, desc, d, out));
  if (unsigned(d.kind) >= SKUA_BINARY_KIND_COUNT) return SKUA_INVALID("binary: kind is %d, unknown", int(d.kind));
  if (is_bytes(d.type)) return create_binary_bytes(context, d, out);
  SKUA_TRY(need_float("binary", "type", d.type, true));
  SKUA_TRY(need_unquantized("binary", "x_q", d.x_q));
  SKUA_TRY(need_unquantized("binary", "y_q", d.y_q));
  SKUA_TRY(need_unquantized("binary", "output_q", d.output_q));
  SKUA_TRY(check_activation("binary", d.activation));
  SKUA_ON_GPU(context, create_binary(context, d, out));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(binary_class, context, 2, 1, 0, &op));
  static_cast<Op*>(op)->config = {uint32_t(d.kind), uint32_t(d.type), d.activation};
  return open_op(op, out);
}

skua_status skua_select_create(skua_context* context, const skua_select_desc* desc, skua_op** out) {
  skua_select_desc d = {};
  SKUA_TRY(read_desc("select", context, desc, d, out));
  SKUA_TRY(need_float("select", "type", d.type));
  SKUA_ON_GPU(context, create_select(context, d, out));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(select_class, context, 3, 1, 0, &op));
  static_cast<SelectOp*>(op)->config = uint32_t(d.type);
  return open_op(op, out);
}

}  // extern "C"
