// A matrix product, its inputs, and the product in double that it must come close to: what the tests of the gemm
// operator share.
#pragma once
#include <skua/gemm.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <optional>

#include "dispatch/element.h"
#include "tests/support/support.h"

namespace skua_test {

constexpr double kEps = double(FLT_EPSILON);

inline double activate(const skua_activation& act, double x) {
  const double a = double(act.a), b = double(act.b);
  if (std::isnan(x)) return x;
  switch (act.kind) {
    case SKUA_ACTIVATION_NONE: return x;
    case SKUA_ACTIVATION_RELU: return std::max(x, 0.0);
    case SKUA_ACTIVATION_RELU6: return std::min(std::max(x, 0.0), 6.0);
    case SKUA_ACTIVATION_CLAMP: return std::min(std::max(x, a), b);
    case SKUA_ACTIVATION_LEAKY_RELU: return x < 0 ? a * x : x;
    case SKUA_ACTIVATION_ELU: return x < 0 ? a * std::expm1(x) : x;
    case SKUA_ACTIVATION_SIGMOID: return 1 / (1 + std::exp(-x));
    case SKUA_ACTIVATION_TANH: return std::tanh(x);
    case SKUA_ACTIVATION_HARD_SIGMOID: return std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case SKUA_ACTIVATION_HARD_SWISH: return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case SKUA_ACTIVATION_SILU: return x / (1 + std::exp(-x));
    case SKUA_ACTIVATION_MISH: return x * std::tanh(std::log1p(std::exp(x)));
    case SKUA_ACTIVATION_GELU: return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case SKUA_ACTIVATION_GELU_TANH: return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case SKUA_ACTIVATION_KIND_COUNT: break;
  }
  return NAN;
}

struct Case {
  size_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false, constant_b = false, bias = false;
  float alpha = 1, beta = 0;
  skua_activation activation = {SKUA_ACTIVATION_NONE, 0, 0};
  skua_residual residual = SKUA_RESIDUAL_NONE;
  std::vector<size_t> a_batch, b_batch;
  size_t hole = 0;       // elements between rows of A, B, C and the residual
  bool dense_c = false;  // none between those of C
  bool integers = false; // exact
  bool narrow_b = false; // the tile rounds a constant B of f32 to A's type
  // the tile may compute in A's type: B is rounded to it, f16 is summed 64 terms at a time, or all of them where
  // numerics is FAST
  bool half = false;
  bool blocks = false;   // 64 terms there too
  // of A and a dynamic B; of a constant B; of C and the residual
  skua_dtype type = SKUA_DTYPE_F32, b_type = SKUA_DTYPE_F32, c_type = SKUA_DTYPE_F32;
  skua_numerics numerics = SKUA_NUMERICS_DEFAULT;
  size_t hint_m = 0;
  uint32_t seed = 1;

  std::string text() const {
    std::string s = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k);
    s += std::string(transpose_a ? " A^T" : "") + (transpose_b ? " B^T" : "") + (constant_b ? " constant B" : "") +
         (bias ? " bias" : "");
    s += " alpha " + std::to_string(alpha) + " beta " + std::to_string(beta) + " activation " +
         std::to_string(activation.kind);
    s += " residual " + std::to_string(residual) + " hole " + std::to_string(hole) + (dense_c ? " none in C" : "");
    for (size_t e : a_batch) s += " a_batch " + std::to_string(e);
    for (size_t e : b_batch) s += " b_batch " + std::to_string(e);
    s += std::string(" types ") + skua_dtype_name(type) + " " + skua_dtype_name(constant_b ? b_type : type) + " " +
         skua_dtype_name(c_type) + " numerics " + std::to_string(numerics);
    return s + " seed " + std::to_string(seed);
  }
};

struct Inputs {
  Data a, b, c, residual;
  std::vector<float> bias;
  std::vector<size_t> batch;
};

// Rows are `hole` elements longer than the matrix, and matrices of a batch two rows of it longer.
inline skua_tensor matrices(skua_dtype type, std::vector<size_t> batch, size_t rows, size_t columns, size_t hole) {
  std::vector<size_t> more(batch.size() + 2, 0);
  batch.push_back(rows);
  batch.push_back(columns);
  more.back() = hole;
  if (hole) more[more.size() - 2] = 2;
  return with_holes(shape(batch, type), more);
}

