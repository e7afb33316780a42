// Matrix products of bytes: exactly the integers of the formula, on every tile of the registry.
#include <skua/gemm.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "dispatch/element.h"
#include "tests/support/blob.h"
#include "tests/support/fixed_point.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

struct Case {
  size_t m = 1, n = 1, k = 1, hole = 0, hint_m = 0;
  bool transpose_a = false, transpose_b = false, constant_b = true, per_column = true, bias = true;
  skua_dtype a_type = SKUA_DTYPE_S8, b_type = SKUA_DTYPE_S8, c_type = SKUA_DTYPE_S8;
  int a_zero = 3, b_zero = 0, c_zero = -2;
  skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0};
  size_t batch = 1;      // of A and C; of a dynamic B too
  bool extremes = false; // values at the ends of their types
  bool above_least = false;  // no weight of s8 is -128: products may be added in 16 bits
  bool each_zero = false; // zero points of B's columns, around b_zero
  bool residual = false;
  int r_zero = 0;
  skua_rounding rounding = SKUA_ROUNDING_FLOAT;
  bool given = false;    // multipliers and shifts: any there are
  bool far = false;      // these, shifts of small scales only, and results beyond 16 bits before they are clamped
  int32_t most_bias = 0;  // where not 0 biases are that, less that, or nothing
  float finer = 1;        // C's scale by this
  uint32_t seed = 1;
  std::string text() const {
    std::string s = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) +
                    (transpose_a ? " A^T" : "") + (transpose_b ? " B^T" : "") + (constant_b ? " constant" : "") +
                    (per_column ? " per column" : "") + (each_zero ? " zero points" : "") + (bias ? " bias" : "") +
                    " types " + skua_dtype_name(a_type) + " " + skua_dtype_name(b_type) + " " + skua_dtype_name(c_type);
    return s + " zero points " + std::to_string(a_zero) + " " + std::to_string(b_zero) + " " + std::to_string(c_zero) +
           " activation " + std::to_string(activation.kind) + " residual " + std::to_string(residual ? r_zero : 1000) +
           " rounding " + std::to_string(rounding) +
           (far     ? " far"
            : given ? " given"
                    : "") +
           " hole " + std::to_string(hole) + " batch " + std::to_string(batch) + (above_least ? " above least" : "") +
           " seed " + std::to_string(seed);
  }
};

