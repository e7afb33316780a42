// --device: layers on a GPU by its own timestamps, resident in its memory, and the CPU's time beside it. No peers, no report: docs/benchmarks.md.
#include <stdio.h>
#include <string.h>
#include <algorithm>
#include <regex>

#include "layer_case.h"

namespace bench {
namespace {

struct DeviceRun {
  skua_context* context;
  skua_op* op = nullptr;
  skua_plan* plan = nullptr;
  skua_device_buffer *in[2] = {}, *out = nullptr, *workspace = nullptr;
  skua_stream* stream = nullptr;
  size_t n_inputs = 0;
  explicit DeviceRun(skua_context* c) : context(c) {}
  ~DeviceRun() {
    skua_stream_destroy(stream);
    for (skua_device_buffer* b : {in[0], in[1], out, workspace}) skua_device_buffer_destroy(b);
    skua_plan_destroy(plan);
    skua_op_destroy(op);
  }
  bool upload(const std::vector<float>& values, skua_dtype type, skua_device_buffer** to) {
    Memory memory(values, type);
    const size_t bytes = values.size() * skua_dtype_bits(type) / 8;
    return skua_device_buffer_create(context, bytes, to) == SKUA_STATUS_OK && skua_device_buffer_write(*to, 0, memory.data(), bytes) == SKUA_STATUS_OK;
  }
  bool prepare(Contestant& who, const Layer& l) {
    const Operands o = make_operands(l, 1);
    if (library_create(who, l, o.weights.data(), o.bias.empty() ? nullptr : o.bias.data(), &op) != SKUA_STATUS_OK) return false;
    skua_tensor tensors[2];
    n_inputs = library_inputs(l, tensors);
    if (skua_op_plan(op, tensors, n_inputs, nullptr, 0, &plan) != SKUA_STATUS_OK) return false;
    const size_t space = skua_plan_workspace(plan, 1);
    return upload(o.x, l.type, &in[0]) && (n_inputs < 2 || upload(o.second, l.type, &in[1])) &&
           skua_device_buffer_create(context, l.out_count() * skua_dtype_bits(l.type) / 8, &out) == SKUA_STATUS_OK &&
           (!space || skua_device_buffer_create(context, space, &workspace) == SKUA_STATUS_OK) && skua_stream_create(context, &stream) == SKUA_STATUS_OK;
  }
  // Nanoseconds of one, of `times` in a row; < 0: a status.
  double time(int times) {
    const skua_buffer from[2] = {{nullptr, in[0], 0}, {nullptr, in[1], 0}}, to = {nullptr, out, 0}, space = {nullptr, workspace, 0};
    skua_event *begin = nullptr, *end = nullptr;
    double ns = -1;
    bool ok = skua_event_record(stream, &begin) == SKUA_STATUS_OK;
    for (int i = 0; i < times && ok; ++i) ok = skua_plan_enqueue(plan, from, n_inputs, &to, 1, workspace ? &space : nullptr, stream) == SKUA_STATUS_OK;
    ok = ok && skua_event_record(stream, &end) == SKUA_STATUS_OK && skua_stream_wait(stream) == SKUA_STATUS_OK && skua_event_nanoseconds(begin, end, &ns) == SKUA_STATUS_OK;
    skua_event_destroy(begin);
    skua_event_destroy(end);
    return ok ? ns / times : -1;
  }
};

double cpu_time(Contestant& cpu, const Layer& l) {
  LayerBench bench(l);
  std::string why;
  Entry e = bench.prepare(cpu, &why);
  if (!e.prepared) return -1;
  double best = 1e300;
  for (int i = 0; i < 5; ++i) {
    const double start = now_ns();
    e.prepared->run();
    best = std::min(best, now_ns() - start);
  }
  return best;
}

}  // namespace

int run_on_device(Session& s) {
  std::vector<skua_device_info> all(32);
  all.resize(std::min(skua_device_list(all.data(), all.size()), all.size()));
  const skua_device wanted = s.options.device;
  const skua_device_info* info = nullptr;
  for (const skua_device_info& d : all)
    if (d.device.api == wanted.api && d.device.index == wanted.index) info = &d;
  SkuaOptions how;
  how.device = wanted;
  const auto gpu = make_skua(how), cpu = make_skua();
  if (!gpu || !cpu || !info) return 1;
  printf("skua %s on %s (%s)%s\n%-52s %12s %12s %12s\n", skua_version_string(), info->name, info->driver, info->is_software ? "\nThis device computes on the CPU: its times say nothing about GPUs." : "", "", "device",
         "", "CPU, 1 core");
  size_t left_out = 0;
  std::string why;
  for (const LayerCase& c : layer_cases(s.options.types)) {
    if (!s.wanted(c.name)) continue;
    DeviceRun run(library_context(*gpu));
    double best = -1;
    if (run.prepare(*gpu, c.layer) && run.time(1) >= 0) {  // the first may compile
      const double once = run.time(1);
      const int times = std::max(1, std::min(50, int(5e6 / std::max(once, 1.0))));
      for (int i = 0; i < (s.options.quick ? 3 : 10); ++i)
        if (const double ns = run.time(times); ns > 0 && (best < 0 || ns < best)) best = ns;
    }
    if (best < 0) {
      if (!left_out++) why = c.name + ": " + skua_error_text();
      continue;
    }
    const double flops = c.layer.multiplies() ? c.layer.flops() : 0;
    char rate[32];
    snprintf(rate, sizeof rate, flops > 0 ? "%.1f GFLOP/s" : "%.1f GB/s", (flops > 0 ? flops : c.layer.bytes()) / best);
    const double host = cpu_time(*cpu, c.layer);
    printf("%-52s %12s %12s %12s  %s\n", c.name.c_str(), duration(best).c_str(), rate, host > 0 ? duration(host).c_str() : "", skua_plan_kernel(run.plan));
    fflush(stdout);
  }
  if (left_out) printf("%zu layers left out, the first: %s\n", left_out, why.c_str());
  return 0;
}

}  // namespace bench
