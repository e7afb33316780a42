#include "tests/support/gpu.h"

#include <cstdlib>
#include <memory>

#include "tests/support/conv_shape.h"

namespace skua_test {

std::vector<skua_dtype> gpu_types(bool bf16) {
  std::vector<skua_dtype> types;
  for (const skua_dtype type : float_types())
    if (type != SKUA_DTYPE_BF16 || (bf16 && !small())) types.push_back(type);
  return types;
}

bool gpu_has(skua_dtype type) {
  for (const skua_dtype t : gpu_types())
    if (t == type) return true;
  return false;
}

std::vector<skua_dtype> gpu_types_of(skua_dtype type) {
  return gpu_has(type) ? std::vector<skua_dtype>{type} : std::vector<skua_dtype>{};
}

namespace {
struct Shared {
  skua_device device;
  std::string filter;
  size_t groups;
  bool other_rows;
  std::unique_ptr<Context> context;
};
std::vector<Shared> shared;
struct EndOfTest : testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override { shared.clear(); }  // expects every block back
};
}  // namespace

Context& shared_gpu(const skua_device_info& device, const std::string& filter) {
  static const bool listens = (testing::UnitTest::GetInstance()->listeners().Append(new EndOfTest), true);
  (void)listens;
  for (const Shared& s : shared)
    if (s.device.api == device.device.api && s.device.index == device.device.index && s.filter == filter &&
        s.groups == gpu_groups && s.other_rows == gpu_other_rows)
      return *s.context;
  shared.push_back({device.device, filter, gpu_groups, gpu_other_rows,
                    std::make_unique<Context>(device, filter.empty() ? nullptr : filter.c_str())});
  return *shared.back().context;
}

// SKUA_TEST_GPU_PAIRS, for drivers that compile for the CPU, which takes minutes: not each kernel in each type on each
// device, but all pairs of these; of one device or one type each kernel in, or on, one of the two others. `call`: that
// of several that have one kernel each. One type on one device is never left out.
static bool left_out(size_t call, size_t kernel, size_t type, size_t device, size_t types) {
  static const bool pairs = getenv("SKUA_TEST_GPU_PAIRS") != nullptr;
  const size_t devices = gpu_devices().size();
  return pairs && devices <= 2 && (devices == 2 || types > 1) && (call + kernel + type + device) % 2 != 0;
}
static size_t calls = 0;

void on_every_gpu(const std::function<void(Context& gpu)>& body) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    if (Context& gpu = shared_gpu(device); gpu.context) body(gpu);
  }
}

void by_every_kernel(const std::vector<const char*>& filters, const std::vector<skua_dtype>& types,
                     const std::function<void(Context& gpu, skua_dtype type)>& body) {
  SKUA_NEED_GPU(devices);
  const size_t call = filters.size() > 1 ? 0 : calls++;
  for (const skua_device_info& device : devices)
    for (const char* const& filter : filters)
      for (const skua_dtype& type : types) {
        if (left_out(call, size_t(&filter - filters.data()), size_t(&type - types.data()),
                     size_t(&device - devices.data()), types.size()))
          continue;
        std::string name = filter;  // f32's and f16's are of one name
        if (const size_t at = name.find("_f*"); at != std::string::npos && type == SKUA_DTYPE_BF16)
          name.replace(at, 2, "_bf16");
        SCOPED_TRACE(std::string(device.name) + " " + name + ", " + skua_dtype_name(type));
        if (Context& gpu = shared_gpu(device, name); gpu.context) body(gpu, type);
      }
}

void compare_on_gpus(const std::vector<std::vector<Shape>>& inputs, Holes holes, const MakeOp& make_op,
                     const CheckData& check, const std::vector<skua_dtype>& types) {
  Context cpu;
  const size_t call = calls++;
  size_t device = 0;
  on_every_gpu([&](Context& gpu) {
    Rng rng(7);
    const size_t here = device++;
    for (const skua_dtype& type : types) {
      if (left_out(call, 0, size_t(&type - types.data()), here, types.size())) continue;
      Op reference, op;
      SKUA_EXPECT_OK(make_op(cpu, type, &reference));
      SKUA_EXPECT_OK(make_op(gpu, type, &op));
      if (!reference.op || !op.op) continue;
      for (const std::vector<Shape>& shapes : inputs)
        for (const size_t skip : {0, 1}) {
          SCOPED_TRACE(std::string(skua_dtype_name(type)) + ", shape " + std::to_string(&shapes - inputs.data()) +
                       ", skip " + std::to_string(skip));
          const auto more = [&](size_t rank, size_t n) {
            Shape m(rank, skip && holes == Holes::all ? n : 0);
            if (skip && holes == Holes::outer && rank > 1) m[1] = n;
            return m;
          };
          std::vector<Data> x;
          for (const Shape& s : shapes) x.push_back(make(with_holes(shape(s, type), more(s.size(), 3)), rng, -3, 3));
          const Data want = run(reference, x)[0];
          skua_tensor y = shape(Shape(want.t.shape, want.t.shape + want.t.rank), want.t.type);
          gpu_skip = skip;
          check(run(op, x)[0], want);
          if (skip && holes != Holes::none) check(run(op, x, {with_holes(y, more(y.rank, 4))})[0], want);
          gpu_skip = 0;
        }
    }
  });
}

void expect_explained(const skua_op* op, const skua_tensor& x, const char* words) {
  skua_plan* plan = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, &x, 1, nullptr, 0, &plan));
  char text[2000] = "";
  if (plan) skua_plan_explain(plan, text, sizeof text);
  EXPECT_NE(std::string(text).find(words), std::string::npos) << words << " in\n" << text;
  skua_plan_destroy(plan);
}

skua_conv2d_desc conv_desc(uint32_t kernel, uint32_t in, uint32_t out, uint32_t stride, uint32_t groups) {
  skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
  d.kernel_h = d.kernel_w = kernel;
  d.stride_h = d.stride_w = stride;
  d.groups = groups;
  d.in_channels = in; d.out_channels = out;
  d.padding.mode = SKUA_PADDING_SAME_UPPER;
  return d;
}

skua_conv2d_transpose_desc transposed_desc(const skua_conv2d_desc& d) {
  return transposed_desc(d, d.stride_h > 1, 0);
}

}  // namespace skua_test
