// Descriptors of convolutions and transposed convolutions, and the shapes they are planned for.
#include <skua/conv.h>

#include "tests/fuzz/fuzz.h"

using namespace skua_fuzz;

namespace {

template <class Desc> void describe(Bytes& bytes, bool f32_weights, Desc& d) {
  d.input_type = d.weight_type = d.output_type = bytes.value<skua_dtype>(3);
  if (f32_weights) d.weight_type = SKUA_DTYPE_F32;
  d.layout = bytes.value<skua_layout>(2);
  d.weight_layout = bytes.value<skua_weight_layout>(3);
  d.kernel_h = bytes.extent(6), d.kernel_w = bytes.extent(6);
  d.stride_h = bytes.extent(4), d.stride_w = bytes.extent(4);
  d.dilation_h = bytes.extent(4), d.dilation_w = bytes.extent(4);
  d.groups = bytes.extent(4);
  d.in_channels = d.groups * bytes.extent(8), d.out_channels = d.groups * bytes.extent(8);
  d.padding.mode = bytes.value<skua_padding_mode>(3);
  d.padding.top = bytes.extent(4), d.padding.left = bytes.extent(4), d.padding.bottom = bytes.extent(4),
  d.padding.right = bytes.extent(4);
  d.epilogue.activation.kind = bytes.value<skua_activation_kind>(14);
  d.epilogue.activation.a = bytes.real(), d.epilogue.activation.b = bytes.real();
  d.epilogue.residual = bytes.value<skua_residual>(3);
  d.numerics = bytes.value<skua_numerics>(3);
}

// In floats.
template <class Desc> unsigned __int128 weights(const Desc& d) {
  const unsigned halves = d.weight_type == SKUA_DTYPE_F16 || d.weight_type == SKUA_DTYPE_BF16 ? 1 : 2;
  return ((unsigned __int128)d.kernel_h * d.kernel_w * d.out_channels * (d.groups ? d.in_channels / d.groups : 1) *
              halves +
          1) /
         2;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  skua_op* op = nullptr;
  skua_layout layout;
  skua_dtype type;
  uint32_t channels;
  const bool with_bias = bytes.flag();
  if (bytes.flag()) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    describe(bytes, with_bias, d);
    d.hint_in_h = bytes.extent(12), d.hint_in_w = bytes.extent(12);
    const Values w(weights(d)), bias(d.out_channels);
    layout = d.layout, channels = d.in_channels, type = d.input_type;
    if (!made(skua_conv2d_create(context(), &d, w.data(), with_bias ? bias.data() : nullptr, &op), op)) return 0;
  } else {
    skua_conv2d_transpose_desc d = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
    describe(bytes, with_bias, d);
    d.output_padding_h = bytes.extent(3), d.output_padding_w = bytes.extent(3);
    const Values w(weights(d)), bias(d.out_channels);
    layout = d.layout, channels = d.in_channels, type = d.input_type;
    if (!made(skua_conv2d_transpose_create(context(), &d, w.data(), with_bias ? bias.data() : nullptr, &op), op))
      return 0;
  }
  const size_t batch = bytes.extent(3), h = bytes.extent(14), w = bytes.extent(14),
               c = bytes.byte() < 250 ? channels : bytes.extent(9);
  skua_tensor inputs[2];
  inputs[0] = layout == SKUA_LAYOUT_NHWC ? skua_tensor_4d(type, batch, h, w, c) : skua_tensor_4d(type, batch, c, h, w);
  const size_t n_inputs = skua_op_input_count(op);
  if (n_inputs == 1) {
    plan_and_run(op, inputs, 1);
  } else {
    inputs[1] = skua_tensor_4d(type, batch, bytes.extent(14), bytes.extent(14), bytes.extent(9));
    plan_and_run(op, inputs, 2);
  }
  skua_op_destroy(op);
  return 0;
}
