// The inverted residual block: the bits of its three convolutions, whole and in bands, with strides, dilations, padding
// and residuals.
#include <skua/conv.h>

#include <string>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

struct Block {
  size_t batch = 1, h, w;
  uint32_t in, expanded, out, kernel = 3, stride = 1, dilation = 1;
  skua_padding padding = {SKUA_PADDING_SAME_UPPER, 0, 0, 0, 0};
  skua_activation activation = {SKUA_ACTIVATION_RELU6, 0, 0};
  skua_residual residual = SKUA_RESIDUAL_NONE;
  std::vector<size_t> in_room = {0, 0, 0, 0}, out_room = {0, 0, 0, 0};
  skua_dtype type = SKUA_DTYPE_F32;
};

class InvertedResidual : public testing::Test {
 protected:
  // Returns the algorithm.
  std::string check(const Block& b, const char* isa) {
    SCOPED_TRACE(std::string(isa) + ": " +
                 testing::PrintToString(
                     std::vector<size_t>{b.batch, b.h, b.w, b.in, b.expanded, b.out, b.kernel, b.stride, b.dilation}));
    // on tiny maps conv2d may find another algorithm cheaper, with other bits
    Context context(isa), depthwise(isa, "depthwise*");
    skua_inverted_residual_desc d = SKUA_INVERTED_RESIDUAL_DESC_INIT;
    skua_conv2d_desc* const stages[] = {&d.expand, &d.depthwise, &d.project};
    for (skua_conv2d_desc* s : stages) {
      s->weight_layout = SKUA_WEIGHTS_HWIO;
      s->input_type = s->output_type = b.type;
    }
    d.expand.in_channels = b.in;
    d.expand.out_channels = d.depthwise.in_channels = d.depthwise.out_channels = d.depthwise.groups =
        d.project.in_channels = b.expanded;
    d.project.out_channels = b.out;
    d.depthwise.kernel_h = d.depthwise.kernel_w = b.kernel;
    d.depthwise.stride_h = d.depthwise.stride_w = b.stride;
    d.depthwise.dilation_h = d.depthwise.dilation_w = b.dilation;
    d.depthwise.padding = b.padding;
    d.expand.epilogue.activation = d.depthwise.epilogue.activation = b.activation;
    d.project.epilogue.residual = b.residual;
    const auto random = [&](size_t n) {
      std::vector<float> v(n);
      for (float& x : v) x = rng.uniform(-1, 1);
      return v;
    };
    const std::vector<float> w[] = {random(b.in * b.expanded), random(b.kernel * b.kernel * b.expanded),
                                    random(b.expanded * b.out)};
    const std::vector<float> bias[] = {random(b.expanded), random(b.expanded), random(b.out)};
    const void* const weights[] = {w[0].data(), w[1].data(), w[2].data()};
    const void* const biases[] = {bias[0].data(), b.batch == 1 ? bias[1].data() : nullptr, bias[2].data()};
    Op block;
    SKUA_EXPECT_OK(skua_inverted_residual_create(context, &d, weights, biases, &block));
    if (!block.op) return "";

    const Data x = make(with_holes(shape({b.batch, b.h, b.w, b.in}, b.type), b.in_room), rng);
    std::vector<Data> want = {x};
    std::vector<skua_tensor> shapes = {x.t};
    Data residual;
    for (int i = 0; i < 3; ++i) {
      Op one;
      SKUA_EXPECT_OK(skua_conv2d_create(i == 1 ? depthwise : context, stages[i], weights[i], biases[i], &one));
      if (i == 2 && b.residual != SKUA_RESIDUAL_NONE) {
        const skua_tensor y = want[0].t;
        residual = make(with_holes(shape({b.batch, y.shape[1], y.shape[2], b.out}, b.type), {0, 0, 1, 2}), rng);
        want.push_back(residual);
        shapes.push_back(residual.t);
      }
      want = run(one, want);
      if (want.size() != 1) return "";
    }
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(block, shapes.data(), shapes.size(), nullptr, 0, &plan));
    if (!plan) return "";
    const std::string algorithm = skua_plan_algorithm(plan);
    char text[4096];
    EXPECT_LT(skua_plan_explain(plan, text, sizeof text), sizeof text);
    EXPECT_NE(std::string(text).find("depthwise: algorithm"), std::string::npos) << text;
    skua_plan_destroy(plan);
    std::vector<Data> inputs = {x};
    if (shapes.size() > 1) inputs.push_back(residual);
    const std::vector<Data> got = run(block, inputs, {with_holes(want[0].t, b.out_room)});
    if (got.size() != 1) return "";
    const std::vector<float> g = dense(got[0]), v = dense(want[0]);
    size_t other = 0;
    for (size_t i = 0; i < g.size(); ++i)
      if (!(g[i] == v[i]) && ++other <= 3)
        ADD_FAILURE() << "value " << i << " is " << g[i] << ", of the three convolutions " << v[i];
    return algorithm;
  }

  Rng rng{11};
};

