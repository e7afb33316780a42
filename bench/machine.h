// What this core can do at most, measured. Every figure of the report is a share of one of these.
#pragma once
#include <string>
#include <vector>

namespace bench {

struct Level {
  const char* name;   // "L1", "L2", "L3", "DRAM"
  size_t bytes;       // of the memory read
  size_t capacity;    // of the level; SIZE_MAX for DRAM
  double read, copy;  // GB/s; copy counts what is read and what is written
};

struct Machine {
  std::string cpu, features, isa;  // isa: the highest one the library uses here
  std::string governor;
  double mhz = 0;                  // as the system states it; 0 = not known
  size_t cores = 0;
  int pinned = -1;
  size_t cache[3] = {};
  struct Peak {
    std::string isa;
    double gflops;
  };
  std::vector<Peak> peaks;         // f32 multiply-adds, 2 flops each, one core
  std::vector<Level> levels;

  double peak(const std::string& isa) const;  // of that set, or of the highest
  // Shortest time in which one core (times `threads`) can do this work, ns.
  double roofline_ns(const std::string& isa, double flops, double bytes, int threads) const;
  const Level* level_of(double bytes) const;
};

// The description alone, and with the measurements (about a second).
Machine describe_machine();
void measure_machine(Machine& machine, bool quick);

}  // namespace bench
