// Softmax, one source for every instruction set: y = e^(t - max) / sum(e^(t - max)) or t - max - log(sum),
// with t = x * scale.
//
//   rows      three passes over a row, which stays in cache: largest; e^(t - max) into y and its sum; y times 1/sum.
//             The logarithm stores nothing in the second pass. Four accumulators of a vector each, joined as a tree,
//             then over the lanes by halves.
//   columns   the same passes down a strip of V vectors (a cache line or two), lane by lane
//
// The largest may miss a NaN: the sum does not, and it reaches the whole row. Of columns and long rows of 16-bit types
// the powers that stand in y between the passes are rounded, their sum is of the unrounded ones.
#include "normalize/softmax_kernel.h"
#include "dispatch/kernel.h"
#include "simd/math.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;
constexpr size_t A = 4;  // accumulators
constexpr float kLowest = -__builtin_inff();

alignas(64) constexpr int32_t kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
SKUA_INL M32 lanes_below(size_t n) { return gt(I32::set1(int32_t(n)), I32::load(kIota)); }

// Elements of 16 bits are multiplied by `scale` first.
template <class T> SKUA_INL float largest_of(size_t n, const T* x, float scale) {
  const size_t whole = n / L * L, rest = n - whole;
  const F32 by = F32::set1(scale);
  auto scaled = [&](F32 v) { return sizeof(T) == 4 ? v : v * by; };
  F32 top[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) top[a] = F32::set1(kLowest);
  size_t i = 0;
  for (; i + A * L <= n; i += A * L)
    SKUA_UNROLL for (size_t a = 0; a < A; ++a)
      top[a] = max_fast(top[a], scaled(F32::load(x + i + a * L)));
  for (; i < whole; i += L) top[0] = max_fast(top[0], scaled(F32::load(x + i)));
  if (rest)
    top[1] = max_fast(top[1], select(lanes_below(rest), scaled(F32::load_n(x + whole, rest)), F32::set1(kLowest)));
  return max_of(max_fast(max_fast(top[0], top[2]), max_fast(top[1], top[3])));
}

// A row whose largest is known, of what stands in memory between the passes. Fused, x * scale - largest is not quite 0
// for the largest itself: by so much, where it is huge, that its power overflows. Such a row and one with a negative
// scale is multiplied first; elements of 16 bits always are, in registers, and an instruction more.
template <class T> struct Row {
  const T* x;
  T* y;
  float scale, largest;
};
// largest: of x as it stands.
SKUA_INL Row<float> of_floats(size_t n, const float* x, float* y, float largest, float scale) {
  largest *= scale;
  if (__builtin_expect(scale > 0 && largest < 0x1p29f && largest > -0x1p29f, 1)) return {x, y, scale, largest};
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * scale;
  return {y, y, 1.0f, largest_of(n, y, 1)};
}
template <class T> SKUA_INL Row<T> look_at(size_t n, const T* x, T* y, float scale) {
  if constexpr (sizeof(T) == 4) return of_floats(n, x, y, largest_of(n, x, 1), scale);
  else return {x, y, scale, largest_of(n, x, scale)};
}
// Elements of 16 bits, widened on the way to y; what is behind them in its last vector adds no power.
template <class T> SKUA_INL Row<float> look_at_widened(size_t n, const T* x, float* y, float scale) {
  const size_t whole = n / L * L, rest = n - whole;
  F32 top[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) top[a] = F32::set1(kLowest);
  const auto widen = [&](size_t i, size_t a) __attribute__((always_inline)) {
    const F32 v = F32::load(x + i);
    v.store(y + i);
    top[a] = max_fast(top[a], v);
  };
  size_t i = 0;
  for (; i + A * L <= n; i += A * L) SKUA_UNROLL for (size_t a = 0; a < A; ++a) widen(i + a * L, a);
  for (; i < whole; i += L) widen(i, 0);
  if (rest) {
    const F32 v = select(lanes_below(rest), F32::load_n(x + whole, rest), F32::set1(kLowest));
    v.store(y + whole);
    top[1] = max_fast(top[1], v);
  }
  return of_floats(n, y, y, max_of(max_fast(max_fast(top[0], top[2]), max_fast(top[1], top[3]))), scale);
}
template <class T> SKUA_INL F32 below_largest(F32 x, const Row<T>& r) {
  if constexpr (sizeof(T) == 4) return fma(x, F32::set1(r.scale), F32::set1(-r.largest));
  else return x * F32::set1(r.scale) - F32::set1(r.largest);
}

