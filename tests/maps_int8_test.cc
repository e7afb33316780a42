// Pooling, reductions and resizing of quantised bytes, and calibration, against docs/quantization.md, to the bit.
#include <skua/skua.h>

#include <cfloat>
#include <cmath>

#include "dispatch/requantize.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

const skua_dtype byte_types[] = {SKUA_DTYPE_S8, SKUA_DTYPE_U8};
int first_of(skua_dtype t) { return t == SKUA_DTYPE_S8 ? -128 : 0; }
skua_quantization of(float scale, int zero_point) {
  skua_quantization q = {};
  q.scale = scale, q.zero_point = zero_point;
  return q;
}
Data bytes(const skua_tensor& t, Rng& rng) { return make_integers(t, rng, first_of(t.type), first_of(t.type) + 255); }
float requantised(int64_t sum, float scale, skua_dtype type, int zero, int least = -1000) {
  const skua::Requantize r = {float(std::max(first_of(type) - zero, least)), float(first_of(type) + 255 - zero), zero};
  return float(skua::requantize(int32_t(sum), scale, r));
}
void expect_exactly(const Data& got, const std::vector<float>& want) {
  const std::vector<float> y = dense(got);
  ASSERT_EQ(y.size(), want.size());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], want[i]) << "element " << i;
}
void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

// ---- pooling --------------------------------------------------------------------------------------------------------
// x of [2][h][w][channels] (or planes), windows of 3 x 2 with a stride and padding of 1 on all sides, or the whole
// plane. constant: all of x.
void check_pool(skua_context* context, skua_dtype type, skua_pool_kind kind, skua_layout layout, size_t channels,
                bool global, bool count_padding, bool relu, size_t h = 5, size_t w = 6, const int* constant = nullptr) {
  SCOPED_TRACE(testing::Message() << skua_dtype_name(type) << " kind " << kind << " layout " << layout << " channels "
                                  << channels << " global " << global << " counts " << count_padding);
  const size_t stride = 2;
  const bool greatest = kind != SKUA_POOL_AVERAGE;
  const int in_zero = first_of(type) + (count_padding ? 255 : 31), zero = greatest ? in_zero : first_of(type) + 100;
  skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
  d.kind = kind, d.type = type, d.layout = layout, d.global = global, d.count_padding = count_padding;
  d.kernel_h = 3, d.kernel_w = 2, d.stride_h = d.stride_w = stride, d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
  d.input_q = of(0.07f, in_zero), d.output_q = of(greatest ? 0.07f : 0.031f, zero);
  if (relu) d.activation.kind = SKUA_ACTIVATION_RELU;
  Op op;
  SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  Rng rng{uint32_t(channels)};
  const bool last = layout == SKUA_LAYOUT_NHWC;
  const skua_tensor whole = shape(std::vector<size_t>{2, h, w, channels}, type);
  Data x = bytes(
      last && h != 5 && (channels < 100 || constant)
          ? whole
          : with_holes(
                shape(last ? std::vector<size_t>{2, h, w, channels} : std::vector<size_t>{2, channels, h, w}, type),
                {0, 1, 1, last ? 3u : 0u}),
      rng);
  if (constant) std::fill(x.v.begin(), x.v.end(), float(*constant));
  const std::vector<Data> results = run(op, {x});
  const std::vector<float> v = dense(x);
  const size_t out_h = global ? 1 : 3, out_w = global ? 1 : 4;
  std::vector<float> want(2 * out_h * out_w * channels), where(want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t c = last ? i % channels : i / (out_h * out_w) % channels, ox = last ? i / channels % out_w : i % out_w,
                 oy = last ? i / channels / out_w % out_h : i / out_w % out_h, n = i / (out_h * out_w * channels);
    int64_t sum = 0, count = 0, most = -1000;
    for (size_t ky = 0; ky < (global ? h : 3); ++ky)
      for (size_t kx = 0; kx < (global ? w : 2); ++kx) {
        // the one before the first is huge
        const size_t py = oy * stride + ky - !global, px = ox * stride + kx - !global;
        count += count_padding;
        if (py >= h || px >= w) continue;
        const auto q =
            int64_t(v[last ? ((n * h + py) * w + px) * channels + c : ((n * channels + c) * h + py) * w + px]);
        sum += q - in_zero, count += !count_padding;
        if (q > most) most = q, where[i] = float(py * w + px);
      }
    if (greatest) want[i] = float(relu ? std::max(most, int64_t(zero)) : most);
    else
      want[i] = requantised(sum, float(double(d.input_q.scale) / double(d.output_q.scale) / double(count)), type, zero,
                            relu ? 0 : -1000);
  }
  expect_exactly(results[0], want);
  if (kind == SKUA_POOL_MAX_INDICES) expect_exactly(results[1], where);
}

