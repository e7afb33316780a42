// f16 on GPUs to the bit: moves keep whatever they move, NaN too; stores round to nearest even, whatever the driver
// would do by itself; loads are exact.
#include <cmath>
#include <cstring>

#include "dispatch/element.h"
#include "gpu/device.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Bytes = std::vector<uint16_t>;  // any memory
template <class T> Bytes bytes_of(const std::vector<T>& values) {
  Bytes b(values.size() * sizeof(T) / 2);
  std::memcpy(b.data(), values.data(), b.size() * 2);
  return b;
}

// Output 0 of a run on memory as it is, dense.
Bytes run_raw(const skua_op* op, skua_context* context, const std::vector<skua_tensor>& shapes,
              const std::vector<Bytes>& inputs) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, shapes.data(), shapes.size(), nullptr, 0, &plan));
  if (!plan) return {};
  skua_tensor y;
  SKUA_EXPECT_OK(skua_plan_outputs(plan, &y, 1));
  Bytes result(elements(y) * skua_dtype_bits(y.type) / 16);
  std::vector<skua_buffer> in;
  const auto buffer = [&](size_t size, const void* data) {
    skua_buffer b = {nullptr, nullptr, 0};
    SKUA_EXPECT_OK(skua_device_buffer_create(context, size, &b.device));
    if (data) SKUA_EXPECT_OK(skua_device_buffer_write(b.device, 0, data, size));
    return b;
  };
  for (const Bytes& x : inputs) in.push_back(buffer(x.size() * 2, x.data()));
  const skua_buffer out = buffer(result.size() * 2, nullptr);
  skua_stream* stream = nullptr;
  SKUA_EXPECT_OK(skua_stream_create(context, &stream));
  SKUA_EXPECT_OK(skua_plan_enqueue(plan, in.data(), in.size(), &out, 1, nullptr, stream));
  skua_plan_destroy(plan);
  SKUA_EXPECT_OK(skua_stream_wait(stream));
  skua_stream_destroy(stream);
  SKUA_EXPECT_OK(skua_device_buffer_read(out.device, 0, result.data(), result.size() * 2));
  for (const skua_buffer& b : in) skua_device_buffer_destroy(b.device);
  skua_device_buffer_destroy(out.device);
  return result;
}

bool has_half() { return half_types().size() && half_types()[0] == SKUA_DTYPE_F16; }
bool is_nan(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
uint16_t half_of(float x) {
  skua::f16 h;
  skua::narrow(x, h);
  return h.bits;
}
size_t wrong(const Bytes& got, const Bytes& want, bool any_nan) {
  size_t n = got.size() != want.size();
  for (size_t i = 0; i < want.size() && i < got.size(); ++i)
    if (got[i] != want[i] && !(any_nan && is_nan(got[i]) && is_nan(want[i])) && ++n <= 4)
      ADD_FAILURE() << "element " << i << " is " << std::hex << got[i] << ", must be " << want[i];
  return n;
}

TEST(GpuHalf, MovesKeepEveryBit) {
  SKUA_NEED_GPU(devices);
  if (!has_half()) GTEST_SKIP() << "no f16 in this build";
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    for (const size_t columns : {256, 257}) {  // by vectors of 4, and not
      SCOPED_TRACE(columns);
      const size_t rows = 256;
      Bytes x(rows * columns), other(rows * columns), condition(rows * columns), want;
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = uint16_t(i);
        other[i] = uint16_t(~i);
        condition[i] = i * 7 % 3 ? 0x3c00 : 0x8000;  // 1, and -0
      }
      const skua_tensor t = shape({rows, columns}, SKUA_DTYPE_F16);
      Op transpose, select, pad, concat, slice, convert;
      skua_transpose_desc td = SKUA_TRANSPOSE_DESC_INIT;
      td.type = SKUA_DTYPE_F16;
      td.rank = 2;
      td.perm[0] = 1;
      SKUA_EXPECT_OK(skua_transpose_create(gpu, &td, &transpose));
      want.clear();
      for (size_t c = 0; c < columns; ++c)
        for (size_t r = 0; r < rows; ++r) want.push_back(x[r * columns + c]);
      EXPECT_EQ(wrong(run_raw(transpose, gpu, {t}, {x}), want, false), 0u) << "transpose";

      skua_select_desc sd = SKUA_SELECT_DESC_INIT;
      sd.type = SKUA_DTYPE_F16;
      SKUA_EXPECT_OK(skua_select_create(gpu, &sd, &select));
      want.clear();
      for (size_t i = 0; i < x.size(); ++i) want.push_back(condition[i] == 0x8000 ? other[i] : x[i]);
      EXPECT_EQ(wrong(run_raw(select, gpu, {t, t, t}, {condition, x, other}), want, false), 0u) << "select";

      skua_pad_desc pd = SKUA_PAD_DESC_INIT;
      pd.type = SKUA_DTYPE_F16;
      pd.rank = 2;
      pd.before[0] = 1;
      pd.value = -1.5f;
      SKUA_EXPECT_OK(skua_pad_create(gpu, &pd, &pad));
      want.assign(columns, half_of(-1.5f));
      want.insert(want.end(), x.begin(), x.end());
      EXPECT_EQ(wrong(run_raw(pad, gpu, {t}, {x}), want, false), 0u) << "pad";

      skua_concat_desc cd = SKUA_CONCAT_DESC_INIT;
      cd.type = SKUA_DTYPE_F16;
      SKUA_EXPECT_OK(skua_concat_create(gpu, &cd, &concat));
      want = x;
      want.insert(want.end(), other.begin(), other.end());
      EXPECT_EQ(wrong(run_raw(concat, gpu, {t, t}, {x, other}), want, false), 0u) << "concat";

      skua_slice_desc ld = SKUA_SLICE_DESC_INIT;
      ld.type = SKUA_DTYPE_F16;
      ld.rank = 2;
      ld.begin[0] = ld.begin[1] = 4;
      for (int i = 0; i < 2; ++i) ld.size[i] = SIZE_MAX, ld.step[i] = 1;
      SKUA_EXPECT_OK(skua_slice_create(gpu, &ld, &slice));
      want.clear();
      for (size_t r = 4; r < rows; ++r)
        want.insert(want.end(), x.begin() + ptrdiff_t(r * columns + 4), x.begin() + ptrdiff_t((r + 1) * columns));
      EXPECT_EQ(wrong(run_raw(slice, gpu, {t}, {x}), want, false), 0u) << "slice";

      skua_convert_desc vd = SKUA_CONVERT_DESC_INIT;
      vd.input_type = vd.output_type = SKUA_DTYPE_F16;
      SKUA_EXPECT_OK(skua_convert_create(gpu, &vd, &convert));
      EXPECT_EQ(wrong(run_raw(convert, gpu, {t}, {x}), x, false), 0u) << "convert";
    }
  }
}

