// Multiply-adds of AMX's registers, of bytes or of bf16: four chains, as many as two registers of either factor feed.
#include "bench/peak.h"
#include "dispatch/kernel.h"
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

namespace skua {
namespace SKUA_ISA {
namespace {

#if SKUA_ISA_amx_int8
#define SKUA_PRODUCT _tile_dpbssd
constexpr Element kElement = Element::s8;
constexpr int kDeep = 64;
#else
#define SKUA_PRODUCT _tile_dpbf16ps
constexpr Element kElement = Element::bf16;
constexpr int kDeep = 32;
#endif

double multiply_add(size_t rounds) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  for (size_t r = 0; r < rounds; ++r) {
    SKUA_PRODUCT(0, 4, 6);
    SKUA_PRODUCT(1, 4, 7);
    SKUA_PRODUCT(2, 5, 6);
    SKUA_PRODUCT(3, 5, 7);
  }
  _tile_release();
  return double(rounds) * 4 * 16 * 16 * kDeep;
}

}  // namespace
}  // namespace SKUA_ISA

extern const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA);
const bench::PeakLoops SKUA_PASTE(bench_peak, SKUA_ISA) = {
    SKUA_STRING(SKUA_ISA), SKUA_ISA::kElement, SKUA_ISA::multiply_add, {}, nullptr, {}};

}  // namespace skua
