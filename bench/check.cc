#include <math.h>
#include <stdio.h>
#include <algorithm>

#include "session.h"

namespace bench {
namespace {

// Rounding of a chain of `reduction` terms, with room for Winograd (about twice a direct sum's error, rms) and for approximated functions.
double tolerance(const Layer& l) { return 6e-8 * (64 + 16 * sqrt(double(l.reduction()))); }

std::string report(size_t index, double got, double want) {
  char text[128];
  snprintf(text, sizeof text, "element %zu is %.9g, must be %.9g", index, got, want);
  return text;
}

}  // namespace

std::string check_against_formula(const Layer& l, const Operands& o, const float* got) {
  const size_t count = l.out_count();
  unsigned state = 12345;
  for (int i = 0; i < 96 && count; ++i) {
    state = state * 1664525u + 1013904223u;
    const size_t index = i == 0 ? 0 : i == 1 ? count - 1 : size_t(state) % count;
    double magnitude = 0;
    const double want = reference(l, o, index, &magnitude);
    // Winograd's error goes with the size of the tile's values, not of the one element: hence the output's usual size.
    const double bound = tolerance(l) * (magnitude / sqrt(double(l.reduction())) + fabs(want) + (l.multiplies() ? 1 : 0));
    if (!(fabs(got[index] - want) <= bound)) return report(index, got[index], want);
  }
  return "";
}

std::string check_against(const Layer& l, const float* ours, const float* theirs) {
  const size_t count = l.out_count();
  double scale = 0;
  for (size_t i = 0; i < count; ++i) scale = std::max(scale, fabs(double(theirs[i])));
  for (size_t i = 0; i < count; ++i)
    if (!(fabs(double(ours[i]) - double(theirs[i])) <= tolerance(l) * scale)) return report(i, ours[i], theirs[i]);
  return "";
}

std::string check_close(const std::vector<float>& ours, const std::vector<float>& theirs, double relative) {
  if (ours.size() != theirs.size()) return "sizes differ";
  double scale = 0;
  for (float v : theirs) scale = std::max(scale, fabs(double(v)));
  for (size_t i = 0; i < ours.size(); ++i)
    if (!(fabs(double(ours[i]) - double(theirs[i])) <= relative * scale)) return report(i, ours[i], theirs[i]);
  return "";
}

}  // namespace bench
