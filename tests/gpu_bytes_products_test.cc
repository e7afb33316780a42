// Products and convolutions of s8 and u8 on every GPU of the machine, by every kernel: the CPU's bits.
#include <skua/conv.h>
#include <skua/gemm.h>

#include <cmath>

#include "tests/support/gpu_bytes.h"

namespace {
using namespace skua_test;

// ---- products -------------------------------------------------------------------------------------------------------
struct Gemm {
  size_t m, n, k, hole = 0, batch = 1;
  bool constant = true, transpose_a = false, transpose_b = false, bias = true;
  skua_dtype a = SKUA_DTYPE_S8, b = SKUA_DTYPE_S8, c = SKUA_DTYPE_S8;
  int a_zero = 3, b_zero = 0, c_zero = -2;
  skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0};
  bool residual = false, zeros = false;
  skua_rounding rounding = SKUA_ROUNDING_FLOAT;
  bool every_shift = false;

  Work work() const {
    const Gemm g = *this;
    Rng rng(uint32_t(m * 7 + n * 3 + k + (a == SKUA_DTYPE_U8)));
    const auto matrix = [&](skua_dtype type, size_t rows, size_t columns, bool transposed) {
      std::vector<size_t> extents = {transposed ? columns : rows, transposed ? rows : columns};
      if (batch > 1) extents.insert(extents.begin(), batch);
      return holed(shape(extents, type), hole);
    };
    std::vector<uint8_t> weights = random_bytes<uint8_t>(constant ? n * k : 0, rng, least(b));
    std::vector<int32_t> biases;
    std::vector<float> scales;
    for (size_t j = 0; j < n; ++j)
      biases.push_back(rng.integer(-20000, 20000)), scales.push_back(rng.uniform(0.001f, 0.02f));
    std::vector<int32_t> zero_points, multipliers, shifts;
    for (size_t j = 0; j < n; ++j) {
      zero_points.push_back(rng.integer(least(b), least(b) + 255));
      multipliers.push_back(j % 9 == 4   ? 0
                            : j % 9 == 5 ? INT32_MAX
                            : j % 2      ? 1 << 30
                                         : rng.integer(1 << 30, INT32_MAX));
      shifts.push_back(int(j % 62) - 31);
    }
    Work w;
    char text[300];
    snprintf(text, sizeof text,
             "%zu x %zu x %zu hole %zu batch %zu%s%s%s types %d %d %d zero points %d %d %d%s residual %d rounding %d",
             m, n, k, hole, batch, constant ? " constant" : "", transpose_a ? " A^T" : "", transpose_b ? " B^T" : "",
             int(a), int(b), int(c), a_zero, b_zero, c_zero, zeros ? ", one a column" : "", residual, int(rounding));
    w.text = text;
    w.create = [=](skua_context* context, skua_op** op) {
      skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
      d.a_type = g.a; d.b_type = g.b; d.c_type = g.c;
      d.transpose_a = g.transpose_a; d.transpose_b = g.transpose_b;
      d.epilogue.activation = g.activation;
      d.a_q.scale = 0.02f; d.a_q.zero_point = g.a_zero;
      if (g.residual)
        d.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, d.residual_q.scale = 0.31f,
        d.residual_q.zero_point = least(g.c) + 100;
      d.requantization.rounding = g.rounding;
      if (g.every_shift) d.requantization.multipliers = multipliers.data(), d.requantization.shifts = shifts.data();
      if (g.constant && !g.b_zero)
        d.b_q.scales = scales.data(), d.b_q.axis = g.transpose_b ? 0 : 1,
        d.b_q.zero_points = g.zeros ? zero_points.data() : nullptr;
      else d.b_q.scale = 0.011f, d.b_q.zero_point = g.b_zero;
      if (is_int(g.c)) d.c_q.scale = 0.02f * 0.01f * 60 * std::sqrt(float(g.k) + 1), d.c_q.zero_point = g.c_zero;
      if (g.constant) d.k = g.k;
      if (g.constant || g.bias) d.n = g.n;
      return skua_gemm_create(context, &d, g.constant ? weights.data() : nullptr, g.bias ? biases.data() : nullptr, op);
    };
    w.inputs.push_back(make_bytes(matrix(a, m, k, transpose_a), rng));
    if (!constant) w.inputs.push_back(make_bytes(matrix(b, k, n, transpose_b), rng));
    if (residual) w.inputs.push_back(make_bytes(matrix(c, m, n, false), rng));
    w.outputs.push_back(matrix(c, m, n, false));
    return w;
  }
};
std::vector<Work> works(const std::vector<Gemm>& cases) {
  std::vector<Work> all;
  for (const Gemm& c : cases) all.push_back(c.work());
  return all;
}
// The same with u8 in places of s8, other results and zero points at the ends.
std::vector<Gemm> in_types(const std::vector<Gemm>& cases) {
  std::vector<Gemm> all;
  for (Gemm c : cases) {
    all.push_back(c);
    c.a = SKUA_DTYPE_U8; c.a_zero = 255; c.c = SKUA_DTYPE_U8; c.c_zero = 128;
    c.activation = {SKUA_ACTIVATION_RELU6, 0, 0};
    all.push_back(c);
  }
  return all;
}

