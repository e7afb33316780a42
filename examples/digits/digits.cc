// Handwritten digits: a small network (train.py) on images it has never seen. Prints the plan of each layer and the accuracy.
//
//   8x8x1 -conv 3x3, relu-> 8x8x16 -conv 3x3, relu-> 8x8x32 -max pool 2x2-> 4x4x32 -conv 3x3, relu-> 4x4x32 = 512 -fully connected-> 10
//
// digits FOLDER [least accuracy [f32|f16|bf16]]     FOLDER holds digits.weights and digits.test
//
// In a half type the feature maps between the layers are halves: a first operator makes them of the f32 images, a last one f32 scores. The weights stay f32 for the
// caller; create may make halves of them as it packs; biases are f32 throughout.
#include <skua/skua.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

std::vector<unsigned char> read_file(const std::string& path) {
  std::vector<unsigned char> bytes;
  if (FILE* f = std::fopen(path.c_str(), "rb")) {
    unsigned char part[4096];
    for (size_t n; (n = std::fread(part, 1, sizeof part, f)) > 0;) bytes.insert(bytes.end(), part, part + n);
    std::fclose(f);
  }
  if (bytes.empty()) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(1);
  }
  return bytes;
}

void check(skua_status status) {
  if (status == SKUA_STATUS_OK) return;
  std::fprintf(stderr, "%s: %s\n", skua_status_name(status), skua_error_text());
  std::exit(1);
}

struct Layer {
  skua_op* op = nullptr;
  skua_plan* plan = nullptr;
  std::vector<float> out;  // in a half type its first half is used
};

bool parse_type(const char* name, skua_dtype* type) {
  for (skua_dtype t : {SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_BF16})
    if (!std::strcmp(name, skua_dtype_name(t))) {
      *type = t;
      return true;
    }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  skua_dtype type = SKUA_DTYPE_F32;
  if (argc < 2 || (argc > 3 && !parse_type(argv[3], &type))) {
    std::fprintf(stderr, "usage: digits FOLDER [least accuracy [f32|f16|bf16]]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const double least = argc > 2 ? std::atof(argv[2]) : 0;
  const std::vector<unsigned char> raw = read_file(folder + "/digits.weights"), test = read_file(folder + "/digits.test");
  constexpr uint32_t channels[] = {1, 16, 32, 32};
  constexpr size_t kFloats = (9 * 1 * 16 + 16) + (9 * 16 * 32 + 32) + (9 * 32 * 32 + 32) + (512 * 10 + 10), kRecord = 65;
  if (raw.size() != kFloats * sizeof(float) || test.size() % kRecord) {
    std::fprintf(stderr, "%s: digits.weights or digits.test has a wrong size\n", folder.c_str());
    return 1;
  }
  std::vector<float> weights(kFloats);
  std::copy(raw.begin(), raw.end(), reinterpret_cast<unsigned char*>(weights.data()));
  const size_t count = test.size() / kRecord;

  skua_context* context = nullptr;
  check(skua_context_create(nullptr, &context));
  std::vector<Layer> layers;
  skua_tensor shape = skua_tensor_4d(SKUA_DTYPE_F32, count, 8, 8, 1);
  size_t workspace_size = 0;
  const auto append = [&](skua_op* op) {
    Layer layer;
    layer.op = op;
    check(skua_op_plan(op, &shape, 1, nullptr, 0, &layer.plan));
    check(skua_plan_outputs(layer.plan, &shape, 1));
    size_t n = 1;
    for (uint32_t d = 0; d < shape.rank; ++d) n *= shape.shape[d];
    layer.out.resize(n);
    workspace_size = std::max(workspace_size, skua_plan_workspace(layer.plan, 1));
    layers.push_back(std::move(layer));
  };
  const auto convert = [&](skua_dtype from, skua_dtype to) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = from;
    d.output_type = to;
    skua_op* op = nullptr;
    check(skua_convert_create(context, &d, &op));
    append(op);
  };
  if (type != SKUA_DTYPE_F32) convert(SKUA_DTYPE_F32, type);
  const float* at = weights.data();
  for (int i = 0; i < 3; ++i) {
    skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
    d.input_type = d.output_type = type;  // weight_type stays f32
    d.kernel_h = d.kernel_w = 3;
    d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
    d.in_channels = channels[i];
    d.out_channels = channels[i + 1];
    d.hint_in_h = uint32_t(shape.shape[1]);
    d.hint_in_w = uint32_t(shape.shape[2]);
    d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
    const float* bias = at + size_t(9) * d.in_channels * d.out_channels;
    skua_op* op = nullptr;
    check(skua_conv2d_create(context, &d, at, bias, &op));
    at = bias + d.out_channels;
    append(op);
    if (i == 1) {
      skua_pool2d_desc p = SKUA_POOL2D_DESC_INIT;
      p.type = type;
      p.kind = SKUA_POOL_MAX;
      p.kernel_h = p.kernel_w = p.stride_h = p.stride_w = 2;
      check(skua_pool2d_create(context, &p, &op));
      append(op);
    }
  }
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.a_type = d.c_type = type;
  d.n = 10;
  d.k = 512;
  skua_op* op = nullptr;
  check(skua_gemm_create(context, &d, at, at + 5120, &op));
  shape = skua_tensor_2d(type, count, 512);  // the same memory, seen as one row per image
  append(op);
  if (type != SKUA_DTYPE_F32) convert(type, SKUA_DTYPE_F32);

  std::vector<float> images(count * 64);
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < 64; ++j) images[i * 64 + j] = float(test[i * kRecord + j]) / 16.0f;
  void* workspace = nullptr;
  if (posix_memalign(&workspace, SKUA_WORKSPACE_ALIGNMENT, std::max<size_t>(workspace_size, 1))) return 1;
  const float* in = images.data();
  for (Layer& layer : layers) {
    char text[4096];
    skua_plan_explain(layer.plan, text, sizeof text);
    std::fputs(text, stdout);
    const skua_buffer from = skua_host_buffer(in), to = skua_host_buffer(layer.out.data());
    check(skua_plan_run(layer.plan, &from, 1, &to, 1, workspace, workspace_size, nullptr));
    in = layer.out.data();
  }
  size_t right = 0;
  for (size_t i = 0; i < count; ++i) {
    const float* row = in + i * 10;
    right += std::max_element(row, row + 10) - row == test[i * kRecord + 64];
  }
  const double accuracy = double(right) / double(count);
  std::printf("%s: %zu of %zu held-out images right, accuracy %.2f%%\n", skua_dtype_name(type), right, count, 100 * accuracy);
  for (Layer& layer : layers) {
    skua_plan_destroy(layer.plan);
    skua_op_destroy(layer.op);
  }
  skua_context_destroy(context);
  std::free(workspace);
  return accuracy >= least ? 0 : 1;
}
