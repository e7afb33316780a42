// Binary operators, select and conversions on every GPU device against the CPU.
#include <cmath>

#include "gpu/device.h"
#include "tests/support/gpu.h"

using namespace skua_test;

namespace {

Op make_binary(skua_context* context, int kind, skua_dtype type, skua_activation activation = {}) {
  skua_binary_desc d = SKUA_BINARY_DESC_INIT;
  d.kind = skua_binary_kind(kind);
  d.type = type;
  d.activation = activation;
  Op op;
  SKUA_EXPECT_OK(skua_binary_create(context, &d, &op));
  return op;
}

// pow is made of a logarithm and a power by drivers: relative to what the exponent makes of an error.
void compare(const Data& got, const Data& want, double ulps) {
  const std::vector<double> w = dense_double(want);
  std::vector<double> bound;
  for (double v : w) bound.push_back(ulps * 1.2e-7 * std::max(std::fabs(v), 1e-3) + 6 * half_ulp(got.t.type, v));
  expect_close(got, w, bound);
}

void every_function(skua_dtype only) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(3);
    for (const skua_dtype type : gpu_types_of(only))
      for (int kind = 0; kind < SKUA_BINARY_KIND_COUNT; ++kind) {
        if (type == SKUA_DTYPE_BF16 && kind % 5) continue;  // functions know nothing of it
        SCOPED_TRACE("kind " + std::to_string(kind) + " " + skua_dtype_name(type));
        const Op reference = make_binary(cpu, kind, type), op = make_binary(gpu, kind, type);
        if (!op.op) continue;
        for (const size_t n : {size_t(7), size_t(256)}) {
          const bool power = kind == SKUA_BINARY_POW;
          Data x = make(shape({3, n}, type), rng, power ? 0.1f : -4, 4), y = make(shape({3, n}, type), rng, -2, 2);
          for (size_t i = 0; i < x.v.size(); i += 3) y.v[i] = power ? std::round(y.v[i]) : x.v[i];  // equal ones
          if (power)
            for (size_t i = 0; i < x.v.size(); i += 6) x.v[i] = -x.v[i];
          if (kind == SKUA_BINARY_DIV)
            for (float& v : y.v) v = rounded(type, v < 0 ? v - 0.5f : v + 0.5f);
          if (kind != SKUA_BINARY_COPYSIGN) x.v[1] = y.v[2] = x.v[4] = y.v[4] = NAN;  // its sign is nobody's promise
          compare(run(op, {x, y})[0], run(reference, {x, y})[0], power ? 200 : 16);
        }
      }
  });
}
TEST(GpuBinary, EveryFunction) { every_function(SKUA_DTYPE_F32); }
TEST(GpuBinary, EveryFunctionOfF16) { every_function(SKUA_DTYPE_F16); }
TEST(GpuBinary, EveryFunctionOfBf16) { every_function(SKUA_DTYPE_BF16); }

TEST(GpuBinary, BroadcastingStridesActivations) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(4);
    for (const skua_dtype type : gpu_types()) {
      const skua_activation act = {SKUA_ACTIVATION_CLAMP, -1.0f, 1.5f};
      const Op reference = make_binary(cpu, SKUA_BINARY_ADD, type, act),
               op = make_binary(gpu, SKUA_BINARY_ADD, type, act);
      if (!op.op) continue;
      const std::vector<std::pair<Shape, Shape>> pairs = {{{2, 5, 8}, {8}},
                                                          {{2, 5, 8}, {2, 5, 1}},
                                                          {{1}, {4, 12}},
                                                          {{2, 5, 7}, {5, 1}},
                                                          {{3, 1, 8}, {1, 6, 1}},
                                                          {{2, 3, 4, 8}, {3, 1, 8}},
                                                          {{2, 1, 3, 1, 2, 8}, {2, 2, 1, 3, 1, 8}}};
      for (const size_t skip : {0, 1}) {
        gpu_skip = skip;
        for (const auto& pair : pairs) {
          SCOPED_TRACE("skip " + std::to_string(skip) + ", rank " + std::to_string(pair.first.size()));
          const Data x = make(shape(pair.first, type), rng), y = make(shape(pair.second, type), rng);
          compare(run(op, {x, y})[0], run(reference, {x, y})[0], 4);
          compare(run(op, {y, x})[0], run(reference, {y, x})[0], 4);
          const Data holes = make(with_holes(shape(pair.first, type), Shape(pair.first.size(), 4)), rng);
          compare(run(op, {holes, y})[0], run(reference, {holes, y})[0], 4);
        }
      }
      gpu_skip = 0;
      const Data x = make(shape({6, 20}, type), rng), y = make(shape({20}, type), rng);
      compare(run_in_place(op, {x, y})[0], run(reference, {x, y})[0], 4);
    }
  });
}

// Tensors that lie behind what one binding can reach.
TEST(GpuBinary, BehindTheLargestBinding) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    gpu.context->gpu->about.binding_bytes = 4096;
    Rng rng(10);
    for (const skua_dtype type : gpu_types()) {
      const Op reference = make_binary(cpu, SKUA_BINARY_SUB, type), op = make_binary(gpu, SKUA_BINARY_SUB, type);
      skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
      d.input_type = d.output_type = type;
      Op softmax_reference, softmax;
      SKUA_EXPECT_OK(skua_softmax_create(cpu, &d, &softmax_reference));
      SKUA_EXPECT_OK(skua_softmax_create(gpu, &d, &softmax));
      for (const size_t skip : {5001, 5004}) {
        gpu_skip = skip;
        const Data x = make(shape({5, 16}, type), rng), y = make(shape({5, 1}, type), rng);
        compare(run(op, {x, y})[0], run(reference, {x, y})[0], 4);
        compare(run(softmax, {x})[0], run(softmax_reference, {x})[0], 40);
        gpu_skip = 0;
      }
    }
  });
}

TEST(GpuSelect, Broadcasting) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(5);
    for (const skua_dtype type : gpu_types()) {
      skua_select_desc d = SKUA_SELECT_DESC_INIT;
      d.type = type;
      Op reference, op;
      SKUA_EXPECT_OK(skua_select_create(cpu, &d, &reference));
      SKUA_EXPECT_OK(skua_select_create(gpu, &d, &op));
      if (!op.op) continue;
      for (const Shape& condition : {Shape{3, 5, 8}, {5, 1}, {8}, {1}}) {
        const Data c = make_integers(shape(condition, type), rng, 0, 1), x = make(shape({3, 5, 8}, type), rng),
                   y = make(shape({5, 8}, type), rng);
        expect_same_bits(run(op, {c, x, y})[0], run(reference, {c, x, y})[0]);
      }
    }
  });
}

TEST(GpuConvert, BothWays) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(6);
    for (const skua_dtype from : gpu_types())
      for (const skua_dtype to : gpu_types()) {
        skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
        d.input_type = from;
        d.output_type = to;
        Op reference, op;
        SKUA_EXPECT_OK(skua_convert_create(cpu, &d, &reference));
        SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &op));
        if (!op.op) continue;
        for (const size_t n : {size_t(1), size_t(13), size_t(64)}) {
          const Data x = make(with_holes(shape({3, n}, from), {0, n % 4 ? size_t(3) : size_t(4)}), rng, -100, 100);
          compare(run(op, {x})[0], run(reference, {x})[0], 0);
        }
      }
  });
}

}  // namespace
