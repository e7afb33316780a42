// Reductions over any axes. Neighbouring axes of one sort are merged, then the reduced ones are removed from the
// innermost outwards, a stage each: [outer][n][inner] -> [outer][inner]. A stage with few results and many elements is
// cut into chunks whose results a second stage joins: more than one worker can help, and the order of sums still
// depends on the shape alone.
#include <skua/reduce.h>

#include "core/families.h"
#include "core/nest.h"
#include "core/quantize.h"
#include "elementwise/byte_kernel.h"
#include "elementwise/quantized.h"
#include "elementwise/unary_kernel.h"
#include "gpu/operators.h"
#include "reduce/reduce_kernel.h"

namespace skua {
namespace {

struct Config {
  uint32_t kind, type, axis_count, keep_dims;
  int32_t axes[SKUA_MAX_RANK];
  // Bytes:
  double ratio;  // scale of the input over that of the output
  int32_t zero;
  Requantize to;
};
struct Op : skua_op {
  Config config;
  const Kernel *rows, *columns;            // of the first stage
  const Kernel *rows_later, *columns_later;  // of f32; a sum of squares goes on as a sum
  const Kernel* convert;                     // of the results to the type, NULL = they have it
};

struct Stage {
  size_t outer, n, inner;  // [outer][n][inner]
  size_t chunk, chunks;    // of n; -> [outer][chunks][inner]
  const Kernel* kernel;
};
constexpr size_t kMostStages = SKUA_MAX_RANK;  // three reduced axes between kept ones, each perhaps in two steps
struct Plan : skua_plan {
  size_t stages;
  Stage stage[kMostStages];
  size_t half[2];          // floats of workspace for results of even and of odd stages
  size_t reduced, results;  // elements per result
  gpu::ReduceShape on_gpu;
  gpu::ReduceStep step;
};

constexpr ReduceVariant variant_of(uint32_t kind) {
  switch (kind) {
    case SKUA_REDUCE_MIN: return kReduceMin;
    case SKUA_REDUCE_MAX: return kReduceMax;
    case SKUA_REDUCE_PROD: return kReduceProd;
    case SKUA_REDUCE_SUM_SQUARES: return kReduceSumSquares;
    case SKUA_REDUCE_ARGMIN: return kReduceArgmin;
    case SKUA_REDUCE_ARGMAX: return kReduceArgmax;
    default: return kReduceSum;
  }
}
bool is_arg(uint32_t kind) { return kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX; }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  SKUA_ON_GPU(op.ctx, need_gpu_movable(op.ctx, "reduce", "type", skua_dtype(op.config.type)));
  const ReduceVariant first = variant_of(op.config.kind), later = first == kReduceSumSquares ? kReduceSum : first;
  const Element type = Element(op.config.type);
  op.rows = find_kernel(op.ctx, reduce_tables, KernelKind::reduce_rows, first, type);
  op.columns = find_kernel(op.ctx, reduce_tables, KernelKind::reduce_columns, first, type);
  op.rows_later = find_kernel(op.ctx, reduce_tables, KernelKind::reduce_rows, later);
  op.columns_later = find_kernel(op.ctx, reduce_tables, KernelKind::reduce_columns, later);
  const bool converts = type != Element::f32 && !is_arg(op.config.kind);
  if (converts)
    op.convert = is_int8(type) ? find_byte_kernel(op.ctx, KernelKind::convert_bytes, int(Element::f32), type)
                               : find_kernel(op.ctx, convert_tables, KernelKind::convert, int(Element::f32), type);
  if (!op.rows || !op.columns || !op.rows_later || !op.columns_later || (converts && !op.convert))
    return SKUA_UNSUPPORTED_("reduce: no kernel in this build");
  return SKUA_STATUS_OK;
}

void add_stage(const Op& op, Plan& p, size_t outer, size_t n, size_t inner, size_t chunk) {
  Stage& s = p.stage[p.stages++];
  s.outer = outer; s.n = n; s.inner = inner;
  s.chunk = chunk;
  s.chunks = ceil_div(n, chunk);
  const bool first = p.stages == 1;
  s.kernel = inner == 1 ? (first ? op.rows : op.rows_later) : (first ? op.columns : op.columns_later);
  if (first) p.kernel = s.kernel;
}

constexpr size_t kMostBytes = 65793;  // 255 of each are less than 2^24

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  const Config& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& x = s.inputs[0];
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  SKUA_TRY(need_dense(base, s, 0));
  const int32_t rank = int32_t(x.rank);
  bool reduced[SKUA_MAX_RANK];
  for (uint32_t d = 0; d < x.rank; ++d) reduced[d] = c.axis_count == 0;
  for (uint32_t i = 0; i < c.axis_count; ++i) {
    const int32_t axis = c.axes[i] < 0 ? c.axes[i] + rank : c.axes[i];
    if (axis < 0 || axis >= rank)
      return SKUA_INVALID("reduce: axes[%u] is %d, input 0 has rank %d", i, c.axes[i], rank);
    if (reduced[axis]) return SKUA_INVALID("reduce: axes[%u] is %d, which is there already", i, c.axes[i]);
    reduced[axis] = true;
  }
  const bool arg = is_arg(c.kind);
  if (arg && c.axis_count == 0 && rank > 1)
    return SKUA_INVALID("reduce: axis_count is 0, an index needs one axis of the input's %d", rank);
  skua_tensor& y = p.outputs[0];
  y = tensor(arg ? SKUA_DTYPE_S32 : x.type, 0);
  p.reduced = p.results = 1;
  for (uint32_t d = 0; d < x.rank; ++d) {
    if (reduced[d]) p.reduced *= x.shape[d];
    else p.results *= x.shape[d];
    if (!reduced[d] || c.keep_dims) y.shape[y.rank++] = reduced[d] ? 1 : x.shape[d];
  }
  if (y.rank == 0) y.shape[y.rank++] = 1;
  if (arg && !p.reduced) return SKUA_INVALID("reduce: the axis has extent 0, there is no index to give");
  if (arg && p.reduced > INT32_MAX)
    return SKUA_INVALID("reduce: the axis has extent %zu, more than an s32 can count", p.reduced);
  if (is_int8(Element(c.type)) && variant_of(c.kind) == kReduceSum && p.reduced > kMostBytes)
    return SKUA_UNSUPPORTED_("reduce: sums of %zu bytes each, at most %zu are exact; reduce in two steps", p.reduced,
                             kMostBytes);
  p.algorithm = "empty";
  if (!p.results || !p.reduced) return SKUA_STATUS_OK;

