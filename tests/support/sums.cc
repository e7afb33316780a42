// The inner loops of the formulas that results are compared with: most of a test's time, so these alone are compiled
// with -O3.
#include "tests/support/support.h"

#include <cmath>

namespace skua_test {

void add_products(double x, const double* __restrict w, size_t n, double* __restrict sums) {
  for (size_t i = 0; i < n; ++i) sums[i] += x * w[i];
}
void add_products(double x, const double* __restrict w, size_t n, double* __restrict sums,
                  double* __restrict absolutes) {
  for (size_t i = 0; i < n; ++i) {
    const double product = x * w[i];
    sums[i] += product;
    absolutes[i] += std::fabs(product);
  }
}
void add_products(int32_t x, const int32_t* __restrict w, size_t n, int64_t* __restrict sums) {
  for (size_t i = 0; i < n; ++i) sums[i] += x * w[i];
}

}  // namespace skua_test
