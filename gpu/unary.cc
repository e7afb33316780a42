// Unary operators on GPUs.
#include "gpu/nest.h"
#include "gpu/operators.h"

namespace skua::gpu {
namespace {

struct Config {
  uint32_t kind, type;
  float a, b;
};
struct Op : skua_op {
  Config config;
};

NestKernel kernel_of(const skua_op* op) {
  const Config& c = static_cast<const Op*>(op)->config;
  const skua_dtype type = skua_dtype(c.type);
  return {&text_of(unary_texts, unary_f32_v1, 2, type), &text_of(unary_texts, unary_f32_v4, 2, type), 2, 0, {int32_t(c.kind)}, {bits_of(c.a), bits_of(c.b)}, 2};
}

skua_status plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  SKUA_TRY(need_type(op, s, 0, skua_dtype(static_cast<const Op*>(op)->config.type)));
  plan->outputs[0] = s.inputs[0];
  for (size_t& stride : plan->outputs[0].stride) stride = 0;
  return SKUA_STATUS_OK;
}
skua_status finish(const skua_op* op, skua_plan* plan) { return plan_nest(op, kernel_of(op), *static_cast<NestPlan*>(plan)); }
skua_status record(const RecordArgs& args) { return record_nest(args, kernel_of(args.plan->op)); }

const OpClass unary_class = {"unary", 64, sizeof(Op), sizeof(NestPlan), offsetof(Op, config), sizeof(Config), true, nullptr, plan, finish, nullptr, nullptr, nullptr, nullptr, record, nullptr};

}  // namespace

skua_status create_unary(skua_context* context, const skua_unary_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_type(context, "unary", "input_type", d.input_type));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(unary_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = {uint32_t(d.kind), uint32_t(d.input_type), d.a, d.b};
  return open_op(op, out);
}

}  // namespace skua::gpu
