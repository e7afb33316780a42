// Random operators, shapes, strides and offsets on every GPU of the machine against the CPU. A case follows from its
// number alone, so that a failure can be run again:
//   SKUA_FUZZ_FIRST=N    the first case (default 1)
//   SKUA_FUZZ_SECONDS=N  goes on for so long (default: a fixed number of cases)
#include <cfloat>
#include <chrono>
#include <cstdlib>

#include "gpu/device.h"
#include "tests/support/gpu.h"
#include "tests/support/random_op.h"

namespace {
using namespace skua_test;

struct Tally {
  size_t compared = 0, invalid = 0, unsupported = 0;
};

// A device that starts at most so many work-groups in each dimension (0: as it is), or has no subgroups.
struct Fewer {
  skua::gpu::Device& device;
  const skua::gpu::Description before;
  Fewer(skua::gpu::Device& d, uint32_t groups, bool subgroups) : device(d), before(d.about) {
    for (uint32_t& count : d.about.group_count) count = groups ? groups : count;
    d.about.subgroup_sums = before.subgroup_sums && subgroups;
  }
  ~Fewer() { device.about = before; }
  Fewer(const Fewer&) = delete;
};

void try_case(uint32_t number, const Context& cpu, const std::vector<std::unique_ptr<Context>>& gpus, Tally& tally) {
  RandomOp fuzz(number, gpu_types());
  const Trial t = fuzz.draw();
  const size_t skip = fuzz.odds(3) ? size_t(fuzz.rng.integer(0, 7)) : 0;
  // Kernels that no software device would choose, and more work-groups than a dispatch starts.
  static const char* const filters[] = {"",         "",           "*_image_*", "*_tile_*",  "tile*",
                                        "*_v4x8_*", "*_v4x128_*", "gemv_*",    "*winograd*"};
  const char* const filter = filters[fuzz.rng.integer(0, 8)];
  const uint32_t groups = fuzz.odds(5) ? uint32_t(fuzz.rng.integer(1, 6)) : 0;
  const bool subgroups = !fuzz.odds(3);
  SCOPED_TRACE("SKUA_FUZZ_FIRST=" + std::to_string(number) + ": " + t.text + ", offset " + std::to_string(skip) +
               ", filter " + filter + ", groups " + std::to_string(groups) + (subgroups ? "" : ", no subgroups"));
  std::vector<skua_tensor> shapes;
  for (const Data& x : t.inputs) shapes.push_back(x.t);
  Op reference;
  skua_plan* plan = nullptr;
  skua_status wanted = t.create(cpu, true, &reference);
  if (wanted == SKUA_STATUS_OK) wanted = skua_op_plan(reference, shapes.data(), shapes.size(), nullptr, 0, &plan);
  skua_tensor outputs[2] = {};
  if (plan) SKUA_EXPECT_OK(skua_plan_outputs(plan, outputs, skua_op_output_count(reference)));
  skua_plan_destroy(plan);
  std::vector<Data> want;
  std::vector<skua_tensor> to;
  if (wanted == SKUA_STATUS_OK) {
    want = run(reference, t.inputs);
    if (fuzz.odds(3))  // written between others' elements, where the operator takes that
      for (size_t i = 0; i < want.size(); ++i)
        to.push_back(fuzz.strided(std::vector<size_t>(outputs[i].shape, outputs[i].shape + outputs[i].rank), true,
                                  outputs[i].type));
  }
  for (const auto& gpu : gpus) {
    SCOPED_TRACE(skua_context_isa(*gpu));
    snprintf(gpu->context->filter, sizeof gpu->context->filter, "%s", filter);
    const Fewer fewer(*gpu->context->gpu, groups, subgroups);
    Op op;
    plan = nullptr;
    skua_status got = t.create(*gpu, false, &op);
    if (got == SKUA_STATUS_OK) got = skua_op_plan(op, shapes.data(), shapes.size(), nullptr, 0, &plan);
    skua_plan_destroy(plan);
    if (got == SKUA_STATUS_UNSUPPORTED) {
      ++tally.unsupported;
      continue;
    }
    EXPECT_EQ(skua_status_name(got), std::string(skua_status_name(wanted))) << skua_error_text();
    if (got != SKUA_STATUS_OK || wanted != SKUA_STATUS_OK) {
      ++tally.invalid;
      continue;
    }
    plan = nullptr;
    const bool takes =
        to.empty() || skua_op_plan(op, shapes.data(), shapes.size(), to.data(), to.size(), &plan) == SKUA_STATUS_OK;
    skua_plan_destroy(plan);
    gpu_skip = skip;
    const std::vector<Data> result = run(op, t.inputs, takes ? to : std::vector<skua_tensor>{});
    gpu_skip = 0;
    ++tally.compared;
    ASSERT_EQ(result.size(), want.size());
    for (size_t o = 0; o < want.size(); ++o) {
      if (t.scale == 0 || want[o].t.type == SKUA_DTYPE_S32) {
        expect_same_bits(result[o], want[o]);
        continue;
      }
      const std::vector<double> values = dense_double(want[o]);
      double most = 1;
      for (double v : values) most = std::max(most, std::isfinite(v) ? std::fabs(v) : 0);
      std::vector<double> bound;
      for (double v : values)
        bound.push_back(t.scale * double(FLT_EPSILON) * most +
                        t.halves * half_ulp(want[o].t.type, std::max(std::fabs(v), t.least)));
      expect_close(result[o], values, bound);
    }
  }
}

TEST(gpu_fuzz, agrees_with_the_cpu) {
  SKUA_NEED_GPU(devices);
  Context cpu;
  std::vector<std::unique_ptr<Context>> gpus;
  for (const skua_device_info& device : devices) {
    gpus.push_back(std::make_unique<Context>(device));
    ASSERT_NE(gpus.back()->context, nullptr);
  }
  const char *const from = getenv("SKUA_FUZZ_FIRST"), *const seconds = getenv("SKUA_FUZZ_SECONDS");
  const uint32_t first = from ? uint32_t(strtoul(from, nullptr, 10)) : 1, count = seconds ? UINT32_MAX - first : 60;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? atoi(seconds) : 1 << 20);
  Tally tally;
  uint32_t n = 0;
  for (; n < count && !HasFailure() && std::chrono::steady_clock::now() < until; ++n)
    try_case(first + n, cpu, gpus, tally);
  printf("%u cases from %u: %zu compared, %zu invalid on all, %zu not supported on a GPU\n", n, first, tally.compared,
         tally.invalid, tally.unsupported);
  EXPECT_GE(tally.compared, n * gpus.size() / 2);
}

}  // namespace
