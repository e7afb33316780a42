/* Not in this version: skua_op_tune() answers SKUA_STATUS_UNSUPPORTED. What it will be:
 *
 * Measured choices: a plan's model is right within a few percent; a measurement on the device is better. */
#ifndef SKUA_TUNE_H_
#define SKUA_TUNE_H_

#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct skua_tune_options {
  size_t struct_size;
  uint32_t max_milliseconds; /* per op and shape; 0 = 200                              */
  const skua_executor* executor; /* the one that run will use; NULL = this thread      */
} skua_tune_options;

#define SKUA_TUNE_OPTIONS_INIT {sizeof(skua_tune_options), 0, NULL}

/* Times the candidates for these shapes, remembers the fastest in the context, and writes the context's tuning_cache file (atomic replace)
 * if it has one. Plans made afterwards use it. Allocates inputs, outputs and workspace while it runs. */
SKUA_API skua_status skua_op_tune(skua_op* op, const skua_tensor* inputs, size_t n_inputs, const skua_tune_options* options);

#ifdef __cplusplus
}
#endif
#endif
