// GEMM tiles and packing, one source for every instruction set.
//
//                panel of B: nr = NV*L columns
//          k=0  [b00 b01 ... ]
//   a0 ->  k=1  [b10 b11 ... ]   acc[r][v] += a[r][k] * b[k][v]
//   a1 ->         ...
//
// A is read in place through row pointers: one broadcast per row and k step, used NV times (by-lane instruction sets:
// four k steps of a row per load, used by lane). B streams through once per row group. Peak needs NV loads of B and MR
// of A in the time of MR*NV multiply-adds: 10 of 24 (AVX-512), 8 of 12 (AVX2).
//
// Packed B: panels of nr columns, each [depth][width]; width = nr, in the last panel the columns left, rounded up to
// whole vectors.
#include "gemm/gemm_kernel.h"
#include "dispatch/kernel.h"
#include "simd/hard.h"
#include "simd/simd.h"
#include "gemm/by_row.h"
#include "gemm/finish.h"
#include "gemm/halves.h"
#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
#include "gemm/packed_tiles.h"
#endif
#include "gemm/pack.h"
#include "gemm/tile_rows.h"
#include "gemm/transposed.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Vector v of a row of NV vectors, of which the last has `tail` columns.
template <int NV> SKUA_INL F32 columns(const float* row, int v, size_t tail) {
  return v < NV - 1 ? F32::load(row + v * F32::L) : F32::load_n(row + v * F32::L, tail);
}