TEST(PoolInt8, EveryKindBothLayouts) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE, SKUA_POOL_MAX_INDICES})
        for (bool global : {false, true}) {
          for (size_t channels : {1, 13, 15, 16, 24, 31, 37, 63, 70, 150})
            check_pool(context, type, kind, SKUA_LAYOUT_NHWC, channels, global, channels % 2, channels == 37);
          for (size_t channels : {5, 33})
            check_pool(context, type, kind, SKUA_LAYOUT_NCHW, channels, global, global, channels == 33);
        }
      // Large maps, with pixels side by side and with gaps: several pixels together, several passes, sums beyond 16
      // bits.
      for (size_t channels : {2, 8, 10, 24, 64, 72, 90, 200, 600})
        check_pool(context, type, SKUA_POOL_AVERAGE, SKUA_LAYOUT_NHWC, channels, true, channels % 3, channels == 24,
                   channels == 24 ? 29 : 9, channels == 24 ? 83 : 8);
      // Constant maps, as large as sums of pairs may be: one pixel at a time, and several.
      for (int level : {0, 255}) {
        const int value = first_of(type) + level;
        for (size_t channels : {64, 200})  // 200: more than 257 pixels for each sum of 16 bits
          check_pool(context, type, SKUA_POOL_AVERAGE, SKUA_LAYOUT_NHWC, channels, true, level == 0, false, 17, 18,
                     &value);
        if (level)
          check_pool(context, type, SKUA_POOL_AVERAGE, SKUA_LAYOUT_NHWC, 24, true, false, false, 29, 83, &value);
      }
    }
}

// Windows whose sums 16 bits just hold, and larger ones, several of them in a row; of the greatest byte and of any.
TEST(PoolInt8, AveragesOfLargeWindows) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (const auto& [kernel_h, kernel_w] :
           {std::pair<size_t, size_t>{16, 16}, {1, 257}, {1, 258}, {258, 1}, {3, 11}})
        for (size_t channels : {64, 75})
          for (bool greatest : {true, false}) {
            SCOPED_TRACE(testing::Message()
                         << skua_dtype_name(type) << " " << kernel_h << "x" << kernel_w << " channels " << channels);
            const int zero = first_of(type) + 3;
            skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
            d.kind = SKUA_POOL_AVERAGE, d.type = type, d.kernel_h = uint32_t(kernel_h), d.kernel_w = uint32_t(kernel_w);
            d.input_q = of(0.1f, zero), d.output_q = of(0.11f, zero);
            Op op;
            SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
            Rng rng{7};
            const size_t h = kernel_h + 1, w = kernel_w + 2;
            Data x = bytes(shape({1, h, w, channels}, type), rng);
            if (greatest) std::fill(x.v.begin(), x.v.end(), float(first_of(type) + 255));
            std::vector<float> want;
            for (size_t oy = 0; oy < 2; ++oy)
              for (size_t ox = 0; ox < 3; ++ox)
                for (size_t c = 0; c < channels; ++c) {
                  int64_t sum = 0;
                  for (size_t ky = 0; ky < kernel_h; ++ky)
                    for (size_t kx = 0; kx < kernel_w; ++kx)
                      sum += int64_t(x.v[((oy + ky) * w + ox + kx) * channels + c]) - zero;
                  want.push_back(
                      requantised(sum, float(0.1f / double(0.11f) / double(kernel_h * kernel_w)), type, zero));
                }
            expect_exactly(run(op, {x})[0], want);
          }
    }
}

