// The transforms of Winograd's algorithm, one source for every instruction set. A lane is a channel: nothing crosses
// lanes. They compute in f32; feature maps are of type T, transformed tiles of type U.
//
//   in:   V[i][j] = sum over y, x of By[i][y] * d[y][x] * Bx[j][x]        (m_y+2)(m_x+2) vectors in, as many points out
//   out:  Y[y][x] = sum over i, j of Ay[y][i] * M[i][j] * Ax[x][j]        (m_y+2)(m_x+2) points in, o_y*o_x vectors
//                                                                         out, with the epilogue
//
// m names the points (points.h), o the outputs of a tile: o = m with 3 taps, o = m-2 with 5.
//
// Both are one-dimensional transforms, first of every column, then of every row. Even and odd terms of a pair of points
// +-p are summed once and added and subtracted. The intermediate tile lies on the stack, so one column or row needs at
// most 8 + 8 registers and a clip of a dimension is one more one-dimensional transform, not one more tile. Where the
// registers hold most of the tile, the whole input tile is unrolled as well.
//
// A tile on the border, and channels that do not fill a vector, are copied to the stack with zeros and go the same way:
// same bits.
#pragma once
#include "winograd/winograd_kernel.h"
#include "dispatch/element.h"
#include "simd/simd.h"
#include "winograd/points.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;
#define SKUA_INL_LAMBDA __attribute__((always_inline))

template <int i>
struct Index {
  static constexpr int value = i;
};
// f(Index<i>) for i in [from, to), unrolled.
template <int from, int to, class F>
SKUA_INL void each(F f) {
  if constexpr (from < to) {
    f(Index<from>{});
    each<from + 1, to>(f);
  }
}

// sum over k < terms of coefficient(k) * d[from + 2k]; the last coefficient is 1.
template <int m, int n, int skip, int terms, int from>
SKUA_INL F32 polynomial(const F32* d) {
  F32 s = d[from + 2 * (terms - 1)];
  each<0, terms - 1>([&](auto k) SKUA_INL_LAMBDA {
    constexpr float c = float(winograd::coefficient(m, n, skip, k.value));
    if constexpr (c == -1) s = s - d[from + 2 * k.value];
    else if constexpr (c == 1) s = s + d[from + 2 * k.value];
    else s = fma(d[from + 2 * k.value], F32::set1(c), s);
  });
  return s;
}
template <int m, int clip, int q>
SKUA_INL F32 rescale(F32 x) {
  constexpr float s = float(winograd::scale(m, q, m / 2 - clip / 2));
  if constexpr (clip / 2 == 0 || s == 1) return x;
  else return x * F32::set1(s);
}

// One dimension of B^T: m+2-clip values -> the points that are left.
template <int m, int clip>
SKUA_INL void transform_in(const F32* d, F32* t) {
  constexpr int n = m / 2 - clip / 2;
  t[0] = rescale<m, clip, -1>(polynomial<m, n, -1, n + 1, 0>(d));
  each<0, n>([&](auto q) SKUA_INL_LAMBDA {
    constexpr float p = float(winograd::point(m, q.value));
    const F32 even = rescale<m, clip, q.value>(polynomial<m, n, q.value, n, 2>(d));
    const F32 odd = rescale<m, clip, q.value>(polynomial<m, n, q.value, n, 1>(d));
    if constexpr (p == 1) {
      t[1 + 2 * q.value] = even + odd;
      t[2 + 2 * q.value] = even - odd;
    } else {
      t[1 + 2 * q.value] = fma(odd, F32::set1(p), even);
      t[2 + 2 * q.value] = fnma(odd, F32::set1(p), even);
    }
  });
  if constexpr (clip % 2 == 0) t[m + 1] = polynomial<m, n, -1, n + 1, 1>(d);
}

