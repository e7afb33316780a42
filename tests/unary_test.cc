// Unary operators: every function on every instruction set against the function in double, on dense sweeps, tails,
// strides and special values.
#include <skua/elementwise.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "dispatch/element.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Function {
  skua_unary_kind kind;
  const char* name;
  double ulp;  // bound of the error, in units of the last place of the exact result
  double (*exact)(double x, double a, double b);
  float a = 0, b = 0;
  double absolute = 0;  // and this: results of negative x that are nearly nothing
};

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
// f(x) of a function whose limit at -infinity is zero.
double vanishing(double x, double y) { return x == -kInf ? -0.0 : y; }
double hard_sigmoid(double x) { return std::isnan(x) ? x : std::fmin(std::fmax((x + 3) / 6, 0), 1); }
double round_even(double x) { return std::nearbyint(x); }

// Constants are those of skua/elementwise.h.
const Function functions[] = {
    {SKUA_UNARY_RELU, "relu", 0, [](double x, double, double) { return x < 0 ? 0 : x; }},
    {SKUA_UNARY_RELU6, "relu6", 0, [](double x, double, double) { return x < 0   ? 0
                                                                         : x > 6 ? 6
                                                                                 : x; }},
    {SKUA_UNARY_CLAMP, "clamp", 0, [](double x, double a, double b) { return x < a   ? a
                                                                             : x > b ? b
                                                                                     : x; }, -1.25f,
     2.5f},
    {SKUA_UNARY_LEAKY_RELU, "leaky_relu", 0.5, [](double x, double a, double) { return x < 0 ? a * x : x; }, 0.3f},
    {SKUA_UNARY_ELU, "elu", 2.5, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; }, 1.7f},
    {SKUA_UNARY_SELU, "selu", 2.5,
     [](double x, double, double) { return 1.0507010 * (x < 0 ? 1.6732632 * std::expm1(x) : x); }},
    {SKUA_UNARY_SIGMOID, "sigmoid", 2.75, [](double x, double, double) { return sigmoid(x); }},
    {SKUA_UNARY_TANH, "tanh", 5, [](double x, double, double) { return std::tanh(x); }},
    {SKUA_UNARY_HARD_SIGMOID, "hard_sigmoid", 1.5, [](double x, double, double) { return hard_sigmoid(x); }},
    {SKUA_UNARY_HARD_SWISH, "hard_swish", 2.5,
     [](double x, double, double) { return vanishing(x, x * hard_sigmoid(x)); }},
    {SKUA_UNARY_SILU, "silu", 3.5, [](double x, double, double) { return vanishing(x, x * sigmoid(x)); }, 0, 0,
     0x1p-142},
    {SKUA_UNARY_MISH, "mish", 5.25, [](double x, double, double) { return vanishing(x, x * std::tanh(softplus(x))); },
     0, 0, 0x1p-142},
    {SKUA_UNARY_GELU, "gelu", 3,
     [](double x, double, double) { return vanishing(x, x / 2 * std::erfc(-x * std::sqrt(0.5))); }, 0, 0, 0x1p-24},
    {SKUA_UNARY_GELU_TANH, "gelu_tanh", 4,
     [](double x, double, double) {
       return vanishing(x, x * sigmoid(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     },
     0, 0, 0x1p-26},
    {SKUA_UNARY_SOFTPLUS, "softplus", 2.75, [](double x, double, double) { return softplus(x); }},
    {SKUA_UNARY_EXP, "exp", 1.25, [](double x, double, double) { return std::exp(x); }},
    {SKUA_UNARY_LOG, "log", 1.25, [](double x, double, double) { return std::log(x); }},
    {SKUA_UNARY_SQRT, "sqrt", 0.5, [](double x, double, double) { return std::sqrt(x); }},
    {SKUA_UNARY_RSQRT, "rsqrt", 1.5, [](double x, double, double) { return 1 / std::sqrt(x); }},
    {SKUA_UNARY_RECIPROCAL, "reciprocal", 0.5, [](double x, double, double) { return 1 / x; }},
    {SKUA_UNARY_ABS, "abs", 0, [](double x, double, double) { return std::fabs(x); }},
    {SKUA_UNARY_NEG, "neg", 0, [](double x, double, double) { return -x; }},
    {SKUA_UNARY_SQUARE, "square", 0.5, [](double x, double, double) { return x * x; }},
    {SKUA_UNARY_FLOOR, "floor", 0, [](double x, double, double) { return std::floor(x); }},
    {SKUA_UNARY_CEIL, "ceil", 0, [](double x, double, double) { return std::ceil(x); }},
    {SKUA_UNARY_ROUND, "round", 0, [](double x, double, double) { return round_even(x); }},
    {SKUA_UNARY_TRUNC, "trunc", 0, [](double x, double, double) { return std::trunc(x); }},
    {SKUA_UNARY_SIGN, "sign", 0, [](double x, double, double) { return x > 0   ? 1
                                                                       : x < 0 ? -1
                                                                               : x; }},
    {SKUA_UNARY_ERF, "erf", 3.5, [](double x, double, double) { return std::erf(x); }},
    {SKUA_UNARY_SIN, "sin", 2, [](double x, double, double) { return std::sin(x); }},
    {SKUA_UNARY_COS, "cos", 2, [](double x, double, double) { return std::cos(x); }},
};

// One unit in the last place of a float of this magnitude.
double ulp_of(double x) {
  int e;
  std::frexp(x, &e);
  return std::ldexp(1.0, (e < -125 ? -125 : e > 128 ? 128 : e) - 24);
}
bool flushes(const char* isa) { return !std::strncmp(isa, "neon32", 6); }

// What a result may be: `exact` within the bound. AArch32 counts denormal arguments and results as zero, save those of
// division and root.
struct Want {
  std::vector<double> value, bound;
};
double want_one(const Function& f, float x, bool flush, double& bound) {
  const bool divides = f.kind == SKUA_UNARY_SQRT || f.kind == SKUA_UNARY_RSQRT || f.kind == SKUA_UNARY_RECIPROCAL;
  const double y = f.exact(flush && !divides && std::fabs(x) < FLT_MIN ? double(std::copysign(0.0f, x)) : double(x),
                           double(f.a), double(f.b));
  const bool finite = std::isfinite(float(y));
  bound = finite ? f.ulp * ulp_of(y) + f.absolute : 0;
  // What was flushed may have been multiplied by x, about 100 where it matters.
  const double flushed = double(FLT_MIN) * (f.absolute > 0 ? 128 : 1);
  if (flush && std::fabs(y) < 2 * flushed) bound += flushed;
  return y;
}
Want want_for(const Function& f, const std::vector<float>& x, const char* isa) {
  Want w{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (size_t i = 0; i < x.size(); ++i) w.value[i] = want_one(f, x[i], flushes(isa), w.bound[i]);
  // The quotient of polynomials is for sets that fuse multiply-adds and have no tables.
  if (f.kind == SKUA_UNARY_TANH && std::strncmp(isa, "avx2", 4) && std::strncmp(isa, "neon", 4))
    for (double& bound : w.bound) bound *= 1.75 / f.ulp;
  return w;
}

void create(skua_context* context, const Function& f, Op& op, skua_dtype type = SKUA_DTYPE_F32,
            skua_numerics numerics = SKUA_NUMERICS_DEFAULT) {
  skua_unary_desc d = SKUA_UNARY_DESC_INIT;
  d.numerics = numerics;
  d.input_type = d.output_type = type;
  d.kind = f.kind;
  d.a = f.a;
  d.b = f.b;
  SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
}

Data vector(std::vector<float> values) {
  Data d;
  d.t = resolved(shape({values.size()}));
  d.v = std::move(values);
  return d;
}

TEST(Unary, TableIsComplete) {
  ASSERT_EQ(std::size(functions), size_t(SKUA_UNARY_KIND_COUNT));
  for (int i = 0; i < SKUA_UNARY_KIND_COUNT; ++i) EXPECT_EQ(functions[i].kind, i);
}

TEST(Unary, EveryFunctionEveryTail) {
  Rng rng(1);
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f, op);
      for (size_t n = 1; n < 6 * 16 + 2; n += small() ? 13 : 3) {
        const Data x = make({n}, rng, -8, 8);
        const Want want = want_for(f, x.v, isa);
        expect_close(run(op, {x})[0], want.value, want.bound);
      }
      const Data x = make({37}, rng, 0.25f, 4);
      expect_same_bits(run_in_place(op, {x})[0], run(op, {x})[0]);
      if (HasFailure()) return;
    }
}

