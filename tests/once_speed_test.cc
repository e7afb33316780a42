// The costs that are promised beside the work itself: of a plan, and of a run that has next to nothing to do. Three
// times the promise is allowed here.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

template <class Body> double median_nanoseconds(int times, int inner, Body body) {
  std::vector<double> each;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    for (int j = 0; j < inner; ++j) body();
    each.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / inner);
  }
  std::sort(each.begin(), each.end());
  return each[each.size() / 2];
}

#define SKIP_WHERE_TIME_MEANS_NOTHING()                                     \
  if (kSanitized) GTEST_SKIP() << "times under a sanitizer mean nothing";   \
  if (small()) GTEST_SKIP() << "times on an emulated core mean nothing"

TEST(Speed, PlanTakesMicroseconds) {
  SKIP_WHERE_TIME_MEANS_NOTHING();
  skua_context* context = nullptr;
  SKUA_EXPECT_OK(skua_context_create(nullptr, &context));
  for (const Sample& sample : samples()) {
    skua_op* op = nullptr;
    SKUA_EXPECT_OK(sample.create(context, &op));
    ASSERT_NE(op, nullptr);
    const double ns = median_nanoseconds(101, 1, [&] {
      skua_plan* plan = nullptr;
      skua_op_plan(op, sample.inputs.data(), sample.inputs.size(), nullptr, 0, &plan);
      skua_plan_destroy(plan);
    });
    EXPECT_LE(ns, 3 * 20e3) << sample.name;
    RecordProperty(sample.name, std::to_string(int(ns)) + " ns");
    skua_op_destroy(op);
  }
  skua_context_destroy(context);
}

TEST(Speed, RunOfSixteenAdditions) {
  SKIP_WHERE_TIME_MEANS_NOTHING();
  const skua_tensor sixteen = shape({16});
  const Sample add = {"add", [](skua_context* c, skua_op** out) {
                        const skua_binary_desc d = SKUA_BINARY_DESC_INIT;
                        return skua_binary_create(c, &d, out);
                      }, {sixteen, sixteen}};
  skua_context* context = nullptr;
  SKUA_EXPECT_OK(skua_context_create(nullptr, &context));
  {
    Planned p(add, context);
    ASSERT_NE(p.plan, nullptr);
    float y[16];
    const skua_buffer out = skua_host_buffer(y);
    const double ns =
        median_nanoseconds(101, 1000, [&] { skua_plan_run(p.plan, p.inputs.data(), 2, &out, 1, nullptr, 0, nullptr); });
    EXPECT_LE(ns, 3 * 100.0);
    RecordProperty("run", std::to_string(int(ns)) + " ns");
  }
  skua_context_destroy(context);
}

}  // namespace
