// Binary functions and select: z[i] = clamp(f(x[i], y[i])), one source for every instruction set. KernelKind::binary, variant = skua_binary_kind.
// One loop for each form; in it four vectors a turn (one where the function is long), then single vectors, and the rest by partial loads and
// a partial store. A value that repeats along the row stays in a register.
#include "elementwise/binary_kernel.h"
#include "dispatch/kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// at(i): L values from i; at_n(i, n): n of them.
struct Vector {
  const float* p;
  explicit SKUA_INL Vector(const float* from) : p(from) {}
  SKUA_INL F32 at(size_t i) const { return F32::load(p + i); }
  SKUA_INL F32 at_n(size_t i, size_t n) const { return F32::load_n(p + i, n); }
};
struct Scalar {
  F32 v;
  explicit SKUA_INL Scalar(const float* from) : v(F32::broadcast(from)) {}
  SKUA_INL F32 at(size_t) const { return v; }
  SKUA_INL F32 at_n(size_t, size_t) const { return v; }
};

template <int unroll, class X, class Y, class F> SKUA_INL void loop(const BinaryRows& r, F f) {
  constexpr size_t L = F32::L, turn = unroll * L;
  const size_t n = r.n;
  for (size_t row = 0; row < r.rows; ++row) {
    const X x(r.x + row * r.x_step);
    const Y y(r.y + row * r.y_step);
    float* const z = r.z + row * r.z_step;
    size_t i = 0;
    for (; n - i >= turn; i += turn) {
      F32 v[unroll];
      SKUA_UNROLL for (int u = 0; u < unroll; ++u) v[u] = f(x.at(i + u * L), y.at(i + u * L));
      SKUA_UNROLL for (int u = 0; u < unroll; ++u) v[u].store(z + i + u * L);
    }
    if (unroll > 1)
      for (; n - i >= L; i += L) f(x.at(i), y.at(i)).store(z + i);
    if (i < n) f(x.at_n(i, n - i), y.at_n(i, n - i)).store_n(z + i, n - i);
  }
}

#define SKUA_BINARY(number, kind, name, cycles, expression)                                                                     \
  void name##_rows(const BinaryRows& r) {                                                                                       \
    const F32 low = F32::set1(r.low), high = F32::set1(r.high);                                                                 \
    const auto f = [=](F32 x, F32 y) __attribute__((always_inline)) { return clamp_high(clamp_low(expression, low), high); };   \
    constexpr int unroll = cycles > 4 ? 1 : 4;                                                                                  \
    if (r.form == BinaryForm::vectors) loop<unroll, Vector, Vector>(r, f);                                                      \
    else if (r.form == BinaryForm::y_scalar) loop<unroll, Vector, Scalar>(r, f);                                                \
    else loop<unroll, Scalar, Vector>(r, f);                                                                                    \
  }
#include "elementwise/binary.def"
#undef SKUA_BINARY

SKUA_INL F32 choose(F32 condition, F32 x, F32 y) {
  const M32 zero = eq(as_i32(condition) & I32::set1(0x7fffffff), I32::set1(0));  // in integers: AArch32 compares denormals as zero
  return select(zero, y, x);
}
void select_row(size_t n, const float* condition, const float* x, const float* y, float* z) {
  constexpr size_t L = F32::L;
  size_t i = 0;
  for (; n - i >= 2 * L; i += 2 * L) {
    const F32 a = choose(F32::load(condition + i), F32::load(x + i), F32::load(y + i));
    const F32 b = choose(F32::load(condition + i + L), F32::load(x + i + L), F32::load(y + i + L));
    a.store(z + i);
    b.store(z + i + L);
  }
  for (; i < n; i += L) {
    const size_t m = n - i < L ? n - i : L;
    choose(F32::load_n(condition + i, m), F32::load_n(x + i, m), F32::load_n(y + i, m)).store_n(z + i, m);
  }
}

const Kernel kernels[] = {
#define SKUA_BINARY(number, kind, name, cycles, expression)                                                                   \
  {#name "_f32_" SKUA_STRING(SKUA_ISA), "elementwise", #expression, KernelKind::binary, Isa::SKUA_ISA, number, 0, 0, F32::L,   \
   reinterpret_cast<AnyCode>(static_cast<BinaryFn>(name##_rows))},
#include "elementwise/binary.def"
#undef SKUA_BINARY
    {"select_f32_" SKUA_STRING(SKUA_ISA), "elementwise", "condition != 0 ? x : y", KernelKind::select, Isa::SKUA_ISA, 0, 0, 0, F32::L,
     reinterpret_cast<AnyCode>(static_cast<SelectFn>(select_row))},
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(binary, kernels)
}  // namespace skua
