#include "layer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <algorithm>

namespace bench {
namespace {

const char* const unary_names[] = {
    "relu",         "relu6",      "clamp", "leaky_relu", "elu",  "selu",      "sigmoid",  "tanh",
    "hard_sigmoid", "hard_swish", "silu",  "mish",       "gelu", "gelu_tanh", "softplus", "exp",
    "log",          "sqrt",       "rsqrt", "reciprocal", "abs",  "neg",       "square",   "floor",
    "ceil",         "round",      "trunc", "sign",       "erf",  "sin",       "cos"};
const char* const binary_names[] = {
    "add",      "sub",   "mul",   "div",       "min",  "max",        "pow",     "squared_difference",
    "copysign", "prelu", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
static_assert(sizeof unary_names / sizeof *unary_names == SKUA_UNARY_KIND_COUNT &&
              sizeof binary_names / sizeof *binary_names == SKUA_BINARY_KIND_COUNT);
const char* const activation_names[] = {"none", "relu",    "relu6", "clamp",        "leaky_relu",
                                        "elu",  "sigmoid", "tanh",  "hard_sigmoid", "hard_swish",
                                        "silu", "mish",    "gelu",  "gelu_tanh"};
static_assert(sizeof activation_names / sizeof *activation_names == SKUA_ACTIVATION_KIND_COUNT, "one for each kind");

template <class Kind, size_t N> bool find(const char* const (&names)[N], const std::string& name, Kind* kind) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) {
      *kind = Kind(i);
      return true;
    }
  return false;
}

std::string format(const char* text, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* text, ...) {
  char buffer[256];
  va_list args;
  va_start(args, text);
  vsnprintf(buffer, sizeof buffer, text, args);
  va_end(args);
  return buffer;
}

unsigned next_random(unsigned& state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

}  // namespace

const char* unary_name(skua_unary_kind kind) { return unary_names[kind]; }
const char* binary_name(skua_binary_kind kind) { return binary_names[kind]; }
const char* activation_name(skua_activation_kind kind) { return activation_names[kind]; }
bool is_clamp(skua_activation_kind kind) {
  return kind == SKUA_ACTIVATION_NONE || kind == SKUA_ACTIVATION_RELU || kind == SKUA_ACTIVATION_RELU6 ||
         kind == SKUA_ACTIVATION_CLAMP;
}
bool parse_unary(const std::string& name, skua_unary_kind* kind) { return find(unary_names, name, kind); }
bool parse_binary(const std::string& name, skua_binary_kind* kind) { return find(binary_names, name, kind); }
bool parse_activation(const std::string& name, skua_activation_kind* kind) {
  return find(activation_names, name, kind);
}

static size_t blocks_of(const Layer& l) { return l.block ? (l.k + l.block - 1) / l.block : 1; }
// Of quantised weights below maps of floats: a bf16, different for neighbouring columns and blocks; 3 bits of it, and
// so exact in every type.
static float block_scale(const Layer& l, size_t n, size_t block) {
  return ldexpf(float(4 + (n + 3 * block) % 4), -7 - (l.quantized == SKUA_DTYPE_S8 ? 5 : 1));
}
static int zero_point(const Layer& l, size_t n, size_t block) {
  return l.zero_points ? int((n * 5 + block) % 8) - 4 : 0;
}
static size_t block_of(const Layer& l, size_t k) { return l.block ? k / l.block : 0; }

size_t Layer::in_count() const { return op == Op::gemm ? m * k : op == Op::softmax ? m * n : h * w * c; }
size_t Layer::out_count() const { return op == Op::gemm || op == Op::softmax ? m * n : out_h * out_w * out_c; }
size_t Layer::second_count() const {
  if (op == Op::binary) return broadcast ? c : h * w * c;
  if (two_inputs) return n * k;
  return residual ? out_count() : 0;
}
size_t Layer::weight_count() const {
  if (op == Op::gemm) return two_inputs ? 0 : k * n;
  return op == Op::conv || op == Op::deconv ? out_c * kh * kw * (c / groups) : 0;
}
size_t Layer::reduction() const {
  switch (op) {
    case Op::gemm: return k;
    case Op::conv: case Op::deconv: return kh * kw * (c / groups);
    case Op::average_pool: return kh * kw;
    case Op::global_pool: return h * w;
    case Op::softmax: return n;
    default: return 1;
  }
}

std::string Layer::kind() const {
  const std::string type = skua_dtype_name(this->type);
  switch (op) {
    case Op::gemm: return (two_inputs ? "matmul_" : "gemm_") + type;
    case Op::conv: return (depthwise() ? "depthwise_" : "conv2d_") + type;
    case Op::deconv: return "conv2d_transpose_" + type;
    case Op::max_pool: return "max_pool_" + type;
    case Op::average_pool: return "average_pool_" + type;
    case Op::global_pool: return "global_pool_" + type;
    case Op::unary: return "unary_" + type;
    case Op::binary: return "binary_" + type;
    case Op::softmax: return "softmax_" + type;
    case Op::resize: return "resize_" + type;
    case Op::concat: return "concat_" + type;
  }
  return "";
}

std::string Layer::label() const {
  const std::string window = format("%zux%zus%zu", kh, kw, sh) + (dh > 1 ? format("d%zu", dh) : "");
  const std::string image = format("_%zux%zux%zu", h, w, c);
  switch (op) {
    case Op::gemm:
      if (quantized_weights())
        return format("%zux%zux%zu_%s", m, n, k, skua_dtype_name(quantized)) + (block ? format(":%zu", block) : "") +
               (zero_points ? "_zero_points" : "") + (quantize_a ? "_quantize_a" : "");
      return format("%zux%zux%zu", m, n, k);
    case Op::conv:
      if (depthwise()) return window + (out_c > c ? format("m%zu", out_c / c) : "") + image;
      return window + (groups > 1 ? format("g%zu", groups) : "") + image + format("-%zu", out_c);
    case Op::deconv: return window + image + format("-%zu", out_c);
    case Op::max_pool: case Op::average_pool: return window + image;
    case Op::global_pool: return image.substr(1);
    case Op::unary: return unary_name(unary) + format("_%zu", h * w * c);
    case Op::binary:
      return binary_name(binary) + (h * w == 1 ? format("_%zu", c) : image) + (broadcast ? "_by_channel" : "");
    case Op::softmax: return format("%zux%zu", m, n);
    case Op::resize: return image.substr(1) + format("-%zux%zu", out_h, out_w);
    case Op::concat: return image.substr(1);
  }
  return "";
}

double Layer::flops() const {
  return (op == Op::deconv ? double(in_count()) / double(groups) * double(out_c * kh * kw)
                           : double(out_count()) * double(multiplies() ? reduction() : 0)) *
         2;
}
double Layer::weight_bytes() const {
  return quantized_weights() ? double(skua_dtype_bits(quantized)) / 8 * double(weight_count()) +
                                   double(n * blocks_of(*this)) * ((block ? 2 : 4) + (zero_points ? 0.5 : 0))
                             : double(size_of(type)) * double(weight_count());
}
double Layer::bytes() const {
  return double(size_of(type)) * double(in_count() + second_count() + out_count()) + weight_bytes() +
         4.0 * double(bias_count());
}

void set_same_padding(Layer& l) {
  const auto same = [](size_t in, size_t kernel, size_t stride, size_t dilation, size_t& before, size_t& after) {
    const size_t out = (in + stride - 1) / stride, needed = (out - 1) * stride + dilation * (kernel - 1) + 1;
    const size_t pad = needed > in ? needed - in : 0;
    before = pad / 2;
    after = pad - before;
  };
  same(l.h, l.kh, l.sh, l.dh, l.top, l.bottom);
  same(l.w, l.kw, l.sw, l.dw, l.left, l.right);
}

void infer_output(Layer& l) {
  const auto out = [&](size_t in, size_t before, size_t after, size_t kernel, size_t stride, size_t dilation) {
    if (l.op == Op::deconv) return stride * (in - 1) + dilation * (kernel - 1) + 1 - before - after;
    const size_t room = in + before + after - dilation * (kernel - 1) - 1;
    size_t count = room / stride + 1;
    if (l.ceil_mode && room % stride && count * stride < in + before) ++count;
    return count;
  };
  l.out_h = out(l.h, l.top, l.bottom, l.kh, l.sh, l.dh);
  l.out_w = out(l.w, l.left, l.right, l.kw, l.sw, l.dw);
}

void fill(std::vector<float>& values, size_t count, unsigned seed, float low, float high) {
  unsigned state = seed * 2654435761u + 12345u;
  if (!state) state = 1;
  for (int i = 0; i < 4; ++i) next_random(state);
  values.resize(count);
  for (float& v : values) v = low + (high - low) * float(next_random(state) >> 8) * (1.0f / 16777216.0f);
}

// Of s8 the same with and without an activation: contestants that apply it by an operator of its own describe a layer
// without one.
static float weight_range(const Layer& l) {
  return sqrtf((l.activation == SKUA_ACTIVATION_NONE || l.type == SKUA_DTYPE_S8 ? 3.0f : 6.0f) /
               float(std::max<size_t>(1, l.reduction())));
}
float weight_scale(const Layer& l) { return weight_range(l) / 127; }

Constants::Constants(const Layer& l, const float* w, const float* b) : weights(w), bias(b) {
  if (l.quantized_weights()) {
    const bool s4 = l.quantized == SKUA_DTYPE_S4;
    const size_t row = s4 ? (l.k + 1) / 2 : l.k;
    typed_.assign(l.n * row, 0);
    weights = typed_.data();
    for (size_t k = 0; k < l.k; ++k)
      for (size_t n = 0; n < l.n; ++n) {
        const int q =
            int(nearbyintf(w[k * l.n + n] / block_scale(l, n, block_of(l, k)))) + zero_point(l, n, block_of(l, k));
        unsigned char& to = typed_[n * row + (s4 ? k / 2 : k)];
        to = static_cast<unsigned char>(s4 ? to | (q & 15) << (k % 2 ? 4 : 0) : q);
      }
    for (size_t n = 0; n < l.n; ++n)
      for (size_t i = 0; i < blocks_of(l); ++i) {
        const float scale = block_scale(l, n, i);
        uint16_t half;
        store(&scale, 1, SKUA_DTYPE_BF16, &half);
        if (l.block) block_scales.push_back(half);
        else scales.push_back(scale);
        if (l.zero_points) zero_points.push_back(zero_point(l, n, i));
      }
    return;
  }
  if (l.type == SKUA_DTYPE_F32) return;
  const size_t count = w ? l.weight_count() : 0;
  typed_.resize(count * size_of(l.type));
  weights = typed_.data();
  if (l.type != SKUA_DTYPE_S8) {
    store(w, count, l.type, typed_.data());
    return;
  }
  const float scale = weight_scale(l);
  for (size_t i = 0; i < count; ++i) typed_[i] = static_cast<unsigned char>(int8_t(nearbyintf(w[i] / scale)));
  scales.assign(l.op == Op::gemm ? l.n : l.out_c, scale);
  for (size_t i = 0; b && i < l.bias_count(); ++i)
    integers_.push_back(int32_t(nearbyintf(b[i] / (byte_scale * scale))));
  if (b) bias = integers_.data();
}

std::vector<float> make_weights(const Layer& l, unsigned seed) {
  std::vector<float> w;
  const float range = weight_range(l);
  fill(w, l.weight_count(), seed, -range, range);
  if (l.quantized_weights()) {
    const float most = l.quantized == SKUA_DTYPE_S4 ? 7 : 127;
    for (size_t i = 0; i < w.size(); ++i) {
      const size_t n = i % l.n, block = block_of(l, i / l.n);
      w[i] = (nearbyintf(w[i] / range * most) - float(zero_point(l, n, block))) * block_scale(l, n, block);
    }
    return w;
  }
  if (l.type != SKUA_DTYPE_S8) round_to(l.type, w);
  else
    for (float& v : w) v = nearbyintf(v / weight_scale(l)) * weight_scale(l);
  return w;
}
std::vector<float> make_bias(const Layer& l, unsigned seed) {
  std::vector<float> b;
  fill(b, l.bias_count(), seed, -0.1f, 0.1f);
  if (l.type != SKUA_DTYPE_S8) round_to(l.type, b);  // some peers keep it in the layer's type
  return b;
}

Folded fold_hard_sigmoid(const Layer& l, const float* weights, const float* bias) {
  Folded f;
  for (size_t i = 0; i < l.weight_count(); ++i) f.weights.push_back(weights[i] / 6);
  for (size_t i = 0; i < l.bias_count(); ++i) f.bias.push_back(bias[i] / 6 + 0.5f);
  return f;
}

Operands make_operands(const Layer& l, unsigned seed) {
  Operands o;
  const bool positive = l.op == Op::unary && (l.unary == SKUA_UNARY_LOG || l.unary == SKUA_UNARY_SQRT ||
                                              l.unary == SKUA_UNARY_RSQRT || l.unary == SKUA_UNARY_RECIPROCAL);
  const float range = l.op == Op::unary || l.op == Op::softmax ? 4.0f : 1.0f;
  fill(o.x, l.in_count(), seed + 1, positive ? 0.1f : l.type == SKUA_DTYPE_S8 ? 0.0f : -range, range);
  const bool divisor = l.op == Op::binary && (l.binary == SKUA_BINARY_DIV || l.binary == SKUA_BINARY_POW);
  if (divisor && l.binary == SKUA_BINARY_POW) fill(o.x, l.in_count(), seed + 1, 0.1f, 2.0f);
  fill(o.second, l.second_count(), seed + 2,
       divisor                   ? 0.5f
       : l.type == SKUA_DTYPE_S8 ? 0.0f
                                 : -1.0f,
       divisor ? 2.0f : 1.0f);
  round_to(l.type, o.x);
  round_to(l.type, o.second);
  o.weights = make_weights(l, seed + 3);
  o.bias = make_bias(l, seed + 4);
  return o;
}

}  // namespace bench
