/* Threads are the caller's: Skua owns none. An executor is one function. */
#ifndef SKUA_EXECUTOR_H_
#define SKUA_EXECUTOR_H_

#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*skua_task)(void* arg, size_t index, uint32_t worker);

/* parallel_for(ctx, count, task, arg) must call task(arg, i, worker) exactly once for each i in [0, count), in any
 * order and on any threads, with worker < concurrency and no two calls at once with the same worker, and return after
 * the last call ended. Everything a call wrote must be visible to the caller after the return. A task never blocks and
 * never calls parallel_for. Results have the same bits for any executor, but for a NaN's sign and payload.
 *
 * Work too small to pay for waking threads (below about 2.5 microseconds) runs on the calling thread:
 * parallel_for may not be called at all. Else a run calls it once or several times, one after the other, on the
 * thread that called the run.
 *
 * Neighbouring indices are neighbouring parts of the outputs: an executor that gives a worker the same share of them
 * every time (worker w of n: [count*w/n, count*(w+1)/n), then what others have left) lets it find in its cache what it
 * wrote in the operator before. Workers that still spin when the next call comes are worth more than ones that sleep: a
 * network calls every few microseconds. */
typedef struct skua_executor { /* read during the call that it is given to */
  void* ctx;
  uint32_t concurrency; /* number of workers; 0 counts as 1 */
  void (*parallel_for)(void* ctx, size_t count, skua_task task, void* arg); /* never NULL, of one worker neither */
} skua_executor;

#ifdef __cplusplus
}
#endif
#endif
