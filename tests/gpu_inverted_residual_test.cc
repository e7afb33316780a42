// The inverted residual block on every GPU of the machine: the bits of its three convolutions there.
#include <skua/conv.h>

#include "tests/support/gpu.h"

namespace {
using namespace skua_test;

struct Block {
  size_t batch, h, w;
  uint32_t in, expanded, out, stride;
  bool residual;
  size_t hole;
};

void check(skua_context* context, const Block& b, skua_dtype type) {
  SCOPED_TRACE(std::to_string(b.in) + " -> " + std::to_string(b.expanded) + " -> " + std::to_string(b.out) + " " +
               skua_dtype_name(type));
  Rng rng(7);
  skua_inverted_residual_desc d = SKUA_INVERTED_RESIDUAL_DESC_INIT;
  skua_conv2d_desc* const stages[] = {&d.expand, &d.depthwise, &d.project};
  for (skua_conv2d_desc* s : stages) {
    s->weight_layout = SKUA_WEIGHTS_HWIO;
    s->input_type = s->output_type = type;
  }
  d.expand.in_channels = b.in;
  d.expand.out_channels = d.depthwise.in_channels = d.depthwise.out_channels = d.depthwise.groups =
      d.project.in_channels = b.expanded;
  d.project.out_channels = b.out;
  d.depthwise.kernel_h = d.depthwise.kernel_w = 3;
  d.depthwise.stride_h = d.depthwise.stride_w = b.stride;
  d.depthwise.padding.mode = SKUA_PADDING_SAME_UPPER;
  d.expand.epilogue.activation.kind = d.depthwise.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
  if (b.residual) d.project.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
  std::vector<float> w[3], bias[3];
  const size_t sizes[3] = {size_t(b.in) * b.expanded, size_t(9) * b.expanded, size_t(b.expanded) * b.out},
               columns[3] = {b.expanded, b.expanded, b.out};
  for (int i = 0; i < 3; ++i) {
    for (size_t j = 0; j < sizes[i]; ++j) w[i].push_back(rng.uniform(-1, 1));
    for (size_t j = 0; j < columns[i]; ++j) bias[i].push_back(rng.uniform(-1, 1));
  }
  const void* const weights[] = {w[0].data(), w[1].data(), w[2].data()};
  const void* const biases[] = {bias[0].data(), nullptr, bias[2].data()};
  Op block;
  SKUA_EXPECT_OK(skua_inverted_residual_create(context, &d, weights, biases, &block));
  if (!block.op) return;
  std::vector<Data> inputs = {make(with_holes(shape({b.batch, b.h, b.w, b.in}, type), {0, 0, 1, b.hole}), rng)},
                    want = inputs;
  for (int i = 0; i < 3; ++i) {
    Op one;
    SKUA_EXPECT_OK(skua_conv2d_create(context, stages[i], weights[i], biases[i], &one));
    if (i == 2 && b.residual) {
      inputs.push_back(make(shape({b.batch, want[0].t.shape[1], want[0].t.shape[2], b.out}, type), rng));
      want.push_back(inputs[1]);
    }
    want = run(one, want);
    ASSERT_EQ(want.size(), 1u);
  }
  const std::vector<Data> got = run(block, inputs, {with_holes(want[0].t, {0, 0, 1, b.hole})});
  ASSERT_EQ(got.size(), 1u);
  const std::vector<float> values = dense(got[0]), expected = dense(want[0]);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], expected[i]) << i;
}

TEST(gpu_inverted_residual, bits_of_its_convolutions) {
  on_every_gpu([](Context& gpu) {
    for (skua_dtype type : gpu_types())
      for (const Block& b : {Block{2, 7, 9, 8, 24, 8, 1, true, 4}, Block{1, 8, 6, 5, 14, 6, 2, false, 1}})
        check(gpu, b, type);
  });
}

}  // namespace
