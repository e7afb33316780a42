// Tiles over packed A whose inner loop is assembly: in-order AArch64 cores and AArch32. Included by kernels.cc (f32) and f16_kernels.cc (f16).
//
//   packed A  [k][kPackedRows], written by pack_rows(); rows that are not there repeat the first, and are not stored
//   whole tiles: packed_loop() of packed_loops64.h or packed_loops32.h; panels of fewer vectors of columns: the template below, over the same A
//
// C is f32: halves are made of the strip. The order of the sums is that of the other tiles of the instruction set: f32 in one chain; f16 in chains of at most t.block terms, which are summed in f32.
#pragma once
#include "gemm/gemm_kernel.h"
#include "dispatch/kernel.h"
#include "gemm/half_finish.h"
#if defined(SKUA_ISA_neon_fp16) || defined(SKUA_ISA_neon32_fp16)
#include "simd/half.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(__aarch64__)
#include "gemm/packed_loops64.h"
constexpr int kPackedRows = 8;
#else
#include "gemm/packed_loops32.h"
constexpr int kPackedRows = 6;
#endif
#if defined(SKUA_HALF)
using Packed = F16;
using PackedElement = f16;
#else
using Packed = F32;
using PackedElement = float;
#endif

// One step for row r and those behind it.
template <int r, int NV, int NX> SKUA_INL void lane_rows(Packed (&c)[NV][kPackedRows], const Packed (&w)[NV], const Packed (&x)[NX]) {
  if constexpr (r < kPackedRows) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) c[v][r] = fma_lane<r % Packed::L>(c[v][r], w[v], x[r / Packed::L]);
    lane_rows<r + 1>(c, w, x);
  }
}
template <int NV> SKUA_INL void lane_steps(Packed (&c)[NV][kPackedRows], const PackedElement* a, const PackedElement* b, size_t ldb, size_t k) {
  constexpr int L = Packed::L, NX = (kPackedRows + L - 1) / L;
  for (; k; --k, a += kPackedRows, b += ldb) {
    Packed x[NX], w[NV];
    SKUA_UNROLL for (int i = 0; i < NX; ++i) x[i] = (i + 1) * L <= kPackedRows ? Packed::load(a + i * L) : Packed::load_n(a + i * L, kPackedRows - i * L);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = Packed::load(b + v * L);
    lane_rows<0>(c, w, x);
  }
}

// c = [from] + k steps over one run of A and B. ldb in elements.
template <int NV, Core core> SKUA_INL void run_steps(Packed (&c)[NV][kPackedRows], const PackedElement* a, const PackedElement* b, size_t ldb, size_t k, const Packed* from) {
  constexpr bool whole = NV == (kPackedRows == 8 && sizeof(PackedElement) == 4 ? 3 : 2);
#if defined(SKUA_ISA_neon32)
  // As in the other tiles the depth beyond a multiple of four is multiplied and added with one rounding.
  const size_t by_lane = k / 4 * 4;
  if constexpr (whole) {
    packed_turns(c, a, b, ldb * sizeof(float), by_lane / 2, from);
  } else {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r) c[v][r] = from ? from[v * kPackedRows + r] : F32::zero();
    lane_steps(c, a, b, ldb, by_lane);
    a += by_lane * kPackedRows;
    b += by_lane * ldb;
  }
  for (k -= by_lane; k; --k, a += kPackedRows, b += ldb) {
    F32 w[NV];
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = F32::load(b + v * F32::L);
    SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r) {
      const F32 x = F32::broadcast(a + r);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) c[v][r] = fma(x, w[v], c[v][r]);
    }
  }
#else
  if constexpr (whole) {
    packed_loop<core>(c, a, b, ldb * sizeof(PackedElement), k, from);
  } else {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r) c[v][r] = from ? from[v * kPackedRows + r] : Packed::zero();
    lane_steps(c, a, b, ldb, k);
  }
#endif
}

