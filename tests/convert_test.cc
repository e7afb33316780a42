// Conversions between float types: every pattern of 16 bits, every rounding tie, tails, strides, NaN, denormals.
#include <skua/data.h>

#include <cmath>
#include <cstring>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

// The value of 16 bits, by arithmetic in double.
double value_of(skua_dtype type, uint16_t bits) {
  const int digits = type == SKUA_DTYPE_F16 ? 10 : 7, bias = type == SKUA_DTYPE_F16 ? 15 : 127;
  const int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == 2 * bias + 1) return fraction ? std::nan("") : sign * INFINITY;
  return sign * std::ldexp(exponent ? fraction + (1 << digits) : fraction, (exponent ? exponent : 1) - bias - digits);
}

// The nearest value of the type, ties to even, by arithmetic in double.
double nearest(skua_dtype type, double x) {
  if (type == SKUA_DTYPE_F32 || std::isnan(x) || std::isinf(x)) return x;
  const int digits = type == SKUA_DTYPE_F16 ? 10 : 7, least = type == SKUA_DTYPE_F16 ? -14 : -126,
            most = type == SKUA_DTYPE_F16 ? 15 : 127;
  int exponent;
  std::frexp(x, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 1, least) - digits), y = std::nearbyint(x / unit) * unit;
  return std::fabs(y) >= std::ldexp(1.0, most + 1) ? std::copysign(INFINITY, x) : y;
}

bool same(float a, float b) {
  return (a != a && b != b) || __builtin_bit_cast(uint32_t, a) == __builtin_bit_cast(uint32_t, b);
}

void create(skua_context* context, skua_dtype from, skua_dtype to, Op& op) {
  skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
  d.input_type = from;
  d.output_type = to;
  SKUA_EXPECT_OK(skua_convert_create(context, &d, &op));
}

// Memory to memory, bits as they are.
void convert(const skua_op* op, skua_dtype from, const void* x, void* y, size_t n) {
  const skua_tensor t = shape({n}, from);
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
  const skua_buffer in = skua_host_buffer(x), out = skua_host_buffer(y);
  SKUA_EXPECT_OK(skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr));
  skua_plan_destroy(plan);
}

// Every pattern of 16 bits to every type.
TEST(Convert, WidensEveryHalf) {
  std::vector<uint16_t> x(65536), y(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = uint16_t(i);
  std::vector<float> wide(65536);
  for (const skua_dtype from : half_types())
    for (const skua_dtype to : float_types()) {
      std::vector<float> wanted, value;
      if (to != SKUA_DTYPE_F32)
        for (const uint16_t bits : x) value.push_back(float(value_of(to, bits)));
      for (const uint16_t bits : x) wanted.push_back(float(nearest(to, value_of(from, bits))));
      for (const char* isa : isas(to)) {
        SCOPED_TRACE(testing::Message() << skua_dtype_name(from) << " to " << skua_dtype_name(to) << " " << isa);
        Context context(isa);
        Op op;
        create(context, from, to, op);
        convert(op, from, x.data(), to == SKUA_DTYPE_F32 ? static_cast<void*>(wide.data()) : y.data(), x.size());
        size_t wrong = 0;
        for (size_t i = 0; i < x.size(); ++i) {
          const float got = to == SKUA_DTYPE_F32 ? wide[i] : value[y[i]], want = wanted[i];
          if (!same(got, want) && ++wrong < 4) ADD_FAILURE() << std::hex << i << " is " << got << ", must be " << want;
          // The sign and the upper bits of a NaN's payload, which is quiet from then on. Vectors of AArch32 know one
          // NaN only.
          if (want != want && to == SKUA_DTYPE_F32 && std::strncmp(isa, "neon32", 6)) {
            const uint32_t bits = __builtin_bit_cast(uint32_t, wide[i]), digits = from == SKUA_DTYPE_F16 ? 10 : 7;
            if ((bits | 0x400000) !=
                    (uint32_t(i & 0x8000) << 16 | 0x7fc00000 | (uint32_t(i) << (23 - digits) & 0x7fffff)) &&
                ++wrong < 4)
              ADD_FAILURE() << std::hex << i << " becomes " << bits;
          }
        }
        EXPECT_EQ(wrong, 0u);
      }
    }
}

// Around every value of the type and every half way between two: itself and the floats next to it.
TEST(Convert, RoundsEveryTie) {
  for (const skua_dtype to : half_types()) {
    std::vector<float> x;
    for (unsigned i = 0; i < 0x8000; ++i) {
      const double a = value_of(to, uint16_t(i)), b = value_of(to, uint16_t(i + 1));
      if (std::isnan(a) || std::isinf(a)) continue;
      const double after = std::isinf(b) ? 2 * a - value_of(to, uint16_t(i - 1)) : b;  // what would follow the largest
      for (const float v : {float(a), float((a + after) / 2)})
        for (const float f : {std::nextafter(v, 0.0f), v, std::nextafter(v, INFINITY)}) x.push_back(i % 2 ? f : -f);
    }
    for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x7f800001u, 0xff800001u, 0x7fbfffffu, 0x7fc00000u,
                                0xffffffffu, 0x7f7fffffu, 0x00000001u, 0x80000001u, 0x007fffffu})
      x.push_back(__builtin_bit_cast(float, bits));
    std::vector<float> wanted, value;
    for (const float v : x) wanted.push_back(float(nearest(to, double(v))));
    for (unsigned i = 0; i < 65536; ++i) value.push_back(float(value_of(to, uint16_t(i))));
    std::vector<uint16_t> y(x.size());
    for (const char* isa : isas(to)) {
      SCOPED_TRACE(testing::Message() << skua_dtype_name(to) << " " << isa);
      Context context(isa);
      Op op;
      create(context, SKUA_DTYPE_F32, to, op);
      convert(op, SKUA_DTYPE_F32, x.data(), y.data(), x.size());
      size_t wrong = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const float got = value[y[i]], want = wanted[i];
        if (!same(got, want) && ++wrong < 4) ADD_FAILURE() << x[i] << " gives " << got << ", must be " << want;
      }
      EXPECT_EQ(wrong, 0u);
    }
  }
}

TEST(Convert, EveryTailAnyStrides) {
  Rng rng(1);
  for (const skua_dtype from : float_types())
    for (const skua_dtype to : float_types())
      for (const char* isa : isas(to)) {
        SCOPED_TRACE(testing::Message() << skua_dtype_name(from) << " to " << skua_dtype_name(to) << " " << isa);
        Context context(isa);
        Op op;
        create(context, from, to, op);
        const auto check = [&](skua_tensor x_shape, skua_tensor y_shape) {
          x_shape.type = from;
          y_shape.type = to;
          const Data x = make(x_shape, rng, -3, 3);
          std::vector<double> want = dense_double(x);
          for (double& v : want) v = nearest(to, v);
          expect_close(run(op, {x}, {y_shape})[0], want, 0.0);
        };
        for (size_t n : {1, 3, 15, 16, 33, 64, 83}) check(shape({n}), shape({n}));
        check(with_holes(shape({3, 5, 40}), {0, 1, 2}), shape({3, 5, 40}));
        check(shape({6, 600}), with_holes(shape({6, 600}), {0, 5}));
        skua_tensor transposed = shape({35, 700});
        transposed.stride[0] = 1;
        transposed.stride[1] = 37;
        check(transposed, shape({35, 700}));
        check(shape({35, 700}), transposed);
        check(shape({0, 3}), shape({0, 3}));
        if (!small()) check(shape({100003}), shape({100003}));
      }
}

}  // namespace
