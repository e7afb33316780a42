// What a kernel says of itself, and the table in which a unit (one family compiled for one instruction set) lists its
// kernels.
// Plain data, no standard library: this header is compiled with every instruction set's flags.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "dispatch/core.h"
#include "dispatch/isa.h"

namespace skua {

// A kind fixes the type of the code pointer and the meaning of `variant`; the family's *_kernel.h states both.
enum class KernelKind : uint8_t {
#define SKUA_KERNEL_KIND(name) name,
#include "dispatch/kinds.def"
#undef SKUA_KERNEL_KIND
};

using AnyCode = void (*)();  // cast back to the kind's type with code_of<>

struct Kernel {
  const char* name;    // "gemm_f32_6x64_avx512": kind, types, tile, instruction set
  const char* family;  // the folder: "gemm"
  const char* why;     // one sentence
  KernelKind kind;
  Isa isa;
  // which function or shape of the kind: a skua_unary_kind, a stride, ...; 0 where there is one only
  uint16_t variant;
  uint16_t mr, nr;     // tile: rows and columns (elements); 0 where the kind has none
  uint16_t vector;     // floats per vector register
  AnyCode code;
  // {} and not "= Element::f32": of the latter gcc makes code that runs before main.
  Element element{};   // of the feature maps in memory; f32 unless given
  Core tuned_for{};    // not any: used on such cores only
#ifdef SKUA_COUNT_CALLS
  mutable uint64_t calls = 0;  // the tests' coverage account
#endif
};

struct KernelTable {
  const Kernel* kernels;
  size_t count;
};

template <class Fn> inline Fn code_of(const Kernel* kernel) { return reinterpret_cast<Fn>(kernel->code); }

}  // namespace skua

#define SKUA_STRING_(x) #x
#define SKUA_STRING(x) SKUA_STRING_(x)
#define SKUA_PASTE_(a, b) a##_##b
#define SKUA_PASTE(a, b) SKUA_PASTE_(a, b)
// In namespace skua: defines the one external symbol of a unit: `skua::<family>_<isa>`, e.g. SKUA_KERNEL_TABLE(gemm,
// kernels).
#define SKUA_KERNEL_TABLE(family, array)                             \
  extern const KernelTable SKUA_PASTE(family, SKUA_ISA);             \
  const KernelTable SKUA_PASTE(family, SKUA_ISA) = {SKUA_ISA::array, \
                                                    sizeof(SKUA_ISA::array) / sizeof(SKUA_ISA::array[0])};
