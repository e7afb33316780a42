// What layers compute, in double precision.
#include <math.h>
#include <algorithm>

#include "layer.h"

namespace bench {
namespace {

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
    case SKUA_BINARY_KIND_COUNT: break;
  }
  return NAN;
}

// What a map of bytes can hold.
double within_map(const Layer& l, double value) {
  return l.type == SKUA_DTYPE_S8 ? std::min(std::max(value, double(byte_scale) * (-128 - byte_zero)),
                                            double(byte_scale) * (127 - byte_zero))
                                 : value;
}

}  // namespace

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
    case SKUA_UNARY_KIND_COUNT: break;
  }
  return NAN;
}

double apply_activation(skua_activation_kind kind, double x) {
  skua_unary_kind unary;
  return kind != SKUA_ACTIVATION_NONE && parse_unary(activation_name(kind), &unary) ? apply_unary(unary, x) : x;
}

double reference(const Layer& l, const Operands& o, size_t index, double* magnitude) {
  double sum = 0, size = 0;
  const size_t oc = l.out_c ? index % l.out_c : 0, ox = l.out_c ? index / l.out_c % l.out_w : 0,
               oy = l.out_c ? index / l.out_c / l.out_w : 0;
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
      for (size_t k = 0; k < l.k; ++k)
        add(o.x[index / l.n * l.k + k],
            l.two_inputs ? o.second[index % l.n * l.k + k] : o.weights[k * l.n + index % l.n]);
      if (l.bias) add(o.bias[index % l.n], 1);
      break;
    case Op::conv: {
      const size_t per = l.c / l.groups, first = oc / (l.out_c / l.groups) * per;
      window([&](size_t y, size_t x, size_t ky, size_t kx) {
        for (size_t i = 0; i < per; ++i)
          add(o.x[(y * l.w + x) * l.c + first + i], o.weights[((oc * l.kh + ky) * l.kw + kx) * per + i]);
      });
      if (l.bias) add(o.bias[oc], 1);
      break;
    }
    case Op::deconv: {
      const size_t per = l.c / l.groups, first = oc / (l.out_c / l.groups) * per;
      for (size_t ky = 0; ky < l.kh; ++ky)
        for (size_t kx = 0; kx < l.kw; ++kx) {
          // wraps when negative: then larger than the image
          const size_t y = oy + l.top - ky * l.dh, x = ox + l.left - kx * l.dw;
          if (y % l.sh || x % l.sw || y / l.sh >= l.h || x / l.sw >= l.w) continue;
          for (size_t i = 0; i < per; ++i)
            add(o.x[(y / l.sh * l.w + x / l.sw) * l.c + first + i],
                o.weights[((oc * l.kh + ky) * l.kw + kx) * per + i]);
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
  return within_map(l, apply_activation(l.activation, sum));
}

}  // namespace bench