// is_later: C is of a half type, rows.c() are rows of f32 that are narrowed with the next tile, and the end is a plain
// one. before: the rows of the tile before, if there is one.
template <int MR, int NV, int lines, class B = float, bool widens = false, class Rows>
SKUA_INL void multiply(const GemmTile& t, const Rows& rows, ptrdiff_t ahead, bool is_later = false,
                       const Finished<MR, NV>* before = nullptr, [[maybe_unused]] const Halves* halves = nullptr) {
  constexpr int L = F32::L;
  const bool later = kNarrowsLater<MR, NV> && is_later;
  F32 acc[MR][NV];
  const size_t tail = t.n - size_t(NV - 1) * L;  // columns in the last vector, 1..L
  if (t.load_c) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[r][v] = columns<NV>(rows.c(r), v, tail);
  } else {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
  }
  const size_t ldb = t.ldb;
  const RowAhead fetch(ahead, t.near, t.pages);
  for (size_t s = 0; s < t.segment_count; ++s) {
#if defined(SKUA_ISA_avx512)
    if constexpr (Rows::even && NV == 1 && lines == 0) {
      typename Rows::template Halves<MR> a(rows, t.segments[s].a);
      const float* b = static_cast<const float*>(t.b) + t.segments[s].b * ldb;
      const size_t k = steps_beside(halves, t.k, [&](size_t left) __attribute__((always_inline)) {
        for (; left >= 4; left -= 4) narrow_steps<4>(a, b, ldb, acc);
        for (; left; --left) narrow_steps<1>(a, b, ldb, acc);
      });
      if (halves && k < t.k) halves->rest(k, t.k);
      continue;
    }
#endif
    typename Rows::template A<MR> a(rows, t.segments[s].a);
    const B* b = static_cast<const B*>(t.b) + t.segments[s].b * ldb;
    const size_t depth = t.k;  // in a register: for all the compiler knows, t may change
    size_t k = 0;
    if constexpr (F32::by_lane) {
      for (; k + 4 <= depth; k += 4) {
        F32 x[MR];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = F32::load(a.at(r, k));
        F32 w[NV];
#define SKUA_STEP(i)                                                                                                  \
  SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = F32::load(b + v * L);                                               \
  SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) {                                 \
    if constexpr (NV > 2 || sizeof(void*) == 4) add_lane<i>(acc[r][v], w[v], x[r]);                                   \
    else acc[r][v] = fma_lane<i>(acc[r][v], w[v], x[r]);                                                              \
  }                                                                                                                   \
  b += ldb;
        SKUA_STEP(0) SKUA_STEP(1) SKUA_STEP(2) SKUA_STEP(3)
#undef SKUA_STEP
        // else gcc moves one of 6x2 to and fro
        if constexpr (Rows::even && sizeof(void*) == 8)
          SKUA_UNROLL for (int r = 0; r < MR; ++r)
            SKUA_UNROLL for (int v = 0; v < NV; ++v)
              pin(acc[r][v]);
      }
    }
    if constexpr (widens) {
      for (size_t end = L; end <= depth; k = end, end += L, b += L * ldb) {
        steps<MR, NV, lines>(a, b, ldb, k, end, fetch, acc);
        halves->vectors(k);
        if (kNarrowsLater<MR, NV> && before && end >= depth / 2) {
          if constexpr (kNarrowsLater<MR, NV>) before->narrow(t.c_type);
          before = nullptr;
        }
      }
      steps<MR, NV, lines>(a, b, ldb, k, depth, fetch, acc);
      if (k < depth) halves->rest(k, depth);
      if constexpr (kNarrowsLater<MR, NV>) if (before) before->narrow_now(t.c_type);
    } else if constexpr (kNarrowsLater<MR, NV> && Rows::even) {
      for (size_t to = before ? depth / 2 : depth;; to = depth) {
        steps<MR, NV, lines>(a, b, ldb, k, to, fetch, acc);
        if (!before) break;
        before->narrow(t.c_type);
        before = nullptr;
        b += to * ldb;
        k = to;
      }
    } else if constexpr (kWidens && !kWidensApart && Rows::even) {
      k = steps_beside(halves, depth, [&](size_t count) __attribute__((always_inline)) {
        steps<MR, NV, lines>(a, b, ldb, 0, count, fetch, acc);
        b += count * ldb;
      });
      if (halves && k < depth) halves->rest(k, depth);
    } else {
      steps<MR, NV, lines>(a, b, ldb, k, depth, fetch, acc);
    }
  }
  // Rare ends leave here, before the sums are pinned: with them behind it gcc stores 18 of 24 sums to the stack at the
  // end of every tile, for paths that are not taken (Zen 5, one store a cycle: 10% of a product 16 or 27 deep).
  if (!later && (t.c_type != Element::f32 || (t.finish && (t.alpha != 1 || t.beta != 0)))) {
    if constexpr (Rows::even && L >= 8 && !kNarrowsLater<MR, NV>)  // the others are few, or spend more on narrowing
      if ((tail == size_t(L) || L == 16) && plain_end(t)) {
        if (t.c_type == Element::f16) finish_registers<f16>(t, rows, acc, tail);
        else finish_registers<bf16>(t, rows, acc, tail);
        return;
      }
    float sums[MR * NV * L];
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[r][v].store(sums + (r * NV + v) * L);
    void* c[MR];
    const void* residual[MR];
    for (int r = 0; r < MR; ++r) c[r] = rows.c(r);
    if (t.residual)  // around the loop: gcc would load the pointers under a mask, from address 0 where there are none
      for (int r = 0; r < MR; ++r) residual[r] = rows.residual(r);
    GemmTile rest = t;
    rest.load_c = false;  // is in the sums
    return finish_sums(rest, sums, NV * L, MR, c, t.residual ? residual : nullptr);
  }
  // else the epilogue's copies spill inside the loop
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) pin(acc[r][v]);
  // One pass over the accumulators per step: a branch per step, not per vector.
#define SKUA_EACH(statement) \
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) { F32& y = acc[r][v]; statement; }
  if (t.finish) {
    if (t.bias) SKUA_EACH(y = y + F32::load(t.bias + v * L))
    if (t.residual && !t.residual_after) {
      if (!later) SKUA_EACH(y = y + columns<NV>(rows.residual(r), v, tail))
      else if (t.c_type == Element::f16)
        SKUA_EACH(y = y + F32::load(reinterpret_cast<const f16*>(rows.residual(r)) + v * L))
      else SKUA_EACH(y = y + F32::load(reinterpret_cast<const bf16*>(rows.residual(r)) + v * L))
    }
    const F32 low = F32::set1(t.low), high = F32::set1(t.high);
    if (t.low > -kInfinity) SKUA_EACH(y = clamp_low(y, low))
    if (t.high < kInfinity) SKUA_EACH(y = clamp_high(y, high))
    if constexpr (kSwishes && sizeof(B) == sizeof(float)) if (t.hard_swish) SKUA_EACH(y = y * up_to_3_by_6(y))
    if (t.residual && t.residual_after) SKUA_EACH(y = y + columns<NV>(rows.residual(r), v, tail))
  }
