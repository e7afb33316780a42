// Reductions, one source for every instruction set.
//
//   rows      [rows][n] -> [rows]         A accumulators of one vector, A*L >= 16 partial results; joined as a tree,
//                                         then over the lanes by halves
//   columns   [n][columns] -> [columns]   16 rows at a time joined as a tree, lane by lane, then to the result so far,
//                                         which stays in y (L1): 16 streams of contiguous reads, one load and one store
//                                         of y for 16 rows
//
// Either way an element passes at most n/16 + log2(16) roundings, and each result is one fixed tree over its elements.
#include "reduce/reduce_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;
constexpr float kInfinity = __builtin_inff();

alignas(64) constexpr int32_t kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
SKUA_INL M32 lanes_below(size_t n) { return gt(I32::set1(int32_t(n)), I32::load(kIota)); }

// leaf(x): what an element contributes; join: associative up to rounding; add(acc, x) = join(acc, leaf(x)).
struct Sum {
  static constexpr float identity = 0;
  static SKUA_INL F32 leaf(F32 x) { return x; }
  static SKUA_INL F32 join(F32 a, F32 b) { return a + b; }
  static SKUA_INL F32 add(F32 a, F32 x) { return a + x; }
  static SKUA_INL float lanes(F32 a) { return sum(a); }
};
struct SumSquares : Sum {
  static SKUA_INL F32 leaf(F32 x) { return x * x; }
  static SKUA_INL F32 add(F32 a, F32 x) { return fma(x, x, a); }
};
struct Min {
  static constexpr float identity = kInfinity;
  static SKUA_INL F32 leaf(F32 x) { return x; }
  static SKUA_INL F32 join(F32 a, F32 b) { return min(a, b); }
  static SKUA_INL F32 add(F32 a, F32 x) { return min(a, x); }
  static SKUA_INL float lanes(F32 a) { return min_of(a); }
};
struct Max {
  static constexpr float identity = -kInfinity;
  static SKUA_INL F32 leaf(F32 x) { return x; }
  static SKUA_INL F32 join(F32 a, F32 b) { return max(a, b); }
  static SKUA_INL F32 add(F32 a, F32 x) { return max(a, x); }
  static SKUA_INL float lanes(F32 a) { return max_of(a); }
};
struct Prod {
  static constexpr float identity = 1;
  static SKUA_INL F32 leaf(F32 x) { return x; }
  static SKUA_INL F32 join(F32 a, F32 b) { return a * b; }
  static SKUA_INL F32 add(F32 a, F32 x) { return a * x; }
  static SKUA_INL float lanes(F32 a) {
    float t[L];
    a.store(t);
    for (size_t half = L / 2; half; half /= 2)
      for (size_t i = 0; i < half; ++i) t[i] *= t[i + half];
    return t[0];
  }
};

// ---- rows -----------------------------------------------------------------------------------------------------------
template <class Op, class T>
SKUA_INL F32 leaf_n(const T* x, size_t n) {
  return select(lanes_below(n), Op::leaf(F32::load_n(x, n)), F32::set1(Op::identity));
}

template <class Op, class T> SKUA_INL float row(size_t n, const T* x) {
  constexpr size_t A = L >= 4 ? 4 : 16;
  if (n <= L) return Op::lanes(leaf_n<Op>(x, n));
  F32 acc[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) acc[a] = F32::set1(Op::identity);
  for (; n >= A * L; n -= A * L, x += A * L)
    SKUA_UNROLL for (size_t a = 0; a < A; ++a)
      acc[a] = Op::add(acc[a], F32::load(x + a * L));
  SKUA_UNROLL for (size_t a = 0; a + 1 < A; ++a)
    if (n >= L) {
      acc[a] = Op::add(acc[a], F32::load(x));
      n -= L;
      x += L;
    }
  if (n) acc[A - 1] = Op::join(acc[A - 1], leaf_n<Op>(x, n));
  SKUA_UNROLL for (size_t half = A / 2; half; half /= 2)
    SKUA_UNROLL for (size_t a = 0; a < half; ++a)
      acc[a] = Op::join(acc[a], acc[a + half]);
  return Op::lanes(acc[0]);
}

template <class Op, class T>
void reduce_rows(size_t rows, size_t n, const void* from, size_t x_row, float* y, float divisor) {
  const T* x = static_cast<const T*>(from);
  for (size_t r = 0; r < rows; ++r, x += x_row) {
    const float value = row<Op>(n, x);
    y[r] = divisor != 1 ? value / divisor : value;
  }
}

// ---- columns --------------------------------------------------------------------------------------------------------
// Vectors at one column of W rows.
template <class Op, int W, bool whole, class T> SKUA_INL F32 tree(const T* x, size_t x_row, size_t columns) {
  if constexpr (W == 1) return Op::leaf(whole ? F32::load(x) : F32::load_n(x, columns));
  else
    return Op::join(tree<Op, W / 2, whole>(x, x_row, columns),
                    tree<Op, W / 2, whole>(x + W / 2 * x_row, x_row, columns));
}

