#include "device_side.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <algorithm>

namespace bench {

std::string isa_cap;
skua_device bench_device = SKUA_DEVICE_CPU;
skua_numerics bench_numerics = SKUA_NUMERICS_DEFAULT;
const char* numerics_name(skua_numerics numerics) {
  return numerics == SKUA_NUMERICS_FAST ? "fast" : numerics == SKUA_NUMERICS_STRICT ? "strict" : "default";
}

namespace {

// Steps of any contestant over one arena, in the corpus's order.
class Chain : public PreparedNetwork {
 public:
  const Corpus* network;
  Arena plan;
  Memory arena;
  std::vector<std::vector<float>> constants;
  // blocks: three steps in one, at the first of them; steps are there for the time per layer
  std::vector<std::unique_ptr<Prepared>> steps, blocks;

  float* at(float* base, size_t elements) const {
    return reinterpret_cast<float*>(reinterpret_cast<char*>(base) + elements * size_of(network->type));
  }
  View view(int tensor) {
    if (tensor < 0) return {};
    return {at(arena.data(), plan.offset[size_t(tensor)]), network->stride(tensor)};
  }
  void run() override {
    for (size_t i = 0; i < steps.size();) {
      (blocks[i] ? blocks[i] : steps[i])->run();
      i += blocks[i] ? 3 : 1;
    }
  }
  void run_step(size_t step) override { steps[step]->run(); }
  void read(int tensor, std::vector<float>& out) override {
    const FeatureMap& t = network->tensors[size_t(tensor)];
    const View v = view(tensor);
    out.resize(t.count());
    for (size_t p = 0; p < t.h * t.w; ++p) load(at(v.data, p * v.stride), t.c, network->type, out.data() + p * t.c);
  }
  std::string kernel(size_t step) const override { return steps[step]->kernel(); }
  std::string algorithm(size_t step) const override { return steps[step]->algorithm(); }
};

}  // namespace

std::unique_ptr<PreparedNetwork> Contestant::prepare_network(const Corpus& network, std::string* why) {
  auto chain = std::make_unique<Chain>();
  chain->network = &network;
  chain->plan = plan_memory(network, has_blocks());
  chain->arena.resize(chain->plan.size);
  std::vector<float> input;
  fill(input, network.tensors[size_t(network.input)].count(), 7, network.type == SKUA_DTYPE_S8 ? 0 : -1, 1);
  store(input.data(), input.size(), network.type, chain->view(network.input).data);
  for (size_t i = 0; i < network.steps.size(); ++i) {
    const Step& s = network.steps[i];
    std::vector<float>& weights = chain->constants.emplace_back(make_weights(s.layer, unsigned(100 + i)));
    const std::vector<float> bias = make_bias(s.layer, unsigned(500 + i));
    auto step = prepare(s.layer, weights.data(), bias.empty() ? nullptr : bias.data(), chain->view(s.x),
                        chain->view(s.second), chain->view(s.y), why);
    if (!step) {
      *why = s.layer.kind() + "/" + s.layer.label() + ": " + *why;
      return nullptr;
    }
    weights = {};
    chain->steps.push_back(std::move(step));
  }
  chain->blocks.resize(network.steps.size());
  for (size_t i = 0; has_blocks() && i < network.steps.size(); ++i) {
    if (!is_block(network, i)) continue;
    const Step* s = &network.steps[i];
    std::vector<float> weights[3], bias[3];
    for (size_t k = 0; k < 3; ++k)
      weights[k] = make_weights(s[k].layer, unsigned(100 + i + k)),
      bias[k] = make_bias(s[k].layer, unsigned(500 + i + k));
    chain->blocks[i] =
        prepare_block(s, weights, bias, chain->view(s[0].x), chain->view(s[2].second), chain->view(s[2].y));
  }
  return chain;
}

void Memory::Free::operator()(float* p) const { free(p); }

void Memory::resize(size_t floats) {
  void* p = nullptr;
  if (posix_memalign(&p, 64, (floats + 64) * sizeof(float)) != 0) abort();
  data_.reset(static_cast<float*>(p));
  std::fill_n(data(), floats + 64, 0.0f);
  size_ = floats;
}

#if defined(BENCH_ONEDNN) || defined(BENCH_BLAS)  // a static program without peers has no need of dlsym
void wake_openmp() {
  static const auto parallel =
      reinterpret_cast<void (*)(void (*)(void*), void*, unsigned, unsigned)>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  if (parallel) parallel([](void*) {}, nullptr, 0, 0);
}

void park_openmp() {
  static const auto pause = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "omp_pause_resource_all"));
  if (pause) pause(1);  // omp_pause_soft
}
#endif

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names = {"xnnpack", "onednn", "openblas", "blis"},
                                        of_device = {"cpu", "clblast", "cublas"};
  return on_device() ? of_device : names;
}

std::vector<std::unique_ptr<Contestant>> find_peers(const std::vector<std::string>& names,
                                                    std::vector<std::string>* missing) {
  std::vector<std::unique_ptr<Contestant>> found;
  for (const std::string& name : names) {
    std::string why = "not in this build";
    std::unique_ptr<Contestant> peer;
    skua_device_info device;
    if (on_device() && find_device(bench_device, &device)) {
      SkuaOptions cpu;
      cpu.name = name;
      peer = name == "cpu"       ? make_skua(cpu)
             : name == "clblast" ? make_clblast(device, &why)
                                 : make_cublas(device, &why);
    }
#ifdef BENCH_XNNPACK
    if (name == "xnnpack") peer = make_xnnpack(&why);
#endif
#ifdef BENCH_ONEDNN
    if (name == "onednn") peer = make_onednn(&why);
#endif
#ifdef BENCH_BLAS
    if (name == "openblas" || name == "blis") peer = make_blas(name.c_str(), &why);
#endif
    if (peer) found.push_back(std::move(peer));
    else if (missing) missing->push_back(name + ": " + why);
  }
  return found;
}

}  // namespace bench
