// Conversions, sums, products and functions of quantised bytes against docs/quantization.md, to the bit.
#include <skua/data.h>
#include <skua/elementwise.h>

#include <cfloat>
#include <cmath>
#include <cstring>

#include "dispatch/requantize.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

const skua_dtype byte_types[] = {SKUA_DTYPE_S8, SKUA_DTYPE_U8};
bool is_bytes(skua_dtype t) { return t == SKUA_DTYPE_S8 || t == SKUA_DTYPE_U8; }
int first_of(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
int last_of(skua_dtype t) { return first_of(t) + 255; }
skua_quantization of(float scale, int zero_point) {
  skua_quantization q = {};
  q.scale = scale, q.zero_point = zero_point;
  return q;
}
// The definition: t is clamped, rounded to the nearest integer, ties to even, and moved.
float quantised(float t, skua_dtype type, int zero, int least = -1000, int most = 1000) {
  if (std::isnan(t)) t = 0;
  const double low = std::max(first_of(type) - zero, least), high = std::min(last_of(type) - zero, most);
  return float(std::nearbyint(std::min(std::max(double(t), low), high)) + zero);
}
float times(float a, float b) {
  volatile float p = a * b;
  return p;
}
Data bytes(const skua_tensor& t, Rng& rng) { return make_integers(t, rng, first_of(t.type), last_of(t.type)); }

void expect_exactly(const Data& got, const std::vector<float>& want) {
  const std::vector<float> y = dense(got);
  ASSERT_EQ(y.size(), want.size());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], want[i]) << "element " << i;
}
void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

// Numbers around every tie and end, and what is no number.
Data reals(const skua_tensor& t, float scale, Rng& rng) {
  Data x = make(t, rng, -400 * scale, 400 * scale);
  const float special[] = {0.5f, 1.5f, -0.5f, -2.5f, 127.5f, -128.5f, 255.5f, INFINITY, -INFINITY, NAN, 1e30f, -0.0f};
  size_t at = 0;
  for (size_t i = 0; i < elements(x.t); ++i)
    if (i % 3 == 1) x.v[offset(x.t, i)] = rounded(t.type, special[at++ % 12] * scale);
  return x;
}

struct Case {
  skua_dtype from, to;
  float from_scale, to_scale;
  int from_zero, to_zero;
};
float converted(float x, const Case& c) {
  const double factor = (is_bytes(c.from) ? double(c.from_scale) : 1.0) / (is_bytes(c.to) ? double(c.to_scale) : 1.0);
  const float t = times(is_bytes(c.from) ? x - float(c.from_zero) : x, float(factor));
  return is_bytes(c.to) ? quantised(t, c.to, c.to_zero) : rounded(c.to, t);
}

