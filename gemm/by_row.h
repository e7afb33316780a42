// Tiles of AVX2 and AVX-512 that end row by row. Included by the units of this family.
#pragma once
#include "gemm/gemm_kernel.h"
#include "gemm/halves.h"
#include "gemm/step.h"
#include "gemm/tile_rows.h"
#include "gemm/whole_tile.h"
#include "simd/hard.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// What most tiles are: all of a product's depth at once, whole vectors. even_tiles() spends 28 to 39 cycles beside the
// multiply-adds of such a tile on Zen 3: a store of a vector is completed every second cycle, in order, and behind the
// twelve at the end the registers for results in flight run out. Here the last steps go row by row, or some together,
// whose stores complete while the next are multiplied, and little is left to decide for each tile: 8 to 15 cycles (3x32
// with K = 16: 77 to 93% of the peak). AVX-512 stores half as many vectors a cycle where one is two of 32 bytes for the
// core, and twice as many for each step of the depth.
template <int MR, int NV>
constexpr bool kEndsByRow = F32::fused&& NV > 1 && (F32::L == 8 ? MR * NV == 12 : F32::L == 16 && MR * NV >= 24);
inline bool is_all_of_depth(const GemmTile& t) {
  return t.segment_count && t.k >= kLastSteps && !t.load_c && t.finish && t.alpha == 1 && t.beta == 0 && !t.next;
}
template <int NV> bool ends_by_row(const GemmTile& t) { return t.n == NV * F32::L && is_all_of_depth(t); }
inline bool is_simple(const GemmTile& t) { return t.segment_count == 1 && !t.line && !t.residual && !t.hard_swish; }
template <int MR, int NV, int lines, bool near>
void across_lines(const GemmTile& t, const Scattered<!near>& rows, ptrdiff_t ahead, bool later);

// Does something with vectors of C. AVX-512 asks for C's type with every two rows or three: tiles for each type would
// be three times the code.
struct AnyType {};
template <class C, class F> SKUA_INL void of_type(Element type, F f) {
  if constexpr (!__is_same(C, AnyType)) f(C());
  else if (type == Element::f32) f(0.0f);
  else if (type == Element::f16) f(f16());
  else f(bf16());
}

// As written with AVX-512: gcc would put a sum where a vector of B or A was, and move it back.
SKUA_INL void multiply_add(F32& sum, F32 x, F32 y) {
#if defined(SKUA_ISA_avx512)
  asm("vfmadd231ps %1, %2, %0" : "+v"(sum.v) : "v"(x.v), "v"(y.v));
#else
  sum = fma(x, y, sum);
#endif
}

// Rows of C that come from beyond L2: a store waits for its line, and those behind it for that store. Asked for a tile
// ahead they are there (Zen 3: layers of 16 to 64 inputs 1.1 to 1.3 times as fast; two and four tiles ahead, or row by
// row as sums are stored, half of that; a C that L2 holds gains nothing). With AVX-512 L3 is soon enough, memory is not
// (Zen 5: VGG's first layer 1.0 to 0.81 ms where others have their 12.8 MB too; those of 5 MB take up to 2% longer so).
template <int MR, int bytes> SKUA_INL void ask_for_c(const char* c, ptrdiff_t step) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int i = 0; i < bytes; i += 64)
      __builtin_prefetch(c + r * step + i);
}