  // Extents by turns kept and reduced, the first one kept.
  size_t extent[SKUA_MAX_RANK + 1] = {1};
  uint32_t n = 1;
  for (uint32_t d = 0; d < x.rank; ++d) {
    if (x.shape[d] == 1) continue;
    if (reduced[d] == (n % 2 == 0)) extent[n - 1] *= x.shape[d];
    else extent[n++] = x.shape[d];
  }
  if (op.ctx->gpu) {  // all at once; turns from the innermost, that kept first
    gpu::ReduceShape& g = p.on_gpu;
    size_t step = 1;
    g.kind = c.kind;
    g.along_rows = n % 2 == 0;
    for (uint32_t k = 0; k < 3; ++k) g.kept[k] = g.reduced[k] = 1;
    for (uint32_t i = n, k[2] = {}; i-- > 0; step *= extent[i]) {
      const uint32_t which = i % 2, at = k[which]++;
      if (at == 3) {  // the last kept one of seven turns has extent 1
        --k[which];
        continue;
      }
      (which ? g.reduced : g.kept)[at] = extent[i];
      (which ? g.reduced_step : g.kept_step)[at] = step;
    }
    p.algorithm = "at_once";
    return SKUA_STATUS_OK;
  }
  if (n == 1) {  // nothing to reduce: a copy, or squares; one row of columns
    extent[2] = extent[0];
    extent[0] = extent[1] = 1;
    n = 3;
  }
  size_t inner = n % 2 ? extent[--n] : 1;
  for (; n; n -= 2) {
    const size_t many = extent[n - 1];
    size_t outer = 1;
    for (uint32_t i = 0; i + 1 < n; ++i) outer *= extent[i];
    constexpr size_t kPart = 16384;  // elements of a chunk: some microseconds
    if (!arg && outer * ceil_div(inner, 64) < 16 && many * inner * outer >= 8 * kPart && many >= 256) {
      const size_t chunk = max(round_up(kPart / min(inner, kPart), 16), 64);
      add_stage(op, p, outer, many, inner, chunk);
      add_stage(op, p, outer, ceil_div(many, chunk), inner, ceil_div(many, chunk));
    } else {
      add_stage(op, p, outer, many, inner, many);
    }
    inner *= extent[n - 2];
  }
  for (size_t i = 0; i + 1 < p.stages; ++i) {
    const Stage& st = p.stage[i];
    p.half[i % 2] = max(p.half[i % 2], round_up(st.outer * st.chunks * st.inner, 16));
  }
  p.algorithm = p.stages > 1 ? "stages" : p.stage[0].inner == 1 ? "rows" : "columns";
  return SKUA_STATUS_OK;
}

