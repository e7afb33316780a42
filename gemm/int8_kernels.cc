// Tiles of bytes, one source for every instruction set; int8_dot.h has what differs. The formula is GemmTile's.
//
//   acc[r][v] += kr bytes of a row * kr bytes of L columns     in 32 bits: exact, so the order of the sums is free, and
//                                                              a few accumulators become several chains
//
// Packed B: panels of nr columns, each [segment][ceil(k / kr)][width][kr]. Registers of 6x64 (VNNI): 24 accumulators +
// 4 B + 1 A of 32; ten loads feed 24 products.
#include "dispatch/kernel.h"
#include "gemm/even_rows.h"
#include "gemm/gemm_kernel.h"
#include "gemm/int8_dot.h"
#include "gemm/int8_finish.h"
#include "gemm/int8_pack.h"
#include "gemm/int8_whole_tile.h"
#include "gemm/no_addresses.h"
#include "gemm/step.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Where rows of A are: a pointer each, or a step in bytes (even_rows.h).
template <int MR> struct Scattered {
  static constexpr bool even = false, flips = false;
  const char* first;
  ptrdiff_t to[MR];  // from the first row: a step then moves one pointer
  SKUA_INL Scattered(const GemmTile& t, size_t, ptrdiff_t segment) : first(static_cast<const char*>(t.a[0]) + segment) {
    SKUA_UNROLL for (int r = 1; r < MR; ++r)
      to[r] = reinterpret_cast<intptr_t>(t.a[r]) - reinterpret_cast<intptr_t>(t.a[0]);
  }
  SKUA_INL const char* at(int r) const { return r ? first + to[r] : first; }
  SKUA_INL void step(int bytes) {
    SKUA_UNROLL for (int r = 1; r < MR; ++r) asm("" : "+r"(to[r]));  // else the compiler moves a pointer per row
    first += bytes;
  }
};
// Rows that prepare() wrote, one after the other; `row` is the first of a panel.
template <int MR> struct Panel : Even<MR> {
  static SKUA_INL ptrdiff_t bytes(const GemmTile& t) { return ptrdiff_t(t.segment_count * ((t.k + kr - 1) / kr) * 4); }
  SKUA_INL Panel(const GemmTile& t, size_t row, ptrdiff_t segment)
      : Even<MR>(static_cast<const char*>(t.a[0]) + ptrdiff_t(row) * t.a_step * 2 + segment, bytes(t)) {}
};

// Rows of s8 as u8, flipped as they are spread: free where logic has ports beside those of the products
// (Machine::logic_apart), and of an only row beside the loads of B.
template <class Rows> struct Flipped : Rows {
  [[maybe_unused]] static constexpr bool flips = true;  // some units have no tile that takes it
  using Rows::Rows;
};
template <class Rows> SKUA_INL I32 spread(int32_t word) {
  if constexpr (Rows::flips) return I32::set1(word) ^ I32::set1(int32_t(0x80808080));
  else return I32::set1(word);
}

// Bytes behind the last whole group of kr.
SKUA_INL int32_t last_word(const char* p, size_t n) {
  uint32_t w = 0;
  for (size_t i = 0; i < n; ++i) w |= uint32_t(uint8_t(p[i])) << 8 * i;
  return int32_t(w);
}

template <class T, int MR, int NV, int lines, class Rows>
SKUA_INL void step(const Rows& rows, int a_bytes, const char* b, const RowAhead& ahead, I32 (&acc)[MR][NV]) {
  ahead.ask<lines>(b);
  I32 w[NV];
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    w[v] = load_b(b + v * L * kr);
    // else gcc reads B from memory once per row
    if constexpr (MR > 1 && MR * NV + NV + 1 + kPrepared <= F32::registers) pin_word(w[v]);
  }
  SKUA_UNROLL for (int r = 0; r < MR; ++r) {
    const I32 x = spread<Rows>(word_at(rows.at(r) + a_bytes));
    SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot<T>(acc[r][v], x, w[v]);
  }
}

