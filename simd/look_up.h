// Tables of 256 bytes: y[i] = table[(x[i] ^ flip) + move], the index modulo 256; y may be x. Flip and move, constants
// or not, turn a byte into what the table is of.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

#if defined(SKUA_ISA_avx512vbmi)
// One operation finds one of 128 entries; the highest bit of the index says which half of the table it is in.
SKUA_INL size_t look_up_vectors(size_t n, const uint8_t* x, uint8_t* y, const uint8_t* entries, uint8_t flip,
                                uint8_t move) {
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip)), moves = _mm512_set1_epi8(static_cast<char>(move));
  const __m512i t0 = _mm512_loadu_si512(entries), t1 = _mm512_loadu_si512(entries + 64),
                t2 = _mm512_loadu_si512(entries + 128), t3 = _mm512_loadu_si512(entries + 192);
  const auto found = [&](__m512i v) __attribute__((always_inline)) {
    v = _mm512_add_epi8(_mm512_xor_si512(v, flips), moves);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), _mm512_permutex2var_epi8(t0, v, t1),
                                  _mm512_permutex2var_epi8(t2, v, t3));
  };
  size_t i = 0;
  for (; i + 64 <= n; i += 64) _mm512_storeu_si512(y + i, found(_mm512_loadu_si512(x + i)));
  if (i < n) {
    const __mmask64 rest = ~__mmask64(0) >> (64 - (n - i));
    _mm512_mask_storeu_epi8(y + i, rest, found(_mm512_maskz_loadu_epi8(rest, x + i)));
  }
  return n;
}
#elif defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avx512)
// Sixteen shuffles, one for each 16 entries, of x less 16 from each to the next. A shuffle gives 0 where its index has
// the highest bit set, else an entry: x in row r meets the last eight rows up to r (the subtractions saturate from the
// ninth on, so that none comes around again), and the exclusive or of what stands there must be row r of the table.
#if defined(SKUA_ISA_avx512)
using Bytes = __m512i;
SKUA_INL Bytes row_of(const uint8_t* p) {
  return _mm512_maskz_broadcast_i32x4(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SKUA_INL Bytes either(Bytes a, Bytes b) { return _mm512_xor_si512(a, b); }
SKUA_INL Bytes shuffled(Bytes t, Bytes x) { return _mm512_shuffle_epi8(t, x); }
SKUA_INL Bytes all_of(uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
SKUA_INL Bytes added(Bytes a, Bytes b) { return _mm512_add_epi8(a, b); }
SKUA_INL Bytes less_16_saturated(Bytes x) { return _mm512_subs_epi8(x, _mm512_set1_epi8(16)); }
SKUA_INL Bytes load_all(const uint8_t* p) { return _mm512_loadu_si512(p); }
SKUA_INL void store_all(Bytes v, uint8_t* p) { _mm512_storeu_si512(p, v); }
#else
using Bytes = __m256i;
SKUA_INL Bytes row_of(const uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SKUA_INL Bytes either(Bytes a, Bytes b) { return _mm256_xor_si256(a, b); }
SKUA_INL Bytes shuffled(Bytes t, Bytes x) { return _mm256_shuffle_epi8(t, x); }
SKUA_INL Bytes all_of(uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
SKUA_INL Bytes added(Bytes a, Bytes b) { return _mm256_add_epi8(a, b); }
SKUA_INL Bytes less_16_saturated(Bytes x) { return _mm256_subs_epi8(x, _mm256_set1_epi8(16)); }
SKUA_INL Bytes load_all(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
SKUA_INL void store_all(Bytes v, uint8_t* p) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
#endif
template <int> struct Many {};
SKUA_INL size_t look_up_vectors(size_t n, const uint8_t* x, uint8_t* y, const uint8_t* entries, uint8_t flip,
                                uint8_t move) {
  if (n < sizeof(Bytes)) return 0;
  const Bytes flips = all_of(flip), moves = all_of(move), less_16 = all_of(240);
  Bytes t[16];
  SKUA_UNROLL for (int r = 0; r < 16; ++r) {
    t[r] = row_of(entries + 16 * r);
    if (r) t[r] = either(t[r], row_of(entries + 16 * (r - 1)));
    if (r >= 8) t[r] = either(t[r], t[r - 8]);
  }
  size_t i = 0;
  const auto vectors = [&]<int many>(Many<many>) __attribute__((always_inline)) {
    for (; i + many * sizeof(Bytes) <= n; i += many * sizeof(Bytes)) {
      Bytes v[many], sum[many];
      SKUA_UNROLL for (int u = 0; u < many; ++u) {
        v[u] = added(either(load_all(x + i + u * sizeof(Bytes)), flips), moves);
        sum[u] = shuffled(t[0], v[u]);
      }
      SKUA_UNROLL for (int r = 1; r < 16; ++r)
        SKUA_UNROLL for (int u = 0; u < many; ++u) {
          v[u] = r <= 8 ? added(v[u], less_16) : less_16_saturated(v[u]);
          sum[u] = either(sum[u], shuffled(t[r], v[u]));
          // else gcc takes what is left of x from x itself, and adds up all rows at the end, by way of the stack
          if constexpr (many > 1) asm("" : "+v"(v[u]), "+v"(sum[u]));
        }
      SKUA_UNROLL for (int u = 0; u < many; ++u) store_all(sum[u], y + i + u * sizeof(Bytes));
    }
  };
  if constexpr (F32::registers == 16) vectors(Many<4>());  // the rows are in memory: read once for four
  vectors(Many<1>());
  return i;
}
#elif defined(__aarch64__) && !defined(SKUA_ISA_scalar)
// 64 entries at a time; an index beyond them leaves what stands there.
SKUA_INL size_t look_up_vectors(size_t n, const uint8_t* x, uint8_t* y, const uint8_t* entries, uint8_t flip,
                                uint8_t move) {
  const uint8x16x4_t t0 = vld1q_u8_x4(entries), t1 = vld1q_u8_x4(entries + 64), t2 = vld1q_u8_x4(entries + 128),
                     t3 = vld1q_u8_x4(entries + 192);
  const uint8x16_t next = vdupq_n_u8(64), flips = vdupq_n_u8(flip), moves = vdupq_n_u8(move);
  size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    uint8x16_t v = vaddq_u8(veorq_u8(vld1q_u8(x + i), flips), moves), found = vqtbl4q_u8(t0, v);
    v = vsubq_u8(v, next);
    found = vqtbx4q_u8(found, t1, v);
    v = vsubq_u8(v, next);
    found = vqtbx4q_u8(found, t2, v);
    v = vsubq_u8(v, next);
    vst1q_u8(y + i, vqtbx4q_u8(found, t3, v));
  }
  return i;
}
#else
SKUA_INL size_t look_up_vectors(size_t, const uint8_t*, uint8_t*, const uint8_t*, uint8_t, uint8_t) { return 0; }
#endif

SKUA_INL void look_up(size_t n, const uint8_t* x, uint8_t* y, const uint8_t* table, uint8_t flip = 0,
                      uint8_t move = 0) {
  size_t i = look_up_vectors(n, x, y, table, flip, move);
  const auto at = [&](size_t k) { return table[static_cast<uint8_t>((x[k] ^ flip) + move)]; };
  for (; i + 4 <= n; i += 4) {
    const uint8_t a = at(i), b = at(i + 1), c = at(i + 2), d = at(i + 3);
    y[i] = a; y[i + 1] = b; y[i + 2] = c; y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] = at(i);
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
