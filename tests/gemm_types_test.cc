// Matrix products of f16 and bf16: every tile of the registry, every mix of types that the operator takes.
#include <memory>

#include "tests/support/gemm_case.h"

using namespace skua_test;

namespace {

struct Tile : skua_kernel_info {};
void PrintTo(const Tile& tile, std::ostream* os) { *os << tile.name; }

std::vector<Tile> tiles() {
  std::vector<Tile> found;
  for (skua_dtype type : half_types())
    for (const skua_kernel_info& info : kernels(std::string("gemm_") + skua_dtype_name(type) + "_"))
      found.push_back({info});
  return found;
}

bool half_arithmetic(const std::string& isa) {
  return isa.find("fp16") != std::string::npos || isa.find("bf16") != std::string::npos;
}

class GemmHalfTile : public testing::TestWithParam<Tile> {
 protected:
  void SetUp() override { context = std::make_unique<Context>(GetParam().isa, GetParam().name); }
  size_t mr() const { return GetParam().mr; }
  size_t nr() const { return GetParam().nr; }
  Case of_type() const {
    Case c;
    c.type = c.b_type = c.c_type = GetParam().type;
    c.half = half_arithmetic(GetParam().isa);
    c.narrow_b = std::string(GetParam().name).find("_b16_") != std::string::npos;
    return c;
  }
  std::unique_ptr<Context> context;
};

// Rows and columns of the last row group and panel, odd depths, each way that B can come, with what follows the sum.
TEST_P(GemmHalfTile, Tails) {
  Rng rng(uint32_t(mr() * 100 + nr()));
  const size_t depths[] = {1, 2, 3, 5, 8, 63, 64, 65, 130};
  for (size_t m = 1; m <= 2 * mr(); m += small() ? 3 : 1)
    for (size_t n = 1 + m % 5; n < 2 * nr() + 16; n += small() ? 13 : 7) {
      Case c = of_type();
      c.m = m, c.n = n;
      c.k = depths[size_t(rng.integer(0, small() ? 5 : 8))];
      c.hole = rng.next() % 3 ? 0 : size_t(rng.integer(1, 5));
      c.constant_b = rng.next() % 2, c.transpose_b = rng.next() % 3 == 0, c.bias = rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE;
      c.seed = rng.next();
      check(*context, c);
      if (HasFailure()) return;
    }
}

// Rows of many tiles, and of more than one turn: those that tiles widen ahead of themselves, and what is left over. One
// panel and two.
TEST_P(GemmHalfTile, RowsAheadOfTiles) {
  Rng rng(uint32_t(mr() + 3 * nr()));
  for (size_t m : {3 * mr() + 2, size_t(45), size_t(173)})
    for (size_t n : {size_t(5), nr() - 3, nr(), nr() + 9})
      for (size_t k : {size_t(20), size_t(333)}) {
        if (small() && m * k > 20000) continue;
        Case c = of_type();
        c.m = m, c.n = n, c.k = k;
        c.hole = rng.next() % 2 ? 0 : 3;
        c.constant_b = true, c.bias = rng.next() % 2;
        c.residual = skua_residual(rng.integer(0, 2));
        c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_HARD_SWISH : SKUA_ACTIVATION_RELU;
        if (rng.next() % 4 == 0) c.c_type = SKUA_DTYPE_F32;
        c.seed = rng.next();
        check(*context, c);
        if (HasFailure()) return;
      }
}

// A depth of several passes, which C of f32 keeps sums between: the rows that are left of whole tiles begin where the
// pass does.
TEST_P(GemmHalfTile, RowsOfSeveralPasses) {
  Rng rng(uint32_t(mr() + 5 * nr()));
  for (size_t m : {size_t(2), mr() + 1}) {
    Case c = of_type();
    c.m = m, c.n = nr(), c.k = small() ? 1100 : 4500;
    c.constant_b = true;
    c.c_type = SKUA_DTYPE_F32;
    c.seed = rng.next();
    check(*context, c);
    if (HasFailure()) return;
  }
}

// One row over packed weights: panels side by side and those left over.
TEST_P(GemmHalfTile, OneRow) {
  Rng rng(uint32_t(mr() + 2 * nr()));
  for (size_t n : {4 * nr(), 4 * nr() + 5, 6 * nr() - 3, 9 * nr() + 1})
    for (size_t k : {size_t(7), size_t(64), size_t(130)}) {
      Case c = of_type();
      c.n = n, c.k = k;
      c.constant_b = true, c.bias = rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE;
      if (rng.next() % 3 == 0) c.c_type = SKUA_DTYPE_F32;
      if (rng.next() % 3 == 0) c.numerics = SKUA_NUMERICS_FAST;
      c.hint_m = 1;
      c.seed = rng.next();
      check(*context, c);
      if (HasFailure()) return;
    }
}

// A few groups of rows against a B from beyond the caches: the first group fetches it ahead for the others.
TEST_P(GemmHalfTile, FewRowsOfALargeB) {
  if (small()) GTEST_SKIP() << "large";
  Case c = of_type();
  c.m = mr() + 1, c.n = 5 * nr() + 3, c.k = (size_t(8) << 20) / 2 / c.n + 1;
  c.constant_b = c.bias = true;
  check(*context, c);
}

// Too few panels for equal shares: workers begin and end inside one.
TEST_P(GemmHalfTile, TasksInsidePanels) {
  for (size_t n : {nr() + nr() / 2, 2 * nr() + nr() / 2 + 1}) {
    Case c = of_type();
    c.m = mr(), c.n = n, c.k = 1500;
    c.constant_b = n % 2, c.bias = true;
    c.activation.kind = n % 2 ? SKUA_ACTIVATION_HARD_SWISH : SKUA_ACTIVATION_NONE;
    check(*context, c);
  }
}

// Whole tiles one below the other, with the usual end, at depths of blocks, turns and what is left of each.
TEST_P(GemmHalfTile, WholeTiles) {
  for (size_t k : {1, 6, 8, 15, 23, 64, 70, 129, 200, 256}) {
    Case c = of_type();
    c.m = 2 * mr() + 1, c.n = nr() + 1, c.k = k;
    c.constant_b = k % 2, c.bias = k % 4;
    c.activation.kind = k % 3 ? SKUA_ACTIVATION_RELU6 : SKUA_ACTIVATION_NONE;
    c.numerics = k == 70 ? SKUA_NUMERICS_FAST : SKUA_NUMERICS_DEFAULT;
    c.seed = uint32_t(k);
    check(*context, c);
  }
}

// Turns of rows, strips, and several of both.
TEST_P(GemmHalfTile, ManyRows) {
  Rng rng(uint32_t(mr() + nr()));
  for (size_t m : {29, 83, 260, 700}) {
    if (small() && m > 100) break;
    Case c = of_type();
    c.m = m, c.n = nr() + 5, c.k = m == 260 ? 300 : 33;
    c.constant_b = rng.next() % 2, c.bias = true;
    c.activation.kind = m == 83 ? SKUA_ACTIVATION_HARD_SWISH : SKUA_ACTIVATION_NONE;
    c.seed = rng.next();
    check(*context, c);
  }
}

TEST_P(GemmHalfTile, Mixed) {
  Rng rng(77);
  for (int i = 0; i < (small() ? 12 : 120) && !HasFailure(); ++i) {
    Case c = of_type();
    c.m = size_t(rng.integer(1, rng.next() % 8 ? 20 : 90));
    c.n = size_t(rng.integer(1, rng.next() % 4 ? int(nr()) + 16 : 150));
    c.k = size_t(rng.integer(0, rng.next() % 8 ? 40 : 300));
    c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2;
    c.constant_b = c.k && rng.next() % 2, c.bias = rng.next() % 2;
    if (rng.next() % 2) c.b_type = SKUA_DTYPE_F32;
    if (rng.next() % 3 == 0) c.c_type = SKUA_DTYPE_F32;
    c.alpha = rng.next() % 2 ? 1 : rng.uniform(-2, 2);
    c.beta = rng.next() % 2 ? 0 : rng.uniform(-2, 2);
    c.activation.kind = skua_activation_kind(rng.integer(0, int(SKUA_ACTIVATION_KIND_COUNT) - 1));
    c.activation.a = -0.25f, c.activation.b = 1;
    c.residual = skua_residual(rng.integer(0, 2));
    c.hole = size_t(rng.integer(0, 3));
    for (int d = rng.integer(0, 2); d-- > 0;) c.a_batch.push_back(size_t(rng.integer(1, 2)));
    for (int d = c.constant_b ? 0 : rng.integer(0, 2); d-- > 0;) c.b_batch.push_back(size_t(rng.integer(1, 2)));
    c.seed = rng.next();
    check(*context, c);
  }
}

// In the tile or behind it, in whole tiles as in their parts, at the end of a tile or with the next one: activations
// are of the sum in f32, with a residual before or behind them, and rounded once.
TEST_P(GemmHalfTile, ActivationsAreOfSumsInF32) {
  Case c = of_type();
  if (c.half && c.type == SKUA_DTYPE_F16) return;  // the sums are halves
  for (skua_activation_kind kind : {SKUA_ACTIVATION_HARD_SWISH, SKUA_ACTIVATION_RELU6, SKUA_ACTIVATION_NONE})
    for (size_t m : {2 * mr() + 3, 14 * mr(), size_t(1)})
      for (skua_residual residual :
           {SKUA_RESIDUAL_NONE, SKUA_RESIDUAL_BEFORE_ACTIVATION, SKUA_RESIDUAL_AFTER_ACTIVATION}) {
        const size_t depth = kind == SKUA_ACTIVATION_NONE ? 1 : 7;
        c.m = m, c.n = 2 * nr() + 5, c.k = depth, c.bias = c.constant_b = true;
        c.c_type = c.type, c.residual = residual, c.activation.kind = kind;
        SCOPED_TRACE(c.text());
        Inputs in = inputs_of(c);
        for (float& x : in.a.v) x *= 4;  // from below -3 to above 3, still halves
        if (m > 1) in.a.v[depth] = NAN;
        std::optional<Data> got = compute(*context, c, in);
        Case wide = c;
        wide.c_type = SKUA_DTYPE_F32;
        Inputs as_f32 = in;
        as_f32.residual.t.type = as_f32.c.t.type = SKUA_DTYPE_F32;
        std::optional<Data> want = compute(*context, wide, as_f32);
        ASSERT_TRUE(got && want);
        want->t.type = c.type;
        const std::vector<unsigned char> x = in_memory(*got), y = in_memory(*want);
        for (size_t i = 0; i < got->v.size(); ++i)
          if (std::isnan(want->v[i])) EXPECT_TRUE(std::isnan(got->v[i])) << i;
          else EXPECT_EQ(std::memcmp(&x[i * 2], &y[i * 2], 2), 0) << i << ": " << got->v[i] << " for " << want->v[i];
        if (HasFailure()) return;
      }
}

INSTANTIATE_TEST_SUITE_P(Registry, GemmHalfTile, testing::ValuesIn(tiles()),
                         [](const auto& info) { return std::string(info.param.name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GemmHalfTile);  // a build of f32 alone

// What the cost model chooses; STRICT sums in f32 everywhere, to the bound of f32.
TEST(GemmTypes, WithoutAFilter) {
  Rng rng(3);
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (int i = 0; i < (small() ? 3 : 24); ++i) {
        Case c;
        c.type = c.b_type = c.c_type = type;
        c.numerics = skua_numerics(i % 3);
        c.half = half_arithmetic(isa);
        c.m = size_t(rng.integer(1, i % 5 ? 40 : 200)), c.n = size_t(rng.integer(1, i % 7 ? 100 : 400)),
        c.k = size_t(rng.integer(0, i % 3 || small() ? 50 : 500));
        c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2, c.constant_b = c.k && rng.next() % 2;
        c.seed = rng.next();
        check(context, c);
      }
    }
}

// STRICT rounds no weights that are given as f32, however large, and passes over a filter whose tiles it may not use.
TEST(GemmTypes, StrictKeepsWeightsOfF32) {
  const auto product = [](skua_context* context, skua_dtype type, size_t m, size_t n, size_t k) {
    Case c;
    c.type = type;
    c.constant_b = true;
    c.numerics = SKUA_NUMERICS_STRICT;
    c.m = c.hint_m = m, c.n = n, c.k = k;
    Inputs in = inputs_of(c);
    for (float& v : in.b.v) v *= 0x1p18f;
    if (std::optional<Data> got = compute(context, c, in)) expect_product(c, in, *got);
  };
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    product(context, tile.type, 3, 70, 20);
  }
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      product(context, type, 1, small() ? 70 : 1000, small() ? 20 : 1000);
    }
}

