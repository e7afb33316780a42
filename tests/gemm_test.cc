// Matrix products: every tile of the registry against a product in double.
#include <cstdlib>
#include <memory>

#include "gemm/driver.h"
#include "tests/support/gemm_case.h"

using namespace skua_test;

namespace {

struct Tile : skua_kernel_info {};
void PrintTo(const Tile& tile, std::ostream* os) { *os << tile.name; }

const std::vector<Tile>& tiles() {
  static const std::vector<Tile> list = [] {
    std::vector<Tile> found;
    for (const skua_kernel_info& info : kernels("gemm_f32_")) found.push_back({info});
    return found;
  }();
  return list;
}

// Depths around the unroll of four and the registers, and one that takes wide tiles more than one pass.
const std::vector<size_t> kDepths = {0, 1, 3, 4, 5, 63, 64, 65, 4001};

class GemmTile : public testing::TestWithParam<Tile> {
 protected:
  void SetUp() override { context = std::make_unique<Context>(GetParam().isa, GetParam().name); }
  size_t mr() const { return GetParam().mr; }
  size_t nr() const { return GetParam().nr; }
  std::unique_ptr<Context> context;
};

TEST_P(GemmTile, IsTheOneThatRuns) {
  Case c;
  c.m = 2 * mr(), c.n = 2 * nr(), c.k = 8;
  const Inputs in = inputs_of(c);
  const skua_gemm_desc desc = desc_of(c, in);
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(*context, &desc, nullptr, nullptr, &op));
  skua_plan* plan = nullptr;
  const skua_tensor shapes[] = {in.a.t, in.b.t};
  SKUA_EXPECT_OK(skua_op_plan(op, shapes, 2, nullptr, 0, &plan));
  EXPECT_STREQ(skua_plan_kernel(plan), GetParam().name);
  skua_plan_destroy(plan);
}

// Every number of rows and of columns of the last row group and the last panel, in each of the three ways that B can
// come.
TEST_P(GemmTile, EveryTail) {
  Rng rng(uint32_t(mr() * 100 + nr()));
  const size_t lanes = 16, step = small() ? 5 : 1;
  for (size_t m = 1; m <= 2 * mr(); ++m)
    for (size_t n = 1 + (m - 1) % step; n < 2 * nr() + lanes; n += step) {
      Case c;
      c.m = m, c.n = n;
      c.k = kDepths[size_t(rng.integer(1, 7))];
      c.hole = rng.next() % 3 ? 0 : size_t(rng.integer(1, 5));
      c.constant_b = rng.next() % 2, c.transpose_b = rng.next() % 3 == 0;
      c.seed = rng.next();
      check(*context, c);
      if (HasFailure()) return;
    }
}

// Panels with fewer vectors of columns take more rows at a time where rows are evenly spaced, and small B's take turns
// of rows: around those numbers of rows.
TEST_P(GemmTile, ManyRows) {
  Rng rng(uint32_t(mr() * 100 + nr() + 1));
  const size_t lanes = 16, step = small() ? 7 : 3;
  for (size_t m : {7, 9, 10, 13, 14, 15, 27, 29, 57, 83, 84, 85, 183})
    for (size_t n = 1 + m % step; n < nr() + lanes; n += step) {
      Case c;
      c.m = m, c.n = n;
      c.k = kDepths[size_t(rng.integer(1, m > 50 ? 4 : 7))];
      c.hole = rng.next() % 3 ? 0 : size_t(rng.integer(1, 5));
      c.constant_b = rng.next() % 2, c.transpose_b = rng.next() % 3 == 0, c.bias = rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU : SKUA_ACTIVATION_HARD_SWISH;
      c.seed = rng.next();
      check(*context, c);
      if (HasFailure()) return;
    }
}

// Tiles of one vector of columns, or of a part of one: some below each other, to the last column and no further.
TEST_P(GemmTile, PartsOfAVector) {
  Rng rng(uint32_t(mr() * 100 + nr() + 8));
  const float low[] = {-INFINITY, 0, -0.5f}, high[] = {INFINITY, INFINITY, 0.25f};
  for (size_t m : {14, 28, 43})
    for (size_t n = 1; n <= 16; n += small() ? 3 : 1)
      for (size_t k : {4, 21})
        for (int bounds = 0; bounds < 3; ++bounds) {
          Case c;
          c.m = m, c.n = n, c.k = k;
          c.hole = rng.next() % 2 ? 0 : size_t(rng.integer(1, 20));
          c.constant_b = true, c.bias = rng.next() % 2;
          if (bounds) c.activation = {SKUA_ACTIVATION_CLAMP, low[bounds], high[bounds]};
          c.seed = rng.next();
          check(*context, c);
          if (HasFailure()) return;
        }
}

