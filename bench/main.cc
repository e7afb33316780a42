// skua-bench: flags in, suites run, reports out. See docs/benchmarks.md.
#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>
#include <map>

#include "dispatch/cpu.h"
#include "session.h"

namespace bench {
namespace {

const Suite* suite_of(const std::string& name) {
  const Suite* const suites[] = {&machine_suite,  &overhead_suite, &kernels_suite, &layers_suite,
                                 &networks_suite, &regret_suite,   &steps_suite};
  for (int i = 0; i < suite_count; ++i)
    if (name == suite_names[i]) return suites[i];
  return nullptr;
}

void print_machine(const Session& s) {
  const Machine& m = s.machine;
  printf("skua %s on %s, %zu cores, %s\n", skua_version_string(), m.cpu.empty() ? "an unknown CPU" : m.cpu.c_str(),
         m.cores, m.isa.c_str());
  if (!m.features.empty()) printf("  features  %s\n", m.features.c_str());
  if (const char* chip = skua::chip_name()) printf("  choices   by the limits of %s (docs/cores.md)\n", chip);
  if (m.cache[0])
    printf("  caches    L1 %zu KiB, L2 %zu KiB, L3 %zu KiB\n", m.cache[0] >> 10, m.cache[1] >> 10, m.cache[2] >> 10);
  else printf("  caches    not known; taken as 32 KiB and 512 KiB\n");
  if (m.busy()) printf("  load      %.1f: other work is running, expect noise\n", m.load);
  if (m.mhz > 0 || !m.governor.empty())
    printf("  clock     %.0f MHz as stated%s%s\n", m.mhz, m.governor.empty() ? "" : ", governor ", m.governor.c_str());
  std::string counts;
  for (int n : s.options.threads) counts += (counts.empty() ? "" : " and ") + std::to_string(n);
  if (!isa_cap.empty()) printf("  cap       nothing above %s\n", isa_cap.c_str());
  if (without_amx) printf("  cap       no AMX, for anyone\n");
  print_numerics();
  const int most = *std::max_element(s.options.threads.begin(), s.options.threads.end()), cores = permitted_cores();
  printf("  threads   %s%s%s\n", counts.c_str(),
         most > cores ? (" on the " + std::to_string(cores) +
                         " that may be used: workers wait for each other, their times mean nothing")
                            .c_str()
                      : "",
         m.pinned >= 0 ? (", the first on core " + std::to_string(m.pinned)).c_str() : "");
  for (const auto& p : s.peers) printf("  peer      %s %s\n", p->name(), p->version().c_str());
  for (const std::string& line : s.missing_peers) printf("  no peer   %s\n", line.c_str());
  printf("  peak      ");
  for (const auto& p : m.peaks)
    printf("%s%s%s %.1f  ", p.isa.c_str(), p.type == SKUA_DTYPE_F32 ? "" : " ",
           p.type == SKUA_DTYPE_F32 ? "" : skua_dtype_name(p.type), p.gflops);
  printf("GFLOP/s (multiply-add, f32 where nothing else is said, one core)\n  bandwidth ");
  for (const auto& l : m.levels) printf("%s %.0f / %.0f  ", l.name, l.read, l.copy);
  printf("GB/s (read / copy, one core)\n\n");
  fflush(stdout);
}

// Cases of more than a millisecond on one thread: what several bring, for us and for each peer.
void print_scaling(const Session& s) {
  for (int n : s.options.threads)
    for (const char* suite : {"layers", "networks"}) {
      struct Mean {
        double logs = 0, worst = INFINITY;
        size_t cases = 0, below = 0;
        std::string name;
      };
      std::map<std::string, Mean> means;
      const double bar = 1.85 * n / 2;
      const auto add = [&](const std::string& who, double one, double many, const std::string& name) {
        if (!(one > 1e6) || !(many > 0)) return;
        Mean& m = means[who];
        const double scaling = one / many;
        m.logs += log(scaling), ++m.cases, m.below += scaling < bar;
        if (scaling < m.worst) m.worst = scaling, m.name = name;
      };
      for (const Result& r : s.results) {
        const Result* one = r.suite == suite && r.threads == n ? s.one_thread(r) : nullptr;
        if (!one) continue;
        add("skua", one->ns, r.ns, r.name);
        for (const PeerTime& p : r.peers)
          for (const PeerTime& q : one->peers)
            if (p.name == q.name) add(p.name, q.ns, p.ns, r.name);
      }
      for (const auto& m : means)
        printf(
            "%s above 1 ms, %d threads against one: %-8s %.2fx (geometric mean of %zu), worst %.2fx (%s), %zu below "
            "%.2fx\n",
            suite, n, m.first.c_str(), exp(m.second.logs / double(m.second.cases)), m.second.cases, m.second.worst,
            m.second.name.c_str(), m.second.below, bar);
    }
}

// Of the model's choices, and of the measured ones where the library tunes.
void print_regret(const Session& s) {
  for (int n : s.options.threads)
    for (const bool tuned : {false, true}) {
      double logs = 0, worst = -1;
      size_t cases = 0, above3 = 0, above15 = 0;
      std::string name;
      for (const Result& r : s.results) {
        const double regret = tuned ? r.regret_tuned : r.regret;
        if (r.suite != "regret" || r.threads != n || !r.error.empty() || regret < 0) continue;
        logs += log(1 + regret), ++cases, above3 += regret > 0.03, above15 += regret > 0.15;
        if (regret > worst) worst = regret, name = r.name;
      }
      if (cases)
        printf(
            "regret%s, %d thread%s: %.2f%% (geometric mean of %zu), worst %.1f%% (%s), %zu above 3%%, %zu above 15%%\n",
            tuned ? " after tuning" : "", n, n > 1 ? "s" : "", 100 * (exp(logs / double(cases)) - 1), cases,
            100 * worst, name.c_str(), above3, above15);
    }
}

// Of layers that had better been padded.
void print_steps(const Session& s) {
  for (const auto& [type, n] : s.kinds_of_run()) {
    size_t layers = 0, steps = 0, series = 0;
    double worst = 0;
    std::string name;
    for (const Result& r : s.results) {
      if (r.worst_step < 0 || r.threads != n || r.type != type || !r.error.empty()) continue;
      ++series;
      for (const StepTime& t : r.steps) {
        ++layers, steps += !t.larger.empty();
        if (t.longer > worst)
          worst = t.longer,
          name = ", worst " + std::to_string(int(lround(100 * worst))) + "% (" + t.name + " of " + t.larger + ")";
      }
    }
    if (series)
      printf("steps, %s, %d thread%s: %zu of %zu layers in %zu series take more than 10%% longer than a larger one%s\n",
             skua_dtype_name(type), n, n > 1 ? "s" : "", steps, layers, series, name.c_str());
  }
}

// "conv2d 3x3s2", "gemm, 16 rows at most", "softmax": layers that are alike.
std::string kind_of(const Result& r) {
  if (r.op == "gemm")
    return atoi(r.name.c_str() + r.name.rfind('/') + 1) <= 16 ? "gemm, 16 rows at most" : "gemm, more rows";
  if (r.op.find("conv") == std::string::npos && r.op != "depthwise") return r.op;
  const std::string layer = r.name.substr(r.name.rfind('/') + 1);  // "3x3s1d2g32_28x28x256-256"
  const size_t form = layer.find('_'), channels = layer.rfind('x');
  if (r.op == "conv2d" && channels != std::string::npos && atoi(layer.c_str() + channels + 1) <= 4 &&
      layer.compare(form, 4, "_1x1"))
    return "conv2d, 4 channels at most";
  return r.op + " " + layer.substr(0, form) + (layer.compare(form, 5, "_1x1x") ? "" : ", one pixel");
}

// Against the best peer, and against each, kind by kind.
void print_kinds(const Session& s) {
  struct Kind {
    size_t cases = 0, behind = 0;
    double logs = 0, worst = INFINITY;
    std::string name;
    std::map<std::string, std::pair<double, size_t>> peers;
  };
  for (const auto& [type, n] : s.kinds_of_run()) {
    std::map<std::string, Kind> kinds;
    for (const Result& r : s.results) {
      const PeerTime* best =
          r.suite == "layers" && r.threads == n && r.type == type && r.error.empty() ? r.best_peer() : nullptr;
      if (!best) continue;
      for (const std::string& key : {kind_of(r), std::string("~ all layers")}) {
        Kind& k = kinds[key];
        const double ratio = best->ns / r.ns;
        k.logs += log(ratio), ++k.cases, k.behind += ratio < 0.95;
        if (ratio < k.worst) k.worst = ratio, k.name = r.name;
        for (const PeerTime& p : r.peers) k.peers[p.name].first += log(p.ns / r.ns), ++k.peers[p.name].second;
        if (r.f32.ns > 0) k.peers["our f32"].first += log(r.f32.ns / r.ns), ++k.peers["our f32"].second;
      }
    }
    if (!kinds.empty())
      printf("\n%-28s layers  best peer  below 0.95   worst   geometric means; %s, %d thread%s\n", "kind",
             skua_dtype_name(type), n, n > 1 ? "s" : "");
    for (const auto& [name, k] : kinds) {
      printf("%-28s %6zu %9.2fx %11zu %6.2fx  ", name.c_str() + (name[0] == '~' ? 2 : 0), k.cases,
             exp(k.logs / double(k.cases)), k.behind, k.worst);
      for (const auto& p : k.peers) printf(" %s %.2fx", p.first.c_str(), exp(p.second.first / double(p.second.second)));
      printf("  (%s)\n", k.name.c_str());
    }
  }
}

void print_summary(const Session& s) {
  print_kinds(s);
  for (const char* suite : {"layers", "networks"})
    for (const auto& [type, n] : s.kinds_of_run()) {
      size_t cases = 0, wins = 0, ties = 0, regrets = 0, f32_cases = 0;
      double logs = 0, regret_logs = 0, f32_logs = 0;
      for (const Result& r : s.results) {
        if (r.suite != suite || r.threads != n || r.type != type || !r.error.empty()) continue;
        if (r.f32.ns > 0) f32_logs += log(r.f32.ns / r.ns), ++f32_cases;
        if (r.regret >= 0) regret_logs += log(1 + r.regret), ++regrets;
        const PeerTime* p = r.best_peer();
        if (!p) continue;
        ++cases;
        logs += log(p->ns / r.ns);
        if (fabs(p->ns / r.ns - 1) <= r.noise + p->noise) ++ties;
        else if (r.ns < p->ns) ++wins;
      }
      const std::string typed = type == SKUA_DTYPE_F32 ? suite : std::string(suite) + ", " + skua_dtype_name(type);
      const std::string which =
          typed + (s.options.threads.size() > 1 ? ", " + std::to_string(n) + (n > 1 ? " threads" : " thread") : "");
      if (f32_cases)
        printf("%s: %s%.2fx our own f32 (geometric mean of %zu)\n", which.c_str(),
               type == SKUA_DTYPE_F32 ? "quantised weights under f32 maps " : "", exp(f32_logs / double(f32_cases)),
               f32_cases);
      if (cases)
        printf(
            "%s: faster than every peer in %zu of %zu, within the noise in %zu; %.2fx the best peer (geometric "
            "mean)%s\n",
            which.c_str(), wins, cases, ties, exp(logs / double(cases)),
            regrets ? (", regret " + std::to_string(100 * (exp(regret_logs / double(regrets)) - 1)).substr(0, 4) + "%")
                          .c_str()
                    : "");
    }
  print_scaling(s);
  print_regret(s);
  print_steps(s);
  for (const auto& [who, lack] : s.lacking)
    if (who.second != SKUA_DTYPE_F32)
      printf("%s has no %s for %zu cases (%s)\n", who.first.c_str(), skua_dtype_name(who.second), lack.cases,
             lack.why.c_str());
  if (s.unsupported) printf("%zu cases are unsupported in this build\n", s.unsupported);
  if (s.wrong) printf("%zu case%s gave WRONG RESULTS\n", s.wrong, s.wrong == 1 ? "" : "s");
  if (s.machine.busy()) printf("other work was running (load %.1f): trust no single figure\n", s.machine.load);
  if (const auto shared = std::count_if(s.results.begin(), s.results.end(),
                                        [](const Result& r) { return r.ns > 0 && r.alone >= 0 && 3 * r.alone < 1; }))
    printf(
        "the core's other hardware thread was busy in %zu of %zu cases: what is bound by instructions took up to a "
        "quarter longer there (docs/cores.md)\n",
        size_t(shared), s.results.size());
  double least = 0, most = 0;
  for (const Result& r : s.results)
    if (r.ns > 0 && r.line_ns > 0)
      least = least > 0 ? std::min(least, r.line_ns) : r.line_ns, most = std::max(most, r.line_ns);
  if (most > 0)
    printf(
        "a cache line went from core to core and back in %.0f to %.0f ns: a call on several threads takes three to six "
        "of these more (docs/benchmarks.md)\n",
        least, most);
}

}  // namespace

const PeerTime* Result::best_peer() const {
  const PeerTime* best = nullptr;
  for (const PeerTime& p : peers)
    if (!best || p.ns < best->ns) best = &p;
  return best;
}

std::vector<std::pair<skua_dtype, int>> Session::kinds_of_run() const {
  std::vector<std::pair<skua_dtype, int>> all;
  for (skua_dtype type : options.types)
    for (int n : options.threads) all.push_back({type, n});
  return all;
}

void Session::lacks(const Contestant& peer, skua_dtype type, const std::string& why) {
  Lack& l = lacking[{peer.name(), type}];
  if (!l.cases++) l.why = why;
}

void Session::set_time(Result& r, const Timing& t, double bytes) const {
  r.ns = t.ns;
  r.noise = t.noise;
  r.alone = t.alone;
  r.line_ns = t.line_ns;
  r.gflops = r.flops / r.ns;
  r.bandwidth = bytes / r.ns;
  if (const double roof = machine.roofline_ns(r.isa, r.arithmetic == SKUA_DTYPE_S8 ? r.arithmetic : r.type, r.flops,
                                              bytes, on_device() ? 1 : effort.threads);
      roof > 0)
    r.peak_share = roof / r.ns;
}

std::string duration(double ns) {
  char text[32];
  if (ns < 1e3) snprintf(text, sizeof text, "%.1f ns", ns);
  else if (ns < 1e6) snprintf(text, sizeof text, "%.2f us", ns / 1e3);
  else if (ns < 1e9) snprintf(text, sizeof text, "%.2f ms", ns / 1e6);
  else snprintf(text, sizeof text, "%.2f s", ns / 1e9);
  return text;
}

void Session::use_threads(int threads) {
  effort.threads = threads;
  if (!on_device()) machine.pinned = pin_to_core(options.cpu);  // a driver's own threads would stay there too
  ours->use_threads(threads);
  for (auto& p : peers) p->use_threads(threads);
}

const Result* Session::one_thread(const Result& of) const {
  for (const Result& r : results)
    if (of.threads > 1 && r.threads == 1 && r.name == of.name && r.error.empty() && of.error.empty()) return &r;
  return nullptr;
}

void Session::progress(const std::string& name) {
  ++done;
  if (!terminal) return;
  fprintf(stderr, "\r\033[K[%zu/%zu] %s", done, total, name.c_str());
  fflush(stderr);
}

void Session::add(Result r) {
  if (terminal) fprintf(stderr, "\r\033[K");
  if (!r.error.empty()) {
    const bool bad = r.error.rfind("unsupported", 0) != 0;
    ++(bad ? wrong : unsupported);
    printf("%-52s %s\n", r.name.c_str(), r.error.c_str());
  } else {
    printf("%-52s %10s",
           (r.name + (options.threads.size() > 1 && r.suite != "machine" ? " (" + std::to_string(r.threads) + ")" : ""))
               .c_str(),
           r.suite == "machine" ? "" : duration(r.ns).c_str());
    if (r.gflops > 0) printf(" %8.1f GFLOP/s", r.gflops);
    else if (r.bandwidth > 0) printf(" %8.1f GB/s   ", r.bandwidth);
    else printf("%17s", "");
    if (r.peak_share >= 0) printf(" %4.0f%%", 100 * r.peak_share);
    for (const PeerTime& p : r.peers) printf("  %s %.2fx", p.name.c_str(), p.ns / r.ns);
    if (r.f32.ns > 0) printf("  f32 %.2fx", r.f32.ns / r.ns);
    if (r.distance >= 0) printf(on_device() ? "  %.2g from the CPU's scores" : "  %.2g from f32's scores", r.distance);
    if (const PeerTime* p = r.best_peer(); p && fabs(p->ns / r.ns - 1) <= r.noise + p->noise)
      printf("  (within the noise of %.0f%%)", 100 * (r.noise + p->noise));
    if (const Result* one = one_thread(r)) printf("  scaling %.2fx", one->ns / r.ns);
    if (r.suite == "regret") printf("  %s %s, %zu others tried", r.algorithm.c_str(), r.kernel.c_str(), r.tried);
    if (r.regret > (r.suite == "regret" ? 0.005 : 0.03))
      printf("  regret %.1f%% (%s)", 100 * r.regret, r.best_forced.c_str());
    if (r.regret_tuned > 0.005) printf("  %.1f%% after tuning", 100 * r.regret_tuned);
    printf("\n");
    for (const StepTime& t : r.steps)
      if (!t.larger.empty())
        printf("    %s takes %.0f%% longer than %s (%s %s, %s)\n", t.name.c_str(), 100 * t.longer, t.larger.c_str(),
               t.algorithm.c_str(), t.kernel.c_str(), duration(t.ns).c_str());
  }
  fflush(stdout);
  results.push_back(std::move(r));
}

int run(int argc, char** argv) {
  Session s;
  if (!parse_options(argc, argv, &s.options)) return 2;
  if (s.options.help) {
    print_help();
    return 0;
  }
  isa_cap = s.options.isa;
  std::vector<Result> earlier;
  if (!s.options.compare.empty() && !load_results(s.options.compare, &earlier)) return 2;
  effort.quick = s.options.quick;
  if (s.options.quick) {
    effort.contestant_ns = 12e6;
    effort.min_rounds = 5;
    effort.max_rounds = 31;
  }
  if (!s.options.filter.empty()) {
    s.filter = std::regex(s.options.filter);
    s.any_filter = true;
  }
  std::vector<std::pair<const Suite*, std::vector<std::string>>> work;
  for (const std::string& name : s.options.suites) {
    const Suite* suite = suite_of(name);
    work.push_back({suite, suite->list(s)});
    s.total += work.back().second.size();
  }
  if (!s.total) {
    fprintf(stderr,
            "skua-bench: --filter \"%s\" matches, as a regular expression, no case of these suites and types (--type); "
            "--list without it shows them\n",
            s.options.filter.c_str());
    return 2;
  }
  if (s.options.list) {
    for (const auto& w : work)
      for (const std::string& name : w.second) printf("%s\n", name.c_str());
    return 0;
  }
  if (s.options.choices) {
    s.ours = make_skua();
    if (!s.ours) return 1;
    print_choices(s);
    return 0;
  }
  s.terminal = isatty(STDERR_FILENO);
  if (on_device()) {
    if (!begin_device(s)) return 3;
  } else {
    s.machine = describe_machine();
    s.ours = make_skua();
    if (!s.ours) return 1;
    s.use_threads(1);
    measure_machine(s.machine, s.options.quick);
    unpin();
  }
  s.peers = find_peers(s.options.peers, &s.missing_peers);
  s.use_threads(s.options.threads[0]);
  on_device() ? print_device(s) : print_machine(s);
  for (const auto& w : work) w.first->run(s, w.second);
  if (s.terminal) fprintf(stderr, "\r\033[K");
  print_summary(s);
  if (!earlier.empty()) print_comparison(s, earlier);
  bool written = true;
  if (!s.options.json.empty() && !write_json(s, s.options.json))
    written = false, fprintf(stderr, "skua-bench: %s could not be written\n", s.options.json.c_str());
  if (!s.options.html.empty() && !write_html(s, s.options.html))
    written = false, fprintf(stderr, "skua-bench: %s could not be written\n", s.options.html.c_str());
  return s.wrong || !written ? 1 : 0;
}

}  // namespace bench

int main(int argc, char** argv) { return bench::run(argc, argv); }
