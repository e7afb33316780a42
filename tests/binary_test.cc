// Binary operators and select: every function on every instruction set, broadcasting, tails, strides, activations and
// special values.
#include <skua/elementwise.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Function {
  skua_binary_kind kind;
  const char* name;
  double (*exact)(double x, double y);
  double ulp = 0;  // bound of the error, in units of the last place
};

double nan_or(double x, double y, double z) { return std::isnan(x) || std::isnan(y) ? double(kNan) : z; }

const Function functions[] = {
    {SKUA_BINARY_ADD, "add", [](double x, double y) { return x + y; }, 0.5},
    {SKUA_BINARY_SUB, "sub", [](double x, double y) { return x - y; }, 0.5},
    {SKUA_BINARY_MUL, "mul", [](double x, double y) { return x * y; }, 0.5},
    {SKUA_BINARY_DIV, "div", [](double x, double y) { return x / y; }, 0.501},
    {SKUA_BINARY_MIN, "min", [](double x, double y) { return nan_or(x, y, y < x ? y : x); }},
    {SKUA_BINARY_MAX, "max", [](double x, double y) { return nan_or(x, y, y > x ? y : x); }},
    {SKUA_BINARY_POW, "pow", [](double x, double y) { return std::pow(x, y); }, 8},
    {SKUA_BINARY_SQUARED_DIFFERENCE, "squared_difference", [](double x, double y) { return (x - y) * (x - y); }, 2.5},
    {SKUA_BINARY_COPYSIGN, "copysign", [](double x, double y) { return std::copysign(x, y); }},
    {SKUA_BINARY_PRELU, "prelu", [](double x, double y) { return x < 0 ? x * y : x; }, 0.5},
    {SKUA_BINARY_EQUAL, "equal", [](double x, double y) { return double(x == y); }},
    {SKUA_BINARY_NOT_EQUAL, "not_equal", [](double x, double y) { return double(x != y); }},
    {SKUA_BINARY_LESS, "less", [](double x, double y) { return double(x < y); }},
    {SKUA_BINARY_LESS_EQUAL, "less_equal", [](double x, double y) { return double(x <= y); }},
    {SKUA_BINARY_GREATER, "greater", [](double x, double y) { return double(x > y); }},
    {SKUA_BINARY_GREATER_EQUAL, "greater_equal", [](double x, double y) { return double(x >= y); }},
};

double ulp_of(double x) {
  int e;
  std::frexp(x, &e);
  return std::ldexp(1.0, (e < -125 ? -125 : e > 128 ? 128 : e) - 24);
}

struct Want {
  std::vector<double> value, bound;
  void add(const Function& f, float x, float y, bool flush) {
    const auto seen = [&](float v) {
      return flush && f.kind != SKUA_BINARY_DIV && std::fabs(v) < FLT_MIN ? double(std::copysign(0.0f, v)) : double(v);
    };
    const double z = f.exact(seen(x), seen(y));
    value.push_back(z);
    bound.push_back(f.ulp * ulp_of(z) + (flush && std::fabs(z) < 2 * double(FLT_MIN) ? double(FLT_MIN) : 0));
  }
};

// Flat index into t of the element of `out` at a flat index, in row-major order both.
size_t broadcast_index(const skua_tensor& t, const skua_tensor& out, size_t flat) {
  size_t index = 0, step = 1;
  for (uint32_t behind = 0; behind < out.rank; ++behind) {
    const size_t extent = out.shape[out.rank - 1 - behind], i = flat % extent;
    flat /= extent;
    if (behind >= t.rank) continue;
    const size_t own = t.shape[t.rank - 1 - behind];
    index += (own == 1 ? 0 : i) * step;
    step *= own;
  }
  return index;
}

Want want_for(const Function& f, const Data& x, const Data& y, const skua_tensor& out, bool flush) {
  const std::vector<float> xs = dense(x), ys = dense(y);
  Want w;
  for (size_t i = 0, n = elements(out); i < n; ++i)
    w.add(f, xs[broadcast_index(x.t, out, i)], ys[broadcast_index(y.t, out, i)], flush);
  return w;
}