bool is_int(skua_dtype t) { return t == SKUA_DTYPE_S8 || t == SKUA_DTYPE_U8; }
int least(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
int greatest(skua_dtype t) { return least(t) + 255; }

Data bytes(const Case& c, skua_dtype type, size_t rows, size_t columns, Rng& rng) {
  skua_tensor t = c.batch > 1 ? shape({c.batch, rows, columns}, type) : shape({rows, columns}, type);
  if (c.hole) t = with_holes(t, c.batch > 1 ? std::vector<size_t>{0, 0, c.hole} : std::vector<size_t>{0, c.hole});
  Data d = make_integers(t, rng, least(type), greatest(type));
  if (c.extremes)
    for (float& v : d.v)
      v = v == v ? float(rng.next() % 8 ? (rng.next() % 2 ? least(type) : greatest(type)) : int(v)) : v;
  return d;
}

struct Product {
  Case c;
  Data a, b, r;
  std::vector<int32_t> multipliers, shifts;
  float r_scale = 0;
  std::vector<int32_t> bias;
  std::vector<float> scales;
  std::vector<int32_t> zeros;
  float a_scale = 0.02f, c_scale = 1;
  skua_gemm_desc desc = SKUA_GEMM_DESC_INIT;

  explicit Product(const Case& from) : c(from) {
    Rng rng(c.seed);
    Case one = c;
    one.batch = c.constant_b ? 1 : c.batch;
    if (c.constant_b) one.hole = 0;
    a = c.transpose_a ? bytes(c, c.a_type, c.k, c.m, rng) : bytes(c, c.a_type, c.m, c.k, rng);
    b = c.transpose_b ? bytes(one, c.b_type, c.n, c.k, rng) : bytes(one, c.b_type, c.k, c.n, rng);
    if (c.above_least && c.b_type == SKUA_DTYPE_S8)
      for (float& v : b.v) v = v == -128 ? -127 : v;
    for (size_t j = 0; j < c.n; ++j) {
      // fixed point meets sums of all sizes
      bias.push_back(c.given && rng.next() % 4 == 0 ? int32_t(rng.next()) : rng.integer(-20000, 20000));
      if (c.far) bias.back() = j % 3 == 2 ? bias.back() : j % 3 ? -(1 << 22) : 1 << 22;
      if (c.most_bias) bias.back() = (int(j % 3) - 1) * c.most_bias;
      scales.push_back(c.per_column ? rng.uniform(0.001f, 0.02f) : 0.01f);
      zeros.push_back(c.each_zero && rng.next() % 4 ? rng.integer(least(c.b_type), greatest(c.b_type)) : c.b_zero);
    }
    // The results' spread is about that of a byte, less of it clamped than not.
    c_scale = is_int(c.c_type) ? 0.02f * 0.01f * 80 * std::sqrt(float(c.k) + 1) * c.finer : 1;
    desc.a_type = c.a_type, desc.b_type = c.b_type, desc.c_type = c.c_type;
    desc.transpose_a = c.transpose_a, desc.transpose_b = c.transpose_b;
    desc.hint_m = c.hint_m;
    if (c.constant_b || c.bias) desc.n = c.n;
    if (c.constant_b) desc.k = c.k;
    desc.epilogue.activation = c.activation;
    desc.a_q.scale = a_scale, desc.a_q.zero_point = c.a_zero;
    if (c.per_column && c.constant_b) {
      desc.b_q.scales = scales.data(), desc.b_q.zero_points = c.b_zero || c.each_zero ? zeros.data() : nullptr;
      desc.b_q.axis = c.transpose_b ? 0 : 1;
    } else {
      scales.assign(c.n, 0.01f);
      desc.b_q.scale = 0.01f, desc.b_q.zero_point = c.b_zero;
    }
    if (is_int(c.c_type)) desc.c_q.scale = c_scale, desc.c_q.zero_point = c.c_zero;
    if (c.residual) {
      r = bytes(c, c.c_type, c.m, c.n, rng);
      r_scale = c_scale * (c.extremes ? 3.7f : 0.43f);
      desc.residual_q.scale = r_scale, desc.residual_q.zero_point = c.r_zero;
      desc.epilogue.residual = c.activation.kind == SKUA_ACTIVATION_NONE && rng.next() % 2
                                   ? SKUA_RESIDUAL_AFTER_ACTIVATION
                                   : SKUA_RESIDUAL_BEFORE_ACTIVATION;
    }
    desc.requantization.rounding = c.rounding;
    for (size_t j = 0; c.rounding != SKUA_ROUNDING_FLOAT && j < c.n; ++j) {
      auto [multiplier, shift] = fixed_point_scale(double(a_scale) * double(scales[j]) / double(c_scale));
      if (c.given)
        multiplier = rng.next() % 4   ? rng.integer(0, INT32_MAX - 1)
                     : rng.next() % 2 ? INT32_MAX
                                      : 0,
        shift = rng.next() % 3 ? rng.integer(-31, 30) : rng.integer(-15, -5);
      if (c.far) multiplier = rng.integer(1 << 30, INT32_MAX - 1), shift = rng.integer(-4, -2);
      multipliers.push_back(c.constant_b || !j ? multiplier : multipliers[0]);
      shifts.push_back(c.constant_b || !j ? shift : shifts[0]);
    }
    if (c.given) desc.requantization.multipliers = multipliers.data(), desc.requantization.shifts = shifts.data();
  }

  std::vector<uint8_t> weights() const {
    std::vector<uint8_t> w;
    for (float v : b.v) w.push_back(uint8_t(int(v)));
    return w;
  }

  skua_status create(skua_context* context, skua_op** op) const {
    const std::vector<uint8_t> w = weights();
    return skua_gemm_create(context, &desc, c.constant_b ? w.data() : nullptr, c.bias ? bias.data() : nullptr, op);
  }

  skua_tensor c_tensor() const {
    skua_tensor t = c.batch > 1 ? shape({c.batch, c.m, c.n}, c.c_type) : shape({c.m, c.n}, c.c_type);
    return c.hole ? with_holes(t, c.batch > 1 ? std::vector<size_t>{0, 0, c.hole} : std::vector<size_t>{0, c.hole}) : t;
  }

  // The documented formula, in 64 bits.
  std::vector<double> reference() const {
    std::vector<double> want;
    const skua_tensor at = resolved(a.t), bt = resolved(b.t);
    const size_t lda = at.stride[at.rank - 2], ldb = bt.stride[bt.rank - 2], batch_a = at.rank > 2 ? at.stride[0] : 0,
                 batch_b = bt.rank > 2 ? bt.stride[0] : 0;
    float low = -INFINITY, high = INFINITY;
    if (c.activation.kind == SKUA_ACTIVATION_RELU || c.activation.kind == SKUA_ACTIVATION_RELU6) low = 0;
    if (c.activation.kind == SKUA_ACTIVATION_RELU6) high = 6;
    if (c.activation.kind == SKUA_ACTIVATION_CLAMP) low = c.activation.a, high = c.activation.b;
    skua::Requantize to = {};
    if (is_int(c.c_type)) {
      const float l = float(least(c.c_type) - c.c_zero), h = float(greatest(c.c_type) - c.c_zero);
      to.low = std::min(std::max(std::nearbyint(float(double(low) / double(c_scale))), l), h);
      to.high = std::max(std::min(std::nearbyint(float(double(high) / double(c_scale))), h), l);
      to.zero_point = c.c_zero;
    }
    for (size_t batch = 0; batch < c.batch; ++batch)
      for (size_t i = 0; i < c.m; ++i)
        for (size_t j = 0; j < c.n; ++j) {
          int64_t sum = c.bias ? bias[j] : 0;
          for (size_t l = 0; l < c.k; ++l) {
            const int64_t x = int64_t(a.v[batch * batch_a + (c.transpose_a ? l * lda + i : i * lda + l)]),
                          w = int64_t(b.v[batch * batch_b + (c.transpose_b ? j * ldb + l : l * ldb + j)]);
            sum += (x - c.a_zero) * (w - zeros[j]);
          }
          const float scale = float(double(a_scale) * double(scales[j]) / double(is_int(c.c_type) ? c_scale : 1));
          if (c.rounding != SKUA_ROUNDING_FLOAT) {
            const int32_t y = fixed_point(c.rounding, int32_t(sum), multipliers[j], shifts[j]);
            want.push_back(std::min(std::max(double(y), double(to.low)), double(to.high)) + c.c_zero);
            continue;
          }
          if (c.residual) {
            const float add = (r.v[offset(resolved(r.t), (batch * c.m + i) * c.n + j)] - float(c.r_zero)) *
                              float(double(r_scale) / double(c_scale));
            const float scaled = float(int32_t(sum)) * scale;
            want.push_back(double(std::nearbyint(std::min(std::max(scaled + add, to.low), to.high))) + c.c_zero);
            continue;
          }
          if (is_int(c.c_type)) want.push_back(skua::requantize(int32_t(sum), scale, to));
          else want.push_back(double(rounded(c.c_type, std::min(std::max(float(int32_t(sum)) * scale, low), high))));
        }
    return want;
  }

  void expect(const Data& got) const {
    SCOPED_TRACE(c.text());
    expect_close(got, reference(), 0.0);
  }
};

void check(skua_context* context, const Case& c) {
  SCOPED_TRACE(c.text());
  const Product p(c);
  Op op;
  SKUA_EXPECT_OK(p.create(context, &op));
  if (!op.op) return;
  std::vector<Data> operands = {p.a};
  if (!c.constant_b) operands.push_back(p.b);
  if (c.residual) operands.push_back(p.r);
  const std::vector<Data> got = run(op, operands, {p.c_tensor()});
  if (got.size() == 1) p.expect(got[0]);
}

struct Tile : skua_kernel_info {};
void PrintTo(const Tile& tile, std::ostream* os) { *os << tile.name; }
std::vector<Tile> tiles() {
  std::vector<Tile> found;
  for (const char* type : {"s8", "u8"})
    for (const skua_kernel_info& info : kernels(std::string("gemm_") + type + "_")) found.push_back({info});
  return found;
}

constexpr skua_dtype kBytes[] = {SKUA_DTYPE_S8, SKUA_DTYPE_U8};
std::vector<skua_dtype> output_types() {
  std::vector<skua_dtype> types = float_types();
  types.insert(types.end(), {SKUA_DTYPE_S8, SKUA_DTYPE_U8, SKUA_DTYPE_S8, SKUA_DTYPE_U8});
  return types;
}

Case any_case(Rng& rng, skua_dtype a_type) {
  Case c;
  c.a_type = a_type;
  c.b_type = kBytes[rng.next() % 4 == 0];
  const std::vector<skua_dtype> types = output_types();
  c.c_type = types[rng.next() % types.size()];
  const auto zero = [&](skua_dtype t) {
    return rng.next() % 3 ? rng.integer(least(t), greatest(t)) : rng.next() % 2 ? least(t) : greatest(t);
  };
  c.a_zero = zero(c.a_type);
  c.constant_b = rng.next() % 3;
  c.b_zero = c.b_type == SKUA_DTYPE_U8 || !c.constant_b ? zero(c.b_type) : 0;
  c.c_zero = is_int(c.c_type) ? zero(c.c_type) : 0;
  c.transpose_a = rng.next() % 4 == 0, c.transpose_b = rng.next() % 2;
  c.per_column = rng.next() % 2, c.bias = rng.next() % 2;
  c.hole = rng.next() % 3 ? 0 : size_t(rng.integer(1, 5));
  c.activation.kind = skua_activation_kind(rng.integer(0, SKUA_ACTIVATION_CLAMP));
  c.activation.a = -0.7f, c.activation.b = 1.3f;
  c.extremes = rng.next() % 4 == 0;
  c.above_least = rng.next() % 2;
  c.each_zero = c.constant_b && c.per_column && c.b_type == SKUA_DTYPE_U8 && rng.next() % 2;
  if (is_int(c.c_type)) {
    c.residual = rng.next() % 4 == 0;
    c.r_zero = c.residual ? zero(c.c_type) : 0;
    if (!c.residual && rng.next() % 3 == 0) c.rounding = skua_rounding(rng.integer(1, 2)), c.given = rng.next() % 2;
  }
  c.seed = rng.next();
  return c;
}

class GemmInt8Tile : public testing::TestWithParam<Tile> {
 protected:
  void SetUp() override { context = std::make_unique<Context>(GetParam().isa, GetParam().name); }
  std::unique_ptr<Context> context;
};

// Rows and columns of the last row group and panel, every rest of the depth.
TEST_P(GemmInt8Tile, Tails) {
  const Tile& tile = GetParam();
  Rng rng(uint32_t(tile.mr * 100 + tile.nr));
  const size_t depths[] = {1, 2, 3, 4, 5, 7, 8, 31, 33, 63, 64, 65, 127, 130};
  for (size_t m = 1; m <= 2 * tile.mr + 3; m += small() ? 3 : 1)
    for (size_t n = 1 + m % 5; n < 2 * tile.nr + 16; n += small() ? 13 : 7) {
      Case c = any_case(rng, tile.type);
      c.m = m, c.n = n, c.k = depths[size_t(rng.integer(0, small() ? 7 : 13))];
      check(*context, c);
      if (HasFailure()) return;
    }
}

// Whole turns of loops that are sixteen and more deep, alone and with a tail, where products are added in 16 bits: the
// last turn reads nothing behind a row.
TEST_P(GemmInt8Tile, WholeTurns) {
  const Tile& tile = GetParam();
  Rng rng(uint32_t(tile.mr * 10 + tile.nr));
  for (size_t k : {16, 32, 48, 64, 72, 80})
    for (size_t m : {size_t(2), size_t(tile.mr), 2 * size_t(tile.mr) + 3}) {
      Case c = any_case(rng, tile.type);
      c.m = m, c.n = tile.nr + m % 2, c.k = k;
      c.transpose_a = false, c.hole = 0, c.above_least = true, c.b_type = SKUA_DTYPE_S8, c.b_zero = 0,
      c.each_zero = false;
      check(*context, c);
      if (HasFailure()) return;
    }
}

TEST_P(GemmInt8Tile, ManyRows) {
  const Tile& tile = GetParam();
  Rng rng(tile.nr);
  for (size_t m : {29, 83, 260}) {
    if (small() && m > 100) break;
    for (size_t n : {size_t(tile.nr) + 5, size_t(7)}) {
      Case c = any_case(rng, tile.type);
      c.m = m, c.n = n, c.k = m == 260 ? 300 : 33;
      check(*context, c);
      // No result below the zero point, and sums too small to need all 32 bits: other arithmetic may serve.
      c.constant_b = true, c.each_zero = false, c.k = m == 260 ? 150 : 30, c.hole = 0;
      if (c.b_type == SKUA_DTYPE_S8) c.b_zero = 0;
      c.c_type = kBytes[n % 2], c.c_zero = least(c.c_type), c.r_zero = least(c.c_type) + 7;
      check(*context, c);
    }
  }
}

// A few groups of rows against a B from beyond the caches: the first group fetches it ahead for the others.
TEST_P(GemmInt8Tile, FewRowsOfALargeB) {
  if (small()) GTEST_SKIP() << "large";
  const Tile& tile = GetParam();
  Rng rng(tile.nr);
  Case c = any_case(rng, tile.type);
  c.m = size_t(tile.mr) + 1, c.n = 20 * size_t(tile.nr) + 3, c.k = (size_t(8) << 20) / c.n + 1;
  c.constant_b = true, c.batch = 1;
  if (c.b_type == SKUA_DTYPE_S8) c.b_zero = 0, c.each_zero = false;
  check(*context, c);
}

// Too few panels for equal shares: workers begin and end inside one.
TEST_P(GemmInt8Tile, TasksInsidePanels) {
  const Tile& tile = GetParam();
  Rng rng(tile.nr + tile.mr);
  for (size_t n : {tile.nr + tile.nr / 2, 2 * tile.nr + tile.nr / 2 + 1})
    for (size_t rows : {size_t(tile.mr), size_t(5 * tile.mr)}) {
      Case c = any_case(rng, tile.type);
      c.m = rows, c.n = n, c.k = small() ? 1500 : 3000;
      check(*context, c);
    }
}

TEST_P(GemmInt8Tile, Mixed) {
  const Tile& tile = GetParam();
  Rng rng(77);
  for (int i = 0; i < (small() ? 12 : 100) && !HasFailure(); ++i) {
    Case c = any_case(rng, tile.type);
    c.m = size_t(rng.integer(1, rng.next() % 8 ? 20 : 90));
    c.n = size_t(rng.integer(1, rng.next() % 4 ? int(tile.nr) + 16 : 150));
    c.k = size_t(rng.integer(c.constant_b, rng.next() % 8 ? 40 : 700));
    c.batch = rng.next() % 3 ? 1 : 2;
    check(*context, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, GemmInt8Tile, testing::ValuesIn(tiles()),
                         [](const auto& info) { return std::string(info.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GemmInt8Tile);  // a build without bytes

// What the cost model chooses, one row and the first-class shapes among it.
TEST(GemmInt8, WithoutAFilter) {
  Rng rng(3);
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (int i = 0; i < (small() ? 4 : 30); ++i) {
        Case c = any_case(rng, type);
        c.m = i % 4 ? size_t(rng.integer(1, i % 5 ? 40 : 200)) : 1;
        c.n = size_t(rng.integer(1, i % 7 ? 100 : 400)), c.k = size_t(rng.integer(1, i % 3 || small() ? 50 : 900));
        c.hint_m = i % 3 ? 0 : c.m;
        check(context, c);
      }
    }
}

// One row about as deep as kernels widen whole, on their stack.
TEST(GemmInt8, OneDeepRow) {
  Rng rng(9);
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (size_t k : {4097, 16383, 16384, 16385}) {
        if (small() && (k == 16383 || k == 16384)) continue;
        Case c = any_case(rng, type);
        c.constant_b = true, c.m = 1, c.n = 21 + (small() ? 0 : k % 2 * 50), c.k = k, c.batch = 1;
        if (c.b_type == SKUA_DTYPE_S8) c.b_zero = 0, c.each_zero = false;
        check(context, c);
        // the shortest end
        c.b_type = SKUA_DTYPE_S8, c.b_zero = 0, c.each_zero = c.residual = c.bias = false, c.c_type = type,
        c.c_zero = least(type), c.rounding = SKUA_ROUNDING_FLOAT;
        check(context, c);
      }
    }
}

// Rows and ends of every length for kernels that take several vectors of columns at once, and weights whose one zero
// point keeps them from it.
TEST(GemmInt8, OneRow) {
  Rng rng(10);
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (size_t k : {3, 18, 64, 129, 260})
        for (size_t n : {1, 16, 33, 65, 100, 200, 400}) {
          if (small() && n > 100) continue;
          Case c;
          c.a_type = type, c.c_type = k % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8, c.n = n, c.k = k, c.seed = uint32_t(n + k),
          c.hint_m = 1;
          c.a_zero = least(type) + int(rng.integer(0, 255)), c.c_zero = n % 3 ? least(c.c_type) : 7, c.bias = n % 2;
          check(context, c);
          c.b_type = SKUA_DTYPE_U8, c.b_zero = n % 3 ? 128 : int(rng.integer(0, 255)), c.per_column = false;
          check(context, c);
        }
    }
}

// The largest sums: every value at the end of its type, the zero point at the other.
TEST_P(GemmInt8Tile, LargestSums) {
  const Tile& tile = GetParam();
  for (int at_end = 0; at_end < 2; ++at_end)
    for (skua_dtype b_type : kBytes) {
      Case c;
      c.a_type = tile.type, c.b_type = b_type, c.c_type = SKUA_DTYPE_F32;
      c.m = size_t(tile.mr) + 1, c.n = size_t(tile.nr) + 1, c.k = small() ? 67 : 4099;
      c.a_zero = at_end ? least(c.a_type) : greatest(c.a_type);
      c.b_zero = b_type == SKUA_DTYPE_U8 ? 128 : 0;
      Product p(c);
      for (float& v : p.a.v) v = float(at_end ? greatest(c.a_type) : least(c.a_type));
      for (float& v : p.b.v) v = float(least(b_type));
      Op op;
      SKUA_EXPECT_OK(p.create(*context, &op));
      const std::vector<Data> got = run(op, {p.a}, {p.c_tensor()});
      ASSERT_EQ(got.size(), 1u);
      p.expect(got[0]);
    }
}

// All shifts of a vector are small, and twice a result saturates 16 bits.
TEST(GemmInt8, FarResultsInFixedPoint) {
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (const skua_rounding rounding : {SKUA_ROUNDING_DOUBLE, SKUA_ROUNDING_SINGLE}) {
        Case c;
        c.a_type = c.c_type = type, c.c_zero = least(type) + 9, c.m = 5, c.n = 37, c.k = 19;
        c.rounding = rounding, c.given = c.far = true;
        check(context, c);
      }
    }
}

// Results beyond 16 bits and beyond 32 on their way to bytes, and sums beyond 2^23, whatever C's zero point.
TEST(GemmInt8, FarResults) {
  for (skua_dtype type : kBytes)
    for (skua_dtype to : kBytes)
      for (const char* isa : isas(type)) {
        SCOPED_TRACE(isa);
        Context context(isa);
        for (int zero : {0, 40, 255})
          for (size_t m : {1, 13}) {
            Case c;
            c.a_type = type, c.c_type = to, c.c_zero = least(to) + zero, c.m = m, c.n = 37, c.k = 19;
            c.finer = 1e-20f;
            check(context, c);
            c.finer = 1;
            for (int32_t bias : {(1 << 23) + 5, 1 << 27, 1 << 30}) {
              c.most_bias = bias;
              check(context, c);
            }
            if (HasFailure()) return;
          }
      }
}

// A blob gives the same operator; one whose tile is for other bytes is refused.
TEST(GemmInt8, Blobs) {
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      Case c;
      c.a_type = type, c.m = 5, c.n = 37, c.k = 19;
      c.rounding = type == SKUA_DTYPE_S8 ? SKUA_ROUNDING_DOUBLE : SKUA_ROUNDING_FLOAT;
      const Product p(c);
      Op op, copy;
      SKUA_EXPECT_OK(p.create(context, &op));
      const size_t size = skua_op_packed_size(op);
      Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
      SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
      SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &copy));
      ASSERT_NE(copy.op, nullptr);
      const std::vector<Data> got = run(copy, {p.a});
      ASSERT_EQ(got.size(), 1u);
      p.expect(got[0]);
    }
}

