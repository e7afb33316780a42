// A unit as it should be: one table, everything else hidden. Every gate must pass it.
#include "canary.h"

namespace {
SKUA_CANARY_TILE(tile, 4)
}  // namespace

extern const KernelFn canary_kernels[];
const KernelFn canary_kernels[] = {tile};
