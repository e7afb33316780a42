// Resize against the formulas in double, on every instruction set, in both layouts.
#include <skua/skua.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Shape = std::vector<size_t>;
constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

double coordinate(skua_resize_coordinates mode, size_t o, size_t in, size_t out) {
  switch (mode) {
    case SKUA_RESIZE_HALF_PIXEL: return (double(o) + 0.5) * double(in) / double(out) - 0.5;
    case SKUA_RESIZE_ALIGN_CORNERS: return out == 1 ? 0 : double(o) * double(in - 1) / double(out - 1);
    default: return double(o) * double(in) / double(out);
  }
}
ptrdiff_t clamped(double i, size_t in) { return ptrdiff_t(i < 0 ? 0 : i > double(in - 1) ? double(in - 1) : i); }

// The formulas of the header, in double; the coordinates of these tests are exact in it or far enough from a tie.
size_t nearest(skua_resize_coordinates mode, size_t o, size_t in, size_t out) {
  const double c = coordinate(mode, o, in, out);
  if (mode == SKUA_RESIZE_ASYMMETRIC) return size_t(clamped(std::floor(c + 1e-9), in));
  if (mode == SKUA_RESIZE_HALF_PIXEL) return size_t(clamped(std::ceil(c - 0.5 - 1e-9), in));
  const double tie = c - std::floor(c) - 0.5;
  if (std::fabs(tie) < 1e-9) return size_t(clamped(std::floor(c) + (std::fmod(std::floor(c), 2) != 0 ? 1 : 0), in));
  return size_t(clamped(std::floor(c + 0.5), in));
}

struct Axis {
  size_t first, second;
  double weight;
};
Axis bilinear(skua_resize_coordinates mode, size_t o, size_t in, size_t out) {
  const double c = coordinate(mode, o, in, out), whole = std::floor(c + 1e-12);
  Axis a = {size_t(clamped(whole, in)), size_t(clamped(whole + 1, in)), c - whole};
  if (a.weight < 1e-12 || a.first == a.second) { a.second = a.first; a.weight = 0; }
  return a;
}

void check(skua_context* context, skua_resize_kind kind, skua_resize_coordinates mode, skua_layout layout,
           const Shape& nhwc, size_t out_h, size_t out_w, bool holes, float special = 0,
           skua_dtype type = SKUA_DTYPE_F32) {
  SCOPED_TRACE(testing::Message() << "kind " << kind << " coordinates " << mode << " layout " << layout << ' '
                                  << testing::PrintToString(nhwc) << " to " << out_h << " x " << out_w
                                  << (holes ? " with holes" : ""));
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  d.type = type;
  d.kind = kind;
  d.coordinates = mode;
  d.layout = layout;
  d.out_h = uint32_t(out_h);
  d.out_w = uint32_t(out_w);
  Op op;
  SKUA_EXPECT_OK(skua_resize2d_create(context, &d, &op));
  ASSERT_NE(op.op, nullptr);
  const bool last = layout == SKUA_LAYOUT_NHWC;
  const size_t h = nhwc[1], w = nhwc[2], channels = nhwc[3];
  auto stored = [&](size_t height, size_t width) {
    return last ? Shape{nhwc[0], height, width, channels} : Shape{nhwc[0], channels, height, width};
  };
  auto flat = [&](size_t n, size_t y, size_t x, size_t c, size_t height, size_t width) {
    return last ? ((n * height + y) * width + x) * channels + c : ((n * channels + c) * height + y) * width + x;
  };
  auto tensor = [&](size_t height, size_t width) {
    return holes ? with_holes(shape(stored(height, width), type), {0, 2, 1, 3}) : shape(stored(height, width), type);
  };
  Rng rng(uint32_t(h * 31 + w));
  Data x = make(tensor(h, w), rng);
  if (special != 0) x.v[offset(resolved(x.t), elements(x.t) / 2)] = special;
  const std::vector<double> v = dense_double(x);
  std::vector<double> want(nhwc[0] * out_h * out_w * channels), bound(want.size());
  for (size_t n = 0; n < nhwc[0]; ++n)
    for (size_t oy = 0; oy < out_h; ++oy)
      for (size_t ox = 0; ox < out_w; ++ox)
        for (size_t c = 0; c < channels; ++c) {
          auto at = [&](size_t y, size_t xx) { return v[flat(n, y, xx, c, h, w)]; };
          const size_t to = flat(n, oy, ox, c, out_h, out_w);
          if (kind == SKUA_RESIZE_NEAREST) {
            want[to] = at(nearest(mode, oy, h, out_h), nearest(mode, ox, w, out_w));
            continue;
          }
          const Axis y = bilinear(mode, oy, h, out_h), xs = bilinear(mode, ox, w, out_w);
          auto row = [&](size_t i) {
            return xs.weight == 0 ? at(i, xs.first)
                                  : at(i, xs.first) + xs.weight * (at(i, xs.second) - at(i, xs.first));
          };
          want[to] = y.weight == 0 ? row(y.first) : row(y.first) + y.weight * (row(y.second) - row(y.first));
          bound[to] = 16 * double(FLT_EPSILON) + half_ulp(type, std::fabs(want[to]) + 16 * double(FLT_EPSILON));
        }
  const Data got = run(op, {x}, holes ? std::vector<skua_tensor>{tensor(out_h, out_w)} : std::vector<skua_tensor>{})[0];
  expect_close(got, want, bound);
}

