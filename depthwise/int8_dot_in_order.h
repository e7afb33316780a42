// Depthwise convolution of bytes by dot products on in-order cores of AArch64: 3x3, two rows of two outputs of 16
// channels, a program of simd/in_order.h. Included by int8_kernels.cc.
//
//   a turn   one tile, a quarter of its channels after the other: 12 dot products, and what makes bytes of four vectors
//            of sums
//
// Registers: 8 sums (of two quarters), 8 halves of results, rings of 8 weights and of 4 columns or scales, and what
// ends need: 32.

enum class DotDo : uint8_t { copy = uint8_t(EndDo::count), dot, next };
enum DotSource : uint8_t { kColumnsOf, kWeightsOf, kOffsetOf, kScaleOf };
constexpr int kDotHalves = 8, kDotWeights = 16, kDotRing = 24;

template <bool start> consteval auto make_dot_turn() {
  InOrderBuilder<160, 80> turn;
  int ring = 0, weights = 0;
  for (int v = 0; v < 4; ++v) {
    const int sums = v % 2 * 4, offset = turn.load(sums, kOffsetOf, v);
    for (int o = 1; o < 4; ++o) turn.add(DotDo::copy, sums + o, sums, kNoVector, offset);
    // A column serves the output it begins, the one it is in the middle of, and the one it ends; sums of 2 * column +
    // row.
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
    for (int o = 0; o < 4; ++o) turn.add(EndDo::to_float, sums + o);
    const int scale = kDotRing + ring++ % 4, by = turn.load(scale, kScaleOf, v);
    for (int o = 0; o < 4; ++o) turn.add(EndDo::scale, sums + o, scale, kNoVector, by);
    for (int o = 0; o < 4; ++o) turn.add(EndDo::round, sums + o);
    const int halves = kDotHalves + v / 2 * 4;
    for (int o = 0; o < 4; ++o) turn.add(v % 2 ? EndDo::narrow2 : EndDo::narrow, halves + o, sums + o);
    for (int o = 0; v % 2 && o < 4; ++o) turn.add(EndDo::zero, halves + o);
  }
  add_bytes(turn, 4, kDotHalves, 1, 4);
  turn.single(DotDo::next, 0);
  return turn.template turn<480>(start, 10);
}
template <bool start> constexpr auto dot_turn = make_dot_turn<start>();

struct DotRegisters : InOrderRegisters<kEndVectors> {
  const uint8_t *columns, *w;  // behind the weights offsets, then scales
  size_t next;

  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr DotDo d = DotDo(what);
    if constexpr (what < int(EndDo::count)) end_step<what, a, b>(v);
    else if constexpr (d == DotDo::copy) asm volatile("mov %0.16b, %1.16b" : "+w"(v[a]) : "w"(v[b]));
    else if constexpr (d == DotDo::dot) asm volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(v[a]) : "w"(v[b]), "w"(v[c]));
    else if constexpr (d == DotDo::next) asm volatile("add %0, %0, %1" : "+r"(columns) : "r"(next));
    else {
      constexpr int behind = 4 * 3 * 2;
      load_step<what, a, b,
                16 * (c + (b == kOffsetOf  ? behind
                           : b == kScaleOf ? behind + 4
                                           : 0))>(b == kColumnsOf ? columns : w);
    }
  }
};

// Two rows of two or more outputs, whose interleaved columns are a column apart; the last tile overlaps the one before
// it.
__attribute__((noinline)) void dot_in_order(const DepthwiseInt8Tile& t) {
  DotRegisters r;
  end_vectors(t, r.v);
  r.columns = static_cast<const uint8_t*>(t.columns) + t.taps[0];
  r.w = static_cast<const uint8_t*>(t.w);
  const size_t out_row = t.out_row, out_pixel = t.out_pixel, output = t.output;
  uint8_t* out = t.out;
  run_steps<dot_turn<true>>(r);
  for (size_t left = t.outputs, by;; left -= by, out += by * out_pixel) {
    by = left >= 4 ? 2 : left - 2;  // 0: the last one, whose first inputs are loaded once more
    r.next = by * output;
    run_steps<dot_turn<false>>(r);
    SKUA_UNROLL for (int o = 0; o < 4; ++o) {  // row 0 last
      put_16(r.v[kDotHalves + o % 2 * 2 + (o < 2)], out + (o < 2 ? out_row : 0) + o % 2 * out_pixel);
    }
    if (!by) return;
  }
}
