// What the suites share: options, the machine, the contestants, and the results they add.
#pragma once
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <utility>
#include <vector>
#include "contestant.h"
#include "machine.h"
#include "profile.h"
#include "timing.h"

namespace bench {

struct Options {
  std::vector<std::string> suites, peers;
  std::string filter, json, html, compare;
  std::vector<int> threads = {1};  // each case is run with each of these
  std::vector<skua_dtype> types;   // and in each of these
  std::string isa;                 // the cap; "" = none
  int cpu = -1;
  bool quick = false, list = false, choices = false, help = false;
};
constexpr int suite_count = 7, suites_on_request = 2;  // the last ones

// False after a message on stderr.
bool parse_options(int argc, char** argv, Options* options);
void print_help();
extern const char* const suite_names[suite_count];

struct PeerTime {
  std::string name;
  double ns = 0, noise = 0;
};

struct StepTime {
  std::string name, algorithm, kernel;  // "conv2d_f32/3x3s1_56x56x64-64"
  double peak_share = -1;               // on a device
  double ns = 0, gflops = 0, f32_ns = 0;  // f32_ns: our own f32 layer, where the type is another
  std::vector<PeerTime> peers;
  Loss loss;                            // one thread only
  std::string larger;                   // of a series: the larger layer that takes less time, "" = there is none,
  double longer = 0;                    // and how much longer this one takes, as a share of that one's
};

struct Result {
  std::string suite, name, op, algorithm, kernel, isa;
  skua_dtype type = SKUA_DTYPE_F32, arithmetic = SKUA_DTYPE_F32;  // of maps; of products, where their rate is another
  int threads = 1;
  // -1: not known; bandwidth: GB/s of operands
  double ns = 0, noise = 0, gflops = 0, bandwidth = 0, peak_share = -1, regret = -1, regret_tuned = -1, worst_step = -1;
  double flops = 0, bytes = 0;
  double alone = -1, line_ns = -1;  // Timing's
  size_t tried = 0;           // other choices that were forced
  std::string best_forced;    // what the best forced choice was, where regret is known
  std::string error;          // "unsupported: ...", "wrong result: ...": then there is no time
  std::vector<PeerTime> peers;
  // our own f32 in the same race, where the type or that of the weights is another; ns 0: not known
  PeerTime f32;
  // of a network: the largest difference of its scores from the f32 network's, as a share of the largest score
  double distance = -1;
  std::vector<StepTime> steps;  // of a network, or of a series
  StartUp cold, warm;         // of a network on a device: with an empty program cache, and with the one that this left
  double record_ns = -1;      // there: what the host does for each operator,
  double record_own_ns = -1;  // of that what is not the backend's and the driver's
  const PeerTime* best_peer() const;
};

struct Session {
  Options options;
  skua_device_info device = {};  // of --device
  Machine machine;
  std::unique_ptr<Contestant> ours, tuned;  // tuned: on a device, its choices measured
  std::vector<std::unique_ptr<Contestant>> peers;
  std::vector<std::string> missing_peers;
  std::vector<Result> results;
  std::regex filter;
  bool any_filter = false;
  size_t wrong = 0, unsupported = 0;
  struct Lack {
    size_t cases = 0;
    std::string why;  // of the first
  };
  std::map<std::pair<std::string, skua_dtype>, Lack> lacking;
  bool terminal = false;
  size_t done = 0, total = 0;

  bool wanted(const std::string& name) const { return !any_filter || std::regex_search(name, filter); }
  void use_threads(int threads);           // for what follows
  // Runs a case once for each number of threads.
  template <class Case> void each_thread_count(Case run) {
    for (int n : options.threads) {
      use_threads(n);
      run();
    }
  }
  // Notes a case that a peer cannot do in this type, with its reason.
  void lacks(const Contestant& peer, skua_dtype type, const std::string& why);
  // the time and what follows from it; bytes: of operands, for the roofline
  void set_time(Result& r, const Timing& t, double bytes) const;
  std::vector<std::pair<skua_dtype, int>> kinds_of_run() const;  // every type with every number of threads
  const Result* one_thread(const Result& of) const;  // the same case with one thread; NULL when it was not run
  void progress(const std::string& name);  // "[12/300] name" on a terminal, nothing elsewhere
  void add(Result result);                 // prints its line
};

// --choices: what our library would do for each of these layers. No clock runs.
void print_choices(const Session& session);

// Each suite lists the names of its cases when it is not to run them.
struct Suite {
  std::vector<std::string> (*list)(const Session&);
  void (*run)(Session&, const std::vector<std::string>& names);
};
extern const Suite machine_suite, overhead_suite, kernels_suite, layers_suite, networks_suite, regret_suite,
    steps_suite;

// Compares a result with the formula in double precision at some places, and with another contestant's everywhere. "" =
// good. kernel: ours; NULL = a peer's result, which may be summed in halves.
std::string check_against_formula(const Layer& layer, const Operands& operands, const float* got,
                                  const std::string* kernel);
std::string check_against(const Layer& layer, const float* ours, const float* theirs);
std::string check_close(const std::vector<float>& ours, const std::vector<float>& theirs, double relative);

// --device: the suites that are of a device, its limits as the machine's, and what is printed about both.
// begin_device() is false after a message.
bool is_device_suite(const std::string& name);
bool begin_device(Session& session);
void print_device(const Session& session);
void print_numerics();  // where they are not the default
// A contestant that finds its programs in the file that another, thrown away, left: what starting costs. NULL with a
// reason.
std::unique_ptr<Contestant> start_on_device(const Corpus& network, Result& r, std::string* why);
// docs/numerics.md: of the scores' differences between a device and the CPU, as a share of the largest
double score_bound(const Corpus& network);
void print_device_network(const Session& session, const Result& r);

bool write_json(const Session& session, const std::string& path);
bool write_html(const Session& session, const std::string& path);
// Reads an earlier JSON and prints what changed. False after a message when the file is not one.
bool load_results(const std::string& path, std::vector<Result>* results);
void print_comparison(const Session& session, const std::vector<Result>& earlier);

std::string duration(double ns);  // "12.3 us"

}  // namespace bench
