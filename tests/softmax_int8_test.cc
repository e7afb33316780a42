// Softmax of quantised bytes against docs/quantization.md, to the bit, and against the real function.
#include <skua/normalize.h>

#include <cmath>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

const skua_dtype byte_types[] = {SKUA_DTYPE_S8, SKUA_DTYPE_U8};
int first_of(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
skua_quantization of(float scale, int zero_point) {
  skua_quantization q = {};
  q.scale = scale, q.zero_point = zero_point;
  return q;
}

struct Case {
  skua_dtype from, to;
  bool logarithm;
  float x_scale, scale, y_scale;
  int zero;  // of y
};

// The definition, of the elements x[at + i * step], and what is real within a step of it.
void expect_softmax(const Case& c, const std::vector<float>& x, const std::vector<float>& y, size_t n, size_t at,
                    size_t step) {
  auto rising = [&](size_t i) { return c.scale < 0 ? -int(x[at + i * step]) : int(x[at + i * step]); };
  int top = -1000;
  for (size_t i = 0; i < n; ++i) top = std::max(top, rising(i));
  const double unit = double(c.x_scale) * std::fabs(double(c.scale));
  uint64_t sum = 0;
  double real = 0;
  auto power = [&](int d) { return int32_t(std::nearbyint(std::exp(-double(d) * unit) * 0x1p30)); };
  for (size_t i = 0; i < n; ++i)
    sum += uint64_t(power(top - rising(i))), real += std::exp(-double(top - rising(i)) * unit);
  for (size_t i = 0; i < n; ++i) {
    const int d = top - rising(i), first = first_of(c.to);
    volatile float t;
    if (c.logarithm) {
      t = float(-d) * float(unit / double(c.y_scale));
      t = t - float(std::log(double(sum) * 0x1p-30) / double(c.y_scale));
    } else {
      t = float(power(d)) * float(1 / (double(sum) * double(c.y_scale)));
    }
    auto byte = [&](double v) {
      return std::nearbyint(std::min(std::max(v, double(first - c.zero)), double(first + 255 - c.zero))) + c.zero;
    };
    ASSERT_EQ(y[at + i * step], float(byte(double(t)))) << "element " << i << " of " << at;
    const double exact = (c.logarithm ? -d * unit - std::log(real) : std::exp(-d * unit) / real) / double(c.y_scale);
    ASSERT_LE(std::fabs(double(y[at + i * step]) - byte(exact)), 1) << "element " << i << " of " << at;
  }
}

void check(skua_context* context, const Case& c, const skua_tensor& t, int32_t axis, Rng& rng, int low = 0,
           int high = 255, const skua_tensor* output = nullptr) {
  SCOPED_TRACE(testing::Message() << skua_dtype_name(c.from) << " to " << skua_dtype_name(c.to)
                                  << (c.logarithm ? " log" : "") << " of " << elements(t) << ", axis " << axis
                                  << ", scales " << c.x_scale << " * " << c.scale);
  skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
  d.input_type = c.from, d.output_type = c.to, d.axis = axis, d.log = c.logarithm, d.scale = c.scale;
  d.input_q = of(c.x_scale, first_of(c.from) + 9), d.output_q = of(c.y_scale, c.zero);
  Op op;
  SKUA_EXPECT_OK(skua_softmax_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Data x = make_integers(t, rng, first_of(c.from) + low, first_of(c.from) + high);
  const Data y = run(op, {x}, output ? std::vector<skua_tensor>{*output} : std::vector<skua_tensor>{})[0];
  EXPECT_EQ(y.t.type, c.to);
  const size_t a = size_t(axis < 0 ? axis + int32_t(t.rank) : axis), n = t.shape[a];
  size_t inner = 1;
  for (size_t i = a + 1; i < t.rank; ++i) inner *= t.shape[i];
  const std::vector<float> from = dense(x), to = dense(y);
  for (size_t i = 0; i < to.size(); ++i)
    if (i / inner % n == 0) expect_softmax(c, from, to, n, i, inner);
  if (c.from == c.to && !output) expect_same_bits(run_in_place(op, {x})[0], y);
}

TEST(SoftmaxInt8, RowsAndColumnsOfEveryLength) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Rng rng(17);
      for (bool logarithm : {false, true}) {
        // As engines have it: results in steps of 1/256, logarithms of 16/256 up to 0.
        const Case c = {type,
                        type,
                        logarithm,
                        0.07f,
                        1,
                        logarithm ? 1.0f / 16 : 1.0f / 256,
                        logarithm ? first_of(type) + 255 : first_of(type)};
        for (size_t n : {1, 2, 7, 16, 63, 64, 65, 100, 255, 256, 257, 300, 1001}) {
          if (small() && n > 2 && n != 65 && n != 300) continue;
          check(context, c, shape({3, n}, type), -1, rng);
          if (n < 300) check(context, c, shape({n % 20 + 1, n}, type), 0, rng);
        }
        check(context, c, shape({2, 3, 130}, type), 1, rng);
        for (int32_t axis : {0, 1, 2}) check(context, c, shape({3, 5, 9}, type), axis, rng);
        check(context, c, with_holes(shape({3, 5}, type), {0, 4}), 0, rng);
        check(context, c, with_holes(shape({3, 5}, type), {0, 4}), 1, rng);
      }
    }
}

