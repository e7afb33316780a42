// Pooling against a reference in double: every kernel, tail of channels, geometry, layout and special value.
#include <skua/pool.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

const double kInf = std::numeric_limits<double>::infinity();

struct Window {
  size_t in, out, kernel, stride, dilation, before, after;
};

// Output size and padding, as skua/pool.h says.
Window window(size_t in, size_t kernel, size_t stride, size_t dilation, skua_padding_mode mode, size_t before,
              size_t after, bool ceil_mode) {
  Window w{in, 0, kernel, stride, dilation, before, after};
  const size_t span = dilation * (kernel - 1) + 1;
  if (mode != SKUA_PADDING_EXPLICIT) {
    w.out = (in + stride - 1) / stride;
    const size_t reach = (w.out - 1) * stride + span, all = reach > in ? reach - in : 0;
    w.before = mode == SKUA_PADDING_SAME_UPPER ? all / 2 : all - all / 2;
    w.after = all - w.before;
    return w;
  }
  const size_t total = in + before + after;
  w.out = total >= span ? (total - span) / stride + 1 : 0;
  if (ceil_mode && (total < span || (total - span) % stride) && w.out * stride < in + before) ++w.out;
  return w;
}

struct Result {
  std::vector<double> value, bound, index;
};

// A kernel sums in f32 and rounds the result to the type of the tensors; an activation that is no clamp rounds once
// more.
Result reference(const skua_pool2d_desc& d, const Window& y, const Window& x, size_t batch, size_t channels,
                 const std::vector<float>& in) {
  const bool nchw = d.layout == SKUA_LAYOUT_NCHW;
  Result r;
  r.value.resize(batch * y.out * x.out * channels);
  r.bound = r.index = r.value;
  for (size_t n = 0; n < batch; ++n)
    for (size_t c = 0; c < channels; ++c)
      for (size_t oy = 0; oy < y.out; ++oy)
        for (size_t ox = 0; ox < x.out; ++ox) {
          double best = -kInf, sum = 0, absolute = 0, inside = 0, counted = 0, index = -1;
          for (size_t ky = 0; ky < y.kernel; ++ky)
            for (size_t kx = 0; kx < x.kernel; ++kx) {
              // in the padded plane
              const size_t py = oy * y.stride + ky * y.dilation, px = ox * x.stride + kx * x.dilation;
              if (py >= y.in + y.before + y.after || px >= x.in + x.before + x.after) continue;
              ++counted;
              const size_t iy = py - y.before, ix = px - x.before;
              if (iy >= y.in || ix >= x.in) continue;
              ++inside;
              const double v = double(in[nchw ? ((n * channels + c) * y.in + iy) * x.in + ix
                                              : ((n * y.in + iy) * x.in + ix) * channels + c]);
              sum += v;
              absolute += std::fabs(v);
              if (index < 0 || v > best || (std::isnan(v) && !std::isnan(best))) {
                best = v;
                index = double(iy * x.in + ix);
              }
            }
          const size_t at =
              nchw ? ((n * channels + c) * y.out + oy) * x.out + ox : ((n * y.out + oy) * x.out + ox) * channels + c;
          r.index[at] = index;
          if (d.kind == SKUA_POOL_AVERAGE) {
            const double count = d.count_padding && !d.global ? counted : inside;
            r.value[at] = sum / count;
            r.bound[at] = (inside + 3) * FLT_EPSILON * absolute / count;
          } else {
            r.value[at] = best;
          }
          double& v = r.value[at];
          const bool again = d.activation.kind == SKUA_ACTIVATION_LEAKY_RELU;
          if (d.kind == SKUA_POOL_AVERAGE) r.bound[at] += half_ulp(d.type, v) * (again ? 2 : 1);
          else if (again) r.bound[at] += half_ulp(d.type, v);
          if (d.activation.kind == SKUA_ACTIVATION_RELU) v = v < 0 ? 0 : v;
          if (d.activation.kind == SKUA_ACTIVATION_CLAMP)
            v = v < double(d.activation.a)   ? double(d.activation.a)
                : v > double(d.activation.b) ? double(d.activation.b)
                                             : v;
          if (d.activation.kind == SKUA_ACTIVATION_LEAKY_RELU) {
            v = v < 0 ? v * double(d.activation.a) : v;
            r.bound[at] += FLT_EPSILON * std::fabs(v);
          }
        }
  return r;
}

