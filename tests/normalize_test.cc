// Softmax and normalisations against double, on every instruction set.
#include <skua/skua.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Shape = std::vector<size_t>;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kEps = double(FLT_EPSILON);

size_t product(const Shape& s, size_t from, size_t to) {
  size_t n = 1;
  for (size_t d = from; d < to; ++d) n *= s[d];
  return n;
}
Shape shape_of(const skua_tensor& t) { return Shape(t.shape, t.shape + t.rank); }

struct Want {
  std::vector<double> value, bound;
};

Want softmax(const Data& data, size_t axis, bool logarithm, float scale) {
  const Shape s = shape_of(data.t);
  const size_t outer = product(s, 0, axis), n = s[axis], inner = product(s, axis + 1, s.size());
  const std::vector<double> x = dense_double(data);
  Want w{std::vector<double>(x.size()), std::vector<double>(x.size())};
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i) {
      auto at = [&](size_t k) { return (o * n + k) * inner + i; };
      auto t = [&](size_t k) { return x[at(k)] * double(scale); };
      double top = -double(kInf), sum = 0;
      for (size_t k = 0; k < n; ++k) top = t(k) > top || std::isnan(t(k)) ? t(k) : top;
      for (size_t k = 0; k < n; ++k) sum += std::exp(t(k) - top);
      for (size_t k = 0; k < n; ++k) {
        // Rounding of the difference and of the product with the scale, of the exponential, of the sum and of the
        // quotient.
        const double d = t(k) - top, argument = 2 * kEps * (std::fabs(t(k)) + std::fabs(top)),
                     total = (double(n) / 4 + 8) * kEps;
        w.value[at(k)] = logarithm ? d - std::log(sum) : std::exp(d) / sum;
        w.bound[at(k)] = logarithm ? argument + total + 2 * kEps * (std::fabs(d) + std::log(sum))
                                   : (argument + total) * std::exp(d) / sum + 0x1p-115;  // e^-80
        // Rounding to 16 bits: of the power that waits in y for the sum, and of the result.
        if (!logarithm && sum > 0) w.bound[at(k)] += half_ulp(data.t.type, std::exp(d)) / sum;
        w.bound[at(k)] += half_ulp(data.t.type, std::fabs(w.value[at(k)]) + w.bound[at(k)]);
        if (std::isnan(w.bound[at(k)]) || std::isinf(w.bound[at(k)])) w.bound[at(k)] = 0;
      }
    }
  return w;
}

void check_softmax(skua_context* context, const Data& x, int32_t axis, bool logarithm, float scale = 1,
                   const std::vector<skua_tensor>& outputs = {}) {
  SCOPED_TRACE(testing::Message() << "shape " << testing::PrintToString(shape_of(x.t)) << " axis " << axis
                                  << (logarithm ? " log" : ""));
  skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
  d.input_type = d.output_type = x.t.type;
  d.axis = axis;
  d.log = logarithm;
  d.scale = scale;
  Op op;
  SKUA_EXPECT_OK(skua_softmax_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Want want = softmax(x, size_t(axis < 0 ? axis + int32_t(x.t.rank) : axis), logarithm, scale);
  const Data y = run(op, {x}, outputs)[0];
  expect_close(y, want.value, want.bound);
  if (outputs.empty() && x.t.stride[0] == 0) expect_same_bits(run_in_place(op, {x})[0], y);
}

TEST(Softmax, EveryAxisEveryTail) {
  Rng rng(1);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (bool logarithm : {false, true}) {
      for (size_t n = 1; n <= 150; n += n < 20 ? 1 : small() ? 43 : 7) {
        check_softmax(context, make({3, n}, rng, -10, 10), -1, logarithm);
        check_softmax(context, make({n, n < 40 ? n : 3}, rng, -4, 4), 0, logarithm);
        if (HasFailure()) return;
      }
      for (int32_t axis : {0, 1, 2, 3, -4, -2})
        check_softmax(context, make({2, 3, 4, 5}, rng, -3, 3), axis, logarithm, 0.5f);
      check_softmax(context, make({2, 1, 9, 17}, rng, -80, 80), 2, logarithm, -2);
      check_softmax(context, make({13}, rng), 0, logarithm);
      check_softmax(context, make({1, 1000}, rng, -90, 90), 1, logarithm);
      check_softmax(context, make({2, 0, 3}, rng), 0, logarithm);
      check_softmax(context, make({2, 0, 3}, rng), 1, logarithm);
    }
  }
}