// a residual, of u8 too; both roundings in fixed point; columns of u8 have zero points of their own
std::vector<Gemm> with_ends(const Gemm& c) {
  std::vector<Gemm> all = in_types({c, c});
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].residual = i < 2;
    all[i].rounding = i < 2 ? SKUA_ROUNDING_FLOAT : i == 2 ? SKUA_ROUNDING_DOUBLE : SKUA_ROUNDING_SINGLE;
    if (i % 2 && c.constant) all[i].b = SKUA_DTYPE_U8, all[i].zeros = true;
  }
  return all;
}

TEST(gpu_bytes, gemm_vectors) {
  // programs by width: columns of one, drivers take a second for each
  std::vector<Gemm> cases = in_types({{37, 44, 20}, {70, 132, 36, 4}});
  cases.push_back({21, 40, 32, 0, 3});
  cases.back().c = SKUA_DTYPE_F32;
  cases.back().activation = {SKUA_ACTIVATION_CLAMP, -2.5f, 3.25f};
  cases.push_back({9, 36, 16});
  cases.back().c = SKUA_DTYPE_F16;
  cases.back().transpose_b = true;
  cases.push_back({9, 36, 16});
  cases.back().c = SKUA_DTYPE_BF16;
  cases.push_back({9, 36, 16});
  cases.back().b = SKUA_DTYPE_U8;
  cases.back().b_zero = 77;
  cases.back().bias = false;
  compare_all({"gemm_bytes_*_v4x4_*"}, works(cases));
  compare_all({"gemm_bytes_*_dot4x4_*"}, works(std::vector<Gemm>{cases[0], cases[1], cases.back()}));
  compare_all({"gemm_bytes_*_dot4x8_*"}, works(std::vector<Gemm>{cases[2], cases[3]}));
}

// Slices of the depth that end anywhere, rows and columns behind the tile, and the sums of rows that zero points of the
// weights take.
constexpr const char* kTiles[] = {"tile16", "tile16x32", "tile32", "tile64"};
TEST(gpu_bytes, gemm_in_local_memory) {
  const std::vector<Gemm> some = in_types({{37, 44, 20}, {70, 132, 148, 4}});
  compare_all({std::begin(kTiles), std::end(kTiles)}, works(std::vector<Gemm>{some[0], some[small() ? 1 : 3]}));
  Gemm floats = {9, 36, small() ? 144u : 576u, 0, 3};
  floats.c = SKUA_DTYPE_F32;
  Gemm zero = {1, 36, small() ? 208u : 1040u};
  zero.b = SKUA_DTYPE_U8;
  zero.b_zero = 77;
  compare_all({"gemm_bytes_*_dot4x16_*", "gemm_bytes_*_dot4x64_*"}, works(std::vector<Gemm>{floats, zero}));
  const std::vector<Gemm> ends = with_ends({13, 36, 144, 4, 2});
  compare_all({"gemm_bytes_*_dot4x16_*"}, works(std::vector<Gemm>{ends[0], ends[1]}));
  compare_all({"gemm_bytes_*_dot4x32_*"}, works(std::vector<Gemm>{ends[2], ends[3]}));
}

TEST(gpu_bytes, gemm_elements) {
  std::vector<Gemm> cases = in_types({{21, 35, 23}, {5, 37, 2, 3}, {18, 40, 5, 1, 2}});
  cases[1].transpose_a = cases[1].transpose_b = true;
  cases[1].b = SKUA_DTYPE_U8;
  cases[1].b_zero = 200;
  cases[2].c = SKUA_DTYPE_F32;
  cases[4].c = SKUA_DTYPE_F16;
  cases[5].c = SKUA_DTYPE_BF16;
  compare_all({"gemm_bytes_*_v1_*"}, works(cases));
}