#undef SKUA_EACH
  const auto row = [&](int r) __attribute__((always_inline)) {
    float* c = rows.c(r);
    asm("" : "+r"(c));  // else gcc has the addresses of all vectors ready before it knows which of these two comes
    return c;
  };
  if (later || tail == size_t(L)) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      float* c = row(r);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v].store(c + v * L);
    }
  } else {
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      float* c = row(r);
      SKUA_UNROLL for (int v = 0; v < NV - 1; ++v) acc[r][v].store(c + v * L);
      acc[r][NV - 1].store_n(c + (NV - 1) * L, tail);
    }
  }
}

template <int MR, int NV, int lines = 0, class B = float>
void tile(const GemmTile& t) {
  multiply<MR, NV, lines, B>(t, Scattered<false>{t.a, t.c, t.residual, nullptr}, t.ahead);
}

// A tile in two lines or more.
template <int MR, int NV, int lines, bool near>
__attribute__((noinline)) void across_lines(const GemmTile& t, const Scattered<!near>& rows, ptrdiff_t ahead,
                                            bool later) {
  multiply<MR, NV, lines>(t, rows, ahead, later);
}

// Where the lines of rows fall into one set of L1, as those of 1024 channels do, a tile of one vector takes half as
// many: more than it has ways push each other out before their sixteen values are used (Zen 3, eight ways: 196 rows of
// 1024 and one vector of columns 138 us, of 1000 48; 50 so).
template <int MR, int NV> constexpr bool kManyRows = F32::L >= 8 && NV == 1 && MR > 9;

// t.groups tiles one below the other; each fetches the next line of the rows of B.
template <int MR, int NV, int lines, bool near = false, bool widens = false> void even_tiles(const GemmTile& t) {
  if constexpr (kManyRows<MR, NV> && !widens) {
    static_assert(MR % 2 == 0, "two halves");
    if (t.a_step * ptrdiff_t(sizeof(float)) % 4096 == 0 && !t.halves) {
      GemmTile half = t;
      half.groups *= 2;
      return even_tiles<MR / 2, NV, lines, near>(half);
    }
  }
  if constexpr (kWidensApart && !widens) if (t.halves) return even_tiles<MR, NV, lines, near, true>(t);
  if constexpr (kEndsByRow<MR, NV>) if (try_by_row<MR, NV, lines, near, widens>(t)) return;
#if defined(SKUA_ISA_avx512)
  if constexpr (NV == 1)
    if (is_all_of_depth(t) && is_simple(t) && t.c_type == Element::f32 && !t.halves) return even_narrow<MR>(t);
#endif
  using Even = EvenRows<!near>;
  Lines<Even> walk(t);
  Even& rows = walk.rows;
  LinesAhead<kLines<NV>> fetch(t.groups, t.ahead);
  // none: nothing to narrow between
  const bool later =
      kNarrowsLater<MR, NV> && t.c_type != Element::f32 && plain_end(t) && t.n == NV * F32::L && t.segment_count;
  Finished<MR, NV> done[2];
  [[maybe_unused]] HalvesAhead<MR> halves(t, rows.a0);
  const bool of_halves = widens_rows<widens>(t);
  if (of_halves) halves.rest(0, t.k);
  for (size_t i = 0; i < t.groups; ++i) {
    Finished<MR, NV>& out = done[i & 1];
    const Finished<MR, NV>* const before = later && i ? &done[~i & 1] : nullptr;
    if constexpr (widens) rows.next = halves.fetched();
    else if (of_halves) rows.next = halves.fetched();
    else if (t.next)
      rows.next = 2 * i < t.groups ? static_cast<const char*>(t.next) + i * MR * t.k * sizeof(float)
                                   : reinterpret_cast<const char*>(rows.a0);
    const ptrdiff_t ahead = lines ? fetch.next() : 0;
    if (kTakesLines && !widens && walk.left < size_t(MR)) {
      typename Lines<Even>::template Pointers<MR> p(walk);
      if (later) for (int r = 0; r < MR; ++r) out.c[r] = p.c[r], p.c[r] = out.rows + r * NV * F32::L;
      if constexpr (kNarrowsLater<MR, NV>) if (before) before->narrow_now(t.c_type);
      across_lines<MR, NV, lines, near>(t, {p.a, p.c, p.residual, rows.a0}, ahead, later);
    } else {
      Even tile = rows;
      if (later) {
        SKUA_UNROLL for (int r = 0; r < MR; ++r) out.c[r] = rows.c0 + r * rows.c_bytes;
        tile.c0 = reinterpret_cast<char*>(out.rows);
        tile.c_bytes = NV * F32::L * ptrdiff_t(sizeof(float));
      }
      walk.go_on(MR);
      if (F32::L == 16 && NV == 1 && t.c_far) ask_for_c<MR, 64>(rows.c0, rows.c_bytes);
      if (of_halves) rows.a0 = halves.next(i + 1 < t.groups);
      tile.below = rows.a0;
      multiply<MR, NV, lines, float, widens>(t, tile, ahead, later, before, of_halves ? &halves : nullptr);
    }
  }
  if constexpr (kNarrowsLater<MR, NV>) if (later) done[~t.groups & 1].narrow_now(t.c_type);
}