// One dimension of A^T: the points that are left -> o-clip outputs.
template <int m, int o, int clip>
SKUA_INL void transform_out(const F32* t, F32* y) {
  constexpr int n = m / 2 - clip / 2;
  F32 sum[n ? n : 1], difference[n ? n : 1];
  each<0, n>([&](auto q) SKUA_INL_LAMBDA {
    sum[q.value] = t[1 + 2 * q.value] + t[2 + 2 * q.value];
    difference[q.value] = t[1 + 2 * q.value] - t[2 + 2 * q.value];
  });
  each<0, o - clip>([&](auto k) SKUA_INL_LAMBDA {
    F32 r;
    each<0, n>([&](auto q) SKUA_INL_LAMBDA {
      constexpr float c = float(winograd::power(winograd::point(m, q.value), k.value));
      const F32 x = k.value % 2 ? difference[q.value] : sum[q.value];
      if constexpr (q.value == 0) {
        if constexpr (c == 1) r = x;
        else r = x * F32::set1(c);
      } else {
        if constexpr (c == 1) r = r + x;
        else r = fma(x, F32::set1(c), r);
      }
    });
    if constexpr (n == 0) r = t[0];
    else if constexpr (k.value == 0) r = r + t[0];
    if constexpr (k.value == o - clip - 1 && clip % 2 == 0) r = r + t[m + 1];
    y[k.value] = r;
  });
}

// ---- input ----------------------------------------------------------------------------------------------------------
template <int m, int clip, int width, class T>
void in_columns(const T* in, size_t row, size_t pixel, F32 (*to)[width], int columns) {
  for (int j = 0; j < columns; ++j, in += pixel) {
    F32 d[m + 2], t[m + 2];
    SKUA_UNROLL for (int i = 0; i < m + 2 - clip; ++i) d[i] = F32::load(in + size_t(i) * row);
    transform_in<m, clip>(d, t);
    each<0, m + 2>([&](auto i) SKUA_INL_LAMBDA {
      if constexpr (winograd::has_point(m, clip, i.value)) to[i.value][j] = t[i.value];
    });
  }
}
template <int m, int clip, class U>
void in_row(const F32* from, U* v, size_t step) {
  F32 t[m + 2];
  transform_in<m, clip>(from, t);
  each<0, m + 2>([&](auto j) SKUA_INL_LAMBDA {
    if constexpr (winograd::has_point(m, clip, j.value)) t[j.value].store(v + size_t(j.value) * step);
  });
}

// A vector of channels of a clipped tile.
template <int my, int mx, class U>
void in_clipped(const float* in, size_t row, size_t pixel, int clip_y, int clip_x, U* v, size_t step) {
  F32 tile[my + 2][mx + 2];
  each<0, kClips<my>>([&](auto clip) SKUA_INL_LAMBDA {
    if (clip_y == clip.value) in_columns<my, clip.value, mx + 2>(in, row, pixel, tile, mx + 2 - clip_x);
  });
  for (int i = 0; i < my + 2; ++i)
    if (winograd::has_point(my, clip_y, i))
      each<0, kClips<mx>>([&](auto clip) SKUA_INL_LAMBDA {
        if (clip_x == clip.value) in_row<mx, clip.value>(tile[i], v + size_t(i * (mx + 2)) * step, step);
      });
}

template <int my, int mx, class T, class U>
SKUA_INL void in_whole(const T* in, size_t row, size_t pixel, U* v, size_t step) {
  F32 tile[my + 2][mx + 2];
  if constexpr (F32::registers >= (my + 2) * (mx + 2) * 2 / 3) {
    each<0, mx + 2>([&](auto j) SKUA_INL_LAMBDA {
      F32 d[my + 2], t[my + 2];
      SKUA_UNROLL for (int i = 0; i < my + 2; ++i) d[i] = F32::load(in + size_t(i) * row + size_t(j.value) * pixel);
      transform_in<my, 0>(d, t);
      SKUA_UNROLL for (int i = 0; i < my + 2; ++i) tile[i][j.value] = t[i];
    });
    each<0, my + 2>([&](auto i) SKUA_INL_LAMBDA {
      F32 t[mx + 2];
      transform_in<mx, 0>(tile[i.value], t);
      SKUA_UNROLL for (int j = 0; j < mx + 2; ++j) t[j].store(v + size_t(i.value * (mx + 2) + j) * step);
    });
  } else {
    in_columns<my, 0, mx + 2>(in, row, pixel, tile, mx + 2);
    for (int i = 0; i < my + 2; ++i) in_row<mx, 0>(tile[i], v + size_t(i * (mx + 2)) * step, step);
  }
}

