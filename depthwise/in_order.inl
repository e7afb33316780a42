// Depthwise tiles for in-order cores, which issue two instructions a cycle as they come: the order of instructions is
// the kernel. Included by kernels.cc.
//
//   a turn      one vector of channels of a whole tile: RH*RW moves of the bias, the multiply-adds input row by input
//               row, clamps; one of these in every cycle
//   beside it   one helper: inputs and weights come in halves (`ldr d`, `ldr x`, and `mov v.d[1], x`), pointers move,
//               results are stored
//   in pairs    on the Cortex-A53 a 64-bit vector load and an insert go beside each other only, so a load takes a
//               cycle, and `ldr x` goes beside a multiply; on either core at stride 2, where there are more halves than
//               multiplies
//   ahead       loads run as far ahead as the registers of inputs let them, at the end of a turn into the next one's
//               first inputs
//
// AArch32 has D registers of their own name: both halves are loaded (`vld1` or `vldr`) beside multiplies on the A55; on
// the A53 one is, in a cycle with the move of two words into the other.
//
// Registers: 14 sums, the bias, and 9 weights + 8 inputs (3x3) or 10 weights of two rows + 7 inputs (5x5; at stride 2
// two rows of outputs share no row of weights, so each has its own, which are loaded once for either): all 32. AArch32:
// 7 sums, weights of one row, 6 inputs (3x3) or 4 (5x5), of which the bias is the first: all 16. make_turn() puts the
// program of a turn together when this is compiled; every step of it is one instruction that stays where it is written.
// The order of the sums is that of the other tiles.

enum class Do : uint8_t {
  move,
  multiply,
  bound_low,
  bound_high,
  clamp_low,
  clamp_high,
  next,
  row,
  skip,
  load_low,
  load_high,
  load_word,
  insert,
  store
};
struct Step {
  Do what;
  // vectors; of loads: the vector (load_high, load_word, insert: and one of three registers for the half on its way),
  // row of inputs or kWeights, column
  uint8_t a, b, c;
};
constexpr int kWeights = 255, kOffsets = 8;
#if defined(__aarch64__)
constexpr bool kWhole = true;  // registers have no halves of their own: the upper one is inserted
#else
constexpr bool kWhole = false;
#endif
template <int steps> struct Turn {
  Step at[steps];
  int n;
};

// LEFT, RIGHT, TOP, BOTTOM: columns and rows of the tile's input that lie outside the image there: what would read them
// is left out.
template <int KERNEL, int STRIDE, int ROWS, int COLUMNS, int LEFT, int RIGHT, int TOP = 0, int BOTTOM = 0> struct Plan {
  static constexpr int K = KERNEL, S = STRIDE, RH = ROWS, RW = COLUMNS;
  static constexpr int IH = (RH - 1) * S + K, IW = (RW - 1) * S + K, kLeft = LEFT, kEnd = IW - RIGHT, kTop = TOP,
                       kBottom = IH - BOTTOM;
  // the two rows of outputs have weights of their own, which are loaded twice
  static constexpr bool kApart = K == 5 && S == 2 && RH == 2;
  static constexpr int kTapRows = !kWhole ? 1 : K == 3 ? 3 : 2;  // rows of weights that are there at once
  static constexpr int kTaps = RH * RW, kVectors = kWhole ? 32 : 16;
  // AArch32: the bias is the first of the inputs
  static constexpr int kBias = kTaps + kTapRows * K, kInputs = kBias + kWhole, kRing = kVectors - kInputs;
  // Bounds take the place of weights of the last row but one, or of the last inputs.
  static constexpr int kLow = kApart   ? kTaps + K - 2
                              : kWhole ? kTaps + (K - 2) % kTapRows * K
                                       : kVectors - 2,
                       kHigh = kLow + 1;
  static constexpr int kLoads = 1 + K * K * (kApart ? 2 : 1) + IH * IW, kBytes = (1 + K * K) * 16;  // of weights
  // of these, loaded by the turn before; below TOP the next row of weights would be one of 8
  static constexpr int kFirst = !kWhole  ? 2 * (kRing - 3) + 1
                                : K == 3 ? 1 + 3 + (TOP ? 0 : 4)
                                : kApart ? 1 + 2 * 3
                                         : 1 + 2 * 4;
  static constexpr int kSums = RH * RW, kWork = kSums * (3 + K * K) + 2;
  static constexpr int kMost = kWork + 4 * (kLoads + kFirst) + kSums + 4 * IH + RH + 8;
};