void check_convert(skua_context* context, const Case& c, const skua_tensor& t) {
  SCOPED_TRACE(testing::Message() << skua_dtype_name(c.from) << " to " << skua_dtype_name(c.to) << ", " << elements(t)
                                  << " elements, zero points " << c.from_zero << ", " << c.to_zero);
  skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
  d.input_type = c.from, d.output_type = c.to;
  if (is_bytes(c.from)) d.input_q = of(c.from_scale, c.from_zero);
  if (is_bytes(c.to)) d.output_q = of(c.to_scale, c.to_zero);
  Op op;
  SKUA_EXPECT_OK(skua_convert_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  Rng rng(7);
  const Data x = is_bytes(c.from) ? bytes(t, rng) : reals(t, c.to_scale, rng);
  std::vector<float> want;
  for (float v : dense(x)) want.push_back(converted(v, c));
  expect_exactly(run(op, {x})[0], want);
}

TEST(ConvertInt8, EveryTypeBothWays) {
  for (skua_dtype byte : byte_types)
    for (const char* isa : isas(byte)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      const int first = first_of(byte), last = last_of(byte);
      for (skua_dtype type : float_types())
        for (size_t n : {1, 15, 67, 141}) {
          check_convert(context, {type, byte, 0, 0.37f, 0, n % 2 ? first : last}, shape({n}, type));
          check_convert(context, {byte, type, 0.0123f, 0, n % 2 ? last : first, 0}, shape({n}, byte));
        }
      for (skua_dtype other : byte_types)
        for (size_t n : {3, 64, 149}) {
          check_convert(context, {other, byte, 0.5f, 0.25f, first_of(other) + 3, last - 7}, shape({n}, other));  // ties
          check_convert(context, {other, byte, 0.1f, 0.3f, last_of(other), first},
                        with_holes(shape({3, n}, other), {0, 2}));
        }
    }
}

TEST(ConvertInt8, EveryByteComesBack) {
  for (skua_dtype byte : byte_types)
    for (skua_dtype type : float_types()) {
      Context context;
      skua_convert_desc there = SKUA_CONVERT_DESC_INIT, back = SKUA_CONVERT_DESC_INIT;
      there.input_type = back.output_type = byte, there.output_type = back.input_type = type;
      there.input_q = back.output_q = of(0.0371f, first_of(byte) + 100);
      Op a, b;
      SKUA_EXPECT_OK(skua_convert_create(context, &there, &a));
      SKUA_EXPECT_OK(skua_convert_create(context, &back, &b));
      Data x = make_integers(shape({256}, byte), *std::make_unique<Rng>(1), 0, 0);
      for (int i = 0; i < 256; ++i) x.v[size_t(i)] = float(first_of(byte) + i);
      if (type != SKUA_DTYPE_BF16) expect_exactly(run(b, {run(a, {x})[0]})[0], x.v);  // 8 digits hold 128 steps only
    }
}

// Scales and zero points of channels in any dimension, on either side or both.
TEST(ConvertInt8, Channels) {
  for (skua_dtype byte : byte_types)
    for (const char* isa : isas(byte)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (uint32_t axis : {0u, 1u, 2u})
        for (int sides = 1; sides < 4; ++sides)
          for (bool zeros : {false, true}) {
            SCOPED_TRACE(testing::Message() << "axis " << axis << ", sides " << sides << ", zero points " << zeros);
            const std::vector<size_t> extents = {3, 5, 37};
            const size_t channels = extents[axis];
            std::vector<float> scales(channels);
            std::vector<int32_t> points(channels);
            for (size_t i = 0; i < channels; ++i)
              scales[i] = 0.01f * float(1 + i * 7 % 11), points[i] = i % 3 == 0   ? first_of(byte)
                                                                     : i % 3 == 1 ? last_of(byte)
                                                                                  : first_of(byte) + int(i);
            const skua_quantization each = {0,    0, scales.data(), zeros ? points.data() : nullptr,
                                            axis, 0, SKUA_DTYPE_F32};
            skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
            d.input_type = sides & 1 ? byte : SKUA_DTYPE_F32, d.output_type = sides & 2 ? byte : SKUA_DTYPE_F32;
            if (sides & 1) d.input_q = each;
            if (sides & 2) d.output_q = each;
            if (sides == 3 && axis == 1) d.output_q = of(0.02f, first_of(byte) + 1);  // one scale on that side
            d.channels = channels;
            Op op;
            SKUA_EXPECT_OK(skua_convert_create(context, &d, &op));
            ASSERT_NE(op.op, nullptr);
            Rng rng(3);
            const skua_tensor t = shape(extents, d.input_type);
            const Data x = sides & 1 ? bytes(t, rng) : reals(t, 0.05f, rng);
            std::vector<float> want, values = dense(x);
            for (size_t i = 0; i < values.size(); ++i) {
              const size_t c = i / (axis == 0 ? 185 : axis == 1 ? 37 : 1) % channels;
              const int zero = zeros ? points[c] : 0;
              const bool one = !d.output_q.scales;
              want.push_back(
                  converted(values[i], {d.input_type, d.output_type, scales[c], one ? d.output_q.scale : scales[c],
                                        zero, one ? d.output_q.zero_point : zero}));
            }
            expect_exactly(run(op, {x})[0], want);
          }
    }
}

void check_binary(skua_context* context, skua_binary_kind kind, skua_dtype type, const skua_tensor& x_shape,
                  const skua_tensor& y_shape, int x_zero, int y_zero, int zero,
                  skua_activation_kind activation = SKUA_ACTIVATION_NONE, std::initializer_list<float> scales = {}) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << " " << skua_dtype_name(type) << " " << elements(x_shape)
                                  << " with " << elements(y_shape) << ", zero points " << x_zero << " " << y_zero << " "
                                  << zero);
  const float usual[] = {0.031f, kind == SKUA_BINARY_MUL ? 0.5f : 0.0625f, kind == SKUA_BINARY_MUL ? 1.0f : 0.0625f},
              *const s = scales.size() ? scales.begin() : usual, xs = s[0], ys = s[1], zs = s[2];
  skua_binary_desc d = SKUA_BINARY_DESC_INIT;
  d.kind = kind, d.type = type, d.x_q = of(xs, x_zero), d.y_q = of(ys, y_zero), d.output_q = of(zs, zero);
  d.activation.kind = activation;
  Op op;
  SKUA_EXPECT_OK(skua_binary_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  Rng rng(11);
  const Data x = bytes(x_shape, rng), y = bytes(y_shape, rng);
  const Data z = run(op, {x, y})[0];
  const std::vector<float> got = dense(z);
  auto value = [&](const Data& v, size_t flat) {
    size_t at = 0;
    for (uint32_t i = z.t.rank; i-- > 0; flat /= z.t.shape[i])
      if (const uint32_t behind = z.t.rank - i; behind <= v.t.rank && v.t.shape[v.t.rank - behind] != 1)
        at += flat % z.t.shape[i] * v.t.stride[v.t.rank - behind];
    return v.v[at];
  };
  std::vector<float> want;
  for (size_t i = 0; i < got.size(); ++i) {
    const float p = value(x, i) - float(x_zero), q = value(y, i) - float(y_zero);
    const float a = float(double(xs) / double(zs)), b = float(double(ys) / double(zs)),
                product = float(double(xs) * double(ys) / double(zs));
    volatile float t;
    if (kind == SKUA_BINARY_MIN) t = std::min(times(p, a), times(q, b));
    else if (kind == SKUA_BINARY_MAX) t = std::max(times(p, a), times(q, b));
    else if (kind == SKUA_BINARY_PRELU) t = p < 0 ? times(p * q, product) : times(p, a);
    else if (kind == SKUA_BINARY_DIV) {
      t = p / q;
      t = t * float(double(xs) / double(ys) / double(zs));
    } else if (kind == SKUA_BINARY_SQUARED_DIFFERENCE) {
      const double larger = double(std::max(xs, ys));
      volatile float other = times(q, float(double(ys) / larger)), square;
      t = times(p, float(double(xs) / larger));
      t = t - other;
      square = t * t;
      t = times(square, float(larger * larger / double(zs)));
    } else if (kind == SKUA_BINARY_MUL) t = times(p * q, float(double(xs) * double(ys) / double(zs)));
    else {
      volatile float b = times(q, float(double(ys) / double(zs)));
      t = times(p, float(double(xs) / double(zs)));
      t = kind == SKUA_BINARY_ADD ? t + b : t - b;
    }
    if (activation == SKUA_ACTIVATION_NONE) want.push_back(quantised(t, type, zero));
    else
      want.push_back(
          quantised(t, type, zero, 0, activation == SKUA_ACTIVATION_RELU6 ? int(std::nearbyint(6 / double(zs))) : 255));
  }
  expect_exactly(z, want);
  if (elements(x_shape) == got.size() && x_shape.rank == z.t.rank) expect_exactly(run_in_place(op, {x, y})[0], want);
}

