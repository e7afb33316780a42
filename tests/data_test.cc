// Data movement: every kernel against index arithmetic on dense copies. Bits are compared, NaN payloads included.
#include <skua/skua.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "dispatch/element.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Shape = std::vector<size_t>;

size_t count(const Shape& s) {
  size_t n = 1;
  for (size_t e : s) n *= e;
  return n;
}
Shape index_of(const Shape& s, size_t flat) {
  Shape i(s.size());
  for (size_t d = s.size(); d-- > 0; flat /= s[d]) i[d] = flat % s[d];
  return i;
}
size_t flat_of(const Shape& s, const Shape& i) {
  size_t flat = 0;
  for (size_t d = 0; d < s.size(); ++d) flat = flat * s[d] + i[d];
  return flat;
}

// Types of 16 and 8 bits that this build moves.
std::vector<skua_dtype> narrow_types() {
  std::vector<skua_dtype> types = half_types();
  types.push_back(SKUA_DTYPE_S8);
  types.push_back(SKUA_DTYPE_U8);
  return types;
}

// Values in which every element differs, as far as the type goes; some are NaN with payloads, denormals, -0.
Data numbered(const skua_tensor& t, uint32_t seed) {
  Rng rng(seed);
  Data x = make(t, rng);
  const skua_tensor r = resolved(x.t);
  for (size_t i = 0; i < elements(r); ++i) {
    float& v = x.v[offset(r, i)];
    if (t.type == SKUA_DTYPE_S32) { v = float(int(i) - 7); continue; }
    if (t.type == SKUA_DTYPE_S8 || t.type == SKUA_DTYPE_U8) {
      v = float(int((i + i / 256) * 7 % 256) - (t.type == SKUA_DTYPE_S8 ? 128 : 0));
      continue;
    }
    if (t.type == SKUA_DTYPE_F16 || t.type == SKUA_DTYPE_BF16) {
      const bool half = t.type == SKUA_DTYPE_F16;
      const unsigned nan = half ? 0x7e00 + i % 512 : 0x7fc0 + i % 64;
      const uint16_t bits = uint16_t(i % 11 == 3   ? nan
                                     : i % 11 == 5 ? 1 + i % 64
                                     : i % 11 == 7 ? 0x8000 | nan
                                                   : 0x1000 + i % 0x6000);
      v = half ? skua::widen(skua::f16{bits}) : skua::widen(skua::bf16{bits});
      continue;
    }
    const uint32_t bits = i % 11 == 3   ? 0x7fc00100u + uint32_t(i)
                          : i % 11 == 5 ? 0x00000001u + uint32_t(i)
                          : i % 11 == 7 ? 0xffa00000u + uint32_t(i)
                                        : 0x3f000000u + uint32_t(i);
    std::memcpy(&v, &bits, sizeof v);
  }
  return x;
}

// out[i] = in[from(i)], or `fill` where from() gives SIZE_MAX.
void expect_moved(const Data& got, const std::vector<float>& in, const Shape& out_shape, float fill,
                  const std::function<size_t(const Shape&)>& from) {
  ASSERT_EQ(got.t.rank, out_shape.size());
  for (size_t d = 0; d < out_shape.size(); ++d) ASSERT_EQ(got.t.shape[d], out_shape[d]);
  const std::vector<float> y = dense(got);
  ASSERT_EQ(y.size(), count(out_shape));
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t at = from(index_of(out_shape, i));
    const float want = at == SIZE_MAX ? fill : in[at];
    ASSERT_EQ(std::memcmp(&y[i], &want, sizeof want), 0) << "element " << i << " is " << y[i] << ", must be " << want;
  }
}

// Room of d % 3 between the rows of dimension d > 0, so that nothing is dense.
skua_tensor holey(const skua_tensor& t) {
  std::vector<size_t> more(t.rank, 0);
  for (uint32_t d = 1; d < t.rank; ++d) more[d] = 1 + d % 3;
  return with_holes(t, more);
}

