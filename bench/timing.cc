#include "timing.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "contestant.h"

namespace bench {

Effort effort;

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

double thread_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

double busy_ns() { return effort.threads > 1 ? now_ns() : thread_ns(); }

namespace {

long preemptions() {
#ifdef RUSAGE_THREAD
  rusage usage;
  if (effort.threads == 1 && getrusage(RUSAGE_THREAD, &usage) == 0) return usage.ru_nivcsw;
#endif
  return 0;
}

// What a call of the pool costs are lines that go from core to core, 25 to 200 ns each way. So a worker finds all it
// needs in one line, its seat: what it is called to and its share of the tasks; and it answers in another one.
struct alignas(64) Seat {
  std::atomic<uint32_t> state{0};  // 4 * number of the run + what the seat is in it
  std::atomic<size_t> next{0};
  size_t end = 0;
  skua_task task = nullptr;
  void* arg = nullptr;
  alignas(64) std::atomic<uint32_t> done{0};  // the number of the last run that its worker has left
};
constexpr uint32_t kCalled = 1, kEntered = 2, kClosed = 3;

struct Pool {
  size_t workers;
  std::unique_ptr<Seat[]> seats;  // seat 0 is the caller's
  alignas(64) std::atomic<bool> parked{false};
  uint32_t number = 0;  // of the run, modulo 2^30

  Pool(size_t n) : workers(n), seats(new Seat[n]) {
    for (size_t w = 1; w < n; ++w) std::thread([this, w] { work(w); }).detach();
  }

  // Its own share first, so that a worker finds in its cache what it wrote the time before; then what others have left:
  // looking costs them less than taking does.
  void take(size_t worker, skua_task task, void* arg) {
    for (size_t s = 0; s < workers; ++s) {
      Seat& seat = seats[(worker + s) % workers];
      const size_t end = seat.end;
      while (seat.next.load(std::memory_order_relaxed) < end) {
        const size_t i = seat.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= end) break;
        task(arg, i, uint32_t(worker));
      }
    }
  }

  void work(size_t worker) {
    Seat& seat = seats[worker];
    for (uint32_t seen = 0;;) {
      for (int spin = 0; spin < 20000 && !parked.load(std::memory_order_relaxed) &&
                         seat.state.load(std::memory_order_relaxed) == seen;
           ++spin) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
      seat.state.wait(seen, std::memory_order_relaxed);
      seen = seat.state.load(std::memory_order_acquire);
      // It enters only a run that is still open: one that came late must not touch the next one's tasks. (What it finds
      // instead may be the call to the next run: `seen` stays as it was.)
      uint32_t called = seen;
      if (seen % 4 != kCalled ||
          !seat.state.compare_exchange_strong(called, seen - kCalled + kEntered, std::memory_order_acq_rel))
        continue;
      seen = seen - kCalled + kEntered;
      take(worker, seat.task, seat.arg);
      seat.done.store(seen / 4, std::memory_order_release);
    }
  }

  void run(size_t n, skua_task task, void* arg) {
    number = (number + 1) % (1u << 30);
    if (parked.load(std::memory_order_relaxed)) parked.store(false, std::memory_order_relaxed);
    for (size_t w = workers; w-- > 0;) {
      Seat& seat = seats[w];
      seat.next.store(n * w / workers, std::memory_order_relaxed);
      seat.end = n * (w + 1) / workers;
      seat.task = task, seat.arg = arg;
    }
    for (size_t w = 1; w < workers; ++w) {
      // sequentially consistent: before notify_one() looks whether someone sleeps
      seats[w].state.store(4 * number + kCalled);
      seats[w].state.notify_one();
    }
    take(0, task, arg);
    for (size_t w = 1; w < workers; ++w) {
      uint32_t called = 4 * number + kCalled;
      if (!seats[w].state.compare_exchange_strong(called, 4 * number + kClosed, std::memory_order_acq_rel))
        while (seats[w].done.load(std::memory_order_acquire) != number) {}
    }
  }
};

}  // namespace

