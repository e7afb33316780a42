// One extent at a time: a layer that takes longer than a larger one of its series had better been padded to it, so
// something was chosen or cut badly.
#include <ctype.h>
#include <stdio.h>
#include <algorithm>
#include <functional>

#include "layer_case.h"

namespace bench {
namespace {

// a step: ratios of two cases in turns repeat to 2-3%, and elements beyond whole vectors may cost something
constexpr double counted_from = 0.1;

// "1..24x64x96" of "1x64x96" and "24x64x96".
std::string range(const std::string& first, const std::string& last) {
  const auto digit = [](char c) { return isdigit(static_cast<unsigned char>(c)) != 0; };
  const size_t shorter = std::min(first.size(), last.size());
  size_t head = 0, tail = 0;
  while (head < shorter && first[head] == last[head]) ++head;
  while (head && digit(first[head - 1])) --head;
  while (tail < shorter - head && first[first.size() - 1 - tail] == last[last.size() - 1 - tail]) ++tail;
  while (tail && digit(first[first.size() - tail])) --tail;
  return first.substr(0, first.size() - tail) + ".." + last.substr(head);
}

using EachSeries = std::function<void(const std::string& name, const Step* steps, size_t count)>;

void each_series(const Session& session, const EachSeries& call) {
  for (skua_dtype type : session.options.types)
    for (const Corpus& c : corpora(type))
      for (const Series& s : c.series) {
        const Step* steps = &c.steps[s.first];
        call(steps[0].layer.kind() + "/" + range(steps[0].layer.label(), steps[s.count - 1].layer.label()), steps,
             s.count);
      }
}

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  each_series(session, [&](const std::string& name, const Step*, size_t) {
    if (session.wanted(name)) names.push_back(name);
  });
  return names;
}

// How much longer a takes than b, these two alone in turns: the middle of three races.
double longer(const Entry& a, const Entry& b) {
  double ratios[3];
  for (double& ratio : ratios) {
    const std::vector<Timing> times = race({a.racer(), b.racer()}, 1.5);
    ratio = times[0].ns / times[1].ns;
  }
  std::sort(ratios, ratios + 3);
  return ratios[1] - 1;
}

void run_series(Session& session, const std::string& name, const Step* steps, size_t count) {
  Result r = result_of(session, "steps", {name, steps[count - 1].layer});
  r.worst_step = 0;
  std::vector<std::unique_ptr<LayerBench>> benches;
  std::vector<Entry> entries;
  std::vector<Racer> racers;
  std::shared_ptr<Maps> maps;
  for (size_t i = count; i-- && r.error.empty();) {  // the largest first: all read and write its maps
    benches.push_back(std::make_unique<LayerBench>(steps[i].layer, maps));
    maps = benches.back()->maps;
    entries.push_back(prepare_ours(session, *benches.back(), r));
    if (r.error.empty()) racers.push_back(entries.back().racer());
    else r.error += " (" + steps[i].layer.label() + ")";
  }
  if (!r.error.empty()) {
    session.add(std::move(r));
    return;
  }
  std::reverse(entries.begin(), entries.end());
  std::reverse(racers.begin(), racers.end());
  const std::vector<Timing> times = race(racers);
  session.set_time(r, times.back(), r.bytes);
  for (size_t i = 0; i < count; ++i) {
    StepTime step;
    step.name = steps[i].layer.label();
    step.algorithm = entries[i].algorithm();
    step.kernel = entries[i].prepared->kernel();
    step.ns = times[i].ns;
    step.gflops = steps[i].layer.flops() / step.ns;
    size_t least = i;
    for (size_t j = i + 1; j < count; ++j)
      if (times[j].ns < times[least].ns) least = j;
    if (times[i].ns > (1 + counted_from) * times[least].ns)
      if (const double over = longer(entries[i], entries[least]); over > counted_from) {
        step.longer = over;
        step.larger = steps[least].layer.label();
        r.worst_step = std::max(r.worst_step, over);
      }
    r.steps.push_back(step);
  }
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) {
  each_series(session, [&](const std::string& name, const Step* steps, size_t count) {
    if (std::find(names.begin(), names.end(), name) == names.end()) return;
    session.progress(name);
    session.each_thread_count([&] { run_series(session, name, steps, count); });
  });
}

}  // namespace

const Suite steps_suite = {list, run};

}  // namespace bench