TEST(Softmax, OutermostStrideIsFree) {
  Rng rng(2);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (bool logarithm : {false, true}) {
      auto loose = [](const Shape& s, size_t more) {
        skua_tensor t = resolved(shape(s));
        t.stride[0] += more;
        return t;
      };
      for (int32_t axis : {0, 1, 2})
        check_softmax(context, make(loose({3, 4, 5}, 3), rng), axis, logarithm, 1, {loose({3, 4, 5}, 1)});
      for (int32_t axis : {0, 1})
        check_softmax(context, make(loose({3, 21}, 2), rng), axis, logarithm, 1, {loose({3, 21}, 5)});
      check_softmax(context, make(loose({9}, 2), rng), 0, logarithm, 1, {loose({9}, 1)});
      check_softmax(context, make({9}, rng), 0, logarithm, 1, {loose({9}, 1)});
    }
  }
}

TEST(Softmax, LargeOnesAreCut) {
  if (small()) GTEST_SKIP() << "large";
  Rng rng(3);
  Context context;
  check_softmax(context, make({400, 1000}, rng), -1, false);
  check_softmax(context, make({2, 30, 7000}, rng), 1, true);
  check_softmax(context, make({2, 200, 700}, rng), 2, false, 1, {with_holes(shape({2, 200, 700}), {0, 1, 0})});
}

TEST(Softmax, SpecialValues) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (bool logarithm : {false, true})
      for (size_t n : {size_t(3), size_t(16), size_t(37), size_t(70)}) {
        Rng rng{uint32_t(n)};
        for (size_t at = 0; at < n; at += 5)
          for (float special : {kNan, -kInf, kInf, 3e38f, -3e38f, 1e-40f}) {
            Data x = make({2, n}, rng);
            x.v[at] = special;
            check_softmax(context, x, 1, logarithm);
            check_softmax(context, x, 0, logarithm);
          }
        Data x = make({2, n}, rng);
        for (size_t i = 0; i < n; ++i) x.v[i] = -kInf;
        check_softmax(context, x, 1, logarithm);
        for (size_t i = 0; i < n; ++i) x.v[i] = -200.0f * float(i);  // all but one underflow
        check_softmax(context, x, 1, logarithm);
        x.v[n - 1] = 1e20f;  // times the scale it rounds by more than a power may grow
        check_softmax(context, x, 1, logarithm, 0.3f);
        if (HasFailure()) return;
      }
  }
}

TEST(Softmax, HalfTypes) {
  Rng rng(4);
  for (const skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(testing::Message() << isa << " " << skua_dtype_name(type));
      Context context(isa);
      for (bool logarithm : {false, true}) {
        for (size_t n : {1, 5, 16, 31, 70, 133}) {
          check_softmax(context, make(shape({3, n}, type), rng, -10, 10), -1, logarithm);
          check_softmax(context, make(shape({n, 37}, type), rng, -4, 4), 0, logarithm, 0.5f);
          if (HasFailure()) return;
        }
        check_softmax(context, make(shape({2, 3, 4, 5}, type), rng, -9, 9), 1, logarithm, -2);
        for (float scale : {-2.0f, 0.0f})
          check_softmax(context, make(shape({3, 41}, type), rng, -9, 9), 1, logarithm, scale);
        check_softmax(context, make(shape({1, 1000}, type), rng, -9, 9), 1, logarithm);
        const skua_tensor holes = with_holes(shape({3, 21}, type), {0, 3});
        check_softmax(context, make(holes, rng, -9, 9), 1, logarithm, 1, {holes});
        for (float special : {kNan, kInf, -kInf, 60000.0f, -60000.0f}) {
          Data x = make(shape({2, 37}, type), rng);
          x.v[35] = rounded(type, special);
          for (int32_t axis : {0, 1}) check_softmax(context, x, axis, logarithm);
        }
      }
    }
}

// ---- normalisations -------------------------------------------------------------------------------------------------
struct Norm {
  skua_norm_desc desc = SKUA_NORM_DESC_INIT;
  bool has_gamma = true, has_beta = true;
  std::vector<float> gamma, beta, mean, variance;
  const float* pointer(const std::vector<float>& v, bool given) const { return given ? v.data() : nullptr; }
};