// Rows 4096 bytes apart fall into one set of L1: fewer of them are taken at a time.
TEST_P(GemmTile, RowsThatShareASetOfL1) {
  Rng rng(uint32_t(mr() * 100 + nr() + 7));
  for (size_t m : {13, 14, 28, 31, 57})
    for (size_t n = 3; n < nr() + 16; n += small() ? 9 : 4) {
      Case c;
      c.m = m, c.n = n;
      c.k = kDepths[size_t(rng.integer(1, 7))] % 1024;
      c.hole = 1024 - c.k;
      c.constant_b = true, c.bias = rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU : SKUA_ACTIVATION_HARD_SWISH;
      c.seed = rng.next();
      check(*context, c);
      if (HasFailure()) return;
    }
}

// The only row of C takes two panels of a packed B at a time; large enough, workers share the panels.
TEST_P(GemmTile, OneRow) {
  Rng rng(uint32_t(mr() * 100 + nr() + 2));
  for (size_t n = 1; n <= 4 * nr() + 16; n += small() ? 5 : 1) {
    Case c;
    c.n = n, c.constant_b = true;
    c.k = size_t(rng.integer(1, 40));
    c.bias = rng.next() % 2, c.alpha = rng.next() % 2 ? 1.0f : -0.5f, c.beta = rng.next() % 3 ? 0.0f : 2.0f;
    c.residual = skua_residual(rng.integer(0, 2));
    c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU : SKUA_ACTIVATION_HARD_SWISH;
    c.seed = rng.next();
    check(*context, c);
    if (HasFailure()) return;
  }
  Case c;
  c.n = 8 * nr() + 9, c.k = 3500, c.constant_b = c.bias = true;
  c.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  c.activation.kind = SKUA_ACTIVATION_HARD_SWISH;
  check(*context, c);
  c.k = (size_t(8) << 20) / sizeof(float) / c.n + 1;  // read as streams, or fetched ahead
  check(*context, c);
}

// A few groups of rows against a B from beyond the caches: the first group fetches it ahead for the others.
TEST_P(GemmTile, FewRowsOfALargeB) {
  if (small()) GTEST_SKIP() << "large";
  Case c;
  c.m = mr() + 1, c.n = 5 * nr() + 3, c.k = (size_t(8) << 20) / sizeof(float) / c.n + 1;
  c.constant_b = c.bias = true;
  c.activation.kind = SKUA_ACTIVATION_RELU;
  check(*context, c);
}

// Too few panels for equal shares: workers begin and end inside one.
TEST_P(GemmTile, TasksInsidePanels) {
  for (size_t n : {nr() + nr() / 2, 2 * nr() + nr() / 2 + 1})
    for (bool constant : {false, true}) {
      Case c;
      c.m = mr(), c.n = n, c.k = 1500;
      c.constant_b = c.bias = constant;
      c.residual = constant ? SKUA_RESIDUAL_AFTER_ACTIVATION : SKUA_RESIDUAL_NONE;
      c.activation.kind = constant ? SKUA_ACTIVATION_HARD_SWISH : SKUA_ACTIVATION_NONE;
      check(*context, c);
    }
}

TEST_P(GemmTile, EveryDepth) {
  for (size_t k : kDepths)
    for (size_t m : {size_t(1), mr(), mr() + 1})
      for (int how = 0; how < 4; ++how) {
        Case c;
        c.m = m, c.n = nr() + (k > 100 ? 1 : 3), c.k = k;
        c.transpose_b = how & 1, c.constant_b = how & 2;
        if (c.constant_b && !k) continue;
        c.bias = k == 0;
        c.seed = uint32_t(k + m);
        check(*context, c);
        if (small() && k > 100) break;
      }
}

// The smallest power of two plus one that this machine's caches make the tile take in several passes.
size_t depth_of_several_passes(skua_context* context, size_t m, size_t n) {
  const skua_gemm_desc desc = SKUA_GEMM_DESC_INIT;
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(context, &desc, nullptr, nullptr, &op));
  for (size_t k = 513; k < size_t(1) << 22; k += k - 1) {
    const skua_tensor shapes[] = {shape({m, k}), shape({k, n})};
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, shapes, 2, nullptr, 0, &plan));
    char text[4096];
    skua_plan_explain(plan, text, sizeof text);
    skua_plan_destroy(plan);
    const char* at = std::strstr(text, " of K per pass");
    while (at && at > text && at[-1] != ' ') --at;
    if (at && std::strtoull(at, nullptr, 10) < k) return k;
  }
  ADD_FAILURE() << "no depth takes several passes";
  return 1;
}

TEST_P(GemmTile, SeveralPasses) {
  Case c;
  c.m = small() ? 2 : mr() + 1, c.n = small() ? 9 : nr() + 1;
  c.k = depth_of_several_passes(*context, c.m, c.n);
  if (!small()) check(*context, c);
  c.bias = true, c.activation.kind = SKUA_ACTIVATION_RELU, c.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
  check(*context, c);
  c.constant_b = true, c.alpha = -0.5f;
  if (!small()) check(*context, c);
  c.beta = 2;  // C is read: it cannot hold partial sums meanwhile
  check(*context, c);
}