float value_of_none(uint32_t kind) {
  return kind == SKUA_REDUCE_MEAN   ? __builtin_nanf("")
         : kind == SKUA_REDUCE_MIN  ? __builtin_inff()
         : kind == SKUA_REDUCE_MAX  ? -__builtin_inff()
         : kind == SKUA_REDUCE_PROD ? 1.0f
                                    : 0.0f;
}

// Of bytes. The ends of the type are its infinities, and nothing is 0.
int32_t byte_of_none(const Config& c) {
  return int32_t(c.kind == SKUA_REDUCE_MIN ? c.to.high : c.kind == SKUA_REDUCE_MAX ? c.to.low : 0) + c.to.zero_point;
}
// zero points in a result
int32_t summed(const Config& c, size_t reduced) { return variant_of(c.kind) == kReduceSum ? int32_t(reduced) : 1; }
float factor_of(const Config& c, size_t reduced) {
  return sum_scale(c.ratio, 1, c.kind == SKUA_REDUCE_MEAN ? double(reduced) : 1.0);
}

#ifdef SKUA_BUILT_gpu
Nest all_results(const Plan& p) {
  Nest nest;
  nest.add(p.results, 1, 1);
  return nest;
}
gpu::CopyFrom none(const Plan& p) {
  const Config& c = static_cast<const Op*>(p.op)->config;
  return {
      gpu::CopyFrom::value, 0, 0,
      is_int8(Element(c.type)) ? uint32_t(byte_of_none(c)) : gpu::bits_of(skua_dtype(c.type), value_of_none(c.kind))};
}
skua_status record(const RecordArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const Config& c = static_cast<const Op*>(p.op)->config;
  const int32_t terms = summed(c, p.reduced);
  const gpu::ReduceOfBytes bytes = {c.zero * terms, terms, factor_of(c, p.reduced), c.to};
  return p.reduced ? gpu::record_reduce(args, p.on_gpu, p.step, is_int8(Element(c.type)) ? &bytes : nullptr)
                   : gpu::record_copy(args, all_results(p), none(p), 0);
}
#endif

skua_status finish(const skua_op* op, skua_plan* plan) {
  [[maybe_unused]] Plan& p = *static_cast<Plan*>(plan);
  if (element_count(plan->outputs[0]) == 0) return SKUA_STATUS_OK;
  if (!is_dense(plan->outputs[0]))
    return SKUA_UNSUPPORTED_("reduce: output 0 has strides with holes; this operator writes dense tensors");
  if (p.reduced) SKUA_ON_GPU(op->ctx, plan_reduce(&p, p.on_gpu, p.step));
  SKUA_ON_GPU(op->ctx, plan_copy(&p, all_results(p), none(p), 0));
  (void)op;
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t) {
  const Plan& p = *static_cast<const Plan*>(plan);
  return (p.half[0] + p.half[1]) * sizeof(float) + p.step.workspace;
}

void explain(const skua_plan* plan, Text& text) {
  const Plan& p = *static_cast<const Plan*>(plan);
  if (p.step.parts > 1) text.add("  %zu parts of each result, joined by a second dispatch\n", p.step.parts);
}