// Any byte of config changed: refused, or an operator that runs within its operands.
TEST(GemmInt8, ForgedConfigs) {
  Context context;
  Case c;
  c.m = 5, c.n = 37, c.k = 19;
  const Product p(c);
  if (int8_types().empty()) return;
  Op op;
  SKUA_EXPECT_OK(p.create(context, &op));
  const size_t size = skua_op_packed_size(op);
  Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
  SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
  BlobHeader h;
  std::memcpy(&h, blob.memory(), sizeof h);
  auto* bytes = static_cast<unsigned char*>(blob.memory());
  for (size_t i = sizeof h; i < sizeof h + h.config_size; ++i)
    for (int change : {1, 2, 4, 8, 0x80, 0xff}) {
      const unsigned char was = bytes[i];
      bytes[i] = (unsigned char)(was ^ change);
      reseal(bytes, size);
      Op forged;
      if (skua_op_create_packed(context, bytes, size, &forged) == SKUA_STATUS_OK && skua_op_input_count(forged) == 1) {
        skua_plan* plan = nullptr;
        const skua_tensor in = p.a.t;
        if (skua_op_plan(forged, &in, 1, nullptr, 0, &plan) == SKUA_STATUS_OK) {
          std::vector<unsigned char> space(skua_plan_workspace(plan, 1) + 64), x(c.m * c.k * 4), y(c.m * c.n * 4);
          const skua_buffer from = skua_host_buffer(x.data()), to = skua_host_buffer(y.data());
          auto* aligned = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64);
          EXPECT_EQ(skua_plan_run(plan, &from, 1, &to, 1, aligned, skua_plan_workspace(plan, 1), nullptr),
                    SKUA_STATUS_OK);
        }
        skua_plan_destroy(plan);
      }
      bytes[i] = was;
    }
}

