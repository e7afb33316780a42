// Layers of the corpus: checked, then raced against every peer that has the operator.
#include <skua/skua.h>
#include <math.h>
#include <stdio.h>
#include <algorithm>
#include <set>

#include "layer_case.h"

namespace bench {

// A residual belongs to the network, not to the layer: not every peer fuses it.
std::vector<LayerCase> layer_cases(const std::vector<skua_dtype>& types) {
  std::vector<LayerCase> cases;
  std::set<std::string> seen;
  const auto add = [&](const Corpus& c, Layer l) {
    l.residual = false;
    const std::string kind = l.kind();
    // Files of one kind of operator are named after it: gemm_f32/512x512x512, not gemm_f32/gemm/512x512x512.
    const bool plain = kind.rfind(c.name + "_", 0) == 0 || c.name == "pooling";
    const std::string name = kind + "/" + (plain ? "" : c.name + "/") + l.label();
    if (seen.insert(name).second) cases.push_back({name, l});
  };
  for (skua_dtype type : types)
    for (const Corpus& c : corpora(type))
      for (const Step& s : c.steps)
        if (!s.in_series && (type != SKUA_DTYPE_S8 || (!s.layer.quantized_weights() && !s.layer.two_inputs)))
          add(c, s.layer);
  return cases;
}

void print_choices(const Session& session) {
  for (const LayerCase& c : layer_cases(session.options.types)) {
    if (!session.wanted(c.name)) continue;
    LayerBench bench(c.layer);
    std::string why;
    const Entry ours = bench.prepare(*session.ours, &why);
    if (ours.prepared) printf("%s: %s\n", c.name.c_str(), ours.choice().c_str());
    else printf("%s: unsupported: %s\n", c.name.c_str(), why.c_str());
  }
}

void each_layer_case(Session& session, const std::vector<std::string>& names,
                     void (*run_case)(Session&, const LayerCase&)) {
  const std::set<std::string> wanted(names.begin(), names.end());
  for (const LayerCase& c : layer_cases(session.options.types))
    if (wanted.count(c.name)) {
      session.progress(c.name);
      session.each_thread_count([&] { run_case(session, c); });
    }
}

Result result_of(const Session& session, const char* suite, const LayerCase& c) {
  Result r;
  r.suite = suite;
  r.name = c.name;
  r.op = c.layer.kind().substr(0, c.layer.kind().rfind('_'));
  r.type = c.layer.type;
  r.arithmetic = c.layer.quantize_a ? SKUA_DTYPE_S8 : r.type;
  r.isa = session.machine.isa_for(r.arithmetic);
  r.threads = effort.threads;
  r.flops = c.layer.flops();
  r.bytes = c.layer.bytes();
  return r;
}

Entry prepare_ours(Session& session, LayerBench& bench, Result& r) {
  std::string why;
  Entry ours = bench.prepare(*session.ours, &why);
  if (!ours.prepared) {
    r.error = "unsupported: " + why;
    return ours;
  }
  r.algorithm = ours.algorithm();
  r.kernel = ours.prepared->kernel();
  if (const std::string wrong = check_against_formula(bench.layer, bench.operands, ours.result.data(), &r.kernel);
      !wrong.empty())
    r.error = "wrong result: " + wrong;
  return ours;
}

namespace {

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const LayerCase& c : layer_cases(session.options.types))
    if (session.wanted(c.name)) names.push_back(c.name);
  return names;
}

void run_case(Session& session, const LayerCase& c) {
  const Layer& l = c.layer;
  Result r = result_of(session, "layers", c);
  LayerBench bench(l);
  std::string why;
  std::vector<Entry> entries;
  entries.push_back(prepare_ours(session, bench, r));
  if (entries[0].prepared)
    for (auto& peer : session.peers) {
      Entry e = bench.prepare(*peer, &why);
      if (!e.prepared) {
        session.lacks(*peer, l.type, why);
        continue;
      }
      if (const std::string differs = check_against_formula(l, bench.operands, e.result.data(), nullptr);
          !differs.empty()) {
        fprintf(stderr, "skua-bench: %s: %s left out, its result is not the layer's: %s\n", c.name.c_str(),
                e.name.c_str(), differs.c_str());
        continue;
      }
      if (const std::string differs = check_against(l, entries[0].result.data(), e.result.data());
          !differs.empty() && r.error.empty())
        r.error = "wrong result: differs from " + e.name + ": " + differs;
      entries.push_back(std::move(e));
    }
  if (!r.error.empty()) {
    session.add(std::move(r));
    return;
  }
  std::vector<Racer> runs;
  for (Entry& e : entries) runs.push_back(e.racer());
  Layer as_f32 = l;
  as_f32.type = SKUA_DTYPE_F32;
  if (l.type == SKUA_DTYPE_F32)
    as_f32.quantized = SKUA_DTYPE_F32, as_f32.block = 0, as_f32.quantize_a = as_f32.zero_points = false;
  LayerBench f32_bench(as_f32);
  Entry f32;
  if (l.type != SKUA_DTYPE_F32 || l.quantized_weights()) f32 = f32_bench.prepare(*session.ours, &why);
  if (f32.prepared) runs.push_back(f32.racer());
  Entry tuned;  // on a device: what skua_op_tune() finds, where it is another choice
  if (on_device() && session.tuned && l.multiplies()) tuned = bench.prepare(*session.tuned, &why);
  const bool other = tuned.prepared && tuned.choice() != entries[0].choice();
  if (other) runs.push_back(tuned.racer());
  std::vector<Timing> times = race(runs);
  if (tuned.prepared) r.regret = 0, r.best_forced = tuned.choice();
  if (other) {
    if (const std::string wrong = check_against_formula(l, bench.operands, tuned.result.data(), &r.kernel);
        !wrong.empty())
      r.error = "wrong result: " + wrong + " (" + tuned.choice() + ")";
    if (times[0].ns / times.back().ns - 1 > times[0].noise + times.back().noise)
      r.regret = times[0].ns / times.back().ns - 1;
    times.pop_back();
  }
  session.set_time(r, times[0], r.bytes);
  for (size_t i = 1; i < entries.size(); ++i) r.peers.push_back({entries[i].name, times[i].ns, times[i].noise});
  if (f32.prepared) r.f32 = {"f32", times.back().ns, times.back().noise};
  if (!on_device()) {
    const Regret regret = measure_regret(bench, entries[0], false);
    if (!regret.wrong.empty()) r.error = "wrong result: " + regret.wrong;
    r.regret = regret.regret;
    r.best_forced = regret.best;
  }
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) { each_layer_case(session, names, run_case); }

}  // namespace

const Suite layers_suite = {list, run};

}  // namespace bench