inline std::vector<size_t> broadcast(const std::vector<size_t>& x, const std::vector<size_t>& y) {
  std::vector<size_t> z(std::max(x.size(), y.size()), 1);
  for (size_t i = 0; i < z.size(); ++i)
    for (const std::vector<size_t>* from : {&x, &y})
      if (i < from->size() && (*from)[from->size() - 1 - i] != 1) z[z.size() - 1 - i] = (*from)[from->size() - 1 - i];
  return z;
}

inline Inputs inputs_of(const Case& c) {
  Rng rng(c.seed);
  Inputs in;
  auto values = [&](const skua_tensor& t) { return c.integers ? make_integers(t, rng) : make(t, rng); };
  in.batch = broadcast(c.a_batch, c.constant_b ? std::vector<size_t>{} : c.b_batch);
  in.a = values(c.transpose_a ? matrices(c.type, c.a_batch, c.k, c.m, c.hole)
                              : matrices(c.type, c.a_batch, c.m, c.k, c.hole));
  in.b = values(c.transpose_b ? matrices(c.constant_b ? c.b_type : c.type, c.b_batch, c.n, c.k, c.hole)
                              : matrices(c.constant_b ? c.b_type : c.type, c.b_batch, c.k, c.n, c.hole));
  in.c = values(matrices(c.c_type, in.batch, c.m, c.n, c.dense_c ? 0 : c.hole));
  in.residual = values(matrices(c.c_type, in.batch, c.m, c.n, c.hole));
  in.bias = values(shape({c.n})).v;
  return in;
}

inline skua_gemm_desc desc_of(const Case& c, const Inputs& in) {
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.a_type = c.type;
  d.b_type = c.constant_b ? c.b_type : c.type;
  d.c_type = c.c_type;
  d.numerics = c.numerics;
  d.transpose_a = c.transpose_a;
  d.transpose_b = c.transpose_b;
  d.alpha = c.alpha;
  d.beta = c.beta;
  d.hint_m = c.hint_m;
  if (c.constant_b || c.bias) d.n = c.n;
  if (c.constant_b) d.k = c.k, d.ldb = in.b.t.stride[in.b.t.rank - 2];
  if (c.constant_b && !c.hole) d.ldb = 0;
  d.epilogue = {c.activation, c.residual};
  return d;
}

// The values as they lie in memory.
inline std::vector<unsigned char> in_memory(const Data& data) {
  const size_t size = skua_dtype_bits(data.t.type) / 8;
  std::vector<unsigned char> bytes(data.v.size() * size);
  for (size_t i = 0; i < data.v.size(); ++i) {
    skua::f16 h;
    skua::bf16 b;
    skua::narrow(data.v[i], h), skua::narrow(data.v[i], b);
    std::memcpy(bytes.data() + i * size,
                data.t.type == SKUA_DTYPE_F16    ? static_cast<const void*>(&h)
                : data.t.type == SKUA_DTYPE_BF16 ? static_cast<const void*>(&b)
                                                 : &data.v[i],
                size);
  }
  return bytes;
}

// Runs the case; nullopt if it could not be created or planned (already a failure).
inline std::optional<Data> compute(skua_context* context, const Case& c, const Inputs& in) {
  const skua_gemm_desc desc = desc_of(c, in);
  Op op;
  const skua_status status = skua_gemm_create(context, &desc, c.constant_b ? in_memory(in.b).data() : nullptr,
                                              c.bias ? in.bias.data() : nullptr, &op);
  EXPECT_EQ(status, SKUA_STATUS_OK) << skua_error_text();
  if (!op.op) return std::nullopt;
  std::vector<Data> operands = {in.a};
  if (!c.constant_b) operands.push_back(in.b);
  if (c.residual != SKUA_RESIDUAL_NONE) operands.push_back(in.residual);
  std::vector<Data> before;
  if (c.beta != 0) before.push_back(in.c);
  std::vector<Data> got = run(op, operands, {in.c.t}, before);
  if (got.size() != 1) return std::nullopt;
  return got[0];
}

// How much an activation may enlarge an error of its argument.
inline double slope(const skua_activation& act) {
  return act.kind == SKUA_ACTIVATION_LEAKY_RELU || act.kind == SKUA_ACTIVATION_ELU
             ? std::max(1.0, std::fabs(double(act.a)))
             : 1.6;
}

// Where a batch index finds its matrix.
inline const float* matrix_at(const Data& x, const std::vector<size_t>& index) {
  size_t offset = 0;
  const size_t rank = x.t.rank - 2;
  for (size_t d = 0; d < rank; ++d) offset += index[index.size() - rank + d] % x.t.shape[d] * x.t.stride[d];
  return x.v.data() + offset;
}

