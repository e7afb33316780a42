// Softmax, normalisations, reductions and resize on every GPU device against the CPU.
#include <cmath>

#include "tests/support/gpu.h"

using namespace skua_test;

namespace {

// `scale`: of the error in f32, relative to the largest value; f16 is rounded once more on either side.
void compare(const Data& got, const Data& want, double scale) {
  const std::vector<double> w = dense_double(want);
  double most = 0;
  for (double v : w) most = std::isfinite(v) ? std::max(most, std::fabs(v)) : most;
  std::vector<double> bound;
  for (double v : w) bound.push_back(scale * 1.2e-7 * std::max(most, 1e-3) + 3 * half_ulp(got.t.type, v));
  expect_close(got, w, bound);
}

TEST(GpuSoftmax, Axes) {
  const Shape shapes[] = {{5, 7}, {3, 1000}, {2, 3, 40}, {2, 6, 5, 4}, {1, 2049}};
  for (const Shape& s : shapes)
    for (int axis = 0; axis < int(s.size()); ++axis)
      for (const bool logarithm : {false, true}) {
        if (small() && logarithm && s[0] != 5) continue;  // minutes of a simulated device
        SCOPED_TRACE("axis " + std::to_string(axis) + " of " + std::to_string(s.size()) + (logarithm ? ", log" : ""));
        compare_on_gpus({{s}}, Holes::outer, [&](skua_context* context, skua_dtype type, skua_op** op) {
          skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
          d.input_type = d.output_type = type;
          d.axis = axis;
          d.log = logarithm;
          d.scale = 0.5f;
          return skua_softmax_create(context, &d, op);
        }, [](const Data& got, const Data& want) { compare(got, want, 40); });
      }
}

TEST(GpuNorm, Kinds) {
  for (const int kind : {SKUA_NORM_LAYER, SKUA_NORM_RMS, SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE})
    for (const skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      for (const size_t channels : {size_t(8), size_t(6), size_t(300)}) {
        const bool rows = kind == SKUA_NORM_LAYER || kind == SKUA_NORM_RMS;
        if ((rows && layout != SKUA_LAYOUT_NHWC) || (!rows && channels == 300)) continue;
        SCOPED_TRACE("kind " + std::to_string(kind) + ", layout " + std::to_string(layout) + ", channels " +
                     std::to_string(channels));
        Rng rng(9);
        const Data gamma = make({channels}, rng, 0.5f, 2), beta = make({channels}, rng), mean = make({channels}, rng),
                   variance = make({channels}, rng, 0.1f, 2);
        Shape extents = {2, 3, 5, channels};
        if (layout == SKUA_LAYOUT_NCHW) extents = {2, channels, 3, 5};
        compare_on_gpus(
            {{extents}}, Holes::outer,
            [&](skua_context* context, skua_dtype type, skua_op** op) {
              skua_norm_desc d = SKUA_NORM_DESC_INIT;
              d.kind = skua_norm_kind(kind);
              d.type = type;
              d.layout = layout;
              d.groups = 2;
              d.channels = channels;
              const bool batch = kind == SKUA_NORM_BATCH;
              return skua_norm_create(context, &d, gamma.v.data(), kind == SKUA_NORM_RMS ? nullptr : beta.v.data(),
                                      batch ? mean.v.data() : nullptr, batch ? variance.v.data() : nullptr, op);
            },
            [](const Data& got, const Data& want) { compare(got, want, 40); });
      }
}

// What has no loop left says so; one dimension less, and it has.
TEST(GpuNorm, ManyHoles) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(10);
    for (const skua_norm_kind kind : {SKUA_NORM_LAYER, SKUA_NORM_INSTANCE}) {
      SCOPED_TRACE("kind " + std::to_string(kind));
      skua_norm_desc d = SKUA_NORM_DESC_INIT;
      d.kind = kind;
      d.channels = 8;
      const Data gamma = make({8}, rng), beta = make({8}, rng);
      Op op, reference;
      SKUA_EXPECT_OK(skua_norm_create(gpu, &d, gamma.v.data(), beta.v.data(), nullptr, nullptr, &op));
      SKUA_EXPECT_OK(skua_norm_create(cpu, &d, gamma.v.data(), beta.v.data(), nullptr, nullptr, &reference));
      if (!op.op) continue;
      const Data x = make(with_holes(shape({2, 3, 2, 8}), {1, 1, 1, 4}), rng, -3, 3);
      compare(run(op, {x})[0], run(reference, {x})[0], 40);
      const skua_tensor more = with_holes(shape({2, 3, 2, 3, 8}), {1, 1, 1, 1, 4});
      skua_plan* plan = nullptr;
      EXPECT_EQ(skua_op_plan(op, &more, 1, nullptr, 0, &plan), SKUA_STATUS_UNSUPPORTED);
      EXPECT_NE(std::string(skua_error_text()).find("strides with holes in more than"), std::string::npos)
          << skua_error_text();
      EXPECT_EQ(plan, nullptr);
    }
  });
}