// The largest error over all exponents and densely where functions bend; printed with SKUA_TEST_PRINT=1.
TEST(Unary, ErrorBounds) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t(1) << 32; bits += small() ? 1000003 : 15013) {
    const float v = __builtin_bit_cast(float, uint32_t(bits));
    if (!std::isnan(v)) x.push_back(v);
  }
  for (double v = -120; v < 120; v += small() ? 0.1 : 0.0017) x.push_back(float(v));
  for (double v = -6; v < 6; v += small() ? 0.01 : 0.00009) x.push_back(float(v));
  // The worst arguments of all floats: of tanh, softplus and mish, with tables and without.
  for (float v : {6.24579191f, -6.24579191f, 0x1.7ce472p+2f, -0x1.7ce472p+2f, 0.554013729f, -0x1.1b668p-1f,
                  -2.74984622f, -0x1.60194cp+1f, -0x1.c2f292p-1f, -6.7663312f, -0x1.b1453cp+2f, -0x1.b21cdep+2f})
    x.push_back(v);
  while (x.size() % 16 != 7) x.push_back(0.5f);
  const Data data = vector(x);
  std::vector<float> y(x.size());
  for (const Function& f : functions) {
    Want want;
    bool flush = false;
    for (const char* isa : isas()) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      if (want.value.empty() || flush != flushes(isa) || f.kind == SKUA_UNARY_TANH) want = want_for(f, x, isa);
      flush = flushes(isa);
      Context context(isa);
      Op op;
      create(context, f, op);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &data.t, 1, nullptr, 0, &plan));
      const skua_buffer in = skua_host_buffer(x.data()), out = skua_host_buffer(y.data());
      SKUA_EXPECT_OK(skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr));
      skua_plan_destroy(plan);
      double worst = 0;
      float at = 0;
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double w = want.value[i], g = double(y[i]);
        // The last numbers before an overflow may go either way.
        if (std::fabs(w) > double(FLT_MAX) * (1 - 1e-6) && std::fabs(g) > double(FLT_MAX) * (1 - 1e-6) &&
            std::signbit(w) == std::signbit(g))
          continue;
        const double error = std::isnan(w) && std::isnan(g) ? 0 : std::fabs(g - w), unit = ulp_of(w);
        if (!(error <= want.bound[i]) && !wrong++)
          ADD_FAILURE() << "f(" << x[i] << ") is " << g << ", must be " << w << ": " << error / unit << " ULP";
        const double beyond = error - f.absolute;  // what the bound in units of the last place is for
        if (want.bound[i] <= 2 * f.ulp * unit && beyond > worst * unit) {
          worst = beyond / unit;
          at = x[i];
        }
      }
      EXPECT_EQ(wrong, 0u);
      if (std::getenv("SKUA_TEST_PRINT")) std::printf("%-14s %-7s %.2f ULP at %g\n", f.name, isa, worst, double(at));
    }
  }
}

