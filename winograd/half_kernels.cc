// Winograd's algorithm in f16 where the instruction set computes in it: V and U are f16, products are summed in f16 for
// 64 channels at a time and these sums in f32, transforms compute in f32. F(6,3) is left out: its V and U lose too many
// digits.
//
//            U: NV*L columns, one stream      V: [k / 16][tile][16], tiles 16 halves apart
//   V ->     acc[r][v] += V[r][k] * U[k][v]   64 steps, then M[r][..] += acc, two vectors of f32 for each of f16
//
// Registers: as for f32 (product.h), with twice the columns.
#include "dispatch/kernel.h"
#include "simd/half.h"
#include "winograd/product_table.h"
#include "winograd/transforms.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t kAhead = kWinogradAhead / sizeof(f16);

// acc + b * *a. On x86 as one instruction: compilers load and broadcast apart, on a port that multiplies.
SKUA_INL F16 fma_broadcast(F16 acc, F16 b, const f16* a) {
#if defined(SKUA_ISA_avx512fp16)
  asm("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(acc.v) : "v"(b.v), "m"(a->bits));
  return acc;
#else
  return fma(F16::broadcast(a), b, acc);
#endif
}

template <int MR, int NV> void product(const WinogradProduct& p) {
  constexpr int H = F16::L;
  const f16* u = static_cast<const f16*>(p.u);
  for (size_t column = 0; column < p.groups * (NV * H); column += NV * H) {
    float* const m = static_cast<float*>(p.m) + column / kWinogradLine * p.line + column % kWinogradLine;
    const f16* a = static_cast<const f16*>(p.v);
    bool add = p.add;
    for (size_t left = p.k; left;) {
      F16 acc[MR][NV];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F16::zero();
      for (size_t chain = kWinogradHalfDepth / kWinogradLine; left && chain; --chain, a += p.line) {
        const size_t steps = left < kWinogradLine ? left : kWinogradLine;
        left -= steps;
        const f16 *x = a, *const end = a + steps;
        if constexpr (F16::by_lane) {
          for (; x + 8 <= end; x += 8) {
            F16 b[MR];
            SKUA_UNROLL for (int r = 0; r < MR; ++r) b[r] = F16::load(x + r * kWinogradLine);
            F16 w[NV];
#define SKUA_STEP(i)                                                      \
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = F16::load(u + v * H); \
    if constexpr (i % 2 == 0) __builtin_prefetch(u + kAhead);             \
    SKUA_UNROLL for (int v = 0; v < NV; ++v)                              \
      SKUA_UNROLL for (int r = 0; r < MR; ++r)                            \
        acc[r][v] = fma_lane<i>(acc[r][v], w[v], b[r]);                   \
    u += NV * H;
            SKUA_STEP(0) SKUA_STEP(1) SKUA_STEP(2) SKUA_STEP(3) SKUA_STEP(4) SKUA_STEP(5) SKUA_STEP(6) SKUA_STEP(7)
#undef SKUA_STEP
          }
        }
        for (; x < end; ++x, u += NV * H) {
          F16 w[NV];
          __builtin_prefetch(u + kAhead);
          SKUA_UNROLL for (int v = 0; v < NV; ++v) {
            w[v] = F16::load(u + v * H);
            if constexpr (MR > 1 && MR * NV + NV + 1 <= F16::registers) pin(w[v]);
          }
          SKUA_UNROLL for (int r = 0; r < MR; ++r) {
            if constexpr (NV == 1) {
              acc[r][0] = fma_broadcast(acc[r][0], w[0], x + r * kWinogradLine);
            } else {
              const F16 b = F16::broadcast(x + r * kWinogradLine);
              SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(b, w[v], acc[r][v]);
            }
          }
        }
      }
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          F32 half[2];
          to_f32(acc[r][v], half[0], half[1]);
          SKUA_UNROLL for (int i = 0; i < 2; ++i) {
            float* const to = m + size_t(v * H + i * H / 2) / kWinogradLine * p.line +
                              size_t(v * H + i * H / 2) % kWinogradLine + r * kWinogradLine;
            (add ? half[i] + F32::load(to) : half[i]).store(to);
          }
        }
      add = true;
    }
  }
}

struct EveryProduct {
  template <int MR, int NV> static constexpr WinogradProductFn of = product<MR, NV>;
};
template <int MR, int NV> const WinogradProductTable& table() { return table_of<EveryProduct, MR, NV>; }

const Kernel kernels[] = {
#define SKUA_WINOGRAD_IN(my, mx, name, why)                                                                         \
  {"winograd_half_in_f16_" #name "_" SKUA_STRING(SKUA_ISA), "winograd", "input transform, rounded to f16, of " why, \
   KernelKind::winograd_in, Isa::SKUA_ISA, uint16_t(WinogradVariant::name) + kWinogradHalf, my, mx, F32::L,         \
   reinterpret_cast<AnyCode>(static_cast<WinogradInFn>(transform_tile_in<my, mx, f16, f16>)), Element::f16},
    SKUA_WINOGRAD_IN(2, 2, f2x2, "F(2,3)")
    SKUA_WINOGRAD_IN(4, 2, f4x2, "F(4,3) x F(2,3)")
    SKUA_WINOGRAD_IN(4, 4, f4x4, "F(4,3) and F(2,5)")
#undef SKUA_WINOGRAD_IN
#define SKUA_PRODUCT(mr, nr, why)                                                                                \
  {"winograd_product_f16_" #mr "x" #nr "_" SKUA_STRING(SKUA_ISA), "winograd", why, KernelKind::winograd_product, \
   Isa::SKUA_ISA, 0, mr, nr, F16::L,                                                                             \
   reinterpret_cast<AnyCode>(static_cast<WinogradProductTableFn>(table<mr, nr / F16::L>)), Element::f16},
#if defined(SKUA_ISA_avx512fp16)
    SKUA_PRODUCT(28, 32, "28 accumulators + 1 U of 32 registers, V by broadcast operands")
#elif defined(SKUA_ISA_neon_fp16)
    SKUA_PRODUCT(6, 16, "12 accumulators + 6 V (eight deep, by lane) + 2 U of 32 registers")
#else
    SKUA_PRODUCT(4, 16, "8 accumulators + 4 V (eight deep, by lane) + 2 U of 16 registers")
#endif
#undef SKUA_PRODUCT
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(winograd, kernels)
}  // namespace skua