// One row, N vectors of columns of panels of NV side by side, each a stream: more chains to hide the latency of the
// multiply-adds, fewer epilogues.
template <class B> struct Row {
  const B* b;  // from here on
  const float *a, *residual;
  float* c;
  const float* bias;
};
template <int NV, int N, class B> SKUA_INL void side_by_side(const GemmTile& t, const Row<B>& row, size_t n) {
  constexpr int L = F32::L, last = (N - 1) / NV, rest = N - last * NV;  // panel, and its vectors
  const float* a = row.a;
  const B* b[last + 1];
  SKUA_UNROLL for (int p = 0; p <= last; ++p) b[p] = row.b + size_t(p) * NV * L * t.k;
  F32 acc[N];
  SKUA_UNROLL for (int v = 0; v < N; ++v) acc[v] = F32::zero();
  const auto w = [&](int v) __attribute__((always_inline)) { return F32::load(b[v / NV] + v % NV * L); };
  const auto step = [&]() __attribute__((always_inline)) {
    SKUA_UNROLL for (int p = 0; p <= last; ++p)
      b[p] += (p < last ? NV : rest) * L;
  };
  size_t k = 0;
  if constexpr (F32::by_lane) {
    for (; k + 4 <= t.k; k += 4) {
      const F32 x = F32::load(a + k);
#define SKUA_STEP(i) SKUA_UNROLL for (int v = 0; v < N; ++v) acc[v] = fma_lane<i>(acc[v], w(v), x); step();
      SKUA_STEP(0) SKUA_STEP(1) SKUA_STEP(2) SKUA_STEP(3)
#undef SKUA_STEP
    }
  }
  const auto once = [&]() __attribute__((always_inline)) {
    const F32 x = F32::broadcast(a + k);
    SKUA_UNROLL for (int v = 0; v < N; ++v) acc[v] = fma(x, w(v), acc[v]);
  };
  // A few chains of additions wait for three cycles a step: so short a loop takes up to five where it crosses a line of
  // code.
  if constexpr (!F32::fused && N <= 4) SKUA_FOUR_TIMES for (const size_t depth = t.k; k < depth; ++k, step()) once();
  else for (const size_t depth = t.k; k < depth; ++k, step()) once();
  const size_t tail = n - size_t(N - 1) * L;
  // A branch per step, not per vector.
#define SKUA_EACH(statement) SKUA_UNROLL for (int v = 0; v < N; ++v) { F32& y = acc[v]; statement; }
  if (t.alpha != 1) { const F32 alpha = F32::set1(t.alpha); SKUA_EACH(y = y * alpha) }
  if (t.beta != 0) { const F32 beta = F32::set1(t.beta); SKUA_EACH(y = fma(beta, (columns<N>(row.c, v, tail)), y)) }
  if (row.bias) SKUA_EACH(y = y + F32::load(row.bias + v * L))
  if (row.residual && !t.residual_after) SKUA_EACH(y = y + columns<N>(row.residual, v, tail))
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  SKUA_EACH(y = clamp_high(clamp_low(y, low), high))
  if (row.residual && t.residual_after) SKUA_EACH(y = y + columns<N>(row.residual, v, tail))
#undef SKUA_EACH
  SKUA_UNROLL for (int v = 0; v < N - 1; ++v) acc[v].store(row.c + v * L);
  if (tail == size_t(L)) acc[N - 1].store(row.c + (N - 1) * L);
  else acc[N - 1].store_n(row.c + (N - 1) * L, tail);
}
template <int NV, int N = 2 * NV, class B>
SKUA_INL void one_or_two_panels(const GemmTile& t, const Row<B>& row, size_t n, size_t vectors) {
  if (vectors == size_t(N)) side_by_side<NV, N>(t, row, n);
  else if constexpr (N > 1) one_or_two_panels<NV, N - 1>(t, row, n, vectors);
}
// Panels whose sums fit the registers.
template <int NV> constexpr int kPanels = F32::L == 8 && 12 / NV > 2 ? 12 / NV : 2;
template <int NV, class B = float> void panels(const GemmTile& t, const void* a, void* c, const void* residual) {
  constexpr size_t wide = NV * F32::L;
  Row<B> row = {static_cast<const B*>(t.b), static_cast<const float*>(a), static_cast<const float*>(residual),
                static_cast<float*>(c), t.bias};
  const auto next = [&](size_t columns) __attribute__((always_inline)) {
    row.b += columns * t.k;
    row.c += columns;
    if (row.bias) row.bias += columns;
    if (row.residual) row.residual += columns;
  };
  size_t left = t.n;
  if constexpr (constexpr size_t many = kPanels<NV> * wide; kPanels<NV> > 2)
    for (; t.groups > 2 && left >= many; left -= many, next(many)) side_by_side<NV, kPanels<NV> * NV>(t, row, many);
  for (const size_t two = (t.groups == 1 ? 1 : 2) * wide; left; next(two)) {
    const size_t n = left < two ? left : two;
    one_or_two_panels<NV>(t, row, n, (n + F32::L - 1) / F32::L);
    left -= n;
  }
}