// Separable ones: the rows of windows first, whose maxima no activation bounds yet.
TEST(PoolInt8, MaximaOfLargeWindows) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (size_t channels : {3, 70, 200}) {
          SCOPED_TRACE(testing::Message() << skua_dtype_name(type) << " layout " << layout << " channels " << channels);
          constexpr size_t h = 13, w = 14, kernel_h = 9, kernel_w = 11, top = kernel_h / 2, left = kernel_w / 2;
          const bool last = layout == SKUA_LAYOUT_NHWC;
          const int zero = first_of(type) + 100;
          skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
          d.kind = SKUA_POOL_MAX, d.type = type, d.layout = layout, d.kernel_h = kernel_h, d.kernel_w = kernel_w,
          d.padding.mode = SKUA_PADDING_SAME_UPPER;
          d.input_q = d.output_q = of(0.1f, zero);
          if (channels == 70) d.activation = {SKUA_ACTIVATION_CLAMP, 1, 12};
          Op op;
          SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
          Rng rng{uint32_t(channels)};
          Data x = bytes(
              shape(last ? std::vector<size_t>{1, h, w, channels} : std::vector<size_t>{1, channels, h, w}, type), rng);
          std::vector<float> want(x.v.size());
          const auto at = [&](size_t y, size_t x, size_t c) {
            return last ? (y * w + x) * channels + c : (c * h + y) * w + x;
          };
          for (size_t oy = 0; oy < h; ++oy)
            for (size_t ox = 0; ox < w; ++ox)
              for (size_t c = 0; c < channels; ++c) {
                float most = float(first_of(type));
                for (size_t y = oy > top ? oy - top : 0; y < std::min(oy - top + kernel_h, h); ++y)
                  for (size_t px = ox > left ? ox - left : 0; px < std::min(ox - left + kernel_w, w); ++px)
                    most = std::max(most, x.v[at(y, px, c)]);
                if (channels == 70) most = std::min(std::max(most, float(zero + 10)), float(zero + 120));
                want[at(oy, ox, c)] = most;
              }
          expect_exactly(run(op, {x})[0], want);
        }
    }
}

// ---- reductions -----------------------------------------------------------------------------------------------------
void check_reduce(skua_context* context, skua_dtype type, skua_reduce_kind kind, size_t outer, size_t n, size_t inner) {
  SCOPED_TRACE(testing::Message() << skua_dtype_name(type) << " kind " << kind << " of " << outer << " x " << n << " x "
                                  << inner);
  const bool arg = kind == SKUA_REDUCE_ARGMIN || kind == SKUA_REDUCE_ARGMAX;
  skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
  d.kind = kind, d.type = type, d.axis_count = 1, d.axes[0] = 1;
  const int in_zero = first_of(type) + 140, zero = first_of(type) + 90;
  if (!arg) d.input_q = of(0.05f, in_zero), d.output_q = of(kind == SKUA_REDUCE_SUM ? 1.7f : 0.04f, zero);
  Op op;
  SKUA_EXPECT_OK(skua_reduce_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  Rng rng{uint32_t(n)};
  const Data x = bytes(shape({outer, n, inner}, type), rng);
  std::vector<float> want;
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i) {
      int64_t sum = 0;
      size_t least = 0, most = 0;
      auto at = [&](size_t k) { return int64_t(x.v[(o * n + k) * inner + i]); };
      for (size_t k = 0; k < n; ++k) {
        sum += at(k) - in_zero;
        if (at(k) < at(least)) least = k;
        if (at(k) > at(most)) most = k;
      }
      const double ratio = double(d.input_q.scale) / double(d.output_q.scale);
      if (arg) want.push_back(float(kind == SKUA_REDUCE_ARGMIN ? least : most));
      else if (kind == SKUA_REDUCE_MIN || kind == SKUA_REDUCE_MAX)
        want.push_back(requantised(at(kind == SKUA_REDUCE_MIN ? least : most) - in_zero, float(ratio), type, zero));
      else want.push_back(requantised(sum, float(kind == SKUA_REDUCE_MEAN ? ratio / double(n) : ratio), type, zero));
    }
  expect_exactly(run(op, {x})[0], want);
}

