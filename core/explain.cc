// What a plan says about itself: skua_plan_explain(). Operators add what they know in OpClass::explain.
#include <stdarg.h>
#include <stdio.h>
#include "core/op.h"
#include "gpu/device.h"

namespace skua {

void Text::add(const char* format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(length < size ? at + length : nullptr, length < size ? size - length : 0, format, args);
  va_end(args);
  if (n > 0) length += size_t(n);
}

void explain_cores(const OnCores& kernels, Text& text) {
  const auto add = [&](Core core, const char* name) {
    if (kernels.of[int(core)] != kernels.of[int(Core::any)])
      text.add("  on a %s: %s\n", name, kernels.of[int(core)]->name);
  };
  add(Core::a53, "Cortex-A53");
  add(Core::a55, "Cortex-A55");
}

namespace {

// The candidates of a plan, as tuning counts them, with the context's kernel filter and without; 0 where nothing is
// chosen among, or memory is short.
struct Candidates {
  uint32_t left, all;
};
Candidates count_candidates(const skua_plan* plan) {
  constexpr uint32_t kNone = kAskTuned - 1;  // no candidate has this number: all are passed over, none is made
  const OpClass& cls = *plan->op->cls;
  const skua_context& ctx = *plan->op->ctx;
  const size_t at_plan = round_up(cls.op_size, 64), size = at_plan + cls.plan_size;
  auto* memory = static_cast<char*>(allocate(&ctx, size, 64));
  if (!memory) return {};
  const ErrorText before;
  auto* op = reinterpret_cast<skua_op*>(memory);
  auto* probe = reinterpret_cast<skua_plan*>(memory + at_plan);
  const auto count = [&](const skua_context& in) {
    op->ctx = &in;
    (void)fill_plan(op, plan->all_inputs, plan->n_inputs, plan->outputs, plan->n_outputs, kNone, probe);
    return probe->choice.seen;
  };
  memcpy(memory, static_cast<const void*>(plan->op), cls.op_size);
  skua_context unfiltered = {};  // all that choosers ask of a context
  unfiltered.allocator = ctx.allocator;
  unfiltered.isas = ctx.isas;
  unfiltered.best = ctx.best;
  unfiltered.gpu = ctx.gpu;
  unfiltered.gpu_key = ctx.gpu_key;
  Candidates c = {count(ctx), 0};
  if (c.left) c.all = count(unfiltered);
  release(&ctx, memory, size);
  (void)before.restore();
  return c;
}

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" size_t skua_plan_explain(const skua_plan* plan, char* text, size_t size) {
  if (text && size) text[0] = 0;
  if (!plan) return 0;
  Text t = {text, text ? size : 0, 0};
  t.add("%s: algorithm %s, kernel %s\n", plan->op->cls->name, plan->algorithm, skua_plan_kernel(plan));
  if (plan->text) t.add("  %s\n", plan->text->why);
  const char* const filter = plan->op->ctx->filter;
  const Candidates c = filter[0] ? count_candidates(plan) : Candidates{};
  const bool named =
      plan->named || (filter[0] && (glob_match(filter, plan->algorithm) || glob_match(filter, skua_plan_kernel(plan))));
  // Weights of Winograd's algorithm are packed for one variant, whose name leaves no other candidate, and in panels
  // that a tile's name decides.
  const bool winograd = !plan->op->ctx->gpu && !strncmp(plan->algorithm, "winograd", 8),
             of_tiles = winograd && !strncmp(filter, "gemm_", 5),
             packed_for = winograd && !strcmp(filter, plan->algorithm);
  t.add("  %s\n", plan->choice.wanted                        ? "chosen by measurement"
                  : plan->confirmed                          ? "the model's choice, confirmed by measurement"
                  : (c.left == 1 && c.all > 1) || packed_for ? "chosen by the kernel filter"
                                                             : "chosen by the model");
  if (filter[0]) {
    t.add("  kernel filter \"%s\": ", filter);
    if (c.left >= c.all && c.left && packed_for) t.add("names the algorithm that the weights are packed for\n");
    else if (c.left && (named || c.left < c.all))
      t.add("leaves %u of %u candidate%s\n", c.left, c.left > c.all ? c.left : c.all,
            c.left > 1 || c.all > 1 ? "s" : "");
    else
      t.add("%s\n",
            named ? "names this kernel"
            : of_tiles
                ? "matches no candidate; a tile that it names decides the panels which the weights are packed for"
                : "matches nothing here, ignored");
  }
  for (size_t i = 0; i < plan->n_outputs; ++i) {
    t.add("  output %zu: %s [", i, skua_dtype_name(plan->outputs[i].type));
    for (uint32_t d = 0; d < plan->outputs[i].rank; ++d) t.add(d ? ", %zu" : "%zu", plan->outputs[i].shape[d]);
    t.add("]\n");
  }
  t.add("  workspace: %zu bytes for one worker, %zu for two\n", skua_plan_workspace(plan, 1),
        skua_plan_workspace(plan, 2));
  if (plan->op->weights_size)
    t.add("  packed weights: %zu bytes%s\n", plan->op->weights_size, plan->op->borrowed ? ", borrowed" : "");
  if (plan->op->cls->explain) plan->op->cls->explain(plan, t);
  return t.length;
}
