// Compiled once per instruction set: the operations of simd/ as loops over arrays, for simd_test.cc.
#include "tests/simd_unit.h"

#include "simd/math.h"
#include "simd/fixed.h"
#include "simd/simd.h"
#include "simd/sum_each.h"

namespace skua {
namespace SKUA_ISA {
namespace {

using skua_test::MapIntOp;
using skua_test::MapOp;
using skua_test::SimdUnit;

constexpr int L = F32::L;

template <class Op>
SKUA_INL void map(Op op, const float* a, const float* b, const float* c, float* out, size_t n) {
  for (size_t i = 0; i < n; i += L) op(F32::load(a + i), F32::load(b + i), F32::load(c + i)).store(out + i);
}
template <class Op>
SKUA_INL void map_int(Op op, const int32_t* a, const int32_t* b, int32_t* out, size_t n) {
  for (size_t i = 0; i < n; i += L) op(I32::load(a + i), I32::load(b + i)).store(out + i);
}

#define MAP(name, expression)                                                                        \
  {name, [](const float* pa, const float* pb, const float* pc, float* out, size_t n) {               \
     map([]([[maybe_unused]] F32 a, [[maybe_unused]] F32 b, [[maybe_unused]] F32 c)                  \
             __attribute__((always_inline)) { return expression; },                                  \
         pa, pb, pc, out, n);                                                                        \
   }}
#define MAP_INT(name, expression)                                                                    \
  {name, [](const int32_t* pa, const int32_t* pb, int32_t* out, size_t n) {                          \
     map_int([]([[maybe_unused]] I32 a, [[maybe_unused]] I32 b)                                      \
                 __attribute__((always_inline)) { return expression; },                              \
             pa, pb, out, n);                                                                        \
   }}
#define TRUTH(mask) select(mask, F32::set1(1.0f), F32::set1(0.0f))

constexpr MapOp ops[] = {
    MAP("add", a + b),
    MAP("sub", a - b),
    MAP("mul", a * b),
    MAP("div", a / b),
    MAP("quotient", quotient(a, b)),
    MAP("neg", -a),
    MAP("abs", abs(a)),
    MAP("sqrt", sqrt(a)),
    MAP("floor", floor(a)),
    MAP("ceil", ceil(a)),
    MAP("round", round(a)),
    MAP("trunc", trunc(a)),
    MAP("fma", fma(a, b, c)),
    MAP("fnma", fnma(a, b, c)),
    MAP("min", min(a, b)),
    MAP("max", max(a, b)),
    MAP("min_fast", min_fast(a, b)),
    MAP("max_fast", max_fast(a, b)),
    MAP("clamp_low", clamp_low(a, b)),
    MAP("clamp_high", clamp_high(a, b)),
    MAP("copysign", copysign(a, b)),
    MAP("lt", TRUTH(lt(a, b))),
    MAP("le", TRUTH(le(a, b))),
    MAP("gt", TRUTH(gt(a, b))),
    MAP("ge", TRUTH(ge(a, b))),
    MAP("eq", TRUTH(eq(a, b))),
    MAP("ne", TRUTH(ne(a, b))),
    MAP("is_nan", TRUTH(is_nan(a))),
    MAP("and", TRUTH(lt(a, b) & lt(b, c))),
    MAP("or", TRUTH(lt(a, b) | lt(b, c))),
    MAP("not", TRUTH(~lt(a, b))),
    MAP("select", select(lt(a, b), a, c)),
    MAP("keep_if", keep_if(lt(a, b), c)),
    MAP("to_i32", as_f32(to_i32(a))),
    MAP("round_i32", as_f32(round_i32(a))),
    MAP("to_f32", to_f32(as_i32(a))),
    {nullptr, nullptr},
};

constexpr MapIntOp int_ops[] = {
    MAP_INT("add", a + b),
    MAP_INT("sub", a - b),
    MAP_INT("and", a& b),
    MAP_INT("or", a | b),
    MAP_INT("xor", a ^ b),
    MAP_INT("shl<5>", shl<5>(a)),
    MAP_INT("shr<5>", shr<5>(a)),
    MAP_INT("shr_logical<5>", shr_logical<5>(a)),
    MAP_INT("eq", select(eq(a, b), I32::set1(1), I32::set1(0))),
    MAP_INT("gt", select(gt(a, b), I32::set1(1), I32::set1(0))),
    {nullptr, nullptr},
};

constexpr MapOp math[] = {
    MAP("exp", exp(a)),
    MAP("elu", elu(a, F32::set1(1.0f))),
    MAP("tanh", tanh(a)),
    MAP("sigmoid", sigmoid(a)),
    MAP("silu", silu(a)),
    MAP("gelu_tanh", gelu_tanh(a)),
    MAP("erf", erf(a)),
    MAP("gelu_erf", gelu_erf(a)),
    MAP("log", log(a)),
    MAP("log1p", log1p(a)),
    MAP("softplus", softplus(a)),
    MAP("mish", mish(a)),
    MAP("sin", sin(a)),
    MAP("cos", cos(a)),
    MAP("pow", pow(a, b)),
    {nullptr, nullptr},
};

template <class V, int i = 0>
SKUA_INL void fma_lanes(V acc, V b, V a, float* out) {
  fma_lane<i>(acc, b, a).store(out + i * V::L);
  if constexpr (i + 1 < V::L) fma_lanes<V, i + 1>(acc, b, a, out);
}
template <class V>
void run_fma_lane(const float* acc, const float* b, const float* a, float* out) {
  if constexpr (V::by_lane) fma_lanes(V::load(acc), V::load(b), V::load(a), out);
}

template <class T> void load_all(const uint16_t* in, float* out, size_t n) {
  const T* p = reinterpret_cast<const T*>(in);
  for (; n >= size_t(L); n -= L, p += L, out += L) F32::load(p).store(out);
  F32::load_n(p, n).store_n(out, n);
}
template <class T> void broadcast_all(const uint16_t* in, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = max_of(F32::broadcast(reinterpret_cast<const T*>(in + i)));
}
template <class T> void store_all(const float* in, uint16_t* out, size_t n) {
  T* p = reinterpret_cast<T*>(out);
  for (; n >= size_t(L); n -= L, p += L, in += L) F32::load(in).store(p);
  F32::load_n(in, n).store_n(p, n);
}

template <class T> void load_bytes(const uint8_t* in, float* out, size_t n) {
  const T* p = reinterpret_cast<const T*>(in);
  for (; n >= size_t(L); n -= L, p += L, out += L) F32::load(p).store(out);
  F32::load_n(p, n).store_n(out, n);
}
template <class T> void broadcast_bytes(const uint8_t* in, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = max_of(F32::broadcast(reinterpret_cast<const T*>(in + i)));
}
template <class T> void store_from_floats(const float* in, uint8_t* out, size_t n) {
  T* p = reinterpret_cast<T*>(out);
  for (; n >= size_t(L); n -= L, p += L, in += L) F32::load(in).store(p);
  F32::load_n(in, n).store_n(p, n);
}
template <class T> void load_integers(const uint8_t* in, int32_t* out, size_t n) {
  const T* p = reinterpret_cast<const T*>(in);
  for (; n >= size_t(L); n -= L, p += L, out += L) I32::load(p).store(out);
  I32::load_n(p, n).store_n(out, n);
}
template <class T> void store_integers(const int32_t* in, uint8_t* out, size_t n) {
  T* p = reinterpret_cast<T*>(out);
  for (; n >= size_t(L); n -= L, p += L, in += L) I32::load(in).store(p);
  I32::load_n(in, n).store_n(p, n);
}
template <class T> void requantize_all(const int32_t* in, const float* scale, Requantize r, uint8_t* out, size_t n) {
  const Requantizer to(r);
  T* p = reinterpret_cast<T*>(out);
  for (; n >= size_t(4 * L); n -= 4 * L, p += 4 * L, in += 4 * L, scale += 4 * L) {
    I32 q[4];
    for (int i = 0; i < 4; ++i) q[i] = to(I32::load(in + i * L), F32::load(scale + i * L));
    store_bytes(q, p);
  }
  for (; n >= size_t(L); n -= L, p += L, in += L, scale += L) to(I32::load(in), F32::load(scale)).store(p);
  to(I32::load_n(in, n), F32::load_n(scale, n)).store_n(p, n);
}
template <class T>
constexpr SimdUnit::Bytes bytes = {load_bytes<T>,    broadcast_bytes<T>, store_from_floats<T>,
                                   load_integers<T>, store_integers<T>,  requantize_all<T>};

constexpr SimdUnit unit = {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    TEXT(SKUA_ISA),
    L,
    F32::fused,
    F32::by_lane,
    ops,
    int_ops,
    math,
    [](const float* a) { return sum(F32::load(a)); },
    [](const float* a) { return max_of(F32::load(a)); },
    [](const float* a) { return min_of(F32::load(a)); },
    [](const float* a) { return any(gt(F32::load(a), F32::zero())); },
    [](const float* a) { return all(gt(F32::load(a), F32::zero())); },
    [](const float* in, float* out, size_t n) { F32::load_n(in, n).store(out); },
    [](const float* in, float* out, size_t n) { F32::load(in).store_n(out, n); },
    [](const int32_t* in, int32_t* out, size_t n) { I32::load_n(in, n).store(out); },
    [](const int32_t* in, int32_t* out, size_t n) { I32::load(in).store_n(out, n); },
    load_all<f16>,
    load_all<bf16>,
    broadcast_all<f16>,
    broadcast_all<bf16>,
    store_all<f16>,
    store_all<bf16>,
    bytes<int8_t>,
    bytes<uint8_t>,
    [](int32_t* sums, const int32_t* multiplier, const int32_t* shift, bool single, size_t n) {
      for (size_t i = 0; i < n; i += L) {
        fix_columns(sums + i, L, 1, multiplier + i, shift + i, single);
        fixed_result(I32::load(sums + i)).store(sums + i);
      }
    },
    [](float* square) {
      F32 r[L];
      SKUA_UNROLL for (int i = 0; i < L; ++i) r[i] = F32::load(square + i * L);
      transpose(r);
      SKUA_UNROLL for (int i = 0; i < L; ++i) r[i].store(square + i * L);
    },
    [](const float* square, float* sums) {
      F32 r[L];
      SKUA_UNROLL for (int i = 0; i < L; ++i) r[i] = F32::load(square + i * L);
      sum_each(r).store(sums);
    },
    run_fma_lane<F32>,
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua

#define JOIN_OF(a, b) a##b
#define JOIN(a, b) JOIN_OF(a, b)
extern "C" const skua_test::SimdUnit* JOIN(skua_simd_unit_, SKUA_ISA)() { return &skua::SKUA_ISA::unit; }