void create(skua_context* context, skua_binary_kind kind, Op& op,
            skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0}, skua_dtype type = SKUA_DTYPE_F32) {
  skua_binary_desc d = SKUA_BINARY_DESC_INIT;
  d.type = type;
  d.kind = kind;
  d.activation = activation;
  SKUA_EXPECT_OK(skua_binary_create(context, &d, &op));
}

bool flushes(const char* isa) { return !std::strncmp(isa, "neon32", 6); }

Data vector(std::vector<float> values) {
  Data d;
  d.t = resolved(shape({values.size()}));
  d.v = std::move(values);
  return d;
}

TEST(Binary, EveryFunctionEveryTail) {
  ASSERT_EQ(std::size(functions), size_t(SKUA_BINARY_KIND_COUNT));
  Rng rng(1);
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f.kind, op);
      const float low = f.kind == SKUA_BINARY_POW ? 0.1f : -3;
      for (size_t n = 1; n < 6 * 16 + 2; n += small() ? 13 : 5)
        for (int form = 0; form < 3; ++form) {
          Data x = make({form == 1 ? 1 : n}, rng, low, 3), y = make({form == 2 ? 1 : n}, rng, low, 3);
          if (x.v.size() == y.v.size() && n > 2) x.v[n / 2] = y.v[n / 2];
          const Data got = run(op, {x, y})[0];
          const Want want = want_for(f, x, y, got.t, false);
          expect_close(got, want.value, want.bound);
        }
      const Data x = make({37}, rng, 0.25f, 4), y = make({37}, rng, 0.25f, 4), one = make({1}, rng, 0.25f, 4);
      expect_same_bits(run_in_place(op, {x, y}, 0)[0], run(op, {x, y})[0]);
      expect_same_bits(run_in_place(op, {x, y}, 1)[0], run(op, {x, y})[0]);
      expect_same_bits(run_in_place(op, {x, one}, 0)[0], run(op, {x, one})[0]);
      if (HasFailure()) return;
    }
}

TEST(Binary, SpecialValues) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> values = {kNan,  kInf,    -kInf,    0.0f,        -0.0f,       FLT_MIN,     -FLT_MIN, tiny,
                                     -tiny, FLT_MAX, -FLT_MAX, 1,           -1,          0.5f,        -0.5f,    2,
                                     -2,    3,       -3,       16777215.0f, 16777216.0f, 33554432.0f, -7,       1e-20f};
  std::vector<float> xs, ys;
  for (const float x : values)
    for (const float y : values) {
      xs.push_back(x);
      ys.push_back(y);
    }
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f.kind, op);
      const Data x = vector(xs), y = vector(ys), got = run(op, {x, y})[0];
      const Want want = want_for(f, x, y, got.t, flushes(isa));
      expect_close(got, want.value, want.bound);
      if (f.kind != SKUA_BINARY_COPYSIGN) continue;
      for (size_t i = 0; i < xs.size(); ++i)
        if (!std::isnan(xs[i])) {
          EXPECT_EQ(std::signbit(got.v[i]), std::signbit(ys[i])) << xs[i] << " " << ys[i];
        }
    }
}

TEST(Binary, PowerErrorBound) {
  Rng rng(2);
  const Function& f = functions[SKUA_BINARY_POW];
  std::vector<float> xs, ys;
  for (size_t i = 0; i < (small() ? 2000 : 200003); ++i) {
    const int kind = rng.integer(0, 2);
    const float x = kind == 0   ? std::exp2(rng.uniform(-126, 127))
                    : kind == 1 ? rng.uniform(0, 4)
                                : 1 + rng.uniform(-0.01f, 0.01f);
    const float most = 88 / std::fmax(std::fabs(std::log(x)), 1e-3f);
    xs.push_back(x);
    ys.push_back(rng.uniform(-most, most));
  }
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Op op;
    create(context, f.kind, op);
    const Data x = vector(xs), y = vector(ys), got = run(op, {x, y})[0];
    const Want want = want_for(f, x, y, got.t, flushes(isa));
    expect_close(got, want.value, want.bound);
    double worst = 0;
    for (size_t i = 0; i < xs.size(); ++i)
      if (std::fabs(want.value[i]) > 4 * double(FLT_MIN))
        worst = std::fmax(worst, std::fabs(double(got.v[i]) - want.value[i]) / ulp_of(want.value[i]));
    if (std::getenv("SKUA_TEST_PRINT")) std::printf("%-14s %-7s %.2f ULP\n", f.name, isa, worst);
  }
}

