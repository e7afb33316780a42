#include "core/op.h"

#include "gpu/device.h"

namespace skua {

size_t pieces_for(const RunArgs& args, size_t units, double cycles_per_unit) {
  const size_t workers = args.workers();
  if (workers == 1 || units < 2) return 1;
  const double cycles = cycles_per_unit * double(units);
  if (cycles < kAlone) return 1;
  const size_t pieces = min(min(units, workers * 4), size_t(cycles / (kAlone / 2)));
  return pieces > workers ? pieces / workers * workers : pieces;
}

size_t element_count(const skua_tensor& t) {
  size_t n = 1;
  for (uint32_t i = 0; i < t.rank; ++i) n *= t.shape[i];
  return n;
}

bool is_dense(const skua_tensor& t) {
  size_t step = 1;
  for (uint32_t i = t.rank; i-- > 0;) {
    if (t.shape[i] != 1 && t.stride[i] != step) return false;
    step *= t.shape[i];
  }
  return true;
}

void set_dense(skua_tensor& t) {
  size_t step = 1;
  for (uint32_t i = t.rank; i-- > 0;) {
    t.stride[i] = step;
    step *= t.shape[i] ? t.shape[i] : 1;
  }
}

skua_span span_of(const skua_tensor& t) {
  const uint32_t bits = skua_dtype_bits(t.type);
  skua_span span = {0, bits >= 8 ? bits / 8 : 1, is_dense(t)};
  size_t last = 1;
  for (uint32_t d = 0; d < t.rank; ++d) {
    if (!t.shape[d]) return span;
    last += (t.shape[d] - 1) * t.stride[d];
  }
  span.bytes = last * span.element;
  return span;
}

skua_status check_desc(const char* op, const void*, size_t seen, size_t here) {
  if (seen == here) return SKUA_STATUS_OK;
  return SKUA_INVALID("%s: desc.struct_size is %zu, this library has %zu; start from the descriptor's INIT macro", op,
                      seen, here);
}

// What a smaller build lacks is said to be that, and not another mistake.
static skua_status need_built(const char* op, const char* field, skua_dtype type) {
  bool built = type == SKUA_DTYPE_F32;
#ifdef SKUA_TYPE_f16
  built |= type == SKUA_DTYPE_F16;
#endif
#ifdef SKUA_TYPE_bf16
  built |= type == SKUA_DTYPE_BF16;
#endif
#ifdef SKUA_TYPE_s8
  built |= type != SKUA_DTYPE_F16 && type != SKUA_DTYPE_BF16;
#endif
  if (built) return SKUA_STATUS_OK;
  return SKUA_UNSUPPORTED_("%s: %s is %s, which this build leaves out (SKUA_TYPES)", op, field, skua_dtype_name(type));
}

skua_status need_float(const char* op, const char* field, skua_dtype type, bool or_bytes) {
#define SKUA_TYPE(cpp, name) if (type == skua_dtype(element_of<cpp>)) return SKUA_STATUS_OK;
  SKUA_FOR_TYPES(SKUA_TYPE)
#undef SKUA_TYPE
  if (!skua_dtype_bits(type)) return SKUA_INVALID("%s: %s is %d, unknown type", op, field, int(type));
  SKUA_TRY(need_built(op, field, type));
  return SKUA_UNSUPPORTED_("%s: %s is %s; it takes f32, f16%s", op, field, skua_dtype_name(type),
                           or_bytes ? ", bf16, s8 and u8" : " and bf16");
}

skua_status need_same_type(const char* op, const char* field, skua_dtype type, const char* other, skua_dtype wanted) {
  if (type == wanted) return SKUA_STATUS_OK;
  if (!skua_dtype_bits(type)) return SKUA_INVALID("%s: %s is %d, unknown type", op, field, int(type));
  return SKUA_UNSUPPORTED_("%s: %s is %s and %s is %s; they must be of one type", op, field, skua_dtype_name(type),
                           other, skua_dtype_name(wanted));
}

skua_status need_same_type_or_f32(const char* op, const char* field, skua_dtype type, const char* other,
                                  skua_dtype wanted) {
  if (type == wanted || type == SKUA_DTYPE_F32) return SKUA_STATUS_OK;
  if (!skua_dtype_bits(type)) return SKUA_INVALID("%s: %s is %d, unknown type", op, field, int(type));
  SKUA_TRY(need_built(op, field, type));
  const char* name = skua_dtype_name(wanted);
  return SKUA_UNSUPPORTED_("%s: %s is %s; with %s %s it is %s%s", op, field, skua_dtype_name(type), other, name,
                           wanted == SKUA_DTYPE_F32 ? "" : "f32 or ", name);
}

skua_status need_unquantized(const char* op, const char* field, const skua_quantization& q) {
  if (q.scale == 0 && !q.zero_point && !q.scales && !q.zero_points && !q.axis && !q.block_size &&
      q.scale_type == SKUA_DTYPE_F32)
    return SKUA_STATUS_OK;
  return SKUA_INVALID("%s: %s is set, but the tensor is not quantised: it must be all zero", op, field);
}

const char* activation_name(skua_activation_kind kind) {
  static const char* const names[] = {"NONE", "RELU",         "RELU6",      "CLAMP", "LEAKY_RELU", "ELU",  "SIGMOID",
                                      "TANH", "HARD_SIGMOID", "HARD_SWISH", "SILU",  "MISH",       "GELU", "GELU_TANH"};
  static_assert(sizeof names / sizeof *names == SKUA_ACTIVATION_KIND_COUNT, "one for each kind");
  return unsigned(kind) < SKUA_ACTIVATION_KIND_COUNT ? names[kind] : "unknown";
}

skua_status check_activation(const char* op, const skua_activation& a, const char* field) {
  if (a.kind < SKUA_ACTIVATION_NONE || a.kind >= SKUA_ACTIVATION_KIND_COUNT)
    return SKUA_INVALID("%s: %s.kind is %d, unknown", op, field, int(a.kind));
  if (a.kind == SKUA_ACTIVATION_CLAMP && !(a.a <= a.b))
    return SKUA_INVALID("%s: %s clamps to [%g, %g], a must be <= b", op, field, double(a.a), double(a.b));
  return SKUA_STATUS_OK;
}

skua_status check_epilogue(const char* op, const skua_epilogue& e) {
  SKUA_TRY(check_activation(op, e.activation, "epilogue.activation"));
  if (e.residual < SKUA_RESIDUAL_NONE || e.residual > SKUA_RESIDUAL_AFTER_ACTIVATION)
    return SKUA_INVALID("%s: epilogue.residual is %d, unknown", op, int(e.residual));
  return SKUA_STATUS_OK;
}

skua_status wrong_number_of_inputs(const OpClass& cls, size_t n_inputs, size_t wanted) {
  return SKUA_INVALID("%s: n_inputs is %zu, must be %zu%s%s", cls.name, n_inputs, wanted, cls.inputs ? ": " : "",
                      cls.inputs ? cls.inputs : "");
}

skua_status new_op(const OpClass& cls, const skua_context* ctx, uint32_t n_inputs, uint32_t n_outputs,
                   size_t weights_size, skua_op** out) {
  if (ctx->gpu && !cls.record)
    return SKUA_UNSUPPORTED_(
        "%s: these types, or this form of the operator, have no kernel for %s yet (docs/gpu.md lists those there are)",
        cls.name, ctx->gpu->api->name);
  if (!ctx->gpu && !cls.run) return SKUA_UNSUPPORTED_("%s: made for a GPU, the context is on the CPU", cls.name);
  auto* op = static_cast<skua_op*>(allocate(ctx, cls.op_size, 64));
  if (!op) return out_of_memory(cls.name, cls.op_size);
  memset(static_cast<void*>(op), 0, cls.op_size);
  op->cls = &cls;
  op->ctx = ctx;
  op->n_inputs = n_inputs;
  op->n_outputs = n_outputs;
  if (weights_size) {
    op->weights = allocate(ctx, weights_size, weights_size >= (size_t(8) << 20) ? size_t(2) << 20 : 64);
    if (!op->weights) {
      release(ctx, op, cls.op_size);
      return out_of_memory(cls.name, weights_size);
    }
    op->weights_size = weights_size;
  }
  *out = op;
  return SKUA_STATUS_OK;
}

skua_status open_op(skua_op* op, skua_op** out) {
  if (op->cls->open)
    if (skua_status s = op->cls->open(op); s != SKUA_STATUS_OK) {
      skua_op_destroy(op);
      return s;
    }
  *out = op;
  return SKUA_STATUS_OK;
}

skua_status need_rank(const skua_op* op, const PlanShapes& s, size_t i, uint32_t rank) {
  if (s.inputs[i].rank == rank) return SKUA_STATUS_OK;
  return SKUA_INVALID("%s: input %zu has rank %u, must be %u", op->cls->name, i, s.inputs[i].rank, rank);
}
skua_status need_type(const skua_op* op, const PlanShapes& s, size_t i, skua_dtype type) {
  if (s.inputs[i].type == type) return SKUA_STATUS_OK;
  return SKUA_INVALID("%s: input %zu has type %s, must be %s", op->cls->name, i, skua_dtype_name(s.inputs[i].type),
                      skua_dtype_name(type));
}
skua_status need_dense(const skua_op* op, const PlanShapes& s, size_t i) {
  if (is_dense(s.inputs[i]) || element_count(s.inputs[i]) == 0) return SKUA_STATUS_OK;
  return SKUA_UNSUPPORTED_("%s: input %zu has strides with holes; this operator takes dense tensors", op->cls->name, i);
}
skua_status need_same_shape(const skua_op* op, const PlanShapes& s, size_t i, const skua_tensor& t) {
  const skua_tensor& x = s.inputs[i];
  if (x.rank != t.rank) return SKUA_INVALID("%s: input %zu has rank %u, must be %u", op->cls->name, i, x.rank, t.rank);
  for (uint32_t d = 0; d < t.rank; ++d)
    if (x.shape[d] != t.shape[d])
      return SKUA_INVALID("%s: input %zu has extent %zu in dimension %u, must be %zu", op->cls->name, i, x.shape[d], d,
                          t.shape[d]);
  return SKUA_STATUS_OK;
}

namespace {

// Bytes from the first element to one past the last; also refuses shapes whose element or byte count overflows.
skua_status check_tensor(const char* op, const char* what, size_t index, const skua_tensor& t, skua_tensor& to) {
  if (!skua_dtype_bits(t.type)) return SKUA_INVALID("%s: %s %zu has type %d, unknown", op, what, index, int(t.type));
  if (t.rank < 1 || t.rank > SKUA_MAX_RANK)
    return SKUA_INVALID("%s: %s %zu has rank %u, must be 1..%d", op, what, index, t.rank, SKUA_MAX_RANK);
  to = t;
  bool dense = true;
  for (uint32_t d = 0; d < t.rank; ++d) dense &= t.stride[d] == 0;
  size_t elements = 1, bytes = 0, extent = 1;
  bool ok = true;
  for (uint32_t d = 0; d < t.rank; ++d) ok = ok && mul(elements, t.shape[d] ? t.shape[d] : 1, elements);
  if (ok && dense) set_dense(to);
  for (uint32_t d = 0; ok && d < t.rank; ++d) {
    size_t step = 0;
    ok = mul(to.stride[d], t.shape[d] ? t.shape[d] - 1 : 0, step) && add(extent, step, extent);
  }
  ok = ok && mul(extent, 4, bytes) && mul(elements, 4, elements) && bytes <= SIZE_MAX / 2 && elements <= SIZE_MAX / 2;
  if (!ok) return SKUA_INVALID("%s: %s %zu is larger than the address space", op, what, index);
  return SKUA_STATUS_OK;
}

// Two different indices of an output must not be the same element: sorted by stride, each stride must reach past all
// smaller ones. What is told of one that does not is in the order of the dimensions, which most tensors have.
bool overlaps_itself(const skua_tensor& t, uint32_t& dimension, size_t& reach) {
  uint32_t order[SKUA_MAX_RANK], n = 0;
  for (uint32_t d = 0; d < t.rank; ++d) {
    if (t.shape[d] == 0) return false;
    if (t.shape[d] == 1) continue;
    uint32_t at = n++;
    for (; at > 0 && t.stride[order[at - 1]] > t.stride[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  bool overlaps = false;
  reach = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t d = order[i];
    overlaps |= t.stride[d] <= reach;
    reach += (t.shape[d] - 1) * t.stride[d];
  }
  if (!overlaps) return false;
  reach = 0;
  dimension = t.rank - 1;
  while (t.shape[dimension] == 1 || t.stride[dimension] > reach) {  // ends: else the strides would grow outwards
    reach += (t.shape[dimension] - 1) * t.stride[dimension];
    --dimension;
  }
  return true;
}

// `tuned` becomes what the context remembers, when that was wanted and is there.
skua_status fill(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* outputs,
                 size_t n_outputs, uint32_t wanted, const TunedChoice*& tuned, skua_plan* plan) {
  const OpClass& cls = *op->cls;
  constexpr size_t kMost = 64;
  if (!inputs && n_inputs) return SKUA_INVALID("%s: inputs is NULL", cls.name);
  if (op->n_inputs ? n_inputs != op->n_inputs : (n_inputs < 1 || n_inputs > kMost))
    return op->n_inputs ? wrong_number_of_inputs(cls, n_inputs, op->n_inputs)
                        : SKUA_INVALID("%s: n_inputs is %zu, must be 1..%zu", cls.name, n_inputs, kMost);
  if (outputs && n_outputs != op->n_outputs)
    return SKUA_INVALID("%s: n_outputs is %zu, must be %u", cls.name, n_outputs, op->n_outputs);
  skua_tensor shapes[kMost];
  for (size_t i = 0; i < n_inputs; ++i) SKUA_TRY(check_tensor(cls.name, "input", i, inputs[i], shapes[i]));
  memset(static_cast<void*>(plan), 0, cls.plan_size);
  plan->op = op;
  plan->n_inputs = n_inputs;
  plan->n_outputs = op->n_outputs;
  plan->algorithm = cls.name;
  if (wanted == kAskTuned) {
    tuned = __atomic_load_n(&op->ctx->any_tuned, __ATOMIC_ACQUIRE)
                ? find_tuned(op->ctx, tuning_key(op, {shapes, n_inputs}))
                : nullptr;
    wanted = tuned ? tuned->index : 0;
  }
  plan->choice.wanted = wanted;
  plan->all_inputs = plan->inputs;
  for (size_t i = 0; i < n_inputs && i < kMaxPlanInputs; ++i) plan->inputs[i] = shapes[i];
  SKUA_TRY(cls.plan(op, {shapes, n_inputs}, plan));
  for (size_t i = 0; i < op->n_outputs; ++i) {
    skua_tensor& t = plan->outputs[i];
    skua_tensor checked;
    SKUA_TRY(check_tensor(cls.name, "output", i, t, checked));
    t = checked;
    if (!outputs) continue;
    skua_tensor given;
    SKUA_TRY(check_tensor(cls.name, "output", i, outputs[i], given));
    if (given.type != t.type)
      return SKUA_INVALID("%s: output %zu has type %s, must be %s", cls.name, i, skua_dtype_name(given.type),
                          skua_dtype_name(t.type));
    if (given.rank != t.rank)
      return SKUA_INVALID("%s: output %zu has rank %u, must be %u", cls.name, i, given.rank, t.rank);
    for (uint32_t d = 0; d < t.rank; ++d)
      if (given.shape[d] != t.shape[d])
        return SKUA_INVALID("%s: output %zu has extent %zu in dimension %u, must be %zu", cls.name, i, given.shape[d],
                            d, t.shape[d]);
    uint32_t d;
    size_t reach;
    if (overlaps_itself(given, d, reach))
      return SKUA_INVALID(
          "%s: output %zu has stride %zu in dimension %u, which makes elements overlap: must be more than %zu",
          cls.name, i, given.stride[d], d, reach);
    t = given;
  }
  for (size_t i = 0; i < n_inputs && i < kMaxPlanInputs; ++i) plan->input_spans[i] = span_of(shapes[i]);
  for (size_t i = 0; i < op->n_outputs; ++i) plan->output_spans[i] = span_of(plan->outputs[i]);
  if (cls.finish) SKUA_TRY(cls.finish(op, plan));
  plan->workspace = cls.workspace ? cls.workspace(plan, 1) : 0;
  if (plan->workspace > SIZE_MAX / 2)
    return SKUA_INVALID("%s: the workspace is larger than the address space", cls.name);
  const skua_span y = plan->output_spans[0];
  plan->plain = op->n_outputs == 1 && y.dense && y.bytes && n_inputs <= kMaxPlanInputs && !op->ctx->gpu;
  for (size_t i = 0; plan->plain && i < n_inputs; ++i) {
    const skua_span x = plan->input_spans[i];
    plan->plain = x.dense && x.bytes;
    plan->shares |= uint8_t((cls.in_place && x.bytes == y.bytes) << i);
  }
  return SKUA_STATUS_OK;
}

}  // namespace

skua_status fill_plan(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* outputs,
                      size_t n_outputs, uint32_t wanted, skua_plan* plan) {
  const TunedChoice* tuned = nullptr;
  const ErrorText before;
  skua_status s = fill(op, inputs, n_inputs, outputs, n_outputs, wanted, tuned, plan);
  if (!tuned) return s;
  char name[sizeof tuned->name];
  if (s == SKUA_STATUS_OK) tuned_name(plan, name);
  const bool found = s == SKUA_STATUS_OK && !strcmp(name, tuned->name);
  if (!tuned->index) return plan->confirmed = found, s;
  if (found) return s;
  // What was measured has gone, or has another place: the model decides.
  s = fill(op, inputs, n_inputs, outputs, n_outputs, 0, tuned, plan);
  return s == SKUA_STATUS_OK ? before.restore() : s;
}

}  // namespace skua

using namespace skua;

extern "C" {

size_t skua_op_plan_size(const skua_op* op) { return op ? round_up(op->cls->plan_size, 16) : 0; }
size_t skua_op_input_count(const skua_op* op) { return op ? op->n_inputs : 0; }
size_t skua_op_output_count(const skua_op* op) { return op ? op->n_outputs : 0; }

skua_status skua_op_plan(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* outputs,
                         size_t n_outputs, skua_plan** out) {
  if (!out) return SKUA_INVALID("plan: out is NULL");
  *out = nullptr;
  if (!op) return SKUA_INVALID("plan: op is NULL");
  auto* plan = static_cast<skua_plan*>(allocate(op->ctx, op->cls->plan_size, 16));
  if (!plan) return out_of_memory(op->cls->name, op->cls->plan_size);
  const skua_status s = fill_plan(op, inputs, n_inputs, outputs, n_outputs, kAskTuned, plan);
  if (s == SKUA_STATUS_OK) *out = plan;
  else release(op->ctx, plan, op->cls->plan_size);
  return s;
}

skua_status skua_op_plan_init(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* outputs,
                              size_t n_outputs, void* memory, size_t size, skua_plan** out) {
  if (!out) return SKUA_INVALID("plan_init: out is NULL");
  *out = nullptr;
  if (!op) return SKUA_INVALID("plan_init: op is NULL");
  if (!memory) return SKUA_INVALID("plan_init: memory is NULL");
  if (reinterpret_cast<uintptr_t>(memory) % 16) return SKUA_INVALID("plan_init: memory is not aligned to 16 bytes");
  if (size < skua_op_plan_size(op))
    return SKUA_INVALID("plan_init: size is %zu, must be %zu or more", size, skua_op_plan_size(op));
  auto* plan = static_cast<skua_plan*>(memory);
  SKUA_TRY(fill_plan(op, inputs, n_inputs, outputs, n_outputs, kAskTuned, plan));
  plan->in_caller_memory = true;
  *out = plan;
  return SKUA_STATUS_OK;
}

skua_status skua_plan_outputs(const skua_plan* plan, skua_tensor* outputs, size_t n_outputs) {
  if (!plan) return SKUA_INVALID("plan_outputs: plan is NULL");
  if (!outputs) return SKUA_INVALID("plan_outputs: outputs is NULL");
  if (n_outputs != plan->n_outputs)
    return SKUA_INVALID("plan_outputs: n_outputs is %zu, must be %zu", n_outputs, plan->n_outputs);
  for (size_t i = 0; i < n_outputs; ++i) outputs[i] = plan->outputs[i];
  return SKUA_STATUS_OK;
}

size_t skua_plan_workspace(const skua_plan* plan, uint32_t concurrency) {
  if (!plan || !plan->op->cls->workspace) return 0;
  return plan->op->cls->workspace(plan, concurrency ? concurrency : 1);
}

const char* skua_plan_algorithm(const skua_plan* plan) { return plan ? plan->algorithm : ""; }
const char* skua_plan_kernel(const skua_plan* plan) {
  if (plan && plan->text) return plan->text->names[plan->op->ctx->gpu->api->number];
  return plan && plan->kernel ? plan->kernel->name : "";
}

void skua_plan_destroy(skua_plan* plan) {
  if (plan && !plan->in_caller_memory) release(plan->op->ctx, plan, plan->op->cls->plan_size);
}

void skua_op_destroy(skua_op* op) {
  if (!op) return;
  if (op->cls->close) op->cls->close(op);
  if (!op->borrowed) release(op->ctx, const_cast<void*>(op->weights), op->weights_size);
  release(op->ctx, op, op->cls->op_size);
}

const char* skua_dtype_name(skua_dtype type) {
  static const char* const names[] = {"f32", "f16", "bf16", "s8", "u8", "s4", "s32"};
  return unsigned(type) < 7 ? names[type] : "?";
}
uint32_t skua_dtype_bits(skua_dtype type) {
  static const uint8_t bits[] = {32, 16, 16, 8, 8, 4, 32};
  return unsigned(type) < 7 ? bits[type] : 0;
}

}  // extern "C"