TEST(GemmInt8, WhatIsRefusedSaysWhy) {
  if (int8_types().empty()) return;
  Context context;
  const auto refused = [&](skua_status status, const char* text, auto change) {
    Case c;
    c.m = 2, c.n = 4, c.k = 4, c.per_column = false;
    Product p(c);
    change(p.desc);
    Op op;
    EXPECT_EQ(p.create(context, &op), status) << text;
    EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text() << " lacks " << text;
  };
  static const int32_t zeros[4] = {0, 1, 2, 3};
  static const float scales[4] = {1, 1, 1, 1};
  refused(SKUA_STATUS_UNSUPPORTED, "b_type is s4", [](skua_gemm_desc& d) { d.b_type = SKUA_DTYPE_S4; });
  refused(SKUA_STATUS_UNSUPPORTED, "b_type is f32", [](skua_gemm_desc& d) { d.b_type = SKUA_DTYPE_F32; });
  refused(SKUA_STATUS_UNSUPPORTED, "c_type is s32", [](skua_gemm_desc& d) { d.c_type = SKUA_DTYPE_S32; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "a_q.scale is 0", [](skua_gemm_desc& d) { d.a_q.scale = 0; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "a_q.zero_point is 128", [](skua_gemm_desc& d) { d.a_q.zero_point = 128; });
  refused(SKUA_STATUS_UNSUPPORTED, "b_q.zero_point is 1", [](skua_gemm_desc& d) { d.b_q.zero_point = 1; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "c_q.scale is nan", [](skua_gemm_desc& d) { d.c_q.scale = NAN; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "c_q is set", [](skua_gemm_desc& d) { d.c_type = SKUA_DTYPE_F32; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "b_q.axis is 0", [](skua_gemm_desc& d) { d.b_q.scales = scales; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "b_q.zero_points[3] is 300", [](skua_gemm_desc& d) {
    static const int32_t far[4] = {0, 1, 2, 300};
    d.b_type = SKUA_DTYPE_U8, d.b_q.scales = scales, d.b_q.zero_points = far, d.b_q.axis = 1;
  });
  refused(SKUA_STATUS_UNSUPPORTED, "alpha is 2", [](skua_gemm_desc& d) { d.alpha = 2; });
  refused(SKUA_STATUS_UNSUPPORTED, "beta is 1", [](skua_gemm_desc& d) { d.beta = 1; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "residual_q.scale is 0",
          [](skua_gemm_desc& d) { d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION; });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "residual_q is set", [](skua_gemm_desc& d) { d.residual_q.scale = 1; });
  refused(SKUA_STATUS_UNSUPPORTED, "epilogue.residual is set with a result of f32", [](skua_gemm_desc& d) {
    d.c_type = SKUA_DTYPE_F32, d.c_q.scale = 0, d.c_q.zero_point = 0,
    d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  });
  refused(SKUA_STATUS_UNSUPPORTED, "AFTER_ACTIVATION", [](skua_gemm_desc& d) {
    d.epilogue = {{SKUA_ACTIVATION_RELU, 0, 0}, SKUA_RESIDUAL_AFTER_ACTIVATION}, d.residual_q.scale = 1;
  });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "requantization.rounding is 3",
          [](skua_gemm_desc& d) { d.requantization.rounding = skua_rounding(3); });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "multipliers without shifts", [](skua_gemm_desc& d) {
    d.requantization = {SKUA_ROUNDING_DOUBLE, zeros, nullptr};
  });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "rounding is FLOAT", [](skua_gemm_desc& d) {
    d.requantization = {SKUA_ROUNDING_FLOAT, zeros, zeros};
  });
  refused(SKUA_STATUS_INVALID_ARGUMENT, "shifts[1] is 31", [](skua_gemm_desc& d) {
    static const int32_t far[4] = {30, 31, 0, 0};
    d.requantization = {SKUA_ROUNDING_SINGLE, zeros, far};
  });
  refused(SKUA_STATUS_UNSUPPORTED, "beside a residual", [](skua_gemm_desc& d) {
    d.requantization.rounding = SKUA_ROUNDING_SINGLE, d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION,
    d.residual_q.scale = 1;
  });
  refused(SKUA_STATUS_UNSUPPORTED, "requantization.rounding is SINGLE with a result of f32", [](skua_gemm_desc& d) {
    d.c_type = SKUA_DTYPE_F32, d.c_q.scale = 0, d.c_q.zero_point = 0, d.requantization.rounding = SKUA_ROUNDING_SINGLE;
  });
  refused(SKUA_STATUS_UNSUPPORTED, "activation",
          [](skua_gemm_desc& d) { d.epilogue.activation.kind = SKUA_ACTIVATION_TANH; });
}

TEST(GemmInt8, ExplainNamesTheTypes) {
  for (skua_dtype type : kBytes)
    for (const char* isa : isas(type)) {
      Context context(isa);
      Case c;
      c.a_type = type, c.m = 5, c.n = 37, c.k = 19;
      const Product p(c);
      Op op;
      SKUA_EXPECT_OK(p.create(context, &op));
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &p.a.t, 1, nullptr, 0, &plan));
      char text[4096];
      skua_plan_explain(plan, text, sizeof text);
      EXPECT_NE(std::string(text).find("; sums s32\n"), std::string::npos) << text;
      skua_plan_destroy(plan);
    }
}

}  // namespace
