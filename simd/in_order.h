// Programs for in-order cores of Arm, which issue two instructions a cycle as they come: put together when a unit is
// compiled, one step an instruction that stays where it is written.
//
//   work       a vector instruction: one in every cycle
//   helpers    what goes beside them, in an order of their own: loads of vectors, in pieces, and single instructions
//              (pointers)
//   a turn     the body of a loop: works, and the helpers of most of them and of the next turn's first ones
//
//   consteval auto make(bool start) {
//     InOrderBuilder<16, 8> turn;
//     const int x = turn.load(4, kInputs, 0);        // vector 4, from place 0 of the inputs
//     const int ahead = turn.helpers;                // so many helpers are done when a turn begins: by the turn before
//     turn.add(Do::multiply, 0, 4, 5, x);            // v0 += v4 * v5; needs the load
//     turn.single(Do::next);                         // moves the pointer, before the next turn's loads
//     return turn.turn<64>(start, ahead);
//   }
//   run_steps<first>(registers);                     // of start: the loads alone
//   while (...) run_steps<body>(registers);          // the last turn's pointer stays: it loads what is there once more
//
// What a program reads must be in memory before its function is called: no step tells the compiler what it reads.
//
// A 128-bit load would go beside nothing for two cycles, so a vector comes in pieces: `ldr x` of its upper half,
// `ldr d`, and the insert of the half. On the Cortex-A55 each of them goes beside a vector instruction; on the A53 only
// `ldr x` does, and `ldr d` and an insert beside each other: so the insert of a load comes right before the `ldr d` of
// one after it, and a vector costs a cycle. AArch32 loads the upper half in two words for the A53; for the A55 either
// half is a D register, which is loaded beside a vector instruction.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct InOrderStep {
  uint8_t what, a, b, c;
};
// Steps that every program has, beside its own, which count from 0: load_step() does them. a: the vector, or which of
// kHalves upper halves on their way; b, c: where it comes from, as the program takes it.
// kLoadUpperWord: the second one, on AArch32; kLoadHigh: into the vector
enum : uint8_t { kLoadUpper = 251, kLoadUpperWord, kLoadLower, kLoadHigh, kInsertUpper };
constexpr int kHalves = 4, kNoVector = 255;
// `ldr x` and an insert; two words and an insert; a D register each; the vector is one D register
enum class Pieces : uint8_t { halves, words, registers, one };

template <int most> struct InOrderProgram {
  InOrderStep at[most];
  int n;
};

template <int most_works, int most_helpers> struct InOrderBuilder {
  struct Work {
    InOrderStep step;
    int needs;  // the helper that must be done before, or -1
  } work[most_works] = {};
  struct Helper {
    InOrderStep step;
    int to;         // the vector that is loaded; -1: one instruction
    int first_use;  // the first work that may read it
    int pair;       // 1: numbers that differ by their last bit are of one vector
  } helper[most_helpers] = {};
  int works = 0, helpers = 0;
  Pieces pieces = Pieces::halves;

  // Kinds of steps are of the program's own enumeration; a, b, c: vectors. needs: the last of the loads that it waits
  // for.
  template <class What>
  constexpr void add(What what, int a, int b = kNoVector, int c = kNoVector, int needs = -1) {
    work[works++] = {{uint8_t(what), uint8_t(a), uint8_t(b), uint8_t(c)}, needs};
  }
  // After all works that have to do with what the vector held, before the first that uses it.
  constexpr int load(int to, int from, int place, int pair = 0) {
    helper[helpers] = {{0, 0, uint8_t(from), uint8_t(place)}, to, works, pair};
    return helpers++;
  }
  template <class What>
  constexpr void single(What what, int a, int b = 0) {
    helper[helpers++] = {{uint8_t(what), uint8_t(a), uint8_t(b), 0}, -1, works, 0};
  }

  // A turn: all works, and beside them the helpers but the first `ahead`, which are those of the next turn, to the same
  // vectors. start: only these, before the first turn. in_threes: no helper after the work that follows an insert and a
  // load. On the A55 these two go beside the works before and after them; another helper there would leave the next
  // insert and load to each other. For turns of three works for each load and more; others would wait for their loads.
  template <int most> constexpr InOrderProgram<most> turn(bool start, int ahead, bool in_threes = false) {
    if (start) return program<most>(0, ahead, false, false);
    for (int i = 0; i < ahead; ++i) {
      helper[helpers] = helper[i];
      helper[helpers++].first_use = works;
    }
    return program<most>(ahead, helpers, true, in_threes);
  }

  // Helpers [from, to), beside all works or alone.
  template <int most> constexpr InOrderProgram<most> program(int from, int to, bool with_works, bool in_threes) const {
    InOrderProgram<most> p = {};
    const auto put = [&](int what, int a, int b = 0, int c = 0) {
      p.at[p.n++] = {uint8_t(what), uint8_t(a), uint8_t(b), uint8_t(c)};
    };
    int next = from, now = with_works ? -1 : works, waiting[most_helpers] = {}, begin = 0, end = 0, loads = 0,
        inserted = 0, piece = 0;
    bool rests = false;
    const auto is_free = [&](const Helper& h) {  // nothing before its first use has to do with what was there
      const auto is = [&](int vector) { return (vector | h.pair) == (h.to | h.pair); };
      for (int i = h.first_use - 1; i > now; --i)
        if (is(work[i].step.a) || is(work[i].step.b) || is(work[i].step.c)) return false;
      return true;
    };
    const auto insert = [&] { put(kInsertUpper, helper[waiting[begin++]].to, inserted++ % kHalves); };
    const auto help = [&] {
      if (next == to) {
        if (begin < end) return insert(), true;
        return false;
      }
      const Helper& h = helper[next];
      if (h.to < 0) {
        p.at[p.n++] = h.step;
        ++next;
      } else if (pieces == Pieces::registers || pieces == Pieces::one) {
        if (!is_free(h)) return false;
        put(piece ? kLoadHigh : kLoadLower, h.to, h.step.b, h.step.c);
        if (pieces == Pieces::registers) piece = !piece;
        next += !piece;
      } else if (piece < (pieces == Pieces::words ? 2 : 1)) {
        put(piece ? kLoadUpperWord : kLoadUpper, loads % kHalves, h.step.b, h.step.c);
        ++piece;
      } else {
        if (!is_free(h)) return false;
        if (begin + (pieces == Pieces::words ? 1 : 2) <= end) insert(), rests = in_threes;
        put(kLoadLower, h.to, h.step.b, h.step.c);
        waiting[end++] = next++;
        ++loads;
        piece = 0;
      }
      return true;
    };
    const auto is_done = [&](int h) {
      for (int i = begin; i < end; ++i)
        if (waiting[i] == h) return false;
      return h < next;
    };
    for (int i = 0; with_works && i < works; ++i) {
      while (work[i].needs >= 0 && !is_done(work[i].needs))
        if (!help()) insert();  // the next load may wait for what this one feeds
      p.at[p.n++] = work[i].step;
      now = i;
      if (rests) rests = false;
      else help();
    }
    now = works;
    while (help()) {}
    return p;
  }
};