struct Task {
  const Stage* stage;
  const char* x;
  size_t x_element;       // bytes
  char* y;
  const Kernel* convert;  // of the results, f32, to the type in y; NULL = they stay
  const Config* bytes;    // of bytes, whose results are integers in f32; else NULL
  float offset;           // for these: the zero points in a sum
  float factor;
  float divisor;
  bool arg;
  size_t blocks, pieces;  // blocks of columns
};
constexpr size_t kResults = 2048;  // that wait in the first-level cache to be converted

// compute(y) for the results [at, at + count).
template <class Compute> void put(const Task& t, size_t at, size_t count, Compute compute) {
  if (!t.convert) return compute(reinterpret_cast<float*>(t.y) + at);
  float results[kResults];
  compute(results);
  note_use(t.convert);
  if (!t.bytes) return code_of<ConvertFn>(t.convert)(count, results, t.y + at * 2);
  for (size_t i = 0; i < count; ++i) results[i] -= t.offset;  // exact
  code_of<ConvertBytesFn>(t.convert)({count, results, t.y + at, t.factor, 0, t.bytes->to, nullptr, nullptr});
}

void task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Stage& s = *t.stage;
  const size_t units = s.outer * s.chunks * t.blocks;
  const size_t from = piece_begin(units, t.pieces, index), to = piece_begin(units, t.pieces, index + 1);
  if (from == to) return;
  note_use(s.kernel);
  if (s.inner == 1 && s.chunks == 1) {
    if (t.arg)
      return code_of<ArgRowsFn>(s.kernel)(to - from, s.n, t.x + from * s.n * t.x_element, s.n,
                                          reinterpret_cast<int32_t*>(t.y) + from);
    for (size_t r = from, rows; r < to; r += rows) {
      rows = t.convert ? min(to - r, kResults) : to - r;
      put(t, r, rows, [&](float* y) {
        code_of<ReduceRowsFn>(s.kernel)(rows, s.n, t.x + r * s.n * t.x_element, s.n, y, t.divisor);
      });
    }
    return;
  }
  for (size_t u = from; u < to; ++u) {
    const size_t block = u % t.blocks, chunk = u / t.blocks % s.chunks, outer = u / t.blocks / s.chunks;
    const size_t begin = chunk * s.chunk, many = min(s.chunk, s.n - begin);
    const size_t lines = ceil_div(s.inner, 16);  // of cache
    const size_t c0 = min(piece_begin(lines, t.blocks, block) * 16, s.inner),
                 c1 = min(piece_begin(lines, t.blocks, block + 1) * 16, s.inner);
    const char* x = t.x + ((outer * s.n + begin) * s.inner + c0) * t.x_element;
    const size_t at = (outer * s.chunks + chunk) * s.inner + c0;
    if (t.arg) code_of<ArgColumnsFn>(s.kernel)(many, c1 - c0, x, s.inner, reinterpret_cast<int32_t*>(t.y) + at);
    else
      put(t, at, c1 - c0, [&](float* y) {
        if (s.inner == 1) code_of<ReduceRowsFn>(s.kernel)(1, many, x, many, y, t.divisor);
        else code_of<ReduceColumnsFn>(s.kernel)(many, c1 - c0, x, s.inner, y, t.divisor);
      });
  }
}

