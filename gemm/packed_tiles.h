// Tiles over packed A whose inner loop is assembly: in-order AArch64 cores and AArch32. Included by kernels.cc (f32)
// and f16_kernels.cc (f16).
//
//   packed A  [k][kPackedRows], written by pack_rows(); rows that are not there repeat the first, and are not stored
//   whole tiles: packed_loop() of packed_loops64.h or packed_loops32.h; panels of fewer vectors of columns: the
//   template below, over the same A
//
// Halves write C themselves (half_sums.h); f32 leaves C of another type to the strip. The order of the sums is that of
// the other tiles of the instruction set: f32 in one chain; f16 in chains of at most t.block terms, which are summed in
// f32.
#pragma once
#include "gemm/even_lines.h"
#include "gemm/gemm_kernel.h"
#include "dispatch/kernel.h"
#include "gemm/half_finish.h"
#if defined(SKUA_ISA_neon_fp16) || defined(SKUA_ISA_neon32_fp16)
#include "gemm/half_sums.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_HALF)
using Packed = F16;
using PackedElement = f16;
[[maybe_unused]] SKUA_INL F16 start() { return -F16::zero(); }  // as in f16_kernels.cc
#else
using Packed = F32;
using PackedElement = float;
[[maybe_unused]] SKUA_INL F32 start() { return F32::zero(); }
#endif

#if defined(__aarch64__)
#include "gemm/packed_loops64.h"
constexpr int kPackedRows = 8;
#else
#include "gemm/packed_loops32.h"
constexpr int kPackedRows = 6;
#endif

constexpr int kPackedVectors = kPackedRows == 8 && sizeof(PackedElement) == 4 ? 3 : 2;  // of a whole tile

// One step for row r and those behind it.
template <int r, int NV, int NX>
SKUA_INL void lane_rows(Packed (&c)[NV][kPackedRows], const Packed (&w)[NV], const Packed (&x)[NX]) {
  if constexpr (r < kPackedRows) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) c[v][r] = fma_lane<r % Packed::L>(c[v][r], w[v], x[r / Packed::L]);
    lane_rows<r + 1>(c, w, x);
  }
}
template <int NV>
SKUA_INL void lane_steps(Packed (&c)[NV][kPackedRows], const PackedElement* a, const PackedElement* b, size_t ldb,
                         size_t k) {
  constexpr int L = Packed::L, NX = (kPackedRows + L - 1) / L;
  for (; k; --k, a += kPackedRows, b += ldb) {
    Packed x[NX], w[NV];
    SKUA_UNROLL for (int i = 0; i < NX; ++i)
      x[i] = (i + 1) * L <= kPackedRows ? Packed::load(a + i * L) : Packed::load_n(a + i * L, kPackedRows - i * L);
    SKUA_UNROLL for (int v = 0; v < NV; ++v) w[v] = Packed::load(b + v * L);
    lane_rows<0>(c, w, x);
  }
}

// c = [from] + k steps over one run of A and B. ldb in elements.
template <int NV, Core core>
SKUA_INL void run_steps(Packed (&c)[NV][kPackedRows], const PackedElement* a, const PackedElement* b, size_t ldb,
                        size_t k, const Packed* from) {
  constexpr bool whole = NV == kPackedVectors;
#if defined(SKUA_ISA_neon32)
  // As in the other tiles the depth beyond a multiple of four is multiplied and added with one rounding.
  const size_t by_lane = k / 4 * 4;
  if constexpr (whole) {
    packed_turns<core>(c, a, b, ldb * sizeof(float), by_lane, from);
  } else {
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r)
        c[v][r] = from ? F32::load(reinterpret_cast<const float*>(from + v * kPackedRows + r)) : F32::zero();
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
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      SKUA_UNROLL for (int r = 0; r < kPackedRows; ++r)
        c[v][r] = from ? Packed::load(reinterpret_cast<const PackedElement*>(from + v * kPackedRows + r)) : start();
    lane_steps(c, a, b, ldb, k);
  }
#endif
}

// Segments that follow each other in B too are one run; on AArch32 of f32 if no depth is left over.
SKUA_INL size_t run_of(const GemmTile& t, size_t& s) {
  size_t run = t.k;
  for (++s; s < t.segment_count && t.segments[s].b == t.segments[s - 1].b + t.k &&
            (Packed::L == 8 || kPackedRows == 8 || t.k % 4 == 0);
       ++s)
    run += t.k;
  return run;
}