// any: what tiles have beside the bias and the clamp of a single segment and line. C: AVX2's tiles of f32 are mostly in
// assembly, whole_tile.h.
template <int MR, int NV, int lines, bool near, bool widens, bool any, class C>
__attribute__((noinline)) void even_by_row(const GemmTile& t) {
  constexpr int L = F32::L;
  // vectors of B stay in registers while half of the rows pass: else one is loaded for each two or three multiply-adds
  constexpr bool two = L == 16 && NV == 2;
  constexpr int together = two ? MR / 2 : L == 16 && NV == 3 ? 3 : L == 16 || NV < 4 ? 2 : 1;  // rows
  using Rows = EvenRows<!near>;
  Lines<Rows> walk(t);
  Rows& rows = walk.rows;
  const float *const bias = t.bias, *const b0 = static_cast<const float*>(t.b);
  const size_t ldb = t.ldb, depth = t.k - kLastSteps;
  // asked once: a comparison of floats waits for the multiply-adds before it
  const bool has_low = t.low > -kInfinity, has_high = t.high < kInfinity;
  const GemmSegment* const last = t.segments + (any ? t.segment_count - 1 : 0);
  LinesAhead<kLines<NV>> fetch(t.groups, t.ahead);
  [[maybe_unused]] HalvesAhead<MR> halves(t, rows.a0);
  const bool of_halves = (any || L == 8) && widens_rows<widens>(t);
  if (of_halves) halves.rest(0, t.k);
  for (size_t i = t.groups; i; --i) {
    const ptrdiff_t ahead = lines ? fetch.next() : 0;
    const RowAhead fetched(ahead, false, false);
    if (any && walk.left < size_t(MR)) {
      const typename Lines<Rows>::template Pointers<MR> p(walk);
      across_lines<MR, NV, lines, near>(t, {p.a, p.c, p.residual, rows.a0}, ahead, false);
      continue;
    }
    Rows tile = rows;
    if constexpr (any) walk.go_on(MR);
    else rows.c0 += MR * rows.c_bytes;
    if (t.c_far) ask_for_c<MR, NV * L * int(__is_same(C, AnyType) ? sizeof(float) : sizeof(C))>(rows.c0, rows.c_bytes);
    if (of_halves) tile.next = halves.fetched(), rows.a0 = halves.next(i > 1);
    else if constexpr (!any) rows.a0 += MR * rows.a_step;
    tile.below = rows.a0;
    F32 acc[MR][NV];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
    if constexpr (any) for (const GemmSegment* s = t.segments; s != last; ++s) {
      typename Rows::template A<MR> a(tile, s->a);
      steps<MR, NV, lines>(a, b0 + s->b * ldb, ldb, 0, t.k, fetched, acc);
    }
    typename Rows::template A<MR> a(tile, last->a);
    const float* b = b0 + last->b * ldb;
    const auto go_on = [&](size_t left) __attribute__((always_inline)) {
      if constexpr (kByFour<MR, NV>) {
        steps<MR, NV, lines>(a, b, ldb, 0, left, fetched, acc);
        b += left * ldb;
        return;
      }
      for (; left; --left, b += ldb) {
        step<MR, NV, lines>(a, 0, b, fetched, acc);
        a.step();
      }
    };
    [[maybe_unused]] size_t k = 0;  // columns of the next tile's rows that are widened
    if constexpr (widens) {
      for (; k + L <= depth; k += L) go_on(L), halves.template vectors_as<C>(k);
      go_on(depth - k);
      if (k + L <= t.k) halves.template vectors_as<C>(k), k += L;
    } else if constexpr (any) {
      k = steps_beside(of_halves ? &halves : nullptr, depth, [&](size_t count) __attribute__((always_inline)) {
        steps<MR, NV, lines>(a, b, ldb, 0, count, fetched, acc);
        b += count * ldb;
      });
      if (of_halves && k + L <= t.k) halves.vectors(k), k += L;
    } else {
      go_on(depth);
    }
    SKUA_UNROLL for (int r0 = 0; r0 < MR; r0 += together) {
      const float* w = b;
      SKUA_UNROLL for (size_t k = 0; k < kLastSteps; ++k) {
        if constexpr (two) {
          F32 y[NV];
          SKUA_UNROLL for (int v = 0; v < NV; ++v) y[v] = F32::load(w + v * L), pin(y[v]);
          SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) {
            const F32 x = F32::broadcast(a.at(r, 0) + k);
            SKUA_UNROLL for (int v = 0; v < NV; ++v) multiply_add(acc[r][v], x, y[v]);
          }
        } else {
          F32 x[together];
          SKUA_UNROLL for (int r = 0; r < together; ++r) x[r] = F32::broadcast(a.at(r0 + r, 0) + k);
          SKUA_UNROLL for (int v = 0; v < NV; ++v) {
            F32 y = F32::load(w + v * L);
            if constexpr (together > 1) pin(y);
            SKUA_UNROLL for (int r = 0; r < together; ++r) {
              if constexpr (L == 16) multiply_add(acc[r0 + r][v], x[r], y);
              else acc[r0 + r][v] = fma(x[r], y, acc[r0 + r][v]);
            }
          }
        }
        w += ldb;
        asm("" : "+r"(w));  // else gcc has an address for each vector
      }
#define SKUA_EACH(statement)                           \
  SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) \
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {         \
      F32& y = acc[r][v];                              \
      statement;                                       \
    }
      const auto add_residual = [&]() __attribute__((always_inline)) {
        const char* from = tile.residual0;
        of_type<C>(t.c_type, [&]<class T>(T) __attribute__((always_inline)) {
          SKUA_EACH(y = y + F32::load(reinterpret_cast<const T*>(from + (r - r0) * tile.residual_bytes) + v * L))
        });
      };
      if constexpr (L == 8) {
        if (bias) SKUA_EACH(y = y + F32::load(bias + v * L))
      } else if (const float* from = bias) {
        asm("" : "+r"(from));  // else gcc keeps it for the rows that follow, on the stack
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          const F32 x = F32::load(from + v * L);
          SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) acc[r][v] = acc[r][v] + x;
        }
      }
      if (any && t.residual && !t.residual_after) add_residual();
      if (L == 16 ? has_low : t.low > -kInfinity) SKUA_EACH(y = clamp_low(y, F32::set1(t.low)))
      if (L == 16 ? has_high : t.high < kInfinity) SKUA_EACH(y = clamp_high(y, F32::set1(t.high)))
      if (any && t.hard_swish) SKUA_EACH(y = y * up_to_3_by_6(y))
      if (any && t.residual && t.residual_after) add_residual();
      if constexpr (any) tile.residual0 += together * tile.residual_bytes;
