#include "device_side.h"

#include <math.h>
#include <skua/skua.h>
#include <stdio.h>
#include <algorithm>

#include "timing.h"
#ifdef BENCH_INTERNALS
#include "gpu/device.h"
#endif

namespace bench {
namespace {

// Operators with their buffers on one stream. Every operator's workspace is the same memory: a stream does one thing
// after the other.
class Resident {
 public:
  struct Step {
    skua_op* op = nullptr;
    skua_plan* plan = nullptr;
    skua_buffer in[2] = {}, out = {};
    size_t n_inputs = 0;
  };
  skua_context* context;
  std::vector<Step> steps;
  std::vector<skua_device_buffer*> memory;
  skua_stream* stream = nullptr;
  skua_buffer workspace = {};
  size_t workspace_size = 0;
  StartUp start;
  double awake_until = 0;

  explicit Resident(skua_context* c) : context(c) {}
  ~Resident() {
    skua_stream_destroy(stream);  // waits
    for (Step& s : steps) {
      skua_plan_destroy(s.plan);
      skua_op_destroy(s.op);
    }
    for (skua_device_buffer* b : memory) skua_device_buffer_destroy(b);
  }
  bool allocate(size_t bytes, skua_buffer* to) {
    skua_device_buffer* made = nullptr;
    if (skua_device_buffer_create(context, std::max<size_t>(bytes, 16), &made) != SKUA_STATUS_OK) return false;
    memory.push_back(made);
    *to = {nullptr, made, 0};
    return true;
  }
  // In pieces: a discrete device is written by way of memory that both see, which need not be as large as its own.
  bool write(const skua_buffer& to, const void* from, size_t bytes) {
    return skua_device_buffer_write(to.device, to.offset, from, bytes) == SKUA_STATUS_OK;
  }
  bool read(const skua_buffer& from, void* to, size_t bytes) {
    return skua_device_buffer_read(from.device, from.offset, to, bytes) == SKUA_STATUS_OK;
  }

