// Elementwise operators on s8 and u8: quantise, dequantise, requantise; unary functions by a table, binary functions.
// docs/quantization.md has the formulas.
#include "elementwise/quantized.h"
#include "gpu/nest.h"

namespace skua::gpu {
namespace {

struct Config {
  uint32_t from, to;
  uint32_t axis;
  uint64_t channels;  // of a conversion; 0 = one factor for all
};
// With what its kernel reads beside the operands.
struct BytesOp : skua_op {
  Config config;
  skua_device_buffer* there;
};
const BytesOp& op_of(const skua_op* op) { return *static_cast<const BytesOp*>(op); }

skua_status open(skua_op* op) { return upload(op, op->weights, op->weights_size, &static_cast<BytesOp*>(op)->there); }
void close(skua_op* op) { free_buffer(static_cast<BytesOp*>(op)->there); }

skua_tensor result_like(const skua_tensor& x, uint32_t type) {
  skua_tensor y = x;
  for (size_t& stride : y.stride) stride = 0;
  y.type = skua_dtype(type);
  return y;
}
skua_status unary_plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  const Config& c = op_of(op).config;
  SKUA_TRY(need_type(op, s, 0, skua_dtype(c.from)));
  const skua_tensor& y = plan->outputs[0] = result_like(s.inputs[0], c.to);
  if (!c.channels) return SKUA_STATUS_OK;
  if (c.axis >= y.rank) return SKUA_INVALID("convert: axis is %u, input 0 has rank %u", c.axis, y.rank);
  if (y.shape[c.axis] != c.channels)
    return SKUA_INVALID("convert: input 0 has extent %zu in dimension %u, channels is %zu", y.shape[c.axis], c.axis,
                        size_t(c.channels));
  return SKUA_STATUS_OK;
}

// ---- convert: factors, then the zero points of both sides in one word each ------------------------------------------
int32_t type_code(uint32_t type) {
  return type == SKUA_DTYPE_F16    ? 1
         : type == SKUA_DTYPE_F32  ? 2
         : type == SKUA_DTYPE_U8   ? 3
         : type == SKUA_DTYPE_BF16 ? 4
                                   : 0;
}
NestKernel convert_kernel(const skua_op* op) {
  const Config& c = op_of(op).config;
  const KernelText* const texts = convert_bytes_texts.texts;
  return {texts + convert_bytes_s8_v1,
          texts + convert_bytes_s8_v4,
          4,
          1u << 2 | 1u << 3,
          {type_code(c.from), type_code(c.to)},
          {},
          0};
}
skua_status convert_finish(const skua_op* op, skua_plan* plan) {
  const Config& c = op_of(op).config;
  skua_tensor both[2];
  both[0] = tensor(SKUA_DTYPE_F32, plan->outputs[0].rank);
  for (uint32_t d = 0; d < both[0].rank; ++d) both[0].shape[d] = 1;
  if (c.channels) both[0].shape[c.axis] = size_t(c.channels);
  set_dense(both[0]);
  both[1] = both[0];
  return plan_nest(op, convert_kernel(op), *static_cast<NestPlan*>(plan), both);
}
skua_status convert_record(const RecordArgs& args) {
  const BytesOp& op = op_of(args.plan->op);
  return record_nest(args, convert_kernel(&op), op.there, op.weights_size / 8);
}
const OpClass convert_class = {
    .name = "convert", .id = 84,
    .op_size = sizeof(BytesOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(BytesOp, config),
    .config_size = sizeof(Config),
    .open = open, .plan = unary_plan, .finish = convert_finish,
    .record = convert_record, .close = close,
};

// ---- unary ----------------------------------------------------------------------------------------------------------
NestKernel table_kernel() {
  const KernelText* const texts = table_bytes_texts.texts;
  return {texts + table_bytes_s8_v1, texts + table_bytes_s8_v4, 2, 0, {}, {}, 0};
}
skua_status table_finish(const skua_op* op, skua_plan* plan) {
  plan->algorithm = "table";
  return plan_nest(op, table_kernel(), *static_cast<NestPlan*>(plan));
}
skua_status table_record(const RecordArgs& args) {
  return record_nest(args, table_kernel(), op_of(args.plan->op).there, 0);
}
const OpClass table_class = {
    .name = "unary", .id = 85,
    .op_size = sizeof(BytesOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(BytesOp, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = unary_plan, .finish = table_finish,
    .record = table_record, .close = close,
};

// ---- binary ---------------------------------------------------------------------------------------------------------
struct BinaryOp : skua_op {
  BinaryBytesConfig config;
};
NestKernel binary_kernel(const skua_op* op) {
  const BinaryBytesConfig& c = static_cast<const BinaryOp*>(op)->config;
  const KernelText* const texts = binary_bytes_texts.texts;
  const bool u8 = c.type == SKUA_DTYPE_U8;
  const int32_t shift = u8 ? 128 : 0;
  return {texts + binary_bytes_s8_v1, texts + binary_bytes_s8_v4, 3, 1u << 1 | 1u << 2, {int32_t(c.kind), u8},
          {bits_of(c.a), bits_of(c.b), bits_of(c.c), c.x_zero - shift, c.y_zero - shift, c.to.zero_point,
           bits_of(c.to.low), bits_of(c.to.high)}, 8};
}
skua_status binary_plan(const skua_op* op, const PlanShapes& s, skua_plan* plan) {
  return broadcast_shape(op, skua_dtype(static_cast<const BinaryOp*>(op)->config.type), s, plan->outputs[0]);
}
skua_status binary_finish(const skua_op* op, skua_plan* plan) {
  return plan_nest(op, binary_kernel(op), *static_cast<NestPlan*>(plan));
}
skua_status binary_record(const RecordArgs& args) { return record_nest(args, binary_kernel(args.plan->op)); }
const OpClass binary_class = {
    .name = "binary", .id = 86,
    .op_size = sizeof(BinaryOp), .plan_size = sizeof(NestPlan), .config_offset = offsetof(BinaryOp, config),
    .config_size = sizeof(BinaryBytesConfig),
    .in_place = true,
    .plan = binary_plan, .finish = binary_finish,
    .record = binary_record,
};

}  // namespace

skua_status create_convert_bytes(const skua_context* ctx, const skua_convert_desc& d, skua_op** out) {
  const size_t n = max(d.channels, 1), second = round_up(n, 4);
  skua_op* base = nullptr;
  SKUA_TRY(new_op(convert_class, ctx, 1, 1, 2 * second * sizeof(float), &base));
  static_cast<BytesOp*>(base)->config = {uint32_t(d.input_type), uint32_t(d.output_type),
                                         d.input_q.scales ? d.input_q.axis : d.output_q.axis, d.channels};
  float* const factors = static_cast<float*>(op_weights(base));
  int32_t* const zeros = reinterpret_cast<int32_t*>(factors + second);
  memset(static_cast<void*>(factors), 0, 2 * second * sizeof(float));
  const auto scale = [](const skua_quantization& q, skua_dtype type, size_t i) {
    return !is_bytes(type) ? 1.0 : double(q.scales ? q.scales[i] : q.scale);
  };
  const auto zero = [](const skua_quantization& q, size_t i) {
    return q.scales ? q.zero_points ? q.zero_points[i] : 0 : q.zero_point;
  };
  for (size_t i = 0; i < n; ++i) {
    factors[i] = sum_scale(scale(d.input_q, d.input_type, i), 1, scale(d.output_q, d.output_type, i));
    zeros[i] = int32_t(uint32_t(uint16_t(zero(d.input_q, i))) | uint32_t(zero(d.output_q, i)) << 16);
  }
  return open_op(base, out);
}

skua_status create_table(const skua_context* ctx, skua_dtype from, skua_dtype to, const uint8_t (&table)[256],
                         skua_op** out) {
  skua_op* base = nullptr;
  SKUA_TRY(new_op(table_class, ctx, 1, 1, sizeof table, &base));
  static_cast<BytesOp*>(base)->config = {uint32_t(from), uint32_t(to), 0, 0};
  memcpy(op_weights(base), table, sizeof table);
  return open_op(base, out);
}

skua_status create_binary_bytes(const skua_context* ctx, const BinaryBytesConfig& c, skua_op** out) {
  if (c.kind == SKUA_BINARY_DIV)
    return SKUA_UNSUPPORTED_(
        "binary: kind is DIV; quotients of GPUs are not rounded to nearest, so that %s would not be the CPU's",
        skua_dtype_name(skua_dtype(c.type)));
  skua_op* base = nullptr;
  SKUA_TRY(new_op(binary_class, ctx, 2, 1, 0, &base));
  static_cast<BinaryOp*>(base)->config = c;
  return open_op(base, out);
}

}  // namespace skua::gpu
