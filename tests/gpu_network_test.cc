// The beginning and the end of a MobileNet V2: ten operators on one stream, maps resident on the device, as on the CPU.
// What each reads the one before has written, two maps share a buffer, and a block's residual is read long after it was
// made: barriers that are missing or misplaced show here.
#include <skua/skua.h>

#include <cfloat>
#include <cmath>

#include "dispatch/element.h"
#include "tests/support/gpu.h"

namespace {
using namespace skua_test;

struct Layer {
  Op op;
  int in, residual, out;  // maps; -1 = none
};

struct Network {
  explicit Network(skua_context* c, skua_dtype t, bool is_strict) : context(c), type(t), strict(is_strict) {}

  skua_context* context;
  skua_dtype type;
  bool strict, fast = false;
  Rng rng{11};
  std::vector<Layer> layers;

  std::vector<float> values(size_t n, double scale) {
    std::vector<float> v(n);
    for (float& x : v) x = rounded(type, float(double(rng.uniform(-1, 1)) * scale));
    return v;
  }
  void conv(int in, int out, uint32_t kernel, uint32_t stride, uint32_t groups, uint32_t channels_in,
            uint32_t channels_out, bool relu6, int residual = -1) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.input_type = d.output_type = type;
    d.numerics = strict ? SKUA_NUMERICS_STRICT : fast ? SKUA_NUMERICS_FAST : SKUA_NUMERICS_DEFAULT;
    d.kernel_h = d.kernel_w = kernel;
    d.stride_h = d.stride_w = stride;
    d.groups = groups;
    d.in_channels = channels_in;
    d.out_channels = channels_out;
    d.padding.mode = SKUA_PADDING_SAME_UPPER;
    if (relu6) d.epilogue.activation.kind = SKUA_ACTIVATION_RELU6;
    if (residual >= 0) d.epilogue.residual = SKUA_RESIDUAL_AFTER_ACTIVATION;
    const size_t terms = size_t(kernel) * kernel * (channels_in / groups);
    const std::vector<float> weights = values(terms * channels_out, 1.5 / std::sqrt(double(terms))),
                             bias = values(channels_out, 0.2);
    layers.push_back({{}, in, residual, out});
    SKUA_EXPECT_OK(skua_conv2d_create(context, &d, weights.data(), bias.data(), &layers.back().op));
  }
  void pool(int in, int out) {
    skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
    d.kind = SKUA_POOL_AVERAGE;
    d.global = true;
    d.type = type;
    layers.push_back({{}, in, -1, out});
    SKUA_EXPECT_OK(skua_pool2d_create(context, &d, &layers.back().op));
  }
  void build() {
    layers.reserve(16);
    conv(0, 1, 3, 2, 1, 3, 16, true);
    conv(1, 2, 3, 1, 16, 16, 16, true);
    conv(2, 3, 1, 1, 1, 16, 8, false);
    conv(3, 4, 1, 1, 1, 8, 48, true);
    conv(4, 5, 3, 1, 48, 48, 48, true);
    conv(5, 6, 1, 1, 1, 48, 8, false, 3);
    conv(6, 7, 1, 1, 1, 8, 48, true);
    conv(7, 8, 3, 2, 48, 48, 48, true);
    conv(8, 9, 1, 1, 1, 48, 64, true);
    pool(9, 10);
    conv(10, 11, 1, 1, 1, 64, 37, false);
  }
};
constexpr int kMaps = 12;

struct Plans {
  std::vector<skua_plan*> plans;
  std::vector<skua_tensor> maps;
  explicit Plans(const Network& n, const skua_tensor& image) : maps(kMaps) {
    maps[0] = resolved(image);
    for (const Layer& l : n.layers) {
      const skua_tensor in[2] = {maps[size_t(l.in)], l.residual >= 0 ? maps[size_t(l.residual)] : skua_tensor{}};
      plans.push_back(nullptr);
      SKUA_EXPECT_OK(skua_op_plan(l.op, in, l.residual >= 0 ? 2 : 1, nullptr, 0, &plans.back()));
      if (plans.back()) SKUA_EXPECT_OK(skua_plan_outputs(plans.back(), &maps[size_t(l.out)], 1));
    }
  }
  ~Plans() {
    for (skua_plan* p : plans) skua_plan_destroy(p);
  }
  size_t bytes(size_t map) const { return elements(maps[map]) * skua_dtype_bits(maps[map].type) / 8; }
};