TEST(gpu_bytes, gemm_of_two_inputs) {
  std::vector<Gemm> cases = in_types({{21, 35, 23}, {6, 36, 12, 0, 3}, {5, 37, 9, 2, 2}, {3, 35, 0}});
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].constant = false;
    cases[i].bias = i % 3 != 1;
    cases[i].b = i % 2 ? SKUA_DTYPE_U8 : SKUA_DTYPE_S8;
    cases[i].b_zero = i % 2 ? 255 : -128;
    cases[i].transpose_a = i % 4 == 2;
    cases[i].transpose_b = i % 4 > 1;
  }
  compare_all({"gemm_bytes_*"}, works(cases));
}

TEST(gpu_bytes, gemm_residual_and_fixed_point) {
  Gemm vectors = {13, 36, 16, 4, 2}, elements = {9, 35, 23, 3}, inputs = {7, 35, 9, 2, 2};
  inputs.constant = false;
  compare_all({"gemm_bytes_*_v4x4_*"}, works(with_ends(vectors)));
  compare_all({"gemm_bytes_*_dot4x8_*"}, works(std::vector<Gemm>{with_ends(vectors)[1]}));
  compare_all({""}, works(with_ends(elements)));
  compare_all({""}, works(with_ends(inputs)));
}

TEST(gpu_bytes, fixed_point_of_every_shift) {
  std::vector<Gemm> cases;
  for (const skua_rounding rounding : {SKUA_ROUNDING_DOUBLE, SKUA_ROUNDING_SINGLE}) {
    Gemm large = {24, 64, 512}, small = {64, 64, 1};  // sums: shifts above -2 leave nothing but the ends of large ones
    small.bias = false;
    small.a_zero = 0;
    for (Gemm c : {large, small}) {
      c.rounding = rounding;
      c.every_shift = true;
      cases.push_back(c);
    }
  }
  compare_all({""}, works(cases));
}

// ---- convolutions ---------------------------------------------------------------------------------------------------
struct Conv {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  bool transposed = false, residual = false;
  size_t batch = 1, h = 1, w = 1, hole = 0;

  Work work() const {
    const Conv c = *this;
    Rng rng(uint32_t(h * 31 + d.out_channels + d.in_channels));
    std::vector<int8_t> weights =
        random_bytes<int8_t>(size_t(d.kernel_h) * d.kernel_w * (d.in_channels / d.groups) * d.out_channels, rng, -128);
    std::vector<int32_t> bias;
    std::vector<float> scales;
    for (size_t j = 0; j < d.out_channels; ++j)
      bias.push_back(rng.integer(-20000, 20000)), scales.push_back(rng.uniform(0.001f, 0.02f));
    Work w;
    char text[300];
    snprintf(text, sizeof text,
             "%s kernel %ux%u stride %ux%u dilation %ux%u groups %u channels %u -> %u input %zux%zux%zu layout %d "
             "types %d %d rounding %d residual %d",
             transposed ? "transposed" : "conv", d.kernel_h, d.kernel_w, d.stride_h, d.stride_w, d.dilation_h,
             d.dilation_w, d.groups, d.in_channels, d.out_channels, batch, h, this->w, int(d.layout), int(d.input_type),
             int(d.output_type), int(d.requantization.rounding), residual);
    w.text = text;
    w.create = [=](skua_context* context, skua_op** op) {
      skua_conv2d_desc e = c.d;
      e.weight_q.scales = scales.data();
      if (c.residual)
        e.epilogue.residual = SKUA_RESIDUAL_BEFORE_ACTIVATION, e.residual_q.scale = 0.4f,
        e.residual_q.zero_point = least(e.output_type) + 90;
      if (!c.transposed) return skua_conv2d_create(context, &e, weights.data(), bias.data(), op);
      const skua_conv2d_transpose_desc t = transposed_desc(e);
      return skua_conv2d_transpose_create(context, &t, weights.data(), bias.data(), op);
    };
    const bool nchw = d.layout == SKUA_LAYOUT_NCHW;
    const skua_tensor t = nchw ? shape({batch, d.in_channels, h, this->w}, d.input_type)
                               : shape({batch, h, this->w, d.in_channels}, d.input_type);
    w.inputs.push_back(make_bytes(
        hole ? with_holes(t, nchw ? std::vector<size_t>{0, 1, 1, 0} : std::vector<size_t>{0, 1, 1, hole}) : t, rng));
    if (!residual || int8_types().empty()) return w;
    Conv plain = *this;
    plain.residual = false;
    Context cpu;
    Op op;
    SKUA_EXPECT_OK(plain.work().create(cpu, &op));
    if (op.op) w.inputs.push_back(make_bytes(holed(run(op, w.inputs)[0].t, nchw ? 0 : hole), rng));
    return w;
  }
};
Conv conv(uint32_t kernel, uint32_t in, uint32_t out, size_t h, size_t w, uint32_t stride = 1, uint32_t groups = 1) {
  Conv c;
  c.d = conv_desc(kernel, in, out, stride, groups);
  c.h = h; c.w = w;
  c.d.input_type = c.d.output_type = c.d.weight_type = SKUA_DTYPE_S8;
  c.d.input_q.scale = 0.02f; c.d.input_q.zero_point = -5;
  c.d.output_q.scale = 0.02f * 0.01f * 60 * std::sqrt(float(kernel * kernel * in / groups));
  c.d.output_q.zero_point = 9;
  return c;
}
void to_u8(Conv& c) {
  c.d.input_type = c.d.output_type = SKUA_DTYPE_U8;
  c.d.input_q.zero_point = 200; c.d.output_q.zero_point = 0;
  c.d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
}
void to_float(Conv& c, skua_dtype type) {
  c.d.output_type = type;
  c.d.output_q = {};
}
std::vector<Work> works(const std::vector<Conv>& cases) {
  std::vector<Work> all;
  for (const Conv& c : cases) all.push_back(c.work());
  return all;
}