// from_start: the loads before the first turn, and nothing else.
template <class P, bool in_pairs, bool from_start> constexpr auto make_turn() {
  constexpr int K = P::K, S = P::S, RH = P::RH, RW = P::RW;
  Turn<P::kMost> turn = {};
  const auto put = [&](Do what, int a, int b = 0, int c = 0) {
    turn.at[turn.n++] = {what, uint8_t(a), uint8_t(b), uint8_t(c)};
  };

  // Loads in the order of use: bias; weights of the first row; rows of inputs, in their middle the weights of the next
  // row; or, where only two rows of weights fit, each weight just before the first input that needs it.
  struct Load { int to, row, column, last_use; } load[P::kLoads + P::kFirst] = {};
  // tap_below: of the second row of outputs
  int loads = 0, tap_of[K * K] = {}, input_of[P::IH * P::IW] = {}, tap_below[K * K] = {};
  const auto taps = [&](int ky, int first, int end) {
    for (int k = first; k < end && ky < K; ++k) {
      tap_of[ky * K + k] = loads;
      load[loads++] = {P::kTaps + (P::kApart ? 0 : ky % P::kTapRows * K) + k, kWeights, 1 + ky * K + k, 0};
    }
  };
  const auto below = [&](int ky, int k) {
    if (ky < 0 || ky >= K || k >= K) return;
    tap_below[ky * K + k] = loads;
    load[loads++] = {P::kTaps + K + k, kWeights, 1 + ky * K + k, 0};
  };
  load[loads++] = {P::kBias, kWeights, 0, 0};
  for (int r = 0, n = !kWhole; r < P::IH; ++r) {
    for (int j = P::kLeft; j < P::kEnd; ++j) {
      const int first = j == P::kLeft ? 0 : j, end = j < K ? j + 1 : j;
      if (P::kApart)
        for (int k = first; k < end; ++k) below(r - S, k);
      if (P::kTapRows < K) taps(r, first, end);
      else if (r == 0 && j == P::kLeft) taps(0, 0, K);
      else if (j == P::kLeft + P::IW / 2) taps(r + 1, 0, K);  // not yet among the kFirst
      if (r < P::kTop || r >= P::kBottom) continue;
      input_of[r * P::IW + j] = loads;
      load[loads++] = {P::kInputs + n++ % P::kRing, r, j - P::kLeft, 0};
    }
  }

  // What takes a cycle of the multiplier, and the last load that it waits for.
  struct Work { Step step; int needs; } work[P::kWork] = {};
  int works = 0, clamped[RH * RW] = {};
  const auto add = [&](Do what, int a, int b, int c, int needs) {
    work[works++] = {{what, uint8_t(a), uint8_t(b), uint8_t(c)}, needs};
  };
  // Fillers go between the columns of the first and the last rows, where sums would wait for themselves: moves of later
  // rows of sums, and clamps of earlier ones.
  int moved = 0, ended = 0;
  const auto move = [&]() {
    load[0].last_use = works;
    add(Do::move, moved++, P::kBias, 0, 0);
  };
  const auto end = [&](int rows) {  // bounds, then all lower clamps of a row of sums, all upper ones
    if (!rows || ended >= 2 + 2 * rows * RW) return;
    if (ended < 2) return add(ended ? Do::bound_high : Do::bound_low, 0, 0, 0, -1), void(++ended);
    const int y = (ended - 2) / (2 * RW), i = (ended - 2) % (2 * RW), sum = y * RW + i % RW;
    clamped[sum] = works;
    add(i < RW ? Do::clamp_low : Do::clamp_high, sum, 0, 0, -1);
    ++ended;
  };
  while (moved < RW) move();
  for (int r = 0; r < P::IH; ++r) {
    while (r % S == 0 && r / S < RH && moved < (r / S + 1) * RW) move();
    const int done = r < K || r <= K - 2 + (RH - 1) * S ? 0 : (r - K) / S + 1;
    for (int j = P::kLeft; j < P::kEnd && r >= P::kTop && r < P::kBottom; ++j) {
      for (int y = 0; y < RH; ++y)
        for (int kx = 0; kx < K; ++kx) {
          const int ky = r - y * S, x = (j - kx) / S;
          if (ky < 0 || ky >= K || j < kx || (j - kx) % S || x >= RW) continue;
          const int input = input_of[r * P::IW + j],
                    tap = P::kApart && y ? tap_below[ky * K + kx] : tap_of[ky * K + kx];
          load[input].last_use = load[tap].last_use = works;
          add(Do::multiply, y * RW + x, load[input].to, load[tap].to, input > tap ? input : tap);
        }
      if (moved < P::kSums && r < S) move();
      end(done);
      if (done && j % 2) end(done);
    }
  }
  while (ended < 2 + 2 * P::kSums) end(RH);
  for (int i = 0; i < P::kFirst; ++i) load[loads + i] = {load[i].to, load[i].row, load[i].column, 0};

  // Helpers in order: pieces of load n, with the insert of the second one before it.
  const int all = from_start ? P::kFirst : loads + P::kFirst, begin = from_start ? 0 : P::kFirst;
  int n = begin, piece = 0, inserted = begin, stored = 0, now = -1;
  const auto is_free = [&](int m) {
    for (int i = m - 1; i >= 0; --i)
      if (load[i].to == load[m].to) return load[i].last_use <= now;
    return true;
  };
  const auto insert = [&]() {
    put(Do::insert, load[inserted].to, inserted % 3);
    ++inserted;
  };
  const auto store = [&]() {
    if (from_start || stored >= P::kSums || !clamped[stored] || now < clamped[stored] + (stored + 1 < P::kSums ? 3 : 0))
      return false;
    put(Do::store, stored, stored % RW == RW - 1);
    ++stored;
    return true;
  };
  const auto help = [&]() {
    if ((now % 2 == 0 || n == all) && store()) return true;
    if (n == all) {
      if (inserted < all) return insert(), true;
      return store();
    }
    if (piece == 0) {
      if (!is_free(n)) return store();
      const Load& l = load[n];
      if (n == loads) put(Do::next, 0);
      if (l.row != kWeights && l.column == 0) put(Do::row, l.row);
      else if (kWhole && l.row != kWeights && l.column % kOffsets == 0 && P::IW > kOffsets + 1) put(Do::skip, 0);
      const int column = l.row != kWeights && P::IW > kOffsets + 1 ? l.column % kOffsets : l.column;
      if constexpr (in_pairs && kWhole) {
        put(Do::load_high, n % 3, l.row, column);
        put(Do::load_low, l.to, l.row, column);
        if (inserted + 2 <= n) insert();
        ++n;
      } else if constexpr (in_pairs) {
        put(Do::load_word, n % 3, l.row, column);
        piece = 1;
      } else {
        put(Do::load_low, l.to, l.row, column);
        piece = 1;
      }
    } else if (piece == 1) {
      const Load& l = load[n];
      if constexpr (!kWhole && in_pairs) {
        put(Do::load_high, n % 3, l.row, l.column);
        put(Do::load_low, l.to, l.row, l.column);
        if (inserted + 2 <= n) insert();
        piece = 0;
      } else if constexpr (!kWhole) {
        put(Do::load_high, l.to, l.row, l.column);
        inserted = n + 1;
        piece = 0;
      } else {
        put(Do::load_high, n % 3, l.row, l.row != kWeights && P::IW > kOffsets + 1 ? l.column % kOffsets : l.column);
        piece = inserted + 2 <= n ? 2 : 0;
      }
      if (piece == 0) ++n;
    } else {
      insert();
      piece = 0;
      ++n;
    }
    return true;
  };
  if (!from_start)
    for (int i = 0; i < works; ++i) {
      while (work[i].needs >= inserted)
        if (!help() && inserted < n) insert();  // the next load may wait for what this one feeds
      turn.at[turn.n++] = work[i].step;
      now = i;
      help();
    }
  now = 1 << 20;
  while (n < all || inserted < all || (!from_start && stored < P::kSums)) help();
  return turn;
}

