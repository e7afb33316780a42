// Unary functions: y[i] = f(x[i]), one source for every instruction set. KernelKind::unary, variant = skua_unary_kind.
// Four vectors a turn where the function is an instruction or two, so that loads and stores bind; two where it is long,
// so that an in-order core finds independent work, six of AVX-512 and three of AVX2, interleaved: 20 instructions that
// wait for each other for 55 cycles, and take 5, are more than a core looks ahead (Zen 5: a sigmoid takes 5.8 cycles
// so, 6.2 five at a time, 7.7 one), and of six square roots three may use the core's unit for them beside the others'
// multiply-adds; then single vectors, and the rest by a partial load and store (long functions use those for single
// vectors too: one copy less of the code). No element's value depends on its place.
#include "elementwise/unary_kernel.h"
#include "dispatch/kernel.h"
#include "elementwise/asks_ahead.h"
#include "simd/hard.h"
#include "simd/half.h"
#include "simd/math.h"
#include "simd/simd.h"
#ifdef SKUA_HALF
#include "simd/math_half.h"
#endif

namespace skua {
namespace SKUA_ISA {
namespace {

// A set that adds arithmetic in halves has the functions of an instruction or two, on f16, and some long ones in halves
// throughout, which are variants of their own; the others are those of the set below it, in f32.
#ifdef SKUA_HALF
using V = F16;
#define SKUA_HERE(X, ...) X(f16, f16, __VA_ARGS__)
#else
using V = F32;
#define SKUA_HERE SKUA_FOR_TYPES
#endif

struct Params {
  V a, b;
};

constexpr float selu_scale = 1.0507010f, selu_scale_alpha = static_cast<float>(1.0507010 * 1.6732632);

SKUA_INL V hard_sigmoid(V x) { return up_to_3_by_6(clamp_low(x, V::set1(-3.0f))); }
SKUA_INL V hard_swish(V x) {
  x = clamp_low(x, V::set1(-3.0f));
  return x * up_to_3_by_6(x);
}

[[maybe_unused]] SKUA_INL F32 selu(F32 x) {
  const F32 y = elu(x, F32::set1(selu_scale_alpha));
  return select(lt(x, F32::zero()), y, F32::set1(selu_scale) * x);
}

#if defined(SKUA_ISA_scalar) || defined(SKUA_ISA_sse2)  // what old and unknown machines run: half as much code
constexpr size_t kLong = 1;
#else
constexpr size_t kLong = sizeof(V) == 64 ? 6 : sizeof(V) == 32 ? 3 : 2;
#endif
// f(x, u): of the u-th vector of a turn. plain: the same, simpler, where plain.holds(x) for every vector of a turn.
struct None {};
template <size_t unroll, bool single, class T, class F, class Plain = None>
SKUA_INL void row(size_t n, const T* x, T* y, F f, [[maybe_unused]] Plain plain = {}) {
  constexpr size_t L = V::L;
  const AsksAhead ahead(n * sizeof(T));
  for (; n >= unroll * L; n -= unroll * L, x += unroll * L, y += unroll * L) {
    V v[unroll];
    ahead.template turn<unroll * L * sizeof(T)>(y);
    if (unroll == kLong) ahead.template turn<unroll * L * sizeof(T)>(x);
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i] = V::load(x + i * L);
#if !defined(SKUA_SIMD_LOOKS_UP) && !defined(SKUA_HALF)
    if constexpr (!__is_same(Plain, None)) {
      M32 are_plain = plain.holds(v[0]);
      SKUA_UNROLL for (size_t i = 1; i < unroll; ++i) are_plain = are_plain & plain.holds(v[i]);
      if (__builtin_expect(all(are_plain), 1)) {
        SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i] = plain(v[i]);
        SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i].store(y + i * L);
      } else {
        for (size_t i = 0; i < unroll; ++i) f(V::load(x + i * L), i).store(y + i * L);
      }
      continue;
    }
#endif
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i] = f(v[i], i);
    SKUA_UNROLL for (size_t i = 0; i < unroll; ++i) v[i].store(y + i * L);
  }
  if constexpr (unroll > 4) return row<2, single>(n, x, y, f);  // a tile's rows are three and four vectors long
  if (single)
    for (; n >= L; n -= L, x += L, y += L) f(V::load(x), 0).store(y);
  while (n) {
    const size_t m = n < L ? n : L;
    const bool whole = L == 8 && m == L;  // AVX2's stores under a mask are some forty operations on AMD's cores
    const V v = f(whole ? V::load(x) : V::load_n(x, m), 0);
    if (whole) v.store(y);
    else v.store_n(y, m);
    n -= m;
    x += m;
    y += m;
  }
}

#define SKUA_ROW(number, kind, name, cycles, expression)                                               \
  template <class T> void name##_row(size_t n, const void* x_row, void* y_row, float a, float b) {     \
    const Params p = {V::set1(a), V::set1(b)};                                                         \
    (void)p;                                                                                           \
    row<cycles <= 4 ? 4 : kLong, cycles <= 4>(n, static_cast<const T*>(x_row), static_cast<T*>(y_row), \
                                              [&](V x, size_t u) __attribute__((always_inline)) {      \
                                                (void)u;                                               \
                                                return expression;                                     \
                                              });                                                      \
  }
#ifdef SKUA_HALF
#define SKUA_UNARY(...)
#define SKUA_UNARY_HALF SKUA_ROW
#define SKUA_UNARY_IN_HALVES SKUA_ROW
#else
#define SKUA_UNARY SKUA_ROW
#if !defined(SKUA_SIMD_LOOKS_UP)
#define SKUA_UNARY_PLAIN(number, kind, name, cycles, expression, condition, plain)             \
  struct name##_plain {                                                                        \
    SKUA_INL M32 holds(V x) const { return condition; }                                        \
    SKUA_INL V operator()(V x) const { return plain; }                                         \
  };                                                                                           \
  template <class T> void name##_row(size_t n, const void* x_row, void* y_row, float, float) { \
    row<kLong, false>(n, static_cast<const T*>(x_row), static_cast<T*>(y_row),                 \
                      [](V x, size_t) __attribute__((always_inline)) { return expression; },   \
                      name##_plain());                                                         \
  }
#endif
#endif
#include "elementwise/unary.def"
#undef SKUA_ROW

const Kernel kernels[] = {
#define SKUA_KERNEL(T, type, number, name, expression)                                                                 \
  {#name "_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", #expression, KernelKind::unary, Isa::SKUA_ISA, number, 0, \
   0, V::L, reinterpret_cast<AnyCode>(static_cast<UnaryFn>(name##_row<T>)), element_of<T>},
#define SKUA_ROW(number, kind, name, cycles, expression) SKUA_HERE(SKUA_KERNEL, number, name, expression)
#ifdef SKUA_HALF
#define SKUA_UNARY_HALF SKUA_ROW
#define SKUA_UNARY_IN_HALVES(number, kind, name, cycles, expression) \
  SKUA_HERE(SKUA_KERNEL, kInHalves + number, name, expression)
#endif
#include "elementwise/unary.def"
#undef SKUA_UNARY
#undef SKUA_ROW
#undef SKUA_KERNEL
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(elementwise, kernels)
}  // namespace skua
