// Programs for in-order cores of AArch64, which issue two instructions a cycle as they come: put together when a unit is compiled, one step an instruction that stays where it is written.
//
//   work       a vector instruction: one in every cycle
//   helpers    what goes beside them, in an order of their own: loads of vectors, in pieces, and single instructions (pointers)
//   a turn     the body of a loop: works, and the helpers of most of them and of the next turn's first ones
//
//   consteval auto make(bool start) {
//     InOrderBuilder<16, 8> turn;
//     const int x = turn.load(4, kInputs, 0);             // vector 4, from place 0 of the inputs
//     const int ahead = turn.helpers;                     // so many helpers are done when a turn begins: by the turn before
//     turn.add(Do::multiply, 0, 4, 5, x);                 // v0 += v4 * v5; needs the load
//     turn.single(Do::next);                              // moves the pointer, before the next turn's loads
//     return turn.turn<64>(start, ahead);
//   }
//   run_steps<first>(registers);                          // of start: the loads alone
//   while (...) run_steps<body>(registers);               // the last turn's pointer stays: it loads what is there once more
//
// What a program reads must be in memory before its function is called: no step tells the compiler what it reads.
//
// A 128-bit load would go beside nothing for two cycles, so a vector comes in three pieces: `ldr x` of its upper half, `ldr d`, and the insert of the half. On the Cortex-A55 each of them goes
// beside a vector instruction; on the A53 only `ldr x` does, and `ldr d` and an insert beside each other: so the insert of a load comes right before the `ldr d` of one after it, and a vector costs a cycle.
#pragma once
#include "simd/simd.h"

namespace skua {
namespace SKUA_ISA {
namespace {

struct InOrderStep {
  uint8_t what, a, b, c;
};
// Steps that every program has, beside its own, which count from 0: its registers' step() does them by the functions below. a: the vector, or one of kHalves registers for the upper half on its way; b, c: where it comes from, as the program takes it.
enum : uint8_t { kLoadUpper = 253, kLoadLower, kInsertUpper };
constexpr int kHalves = 4, kNoVector = 255;

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
  } helper[most_helpers] = {};
  int works = 0, helpers = 0;

  // Kinds of steps are of the program's own enumeration; a, b, c: vectors. needs: the last of the loads that it waits for.
  template <class What> constexpr void add(What what, int a, int b = kNoVector, int c = kNoVector, int needs = -1) { work[works++] = {{uint8_t(what), uint8_t(a), uint8_t(b), uint8_t(c)}, needs}; }
  // After all works that have to do with what the vector held, before the first that uses it.
  constexpr int load(int to, int from, int place) {
    helper[helpers] = {{0, 0, uint8_t(from), uint8_t(place)}, to, works};
    return helpers++;
  }
  template <class What> constexpr void single(What what, int a, int b = 0) { helper[helpers++] = {{uint8_t(what), uint8_t(a), uint8_t(b), 0}, -1, works}; }

  // A turn: all works, and beside them the helpers but the first `ahead`, which are those of the next turn, to the same vectors. start: only these, before the first turn. in_threes: no helper after
  // the work that follows an insert and a load. On the A55 these two go beside the works before and after them; another helper there would leave the next insert and load to each other. For turns of
  // three works for each load and more; others would wait for their loads.
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
    const auto put = [&](int what, int a, int b = 0, int c = 0) { p.at[p.n++] = {uint8_t(what), uint8_t(a), uint8_t(b), uint8_t(c)}; };
    int next = from, now = with_works ? -1 : works, waiting[most_helpers] = {}, begin = 0, end = 0, loads = 0, inserted = 0;
    bool halfway = false, rests = false;
    const auto is_free = [&](int vector, int before) {  // nothing before its first use has to do with what was there
      for (int i = before - 1; i > now; --i)
        if (work[i].step.a == vector || work[i].step.b == vector || work[i].step.c == vector) return false;
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
      } else if (!halfway) {
        put(kLoadUpper, loads % kHalves, h.step.b, h.step.c);
        halfway = true;
      } else {
        if (!is_free(h.to, h.first_use)) return false;
        if (begin + 2 <= end) insert(), rests = in_threes;
        put(kLoadLower, h.to, h.step.b, h.step.c);
        waiting[end++] = next++;
        ++loads;
        halfway = false;
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

// One instruction each. at: bytes from p, written down: compilers would keep an address in a register for every place that does not move.
template <int at> SKUA_INL void load_lower(int8x16_t& v, const void* p) { asm volatile("ldr %d0, [%1, %2]" : "+w"(v) : "r"(p), "i"(at)); }
template <int at> SKUA_INL void load_upper(uint64_t& half, const void* p) { asm volatile("ldr %0, [%1, %2]" : "=r"(half) : "r"(p), "i"(at + 8)); }
SKUA_INL void insert_upper(int8x16_t& v, uint64_t half) { asm volatile("mov %0.d[1], %1" : "+w"(v) : "r"(half)); }

}  // namespace
}  // namespace SKUA_ISA
}  // namespace skua