// A kind is a constant of a program, which drivers compile anew; bf16 differs in how elements are read and written, for
// which a kind of each form is enough.
std::vector<skua_dtype> types_of_kind(int kind) {
  return gpu_types(kind == SKUA_REDUCE_SUM || kind == SKUA_REDUCE_ARGMAX);
}

TEST(GpuReduce, KindsAndAxes) {
  const std::vector<std::vector<int32_t>> axes = {{}, {0}, {3}, {1, 2}, {0, 2}, {0, 1, 3}};
  for (int kind = 0; kind < SKUA_REDUCE_KIND_COUNT; ++kind)
    for (const std::vector<int32_t>& a : axes) {
      const bool arg = kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX;
      if (arg && a.size() != 1) continue;
      if (!arg && kind > SKUA_REDUCE_MEAN && a.size() == 3) continue;
      if (small() && !arg && (size_t(kind) + size_t(&a - axes.data())) % 2) continue;  // minutes of a simulated device
      SCOPED_TRACE("kind " + std::to_string(kind) + ", axes " + std::to_string(a.size()) +
                   (a.empty() ? "" : " from " + std::to_string(a[0])));
      compare_on_gpus({{{3, 5, 4, 72}}}, Holes::none, [&](skua_context* context, skua_dtype type, skua_op** op) {
        skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
        d.kind = skua_reduce_kind(kind);
        d.type = type;
        d.axis_count = uint32_t(a.size());
        for (size_t i = 0; i < a.size(); ++i) d.axes[i] = a[i];
        return skua_reduce_create(context, &d, op);
      }, [&](const Data& got, const Data& want) {
        if (arg) expect_same_bits(got, want);
        else compare(got, want, 2000);
      }, types_of_kind(kind));
    }
}

// More results than a dispatch has work-groups in a dimension, by groups and by threads.
TEST(GpuReduce, ManyResults) {
  const auto maxima = [](skua_context* context, skua_dtype type, skua_op** op) {
    skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
    d.kind = SKUA_REDUCE_MAX;
    d.type = type;
    d.axis_count = 1;
    d.axes[0] = 1;
    return skua_reduce_create(context, &d, op);
  };
  if (!small()) compare_on_gpus({{{70000, 3}}}, Holes::none, maxima);  // minutes of a simulated device
  gpu_groups = 2;
  const Shape many = small() ? Shape{20, 601} : Shape{200, 601};
  for (const int axis : {0, 1})
    compare_on_gpus({{many}}, Holes::outer, [&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
      d.input_type = d.output_type = type;
      d.axis = axis;
      return skua_softmax_create(context, &d, op);
    }, [](const Data& got, const Data& want) { compare(got, want, 40); });
  compare_on_gpus({{{size_t(small() ? 700 : 2000), 3}}}, Holes::none, maxima);
  gpu_groups = 0;
}

// Threads share a column.
TEST(GpuReduce, LongColumns) {
  for (const skua_reduce_kind kind : {SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN})
    compare_on_gpus(
        {{{3, 71, 37}}, {{130, 5}}}, Holes::none,
        [&](skua_context* context, skua_dtype type, skua_op** op) {
          skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
          d.kind = kind;
          d.type = type;
          d.axis_count = 1;
          d.axes[0] = -2;
          return skua_reduce_create(context, &d, op);
        },
        [](const Data& got, const Data& want) { compare(got, want, 2000); }, gpu_types(kind == SKUA_REDUCE_MEAN));
}

// Few results of many terms: work-groups share each, and a second dispatch joins what they have. Columns; rows by
// elements and by vectors, of which offsets allow none in the second pass.
TEST(GpuReduce, FewLongResultsInParts) {
  const std::vector<std::vector<Shape>> shapes =
      small() ? std::vector<std::vector<Shape>>{{{2, 2100, 5}}, {{1, 33001, 1}}}
              : std::vector<std::vector<Shape>>{{{2, 2100, 5}}, {{1, 33001, 1}}, {{2, 132000, 1}}};
  for (const skua_reduce_kind kind : {SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN, SKUA_REDUCE_SUM_SQUARES, SKUA_REDUCE_ARGMAX}) {
    SCOPED_TRACE("kind " + std::to_string(kind));
    const auto make_op = [&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = kind;
      d.type = type;
      d.axis_count = 1;
      d.axes[0] = 1;
      return skua_reduce_create(context, &d, op);
    };
    const bool exact = kind == SKUA_REDUCE_MIN || kind == SKUA_REDUCE_ARGMAX, squares = kind == SKUA_REDUCE_SUM_SQUARES;
    const std::vector<std::vector<Shape>> some(
        shapes.begin(), squares || (small() && kind != SKUA_REDUCE_MEAN) ? shapes.begin() + 1 : shapes.end());
    compare_on_gpus(
        some, Holes::none, make_op,
        [&](const Data& got, const Data& want) {
          exact ? expect_same_bits(got, want) : compare(got, want, squares ? 200 : 2000);
        },
        gpu_types(kind == SKUA_REDUCE_MEAN));
    on_every_gpu([&](Context& gpu) {
      Op op;
      SKUA_EXPECT_OK(make_op(gpu, SKUA_DTYPE_F32, &op));
      for (const std::vector<Shape>& s : some)
        expect_explained(op, shape(s[0], SKUA_DTYPE_F32), "parts of each result, joined by a second dispatch");
    });
  }
}

