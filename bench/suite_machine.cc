// The machine's peaks as cases, so that they stand in the JSON like everything else.
#include <skua/skua.h>
#include "session.h"

namespace bench {
namespace {

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (size_t i = 0; i < skua_isa_count(); ++i) {
    skua_isa_info info;
    if (skua_isa_at(i, &info) == SKUA_STATUS_OK && info.detected && session.wanted("peak_f32/" + std::string(info.name))) names.push_back("peak_f32/" + std::string(info.name));
  }
  for (const char* level : {"L1", "L2", "L3", "DRAM"})
    for (const char* what : {"read", "copy"})
      if (const std::string name = "bandwidth_" + std::string(what) + "/" + level; session.wanted(name)) names.push_back(name);
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
      if (what == "peak_f32" && p.isa == which) r.gflops = p.gflops, r.ns = 1 / p.gflops, r.isa = which;
    for (const Level& l : m.levels)
      if (which == l.name && what != "peak_f32") {
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
