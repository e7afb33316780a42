// Rows of A quantised as they are read, and tiles of weights in four bits. The formulas and the layout of a panel:
// dynamic_kernel.h.
//
//   acc[r][v] += 4 bytes of a row * 4 nibbles of L columns, of the low nibbles, then of the high ones; a block's sums
//   are exact in 32 bits, then scaled and added in f32
//
// Few rows take nibbles apart in registers, any number of them where logic has ports beside those of products. Else a
// part of the panel becomes bytes once, in L1, for many; tiles keep their scaled sums in registers beside the block's
// where there are as many, or are as tall as the registers allow and keep them in memory: what a block adds to each is
// then read, added and written by ports that products do not wait for. A block of 32 takes eight products of a vector,
// a conversion and a multiply-add.
// Products and nibbles of each instruction set: nibble_dot.h.
#include "dispatch/kernel.h"
#include "dispatch/requantize.h"
#include "gemm/ahead.h"
#include "gemm/dynamic_kernel.h"
#include "gemm/float_ends.h"
#include "gemm/nibble_dot.h"
#include "gemm/no_addresses.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// ---- rows of A ------------------------------------------------------------------------------------------------------
template <class T>
void quantize(size_t k, const void* from, bool is_unsigned, void* to, size_t padded, GemmRowQuant& row, size_t block,
              int32_t* sums) {
  const T* x = static_cast<const T*>(from);
  F32 least = F32::zero(), most = F32::zero(), least2 = least, most2 = most;
  size_t i = 0;
  for (; i + 2 * L <= k; i += 2 * L) {
    const F32 v = F32::load(x + i), w = F32::load(x + i + L);
    least = min_fast(least, v);
    most = max_fast(most, v);
    least2 = min_fast(least2, w);
    most2 = max_fast(most2, w);
  }
  for (; i < k; i += L) {
    const F32 v = F32::load_n(x + i, k - i < size_t(L) ? k - i : size_t(L));
    least = min_fast(least, v);
    most = max_fast(most, v);
  }
  const float low = min_of(min_fast(least, least2)), high = max_of(max_fast(most, most2));
  float range = high - low;
  range = range > 1e-30f ? range : 1e-30f;  // zeros, or as good as
  range = range < 3e38f ? range : 3e38f;    // beyond it the ends are cut off
  // zeros give the bias: sums of blocks are rounded, and what is left of them has no size to be small beside
  row.scale = high > low ? range * (1.0f / 254) : 0;
  const float inverse = 254.0f / range;
  const int32_t zero = skua::nearest_small(-127.0f - low * inverse);
  row.zero = zero + (is_unsigned ? 128 : 0);
  const F32 by = F32::set1(inverse), lowest = F32::set1(float(-127 - zero)), highest = F32::set1(float(127 - zero));
  const I32 bias = I32::set1(row.zero);
  auto* q = static_cast<uint8_t*>(to);
  const auto steps = [&](size_t at) __attribute__((always_inline)) {
    const F32 v = at + L <= k ? F32::load(x + at) : at < k ? F32::load_n(x + at, k - at) : F32::zero();
    return nearest_small(clamp_high(clamp_low(v * by, lowest), highest));
  };
  for (i = 0; i < padded; i += 4 * L) {
    if (i + 4 * L <= padded) {
      I32 y[4];
      SKUA_UNROLL for (int j = 0; j < 4; ++j) y[j] = steps(i + size_t(j) * L) + bias;
      if (is_unsigned) store_bytes(y, q + i);
      else store_bytes(y, reinterpret_cast<int8_t*>(q + i));
    } else {
      for (size_t j = i; j < padded; j += L) (steps(j) + bias).store(q + j);
    }
  }
  for (size_t b = 0; sums && b < padded; b += block) {
    int32_t sum = 0;
    for (i = b; i < b + block; ++i) sum += (is_unsigned ? int32_t(q[i]) : int32_t(int8_t(q[i]))) - row.zero;
    *sums++ = sum;
  }
}

// ---- tiles ----------------------------------------------------------------------------------------------------------
// Scaled sums of a tile: in registers next to the sums of a block, or in memory where those take most registers.
template <int MR, int NV> struct InRegisters {
  F32 y[MR][NV];
  SKUA_INL F32 get(int r, int v) const { return y[r][v]; }
  SKUA_INL void set(int r, int v, F32 x) { y[r][v] = x; }
};
template <int NV> struct InMemory {
  float* y;
  explicit SKUA_INL InMemory(float* room) : y(room) { asm("" : "+r"(y) : : "memory"); }
  SKUA_INL F32 get(int r, int v) const { return F32::load(y + (r * NV + v) * L); }
  SKUA_INL void set(int r, int v, F32 x) {
    x.store(y + (r * NV + v) * L);
    asm("" : "+r"(y) : : "memory");  // else gcc loads all of them first, and spills them
  }
};

