// skua_executor over a pthreadpool. The pool hands out one index per worker. Each worker has a share of the tasks, the
// same neighbouring ones every time, so that it finds in its cache what it wrote in the operator before; then it takes
// what others have left, so that a fast core does more. No two calls at once have the same worker.
#include <skua/pthreadpool.h>

#include <pthreadpool.h>

namespace {

constexpr size_t kMostShares = 32;

// All that its worker needs to begin, on one cache line: each that comes from the caller's core is another 25 to 200
// ns.
struct alignas(64) Share {
  // next is shared by the workers, atomic: released when the work is complete, by each worker when it is done, and
  // acquired back
  size_t next, end;
  skua_task task;
  void* arg;
  size_t shares;
};

void take_tasks(void* context, size_t worker) {
  Share* const all = static_cast<Share*>(context);
  Share& own = all[worker % kMostShares];
  __atomic_load_n(&own.next, __ATOMIC_ACQUIRE);
  const skua_task task = own.task;
  void* const arg = own.arg;
  const size_t shares = own.shares;
  for (size_t s = 0; s < shares; ++s) {
    Share& share = all[(worker + s) % shares];
    // Looking first leaves the line of a share that is done where it is; taking would not.
    for (;;) {
      size_t i = __atomic_load_n(&share.next, __ATOMIC_ACQUIRE);
      const size_t end = share.end;
      if (i >= end || (i = __atomic_fetch_add(&share.next, 1, __ATOMIC_ACQ_REL)) >= end) break;
      task(arg, i, uint32_t(worker));
    }
  }
  __atomic_fetch_add(&own.next, 1, __ATOMIC_RELEASE);  // after all that this worker reads: the caller may be gone
}

void parallel_for(void* pool, size_t count, skua_task task, void* arg) {
  const size_t threads = pthreadpool_get_threads_count(static_cast<pthreadpool_t>(pool)),
               workers = threads < count ? threads : count;
  Share work[kMostShares];
  const size_t shares = workers < kMostShares ? workers : kMostShares;
  for (size_t s = 0; s < shares; ++s) {
    work[s].end = size_t((unsigned long long)count * (s + 1) / shares);
    work[s].task = task, work[s].arg = arg, work[s].shares = shares;
    __atomic_store_n(&work[s].next, size_t((unsigned long long)count * s / shares), __ATOMIC_RELEASE);
  }
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), take_tasks, work, workers, 0);
  for (size_t s = 0; s < shares; ++s) __atomic_load_n(&work[s].next, __ATOMIC_ACQUIRE);
}

}  // namespace

extern "C" skua_executor skua_executor_from_pthreadpool(struct pthreadpool* pool) {
  return {pool, uint32_t(pthreadpool_get_threads_count(pool)), parallel_for};
}