// All maps one after the other in one buffer of the device.
std::vector<float> on_device(const Network& n, const Plans& p, const Data& image) {
  std::vector<size_t> at(kMaps);
  size_t size = 0;
  for (size_t i = 0; i < kMaps; ++i) {
    at[i] = size;
    size += (p.bytes(i) + 15) / 16 * 16;
  }
  skua_device_buffer* memory = nullptr;
  skua_stream* stream = nullptr;
  SKUA_EXPECT_OK(skua_device_buffer_create(n.context, size, &memory));
  SKUA_EXPECT_OK(skua_stream_create(n.context, &stream));
  std::vector<uint16_t> halves;
  for (float v : image.v) {
    skua::f16 h;
    skua::bf16 b;
    skua::narrow(v, h);
    skua::narrow(v, b);
    halves.push_back(n.type == SKUA_DTYPE_F16 ? h.bits : b.bits);
  }
  SKUA_EXPECT_OK(skua_device_buffer_write(
      memory, at[0], n.type != SKUA_DTYPE_F32 ? static_cast<const void*>(halves.data()) : image.v.data(), p.bytes(0)));
  for (size_t i = 0; i < n.layers.size(); ++i) {
    const Layer& l = n.layers[i];
    const skua_buffer in[2] = {{nullptr, memory, at[size_t(l.in)]},
                               {nullptr, memory, at[size_t(l.residual >= 0 ? l.residual : 0)]}},
                      out = {nullptr, memory, at[size_t(l.out)]};
    SKUA_EXPECT_OK(skua_plan_enqueue(p.plans[i], in, l.residual >= 0 ? 2 : 1, &out, 1, nullptr, stream));
  }
  SKUA_EXPECT_OK(skua_stream_wait(stream));
  const size_t count = elements(p.maps[kMaps - 1]);
  std::vector<float> result(count);
  halves.resize(count);
  SKUA_EXPECT_OK(skua_device_buffer_read(memory, at[kMaps - 1],
                                         n.type != SKUA_DTYPE_F32 ? static_cast<void*>(halves.data()) : result.data(),
                                         p.bytes(kMaps - 1)));
  if (n.type != SKUA_DTYPE_F32)
    for (size_t i = 0; i < count; ++i)
      result[i] = n.type == SKUA_DTYPE_F16 ? skua::widen(skua::f16{halves[i]}) : skua::widen(skua::bf16{halves[i]});
  skua_stream_destroy(stream);
  skua_device_buffer_destroy(memory);
  return result;
}

std::vector<float> on_cpu(const Network& n, const Data& image) {
  std::vector<Data> maps(kMaps);
  maps[0] = image;
  for (const Layer& l : n.layers) {
    std::vector<Data> in = {maps[size_t(l.in)]};
    if (l.residual >= 0) in.push_back(maps[size_t(l.residual)]);
    const std::vector<Data> out = run(l.op, in);
    if (out.size() == 1) maps[size_t(l.out)] = out[0];
  }
  return dense(maps[kMaps - 1]);
}

TEST(gpu_network, mobilenet_v2_in_small) {
  SKUA_NEED_GPU(devices);
  std::vector<std::pair<skua_dtype, bool>> ways;
  for (const skua_dtype type : gpu_types()) ways.push_back({type, false});
  if (gpu_has(SKUA_DTYPE_F16)) ways.push_back({SKUA_DTYPE_F16, true});  // sums of f16, where the device has them
  for (const skua_device_info& device : devices)
    for (const auto& [type, fast] : ways) {
      SCOPED_TRACE(std::string(device.name) + " " + skua_dtype_name(type) + (fast ? ", FAST" : ""));
      Context context(device), cpu;
      Network there(context, type, false), here(cpu, type, true);
      there.fast = fast;
      there.build();
      here.build();
      if (testing::Test::HasFailure()) return;
      Rng rng(5);
      const Data image = make({2, 33, 29, 3}, rng);
      Data typed = image;
      typed.t = shape({2, 33, 29, 3}, type);
      for (float& v : typed.v) v = rounded(type, v);
      typed.t = resolved(typed.t);
      Plans plans(there, typed.t);
      if (testing::Test::HasFailure()) return;
      const std::vector<float> want = on_cpu(here, typed), got = on_device(there, plans, typed),
                               again = on_device(there, plans, typed);
      ASSERT_EQ(want.size(), got.size());
      EXPECT_EQ(got, again);
      double largest = 0, off = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::fabs(double(want[i])));
        off = std::max(off, std::fabs(double(want[i]) - double(got[i])));
      }
      EXPECT_GT(largest, 0.05);
      EXPECT_LE(off, largest * (type == SKUA_DTYPE_F32   ? 1e-5
                                : type == SKUA_DTYPE_F16 ? 5e-3
                                                         : 4e-2))
          << "of " << largest;
    }
}

}  // namespace