// A vector of channels of any tile: of clipped ones, and of what was copied; the same code for every type of feature
// maps.
template <int my, int mx, class U>
void in_any(const float* in, size_t row, size_t pixel, int clip_y, int clip_x, U* v, size_t step) {
  if (clip_y || clip_x) in_clipped<my, mx>(in, row, pixel, clip_y, clip_x, v, step);
  else in_whole<my, mx>(in, row, pixel, v, step);
}

template <int my, int mx, class T, class U>
void transform_tile_in(const WinogradIn& t) {
  constexpr bool converts = sizeof(T) != sizeof(float);
  const int rows = my + 2 - t.clip_y, columns = mx + 2 - t.clip_x;
  const bool clipped = t.clip_y || t.clip_x,
             inside = t.top == 0 && t.left == 0 && t.bottom == rows && t.right == columns && !(converts && clipped);
  for (size_t c = 0; c < t.channels; c += L) {
    const size_t n = t.channels - c;
    const T* in = static_cast<const T*>(t.in) + c;
    U* v = static_cast<U*>(t.v) + c / kWinogradLine * t.line + c % kWinogradLine;
    if (inside && n >= L) {
      if constexpr (converts) in_whole<my, mx>(in, t.row, t.pixel, v, t.step);
      else if (clipped) in_clipped<my, mx>(in, t.row, t.pixel, t.clip_y, t.clip_x, v, t.step);
      else in_whole<my, mx>(in, t.row, t.pixel, v, t.step);
      continue;
    }
    float edge[(my + 2) * (mx + 2) * L];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        const bool image = i >= t.top && i < t.bottom && j >= t.left && j < t.right;
        const T* p = in + size_t(i) * t.row + size_t(j) * t.pixel;
        (!image ? F32::zero() : n < L ? F32::load_n(p, n) : F32::load(p)).store(edge + size_t(i * (mx + 2) + j) * L);
      }
    in_any<my, mx>(edge, (mx + 2) * L, L, t.clip_y, t.clip_x, v, t.step);
  }
}

// ---- output ---------------------------------------------------------------------------------------------------------
template <int m, int o, int clip, int width>
void out_columns(const float* from, size_t step, int clip_x, F32 (*to)[width]) {
  for (int j = 0; j < width; ++j, from += step) {
    if (!winograd::has_point(width - 2, clip_x, j)) continue;
    F32 t[m + 2], y[o];
    each<0, m + 2>([&](auto i) SKUA_INL_LAMBDA {
      if constexpr (winograd::has_point(m, clip, i.value))
        t[i.value] = F32::load(from + size_t(i.value * width) * step);
    });
    transform_out<m, o, clip>(t, y);
    SKUA_UNROLL for (int i = 0; i < o - clip; ++i) to[i][j] = y[i];
  }
}

