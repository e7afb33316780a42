// GEMM tiles that multiply and add in f16, one source for every instruction set that can.
//
//   acc[r][v] += a[r][k] * b[k][v]   in f16 for at most t.block terms, then into sums of f32, which wait on the stack:
//                                    64 terms of an accumulator are 64 multiply-adds, moving it on is 8 instructions.
//                                    What is done at the end is done in f32 and rounded once.
//
// A is read where it is, eight steps of a row per load, and used by lane; B is packed, [depth][width], or rows of a
// matrix.
// Registers, 8x16: 16 accumulators + 8 of A + 2 of B of 32. AArch32, 4x16: 8 + 4 + 2 of 16; a lane that multiplies must
// lie in q0..q3, which decides the 4.
// Every multiply stays where it is written (fma_lane), so the order below is the order of the instructions:
// accumulators apart by a step of the depth.
#include "dispatch/kernel.h"
#include "gemm/even_lines.h"
#include "gemm/gemm_kernel.h"
#include "gemm/half_finish.h"
#include "gemm/half_sums.h"
#if defined(SKUA_ISA_neon_fp16) || defined(SKUA_ISA_neon32_fp16)
#include "gemm/packed_tiles.h"
#endif
#include "gemm/pack.h"
#include "simd/half.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F16::L, H = F32::L;

// A row of B; the pointer moves on to the next one.
template <int NV> SKUA_INL void next_row(const f16*& b, size_t ldb, F16 (&w)[NV]) {
  SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = F16::load(b + v * L);
  b += ldb;
#if !defined(__clang__)
  asm("" : "+r"(b));  // else it keeps a pointer for each of the eight rows, more than AArch32 has registers
#endif
}
// One step of eight: lane i of every row times row i of B. first: sums begin with it.
template <int i, int MR, int NV, bool first = false>
SKUA_INL void lane_step(F16 (&acc)[MR][NV], const F16 (&x)[MR], const f16*& b, size_t ldb) {
  if constexpr (i < L) {
    F16 w[NV];
    next_row(b, ldb, w);
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        acc[r][v] = first ? mul_lane<i>(w[v], x[r]) : fma_lane<i>(acc[r][v], w[v], x[r]);
    lane_step<i + 1, MR, NV>(acc, x, b, ldb);
  }
}

// Eight steps of every row, `at` bytes on.
template <int MR> SKUA_INL void load_rows(F16 (&x)[MR], const char* const (&a)[MR], size_t& at) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = F16::load(reinterpret_cast<const f16*>(a[r] + at));
  at += L * sizeof(f16);
  asm("" : "+r"(at));  // else there is a pointer for each row to move on, block by block
}
// Sums begin at -0: adding a product to it gives the product, zeros of either sign too.
template <int MR, int NV> SKUA_INL void clear(F16 (&acc)[MR][NV]) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = -F16::zero();
}

// whole: of all the rows and columns that the table has.
template <int MR, int NV, bool whole> __attribute__((noinline)) void tile(const GemmTile& t) {
  F16 acc[MR][NV];
  float sums[MR][NV * L];
  // For all the compiler knows; they are read only when they were written.
  SKUA_UNROLL for (int r = 0; r < MR; ++r)
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      asm volatile("" : "=w"(acc[r][v].v));
  asm("" : "=m"(sums));
  bool moved = false, fresh = true;  // fresh: no product is in the sums yet
  const bool fhm = whole && t.fhm;
  const auto move = [&]() __attribute__((always_inline)) {
    move_sums<false>(acc, moved, sums[0], fhm);
    moved = true;
  };
  const bool plain = whole && ends_plain(t, NV * L, Element::f16);
  size_t room = t.block;
  const size_t ldb = t.ldb, depth = t.k, segments = t.segment_count;
  for (size_t s = 0; s < segments; ++s) {
    const char* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      a[r] = reinterpret_cast<const char*>(static_cast<const f16*>(t.a[r]) + t.segments[s].a);
    const f16* b = static_cast<const f16*>(t.b) + t.segments[s].b * ldb;
    size_t at = 0;
    for (size_t k = 0; k < depth;) {
      size_t left = depth - k < room ? depth - k : room;
      k += left;
      room -= left;
      if (fresh) {
        fresh = false;
        if (whole && left >= size_t(L)) {
          F16 x[MR];
          load_rows(x, a, at);
          lane_step<0, MR, NV, true>(acc, x, b, ldb);
          left -= L;
        } else {
          clear(acc);
        }
      }
      for (; left >= size_t(L); left -= L) {
        F16 x[MR];
        load_rows(x, a, at);
        lane_step<0, MR, NV>(acc, x, b, ldb);
      }
      for (; left; --left, at += sizeof(f16)) {
        F16 w[NV];
        next_row(b, ldb, w);
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          const F16 x = F16::broadcast(reinterpret_cast<const f16*>(a[r] + at));
          SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma_lane<0>(acc[r][v], w[v], x);
        }
      }
      if (room) continue;
      if (whole && plain && k == depth && s + 1 == segments) break;
      move();
      fresh = true;
      room = t.block;
    }
  }
  if (whole && plain && (room < t.block)) return finish_plain<false>(t, acc, moved, sums[0], fhm);
  if (room < t.block || !moved) {
    if (fresh) clear(acc);
    move();
  }
  finish_tile<f16, NV * L / H>(t, sums[0], MR);
}

// Whole tiles one below the other.
template <int MR, int NV, bool whole> void even_tiles(const GemmTile& t) {
  GemmTile one = t;
  EvenLines<MR, true> rows(t, sizeof(f16));
  rows.point(one);
  for (size_t i = 0; i < t.groups; ++i) {
    rows.tile();
    tile<MR, NV, whole>(one);
  }
}

