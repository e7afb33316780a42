// Tiles of bytes in AMX's registers of 16 rows of 64 bytes: one instruction multiplies 16 rows of A by 16 columns of B, 64 deep. The formula is GemmTile's.
//
//   packed B   panels of 32 columns, [segment][ceil(k / 64)][width / 16][16 fours of the depth][16 columns][4]: a register as it lies, zeros behind the depth
//   A          in place, a register's rows at the step of even rows (other rows, and what is behind the last whole 64 bytes, by way of the stack);
//              or packed: panels of 16 rows, [segment][ceil(k / 64)][16 rows][64]
//
// Registers: 2x2 of sums + 2 of A + 2 of B of 8, four loads feed four products. There is a product for either sign of A, so nothing is flipped. Sums begin at the columns' offsets, by a load
// whose 16 rows are no bytes apart, and end in vectors by way of the stack.
//
// All registers are whole: one configuration serves every tile, enter() and leave() stand around a block's tiles, as loading it takes as long as a small product.
#define SKUA_ISA_avx512vnni 1  // the vectors beside
#include "dispatch/kernel.h"
#include "gemm/gemm_kernel.h"
#include "gemm/int8_finish.h"
#include "gemm/int8_pack.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int kRows = 16, kDeep = 64, kWide = 2, kRegister = kRows * kDeep;

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
  const __mmask64 bytes = ~uint64_t(0) >> (kDeep - n);
  for (int r = 0; r < rows; ++r) _mm512_store_si512(to + r * kDeep, _mm512_maskz_loadu_epi8(bytes, row(r)));
}

// Where `tall` registers of rows of A are: begin() at a segment; take() what a step of n bytes reads, at first[i], rows `apart`.
template <int tall> struct EvenRows {
  static constexpr bool padded = false, copies = false;
  const char *from, *p, *first[tall];
  ptrdiff_t step, apart;
  size_t behind;  // rows of the run
  bool dense;
  alignas(64) char rest[tall * kRegister];
  SKUA_INL EvenRows(const GemmTile& t, const char* a, size_t rows_behind) : from(a), step(t.a_step), behind(rows_behind), dense(t.dense) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + t.segments[s].a; }
  template <bool whole> SKUA_INL void take(size_t n) {
    // What B's zeros meet behind a row may be anything, but only rows of this run are known to be there, and between them what is the tensor's.
    const bool copies = !whole && (!dense || step <= 0 || ptrdiff_t(behind) * step < ptrdiff_t(kDeep - n));
    if (copies) copy_rows(tall * kRows, n, rest, [&](int r) __attribute__((always_inline)) { return p + r * step; });
    SKUA_UNROLL for (int i = 0; i < tall; ++i) first[i] = copies ? rest + i * kRegister : p + i * kRows * step;
    apart = copies ? ptrdiff_t(kDeep) : step;
    p += n;
  }
};
// Up to 16 rows by pointers.
struct AnyRows {
  static constexpr bool padded = false, copies = true;
  const char* const* rows;
  const char* first[1];
  static constexpr ptrdiff_t apart = kDeep;
  ptrdiff_t at;
  int count;
  alignas(64) char copy[kRegister];
  SKUA_INL AnyRows(const char* const* a, size_t m) : rows(a), count(int(m)) {
    first[0] = copy;
    for (int r = count; r < kRows; ++r) _mm512_store_si512(copy + r * kDeep, _mm512_setzero_si512());
  }
  SKUA_INL void begin(const GemmTile& t, size_t s) { at = t.segments[s].a; }
  template <bool whole> SKUA_INL void take(size_t n) {
    copy_rows(count, whole ? size_t(kDeep) : n, copy, [&](int r) __attribute__((always_inline)) { return rows[r] + at; });
    at += ptrdiff_t(n);
  }
};
template <int tall> struct PackedRows {
  static constexpr bool padded = true, copies = false;
  const char *from, *p, *first[tall];
  static constexpr ptrdiff_t apart = kDeep;
  ptrdiff_t panel;
  SKUA_INL PackedRows(const char* a, ptrdiff_t bytes) : from(a), panel(bytes * kRows) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + s * ((t.k + kDeep - 1) / kDeep) * kRegister; }
  template <bool whole> SKUA_INL void take(size_t) {
    SKUA_UNROLL for (int i = 0; i < tall; ++i) first[i] = p + i * panel;
    p += kRegister;
  }
};

