// oneDNN 2.x, with f32 and bf16 (f16 is refused by every primitive of it). Convolutions and products let the library
// choose every layout (format_tag::any); what has to be brought into it is reordered outside of the timing for single
// layers, and inside it for networks. A single layer tries the channels-last layout too, and a product tries matmul and
// inner product: the faster one races.
#include <dlfcn.h>
#include <math.h>

#include "peer_onednn.h"
#include "timing.h"

namespace bench {
namespace {

using namespace onednn;

void execute(Engine& cpu, const Call& call) {
  call.primitive.execute(cpu.stream, call.args);
  cpu.stream.wait();
}

// s8 with a zero point of -128 to u8 with one of 0, and back.
void flip(const void* from, size_t bytes, void* to) {
  for (size_t i = 0; i < bytes; ++i)
    static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i] ^ 0x80;
}

class OnednnLayer : public Prepared {
 public:
  Engine& cpu;
  Places places;
  Built built;
  std::string variant;
  memory result;  // over the caller's output
  Memory x, second;      // of s8: the operands as u8
  size_t flipped = 0;    // bytes of a result of u8
  explicit OnednnLayer(Engine& e) : cpu(e), places(e) {}
  void run() override { execute(cpu, built.call); }
  void fetch() override {
    dnnl::reorder(built.output, result).execute(cpu.stream, built.output, result);
    cpu.stream.wait();
    flip(result.get_data_handle(), flipped, result.get_data_handle());
  }
  std::string algorithm() const override { return variant; }
};

class OnednnNetwork : public PreparedNetwork {
 public:
  Engine& cpu;
  Places places;
  const Corpus* network;
  std::vector<std::vector<Call>> steps;
  std::vector<memory> tensors;
  explicit OnednnNetwork(Engine& e) : cpu(e), places(e) {}
  void run() override {
    for (auto& calls : steps)
      for (const Call& c : calls) execute(cpu, c);
  }
  void run_step(size_t step) override {
    for (const Call& c : steps[step]) execute(cpu, c);
  }
  void read(int tensor, std::vector<float>& out) override {
    const FeatureMap& t = network->tensors[size_t(tensor)];
    out.resize(t.count());
    memory& from = tensors[size_t(tensor)];
    const memory::desc md =
        from.get_desc().data.ndims == 2 ? memory::desc({1, d(t.c)}, f32, tag::ab) : map_desc(f32, t.h, t.w, t.c, t.c);
    memory to(md, cpu.engine, out.data());
    dnnl::reorder(from, to).execute(cpu.stream, from, to);
    cpu.stream.wait();
    if (network->type == SKUA_DTYPE_S8)
      for (float& v : out) v *= byte_scale;
  }
};

class Onednn : public Contestant {
 public:
  Engine cpu;
  const char* name() const override { return "onednn"; }
  void use_threads(int threads) override {  // it runs on OpenMP, which was loaded with it
    if (auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
  }
  void wake() override { wake_openmp(); }
  void park() override { park_openmp(); }
  std::string version() const override {
    const dnnl_version_t* v = dnnl_version();
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }

  std::unique_ptr<Prepared> prepare(const Layer& l, const float* weights, const float* bias, View x, View second,
                                    View y, std::string* why) override {
    const bool flat =
        l.op == Op::gemm || l.op == Op::softmax || ((l.op == Op::unary || l.op == Op::binary) && l.h * l.w == 1);
    const size_t rows = l.op == Op::gemm || l.op == Op::softmax ? l.m : 1;
    const auto desc = [&](size_t h, size_t w, size_t c, size_t stride) {
      return flat ? memory::desc({d(rows), d(c)}, data_type(l.type), tag::ab)
                  : map_desc(data_type(l.type), h, w, c, stride ? stride : c);
    };
    const size_t in_c = l.op == Op::gemm      ? l.k
                        : l.op == Op::softmax ? l.n
                                              : l.c,
                 out_c = l.op == Op::gemm || l.op == Op::softmax ? l.n : l.out_c;
    std::unique_ptr<OnednnLayer> best;
    double best_ns = INFINITY;
    *why = "no such operator";
    if (l.quantized_weights()) return nullptr;
    const View given_x = x, given_second = second;
    for (int variant = 0; variant < (has_winograd(l) && l.type != SKUA_DTYPE_S8 ? 3
                                     : l.multiplies()                           ? 2
                                                                                : 1);
         ++variant)
      try {
        auto made = std::make_unique<OnednnLayer>(cpu);
        if (l.type == SKUA_DTYPE_S8) {
          made->x.resize(l.in_count() / sizeof(float) + 1);
          made->second.resize(l.second_count() / sizeof(float) + 1);
          made->flipped = l.out_count();
          flip(given_x.data, l.in_count(), made->x.data());
          if (second.data) flip(given_second.data, l.second_count(), made->second.data());
          x.data = made->x.data();
          if (second.data) second.data = made->second.data();
        }
        memory src(desc(l.h, l.w, in_c, x.stride), cpu.engine, x.data), other;
        if (l.two_inputs)
          other = memory(memory::desc({d(l.k), d(l.n)}, data_type(l.type), memory::dims{1, d(l.k)}), cpu.engine,
                         second.data);
        else if (second.data)
          other = memory(l.broadcast ? desc(1, 1, l.c, second.stride) : desc(l.out_h, l.out_w, out_c, second.stride),
                         cpu.engine, second.data);
        if (l.residual) {  // the sum overwrites it
          memory copy = made->places.get(other.get_desc());
          dnnl::reorder(other, copy).execute(cpu.stream, other, copy);
          other = copy;
        }
        if (!build(cpu, made->places, l, weights, bias, src, &other,
                   variant == 0   ? Layout::any
                   : variant == 1 ? Layout::nhwc
                                  : Layout::winograd,
                   variant ? Product::matmul : Product::inner, made->built))
          continue;
        made->result = memory(desc(l.out_h, l.out_w, out_c, y.stride), cpu.engine, y.data);
        made->variant = l.op == Op::gemm ? (variant ? "matmul" : "inner_product")
                        : variant == 0   ? "any"
                        : variant == 1   ? "nhwc"
                                         : "winograd";
        for (const Call& c : made->built.reorders) execute(cpu, c);
        double ns = INFINITY;
        made->run();
        for (int i = 0; i < 3; ++i) {
          const double start = busy_ns();
          made->run();
          ns = std::min(ns, busy_ns() - start);
        }
        if (ns < best_ns) {
          best_ns = ns;
          best = std::move(made);
        }
      } catch (const dnnl::error& e) {
        *why = e.what();
      }
    return best;
  }

  std::unique_ptr<PreparedNetwork> prepare_network(const Corpus& net, std::string* why) override try {
    auto made = std::make_unique<OnednnNetwork>(cpu);
    made->network = &net;
    made->tensors.resize(net.tensors.size());
    std::vector<int> last(net.tensors.size(), -1);
    for (size_t i = 0; i < net.steps.size(); ++i)
      for (int t : {net.steps[i].x, net.steps[i].second})
        if (t >= 0) last[size_t(t)] = int(i);
    const FeatureMap& in = net.tensors[size_t(net.input)];
    made->tensors[size_t(net.input)] = memory(map_desc(data_type(net.type), in.h, in.w, in.c, in.c), cpu.engine);
    std::vector<float> input;
    fill(input, in.count(), 7, net.type == SKUA_DTYPE_S8 ? 0 : -1, 1);
    void* const to = made->tensors[size_t(net.input)].get_data_handle();
    store(input.data(), input.size(), net.type, to);
    if (net.type == SKUA_DTYPE_S8) flip(to, in.count(), to);

    for (size_t i = 0; i < net.steps.size(); ++i) {
      const Step& s = net.steps[i];
      std::vector<Call>& calls = made->steps.emplace_back();
      const auto ready = [&](int tensor) -> memory& {
        memory& m = made->tensors[size_t(tensor)];
        if (m) return m;
        std::vector<memory::desc> parts;  // a concatenation, on its first use
        std::vector<memory> sources;
        for (size_t t = 0; t < net.tensors.size(); ++t)
          if (net.tensors[t].parent == tensor)
            parts.push_back(made->tensors[t].get_desc()), sources.push_back(made->tensors[t]);
        const dnnl::concat::primitive_desc pd(1, parts, cpu.engine);
        m = made->places.get(pd.dst_desc());
        Call call{dnnl::concat(pd), {{DNNL_ARG_DST, m}}};
        for (size_t t = 0; t < sources.size(); ++t) call.args[int(DNNL_ARG_MULTIPLE_SRC + t)] = sources[t];
        calls.push_back(call);
        for (const memory& source : sources) made->places.release(source);
        return m;
      };
      const memory src = ready(s.x);
      memory second;
      if (s.second >= 0) second = ready(s.second);
      const std::vector<float> weights = make_weights(s.layer, unsigned(100 + i)),
                               bias = make_bias(s.layer, unsigned(500 + i));
      Built built;
      const auto with = [&](Layout layout) {
        built = {};
        return build(cpu, made->places, s.layer, weights.data(), bias.empty() ? nullptr : bias.data(), src, &second,
                     layout, Product::inner, built);
      };
      bool done = false;
      // faster than the direct form on every such layer that was measured
      if (has_winograd(s.layer) && s.layer.c >= 32 && net.type != SKUA_DTYPE_S8) try {
          done = with(Layout::winograd);
        } catch (const dnnl::error&) {  // not for this shape
        }
      if (!done && !with(Layout::any)) {
        *why = s.layer.kind() + "/" + s.layer.label() + ": no such operator";
        return nullptr;
      }
      for (Call& c : built.reorders) {
        made->places.release(c.args[DNNL_ARG_DST]);
        calls.push_back(c);
      }
      calls.push_back(built.call);
      made->tensors[size_t(s.y)] = built.output;
      for (int t : {s.x, s.second}) {
        if (t < 0 || last[size_t(t)] != int(i) || t == net.input) continue;
        if (t == s.second && s.layer.residual) continue;  // the result lies there
        if (i + 1 < net.steps.size()) made->places.release(made->tensors[size_t(t)]);
      }
    }
    return made;
  } catch (const dnnl::error& e) {
    *why = e.what();
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Contestant> make_onednn(std::string* why) try {
  if (!isa_cap.empty()) {
    const std::map<std::string, const char*> caps = {{"sse41", "SSE41"}, {"avx2", "AVX2"}};
    const auto cap = caps.find(isa_cap);
    if (cap == caps.end() || dnnl::set_max_cpu_isa(isa_cap == "avx2" ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41) !=
                                 dnnl::status::success) {
      *why = "cannot be capped at " + isa_cap;
      return nullptr;
    }
  }
  return std::make_unique<Onednn>();
} catch (const dnnl::error& e) {
  *why = e.what();
  return nullptr;
}

}  // namespace bench
