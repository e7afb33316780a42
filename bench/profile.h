// Where the time of a layer goes. A sampler says in which functions the thread is (measured); the layer's sizes and the
// machine's peaks say what multiply-adds, memory and padding need at least (model); what is left over is the kernel's
// own.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>
#include "layer.h"
#include "machine.h"

namespace bench {

// copy: packing, strips, memcpy; driver: between kernels, plan_run; outside: not the library
enum class Where { kernel, transform, copy, driver, outside, count };

// Interrupts this thread every 100 us of its time and notes where it is: perf_event_open with a software clock, no
// hardware counters. The functions' names come from this program's own symbol table.
class Sampler {
 public:
  Sampler();
  ~Sampler();
  Sampler(const Sampler&) = delete;
  bool works() const { return ring_ != nullptr; }
  void start();
  void stop();
  void drain(const std::function<void(Where)>& sample);  // what has come since the last call

 private:
  Where where(size_t address);
  void read_symbols();
  struct Symbol {
    size_t begin, end;
    std::string name;
  };
  int fd_ = -1;
  char* ring_ = nullptr;
  std::vector<Symbol> symbols_;
  std::map<size_t, Where> known_;
};

// Shares of a layer's time; they sum to 1. Negative: not known, and then part of `kernel`.
struct Loss {
  double compute = 0;                              // model: the multiply-adds that the algorithm needs, at peak
  // model: moving the operands once from the levels they are in takes so much longer than that
  double bandwidth = 0;
  // model: columns and channels filled up to vectors, tiles of fewer rows than the kernel's, clipped Winograd tiles
  double edge = 0;
  double copy = -1, transform = -1, driver = -1;   // measured
  double kernel = 0;                               // the rest: what the inner loops lose to latency, ports, misses
  size_t samples = 0;
};
// weights: bytes of all weights of the network, which decide the level that this layer's come from.
Loss split_time(const Machine& machine, const std::string& isa, const Layer& layer, const std::string& algorithm,
                const std::string& kernel, double ns, double weights, const size_t samples[int(Where::count)]);

}  // namespace bench
