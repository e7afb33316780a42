// Binary functions and select: z[i] = clamp(f(x[i], y[i])), one source for every instruction set. KernelKind::binary,
// variant = skua_binary_kind.
// One loop for each form; in it four vectors a turn (one where the function is long), then single vectors, and the rest
// by partial loads and a partial store. A value that repeats along the row stays in a register.
#include "elementwise/binary_kernel.h"
#include "dispatch/kernel.h"
#include "elementwise/asks_ahead.h"
#include "simd/math.h"
#include "simd/half.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// As in unary_kernels.cc.
#ifdef SKUA_HALF
using V = F16;
#define SKUA_HERE(X, ...) X(f16, f16, __VA_ARGS__)
#else
using V = F32;
#define SKUA_HERE SKUA_FOR_TYPES
#endif

// at(i): L values from i; at_n(i, n): n of them.
template <class T> struct Vector {
  const T* p;
  explicit SKUA_INL Vector(const T* from) : p(from) {}
  SKUA_INL V at(size_t i) const { return V::load(p + i); }
  SKUA_INL V at_n(size_t i, size_t n) const { return V::load_n(p + i, n); }
};
template <class T> struct Scalar {
  V v;
  explicit SKUA_INL Scalar(const T* from) : v(V::broadcast(from)) {}
  SKUA_INL V at(size_t) const { return v; }
  SKUA_INL V at_n(size_t, size_t) const { return v; }
};

// Short functions are clamped only where there are bounds: of SSE's eight instructions for a vector four are clamps and
// their copies (Xeon, SSE4.1: products by a channel within L2 take 0.5 to 0.7 of the time without), and widening,
// clamping and narrowing of halves share two ports of Zen 5 (f16 0.65, bf16 0.85).
template <int unroll, class T, template <class> class X, template <class> class Y, class F>
SKUA_INL void loop(const BinaryRows& r, F f) {
  constexpr size_t L = V::L, turn = unroll * L;
  const V low = V::set1(r.low), high = V::set1(r.high);
  const bool bounded = unroll == 1 || L == 1 || r.low > -__builtin_inff() || r.high < __builtin_inff();
  const auto clamped = [&](V v) __attribute__((always_inline)) {
    return bounded ? clamp_high(clamp_low(v, low), high) : v;
  };
  const size_t n = r.n;
  const AsksAhead ahead(n * sizeof(T));
  for (size_t row = 0; row < r.rows; ++row) {
    const X<T> x(static_cast<const T*>(r.x) + row * r.x_step);
    const Y<T> y(static_cast<const T*>(r.y) + row * r.y_step);
    T* const z = static_cast<T*>(r.z) + row * r.z_step;
    size_t i = 0;
    for (; n - i >= turn; i += turn) {
      V v[unroll];
      ahead.template turn<turn * sizeof(T)>(z + i);
      SKUA_UNROLL for (int u = 0; u < unroll; ++u) v[u] = f(x.at(i + u * L), y.at(i + u * L));
      if (bounded) SKUA_UNROLL for (int u = 0; u < unroll; ++u) v[u] = clamp_high(clamp_low(v[u], low), high);
      SKUA_UNROLL for (int u = 0; u < unroll; ++u) v[u].store(z + i + u * L);
    }
    if (unroll > 1)
      for (; n - i >= L; i += L) clamped(f(x.at(i), y.at(i))).store(z + i);
    if (i < n) clamped(f(x.at_n(i, n - i), y.at_n(i, n - i))).store_n(z + i, n - i);
  }
}

#define SKUA_ROWS(number, kind, name, cycles, expression)                               \
  template <class T> void name##_rows(const BinaryRows& r) {                            \
    const auto f = [=](V x, V y) __attribute__((always_inline)) { return expression; }; \
    constexpr int unroll = cycles > 8 ? 1 : 4;                                          \
    if (r.form == BinaryForm::vectors) loop<unroll, T, Vector, Vector>(r, f);           \
    else if (r.form == BinaryForm::y_scalar) loop<unroll, T, Vector, Scalar>(r, f);     \
    else loop<unroll, T, Scalar, Vector>(r, f);                                         \
  }
