// Depthwise convolution of bytes by dot products on in-order cores of AArch64: 3x3, two rows of two outputs of 16 channels, a program of simd/in_order.h. Included by int8_kernels.cc.
//
//   a turn   one tile, a quarter of its channels after the other: 12 dot products, and what makes bytes of four vectors of sums
//
// Registers: 8 sums (of two quarters), 8 halves of results, rings of 8 weights and of 4 columns or scales, zero point, bounds and flip of the output: 32.

enum class DotDo : uint8_t { copy, dot, to_float, scale, round, narrow, narrow2, zero, byte, byte2, max, min, flip, next };
enum DotSource : uint8_t { kColumnsOf, kWeightsOf, kOffsetOf, kScaleOf };
constexpr int kDotHalves = 8, kDotWeights = 16, kDotRing = 24, kDotZero = 28, kDotLow = 29, kDotHigh = 30, kDotFlip = 31;

template <bool start> consteval auto make_dot_turn() {
  InOrderBuilder<160, 80> turn;
  int ring = 0, weights = 0;
  for (int v = 0; v < 4; ++v) {
    const int sums = v % 2 * 4, offset = turn.load(sums, kOffsetOf, v);
    for (int o = 1; o < 4; ++o) turn.add(DotDo::copy, sums + o, sums, kNoVector, offset);
    // A column serves the output it begins, the one it is in the middle of, and the one it ends; sums of 2 * column + row.
    int w[3][2] = {}, w_to[3][2] = {};
    for (int j = 0; j < 4; ++j) {
      const int column = kDotRing + ring++ % 4, x = turn.load(column, kColumnsOf, 4 * j + v);
      for (int k = j < 2 ? 0 : j - 1; k <= j && k < 3; ++k)
        for (int y = 0; y < 2; ++y) {
          if (!w_to[k][y]) {
            w_to[k][y] = kDotWeights + weights++ % 8;
            w[k][y] = turn.load(w_to[k][y], kWeightsOf, (3 * v + k) * 2 + y);
          }
          turn.add(DotDo::dot, sums + 2 * (j - k) + y, column, w_to[k][y], w[k][y] > x ? w[k][y] : x);
        }
    }
    for (int o = 0; o < 4; ++o) turn.add(DotDo::to_float, sums + o);
    const int scale = kDotRing + ring++ % 4, by = turn.load(scale, kScaleOf, v);
    for (int o = 0; o < 4; ++o) turn.add(DotDo::scale, sums + o, scale, kNoVector, by);
    for (int o = 0; o < 4; ++o) turn.add(DotDo::round, sums + o);
    const int halves = kDotHalves + v / 2 * 4;
    for (int o = 0; o < 4; ++o) turn.add(v % 2 ? DotDo::narrow2 : DotDo::narrow, halves + o, sums + o);
    for (int o = 0; v % 2 && o < 4; ++o) turn.add(DotDo::zero, halves + o);
  }
  constexpr DotDo bytes[] = {DotDo::byte, DotDo::byte2, DotDo::max, DotDo::min, DotDo::flip};
  for (DotDo what : bytes)
    for (int o = 0; o < 4; ++o) turn.add(what, kDotHalves + o, kDotHalves + 4 + o);
  // The next turn's first ones.
  constexpr int ahead = 10;
  turn.single(DotDo::next, 0);
  for (int i = 0; i < ahead; ++i) {
    turn.helper[turn.helpers] = turn.helper[i];
    turn.helper[turn.helpers++].first_use = turn.works;
  }
  return start ? turn.template program<480>(0, ahead, false) : turn.template program<480>(ahead, turn.helpers);
}
template <bool start> constexpr auto dot_turn = make_dot_turn<start>();