// The reason why a tile is turned down, and the types.
TEST(GemmTypes, ExplainNamesTheTypes) {
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    Case c;
    c.type = c.b_type = c.c_type = tile.type;
    c.constant_b = true, c.m = 3, c.n = 70, c.k = 20;
    const Inputs in = inputs_of(c);
    const skua_gemm_desc desc = desc_of(c, in);
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &desc, in_memory(in.b).data(), nullptr, &op));
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &in.a.t, 1, nullptr, 0, &plan));
    char text[4096];
    skua_plan_explain(plan, text, sizeof text);
    const std::string name = tile.name, type = skua_dtype_name(tile.type), said = text;
    EXPECT_EQ(std::string(skua_plan_kernel(plan)), name);
    const bool half = half_arithmetic(tile.isa);
    EXPECT_NE(said.find("  weights packed as " + (half || name.find("_b16_") != std::string::npos ? type : "f32") +
                        "; sums "),
              std::string::npos)
        << said;
    EXPECT_EQ(said.find("; sums f16, 64 terms at a time, then f32\n") != std::string::npos, half && type == "f16")
        << said;
    skua_plan_destroy(plan);
  }
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      Context context(isa);
      skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
      d.a_type = d.b_type = d.c_type = type;
      d.n = 512, d.k = 1024, d.hint_m = 1;
      Op op;
      SKUA_EXPECT_OK(skua_gemm_create(context, &d, std::vector<uint16_t>(d.n * d.k).data(), nullptr, &op));
      const skua_tensor a = shape({1, d.k}, type);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &a, 1, nullptr, 0, &plan));
      char text[4096];
      skua_plan_explain(plan, text, sizeof text);
      if (strstr(skua_plan_kernel(plan), "_b16_")) {
        EXPECT_NE(strstr(text, (std::string("turned down, the weights are packed as ") + skua_dtype_name(type) +
                                ", this tile reads f32\n")
                                   .c_str()),
                  nullptr)
            << text;
      }
      skua_plan_destroy(plan);
    }
}

