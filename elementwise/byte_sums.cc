// Sums and products of two maps of bytes, for VNNI: `vpdpbusd` with a one in one place takes every fourth byte of a
// register out, widens it and takes the zero point off, in one operation and without the port of shuffles; what four
// registers of results saturate to as they become bytes again is most of the clamp. 38 operations for 64 sums where
// byte_kernels.cc takes 56.
#include "elementwise/byte_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

template <class T> constexpr bool is_signed = T(-1) < T(0);

// Elements 4 l + i of 64 bytes, less the zero point, as floats: exact.
template <class T> struct Vector {
  const T* p;
  __m512i less;
  Vector(const T* from, int32_t zero) : p(from), less(_mm512_set1_epi32(-zero)) {}
  SKUA_INL __m512i bytes(size_t i, __mmask64 m) const { return _mm512_maskz_loadu_epi8(m, p + i); }
  template <int i> SKUA_INL F32 part(__m512i x) const {
    const __m512i place = _mm512_set1_epi32(1 << 8 * i);
    const __m512i v = is_signed<T> ? _mm512_dpbusd_epi32(less, place, x) : _mm512_dpbusd_epi32(less, x, place);
    return to_f32(I32{v});
  }
};
struct Scalar {
  F32 v;
  SKUA_INL __m512i bytes(size_t, __mmask64) const { return _mm512_set1_epi32(0); }
  template <int> SKUA_INL F32 part(__m512i) const { return v; }
};

// large: results may leave 32 bits; below them the conversion gives the least integer, which is right.
template <bool large> SKUA_INL __m512i rounded(F32 y, [[maybe_unused]] F32 high) {
  if constexpr (large) y = clamp_high(y, high);
  return round_i32(y).v;
}
template <class T, bool large, class X, class Y, class F>
void row(size_t n, const X& x, const Y& y, T* z, const Requantize& to, F f) {
  constexpr __mmask64 all = ~__mmask64(0);
  const int first = int(to.low) + to.zero_point, last = int(to.high) + to.zero_point;
  const bool bounded = last - first < 255;
  const __m512i zero = _mm512_set1_epi16(int16_t(to.zero_point)), low = _mm512_set1_epi8(char(first)),
                high = _mm512_set1_epi8(char(last));
  const F32 most = F32::set1(to.high);
  const __m512i order =
      _mm512_maskz_broadcast_i32x4(0xffff, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const auto turn = [&](size_t i, __mmask64 m) __attribute__((always_inline)) {
    const __m512i a = x.bytes(i, m), b = y.bytes(i, m);
    const __m512i q0 = rounded<large>(f(x.template part<0>(a), y.template part<0>(b)), most),
                  q1 = rounded<large>(f(x.template part<1>(a), y.template part<1>(b)), most);
    const __m512i q2 = rounded<large>(f(x.template part<2>(a), y.template part<2>(b)), most),
                  q3 = rounded<large>(f(x.template part<3>(a), y.template part<3>(b)), most);
    const __m512i even = _mm512_adds_epi16(_mm512_packs_epi32(q0, q1), zero),
                  odd = _mm512_adds_epi16(_mm512_packs_epi32(q2, q3), zero);
    __m512i q = is_signed<T> ? _mm512_packs_epi16(even, odd) : _mm512_packus_epi16(even, odd);
    if (bounded)
      q = is_signed<T> ? _mm512_maskz_min_epi8(all, _mm512_maskz_max_epi8(all, q, low), high)
                       : _mm512_maskz_min_epu8(all, _mm512_maskz_max_epu8(all, q, low), high);
    return _mm512_maskz_shuffle_epi8(all, q, order);
  };
  size_t i = 0;
  for (; n - i >= 64; i += 64) _mm512_storeu_si512(z + i, turn(i, all));
  if (i == n) return;
  const __mmask64 rest = all >> (64 - (n - i));
  _mm512_mask_storeu_epi8(z + i, rest, turn(i, rest));
}
template <class T, bool large, class F> SKUA_INL void rows_as(const BinaryBytes& r, F f) {
  const T *x = static_cast<const T*>(r.x), *y = static_cast<const T*>(r.y);
  T* z = static_cast<T*>(r.z);
  for (size_t i = 0; i < r.rows; ++i, x += r.x_step, y += r.y_step, z += r.z_step) {
    if (r.form == BinaryForm::vectors) row<T, large>(r.n, Vector<T>(x, r.x_zero), Vector<T>(y, r.y_zero), z, r.to, f);
    else row<T, large>(r.n, Vector<T>(x, r.x_zero), Scalar{F32::set1(float(*y - r.y_zero))}, z, r.to, f);
  }
}
template <class T, class F> SKUA_INL void rows(const BinaryBytes& r, float most, F f) {
  if (most < 0x1p31f) rows_as<T, false>(r, f);
  else rows_as<T, true>(r, f);
}
// The scalar, if one operand is, as y: sums and products are the same the other way round.
SKUA_INL BinaryBytes ordered(const BinaryBytes& r) {
  if (r.form != BinaryForm::x_scalar) return r;
  return {r.n,      r.rows, BinaryForm::y_scalar, r.y, r.x, r.z, r.y_step, r.x_step, r.z_step, r.b, r.a, r.c, r.y_zero,
          r.x_zero, r.to};
}
SKUA_INL float amount(float x) { return x < 0 ? -x : x; }
template <class T> void add_bytes(const BinaryBytes& any) {
  const BinaryBytes r = ordered(any);
  const F32 a = F32::set1(r.a), b = F32::set1(r.b);
  rows<T>(
      r, 256 * (amount(r.a) + amount(r.b)),
      [ a, b ](F32 x, F32 y) __attribute__((always_inline)) { return x * a + y * b; });
}
template <class T> void mul_bytes(const BinaryBytes& r) {
  const F32 a = F32::set1(r.a);
  rows<T>(ordered(r), 65536 * amount(r.a), [a](F32 x, F32 y) __attribute__((always_inline)) { return x * y * a; });
}

const Kernel kernels[] = {
#define SKUA_BYTES(T, type)                                                                                            \
  {"add_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise",                                                              \
   "two factors, one sum, one rounding; bytes widened by products with 1", KernelKind::binary_bytes, Isa::SKUA_ISA, 0, \
   0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<BinaryBytesFn>(add_bytes<T>)), element_of<T>},                  \
  {"mul_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise",                                                              \
   "an exact product, one factor, one rounding; bytes widened by products with 1", KernelKind::binary_bytes,           \
   Isa::SKUA_ISA, 1, 0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<BinaryBytesFn>(mul_bytes<T>)),                \
   element_of<T>},
    SKUA_FOR_INT8(SKUA_BYTES)
#undef SKUA_BYTES
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(bytes, kernels)
}  // namespace skua