// A block's sums, scaled.
template <int MR, int NV, class Y>
SKUA_INL void scale_block(const GemmNibbles& t, const char* scales, size_t block, const I32 (&sums)[MR][NV], Y& y) {
  const auto of = [&](auto* p) __attribute__((always_inline)) {
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const F32 scale = F32::load(p + v * L);
      SKUA_UNROLL for (int r = 0; r < MR; ++r) y.set(r, v, fma(to_f32(sums[r][v]), scale, y.get(r, v)));
    }
    if (!t.sums) return;
    F32 zeros[NV];
    SKUA_UNROLL for (int v = 0; v < NV; ++v)
      zeros[v] = F32::load(reinterpret_cast<const int8_t*>(p + NV * L) + v * L) * F32::load(p + v * L);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
      const F32 sum = F32::set1(kFactor * float(t.sums[size_t(r) * t.sums_step + block]));
      SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, fnma(sum, zeros[v], y.get(r, v)));
    }
  };
  // whatever types of maps the build has
  if (t.scale_type == Element::f16) return of(reinterpret_cast<const f16*>(scales));
  if (t.scale_type == Element::bf16) return of(reinterpret_cast<const bf16*>(scales));
  of(reinterpret_cast<const float*>(scales));
}

// Products of MR rows and the NV vectors of a panel; `bytes`: of what unpack() wrote.
template <bool bytes, int MR, int NV, class Y> SKUA_INL void add_blocks(const GemmNibbles& t, Y& y) {
  constexpr int kBases = (MR + 2) / 3;  // rows are a base, and one or two steps: what an address can say
  constexpr size_t line = NV * L * (bytes ? 8 : 4);
  const RowAhead ahead(8192, true, t.pages);  // bytes: from memory most cores' prefetchers alone do not keep up
  const char *b = bytes ? t.bytes : t.b, *scales = t.b + NV * L * (t.block / 2);
  [[maybe_unused]] const char* next = t.next;
  const size_t block_bytes = weights_block_bytes(Element::s4, NV * L, t.block, t.scale_type, t.sums != nullptr);
  const uint8_t* a[kBases];
  const size_t step = t.a_step;
  SKUA_UNROLL for (int i = 0; i < kBases; ++i) {
    a[i] = t.a + size_t(i * 3) * step;
    if constexpr (MR > 3) asm("" : "+r"(a[i]));
  }
  const auto row = [&](int r) __attribute__((always_inline)) { return a[r / 3] + size_t(r % 3) * step; };
  constexpr bool kTotals = kChunk && (bytes || MR * NV > 12);
  // sums of chunks before the last, where registers are for one
  [[maybe_unused]] alignas(64) int32_t room[kTotals ? MR * NV * L : 1];
  [[maybe_unused]] int32_t* totals = room;
  if constexpr (kTotals) asm("" : "+r"(totals) : : "memory");  // else gcc does not see that what is read was written
  for (size_t block = 0; block < t.blocks; ++block, scales += block_bytes) {
    I32 sums[MR][NV];
    if constexpr (!kTotals && kChunk)
      SKUA_UNROLL for (int r = 0; r < MR; ++r)
        SKUA_UNROLL for (int v = 0; v < NV; ++v)
          sums[r][v] = I32::set1(0);
    [[maybe_unused]] bool started = false;
    size_t left = t.block / 8;
    do {
      size_t steps = kChunk && left > size_t(kChunk) ? size_t(kChunk) : left;
      left -= steps;
      Chunk acc[MR][NV];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = none();
      for (; steps; --steps, b += line) {
        const auto* p = reinterpret_cast<const int32_t*>(b);
        I32 w[NV];
        if constexpr (!bytes && L >= 8)
          if (MR > 1 || !t.fetched_by_core) ahead.ask<NV * L / 16, true>(b);
        if constexpr (bytes && L == 16)
          if (next) __builtin_prefetch(next, 0, 2), next += 64;
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = bytes ? I32::load(p + v * L) : low(I32::load(p + v * L));
          if constexpr (MR > 1) hold(w[v]);  // else gcc loads and masks them again for every row
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          const I32 x = I32::set1(word(row(r)));
          SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot(acc[r][v], x, w[v]);
        }
        if constexpr (MR > 3) asm("" : "+r"(p));  // loaded again: registers are for sums
        SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          w[v] = bytes ? I32::load(p + (NV + v) * L) : high(I32::load(p + v * L));
          if constexpr (MR > 1) hold(w[v]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          const I32 x = I32::set1(word(row(r) + 4));
          SKUA_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = dot(acc[r][v], x, w[v]);
        }
        SKUA_UNROLL for (int i = 0; i < kBases; ++i) a[i] += 8;
      }
      if constexpr (kTotals) {
        SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          int32_t* const total = totals + (r * NV + v) * L;
          sums[r][v] = add_chunk(started ? I32::load(total) : I32::set1(0), acc[r][v]);
          if (left) sums[r][v].store(total);
        }
        started = true;
      } else {
        SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) {
          if constexpr (kChunk == 0) sums[r][v] = acc[r][v];
          else sums[r][v] = add_chunk(sums[r][v], acc[r][v]);
        }
      }
      // else the scaling's copies spill inside the loop
      SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) hold(sums[r][v]);
    } while (left);
    if constexpr (!bytes && kByPages) if (t.pages) ahead.ask<4, true>(scales);
    scale_block<MR, NV>(t, scales, block, sums, y);
    if constexpr (!bytes) b += block_bytes - NV * L * (t.block / 2);
    no_addresses<32>();
  }
}