Norm make_norm(skua_norm_kind kind, size_t channels, Rng& rng) {
  Norm n;
  n.desc.kind = kind;
  n.desc.channels = channels;
  n.has_beta = kind != SKUA_NORM_RMS;
  for (size_t c = 0; c < channels; ++c) {
    n.gamma.push_back(rng.uniform(-2, 2));
    n.beta.push_back(rng.uniform(-1, 1));
    n.mean.push_back(rng.uniform(-1, 1));
    n.variance.push_back(rng.uniform(0.1f, 3));
  }
  return n;
}

skua_status create(skua_context* context, const Norm& n, skua_op** op) {
  const bool batch = n.desc.kind == SKUA_NORM_BATCH;
  return skua_norm_create(context, &n.desc, n.pointer(n.gamma, n.has_gamma), n.pointer(n.beta, n.has_beta),
                          n.pointer(n.mean, batch), n.pointer(n.variance, batch), op);
}

Want norm(const Norm& n, const Data& data) {
  const Shape s = shape_of(data.t);
  const std::vector<double> x = dense_double(data);
  Want w{std::vector<double>(x.size()), std::vector<double>(x.size())};
  const bool rows = n.desc.kind == SKUA_NORM_LAYER || n.desc.kind == SKUA_NORM_RMS,
             nhwc = n.desc.layout == SKUA_LAYOUT_NHWC;
  const size_t channels = n.desc.channels, groups = n.desc.kind == SKUA_NORM_GROUP ? n.desc.groups : channels;
  const size_t plane = rows || nhwc ? 1 : product(s, 2, s.size());
  auto channel = [&](size_t i) { return i / plane % channels; };
  auto set = [&](size_t i) -> size_t {  // which elements share statistics
    if (rows) return i / channels;
    const size_t image = i / product(s, 1, s.size());
    return image * groups + channel(i) * groups / channels;
  };
  const size_t sets = x.empty() ? 0 : set(x.size() - 1) + 1;
  std::vector<double> mean(sets, 0), var(sets, 0), count(sets, 0), size(sets, 0);
  for (size_t i = 0; i < x.size(); ++i) { mean[set(i)] += x[i]; count[set(i)] += 1; size[set(i)] += std::fabs(x[i]); }
  for (size_t k = 0; k < sets; ++k) {
    mean[k] = n.desc.kind == SKUA_NORM_RMS ? 0 : mean[k] / count[k];
    size[k] /= count[k];
  }
  for (size_t i = 0; i < x.size(); ++i) var[set(i)] += (x[i] - mean[set(i)]) * (x[i] - mean[set(i)]) / count[set(i)];
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = rows ? i % channels : channel(i), k = set(i);
    const bool batch = n.desc.kind == SKUA_NORM_BATCH;
    const double g = n.has_gamma ? double(n.gamma[c]) : 1, b = n.has_beta ? double(n.beta[c]) : 0;
    const double m = batch ? double(n.mean[c]) : mean[k], v = batch ? double(n.variance[c]) : var[k];
    const double factor = g / std::sqrt(v + double(n.desc.epsilon));
    w.value[i] = (x[i] - m) * factor + b;
    // Relative error of the sums: r; the mean carries r * mean|x|, the factor r.
    const double r = (batch ? 2 : count[k] / 16 + 12) * kEps;
    w.bound[i] = r * (std::fabs((x[i] - m) * factor) + (batch ? 0 : size[k] * std::fabs(factor))) +
                 3 * kEps * (std::fabs(x[i] * factor) + std::fabs(m * factor) + std::fabs(b));
    w.bound[i] += half_ulp(data.t.type, std::fabs(w.value[i]) + w.bound[i]);
    if (!(w.bound[i] < double(kInf))) w.bound[i] = 0;
  }
  return w;
}

void check_norm(skua_context* context, Norm n, const Data& x, const std::vector<skua_tensor>& outputs = {}) {
  n.desc.type = x.t.type;
  SCOPED_TRACE(testing::Message() << "kind " << n.desc.kind << " layout " << n.desc.layout << " groups "
                                  << n.desc.groups << " shape " << testing::PrintToString(shape_of(x.t)));
  Op op;
  SKUA_EXPECT_OK(create(context, n, &op));
  ASSERT_NE(op.op, nullptr);
  const Want want = norm(n, x);
  const Data y = run(op, {x}, outputs)[0];
  expect_close(y, want.value, want.bound);
  if (outputs.empty() && x.t.stride[0] == 0) expect_same_bits(run_in_place(op, {x})[0], y);
}

