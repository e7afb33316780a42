// The products of Winograd's algorithm, one source for every instruction set: M[r][j] += V[r][k] * U[k][j] for tiles r,
// channels k, columns j.
//
//            U: NV*L columns, one stream      V: [k / 16][tile][16], tiles 16 floats apart: one address register for
//   V ->     acc[r][v] += V[r][k] * U[k][v]      all of them
//
// U is prefetched kAhead floats before its use, into L2 kFar before, or by pages (gemm/ahead.h): a product of few tiles
// waits for nothing else.
// Blocks follow each other in memory, so the end of one product prefetches the next one's begin.
//
// Registers: MR*NV accumulators + NV of U, V as a broadcast operand (AVX-512) or + 1 (by lane: + MR). Tall tiles: MR
// rows per vector of U make the products run at 64 bytes of U per MR*NV/2 cycles or less, what one core reads from the
// last cache level, without a second pass over U.
#pragma once
#include "gemm/step.h"
#include "simd/simd.h"
#include "winograd/product_table.h"
#include "winograd/whole_line.h"
#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
#include "winograd/in_order.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t kAhead = kWinogradAhead / sizeof(float);
// In a network U comes from memory: more lines must be on their way than L1 can wait for, so L2 asks first. MobileNets
// have no such layers; in ResNet-18 and -50 these products take 7 to 10% less time; warm by themselves, with U in L3,
// up to 5% more. By pages in turn another fifth less, from L3 no more. Narrower vectors use a line for longer.
constexpr size_t kFar = F32::L == 16 ? 6144 : kAhead;

template <int MR, int NV> void product(const WinogradProduct& p) {
  constexpr int L = F32::L;
  const float* u = static_cast<const float*>(p.u);
  [[maybe_unused]] Ahead ahead(p, NV * L * sizeof(float));
  [[maybe_unused]] const RowAhead far(kFar * sizeof(float), false, p.pages);
  for (size_t column = 0; column < p.groups * (NV * L); column += NV * L) {
    float* const m = static_cast<float*>(p.m) + column / kWinogradLine * p.line + column % kWinogradLine;
    F32 acc[MR][NV];
    if (p.add)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < NV; ++v)
          acc[r][v] = F32::load(m + r * kWinogradLine + v * L);
    else SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
    const float* a = static_cast<const float*>(p.v);
    size_t left = p.k;
    for (; left; a += p.line) {
      const size_t steps = left < kWinogradLine ? left : kWinogradLine;
      left -= steps;
      const float *x = a, *const end = a + steps;
      if constexpr (F32::by_lane) {
        for (; x + 4 <= end; x += 4) {
          F32 b[MR];
          SKUA_UNROLL for (int r = 0; r < MR; ++r) b[r] = F32::load(x + r * kWinogradLine);
          F32 w[NV];
#define SKUA_STEP(i)                                                      \
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = F32::load(u + v * L); \
    if constexpr (i % 2 == 0) __builtin_prefetch(u + kAhead);             \
    SKUA_UNROLL for (int v = 0; v < NV; ++v)                              \
      SKUA_UNROLL for (int r = 0; r < MR; ++r)                            \
        acc[r][v] = fma_lane<i>(acc[r][v], w[v], b[r]);                   \
    u += NV * L;
          SKUA_STEP(0) SKUA_STEP(1) SKUA_STEP(2) SKUA_STEP(3)
#undef SKUA_STEP
        }
      }
      if constexpr (kByLine<MR, NV>)
        if (steps == kWinogradLine) {
          multiply_line(x, u, ahead.next(), acc);
          u += kWinogradLine * NV * L;
          continue;
        }
      const auto once = [&]() __attribute__((always_inline)) {
        F32 w[NV];
        __builtin_prefetch(u + kAhead);
        if constexpr (kFar > kAhead) far.ask<1, true>(u);
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = F32::load(u + v * L);
          // else gcc reads U from memory once per row
          if constexpr (MR > 1 && MR * NV + NV + 1 <= F32::registers) pin(w[v]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          const F32 b = F32::broadcast(x + r * kWinogradLine);
          SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(b, w[v], acc[r][v]);
        }
        ++x;
        u += NV * L;
      };
      while (x < end) once();
    }
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[r][v].store(m + r * kWinogradLine + v * L);
  }
}

#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
template <int MR, int NV> constexpr WinogradProductFn product_for(Core core) {
  if constexpr (kInOrderRows<MR> && NV == 2)
    if (core != Core::any) {  // on AArch64 one is for both
      constexpr Core a55 = kProductVectors == 16 ? Core::a55 : Core::a53;
      return core == Core::a55 ? product_in_order<float, float, F32, MR, a55, product<MR, 2>>
                               : product_in_order<float, float, F32, MR, Core::a53, product<MR, 2>>;
    }
  return product<MR, NV>;
}
#else
template <int MR, int NV> constexpr WinogradProductFn product_for(Core) { return product<MR, NV>; }
#endif
template <Core core> struct EveryProduct {
#if defined(SKUA_ISA_neon32)
  static constexpr bool full = core != Core::any;
#endif
  template <int MR, int NV> static constexpr WinogradProductFn of = product_for<MR, NV>(core);
};
template <int MR, int NV, Core core = Core::any>
const WinogradProductTable& table() {
  return table_of<EveryProduct<core>, MR, NV>;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