// Rows of `step` scaled sums to C.
__attribute__((noinline)) void finish_rows(const GemmNibbles& t, const float* y, size_t step, size_t rows) {
  const FloatEnd end(t);
  for (size_t r = 0; r < rows; ++r, y += step) {
    const F32 zero = F32::set1(float(t.rows[r].zero)), scale = F32::set1(t.rows[r].scale);
    for (size_t j = 0; j < t.n; j += L)
      end(fnma(zero, F32::load(t.column_sums + j), F32::load(y + j) * F32::set1(1 / kFactor)) * scale, t.c[r], j);
  }
}

template <int MR, int NV> void tile(const GemmNibbles& t) {
  alignas(64) float room[MR * NV * L];
  if constexpr (MR * NV <= 12) {
    InRegisters<MR, NV> y;
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, F32::zero());
    add_blocks<false, MR, NV>(t, y);
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        y.get(r, v).store(room + (r * NV + v) * L);
  } else {
    InMemory<NV> y(room);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, F32::zero());
    add_blocks<false, MR, NV>(t, y);
  }
  finish_rows(t, room, NV * L, MR);
}

template <int MR, int NV> void add_tile(const GemmNibbles& t) {
  InMemory<NV> memory(t.y);
  if (!t.more)
    SKUA_UNROLL for (int r = 0; r < MR; ++r)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        memory.set(r, v, F32::zero());
  if constexpr (!kChunk && 2 * MR * NV + NV + 1 <= F32::registers) {
    InRegisters<MR, NV> y;
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) y.set(r, v, memory.get(r, v));
    add_blocks<true, MR, NV>(t, y);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int v = 0; v < NV; ++v) memory.set(r, v, y.get(r, v));
  } else {
    add_blocks<true, MR, NV>(t, memory);
  }
}
template <int NV> void unpack(const char* b, size_t steps, char* to) {
  const auto* p = reinterpret_cast<const int32_t*>(b);
  for (auto* q = reinterpret_cast<int32_t*>(to); steps; --steps, p += NV * L, q += 2 * NV * L)
    SKUA_UNROLL for (int v = 0; v < NV; ++v) {
      const I32 x = I32::load(p + v * L);
      low(x).store(q + v * L);
      high(x).store(q + (NV + v) * L);
    }
}
template <int NV> void finish(const GemmNibbles& t, size_t rows) { finish_rows(t, t.y, NV * L, rows); }

// Tables: at most `MR` rows; AR: of bytes.
template <int AR, int NV, int r> constexpr void fill(GemmNibblesTable& table) {
  table.add[r - 1] = add_tile<r, NV>;
  if constexpr (r > 1 && (AR < 3 || r > AR - AR / 3)) fill<AR, NV, r - 1>(table);
}
template <int NV, int r> constexpr void fill_few(GemmNibblesTable& table) {
  table.at[r - 1] = tile<r, NV>;
  if constexpr (r > 1) fill_few<NV, r - 1>(table);
}
template <int MR, int NV, int AR> constexpr GemmNibblesTable make_table() {
  GemmNibblesTable table = {};
  fill_few<NV, MR>(table);
  if constexpr (AR > 0) {
    fill<AR, NV, AR>(table);
    table.unpack = unpack<NV>;
    table.finish = finish<NV>;
    table.add_rows = AR;
  }
  table.unsigned_a = kUnsigned;
  return table;
}
template <int MR, int NV, int AR> constexpr GemmNibblesTable table_of = make_table<MR, NV, AR>();
template <int MR, int NV, int AR> const GemmNibblesTable& nibbles_table() { return table_of<MR, NV, AR>; }