TEST(Norm, LayerAndRms) {
  Rng rng(5);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_norm_kind kind : {SKUA_NORM_LAYER, SKUA_NORM_RMS}) {
      for (size_t n = 1; n <= 150; n += n < 20 ? 1 : small() ? 43 : 9) {
        check_norm(context, make_norm(kind, n, rng), make({3, n}, rng, 1, 4));
        if (HasFailure()) return;
      }
      Norm n = make_norm(kind, 12, rng);
      n.has_gamma = false;
      check_norm(context, n, make({2, 5, 12}, rng));
      n.has_gamma = true;
      n.has_beta = false;
      n.desc.axes = 2;
      n.desc.epsilon = 0.5f;
      check_norm(context, n, make({2, 5, 3, 4}, rng));
      check_norm(context, n, make(with_holes(shape({2, 5, 3, 4}), {0, 2, 0, 0}), rng),
                 {with_holes(shape({2, 5, 3, 4}), {0, 1, 0, 0})});
      check_norm(context, n, make({0, 3, 4}, rng));
      n.desc.axes = 1;
      check_norm(context, n, make({12}, rng));
      check_norm(context, n, make(with_holes(shape({2, 3, 12}), {0, 1, 3}), rng),
                 {with_holes(shape({2, 3, 12}), {0, 2, 5})});
    }
  }
}

TEST(Norm, BatchGroupInstance) {
  Rng rng(6);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      for (skua_norm_kind kind : {SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE})
        for (size_t channels : {size_t(1), size_t(3), size_t(8), size_t(18), size_t(36), size_t(70)}) {
          Norm n = make_norm(kind, channels, rng);
          n.desc.layout = layout;
          n.desc.groups = channels % 6 == 0 ? 6 : channels % 4 == 0 ? 2 : 1;
          auto of = [&](size_t h, size_t w) {
            return layout == SKUA_LAYOUT_NHWC ? Shape{2, h, w, channels} : Shape{2, channels, h, w};
          };
          check_norm(context, n, make(shape(of(5, 7)), rng, -1, 3));
          check_norm(context, n, make(shape(of(1, 1)), rng, -1, 3));
          check_norm(context, n, make(shape(of(6, 3)), rng, 50, 52));
          // Rows of pixels with room between them, and a slice of the channels of a wider tensor.
          check_norm(context, n, make(with_holes(shape(of(4, 9)), {0, 1, 2, 1}), rng),
                     {with_holes(shape(of(4, 9)), {0, 2, 1, 3})});
          // One pixel wide: the innermost dimension has no stride of its own, and the next one has gaps.
          check_norm(context, n, make(with_holes(shape(of(4, 1)), {0, 1, 1, 1}), rng),
                     {with_holes(shape(of(4, 1)), {0, 2, 1, 2})});
          check_norm(context, n, make(shape(of(4, 1)), rng), {with_holes(shape(of(4, 1)), {0, 0, 0, 1})});
          check_norm(context, n, make(with_holes(shape(of(4, 1)), {0, 0, 0, 1}), rng), {shape(of(4, 1))});
          if (HasFailure()) return;
        }
    for (skua_norm_kind kind : {SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE}) {
      Norm n = make_norm(kind, 6, rng);
      n.has_gamma = n.has_beta = false;
      check_norm(context, n, make({3, 6}, rng));
      check_norm(context, n, make({2, 2, 3, 4, 2, 6}, rng));
      check_norm(context, n, make(with_holes(shape({2, 2, 3, 4, 2, 6}), {0, 1, 1, 1, 1, 1}), rng),
                 {with_holes(shape({2, 2, 3, 4, 2, 6}), {0, 1, 2, 1, 2, 1})});
      check_norm(context, n, make({2, 0, 6}, rng));
      n.desc.layout = SKUA_LAYOUT_NCHW;
      check_norm(context, n, make({3, 6}, rng));
      check_norm(context, n, make({2, 6, 5}, rng));
      check_norm(context, n, make(with_holes(shape({2, 6, 3, 4, 2, 5}), {0, 1, 1, 1, 1, 1}), rng),
                 {with_holes(shape({2, 6, 3, 4, 2, 5}), {0, 1, 2, 1, 2, 1})});
    }
  }
}

