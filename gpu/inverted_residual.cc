// Inverted residual blocks on a device: expand, depthwise and project as three dispatches of one operator, with the
// maps between them in the plan's workspace. See skua/conv.h.
#include "conv/conv.h"
#include "gpu/maps.h"

namespace skua::gpu {
namespace {

constexpr int kStages = 3;

struct Config {
  uint32_t residual;
};
struct Op : skua_op {
  Config config;
  skua_op* stage[kStages];
};
struct Plan : skua_plan {
  alignas(16) char memory[kStages][kConvPlanBytes];
  size_t at[kStages - 1], total;  // of the maps between, bytes of the workspace
};

const Op& op_of(const skua_op* op) { return *static_cast<const Op*>(op); }
skua_plan* stage_of(const skua_plan* plan, int i) {
  return reinterpret_cast<skua_plan*>(const_cast<char*>(static_cast<const Plan*>(plan)->memory[i]));
}

void close(skua_op* op) {
  for (skua_op* s : op_of(op).stage) skua_op_destroy(s);
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(need_rank(base, shapes, 0, 4));
  skua_tensor in[2] = {shapes.inputs[0], {}};
  for (int i = 0; i < kStages; ++i) {
    const skua_op* const stage = op_of(base).stage[i];
    if (i == kStages - 1 && stage->n_inputs > 1) in[1] = shapes.inputs[1];
    skua_plan* s;
    SKUA_TRY(skua_op_plan_init(stage, in, stage->n_inputs, nullptr, 0, p.memory[i], sizeof p.memory[i], &s));
    in[0] = s->outputs[0];
    p.named |= s->named || (base->ctx->filter[0] && glob_match(base->ctx->filter, skua_plan_kernel(s)));
    if (i == kStages - 1) break;
    p.at[i] = p.total;
    p.total = add_sat(p.total, s->output_spans[0].bytes > SIZE_MAX - SKUA_WORKSPACE_ALIGNMENT
                                   ? SIZE_MAX
                                   : round_up(s->output_spans[0].bytes, SKUA_WORKSPACE_ALIGNMENT));
  }
  p.outputs[0] = in[0];
  for (size_t& stride : p.outputs[0].stride) stride = 0;
  p.algorithm = "three_dispatches";
  p.text = stage_of(out, 0)->text;
  return SKUA_STATUS_OK;
}

// Now that the strides of the output are known.
skua_status finish(const skua_op* base, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  const skua_op* const project = op_of(base).stage[kStages - 1];
  const skua_tensor in[2] = {stage_of(out, 1)->outputs[0], out->inputs[1]};
  skua_plan* s;
  return skua_op_plan_init(project, in, project->n_inputs, p.outputs, 1, p.memory[kStages - 1], sizeof p.memory[0], &s);
}

size_t workspace(const skua_plan* plan, uint32_t) { return static_cast<const Plan*>(plan)->total; }

skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  skua_buffer in[2] = {args.inputs[0], args.inputs[args.plan->n_inputs - 1]};
  for (int i = 0; i < kStages; ++i) {
    const skua_buffer to = i < kStages - 1
                               ? skua_buffer{nullptr, args.workspace->device, args.workspace->offset + p.at[i]}
                               : args.outputs[0];
    const skua_plan* const s = stage_of(&p, i);
    SKUA_TRY(s->op->cls->record({s, in, &to, nullptr, args.stream}));
    in[0] = to;
  }
  return SKUA_STATUS_OK;
}

void explain(const skua_plan* plan, Text& text) {
  const char* const names[kStages] = {"expand", "depthwise", "project"};
  for (int i = 0; i < kStages; ++i) {
    const skua_plan* const s = stage_of(plan, i);
    text.add("  %s: algorithm %s, kernel %s\n", names[i], s->algorithm, skua_plan_kernel(s));
  }
}

const OpClass inverted_residual_class = {
    .name = "inverted_residual", .id = 87,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .plan = make_plan, .finish = finish, .workspace = workspace,
    .explain = explain, .record = record, .close = close,
};

}  // namespace

skua_status create_inverted_residual(const skua_context* ctx, const ConvConfig (&stages)[kStages],
                                     const skua_inverted_residual_desc& d, const void* const* weights,
                                     const void* const* biases, skua_op** out) {
  const skua_conv2d_desc* const descs[kStages] = {&d.expand, &d.depthwise, &d.project};
  skua_op* base = nullptr;
  SKUA_TRY(new_op(inverted_residual_class, ctx, 1 + (stages[kStages - 1].residual != SKUA_RESIDUAL_NONE), 1, 0, &base));
  for (int i = 0; i < kStages; ++i) {
    const skua_status s = create_conv(ctx, stages[i], descs[i]->weight_type, descs[i]->weight_layout, weights[i],
                                      biases ? biases[i] : nullptr, 0, 0, &static_cast<Op*>(base)->stage[i]);
    if (s == SKUA_STATUS_OK) continue;
    skua_op_destroy(base);
    return s;
  }
  return open_op(base, out);
}

}  // namespace skua::gpu
