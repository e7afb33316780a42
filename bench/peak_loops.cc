// Compiled once per instruction set. Twelve independent chains hide the latency of a multiply-add (4 cycles, two a
// cycle) on every core so far, and fit 16 registers with the two factors.
#include "bench/peak.h"
#include "dispatch/kernel.h"
#include "gemm/ahead.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

volatile float sink;

double multiply_add(size_t rounds) {
  F32 chain[12];
  SKUA_UNROLL for (int i = 0; i < 12; ++i) chain[i] = F32::set1(float(i));
  F32 factor = F32::set1(0.999f), term = F32::set1(0.001f);
  pin(factor);
  pin(term);
  for (size_t r = 0; r < rounds; ++r)
    SKUA_UNROLL for (int i = 0; i < 12; ++i) {
      chain[i] = fma(chain[i], factor, term);
      pin(chain[i]);
    }
  F32 all = chain[0];
  SKUA_UNROLL for (int i = 1; i < 12; ++i) all = all + chain[i];
  float lanes[F32::L];
  all.store(lanes);
  sink = lanes[0];
  return double(rounds) * 12 * F32::L;
}

// by_pages: and asks for what comes later, as few rows of a product may.
template <bool by_pages> void read(const float* x, size_t count) {
  constexpr size_t kRow = 64;
  const RowAhead ahead(0, true, by_pages);
  F32 sums[8];
  SKUA_UNROLL for (int i = 0; i < 8; ++i) sums[i] = F32::zero();
  for (size_t at = 0; at < count; at += 2 * kRow)
    SKUA_UNROLL for (size_t row = at; row < at + 2 * kRow; row += kRow) {
      if (by_pages && kByPages) ahead.ask<4>(x + row);
      SKUA_UNROLL for (size_t i = (row - at) / F32::L, end = i + kRow / F32::L; i < end; ++i)
        sums[i % 8] = sums[i % 8] + F32::load(x + at + i * F32::L);
    }
  SKUA_UNROLL for (int i = 1; i < 8; ++i) sums[0] = sums[0] + sums[i];
  float lanes[F32::L];
  sums[0].store(lanes);
  sink = lanes[0];
}

void copy(const float* x, float* y, size_t count) {
  for (size_t at = 0; at < count; at += 4 * F32::L) {
    F32 v[4];
    SKUA_UNROLL for (int i = 0; i < 4; ++i) v[i] = F32::load(x + at + i * F32::L);
    SKUA_UNROLL for (int i = 0; i < 4; ++i) {
      pin(v[i]);
      v[i].store(y + at + i * F32::L);
    }
  }
}

template <class T> void widen(const uint16_t* x, size_t count) {
  const T* p = reinterpret_cast<const T*>(x);
  for (size_t at = 0; at < count; at += 4 * F32::L)
    SKUA_UNROLL for (int i = 0; i < 4; ++i) {
      F32 v = F32::load(p + at + i * F32::L);
      if constexpr (F32::L == 1) asm volatile("" : "+m"(v));
      else pin(v);
    }
}

template <class T> void narrow(uint16_t* y, size_t count) {
  T* p = reinterpret_cast<T*>(y);
  F32 v = F32::set1(1.2345f);
  for (size_t at = 0; at < count; at += 4 * F32::L)
    SKUA_UNROLL for (int i = 0; i < 4; ++i) {
      pin(v);
      v.store(p + at + i * F32::L);
    }
}

}  // namespace
}  // namespace SKUA_ISA

extern const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA);
const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA) = {
    SKUA_STRING(SKUA_ISA),
    Element::f32,
    SKUA_ISA::multiply_add,
    {SKUA_ISA::read<false>, SKUA_ISA::read<true>},
    SKUA_ISA::copy,
    {{SKUA_ISA::widen<f16>, SKUA_ISA::narrow<f16>}, {SKUA_ISA::widen<bf16>, SKUA_ISA::narrow<bf16>}}};

}  // namespace skua
