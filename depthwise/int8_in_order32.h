// Depthwise convolution of bytes by windows of 3x3, tap by tap as int8_by_taps.h does it, for in-order cores of
// AArch32: the order of instructions is the kernel. Included by int8_kernels.cc.
//
//   a turn      two outputs of eight channels: five groups of products, whose sums are added beside the next group's
//               products, then what makes bytes of them; a program of simd/in_order.h
//   ahead       the first inputs and the offsets of the next turn at the end of this one
//
// Registers, of 32 D: 9 weights, 8 sums, 8 products in two sets, 7 inputs. What ends need comes from memory to products
// that are free: rounded is by the addition of 1.5 * 2^23, whose bits less those of the result are the zero point; what
// is not within 2^22 stays beyond every byte.

enum class TapsDo : uint8_t { mull, mlal, addw, to_float, scale, magic, less, narrow, byte, max, min, flip };
// Rows, then `ends`, in steps of 8 bytes: offsets, scales, vectors of the magic number, of what is taken off, of bounds
// and flip. kEndsUpper: to the D register behind.
enum TapsSource : uint8_t { kRow0, kRow1, kRow2, kEnds, kEndsUpper };
constexpr int kOffsetsAt = 0, kScalesAt = 4, kMagicAt = 8, kLessAt = 10, kLowAt = 12, kHighAt = 14, kFlipAt = 16,
              kEndsBytes = 18 * 8;
// D registers. A vector of two begins at an even one.
constexpr int kTapSums = 0, kTapProducts = 8, kTapWeights = 16, kTapInputs = 25, kTapRing = 7;

// S: columns from an output to the next. start: what the turn before would have loaded, and nothing else. bounds: other
// than those of s8, or u8.
template <int S, bool bounds, bool start> consteval auto make_taps_turn() {
  InOrderBuilder<160, 80> turn;
  turn.pieces = Pieces::one;
  TapInputs<S, decltype(turn)> input = {turn, kTapInputs, kTapRing};
  const auto load_two = [&](int to, int place) {
    turn.load(to, kEnds, place, 1);
    return turn.load(to, kEndsUpper, place + 1, 1);
  };
  int ahead = 0, group = 0;
  const auto multiply = [&](TapsDo what, const OutputTaps& t, int products) {
    for (int o = 0; o < 2; ++o) {
      const auto x = input(t.row, t.column[o]);
      turn.add(what, products + 2 * o, x.to, kTapWeights + t.weight[o], x.helper);
    }
  };
  // Of output o, half h of the channels. The first begin at the offsets, which are where the second output's sums will
  // be.
  int offsets[2] = {};
  const auto add_sum = [&](int of_group, int i) {
    const int o = i / 2, h = i % 2, from = of_group ? o : 1;
    turn.add(TapsDo::addw, kTapSums + 4 * o + 2 * h, kTapSums + 4 * from + 2 * h,
             kTapProducts + of_group % 2 * 4 + 2 * o + h, of_group ? -1 : offsets[h]);
  };
  each_pair_of_taps<S>([&](const OutputTaps& a, const OutputTaps* b) {
    const int products = kTapProducts + group % 2 * 4;
    multiply(TapsDo::mull, a, products);
    if (!group) {
      for (int h = 0; h < 2; ++h) offsets[h] = load_two(kTapSums + 4 + 2 * h, kOffsetsAt + 2 * h);
      ahead = turn.helpers;
    }
    for (int i = 0; group && i < 2; ++i) add_sum(group - 1, i);
    if (b) multiply(TapsDo::mlal, *b, products);
    for (int i = 2; group && i < 4; ++i) add_sum(group - 1, i);
    ++group;
  });
  for (int i = 0; i < 4; ++i) add_sum(group - 1, i);
  // the last group's were the first set
  constexpr int free[4] = {kTapProducts + 4, kTapProducts + 6, kTapProducts, kTapProducts + 2};
  const int scales[2] = {load_two(free[0], kScalesAt), load_two(free[1], kScalesAt + 2)};
  for (int i = 0; i < 4; ++i) turn.add(TapsDo::to_float, kTapSums + 2 * i);
  for (int i = 0; i < 4; ++i) turn.add(TapsDo::scale, kTapSums + 2 * i, free[i % 2], kNoVector, scales[i % 2]);
  const int magic = load_two(free[2], kMagicAt), less = load_two(free[3], kLessAt);
  for (int i = 0; i < 4; ++i) turn.add(TapsDo::magic, kTapSums + 2 * i, free[2], kNoVector, magic);
  for (int i = 0; i < 4; ++i) turn.add(TapsDo::less, kTapSums + 2 * i, free[3], kNoVector, less);
  for (int i = 0; i < 4; ++i) turn.add(TapsDo::narrow, free[0] + i, kTapSums + 2 * i);
  for (int o = 0; o < 2; ++o) turn.add(TapsDo::byte, free[2] + o, free[0] + 2 * o);
  if constexpr (bounds) {
    int to = 0;
    constexpr struct {
      TapsDo what;
      int at;
    } ends[] = {{TapsDo::max, kLowAt}, {TapsDo::min, kHighAt}, {TapsDo::flip, kFlipAt}};
    for (const auto& e : ends) {
      const int vector = to++ % 2 ? free[1] : free[3], x = load_two(vector, e.at);
      turn.add(e.what, free[2], vector, kNoVector, x);
    }
  }
  return turn.template turn<360>(start, ahead);
}
template <int S, bool bounds, bool start> constexpr auto taps_turn = make_taps_turn<S, bounds, start>();
constexpr int kTapResults = kTapProducts;

