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
// All registers are whole: one configuration serves every tile, enter() and leave() stand around a block's tiles, as
// loading it takes as long as a small product.
//
// A product P has
//   Row, Sum                                             types: of A, of 1 or 2 bytes; of the sums
//   kAnyBehind                                           what zeros of B meet may be anything: 0 times it is 0
//   Start<wide>(tile); begin<tall, wide>(start)          where sums begin, for a panel; that to the registers of sums,
//                                                        before each tile
//   multiply<sum, a, b>()                                registers
//   finish<wide>(tile, row, sums, rows, c, terms)        rows of sums to rows of C, c(r) and c.residual(r); `row` is
//                                                        the first one's number in the tile
//   sums_rows(tile); terms_of(tile, row, rows, a, own)   whether the end takes sums of rows of A; these, of rows by
//                                                        pointers, or NULL
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

void enter() {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
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
  ptrdiff_t step, apart;
  size_t behind;  // rows of the run
  bool dense;
  alignas(64) char rest[tall * kRegister];
  SKUA_INL EvenRows(const GemmTile& t, const char* a, size_t rows_behind)
      : from(a), step(t.a_step * kElement<P>), behind(rows_behind), dense(t.dense) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + t.segments[s].a * kElement<P>; }
  template <bool whole> SKUA_INL void take(size_t n) {
    // Where what B's zeros meet behind a row may be anything, still only rows of this run are known to be there, and
    // between them what is the tensor's.
    const bool copies =
        !whole && (!P::kAnyBehind || !dense || step <= 0 || ptrdiff_t(behind) * step < ptrdiff_t(kLine - n));
    if (copies) copy_rows(tall * kRows, n, rest, [&](int r) __attribute__((always_inline)) { return p + r * step; });
    SKUA_UNROLL for (int i = 0; i < tall; ++i) first[i] = copies ? rest + i * kRegister : p + i * kRows * step;
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
  alignas(64) char copy[kRegister];
  SKUA_INL AnyRows(const char* const* a, size_t m) : rows(a), count(int(m)) {
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

// The sums of tall * 16 rows and wide * 16 columns.
template <class P, int tall, int wide, class A>
SKUA_INL void multiply(const GemmTile& t, A& a, const typename P::template Start<wide>& start, typename P::Sum* sums) {
  constexpr ptrdiff_t row = wide * kLine;
  P::template begin<tall, wide>(start);
  const size_t whole = A::padded ? (t.k + kDeep<P> - 1) / kDeep<P> : t.k / kDeep<P>,
               rest = A::padded ? 0 : t.k % kDeep<P> * kElement<P>;
  for (size_t s = 0; s < t.segment_count; ++s) {
    a.begin(t, s);
    const char* b = static_cast<const char*>(t.b) + t.segments[s].b / kDeep<P> * t.ldb * kElement<P>;
    for (size_t left = whole; left; --left, b += t.ldb * kElement<P>) {
      a.template take<true>(kLine);
      if constexpr (A::copies) asm volatile("" : : : "memory");
      step<P, tall, wide>(a, b);
    }
    if (rest) {
      a.template take<false>(rest);
      asm volatile("" : : : "memory");
      step<P, tall, wide>(a, b);
    }
  }
  char* to = reinterpret_cast<char*>(sums);
  _tile_stored(0, to, row);
  if constexpr (wide > 1) _tile_stored(1, to + kLine, row);
  if constexpr (tall > 1) _tile_stored(2, to + kRows * row, row);
  if constexpr (wide * tall > 2) _tile_stored(3, to + kRows * row + kLine, row);
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
  AnyRows<P> a(rows, t.rows);
  multiply<P, 1, wide>(t, a, typename P::template Start<wide>(t), sums);
  P::template finish<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, P::terms_of(t, 0, t.rows, rows, own_terms));
}
template <class P, int wide> void packed_tile(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  PackedRows<P, 1> a(t, static_cast<const char*>(t.a[0]));
  multiply<P, 1, wide>(t, a, typename P::template Start<wide>(t), sums);
  P::template finish<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, nullptr);
}

