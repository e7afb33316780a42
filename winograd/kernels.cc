// The kernels of Winograd's algorithm in f32, for feature maps of every type.
#include "dispatch/element.h"
#include "dispatch/kernel.h"
#include "winograd/product.h"
#include "winograd/transforms.h"

namespace skua {
namespace SKUA_ISA {
namespace {

const Kernel kernels[] = {
#define SKUA_WINOGRAD_IN(T, type, my, mx, name, why)                                                \
  {"winograd_in_" #type "_" #name "_" SKUA_STRING(SKUA_ISA), "winograd", "input transform of " why, \
   KernelKind::winograd_in, Isa::SKUA_ISA, uint16_t(WinogradVariant::name), my, mx, F32::L,         \
   reinterpret_cast<AnyCode>(static_cast<WinogradInFn>(transform_tile_in<my, mx, T, float>)), Element::type},
#define SKUA_WINOGRAD_OUT(T, type, my, mx, oy, ox, name, why)                                                      \
  {"winograd_out_" #type "_" #name "_" SKUA_STRING(SKUA_ISA), "winograd", "output transform and epilogue of " why, \
   KernelKind::winograd_out, Isa::SKUA_ISA, uint16_t(WinogradVariant::name), oy, ox, F32::L,                       \
   reinterpret_cast<AnyCode>(static_cast<WinogradOutFn>(transform_tile_out<my, mx, oy, ox, T>)), Element::type},
#define SKUA_WINOGRAD(T, type, my, mx, name, why) \
  SKUA_WINOGRAD_IN(T, type, my, mx, name, why) SKUA_WINOGRAD_OUT(T, type, my, mx, my, mx, name, why)
#define SKUA_VARIANTS(T, type)                                                                                         \
    SKUA_WINOGRAD(T, type, 2, 2, f2x2, "F(2,3): 4 products per output, as exact as direct sums")                       \
    SKUA_WINOGRAD(T, type, 4, 2, f4x2, "F(4,3) x F(2,3): 3 products per output, less weight to stream than F(4,3)")    \
    SKUA_WINOGRAD(T, type, 4, 4, f4x4, "F(4,3) with the points 0, +-sqrt(1/2), +-sqrt(2): 2.25 products per output")   \
    SKUA_WINOGRAD(T, type, 6, 6, f6x6, "F(6,3): 1.78 products per output, about 8 times the rounding error")           \
    SKUA_WINOGRAD_OUT(T, type, 4, 4, 2, 2, f2x2_5x5,                                                                   \
                      "F(2,5) with the points and the input transform of F(4,3): 9 products per output instead of 25") \
    SKUA_WINOGRAD_OUT(T, type, 2, 2, 3, 3, f3x3_s2,                                                                    \
                      "F(3,2) of stride 2 with the points and the input transform of F(2,3): 5.4 products per output " \
                      "instead of 9")
    SKUA_FOR_TYPES(SKUA_VARIANTS)
#undef SKUA_WINOGRAD_IN
#undef SKUA_WINOGRAD_OUT
#undef SKUA_WINOGRAD
#undef SKUA_VARIANTS
#define SKUA_PRODUCT(mr, nr, why) SKUA_CORE_PRODUCT(mr, nr, any, "", why)
#define SKUA_CORE_PRODUCT(mr, nr, core, suffix, why)                                                                 \
  {"winograd_product_f32_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "winograd", why,                            \
   KernelKind::winograd_product, Isa::SKUA_ISA, 0, mr, nr, F32::L,                                                   \
   reinterpret_cast<AnyCode>(static_cast<WinogradProductTableFn>(table<mr, nr / F32::L, Core::core>)), Element::f32, \
   Core::core},
#if defined(SKUA_ISA_avx512)
    SKUA_PRODUCT(28, 16,
                 "28 accumulators + 1 U of 32 registers, V by broadcast operands; 29 loads feed 28 multiply-adds at "
                 "4.4 bytes of U per cycle")
#elif defined(SKUA_ISA_avx2)
    SKUA_PRODUCT(6, 16, "12 accumulators + 2 U + 1 V of 16 registers; 8 loads feed 12 multiply-adds")
#elif defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)
    SKUA_PRODUCT(4, 8, "8 accumulators + 2 U + 1 V + 1 product of 16 registers: no fused multiply-add")
#elif defined(SKUA_ISA_neon)
    SKUA_CORE_PRODUCT(6, 8, a53, "_a53",
                      "scheduled for the Cortex-A53: 12 accumulators + 12 V + 8 U, loads in halves beside "
                      "multiply-adds")
    SKUA_CORE_PRODUCT(6, 8, a55, "_a55", "the same program, of the Cortex-A55")
    SKUA_PRODUCT(6, 8, "12 accumulators + 6 V (four deep, by lane) + 2 U of 32 registers")
#elif defined(SKUA_ISA_neon32)
    SKUA_CORE_PRODUCT(4, 8, a53, "_a53",
                      "scheduled for the Cortex-A53: 8 accumulators + 4 V + 4 U, a vector in a D register and two "
                      "words beside multiplies")
    SKUA_CORE_PRODUCT(4, 8, a55, "_a55",
                      "scheduled for the Cortex-A55: the same registers, loads of D registers beside multiplies")
    SKUA_PRODUCT(4, 8, "8 accumulators + 4 V (four deep, by lane) + 2 U of 16 registers")
#else
    SKUA_PRODUCT(4, 4, "portable C++: sixteen sums in registers")
#endif
#undef SKUA_PRODUCT
#undef SKUA_CORE_PRODUCT
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(winograd, kernels)
}  // namespace skua