template <int S> struct TapsRegisters {
  int8x16_t v[16];
  TapRows<S> rows;
  const uint8_t* ends;

  // Of D register d: vector d / 2, its lower half or its upper.
#define SKUA_TAPS_OF(d, op, lower, upper, ...) \
  if constexpr (d % 2) asm volatile(op upper __VA_ARGS__); \
  else asm volatile(op lower __VA_ARGS__)
  template <int what, int a, int b, int c> SKUA_INL void step() {
    constexpr TapsDo d = TapsDo(what);
    if constexpr (what == kLoadLower) load<a, b, c>();
    else if constexpr (d == TapsDo::mull) multiply<false, a, b, c>();
    else if constexpr (d == TapsDo::mlal) multiply<true, a, b, c>();
    else if constexpr (d == TapsDo::addw) {
      SKUA_TAPS_OF(c, "vaddw.s16 %q0, %q1, ", "%e2", "%f2", : "=w"(v[a / 2]) : "w"(v[b / 2]), "w"(v[c / 2]));
    } else if constexpr (d == TapsDo::to_float) asm volatile("vcvt.f32.s32 %q0, %q0" : "+w"(v[a / 2]));
    else if constexpr (d == TapsDo::scale) asm volatile("vmul.f32 %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (d == TapsDo::magic) asm volatile("vadd.f32 %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (d == TapsDo::less) asm volatile("vqsub.s32 %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (d == TapsDo::narrow) {
      SKUA_TAPS_OF(a, "vqmovn.s32 ", "%e0", "%f0", ", %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    } else if constexpr (d == TapsDo::byte) {
      SKUA_TAPS_OF(a, "vqmovn.s16 ", "%e0", "%f0", ", %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    } else if constexpr (d == TapsDo::max) asm volatile("vmax.s8 %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (d == TapsDo::min) asm volatile("vmin.s8 %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (d == TapsDo::flip) asm volatile("veor %q0, %q0, %q1" : "+w"(v[a / 2]) : "w"(v[b / 2]));
    else if constexpr (what >= int(RowDo::move) && what <= int(RowDo::next)) rows.template step<what, a, b>();
  }

  template <int to, int from, int place> SKUA_INL void load() {
    constexpr int d = to + (from == kEndsUpper);
    if constexpr (from < kEnds) {  // at any address; vldr wants words
      SKUA_TAPS_OF(d, "vld1.8 ", "{%e0}", "{%f0}", ", [%1]" : "+w"(v[d / 2]) : "r"(rows.at[from % 3]));
    } else {
      SKUA_TAPS_OF(d, "vldr ", "%e0", "%f0", ", [%1, %2]" : "+w"(v[d / 2]) : "r"(ends), "i"(8 * place));
    }
  }
  template <bool adds, int a, int b, int c> SKUA_INL void multiply() {
#define SKUA_TAPS(x, y)                                                                               \
    if constexpr (adds)                                                                               \
      asm volatile("vmlal.s8 %q0, %" x "1, %" y "2" : "+w"(v[a / 2]) : "w"(v[b / 2]), "w"(v[c / 2])); \
    else asm volatile("vmull.s8 %q0, %" x "1, %" y "2" : "=w"(v[a / 2]) : "w"(v[b / 2]), "w"(v[c / 2]))
    if constexpr (b % 2 && c % 2) { SKUA_TAPS("f", "f"); }
    else if constexpr (b % 2) { SKUA_TAPS("f", "e"); }
    else if constexpr (c % 2) { SKUA_TAPS("e", "f"); }
    else { SKUA_TAPS("e", "e"); }
#undef SKUA_TAPS
  }
#undef SKUA_TAPS_OF
};

// The first outputs / 2 pairs of a row, eight channels from rows on, S columns apart.
template <int S, bool bounds>
__attribute__((noinline)) void taps_of_eight(const DepthwiseInt8Tile& t, const uint8_t* const (&rows)[3],
                                             const size_t (&steps)[3], const uint8_t* w, const uint8_t* ends,
                                             uint8_t* out) {
  TapsRegisters<S> r;
  SKUA_UNROLL for (int i = 0; i < 16; ++i) asm("" : "=w"(r.v[i]));
  SKUA_UNROLL for (int i = 0; i < 9; ++i) {
    const int8x8_t tap = vld1_s8(reinterpret_cast<const int8_t*>(w) + 16 * i);
    int8x16_t& v = r.v[(kTapWeights + i) / 2];
    v = i % 2 ? vcombine_s8(vget_low_s8(v), tap) : vcombine_s8(tap, vget_high_s8(v));
  }
  r.ends = ends;
  r.rows.begin(rows, steps);
  const size_t out_pixel = t.out_pixel;
  run_steps<taps_turn<S, bounds, true>>(r);
  for (size_t left = t.outputs / 2; left; --left) {
    r.rows.mask = left > 1 ? ~size_t(0) : 0;
    run_steps<taps_turn<S, bounds, false>>(r);
    asm volatile("vst1.8 {%e1}, [%0]" : : "r"(out), "w"(r.v[kTapResults / 2]) : "memory");
    out += out_pixel;
    asm volatile("vst1.8 {%f1}, [%0]" : : "r"(out), "w"(r.v[kTapResults / 2]) : "memory");
    out += out_pixel;
  }
}
// Of 16 channels.
template <int S>
__attribute__((noinline)) void taps_in_order(const DepthwiseInt8Tile& t, const uint8_t* const (&rows)[3],
                                             const size_t (&steps)[3]) {
  const auto* const w = static_cast<const uint8_t*>(t.w);
  const uint8_t* const behind = w + 12 * 16;
  const bool bounds = t.is_bounded || t.flip;
  alignas(16) uint8_t ends[kEndsBytes];
  vst1q_f32(reinterpret_cast<float*>(ends + 8 * kMagicAt), vdupq_n_f32(12582912.0f));
  vst1q_s32(reinterpret_cast<int32_t*>(ends + 8 * kLessAt), vdupq_n_s32(0x4b400000 - t.zero_point));
  vst1q_s8(reinterpret_cast<int8_t*>(ends + 8 * kLowAt), vdupq_n_s8(t.is_bounded ? int8_t(t.low) : int8_t(-128)));
  vst1q_s8(reinterpret_cast<int8_t*>(ends + 8 * kHighAt), vdupq_n_s8(t.is_bounded ? t.top : int8_t(127)));
  vst1q_u8(ends + 8 * kFlipAt, vdupq_n_u8(t.flip));
  for (size_t half = 0; half < 2; ++half) {
    __builtin_memcpy(ends + 8 * kOffsetsAt, behind + 32 * half, 32);
    __builtin_memcpy(ends + 8 * kScalesAt, behind + 64 + 32 * half, 32);
    asm volatile("" : : "r"(ends) : "memory");
    const uint8_t* const at[3] = {rows[0] + 8 * half, rows[1] + 8 * half, rows[2] + 8 * half};
    (bounds ? taps_of_eight<S, true> : taps_of_eight<S, false>)(t, at, steps, w + 8 * half, ends, t.out + 8 * half);
  }
}