TEST(Norm, HalfTypes) {
  Rng rng(11);
  for (const skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(testing::Message() << isa << " " << skua_dtype_name(type));
      Context context(isa);
      for (size_t n : {1, 7, 32, 70, 150})
        for (skua_norm_kind kind : {SKUA_NORM_LAYER, SKUA_NORM_RMS})
          check_norm(context, make_norm(kind, n, rng), make(shape({3, n}, type), rng, 1, 4));
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (skua_norm_kind kind : {SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE})
          for (size_t channels : {6, 36}) {
            Norm n = make_norm(kind, channels, rng);
            n.desc.layout = layout;
            n.desc.groups = 6;
            auto of = [&](size_t h, size_t w) {
              return shape(layout == SKUA_LAYOUT_NHWC ? Shape{2, h, w, channels} : Shape{2, channels, h, w}, type);
            };
            check_norm(context, n, make(of(5, 7), rng, -1, 3));
            check_norm(context, n, make(with_holes(of(4, 9), {0, 1, 2, 1}), rng), {with_holes(of(4, 9), {0, 2, 1, 3})});
            if (HasFailure()) return;
          }
    }
}

TEST(Norm, LargeOnesAreCut) {
  if (small()) GTEST_SKIP() << "large";
  Rng rng(7);
  Context context;
  for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
    for (skua_norm_kind kind : {SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE}) {
      Norm n = make_norm(kind, 192, rng);
      n.desc.layout = layout;
      n.desc.groups = 8;
      check_norm(context, n,
                 make(shape(layout == SKUA_LAYOUT_NHWC ? Shape{1, 60, 60, 192} : Shape{1, 192, 60, 60}), rng));
    }
  check_norm(context, make_norm(SKUA_NORM_LAYER, 1000, rng), make({700, 1000}, rng));
}

TEST(Norm, SpecialValues) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(8);
    for (skua_norm_kind kind : {SKUA_NORM_LAYER, SKUA_NORM_RMS, SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE})
      for (float special : {kNan, kInf, -kInf}) {
        const Norm n = make_norm(kind, 20, rng);
        Data x = make({3, 4, 20}, rng);
        x.v[87] = special;
        Op op;
        SKUA_EXPECT_OK(create(context, n, &op));
        const Data y = run(op, {x})[0];
        const Want want = norm(n, x);
        // Where the statistics are not finite nothing is.
        for (size_t i = 0; i < y.v.size(); ++i) {
          if (std::isnan(want.value[i])) EXPECT_TRUE(std::isnan(y.v[i])) << i;
          else if (std::isinf(want.value[i])) EXPECT_EQ(double(y.v[i]), want.value[i]) << i;
          else EXPECT_NEAR(double(y.v[i]), want.value[i], want.bound[i]) << i;
        }
      }
    Norm n = make_norm(SKUA_NORM_LAYER, 9, rng);
    check_norm(context, n, Data{shape({1, 9}), std::vector<float>(9, 2.0f)});  // no variance: beta
  }
}

TEST(Norm, PackedWeightsComeBack) {
  Rng rng(9);
  Context context;
  const Norm n = make_norm(SKUA_NORM_BATCH, 37, rng);
  Op op, copy;
  SKUA_EXPECT_OK(create(context, n, &op));
  const size_t size = skua_op_packed_size(op);
  ASSERT_GT(size, 37u * 8);
  Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
  SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
  SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &copy));
  ASSERT_NE(copy.op, nullptr);
  const Data x = make({5, 37}, rng);
  expect_same_bits(run(copy, {x})[0], run(op, {x})[0]);
}

// ---- errors ---------------------------------------------------------------------------------------------------------
void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}
void expect_plan(const skua_op* op, const skua_tensor& x, skua_status status, const char* text) {
  skua_plan* plan = nullptr;
  expect_text(skua_op_plan(op, &x, 1, nullptr, 0, &plan), status, text);
  EXPECT_EQ(plan, nullptr);
}

