// Layer, RMS, batch, group and instance normalisation, one source for every instruction set.
//
//   rows           a row stays in cache: its sum, its squared deviations, the result. Four accumulators of a vector,
//                  joined as a tree.
//   sum_columns    rows in groups of 16, each group a tree, lane by lane; the result so far stays in y
//   sum_rows       one number
//   affine         y = x * scale + shift
#include "normalize/norm_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;
constexpr size_t A = 4;  // accumulators

alignas(64) constexpr int32_t kIota[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
SKUA_INL M32 lanes_below(size_t n) { return gt(I32::set1(int32_t(n)), I32::load(kIota)); }

// What an element adds.
struct Plain {
  SKUA_INL F32 operator()(F32 acc, F32 x) const { return acc + x; }
};
struct Squared {
  SKUA_INL F32 operator()(F32 acc, F32 x) const { return fma(x, x, acc); }
};
struct Deviation {
  F32 mean;
  SKUA_INL F32 operator()(F32 acc, F32 x) const {
    const F32 d = x - mean;
    return fma(d, d, acc);
  }
};

template <class T, class Add> SKUA_INL float sum_of(size_t n, const T* x, Add add) {
  F32 acc[A];
  SKUA_UNROLL for (size_t a = 0; a < A; ++a) acc[a] = F32::zero();
  for (; n >= A * L; n -= A * L, x += A * L)
    SKUA_UNROLL for (size_t a = 0; a < A; ++a)
      acc[a] = add(acc[a], F32::load(x + a * L));
  for (; n >= L; n -= L, x += L) acc[0] = add(acc[0], F32::load(x));
  if (n) acc[1] = select(lanes_below(n), add(acc[1], F32::load_n(x, n)), acc[1]);
  return sum((acc[0] + acc[2]) + (acc[1] + acc[3]));
}

// factor / sqrt(mean square + epsilon)
SKUA_INL F32 inverse_deviation(float squares, size_t n, float epsilon) {
  return F32::set1(1.0f) / sqrt(F32::set1(squares) / F32::set1(float(n)) + F32::set1(epsilon));
}

template <bool layer, class T>
SKUA_INL void norm_row(size_t n, const T* x, T* y, const float* gamma, const float* beta, float epsilon) {
  F32 mean = F32::zero();
  float squares;
  if constexpr (layer) {
    mean = F32::set1(sum_of(n, x, Plain{})) / F32::set1(float(n));
    squares = sum_of(n, x, Deviation{mean});
  } else {
    squares = sum_of(n, x, Squared{});
  }
  const F32 factor = inverse_deviation(squares, n, epsilon);
  auto result = [&](F32 v, F32 g, F32 b) { return layer ? fma((v - mean) * factor, g, b) : v * factor * g; };
  size_t i = 0;
  for (; i + L <= n; i += L)
    result(F32::load(x + i), F32::load(gamma + i), layer ? F32::load(beta + i) : mean).store(y + i);
  if (const size_t rest = n - i; rest)
    result(F32::load_n(x + i, rest), F32::load_n(gamma + i, rest), layer ? F32::load_n(beta + i, rest) : mean)
        .store_n(y + i, rest);
}

template <bool layer, class T>
void norm_rows(size_t rows, size_t n, const void* from, size_t x_row, void* to, size_t y_row, const float* gamma,
               const float* beta, float epsilon) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (size_t r = 0; r < rows; ++r, x += x_row, y += y_row) norm_row<layer>(n, x, y, gamma, beta, epsilon);
}

template <bool squares, class T> float sum_rows(size_t rows, size_t n, const void* from, size_t x_row, float mean) {
  const T* x = static_cast<const T*>(from);
  float total = 0;
  for (size_t r = 0; r < rows; ++r, x += x_row) {
    if constexpr (squares) total += sum_of(n, x, Deviation{F32::set1(mean)});
    else total += sum_of(n, x, Plain{});
  }
  return total;
}

// W rows of one vector.
template <bool squares, int W, bool whole, class T>
SKUA_INL F32 tree(const T* x, size_t x_row, size_t columns, F32 mean) {
  if constexpr (W == 1) {
    const F32 v = whole ? F32::load(x) : F32::load_n(x, columns);
    return squares ? (v - mean) * (v - mean) : v;
  } else {
    return tree<squares, W / 2, whole>(x, x_row, columns, mean) +
           tree<squares, W / 2, whole>(x + W / 2 * x_row, x_row, columns, mean);
  }
}

