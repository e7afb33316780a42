// Conversion between types: floats to each other, to quantised bytes and back, bytes to bytes. See skua/data.h.
#include <skua/data.h>

#include "core/families.h"
#include "elementwise/byte_kernel.h"
#include "elementwise/loops.h"
#include "elementwise/quantized.h"
#include "elementwise/unary_kernel.h"
#include "gpu/operators.h"

namespace skua {
namespace {

struct Config {
  uint32_t from, to;
  // With bytes on a side:
  float factor;
  int32_t from_zero;
  Requantize requantize;
  uint32_t axis;
  // 0 = one factor for all; else the weights are a factor for each, then zero points of both sides in one word for each
  uint64_t channels;
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
  const skua_dtype from = skua_dtype(op.config.from), to = skua_dtype(op.config.to);
  if (is_bytes(from) || is_bytes(to))
    op.kernel = find_byte_kernel(op.ctx, KernelKind::convert_bytes, int(from), Element(to));
  else op.kernel = find_kernel(op.ctx, convert_tables, KernelKind::convert, int(from), Element(to));
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("convert: no kernel in this build");
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const Op& op = *static_cast<const Op*>(base);
  SKUA_TRY(need_type(base, s, 0, skua_dtype(op.config.from)));
  const skua_tensor& y = plan->outputs[0] = dense_like(s.inputs[0], skua_dtype(op.config.to));
  plan->kernel = op.kernel;
  if (!op.config.channels) return SKUA_STATUS_OK;
  if (op.config.axis >= y.rank) return SKUA_INVALID("convert: axis is %u, input 0 has rank %u", op.config.axis, y.rank);
  if (y.shape[op.config.axis] != op.config.channels)
    return SKUA_INVALID("convert: input 0 has extent %zu in dimension %u, channels is %zu", y.shape[op.config.axis],
                        op.config.axis, size_t(op.config.channels));
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Config& c = static_cast<const Op*>(base)->config;
  Plan& p = *static_cast<Plan*>(out);
  // Factors and zero points of channels are operands that repeat along the other dimensions.
  skua_tensor factors = tensor(SKUA_DTYPE_F32, p.outputs[0].rank);
  for (uint32_t d = 0; d < factors.rank; ++d) factors.shape[d] = 1;
  if (c.channels) factors.shape[c.axis] = size_t(c.channels);
  set_dense(factors);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0], &factors, &factors};
  plan_loops(tensors, c.channels ? 4 : 2, 0, SIZE_MAX, p.loops);
  return SKUA_STATUS_OK;
}

void convert_rows(const void* arg, const RowArgs& row) {
  const auto fn = code_of<ConvertFn>(static_cast<const Kernel*>(arg));
  for (size_t r = 0; r < row.rows; ++r) fn(row.n, row.row(1, r), row.row(0, r));
}

void convert_byte_rows(const void* arg, const RowArgs& row) {
  const Op& op = *static_cast<const Op*>(arg);
  const Config& c = op.config;
  ConvertBytes of = {row.n, nullptr, nullptr, c.factor, c.from_zero, c.requantize, nullptr, nullptr};
  for (size_t r = 0; r < row.rows; ++r) {
    of.x = row.row(1, r);
    of.y = row.row(0, r);
    if (c.channels)
      of.factors = reinterpret_cast<const float*>(row.row(2, r)),
      of.zeros = reinterpret_cast<const int32_t*>(row.row(3, r));
    code_of<ConvertBytesFn>(op.kernel)(of);
  }
}

void run(const RunArgs& args) {
  const Op& op = *static_cast<const Op*>(args.plan->op);
  char* base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0))};
  const Loops& loops = static_cast<const Plan*>(args.plan)->loops;
  if (op.kernel->kind == KernelKind::convert)
    return run_loops(args, loops, base, 1, convert_rows, op.kernel, op.kernel);
  if (op.config.channels) {
    base[2] = static_cast<char*>(op_weights(const_cast<Op*>(&op)));
    base[3] = base[2] + op.config.channels * sizeof(float);
  }
  run_loops(args, loops, base, 1, convert_byte_rows, &op, op.kernel);
}

void explain(const skua_plan* plan, Text& text) { explain_loops(static_cast<const Plan*>(plan)->loops, text); }

