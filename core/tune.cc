// skua_op_tune: the candidates of a plan take turns, the one with the smallest median is remembered. See tuning.h,
// docs/tuning.md.
#include <skua/stream.h>
#include <skua/tune.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include "core/op.h"

namespace skua {
namespace {

constexpr uint32_t kMaxCandidates = 256;
constexpr size_t kMaxSamples = 31;

struct Candidate {
  skua_plan* plan;
  uint32_t index;              // 0: what the model chooses
  uint64_t plan_hash;          // equal: the same plan again
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

// All that was chosen for a plan, as explain says it: algorithm, kernel, workspace, prediction.
uint64_t plan_hash(skua_plan* plan) {
  char text[1024];
  const Choice choice = plan->choice;
  plan->choice = {};
  skua_plan_explain(plan, text, sizeof text);
  plan->choice = choice;
  if (char* candidates = strstr(text, "  candidates:")) *candidates = 0;
  return hash(text, strlen(text));
}

void tell(const skua_context* ctx, const char* format, ...) __attribute__((format(printf, 2, 3)));
void tell(const skua_context* ctx, const char* format, ...) {
  if (!ctx->log) return;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  ctx->log(ctx->log_ctx, SKUA_LOG_INFO, text);
}

struct Tuning {
  Candidate* candidates;
  size_t count;
  skua_buffer inputs[kMaxPlanInputs], outputs[2];
  void* workspace;
  size_t workspace_size;
  const skua_executor* executor;
  skua_stream* stream;  // of a GPU, where operands and workspace are parts of one buffer and the device's clock counts
  skua_buffer space;    // its workspace
  double until;

