// Binary functions of quantised bytes of different scales, with broadcasting. The formulas: docs/quantization.md.
#include <float.h>

#include "elementwise/byte_kernel.h"
#include "elementwise/loops.h"
#include "elementwise/quantized.h"
#include "gpu/operators.h"

namespace skua {
namespace {

using Config = BinaryBytesConfig;
struct Op : skua_op {
  Config config;
  const Kernel* kernel;
};
struct Plan : skua_plan {
  Loops loops;
  BinaryForm form;
};

constexpr struct { skua_binary_kind kind; const char* name; int variant; } functions[] = {
    {SKUA_BINARY_ADD, "add", 0}, {SKUA_BINARY_SUB, "sub", 0}, {SKUA_BINARY_MUL, "mul", 1},
    {SKUA_BINARY_DIV, "div", 2}, {SKUA_BINARY_MIN, "min", 3}, {SKUA_BINARY_MAX, "max", 4},
    {SKUA_BINARY_SQUARED_DIFFERENCE, "squared_difference", 5}, {SKUA_BINARY_PRELU, "prelu", 6}};
auto function_of(uint32_t kind) -> decltype(&functions[0]) {
  for (const auto& f : functions)
    if (uint32_t(f.kind) == kind) return &f;
  return nullptr;
}
constexpr int kTakesScalars = 1;  // variants up to here

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  op.kernel =
      find_byte_kernel(op.ctx, KernelKind::binary_bytes, function_of(op.config.kind)->variant, Element(op.config.type));
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("binary: no kernel in this build");
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const Op& op = *static_cast<const Op*>(base);
  plan->algorithm = function_of(op.config.kind)->name;
  plan->kernel = op.kernel;
  return broadcast_shape(base, skua_dtype(op.config.type), s, plan->outputs[0]);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const bool scalars = function_of(static_cast<const Op*>(base)->config.kind)->variant <= kTakesScalars;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0], &p.inputs[1]};
  plan_loops(tensors, 3, scalars ? 1u << 1 | 1u << 2 : 0, SIZE_MAX, p.loops);
  p.form = p.loops.feed[1] == Feed::scalar   ? BinaryForm::x_scalar
           : p.loops.feed[2] == Feed::scalar ? BinaryForm::y_scalar
                                             : BinaryForm::vectors;
  return SKUA_STATUS_OK;
}

void compute_rows(const void* arg, const RowArgs& row) {
  const Plan& p = *static_cast<const Plan*>(arg);
  const Config& c = static_cast<const Op*>(p.op)->config;
  const size_t* const step = row.step;
  code_of<BinaryBytesFn>(p.kernel)({row.n, row.rows, p.form, row.at[1], row.at[2], row.at[0], step[1], step[2], step[0],
                                    c.a, c.b, c.c, c.x_zero, c.y_zero, c.to});
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0)),
                                     const_cast<char*>(args.in<char>(1))};
  run_loops(args, p.loops, base, 10.0 / p.kernel->vector, compute_rows, &p, p.kernel);
}

void explain(const skua_plan* plan, Text& text) { explain_loops(static_cast<const Plan*>(plan)->loops, text); }

const OpClass binary_bytes_class = {
    .name = "binary", .id = 53,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .explain = explain,
};

}  // namespace

skua_status create_binary_bytes(skua_context* context, const skua_binary_desc& d, skua_op** out) {
  SKUA_TRY(need_int8("binary", "type", d.type));
  if (!function_of(uint32_t(d.kind)))
    return SKUA_UNSUPPORTED_(
        "binary: kind is %d, %s has ADD, SUB, MUL, DIV, MIN, MAX, SQUARED_DIFFERENCE and PRELU; convert the inputs for "
        "others",
        int(d.kind), skua_dtype_name(d.type));
  SKUA_TRY(need_bytes("binary", "type", d.type, "x_q", d.x_q));
  SKUA_TRY(need_bytes("binary", "type", d.type, "y_q", d.y_q));
  SKUA_TRY(need_bytes("binary", "type", d.type, "output_q", d.output_q));
  SKUA_TRY(check_activation("binary", d.activation));
  const double x = d.x_q.scale, y = d.y_q.scale, z = d.output_q.scale;
  // 2^100 takes every step beyond the type, and sums of two such products stay finite.
  const auto factor = [z](double scale) {
    const float f = sum_scale(scale, 1, z);
    return f < 0x1p100f ? f : 0x1p100f;
  };
  Config c = {uint32_t(d.kind), uint32_t(d.type), factor(x), factor(y), 0, d.x_q.zero_point, d.y_q.zero_point, {}};
  const double larger = x > y ? x : y;
  switch (d.kind) {
    case SKUA_BINARY_SUB: c.b = -c.b; break;
    case SKUA_BINARY_MUL: c.a = sum_scale(x, y, z); break;
    // no infinity times 0
    case SKUA_BINARY_DIV: c.a = sum_scale(x / y, 1, z), c.a = c.a < FLT_MIN ? FLT_MIN : c.a; break;
    case SKUA_BINARY_SQUARED_DIFFERENCE:
      c.a = float(x / larger), c.b = float(y / larger), c.c = sum_scale(larger, larger, z);
      break;
    case SKUA_BINARY_PRELU: c.c = sum_scale(x, y, z); break;
    default: break;
  }
  c.to.zero_point = d.output_q.zero_point;
  SKUA_TRY(quantized_bounds("binary", d.activation, Element(d.type), d.output_q, c.to.low, c.to.high));
  SKUA_ON_GPU(context, create_binary_bytes(context, c, out));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(binary_bytes_class, context, 2, 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}

}  // namespace skua
