// GEMM tiles of bfmmla: every operand register is a pair of rows of A or of columns of B, four steps of the depth each;
// every accumulator two by two sums in f32.
//
//   packed A  [depth / 4][row pairs][r0k0..3 r1k0..3]  written by pack_a into the workspace, once for all panels of B
//   packed B  [depth / 4][width][4]                    the format of kr = 4: [c0k0..3 c1k0..3] is a register as it lies
//   acc[p][q] = [r0c0 r0c1 r1c0 r1c1]                  rows come apart at the end: the lower and the upper halves of
//                                                      two neighbours
//
// Registers, 8x12: 24 accumulators + 4 of A + 2 of B of 32; 10 loads feed 24 instructions of 32 multiply-adds. The
// instruction rounds to odd, twice for four products, and takes denormals for zero.
#include "dispatch/kernel.h"
#include "gemm/even_lines.h"
#include "gemm/gemm_kernel.h"
#include "gemm/half_finish.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr int L = F32::L;

// Stays where it is written: gcc 12 hoists the loads of a step over its multiplies, more than there are registers for.
SKUA_INL void multiply(float32x4_t& acc, uint16x8_t a, uint16x8_t b) {
  asm volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(acc) : "w"(a), "w"(b));
}

// The usual end of a whole tile: bias and clamp in pairs, rounded by the instruction; [r0 c0 c1 | r1 c0 c1 | r0 c2 c3 |
// ...] of 16 bits then come apart as words.
template <int MP, int NQ> SKUA_INL void put_pairs(const GemmTile& t, float32x4_t (&acc)[MP][NQ]) {
  const float* bias = t.bias ? t.bias : kNoBias;
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  SKUA_UNROLL for (int q = 0; q < NQ; ++q) {
    const float32x2_t two = vld1_f32(bias + 2 * q);
    const F32 b = {vcombine_f32(two, two)};
    SKUA_UNROLL for (int p = 0; p < MP; ++p) acc[p][q] = clamp_high(clamp_low(F32{acc[p][q]} + b, low), high).v;
  }
  SKUA_UNROLL for (int p = 0; p < MP; ++p) {
    uint32x4_t h[NQ / 2];
    SKUA_UNROLL for (int i = 0; i < NQ / 2; ++i)
      h[i] = vreinterpretq_u32_bf16(vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(acc[p][2 * i]), acc[p][2 * i + 1]));
    SKUA_UNROLL for (int row = 0; row < 2; ++row) {
      uint16_t* c = &static_cast<bf16*>(t.c[2 * p + row])->bits;
      SKUA_UNROLL for (int i = 0; i + 1 < NQ / 2; i += 2)
        vst1q_u16(c + i * 4, vreinterpretq_u16_u32(row ? vuzp2q_u32(h[i], h[i + 1]) : vuzp1q_u32(h[i], h[i + 1])));
      if constexpr (NQ / 2 % 2) {
        const uint32x4_t x = h[NQ / 2 - 1];
        vst1_u16(c + (NQ / 2 - 1) * 4, vget_low_u16(vreinterpretq_u16_u32(row ? vuzp2q_u32(x, x) : vuzp1q_u32(x, x))));
      }
    }
  }
}

// The first `rows` rows of a panel of MR; NV vectors of four columns. plain: all of them, with the usual end.
template <int MP, int NV, int MR>
__attribute__((noinline)) void pairs(const GemmTile& t, const bf16* panel, size_t rows, bool plain) {
  float32x4_t acc[MP][2 * NV];
  SKUA_UNROLL for (int p = 0; p < MP; ++p) SKUA_UNROLL for (int q = 0; q < 2 * NV; ++q) acc[p][q] = vdupq_n_f32(0);
  const size_t steps = (t.k + 3) / 4;
  for (size_t s = 0; s < t.segment_count; ++s) {
    const uint16_t* a = &panel[t.segments[s].a * MR].bits;
    const uint16_t* b = &(static_cast<const bf16*>(t.b) + t.segments[s].b / 4 * t.ldb)->bits;
    const size_t ldb = t.ldb;
    for (size_t left = steps; left; --left, a += 4 * MR, b += ldb) {
      uint16x8_t x[MP];
      SKUA_UNROLL for (int p = 0; p < MP; ++p) x[p] = vld1q_u16(a + p * 8);
      SKUA_UNROLL for (int q = 0; q < 2 * NV; q += 2) {  // two vectors by one load
        const uint16x8_t w0 = vld1q_u16(b + q * 8), w1 = vld1q_u16(b + q * 8 + 8);
        SKUA_UNROLL for (int p = 0; p < MP; ++p) multiply(acc[p][q], x[p], w0);
        SKUA_UNROLL for (int p = 0; p < MP; ++p) multiply(acc[p][q + 1], x[p], w1);
      }
    }
  }
  if (MP * 2 == MR && NV == 3 && plain) return put_pairs(t, acc);
  float sums[2 * MP][NV * L];
  SKUA_UNROLL for (int p = 0; p < MP; ++p) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
    const float32x4_t x = acc[p][2 * v], y = acc[p][2 * v + 1];
    vst1q_f32(&sums[2 * p][v * L], vcombine_f32(vget_low_f32(x), vget_low_f32(y)));
    vst1q_f32(&sums[2 * p + 1][v * L], vcombine_f32(vget_high_f32(x), vget_high_f32(y)));
  }
  finish_tile<bf16, NV>(t, sums[0], rows);
}

template <int R, int NV, int MR>
void tile(const GemmTile& t) {
  pairs<(R + 1) / 2, NV, MR>(t, static_cast<const bf16*>(t.a[0]), R, R == MR && ends_plain(t, NV * L, Element::bf16));
}

