// The products of Winograd's algorithm in f32 on in-order cores: programs of simd/in_order.h, for the numbers of tiles that hide a multiply-add's latency. Included by product.h.
//
//   a turn   eight channels of MR tiles: 16 * MR multiply-adds by lane
//
// Registers: AArch64, up to six tiles: 2 * MR sums, V of two times four channels, eight of U: 32. AArch32, four tiles: eight sums, four of V, which are loaded anew while the last of the four channels
// goes from tile to tile, four of U: 16. The sums are those of the other products, in their order.
#pragma once
#include "simd/in_order.h"
#include "winograd/winograd_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(__aarch64__)
constexpr int kVSets = 2, kMostTiles = 6, kWeightRing = 8, kProductVectors = 32;
#else
constexpr int kVSets = 1, kMostTiles = 4, kWeightRing = 4, kProductVectors = 16;
#endif
constexpr int kTurn = 8, kSumsAt = 0, kTilesAt = 2 * kMostTiles, kWeightsAt = kTilesAt + kVSets * kMostTiles;
constexpr size_t kFetched = kVSets == 2 ? kWinogradAhead : 4096 - 64 * kTurn / 2;  // AArch32: what an instruction holds
template <int MR> constexpr bool kInOrderRows = MR >= 4 && MR <= kMostTiles;  // eight chains of sums at least

enum class ProductDo : uint8_t { lane0, lane1, lane2, lane3, next_v, next_u, fetch };
enum ProductSource : uint8_t { kTiles, kWeights };

template <int MR, Core core, bool start> consteval auto make_product_turn() {
  constexpr bool by_tile = kVSets == 1;  // a vector of V is free for a while, then
  InOrderBuilder<96, 80> turn;
  if (kVSets == 1) turn.pieces = core == Core::a53 ? Pieces::words : Pieces::registers;
  int ahead = 0;
  for (int k = 0; k < kTurn; ++k) {
    if (k == 1) ahead = kVSets == 1 ? 5 : turn.helpers;
    int u[2] = {}, tile = -1;
    for (int i = 0; i < 2 * MR; ++i) {
      const int r = by_tile ? i / 2 : i % MR, v = by_tile ? i % 2 : i / MR, to = kWeightsAt + (2 * k + v) % kWeightRing, from = kTilesAt + k / 4 % kVSets * MR + r;
      if (r == 0) u[v] = turn.load(to, kWeights, 2 * k + v);
      if (k % 4 == 0 && v == 0) tile = turn.load(from, kTiles, 4 * r + k / 4);
      turn.add(ProductDo(k % 4), kSumsAt + 2 * r + v, to, from, tile > u[v] ? tile : u[v]);
    }
    if (k % 2) turn.single(ProductDo::fetch, k / 2);
  }
  turn.single(ProductDo::next_v, 0);
  turn.single(ProductDo::next_u, 0);
  return turn.template turn<400>(start, ahead, kVSets == 2 && MR >= 5);
}
template <int MR, Core core, bool start> constexpr auto product_turn = make_product_turn<MR, core, start>();

struct ProductRegisters : InOrderRegisters<kProductVectors> {
  const char *tiles, *weights;
  size_t next_v, next_u;  // bytes from this turn to the next; 0 of the last: it loads its own first ones once more

  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr ProductDo d = ProductDo(what);
#if defined(__aarch64__)
#define SKUA_LANE(i) asm volatile("fmla %0.4s, %1.4s, %2.s[" #i "]" : "+w"(v[a]) : "w"(v[b]), "w"(v[c]))
#define SKUA_FETCH "prfm pldl1keep, [%0, %1]"
#else  // lanes of the lower eight; rounded before it is added, as fma_lane() does
#define SKUA_LANE(i) asm volatile("vmla.f32 %q0, %q1, %" SKUA_HALF_OF_##i : "+w"(v[a]) : "w"(v[b]), "t"(v[c]))
#define SKUA_HALF_OF_0 "e2[0]"
#define SKUA_HALF_OF_1 "e2[1]"
#define SKUA_HALF_OF_2 "f2[0]"
#define SKUA_HALF_OF_3 "f2[1]"
#define SKUA_FETCH "pld [%0, %1]"
#endif
    if constexpr (d == ProductDo::lane0) SKUA_LANE(0);
    else if constexpr (d == ProductDo::lane1) SKUA_LANE(1);
    else if constexpr (d == ProductDo::lane2) SKUA_LANE(2);
    else if constexpr (d == ProductDo::lane3) SKUA_LANE(3);
    else if constexpr (d == ProductDo::next_v) asm volatile("add %0, %0, %1" : "+r"(tiles) : "r"(next_v));
    else if constexpr (d == ProductDo::next_u) asm volatile("add %0, %0, %1" : "+r"(weights) : "r"(next_u));
    else if constexpr (d == ProductDo::fetch) asm volatile(SKUA_FETCH : : "r"(weights), "i"(kFetched + 64 * a));
    else load_step<what, a, b, 16 * c>(b == kTiles ? tiles : weights);
#undef SKUA_LANE
#undef SKUA_FETCH
#undef SKUA_HALF_OF_0
#undef SKUA_HALF_OF_1
#undef SKUA_HALF_OF_2
#undef SKUA_HALF_OF_3
  }
};

// acc[r][v] += the products of `lines` >= 1 lines of channels, `line` floats apart.
template <int MR, Core core> SKUA_INL void multiply_in_order(const float* tiles, size_t line, size_t lines, const float* weights, F32 (&acc)[MR][2]) {
  static_assert(kWinogradLine == 2 * kTurn);
  ProductRegisters r;
  SKUA_UNROLL for (int i = 0; i < kProductVectors; ++i) asm("" : "=w"(r.v[i]));
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) r.v[kSumsAt + i] = vreinterpretq_s8_f32(acc[i / 2][i % 2].v);
  r.tiles = reinterpret_cast<const char*>(tiles);
  r.weights = reinterpret_cast<const char*>(weights);
  constexpr size_t step = kTurn * sizeof(float);
  run_steps<product_turn<MR, core, true>>(r);
  r.next_v = step;
  r.next_u = 8 * step;
  for (size_t left = 2 * lines;;) {
    if (left == 1) r.next_v = r.next_u = 0;
    run_steps<product_turn<MR, core, false>>(r);
    if (!--left) break;
    r.next_v = line * sizeof(float) - r.next_v;  // two turns a line
  }
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) acc[i / 2][i % 2].v = vreinterpretq_f32_s8(r.v[kSumsAt + i]);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
