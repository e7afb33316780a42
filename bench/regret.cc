// What the model's choice costs against the best choice there is.
#include <skua/skua.h>
#include <string.h>
#include <set>

#include "layer_case.h"

namespace bench {
namespace {

// Kernels that could serve instead of this one: same family, same instruction set.
std::vector<std::string> alternatives(const std::string& kernel) {
  std::vector<std::string> names;
  skua_kernel_info chosen = {}, info;
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && kernel == info.name) chosen = info;
  if (!chosen.name || !chosen.nr) return names;  // no tile: nothing to choose from
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && info.usable && info.nr && info.type == chosen.type &&
        kernel != info.name && !strcmp(info.family, chosen.family) && !strcmp(info.isa, chosen.isa))
      names.push_back(info.name);
  return names;
}

struct Forced {
  SkuaOptions how;
  std::string what;  // algorithm and kernel
  double ns;         // the shortest of a few runs
  std::unique_ptr<Contestant> context;
  Entry entry;
};

bool make(LayerBench& bench, Forced& f) {
  std::string why;
  f.context = make_skua(f.how);
  if (f.context) f.entry = bench.prepare(*f.context, &why);
  return f.entry.prepared != nullptr;
}

double shortest(Entry& e, double budget_ns) {
  double ns = INFINITY;
  begin_turn(e.who);
  e.prepared->run();
  const double until = now_ns() + budget_ns;
  for (int i = 0; i < 3 || (i < 200 && now_ns() < until); ++i) {
    const double start = busy_ns();
    e.prepared->run();
    ns = std::min(ns, busy_ns() - start);
  }
  end_turn(e.who);
  return ns;
}

// Everything else the library can be made to take, one at a time: only its time is kept, a layer's weights may be
// hundreds of megabytes.
std::vector<Forced> force_all(LayerBench& bench, Entry& ours, Regret& result) {
  std::vector<Forced> all;
  const std::string chosen = ours.prepared->plan();
  std::set<std::string> seen = {ours.choice()}, kernels = {ours.prepared->kernel()};
  const auto add = [&](const SkuaOptions& how) {
    Forced f = {how, "", 0, nullptr, {}};
    // the same plan again: its weights only lie elsewhere
    if (!make(bench, f) || f.entry.prepared->plan() == chosen) return;
    f.what = f.entry.choice() + (how.wanted ? " #" + std::to_string(how.wanted) : "");
    kernels.insert(f.entry.prepared->kernel());
    if (result.wrong.empty())
      if (const std::string differs = check_against(bench.layer, ours.result.data(), f.entry.result.data());
          !differs.empty())
        result.wrong = f.what + ": " + differs;
    f.ns = shortest(f.entry, effort.quick ? 2e6 : 10e6);
    f.entry = {};  // before its context
    f.context.reset();
    all.push_back(std::move(f));
  };
  // One context packs weights one way; every candidate of the plan that it makes (a tile, a size of blocks) is then
  // forced by its number.
  const auto force = [&](const std::string& filter, bool direct_only) {
    Forced probe = {{filter, "", direct_only ? SKUA_NUMERICS_STRICT : bench_numerics}, "", 0, nullptr, {}};
    if (!make(bench, probe)) return;
    const bool first = filter.empty() && !direct_only;
    if (!first && !seen.insert(probe.entry.choice()).second) return;
    kernels.insert(probe.entry.prepared->kernel());
    const size_t candidates = library_candidates(*probe.context, bench.layer, bench.operands.weights.data(),
                                                 bench.operands.bias.empty() ? nullptr : bench.operands.bias.data());
    probe.entry = {};
    if (candidates > 1)
      for (size_t i = 1; i <= candidates; ++i)
        add({filter, "", direct_only ? SKUA_NUMERICS_STRICT : bench_numerics, uint32_t(i)});
    else if (!first) add(probe.how);
  };
  force("", false);
  if (bench.layer.op == Op::conv) {
    for (const char* algorithm : {"direct", "depthwise", "winograd_f2x2", "winograd_f4x2", "winograd_f4x4",
                                  "winograd_f6x6", "winograd_f2x2_5x5", "winograd_f4x4_5x5", "winograd_f3x3_s2"})
      force(algorithm, false);
    force("", true);
  }
  // Tiles of every algorithm met so far; one of a product also decides the format of the panels, and with it what fits
  // them.
  const std::set<std::string> first = kernels;
  for (const std::string& kernel : first)
    for (const std::string& name : alternatives(kernel)) {
      force(name, false);
      if (bench.layer.op == Op::conv) force(name, true);
    }
  result.tried = all.size();
  return all;
}