TEST(Binary, Broadcasting) {
  struct Case {
    std::vector<size_t> x, y;
  };
  const std::vector<Case> cases = {
      {{1}, {1}},
      {{7}, {1}},
      {{1}, {7}},
      {{1, 1, 1}, {1}},
      {{5, 33}, {33}},
      {{33}, {5, 33}},
      {{5, 33}, {5, 1}},
      {{5, 1}, {1, 33}},
      {{300, 3}, {3}},                              // few channels: rows joined
      {{3}, {300, 3}},
      {{2, 50, 6}, {2, 1, 6}},
      {{2, 50, 6}, {50, 1}},
      {{2, 3, 1, 5, 1, 7}, {3, 4, 5, 2, 7}},        // rank 6 against 5
      {{1, 3, 1, 5, 1, 2}, {4, 1, 6, 1, 2, 1}},
      {{2, 1, 3, 1, 2, 20}, {1, 2, 1, 3, 1, 20}},
      {{40, 8, 9}, {8, 1}},
      {{3, 5000}, {3, 1}},                          // rows long enough to be cut
      {{3, 5000}, {5000}},
      {{0}, {1}},
      {{3, 0, 2}, {2}},
      {{3, 0, 2}, {1, 1, 1}},
      {{1, 4}, {0, 1}},
  };
  Rng rng(3);
  for (const char* isa : isas())
    for (const skua_binary_kind kind : {SKUA_BINARY_SUB, SKUA_BINARY_PRELU}) {
      Context context(isa);
      Op op;
      create(context, kind, op);
      for (const Case& c : cases) {
        SCOPED_TRACE(testing::Message() << functions[kind].name << " " << isa << " case " << &c - cases.data());
        const Data x = make(shape(c.x), rng), y = make(shape(c.y), rng);
        const std::vector<Data> got = run(op, {x, y});
        ASSERT_EQ(got.size(), 1u);
        ASSERT_EQ(got[0].t.rank, std::max(c.x.size(), c.y.size()));
        const Want want = want_for(functions[kind], x, y, got[0].t, false);
        expect_close(got[0], want.value, want.bound);
      }
    }
}

// Random shapes, extents of 1, orders of dimensions, holes and activations.
TEST(Binary, RandomStrides) {
  Rng rng(4);
  const auto strided = [&](const std::vector<size_t>& extents) {
    skua_tensor t = shape(extents);
    std::vector<uint32_t> order(t.rank);
    for (uint32_t d = 0; d < t.rank; ++d) order[d] = d;
    if (rng.integer(0, 2) == 0)
      for (uint32_t d = t.rank; d > 1; --d) std::swap(order[d - 1], order[size_t(rng.integer(0, int(d) - 1))]);
    size_t step = rng.integer(0, 3) ? 1 : 2;
    for (uint32_t i = t.rank; i-- > 0;) {
      t.stride[order[i]] = step;
      step *= t.shape[order[i]] + (rng.integer(0, 3) ? 0 : size_t(rng.integer(1, 3)));
    }
    return t;
  };
  struct Act {
    skua_activation_kind kind;
    double (*f)(double);
    double bound;
  };
  const Act acts[] = {{SKUA_ACTIVATION_NONE, [](double x) { return x; }, 0},
                      {SKUA_ACTIVATION_RELU, [](double x) { return x < 0 ? 0 : x; }, 0},
                      {SKUA_ACTIVATION_CLAMP, [](double x) { return x < -0.5 ? -0.5 : x > 0.75 ? 0.75 : x; }, 0},
                      {SKUA_ACTIVATION_TANH, [](double x) { return std::tanh(x); }, 1e-6}};
  const std::vector<const char*> names = isas();
  if (names.empty()) GTEST_SKIP() << "no f32 from SKUA_TEST_FROM_ISA on";
  for (int i = 0; i < (small() ? 30 : 400); ++i) {
    const char* isa = names[size_t(rng.integer(0, int(names.size()) - 1))];
    SCOPED_TRACE(testing::Message() << "case " << i << " " << isa);
    const size_t rank = size_t(rng.integer(1, 6)), largest = rank < 3 ? 70 : rank < 5 ? 12 : 5;
    std::vector<size_t> out, x, y;
    for (size_t d = 0; d < rank; ++d) {
      out.push_back(size_t(rng.integer(1, int(largest))));
      x.push_back(rng.integer(0, 3) ? out[d] : 1);
      y.push_back(x[d] != out[d] || rng.integer(0, 3) ? out[d] : 1);
    }
    while (y.size() > 1 && y[0] == 1 && rng.integer(0, 1)) y.erase(y.begin());
    const Act& act = acts[rng.integer(0, 3)];
    Context context(isa);
    Op op;
    create(context, SKUA_BINARY_SUB, op, {act.kind, -0.5f, 0.75f});
    const Data dx = make(strided(x), rng), dy = make(strided(y), rng);
    const std::vector<Data> got = run(op, {dx, dy}, {strided(out)});
    ASSERT_EQ(got.size(), 1u);
    Want want = want_for(functions[SKUA_BINARY_SUB], dx, dy, got[0].t, false);
    for (size_t j = 0; j < want.value.size(); ++j) {
      want.value[j] = act.f(want.value[j]);
      want.bound[j] += act.bound;
    }
    expect_close(got[0], want.value, want.bound);
    if (HasFailure()) return;
  }
}