  bool add(Contestant& ours, const Layer& l, const float* weights, const float* bias, size_t x_stride,
           size_t second_stride, size_t y_stride) {
    Step& s = steps.emplace_back();
    const Constants constants(l, weights, bias);
    double at = now_ns();
    if (library_create(ours, l, constants, &s.op) != SKUA_STATUS_OK) return false;
    start.create_ns += now_ns() - at;
    skua_tensor in[2], out;
    s.n_inputs = library_inputs(l, in, &out, x_stride, second_stride, y_stride);
    if (library_tunes(ours) && skua_op_tune(s.op, in, s.n_inputs, nullptr) != SKUA_STATUS_OK) return false;
    at = now_ns();
    if (skua_op_plan(s.op, in, s.n_inputs, &out, 1, &s.plan) != SKUA_STATUS_OK) return false;
    start.plan_ns += now_ns() - at;
    workspace_size = std::max(workspace_size, skua_plan_workspace(s.plan, 1));
    return true;
  }
  // After the last add(): workspace, stream, the first run.
  bool finish() {
    if (workspace_size && !allocate(workspace_size, &workspace)) return false;
    if (skua_stream_create(context, &stream) != SKUA_STATUS_OK) return false;
    const double at = now_ns();
    if (!enqueue(0, steps.size()) || skua_stream_wait(stream) != SKUA_STATUS_OK) return false;
    start.first_ns = now_ns() - at;
#ifdef BENCH_INTERNALS
    start.programs = context->gpu->program_count;
#endif
    return true;
  }
  bool enqueue(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Step& s = steps[i];
      if (skua_plan_enqueue(s.plan, s.in, s.n_inputs, &s.out, 1, workspace_size ? &workspace : nullptr, stream) !=
          SKUA_STATUS_OK)
        return false;
    }
    return true;
  }
  void run(size_t first, size_t last) {
    if (!enqueue(first, last) || skua_stream_wait(stream) != SKUA_STATUS_OK)
      fprintf(stderr, "skua-bench: %s\n", skua_error_text());
  }
  // GPUs that were idle while the host prepared a layer need some tenths of a second of work to be at their full clock
  // again: an H100 falls to a sixth of it under Vulkan, and stays there through short samples.
  void wake(size_t first, size_t last) {
#ifdef BENCH_INTERNALS
    if (context->gpu->about.info.is_software) return;
#endif
    for (const double from = now_ns(); awake_until < from && now_ns() < from + 4e8;) run(first, last);
    awake_until = now_ns() + 5e8;
  }
  double ns(size_t first, size_t last, size_t calls) {
    wake(first, last);
    skua_event *begin = nullptr, *end = nullptr;
    double elapsed = -1;
    bool ok = skua_event_record(stream, &begin) == SKUA_STATUS_OK;
    for (size_t i = 0; i < calls && ok; ++i) ok = enqueue(first, last);
    ok = ok && skua_event_record(stream, &end) == SKUA_STATUS_OK && skua_stream_wait(stream) == SKUA_STATUS_OK &&
         skua_event_nanoseconds(begin, end, &elapsed) == SKUA_STATUS_OK;
    skua_event_destroy(begin);
    skua_event_destroy(end);
    awake_until = now_ns() + 5e8;
    return ok ? elapsed / double(calls) : -1;
  }
};

class DeviceLayer : public Prepared {
 public:
  Resident there;
  View y;
  size_t bytes = 0;
  explicit DeviceLayer(skua_context* c) : there(c) {}
  void run() override { there.run(0, 1); }
  void fetch() override { there.read(there.steps[0].out, y.data, bytes); }
  double device_ns(size_t calls) override { return there.ns(0, 1, calls); }
  std::string algorithm() const override { return skua_plan_algorithm(there.steps[0].plan); }
  std::string kernel() const override { return skua_plan_kernel(there.steps[0].plan); }
};

// The corpus's arena in one buffer of the device.
class DeviceNetwork : public PreparedNetwork {
 public:
  Resident there;
  const Corpus& network;
  Arena plan;
  skua_buffer arena = {};
  DeviceNetwork(skua_context* c, const Corpus& n) : there(c), network(n), plan(plan_memory(n, false)) {}
  skua_buffer at(int tensor) const {
    if (tensor < 0) return {};
    return {nullptr, arena.device, plan.offset[size_t(tensor)] * size_of(network.type)};
  }
  void run() override { there.run(0, there.steps.size()); }
  void run_step(size_t i) override { there.run(i, i + 1); }
  double device_ns(size_t calls) override { return there.ns(0, there.steps.size(), calls); }
  double step_device_ns(size_t i) override { return there.ns(i, i + 1, 1); }
  void read(int tensor, std::vector<float>& out) override {
    const FeatureMap& t = network.tensors[size_t(tensor)];
    const size_t size = size_of(network.type), stride = network.stride(tensor), pixels = t.h * t.w;
    std::vector<unsigned char> bytes(((pixels - 1) * stride + t.c) * size);
    out.assign(t.count(), NAN);
    if (!there.read(at(tensor), bytes.data(), bytes.size())) return;
    for (size_t p = 0; p < pixels; ++p) load(bytes.data() + p * stride * size, t.c, network.type, out.data() + p * t.c);
  }
  std::string kernel(size_t i) const override { return skua_plan_kernel(there.steps[i].plan); }
  std::string algorithm(size_t i) const override { return skua_plan_algorithm(there.steps[i].plan); }
  const StartUp* start_up() const override { return &there.start; }
  double record_ns() override {
    double best = INFINITY;  // what interrupts it is not the library's
    for (int i = 0; i < 15; ++i) {
      const double begin = thread_ns();
      const bool ok = there.enqueue(0, there.steps.size());
      best = std::min(best, (thread_ns() - begin) / double(there.steps.size()));
      if (!ok || skua_stream_wait(there.stream) != SKUA_STATUS_OK) return -1;
    }
    return best;
  }
#ifdef BENCH_INTERNALS
  double record_own_ns() override {
    skua::gpu::Device* const device = there.context->gpu;
    const skua::gpu::Api* const driver = device->api;
    skua::gpu::Api nothing = *driver;
    nothing.record = [](skua_stream*, const skua::gpu::Dispatch&) { return SKUA_STATUS_OK; };
    device->api = &nothing;
    const double ns = record_ns();
    device->api = driver;
    return ns;
  }
#endif
};

}  // namespace

std::unique_ptr<Prepared> device_layer(Contestant& ours, const Layer& l, const float* weights, const float* bias,
                                       View x, View second, View y, std::string* why) {
  auto made = std::make_unique<DeviceLayer>(library_context(ours));
  Resident& r = made->there;
  const size_t size = size_of(l.type);
  made->y = y;
  made->bytes = l.out_count() * size;
  // NaN in every float type: an element that is never written cannot pass
  const std::vector<unsigned char> poison(made->bytes, 0xff);
  Resident::Step* s = nullptr;
  if (!r.add(ours, l, weights, bias, 0, 0, 0) || !(s = &r.steps[0], r.allocate(l.in_count() * size, &s->in[0])) ||
      !r.write(s->in[0], x.data, l.in_count() * size) ||
      (s->n_inputs > 1 &&
       (!r.allocate(l.second_count() * size, &s->in[1]) || !r.write(s->in[1], second.data, l.second_count() * size))) ||
      !r.allocate(made->bytes, &s->out) || !r.write(s->out, poison.data(), made->bytes) || !r.finish()) {
    *why = skua_error_text();
    return nullptr;
  }
  return made;
}