class Pooling : public testing::Test {
 protected:
  void check(skua_pool2d_desc d, const char* isa, const Data& in, const std::vector<size_t>& room = {}) {
    d.type = in.t.type;
    Context context(isa, filter);
    const bool nchw = d.layout == SKUA_LAYOUT_NCHW;
    const std::vector<size_t> e(in.t.shape, in.t.shape + in.t.rank);
    const size_t batch = e[0], channels = nchw ? e[1] : e.back(), w = nchw ? e.back() : e[e.size() - 2],
                 h = e.size() == 3 ? 1
                     : nchw        ? e[2]
                                   : e[1];
    Window y =
        window(h, d.kernel_h, d.stride_h, d.dilation_h, d.padding.mode, d.padding.top, d.padding.bottom, d.ceil_mode);
    Window x =
        window(w, d.kernel_w, d.stride_w, d.dilation_w, d.padding.mode, d.padding.left, d.padding.right, d.ceil_mode);
    if (d.global) {
      y = {h, 1, h, 1, 1, 0, 0};
      x = {w, 1, w, 1, 1, 0, 0};
    }
    SCOPED_TRACE(testing::Message() << isa << ", " << skua_dtype_name(d.type) << ", kind " << d.kind << ", layout "
                                    << d.layout << ", input " << testing::PrintToString(e) << ", kernel " << y.kernel
                                    << "x" << x.kernel << ", stride " << y.stride << "," << x.stride << ", dilation "
                                    << y.dilation << "," << x.dilation << ", padding " << y.before << "+" << y.after
                                    << ", " << x.before << "+" << x.after << ", ceil " << d.ceil_mode << ", count "
                                    << d.count_padding);
    Op op;
    SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
    if (!op.op) return;
    const Result want = reference(d, y, x, batch, channels, dense(in));
    std::vector<size_t> out =
        nchw ? std::vector<size_t>{batch, channels, y.out, x.out} : std::vector<size_t>{batch, y.out, x.out, channels};
    if (e.size() == 3) out.erase(out.begin() + (nchw ? 2 : 1));
    std::vector<skua_tensor> outputs;
    if (!room.empty()) {
      outputs.push_back(with_holes(shape(out, d.type), room));
      if (d.kind == SKUA_POOL_MAX_INDICES) outputs.push_back(with_holes(shape(out, SKUA_DTYPE_S32), room));
    }
    const std::vector<Data> got = run(op, {in}, outputs);
    ASSERT_EQ(got.size(), d.kind == SKUA_POOL_MAX_INDICES ? 2u : 1u);
    EXPECT_EQ(std::vector<size_t>(got[0].t.shape, got[0].t.shape + got[0].t.rank), out);
    expect_close(got[0], want.value, want.bound);
    if (got.size() > 1) expect_close(got[1], want.index, 0);
  }

  skua_pool2d_desc desc(skua_pool_kind kind, uint32_t kernel_h, uint32_t kernel_w, uint32_t stride) {
    skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
    d.kind = kind;
    d.kernel_h = kernel_h; d.kernel_w = kernel_w;
    d.stride_h = d.stride_w = stride;
    return d;
  }
  uint32_t between(size_t low, size_t high) { return uint32_t(rng.integer(int(low), int(high))); }

  Rng rng{11};
  const char* filter = nullptr;  // of kernels
};

const skua_pool_kind kKinds[] = {SKUA_POOL_MAX, SKUA_POOL_AVERAGE, SKUA_POOL_MAX_INDICES};

TEST_F(Pooling, EveryTailOfChannels) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds)
      for (size_t channels = 1; channels <= 70; channels += small() ? 9 : channels < 36 ? 1 : 5) {
        skua_pool2d_desc d = desc(kind, 3, 3, 2);
        d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
        check(d, isa, make({1, 5, 6, channels}, rng));
        if (HasFailure()) return;
      }
}