// One row over panels of NV vectors, four of them side by side: eight chains of multiply-adds, where one panel would
// wait for its two. Sums are those of the tile of one row.
template <int i, int NV> SKUA_INL void panel_step(F16 (&acc)[1][4 * NV], const f16* const (&b)[4], F16 x) {
  if constexpr (i < L) {
    SKUA_UNROLL for (int v = 0; v < 4 * NV; ++v)
      acc[0][v] = fma_lane<i>(acc[0][v], F16::load(b[v / NV] + (i * NV + v % NV) * L), x);
    panel_step<i + 1, NV>(acc, b, x);
  }
}
template <int NV> __attribute__((noinline)) void four_panels(const GemmTile& t, const f16* panel) {
  const size_t depth = t.k, step = depth * NV * L;
  const f16 *a = static_cast<const f16*>(t.a[0]), *b[4] = {panel, panel + step, panel + 2 * step, panel + 3 * step};
  float sums[4 * NV * L];
  asm("" : "=m"(sums));
  for (size_t k = 0; k < depth || !k;) {
    size_t left = depth - k < t.block ? depth - k : t.block;
    F16 acc[1][4 * NV];
    clear(acc);
    const bool more = k;
    k += left;
    for (; left >= size_t(L); left -= L, a += L) {
      panel_step<0, NV>(acc, b, F16::load(a));
      SKUA_UNROLL for (int p = 0; p < 4; ++p) b[p] += NV * L * L;
    }
    for (; left; --left) {
      const F16 x = F16::broadcast(a++);
      SKUA_UNROLL for (int v = 0; v < 4 * NV; ++v)
        acc[0][v] = fma_lane<0>(acc[0][v], F16::load(b[v / NV] + v % NV * L), x);
      SKUA_UNROLL for (int p = 0; p < 4; ++p) b[p] += NV * L;
    }
    move_sums<false>(acc, more, sums);
    if (!depth) break;
  }
  finish_tile<f16, 4 * NV * L / H>(t, sums, 1);
}
template <int MR, int NV, int v = NV> SKUA_INL void last_panel(const GemmTile& t, size_t vectors) {
  if (vectors == size_t(v)) tile<1, v, MR == 1 && v == NV>(t);
  else if constexpr (v > 1) last_panel<MR, NV, v - 1>(t, vectors);
}
template <int MR, int NV> void panels(const GemmTile& t, const void* a, void* c, const void* residual) {
  GemmTile one = t;
  const GemmSegment whole = {0, 0};
  one.segments = &whole;
  one.segment_count = 1;
  one.a = &a;
  one.c = &c;
  one.residual = residual ? &residual : nullptr;
  const ptrdiff_t bytes = element_bytes(t.c_type);
  for (size_t first = 0; first < t.n;) {
    const f16* b = static_cast<const f16*>(t.b) + first * t.k;
    const bool four = t.n - first >= 4 * NV * L;
    one.n = four ? 4 * NV * L : t.n - first < NV * L ? t.n - first : NV * L;
    one.b = b;
    one.ldb = (one.n + L - 1) / L * L;
    one.bias = t.bias ? t.bias + first : nullptr;
    if (four) four_panels<NV>(one, b);
    else last_panel<MR, NV>(one, one.ldb / L);
    first += one.n;
    c = static_cast<char*>(c) + ptrdiff_t(one.n) * bytes;
    if (residual) residual = static_cast<const char*>(residual) + ptrdiff_t(one.n) * bytes;
  }
}

template <int MR, int NV, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  table.at[(v - 1) * MR + r - 1] = tile<r, v, r == MR && v == NV>;
  if constexpr (v == NV) table.row[r - 1] = tile<r, v, r == MR>;
  table.even[v - 1] = even_tiles<MR, v, v == NV>;
  table.even_rows[v - 1] = MR;
  if constexpr (r < MR) fill<MR, NV, r + 1, v>(table);
  else if constexpr (v < NV) fill<MR, NV, 1, v + 1>(table);
}
template <int MR, int NV> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<MR, NV>(table);
  table.panels = panels<MR, NV>;
  table.a = table.b = Element::f16;
  table.half_sums = table.any_c = table.lines = true;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable table_of = make_table<MR, NV>();
template <int MR, int NV> const GemmTileTable& tile_table() { return table_of<MR, NV>; }

#define SKUA_TILE(mr, nr, why)                                                                                      \
  {"gemm_f16_" #mr "x" #nr "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, nr, \
   F16::L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<mr, nr / F16::L>)), Element::f16},
const Kernel kernels[] = {
#if defined(SKUA_ISA_neon_fp16)
    SKUA_TILE(8, 16,
              "16 accumulators + 8 of A (eight deep, by lane) + 2 of B of 32 registers; 24 loads feed 128 "
              "multiply-adds")
    SKUA_PACKED_TILE(f16, 8, 16, a55, "_a55",
                     "scheduled for the Cortex-A55: 16 accumulators, a multiply in every cycle, its loads in halves "
                     "beside it")
#elif defined(SKUA_ISA_neon32_fp16)
    SKUA_TILE(4, 16, "8 accumulators + 4 of A (eight deep, by lane) + 2 of B of 16 registers")
    SKUA_PACKED_TILE(f16, 6, 16, any, "", "in assembly: 12 accumulators + 2 of A (packed) + 2 of B of 16 registers")
    SKUA_PACKED_TILE(f16, 6, 16, a55, "_a55",
                     "scheduled for the Cortex-A55: 12 accumulators, a multiply in every cycle, its loads in halves "
                     "beside it")
#endif
    SKUA_PACK_KERNEL(f32, float, f16, f16, 1)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