TEST_F(InvertedResidual, SmallBlocks) {
  for (const char* isa : isas())
    for (uint32_t kernel : {1u, 3u, 5u})
      for (uint32_t stride : {1u, 2u, 3u}) {
        Block b;
        b.batch = stride;
        b.h = 7 + kernel; b.w = 9;
        b.in = 5; b.expanded = 8 * stride + 9; b.out = 6;
        b.kernel = kernel; b.stride = stride;
        if (kernel == 3) {
          b.dilation = 2;
          b.padding = {SKUA_PADDING_EXPLICIT, 3, 1, 0, 2};
          b.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
        }
        if (kernel == 5) b.activation.kind = SKUA_ACTIVATION_HARD_SWISH;
        if (stride == 2) { b.in_room = {0, 0, 1, 3}; b.out_room = {0, 1, 0, 2}; }
        check(b, isa);
        if (HasFailure()) return;
      }
}

TEST_F(InvertedResidual, HalfPrecision) {
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type))
      for (uint32_t stride : {1u, 2u}) {
        Block b;
        b.type = type;
        b.batch = stride;
        b.h = 10; b.w = 9;
        b.in = 6; b.expanded = 41; b.out = 19;
        b.stride = stride;
        if (stride == 1) b.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION;
        else b.activation.kind = SKUA_ACTIVATION_HARD_SWISH;
        b.in_room = {0, 0, 1, 3};
        b.out_room = {0, 1, 0, 2};
        check(b, isa);
        if (stride == 2 && !small()) {
          b.batch = 1;
          b.h = 85; b.w = 40;
          b.in = b.out = 8; b.expanded = 352;
          check(b, isa);
        }
        if (HasFailure()) return;
      }
}

// The expanded maps are larger than a second-level cache of 2 MB.
TEST_F(InvertedResidual, Bands) {
  for (const char* isa : isas())
    for (uint32_t stride : {1u, 2u}) {
      Block b;
      b.batch = stride;
      b.h = small() ? 11 : 85; b.w = 40;
      b.in = 8; b.expanded = small() ? 24 : 176; b.out = 8;
      b.stride = stride;
      b.padding = stride == 2 ? skua_padding{SKUA_PADDING_EXPLICIT, 1, 1, 1, 1} : b.padding;
      b.residual = stride == 1 ? SKUA_RESIDUAL_AFTER_ACTIVATION : SKUA_RESIDUAL_NONE;
      check(b, isa);
      if (HasFailure()) return;
    }
}

// So deep a kernel that pieces of an image would expand too many rows twice: several workers share every band instead.
// run() compares worker counts.
TEST_F(InvertedResidual, BandsByAllWorkers) {
  for (const char* isa : isas()) {
    Block b;
    b.h = small() ? 9 : 26; b.w = small() ? 7 : 40;
    b.in = 24; b.expanded = small() ? 20 : 640; b.out = 8;
    b.kernel = 5;
    const std::string algorithm = check(b, isa);
    if (!small()) { EXPECT_EQ(algorithm, "bands") << isa; }
    if (HasFailure()) return;
  }
}

// Every band reads all weights: where these are more than the maps, one band of all rows is faster.
TEST_F(InvertedResidual, HeavyWeights) {
  if (small()) GTEST_SKIP() << "a large product";
  Block b;
  b.h = b.w = 20;
  b.in = b.expanded = b.out = 1024;
  EXPECT_EQ(check(b, isas().back()), "whole");
}

// Bands that share no expanded row, and padding that reaches past the first band, or is all that a last row of outputs
// sees.
TEST_F(InvertedResidual, BandsApartAndFarPadding) {
  const uint32_t channels = small() ? 9 : 106;
  Block point, far, apart, below;
  point.h = small() ? 7 : 40; point.w = small() ? 5 : 148;
  point.in = 6; point.expanded = channels; point.out = 5;
  point.kernel = 1;
  apart = point;
  apart.kernel = 2; apart.stride = 3;
  apart.h = small() ? 11 : 70;
  far = point;
  far.h = small() ? 5 : 24; far.w = small() ? 5 : 95;
  far.kernel = 3;
  far.padding = {SKUA_PADDING_EXPLICIT, 44, 1, 1, 1};
  below.h = small() ? 8 : 112; below.w = small() ? 6 : 112;
  below.in = 16; below.expanded = small() ? 33 : 128; below.out = 24;
  below.kernel = 3; below.stride = 2;
  below.padding = {SKUA_PADDING_EXPLICIT, 0, 1, 3, 1};
  for (const char* isa : isas())
    for (const Block& b : {point, apart, far, below}) {
      check(b, isa);
      if (HasFailure()) return;
    }
}

TEST_F(InvertedResidual, NothingToDo) {
  Block b;
  b.batch = 0; b.h = b.w = 4; b.in = b.out = 3; b.expanded = 6;
  EXPECT_NE(check(b, isas().back()), "");
  b.batch = 1; b.h = 0;
  EXPECT_NE(check(b, isas().back()), "");
}

}  // namespace
