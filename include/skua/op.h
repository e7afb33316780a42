/* The calls that all operators share: plan for a shape, run, explain.
 *
 *   op    what does not depend on the input's size: checked descriptor, packed weights.   skua_<operator>_create
 *   plan  what does: output shapes, algorithm, kernel, block sizes, workspace.            skua_op_plan
 *   run   pointers + workspace + executor: computes. Allocates nothing, reentrant.        skua_plan_run
 *
 * Ops borrow their context, plans borrow their op: destroy in the order plan, op, context. Handles must be alive: of
 * bad ones NULL alone is recognised, by a status, or by 0 or "" where a call returns no status. */
#ifndef SKUA_OP_H_
#define SKUA_OP_H_

#include <skua/context.h>
#include <skua/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SKUA_WORKSPACE_ALIGNMENT 64

/* Plans for these input shapes. outputs: NULL for dense outputs of the inferred shapes, whatever n_outputs is; or
 * n_outputs tensors whose shapes must be the inferred ones and whose strides are taken. One allocation;
 * microseconds. Thread-safe. */
SKUA_API skua_status skua_op_plan(const skua_op* op, const skua_tensor* inputs, size_t n_inputs,
                                  const skua_tensor* outputs, size_t n_outputs, skua_plan** out);

/* The same in the caller's memory (aligned to 16 bytes, skua_op_plan_size() bytes), without an allocation. The plan
 * needs no skua_plan_destroy; the memory must stay until its last use. */
SKUA_API size_t skua_op_plan_size(const skua_op* op);
SKUA_API skua_status skua_op_plan_init(const skua_op* op, const skua_tensor* inputs, size_t n_inputs,
                                       const skua_tensor* outputs, size_t n_outputs, void* memory, size_t size,
                                       skua_plan** out);

/* Number of inputs the op takes (0 = any number, for concat) and of outputs it gives. */
SKUA_API size_t skua_op_input_count(const skua_op* op);
SKUA_API size_t skua_op_output_count(const skua_op* op);

/* Inferred outputs, strides filled in. n_outputs must be skua_op_output_count(). */
SKUA_API skua_status skua_plan_outputs(const skua_plan* plan, skua_tensor* outputs, size_t n_outputs);

/* Bytes of workspace for an executor of that concurrency (0 counts as 1); SIZE_MAX if that many workers need more than
 * the address space. Fewer workers may need more (Winograd's algorithm shares memory between more than four):
 * ask for the number that will run. The same workspace may serve many plans, one run at a time. */
SKUA_API size_t skua_plan_workspace(const skua_plan* plan, uint32_t concurrency);

/* Computes.
 *   inputs and outputs: one buffer each, in the operator's order; outputs must not overlap inputs or the workspace
 *     unless the operator says "in place" (the same address, shape and strides). Overlap is refused when both tensors
 *     are dense or begin at one address.
 *   workspace: workspace_size >= skua_plan_workspace(plan, executor's concurrency) bytes, aligned to
 *     SKUA_WORKSPACE_ALIGNMENT; NULL when 0 is enough.
 *   executor NULL = this thread.
 * Fails only on bad arguments, before anything is written. Any number of threads may run one plan at once, each with
 * its own workspace. */
SKUA_API skua_status skua_plan_run(const skua_plan* plan, const skua_buffer* inputs, size_t n_inputs,
                                   const skua_buffer* outputs, size_t n_outputs, void* workspace, size_t workspace_size,
                                   const skua_executor* executor);

/* Algorithm, kernel, shapes and workspace; for products and convolutions also block sizes, predicted and roofline
 * flops per cycle, and every candidate with its predicted cycles or why it was turned down (docs/dispatch.md says
 * of which operators less). Lines of text. Returns the length without the final 0, like snprintf; text may be NULL
 * when size is 0. */
SKUA_API size_t skua_plan_explain(const skua_plan* plan, char* text, size_t size);

/* Short form of the choice, e.g. "winograd_f4x4" and "gemm_f32_6x64_avx512". Static storage. Direct forms
 * of convolutions have several names, "implicit_gemm" say, which are one to
 * skua_context_options.kernel_filter: "direct". */
SKUA_API const char* skua_plan_algorithm(const skua_plan* plan);
SKUA_API const char* skua_plan_kernel(const skua_plan* plan);

SKUA_API void skua_plan_destroy(skua_plan* plan); /* NULL is ignored */
SKUA_API void skua_op_destroy(skua_op* op);       /* NULL is ignored */

#ifdef __cplusplus
}
#endif
#endif
