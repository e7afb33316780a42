// Reductions over any axes against sums in double, on every instruction set.
#include <skua/skua.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Shape = std::vector<size_t>;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Want {
  Shape shape;
  std::vector<double> value, bound;
};

Want reference(skua_reduce_kind kind, const Data& x, const std::vector<int32_t>& axes, bool keep) {
  const uint32_t rank = x.t.rank;
  std::vector<bool> reduced(rank, axes.empty());
  for (int32_t a : axes) reduced[size_t(a < 0 ? a + int32_t(rank) : a)] = true;
  Want w;
  size_t n = 1, results = 1;
  std::vector<size_t> step(rank, 0);
  for (uint32_t d = rank; d-- > 0;) {
    if (reduced[d]) { n *= x.t.shape[d]; continue; }
    step[d] = results;
    results *= x.t.shape[d];
  }
  for (uint32_t d = 0; d < rank; ++d)
    if (!reduced[d] || keep) w.shape.push_back(reduced[d] ? 1 : x.t.shape[d]);
  if (w.shape.empty()) w.shape.push_back(1);
  const bool least = kind == SKUA_REDUCE_MIN || kind == SKUA_REDUCE_ARGMIN;
  std::vector<double> acc(results, kind == SKUA_REDUCE_PROD  ? 1
                                   : kind == SKUA_REDUCE_MIN ? double(kInf)
                                   : kind == SKUA_REDUCE_MAX ? -double(kInf)
                                                             : 0),
      absolute(results, 0);
  std::vector<size_t> seen(results, 0), at(results, 0);
  const std::vector<double> v = dense_double(x);
  for (size_t flat = 0; flat < v.size(); ++flat) {
    size_t to = 0, rest = flat;
    for (uint32_t d = rank; d-- > 0; rest /= x.t.shape[d]) to += rest % x.t.shape[d] * step[d];
    const double e = v[flat];
    const size_t i = seen[to]++;
    switch (kind) {
      case SKUA_REDUCE_PROD: acc[to] *= e; break;
      case SKUA_REDUCE_SUM_SQUARES: acc[to] += e * e; absolute[to] += e * e; break;
      case SKUA_REDUCE_SUM: case SKUA_REDUCE_MEAN: acc[to] += e; absolute[to] += std::fabs(e); break;
      default:
        if (i == 0 || (std::isnan(e) && !std::isnan(acc[to])) || (least ? e < acc[to] : e > acc[to])) {
          acc[to] = e;
          at[to] = i;
        }
    }
  }
  for (size_t r = 0; r < results; ++r) {
    double y = acc[r], bound = 0;
    const double most = 2 + double(n) / 16 + 4;
    if (kind == SKUA_REDUCE_SUM || kind == SKUA_REDUCE_SUM_SQUARES)
      bound = most * double(FLT_EPSILON) / 2 * absolute[r];
    if (kind == SKUA_REDUCE_MEAN) {
      y = acc[r] / double(n);
      bound = most * double(FLT_EPSILON) / 2 * absolute[r] / double(n) + std::fabs(y) * double(FLT_EPSILON);
    }
    if (kind == SKUA_REDUCE_PROD) bound = double(n) * double(FLT_EPSILON) * std::fabs(y) + double(FLT_MIN);
    if (kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX) y = double(at[r]);
    else if (kind != SKUA_REDUCE_MIN && kind != SKUA_REDUCE_MAX) bound += half_ulp(x.t.type, std::fabs(y) + bound);
    w.value.push_back(y);
    w.bound.push_back(bound);
  }
  return w;
}

const skua_reduce_kind kKinds[] = {SKUA_REDUCE_SUM,  SKUA_REDUCE_MEAN,        SKUA_REDUCE_MIN,    SKUA_REDUCE_MAX,
                                   SKUA_REDUCE_PROD, SKUA_REDUCE_SUM_SQUARES, SKUA_REDUCE_ARGMIN, SKUA_REDUCE_ARGMAX};

void check(skua_context* context, skua_reduce_kind kind, const Data& x, const std::vector<int32_t>& axes,
           bool keep = false) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << ", shape "
                                  << testing::PrintToString(Shape(x.t.shape, x.t.shape + x.t.rank)) << ", axes "
                                  << testing::PrintToString(axes));
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
  d.kind = kind;
  d.type = x.t.type;
  d.axis_count = uint32_t(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) d.axes[i] = axes[i];
  d.keep_dims = keep;
  Op op;
  SKUA_EXPECT_OK(skua_reduce_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Want want = reference(kind, x, axes, keep);
  const std::vector<Data> got = run(op, {x});
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(Shape(got[0].t.shape, got[0].t.shape + got[0].t.rank), want.shape);
  expect_close(got[0], want.value, want.bound);
}