std::vector<Conv> with_ends(Conv c, bool residual) {
  std::vector<Conv> all;
  for (int i = residual ? 0 : 2; i < 4; ++i) {
    all.push_back(c);
    all.back().residual = i < 2;
    all.back().d.requantization.rounding = i < 2    ? SKUA_ROUNDING_FLOAT
                                           : i == 2 ? SKUA_ROUNDING_DOUBLE
                                                    : SKUA_ROUNDING_SINGLE;
    if (i % 2) to_u8(all.back());
  }
  return all;
}

TEST(gpu_bytes, conv_taps) {
  // programs by width
  std::vector<Conv> cases = {conv(3, 8, 36, 7, 9),     conv(3, 16, 72, 12, 11, 2), conv(5, 4, 36, 6, 6),
                             conv(1, 12, 40, 9, 5, 2), conv(3, 8, 72, 6, 7, 1, 2), conv(1, 16, 36, 6, 7)};
  cases[0].batch = 2;
  cases[1].hole = 4;
  cases[2].d.dilation_h = 2;
  cases[2].d.padding = {SKUA_PADDING_EXPLICIT, 4, 1, 4, 3};
  for (size_t i : {0, 2, 4, 5}) to_u8(cases[i]);
  to_float(cases[3], SKUA_DTYPE_F32);
  compare_all({"conv_bytes_*_v4x4_*"}, works(cases));
  compare_all({"conv_bytes_*_dot4x4_*", "conv_bytes_*_dot4x8_*"},
              works(std::vector<Conv>{cases[0], cases[1], cases[4]}));
}

TEST(gpu_bytes, conv_in_local_memory) {
  std::vector<Conv> cases = {conv(3, 16, 72, 12, 11, 2), conv(3, 32, 36, 7, 9), conv(3, 64, 72, 6, 7, 1, 2),
                             conv(1, 16, 40, 9, 5, 2), conv(3, 16, 36, 5, 6, 2)};
  cases[0].hole = 4;
  cases[1].batch = 2;
  cases[2].d.dilation_h = 2;
  cases[4].transposed = true;
  cases[4].d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 0, 1};
  to_u8(cases[1]);
  to_u8(cases[4]);
  to_float(cases[3], SKUA_DTYPE_F32);
  if (small()) {  // minutes of a simulated device
    compare_all({"tile16", "tile32"}, works(std::vector<Conv>{cases[0]}));
    compare_all({"tile16x32", "tile64"}, works(std::vector<Conv>{cases[1]}));
  } else {
    compare_all({std::begin(kTiles), std::end(kTiles)}, works(std::vector<Conv>{cases[0], cases[1]}));
  }
  compare_all({"conv_bytes_*_dot4x16_*", "conv_bytes_*_dot4x64_*"},
              works(std::vector<Conv>{cases[2], cases[3], cases[4]}));
  compare_all({"conv_bytes_*_dot4x16x32_*"}, works(std::vector<Conv>{with_ends(cases[0], true)[0]}));
  // Words of two taps would be loaded at once: registers do that.
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices)
    for (const uint32_t channels : {16, 24}) {
      if (int8_types().empty()) continue;
      Op op;
      SKUA_EXPECT_OK(conv(3, channels, 36, 7, 9).work().create(shared_gpu(device, "tile32"), &op));
      expect_explained(op, shape({1, 7, 9, channels}, SKUA_DTYPE_S8),
                       channels == 16 ? "tile32: the kernel filter asks for it" : "rows");
    }
}