const skua_executor* executor() {
  if (effort.threads <= 1) return nullptr;
  static std::map<int, skua_executor> all;  // pools live until the program ends: so do their threads
  skua_executor& made = all[effort.threads];
  if (!made.ctx) {
    made.ctx = new Pool(size_t(effort.threads));
    made.concurrency = uint32_t(effort.threads);
    made.parallel_for = [](void* ctx, size_t count, skua_task task, void* arg) {
      static_cast<Pool*>(ctx)->run(count, task, arg);
    };
  }
  return &made;
}

void park_executor() {
  if (const skua_executor* e = executor()) static_cast<Pool*>(e->ctx)->parked.store(true, std::memory_order_relaxed);
}

Timing statistics(std::vector<double> s) {
  Timing t;
  if (s.empty()) return t;
  std::sort(s.begin(), s.end());
  const auto at = [&](double q) {
    const double p = q * double(s.size() - 1);
    const size_t i = size_t(p);
    return s[i] + (i + 1 < s.size() ? (p - double(i)) * (s[i + 1] - s[i]) : 0);
  };
  t.ns = at(0.5);
  t.best = s[0];
  t.noise = t.ns > 0 ? (at(0.75) - at(0.25)) / 2 / t.ns : 0;
  t.samples = s.size();
  return t;
}

static cpu_set_t unpinned;  // every core the program could use when it began; empty: pin_to_core() was not called

void begin_turn(Contestant* who) {
  if (!who || effort.threads < 2) return;
  who->wake();
  cpu_set_t mine, others = unpinned;
  DIR* tasks = opendir("/proc/self/task");
  if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == 1 && CPU_COUNT(&others) > 1) {
    CPU_XOR(&others, &others, &mine);
    while (const dirent* entry = tasks ? readdir(tasks) : nullptr)
      if (const int id = atoi(entry->d_name); id > 0 && id != getpid()) sched_setaffinity(id, sizeof others, &others);
  }
  if (tasks) closedir(tasks);
}

// Instructions started in a nanosecond: `nop`s need nothing else. One copy of the loop: where it lies makes a seventh.
[[gnu::noinline, gnu::aligned(64)]] static double nop_rate() {
  const double start = thread_ns();
  for (int i = 0; i < 4000; ++i)
    asm volatile("nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop");
  return 96000 / std::max(thread_ns() - start, 1.0);
}
// Whether the core starts as many instructions as it ever did.
static bool alone_on_core() {
  static double most = 0;
  if (most == 0)
    for (int i = 0; i < 2000; ++i) most = std::max(most, nop_rate());
  nop_rate();  // the first after other work has to fetch the loop: a fifth slower
  const double now = nop_rate();
  most = std::max(most, now);
  return now > 0.94 * most;
}

// A cache line's way to another worker's core and back, ns: the mean of 32, of eight such the shortest, or of fewer
// where they take a millisecond. -1: workers share cores.
static double line_round_trip() {
  const skua_executor* e = executor();
  if (!e || effort.threads > permitted_cores()) return -1;
  struct Line {
    alignas(64) std::atomic<uint32_t> at{0};  // even: the first task's turn
    alignas(64) double ns = 0;
  } line;
  constexpr uint32_t kTrips = 256, kMean = 32, kOver = UINT32_MAX;
  // Each task waits for the other, so two workers have them.
  e->parallel_for(e->ctx, 2, [](void* arg, size_t i, uint32_t) {
    Line& line = *static_cast<Line*>(arg);
    double start = 0, began = 0;
    for (uint32_t trip = 0; trip <= kTrips; ++trip) {
      for (uint32_t at; (at = line.at.load(std::memory_order_acquire)) != 2 * trip + i;)
        if (at == kOver) return;
      if (i == 0 && trip % kMean == 0) {
        const double now = now_ns(), mean = (now - start) / kMean;
        if (!trip) began = now;
        else if (line.ns == 0 || mean < line.ns) line.ns = mean;
        if (now > began + 1e6) return line.at.store(kOver, std::memory_order_release);
        start = now;
      }
      line.at.exchange(2 * trip + uint32_t(i) + 1);  // leaves the core sooner than a store
    }
  }, &line);
  park_executor();  // else the worker spins beside who comes next
  return line.ns;
}

void end_turn(Contestant* who) {
  if (who && effort.threads > 1) who->park();
}

