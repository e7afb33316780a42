// Unary functions: y[i] = f(x[i]), one source for every instruction set. KernelKind::unary, variant = skua_unary_kind.
#include "elementwise/unary_kernel.h"
#include "dispatch/kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct Params {
  F32 a, b;
};

template <F32 (*f)(F32, const Params&)> void unary(size_t n, const float* x, float* y, float a, float b) {
  const Params params = {F32::set1(a), F32::set1(b)};
  constexpr size_t L = F32::L;
  for (; n >= L; n -= L, x += L, y += L) f(F32::load(x), params).store(y);
  if (n) f(F32::load_n(x, n), params).store_n(y, n);
}

#define SKUA_UNARY(kind, name, expression) \
  SKUA_INL F32 name##_of(F32 x, const Params& p) { (void)p; return expression; }
#include "elementwise/unary.def"
#undef SKUA_UNARY

const Kernel kernels[] = {
#define SKUA_UNARY(kind, name, expression)                                                                              \
  {#name "_f32_" SKUA_STRING(SKUA_ISA), "elementwise", #expression, KernelKind::unary, Isa::SKUA_ISA, kind, 0, 0, F32::L, \
   reinterpret_cast<AnyCode>(static_cast<UnaryFn>(unary<name##_of>))},
#include "elementwise/unary.def"
#undef SKUA_UNARY
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(elementwise, kernels)
}  // namespace skua