// The first `rows` rows of the panel of A. kept: sums between runs; moved vector by vector, or the compiler copies all
// of c through memory.
#if defined(SKUA_HALF)
template <int NV, Core core>
__attribute__((noinline)) void packed_rows(const GemmTile& t, const f16* panel, size_t rows) {
  constexpr int MR = kPackedRows, L = F16::L;
  F16 kept[NV * MR];
  float sums[MR * NV * L];
  asm("" : "=m"(sums), "=m"(kept));  // for all the compiler knows; they are read only after they were written
  bool keeps = false, moved = false;
  const bool plain = NV == 2 && rows == MR && ends_plain(t, NV * L, element_of<PackedElement>);
#if defined(__arm__)
  [[maybe_unused]] PackedBlocks part;
  part.sums = sums, part.kept = kept, part.ldb = t.ldb * sizeof(f16);
#endif
  size_t room = t.block;
  for (size_t s = 0; t.k && s < t.segment_count;) {
    const f16 *a = panel + size_t(t.segments[s].a) * MR, *b = static_cast<const f16*>(t.b) + t.segments[s].b * t.ldb;
    for (size_t left = run_of(t, s), k; left; left -= k, a += k * MR, b += k * t.ldb) {
      k = left < room ? left : room;
#if defined(__arm__)
      size_t blocks = 1;  // as many as follow each other
      if (NV == 2 && room == t.block && k == room && k % 8 == 0) k *= blocks = left / room;
      room -= k / blocks;
#else
      room -= k;
#endif
      const bool last = left == k && s == t.segment_count;
      const Then then = last && plain ? Then::finish : last || !room ? Then::move : Then::keep;
#if defined(__arm__)
      if constexpr (NV == 2) {
        part.set<core>(a, b, k / blocks, blocks, keeps ? kept : nullptr, then, moved);
        if (then == Then::finish) part.set_end(t);
        packed_blocks<core>(part);
      } else
#endif
      {
        F16 c[NV][MR];
        run_steps<NV, core>(c, a, b, t.ldb, k, keeps ? kept : nullptr);
        if (then == Then::keep)
          SKUA_UNROLL for (int v = 0; v < NV; ++v)
            SKUA_UNROLL for (int r = 0; r < MR; ++r)
              c[v][r].store(reinterpret_cast<f16*>(kept + v * MR + r));
        else if (NV == 1 || then == Then::move) move_sums<true>(c, moved, sums);
        else finish_plain<true>(t, c, moved, sums);
      }
      if (then == Then::finish) return;
      keeps = then == Then::keep;
      moved = moved || !keeps;
      if (!room) room = t.block;
    }
  }
  if (!moved)
    for (float& sum : sums) sum = 0;
  finish_tile<f16, NV * L / F32::L>(t, sums, rows);
}
#else
template <int NV, Core core>
__attribute__((noinline)) void packed_rows(const GemmTile& t, const float* panel, size_t rows) {
  constexpr int MR = kPackedRows, L = F32::L;
  F32 c[NV][MR], kept[NV * MR];
  float sums[MR][NV * L];
  asm("" : "=m"(sums), "=m"(kept));
  bool keeps = false;
  if (t.load_c) {  // the chain of sums goes on
    for (int v = 0; v < NV; ++v)
      for (size_t r = 0; r < MR; ++r)
        kept[v * MR + int(r)] = r < rows ? columns(static_cast<const float*>(t.c[r]), v, t.n) : F32::zero();
    keeps = true;
  }
  SKUA_UNROLL for (int v = 0; v < NV; ++v)
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      c[v][r] = keeps ? F32::load(reinterpret_cast<const float*>(kept + v * MR + r)) : F32::zero();
  for (size_t s = 0; t.k && s < t.segment_count;) {
    const float *a = panel + size_t(t.segments[s].a) * MR,
                *b = static_cast<const float*>(t.b) + t.segments[s].b * t.ldb;
    const size_t k = run_of(t, s);
    run_steps<NV, core>(c, a, b, t.ldb, k, keeps ? kept : nullptr);
    keeps = s < t.segment_count;
    if (keeps)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        SKUA_UNROLL for (int r = 0; r < MR; ++r)
          c[v][r].store(reinterpret_cast<float*>(kept + v * MR + r));
  }
  if constexpr (NV == kPackedVectors)
    if (rows == MR && ends_plain(t, NV * L, element_of<PackedElement>)) {
      const float* bias = t.bias ? t.bias : kNoBias;
      const F32 low = F32::set1(t.low), high = F32::set1(t.high);
      SKUA_UNROLL for (int v = 0; v < NV; ++v) {
        const F32 b = F32::load(bias + v * L);
        SKUA_UNROLL for (int r = 0; r < MR; ++r)
          clamp_high(clamp_low(c[v][r] + b, low), high).store(static_cast<float*>(t.c[r]) + v * L);
      }
      return;
    }
  SKUA_UNROLL for (int v = 0; v < NV; ++v) SKUA_UNROLL for (int r = 0; r < MR; ++r) c[v][r].store(&sums[r][v * L]);
  if (!t.load_c) return finish_tile<float, NV * L / F32::L>(t, sums[0], rows);
  GemmTile end = t;
  end.load_c = false;
  finish_tile<float, NV * L / F32::L>(end, sums[0], rows);
}
#endif