TEST_F(Pooling, EveryGeometry) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds)
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (int i = 0; i < (small() ? 6 : 40); ++i) {
          skua_pool2d_desc d = desc(kind, between(1, 5), between(1, 6), 1);
          d.layout = layout;
          d.stride_h = between(1, 3); d.stride_w = between(1, 3);
          d.dilation_h = i % 3 ? 1 : between(1, 3); d.dilation_w = i % 3 ? 1 : between(1, 3);
          d.ceil_mode = i % 4 == 1;
          d.count_padding = i % 2;
          const size_t h = between(d.dilation_h, 9), w = between(d.dilation_w, 40), channels = between(1, 37);
          const uint32_t span_h = d.dilation_h * (d.kernel_h - 1) + 1, span_w = d.dilation_w * (d.kernel_w - 1) + 1;
          if (i % 5 == 0) d.padding = {i % 2 ? SKUA_PADDING_SAME_UPPER : SKUA_PADDING_SAME_LOWER, 0, 0, 0, 0};
          else {
            d.padding = {SKUA_PADDING_EXPLICIT, between(0, span_h - 1), between(0, span_w - 1), between(0, span_h - 1),
                         between(0, span_w - 1)};
            if (h + d.padding.top + d.padding.bottom < span_h) d.padding.top = d.padding.bottom = span_h - 1;
            if (w + d.padding.left + d.padding.right < span_w) d.padding.left = d.padding.right = span_w - 1;
          }
          const bool holes = i % 3 == 1;
          const skua_tensor t = layout == SKUA_LAYOUT_NHWC ? shape({2, h, w, channels}) : shape({2, channels, h, w});
          check(d, isa, make(holes ? with_holes(t, {0, 1, 1, 3}) : t, rng),
                holes ? std::vector<size_t>{0, 0, 2, 5} : std::vector<size_t>{});
          if (HasFailure()) return;
        }
}

TEST_F(Pooling, HalfTypes) {
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type))
      for (skua_pool_kind kind : kKinds)
        for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW}) {
          const bool nchw = layout == SKUA_LAYOUT_NCHW;
          const auto input = [&](size_t h, size_t w, size_t channels) {
            return shape(nchw ? std::vector<size_t>{2, channels, h, w} : std::vector<size_t>{2, h, w, channels}, type);
          };
          skua_pool2d_desc d = desc(kind, 3, 3, 2);
          d.layout = layout;
          d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
          for (size_t channels : {1, 3, 5, 12, 37, 150}) check(d, isa, make(input(5, 7, channels), rng));
          d.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.125f};
          check(d, isa, make(with_holes(input(6, 9, 21), {0, 1, 1, 3}), rng), {0, 0, 2, 5});
          d.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.5f, 0};
          check(d, isa, make(input(6, 9, 21), rng));
          d.activation = {};
          d.global = true;
          check(d, isa, make(input(7, 7, 45), rng));
          if (!nchw) continue;
          // read where it is
          if (kind != SKUA_POOL_MAX_INDICES) check(d, isa, make(shape({1, 1, 520, 520}, type), rng));
          if (HasFailure()) return;
        }
}

// A row of a window first, then the rows, whatever takes them.
TEST_F(Pooling, AveragesOfBf16HaveTheBitsOfScalars) {
  for (const char* isa : isas(SKUA_DTYPE_BF16))
    for (const bool global : {false, true})
      for (size_t channels : {32, 33, 70, 240, 300}) {
        const size_t side = channels == 300 && !small() ? 50 : 9;  // so many sums that the order of some shows in bf16
        skua_pool2d_desc d = desc(SKUA_POOL_AVERAGE, global ? 1 : 3, global ? 1 : 3, global ? 1 : 2);
        d.global = global;
        d.type = SKUA_DTYPE_BF16;
        const std::vector<Data> x = {make(shape({2, side, side - 2, channels}, SKUA_DTYPE_BF16), rng)};
        Context context(isa), scalar("scalar");
        Op here, there;
        SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &here));
        SKUA_EXPECT_OK(skua_pool2d_create(scalar, &d, &there));
        expect_same_bits(run(here, x)[0], run(there, x)[0]);
        if (HasFailure()) return;
      }
}

TEST_F(Pooling, Global) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds)
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (size_t size : {1, 7, 13}) {
          skua_pool2d_desc d = desc(kind, 1, 1, 1);
          d.global = true;
          d.layout = layout;
          const size_t channels = small() ? 150 : 300;
          check(d, isa,
                make(layout == SKUA_LAYOUT_NHWC ? shape({2, size, size, channels}) : shape({2, channels, size, size}),
                     rng));
          if (HasFailure()) return;
        }
}

