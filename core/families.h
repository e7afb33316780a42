// The families' kernel tables; defined by the generated skua_tables_<family>.cc.
#pragma once
#include "dispatch/kernel.h"

namespace skua {
#define SKUA_FAMILY(name) extern const KernelTable* const name##_tables[];
#include "core/families.def"
#undef SKUA_FAMILY
}  // namespace skua