#if defined(SKUA_HALF)
#define SKUA_LANES "8h"
#define SKUA_BITS "16"
SKUA_INL uint32_t bits_of(float x) {
  f16 h;
  narrow(x, h);
  return h.bits;
}
#else
#define SKUA_LANES "4s"
#define SKUA_BITS "32"
SKUA_INL uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
#endif

template <class P> struct Operands {
  const char* rows[P::IH];
  // bytes, of columns too; last: where the last vector begins
  ptrdiff_t offset[kWhole ? kOffsets + 1 : 2], out_row, out_pixel, last;
  char* out;
  uint32_t low, high;
};
template <class P> struct Registers {
  V v[P::kVectors];
  uint64_t half[3];
  uint32_t word[3][2];                      // the same on AArch32
  const char *row, *row_high, *w;           // row_high: 8 bytes on
  char* to;
  ptrdiff_t c;                              // bytes
  bool more;
};

// Every vector keeps its register from turn to turn: what writes one takes what it held, or compilers would move
// vectors around.
SKUA_INL V any_value() {
  V y;
  asm("" : "=w"(y.v));
  return y;
}
#if defined(__aarch64__)
SKUA_INL V multiply(V a, V x, V w) {
  asm volatile("fmla %0." SKUA_LANES ", %1." SKUA_LANES ", %2." SKUA_LANES : "+w"(a.v) : "w"(x.v), "w"(w.v));
  return a;
}
SKUA_INL V moved(V y, V x) {
  asm volatile("mov %0.16b, %1.16b" : "+w"(y.v) : "w"(x.v));
  return y;
}
SKUA_INL V with_high(V x, uint64_t h) {
  asm volatile("mov %0.d[1], %1" : "+w"(x.v) : "r"(h));
  return x;
}
SKUA_INL V lanes_of(V y, uint32_t bits) {
  asm volatile("dup %0." SKUA_LANES ", %w1" : "+w"(y.v) : "r"(bits));
  return y;
}
SKUA_INL V not_below(V x, V low) {
  asm volatile("fmax %0." SKUA_LANES ", %0." SKUA_LANES ", %1." SKUA_LANES : "+w"(x.v) : "w"(low.v));
  return x;
}
SKUA_INL V not_above(V x, V high) {
  asm volatile("fmin %0." SKUA_LANES ", %0." SKUA_LANES ", %1." SKUA_LANES : "+w"(x.v) : "w"(high.v));
  return x;
}
SKUA_INL V low_half(V y, const char* p, ptrdiff_t offset) {
  asm volatile("ldr %d0, [%1, %2]" : "+w"(y.v) : "r"(p), "r"(offset));
  return y;
}
template <int at> SKUA_INL V low_half(V y, const char* p) {
  asm volatile("ldr %d0, [%1, %2]" : "+w"(y.v) : "r"(p), "i"(at));
  return y;
}
SKUA_INL uint64_t high_half(const char* p, ptrdiff_t offset) {
  uint64_t y;
  asm volatile("ldr %0, [%1, %2]" : "=r"(y) : "r"(p), "r"(offset));
  return y;
}
template <int at> SKUA_INL uint64_t high_half(const char* p) {
  uint64_t y;
  asm volatile("ldr %0, [%1, %2]" : "=r"(y) : "r"(p), "i"(at));
  return y;
}
#else
SKUA_INL V multiply(V a, V x, V w) {
  asm volatile("vfma.f" SKUA_BITS " %q0, %q1, %q2" : "+w"(a.v) : "w"(x.v), "w"(w.v));
  return a;
}
SKUA_INL V moved(V y, V x) {
  asm volatile("vmov %q0, %q1" : "+w"(y.v) : "w"(x.v));
  return y;
}
SKUA_INL V with_high(V x, const uint32_t (&h)[2]) {
  asm volatile("vmov %f0, %1, %2" : "+w"(x.v) : "r"(h[0]), "r"(h[1]));
  return x;
}
SKUA_INL V lanes_of(V y, uint32_t bits) {
  asm volatile("vdup." SKUA_BITS " %q0, %1" : "+w"(y.v) : "r"(bits));
  return y;
}
SKUA_INL V not_below(V x, V low) {
  asm volatile("vmax.f" SKUA_BITS " %q0, %q0, %q1" : "+w"(x.v) : "w"(low.v));
  return x;
}
SKUA_INL V not_above(V x, V high) {
  asm volatile("vmin.f" SKUA_BITS " %q0, %q0, %q1" : "+w"(x.v) : "w"(high.v));
  return x;
}
SKUA_INL V low_half(V y, const char*& p, ptrdiff_t step) {  // p goes on to the next pixel
  asm volatile("vld1." SKUA_BITS " {%e0}, [%1], %2" : "+w"(y.v), "+r"(p) : "r"(step));
  return y;
}
SKUA_INL V upper_half(V y, const char*& p, ptrdiff_t step) {
  asm volatile("vld1." SKUA_BITS " {%f0}, [%1], %2" : "+w"(y.v), "+r"(p) : "r"(step));
  return y;
}
template <int at> SKUA_INL V low_half(V y, const char* p) {
  asm volatile("vldr %e0, [%1, %2]" : "+w"(y.v) : "r"(p), "i"(at));
  return y;
}
template <int at> SKUA_INL V upper_half(V y, const char* p) {
  asm volatile("vldr %f0, [%1, %2]" : "+w"(y.v) : "r"(p), "i"(at));
  return y;
}
SKUA_INL const char* loaded(const char* const& p) {
  const char* y;
  asm volatile("ldr %0, %1" : "=r"(y) : "m"(p));
  return y;
}
template <int at> SKUA_INL uint32_t word_at(const char* p) {
  uint32_t y;
  asm volatile("ldr %0, [%1, %2]" : "=r"(y) : "r"(p), "i"(at));
  return y;
}
#endif
SKUA_INL const char* moved_by(const char* p, ptrdiff_t offset) {
  const char* y;
  asm volatile("add %0, %1, %2" : "=r"(y) : "r"(p), "Ir"(offset));
  return y;
}
SKUA_INL char* stored(V x, char* to, ptrdiff_t step) {  // where the next one goes
#if defined(__aarch64__)
  asm volatile("st1 {%1.16b}, [%0], %2" : "+r"(to) : "w"(x.v), "r"(step) : "memory");
#else
  asm volatile("vst1." SKUA_BITS " {%e1, %f1}, [%0], %2" : "+r"(to) : "w"(x.v), "r"(step) : "memory");
#endif
  return to;
}

