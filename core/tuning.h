// Measured choices (docs/tuning.md): how a plan is made to take a certain candidate, and what a context remembers of
// the fastest.
#pragma once
#include "core/context.h"

struct skua_plan;

namespace skua {

struct PlanShapes;

// A plan's candidates are what its choosers walk: algorithms, tiles, blockings, each with the cycles that a model
// predicts. skip() is called once for each candidate that could serve, always in the same order, and passes over all
// but the wanted one. So every chooser stays the one function that it is, and index i names a candidate.
struct Choice {
  uint32_t wanted;  // counted from 1; 0 = none: the model decides
  uint32_t seen;
  bool skip() { return wanted && ++seen != wanted; }
};

constexpr uint32_t kAskTuned = UINT32_MAX;  // what the context remembers for these shapes, or the model

// What was measured to be fastest. Immutable once it is in the context's table; a later one for the same key stands
// before it.
struct TunedChoice {
  TunedChoice* next;
  uint64_t key;
  uint32_t index;      // Choice::wanted
  uint32_t threads;    // it was measured with
  uint64_t ns;         // one run took
  bool measured;       // by this context; else from the file
  char name[144];      // "conv2d winograd_f4x4 winograd_product_...": checked when a plan takes it
};

constexpr uint32_t kTunedBuckets = 32;

// FNV-1a; the final mix spreads the last bytes
uint64_t hash(const void* data, size_t size, uint64_t h = 0xcbf29ce484222325);

// Operator, shapes and whatever else decides which candidates there are. Never 0.
uint64_t tuning_key(const skua_op* op, const PlanShapes& shapes);
// The same for creation, whose candidates are packed formats: config before a format is in it, and the hints. 0 without
// hints, and under a filter, which chooses the format itself.
uint64_t creation_key(const skua_context* ctx, uint32_t op_class, const void* config, size_t size, uint64_t hint_h,
                      uint64_t hint_w);
uint32_t tuned_creation(const skua_context* ctx, uint64_t key);  // Choice::wanted
void tuned_name(const skua_plan* plan, char (&name)[sizeof TunedChoice::name]);
const TunedChoice* find_tuned(const skua_context* ctx, uint64_t key);
skua_status remember_tuned(const skua_context* ctx, const TunedChoice& choice);  // fails for lack of memory only
void forget_tuned(skua_context* ctx);

// The file of the context. What cannot be used or written is said in the log; these fail for lack of memory only.
skua_status load_tuned(skua_context* ctx);
skua_status save_tuned(const skua_context* ctx);

// skua_op_plan_init, for candidate `wanted` (kAskTuned as the public call does).
skua_status fill_plan(const skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tensor* outputs,
                      size_t n_outputs, uint32_t wanted, skua_plan* plan);

}  // namespace skua
