#include "tests/support/gpu.h"

namespace skua_test {

std::vector<skua_dtype> gpu_types(bool bf16) {
  std::vector<skua_dtype> types;
  for (const skua_dtype type : float_types())
    if (type != SKUA_DTYPE_BF16 || (bf16 && !small())) types.push_back(type);
  return types;
}

std::string filter_of(std::string filter, skua_dtype type) {
  if (const size_t at = filter.find("_f*"); at != std::string::npos) filter.replace(at + 1, 1, skua_dtype_name(type));
  return filter;
}

void on_every_gpu(const std::function<void(Context& gpu)>& body) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Context gpu(device);
    if (gpu.context) body(gpu);
  }
}

void compare_on_gpus(const std::vector<std::vector<Shape>>& inputs, Holes holes, const MakeOp& make_op, const CheckData& check) {
  Context cpu;
  on_every_gpu([&](Context& gpu) {
    Rng rng(7);
    for (const skua_dtype type : gpu_types()) {
      Op reference, op;
      SKUA_EXPECT_OK(make_op(cpu, type, &reference));
      SKUA_EXPECT_OK(make_op(gpu, type, &op));
      if (!reference.op || !op.op) continue;
      for (const std::vector<Shape>& shapes : inputs)
        for (const size_t skip : {0, 1}) {
          SCOPED_TRACE(std::string(skua_dtype_name(type)) + ", shape " + std::to_string(&shapes - inputs.data()) + ", skip " + std::to_string(skip));
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

}  // namespace skua_test
