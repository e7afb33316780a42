// Tiles in AMX's registers of 16 rows of 64 bytes, of bytes and of bf16: one instruction multiplies 16 rows of A by 16
// columns of B, 64 bytes of the depth. Included by the units of this kind.
//
//   packed B   panels of 32 columns,
//              [segment][ceil(depth / kDeep)][width / 16][16 words of the depth][16 columns][4 bytes]: a register as it
//              lies, zeros behind the depth
//   A          in place, a register's rows at the step of even rows (other rows, and what is behind the last whole 64
//              bytes, by way of the stack);
//              or packed: panels of 16 rows, [segment][ceil(depth / kDeep)][16 rows][64 bytes]
//
// Registers: 2x2 of sums + 2 of A + 2 of B of 8, four loads feed four products. Sums end in vectors by way of the
// stack.
//
// One configuration serves all tiles of a block, between enter() and leave(), as loading it takes as long as a small
// product: registers are whole, but for blocks of less than 16 rows, whose registers have no more (a product takes a
// cycle for each).
//
// The end of a tile is as long as a product of 128 deep, and stands between a tile's last product and the next one's
// first. So where it is simple it waits until the next tile is multiplied, and is computed beside it, a few rows with
// each step. Rows of A meet several panels one after the other (GemmTile::panels): B comes in order then, which L2
// gives twice as fast as rows that are a step apart.
//
// A product P has
//   Row, Sum                                             types: of A, of 1 or 2 bytes; of the sums
//   kAnyBehind                                           what zeros of B meet may be anything: 0 times it is 0
//   Start<wide>(tile); begin<tall>(i)                    where sums of the tile's first panel begin; that to the
//                                                        registers of sums, i is 0 or 1; prepare(i, column): of the
//                                                        panel that begins there, a tile ahead of begin(), as loads of
//                                                        registers wait for stores to reach the cache
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
#include "dispatch/kernel.h"
#include "gemm/gemm_kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int kLanes = I32::L;  // of a vector and of a register's row
constexpr int kRows = 16, kLine = 64, kWide = 2, kRegister = kRows * kLine;
template <class P> constexpr int kElement = sizeof(typename P::Row);
template <class P> constexpr int kDeep = kLine / kElement<P>;  // steps of the depth in a register

// Registers of `rows` rows of sums and of A, 16 at most.
void enter(size_t rows) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  for (int i = 0; i < 6; ++i) config.rows[i] = uint8_t(rows);
  asm volatile("" : : "r"(&config) : "memory");  // gcc's loads of tiles do not say that they read memory
  _tile_loadconfig(&config);
}
void leave() { _tile_release(); }

// Of `rows` rows the next n bytes to a register's rows of the stack, zeros behind.
template <class Row> SKUA_INL void copy_rows(int rows, size_t n, char* to, const Row& row) {
  const __mmask64 bytes = ~uint64_t(0) >> (kLine - n);
  for (int r = 0; r < rows; ++r) _mm512_store_si512(to + r * kLine, _mm512_maskz_loadu_epi8(bytes, row(r)));
}

// Where `tall` registers of rows of A are: begin() at a segment; take() what a step of n bytes reads, at first[i], rows
// `apart`.
template <class P, int tall> struct EvenRows {
  static constexpr bool padded = false, copies = false;
  const char *from, *p, *first[tall];
  ptrdiff_t step, apart, next;  // next: from a register's first row to the next one's
  size_t behind;                // rows of the run
  char* rest;                   // room for registers
  int count;                    // rows of a register
  bool dense;
  // second: row of the second register's first
  SKUA_INL EvenRows(const GemmTile& t, const char* a, size_t rows_behind, char* room, size_t second = kRows,
                    size_t rows = kRows)
      : from(a),
        step(t.a_step * kElement<P>),
        next(ptrdiff_t(second) * step),
        behind(rows_behind),
        rest(room),
        count(int(rows)),
        dense(t.dense) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + t.segments[s].a * kElement<P>; }
  template <bool whole> SKUA_INL void take(size_t n) {
    // Where what B's zeros meet behind a row may be anything, still only rows of this run are known to be there, and
    // between them what is the tensor's.
    const bool copies =
        !whole && (!P::kAnyBehind || !dense || step <= 0 || ptrdiff_t(behind) * step < ptrdiff_t(kLine - n));
    SKUA_UNROLL for (int i = 0; i < tall; ++i) {
      const char* const of = p + i * next;
      first[i] = copies ? rest + i * kRegister : of;
      if (copies)
        copy_rows(count, n, rest + i * kRegister, [&](int r) __attribute__((always_inline)) { return of + r * step; });
    }
    apart = copies ? ptrdiff_t(kLine) : step;
    p += n;
  }
};
// Up to 16 rows by pointers.
template <class P> struct AnyRows {
  static constexpr bool padded = false, copies = true;
  const char* const* rows;
  const char* first[1];
  static constexpr ptrdiff_t apart = kLine;
  ptrdiff_t at;
  int count;
  char* copy;
  SKUA_INL AnyRows(const char* const* a, size_t m, char* room) : rows(a), count(int(m)), copy(room) {
    first[0] = copy;
    for (int r = count; r < kRows; ++r) _mm512_store_si512(copy + r * kLine, _mm512_setzero_si512());
  }
  SKUA_INL void begin(const GemmTile& t, size_t s) { at = t.segments[s].a * kElement<P>; }
  template <bool whole> SKUA_INL void take(size_t n) {
    copy_rows(
        count, whole ? size_t(kLine) : n, copy, [&](int r) __attribute__((always_inline)) { return rows[r] + at; });
    at += ptrdiff_t(n);
  }
};
template <class P, int tall> struct PackedRows {
  static constexpr bool padded = true, copies = false;
  const char *from, *p, *first[tall];
  static constexpr ptrdiff_t apart = kLine;
  ptrdiff_t panel;
  SKUA_INL PackedRows(const GemmTile& t, const char* a) : from(a), panel(t.a_step * kElement<P> * kRows) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + s * ((t.k + kDeep<P> - 1) / kDeep<P>) * kRegister; }
  template <bool whole> SKUA_INL void take(size_t) {
    SKUA_UNROLL for (int i = 0; i < tall; ++i) first[i] = p + i * panel;
    p += kRegister;
  }
};

