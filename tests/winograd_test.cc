// Winograd's algorithm against direct sums in double: every variant, instruction set, tail and clip, and its errors
// against their bounds.
// The algorithm is called through an operator of this file, so that run() checks the contract of every run.
#include "winograd/winograd.h"

#include <skua/skua.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tests/support/support.h"
#include "winograd/points.h"

using namespace skua_test;
using skua::PlanShapes;
using skua::WinogradVariant;

namespace {

constexpr WinogradVariant kVariants[] = {WinogradVariant::f2x2, WinogradVariant::f4x2,    WinogradVariant::f4x4,
                                         WinogradVariant::f6x6, WinogradVariant::f3x3_s2, WinogradVariant::f2x2_5x5};

struct Layer {
  WinogradVariant variant;
  size_t in_channels, out_channels;
  size_t top, left, bottom, right;
  bool has_bias;
  skua_activation activation;
  skua_residual residual;
  skua_dtype type = SKUA_DTYPE_F32;  // of the feature maps
  bool half = false;                 // products in f16
  size_t dilation_h = 1, dilation_w = 1;
  size_t taps() const { return size_t(winograd_taps(variant)); }
  size_t stride() const { return size_t(winograd_stride(variant)); }
  size_t span_h() const { return dilation_h * (taps() - 1) + 1; }
  size_t span_w() const { return dilation_w * (taps() - 1) + 1; }
  size_t out_h(size_t h) const { return (h + top + bottom - span_h()) / stride() + 1; }
  size_t out_w(size_t w) const { return (w + left + right - span_w()) / stride() + 1; }
};

// ---- the operator ---------------------------------------------------------------------------------------------------
struct ConvOp : skua_op {
  Layer layer;
  skua::PackFormat format;
  skua::Activation activation;
};
struct ConvPlan : skua_plan {
  skua::WinogradShape shape;
  skua::WinogradPlan winograd;
};
const ConvOp& op_of(const skua_plan* p) { return *static_cast<const ConvOp*>(p->op); }
const ConvPlan& plan_of(const skua_plan* p) { return *static_cast<const ConvPlan*>(p); }
size_t bias_floats(const Layer& l) { return skua::round_up(l.out_channels, 16); }

skua_status make_plan(const skua_op* op, const PlanShapes& s, skua_plan* out) {
  const ConvOp& conv = *static_cast<const ConvOp*>(op);
  const Layer& l = conv.layer;
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  const skua_tensor& x = s.inputs[0];
  const size_t h = l.out_h(x.shape[1]), w = l.out_w(x.shape[2]);
  p.outputs[0] = skua_tensor_4d(l.type, x.shape[0], h, w, l.out_channels);
  p.shape = {x.shape[0], x.shape[1], x.shape[2], l.in_channels, h, w, l.out_channels, l.top, l.left, l.dilation_h,
             l.dilation_w, x.stride[1], x.stride[2], x.stride[0], 0, 0, 0, 0, 0, 0, skua::Element(l.type),
             skua::Element(l.type)};
  if (l.residual) {
    const skua_tensor& r = s.inputs[1];
    p.shape.res_row = r.stride[1]; p.shape.res_pixel = r.stride[2]; p.shape.res_batch = r.stride[0];
  }
  if (!skua::winograd_plan(op->ctx, l.variant, p.shape, conv.format, &p.winograd))
    return SKUA_UNSUPPORTED_("winograd: no plan");
  p.algorithm = skua::winograd_name(l.variant);
  p.kernel = p.winograd.tile;
  return SKUA_STATUS_OK;
}
skua_status finish(const skua_op*, skua_plan* out) {
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  const skua_tensor& y = p.outputs[0];
  p.shape.out_row = y.stride[1]; p.shape.out_pixel = y.stride[2]; p.shape.out_batch = y.stride[0];
  return SKUA_STATUS_OK;
}
size_t workspace(const skua_plan* p, uint32_t concurrency) {
  return skua::winograd_workspace(plan_of(p).winograd, plan_of(p).shape, concurrency);
}
void run_plan(const skua::RunArgs& args) {
  const ConvPlan& p = plan_of(args.plan);
  const ConvOp& op = op_of(args.plan);
  const float* weights = static_cast<const float*>(op.weights);
  skua::winograd_run(args, p.winograd, p.shape, weights + bias_floats(op.layer), op.layer.has_bias ? weights : nullptr,
                     op.activation, op.layer.residual, args.in<char>(0), op.layer.residual ? args.in<char>(1) : nullptr,
                     args.out<char>(0), args.workspace);
}
const skua::OpClass kClass = {
    .name = "winograd", .id = 99, .op_size = sizeof(ConvOp), .plan_size = sizeof(ConvPlan), .config_offset = 0,
    .config_size = 0, .plan = make_plan,
    .finish = finish, .workspace = workspace, .run = run_plan,
};

// weights: [O][taps][taps][I]
skua_status create(skua_context* context, const Layer& l, const std::vector<float>& weights,
                   const std::vector<float>& bias, skua_op** out) {
  const skua::Kernel* tile = skua::choose_tile(context, 12, l.out_channels, l.in_channels, nullptr);
  const skua::PackFormat format = l.half ? skua::winograd_half_format(context) : skua::format_of(tile);
  size_t floats = 0;
  if (!skua::winograd_packed_floats(l.variant, l.in_channels, l.out_channels, format, floats))
    return SKUA_UNSUPPORTED_("winograd: too large");
  floats += bias_floats(l);
  if (skua_status s = skua::new_op(kClass, context, l.residual ? 2 : 1, 1, floats * sizeof(float), out)) return s;
  ConvOp& op = *static_cast<ConvOp*>(*out);
  op.layer = l;
  op.format = format;
  float* to = static_cast<float*>(skua::op_weights(&op));
  for (size_t i = 0; i < bias_floats(l); ++i) to[i] = i < bias.size() ? bias[i] : 0;
  skua::winograd_pack(context, l.variant, l.in_channels, l.out_channels, format, weights.data(),
                      {l.taps() * l.taps() * l.in_channels, 1, l.taps() * l.in_channels, l.in_channels},
                      to + bias_floats(l));
  return skua::resolve_activation(&op, l.activation, op.activation);
}

// ---- the truth ------------------------------------------------------------------------------------------------------
skua::winograd::Growth growth(int points, int taps) {
  constexpr skua::winograd::Growth g[] = {skua::winograd::growth(2, 3), skua::winograd::growth(4, 3),
                                          skua::winograd::growth(6, 3)},
                                   five = skua::winograd::growth(4, 5), two = skua::winograd::growth(2, 2);
  return taps == 5 ? five : taps == 2 ? two : g[points / 2 - 2];
}
skua::winograd::Growth growth_y(WinogradVariant v) { return growth(winograd_height(v), winograd_part_taps(v)); }
skua::winograd::Growth growth_x(WinogradVariant v) { return growth(winograd_width(v), winograd_part_taps(v)); }
// Terms of a product's sums.
size_t depth(WinogradVariant v, size_t in_channels) { return winograd_parts(v) * in_channels; }
size_t depth(const Layer& l) { return depth(l.variant, l.in_channels); }
double worst(WinogradVariant v) { return growth_y(v).worst * growth_x(v).worst; }
double amplification(WinogradVariant v) { return std::sqrt(growth_y(v).variance * growth_x(v).variance); }
constexpr double u = FLT_EPSILON / 2;
// rms error over rms of y for operands of mean 0.
double expected_rms(WinogradVariant v, size_t in_channels) {
  return 0.41 * u * amplification(v) * std::sqrt(double(depth(v, in_channels)) / 2 + 4);
}
// With products in f16: chains of 64 at most.
constexpr double u_half = 1.0 / 2048;
double expected_half_rms(WinogradVariant v, size_t in_channels) {
  return 0.41 * u_half * amplification(v) * std::sqrt(double(std::min(depth(v, in_channels), size_t(64))) / 2 + 4);
}

struct Truth {
  std::vector<double> value, bound;  // before the epilogue
  double rms = 0;                    // of value, bias left out
};
Truth convolve(const Data& x, const Layer& l, const std::vector<float>& weights, const std::vector<float>& bias) {
  const std::vector<float> in = dense(x);
  const size_t N = x.t.shape[0], H = x.t.shape[1], W = x.t.shape[2], I = l.in_channels, O = l.out_channels,
               T = l.taps(), S = l.stride(), h = l.out_h(H), w = l.out_w(W);
  double largest = 0;
  for (float v : in) largest = std::max(largest, double(std::fabs(v)));
  std::vector<double> sums(O);
  for (size_t i = 0; i < weights.size(); ++i) sums[i / (T * T * I)] += std::fabs(double(weights[i]));
  const double terms = double(l.half ? std::min(depth(l), size_t(64)) : depth(l)) +
                       3 * (winograd_height(l.variant) + winograd_width(l.variant) - 4) / 2 + 8;
  std::vector<double> columns(weights.size());  // [T][T][I][O], which the inner loop goes along
  for (size_t i = 0; i < weights.size(); ++i) columns[i % (T * T * I) * O + i / (T * T * I)] = double(weights[i]);
  Truth t;
  std::vector<double> acc(O);
  for (size_t n = 0; n < N; ++n)
    for (size_t y = 0; y < h; ++y)
      for (size_t x0 = 0; x0 < w; ++x0) {
        std::fill(acc.begin(), acc.end(), 0.0);
        for (size_t ky = 0; ky < T; ++ky)
          for (size_t kx = 0; kx < T; ++kx) {
            // wraps below 0
            const size_t iy = y * S + ky * l.dilation_h - l.top, ix = x0 * S + kx * l.dilation_w - l.left;
            if (iy >= H || ix >= W) continue;
            const float* const a = &in[((n * H + iy) * W + ix) * I];
            for (size_t i = 0; i < I; ++i)
              add_products(double(a[i]), &columns[((ky * T + kx) * I + i) * O], O, acc.data());
          }
        for (size_t o = 0; o < O; ++o) {
          t.rms += acc[o] * acc[o];
          const double value = acc[o] + (l.has_bias ? double(bias[o]) : 0);
          t.value.push_back(value);
          t.bound.push_back(terms * (l.half ? u_half : u) * worst(l.variant) * largest * sums[o] +
                            4 * u * std::fabs(value));
        }
      }
  t.rms = std::sqrt(t.rms / double(t.value.size()));
  return t;
}

std::vector<float> values(size_t n, Rng& rng, float scale = 1) {
  std::vector<float> v(n);
  for (float& x : v) x = rng.uniform(-scale, scale);
  return v;
}

double activate(const skua_activation& a, double x) {
  switch (a.kind) {
    case SKUA_ACTIVATION_RELU: return std::max(x, 0.0);
    case SKUA_ACTIVATION_CLAMP: return std::min(std::max(x, double(a.a)), double(a.b));
    case SKUA_ACTIVATION_LEAKY_RELU: return x < 0 ? double(a.a) * x : x;
    default: return x;
  }
}

struct Image {
  size_t batch, h, w;
  bool holes;
};

// Runs one layer on random values and compares. Outputs whose operands are random are held to 40 times the expected rms
// error as well: the bound alone is far too wide to notice a wrong coefficient in a few outputs.
void check(skua_context* context, const Layer& l, const Image& image, Rng& rng) {
  SCOPED_TRACE(testing::Message() << skua::winograd_name(l.variant) << " " << image.batch << "x" << image.h << "x"
                                  << image.w << "x" << l.in_channels << " -> " << l.out_channels << " padding " << l.top
                                  << l.left << l.bottom << l.right << " dilation " << l.dilation_h << "x"
                                  << l.dilation_w << " bias " << l.has_bias << " activation " << int(l.activation.kind)
                                  << " residual " << int(l.residual) << (image.holes ? " strided" : ""));
  const std::vector<float> weights = values(l.taps() * l.taps() * l.in_channels * l.out_channels, rng),
                           bias = values(l.out_channels, rng);
  const size_t h = l.out_h(image.h), w = l.out_w(image.w);
  skua_tensor xt = shape({image.batch, image.h, image.w, l.in_channels}, l.type),
              yt = shape({image.batch, h, w, l.out_channels}, l.type), rt = yt;
  if (image.holes) {
    xt = with_holes(xt, {0, 1, 2, 3});
    yt = with_holes(yt, {0, 2, 1, 5});
    rt = with_holes(rt, {0, 1, 1, 1});
  }
  const Data x = make(xt, rng), residual = make(rt, rng);
  Op op;
  SKUA_EXPECT_OK(create(context, l, weights, bias, &op));
  std::vector<Data> inputs = {x};
  if (l.residual) inputs.push_back(residual);
  const std::vector<Data> got = run(op, inputs, {yt});
  ASSERT_EQ(got.size(), 1u);
  Truth want = convolve(x, l, weights, bias);
  const double usual = 40 *
                       (l.half ? expected_half_rms(l.variant, l.in_channels) : expected_rms(l.variant, l.in_channels)) *
                       double(l.taps()) * std::sqrt(double(l.in_channels)) / 3;
  const std::vector<float> r = dense(residual);
  for (size_t i = 0; i < want.value.size(); ++i) {
    double& y = want.value[i];
    const double before = y;
    if (l.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION) y += double(r[i]);
    y = activate(l.activation, y);
    if (l.residual == SKUA_RESIDUAL_AFTER_ACTIVATION) y += double(r[i]);
    want.bound[i] = 1.5 * std::min(want.bound[i], usual + 4 * u * std::fabs(before)) + 8 * u * (1 + std::fabs(y));
    want.bound[i] += half_ulp(l.type, std::fabs(y) + want.bound[i]);
  }
  expect_close(got[0], want.value, want.bound);
}

Layer plain(WinogradVariant v, size_t in_channels, size_t out_channels) {
  const size_t pad = size_t(winograd_taps(v)) / 2;
  return {v, in_channels, out_channels, pad, pad, pad, pad, true, {SKUA_ACTIVATION_NONE, 0, 0},
          SKUA_RESIDUAL_NONE,
          SKUA_DTYPE_F32,
          false};
}

// Every clip of both dimensions, for whole and for half-filled vectors.
TEST(Winograd, EveryImageSize) {
  Rng rng(1);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants) {
      const int my = winograd_rows(v), mx = winograd_columns(v);
      for (int y = 1; y <= my; ++y)
        for (int x = 1; x <= mx; ++x) {
          // Of stride 2 also both parities of the image's size.
          const Layer l = plain(v, size_t(rng.integer(1, 20)), size_t(rng.integer(1, 40)));
          const auto extent = [&](int outputs) {
            return size_t(outputs) * l.stride() - size_t(l.stride() == 2 && rng.integer(0, 1));
          };
          check(context, l, {1, extent(y + my * rng.integer(0, 2)), extent(x + mx * rng.integer(0, 2)), false}, rng);
          if (HasFailure()) return;
        }
    }
  }
}

