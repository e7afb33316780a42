// The integer tile of instruction sets without dot products: products of eight bytes in 16 bits, added in pairs to sums
// of 32. Where no weight is -128 the products of two groups of eight are added in 16 bits before (2 * 127 * 128 fits):
// three instructions for sixteen multiply-adds. Else no two products are, so weights and activations of -128 are as
// good as others.
//
//   packed B    [depth / 8][width][8]     kr = 8: half a register is a column, eight deep
//   acc[r][j]   four parts of the sum of row r and column j, which come together at the end
//
// At most two instructions for eight multiply-adds, as many as smlal by lane of s16 takes, but A and B are bytes where
// they are; and on cores with two pipes one multiplies while the other adds (smlal by lane: one of them only).
// Registers, 4x4: 16 accumulators + 4 of A + 2 of B + products of 32. AArch32, 2x4: 8 + 1 + 2 + products of 16.
#pragma once
#include "gemm/int8_arm.h"
#include "simd/in_order.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Products of a column's eight weights; and their sums in pairs. Both stay where they are written: compilers would
// multiply more than there are registers for, or turn accumulators around.
SKUA_INL int16x8_t products(int8x8_t w, int8x8_t x) {
  int16x8_t y;
#if defined(__aarch64__)
  asm volatile("smull %0.8h, %1.8b, %2.8b" : "=w"(y) : "w"(w), "w"(x));
#else
  asm volatile("vmull.s8 %q0, %P1, %P2" : "=w"(y) : "w"(w), "w"(x));
#endif
  return y;
}
SKUA_INL void add_products(int16x8_t& y, int8x8_t w, int8x8_t x) {
#if defined(__aarch64__)
  asm volatile("smlal %0.8h, %1.8b, %2.8b" : "+w"(y) : "w"(w), "w"(x));
#else
  asm volatile("vmlal.s8 %q0, %P1, %P2" : "+w"(y) : "w"(w), "w"(x));
#endif
}
SKUA_INL void add_pairs(int32x4_t& acc, int16x8_t x) {
#if defined(__aarch64__)
  asm volatile("sadalp %0.4s, %1.8h" : "+w"(acc) : "w"(x));
#else
  asm volatile("vpadal.s16 %q0, %q1" : "+w"(acc) : "w"(x));
#endif
}

#if !defined(__aarch64__)
template <class T> SKUA_INL int8x16_t load_here(const T*& p) {  // and moves on
  int8x16_t x;
  asm volatile("vld1.8 {%e0, %f0}, [%1]!" : "=w"(x), "+r"(p) : "m"(*reinterpret_cast<const int8_t (*)[16]>(p)));
  return x;
}
#endif

#if defined(__aarch64__)
// Whole tiles on the Cortex-A53, sixteen deep, where no weight is -128. One vector instruction a cycle, and beside it a
// load to a general register or an addition; a load of 64 bits goes beside nothing but an insert. So registers of A
// (sixteen bytes of a row) and B (a column's, of two groups) are filled in halves, `ldr d`, `ldr x` and `ins`, and the
// low half of one is loaded beside the insert of another: 8 cycles for 48 of arithmetic, 4.57 multiply-adds a cycle.
// Every statement is one instruction that stays where it is written.
struct Halves {
  int8x16_t v;
  uint64_t high;  // on its way
  template <int at = 0> SKUA_INL void load_low(const void* p) { load_lower<at>(v, p); }
  template <int at = 0> SKUA_INL void load_high(const void* p) { load_upper<at - 8>(high, p); }
  SKUA_INL void insert() { insert_upper(v, high); }
  // Of rows of u8, in the order of s8.
  template <bool flip>
  SKUA_INL void flip_low(int8x8_t sign) {
    if constexpr (flip) asm volatile("eor %0.8b, %0.8b, %1.8b" : "+w"(v) : "w"(sign));
  }
  template <bool flip> SKUA_INL void insert_high() {
    if constexpr (flip) high ^= 0x8080808080808080;
    insert();
  }
};
SKUA_INL void multiply_low(int16x8_t& y, const Halves& w, const Halves& x) {
  asm volatile("smull %0.8h, %1.8b, %2.8b" : "=w"(y) : "w"(w.v), "w"(x.v));
}
SKUA_INL void multiply_high(int16x8_t& y, const Halves& w, const Halves& x) {
  asm volatile("smlal2 %0.8h, %1.16b, %2.16b" : "+w"(y) : "w"(w.v), "w"(x.v));
}

