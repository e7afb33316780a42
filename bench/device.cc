// --device: the layers and networks suites on a GPU, whose limits stand in for the machine's and whose peers are this
// library on the CPU and products by others. docs/benchmarks.md.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>

#include "device_side.h"
#include "session.h"

namespace bench {
namespace {

// Removed at the end: the cache file of programs.
struct TemporaryFile {
  char path[64] = "/tmp/skua-bench-XXXXXX";
  TemporaryFile() {
    const int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    unlink(path);  // no file yet: an empty one would be called damaged
  }
  ~TemporaryFile() { unlink(path); }
};

}  // namespace

void print_numerics() {
  if (bench_numerics != SKUA_NUMERICS_DEFAULT) printf("  numerics  %s\n", numerics_name(bench_numerics));
}

bool is_device_suite(const std::string& name) { return name == "layers" || name == "networks"; }

bool begin_device(Session& s) {
  if (!find_device(bench_device, &s.device)) {
    SkuaOptions how;
    how.device = bench_device;
    make_skua(how);  // says what is missing
    return false;
  }
  SkuaOptions how;
  how.device = bench_device;
  s.ours = make_skua(how);
  if (!s.ours) return false;
  how.tune = true;
  s.tuned = make_skua(how);
  effort.sample_ns = 1e6;  // a timestamp has its price
  s.machine = measure_device(*s.ours, s.device, s.options.quick);
  return true;
}

void print_device(const Session& s) {
  const Machine& m = s.machine;
  printf("skua %s on %s, %s, %zu compute units\n  driver    %s\n", skua_version_string(), m.cpu.c_str(), m.isa.c_str(),
         m.cores, s.device.driver);
  if (s.device.is_software) printf("  SOFTWARE  this device computes on the CPU: its times say nothing about GPUs\n");
  print_numerics();
  skua_device_info cpu;
  if (skua_device_list(&cpu, 1))
    printf("  cpu       %s, %d thread%s\n", cpu.name, s.options.threads[0], s.options.threads[0] > 1 ? "s" : "");
  for (const auto& p : s.peers) printf("  peer      %s %s\n", p->name(), p->version().c_str());
  for (const std::string& line : s.missing_peers) printf("  no peer   %s\n", line.c_str());
  printf("  peak      ");
  for (const auto& p : m.peaks) printf("%s %.1f  ", skua_dtype_name(p.type), p.gflops);
  printf("GFLOP/s (multiply-add)\n  copy      ");
  for (const Level& l : m.levels) printf("%s %.1f  ", l.name, l.copy);
  printf("GB/s (read and written)\n\n");
  fflush(stdout);
}

std::unique_ptr<Contestant> start_on_device(const Corpus& network, Result& r, std::string* why) {
  const TemporaryFile cache;
  SkuaOptions how;
  how.device = bench_device;
  how.program_cache = cache.path;
  if (const auto first = make_skua(how)) {
    const auto net = first->prepare_network(network, why);
    if (!net) return nullptr;
    r.cold = *net->start_up();
  }  // writes the file
  auto made = make_skua(how);
  if (!made) *why = skua_error_text();
  return made;
}

// Each layer's roundings are carried on by those behind it: as many steps of a random walk. Bytes are the CPU's.
double score_bound(const Corpus& c) {
  return c.type == SKUA_DTYPE_S8
             ? 0
             : (c.type == SKUA_DTYPE_F32 ? 64 : 8) * roundoff(c.type) * sqrt(double(c.steps.size()));
}

void print_device_network(const Session& s, const Result& r) {
  const auto ms = [](double ns) { return ns / 1e6; };
  if (r.warm.programs) printf("  %zu programs; ", r.warm.programs);
  printf("%.2f us on the host to record an operator", r.record_ns / 1e3);
  if (r.record_own_ns >= 0) printf(" (%.2f the library's, without backend and driver)", r.record_own_ns / 1e3);
  // not known without the CPU beside it
  r.distance >= 0 ? printf("; scores within %.2g of the CPU's\n", r.distance) : printf("\n");
  printf(
      "  start without a program cache: %.0f ms (plans %.0f, first run %.0f); with it %.0f ms (plans %.0f, first run "
      "%.0f); besides, context %.0f and weights %.0f ms\n",
      ms(r.cold.ns()), ms(r.cold.plan_ns), ms(r.cold.first_ns), ms(r.warm.ns()), ms(r.warm.plan_ns),
      ms(r.warm.first_ns), ms(r.warm.context_ns), ms(r.warm.create_ns));
  printf("  %-46s %10s %6s %10s %7s  peers\n", "layer", "time", "share", "GFLOP/s", "limit");
  double sum = 0;
  for (const StepTime& t : r.steps) sum += t.ns;
  for (const StepTime& t : r.steps) {
    if (t.ns < 0.01 * sum && r.steps.size() > 20) continue;
    printf("  %-46s %10s %5.1f%% %10.1f %6.0f%% ", t.name.c_str(), duration(t.ns).c_str(), 100 * t.ns / sum, t.gflops,
           100 * t.peak_share);
    for (const PeerTime& p : t.peers) printf(" %s %.2fx", p.name.c_str(), p.ns / t.ns);
    printf("  %s\n", t.kernel.c_str());
  }
  printf("  %-46s %10s         (one by one; layers below 1%% are not listed)\n", "all layers", duration(sum).c_str());
  if (s.device.is_software) printf("  software device: no speed of a GPU\n");
  fflush(stdout);
}

}  // namespace bench
