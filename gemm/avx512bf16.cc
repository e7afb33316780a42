// GEMM tiles of AVX512-BF16: a lane of sums takes two steps of the depth with one instruction.
//
//   acc[r][v] += a[r][k] * b[k][v] + a[r][k + 1] * b[k + 1][v]     in f32; denormals count as zero
//
// A pair of a row of A is 32 bits, read where it is and broadcast as f32 tiles broadcast a float; packed B has its
// steps in pairs (kr = 2). So this is the loop of the f32 tile with half as many steps.
// An odd depth ends with an element and a zero beside it; where taps of three channels are read in place
// (GemmTile::overlaps) with the last two elements, one of which the pair before had too: each of the two has half of
// its weight, so that an infinity stays one (but for weights below 2^-125, whose halves are denormals).
// AMD's cores start as many of these as f32 multiply-adds; where they come at a quarter of that rate the model leaves
// the tiles alone.
#include "dispatch/kernel.h"
#include "gemm/finish.h"
#include "gemm/float_ends.h"
#include "gemm/gemm_kernel.h"
#include "gemm/no_addresses.h"
#include "gemm/pack.h"
#include "simd/simd.h"

#if !defined(__clang__)  // else addresses of rows are made out of each other, and wait in vector registers
#pragma GCC optimize("no-tree-slsr")
#endif
namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F32::L;

typedef uint32_t Pair __attribute__((aligned(1), may_alias));
SKUA_INL void add_pairs(F32& acc, F32 b, F32 a) { asm("vdpbf16ps %2, %1, %0" : "+v"(acc.v) : "v"(b.v), "v"(a.v)); }
SKUA_INL void add_pairs(F32& acc, F32 b, const char* a) {
  asm("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc.v) : "v"(b.v), "m"(*reinterpret_cast<const Pair*>(a)));
}

// Rows by pointers, or by a step: eight rows from one pointer and the steps 1, 3, 5 and 7.
template <int MR> struct Scattered {
  static constexpr bool even = false;
  void* const* c_rows;
  const void* const* residual_rows;
  const char* first;
  ptrdiff_t to[MR];  // from the first row: a step moves one pointer
  explicit SKUA_INL Scattered(const GemmTile& t) : c_rows(t.c), residual_rows(t.residual) {}
  SKUA_INL void begin(const GemmTile& t, ptrdiff_t segment) {
    first = static_cast<const char*>(t.a[0]) + segment * 2;
    SKUA_UNROLL for (int r = 1; r < MR; ++r)
      to[r] = reinterpret_cast<intptr_t>(t.a[r]) - reinterpret_cast<intptr_t>(t.a[0]);
  }
  SKUA_INL void begin(const uint32_t* pairs) {
    first = reinterpret_cast<const char*>(pairs);
    SKUA_UNROLL for (int r = 1; r < MR; ++r) to[r] = r * 4;
  }
  SKUA_INL const char* at(int r) const { return r ? first + to[r] : first; }
  SKUA_INL void back() { first -= 2; }
  SKUA_INL void step() {
    SKUA_UNROLL for (int r = 1; r < MR; ++r) asm("" : "+r"(to[r]));  // else the compiler moves a pointer per row
    first += 4;
  }
};
template <int MR> struct Even {
  static constexpr bool even = true;
  const char *first, *ahead = nullptr, *block[(MR + 7) / 8];  // ahead: in the rows below, which are fetched meanwhile
  char* c0;
  const char* residual0;
  ptrdiff_t a_step, c_bytes, residual_bytes, s1, s3, s5, s7;
  explicit SKUA_INL Even(const GemmTile& t)
      : first(static_cast<const char*>(t.a[0])),
        c0(static_cast<char*>(t.c[0])),
        residual0(t.residual ? static_cast<const char*>(t.residual[0]) : nullptr),
        a_step(t.a_step * 2),
        c_bytes(t.c_step * ptrdiff_t(element_bytes(t.c_type))),
        residual_bytes(t.residual_step * ptrdiff_t(element_bytes(t.c_type))) {}
  SKUA_INL void begin(const char* from, ptrdiff_t step) {
    s1 = step, s3 = 3 * step, s5 = 5 * step, s7 = 7 * step;
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] = from + i * 8 * step;
  }
  SKUA_INL void begin(const GemmTile&, ptrdiff_t segment) {
    begin(first + segment * 2, a_step);
    ahead = first + segment * 2 + MR * a_step;
  }
  SKUA_INL void begin(const uint32_t* pairs) { begin(reinterpret_cast<const char*>(pairs), 4); }
  SKUA_INL const char* at(int r) const {
    return block[r >> 3] + (r & 1          ? ((r & 7) == 1   ? s1
                                              : (r & 7) == 3 ? s3
                                              : (r & 7) == 5 ? s5
                                                             : s7)
                            : (r & 7) == 0 ? 0
                            : (r & 7) == 6 ? s3 * 2
                                           : s1 * (r & 7));
  }
  SKUA_INL void back() { SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] -= 2; }
  SKUA_INL void step() {
    asm("" : "+r"(s1), "+r"(s3));  // else the compiler multiplies them ahead and keeps the products on the stack
    if constexpr (MR > 5) asm("" : "+r"(s5));
    if constexpr (MR > 7) asm("" : "+r"(s7));
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] += 4;
    __builtin_prefetch(ahead);
    ahead += MR * 4;
  }
  SKUA_INL char* c(int r) const { return c0 + r * c_bytes; }
  SKUA_INL const char* residual(int r) const { return residual0 + r * residual_bytes; }
  SKUA_INL void below() {
    first += MR * a_step;
    c0 += MR * c_bytes;
    if (residual0) residual0 += MR * residual_bytes;
  }
};

