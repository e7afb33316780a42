// The products of Winograd's algorithm on in-order cores: programs of simd/in_order.h, for the numbers of tiles that
// hide a multiply-add's latency. Included by product.h and int8_kernels.cc.
//
//   a turn   eight channels of MR tiles by eight columns: 16 * MR multiply-adds by lane, of f32 or of s16 to sums of
//            s32
//
// Registers: AArch64, up to six tiles: 2 * MR sums; V of two times four channels, of s16 eight; eight of U: 32.
// AArch32, four tiles: eight sums, four of V, four of U: 16. V that is there once is loaded anew while the last of its
// channels goes from tile to tile. The sums of f32 are those of the other products, in their order; sums of integers
// are the same in any.
#pragma once
#include "simd/in_order.h"
#include "winograd/winograd_kernel.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(__aarch64__)
constexpr int kMostTiles = 6, kWeightRing = 8, kProductVectors = 32;
#else
constexpr int kMostTiles = 4, kWeightRing = 4, kProductVectors = 16;
#endif
constexpr int kTurn = 8, kSumsAt = 0, kTilesAt = 2 * kMostTiles;
template <class T> constexpr int kDeep = 16 / int(sizeof(T));              // channels of a vector of V
template <class T> constexpr int kWide = kTurn * int(sizeof(T)) / 16;      // vectors of U for a channel
template <class T> constexpr int kVSets = kProductVectors == 32 ? kTurn / kDeep<T> : 1;
template <class T> constexpr int kWeightsAt = kTilesAt + kVSets<T> * kMostTiles;
// AArch32: what an instruction holds
template <class T>
constexpr size_t kFetched = kProductVectors == 32 ? kWinogradAhead : 4096 - 64 * kTurn* kWide<T> / 4;
template <int MR> constexpr bool kInOrderRows = MR >= 4 && MR <= kMostTiles;  // eight chains of sums at least

// of s16: the columns of a vector's upper half
enum class ProductDo : uint8_t { lane, upper_lane = lane + 8, next_v = upper_lane + 8, next_u, fetch };
enum ProductSource : uint8_t { kTiles, kWeights };

template <class T, int MR, Core core, bool start> consteval auto make_product_turn() {
  constexpr bool once = kVSets<T> == 1;  // tile by tile, then: a vector of V is free for a while
  constexpr int wide = kWide<T>, deep = kDeep<T>;
  InOrderBuilder<96, 80> turn;
  if (kProductVectors == 16) turn.pieces = core == Core::a53 ? Pieces::words : Pieces::registers;
  int ahead = 0;
  for (int k = 0; k < kTurn; ++k) {
    if (k == 1) ahead = !once ? turn.helpers : kProductVectors == 16 && wide == 1 ? 3 : 5;
    int u[2] = {}, tile = -1;
    for (int i = 0; i < 2 * MR; ++i) {
      const int r = once ? i / 2 : i % MR, half = once ? i % 2 : i / MR, v = half % wide,
                to = kWeightsAt<T> + (wide * k + v) % kWeightRing, from = kTilesAt + k / deep % kVSets<T> * MR + r;
      if (r == 0 && half == v) u[v] = turn.load(to, kWeights, wide * k + v);
      if (k % deep == 0 && half == 0) tile = turn.load(from, kTiles, int(sizeof(T)) * r + k / deep);
      const ProductDo what = ProductDo(int(half == v ? ProductDo::lane : ProductDo::upper_lane) + k % deep);
      turn.add(what, kSumsAt + 2 * r + half, to, from, tile > u[v] ? tile : u[v]);
    }
    // a line of U
    if (constexpr int channels = 4 / wide; k % channels == channels - 1) turn.single(ProductDo::fetch, k / channels);
  }
  turn.single(ProductDo::next_v, 0);
  turn.single(ProductDo::next_u, 0);
  return turn.template turn<400>(start, ahead, !once && MR >= 5);
}
template <class T, int MR, Core core, bool start> constexpr auto product_turn = make_product_turn<T, MR, core, start>();

template <class T> struct ProductRegisters : InOrderRegisters<kProductVectors> {
  const char *tiles, *weights;
  size_t next_v, next_u;  // bytes from this turn to the next; 0 of the last: it loads its own first ones once more

  using InOrderRegisters<kProductVectors>::v;

  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr ProductDo d = ProductDo(what);
#if defined(__aarch64__)
#define SKUA_FETCH "prfm pldl1keep, [%0, %1]"
#else
#define SKUA_FETCH "pld [%0, %1]"
#endif
    if constexpr (d < ProductDo::next_v) multiply<what % 8, (d >= ProductDo::upper_lane)>(v[a], v[b], v[c], T());
    else if constexpr (d == ProductDo::next_v) asm volatile("add %0, %0, %1" : "+r"(tiles) : "r"(next_v));
    else if constexpr (d == ProductDo::next_u) asm volatile("add %0, %0, %1" : "+r"(weights) : "r"(next_u));
    else if constexpr (d == ProductDo::fetch) asm volatile(SKUA_FETCH : : "r"(weights), "i"(kFetched<T> + 64 * a));
    else this->template load_step<what, a, b, 16 * c>(b == kTiles ? tiles : weights);
#undef SKUA_FETCH
  }

  // Lanes of 16 bits are of the lower sixteen vectors, on AArch32 of the lower four; of 32 bits on AArch32 of the lower
  // eight.
  using Vector = int8x16_t;
