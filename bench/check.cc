#include <math.h>
#include <stdio.h>
#include <algorithm>

#include "session.h"

namespace bench {
namespace {

bool fast_winograd(const Layer& l) {
  return bench_numerics == SKUA_NUMERICS_FAST && l.op == Op::conv && l.groups == 1 && l.kh == l.kw &&
         (l.kh == 3 || l.kh == 5) && l.sh == 1 && l.sw == 1;
}
// What a peer may be off by: a weight of a blend computed in f32 loses as many digits as its coordinate has.
double coordinates(const Layer& l) { return l.op == Op::resize ? 6e-8 * double(std::max(l.h, l.w)) * 2 : 0; }
// Of a chain of f32: with room for Winograd (about twice a direct sum's error, rms; under FAST eight times) and for
// approximated functions.
double chain(const Layer& l) { return (fast_winograd(l) ? 24e-8 : 6e-8) * (64 + 16 * sqrt(double(l.reduction()))); }
// Sums of so many terms in halves: the roundings of the partial sums of a random walk of n are about 0.4 sqrt(n) of the
// last one's; five times as far for the worst of many.
double halves(const Layer& l, size_t terms) {
  return roundoff(l.type) * (!terms             ? 0
                             : fast_winograd(l) ? 96 + 2 * sqrt(double(terms))
                             : terms <= 64      ? 16
                                                : 16 + 2 * sqrt(double(terms)));
}
// Terms of a product that are summed in f16: a peer's (no kernel) all of them, ours 64 at most but under FAST on CPUs,
// and none but by instruction sets, and kernels of GPUs (_h4), that compute with f16.
size_t half_terms(const Layer& l, const std::string* kernel) {
  if (l.type != SKUA_DTYPE_F16 || !l.multiplies()) return 0;
  if (kernel && !kernel->empty() && kernel->find("fp16") == std::string::npos &&
      kernel->find("_h4") == std::string::npos)
    return 0;
  return !kernel || (bench_numerics == SKUA_NUMERICS_FAST && !on_device()) ? l.reduction()
                                                                           : std::min<size_t>(l.reduction(), 64);
}
// Rows that became bytes: of their values, which lie between -1 and 1, a 508th is the largest error, and 0.3 of that
// the usual one.
double quantized_rows(const Layer& l) { return l.quantize_a ? 0.04 : 0; }
// An activation that is no clamp: of bytes and halves it is a pass of its own.
bool curved(const Layer& l) { return !is_clamp(l.activation); }
// In halves of byte_scale: half a step of the map before the curve, times its largest slope. Of a folded hard sigmoid
// what weights of a sixth lose by the step they are stored in.
double curve_steps(const Layer& l) {
  if (!l.multiplies() || !curved(l)) return 0;
  if (l.activation == SKUA_ACTIVATION_HARD_SIGMOID) return 1.5;
  return (l.activation == SKUA_ACTIVATION_SIGMOID ? 0.26 : 1.53) * double(curve_quantization.scale / byte_scale);
}
// Results in halves are rounded once, at most twice where an activation that is no clamp follows in a pass of its own
// (whose argument is at most 4 larger than its value where its slope is not 0).
double rounded(const Layer& l, double value) {
  if (l.type == SKUA_DTYPE_F32) return 0;
  return roundoff(l.type) * (l.multiplies() ? 2 * (value + (curved(l) ? 4 : 0)) : 4 * value);
}

std::string report(size_t index, double got, double want) {
  char text[128];
  snprintf(text, sizeof text, "element %zu is %.9g, must be %.9g", index, got, want);
  return text;
}

}  // namespace

std::string check_against_formula(const Layer& l, const Operands& o, const float* got, const std::string* kernel) {
  const size_t count = l.out_count();
  unsigned state = 12345;
  for (int i = 0; i < 96 && count; ++i) {
    state = state * 1664525u + 1013904223u;
    const size_t index = i == 0 ? 0 : i == 1 ? count - 1 : size_t(state) % count;
    double magnitude = 0;
    const double want = reference(l, o, index, &magnitude);
    // Winograd's error goes with the size of the tile's values, not of the one element: hence the output's usual size.
    const double usual = magnitude / sqrt(double(l.reduction())) + fabs(want) + (l.multiplies() ? 1 : 0);
    // s8: half a step, and what the bias is off in its own units; and what a curve adds; a peer may be a step away
    // where it rounds in between, and a blend whose weights are rounded (docs/quantization.md).
    const double bound = l.type == SKUA_DTYPE_S8
                             ? roundoff(l.type) * ((l.op == Op::resize ? 3.02
                                                    : kernel           ? 1.02
                                                                       : 3.02) +
                                                   curve_steps(l))
                             : (l.type == SKUA_DTYPE_F16 ? 0x1p-24 : 0) +
                                   (chain(l) + quantized_rows(l) + halves(l, half_terms(l, kernel))) * usual +
                                   rounded(l, l.multiplies() ? fabs(want) : usual);
    if (!(fabs(got[index] - want) <= bound)) return report(index, got[index], want);
  }
  return "";
}

std::string check_against(const Layer& l, const float* ours, const float* theirs) {
  const size_t count = l.out_count();
  double scale = 0;
  for (size_t i = 0; i < count; ++i) scale = std::max(scale, fabs(double(theirs[i])));
  const double bound =
      l.type == SKUA_DTYPE_S8
          ? ((l.op == Op::resize ? 4.02 : 2.02) + curve_steps(l)) * roundoff(l.type)
          : (chain(l) + coordinates(l) + quantized_rows(l) + halves(l, half_terms(l, nullptr))) * scale +
                2 * rounded(l, scale);  // either may be off
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
