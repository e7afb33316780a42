// A tile with more accumulators than registers.
#include "canary.h"

namespace {
SKUA_CANARY_TILE(tile, 20)
}  // namespace
extern const KernelFn canary_kernels[];
const KernelFn canary_kernels[] = {tile};
