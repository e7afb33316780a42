// Packing of bytes: panels of B with the sums of their columns, and rows of A widened to 16 bits.
#pragma once
#include "dispatch/kernel.h"
#include "gemm/gemm_kernel.h"
#include "gemm/int8_dot.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// panel[(k / kr * width + j) * kr + k % kr] = b[k*stride_k + j*stride_n], zeros behind columns and depth; flip: + 128, or - 128 of u8.
template <class S, bool flip, size_t kr> void pack_bytes(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n, void* panel, int32_t* sums) {
  const S* b = static_cast<const S*>(from);
  uint8_t* to = static_cast<uint8_t*>(panel);
  constexpr uint8_t bit = flip ? 0x80 : 0;
  for (size_t k = 0; k < depth; k += kr, to += width * kr) {
    const size_t steps = depth - k < kr ? depth - k : kr;
    for (size_t j = 0; j < columns; ++j) {
      const S* x = b + k * stride_k + j * stride_n;
      int32_t sum = 0;
      for (size_t i = 0; i < kr; ++i) {
        const S q = i < steps ? x[i * stride_k] : S(0);
        to[j * kr + i] = i < steps ? uint8_t(uint8_t(q) ^ bit) : uint8_t(0);
        sum += q;
      }
      if (sums) sums[j] += sum;
    }
    for (size_t j = columns * kr; j < width * kr; ++j) to[j] = 0;
  }
}

#if !defined(SKUA_DOT_IN_PLACE) && defined(__SSE2__)
// 2 L bytes to 16 bits.
SKUA_INL void widen_bytes(const int8_t* p, int16_t* to) { load_b(reinterpret_cast<const char*>(p)).store(reinterpret_cast<int32_t*>(to)); }
SKUA_INL void widen_bytes(const uint8_t* p, int16_t* to) {
#if defined(SKUA_ISA_avx512)
  _mm512_storeu_si512(to, _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(SKUA_ISA_avx2)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), _mm_setzero_si128()));
#endif
}
#endif

#define SKUA_PACK_BYTES_KERNEL(from, S, to, flip, kr)                                                                                                                       \
  {"gemm_pack_" #from "_" #to "_" #kr "_" SKUA_STRING(SKUA_ISA), "gemm", "panels of B, and the sums of their columns", KernelKind::gemm_pack, Isa::SKUA_ISA, \
   pack_variant(Element::to, kr), 0, 0, L, reinterpret_cast<AnyCode>(static_cast<GemmPackBytesFn>(pack_bytes<S, flip, kr>)), Element::from},
#if defined(SKUA_ISA_scalar)
// Every format of this architecture's tiles; and rows of A that are stored transposed (1).
#define SKUA_PACK_BYTES                                                                                        \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 1) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, u8, false, 1)           \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 2) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, s8, true, 2)            \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 4) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, s8, true, 4)            \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, u8, true, 4) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, u8, false, 4)            \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 8) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, s8, true, 8)
#else
#define SKUA_PACK_BYTES
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
