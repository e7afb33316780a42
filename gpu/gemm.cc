// The matrix product on a device. See skua/gemm.h; kernels: gpu/kernels/product.h.
#include "gemm/gemm_op.h"
#include "gpu/operators.h"
#include "gpu/product.h"

namespace skua::gpu {
namespace {

constexpr size_t kMaxBatch = GemmShape::kMaxBatch;

struct Op : WeightedOp {
  GemmConfig config;
};
struct Plan : skua_plan, GemmShape {
  ProductStep step;
  Product product;  // the innermost batch dimension is its z
  // The other batch dimensions, outermost first, after those that lie behind each other in every operand were joined.
  size_t outer_rank, outer[kMaxBatch], a_outer[kMaxBatch], b_outer[kMaxBatch], c_outer[kMaxBatch], r_outer[kMaxBatch];
};

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }
size_t columns_of(const GemmConfig& c) { return round_up(size_t(c.n), 4); }
// Of bytes with a constant B: what sums of the columns start with, their scales or multipliers, shifts, zero points.
size_t bias_of(const GemmConfig& c) {
  return is_int8(c.a_type) && c.constant_b ? 4 * columns_of(c) : c.has_bias ? columns_of(c) : 0;
}
size_t depth_of(const GemmConfig& c) { return is_int8(c.a_type) ? round_up(size_t(c.k), 4) : size_t(c.k); }
size_t weights_of(const GemmConfig& c) { return c.constant_b ? columns_of(c) * depth_of(c) : 0; }

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const GemmConfig& c = op.config;
  op.n_inputs = 1 + !c.constant_b + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  return upload_weights(op, bias_of(c), c.a_type, weights_of(c));
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  p.algorithm = static_cast<const Op*>(base)->config.constant_b ? "packed" : "in_place";
  return gemm_shape(base, static_cast<const Op*>(base)->config, s, p, p.outputs[0]);
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const GemmConfig& c = static_cast<const Op*>(base)->config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(gemm_output(p.outputs[0], p));
  SKUA_TRY(need_small(base, &p));
  // Joins what can be: dimension d into the one inside of it.
  size_t n = 0, extent[kMaxBatch + 1] = {}, steps[kMaxBatch + 1][4] = {};
  for (size_t d = p.batch_rank; d-- > 0;) {
    const size_t step[4] = {p.a_step[d], p.b_step[d], p.c_step[d], p.r_step[d]};
    if (p.batch[d] == 1) continue;
    bool joins = n > 0;
    for (int i = 0; joins && i < 4; ++i) joins = step[i] == steps[n - 1][i] * extent[n - 1];
    if (joins) {
      extent[n - 1] *= p.batch[d];
      continue;
    }
    extent[n] = p.batch[d];
    memcpy(steps[n++], step, sizeof step);
  }
  if (!n) extent[n++] = p.batches ? 1 : 0;
  p.outer_rank = n - 1;
  for (size_t i = 1; i < n; ++i) {
    const size_t to = n - 1 - i;
    p.outer[to] = extent[i];
    p.a_outer[to] = steps[i][0]; p.b_outer[to] = steps[i][1]; p.c_outer[to] = steps[i][2]; p.r_outer[to] = steps[i][3];
  }
  Product& g = p.product;
  g.constant = c.constant_b;
  g.bias = c.has_bias;
  g.texels = has_texels(static_cast<const Op*>(base)->weights_there);
  g.element = c.a_type;
  g.half = c.numerics == SKUA_NUMERICS_FAST;
  g.wide = c.c_type != c.a_type && !is_int8(c.a_type);
  if (is_int8(c.a_type))
    g.q = {c.c_type, c.b_type,  c.q.a_zero,         c.q.b_zero,   c.q.zero,     c.q.low,
           c.q.high, c.q.scale, c.q.each_zero != 0, c.q.residual, c.q.rounding, c.q.fixed};
  g.m = p.m; g.n = p.n; g.k = p.k; g.z = p.batches ? extent[0] : 0;
  g.a_m = c.transpose_a ? 1 : p.lda; g.a_k = c.transpose_a ? p.lda : 1; g.a_z = steps[0][0];
  if (c.constant_b) { g.b_k = columns_of(c); g.b_n = 1; }
  else { g.b_k = c.transpose_b ? 1 : p.ldb; g.b_n = c.transpose_b ? p.ldb : 1; g.b_z = steps[0][1]; }
  g.c_m = p.ldc; g.c_z = steps[0][2]; g.r_m = p.ldr; g.r_z = steps[0][3];
  g.alpha = c.alpha; g.beta = c.beta;
  g.residual = c.residual;
  g.activation = fused(c.activation);
  SKUA_TRY(make_product(base, g, true, p.step, &out->choice));
  p.text = p.step.text;
  p.named = p.step.named;
  return SKUA_STATUS_OK;
}

