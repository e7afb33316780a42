#include "dispatch/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <unistd.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace skua {
namespace {

struct Named {
  const char* name;  // NULL: a vendor's name for the core above
  uint32_t part;     // implementer << 12 | part number
  Core core;
};
constexpr Named kCores[] = {
    {"any", 0, Core::any},
    {"cortex-a34", 0x41d02, Core::a53}, {"cortex-a35", 0x41d04, Core::a53},
    // Kryo 2xx Silver
    {"cortex-a53", 0x41d03, Core::a53}, {nullptr, 0x51801, Core::a53},
    // Kryo 3xx, 4xx Silver
    {"cortex-a55", 0x41d05, Core::a55}, {nullptr, 0x51803, Core::a55}, {nullptr, 0x51805, Core::a55},
    {"cortex-a510", 0x41d46, Core::a55}, {"cortex-a520", 0x41d80, Core::a55},
};

// Cores that lack, or get wrong, what the process is told it has.
struct Liar {
  uint32_t part, first, last;  // variant << 4 | revision: r0p0 is 0, r1p1 0x11
  uint8_t lacks;               // kArm bits
};
constexpr Liar kLiars[] = {
    // Exynos 9810: M3 cores of ARMv8.0 beside A55 of ARMv8.2, and a kernel before Android 9 that reports what the A55
    // have (cpuinfo, src/arm/linux/aarch64-isa.c; LLVM review D114523).
    {0x53002, 0x00, 0xff, kArmFp16 | kArmDot | kArmI8mm | kArmBf16},
    // Erratum 2658417: pairs of A510 up to r1p1 that share a vector unit may compute BFMMLA wrongly; Linux hides BF16
    // since 6.0 (arch/arm64/Kconfig). A part of r1p1 is mended, which only the kernel can read.
    {0x41d46, 0x00, 0x11, kArmBf16},
    // No dot product before A55 r1p0 and A75 r2p0; chips that mix revisions die of it now and then (cpuinfo,
    // src/arm/linux/aarch32-isa.c: SC9863A, T310, UMS312).
    {0x41d05, 0x00, 0x0f, kArmDot},
    {0x41d0a, 0x00, 0x1f, kArmDot},
};

uint32_t part_of(uint32_t midr) { return midr >> 24 << 12 | (midr >> 4 & 0xfff); }

Cores summed_up(Cores cores, const bool (&found)[kCoreCount]) {
  const bool any = found[int(Core::any)], a53 = found[int(Core::a53)], a55 = found[int(Core::a55)];
  // the A53's loops lose less on an A55 than the other way round
  cores.all = any || !(a53 || a55) ? Core::any : a53 ? Core::a53 : Core::a55;
  cores.mixed = any + a53 + a55 > 1;
  return cores;
}

#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
template <class Visit> void each_line(const char* path, Visit visit) {
  FILE* file = fopen(path, "re");
  if (!file) return;
  char line[256];
  while (fgets(line, sizeof line, file)) visit(line);
  fclose(file);
}

}  // namespace

size_t read_midrs(uint32_t* midr, size_t capacity) {
  size_t n = 0;
  memset(midr, 0, capacity * sizeof *midr);
  const long cores = sysconf(_SC_NPROCESSORS_CONF);
  for (size_t i = 0; long(i) < cores && i < capacity; ++i) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/regs/identification/midr_el1", i);
    each_line(path, [&](const char* line) { midr[i] = uint32_t(strtoull(line, nullptr, 16)), n = i + 1; });
  }
  if (n) return n;
  // Kernels before 4.7, 32-bit ones, and those that hide the above: implementer and part.
  uint32_t above = 0;
  size_t at = 0;
  each_line("/proc/cpuinfo", [&](const char* line) {
    const char* value = strchr(line, ':');
    if (!value) return;
    const auto number = uint32_t(strtoul(value + 1, nullptr, 0));
    if (!strncmp(line, "processor", 9)) at = number;
    if (!strncmp(line, "CPU implementer", 15)) above = number << 24;
    if (!strncmp(line, "CPU variant", 11)) above |= number << 20;
    if (!strncmp(line, "CPU part", 8) && at < capacity) midr[at] = above | number << 4, n = ++at;
    if (!strncmp(line, "CPU revision", 12) && n) midr[n - 1] |= number & 15;
  });
