// What this core can do at most, measured. Every figure of the report is a share of one of these.
#pragma once
#include <string>
#include <vector>
#include "types.h"

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
  bool busy() const { return load > 0.5; }
  // of the system over the last minute, as the run began; above 0.5 its times are noisy
  double load = 0;
  double mhz = 0;                  // as the system states it; 0 = not known
  size_t cores = 0;
  int pinned = -1;
  size_t cache[3] = {};
  struct Peak {
    std::string isa;
    double gflops;
    skua_dtype type = SKUA_DTYPE_F32;  // of the factors; sums: f32 for f32 and bf16, f16 for f16, s32 for s8
  };
  std::vector<Peak> peaks;         // multiply-adds, 2 flops each, one core; lowest set first
  struct Convert {
    std::string isa;
    skua_dtype type;
    // GB/s of halves that are loaded as f32, and stored from it; in the first-level cache
    double widen, narrow;
  };
  std::vector<Convert> converts;
  std::vector<Level> levels;

  // The set in which products of this type are fastest: the one that adds the type, or, where there is none below the
  // cap or widening to f32 is faster than it, the highest of f32.
  const std::string& isa_for(skua_dtype type) const;
  // Of that set: in the type, or else in f32; of the highest where nothing of it is known.
  double peak(const std::string& of, skua_dtype type = SKUA_DTYPE_F32) const;
  // Shortest time in which one core (times `threads`) can do this work, ns.
  double roofline_ns(const std::string& isa, skua_dtype type, double flops, double bytes, int threads) const;
  const Level* level_of(double bytes) const;
};

// The description alone, and with the measurements (about a second).
Machine describe_machine();
void measure_machine(Machine& machine, bool quick);

}  // namespace bench