// A turn of vectors may go another way than what is left over, or than a turn with other elements in it.
TEST(Unary, NoValueDependsOnItsPlace) {
  Rng rng(11);
  // of the first, x log2(e) is a tie where the product is rounded
  std::vector<float> arguments = {0x1.aafa8ap+4f, 86.9999f, 87.0f, -87.0f, -103.5f, 0x1p-127f, 0.0f, 1.0f};
  while (arguments.size() < (small() ? 20u : 300u)) arguments.push_back(rng.uniform(-90, 90));
  constexpr size_t kCount = 101;
  std::vector<float> x(kCount), y(kCount);
  const Data data = vector(x);
  const auto bits = [](float value) { return __builtin_bit_cast(uint32_t, value); };
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f, op);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &data.t, 1, nullptr, 0, &plan));
      const skua_buffer in = skua_host_buffer(x.data()), out = skua_host_buffer(y.data());
      size_t wrong = 0;
      for (const float argument : arguments)
        for (const bool among_others : {false, true}) {
          for (size_t i = 0; i < kCount; ++i)
            x[i] = among_others && i % 5 == 0 ? (i % 2 ? -INFINITY : 100.0f) : argument;
          SKUA_EXPECT_OK(skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr));
          for (size_t i = 1; i < kCount; ++i)
            if (!(among_others && i % 5 == 0) && bits(y[i]) != bits(y[1]) && !wrong++)
              ADD_FAILURE() << "f(" << argument << ") is " << y[i] << " at " << i << ", " << y[1] << " at 1";
        }
      EXPECT_EQ(wrong, 0u);
      skua_plan_destroy(plan);
    }
}