// Small integers have exact products and sums in every type, and results that fit.
TEST(GemmTypes, ExactWithIntegers) {
  Rng rng(5);
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    for (int i = 0; i < (small() ? 3 : 12); ++i) {
      Case c;
      c.integers = true;
      c.type = c.b_type = c.c_type = tile.type;
      if (i % 2) c.b_type = SKUA_DTYPE_F32;
      if (c.type == SKUA_DTYPE_BF16) c.c_type = SKUA_DTYPE_F32;
      c.m = size_t(rng.integer(1, 33)), c.n = size_t(rng.integer(1, small() ? 40 : 140)),
      c.k = size_t(rng.integer(0, 25));
      c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2, c.bias = rng.next() % 2,
      c.constant_b = c.k && rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.seed = rng.next();
      check(context, c);
    }
  }
}

// Sums in halves end after 64 terms: 2048 and 64 ones make 2112, where one chain of halves would stay at 2048.
TEST(GemmTypes, SumsOf64Terms) {
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    const size_t n = tile.nr + 3, k = 128;
    const std::vector<float> ones(k * n, 1.0f);
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.c_type = tile.type;
    d.n = n, d.k = k;
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &d, ones.data(), nullptr, &op));
    ASSERT_NE(op.op, nullptr);
    for (size_t m : {size_t(1), size_t(tile.mr), size_t(2 * tile.mr + 1)}) {
      Rng rng(1);
      Data a = make(shape({m, k}, tile.type), rng);
      for (size_t i = 0; i < a.v.size(); ++i) a.v[i] = i % k == 0 ? 2048.0f : i % k < 64 ? 0.0f : 1.0f;
      const std::vector<Data> c = run(op, {a});
      ASSERT_EQ(c.size(), 1u);
      expect_close(c[0], std::vector<double>(m * n, 2112.0), 0.0);
    }
  }
}

