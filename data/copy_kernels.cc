// Moves of 32-bit elements: contiguous runs, transposes of matrices, and everything else.
//
// Transpose: x is [n][rows] (rows contiguous), y is [rows][n]. Tiles of L x L pass through registers: L loads, L*log2(L) shuffles, L stores.
// A cache line holds 16 elements, so tiles are taken in squares of 16 x 16: every line of x and of y is touched by one square only (when
// aligned, else two), however long the strides are. Four squares along x follow each other: x is read 256 bytes at a time from as many pages as
// it has rows. Edges are the same tile with partial loads and stores; up to four runs are woven element by element.
#include "data/copy_kernel.h"
#include "dispatch/kernel.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;

SKUA_INL void copy_run(size_t n, const int32_t* x, int32_t* y) {
  for (; n >= 4 * L; n -= 4 * L, x += 4 * L, y += 4 * L) {
    const I32 a = I32::load(x), b = I32::load(x + L), c = I32::load(x + 2 * L), d = I32::load(x + 3 * L);
    a.store(y); b.store(y + L); c.store(y + 2 * L); d.store(y + 3 * L);
  }
  for (; n >= L; n -= L, x += L, y += L) I32::load(x).store(y);
  if (n) I32::load_n(x, n).store_n(y, n);
}

void rows(size_t rows, size_t n, const int32_t* x, ptrdiff_t x_row, int32_t* y, ptrdiff_t y_row) {
  for (; rows; --rows, x += x_row, y += y_row) copy_run(n, x, y);
}

void strided(size_t rows, size_t n, const int32_t* x, ptrdiff_t x_row, ptrdiff_t x_step, int32_t* y, ptrdiff_t y_row, ptrdiff_t y_step) {
  for (; rows; --rows, x += x_row, y += y_row) {
    if (x_step == 0 && y_step == 1) {
      const I32 value = I32::set1(*x);
      size_t i = 0;
      for (; i + L <= n; i += L) value.store(y + i);
      if (i < n) value.store_n(y + i, n - i);
      continue;
    }
    const int32_t* from = x;
    int32_t* to = y;
    size_t i = n;
    for (; i >= 4; i -= 4, from += 4 * x_step, to += 4 * y_step) {
      const int32_t a = from[0], b = from[x_step], c = from[2 * x_step], d = from[3 * x_step];
      to[0] = a; to[y_step] = b; to[2 * y_step] = c; to[3 * y_step] = d;
    }
    for (; i; --i, from += x_step, to += y_step) *to = *from;
  }
}

// y[r][i] = x[i][r] for r < rows, i < n, both 1..L.
SKUA_INL void edge_tile(size_t rows, size_t n, const float* x, ptrdiff_t x_step, float* y, ptrdiff_t y_row) {
  F32 t[L];
  for (size_t i = 0; i < L; ++i) t[i] = i < n ? F32::load_n(x + ptrdiff_t(i) * x_step, rows) : F32::zero();
  transpose(t);
  for (size_t r = 0; r < rows; ++r) t[r].store_n(y + ptrdiff_t(r) * y_row, n);
}

SKUA_INL void full_tile(const float* x, ptrdiff_t x_step, float* y, ptrdiff_t y_row) {
  F32 t[L];
  SKUA_UNROLL for (size_t i = 0; i < L; ++i) t[i] = F32::load(x + ptrdiff_t(i) * x_step);
  transpose(t);
  SKUA_UNROLL for (size_t r = 0; r < L; ++r) t[r].store(y + ptrdiff_t(r) * y_row);
}

// G runs of x woven into one of y, or one of x taken apart into G: tiles would be mostly empty.
template <size_t G> SKUA_INL void weave(size_t rows, const int32_t* x, ptrdiff_t x_step, int32_t* y, ptrdiff_t y_row) {
  for (size_t r = 0; r < rows; ++r, y += y_row) SKUA_UNROLL for (size_t i = 0; i < G; ++i) y[i] = x[ptrdiff_t(i) * x_step + ptrdiff_t(r)];
}
template <size_t G> SKUA_INL void unweave(size_t n, const int32_t* x, ptrdiff_t x_step, int32_t* y, ptrdiff_t y_row) {
  for (size_t i = 0; i < n; ++i, x += x_step) SKUA_UNROLL for (size_t r = 0; r < G; ++r) y[ptrdiff_t(r) * y_row + ptrdiff_t(i)] = x[r];
}

