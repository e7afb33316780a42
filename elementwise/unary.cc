// Unary operators: y = f(x). See skua/elementwise.h for the functions.
#include <skua/elementwise.h>

#include "core/families.h"
#include "elementwise/loops.h"
#include "elementwise/quantized.h"
#include "elementwise/unary_kernel.h"
#include "gpu/operators.h"

namespace skua {
namespace {

#define SKUA_UNARY(number, kind, name, cycles, expression) static_assert(number == SKUA_UNARY_##kind);
#include "elementwise/unary.def"
#undef SKUA_UNARY

constexpr uint8_t cycles_per_vector[SKUA_UNARY_KIND_COUNT] = {
#define SKUA_UNARY(number, kind, name, cycles, expression) cycles,
#include "elementwise/unary.def"
#undef SKUA_UNARY
};
constexpr const char* names[SKUA_UNARY_KIND_COUNT] = {
#define SKUA_UNARY(number, kind, name, cycles, expression) #name,
#include "elementwise/unary.def"
#undef SKUA_UNARY
};

struct Config {
  uint32_t kind, type, strict;
  float a, b;
};

struct Op : skua_op {
  Config config;
  const Kernel* kernel;
};

struct Plan : skua_plan {
  Loops loops;
  double cycles;  // per element
};

bool serves(const Kernel* k, void* arg) {
  const Config& c = static_cast<const Op*>(arg)->config;
  return k->variant == int(c.kind) || (!c.strict && k->variant == kInHalves + int(c.kind));
}

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  op.kernel = nullptr;
  each_kernel(op.ctx, elementwise_tables, KernelKind::unary, -1, [](const Kernel* k, void* arg) {
    Op& op = *static_cast<Op*>(arg);
    if (!op.kernel && serves(k, &op)) op.kernel = k;
  }, &op, Element(op.config.type), serves);
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("unary: %s has no kernel in this build", names[op.config.kind]);
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  SKUA_TRY(need_type(base, s, 0, skua_dtype(static_cast<const Op*>(base)->config.type)));
  plan->outputs[0] = dense_like(s.inputs[0], s.inputs[0].type);
  plan->algorithm = names[static_cast<const Op*>(base)->config.kind];
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0]};
  plan_loops(tensors, 2, 0, SIZE_MAX, p.loops);
  p.kernel = op.kernel;
  const double arithmetic = double(cycles_per_vector[op.config.kind]) / op.kernel->vector;
  const double memory = 0.25 * p.loops.size[0];  // 1 for 8 bytes through it
  p.cycles = arithmetic > memory ? arithmetic : memory;
  return SKUA_STATUS_OK;
}

void compute_rows(const void* arg, const RowArgs& row) {
  const Op& op = *static_cast<const Op*>(arg);
  const auto fn = code_of<UnaryFn>(op.kernel);
  for (size_t r = 0; r < row.rows; ++r) fn(row.n, row.row(1, r), row.row(0, r), op.config.a, op.config.b);
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  if (one_call(args, p.loops)) {
    const Config& c = static_cast<const Op*>(p.op)->config;
    note_use(p.kernel);
    return code_of<UnaryFn>(p.kernel)(p.loops.row, args.in<void>(0), args.out<void>(0), c.a, c.b);
  }
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0))};
  run_loops(args, p.loops, base, p.cycles, compute_rows, p.op, p.kernel);
}

void explain(const skua_plan* plan, Text& text) {
  if (plan->kernel->variant >= kInHalves) text.add("  computed in f16\n");
  explain_loops(static_cast<const Plan*>(plan)->loops, text);
}

const OpClass unary_class = {
    .name = "unary", .id = 8,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .explain = explain,
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_unary_create(skua_context* context, const skua_unary_desc* desc, skua_op** out) {
  skua_unary_desc d = {};
  SKUA_TRY(read_desc("unary", context, desc, d, out));
  if (unsigned(d.kind) >= SKUA_UNARY_KIND_COUNT) return SKUA_INVALID("unary: kind is %d, unknown", int(d.kind));
  if (d.kind == SKUA_UNARY_CLAMP && !(d.a <= d.b))
    return SKUA_INVALID("unary: clamps to [%g, %g], a must be <= b", double(d.a), double(d.b));
  if (unsigned(d.numerics) > SKUA_NUMERICS_FAST) return SKUA_INVALID("unary: numerics is %d, unknown", int(d.numerics));
  if (is_bytes(d.input_type)) return create_unary_bytes(context, d, out);
  SKUA_TRY(need_float("unary", "input_type", d.input_type, true));
  SKUA_TRY(need_same_type("unary", "output_type", d.output_type, "input_type", d.input_type));
  SKUA_TRY(need_unquantized("unary", "input_q", d.input_q));
  SKUA_TRY(need_unquantized("unary", "output_q", d.output_q));
  SKUA_ON_GPU(context, create_unary(context, d, out));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(unary_class, context, 1, 1, 0, &op));
  const bool strict = d.numerics == SKUA_NUMERICS_STRICT;
  static_cast<Op*>(op)->config = {uint32_t(d.kind), uint32_t(d.input_type), strict, d.a, d.b};
  return open_op(op, out);
}

}  // extern "C"