// Large values and NaN go through; a sum beyond f16 becomes infinity.
TEST(GemmTypes, SpecialValues) {
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    for (bool constant_b : {false, true}) {
      Case c;
      c.type = c.b_type = c.c_type = tile.type;
      c.m = size_t(tile.mr) + 6, c.n = size_t(tile.nr) + 3, c.k = 6;
      c.constant_b = constant_b;
      c.activation.kind = SKUA_ACTIVATION_RELU;
      Inputs in = inputs_of(c);
      in.a.v[2] = NAN;               // row 0
      in.a.v[c.k + 1] = INFINITY;    // row 1
      in.a.v[4 * c.k + 1] = NAN;     // row 4, which lies behind the rows before it
      in.b.v[c.n + 3] = 0;           // inf * 0
      in.b.v[4 * c.n + c.n - 1] = NAN;
      for (size_t l = 0; l < c.k; ++l) in.a.v[2 * c.k + l] = 60000, in.b.v[l * c.n + 2] = l ? 0.0f : 2.0f;
      std::optional<Data> got = compute(context, c, in);
      ASSERT_TRUE(got);
      for (size_t i = 0; i < c.m; ++i)
        for (size_t j = 0; j < c.n; ++j) {
          const float y = got->v[i * c.n + j];
          if (i == 0 || i == 4 || j == c.n - 1 || (i == 1 && (j == 2 || j == 3)))
            EXPECT_TRUE(std::isnan(y)) << i << ", " << j;
          else if (i == 1) EXPECT_TRUE(in.b.v[c.n + j] > 0 ? std::isinf(y) : y == 0) << i << ", " << j;
          else if (i == 2 && j == 2)
            EXPECT_EQ(y, tile.type == SKUA_DTYPE_F16 ? INFINITY : rounded(tile.type, 2 * rounded(tile.type, 60000)));
          else EXPECT_FALSE(std::isnan(y)) << i << ", " << j;
        }
    }
  }
}