void check_transpose(skua_context* context, const Shape& s, const std::vector<uint32_t>& perm, bool holes,
                     skua_dtype type = SKUA_DTYPE_F32) {
  SCOPED_TRACE(testing::PrintToString(s) + " by " + testing::PrintToString(perm) + (holes ? " with holes" : ""));
  skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
  d.type = type;
  d.rank = uint32_t(s.size());
  Shape to(s.size());
  for (size_t i = 0; i < s.size(); ++i) { d.perm[i] = perm[i]; to[i] = s[perm[i]]; }
  Op op;
  SKUA_EXPECT_OK(skua_transpose_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Data x = numbered(holes ? holey(shape(s, type)) : shape(s, type), 3);
  const std::vector<Data> got = holes ? run(op, {x}, {holey(shape(to, type))}) : run(op, {x});
  ASSERT_EQ(got.size(), 1u);
  expect_moved(got[0], dense(x), to, 0, [&](const Shape& i) {
    Shape from(s.size());
    for (size_t k = 0; k < s.size(); ++k) from[perm[k]] = i[k];
    return flat_of(s, from);
  });
}

TEST(Transpose, EveryInstructionSetEveryTail) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    const size_t most = small() ? 18 : 35;
    for (size_t m = 1; m <= most; m += m < 18 ? 1 : 5)
      for (size_t n = 1; n <= most; n += n < 5 ? 1 : 4) {
        check_transpose(context, {m, n}, {1, 0}, (m + n) % 2);
        if (HasFatalFailure()) return;
      }
    check_transpose(context, {2, 3, 4, 5}, {0, 1, 2, 3}, false);
    check_transpose(context, {2, 3, 4, 5}, {0, 1, 2, 3}, true);
    check_transpose(context, {3, 4, 17, 5}, {0, 2, 1, 3}, false);
    check_transpose(context, {3, 4, 17, 5}, {2, 0, 3, 1}, true);
    check_transpose(context, {2, 3, 2, 5, 3, 4}, {5, 3, 1, 0, 4, 2}, false);
    check_transpose(context, {2, 3, 2, 5, 3, 4}, {3, 1, 5, 4, 2, 0}, true, SKUA_DTYPE_S32);
    check_transpose(context, {7}, {0}, false);
    check_transpose(context, {37, 8}, {1, 0}, false);     // taken apart
    check_transpose(context, {1536, 19}, {1, 0}, false);  // rows of the output share sets of the caches
    check_transpose(context, {5, 0, 3}, {2, 1, 0}, false);
    for (skua_dtype type : narrow_types()) {
      for (size_t m : {3, 5, 16, 31, 37, 64, 83})
        for (size_t n : {1, 4, 15, 32, 35, 41}) check_transpose(context, {m, n}, {1, 0}, (m + n) % 2, type);
      check_transpose(context, {37, 8}, {1, 0}, false, type);
      check_transpose(context, {2048, 67}, {1, 0}, false, type);
      check_transpose(context, {3, 4, 17, 5}, {2, 0, 3, 1}, true, type);
      check_transpose(context, {2, 3, 4, 5}, {0, 1, 2, 3}, false, type);
    }
  }
}

TEST(Transpose, LargeEnoughToBeCut) {
  if (small()) GTEST_SKIP() << "large";
  Context context;
  check_transpose(context, {300, 1000}, {1, 0}, false);
  check_transpose(context, {400000}, {0}, false);
  check_transpose(context, {3, 100000}, {1, 0}, false);
}

