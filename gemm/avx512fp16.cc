// GEMM tiles that multiply and add in f16 with AVX512-FP16: 32 lanes where f32 has 16.
//
//   acc[r][v] += a[r][k] * b[k][v]   in f16 for at most t.block terms, then into sums of f32 on the stack: 64 terms of
//                                    twelve rows are 768 cycles, moving them on is 90.
//
// A is read where it is: the multiply-add broadcasts its element from memory by itself (measured: two a cycle with 24
// such and 2 loads of B; a broadcast of 16 bits into a register takes the port of multiply-adds). So a vector of B
// beside it serves no second purpose, and tall tiles of two vectors are best: 24 accumulators + 2 B of 32 registers.
#include "dispatch/kernel.h"
#include "gemm/finish.h"
#include "gemm/gemm_kernel.h"
#include "gemm/pack.h"
#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F16::L, H = F32::L;

// Rows of A by pointers, or by a step: eight rows from one pointer and the steps 1, 3, 5 and 7.
template <int MR> struct Scattered {
  const char* row[MR];
  SKUA_INL Scattered(const GemmTile& t, size_t, ptrdiff_t segment) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      row[r] = static_cast<const char*>(t.a[r]) + segment * 2;
  }
  SKUA_INL const char* at(int r, size_t k) const { return row[r] + k * 2; }
  SKUA_INL void step() {}
};
template <int MR> struct Even {
  const char* block[(MR + 7) / 8];
  ptrdiff_t s1, s3, s5, s7;
  SKUA_INL Even(const GemmTile& t, size_t first, ptrdiff_t segment)
      : s1(t.a_step * 2), s3(3 * s1), s5(5 * s1), s7(7 * s1) {
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i)
      block[i] = static_cast<const char*>(t.a[0]) + (segment + (ptrdiff_t(first) + i * 8) * t.a_step) * 2;
  }
  SKUA_INL const char* at(int r, size_t) const {
    return block[r >> 3] + (r & 1          ? ((r & 7) == 1   ? s1
                                              : (r & 7) == 3 ? s3
                                              : (r & 7) == 5 ? s5
                                                             : s7)
                            : (r & 7) == 0 ? 0
                            : (r & 7) == 6 ? s3 * 2
                                           : s1 * (r & 7));
  }
  SKUA_INL void step() {
    // else the compiler multiplies them ahead and keeps the products on the stack
    asm("" : "+r"(s1), "+r"(s3), "+r"(s5), "+r"(s7));
    SKUA_UNROLL for (int i = 0; i < (MR + 7) / 8; ++i) block[i] += 2;
  }
};

// Sums of f16 into sums of f32: set at first, added later.
template <int MR, int NV> SKUA_INL void move_on(F16 (&acc)[MR][NV], float* sums, bool add) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    F32 low, high;
    float* sum = sums + (r * NV + v) * L;
    to_f32(acc[r][v], low, high);
    if (add) low = low + F32::load(sum), high = high + F32::load(sum + H);
    low.store(sum);
    high.store(sum + H);
    acc[r][v] = F16::zero();
  }
}

// The plain end of even rows whose sums never left the registers: a product of no more terms than a block has.
template <class C, int MR, int NV>
SKUA_INL void finish_halves(const GemmTile& t, size_t first, const F16 (&acc)[MR][NV]) {
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  C* c = static_cast<C*>(t.c[0]) + ptrdiff_t(first) * t.c_step;
  const C* residual = t.residual ? static_cast<const C*>(t.residual[0]) + ptrdiff_t(first) * t.residual_step : nullptr;
  const auto put = [&](int r, int v, int half, auto lanes) __attribute__((always_inline)) {
    const int j = v * L + half * H;
    F32 y = half_of(acc[r][v], half);
    if (t.bias) y = y + F32::load(t.bias + j);
    if (residual) y = y + lanes.load(residual + r * t.residual_step + j);
    lanes.store(clamp_high(clamp_low(y, low), high), c + r * t.c_step + j);
  };
  if (t.n == size_t(NV * L)) {  // whole lines of C
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        SKUA_UNROLL for (int half = 0; half < 2; ++half)
          put(r, v, half, AllLanes{});
    return;
  }
  SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int half = 0; half < 2; ++half) {
    const size_t j = size_t(v * L + half * H);
    if (t.n >= j + H) SKUA_UNROLL for (int r = 0; r < MR; ++r) put(r, v, half, AllLanes{});
    else if (t.n > j) SKUA_UNROLL for (int r = 0; r < MR; ++r) put(r, v, half, FirstLanes{t.n - j});
  }
}

// direct: of no more terms than a block has, with a plain end.
template <int MR, int NV, int lines, template <int> class Rows, bool direct = false>
SKUA_INL void multiply(const GemmTile& t, size_t first, ptrdiff_t ahead, float* sums) {
  F16 acc[MR][NV];
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = F16::zero();
  bool moved = false;
  size_t room = t.block;
  const size_t ldb = t.ldb, depth = t.k;
  for (size_t s = 0; s < t.segment_count; ++s) {
    Rows<MR> a(t, first, t.segments[s].a);
    const f16* b = static_cast<const f16*>(t.b) + t.segments[s].b * ldb;
    for (size_t k = 0; k < depth;) {
      const size_t left = direct || depth - k < room ? depth - k : room, end = k + left;
      room -= left;
      for (; k < end; ++k) {
        SKUA_UNROLL for (int i = 0; i < lines; ++i)
          __builtin_prefetch(reinterpret_cast<const char*>(b + i * 32) + ahead, 0, 2);
        F16 w[NV];
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = F16::load(b + v * L);
          pin(w[v]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r)
          SKUA_UNROLL for (int v = 0; v < NV; ++v)
            asm("vfmadd231ph %2%{1to32%}, %1, %0"
                : "+v"(acc[r][v].v)
                : "v"(w[v].v), "m"(*reinterpret_cast<const uint16_t*>(a.at(r, k))));
        a.step();
        b += ldb;
      }
      if (direct || room) continue;
      move_on(acc, sums, moved);
      moved = true;
      room = t.block;
    }
  }
  if constexpr (direct) {
    if (t.c_type == Element::f16) finish_halves<f16>(t, first, acc);
    else finish_halves<float>(t, first, acc);
  } else if (room < t.block || !moved) move_on(acc, sums, moved);
}