// Rows that go in turns over all panels, in several passes over the depth: every turn adds to what its rows had before.
TEST_P(GemmTile, TurnsOfRowsInSeveralPasses) {
  if (small()) GTEST_SKIP() << "large";
  Case c;
  // a pass covers at most L2 / 2 of a panel, a turn at most L2 / 2 of A
  c.m = std::max(7 * nr(), size_t(96)), c.n = nr() + 1;
  c.k = depth_of_several_passes(*context, c.m, c.n);
  c.constant_b = true;
  check(*context, c);
}

TEST_P(GemmTile, TransposesAlphaBetaAndHoles) {
  uint32_t seed = 1;
  for (int bits = 0; bits < 8; ++bits)
    for (float alpha : {1.0f, -0.75f, 0.0f})
      for (float beta : {0.0f, 1.0f, -2.5f}) {
        Case c;
        c.transpose_a = bits & 1, c.transpose_b = bits & 2, c.constant_b = bits & 4;
        c.alpha = alpha, c.beta = beta, c.hole = seed % 3, c.bias = seed % 2;
        c.m = 1 + seed * 7 % (2 * mr() + 1), c.n = 1 + seed * 11 % (nr() + 9), c.k = 1 + seed * 5 % 37;
        c.seed = seed++;
        check(*context, c);
      }
}

TEST_P(GemmTile, EveryActivationAndResidual) {
  uint32_t seed = 1;
  for (int kind = SKUA_ACTIVATION_NONE; kind < SKUA_ACTIVATION_KIND_COUNT; ++kind)
    for (int residual = SKUA_RESIDUAL_NONE; residual <= SKUA_RESIDUAL_AFTER_ACTIVATION; ++residual) {
      Case c;
      c.m = mr() + 1, c.n = nr() + 1 + seed % 5, c.k = 9 + seed % 7;
      c.activation.kind = skua_activation_kind(kind);
      if (kind == SKUA_ACTIVATION_CLAMP) c.activation.a = -0.5f, c.activation.b = 0.75f;
      if (kind == SKUA_ACTIVATION_LEAKY_RELU || kind == SKUA_ACTIVATION_ELU) c.activation.a = 0.3f;
      c.residual = skua_residual(residual);
      c.bias = seed % 2;
      c.beta = seed % 3 == 2 ? 0.5f : 0.0f;
      c.hole = seed % 4 == 3;
      c.dense_c = seed % 8 == 7;
      c.constant_b = seed % 5 < 2;
      c.seed = seed++;
      check(*context, c);
    }
}

// Whole tiles of a whole depth, clamped on one side.
TEST_P(GemmTile, OneBound) {
  for (size_t n : {size_t(16), nr()})
    for (bool low : {false, true}) {
      Case c;
      c.m = 3 * mr() + 1, c.n = n, c.k = 20;
      c.activation = {SKUA_ACTIVATION_CLAMP, low ? -0.25f : -std::numeric_limits<float>::infinity(),
                      low ? std::numeric_limits<float>::infinity() : 0.25f};
      c.bias = true;
      c.constant_b = true;
      check(*context, c);
    }
}

// In the tile or by the unary function, behind the only row as behind many: the same bits, from below -3 to above 3 and
// for NaN.
TEST_P(GemmTile, HardSwishIsTheUnaryFunction) {
  Case c;
  c.m = 2 * mr() + 3, c.n = 2 * nr() + 5, c.k = 7, c.bias = c.constant_b = true;
  Inputs in = inputs_of(c);
  for (float& x : in.a.v) x *= 4;
  in.a.v[c.k] = NAN;
  std::optional<Data> sums = compute(*context, c, in);
  c.activation.kind = SKUA_ACTIVATION_HARD_SWISH;
  std::optional<Data> got = compute(*context, c, in);
  ASSERT_TRUE(sums && got);
  skua_unary_desc desc = SKUA_UNARY_DESC_INIT;
  desc.kind = SKUA_UNARY_HARD_SWISH;
  Op op;
  SKUA_EXPECT_OK(skua_unary_create(*context, &desc, &op));
  const std::vector<Data> want = run(op, {*sums});
  ASSERT_EQ(want.size(), 1u);
  EXPECT_EQ(std::memcmp(want[0].v.data(), got->v.data(), got->v.size() * sizeof(float)), 0);
  Case one = c;
  one.m = 1;
  Inputs first = in;
  Rng rng(1);
  first.a = make(shape({1, c.k}), rng);
  std::copy_n(in.a.v.begin(), c.k, first.a.v.begin());
  first.c.t = shape({1, c.n});
  std::optional<Data> row = compute(*context, one, first);
  ASSERT_TRUE(row);
  EXPECT_EQ(std::memcmp(row->v.data(), got->v.data(), c.n * sizeof(float)), 0);
}