TEST(ReduceInt8, EveryKind) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (skua_reduce_kind kind : {SKUA_REDUCE_SUM, SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX,
                                    SKUA_REDUCE_ARGMIN, SKUA_REDUCE_ARGMAX}) {
        for (size_t n : {1, 9, 67, 300}) check_reduce(context, type, kind, 3, n, 1);
        check_reduce(context, type, kind, 2, 49, 37);
      }
      // requantised 2048 at a time
      for (size_t results : {2048, 5000})
        check_reduce(context, type, SKUA_REDUCE_MEAN, results, 3, 1),
            check_reduce(context, type, SKUA_REDUCE_SUM, 1, 3, results);
      check_reduce(context, type, SKUA_REDUCE_SUM, 1, small() ? 9000 : 65793, 2);  // in two stages where it is long
      check_reduce(context, type, SKUA_REDUCE_MEAN, 1, small() ? 3000 : 20000, 3);
    }
}

TEST(ReduceInt8, NothingAndTooMuch) {
  if (isas(SKUA_DTYPE_U8).empty()) GTEST_SKIP() << "no s8 in this build";
  Context context;
  for (skua_reduce_kind kind : {SKUA_REDUCE_SUM, SKUA_REDUCE_MEAN, SKUA_REDUCE_MIN, SKUA_REDUCE_MAX}) {
    skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
    d.kind = kind, d.type = SKUA_DTYPE_U8, d.axis_count = 1, d.axes[0] = 1, d.input_q = of(1, 3), d.output_q = of(1, 7);
    Op op;
    SKUA_EXPECT_OK(skua_reduce_create(context, &d, &op));
    Data x;
    x.t = shape({2, 0}, SKUA_DTYPE_U8);
    const float want = kind == SKUA_REDUCE_MIN ? 255 : kind == SKUA_REDUCE_MAX ? 0 : 7;
    expect_exactly(run(op, {x})[0], {want, want});
    skua_plan* plan = nullptr;
    const skua_tensor t = shape({1, 65794}, SKUA_DTYPE_U8);
    if (kind <= SKUA_REDUCE_MEAN)
      expect_text(skua_op_plan(op, &t, 1, nullptr, 0, &plan), SKUA_STATUS_UNSUPPORTED, "at most 65793");
  }
}

// ---- resize ---------------------------------------------------------------------------------------------------------
// Twice and half as large (all weights are multiples of 1/4 there), and 7/3 as large, where they are rounded.
void check_resize(skua_context* context, skua_dtype type, skua_resize_kind kind, skua_layout layout, size_t channels,
                  size_t h, size_t w, size_t out_h, size_t out_w) {
  SCOPED_TRACE(testing::Message() << skua_dtype_name(type) << " kind " << kind << " layout " << layout << " channels "
                                  << channels << " to " << out_h << " x " << out_w);
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  d.kind = kind, d.type = type, d.layout = layout, d.out_h = uint32_t(out_h), d.out_w = uint32_t(out_w),
  d.coordinates = SKUA_RESIZE_ASYMMETRIC;
  d.input_q = d.output_q = of(0.1f, first_of(type) + 3);
  Op op;
  SKUA_EXPECT_OK(skua_resize2d_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  Rng rng{uint32_t(channels + out_w)};
  const bool last = layout == SKUA_LAYOUT_NHWC;
  const Data x =
      bytes(shape(last ? std::vector<size_t>{2, h, w, channels} : std::vector<size_t>{2, channels, h, w}, type), rng);
  std::vector<float> want(2 * out_h * out_w * channels);
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t c = last ? i % channels : i / (out_h * out_w) % channels, ox = last ? i / channels % out_w : i % out_w,
                 oy = last ? i / channels / out_w % out_h : i / out_w % out_h, n = i / (out_h * out_w * channels);
    auto at = [&](size_t py, size_t px) {
      return int64_t(x.v[last ? ((n * h + py) * w + px) * channels + c : ((n * channels + c) * h + py) * w + px]);
    };
    const size_t y0 = oy * h / out_h, x0 = ox * w / out_w, y1 = std::min(y0 + 1, h - 1), x1 = std::min(x0 + 1, w - 1);
    // of 256
    auto weight = [](size_t o, size_t in, size_t out) { return int64_t((o * in % out * 512 + out) / (2 * out)); };
    if (kind == SKUA_RESIZE_NEAREST) want[i] = float(at(y0, x0));
    else {
      const int64_t wx = weight(ox, w, out_w), wy = weight(oy, h, out_h);
      const int64_t a = at(y0, x0) * (256 - wx) + at(y0, x1) * wx, b = at(y1, x0) * (256 - wx) + at(y1, x1) * wx;
      want[i] = float(std::nearbyint(double(a * (256 - wy) + b * wy) / 65536));
    }
  }
  expect_exactly(run(op, {x})[0], want);
}

