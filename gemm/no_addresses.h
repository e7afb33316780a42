// What keeps gcc's addresses out of the registers of tiles. Included by the units of this family.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// gcc keeps addresses in vector and mask registers that the sums leave free. On their way back they pass the
// multiply-adds' ports, behind all those of the tile before: 10 to 15 cycles a tile in which nothing is multiplied. So
// no value of a tile of `used` sums lives there across a step.
template <int used> SKUA_INL void no_addresses() {
#if (defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avx512bf16)) && !defined(__clang__)
  asm volatile("" : : : "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7");
  if constexpr (used <= 28) asm volatile("" : : : "xmm28", "xmm29", "xmm30", "xmm31");
  if constexpr (used <= 24) asm volatile("" : : : "xmm24", "xmm25", "xmm26", "xmm27");
  if constexpr (used <= 16)
    asm volatile("" : : : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23");
#endif
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