template <class T, int tall, int wide, class A> SKUA_INL void step(const A& a, const char* b) {
#define SKUA_PRODUCT(sum, x, y)                                               \
  if constexpr (element_of<T> == Element::s8) _tile_dpbssd(sum, x, y); \
  else _tile_dpbusd(sum, x, y);
  _tile_loadd(6, b, kDeep);
  _tile_loadd(4, a.first[0], a.apart);
  SKUA_PRODUCT(0, 4, 6)
  if constexpr (wide > 1) {
    _tile_loadd(7, b + kRegister, kDeep);
    SKUA_PRODUCT(1, 4, 7)
  }
  if constexpr (tall > 1) {
    _tile_loadd(5, a.first[1], a.apart);
    SKUA_PRODUCT(2, 5, 6)
    if constexpr (wide > 1) { SKUA_PRODUCT(3, 5, 7) }
  }
#undef SKUA_PRODUCT
}

// Where sums begin.
template <int wide> SKUA_INL const int32_t* start_of(const GemmTile& t, int32_t* own) {
  if (!t.positive) return t.offset;
  SKUA_UNROLL for (int v = 0; v < wide; ++v) (I32::load(t.offset + v * L) + I32::set1(kTwoTo23)).store(own + v * L);
  asm volatile("" : : : "memory");
  return own;
}

// The sums of tall * 16 rows and wide * 16 columns. start: of the columns.
template <class T, int tall, int wide, class A> SKUA_INL void multiply(const GemmTile& t, A& a, const int32_t* start, int32_t* sums) {
  constexpr ptrdiff_t row = wide * 64;
  _tile_loadd(0, start, 0);
  if constexpr (wide > 1) _tile_loadd(1, start + 16, 0);
  if constexpr (tall > 1) _tile_loadd(2, start, 0);
  if constexpr (wide * tall > 2) _tile_loadd(3, start + 16, 0);
  const size_t whole = A::padded ? (t.k + kDeep - 1) / kDeep : t.k / kDeep, rest = A::padded ? 0 : t.k % kDeep;
  for (size_t s = 0; s < t.segment_count; ++s) {
    a.begin(t, s);
    const char* b = static_cast<const char*>(t.b) + t.segments[s].b / kDeep * t.ldb;
    for (size_t left = whole; left; --left, b += t.ldb) {
      a.template take<true>(kDeep);
      if constexpr (A::copies) asm volatile("" : : : "memory");
      step<T, tall, wide>(a, b);
    }
    if (rest) {
      a.template take<false>(rest);
      asm volatile("" : : : "memory");
      step<T, tall, wide>(a, b);
    }
  }
  char* to = reinterpret_cast<char*>(sums);
  _tile_stored(0, to, row);
  if constexpr (wide > 1) _tile_stored(1, to + 64, row);
  if constexpr (tall > 1) _tile_stored(2, to + kRows * row, row);
  if constexpr (wide * tall > 2) _tile_stored(3, to + kRows * row + 64, row);
}

// Rows of sums of a tile: a few more are read than are stored.
constexpr int sums_of(int tall, int wide) { return (tall * kRows + 3) * wide * L; }

// Sums to `rows` rows of C. c(r), residual(r): where the rows are.
template <bool POSITIVE, int wide, class C> SKUA_INL void finish_bytes(const GemmTile& t, const int32_t* sums, int rows, const C& c) {
  using Store = WideStore<POSITIVE>;
  const Store store(t);
  const size_t n = t.n;
  const typename Store::Scale s0 = Store::scale_of(t.scale), s1 = Store::scale_of(t.scale + (wide - 1) * L);
  const auto at = [](const int32_t* p) __attribute__((always_inline)) { return I32::load(p); };
  if constexpr (wide == 2) {
    for (int r = 0; r < rows; r += 2, sums += 4 * L) {
      const Quad q = store(at(sums), s0, at(sums + L), s1, at(sums + 2 * L), s0, at(sums + 3 * L), s1);
      put<2, 0>(c(r), q, n);
      if (r + 1 < rows) put<2, 1>(c(r + 1), q, n);
    }
  } else {
    for (int r = 0; r < rows; r += 4, sums += 4 * L) {
      const Quad q = store(at(sums), s0, at(sums + L), s0, at(sums + 2 * L), s0, at(sums + 3 * L), s0);
      put<4, 0>(c(r), q, n);
      if (r + 1 < rows) put<4, 1>(c(r + 1), q, n);
      if (r + 2 < rows) put<4, 2>(c(r + 2), q, n);
      if (r + 3 < rows) put<4, 3>(c(r + 3), q, n);
    }
  }
}
// Of up to 2 * kRows rows, `row` the tile's first of them; terms: theirs where B has a zero point. Not inlined: all products share it.
template <int wide, class C> __attribute__((noinline)) void finish_sums(const GemmTile& t, size_t row, int32_t* sums, int rows, const C& c, const int32_t* terms) {
  for (int i = 0; t.b_zero && !t.b_zeros && i < rows * wide; ++i) (I32::load(sums + i * L) - I32::set1(terms[i / wide])).store(sums + i * L);
  if (t.positive) return finish_bytes<true, wide>(t, sums, rows, c);
  if (t.fits && plain_bytes(t)) return finish_bytes<false, wide>(t, sums, rows, c);
  void* to[2 * kRows];
  const void* residual[2 * kRows];
  for (int r = 0; r < rows; ++r) to[r] = c(r);
  if (t.residual)
    for (int r = 0; r < rows; ++r) residual[r] = c.residual(r);
  for (int r = 0; t.row_quant && r < rows; ++r)
    SKUA_UNROLL for (int v = 0; v < wide; ++v) {
      int32_t* sum = sums + (r * wide + v) * L;
      (I32::load(sum) - product(I32::load(t.column_sums + v * L), I32::set1(t.row_quant[row + size_t(r)].zero))).store(sum);
    }
  finish_rows(t, sums, wide * L, size_t(rows), to, t.row_quant ? t.row_quant + row : nullptr, residual, terms);
}

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