template <bool zero> SKUA_INL void clear(int32x4_t& x) {
  if constexpr (zero) asm volatile("movi %0.4s, #0" : "=w"(x));
}

// acc += rows a[0..3] times columns 0..3 of b, 16 * turns deep, turns >= 1; a and b move on. Nothing is read beyond.
// first: acc begins at 0, which is told beside the first loads.
template <bool flip>
SKUA_INL void scheduled_sums(const uint8_t* (&a)[4], const int8_t*& b, size_t ldb, size_t turns, int32x4_t (&acc)[4][4],
                             bool first) {
  const int8x8_t sign = vdup_n_s8(-128);
  Halves x[4], w[4];
  SKUA_UNROLL for (int i = 0; i < 4; ++i) asm("" : "=w"(x[i].v), "=w"(w[i].v));
  int16x8_t y[4];
  const int8_t* below = b + ldb;
  const size_t step = 2 * ldb;
  // at its place too
  const auto move = [](auto*& p, size_t bytes) __attribute__((always_inline)) {
    asm volatile("add %0, %0, %1" : "+r"(p) : "rI"(bytes));
  };
  const auto start = [&]<bool zero>() __attribute__((always_inline)) {
    SKUA_UNROLL for (int r = 0; r < 4; ++r) {
      x[r].load_high<8>(a[r]);
      clear<zero>(acc[r][0]);
      x[r].load_low(a[r]);
      clear<zero>(acc[r][1]);
    }
    w[0].load_low(b), w[0].load_high(below), clear<zero>(acc[0][2]), w[1].load_low<8>(b), w[1].load_high<8>(below),
        clear<zero>(acc[1][2]), w[2].load_low<16>(b), w[2].load_high<16>(below), clear<zero>(acc[2][2]);
    clear<zero>(acc[3][2]);
    SKUA_UNROLL for (int r = 0; r < 4; ++r) {
      x[r].template flip_low<flip>(sign);
      if (r < 3) x[r].template insert_high<flip>();
      clear<zero>(acc[r][3]);
    }
    w[0].insert();
  };
  if (first) start.template operator()<true>();
  else start.template operator()<false>();
  // A turn begins with rows 0 to 2 and column 0 in place, of row 3 and columns 1 and 2 the low half. more: another
  // turn's operands are loaded.
  const auto turn = [&]<bool more>() __attribute__((always_inline)) {
    const auto low = [&](int j) __attribute__((always_inline)) {
      SKUA_UNROLL for (int r = 0; r < 4; ++r)
        multiply_low(y[r], w[j], x[r]);
    };
    const auto high = [&](int j) __attribute__((always_inline)) {
      SKUA_UNROLL for (int r = 0; r < 4; ++r)
        multiply_high(y[r], w[j], x[r]);
    };
    const auto add = [&](int j) __attribute__((always_inline)) {
      SKUA_UNROLL for (int r = 0; r < 4; ++r)
        add_pairs(acc[r][j], y[r]);
    };
    const auto row = [&](int r) __attribute__((always_inline)) { if constexpr (more) x[r].load_low(a[r]); };
    const auto insert = [&](int r) __attribute__((always_inline)) {
      if constexpr (more) x[r].template insert_high<flip>();
    };
    low(0);
    w[3].load_high<24>(below);
    x[3].template insert_high<flip>();
    w[3].load_low<24>(b);
    multiply_high(y[0], w[0], x[0]);
    move(b, step);
    multiply_high(y[1], w[0], x[1]);
    move(below, step);
    multiply_high(y[2], w[0], x[2]);
    if constexpr (more) w[0].load_high(below);
    multiply_high(y[3], w[0], x[3]);
    w[1].insert();
    if constexpr (more) w[0].load_low(b);
    add(0);
    low(1);
    high(1);
    w[2].insert();
    if constexpr (more) w[1].load_low<8>(b), w[1].load_high<8>(below);
    add(1);
    low(2);
    high(2);
    w[3].insert();
    if constexpr (more) w[2].load_low<16>(b), w[2].load_high<16>(below);
    add(2);
    // The rows of the next turn, each when its last product of this one has begun.
    SKUA_UNROLL for (int r = 0; r < 4; ++r) {
      multiply_low(y[r], w[3], x[r]);
      if constexpr (more) x[r].load_high<24>(a[r]);
    }
    multiply_high(y[0], w[3], x[0]);
    move(a[0], 16);
    if constexpr (more) w[0].insert();
    row(0);
    multiply_high(y[1], w[3], x[1]);
    move(a[1], 16);
    multiply_high(y[2], w[3], x[2]);
    move(a[2], 16);
    if constexpr (more) x[0].template flip_low<flip>(sign);
    insert(0);
    row(1);
    multiply_high(y[3], w[3], x[3]);
    move(a[3], 16);
    add_pairs(acc[0][3], y[0]);
    if constexpr (more) x[1].template flip_low<flip>(sign);
    insert(1);
    row(2);
    add_pairs(acc[1][3], y[1]);
    add_pairs(acc[2][3], y[2]);
    if constexpr (more) x[2].template flip_low<flip>(sign);
    insert(2);
    row(3);
    add_pairs(acc[3][3], y[3]);
    if constexpr (more) x[3].template flip_low<flip>(sign);
  };
  for (; turns > 1; --turns) turn.template operator()<true>();
  turn.template operator()<false>();
}
#else
// The same on AArch32: two rows by four columns, 30 cycles for 24 of arithmetic, 4.27 multiply-adds a cycle. All 16
// registers are taken: each of their halves is loaded after the last product that reads what it held, one by `vldr`
// beside the insert of two words to another. Rows of A come in words, which may be at any address, and whose signs
// change beside the arithmetic.
struct Halves {
  int8x16_t v;
  template <int at> SKUA_INL void load_low(const void* p) { load_lower<at>(v, p); }
  template <int at> SKUA_INL void load_high(const void* p) { skua::SKUA_ISA::load_high<at - 8>(v, p); }
  SKUA_INL void insert_low(const Half& x) {
    asm volatile("vmov %e0, %1, %2" : "+w"(v) : "r"(x.word[0]), "r"(x.word[1]));
  }
  SKUA_INL void insert_high(const Half& x) { insert_upper(v, x); }
};
SKUA_INL void multiply_low(int16x8_t& y, const Halves& w, const Halves& x) {
  asm volatile("vmull.s8 %q0, %e1, %e2" : "=w"(y) : "w"(w.v), "w"(x.v));
}
SKUA_INL void multiply_high(int16x8_t& y, const Halves& w, const Halves& x) {
  asm volatile("vmlal.s8 %q0, %f1, %f2" : "+w"(y) : "w"(w.v), "w"(x.v));
}

