// Unary functions of quantised bytes: a table of 256 entries, made with the scalar f32 kernel of the function, so that
// it is the same on every CPU. Functions that only clamp and keep the quantisation need no table.
#include "elementwise/byte_kernel.h"
#include "elementwise/loops.h"
#include "elementwise/quantized.h"
#include "elementwise/unary_kernel.h"
#include "gpu/operators.h"

namespace skua {
namespace {

struct Config {
  uint32_t kind, from, to;
  float a, b, from_scale, to_scale;
  int32_t from_zero, to_zero;
};
struct Op : skua_op {
  Config config;
  const Kernel* kernel;
  int32_t low, high;  // of a clamp
  uint8_t table[256];  // by the byte of x
};
struct Plan : skua_plan {
  Loops loops;
};

const Kernel* scalar_kernel(uint32_t kind) {
  for (Family table = elementwise_tables; *table; ++table)
    for (size_t i = 0; i < (*table)->count; ++i) {
      const Kernel& k = (*table)->kernels[i];
      if (k.isa == Isa::scalar && k.kind == KernelKind::unary && k.variant == kind && k.element == Element::f32)
        return &k;
    }
  return nullptr;
}

// table[byte of x] = byte of the result. False: no kernel of the function in this build.
bool make_table(const Config& c, uint8_t* table) {
  const Kernel* function = scalar_kernel(c.kind);
  if (!function) return false;
  const skua_dtype from = skua_dtype(c.from), to = skua_dtype(c.to);
  const int32_t first = first_of(from);
  float values[256];
  for (int32_t i = 0; i < 256; ++i) values[i] = float(first + i - c.from_zero) * c.from_scale;
  code_of<UnaryFn>(function)(256, values, values, c.a, c.b);
  const float factor = sum_scale(1, 1, double(c.to_scale)), low = float(first_of(to) - c.to_zero),
              high = float(last_of(to) - c.to_zero);
  for (int32_t i = 0; i < 256; ++i) {
    const float t = values[i] * factor;
    table[uint8_t(first + i)] = uint8_t(nearest_small(t != t ? 0 : t < low ? low : t > high ? high : t) + c.to_zero);
  }
  return true;
}

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const Config& c = op.config;
  if (!make_table(c, op.table)) return SKUA_UNSUPPORTED_("unary: no kernel in this build");
  const skua_dtype from = skua_dtype(c.from);
  const int32_t first = first_of(from);
  const bool clamps = (c.kind == SKUA_UNARY_RELU || c.kind == SKUA_UNARY_RELU6 || c.kind == SKUA_UNARY_CLAMP) &&
                      c.from == c.to && c.from_scale == c.to_scale && c.from_zero == c.to_zero;
  // What rises with x and is x in between ends where its first and last values are.
  const uint8_t ends[] = {op.table[uint8_t(first)], op.table[uint8_t(first + 255)]};
  op.low = from == SKUA_DTYPE_S8 ? int32_t(int8_t(ends[0])) : int32_t(ends[0]);
  op.high = from == SKUA_DTYPE_S8 ? int32_t(int8_t(ends[1])) : int32_t(ends[1]);
  op.kernel = clamps ? find_byte_kernel(op.ctx, KernelKind::clamp_bytes, -1, Element(c.from))
                     : find_byte_kernel(op.ctx, KernelKind::table, -1, Element::s8);
  return op.kernel ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("unary: no kernel in this build");
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* plan) {
  const Op& op = *static_cast<const Op*>(base);
  SKUA_TRY(need_type(base, s, 0, skua_dtype(op.config.from)));
  plan->outputs[0] = dense_like(s.inputs[0], skua_dtype(op.config.to));
  plan->kernel = op.kernel;
  plan->algorithm = op.kernel->kind == KernelKind::table ? "table" : "clamp";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op*, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor* const tensors[] = {&p.outputs[0], &p.inputs[0]};
  plan_loops(tensors, 2, 0, SIZE_MAX, p.loops);
  return SKUA_STATUS_OK;
}

void compute_rows(const void* arg, const RowArgs& row) {
  const Op& op = *static_cast<const Op*>(arg);
  for (size_t r = 0; r < row.rows; ++r) {
    if (op.kernel->kind == KernelKind::table)
      code_of<TableFn>(op.kernel)(row.n, row.row(1, r), row.row(0, r), op.table);
    else code_of<ClampBytesFn>(op.kernel)(row.n, row.row(1, r), row.row(0, r), op.low, op.high);
  }
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  char* const base[kMostOperands] = {args.out<char>(0), const_cast<char*>(args.in<char>(0))};
  run_loops(args, p.loops, base, p.kernel->kind == KernelKind::table ? 1 : 0.25, compute_rows, p.op, p.kernel);
}

void explain(const skua_plan* plan, Text& text) { explain_loops(static_cast<const Plan*>(plan)->loops, text); }

const OpClass unary_bytes_class = {
    .name = "unary", .id = 52,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .explain = explain,
};

}  // namespace

skua_status create_unary_bytes(skua_context* context, const skua_unary_desc& d, skua_op** out) {
  if (!is_bytes(d.output_type))
    return need_same_type("unary", "output_type", d.output_type, "input_type", d.input_type);
  SKUA_TRY(need_bytes("unary", "input_type", d.input_type, "input_q", d.input_q));
  SKUA_TRY(need_bytes("unary", "output_type", d.output_type, "output_q", d.output_q));
  const Config c = {uint32_t(d.kind), uint32_t(d.input_type), uint32_t(d.output_type), d.a, d.b, d.input_q.scale,
                    d.output_q.scale, d.input_q.zero_point,   d.output_q.zero_point};
#ifdef SKUA_BUILT_gpu
  uint8_t table[256];
  if (context->gpu && !make_table(c, table)) return SKUA_UNSUPPORTED_("unary: no kernel in this build");
#endif
  SKUA_ON_GPU(context, create_table(context, d.input_type, d.output_type, table, out));
  skua_op* op = nullptr;
  SKUA_TRY(new_op(unary_bytes_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}

}  // namespace skua