std::unique_ptr<PreparedNetwork> device_network(Contestant& ours, const Corpus& network, std::string* why) {
  auto made = std::make_unique<DeviceNetwork>(library_context(ours), network);
  Resident& r = made->there;
  std::vector<float> input;
  fill(input, network.tensors[size_t(network.input)].count(), 7, network.type == SKUA_DTYPE_S8 ? 0 : -1, 1);
  r.start.context_ns = library_start_ns(ours);
  std::vector<unsigned char> typed(input.size() * size_of(network.type));
  store(input.data(), input.size(), network.type, typed.data());
  if (!r.allocate(made->plan.size * size_of(network.type), &made->arena) ||
      !r.write(made->at(network.input), typed.data(), typed.size())) {
    *why = skua_error_text();
    return nullptr;
  }
  r.steps.reserve(network.steps.size());
  for (size_t i = 0; i < network.steps.size(); ++i) {
    const Step& s = network.steps[i];
    const std::vector<float> weights = make_weights(s.layer, unsigned(100 + i)),
                             bias = make_bias(s.layer, unsigned(500 + i));
    if (!r.add(ours, s.layer, weights.data(), bias.empty() ? nullptr : bias.data(), network.stride(s.x),
               network.stride(s.second), network.stride(s.y))) {
      *why = s.layer.kind() + "/" + s.layer.label() + ": " + skua_error_text();
      return nullptr;
    }
    Resident::Step& step = r.steps.back();
    step.in[0] = made->at(s.x), step.in[1] = made->at(s.second), step.out = made->at(s.y);
  }
  if (!r.finish()) {
    *why = skua_error_text();
    return nullptr;
  }
  return made;
}

bool find_device(skua_device wanted, skua_device_info* info) {
  std::vector<skua_device_info> all(64);
  all.resize(std::min(skua_device_list(all.data(), all.size()), all.size()));
  for (const skua_device_info& d : all)
    if (d.device.api == wanted.api && d.device.index == wanted.index) return *info = d, true;
  return false;
}

Machine measure_device(Contestant& ours, const skua_device_info& info, bool quick) {
  Machine m;
  m.cpu = info.name;
  m.features = info.features;
  m.cores = info.compute_units;
  m.isa = skua_context_isa(library_context(ours));
  const auto time = [&](const Layer& l) {
    const std::vector<float> x(l.in_count(), 0.5f), weights(l.weight_count(), 0.5f);
    std::vector<float> y(l.out_count());
    std::string why;
    const auto made =
        device_layer(ours, l, weights.data(), nullptr, {const_cast<float*>(x.data()), 0}, {}, {y.data(), 0}, &why);
    double best = INFINITY;
    for (int i = 0; made && i < (quick ? 3 : 7); ++i) {
      const double once = made->device_ns(1);
      if (const double ns = once < 0 ? -1 : made->device_ns(size_t(std::clamp(2e6 / std::max(once, 1.0), 1.0, 200.0)));
          ns > 0)
        best = std::min(best, ns);
    }
    return best;
  };
  double flops = 0, ns = 0;
  if (!device_multiply_adds(library_context(ours), false, &flops, &ns)) {
    Layer l;
    l.op = Op::gemm;
    l.m = l.n = l.k = info.is_software ? 512 : 4096;
    flops = 2.0 * double(l.m) * double(l.n) * double(l.k);
    ns = time(l);
  }
  m.peaks.push_back({m.isa, flops / ns, SKUA_DTYPE_F32});
  // else sums are f32
  if (bench_numerics == SKUA_NUMERICS_FAST && device_multiply_adds(library_context(ours), true, &flops, &ns))
    m.peaks.push_back({m.isa, flops / ns, SKUA_DTYPE_F16});
  static const char* const names[] = {"256 KiB", "4 MiB", "32 MiB", "memory"};
  static const size_t sizes[] = {256u << 10, 4u << 20, 32u << 20, 1u << 30};  // read and written together
  for (int i = 0; i < 4; ++i) {
    const size_t bytes = i == 3 && info.is_software ? 128u << 20 : sizes[i];  // beyond any cache
    if (!device_copy(library_context(ours), bytes, &ns)) {
      Layer l;
      l.op = Op::unary;  // relu
      l.c = l.out_c = bytes / 2 / sizeof(float);
      ns = time(l);
    }
    m.levels.push_back({names[i], bytes, i == 3 ? SIZE_MAX : bytes, double(bytes) / ns, double(bytes) / ns});
  }
  return m;
}

bool dense_product(const Layer& l, const float* weights, const float* bias, bool half, DenseProduct* out,
                   std::string* why) {
  if (l.op != Op::gemm || l.activation != SKUA_ACTIVATION_NONE || l.residual || l.quantized_weights() || l.two_inputs)
    return *why = "products by a constant only", false;
  if (l.type != SKUA_DTYPE_F32 && (l.type != SKUA_DTYPE_F16 || !half))
    return *why = std::string("no ") + skua_dtype_name(l.type) + " on this device", false;
  const size_t size = size_of(l.type);
  out->a_bytes = l.m * l.k * size;
  out->c_bytes = l.m * l.n * size;
  out->b.resize(l.weight_count() * size);
  store(weights, l.weight_count(), l.type, out->b.data());
  if (!bias) return true;
  out->bias.resize(out->c_bytes);
  for (size_t row = 0; row < l.m; ++row) store(bias, l.n, l.type, out->bias.data() + row * l.n * size);
  return true;
}

}  // namespace bench