// All 65536 patterns of 16 bits, signalling NaNs among them.
TEST(Transpose, KeepsEveryHalf) {
  if (half_types().empty()) GTEST_SKIP() << "f32 only";
  std::vector<uint16_t> x(65536), y(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = uint16_t(i);
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (uint32_t first : {0u, 1u}) {  // as it is, and transposed
      skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
      d.type = half_types()[0];
      d.rank = 2;
      d.perm[0] = first, d.perm[1] = 1 - first;
      Op op;
      SKUA_EXPECT_OK(skua_transpose_create(context, &d, &op));
      const skua_tensor t = shape({256, 256}, d.type);
      skua_plan* plan = nullptr;
      SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
      const skua_buffer in = skua_host_buffer(x.data()), out = skua_host_buffer(y.data());
      SKUA_EXPECT_OK(skua_plan_run(plan, &in, 1, &out, 1, nullptr, 0, nullptr));
      skua_plan_destroy(plan);
      for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], first ? i % 256 * 256 + i / 256 : i);
    }
  }
}

TEST(Transpose, ReadsABroadcastInput) {
  Context context;
  skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
  d.rank = 2;
  d.perm[0] = 1;
  Op op;
  SKUA_EXPECT_OK(skua_transpose_create(context, &d, &op));
  Rng rng(1);
  Data x;
  x.t = shape({4, 9});
  x.t.stride[1] = 1;  // one row, four times
  x.v = make({9}, rng).v;
  const Data y = run(op, {x})[0];
  for (size_t i = 0; i < 36; ++i) EXPECT_EQ(y.v[i], x.v[i / 4]);
}

TEST(Layout, BothWays) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_layout from : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      for (skua_layout to : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (const Shape& s : {Shape{2, 5, 7, 3}, Shape{1, 4, 4, 33}, Shape{2, 1, 1, 16}, Shape{1, 12, 13, 1}}) {
          skua_layout_desc d = SKUA_LAYOUT_DESC_INIT;
          d.from = from;
          d.to = to;
          Op op;
          SKUA_EXPECT_OK(skua_layout_create(context, &d, &op));
          const Data x = numbered(shape(s), 5);
          const Shape out = from == to               ? s
                            : to == SKUA_LAYOUT_NCHW ? Shape{s[0], s[3], s[1], s[2]}
                                                     : Shape{s[0], s[2], s[3], s[1]};
          expect_moved(run(op, {x})[0], dense(x), out, 0, [&](const Shape& i) {
            return flat_of(s, from == to               ? i
                              : to == SKUA_LAYOUT_NCHW ? Shape{i[0], i[2], i[3], i[1]}
                                                       : Shape{i[0], i[3], i[1], i[2]});
          });
        }
  }
}

void check_pad(skua_context* context, skua_pad_mode mode, const Shape& s, const Shape& before, const Shape& after,
               bool holes, skua_dtype type = SKUA_DTYPE_F32) {
  SCOPED_TRACE(testing::Message() << "mode " << mode << testing::PrintToString(s) << testing::PrintToString(before)
                                  << testing::PrintToString(after) << holes);
  skua_pad_desc d = SKUA_PAD_DESC_INIT;
  d.type = type;
  d.mode = mode;
  d.rank = uint32_t(s.size());
  d.value = 2.5f;
  Shape out(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    d.before[i] = before[i];
    d.after[i] = after[i];
    out[i] = s[i] + before[i] + after[i];
  }
  Op op;
  SKUA_EXPECT_OK(skua_pad_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Data x = numbered(holes ? holey(shape(s, type)) : shape(s, type), 9);
  const Data y = holes ? run(op, {x}, {holey(shape(out, type))})[0] : run(op, {x})[0];
  expect_moved(y, dense(x), out, skua_dtype_bits(type) == 8 || type == SKUA_DTYPE_S32 ? 2.0f : 2.5f,
               [&](const Shape& i) {
                 Shape from(s.size());
                 for (size_t k = 0; k < s.size(); ++k) {
                   ptrdiff_t at = ptrdiff_t(i[k]) - ptrdiff_t(before[k]);
                   const ptrdiff_t last = ptrdiff_t(s[k]) - 1;
                   if (mode == SKUA_PAD_CONSTANT && (at < 0 || at > last)) return SIZE_MAX;
                   if (mode == SKUA_PAD_REFLECT) at = at < 0 ? -at : at > last ? 2 * last - at : at;
                   if (mode == SKUA_PAD_EDGE) at = at < 0 ? 0 : at > last ? last : at;
                   from[k] = size_t(at);
                 }
                 return flat_of(s, from);
               });
}

TEST(Pad, EveryModeEveryInstructionSet) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_pad_mode mode : {SKUA_PAD_CONSTANT, SKUA_PAD_REFLECT, SKUA_PAD_EDGE})
      for (bool holes : {false, true}) {
        check_pad(context, mode, {20}, {3}, {19}, holes);
        check_pad(context, mode, {5, 6}, {2, 0}, {0, 5}, holes);
        check_pad(context, mode, {2, 5, 6, 3}, {0, 1, 1, 0}, {0, 1, 2, 0}, holes);
        check_pad(context, mode, {2, 4, 3, 20}, {1, 2, 2, 19}, {1, 3, 1, 1}, holes, SKUA_DTYPE_S32);
        check_pad(context, mode, {1, 2, 1, 2, 1, 3}, {0, 1, 0, 1, 0, 2}, {0, 1, 0, 0, 0, 1}, holes);
        check_pad(context, mode, {3, 4}, {0, 0}, {0, 0}, holes);
        for (skua_dtype type : narrow_types())
          check_pad(context, mode, {2, 4, 3, 70}, {1, 2, 2, 69}, {1, 3, 1, 1}, holes, type);
      }
    check_pad(context, SKUA_PAD_CONSTANT, {0, 3}, {2, 1}, {1, 0}, false);
    check_pad(context, SKUA_PAD_CONSTANT, {0, 3}, {0, 1}, {0, 0}, false);
    check_pad(context, SKUA_PAD_EDGE, {2, 1}, {5, 30}, {7, 35}, false);
  }
}