#if defined(__aarch64__)
  template <int lane, bool> static SKUA_INL void multiply(Vector& sum, Vector u, Vector tile, float) {
    asm volatile("fmla %0.4s, %1.4s, %2.s[%3]" : "+w"(sum) : "w"(u), "w"(tile), "i"(lane));
  }
  template <int lane, bool upper> static SKUA_INL void multiply(Vector& sum, Vector u, Vector tile, int16_t) {
    if constexpr (upper) asm volatile("smlal2 %0.4s, %1.8h, %2.h[%3]" : "+w"(sum) : "w"(u), "x"(tile), "i"(lane));
    else asm volatile("smlal %0.4s, %1.4h, %2.h[%3]" : "+w"(sum) : "w"(u), "x"(tile), "i"(lane));
  }
#else
  // rounded before it is added, as fma_lane() does
  template <int lane, bool> static SKUA_INL void multiply(Vector& sum, Vector u, Vector tile, float) {
    if constexpr (lane < 2) asm volatile("vmla.f32 %q0, %q1, %e2[%c3]" : "+w"(sum) : "w"(u), "t"(tile), "i"(lane));
    else asm volatile("vmla.f32 %q0, %q1, %f2[%c3]" : "+w"(sum) : "w"(u), "t"(tile), "i"(lane - 2));
  }
  template <int lane, bool upper> static SKUA_INL void multiply(Vector& sum, Vector u, Vector tile, int16_t) {
#define SKUA_LANE(U, V, i) asm volatile("vmlal.s16 %q0, %" U "1, %" V "2[%c3]" : "+w"(sum) : "w"(u), "x"(tile), "i"(i))
    if constexpr (lane < 4 && upper) SKUA_LANE("f", "e", lane);
    else if constexpr (lane < 4) SKUA_LANE("e", "e", lane);
    else if constexpr (upper) SKUA_LANE("f", "f", lane - 4);
    else SKUA_LANE("e", "f", lane - 4);
#undef SKUA_LANE
  }
#endif
};

// acc[r][v] += the products of `lines` >= 1 lines of channels, `line` values apart. Sum: a vector of four.
template <class T, int MR, Core core, class Sum>
SKUA_INL void multiply_in_order(const T* tiles, size_t line, size_t lines, const T* weights, Sum (&acc)[MR][2]) {
  static_assert(kWinogradLine == 2 * kTurn);
  ProductRegisters<T> r;
  SKUA_UNROLL for (int i = 0; i < kProductVectors; ++i) asm("" : "=w"(r.v[i]));
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) r.v[kSumsAt + i] = int8x16_t(acc[i / 2][i % 2].v);
  r.tiles = reinterpret_cast<const char*>(tiles);
  r.weights = reinterpret_cast<const char*>(weights);
  constexpr size_t step = kTurn * sizeof(T);
  run_steps<product_turn<T, MR, core, true>>(r);
  r.next_v = step;
  r.next_u = 8 * step;
  for (size_t left = 2 * lines;;) {
    if (left == 1) r.next_v = r.next_u = 0;
    run_steps<product_turn<T, MR, core, false>>(r);
    if (!--left) break;
    r.next_v = line * sizeof(T) - r.next_v;  // two turns a line
  }
  SKUA_UNROLL for (int i = 0; i < 2 * MR; ++i) acc[i / 2][i % 2].v = decltype(acc[0][0].v)(r.v[kSumsAt + i]);
}

// Whole lines of channels by a program, the others by `others`. Value: of M.
template <class T, class Value, class Sum, int MR, Core core, WinogradProductFn others>
void product_in_order(const WinogradProduct& p) {
  const size_t lines = p.k / kWinogradLine, whole = lines * kWinogradLine, columns = kTurn;
  if (!lines) return others(p);
  WinogradProduct rest = p;
  rest.k = p.k - whole;
  rest.v = static_cast<const T*>(p.v) + lines * p.line;
  rest.groups = 1;
  rest.add = true;
  for (size_t i = 0; i < p.groups; ++i) {
    const T* const u = static_cast<const T*>(p.u) + i * p.k * columns;
    Value* const m = static_cast<Value*>(p.m) + i * columns / kWinogradLine * p.line + i * columns % kWinogradLine;
    Sum acc[MR][2] = {};
    if (p.add)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < 2; ++v)
          acc[r][v] = Sum::load(m + r * kWinogradLine + v * Sum::L);
    multiply_in_order<T, MR, core>(static_cast<const T*>(p.v), p.line, lines, u, acc);
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < 2; ++v)
        acc[r][v].store(m + r * kWinogradLine + v * Sum::L);
    if (!rest.k) continue;
    rest.u = u + whole * columns;
    rest.m = m;
    others(rest);
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
