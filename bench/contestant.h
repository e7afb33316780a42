// What takes part in a race: this library, and the peers that were found when the program was built or started.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>
#include "corpus.h"
#include "layer.h"

namespace bench {

// A feature map in memory: pixels `stride` elements apart. Where the layer is of another type than f32, data is the
// address of elements of that type.
struct View {
  float* data = nullptr;
  size_t stride = 0;
};

// One layer made ready: weights packed, sizes set up, everything allocated.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual void run() = 0;
  // By a device's own clock: nanoseconds of one of so many runs in a row. < 0: it has none, run() is timed.
  virtual double device_ns(size_t /*calls*/) { return -1; }
  // brings the result to the output view, outside of the timing, where run() left it in another layout
  virtual void fetch() {}
  virtual std::string algorithm() const { return ""; }
  virtual std::string kernel() const { return ""; }
  virtual std::string plan() const { return ""; }  // all that was chosen, as text: equal texts are equal plans
};

// What it takes to make a network ready on a device, in nanoseconds: the context (the driver's own start), packing and
// uploading weights, plans (which compile programs or find them in a file), and the first run.
struct StartUp {
  double context_ns = 0, create_ns = 0, plan_ns = 0, first_ns = 0;
  size_t programs = 0;  // 0: not known
  double ns() const { return plan_ns + first_ns; }
};

// A whole network, likewise.
class PreparedNetwork {
 public:
  virtual ~PreparedNetwork() = default;
  virtual void run() = 0;
  virtual void run_step(size_t step) = 0;                     // for the time per layer
  virtual void read(int tensor, std::vector<float>& out) = 0; // dense; the network's output, or the last step's input
  virtual std::string kernel(size_t) const { return ""; }
  virtual std::string algorithm(size_t) const { return ""; }
  // On a device: by its own clock as above, a step's too; what it took to get here; what the host does to record an
  // operator, nanoseconds; and of that the library without its backend and the driver.
  virtual double device_ns(size_t /*calls*/) { return -1; }
  virtual double step_device_ns(size_t) { return -1; }
  virtual const StartUp* start_up() const { return nullptr; }
  virtual double record_ns() { return -1; }
  virtual double record_own_ns() { return -1; }
};

class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual const char* name() const = 0;
  virtual std::string version() const { return ""; }
  // Its workers. Idle ones that spin would hold a core while another contestant is timed: wake() readies them for a
  // turn, park() puts them to sleep after it. use_threads() comes before anything is prepared for that number of
  // threads.
  virtual void use_threads(int) {}
  virtual void wake() {}
  virtual void park() {}
  // NULL with a reason when it has no such operator. The operands stay until the Prepared is gone. weights and bias:
  // values of the layer's type, as floats.
  virtual std::unique_ptr<Prepared> prepare(const Layer& layer, const float* weights, const float* bias, View x,
                                            View second, View y, std::string* why) = 0;
  // An expand, a depthwise and a project layer after each other (is_block() in corpus.h) as one operator; weights and
  // bias: three each. NULL: it has none, or it gains nothing.
  virtual bool has_blocks() const { return false; }
  virtual std::unique_ptr<Prepared> prepare_block(const Step*, const std::vector<float>*, const std::vector<float>*,
                                                  View /*x*/, View /*second*/, View /*y*/) {
    return nullptr;
  }
  virtual std::unique_ptr<PreparedNetwork> prepare_network(const Corpus& network, std::string* why);
};

// The highest instruction set that contestants may use (--isa); "" = no cap. Set before any of them is made: peers take
// theirs from the environment.
extern std::string isa_cap;

// Whether AMX is refused to this process and so to all contestants (--without-amx), and refuses it: before any of them
// is made. false: it cannot be.
extern bool without_amx;
bool refuse_amx();

// What products and convolutions of this library may trade for speed (--numerics). Set before any contestant is made.
extern skua_numerics bench_numerics;
const char* numerics_name(skua_numerics numerics);

// This library.
struct SkuaOptions {
  std::string filter;        // a kernel filter; "" = the library's own choice
  std::string isa;           // a cap of its own; "" = isa_cap
  skua_numerics numerics = bench_numerics;
  uint32_t wanted = 0;       // candidate of the plan, counted from 1 (core/tuning.h); 0 = the library's own choice
  // measured choices: skua_op_tune() before the plan. NULL from prepare() where that is not supported
  bool tune = false;
  skua_device device = SKUA_DEVICE_CPU;
  std::string program_cache = "";  // of a device; "" = none
  std::string name = "skua";
};
std::unique_ptr<Contestant> make_skua(const SkuaOptions& options = {});

// How many candidates the plan of this layer has with these weights; 0 where the library keeps that to itself (a shared
// one).
size_t library_candidates(Contestant& ours, const Layer& layer, const float* weights, const float* bias);

// Its create call alone, and the tensors that a plan of the layer takes, for timing the calls themselves. `ours` comes
// from make_skua().
skua_status library_create(Contestant& ours, const Layer& layer, const Constants& constants, skua_op** op);
// strides: pixels', 0 = dense
size_t library_inputs(const Layer& layer, skua_tensor inputs[2], skua_tensor* out = nullptr, size_t x_stride = 0,
                      size_t second_stride = 0, size_t y_stride = 0);
skua_context* library_context(Contestant& ours);
double library_start_ns(Contestant& ours);  // what making its context took
bool library_tunes(Contestant& ours);       // SkuaOptions::tune

// The device of --device, set before any contestant is made. There the peers are others: this library on the CPU, and
// products on the device.
extern skua_device bench_device;
inline bool on_device() { return bench_device.api != SKUA_DEVICE_API_CPU; }

// Peers, by name: "xnnpack", "onednn", "openblas", "blis"; on a device "cpu", "clblast", "cublas". Those this build
// knows and finds; `missing` gets a line for each of the others.
const std::vector<std::string>& peer_names();
std::vector<std::unique_ptr<Contestant>> find_peers(const std::vector<std::string>& names,
                                                    std::vector<std::string>* missing);

// Gives the threads of an OpenMP runtime in this process something to do, and ends them. Nothing where there is none.
void wake_openmp();
void park_openmp();

#ifdef BENCH_XNNPACK
std::unique_ptr<Contestant> make_xnnpack(std::string* why);
#endif
#ifdef BENCH_ONEDNN
std::unique_ptr<Contestant> make_onednn(std::string* why);
#endif
std::unique_ptr<Contestant> make_blas(const char* name, std::string* why);

// 64-byte aligned memory with room behind it: XNNPACK reads a few bytes beyond its operands. Elements of narrower types
// take its first part.
class Memory {
 public:
  explicit Memory(size_t floats = 0) { resize(floats); }
  explicit Memory(const std::vector<float>& values, skua_dtype type = SKUA_DTYPE_F32) : Memory(values.size()) {
    store(values.data(), values.size(), type, data());
  }
  void resize(size_t floats);
  float* data() { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free { void operator()(float* p) const; };
  std::unique_ptr<float[], Free> data_;
  size_t size_ = 0;
};

}  // namespace bench