TEST(BinaryInt8, DifferentScalesAndBroadcasts) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      const int first = first_of(type), last = last_of(type), middle = first + 117;
      for (skua_binary_kind kind : {SKUA_BINARY_ADD, SKUA_BINARY_SUB, SKUA_BINARY_MUL, SKUA_BINARY_DIV, SKUA_BINARY_MIN,
                                    SKUA_BINARY_MAX, SKUA_BINARY_SQUARED_DIFFERENCE, SKUA_BINARY_PRELU}) {
        for (size_t n : {1, 31, 64, 150})
          check_binary(context, kind, type, shape({n}, type), shape({n}, type), first, last, middle);
        check_binary(context, kind, type, shape({4, 90}, type), shape({1}, type), middle, first, last);
        check_binary(context, kind, type, shape({1}, type), shape({4, 90}, type), last, middle, first);
        check_binary(context, kind, type, shape({4, 37}, type), shape({37}, type), last, last, middle,
                     SKUA_ACTIVATION_RELU6);
        // cuts off one value
        check_binary(context, kind, type, shape({70}, type), shape({70}, type), middle, middle, first + 1,
                     SKUA_ACTIVATION_RELU);
        check_binary(context, kind, type, shape({9, 5}, type), shape({5}, type), middle, middle, middle);
        check_binary(context, kind, type, with_holes(shape({6, 70}, type), {0, 3}), shape({6, 1}, type), middle, first,
                     middle);
      }
    }
}