TEST(Winograd, AnyLayer) {
  Rng rng(2);
  const skua_activation activations[] = {{SKUA_ACTIVATION_NONE, 0, 0},
                                         {SKUA_ACTIVATION_RELU, 0, 0},
                                         {SKUA_ACTIVATION_CLAMP, -0.5f, 1.5f},
                                         {SKUA_ACTIVATION_LEAKY_RELU, -0.5f, 0},
                                         {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0}};
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants)
      for (int i = 0; i < (small() ? 6 : 15); ++i) {
        Layer l = plain(v, size_t(rng.integer(1, 70)), size_t(rng.integer(1, 70)));
        l.top = size_t(rng.integer(0, 2));
        l.left = size_t(rng.integer(0, 2));
        l.bottom = size_t(rng.integer(0, 2));
        l.right = size_t(rng.integer(0, 2));
        l.has_bias = rng.integer(0, 3) != 0;
        l.activation = activations[rng.integer(0, 4)];
        l.residual = skua_residual(rng.integer(0, 2));
        const auto extent = [&](size_t padding) {
          return size_t(rng.integer(padding >= l.taps() ? 1 : int(l.taps() - padding), small() ? 10 : 20));
        };
        check(context, l,
              {size_t(rng.integer(1, 3)), extent(l.top + l.bottom), extent(l.left + l.right), rng.integer(0, 1) == 1},
              rng);
        if (HasFailure()) return;
      }
  }
}

