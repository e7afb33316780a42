// Products of bf16 in AMX's registers, the tiles of amx_tiles.h: a step is 32 deep, packed B has pairs of the depth.
//
//   sum[r][j] += (a[r][0] b[0][j] + a[r][2] b[2][j] + ... + a[r][30] b[30][j])
//              + (a[r][1] b[1][j] + ... + a[r][31] b[31][j])     for each step, in f32; denormals count as zero
#define SKUA_ISA_avx512bf16 1  // the vectors beside
#include <type_traits>

#include "gemm/amx_tiles.h"
#include "gemm/finish.h"
#include "gemm/pack.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct Pairs {
  using Row = bf16;
  using Sum = float;
  static constexpr bool kAnyBehind = false;  // 0 times an infinity is none
  template <int sum, int a, int b>
  static SKUA_INL void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
  }
  template <int wide, class C>
  static SKUA_INL void finish(const GemmTile& t, size_t, const float* sums, int rows, const C& c, const int32_t*) {
    void* to[2 * kRows];
    const void* residual[2 * kRows];
    for (int r = 0; r < rows; ++r) to[r] = c(r);
    for (int r = 0; t.residual && r < rows; ++r) residual[r] = c.residual(r);
    (t.c_type == Element::bf16 ? finish_sums_as<bf16> : finish_sums_as<float>)(t, sums, wide * kLanes, size_t(rows), to,
                                                                               t.residual ? residual : nullptr);
  }
  // as finish_plain()
  struct End {
    static bool serves(const GemmTile& t) { return plain_end(t) && !t.residual && !t.hard_swish; }
    const float* bias;
    const bool kind;  // C is f32
    const F32 low, high;
    explicit SKUA_INL End(const GemmTile& t)
        : bias(t.bias), kind(t.c_type == Element::f32), low(F32::set1(t.low)), high(F32::set1(t.high)) {}
    template <int FLOATS> struct Ready {
      using T = std::conditional_t<FLOATS, float, bf16>;
      F32 add[kWide], low, high;
      size_t column;
      SKUA_INL Ready(const End& end, size_t first) : low(end.low), high(end.high), column(first) {
        // -0 changes no sum
        SKUA_UNROLL for (int v = 0; v < kWide; ++v)
          add[v] = end.bias ? F32::load(end.bias + column + v * kLanes) : F32::set1(-0.0f);
      }
      SKUA_INL void one(const TileRows& rows, const float* sums, int r) const {
        T* to = reinterpret_cast<T*>(rows.c[r]) + column;
        SKUA_UNROLL for (int v = 0; v < kWide; ++v)
          clamp_high(clamp_low(F32::load(sums + rows.sums[r] + v * kLanes) + add[v], low), high).store(to + v * kLanes);
      }
      SKUA_INL void two(const TileRows& rows, const float* sums, int r) const {
        one(rows, sums, r);
        one(rows, sums, r + 1);
      }
    };
    template <int FLOATS>
    SKUA_INL void rows_as(const TileRows& of, const float* sums, size_t column, int first, int last) const {
      const Ready<FLOATS> ready(*this, column);
      for (int r = first; r < last; ++r) ready.one(of, sums, r);
    }
    __attribute__((noinline)) void rows(const TileRows& of, const float* sums, size_t column, int first,
                                        int last) const {
      if (kind) rows_as<1>(of, sums, column, first, last);
      else rows_as<0>(of, sums, column, first, last);
      keep_stores();
    }
  };
  static constexpr bool sums_rows(const GemmTile&) { return false; }
  static constexpr const int32_t* terms_of(const GemmTile&, size_t, size_t, const char* const*, int32_t*) {
    return nullptr;
  }
};

template <bool packed> constexpr GemmTileTable make_pairs() {
  GemmTileTable table = make_table<Pairs, packed>();
  table.b = Element::bf16;
  table.rate = 16;  // of two vectors in a cycle: what explain() takes for the roofline
  table.hard_swish = true;
  return table;
}
template <bool packed> constexpr GemmTileTable table_of = make_pairs<packed>();
template <bool packed> const GemmTileTable& tile_table() { return table_of<packed>; }

// A panel: registers of 16 columns, each packed as panels of so many columns are for products of pairs.
template <class S>
void pack_registers(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n,
                    void* panel) {
  constexpr size_t kSteps = kDeep<Pairs>, L = size_t(kLanes);
  const S* b = static_cast<const S*>(from);
  char* to = static_cast<char*>(panel);
  for (size_t k = 0; k < depth; k += kSteps)
    for (size_t j = 0; j < width; j += L, to += kRegister) {
      const size_t deep = depth - k < kSteps ? depth - k : kSteps, n = columns < j       ? 0
                                                                       : columns - j < L ? columns - j
                                                                                         : L;
      pack<S, bf16, 2>(deep, n, L, b + k * stride_k + (n ? j : 0) * stride_n, stride_k, stride_n, to);
      for (size_t i = (deep + 1) / 2; i < kRows; ++i) _mm512_storeu_si512(to + i * kLine, _mm512_setzero_si512());
    }
}

#define SKUA_TILE(packed, suffix, why)                                                                              \
  {"gemm_bf16_16x32" suffix "_" SKUA_STRING(SKUA_ISA), "gemm", why, KernelKind::gemm_tile, Isa::SKUA_ISA, 0, kRows, \
   kWide * kLanes, kLanes, reinterpret_cast<AnyCode>(static_cast<GemmTileTableFn>(tile_table<packed>)),             \
   Element::bf16},
#define SKUA_PACK(from, S)                                                                          \
  {"gemm_pack_" #from "_bf16_32_" SKUA_STRING(SKUA_ISA), "gemm", "panels of B in registers of AMX", \
   KernelKind::gemm_pack, Isa::SKUA_ISA, pack_variant(Element::bf16, kDeep<Pairs>), 0, 0, kLanes,   \
   reinterpret_cast<AnyCode>(static_cast<GemmPackFn>(pack_registers<S>)), Element::from},

const Kernel kernels[] = {
    SKUA_TILE(false, "", "A in place: 4 of sums + 2 of A + 2 of B of 8 registers; two tiles of rows at a time")
    SKUA_TILE(true, "_packed",
              "rows of A packed in the workspace, once for all panels: windows of images whose lines do not fill tiles")
    SKUA_PACK(f32, float) SKUA_PACK(bf16, bf16)
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(gemm, kernels)
}  // namespace skua
