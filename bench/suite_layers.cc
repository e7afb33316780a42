// Layers of the corpus: checked, then raced against every peer that has the operator.
#include <skua/skua.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <set>

#include "session.h"

namespace bench {
namespace {

struct Case {
  std::string name;
  Layer layer;
};

// Every different layer of the corpus. A residual belongs to the network, not to the layer: not every peer fuses it.
std::vector<Case> all_cases() {
  std::vector<Case> cases;
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

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const Case& c : all_cases())
    if (session.wanted(c.name)) names.push_back(c.name);
  return names;
}

struct Entry {
  std::string name;
  Contestant* who;
  std::unique_ptr<Memory> y;
  std::unique_ptr<Prepared> prepared;
};

struct Bench {
  const Layer& layer;
  Operands operands;
  Memory x, second;
  explicit Bench(const Layer& l) : layer(l), operands(make_operands(l, 1)), x(operands.x), second(operands.second) {}

  Entry prepare(Contestant& who, std::string* why) {
    Entry e;
    e.name = who.name();
    e.who = &who;
    e.y = std::make_unique<Memory>(layer.out_count());
    begin_turn(&who);
    e.prepared = who.prepare(layer, operands.weights.data(), operands.bias.empty() ? nullptr : operands.bias.data(), {x.data(), 0},
                             {operands.second.empty() ? nullptr : second.data(), 0}, {e.y->data(), 0}, why);
    if (!e.prepared) {
      end_turn(&who);
      return e;
    }
    std::fill_n(e.y->data(), e.y->size(), NAN);  // an element that is never written cannot pass
    e.prepared->run();
    e.prepared->fetch();
    end_turn(&who);
    return e;
  }
};

// Kernels that could serve instead of the chosen one: same family, same instruction set.
std::vector<std::string> alternatives(const std::string& kernel) {
  std::vector<std::string> names;
  skua_kernel_info chosen = {}, info;
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && kernel == info.name) chosen = info;
  if (!chosen.name || !chosen.nr) return names;  // no tile: nothing to choose from
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && info.usable && info.nr && kernel != info.name && !strcmp(info.family, chosen.family) && !strcmp(info.isa, chosen.isa))
      names.push_back(info.name);
  return names;
}

// How much longer the library's choice takes than the best it could have made, as a share: every other algorithm and tile is forced and tried, the
// three fastest race against the choice.
void measure_regret(Bench& bench, Entry& ours, Result& r) {
  if (!bench.layer.multiplies() || (effort.quick && bench.layer.weight_count() > (4u << 20))) return;
  struct Forced {
    std::string what;
    std::unique_ptr<Contestant> context;
    Entry entry;
    double ns;
  };
  std::vector<Forced> all;
  const auto force = [&](const std::string& filter, bool direct_only) {
    Forced f;
    f.context = make_skua(filter, "", direct_only);
    std::string why;
    if (!f.context) return;
    f.entry = bench.prepare(*f.context, &why);
    if (!f.entry.prepared) return;
    const std::string algorithm = f.entry.prepared->algorithm(), kernel = f.entry.prepared->kernel();
    if (algorithm == r.algorithm && kernel == r.kernel) return;
    for (const Forced& other : all)
      if (other.what == algorithm + " " + kernel) return;
    f.what = algorithm + " " + kernel;
    f.ns = INFINITY;
    const double until = now_ns() + (effort.quick ? 3e6 : 20e6);
    for (int i = 0; i < 3 || (i < 30 && now_ns() < until); ++i) {
      const double start = busy_ns();
      f.entry.prepared->run();
      f.ns = std::min(f.ns, busy_ns() - start);
    }
    all.push_back(std::move(f));
  };
  for (const std::string& name : alternatives(r.kernel)) force(name, false);
  if (bench.layer.op == Op::conv) {
    force("", true);
    std::set<std::string> kernels;
    for (const Forced& f : all) kernels.insert(f.entry.prepared->kernel());
    for (const std::string& name : kernels)
      for (const std::string& other : alternatives(name)) force(other, true);
  }
  r.regret = 0;
  r.best_forced = r.algorithm + " " + r.kernel;
  if (all.empty()) return;
  std::sort(all.begin(), all.end(), [](const Forced& a, const Forced& b) { return a.ns < b.ns; });
  if (all.size() > 3) all.erase(all.begin() + 3, all.end());
  std::vector<Racer> runs = {{[&] { ours.prepared->run(); }}};
  for (Forced& f : all) runs.push_back({[&f] { f.entry.prepared->run(); }});
  const std::vector<Timing> times = race(runs, 0.5);
  for (size_t i = 1; i < times.size(); ++i)
    if (const double regret = times[0].ns / times[i].ns - 1; regret > r.regret) {
      r.regret = regret;
      r.best_forced = all[i - 1].what;
    }
}

void run_case(Session& session, const Case& c) {
  const Layer& l = c.layer;
  Result r;
  r.suite = "layers";
  r.name = c.name;
  r.op = l.kind().substr(0, l.kind().rfind('_'));
  r.threads = effort.threads;
  r.flops = l.flops();
  r.bytes = l.bytes();

  Bench bench(l);
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
  if (const std::string wrong = check_against_formula(l, bench.operands, entries[0].y->data()); !wrong.empty()) r.error = "wrong result: " + wrong;
  for (auto& peer : session.peers) {
    Entry e = bench.prepare(*peer, &why);
    if (!e.prepared) continue;
    if (const std::string differs = check_against_formula(l, bench.operands, e.y->data()); !differs.empty()) {
      fprintf(stderr, "skua-bench: %s: %s left out, its result is not the layer's: %s\n", c.name.c_str(), e.name.c_str(), differs.c_str());
      continue;
    }
    if (const std::string differs = check_against(l, entries[0].y->data(), e.y->data()); !differs.empty() && r.error.empty())
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
  measure_regret(bench, entries[0], r);
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) {
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const Case& c : all_cases())
    if (wanted.count(c.name)) {
      session.progress(c.name);
      session.each_thread_count([&] { run_case(session, c); });
    }
}

}  // namespace

const Suite layers_suite = {list, run};

}  // namespace bench
