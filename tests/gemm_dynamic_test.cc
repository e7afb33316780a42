// Products of weights of s8 or s4 and a float A, quantised as it is read or not: against the formulas of skua/gemm.h,
// with rows quantised by the definition and sums in double.
#include <skua/gemm.h>
#include <skua/packed.h>
#include <skua/quantize.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "dispatch/element.h"
#include "tests/support/blob.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

struct Case {
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  size_t m = 1;
  bool high = false;  // every other column of s4 is 7
  std::vector<int> b;  // [K][N]
  std::vector<uint8_t> stored;
  std::vector<float> scales, bias;
  std::vector<uint16_t> half_scales;
  std::vector<int32_t> zeros;

  size_t blocks() const { return d.b_q.block_size ? (d.k + d.b_q.block_size - 1) / d.b_q.block_size : 1; }
  void fill(Rng& rng) {
    const bool s4 = d.b_type == SKUA_DTYPE_S4;
    b.resize(d.k * d.n);
    const bool extreme = rng.integer(0, 3) == 0;
    // where none is -128, kernels may add products in 16 bits
    const int most = s4 ? 7 : 127, least = s4 ? -8 : rng.integer(0, 1) ? -127 : -128;
    for (int& v : b) v = extreme ? (rng.integer(0, 1) ? most : least) : rng.integer(least, most);
    for (size_t i = 0; high && i < b.size(); ++i)
      if (i % d.n % 2 == 0) b[i] = 7;
    const size_t rows = d.transpose_b ? d.n : d.k, dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense;
    stored.assign(s4 ? (rows * ldb + 1) / 2 : rows * ldb, 0x5a);
    for (size_t k = 0; k < d.k; ++k)
      for (size_t n = 0; n < d.n; ++n) {
        const size_t at = d.transpose_b ? n * ldb + k : k * ldb + n;
        const int v = b[k * d.n + n];
        if (!s4) stored[at] = uint8_t(v);
        else stored[at / 2] = uint8_t((stored[at / 2] & (at % 2 ? 0x0f : 0xf0)) | (v & 15) << (at % 2 ? 4 : 0));
      }
    scales.resize(d.n * blocks());
    for (size_t i = 0; i < scales.size(); ++i)  // some of f16 are denormal there
      scales[i] = rounded(d.b_q.scale_type, rng.uniform(0.001f, 0.02f) *
                                                (d.b_q.scale_type == SKUA_DTYPE_F16 && i % 5 == 3 ? 0x1p-10f : 1.0f));
    for (float s : scales) {
      skua::f16 h;
      skua::bf16 w;
      skua::narrow(s, h), skua::narrow(s, w);
      half_scales.push_back(d.b_q.scale_type == SKUA_DTYPE_F16 ? h.bits : w.bits);
    }
    d.b_q.axis = d.transpose_b ? 0 : 1;
    if (d.b_q.zero_points) {
      zeros.resize(scales.size());
      for (int32_t& z : zeros) z = rng.integer(-8, 7);
      d.b_q.zero_points = zeros.data();
    }
    if (!d.b_q.block_size && rng.integer(0, 1) && !d.b_q.zero_points) {
      d.b_q.scale = 0.01f;
      std::fill(scales.begin(), scales.end(), 0.01f);
      d.b_q.axis = 0;
    } else {
      d.b_q.scales =
          d.b_q.scale_type == SKUA_DTYPE_F32 ? scales.data() : reinterpret_cast<const float*>(half_scales.data());
    }
    bias.resize(d.n);
    for (float& v : bias) v = rng.uniform(-1, 1);
  }
  skua_status create(skua_context* context, skua_op** op, bool has_bias) const {
    return skua_gemm_create(context, &d, stored.data(), has_bias ? bias.data() : nullptr, op);
  }
  std::string text() const {
    char s[300];
    snprintf(s, sizeof s,
             "%zux%zux%zu %s%s by %s to %s, transposed %d, ldb %zu, block %u, scales %s, zero points %d, activation %d",
             m, d.n, d.k, skua_dtype_name(d.a_type), d.quantize_a ? " quantised" : "", skua_dtype_name(d.b_type),
             skua_dtype_name(d.c_type), d.transpose_b, d.ldb, d.b_q.block_size, skua_dtype_name(d.b_q.scale_type),
             !zeros.empty(), int(d.epilogue.activation.kind));
    return s;
  }
};

