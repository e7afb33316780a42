// Tiles of bytes on Arm, one unit for every instruction set; the formula is GemmTile's, the ways to multiply are
//
//   neon, neon32            int8_arm_mull.h     products in 16 bits, added in pairs; rows of A in place
//   neon_dot, neon32_dot    int8_arm_dot.h      products of four by lane; rows of A in place
//                           int8_arm_packed.h   the same over packed A, in assembly: in-order cores and AArch32
//   neon_i8mm               int8_arm_mmla.h     two rows by two columns, eight deep; A packed, or in place
#include "gemm/even_lines.h"
#include "gemm/int8_arm.h"
#if defined(SKUA_ISA_neon_i8mm)
#include "gemm/int8_arm_mmla.h"
#elif defined(__ARM_FEATURE_DOTPROD)
#include "gemm/int8_arm_dot.h"
#include "gemm/int8_arm_packed.h"
#else
#include "gemm/int8_arm_mull.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

template <class T> constexpr bool is_unsigned = element_of<T> == Element::u8;

// What is added to A: usmmla takes u8 as it is.
#if defined(SKUA_ISA_neon_i8mm)
template <class T> constexpr int a_shift = 0;
#else
template <class T> constexpr int a_shift = is_unsigned<T> ? -128 : 0;
#endif

// From memory to C, whatever is asked for. Not inlined: a tile that ends otherwise pays nothing for it. sum: of the
// rows of A', where B has a zero point.
template <int MR, class Sum>
__attribute__((noinline)) void finish_kept(const GemmTile& t, void* const* c, int32_t* kept, size_t step, size_t rows,
                                           const Sum& sum) {
  int32_t terms[MR];
  find_terms(t, rows, terms, sum);
  finish_sums(t, c, kept, step, rows, terms);
}

// Whether tiles finish from registers, whole rows of bytes at once.
template <int NV, bool whole>
SKUA_INL bool is_plain(const GemmTile& t) {
  return whole && t.n == size_t(NV * L) && ends_plain(t);
}

// Rows where they are.
template <class T, int MR, int NV, Core core>
SKUA_INL void multiply_rows(const GemmTile& t, [[maybe_unused]] bool plain) {
#if defined(SKUA_ISA_neon_i8mm)
  int32x4_t acc[(MR + 1) / 2][2 * NV];
  start_pairs(t, acc);
  row_sums<is_unsigned<T>, MR>(t, acc);
  if constexpr (MR % 2 == 0)
    if (plain) return put_pairs(t, t.c, acc);
  int32x4_t sums[MR][NV];
  rows_of<MR>(acc, sums);
#else
  int32x4_t sums[MR][NV];
#if defined(__ARM_FEATURE_DOTPROD)
  SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    sums[0][v] = vld1q_s32(t.offset + v * L);
    SKUA_UNROLL for (int r = 1; r < MR; ++r) sums[r][v] = sums[0][v];
  }
  dot_sums<is_unsigned<T>>(t, sums);
#else
  int32x4_t acc[MR][NV * L];
  mull_sums<is_unsigned<T>, core>(t, t.a, acc);
  total(t, acc, sums);
#endif
  if (plain) return put_rows(t, t.c, sums);
#endif
  int32_t kept[MR][NV * L];
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      vst1q_s32(&kept[r][v * L], sums[r][v]);
  finish_kept<MR>(t, t.c, kept[0], NV * L, MR, [&t](int32_t* to) { sum_rows<is_unsigned<T>>(t, MR, a_shift<T>, to); });
}

template <class T, int MR, int NV, bool whole, Core core>
__attribute__((noinline)) void row_tile(const GemmTile& t) {
  multiply_rows<T, MR, NV, core>(t, is_plain<NV, whole>(t));
}