TEST_P(GemmTile, BatchesBroadcast) {
  const std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>> batches = {
      {{3}, {3}}, {{3}, {}}, {{}, {3}}, {{2, 1}, {3}}, {{1}, {4}}, {{2, 3}, {2, 1}}, {{2, 1, 3}, {2, 3}},
      {{1, 2, 1, 2}, {2, 1, 3, 1}}, {{0}, {1}}, {{2, 0}, {}}, {{4, 5}, {4, 5}}};
  uint32_t seed = 1;
  for (const auto& [a, b] : batches)
    for (int how = 0; how < 6; ++how) {
      Case c;
      c.a_batch = a, c.b_batch = b;
      c.transpose_a = how & 1;
      c.transpose_b = how >= 2 && how < 4;
      c.constant_b = how >= 4;
      if (c.constant_b) c.b_batch = {};
      c.m = how == 3 ? 66 : mr() + 1;  // above 64 rows B is packed as a whole, but of many products panel by panel
      c.n = nr() + 5, c.k = 11;
      c.hole = seed % 2;
      c.residual = skua_residual(seed % 3);
      c.beta = seed % 4 == 3 ? 2.0f : 0.0f;
      c.seed = seed++;
      check(*context, c);
      if (small()) break;
    }
}

// Random combinations of everything above.
TEST_P(GemmTile, Mixed) {
  Rng rng(77);
  for (int i = 0; i < (small() ? 12 : 250) && !HasFailure(); ++i) {
    Case c;
    c.m = size_t(rng.integer(1, rng.next() % 8 ? 20 : 90));
    c.n = size_t(rng.integer(1, rng.next() % 4 ? int(nr()) + 16 : 150));
    c.k = size_t(rng.integer(0, rng.next() % 8 ? 40 : 700));
    c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2;
    c.constant_b = c.k && rng.next() % 2, c.bias = rng.next() % 2;
    c.alpha = rng.next() % 2 ? 1 : rng.uniform(-2, 2);
    c.beta = rng.next() % 2 ? 0 : rng.uniform(-2, 2);
    c.activation.kind = skua_activation_kind(rng.integer(0, 3));
    c.activation.a = -0.25f, c.activation.b = 1;
    c.residual = skua_residual(rng.integer(0, 2));
    c.hole = size_t(rng.integer(0, 3));
    for (int d = rng.integer(0, 2); d-- > 0;) c.a_batch.push_back(size_t(rng.integer(1, 2)));
    for (int d = c.constant_b ? 0 : rng.integer(0, 2); d-- > 0;) c.b_batch.push_back(size_t(rng.integer(1, 2)));
    c.seed = rng.next();
    check(*context, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, GemmTile, testing::ValuesIn(tiles()),
                         [](const auto& info) { return std::string(info.param.name); });

// With small integers every order of summation is exact: all tiles give the bits of the reference.
TEST(Gemm, ExactWithIntegers) {
  Rng rng(5);
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    for (int i = 0; i < (small() ? 3 : 40); ++i) {
      Case c;
      c.integers = true;
      c.m = size_t(rng.integer(1, 33)), c.n = size_t(rng.integer(1, small() ? 40 : 140)),
      c.k = size_t(rng.integer(0, small() ? 30 : 300));
      c.alpha = float(rng.integer(-2, 2)), c.beta = float(rng.integer(-2, 2));
      c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2, c.bias = rng.next() % 2;
      c.residual = skua_residual(rng.integer(0, 2));
      c.activation.kind = rng.next() % 2 ? SKUA_ACTIVATION_RELU : SKUA_ACTIVATION_NONE;
      c.seed = rng.next();
      check(context, c);
    }
  }
}

// Each element is one chain over k: all tiles of an instruction set, and all the ways that B can come, give the same
// bits.
TEST(Gemm, TilesOfAnInstructionSetAgreeToTheBit) {
  for (const char* isa : isas())
    for (size_t k : {size_t(17), size_t(64), size_t(1001)}) {
      if (small() && k > 64) continue;
      std::optional<Data> first;
      for (const Tile& tile : tiles()) {
        if (std::strcmp(tile.isa, isa)) continue;
        SCOPED_TRACE(tile.name);
        Context context(isa, tile.name);
        Case c;
        c.m = 13, c.n = size_t(small() ? 27 : 75), c.k = k;
        Inputs in = inputs_of(c);
        for (int constant = 0; constant < 2; ++constant) {
          c.constant_b = constant;
          std::optional<Data> got = compute(context, c, in);
          ASSERT_TRUE(got);
          if (!first) first = got;
          expect_same_bits(*got, *first);
        }
        // The same matrix among 70 rows: packed as a whole instead of read in place.
        Case tall = c;
        tall.constant_b = false;
        tall.m = 70;
        Inputs more = inputs_of(tall);
        std::copy(in.a.v.begin(), in.a.v.end(), more.a.v.begin());
        more.b = in.b;
        std::optional<Data> got = compute(context, tall, more);
        ASSERT_TRUE(got);
        got->t = in.c.t;
        got->v.resize(extent(in.c.t));
        expect_same_bits(*got, *first);
      }
    }
}

// A filter may name a tile below the context's instruction set; its panels have narrower vectors than the packing
// kernel of the best one.
TEST(Gemm, EveryTileInTheContextOfTheHighestInstructionSet) {
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(isas().back(), tile.name);
    for (size_t n :
         {size_t(1), size_t(5), size_t(tile.nr), size_t(tile.nr) + 1, size_t(tile.nr) + 8, size_t(2 * tile.nr) + 12})
      for (int how = 0; how < 6; ++how) {
        Case c;
        c.m = how == 5 ? 66 : 7, c.n = n, c.k = 21;
        c.constant_b = how & 1;
        c.transpose_b = how & 2;
        c.transpose_a = how == 4;
        c.bias = true;
        check(context, c);
      }
  }
}