void reference(const Case& c, const std::vector<float>& a, bool has_bias, std::vector<double>& y,
               std::vector<double>& bound) {
  const skua_gemm_desc& d = c.d;
  y.assign(c.m * d.n, 0);
  bound = y;
  for (size_t m = 0; m < c.m; ++m) {
    float low = 0, high = 0;
    for (size_t k = 0; k < d.k; ++k) low = std::min(low, a[m * d.k + k]), high = std::max(high, a[m * d.k + k]);
    const float range = std::max(high - low, 1e-30f), scale = range * (1.0f / 254), inverse = 254.0f / range;
    volatile float shift = low * inverse;
    const double zero = std::nearbyint(double(-127.0f - shift));
    std::vector<double> q(d.k);
    for (size_t k = 0; k < d.k && !d.quantize_a; ++k) q[k] = double(a[m * d.k + k]);
    for (size_t k = 0; k < d.k && d.quantize_a; ++k) {
      volatile float v = a[m * d.k + k] * inverse;
      q[k] = std::min(std::max(std::nearbyint(double(v)), -127 - zero), 127 - zero);
    }
    for (size_t n = 0; n < d.n; ++n) {
      double sum = 0, absolute = 0;
      for (size_t k = 0; k < d.k; ++k) {
        const size_t at = n * c.blocks() + (d.b_q.block_size ? k / d.b_q.block_size : 0);
        const double w = double(c.scales[at]) * (c.b[k * d.n + n] - (c.zeros.empty() ? 0 : c.zeros[at])),
                     size = double(c.scales[at]) * (std::abs(c.b[k * d.n + n]) + 8);
        sum += q[k] * w;
        absolute += (std::fabs(q[k]) + (d.quantize_a ? 256 : 0)) * size;
      }
      double& to = y[m * d.n + n];
      const double by = d.quantize_a ? double(scale) : 1, terms = d.quantize_a ? double(c.blocks()) : double(d.k);
      to = sum * by + (has_bias ? double(c.bias[n]) : 0);
      if (d.epilogue.activation.kind == SKUA_ACTIVATION_RELU) to = std::max(to, 0.0);
      bound[m * d.n + n] =
          (absolute * by + 1) * double(FLT_EPSILON) * (4 + terms) + half_ulp(d.c_type, to) * 1.01 + 1e-37;
    }
  }
}

void check(Case& c, skua_context* context, Rng& rng) {
  const bool has_bias = rng.integer(0, 2) != 0;
  c.fill(rng);
  SCOPED_TRACE(c.text());
  Op op;
  SKUA_EXPECT_OK(c.create(context, &op, has_bias));
  if (testing::Test::HasFailure()) return;
  const bool holes = rng.integer(0, 2) == 0;
  Data a = make(holes ? with_holes(shape({c.m, c.d.k}, c.d.a_type), {0, 3}) : shape({c.m, c.d.k}, c.d.a_type), rng,
                rng.integer(0, 3) ? -3 : 0, 2);
  std::vector<double> want, bound;
  reference(c, dense(a), has_bias, want, bound);
  const skua_tensor y = shape({c.m, c.d.n}, c.d.c_type);
  expect_close(run(op, {a}, {holes ? with_holes(y, {0, 5}) : y})[0], want, bound);
}

Case random_case(Rng& rng) {
  Case c;
  skua_gemm_desc& d = c.d;
  const std::vector<skua_dtype> types = float_types();
  d.quantize_a = rng.integer(0, 2) != 0;
  d.a_type = types[size_t(rng.integer(0, int(types.size()) - 1))];
  d.c_type = rng.integer(0, 1) ? d.a_type : SKUA_DTYPE_F32;
  d.b_type = rng.integer(0, 2) ? SKUA_DTYPE_S4 : SKUA_DTYPE_S8;
  d.transpose_b = rng.integer(0, 1);
  c.m = size_t(rng.integer(1, rng.integer(0, 3) ? 8 : 26));
  d.n = size_t(rng.integer(1, small() ? 40 : 150));
  d.k = size_t(rng.integer(1, small() ? 150 : 400));
  d.hint_m = rng.integer(0, 1) ? c.m : 0;
  if (rng.integer(0, 3) == 0) d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
  const size_t dense = d.transpose_b ? d.k : d.n;
  if (d.b_type == SKUA_DTYPE_S4) {
    static const uint32_t blocks[] = {0, 32, 64, 128, 256};
    d.b_q.block_size = blocks[rng.integer(0, 4)];
    if (d.b_q.block_size) d.b_q.scale_type = types[size_t(rng.integer(0, int(types.size()) - 1))];
    static const int32_t some = 0;
    if (rng.integer(0, 2) == 0) d.b_q.zero_points = &some;  // made by fill()
    d.ldb = dense % 2 || rng.integer(0, 2) == 0 ? (dense + 4) / 2 * 2 : 0;
  } else if (rng.integer(0, 2) == 0) {
    d.ldb = dense + 3;
  }
  return c;
}