// A row of `count` whole vectors with the epilogue.
template <int count, class T>
SKUA_INL void finish(const WinogradOut& t, F32 (&y)[count], F32 bias, const T* residual, T* out) {
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  SKUA_UNROLL for (int j = 0; j < count; ++j) y[j] = y[j] + bias;
  if (residual && !t.residual_after)
    SKUA_UNROLL for (int j = 0; j < count; ++j)
      y[j] = y[j] + F32::load(residual + size_t(j) * t.residual_pixel);
  SKUA_UNROLL for (int j = 0; j < count; ++j) y[j] = clamp_high(clamp_low(y[j], low), high);
  if (residual && t.residual_after)
    SKUA_UNROLL for (int j = 0; j < count; ++j)
      y[j] = y[j] + F32::load(residual + size_t(j) * t.residual_pixel);
  SKUA_UNROLL for (int j = 0; j < count; ++j) y[j].store(out + size_t(j) * t.pixel);
}
// One of a clipped tile, or of n < L channels.
template <class T>
void finish_any(const WinogradOut& t, const F32* y, int count, F32 bias, size_t n, const T* residual, T* out) {
  const F32 low = F32::set1(t.low), high = F32::set1(t.high);
  for (int j = 0; j < count; ++j) {
    F32 x = y[j] + bias;
    const F32 r = !residual ? F32::zero()
                  : n < L   ? F32::load_n(residual + size_t(j) * t.residual_pixel, n)
                            : F32::load(residual + size_t(j) * t.residual_pixel);
    if (residual && !t.residual_after) x = x + r;
    x = clamp_high(clamp_low(x, low), high);
    if (residual && t.residual_after) x = x + r;
    if (n < L) x.store_n(out + size_t(j) * t.pixel, n);
    else x.store(out + size_t(j) * t.pixel);
  }
}
// The columns of a clipped tile.
template <int my, int mx, int oy, int ox>
void out_clipped(const float* m, size_t step, int clip_y, int clip_x, F32 (*y)[ox]) {
  F32 tile[oy][mx + 2];
  each<0, oy>([&](auto clip) SKUA_INL_LAMBDA {
    if (clip_y == clip.value) out_columns<my, oy, clip.value, mx + 2>(m, step, clip_x, tile);
  });
  for (int i = 0; i < oy - clip_y; ++i)
    each<0, ox>([&](auto clip) SKUA_INL_LAMBDA {
      if (clip_x == clip.value) transform_out<mx, ox, clip.value>(tile[i], y[i]);
    });
}

template <int my, int mx, int oy, int ox, class T>
SKUA_INL void out_whole(const WinogradOut& t, const float* from, F32 bias, const T* residual, T* out) {
  F32 tile[oy][mx + 2];
  if constexpr (F32::registers >= (my + 2) * (mx + 2) * 2 / 3) {
    each<0, mx + 2>([&](auto j) SKUA_INL_LAMBDA {
      F32 p[my + 2], y[oy];
      SKUA_UNROLL for (int i = 0; i < my + 2; ++i) p[i] = F32::load(from + size_t(i * (mx + 2) + j.value) * t.step);
      transform_out<my, oy, 0>(p, y);
      SKUA_UNROLL for (int i = 0; i < oy; ++i) tile[i][j.value] = y[i];
    });
    each<0, oy>([&](auto i) SKUA_INL_LAMBDA {
      F32 y[ox];
      transform_out<mx, ox, 0>(tile[i.value], y);
      finish(t, y, bias, residual ? residual + size_t(i.value) * t.residual_row : nullptr,
             out + size_t(i.value) * t.row);
    });
  } else {
    out_columns<my, oy, 0, mx + 2>(from, t.step, 0, tile);
    for (int i = 0; i < oy; ++i, out += t.row, residual += residual ? t.residual_row : 0) {
      F32 y[ox];
      transform_out<mx, ox, 0>(tile[i], y);
      finish(t, y, bias, residual, out);
    }
  }
}

template <int my, int mx, int oy, int ox, class T>
void transform_tile_out(const WinogradOut& t) {
  const bool whole = !t.clip_y && !t.clip_x;
  for (size_t c = 0; c < t.channels; c += L) {
    const float* m = static_cast<const float*>(t.m) + c / kWinogradLine * t.line + c % kWinogradLine;
    const F32 bias = t.bias ? F32::load(static_cast<const float*>(t.bias) + c) : F32::zero();
    const size_t n = t.channels - c;
    const T* residual = t.residual ? static_cast<const T*>(t.residual) + c : nullptr;
    T* out = static_cast<T*>(t.out) + c;
    if (whole && n >= L) {
      out_whole<my, mx, oy, ox>(t, m, bias, residual, out);
      continue;
    }
    F32 y[oy][ox];
    out_clipped<my, mx, oy, ox>(m, t.step, t.clip_y, t.clip_x, y);
    for (int i = 0; i < oy - t.clip_y; ++i, out += t.row, residual += residual ? t.residual_row : 0)
      finish_any(t, y[i], ox - t.clip_x, bias, n, residual, out);
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
