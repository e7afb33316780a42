// The vector types and functions of simd/ on every instruction set that was built and that this CPU has, against plain
// C++.
#include "tests/simd_unit.h"
#include "tests/support/fixed_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dispatch/element.h"
#include "tests/support/support.h"

#define SKUA_COMPILED_ISA(isa) extern "C" const skua_test::SimdUnit* skua_simd_unit_##isa();
#include "skua_compiled_isas.inc"
#undef SKUA_COMPILED_ISA

namespace {

using skua_test::SimdUnit;

// A unit is asked for its table only where the CPU can run it: the function itself is compiled for that instruction
// set.
struct Isa {
  const char* name;
  const SimdUnit* (*unit)();
};
const Isa isas[] = {
#define SKUA_COMPILED_ISA(isa) {#isa, skua_simd_unit_##isa},
#include "skua_compiled_isas.inc"
#undef SKUA_COMPILED_ISA
};

constexpr float inf = INFINITY, nan_ = NAN;
float from_bits(uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
uint32_t bits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}
bool same(float a, float b) { return bits(a) == bits(b) || (std::isnan(a) && std::isnan(b)); }
bool same_value(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<float> special_values() {
  std::vector<float> v = {0.0f,       1.0f,        0.5f,          1.5f,          2.5f,
                          3.5f,       0.49999997f, 0.50000006f,   1e-10f,        3.0f,
                          1e10f,      4194303.5f,  8388607.5f,    8388607.0f,    8388608.0f,
                          8388609.0f, 16777216.0f, 2147483520.0f, 2147483648.0f, 4294967296.0f,
                          FLT_MAX,    FLT_MIN,     1e-40f,        from_bits(1),  from_bits(0x007fffff),
                          inf,        nan_};
  for (size_t i = v.size(); i-- > 0;) v.push_back(-v[i]);
  return v;
}

double ulp_of(double value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::min(std::max(exponent, -125), 128) - 24);
}

class Simd : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!skua_test::usable(GetParam().name)) GTEST_SKIP() << "no " << GetParam().name << " here, or not allowed";
    u = GetParam().unit();
    flushes = std::string(u->isa).rfind("neon32", 0) == 0;
  }
  // What arithmetic makes of x where the instruction set has no denormals.
  float flushed(float x) const { return flushes && std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }

  const skua_test::MapOp* function(const std::string& name) const {
    const skua_test::MapOp* op = u->math;
    while (op->name && op->name != name) ++op;
    return op;
  }
  // Results of a function for any number of arguments.
  std::vector<float> apply(const std::string& name, std::vector<float> x, std::vector<float> y = {}) const {
    const size_t n = x.size(), padded = (n + u->lanes - 1) / u->lanes * u->lanes;
    x.resize(padded, 1.0f), y.resize(padded, 1.0f);
    std::vector<float> out(padded);
    function(name)->run(x.data(), y.data(), y.data(), out.data(), padded);
    out.resize(n);
    return out;
  }

  // Inputs of every pair of special values and of random bit patterns, with c of its own; padded to whole vectors.
  void fill() {
    std::mt19937 random(1);
    const auto s = special_values();
    for (float x : s)
      for (float y : s) push(x, y, s[random() % s.size()]);
    for (int i = 0; i < 20000; ++i) push(from_bits(random()), from_bits(random()), from_bits(random()));
    for (int i = 0; i < 20000; ++i) {
      const auto number = [&] {
        return (static_cast<float>(random() % 20001) - 10000.0f) / static_cast<float>(1 << random() % 10);
      };
      push(number(), number(), number());
    }
    while (a.size() % u->lanes) push(1.0f, 2.0f, 3.0f);
  }
  void push(float x, float y, float z) { a.push_back(x), b.push_back(y), c.push_back(z); }

  const SimdUnit* u = nullptr;
  bool flushes = false;
  std::vector<float> a, b, c;
};

INSTANTIATE_TEST_SUITE_P(All, Simd, testing::ValuesIn(isas),
                         [](const auto& info) { return std::string(info.param.name); });

using Reference = std::function<float(float, float, float)>;

// Keeps the compiler of the test from fusing or folding: every step of the reference is one rounded operation.
float once(float x) {
  volatile float v = x;
  return v;
}

