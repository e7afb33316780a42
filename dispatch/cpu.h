// What this machine is: instruction sets found and vetoed, caches, and the few numbers of the cost model.
#pragma once
#include <stddef.h>
#include "dispatch/core.h"
#include "dispatch/isa.h"

namespace skua {

// Physical limits of one core, for cost models. Cycles and bytes per cycle.
struct Machine {
  double fma_ports;    // vector multiply-adds started per cycle
  double load_ports;   // vector loads per cycle
  double issue;        // instructions per cycle
  double fma_latency;  // cycles
  double l2_bytes, l3_bytes, memory_bytes;  // bytes per cycle that one core reads from each level
  // parts of L3, which is shared with others: data up to the first stay there, of data beyond the second nothing does
  double l3_own, l3_lost;
  double s16_lost;     // bytes of Winograd's weights of bytes of which nothing stays, where that is less
  // parts of memory read at once that give the most; where it is more than 1 the core fetches them ahead better than
  // prefetches do, with 2 those of one row in whole lines (up to 8 MB where it asks by pages)
  size_t streams;
  bool asks_by_pages;  // what few rows read beyond L2 comes faster where lines of several pages are asked for in turn
  double write_back;   // cycles for a line of L1 that was written, until L2 has it
  bool logic_apart;    // logic on vectors finds ports beside those of multiply-adds
  bool sapphire_rapids;  // what was measured on this chip and no number here stands for
  double fetch_near;   // bytes up to which what is asked for goes to L1, else to L2
  bool in_order;       // loads and multiplies take turns unless a kernel is tuned for the core
  double ghz;          // nominal, only to print rates
  size_t l1, l2, l3;   // bytes a core can use
};

constexpr int kCoreCount = 3;  // values of Core

// The cores of a chip, by the operating system's number. Threads move between them as they like.
struct Cores {
  static constexpr size_t kMost = 256;
  Core of[kMost];  // asleep, not known: any
  // the choice for a plan: an in-order core's kernels where every core is in order (they cost an out-of-order core a
  // fifth to a quarter of its rate), of both kinds those for the Cortex-A53
  Core all;
  bool mixed;      // of several kinds: a task takes the kernel of the core that it finds itself on (core/context.h)
  bool alike;      // all are known to be the same, as fast as each other; taken for granted on x86
};

struct Cpu {
  char name[96];
  char vendor[48];
  unsigned cores;
  IsaMask detected;  // by cpuinfo AND the operating system
  IsaMask vetoed;    // of those, switched off by the table of chips that lie
  size_t l1, l2, l3; // 0 = not known
  Cores kinds;
  bool fhm;          // f16 kernels may multiply halves to floats
};

const Cpu& cpu();                 // detected once, thread-safe
Machine machine_for(Isa isa);     // the core's limits when it runs that instruction set's kernels

Core core_here();                 // the kind of core that the caller runs on at this moment

// The environment's SKUA_CORE on x86, "zen3": choices by that chip's limits and caches. The instruction sets are the
// machine's all the same.
bool chip_named(const char* name);
const char* chip_name();  // of the one that choices are by; NULL: none of the names, taken as most are
void list_chips(char* text, size_t size);  // the names that there are, ", " before each

// dispatch/core.cc
Core core_of(uint32_t midr);                              // MIDR_EL1: implementer and part number
Cores cores_of(const uint32_t* midr, size_t count);       // 0: asleep
// the environment's SKUA_CORE: "cortex-a55"; "cortex-a55,any": of one core after the other, the last of all that follow
bool cores_named(const char* names, Cores& cores);
void list_cores(char* text, size_t size);                 // the names that there are
Cores detect_cores();

// dispatch/core.cc: what Arm cores can do beyond the baseline. Linux tells a process by the auxiliary vector, whose
// bits differ between AArch64 and AArch32; not all of its cores may keep the promise.
// FHM: halves multiplied to floats
enum : uint8_t { kArmSimd = 1, kArmFp16 = 2, kArmDot = 4, kArmI8mm = 8, kArmBf16 = 16, kArmFhm = 32 };
uint8_t arm_features(bool aarch64, uint64_t hwcap, uint64_t hwcap2);  // AT_HWCAP, AT_HWCAP2
// what must not be used with these cores, whatever is reported
uint8_t arm_vetoes(const uint32_t* midr, size_t count);
// MIDR_EL1 of every core, 0 of one that is asleep; 0 = not known
size_t read_midrs(uint32_t* midr, size_t capacity);

}  // namespace skua