template <int MR, int NV, int lines = 0> void tile(const GemmTile& t) {
  float sums[MR * NV * L];
  asm("" : "=m"(sums));  // for all the compiler knows
  multiply<MR, NV, lines, Scattered>(t, 0, t.ahead, sums);
  finish_sums(t, sums, NV * L, MR, t.c, t.residual);
}
template <int MR, int NV, int lines> void even_tiles(const GemmTile& t) {
  if (t.segment_count * t.k <= t.block && plain_end(t)) {
    for (size_t i = 0; i < t.groups; ++i)
      multiply<MR, NV, lines, Even, true>(
          t, i * MR, lines && t.ahead && i < size_t(NV) ? t.ahead + ptrdiff_t(i) * 64 : 0, nullptr);
    return;
  }
  const ptrdiff_t size = ptrdiff_t(element_bytes(t.c_type));
  char* c0 = static_cast<char*>(t.c[0]);
  const char* residual0 = t.residual ? static_cast<const char*>(t.residual[0]) : nullptr;
  for (size_t i = 0; i < t.groups; ++i) {
    float sums[MR * NV * L];
    asm("" : "=m"(sums));
    multiply<MR, NV, lines, Even>(t, i * MR, lines && t.ahead && i < size_t(NV) ? t.ahead + ptrdiff_t(i) * 64 : 0,
                                  sums);
    void* c[MR];
    const void* residual[MR];
    for (int r = 0; r < MR; ++r) {
      const ptrdiff_t row = ptrdiff_t(i) * MR + r;
      c[r] = c0 + row * t.c_step * size;
      if (residual0) residual[r] = residual0 + row * t.residual_step * size;
    }
    finish_sums(t, sums, NV * L, MR, c, residual0 ? residual : nullptr);
  }
}

struct Row {
  const f16* a;
  void* c;
  const void* residual;
};
// The only row, V vectors of its panels side by side: as many chains.
template <int V> void row_part(const GemmTile& t, const Row& row, const f16* panel, size_t first) {
  const f16 *a = row.a, *b[(V + 1) / 2];
  SKUA_UNROLL for (int p = 0; p < (V + 1) / 2; ++p) b[p] = panel + size_t(p) * 2 * L * t.k;
  float sums[V * L];
  asm("" : "=m"(sums));
  size_t k = 0;
  do {
    const bool more = k;
    const size_t left = t.k - k < t.block ? t.k - k : t.block, end = k + left;
    F16 acc[1][V];
    SKUA_UNROLL for (int v = 0; v < V; ++v) acc[0][v] = F16::zero();
    for (; k < end; ++k) {
      const F16 x = F16::broadcast(a + k);
      SKUA_UNROLL for (int v = 0; v < V; ++v) acc[0][v] = fma(x, F16::load(b[v / 2] + v % 2 * L), acc[0][v]);
      SKUA_UNROLL for (int p = 0; p < (V + 1) / 2; ++p) b[p] += 2 * p + 1 < V ? 2 * L : L;
    }
    move_on(acc, sums, more);
  } while (k < t.k);
  finish_row_part(t, finish_sums, sums, first, V * L, row.c, row.residual);
}
template <int V> void row_parts(const GemmTile& t, const Row& row, const f16* panel, size_t first, size_t vectors) {
  if (vectors == size_t(V)) row_part<V>(t, row, panel, first);
  else if constexpr (V > 1) row_parts<V - 1>(t, row, panel, first, vectors);
}
void panels(const GemmTile& t, const void* a, void* c, const void* residual) {
  constexpr size_t most = 8 * L;
  const Row row = {static_cast<const f16*>(a), c, residual};
  for (size_t first = 0; first < t.n; first += most)
    row_parts<8>(t, row, static_cast<const f16*>(t.b) + first * t.k, first,
                 t.n - first < most ? (t.n - first + L - 1) / L : 8);
}

constexpr int even_rows(int v) { return v == 1 ? 14 : 24 / v; }  // the accumulators leave registers for B
template <int MR, int NV, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  static_assert(r * v <= 28 && even_rows(v) * v <= 28 && even_rows(v) <= 16, "32 registers");
  table.at[(v - 1) * MR + r - 1] = tile<r, v, v == NV ? NV : 0>;
  // rows left over fetch a line more than they need: half the code
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
  static_assert(NV == 2, "panels of two vectors");
  table.panels = panels;
  table.a = table.b = Element::f16;
  table.any_c = table.half_sums = true;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable table_of = make_table<MR, NV>();
template <int MR, int NV> const GemmTileTable& tile_table() { return table_of<MR, NV>; }

const Kernel kernels[] = {
    {"gemm_f16_12x64_" SKUA_STRING(SKUA_ISA), "gemm",
     "24 accumulators + 2 B of 32 registers, A from memory; a multiply-add has 32 lanes", KernelKind::gemm_tile,
     Isa::SKUA_ISA, 0, 12, 64, F16::L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<12, 2>)),
     Element::f16},
    SKUA_PACK_KERNEL(f32, float, f16, f16, 1)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