TEST(GemmDynamic, RandomDescriptorsAgainstTheFormula) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(5);
    for (int i = 0; i < (small() ? 30 : 150); ++i) {
      Case c = random_case(rng);
      check(c, context, rng);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Each by its name: of two of one instruction set the machine takes one.
TEST(GemmDynamic, EveryTileOfNibbles) {
  for (const skua_kernel_info& tile : kernels("gemm_s4_")) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    Rng rng(7);
    for (size_t m = 1; m <= (small() ? 9u : 26u); ++m) {
      Case c = random_case(rng);
      c.d.quantize_a = true;
      if (c.d.b_type != SKUA_DTYPE_S4) continue;
      c.m = m;
      check(c, context, rng);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(GemmDynamic, TheHighestSetMultiplies) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(3);
    Case c;
    c.d.quantize_a = true;
    c.d.b_type = SKUA_DTYPE_S4;
    c.d.n = c.d.k = 8;
    c.fill(rng);
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op, false));
    const skua_tensor a = shape({1, 8});
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &a, 1, nullptr, 0, &plan));
    const std::string kernel = skua_plan_kernel(plan);
    EXPECT_EQ(kernel.find("_scalar") != std::string::npos, isa == std::string("scalar")) << kernel;
    skua_plan_destroy(plan);
  }
}

TEST(GemmDynamic, ZeroRowsAndExtremeRows) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(9);
    Case c;
    c.d.quantize_a = true;
    c.d.b_type = SKUA_DTYPE_S4;
    c.d.b_q.block_size = 32;
    c.d.n = 20;
    c.d.k = 64;
    c.m = 4;
    c.fill(rng);
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op, false));
    Data a = make({4, 64}, rng);
    for (size_t k = 0; k < 64; ++k) {
      a.v[k] = 0;
      a.v[64 + k] = k ? 0 : 1e38f;
      a.v[128 + k] = -5e-31f;
      a.v[192 + k] = k ? 1 : -1e30f;
    }
    std::vector<double> want, bound;
    reference(c, dense(a), false, want, bound);
    expect_close(run(op, {a})[0], want, bound);
    for (size_t n = 0; n < 20; ++n) EXPECT_EQ(run(op, {a})[0].v[n], 0.0f);
  }
}

// The last panel of columns is narrower than the tile: its rows are prepared in other numbers, and the workspace has
// room for them.
TEST(GemmDynamic, NarrowLastPanels) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (skua_dtype type : float_types())
      for (size_t n : {5, 9, 17, 49, 82}) {
        SCOPED_TRACE(isa);
        Context context(isa);
        Rng rng(17);
        Case c;
        c.d.a_type = c.d.c_type = type;
        c.d.b_type = SKUA_DTYPE_S8;
        c.m = 19;
        c.d.n = n;
        c.d.k = 538;
        check(c, context, rng);
      }
}