TEST(Unary, SpecialValues) {
  const float inf = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x = {
      kNan, -kNan, inf,  -inf, 0.0f,  -0.0f,      FLT_MIN,     -FLT_MIN, tiny,  -tiny, FLT_MAX, -FLT_MAX, 1,  -1,
      0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 8388607.5f, -8388609.0f, 3e9f,     -3e9f, 88.8f, -103.9f, 6,        -3, 3};
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f, op);
      // Each value in every lane of a vector, and in a tail.
      for (size_t shift = 0; shift < (small() ? 2 : 17); ++shift) {
        std::vector<float> values(shift, 0.75f);
        values.insert(values.end(), x.begin(), x.end());
        const Data got = run(op, {vector(values)})[0];
        const Want want = want_for(f, values, isa);
        expect_close(got, want.value, want.bound);
      }
      const Data y = run(op, {vector({0.0f, -0.0f})})[0];
      // Odd functions and roundings keep the sign of a zero.
      switch (f.kind) {
        case SKUA_UNARY_TANH:
        case SKUA_UNARY_ERF:
        case SKUA_UNARY_SIN:
        case SKUA_UNARY_SQRT:
        case SKUA_UNARY_FLOOR:
        case SKUA_UNARY_CEIL:
        case SKUA_UNARY_ROUND:
        case SKUA_UNARY_TRUNC: case SKUA_UNARY_SIGN: case SKUA_UNARY_NEG:
          EXPECT_EQ(std::signbit(y.v[0]), f.kind == SKUA_UNARY_NEG);
          EXPECT_EQ(std::signbit(y.v[1]), f.kind != SKUA_UNARY_NEG);
          break;
        default: break;
      }
    }
}

// No value depends on its neighbours: where a turn of plain numbers is computed in fewer operations, one that is none
// changes nothing but itself.
TEST(Unary, NeighboursOfSpecialValues) {
  Rng rng(7);
  for (const char* isa : isas())
    for (const Function& f : functions) {
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Context context(isa);
      Op op;
      create(context, f, op);
      const Data x = make({96}, rng, 0.25f, 4);
      const Data want = run(op, {x})[0];
      for (float special : {kNan, std::numeric_limits<float>::infinity(), 0.0f, -0.0f, -1.0f, FLT_MIN,
                            std::nextafter(FLT_MIN, 0.0f), FLT_MAX})
        for (size_t at : {size_t(0), size_t(11), size_t(47), size_t(95)}) {
          Data y = x;
          y.v[at] = special;
          Data got = run(op, {y})[0];
          got.v[at] = want.v[at];
          expect_same_bits(got, want);
        }
      if (HasFailure()) return;
    }
}

TEST(Unary, Parameters) {
  Rng rng(2);
  for (const char* isa : isas()) {
    Context context(isa);
    for (Function f : functions) {
      if (f.a == 0) continue;
      for (const float a : {-2.0f, 0.0f, 0.125f}) {
        f.a = a;
        f.b = 1.5f;
        Op op;
        create(context, f, op);
        const Data x = make({29}, rng, -3, 3);
        const Want want = want_for(f, x.v, isa);
        expect_close(run(op, {x})[0], want.value, want.bound);
      }
    }
  }
}