template <bool zero> SKUA_INL void clear(int32x4_t& x) {
  if constexpr (zero) asm volatile("vmov.i32 %q0, #0" : "=w"(x));
}

// acc += rows a[0], a[1] times columns 0..3 of b, 16 * turns deep, turns >= 1; a and b move on. Nothing is read beyond.
// first: acc begins at 0, which is told beside the first loads.
template <bool flip>
SKUA_INL void scheduled_sums(const uint8_t* (&a)[2], const int8_t*& b, size_t, size_t turns, int32x4_t (&acc)[2][4],
                             bool first) {
  constexpr int below = 32;  // from eight steps of B to the next, ldb: panels are four columns wide here
  Halves x[2], w[2];
  SKUA_UNROLL for (int i = 0; i < 2; ++i) asm("" : "=w"(x[i].v), "=w"(w[i].v));
  Half h[2];  // on their way
  const auto sign = [](uint32_t& word) __attribute__((always_inline)) {
    if constexpr (flip) asm volatile("eor %0, %0, %1" : "+r"(word) : "rI"(0x80808080));
  };
  const auto start = [&]<bool zero>() __attribute__((always_inline)) {
    load_word<0>(h[0].word[0], a[0]), clear<zero>(acc[0][0]);
    load_word<4>(h[0].word[1], a[0]), clear<zero>(acc[1][0]);
    load_word<0>(h[1].word[0], a[1]), clear<zero>(acc[0][1]);
    load_word<4>(h[1].word[1], a[1]), sign(h[0].word[0]), sign(h[0].word[1]), clear<zero>(acc[1][1]);
    x[0].insert_low(h[0]), w[0].load_low<0>(b);
    load_word<8>(h[0].word[0], a[0]), sign(h[1].word[0]), clear<zero>(acc[0][2]);
    load_word<12>(h[0].word[1], a[0]), sign(h[1].word[1]), clear<zero>(acc[1][2]);
    x[1].insert_low(h[1]), w[1].load_low<8>(b);
    load_word<8>(h[1].word[0], a[1]), sign(h[0].word[0]), clear<zero>(acc[0][3]);
    load_word<12>(h[1].word[1], a[1]), sign(h[0].word[1]), clear<zero>(acc[1][3]);
    x[0].insert_high(h[0]), w[0].load_high<below>(b);
    sign(h[1].word[0]), sign(h[1].word[1]);
    x[1].insert_high(h[1]), w[1].load_high<below + 8>(b);
  };
  if (first) start.template operator()<true>();
  else start.template operator()<false>();
  // A turn begins with both rows and columns 0 and 1 in place. more: another turn's are loaded.
  const auto turn = [&]<bool more>() __attribute__((always_inline)) {
    int16x8_t y[2][2];
    const auto low = [&](int r, int j) __attribute__((always_inline)) { multiply_low(y[r][j], w[j], x[r]); };
    const auto high = [&](int r, int j) __attribute__((always_inline)) { multiply_high(y[r][j], w[j], x[r]); };
    const auto add = [&](int r, int j) __attribute__((always_inline)) { add_pairs(acc[r][j], y[r][j % 2]); };
    // which moves on
    const auto first_word = [&](Half & to, const uint8_t*& p) __attribute__((always_inline)) {
      if constexpr (more) asm volatile("ldr %0, [%1, #16]!" : "=&r"(to.word[0]), "+r"(p));
    };
    const auto word = [&]<int i, int at>(Half & to, const uint8_t* p) __attribute__((always_inline)) {
      if constexpr (more) load_word<at>(to.word[i], p);
    };
    const auto flip_word = [&](uint32_t& word) __attribute__((always_inline)) { if constexpr (more) sign(word); };
    low(0, 0), load_word<24>(h[0].word[0], b);
    low(1, 0), load_word<28>(h[0].word[1], b);
    low(0, 1), load_word<below + 24>(h[1].word[0], b);
    low(1, 1), load_word<below + 28>(h[1].word[1], b);
    high(0, 0);
    w[1].insert_low(h[0]), w[0].load_low<16>(b);
    high(1, 0), first_word(h[0], a[0]);
    high(0, 1), word.template operator()<1, 4>(h[0], a[0]);
    high(1, 1);
    w[1].insert_high(h[1]), w[0].load_high<below + 16>(b);
    add(0, 0), first_word(h[1], a[1]);
    add(1, 0), word.template operator()<1, 4>(h[1], a[1]);
    add(0, 1), flip_word(h[0].word[0]);
    add(1, 1), flip_word(h[0].word[1]);
    low(0, 0), flip_word(h[1].word[0]);
    low(1, 0), flip_word(h[1].word[1]);
    low(0, 1);
    asm volatile("add %0, %0, %1" : "+r"(b) : "i"(2 * below));
    if constexpr (more) x[0].insert_low(h[0]), w[0].load_low<0>(b);
    low(1, 1), word.template operator()<0, 8>(h[0], a[0]);
    high(0, 0), word.template operator()<1, 12>(h[0], a[0]);
    if constexpr (more) x[1].insert_low(h[1]), w[1].load_low<8>(b);
    high(1, 0), word.template operator()<0, 8>(h[1], a[1]);
    high(0, 1), word.template operator()<1, 12>(h[1], a[1]);
    high(1, 1), flip_word(h[0].word[0]);
    add(0, 2), flip_word(h[0].word[1]);
    if constexpr (more) x[0].insert_high(h[0]), w[0].load_high<below>(b);
    add(1, 2), flip_word(h[1].word[0]);
    add(0, 3), flip_word(h[1].word[1]);
    if constexpr (more) x[1].insert_high(h[1]), w[1].load_high<below + 8>(b);
    add(1, 3);
  };
  while (--turns) turn.template operator()<true>();
  turn.template operator()<false>();
  a[0] += 16, a[1] += 16;
}
#endif

