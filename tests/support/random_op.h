// A random operator of those that GPUs have, with its inputs, drawn from a number: for comparisons between devices.
#pragma once
#include <skua/skua.h>

#include <cmath>
#include <functional>
#include <memory>

#include "tests/support/support.h"

namespace skua_test {

struct Trial {
  std::string text;
  std::function<skua_status(skua_context*, bool strict, skua_op**)> create;
  std::vector<Data> inputs;
  double scale = 0;  // of the error in f32, in units of the largest result (or 1) times 2^-23; 0: the same bits
  double halves = 3; // roundings to f16
  double least = 0;  // what a rounded value may have been as large as, where it is larger than the result
};

struct RandomOp {
  Rng rng;
  skua_dtype type;
  std::string text;
  RandomOp(uint32_t number, const std::vector<skua_dtype>& types)
      : rng(number),
        type(types[types.size() > 1 && !rng.integer(0, 2) ? size_t(rng.integer(1, int(types.size()) - 1)) : 0]) {}

  bool odds(int one_in) { return rng.integer(1, one_in) == 1; }
  size_t extent(int most) { return size_t(odds(8) ? 1 : rng.integer(1, most)); }
  size_t channels(int most) { return odds(2) ? extent(most) : 4 * size_t(rng.integer(1, (most + 3) / 4)); }
  skua_activation activation() {
    static const skua_activation some[] = {{SKUA_ACTIVATION_NONE, 0, 0},
                                           {SKUA_ACTIVATION_NONE, 0, 0},
                                           {SKUA_ACTIVATION_RELU6, 0, 0},
                                           {SKUA_ACTIVATION_HARD_SWISH, 0, 0}};
    return some[rng.integer(0, 3)];
  }
  // Sometimes with room between rows; of an input of an operator that wants them dense never.
  skua_tensor strided(const std::vector<size_t>& s, bool inner = true, skua_dtype as = SKUA_DTYPE_S4) {
    const skua_tensor t = shape(s, as == SKUA_DTYPE_S4 ? type : as);
    if (!inner || odds(2)) return t;
    std::vector<size_t> more(s.size());
    for (size_t& m : more) m = size_t(odds(2) ? rng.integer(0, 3) : 4 * rng.integer(0, 2));
    return with_holes(t, more);
  }
  Data values(const std::vector<size_t>& s, bool holes = true, float low = -1, float high = 1) {
    return make(strided(s, holes), rng, low, high);
  }
  std::vector<float> constants(size_t n, double size = 1) {
    std::vector<float> v(n);
    for (float& x : v) x = rounded(type, float(double(rng.uniform(-1, 1)) * size));
    return v;
  }
  void say(const char* name, std::initializer_list<size_t> numbers) {
    text += name;
    for (size_t n : numbers) text += " " + std::to_string(n);
    text += "; ";
  }

  Trial gemm() {
    const size_t m = extent(odds(4) ? 150 : 20), n = channels(odds(4) ? 150 : 40), k = odds(20) ? 0 : channels(60),
                 batch = odds(3) ? extent(5) : 0;
    const bool constant = odds(2), ta = odds(3), tb = odds(3), residual = odds(3), bias = odds(2);
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.b_type = d.c_type = type;
    d.transpose_a = ta, d.transpose_b = tb;
    d.alpha = odds(3) ? 0.5f : 1;
    d.epilogue = {activation(), residual ? SKUA_RESIDUAL_BEFORE_ACTIVATION : SKUA_RESIDUAL_NONE};
    if (constant) d.n = n, d.k = k;
    if (bias) d.n = n;
    say("gemm", {m, n, k, batch, constant, ta, tb, residual, bias});
    Trial t;
    const auto matrix = [&](size_t rows, size_t columns, bool batched) {
      std::vector<size_t> s = {rows, columns};
      if (batched && batch) s.insert(s.begin(), batch);
      return values(s);
    };
    t.inputs.push_back(matrix(ta ? k : m, ta ? m : k, true));
    const auto b = std::make_shared<std::vector<float>>(constants(n * k)),
               c = std::make_shared<std::vector<float>>(constants(n));
    if (!constant) t.inputs.push_back(matrix(tb ? n : k, tb ? k : n, odds(2)));
    if (residual) t.inputs.push_back(matrix(m, n, true));
    t.create = [=](skua_context* context, bool strict, skua_op** op) {
      skua_gemm_desc e = d;
      e.numerics = strict ? SKUA_NUMERICS_STRICT : SKUA_NUMERICS_DEFAULT;
      if (constant) e.b_type = SKUA_DTYPE_F32;
      return skua_gemm_create(context, &e, constant ? b->data() : nullptr, bias ? c->data() : nullptr, op);
    };
    t.scale = (2 * double(k) + 8) * (std::sqrt(double(k)) + 2);
    return t;
  }