// Whole tiles one below the other.
template <int MR, bool A, class Tile> SKUA_INL void each_tile(const GemmTile& t, const Tile& tile) {
  GemmTile one = t;
  EvenLines<MR, A> rows(t, 1);
  rows.point(one);
  for (size_t i = 0; i < t.groups; ++i) {
    rows.tile();
    tile(one, i);
    if (t.row_quant) one.row_quant += MR;
    if (t.row_terms) one.row_terms += MR;
  }
}
template <class T, int MR, int NV, bool whole, Core core> void even_rows(const GemmTile& t) {
  if constexpr (core == Core::any) {
    each_tile<MR, true>(
        t, [](const GemmTile& one, size_t) __attribute__((always_inline)) { row_tile<T, MR, NV, whole, core>(one); });
  } else {  // a call and what it asks are 60 cycles of an in-order core, as many as four rows of 16 products
    const bool plain = is_plain<NV, whole>(t);
    each_tile<MR, true>(
        t, [plain](const GemmTile& one, size_t)
               __attribute__((always_inline)) { multiply_rows<T, MR, NV, core>(one, plain); });
  }
}
#if defined(SKUA_ISA_neon32)
// Two to four rows for in-order cores, two at a time, as many as the schedule has registers for; all end together,
// which hides what they wait for. By pointers, where there are no groups, or even rows.
constexpr int kPairedRows = 4;
template <bool is_u8>
__attribute__((noinline)) void pair_sums(const GemmTile& t, const void* const* rows, int32x4_t (*sums)[1]) {
  int32x4_t acc[2][L];
  mull_sums<is_u8, Core::a53>(t, rows, acc);
  total(t, acc, sums);
}
template <class T> void paired_rows(const GemmTile& t) {
  GemmTile one = t;
  if (!t.above_least || t.k < 16 || !t.segment_count) {  // nothing to schedule
    one.groups = kPairedRows / 2 * t.groups;
    if (one.groups) return even_rows<T, 2, 1, true, Core::any>(one);
    for (size_t r = 0; r < t.rows; r += 2) {
      (t.rows - r > 1 ? row_tile<T, 2, 1, true, Core::any> : row_tile<T, 1, 1, true, Core::any>)(one);
      one.a += 2;
      one.c += 2;
      if (t.residual) one.residual += 2;
      if (t.row_quant) one.row_quant += 2;
      if (t.row_terms) one.row_terms += 2;
    }
    return;
  }
  EvenLines<kPairedRows, true> lines(t, 1);
  if (t.groups) lines.point(one);
  const bool even = t.groups != 0;
  const size_t rows = even ? size_t(kPairedRows) : t.rows;
  const bool plain = rows == kPairedRows && is_plain<1, true>(t);
  for (size_t left = even ? t.groups : 1; left; --left) {
    if (even) lines.tile();
    int32x4_t sums[kPairedRows][1];
    const void* const* const a = one.a;
    for (size_t r = 2; r < rows; r += 2) pair_sums<is_unsigned<T>>(one, a + r - 2, sums + r - 2);
    pair_sums<is_unsigned<T>>(one, a + rows - 2, sums + rows - 2);  // of three rows the second is summed twice
    if (plain) {
      int32x4_t y[kPairedRows][1];
      SKUA_UNROLL for (int r = 0; r < kPairedRows; ++r) y[r][0] = sums[r][0];
      put_rows(one, one.c, y);
      continue;  // which has no terms of rows
    }
    finish_kept<kPairedRows>(one, one.c, reinterpret_cast<int32_t*>(sums), L, rows,
                             [&one, rows](int32_t* to) { sum_rows<is_unsigned<T>>(one, rows, a_shift<T>, to); });
    if (t.row_quant) one.row_quant += kPairedRows;
    if (t.row_terms) one.row_terms += kPairedRows;
  }
}
#endif
template <class T, int MR, int NV, Core core, int r = 1, int v = 1> constexpr void fill_rows(GemmTileTable& table) {
  constexpr Core schedule = r == MR && v == NV ? core : Core::any;  // of whole tiles only
  table.at[(v - 1) * MR + r - 1] = row_tile<T, r, v, v == NV, schedule>;
  if constexpr (v == NV) table.row[r - 1] = row_tile<T, r, v, true, schedule>;
  if constexpr (r < MR) fill_rows<T, MR, NV, core, r + 1, v>(table);
  else {
    table.even[v - 1] = even_rows<T, MR, v, v == NV, schedule>;
    table.even_rows[v - 1] = MR;
    if constexpr (v < NV) fill_rows<T, MR, NV, core, 1, v + 1>(table);
  }
}

