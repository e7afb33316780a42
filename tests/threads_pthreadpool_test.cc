// The pthreadpool adapter: every task once, workers apart, and results as without threads.
#if __has_include(<pthreadpool.h>)
#include <gtest/gtest.h>
#include <pthreadpool.h>

#include <atomic>
#include <vector>

#include "skua/gemm.h"
#include "skua/pthreadpool.h"

namespace {

TEST(Pthreadpool, RunsEveryTaskOnceAndKeepsWorkersApart) {
  for (const size_t threads : {size_t(1), size_t(2), size_t(3), size_t(7)}) {
    pthreadpool_t pool = pthreadpool_create(threads);
    const skua_executor executor = skua_executor_from_pthreadpool(pool);
    ASSERT_EQ(executor.concurrency, pthreadpool_get_threads_count(pool));
    struct State {
      std::vector<std::atomic<int>> done = std::vector<std::atomic<int>>(100), busy = std::vector<std::atomic<int>>(64);
      std::atomic<bool> clash{false};
    } state;
    for (const size_t count : {size_t(0), size_t(1), size_t(2), size_t(100)}) {
      for (auto& d : state.done) d = 0;
      executor.parallel_for(executor.ctx, count, [](void* arg, size_t i, uint32_t worker) {
        State& s = *static_cast<State*>(arg);
        if (s.busy[worker].fetch_add(1) != 0) s.clash = true;
        s.done[i]++;
        s.busy[worker]--;
      }, &state);
      for (size_t i = 0; i < state.done.size(); ++i)
        EXPECT_EQ(state.done[i].load(), i < count ? 1 : 0) << i << " of " << count;
      EXPECT_FALSE(state.clash.load());
    }
    pthreadpool_destroy(pool);
  }
}

TEST(Pthreadpool, NoPoolIsThisThread) {
  const skua_executor executor = skua_executor_from_pthreadpool(nullptr);
  EXPECT_EQ(executor.concurrency, 1u);
  int sum = 0;
  executor.parallel_for(
      executor.ctx, 5, [](void* arg, size_t i, uint32_t) { *static_cast<int*>(arg) += int(i); }, &sum);
  EXPECT_EQ(sum, 10);
}

TEST(Pthreadpool, SameBitsAsWithoutThreads) {
  const size_t m = 61, n = 83, k = 37;
  std::vector<float> a(m * k), b(k * n), alone(m * n), together(m * n);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(int(i * 37 % 101) - 50) / 17;
  for (size_t i = 0; i < b.size(); ++i) b[i] = float(int(i * 53 % 97) - 48) / 13;
  skua_context* context;
  ASSERT_EQ(skua_context_create(nullptr, &context), SKUA_STATUS_OK);
  ASSERT_EQ(skua_gemm_f32(context, m, n, k, a.data(), k, b.data(), n, alone.data(), n, nullptr), SKUA_STATUS_OK);
  pthreadpool_t pool = pthreadpool_create(3);
  const skua_executor executor = skua_executor_from_pthreadpool(pool);
  ASSERT_EQ(skua_gemm_f32(context, m, n, k, a.data(), k, b.data(), n, together.data(), n, &executor), SKUA_STATUS_OK);
  pthreadpool_destroy(pool);
  skua_context_destroy(context);
  EXPECT_EQ(alone, together);
}

}  // namespace
#endif