TEST(Binary, ManyPieces) {
  Rng rng(5);
  struct Case {
    skua_tensor x, y;
  };
  const std::vector<Case> cases = {{shape({150001}), shape({150001})},
                                   {shape({50000, 5}), shape({5})},
                                   {shape({3000, 70}), shape({3000, 1})},
                                   {with_holes(shape({500, 400}), {0, 3}), shape({400})},
                                   {with_holes(shape({40000, 4}), {0, 1}), shape({4})},
                                   // joined rows, begun amid a turn
                                   {with_holes(shape({397, 95, 5}), {0, 3, 0}), shape({5})},
                                   // two loops outside of one
                                   {with_holes(shape({9, 31, 25, 27}), {0, 2, 1, 3}), shape({31, 1, 27})}};
  for (const char* isa : isas()) {
    Context context(isa);
    for (const Case& c : cases)
      for (const skua_activation_kind act : {SKUA_ACTIVATION_RELU6, SKUA_ACTIVATION_HARD_SIGMOID}) {
        if (small() && &c < &cases[4]) break;
        SCOPED_TRACE(testing::Message() << isa << " case " << &c - cases.data() << " activation " << act);
        Op op;
        create(context, SKUA_BINARY_MUL, op, {act, 0, 0});
        const Data x = make(c.x, rng, -9, 9), y = make(c.y, rng), got = run(op, {x, y})[0];
        Want want = want_for(functions[SKUA_BINARY_MUL], x, y, got.t, false);
        for (size_t i = 0; i < want.value.size(); ++i) {
          const double z = want.value[i];
          want.value[i] =
              act == SKUA_ACTIVATION_RELU6 ? std::fmin(std::fmax(z, 0), 6) : std::fmin(std::fmax(z / 6 + 0.5, 0), 1);
          want.bound[i] += act == SKUA_ACTIVATION_RELU6 ? 0 : 1e-6;
        }
        expect_close(got, want.value, want.bound);
        if (small()) break;
      }
  }
}

// Both inputs repeat along the innermost dimension, by strides of 0 that the caller gave.
TEST(Binary, RepeatedRows) {
  Rng rng(7);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Op op;
    create(context, SKUA_BINARY_SUB, op);
    Data x, y;
    x.t = y.t = shape({7, 40});
    x.t.stride[0] = y.t.stride[0] = 1;
    for (int i = 0; i < 7; ++i) {
      x.v.push_back(rng.uniform(-1, 1));
      y.v.push_back(rng.uniform(-1, 1));
    }
    const Data got = run(op, {x, y})[0];
    const Want want = want_for(functions[SKUA_BINARY_SUB], x, y, got.t, false);
    expect_close(got, want.value, want.bound);
  }
}