// Rows of C [row, end), in lines, as tiles pass. Between two lines lie `gap` rows of sums that are nobody's.
struct Lines {
  size_t row, end, line_end, at, gap;  // at: of sums, where `row` is
  ptrdiff_t done;                      // lines
  SKUA_INL Lines(const GemmTile& t, size_t first, size_t last, size_t gap_rows)
      : row(first), end(last), at(0), gap(gap_rows), done(0) {
    line_end = t.line ? t.in_line : end;
    if (t.line && row >= t.in_line) {
      done = ptrdiff_t(1 + (row - t.in_line) / t.line);
      line_end = t.in_line + size_t(done) * t.line;
    }
  }
  // Those whose sums lie before the stop; sums: from `from` on. a: where rows begin, if they are in place.
  template <class P, int wide>
  SKUA_INL void finish(const GemmTile& t, typename P::Sum* sums, size_t from, size_t stop, const char* a = nullptr) {
    const ptrdiff_t element = ptrdiff_t(element_bytes(t.c_type));
    while (row < end && at < stop) {
      const size_t left = (line_end < end ? line_end : end) - row, count = left < stop - at ? left : stop - at;
      const EvenC c = {static_cast<char*>(t.c[0]) + (ptrdiff_t(row) * t.c_step + done * t.c_gap) * element,
                       t.residual ? static_cast<const char*>(t.residual[0]) +
                                        (ptrdiff_t(row) * t.residual_step + done * t.residual_gap) * element
                                  : nullptr,
                       t.c_step * element, t.residual_step * element};
      const int32_t* terms = nullptr;
      int32_t own[2 * kRows];
      if (a && P::sums_rows(t)) {
        const char* rows[2 * kRows];
        for (size_t r = 0; r < count; ++r) rows[r] = a + ptrdiff_t(at + r) * t.a_step;
        terms = P::terms_of(t, row, count, rows, own);
      }
      P::template finish<wide>(t, row, sums + (at - from) * wide * kLanes, int(count), c, terms);
      row += count;
      at += count;
      if (row == line_end) {
        at += gap;
        line_end += t.line;
        ++done;
      }
    }
  }
};

