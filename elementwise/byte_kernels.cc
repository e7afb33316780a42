// Elementwise kernels on quantised bytes, one source for every instruction set: conversions, binary functions of
// tensors of different scales, tables of 256 entries, clamps. Bytes are widened to integers, computed in f32 without
// fused operations, and rounded once: every set gives the same bits. Four vectors of f32 a turn, which leave as one of
// bytes.
#include "elementwise/byte_kernel.h"
#include "dispatch/kernel.h"
#include "simd/byte_turn.h"
#include "simd/look_up.h"
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

constexpr size_t L = F32::L;

template <class T> constexpr bool is_byte = sizeof(T) == 1;
template <class T> SKUA_INL F32 centred(const T* p, I32 zero) {
  if constexpr (is_byte<T>) return to_f32(I32::load(p) - zero);
  else return F32::load(p);
}
template <class T> SKUA_INL F32 centred_n(const T* p, I32 zero, size_t n) {
  if constexpr (is_byte<T>) return to_f32(I32::load_n(p, n) - zero);
  else return F32::load_n(p, n);
}
SKUA_INL F32 without_nan(F32 x) { return keep_if(eq(x, x), x); }
#if defined(__aarch64__) && !defined(SKUA_ISA_scalar)
constexpr bool kNanIsZero = true;  // once it is an integer; bounds of conversions have 0 between them
#else
constexpr bool kNanIsZero = false;
#endif

template <class X, class Y> SKUA_INL void convert_channels(const ConvertBytes& c) {
  const X* x = static_cast<const X*>(c.x);
  Y* y = static_cast<Y*>(c.y);
  const F32 low = F32::set1(c.to.low), high = F32::set1(c.to.high);
  for (size_t i = 0, m; i < c.n; i += m) {
    m = c.n - i < L ? c.n - i : L;
    const I32 zeros = I32::load_n(c.zeros + i, m), to = shr<16>(zeros);
    const F32 t = centred_n(x + i, shr<16>(shl<16>(zeros)), m) * F32::load_n(c.factors + i, m), to_f = to_f32(to);
    if constexpr (is_byte<Y>)
      (nearest_small(clamp_high(clamp_low(without_nan(t), low - to_f), high - to_f)) + to).store_n(y + i, m);
    else t.store_n(y + i, m);
  }
}

template <class X, class Y> void convert_bytes(const ConvertBytes& c) {
  if (c.factors) return convert_channels<X, Y>(c);
  const X* x = static_cast<const X*>(c.x);
  Y* y = static_cast<Y*>(c.y);
  const Requantizer to(c.to);
  const F32 factor = F32::set1(c.factor);
  const I32 zero = I32::set1(c.zero);
  size_t n = c.n;
  if constexpr (is_byte<Y> && (is_byte<X> || kTurnInOrder)) {
    const Ends<Y> end(c.to, is_byte<X> ? 256 * c.factor : __builtin_inff());
    for (; n >= 4 * L; n -= 4 * L, x += 4 * L, y += 4 * L) {
      F32 t[4];
      if constexpr (is_byte<X>) centred_four(x, c.zero, t);
      else SKUA_UNROLL for (size_t u = 0; u < 4; ++u) t[u] = F32::load(x + u * L);
      SKUA_UNROLL for (size_t u = 0; u < 4; ++u)
        t[u] = is_byte<X> || kNanIsZero ? t[u] * factor : without_nan(t[u] * factor);
      end(t, y);
    }
  }
  for (; n >= 4 * L; n -= 4 * L, x += 4 * L, y += 4 * L) {
    F32 t[4];
    if constexpr (is_byte<X> && kTurnInOrder) centred_four(x, c.zero, t);
    else SKUA_UNROLL for (size_t u = 0; u < 4; ++u) t[u] = centred(x + u * L, zero);
    SKUA_UNROLL for (size_t u = 0; u < 4; ++u) t[u] = t[u] * factor;
    if constexpr (is_byte<Y>) {
      I32 q[4];
      SKUA_UNROLL for (size_t u = 0; u < 4; ++u) q[u] = to.rounded(without_nan(t[u]));
      store_bytes(q, y);
    } else {
      SKUA_UNROLL for (size_t u = 0; u < 4; ++u) t[u].store(y + u * L);
    }
  }
  for (size_t m; n; n -= m, x += m, y += m) {
    m = n < L ? n : L;
    const F32 t = centred_n(x, zero, m) * factor;
    if constexpr (is_byte<Y>) to.rounded(is_byte<X> ? t : without_nan(t)).store_n(y, m);
    else t.store_n(y, m);
  }
}