template <int R, int NV, Core core>
void packed_tile(const GemmTile& t) {
  packed_rows<NV, core>(t, static_cast<const PackedElement*>(t.a[0]), R);
}

#if defined(SKUA_HALF) && defined(__arm__)
// Whole tiles of the usual end and of one run: what they share is set once. False: they are not.
template <Core core> SKUA_INL bool plain_even_tiles(const GemmTile& t) {
  constexpr int MR = kPackedRows, NV = kPackedVectors;
  if (!t.k || !ends_plain(t, NV * F16::L, Element::f16)) return false;
  size_t segments = 0;
  const size_t depth = run_of(t, segments), blocks = depth / t.block, left = depth % t.block;
  if (segments < t.segment_count) return false;
  F16 kept[NV * MR];
  float sums[MR * NV * F16::L];
  GemmTile one;  // what set_end() reads
  one.bias = t.bias, one.low = t.low, one.high = t.high;
  EvenLines<MR, false> rows(t, sizeof(f16));
  rows.point(one);
  PackedBlocks part;
  part.sums = sums, part.kept = kept, part.ldb = t.ldb * sizeof(f16);
  part.set_end(one);
  const f16 *panel = static_cast<const f16*>(t.a[0]) + size_t(t.segments[0].a) * MR,
            *b = static_cast<const f16*>(t.b) + t.segments[0].b * t.ldb;
  const bool two = blocks && left;  // parts
  part.set<core>(panel, b, blocks ? t.block : left, blocks ? blocks : 1, nullptr, two ? Then::move : Then::finish,
                 false);
  for (size_t i = 0; i < t.groups; ++i, panel += MR * t.a_step) {
    rows.tile();
    if (two) part.set<core>(panel, b, t.block, blocks, nullptr, Then::move, false);
    part.a = panel;
    part.blocks = blocks ? blocks : 1;
    packed_blocks<core>(part);
    if (!two) continue;
    part.set<core>(panel + (depth - left) * MR, b + (depth - left) * t.ldb, left, 1, nullptr, Then::finish, true);
    packed_blocks<core>(part);
  }
  return true;
}
#endif

// Whole tiles one below the other.
template <int NV, Core core> void packed_even_tiles(const GemmTile& t) {
  constexpr int MR = kPackedRows;
#if defined(SKUA_HALF) && defined(__arm__)
  if constexpr (NV == kPackedVectors)
    if (plain_even_tiles<core>(t)) return;
#endif
  GemmTile one = t;
  EvenLines<MR, false> rows(t, sizeof(PackedElement));
  rows.point(one);
  const auto* panel = static_cast<const PackedElement*>(t.a[0]);
  for (size_t i = 0; i < t.groups; ++i, panel += MR * t.a_step) {
    rows.tile();
    packed_rows<NV, core>(one, panel, MR);
  }
}

// L steps of L rows at a time, turned in registers.
#if defined(SKUA_HALF) && !defined(__arm__)
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
#elif !defined(SKUA_HALF)
SKUA_INL void turn(F32 (&x)[4]) { transpose(x); }
#endif