TEST(Reduce, RowsAndColumnsEveryTail) {
  Rng rng(1);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_reduce_kind kind : kKinds) {
      for (size_t n = 1; n <= 140; n += n < 20 ? 1 : small() ? 29 : 3) {
        check(context, kind, make({3, n}, rng, 0.5f, 1.5f), {1});
        check(context, kind, make({n, n < 40 ? n : 5}, rng, -2, 2), {0});
        if (HasFailure()) return;
      }
      for (size_t columns = 1; columns < 90; columns += small() ? 17 : 4)
        check(context, kind, make({7, columns}, rng), {0});
    }
  }
}

TEST(Reduce, AnyAxes) {
  Rng rng(2);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_reduce_kind kind : kKinds) {
      const bool arg = kind >= SKUA_REDUCE_ARGMIN;
      const Data x = make({2, 3, 4, 5}, rng, 0.8f, 1.2f);
      for (uint32_t mask = 0; mask < 16; ++mask) {
        std::vector<int32_t> axes;
        for (int32_t d = 0; d < 4; ++d)
          if (mask >> d & 1) axes.push_back(d % 2 ? d - 4 : d);
        if (arg && axes.size() != 1) continue;
        check(context, kind, x, axes, false);
        check(context, kind, x, axes, true);
      }
      if (!arg) check(context, kind, make({3, 2, 3, 2, 4, 3}, rng, 0.8f, 1.2f), {4, 0, 2});
      if (!arg) check(context, kind, make({1, 2, 1, 2, 1, 3}, rng), {-6, 2, 4});
      check(context, kind, make({9}, rng), {});
      check(context, kind, make({1, 1}, rng), {1});
    }
    check(context, SKUA_REDUCE_SUM, make({2, 7, 7, 33}, rng), {1, 2}, true);
  }
}

TEST(Reduce, HalfTypes) {
  Rng rng(6);
  for (const skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(testing::Message() << isa << " " << skua_dtype_name(type));
      Context context(isa);
      for (skua_reduce_kind kind : kKinds) {
        for (size_t n : {1, 6, 33, 140}) {
          check(context, kind, make(shape({3, n}, type), rng, 0.5f, 1.5f), {1});
          check(context, kind, make(shape({n < 40 ? n : 19, 37}, type), rng, -2, 2), {0});
          if (HasFailure()) return;
        }
        check(context, kind, make(shape({3, 2, 5, 4}, type), rng, 0.8f, 1.2f), {kind >= SKUA_REDUCE_ARGMIN ? 2 : 0},
              true);
        Data special = make(shape({2, 40}, type), rng);
        special.v[3] = special.v[21] = kInf;
        special.v[75] = kNan;
        for (int32_t axis : {0, 1}) check(context, kind, special, {axis});
      }
      check(context, SKUA_REDUCE_SUM, make(shape({2, 3, 4, 5}, type), rng), {0, 2});
      // more results than are converted at once
      check(context, SKUA_REDUCE_MEAN, make(shape({2500, 2}, type), rng), {1});
      check(context, SKUA_REDUCE_SUM, make(shape({2, 5000}, type), rng), {0});
      check(context, SKUA_REDUCE_MIN, make(shape({3, 0}, type), rng), {1});
      if (!small()) check(context, SKUA_REDUCE_SUM_SQUARES, make(shape({200001}, type), rng), {});
    }
}

TEST(Reduce, ExactSumsOfIntegersAgree) {
  Rng rng(3);
  const Data x = make_integers(shape({5, 61, 9}), rng);
  for (const char* isa : isas()) {
    Context context(isa);
    for (int32_t axis : {0, 1, 2}) {
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.axis_count = 1;
      d.axes[0] = axis;
      Op op;
      SKUA_EXPECT_OK(skua_reduce_create(context, &d, &op));
      const Want want = reference(SKUA_REDUCE_SUM, x, {axis}, false);
      expect_close(run(op, {x})[0], want.value, 0.0);
    }
  }
}

// Enough work for several workers and for chunks.
TEST(Reduce, LargeOnesAreCut) {
  if (small()) GTEST_SKIP() << "large";
  Rng rng(4);
  Context context;
  const Data flat = make({700001}, rng), image = make({1, 100, 100, 40}, rng), narrow = make({120000, 3}, rng),
             rows = make({700, 1001}, rng);
  for (skua_reduce_kind kind : {SKUA_REDUCE_SUM, SKUA_REDUCE_MEAN, SKUA_REDUCE_MAX, SKUA_REDUCE_SUM_SQUARES}) {
    check(context, kind, flat, {});
    check(context, kind, image, {1, 2});
    check(context, kind, narrow, {0});
    check(context, kind, rows, {1});
    check(context, kind, rows, {0});
  }
  check(context, SKUA_REDUCE_ARGMAX, rows, {1});
  check(context, SKUA_REDUCE_ARGMIN, rows, {0});
  check(context, SKUA_REDUCE_ARGMAX, flat, {0});
}