  Trial conv(bool depthwise) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.kernel_h = uint32_t(extent(odds(3) ? 5 : 3)), d.kernel_w = odds(3) ? uint32_t(extent(5)) : d.kernel_h;
    d.stride_h = uint32_t(extent(2)), d.stride_w = odds(3) ? uint32_t(extent(3)) : d.stride_h;
    d.dilation_h = d.dilation_w = odds(5) ? 2 : 1;
    d.groups = 1;
    d.in_channels = uint32_t(channels(24)), d.out_channels = uint32_t(channels(40));
    if (depthwise) d.groups = d.in_channels, d.out_channels = d.in_channels * (odds(4) ? 2 : 1);
    else if (odds(6))
      d.groups = 2, d.in_channels = 2 * uint32_t(channels(8)), d.out_channels = 2 * uint32_t(channels(12));
    const bool nchw = odds(4), residual = odds(3), transposed = !depthwise && odds(5), bias = odds(2);
    d.layout = nchw ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
    d.padding.mode = SKUA_PADDING_SAME_UPPER;
    if (odds(3))
      d.padding = {SKUA_PADDING_EXPLICIT, uint32_t(rng.integer(0, int(d.kernel_h - 1))),
                   uint32_t(rng.integer(0, int(d.kernel_w - 1))), uint32_t(rng.integer(0, int(d.kernel_h - 1))), 0};
    d.epilogue.activation = activation();
    const size_t batch = extent(3), h = extent(14), w = extent(14);
    say(transposed ? "transposed" : "conv",
        {d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h, d.groups, d.in_channels, d.out_channels, nchw,
         residual, batch, h, w, d.padding.top, d.padding.left, d.padding.bottom, size_t(d.padding.mode),
         size_t(d.epilogue.activation.kind)});
    const auto weights = std::make_shared<std::vector<float>>(
        constants(size_t(d.kernel_h) * d.kernel_w * (d.in_channels / d.groups) * d.out_channels));
    const auto c = std::make_shared<std::vector<float>>(constants(d.out_channels));
    const skua_dtype as = type;
    Trial t;
    t.create = [=](skua_context* context, bool strict, skua_op** op) {
      skua_conv2d_desc e = d;
      e.input_type = e.output_type = as;
      e.weight_type = SKUA_DTYPE_F32;
      e.numerics = strict ? SKUA_NUMERICS_STRICT : SKUA_NUMERICS_DEFAULT;
      e.epilogue.residual = residual ? SKUA_RESIDUAL_BEFORE_ACTIVATION : SKUA_RESIDUAL_NONE;
      const float* const b = bias ? c->data() : nullptr;
      if (!transposed) return skua_conv2d_create(context, &e, weights->data(), b, op);
      skua_conv2d_transpose_desc f = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
      f.kernel_h = e.kernel_h, f.kernel_w = e.kernel_w, f.stride_h = e.stride_h, f.stride_w = e.stride_w,
      f.dilation_h = e.dilation_h, f.dilation_w = e.dilation_w;
      f.groups = e.groups, f.in_channels = e.in_channels, f.out_channels = e.out_channels, f.layout = e.layout;
      f.input_type = f.output_type = as;
      f.padding = e.padding, f.epilogue = e.epilogue, f.numerics = e.numerics;
      return skua_conv2d_transpose_create(context, &f, weights->data(), b, op);
    };
    t.inputs.push_back(values(nchw ? std::vector<size_t>{batch, d.in_channels, h, w}
                                   : std::vector<size_t>{batch, h, w, d.in_channels}));
    if (residual) {  // of the output's shape: planned without it
      Context cpu;
      skua_conv2d_desc e = d;
      e.input_type = e.output_type = as;
      e.weight_type = SKUA_DTYPE_F32;
      Op op;
      skua_plan* plan = nullptr;
      skua_tensor y;
      Trial without = t;
      std::vector<size_t> s = {1, 1, 1, 1};
      skua_status made;
      if (transposed) {
        skua_conv2d_transpose_desc f = SKUA_CONV2D_TRANSPOSE_DESC_INIT;
        f.kernel_h = e.kernel_h, f.kernel_w = e.kernel_w, f.stride_h = e.stride_h, f.stride_w = e.stride_w,
        f.dilation_h = e.dilation_h, f.dilation_w = e.dilation_w;
        f.groups = e.groups, f.in_channels = e.in_channels, f.out_channels = e.out_channels, f.layout = e.layout,
        f.input_type = f.output_type = as, f.padding = e.padding;
        made = skua_conv2d_transpose_create(cpu, &f, weights->data(), nullptr, &op);
      } else {
        made = skua_conv2d_create(cpu, &e, weights->data(), nullptr, &op);
      }
      if (made == SKUA_STATUS_OK && skua_op_plan(op, &t.inputs[0].t, 1, nullptr, 0, &plan) == SKUA_STATUS_OK &&
          skua_plan_outputs(plan, &y, 1) == SKUA_STATUS_OK)
        s.assign(y.shape, y.shape + 4);
      skua_plan_destroy(plan);
      t.inputs.push_back(values(s));
    }
    const double terms = double(d.in_channels / d.groups) * d.kernel_h * d.kernel_w;
    t.scale = (2 * terms + 8) * (std::sqrt(terms) + 2);
    t.halves = 4;   // the CPU rounds a depthwise sum before it adds the residual
    t.least = 4;
    return t;
  }

