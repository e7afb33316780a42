// A layer of the corpus with its operands in memory, and a contestant's way to do it.
#pragma once
#include <math.h>
#include <string.h>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>
#include "session.h"

namespace bench {

struct LayerCase {
  std::string name;
  Layer layer;
};
// every different layer of the corpus, in each of these
std::vector<LayerCase> layer_cases(const std::vector<skua_dtype>& types);

struct Entry {
  std::string name;
  Contestant* who = nullptr;
  std::vector<float> result;
  std::unique_ptr<Prepared> prepared;
  std::string algorithm() const { return prepared->algorithm(); }
  std::string choice() const { return prepared->algorithm() + " " + prepared->kernel(); }
  Racer racer() const {
    Prepared* const p = prepared.get();
    return {[p] { p->run(); }, who, [p](size_t calls) { return p->device_ns(calls); }};
  }
};

// Everybody reads and writes the same memory: where a tensor happens to lie in the cache's sets can be worth a third of
// the time.
struct Maps {
  Memory x, second, y;
};

struct LayerBench {
  const Layer& layer;
  Operands operands;
  std::shared_ptr<Maps> maps;  // may be those of a larger layer: the last one made fills them
  explicit LayerBench(const Layer& l, std::shared_ptr<Maps> of_larger = nullptr)
      : layer(l), operands(make_operands(l, 1)), maps(std::move(of_larger)) {
    if (!maps)
      maps = std::make_shared<Maps>(
          Maps{Memory(operands.x.size()), Memory(operands.second.size()), Memory(l.out_count())});
    store(operands.x.data(), operands.x.size(), l.type, maps->x.data());
    store(operands.second.data(), operands.second.size(), l.type, maps->second.data());
  }

  // Packed, planned and run once. Without `prepared` when there is no such operator.
  Entry prepare(Contestant& who, std::string* why) {
    Entry e;
    e.name = who.name();
    e.who = &who;
    begin_turn(&who);
    e.prepared = who.prepare(layer, operands.weights.data(), operands.bias.empty() ? nullptr : operands.bias.data(),
                             {maps->x.data(), 0}, {operands.second.empty() ? nullptr : maps->second.data(), 0},
                             {maps->y.data(), 0}, why);
    if (e.prepared) {
      // NaN in every type: an element that is never written cannot pass
      memset(maps->y.data(), 0xff, maps->y.size() * sizeof(float));
      e.prepared->run();
      e.prepared->fetch();
      e.result.resize(layer.out_count());
      load(maps->y.data(), e.result.size(), layer.type, e.result.data());
    }
    end_turn(&who);
    return e;
  }
};

// Calls run_case for those of `names`, with every number of threads that was asked for.
void each_layer_case(Session& session, const std::vector<std::string>& names,
                     void (*run_case)(Session&, const LayerCase&));

// What layers and regret write down of a case before the clock runs: its sizes; our way to do it, checked. The error is
// set where there is none, or a wrong one.
Result result_of(const Session& session, const char* suite, const LayerCase& c);
Entry prepare_ours(Session& session, LayerBench& bench, Result& r);

// How much longer the library's choice takes than the best it could have made: every other algorithm and tile is forced
// and timed; the fastest race against the choice, and what seems to beat it races against it alone, so that noise does
// not look like regret. Shares of the best time; -1 = not known.
struct Regret {
  double regret = -1, tuned = -1;  // of the model's choice; of the choice after skua_op_tune()
  std::string best;                // algorithm and kernel of the best
  size_t tried = 0;                // other choices
  std::string wrong;               // a forced choice whose result differs
};
Regret measure_regret(LayerBench& bench, Entry& ours, bool tune);

}  // namespace bench
