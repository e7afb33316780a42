// Vector types of the instruction set that a unit is compiled for.
//
// A unit is compiled once per instruction set with -DSKUA_ISA=<name> -DSKUA_ISA_<name>=1. Every header below defines
// the same operations on the same two types, F32 and I32 (L lanes of 32 bits), and the mask M32 that goes with both.
// Everything sits in skua::SKUA_ISA::{anonymous} and is always inlined, so no code of one instruction set can be taken
// by the linker for another's.
//
//   F32   L lanes; fused: fma() rounds once; registers: how many vectors fit; by_lane: fma_lane() exists
//         load store            any alignment that a float has
//         load_n store_n        n of 0..L lanes; nothing beyond n floats is touched; lanes past n load as zero
//         the same of f16 and bf16 (dispatch/element.h): widened exactly; rounded to nearest, ties to even; a NaN stays
//           one; denormals are kept
//         the same of int8_t and uint8_t: widened exactly; rounded to nearest, ties to even, beyond the type's range
//           its last value, NaN 0
//         set1 zero broadcast   from a value, zero, from memory
//   + - * / and unary -         division is correctly rounded everywhere
//   quotient(a, b)              a / b within 2 ULP for 2^-126 < |b| < 2^126, of either sign, and a finite a; below
//                               |a| = 2^-100 also within 2^-149 / |b|. By way of a reciprocal where the instruction
//                               set divides slowly or not at all
//   fma(a, b, c)                a * b + c         (rounds twice where !fused)
//   fnma(a, b, c)               c - a * b
//   fma_lane<i>(acc, b, a)      acc + b * a[i]    (only where by_lane; may round twice)
//   min max                     NaN in either operand gives NaN; of zeros of both signs either may come back
//   clamp_low(x, lo)            max(x, lo) for an lo that is not NaN: NaN of x passes; one instruction
//   clamp_high(x, hi)           min(x, hi), likewise
//   min_fast max_fast           no promise about NaN; one instruction
//   abs sqrt copysign(magnitude, sign) is_nan
//   floor ceil round trunc      all of float's range; round is to even; -0 and the sign of results that are zero are
//                               kept
//   lt le gt ge eq ne           ordered (false for NaN), ne is true for NaN; M32 takes & | ~, any(m), all(m)
//   or_nan(m, a)                m | is_nan(a) in one instruction; SSE only
//   select(m, a, b)             m ? a : b, lane by lane, for F32 and I32
//   keep_if(m, a)               m ? a : +0
//   I32: load store load_n store_n set1, + - & | ^, shl<n> shr<n> (arithmetic) shr_logical<n>, eq gt; + and - wrap
//         load load_n of int8_t and uint8_t: widened; store store_n: the lowest byte of each lane
//   requantize: see simd/bytes.h
//   to_i32 (truncates) round_i32 (to even) to_f32; what does not fit an int32 gives an unspecified value
//   as_i32 as_f32               the same bits
//   sum max_of min_of           over the lanes, by halves: lane i with lane i + L/2 first; max_of and min_of pass NaN
//   transpose(F32 (&r)[L])      L x L in registers
//   permute(a, index)           lane l is lane index[l] of a; AVX2 and AVX-512 only
//   pin(x)                      keeps x in a register here: the compiler may not fold it into a memory operand, compute
//                               it again, or move one pin past another
//
// AArch32 NEON treats denormals as zero, in and out, in everything but load, store, bit operations, select, division
// and sqrt.
#pragma once

#ifndef SKUA_ISA
#error "a unit that includes simd/simd.h is compiled with -DSKUA_ISA=<name> and -DSKUA_ISA_<name>=1"
#endif

#include <stddef.h>
#include <stdint.h>

#include "dispatch/element.h"

#define SKUA_INL inline __attribute__((always_inline))

// Of F32, for elements that are wider in arithmetic than in memory; defined in simd/storage.h.
#define SKUA_STORAGE_MEMBERS_OF(T)                    \
  static SKUA_INL F32 load(const T* p);               \
  static SKUA_INL F32 load_n(const T* p, size_t n);   \
  static SKUA_INL F32 broadcast(const T* p);          \
  SKUA_INL void store(T* p) const;                    \
  SKUA_INL void store_n(T* p, size_t n) const;