// b_zero times the sums of rows: known from an earlier panel, or added up.
template <class T> SKUA_INL const int32_t* terms_of(const GemmTile& t, size_t row, size_t rows, const char* const* a, int32_t* own) {
  int32_t* terms = t.row_terms ? t.row_terms + row : own;
  if (!t.terms_known) sum_rows<T>(t, rows, a, terms);
  return terms;
}

template <class T, int wide> void tile(const GemmTile& t) {
  alignas(64) int32_t sums[sums_of(1, wide)], own[wide * L];
  int32_t own_terms[kRows];
  const char* const* rows = reinterpret_cast<const char* const*>(t.a);
  AnyRows a(rows, t.rows);
  multiply<T, 1, wide>(t, a, start_of<wide>(t, own), sums);
  finish_sums<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, t.b_zero ? terms_of<T>(t, 0, t.rows, rows, own_terms) : nullptr);
}
template <class T, int wide> void packed_tile(const GemmTile& t) {
  alignas(64) int32_t sums[sums_of(1, wide)], own[wide * L];
  PackedRows<1> a(static_cast<const char*>(t.a[0]), t.a_step);
  multiply<T, 1, wide>(t, a, start_of<wide>(t, own), sums);
  finish_sums<wide>(t, 0, sums, int(t.rows), AnyC{t.c, t.residual}, nullptr);
}

