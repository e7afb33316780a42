#include "layer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <algorithm>

namespace bench {
namespace {

const char* const unary_names[] = {
    "relu", "relu6", "clamp", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "hard_sigmoid", "hard_swish", "silu", "mish", "gelu", "gelu_tanh",
    "softplus", "exp", "log", "sqrt", "rsqrt", "reciprocal", "abs", "neg", "square", "floor", "ceil", "round", "trunc", "sign", "erf", "sin", "cos"};
const char* const binary_names[] = {"add", "sub", "mul", "div", "min", "max", "pow", "squared_difference", "copysign", "prelu",
                                                         "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
static_assert(sizeof unary_names / sizeof *unary_names == SKUA_UNARY_KIND_COUNT && sizeof binary_names / sizeof *binary_names == SKUA_BINARY_KIND_COUNT);
const char* const activation_names[] = {"none", "relu", "relu6", "clamp", "leaky_relu", "elu", "sigmoid", "tanh", "hard_sigmoid", "hard_swish", "silu",
                                        "mish", "gelu", "gelu_tanh"};

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

double source_coordinate(const Layer& l, size_t o, size_t in, size_t out) {
  double s = 0;
  if (l.coordinates == SKUA_RESIZE_HALF_PIXEL) s = (double(o) + 0.5) * double(in) / double(out) - 0.5;
  else if (l.coordinates == SKUA_RESIZE_ALIGN_CORNERS) s = out > 1 ? double(o) * double(in - 1) / double(out - 1) : 0;
  else s = double(o) * double(in) / double(out);
  return std::min(std::max(s, 0.0), double(in - 1));
}

double apply_binary(skua_binary_kind kind, double x, double y) {
  switch (kind) {
    case SKUA_BINARY_ADD: return x + y;
    case SKUA_BINARY_SUB: return x - y;
    case SKUA_BINARY_MUL: return x * y;
    case SKUA_BINARY_DIV: return x / y;
    case SKUA_BINARY_MIN: return std::min(x, y);
    case SKUA_BINARY_MAX: return std::max(x, y);
    case SKUA_BINARY_POW: return pow(x, y);
    case SKUA_BINARY_SQUARED_DIFFERENCE: return (x - y) * (x - y);
    case SKUA_BINARY_COPYSIGN: return copysign(x, y);
    case SKUA_BINARY_PRELU: return x < 0 ? x * y : x;
    case SKUA_BINARY_EQUAL: return x == y;
    case SKUA_BINARY_NOT_EQUAL: return x != y;
    case SKUA_BINARY_LESS: return x < y;
    case SKUA_BINARY_LESS_EQUAL: return x <= y;
    case SKUA_BINARY_GREATER: return x > y;
    case SKUA_BINARY_GREATER_EQUAL: return x >= y;
    default: return NAN;
  }
}

}  // namespace

const char* unary_name(skua_unary_kind kind) { return unary_names[kind]; }
const char* binary_name(skua_binary_kind kind) { return binary_names[kind]; }
const char* activation_name(skua_activation_kind kind) { return activation_names[kind]; }
bool parse_unary(const std::string& name, skua_unary_kind* kind) { return find(unary_names, name, kind); }
bool parse_binary(const std::string& name, skua_binary_kind* kind) { return find(binary_names, name, kind); }
bool parse_activation(const std::string& name, skua_activation_kind* kind) { return find(activation_names, name, kind); }

static size_t blocks_of(const Layer& l) { return l.block ? (l.k + l.block - 1) / l.block : 1; }
// Of quantised weights below maps of floats: a bf16, different for neighbouring columns and blocks; 3 bits of it, and so exact in every type.
static float block_scale(const Layer& l, size_t n, size_t block) { return ldexpf(float(4 + (n + 3 * block) % 4), -7 - (l.quantized == SKUA_DTYPE_S8 ? 5 : 1)); }
static int zero_point(const Layer& l, size_t n, size_t block) { return l.zero_points ? int((n * 5 + block) % 8) - 4 : 0; }
static size_t block_of(const Layer& l, size_t k) { return l.block ? k / l.block : 0; }

size_t Layer::in_count() const { return op == Op::gemm ? m * k : op == Op::softmax ? m * n : h * w * c; }
size_t Layer::out_count() const { return op == Op::gemm || op == Op::softmax ? m * n : out_h * out_w * out_c; }
size_t Layer::second_count() const {
  if (op == Op::binary) return broadcast ? c : h * w * c;
  return residual ? out_count() : 0;
}
size_t Layer::weight_count() const {
  if (op == Op::gemm) return k * n;
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
    case Op::gemm: return "gemm_" + type;
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
      if (quantized_weights()) return format("%zux%zux%zu_%s", m, n, k, skua_dtype_name(quantized)) + (block ? format(":%zu", block) : "") + (zero_points ? "_zero_points" : "") + (quantize_a ? "_quantize_a" : "");
      return format("%zux%zux%zu", m, n, k);
    case Op::conv:
      if (depthwise()) return window + (out_c > c ? format("m%zu", out_c / c) : "") + image;
      return window + (groups > 1 ? format("g%zu", groups) : "") + image + format("-%zu", out_c);
    case Op::deconv: return window + image + format("-%zu", out_c);
    case Op::max_pool: case Op::average_pool: return window + image;
    case Op::global_pool: return image.substr(1);
    case Op::unary: return unary_name(unary) + format("_%zu", h * w * c);
    case Op::binary: return binary_name(binary) + (h * w == 1 ? format("_%zu", c) : image) + (broadcast ? "_by_channel" : "");
    case Op::softmax: return format("%zux%zu", m, n);
    case Op::resize: return image.substr(1) + format("-%zux%zu", out_h, out_w);
    case Op::concat: return image.substr(1);
  }
  return "";
}

double Layer::flops() const { return (op == Op::deconv ? double(in_count()) / double(groups) * double(out_c * kh * kw) : double(out_count()) * double(multiplies() ? reduction() : 0)) * 2; }
double Layer::bytes() const {
  const double weights = quantized_weights() ? double(skua_dtype_bits(quantized)) / 8 * double(weight_count()) + double(n * blocks_of(*this)) * (block ? 2 : 4) : double(size_of(type)) * double(weight_count());
  return double(size_of(type)) * double(in_count() + second_count() + out_count()) + weights + 4.0 * double(bias_count());
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

// Of s8 the same with and without an activation: contestants that apply it by an operator of its own describe a layer without one.
static float weight_range(const Layer& l) { return sqrtf((l.activation == SKUA_ACTIVATION_NONE || l.type == SKUA_DTYPE_S8 ? 3.0f : 6.0f) / float(std::max<size_t>(1, l.reduction()))); }
float weight_scale(const Layer& l) { return weight_range(l) / 127; }

Constants::Constants(const Layer& l, const float* w, const float* b) : weights(w), bias(b) {
  if (l.quantized_weights()) {
    const bool s4 = l.quantized == SKUA_DTYPE_S4;
    const size_t row = s4 ? (l.k + 1) / 2 : l.k;
    typed_.assign(l.n * row, 0);
    weights = typed_.data();
    for (size_t k = 0; k < l.k; ++k)
      for (size_t n = 0; n < l.n; ++n) {
        const int q = int(nearbyintf(w[k * l.n + n] / block_scale(l, n, block_of(l, k)))) + zero_point(l, n, block_of(l, k));
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
  for (size_t i = 0; b && i < l.bias_count(); ++i) integers_.push_back(int32_t(nearbyintf(b[i] / (byte_scale * scale))));
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

Operands make_operands(const Layer& l, unsigned seed) {
  Operands o;
  const bool positive = l.op == Op::unary && (l.unary == SKUA_UNARY_LOG || l.unary == SKUA_UNARY_SQRT || l.unary == SKUA_UNARY_RSQRT || l.unary == SKUA_UNARY_RECIPROCAL);
  const float range = l.op == Op::unary || l.op == Op::softmax ? 4.0f : 1.0f;
  fill(o.x, l.in_count(), seed + 1, positive ? 0.1f : l.type == SKUA_DTYPE_S8 ? 0.0f : -range, range);
  const bool divisor = l.op == Op::binary && (l.binary == SKUA_BINARY_DIV || l.binary == SKUA_BINARY_POW);
  if (divisor && l.binary == SKUA_BINARY_POW) fill(o.x, l.in_count(), seed + 1, 0.1f, 2.0f);
  fill(o.second, l.second_count(), seed + 2, divisor ? 0.5f : l.type == SKUA_DTYPE_S8 ? 0.0f : -1.0f, divisor ? 2.0f : 1.0f);
  round_to(l.type, o.x);
  round_to(l.type, o.second);
  o.weights = make_weights(l, seed + 3);
  o.bias = make_bias(l, seed + 4);
  return o;
}

double apply_unary(skua_unary_kind kind, double x) {
  switch (kind) {
    case SKUA_UNARY_RELU: return std::max(x, 0.0);
    case SKUA_UNARY_RELU6: return std::min(std::max(x, 0.0), 6.0);
    case SKUA_UNARY_CLAMP: return std::min(std::max(x, -1.0), 1.0);
    case SKUA_UNARY_LEAKY_RELU: return x < 0 ? 0.1 * x : x;
    case SKUA_UNARY_ELU: return x < 0 ? expm1(x) : x;
    case SKUA_UNARY_SELU: return 1.0507009873554805 * (x < 0 ? 1.6732632423543773 * expm1(x) : x);
    case SKUA_UNARY_SIGMOID: return 1 / (1 + exp(-x));
    case SKUA_UNARY_TANH: return tanh(x);
    case SKUA_UNARY_HARD_SIGMOID: return std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case SKUA_UNARY_HARD_SWISH: return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case SKUA_UNARY_SILU: return x / (1 + exp(-x));
    case SKUA_UNARY_MISH: return x * tanh(log1p(exp(x)));
    case SKUA_UNARY_GELU: return x / 2 * (1 + erf(x / sqrt(2.0)));
    case SKUA_UNARY_GELU_TANH: return x / 2 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case SKUA_UNARY_SOFTPLUS: return log1p(exp(x));
    case SKUA_UNARY_EXP: return exp(x);
    case SKUA_UNARY_LOG: return log(x);
    case SKUA_UNARY_SQRT: return sqrt(x);
    case SKUA_UNARY_RSQRT: return 1 / sqrt(x);
    case SKUA_UNARY_RECIPROCAL: return 1 / x;
    case SKUA_UNARY_ABS: return fabs(x);
    case SKUA_UNARY_NEG: return -x;
    case SKUA_UNARY_SQUARE: return x * x;
    case SKUA_UNARY_FLOOR: return floor(x);
    case SKUA_UNARY_CEIL: return ceil(x);
    case SKUA_UNARY_ROUND: return nearbyint(x);
    case SKUA_UNARY_TRUNC: return trunc(x);
    case SKUA_UNARY_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case SKUA_UNARY_ERF: return erf(x);
    case SKUA_UNARY_SIN: return sin(x);
    case SKUA_UNARY_COS: return cos(x);
    default: return NAN;
  }
}

double apply_activation(skua_activation_kind kind, double x) {
  skua_unary_kind unary;
  return kind != SKUA_ACTIVATION_NONE && parse_unary(activation_names[kind], &unary) ? apply_unary(unary, x) : x;
}

double reference(const Layer& l, const Operands& o, size_t index, double* magnitude) {
  double sum = 0, size = 0;
  const size_t oc = l.out_c ? index % l.out_c : 0, ox = l.out_c ? index / l.out_c % l.out_w : 0, oy = l.out_c ? index / l.out_c / l.out_w : 0;
  const auto add = [&](double a, double b) {
    sum += a * b;
    size += fabs(a * b);
  };
  // Calls visit(y, x, ky, kx) for every tap of the window that lies in the image.
  const auto window = [&](auto visit) {
    for (size_t ky = 0; ky < l.kh; ++ky)
      for (size_t kx = 0; kx < l.kw; ++kx) {
        const size_t y = oy * l.sh + ky * l.dh - l.top, x = ox * l.sw + kx * l.dw - l.left;
        if (y < l.h && x < l.w) visit(y, x, ky, kx);
      }
  };
  switch (l.op) {
    case Op::gemm:
      for (size_t k = 0; k < l.k; ++k) add(o.x[index / l.n * l.k + k], o.weights[k * l.n + index % l.n]);
      if (l.bias) add(o.bias[index % l.n], 1);
      break;
    case Op::conv: {
      const size_t per = l.c / l.groups, first = oc / (l.out_c / l.groups) * per;
      window([&](size_t y, size_t x, size_t ky, size_t kx) {
        for (size_t i = 0; i < per; ++i) add(o.x[(y * l.w + x) * l.c + first + i], o.weights[((oc * l.kh + ky) * l.kw + kx) * per + i]);
      });
      if (l.bias) add(o.bias[oc], 1);
      break;
    }
    case Op::deconv: {
      const size_t per = l.c / l.groups, first = oc / (l.out_c / l.groups) * per;
      for (size_t ky = 0; ky < l.kh; ++ky)
        for (size_t kx = 0; kx < l.kw; ++kx) {
          const size_t y = oy + l.top - ky * l.dh, x = ox + l.left - kx * l.dw;  // wraps when negative: then larger than the image
          if (y % l.sh || x % l.sw || y / l.sh >= l.h || x / l.sw >= l.w) continue;
          for (size_t i = 0; i < per; ++i) add(o.x[(y / l.sh * l.w + x / l.sw) * l.c + first + i], o.weights[((oc * l.kh + ky) * l.kw + kx) * per + i]);
        }
      if (l.bias) add(o.bias[oc], 1);
      break;
    }
    case Op::max_pool:
      sum = -INFINITY;
      window([&](size_t y, size_t x, size_t, size_t) { sum = std::max(sum, double(o.x[(y * l.w + x) * l.c + oc])); });
      size = fabs(sum);
      break;
    case Op::average_pool: {
      size_t count = 0;
      window([&](size_t y, size_t x, size_t, size_t) {
        add(o.x[(y * l.w + x) * l.c + oc], 1);
        ++count;
      });
      sum /= double(count);
      size /= double(count);
      break;
    }
    case Op::global_pool:
      for (size_t i = 0; i < l.h * l.w; ++i) add(o.x[i * l.c + oc], 1 / double(l.h * l.w));
      break;
    case Op::unary:
      sum = apply_unary(l.unary, o.x[index]);
      size = fabs(sum) + fabs(o.x[index]);
      break;
    case Op::binary: {
      const double x = o.x[index], y = o.second[l.broadcast ? index % l.c : index];
      sum = apply_binary(l.binary, x, y);
      size = fabs(sum) + fabs(x) + fabs(y);
      break;
    }
    case Op::softmax: {
      const float* row = o.x.data() + index / l.n * l.n;
      const double top = *std::max_element(row, row + l.n);
      double all = 0;
      for (size_t i = 0; i < l.n; ++i) all += exp(row[i] - top);
      sum = size = exp(row[index % l.n] - top) / all;
      break;
    }
    case Op::resize: {
      const double y = source_coordinate(l, oy, l.h, l.out_h), x = source_coordinate(l, ox, l.w, l.out_w);
      const size_t y0 = size_t(y), x0 = size_t(x), y1 = std::min(y0 + 1, l.h - 1), x1 = std::min(x0 + 1, l.w - 1);
      const double fy = y - double(y0), fx = x - double(x0);
      const auto at = [&](size_t r, size_t q) { return double(o.x[(r * l.w + q) * l.c + oc]); };
      add(at(y0, x0), (1 - fy) * (1 - fx));
      add(at(y0, x1), (1 - fy) * fx);
      add(at(y1, x0), fy * (1 - fx));
      add(at(y1, x1), fy * fx);
      size = 16;  // of the coordinate's rounding
      break;
    }
    case Op::concat: return NAN;
  }
  if (l.residual) add(o.second[index], 1);
  if (magnitude) *magnitude = size + fabs(sum);
  sum = apply_activation(l.activation, sum);
  return l.type == SKUA_DTYPE_S8 ? std::min(std::max(sum, double(byte_scale) * (-128 - byte_zero)), double(byte_scale) * (127 - byte_zero)) : sum;
}

}  // namespace bench
