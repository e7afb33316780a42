// Products of bytes in AMX's registers. The formula is GemmTile's, the tiles are amx_tiles.h's: a step is 64 deep,
// packed B has fours of the depth.
//
// There is a product for either sign of A, so nothing is flipped. Sums begin at 0, and columns' offsets come to them at
// the end: loads of offsets into the registers of sums take longer (56x56x64-64, 3x3: a sixth of the time where rows
// are no bytes apart, a tenth where they are copied sixteen times).
#define SKUA_ISA_avx512vnni 1  // the vectors beside
#include "gemm/amx_tiles.h"
#include "gemm/int8_finish.h"
#include "gemm/int8_pack.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Where the sums of a vector of columns start.
template <bool POSITIVE> SKUA_INL I32 start_of(const int32_t* offset) {
  const I32 x = I32::load(offset);
  return POSITIVE ? x + I32::set1(kTwoTo23) : x;
}
// Vectors of sums to the first `rows` of 4 / wide rows of C, c(i).
template <int wide, class Store, class C>
SKUA_INL void store_rows(const Store& store, const I32 (&x)[4], const typename Store::Scale (&scale)[wide], int rows,
                         size_t n, const C& c) {
  constexpr int kCount = 4 / wide;
  const Quad q = store(x[0], scale[0], x[1], scale[1 % wide], x[2], scale[0], x[3], scale[1 % wide]);
  put<kCount, 0>(c(0), q, n);
  if (rows > 1) put<kCount, 1>(c(1), q, n);
  if constexpr (kCount > 2) {
    if (rows > 2) put<kCount, 2>(c(2), q, n);
    if (rows > 3) put<kCount, 3>(c(3), q, n);
  }
}
template <bool POSITIVE, int wide, class C>
SKUA_INL void finish_bytes(const GemmTile& t, const int32_t* sums, int rows, const C& c) {
  using Store = WideStore<POSITIVE>;
  const Store store(t);
  const size_t n = t.n;
  typename Store::Scale scale[wide];
  I32 start[wide];
  SKUA_UNROLL for (int v = 0; v < wide; ++v) {
    scale[v] = Store::scale_of(t.scale + v * L);
    start[v] = start_of<POSITIVE>(t.offset + v * L);
  }
  for (int r = 0; r < rows; r += 4 / wide) {
    I32 x[4];
    SKUA_UNROLL for (int i = 0; i < 4; ++i) x[i] = I32::load(sums + r * (wide * L) + i * L) + start[i % wide];
    store_rows<wide>(
        store, x, scale, rows - r, n, [&](int i) __attribute__((always_inline)) { return c(r + i); });
  }
}
// Of up to 2 * kRows rows, `row` the tile's first of them; terms: theirs where B has a zero point. Not inlined: all
// products share it.
template <int wide, class C>
__attribute__((noinline)) void finish_tile(const GemmTile& t, size_t row, int32_t* sums, int rows, const C& c,
                                           const int32_t* terms) {
  for (int i = 0; t.b_zero && !t.b_zeros && i < rows * wide; ++i)
    (I32::load(sums + i * L) - I32::set1(terms[i / wide])).store(sums + i * L);
  if (t.positive) return finish_bytes<true, wide>(t, sums, rows, c);
  if (t.fits && plain_bytes(t)) return finish_bytes<false, wide>(t, sums, rows, c);
  void* to[2 * kRows];
  const void* residual[2 * kRows];
  for (int r = 0; r < rows; ++r) to[r] = c(r);
  if (t.residual)
    for (int r = 0; r < rows; ++r) residual[r] = c.residual(r);
  for (int r = 0; r < rows; ++r)
    SKUA_UNROLL for (int v = 0; v < wide; ++v) {
      int32_t* const sum = sums + (r * wide + v) * L;
      I32 x = I32::load(sum) + I32::load(t.offset + v * L);
      if (t.row_quant)
        x = x - product(I32::load(t.column_sums + v * L), I32::set1(t.row_quant[row + size_t(r)].zero));
      x.store(sum);
    }
  finish_rows(t, sums, wide * L, size_t(rows), to, t.row_quant ? t.row_quant + row : nullptr, residual, terms);
}