// The value of an integer type is the stored one, rounded and saturated.
TEST(Pad, IntegersSaturate) {
  const float nan = std::nanf(""), values[] = {-0.5f, 1.5f, 2.5f, -1000, 1000, nan, INFINITY, -129, 127.5f, 254.5f};
  const float s8[] = {0, 2, 2, -128, 127, 0, 127, -128, 127, 127}, u8[] = {0, 2, 2, 0, 255, 0, 255, 0, 128, 254};
  Context context;
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i)
    for (skua_dtype type : {SKUA_DTYPE_S8, SKUA_DTYPE_U8}) {
      skua_pad_desc d = SKUA_PAD_DESC_INIT;
      d.type = type, d.rank = 1, d.after[0] = 1, d.value = values[i];
      Op op;
      SKUA_EXPECT_OK(skua_pad_create(context, &d, &op));
      Rng rng(1);
      const Data y = run(op, {make_integers(shape({3}, type), rng, 0, 100)})[0];
      EXPECT_EQ(y.v[3], type == SKUA_DTYPE_S8 ? s8[i] : u8[i]) << values[i];
    }
}

TEST(Pad, LargeEnoughToBeCut) {
  if (small()) GTEST_SKIP() << "large";
  Context context;
  check_pad(context, SKUA_PAD_CONSTANT, {1, 90, 90, 64}, {0, 0, 31, 0}, {0, 0, 0, 0}, false);
  check_pad(context, SKUA_PAD_REFLECT, {400, 800}, {0, 390}, {0, 0}, false);
}