// Every length that phases of a dilation can have, phases without outputs among them, and phases whose last tiles are
// clipped otherwise.
TEST(Winograd, Dilated) {
  Rng rng(10);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants)
      for (size_t dilation = 2; dilation < 5; ++dilation)
        for (int i = 0; i < (small() ? 4 : 12); ++i) {
          Layer l = plain(v, size_t(rng.integer(1, 20)), size_t(rng.integer(1, 40)));
          l.dilation_h = dilation;
          l.dilation_w = size_t(rng.integer(1, 4));
          l.top = size_t(rng.integer(0, int(l.span_h()) - 1)); l.left = size_t(rng.integer(0, int(l.span_w()) - 1));
          l.bottom = l.span_h() - 1 - l.top; l.right = l.span_w() - 1 - l.left;
          l.residual = skua_residual(rng.integer(0, 2));
          if (i % 3 == 1) l.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0};
          const auto extent = [&](int outputs) {
            return size_t(rng.integer(1, (small() ? 1 : 2) * outputs * int(dilation) + 1));
          };
          check(context, l,
                {size_t(rng.integer(1, 2)), extent(winograd_rows(v)), extent(winograd_columns(v)),
                 rng.integer(0, 1) == 1},
                rng);
          if (HasFailure()) return;
        }
  }
}

