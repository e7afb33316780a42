// Unary functions: y[i] = f(x[i]), one source for every instruction set. KernelKind::unary, variant = skua_unary_kind.
// Four vectors a turn where the function is an instruction or two, so that loads and stores bind; two where it is long, so that an in-order
// core finds independent work, and three square roots, so that one may use the core's unit for them beside the others' multiply-adds; then
// single vectors, and the rest by a partial load and store (long functions use those for single vectors too: one copy less of the code). No
// element's value depends on its place.
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

constexpr float selu_scale = 1.0507010f, selu_scale_alpha = static_cast<float>(1.0507010 * 1.6732632);

// The sum with 3 is exact where the result is small, unlike x/6 + 1/2.
SKUA_INL F32 up_to_3_by_6(F32 x) { return (clamp_high(x, F32::set1(3.0f)) + F32::set1(3.0f)) * F32::set1(0.166666667f); }
SKUA_INL F32 hard_sigmoid(F32 x) { return up_to_3_by_6(clamp_low(x, F32::set1(-3.0f))); }
SKUA_INL F32 hard_swish(F32 x) {
  x = clamp_low(x, F32::set1(-3.0f));
  return x * up_to_3_by_6(x);
}

SKUA_INL F32 selu(F32 x) {
  const F32 y = elu(x, F32::set1(selu_scale_alpha));
  return select(lt(x, F32::zero()), y, F32::set1(selu_scale) * x);
}

// f(x, u): of the u-th vector of a turn.
template <size_t unroll, class T, class F> SKUA_INL void row(size_t n, const T* x, T* y, F f) {
  constexpr size_t L = F32::L;
  for (; n >= unroll * L; n -= unroll * L, x += unroll * L, y += unroll * L) {
    F32 v[unroll];
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i] = F32::load(x + i * L);
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i] = f(v[i], i);
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i].store(y + i * L);
  }
  if (unroll == 4)
    for (; n >= L; n -= L, x += L, y += L) f(F32::load(x), 0).store(y);
  while (n) {
    const size_t m = n < L ? n : L;
    f(F32::load_n(x, m), 0).store_n(y, m);
    n -= m;
    x += m;
    y += m;
  }
}

constexpr int kSqrt = 17;
#define SKUA_UNARY(number, kind, name, cycles, expression)                                                                   \
  template <class T> void name##_row(size_t n, const void* x_row, void* y_row, float a, float b) {                           \
    const Params p = {F32::set1(a), F32::set1(b)};                                                                           \
    (void)p;                                                                                                                 \
    row<cycles <= 4 ? 4 : number == kSqrt ? 3 : 2>(n, static_cast<const T*>(x_row), static_cast<T*>(y_row),                  \
                                                   [&](F32 x, size_t u) __attribute__((always_inline)) { (void)u; return expression; }); \
  }
#include "elementwise/unary.def"
#undef SKUA_UNARY

const Kernel kernels[] = {
#define SKUA_KERNEL(T, type, number, name, expression)                                                                                   \
  {#name "_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", #expression, KernelKind::unary, Isa::SKUA_ISA, number, 0, 0, F32::L,          \
   reinterpret_cast<AnyCode>(static_cast<UnaryFn>(name##_row<T>)), element_of<T>},
#define SKUA_UNARY(number, kind, name, cycles, expression) SKUA_FOR_TYPES(SKUA_KERNEL, number, name, expression)
#include "elementwise/unary.def"
#undef SKUA_UNARY
#undef SKUA_KERNEL
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(elementwise, kernels)
}  // namespace skua