// The kernel of the plan of a case without a constant B.
std::string planned(skua_context* context, const Case& c) {
  const Inputs in = inputs_of(c);
  const skua_gemm_desc desc = desc_of(c, in);
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(context, &desc, nullptr, c.bias ? in.bias.data() : nullptr, &op));
  skua_plan* plan = nullptr;
  const skua_tensor shapes[] = {in.a.t, in.b.t, in.residual.t};
  SKUA_EXPECT_OK(skua_op_plan(op, shapes, c.residual == SKUA_RESIDUAL_NONE ? 2 : 3, nullptr, 0, &plan));
  const std::string name = plan ? skua_plan_kernel(plan) : "";
  skua_plan_destroy(plan);
  return name;
}

// A few rows by the rows of a B that lies transposed: every such kernel, forced for more rows than it is chosen for, at
// depths and columns around its vectors, with all that an end has.
TEST(Gemm, RowsByRows) {
  Rng rng(11);
  for (const skua_kernel_info& kernel : kernels("gemm_transposed_")) {
    SCOPED_TRACE(kernel.name);
    Context context(kernel.isa, kernel.name);
    const size_t lanes = !std::strcmp(kernel.isa, "scalar") ? 1 : !std::strcmp(kernel.isa, "avx512") ? 16
                         : !std::strcmp(kernel.isa, "avx2") ? 8 : 4;
    const bool half = kernel.type != SKUA_DTYPE_F32;
    for (size_t m : {1, 2, 3, 5, 8, 9})
      for (size_t n : {lanes - 1, lanes, lanes + 1, size_t(63), size_t(64), size_t(65), size_t(131)})
        for (size_t k : {size_t(0), size_t(1), lanes - 1, lanes, lanes + 1, 2 * lanes + 3, 4 * lanes, size_t(150)}) {
          if (small() && (m + n + k) % 3 != 0) continue;
          Case c;
          c.type = c.b_type = c.c_type = kernel.type;
          c.m = m, c.n = n, c.k = k, c.seed = rng.next();
          c.transpose_b = true;
          c.transpose_a = rng.next() % 4 == 0;
          c.bias = rng.next() % 2;
          c.hole = rng.next() % 3;
          c.residual = skua_residual(rng.next() % 3);
          if (half && rng.next() % 3 == 0) c.c_type = SKUA_DTYPE_F32;
          if (rng.next() % 3 == 0) c.alpha = -0.5f, c.beta = rng.next() % 2 ? 0.75f : 0;
          const uint32_t activation = rng.next() % 4;
          if (activation == 1) c.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
          if (activation == 2 && c.c_type == SKUA_DTYPE_F32) c.activation.kind = SKUA_ACTIVATION_TANH;
          if (rng.next() % 3 == 0) c.a_batch = {2, 1}, c.b_batch = {1, 3};
          EXPECT_EQ(planned(context, c) == kernel.name, n >= lanes) << c.text();
          check(context, c);
        }
    Case c;
    c.type = c.b_type = c.c_type = kernel.type;
    c.m = 2, c.n = 70, c.k = 43;
    c.transpose_b = true;
    Inputs in = inputs_of(c);
    const skua_gemm_desc desc = desc_of(c, in);
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &desc, nullptr, nullptr, &op));
    skua_plan* plan = nullptr;
    const skua_tensor shapes[] = {in.a.t, in.b.t};
    SKUA_EXPECT_OK(skua_op_plan(op, shapes, 2, nullptr, 0, &plan));
    EXPECT_STREQ(skua_plan_kernel(plan), kernel.name);
    EXPECT_EQ(skua_plan_workspace(plan, 8), 0u);
    skua_plan_destroy(plan);
    // A row's bits do not depend on how many there are.
    Case nine = c, one = c;
    nine.m = 9, one.m = 1;
    const Inputs rows = inputs_of(nine);
    const std::optional<Data> all = compute(context, nine, rows);
    ASSERT_TRUE(all);
    for (size_t i = 0; i < nine.m; ++i) {
      Inputs row = inputs_of(one);
      row.b = rows.b;
      std::copy_n(rows.a.v.begin() + ptrdiff_t(i * c.k), c.k, row.a.v.begin());
      const std::optional<Data> got = compute(context, one, row);
      ASSERT_TRUE(got);
      for (size_t j = 0; j < c.n; ++j) EXPECT_EQ(got->v[j], all->v[i * c.n + j]) << "row " << i << ", column " << j;
    }
    // What it may not do, whatever the filter says: STRICT, and functions of sums that are halves by then.
    Case strict = c, function = c;
    strict.numerics = SKUA_NUMERICS_STRICT;
    function.activation.kind = SKUA_ACTIVATION_TANH;
    EXPECT_NE(planned(context, strict), kernel.name);
    EXPECT_EQ(planned(context, function) != kernel.name, half);
    check(context, function);
    // A NaN or an infinity is met by its row and its column alone; zeros behind the depth meet nothing.
    in.a.v[3] = NAN;
    in.b.v[size_t(c.n - 1) * c.k + 5] = INFINITY;
    in.b.v[size_t(c.n - 2) * c.k + c.k - 1] = -INFINITY;
    std::optional<Data> got = compute(context, c, in);
    ASSERT_TRUE(got);
    expect_product(c, in, *got);
  }
}

