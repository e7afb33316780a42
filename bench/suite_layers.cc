// Layers of the corpus: checked, then raced against every peer that has the operator.
#include <skua/skua.h>
#include <math.h>
#include <stdio.h>
#include <algorithm>
#include <set>

#include "layer_case.h"

namespace bench {

// A residual belongs to the network, not to the layer: not every peer fuses it.
std::vector<LayerCase> layer_cases() {
  std::vector<LayerCase> cases;
  std::set<std::string> seen;
  for (const Corpus& c : corpora())
    for (const Step& s : c.steps) {
      Layer l = s.layer;
      l.residual = false;
      const std::string kind = l.kind();
      // Files of one kind of operator are named after it: gemm_f32/512x512x512, not gemm_f32/gemm/512x512x512.
      const bool plain = kind.rfind(c.name + "_", 0) == 0 || c.name == "pooling";
      const std::string name = kind + "/" + (plain ? "" : c.name + "/") + l.label();
      if (seen.insert(name).second) cases.push_back({name, l});
    }
  return cases;
}

namespace {

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const LayerCase& c : layer_cases())
    if (session.wanted(c.name)) names.push_back(c.name);
  return names;
}

void run_case(Session& session, const LayerCase& c) {
  const Layer& l = c.layer;
  Result r;
  r.suite = "layers";
  r.name = c.name;
  r.op = l.kind().substr(0, l.kind().rfind('_'));
  r.threads = effort.threads;
  r.flops = l.flops();
  r.bytes = l.bytes();

  LayerBench bench(l);
  std::string why;
  std::vector<Entry> entries;
  entries.push_back(bench.prepare(*session.ours, &why));
  if (!entries[0].prepared) {
    r.error = "unsupported: " + why;
    session.add(std::move(r));
    return;
  }
  r.algorithm = entries[0].prepared->algorithm();
  r.kernel = entries[0].prepared->kernel();
  r.isa = session.machine.isa;
  if (const std::string wrong = check_against_formula(l, bench.operands, entries[0].result.data()); !wrong.empty()) r.error = "wrong result: " + wrong;
  for (auto& peer : session.peers) {
    Entry e = bench.prepare(*peer, &why);
    if (!e.prepared) continue;
    if (const std::string differs = check_against_formula(l, bench.operands, e.result.data()); !differs.empty()) {
      fprintf(stderr, "skua-bench: %s: %s left out, its result is not the layer's: %s\n", c.name.c_str(), e.name.c_str(), differs.c_str());
      continue;
    }
    if (const std::string differs = check_against(l, entries[0].result.data(), e.result.data()); !differs.empty() && r.error.empty())
      r.error = "wrong result: differs from " + e.name + ": " + differs;
    entries.push_back(std::move(e));
  }
  if (!r.error.empty()) {
    session.add(std::move(r));
    return;
  }
  std::vector<Racer> runs;
  for (Entry& e : entries) runs.push_back({[&e] { e.prepared->run(); }, e.who});
  const std::vector<Timing> times = race(runs);
  r.ns = times[0].ns;
  r.noise = times[0].noise;
  for (size_t i = 1; i < times.size(); ++i) r.peers.push_back({entries[i].name, times[i].ns, times[i].noise});
  r.gflops = r.flops / r.ns;
  r.bandwidth = r.bytes / r.ns;
  if (const double roof = session.machine.roofline_ns(r.isa, r.flops, r.bytes, effort.threads); roof > 0) r.peak_share = roof / r.ns;
  const Regret regret = measure_regret(bench, entries[0], false);
  if (!regret.wrong.empty()) r.error = "wrong result: " + regret.wrong;
  r.regret = regret.regret;
  r.best_forced = regret.best;
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const LayerCase& c : layer_cases())
    if (wanted.count(c.name)) {
      session.progress(c.name);
      session.each_thread_count([&] { run_case(session, c); });
    }
}

}  // namespace

const Suite layers_suite = {list, run};

}  // namespace bench