skua_status record(const RecordArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  const Element e = op.config.a_type;
  const bool residual = op.config.residual != SKUA_RESIDUAL_NONE;
  const size_t last = p.n_inputs - 1;
  const skua_buffer &a = args.inputs[0], &b = args.inputs[op.config.constant_b ? 0 : 1], &r = args.inputs[last],
                    &c = args.outputs[0];
  Binding bindings[6] = {{a.device, a.offset, p.input_spans[0].bytes, false},
                         {},
                         {},
                         {},
                         {c.device, c.offset, p.output_spans[0].bytes, true}};
  if (op.config.constant_b) bindings[1] = {op.weights_there, 0, op.weights_there->size, false};
  else bindings[1] = {b.device, b.offset, p.input_spans[1].bytes, false};
  if (op.bias_there) bindings[2] = {op.bias_there, 0, op.bias_there->size, false};
  if (residual) bindings[is_int8(e) ? 5 : 3] = {r.device, r.offset, p.input_spans[last].bytes, false};
  if (is_int8(e)) bindings[3] = bindings[2];
  const ProductOffsets at = {offset_of(a, e), op.config.constant_b ? 0 : offset_of(b, e),
                             offset_of(c, op.config.c_type), residual ? offset_of(r, op.config.c_type) : 0};
  size_t index[kMaxBatch] = {};
  for (;;) {
    ProductOffsets now = at;
    for (size_t d = 0; d < p.outer_rank; ++d) {
      now.a += index[d] * p.a_outer[d];
      now.b += index[d] * p.b_outer[d];
      now.c += index[d] * p.c_outer[d];
      now.r += index[d] * p.r_outer[d];
    }
    SKUA_TRY(record_product(&p, p.product, p.step, now, bindings, args.stream));
    size_t d = p.outer_rank;
    while (d > 0 && ++index[d - 1] == p.outer[d - 1]) index[--d] = 0;
    if (!d) return SKUA_STATUS_OK;
  }
}

void explain(const skua_plan* plan, Text& text) {
  explain_product(plan, plan_of(plan).product, plan_of(plan).step, text);
}

const OpClass gemm_class = {
    .name = "gemm", .id = 80,
    .inputs = "A, B unless it is constant, the residual if there is one",
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(GemmConfig),
    .open = open, .plan = make_plan, .finish = finish,
    .explain = explain, .record = record, .close = free_weights,
};

}  // namespace

skua_status create_gemm(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias,
                        skua_op** out) {
  const Element e = Element(d.a_type);
  SKUA_TRY(need_gpu_type(ctx, "gemm", "a_type", d.a_type));
  if (b && d.numerics == SKUA_NUMERICS_STRICT && d.b_type != d.a_type)
    return SKUA_UNSUPPORTED_("gemm: numerics is STRICT and b_type %s, must be a_type, %s, on a GPU",
                             skua_dtype_name(d.b_type), skua_dtype_name(d.a_type));
  GemmConfig c;
  memset(&c, 0, sizeof c);
  c.transpose_a = d.transpose_a; c.transpose_b = d.transpose_b;
  c.constant_b = b != nullptr; c.has_bias = bias != nullptr;
  c.a_type = e; c.b_type = Element(d.b_type); c.c_type = Element(d.c_type);
  c.numerics = uint8_t(d.numerics);
  c.residual = uint32_t(d.epilogue.residual);
  c.alpha = d.alpha; c.beta = d.beta;
  c.activation = d.epilogue.activation;
  c.n = d.n; c.k = d.k;
  size_t n = 0, bytes = 0;
  if (!mul(columns_of(c), size_t(c.k), n) || !weights_bytes(bias_of(c), e, weights_of(c), bytes))
    return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
  skua_op* base;
  SKUA_TRY(new_op(gemm_class, ctx, 0, 1, bytes, &base));
  memcpy(&static_cast<Op*>(base)->config, &c, sizeof c);
  auto* to = static_cast<char*>(op_weights(base));
  if (bytes) memset(to, 0, bytes);
  if (bias) memcpy(to, bias, d.n * sizeof(float));
  to += bias_bytes(bias_of(c));
  const size_t dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense, in = skua_dtype_bits(d.b_type) / 8;
  for (size_t k = 0; b && k < d.k; ++k)
    pack_row(d.n, static_cast<const char*>(b) + k * (d.transpose_b ? 1 : ldb) * in, d.transpose_b ? ldb : 1,
             Element(d.b_type), to + k * columns_of(c) * element_bytes(e), e);
  return open_op(base, out);
}