std::vector<Timing> race(const std::vector<Racer>& racers, double budget_factor) {
  const size_t n = racers.size();
  std::vector<size_t> calls(n, 1);
  std::vector<std::vector<double>> samples(n);
  double round_ns = 0;
  bool by_device = false;
  std::vector<int> leads(n);  // calls outside of the time that come first
  const auto sample = [&](size_t i) {
    begin_turn(racers[i].who);
    for (int c = 0; c < leads[i]; ++c) racers[i].run();
    double ns = racers[i].device_ns ? racers[i].device_ns(calls[i]) * double(calls[i]) : -1;
    by_device = by_device || ns >= 0;
    if (ns < 0) {
      const double start = busy_ns();
      for (size_t c = 0; c < calls[i]; ++c) racers[i].run();
      ns = busy_ns() - start;
    }
    end_turn(racers[i].who);
    return ns;
  };
  for (size_t i = 0; i < n; ++i) {
    sample(i);  // first touch of memory
    double ns = sample(i);
    while (ns < effort.sample_ns) {
      calls[i] = std::max(calls[i] + 1,
                          size_t(double(calls[i]) * std::min(10.0, 1.15 * effort.sample_ns / std::max(ns, 1.0))));
      ns = sample(i);
    }
    // What it finds in the caches is then what it left itself, not what the contestant before it happened to end with.
    // Several calls: an L3 may keep only some lines of each pass.
    const double call_ns = ns / double(calls[i]);
    leads[i] = calls[i] > 1 || ns < 5 * effort.sample_ns ? std::clamp(int(5 * effort.sample_ns / call_ns), 1, 8) : 0;
    round_ns += ns + leads[i] * call_ns;
  }
  const double budget = effort.contestant_ns * double(n) * budget_factor;
  const int rounds = std::clamp(int(budget / std::max(round_ns, 1.0)), effort.min_rounds, effort.max_rounds);
  const bool looks = effort.threads == 1 && !by_device;
  const double trip_before = by_device ? -1 : line_round_trip();
  std::vector<bool> alone;
  for (int round = 0, tries = 0; round < rounds && tries < 2 * rounds; ++tries) {
    const long before = preemptions();
    std::vector<double> ns(n);
    bool free = looks && alone_on_core();
    // Every order in turn: what a shared L3 still holds of the layer depends on who came before, and is less behind the
    // gap between rounds.
    for (size_t j = 0; j < n; ++j) {
      const size_t turn = size_t(tries), i = (turn / 2 + (turn % 2 ? n - j : j)) % n;
      ns[i] = sample(i);
      free = free && alone_on_core();
    }
    if (preemptions() != before && tries < 2 * rounds - (rounds - round)) continue;
    for (size_t i = 0; i < n; ++i) samples[i].push_back(ns[i] / double(calls[i]));
    alone.push_back(free);
    ++round;
  }
  const double trip = by_device ? -1 : std::max(trip_before, line_round_trip());
  const auto quiet = std::count(alone.begin(), alone.end(), true);
  std::vector<Timing> result;
  for (auto& s : samples) {
    if (3 * quiet >= rounds) {
      size_t kept = 0;
      for (size_t i = 0; i < s.size(); ++i)
        if (alone[i]) s[kept++] = s[i];
      s.resize(kept);
    }
    result.push_back(statistics(s));
    if (looks) result.back().alone = double(quiet) / double(rounds);
    result.back().line_ns = trip;
  }
  return result;
}

void unpin() {
  if (CPU_COUNT(&unpinned)) sched_setaffinity(0, sizeof unpinned, &unpinned);
}

int permitted_cores() {
  cpu_set_t allowed = unpinned;
  return CPU_COUNT(&allowed) || sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

int pin_to_core(int core) {
  unpin();
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  if (core < 0) {
    long fastest = -1;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &allowed)) continue;
      long khz = 0;
      const std::string path = "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/cpufreq/cpuinfo_max_freq";
      if (FILE* f = fopen(path.c_str(), "r")) {
        if (fscanf(f, "%ld", &khz) != 1) khz = 0;
        fclose(f);
      }
      if (khz >= fastest) fastest = khz, core = i;
    }
  }
  if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) return -1;
  if (!CPU_COUNT(&unpinned)) unpinned = allowed;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof one, &one) == 0 ? core : -1;
}

}  // namespace bench