// Rows whose sums are in registers together, of a tile with a schedule.
#if defined(__aarch64__)
constexpr int kMullRows = 4;
#else
constexpr int kMullRows = 2;
#endif

// AArch32: two rows with a schedule come here only if the tile is above_least, of k >= 16 and a segment or more;
// paired_rows() looks.
template <bool is_u8, Core core, int MR, int N>
SKUA_INL void mull_sums(const GemmTile& tile, const void* const* rows, int32x4_t (&acc)[MR][N]) {
  const GemmTile* at = &tile;
  constexpr bool scheduled = core == Core::a53 && MR == kMullRows && N == 4, always = scheduled && MR == 2;
  if (!scheduled || (!always && (!tile.above_least || tile.k < 16)))
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int j = 0; j < N; ++j) acc[r][j] = vdupq_n_s32(0);
  else
    SKUA_UNROLL for (int r = 0; r < MR; ++r) SKUA_UNROLL for (int j = 0; j < N; ++j) asm volatile("" : "=w"(acc[r][j]));
  if (always && !tile.segment_count) __builtin_unreachable();
  for (size_t s = 0; s < at->segment_count; ++s) {
    // read anew: else all that a segment needs would wait to be put on the stack before the first
    if constexpr (always) asm("" : "+r"(at), "+r"(rows));
    const GemmTile& t = *at;
    const size_t ldb = t.ldb;
    const bool two = t.above_least;
    const uint8_t* a[MR];
    SKUA_UNROLL for (int r = 0; r < MR; ++r) a[r] = static_cast<const uint8_t*>(rows[r]) + t.segments[s].a;
    const int8_t* b = static_cast<const int8_t*>(t.b) + t.segments[s].b / 8 * ldb;
    const auto step = [&](const int8x8_t (&x)[MR]) __attribute__((always_inline)) {
      SKUA_UNROLL for (int j = 0; j < N; j += 2) {
#if defined(__aarch64__)
        const int8x8_t w0 = vld1_s8(b + j * 8), w1 = vld1_s8(b + j * 8 + 8);
#else
        const int8x16_t w = vld1q_s8(b + j * 8);
        const int8x8_t w0 = vget_low_s8(w), w1 = vget_high_s8(w);
#endif
        int16x8_t y[2 * MR];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          y[r] = products(w0, x[r]);
          y[MR + r] = products(w1, x[r]);
        }
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          add_pairs(acc[r][j], y[r]);
          add_pairs(acc[r][j + 1], y[MR + r]);
        }
      }
      b += ldb;
    };
    size_t k = t.k;
    if constexpr (scheduled)
      if (always || (two && k >= 16)) {
        scheduled_sums<is_u8>(a, b, ldb, k / 16, acc, s == 0);
        k %= 16;
      }