// Powers come multiplied by power_scale: f32 keeps them so until they are divided by their sum, which is too; elements
// of 16 bits do not hold them.
template <class T> constexpr float in_memory_by = sizeof(T) == 4 ? 1.0f : power_scale;
template <class T>
SKUA_INL F32 in_memory(F32 power) {
  return in_memory_by<T> == 1 ? power : power * F32::set1(1 / power_scale);
}

// e^(t - largest) into y (but not for the logarithm), and their sum.
template <bool logarithm, class T> SKUA_INL float exponentials(size_t n, const Row<T>& r) {
  const size_t whole = n / L * L, rest = n - whole;
  const T* const x = r.x;
  T* const y = r.y;
  F32 acc[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) acc[a] = F32::zero();
  size_t i = 0;
  for (; i + A * L <= n; i += A * L) SKUA_UNROLL for (size_t a = 0; a < A; ++a) {
    const F32 e = scaled_power(below_largest(F32::load(x + i + a * L), r));
    if (!logarithm) in_memory<T>(e).store(y + i + a * L);
    acc[a] = acc[a] + e;
  }
  for (; i < whole; i += L) {
    const F32 e = scaled_power(below_largest(F32::load(x + i), r));
    if (!logarithm) in_memory<T>(e).store(y + i);
    acc[0] = acc[0] + e;
  }
  if (rest) {
    const F32 e = scaled_power(below_largest(F32::load_n(x + whole, rest), r));
    if (!logarithm) in_memory<T>(e).store_n(y + whole, rest);
    acc[1] = acc[1] + keep_if(lanes_below(rest), e);
  }
  return sum((acc[0] + acc[2]) + (acc[1] + acc[3]));
}

// Shared by f16 and bf16, for what the library takes up.
template <bool logarithm> __attribute__((noinline)) float exponentials_of_widened(size_t n, const Row<float>& r) {
  return exponentials<logarithm>((n + L - 1) / L * L, r);
}

template <bool logarithm, class T, class Y> SKUA_INL void finish(size_t n, const Row<T>& r, float total, Y* y) {
  const F32 by = logarithm ? log(F32::set1(total * (1 / power_scale))) : F32::set1(in_memory_by<T> / total);
  const auto last = [&](F32 v) __attribute__((always_inline)) {
    return logarithm ? below_largest(v, r) - by : v * by;
  };
  const T* const from = logarithm ? r.x : r.y;
  const size_t whole = n / L * L, rest = n - whole;
  size_t i = 0;
  for (; i + A * L <= whole; i += A * L)
    SKUA_UNROLL for (size_t a = 0; a < A; ++a) last(F32::load(from + i + a * L)).store(y + i + a * L);
  for (; i < whole; i += L) last(F32::load(from + i)).store(y + i);
  if (rest) last(F32::load_n(from + whole, rest)).store_n(y + whole, rest);
}

// Rows of 16-bit elements are widened into a buffer, two in turn, done there in f32 and rounded once: a conversion each
// way. They are whole vectors there: a load of what part of a vector stored waits until it is in cache (Zen 5: 128 rows
// of 65 of bf16 5.2 to 3.2 us).
constexpr size_t kBuffer = 2048;

// T: what stands in memory between the passes. The next row's largest is looked for before a row is finished: the way
// through the lanes for the sum, and then for the largest, is a hundred cycles in which the core has the other row's
// pass to do.
template <bool logarithm, class T, class X>
SKUA_INL void row_passes(size_t rows, size_t n, const void* from, size_t x_row, void* to, size_t y_row, float scale) {
  constexpr bool widens = sizeof(T) > sizeof(X);
  alignas(64) T buffer[widens ? 2 * kBuffer : 1];
  const X* x = static_cast<const X*>(from);
  X* y = static_cast<X*>(to);
  const auto look_at_row = [&](size_t r) __attribute__((always_inline)) {
    if constexpr (widens) return look_at_widened(n, x + r * x_row, buffer + r % 2 * kBuffer, scale);
    else return look_at(n, x + r * x_row, y + r * y_row, scale);
  };
  Row<T> row = {}, next = {};
  float total = 0;
  for (size_t r = 0;; ++r) {
    if (r < rows) next = look_at_row(r);
    if (r) finish<logarithm>(n, row, total, y + (r - 1) * y_row);
    if (r == rows) return;
    row = next;
    if constexpr (widens) total = exponentials_of_widened<logarithm>(n, row);
    else total = exponentials<logarithm>(n, row);
  }
}

