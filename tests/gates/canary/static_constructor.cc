// A table filled in before main.
#include "canary.h"

namespace {
SKUA_CANARY_TILE(tile, 4)
KernelFn pick() { volatile bool yes = true; return yes ? tile : nullptr; }
}  // namespace
extern const KernelFn canary_kernels[];
const KernelFn canary_kernels[] = {pick()};