// Fewer than 16 rows: 8, 4, 2 and 1 of them, the small ones joined first.
template <class Op, bool whole, class T> SKUA_INL F32 part_tree(size_t rows, const T* x, size_t x_row, size_t columns) {
  F32 t = F32::set1(Op::identity);
  bool have = false;
  auto take = [&](F32 s) {
    t = have ? Op::join(s, t) : s;
    have = true;
  };
  if (rows & 1) take(tree<Op, 1, whole>(x + (rows & 14) * x_row, x_row, columns));
  if (rows & 2) take(tree<Op, 2, whole>(x + (rows & 12) * x_row, x_row, columns));
  if (rows & 4) take(tree<Op, 4, whole>(x + (rows & 8) * x_row, x_row, columns));
  if (rows & 8) take(tree<Op, 8, whole>(x, x_row, columns));
  return t;
}

template <class Op, bool whole, class T>
SKUA_INL void column_vector(size_t rows, size_t columns, const T* x, size_t x_row, float* y, bool first,
                            const F32* divisor) {
  F32 t = rows == 16 ? tree<Op, 16, whole>(x, x_row, columns) : part_tree<Op, whole>(rows, x, x_row, columns);
  if (!first) t = Op::join(whole ? F32::load(y) : F32::load_n(y, columns), t);
  if (divisor) t = t / *divisor;
  whole ? t.store(y) : t.store_n(y, columns);
}

template <class Op, class T>
void reduce_columns(size_t n, size_t columns, const void* from, size_t x_row, float* y, float divisor) {
  const T* x = static_cast<const T*>(from);
  const F32 by = F32::set1(divisor);
  for (size_t r = 0; r < n; r += 16, x += 16 * x_row) {
    const size_t rows = n - r < 16 ? n - r : 16;
    const F32* finish = divisor != 1 && r + 16 >= n ? &by : nullptr;
    size_t c = 0;
    for (; c + L <= columns; c += L) column_vector<Op, true>(rows, L, x + c, x_row, y + c, r == 0, finish);
    if (c < columns) column_vector<Op, false>(rows, columns - c, x + c, x_row, y + c, r == 0, finish);
  }
}

// ---- index of the smallest and the largest --------------------------------------------------------------------------
// Lanes where v, which comes later, replaces best: a NaN replaces any number and is replaced by nothing.
template <bool largest>
SKUA_INL M32 replaces(F32 v, F32 best) {
  return ~(largest ? le(v, best) : ge(v, best)) & eq(best, best);
}

template <bool largest, class T> SKUA_INL int32_t arg_row(size_t n, const T* x) {
  constexpr size_t A = 2;  // two chains: comparing, then choosing has a latency of several cycles
  // Where nothing replaces the identity, all elements equal it and the first one is the answer.
  F32 value[A];
  I32 where[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) {
    value[a] = F32::set1(largest ? -kInfinity : kInfinity);
    where[a] = I32::set1(0);
  }
  I32 index = I32::load(kIota);
  const I32 step = I32::set1(int32_t(L));
  auto take = [&](size_t a, F32 v, M32 valid) {
    const M32 m = replaces<largest>(v, value[a]) & valid;
    value[a] = select(m, v, value[a]);
    where[a] = select(m, index, where[a]);
    index = index + step;
  };
  const M32 all_lanes = eq(F32::zero(), F32::zero());
  size_t i = 0;
  for (; i + A * L <= n; i += A * L)
    SKUA_UNROLL for (size_t a = 0; a < A; ++a)
      take(a, F32::load(x + i + a * L), all_lanes);
  if (i + L <= n) {
    take(0, F32::load(x + i), all_lanes);
    i += L;
  }
  if (i < n) take(1, F32::load_n(x + i, n - i), lanes_below(n - i));
  const float best = largest ? max_of(max(value[0], value[1])) : min_of(min(value[0], value[1]));
  // The smallest index among those that hold it, by its high, then its low bits: floats hold 16 bits exactly.
  const F32 none = F32::set1(65536.0f);
  F32 high = none, low = none;
  M32 hit[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) {
    hit[a] = best != best ? is_nan(value[a]) : eq(value[a], F32::set1(best));
    high = min_fast(high, select(hit[a], to_f32(shr<16>(where[a])), none));
  }
  const float first = min_of(high);
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) {
    const M32 m = hit[a] & eq(to_f32(shr<16>(where[a])), F32::set1(first));
    low = min_fast(low, select(m, to_f32(where[a] & I32::set1(65535)), none));
  }
  return int32_t(first) * 65536 + int32_t(min_of(low));
}