void first_nan() {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(8);
    Data x = make({3, 300}, rng);
    x.v[17] = x.v[40] = x.v[299] = x.v[300 + 100] = NAN;
    for (const skua_reduce_kind kind : {SKUA_REDUCE_ARGMAX, SKUA_REDUCE_MAX, SKUA_REDUCE_MIN})
      for (const int32_t axis : {1, 0}) {  // by groups and by threads
        SCOPED_TRACE("kind " + std::to_string(kind) + ", axis " + std::to_string(axis));
        skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
        d.kind = kind;
        d.axis_count = 1;
        d.axes[0] = axis;
        Op reference, op;
        SKUA_EXPECT_OK(skua_reduce_create(cpu, &d, &reference));
        SKUA_EXPECT_OK(skua_reduce_create(gpu, &d, &op));
        expect_close(run(op, {x})[0], dense_double(run(reference, {x})[0]), 0);
      }
  });
}

TEST(GpuReduce, TheFirstNanIsTheGreatestAndTheLeast) { first_nan(); }

// The form that the device would not choose: by subgroups, or by local memory. (OpenCL's text by subgroups falls back
// to local memory where the compiler has none.)
TEST(GpuRows, OtherForm) {
  gpu_other_rows = true;
  Rng rng(11);
  const Data gamma = make({300}, rng, 0.5f, 2), beta = make({300}, rng);
  for (const bool other : {false, true}) {  // logarithm; RMS
    compare_on_gpus(
        {{{5, 7}}, {{3, 300}}, {{1, 2049}}}, Holes::outer,
        [&](skua_context* context, skua_dtype type, skua_op** op) {
          skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
          d.input_type = d.output_type = type;
          d.axis = 1;
          d.log = other;
          return skua_softmax_create(context, &d, op);
        },
        [](const Data& got, const Data& want) { compare(got, want, 40); });
    compare_on_gpus({{{2, 3, 300}}}, Holes::outer, [&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_norm_desc d = SKUA_NORM_DESC_INIT;
      d.kind = other ? SKUA_NORM_RMS : SKUA_NORM_LAYER;
      d.type = type;
      d.channels = 300;
      return skua_norm_create(context, &d, gamma.v.data(), other ? nullptr : beta.v.data(), nullptr, nullptr, op);
    }, [](const Data& got, const Data& want) { compare(got, want, 40); });
  }
  for (int kind = 0; kind < SKUA_REDUCE_ARGMIN; ++kind)
    for (const size_t n : {70, 72})  // by elements and by vectors
      compare_on_gpus({{{3, 5, n}}}, Holes::none, [&](skua_context* context, skua_dtype type, skua_op** op) {
        skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
        d.kind = skua_reduce_kind(kind);
        d.type = type;
        d.axis_count = 1;
        d.axes[0] = 2;
        return skua_reduce_create(context, &d, op);
      }, [](const Data& got, const Data& want) { compare(got, want, 2000); }, types_of_kind(kind));
  first_nan();
  gpu_other_rows = false;
}

TEST(GpuReduce, OfNothingAndOfRankSix) {
  for (const Shape& s : {Shape{3, 0, 4}, {2, 3, 2, 3, 2, 3}})
    compare_on_gpus({{s}}, Holes::none, [&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = SKUA_REDUCE_MAX;
      d.type = type;
      d.axis_count = s.size() == 3 ? 1 : 3;
      d.axes[0] = s.size() == 3 ? 1 : 0;
      d.axes[1] = 2;
      d.axes[2] = 4;
      return skua_reduce_create(context, &d, op);
    });
}

TEST(GpuResize, KindsAndCoordinates) {
  for (const int kind : {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR})
    for (const int coordinates : {SKUA_RESIZE_HALF_PIXEL, SKUA_RESIZE_ALIGN_CORNERS, SKUA_RESIZE_ASYMMETRIC})
      for (const skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (const size_t channels : {3, 8}) {
          if (small() && coordinates % 2 != (channels == 8)) continue;  // minutes of a simulated device
          SCOPED_TRACE("kind " + std::to_string(kind) + ", coordinates " + std::to_string(coordinates) + ", layout " +
                       std::to_string(layout));
          Shape extents = {2, 5, 7, channels};
          if (layout == SKUA_LAYOUT_NCHW) extents = {2, channels, 5, 7};
          compare_on_gpus({{extents}}, Holes::outer, [&](skua_context* context, skua_dtype type, skua_op** op) {
            skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
            d.kind = skua_resize_kind(kind);
            d.coordinates = skua_resize_coordinates(coordinates);
            d.type = type;
            d.layout = layout;
            d.out_h = 9;
            d.out_w = 4;
            return skua_resize2d_create(context, &d, op);
          }, [&](const Data& got, const Data& want) {
            if (kind == SKUA_RESIZE_NEAREST) expect_same_bits(got, want);
            else compare(got, want, 8);
          });
        }
}

}  // namespace
