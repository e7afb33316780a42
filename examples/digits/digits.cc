// Handwritten digits: a small network (train.py) on images it has never seen. Prints the plan of each layer and the
// accuracy.
//
//   8x8x1 -conv 3x3, relu-> 8x8x16 -conv 3x3, relu-> 8x8x32 -max pool 2x2-> 4x4x32 -conv 3x3, relu-> 4x4x32 = 512
//   -fully connected-> 10
//
// digits FOLDER [least accuracy [f32|f16|bf16|s8]]     FOLDER holds digits.weights and digits.test
//
// In a half type the feature maps between the layers are halves: a first operator makes them of the f32 images, a last
// one f32 scores. The weights stay f32 for the caller; create may make halves of them as it packs; biases are f32
// throughout.
//
// In s8 the f32 network runs first, on the first 60 images, and what its layers give there becomes scales and zero
// points (calibration). Weights become s8 with a scale for each output channel, biases s32. The first operator
// quantises the images, the last layer gives f32 scores. The accuracy is that of the other images.
#include <skua/skua.h>

#include <algorithm>
#include <cmath>
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
  std::vector<float> out;  // of a narrower type its first part is used
};

constexpr uint32_t kChannels[] = {1, 16, 32, 32};
constexpr size_t kFloats = (9 * 1 * 16 + 16) + (9 * 16 * 32 + 32) + (9 * 32 * 32 + 32) + (512 * 10 + 10), kRecord = 65,
                 kCalibration = 60;

bool parse_type(const char* name, skua_dtype* type) {
  for (skua_dtype t : {SKUA_DTYPE_F32, SKUA_DTYPE_F16, SKUA_DTYPE_BF16, SKUA_DTYPE_S8})
    if (!std::strcmp(name, skua_dtype_name(t))) {
      *type = t;
      return true;
    }
  return false;
}

// Quantised constants of a layer of `channels` outputs: weights as skua_quantize_weights() takes them, biases in units
// of input scale * weight scale.
struct Constants {
  std::vector<int8_t> weights;
  std::vector<float> scales;
  std::vector<int32_t> bias;
  Constants(const float* w, const float* b, size_t outer, size_t channels, size_t inner, float input_scale)
      : weights(outer * channels * inner), scales(channels) {
    check(skua_quantize_weights(w, outer, channels, inner, scales.data(), weights.data()));
    for (size_t c = 0; c < channels; ++c) bias.push_back(int32_t(std::lrint(b[c] / (input_scale * scales[c]))));
  }
};

class Network {
 public:
  std::vector<Layer> layers;

  // maps: of the images and of what the three convolutions give, for s8; NULL otherwise.
  Network(skua_context* context, skua_dtype type, size_t count, const float* weights, const skua_quantization* maps)
      : context_(context), shape_(skua_tensor_4d(SKUA_DTYPE_F32, count, 8, 8, 1)) {
    if (type != SKUA_DTYPE_F32) convert(SKUA_DTYPE_F32, type, maps ? &maps[0] : nullptr);
    skua_op* op = nullptr;
    for (int i = 0; i < 3; ++i) {
      skua_conv2d_desc d = SKUA_CONV2D_DESC_INIT;
      d.input_type = d.output_type = type;  // weight_type stays f32 but for s8
      d.kernel_h = d.kernel_w = 3;
      d.padding = {SKUA_PADDING_EXPLICIT, 1, 1, 1, 1};
      d.in_channels = kChannels[i];
      d.out_channels = kChannels[i + 1];
      d.hint_in_h = uint32_t(shape_.shape[1]);
      d.hint_in_w = uint32_t(shape_.shape[2]);
      d.epilogue.activation.kind = SKUA_ACTIVATION_RELU;
      const float* bias = weights + size_t(9) * d.in_channels * d.out_channels;
      if (maps) {
        const Constants c(weights, bias, 1, d.out_channels, size_t(9) * d.in_channels, maps[i].scale);
        d.weight_type = SKUA_DTYPE_S8;
        d.input_q = maps[i];
        d.output_q = maps[i + 1];
        d.weight_q.scales = c.scales.data();
        check(skua_conv2d_create(context, &d, c.weights.data(), c.bias.data(), &op));
      } else {
        check(skua_conv2d_create(context, &d, weights, bias, &op));
      }
      weights = bias + d.out_channels;
      append(op);
      if (i == 1) {
        skua_pool2d_desc p = SKUA_POOL2D_DESC_INIT;
        p.type = type;
        p.kind = SKUA_POOL_MAX;
        p.kernel_h = p.kernel_w = p.stride_h = p.stride_w = 2;
        if (maps) p.input_q = p.output_q = maps[2];
        check(skua_pool2d_create(context, &p, &op));
        append(op);
      }
    }
    skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    d.a_type = d.c_type = type;
    d.n = 10;
    d.k = 512;
    if (maps) {
      const Constants c(weights, weights + 5120, 512, 10, 1, maps[3].scale);
      d.b_type = SKUA_DTYPE_S8;
      d.c_type = SKUA_DTYPE_F32;
      d.a_q = maps[3];
      d.b_q.scales = c.scales.data();
      d.b_q.axis = 1;
      check(skua_gemm_create(context, &d, c.weights.data(), c.bias.data(), &op));
    } else {
      check(skua_gemm_create(context, &d, weights, weights + 5120, &op));
    }
    shape_ = skua_tensor_2d(type, count, 512);  // the same memory, seen as one row per image
    append(op);
    if (type != SKUA_DTYPE_F32 && !maps) convert(type, SKUA_DTYPE_F32, nullptr);
    if (posix_memalign(&workspace_, SKUA_WORKSPACE_ALIGNMENT, std::max<size_t>(workspace_size_, 1))) std::exit(1);
  }
  ~Network() {
    for (Layer& layer : layers) {
      skua_plan_destroy(layer.plan);
      skua_op_destroy(layer.op);
    }
    std::free(workspace_);
  }
  Network(const Network&) = delete;