TEST(Unary, AnyRankAnyStrides) {
  struct Case {
    skua_tensor x, y;
  };
  const auto strided = [](std::initializer_list<size_t> extents, std::initializer_list<size_t> strides) {
    skua_tensor t = shape(extents);
    std::copy(strides.begin(), strides.end(), t.stride);
    return t;
  };
  const std::vector<Case> cases = {
      {shape({1}), shape({1})},
      {shape({3, 1, 5, 1, 7, 2}), shape({3, 1, 5, 1, 7, 2})},
      // a slice of few channels
      {with_holes(shape({2, 5, 7, 3}), {0, 0, 0, 5}), shape({2, 5, 7, 3})},
      {with_holes(shape({2, 5, 7, 40}), {0, 0, 0, 9}), with_holes(shape({2, 5, 7, 40}), {0, 0, 0, 1})},
      {shape({4, 6, 35}), with_holes(shape({4, 6, 35}), {0, 2, 0})},
      {strided({5, 33}, {1, 5}), shape({5, 33})},                                                 // transposed
      {strided({5, 33}, {1, 5}), strided({5, 33}, {1, 5})},                                       // both: one dense row
      {strided({700}, {3}), shape({700})},
      {strided({700}, {3}), strided({700}, {2})},
      {shape({1100}), strided({1100}, {2})},
      {strided({3, 4, 2, 3, 2, 5}, {5, 15, 60, 120, 360, 1}), shape({3, 4, 2, 3, 2, 5})},
      // a caller's own repetition
      {strided({4, 9}, {0, 1}), shape({4, 9})},
      {strided({4, 9}, {1, 0}), shape({4, 9})},
      {strided({600, 3}, {5, 2}), strided({600, 3}, {7, 2})},
      {shape({0}), shape({0})},
      {shape({3, 0, 4}), shape({3, 0, 4})},
  };
  Rng rng(3);
  const Function& f = functions[SKUA_UNARY_HARD_SWISH];
  for (const char* isa : isas()) {
    Context context(isa);
    Op op;
    create(context, f, op);
    for (const Case& c : cases) {
      SCOPED_TRACE(testing::Message() << isa << " case " << &c - cases.data());
      const Data x = make(c.x, rng, -4, 4);
      const Want want = want_for(f, dense(x), isa);
      const std::vector<Data> got = run(op, {x}, {c.y});
      ASSERT_EQ(got.size(), 1u);
      expect_close(got[0], want.value, want.bound);
    }
  }
}

TEST(Unary, ManyPieces) {
  Rng rng(4);
  for (const char* isa : isas()) {
    Context context(isa);
    for (const skua_tensor& t :
         {shape({300007}), with_holes(shape({70001, 3}), {0, 1}), with_holes(shape({301, 501}), {0, 3})}) {
      Op op;
      const Function& f = functions[SKUA_UNARY_LEAKY_RELU];
      create(context, f, op);
      const Data x = make(t, rng);
      const Want want = want_for(f, dense(x), isa);
      expect_close(run(op, {x})[0], want.value, want.bound);
      if (small()) break;
    }
  }
}

// Long functions that are computed in halves throughout, and to what.
bool has_halves(skua_unary_kind kind) {
  for (const auto each : {SKUA_UNARY_EXP, SKUA_UNARY_LOG, SKUA_UNARY_SIGMOID, SKUA_UNARY_SILU, SKUA_UNARY_TANH,
                          SKUA_UNARY_GELU_TANH})
    if (kind == each) return true;
  return false;
}
Want want_in_halves(const Function& f, const std::vector<float>& x) {
  const double units = f.kind == SKUA_UNARY_EXP || f.kind == SKUA_UNARY_LOG     ? 1
                       : f.kind == SKUA_UNARY_SILU || f.kind == SKUA_UNARY_TANH ? 3
                                                                                : 2,
               absolute = f.kind == SKUA_UNARY_SILU ? 0x1p-20 : f.kind == SKUA_UNARY_GELU_TANH ? 0x1p-12 : 0;
  Want w{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (size_t i = 0; i < x.size(); ++i) {
    const double y = w.value[i] = f.exact(double(x[i]), double(f.a), double(f.b));
    w.bound[i] = 0;
    if (!std::isfinite(y) || y == 0) continue;
    w.bound[i] = units * 2 * half_ulp(SKUA_DTYPE_F16, std::fmin(std::fabs(y), 65504)) + absolute;
  }
  return w;
}

std::string kernel_of(const skua_op* op, const skua_tensor& x) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
  const std::string name = plan ? skua_plan_kernel(plan) : "";
  skua_plan_destroy(plan);
  return name;
}