// The f32 result, rounded once, or computed in halves within the same number of their units; of an activation that is
// no clamp the argument is rounded as well.
TEST(Binary, HalfTypes) {
  Rng rng(8);
  const std::vector<float> special = {kNan,   kInf, -kInf, 0.0f, -0.0f, 0x1p-14f, -0x1p-24f, 60000,
                                      -60000, 1,    -1,    0.5f, 2,     3,        -7};
  for (const skua_dtype type : half_types()) {
    Data xs, ys;
    for (const float x : special)
      for (const float y : special) xs.v.push_back(rounded(type, x)), ys.v.push_back(rounded(type, y));
    xs.t = ys.t = resolved(shape({xs.v.size()}, type));
    for (const char* isa : isas(type))
      for (const Function& f : functions) {
        SCOPED_TRACE(testing::Message() << f.name << " " << skua_dtype_name(type) << " " << isa);
        Context context(isa);
        Op op;
        create(context, f.kind, op, {SKUA_ACTIVATION_NONE, 0, 0}, type);
        const auto expect = [&](const Data& x, const Data& y, const Data& got) {
          Want want = want_for(f, x, y, got.t, flushes(isa));
          const double roundings = type == SKUA_DTYPE_F16 && std::strstr(isa, "fp16") ? 1 + 2 * f.ulp : 1;
          for (size_t i = 0; i < want.value.size(); ++i)
            want.bound[i] += roundings * half_ulp(type, std::fabs(want.value[i]) + want.bound[i]);
          expect_close(got, want.value, want.bound);
        };
        expect(xs, ys, run(op, {xs, ys})[0]);
        const float low = f.kind == SKUA_BINARY_POW ? 0.1f : -3;
        for (size_t n : {1, 7, 33, 70})
          for (int form = 0; form < 3; ++form) {
            const Data x = make(shape({form == 1 ? 1 : n}, type), rng, low, 3),
                       y = make(shape({form == 2 ? 1 : n}, type), rng, low, 3);
            expect(x, y, run(op, {x, y})[0]);
          }
        if (f.kind != SKUA_BINARY_SUB) continue;
        const std::pair<skua_tensor, skua_tensor> cases[] = {
            {shape({300, 3}, type), shape({3}, type)},
            {with_holes(shape({7, 60, 5}, type), {0, 3, 1}), shape({5}, type)},
            {with_holes(shape({9, 200}, type), {0, 3}), shape({9, 1}, type)}};
        for (const auto& [a, b] : cases) {
          const Data x = make(a, rng), y = make(b, rng);
          const Data got = run(op, {x, y}, {with_holes(a, {0, 1, 2})})[0];
          expect(x, y, got);
          Op tanh;
          create(context, f.kind, tanh, {SKUA_ACTIVATION_TANH, 0, 0}, type);
          Want want = want_for(f, x, y, got.t, false);
          for (size_t i = 0; i < want.value.size(); ++i) {
            want.bound[i] = half_ulp(type, want.value[i]) + half_ulp(type, std::tanh(want.value[i])) + 1e-6;
            want.value[i] = std::tanh(want.value[i]);
          }
          expect_close(run(tanh, {x, y})[0], want.value, want.bound);
        }
        if (HasFailure()) return;
      }
  }
}

TEST(Binary, NanPassesTheClamp) {
  for (const char* isa : isas()) {
    Context context(isa);
    Op op;
    create(context, SKUA_BINARY_ADD, op, {SKUA_ACTIVATION_RELU6, 0, 0});
    const Data x = vector(std::vector<float>(19, kNan)), y = vector({1});
    const Data got = run(op, {x, y})[0];
    for (const float v : got.v) EXPECT_TRUE(std::isnan(v)) << isa;
  }
}

