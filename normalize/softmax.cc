// Softmax and its logarithm over one axis. See skua/normalize.h for the formula, docs/quantization.md for bytes.
#include <skua/normalize.h>

#include "core/families.h"
#include "core/quantize.h"
#include "gpu/operators.h"
#include "normalize/softmax_kernel.h"

namespace skua {
namespace {

struct Config {
  int32_t axis;
  uint32_t logarithm, type;
  float scale;
  // Of bytes:
  uint32_t to_type, flip;
  float from_scale, to_scale, slope;
  Requantize to;
};
struct Op : skua_op {
  Config config;
  const Kernel *rows, *columns;
  int32_t powers[256];  // of bytes
  [[maybe_unused]] skua_device_buffer* powers_there;
};
struct Plan : skua_plan {
  size_t outer, n, inner;    // [outer][n][inner]
  size_t per_block;          // of outer: indices that belong to one index of dimension 0; blocks are block_step apart
  size_t x_block, y_block;
  // from one element of the axis to the next (inner > 1 or a strided axis), or from one row to the next
  size_t x_row, y_row;
  bool by_rows;
  bool even;                 // rows with the same step from each to the next, x_row and y_row
  gpu::Chosen chosen;
};

#ifdef SKUA_TYPE_s8
// e^-x for x >= 0 within 2^-45: by the same operations of double everywhere, as the C library's exponential is not.
double power(double x) {
  if (x > 64) return 0;
  const double r = x / -128;  // -1/2 and above
  double y = 1;
  for (int k = 14; k > 0; --k) y = y * r / k + 1;
  for (int k = 0; k < 7; ++k) y *= y;
  return y;
}

skua_status open_bytes(Op& op) {
  const Config& c = op.config;
  const double step = double(c.from_scale) * double(c.scale < 0 ? -c.scale : c.scale);
  for (int32_t d = 0; d < 256; ++d) op.powers[d] = int32_t(power(d * step) * 0x1p30 + 0.5);
  SKUA_ON_GPU(op.ctx, open_softmax_bytes(&op, c.logarithm != 0, op.powers, &op.powers_there));
  op.rows = find_kernel(op.ctx, softmax_bytes_tables, KernelKind::softmax_bytes, int(c.logarithm), Element(c.to_type));
  op.columns =
      find_kernel(op.ctx, softmax_bytes_tables, KernelKind::softmax_bytes, int(c.logarithm + 2), Element(c.to_type));
  return op.rows && op.columns ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("softmax: no kernel in this build");
}
#endif

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
#ifdef SKUA_TYPE_s8
  if (is_int8(Element(op.config.type))) return open_bytes(op);
#endif
  SKUA_ON_GPU(op.ctx, need_gpu_type(op.ctx, "softmax", "input_type", skua_dtype(op.config.type)));
  op.rows =
      find_kernel(op.ctx, softmax_tables, KernelKind::softmax_rows, int(op.config.logarithm), Element(op.config.type));
  op.columns = find_kernel(op.ctx, softmax_tables, KernelKind::softmax_columns, int(op.config.logarithm),
                           Element(op.config.type));
  if (!op.rows || !op.columns) return SKUA_UNSUPPORTED_("softmax: no kernel in this build");
  return SKUA_STATUS_OK;
}

// Dense but for the stride of dimension 0.
bool dense_inside(const skua_tensor& t) {
  size_t step = 1;
  for (uint32_t d = t.rank; d-- > 1; step *= t.shape[d])
    if (t.shape[d] > 1 && t.stride[d] != step) return false;
  return true;
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& x = s.inputs[0];
  SKUA_TRY(need_type(base, s, 0, skua_dtype(op.config.type)));
  const int32_t rank = int32_t(x.rank), axis = op.config.axis < 0 ? op.config.axis + rank : op.config.axis;
  if (axis < 0 || axis >= rank) return SKUA_INVALID("softmax: axis is %d, input 0 has rank %d", op.config.axis, rank);
  p.outputs[0] = tensor(skua_dtype(op.config.to_type), x.rank);
  memcpy(p.outputs[0].shape, x.shape, sizeof x.shape);
  if (element_count(x) && !dense_inside(x))
    return SKUA_UNSUPPORTED_(
        "softmax: input 0 has strides with holes inside dimension 0; only its own stride may be larger than dense");
  p.outer = p.per_block = p.inner = 1;
  p.n = x.shape[axis];
  for (int32_t d = 0; d < axis; ++d) p.outer *= x.shape[d];
  for (int32_t d = 1; d < axis; ++d) p.per_block *= x.shape[d];
  for (int32_t d = axis + 1; d < rank; ++d) p.inner *= x.shape[d];
  p.by_rows = p.inner == 1 && (axis > 0 || x.shape[0] <= 1 || x.stride[0] == 1);
  return SKUA_STATUS_OK;
}

[[maybe_unused]] gpu::SoftmaxShape gpu_shape(const Plan& p) {
  const Config& c = static_cast<const Op*>(p.op)->config;
  return {p.outer,
          p.n,
          p.inner,
          p.per_block,
          p.x_block,
          p.y_block,
          p.by_rows ? 1 : p.x_row,
          p.by_rows ? 1 : p.y_row,
          c.logarithm != 0,
          c.scale};
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor &x = p.inputs[0], &y = p.outputs[0];
  if (element_count(y) && !dense_inside(y))
    return SKUA_UNSUPPORTED_(
        "softmax: output 0 has strides with holes inside dimension 0; only its own stride may be larger than dense");
  const bool axis_first = p.outer == 1 && p.per_block == 1 && p.n == x.shape[0] &&
                          (op.config.axis == 0 || op.config.axis == -int32_t(x.rank));
  if (axis_first && p.n > 1 && y.stride[0] != 1) p.by_rows = false;
  p.x_block = x.stride[0];
  p.y_block = y.stride[0];
  p.x_row = axis_first ? x.stride[0] : p.by_rows ? p.n : p.inner;
  p.y_row = axis_first ? y.stride[0] : p.by_rows ? p.n : p.inner;
  if (p.by_rows && p.per_block == 1) p.x_row = p.x_block, p.y_row = p.y_block;
  p.even = p.by_rows && (p.per_block == 1 || p.outer == p.per_block);
  p.kernel = p.by_rows ? op.rows : op.columns;
  p.algorithm = p.by_rows ? "rows" : "columns";
  if (element_count(y)) SKUA_ON_GPU(op.ctx, plan_softmax(&p, gpu_shape(p), p.chosen));
  return SKUA_STATUS_OK;
}

void compute(const Plan& p, size_t count, const void* x, void* y) {
  const Op& op = *static_cast<const Op*>(p.op);
  const Config& c = op.config;
  if (p.kernel->kind == KernelKind::softmax_bytes)
    code_of<SoftmaxBytesFn>(p.kernel)(
        {count, p.n, x, y, p.x_row, p.y_row, op.powers, uint8_t(c.flip), c.slope, double(c.to_scale), c.to});
  else if (p.by_rows) code_of<SoftmaxRowsFn>(p.kernel)(count, p.n, x, p.x_row, y, p.y_row, c.scale);
  else code_of<SoftmaxColumnsFn>(p.kernel)(p.n, count, x, p.x_row, y, p.y_row, c.scale);
}

struct Task {
  const Plan* plan;
  const char* x;
  char* y;
  size_t element;  // bytes
  size_t blocks, pieces;  // blocks of columns
};

void task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  size_t from = piece_begin(p.outer * t.blocks, t.pieces, index);
  const size_t to = piece_begin(p.outer * t.blocks, t.pieces, index + 1);
  if (from < to) note_use(p.kernel);
  while (from < to) {
    const size_t outer = from / t.blocks, block = outer / p.per_block, in = outer % p.per_block;
    const char* x = t.x + (block * p.x_block + in * p.n * p.inner) * t.element;
    char* y = t.y + (block * p.y_block + in * p.n * p.inner) * t.element;
    if (p.by_rows) {
      const size_t rows = p.even ? to - from : min(p.per_block - in, to - from);
      compute(p, rows, x, y);
      from += rows;
    } else {
      const size_t line = 64 / t.element, lines = ceil_div(p.inner, line), part = from % t.blocks;
      const size_t c0 = min(piece_begin(lines, t.blocks, part) * line, p.inner),
                   c1 = min(piece_begin(lines, t.blocks, part + 1) * line, p.inner);
      compute(p, c1 - c0, x + c0 * t.element, y + c0 * t.element);
      ++from;
    }
  }
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  if (!p.outer || !p.n || !p.inner) return;
  const Config& c = static_cast<const Op*>(p.op)->config;
  if (p.even && args.concurrency() == 1) {
    note_use(p.kernel);
    return compute(p, p.outer, args.in<void>(0), args.out<void>(0));
  }
  Task t = {&p, args.in<char>(0), args.out<char>(0), element_bytes(Element(c.type)), 1, 1};
  const size_t lines = p.by_rows ? 1 : ceil_div(p.inner, 64 / t.element);
  t.pieces =
      pieces_for(args, p.outer * lines,
                 double(p.n) * double(p.inner) / double(lines) * (t.element == 1 ? 2 : 16.0 / p.kernel->vector) + 50);
  if (p.outer < t.pieces) t.blocks = min(ceil_div(t.pieces, p.outer), lines);
  parallel(args, t.pieces, task, &t);
}

