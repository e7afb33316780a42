// skua_executor over a pthreadpool. The pool hands out one index per worker; each worker then takes tasks until none is left, so a fast
// core does more of them, and no two calls at once have the same worker.
#include <skua/pthreadpool.h>

#include <pthreadpool.h>

namespace {

struct Work {
  skua_task task;
  void* arg;
  size_t count;
  size_t next;  // shared by the workers, atomic: released when the work is complete, by each worker when it is done, and acquired back
};

void take_tasks(void* context, size_t worker) {
  Work& work = *static_cast<Work*>(context);
  __atomic_load_n(&work.next, __ATOMIC_ACQUIRE);
  const Work w = {work.task, work.arg, work.count, 0};
  for (size_t i; (i = __atomic_fetch_add(&work.next, 1, __ATOMIC_ACQ_REL)) < w.count;) w.task(w.arg, i, uint32_t(worker));
}

void parallel_for(void* pool, size_t count, skua_task task, void* arg) {
  Work work;
  work.task = task, work.arg = arg, work.count = count;
  __atomic_store_n(&work.next, 0, __ATOMIC_RELEASE);
  const size_t threads = pthreadpool_get_threads_count(static_cast<pthreadpool_t>(pool));
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), take_tasks, &work, threads < count ? threads : count, 0);
  __atomic_load_n(&work.next, __ATOMIC_ACQUIRE);
}

}  // namespace

extern "C" skua_executor skua_executor_from_pthreadpool(struct pthreadpool* pool) {
  return {pool, uint32_t(pthreadpool_get_threads_count(pool)), parallel_for};
}
