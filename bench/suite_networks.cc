// Whole networks: the same chain, weights and memory plan for every contestant; results compared before the clock
// starts.
#include <math.h>
#include <stdio.h>
#include <algorithm>
#include <array>

#include "session.h"

namespace bench {
namespace {

std::string case_name(const Corpus& c) { return std::string("network_") + skua_dtype_name(c.type) + "/" + c.name; }

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (skua_dtype type : session.options.types)
    for (const Corpus& c : corpora(type))
      if (c.network && session.wanted(case_name(c))) names.push_back(case_name(c));
  return names;
}

// Median time of every step over several passes through the network.
std::vector<double> step_times(PreparedNetwork& net, size_t steps, int passes) {
  std::vector<std::vector<double>> samples(steps);
  for (int p = 0; p < passes; ++p)
    for (size_t i = 0; i < steps; ++i) {
      if (const double ns = net.step_device_ns(i); ns >= 0) {
        samples[i].push_back(ns);
        continue;
      }
      const double start = busy_ns();
      net.run_step(i);
      samples[i].push_back(busy_ns() - start);
    }
  std::vector<double> times;
  for (auto& s : samples) times.push_back(statistics(s).ns);
  return times;
}

// The largest difference, as a share of the largest value.
double distance(const std::vector<float>& ours, const std::vector<float>& theirs) {
  double largest = 0, apart = 0;
  for (size_t i = 0; i < theirs.size(); ++i)
    largest = std::max(largest, fabs(double(theirs[i]))),
    apart = std::max(apart, fabs(double(ours[i]) - double(theirs[i])));
  return apart / largest;
}

// What every step's time goes to.
void profile(Session& session, PreparedNetwork& net, const Corpus& c, Result& r) {
  std::vector<std::array<size_t, size_t(Where::count)>> samples(c.steps.size());
  Sampler sampler;
  if (sampler.works()) {
    const double until = now_ns() + (effort.quick ? 300e6 : 1500e6);
    sampler.start();
    do
      for (size_t i = 0; i < c.steps.size(); ++i) {
        net.run_step(i);
        sampler.drain([&](Where w) { ++samples[i][size_t(w)]; });
      }
    while (now_ns() < until);
    sampler.stop();
  }
  double weights = 0;
  for (const Step& s : c.steps) weights += double(size_of(c.type)) * double(s.layer.weight_count());
  for (size_t i = 0; i < c.steps.size(); ++i)
    r.steps[i].loss = split_time(session.machine, r.isa, c.steps[i].layer, r.steps[i].algorithm, r.steps[i].kernel,
                                 r.steps[i].ns, weights, samples[i].data());
}

// Shares of the layer's time, layers of less than a hundredth of the network's together.
void print_profile(const Result& r) {
  double sum = 0, whole[7] = {}, small = 0;
  bool measured = false;
  for (const StepTime& t : r.steps) sum += t.ns, measured |= t.loss.copy >= 0;
  printf("  %-46s %9s %6s  compute bandwidth edge  pack transform driver  kernel   %% of the layer's time\n", "layer",
         "time", "share");
  const auto line = [](const std::string& name, double ns, double share, const double* v) {
    printf("  %-46s %9s %5.1f%%  %6.0f%% %8.0f%% %3.0f%% %4.0f%% %8.0f%% %5.0f%% %6.0f%%\n", name.c_str(),
           duration(ns).c_str(), 100 * share, 100 * v[0], 100 * v[1], 100 * v[2], 100 * v[3], 100 * v[4], 100 * v[5],
           100 * v[6]);
  };
  double rest[7] = {};
  for (const StepTime& t : r.steps) {
    const Loss& l = t.loss;
    const double v[7] = {
        l.compute, l.bandwidth, l.edge, std::max(l.copy, 0.0), std::max(l.transform, 0.0), std::max(l.driver, 0.0),
        l.kernel};
    for (int i = 0; i < 7; ++i) whole[i] += v[i] * t.ns / sum, rest[i] += t.ns < 0.01 * sum ? v[i] * t.ns : 0;
    if (t.ns < 0.01 * sum) small += t.ns;
    else line(t.name, t.ns, t.ns / sum, v);
  }
  for (double& v : rest) v /= std::max(small, 1.0);
  if (small > 0) line("layers below 1%", small, small / sum, rest);
  line("all", sum, 1, whole);
  printf("  %s\n", measured ? "measured by sampling: pack, transform, driver; model: compute (at peak), bandwidth "
                              "(beyond compute), edge; kernel: what is left"
                            : "model: compute (at peak), bandwidth (beyond compute), edge; no sampling here, so that "
                              "kernel holds packing, transforms and the driver too");
  fflush(stdout);
}

// With several threads: the layers where most time is lost against a perfect split of the time with one.
void print_lost(const Session& session, const Result& r) {
  const Result* one = session.one_thread(r);
  if (!one || one->steps.size() != r.steps.size()) return;
  struct Lost {
    double ns;
    size_t step;
  };
  std::vector<Lost> all;
  for (size_t i = 0; i < r.steps.size(); ++i) all.push_back({r.steps[i].ns - one->steps[i].ns / r.threads, i});
  std::sort(all.begin(), all.end(), [](const Lost& a, const Lost& b) { return a.ns > b.ns; });
  for (size_t i = 0; i < std::min<size_t>(6, all.size()) && all[i].ns > 0.005 * r.ns; ++i) {
    const StepTime &now = r.steps[all[i].step], &before = one->steps[all[i].step];
    printf("  %-46s %9s -> %9s, %.2fx, %s lost\n", now.name.c_str(), duration(before.ns).c_str(),
           duration(now.ns).c_str(), before.ns / now.ns, duration(all[i].ns).c_str());
  }
  fflush(stdout);
}

void run_case(Session& session, const Corpus& c) {
  Result r;
  r.suite = "networks";
  r.name = case_name(c);
  r.op = "network";
  r.type = c.type;
  r.threads = effort.threads;
  r.isa = session.machine.isa_for(r.type);
  for (const Step& s : c.steps)
    r.flops += s.layer.flops(), r.bytes += double(size_of(c.type)) * double(s.layer.weight_count());

  std::string why;
  const std::unique_ptr<Contestant> started = on_device() ? start_on_device(c, r, &why) : nullptr;
  Contestant* const skua = on_device() ? started.get() : session.ours.get();
  std::vector<std::unique_ptr<PreparedNetwork>> nets;
  std::vector<Contestant*> who = {skua};
  begin_turn(skua);
  nets.push_back(skua ? skua->prepare_network(c, &why) : nullptr);
  if (!nets[0]) {
    r.error = "unsupported: " + why;
    session.add(std::move(r));
    return;
  }
  // The class scores, before softmax flattens their differences.
  const int before_last = c.steps.back().layer.op == Op::softmax ? c.steps.back().x : c.steps.back().y;
  nets[0]->run();
  end_turn(skua);
  if (const StartUp* start = nets[0]->start_up())
    r.warm = *start, r.record_ns = nets[0]->record_ns(), r.record_own_ns = nets[0]->record_own_ns();
  std::vector<float> ours, theirs;
  nets[0]->read(before_last, ours);
  for (float v : ours)
    if (!std::isfinite(v)) r.error = "wrong result: the scores are not finite";
  // Layers in f32 round and sum differently by 3000 times 2^-24; a half is rounded once or twice a layer. Halves are
  // held to our f32, which is held to the peers' in a run of f32: some of them sum 25088 terms of a layer in halves.
  const bool halves = c.type == SKUA_DTYPE_F16 || c.type == SKUA_DTYPE_BF16;
  const double close = on_device()
                           ? score_bound(c)
                           : (c.type == SKUA_DTYPE_F32 ? 3360 : 8) * roundoff(c.type) * sqrt(double(c.steps.size()));
  for (auto& peer : session.peers) {
    begin_turn(peer.get());
    auto net = peer->prepare_network(c, &why);
    if (net) net->run();
    end_turn(peer.get());
    if (!net) {
      session.lacks(*peer, c.type, why);
      continue;
    }
    net->read(before_last, theirs);
    if (c.type == SKUA_DTYPE_S8 && !on_device()) {
      // The same arithmetic gives the same bytes, layer after layer; a rounding apart grows with the depth. Other
      // networks, whose layers are checked one by one: we and oneDNN add residuals before rounding, others after it;
      // functions are rounded between their parts by some.
      double apart = 0, size = 0;
      for (size_t i = 0; i < theirs.size(); ++i)
        apart += fabs(double(ours[i]) - double(theirs[i])), size += fabs(double(theirs[i]));
      const bool fuses = std::string(peer->name()) == "onednn";
      const bool other = std::any_of(c.steps.begin(), c.steps.end(), [&](const Step& s) {
        return (!fuses && s.layer.residual) || s.layer.activation == SKUA_ACTIVATION_HARD_SWISH ||
               s.layer.activation == SKUA_ACTIVATION_SILU || s.layer.activation == SKUA_ACTIVATION_HARD_SIGMOID;
      });
      if (!other && !(apart <= 0.05 * size) && r.error.empty())
        r.error = std::string("wrong result: differs from ") + peer->name() + " by " + std::to_string(apart / size) +
                  " of the scores in the mean";
    } else if (on_device()) {
      r.distance = distance(ours, theirs);
      if (!(r.distance <= close))
        r.error = "wrong result: " + std::to_string(r.distance) +
                  " of the largest score from the CPU's, the bound is " + std::to_string(close);
    } else if (const std::string differs = halves ? "" : check_close(ours, theirs, close);
               !differs.empty() && r.error.empty())
      r.error = std::string("wrong result: differs from ") + peer->name() + ": " + differs;
    nets.push_back(std::move(net));
    who.push_back(peer.get());
    r.peers.push_back({peer->name(), 0, 0});
  }
  if (!r.error.empty()) {
    session.add(std::move(r));
    return;
  }
  if (c.type != SKUA_DTYPE_F32 && !on_device()) {  // last: our own f32, which is no peer
    for (const Corpus& f32 : corpora())
      if (f32.name == c.name) nets.push_back(session.ours->prepare_network(f32, &why));
    if (nets.back()) {
      who.push_back(session.ours.get());
      nets.back()->run();
      if (c.type != SKUA_DTYPE_S8) {  // whose images are others
        nets.back()->read(before_last, theirs);
        r.distance = distance(ours, theirs);
        if (!(r.distance <= close)) {
          r.error = "wrong result: " + std::to_string(r.distance) + " of the largest score from f32's, the bound is " +
                    std::to_string(close);
          session.add(std::move(r));
          return;
        }
      }
    } else {
      nets.pop_back();
      if (halves) {
        r.error = "unsupported: no network of f32 to hold it to: " + why;
        session.add(std::move(r));
        return;
      }
    }
  }
  std::vector<Racer> runs;
  for (size_t i = 0; i < nets.size(); ++i)
    runs.push_back(
        {[&n = nets[i]] { n->run(); }, who[i], [&n = nets[i]](size_t calls) { return n->device_ns(calls); }});
  const std::vector<Timing> times = race(runs, 8);
  session.set_time(r, times[0], 0);
  for (size_t i = 1; i < times.size(); ++i) {
    PeerTime& t = i <= r.peers.size() ? r.peers[i - 1] : r.f32;
    t.ns = times[i].ns, t.noise = times[i].noise;
  }

  const int passes = std::clamp(int(60e6 / r.ns), 3, 15);
  for (size_t i = 0; i < nets.size(); ++i) {
    begin_turn(who[i]);
    const std::vector<double> ns = step_times(*nets[i], c.steps.size(), passes);
    end_turn(who[i]);
    if (i == 0) r.steps.resize(c.steps.size());
    for (size_t k = 0; k < ns.size(); ++k) {
      StepTime& t = r.steps[k];
      if (i > r.peers.size()) {
        t.f32_ns = ns[k];
        continue;
      }
      if (i > 0) {
        t.peers.push_back({r.peers[i - 1].name, ns[k], 0});
        continue;
      }
      const Layer& l = c.steps[k].layer;
      t.name = l.kind() + "/" + l.label() + (l.residual ? "+add" : "");
      t.algorithm = nets[0]->algorithm(k);
      t.kernel = nets[0]->kernel(k);
      t.ns = ns[k];
      t.gflops = l.flops() / ns[k];
      if (const double roof = on_device() ? session.machine.roofline_ns(r.isa, r.type, l.flops(), l.bytes(), 1) : 0;
          roof > 0)
        t.peak_share = roof / ns[k];
    }
  }
  if (effort.threads == 1 && !on_device()) profile(session, *nets[0], c, r);
  session.add(r);
  if (on_device()) print_device_network(session, r);
  else if (effort.threads == 1) print_profile(r);
  else print_lost(session, r);
}

void run(Session& session, const std::vector<std::string>& names) {
  for (skua_dtype type : session.options.types)
    for (const Corpus& c : corpora(type))
      if (c.network && std::find(names.begin(), names.end(), case_name(c)) != names.end()) {
        session.progress(case_name(c));
        session.each_thread_count([&] { run_case(session, c); });
      }
}

}  // namespace

const Suite networks_suite = {list, run};

}  // namespace bench