void check_slice(skua_context* context, const Shape& s, const Shape& begin, const Shape& size, const Shape& step,
                 bool holes, skua_dtype type = SKUA_DTYPE_F32) {
  SCOPED_TRACE(testing::PrintToString(s) + testing::PrintToString(begin) + testing::PrintToString(size) +
               testing::PrintToString(step));
  skua_slice_desc d = SKUA_SLICE_DESC_INIT;
  d.type = type;
  d.rank = uint32_t(s.size());
  Shape out(s.size());
  for (size_t i = 0; i < s.size(); ++i) {
    d.begin[i] = begin[i];
    d.size[i] = size[i];
    d.step[i] = step[i];
    out[i] = size[i] == SIZE_MAX ? (s[i] - begin[i] + step[i] - 1) / step[i] : size[i];
  }
  Op op;
  SKUA_EXPECT_OK(skua_slice_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const Data x = numbered(holes ? holey(shape(s, type)) : shape(s, type), 13);
  const Data y = holes ? run(op, {x}, {holey(shape(out, type))})[0] : run(op, {x})[0];
  expect_moved(y, dense(x), out, 0, [&](const Shape& i) {
    Shape from(s.size());
    for (size_t k = 0; k < s.size(); ++k) from[k] = begin[k] + i[k] * step[k];
    return flat_of(s, from);
  });
}

TEST(Slice, BeginSizeStep) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (bool holes : {false, true}) {
      check_slice(context, {40}, {3}, {20}, {1}, holes);
      check_slice(context, {40}, {3}, {SIZE_MAX}, {3}, holes);
      check_slice(context, {9, 33}, {1, 2}, {SIZE_MAX, 29}, {2, 1}, holes);
      check_slice(context, {2, 6, 7, 5}, {1, 0, 2, 1}, {1, 3, SIZE_MAX, 2}, {1, 2, 4, 3}, holes);
      check_slice(context, {4, 5}, {4, 0}, {SIZE_MAX, SIZE_MAX}, {1, 1}, holes);
      check_slice(context, {4, 5}, {3, 4}, {1, 1}, {SIZE_MAX, SIZE_MAX}, holes);
      for (skua_dtype type : narrow_types()) {
        check_slice(context, {140}, {3}, {133}, {1}, holes, type);
        check_slice(context, {2, 6, 7, 5}, {1, 0, 2, 1}, {1, 3, SIZE_MAX, 2}, {1, 2, 4, 3}, holes, type);
      }
    }
  }
}

TEST(Concat, AnyAxisAnyNumber) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (int32_t axis : {0, 1, 2, -1, -3})
      for (size_t n : {size_t(1), size_t(2), size_t(5), size_t(64)}) {
        SCOPED_TRACE(testing::Message() << "axis " << axis << ", " << n << " inputs");
        const skua_dtype type = n == 5 ? float_types().back() : n == 2 ? SKUA_DTYPE_S8 : SKUA_DTYPE_F32;
        skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
        d.type = type;
        d.axis = axis;
        Op op;
        SKUA_EXPECT_OK(skua_concat_create(context, &d, &op));
        ASSERT_NE(op.op, nullptr);
        const size_t at = size_t(axis < 0 ? axis + 3 : axis);
        std::vector<Data> inputs;
        std::vector<std::vector<float>> values;
        Shape out = {3, 4, 5};
        out[at] = 0;
        for (size_t i = 0; i < n; ++i) {
          Shape s = {3, 4, 5};
          s[at] = i % 4 == 3 ? 0 : 1 + i % 19;
          out[at] += s[at];
          inputs.push_back(numbered(i % 2 ? holey(shape(s, type)) : shape(s, type), uint32_t(i)));
          values.push_back(dense(inputs.back()));
        }
        const Data y = run(op, inputs, {holey(shape(out, type))})[0];
        const std::vector<float> got = dense(y);
        for (size_t flat = 0; flat < got.size(); ++flat) {
          Shape i = index_of(out, flat);
          size_t which = 0;
          while (i[at] >= inputs[which].t.shape[at]) i[at] -= inputs[which++].t.shape[at];
          const Shape s(inputs[which].t.shape, inputs[which].t.shape + 3);
          ASSERT_EQ(std::memcmp(&got[flat], &values[which][flat_of(s, i)], sizeof(float)), 0) << flat;
        }
      }
  }
}

TEST(Concat, LargeEnoughToBeCut) {
  Context context;
  skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
  d.axis = -1;
  Op op;
  SKUA_EXPECT_OK(skua_concat_create(context, &d, &op));
  const size_t rows = small() ? 40 : 3000;
  std::vector<Data> inputs;
  for (size_t i = 0; i < 3; ++i) inputs.push_back(numbered(shape({rows, 40 + i}), uint32_t(i)));
  const Data y = run(op, inputs)[0];
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0, at = 0; i < 3; at += 40 + i++)
      ASSERT_EQ(std::memcmp(&y.v[r * 123 + at], &inputs[i].v[r * (40 + i)], (40 + i) * sizeof(float)), 0);
}