// Every half, what lies half way to the next and on either side of that, and what is no half at all.
std::vector<float> borders() {
  std::vector<float> x;
  for (uint32_t h = 0; h < 0x7c00; ++h) {
    const float a = skua::widen(skua::f16{uint16_t(h)}),
                b = h == 0x7bff ? 65536.0f : skua::widen(skua::f16{uint16_t(h + 1)}), middle = (a + b) / 2;
    for (const float v : {a, std::nextafterf(a, b), std::nextafterf(middle, a), middle, std::nextafterf(middle, b)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  for (const float v : {65536.0f, 1e5f, 3e38f, INFINITY, -INFINITY, NAN, 1e-30f, 0.0f, -0.0f}) x.push_back(v);
  while (x.size() % 4) x.push_back(1);
  return x;
}

// `by_driver`: Vulkan's drivers round, if they promise how; false: kernels do.
template <class Check> void both_ways(Check check) {
  SKUA_NEED_GPU(devices);
  if (!has_half()) GTEST_SKIP() << "no f16 in this build";
  for (const skua_device_info& device : devices)
    for (const bool by_driver : {true, false}) {
      SCOPED_TRACE(std::string(device.name) + (by_driver ? "" : ", kernels round"));
      Context gpu(device);
      if (!gpu.context) continue;
      if (!by_driver) gpu.context->gpu->about.f16_rounding = false;
      check(gpu.context);
    }
}

TEST(GpuHalf, StoresRoundToNearestEven) {
  const std::vector<float> x = borders();
  Bytes want;
  for (const float v : x) want.push_back(half_of(v));
  both_ways([&](skua_context* gpu) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = SKUA_DTYPE_F32;
    d.output_type = SKUA_DTYPE_F16;
    Op op;
    SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &op));
    EXPECT_EQ(wrong(run_raw(op, gpu, {shape({x.size()})}, {bytes_of(x)}), want, true), 0u) << "by vectors";
    const std::vector<float> odd(x.begin(), x.end() - 1);
    EXPECT_EQ(
        wrong(run_raw(op, gpu, {shape({odd.size()})}, {bytes_of(odd)}), Bytes(want.begin(), want.end() - 1), true), 0u)
        << "by elements";
  });
}

