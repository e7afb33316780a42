// Tiles in AMX's registers, from where sums begin to their ends, over all rows of a block and over panels. Included by
// the units of this kind.
//
// The end of a tile is as long as a product of 128 deep, and stands between a tile's last product and the next one's
// first. So where it is simple it waits until the next tile is multiplied, and is computed beside it, a few rows with
// each step. Rows of A meet several panels one after the other (GemmTile::panels): B comes in order then, which L2
// gives twice as fast as rows that are a step apart.
//
// A product P has
//   Row, Sum                                             types: of A, of 1 or 2 bytes; of the sums
//   kAnyBehind                                           what zeros of B meet may be anything: 0 times it is 0
//   multiply<sum, a, b>()                                registers
//   finish<wide>(tile, row, sums, rows, c, terms)        rows of sums to rows of C, c(r) and c.residual(r); `row` is
//                                                        the first one's number in the tile
//   sums_rows(tile); terms_of(tile, row, rows, a, own)   whether the end takes sums of rows of A; these, of rows by
//                                                        pointers, or NULL
//   End(tile)                                            a simple end of whole panels, beside products of the next
//                                                        tile: serves(tile); rows(rows, sums, column, first, last) of
//                                                        those rows, in the panel that begins at that column
//   End::Ready<kind>(end, column); two(rows, sums, r)    the same in registers, of two rows; there is a `kind` 0 and 1
#pragma once
#include "gemm/amx.h"

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL const char* panel_of(const GemmTile& t, size_t panel) {
  return static_cast<const char*>(t.b) + ptrdiff_t(panel) * t.b_step;
}

// Rows of sums of a tile: a few more are read than are stored.
constexpr int sums_of(int tall, int wide) { return (tall * kRows + 3) * wide * kLanes; }

// Rows of C by pointers, or even ones.
struct AnyC {
  void* const* c;
  const void* const* rest;
  SKUA_INL void* operator()(int r) const { return c[r]; }
  SKUA_INL const void* residual(int r) const { return rest[r]; }
};
struct EvenC {
  char* c;
  const char* rest;
  ptrdiff_t bytes, rest_bytes;
  SKUA_INL void* operator()(int r) const { return c + r * bytes; }
  SKUA_INL const void* residual(int r) const { return rest + r * rest_bytes; }
};

// What few rows do beside products: they ask for what comes later in B.
struct AsksByPages {
  const char* b;
  const RowAhead ahead;
  SKUA_INL void operator()() {
    SKUA_UNROLL for (int i = 0; i < kWide * kRegister; i += 256) ahead.ask<4>(b + i);
    b += kWide * kRegister;
  }
};
template <class P, int wide> void tile(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  int32_t own_terms[kRows];
  const char* const* rows = reinterpret_cast<const char* const*>(t.a);
  alignas(64) char room[kRegister];
  AnyRows<P> a(rows, t.rows, room);
  const bool asks = wide == kWide && t.pages && t.segment_count == 1;
  const char* const b = panel_of(t, 0);
  if (asks) multiply<P, 1, wide>(t, b, a, sums, AsksByPages{segment_of<P>(t, b, 0), {0, true, true}});
  else multiply<P, 1, wide>(t, b, a, sums);
  P::template finish<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, P::terms_of(t, 0, t.rows, rows, own_terms));
}
template <class P, int wide> void packed_tile(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  PackedRows<P, 1> a(t, static_cast<const char*>(t.a[0]));
  multiply<P, 1, wide>(t, panel_of(t, 0), a, sums);
  P::template finish<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, nullptr);
}