#if defined(__aarch64__)
  // HWCAP_CPUID: the kernel reads it for us, of the core we happen to be on
  if (!n && (getauxval(AT_HWCAP) >> 11 & 1)) {
    uint64_t here;
    __asm__("mrs %0, midr_el1" : "=r"(here));
    midr[n++] = uint32_t(here);
  }
#endif
  return n;
}
#else
}  // namespace

size_t read_midrs(uint32_t*, size_t) { return 0; }
#endif

uint8_t arm_features(bool aarch64, uint64_t hwcap, uint64_t hwcap2) {
  const auto has = [](uint64_t word, uint64_t bits) { return (word & bits) == bits; };
  uint8_t features = 0;
  if (aarch64) {
    features |= kArmSimd;                                          // part of the architecture's baseline
    if (has(hwcap, 3u << 9)) features |= kArmFp16;                 // FPHP, ASIMDHP
    if (has(hwcap, 3u << 9 | 1u << 23)) features |= kArmFhm;       // ASIMDFHM
    if (has(hwcap, 1u << 20)) features |= kArmDot;                 // ASIMDDP
    if (has(hwcap2, 1u << 13)) features |= kArmI8mm;               // HWCAP2: I8MM
    if (has(hwcap2, 1u << 14)) features |= kArmBf16;               // HWCAP2: BF16
  } else if (has(hwcap, 1u << 12 | 1u << 16)) {                    // NEON, VFPv4
    features |= kArmSimd;
    if (has(hwcap, 3u << 22)) features |= kArmFp16;                // FPHP, ASIMDHP
    if (has(hwcap, 3u << 22 | 1u << 25)) features |= kArmFhm;      // ASIMDFHM
    if (has(hwcap, 1u << 24)) features |= kArmDot;                 // ASIMDDP
    if (has(hwcap, 1u << 26)) features |= kArmBf16;                // ASIMDBF16
    if (has(hwcap, 1u << 27)) features |= kArmI8mm;                // I8MM
  }
  return features;
}

uint8_t arm_vetoes(const uint32_t* midr, size_t count) {
  uint8_t vetoes = 0;
  for (size_t i = 0; i < count; ++i)
    for (const Liar& l : kLiars) {
      const uint32_t version = (midr[i] >> 16 & 0xf0) | (midr[i] & 15);
      if (l.part == part_of(midr[i]) && version >= l.first && version <= l.last) vetoes |= l.lacks;
    }
  return vetoes;
}

Core core_of(uint32_t midr) {
  for (const Named& c : kCores)
    if (c.part == part_of(midr)) return c.core;
  return Core::any;
}

Cores cores_of(const uint32_t* midr, size_t count) {
  Cores cores = {};
  bool found[kCoreCount] = {};
  for (size_t i = 0; i < count && i < Cores::kMost; ++i) {
    cores.of[i] = core_of(midr[i]);
    if (midr[i]) found[int(cores.of[i])] = true;
  }
  cores.alike = count ? midr[0] != 0 : kArch == Arch::x86_64;
  for (size_t i = 1; i < count; ++i) cores.alike = cores.alike && part_of(midr[i]) == part_of(midr[0]);
  return summed_up(cores, found);
}

bool cores_named(const char* names, Cores& cores) {
  cores = {};
  bool found[kCoreCount] = {};
  for (size_t i = 0; i < Cores::kMost; ++i) {
    const size_t length = strcspn(names, ",");
    const Named* named = nullptr;
    for (const Named& c : kCores)
      if (c.name && strlen(c.name) == length && !memcmp(names, c.name, length)) named = &c;
    if (!named) return false;
    cores.of[i] = named->core;
    found[int(named->core)] = true;
    cores.alike = !i || (cores.alike && cores.of[i] == cores.of[0]);
    if (names[length]) names += length + 1;
  }
  cores = summed_up(cores, found);
  return true;
}

void list_cores(char* text, size_t size) {
  size_t n = 0;
  for (const Named& c : kCores)
    if (c.name && n < size) n += size_t(snprintf(text + n, size - n, "%s%s", n ? ", " : "", c.name));
}

Cores detect_cores() {
  uint32_t midr[Cores::kMost] = {};
  return cores_of(midr, read_midrs(midr, Cores::kMost));
}

}  // namespace skua
