// Depthwise convolution of s8 by windows of 3x3, tap by tap as int8_by_taps.h does it, for in-order cores of AArch64:
// the order of instructions is the kernel. Included by int8_kernels.cc.
//
//   a turn      two outputs of 16 channels: five groups of products and their sums, then what makes bytes of them; a
//               program of simd/in_order.h
//   ahead       inputs are loaded as soon as the vector they go to is free, the first four and the offsets of the next
//               turn at the end of this one
//
// Registers: 9 weights, 8 sums, 4 products, 6 inputs (and scales), and what ends need: 31. make_taps_turn() puts a turn
// together when this is compiled; every step of it is one instruction that stays where it is written. The sums are the
// same as in any order: they are of integers.

enum class TapsDo : uint8_t { mull = uint8_t(EndDo::count), mull2, mlal, mlal2, addw, addw2 };
enum TapsSource : uint8_t { kRow0, kRow1, kRow2, kOffset, kScale };  // the last two: vectors behind the weights
constexpr int kTapWeights = 0, kTapSums = 9, kTapProducts = 17, kTapInputs = 21, kTapRing = 6;

// S: columns from an output to the next. start: what the turn before would have loaded, and nothing else.
template <int S, bool start> consteval auto make_taps_turn() {
  InOrderBuilder<160, 80> turn;
  TapInputs<S, decltype(turn)> input = {turn, kTapInputs, kTapRing};
  const auto multiply = [&](TapsDo low, TapsDo high, const OutputTaps& t) {
    for (int o = 0; o < 2; ++o) {
      const auto x = input(t.row, t.column[o]);
      turn.add(low, kTapProducts + 2 * o, x.to, kTapWeights + t.weight[o], x.helper);
      turn.add(high, kTapProducts + 2 * o + 1, x.to, kTapWeights + t.weight[o], x.helper);
    }
  };
  int ahead = 0;
  each_pair_of_taps<S>([&](const OutputTaps& a, const OutputTaps* b) {
    multiply(TapsDo::mull, TapsDo::mull2, a);
    if (b) multiply(TapsDo::mlal, TapsDo::mlal2, *b);
    const bool begins = !ahead;  // at the offsets, which are where the second output's sums will be
    const int offsets = turn.helpers;
    for (int i = 0; begins && i < 4; ++i) turn.load(kTapSums + 4 + i, kOffset, i);
    if (begins) ahead = turn.helpers;
    for (int o = 0; o < 2; ++o)
      for (int i = 0; i < 4; ++i)
        turn.add(i % 2 ? TapsDo::addw2 : TapsDo::addw, kTapSums + 4 * o + i, kTapSums + (begins ? 4 : 4 * o) + i,
                 kTapProducts + 2 * o + i / 2, begins ? offsets + i : -1);
  });
  for (int i = 0; i < 8; ++i) turn.add(EndDo::to_float, kTapSums + i);
  for (int i = 0; i < 4; ++i) {
    const int to = input.next_vector(), x = turn.load(to, kScale, i);
    for (int o = 0; o < 2; ++o) turn.add(EndDo::scale, kTapSums + 4 * o + i, to, kNoVector, x);
  }
  for (int i = 0; i < 8; ++i) turn.add(EndDo::round, kTapSums + i);
  for (int i = 0; i < 4; ++i) turn.add(EndDo::narrow, kTapProducts + i, kTapSums + 2 * i);
  for (int i = 0; i < 4; ++i) turn.add(EndDo::narrow2, kTapProducts + i, kTapSums + 2 * i + 1);
  for (int i = 0; i < 4; ++i) turn.add(EndDo::zero, kTapProducts + i);
  add_bytes(turn, 2, kTapProducts, 2, 1);
  return turn.template turn<360>(start, ahead, S == 1);
}
template <int S, bool start> constexpr auto taps_turn = make_taps_turn<S, start>();

template <int S> struct TapsRegisters : InOrderRegisters<kEndVectors> {
  using InOrderRegisters<kEndVectors>::v;
  TapRows<S> rows;
  const uint8_t* behind;  // offsets, then scales

  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr TapsDo d = TapsDo(what);
#define SKUA_TAPS_3(op, A, B, C) asm volatile(op " %0" A ", %1" B ", %2" C : "+w"(v[a]) : "w"(v[b]), "w"(v[c]))
    if constexpr (what < int(EndDo::count)) end_step<what, a, b>(v);
    else if constexpr (d == TapsDo::mull) SKUA_TAPS_3("smull", ".8h", ".8b", ".8b");
    else if constexpr (d == TapsDo::mull2) SKUA_TAPS_3("smull2", ".8h", ".16b", ".16b");
    else if constexpr (d == TapsDo::mlal) SKUA_TAPS_3("smlal", ".8h", ".8b", ".8b");
    else if constexpr (d == TapsDo::mlal2) SKUA_TAPS_3("smlal2", ".8h", ".16b", ".16b");
    else if constexpr (d == TapsDo::addw) SKUA_TAPS_3("saddw", ".4s", ".4s", ".4h");
    else if constexpr (d == TapsDo::addw2) SKUA_TAPS_3("saddw2", ".4s", ".4s", ".8h");
    else if constexpr (what >= int(RowDo::move) && what <= int(RowDo::next)) rows.template step<what, a, b>();
    else {
      this->template load_step < what, a, b,
          b<kOffset ? 0 : 16 * (c + (b == kScale ? 4 : 0))>(b >= kOffset ? behind : rows.at[b % 3]);
    }
#undef SKUA_TAPS_3
  }
};

// The first outputs / 2 pairs of a row, L channels from rows on, S columns apart.
template <int S>
__attribute__((noinline)) void taps_in_order(const DepthwiseInt8Tile& t, const uint8_t* const (&rows)[3],
                                             const size_t (&steps)[3]) {
  TapsRegisters<S> r;
  const auto* w = static_cast<const int8_t*>(t.w);
  end_vectors(t, r.v);
  SKUA_UNROLL for (int i = 0; i < 9; ++i) r.v[kTapWeights + i] = vld1q_s8(w + 16 * i);
  r.behind = reinterpret_cast<const uint8_t*>(w) + 12 * 16;
  r.rows.begin(rows, steps);
  const size_t out_pixel = t.out_pixel;
  uint8_t* out = t.out;
  run_steps<taps_turn<S, true>>(r);
  for (size_t left = t.outputs / 2; left; --left) {
    r.rows.mask = left > 1 ? ~size_t(0) : 0;
    run_steps<taps_turn<S, false>>(r);
    SKUA_UNROLL for (int o = 0; o < 2; ++o, out += out_pixel) put_16(r.v[kTapProducts + 2 * o], out);
  }
}
