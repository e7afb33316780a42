// skua_plan_run(): what is checked of the buffers, and the call.
#include "core/op.h"

namespace skua {
namespace {

skua_span input_span(const skua_plan* plan, size_t i) {
  return i < kMaxPlanInputs ? plan->input_spans[i] : span_of(plan->all_inputs[i]);
}

// The bytes of a dense tensor; nothing for one with holes: slices of one larger tensor may interleave, so only dense
// tensors are compared.
struct Range {
  uintptr_t begin, end;
  bool meets(const Range& other) const {
    return begin < other.end && other.begin < end && begin < end && other.begin < other.end;
  }
};
uintptr_t address_of(const skua_buffer& b) { return reinterpret_cast<uintptr_t>(b.host) + b.offset; }
bool same_layout(const skua_tensor& a, const skua_tensor& b) {
  bool same = a.rank == b.rank;
  for (uint32_t d = 0; same && d < a.rank; ++d)
    same = a.shape[d] == b.shape[d] && (a.shape[d] == 1 || a.stride[d] == b.stride[d]);
  return same;
}
Range dense_range(const skua_buffer& b, const skua_span& span) {
  if (!span.dense) return {};
  const uintptr_t begin = address_of(b);
  return {begin, begin + span.bytes};
}

skua_status check_buffer(const char* op, const char* what, size_t i, const skua_buffer& b, const skua_span& span) {
  if (b.device) return SKUA_INVALID("%s: %s %zu is a device buffer, the context is on the CPU", op, what, i);
  if (span.bytes == 0) return SKUA_STATUS_OK;
  if (!b.host) return SKUA_INVALID("%s: %s %zu is NULL", op, what, i);
  if ((reinterpret_cast<uintptr_t>(b.host) + b.offset) & (span.element - 1))
    return SKUA_INVALID("%s: %s %zu is not aligned to its element type (%u bytes)", op, what, i, span.element);
  return SKUA_STATUS_OK;
}

// What nearly every run is: one thread or no workspace, buffers that are there, aligned and apart. Of anything else
// check_run() says what it is.
inline bool plainly_right(const RunArgs& args, size_t n_inputs, size_t n_outputs, size_t workspace_size) {
  const skua_plan& p = *args.plan;
  if (!p.plain || n_inputs != p.n_inputs || n_outputs != 1 || !args.inputs || !args.outputs) return false;
  if (args.executor && (!args.executor->parallel_for || (args.executor->concurrency > 1 && p.op->cls->workspace)))
    return false;
  const uintptr_t space = reinterpret_cast<uintptr_t>(args.workspace);
  if (p.workspace && (!space || space % SKUA_WORKSPACE_ALIGNMENT || workspace_size < p.workspace)) return false;
  const auto there = [](const skua_buffer& b, const skua_span& span) {
    return b.host && !b.device && !(address_of(b) & (span.element - 1));
  };
  // begins inside; modulo 2^64
  const auto meet = [](uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) {
    return a - b < b_bytes || b - a < a_bytes;
  };
  const skua_span& to = p.output_spans[0];
  const uintptr_t y = address_of(args.outputs[0]);
  if (!there(args.outputs[0], to) || (p.workspace && meet(y, to.bytes, space, p.workspace))) return false;
  for (size_t i = 0; i < n_inputs; ++i) {
    const skua_span& from = p.input_spans[i];
    const uintptr_t x = address_of(args.inputs[i]);
    if (!there(args.inputs[i], from) || (p.workspace && meet(x, from.bytes, space, p.workspace))) return false;
    if (meet(x, from.bytes, y, to.bytes) && !(x == y && p.shares >> i & 1)) return false;
  }
  return true;
}

__attribute__((noinline)) skua_status check_run(const RunArgs& args, size_t n_inputs, size_t n_outputs,
                                                size_t workspace_size) {
  const skua_plan* plan = args.plan;
  const skua_buffer *inputs = args.inputs, *outputs = args.outputs;
  void* const workspace = args.workspace;
  const skua_executor* executor = args.executor;
  const OpClass& cls = *plan->op->cls;
  if (plan->op->ctx->gpu)
    return SKUA_UNSUPPORTED_("%s: the plan is one for a GPU; it is recorded with skua_plan_enqueue()", cls.name);
  if (!inputs) return SKUA_INVALID("%s: inputs is NULL", cls.name);
  if (!outputs) return SKUA_INVALID("%s: outputs is NULL", cls.name);
  if (n_inputs != plan->n_inputs)
    return wrong_number_of_inputs(cls, n_inputs, plan->n_inputs);
  if (n_outputs != plan->n_outputs)
    return SKUA_INVALID("%s: n_outputs is %zu, must be %zu", cls.name, n_outputs, plan->n_outputs);
  if (executor && !executor->parallel_for) return SKUA_INVALID("%s: executor.parallel_for is NULL", cls.name);
  Range space = {};
  if (cls.workspace) {
    const size_t need = cls.workspace(plan, args.concurrency());
    if (need == SIZE_MAX)
      return SKUA_INVALID("%s: the workspace for %u workers is larger than the address space", cls.name,
                          args.concurrency());
    if (need && !workspace) return SKUA_INVALID("%s: workspace is NULL, %zu bytes are needed", cls.name, need);
    if (need && reinterpret_cast<uintptr_t>(workspace) % SKUA_WORKSPACE_ALIGNMENT)
      return SKUA_INVALID("%s: workspace is not aligned to %d bytes", cls.name, SKUA_WORKSPACE_ALIGNMENT);
    if (workspace_size < need)
      return SKUA_INVALID("%s: workspace_size is %zu, %zu are needed for %u worker%s", cls.name, workspace_size, need,
                          args.concurrency(), args.concurrency() == 1 ? "" : "s");
    space = {reinterpret_cast<uintptr_t>(workspace), reinterpret_cast<uintptr_t>(workspace) + need};
  }
  for (size_t i = 0; i < n_inputs; ++i) {
    SKUA_TRY(check_buffer(cls.name, "input", i, inputs[i], input_span(plan, i)));
    if (dense_range(inputs[i], input_span(plan, i)).meets(space))
      return SKUA_INVALID("%s: the workspace overlaps input %zu", cls.name, i);
  }
  for (size_t o = 0; o < n_outputs; ++o) {
    SKUA_TRY(check_buffer(cls.name, "output", o, outputs[o], plan->output_spans[o]));
    const Range y = dense_range(outputs[o], plan->output_spans[o]);
    if (y.meets(space)) return SKUA_INVALID("%s: the workspace overlaps output %zu", cls.name, o);
    for (size_t i = 0; i < n_inputs; ++i) {
      const skua_span from = input_span(plan, i), to = plan->output_spans[o];
      if (from.bytes && to.bytes && address_of(inputs[i]) == address_of(outputs[o])) {
        if (!cls.in_place) return SKUA_INVALID("%s: output %zu overlaps input %zu", cls.name, o, i);
        if (!(from.dense && to.dense && from.bytes == to.bytes) && !same_layout(plan->all_inputs[i], plan->outputs[o]))
          return SKUA_INVALID("%s: output %zu overlaps input %zu: in place needs the same shape and strides", cls.name,
                              o, i);
        continue;
      }
      if (y.meets(dense_range(inputs[i], from)))
        return SKUA_INVALID("%s: output %zu overlaps input %zu", cls.name, o, i);
    }
    for (size_t p = 0; p < o; ++p)
      if (y.meets(dense_range(outputs[p], plan->output_spans[p])))
        return SKUA_INVALID("%s: output %zu overlaps output %zu", cls.name, o, p);
  }
  return SKUA_STATUS_OK;
}

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_plan_run(const skua_plan* plan, const skua_buffer* inputs, size_t n_inputs,
                                     const skua_buffer* outputs, size_t n_outputs, void* workspace,
                                     size_t workspace_size, const skua_executor* executor) {
  if (!plan) return SKUA_INVALID("run: plan is NULL");
  const RunArgs args = {plan, inputs, outputs, workspace, executor};
  if (!plainly_right(args, n_inputs, n_outputs, workspace_size))
    SKUA_TRY(check_run(args, n_inputs, n_outputs, workspace_size));
  plan->op->cls->run(args);
  return SKUA_STATUS_OK;
}
