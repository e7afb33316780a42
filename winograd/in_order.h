// The products of Winograd's algorithm in f32 on in-order cores of AArch64: programs of simd/in_order.h, for the numbers of tiles that hide a multiply-add's latency. Included by product.h.
//
//   a turn   eight channels of MR tiles: 16 * MR multiply-adds by lane
//
// Registers: 2 * MR sums, V of two times four channels, eight of U: 32 for six tiles. The sums are those of the other products, in their order.
#pragma once
#include "simd/in_order.h"
#include "winograd/winograd_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <int MR> constexpr bool kInOrderRows = MR >= 4 && MR <= 6;  // eight chains of sums at least; 32 registers

enum class ProductDo : uint8_t { lane0, lane1, lane2, lane3, next_v, next_u, fetch };
enum ProductSource : uint8_t { kTiles, kWeights };
constexpr int kSumsAt = 0, kTilesAt = 12, kWeightsAt = 24, kWeightRing = 8, kProductVectors = 32;

template <int MR, bool start> consteval auto make_product_turn() {
  InOrderBuilder<96, 80> turn;
  int ahead = 0;
  for (int k = 0; k < 8; ++k) {
    if (k == 1) ahead = turn.helpers;
    for (int v = 0; v < 2; ++v) {
      const int to = kWeightsAt + (2 * k + v) % kWeightRing, u = turn.load(to, kWeights, 2 * k + v);
      int tile = -1;
      for (int r = 0; r < MR; ++r) {
        if (k % 4 == 0 && v == 0) tile = turn.load(kTilesAt + k / 4 * MR + r, kTiles, 4 * r + k / 4);
        turn.add(ProductDo(k % 4), kSumsAt + 2 * r + v, to, kTilesAt + k / 4 * MR + r, tile > u ? tile : u);
      }
    }
    if (k % 2) turn.single(ProductDo::fetch, k / 2);
  }
  turn.single(ProductDo::next_v, 0);
  turn.single(ProductDo::next_u, 0);
  return turn.template turn<400>(start, ahead, MR >= 5);
}
template <int MR, bool start> constexpr auto product_turn = make_product_turn<MR, start>();

struct ProductRegisters {
  int8x16_t v[kProductVectors];
  uint64_t half[kHalves];
  const char *tiles, *weights;
  size_t next_v, next_u;  // bytes from this turn to the next; 0 of the last: it loads its own first ones once more

  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr ProductDo d = ProductDo(what);
#define SKUA_LANE(i) asm volatile("fmla %0.4s, %1.4s, %2.s[" #i "]" : "+w"(v[a]) : "w"(v[b]), "w"(v[c]))
    if constexpr (d == ProductDo::lane0) SKUA_LANE(0);
    else if constexpr (d == ProductDo::lane1) SKUA_LANE(1);
    else if constexpr (d == ProductDo::lane2) SKUA_LANE(2);
    else if constexpr (d == ProductDo::lane3) SKUA_LANE(3);
#undef SKUA_LANE
    else if constexpr (d == ProductDo::next_v) asm volatile("add %0, %0, %1" : "+r"(tiles) : "r"(next_v));
    else if constexpr (d == ProductDo::next_u) asm volatile("add %0, %0, %1" : "+r"(weights) : "r"(next_u));
    else if constexpr (d == ProductDo::fetch) asm volatile("prfm pldl1keep, [%0, %1]" : : "r"(weights), "i"(kWinogradAhead + 64 * a));
    else if constexpr (what == kInsertUpper) insert_upper(v[a], half[b]);
    else if constexpr (what == kLoadUpper) load_upper<16 * c>(half[a], b == kTiles ? tiles : weights);
    else load_lower<16 * c>(v[a], b == kTiles ? tiles : weights);
  }
};

// acc[r][v] += the products of `lines` >= 1 lines of channels, `line` floats apart.
template <int MR> SKUA_INL void multiply_in_order(const float* tiles, size_t line, size_t lines, const float* weights, F32 (&acc)[MR][2]) {
  static_assert(kWinogradLine == 16);
  ProductRegisters r;
  SKUA_UNROLL for (int i = 0; i < kProductVectors; ++i) asm("" : "=w"(r.v[i]));
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) r.v[kSumsAt + i] = vreinterpretq_s8_f32(acc[i / 2][i % 2].v);
  r.tiles = reinterpret_cast<const char*>(tiles);
  r.weights = reinterpret_cast<const char*>(weights);
  run_steps<product_turn<MR, true>>(r);
  for (size_t left = 2 * lines; left; --left) {
    r.next_v = left == 1 ? 0 : left % 2 ? line * sizeof(float) - 32 : 32;
    r.next_u = left == 1 ? 0 : 256;
    run_steps<product_turn<MR, false>>(r);
  }
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) acc[i / 2][i % 2].v = vreinterpretq_f32_s8(r.v[kSumsAt + i]);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