// A row is the same bits alone as among others, whichever tile it meets and in however many parts of the depth its
// weights become floats.
TEST(GemmDynamic, RowsDoNotDependOnTheirNeighbours) {
  for (const char* isa : isas(SKUA_DTYPE_S8))
    for (bool quantize_a : {true, false})
      for (skua_dtype type : {SKUA_DTYPE_S4, SKUA_DTYPE_S8})
        for (size_t k : {100, 1100}) {
          SCOPED_TRACE(isa);
          Context context(isa);
          Rng rng(21);
          Case c;
          c.d.quantize_a = quantize_a;
          c.d.b_type = type;
          c.d.b_q.block_size = type == SKUA_DTYPE_S4 ? 32 : 0;
          c.d.n = 70;
          c.d.k = k;
          c.fill(rng);
          Op op;
          SKUA_EXPECT_OK(c.create(context, &op, true));
          const Data all = make({29, k}, rng);
          const Data y = run(op, {all})[0];
          for (size_t m : {size_t(0), size_t(11), size_t(12), size_t(25), size_t(28)}) {
            Data one = make({1, k}, rng);
            for (size_t i = 0; i < k; ++i) one.v[i] = all.v[m * k + i];
            const Data alone = run(op, {one})[0];
            for (size_t n = 0; n < 70; ++n) EXPECT_EQ(alone.v[n], y.v[m * 70 + n]) << "row " << m << " column " << n;
          }
        }
}

// Many rows meet bytes of a part of the depth at a time, in strips, or nibbles.
TEST(GemmDynamic, ManyRowsAndAllOfTheDepth) {
  for (const skua_kernel_info& tile : kernels("gemm_s4_")) for (uint32_t block : {32, 64, 0}) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    Rng rng(23);
    Case c;
    static const int32_t some = 0;
    c.d.quantize_a = true;
    c.d.b_type = SKUA_DTYPE_S4;
    c.d.b_q.block_size = block;
    if (block == 64) c.d.b_q.zero_points = &some;
    c.d.n = 19;
    c.d.k = small() ? 1100 : 2150;
    c.d.transpose_b = block == 32;
    c.d.ldb = c.d.transpose_b ? 0 : 20;
    c.fill(rng);
    Op op;
    SKUA_EXPECT_OK(c.create(context, &op, true));
    const size_t rows = 195;
    const Data all = make({rows, c.d.k}, rng);
    const Data y = run(op, {all})[0];
    for (size_t m = 0; m < rows; m += 97) {
      Data one = make({1, c.d.k}, rng);
      for (size_t k = 0; k < c.d.k; ++k) one.v[k] = all.v[m * c.d.k + k];
      const Data alone = run(op, {one})[0];
      for (size_t n = 0; n < c.d.n; ++n) EXPECT_EQ(alone.v[n], y.v[m * c.d.n + n]) << "row " << m << " column " << n;
      c.m = 1;
      std::vector<double> want, bound;
      reference(c, dense(one), true, want, bound);
      expect_close(alone, want, bound);
    }
  }
}

// Sums of columns that do not fit 16 bits while rows are packed.
TEST(GemmDynamic, DeepColumnsOfTheGreatestValue) {
  for (const char* isa : isas(SKUA_DTYPE_S8)) {
    SCOPED_TRACE(isa);
    Context context(isa);
    Rng rng(27);
    Case c;
    c.high = true;
    c.d.quantize_a = true;
    c.d.b_type = SKUA_DTYPE_S4;
    c.m = 2, c.d.n = 6, c.d.k = 4404;
    check(c, context, rng);
  }
}

void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