// Windows that share rows, of whole vectors: one input row at a time.
TEST_F(Pooling, SharedRows) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE})
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (uint32_t kernel_h : {2, 3, 5})
          for (uint32_t kernel_w : {2, 3})
            for (int i = 0; i < (small() ? 2 : 8); ++i) {
              skua_pool2d_desc d = desc(kind, kernel_h, kernel_w, 1);
              d.layout = layout;
              d.stride_h = between(1, kernel_h - 1); d.stride_w = between(1, 3);
              d.padding = {SKUA_PADDING_EXPLICIT, between(0, kernel_h - 1), between(0, kernel_w - 2),
                           between(0, kernel_h - 1), between(0, kernel_w - 2)};
              d.ceil_mode = i % 2;
              d.count_padding = i % 3;
              if (i % 4 == 1) d.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
              if (i % 4 == 2) d.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.25f, 0};
              const size_t h = between(i % 4 ? kernel_h + 3 : kernel_h, 12),
                           w = between(i % 4 ? kernel_w + 4 : kernel_w, 12), channels = between(1, 3) * 16;
              const skua_tensor t =
                  layout == SKUA_LAYOUT_NHWC ? shape({2, h, w, channels}) : shape({2, channels, h, w});
              check(d, isa, make(i % 2 ? with_holes(t, {0, 1, 1, 3}) : t, rng),
                    i % 2 ? std::vector<size_t>{0, 0, 2, 5} : std::vector<size_t>{});
              if (HasFailure()) return;
            }
}

// 3x3 down the image, which only some machines choose; other shapes and sets take what they take.
TEST_F(Pooling, DownTheImage) {
  filter = "pool_*_down_*";
  for (const char* isa : isas())
    for (skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE})
      for (int i = 0; i < (small() ? 8 : 40); ++i) {
        skua_pool2d_desc d = desc(kind, 3, 3, 1);
        d.padding = {SKUA_PADDING_EXPLICIT, between(0, 2), between(0, 1), between(0, 2), between(0, 1)};
        d.count_padding = i % 3;
        if (i % 4 == 1) d.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
        if (i % 4 == 2) d.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.25f, 0};
        const skua_tensor t = shape({2, between(4, 22), between(5, 15), between(1, 3) * 16});
        check(d, isa, make(i % 2 ? with_holes(t, {0, 1, 1, 3}) : t, rng),
              i % 2 ? std::vector<size_t>{0, 0, 2, 5} : std::vector<size_t>{});
        if (HasFailure()) return;
      }
}

// Which of two zeros a maximum is depends on the order; that must not depend on how many workers there are, which may
// cut the channels.
TEST_F(Pooling, ZerosOfBothSigns) {
  const float values[] = {0, -0.0f, -1, -2};
  for (const char* isa : isas())
    for (size_t channels : {36, 48, 72, 100, 144})
      for (size_t h : {3, 5}) {
        Data in = make({1, h, 40, channels}, rng);
        for (float& v : in.v) v = values[rng.next() % 4];
        filter = h == 5 ? "pool_*_down_*" : nullptr;
        skua_pool2d_desc d = desc(SKUA_POOL_MAX, 3, 3, 1);
        d.padding.mode = SKUA_PADDING_SAME_UPPER;
        check(d, isa, in);
        for (float& v : in.v) v = -0.0f;
        d.kind = SKUA_POOL_AVERAGE;
        check(d, isa, in);
        if (HasFailure()) return;
      }
}

