// Tables of 256 bytes for VBMI, which finds one of 128 entries in one operation: four operations for 64 bytes where
// byte_kernels.cc takes 40.
#include "dispatch/kernel.h"
#include "elementwise/byte_kernel.h"
#include "simd/look_up.h"

namespace skua {
namespace SKUA_ISA {
namespace {

void table(size_t n, const void* x, void* y, const uint8_t* entries) {
  look_up(n, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), entries);
}

const Kernel kernels[] = {{"table_x8_" SKUA_STRING(SKUA_ISA), "elementwise",
                           "every unary function of bytes: 256 entries, made once, in four registers",
                           KernelKind::table, Isa::SKUA_ISA, 0, 0, 0, F32::L,
                           reinterpret_cast<AnyCode>(static_cast<TableFn>(table)), Element::s8}};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(bytes, kernels)
}  // namespace skua