TEST(GemmTypes, MixesThatAreRefusedSayWhy) {
  Context context;
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.n = 4, d.k = 4;
  const float b[16] = {};
  const auto refused = [&](skua_dtype a, skua_dtype weights, skua_dtype c, bool constant, const char* text) {
    d.a_type = a, d.b_type = weights, d.c_type = c;
    d.n = d.k = constant ? 4 : 0;
    Op op;
    EXPECT_EQ(skua_gemm_create(context, &d, constant ? b : nullptr, nullptr, &op), SKUA_STATUS_UNSUPPORTED);
    EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text();
  };
  refused(SKUA_DTYPE_S4, SKUA_DTYPE_F32, SKUA_DTYPE_F32, true, "a_type is s4");
  refused(SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_F32, true, "b_type is f16");
  refused(SKUA_DTYPE_F32, SKUA_DTYPE_F32, SKUA_DTYPE_BF16, true, "c_type is bf16");
  if (half_types().size() < 2) return;
  refused(SKUA_DTYPE_F16, SKUA_DTYPE_F32, SKUA_DTYPE_F16, false, "is f32 and a_type is f16; they must be of one type");
  refused(SKUA_DTYPE_F16, SKUA_DTYPE_BF16, SKUA_DTYPE_F16, true, "b_type is bf16; with a_type f16 it is f32 or f16");
  refused(SKUA_DTYPE_BF16, SKUA_DTYPE_BF16, SKUA_DTYPE_F16, true, "c_type is f16; with a_type bf16 it is f32 or bf16");
  if (int8_types().empty()) return;
  refused(SKUA_DTYPE_F16, SKUA_DTYPE_S4, SKUA_DTYPE_F16, false, "b is NULL, with quantised weights");
}

}  // namespace