skua_status create_gemm_bytes(const skua_context* ctx, const skua_gemm_desc& d, const Requantize& to,
                              const QuantizedResidual& residual, const void* b, const int32_t* bias, skua_op** out) {
  const Element result = Element(d.c_type);
  GemmConfig c;
  memset(&c, 0, sizeof c);
  c.transpose_a = d.transpose_a; c.transpose_b = d.transpose_b;
  c.constant_b = b != nullptr; c.has_bias = bias != nullptr;
  c.a_type = Element(d.a_type); c.b_type = Element(d.b_type); c.c_type = result;
  c.alpha = 1;
  c.residual = uint32_t(d.epilogue.residual);
  c.n = d.n; c.k = d.k;
  const int32_t* const zeros = b && d.b_q.scales ? d.b_q.zero_points : nullptr;
  const int32_t b_zero = !d.b_q.scales ? d.b_q.zero_point : d.b_q.zero_points ? d.b_q.zero_points[0] : 0;
  c.q = {d.a_q.zero_point,
         b_zero,
         to.zero_point,
         to.low,
         to.high,
         sum_scale(d.a_q, d.b_q, 0, result, d.c_q),
         uint32_t(d.requantization.rounding),
         {},
         residual,
         0};
  for (size_t j = 1; zeros && j < d.n; ++j) c.q.each_zero |= zeros[j] != zeros[0];
  const auto fixed_of = [&](size_t j) {
    return c.q.rounding == SKUA_ROUNDING_FLOAT ? FixedScale{}
                                               : sum_scale_fixed(d.a_q, d.b_q, j, d.c_q, d.requantization);
  };
  c.q.fixed = fixed_of(0);
  size_t n = 0, bytes = 0;
  if (d.k > SIZE_MAX - 4 || !mul(columns_of(c), depth_of(c), n) ||
      !weights_bytes(bias_of(c), c.a_type, weights_of(c), bytes))
    return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
  skua_op* base;
  SKUA_TRY(new_op(gemm_class, ctx, 0, 1, bytes, &base));
  memcpy(&static_cast<Op*>(base)->config, &c, sizeof c);
  auto* start = static_cast<int32_t*>(op_weights(base));
  if (bytes) memset(start, 0, bytes);
  if (bias) memcpy(start, bias, d.n * sizeof *start);
  if (!b) return open_op(base, out);
  const size_t columns = columns_of(c), dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense;
  auto* words = reinterpret_cast<int8_t*>(start) + bias_bytes(bias_of(c));
  const uint32_t a_zero = uint32_t(zero_of(c.a_type, c.q.a_zero));
  for (size_t j = 0; j < d.n; ++j) {
    const int32_t sum = pack_column(d.k, static_cast<const int8_t*>(b) + j * (d.transpose_b ? ldb : 1),
                                    d.transpose_b ? 1 : ldb, c.b_type, zeros ? zeros[j] : b_zero, columns, j, words),
                  zero = zero_of(c.b_type, zeros ? zeros[j] : b_zero);
    start[j] = int32_t(uint32_t(start[j]) - a_zero * (uint32_t(sum) - uint32_t(d.k) * uint32_t(zero)));
    set_scale(start, columns, j, c.q.rounding, sum_scale(d.a_q, d.b_q, j, result, d.c_q), fixed_of(j));
    start[3 * columns + j] = zero;
  }
  return open_op(base, out);
}

}  // namespace skua::gpu