// Rows of C [row, end), in lines, as tiles pass. Between two lines lie `gap` rows of sums that are nobody's.
struct Lines {
  size_t row, end, line_end, at, gap;  // at: of sums, where `row` is
  ptrdiff_t done;                      // lines
  SKUA_INL Lines(const GemmTile& t, size_t first, size_t last, size_t gap_rows) : row(first), end(last), at(0), gap(gap_rows), done(0) {
    line_end = t.line ? t.in_line : end;
    if (t.line && row >= t.in_line) {
      done = ptrdiff_t(1 + (row - t.in_line) / t.line);
      line_end = t.in_line + size_t(done) * t.line;
    }
  }
  // Those whose sums lie before the stop; sums: from `from` on. a: where rows of T begin, if they are in place.
  template <class T, int wide> SKUA_INL void finish(const GemmTile& t, int32_t* sums, size_t from, size_t stop, const char* a = nullptr) {
    const ptrdiff_t element = ptrdiff_t(element_bytes(t.c_type));
    while (row < end && at < stop) {
      const size_t left = (line_end < end ? line_end : end) - row, count = left < stop - at ? left : stop - at;
      const EvenC c = {static_cast<char*>(t.c[0]) + (ptrdiff_t(row) * t.c_step + done * t.c_gap) * element,
                       t.residual ? static_cast<const char*>(t.residual[0]) + ptrdiff_t(row) * t.residual_step + done * t.residual_gap : nullptr, t.c_step * element, t.residual_step};
      const int32_t* terms = nullptr;
      int32_t own[2 * kRows];
      if (t.b_zero && a) {
        const char* rows[2 * kRows];
        for (size_t r = 0; r < count; ++r) rows[r] = a + ptrdiff_t(at + r) * t.a_step;
        terms = terms_of<T>(t, row, count, rows, own);
      }
      finish_sums<wide>(t, row, sums + (at - from) * wide * L, int(count), c, terms);
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

// Rows [first, last), even ones from a on, the gaps between lines among them; the last tile begins earlier rather than to go on behind them.
template <class T, int wide> void rows_in_place(const GemmTile& t, const char* a, size_t first, size_t last, size_t gap) {
  alignas(64) int32_t sums[sums_of(2, wide)], own[wide * L];
  const int32_t* start = start_of<wide>(t, own);
  Lines c(t, first, last, gap);
  const size_t across = first < c.line_end && last > c.line_end ? 1 + (last - 1 - c.line_end) / t.line : 0, rows = last - first + across * gap;
  if (rows < size_t(kRows)) {
    const char* p[kRows];
    for (size_t r = 0; r < rows; ++r) p[r] = a + ptrdiff_t(r) * t.a_step;
    AnyRows few(p, rows);
    multiply<T, 1, wide>(t, few, start, sums);
    return c.finish<T, wide>(t, sums, 0, rows, a);
  }
  for (size_t at = 0; at < rows;) {
    const size_t left = rows - at;
    if (left > size_t(kRows)) {
      const size_t from = left < size_t(2 * kRows) && rows >= size_t(2 * kRows) ? rows - 2 * kRows : at;
      if (rows - from >= size_t(2 * kRows)) {
        EvenRows<2> two(t, a + ptrdiff_t(from) * t.a_step, rows - from - 2 * kRows);
        multiply<T, 2, wide>(t, two, start, sums);
        at = from + 2 * kRows;
        c.finish<T, wide>(t, sums, from, at, a);
        continue;
      }
    }
    const size_t from = left < size_t(kRows) ? rows - kRows : at;
    EvenRows<1> one(t, a + ptrdiff_t(from) * t.a_step, rows - from - kRows);
    multiply<T, 1, wide>(t, one, start, sums);
    at = from + kRows;
    c.finish<T, wide>(t, sums, from, at, a);
  }
}
// Lines too short for tiles: rows by pointers, tiles go on in the next line.
template <class T, int wide> void rows_of_lines(const GemmTile& t) {
  alignas(64) int32_t sums[sums_of(1, wide)], own[wide * L];
  const int32_t* start = start_of<wide>(t, own);
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
      a += t.a_step;
      c += t.c_step * element;
      if (residual) residual += t.residual_step;
      if (row + count + 1 == end) {
        end += t.line;
        a += t.a_gap;
        c += t.c_gap * element;
        if (residual) residual += t.residual_gap;
      }
    }
    AnyRows few(rows, count);
    multiply<T, 1, wide>(t, few, start, sums);
    finish_sums<wide>(t, row, sums, int(count), AnyC{to, t.residual ? rest : nullptr}, t.b_zero ? terms_of<T>(t, row, count, rows, own_terms) : nullptr);
    row += count;
  }
}
template <class T, int wide> void even_rows(const GemmTile& t) {
  const char* a = static_cast<const char*>(t.a[0]);
  if (!t.line) return rows_in_place<T, wide>(t, a, 0, t.rows, 0);
  // Through the gaps, where these are few rows, else line by line.
  const bool even = t.dense && t.a_step > 0 && t.a_gap >= 0 && t.a_gap % t.a_step == 0;
  const size_t gap = even ? size_t(t.a_gap / t.a_step) : 0;
  if (even && t.line + gap <= (t.line < kRows ? 2 * kRows : (t.line + kRows - 1) / kRows * kRows)) return rows_in_place<T, wide>(t, a, 0, t.rows, gap);
  if (t.line < kRows) return rows_of_lines<T, wide>(t);
  for (size_t row = 0, end = t.in_line; row < t.rows; row = end, end += t.line) {
    if (row) a += t.a_gap;
    if (end > t.rows) end = t.rows;
    rows_in_place<T, wide>(t, a, row, end, 0);
    a += ptrdiff_t(end - row) * t.a_step;
  }
}
template <class T, int wide> void even_panels(const GemmTile& t) {
  alignas(64) int32_t sums[sums_of(2, wide)], own[wide * L];
  const int32_t* start = start_of<wide>(t, own);
  const char* a = static_cast<const char*>(t.a[0]);
  const size_t rows = t.groups * kRows;
  Lines c(t, 0, rows, 0);
  for (size_t at = 0; at < rows;) {
    const char* p = a + ptrdiff_t(at) * t.a_step;
    const size_t from = at;
    if (rows - at >= size_t(2 * kRows)) {
      PackedRows<2> two(p, t.a_step);
      multiply<T, 2, wide>(t, two, start, sums);
      at += 2 * kRows;
    } else {
      PackedRows<1> one(p, t.a_step);
      multiply<T, 1, wide>(t, one, start, sums);
      at += kRows;
    }
    c.finish<T, wide>(t, sums, from, at);
  }
}

void pack_rows(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t k, void* panel) {
  char* to = static_cast<char*>(panel);
  const char* row[kRows];
  for (size_t s = 0; s < segment_count; ++s) {
    for (size_t r = 0; r < rows; ++r) row[r] = static_cast<const char*>(a[r]) + segments[s].a;
    for (size_t i = 0; i < k; i += kDeep, to += kRegister)
      copy_rows(int(rows), k - i < size_t(kDeep) ? k - i : size_t(kDeep), to, [&](int r) __attribute__((always_inline)) { return row[r] + i; });
  }
}

template <class T, bool packed, int v = 1> constexpr void fill(GemmTileTable& table) {
  for (int r = 0; r < kRows; ++r) {
    table.at[(v - 1) * kRows + r] = packed ? packed_tile<T, v> : tile<T, v>;
    if (v == kWide) table.row[r] = table.at[(v - 1) * kRows + r];
  }
  table.even[v - 1] = packed ? even_panels<T, v> : even_rows<T, v>;
  table.even_rows[v - 1] = kRows;
  if constexpr (v < kWide) fill<T, packed, v + 1>(table);
}
template <class T, bool packed> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<T, packed>(table);
  table.a = element_of<T>;
  table.b = Element::s8;
  table.kr = kDeep;
  table.rate = 32;  // of two vectors in a cycle: what explain() takes for the roofline
  table.any_c = table.bytes = table.lines = true;
  table.finish_sums = finish_sums;
  table.runs = table.sums_rows = !packed;
  table.enter = enter;
  table.leave = leave;
  if (packed) {
    table.pack_a = pack_rows;
    table.pack_kr = kDeep;
    table.a_bytes = 1;
  }
  return table;
}
template <class T, bool packed> constexpr GemmTileTable table_of = make_table<T, packed>();
template <class T, bool packed> const GemmTileTable& tile_table() { return table_of<T, packed>; }

