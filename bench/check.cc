#include <math.h>
#include <stdio.h>
#include <algorithm>

#include "session.h"

namespace bench {
namespace {

// Rounding of a chain of `reduction` terms, with room for Winograd (about twice a direct sum's error, rms) and for approximated functions. Halves: the result's rounding too, and that of
// sums which are kept in halves, ours for up to 64 terms, a peer's for all (the roundings of the partial sums of a random walk of n are about 0.4 sqrt(n) of the last one's), five times as
// far for the worst of many.
double tolerance(const Layer& l, bool ours) {
  const double sums = 6e-8 * (64 + 16 * sqrt(double(l.reduction())));
  return l.type == SKUA_DTYPE_F32 ? sums : sums + roundoff(l.type) * (!l.multiplies() ? 4 : ours ? 16 : 16 + 2 * sqrt(double(l.reduction())));
}

std::string report(size_t index, double got, double want) {
  char text[128];
  snprintf(text, sizeof text, "element %zu is %.9g, must be %.9g", index, got, want);
  return text;
}

}  // namespace

std::string check_against_formula(const Layer& l, const Operands& o, const float* got, bool ours) {
  const size_t count = l.out_count();
  unsigned state = 12345;
  for (int i = 0; i < 96 && count; ++i) {
    state = state * 1664525u + 1013904223u;
    const size_t index = i == 0 ? 0 : i == 1 ? count - 1 : size_t(state) % count;
    double magnitude = 0;
    const double want = reference(l, o, index, &magnitude);
    // Winograd's error goes with the size of the tile's values, not of the one element: hence the output's usual size.
    // s8: half a step, and what the bias is off in its own units; a peer may be a step away where it rounds in between.
    const double bound = l.type == SKUA_DTYPE_S8 ? roundoff(l.type) * (ours ? 1.02 : 3.02) : (l.type == SKUA_DTYPE_F16 ? 0x1p-24 : 0) + tolerance(l, ours) * (magnitude / sqrt(double(l.reduction())) + fabs(want) + (l.multiplies() ? 1 : 0));
    if (!(fabs(got[index] - want) <= bound)) return report(index, got[index], want);
  }
  return "";
}

std::string check_against(const Layer& l, const float* ours, const float* theirs) {
  const size_t count = l.out_count();
  double scale = 0;
  for (size_t i = 0; i < count; ++i) scale = std::max(scale, fabs(double(theirs[i])));
  const double bound = l.type == SKUA_DTYPE_S8 ? 2.02 * roundoff(l.type) : tolerance(l, false) * scale;
  for (size_t i = 0; i < count; ++i)
    if (!(fabs(double(ours[i]) - double(theirs[i])) <= bound)) return report(i, ours[i], theirs[i]);
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