template <int MR, int NV, int lines, class Rows>
SKUA_INL void multiply(const GemmTile& t, Rows& rows, ptrdiff_t ahead) {
  F32 acc[MR][NV];
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F32::zero();
  const size_t ldb = t.ldb, depth = t.k;
  for (size_t s = 0; s < t.segment_count; ++s) {
    rows.begin(t, t.segments[s].a);
    const bf16* b = static_cast<const bf16*>(t.b) + t.segments[s].b / 2 * ldb;
    uint32_t last[MR];
    for (size_t left = depth / 2, odd = depth & 1;; left = 1, odd = 0) {
      for (; left; --left, b += ldb) {
        if constexpr (lines > 0) {
          const char* next = reinterpret_cast<const char*>(b) + ahead;
          if constexpr (lines > 1) asm("" : "+r"(next));  // else a register for each line
          SKUA_UNROLL for (int i = 0; i < lines; ++i) __builtin_prefetch(next + i * 64, 0, 2);
        }
        F32 w[NV];
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = F32::load(reinterpret_cast<const float*>(b) + v * L);
          pin(w[v]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          if constexpr (NV == 1) {
            add_pairs(acc[r][0], w[0], rows.at(r));
          } else {
            F32 pair = as_f32(I32::set1(int32_t(*reinterpret_cast<const Pair*>(rows.at(r)))));
            pin(pair);
            SKUA_UNROLL for (int v = 0; v < NV; ++v) add_pairs(acc[r][v], w[v], pair);
          }
        }
        rows.step();
        if constexpr (Rows::even) no_addresses<MR * NV>();
      }
      if (__builtin_expect(!odd, true)) break;
      if (t.overlaps) {
        rows.back();
        continue;
      }
      // a zero beside it
      SKUA_UNROLL for (int r = 0; r < MR; ++r) last[r] = reinterpret_cast<const bf16*>(rows.at(r))->bits;
      rows.begin(last);
    }
  }

  if constexpr (Rows::even)
    if (t.c_type == Element::bf16 && plain_end(t))
      return finish_registers<bf16>(t, rows, acc, t.n - size_t(NV - 1) * L);
  float sums[MR * NV * L];
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      acc[r][v].store(sums + (r * NV + v) * L);
  const auto finish = t.c_type == Element::bf16 ? finish_sums_as<bf16> : finish_sums_as<float>;
  if constexpr (Rows::even) {
    void* c[MR];
    const void* residual[MR];
    for (int r = 0; r < MR; ++r) c[r] = rows.c(r), residual[r] = rows.residual0 ? rows.residual(r) : nullptr;
    finish(t, sums, NV * L, MR, c, rows.residual0 ? residual : nullptr);
  } else {
    finish(t, sums, NV * L, MR, t.c, t.residual);
  }
}

template <int MR, int NV, int lines> void tile(const GemmTile& t) {
  Scattered<MR> rows(t);
  multiply<MR, NV, lines>(t, rows, t.ahead);
}
template <int MR, int NV, int lines> void even_tiles(const GemmTile& t) {
  Even<MR> rows(t);
  for (size_t i = 0; i < t.groups; ++i) {
    multiply<MR, NV, lines>(t, rows, lines && t.ahead && i < size_t(NV) ? t.ahead + ptrdiff_t(i) * 64 : 0);
    rows.below();
  }
}

