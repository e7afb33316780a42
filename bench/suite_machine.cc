// The machine's peaks as cases, so that they stand in the JSON like everything else.
#include <skua/skua.h>
#include "peak.h"
#include "session.h"

namespace bench {
namespace {

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (session.wanted(name)) names.push_back(name);
  };
  const PeakLoops* loops[32];
  const size_t count = peak_loops(loops, 32);
  for (size_t i = 0; i < count; ++i) {
    const std::string isa = loops[i]->isa;
    add("peak_" + std::string(skua_dtype_name(skua_dtype(loops[i]->element))) + "/" + isa);
  }
  for (size_t i = 0; i < count; ++i)
    for (const char* what : {"widen_f16/", "narrow_f16/", "widen_bf16/", "narrow_bf16/"})
      if (loops[i]->read[0]) add(what + std::string(loops[i]->isa));
  for (const char* level : {"L1", "L2", "L3", "DRAM"})
    for (const char* what : {"read", "copy"}) add("bandwidth_" + std::string(what) + "/" + level);
  return names;
}

void run(Session& session, const std::vector<std::string>& names) {
  const Machine& m = session.machine;
  for (const std::string& name : names) {
    session.progress(name);
    const std::string what = name.substr(0, name.find('/')), which = name.substr(name.find('/') + 1);
    Result r;
    r.suite = "machine";
    r.name = name;
    r.op = what;
    for (const auto& p : m.peaks)
      if (what == std::string("peak_") + skua_dtype_name(p.type) && p.isa == which)
        r.gflops = p.gflops, r.ns = 1 / p.gflops, r.isa = which, r.type = p.type;
    for (const auto& c : m.converts)
      for (const bool widen : {true, false})
        if (what == (widen ? "widen_" : "narrow_") + std::string(skua_dtype_name(c.type)) && c.isa == which)
          r.bandwidth = widen ? c.widen : c.narrow, r.ns = 1 / r.bandwidth, r.isa = which, r.type = c.type;
    for (const Level& l : m.levels)
      if (which == l.name && what.rfind("bandwidth_", 0) == 0) {
        r.bandwidth = what == "bandwidth_read" ? l.read : l.copy;
        r.bytes = double(l.bytes);
        r.ns = r.bytes / r.bandwidth;
      }
    if (r.ns > 0) session.add(std::move(r));
  }
}

}  // namespace

const Suite machine_suite = {list, run};

}  // namespace bench