TEST(GpuHalf, ArithmeticRoundsOnce) {
  Bytes x, y, want;
  Rng rng(12);
  for (size_t i = 0; i < 20000; ++i) {  // exponents near one another: the sum is exact in f32
    const uint16_t a = uint16_t(0x3000 + rng.next() % 0x1800),
                   b = uint16_t((0x3000 + rng.next() % 0x1800) | (i % 2 ? 0x8000 : 0));
    x.push_back(a);
    y.push_back(b);
    want.push_back(half_of(skua::widen(skua::f16{a}) + skua::widen(skua::f16{b})));
  }
  both_ways([&](skua_context* gpu) {
    skua_binary_desc d = SKUA_BINARY_DESC_INIT;
    d.kind = SKUA_BINARY_ADD;
    d.type = SKUA_DTYPE_F16;
    Op op;
    SKUA_EXPECT_OK(skua_binary_create(gpu, &d, &op));
    const skua_tensor t = shape({x.size()}, SKUA_DTYPE_F16);
    EXPECT_EQ(wrong(run_raw(op, gpu, {t, t}, {x, y}), want, false), 0u);
  });
}

TEST(GpuHalf, LoadsAreExact) {
  Bytes x(65536);
  std::vector<float> want;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = uint16_t(i);
    want.push_back(skua::widen(skua::f16{x[i]}));
  }
  both_ways([&](skua_context* gpu) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = SKUA_DTYPE_F16;
    d.output_type = SKUA_DTYPE_F32;
    Op op;
    SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &op));
    const Bytes got = run_raw(op, gpu, {shape({x.size()}, SKUA_DTYPE_F16)}, {x});
    std::vector<float> values(want.size());
    ASSERT_EQ(got.size(), 2 * want.size());
    std::memcpy(values.data(), got.data(), got.size() * 2);
    size_t bad = 0;
    for (size_t i = 0; i < want.size(); ++i)
      if (std::isnan(want[i]) ? !std::isnan(values[i]) : std::memcmp(&want[i], &values[i], 4) != 0) ++bad;
    EXPECT_EQ(bad, 0u);
  });
}

// By shifts and integer rounding: every bf16, what lies half way to the next and on either side of that, in both
// directions.
TEST(GpuHalf, Bf16ToTheBit) {
  SKUA_NEED_GPU(devices);
  if (half_types().empty() || half_types().back() != SKUA_DTYPE_BF16) GTEST_SKIP() << "no bf16 in this build";
  std::vector<float> x, all;
  Bytes want, every;
  for (uint32_t b = 0; b < 0x7f80; ++b) {
    const float a = skua::widen(skua::bf16{uint16_t(b)}), middle = __builtin_bit_cast(float, b << 16 | 0x8000);
    for (const float v : {a, std::nextafterf(middle, 0), middle, std::nextafterf(middle, INFINITY)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  for (const float v : {INFINITY, -INFINITY, NAN, -NAN, __builtin_bit_cast(float, 0x7f800001), 3.4028235e38f, 0.0f})
    x.push_back(v);
  for (const float v : x) {
    skua::bf16 h;
    skua::narrow(v, h);
    want.push_back(h.bits);
  }
  for (uint32_t b = 0; b < 65536; ++b) {
    every.push_back(uint16_t(b));
    all.push_back(skua::widen(skua::bf16{uint16_t(b)}));
  }
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (!gpu.context) continue;
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.output_type = SKUA_DTYPE_BF16;
    Op narrow, widen, copy;
    SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &narrow));
    d.input_type = SKUA_DTYPE_BF16;
    SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &copy));
    d.output_type = SKUA_DTYPE_F32;
    SKUA_EXPECT_OK(skua_convert_create(gpu, &d, &widen));
    size_t bad = 0;
    for (const size_t n : {x.size() / 4 * 4, x.size()}) {  // by vectors of 4, and not
      const Bytes got =
          run_raw(narrow, gpu, {shape({n})}, {bytes_of(std::vector<float>(x.begin(), x.begin() + ptrdiff_t(n)))});
      ASSERT_EQ(got.size(), n);
      for (size_t i = 0; i < n; ++i) bad += got[i] != want[i] && !(std::isnan(x[i]) && (got[i] & 0x7fff) > 0x7f80);
    }
    EXPECT_EQ(bad, 0u) << "narrowed";
    const Bytes got = run_raw(widen, gpu, {shape({all.size()}, SKUA_DTYPE_BF16)}, {every}),
                same = run_raw(copy, gpu, {shape({all.size()}, SKUA_DTYPE_BF16)}, {every});
    std::vector<float> values(all.size());
    ASSERT_EQ(got.size(), 2 * all.size());
    std::memcpy(values.data(), got.data(), got.size() * 2);
    for (size_t i = 0; i < all.size(); ++i)
      bad += std::isnan(all[i]) ? !std::isnan(values[i]) : std::memcmp(&all[i], &values[i], 4) != 0;
    EXPECT_EQ(bad, 0u) << "widened";
    EXPECT_EQ(same, every) << "moved";
  }
}

}  // namespace
