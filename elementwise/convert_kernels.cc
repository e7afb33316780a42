// Conversions between float types: y[i] = x[i], rounded to nearest even; one source for every instruction set. Four
// vectors a turn: loads and stores bind. KernelKind::convert, variant = type of x, element = type of y.
#include "elementwise/unary_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <class X, class Y> void convert(size_t n, const void* from, void* to) {
  const X* x = static_cast<const X*>(from);
  Y* y = static_cast<Y*>(to);
  constexpr size_t L = F32::L;
  for (; n >= 4 * L; n -= 4 * L, x += 4 * L, y += 4 * L) {
    F32 v[4];
    SKUA_UNROLL for (size_t i = 0; i < 4; ++i) v[i] = F32::load(x + i * L);
    SKUA_UNROLL for (size_t i = 0; i < 4; ++i) v[i].store(y + i * L);
  }
  for (; n >= L; n -= L, x += L, y += L) F32::load(x).store(y);
  if (n) F32::load_n(x, n).store_n(y, n);
}

const Kernel kernels[] = {
#define SKUA_CONVERT(X, from, Y, to)                                                                              \
  {"convert_" #from "_" #to "_" SKUA_STRING(SKUA_ISA), "elementwise", "widened exactly, rounded to nearest even", \
   KernelKind::convert, Isa::SKUA_ISA, uint16_t(element_of<X>), 0, 0, F32::L,                                     \
   reinterpret_cast<AnyCode>(static_cast<ConvertFn>(convert<X, Y>)), element_of<Y>},
    SKUA_CONVERT(float, f32, float, f32)
#ifdef SKUA_TYPE_f16
    SKUA_CONVERT(float, f32, f16, f16) SKUA_CONVERT(f16, f16, float, f32) SKUA_CONVERT(f16, f16, f16, f16)
#endif
#ifdef SKUA_TYPE_bf16
    SKUA_CONVERT(float, f32, bf16, bf16) SKUA_CONVERT(bf16, bf16, float, f32) SKUA_CONVERT(bf16, bf16, bf16, bf16)
#endif
#if defined(SKUA_TYPE_f16) && defined(SKUA_TYPE_bf16)
    SKUA_CONVERT(f16, f16, bf16, bf16) SKUA_CONVERT(bf16, bf16, f16, f16)
#endif
#undef SKUA_CONVERT
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(convert, kernels)
}  // namespace skua