void check_rearrange(skua_context* context, skua_rearrange_kind kind, skua_layout layout, const Shape& nhwc, size_t b,
                     bool holes, skua_dtype type = SKUA_DTYPE_F32) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << ", layout " << layout << ", " << testing::PrintToString(nhwc)
                                  << " block " << b);
  skua_rearrange_desc d = SKUA_REARRANGE_DESC_INIT;
  d.type = type;
  d.kind = kind;
  d.layout = layout;
  d.block = uint32_t(b);
  Op op;
  SKUA_EXPECT_OK(skua_rearrange_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const bool last = layout == SKUA_LAYOUT_NHWC;
  auto stored = [&](const Shape& i) { return last ? i : Shape{i[0], i[3], i[1], i[2]}; };
  auto logical = [&](const Shape& i) { return last ? i : Shape{i[0], i[2], i[3], i[1]}; };
  Shape out = nhwc;
  if (kind == SKUA_REARRANGE_DEPTH_TO_SPACE) out = {nhwc[0], nhwc[1] * b, nhwc[2] * b, nhwc[3] / (b * b)};
  if (kind == SKUA_REARRANGE_SPACE_TO_DEPTH) out = {nhwc[0], nhwc[1] / b, nhwc[2] / b, nhwc[3] * b * b};
  const Shape in = stored(nhwc);
  const Data x = numbered(holes ? holey(shape(in, type)) : shape(in, type), 21);
  const Data y = holes ? run(op, {x}, {holey(shape(stored(out), type))})[0] : run(op, {x})[0];
  expect_moved(y, dense(x), stored(out), 0, [&](const Shape& stored_index) {
    const Shape i = logical(stored_index);
    Shape from = i;
    if (kind == SKUA_REARRANGE_DEPTH_TO_SPACE)
      from = {i[0], i[1] / b, i[2] / b, ((i[1] % b) * b + i[2] % b) * out[3] + i[3]};
    if (kind == SKUA_REARRANGE_SPACE_TO_DEPTH) {
      const size_t channel = i[3] % nhwc[3], block = i[3] / nhwc[3];
      from = {i[0], i[1] * b + block / b, i[2] * b + block % b, channel};
    }
    if (kind == SKUA_REARRANGE_CHANNEL_SHUFFLE) from[3] = i[3] % b * (nhwc[3] / b) + i[3] / b;
    return flat_of(in, stored(from));
  });
}

TEST(Rearrange, EveryKindBothLayouts) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
      for (bool holes : {false, true}) {
        check_rearrange(context, SKUA_REARRANGE_DEPTH_TO_SPACE, layout, {2, 3, 4, 36}, 2, holes);
        check_rearrange(context, SKUA_REARRANGE_DEPTH_TO_SPACE, layout, {1, 3, 2, 9}, 3, holes);
        check_rearrange(context, SKUA_REARRANGE_DEPTH_TO_SPACE, layout, {1, 3, 2, 5}, 1, holes);
        check_rearrange(context, SKUA_REARRANGE_SPACE_TO_DEPTH, layout, {2, 6, 4, 17}, 2, holes);
        check_rearrange(context, SKUA_REARRANGE_SPACE_TO_DEPTH, layout, {1, 3, 6, 2}, 3, holes);
        check_rearrange(context, SKUA_REARRANGE_CHANNEL_SHUFFLE, layout, {2, 3, 3, 48}, 2, holes);
        check_rearrange(context, SKUA_REARRANGE_CHANNEL_SHUFFLE, layout, {1, 2, 5, 60}, 4, holes);
        check_rearrange(context, SKUA_REARRANGE_CHANNEL_SHUFFLE, layout, {1, 2, 5, 21}, 3, holes);
        check_rearrange(context, SKUA_REARRANGE_CHANNEL_SHUFFLE, layout, {0, 2, 5, 21}, 7, holes);
        for (skua_dtype type : narrow_types()) {
          check_rearrange(context, SKUA_REARRANGE_DEPTH_TO_SPACE, layout, {2, 3, 4, 36}, 2, holes, type);
          check_rearrange(context, SKUA_REARRANGE_CHANNEL_SHUFFLE, layout, {1, 2, 5, 60}, 4, holes, type);
        }
      }
  }
}