#undef SKUA_EACH
      of_type<C>(t.c_type, [&]<class T>(T) __attribute__((always_inline)) {
        SKUA_UNROLL for (int r = r0; r < r0 + together; ++r) {
          SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v].store(reinterpret_cast<T*>(tile.c0) + v * L);
          tile.c0 += tile.c_bytes;
          asm("" : "+r"(tile.c0));  // else gcc has an address for each row, on the stack
        }
      });
    }
    if (of_halves && k < t.k) halves.rest(k, t.k);
  }
}
#if defined(SKUA_ISA_avx2)
template <int MR, int NV, int lines, bool near> __attribute__((noinline)) void whole_tiles(const GemmTile& t) {
  constexpr ptrdiff_t size = sizeof(float);
  using Rows = EvenRows<!near>;
  Lines<Rows> walk(t);
  Rows& rows = walk.rows;
  const GemmSegment *const s = t.segments, second = t.segment_count > 1 ? s[1] : s[0];
  const ptrdiff_t i1 = rows.a_step * size, j = (MR == 6 ? 3 : 2) * i1, k = (MR == 6 ? 5 : 3) * i1,
                  l = ptrdiff_t(t.ldb) * size, l3 = 3 * l, depth = ptrdiff_t(t.k);
  WholeTile w = {t.segment_count,
                 t.k / 4,
                 t.k % 4,
                 (second.a - s->a - depth) * size,
                 (ptrdiff_t(second.b - s->b) - depth) * l,
                 t.low,
                 t.high,
                 t.bias ? t.bias : kNoBias,
                 rows.c_bytes,
                 nullptr,
                 rows.residual_bytes};
  const char* const b = static_cast<const char*>(t.b) + ptrdiff_t(s->b) * l;
  LinesAhead<kLines<NV>> fetch(t.groups, t.ahead);
  const bool asks = !near || t.a_far;
  for (size_t i = t.groups; i; --i) {
    const ptrdiff_t panel = lines ? fetch.next() : 0;
    if (walk.left < size_t(MR)) {
      const typename Lines<Rows>::template Pointers<MR> p(walk);
      across_lines<MR, NV, lines, near>(t, {p.a, p.c, p.residual, rows.a0}, panel, false);
      continue;
    }
    const char* const a = reinterpret_cast<const char*>(rows.a0 + s->a);
    char* const c = rows.c0;
    w.residual = rows.residual0;
    walk.go_on(MR);
    const char* const next = reinterpret_cast<const char*>(rows.a0 + s->a);
    if (t.c_far) ask_for_c<MR, NV * F32::L * int(size)>(rows.c0, rows.c_bytes);
    if (lines && panel) whole_tile<MR, NV, Asks::a_and_b>(w, a, i1, j, k, b, l, l3, c, next, panel);
    else if (asks) whole_tile<MR, NV, Asks::a>(w, a, i1, j, k, b, l, l3, c, next, 0);
    else whole_tile<MR, NV, Asks::nothing>(w, a, i1, j, k, b, l, l3, c, next, 0);
  }
  _mm256_zeroupper();  // the compiler does not see what the assembly leaves
}
#endif
#if defined(SKUA_ISA_avx512)
// The same for one vector of columns or a part of it, whose steps read A themselves: little is left to decide for each
// tile, and nothing goes row by row.
template <int MR> __attribute__((noinline)) void even_narrow(const GemmTile& t) {
  using Rows = EvenRows<true>;
  Lines<Rows> walk(t);
  Rows& rows = walk.rows;
  const float *const bias = t.bias, *const b0 = static_cast<const float*>(t.b) + t.segments->b * t.ldb;
  const bool has_low = t.low > -kInfinity, has_high = t.high < kInfinity;
  const size_t ldb = t.ldb, depth = t.k, columns = t.n;
  for (size_t i = t.groups; i; --i) {
    const Rows tile = rows;
    rows.a0 += MR * rows.a_step;
    rows.c0 += MR * rows.c_bytes;
    if (t.c_far) ask_for_c<MR, 64>(rows.c0, rows.c_bytes);
    typename Rows::template Halves<MR> a({tile.a0, nullptr, nullptr, nullptr, rows.a0, rows.a_step, 0, 0},
                                         t.segments->a);
    F32 acc[MR][1];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) acc[r][0] = F32::zero();
    const float* b = b0;
    size_t left = depth;
    for (; left >= 4; left -= 4) narrow_steps<4>(a, b, ldb, acc);
    for (; left; --left) narrow_steps<1>(a, b, ldb, acc);
#define SKUA_EACH(statement) SKUA_UNROLL for (int r = 0; r < MR; ++r) { F32& y = acc[r][0]; statement; }
    if (bias) SKUA_EACH(y = y + F32::load(bias))
    if (has_low) SKUA_EACH(y = clamp_low(y, F32::broadcast(&t.low)))
    if (has_high) SKUA_EACH(y = clamp_high(y, F32::broadcast(&t.high)))
#undef SKUA_EACH
    const auto each = [&](auto store) __attribute__((always_inline)) {
      char* c = tile.c0;
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        store(acc[r][0], reinterpret_cast<float*>(c));
        c += rows.c_bytes;
        asm("" : "+r"(c));  // else gcc has an address for each row, on the stack
      }
    };
    if (columns == size_t(F32::L)) each([](F32 y, float* c) { y.store(c); });
    else each([&](F32 y, float* c) { y.store_n(c, columns); });
    no_addresses<MR>();
  }
}
#endif