template <int tall, int wide> SKUA_INL void zero() {
  _tile_zero(0);
  if constexpr (wide > 1) _tile_zero(1);
  if constexpr (tall > 1) _tile_zero(2);
  if constexpr (wide * tall > 2) _tile_zero(3);
}
template <class P, int tall, int wide, class A> SKUA_INL void step(const A& a, const char* b) {
  _tile_loadd(6, b, kLine);
  _tile_loadd(4, a.first[0], a.apart);
  P::template multiply<0, 4, 6>();
  if constexpr (wide > 1) {
    _tile_loadd(7, b + kRegister, kLine);
    P::template multiply<1, 4, 7>();
  }
  if constexpr (tall > 1) {
    _tile_loadd(5, a.first[1], a.apart);
    P::template multiply<2, 5, 6>();
    if constexpr (wide > 1) P::template multiply<3, 5, 7>();
  }
}

struct Nothing {
  SKUA_INL void operator()() const {}
};
// gcc 12 finds functions pure that end rows by addresses out of a list, and leaves calls out: they end with this.
SKUA_INL void keep_stores() { asm volatile("" : : : "memory"); }
// The sums of tall * 16 rows and wide * 16 columns of a panel. beside(): with each step.
template <class P, int tall, int wide, class A, class Beside = Nothing>
SKUA_INL void multiply(const GemmTile& t, const char* panel, A& a, typename P::Sum* sums, Beside&& beside = {}) {
  constexpr ptrdiff_t row = wide * kLine;
  const size_t b_step = t.ldb * kElement<P>;
  const size_t whole = A::padded ? (t.k + kDeep<P> - 1) / kDeep<P> : t.k / kDeep<P>,
               rest = A::padded ? 0 : t.k % kDeep<P> * kElement<P>;
  for (size_t s = 0; s < t.segment_count; ++s) {
    a.begin(t, s);
    const char* b = panel + t.segments[s].b / kDeep<P> * b_step;
    for (size_t left = whole; left; --left, b += b_step) {
      a.template take<true>(kLine);
      if constexpr (A::copies) asm volatile("" : : : "memory");
      step<P, tall, wide>(a, b);
      beside();
    }
    if (rest) {
      a.template take<false>(rest);
      asm volatile("" : : : "memory");
      step<P, tall, wide>(a, b);
      beside();
    }
  }
  char* to = reinterpret_cast<char*>(sums);
  _tile_stored(0, to, row);
  if constexpr (wide > 1) _tile_stored(1, to + kLine, row);
  if constexpr (tall > 1) _tile_stored(2, to + kRows * row, row);
  if constexpr (wide * tall > 2) _tile_stored(3, to + kRows * row + kLine, row);
}

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

template <class P, int wide> void tile(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  int32_t own_terms[kRows];
  const char* const* rows = reinterpret_cast<const char* const*>(t.a);
  alignas(64) char room[kRegister];
  AnyRows<P> a(rows, t.rows, room);
  typename P::template Start<wide>(t).template begin<1>(0);
  multiply<P, 1, wide>(t, panel_of(t, 0), a, sums);
  P::template finish<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, P::terms_of(t, 0, t.rows, rows, own_terms));
}
template <class P, int wide> void packed_tile(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  PackedRows<P, 1> a(t, static_cast<const char*>(t.a[0]));
  typename P::template Start<wide>(t).template begin<1>(0);
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
  const typename P::template Start<wide> start;
  explicit SKUA_INL AtOnce(const GemmTile& tile) : t(tile), start(tile) {}

  SKUA_INL TileRows& next_rows() { return rows.count = 0, rows; }
  // Rows [from, stop), the gaps among them. a: where rows begin, if they are in place.
  template <int tall, class A> SKUA_INL void add(A& rows_of_a, Lines& c, size_t from, size_t stop, const char* a) {
    if constexpr (tall == 1) {
      multiply_one(rows_of_a);
    } else {
      start.template begin<tall>(0);
      multiply<P, tall, wide>(t, panel_of(t, 0), rows_of_a, sums);
    }
    each_part(tall, from, stop, [&](size_t first, size_t last) __attribute__((always_inline)) {
      finish(c, first, last, a);
    });
  }
  template <class A> __attribute__((noinline)) void multiply_one(A& a) {
    start.template begin<1>(0);
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
  typename P::template Start<wide> start;
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
        start(tile),
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
      start.template begin<tall>(turn);
      if (t.panels > 1) start.prepare(turn ^ 1, p + 1 < t.panels ? first + wide * kLanes : 0);
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

template <class P>
void pack_rows(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t k,
               void* panel) {
  char* to = static_cast<char*>(panel);
  const char* row[kRows];
  const size_t bytes = k * kElement<P>;
  for (size_t s = 0; s < segment_count; ++s) {
    for (size_t r = 0; r < rows; ++r) row[r] = static_cast<const char*>(a[r]) + segments[s].a * kElement<P>;
    for (size_t i = 0; i < bytes; i += kLine, to += kRegister)
      copy_rows(
          int(rows), bytes - i < size_t(kLine) ? bytes - i : size_t(kLine),
          to, [&](int r) __attribute__((always_inline)) { return row[r] + i; });
  }
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
