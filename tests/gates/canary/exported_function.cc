// A kernel that is visible by its own name.
#include "canary.h"

SKUA_CANARY_TILE(tile, 4)
extern const KernelFn canary_kernels[];
const KernelFn canary_kernels[] = {tile};