// Panels of MR rows, of which the first `rows` are stored.
#if defined(__ARM_FEATURE_DOTPROD)
#if defined(SKUA_ISA_neon_i8mm)
constexpr int kPackedRows = 6;
template <class T, int NV, Core>
__attribute__((noinline)) void panel(const GemmTile& t, const int8_t* a, void* const* c, size_t rows) {
  constexpr int MR = kPackedRows;
  int32x4_t acc[MR / 2][2 * NV];
  start_pairs(t, acc);
  pair_sums<is_unsigned<T>, MR>(t, a, acc);
  if (rows == MR && t.n == size_t(NV * L) && ends_plain(t)) return put_pairs(t, c, acc);
  int32x4_t sums[MR][NV];
  rows_of<MR>(acc, sums);
  int32_t kept[MR][NV * L];
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      vst1q_s32(&kept[r][v * L], sums[r][v]);
  finish_kept<MR>(t, c, kept[0], NV * L, rows, [&t, a](int32_t* to) { sum_pairs<is_unsigned<T>, MR>(t, a, to); });
}
template <class T> constexpr GemmPackAFn pack_rows = pack_pairs<kPackedRows>;
#else
template <class, int NV, Core core>
__attribute__((noinline)) void panel(const GemmTile& t, const int8_t* a, void* const* c, size_t rows) {
  constexpr int MR = kPackedRows;
  int32_t kept[MR * NV * L];
  if (packed_sums<NV, core>(t, a, c, rows, kept)) return;
  finish_kept<8>(t, c, kept, NV * L, rows, [&t, a](int32_t* to) { sum_fours(t, a, to); });
}
template <class T> constexpr GemmPackAFn pack_rows = pack_fours<is_unsigned<T>>;
#endif
// By what type a packed tile multiplies: u8 is packed as s8, but for usmmla.
template <class T> struct PackedAs {
#if defined(SKUA_ISA_neon_i8mm)
  using Type = T;
#else
  using Type = int8_t;
#endif
};
template <class T, int R, int NV, Core core>
void packed_tile(const GemmTile& t) {
  panel<T, NV, core>(t, static_cast<const int8_t*>(t.a[0]), t.c, R);
}
template <class T, int NV, Core core> void packed_even_tiles(const GemmTile& t) {
  const auto* a = static_cast<const int8_t*>(t.a[0]);
  const ptrdiff_t step = kPackedRows * t.a_step;
  each_tile<kPackedRows, false>(
      t, [ a, step ](const GemmTile& one, size_t i)
             __attribute__((always_inline)) { panel<T, NV, core>(one, a + ptrdiff_t(i) * step, one.c, kPackedRows); });
}
template <class T, int NV, Core core, int r = 1, int v = 1> constexpr void fill_packed(GemmTileTable& table) {
  constexpr Core schedule = v == NV ? core : Core::any;  // of whole tiles only
  table.at[(v - 1) * kPackedRows + r - 1] = packed_tile<T, r, v, schedule>;
  if constexpr (v == NV) table.row[r - 1] = packed_tile<T, r, v, schedule>;
  if constexpr (r < kPackedRows) fill_packed<T, NV, core, r + 1, v>(table);
  else {
    table.even[v - 1] = packed_even_tiles<T, v, schedule>;
    table.even_rows[v - 1] = kPackedRows;
    if constexpr (v < NV) fill_packed<T, NV, core, 1, v + 1>(table);
  }
}
#endif