// Every half. STRICT computes them as in f32.
TEST(Unary, InHalves) {
  Data sweep;
  for (unsigned bits = 0; bits < 65536; bits += small() ? 61 : 1)
    sweep.v.push_back(skua::widen(skua::f16{uint16_t(bits)}));
  sweep.t = resolved(shape({sweep.v.size()}, SKUA_DTYPE_F16));
  for (const char* isa : isas(SKUA_DTYPE_F16)) {
    if (!std::strstr(isa, "fp16")) continue;
    Context context(isa);
    for (const Function& f : functions) {
      if (!has_halves(f.kind)) continue;
      SCOPED_TRACE(testing::Message() << f.name << " " << isa);
      Op op, strict;
      create(context, f, op, SKUA_DTYPE_F16);
      create(context, f, strict, SKUA_DTYPE_F16, SKUA_NUMERICS_STRICT);
      EXPECT_NE(kernel_of(op, sweep.t).find(isa), std::string::npos) << kernel_of(op, sweep.t);
      EXPECT_EQ(kernel_of(strict, sweep.t).find(isa), std::string::npos) << kernel_of(strict, sweep.t);
      skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
      const std::string in_f32 = kernel_of(strict, sweep.t);
      options.max_isa = isa, options.kernel_filter = in_f32.c_str();
      skua_context* filtered = nullptr;
      SKUA_EXPECT_OK(skua_context_create(&options, &filtered));
      {
        Op named;
        create(filtered, f, named, SKUA_DTYPE_F16);
        EXPECT_EQ(kernel_of(named, sweep.t), in_f32);
      }
      skua_context_destroy(filtered);
      const Data y = run(op, {sweep})[0];
      Want want = want_in_halves(f, sweep.v);
      expect_close(y, want.value, want.bound);
      for (size_t i = 0; f.kind == SKUA_UNARY_TANH && i < y.v.size(); ++i)
        EXPECT_TRUE(std::isnan(y.v[i]) || std::signbit(y.v[i]) == std::signbit(sweep.v[i])) << sweep.v[i];
      if (std::getenv("SKUA_TEST_PRINT")) {
        double worst = 0, at = 0;
        for (size_t i = 0; i < y.v.size(); ++i) {
          const double w = want.value[i], share = std::fabs(double(y.v[i]) - w) / want.bound[i];
          if (std::fabs(w) < 65504 && want.bound[i] > 0 && share > worst) worst = share, at = double(sweep.v[i]);
        }
        std::printf("%-14s %-7s %.2f of its bound at %g\n", f.name, isa, worst, at);
      }
      want = want_for(f, sweep.v, "");
      for (size_t i = 0; i < want.value.size(); ++i)
        want.bound[i] += half_ulp(SKUA_DTYPE_F16, std::fabs(want.value[i]) + want.bound[i]);
      expect_close(run(strict, {sweep})[0], want.value, want.bound);
    }
  }
}

// Values of all exponents, NaN and infinities among them: the f32 result, rounded once. Where short functions compute
// in halves their bound in units of the last place is one of halves.
TEST(Unary, HalfTypes) {
  Rng rng(5);
  for (const skua_dtype type : half_types()) {
    Data sweep;
    for (unsigned bits = 0; bits < 65536; bits += small() ? 509 : 37)
      sweep.v.push_back(type == SKUA_DTYPE_F16 ? skua::widen(skua::f16{uint16_t(bits)})
                                               : skua::widen(skua::bf16{uint16_t(bits)}));
    sweep.t = resolved(shape({sweep.v.size()}, type));
    for (const char* isa : isas(type))
      for (const Function& f : functions) {
        SCOPED_TRACE(testing::Message() << f.name << " " << skua_dtype_name(type) << " " << isa);
        Context context(isa);
        Op op;
        create(context, f, op, type);
        const auto expect = [&](const Data& x, const Data& y) {
          if (type == SKUA_DTYPE_F16 && has_halves(f.kind) && std::strstr(isa, "fp16"))
            return expect_close(y, want_in_halves(f, dense(x)).value, want_in_halves(f, dense(x)).bound);
          Want want = want_for(f, dense(x), isa);
          const double roundings = type == SKUA_DTYPE_F16 && std::strstr(isa, "fp16") ? 1 + 2 * f.ulp : 1;
          for (size_t i = 0; i < want.value.size(); ++i)
            want.bound[i] += roundings * half_ulp(type, std::fabs(want.value[i]) + want.bound[i]);
          expect_close(y, want.value, want.bound);
        };
        expect(sweep, run(op, {sweep})[0]);
        for (size_t n : {1, 7, 16, 33, 47, 70}) {
          const Data x = make(shape({n}, type), rng, -8, 8);
          expect(x, run(op, {x})[0]);
          if (small() && n > 7) break;
        }
        const Data x = make(shape({37}, type), rng, 0.25f, 4);
        expect_same_bits(run_in_place(op, {x})[0], run(op, {x})[0]);
        if (f.kind == SKUA_UNARY_HARD_SWISH)
          for (const skua_tensor& t : {shape({5, 33}, type), with_holes(shape({2, 5, 70, 3}, type), {0, 0, 1, 5}),
                                       with_holes(shape({3, 400, 2}, type), {0, 1, 1})}) {
            const Data v = make(t, rng, -4, 4);
            expect(v, run(op, {v}, {with_holes(t, {0, 2, 3, 1})})[0]);
          }
        if (HasFailure()) return;
      }
  }
}