// s4 made of floats: half a step off at most, and what products take.
TEST(GemmDynamic, WeightsOfFloats) {
  Context context;
  Rng rng(31);
  for (bool transposed : {false, true})
    for (uint32_t block : {0u, 32u, 128u})
      for (skua_dtype type : {SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_BF16})
        for (bool zeros : {false, true}) {
          if (!block && type != SKUA_DTYPE_F32) continue;
          const size_t n = 71, k = 149, blocks = block ? (k + block - 1) / block : 1, row = transposed ? k : n;
          std::vector<float> w(n * k), scales(n * blocks);
          for (size_t i = 0; i < w.size(); ++i) w[i] = rng.uniform(-1, zeros ? 3 : 1.5f) * float(1 + i % 5);
          for (size_t i = 0; i < k; ++i) w[transposed ? 7 * k + i : i * n + 7] = 0;  // a column
          Case c;
          c.zeros.resize(n * blocks);
          c.stored.assign((row + 1) / 2 * (transposed ? n : k), 0x5a);
          SKUA_EXPECT_OK(skua_quantize_weights_s4(w.data(), k, n, transposed, block, type, scales.data(),
                                                  zeros ? c.zeros.data() : nullptr, c.stored.data()));
          c.d.n = n, c.d.k = k, c.d.b_type = SKUA_DTYPE_S4, c.d.quantize_a = c.d.transpose_b = transposed,
          c.d.ldb = (row + 1) / 2 * 2;
          c.d.b_q.scales = scales.data(), c.d.b_q.scale_type = type, c.d.b_q.block_size = block,
          c.d.b_q.axis = transposed ? 0 : 1;
          if (zeros) c.d.b_q.zero_points = c.zeros.data();
          for (size_t i = 0; i < n * blocks; ++i)
            c.scales.push_back(
                type == SKUA_DTYPE_F16    ? skua::widen(reinterpret_cast<const skua::f16*>(scales.data())[i])
                : type == SKUA_DTYPE_BF16 ? skua::widen(reinterpret_cast<const skua::bf16*>(scales.data())[i])
                                          : scales[i]);
          c.b.resize(n * k);
          std::vector<bool> used(16);
          for (size_t j = 0; j < n; ++j)
            for (size_t i = 0; i < k; ++i) {
              const size_t at = transposed ? j * c.d.ldb + i : i * c.d.ldb + j,
                           of = j * blocks + (block ? i / block : 0);
              const int value = c.b[i * n + j] = int(c.stored[at / 2] >> at % 2 * 4 & 15) << 28 >> 28;
              used[size_t(value + 8)] = true;
              ASSERT_NEAR(w[transposed ? j * k + i : i * n + j], c.scales[of] * float(value - c.zeros[of]),
                          c.scales[of] * 0.57f)
                  << c.text() << i << ' ' << j;
              ASSERT_TRUE(j != 7 || value == c.zeros[of]);
            }
          EXPECT_GE(std::count(used.begin(), used.end(), true), 14);
          c.m = 3;
          Op op;
          SKUA_EXPECT_OK(c.create(context, &op, false));
          const Data a = make({c.m, k}, rng);
          std::vector<double> want, bound;
          reference(c, dense(a), false, want, bound);
          expect_close(run(op, {a})[0], want, bound);
        }
  float bad[] = {1, INFINITY, 1e6f}, scales[2];
  int32_t zeros[2];
  uint8_t q[2];
  expect_text(skua_quantize_weights_s4(bad, 2, 1, true, 0, SKUA_DTYPE_F32, scales, zeros, q),
              SKUA_STATUS_INVALID_ARGUMENT, "w[1] is inf");
  expect_text(skua_quantize_weights_s4(bad + 2, 1, 1, true, 32, SKUA_DTYPE_F16, scales, zeros, q),
              SKUA_STATUS_INVALID_ARGUMENT, "column 0 reach 1e+06, too large for a scale of f16");
  expect_text(skua_quantize_weights_s4(bad, 1, 1, true, 0, SKUA_DTYPE_F16, scales, zeros, q),
              SKUA_STATUS_INVALID_ARGUMENT, "scale_type is f16, must be f32 where");
  expect_text(skua_quantize_weights_s4(bad, 1, 1, true, 48, SKUA_DTYPE_F16, scales, zeros, q),
              SKUA_STATUS_INVALID_ARGUMENT, "block_size is 48");
  expect_text(skua_quantize_weights_s4(bad, 1, 1, true, 0, SKUA_DTYPE_F32, nullptr, zeros, q),
              SKUA_STATUS_INVALID_ARGUMENT, "scales is NULL");
  bad[0] = 1e-30f;
  SKUA_EXPECT_OK(skua_quantize_weights_s4(bad, 1, 1, true, 32, SKUA_DTYPE_F16, scales, nullptr, q));
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(scales)[0], 1);
  bad[0] = -0x1.4p-20f;  // 20 steps of the least scale, which a 15th of it is rounded to
  SKUA_EXPECT_OK(skua_quantize_weights_s4(bad, 1, 1, true, 32, SKUA_DTYPE_F16, scales, zeros, q));
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(scales)[0], 1);
  EXPECT_EQ(zeros[0], 7);
  EXPECT_EQ(q[0], 8);
}

