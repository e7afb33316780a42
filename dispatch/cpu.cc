#include "dispatch/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#ifdef SKUA_HAVE_CPUINFO
#include <cpuinfo.h>
#endif

namespace skua {
namespace {

void copy_text(char* to, size_t size, const char* from) {
  size_t n = strlen(from);
  if (n >= size) n = size - 1;
  memcpy(to, from, n);
  to[n] = 0;
}

// What the processor (CPUID) and the operating system (XCR0, HWCAP) say, without help from any library. An unknown CPU
// gets the baseline.
#if defined(__x86_64__)
struct CpuId {
  unsigned family, model;
  bool intel, amd, hybrid;
};

uint64_t xcr0() {
  uint32_t a, d;
  __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return uint64_t(d) << 32 | a;
}

// Linux gives a process the tile registers where it asks for them, once and for all of its threads.
bool tiles_allowed() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return (xcr0() >> 17 & 3) == 3 && !syscall(SYS_arch_prctl, kRequestPermission, kTileData);
#else
  return false;
#endif
}

IsaMask detect_own(Cpu& out, CpuId& id) {
  unsigned a, b, c, d;
  IsaMask mask = isa_bit(Isa::scalar) | isa_bit(Isa::sse2);
  if (!__get_cpuid(0, &a, &b, &c, &d)) return mask;
  char vendor[13] = {};
  memcpy(vendor, &b, 4); memcpy(vendor + 4, &d, 4); memcpy(vendor + 8, &c, 4);
  copy_text(out.vendor, sizeof out.vendor, vendor);
  id.intel = !strcmp(vendor, "GenuineIntel");
  id.amd = !strcmp(vendor, "AuthenticAMD");
  if (!__get_cpuid(1, &a, &b, &c, &d)) return mask;
  id.family = (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0);
  id.model = (a >> 4 & 15) | (a >> 12 & 0xf0);
  if (c >> 19 & 1) mask |= isa_bit(Isa::sse41);
  const bool osxsave = c >> 27 & 1, avx = c >> 28 & 1, fma = c >> 12 & 1, f16c = c >> 29 & 1;
  unsigned a7 = 0, b7 = 0, c7 = 0, d7 = 0;
  __get_cpuid_count(7, 0, &a7, &b7, &c7, &d7);
  id.hybrid = d7 >> 15 & 1;
  if (osxsave && avx && fma && f16c && (b7 >> 5 & 1) && (xcr0() & 6) == 6) {
    mask |= isa_bit(Isa::avx2);
    unsigned a71 = 0, b71 = 0, c71 = 0, d71 = 0;
    __get_cpuid_count(7, 1, &a71, &b71, &c71, &d71);
    if (a71 >> 4 & 1) mask |= isa_bit(Isa::avxvnni);
    const bool f = b7 >> 16 & 1, dq = b7 >> 17 & 1, bw = b7 >> 30 & 1, vl = b7 >> 31 & 1;
    if (f && dq && bw && vl && (xcr0() & 0xe6) == 0xe6) {
      mask |= isa_bit(Isa::avx512);
      if (c7 >> 11 & 1) mask |= isa_bit(Isa::avx512vnni);
      if ((c7 >> 11 & 1) && (c7 >> 1 & 1)) mask |= isa_bit(Isa::avx512vbmi);
      if (a71 >> 5 & 1) mask |= isa_bit(Isa::avx512bf16);
      if (d7 >> 23 & 1) mask |= isa_bit(Isa::avx512fp16);
      const bool tiles = d7 >> 24 & 1, of_bytes = d7 >> 25 & 1 && (c7 >> 11 & 1),
                 of_bf16 = d7 >> 22 & 1 && (a71 >> 5 & 1);
      if (tiles && (of_bytes || of_bf16) && tiles_allowed())
        mask |= (of_bytes ? isa_bit(Isa::amx_int8) : 0) | (of_bf16 ? isa_bit(Isa::amx_bf16) : 0);
    }
  }
  unsigned brand[12] = {};
  for (unsigned i = 0; i < 3; ++i)
    if (!__get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2], &brand[4 * i + 3])) break;
  char text[49] = {};
  memcpy(text, brand, 48);
  copy_text(out.name, sizeof out.name, text[0] ? text + strspn(text, " ") : "unknown x86-64 CPU");
  // Deterministic cache parameters: leaf 4 (Intel), 0x8000001d (AMD).
  const unsigned leaf = id.amd ? 0x8000001d : 4;
  for (unsigned i = 0; i < 8 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31); ++i) {
    const unsigned type = a & 31, level = a >> 5 & 7;
    const size_t bytes = size_t((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * (size_t(c) + 1);
    if (type == 2) continue;  // instructions
    if (level == 1) out.l1 = bytes;
    if (level == 2) out.l2 = bytes;
    if (level == 3) out.l3 = bytes;
  }
  return mask;
}
#else
struct CpuId {
  uint8_t vetoes;  // of arm_vetoes()
};

#if defined(__aarch64__) || defined(__arm__)
// What an instruction set needs of all cores.
constexpr struct {
  Isa isa;
  uint8_t needs;
} kArmSets[] = {
#if defined(__aarch64__)
    {Isa::neon, kArmSimd}, {Isa::neon_dot, kArmDot}, {Isa::neon_fp16, kArmFp16}, {Isa::neon_bf16, kArmBf16},
    {Isa::neon_i8mm, kArmDot | kArmI8mm},
#else
    {Isa::neon32, kArmSimd}, {Isa::neon32_dot, kArmDot}, {Isa::neon32_fp16, kArmFp16},
#endif
};
#endif

IsaMask detect_own(Cpu& out, CpuId& id) {
  IsaMask mask = isa_bit(Isa::scalar);
#if defined(__aarch64__) || defined(__arm__)
  const bool aarch64 = sizeof(void*) == 8;
  copy_text(out.name, sizeof out.name, aarch64 ? "AArch64 CPU" : "AArch32 CPU");
  copy_text(out.vendor, sizeof out.vendor, "Arm");
  uint64_t hwcap = 0, hwcap2 = 0;
#if defined(__linux__)
  hwcap = getauxval(AT_HWCAP);
  hwcap2 = getauxval(AT_HWCAP2);
#endif
  const uint8_t features = arm_features(aarch64, hwcap, hwcap2);
  for (const auto& set : kArmSets)
    if ((features & set.needs) == set.needs) mask |= isa_bit(set.isa);
  uint32_t midr[Cores::kMost] = {};
  id.vetoes = arm_vetoes(midr, read_midrs(midr, Cores::kMost));
  out.fhm = (features & kArmFhm) && !(id.vetoes & kArmFp16);
#endif
  return mask;
}
#endif

#ifdef SKUA_HAVE_CPUINFO
// Arithmetic in half types is left to the operating system's word, on AArch64 unless cpuinfo, which knows chips by name
// too, has it otherwise.
IsaMask detect_cpuinfo(Cpu& out) {
  IsaMask mask = isa_bit(Isa::scalar);
  for (int i = 0; i < kIsaCount; ++i)
    if (kIsas[i].type != Element::f32) mask |= isa_bit(Isa(i));
#if defined(__x86_64__)
  mask |= isa_bit(Isa::sse2);
  if (cpuinfo_has_x86_sse4_1()) mask |= isa_bit(Isa::sse41);
  if (cpuinfo_has_x86_avx2() && cpuinfo_has_x86_fma3() && cpuinfo_has_x86_f16c()) mask |= isa_bit(Isa::avx2);
  if (cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512bw() && cpuinfo_has_x86_avx512dq() &&
      cpuinfo_has_x86_avx512vl())
    mask |= isa_bit(Isa::avx512);
#elif defined(__aarch64__)
  mask |= isa_bit(Isa::neon);
  if (!cpuinfo_has_arm_neon_fp16_arith()) mask &= ~isa_bit(Isa::neon_fp16);
#elif defined(__arm__)
  if (cpuinfo_has_arm_neon() && cpuinfo_has_arm_neon_fma()) mask |= isa_bit(Isa::neon32);
#endif
  out.cores = cpuinfo_get_cores_count();
  if (const cpuinfo_package* p = cpuinfo_get_package(0); p && p->name[0]) copy_text(out.name, sizeof out.name, p->name);
  if (const cpuinfo_cache* c = cpuinfo_get_l1d_cache(0)) out.l1 = c->size;
  if (const cpuinfo_cache* c = cpuinfo_get_l2_cache(0)) out.l2 = c->size;
  if (const cpuinfo_cache* c = cpuinfo_get_l3_cache(0)) out.l3 = c->size;
  return mask;
}
#endif

// Instruction sets that the chip reports and not all of its cores can execute, or execute rightly.
IsaMask vetoes_of(const CpuId& id) {
  IsaMask mask = 0;
#if defined(__x86_64__)
  // A thread may move to a core without AVX-512.
  if (id.intel && id.hybrid)
    mask = isa_bit(Isa::avx512) | isa_bit(Isa::avx512vnni) | isa_bit(Isa::avx512vbmi) | isa_bit(Isa::avx512bf16) |
           isa_bit(Isa::avx512fp16) | isa_bit(Isa::amx_bf16) | isa_bit(Isa::amx_int8);
#elif defined(__aarch64__) || defined(__arm__)
  for (const auto& set : kArmSets)
    if (set.needs & id.vetoes) mask |= isa_bit(set.isa);
#endif
  return mask;
}

// What the caches of a chip give a core, and what its core does beside multiply-adds of 256 bits: see Machine. Measured
// where there is a name (docs/cores.md), else supposed.
struct Chip {
  const char* name = nullptr;
  double l2_bytes = 32, l3_bytes = 12, memory_bytes = 5;
  double l3_own = 0.4, l3_lost = 0.75;
  double s16_lost = 1e300;
  size_t streams = 1;
  bool asks_by_pages = false;
  double write_back = 5;
  bool logic_apart = false, sapphire_rapids = false;
  double fetch_near = 0;
  double avx512_ports = 2, bf16_ports = 0.5;  // multiply-adds of 512 bits in a cycle; vdpbf16ps
  size_t l1 = 0, l2 = 0, l3 = 0;              // KiB, where SKUA_CORE names it
};
constexpr Chip kAnyChip = {};
#if defined(__x86_64__)
// Zen's L3 belongs to a few cores and hands each of them most of a line in two cycles. Four pipes for logic,
// multiply-adds on two of them; of 512 bits one, as two halves, before Zen 5.
constexpr Chip kAnyZen = {.l3_bytes = 24, .memory_bytes = 8, .write_back = 1, .logic_apart = true,
                          .avx512_ports = 1, .bf16_ports = 1};
constexpr Chip kNamed[] = {
    // An L3 that takes twice as long as Zen's: more lines are on their way to L2 than to L1. L2 is copied at 80 GB/s
    // and read at 125 to 170.
    // Dozens of cores share its L3: a network finds what it left there in memory. (Winograd's weights of bytes: by the
    // direct form or smaller tiles ResNet-18 takes 2 to 6% less, ResNet-50 2 to 4%, GoogLeNet 1 to 2%; of floats, where
    // the direct form is four times as long, ResNet-18 takes 4% more so.)
    // One row of 1024x1024 floats in two streams that nothing asks for; two to four rows 0.8 to 0.95 of the time by
    // prefetches to L1; more, and all from memory, by pages. The L3 is that of 2024.
    {.name = "sapphire-rapids", .s16_lost = 5.2e6, .streams = 2, .asks_by_pages = true, .sapphire_rapids = true,
     .fetch_near = 8 << 20, .l1 = 48, .l2 = 2048, .l3 = 260 << 10},
    // 50 to 57 and 12 to 20 GB/s: one stream gives 18 (14 with prefetches), two 23, four 26. Winograd of 7x7x512 and
    // 14x14x256 by tiles of fewer points 1.2 to 1.4 times as fast; of a Zen 5 a loss.
    {.name = "zen3", .l3_bytes = 17, .memory_bytes = 4.5, .l3_own = 0.25, .l3_lost = 0.65, .streams = 4,
     .write_back = 1, .logic_apart = true, .avx512_ports = 1, .bf16_ports = 1, .l1 = 32, .l2 = 512, .l3 = 32 << 10},
    // An L3 of L2's speed once it streams, which strangers use as well: 12.6 MB of Winograd's weights of bytes
    // (7x7x512) 0.8 to 0.98 of the speed of 2.3 MB by the direct form.
    {.name = "zen4", .l3_bytes = 24, .memory_bytes = 8, .l3_own = 0.25, .l3_lost = 0.65, .streams = 4,
     .write_back = 1, .logic_apart = true, .avx512_ports = 1, .bf16_ports = 1, .l1 = 32, .l2 = 1024, .l3 = 32 << 10},
    // A path of a line a cycle to L2 (measured: 58, 30 and 10 to 14 bytes); two streams that nothing asks for ahead are
    // read up to a third faster from L3, a tenth from memory.
    {.name = "zen5", .l2_bytes = 56, .l3_bytes = 24, .memory_bytes = 8, .streams = 2,
     .write_back = 1, .logic_apart = true, .fetch_near = 1e300, .bf16_ports = 2, .l1 = 48, .l2 = 1024, .l3 = 32 << 10},
};
const Chip* chip_named_as(const char* name) {
  for (const Chip& c : kNamed)
    if (name && !strcmp(name, c.name)) return &c;
  return nullptr;
}
const Chip* chip_of(const CpuId& id, IsaMask isas, size_t l2) {
  // A hypervisor may say another model: 167, a desktop's, of one with AMX. FP16 and an L2 of that size tell.
  if (id.intel && id.family == 6 && !id.hybrid &&
      (id.model == 143 || id.model == 207 || ((isas & isa_bit(Isa::avx512fp16)) && l2 >= size_t(2) << 20)))
    return chip_named_as("sapphire-rapids");
  if (!id.amd || id.family < 0x17) return &kAnyChip;
  return id.family < 0x19 ? &kAnyZen
                          : chip_named_as(id.family > 0x19              ? "zen5"
                                          : isas & isa_bit(Isa::avx512) ? "zen4"
                                                                        : "zen3");
}
#else
const Chip* chip_named_as(const char*) { return nullptr; }
const Chip* chip_of(const CpuId&, IsaMask, size_t) { return &kAnyChip; }
#endif

struct Detection {
  Cpu cpu;
  const Chip* chip;
};

void detect(Detection& out) {
  CpuId id = {};
  Cpu& c = out.cpu;
  c.detected = detect_own(c, id);
#ifdef SKUA_HAVE_CPUINFO
  if (cpuinfo_initialize()) {
    c.detected &= detect_cpuinfo(c);
#if defined(__arm__)
    // Linux tells 32-bit processes since 6.3; before that cpuinfo's list of cores has to do.
    if ((c.detected & isa_bit(Isa::neon32)) && cpuinfo_has_arm_neon_fp16_arith())
      c.detected |= isa_bit(Isa::neon32_fp16);
#endif
  }
#endif
#if defined(__linux__)
  if (!c.cores) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    c.cores = n > 0 ? unsigned(n) : 1;
  }
#endif
  const char* core = getenv("SKUA_CORE");
  const Chip* named = chip_named_as(core);
  if (!core || !cores_named(core, c.kinds)) c.kinds = detect_cores();  // a context refuses another name
  c.vetoed = c.detected & vetoes_of(id);
  c.detected &= ~c.vetoed;
  out.chip = named ? named : chip_of(id, c.detected, c.l2);
  if (named) c.l1 = named->l1 << 10, c.l2 = named->l2 << 10, c.l3 = named->l3 << 10;
}