template <class T> struct Bytes {
  using Row = T;
  using Sum = int32_t;
  static constexpr bool kAnyBehind = true;
  template <int sum, int a, int b> static SKUA_INL void multiply() {
    if constexpr (element_of<T> == Element::s8)
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
    else asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
  }
  template <int wide, class C>
  static SKUA_INL void finish(const GemmTile& t, size_t row, int32_t* sums, int rows, const C& c,
                              const int32_t* terms) {
    finish_tile<wide>(t, row, sums, rows, c, terms);
  }
  struct End {
    static bool serves(const GemmTile& t) { return !t.b_zero && (t.positive || (t.fits && plain_bytes(t))); }
    const float* scales;
    const int32_t* offsets;
    const bool kind;  // GemmTile::positive
    const WideStore<true> positive;
    const WideStore<false> any;
    explicit SKUA_INL End(const GemmTile& t)
        : scales(t.scale), offsets(t.offset), kind(t.positive), positive(t), any(t) {}
    template <int POSITIVE> SKUA_INL const WideStore<POSITIVE>& store() const {
      if constexpr (POSITIVE) return positive;
      else return any;
    }
    template <int POSITIVE> struct Ready {
      WideStore<POSITIVE> to;
      typename WideStore<POSITIVE>::Scale scale[kWide];
      I32 start[kWide];
      size_t column;
      SKUA_INL Ready(const End& end, size_t first) : to(end.template store<POSITIVE>()), column(first) {
        SKUA_UNROLL for (int v = 0; v < kWide; ++v) {
          scale[v] = WideStore<POSITIVE>::scale_of(end.scales + column + v * L);
          start[v] = start_of<POSITIVE>(end.offsets + column + v * L);
        }
      }
      // the second of them where there is one
      SKUA_INL void some(const TileRows& rows, const int32_t* sums, int r, int count) const {
        I32 x[4];
        SKUA_UNROLL for (int i = 0; i < 4; ++i)
          x[i] = start[i % kWide] +
                 I32::load(sums + rows.sums[i / kWide < count ? r + i / kWide : r] + i % kWide * L);
        store_rows<kWide>(to, x, scale, count, size_t(kWide * L),
                          [&](int i) __attribute__((always_inline)) { return rows.c[r + i] + column; });
      }
      SKUA_INL void two(const TileRows& rows, const int32_t* sums, int r) const { some(rows, sums, r, 2); }
    };
    template <int POSITIVE>
    SKUA_INL void rows_as(const TileRows& of, const int32_t* sums, size_t column, int first, int last) const {
      const Ready<POSITIVE> ready(*this, column);
      for (int r = first; r < last; r += 2) ready.some(of, sums, r, last - r < 2 ? 1 : 2);
    }
    __attribute__((noinline)) void rows(const TileRows& of, const int32_t* sums, size_t column, int first,
                                        int last) const {
      if (kind) rows_as<1>(of, sums, column, first, last);
      else rows_as<0>(of, sums, column, first, last);
      keep_stores();
    }
  };
  static SKUA_INL bool sums_rows(const GemmTile& t) { return t.b_zero; }
  // b_zero times the sums of rows: known from an earlier panel, or added up.
  static SKUA_INL const int32_t* terms_of(const GemmTile& t, size_t row, size_t rows, const char* const* a,
                                          int32_t* own) {
    if (!t.b_zero) return nullptr;
    int32_t* terms = t.row_terms ? t.row_terms + row : own;
    if (!t.terms_known) sum_rows<T>(t, rows, a, terms);
    return terms;
  }
};

template <class T, bool packed> constexpr GemmTileTable make_bytes() {
  GemmTileTable table = make_table<Bytes<T>, packed>();
  table.b = Element::s8;
  table.rate = 32;  // of two vectors in a cycle: what explain() takes for the roofline
  table.bytes = true;
  table.finish_sums = finish_sums;
  table.sums_rows = !packed;
  if (packed) table.a_bytes = 1;
  return table;
}
template <class T, bool packed> constexpr GemmTileTable table_of = make_bytes<T, packed>();
template <class T, bool packed> const GemmTileTable& tile_table() { return table_of<T, packed>; }

constexpr size_t kSteps = kDeep<Bytes<int8_t>>;

// A panel: registers of 16 columns, each packed as panels of so many columns are for products of four.
template <class S, bool flip>
void pack_registers(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n,
                    void* panel, int32_t* sums) {
  const S* b = static_cast<const S*>(from);
  uint8_t* to = static_cast<uint8_t*>(panel);
  for (size_t k = 0; k < depth; k += kSteps)
    for (size_t j = 0; j < width; j += L, to += kRegister) {
      const size_t deep = depth - k < kSteps ? depth - k : kSteps,
                   n = columns < j               ? 0
                       : columns - j < size_t(L) ? columns - j
                                                 : size_t(L),
                   fours = (deep + 3) / 4;
      pack_bytes<S, flip, 4>(deep, n, L, b + k * stride_k + (n ? j : 0) * stride_n, stride_k, stride_n, to,
                             sums ? sums + j : nullptr);
      for (size_t i = fours; i < kSteps / 4; ++i) _mm512_storeu_si512(to + i * 64, _mm512_setzero_si512());
    }
}

#define SKUA_TILE(T, type, packed, suffix, why)                                                                   \
  {"gemm_" #type "_16x32" suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, \
   kRows, kWide * L, L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<T, packed>)),           \
   Element::type},
#define SKUA_PACK(from, S, flip)                                                                           \
  {"gemm_pack_" #from "_s8_64_" SKUA_STRING(SKUA_ISA), "gemm",                                             \
   "panels of B in registers of AMX, and the sums of their columns", KernelKind::gemm_pack, Isa::SKUA_ISA, \
   pack_variant(Element::s8, kSteps), 0, 0, L,                                                             \
   reinterpret_cast<AnyCode>(static_cast<GemmPackBytesFn>(pack_registers<S, flip>)), Element::from},

const Kernel kernels[] = {
    SKUA_FOR_INT8(SKUA_TILE, false, "",
                  "A in place: 4 of sums + 2 of A + 2 of B of 8 registers; two tiles of rows at a time")
    SKUA_FOR_INT8(SKUA_TILE, true, "_packed",
                  "rows of A packed in the workspace, once for all panels: windows of images whose lines do not fill "
                  "tiles")
    SKUA_PACK(s8, int8_t, false) SKUA_PACK(u8, uint8_t, true)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_int8, kernels)
}  // namespace skua
