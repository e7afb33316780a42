// Time of contestants that take turns, on a pinned core.
#pragma once
#include <skua/executor.h>
#include <functional>
#include <string>
#include <vector>

namespace bench {

class Contestant;

double now_ns();
double thread_ns();  // that this thread had a core
// with one thread: the time it had a core, so that other work on the machine costs little; else as now_ns()
double busy_ns();

// The program's effort, set from --quick and --threads.
struct Effort {
  double sample_ns = 200e3;      // shortest sample: short calls are repeated in one
  double contestant_ns = 40e6;   // time for each contestant of a case
  int min_rounds = 9, max_rounds = 101;
  int threads = 1;
  bool quick = false;
};
extern Effort effort;

struct Timing {
  double ns = 0;     // median of a call
  double best = 0;   // the shortest sample
  double noise = 0;  // half the distance of the quartiles, as a share of the median
  size_t samples = 0;
  double alone = -1; // share of the rounds in which the core was this thread's alone; -1: not looked at
  // several threads: a cache line's way to another worker's core and back, the longer of before and after the race; -1:
  // not looked at
  double line_ns = -1;
};

// What is timed, and whose workers do it: they are woken before a turn and put to sleep after it. NULL: it has none.
struct Racer {
  std::function<void()> run;
  Contestant* who = nullptr;
  // by a device's own clock, of one of so many; < 0: it has none. NULL likewise
  std::function<double(size_t calls)> device_ns = nullptr;
};

// With several threads: wakes whose workers these are and keeps them off this thread's core (a scheduler that wakes a
// worker beside the caller, or beside other work, halves the speed of a call and is not what is measured); then puts
// them to sleep. With one thread, or with NULL: nothing.
void begin_turn(Contestant* who);
void end_turn(Contestant* who);

// Calls every racer in turn, round after round, and gives each one's statistics. With one thread, samples in which the
// system took the core away are measured again (up to twice as many rounds). Where another hardware thread of the core
// (SMT) is busy, which no counter tells a guest of a virtual machine, the core starts fewer instructions: `nop`s
// between the samples show it. The statistics are of the rounds without, where they are a third or more; else of all.
std::vector<Timing> race(const std::vector<Racer>& racers, double budget_factor = 1);
Timing statistics(std::vector<double> samples);

// Keeps this thread on one core: the one asked for, or, with -1, the fastest that it may use (the last of equal ones).
// Returns which, or -1.
int pin_to_core(int core);
void unpin();  // back to every core the program could use when it began
int permitted_cores();  // how many those are

// Workers of effort.threads; NULL when it is 1. They spin for a short while between runs, then sleep; park_executor()
// sends them to sleep at once.
const skua_executor* executor();
void park_executor();

}  // namespace bench
