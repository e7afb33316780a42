// The vectors of halves of every instruction set that computes with them, against plain C++.
#include "tests/half_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/support.h"

#define SKUA_HALF_ISA(isa) extern "C" const skua_test::HalfUnit* skua_half_unit_##isa();
#include "skua_half_isas.inc"
#undef SKUA_HALF_ISA

namespace {

using skua_test::HalfUnit;

struct Isa {
  const char* name;
  const HalfUnit* (*unit)();
};
const std::vector<Isa> isas = {
#define SKUA_HALF_ISA(isa) {#isa, skua_half_unit_##isa},
#include "skua_half_isas.inc"
#undef SKUA_HALF_ISA
};

bool nan_bits(uint16_t h) { return (h & 0x7fff) > 0x7c00; }

double value(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                      : exponent     ? std::ldexp(1024 + fraction, exponent - 25)
                                     : std::ldexp(fraction, -24);
  return h & 0x8000 ? -size : size;
}

// To nearest even.
uint16_t half(double x) {
  if (std::isnan(x)) return 0x7e00;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;
  int exponent;
  std::frexp(size, &exponent);  // size = m * 2^exponent, m in [0.5, 1)
  exponent = std::max(exponent - 11, -24);
  // of 2^exponent; 2048 carries into the exponent by itself
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, -exponent)));
  return sign | static_cast<uint16_t>(exponent == -24 ? steps : steps + (exponent + 24) * 1024);
}

// p + q, exact to the last bit that decides about rounding to fewer digits: where the sum of doubles is not exact its
// last bit is made odd.
double sum_to_odd(double p, double q) {
  const double s = p + q;
  if (!std::isfinite(s)) return s;
  const double t = s - p, error = (p - (s - t)) + (q - t);
  uint64_t bits;
  std::memcpy(&bits, &s, 8);
  if (error == 0 || bits & 1) return s;
  return std::nextafter(s, error > 0 ? INFINITY : -INFINITY);
}

bool same(uint16_t got, uint16_t want) { return got == want || (nan_bits(got) && nan_bits(want)); }
bool same_value(uint16_t got, uint16_t want) { return same(got, want) || ((got | want) & 0x7fff) == 0; }

class Half : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!skua_test::usable(GetParam().name)) GTEST_SKIP() << "no " << GetParam().name << " here, or not allowed";
    u = GetParam().unit();
  }
  const HalfUnit* u = nullptr;
};