// What each loses against the fastest of a race, as a share; nothing where the noise is larger. choice: of runs[0],
// last: of the last.
struct Duel {
  double choice = 0, second = 0, last = 0;
};
Duel duel(const std::vector<Racer>& runs, size_t best) {
  const std::vector<Timing> times = race(runs, 1.5);
  double least = times[0].ns;
  for (const Timing& t : times) least = std::min(least, t.ns);
  const double noise = times[0].noise + times[best ? 1 : 0].noise;
  const auto share = [&](double ns) { return ns / least - 1 <= noise / 2 ? 0 : ns / least - 1; };
  return {share(times[0].ns), share(times[best ? 1 : 0].ns), share(times.back().ns)};
}

}  // namespace

Regret measure_regret(LayerBench& bench, Entry& ours, bool tune) {
  Regret result;
  if (!bench.layer.multiplies() || bench.layer.quantized_weights() ||
      (effort.quick && bench.layer.weight_count() > (4u << 20)))
    return result;
  std::vector<Forced> all = force_all(bench, ours, result);
  result.regret = 0;
  result.best = ours.choice();
  if (!result.wrong.empty()) return result;
  std::sort(all.begin(), all.end(), [](const Forced& a, const Forced& b) { return a.ns < b.ns; });
  if (all.size() > 3) all.resize(3);
  std::vector<Racer> runs = {{[&] { ours.prepared->run(); }, ours.who}};
  for (Forced& f : all)
    if (make(bench, f)) runs.push_back({[&f] { f.entry.prepared->run(); }, f.entry.who});
  Forced tuned = {{"", "", bench_numerics, 0, tune}, "", 0, nullptr, {}};
  const bool has_tuned = tune && make(bench, tuned);
  size_t best = 0;
  if (runs.size() > 1) {
    const std::vector<Timing> times = race(runs, 0.5);
    for (size_t i = 1; i < times.size(); ++i)
      if (times[i].ns < times[best].ns) best = i;
    result.regret = times[0].ns / times[best].ns - 1;
  }
  // Of several equal ones, one looks fastest: against the choice alone it must prove it. Equal plans need no second
  // measurement: where their weights lie would look like a difference.
  const std::string plan = has_tuned ? tuned.entry.prepared->plan() : "";
  const bool as_ours = plan == ours.prepared->plan(), as_best = best && plan == all[best - 1].entry.prepared->plan(),
             own = has_tuned && !as_ours && !as_best;
  if (result.regret > 0.01 || own) {
    std::vector<Racer> last = {runs[0]};
    if (best) last.push_back(runs[best]);
    if (own) last.push_back({[&] { tuned.entry.prepared->run(); }, tuned.entry.who});
    // Some duels show what is not there, and a corpus has hundreds: what looks large is the middle of three.
    std::vector<Duel> duels = {duel(last, best)};
    if (duels[0].choice > 0.03 || duels[0].last > 0.03)
      duels.push_back(duel(last, best)), duels.push_back(duel(last, best));
    const auto middle = [&](double Duel::*share) {
      std::sort(duels.begin(), duels.end(), [&](const Duel& a, const Duel& b) { return a.*share < b.*share; });
      return duels[duels.size() / 2].*share;
    };
    result.regret = middle(&Duel::choice);
    result.tuned = own ? middle(&Duel::last) : as_best ? middle(&Duel::second) : result.regret;
    if (result.regret > 0)
      result.best = own && result.tuned == 0 ? tuned.entry.choice() + " (tuned)"
                    : best                   ? all[best - 1].what
                                             : result.best;
  } else {
    result.tuned = as_best ? 0 : result.regret;
  }
  if (!has_tuned) result.tuned = -1;
  return result;
}

namespace {

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const LayerCase& c : layer_cases(session.options.types))
    if (c.layer.multiplies() && session.wanted(c.name)) names.push_back(c.name);
  return names;
}

void run_case(Session& session, const LayerCase& c) {
  Result r = result_of(session, "regret", c);
  LayerBench bench(c.layer);
  Entry ours = prepare_ours(session, bench, r);
  if (r.error.empty()) {
    const Regret regret = measure_regret(bench, ours, true);
    if (!regret.wrong.empty()) r.error = "wrong result: " + regret.wrong;
    session.set_time(r, race({{[&] { ours.prepared->run(); }, ours.who}}, 0.25)[0], r.bytes);
    r.regret = regret.regret;
    r.regret_tuned = regret.tuned;
    r.best_forced = regret.best;
    r.tried = regret.tried;
  }
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) { each_layer_case(session, names, run_case); }

}  // namespace

const Suite regret_suite = {list, run};

}  // namespace bench