TEST(UnaryInt8, EveryFunction) {
  Context scalar("scalar");
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (int kind = 0; kind < SKUA_UNARY_KIND_COUNT; ++kind) {
        if (small() && kind % 4 != 0) continue;
        SCOPED_TRACE(testing::Message() << "kind " << kind << " " << skua_dtype_name(type));
        const bool clamps = kind <= SKUA_UNARY_CLAMP && kind != SKUA_UNARY_RELU6;  // keeps the quantisation
        skua_unary_desc f = SKUA_UNARY_DESC_INIT, d = SKUA_UNARY_DESC_INIT;
        f.kind = d.kind = skua_unary_kind(kind), f.a = d.a = -1, f.b = d.b = 0.7f;
        d.input_type = type, d.output_type = kind == SKUA_UNARY_TANH ? SKUA_DTYPE_S8 : type;
        d.input_q = of(0.05f, first_of(type) + 77),
        d.output_q = clamps ? d.input_q : of(1.0f / 256, first_of(d.output_type) + 5);
        Op function, op;
        SKUA_EXPECT_OK(skua_unary_create(scalar, &f, &function));
        SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
        ASSERT_NE(op.op, nullptr);
        Rng rng(5);
        const size_t n = size_t(256 + kind * 3);
        Data x = bytes(shape({n}, type), rng), real = make(shape({n}), rng);
        for (size_t i = 0; i < 256; ++i) x.v[i * 7 % 256] = float(first_of(type) + int(i));
        for (size_t i = 0; i < n; ++i) real.v[i] = times(x.v[i] - float(d.input_q.zero_point), d.input_q.scale);
        const Data y = run(function, {real})[0];
        std::vector<float> want(n);
        for (size_t i = 0; i < n; ++i)
          want[i] = quantised(times(y.v[i], float(1 / double(d.output_q.scale))), d.output_type, d.output_q.zero_point);
        expect_exactly(run(op, {x})[0], want);
        if (d.output_type == type) expect_exactly(run_in_place(op, {x})[0], want);
      }
    }
}