const Detection& detection() {
  static constinit Detection result = {};
  static int state;  // 0 not started, 1 running, 2 done
  if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2) return result;
  int expected = 0;
  if (__atomic_compare_exchange_n(&state, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    detect(result);
    __atomic_store_n(&state, 2, __ATOMIC_RELEASE);
  } else {
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2) {
#if defined(__linux__)
      usleep(50);
#endif
    }
  }
  return result;
}

}  // namespace

const Cpu& cpu() { return detection().cpu; }

bool chip_named(const char* name) { return chip_named_as(name); }
const char* chip_name() { return detection().chip->name; }
void list_chips([[maybe_unused]] char* text, [[maybe_unused]] size_t size) {
#if defined(__x86_64__)
  size_t n = 0;
  for (const Chip& c : kNamed)
    if (n < size) n += size_t(snprintf(text + n, size - n, ", %s", c.name));
#endif
}

Core core_here() {
  const Cores& kinds = cpu().kinds;
#if defined(__linux__)
  if (kinds.mixed)
    if (const int i = sched_getcpu(); i >= 0 && size_t(i) < Cores::kMost) return kinds.of[i];
#endif
  return kinds.all;
}

Machine machine_for(Isa isa) {
  const Detection& d = detection();
  const Chip& chip = *d.chip;
  Machine m = {};
  // Out-of-order cores of the last ten years: two vector multiply-adds and two loads a cycle, latency 4. SSE multiplies
  // and adds apart.
  m.fma_ports = 2; m.load_ports = 2; m.issue = 5; m.fma_latency = 4;
  m.l2_bytes = chip.l2_bytes;
  m.l3_bytes = chip.l3_bytes;
  m.memory_bytes = chip.memory_bytes;
  m.l3_own = chip.l3_own;
  m.l3_lost = chip.l3_lost;
  m.s16_lost = chip.s16_lost;
  m.streams = chip.streams;
  m.asks_by_pages = chip.asks_by_pages;
  m.write_back = chip.write_back;
  m.fetch_near = chip.fetch_near;
  m.ghz = 3;
  m.logic_apart = chip.logic_apart;
  m.sapphire_rapids = chip.sapphire_rapids;
  m.l1 = d.cpu.l1 ? d.cpu.l1 : 32 << 10;
  m.l2 = d.cpu.l2 ? d.cpu.l2 : 256 << 10;
  m.l3 = d.cpu.l3 ? d.cpu.l3 : m.l2;
  switch (isa) {
    case Isa::avx512:
    case Isa::avx512vnni:
    case Isa::avx512vbmi:
    case Isa::avx512fp16:
    case Isa::amx_bf16:
    case Isa::amx_int8: m.fma_ports = chip.avx512_ports; break;
    // at least, and measured
    case Isa::avx512bf16: m.fma_ports = chip.bf16_ports; m.fma_latency = chip.bf16_ports < 1 ? 8 : 6; break;
    // a multiply and an add each; sums wait for the add only, 3 cycles on some, 4 on others
    case Isa::sse2: case Isa::sse41: m.fma_ports = 1; m.fma_latency = 3.5; break;
    case Isa::scalar: m.fma_ports = 1; break;
    case Isa::neon:
    case Isa::neon_dot:
    case Isa::neon_i8mm:
    case Isa::neon_fp16:
    case Isa::neon_bf16:
      m.issue = 4;
      m.l2_bytes = 16;
      m.l3_bytes = 8;
      m.memory_bytes = 4;
      m.ghz = 2;
      break;
    case Isa::neon32:
    case Isa::neon32_dot:
    case Isa::neon32_fp16:
      m.in_order = true;
      m.fma_ports = 1;
      m.issue = 3;
      m.fma_latency = 8;
      m.l2_bytes = 8;
      m.l3_bytes = 8;
      m.memory_bytes = 3;
      m.ghz = 1.5;
      break;
    default: break;
  }
  if (d.cpu.kinds.all != Core::any) {
    m.in_order = true;
    m.fma_ports = m.load_ports = 1;
    m.issue = 2;
    m.l2_bytes = 8;
  }
  return m;
}

}  // namespace skua