// positive: as finish() has it, a constant where it never is.
template <class T, int MR, int NV, int lines, class Rows, class C>
SKUA_INL void multiply(const GemmTile& t, size_t row, ptrdiff_t ahead, const C& c, bool positive) {
  // A product takes five cycles, two start in each: ten chains or more.
  constexpr int chains = MR * NV, many = chains >= 10 ? 1 : chains >= 3 || kPrepared ? 2 : 4;
  constexpr int sets = (!kPrepared || MR == 1) && L > 1 && many * chains + NV + 1 <= F32::registers ? many : 1;
  const RowAhead fetch(ahead, t.near, t.pages);
  const size_t ldb = t.ldb, words = kPrepared ? (t.k + kr - 1) / kr : t.k / kr, rest = kPrepared ? 0 : t.k % kr;
  int32_t own[MR], *terms = t.row_terms ? t.row_terms + row : own;
  if (t.b_zero && !t.terms_known) {
    const Rows rows(t, row, 0);
    const char* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = rows.at(r);
    if constexpr (Rows::flips) {
      sum_rows<int8_t>(t, MR, a, terms);
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        terms[r] = int32_t(uint32_t(terms[r]) + uint32_t(t.b_zero) * 128 * uint32_t(t.segment_count * t.k));
    } else {
      sum_rows<T>(t, MR, a, terms);
    }
  }
  I32 acc[sets][MR][NV];
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    acc[0][0][v] = I32::load(t.offset + v * L);
    if (positive) acc[0][0][v] = acc[0][0][v] + I32::set1(kTwoTo23);
    SKUA_UNROLL for (int r = 1; r < MR; ++r) acc[0][r][v] = acc[0][0][v];
  }
  SKUA_UNROLL for (int s = 1; s < sets; ++s)
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[s][r][v] = I32::set1(0);
  if (t.row_quant)
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const I32 sums = I32::load(t.column_sums + v * L);
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        acc[0][r][v] = acc[0][r][v] - product(sums, I32::set1(t.row_quant[row + size_t(r)].zero));
    }
  for (size_t s = 0; s < t.segment_count; ++s) {
    Rows rows(t, row, kPrepared ? ptrdiff_t(s * words * 4) : t.segments[s].a);
    const char* b = static_cast<const char*>(t.b) + t.segments[s].b / kr * ldb;
    size_t left = words;
    if constexpr (kPrepared && MR == 1 && sets > 1 && !lines) {
      // five instructions a turn are nearly as many as the products of a pair. Of two rows and more gcc spills
      constexpr size_t many = 4 * sets, row_b = NV * L * kr;
      if (ldb == row_b)
        for (; left >= many; left -= many, b += many * row_b, rows.step(many * 4))
          SKUA_UNROLL for (int i = 0; i < 4; ++i) {
            SKUA_UNROLL for (int j = 0; j < sets; ++j)
              step<T, MR, NV, lines>(rows, (i * sets + j) * 4, b + size_t(i * sets + j) * row_b, fetch, acc[j]);
            // else gcc has sums on the stack
            SKUA_UNROLL for (int j = 0; j < sets; ++j)
              SKUA_UNROLL for (int v = 0; v < NV; ++v)
                pin_word(acc[j][0][v]);
          }
    }
    if constexpr (sets > 1)
      for (; left >= size_t(sets); left -= size_t(sets)) {
        SKUA_UNROLL for (int i = 0; i < sets; ++i) {
          step<T, MR, NV, lines>(rows, i * 4, b, fetch, acc[i]);
          b += ldb;
        }
        rows.step(sets * 4);
        if constexpr (Rows::even && !kPrepared) no_addresses<sets * MR * NV + Rows::flips>();
      }
    const auto once = [&]() __attribute__((always_inline)) {
      step<T, MR, NV, lines>(rows, 0, b, fetch, acc[0]);
      rows.step(4);
      if constexpr (Rows::even && !kPrepared) no_addresses<sets * MR * NV + Rows::flips>();
      b += ldb;
      --left;
    };
    if constexpr (kPrepared && L == 8 && MR * NV == 12 && lines <= 1) {
      SKUA_FOUR_TIMES while (left) once();
    } else {
      while (left) once();
    }
    if (rest)
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        const I32 x = spread<Rows>(last_word(rows.at(r), rest));
        SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[0][r][v] = dot<T>(acc[0][r][v], x, load_b(b + v * L * kr));
      }
  }
  SKUA_UNROLL for (int s = 1; s < sets; ++s)
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        acc[0][r][v] = acc[0][r][v] + acc[s][r][v];
  // else gcc copies and spills them in the loop
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) pin_word(acc[0][r][v]);
  if (t.b_zero && !t.b_zeros)  // not where the sums start: they would wait for it
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const I32 term = I32::set1(terms[r]);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[0][r][v] = acc[0][r][v] - term;
    }
  finish<MR, NV>(t, row, acc[0], c, positive, terms);
}