TEST(gpu_bytes, conv_elements) {
  std::vector<Conv> cases = {conv(3, 3, 36, 13, 11, 2), conv(3, 5, 37, 6, 7), conv(3, 6, 105, 5, 6, 1, 3),
                             conv(1, 7, 35, 6, 6)};
  to_u8(cases[0]);
  to_u8(cases[2]);
  cases[1].hole = 2;
  to_float(cases[3], SKUA_DTYPE_F16);
  Conv planes = conv(3, 8, 36, 6, 7);
  planes.d.layout = SKUA_LAYOUT_NCHW;
  planes.hole = 1;
  cases.push_back(planes);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, conv_transposed) {
  std::vector<Conv> cases = {conv(3, 8, 36, 5, 6, 2), conv(2, 4, 36, 4, 5, 2), conv(3, 5, 35, 4, 4, 2)};
  for (Conv& c : cases) {
    c.transposed = true;
    c.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 0, 1};
  }
  to_u8(cases[1]);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, depthwise) {
  std::vector<Conv> cases = {conv(3, 20, 20, 7, 9, 1, 20), conv(3, 20, 20, 9, 6, 2, 20), conv(5, 6, 6, 6, 7, 1, 6),
                             conv(3, 4, 8, 5, 5, 1, 4), conv(3, 20, 20, 8, 8, 1, 20)};
  cases[0].batch = 2;
  cases[0].hole = 4;
  cases[4].d.dilation_w = 2;
  to_u8(cases[1]);
  to_u8(cases[2]);
  to_float(cases[3], SKUA_DTYPE_F32);
  to_float(cases[4], SKUA_DTYPE_F16);
  Conv planes = conv(3, 8, 8, 6, 7, 1, 8);
  planes.d.layout = SKUA_LAYOUT_NCHW;
  cases.push_back(planes);
  compare_all({""}, works(cases));
}

TEST(gpu_bytes, conv_residual_and_fixed_point) {
  Conv taps = conv(3, 8, 36, 6, 7, 2), pointwise = conv(1, 16, 36, 6, 7), elements = conv(3, 6, 105, 5, 6, 1, 3),
       planes = conv(3, 8, 36, 6, 7), transposed = conv(3, 8, 36, 5, 6, 2);
  taps.hole = pointwise.hole = 4;
  taps.batch = 2;
  elements.hole = 3;
  planes.d.layout = SKUA_LAYOUT_NCHW;
  transposed.transposed = true;
  transposed.d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 0, 1};
  for (const Conv& c : {taps, pointwise, elements, transposed}) compare_all({""}, works(with_ends(c, true)));
  compare_all({""}, works(std::vector<Conv>{with_ends(planes, true)[1]}));
  compare_all({"conv_bytes_*_dot4x4_*"}, works(std::vector<Conv>{with_ends(taps, true)[0]}));
}

TEST(gpu_bytes, depthwise_in_fixed_point) {
  Conv vectors = conv(3, 20, 20, 7, 9, 1, 20), elements = conv(3, 6, 12, 6, 7, 2, 6);
  compare_all({""}, works(with_ends(vectors, false)));
  compare_all({""}, works(with_ends(elements, false)));
}

TEST(gpu_bytes, any_offset) {
  std::vector<Work> all = works(std::vector<Gemm>{{5, 8, 8}, {6, 7, 5}});
  for (const Work& w : works(std::vector<Conv>{conv(3, 8, 8, 5, 5), conv(3, 8, 8, 5, 5, 1, 8)})) all.push_back(w);
  for (size_t skip : {1, 3}) {
    gpu_skip = skip;
    compare_all({""}, all);
    gpu_skip = 0;
  }
}

}  // namespace
