// AMX's registers of 16 rows of 64 bytes, of bytes and of bf16: one instruction multiplies 16 rows of A by 16 columns
// of B, 64 bytes of the depth. Here are rows of A, in place or packed, and the products of a tile; amx_tiles.h goes
// over rows and panels, ends tiles, and says what a product P has.
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
#pragma once
#include "dispatch/kernel.h"
#include "gemm/ahead.h"
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
  ptrdiff_t behind;             // bytes behind the first row that may be read, beside those of a segment
  char* rest;                   // room for registers
  int count;                    // rows of a register
  // second: row of the second register's first
  SKUA_INL EvenRows(const GemmTile& t, const char* a, size_t rows_behind, char* room, size_t second = kRows,
                    size_t rows = kRows)
      : from(a),
        step(t.a_step * kElement<P>),
        next(ptrdiff_t(second) * step),
        behind(ptrdiff_t(t.behind) + (t.dense && step > 0 ? ptrdiff_t(rows_behind) * step : 0)),
        rest(room),
        count(int(rows)) {}
  SKUA_INL void begin(const GemmTile& t, size_t s) { p = from + t.segments[s].a * kElement<P>; }
  template <bool whole> SKUA_INL void take(size_t n) {
    // Where what B's zeros meet behind a row may be anything, still only what the tile is told, and rows of this run
    // with what is the tensor's between them, are known to be there.
    const bool copies = !whole && (!P::kAnyBehind || behind < ptrdiff_t(kLine - n));
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

template <int tall, int wide> SKUA_INL void zero() {
  _tile_zero(0);
  if constexpr (wide > 1) _tile_zero(1);
  if constexpr (tall > 1) _tile_zero(2);
  if constexpr (wide * tall > 2) _tile_zero(3);
}
// Loads first: products that follow each other lose less to the other hardware thread's, with which they share a unit
// (3x3 of 14x14x256 0.93 of the time beside it; the same alone). Four registers of rows by one of columns, so that
// products need not wait for the sums they add to, are a twentieth faster alone and half slower beside it.
template <class P, int tall, int wide, class A> SKUA_INL void step(const A& a, const char* b) {
  _tile_loadd(4, a.first[0], a.apart);
  _tile_loadd(6, b, kLine);
  if constexpr (tall > 1) _tile_loadd(5, a.first[1], a.apart);
  if constexpr (wide > 1) _tile_loadd(7, b + kRegister, kLine);
  P::template multiply<0, 4, 6>();
  if constexpr (wide > 1) P::template multiply<1, 4, 7>();
  if constexpr (tall > 1) P::template multiply<2, 5, 6>();
  if constexpr (tall > 1 && wide > 1) P::template multiply<3, 5, 7>();
}

struct Nothing {
  SKUA_INL void operator()() const {}
};
// gcc 12 finds functions pure that end rows by addresses out of a list, and leaves calls out: they end with this.
SKUA_INL void keep_stores() { asm volatile("" : : : "memory"); }
template <class P> SKUA_INL const char* segment_of(const GemmTile& t, const char* panel, size_t segment) {
  return panel + t.segments[segment].b / kDeep<P> * (t.ldb * kElement<P>);
}
// The sums of tall * 16 rows and wide * 16 columns of a panel. beside(): with each step.
template <class P, int tall, int wide, class A, class Beside = Nothing>
SKUA_INL void multiply(const GemmTile& t, const char* panel, A& a, typename P::Sum* sums, Beside&& beside = {}) {
  constexpr ptrdiff_t row = wide * kLine;
  zero<tall, wide>();
  const size_t b_step = t.ldb * kElement<P>;
  const size_t whole = A::padded ? (t.k + kDeep<P> - 1) / kDeep<P> : t.k / kDeep<P>,
               rest = A::padded ? 0 : t.k % kDeep<P> * kElement<P>;
  for (size_t s = 0; s < t.segment_count; ++s) {
    a.begin(t, s);
    const char* b = segment_of<P>(t, panel, s);
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

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
