// Vectors of halves where the instruction set computes with them: the type F16 beside F32 of simd/simd.h. SKUA_HALF is
// defined where there is one; elsewhere halves are storage only, F32::load(const f16*) and store(f16*).
//
//   F16   L lanes of 16 bits, twice those of F32. Results are rounded to nearest even; denormals are computed, on
//         AArch32 too
//         load store broadcast        any alignment that an f16 has
//         load_n store_n              n of 0..L lanes; nothing beyond n elements is touched; lanes past n load as zero
//         set1 zero                   from a float, rounded; zero
//   + - * and unary - abs
//   copysign floor ceil round trunc   exact; round to even
//   reciprocal(a)                     1 / a within 2^-9 of it, for a in [2^-13, 2^13]
//   scalef(a, n)                      a * 2^n, rounded once, for an integer n; only where has_scalef
//   fma(a, b, c) fnma(a, b, c)        a * b + c and c - a * b, rounded once
//   fma_lane<i>(acc, b, a)            acc + b * a[i], only where by_lane; rounds twice on AArch32. It stays where it is
//                                     written: see below
//   mul_lane<i>(b, a)                 b * a[i], likewise
//   min max                           NaN in either operand gives NaN; of zeros of both signs either may come back
//   clamp_low(x, lo) clamp_high       max(x, lo) and min(x, hi) for a bound that is not NaN: NaN of x passes; one
//                                     instruction
//   lt gt select(m, a, b)             with the mask M16
//   to_f32(a, low, high)              lanes 0..L/2-1 and L/2..L-1, exact
//   to_f16(low, high)                 the other way, rounded; NaN stays NaN
//   I16   lanes of signed integers as wide: set1 as_i16 as_f16 to_f16 (rounded) + - & shl<n> shr<n> (keeps the sign)
//   pin(x)                            as for F32
#pragma once

#include "dispatch/element.h"
#include "simd/simd.h"

#if defined(SKUA_ISA_neon_fp16) || defined(SKUA_ISA_neon32_fp16)
#define SKUA_HALF 1
#include "simd/neon_fp16.h"
#elif defined(SKUA_ISA_avx512fp16)
#define SKUA_HALF 1
#include "simd/avx512_fp16.h"
#endif