  Trial pool() {
    skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
    d.type = type;
    d.kind = skua_pool_kind(rng.integer(0, 2));
    d.global = odds(6);
    d.kernel_h = uint32_t(extent(4)), d.kernel_w = uint32_t(extent(4)), d.stride_h = uint32_t(extent(3)),
    d.stride_w = uint32_t(extent(3));
    d.dilation_h = d.dilation_w = odds(5) ? 2 : 1;
    d.padding.mode = odds(2) ? SKUA_PADDING_SAME_UPPER : SKUA_PADDING_EXPLICIT;
    d.ceil_mode = odds(3), d.count_padding = odds(2);
    const bool nchw = odds(3);
    d.layout = nchw ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
    const size_t n = extent(3), c = channels(24), h = extent(12) + 3, w = extent(12) + 3;
    say("pool", {size_t(d.kind), d.global, d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h,
                 size_t(d.padding.mode), d.ceil_mode, d.count_padding, nchw, n, c, h, w});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_pool2d_create(context, &d, op); };
    t.inputs.push_back(values(nchw ? std::vector<size_t>{n, c, h, w} : std::vector<size_t>{n, h, w, c}));
    t.scale = d.kind == SKUA_POOL_AVERAGE ? 40 : 0;
    return t;
  }

  Trial binary() {
    skua_binary_desc d = SKUA_BINARY_DESC_INIT;
    static const skua_binary_kind kinds[] = {SKUA_BINARY_ADD, SKUA_BINARY_MUL,   SKUA_BINARY_DIV,
                                             SKUA_BINARY_MAX, SKUA_BINARY_PRELU, SKUA_BINARY_LESS};
    d.kind = kinds[rng.integer(0, 5)];
    d.type = type;
    const size_t rank = size_t(rng.integer(1, 5));
    std::vector<size_t> x(rank), y(rank);
    for (size_t i = 0; i < rank; ++i) x[i] = y[i] = i + 1 == rank ? channels(30) : extent(6);
    for (size_t i = 0; i < rank; ++i)
      if (odds(4)) (odds(2) ? x : y)[i] = 1;
    if (odds(3)) y.erase(y.begin(), y.begin() + rng.integer(0, int(rank) - 1));
    say("binary", {size_t(d.kind), rank, x.back(), y.back(), y.size()});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_binary_create(context, &d, op); };
    t.inputs = {values(x), values(y, true, 0.5f, 2)};
    t.scale = d.kind == SKUA_BINARY_LESS || d.kind == SKUA_BINARY_MAX ? 0 : 4;
    return t;
  }

  Trial unary() {
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    static const skua_unary_kind kinds[] = {SKUA_UNARY_RELU6, SKUA_UNARY_SIGMOID, SKUA_UNARY_TANH, SKUA_UNARY_EXP,
                                            SKUA_UNARY_ABS};
    d.kind = kinds[rng.integer(0, 4)];
    d.input_type = d.output_type = type;
    std::vector<size_t> s(size_t(rng.integer(1, 5)));
    for (size_t i = 0; i < s.size(); ++i) s[i] = i + 1 == s.size() ? channels(40) : extent(6);
    say("unary", {size_t(d.kind), s.size(), s.back()});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_unary_create(context, &d, op); };
    t.inputs = {values(s, true, -4, 4)};
    t.scale = 16;
    return t;
  }

  std::vector<size_t> any_shape(size_t rank, int most) {
    std::vector<size_t> s(rank);
    for (size_t i = 0; i < rank; ++i) s[i] = i + 1 == rank ? channels(most) : extent(6);
    return s;
  }

  Trial softmax() {
    skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
    const std::vector<size_t> s = any_shape(size_t(rng.integer(1, 4)), odds(3) ? 1500 : 60);
    d.input_type = d.output_type = type;
    d.axis = rng.integer(0, int(s.size()) - 1);
    d.log = odds(2);
    d.scale = odds(2) ? 1 : 0.5f;
    say("softmax", {s.size(), size_t(d.axis), d.log, s.back()});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_softmax_create(context, &d, op); };
    t.inputs = {values(s, false, -3, 3)};
    t.scale = 60;
    t.halves = 4;  // docs/numerics.md: along another axis than the last the CPU rounds the powers as well
    return t;
  }

  Trial norm() {
    skua_norm_desc d = SKUA_NORM_DESC_INIT;
    d.kind = skua_norm_kind(rng.integer(0, 4));
    d.type = type;
    const bool rows = d.kind == SKUA_NORM_LAYER || d.kind == SKUA_NORM_RMS, nchw = !rows && odds(2);
    d.layout = nchw ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
    d.groups = 2;
    d.channels = rows ? channels(odds(3) ? 700 : 60) : 2 * channels(12);
    const size_t n = extent(3), h = extent(6) + 1, w = extent(6) + 1;
    say("norm", {size_t(d.kind), nchw, d.channels, n, h, w});
    const auto four = std::make_shared<std::vector<float>>(4 * d.channels);
    for (size_t i = 0; i < four->size(); ++i)
      (*four)[i] = i < d.channels       ? rng.uniform(0.5f, 2)
                   : i < 3 * d.channels ? rng.uniform(-1, 1)
                                        : rng.uniform(0.1f, 2);
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) {
      const float* const v = four->data();
      const bool batch = d.kind == SKUA_NORM_BATCH;
      return skua_norm_create(context, &d, v, d.kind == SKUA_NORM_RMS ? nullptr : v + d.channels,
                              batch ? v + 2 * d.channels : nullptr, batch ? v + 3 * d.channels : nullptr, op);
    };
    t.inputs = {values(nchw ? std::vector<size_t>{n, d.channels, h, w} : std::vector<size_t>{n, h, w, d.channels},
                       false, -3, 3)};
    t.scale = 300;
    return t;
  }

  Trial reduce() {
    skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
    d.kind = skua_reduce_kind(rng.integer(0, SKUA_REDUCE_KIND_COUNT - 1));
    d.type = type;
    const std::vector<size_t> s = any_shape(size_t(rng.integer(1, 5)), odds(3) ? 600 : 40);
    const bool arg = d.kind == SKUA_REDUCE_ARGMIN || d.kind == SKUA_REDUCE_ARGMAX;
    for (size_t i = 0; i < s.size(); ++i)
      if (odds(2) && !(arg && d.axis_count)) d.axes[d.axis_count++] = int32_t(i);
    if (arg && !d.axis_count) d.axes[d.axis_count++] = 0;
    d.keep_dims = odds(2);
    say("reduce", {size_t(d.kind), s.size(), d.axis_count, s.back(), d.keep_dims});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_reduce_create(context, &d, op); };
    const bool product = d.kind == SKUA_REDUCE_PROD;  // near 1, or it leaves the range
    t.inputs = {values(s, false, product ? 0.99f : -1, product ? 1.01f : 1)};
    size_t terms = 1;
    for (uint32_t i = 0; i < d.axis_count; ++i) terms *= s[size_t(d.axes[i])];
    if (!d.axis_count)
      for (size_t e : s) terms *= e;
    t.scale = arg || d.kind == SKUA_REDUCE_MIN || d.kind == SKUA_REDUCE_MAX ? 0 : 4 * double(terms) + 16;
    return t;
  }

  Trial resize() {
    skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
    d.kind = odds(2) ? SKUA_RESIZE_NEAREST : SKUA_RESIZE_BILINEAR;
    d.coordinates = skua_resize_coordinates(rng.integer(0, 2));
    d.type = type;
    const bool nchw = odds(3);
    d.layout = nchw ? SKUA_LAYOUT_NCHW : SKUA_LAYOUT_NHWC;
    d.out_h = uint32_t(extent(20)), d.out_w = uint32_t(extent(20));
    const size_t n = extent(3), c = channels(24), h = extent(14), w = extent(14);
    say("resize", {size_t(d.kind), size_t(d.coordinates), nchw, d.out_h, d.out_w, n, c, h, w});
    Trial t;
    t.create = [=](skua_context* context, bool, skua_op** op) { return skua_resize2d_create(context, &d, op); };
    t.inputs = {values(nchw ? std::vector<size_t>{n, c, h, w} : std::vector<size_t>{n, h, w, c})};
    t.scale = d.kind == SKUA_RESIZE_NEAREST ? 0 : 32;
    return t;
  }

  Trial copy() {
    const std::vector<size_t> s = any_shape(size_t(rng.integer(1, 5)), 30);
    Trial t;
    const int which = rng.integer(0, 3);
    say("copy", {size_t(which), s.size(), s[0], s.back()});
    if (which == 0) {
      skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
      d.type = type;
      d.rank = uint32_t(s.size());
      for (uint32_t i = 0; i < d.rank; ++i) d.perm[i] = i;
      for (uint32_t i = d.rank; i-- > 1;) std::swap(d.perm[i], d.perm[rng.integer(0, int(i))]);
      t.create = [=](skua_context* context, bool, skua_op** op) { return skua_transpose_create(context, &d, op); };
      t.inputs = {values(s)};
    } else if (which == 1) {
      skua_pad_desc d = SKUA_PAD_DESC_INIT;
      d.type = type;
      d.rank = uint32_t(s.size());
      d.mode = skua_pad_mode(rng.integer(0, 2));
      d.value = 1.5f;
      for (uint32_t i = 0; i < d.rank; ++i) {
        const int most = d.mode == SKUA_PAD_REFLECT ? int(std::min<size_t>(s[i] - 1, 4)) : 4;
        d.before[i] = size_t(rng.integer(0, most)), d.after[i] = size_t(rng.integer(0, most));
      }
      t.create = [=](skua_context* context, bool, skua_op** op) { return skua_pad_create(context, &d, op); };
      t.inputs = {values(s)};
    } else if (which == 2) {
      skua_slice_desc d = SKUA_SLICE_DESC_INIT;
      d.type = type;
      d.rank = uint32_t(s.size());
      for (uint32_t i = 0; i < d.rank; ++i) {
        d.begin[i] = size_t(rng.integer(0, int(s[i]) - 1));
        d.step[i] = extent(3);
        d.size[i] = (s[i] - d.begin[i] + d.step[i] - 1) / d.step[i];
      }
      t.create = [=](skua_context* context, bool, skua_op** op) { return skua_slice_create(context, &d, op); };
      t.inputs = {values(s)};
    } else {
      skua_concat_desc d = SKUA_CONCAT_DESC_INIT;
      d.type = type;
      d.axis = rng.integer(0, int(s.size()) - 1);
      t.create = [=](skua_context* context, bool, skua_op** op) { return skua_concat_create(context, &d, op); };
      for (int i = rng.integer(1, 5); i > 0; --i) {
        std::vector<size_t> part = s;
        part[size_t(d.axis)] = extent(9);
        t.inputs.push_back(values(part));
      }
    }
    return t;
  }

  Trial draw() {
    const int which = rng.integer(0, 13);
    Trial t = which < 3     ? gemm()
              : which < 5   ? conv(false)
              : which == 5  ? conv(true)
              : which == 6  ? pool()
              : which == 7  ? binary()
              : which == 8  ? unary()
              : which == 9  ? softmax()
              : which == 10 ? norm()
              : which == 11 ? reduce()
              : which == 12 ? resize()
                            : copy();
    t.text = text + skua_dtype_name(type);
    return t;
  }
};

}  // namespace skua_test
