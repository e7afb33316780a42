// skua_executor over a pthreadpool. The pool hands out one index per worker. Each worker has a share of the tasks, the same neighbouring ones every time, so that it finds in
// its cache what it wrote in the operator before; then it takes what others have left, so that a fast core does more. No two calls at once have the same worker.
#include <skua/pthreadpool.h>

#include <pthreadpool.h>

namespace {

constexpr size_t kMostShares = 32;

struct alignas(64) Share {
  size_t next, end;  // next is shared by the workers, atomic: released when the work is complete, by each worker when it is done, and acquired back
};

struct Work {
  skua_task task;
  void* arg;
  size_t shares;
  Share share[kMostShares];
};

void take_tasks(void* context, size_t worker) {
  Work& work = *static_cast<Work*>(context);
  __atomic_load_n(&work.share[0].next, __ATOMIC_ACQUIRE);
  const skua_task task = work.task;
  void* const arg = work.arg;
  const size_t shares = work.shares;
  for (size_t s = 0; s < shares; ++s) {
    Share& share = work.share[(worker + s) % shares];
    const size_t end = share.end;  // read before the last release of `next`, after which the caller may be gone
    for (size_t i; (i = __atomic_fetch_add(&share.next, 1, __ATOMIC_ACQ_REL)) < end;) task(arg, i, uint32_t(worker));
  }
}

void parallel_for(void* pool, size_t count, skua_task task, void* arg) {
  const size_t threads = pthreadpool_get_threads_count(static_cast<pthreadpool_t>(pool)), workers = threads < count ? threads : count;
  Work work;
  work.task = task, work.arg = arg;
  work.shares = workers < kMostShares ? workers : kMostShares;
  for (size_t s = work.shares; s-- > 0;) {
    work.share[s].end = size_t((unsigned long long)count * (s + 1) / work.shares);
    __atomic_store_n(&work.share[s].next, size_t((unsigned long long)count * s / work.shares), __ATOMIC_RELEASE);
  }
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), take_tasks, &work, workers, 0);
  for (size_t s = 0; s < work.shares; ++s) __atomic_load_n(&work.share[s].next, __ATOMIC_ACQUIRE);
}

}  // namespace

extern "C" skua_executor skua_executor_from_pthreadpool(struct pthreadpool* pool) {
  return {pool, uint32_t(pthreadpool_get_threads_count(pool)), parallel_for};
}