template <class P, bool in_pairs, int what, int a, int b, int c>
SKUA_INL void do_step(const Operands<P>& o, Registers<P>& r) {
  constexpr Do d = Do(what);
  if constexpr (d == Do::move) r.v[a] = moved(r.v[a], r.v[b]);
  else if constexpr (d == Do::multiply) r.v[a] = multiply(r.v[a], r.v[b], r.v[c]);
  else if constexpr (d == Do::bound_low) r.v[P::kLow] = lanes_of(r.v[P::kLow], o.low);
  else if constexpr (d == Do::bound_high) r.v[P::kHigh] = lanes_of(r.v[P::kHigh], o.high);
  else if constexpr (d == Do::clamp_low) r.v[a] = not_below(r.v[a], r.v[P::kLow]);
  else if constexpr (d == Do::clamp_high) r.v[a] = not_above(r.v[a], r.v[P::kHigh]);
  else if constexpr (d == Do::next) {  // after the last vector it is loaded again: nothing else is known to be there
    r.more = r.c != o.last;
    if (r.more) r.w += P::kBytes;
    r.c = r.c + 16 < o.last ? r.c + 16 : o.last;
  }
  else if constexpr (d == Do::row || d == Do::skip) {
    if constexpr (kWhole) {
      r.row = d == Do::row ? moved_by(o.rows[a], r.c) : moved_by(r.row, o.offset[kOffsets]);
    } else {
      r.row = moved_by(o.rows[a], r.c);
    }
    if constexpr (!in_pairs || kWhole) r.row_high = moved_by(r.row, 8);
  } else if constexpr (d == Do::store) {
    r.to = stored(r.v[a], r.to, b ? o.out_row : o.out_pixel);
  }
#if defined(__aarch64__)
  else if constexpr (d == Do::insert) r.v[a] = with_high(r.v[a], r.half[b]);
  else if constexpr (d == Do::load_low) {
    if constexpr (b == kWeights) r.v[a] = low_half<16 * c>(r.v[a], r.w);
    else if constexpr (c == 0) r.v[a] = low_half<0>(r.v[a], r.row);
    else r.v[a] = low_half(r.v[a], r.row, o.offset[c]);
  } else if constexpr (d == Do::load_high) {
    if constexpr (b == kWeights) r.half[a] = high_half<16 * c + 8>(r.w);
    else if constexpr (c == 0) r.half[a] = high_half<0>(r.row_high);
    else r.half[a] = high_half(r.row_high, o.offset[c]);
  }
#else
  else if constexpr (d == Do::insert) r.v[a] = with_high(r.v[a], r.word[b]);
  else if constexpr (d == Do::load_low) {
    if constexpr (b == kWeights) r.v[a] = low_half<16 * c>(r.v[a], r.w);
    else r.v[a] = low_half(r.v[a], r.row, o.offset[1]);
  } else if constexpr (d == Do::load_word) {
    if constexpr (b == kWeights) r.word[a][0] = word_at<16 * c + 8>(r.w);
    else r.word[a][0] = word_at<8>(r.row);
  } else if constexpr (d == Do::load_high && in_pairs) {
    if constexpr (b == kWeights) r.word[a][1] = word_at<16 * c + 12>(r.w);
    else r.word[a][1] = word_at<12>(r.row);
  } else if constexpr (d == Do::load_high) {
    if constexpr (b == kWeights) r.v[a] = upper_half<16 * c + 8>(r.v[a], r.w);
    else r.v[a] = upper_half(r.v[a], r.row_high, o.offset[1]);
  }
#endif
}