// Rows of C by pointers, or by a step.
struct ScatteredC {
  void* const* c;
  SKUA_INL void* operator()(int r) const { return c[r]; }
  static constexpr bool dense(size_t) { return false; }
  static SKUA_INL const void* residual(const GemmTile& t, size_t, int r) { return t.residual[r]; }
};
struct EvenC {
  char* c;
  ptrdiff_t bytes;
  SKUA_INL void* operator()(int r) const { return c + r * bytes; }
  SKUA_INL bool dense(size_t row) const { return size_t(bytes) == row; }
  static SKUA_INL const void* residual(const GemmTile& t, size_t row, int r) {
    return static_cast<const char*>(t.residual[0]) + (ptrdiff_t(row) + r) * t.residual_step;
  }
};

template <int MR> using ScatteredRows =
#if defined(SKUA_DOT_IN_PLACE)
    Scattered<MR>;
template <int MR> using EvenRows = Even<MR>;
#else
    Panel<MR>;
template <int MR> using EvenRows = Panel<MR>;
#endif

template <bool flip, class Rows> struct RowsOf { using Type = Rows; };
template <class Rows> struct RowsOf<true, Rows> { using Type = Flipped<Rows>; };

template <class T, int MR, int NV, int lines, bool flip = false> void tile(const GemmTile& t) {
  multiply<T, MR, NV, lines, typename RowsOf<flip, ScatteredRows<MR>>::Type>(t, 0, t.ahead, ScatteredC{t.c}, false);
}
template <class T, int MR, int NV, int lines, bool flip = false> void even_tiles(const GemmTile& t) {
#if defined(SKUA_ISA_avx2)
  if constexpr (MR == 6 && NV == 2)
    if (is_whole(t)) return t.positive ? whole_tiles<true>(t) : whole_tiles<false>(t);
#endif
  const ptrdiff_t bytes = t.c_step * ptrdiff_t(element_bytes(t.c_type));
  char* c = static_cast<char*>(t.c[0]);
  for (size_t i = 0; i < t.groups; ++i, c += MR * bytes)
    multiply<T, MR, NV, lines, typename RowsOf<flip, EvenRows<MR>>::Type>(
        t, i * MR, lines && t.ahead && i < size_t(NV) ? t.ahead + ptrdiff_t(i) * 64 : 0, EvenC{c, bytes},
        kPositive && NV <= 4 && t.positive);
}
#if !defined(SKUA_DOT_IN_PLACE)
template <class T>
void prepare(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t k,
             void* panel) {
  int16_t* to = static_cast<int16_t*>(panel);
  for (size_t r = 0; r < rows; ++r)
    for (size_t s = 0; s < segment_count; ++s) {
      const T* x = static_cast<const T*>(a[r]) + segments[s].a;
      size_t i = 0;
      for (; i + 8 * L <= k; i += 8 * L, to += 8 * L)
        SKUA_UNROLL for (size_t v = 0; v < 4; ++v)
          widen_bytes(x + i + v * 2 * L, to + v * 2 * L);
      for (; i + 2 * L <= k; i += 2 * L, to += 2 * L) widen_bytes(x + i, to);
      if (i < k && k >= 2 * L) {  // the last of them again
        to += k - i;
        widen_bytes(x + k - 2 * L, to - 2 * L);
        i = k;
      }
      for (; i < k; ++i) *to++ = x[i];
      if (k & 1) *to++ = 0;
    }
}
#endif

// One row and all panels.
template <class T, int NV, bool flip, int v = NV> SKUA_INL void row_of(const GemmTile& t, size_t vectors) {
  if constexpr (v == NV && NV * L * kr >= 128)
    if (t.ahead && vectors == size_t(v)) return tile<T, 1, v, NV * L * kr / 64, flip>(t);
  if (vectors == size_t(v)) return tile<T, 1, v, 0, flip>(t);
  if constexpr (v > 1) row_of<T, NV, flip, v - 1>(t, vectors);
}
SKUA_INL size_t round_up_to_kr(size_t k) { return (k + kr - 1) / kr * kr; }
#if defined(SKUA_FOUR_AT_ONCE)
// The words of an only row, each kr of its depth, and the bytes behind the last.
struct OnlyRow {
  const char* at;
  size_t words, rest;
};
// Vectors of columns at a time: four, or the whole panels that there are in four.
template <int NV> constexpr int kAtOnce = 4 / NV * NV;

