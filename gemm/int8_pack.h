// Packing of bytes: panels of B with the sums of their columns, and rows of A widened to 16 bits.
#pragma once
#include "dispatch/kernel.h"
#include "gemm/gemm_kernel.h"
#include "gemm/int8_dot.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// vpdpbusd: A of s8 goes with B packed as u8.
template <bool unsigned_b> struct OtherOperand { using type = uint8_t; using packed = int8_t; };
template <> struct OtherOperand<true> { using type = int8_t; using packed = uint8_t; };

// Columns [j0, j1) of panel[(k / kr * width + j) * kr + k % kr] = b[k*stride_k + j*stride_n] for k in [k0, depth),
// zeros behind columns and depth; flip: + 128, or - 128 of u8.
template <class S, bool flip, size_t kr>
void pack_each(size_t k0, size_t depth, size_t j0, size_t j1, size_t columns, size_t width, const S* b, size_t stride_k,
               size_t stride_n, uint8_t* panel) {
  for (size_t k = k0; k < depth; k += kr)
    for (size_t j = j0; j < j1; ++j) {
      uint8_t* to = panel + k * width + j * kr;
      const S* x = b + k * stride_k + j * stride_n;
      for (size_t i = 0; i < kr; ++i)
        to[i] = k + i < depth && j < columns ? uint8_t(uint8_t(x[i * stride_k]) ^ (flip ? 0x80 : 0)) : uint8_t(0);
    }
}
#if defined(__SSE2__) && !defined(SKUA_ISA_scalar)
// Blocks of 16 rows and columns or so in registers, what is left one by one.
template <class S, bool flip, size_t kr>
void pack_blocks(size_t depth, size_t columns, size_t width, const S* b, size_t stride_k, size_t stride_n,
                 uint8_t* panel) {
  const __m128i bit = _mm_set1_epi8(flip ? -128 : 0);
  const auto load = [](const S* p) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  };
  const auto store = [bit](uint8_t * p, __m128i x) __attribute__((always_inline)) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_xor_si128(x, bit));
  };
  if (stride_n == 1) {  // rows of B: kr of them interleaved
    const size_t whole = columns / 16 * 16, deep = depth / kr * kr;
    for (size_t k = 0; k < deep; k += kr)
      for (size_t j = 0; j < whole; j += 16) {
        const S* x = b + k * stride_k + j;
        uint8_t* to = panel + k * width + j * kr;
        const __m128i r0 = load(x), r1 = load(x + stride_k), low = _mm_unpacklo_epi8(r0, r1),
                      high = _mm_unpackhi_epi8(r0, r1);
        if constexpr (kr == 2) {
          store(to, low);
          store(to + 16, high);
        } else {
          const __m128i r2 = load(x + 2 * stride_k), r3 = load(x + 3 * stride_k), low2 = _mm_unpacklo_epi8(r2, r3),
                        high2 = _mm_unpackhi_epi8(r2, r3);
          store(to, _mm_unpacklo_epi16(low, low2));
          store(to + 16, _mm_unpackhi_epi16(low, low2));
          store(to + 32, _mm_unpacklo_epi16(high, high2));
          store(to + 48, _mm_unpackhi_epi16(high, high2));
        }
      }
    pack_each<S, flip, kr>(0, deep, whole, width, columns, width, b, stride_k, stride_n, panel);
    return pack_each<S, flip, kr>(deep, depth, 0, width, columns, width, b, stride_k, stride_n, panel);
  }
  if constexpr (kr == 4)
    if (stride_k == 1) {  // columns of B: four by four groups transposed
      const size_t whole = columns / 4 * 4, deep = depth / 16 * 16;
      for (size_t j = 0; j < whole; j += 4)
        for (size_t k = 0; k < deep; k += 16) {
          const S* x = b + j * stride_n + k;
          uint8_t* to = panel + k * width + j * 4;
          const __m128i c0 = load(x), c1 = load(x + stride_n), c2 = load(x + 2 * stride_n), c3 = load(x + 3 * stride_n);
          const __m128i a0 = _mm_unpacklo_epi32(c0, c1), a1 = _mm_unpacklo_epi32(c2, c3),
                        a2 = _mm_unpackhi_epi32(c0, c1), a3 = _mm_unpackhi_epi32(c2, c3);
          store(to, _mm_unpacklo_epi64(a0, a1));
          store(to + 4 * width, _mm_unpackhi_epi64(a0, a1));
          store(to + 8 * width, _mm_unpacklo_epi64(a2, a3));
          store(to + 12 * width, _mm_unpackhi_epi64(a2, a3));
        }
      pack_each<S, flip, kr>(0, deep, whole, width, columns, width, b, stride_k, stride_n, panel);
      return pack_each<S, flip, kr>(deep, depth, 0, width, columns, width, b, stride_k, stride_n, panel);
    }
  pack_each<S, flip, kr>(0, depth, 0, width, columns, width, b, stride_k, stride_n, panel);
}
// Sums of columns of a packed panel, as of bytes before they were flipped: a row of ones times the panel.
template <class S, bool flip, size_t kr>
void sum_panel(size_t depth, size_t width, const uint8_t* panel, int32_t* sums) {
  // whose products take what is in the panel
  using A = typename OtherOperand<flip == (element_of<S> == Element::s8)>::type;
  const I32 ones = I32::set1(kr == 2 ? 0x00010001 : 0x01010101);
  const size_t steps = (depth + kr - 1) / kr;
  const int32_t off = flip ? (element_of<S> == Element::s8 ? -128 : 128) * int32_t(depth) : 0;
  size_t j = 0;
  for (; j + L <= width; j += L) {
    I32 sum = I32::load(sums + j) + I32::set1(off);
    for (size_t k = 0; k < steps; ++k)
      sum = dot<A>(sum, ones, load_b(reinterpret_cast<const char*>(panel) + (k * width + j) * kr));
    sum.store(sums + j);
  }
  using P = typename OtherOperand<flip == (element_of<S> == Element::s8)>::packed;
  for (; j < width; ++j) {  // of a set with shorter vectors
    sums[j] += off;
    for (size_t k = 0; k < steps; ++k)
      for (size_t i = 0; i < kr; ++i) sums[j] += P(panel[(k * width + j) * kr + i]);
  }
}
#endif
template <class S, bool flip, size_t kr>
void pack_bytes(size_t depth, size_t columns, size_t width, const void* from, size_t stride_k, size_t stride_n,
                void* panel, int32_t* sums) {
  const S* b = static_cast<const S*>(from);
  uint8_t* to = static_cast<uint8_t*>(panel);
#if defined(__SSE2__) && !defined(SKUA_ISA_scalar)
  pack_blocks<S, flip, kr>(depth, columns, width, b, stride_k, stride_n, to);
  if (sums) sum_panel<S, flip, kr>(depth, width, to, sums);
#else
  pack_each<S, flip, kr>(0, depth, 0, width, columns, width, b, stride_k, stride_n, to);
  for (size_t k = 0; sums && k < depth; ++k)
    for (size_t j = 0; j < columns; ++j) sums[j] += b[k * stride_k + j * stride_n];
#endif
}