// Which rows go so without a filter; fewer columns than the longest vector has go by a shorter one.
TEST(Gemm, RowsByRowsAreChosenForFewRows) {
  Context context;
  const auto goes = [&](size_t m, size_t n, size_t k) {
    Case c;
    c.m = m, c.n = n, c.k = k, c.transpose_b = true;
    return planned(context, c).rfind("gemm_transposed_", 0) == 0;
  };
  for (size_t n : {8, 15, 16, 100}) {  // builds for sanitizers have no vectors of four on x86
    EXPECT_TRUE(goes(1, n, 64)) << n;
    EXPECT_TRUE(goes(4, n, 64)) << n;
  }
  EXPECT_FALSE(goes(9, 100, 64));
  EXPECT_TRUE(goes(2, 100, 4096));
  EXPECT_FALSE(goes(4, 100, 4096) && !std::strcmp(skua_context_isa(context), "avx512"));
}

// STRICT keeps each element one chain in the order of k: the same bits from a B that lies transposed, of few rows too.
TEST(Gemm, StrictRowsByRowsAreChains) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Case c;
    c.m = 2, c.n = 67, c.k = 150;
    c.numerics = SKUA_NUMERICS_STRICT;
    const Inputs in = inputs_of(c);
    Inputs transposed = in;
    Case other = c;
    other.transpose_b = true;
    transposed.b = inputs_of(other).b;
    for (size_t l = 0; l < c.k; ++l)
      for (size_t j = 0; j < c.n; ++j) transposed.b.v[j * c.k + l] = in.b.v[l * c.n + j];
    const std::optional<Data> want = compute(context, c, in), got = compute(context, other, transposed);
    ASSERT_TRUE(want && got);
    expect_same_bits(*got, *want);
  }
}

// What the cost model chooses, for shapes from one element to several panels and row groups.
TEST(Gemm, WithoutAFilter) {
  Rng rng(3);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (int i = 0; i < (small() ? 3 : 60); ++i) {
      Case c;
      c.m = size_t(rng.integer(1, i % 5 ? 40 : 200)), c.n = size_t(rng.integer(1, i % 7 ? 100 : 400)),
      c.k = size_t(rng.integer(0, i % 3 || small() ? 50 : 500));
      c.transpose_a = rng.next() % 2, c.transpose_b = rng.next() % 2, c.constant_b = c.k && rng.next() % 2;
      c.seed = rng.next();
      check(context, c);
    }
  }
}

TEST(Gemm, EmptyMatrices) {
  Context context;
  for (size_t m : {0, 3})
    for (size_t n : {0, 5})
      for (size_t k : {0, 4})
        for (int transposed = 0; transposed < 4; ++transposed) {
          Case c;
          c.m = m, c.n = n, c.k = k;
          c.transpose_a = transposed & 1, c.transpose_b = transposed & 2;
          c.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
          c.beta = 1;
          check(context, c);
        }
}

// The same B for all of a batch, said with a stride of 0 instead of an extent of 1.
TEST(Gemm, BatchStrideZero) {
  Context context;
  for (size_t m : {3, 70})
    for (bool transpose_b : {false, true}) {
      Case c;
      c.m = m, c.n = 19, c.k = 6, c.transpose_b = transpose_b;
      c.a_batch = {2, 3}, c.b_batch = {2, 3};
      Inputs in = inputs_of(c);
      in.b.t.stride[1] = 0;
      in.b.v.resize(extent(in.b.t));
      std::optional<Data> got = compute(context, c, in);
      ASSERT_TRUE(got);
      expect_product(c, in, *got);
    }
}

