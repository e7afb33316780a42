// Which core a kernel is scheduled for. Out-of-order cores order instructions themselves; on the in-order ones a loop
// must be written for what issues together.
// Plain data: kernel units include it.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace skua {

enum class Core : uint8_t {
  any,  // out of order, or unknown
  a53,  // Cortex-A34, A35, A53: an insert and a 64-bit load issue together, neither beside a multiply
  a55,  // Cortex-A55, A510, A520: each of them issues beside a multiply
};

}  // namespace skua
