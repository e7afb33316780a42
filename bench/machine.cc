#include "machine.h"

#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>
#include <fstream>

#include "contestant.h"
#include "peak.h"
#include "timing.h"

#include "peak_tables.h"

namespace bench {

size_t peak_loops(const PeakLoops* out[], size_t capacity) {
  size_t count = 0;
  bool above = false;  // the cap; of f32 all are measured
  for (size_t i = 0; i < skua_isa_count(); ++i) {
    skua_isa_info info;
    if (skua_isa_at(i, &info) != SKUA_STATUS_OK || !info.detected) continue;
    for (const PeakLoops* loops : all_peak_loops)
      if (std::string(loops->isa) == info.name && count < capacity && (loops->read[0] || !above)) out[count++] = loops;
    above |= isa_cap == info.name;
  }
  return count;
}

namespace {

float* aligned(size_t floats) {
  void* p = nullptr;
  if (posix_memalign(&p, 4096, floats * sizeof(float)) != 0) return nullptr;
  std::fill_n(static_cast<float*>(p), floats, 1.0f);
  return static_cast<float*>(p);
}

// The shortest of several samples; of long ones, which other work on the machine always interrupts, the time the thread
// had a core.
double fastest(const std::function<void()>& f, int samples) {
  double best = 1e300;
  const double until = now_ns() + 400e6;
  for (int i = 0; i < samples || (i < 3 * samples && now_ns() < until); ++i) {
    const double start = now_ns(), busy = busy_ns();
    f();
    const double wall = now_ns() - start;
    best = std::min(best, wall > 5e6 ? busy_ns() - busy : wall);
  }
  return best;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

const std::string& Machine::isa_for(skua_dtype type) const {
  const Peak* best = nullptr;
  for (const Peak& p : peaks)
    if (p.type == type && type != SKUA_DTYPE_F32 && p.gflops > (best ? best->gflops : peak(isa))) best = &p;
  return best ? best->isa : isa;
}

double Machine::peak(const std::string& of, skua_dtype type) const {
  const auto find = [&](const std::string& set, skua_dtype in) {
    for (const Peak& p : peaks)
      if (p.isa == set && p.type == in) return p.gflops;
    return 0.0;
  };
  for (const double gflops : {find(of, type), find(of, SKUA_DTYPE_F32), find(isa, SKUA_DTYPE_F32)})
    if (gflops > 0) return gflops;
  return 0;
}

const Level* Machine::level_of(double bytes) const {
  for (const Level& l : levels)
    if (bytes <= double(l.capacity)) return &l;
  return levels.empty() ? nullptr : &levels.back();
}

double Machine::roofline_ns(const std::string& of, skua_dtype type, double flops, double bytes, int threads) const {
  const double rate = peak(of, type), compute = rate > 0 ? flops / rate : 0;
  const Level* level = level_of(bytes);
  const double traffic = level ? bytes / std::max(level->read, level->copy) : 0;
  return std::max(compute, traffic) / double(std::max(threads, 1));
}

Machine describe_machine() {
  Machine m;
  skua_device_info device;
  if (skua_device_list(&device, 1) >= 1) {
    m.cpu = device.name;
    m.features = device.features;
    m.cores = device.compute_units;
    for (int i = 0; i < 3; ++i) m.cache[i] = device.cache_bytes[i];
  }
  if (!m.cores) m.cores = size_t(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  skua_context* context = nullptr;
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  if (!isa_cap.empty()) options.max_isa = isa_cap.c_str();
  if (skua_context_create(&options, &context) == SKUA_STATUS_OK) m.isa = skua_context_isa(context);
  skua_context_destroy(context);
  if (getloadavg(&m.load, 1) != 1) m.load = 0;
  m.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  m.mhz = atof(first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").c_str()) / 1000;
  if (m.mhz <= 0) {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
      if (line.rfind("cpu MHz", 0) == 0) {
        m.mhz = atof(line.c_str() + line.find(':') + 1);
        break;
      }
  }
  return m;
}

void measure_machine(Machine& m, bool quick) {
  const PeakLoops* loops[32];
  const size_t count = peak_loops(loops, 32);
  const int samples = quick ? 25 : 100;
  m.peaks.clear();
  m.converts.clear();
  m.levels.clear();
  for (size_t i = 0; i < count; ++i) {
    loops[i]->multiply_add(100000);  // lets the clock settle
    double done = 0;
    const double ns = fastest([&] { done = loops[i]->multiply_add(20000); }, samples);
    const std::string isa = loops[i]->isa;
    m.peaks.push_back({isa, 2 * done / ns, skua_dtype(loops[i]->element)});
    static uint16_t halves[8192];
    for (int half = 0; half < 2 && loops[i]->read[0]; ++half) {
      const auto& convert = loops[i]->convert[half];
      const double widen = fastest([&] { for (int r = 0; r < 16; ++r) convert.widen(halves, 8192); }, samples);
      const double narrow = fastest([&] { for (int r = 0; r < 16; ++r) convert.narrow(halves, 8192); }, samples);
      m.converts.push_back(
          {isa, half ? SKUA_DTYPE_BF16 : SKUA_DTYPE_F16, 16 * sizeof halves / widen, 16 * sizeof halves / narrow});
    }
  }
  if (!count) return;
  const PeakLoops* best = loops[0];
  for (size_t i = 0; i < count; ++i)
    if (loops[i]->read[0] && m.isa == loops[i]->isa) best = loops[i];
  const size_t l1 = m.cache[0] ? m.cache[0] : 32 << 10, l2 = m.cache[1] ? m.cache[1] : 512 << 10, l3 = m.cache[2];
  const size_t memory = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
  m.levels.push_back({"L1", l1 / 2, l1, 0, 0});
  m.levels.push_back({"L2", l2 / 2, l2, 0, 0});
  if (l3 > l2) m.levels.push_back({"L3", std::min(l3 / 2, 4 * l2), l3, 0, 0});
  const size_t beyond = std::min(std::max<size_t>(64 << 20, 2 * std::max(l2, l3)), memory / 8);
  m.levels.push_back({"DRAM", std::min<size_t>(beyond, quick ? 512u << 20 : 1u << 30), SIZE_MAX, 0, 0});
  for (Level& level : m.levels) {
    const size_t floats = level.bytes / sizeof(float) / 256 * 256, half = floats / 256 * 128;
    float* x = aligned(floats);
    if (!x) continue;
    const size_t repeat = std::max<size_t>(1, (2u << 20) / level.bytes);
    const int tries = level.bytes > (64u << 20) ? 4 : samples;
    double read = 0;  // the faster way
    for (const auto way : best->read) {
      const double ns = fastest([&] { for (size_t r = 0; r < repeat; ++r) way(x, floats); }, tries);
      if (read == 0 || ns < read) read = ns;
    }
    const double copy = fastest([&] { for (size_t r = 0; r < repeat; ++r) best->copy(x, x + half, half); }, tries);
    level.read = double(repeat * floats) * 4 / read;
    level.copy = double(repeat * half) * 8 / copy;
    free(x);
  }
}

}  // namespace bench
