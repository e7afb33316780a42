// Rows of f16 and bf16 beside the products of f32 tiles: widened a tile ahead, narrowed a tile later. Included by the
// units of this family.
#pragma once
#include "gemm/gemm_kernel.h"
#include "gemm/step.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Results of half types are narrowed a tile later, between the products of the next one: at the end of their own tile
// the conversions too would wait for its last sums, in queues that the next tile's multiply-adds have to pass (Zen 5:
// 3x32 with bias and relu6 takes 20 cycles beside the products, of f32 6, so 8). Where rows of B are kept for all rows
// of A, gcc has no register left for it.
template <int MR, int NV> constexpr bool kNarrowsLater = F32::L == 8 && kByColumn<MR, NV>;
template <int MR, int NV> struct Finished {
  alignas(64) float rows[MR * NV * F32::L];
  void* c[MR];
  template <class C> SKUA_INL void narrow_as() const {
    const float* from = rows;
    for (int r = 0; r < MR; ++r, from += NV * F32::L)
      SKUA_UNROLL for (int v = 0; v < NV; ++v)
        F32::load(from + v * F32::L).store(static_cast<C*>(c[r]) + v * F32::L);
  }
  SKUA_INL void narrow(Element type) const {
    if (type == Element::f16) return narrow_as<f16>();
    narrow_as<bf16>();
  }
  __attribute__((noinline)) void narrow_now(Element type) const { narrow(type); }
};

// Rows of halves that tiles of f32 read are widened a tile ahead, between the products of the one before: conversions
// have ports of their own there (Zen 3: three vectors with their stores beside 24 multiply-adds cost nothing). Tiles of
// AVX2 that do are functions apart: with both in one gcc keeps a sum on the stack, 5 to 9% of 3x32 at depths of 24 to
// 64. AVX-512 has registers enough.
constexpr bool kWidens = F32::L >= 8 && F32::fused, kWidensApart = kWidens && F32::L == 8;
template <bool apart>
SKUA_INL bool widens_rows(const GemmTile& t) {
  return apart || (kWidens && !kWidensApart && t.halves);
}
struct Halves {
  const char* from;
  float* to;
  ptrdiff_t from_bytes, to_step;  // from a row to the next
  size_t rows;  // of a tile; behind the last one none
  Element type;
  template <class T> SKUA_INL void vectors_as(size_t k) const {
    const char* x = from + k * sizeof(T);
    float* y = to + k;
    // in registers: for all the compiler knows, a store changes them
    const ptrdiff_t x_step = from_bytes, y_step = to_step;
    for (size_t left = rows; left; --left, x += x_step, y += y_step) F32::load(reinterpret_cast<const T*>(x)).store(y);
  }
  template <class T> SKUA_INL void rest_as(size_t k, size_t depth) const {
    const char* x = from;
    float* y = to;
    for (size_t r = 0; r < rows; ++r, x += from_bytes, y += to_step) {
      size_t i = k;
      for (; i + F32::L <= depth; i += F32::L) F32::load(reinterpret_cast<const T*>(x) + i).store(y + i);
      if (i < depth) F32::load_n(reinterpret_cast<const T*>(x) + i, depth - i).store_n(y + i, depth - i);
    }
  }
  SKUA_INL void vectors(size_t k) const {  // one of each row
    if (type == Element::f16) vectors_as<f16>(k);
    else vectors_as<bf16>(k);
  }
  __attribute__((noinline)) void rest(size_t k, size_t depth) const {
    if (type == Element::f16) rest_as<f16>(k, depth);
    else rest_as<bf16>(k, depth);
  }
};

// The steps of a tile in one loop; or, beside rows to widen, as many at a time as a vector of each of these has
// columns. Returns the columns that are widened then.
template <class Steps> SKUA_INL size_t steps_beside(const Halves* halves, size_t depth, Steps steps) {
  constexpr size_t L = F32::L;
  size_t k = 0;
  for (size_t left = depth, some; left; left -= some) {
    some = halves && left > L ? L : left;
    steps(some);
    if (halves && some == L) halves->vectors(k), k += L;
  }
  return k;
}

// The rows of the next tile of a run of t.groups; those of the first are widened before anything is multiplied.
template <int MR> struct HalvesAhead : Halves {
  float* first;
  size_t room, all, index = 0;
  SKUA_INL HalvesAhead(const GemmTile& t, const float* a0)
      : Halves{static_cast<const char*>(t.halves),
               const_cast<float*>(a0),
               t.halves_step * ptrdiff_t(sizeof(f16)),
               t.a_step,
               MR,
               t.halves_type},
        first(const_cast<float*>(a0)),
        room(t.room),
        all(t.room) {}
  // Rows that are not widened yet are of 16 bits: half of the tiles fetch them.
  SKUA_INL const char* fetched() {
    return index++ & 1 ? reinterpret_cast<const char*>(to) : from + 2 * MR * from_bytes;
  }
  // Where the next tile's rows are, if there is one.
  SKUA_INL const float* next(bool is) {
    to += MR * to_step;
    if (--room == 0) to = first, room = all;
    from += MR * from_bytes;
    rows = is ? MR : 0;
    return to;
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