// V vectors of columns from `b` on: whole panels of NV, then what is left of one. Sums that begin with `more`.
template <class T, bool flip, int NV, int V>
SKUA_INL void sum_columns(const GemmTile& t, const OnlyRow& row, const char* b, size_t j, int32_t more, I32 (&sum)[4]) {
  using Rows = typename RowsOf<flip, EvenRows<1>>::Type;
  SKUA_UNROLL for (int v = 0; v < V; ++v) sum[v] = I32::load(t.offset + j + size_t(v) * L) + I32::set1(more);
  constexpr int whole = V / NV * NV, left = V - whole;  // the vectors of whole panels, and of a part of one
  const size_t depth = round_up_to_kr(t.k), panel = depth * NV * L;
  const char *x = row.at, *w = b, *part = b + size_t(whole) * L * depth, *const end = x + row.words * 4;
  const auto once = [&](int32_t word, I32* to) __attribute__((always_inline)) {
    const I32 a = spread<Rows>(word);
    SKUA_UNROLL for (int v = 0; v < whole; ++v)
      to[v] = dot<T>(to[v], a, load_b(w + size_t(v / NV) * panel + v % NV * L * kr));
    SKUA_UNROLL for (int v = 0; v < left; ++v) to[whole + v] = dot<T>(to[whole + v], a, load_b(part + v * L * kr));
    w += NV * L * kr;
    part += left * L * kr;
  };
  // One vector or two are chains that wait for each product; exact sums may be in parts.
  constexpr int chains = V < 3 ? 4 / V : 1;
  if constexpr (chains > 1) {
    I32 apart[chains - 1][V];
    SKUA_UNROLL for (int c = 1; c < chains; ++c) SKUA_UNROLL for (int v = 0; v < V; ++v) apart[c - 1][v] = I32::set1(0);
    for (; end - x >= chains * 4; x += chains * 4) {
      once(word_at(x), sum);
      SKUA_UNROLL for (int c = 1; c < chains; ++c) once(word_at(x + c * 4), apart[c - 1]);
    }
    SKUA_UNROLL for (int c = 1; c < chains; ++c)
      SKUA_UNROLL for (int v = 0; v < V; ++v) sum[v] = sum[v] + apart[c - 1][v];
  }
  SKUA_FOUR_TIMES for (; x < end; x += 4) once(word_at(x), sum);
  if (!kPrepared && row.rest) once(last_word(x, row.rest), sum);
}
template <class T, bool flip, int NV, bool POSITIVE, int V>
SKUA_INL Quad columns_of(const GemmTile& t, const WideStore<POSITIVE>& store, const OnlyRow& row, const char* b,
                         size_t j) {
  I32 sum[4];
  typename WideStore<POSITIVE>::Scale scale[4];
  sum_columns<T, flip, NV, V>(t, row, b, j, POSITIVE ? kTwoTo23 : 0, sum);
  SKUA_UNROLL for (int v = 0; v < V; ++v) scale[v] = WideStore<POSITIVE>::scale_of(t.scale + j + size_t(v) * L);
  SKUA_UNROLL for (int v = V; v < 4; ++v) sum[v] = sum[0], scale[v] = scale[0];
  return store(sum[0], scale[0], sum[1], scale[1], sum[2], scale[2], sum[3], scale[3]);
}
// As many of them at a time, where results are bytes and nothing else is done to them: a short depth is over before a
// tile has begun. Not inlined: a prepared row is on its caller's stack, where gates/spills looks for sums.
template <class T, bool flip, int NV, bool POSITIVE>
__attribute__((noinline)) void only_row(const GemmTile& t, const OnlyRow& row, void* to) {
  constexpr size_t wide = kAtOnce<NV> * L;
  const WideStore<POSITIVE> store(t);
  const size_t depth = round_up_to_kr(t.k);
  const char* b = static_cast<const char*>(t.b);
  char* c = static_cast<char*>(to);
  size_t j = 0;
  for (; j + wide <= t.n; j += wide, b += wide * depth) {
    const Quad q = columns_of<T, flip, NV, POSITIVE, kAtOnce<NV>>(t, store, row, b, j);
    if constexpr (wide == sizeof q) __builtin_memcpy(c + j, &q, sizeof q);
    else put<1, 0>(c + j, q, wide);
  }
  if (j == t.n) return;
  size_t n = t.n - j;
  const Quad q = n <= L                          ? columns_of<T, flip, NV, POSITIVE, 1>(t, store, row, b, j)
                 : n <= 2 * L                    ? columns_of<T, flip, NV, POSITIVE, 2>(t, store, row, b, j)
                 : n <= 3 * L && kAtOnce<NV> > 3 ? columns_of<T, flip, NV, POSITIVE, 3>(t, store, row, b, j)
                                                 : columns_of<T, flip, NV, POSITIVE, kAtOnce<NV>>(t, store, row, b, j);
#if defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni)
  put<1, 0>(c + j, q, n);
#else
  uint64_t eight[sizeof q / 8];
  __builtin_memcpy(eight, &q, sizeof q);
  const uint64_t* from = eight;
  for (c += j; n >= 8; n -= 8, c += 8) __builtin_memcpy(c, from++, 8);
  if (n) store_first_bytes(*from, reinterpret_cast<uint8_t*>(c), n);
#endif
}
#endif
#if defined(SKUA_FOUR_AT_ONCE) && !defined(SKUA_DOT_IN_PLACE)
// The same for any other results.
template <int NV>
__attribute__((noinline)) void row_by_sums(const GemmTile& t, const OnlyRow& row, void* to, const void* residual) {
  const size_t depth = round_up_to_kr(t.k), element = element_bytes(t.c_type);
  const char* b = static_cast<const char*>(t.b);
  GemmTile part = t;
  for (size_t j = 0; j < t.n; j += 4 * L, b += 4 * L * depth) {
    part.n = t.n - j < 4 * L ? t.n - j : 4 * L;
    I32 sum[4];
    const size_t vectors = (part.n + L - 1) / L;
    if (vectors == 4) sum_columns<int8_t, false, NV, 4>(t, row, b, j, 0, sum);
    else if (vectors == 3) sum_columns<int8_t, false, NV, 3>(t, row, b, j, 0, sum);
    else if (vectors == 2) sum_columns<int8_t, false, NV, 2>(t, row, b, j, 0, sum);
    else sum_columns<int8_t, false, NV, 1>(t, row, b, j, 0, sum);
    alignas(64) int32_t sums[4 * L];
    for (size_t v = 0; v < vectors; ++v) {
      if (t.row_quant) sum[v] = sum[v] - product(I32::load(t.column_sums + j + v * L), I32::set1(t.row_quant->zero));
      sum[v].store(sums + v * L);
    }
    part.scale = t.scale + j;
    part.bias = t.bias ? t.bias + j : nullptr;
    part.shift = t.shift ? t.shift + j : nullptr;
    const void* from = residual ? static_cast<const char*>(residual) + j * element : nullptr;
    part.residual = residual ? &from : nullptr;
    void* c = static_cast<char*>(to) + j * element;
    finish_sums(part, &c, sums, 4 * L, 1, nullptr);
  }
}
#endif
template <class T, int NV, bool flip> void panels(const GemmTile& t, const void* a, void* c, const void* residual) {
#if !defined(SKUA_DOT_IN_PLACE)
  alignas(64) int16_t wide[kWideRow];
  prepare<T>(1, &a, t.segments, 1, t.k, wide);
  a = wide;
#endif
#if defined(SKUA_FOUR_AT_ONCE)
#if defined(SKUA_DOT_IN_PLACE)
  using Product = T;
  // From three on, each vector of columns has one chain of sums then. A tile of few has up to four: 1.4 to 1.9 times as
  // fast for 240 and more deep and up to 64 wide. Where B comes from beyond L1 and there are many columns, loads of 64
  // bytes wait for longer than sums do. (All measured on a Zen 5.)
  constexpr size_t kShort = L == 16 ? 128 : 256, kNear = 32768, kManyColumns = L == 16 ? 6 * L : SIZE_MAX;
  const bool at_once = !t.ahead && (t.k <= kShort || (t.n > kManyColumns && t.n * t.k > kNear));
  const OnlyRow row = {static_cast<const char*>(a), t.k / kr, t.k % kr};
#else
  using Product = int8_t;
  constexpr bool at_once = true;
  const OnlyRow row = {static_cast<const char*>(a), round_up_to_kr(t.k) / kr, 0};
#endif
  if constexpr (packed_b<T> == Element::s8)  // else B has a zero point
    if (at_once && t.fits && plain_bytes(t) && !t.b_zero && !residual)
      return t.positive ? only_row<Product, flip, NV, true>(t, row, c) : only_row<Product, flip, NV, false>(t, row, c);
#if !defined(SKUA_DOT_IN_PLACE)
  if (!t.b_zero) return row_by_sums<NV>(t, row, c, residual);
#endif
#endif
  GemmTile one = t;
  one.a = &a;
  one.c = &c;
  one.residual = residual ? &residual : nullptr;
  if (t.n <= size_t(NV * L)) return row_of<T, NV, flip>(one, (t.n + L - 1) / L);
  for (size_t first = 0; first < t.n; first += size_t(NV * L)) {
    one.n = t.n - first < size_t(NV * L) ? t.n - first : size_t(NV * L);
    const size_t vectors = (one.n + L - 1) / L;
    one.ldb = vectors * L * kr;
    row_of<T, NV, flip>(one, vectors);
    one.b = static_cast<const char*>(one.b) + round_up_to_kr(t.k) / kr * one.ldb;
    c = static_cast<char*>(c) + one.n * element_bytes(t.c_type);
    one.scale += one.n;
    one.offset += one.n;
    if (t.bias) one.bias += one.n;
    if (t.shift) one.shift += one.n;
    if (t.b_zeros) one.b_zeros += one.n;
    if (residual) residual = static_cast<const char*>(residual) + one.n;
    if (t.row_quant) one.column_sums += one.n;
  }
}

