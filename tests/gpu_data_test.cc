// Movement of data on every GPU device against the CPU: the same bits.
#include "tests/support/support.h"

using namespace skua_test;

namespace {

template <class Make> void on_every_device(Make make_op, const std::vector<std::vector<std::vector<size_t>>>& inputs) {
  SKUA_NEED_GPU(devices);
  Context cpu;
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    Rng rng(7);
    for (const skua_dtype type : {SKUA_DTYPE_F32, SKUA_DTYPE_F16}) {
      Op reference, op;
      SKUA_EXPECT_OK(make_op(cpu, type, &reference));
      SKUA_EXPECT_OK(make_op(gpu, type, &op));
      if (!op.op) continue;
      for (const auto& shapes : inputs)
        for (const size_t skip : {0, 1}) {
          SCOPED_TRACE("shape " + std::to_string(&shapes - inputs.data()) + ", skip " + std::to_string(skip));
          gpu_skip = skip;
          std::vector<Data> x;
          for (const std::vector<size_t>& s : shapes) x.push_back(make(skip ? with_holes(shape(s, type), std::vector<size_t>(s.size(), 3)) : shape(s, type), rng));
          const Data want = run(reference, x)[0];
          expect_same_bits(run(op, x)[0], want);
          const skua_tensor holes = with_holes(shape(std::vector<size_t>(want.t.shape, want.t.shape + want.t.rank), type), std::vector<size_t>(want.t.rank, 4));
          expect_same_bits(run(op, x, {holes})[0], want);
          gpu_skip = 0;
        }
    }
  }
}

TEST(GpuData, Transpose) {
  for (const std::vector<uint32_t>& perm : {std::vector<uint32_t>{1, 0}, {0, 2, 1}, {0, 1, 2}, {3, 1, 0, 2}, {5, 3, 1, 4, 2, 0}}) {
    std::vector<size_t> x(perm.size());
    for (size_t d = 0; d < x.size(); ++d) x[d] = d % 2 ? 4 : 3 + d % 3;
    on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
      d.type = type;
      d.rank = uint32_t(perm.size());
      for (size_t i = 0; i < perm.size(); ++i) d.perm[i] = perm[i];
      return skua_transpose_create(context, &d, op);
    }, {{x}});
  }
}

TEST(GpuData, Layout) {
  for (const bool back : {false, true})
    on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_layout_desc d = SKUA_LAYOUT_DESC_INIT;
      d.type = type;
      d.from = back ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
      d.to = back ? SKUA_LAYOUT_NHWC : SKUA_LAYOUT_NCHW;
      return skua_layout_create(context, &d, op);
    }, {{{2, 5, 4, 8}}, {{1, 3, 3, 5}}});
}

TEST(GpuData, Pad) {
  for (const int mode : {SKUA_PAD_CONSTANT, SKUA_PAD_REFLECT, SKUA_PAD_EDGE})
    on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_pad_desc d = SKUA_PAD_DESC_INIT;
      d.type = type;
      d.mode = skua_pad_mode(mode);
      d.rank = 3;
      d.before[0] = 1; d.after[0] = 2;
      d.before[1] = 3; d.after[1] = 0;
      d.before[2] = 4; d.after[2] = 4;
      d.value = 1.5f;
      return skua_pad_create(context, &d, op);
    }, {{{4, 5, 8}}, {{3, 4, 7}}});
}

TEST(GpuData, Slice) {
  for (const size_t step : {1, 2})
    on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_slice_desc d = SKUA_SLICE_DESC_INIT;
      d.type = type;
      d.rank = 3;
      for (int i = 0; i < 3; ++i) {
        d.begin[i] = i == 2 ? 4 : 1;
        d.size[i] = i == 1 ? 2 : SIZE_MAX;
        d.step[i] = step;
      }
      return skua_slice_create(context, &d, op);
    }, {{{4, 5, 16}}, {{3, 6, 9}}});
}

TEST(GpuData, Concat) {
  for (const int axis : {0, 1, -1})
    on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
      d.type = type;
      d.axis = axis;
      return skua_concat_create(context, &d, op);
    }, {{{2, 3, 8}, {2, 3, 8}, {2, 3, 8}}, {{2, 3, 8}}, {{2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}}});
}

TEST(GpuData, Rearrange) {
  for (const int kind : {SKUA_REARRANGE_DEPTH_TO_SPACE, SKUA_REARRANGE_SPACE_TO_DEPTH, SKUA_REARRANGE_CHANNEL_SHUFFLE})
    for (const skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      on_every_device([&](skua_context* context, skua_dtype type, skua_op** op) {
        skua_rearrange_desc d = SKUA_REARRANGE_DESC_INIT;
        d.type = type;
        d.kind = skua_rearrange_kind(kind);
        d.layout = layout;
        d.block = 2;
        return skua_rearrange_create(context, &d, op);
      }, {{{2, 4, 4, 16}}, {{1, 12, 6, 4}}});
}

}  // namespace