#if defined(SKUA_ISA_neon_i8mm)
constexpr unsigned kr = 8;
constexpr float rate = 8;
#elif defined(__ARM_FEATURE_DOTPROD)
constexpr unsigned kr = 4;
constexpr float rate = 4;
#else
constexpr unsigned kr = 8;
constexpr float rate = 1;
#endif
[[maybe_unused]] constexpr bool kMull = kr == 8 && rate == 1;  // its rows have schedules
template <class T> constexpr GemmTileTable bytes_table() {
  GemmTileTable table = {};
  table.a = element_of<T>;
  table.b = Element::s8;
  table.kr = kr;
  table.any_c = table.bytes = table.sums_rows = table.lines = true;
  table.finish_sums = finish_sums;
  table.a_shift = a_shift<T>;
  table.rate = rate;
  table.adds_products = kMull;
  return table;
}
template <class T, int MR, int NV, Core core> constexpr GemmTileTable make_rows() {
  GemmTileTable table = bytes_table<T>();
  fill_rows<T, MR, NV, core>(table);
  return table;
}
template <class T, int MR, int NV, Core core> constexpr GemmTileTable rows_of_bytes = make_rows<T, MR, NV, core>();
template <class T, int MR, int NV, Core core>
const GemmTileTable& row_table() {
  return rows_of_bytes<T, MR, NV, core>;
}
#if defined(SKUA_ISA_neon32)
template <class T> constexpr GemmTileTable make_paired() {
  GemmTileTable table = bytes_table<T>();
  table.at[0] = table.row[0] = row_tile<T, 1, 1, true, Core::any>;
  for (int r = 1; r < kPairedRows; ++r) table.at[r] = table.row[r] = paired_rows<T>;
  table.even[0] = paired_rows<T>;
  table.even_rows[0] = kPairedRows;
  return table;
}
template <class T> constexpr GemmTileTable paired_of_bytes = make_paired<T>();
template <class T> const GemmTileTable& paired_table() { return paired_of_bytes<T>; }
#define SKUA_PAIRED(T, type, core, why)                                                                          \
  {"gemm_" #type "_4x4_" #core "_neon32", "gemm", why, KernelKind::gemm_tile, Isa::neon32, 0, kPairedRows, L, L, \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(paired_table<T>)), Element::type, Core::core},
#endif
#define SKUA_ROWS(T, type, mr, nr, core, suffix, why)                                                                 \
  {"gemm_" #type "_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, \
   0, mr, nr, L,                                                                                                      \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(row_table<T, mr, nr / L, kMull ? Core::core : Core::any>)), \
   Element::type, Core::core},
#if defined(__ARM_FEATURE_DOTPROD)
template <class T, int NV, Core core> constexpr GemmTileTable make_packed() {
  GemmTileTable table = bytes_table<T>();
  fill_packed<typename PackedAs<T>::Type, NV, core>(table);
  table.pack_a = pack_rows<T>;
  table.pack_kr = kr;
  table.a_bytes = 1;
  return table;
}
template <class T, int NV, Core core> constexpr GemmTileTable packed_of_bytes = make_packed<T, NV, core>();
template <class T, int NV, Core core> const GemmTileTable& packed_table() { return packed_of_bytes<T, NV, core>; }
#define SKUA_PACKED(T, type, mr, nr, core, suffix, why)                                                               \
  {"gemm_" #type "_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, \
   0, mr, nr, L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(packed_table<T, nr / L, Core::core>)),        \
   Element::type, Core::core},
#endif

