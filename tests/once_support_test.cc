// The tests' own instruments: for each thing that run() promises to see there is an operator here that does it, and is
// caught.
#include <gtest/gtest-spi.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/op.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

// An operator that copies a matrix, and does one thing wrong.
enum class Fault {
  none,
  reads_behind,
  reads_before,
  writes_behind,
  writes_input,
  writes_holes,
  leaves_one,
  allocates,
  mallocs,
  by_worker,
  by_order,
  workspace
};
Fault fault;
skua_context* the_context;

struct FakePlan : skua_plan {};

skua_status make_plan(const skua_op*, const skua::PlanShapes& shapes, skua_plan* plan) {
  plan->outputs[0] = shapes.inputs[0];
  memset(plan->outputs[0].stride, 0, sizeof plan->outputs[0].stride);
  return SKUA_STATUS_OK;
}
size_t workspace(const skua_plan*, uint32_t concurrency) { return concurrency * 64; }

struct Job {
  const skua::RunArgs* args;
  size_t done;
};

void row(void* arg, size_t i, uint32_t worker) {
  Job& job = *static_cast<Job*>(arg);
  const skua::RunArgs& args = *job.args;
  const skua_tensor &x = args.plan->inputs[0], &y = args.plan->outputs[0];
  const float* from = args.in<float>(0) + i * x.stride[0];
  float* to = args.out<float>(0) + i * y.stride[0];
  const size_t n = x.shape[1];
  const bool last = i + 1 == x.shape[0];
  for (size_t j = 0; j < n; ++j) to[j] = from[j];
  if (fault == Fault::reads_behind && last) to[0] += 0 * const_cast<const volatile float*>(from)[n];
  if (fault == Fault::reads_before && i == 0) to[0] += 0 * const_cast<const volatile float*>(from)[-1];
  if (fault == Fault::writes_behind && last) const_cast<volatile float*>(to)[n] = 1;
  if (fault == Fault::writes_input) const_cast<float*>(from)[0] = 1;
  if (fault == Fault::writes_holes && i == 0) to[n] = 0;
  if (fault == Fault::leaves_one && i == 0) std::memset(to, 0xff, 4);
  if (fault == Fault::by_worker) to[0] += float(worker);
  if (fault == Fault::by_order) to[0] += float(job.done);
  if (fault == Fault::workspace) static_cast<char*>(args.workspace)[args.concurrency() * 64] = 1;
  ++job.done;
}

void run_fake(const skua::RunArgs& args) {
  Job job = {&args, 0};
  if (fault == Fault::allocates) skua::release(the_context, skua::allocate(the_context, 16, 16), 16);
  if (fault == Fault::mallocs) {
    void* volatile p = std::malloc(16);
    std::free(p);
  }
  skua::parallel(args, args.plan->inputs[0].shape[0], row, &job);
}

const skua::OpClass fake_class = {
    .name = "fake", .id = 9999,
    .op_size = sizeof(skua_op), .plan_size = sizeof(FakePlan), .config_offset = 0, .config_size = 0,
    .plan = make_plan, .workspace = workspace, .run = run_fake,
};

// Runs the operator; what it did wrong is a failure of the current test.
Data copy(Fault what, const skua_tensor& output = {}) {
  fault = what;
  Context context;
  the_context = context;
  Op op;
  SKUA_EXPECT_OK(skua::new_op(fake_class, context, 1, 1, 0, &op));
  Rng rng(1);
  const Data x = make(with_holes(shape({5, 7}), {0, 2}), rng);
  std::vector<Data> got = run(op, {x}, output.rank ? std::vector<skua_tensor>{output} : std::vector<skua_tensor>{});
  return got.empty() ? Data{} : got[0];
}

// How many failures the statement makes.
template <class Body> int failures(Body body, std::string* text = nullptr) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    body();
  }
  int failed = 0;
  for (int i = 0; i < results.size(); ++i) failed += results.GetTestPartResult(i).failed();
  if (text) text->clear();
  for (int i = 0; text && i < results.size(); ++i) *text += results.GetTestPartResult(i).message();
  return failed;
}

TEST(Support, AGoodOperatorPasses) {
  const Data y = copy(Fault::none);
  Rng rng(1);
  const Data x = make(with_holes(shape({5, 7}), {0, 2}), rng);
  expect_same_bits(y, x);
  copy(Fault::none, with_holes(shape({5, 7}), {0, 3}));
}