TEST(GemmDynamic, BatchesAndPackedWeights) {
  Context context;
  Rng rng(13);
  // quantised; few rows; many
  for (skua_dtype type : {SKUA_DTYPE_S4, SKUA_DTYPE_S8}) for (int how = 0; how < 3; ++how) {
    Case c;
    c.d.quantize_a = !how;
    c.d.b_type = type;
    c.d.n = 33;
    c.d.k = 70;
    c.d.ldb = 34;
    const size_t batch = how == 2 ? 13 : 3;
    c.m = 2 * batch;
    c.fill(rng);
    Op op, again;
    SKUA_EXPECT_OK(c.create(context, &op, true));
    const size_t size = skua_op_packed_size(op);
    Guarded blob = Guarded::bytes(size, 64);
    SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
    SKUA_EXPECT_OK(skua_op_create_packed(context, blob.memory(), size, &again));
    const Data a = make(with_holes(shape({2, batch, 70}), {0, 2, 1}), rng);
    const Data y = run(again, {a}, {with_holes(shape({2, batch, 33}), {0, 1, 2})})[0];
    std::vector<double> want, bound;
    reference(c, dense(a), true, want, bound);
    expect_close(y, want, bound);
  }
}

// Rows of one matrix end amid what a tile takes, or has packed, and the next matrix's follow.
TEST(GemmDynamic, BatchesByEveryTile) {
  size_t tiles = 0;
  for (const char* prefix : {"gemm_s8_", "gemm_u8_"})
    for (const skua_kernel_info& tile : kernels(prefix)) {
      SCOPED_TRACE(tile.name);
      Context context(tile.isa, tile.name);
      Rng rng(14);
      ++tiles;
      for (size_t m : {5, 18, 20, 33}) {
        Case c;
        c.d.quantize_a = true;
        c.d.b_type = SKUA_DTYPE_S8;
        c.d.n = 70;
        c.d.k = 130;
        c.m = 3 * m;
        c.fill(rng);
        Op op;
        SKUA_EXPECT_OK(c.create(context, &op, true));
        const Data a = make(with_holes(shape({3, m, c.d.k}), {1, 2, 0}), rng, -3, 2);
        std::vector<double> want, bound;
        reference(c, dense(a), true, want, bound);
        expect_close(run(op, {a}, {with_holes(shape({3, m, c.d.n}), {0, 1, 2})})[0], want, bound);
        if (testing::Test::HasFailure()) return;
      }
    }
  EXPECT_GT(tiles, 0u);
}

// What a description would be told, a blob is: that it is none of this library's.
TEST(GemmDynamic, BlobsOfUnknownActivationsAreIncompatible) {
  Context context;
  const uint8_t b[64 * 32] = {};
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.b_type = SKUA_DTYPE_S4, d.quantize_a = true, d.n = d.k = 64, d.b_q.scale = 0.1f;
  d.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -1.25f, 2.5f};
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(context, &d, b, nullptr, &op));
  const size_t size = skua_op_packed_size(op);
  Guarded blob = Guarded::bytes(size, SKUA_PACKED_ALIGNMENT);
  SKUA_EXPECT_OK(skua_op_packed_write(op, blob.memory(), size));
  auto *bytes = static_cast<unsigned char*>(blob.memory()),
       *kind = reinterpret_cast<unsigned char*>(&d.epilogue.activation);
  unsigned char* at = std::search(bytes, bytes + size, kind, kind + sizeof d.epilogue.activation);
  ASSERT_NE(at, bytes + size);
  const uint32_t unknown = 54272;
  std::memcpy(at, &unknown, sizeof unknown);
  reseal(bytes, size);
  Op forged;
  EXPECT_EQ(skua_op_create_packed(context, bytes, size, &forged), SKUA_STATUS_INCOMPATIBLE_BLOB);
  EXPECT_NE(strstr(skua_error_text(), "activation.kind"), nullptr) << skua_error_text();
}