// Tiles along one dimension cover every output once, in whole tiles of one phase.
TEST(Winograd, TilesOfPhases) {
  for (size_t dilation = 1; dilation < 9; ++dilation)
    for (size_t out = 1; out < 40; ++out) {
      Context context;
      skua::WinogradShape s = {1,       8, out,      8,        8,       out, 8,
                               1,       1, 1,        dilation, 8 * out, 8,   64 * out,
                               8 * out, 8, 64 * out, 0,        0,       0,   skua::Element::f32};
      skua::WinogradPlan plan;
      ASSERT_TRUE(skua::winograd_plan(context, WinogradVariant::f4x4, s,
                                      skua::format_of(skua::choose_tile(context, 12, 8, 8, nullptr)), &plan));
      EXPECT_TRUE(plan.x.longer || !plan.x.clip[0]) << "phases that there are none of would cut products";
      std::vector<int> times(out);
      for (uint32_t i = 0; i < plan.tiles_x; ++i) {
        const skua::WinogradTiles::Tile t = plan.x.at(i);
        ASSERT_LT(t.clip, 4);
        for (size_t k = 0; k < 4u - t.clip; ++k) {
          ASSERT_LT(t.first + k * dilation, out);
          ++times[t.first + k * dilation];
        }
        EXPECT_GE(t.first + (4u - t.clip) * dilation, t.clip ? out : 0);
      }
      for (size_t k = 0; k < out; ++k) EXPECT_EQ(times[k], 1) << dilation << " " << out << " " << k;
    }
}

// Maps of half precision: whole and clipped tiles, whole and part vectors, every place for the residual, an activation
// that is no clamp. The errors are those of f32 and one rounding.
TEST(Winograd, HalfPrecision) {
  Rng rng(7);
  for (skua_dtype type : half_types())
    for (const char* isa : isas(type)) {
      // its own kernels, whichever the model of this core prefers
      Context context(isa, ("*_" + std::string(isa)).c_str());
      for (WinogradVariant v : kVariants) {
        const size_t my = size_t(winograd_rows(v)), mx = size_t(winograd_columns(v));
        for (int i = 0; i < 3; ++i) {
          Layer l = plain(v, size_t(rng.integer(15, 40)), i == 1 ? 70 : size_t(rng.integer(15, 40)));
          l.type = type;
          l.residual = skua_residual(i);
          if (i == 1) l.activation = {SKUA_ACTIVATION_LEAKY_RELU, -0.5f, 0};
          if (i == 2) l.activation = {SKUA_ACTIVATION_CLAMP, -0.5f, 1.5f};
          check(context, l,
                {1, 2 * my + size_t(rng.integer(1, int(my))), 2 * mx + size_t(rng.integer(1, int(mx))), i == 0}, rng);
          if (HasFailure()) return;
        }
        Layer l = plain(v, 20, 9);
        l.type = type;
        l.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0};
        l.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
        check(context, l, {2, my, 3 * mx - 1, true}, rng);
        if (HasFailure()) return;
      }
    }
}

// Products in f16, where an instruction set has them.
std::vector<const char*> half_isas() {
  std::vector<const char*> found;
  for (const char* isa : isas(SKUA_DTYPE_F16)) {
    Context context(isa);
    if (skua::winograd_half_format(context).vector) found.push_back(isa);
  }
  return found;
}
constexpr WinogradVariant kHalfVariants[] = {WinogradVariant::f2x2, WinogradVariant::f4x2, WinogradVariant::f4x4,
                                             WinogradVariant::f3x3_s2, WinogradVariant::f2x2_5x5};