TEST(Reduce, SpecialValues) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (size_t n : {size_t(2), size_t(5), size_t(33), size_t(77)})
      for (size_t at : {size_t(0), size_t(1), n / 2, n - 1})
        for (float special : {kNan, kInf, -kInf}) {
          Rng rng(uint32_t(n + at));
          Data row = make({1, n}, rng), column = make({n, 1}, rng), block = make({n, 5}, rng);
          row.v[at] = special;
          column.v[at] = special;
          block.v[at * 5 + 3] = special;
          if (at + 2 < n) row.v[at + 2] = block.v[(at + 2) * 5 + 3] = special;
          for (skua_reduce_kind kind : kKinds) {
            check(context, kind, row, {1});
            check(context, kind, column, {0});
            check(context, kind, block, {0});
          }
          if (HasFailure()) return;
        }
    // Equal elements: the first index; zeros of both signs are equal.
    Data same = Data{shape({2, 50}), std::vector<float>(100, 3.0f)};
    check(context, SKUA_REDUCE_ARGMAX, same, {1});
    check(context, SKUA_REDUCE_ARGMIN, same, {0});
    for (size_t i = 0; i < 100; ++i) same.v[i] = i % 3 ? 0.0f : -0.0f;
    check(context, SKUA_REDUCE_ARGMIN, same, {1});
    check(context, SKUA_REDUCE_ARGMAX, same, {1});
    for (float& v : same.v) v = -kInf;
    check(context, SKUA_REDUCE_ARGMAX, same, {1});
    for (float& v : same.v) v = kNan;
    check(context, SKUA_REDUCE_ARGMIN, same, {1});
  }
}

TEST(Reduce, NoElements) {
  Context context;
  Rng rng(5);
  for (skua_reduce_kind kind :
       {SKUA_REDUCE_SUM, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX, SKUA_REDUCE_PROD, SKUA_REDUCE_SUM_SQUARES}) {
    check(context, kind, make({3, 0}, rng), {1});
    check(context, kind, make({0, 3}, rng), {1});
    check(context, kind, make({0}, rng), {});
  }
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
  d.kind = SKUA_REDUCE_MEAN;
  Op op;
  SKUA_EXPECT_OK(skua_reduce_create(context, &d, &op));
  EXPECT_TRUE(std::isnan(run(op, {make({0, 4}, rng)})[0].v[0]));
}

void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

TEST(Reduce, BadArgumentsAreRefusedByName) {
  Context context;
  const skua_status bad = SKUA_STATUS_INVALID_ARGUMENT, unsupported = SKUA_STATUS_UNSUPPORTED;
  skua_op* none = nullptr;
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
  d.kind = SKUA_REDUCE_KIND_COUNT;
  expect_text(skua_reduce_create(context, &d, &none), bad, "reduce: kind is 8");
  d.kind = SKUA_REDUCE_SUM;
  d.type = SKUA_DTYPE_S4;
  expect_text(skua_reduce_create(context, &d, &none), unsupported, "type is s4");
  d.type = SKUA_DTYPE_F32;
  d.axis_count = 7;
  expect_text(skua_reduce_create(context, &d, &none), bad, "axis_count is 7");
  d.axis_count = 2;
  d.axes[1] = -7;
  expect_text(skua_reduce_create(context, &d, &none), bad, "axes[1] is -7");
  d.kind = SKUA_REDUCE_ARGMAX;
  expect_text(skua_reduce_create(context, &d, &none), bad, "axis_count is 2");
  EXPECT_EQ(none, nullptr);

  auto expect_plan = [&](const skua_reduce_desc& desc, const skua_tensor& x, skua_status status, const char* text,
                         const skua_tensor* y = nullptr) {
    Op op;
    SKUA_EXPECT_OK(skua_reduce_create(context, &desc, &op));
    skua_plan* plan = nullptr;
    expect_text(skua_op_plan(op, &x, 1, y, y ? 1 : 0, &plan), status, text);
    EXPECT_EQ(plan, nullptr);
  };
  d.axis_count = 0;
  expect_plan(d, shape({2, 3}), bad, "axis_count is 0");
  d.axis_count = 1;
  d.axes[0] = 0;
  expect_plan(d, shape({0, 3}), bad, "extent 0");
  d.kind = SKUA_REDUCE_MEAN;
  d.axes[0] = 2;
  expect_plan(d, shape({2, 3}), bad, "axes[0] is 2");
  d.axis_count = 2;
  d.axes[0] = 1;
  d.axes[1] = -1;
  expect_plan(d, shape({2, 3}), bad, "axes[1] is -1");
  d.axis_count = 1;
  expect_plan(d, shape({2, 3}, SKUA_DTYPE_S32), bad, "input 0 has type s32");
  expect_plan(d, with_holes(shape({2, 3}), {0, 1}), unsupported, "input 0 has strides with holes");
  d.axes[0] = 2;
  const skua_tensor y = with_holes(shape({2, 3}), {0, 1});
  expect_plan(d, shape({2, 3, 4}), unsupported, "output 0 has strides with holes", &y);
}

}  // namespace
