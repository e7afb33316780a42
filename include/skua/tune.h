/* Measured choices: a plan's model is right within a few percent; a measurement on the device is better. docs/tuning.md
 * says how it works. */
#ifndef SKUA_TUNE_H_
#define SKUA_TUNE_H_

#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct skua_tune_options {
  size_t struct_size;
  uint32_t max_milliseconds;     /* about, per op and shape; packed formats take some more; 0 = 200 */
  const skua_executor* executor; /* the one that run will use; NULL = this thread */
} skua_tune_options;

#define SKUA_TUNE_OPTIONS_INIT {sizeof(skua_tune_options), 0, NULL}

/* Times the candidates of a plan for these shapes and remembers the fastest: in the context, and in its tuning_cache
 * file if it has one. Plans made afterwards for the same operator and shapes use it: with this context, with a copy of
 * the operator in it, or in another process that reads the file. A plan does not know how many threads will run it, so
 * there is one choice: tune with the executor that run will use.
 *
 * Candidates are what the context may use (max_isa, kernel_filter) and what the operator's numerics allow. Algorithms
 * of a convolution and tiles of a product have packed formats of their own, and this operator's is what it was created
 * with: its plans choose among what that serves. The other formats are timed with made-up weights, and the fastest is
 * taken by creates of the same operator whose hint (hint_in_h and hint_in_w, hint_m) is the size tuned for. So tune
 * once, then create again.
 *
 * An operator with one candidate only (an inverted residual block always, pooling, ...) and an empty shape are left as
 * they are: OK, nothing remembered, a line in the log.
 *
 * Every call measures, also where a choice is known: plans use what is known without it. To tune only what is not known
 * yet, make the plan first and look for "measurement" in the text of skua_plan_explain(): "chosen by measurement" or
 * "the model's choice, confirmed by measurement". The context's log says what each call found.
 *
 * On a GPU the candidates are the kernels of a product or convolution, run in device memory of the call's own and timed
 * by the device; executor does not matter.
 *
 * Allocates inputs, outputs, workspace and two more packed weights through the context's allocator while it runs.
 * Thread-safe beside creates, plans, runs and other tuning; beside other work the measurement is worth less.
 *
 * Fails on bad arguments and for lack of memory; a file that cannot be written is said in the context's log, and the
 * choice still holds in memory. */
SKUA_API skua_status skua_op_tune(skua_op* op, const skua_tensor* inputs, size_t n_inputs,
                                  const skua_tune_options* options);

#ifdef __cplusplus
}
#endif
#endif
