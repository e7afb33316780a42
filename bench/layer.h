// A layer: one operator with all its sizes, batch 1, as the corpus, the networks and every contestant see it.
#pragma once
#include <skua/skua.h>
#include <stddef.h>
#include <string>
#include <vector>
#include "types.h"

namespace bench {

enum class Op { gemm, conv, deconv, max_pool, average_pool, global_pool, unary, binary, softmax, resize, concat };

struct Layer {
  Op op = Op::gemm;
  skua_dtype type = SKUA_DTYPE_F32;        // of inputs, weights and output
  size_t m = 0, n = 0, k = 0;              // gemm; softmax: m rows of n
  bool two_inputs = false;                 // gemm: B is the second input, [N][K], as keys are in attention
  size_t h = 1, w = 1, c = 0;              // input, NHWC with N = 1
  size_t out_h = 1, out_w = 1, out_c = 0;  // output
  size_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1, groups = 1;
  size_t top = 0, left = 0, bottom = 0, right = 0;
  bool ceil_mode = false;
  bool bias = false;
  bool residual = false;                   // a second input of the output's shape is added before the activation
  bool broadcast = false;                  // binary: the second input is one pixel (1 x 1 x c)
  skua_activation_kind activation = SKUA_ACTIVATION_NONE;
  skua_unary_kind unary = SKUA_UNARY_RELU;
  skua_binary_kind binary = SKUA_BINARY_ADD;
  // Weights of a gemm that are bytes or nibbles while its maps are floats: [N][K], a scale for each column, or for each
  // `block` of one.
  skua_dtype quantized = SKUA_DTYPE_F32;   // S8, S4; F32: none
  size_t block = 0;
  bool zero_points = false;
  bool curve_x = false, curve_y = false;  // of s8: the input, the output has curve_quantization
  bool quantize_a = false;                 // products of bytes
  skua_resize_coordinates coordinates = SKUA_RESIZE_HALF_PIXEL;

  bool quantized_weights() const { return quantized != SKUA_DTYPE_F32; }
  bool depthwise() const { return op == Op::conv && groups > 1 && groups == c; }
  size_t in_count() const;
  size_t second_count() const;  // of the second input or the residual; 0 where there is none
  size_t out_count() const;
  size_t weight_count() const;
  size_t bias_count() const { return bias ? (op == Op::gemm ? n : out_c) : 0; }
  size_t reduction() const;     // terms summed per output element

  std::string kind() const;     // "conv2d_f32", "depthwise_f32", ...
  std::string label() const;    // "3x3s1_56x56x64-64"
  double flops() const;         // of the direct formula, 2 per multiply-add
  double weight_bytes() const;
  double bytes() const;         // read and written once: inputs, weights, output
  bool multiplies() const { return op == Op::gemm || op == Op::conv || op == Op::deconv; }
};

// Output size of a window operator from the input size, kernel, stride, padding.
void infer_output(Layer& layer);
void set_same_padding(Layer& layer);

// Operands of a layer, rounded to its type. gemm weights are [K][N]; convolution weights OHWI.
struct Operands {
  std::vector<float> x, second, weights, bias;
};
Operands make_operands(const Layer& layer, unsigned seed);
void fill(std::vector<float>& values, size_t count, unsigned seed, float low, float high);
std::vector<float> make_weights(const Layer& layer, unsigned seed);
std::vector<float> make_bias(const Layer& layer, unsigned seed);

// The constants as a library takes them: weights in the layer's type, those of s8 with weight_scale() and a zero point
// of 0, bias f32 or, for s8, s32 in units of byte_scale * weight_scale().
float weight_scale(const Layer& layer);
class Constants {
 public:
  Constants(const Layer& layer, const float* weights, const float* bias);
  const void* weights = nullptr;
  const void* bias = nullptr;
  // of s8 weights, one for each output channel; of quantised weights below maps of floats, those without blocks
  std::vector<float> scales;
  std::vector<uint16_t> block_scales;  // bf16, [N][blocks]
  std::vector<int32_t> zero_points;
  const int8_t* bytes() const { return static_cast<const int8_t*>(weights); }
  const int32_t* bias_s32() const { return static_cast<const int32_t*>(bias); }

 private:
  std::vector<unsigned char> typed_;
  std::vector<int32_t> integers_;
};

// clamp(x / 6 + 1 / 2, 0, 1) of a product as the clamp of another, for libraries that have no hard sigmoid of bytes.
struct Folded {
  std::vector<float> weights, bias;
};
Folded fold_hard_sigmoid(const Layer& layer, const float* weights, const float* bias);

// One output element in double precision, for checks (formula.cc). index counts the dense output. `magnitude` gets the
// sum of the terms' absolute values.
double reference(const Layer& layer, const Operands& o, size_t index, double* magnitude);

const char* unary_name(skua_unary_kind kind);
const char* binary_name(skua_binary_kind kind);
const char* activation_name(skua_activation_kind kind);
bool is_clamp(skua_activation_kind kind);  // none is one too
bool parse_unary(const std::string& name, skua_unary_kind* kind);
bool parse_binary(const std::string& name, skua_binary_kind* kind);
bool parse_activation(const std::string& name, skua_activation_kind* kind);
double apply_unary(skua_unary_kind kind, double x);
double apply_activation(skua_activation_kind kind, double x);

}  // namespace bench