TEST(ResizeInt8, BothKindsBothLayouts) {
  for (skua_dtype type : byte_types)
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(isa);
      Context context(isa);
      for (skua_resize_kind kind : {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR}) {
        for (size_t channels : {1, 3, 7, 16, 37, 70})
          check_resize(context, type, kind, SKUA_LAYOUT_NHWC, channels, 3, 6, 7, 14);
        check_resize(context, type, kind, SKUA_LAYOUT_NHWC, 33, 4, 4, 8, 2);
        check_resize(context, type, kind, SKUA_LAYOUT_NCHW, 3, 4, 9, 9, 21);
      }
    }
}

TEST(MapsInt8, BadDescriptorsAreRefusedByName) {
  if (isas(SKUA_DTYPE_S8).empty()) GTEST_SKIP() << "no s8 in this build";
  Context context;
  skua_op* op = nullptr;
  skua_pool2d_desc p = SKUA_POOL2D_DESC_INIT;
  p.type = SKUA_DTYPE_S8, p.kernel_h = p.kernel_w = 2;
  expect_text(skua_pool2d_create(context, &p, &op), SKUA_STATUS_INVALID_ARGUMENT, "input_q.scale");
  p.input_q = of(1, 0), p.output_q = of(2, 0);
  expect_text(skua_pool2d_create(context, &p, &op), SKUA_STATUS_UNSUPPORTED, "input_q and output_q differ");
  p.kind = SKUA_POOL_MAX_INDICES;
  expect_text(skua_pool2d_create(context, &p, &op), SKUA_STATUS_UNSUPPORTED, "input_q and output_q differ");
  p.kind = SKUA_POOL_AVERAGE, p.activation.kind = SKUA_ACTIVATION_TANH;
  expect_text(skua_pool2d_create(context, &p, &op), SKUA_STATUS_UNSUPPORTED, "activation");
  p.activation = {}, p.kernel_h = p.kernel_w = 4096;
  Op large;
  SKUA_EXPECT_OK(skua_pool2d_create(context, &p, &large));
  skua_plan* plan = nullptr;
  const skua_tensor t = shape({1, 5000, 5000, 1}, SKUA_DTYPE_S8);
  expect_text(skua_op_plan(large, &t, 1, nullptr, 0, &plan), SKUA_STATUS_UNSUPPORTED, "window");
  skua_reduce_desc r = SKUA_REDUCE_DESC_INIT;
  r.type = SKUA_DTYPE_U8, r.kind = SKUA_REDUCE_PROD, r.input_q = r.output_q = of(1, 0);
  expect_text(skua_reduce_create(context, &r, &op), SKUA_STATUS_UNSUPPORTED, "kind is");
  skua_resize2d_desc z = SKUA_RESIZE2D_DESC_INIT;
  z.type = SKUA_DTYPE_U8, z.out_h = z.out_w = 2, z.input_q = of(1, 0), z.output_q = of(1, 1);
  expect_text(skua_resize2d_create(context, &z, &op), SKUA_STATUS_UNSUPPORTED, "differ");
  EXPECT_EQ(op, nullptr);
}