TEST(Softmax, BadArgumentsAreRefusedByName) {
  Context context;
  const skua_status bad = SKUA_STATUS_INVALID_ARGUMENT, unsupported = SKUA_STATUS_UNSUPPORTED;
  skua_op* none = nullptr;
  skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
  d.axis = 6;
  expect_text(skua_softmax_create(context, &d, &none), bad, "softmax: axis is 6");
  d = SKUA_SOFTMAX_DESC_INIT;
  d.scale = kInf;
  expect_text(skua_softmax_create(context, &d, &none), bad, "scale is inf");
  d = SKUA_SOFTMAX_DESC_INIT;
  d.output_type = SKUA_DTYPE_U8;
  expect_text(skua_softmax_create(context, &d, &none), unsupported, "output_type is u8");
  d = SKUA_SOFTMAX_DESC_INIT;
  d.input_type = SKUA_DTYPE_S8;
  expect_text(skua_softmax_create(context, &d, &none), unsupported,
              int8_types().empty() ? "input_type is s8" : "output_type is f32");
  d = SKUA_SOFTMAX_DESC_INIT;
  d.axis = 2;
  Op op;
  SKUA_EXPECT_OK(skua_softmax_create(context, &d, &op));
  expect_plan(op, shape({2, 2}), bad, "axis is 2");
  expect_plan(op, shape({2, 2, 2}, SKUA_DTYPE_S32), bad, "input 0 has type s32");
  expect_plan(op, with_holes(shape({2, 2, 2}), {0, 0, 1}), unsupported, "strides with holes inside dimension 0");
}

TEST(Norm, BadArgumentsAreRefusedByName) {
  Context context;
  Rng rng(10);
  const skua_status bad = SKUA_STATUS_INVALID_ARGUMENT, unsupported = SKUA_STATUS_UNSUPPORTED;
  const float values[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  skua_op* none = nullptr;
  skua_norm_desc d = SKUA_NORM_DESC_INIT;
  auto expect = [&](const char* text, skua_status status = SKUA_STATUS_INVALID_ARGUMENT) {
    expect_text(skua_norm_create(context, &d, values, nullptr, nullptr, nullptr, &none), status, text);
    d = SKUA_NORM_DESC_INIT;
    d.channels = 8;
  };
  expect("norm: channels is 0");
  d.kind = skua_norm_kind(5);
  expect("kind is 5");
  d.type = SKUA_DTYPE_U8;
  expect("type is u8", unsupported);
  d.layout = skua_layout(2);
  expect("layout is 2");
  d.axes = 0;
  expect("axes is 0");
  d.kind = SKUA_NORM_GROUP;
  d.groups = 3;
  expect("groups is 3");
  d.kind = SKUA_NORM_GROUP;
  d.groups = 0;
  expect("groups is 0");
  d.epsilon = -1;
  expect("epsilon is -1");
  d.epsilon = kNan;
  expect("epsilon is");
  d.channels = SIZE_MAX / 2;
  expect("larger than the address space");
  d.kind = SKUA_NORM_BATCH;
  expect("mean is NULL");
  d.kind = SKUA_NORM_BATCH;
  expect_text(skua_norm_create(context, &d, nullptr, nullptr, values, nullptr, &none), bad, "variance is NULL");
  d.kind = SKUA_NORM_RMS;
  expect_text(skua_norm_create(context, &d, nullptr, values, nullptr, nullptr, &none), bad, "beta is given");
  d.kind = SKUA_NORM_LAYER;
  expect_text(skua_norm_create(context, &d, nullptr, nullptr, values, nullptr, &none), bad, "mean is given");
  expect_text(skua_norm_create(context, &d, nullptr, nullptr, nullptr, values, &none), bad, "variance is given");
  EXPECT_EQ(none, nullptr);

  Norm layer = make_norm(SKUA_NORM_LAYER, 8, rng), group = make_norm(SKUA_NORM_GROUP, 8, rng);
  layer.desc.axes = 2;
  Op l, g;
  SKUA_EXPECT_OK(create(context, layer, &l));
  SKUA_EXPECT_OK(create(context, group, &g));
  expect_plan(l, shape({8}), bad, "input 0 has rank 1, axes is 2");
  expect_plan(l, shape({2, 3, 3}), bad, "9 elements in its last 2 dimensions");
  expect_plan(l, with_holes(shape({2, 2, 4}), {0, 0, 1}), unsupported, "input 0 has strides with holes");
  expect_plan(g, shape({8}), bad, "rank 1");
  expect_plan(g, shape({2, 7}), bad, "7 channels");
  expect_plan(g, shape({2, 8}, SKUA_DTYPE_S32), bad, "type s32");
  skua_tensor strided = shape({2, 8});
  strided.stride[0] = 16;
  strided.stride[1] = 2;
  expect_plan(g, strided, unsupported, "innermost stride 2");
}

}  // namespace