// ---- binary ---------------------------------------------------------------------------------------------------------
template <class T> struct Vector {
  const T* p;
  int32_t zero;
  SKUA_INL void four(size_t i, F32 (&x)[4]) const { centred_four(p + i, zero, x); }
  SKUA_INL F32 at_n(size_t i, size_t n) const { return centred_n(p + i, I32::set1(zero), n); }
};
struct Scalar {
  F32 v;
  SKUA_INL void four(size_t, F32 (&x)[4]) const {
    SKUA_UNROLL for (int u = 0; u < 4; ++u) x[u] = v;
  }
  SKUA_INL F32 at_n(size_t, size_t) const { return v; }
};
template <class T, class X, class Y, class F>
SKUA_INL void row(size_t n, X x, Y y, T* z, const Requantize& requantize, const Ends<T>& end, F f) {
  size_t i = 0;
  for (; n - i >= 4 * L; i += 4 * L) {
    F32 a[4], b[4], t[4];
    x.four(i, a);
    y.four(i, b);
    SKUA_UNROLL for (int u = 0; u < 4; ++u) t[u] = f(a[u], b[u]);
    end(t, z + i);
  }
  if (i == n) return;
  const Requantizer to(requantize);
  for (size_t m; i < n; i += m) {
    m = n - i < L ? n - i : L;
    to.rounded(f(x.at_n(i, m), y.at_n(i, m))).store_n(z + i, m);
  }
}
template <class T, class F> SKUA_INL void rows(const BinaryBytes& r, float most, F f) {
  const Ends<T> end(r.to, most);
  const T *x = static_cast<const T*>(r.x), *y = static_cast<const T*>(r.y);
  T* z = static_cast<T*>(r.z);
  for (size_t i = 0; i < r.rows; ++i, x += r.x_step, y += r.y_step, z += r.z_step) {
    if (r.form == BinaryForm::vectors) row(r.n, Vector<T>{x, r.x_zero}, Vector<T>{y, r.y_zero}, z, r.to, end, f);
    else if (r.form == BinaryForm::y_scalar)
      row(r.n, Vector<T>{x, r.x_zero}, Scalar{F32::set1(float(*y - r.y_zero))}, z, r.to, end, f);
    else row(r.n, Scalar{F32::set1(float(*x - r.x_zero))}, Vector<T>{y, r.y_zero}, z, r.to, end, f);
  }
}
SKUA_INL float amount(float x) { return x < 0 ? -x : x; }
template <class T> void add_bytes(const BinaryBytes& r) {
  const F32 a = F32::set1(r.a), b = F32::set1(r.b);
  rows<T>(
      r, 256 * (amount(r.a) + amount(r.b)),
      [ a, b ](F32 x, F32 y) __attribute__((always_inline)) { return x * a + y * b; });
}
template <class T> void mul_bytes(const BinaryBytes& r) {
  const F32 a = F32::set1(r.a);
  rows<T>(r, 65536 * amount(r.a), [a](F32 x, F32 y) __attribute__((always_inline)) { return x * y * a; });
}

// Of whole vectors only: what repeats is repeated in a buffer.
template <int variant, class T> void other_bytes(const BinaryBytes& r) {
  const F32 a = F32::set1(r.a), b = F32::set1(r.b), c = F32::set1(r.c);
  const Ends<T> end(r.to, __builtin_inff());
  const T *x = static_cast<const T*>(r.x), *y = static_cast<const T*>(r.y);
  T* z = static_cast<T*>(r.z);
  for (size_t i = 0; i < r.rows; ++i, x += r.x_step, y += r.y_step, z += r.z_step)
    row(
        r.n, Vector<T>{x, r.x_zero}, Vector<T>{y, r.y_zero}, z, r.to,
        end, [&](F32 p, F32 q) __attribute__((always_inline)) {
          if constexpr (variant == 2)
            return without_nan(p / q * a);
          else if constexpr (variant == 3)
            return min_fast(p * a, q * b);
          else if constexpr (variant == 4)
            return max_fast(p * a, q * b);
          else if constexpr (variant == 5)
            return (p * a - q * b) * (p * a - q * b) * c;
          else
            return select(lt(p, F32::zero()), p * q * c, p * a);
        });
}

// ---- table ----------------------------------------------------------------------------------------------------------
void table(size_t n, const void* x, void* y, const uint8_t* entries) {
  look_up(n, static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), entries);
}

