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
    {"cortex-a53", 0x41d03, Core::a53}, {nullptr, 0x51801, Core::a53},                                      // Kryo 2xx Silver
    {"cortex-a55", 0x41d05, Core::a55}, {nullptr, 0x51803, Core::a55}, {nullptr, 0x51805, Core::a55},  // Kryo 3xx, 4xx Silver
    {"cortex-a510", 0x41d46, Core::a55}, {"cortex-a520", 0x41d80, Core::a55},
};

#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
template <class Visit> void each_line(const char* path, Visit visit) {
  FILE* file = fopen(path, "re");
  if (!file) return;
  char line[256];
  while (fgets(line, sizeof line, file)) visit(line);
  fclose(file);
}

// MIDR_EL1 of every core that is awake.
size_t read_midrs(uint32_t* midr, size_t capacity) {
  size_t n = 0;
  for (long i = 0, cores = sysconf(_SC_NPROCESSORS_CONF); i < cores && n < capacity; ++i) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/regs/identification/midr_el1", i);
    each_line(path, [&](const char* line) { midr[n++] = uint32_t(strtoull(line, nullptr, 16)); });
  }
  if (n) return n;
  // Kernels before 4.7, 32-bit ones, and those that hide the above: implementer and part.
  uint32_t implementer = 0;
  each_line("/proc/cpuinfo", [&](const char* line) {
    const char* value = strchr(line, ':');
    if (!value) return;
    const auto number = uint32_t(strtoul(value + 1, nullptr, 0));
    if (!strncmp(line, "CPU implementer", 15)) implementer = number;
    if (!strncmp(line, "CPU part", 8) && n < capacity) midr[n++] = implementer << 24 | number << 4;
  });
#if defined(__aarch64__)
  if (!n && (getauxval(AT_HWCAP) >> 11 & 1)) {  // HWCAP_CPUID: the kernel reads it for us, of the core we happen to be on
    uint64_t here;
    __asm__("mrs %0, midr_el1" : "=r"(here));
    midr[n++] = uint32_t(here);
  }
#endif
  return n;
}
#endif

}  // namespace

Core core_of(uint32_t midr) {
  for (const Named& c : kCores)
    if (c.part == (midr >> 24 << 12 | (midr >> 4 & 0xfff))) return c.core;
  return Core::any;
}

Core core_of_all(const uint32_t* midr, size_t count) {
  Core all = count ? core_of(midr[0]) : Core::any;
  for (size_t i = 1; i < count; ++i) {
    const Core c = core_of(midr[i]);
    if (c == Core::any || all == Core::any) return Core::any;
    if (c != all) all = Core::a53;  // its loops lose less on an A55 than the other way round
  }
  return all;
}

bool core_named(const char* name, Core& core) {
  for (const Named& c : kCores)
    if (c.name && !strcmp(name, c.name)) {
      core = c.core;
      return true;
    }
  return false;
}

void list_cores(char* text, size_t size) {
  size_t n = 0;
  for (const Named& c : kCores)
    if (c.name && n < size) n += size_t(snprintf(text + n, size - n, "%s%s", n ? ", " : "", c.name));
}

Core detect_core() {
#if defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
  uint32_t midr[256];
  return core_of_all(midr, read_midrs(midr, sizeof midr / sizeof *midr));
#else
  return Core::any;
#endif
}

}  // namespace skua