#if defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon32)
// Panels of groups of eight; those of four are portable C++'s.
template <class S, bool flip>
void pack_b(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n, void* panel,
            int32_t* sums) {
  const S* b = static_cast<const S*>(from);
  uint8_t* to = static_cast<uint8_t*>(panel);
  for (size_t k = 0; k < depth; k += 8) {
    const size_t n = depth - k < 8 ? depth - k : 8;
    for (size_t j = 0; j < width; ++j, to += 8) {
      S x[8] = {};
      if (j < columns) {
        const S* column = b + k * stride_k + j * stride_n;
        if (stride_k == 1) {
          const uint64_t all = first_bytes(column, n);
          __builtin_memcpy(x, &all, 8);
        } else {
          for (size_t i = 0; i < n; ++i) x[i] = column[i * stride_k];
        }
        int32_t sum = 0;
        SKUA_UNROLL for (int i = 0; i < 8; ++i) sum += x[i];
        if (sums) sums[j] += sum;
        if (flip) for (size_t i = 0; i < n; ++i) x[i] = S(x[i] ^ 0x80);
      }
      __builtin_memcpy(to, x, 8);
    }
  }
}
#define SKUA_PACK_B(from, S, flip)                                                                         \
  {"gemm_pack_" #from "_s8_8_" SKUA_STRING(SKUA_ISA), "gemm",                                              \
   "panels of B, eight steps of the depth together, and the sums of their columns", KernelKind::gemm_pack, \
   Isa::SKUA_ISA, pack_variant(Element::s8, 8), 0, 0, L,                                                   \
   reinterpret_cast<AnyCode>(static_cast<GemmPackBytesFn>(pack_b<S, flip>)), Element::from},
#endif

const Kernel kernels[] = {
#if defined(SKUA_ISA_neon_i8mm)
    SKUA_FOR_INT8(SKUA_PACKED, 6, 16, any, "",
                  "24 accumulators + 3 of A (packed) + 1 of B of 32 registers; 11 loads feed 24 smmla")
    SKUA_FOR_INT8(SKUA_ROWS, 4, 16, any, "",
                  "A in place: 16 accumulators + 4 of A (pairs made in registers) + 1 of B of 32 registers")
#elif defined(SKUA_ISA_neon_dot)
    SKUA_FOR_INT8(SKUA_ROWS, 6, 16, any, "",
                  "24 accumulators + 6 of A (sixteen deep, by lane) + 1 of B of 32 registers; 22 loads feed 96 sdot")
    SKUA_FOR_INT8(SKUA_PACKED, 8, 12, a55, "_a55",
                  "scheduled for the Cortex-A55: 24 accumulators, a sdot in every cycle, its loads in halves beside it")
    SKUA_FOR_INT8(SKUA_ROWS, 4, 12, a55, "_a55", "A in place, for few rows over the panels of the tile above")
#elif defined(SKUA_ISA_neon32_dot)
    SKUA_FOR_INT8(SKUA_PACKED, 6, 8, any, "", "in assembly: 12 accumulators + 2 of A (packed) + 2 of B of 16 registers")
    SKUA_FOR_INT8(SKUA_PACKED, 6, 8, a55, "_a55",
                  "scheduled for the Cortex-A55: 12 accumulators, a multiply in every cycle, its loads in halves "
                  "beside it")
    SKUA_FOR_INT8(SKUA_ROWS, 4, 8, any, "",
                  "A in place: 8 accumulators + 4 of A (sixteen deep, by lane) + 1 of B of 16 registers")
#elif defined(SKUA_ISA_neon)
    SKUA_FOR_INT8(SKUA_ROWS, 4, 4, any, "",
                  "16 accumulators, four parts each + 4 of A + 1 of B + 8 products of 32 registers")
    SKUA_FOR_INT8(SKUA_ROWS, 4, 4, a53, "_a53",
                  "scheduled for the Cortex-A53: 16 accumulators + 4 of A + 4 of B + 4 products, arithmetic in six of "
                  "seven cycles")
    SKUA_PACK_B(s8, int8_t, false) SKUA_PACK_B(u8, uint8_t, true)
#else
    SKUA_FOR_INT8(SKUA_PAIRED, a53,
                  "scheduled for the Cortex-A53, two rows at a time: 8 accumulators + 2 of A + 2 of B + 4 products, "
                  "arithmetic in four of five cycles")
    SKUA_FOR_INT8(SKUA_PAIRED, a55,
                  "the same for a Cortex-A55 whose system does not tell 32-bit programs of dot products")
    SKUA_FOR_INT8(SKUA_ROWS, 2, 4, any, "",
                  "8 accumulators, four parts each + 1 of A + 1 of B + 4 products of 16 registers")
    SKUA_PACK_B(s8, int8_t, false) SKUA_PACK_B(u8, uint8_t, true)
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_int8, kernels)
}  // namespace skua
