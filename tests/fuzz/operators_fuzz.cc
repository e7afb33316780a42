// Descriptors of all operators without a product inside, and the shapes and strides they are planned for.
#include <skua/skua.h>

#include "tests/fuzz/fuzz.h"

using namespace skua_fuzz;

namespace {

skua_tensor tensor(Bytes& bytes, skua_dtype type) {
  skua_tensor t = {};
  t.type = bytes.byte() >= 252 ? SKUA_DTYPE_S32 : type;
  t.rank = bytes.byte() >= 252 ? bytes.below(9) : 1 + bytes.below(SKUA_MAX_RANK);
  if (t.rank > 4) t.rank -= bytes.below(3);
  for (uint32_t d = 0; d < SKUA_MAX_RANK; ++d) t.shape[d] = bytes.extent(d > 2 ? 9 : 6);
  return t;
}

// Sometimes longer rows, exchanged dimensions, repeated ones, or anything.
void stride(Bytes& bytes, skua_tensor& t, bool repeat) {
  const uint32_t how = bytes.below(6);
  if (how > 2 || t.rank > SKUA_MAX_RANK) return;
  size_t step = 1;
  for (uint32_t d = t.rank; d-- > 0;) {
    t.stride[d] = step;
    if (__builtin_mul_overflow(step, (t.shape[d] ? t.shape[d] : 1) + (how ? bytes.below(3) : 0), &step)) step = 1;
    if (repeat && bytes.byte() >= 230) t.stride[d] = 0;
    if (bytes.byte() >= 252) t.stride[d] = bytes.extent(20);
  }
  if (how == 2 && t.rank > 1) {
    const uint32_t a = bytes.below(t.rank), b = bytes.below(t.rank);
    const size_t shape = t.shape[a], stride = t.stride[a];
    t.shape[a] = t.shape[b], t.stride[a] = t.stride[b];
    t.shape[b] = shape, t.stride[b] = stride;
  }
}

// Mostly f32, sometimes bytes, which come with a quantisation, or another.
skua_dtype type_of(Bytes& bytes) {
  const uint32_t drawn = bytes.byte();
  return drawn < 160   ? SKUA_DTYPE_F32
         : drawn < 200 ? SKUA_DTYPE_S8
         : drawn < 240 ? SKUA_DTYPE_U8
                       : skua_dtype(drawn % 8);
}
skua_quantization quantization(Bytes& bytes, skua_dtype type) {
  skua_quantization q = {};
  if (type != SKUA_DTYPE_S8 && type != SKUA_DTYPE_U8) return q;
  static const float scales[] = {0.05f, 1, 1.0f / 256, 3e38f, 1e-38f};
  const uint32_t drawn = bytes.byte();
  q.scale = drawn < 250 ? scales[drawn % 5] : bytes.real();
  q.zero_point = int32_t(bytes.byte()) - (type == SKUA_DTYPE_S8 ? 128 : 0);
  return q;
}

skua_status create(Bytes& bytes, uint32_t which, const skua_tensor& like, skua_dtype* tensors, skua_op** op) {
  const skua_dtype type = type_of(bytes);
  if (which != 3 && which != 4) *tensors = type;
  const auto layout = bytes.value<skua_layout>(2);
  const skua_activation activation = {bytes.value<skua_activation_kind>(14), bytes.real(), bytes.real()};
  const uint32_t rank = bytes.byte() >= 250 ? bytes.below(9) : like.rank;
  switch (which) {
    case 0: {
      skua_unary_desc d = SKUA_UNARY_DESC_INIT;
      d.kind = bytes.value<skua_unary_kind>(SKUA_UNARY_KIND_COUNT), d.input_type = type, d.a = bytes.real(),
      d.b = bytes.real();
      d.output_type = type, d.input_q = quantization(bytes, type), d.output_q = quantization(bytes, type);
      return skua_unary_create(context(), &d, op);
    }
    case 1: {
      skua_binary_desc d = SKUA_BINARY_DESC_INIT;
      d.kind = bytes.value<skua_binary_kind>(SKUA_BINARY_KIND_COUNT), d.type = type, d.activation = activation;
      d.x_q = quantization(bytes, type), d.y_q = quantization(bytes, type), d.output_q = quantization(bytes, type);
      return skua_binary_create(context(), &d, op);
    }
    case 2: {
      if (bytes.flag()) {
        skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
        const float scales[] = {0.5f, 1e-3f, 2, 7, 0.01f, 1};
        d.input_type = type, d.output_type = type_of(bytes);
        d.input_q = quantization(bytes, d.input_type), d.output_q = quantization(bytes, d.output_type);
        if (bytes.below(4) == 0)
          d.channels = bytes.extent(7), d.output_q.scales = d.channels <= 6 ? scales : nullptr,
          d.output_q.axis = bytes.below(7);
        return skua_convert_create(context(), &d, op);
      }
      *tensors = SKUA_DTYPE_F32;
      const skua_select_desc d = SKUA_SELECT_DESC_INIT;
      return skua_select_create(context(), &d, op);
    }
    case 3: {
      skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
      d.axis = int32_t(bytes.extent(8)) - 3, d.log = bytes.flag(), d.scale = bytes.real();
      return skua_softmax_create(context(), &d, op);
    }
    case 4: {
      skua_norm_desc d = SKUA_NORM_DESC_INIT;
      d.kind = bytes.value<skua_norm_kind>(5), d.layout = layout, d.axes = bytes.extent(4), d.groups = bytes.extent(4),
      d.epsilon = bytes.real();
      d.channels = bytes.byte() < 200 && like.rank && like.rank <= SKUA_MAX_RANK
                       ? like.shape[layout == SKUA_LAYOUT_NCHW && like.rank > 1 ? 1 : like.rank - 1]
                       : bytes.extent(9);
      const Values values(d.channels);
      const bool batch = d.kind == SKUA_NORM_BATCH;
      return skua_norm_create(context(), &d, bytes.flag() ? values.data() : nullptr,
                              bytes.flag() ? values.data() : nullptr, batch ? values.data() : nullptr,
                              batch ? values.data() : nullptr, op);
    }
    case 5: {
      skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
      d.kind = bytes.value<skua_reduce_kind>(SKUA_REDUCE_KIND_COUNT), d.axis_count = bytes.extent(4),
      d.keep_dims = bytes.flag();
      for (int32_t& axis : d.axes) axis = int32_t(uint32_t(bytes.extent(8)) - 3);
      d.type = type, d.input_q = quantization(bytes, type), d.output_q = quantization(bytes, type);
      return skua_reduce_create(context(), &d, op);
    }
    case 6: {
      skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
      d.kind = bytes.value<skua_pool_kind>(3), d.type = type, d.layout = layout, d.global = bytes.below(8) == 0;
      d.kernel_h = bytes.extent(5), d.kernel_w = bytes.extent(5), d.stride_h = bytes.extent(4),
      d.stride_w = bytes.extent(4);
      d.dilation_h = bytes.extent(3), d.dilation_w = bytes.extent(3);
      d.padding = {bytes.value<skua_padding_mode>(3), bytes.extent(3), bytes.extent(3), bytes.extent(3),
                   bytes.extent(3)};
      d.ceil_mode = bytes.flag(), d.count_padding = bytes.flag(), d.activation = activation;
      d.input_q = d.output_q = quantization(bytes, type);
      return skua_pool2d_create(context(), &d, op);
    }
    case 7: {
      skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
      d.kind = bytes.value<skua_resize_kind>(2), d.coordinates = bytes.value<skua_resize_coordinates>(3), d.type = type,
      d.layout = layout;
      d.out_h = bytes.extent(9), d.out_w = bytes.extent(9);
      d.input_q = d.output_q = quantization(bytes, type);
      return skua_resize2d_create(context(), &d, op);
    }
    case 8: {
      skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
      d.type = type, d.rank = rank;
      for (uint32_t i = 0; i < SKUA_MAX_RANK; ++i) d.perm[i] = i;
      for (uint32_t i = 0; i < SKUA_MAX_RANK && rank && rank <= SKUA_MAX_RANK; ++i) {
        const uint32_t a = bytes.below(rank), b = bytes.below(rank), kept = d.perm[a];
        d.perm[a] = d.perm[b], d.perm[b] = kept;
      }
      if (bytes.byte() >= 250) d.perm[bytes.below(SKUA_MAX_RANK)] = bytes.extent(7);
      return skua_transpose_create(context(), &d, op);
    }
    case 9: {
      skua_layout_desc d = SKUA_LAYOUT_DESC_INIT;
      d.type = type, d.from = layout, d.to = bytes.value<skua_layout>(2);
      return skua_layout_create(context(), &d, op);
    }
    case 10: {
      skua_pad_desc d = SKUA_PAD_DESC_INIT;
      d.type = type, d.mode = bytes.value<skua_pad_mode>(3), d.rank = rank, d.value = bytes.real();
      for (uint32_t i = 0; i < SKUA_MAX_RANK; ++i) d.before[i] = bytes.extent(3), d.after[i] = bytes.extent(3);
      return skua_pad_create(context(), &d, op);
    }
    case 11: {
      skua_slice_desc d = SKUA_SLICE_DESC_INIT;
      d.type = type, d.rank = rank;
      for (uint32_t i = 0; i < SKUA_MAX_RANK; ++i) {
        d.begin[i] = bytes.extent(3), d.step[i] = bytes.extent(4);
        d.size[i] = bytes.flag() ? SIZE_MAX : bytes.extent(5);
      }
      return skua_slice_create(context(), &d, op);
    }
    case 12: {
      skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
      d.type = type, d.axis = int32_t(bytes.extent(8)) - 3;
      return skua_concat_create(context(), &d, op);
    }
    default: {
      skua_rearrange_desc d = SKUA_REARRANGE_DESC_INIT;
      d.kind = bytes.value<skua_rearrange_kind>(3), d.type = type, d.layout = layout, d.block = bytes.extent(4);
      return skua_rearrange_create(context(), &d, op);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const uint32_t which = bytes.below(14);
  std::vector<skua_tensor> inputs = {tensor(bytes, SKUA_DTYPE_F32)};
  skua_op* op = nullptr;
  skua_dtype type = SKUA_DTYPE_F32;
  if (!made(create(bytes, which, inputs[0], &type, &op), op)) return 0;
  if (inputs[0].type == SKUA_DTYPE_F32) inputs[0].type = type;
  const size_t count = skua_op_input_count(op) ? skua_op_input_count(op) : 1 + bytes.below(5);
  while (inputs.size() < count) {
    skua_tensor t = inputs[0];
    if (t.rank && t.rank <= SKUA_MAX_RANK && bytes.flag())
      t.shape[bytes.below(t.rank)] = bytes.flag() ? 1 : bytes.extent(6);
    if (bytes.byte() >= 250) t = tensor(bytes, type);
    inputs.push_back(t);
  }
  for (skua_tensor& t : inputs) stride(bytes, t, true);
  // The output as inferred, sometimes with strides of its own.
  skua_tensor output = {};
  skua_plan* plan = nullptr;
  const bool given = bytes.flag() && skua_op_output_count(op) == 1 &&
                     skua_op_plan(op, inputs.data(), count, nullptr, 0, &plan) == SKUA_STATUS_OK;
  if (given) {
    skua_plan_outputs(plan, &output, 1);
    stride(bytes, output, false);
    skua_plan_destroy(plan);
  }
  plan_and_run(op, inputs.data(), count, given ? &output : nullptr);
  skua_op_destroy(op);
  return 0;
}