TEST(Winograd, HalfArithmetic) {
  Rng rng(8);
  for (const char* isa : half_isas()) {
    Context context(isa);
    for (WinogradVariant v : kHalfVariants) {
      const int my = winograd_rows(v), mx = winograd_columns(v);
      for (int i = 0; i < 5; ++i) {
        Layer l = plain(v, size_t(rng.integer(1, 150)), size_t(rng.integer(1, 80)));
        l.type = SKUA_DTYPE_F16;
        l.half = true;
        l.residual = skua_residual(i % 3);
        if (i == 3) l.activation = {SKUA_ACTIVATION_LEAKY_RELU, 0.125f, 0};
        check(context, l, {size_t(1 + i % 2), size_t(rng.integer(1, 3 * my)), size_t(rng.integer(1, 3 * mx)), i == 1},
              rng);
        if (HasFailure()) return;
      }
      // several passes over the channels; columns cut over workers
      Layer l = plain(v, small() ? 140 : 600, small() ? 70 : 330);
      l.type = SKUA_DTYPE_F16;
      l.half = true;
      check(context, l, {1, 7, 7, false}, rng);
      if (HasFailure()) return;
    }
    skua::WinogradShape s = {
        1, 8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 64, 8, 512, 64, 8, 512, 0, 0, 0, skua::Element::f16, skua::Element::f16};
    skua::WinogradPlan plan;
    EXPECT_FALSE(skua::winograd_plan(context, WinogradVariant::f6x6, s, skua::winograd_half_format(context), &plan));
  }
}

// Few tiles and many output channels: workers share the transformed input and take panels. Many tiles: ranges of
// several blocks.
TEST(Winograd, EveryWayToCut) {
  Rng rng(3);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants) {
      check(context, plain(v, 96, small() ? 140 : 330), {1, 7, 7, false}, rng);
      check(context, plain(v, 20, 70), {1, small() ? 12u : 40u, small() ? 19u : 41u, false}, rng);
      check(context, plain(v, small() ? 140 : 300, 40), {2, 7, 5, false}, rng);
      // one panel of all columns, cut into parts
      check(context, plain(v, small() ? 170 : 330, 150), {1, 7, 7, false}, rng);
      if (HasFailure()) return;
    }
  }
}

// The sums go over the channels in passes of 256.
TEST(Winograd, ManyChannels) {
  Rng rng(6);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants) {
      check(context, plain(v, small() ? 520 : 800, small() ? 3 : 20), {1, 3, 4, false}, rng);
      if (HasFailure()) return;
    }
  }
}

// A NaN reaches every output whose window it is in; outputs of the tiles that do not read it stay finite.
TEST(Winograd, NotFinite) {
  Rng rng(4);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants) {
      const Layer l = plain(v, 5, 3);
      const size_t my = size_t(winograd_rows(v)), mx = size_t(winograd_columns(v)), pad = l.top, h = 4 * my, w = 4 * mx;
      const std::vector<float> weights = values(l.taps() * l.taps() * 5 * 3, rng), bias = values(3, rng);
      Data x = make({1, h, w, 5}, rng);
      const size_t row = my / 2, column = mx + 1;
      x.v[(row * w + column) * 5 + 2] = NAN;
      Op op;
      SKUA_EXPECT_OK(create(context, l, weights, bias, &op));
      const std::vector<Data> got = run(op, {x});
      ASSERT_EQ(got.size(), 1u);
      for (size_t i = 0; i < got[0].v.size(); ++i) {
        const size_t y = i / 3 / l.out_w(w), z = i / 3 % l.out_w(w);
        const auto reads = [&](size_t first, size_t outputs, size_t at) {
          return first * l.stride() <= at + pad && (first + outputs - 1) * l.stride() + l.taps() > at + pad;
        };
        const bool window = reads(y, 1, row) && reads(z, 1, column),
                   tile = reads(y / my * my, my, row) && reads(z / mx * mx, mx, column);
        SCOPED_TRACE(testing::Message() << isa << " " << winograd_name(v) << " " << y << ", " << z);
        if (window) { EXPECT_TRUE(std::isnan(got[0].v[i])); }
        if (!tile) { EXPECT_TRUE(std::isfinite(got[0].v[i])); }
      }
    }
  }
}