TEST(Binary, SaysWhatIsWrong) {
  Context context;
  skua_op* op = nullptr;
  skua_binary_desc d = SKUA_BINARY_DESC_INIT;
  d.kind = SKUA_BINARY_KIND_COUNT;
  EXPECT_EQ(skua_binary_create(context, &d, &op), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(skua_error_text()), "binary: kind is " + std::to_string(SKUA_BINARY_KIND_COUNT) + ", unknown");
  d = SKUA_BINARY_DESC_INIT;
  d.type = SKUA_DTYPE_S4;
  EXPECT_EQ(skua_binary_create(context, &d, &op), SKUA_STATUS_UNSUPPORTED);
  d = SKUA_BINARY_DESC_INIT;
  d.activation = {SKUA_ACTIVATION_CLAMP, 1, 0};
  EXPECT_EQ(skua_binary_create(context, &d, &op), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(op, nullptr);

  Op add;
  create(context, SKUA_BINARY_ADD, add);
  skua_plan* plan = nullptr;
  const skua_tensor wrong[] = {shape({4, 3}), shape({2, 3})}, typed[] = {shape({4}), shape({4}, SKUA_DTYPE_S32)},
                    good[] = {shape({4, 3}), shape({3})};
  EXPECT_EQ(skua_op_plan(add, wrong, 2, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(skua_error_text(), "binary: input 1 has extent 2 in dimension 0, which does not broadcast to 4");
  EXPECT_EQ(skua_op_plan(add, typed, 2, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(skua_error_text(), "binary: input 1 has type s32, must be f32");
  EXPECT_EQ(skua_op_plan(add, good, 1, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  skua_tensor huge[] = {shape({size_t(1) << 20, 1, size_t(1) << 20, 1}),
                        shape({1, size_t(1) << 20, 1, size_t(1) << 20})};
  EXPECT_EQ(skua_op_plan(add, huge, 2, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(plan, nullptr);
}

TEST(Select, EveryTailAndBroadcast) {
  Rng rng(6);
  const std::vector<float> flags = {0.0f, -0.0f, 1, kNan, kInf, std::numeric_limits<float>::denorm_min(), -2};
  for (const skua_dtype type : float_types())
  for (const char* isa : isas(type)) {
    SCOPED_TRACE(testing::Message() << isa << " " << skua_dtype_name(type));
    Context context(isa);
    skua_select_desc d = SKUA_SELECT_DESC_INIT;
    d.type = type;
    Op op;
    SKUA_EXPECT_OK(skua_select_create(context, &d, &op));
    const auto check = [&](skua_tensor cs, skua_tensor xs, skua_tensor ys) {
      cs.type = xs.type = ys.type = type;
      Data c = make(cs, rng), x = make(xs, rng), y = make(ys, rng);
      for (size_t i = 0; i < elements(c.t); ++i) c.v[offset(c.t, i)] = rounded(type, flags[rng.next() % flags.size()]);
      const Data got = run(op, {c, x, y})[0];
      const std::vector<float> cv = dense(c), xv = dense(x), yv = dense(y), g = dense(got);
      for (size_t i = 0; i < g.size(); ++i) {
        const float chosen = cv[broadcast_index(c.t, got.t, i)] != 0 ? xv[broadcast_index(x.t, got.t, i)]
                                                                     : yv[broadcast_index(y.t, got.t, i)];
        ASSERT_EQ(std::memcmp(&chosen, &g[i], 4), 0) << i;
      }
    };
    for (size_t n = 1; n < 40; n += type == SKUA_DTYPE_F32 ? 1 : 5) check(shape({n}), shape({n}), shape({n}));
    check(shape({33}), shape({1}), shape({33}));
    check(shape({1}), shape({33}), shape({33}));
    check(shape({900}), shape({1}), shape({1}));
    check(shape({1}), shape({1}), shape({1}));
    check(shape({6, 1, 5}), shape({4, 1}), shape({3, 6, 4, 1}));
    check(shape({50, 4}), shape({4}), shape({50, 1}));
    check(with_holes(shape({7, 30}), {0, 2}), shape({30}), shape({7, 30}));
    check(shape({0, 4}), shape({4}), shape({1}));
    if (!small() && type == SKUA_DTYPE_F32) check(shape({90001, 3}), shape({3}), shape({90001, 3}));
    const skua_tensor v = shape({29}, type);
    const Data c = make_integers(v, rng, 0, 1), x = make(v, rng), y = make(v, rng);
    for (size_t in = 0; in < 3; ++in) expect_same_bits(run_in_place(op, {c, x, y}, in)[0], run(op, {c, x, y})[0]);
  }
}

}  // namespace