// Rows [first, last), even ones from a on, the gaps between lines among them; the last tile begins earlier rather than
// to go on behind them.
template <class P, int wide>
void rows_in_place(const GemmTile& t, const char* a, size_t first, size_t last, size_t gap) {
  alignas(64) typename P::Sum sums[sums_of(2, wide)];
  const typename P::template Start<wide> start(t);
  const ptrdiff_t step = t.a_step * kElement<P>;
  Lines c(t, first, last, gap);
  const size_t across = first < c.line_end && last > c.line_end ? 1 + (last - 1 - c.line_end) / t.line : 0,
               rows = last - first + across * gap;
  if (rows < size_t(kRows)) {
    const char* p[kRows];
    for (size_t r = 0; r < rows; ++r) p[r] = a + ptrdiff_t(r) * step;
    AnyRows<P> few(p, rows);
    multiply<P, 1, wide>(t, few, start, sums);
    return c.template finish<P, wide>(t, sums, 0, rows, a);
  }
  for (size_t at = 0; at < rows;) {
    const size_t left = rows - at;
    if (left > size_t(kRows)) {
      const size_t from = left < size_t(2 * kRows) && rows >= size_t(2 * kRows) ? rows - 2 * kRows : at;
      if (rows - from >= size_t(2 * kRows)) {
        EvenRows<P, 2> two(t, a + ptrdiff_t(from) * step, rows - from - 2 * kRows);
        multiply<P, 2, wide>(t, two, start, sums);
        at = from + 2 * kRows;
        c.template finish<P, wide>(t, sums, from, at, a);
        continue;
      }
    }
    const size_t from = left < size_t(kRows) ? rows - kRows : at;
    EvenRows<P, 1> one(t, a + ptrdiff_t(from) * step, rows - from - kRows);
    multiply<P, 1, wide>(t, one, start, sums);
    at = from + kRows;
    c.template finish<P, wide>(t, sums, from, at, a);
  }
}
// Lines too short for tiles: rows by pointers, tiles go on in the next line.
template <class P, int wide> void rows_of_lines(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(1, wide)];
  const typename P::template Start<wide> start(t);
  const ptrdiff_t element = ptrdiff_t(element_bytes(t.c_type));
  const char* a = static_cast<const char*>(t.a[0]);
  char* c = static_cast<char*>(t.c[0]);
  const char* residual = t.residual ? static_cast<const char*>(t.residual[0]) : nullptr;
  for (size_t row = 0, end = t.in_line; row < t.rows;) {
    const char* rows[kRows];
    void* to[kRows];
    const void* rest[kRows];
    int32_t own_terms[kRows];
    size_t count = 0;
    for (; count < size_t(kRows) && row + count < t.rows; ++count) {
      rows[count] = a;
      to[count] = c;
      rest[count] = residual;
      a += t.a_step * kElement<P>;
      c += t.c_step * element;
      if (residual) residual += t.residual_step * element;
      if (row + count + 1 == end) {
        end += t.line;
        a += t.a_gap * kElement<P>;
        c += t.c_gap * element;
        if (residual) residual += t.residual_gap * element;
      }
    }
    AnyRows<P> few(rows, count);
    multiply<P, 1, wide>(t, few, start, sums);
    P::template finish<wide>(t, row, sums, int(count), AnyC{to, t.residual ? rest : nullptr},
                             P::terms_of(t, row, count, rows, own_terms));
    row += count;
  }
}
template <class P, int wide> void even_rows(const GemmTile& t) {
  const char* a = static_cast<const char*>(t.a[0]);
  if (!t.line) return rows_in_place<P, wide>(t, a, 0, t.rows, 0);
  // Through the gaps, where these are few rows, else line by line.
  const bool even = t.dense && t.a_step > 0 && t.a_gap >= 0 && t.a_gap % t.a_step == 0;
  const size_t gap = even ? size_t(t.a_gap / t.a_step) : 0;
  if (even && t.line + gap <= (t.line < kRows ? 2 * kRows : (t.line + kRows - 1) / kRows * kRows))
    return rows_in_place<P, wide>(t, a, 0, t.rows, gap);
  if (t.line < kRows) return rows_of_lines<P, wide>(t);
  for (size_t row = 0, end = t.in_line; row < t.rows; row = end, end += t.line) {
    if (row) a += t.a_gap * kElement<P>;
    if (end > t.rows) end = t.rows;
    rows_in_place<P, wide>(t, a, row, end, 0);
    a += ptrdiff_t(end - row) * t.a_step * kElement<P>;
  }
}
template <class P, int wide> void even_panels(const GemmTile& t) {
  alignas(64) typename P::Sum sums[sums_of(2, wide)];
  const typename P::template Start<wide> start(t);
  const char* a = static_cast<const char*>(t.a[0]);
  const size_t rows = t.groups * kRows;
  Lines c(t, 0, rows, 0);
  for (size_t at = 0; at < rows;) {
    const char* p = a + ptrdiff_t(at) * t.a_step * kElement<P>;
    const size_t from = at;
    if (rows - at >= size_t(2 * kRows)) {
      PackedRows<P, 2> two(t, p);
      multiply<P, 2, wide>(t, two, start, sums);
      at += 2 * kRows;
    } else {
      PackedRows<P, 1> one(t, p);
      multiply<P, 1, wide>(t, one, start, sums);
      at += kRows;
    }
    c.template finish<P, wide>(t, sums, from, at);
  }
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
  table.any_c = table.lines = true;
  table.runs = !packed;
  table.enter = enter;
  table.leave = leave;
  if (packed) {
    table.pack_a = pack_rows<P>;
    table.pack_kr = kDeep<P>;
  }
  return table;
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
