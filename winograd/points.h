// The points of F(m,3) and F(m-2,5) and what follows from them. All of it is evaluated by the compiler: no code of this
// header ends up in an object file.
//
// m outputs of a correlation with 3 taps are m+2 products: y = A^T [(G w) . (B^T d)], the value of two polynomials at
// the points 0, +-p[0], +-p[1], ..., infinity, interpolated (Toom-Cook, transposed). Point 0 has index 0, +p[q] 1+2q,
// -p[q] 2+2q, infinity m+1.
//
//   m = 2   +-1              m = 4   +-sqrt(1/2), +-sqrt(2)              m = 6   +-1, +-2, +-1/2
//
// sqrt(1/2) and sqrt(2) halve the rms error of F(4,3) against 1 and 2 at the same number of operations.
//
// F(m,3) and F(m-2,5) have the same points and the same input transform; G and A^T differ in their lengths only. So `m`
// names a set of points everywhere here.
//
// A tile whose last `clip` outputs fall outside the image needs fewer points: an odd clip drops infinity, every two
// more drop the last pair.
// The transformed weights stay the same; the values of the tile are rescaled in its input transform.
#pragma once
#include <stddef.h>

namespace skua {
namespace winograd {

consteval int pairs(int m) { return m / 2; }
consteval double point(int m, int q) {
  constexpr double root2 = 1.41421356237309504880;
  if (m == 2) return 1;
  if (m == 4) return q ? root2 : root2 / 2;
  return q == 0 ? 1 : q == 1 ? 2 : 0.5;
}
consteval double power(double x, int n) {
  double r = 1;
  for (int i = 0; i < n; ++i) r *= x;
  return r;
}
// Squares of the points, exact.
consteval double square(int m, int q) { return m == 4 ? (q ? 2 : 0.5) : point(m, q) * point(m, q); }

// Is point i computed for a tile with this clip?
constexpr bool has_point(int m, int clip, int i) { return i == m + 1 ? clip % 2 == 0 : i < m + 1 - clip / 2 * 2; }

// Coefficient of z^k in the product of (z - p[r]^2) over the first n pairs without `skip` (-1: all).
consteval double coefficient(int m, int n, int skip, int k) {
  double c[8] = {1};
  int degree = 0;
  for (int r = 0; r < n; ++r) {
    if (r == skip) continue;
    ++degree;
    for (int i = degree; i >= 0; --i) c[i] = (i ? c[i - 1] : 0) - square(m, r) * c[i];
  }
  return c[k];
}

// Product of (x^2 - p[r]^2) over the pairs [from, pairs), x = p[q] or 0 for q < 0, q itself left out.
consteval double scale(int m, int q, int from) {
  double s = 1;
  for (int r = from; r < pairs(m); ++r)
    if (r != q) s *= (q < 0 ? 0 : square(m, q)) - square(m, r);
  return s;
}

// Row i of G: the weights of tap k.
consteval double tap(int m, int i, int k, int taps) {
  if (i == m + 1) return k == taps - 1;
  if (i == 0) return k == 0 ? 1 / scale(m, -1, 0) : 0;
  const int q = (i - 1) / 2;
  return power(i % 2 ? point(m, q) : -point(m, q), k) / (2 * square(m, q) * scale(m, q, 0));
}

// Row i of B^T, value k of the tile (no clip).
consteval double input(int m, int i, int k) {
  const int n = pairs(m);
  if (i == 0) return k % 2 ? 0 : coefficient(m, n, -1, k / 2);
  if (i == m + 1) return k % 2 ? coefficient(m, n, -1, k / 2) : 0;
  if (k == 0 || k == m + 1) return 0;
  const int q = (i - 1) / 2;
  const double c = coefficient(m, n, q, (k - 1) / 2);
  return k % 2 ? (i % 2 ? point(m, q) : -point(m, q)) * c : c;
}

// Row k of A^T (an output), point i.
consteval double output(int m, int k, int i, int taps) {
  if (i == m + 1) return k == m + 2 - taps;
  if (i == 0) return k == 0;
  const int q = (i - 1) / 2;
  return power(i % 2 ? point(m, q) : -point(m, q), k);
}

// How much rounding errors grow in one dimension; docs/winograd.md has the formulas.
struct Growth {
  double worst;     // kappa: max over outputs k and taps t of sum over points i of |A_ki| |G_it| ||B_i||_1
  double variance;  // mean over outputs of sum over points of A_ki^2 ||B_i||^2 ||G_i||^2 / taps
};
consteval Growth growth(int m, int taps) {
  Growth g = {0, 0};
  const int outputs = m + 3 - taps;
  for (int k = 0; k < outputs; ++k)
    for (int t = 0; t < taps; ++t) {
      double worst = 0;
      for (int i = 0; i < m + 2; ++i) {
        double one = 0, two = 0;
        for (int d = 0; d < m + 2; ++d) {
          const double b = input(m, i, d);
          one += b < 0 ? -b : b;
          two += b * b;
        }
        const double a = output(m, k, i, taps), w = tap(m, i, t, taps), product = a * w < 0 ? -a * w : a * w;
        worst += product * one;
        g.variance += a * a * two * w * w / (taps * outputs);
      }
      if (worst > g.worst) g.worst = worst;
    }
  return g;
}

}  // namespace winograd
}  // namespace skua