  // Returns the scores, ten for each image.
  const float* run(const float* images) {
    const float* in = images;
    for (Layer& layer : layers) {
      const skua_buffer from = skua_host_buffer(in), to = skua_host_buffer(layer.out.data());
      check(skua_plan_run(layer.plan, &from, 1, &to, 1, workspace_, workspace_size_, nullptr));
      in = layer.out.data();
    }
    return in;
  }
  void explain() const {
    for (const Layer& layer : layers) {
      char text[4096];
      skua_plan_explain(layer.plan, text, sizeof text);
      std::fputs(text, stdout);
    }
  }

 private:
  skua_context* context_;
  skua_tensor shape_;
  void* workspace_ = nullptr;
  size_t workspace_size_ = 0;

  void append(skua_op* op) {
    Layer layer;
    layer.op = op;
    check(skua_op_plan(op, &shape_, 1, nullptr, 0, &layer.plan));
    check(skua_plan_outputs(layer.plan, &shape_, 1));
    size_t n = 1;
    for (uint32_t d = 0; d < shape_.rank; ++d) n *= shape_.shape[d];
    layer.out.resize(n);
    workspace_size_ = std::max(workspace_size_, skua_plan_workspace(layer.plan, 1));
    layers.push_back(std::move(layer));
  }
  void convert(skua_dtype from, skua_dtype to, const skua_quantization* q) {
    skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
    d.input_type = from;
    d.output_type = to;
    if (q) d.output_q = *q;
    skua_op* op = nullptr;
    check(skua_convert_create(context_, &d, &op));
    append(op);
  }
};

// Scales and zero points of the images and of what the convolutions give (layers 0, 1 and 3), from the f32 network's
// values.
void calibrate(skua_context* context, const float* weights, const float* images, skua_quantization maps[4]) {
  Network f32(context, SKUA_DTYPE_F32, kCalibration, weights, nullptr);
  f32.run(images);
  const auto from = [](const float* values, size_t count, skua_quantization* q) {
    float low = INFINITY, high = -INFINITY;
    check(skua_widen_range(values, count, &low, &high));
    check(skua_choose_quantization(SKUA_DTYPE_S8, false, low, high, q));
  };
  from(images, kCalibration * 64, &maps[0]);
  const int layers[] = {0, 1, 3};
  for (int i = 0; i < 3; ++i)
    from(f32.layers[size_t(layers[i])].out.data(), f32.layers[size_t(layers[i])].out.size(), &maps[i + 1]);
}

}  // namespace

int main(int argc, char** argv) {
  skua_dtype type = SKUA_DTYPE_F32;
  if (argc < 2 || (argc > 3 && !parse_type(argv[3], &type))) {
    std::fprintf(stderr, "usage: digits FOLDER [least accuracy [f32|f16|bf16|s8]]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const double least = argc > 2 ? std::atof(argv[2]) : 0;
  const std::vector<unsigned char> raw = read_file(folder + "/digits.weights"),
                                   test = read_file(folder + "/digits.test");
  if (raw.size() != kFloats * sizeof(float) || test.size() % kRecord || test.size() / kRecord <= kCalibration) {
    std::fprintf(stderr, "%s: digits.weights or digits.test has a wrong size\n", folder.c_str());
    return 1;
  }
  std::vector<float> weights(kFloats);
  std::copy(raw.begin(), raw.end(), reinterpret_cast<unsigned char*>(weights.data()));
  const size_t count = test.size() / kRecord, first = type == SKUA_DTYPE_S8 ? kCalibration : 0;
  std::vector<float> images(count * 64);
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < 64; ++j) images[i * 64 + j] = float(test[i * kRecord + j]) / 16.0f;

  skua_context* context = nullptr;
  check(skua_context_create(nullptr, &context));
  size_t right = 0;
  {
    skua_quantization maps[4];
    if (type == SKUA_DTYPE_S8) calibrate(context, weights.data(), images.data(), maps);
    Network network(context, type, count - first, weights.data(), type == SKUA_DTYPE_S8 ? maps : nullptr);
    network.explain();
    const float* scores = network.run(images.data() + first * 64);
    for (size_t i = first; i < count; ++i, scores += 10)
      right += std::max_element(scores, scores + 10) - scores == test[i * kRecord + 64];
  }
  skua_context_destroy(context);
  const double accuracy = double(right) / double(count - first);
  std::printf("%s: %zu of %zu held-out images right, accuracy %.2f%%\n", skua_dtype_name(type), right, count - first,
              100 * accuracy);
  return accuracy >= least ? 0 : 1;
}