#define SKUA_STORAGE_MEMBERS                                                                 \
  SKUA_STORAGE_MEMBERS_OF(f16) SKUA_STORAGE_MEMBERS_OF(bf16) SKUA_STORAGE_MEMBERS_OF(int8_t) \
  SKUA_STORAGE_MEMBERS_OF(uint8_t)
// Of I32; defined in simd/bytes.h.
#define SKUA_BYTE_MEMBERS_OF(T)                       \
  static SKUA_INL I32 load(const T* p);               \
  static SKUA_INL I32 load_n(const T* p, size_t n);   \
  SKUA_INL void store(T* p) const;                    \
  SKUA_INL void store_n(T* p, size_t n) const;
#define SKUA_BYTE_MEMBERS SKUA_BYTE_MEMBERS_OF(int8_t) SKUA_BYTE_MEMBERS_OF(uint8_t)

// The first n of 0..8 bytes, in the low bytes of the result; nothing else is read. And the other way.
namespace skua {
namespace SKUA_ISA {
namespace {
SKUA_INL uint64_t first_bytes(const void* from, size_t n) {
  const uint8_t* p = static_cast<const uint8_t*>(from);
  if (n >= 8) {
    uint64_t all;
    __builtin_memcpy(&all, p, 8);
    return all;
  }
  if (n >= 4) {  // what both have is the same
    uint32_t low, high;
    __builtin_memcpy(&low, p, 4);
    __builtin_memcpy(&high, p + n - 4, 4);
    return low | uint64_t(high) << 8 * (n - 4);
  }
  return n ? p[0] | uint32_t(p[n / 2]) << 8 * (n / 2) | uint32_t(p[n - 1]) << 8 * (n - 1) : 0;
}
SKUA_INL void store_first_bytes(uint64_t x, uint8_t* p, size_t n) {
  if (n >= 8) {
    __builtin_memcpy(p, &x, 8);
    return;
  }
  const uint32_t low = static_cast<uint32_t>(x);
  if (n & 4) {
    __builtin_memcpy(p, &low, 4);
    x >>= 32;
    p += 4;
  }
  if (n & 2) {
    const uint16_t two = static_cast<uint16_t>(x);
    __builtin_memcpy(p, &two, 2);
    x >>= 16;
    p += 2;
  }
  if (n & 1) *p = static_cast<uint8_t>(x);
}
}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua

// Before a loop of constant length over an array of vectors: unrolled whole, the array becomes registers.
#if defined(__clang__)
#define SKUA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SKUA_UNROLL _Pragma("GCC unroll 64")
#endif

#if defined(SKUA_ISA_scalar)
#include "simd/scalar.h"
#elif defined(SKUA_ISA_sse2)
#include "simd/sse2.h"
#elif defined(SKUA_ISA_sse41)
#include "simd/sse41.h"
#elif defined(SKUA_ISA_avx2) || defined(SKUA_ISA_avxvnni)
#include "simd/avx2.h"
#elif defined(SKUA_ISA_avx512) || defined(SKUA_ISA_avx512vnni) || defined(SKUA_ISA_avx512vbmi) || \
    defined(SKUA_ISA_avx512bf16) || defined(SKUA_ISA_avx512fp16) || defined(SKUA_ISA_amx_bf16) || \
    defined(SKUA_ISA_amx_int8)
#include "simd/avx512.h"
#elif defined(SKUA_ISA_neon) || defined(SKUA_ISA_neon_fp16) || defined(SKUA_ISA_neon_dot) || \
    defined(SKUA_ISA_neon_i8mm) || defined(SKUA_ISA_neon_bf16)
#include "simd/neon.h"
#elif defined(SKUA_ISA_neon32) || defined(SKUA_ISA_neon32_fp16) || defined(SKUA_ISA_neon32_dot)
#include "simd/neon32.h"
#else
#error "no vector header for this SKUA_ISA, or -DSKUA_ISA_<name>=1 is missing"
#endif
#include "simd/storage.h"
#include "simd/bytes.h"
