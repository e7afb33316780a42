// skua_op_tune: the candidates of a plan take turns, the one with the smallest median is remembered. See tuning.h, docs/tuning.md.
#include <skua/tune.h>

#include <math.h>
#include <time.h>
#include "core/op.h"

namespace skua {
namespace {

constexpr uint32_t kMaxCandidates = 256;
constexpr size_t kMaxSamples = 31;

struct Candidate {
  skua_plan* plan;
  uint32_t index;              // 0: what the model chooses
  size_t taken, repeats;       // samples; runs per sample
  double samples[kMaxSamples]; // nanoseconds of a run
  bool out;                    // too slow to be measured further
};

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

// Sorts.
double median(Candidate& c) {
  for (size_t i = 1; i < c.taken; ++i)
    for (size_t j = i; j > 0 && c.samples[j] < c.samples[j - 1]; --j) {
      const double x = c.samples[j];
      c.samples[j] = c.samples[j - 1];
      c.samples[j - 1] = x;
    }
  return c.taken ? c.samples[c.taken / 2] : INFINITY;
}

struct Tuning {
  Candidate* candidates;
  size_t count;
  skua_buffer inputs[kMaxPlanInputs], outputs[2];
  void* workspace;
  size_t workspace_size;
  const skua_executor* executor;
  double until;

  bool late() const { return now_ns() > until; }
  skua_status sample(Candidate& c, size_t runs, double& ns) {
    const double start = now_ns();
    for (size_t i = 0; i < runs; ++i)
      SKUA_TRY(skua_plan_run(c.plan, inputs, c.plan->n_inputs, outputs, c.plan->n_outputs, workspace, workspace_size, executor));
    ns = (now_ns() - start) / double(runs);
    return SKUA_STATUS_OK;
  }
  skua_status measure(Candidate*& winner);
};

skua_status Tuning::measure(Candidate*& winner) {
  // Twice each, the first time to warm up; only those within a third of the fastest stay. When there is no time for all, the last ones have lost: the model's own is the first.
  double best = INFINITY;
  for (size_t i = 0; i < count; ++i) {
    Candidate& c = candidates[i];
    c.out = i && late();
    double ns = INFINITY, again = INFINITY;
    if (!c.out) SKUA_TRY(sample(c, 1, ns));
    if (!c.out) SKUA_TRY(sample(c, 1, again));
    c.samples[0] = again < ns ? again : ns;
    if (c.samples[0] < best) best = c.samples[0];
  }
  for (size_t i = 0; i < count; ++i) {
    Candidate& c = candidates[i];
    c.out |= i && c.samples[0] > best * 1.33;
    c.repeats = c.samples[0] < 100e3 ? size_t(100e3 / (c.samples[0] + 1)) + 1 : 1;
  }
  for (size_t round = 0; round < kMaxSamples && (!round || !late()); ++round)
    for (size_t i = 0; i < count; ++i) {
      Candidate& c = candidates[i];
      if (c.out) continue;
      SKUA_TRY(sample(c, c.repeats, c.samples[c.taken]));
      ++c.taken;
    }
  winner = candidates;
  for (size_t i = 1; i < count; ++i)  // not for a difference that the next measurement may turn around
    if (median(candidates[i]) < (winner == candidates ? 0.99 : 1.0) * median(*winner)) winner = &candidates[i];
  return SKUA_STATUS_OK;
}

size_t place(size_t& total, size_t bytes) {
  const size_t at = total;
  total = add_sat(total, bytes > SIZE_MAX - 64 ? bytes : round_up(bytes, 64));
  return at;
}

}  // namespace
}  // namespace skua

using namespace skua;