#ifdef SKUA_HALF
#define SKUA_BINARY(...)
#define SKUA_BINARY_HALF SKUA_ROWS
#else
#define SKUA_BINARY SKUA_ROWS
#endif
#include "elementwise/binary.def"
#undef SKUA_ROWS

#ifndef SKUA_HALF
// Select: in integers, since AArch32 compares denormals as zero.
SKUA_INL I32 choose(I32 condition, I32 x, I32 y, int32_t digits) {
  return select(eq(condition & I32::set1(digits), I32::set1(0)), y, x);
}
struct Words {
  using T = int32_t;
  static constexpr int32_t digits = 0x7fffffff;  // without the sign
  static SKUA_INL I32 at(const T* p) { return I32::load(p); }
  static SKUA_INL I32 at_n(const T* p, size_t n) { return I32::load_n(p, n); }
  static SKUA_INL void put(I32 v, T* p) { v.store(p); }
  static SKUA_INL void put_n(I32 v, T* p, size_t n) { v.store_n(p, n); }
};
struct Halves {
  using T = uint16_t;
  static constexpr int32_t digits = 0x7fff;
  static SKUA_INL I32 at(const T* p) { return load_u16(p); }
  static SKUA_INL I32 at_n(const T* p, size_t n) { return load_u16_n(p, n); }
  static SKUA_INL void put(I32 v, T* p) { store_u16(v, p); }
  static SKUA_INL void put_n(I32 v, T* p, size_t n) { store_u16_n(v, p, n); }
};
template <class E>
void select_row(size_t n, const void* condition_row, const void* x_row, const void* y_row, void* z_row) {
  using T = typename E::T;
  const T *condition = static_cast<const T*>(condition_row), *x = static_cast<const T*>(x_row),
          *y = static_cast<const T*>(y_row);
  T* z = static_cast<T*>(z_row);
  constexpr size_t L = F32::L;
  size_t i = 0;
  for (; n - i >= 2 * L; i += 2 * L) {
    const I32 a = choose(E::at(condition + i), E::at(x + i), E::at(y + i), E::digits);
    const I32 b = choose(E::at(condition + i + L), E::at(x + i + L), E::at(y + i + L), E::digits);
    E::put(a, z + i);
    E::put(b, z + i + L);
  }
  for (; i < n; i += L) {
    const size_t m = n - i < L ? n - i : L;
    E::put_n(choose(E::at_n(condition + i, m), E::at_n(x + i, m), E::at_n(y + i, m), E::digits), z + i, m);
  }
}

#endif  // SKUA_HALF

const Kernel kernels[] = {
#define SKUA_KERNEL(T, type, number, name, expression)                                                               \
  {#name "_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", #expression, KernelKind::binary, Isa::SKUA_ISA, number, \
   0, 0, V::L, reinterpret_cast<AnyCode>(static_cast<BinaryFn>(name##_rows<T>)), element_of<T>},
#define SKUA_ROWS(number, kind, name, cycles, expression) SKUA_HERE(SKUA_KERNEL, number, name, expression)
#ifdef SKUA_HALF
#define SKUA_BINARY_HALF SKUA_ROWS
#endif
#include "elementwise/binary.def"
#undef SKUA_BINARY
#undef SKUA_ROWS
#undef SKUA_KERNEL
#ifndef SKUA_HALF
#define SKUA_SELECT(E, type)                                                                              \
  {"select_" type "_" SKUA_STRING(SKUA_ISA), "elementwise", "condition != 0 ? x : y", KernelKind::select, \
   Isa::SKUA_ISA, sizeof(E::T), 0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<SelectFn>(select_row<E>))},
    SKUA_SELECT(Words, "x32") SKUA_SELECT(Halves, "x16")
#undef SKUA_SELECT
#endif
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(binary, kernels)
}  // namespace skua