TEST(SupportDeathTest, AccessesOutsideEndTheProgram) {
  EXPECT_DEATH(copy(Fault::reads_behind), "");
  EXPECT_DEATH(copy(Fault::writes_behind), "");
  EXPECT_DEATH(copy(Fault::workspace), "");
  EXPECT_DEATH(copy(Fault::reads_before), "");
  EXPECT_DEATH(copy(Fault::writes_input), "");
  EXPECT_DEATH({
    Guarded g(3);
    g.data()[3] = 1;
  }, "");
  EXPECT_DEATH({
    Guarded g(3, false);
    g.data()[-1] = 1;
  }, "");
}

TEST(Support, FaultsOfARunAreSeen) {
  const skua_tensor holes = with_holes(shape({5, 7}), {0, 3});
  std::string text;
  EXPECT_GT(failures([&] { copy(Fault::writes_holes, holes); }, &text), 0);
  EXPECT_NE(text.find("between"), std::string::npos) << text;
  EXPECT_GT(failures([] { copy(Fault::allocates); }, &text), 0);
  EXPECT_NE(text.find("allocator"), std::string::npos) << text;
  if (!kSanitized) {
    EXPECT_GT(failures([] { copy(Fault::mallocs); }, &text), 0);
    EXPECT_NE(text.find("malloc"), std::string::npos) << text;
  }
  EXPECT_GT(failures([] { copy(Fault::by_worker); }, &text), 0);
  EXPECT_NE(text.find("other bits"), std::string::npos) << text;
  EXPECT_GT(failures([] { copy(Fault::by_order); }, &text), 0);
  EXPECT_NE(text.find("other bits"), std::string::npos) << text;
  Rng rng(1);
  const Data x = make(shape({5, 7}), rng);
  EXPECT_GT(failures([&] { expect_close(copy(Fault::leaves_one), dense_double(x), 1e-3); }), 0);
}

TEST(Support, LeaksAndWrongFreesAreSeen) {
  EXPECT_GT(failures([] {
    Context context;
    ++context.live;  // a block that nobody returns
  }), 0);
  EXPECT_GT(failures([] {
    Context context;
    skua_allocator a = context.context->allocator;
    a.free(a.ctx, a.alloc(a.ctx, 100, 64), 99);
  }), 0);
  EXPECT_GT(failures([] {
    Context context;
    skua_allocator a = context.context->allocator;
    char* p = static_cast<char*>(a.alloc(a.ctx, 100, 64));
    p[100] = 0;
    a.free(a.ctx, p, 100);
  }), 0);
}

TEST(Support, Comparison) {
  const float inf = INFINITY, nan = NAN;
  const Data got = {shape({5}), {1, inf, -inf, nan, 0}};
  EXPECT_EQ(failures([&] { expect_close(got, {1.5, inf, -inf, nan, 0}, 0.5); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {1.5, inf, -inf, nan, 0}, 0.4); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {1, inf, inf, nan, 0}, 1e30); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {1, 3e38, -inf, nan, 0}, 1e30); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {1, inf, -inf, 0, 0}, 1e30); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {nan, inf, -inf, nan, 0}, 1e30); }), 0);
  EXPECT_EQ(failures([&] { expect_close(got, {1, 1e39, -1e39, nan, 0}, 0); }), 0);
  EXPECT_GT(failures([&] { expect_close(got, {1, inf, -inf, nan}, 1); }), 0);
  EXPECT_EQ(failures([&] { expect_same_bits(got, got); }), 0);
  EXPECT_GT(failures([&] { expect_same_bits(got, Data{shape({5}), {1, inf, -inf, nan, -0.0f}}); }), 0);
}

TEST(Support, ShuffledTakesEachTaskOnce) {
  for (uint32_t workers : {1, 2, 7})
    for (size_t count : {0, 1, 2, 3, 17, 64}) {
      struct Seen {
        std::vector<int> times;
        uint32_t highest;
      } seen = {std::vector<int>(count), 0};
      Shuffled executor(workers);
      executor.executor.parallel_for(executor.executor.ctx, count, [](void* arg, size_t i, uint32_t worker) {
        auto& s = *static_cast<Seen*>(arg);
        ++s.times.at(i);
        if (worker > s.highest) s.highest = worker;
      }, &seen);
      EXPECT_EQ(seen.times, std::vector<int>(count, 1));
      EXPECT_LT(seen.highest, workers);
    }
}

}  // namespace