#if !defined(SKUA_DOT_IN_PLACE) && defined(__SSE2__)
// 2 L bytes to 16 bits.
SKUA_INL void widen_bytes(const int8_t* p, int16_t* to) {
  load_b(reinterpret_cast<const char*>(p)).store(reinterpret_cast<int32_t*>(to));
}
SKUA_INL void widen_bytes(const uint8_t* p, int16_t* to) {
#if defined(SKUA_ISA_avx512)
  _mm512_storeu_si512(to, _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(SKUA_ISA_avx2)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)), _mm_setzero_si128()));
#endif
}
#endif

#define SKUA_PACK_BYTES_KERNEL(from, S, to, flip, kr)                                                                  \
  {"gemm_pack_" #from "_" #to "_" #kr "_" SKUA_STRING(SKUA_ISA), "gemm", "panels of B, and the sums of their columns", \
   KernelKind::gemm_pack, Isa::SKUA_ISA, pack_variant(Element::to, kr), 0, 0, L,                                       \
   reinterpret_cast<AnyCode>(static_cast<GemmPackBytesFn>(pack_bytes<S, flip, kr>)), Element::from},
// The formats of the set's tiles; in portable C++ those of all sets of the architecture, and rows of A that are stored
// transposed (1).
#define SKUA_PACK_2 SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 2) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, s8, true, 2)
#define SKUA_PACK_4 SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 4) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, s8, true, 4)
#define SKUA_PACK_4_UNSIGNED \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, u8, true, 4) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, u8, false, 4)
#if defined(SKUA_ISA_scalar)
#define SKUA_PACK_BYTES                                                                                         \
  SKUA_PACK_BYTES_KERNEL(s8, int8_t, s8, false, 1) SKUA_PACK_BYTES_KERNEL(u8, uint8_t, u8, false, 1) SKUA_PACK_4
#elif defined(SKUA_DOT_IN_PLACE)
#define SKUA_PACK_BYTES SKUA_PACK_4 SKUA_PACK_4_UNSIGNED
#else
#define SKUA_PACK_BYTES SKUA_PACK_2
#endif

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