// Rows of C [row, end), in lines, as tiles pass. Between two lines lie `gap` rows of sums that are nobody's.
struct Lines {
  size_t row, end, line_end, at, gap;  // at: of sums, where `row` is
  size_t line;
  EvenC c;                             // of `row`
  ptrdiff_t c_gap, rest_gap;
  SKUA_INL Lines(const GemmTile& t, size_t first, size_t last, size_t gap_rows)
      : row(first), end(last), line_end(end), at(0), gap(gap_rows), line(t.line) {
    const ptrdiff_t element = ptrdiff_t(element_bytes(t.c_type));
    c = {static_cast<char*>(t.c[0]), t.residual ? static_cast<const char*>(t.residual[0]) : nullptr, t.c_step * element,
         t.residual_step * element};
    c_gap = t.c_gap * element;
    rest_gap = t.residual_gap * element;
    size_t done = 0;  // lines
    if (t.line) {
      if (row >= t.in_line) done = 1 + (row - t.in_line) / t.line;
      line_end = t.in_line + done * t.line;
    }
    pass(row, done);
  }
  SKUA_INL void pass(size_t rows, size_t lines) {
    c.c += ptrdiff_t(rows) * c.bytes + ptrdiff_t(lines) * c_gap;
    if (c.rest) c.rest += ptrdiff_t(rows) * c.rest_bytes + ptrdiff_t(lines) * rest_gap;
  }
  // those whose sums lie before the stop: stretch(row, count, at, c), of even rows whose sums follow each other
  template <class Stretch> SKUA_INL void each(size_t stop, const Stretch& stretch) {
    while (row < end && at < stop) {
      const size_t left = (line_end < end ? line_end : end) - row, count = left < stop - at ? left : stop - at;
      stretch(row, count, at, c);
      row += count;
      at += count;
      const bool ends = row == line_end;
      pass(count, ends);
      if (!ends) continue;
      at += gap;
      line_end += line;
    }
  }
};

// Two registers of less than 32 rows overlap: those of the first, then those that the second adds, whose sums are as if
// all began earlier.
template <class Part> SKUA_INL void each_part(int tall, size_t from, size_t stop, const Part& part) {
  const bool overlap = tall == 2 && stop - from < size_t(2 * kRows);
  if (overlap) part(from, from + kRows);
  part(overlap ? stop - 2 * kRows : from, stop);
}

// Rows of C of a tile, one after the other.
struct TileRows {
  int count;
  // of 2 * kRows at most: where sums and C's columns begin; more are written
  uint16_t sums[4 * kRows];
  char* c[4 * kRows];
};

// Tiles by one panel, each ended before the next begins.
template <class P, int wide> struct AtOnce {
  using Product = P;
  const GemmTile& t;
  alignas(64) typename P::Sum sums[sums_of(2, wide)];
  alignas(64) char room[2 * kRegister];
  TileRows rows;
  explicit SKUA_INL AtOnce(const GemmTile& tile) : t(tile) {}

  SKUA_INL TileRows& next_rows() { return rows.count = 0, rows; }
  // Rows [from, stop), the gaps among them. a: where rows begin, if they are in place.
  template <int tall, class A> SKUA_INL void add(A& rows_of_a, Lines& c, size_t from, size_t stop, const char* a) {
    if constexpr (tall == 1) {
      multiply_one(rows_of_a);
    } else {
      multiply<P, tall, wide>(t, panel_of(t, 0), rows_of_a, sums);
    }
    each_part(tall, from, stop, [&](size_t first, size_t last) __attribute__((always_inline)) {
      finish(c, first, last, a);
    });
  }
  template <class A> __attribute__((noinline)) void multiply_one(A& a) {
    multiply<P, 1, wide>(t, panel_of(t, 0), a, sums);
  }
  // of sums that begin at row `from`
  SKUA_INL void finish(Lines& c, size_t from, size_t stop, const char* a) {
    c.each(stop, [&](size_t row, size_t count, size_t at, const EvenC& to) __attribute__((always_inline)) {
      const int32_t* terms = nullptr;
      int32_t own[2 * kRows];
      if (a && P::sums_rows(t)) {
        const char* p[2 * kRows];
        for (size_t r = 0; r < count; ++r) p[r] = a + ptrdiff_t(at + r) * t.a_step;
        terms = P::terms_of(t, row, count, p, own);
      }
      P::template finish<wide>(t, row, sums + (at - from) * wide * kLanes, int(count), to, terms);
    });
  }
  // Rows by pointers, from `row` on.
  SKUA_INL void add_rows(const char* const* a, size_t row, TileRows& c, const void* const* residual) {
    AnyRows<P> few(a, size_t(c.count), room);
    int32_t own_terms[kRows];
    multiply_one(few);
    P::template finish<wide>(t, row, sums, c.count,
                             AnyC{reinterpret_cast<void* const*>(c.c), t.residual ? residual : nullptr},
                             P::terms_of(t, row, size_t(c.count), a, own_terms));
  }
  SKUA_INL void end() {}
};