// Even rows of narrower panels: as many as the accumulators are registers for. Prepared rows come by panels of MR.
constexpr int even_rows(int mr, int nv, int v) {
  if (kPrepared || L == 1) return mr;
  const int rows = mr * nv / v;
  if (L == 16 && v == 1) return 24;  // whole vectors of results; what begins a tile is a fifth of one that is 16 deep
  return rows > 14 ? 14 : rows;
}
template <class T, int MR, int NV, bool flip, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  constexpr int line = L > 1, lines = L > 1 ? (NV * L * kr + 63) / 64 : 0;
  table.at[(v - 1) * MR + r - 1] = tile<T, r, v, v == NV ? line : 0, flip>;
  if constexpr (v == NV) table.row[r - 1] = tile<T, r, v, lines, flip>;
  if constexpr (r < MR) fill<T, MR, NV, flip, r + 1, v>(table);
  else {
    constexpr int rows = even_rows(MR, NV, v);
    table.even[v - 1] = even_tiles<T, rows, v, v == NV ? line : 0, flip>;
    table.even_rows[v - 1] = rows;
    if constexpr (v < NV) fill<T, MR, NV, flip, 1, v + 1>(table);
  }
}
template <class T, int MR, int NV, bool flip = false> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<T, MR, NV, flip>(table);
  table.a = element_of<T>;
  table.b = packed_b<T>;
  table.kr = kr;
  table.any_c = table.bytes = table.sums_rows = true;
  table.finish_sums = finish_sums;
  table.panels = panels<T, NV, false>;