void pack_rows(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t depth,
               void* panel) {
  constexpr int MR = kPackedRows, L = Packed::L;
  auto* to = static_cast<PackedElement*>(panel);
  for (size_t s = 0; s < segment_count; ++s) {
    const PackedElement* row[MR];
    for (size_t r = 0; r < MR; ++r) row[r] = static_cast<const PackedElement*>(a[r < rows ? r : 0]) + segments[s].a;
    size_t k = 0;
#if defined(SKUA_HALF) && defined(__arm__)
    // Pairs of rows are words: three words make a step. In assembly, or the compiler moves a pointer for each register
    // stored.
    if (size_t turns = depth / L) {
      const f16 *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3], *r4 = row[4], *r5 = row[5];
      k = turns * L;
#define SKUA_EIGHT                                                                           \
  "vld1.16 {d0, d1}, [%[r0]]!\n vld1.16 {d6, d7}, [%[r1]]!\n vld1.16 {d2, d3}, [%[r2]]!\n"   \
  "vld1.16 {d8, d9}, [%[r3]]!\n vld1.16 {d4, d5}, [%[r4]]!\n vld1.16 {d10, d11}, [%[r5]]!\n" \
  "vzip.16 q0, q3\n vzip.16 q1, q4\n vzip.16 q2, q5\n"                                       \
  "vst3.32 {d0, d2, d4}, [%[to]]!\n vst3.32 {d1, d3, d5}, [%[to]]!\n"                        \
  "vst3.32 {d6, d8, d10}, [%[to]]!\n vst3.32 {d7, d9, d11}, [%[to]]!\n"
      asm volatile("tst %[turns], #1\n beq 1f\n" SKUA_EIGHT "1: lsrs %[turns], %[turns], #1\n beq 3f\n 2:" SKUA_EIGHT
                   "subs %[turns], %[turns], #1\n" SKUA_EIGHT "bne 2b\n 3:\n"
                   : [r0] "+r"(r0), [r1] "+r"(r1), [r2] "+r"(r2), [r3] "+r"(r3), [r4] "+r"(r4), [r5] "+r"(r5),
                     [to] "+r"(to), [turns] "+r"(turns)
                   :
                   : "q0", "q1", "q2", "q3", "q4", "q5", "cc", "memory");
#undef SKUA_EIGHT
    }
#else
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
#endif
    for (; k < depth; ++k, to += MR)
      for (int r = 0; r < MR; ++r) to[r] = row[r][k];
  }
}

template <int NV, Core core, int r = 1, int v = 1> constexpr void fill_packed(GemmTileTable& table) {
  constexpr Core schedule = v == NV ? core : Core::any;  // of whole tiles only
  table.at[(v - 1) * kPackedRows + r - 1] = packed_tile<r, v, schedule>;
  if constexpr (v == NV) table.row[r - 1] = packed_tile<r, v, schedule>;
  if constexpr (r < kPackedRows) fill_packed<NV, core, r + 1, v>(table);
  else {
    table.even[v - 1] = packed_even_tiles<v, schedule>;
    table.even_rows[v - 1] = kPackedRows;
    if constexpr (v < NV) fill_packed<NV, core, 1, v + 1>(table);
  }
}
template <int NV, Core core> constexpr GemmTileTable make_packed_table() {
  GemmTileTable table = {};
  fill_packed<NV, core>(table);
  table.a = table.b = element_of<PackedElement>;
  table.lines = true;
  table.half_sums = table.any_c = sizeof(PackedElement) == 2;
  table.pack_a = pack_rows;
  return table;
}
template <int NV, Core core> constexpr GemmTileTable packed_table_of = make_packed_table<NV, core>();
template <int NV, Core core> const GemmTileTable& packed_table() { return packed_table_of<NV, core>; }

// A line of a table of kernels; mr is kPackedRows.
#define SKUA_PACKED_TILE(type, mr, nr, core, suffix, why)                                                             \
  {"gemm_" #type "_" #mr "x" #nr suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, \
   0, mr, nr, Packed::L,                                                                                              \
   reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(packed_table<nr / Packed::L, Core::core>)), Element::type,  \
   Core::core},

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
