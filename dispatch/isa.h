// Names and order of the instruction sets, from isa.def. Plain data: kernel units include it.
#pragma once
#include <stdint.h>
#include "dispatch/element.h"

namespace skua {

enum class Isa : uint8_t {
#define SKUA_ISA_ENTRY(name, arch, bytes, type, flags) name,
#include "dispatch/isa.def"
#undef SKUA_ISA_ENTRY
};
constexpr int kIsaCount = 0
#define SKUA_ISA_ENTRY(name, arch, bytes, type, flags) +1
#include "dispatch/isa.def"
#undef SKUA_ISA_ENTRY
    ;

using IsaMask = uint32_t;  // bit per Isa
constexpr IsaMask isa_bit(Isa isa) { return IsaMask(1) << int(isa); }

enum class Arch : uint8_t { any, x86_64, arm64, arm32, other };
#if defined(__x86_64__) || defined(_M_X64)
constexpr Arch kArch = Arch::x86_64;
#elif defined(__aarch64__)
constexpr Arch kArch = Arch::arm64;
#elif defined(__arm__)
constexpr Arch kArch = Arch::arm32;
#else
constexpr Arch kArch = Arch::other;
#endif

struct IsaEntry {
  const char* name;
  Arch arch;
  int vector_bytes;
  // f32: with kernels of every family; else arithmetic in that type (s8: on bytes) for the families that name it
  Element type;
};
constexpr IsaEntry kIsas[kIsaCount] = {
#define SKUA_ISA_ENTRY(name, arch, bytes, type, flags) {#name, Arch::arch, bytes, Element::type},
#include "dispatch/isa.def"
#undef SKUA_ISA_ENTRY
};
constexpr bool isa_exists_here(Isa isa) { return kIsas[int(isa)].arch == Arch::any || kIsas[int(isa)].arch == kArch; }

}  // namespace skua