#if !defined(__aarch64__)
    const int8_t* below = b + ldb;
#endif
    if (two && !always)
      for (; k >= 16; k -= 16) {
        // Four products at once, none of which waits for itself.
#if defined(__aarch64__)
        int8x8_t x[2][MR];
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          SKUA_UNROLL for (int i = 0; i < 2; ++i) x[i][r] = as_s8<is_u8>(vreinterpret_s8_u8(vld1_u8(a[r] + 8 * i)));
          a[r] += 16;
        }
        SKUA_UNROLL for (int j = 0; j < N; ++j) {
          const int8x8_t w0 = vld1_s8(b + j * 8), w1 = vld1_s8(b + ldb + j * 8);
          int16x8_t y[MR];
          SKUA_UNROLL for (int r = 0; r < MR; ++r) y[r] = products(w0, x[0][r]);
          SKUA_UNROLL for (int r = 0; r < MR; ++r) add_products(y[r], w1, x[1][r]);
          SKUA_UNROLL for (int r = 0; r < MR; ++r) add_pairs(acc[r][j], y[r]);
        }
#else
        // Loads stay where they are as well: in-order cores need them four cycles and more before their use, and all 16
        // registers are taken.
        int8x16_t x[MR], w0, w1;
        SKUA_UNROLL for (int r = 0; r < MR; ++r) {
          x[r] = load_here(a[r]);
          if (r == 0) w0 = load_here(b);
        }
        w1 = load_here(below);
        SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = as_s8<is_u8>(x[r]);
        SKUA_UNROLL for (int j = 0; j < N; j += 2) {
          int16x8_t y[MR][2];
          SKUA_UNROLL for (int r = 0; r < MR; ++r)
            y[r][0] = products(vget_low_s8(w0), vget_low_s8(x[r])),
            y[r][1] = products(vget_high_s8(w0), vget_low_s8(x[r]));
          SKUA_UNROLL for (int r = 0; r < MR; ++r)
            add_products(y[r][0], vget_low_s8(w1), vget_high_s8(x[r])),
            add_products(y[r][1], vget_high_s8(w1), vget_high_s8(x[r]));
          SKUA_UNROLL for (int r = 0; r < MR; ++r) {
            if (j + 2 < N && r == 0) w0 = load_here(b);
            add_pairs(acc[r][j], y[r][0]);
            if (j + 2 < N && r == 0) w1 = load_here(below);
            add_pairs(acc[r][j + 1], y[r][1]);
          }
        }
        below += 2 * ldb - 8 * N;
        b -= 8 * N;
