// skua_executor over a pthreadpool. The pool hands out one index per worker; each worker then takes tasks until none is left, so a fast
// core does more of them, and no two calls at once have the same worker.
#include <skua/pthreadpool.h>

#include <pthreadpool.h>

namespace {

struct Work {
  skua_task task;
  void* arg;
  size_t count;
  size_t next;  // shared by the workers, atomic
};

void take_tasks(void* context, size_t worker) {
  Work& work = *static_cast<Work*>(context);
  for (size_t i; (i = __atomic_fetch_add(&work.next, 1, __ATOMIC_RELAXED)) < work.count;) work.task(work.arg, i, uint32_t(worker));
}

void parallel_for(void* pool, size_t count, skua_task task, void* arg) {
  Work work = {task, arg, count, 0};
  const size_t threads = pthreadpool_get_threads_count(static_cast<pthreadpool_t>(pool));
  pthreadpool_parallelize_1d(static_cast<pthreadpool_t>(pool), take_tasks, &work, threads < count ? threads : count, 0);
}

}  // namespace

extern "C" skua_executor skua_executor_from_pthreadpool(struct pthreadpool* pool) {
  return {pool, uint32_t(pthreadpool_get_threads_count(pool)), parallel_for};
}
