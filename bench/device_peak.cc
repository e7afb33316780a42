// The device's limits, by a kernel of skua-bench's own (peak.k) that goes through the library's backends.
#include "device_side.h"

#ifdef BENCH_PEAK_TEXT
#include "gpu/device.h"
#include "peak_text.h"

namespace bench {
namespace {

using namespace skua::gpu;

const KernelText texts[] = {
    {"peak", {"peak_opencl", "peak_vulkan"}, "peak", "", SKUA_DTYPE_F32, peak_source,
     "-DNAME=peak -DSTORE16=0 -DV=1", peak0_spirv, peak0_bytes, {}},
    {"peak_f16", {"peak_f16_opencl", "peak_f16_vulkan"}, "peak", "", SKUA_DTYPE_F32, peak_source,
     "-DNAME=peak -DSTORE16=0 -DARITH16=1 -DV=1", peak1_spirv, peak1_bytes, {}},
};

struct Run {
  skua_device_buffer *from = nullptr, *to = nullptr;
  skua_stream* stream = nullptr;
  ~Run() {
    skua_stream_destroy(stream);
    skua_device_buffer_destroy(from);
    skua_device_buffer_destroy(to);
  }
};

// Nanoseconds of one of `times` in a row, the shortest of several; < 0: a status.
double time(skua_context* context, const KernelText& text, bool copy, int32_t n, uint32_t groups, size_t from_bytes,
            size_t to_bytes) {
  Device* const device = context->gpu;
  const uint16_t threads = uint16_t(std::min(device->about.group_threads, 256u));
  Run r;
  const Program* program = nullptr;
  if (skua_device_buffer_create(context, from_bytes, &r.from) != SKUA_STATUS_OK ||
      skua_device_buffer_create(context, to_bytes, &r.to) != SKUA_STATUS_OK)
    return -1;
  const float start[8] = {0.5f, 0.5f, 0.5f, 0.5f, 0.25f, 0.25f, 0.25f, 0.25f};
  if (skua_device_buffer_write(r.from, 0, start, sizeof start) != SKUA_STATUS_OK ||
      skua_stream_create(context, &r.stream) != SKUA_STATUS_OK)
    return -1;
  if (device->api->program(device, {&text, {threads, 1, 1}, {copy}}, &program) != SKUA_STATUS_OK) return -1;
  Dispatch d = {};
  d.program = program;
  d.n_bindings = 2;
  d.bindings[0] = {r.from, 0, from_bytes, false};
  d.bindings[1] = {r.to, 0, to_bytes, true};
  d.n_arguments = 5;  // and the first work-group, 0
  d.arguments[0] = n, d.arguments[1] = int32_t(groups * threads);
  d.groups[0] = groups, d.groups[1] = d.groups[2] = 1;
  double best = -1;
  for (int i = 0, times = 1; i < 8; ++i) {
    skua_event *begin = nullptr, *end = nullptr;
    double ns = -1;
    bool ok = skua_event_record(r.stream, &begin) == SKUA_STATUS_OK;
    for (int k = 0; k < times && ok; ++k) ok = device->api->record(r.stream, d) == SKUA_STATUS_OK;
    ok = ok && skua_event_record(r.stream, &end) == SKUA_STATUS_OK && skua_stream_wait(r.stream) == SKUA_STATUS_OK &&
         skua_event_nanoseconds(begin, end, &ns) == SKUA_STATUS_OK && ns > 0;
    skua_event_destroy(begin);
    skua_event_destroy(end);
    if (!ok) return -1;
    if (i && (best < 0 || ns / times < best)) best = ns / times;
    if (i == 1) times = int(std::clamp(3e6 / ns, 1.0, 200.0));
  }
  return best;
}

uint32_t groups_of(const Device* device, uint32_t for_each_unit) {
  const uint32_t units = device->about.info.compute_units ? device->about.info.compute_units : 16,
                 most = device->about.group_count[0] ? device->about.group_count[0] : 65535;
  return std::min(units * for_each_unit, most);
}

}  // namespace

bool device_multiply_adds(skua_context* context, bool half, double* flops, double* ns) {
  const Device* const device = context->gpu;
  if (half && !device->about.f16_arithmetic) return false;
  const uint32_t groups = groups_of(device, 32), threads = std::min(device->about.group_threads, 256u);
  const int32_t rounds = device->about.info.is_software ? 16 : 512;
  *flops = 2.0 * 4 * 32 * double(rounds) * double(groups) * threads;
  *ns = time(context, texts[half], false, rounds, groups, 32, size_t(groups) * threads * 16);
  return *ns > 0;
}

bool device_copy(skua_context* context, size_t bytes, double* ns) {
  const uint32_t threads = std::min(context->gpu->about.group_threads, 256u);
  const size_t half = bytes / 2, vectors = half / 16;
  *ns = time(context, texts[0], true, int32_t(vectors),
             uint32_t(std::min<size_t>((vectors + threads - 1) / threads, groups_of(context->gpu, 64))), half, half);
  return *ns > 0;
}

}  // namespace bench
#else
namespace bench {
bool device_multiply_adds(skua_context*, bool, double*, double*) { return false; }
bool device_copy(skua_context*, size_t, double*) { return false; }
}  // namespace bench
#endif
