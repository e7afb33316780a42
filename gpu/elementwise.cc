// Unary operators, conversions between floats, binary operators and select on GPUs.
#include "core/quantize.h"
#include "gpu/maps.h"
#include "gpu/nest.h"

namespace skua::gpu {
namespace {

// ---- unary ----------------------------------------------------------------------------------------------------------
struct UnaryConfig {
  uint32_t kind, type;
  float a, b;
};
struct UnaryOp : skua_op {
  UnaryConfig config;
};

// A new function needs its formula in the text.
static_assert(SKUA_UNARY_KIND_COUNT == 31, "gpu/kernels/unary.k has the functions 0 to 30");
static_assert(SKUA_BINARY_KIND_COUNT == 16, "gpu/kernels/binary.k has the functions 0 to 15");
NestKernel unary_kernel(const skua_op* op) {
  const UnaryConfig& c = static_cast<const UnaryOp*>(op)->config;
  const skua_dtype type = skua_dtype(c.type);
  return {&text_of(unary_texts, unary_f32_v1, 2, type),
          &text_of(unary_texts, unary_f32_v4, 2, type),
          2,
          0,
          {int32_t(c.kind)},
          {bits_of(c.a), bits_of(c.b)},
          2};
}

skua_status unary_plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  SKUA_TRY(need_type(op, s, 0, skua_dtype(static_cast<const UnaryOp*>(op)->config.type)));
  plan->outputs[0] = s.inputs[0];
  for (size_t& stride : plan->outputs[0].stride) stride = 0;
  return SKUA_STATUS_OK;
}
skua_status unary_finish(const skua_op* op, skua_plan* plan) {
  return plan_nest(op, unary_kernel(op), *static_cast<NestPlan*>(plan));
}
skua_status unary_record(const RecordArgs& args) { return record_nest(args, unary_kernel(args.plan->op)); }

const OpClass unary_class = {
    .name = "unary", .id = 64,
    .op_size = sizeof(UnaryOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(UnaryOp, config),
    .config_size = sizeof(UnaryConfig),
    .in_place = true,
    .plan = unary_plan, .finish = unary_finish,
    .record = unary_record,
};

// ---- convert --------------------------------------------------------------------------------------------------------
struct ConvertConfig {
  uint32_t from, to;
};
struct ConvertOp : skua_op {
  ConvertConfig config;
};

NestKernel convert_kernel(const skua_op* op) {
  const ConvertConfig& c = static_cast<const ConvertOp*>(op)->config;
  const KernelText* const texts = convert_texts.texts;
  if (c.from == c.to) return {&copy_text(1, skua_dtype(c.to)), &copy_text(4, skua_dtype(c.to)), 2, 0, {}, {}, 1};
  const bool narrow = c.from == SKUA_DTYPE_F32;
  const KernelText* const type =
      texts + ((narrow ? c.to : c.from) == SKUA_DTYPE_F16 ? convert_f16_to1 : convert_bf16_to1) - convert_f16_to1;
  return {type + (narrow ? convert_f16_to1 : convert_f16_from1),
          type + (narrow ? convert_f16_to4 : convert_f16_from4),
          2,
          0,
          {},
          {},
          0};
}

skua_status convert_plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  SKUA_TRY(need_type(op, s, 0, skua_dtype(static_cast<const ConvertOp*>(op)->config.from)));
  plan->outputs[0] = s.inputs[0];
  for (size_t& stride : plan->outputs[0].stride) stride = 0;
  plan->outputs[0].type = skua_dtype(static_cast<const ConvertOp*>(op)->config.to);
  return SKUA_STATUS_OK;
}
skua_status convert_finish(const skua_op* op, skua_plan* plan) {
  return plan_nest(op, convert_kernel(op), *static_cast<NestPlan*>(plan));
}
skua_status convert_record(const RecordArgs& args) { return record_nest(args, convert_kernel(args.plan->op)); }

const OpClass convert_class = {
    .name = "convert", .id = 65,
    .op_size = sizeof(ConvertOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(ConvertOp, config),
    .config_size = sizeof(ConvertConfig),
    .plan = convert_plan, .finish = convert_finish,
    .record = convert_record,
};

// ---- binary and select ----------------------------------------------------------------------------------------------
struct BinaryConfig {
  uint32_t kind, type;
  skua_activation activation;
};
struct BinaryOp : skua_op {
  BinaryConfig config;
};

NestKernel binary_kernel(const skua_op* op) {
  const BinaryConfig& c = static_cast<const BinaryOp*>(op)->config;
  const skua_dtype type = skua_dtype(c.type);
  const Fused f = fused(c.activation);
  return {&text_of(binary_texts, binary_f32_v1, 2, type),
          &text_of(binary_texts, binary_f32_v4, 2, type),
          3,
          1u << 1 | 1u << 2,
          {int32_t(c.kind), f.kind},
          {bits_of(f.a), bits_of(f.b)},
          2};
}
NestKernel select_kernel(const skua_op* op) {
  const skua_dtype type = skua_dtype(static_cast<const BinaryOp*>(op)->config.type);
  return {
      &text_of(select_texts, select_f32_v1, 2, type), &text_of(select_texts, select_f32_v4, 2, type), 4, 0, {}, {}, 0};
}

skua_status broadcast_plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  return broadcast_shape(op, skua_dtype(static_cast<const BinaryOp*>(op)->config.type), s, plan->outputs[0]);
}
skua_status binary_finish(const skua_op* op, skua_plan* plan) {
  return plan_nest(op, binary_kernel(op), *static_cast<NestPlan*>(plan));
}
skua_status binary_record(const RecordArgs& args) { return record_nest(args, binary_kernel(args.plan->op)); }
skua_status select_finish(const skua_op* op, skua_plan* plan) {
  return plan_nest(op, select_kernel(op), *static_cast<NestPlan*>(plan));
}
skua_status select_record(const RecordArgs& args) { return record_nest(args, select_kernel(args.plan->op)); }

const OpClass binary_class = {
    .name = "binary", .id = 66,
    .op_size = sizeof(BinaryOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(BinaryOp, config),
    .config_size = sizeof(BinaryConfig),
    .in_place = true,
    .plan = broadcast_plan, .finish = binary_finish,
    .record = binary_record,
};
const OpClass select_class = {
    .name = "select", .id = 67,
    .op_size = sizeof(BinaryOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(BinaryOp, config),
    .config_size = sizeof(BinaryConfig),
    .in_place = true,
    .plan = broadcast_plan, .finish = select_finish,
    .record = select_record,
};

}  // namespace

skua_status create_unary(skua_context* context, const skua_unary_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_type(context, "unary", "input_type", d.input_type));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(unary_class, context, 1, 1, 0, &op));
  static_cast<UnaryOp*>(op)->config = {uint32_t(d.kind), uint32_t(d.input_type), d.a, d.b};
  return open_op(op, out);
}