// MR rows, one below the other, in each group.
template <int NV, int MR> void even_tiles(const GemmTile& t) {
  GemmTile one = t;
  EvenLines<MR, false> rows(t, sizeof(bf16));
  rows.point(one);
  const bf16* panel = static_cast<const bf16*>(t.a[0]);
  const bool plain = ends_plain(t, NV * L, Element::bf16);
  for (size_t i = 0; i < t.groups; ++i, panel += MR * t.a_step) {
    rows.tile();
    pairs<MR / 2, NV, MR>(one, panel, MR, plain);
  }
}

// Four elements from k on, zeros behind the depth.
SKUA_INL uint16x4_t four(const bf16* row, size_t k, size_t depth) { return first_u16(&row[k].bits, depth - k); }

template <int MR>
void pack_a(size_t rows, const void* const* a, const GemmSegment* segments, size_t segment_count, size_t depth,
            void* panel) {
  uint16_t* to = static_cast<uint16_t*>(panel);
  for (size_t s = 0; s < segment_count; ++s) {
    const bf16* row[MR];
    // any values for rows that are not there
    for (size_t r = 0; r < MR; ++r) row[r] = static_cast<const bf16*>(a[r < rows ? r : 0]) + segments[s].a;
    size_t k = 0;
    for (; k + 8 <= depth; k += 8, to += 8 * MR)
      SKUA_UNROLL for (int p = 0; p < MR / 2; ++p) {
        const uint64x2_t x = vreinterpretq_u64_u16(vld1q_u16(&row[2 * p][k].bits)),
                         y = vreinterpretq_u64_u16(vld1q_u16(&row[2 * p + 1][k].bits));
        vst1q_u16(to + p * 8, vreinterpretq_u16_u64(vzip1q_u64(x, y)));
        vst1q_u16(to + (MR / 2 + p) * 8, vreinterpretq_u16_u64(vzip2q_u64(x, y)));
      }
    for (; k < depth; k += 4, to += 4 * MR)
      for (int p = 0; p < MR / 2; ++p)
        vst1q_u16(to + p * 8, vcombine_u16(four(row[2 * p], k, depth), four(row[2 * p + 1], k, depth)));
  }
}

SKUA_INL uint16_t bits_of(bf16 x) { return x.bits; }
SKUA_INL uint16_t bits_of(float x) {
  bf16 y;
  narrow(x, y);
  return y.bits;
}
// [k / 4][width][4] of b[k * stride_k + j * stride_n].
template <class T>
void pack_b(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n,
            void* panel) {
  const T* b = static_cast<const T*>(from);
  uint16_t* to = static_cast<uint16_t*>(panel);
  for (size_t k = 0; k < depth; k += 4, to += width * 4) {
    size_t j = 0;
    if (k + 4 <= depth && stride_n == 1)
      for (; j + 4 <= columns; j += 4) {
        uint16x4_t r[4];
        SKUA_UNROLL for (size_t i = 0; i < 4; ++i) {
          bf16 h[4];
          F32::load(b + (k + i) * stride_k + j).store(h);
          r[i] = vld1_u16(&h[0].bits);
        }
        vst4_u16(to + j * 4, (uint16x4x4_t{{r[0], r[1], r[2], r[3]}}));
      }
    if (k + 4 <= depth && stride_k == 1)
      for (; j < columns; ++j) F32::load(b + k + j * stride_n).store(reinterpret_cast<bf16*>(to) + j * 4);
    for (; j < width; ++j)
      for (size_t i = 0; i < 4; ++i)
        to[j * 4 + i] = j < columns && k + i < depth ? bits_of(b[(k + i) * stride_k + j * stride_n]) : uint16_t{0};
  }
}

template <int MR, int NV, int r = 1, int v = 1> constexpr void fill(GemmTileTable& table) {
  table.at[(v - 1) * MR + r - 1] = tile<r, v, MR>;
  if constexpr (v == NV) table.row[r - 1] = tile<r, v, MR>;
  if constexpr (r < MR) fill<MR, NV, r + 1, v>(table);
  else {
    table.even[v - 1] = even_tiles<v, MR>;
    table.even_rows[v - 1] = MR;
    if constexpr (v < NV) fill<MR, NV, 1, v + 1>(table);
  }
}
template <int MR, int NV> constexpr GemmTileTable make_table() {
  GemmTileTable table = {};
  fill<MR, NV>(table);
  table.a = table.b = Element::bf16;
  table.kr = table.pack_kr = 4;
  table.rate = 4;
  table.any_c = table.lines = true;
  table.pack_a = pack_a<MR>;
  return table;
}
template <int MR, int NV> constexpr GemmTileTable table_of = make_table<MR, NV>();
template <int MR, int NV> const GemmTileTable& tile_table() { return table_of<MR, NV>; }

#define SKUA_TILE(mr, nr, why)                                                                                       \
  {"gemm_bf16_" #mr "x" #nr "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, mr, nr, \
   L, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<mr, nr / L>)), Element::bf16},
#define SKUA_PACK(from, T)                                                                                       \
  {"gemm_pack_" #from "_bf16x4_" SKUA_STRING(SKUA_ISA), "gemm", "panels of B, four steps of the depth together", \
   KernelKind::gemm_pack, Isa::SKUA_ISA, pack_variant(Element::bf16, 4), 0, 0, L,                                \
   reinterpret_cast<AnyCode>(static_cast<GemmPackFn>(pack_b<T>)), Element::from},
const Kernel kernels[] = {
    SKUA_TILE(8, 12, "24 accumulators + 4 of A + 2 of B of 32 registers; 10 loads feed 24 bfmmla")
    SKUA_PACK(f32, float)
    SKUA_PACK(bf16, bf16)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