  bool late() const { return now_ns() > until; }
  skua_status sample(Candidate& c, size_t runs, double& ns) {
    if (stream) return sample_on_device(c, runs, ns);
    const double start = now_ns();
    for (size_t i = 0; i < runs; ++i)
      SKUA_TRY(skua_plan_run(c.plan, inputs, c.plan->n_inputs, outputs, c.plan->n_outputs, workspace, workspace_size,
                             executor));
    ns = (now_ns() - start) / double(runs);
    return SKUA_STATUS_OK;
  }
  skua_status sample_on_device(Candidate& c, size_t runs, double& ns);
  skua_status measure(Candidate*& winner);
};

skua_status Tuning::sample_on_device(Candidate& c, size_t runs, double& ns) {
  skua_event *begin = nullptr, *end = nullptr;
  const double start = now_ns();
  skua_status status = skua_event_record(stream, &begin);
  for (size_t i = 0; i < runs && status == SKUA_STATUS_OK; ++i)
    status = skua_plan_enqueue(c.plan, inputs, c.plan->n_inputs, outputs, c.plan->n_outputs,
                               workspace_size ? &space : nullptr, stream);
  if (status == SKUA_STATUS_OK) status = skua_event_record(stream, &end);
  if (status == SKUA_STATUS_OK) status = skua_stream_wait(stream);
  double elapsed = now_ns() - start, by_device = 0;  // the host's time where the device has no clock
  if (status == SKUA_STATUS_OK && skua_event_nanoseconds(begin, end, &by_device) == SKUA_STATUS_OK) elapsed = by_device;
  ns = elapsed / double(runs);
  skua_event_destroy(begin);
  skua_event_destroy(end);
  return status;
}

skua_status Tuning::measure(Candidate*& winner) {
  // Twice each, the first time to warm up; only those within a third of the fastest stay. When there is no time for
  // all, the last ones have lost: the model's own is the first.
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
  size_t left = 0;
  for (size_t i = 0; i < count; ++i) left += !candidates[i].out;
  for (size_t round = 0; round < kMaxSamples && (!round || (left > 1 && !late())); ++round)
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

constexpr int kFill = 0x3c;  // as f32 0.0115: no denormals, no zeros

// A GPU's memory for operands, and a stream.
struct Device {
  skua_device_buffer* memory = nullptr;
  skua_stream* stream = nullptr;
  ~Device() {
    skua_stream_destroy(stream);
    skua_device_buffer_destroy(memory);
  }
  skua_buffer at(size_t offset) const { return {nullptr, memory, offset}; }
  skua_status open(const skua_context* ctx, size_t bytes) {
    auto* context = const_cast<skua_context*>(ctx);
    SKUA_TRY(skua_device_buffer_create(context, bytes, &memory));
    SKUA_TRY(skua_stream_create(context, &stream));
    const size_t size = min(bytes, size_t(1) << 20);
    void* const block = allocate(ctx, size, 16);
    if (!block) return out_of_memory("tune", size);
    memset(block, kFill, size);
    skua_status status = SKUA_STATUS_OK;
    for (size_t at = 0; at < bytes && status == SKUA_STATUS_OK; at += size)
      status = skua_device_buffer_write(memory, at, block, min(size, bytes - at));
    release(ctx, block, size);
    return status;
  }
};

size_t place(size_t& total, size_t bytes) {
  const size_t at = total;
  total = add_sat(total, bytes > SIZE_MAX - 64 ? bytes : round_up(bytes, 64));
  return at;
}

// What the candidates are, all of one class and for the same inputs: those of an operator's plan, or the model's plans
// of several operators.
struct Field {
  const skua_op* const* ops;
  size_t n_ops;
  size_t count;  // candidate i: plan number i / n_ops of operator i % n_ops
  const skua_tensor* inputs;
  size_t n_inputs;

  skua_status plan(size_t i, skua_plan* to) const {
    return fill_plan(ops[i % n_ops], inputs, n_inputs, nullptr, 0, uint32_t(i / n_ops), to);
  }
};

// What was found: the winner's index, time and name, and its key; how many different plans there were; the first one's
// time over the winner's.
struct Found {
  TunedChoice choice;
  size_t different;
  double gain;
};

// "conv2d: 12 candidates, winograd_f4x4 KERNEL 7.1% faster than the model's choice"; a name begins with that of the
// operator.
void tell_found(const skua_op* op, const char* what, const Found& f) {
  const char* const name = op->cls->name;
  if (f.different < 2) tell(op->ctx, "%s%s: one candidate, nothing to tune", name, what);
  else if (!f.choice.index) tell(op->ctx, "%s%s: %zu candidates, the model's choice stays", name, what, f.different);
  else
    tell(op->ctx, "%s%s: %zu candidates, %s %.1f%% faster than the model's choice", name, what, f.different,
         f.choice.name + strlen(name) + 1, 100 * (f.gain - 1));
}

// Lets them take turns for so long; the first is kept unless another is faster. A plan that is the same as an earlier
// one is passed over: it would win by noise.
skua_status find_fastest(const Field& field, const skua_executor* executor, double milliseconds, Found& found) {
  const skua_context* ctx = field.ops[0]->ctx;
  const size_t plan_size = skua_op_plan_size(field.ops[0]);
  const uint32_t workers = executor && executor->concurrency && !ctx->gpu ? executor->concurrency : 1;
  auto* probe = static_cast<skua_plan*>(allocate(ctx, plan_size, 16));
  if (!probe) return out_of_memory("tune", plan_size);
  size_t total = 0, workspace = 0, at_input[kMaxPlanInputs] = {}, at_output[2] = {};
  for (size_t i = 0; i < field.count; ++i) {
    if (field.plan(i, probe) != SKUA_STATUS_OK) continue;
    workspace = max(workspace, skua_plan_workspace(probe, workers));
    if (total) continue;
    for (size_t k = 0; k < probe->n_inputs; ++k) at_input[k] = place(total, probe->input_spans[k].bytes);
    for (size_t k = 0; k < probe->n_outputs; ++k) at_output[k] = place(total, probe->output_spans[k].bytes);
  }
  release(ctx, probe, plan_size);

  const size_t at_workspace = place(total, workspace), there = ctx->gpu ? total : 0;
  Device device;
  if (ctx->gpu) SKUA_TRY(device.open(ctx, there));
  if (ctx->gpu) total = 0;
  const size_t at_candidates = place(total, field.count * sizeof(Candidate)),
               at_plans = place(total, field.count * plan_size);
  char* memory = total > SIZE_MAX / 2 ? nullptr : static_cast<char*>(allocate(ctx, total, SKUA_WORKSPACE_ALIGNMENT));
  if (!memory) return out_of_memory("tune", total);
  if (!ctx->gpu) memset(memory, kFill, at_workspace);
  memset(memory + at_candidates, 0, field.count * sizeof(Candidate));
  Tuning t = {};
  t.candidates = reinterpret_cast<Candidate*>(memory + at_candidates);
  t.workspace = ctx->gpu ? nullptr : memory + at_workspace;
  t.workspace_size = workspace;
  t.executor = executor;
  t.until = now_ns() + 1e6 * milliseconds;
  t.stream = device.stream;
  t.space = device.at(at_workspace);
  for (size_t i = 0; i < kMaxPlanInputs; ++i)
    t.inputs[i] = ctx->gpu ? device.at(at_input[i]) : skua_host_buffer(memory + at_input[i]);
  for (size_t i = 0; i < 2; ++i)
    t.outputs[i] = ctx->gpu ? device.at(at_output[i]) : skua_host_buffer(memory + at_output[i]);
  for (size_t i = 0; i < field.count; ++i) {
    Candidate& c = t.candidates[t.count];
    c.plan = reinterpret_cast<skua_plan*>(memory + at_plans + t.count * plan_size);
    c.index = uint32_t(i);
    if (field.plan(i, c.plan) != SKUA_STATUS_OK) continue;
    c.plan_hash = plan_hash(c.plan);
    size_t same = 0;
    while (same < t.count && t.candidates[same].plan_hash != c.plan_hash) ++same;
    t.count += same == t.count;
  }
  Candidate* winner = nullptr;
  const skua_status status = t.measure(winner);
  if (status == SKUA_STATUS_OK) {
    found = {{}, t.count, median(*t.candidates) / median(*winner)};
    TunedChoice& choice = found.choice;
    choice.key = tuning_key(winner->plan->op, {winner->plan->inputs, winner->plan->n_inputs});
    choice.index = winner->index;
    choice.threads = workers;
    choice.ns = uint64_t(median(*winner));
    choice.measured = true;
    tuned_name(winner->plan, choice.name);
  }
  release(ctx, memory, total);
  return status;
}

// The candidates of an operator's plan; `what` stands behind its name in the log. `key` becomes that of operator and
// shapes, 0 when there is nothing to compute.
skua_status tune_plan(const skua_op* op, const char* what, const skua_tensor* inputs, size_t n_inputs,
                      const skua_executor* executor, double milliseconds, uint64_t& key) {
  const size_t plan_size = skua_op_plan_size(op);
  auto* probe = static_cast<skua_plan*>(allocate(op->ctx, plan_size, 16));
  if (!probe) return out_of_memory("tune", plan_size);
  size_t count = 1;  // the model's choice, then numbers 1, 2, ...
  const skua_status status = fill_plan(op, inputs, n_inputs, nullptr, 0, 0, probe);
  bool empty = true;
  for (size_t i = 0; status == SKUA_STATUS_OK && i < probe->n_outputs; ++i) empty &= !probe->output_spans[i].bytes;
  key = 0;
  if (status == SKUA_STATUS_OK && !empty && n_inputs <= kMaxPlanInputs) {
    key = tuning_key(op, {probe->inputs, n_inputs});
    for (; count <= kMaxCandidates; ++count) {
      (void)fill_plan(op, inputs, n_inputs, nullptr, 0, uint32_t(count), probe);
      if (probe->choice.seen < count) break;
    }
  }
  release(op->ctx, probe, plan_size);
  if (status != SKUA_STATUS_OK) return status;
  if (empty) return tell(op->ctx, "%s: the outputs are empty, nothing to tune", op->cls->name), status;
  Found found = {{}, 1, 1};
  // Where there are packed formats, one candidate is remembered as well: explain then says that this shape was tuned.
  if (key && (count > 2 || op->cls->remake))
    SKUA_TRY(find_fastest({&op, 1, count, inputs, n_inputs}, executor, milliseconds, found));
  tell_found(op, what, found);
  return found.choice.key && (found.different > 1 || op->cls->remake) ? remember_tuned(op->ctx, found.choice) : status;
}

// The packed formats: operators with made-up weights meet the best so far, one after the other, so that there are two
// of them at most; then the plan of the best is tuned.
skua_status tune_format(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_executor* executor,
                        double milliseconds, uint64_t own_key) {
  skua_op* pair[2] = {};
  Found best = {{}, 1, 1};
  skua_status status = op->cls->remake(op, inputs, 0, &pair[0]);
  if (status != SKUA_STATUS_OK || !pair[0]) return status;
  for (uint32_t i = 1; i <= kMaxCandidates; ++i) {
    pair[1] = nullptr;
    status = op->cls->remake(op, inputs, i, &pair[1]);
    if (status == SKUA_STATUS_OK && !pair[1]) break;
    if (status == SKUA_STATUS_OK) {
      Found faster;
      status = find_fastest({pair, 2, 2, inputs, n_inputs}, executor, milliseconds / 4, faster);
      if (status == SKUA_STATUS_OK) best.different += faster.different - 1;
      if (status == SKUA_STATUS_OK && faster.choice.index) {
        skua_op* const slower = pair[0];
        pair[0] = pair[1];
        pair[1] = slower;
        best.choice = faster.choice;
        best.choice.index = i;
        best.gain *= faster.gain;
      } else if (status == SKUA_STATUS_OK && !best.choice.index) {
        best.choice = faster.choice;
      }
      skua_op_destroy(pair[1]);
    }
    if (status == SKUA_STATUS_OUT_OF_MEMORY) break;
  }
  if (status != SKUA_STATUS_OUT_OF_MEMORY) {
    status = SKUA_STATUS_OK;
    if (best.choice.key) {  // there was another to compare with
      const uint64_t plan_key = best.choice.key;
      best.choice.key = pair[0]->creation_key;
      tell_found(op, ", packed formats", best);
      if (best.choice.key) status = remember_tuned(op->ctx, best.choice);
      uint64_t key;
      if (status == SKUA_STATUS_OK && plan_key != own_key)
        status = tune_plan(pair[0], ", created with the hint", inputs, n_inputs, executor, milliseconds, key);
    }
  }
  skua_op_destroy(pair[0]);
  return status;
}

}  // namespace
}  // namespace skua

using namespace skua;

skua_status skua_op_tune(skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tune_options* options) {
  const ErrorText before;  // candidates that do not apply fail
  if (!op) return SKUA_INVALID("tune: op is NULL");
  skua_tune_options o = SKUA_TUNE_OPTIONS_INIT;
  if (options) {
    if (options->struct_size != sizeof o)
      return SKUA_INVALID("tune: options.struct_size is %zu, this library has %zu; start from SKUA_TUNE_OPTIONS_INIT",
                          options->struct_size, sizeof o);
    o = *options;
  }
  if (o.executor && !o.executor->parallel_for) return SKUA_INVALID("tune: executor.parallel_for is NULL");
  const double milliseconds = o.max_milliseconds ? o.max_milliseconds : 200;
  uint64_t key = 0;
  SKUA_TRY(tune_plan(op, "", inputs, n_inputs, o.executor, milliseconds, key));
  skua_status status =
      key && op->cls->remake ? tune_format(op, inputs, n_inputs, o.executor, milliseconds, key) : SKUA_STATUS_OK;
  if (status == SKUA_STATUS_OK && op->ctx->tuning_cache[0]) status = save_tuned(op->ctx);
  return status == SKUA_STATUS_OK ? before.restore() : status;
}