// From one type to the other, any zero point, scales of both signs, steps so small that all are alike and so large that
// one is left.
TEST(SoftmaxInt8, TypesScalesAndZeroPoints) {
  for (skua_dtype from : byte_types)
    for (skua_dtype to : byte_types)
      for (const char* isa : isas(from)) {
        SCOPED_TRACE(isa);
        Context context(isa);
        Rng rng(23);
        for (bool logarithm : {false, true})
          for (float scale : {1.0f, -0.5f, 0.0f, 300.0f, 1e-6f})
            for (size_t n : {40, 280}) {
              check(context, {from, to, logarithm, 0.11f, scale, 0.0123f, first_of(to) + 77}, shape({2, n}, from), 1,
                    rng);
              check(context, {from, to, logarithm, 0.02f, scale, 1e-3f, first_of(to) + 255}, shape({n / 8, 6}, from), 0,
                    rng);
            }
        // all the same
        check(context, {from, to, false, 0.1f, 1, 1.0f / 256, first_of(to)}, shape({2, 300}, from), 1, rng, 0, 0);
      }
}

TEST(SoftmaxInt8, LongRowsAndMany) {
  if (isas(SKUA_DTYPE_U8).empty()) GTEST_SKIP() << "no s8 in this build";
  Context context;
  Rng rng(3);
  const Case c = {SKUA_DTYPE_U8, SKUA_DTYPE_S8, false, 0.1f, 1, 1.0f / 256, -128};
  // no result is half a step: all 0 but for the sum's sake
  check(context, c, shape({1, small() ? 3000u : 200000u}, SKUA_DTYPE_U8), 1, rng, 0, 60);
  check(context, c, shape({small() ? 70u : 700u, 91}, SKUA_DTYPE_U8), 1, rng);
  check(context, c, shape({2, 21, small() ? 100u : 4000u}, SKUA_DTYPE_U8), 1, rng);
}

TEST(SoftmaxInt8, BadDescriptorsAreRefusedByName) {
  if (isas(SKUA_DTYPE_S8).empty()) GTEST_SKIP() << "no s8 in this build";
  Context context;
  skua_op* op = nullptr;
  auto expect = [&](skua_softmax_desc d, skua_status want, const char* text) {
    EXPECT_EQ(skua_softmax_create(context, &d, &op), want) << text;
    EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text();
  };
  skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
  d.input_type = SKUA_DTYPE_S8;
  expect(d, SKUA_STATUS_UNSUPPORTED, "output_type is f32 and input_type is s8");
  d.output_type = SKUA_DTYPE_S8;
  expect(d, SKUA_STATUS_INVALID_ARGUMENT, "input_q.scale is 0");
  d.input_q = of(1, 200);
  expect(d, SKUA_STATUS_INVALID_ARGUMENT, "input_q.zero_point is 200");
  d.input_q = of(1, 0), d.output_q = of(INFINITY, 0);
  expect(d, SKUA_STATUS_INVALID_ARGUMENT, "output_q.scale is inf");
  d.output_q = of(1, 0), d.input_type = SKUA_DTYPE_F32;
  expect(d, SKUA_STATUS_UNSUPPORTED, "output_type is s8");
  EXPECT_EQ(op, nullptr);
}

}  // namespace