template <bool largest, class T> void arg_rows(size_t rows, size_t n, const void* from, size_t x_row, int32_t* y) {
  const T* x = static_cast<const T*>(from);
  for (size_t r = 0; r < rows; ++r, x += x_row) y[r] = arg_row<largest>(n, x);
}

template <bool largest, int V, bool whole, class T>
SKUA_INL void arg_strip(size_t n, size_t columns, const T* x, size_t x_row, int32_t* y) {
  F32 value[V];
  I32 where[V];
  SKUA_UNROLL for (int v = 0; v < V; ++v) {
    value[v] = whole ? F32::load(x + v * L) : F32::load_n(x + v * L, columns);
    where[v] = I32::set1(0);
  }
  for (size_t r = 1; r < n; ++r) {
    x += x_row;
    const I32 index = I32::set1(int32_t(r));
    SKUA_UNROLL for (int v = 0; v < V; ++v) {
      const F32 next = whole ? F32::load(x + v * L) : F32::load_n(x + v * L, columns);
      const M32 m = replaces<largest>(next, value[v]);
      value[v] = select(m, next, value[v]);
      where[v] = select(m, index, where[v]);
    }
  }
  SKUA_UNROLL for (int v = 0; v < V; ++v) whole ? where[v].store(y + v * L) : where[v].store_n(y + v * L, columns);
}

template <bool largest, class T>
void arg_columns(size_t n, size_t columns, const void* from, size_t x_row, int32_t* y) {
  const T* x = static_cast<const T*>(from);
  size_t c = 0;
  for (; c + 4 * L <= columns; c += 4 * L) arg_strip<largest, 4, true>(n, 0, x + c, x_row, y + c);
  for (; c + L <= columns; c += L) arg_strip<largest, 1, true>(n, 0, x + c, x_row, y + c);
  if (c < columns) arg_strip<largest, 1, false>(n, columns - c, x + c, x_row, y + c);
}

const Kernel kernels[] = {
#define SKUA_KERNELS(T, type, variant, name, op, why)                                                               \
  {"reduce_" #name "_" #type "_rows_" SKUA_STRING(SKUA_ISA), "reduce", why, KernelKind::reduce_rows, Isa::SKUA_ISA, \
   variant, 0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<ReduceRowsFn>(reduce_rows<op, T>)), element_of<T>}, \
  {"reduce_" #name "_" #type "_columns_" SKUA_STRING(SKUA_ISA), "reduce", why, KernelKind::reduce_columns,          \
   Isa::SKUA_ISA, variant, 16, 0, F32::L,                                                                           \
   reinterpret_cast<AnyCode>(static_cast<ReduceColumnsFn>(reduce_columns<op, T>)), element_of<T>},
#define SKUA_REDUCE(variant, name, op, why) SKUA_FOR_TYPES(SKUA_KERNELS, variant, name, op, why)
#include "reduce/reduce.def"
#undef SKUA_REDUCE
    // Of bytes, as f32 holds them: exact up to 2^24.
    SKUA_FOR_INT8(SKUA_KERNELS, kReduceSum, sum, Sum, "exact sum; also the mean")
    SKUA_FOR_INT8(SKUA_KERNELS, kReduceMin, min, Min, "smallest byte")
    SKUA_FOR_INT8(SKUA_KERNELS, kReduceMax, max, Max, "largest byte")
#undef SKUA_KERNELS
#define SKUA_ARG(T, type, variant, name, largest)                                                                     \
  {"reduce_" #name "_" #type "_rows_" SKUA_STRING(SKUA_ISA), "reduce",                                                \
   "two chains of a vector of values and one of indices", KernelKind::reduce_rows, Isa::SKUA_ISA, variant, 0, 0,      \
   F32::L, reinterpret_cast<AnyCode>(static_cast<ArgRowsFn>(arg_rows<largest, T>)), element_of<T>},                   \
  {"reduce_" #name "_" #type "_columns_" SKUA_STRING(SKUA_ISA), "reduce",                                             \
   "four vectors of columns, values and indices in registers", KernelKind::reduce_columns, Isa::SKUA_ISA, variant, 0, \
   4 * F32::L, F32::L, reinterpret_cast<AnyCode>(static_cast<ArgColumnsFn>(arg_columns<largest, T>)), element_of<T>},
    SKUA_FOR_TYPES(SKUA_ARG, kReduceArgmin, argmin, false) SKUA_FOR_TYPES(SKUA_ARG, kReduceArgmax, argmax, true)
    SKUA_FOR_INT8(SKUA_ARG, kReduceArgmin, argmin, false) SKUA_FOR_INT8(SKUA_ARG, kReduceArgmax, argmax, true)
#undef SKUA_ARG
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(reduce, kernels)
}  // namespace skua
