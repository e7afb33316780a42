// Movement of data on every GPU device against the CPU: the same bits.
#include "tests/support/gpu.h"

using namespace skua_test;

namespace {

void same_bits(const MakeOp& make_op, const std::vector<std::vector<Shape>>& inputs) {
  compare_on_gpus(inputs, Holes::all, make_op);
}

TEST(GpuData, Transpose) {
  for (const std::vector<uint32_t>& perm :
       {std::vector<uint32_t>{1, 0}, {0, 2, 1}, {0, 1, 2}, {3, 1, 0, 2}, {5, 3, 1, 4, 2, 0}}) {
    Shape x(perm.size());
    for (size_t d = 0; d < x.size(); ++d) x[d] = d % 2 ? 4 : 3 + d % 3;
    same_bits([&](skua_context* context, skua_dtype type, skua_op** op) {
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
    same_bits([&](skua_context* context, skua_dtype type, skua_op** op) {
      skua_layout_desc d = SKUA_LAYOUT_DESC_INIT;
      d.type = type;
      d.from = back ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
      d.to = back ? SKUA_LAYOUT_NHWC : SKUA_LAYOUT_NCHW;
      return skua_layout_create(context, &d, op);
    }, {{{2, 5, 4, 8}}, {{1, 3, 3, 5}}, {{2, 7, 9, 35}}});  // the last by squares
}

TEST(GpuData, Pad) {
  for (const int mode : {SKUA_PAD_CONSTANT, SKUA_PAD_REFLECT, SKUA_PAD_EDGE})
    same_bits([&](skua_context* context, skua_dtype type, skua_op** op) {
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
    same_bits([&](skua_context* context, skua_dtype type, skua_op** op) {
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
    same_bits(
        [&](skua_context* context, skua_dtype type, skua_op** op) {
          skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
          d.type = type;
          d.axis = axis;
          return skua_concat_create(context, &d, op);
        },
        {{{2, 3, 8}, {2, 3, 8}, {2, 3, 8}},
         {{2, 3, 8}},
         {{2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}, {2, 3, 5}}});
}

TEST(GpuData, Rearrange) {
  for (const int kind : {SKUA_REARRANGE_DEPTH_TO_SPACE, SKUA_REARRANGE_SPACE_TO_DEPTH, SKUA_REARRANGE_CHANNEL_SHUFFLE})
    for (const skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      same_bits([&](skua_context* context, skua_dtype type, skua_op** op) {
        skua_rearrange_desc d = SKUA_REARRANGE_DESC_INIT;
        d.type = type;
        d.kind = skua_rearrange_kind(kind);
        d.layout = layout;
        d.block = 2;
        return skua_rearrange_create(context, &d, op);
      }, {{{2, 4, 4, 16}}, {{1, 12, 6, 4}}});
}

}  // namespace
