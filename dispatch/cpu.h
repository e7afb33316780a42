// What this machine is: instruction sets found and vetoed, caches, and the few numbers of the cost model.
#pragma once
#include <stddef.h>
#include "dispatch/isa.h"

namespace skua {

// Physical limits of one core, for cost models. Cycles and bytes per cycle.
struct Machine {
  double fma_ports;    // vector multiply-adds started per cycle
  double load_ports;   // vector loads per cycle
  double issue;        // instructions per cycle
  double fma_latency;  // cycles
  double l2_bytes, l3_bytes, memory_bytes;  // bytes per cycle that one core reads from each level
  double ghz;          // nominal, only to print rates
  size_t l1, l2, l3;   // bytes a core can use
};

struct Cpu {
  char name[96];
  char vendor[48];
  unsigned cores;
  IsaMask detected;  // by cpuinfo AND the operating system
  IsaMask vetoed;    // of those, switched off by the table of chips that lie
  size_t l1, l2, l3; // 0 = not known
};

const Cpu& cpu();                 // detected once, thread-safe
Machine machine_for(Isa isa);     // the core's limits when it runs that instruction set's kernels

}  // namespace skua