// With a dilation it stays among the outputs of its phase.
TEST(Winograd, NotFiniteInOnePhase) {
  Rng rng(11);
  for (const char* isa : isas()) {
    Context context(isa);
    for (WinogradVariant v : kVariants) {
      Layer l = plain(v, 5, 3);
      l.dilation_h = 3;
      l.dilation_w = 2;
      l.top = l.bottom = l.left = l.right = 3;
      const size_t extent = 20, row = 10, column = 9;
      const std::vector<float> weights = values(l.taps() * l.taps() * 5 * 3, rng), bias = values(3, rng);
      Data x = make({1, extent, extent, 5}, rng);
      x.v[(row * extent + column) * 5 + 2] = NAN;
      Op op;
      SKUA_EXPECT_OK(create(context, l, weights, bias, &op));
      const std::vector<Data> got = run(op, {x});
      ASSERT_EQ(got.size(), 1u);
      for (size_t i = 0; i < got[0].v.size(); ++i) {
        const size_t y = i / 3 / l.out_w(extent), z = i / 3 % l.out_w(extent);
        SCOPED_TRACE(testing::Message() << isa << " " << winograd_name(v) << " " << y << ", " << z);
        // Windows begin at y * stride - padding and step by the dilation.
        const auto tap = [&](size_t first, size_t dilation, size_t at) {
          return at + 3 >= first * l.stride() && (at + 3 - first * l.stride()) % dilation == 0;
        };
        const auto reads = [&](size_t first, size_t dilation, size_t at) {
          return tap(first, dilation, at) && (at + 3 - first * l.stride()) / dilation < l.taps();
        };
        if (reads(y, 3, row) && reads(z, 2, column)) { EXPECT_TRUE(std::isnan(got[0].v[i])); }
        const bool phase =
            (y * l.stride() + 3 * extent - row - 3) % 3 == 0 && (z * l.stride() + 2 * extent - column - 3) % 2 == 0;
        if (!phase) { EXPECT_TRUE(std::isfinite(got[0].v[i])); }
      }
    }
  }
}

// Of stride 2 the last row and column may be in no window: whatever is there stays there.
TEST(Winograd, NotFiniteInNoWindow) {
  Rng rng(9);
  for (const char* isa : isas()) {
    Context context(isa);
    for (size_t outputs = 3; outputs < 9; ++outputs) {
      Layer l = plain(WinogradVariant::f3x3_s2, 5, 3);
      l.top = l.left = l.bottom = l.right = 0;
      const size_t extent = 2 * outputs + 2;
      const std::vector<float> weights = values(9 * 5 * 3, rng), bias = values(3, rng);
      Data x = make({1, extent, extent, 5}, rng);
      for (size_t i = 0; i < x.v.size(); ++i)
        if (i / 5 % extent == extent - 1 || i / 5 / extent == extent - 1) x.v[i] = NAN;
      Op op;
      SKUA_EXPECT_OK(create(context, l, weights, bias, &op));
      const std::vector<Data> got = run(op, {x});
      for (float y : got[0].v) EXPECT_TRUE(std::isfinite(y)) << isa << " " << outputs;
    }
  }
}

// At the size where the bytes of packed weights no longer fit, and at those where they would wrap around to few.
TEST(Winograd, PackedBytesFit) {
  for (const WinogradVariant v :
       {WinogradVariant::f2x2, WinogradVariant::f4x2, WinogradVariant::f4x4, WinogradVariant::f6x6,
        WinogradVariant::f2x2_5x5, WinogradVariant::f4x4_5x5, WinogradVariant::f3x3_s2})
    for (const skua::Element e : {skua::Element::f32, skua::Element::f16, skua::Element::s16}) {
      const skua::PackFormat format = {16, 16, e, uint8_t(skua::winograd_together(e)), 0};
      // input channels of 16 outputs
      const size_t pair = winograd_products(v) * skua::element_bytes(e), most = SIZE_MAX / 2 / pair / 16 / 16 * 16;
      size_t floats = 0;
      EXPECT_TRUE(skua::winograd_packed_floats(v, most, 16, format, floats));
      EXPECT_EQ(floats, most * 16 * pair / 4);
      for (const size_t channels : {most + 32, 2 * most + 32, 4 * most + 64, SIZE_MAX / 64, SIZE_MAX / 2, SIZE_MAX})
        EXPECT_FALSE(skua::winograd_packed_floats(v, channels, 16, format, floats))
            << skua::winograd_name(v) << " " << channels;
      EXPECT_FALSE(skua::winograd_packed_floats(v, 16, SIZE_MAX - 3, format, floats));
    }
}

// Sums in f32, rounded after every product and every sum, in the order of the weights.
std::vector<double> one_chain(const Data& x, const Layer& l, const std::vector<float>& weights) {
  const size_t H = x.t.shape[1], W = x.t.shape[2], I = l.in_channels, T = l.taps(), S = l.stride();
  std::vector<double> y;
  for (size_t oy = 0; oy < l.out_h(H); ++oy)
    for (size_t ox = 0; ox < l.out_w(W); ++ox)
      for (size_t o = 0; o < l.out_channels; ++o) {
        float sum = 0;
        for (size_t ky = 0; ky < T; ++ky)
          for (size_t kx = 0; kx < T; ++kx) {
            const size_t iy = oy * S + ky - l.top, ix = ox * S + kx - l.left;
            if (iy >= H || ix >= W) continue;
            for (size_t i = 0; i < I; ++i) {
              const float product = x.v[(iy * W + ix) * I + i] * weights[((o * T + ky) * T + kx) * I + i];
              sum += product;
            }
          }
        y.push_back(double(sum));
      }
  return y;
}

struct Errors {
  double rms, largest, of_bound;  // over the rms of y; over the bound
};
Errors errors(const std::vector<double>& got, const Truth& want) {
  Errors e = {0, 0, 0};
  for (size_t i = 0; i < got.size(); ++i) {
    const double d = std::fabs(got[i] - want.value[i]);
    e.rms += d * d;
    e.largest = std::max(e.largest, d / want.rms);
    e.of_bound = std::max(e.of_bound, d / want.bound[i]);
  }
  e.rms = std::sqrt(e.rms / double(got.size())) / want.rms;
  return e;
}

