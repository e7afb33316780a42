// NaN, infinities and zeros of both signs on every GPU device: what docs/numerics.md says of them, to the bit where it
// can be said so.
#include <skua/pool.h>
#include <skua/resize.h>

#include <cmath>

#include "tests/support/gpu.h"

using namespace skua_test;

namespace {

constexpr float kSpecial[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, -1.5f, 7.0f};
constexpr size_t kCount = sizeof kSpecial / sizeof kSpecial[0];

// Each of them at every place of a vector, beside each other.
Data every_pair(skua_dtype type, bool second) {
  Rng rng(1);
  Data x = make(shape({kCount, kCount}, type), rng);
  for (size_t i = 0; i < kCount * kCount; ++i) x.v[i] = kSpecial[second ? i % kCount : i / kCount];
  return x;
}

// By vectors of 4, and by elements.
void compare(const Op& op, const Op& reference, const std::vector<Data>& inputs) {
  if (!op.op || !reference.op) return;
  const std::vector<double> want = dense_double(run(reference, inputs)[0]);
  for (const size_t skip : {0, 1}) {
    gpu_skip = skip;
    std::vector<double> bound;
    for (double v : want)
      bound.push_back(std::isfinite(v) ? 4e-6 * std::fabs(v) + 4 * half_ulp(inputs[0].t.type, v) + 1e-30 : 0);
    expect_close(run(op, inputs)[0], want, bound);
  }
  gpu_skip = 0;
}

TEST(GpuSpecial, Activations) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    for (const skua_dtype type : gpu_types())
      for (int kind = SKUA_UNARY_RELU; kind <= SKUA_UNARY_SOFTPLUS; ++kind) {
        if (type != SKUA_DTYPE_F32 && kind > SKUA_UNARY_LEAKY_RELU) continue;
        SCOPED_TRACE("kind " + std::to_string(kind) + " " + skua_dtype_name(type));
        skua_unary_desc d = SKUA_UNARY_DESC_INIT;
        d.kind = skua_unary_kind(kind);
        d.input_type = d.output_type = type;
        d.a = kind == SKUA_UNARY_CLAMP ? -0.5f : 0.3f;
        d.b = 1.25f;
        Op op, reference;
        SKUA_EXPECT_OK(skua_unary_create(gpu, &d, &op));
        SKUA_EXPECT_OK(skua_unary_create(cpu, &d, &reference));
        Data x = every_pair(type, true);
        if (kind > SKUA_UNARY_LEAKY_RELU)  // what the formulas make of infinities is not promised
          for (float& v : x.v) v = std::isinf(v) ? std::copysign(50.0f, v) : v;
        compare(op, reference, {x});
      }
  });
}

TEST(GpuSpecial, ExtremesAndComparisons) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    for (const skua_dtype type : gpu_types())
      for (const int kind : {SKUA_BINARY_ADD, SKUA_BINARY_SUB, SKUA_BINARY_MUL, SKUA_BINARY_MIN, SKUA_BINARY_MAX,
                             SKUA_BINARY_PRELU, SKUA_BINARY_EQUAL, SKUA_BINARY_NOT_EQUAL, SKUA_BINARY_LESS,
                             SKUA_BINARY_LESS_EQUAL, SKUA_BINARY_GREATER, SKUA_BINARY_GREATER_EQUAL})
        for (const bool relu : {false, true}) {
          if (relu && kind != SKUA_BINARY_MIN) continue;  // each is a program
          SCOPED_TRACE("kind " + std::to_string(kind) + " " + skua_dtype_name(type));
          skua_binary_desc d = SKUA_BINARY_DESC_INIT;
          d.kind = skua_binary_kind(kind);
          d.type = type;
          if (relu) d.activation.kind = SKUA_ACTIVATION_RELU6;
          Op op, reference;
          SKUA_EXPECT_OK(skua_binary_create(gpu, &d, &op));
          SKUA_EXPECT_OK(skua_binary_create(cpu, &d, &reference));
          compare(op, reference, {every_pair(type, false), every_pair(type, true)});
        }
  });
}

TEST(GpuSpecial, PoolsReductionsAndProducts) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    for (const skua_dtype type : gpu_types()) {
      SCOPED_TRACE(skua_dtype_name(type));
      Data map = every_pair(type, false);  // 2 x 4 pixels of 8 channels; then pixels that differ
      map.t = shape({1, 2, 4, kCount}, type);
      for (size_t i = 0; i < map.v.size(); ++i) map.v[i] = kSpecial[(i / kCount + i * i) % kCount];
      for (const skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE}) {
        skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
        d.kind = kind;
        d.type = type;
        d.kernel_h = d.kernel_w = 2;
        d.stride_h = d.stride_w = 1;
        d.activation.kind = SKUA_ACTIVATION_RELU;
        Op op, reference;
        SKUA_EXPECT_OK(skua_pool2d_create(gpu, &d, &op));
        SKUA_EXPECT_OK(skua_pool2d_create(cpu, &d, &reference));
        compare(op, reference, {map});
      }
      Data rows = map;
      rows.t = shape({kCount, kCount}, type);
      // one in each row
      for (size_t i = 0; i < rows.v.size(); ++i) rows.v[i] = i / kCount == i % kCount ? kSpecial[i % kCount] : float(i);
      for (const skua_reduce_kind kind : {SKUA_REDUCE_SUM, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX}) {
        skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
        d.kind = kind;
        d.type = type;
        d.axis_count = 1;
        d.axes[0] = 1;
        Op op, reference;
        SKUA_EXPECT_OK(skua_reduce_create(gpu, &d, &op));
        SKUA_EXPECT_OK(skua_reduce_create(cpu, &d, &reference));
        compare(op, reference, {rows});
      }
      skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
      d.a_type = d.b_type = d.c_type = type;
      d.epilogue.activation = {SKUA_ACTIVATION_CLAMP, -2, 3};
      Data one = rows;
      for (float& v : one.v) v = 0.5f;
      Op op, reference;
      SKUA_EXPECT_OK(skua_gemm_create(gpu, &d, nullptr, nullptr, &op));
      SKUA_EXPECT_OK(skua_gemm_create(cpu, &d, nullptr, nullptr, &reference));
      compare(op, reference, {rows, one});
    }
  });
}

// With a weight of 0 a neighbour is not touched: itself, and every second pixel of twice as many.
TEST(GpuSpecial, Resize) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    for (const skua_dtype type : gpu_types())
      for (const size_t channels : {3, 4})
        for (const uint32_t to : {8u, 15u}) {
          SCOPED_TRACE(std::string(skua_dtype_name(type)) + " to " + std::to_string(to));
          skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
          d.kind = SKUA_RESIZE_BILINEAR;
          d.coordinates = SKUA_RESIZE_ALIGN_CORNERS;
          d.type = type;
          d.out_h = d.out_w = to;
          Op op, reference;
          SKUA_EXPECT_OK(skua_resize2d_create(gpu, &d, &op));
          SKUA_EXPECT_OK(skua_resize2d_create(cpu, &d, &reference));
          Rng rng(1);
          Data x = make(shape({1, kCount, kCount, channels}, type), rng);
          for (size_t i = 0; i < x.v.size(); ++i) x.v[i] = i % 5 ? x.v[i] : kSpecial[i / 5 % kCount];
          compare(op, reference, {x});
        }
  });
}

}  // namespace