#include "gemm/by_hand.inl"

// Even rows that fit the registers beside `v` vectors of B and one of A, and a product where multiply and add are
// apart. By-lane each row takes a register of A.
constexpr int even_rows(int v) {
  if (F32::by_lane) return v == 1 ? F32::registers / 4 : 1;
#if defined(__clang__)
  constexpr int fused = 12;  // it loads A far ahead: with 14 rows it spills
#else
  constexpr int fused = 14;
#endif
  const int rows = (F32::registers - 1 - v - !F32::fused) / v, most = F32::fused ? fused : 8;
  return rows > most ? most : rows;
}
template <int MR, int NV, bool near, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  // beside a near tile there are whole ones of its parts: the same code
  constexpr int lines = v == NV || (near && v > 1) ? kOne : 0;
  table.at[(v - 1) * MR + r - 1] = tile<r, v, lines>;
  if constexpr (v == NV) table.row[r - 1] = tile<r, v, kLines<v>>;
  if constexpr (r < MR) fill<MR, NV, near, r + 1, v>(table);
  else {
    constexpr int rows = even_rows(v) > MR ? even_rows(v) : MR;
    table.even[v - 1] = even_tiles<rows, v, near && v == NV ? 0 : lines, near && v == NV>;
    table.even_rows[v - 1] = rows;
    table.widens = kWidens;
    table.lines = kTakesLines;
    if constexpr (v < NV) fill<MR, NV, near, 1, v + 1>(table);
  }
}
// The template serves every part of the tile; `full` is the whole one.
template <int MR, int NV, GemmTileFn full> constexpr GemmTileTable make_table() {
  static_assert(MR * NV <= 32 && NV <= 8 && MR <= 16,
                "a tile has at most 16 rows, 8 vectors of columns and 32 accumulators");
  GemmTileTable table = {};
  fill<MR, NV, kByColumn<MR, NV>>(table);
  table.near = kByColumn<MR, NV>;
  table.panels = panels<NV>;
  table.panels_at_once = kPanels<NV>;
  table.pages = kByPages;
  table.hard_swish = kSwishes && full == GemmTileFn(tile<MR, NV, kOne>);
  table.any_c = full == GemmTileFn(tile<MR, NV, kOne>);
  if (full == GemmTileFn(tile<MR, NV, kOne>)) return table;
  table.at[MR * NV - 1] = table.row[MR - 1] = full;
  table.even[NV - 1] = nullptr;
  table.panels = nullptr;
  return table;
}
template <int MR, int NV, GemmTileFn full> constexpr GemmTileTable table_of = make_table<MR, NV, full>();