INSTANTIATE_TEST_SUITE_P(All, Half, testing::ValuesIn(isas),
                         [](const auto& info) { return std::string(info.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Half);

TEST_P(Half, Operations) {
  std::vector<uint16_t> a, b, c;
  const uint16_t special[] = {0,      1,      2,      0x3ff,  0x400,  0x401,  0x3bff, 0x3c00,
                              0x3c01, 0x3e00, 0x6400, 0x7800, 0x7bff, 0x7c00, 0x7e00, 0x7d01};
  std::mt19937 random(1);
  const auto push = [&](uint32_t x, uint32_t y, uint32_t z) {
    a.push_back(static_cast<uint16_t>(x)), b.push_back(static_cast<uint16_t>(y)), c.push_back(static_cast<uint16_t>(z));
  };
  for (uint16_t x : special)
    for (uint16_t y : special)
      for (uint32_t signs = 0; signs < 8; ++signs)
        push(x | (signs & 1) << 15, y | (signs & 2) << 14, special[random() % 16] | (signs & 4) << 13);
  const int many = skua_test::small() ? 5000 : 100000;
  for (int i = 0; i < many; ++i) push(random(), random(), random());
  for (int i = 0; i < many; ++i) {  // sums that round
    const auto near_one = [&] { return 0x3000 + random() % 0x1800 + (random() & 1) * 0x8000; };
    push(near_one(), near_one(), near_one());
  }
  while (a.size() % static_cast<size_t>(u->lanes)) push(0x3c00, 0x4000, 0x4200);

  using Reference = std::function<uint16_t(uint16_t, uint16_t, uint16_t)>;
  const auto nan_or = [](uint16_t x, uint16_t y, uint16_t z) {
    return nan_bits(x) || nan_bits(y) ? uint16_t{0x7e00} : z;
  };
  const auto low = [=](uint16_t x, uint16_t y, uint16_t) { return nan_or(x, y, value(x) < value(y) ? x : y); };
  const auto high = [=](uint16_t x, uint16_t y, uint16_t) { return nan_or(x, y, value(x) > value(y) ? x : y); };
  const std::map<std::string, Reference> want = {
      {"add", [](uint16_t x, uint16_t y, uint16_t) { return half(value(x) + value(y)); }},
      {"sub", [](uint16_t x, uint16_t y, uint16_t) { return half(value(x) - value(y)); }},
      {"mul", [](uint16_t x, uint16_t y, uint16_t) { return half(value(x) * value(y)); }},
      {"neg", [](uint16_t x, uint16_t, uint16_t) { return static_cast<uint16_t>(x ^ 0x8000); }},
      {"abs", [](uint16_t x, uint16_t, uint16_t) { return static_cast<uint16_t>(x & 0x7fff); }},
      {"fma", [](uint16_t x, uint16_t y, uint16_t z) { return half(sum_to_odd(value(x) * value(y), value(z))); }},
      {"fnma", [](uint16_t x, uint16_t y, uint16_t z) { return half(sum_to_odd(-value(x) * value(y), value(z))); }},
      {"min", low},
      {"max", high},
      {"clamp_low", high},
      {"clamp_high", low},
      {"lt", [](uint16_t x, uint16_t y, uint16_t) -> uint16_t { return value(x) < value(y) ? 0x3c00 : 0; }},
      {"gt", [](uint16_t x, uint16_t y, uint16_t) -> uint16_t { return value(x) > value(y) ? 0x3c00 : 0; }},
      {"select", [](uint16_t x, uint16_t y, uint16_t z) { return value(x) < value(y) ? x : z; }},
      {"reciprocal", [](uint16_t x, uint16_t, uint16_t) { return half(1 / value(x)); }},
      {"copysign", [](uint16_t x, uint16_t y, uint16_t) { return static_cast<uint16_t>((x & 0x7fff) | (y & 0x8000)); }},
      {"floor", [](uint16_t x, uint16_t, uint16_t) { return half(std::floor(value(x))); }},
      {"ceil", [](uint16_t x, uint16_t, uint16_t) { return half(std::ceil(value(x))); }},
      {"round", [](uint16_t x, uint16_t, uint16_t) { return half(std::nearbyint(value(x))); }},
      {"trunc", [](uint16_t x, uint16_t, uint16_t) { return half(std::trunc(value(x))); }},
      {"scalef",
       [this](uint16_t x, uint16_t y, uint16_t) {
         const auto m = static_cast<uint16_t>((x & 0x83ff) | 0x3800);
         return u->has_scalef ? half(std::ldexp(value(m), (y & 63) - 35)) : m;
       }},
      {"integers",
       [](uint16_t x, uint16_t y, uint16_t z) {
         const int shifted = static_cast<int16_t>(x) >> 3 & 0x7ff;
         return half(static_cast<int16_t>(static_cast<uint16_t>(shifted + y - z)));
       }},
      {"bits",
       [](uint16_t x, uint16_t, uint16_t) { return static_cast<uint16_t>((static_cast<int16_t>(x) >> 5) * 8); }},
  };
  std::vector<uint16_t> out(a.size());
  for (const auto* op = u->ops; op->name; ++op) {
    const std::string name = op->name;
    ASSERT_TRUE(want.count(name)) << name;
    const bool clamp = name.compare(0, 5, "clamp") == 0, either_zero = clamp || name == "min" || name == "max";
    op->run(a.data(), b.data(), c.data(), out.data(), a.size());
    int wrong = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (clamp && nan_bits(b[i])) continue;
      if (name == "reciprocal") {
        const double size = value(a[i]), error = std::fabs(value(out[i]) * value(a[i]) - 1);
        if (!(size >= 0x1p-13 && size <= 0x1p13) || error <= 0x1p-9) continue;
      }
      const uint16_t right = want.at(name)(a[i], b[i], c[i]);
      if (either_zero ? same_value(out[i], right) : same(out[i], right)) continue;
      if (++wrong < 5)
        ADD_FAILURE() << name << "(" << value(a[i]) << ", " << value(b[i]) << ", " << value(c[i]) << ") gave "
                      << value(out[i]) << ", not " << value(right);
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST_P(Half, Conversions) {
  const size_t lanes = static_cast<size_t>(u->lanes);
  std::vector<uint16_t> h(65536), back(65536);
  for (size_t i = 0; i < h.size(); ++i) h[i] = static_cast<uint16_t>(i);
  std::vector<float> f(h.size());
  for (size_t i = 0; i < h.size(); i += lanes) {
    u->to_f32(&h[i], &f[i]);
    u->to_f16(&f[i], &back[i]);
  }
  for (size_t i = 0; i < h.size(); ++i) {
    ASSERT_TRUE(std::isnan(f[i]) ? nan_bits(h[i]) : f[i] == value(h[i])) << i;
    ASSERT_TRUE(same(back[i], h[i])) << i;
  }
  // Between two halves: the middle, and a little to either side.
  for (uint32_t i = 0; i < 0x7c00; ++i) {
    const double middle =
        i == 0x7bff ? 65520 : (value(static_cast<uint16_t>(i)) + value(static_cast<uint16_t>(i + 1))) / 2;
    for (int side = -1; side <= 1; ++side)
      f[i * 2 + static_cast<uint32_t>(side == 1)] = std::nextafter(static_cast<float>(middle), side * INFINITY);
    if (i % 2) f[i * 2] = static_cast<float>(-middle);
  }
  for (size_t i = 0; i < 0xf800; i += lanes) {
    u->to_f16(&f[i], &back[i]);
    for (size_t j = i; j < i + lanes; ++j) ASSERT_TRUE(same(back[j], half(f[j]))) << f[j] << " gave " << value(back[j]);
  }
  std::vector<uint16_t> all(lanes);
  for (float x : {0.0f, -0.0f, 1.0f, 0.1f, -65504.0f, 65519.9f, 65520.0f, 1e-7f, 6e-8f, INFINITY, NAN}) {
    u->set1(x, all.data());
    for (uint16_t y : all) EXPECT_TRUE(same(y, half(x))) << x << " gave " << value(y);
  }
}

TEST_P(Half, Tails) {
  const size_t lanes = static_cast<size_t>(u->lanes);
  std::vector<uint16_t> in(lanes), out(lanes);
  for (size_t i = 0; i < lanes; ++i) in[i] = static_cast<uint16_t>(i + 1);
  for (size_t n = 0; n <= lanes; ++n) {
    for (const bool at_end : {false, true}) {
      skua_test::Guarded memory = skua_test::Guarded::bytes(2 * n, 2, at_end);
      uint16_t* p = static_cast<uint16_t*>(memory.memory());
      std::copy_n(in.data(), n, p);
      u->copy_n(p, out.data(), n);
      for (size_t i = 0; i < lanes; ++i) EXPECT_EQ(out[i], i < n ? in[i] : 0) << n;
      std::fill_n(p, n, uint16_t{0});
      u->store_n(in.data(), p, n);
      EXPECT_TRUE(memory.untouched_outside()) << n;
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(p[i], in[i]) << n;
    }
  }
  for (uint16_t x : {uint16_t{0x3c00}, uint16_t{1}}) {
    u->broadcast(&x, out.data());
    for (uint16_t y : out) EXPECT_EQ(y, x);
  }
}

TEST_P(Half, ByLane) {
  if (!u->by_lane) GTEST_SKIP() << "no by-lane multiply";
  const size_t lanes = static_cast<size_t>(u->lanes);
  std::vector<uint16_t> acc(lanes), b(lanes), a(lanes), out(lanes * lanes);
  for (size_t i = 0; i < lanes; ++i)
    acc[i] = half(100.0 * double(i)), b[i] = half(double(i) + 1), a[i] = half(10.0 - double(i));
  u->fma_lane(acc.data(), b.data(), a.data(), out.data());
  for (size_t i = 0; i < lanes; ++i)
    for (size_t j = 0; j < lanes; ++j) EXPECT_EQ(value(out[i * lanes + j]), value(acc[j]) + value(b[j]) * value(a[i]));
}

}  // namespace