skua_status need_tensor_or_channels(const char* field, const skua_quantization& q, skua_dtype type, size_t channels) {
  if (!q.scales) return need_quantization("convert", field, q, type);
  if (!channels) return SKUA_INVALID("convert: %s.scales is set and channels is 0", field);
  if (q.block_size)
    return SKUA_UNSUPPORTED_("convert: %s.block_size is %u; blocks are for weights", field, q.block_size);
  if (q.axis >= SKUA_MAX_RANK)
    return SKUA_INVALID("convert: %s.axis is %u, must be below %d", field, q.axis, SKUA_MAX_RANK);
  return need_weight_quantization("convert", field, q, type, channels, q.axis, 0, true);
}

const OpClass convert_class = {
    .name = "convert", .id = 51,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .explain = explain,
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_convert_create(skua_context* context, const skua_convert_desc* desc, skua_op** out) {
  skua_convert_desc d = {};
  SKUA_TRY(read_desc("convert", context, desc, d, out));
  const bool from_bytes = is_bytes(d.input_type), to_bytes = is_bytes(d.output_type);
  if (from_bytes) {
    SKUA_TRY(need_int8("convert", "input_type", d.input_type));
    SKUA_TRY(need_tensor_or_channels("input_q", d.input_q, d.input_type, d.channels));
  } else {
    SKUA_TRY(need_float("convert", "input_type", d.input_type, true));
    SKUA_TRY(need_unquantized("convert", "input_q", d.input_q));
  }
  if (to_bytes) {
    SKUA_TRY(need_int8("convert", "output_type", d.output_type));
    SKUA_TRY(need_tensor_or_channels("output_q", d.output_q, d.output_type, d.channels));
  } else {
    SKUA_TRY(need_float("convert", "output_type", d.output_type, true));
    SKUA_TRY(need_unquantized("convert", "output_q", d.output_q));
  }
  const bool per_channel = d.input_q.scales || d.output_q.scales;
  if (!per_channel && d.channels) return SKUA_INVALID("convert: channels is %zu without scales for them", d.channels);
  if (d.input_q.scales && d.output_q.scales && d.input_q.axis != d.output_q.axis)
    return SKUA_INVALID("convert: input_q.axis is %u and output_q.axis is %u, must be the same", d.input_q.axis,
                        d.output_q.axis);
  if (d.channels > SIZE_MAX / 8) return SKUA_INVALID("convert: channels is %zu, too many", d.channels);
  SKUA_ON_GPU(context, create_convert(context, d, out));
  const auto scale = [](const skua_quantization& q, size_t i) { return double(q.scales ? q.scales[i] : q.scale); };
  const auto zero = [](const skua_quantization& q, size_t i) {
    return q.scales ? q.zero_points ? q.zero_points[i] : 0 : q.zero_point;
  };
  const auto factor = [&](size_t i) {
    return sum_scale(from_bytes ? scale(d.input_q, i) : 1.0, 1, to_bytes ? scale(d.output_q, i) : 1.0);
  };
  Config c = {};
  c.from = uint32_t(d.input_type);
  c.to = uint32_t(d.output_type);
  c.channels = d.channels;
  c.axis = d.input_q.scales ? d.input_q.axis : d.output_q.axis;
  if (!per_channel && (from_bytes || to_bytes)) {
    c.factor = factor(0);
    c.from_zero = zero(d.input_q, 0);
  }
  const int32_t to_zero = per_channel ? 0 : zero(d.output_q, 0);
  c.requantize = {float(first_of(d.output_type) - to_zero), float(last_of(d.output_type) - to_zero), to_zero};
  skua_op* op = nullptr;
  SKUA_TRY(new_op(convert_class, context, 1, 1, d.channels * 8, &op));
  static_cast<Op*>(op)->config = c;
  if (per_channel) {
    float* const factors = static_cast<float*>(op_weights(op));
    int32_t* const zeros = reinterpret_cast<int32_t*>(factors + d.channels);
    for (size_t i = 0; i < d.channels; ++i) {
      factors[i] = factor(i);
      zeros[i] = int32_t(uint32_t(uint16_t(zero(d.input_q, i))) | uint32_t(zero(d.output_q, i)) << 16);
    }
  }
  return open_op(op, out);
}