template <bool logarithm, class T>
void rows(size_t count, size_t n, const void* from, size_t x_row, void* to, size_t y_row, float scale) {
  if (sizeof(T) == 2 && n <= kBuffer) row_passes<logarithm, float, T>(count, n, from, x_row, to, y_row, scale);
  else row_passes<logarithm, T, T>(count, n, from, x_row, to, y_row, scale);
}

template <bool logarithm, size_t V, bool whole, class T>
SKUA_INL void strip(size_t n, size_t columns, const T* x, size_t x_row, T* y, size_t y_row, F32 scale) {
  auto load = [&](const T* p, size_t v) { return whole ? F32::load(p + v * L) : F32::load_n(p, columns); };
  auto store = [&](F32 value, T* p, size_t v) { whole ? value.store(p + v * L) : value.store_n(p, columns); };
  F32 top[V], acc[V];
  SKUA_UNROLL for (size_t v = 0; v < V; ++v) {
    top[v] = F32::set1(kLowest);
    acc[v] = F32::zero();
  }
  for (size_t r = 0; r < n; ++r)
    SKUA_UNROLL for (size_t v = 0; v < V; ++v)
      top[v] = max_fast(top[v], load(x + r * x_row, v) * scale);
  for (size_t r = 0; r < n; ++r) SKUA_UNROLL for (size_t v = 0; v < V; ++v) {
    const F32 e = scaled_power(load(x + r * x_row, v) * scale - top[v]);
    if (!logarithm) store(in_memory<T>(e), y + r * y_row, v);
    acc[v] = acc[v] + e;
  }
  SKUA_UNROLL for (size_t v = 0; v < V; ++v)
    acc[v] = logarithm ? log(acc[v] * F32::set1(1 / power_scale)) : F32::set1(in_memory_by<T>) / acc[v];
  for (size_t r = 0; r < n; ++r) SKUA_UNROLL for (size_t v = 0; v < V; ++v) {
    if constexpr (logarithm) store((load(x + r * x_row, v) * scale - top[v]) - acc[v], y + r * y_row, v);
    else store(load(y + r * y_row, v) * acc[v], y + r * y_row, v);
  }
}

template <bool logarithm, class T>
void columns(size_t n, size_t columns, const void* from, size_t x_row, void* to, size_t y_row, float scale_value) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  constexpr size_t V = L >= 8 ? 2 : 4;
  const F32 scale = F32::set1(scale_value);
  size_t c = 0;
  for (; c + V * L <= columns; c += V * L) strip<logarithm, V, true>(n, 0, x + c, x_row, y + c, y_row, scale);
  for (; c + L <= columns; c += L) strip<logarithm, 1, true>(n, 0, x + c, x_row, y + c, y_row, scale);
  if (c < columns) strip<logarithm, 1, false>(n, columns - c, x + c, x_row, y + c, y_row, scale);
}

#define SKUA_SOFTMAX(T, type)                                                                                  \
  {"softmax_" #type "_rows_" SKUA_STRING(SKUA_ISA), "normalize", "three passes over a row in cache",           \
   KernelKind::softmax_rows, Isa::SKUA_ISA, 0, 0, 0, F32::L,                                                   \
   reinterpret_cast<AnyCode>(static_cast<SoftmaxRowsFn>(rows<false, T>)), element_of<T>},                      \
  {"log_softmax_" #type "_rows_" SKUA_STRING(SKUA_ISA), "normalize", "three passes over a row in cache",       \
   KernelKind::softmax_rows, Isa::SKUA_ISA, 1, 0, 0, F32::L,                                                   \
   reinterpret_cast<AnyCode>(static_cast<SoftmaxRowsFn>(rows<true, T>)), element_of<T>},                       \
  {"softmax_" #type "_columns_" SKUA_STRING(SKUA_ISA), "normalize", "three passes down strips of columns",     \
   KernelKind::softmax_columns, Isa::SKUA_ISA, 0, 0, 0, F32::L,                                                \
   reinterpret_cast<AnyCode>(static_cast<SoftmaxColumnsFn>(columns<false, T>)), element_of<T>},                \
  {"log_softmax_" #type "_columns_" SKUA_STRING(SKUA_ISA), "normalize", "three passes down strips of columns", \
   KernelKind::softmax_columns, Isa::SKUA_ISA, 1, 0, 0, F32::L,                                                \
   reinterpret_cast<AnyCode>(static_cast<SoftmaxColumnsFn>(columns<true, T>)), element_of<T>},
const Kernel kernels[] = {SKUA_FOR_TYPES(SKUA_SOFTMAX)};
#undef SKUA_SOFTMAX

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(softmax, kernels)
}  // namespace skua