// Whole turns, whole vectors and what is left of one: tables, and clamps from below, above and both sides.
TEST(UnaryInt8, EveryLength) {
  Context scalar("scalar");
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (skua_unary_kind kind : {SKUA_UNARY_SIGMOID, SKUA_UNARY_RELU, SKUA_UNARY_RELU6, SKUA_UNARY_CLAMP}) {
        skua_unary_desc d = SKUA_UNARY_DESC_INIT;
        d.kind = kind, d.a = kind == SKUA_UNARY_CLAMP ? -100.0f : -1, d.b = 0.7f;
        d.input_type = d.output_type = type;
        d.input_q = d.output_q = of(0.05f, first_of(type) + 77);
        Op reference, op;
        SKUA_EXPECT_OK(skua_unary_create(scalar, &d, &reference));
        SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
        Rng rng(6);
        for (size_t n = 1; n < 600; n += small() ? 37 : n < 140 ? 1 : 13) {
          SCOPED_TRACE(testing::Message() << "kind " << kind << " " << skua_dtype_name(type) << " of " << n);
          const Data x = bytes(shape({n}, type), rng);
          expect_exactly(run(op, {x})[0], run(reference, {x})[0].v);
          if (HasFailure()) return;
        }
      }
    }
}

TEST(ElementwiseInt8, BadDescriptorsAreRefusedByName) {
  if (isas(SKUA_DTYPE_S8).empty()) GTEST_SKIP() << "no s8 in this build";
  Context context;
  skua_op* op = nullptr;
  const skua_status bad = SKUA_STATUS_INVALID_ARGUMENT, unsupported = SKUA_STATUS_UNSUPPORTED;
  skua_convert_desc c = SKUA_CONVERT_DESC_INIT;
  c.output_type = SKUA_DTYPE_S8;
  expect_text(skua_convert_create(context, &c, &op), bad, "output_q.scale is 0");
  c.output_q = of(1, 128);
  expect_text(skua_convert_create(context, &c, &op), bad, "output_q.zero_point is 128");
  c.output_q = of(1, 0), c.input_q = of(1, 0);
  expect_text(skua_convert_create(context, &c, &op), bad, "input_q is set, but the tensor is not quantised");
  c.input_q = {};
  c.channels = 3;
  expect_text(skua_convert_create(context, &c, &op), bad, "channels is 3 without scales");
  const float scales[] = {1, 2, -3};
  c.output_q.scales = scales;
  expect_text(skua_convert_create(context, &c, &op), bad, "output_q.scales[2] is -3");
  c.channels = 2;
  c.output_q.axis = 1;
  Op channels;
  SKUA_EXPECT_OK(skua_convert_create(context, &c, &channels));
  skua_plan* plan = nullptr;
  skua_tensor t = shape({2});
  expect_text(skua_op_plan(channels, &t, 1, nullptr, 0, &plan), bad, "axis is 1");
  t = shape({4, 3});
  expect_text(skua_op_plan(channels, &t, 1, nullptr, 0, &plan), bad, "extent 3 in dimension 1, channels is 2");
  c.channels = 0;
  expect_text(skua_convert_create(context, &c, &op), bad, "channels is 0");
  skua_binary_desc b = SKUA_BINARY_DESC_INIT;
  b.type = SKUA_DTYPE_U8, b.x_q = b.y_q = of(1, 0);
  expect_text(skua_binary_create(context, &b, &op), bad, "output_q.scale");
  b.output_q = of(1, 0), b.kind = SKUA_BINARY_POW;
  expect_text(skua_binary_create(context, &b, &op), unsupported, "SQUARED_DIFFERENCE and PRELU");
  b.kind = SKUA_BINARY_ADD, b.activation.kind = SKUA_ACTIVATION_TANH;
  expect_text(skua_binary_create(context, &b, &op), unsupported, "activation");
  skua_unary_desc u = SKUA_UNARY_DESC_INIT;
  u.input_type = SKUA_DTYPE_S8;
  expect_text(skua_unary_create(context, &u, &op), unsupported, "output_type is f32");
  u.output_type = SKUA_DTYPE_S8;
  expect_text(skua_unary_create(context, &u, &op), bad, "input_q.scale");
  EXPECT_EQ(op, nullptr);
}

