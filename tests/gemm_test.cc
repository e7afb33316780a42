// Matrix products: every tile of the registry against a product in double.
#include <skua/gemm.h>

#include <cfloat>
#include <cmath>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

// A [m x k] times B [k x n], with the same product of absolute values times (k + 2) * epsilon as bound.
struct Product {
  std::vector<double> value, bound;
};
Product product(const std::vector<float>& a, const std::vector<float>& b, size_t m, size_t n, size_t k) {
  Product p{std::vector<double>(m * n), std::vector<double>(m * n)};
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0, absolute = 0;
      for (size_t l = 0; l < k; ++l) {
        const double x = double(a[i * k + l]) * double(b[l * n + j]);
        sum += x;
        absolute += std::fabs(x);
      }
      p.value[i * n + j] = sum;
      p.bound[i * n + j] = double(k + 2) * double(FLT_EPSILON) * absolute;
    }
  return p;
}

TEST(Gemm, EveryTileEveryTail) {
  Rng rng(1);
  for (const skua_kernel_info& tile : kernels("gemm_f32_")) {
    SCOPED_TRACE(tile.name);
    Context context(tile.isa, tile.name);
    skua_gemm_desc desc = SKUA_GEMM_DESC_INIT;
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(context, &desc, nullptr, nullptr, &op));
    for (size_t m = 1; m <= 2 * tile.mr; ++m)
      for (size_t n = 1; n < 2 * tile.nr; n += small() ? 7 : 3) {
        const size_t k = size_t(rng.integer(1, 20));
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
        const Data a = make({m, k}, rng), b = make({k, n}, rng);
        const Product want = product(a.v, b.v, m, n, k);
        const std::vector<Data> got = run(op, {a, b});
        ASSERT_EQ(got.size(), 1u);
        expect_close(got[0], want.value, want.bound);
        if (HasFailure()) return;
      }
  }
}

}  // namespace
