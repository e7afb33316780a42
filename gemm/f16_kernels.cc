// GEMM tiles that multiply and add in f16, one source for every instruction set that can.
//
//   acc[r][v] += a[r][k] * b[k][v]   in f16 for at most t.block terms, then into sums of f32, which wait on the stack: 64 terms of an accumulator are 64 multiply-adds,
//   moving it on is 8 instructions. What is done at the end is done in f32 and rounded once.
//
// A is read where it is, eight steps of a row per load, and used by lane; B is packed, [depth][width], or rows of a matrix.
// Registers, 8x16: 16 accumulators + 8 of A + 2 of B of 32. AArch32, 4x16: 8 + 4 + 2 of 16; a lane that multiplies must lie in q0..q3, which decides the 4.
// Every multiply stays where it is written (fma_lane), so the order below is the order of the instructions: accumulators apart by a step of the depth.
#include "dispatch/kernel.h"
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
template <int i, int MR, int NV, bool first = false> SKUA_INL void lane_step(F16 (&acc)[MR][NV], const F16 (&x)[MR], const f16*& b, size_t ldb) {
  if constexpr (i < L) {
    F16 w[NV];
    next_row(b, ldb, w);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) acc[r][v] = first ? mul_lane<i>(w[v], x[r]) : fma_lane<i>(acc[r][v], w[v], x[r]);
    lane_step<i + 1, MR, NV>(acc, x, b, ldb);
  }
}

template <int MR> SKUA_INL void load_rows(F16 (&x)[MR], const f16* (&a)[MR]) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) {
    x[r] = F16::load(a[r]);
    a[r] += L;
  }
}
// Sums begin at -0: adding a product to it gives the product, zeros of either sign too.
template <int MR, int NV> SKUA_INL void clear(F16 (&acc)[MR][NV]) {
  SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = -F16::zero();
}

// whole: of all the rows and columns that the table has.
template <int MR, int NV, bool whole> __attribute__((noinline)) void tile(const GemmTile& t) {
  F16 acc[MR][NV];
  clear(acc);
  float sums[MR][NV * L];
  asm("" : "=m"(sums));  // for all the compiler knows; it is read only where `moved`
  bool moved = false, fresh = false;
  const auto move = [&]() __attribute__((always_inline)) {
    move_sums<false>(acc, moved, sums[0]);
    moved = true;
  };
  const bool plain = whole && ends_plain(t, NV * L, Element::f16);
  size_t room = t.block;
  const size_t ldb = t.ldb, depth = t.k, segments = t.segment_count;
  for (size_t s = 0; s < segments; ++s) {
    const f16* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = static_cast<const f16*>(t.a[r]) + t.segments[s].a;
    const f16* b = static_cast<const f16*>(t.b) + t.segments[s].b * ldb;
    for (size_t k = 0; k < depth;) {
      size_t left = depth - k < room ? depth - k : room;
      k += left;
      room -= left;
      if (fresh) {
        fresh = false;
        if (whole && left >= size_t(L)) {
          F16 x[MR];
          load_rows(x, a);
          lane_step<0, MR, NV, true>(acc, x, b, ldb);
          left -= L;
        } else {
          clear(acc);
        }
      }
      for (; left >= size_t(L); left -= L) {
        F16 x[MR];
        load_rows(x, a);
        lane_step<0, MR, NV>(acc, x, b, ldb);
      }
      for (; left; --left) {
        F16 w[NV];
        next_row(b, ldb, w);
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          const F16 x = F16::broadcast(a[r]++);
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
  if (whole && plain && (room < t.block)) return finish_plain<false>(t, acc, moved, sums[0]);
  if (room < t.block || !moved) move();
  finish_tile<f16, NV * L / H>(t, sums[0], MR);
}

// Whole tiles one below the other.
template <int MR, int NV, bool whole> void even_tiles(const GemmTile& t) {
  GemmTile one = t;
  const void *a[MR], *residual[MR];
  void* c[MR];
  one.a = a;
  one.c = c;
  if (t.residual) one.residual = residual;
  const auto bytes = ptrdiff_t(element_bytes(t.c_type)), c_step = t.c_step * bytes, residual_step = t.residual_step * bytes;
  auto* x = static_cast<const f16*>(t.a[0]);
  auto* to = static_cast<char*>(t.c[0]);
  auto* from = t.residual ? static_cast<const char*>(t.residual[0]) : nullptr;
  for (size_t i = 0; i < t.groups; ++i) {
    SKUA_UNROLL for (int r = 0; r < MR; ++r, x += t.a_step, to += c_step) a[r] = x, c[r] = to;
    if (from) SKUA_UNROLL for (int r = 0; r < MR; ++r, from += residual_step) residual[r] = from;
    tile<MR, NV, whole>(one);
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
  table.a = table.b = Element::f16;
  table.half_sums = table.any_c = true;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable table_of = make_table<MR, NV>();
template <int MR, int NV> const GemmTileTable& tile_table() { return table_of<MR, NV>; }

#define SKUA_TILE(mr, nr, why)                                                                                              \
  {"gemm_f16_" #mr "x" #nr "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, nr, F16::L, \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<mr, nr / F16::L>)), Element::f16},
const Kernel kernels[] = {
#if defined(SKUA_ISA_neon_fp16)
    SKUA_TILE(8, 16, "16 accumulators + 8 of A (eight deep, by lane) + 2 of B of 32 registers; 24 loads feed 128 multiply-adds")
    SKUA_PACKED_TILE(f16, 8, 16, a55, "_a55", "scheduled for the Cortex-A55: 16 accumulators, a multiply in every cycle, its loads in halves beside it")
#elif defined(SKUA_ISA_neon32_fp16)
    SKUA_TILE(4, 16, "8 accumulators + 4 of A (eight deep, by lane) + 2 of B of 16 registers")
    SKUA_PACKED_TILE(f16, 6, 16, any, "", "in assembly: 12 accumulators + 2 of A (packed) + 2 of B of 16 registers")
#endif
    SKUA_PACK_KERNEL(f32, float, f16, f16, 1)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