struct DotRegisters {
  int8x16_t v[32];
  uint64_t half[kHalves];
  const uint8_t *columns, *w;  // behind the weights offsets, then scales
  size_t next;
};
template <int what, int a, int b, int c> SKUA_INL void dot_step(DotRegisters& r) {
  constexpr DotDo d = DotDo(what);
#define SKUA_DOT_2(op, A, B, from) asm volatile(op " %0" A ", %1" B : "+w"(r.v[a]) : "w"(r.v[from]))
#define SKUA_DOT_SELF(op, A, by) asm volatile(op " %0" A ", %0" A ", %1" A : "+w"(r.v[a]) : "w"(r.v[by]))
  if constexpr (d == DotDo::copy) SKUA_DOT_2("mov", ".16b", ".16b", b);
  else if constexpr (d == DotDo::dot) asm volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(r.v[a]) : "w"(r.v[b]), "w"(r.v[c]));
  else if constexpr (d == DotDo::to_float) SKUA_DOT_2("scvtf", ".4s", ".4s", a);
  else if constexpr (d == DotDo::scale) SKUA_DOT_SELF("fmul", ".4s", b);
  else if constexpr (d == DotDo::round) SKUA_DOT_2("fcvtns", ".4s", ".4s", a);
  else if constexpr (d == DotDo::narrow) SKUA_DOT_2("sqxtn", ".4h", ".4s", b);
  else if constexpr (d == DotDo::narrow2) SKUA_DOT_2("sqxtn2", ".8h", ".4s", b);
  else if constexpr (d == DotDo::zero) SKUA_DOT_SELF("sqadd", ".8h", kDotZero);
  else if constexpr (d == DotDo::byte) SKUA_DOT_2("sqxtn", ".8b", ".8h", a);
  else if constexpr (d == DotDo::byte2) SKUA_DOT_2("sqxtn2", ".16b", ".8h", b);
  else if constexpr (d == DotDo::max) SKUA_DOT_SELF("smax", ".16b", kDotLow);
  else if constexpr (d == DotDo::min) SKUA_DOT_SELF("smin", ".16b", kDotHigh);
  else if constexpr (d == DotDo::flip) SKUA_DOT_SELF("eor", ".16b", kDotFlip);
  else if constexpr (d == DotDo::next) asm volatile("add %0, %0, %1" : "+r"(r.columns) : "r"(r.next));
  else if constexpr (what == kInsertUpper) insert_upper(r.v[a], r.half[b]);
  else {
    const uint8_t* p = b == kColumnsOf ? r.columns : r.w;
    constexpr int behind = 4 * 3 * 2, at = 16 * (c + (b == kOffsetOf ? behind : b == kScaleOf ? behind + 4 : 0));
    if constexpr (what == kLoadUpper) load_upper<at>(r.half[a], p);
    else load_lower<at>(r.v[a], p);
  }
#undef SKUA_DOT_2
#undef SKUA_DOT_SELF
}
template <bool start, int from, int n> SKUA_INL void dot_steps(DotRegisters& r) {
  if constexpr (n == 1) {
    constexpr InOrderStep s = dot_turn<start>.at[from];
    dot_step<s.what, s.a, s.b, s.c>(r);
  } else {
    dot_steps<start, from, n / 2>(r);
    dot_steps<start, from + n / 2, n - n / 2>(r);
  }
}

// Two rows of two or more outputs, whose interleaved columns are a column apart; the last tile overlaps the one before it.
__attribute__((noinline)) void dot_in_order(const DepthwiseInt8Tile& t) {
  DotRegisters r;
  SKUA_UNROLL for (int i = 0; i < 32; ++i) asm("" : "=w"(r.v[i]));
  r.v[kDotZero] = vreinterpretq_s8_s16(vdupq_n_s16(t.zero_point));
  r.v[kDotLow] = vdupq_n_s8(t.is_bounded ? int8_t(t.low) : int8_t(-128));
  r.v[kDotHigh] = vdupq_n_s8(t.is_bounded ? t.top : int8_t(127));
  r.v[kDotFlip] = vdupq_n_s8(int8_t(t.flip));
  r.columns = static_cast<const uint8_t*>(t.columns) + t.taps[0];
  r.w = static_cast<const uint8_t*>(t.w);
  const size_t out_row = t.out_row, out_pixel = t.out_pixel, output = t.output;
  uint8_t* out = t.out;
  dot_steps<true, 0, dot_turn<true>.n>(r);
  for (size_t left = t.outputs, by;; left -= by, out += by * out_pixel) {
    by = left >= 4 ? 2 : left - 2;  // 0: the last one, whose first inputs are loaded once more
    r.next = by * output;
    dot_steps<false, 0, dot_turn<false>.n>(r);
    SKUA_UNROLL for (int o = 0; o < 4; ++o) {  // row 0 last
      uint8_t* const to = out + (o < 2 ? out_row : 0) + o % 2 * out_pixel;
      asm volatile("str %q1, %0" : "=m"(*reinterpret_cast<int8_t (*)[16]>(to)) : "w"(r.v[kDotHalves + o % 2 * 2 + (o < 2)]));
    }
    if (!by) return;
  }
}