skua_status create_convert(skua_context* context, const skua_convert_desc& d, skua_op** out) {
  if (is_int8(Element(d.input_type)) || is_int8(Element(d.output_type))) return create_convert_bytes(context, d, out);
  SKUA_TRY(need_gpu_type(context, "convert", "input_type", d.input_type));
  SKUA_TRY(need_gpu_type(context, "convert", "output_type", d.output_type));
  // its kernel reads all types
  if (d.input_type != d.output_type && d.input_type != SKUA_DTYPE_F32 && d.output_type != SKUA_DTYPE_F32)
    return create_convert_bytes(context, d, out);
  skua_op* op = nullptr;
  SKUA_TRY(new_op(convert_class, context, 1, 1, 0, &op));
  static_cast<ConvertOp*>(op)->config = {uint32_t(d.input_type), uint32_t(d.output_type)};
  return open_op(op, out);
}

skua_status create_binary(skua_context* context, const skua_binary_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_type(context, "binary", "type", d.type));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(binary_class, context, 2, 1, 0, &op));
  static_cast<BinaryOp*>(op)->config = {uint32_t(d.kind), uint32_t(d.type), d.activation};
  return open_op(op, out);
}

skua_status create_select(skua_context* context, const skua_select_desc& d, skua_op** out) {
  SKUA_TRY(need_gpu_type(context, "select", "type", d.type));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(select_class, context, 3, 1, 0, &op));
  static_cast<BinaryOp*>(op)->config.type = uint32_t(d.type);
  return open_op(op, out);
}

}  // namespace skua::gpu