// Results beyond 16 bits, beyond 32 and beyond floats, of either sign: what saturates on the way ends where it should.
TEST(BinaryInt8, ScalesFarApart) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      const int first = first_of(type), middle = first + 117;
      const skua_tensor t = shape({150}, type);
      for (skua_binary_kind kind : {SKUA_BINARY_ADD, SKUA_BINARY_SUB, SKUA_BINARY_MUL, SKUA_BINARY_DIV, SKUA_BINARY_MIN,
                                    SKUA_BINARY_MAX, SKUA_BINARY_SQUARED_DIFFERENCE, SKUA_BINARY_PRELU})
        for (int zero : {first, middle, first + 255}) {
          for (const float far : {300.0f, 4e4f, 3e7f, 1e10f, 3e15f, 1e30f}) {
            if (small() && far != 4e4f && far != 1e30f) continue;
            check_binary(context, kind, type, t, t, middle, middle, zero, SKUA_ACTIVATION_NONE, {far, 0.5f, 1.0f});
            check_binary(context, kind, type, t, t, middle, middle, zero, SKUA_ACTIVATION_NONE, {0.5f, far, 1.0f});
          }
          check_binary(context, kind, type, t, t, first, first, zero, SKUA_ACTIVATION_RELU, {3.37f, 14.2f, 7.68e-5f});
        }
    }
}
// 0 / 0 is 0.
TEST(BinaryInt8, NothingByNothing) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      skua_binary_desc d = SKUA_BINARY_DESC_INIT;
      d.kind = SKUA_BINARY_DIV, d.type = type;
      d.x_q = of(0.5f, first_of(type)), d.y_q = of(0.25f, first_of(type) + 30), d.output_q = of(1, first_of(type) + 18);
      for (bool clamped : {false, true}) {  // to what 0 is not within
        if (clamped) d.activation = {SKUA_ACTIVATION_CLAMP, 5, 9};
        Op op;
        SKUA_EXPECT_OK(skua_binary_create(context, &d, &op));
        Data x, y;
        x.t = y.t = shape({150}, type);
        for (int i = 0; i < 150; ++i)
          x.v.push_back(float(first_of(type) + i % 3)), y.v.push_back(float(first_of(type) + 30));
        const Data z = run(op, {x, y})[0];
        for (int i = 0; i < 150; ++i)
          EXPECT_EQ(z.v[size_t(i)],
                    i % 3 ? (clamped ? first_of(type) + 27 : last_of(type)) : first_of(type) + (clamped ? 23 : 18))
              << i;
      }
    }
}
TEST(ConvertInt8, ScalesFarApart) {
  for (skua_dtype from : byte_types)
    for (skua_dtype to : byte_types)
      for (const char* isa : isas(to)) {
        SCOPED_TRACE(isa);
        Context context(isa);
        for (int zero : {first_of(to), first_of(to) + 99, last_of(to)})
          for (const float far : {300.0f, 1.1e4f, 3e7f, 1.3e9f, 1e30f})
            check_convert(context, {from, to, far, 1, first_of(from) + 90, zero}, shape({150}, from));
      }
}

// Steps of inputs that are far larger than the output's still cancel: no NaN, the same bits everywhere.
TEST(BinaryInt8, HugeScalesCancel) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    skua_binary_desc d = SKUA_BINARY_DESC_INIT;
    d.kind = SKUA_BINARY_ADD;
    d.type = SKUA_DTYPE_S8;
    d.x_q.scale = d.y_q.scale = 1e30f;
    d.output_q.scale = 1e-20f;
    Op op;
    SKUA_EXPECT_OK(skua_binary_create(context, &d, &op));
    Data x, y;
    x.t = y.t = shape({70}, SKUA_DTYPE_S8);
    for (int i = 0; i < 70; ++i) x.v.push_back(float(i - 35)), y.v.push_back(float(i % 3 ? 35 - i : i));
    const Data z = run(op, {x, y})[0];
    for (int i = 0; i < 70; ++i) {
      const float sum = x.v[size_t(i)] + y.v[size_t(i)];
      EXPECT_EQ(z.v[size_t(i)], sum > 0 ? 127 : sum < 0 ? -128 : 0) << i;
    }
  }
}

}  // namespace
