/* Threads are the caller's: Skua owns none. An executor is one function. */
#ifndef SKUA_EXECUTOR_H_
#define SKUA_EXECUTOR_H_

#include <skua/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*skua_task)(void* arg, size_t index, uint32_t worker);

/* parallel_for(ctx, count, task, arg) must call task(arg, i, worker) exactly once for each i in [0, count), in any order and on
 * any threads, with worker < concurrency and no two calls at once with the same worker, and return after the last call ended.
 * Everything a call wrote must be visible to the caller after the return. A task never blocks and never calls parallel_for.
 * Results have the same bits for any executor. Work too small to pay for waking threads (about 20 microseconds per piece) runs on the calling
 * thread: parallel_for may not be called at all. */
typedef struct skua_executor {
  void* ctx;
  uint32_t concurrency; /* number of workers, 1 or more */
  void (*parallel_for)(void* ctx, size_t count, skua_task task, void* arg);
} skua_executor;

#ifdef __cplusplus
}
#endif
#endif