#if defined(SKUA_DOT_IN_PLACE)
  table.rate = L > 1 ? 4 : 0.5f;
  table.pages = kByPages;
#else
  table.rate = 1.2f;  // a product of two, and an addition beside it
  table.pack_a = prepare<T>;
  table.pack_kr = 2;
  table.a_bytes = 2;
#if defined(SKUA_FOUR_AT_ONCE)
  table.row_at_once = true;
#endif
#endif
  return table;
}
#if defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avxvnni)
// Rows of s8 as u8.
void flip_rows(size_t rows, size_t n, const void* from, ptrdiff_t from_step, void* to, ptrdiff_t to_step) {
  const char* x = static_cast<const char*>(from);
  char* y = static_cast<char*>(to);
  if (from_step == ptrdiff_t(n) && to_step == ptrdiff_t(n)) n *= rows, rows = 1;
  for (; rows-- > 0; x += from_step, y += to_step) {
    size_t i = 0;
    for (; i + 4 * L <= n; i += 4 * L)
      (load_words(x + i) ^ I32::set1(int32_t(0x80808080))).store(reinterpret_cast<int32_t*>(y + i));
#if defined(SKUA_ISA_avx512vnni)
    if (i < n) {
      const __mmask64 left = ~uint64_t(0) >> (64 - (n - i));
      _mm512_mask_storeu_epi8(y + i, left,
                              _mm512_xor_si512(_mm512_maskz_loadu_epi8(left, x + i), _mm512_set1_epi8(-128)));
    }
#else
    for (; i + 4 <= n; i += 4) {
      const int32_t w = int32_t(uint32_t(word_at(x + i)) ^ 0x80808080);
      __builtin_memcpy(y + i, &w, 4);
    }
    for (; i < n; ++i) y[i] = char(x[i] ^ 0x80);
#endif
  }
}
// The tile of u8 after such rows.
template <int MR, int NV> constexpr GemmTileTable make_flipped() {
  GemmTileTable table = make_table<uint8_t, MR, NV>();
  table.flip_rows = flip_rows;
  table.panels = panels<uint8_t, NV, true>;
  table.a_shift = 128;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable flipped_of = make_flipped<MR, NV>();
template <int MR, int NV> const GemmTileTable& flipped_table() { return flipped_of<MR, NV>; }
// The tile of u8 that flips its rows itself.
template <int MR, int NV> constexpr GemmTileTable make_flipping() {
  GemmTileTable table = make_table<uint8_t, MR, NV, true>();
  table.a = Element::s8;
  table.panels = panels<uint8_t, NV, true>;
  table.a_shift = 128;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable flipping_of = make_flipping<MR, NV>();
template <int MR, int NV> const GemmTileTable& flipping_table() { return flipping_of<MR, NV>; }
#define SKUA_TILE_FLIPPING(mr, nr, why)                                                                                \
  {"gemm_s8_" #mr "x" #nr "_xor_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, nr, \
   L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(flipping_table<mr, nr / L>)), Element::s8},
#define SKUA_TILE_FLIPPED(mr, nr, why)                                                                              \
  {"gemm_s8_" #mr "x" #nr "_flip_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, \
   nr, L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(flipped_table<mr, nr / L>)), Element::s8},
