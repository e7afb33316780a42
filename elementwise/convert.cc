// Conversion between the float types. See skua/data.h.
#include <skua/data.h>

#include "core/families.h"
#include "elementwise/loops.h"
#include "elementwise/unary_kernel.h"

namespace skua {
namespace {

struct Config {
  uint32_t from, to;
};
struct Op : skua_op {
  Config config;
  const Kernel* kernel;
};
struct Plan : skua_plan {
  Loops loops;
};

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  op.kernel = find_kernel(op.ctx, convert_tables, KernelKind::convert, int(op.config.from), Element(op.config.to));
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("convert: no kernel in this build");
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const Op& op = *static_cast<const Op*>(base);
  SKUA_TRY(need_type(base, s, 0, skua_dtype(op.config.from)));
  skua_tensor& y = plan->outputs[0];
  y = s.inputs[0];
  for (size_t& stride : y.stride) stride = 0;
  y.type = skua_dtype(op.config.to);
  plan->kernel = op.kernel;
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op*, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0]};
  plan_loops(tensors, 2, 0, SIZE_MAX, p.loops);
  return SKUA_STATUS_OK;
}

void convert_rows(const void* arg, const RowArgs& row) {
  const auto fn = code_of<ConvertFn>(static_cast<const Kernel*>(arg));
  for (size_t r = 0; r < row.rows; ++r) fn(row.n, row.row(1, r), row.row(0, r));
}

void run(const RunArgs& args) {
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0))};
  const Kernel* kernel = args.plan->kernel;
  run_loops(args, static_cast<const Plan*>(args.plan)->loops, base, 1, convert_rows, kernel, kernel);
}

void explain(const skua_plan* plan, Text& text) { explain_loops(static_cast<const Plan*>(plan)->loops, text); }

const OpClass convert_class = {"convert", 51, sizeof(Op), sizeof(Plan), offsetof(Op, config), sizeof(Config), false, open, make_plan, finish, nullptr, run, explain};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_convert_create(skua_context* context, const skua_convert_desc* desc, skua_op** out) {
  skua_convert_desc d = {};
  SKUA_TRY(read_desc("convert", context, desc, d, out));
  SKUA_TRY(need_float("convert", "input_type", d.input_type));
  SKUA_TRY(need_float("convert", "output_type", d.output_type));
  SKUA_TRY(need_unquantized("convert", "input_q", d.input_q));
  SKUA_TRY(need_unquantized("convert", "output_q", d.output_q));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(convert_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = {uint32_t(d.input_type), uint32_t(d.output_type)};
  return open_op(op, out);
}