#define SKUA_NIBBLES(mr, nv, ar, why)                                                          \
  {"gemm_s4_" #mr "x" SKUA_STRING(SKUA_NIBBLE_COLUMNS) "_" SKUA_STRING(SKUA_ISA), "gemm", why, \
   KernelKind::gemm_nibbles, Isa::SKUA_ISA, 0, mr, nv * L, L,                                  \
   reinterpret_cast<AnyCode>(static_cast<GemmNibblesTableFn>(nibbles_table<mr, nv, ar>)), Element::s4},
#define SKUA_QUANTIZE(T, type)                                                                \
  {"gemm_quantize_" #type "_" SKUA_STRING(SKUA_ISA), "gemm", "a row's range, then its bytes", \
   KernelKind::gemm_quantize, Isa::SKUA_ISA, 0, 0, 0, L,                                      \
   reinterpret_cast<AnyCode>(static_cast<GemmQuantizeFn>(quantize<T>)), Element::type},
const Kernel kernels[] = {
#if defined(SKUA_ISA_avx512vnni)
#define SKUA_NIBBLE_COLUMNS 64
    SKUA_NIBBLES(6, 4, 3,
                 "6x4 vectors: 24 sums + 4 of nibbles + 2 of 32 registers; 3x4, of bytes too: 12 sums + 12 scaled + 4 "
                 "of nibbles + 2")
    SKUA_NIBBLES(4, 4, 0, "any number of rows, three or four at a time, where logic has ports beside those of products")
#elif defined(SKUA_ISA_avx512)
#define SKUA_NIBBLE_COLUMNS 64
    SKUA_NIBBLES(6, 4, 6,
                 "6x4 vectors: 24 sums + 4 of nibbles + 2 of 32 registers, of bytes too; 3x4: 12 sums + 12 scaled + 4 "
                 "of nibbles + 2")
#elif defined(SKUA_ISA_avxvnni) || defined(SKUA_ISA_avx2)
#define SKUA_NIBBLE_COLUMNS 16
    SKUA_NIBBLES(2, 2, 6,
                 "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers; of bytes 6x2: 12 sums + 2 + 1")
#elif defined(SKUA_ISA_sse41) || defined(SKUA_ISA_sse2)
#define SKUA_NIBBLE_COLUMNS 8
    SKUA_NIBBLES(2, 2, 4,
                 "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers; of bytes 4x2: 8 sums + 2 + 1")
#elif defined(SKUA_ISA_scalar)
#define SKUA_NIBBLE_COLUMNS 4
    SKUA_NIBBLES(1, 4, 2, "portable C++")
#elif defined(SKUA_ISA_neon_dot)
#define SKUA_NIBBLE_COLUMNS 16
    SKUA_NIBBLES(3, 4, 6,
                 "12 sums + 12 scaled sums + 4 of bytes + 4 of nibbles of 32 registers; of bytes 6x4: 24 sums + 4 + 1")
#elif defined(__aarch64__)
#define SKUA_NIBBLE_COLUMNS 16
    SKUA_NIBBLES(3, 4, 3,
                 "12 sums + 12 scaled sums + 4 of bytes + 4 of nibbles of 32 registers; of bytes 3x4: sums in 16 bits "
                 "take twice the registers")
#elif defined(SKUA_ISA_neon32_dot)
#define SKUA_NIBBLE_COLUMNS 8
    SKUA_NIBBLES(2, 2, 4,
                 "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers; of bytes 4x2: 8 sums + 2 + 1")
#else
#define SKUA_NIBBLE_COLUMNS 8
    SKUA_NIBBLES(2, 2, 2, "4 sums + 4 scaled sums + 2 of bytes + 2 of nibbles of 16 registers; of bytes likewise")
#endif
#if !defined(SKUA_ISA_avx512vnni) && !defined(SKUA_ISA_avxvnni) && !defined(SKUA_ISA_neon_dot) && \
    !defined(SKUA_ISA_neon32_dot)
    SKUA_FOR_TYPES(SKUA_QUANTIZE)
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm_dynamic, kernels)
}  // namespace skua