// All steps of a program; of r, which holds the registers, step<what, a, b, c>() is one.
template <const auto& program, class Registers, int from = 0, int n = program.n> SKUA_INL void run_steps(Registers& r) {
  if constexpr (n == 1) {
    constexpr InOrderStep s = program.at[from];
    r.template step<s.what, s.a, s.b, s.c>();
  } else {
    run_steps<program, Registers, from, n / 2>(r);
    run_steps<program, Registers, from + n / 2, n - n / 2>(r);
  }
}

// One instruction each. at: bytes from p, written down: compilers would keep an address in a register for every place
// that does not move.
#if defined(__aarch64__)
template <int at>
SKUA_INL void load_lower(int8x16_t& v, const void* p) {
  asm volatile("ldr %d0, [%1, %2]" : "+w"(v) : "r"(p), "i"(at));
}
template <int at>
SKUA_INL void load_upper(uint64_t& half, const void* p) {
  asm volatile("ldr %0, [%1, %2]" : "=r"(half) : "r"(p), "i"(at + 8));
}
SKUA_INL void insert_upper(int8x16_t& v, uint64_t half) { asm volatile("mov %0.d[1], %1" : "+w"(v) : "r"(half)); }
using Half = uint64_t;
#else
template <int at>
SKUA_INL void load_lower(int8x16_t& v, const void* p) {
  asm volatile("vldr %e0, [%1, %2]" : "+w"(v) : "r"(p), "i"(at));
}
template <int at>
SKUA_INL void load_high(int8x16_t& v, const void* p) {
  asm volatile("vldr %f0, [%1, %2]" : "+w"(v) : "r"(p), "i"(at + 8));
}
template <int at>
SKUA_INL void load_word(uint32_t& word, const void* p) {
  asm volatile("ldr %0, [%1, %2]" : "=r"(word) : "r"(p), "i"(at));
}
struct Half {
  uint32_t word[2];
};
template <int at> SKUA_INL void load_upper(Half& half, const void* p) { load_word<at + 8>(half.word[0], p); }
SKUA_INL void insert_upper(int8x16_t& v, const Half& half) {
  asm volatile("vmov %f0, %1, %2" : "+w"(v) : "r"(half.word[0]), "r"(half.word[1]));
}
#endif

// Registers of a program. from: what step() takes b to be, of loads.
template <int vectors> struct InOrderRegisters {
  int8x16_t v[vectors];
  Half half[kHalves];
  template <int what, int a, int b, int at> SKUA_INL void load_step(const void* from) {
    if constexpr (what == kInsertUpper) insert_upper(v[a], half[b]);
    else if constexpr (what == kLoadUpper) load_upper<at>(half[a], from);
#if !defined(__aarch64__)
    else if constexpr (what == kLoadUpperWord) load_word<at + 12>(half[a].word[1], from);
    else if constexpr (what == kLoadHigh) load_high<at>(v[a], from);
#endif
    else load_lower<at>(v[a], from);
  }
};

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