// Whether there was such a tile; widens: A and C are of one type. Of bf16 AVX2 has none: rounding to it takes integer
// instructions, ends by row gained nothing.
template <int MR, int NV, int lines, bool near, bool widens> SKUA_INL bool try_by_row(const GemmTile& t) {
  if (!ends_by_row<NV>(t)) return false;
  if constexpr (F32::L == 16) {
    if (is_simple(t) && t.c_type == Element::f32 && !t.halves) even_by_row<MR, NV, lines, near, false, false, float>(t);
    else even_by_row<MR, NV, lines, near, false, true, AnyType>(t);
    return true;
  }
  if (t.c_type == Element::f16) {
    if (!is_simple(t) || (widens && t.halves_type != Element::f16)) return false;
    even_by_row<MR, NV, lines, near, widens, false, f16>(t);
  } else if constexpr (widens) return false;
  else {
    if (t.c_type != Element::f32) return false;
#if defined(SKUA_ISA_avx2)
    if (is_whole(t)) {
      whole_tiles<MR, NV, lines, near>(t);
      return true;
    }
#endif
    if (t.segment_count > 1 && t.segment_count * t.k > 64) return false;  // gains nothing any more
    even_by_row<MR, NV, lines, near, widens, true, float>(t);
  }
  return true;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