template <int MR, int NV, GemmTileFn full = tile<MR, NV, kOne>>
const GemmTileTable& tile_table() {
  return table_of<MR, NV, full>;
}

// Tiles whose B is packed in 16 bits and widened as it is loaded: fewer bytes for few rows, more instructions for many.
// No even rows.
template <class B, int MR, int NV, int r = 1, int v = 1> constexpr void fill_narrow(GemmTileTable& table) {
  table.at[(v - 1) * MR + r - 1] = tile<r, v, v == NV ? kOne : 0, B>;
  table.even_rows[v - 1] = MR;
  if constexpr (v == NV) table.row[r - 1] = tile<r, v, kLines<v, B>, B>;
  if constexpr (r < MR) fill_narrow<B, MR, NV, r + 1, v>(table);
  else if constexpr (v < NV) fill_narrow<B, MR, NV, 1, v + 1>(table);
}
template <class B, int MR, int NV> constexpr GemmTileTable make_narrow() {
  GemmTileTable table = {};
  fill_narrow<B, MR, NV>(table);
  table.b = element_of<B>;
  table.panels = panels<NV, B>;
  table.panels_at_once = kPanels<NV>;
  table.pages = kByPages;
  table.any_c = true;
  return table;
}
template <class B, int MR, int NV> constexpr GemmTileTable narrow_of = make_narrow<B, MR, NV>();
template <class B, int MR, int NV> const GemmTileTable& narrow_table() { return narrow_of<B, MR, NV>; }

#define SKUA_TILE_B16(mr, nr, why) static_assert(nr % F32::L == 0, "the columns of a tile are whole vectors");
#define SKUA_TILE(mr, nr, why) static_assert(nr % F32::L == 0, "the columns of a tile are whole vectors");
#define SKUA_TILE_BY_HAND(mr, nr, body, why) SKUA_TILE(mr, nr, why)
#include "gemm/tiles.def"
#undef SKUA_TILE
#undef SKUA_TILE_BY_HAND
#undef SKUA_TILE_B16

#define SKUA_TILE_KERNEL(type, name, mr, nr, why, ...)                                                                 \
  {"gemm_" #type "_" #mr "x" #nr name "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, \
   mr, nr, F32::L,                                                                                                     \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<mr, nr / F32::L __VA_OPT__(, ) __VA_ARGS__>)),    \
   Element::type},
#define SKUA_NARROW_KERNEL(type, mr, nr, why)                                                                         \
  {"gemm_" #type "_" #mr "x" #nr "_b16_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, \
   mr, nr, F32::L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(narrow_table<type, mr, nr / F32::L>)),      \
   Element::type},
#define SKUA_ROW_KERNEL(T, type)                                                                                  \
  {"gemm_rows_" #type "_" SKUA_STRING(SKUA_ISA), "gemm", "rows of A to f32, and sums from f32, for tiles of f32", \
   KernelKind::gemm_rows, Isa::SKUA_ISA, 0, 0, 0, F32::L,                                                         \
   reinterpret_cast<AnyCode>(static_cast<GemmRowTableFn>(rows_of<T>)), Element::type},

#define SKUA_TRANSPOSED_KERNEL(T, type)                                                                     \
  {"gemm_transposed_" #type "_" SKUA_STRING(SKUA_ISA), "gemm",                                              \
   "a few rows by the rows of a B that lies transposed, which is packed nowhere",                           \
   KernelKind::gemm_transposed, Isa::SKUA_ISA, 0, kTransposedRows, 0, F32::L,                               \
   reinterpret_cast<AnyCode>(static_cast<GemmTileFn>(transposed<T>)), Element::type},