#endif
template <class T, int MR, int NV> constexpr GemmTileTable table_of = make_table<T, MR, NV>();
template <class T, int MR, int NV> const GemmTileTable& tile_table() { return table_of<T, MR, NV>; }

#define SKUA_TILE(T, type, mr, nr, why)                                                                               \
  {"gemm_" #type "_" #mr "x" #nr "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, \
   nr, L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<T, mr, nr / L>)), Element::type},

const Kernel kernels[] = {
#if defined(SKUA_ISA_avx512vnni)
    SKUA_FOR_INT8(SKUA_TILE, 6, 64, "24 accumulators + 4 B + 1 A of 32 registers; ten loads feed 24 products of four")
    SKUA_FOR_INT8(SKUA_TILE, 8, 48,
                  "24 accumulators + 3 B + 1 A of 32 registers; eight rows at once: B beyond L1 is read less often")
    SKUA_TILE_FLIPPED(8, 48, "rows of s8 flipped to u8 in the workspace; eight at once")
    SKUA_TILE_FLIPPED(6, 64,
                      "rows of s8 flipped to u8 in the workspace: cheaper than their sums where rows are read in order")
    SKUA_TILE_FLIPPING(6, 64,
                       "rows of s8 flipped to u8 in registers, where logic has ports beside those of the products")
#elif defined(SKUA_ISA_avxvnni)
    SKUA_FOR_INT8(SKUA_TILE, 6, 16, "12 accumulators + 2 B + 1 A of 16 registers; eight loads feed 12 products of four")
    SKUA_TILE_FLIPPED(6, 16,
                      "rows of s8 flipped to u8 in the workspace: cheaper than their sums where rows are read in order")
#elif defined(SKUA_ISA_avx512)
    SKUA_FOR_INT8(SKUA_TILE, 6, 64, "24 accumulators + 4 B + 1 A + 1 product of 32 registers, A in 16 bits")
#elif defined(SKUA_ISA_avx2)
    SKUA_FOR_INT8(SKUA_TILE, 6, 16, "12 accumulators + 2 B + 1 A + 1 product of 16 registers, A in 16 bits")
#elif defined(__SSE2__) && !defined(SKUA_ISA_scalar)
    SKUA_FOR_INT8(SKUA_TILE, 4, 8, "8 accumulators + 2 B + 1 A + 1 product of 16 registers, A in 16 bits")
#elif defined(SKUA_ISA_scalar)
    SKUA_FOR_INT8(SKUA_TILE, 2, 4, "portable C++: eight sums in registers")
#endif
    SKUA_PACK_BYTES
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_int8, kernels)
}  // namespace skua