// Windows of four taps have kernels of their own from a vector of channels on, with the bits of the passes that fewer
// channels go by.
TEST_F(Pooling, WindowsOfFour) {
  const float of_maxima[] = {0, -0.0f, -1, 3, -INFINITY}, of_sums[] = {-0.0f, -0.0f, -0.0f, 0.1f, 1e8f};
  constexpr size_t kFew = 3, kMany = 40;
  for (const char* isa : isas())
    for (const skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE}) {
      Context context(isa);
      Data many = make({2, 7, 9, kMany}, rng), few = make({2, 7, 9, kFew}, rng);
      for (size_t i = 0; i < many.v.size(); ++i) {
        many.v[i] = (kind == SKUA_POOL_MAX ? of_maxima : of_sums)[rng.next() % 5];
        if (i % kMany < kFew) few.v[i / kMany * kFew + i % kMany] = many.v[i];
      }
      skua_pool2d_desc d = desc(kind, 2, 2, 2);
      Op wide, narrow;
      SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &wide));
      SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &narrow));
      const Data a = run(wide, {many})[0], b = run(narrow, {few})[0];
      for (size_t i = 0; i < b.v.size(); ++i)
        ASSERT_EQ(std::signbit(a.v[i / kFew * kMany + i % kFew]), std::signbit(b.v[i])) << isa << " " << i;
      for (size_t i = 0; i < b.v.size(); ++i) ASSERT_EQ(a.v[i / kFew * kMany + i % kFew], b.v[i]) << isa << " " << i;
    }
}

// AVX2 reads a map row by row, 512 channels at a time: less than a vector behind them, and behind the pass that they
// end with.
TEST_F(Pooling, GlobalAverageOfManyChannels) {
  skua_pool2d_desc d = desc(SKUA_POOL_AVERAGE, 1, 1, 1);
  d.global = true;
  for (const char* isa : isas())
    for (size_t channels : {49, 63, 64, 512, 513, 519, 521, 577, 1029}) {
      check(d, isa, make({1, 7, 5, channels}, rng));
      d.activation = {SKUA_ACTIVATION_CLAMP, -0.05f, 0.05f};
      check(d, isa, make(with_holes(skua_tensor_4d(SKUA_DTYPE_F32, 1, 5, 8, channels), {0, 1, 2, 3}), rng));
      d.activation = {};
      if (HasFailure()) return;
    }
  for (const char* isa : isas()) check(d, isa, make({1, 40, 1, 1000}, rng));
  // AVX-512, where it reads pixel by pixel: 2048 at a time
  for (const char* isa : isas()) check(d, isa, make({1, 3, 2, 2057}, rng));
}

// Windows as large as maps, several in a line, of more channels than a pass takes.
TEST_F(Pooling, LargeWindowsOfManyChannels) {
  for (const char* isa : isas()) {
    skua_pool2d_desc d = desc(SKUA_POOL_AVERAGE, 8, 8, 2);
    d.stride_w = 1;
    d.padding = {SKUA_PADDING_EXPLICIT, 1, 2, 2, 3};
    for (size_t channels : {104, 200}) check(d, isa, make({1, 8, 9, channels}, rng));
    d.padding = {};
    for (size_t channels : {104, 200}) check(d, isa, make({1, 9, 11, channels}, rng));
  }
}

// Rows of a window once for all windows over them, then its columns: several bands of rows and blocks of channels,
// whatever they are.
TEST_F(Pooling, SeparableWindows) {
  std::vector<skua_dtype> types = half_types();
  types.push_back(SKUA_DTYPE_F32);
  for (skua_dtype type : types)
    for (const char* isa : isas(type))
      for (skua_pool_kind kind : {SKUA_POOL_MAX, SKUA_POOL_AVERAGE})
        for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
          for (int i = 0; i < (small() ? 2 : 4); ++i) {
            skua_pool2d_desc d = desc(kind, between(7, 13), between(7, 13), 1);
            d.layout = layout;
            d.stride_h = between(1, 2); d.stride_w = between(1, 3);
            d.dilation_w = between(1, 2);
            d.padding = {SKUA_PADDING_EXPLICIT, between(0, 6), between(0, 6), between(0, 6), between(0, 6)};
            d.ceil_mode = i % 2;
            d.count_padding = i % 3;
            if (i % 4 == 1) d.activation = {SKUA_ACTIVATION_CLAMP, -0.25f, 0.5f};
            if (i % 4 == 2) d.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.25f, 0};
            const size_t h = between(13, i % 3 || small() ? 17 : 45), w = between(25, 28),
                         channels = i % 3 == 1 ? between(1, 20) : between(90, 130);
            const skua_tensor t = shape(layout == SKUA_LAYOUT_NHWC ? std::vector<size_t>{1, h, w, channels}
                                                                   : std::vector<size_t>{1, channels, h, w},
                                        type);
            check(d, isa, make(i % 2 ? with_holes(t, {0, 1, 1, 3}) : t, rng),
                  i % 2 ? std::vector<size_t>{0, 0, 2, 5} : std::vector<size_t>{});
            if (HasFailure()) return;
          }
}