// ---- bad descriptors and shapes -------------------------------------------------------------------------------------
void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

TEST(Data, BadDescriptorsAreRefusedByName) {
  Context context;
  skua_op* op = nullptr;
  const skua_status bad = SKUA_STATUS_INVALID_ARGUMENT;
  skua_transpose_desc t = SKUA_TRANSPOSE_DESC_INIT;
  expect_text(skua_transpose_create(context, &t, &op), bad, "transpose: rank is 0");
  t.rank = 7;
  expect_text(skua_transpose_create(context, &t, &op), bad, "rank is 7");
  t.rank = 2;
  expect_text(skua_transpose_create(context, &t, &op), bad, "perm[1] is 0");
  t.perm[1] = 2;
  expect_text(skua_transpose_create(context, &t, &op), bad, "perm[1] is 2");
  t.type = SKUA_DTYPE_S4;
  expect_text(skua_transpose_create(context, &t, &op), SKUA_STATUS_UNSUPPORTED, "type is s4");
  t.type = skua_dtype(77);
  expect_text(skua_transpose_create(context, &t, &op), bad, "type is 77");
  t.struct_size = 3;
  expect_text(skua_transpose_create(context, &t, &op), bad, "struct_size is 3");
  expect_text(skua_transpose_create(context, nullptr, &op), bad, "desc is NULL");
  skua_layout_desc l = SKUA_LAYOUT_DESC_INIT;
  l.from = skua_layout(5);
  expect_text(skua_layout_create(context, &l, &op), bad, "from is 5");
  l = SKUA_LAYOUT_DESC_INIT;
  l.to = skua_layout(6);
  expect_text(skua_layout_create(context, &l, &op), bad, "to is 6");
  skua_pad_desc p = SKUA_PAD_DESC_INIT;
  expect_text(skua_pad_create(context, &p, &op), bad, "pad: rank is 0");
  p.mode = skua_pad_mode(3);
  expect_text(skua_pad_create(context, &p, &op), bad, "mode is 3");
  skua_slice_desc s = SKUA_SLICE_DESC_INIT;
  expect_text(skua_slice_create(context, &s, &op), bad, "slice: rank is 0");
  s.rank = 2;
  s.step[1] = 0;
  expect_text(skua_slice_create(context, &s, &op), bad, "step[1] is 0");
  skua_concat_desc c = SKUA_CONCAT_DESC_INIT;
  c.axis = 6;
  expect_text(skua_concat_create(context, &c, &op), bad, "axis is 6");
  skua_rearrange_desc r = SKUA_REARRANGE_DESC_INIT;
  expect_text(skua_rearrange_create(context, &r, &op), bad, "block is 0");
  r.kind = skua_rearrange_kind(3);
  expect_text(skua_rearrange_create(context, &r, &op), bad, "kind is 3");
  r.layout = skua_layout(2);
  expect_text(skua_rearrange_create(context, &r, &op), bad, "layout is 2");
  EXPECT_EQ(op, nullptr);
}

void expect_plan(const skua_op* op, const std::vector<skua_tensor>& inputs, const char* text) {
  skua_plan* plan = nullptr;
  expect_text(skua_op_plan(op, inputs.data(), inputs.size(), nullptr, 0, &plan), SKUA_STATUS_INVALID_ARGUMENT, text);
  EXPECT_EQ(plan, nullptr);
}