// The first `rows` rows of the panel of A.
template <int NV, Core core> __attribute__((noinline)) void packed_rows(const GemmTile& t, const PackedElement* panel, size_t rows) {
  constexpr int MR = kPackedRows, L = Packed::L;
  Packed c[NV][MR], kept[NV * MR];  // kept: sums between runs
  float sums[MR][NV * L];
  asm("" : "=m"(sums), "=m"(kept));  // for all the compiler knows; they are read only after they were written
  bool keeps = false, moved = false;
#if defined(SKUA_HALF)
  const auto move = [&]() __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      F32 low, high;
      float* sum = &sums[r][v * L];
      to_f32(c[v][r], low, high);
      if (moved) low = low + F32::load(sum), high = high + F32::load(sum + F32::L);
      low.store(sum);
      high.store(sum + F32::L);
    }
    moved = true;
    keeps = false;
  };
  size_t room = t.block;
#else
  const auto move = [&]() __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) c[v][r].store(&sums[r][v * L]);
    moved = true;
    keeps = false;
  };
  size_t room = SIZE_MAX;
  GemmTile end;
  if (t.load_c) {  // the chain of sums goes on
    for (int v = 0; v < NV; ++v)
      for (size_t r = 0; r < MR; ++r) kept[v * MR + int(r)] = r < rows ? columns(static_cast<const float*>(t.c[r]), v, t.n) : F32::zero();
    keeps = true;
  }
#endif
  SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) c[v][r] = Packed::zero();
  const size_t ldb = t.ldb, segments = t.segment_count;
  for (size_t s = 0; t.k && s < segments;) {
    const PackedElement *a = panel + size_t(t.segments[s].a) * MR, *b = static_cast<const PackedElement*>(t.b) + t.segments[s].b * ldb;
    size_t left = t.k;
    // Segments that follow each other in B too are one run; on AArch32 if no depth is left over.
    for (++s; s < segments && t.segments[s].b == t.segments[s - 1].b + t.k && (Packed::L == 8 || MR == 8 || t.k % 4 == 0); ++s) left += t.k;
    while (left) {
      const size_t k = left < room ? left : room;
      run_steps<NV, core>(c, a, b, ldb, k, keeps ? kept : nullptr);
      a += k * MR;
      b += k * ldb;
      left -= k;
      room -= k;
      if (!room) {
        move();
        room = t.block;
      } else if (left || s < segments) {
        SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) kept[v * MR + r] = c[v][r];
        keeps = true;
      } else {
        move();
      }
    }
  }
  if (!moved) {
    if (keeps) SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) c[v][r] = kept[v * MR + r];
    move();
  }
#if !defined(SKUA_HALF)
  if (t.load_c) {
    end = t;
    end.load_c = false;
    return finish_tile<float, NV * L / F32::L>(end, sums[0], rows);
  }
#endif
  finish_tile<float, NV * L / F32::L>(t, sums[0], rows);
}

template <int R, int NV, Core core> void packed_tile(const GemmTile& t) { packed_rows<NV, core>(t, static_cast<const PackedElement*>(t.a[0]), R); }

// Whole tiles one below the other.
template <int NV, Core core> void packed_even_tiles(const GemmTile& t) {
  constexpr int MR = kPackedRows;
  GemmTile one = t;
  void* c[MR];
  const void* residual[MR];
  one.c = c;
  if (t.residual) one.residual = residual;
  for (size_t i = 0; i < t.groups; ++i) {
    for (int r = 0; r < MR; ++r) {
      const ptrdiff_t row = ptrdiff_t(i) * MR + r;
      c[r] = static_cast<float*>(t.c[0]) + row * t.c_step;
      if (t.residual) residual[r] = static_cast<const float*>(t.residual[0]) + row * t.residual_step;
    }
    packed_rows<NV, core>(one, static_cast<const PackedElement*>(t.a[0]) + ptrdiff_t(i) * MR * t.a_step, MR);
  }
}