TEST_F(Pooling, ExplainSaysThatWindowsAreSeparable) {
  Context context;
  for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW}) {
    skua_pool2d_desc d = desc(SKUA_POOL_MAX, 13, 13, 1);
    d.padding.mode = SKUA_PADDING_SAME_UPPER;
    d.layout = layout;
    Op op;
    SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
    const skua_tensor t =
        shape(layout == SKUA_LAYOUT_NHWC ? std::vector<size_t>{1, 13, 13, 512} : std::vector<size_t>{1, 512, 13, 13});
    skua_plan* plan = nullptr;
    SKUA_EXPECT_OK(skua_op_plan(op, &t, 1, nullptr, 0, &plan));
    char text[1024];
    skua_plan_explain(plan, text, sizeof text);
    EXPECT_NE(strstr(text, "algorithm separable"), nullptr) << text;
    skua_plan_destroy(plan);
  }
}

// Planes too large to copy are read where they are.
TEST_F(Pooling, LargePlanes) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds) {
      skua_pool2d_desc d = desc(kind, 400, 400, 50);
      d.layout = SKUA_LAYOUT_NCHW;
      d.global = kind == SKUA_POOL_AVERAGE;
      if (!small() || d.global) check(d, isa, make({1, 2, 520, 520}, rng));
    }
}

TEST_F(Pooling, OneDimension) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds)
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (bool global : {false, true}) {
          skua_pool2d_desc d = desc(kind, 1, 3, 2);
          d.layout = layout;
          d.global = global;
          d.padding = {SKUA_PADDING_EXPLICIT, 0, 1, 0, 0};
          check(d, isa, make(layout == SKUA_LAYOUT_NHWC ? shape({2, 11, 9}) : shape({2, 9, 11}), rng));
        }
}

TEST_F(Pooling, Activations) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds)
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (const skua_activation& a :
             {skua_activation{SKUA_ACTIVATION_RELU, 0, 0}, skua_activation{SKUA_ACTIVATION_CLAMP, -0.25f, 0.125f},
              skua_activation{SKUA_ACTIVATION_LEAKY_RELU, 0.5f, 0}}) {
          skua_pool2d_desc d = desc(kind, 2, 2, 1);
          d.layout = layout;
          d.activation = a;
          check(d, isa, make({1, 7, 6, 21}, rng));
        }
}

// Ties, NaN and infinities: the first of equal values, NaN before numbers.
TEST_F(Pooling, SpecialValues) {
  const float special[] = {0, 1, -1, 1, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN(), 2};
  for (skua_dtype type : float_types())
    for (const char* isa : isas(type))
    for (skua_pool_kind kind : kKinds)
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        for (uint32_t stride : {1u, 2u})
          for (bool global : {false, true}) {
            skua_pool2d_desc d = desc(kind, 2, 3, stride);
            d.layout = layout;
            d.global = global;
            if (stride == 1) d.activation.kind = SKUA_ACTIVATION_RELU;
            Data in = make(shape({1, 8, 9, 19}, type), rng);
            for (float& v : in.v) v = special[rng.next() % (rng.next() % 4 ? 4 : 8)];
            check(d, isa, in);
          }
}

// Maxima of halves may be computed as integers: zeros, denormals, infinities and NaN of both signs, in windows of one
// sign, of both, and of NaN alone.
TEST_F(Pooling, MaximaOfHalves) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {0, 1, 0x1p-14f, 32768, 0x1.8p-3f, inf, nan};
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type))
      for (size_t channels : small() ? std::vector<size_t>{17, 24, 48, 161}
                                     : std::vector<size_t>{15, 16, 17, 24, 31, 32, 33, 48, 96, 150, 161, 224})
        for (int sign : {-1, 0, 1})
          for (int clamped : {0, 1, 2}) {
            skua_pool2d_desc d = desc(SKUA_POOL_MAX, 2, 3, 1);
            if (clamped) d.activation = {SKUA_ACTIVATION_CLAMP, clamped == 1 ? -0.5f : -inf, 2};
            Data in = make(shape({1, 5, 6, channels}, type), rng);
            for (float& v : in.v)
              v = std::copysign(special[rng.next() % (rng.next() % 8 ? 5 : 7)], sign             ? float(sign)
                                                                                : rng.next() % 2 ? 1.0f
                                                                                                 : -1.0f);
            for (size_t i = 0; i < channels; ++i)
              in.v[i] = in.v[channels + i] = in.v[2 * channels + i] = std::copysign(nan, -1.0f);
            check(d, isa, in);
            if (HasFailure()) return;
          }
}

