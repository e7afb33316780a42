/* GPU streams: record operators, submit, wait. On a CPU context these return SKUA_STATUS_UNSUPPORTED: use
 * skua_plan_run(). */
#ifndef SKUA_STREAM_H_
#define SKUA_STREAM_H_

#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct skua_event skua_event;

/* Plans, operators and buffers may be destroyed as soon as they are recorded: the stream keeps the memory that its work
 * uses, and frees it when it was waited for, when it needs the place, or when it is destroyed. Streams, buffers and
 * events are destroyed before the context. A stream is used by one thread at a time; several streams of one context may
 * be used by several threads. */
SKUA_API skua_status skua_stream_create(skua_context* context, skua_stream** out);
SKUA_API void skua_stream_destroy(skua_stream* stream); /* waits; NULL is ignored */

/* Records the plan after what the stream already holds. workspace: skua_plan_workspace(plan, 1) bytes of device memory,
 * NULL when that is 0. */
SKUA_API skua_status skua_plan_enqueue(const skua_plan* plan, const skua_buffer* inputs, size_t n_inputs,
                                       const skua_buffer* outputs, size_t n_outputs, const skua_buffer* workspace,
                                       skua_stream* stream);
SKUA_API skua_status skua_stream_submit(skua_stream* stream); /* starts what was recorded; does not wait */
SKUA_API skua_status skua_stream_wait(skua_stream* stream);   /* submits, and returns when all is done */

/* An event marks a point in one stream that another can wait for; with timestamps when the device has them: nanoseconds
 * waits for both, is negative when `end` came first, and UNSUPPORTED on a device without. */
SKUA_API skua_status skua_event_record(skua_stream* stream, skua_event** out);
SKUA_API skua_status skua_stream_wait_event(skua_stream* stream, skua_event* event);
SKUA_API skua_status skua_event_nanoseconds(const skua_event* begin, const skua_event* end, double* nanoseconds);
SKUA_API void skua_event_destroy(skua_event* event);

#ifdef __cplusplus
}
#endif
#endif