// ---- clamp ----------------------------------------------------------------------------------------------------------
// Whole blocks of what is left. A bound that is the type's own is not compared with: the comparisons of a block are
// slower than its load and store.
template <class T, bool lower, bool upper> SKUA_INL void clamp_blocks(size_t& n, const T*& x, T*& y, T low, T high) {
  typedef T Block __attribute__((vector_size(4 * L), aligned(1), may_alias));
  const Block lows = low - Block{}, highs = high - Block{};
  const auto block = [&](size_t i) __attribute__((always_inline)) {
    Block v = reinterpret_cast<const Block*>(x)[i];
    if constexpr (lower) v = v > lows ? v : lows;
    if constexpr (upper) v = v < highs ? v : highs;
    reinterpret_cast<Block*>(y)[i] = v;
  };
  for (; n >= 4 * sizeof(Block); n -= 4 * sizeof(Block), x += 4 * sizeof(Block), y += 4 * sizeof(Block))
    SKUA_UNROLL for (size_t i = 0; i < 4; ++i) block(i);
  for (; n >= sizeof(Block); n -= sizeof(Block), x += sizeof(Block), y += sizeof(Block)) block(0);
}
template <class T> void clamp_bytes(size_t n, const void* from, void* to, int32_t low_bound, int32_t high_bound) {
  constexpr int32_t first = T(-1) < T(0) ? -128 : 0;
  const T *x = static_cast<const T*>(from), low = T(low_bound), high = T(high_bound);
  T* y = static_cast<T*>(to);
  if constexpr (L > 1) {
    if (high_bound == first + 255) clamp_blocks<T, true, false>(n, x, y, low, high);
    else if (low_bound == first) clamp_blocks<T, false, true>(n, x, y, low, high);
    else clamp_blocks<T, true, true>(n, x, y, low, high);
  }
  for (; n; --n, ++x, ++y) *y = *x < low ? low : *x > high ? high : *x;
}

const Kernel kernels[] = {
#define SKUA_CONVERT(X, from, Y, to)                                                                                   \
  {"convert_" #from "_" #to "_" SKUA_STRING(SKUA_ISA), "elementwise",                                                  \
   "one factor and one rounding; a factor for each element of channels", KernelKind::convert_bytes, Isa::SKUA_ISA,     \
   uint16_t(element_of<X>), 0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<ConvertBytesFn>(convert_bytes<X, Y>)), \
   element_of<Y>},
#define SKUA_BOTH(T, type, B, byte) SKUA_CONVERT(T, type, B, byte) SKUA_CONVERT(B, byte, T, type)
#define SKUA_BYTES(B, byte)                                            \
  SKUA_FOR_TYPES(SKUA_BOTH, B, byte) SKUA_CONVERT(int8_t, s8, B, byte) \
  SKUA_CONVERT(uint8_t, u8, B, byte)
    SKUA_FOR_INT8(SKUA_BYTES)
#undef SKUA_BYTES
#undef SKUA_BOTH
#undef SKUA_CONVERT
#define SKUA_OTHER(T, type, name, variant, why)                                                                       \
  {name "_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", why, KernelKind::binary_bytes, Isa::SKUA_ISA, variant, 0, \
   0, F32::L, reinterpret_cast<AnyCode>(static_cast<BinaryBytesFn>(other_bytes<variant, T>)), element_of<T>},
#define SKUA_BYTES(T, type)                                                                                            \
  SKUA_OTHER(T, type, "div", 2, "a quotient, one factor, one rounding")                                                \
  SKUA_OTHER(T, type, "min", 3, "two factors, the smaller, one rounding")                                              \
  SKUA_OTHER(T, type, "max", 4, "two factors, the larger, one rounding")                                               \
  SKUA_OTHER(T, type, "squared_difference", 5, "two factors, one difference")                                          \
  SKUA_OTHER(T, type, "prelu", 6, "a factor of each side of 0")                                                        \
  {"add_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise",                                                              \
   "two factors, one sum, one rounding; subtracts by a factor below 0", KernelKind::binary_bytes, Isa::SKUA_ISA, 0, 0, \
   0, F32::L, reinterpret_cast<AnyCode>(static_cast<BinaryBytesFn>(add_bytes<T>)), element_of<T>},                     \
  {"mul_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", "an exact product, one factor, one rounding",                \
   KernelKind::binary_bytes, Isa::SKUA_ISA, 1, 0, 0, F32::L,                                                           \
   reinterpret_cast<AnyCode>(static_cast<BinaryBytesFn>(mul_bytes<T>)), element_of<T>},                                \
  {"clamp_" #type "_" SKUA_STRING(SKUA_ISA), "elementwise", "relu, relu6, clamp that keep the quantisation",           \
   KernelKind::clamp_bytes, Isa::SKUA_ISA, 0, 0, 0, F32::L,                                                            \
   reinterpret_cast<AnyCode>(static_cast<ClampBytesFn>(clamp_bytes<T>)), element_of<T>},
    SKUA_FOR_INT8(SKUA_BYTES)
#undef SKUA_BYTES
#undef SKUA_OTHER
    {"table_x8_" SKUA_STRING(SKUA_ISA), "elementwise", "every unary function of bytes: 256 entries, made once",
     KernelKind::table, Isa::SKUA_ISA, 0, 0, 0, F32::L, reinterpret_cast<AnyCode>(static_cast<TableFn>(table)),
     Element::s8},
};

}  // namespace
}  // namespace SKUA_ISA
SKUA_KERNEL_TABLE(bytes, kernels)
}  // namespace skua
