// Unary operators on every GPU device against the CPU.
#include <cmath>

#include "tests/support/gpu.h"

using namespace skua_test;

namespace {

Op make_op(skua_context* context, int kind, skua_dtype type) {
  skua_unary_desc d = SKUA_UNARY_DESC_INIT;
  d.numerics = SKUA_NUMERICS_STRICT;  // the CPU's: in f32
  d.kind = skua_unary_kind(kind);
  d.input_type = d.output_type = type;
  d.a = kind == SKUA_UNARY_CLAMP ? -0.5f : 0.3f;
  d.b = 1.25f;
  Op op;
  SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
  return op;
}

// f16: the CPU may compute in it. Drivers promise exp, log and what is made of them to a few units in the last place
// only; a sum of two terms loses more near its zeros.
void compare(const Data& got, const Data& want, const Data& x) {
  const std::vector<double> w = dense_double(want), v = dense_double(x);
  std::vector<double> bound;
  for (size_t i = 0; i < w.size(); ++i)
    bound.push_back(6e-7 * std::max(std::fabs(w[i]), std::min(std::fabs(v[i]), 1.0)) * 8 +
                    6 * half_ulp(got.t.type, w[i]));
  expect_close(got, w, bound);
}

void every_function(skua_dtype only) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(1);
    for (const skua_dtype type : gpu_types_of(only))
      for (int kind = 0; kind < SKUA_UNARY_KIND_COUNT; ++kind) {
        if (type == SKUA_DTYPE_BF16 && kind % 9) continue;  // functions know nothing of it
        SCOPED_TRACE("kind " + std::to_string(kind) + " " + skua_dtype_name(type));
        const bool positive = kind == SKUA_UNARY_LOG || kind == SKUA_UNARY_SQRT || kind == SKUA_UNARY_RSQRT ||
                              kind == SKUA_UNARY_RECIPROCAL;
        const Op reference = make_op(cpu, kind, type), op = make_op(gpu, kind, type);
        if (!op.op) continue;
        for (const size_t n : type == SKUA_DTYPE_F32 ? Shape{1, 64, 1027} : Shape{260}) {
          Data x = make(shape({n}, type), rng, positive ? 0.01f : -8, 8);
          if (n > 1) x.v[n / 2] = NAN;
          compare(run(op, {x})[0], run(reference, {x})[0], x);
        }
      }
  });
}
TEST(GpuUnary, EveryFunction) { every_function(SKUA_DTYPE_F32); }
TEST(GpuUnary, EveryFunctionOfF16) { every_function(SKUA_DTYPE_F16); }
TEST(GpuUnary, EveryFunctionOfBf16) { every_function(SKUA_DTYPE_BF16); }

// Vectors or not, one row or several, more loops than a dispatch has, and offsets that are no multiple of a vector.
TEST(GpuUnary, Strides) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(2);
    for (const skua_dtype type : gpu_types()) {
      const Op reference = make_op(cpu, SKUA_UNARY_HARD_SWISH, type), op = make_op(gpu, SKUA_UNARY_HARD_SWISH, type);
      for (const size_t skip : {0, 1, 4}) {
        gpu_skip = skip;
        for (const Shape& extents : {Shape{3, 8}, {2, 3, 5, 7}, {2, 2, 3, 2, 2, 4}})
          for (const size_t more : {0, 1, 4}) {
            SCOPED_TRACE("skip " + std::to_string(skip) + ", more " + std::to_string(more));
            const Data x = make(with_holes(shape(extents, type), Shape(extents.size(), more)), rng, -4, 4);
            compare(run(op, {x})[0], run(reference, {x})[0], x);
            const skua_tensor y = with_holes(shape(extents, type), Shape(extents.size(), 4 - more));
            compare(run(op, {x}, {y})[0], run(reference, {x}, {y})[0], x);
          }
        const Data x = make(shape({6, 20}, type), rng, -4, 4);
        compare(run_in_place(op, {x})[0], run(reference, {x})[0], x);
        const Data none = make(shape({3, 0}, type), rng);
        EXPECT_TRUE(run(op, {none})[0].v.empty());
      }
      gpu_skip = 0;
    }
  });
}

// More work-groups than a dispatch has.
TEST(GpuUnary, ManyGroups) {
  gpu_groups = 3;
  compare_on_gpus({{{7000}}, {{701}}, {{3, 5, 7, 11}}}, Holes::all,
                  [](skua_context* context, skua_dtype type, skua_op** op) {
                    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
                    d.kind = SKUA_UNARY_RELU;
                    d.input_type = d.output_type = type;
                    return skua_unary_create(context, &d, op);
                  });
  gpu_groups = 0;
}

}  // namespace