TEST_F(Pooling, LowestValuesOnly) {
  for (const char* isa : isas())
    for (skua_pool_kind kind : kKinds) {
      Data in = make({1, 4, 4, 19}, rng);
      for (float& v : in.v) v = -std::numeric_limits<float>::infinity();
      skua_pool2d_desc d = desc(kind, 3, 3, 1);
      d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      check(d, isa, in);
    }
}

TEST_F(Pooling, NothingToDo) {
  Context context;
  skua_pool2d_desc d = desc(SKUA_POOL_MAX, 2, 2, 1);
  Op op;
  SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
  for (const skua_tensor& t : {shape({0, 4, 4, 8}), shape({1, 0, 4, 8}), shape({1, 4, 0, 8}), shape({1, 4, 4, 0}),
                               shape({1, SIZE_MAX >> 24, 4, 0})}) {
    Data in;
    in.t = t;
    const std::vector<Data> got = run(op, {in});
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(elements(got[0].t), 0u);
  }
}

skua_status plan_status(const skua_op* op, const skua_tensor& t) {
  skua_plan* plan = nullptr;
  const skua_status s = skua_op_plan(op, &t, 1, nullptr, 0, &plan);
  skua_plan_destroy(plan);
  return s;
}

TEST_F(Pooling, Errors) {
  Context context;
  const auto create_fails = [&](const skua_pool2d_desc& d, const char* text) {
    Op op;
    EXPECT_NE(skua_pool2d_create(context, &d, &op), SKUA_STATUS_OK);
    EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text();
  };
  const auto plan_fails = [&](const skua_pool2d_desc& d, const skua_tensor& t, const char* text) {
    Op op;
    SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &op));
    EXPECT_NE(plan_status(op, t), SKUA_STATUS_OK);
    EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos) << skua_error_text();
  };
  skua_pool2d_desc d = desc(SKUA_POOL_MAX, 0, 2, 1);
  create_fails(d, "kernel_h");
  d = desc(SKUA_POOL_MAX, 2, 2, 0);
  create_fails(d, "stride_h");
  d = desc(skua_pool_kind(7), 2, 2, 1);
  create_fails(d, "kind");
  d = desc(SKUA_POOL_MAX, 2, 2, 1);
  d.type = SKUA_DTYPE_S4;
  create_fails(d, "type");
  d.type = SKUA_DTYPE_F32;
  d.layout = skua_layout(3);
  create_fails(d, "layout");
  d.layout = SKUA_LAYOUT_NHWC;
  d.padding.mode = skua_padding_mode(9);
  create_fails(d, "padding.mode");
  d.padding = {SKUA_PADDING_EXPLICIT, 2, 0, 0, 0};
  plan_fails(d, shape({1, 4, 4, 3}), "padding.top is 2 and padding.bottom 0");
  d.padding = {};
  plan_fails(d, shape({1, 1, 4, 3}), "height");
  plan_fails(d, shape({4, 4, 3}), "rank");
  plan_fails(d, shape({1, 4, 4, 3}, SKUA_DTYPE_S32), "type");
  d.kernel_h = 2; d.dilation_h = 4; d.padding.top = d.padding.bottom = 3;
  plan_fails(d, shape({1, 2, 4, 3}), "between two taps");
  d = desc(SKUA_POOL_AVERAGE, 2, 2, 1);
  d.global = true;
  plan_fails(d, shape({1, 0, 4, 3}), "no pixels");
  skua_tensor wide = shape({1, 4, 4, 3});
  wide.stride[0] = 96; wide.stride[1] = 24; wide.stride[2] = 6; wide.stride[3] = 2;
  plan_fails(d, wide, "innermost stride");
}

}  // namespace