TEST(Gemm, SpecialValues) {
  const float inf = INFINITY, nan = NAN;
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    const bool flushes = !std::strcmp(tile.isa, "neon32");
    Context context(tile.isa, tile.name);
    for (bool constant_b : {false, true})
      for (int activation : {SKUA_ACTIVATION_NONE, SKUA_ACTIVATION_RELU, SKUA_ACTIVATION_RELU6}) {
        Case c;
        c.m = size_t(tile.mr) + 2, c.n = size_t(tile.nr) + 3, c.k = 6;
        c.constant_b = constant_b;
        c.activation.kind = skua_activation_kind(activation);
        Inputs in = inputs_of(c);
        auto a = [&](size_t i, size_t l) -> float& { return in.a.v[i * c.k + l]; };
        auto b = [&](size_t l, size_t j) -> float& { return in.b.v[l * c.n + j]; };
        a(0, 2) = nan;                  // row 0: NaN
        a(1, 1) = inf;                  // row 1: infinities of B's sign
        b(1, 3) = 0;                    // inf * 0
        a(c.m - 1, 0) = inf;            // last row: inf - inf
        a(c.m - 1, 5) = -inf;
        b(4, c.n - 1) = nan;            // last column: NaN
        b(0, 1) = -inf;
        for (size_t l = 0; l < c.k; ++l) a(2, l) = -0.0f, b(l, 2) = 0.0f;  // signed zeros
        b(2, 5 % c.n) = 1e-40f;         // a denormal
        std::optional<Data> got = compute(context, c, in);
        ASSERT_TRUE(got);
        expect_product(c, in, *got);
      }
    // Denormals come through where the instruction set has them; what is too large becomes infinity.
    Case c;
    c.m = 2, c.n = tile.nr, c.k = 2;
    Inputs in = inputs_of(c);
    in.a.v = {1, 0, 3e38f, 3e38f};
    for (size_t j = 0; j < c.n; ++j) in.b.v[j] = 1e-40f, in.b.v[c.n + j] = 2;
    std::optional<Data> got = compute(context, c, in);
    ASSERT_TRUE(got);
    for (size_t j = 0; j < c.n; ++j) {
      EXPECT_EQ(got->v[j], flushes ? 0.0f : 1e-40f);
      EXPECT_EQ(got->v[c.n + j], inf);
    }
  }
}

// Where multiply and add are fused, products too small for a denormal leave a sum of -0, which no bias that is not
// there may make 0.
TEST(Gemm, MinusZeroStays) {
  for (const Tile& tile : tiles()) {
    if ((std::strcmp(tile.isa, "avx2") && std::strcmp(tile.isa, "avx512")) || !std::strstr(tile.name, "gemm_f32_"))
      continue;
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    Case c;
    c.m = 29, c.n = 2 * size_t(tile.nr), c.k = 13;
    Inputs in = inputs_of(c);
    for (float& x : in.a.v) x = -1e-30f;
    for (float& x : in.b.v) x = 1e-30f;
    std::optional<Data> got = compute(context, c, in);
    ASSERT_TRUE(got);
    for (float y : got->v) ASSERT_TRUE(y == 0 && std::signbit(y)) << y;
  }
}

// With beta 0 C is only written (run() fills it with NaN); with beta its NaN counts.
TEST(Gemm, BetaReadsC) {
  for (const Tile& tile : tiles()) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    Case c;
    c.m = 3, c.n = size_t(tile.nr) + 1, c.k = 5, c.beta = 0.5f;
    Inputs in = inputs_of(c);
    in.c.v[1] = NAN;
    in.c.v[2] = INFINITY;
    std::optional<Data> got = compute(context, c, in);
    ASSERT_TRUE(got);
    expect_product(c, in, *got);
    EXPECT_TRUE(std::isnan(got->v[1]));
  }
}

TEST(Gemm, F32InOneCall) {
  Rng rng(9);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (int i = 0; i < (small() ? 10 : 100); ++i) {
      const size_t m = size_t(rng.integer(0, i % 4 ? 12 : 80)), n = size_t(rng.integer(0, 70)),
                   k = size_t(rng.integer(0, 70));
      const size_t more = size_t(rng.integer(0, 3));
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " + " << more);
      const Data a = make(with_holes(shape({m, k}), {0, more}), rng),
                 b = make(with_holes(shape({k, n}), {0, more}), rng);
      const skua_tensor c = with_holes(shape({m, n}), {0, more});
      for (bool at_end : {true, false})
        for (uint32_t workers : {0, 3}) {
          Guarded ga(a.v.size(), at_end), gb(b.v.size(), at_end), gc(extent(c), at_end);
          std::copy(a.v.begin(), a.v.end(), ga.data());
          std::copy(b.v.begin(), b.v.end(), gb.data());
          std::fill_n(gc.data(), gc.size(), 12345.0f);
          ga.read_only(), gb.read_only();
          Shuffled executor(workers ? workers : 1);
          SKUA_EXPECT_OK(skua_gemm_f32(context, m, n, k, ga.data(), k + more, gb.data(), n + more, gc.data(), n + more,
                                       workers ? &executor.executor : nullptr));
          Data got{c, {gc.data(), gc.data() + gc.size()}};
          for (size_t row = 0; row + 1 < m; ++row)
            for (size_t j = n; n && j < n + more; ++j) EXPECT_EQ(got.v[row * (n + more) + j], 12345.0f);
          Case as;
          as.m = m, as.n = n, as.k = k;
          Inputs in;
          in.a = a, in.b = b;
          expect_product(as, in, got);
        }
    }
  }
}