void transposed(size_t rows, size_t n, const int32_t* x_bits, ptrdiff_t x_step, int32_t* y_bits, ptrdiff_t y_row) {
  constexpr size_t kThin = L > 1 ? 4 : 0;
  // What is left beside whole tiles is woven when it is thin.
  const size_t n_thin = n % L <= kThin ? n % L : n <= kThin ? n : 0;
  n -= n_thin;
  const int32_t* x_end = x_bits + ptrdiff_t(n) * x_step;
  switch (n_thin) {
    case 1: weave<1>(rows, x_end, x_step, y_bits + n, y_row); break;
    case 2: weave<2>(rows, x_end, x_step, y_bits + n, y_row); break;
    case 3: weave<3>(rows, x_end, x_step, y_bits + n, y_row); break;
    case 4: weave<4>(rows, x_end, x_step, y_bits + n, y_row); break;
    default: break;
  }
  const size_t rows_thin = rows % L <= kThin ? rows % L : rows <= kThin ? rows : 0;
  rows -= rows_thin;
  int32_t* y_end = y_bits + ptrdiff_t(rows) * y_row;
  switch (rows_thin) {
    case 1: unweave<1>(n, x_bits + rows, x_step, y_end, y_row); break;
    case 2: unweave<2>(n, x_bits + rows, x_step, y_end, y_row); break;
    case 3: unweave<3>(n, x_bits + rows, x_step, y_end, y_row); break;
    case 4: unweave<4>(n, x_bits + rows, x_step, y_end, y_row); break;
    default: break;
  }
  const float* x = reinterpret_cast<const float*>(x_bits);
  float* y = reinterpret_cast<float*>(y_bits);
  constexpr size_t kLine = L > 16 ? L : 16, kBlock = 64;
  for (size_t r0 = 0; r0 < rows; r0 += kBlock)
    for (size_t i0 = 0; i0 < n; i0 += kLine) {
      const size_t i1 = n - i0 < kLine ? n : i0 + kLine, r_end = rows - r0 < kBlock ? rows : r0 + kBlock;
      for (size_t r1 = r0; r1 < r_end; r1 += kLine) {
        const size_t r2 = r_end - r1 < kLine ? r_end : r1 + kLine;
        for (size_t r = r1; r < r2; r += L)
          for (size_t i = i0; i < i1; i += L) {
            const float* from = x + ptrdiff_t(i) * x_step + r;
            float* to = y + ptrdiff_t(r) * y_row + i;
            if (r2 - r >= L && i1 - i >= L) full_tile(from, x_step, to, y_row);
            else edge_tile(r2 - r < L ? r2 - r : L, i1 - i < L ? i1 - i : L, from, x_step, to, y_row);
          }
      }
    }
}

const Kernel kernels[] = {
    {"copy_rows_x32_" SKUA_STRING(SKUA_ISA), "data", "runs of elements next to each other, four vectors a turn", KernelKind::copy_rows, Isa::SKUA_ISA, 0, 0, 0, F32::L,
     reinterpret_cast<AnyCode>(static_cast<CopyRowsFn>(rows))},
    {"copy_transposed_x32_" SKUA_STRING(SKUA_ISA), "data", "vectors transposed in registers, in squares of whole cache lines", KernelKind::copy_transposed, Isa::SKUA_ISA, 0,
     F32::L, F32::L, F32::L, reinterpret_cast<AnyCode>(static_cast<CopyTransposedFn>(transposed))},
    {"copy_strided_x32_" SKUA_STRING(SKUA_ISA), "data", "any strides, one element at a time; fills", KernelKind::copy_strided, Isa::SKUA_ISA, 0, 0, 0, F32::L,
     reinterpret_cast<AnyCode>(static_cast<CopyStridedFn>(strided))},
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(data, kernels)
}  // namespace skua