TEST(Unary, SaysWhatIsWrong) {
  Context context;
  skua_op* op = nullptr;
  const auto refused = [&](skua_unary_desc d, skua_status status, const char* text) {
    EXPECT_EQ(skua_unary_create(context, &d, &op), status);
    EXPECT_EQ(op, nullptr);
    EXPECT_STREQ(skua_error_text(), text);
  };
  skua_unary_desc d = SKUA_UNARY_DESC_INIT;
  d.kind = SKUA_UNARY_KIND_COUNT;
  refused(d, SKUA_STATUS_INVALID_ARGUMENT,
          ("unary: kind is " + std::to_string(SKUA_UNARY_KIND_COUNT) + ", unknown").c_str());
  d = SKUA_UNARY_DESC_INIT;
  d.kind = SKUA_UNARY_CLAMP;
  d.a = 2;
  refused(d, SKUA_STATUS_INVALID_ARGUMENT, "unary: clamps to [2, 0], a must be <= b");
  d.a = kNan;
  refused(d, SKUA_STATUS_INVALID_ARGUMENT, "unary: clamps to [nan, 0], a must be <= b");
  d = SKUA_UNARY_DESC_INIT;
  d.numerics = skua_numerics(3);
  refused(d, SKUA_STATUS_INVALID_ARGUMENT, "unary: numerics is 3, unknown");
  d = SKUA_UNARY_DESC_INIT;
  d.output_type = SKUA_DTYPE_F16;
  refused(d, SKUA_STATUS_UNSUPPORTED, "unary: output_type is f16 and input_type is f32; they must be of one type");
  EXPECT_EQ(skua_unary_create(context, nullptr, &op), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_unary_create(nullptr, &d, &op), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(skua_unary_create(context, &d, nullptr), SKUA_STATUS_INVALID_ARGUMENT);

  Op relu;
  create(context, functions[SKUA_UNARY_RELU], relu);
  skua_plan* plan = nullptr;
  const skua_tensor x = shape({4, 4}), s32 = shape({4}, SKUA_DTYPE_S32), y = shape({4, 5});
  EXPECT_EQ(skua_op_plan(relu, &s32, 1, nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(skua_error_text(), "unary: input 0 has type s32, must be f32");
  EXPECT_EQ(skua_op_plan(relu, &x, 1, &y, 1, &plan), SKUA_STATUS_INVALID_ARGUMENT);
  EXPECT_STREQ(skua_error_text(), "unary: output 0 has extent 5 in dimension 1, must be 4");
}

TEST(Unary, Explains) {
  Context context;
  Op op;
  create(context, functions[SKUA_UNARY_TANH], op);
  skua_plan* plan = nullptr;
  const skua_tensor x = shape({4, 40});
  SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
  EXPECT_STREQ(skua_plan_algorithm(plan), "tanh");
  EXPECT_EQ(std::string(skua_plan_kernel(plan)).rfind("tanh_f32_", 0), 0u);
  char text[400];
  EXPECT_LT(skua_plan_explain(plan, text, sizeof text), sizeof text);
  EXPECT_NE(std::strstr(text, "rows of 160, 0 loops outside; output vector, inputs vector"), nullptr) << text;
  skua_plan_destroy(plan);
}

}  // namespace