template <bool squares, bool whole, class T>
SKUA_INL void sum_vector(size_t rows, size_t columns, const T* x, size_t x_row, const float* means, float* y,
                         bool add) {
  auto load = [&](const float* p) { return whole ? F32::load(p) : F32::load_n(p, columns); };
  const F32 mean = squares ? load(means) : F32::zero();
  F32 t = F32::zero();
  if (rows == 16) {
    t = tree<squares, 16, whole>(x, x_row, columns, mean);
  } else {
    if (rows & 1) t = tree<squares, 1, whole>(x + (rows & 14) * x_row, x_row, columns, mean);
    if (rows & 2) t = t + tree<squares, 2, whole>(x + (rows & 12) * x_row, x_row, columns, mean);
    if (rows & 4) t = t + tree<squares, 4, whole>(x + (rows & 8) * x_row, x_row, columns, mean);
    if (rows & 8) t = t + tree<squares, 8, whole>(x, x_row, columns, mean);
  }
  if (add) t = t + load(y);
  whole ? t.store(y) : t.store_n(y, columns);
}

template <bool squares, class T>
void sum_columns(size_t n, size_t columns, const void* from, size_t x_row, const float* mean, float* y, bool add) {
  const T* x = static_cast<const T*>(from);
  for (size_t r = 0; r < n; r += 16, x += 16 * x_row, add = true) {
    const size_t rows = n - r < 16 ? n - r : 16;
    size_t c = 0;
    for (; c + L <= columns; c += L)
      sum_vector<squares, true>(rows, L, x + c, x_row, squares ? mean + c : nullptr, y + c, add);
    if (c < columns)
      sum_vector<squares, false>(rows, columns - c, x + c, x_row, squares ? mean + c : nullptr, y + c, add);
  }
}

template <bool single, class T>
void affine(size_t rows, size_t n, const void* from, size_t x_row, void* to, size_t y_row, const float* scale,
            const float* shift) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  const F32 one_scale = F32::set1(*scale), one_shift = F32::set1(*shift);
  for (; rows; --rows, x += x_row, y += y_row) {
    size_t i = 0;
    for (; i + L <= n; i += L) {
      const F32 a = single ? one_scale : F32::load(scale + i), b = single ? one_shift : F32::load(shift + i);
      fma(F32::load(x + i), a, b).store(y + i);
    }
    if (const size_t rest = n - i; rest) {
      const F32 a = single ? one_scale : F32::load_n(scale + i, rest),
                b = single ? one_shift : F32::load_n(shift + i, rest);
      fma(F32::load_n(x + i, rest), a, b).store_n(y + i, rest);
    }
  }
}

#define SKUA_NORM(name, type, way, T, variant, kind, Fn, why, ...)                                                     \
  {name "_" #type "_" way "_" SKUA_STRING(SKUA_ISA), "normalize", why, KernelKind::kind, Isa::SKUA_ISA, variant, 0, 0, \
   F32::L, reinterpret_cast<AnyCode>(static_cast<Fn>(__VA_ARGS__)), element_of<T>},
#define SKUA_NORMS(T, type)                                                                                          \
  SKUA_NORM("layer_norm", type, "rows", T, 0, norm_rows, NormRowsFn, "mean, deviation and result of a row in cache", \
            norm_rows<true, T>)                                                                                      \
  SKUA_NORM("rms_norm", type, "rows", T, 1, norm_rows, NormRowsFn, "mean square and result of a row in cache",       \
            norm_rows<false, T>)                                                                                     \
  SKUA_NORM("norm_sum", type, "columns", T, 0, norm_sum_columns, NormSumColumnsFn,                                   \
            "sums of channels next to each other, 16 pixels a tree", sum_columns<false, T>)                          \
  SKUA_NORM("norm_squares", type, "columns", T, 1, norm_sum_columns, NormSumColumnsFn,                               \
            "squared deviations of channels next to each other", sum_columns<true, T>)                               \
  SKUA_NORM("norm_sum", type, "rows", T, 0, norm_sum_rows, NormSumRowsFn, "sum of a channel's plane",                \
            sum_rows<false, T>)                                                                                      \
  SKUA_NORM("norm_squares", type, "rows", T, 1, norm_sum_rows, NormSumRowsFn,                                        \
            "squared deviations of a channel's plane", sum_rows<true, T>)                                            \
  SKUA_NORM("norm_affine", type, "channels", T, 0, norm_affine, NormAffineFn,                                        \
            "one multiply-add per element, factors per channel", affine<false, T>)                                   \
  SKUA_NORM("norm_affine", type, "plane", T, 1, norm_affine, NormAffineFn,                                           \
            "one multiply-add per element, factors of a plane in registers", affine<true, T>)
const Kernel kernels[] = {SKUA_FOR_TYPES(SKUA_NORMS)};
#undef SKUA_NORMS
#undef SKUA_NORM

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(norm, kernels)
}  // namespace skua