// Whole panels whose ends are simple, beside products of three steps or more: behind fewer ends are as well off in a
// loop of their own.
template <class P> bool ends_beside(const GemmTile& t) {
  return P::End::serves(t) && t.n == size_t(kWide * kLanes) && t.segment_count * t.k > 2 * size_t(kDeep<P>);
}
// Tiles by all panels; the end of each waits for the next.
template <class P> struct OneBehind {
  using Product = P;
  using End = typename P::End;
  static constexpr int wide = kWide, kAtOnce = 2;  // rows of an end
  const GemmTile& t;
  alignas(64) typename P::Sum sums[2][sums_of(2, wide)];
  alignas(64) char room[2 * kRegister];
  TileRows rows[2];
  const End end_of;
  int turn = 0, list = 0, each;  // rows that are ended with a step
  // what waits: rows [next, waiting->count), their sums, its panel's first column
  const TileRows* waiting = nullptr;
  const typename P::Sum* kept = nullptr;
  size_t column = 0;
  int next = 0;
  static constexpr int kRow = wide * kLanes;  // sums of a row
  const __m512i row_sums, row_steps, eight_steps;  // where rows begin, of 32 and of eight; bytes of eight rows
  explicit SKUA_INL OneBehind(const GemmTile& tile)
      : t(tile),
        end_of(tile),
        row_sums(_mm512_slli_epi16(_mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15,
                                                    14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                   5)),
        row_steps(_mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                     _mm512_set1_epi64(t.c_step * ptrdiff_t(element_bytes(t.c_type))))),
        eight_steps(_mm512_set1_epi64(8 * t.c_step * ptrdiff_t(element_bytes(t.c_type)))) {
    static_assert(kRow == 1 << 5);
    const size_t steps = t.segment_count * ((t.k + kDeep<P> - 1) / kDeep<P>);
    each = int((2 * kRows / kAtOnce + steps - 1) / steps) * kAtOnce;
  }

  SKUA_INL TileRows& next_rows() {
    TileRows& to = rows[list];
    list ^= 1;
    to.count = 0;
    return to;
  }
  template <int tall, class A> SKUA_INL void add(A& rows_of_a, Lines& c, size_t from, size_t stop, const char*) {
    panels<tall>(rows_of_a, listed(tall, c, from, stop));
  }
  __attribute__((noinline)) const TileRows& listed(int tall, Lines& c, size_t from, size_t stop) {
    TileRows& to = next_rows();
    each_part(tall, from, stop, [&](size_t first, size_t last) __attribute__((always_inline)) {
      c.each(last, [&](size_t, size_t count, size_t at, const EvenC& line) __attribute__((always_inline)) {
        const __m512i begin = _mm512_set1_epi16(short((at - first) * kRow));
        _mm512_storeu_si512(to.sums + to.count, _mm512_add_epi16(row_sums, begin));
        __m512i p = _mm512_add_epi64(_mm512_set1_epi64(reinterpret_cast<intptr_t>(line.c)), row_steps);
        for (size_t r = 0; r < count; r += 8, p = _mm512_add_epi64(p, eight_steps))
          _mm512_storeu_si512(to.c + size_t(to.count) + r, p);
        to.count += int(count);
      });
    });
    return to;
  }
  SKUA_INL void add_rows(const char* const* a, size_t, TileRows& c, const void* const*) {
    for (int r = 0; r < c.count; ++r) c.sums[r] = uint16_t(r * kRow);
    AnyRows<P> few(a, size_t(c.count), room);
    panels<1>(few, c);
  }
  template <int tall, class A> __attribute__((noinline)) void panels(A& a, const TileRows& to) {
    if constexpr (tall == 1) panels_of<-1, tall>(a, to);
    else end_of.kind ? panels_of<1, tall>(a, to) : panels_of<0, tall>(a, to);
  }
  // kind: of the ends, in registers; -1: by a call, as single registers of rows are rare and take code.
  template <int kind, int tall, class A> SKUA_INL void panels_of(A a, const TileRows& to) {
    for (size_t p = 0; p < t.panels; ++p) {
      const size_t first = p * wide * kLanes;
      const int count = waiting ? waiting->count : 0;
      const auto multiply_beside = [&](const auto& beside) __attribute__((always_inline)) {
        multiply<P, tall, wide>(t, panel_of(t, p), a, sums[turn], beside);
      };
      if constexpr (kind < 0) {
        multiply_beside([&]() __attribute__((always_inline)) {
          if (next == count) return;
          const int from = next;
          next = count - from < each ? count : from + each;
          end_of.rows(*waiting, kept, column, from, next);
        });
      } else {
        const typename End::template Ready<kind> ready(end_of, column);
        const TileRows* const of = waiting;
        const typename P::Sum* const from = kept;
        const int whole = count / kAtOnce * kAtOnce, step = each;
        int r = 0;
        multiply_beside([&]() __attribute__((always_inline)) {
          for (const int last = r + step < whole ? r + step : whole; r < last; r += kAtOnce) ready.two(*of, from, r);
        });
        next = r;
      }
      end();
      waiting = &to;
      kept = sums[turn];
      column = first;
      next = 0;
      turn ^= 1;
    }
  }
  SKUA_INL void end() {
    if (waiting && next < waiting->count) end_of.rows(*waiting, kept, column, next, waiting->count);
    waiting = nullptr;
  }
};

