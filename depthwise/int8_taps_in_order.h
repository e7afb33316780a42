// What the programs for windows of 3x3 of bytes share that multiply tap by tap (int8_in_order.h, int8_in_order32.h):
// the order of taps and of inputs, and the pointers to the window's three rows.
#pragma once
#include "simd/in_order.h"

namespace skua {
namespace SKUA_ISA {
namespace {

// Steps on pointers, behind all that programs have of their own. a: the row; b of move: columns, and 2.
enum class RowDo : uint8_t { move = 240, next };
// Columns of a row that are read first: pointers stand there between turns.
template <int S> constexpr int kFirstColumn = S == 1 ? 0 : 2;

// Inputs of a turn of two outputs, S columns apart, loaded in the order of their use into a ring of vectors.
template <int S, class Builder> struct TapInputs {
  struct Input {
    int helper, to;
  };
  Builder& turn;
  int first_vector, vectors, loaded = 0;
  Input inputs[3][S + 3] = {};
  int left[3] = {3 + S, 3 + S, 3 + S};  // columns of each row that are not loaded yet
  int at[3] = {kFirstColumn<S>, kFirstColumn<S>, kFirstColumn<S>};

  constexpr int next_vector() { return first_vector + loaded++ % vectors; }
  // Pointers stand at the column that was loaded last, and go on to the next turn's first one when the last one has
  // been.
  constexpr void point(int row, int column) {
    while (at[row] != column) {
      const int by = column - at[row] > 1 ? 2 : column > at[row] ? 1 : at[row] - column > 1 ? -2 : -1;
      turn.single(RowDo::move, row, by + 2);
      at[row] += by;
    }
  }
  constexpr Input operator()(int row, int column) {
    Input& x = inputs[row][column];
    if (!x.to) {
      point(row, column);
      x.to = next_vector();
      x.helper = turn.load(x.to, row, 0);
      if (!--left[row]) {
        point(row, kFirstColumn<S>);
        turn.single(RowDo::next, row);
      }
    }
    return x;
  }
};

// One tap of each output: row, columns, weights. Weights are those of column k of rows 0 and 1 at 2k and 2k + 1, then
// the last row's.
struct OutputTaps {
  int row, column[2], weight[2];
};
// sum(a, b): taps whose products are added in 16 bits; b of the last is nullptr. A column that both outputs take comes
// first where they share only one.
template <int S, class Sum> constexpr void each_pair_of_taps(const Sum& sum) {
  const auto rows = [&](int c0, int k0, int c1, int k1) {
    const OutputTaps above = {0, {c0, c1}, {2 * k0, 2 * k1}}, below = {1, {c0, c1}, {2 * k0 + 1, 2 * k1 + 1}};
    sum(above, &below);
  };
  const auto last = [&](int c0, int k0, int c1, int k1) { return OutputTaps{2, {c0, c1}, {6 + k0, 6 + k1}}; };
  if constexpr (S == 1) {
    for (int k = 0; k < 3; ++k) rows(k, k, k + 1, k);
    const OutputTaps second = last(1, 1, 2, 1);
    sum(last(0, 0, 1, 0), &second);
    sum(last(2, 2, 3, 2), nullptr);
  } else {
    rows(2, 2, 2, 0);
    rows(0, 0, 3, 1);
    rows(1, 1, 4, 2);
    const OutputTaps second = last(0, 0, 3, 1);
    sum(last(2, 2, 2, 0), &second);
    sum(last(1, 1, 4, 2), nullptr);
  }
}

template <int S> struct TapRows {
  const uint8_t* at[3];
  size_t steps[3], mask;  // mask: all bits, or none: the last turn
  SKUA_INL void begin(const uint8_t* const (&rows)[3], const size_t (&step)[3]) {
    SKUA_UNROLL for (int i = 0; i < 3; ++i) steps[i] = step[i], at[i] = rows[i] + kFirstColumn<S> * step[i];
  }
  template <int what, int row, int by> SKUA_INL void step() {
    if constexpr (RowDo(what) == RowDo::next) {
      // The last turn loads its own first inputs once more: nothing else is known to be there.
      at[row] += 2 * S * (steps[row] & mask);
      asm volatile("" : "+r"(at[row]));
    } else if constexpr (by == 3) asm volatile("add %0, %0, %1" : "+r"(at[row]) : "r"(steps[row]));
    else if constexpr (by == 4) asm volatile("add %0, %0, %1, lsl #1" : "+r"(at[row]) : "r"(steps[row]));
    else if constexpr (by == 1) asm volatile("sub %0, %0, %1" : "+r"(at[row]) : "r"(steps[row]));
    else asm volatile("sub %0, %0, %1, lsl #1" : "+r"(at[row]) : "r"(steps[row]));
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