// L steps of L rows at a time, turned in registers.
#if defined(SKUA_HALF)
SKUA_INL void turn(F16 (&x)[8]) {
  uint16x8_t h[8];
  SKUA_UNROLL for (int i = 0; i < 8; i += 2) {
    const uint16x8x2_t p = vtrnq_u16(vreinterpretq_u16_f16(x[i].v), vreinterpretq_u16_f16(x[i + 1].v));
    h[i] = p.val[0];
    h[i + 1] = p.val[1];
  }
  uint32x4_t w[8];
  SKUA_UNROLL for (int i = 0; i < 8; ++i)
    if (!(i & 2)) {
      const uint32x4x2_t p = vtrnq_u32(vreinterpretq_u32_u16(h[i]), vreinterpretq_u32_u16(h[i + 2]));
      w[i] = p.val[0];
      w[i + 2] = p.val[1];
    }
  SKUA_UNROLL for (int i = 0; i < 4; ++i) {
    x[i].v = vreinterpretq_f16_u32(vcombine_u32(vget_low_u32(w[i]), vget_low_u32(w[i + 4])));
    x[i + 4].v = vreinterpretq_f16_u32(vcombine_u32(vget_high_u32(w[i]), vget_high_u32(w[i + 4])));
  }
}
#else
SKUA_INL void turn(F32 (&x)[4]) { transpose(x); }
#endif

void pack_rows(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t depth, void* panel) {
  constexpr int MR = kPackedRows, L = Packed::L;
  auto* to = static_cast<PackedElement*>(panel);
  for (size_t s = 0; s < segment_count; ++s) {
    const PackedElement* row[MR];
    for (size_t r = 0; r < MR; ++r) row[r] = static_cast<const PackedElement*>(a[r < rows ? r : 0]) + segments[s].a;
    size_t k = 0;
    for (; k + L <= depth; k += L, to += L * MR)
      SKUA_UNROLL for (int first = 0; first < MR; first += L) {
        Packed x[L];
        SKUA_UNROLL for (int i = 0; i < L; ++i) x[i] = Packed::load(row[first + i < MR ? first + i : 0] + k);
        turn(x);
        SKUA_UNROLL for (int i = 0; i < L; ++i) {
          if (first + L <= MR) x[i].store(to + i * MR + first);
          else x[i].store_n(to + i * MR + first, size_t(MR - first));
        }
      }
    for (; k < depth; ++k, to += MR)
      for (int r = 0; r < MR; ++r) to[r] = row[r][k];
  }
}

template <int NV, Core core, int r = 1, int v = 1> constexpr void fill_packed(GemmTileTable& table) {
  table.at[(v - 1) * kPackedRows + r - 1] = packed_tile<r, v, core>;
  if constexpr (v == NV) table.row[r - 1] = packed_tile<r, v, core>;
  if constexpr (r < kPackedRows) fill_packed<NV, core, r + 1, v>(table);
  else {
    table.even[v - 1] = packed_even_tiles<v, core>;
    table.even_rows[v - 1] = kPackedRows;
    if constexpr (v < NV) fill_packed<NV, core, 1, v + 1>(table);
  }
}
template <int NV, Core core> constexpr GemmTileTable make_packed_table() {
  GemmTileTable table = {};
  fill_packed<NV, core>(table);
  table.a = table.b = element_of<PackedElement>;
  table.half_sums = sizeof(PackedElement) == 2;
  table.pack_a = pack_rows;
  return table;
}
template <int NV, Core core> constexpr GemmTileTable packed_table_of = make_packed_table<NV, core>();
template <int NV, Core core> const GemmTileTable& packed_table() { return packed_table_of<NV, core>; }

// A line of a table of kernels; mr is kPackedRows.
#define SKUA_PACKED_TILE(type, mr, nr, core, suffix, why)                                                                                                    \
  {"gemm_" #type "_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, nr, Packed::L,                   \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(packed_table<nr / Packed::L, Core::core>)), Element::type, Core::core},

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