const skua_resize_coordinates kModes[] = {SKUA_RESIZE_HALF_PIXEL, SKUA_RESIZE_ALIGN_CORNERS, SKUA_RESIZE_ASYMMETRIC};
const skua_resize_kind kKinds[] = {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR};

TEST(Resize, EverySizeEveryMode) {
  Context context;
  for (skua_resize_kind kind : kKinds)
    for (skua_resize_coordinates mode : kModes)
      for (size_t in : {size_t(1), size_t(2), size_t(3), size_t(5), size_t(8)})
        for (size_t out = 1; out <= (small() ? 7 : 17); ++out) {
          check(context, kind, mode, SKUA_LAYOUT_NHWC, {1, in, 9 - in, 2}, out, 18 - out, false);
          if (HasFailure()) return;
        }
}

TEST(Resize, EveryInstructionSetEveryTail) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_resize_kind kind : kKinds)
      for (skua_resize_coordinates mode : kModes)
        for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW}) {
          for (size_t channels : {1, 2, 3, 4, 7, 16, 33, 70})
            for (bool holes : {false, true}) {
              check(context, kind, mode, layout, {2, 4, 5, channels}, 7, 9, holes);
              if (!small()) check(context, kind, mode, layout, {2, 9, 7, channels}, 4, 5, holes);
            }
          if (HasFailure()) return;
          check(context, kind, mode, layout, {1, 3, 5, 8}, 3, 5, false);
          check(context, kind, mode, layout, {1, 3, 3, 8}, 1, 1, false);
          check(context, kind, mode, layout, {1, 1, 1, 8}, 4, 3, true);
          check(context, kind, mode, layout, {0, 3, 3, 8}, 4, 3, false);
          check(context, kind, mode, layout, {2, 3, 3, 0}, 4, 3, false);
        }
    // Several blocks of a row; a pixel longer than a block.
    check(context, SKUA_RESIZE_BILINEAR, SKUA_RESIZE_HALF_PIXEL, SKUA_LAYOUT_NHWC, {1, 3, 40, 100}, 5, 70, false);
    check(context, SKUA_RESIZE_BILINEAR, SKUA_RESIZE_HALF_PIXEL, SKUA_LAYOUT_NHWC, {1, 2, 2, 2100}, 3, 3, false);
    check(context, SKUA_RESIZE_BILINEAR, SKUA_RESIZE_HALF_PIXEL, SKUA_LAYOUT_NCHW, {1, 2, 300, 2}, 3, 2500, false);
    check(context, SKUA_RESIZE_NEAREST, SKUA_RESIZE_HALF_PIXEL, SKUA_LAYOUT_NCHW, {1, 2, 300, 2}, 5, 2500, false);
  }
}

TEST(Resize, HalfTypes) {
  for (const skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      SCOPED_TRACE(testing::Message() << isa << " " << skua_dtype_name(type));
      Context context(isa);
      for (skua_resize_kind kind : kKinds)
        for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
          for (size_t channels : {1, 3, 7, 16, 37}) {
            check(context, kind, SKUA_RESIZE_HALF_PIXEL, layout, {2, 4, 5, channels}, 7, 9, false, 0, type);
            check(context, kind, SKUA_RESIZE_ALIGN_CORNERS, layout, {2, 4, 5, channels}, 7, 9, true, kInf, type);
            if (HasFailure()) return;
          }
    }
}