struct Row {
  const char* a;
  void* c;
  const void* residual;
};
// The only row, V vectors of one or two panels of NV side by side: as many chains of sums.
template <int NV, int V> void row_part(const GemmTile& t, const Row& row, size_t first) {
  constexpr int P = (V + NV - 1) / NV;
  const size_t pairs = t.k / 2;
  const char *a = row.a, *const end = a + pairs * 4, *b[P];
  SKUA_UNROLL for (int p = 0; p < P; ++p)
    b[p] = static_cast<const char*>(t.b) + (first + size_t(p) * NV * L) * (t.k + t.k % 2) * 2;
  F32 acc[V];
  SKUA_UNROLL for (int v = 0; v < V; ++v) acc[v] = F32::zero();
  const auto add = [&](uint32_t pair) __attribute__((always_inline)) {
    const F32 x = as_f32(I32::set1(int32_t(pair)));
    SKUA_UNROLL for (int v = 0; v < V; ++v)
      add_pairs(acc[v], F32::load(reinterpret_cast<const float*>(b[v / NV] + v % NV * 64)), x);
    SKUA_UNROLL for (int p = 0; p < P; ++p) b[p] += (p + 1 < P ? NV : V - (P - 1) * NV) * 64;
  };
  for (; a < end; a += 4) add(*reinterpret_cast<const Pair*>(a));
  if (t.k % 2) add(reinterpret_cast<const bf16*>(a)->bits);
  if (plain_end(t) && !row.residual) {
    const FloatEnd finish(t);
    SKUA_UNROLL for (int v = 0; v < V; ++v) finish(acc[v], row.c, first + size_t(v) * L);
    return;
  }
  float sums[V * L];
  SKUA_UNROLL for (int v = 0; v < V; ++v) acc[v].store(sums + v * L);
  finish_row_part(t, t.c_type == Element::bf16 ? finish_sums_as<bf16> : finish_sums_as<float>, sums, first, V * L,
                  row.c, row.residual);
}
template <int NV, int V = 2 * NV>
SKUA_INL void row_parts(const GemmTile& t, const Row& row, size_t first, size_t vectors) {
  if (vectors == size_t(V)) row_part<NV, V>(t, row, first);
  else if constexpr (V > 1) row_parts<NV, V - 1>(t, row, first, vectors);
}
template <int NV> void panels(const GemmTile& t, const void* a, void* c, const void* residual) {
  const Row row = {static_cast<const char*>(a), c, residual};
  const size_t most = size_t(t.groups == 1 ? NV : 2 * NV) * L;
  for (size_t first = 0; first < t.n; first += most)
    row_parts<NV>(t, row, first, t.n - first < most ? (t.n - first + L - 1) / L : most / L);
}

#if defined(__clang__)
constexpr int kMost = 12;  // it keeps steps of 14 rows on the stack
#else
constexpr int kMost = 14;
#endif
constexpr int even_rows(int v) {
  const int rows = (F32::registers - 1 - v) / v;
  return rows > kMost ? kMost : rows;
}
template <int MR, int NV, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  table.at[(v - 1) * MR + r - 1] = tile<r, v, v == NV ? NV : 0>;
  // rows left over fetch more lines than they need: half the code
  if constexpr (v == NV) table.row[r - 1] = table.at[(v - 1) * MR + r - 1];
  if constexpr (r < MR) fill<MR, NV, r + 1, v>(table);
  else {
    table.even[v - 1] = even_tiles<even_rows(v), v, v == NV>;
    table.even_rows[v - 1] = even_rows(v);
    if constexpr (v < NV) fill<MR, NV, 1, v + 1>(table);
  }
}
template <int MR, int NV> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<MR, NV>(table);
  table.panels = panels<NV>;
  table.a = table.b = Element::bf16;
  table.kr = 2;
  table.rate = 2;
  table.overlaps = table.any_c = table.hard_swish = true;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable table_of = make_table<MR, NV>();
template <int MR, int NV> const GemmTileTable& tile_table() { return table_of<MR, NV>; }

#define SKUA_TILE(rows, columns, why)                                                                               \
  {"gemm_bf16_" #rows "x" #columns "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, \
   rows, columns, L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<rows, columns / L>)),        \
   Element::bf16},

const Kernel kernels[] = {
    SKUA_TILE(6, 64, "24 accumulators + 4 B + 1 A of 32 registers; 10 loads feed 24 instructions of 32 products")
    SKUA_TILE(8, 48, "24 accumulators + 3 B + 1 A of 32 registers; B beyond L2 is read less often")
    SKUA_PACK_KERNEL(f32, float, bf16, bf16, 2) SKUA_PACK_KERNEL(bf16, bf16, bf16, bf16, 2)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