void run(const RunArgs& args) {
  const Plan& p = *static_cast<const Plan*>(args.plan);
  const Op& op = *static_cast<const Op*>(p.op);
  const Config& c = op.config;
  if (!p.results) return;
  char* y = args.out<char>(0);
  const bool bytes = is_int8(Element(c.type)) && !is_arg(c.kind);
  if (!p.reduced && bytes) {
    memset(y, byte_of_none(c), p.results);
    return;
  }
  if (!p.reduced) {
    const float value = value_of_none(c.kind);
    const Task t = {nullptr, nullptr, 0, y, op.convert, nullptr, 0, 0, 1, false, 1, 1};
    for (size_t i = 0; i < p.results; ++i) put(t, i, 1, [&](float* to) { *to = value; });
    return;
  }
  char* const space = static_cast<char*>(args.workspace);
  const char* x = args.in<char>(0);
  for (size_t i = 0; i < p.stages; ++i) {
    const Stage& s = p.stage[i];
    const bool last = i + 1 == p.stages;
    Task t = {&s,
              x,
              i ? sizeof(float) : element_bytes(Element(c.type)),
              last ? y : space + i % 2 * p.half[0] * sizeof(float),
              last ? op.convert : nullptr,
              last && bytes ? &c : nullptr,
              0,
              0,
              last && c.kind == SKUA_REDUCE_MEAN && !bytes ? float(p.reduced) : 1.0f,
              is_arg(c.kind),
              1,
              1};
    if (t.bytes) {
      t.offset = float(c.zero * summed(c, p.reduced));
      t.factor = factor_of(c, p.reduced);
    }
    const size_t groups = s.outer * s.chunks, lines = ceil_div(s.inner, 16);
    const double cycles = t.arg ? 0.6 : 0.3;
    t.pieces = pieces_for(args, groups * lines,
                          double(s.chunk) * double(s.inner) / double(lines) * cycles + (s.inner == 1 ? 10 : 0));
    if (groups < t.pieces) t.blocks = min(ceil_div(t.pieces, groups), lines);
    if (t.convert) t.blocks = max(t.blocks, ceil_div(lines, kResults / 16));
    parallel(args, t.pieces, task, &t);
    x = t.y;
  }
}

const OpClass reduce_class = {
    .name = "reduce", .id = 42,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain, .record = SKUA_RECORD(record),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_reduce_create(skua_context* context, const skua_reduce_desc* desc, skua_op** out) {
  skua_reduce_desc d = {};
  SKUA_TRY(read_desc("reduce", context, desc, d, out));
  if (unsigned(d.kind) >= SKUA_REDUCE_KIND_COUNT) return SKUA_INVALID("reduce: kind is %d, unknown", int(d.kind));
  const bool bytes = is_int8(Element(d.type));
  SKUA_TRY(bytes ? need_int8("reduce", "type", d.type) : need_float("reduce", "type", d.type, true));
  if (bytes && is_arg(d.kind)) {  // the order is that of the bytes
    if (d.input_q.scale != 0) SKUA_TRY(need_quantization("reduce", "input_q", d.input_q, d.type));
    SKUA_TRY(need_unquantized("reduce", "output_q", d.output_q));
  } else {
    SKUA_TRY(need_quantization_of("reduce", "input_q", d.input_q, d.type));
    SKUA_TRY(need_quantization_of("reduce", "output_q", d.output_q, d.type));
  }
  if (bytes && (d.kind == SKUA_REDUCE_PROD || d.kind == SKUA_REDUCE_SUM_SQUARES))
    return SKUA_UNSUPPORTED_("reduce: kind is %s, which has no kernel for %s; convert the input",
                             d.kind == SKUA_REDUCE_PROD ? "PROD" : "SUM_SQUARES", skua_dtype_name(d.type));
  if (d.axis_count > SKUA_MAX_RANK)
    return SKUA_INVALID("reduce: axis_count is %u, must be 0..%d", d.axis_count, SKUA_MAX_RANK);
  if (is_arg(d.kind) && d.axis_count > 1)
    return SKUA_INVALID("reduce: axis_count is %u, an index needs one axis", d.axis_count);
  Config c = {uint32_t(d.kind), uint32_t(d.type), d.axis_count, d.keep_dims, {}, 0, 0, {}};
  if (bytes && !is_arg(d.kind)) {
    c.ratio = double(d.input_q.scale) / double(d.output_q.scale);
    c.zero = d.input_q.zero_point;
    c.to.zero_point = d.output_q.zero_point;
    SKUA_TRY(quantized_bounds("reduce", {}, Element(d.type), d.output_q, c.to.low, c.to.high));
  }
  for (uint32_t i = 0; i < d.axis_count; ++i) {
    if (d.axes[i] < -SKUA_MAX_RANK || d.axes[i] >= SKUA_MAX_RANK)
      return SKUA_INVALID("reduce: axes[%u] is %d, must be within -%d..%d", i, d.axes[i], SKUA_MAX_RANK,
                          SKUA_MAX_RANK - 1);
    c.axes[i] = d.axes[i];
  }
  skua_op* op;
  SKUA_TRY(new_op(reduce_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = c;
  return open_op(op, out);
}