TEST(Data, BadShapesAreRefusedByName) {
  Context context;
  skua_pad_desc p = SKUA_PAD_DESC_INIT;
  p.rank = 2;
  p.before[1] = 4;
  p.after[0] = SIZE_MAX;
  Op constant;
  SKUA_EXPECT_OK(skua_pad_create(context, &p, &constant));
  expect_plan(constant, {shape({1, 4})}, "larger than the address space");
  expect_plan(constant, {shape({4})}, "input 0 has rank 1");
  expect_plan(constant, {shape({4, 4}, SKUA_DTYPE_S32)}, "input 0 has type s32");
  p.after[0] = 0;
  p.mode = SKUA_PAD_REFLECT;
  Op reflect, edge;
  SKUA_EXPECT_OK(skua_pad_create(context, &p, &reflect));
  expect_plan(reflect, {shape({1, 4})}, "before[1] is 4");
  p.mode = SKUA_PAD_EDGE;
  SKUA_EXPECT_OK(skua_pad_create(context, &p, &edge));
  expect_plan(edge, {shape({1, 0})}, "extent 0 in dimension 1");
  skua_slice_desc s = SKUA_SLICE_DESC_INIT;
  s.rank = 1;
  s.begin[0] = 3;
  s.size[0] = 2;
  s.step[0] = 2;
  Op slice;
  SKUA_EXPECT_OK(skua_slice_create(context, &s, &slice));
  expect_plan(slice, {shape({2})}, "begin[0] is 3");
  expect_plan(slice, {shape({5})}, "size[0] is 2");
  skua_concat_desc c = SKUA_CONCAT_DESC_INIT;
  c.axis = 1;
  Op concat;
  SKUA_EXPECT_OK(skua_concat_create(context, &c, &concat));
  expect_plan(concat, {shape({2})}, "axis is 1");
  expect_plan(concat, {shape({2, 3}), shape({2})}, "input 1 has rank 1");
  expect_plan(concat, {shape({2, 3}), shape({3, 3})}, "input 1 has extent 3 in dimension 0");
  expect_plan(concat, std::vector<skua_tensor>(65, shape({1, 1})), "n_inputs is 65");
  skua_rearrange_desc r = SKUA_REARRANGE_DESC_INIT;
  r.block = 2;
  Op space;
  SKUA_EXPECT_OK(skua_rearrange_create(context, &r, &space));
  expect_plan(space, {shape({1, 2, 2, 6})}, "6 channels");
  r.kind = SKUA_REARRANGE_SPACE_TO_DEPTH;
  Op depth;
  SKUA_EXPECT_OK(skua_rearrange_create(context, &r, &depth));
  expect_plan(depth, {shape({1, 3, 2, 6})}, "height 3");
  expect_plan(depth, {shape({1, 2, 5, 6})}, "width 5");
}

TEST(Concat, ChecksEveryBuffer) {
  Context context;
  skua_concat_desc c = SKUA_CONCAT_DESC_INIT;
  Op concat;
  SKUA_EXPECT_OK(skua_concat_create(context, &c, &concat));
  const std::vector<skua_tensor> shapes(6, shape({2}));
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(concat, shapes.data(), 6, nullptr, 0, &plan));
  float memory[12] = {}, out[12];
  skua_buffer inputs[6], output = skua_host_buffer(out);
  for (size_t i = 0; i < 6; ++i) inputs[i] = skua_host_buffer(memory + 2 * i);
  inputs[5].host = nullptr;
  expect_text(skua_plan_run(plan, inputs, 6, &output, 1, nullptr, 0, nullptr), SKUA_STATUS_INVALID_ARGUMENT,
              "input 5 is NULL");
  inputs[5] = skua_host_buffer(out + 10);
  expect_text(skua_plan_run(plan, inputs, 6, &output, 1, nullptr, 0, nullptr), SKUA_STATUS_INVALID_ARGUMENT,
              "output 0 overlaps input 5");
  skua_plan_destroy(plan);
}

}  // namespace