TEST(Resize, LargeOnesAreCut) {
  if (small()) GTEST_SKIP() << "large";
  Context context;
  for (skua_resize_kind kind : kKinds) {
    check(context, kind, SKUA_RESIZE_HALF_PIXEL, SKUA_LAYOUT_NHWC, {2, 40, 40, 48}, 80, 81, false);
    check(context, kind, SKUA_RESIZE_ALIGN_CORNERS, SKUA_LAYOUT_NCHW, {1, 40, 40, 12}, 130, 129, false);
  }
}

TEST(Resize, SpecialValuesStayWithTheirNeighbours) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    Context context(isa);
    for (skua_resize_kind kind : kKinds)
      for (skua_resize_coordinates mode : kModes)
        for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
          for (float special : {kNan, kInf, -kInf, 1e-41f})
            for (size_t channels : {size_t(1), size_t(5)})
              check(context, kind, mode, layout, {1, 4, 4, channels}, 7, 7, false, special);
  }
}

TEST(Resize, AConstantImageStaysConstant) {
  for (const char* isa : isas()) {
    Context context(isa);
    skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
    d.kind = SKUA_RESIZE_BILINEAR;
    d.out_h = 11;
    d.out_w = 13;
    Op op;
    SKUA_EXPECT_OK(skua_resize2d_create(context, &d, &op));
    const Data x{shape({1, 5, 6, 7}), std::vector<float>(210, 0.1f)};
    const Data y = run(op, {x})[0];
    for (float v : y.v) EXPECT_EQ(v, 0.1f);
  }
}

void expect_text(skua_status got, skua_status want, const char* text) {
  EXPECT_EQ(got, want) << text;
  EXPECT_NE(std::string(skua_error_text()).find(text), std::string::npos)
      << "\"" << skua_error_text() << "\" must say \"" << text << "\"";
}

TEST(Resize, BadArgumentsAreRefusedByName) {
  Context context;
  skua_op* none = nullptr;
  skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
  auto expect = [&](const char* text, skua_status status = SKUA_STATUS_INVALID_ARGUMENT) {
    expect_text(skua_resize2d_create(context, &d, &none), status, text);
    d = SKUA_RESIZE2D_DESC_INIT;
    d.out_h = 3;
    d.out_w = 4;
  };
  expect("resize2d: out_h is 0");
  d.out_w = 0;
  expect("out_w is 0");
  d.out_w = 0x80000000u;
  expect("out_w is 2147483648");
  d.kind = skua_resize_kind(2);
  expect("kind is 2");
  d.coordinates = skua_resize_coordinates(3);
  expect("coordinates is 3");
  d.layout = skua_layout(2);
  expect("layout is 2");
  d.type = SKUA_DTYPE_S4;
  expect("type is s4", SKUA_STATUS_UNSUPPORTED);
  EXPECT_EQ(none, nullptr);
  Op op;
  SKUA_EXPECT_OK(skua_resize2d_create(context, &d, &op));
  auto expect_plan = [&](const skua_tensor& x, skua_status status, const char* text) {
    skua_plan* plan = nullptr;
    expect_text(skua_op_plan(op, &x, 1, nullptr, 0, &plan), status, text);
    EXPECT_EQ(plan, nullptr);
  };
  expect_plan(shape({1, 2, 3}), SKUA_STATUS_INVALID_ARGUMENT, "rank 3");
  expect_plan(shape({1, 0, 3, 4}), SKUA_STATUS_INVALID_ARGUMENT, "height 0");
  expect_plan(shape({1, 2, 0, 4}), SKUA_STATUS_INVALID_ARGUMENT, "width 0");
  expect_plan(shape({1, 2, 2, 4}, SKUA_DTYPE_S32), SKUA_STATUS_INVALID_ARGUMENT, "type s32");
  skua_tensor strided = resolved(shape({1, 2, 2, 4}));
  for (size_t& s : strided.stride) s *= 2;
  expect_plan(strided, SKUA_STATUS_UNSUPPORTED, "innermost stride 2");
}

}  // namespace
