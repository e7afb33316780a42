// Many threads share contexts, ops, plans and blobs; built under ThreadSanitizer too.
#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

constexpr int kThreads = 8;

template <class Body> void together(Body body) {
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      body(t);
    });
  for (std::thread& t : threads) t.join();
}

// First in the program: the first detection of the CPU is a race of eight.
TEST(ThreadsContract, ContextsAreMadeAtOnce) {
  std::atomic<int> good{0};
  together([&](int) {
    skua_context* context = nullptr;
    if (skua_context_create(nullptr, &context) != SKUA_STATUS_OK) return;
    skua_device_info info;
    good +=
        skua_context_device(context, &info) == SKUA_STATUS_OK && info.compute_units > 0 && *skua_context_isa(context);
    skua_context_destroy(context);
  });
  EXPECT_EQ(good, kThreads);
}

TEST(ThreadsContract, OnePlan) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    std::atomic<int> wrong{0};
    together([&](int t) {
      for (int i = 0; i < 3; ++i) {
        Shuffled shuffled(uint32_t(t + 1));
        if (p.compute(t % 2 ? &shuffled.executor : nullptr) != want) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ThreadsContract, RealThreadsInAnExecutor) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    for (uint32_t workers : {1, 2, 3, 7}) {
      Threaded threads(workers);
      EXPECT_EQ(p.compute(threads), want) << workers << " threads";
    }
  }
}

// Large enough that the work is cut into many tasks.
std::vector<Sample> large_samples() {
  std::vector<Sample> large;
  for (const Sample& sample : samples()) {
    Sample s = sample;
    for (skua_tensor& t : s.inputs) t.shape[0] *= t.rank > 1 && std::strncmp(s.name, "gemm", 4) ? 9 : 1;
    if (!std::strcmp(s.name, "gemm_constant")) s.inputs[0].shape[0] = s.inputs[1].shape[0] = 900;
    if (!std::strcmp(s.name, "gemm_gelu")) s.inputs[0].shape[0] = s.inputs[1].shape[0] = 40;
    if (!std::strcmp(s.name, "gemm_tall")) s.inputs[0].shape[1] = 1200;
    large.push_back(s);
  }
  return large;
}

TEST(ThreadsContract, RealThreadsOnLargeWork) {
  Context context;
  for (const Sample& sample : large_samples()) {
    SCOPED_TRACE(sample.name);
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    Threaded threads(4);
    EXPECT_EQ(p.compute(threads), want);
    Shuffled shuffled(7);
    EXPECT_EQ(p.compute(shuffled), want);
  }
}

// More workers than there can be: nothing wraps where work is cut for them. Operators that want more than some hundred
// bytes for each are only asked how much.
TEST(ThreadsContract, MoreWorkersThanThereCanBe) {
  Context context;
  for (const Sample& sample : large_samples()) {
    SCOPED_TRACE(sample.name);
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    for (uint32_t workers : {65537u, 1u << 29, 1u << 30, 1u << 31, 3u << 30, UINT32_MAX}) {
      const size_t bytes = skua_plan_workspace(p.plan, workers);
      Shuffled shuffled(workers);
      if (bytes == SIZE_MAX) {
        EXPECT_EQ(skua_plan_run(p.plan, p.inputs.data(), p.inputs.size(), p.inputs.data(), p.outputs.size(), &context,
                                SIZE_MAX - 1, shuffled),
                  SKUA_STATUS_INVALID_ARGUMENT);
        EXPECT_NE(std::string(skua_error_text()).find("address space"), std::string::npos) << skua_error_text();
      } else if (bytes < (1u << 24)) {
        EXPECT_EQ(p.compute(shuffled), want) << workers << " workers";
      }
    }
  }
}

TEST(ThreadsContract, PlansOfOneOp) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    std::atomic<int> wrong{0};
    together([&](int) {
      for (int i = 0; i < 5; ++i) {
        skua_plan* plan = nullptr;
        if (skua_op_plan(p.op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, &plan) != SKUA_STATUS_OK)
          ++wrong;
        char text[512];
        skua_plan_explain(plan, text, sizeof text);
        skua_plan_destroy(plan);
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ThreadsContract, TwoOpsAndManyThreadsOnOneBlob) {
  for (const Sample& sample : samples()) {
    if (!sample.weights) continue;
    SCOPED_TRACE(sample.name);
    Context context;
    Planned p(sample, context);
    ASSERT_NE(p.plan, nullptr);
    const std::vector<unsigned char> want = p.compute();
    const size_t size = skua_op_packed_size(p.op);
    Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
    SKUA_EXPECT_OK(skua_op_packed_write(p.op, blob.memory(), size));
    blob.read_only();
    Sample from_blob = sample;
    from_blob.create = [&](skua_context* c, skua_op** out) {
      return skua_op_create_packed(c, blob.memory(), size, out);
    };
    Context other;
    Planned one(from_blob, context), two(from_blob, other);
    ASSERT_TRUE(one.plan && two.plan);
    std::atomic<int> wrong{0};
    together([&](int t) {
      if ((t % 2 ? one : two).compute() != want) ++wrong;
      Planned mine(from_blob, other);  // and ops come and go meanwhile
      if (mine.compute() != want) ++wrong;
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ThreadsContract, ErrorTextBelongsToItsThread) {
  EXPECT_EQ(skua_context_create(nullptr, nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  const std::string mine = skua_error_text();
  std::atomic<int> wrong{0};
  together([&](int t) {
    if (*skua_error_text()) ++wrong;  // "" before the first failure of a thread
    skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
    options.struct_size = size_t(1000 + t);
    skua_context* context = nullptr;
    for (int i = 0; i < 50; ++i) {
      if (skua_context_create(&options, &context) != SKUA_STATUS_INVALID_ARGUMENT) ++wrong;
      if (!std::strstr(skua_error_text(), std::to_string(1000 + t).c_str())) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(mine, skua_error_text());
}

}  // namespace