// ---- calibration ----------------------------------------------------------------------------------------------------
TEST(Calibration, RangesScalesAndWeights) {
  float low = INFINITY, high = -INFINITY;
  const float seen[] = {0.5f, NAN, -1, INFINITY, 3}, later[] = {4, -0.5f};
  SKUA_EXPECT_OK(skua_widen_range(seen, 5, &low, &high));
  SKUA_EXPECT_OK(skua_widen_range(later, 2, &low, &high));
  EXPECT_EQ(low, -1);
  EXPECT_EQ(high, 4);
  float none = NAN, most = NAN;
  SKUA_EXPECT_OK(skua_widen_range(later, 2, &none, &most));
  EXPECT_EQ(none, -0.5f);
  EXPECT_EQ(most, 4);
  skua_quantization q = {};
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_U8, false, low, high, &q));
  EXPECT_EQ(q.scale, 5.0f / 255);
  EXPECT_EQ(q.zero_point, 51);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_S8, false, low, high, &q));
  EXPECT_EQ(q.zero_point, -77);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_S8, true, low, high, &q));
  EXPECT_EQ(q.scale, 4.0f / 127);
  EXPECT_EQ(q.zero_point, 0);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_U8, true, 0, 0, &q));
  EXPECT_EQ(q.scale, 1);
  EXPECT_EQ(q.zero_point, 128);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_U8, false, 2, 6, &q));  // widened to hold 0
  EXPECT_EQ(q.scale, 6.0f / 255);
  EXPECT_EQ(q.zero_point, 0);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_S8, false, -7, -3, &q));
  EXPECT_EQ(q.zero_point, 127);
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_S8, false, -FLT_MAX, FLT_MAX, &q));
  EXPECT_TRUE(std::isfinite(q.scale));
  SKUA_EXPECT_OK(skua_choose_quantization(SKUA_DTYPE_S8, false, 0, 1e-40f, &q));
  EXPECT_EQ(q.scale, 0x1p-100f);
  expect_text(skua_choose_quantization(SKUA_DTYPE_F32, false, 0, 1, &q), SKUA_STATUS_INVALID_ARGUMENT, "type is f32");
  expect_text(skua_choose_quantization(SKUA_DTYPE_S8, false, 2, 1, &q), SKUA_STATUS_INVALID_ARGUMENT,
              "range is [2, 1]");

  const float w[] = {1, -2, 0, 0.5f, 4, 0};  // [2][3], channels last, then first
  float scales[3];
  int8_t bytes[6];
  SKUA_EXPECT_OK(skua_quantize_weights(w, 2, 3, 1, scales, bytes));
  EXPECT_EQ(scales[0], 1.0f / 127);
  EXPECT_EQ(scales[1], 4.0f / 127);
  EXPECT_EQ(scales[2], 1);
  const int8_t last[] = {127, -64, 0, 64, 127, 0};  // 63.5 is even at 64
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(bytes[i], last[i], i == 1 || i == 3) << i;
  SKUA_EXPECT_OK(skua_quantize_weights(w, 1, 2, 3, scales, bytes));
  EXPECT_EQ(scales[0], 2.0f / 127);
  EXPECT_EQ(bytes[1], -127);
  EXPECT_EQ(bytes[4], 127);
  const float biases[] = {0.26f, -0.25f, 1e30f}, per_channel[] = {0.5f, 0.25f, 1};
  int32_t steps[3];
  skua_quantization input = of(0.1f, 3), weight = of(1, 0);
  weight.scales = per_channel;
  SKUA_EXPECT_OK(skua_quantize_bias(biases, 3, &input, &weight, steps));
  EXPECT_EQ(steps[0], 5);
  EXPECT_EQ(steps[1], -10);
  EXPECT_EQ(steps[2], INT32_MAX);
  weight.scales = nullptr;
  SKUA_EXPECT_OK(skua_quantize_bias(biases, 2, &input, &weight, steps));
  EXPECT_EQ(steps[0], 3);
  EXPECT_EQ(steps[1], -2);
  input.scale = 0;
  expect_text(skua_quantize_bias(biases, 2, &input, &weight, steps), SKUA_STATUS_INVALID_ARGUMENT, "input.scale is 0");
  const float bad[] = {1, NAN};
  input.scale = 1;
  expect_text(skua_quantize_bias(bad, 2, &input, &weight, steps), SKUA_STATUS_INVALID_ARGUMENT, "bias[1] is");
  expect_text(skua_quantize_weights(bad, 1, 1, 2, scales, bytes), SKUA_STATUS_INVALID_ARGUMENT, "w[1] is");
}

}  // namespace
