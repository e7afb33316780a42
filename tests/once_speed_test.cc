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

// Within three times the other's time, at the first try or another: other tests run beside this one.
template <class Time, class Other> bool as_fast(Time time, Other other) {
  for (int i = 0; i < 5; ++i)
    if (time() <= 3 * other()) return true;
  return false;
}

// What is too small to be a normal float costs some cores a hundred cycles, and a vector has one in it as soon as any
// of its lanes does. Functions of numbers far from 0 do not come by there.
TEST(Speed, FunctionsFarFromZero) {
  SKIP_WHERE_TIME_MEANS_NOTHING();
  std::vector<float> x(6000), y(x.size());
  const skua_tensor t = shape({x.size()});
  const skua_buffer in = skua_host_buffer(x.data()), out = skua_host_buffer(y.data());
  for (const char* isa : isas())
    for (int kind = 0; kind < SKUA_UNARY_KIND_COUNT; ++kind) {
      Context context(isa);
      skua_unary_desc d = SKUA_UNARY_DESC_INIT;
      d.kind = skua_unary_kind(kind);
      d.b = 1;
      Op op;
      SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      const auto time = [&](float far) {
        for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 ? far : 0.5f + float(i % 13) / 4;
        return median_nanoseconds(21, 10, [&] { skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr); });
      };
      for (const float far : {5e3f, -5e3f, INFINITY, -INFINITY, 0.0f, 33.0f, 50.0f, 100.0f, -33.0f, -50.0f, -200.0f}) {
        if (std::isinf(far) && (kind == SKUA_UNARY_SIN || kind == SKUA_UNARY_COS)) continue;
        EXPECT_TRUE(as_fast([&] { return time(far); }, [&] { return time(1); })) << isa << " " << kind << " of " << far;
      }
      skua_plan_destroy(plan);
    }
}

// Masks of attention are -infinity, or numbers as good as it.
TEST(Speed, SoftmaxOfMaskedRows) {
  SKIP_WHERE_TIME_MEANS_NOTHING();
  constexpr size_t kRows = 32, kColumns = 197;
  for (const char* isa : isas())
    for (const bool log : {false, true}) {
      Context context(isa);
      skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
      d.log = log;
      Op op;
      SKUA_EXPECT_OK(skua_softmax_create(context, &d, &op));
      const skua_tensor t = shape({kRows, kColumns});
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      std::vector<float> x(kRows * kColumns), y(x.size());
      const skua_buffer in = skua_host_buffer(x.data()), out = skua_host_buffer(y.data());
      const auto time = [&](float masked) {
        for (size_t i = 0; i < x.size(); ++i) x[i] = i % 7 == 3 ? masked : float(i % 13) / 4;
        return median_nanoseconds(21, 20, [&] { skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr); });
      };
      for (const float masked : {-INFINITY, -1e30f, -1e4f, -150.0f, -100.0f, -90.0f, -80.0f, -77.0f, -76.8f})
        EXPECT_TRUE(as_fast([&] { return time(masked); }, [&] { return time(0); }))
            << isa << (log ? " log" : "") << " of " << masked;
      skua_plan_destroy(plan);
    }
}

}  // namespace
