// Lines that are asked for before a long row comes to them. Included by the units of this family.
#pragma once
#include <stddef.h>
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// A store waits for its line, and those behind it in order: of results beyond L1 the lines are asked for. Operands come
// by themselves, unless a turn is so many instructions that the core's window holds few of their loads
// (docs/cores.md).
struct AsksAhead {
  static constexpr size_t kLeast = 65536, kAhead = 2048;  // bytes
  const bool asks;
  explicit SKUA_INL AsksAhead(size_t bytes) : asks(F32::L >= 8 && bytes >= kLeast) {}
  template <size_t bytes> SKUA_INL void turn(const void* at) const {
    if (asks)
      SKUA_UNROLL for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(static_cast<const char*>(at) + kAhead + i);
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