#if defined(SKUA_ISA_sse2) || defined(SKUA_ISA_sse41)  // widen f16 in integers, which leaves no registers
#define SKUA_TRANSPOSED_F16
#else
#define SKUA_TRANSPOSED_F16 SKUA_TRANSPOSED_KERNEL(f16, f16)
#endif

#if defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)  // where there is a SKUA_TILE_B16
#define SKUA_PACK_NARROW(type) SKUA_PACK_KERNEL(f32, float, type, type, 1)
#else
#define SKUA_PACK_NARROW(type)
#endif

// One tile serves every type of A and C: the driver prepares the one and finishes the other (gemm_rows).
const Kernel kernels[] = {
#define SKUA_TILE_BY_HAND(mr, nr, body, why) SKUA_TILE_KERNEL(f32, "_" #body, mr, nr, why, body)
#define SKUA_TILE(mr, nr, why) SKUA_TILE_KERNEL(f32, "", mr, nr, why)
#define SKUA_TILE_B16(mr, nr, why)
#include "gemm/tiles.def"
#undef SKUA_TILE
#undef SKUA_TILE_BY_HAND
#undef SKUA_TILE_B16
#if defined(SKUA_ISA_neon)
    SKUA_PACKED_TILE(f32, 8, 12, a53, "_a53",
                     "scheduled for the Cortex-A53: 24 accumulators, a multiply in five of six cycles")
    SKUA_PACKED_TILE(f32, 8, 12, a55, "_a55",
                     "scheduled for the Cortex-A55: 24 accumulators, a multiply in every cycle, its loads in halves "
                     "beside it")
#elif defined(SKUA_ISA_neon32)
    SKUA_PACKED_TILE(f32, 6, 8, any, "",
                     "in assembly: 12 accumulators + 2 of A (packed) + 2 of B of 16 registers; a third fewer "
                     "instructions than 4x8")
    SKUA_PACKED_TILE(f32, 6, 8, a53, "_a53",
                     "scheduled for the Cortex-A53: 12 accumulators, a multiply in twelve of fifteen and a half cycles")
    SKUA_PACKED_TILE(f32, 6, 8, a55, "_a55",
                     "scheduled for the Cortex-A55: 12 accumulators, a multiply in every cycle, its loads in halves "
                     "beside it")
#endif
#define SKUA_TILE_BY_HAND(mr, nr, body, why)
#ifdef SKUA_TYPE_f16
#define SKUA_TILE(mr, nr, why) SKUA_TILE_KERNEL(f16, "", mr, nr, why)
#define SKUA_TILE_B16(mr, nr, why) SKUA_NARROW_KERNEL(f16, mr, nr, why)
#include "gemm/tiles.def"
#undef SKUA_TILE
#undef SKUA_TILE_B16
    SKUA_ROW_KERNEL(f16, f16) SKUA_TRANSPOSED_F16 SKUA_PACK_KERNEL(f16, f16, f32, float, 1)
    SKUA_PACK_KERNEL(f16, f16, f16, f16, 1) SKUA_PACK_NARROW(f16)
#endif
#ifdef SKUA_TYPE_bf16
#define SKUA_TILE(mr, nr, why) SKUA_TILE_KERNEL(bf16, "", mr, nr, why)
#define SKUA_TILE_B16(mr, nr, why) SKUA_NARROW_KERNEL(bf16, mr, nr, why)
#include "gemm/tiles.def"
#undef SKUA_TILE
#undef SKUA_TILE_B16
    SKUA_ROW_KERNEL(bf16, bf16) SKUA_TRANSPOSED_KERNEL(bf16, bf16) SKUA_PACK_KERNEL(bf16, bf16, f32, float, 1)
    SKUA_PACK_KERNEL(bf16, bf16, bf16, bf16, 1) SKUA_PACK_NARROW(bf16)
#endif
#undef SKUA_TILE_BY_HAND
    SKUA_PACK_KERNEL(f32, float, f32, float, 1) SKUA_TRANSPOSED_KERNEL(float, f32)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