// Rows [first, last), even ones from a on, the gaps between lines among them; the last tile begins earlier rather than
// to go on behind them.
template <class Tiles> SKUA_INL void rows_in_place(Tiles& tiles, const char* a, size_t first, size_t last, size_t gap) {
  using P = typename Tiles::Product;
  const GemmTile& t = tiles.t;
  const ptrdiff_t step = t.a_step * kElement<P>;
  Lines c(t, first, last, gap);
  const size_t across = first < c.line_end && last > c.line_end ? 1 + (last - 1 - c.line_end) / t.line : 0,
               rows = last - first + across * gap;
  if (rows < size_t(kRows) && rows != t.entered) {  // registers have more rows than there are
    const char* p[kRows];
    for (size_t r = 0; r < rows; ++r) p[r] = a + ptrdiff_t(r) * step;
    AnyRows<P> few(p, rows, tiles.room);
    return tiles.template add<1>(few, c, 0, rows, a);
  }
  for (size_t at = 0; at < rows;) {
    const size_t left = rows - at;
    if (left > size_t(kRows)) {
      const size_t all = rows < size_t(2 * kRows) ? rows : 2 * kRows, from = left < all ? rows - all : at;
      EvenRows<P, 2> two(t, a + ptrdiff_t(from) * step, rows - from - all, tiles.room, all - kRows);
      at = from + all;
      tiles.template add<2>(two, c, from, at, a);
    } else {
      const size_t all = rows < size_t(kRows) ? rows : kRows, from = left < all ? rows - all : at;
      EvenRows<P, 1> one(t, a + ptrdiff_t(from) * step, rows - from - all, tiles.room, kRows, all);
      at = from + all;
      tiles.template add<1>(one, c, from, at, a);
    }
  }
}
// Lines too short for tiles: rows by pointers, tiles go on in the next line.
template <class Tiles> SKUA_INL void rows_of_lines(Tiles& tiles) {
  using P = typename Tiles::Product;
  const GemmTile& t = tiles.t;
  const ptrdiff_t element = ptrdiff_t(element_bytes(t.c_type));
  const char* a = static_cast<const char*>(t.a[0]);
  char* c = static_cast<char*>(t.c[0]);
  const char* residual = t.residual ? static_cast<const char*>(t.residual[0]) : nullptr;
  for (size_t row = 0, next = 0, end = t.in_line; row < t.rows; row = next) {
    const char* rows[kRows];
    const void* rest[kRows];
    TileRows& to = tiles.next_rows();
    for (; to.count < kRows && next < t.rows; ++to.count) {
      rows[to.count] = a;
      rest[to.count] = residual;
      to.c[to.count] = c;
      a += t.a_step * kElement<P>;
      c += t.c_step * element;
      if (residual) residual += t.residual_step * element;
      if (++next == end) {
        end += t.line;
        a += t.a_gap * kElement<P>;
        c += t.c_gap * element;
        if (residual) residual += t.residual_gap * element;
      }
    }
    tiles.add_rows(rows, row, to, rest);
  }
}
template <class Tiles> void even_rows_by(const GemmTile& t) {
  Tiles tiles(t);
  const char* a = static_cast<const char*>(t.a[0]);
  // Through the gaps, where these are few rows and registers are whole (rows of gaps count too), else line by line.
  const bool even = t.line && t.dense && t.a_step > 0 && t.a_gap >= 0 && t.a_gap % t.a_step == 0;
  const size_t gap = even ? size_t(t.a_gap / t.a_step) : 0;
  const bool through = even && t.entered == size_t(kRows) &&
                       t.line + gap <= (t.line < kRows ? 2 * kRows : (t.line + kRows - 1) / kRows * kRows);
  if (t.line && !through && t.line < kRows) {
    rows_of_lines(tiles);
  } else {
    const bool all = !t.line || through;
    for (size_t row = 0, end = all ? t.rows : t.in_line; row < t.rows; row = end, end += t.line) {
      if (row) a += t.a_gap * kElement<typename Tiles::Product>;
      if (end > t.rows) end = t.rows;
      rows_in_place(tiles, a, row, end, through ? gap : 0);
      a += ptrdiff_t(end - row) * t.a_step * kElement<typename Tiles::Product>;
    }
  }
  tiles.end();
}
template <class P, int wide> void even_rows(const GemmTile& t) {
  if constexpr (wide == kWide)
    if (ends_beside<P>(t)) return even_rows_by<OneBehind<P>>(t);
  even_rows_by<AtOnce<P, wide>>(t);
}
template <class Tiles> void even_panels_by(const GemmTile& t) {
  using P = typename Tiles::Product;
  Tiles tiles(t);
  const char* a = static_cast<const char*>(t.a[0]);
  Lines c(t, 0, t.rows, 0);
  for (size_t at = 0; at < t.rows;) {
    const char* p = a + ptrdiff_t(at) * t.a_step * kElement<P>;
    const size_t from = at;
    if (t.rows - at > size_t(kRows)) {
      PackedRows<P, 2> two(t, p);
      at += 2 * kRows;
      tiles.template add<2>(two, c, from, at, nullptr);
    } else {
      PackedRows<P, 1> one(t, p);
      at += kRows;
      tiles.template add<1>(one, c, from, at, nullptr);
    }
  }
  tiles.end();
}
template <class P, int wide> void even_panels(const GemmTile& t) {
  if constexpr (wide == kWide)
    if (ends_beside<P>(t)) return even_panels_by<OneBehind<P>>(t);
  even_panels_by<AtOnce<P, wide>>(t);
}

template <class P, bool packed, int v = 1> constexpr void fill(GemmTileTable& table) {
  for (int r = 0; r < kRows; ++r) {
    table.at[(v - 1) * kRows + r] = packed ? packed_tile<P, v> : tile<P, v>;
    if (v == kWide) table.row[r] = table.at[(v - 1) * kRows + r];
  }
  table.even[v - 1] = packed ? even_panels<P, v> : even_rows<P, v>;
  table.even_rows[v - 1] = kRows;
  if constexpr (v < kWide) fill<P, packed, v + 1>(table);
}
// What all tables of tiles have; a unit adds what is its own.
template <class P, bool packed> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<P, packed>(table);
  table.a = element_of<typename P::Row>;
  table.kr = kDeep<P>;
  table.any_c = table.lines = table.runs = true;
  table.pages = !packed;
  table.enter = enter;
  table.leave = leave;
  table.many_panels = ends_beside<P>;
  if (packed) {
    table.pack_a = pack_rows<P>;
    table.pack_kr = kDeep<P>;
  }
  return table;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
