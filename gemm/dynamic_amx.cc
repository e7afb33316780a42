// Many rows by weights in four bits in AMX's registers: products of what unpack() of the vectors made bytes of. The
// formula is GemmNibbles's, and so are the bits: a block's sums are exact, what follows is the same in the same order.
//
//   [block / 4][64 columns][4 bytes] is 16 rows of a register of B, lines apart, where the block is a multiple of 64:
//   4 of sums + 2 of A + 2 of B of 8 registers, 32 rows by 32 columns, both halves of a panel one after the other
#define SKUA_ISA_avx512vnni 1  // the vectors beside
#include "gemm/amx_tiles.h"
#include "gemm/dynamic_kernel.h"
#include "gemm/nibble_dot.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int kColumns = 64, kVectors = kColumns / L;

template <int sum, int a, int b> SKUA_INL void product() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}

// Sums of a block, of tall * 16 rows of A and the panel.
template <int tall>
SKUA_INL void multiply_block(const uint8_t* a, size_t step, const char* b, size_t block, int32_t* sums) {
  constexpr ptrdiff_t kApart = 4 * kColumns;  // bytes of four of the depth, and of a row of sums
  for (int half = 0; half < 2; ++half, b += 2 * kLine, sums += 2 * L) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (tall > 1) {
      _tile_zero(2);
      _tile_zero(3);
    }
    for (size_t k = 0; k < block; k += kLine) {
      const char* const w = b + k * kColumns;
      _tile_loadd(6, w, kApart);
      _tile_loadd(4, a + k, step);
      product<0, 4, 6>();
      _tile_loadd(7, w + kLine, kApart);
      product<1, 4, 7>();
      if constexpr (tall > 1) {
        _tile_loadd(5, a + k + kRows * step, step);
        product<2, 5, 6>();
        product<3, 5, 7>();
      }
    }
    _tile_stored(0, sums, kApart);
    _tile_stored(1, sums + L, kApart);
    if constexpr (tall > 1) {
      _tile_stored(2, sums + kRows * kColumns, kApart);
      _tile_stored(3, sums + kRows * kColumns + L, kApart);
    }
  }
}

// Rows [first, tall * 16) from row `at` on to y.
template <int tall> void add_tile(const GemmNibbles& t, size_t at, int first) {
  alignas(64) int32_t sums[tall * kRows * kColumns];
  const size_t block_bytes = weights_block_bytes(Element::s4, kColumns, t.block, t.scale_type, t.sums != nullptr);
  const char* scales = t.b + kColumns * (t.block / 2);
  const uint8_t* a = t.a + at * t.a_step;
  asm volatile("" : : : "memory");  // loads of registers do not say that they read it
  for (size_t i = 0; i < t.blocks; ++i, scales += block_bytes, a += t.block) {
    multiply_block<tall>(a, t.a_step, t.bytes + i * t.block * kColumns, t.block, sums);
    const auto scaled = [&](auto* p) __attribute__((always_inline)) {
      F32 scale[kVectors], zeros[kVectors];
      SKUA_UNROLL for (int v = 0; v < kVectors; ++v) {
        scale[v] = F32::load(p + v * L);
        zeros[v] = t.sums ? F32::load(reinterpret_cast<const int8_t*>(p + kColumns) + v * L) * scale[v] : F32::zero();
      }
      for (int r = first; r < tall * kRows; ++r) {
        float* const y = t.y + (at + size_t(r)) * kColumns;
        const F32 sum = t.sums ? F32::set1(kFactor * float(t.sums[(at + size_t(r)) * t.sums_step + i])) : F32::zero();
        SKUA_UNROLL for (int v = 0; v < kVectors; ++v) {
          F32 x = fma(to_f32(I32::load(sums + r * kColumns + v * L)), scale[v],
                      i || t.more ? F32::load(y + v * L) : F32::zero());
          if (t.sums) x = fnma(sum, zeros[v], x);
          x.store(y + v * L);
        }
      }
    };
    if (t.scale_type == Element::f16) scaled(reinterpret_cast<const f16*>(scales));
    else if (t.scale_type == Element::bf16) scaled(reinterpret_cast<const bf16*>(scales));
    else scaled(reinterpret_cast<const float*>(scales));
  }
}

// The last tile begins earlier rather than to go on behind the rows.
void add(const GemmNibbles& t, size_t rows) {
  constexpr size_t kTall = 2 * kRows;
  size_t done = 0;
  for (; done + kTall <= rows; done += kTall) add_tile<2>(t, done, 0);
  if (done == rows) return;
  const size_t left = rows - done;
  if (left <= size_t(kRows)) return add_tile<1>(t, rows - kRows, int(kRows - left));
  if (rows >= kTall) return add_tile<2>(t, rows - kTall, int(kTall - left));
  add_tile<1>(t, 0, 0);
  add_tile<1>(t, rows - kRows, int(kTall - left));
}

constexpr GemmNibblesRows table = {add, [] { enter(kRows); }, leave};
const GemmNibblesRows& rows_table() { return table; }

const Kernel kernels[] = {
    {"gemm_s4_32x64_" SKUA_STRING(SKUA_ISA), "gemm",
     "many rows, of nibbles that became bytes: 4 of sums + 2 of A + 2 of B of 8 registers", KernelKind::gemm_nibbles,
     Isa::SKUA_ISA, kNibblesRows, 2 * kRows, kColumns, L,
     reinterpret_cast<AnyCode>(static_cast<GemmNibblesRowsFn>(rows_table)), Element::s4}};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_dynamic, kernels)
}  // namespace skua