TEST_P(Simd, Operations) {
  fill();
  const bool fused = u->fused;
  const auto low = [](float x, float y) { return std::isnan(x) || std::isnan(y) ? nan_ : x < y ? x : y; };
  const auto high = [](float x, float y) { return std::isnan(x) || std::isnan(y) ? nan_ : x > y ? x : y; };
  const std::map<std::string, Reference> arithmetic = {
      {"add", [](float x, float y, float) { return once(x + y); }},
      {"sub", [](float x, float y, float) { return once(x - y); }},
      {"mul", [](float x, float y, float) { return once(x * y); }},
      {"fma", [=](float x, float y, float z) { return fused ? std::fma(x, y, z) : once(once(x * y) + z); }},
      {"fnma", [=](float x, float y, float z) { return fused ? std::fma(-x, y, z) : once(z - once(x * y)); }},
      {"floor", [](float x, float, float) { return std::floor(x); }},
      {"ceil", [](float x, float, float) { return std::ceil(x); }},
      {"trunc", [](float x, float, float) { return std::trunc(x); }},
      {"round", [](float x, float, float) { return std::rint(x); }},
      {"lt", [](float x, float y, float) { return x < y ? 1.0f : 0.0f; }},
      {"le", [](float x, float y, float) { return x <= y ? 1.0f : 0.0f; }},
      {"gt", [](float x, float y, float) { return x > y ? 1.0f : 0.0f; }},
      {"ge", [](float x, float y, float) { return x >= y ? 1.0f : 0.0f; }},
      {"eq", [](float x, float y, float) { return x == y ? 1.0f : 0.0f; }},
      {"ne", [](float x, float y, float) { return x != y ? 1.0f : 0.0f; }},
      {"is_nan", [](float x, float, float) { return std::isnan(x) ? 1.0f : 0.0f; }},
      {"and", [](float x, float y, float z) { return x < y && y < z ? 1.0f : 0.0f; }},
      {"or", [](float x, float y, float z) { return x < y || y < z ? 1.0f : 0.0f; }},
      {"not", [](float x, float y, float) { return x < y ? 0.0f : 1.0f; }},
  };
  const std::map<std::string, Reference> exact = {
      {"div", [](float x, float y, float) { return once(x / y); }},
      {"sqrt", [](float x, float, float) { return std::sqrt(x); }},
      {"neg", [](float x, float, float) { return from_bits(bits(x) ^ 0x80000000u); }},
      {"abs", [](float x, float, float) { return from_bits(bits(x) & 0x7fffffffu); }},
      {"copysign",
       [](float x, float y, float) { return from_bits((bits(x) & 0x7fffffffu) | (bits(y) & 0x80000000u)); }},
      {"select", [this](float x, float y, float z) { return flushed(x) < flushed(y) ? x : z; }},
      {"keep_if", [this](float x, float y, float z) { return flushed(x) < flushed(y) ? z : 0.0f; }},
      {"to_f32", [](float x, float, float) { return static_cast<float>(static_cast<int32_t>(bits(x))); }},
  };
  // Of zeros of both signs either may be given, and which NaN comes back is open.
  const std::map<std::string, Reference> extremes = {
      {"min", [=](float x, float y, float) { return low(x, y); }},
      {"max", [=](float x, float y, float) { return high(x, y); }},
      {"clamp_low", [=](float x, float y, float) { return std::isnan(y) ? x : high(x, y); }},
      {"clamp_high", [=](float x, float y, float) { return std::isnan(y) ? x : low(x, y); }},
      {"min_fast", [=](float x, float y, float) { return low(x, y); }},
      {"max_fast", [=](float x, float y, float) { return high(x, y); }},
  };
  const std::map<std::string, std::function<long(float)>> to_int = {
      {"to_i32", [](float x) { return std::lrint(std::trunc(x)); }},
      {"round_i32", [](float x) { return std::lrint(x); }},
  };
  std::vector<float> out(a.size());
  for (const auto* op = u->ops; op->name; ++op) {
    const std::string name = op->name;
    op->run(a.data(), b.data(), c.data(), out.data(), a.size());
    int wrong = 0;
    const auto fail = [&](size_t i, float want) {
      if (++wrong < 5)
        ADD_FAILURE() << name << "(" << a[i] << ", " << b[i] << ", " << c[i] << ") gave " << out[i] << ", not " << want;
    };
    for (size_t i = 0; i < a.size(); ++i) {
      if (auto r = arithmetic.find(name); r != arithmetic.end()) {
        const float want = r->second(flushed(a[i]), flushed(b[i]), flushed(c[i]));
        // Where denormals are flushed it is open whether the smallest normal number is reached by rounding.
        const bool tiny = flushes && std::fabs(want) <= FLT_MIN && (out[i] == 0 || std::fabs(out[i]) == FLT_MIN) &&
                          std::signbit(want) == std::signbit(out[i]);
        if (!tiny && !same(out[i], want)) fail(i, want);
      } else if (auto e = exact.find(name); e != exact.end()) {
        const float want = e->second(a[i], b[i], c[i]);
        if (!same(out[i], want)) fail(i, want);
      } else if (auto m = extremes.find(name); m != extremes.end()) {
        if ((name == "clamp_low" || name == "clamp_high") && std::isnan(b[i])) continue;
        if ((name == "min_fast" || name == "max_fast") && (std::isnan(a[i]) || std::isnan(b[i]))) continue;
        const float want = m->second(flushed(a[i]), flushed(b[i]), 0.0f);
        if (!same_value(flushed(out[i]), want)) fail(i, want);
      } else if (auto t = to_int.find(name); t != to_int.end()) {
        if (!(a[i] >= -2147483648.0f && a[i] < 2147483648.0f)) continue;
        const long want = t->second(a[i]);
        if (static_cast<int32_t>(bits(out[i])) != want) fail(i, from_bits(static_cast<uint32_t>(want)));
      } else if (name == "quotient") {
        // To 2 ULP where the divisor has a normal reciprocal and the quotient is normal too.
        const float want = once(a[i] / b[i]), size = std::fabs(b[i]);
        if (!(size > 0x1p-126f && size < 0x1p126f) || std::fabs(flushed(a[i])) != std::fabs(a[i])) continue;
        const bool near =
            std::fabs(want) < FLT_MIN || std::fabs(want) > 0x1p127f ||
            std::fabs(out[i] - want) <= 2 * ulp_of(want) + (std::fabs(a[i]) < 0x1p-100f ? 0x1p-149 / double(size) : 0);
        if (std::isfinite(a[i]) ? !near : std::isnan(a[i]) && !same(out[i], want)) fail(i, want);
      } else {
        FAIL() << "no reference for " << name;
      }
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST_P(Simd, Integers) {
  std::mt19937 random(2);
  std::vector<int32_t> x, y;
  const int32_t edge[] = {0, 1, -1, INT32_MAX, INT32_MIN, 31, -32};
  for (int32_t p : edge)
    for (int32_t q : edge) x.push_back(p), y.push_back(q);
  while (x.size() < 4096) x.push_back(static_cast<int32_t>(random())), y.push_back(static_cast<int32_t>(random()));
  const std::map<std::string, std::function<int32_t(int32_t, int32_t)>> want = {
      {"add",
       [](int32_t p, int32_t q) { return static_cast<int32_t>(static_cast<uint32_t>(p) + static_cast<uint32_t>(q)); }},
      {"sub",
       [](int32_t p, int32_t q) { return static_cast<int32_t>(static_cast<uint32_t>(p) - static_cast<uint32_t>(q)); }},
      {"and", [](int32_t p, int32_t q) { return p & q; }},
      {"or", [](int32_t p, int32_t q) { return p | q; }},
      {"xor", [](int32_t p, int32_t q) { return p ^ q; }},
      {"shl<5>", [](int32_t p, int32_t) { return static_cast<int32_t>(static_cast<uint32_t>(p) << 5); }},
      {"shr<5>", [](int32_t p, int32_t) { return p >> 5; }},
      {"shr_logical<5>", [](int32_t p, int32_t) { return static_cast<int32_t>(static_cast<uint32_t>(p) >> 5); }},
      {"eq", [](int32_t p, int32_t q) { return p == q ? 1 : 0; }},
      {"gt", [](int32_t p, int32_t q) { return p > q ? 1 : 0; }},
  };
  std::vector<int32_t> out(x.size());
  for (const auto* op = u->int_ops; op->name; ++op) {
    op->run(x.data(), y.data(), out.data(), x.size());
    ASSERT_TRUE(want.count(op->name)) << op->name;
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(out[i], want.at(op->name)(x[i], y[i])) << op->name << " of " << x[i] << ", " << y[i];
  }
}

// Elements of 16 bits by their definition: a sign, `exponent` bits, the rest digits.
struct Format {
  int exponent;
  int digits() const { return 15 - exponent; }
  double value(uint16_t h) const {
    const int e = (h & 0x7fff) >> digits(), d = h & ((1 << digits()) - 1), bias = (1 << (exponent - 1)) - 1;
    const double sign = h & 0x8000 ? -1 : 1;
    if (e == (1 << exponent) - 1) return d ? std::nan("") : sign * HUGE_VAL;
    return sign * std::ldexp(double(e ? d + (1 << digits()) : d), (e ? e : 1) - bias - digits());
  }
  // The nearest, ties to even, overflow by what the next power of two would be.
  uint16_t nearest(float x) const {
    const uint16_t sign = std::signbit(x) ? 0x8000 : 0, infinite = uint16_t(((1 << exponent) - 1) << digits());
    const double a = std::fabs(double(x));
    // value(low) <= a <= value(high), the largest finite one's successor standing for infinity
    uint16_t low = 0, high = infinite;
    const auto at = [&](uint16_t h) {
      return h == infinite ? 2 * value(uint16_t(infinite - 1)) - value(uint16_t(infinite - 2)) : value(h);
    };
    if (a >= at(infinite)) return sign | infinite;
    while (high - low > 1) {
      const uint16_t middle = uint16_t((low + high) / 2);
      (at(middle) <= a ? low : high) = middle;
    }
    const double below = a - at(low), above = at(high) - a;
    return uint16_t(sign | (below < above || (below == above && !(low & 1)) ? low : high));
  }
};

TEST_P(Simd, HalvesWidenExactly) {
  std::vector<uint16_t> all(65536 + 5);  // and a tail
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint16_t(i);
  std::vector<float> out(all.size());
  for (const bool brain : {false, true}) {
    const Format format = {brain ? 8 : 5};
    for (const bool broadcast : {false, true}) {
      (broadcast ? (brain ? u->broadcast_bf16 : u->broadcast_f16) : (brain ? u->load_bf16 : u->load_f16))(
          all.data(), out.data(), all.size());
      int wrong = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const float want = float(format.value(all[i]));
        if (broadcast && flushes && std::fabs(want) < FLT_MIN) continue;  // its maximum is arithmetic
        if (!same(out[i], want) && ++wrong < 5)
          ADD_FAILURE() << (brain ? "bf16 " : "f16 ") << std::hex << all[i] << " gave " << out[i] << ", not " << want;
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST_P(Simd, HalvesRoundToNearestEven) {
  std::mt19937 random(3);
  for (const bool brain : {false, true}) {
    const Format format = {brain ? 8 : 5};
    std::vector<float> in = special_values();
    // Every value, the middle to its neighbour, and the floats around the middle.
    for (uint32_t h = 0; h < 0x7fff; ++h) {
      const float x = float(format.value(uint16_t(h))), next = float(format.value(uint16_t(h + 1)));
      if (!std::isfinite(x)) continue;
      const float middle =
          std::isfinite(next) ? x + (next - x) / 2 : x + (x - float(format.value(uint16_t(h - 1)))) / 2;
      for (float y : {x, middle, std::nextafter(middle, inf), std::nextafter(middle, -inf)})
        in.push_back(h & 1 ? -y : y);
    }
    for (int i = 0; i < 20000; ++i) in.push_back(from_bits(uint32_t(random())));
    if (in.size() % 16 == 0) in.push_back(1.0f);
    std::vector<uint16_t> out(in.size());
    (brain ? u->store_bf16 : u->store_f16)(in.data(), out.data(), in.size());
    // The instruction of AVX512-BF16 takes denormals for zero, as the products of that set do, which alone use it.
    const bool no_denormals = brain && std::string(u->isa) == "avx512bf16";
    int wrong = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const float x = no_denormals && std::fabs(in[i]) < FLT_MIN ? std::copysign(0.0f, in[i]) : in[i];
      const bool good = std::isnan(x) ? std::isnan(format.value(out[i])) : out[i] == format.nearest(x);
      if (!good && ++wrong < 5)
        ADD_FAILURE() << (brain ? "bf16 of " : "f16 of ") << std::hexfloat << in[i] << " gave " << std::hex << out[i]
                      << ", not " << format.nearest(x);
    }
    EXPECT_EQ(wrong, 0);
  }
}

const SimdUnit::Bytes& bytes_of(const SimdUnit* u, bool is_signed) { return is_signed ? u->s8 : u->u8; }

TEST_P(Simd, BytesWidenExactly) {
  std::vector<uint8_t> all(256 + 3);
  for (size_t i = 0; i < all.size(); ++i) all[i] = uint8_t(i);
  for (const bool is_signed : {true, false}) {
    const SimdUnit::Bytes& of = bytes_of(u, is_signed);
    std::vector<float> wide(all.size()), one(all.size());
    std::vector<int32_t> integers(all.size());
    of.load(all.data(), wide.data(), all.size());
    of.broadcast(all.data(), one.data(), all.size());
    of.load_int(all.data(), integers.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const int want = is_signed ? int8_t(all[i]) : all[i];
      EXPECT_EQ(wide[i], float(want));
      EXPECT_EQ(one[i], float(want));
      EXPECT_EQ(integers[i], want);
    }
  }
}

TEST_P(Simd, BytesRoundToNearestEvenAndSaturate) {
  std::mt19937 random(5);
  std::vector<float> in = special_values();
  for (int i = -600; i <= 600; ++i)
    for (const float x : {float(i) / 2, std::nextafter(float(i) / 2, inf), std::nextafter(float(i) / 2, -inf)})
      in.push_back(x);
  for (int i = 0; i < 20000; ++i) in.push_back(from_bits(uint32_t(random())));
  while (in.size() % 16 != 5) in.push_back(1.0f);
  for (const bool is_signed : {true, false}) {
    std::vector<uint8_t> out(in.size());
    bytes_of(u, is_signed).store(in.data(), out.data(), in.size());
    const float low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    for (size_t i = 0; i < in.size(); ++i) {
      const int want = std::isnan(in[i]) ? 0 : int(std::rint(std::min(std::max(in[i], low), high)));
      ASSERT_EQ(is_signed ? int8_t(out[i]) : out[i], want) << std::hexfloat << in[i];
      int8_t s;
      uint8_t b;
      skua::narrow(in[i], s), skua::narrow(in[i], b);
      ASSERT_EQ(is_signed ? s : b, want) << std::hexfloat << in[i];
    }
  }
}

// By the definition in docs/quantization.md, in double: the product of a sum that was rounded to float and a scale is
// exact there.
int requantized(int32_t sum, float scale, const skua::Requantize& r) {
  const float y = float(double(float(sum)) * double(scale));
  return int(std::nearbyint(std::min(std::max(y, r.low), r.high))) + r.zero_point;
}

TEST_P(Simd, SumsAreRequantisedToTheBit) {
  std::mt19937 random(6);
  std::vector<int32_t> sums = {0, 1, -1, INT32_MAX, INT32_MIN, 16777217, -16777217, 33554433, 127, -128};
  std::vector<float> scales;
  for (int i = 0; i < 6000; ++i) sums.push_back(int32_t(random()) >> random() % 32);
  for (size_t i = 0; i < sums.size(); ++i) {
    // Every other one lands half way between two integers, or next to it.
    const float half = float(int(random() % 600)) - 300 + 0.5f, tie = sums[i] ? std::fabs(half / float(sums[i])) : 1.0f;
    scales.push_back(i % 7 == 0 ? from_bits(random() % 0x7f800000u)
                     : i % 2    ? tie
                                : std::ldexp(1.0f + float(random() % 1000) / 1000, -int(random() % 30)));
    if (!(scales[i] > 0)) scales[i] = FLT_MIN;
  }
  for (int i = -300; i < 300; ++i) sums.push_back(2 * i + 1), scales.push_back(0.5f);  // ties
  while (sums.size() % 64 != 21) sums.push_back(3), scales.push_back(0.5f);
  for (const bool is_signed : {true, false})
    for (const int zero_point : is_signed ? std::vector<int>{0, -128, 127, -7} : std::vector<int>{0, 255, 128}) {
      const int first = is_signed ? -128 : 0, last = is_signed ? 127 : 255;
      for (const bool clamps : {false, true}) {
        const skua::Requantize r = {float((clamps ? first + 20 : first) - zero_point),
                                    float((clamps ? first + 100 : last) - zero_point), zero_point};
        std::vector<uint8_t> out(sums.size());
        bytes_of(u, is_signed).requantize(sums.data(), scales.data(), r, out.data(), sums.size());
        for (size_t i = 0; i < sums.size(); ++i) {
          const int want = requantized(sums[i], scales[i], r);
          ASSERT_EQ(is_signed ? int8_t(out[i]) : out[i], want) << sums[i] << " * " << std::hexfloat << scales[i];
          ASSERT_EQ(skua::requantize(sums[i], scales[i], r), want) << sums[i] << " * " << std::hexfloat << scales[i];
        }
      }
    }
}

// Both forms of every lane, beside lanes of small scales and beside lanes of large ones.
TEST_P(Simd, SumsInFixedPointAreExact) {
  std::mt19937 random(9);
  const int32_t ends[] = {INT32_MIN, INT32_MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, INT32_MAX - 1, INT32_MAX},
                multipliers[] = {0,        1, 1 << 29, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, 3 << 29, INT32_MAX - 1,
                                 INT32_MAX};
  for (const int most : {-2, -1, 30}) {  // greatest shift
    std::vector<int32_t> sums, by, shifts;
    for (const int32_t s : ends)
      for (const int32_t m : multipliers)
        for (int e = -31; e <= most; ++e) sums.push_back(s), by.push_back(m), shifts.push_back(e);
    const size_t plain = sums.size();
    for (int i = 0; i < 20000; ++i) {
      const int e = -31 + int(random() % unsigned(most + 32));
      int32_t s = int32_t(random()) >> random() % 32,
              m = random() % 8 ? int32_t(random() >> 2 | 1u << 30) : int32_t(random() >> 1);
      // Half way between two results, by either rounding, or beside it.
      if (i % 3 == 0 && e < 0)
        m = 1 << 30, s = int32_t(uint32_t(2 * int(random() % 600) - 599) << std::min(-e, 20)) + int(random() % 5) - 2;
      sums.push_back(s), by.push_back(m), shifts.push_back(e);
    }
    // lanes behind the columns: of multiplier 0
    for (int l = 0; l < u->lanes; ++l)
      sums.push_back(l - 3), by.push_back(l % 2 ? 1 << 30 : 0), shifts.push_back(l % 2 ? -2 : 30);
    while (sums.size() % size_t(u->lanes)) sums.push_back(5), by.push_back(1 << 30), shifts.push_back(-3);
    ASSERT_GT(plain, 0u);
    for (const bool single : {false, true}) {
      std::vector<int32_t> got = sums;
      u->fix(got.data(), by.data(), shifts.data(), single, sums.size());
      for (size_t i = 0; i < sums.size(); ++i) {
        const int32_t want =
            skua_test::fixed_point(single ? SKUA_ROUNDING_SINGLE : SKUA_ROUNDING_DOUBLE, sums[i], by[i], shifts[i]);
        const auto within = [](int32_t y) { return std::min(std::max(y, -8192), 8192); };
        ASSERT_EQ(within(got[i]), within(want))
            << sums[i] << " * " << by[i] << " * 2^" << shifts[i] << " single " << single;
      }
    }
  }
}

TEST_P(Simd, Tails) {
  const size_t lanes = static_cast<size_t>(u->lanes);
  std::vector<float> in(lanes), out(lanes);
  std::vector<int32_t> in_int(lanes), out_int(lanes);
  for (size_t i = 0; i < lanes; ++i) in[i] = static_cast<float>(i + 1), in_int[i] = static_cast<int32_t>(i + 1);
  for (size_t n = 0; n <= lanes; ++n) {
    for (const bool at_end : {false, true}) {
      skua_test::Guarded memory(n, at_end);
      float* p = memory.data();
      int32_t* q = reinterpret_cast<int32_t*>(p);
      std::copy_n(in.data(), n, p);
      u->copy_n(p, out.data(), n);
      for (size_t i = 0; i < lanes; ++i) EXPECT_EQ(out[i], i < n ? in[i] : 0.0f) << n;
      std::copy_n(in_int.data(), n, q);
      u->copy_int_n(q, out_int.data(), n);
      for (size_t i = 0; i < lanes; ++i) EXPECT_EQ(out_int[i], i < n ? in_int[i] : 0) << n;
      u->store_n(in.data(), p, n);
      EXPECT_TRUE(memory.untouched_outside()) << n;
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(p[i], in[i]) << n;
      u->store_int_n(in_int.data(), q, n);
      EXPECT_TRUE(memory.untouched_outside()) << n;
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(q[i], in_int[i]) << n;
      auto halves = skua_test::Guarded::bytes(2 * n, 2, at_end, at_end ? 0 : 2);
      auto* h = static_cast<uint16_t*>(halves.memory());
      for (const bool brain : {false, true}) {
        (brain ? u->store_bf16 : u->store_f16)(in.data(), h, n);
        EXPECT_TRUE(halves.untouched_outside()) << n;
        (brain ? u->load_bf16 : u->load_f16)(h, out.data(), n);
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], in[i]) << n;
      }
      auto bytes = skua_test::Guarded::bytes(n, 1, at_end, at_end ? 0 : 1);
      auto* b = static_cast<uint8_t*>(bytes.memory());
      for (const bool is_signed : {true, false}) {
        bytes_of(u, is_signed).store(in.data(), b, n);
        EXPECT_TRUE(bytes.untouched_outside()) << n;
        bytes_of(u, is_signed).load(b, out.data(), n);
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(out[i], in[i]) << n;
        std::fill_n(b, n, uint8_t(0));
        bytes_of(u, is_signed).store_int(in_int.data(), b, n);
        EXPECT_TRUE(bytes.untouched_outside()) << n;
        bytes_of(u, is_signed).load_int(b, out_int.data(), n);
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(out_int[i], in_int[i]) << n;
      }
    }
  }
}

TEST_P(Simd, AcrossLanes) {
  const int lanes = u->lanes;
  std::mt19937 random(3);
  std::vector<float> x(lanes);
  for (int turn = 0; turn < 1000; ++turn) {
    for (float& v : x) v = static_cast<float>(random() % 100000) / 7.0f - 5000.0f;
    std::vector<float> s = x;
    for (size_t half = s.size() / 2; half; half /= 2)
      for (size_t i = 0; i < half; ++i) s[i] = once(s[i] + s[i + half]);
    EXPECT_EQ(u->sum(x.data()), s[0]);
    float low = x[0], high = x[0];
    for (float v : x) low = std::fmin(low, v), high = std::fmax(high, v);
    EXPECT_EQ(u->max_of(x.data()), high);
    EXPECT_EQ(u->min_of(x.data()), low);
    EXPECT_EQ(u->any_positive(x.data()), high > 0);
    EXPECT_EQ(u->all_positive(x.data()), low > 0);
  }
  for (int i = 0; i < lanes; ++i) {
    std::vector<float> one(lanes, -1.0f);
    one[i] = 2.0f;
    EXPECT_TRUE(u->any_positive(one.data()));
    EXPECT_EQ(u->all_positive(one.data()), lanes == 1);
    one[i] = -inf;
    EXPECT_FALSE(u->any_positive(one.data()));
    EXPECT_EQ(u->min_of(one.data()), -inf);
    std::vector<float> most(lanes, 1.0f);
    EXPECT_TRUE(u->all_positive(most.data()));
    most[i] = nan_;
    EXPECT_FALSE(u->all_positive(most.data()));
    EXPECT_TRUE(std::isnan(u->max_of(most.data())));
    EXPECT_TRUE(std::isnan(u->min_of(most.data())));
    most[i] = inf;
    EXPECT_EQ(u->max_of(most.data()), inf);
  }
  std::vector<float> square(lanes * lanes);
  for (int i = 0; i < lanes * lanes; ++i) square[i] = static_cast<float>(i);
  u->transpose(square.data());
  for (int i = 0; i < lanes; ++i)
    for (int j = 0; j < lanes; ++j) EXPECT_EQ(square[i * lanes + j], static_cast<float>(j * lanes + i));
  // Numbers whose sums differ by their order: by halves, as sum() has it.
  skua_test::Rng rng(lanes);
  for (float& x : square) x = rng.uniform(-1, 1) * (rng.next() % 2 ? 1 : 1e6f);
  std::vector<float> sums(lanes);
  u->sum_each(square.data(), sums.data());
  for (int i = 0; i < lanes; ++i) EXPECT_EQ(sums[i], u->sum(square.data() + i * lanes));
  if (u->by_lane) {
    std::vector<float> acc(lanes), p(lanes), q(lanes), out(lanes * lanes);
    for (int i = 0; i < lanes; ++i)
      acc[i] = static_cast<float>(100 * i), p[i] = static_cast<float>(i + 1), q[i] = static_cast<float>(10 - i);
    u->fma_lane(acc.data(), p.data(), q.data(), out.data());
    for (int i = 0; i < lanes; ++i)
      for (int j = 0; j < lanes; ++j) EXPECT_EQ(out[i * lanes + j], acc[j] + p[j] * q[i]);
  }
}

// What simd/math.h states of each function: |y - f(x)| <= ulp * ULP(f(x)) + absolute. AArch32 divides by way of a
// reciprocal, which may cost a fraction of an ULP, and flushes the factors of small products.
struct Stated {
  const char* name;
  double (*f)(double);
  double ulp, absolute, ulp_arm32, absolute_arm32;
};
double sigmoid(double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double gelu_tanh(double x) {
  return x * sigmoid(2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x));
}
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }
double mish(double x) {
  const double e = std::exp(-std::fabs(x));
  return x * (x >= 0 ? (1 + 2 * e) / (1 + 2 * e + 2 * e * e) : (e * e + 2 * e) / (e * e + 2 * e + 2));
}
const Stated stated[] = {
    {"exp", std::exp, 1.25, 0, 1.25, 0},
    {"elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, 1.75, 0, 1.75, 0},
    {"log", std::log, 1.25, 0, 1.25, 0},
    {"log1p", std::log1p, 1.75, 0, 1.75, 0},
    {"tanh", std::tanh, 5, 0, 5, 0},
    {"sigmoid", sigmoid, 2.75, 0, 2.75, 0},
    {"erf", std::erf, 3, 0, 3, 0},
    {"sin", std::sin, 2, 0, 2, 0},
    {"cos", std::cos, 2, 0, 2, 0},
    {"softplus", softplus, 2.75, 0, 2.75, 0},
    {"silu", [](double x) { return x * sigmoid(x); }, 3.25, 0x1p-142, 3.5, 0x1p-119},
    {"mish", mish, 5.25, 0x1p-142, 5.25, 0x1p-119},
    {"gelu_erf", [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }, 3, 0x1p-24, 3, 0x1p-24},
    {"gelu_tanh", gelu_tanh, 4, 0x1p-26, 4, 0x1p-26},
};

// Every exponent, both signs, mantissas at a stride that shares no factor with a power of two.
TEST_P(Simd, FunctionsKeepTheirBounds) {
  std::vector<float> x;
  for (uint32_t b = 0; b < 0x7f800000u; b += skua_test::small() ? 200003 : 10007)
    x.push_back(from_bits(b)), x.push_back(from_bits(b | 0x80000000u));
  // Denser where activations live and where sums change from one form to another.
  for (float v = -20; v < 20; v += skua_test::small() ? 0.00613f : 0.000317f) x.push_back(v);
  int functions = 0;
  for (const auto* op = u->math; op->name; ++op) functions += op->name != std::string("pow");
  EXPECT_EQ(functions, std::end(stated) - std::begin(stated));
  for (const Stated& s : stated) {
    ASSERT_TRUE(function(s.name)->name) << s.name;
    const auto y = apply(s.name, x);
    int wrong = 0;
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = s.f(flushed(x[i])), ulp = ulp_of(want);
      const double error = std::fabs(y[i] - want);
      const double bound = flushes ? s.ulp_arm32 * ulp + s.absolute_arm32 + FLT_MIN : s.ulp * ulp + s.absolute;
      const bool overflows = std::fabs(want) > FLT_MAX;
      const bool good = std::isnan(want) ? std::isnan(y[i])
                        : overflows      ? std::fabs(y[i]) >= FLT_MAX && (y[i] > 0) == (want > 0)
                                         : error <= bound;
      if (!overflows && !std::isnan(want)) worst = std::max(worst, error / ulp);
      if (!good && ++wrong < 5)
        ADD_FAILURE() << s.name << "(" << x[i] << ") gave " << y[i] << ", not " << want << ": " << error / ulp
                      << " ULP";
    }
    EXPECT_EQ(wrong, 0) << s.name << " of " << x.size();
    RecordProperty(s.name, std::to_string(worst));
  }
}

// The floats next to multiples of pi/2, where all but the last digits of x cancel, and many between, where every
// rounding counts.
TEST_P(Simd, SineAndCosineReduceTheirArguments) {
  std::vector<float> x;
  for (int k = 1; k < 80000; k += skua_test::small() ? 7 : 1) x.push_back(static_cast<float>(k * 1.57079632679489662));
  for (float v = 0.7f; v < 6500; v *= skua_test::small() ? 1.0003f : 1.00001f) x.push_back(v);
  const auto sine = apply("sin", x), cosine = apply("cos", x);
  for (size_t i = 0; i < x.size(); ++i) {
    const double s = std::sin(static_cast<double>(x[i])), c = std::cos(static_cast<double>(x[i]));
    ASSERT_LE(std::fabs(sine[i] - s), 2 * ulp_of(s)) << "sin(" << x[i] << ")";
    ASSERT_LE(std::fabs(cosine[i] - c), 2 * ulp_of(c)) << "cos(" << x[i] << ")";
  }
}

TEST_P(Simd, FunctionsAtTheEdges) {
  const auto expect = [&](const char* name, float x, float want) {
    const float y = apply(name, {x})[0];
    EXPECT_TRUE(same(y, want)) << name << "(" << x << ") gave " << y << ", not " << want;
  };
  for (const Stated& s : stated) expect(s.name, nan_, nan_), expect(s.name, -nan_, nan_);
  for (const char* name : {"elu", "log1p", "tanh", "erf", "sin", "silu"})
    expect(name, 0.0f, 0.0f), expect(name, -0.0f, -0.0f);
  expect("exp", inf, inf), expect("exp", -inf, 0.0f), expect("exp", 0.0f, 1.0f), expect("exp", 88.8f, inf),
      expect("exp", -104.5f, 0.0f);
  expect("elu", inf, inf), expect("elu", -inf, -1.0f);
  expect("log", 0.0f, -inf), expect("log", -0.0f, -inf), expect("log", inf, inf), expect("log", 1.0f, 0.0f);
  expect("log", -1.0f, nan_), expect("log", -inf, nan_);
  expect("log1p", -1.0f, -inf), expect("log1p", -1.5f, nan_), expect("log1p", -inf, nan_), expect("log1p", inf, inf);
  for (float sign : {1.0f, -1.0f}) {
    expect("tanh", sign * inf, sign), expect("erf", sign * inf, sign);
    expect("sin", sign * inf, nan_), expect("cos", sign * inf, nan_);
  }
  expect("cos", 0.0f, 1.0f), expect("cos", -0.0f, 1.0f);
  expect("sigmoid", inf, 1.0f), expect("sigmoid", -inf, 0.0f), expect("sigmoid", 0.0f, 0.5f);
  for (const char* name : {"softplus", "silu", "mish", "gelu_erf", "gelu_tanh"}) expect(name, inf, inf);
  for (const char* name : {"softplus", "silu", "mish", "gelu_erf", "gelu_tanh"})
    EXPECT_EQ(apply(name, {-inf})[0], 0.0f) << name;
}

TEST_P(Simd, NothingLeavesItsRange) {
  std::mt19937 random(4);
  std::vector<float> x;
  for (int i = 0; i < 100000; ++i) x.push_back((static_cast<float>(random() % 2000001) - 1000000.0f) * 2e-5f);
  // where tanh comes to 1
  for (float v = 6; v < 9; v = std::nextafter(v, 10.0f) + (skua_test::small() ? 6.0e-5f : 1.0e-6f))
    x.push_back(v), x.push_back(-v);
  for (const char* name : {"tanh", "erf", "sin", "cos", "sigmoid"}) {
    const auto y = apply(name, x);
    const float low = name == std::string("sigmoid") ? 0.0f : -1.0f;
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(y[i] >= low && y[i] <= 1.0f) << name << "(" << x[i] << ") = " << y[i];
    for (size_t i = 0; name == std::string("tanh") && i < x.size(); ++i)
      if (std::fabs(x[i]) > 9.1f) { ASSERT_EQ(std::fabs(y[i]), 1.0f) << x[i]; }
  }
}

TEST_P(Simd, Powers) {
  std::vector<float> values = {0.0f,       1.0f,        2.0f,    3.0f,        0.5f,        1.5f,
                               1e30f,      2e30f,       3.4e38f, 16777215.0f, 16777216.0f, 8388607.5f,
                               1.0000001f, 0.99999994f, 1e-30f,  inf,         nan_};
  if (!flushes) values.push_back(1e-40f);
  std::vector<float> x, y;
  for (float p : values)
    for (float q : values)
      for (float s : {1.0f, -1.0f})
        for (float t : {1.0f, -1.0f}) x.push_back(s * p), y.push_back(t * q);
  const size_t edges = x.size();
  std::mt19937 random(5);
  while (x.size() < (skua_test::small() ? 20000 : 500000)) {
    const uint32_t kind = random() % 3;
    const float base = kind == 0   ? from_bits(random() % 0x7f800000u)
                       : kind == 1 ? 1.0f + (static_cast<float>(random() % 2000001) * 1e-6f - 1) /
                                                static_cast<float>(1u << random() % 20)
                                   : static_cast<float>(random() % 1000001) / 1000.0f;
    if (!(base >= FLT_MIN)) continue;
    const double logarithm = std::log(static_cast<double>(base));
    const float power = logarithm == 0
                            ? 3.0f
                            : static_cast<float>((static_cast<double>(random() % 2000001) / 1e6 - 1) * 105 / logarithm);
    x.push_back(base), y.push_back(std::isfinite(power) ? power : 2.0f);
  }
  const auto z = apply("pow", x, y);
  int wrong = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = std::pow(static_cast<double>(x[i]), static_cast<double>(flushed(y[i]))),
                 error = std::fabs(z[i] - want);
    const bool overflows = std::fabs(want) > 3.4028e38;
    bool good = std::isnan(want)  ? std::isnan(z[i])
                : std::isinf(want) ? z[i] == static_cast<float>(want)
                : overflows       ? std::fabs(z[i]) > 3.4027e38
                                  : error <= 8 * ulp_of(want) + (flushes ? FLT_MIN : 0);
    if (i < edges && z[i] == 0) good = good && std::signbit(z[i]) == std::signbit(want);
    if (!good && ++wrong < 10)
      ADD_FAILURE() << "pow(" << x[i] << ", " << y[i] << ") gave " << z[i] << ", not " << want << ": "
                    << error / ulp_of(want) << " ULP";
  }
  EXPECT_EQ(wrong, 0);
}

#if defined(__SANITIZE_ADDRESS__) && defined(__arm__)
// What kernels load and store goes through these: a sanitizer that did not see it would find nothing, and say so to
// nobody (simd/neon_checked.h).
TEST_P(Simd, AddressSanitizerSeesLoadsAndStores) {
  const size_t L = u->lanes;
  const std::unique_ptr<float[]> whole(new float[L]()), result(new float[L]());
  const std::unique_ptr<int32_t[]> integers(new int32_t[L]()), integer_result(new int32_t[L]());
  for (size_t n = 1; n <= L; ++n) {
    const std::unique_ptr<float[]> less(new float[n - 1]());
    const std::unique_ptr<int32_t[]> fewer(new int32_t[n - 1]());
    EXPECT_DEATH(u->copy_n(less.get(), result.get(), n), "AddressSanitizer") << n;
    EXPECT_DEATH(u->store_n(whole.get(), less.get(), n), "AddressSanitizer") << n;
    EXPECT_DEATH(u->copy_int_n(fewer.get(), integer_result.get(), n), "AddressSanitizer") << n;
    EXPECT_DEATH(u->store_int_n(integers.get(), fewer.get(), n), "AddressSanitizer") << n;
  }
  const std::unique_ptr<uint16_t[]> halves(new uint16_t[L - 1]());
  EXPECT_DEATH(u->load_f16(halves.get(), result.get(), L), "AddressSanitizer");
  EXPECT_DEATH(u->store_f16(whole.get(), halves.get(), L), "AddressSanitizer");
}
#endif

}  // namespace