#endif
        b += 2 * ldb;
      }
    for (; k >= 8; k -= 8) {
      int8x8_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) {
        x[r] = as_s8<is_u8>(vreinterpret_s8_u8(vld1_u8(a[r])));
        a[r] += 8;
      }
      step(x);
    }
    if (k) {
      int8x8_t x[MR];
      SKUA_UNROLL for (int r = 0; r < MR; ++r) x[r] = eight<is_u8>(a[r], k);
      step(x);
    }
  }
}

// The parts of a sum come together, and the offset with them.
template <int MR, int N>
SKUA_INL void total(const GemmTile& t, const int32x4_t (&acc)[MR][N], int32x4_t (*sums)[N / 4]) {
  SKUA_UNROLL for (int j = 0; j < N; j += 4) {
    const int32x4_t offset = vld1q_s32(t.offset + j);
    SKUA_UNROLL for (int r = 0; r < MR; ++r) {
#if defined(__aarch64__)
      sums[r][j / 4] =
          vaddq_s32(vpaddq_s32(vpaddq_s32(acc[r][j], acc[r][j + 1]), vpaddq_s32(acc[r][j + 2], acc[r][j + 3])), offset);
#else
      int32x2_t x[4];
      SKUA_UNROLL for (int i = 0; i < 4; ++i)
        x[i] = vpadd_s32(vget_low_s32(acc[r][j + i]), vget_high_s32(acc[r][j + i]));
      sums[r][j / 4] = vaddq_s32(vcombine_s32(vpadd_s32(x[0], x[1]), vpadd_s32(x[2], x[3])), offset);
#endif
    }
  }
}

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