// How products are cut is the model's, for the tiles that it takes: one that it would not take may be cut badly.
std::vector<const char*> isas_of_tiles() {
  std::vector<const char*> found;
  for (const Tile& t : tiles())
    if (std::none_of(found.begin(), found.end(), [&](const char* isa) { return !strcmp(isa, t.isa); }))
      found.push_back(t.isa);
  return found;
}

// Each piece of rows reads all of its columns of B: where those come from beyond L2, two workers halve the columns.
TEST(Gemm, TasksReadALargeBOnce) {
  for (const char* isa : isas_of_tiles()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    const size_t m = 128, n = 1536, k = 4608;  // 28 MB
    const skua::Kernel* tile = skua::choose_tile(context, m, n, k, nullptr);
    skua_executor executor = {nullptr, 2, nullptr};
    const skua::RunArgs args = {nullptr, nullptr, nullptr, nullptr, &executor};
    const skua::TaskGrid grid = skua::cut_tasks(args, skua::KeptGrid{}, tile, m, m, n, k);
    EXPECT_EQ(grid.rows, 1u);
    EXPECT_EQ(grid.columns % 2, 0u);
  }
}

// Tasks cover C once, and where panels are few no worker has much more than its share of the columns: 160 columns are
// 96 and 64 in whole panels of 48 or of 64.
TEST(Gemm, TasksAreEqualShares) {
  for (const char* isa : isas_of_tiles()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (size_t n : {64, 80, 96, 160, 192, 320, 1000}) {
      skua::KeptGrid kept = {};  // what it holds is of other rows and workers, until it is asked again
      for (size_t m : {49, 196})
        for (uint32_t workers : {2, 3, 4, 7}) {
          const size_t k = 576;
          const skua::Kernel* tile = skua::choose_tile(context, m, n, k, nullptr);
          skua_executor executor = {nullptr, workers, nullptr};
          const skua::RunArgs args = {nullptr, nullptr, nullptr, nullptr, &executor};
          const skua::TaskGrid grid = skua::cut_tasks(args, skua::KeptGrid{}, tile, m, m, n, k);
          for (int again = 0; again < 2; ++again) {
            const skua::TaskGrid same = skua::cut_tasks(args, kept, tile, m, m, n, k);
            EXPECT_TRUE(same.rows == grid.rows && same.columns == grid.columns && same.grain == grid.grain);
          }
          SCOPED_TRACE(testing::Message() << m << " rows, " << n << " columns, " << workers << " workers: " << grid.rows
                                          << " x " << grid.columns << " tasks of " << grid.grain);
          const size_t tasks = grid.rows * grid.columns;
          size_t all = 0, end = 0;
          double most = 0;  // cycles as predicted: seven rows of a tile of eight take as long as eight on some cores
          for (size_t i = 0; i < grid.columns; ++i) {
            const skua::ColumnRange range = skua::columns_of(grid, n, i);
            EXPECT_EQ(range.from, end);
            EXPECT_LT(range.from, range.to);
            EXPECT_EQ(range.from % tile->vector, 0u);
            end = range.to;
          }
          EXPECT_EQ(end, n);
          for (size_t w = 0; w < workers; ++w) {  // neighbouring tasks first, see skua_executor
            double share = 0;
            for (size_t i = skua::piece_begin(tasks, workers, w); i < skua::piece_begin(tasks, workers, w + 1); ++i) {
              const skua::ColumnRange range = skua::columns_of(grid, n, i % grid.columns);
              const size_t rows = skua::piece_begin(m, grid.rows, i / grid.columns + 1) -
                                  skua::piece_begin(m, grid.rows, i / grid.columns);
              share += skua::gemm_cycles(tile, rows, range.to - range.from, k);
              all += rows * (range.to - range.from);
            }
            most = std::max(most, share);
          }
          EXPECT_EQ(all, m * n);
          // more pieces may take a tenth longer, as one core may have other work; many workers are not as even
          const double whole = skua::gemm_cycles(tile, m, n, k);
          if (workers == 2)
            EXPECT_LE(most,
                      1.1 * skua::gemm_cycles(
                                tile, m, skua::ceil_div(skua::ceil_div(n, tile->vector), workers) * tile->vector, k));
          else EXPECT_LE(most, (workers < 7 ? 1.45 : 1.7) * whole / workers);
        }
    }
  }
}

}  // namespace