// The table of docs/winograd.md, printed with SKUA_WINOGRAD_TABLE=1.
TEST(Winograd, Accuracy) {
  const bool print = std::getenv("SKUA_WINOGRAD_TABLE") != nullptr;
  for (size_t channels : {size_t(8), size_t(32), size_t(64), size_t(512)}) {
    if (small() && channels > 32) continue;
    for (float mean : {0.0f, 1.0f}) {
      size_t taps = 0, stride = 0;
      Errors direct = {};
      for (WinogradVariant v : kVariants) {
        Rng rng(5);
        Layer l = plain(v, channels, 16);
        l.has_bias = false;
        const std::vector<float> weights = values(l.taps() * l.taps() * channels * 16, rng);
        const Data x = make({1, 24, 24, channels}, rng, mean - 1, mean + 1);
        const Truth want = convolve(x, l, weights, {});
        if (l.taps() != taps || l.stride() != stride) {
          taps = l.taps();
          stride = l.stride();
          direct = errors(one_chain(x, l, weights), want);
          if (print)
            printf("direct %zux%zu             %3zu channels, mean %g: rms %.2e largest %.2e\n", taps, taps, channels,
                   double(mean), direct.rms, direct.largest);
        }
        const double expected = expected_rms(v, channels);
        for (const char* isa : isas()) {
          SCOPED_TRACE(testing::Message()
                       << isa << " " << winograd_name(v) << " " << channels << " channels, mean " << mean);
          Context context(isa);
          Op op;
          SKUA_EXPECT_OK(create(context, l, weights, {}, &op));
          const std::vector<Data> got = run(op, {x});
          ASSERT_EQ(got.size(), 1u);
          const Errors e = errors(dense_double(got[0]), want);
          EXPECT_LE(e.of_bound, 1);
          EXPECT_LE(e.rms, 1.6 * expected);
          EXPECT_LE(e.largest, 40 * expected);
          if (channels >= skua::winograd_least_channels(v, skua::Element::f32) && mean == 0) {
            EXPECT_LE(e.rms, 2.2 * direct.rms);
          }
          if (print)
            printf(
                "%-14s %-7s %3zu channels, mean %g: rms %.2e (%.1f of direct, expected %.2e) largest %.2e of bound "
                "%.1e\n",
                winograd_name(v), isa, channels, double(mean), e.rms, e.rms / direct.rms, expected, e.largest,
                e.of_bound);
        }
      }
    }
  }
}

// Sums of 64 products in f16, rounded after every step, and these sums in f32.
std::vector<double> half_chains(const Data& x, const Layer& l, const std::vector<float>& weights) {
  const size_t H = x.t.shape[1], W = x.t.shape[2], I = l.in_channels, T = l.taps(), S = l.stride();
  std::vector<double> y;
  for (size_t oy = 0; oy < l.out_h(H); ++oy)
    for (size_t ox = 0; ox < l.out_w(W); ++ox)
      for (size_t o = 0; o < l.out_channels; ++o) {
        float sum = 0, chain = 0;
        size_t terms = 0;
        for (size_t ky = 0; ky < T; ++ky)
          for (size_t kx = 0; kx < T; ++kx) {
            const size_t iy = oy * S + ky - l.top, ix = ox * S + kx - l.left;
            if (iy >= H || ix >= W) continue;
            for (size_t i = 0; i < I; ++i) {
              chain = rounded(SKUA_DTYPE_F16,
                              chain + x.v[(iy * W + ix) * I + i] * weights[((o * T + ky) * T + kx) * I + i]);
              if (++terms % 64 == 0) {
                sum += chain;
                chain = 0;
              }
            }
          }
        y.push_back(double(sum + chain));
      }
  return y;
}

// The table of f16 in docs/winograd.md. Weights are halves, results are rounded to f16.
TEST(Winograd, HalfAccuracy) {
  const bool print = std::getenv("SKUA_WINOGRAD_TABLE") != nullptr;
  for (size_t channels : {size_t(8), size_t(32), size_t(64), size_t(512)}) {
    if (small() && channels > 32) continue;
    size_t taps = 0, stride = 0;
    Errors direct = {};
    for (WinogradVariant v : kHalfVariants) {
      Rng rng(5);
      Layer l = plain(v, channels, 8);
      l.has_bias = false;
      l.type = SKUA_DTYPE_F16;
      l.half = true;
      std::vector<float> weights = values(l.taps() * l.taps() * channels * 8, rng);
      for (float& w : weights) w = rounded(SKUA_DTYPE_F16, w);
      const Data x = make(shape({1, 16, 16, channels}, SKUA_DTYPE_F16), rng);
      const Truth want = convolve(x, l, weights, {});
      if (l.taps() != taps || l.stride() != stride) {
        taps = l.taps();
        stride = l.stride();
        direct = errors(half_chains(x, l, weights), want);
        if (print)
          printf("f16 direct %zux%zu             %3zu channels: rms %.2e largest %.2e\n", taps, taps, channels,
                 direct.rms, direct.largest);
      }
      for (const char* isa : half_isas()) {
        SCOPED_TRACE(testing::Message() << isa << " " << winograd_name(v) << " " << channels << " channels");
        Context context(isa);
        Op op;
        SKUA_EXPECT_OK(create(context, l, weights, {}, &op));
        const std::vector<Data> got = run(op, {x});
        ASSERT_EQ(got.size(), 1u);
        const Errors e = errors(dense_double(got[0]), want);
        const double expected = expected_half_rms(v, channels);
        EXPECT_LE(e.of_bound, 1);
        EXPECT_LE(e.rms, 1.6 * expected + 3e-4);
        EXPECT_LE(e.largest, 40 * expected);
        if (skua::winograd_half_by_default(v)) { EXPECT_LE(e.rms, 2.2 * direct.rms + 3e-4); }
        if (print)
          printf("f16 %-14s %-10s %3zu channels: rms %.2e (%.1f of direct, expected %.2e) largest %.2e of bound %.1e\n",
                 winograd_name(v), isa, channels, e.rms, e.rms / direct.rms, expected, e.largest, e.of_bound);
      }
    }
  }
}