skua_status skua_op_tune(skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tune_options* options) {
  if (!op) return SKUA_INVALID("tune: op is NULL");
  skua_tune_options o = SKUA_TUNE_OPTIONS_INIT;
  if (options) {
    if (options->struct_size != sizeof o) return SKUA_INVALID("tune: options.struct_size is %zu, this library has %zu; start from SKUA_TUNE_OPTIONS_INIT", options->struct_size, sizeof o);
    o = *options;
  }
  if (o.executor && !o.executor->parallel_for) return SKUA_INVALID("tune: executor.parallel_for is NULL");
  const skua_context* ctx = op->ctx;
  const size_t plan_size = skua_op_plan_size(op);
  const uint32_t workers = o.executor && o.executor->concurrency ? o.executor->concurrency : 1;

  // How many candidates, and the memory that the largest of them needs.
  auto* probe = static_cast<skua_plan*>(allocate(ctx, plan_size, 16));
  if (!probe) return out_of_memory("tune", plan_size);
  size_t count = 1, total = 0, workspace = 0, at_input[kMaxPlanInputs] = {}, at_output[2] = {};
  skua_status status = fill_plan(op, inputs, n_inputs, nullptr, 0, 0, probe);
  if (status == SKUA_STATUS_OK && n_inputs <= kMaxPlanInputs) {
    workspace = skua_plan_workspace(probe, workers);
    for (size_t i = 0; i < probe->n_inputs; ++i) at_input[i] = place(total, probe->input_spans[i].bytes);
    for (size_t i = 0; i < probe->n_outputs; ++i) at_output[i] = place(total, probe->output_spans[i].bytes);
    for (; count <= kMaxCandidates; ++count) {
      const bool made = fill_plan(op, inputs, n_inputs, nullptr, 0, uint32_t(count), probe) == SKUA_STATUS_OK;
      if (probe->choice.seen < count) break;
      if (made) workspace = max(workspace, skua_plan_workspace(probe, workers));
    }
  }
  release(ctx, probe, plan_size);
  if (status != SKUA_STATUS_OK || count <= 2) return status;  // one candidate or none: nothing to measure

  const size_t at_workspace = place(total, workspace), at_candidates = place(total, count * sizeof(Candidate)), at_plans = place(total, count * plan_size);
  char* memory = total > SIZE_MAX / 2 ? nullptr : static_cast<char*>(allocate(ctx, total, SKUA_WORKSPACE_ALIGNMENT));
  if (!memory) return out_of_memory("tune", total);
  memset(memory, 0x3c, at_workspace);  // as f32 0.0115: no denormals, no zeros
  memset(memory + at_candidates, 0, count * sizeof(Candidate));
  Tuning t = {};
  t.candidates = reinterpret_cast<Candidate*>(memory + at_candidates);
  t.workspace = memory + at_workspace;
  t.workspace_size = workspace;
  t.executor = o.executor;
  t.until = now_ns() + 1e6 * (o.max_milliseconds ? o.max_milliseconds : 200);
  for (size_t i = 0; i < kMaxPlanInputs; ++i) t.inputs[i] = skua_host_buffer(memory + at_input[i]);
  for (size_t i = 0; i < 2; ++i) t.outputs[i] = skua_host_buffer(memory + at_output[i]);
  for (uint32_t i = 0; i < count; ++i) {
    Candidate& c = t.candidates[t.count];
    c.plan = reinterpret_cast<skua_plan*>(memory + at_plans + t.count * plan_size);
    c.index = i;
    t.count += fill_plan(op, inputs, n_inputs, nullptr, 0, i, c.plan) == SKUA_STATUS_OK;
  }
  Candidate* winner = nullptr;
  status = t.measure(winner);
  if (status == SKUA_STATUS_OK) {
    TunedChoice choice = {};
    choice.key = tuning_key(op, {winner->plan->inputs, winner->plan->n_inputs});
    choice.index = winner->index;
    choice.threads = workers;
    choice.ns = uint64_t(median(*winner));
    choice.measured = true;
    tuned_name(winner->plan, choice.name);
    status = remember_tuned(ctx, choice);
  }
  release(ctx, memory, total);
  if (status == SKUA_STATUS_OK && ctx->tuning_cache[0]) status = save_tuned(ctx);
  return status;
}