#ifdef SKUA_BUILT_gpu
skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const Op& op = *static_cast<const Op*>(p.op);
  const gpu::SoftmaxOfBytes bytes = {op.powers_there, int32_t(op.config.flip), op.config.to_scale, op.config.to};
  return gpu::record_softmax(args, gpu_shape(p), p.chosen, is_int8(Element(op.config.type)) ? &bytes : nullptr);
}
void close(skua_op* op) { gpu::free_buffer(static_cast<Op*>(op)->powers_there); }
#endif

const OpClass softmax_class = {
    .name = "softmax", .id = 40,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .in_place = true,
    .open = open, .plan = make_plan, .finish = finish, .run = run,
    .record = SKUA_RECORD(record), .close = SKUA_RECORD(close),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_softmax_create(skua_context* context, const skua_softmax_desc* desc, skua_op** out) {
  skua_softmax_desc d = {};
  SKUA_TRY(read_desc("softmax", context, desc, d, out));
  const bool bytes = is_int8(Element(d.input_type));
  if (bytes) {
    SKUA_TRY(need_int8("softmax", "input_type", d.input_type));
    if (skua_dtype_bits(d.output_type) && !is_int8(Element(d.output_type)))
      return SKUA_UNSUPPORTED_("softmax: output_type is %s and input_type is %s, of which it must be s8 or u8",
                               skua_dtype_name(d.output_type), skua_dtype_name(d.input_type));
    SKUA_TRY(need_int8("softmax", "output_type", d.output_type));
  } else {
    SKUA_TRY(need_float("softmax", "input_type", d.input_type, true));
    SKUA_TRY(need_same_type("softmax", "output_type", d.output_type, "input_type", d.input_type));
  }
  SKUA_TRY(need_quantization_of("softmax", "input_q", d.input_q, d.input_type));
  SKUA_TRY(need_quantization_of("softmax", "output_q", d.output_q, d.output_type));
  if (d.axis < -SKUA_MAX_RANK || d.axis >= SKUA_MAX_RANK)
    return SKUA_INVALID("softmax: axis is %d, must be within -%d..%d", d.axis, SKUA_MAX_RANK, SKUA_MAX_RANK - 1);
  if (!(d.scale - d.scale == 0)) return SKUA_INVALID("softmax: scale is %g, must be finite", double(d.scale));
  skua_op* op;
  SKUA_TRY(new_op(softmax_class, context, 1, 1, 0, &op));
  Config& c = static_cast<Op*>(op)->config;
  c.axis = d.axis, c.logarithm = d.log, c.type = uint32_t(d.input_type), c.to_type = uint32_t(d.output_type),
  c.scale = d.scale;
  if (bytes) {
    const Element to = Element(d.output_type);
    c.flip = (d.input_type == SKUA_DTYPE_S8 ? 0x80 : 0) ^ (d.scale < 0 ? 0xff : 0);
    c.from_scale = d.input_q.scale, c.to_scale = d.output_q.scale;
    const double slope = double(c.from_scale) * double(d.scale < 0 ? -d.scale : d.scale) / double(c.to_scale);
    c.slope = slope < 0x1p100 ? float(slope) : 0x1p100f;  // any step is beyond the type then
    const int32_t zero = d.output_q.zero_point;
    c.to = {float(least_of(to) - zero), float(greatest_of(to) - zero), zero};
  }
  return open_op(op, out);
}