// What docs/winograd.md says of SKUA_NUMERICS_DEFAULT: f2x2 and f3x3_s2 are computed in f16, the others only under
// SKUA_NUMERICS_FAST.
TEST(Winograd, InHalvesByDefault) {
  int checked = 0;
  for (const char* isa : half_isas())
    for (WinogradVariant v : kHalfVariants) {
      SCOPED_TRACE(testing::Message() << isa << " " << winograd_name(v));
      Context context(isa, skua::winograd_name(v));
      const auto in_halves = [&](skua_numerics numerics) {
        skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
        d.input_type = d.output_type = SKUA_DTYPE_F16;
        d.kernel_h = d.kernel_w = uint32_t(winograd_taps(v));
        d.stride_h = d.stride_w = uint32_t(winograd_stride(v));
        d.in_channels = d.out_channels = 128;
        d.padding.mode = SKUA_PADDING_SAME_UPPER;
        d.hint_in_h = d.hint_in_w = 28;
        d.numerics = numerics;
        const std::vector<float> weights(winograd_taps(v) * winograd_taps(v) * 128 * 128, 0.25f);
        Op op;
        SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), nullptr, &op));
        const skua_tensor x = shape({1, 28, 28, 128}, SKUA_DTYPE_F16);
        skua_plan* plan = nullptr;
        SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
        if (!plan) return false;
        char text[8192];
        skua_plan_explain(plan, text, sizeof text);
        EXPECT_STREQ(skua_plan_algorithm(plan), skua::winograd_name(v)) << text;
        skua_plan_destroy(plan);
        return std::strstr(text, "f16, 64 terms at a time") != nullptr;
      };
      if (!in_halves(SKUA_NUMERICS_FAST)) continue;  // in f32 they are faster
      checked += v == WinogradVariant::f2x2;
      EXPECT_EQ(in_halves(SKUA_NUMERICS_DEFAULT), v == WinogradVariant::f2x2 || v == WinogradVariant::f3x3_s2);
    }
  EXPECT_TRUE(checked > 0 || half_isas().empty());
}

TEST(Winograd, Growth) {
  EXPECT_NEAR(worst(WinogradVariant::f2x2), 16, 0.1);
  EXPECT_NEAR(worst(WinogradVariant::f3x3_s2), 16, 0.1);
  EXPECT_NEAR(worst(WinogradVariant::f4x4), 157, 1);
  EXPECT_NEAR(worst(WinogradVariant::f6x6), 1565, 5);
  EXPECT_NEAR(worst(WinogradVariant::f2x2_5x5), 157, 1);
  EXPECT_NEAR(amplification(WinogradVariant::f2x2_5x5), 5.53, 0.01);
  EXPECT_NEAR(amplification(WinogradVariant::f2x2), 1.67, 0.01);
  EXPECT_NEAR(amplification(WinogradVariant::f3x3_s2), 1.67, 0.01);
  EXPECT_NEAR(amplification(WinogradVariant::f4x4), 5.02, 0.01);
  EXPECT_NEAR(amplification(WinogradVariant::f6x6), 20.6, 0.1);
}

TEST(Winograd, NoPlanForAnotherVector) {
  Context context;
  skua::WinogradShape s = {1, 8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 64, 8, 512, 64, 8, 512, 0, 0, 0, skua::Element::f32};
  skua::WinogradPlan plan;
  EXPECT_FALSE(skua::winograd_plan(context, WinogradVariant::f4x4, s, {28, 5, skua::Element::f32, 1, 0}, &plan));
  // Weights of another architecture, of which more or fewer channels lie together.
  skua::PackFormat bytes = skua::winograd_int8_format(context);
  if (bytes.vector) {
    s.element = s.result = skua::Element::s8;
    EXPECT_TRUE(skua::winograd_plan(context, WinogradVariant::f4x4, s, bytes, &plan));
    bytes.kr = uint8_t(3 - bytes.kr);
    EXPECT_FALSE(skua::winograd_plan(context, WinogradVariant::f4x4, s, bytes, &plan));
    s.element = s.result = skua::Element::f32;
  }
  s.batch = SIZE_MAX / 2;
  const skua::Kernel* tile = skua::choose_tile(context, 12, 8, 8, nullptr);
  EXPECT_FALSE(skua::winograd_plan(context, WinogradVariant::f4x4, s, skua::format_of(tile), &plan));
}

}  // namespace