// The product of the inputs in double, and the bound on the error of each element.
inline void reference(const Case& c, const Inputs& in, std::vector<double>& value, std::vector<double>& bound) {
  auto row_stride = [](const Data& x) { return x.t.rank ? x.t.stride[x.t.rank - 2] : 0; };
  const size_t lda = row_stride(in.a), ldb = row_stride(in.b), ldc = row_stride(in.c), ldr = row_stride(in.residual);
  const size_t a_row = c.transpose_a ? 1 : lda, a_depth = c.transpose_a ? lda : 1, b_depth = c.transpose_b ? 1 : ldb,
               b_column = c.transpose_b ? ldb : 1;
  const bool exact = c.alpha == 1 && c.beta == 0 && !c.bias && c.activation.kind <= SKUA_ACTIVATION_CLAMP &&
                     c.residual == SKUA_RESIDUAL_NONE;
  const double alpha = std::fabs(double(c.alpha));
  value.clear(), bound.clear();
  size_t batches = 1;
  for (size_t e : in.batch) batches *= e;
  for (size_t batch = 0; batch < batches; ++batch) {
    std::vector<size_t> index(in.batch.size());
    for (size_t d = in.batch.size(), rest = batch; d-- > 0; rest /= in.batch[d]) index[d] = rest % in.batch[d];
    const float *a = matrix_at(in.a, index), *b = matrix_at(in.b, index);
    const float* before = c.beta != 0 ? matrix_at(in.c, index) : nullptr;
    const float* residual = c.residual != SKUA_RESIDUAL_NONE ? matrix_at(in.residual, index) : nullptr;
    for (size_t i = 0; i < c.m; ++i)
      for (size_t j = 0; j < c.n; ++j) {
        double sum = 0, size = 0;
        for (size_t l = 0; l < c.k; ++l) {
          const double x = double(a[i * a_row + l * a_depth]) * double(b[l * b_depth + j * b_column]);
          sum += x;
          size += std::fabs(x);
        }
        double error = double(c.k + 2) * kEps * size * alpha, extra = size * alpha;
        if (c.narrow_b && c.constant_b && c.b_type != c.type)
          error += (c.type == SKUA_DTYPE_F16 ? 0x1p-11 : 0x1p-8) * size * alpha + double(c.k) * 0x1p-25 * alpha;
        if (c.half && c.type == SKUA_DTYPE_BF16 && c.constant_b && c.b_type == SKUA_DTYPE_F32)
          error += 0x1p-8 * size * alpha;
        if (c.half && c.type == SKUA_DTYPE_F16 && c.numerics != SKUA_NUMERICS_STRICT) {
          const double terms = double(c.numerics == SKUA_NUMERICS_FAST && !c.blocks ? c.k : std::min(c.k, size_t(64)));
          // a product may be rounded by itself; below 2^-14 to multiples of 2^-24
          error += ((terms + 2) * 0x1p-11 * size + (double(c.k) + terms) * 0x1p-25) * alpha;
        }
        sum *= double(c.alpha);
        auto plus = [&](double x) { sum += x, extra += std::fabs(x); };
        if (before) plus(double(c.beta) * double(before[i * ldc + j]));
        if (c.bias) plus(double(in.bias[j]));
        const double r = residual ? double(residual[i * ldr + j]) : 0;
        if (c.residual == SKUA_RESIDUAL_BEFORE_ACTIVATION) plus(r);
        if (!exact) error += 4 * kEps * extra;
        double y = activate(c.activation, sum);
        if (c.activation.kind > SKUA_ACTIVATION_CLAMP)
          error = error * slope(c.activation) + 16 * kEps * (std::fabs(y) + std::fabs(sum) * 0.25);
        if (c.residual == SKUA_RESIDUAL_AFTER_ACTIVATION) y += r, error += kEps * (std::fabs(y) + std::fabs(r));
        value.push_back(y);
        bound.push_back(c.integers ? 0 : error + half_ulp(c.c_type, y) + double(FLT_MIN));
      }
  }
}

inline void expect_product(const Case& c, const Inputs& in, const Data& got) {
  std::vector<double> value, bound;
  reference(c, in, value, bound);
  expect_close(got, value, bound);
}

inline std::optional<Data> check(skua_context* context, const Case& c) {
  SCOPED_TRACE(c.text());
  const Inputs in = inputs_of(c);
  std::optional<Data> got = compute(context, c, in);
  if (!got) return got;
  expect_product(c, in, *got);
  return got;
}

}  // namespace skua_test