TEST(GemmDynamic, WhatIsRefused) {
  Context context;
  const uint8_t b[64 * 64] = {};
  static const float scales[256] = {};
  skua_gemm_desc good = SKUA_GEMM_DESC_INIT;
  good.b_type = SKUA_DTYPE_S4;
  good.quantize_a = true;
  good.n = good.k = 64;
  good.b_q.scale = 0.1f;
  const auto refused = [&](const skua_gemm_desc& d, const char* field, skua_status status, const void* weights) {
    skua_op* op = nullptr;
    EXPECT_EQ(skua_gemm_create(context, &d, weights, nullptr, &op), status) << field << ": " << skua_error_text();
    EXPECT_EQ(op, nullptr);
    EXPECT_NE(std::string(skua_error_text()).find(field), std::string::npos)
        << skua_error_text() << " does not name " << field;
    skua_op_destroy(op);
  };
  {
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &good, b, nullptr, &op));
  }
  skua_gemm_desc d = good;
  d = good; refused(d, "b is NULL", SKUA_STATUS_UNSUPPORTED, nullptr);
  d = good; d.alpha = 2; refused(d, "alpha", SKUA_STATUS_UNSUPPORTED, b);
  d = good; d.transpose_a = true; refused(d, "transpose_a", SKUA_STATUS_UNSUPPORTED, b);
  d = good; d.n = 63; refused(d, "rows of B", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good; d.b_q.scale = 0; refused(d, "b_q.scale", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good; d.b_q.scales = scales; d.b_q.axis = 1; refused(d, "b_q.scales[0]", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good;
  d.b_q.scales = scales;
  d.b_q.block_size = 48;
  d.b_q.axis = 1;
  refused(d, "block_size", SKUA_STATUS_INVALID_ARGUMENT, b);
  static const float ones[256] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  d = good;
  d.b_q.scales = ones;
  d.b_q.axis = 1;
  d.b_q.zero_point = 3;
  refused(d, "zero_points", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good; d.b_q.scale_type = SKUA_DTYPE_F16; refused(d, "scale_type", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good; d.a_type = SKUA_DTYPE_S8; refused(d, "quantize_a", SKUA_STATUS_INVALID_ARGUMENT, b);
  d = good; d.b_q.zero_point = 3; refused(d, "zero_point", SKUA_STATUS_UNSUPPORTED, b);
  d = good; d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION; refused(d, "residual", SKUA_STATUS_UNSUPPORTED, b);
  d = good; d.epilogue.activation.kind = SKUA_ACTIVATION_GELU; refused(d, "activation", SKUA_STATUS_UNSUPPORTED, b);
  d = good; d.c_type = SKUA_DTYPE_S8; refused(d, "c_type", SKUA_STATUS_UNSUPPORTED, b);
  d = good;
  d.b_q.scales = ones;
  d.b_q.axis = 1;
  d.b_q.zero_point = 1;
  refused(d, "one for each scale", SKUA_STATUS_INVALID_ARGUMENT, b);
  const std::vector<int32_t> zeros(64, 1);
  d.b_q.zero_points = zeros.data();
  refused(d, "beside zero_points", SKUA_STATUS_INVALID_ARGUMENT, b);
  for (const skua_dtype type : {SKUA_DTYPE_S4, SKUA_DTYPE_S8})
    for (const bool quantize : {false, true}) {
      d = good; d.b_type = type; d.quantize_a = quantize;
      d.requantization.rounding = SKUA_ROUNDING_DOUBLE;
      refused(d, "requantization", SKUA_STATUS_INVALID_ARGUMENT, b);
      d.requantization.rounding = SKUA_ROUNDING_FLOAT; d.residual_q.scale = 1;
      refused(d, "residual_q", SKUA_STATUS_INVALID_ARGUMENT, b);
    }
  d = good; d.b_type = SKUA_DTYPE_S8; d.k = 65537; refused(d, "65536", SKUA_STATUS_UNSUPPORTED, b);
  // No scale is read of sizes that nothing has.
  Guarded few(64);
  std::fill(few.data(), few.data() + 64, 0.5f);
  for (const skua_dtype type : {SKUA_DTYPE_S4, SKUA_DTYPE_S8})
    for (const bool quantize : {false, true})
      for (const uint32_t block : {0u, 32u}) {
        d = good; d.b_type = type; d.quantize_a = quantize;
        d.b_q.scales = few.data(); d.b_q.axis = 1; d.b_q.block_size = block;
        d.n = size_t(1) << (sizeof(size_t) * 8 - 4); refused(d, "n is", SKUA_STATUS_UNSUPPORTED, b);
        d.n = SIZE_MAX / 512 - 1; d.k = 60000; refused(d, "address space", SKUA_STATUS_INVALID_ARGUMENT, b);
      }
}

}  // namespace