template <class P, bool in_pairs, bool from_start> constexpr auto turn_of = make_turn<P, in_pairs, from_start>();
template <class P, bool in_pairs, bool from_start, int from, int n>
SKUA_INL void do_steps(const Operands<P>& o, Registers<P>& r) {
  if constexpr (n == 1) {
    constexpr Step s = turn_of<P, in_pairs, from_start>.at[from];
    do_step<P, in_pairs, int(s.what), s.a, s.b, s.c>(o, r);
  } else {
    do_steps<P, in_pairs, from_start, from, n / 2>(o, r);
    do_steps<P, in_pairs, from_start, from + n / 2, n - n / 2>(o, r);
  }
}

// A whole tile, of which all rows but TOP and BOTTOM ones are inside the image, and all columns but LEFT and RIGHT
// ones.
template <class T, int K, int S, int RH, int RW, bool in_pairs, int LEFT, int RIGHT, int TOP = 0, int BOTTOM = 0>
void scheduled_tile(const DepthwiseTile& t) {
  using P = Plan<K, S, RH, RW, LEFT, RIGHT, TOP, BOTTOM>;
  Operands<P> o;
  Registers<P> r;
  const ptrdiff_t size = sizeof(T), pixel = ptrdiff_t(t.in_pixel) * size;
  SKUA_UNROLL for (int i = 0; i < P::IH; ++i)
    o.rows[i] = reinterpret_cast<const char*>(static_cast<const T*>(t.rows[i]) + t.column) + LEFT * pixel;
  SKUA_UNROLL for (int j = 0; j < int(sizeof(o.offset) / sizeof(o.offset[0])); ++j) o.offset[j] = j * pixel;
  o.out_pixel = ptrdiff_t(t.out_pixel) * size;
  o.out_row = ptrdiff_t(t.out_row) * size - (RW - 1) * o.out_pixel;  // from the end of a row of outputs to the next
  o.low = bits_of(t.low);
  o.high = bits_of(t.high);
  char* const out = static_cast<char*>(t.out);
  SKUA_UNROLL for (int i = 0; i < P::kVectors; ++i) r.v[i] = any_value();
  r.w = static_cast<const char*>(t.w);
  r.c = 0;
  o.last = (ptrdiff_t(t.channels) - L) * size;
  do_steps<P, in_pairs, true, 0, turn_of<P, in_pairs, true>.n>(o, r);
  for (r.more = true; r.more;) {
    r.to = out + r.c;
    do_steps<P, in_pairs, false, 0, turn_of<P, in_pairs, false>.n>(o, r);
  }
}
template <class T, int K, int S, int RH, int RW, Core core> constexpr DepthwiseTileTable make_scheduled_table() {
  constexpr bool in_pairs = core == Core::a53 || (kWhole && S == 2);
  constexpr uint32_t all = (uint32_t(1) << Plan<K, S, RH, RW, 0, 0>::IW) - 1,
                     rows = (uint32_t(1) << Plan<K, S, RH, RW, 0, 0>::IH) - 1;
  DepthwiseTileTable t = make_table<T, K, S, RH, RW>();
  t.whole[0] = scheduled_tile<T, K, S, RH, RW, in_pairs, 0, 0>;
  if constexpr (K == 3 || S == 1) {  // as much padding as keeps the size, and at stride 2 one column
    constexpr int pad = K / 2;
    t.edge[0] = {all >> pad << pad, rows, scheduled_tile<T, K, S, RH, RW, in_pairs, pad, 0>};
    t.edge[1] = {all >> pad, rows, scheduled_tile<T, K, S, RH, RW, in_pairs, 0, pad>};
    if constexpr (S == 1)
      t.edge[2] = {all >> 2 * pad << pad, rows, scheduled_tile<T, K, S, RH, RW, in_pairs, pad, pad>};
  }
  // first and last line. On AArch32, where programs count kilobytes, they are the compiler's, as those of larger
  // kernels are
  if constexpr (kWhole && K == 3 && S == 1) {
    t.edge[3] = {all, rows - 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 0, 0, 1, 0>};
    t.edge[4] = {all >> 1 << 1, rows - 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 1, 0, 1, 0>};
    t.edge[5] = {all >> 1, rows - 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 0, 1, 1, 0>};
    t.edge[6] = {all >> 2 << 1, rows - 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 1, 1, 1, 0>};
    t.edge[7] = {all, rows >> 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 0, 0, 0, 1>};
    t.edge[8] = {all >> 1 << 1, rows >> 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 1, 0, 0, 1>};
    t.edge[9] = {all >> 1, rows >> 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 0, 1, 0, 1>};
    t.edge[10] = {all >> 2 << 1, rows >> 1, scheduled_tile<T, K, S, RH, RW, in_pairs, 1, 1, 0, 1>};
  }
  return t;
}
template <class T, int K, int S, int RH, int RW, Core core>
constexpr DepthwiseTileTable scheduled_table_of = make_scheduled_table<T, K, S, RH, RW, core>();
template <class T, int K, int S, int RH, int RW, Core core>
const DepthwiseTileTable& scheduled_table() {
  return scheduled_table_of<T, K, S, RH, RW, core>;
}

#undef SKUA_LANES
#undef SKUA_BITS