// A panel: registers of 16 columns, each packed as panels of so many columns are for products of four.
template <class S, bool flip> void pack_registers(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n, void* panel, int32_t* sums) {
  const S* b = static_cast<const S*>(from);
  uint8_t* to = static_cast<uint8_t*>(panel);
  for (size_t k = 0; k < depth; k += kDeep)
    for (size_t j = 0; j < width; j += L, to += kRegister) {
      const size_t deep = depth - k < size_t(kDeep) ? depth - k : size_t(kDeep), n = columns < j ? 0 : columns - j < size_t(L) ? columns - j : size_t(L), fours = (deep + 3) / 4;
      pack_bytes<S, flip, 4>(deep, n, L, b + k * stride_k + (n ? j : 0) * stride_n, stride_k, stride_n, to, sums ? sums + j : nullptr);
      for (size_t i = fours; i < kDeep / 4; ++i) _mm512_storeu_si512(to + i * 64, _mm512_setzero_si512());
    }
}

#define SKUA_TILE(T, type, packed, suffix, why)                                                                                          \
  {"gemm_" #type "_16x32" suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, kRows, kWide * L, L, \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<T, packed>)), Element::type},
#define SKUA_PACK(from, S, flip)                                                                                                                                       \
  {"gemm_pack_" #from "_s8_64_" SKUA_STRING(SKUA_ISA), "gemm", "panels of B in registers of AMX, and the sums of their columns", KernelKind::gemm_pack, \
   Isa::SKUA_ISA, pack_variant(Element::s8, kDeep), 0, 0, L, reinterpret_cast<AnyCode>(static_cast<GemmPackBytesFn>(pack_registers<S, flip>)), Element::from},

const Kernel kernels[] = {
    SKUA_FOR_INT8(SKUA_TILE, false, "", "A in place: 4 of sums + 2 of A + 2 of B of 8 registers; two tiles of rows at a time")
    SKUA_FOR_INT8(SKUA_TILE, true, "_packed", "rows of A packed in the workspace, once for all panels: windows of images whose lines do not fill tiles")
    SKUA_PACK(s8, int8_t, false)
    SKUA_PACK(u8, uint8_t, true)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_int8, kernels)
}  // namespace skua
