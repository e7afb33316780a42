// Elements of 16 bits: how F32 loads and stores f16 and bf16. Each instruction set gives four functions on L elements
// of 16 bits in the low halves of an I32's lanes (load_u16, load_u16_n, store_u16, store_u16_n) and, where it has
// instructions for them, the conversions; the others are done here in integers.
#pragma once

namespace skua {
namespace SKUA_ISA {
namespace {

SKUA_INL F32 widen_bf16(I32 h) { return as_f32(shl<16>(h)); }
SKUA_INL I32 narrow_bf16(F32 x) {
  const I32 u = as_i32(x);
  return shr_logical<16>(
      select(is_nan(x), u | I32::set1(0x400000), u + I32::set1(0x7fff) + (shr_logical<16>(u) & I32::set1(1))));
}

#ifndef SKUA_SIMD_CONVERTS_F16
// No arithmetic on denormals: it may be slow, or take them for zero.
SKUA_INL F32 widen_f16(I32 h) {
  const I32 m = h & I32::set1(0x7fff), sign = shl<16>(h ^ m), digits = shl<13>(m);
  const I32 tiny = as_i32(to_f32(m) * F32::set1(0x1p-24f));
  const I32 special = digits | select(gt(m, I32::set1(0x7c00)), I32::set1(0x7fc00000), I32::set1(0x7f800000));
  const I32 finite = select(gt(m, I32::set1(0x3ff)), digits + I32::set1(112 << 23), tiny);
  return as_f32(sign | select(gt(m, I32::set1(0x7bff)), special, finite));
}
SKUA_INL I32 narrow_f16(F32 x) {
  const I32 u = as_i32(x), a = u & I32::set1(0x7fffffff), sign = shr_logical<16>(u ^ a);
  const I32 normal = shr_logical<13>(a + I32::set1(0xfff - (112 << 23)) + (shr_logical<13>(a) & I32::set1(1)));
  const I32 tiny = round_i32(as_f32(a) * F32::set1(0x1p24f));
  const I32 special = select(gt(a, I32::set1(0x7f800000)), I32::set1(0x7e00) | (shr_logical<13>(a) & I32::set1(0x3ff)),
                             I32::set1(0x7c00));
  const I32 finite = select(gt(a, I32::set1(0x387fffff)), normal, tiny);
  return sign | select(gt(a, I32::set1(0x477fefff)), special, finite);
}
SKUA_INL F32 load_as(const f16* p) { return widen_f16(load_u16(&p->bits)); }
SKUA_INL F32 load_as_n(const f16* p, size_t n) { return widen_f16(load_u16_n(&p->bits, n)); }
SKUA_INL F32 broadcast_as(const f16* p) { return F32::set1(widen(*p)); }
SKUA_INL void store_as(F32 x, f16* p) { store_u16(narrow_f16(x), &p->bits); }
SKUA_INL void store_as_n(F32 x, f16* p, size_t n) { store_u16_n(narrow_f16(x), &p->bits, n); }
#endif
#ifndef SKUA_SIMD_CONVERTS_BF16
#ifndef SKUA_SIMD_WIDENS_BF16
SKUA_INL F32 load_as(const bf16* p) { return widen_bf16(load_u16(&p->bits)); }
SKUA_INL F32 load_as_n(const bf16* p, size_t n) { return widen_bf16(load_u16_n(&p->bits, n)); }
#endif
SKUA_INL F32 broadcast_as(const bf16* p) { return as_f32(I32::set1(int32_t(uint32_t(p->bits) << 16))); }
#if defined(SKUA_ISA_neon_bf16)
SKUA_INL void store_as(F32 x, bf16* p) { vst1_u16(&p->bits, vreinterpret_u16_bf16(vcvt_bf16_f32(x.v))); }
#else
SKUA_INL void store_as(F32 x, bf16* p) { store_u16(narrow_bf16(x), &p->bits); }
#endif
SKUA_INL void store_as_n(F32 x, bf16* p, size_t n) { store_u16_n(narrow_bf16(x), &p->bits, n); }
#endif
#define SKUA_STORAGE(T)                                                          \
  SKUA_INL F32 F32::load(const T* p) { return load_as(p); }                      \
  SKUA_INL F32 F32::load_n(const T* p, size_t n) { return load_as_n(p, n); }     \
  SKUA_INL F32 F32::broadcast(const T* p) { return broadcast_as(p); }            \
  SKUA_INL void F32::store(T* p) const { store_as(*this, p); }                   \
  SKUA_INL void F32::store_n(T* p, size_t n) const { store_as_n(*this, p, n); }
SKUA_STORAGE(f16)
SKUA_STORAGE(bf16)
#undef SKUA_STORAGE

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
