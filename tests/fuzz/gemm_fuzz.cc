// Descriptors of matrix products, and the shapes they are planned for.
#include <skua/gemm.h>

#include "tests/fuzz/fuzz.h"

using namespace skua_fuzz;

namespace {

skua_tensor matrix(Bytes& bytes, skua_dtype type, size_t rows, size_t columns, uint32_t batch) {
  skua_tensor t = skua_tensor_2d(type, rows, columns);
  if (batch) t = skua_tensor_3d(type, batch, rows, columns);
  if (bytes.byte() >= 252) t.shape[bytes.below(t.rank)] = bytes.extent(40);
  if (bytes.byte() >= 252) t.rank = bytes.below(8);
  return t;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.a_type = d.b_type = d.c_type = bytes.value<skua_dtype>(3);
  const unsigned mix = bytes.below(4);
  if (mix & 1) d.b_type = SKUA_DTYPE_F32;
  if (mix & 2) d.c_type = SKUA_DTYPE_F32;
  const uint32_t kind = bytes.byte();
  if (kind < 64) {  // bytes
    d.a_type = mix & 1 ? SKUA_DTYPE_S8 : SKUA_DTYPE_U8, d.b_type = mix & 2 ? SKUA_DTYPE_S8 : bytes.value<skua_dtype>(6),
    d.c_type = bytes.value<skua_dtype>(6);
    d.a_q.scale = bytes.real(), d.b_q.scale = bytes.real(), d.a_q.zero_point = int(bytes.byte()) - 128;
    if (bytes.flag()) d.b_q.zero_point = int(bytes.byte());
    if (d.c_type == SKUA_DTYPE_S8 || d.c_type == SKUA_DTYPE_U8)
      d.c_q.scale = bytes.real(), d.c_q.zero_point = int(bytes.byte()) - 128;
    d.requantization.rounding = bytes.flag() ? SKUA_ROUNDING_FLOAT : bytes.value<skua_rounding>(3);
    if (bytes.flag()) d.residual_q.scale = bytes.real(), d.residual_q.zero_point = int(bytes.byte()) - 128;
  }
  const bool quantized = kind >= 64 && kind < 128;
  if (quantized) {
    d.b_type = mix & 2 ? SKUA_DTYPE_S4 : SKUA_DTYPE_S8, d.c_type = mix & 1 ? SKUA_DTYPE_F32 : d.a_type;
    d.quantize_a = bytes.byte() < 240;
    d.b_q.scale = bytes.flag() ? 0.01f : bytes.real();
    d.b_q.block_size = bytes.flag() ? 32u << bytes.below(5) : 0;
    d.b_q.scale_type = d.b_q.block_size ? bytes.value<skua_dtype>(3) : SKUA_DTYPE_F32;
  }
  d.transpose_a = bytes.flag(), d.transpose_b = bytes.flag();
  d.alpha = bytes.real(), d.beta = bytes.flag() ? 0 : bytes.real();
  d.epilogue.activation.kind = bytes.value<skua_activation_kind>(14);
  d.epilogue.activation.a = bytes.real(), d.epilogue.activation.b = bytes.real();
  d.epilogue.residual = bytes.value<skua_residual>(3);
  d.numerics = bytes.value<skua_numerics>(3);
  d.hint_m = bytes.extent(20);

  const size_t m = bytes.extent(20), n = bytes.extent(40), k = bytes.extent(40);
  const bool constant = bytes.flag(), with_bias = constant && bytes.flag();
  if (constant || bytes.byte() >= 252) d.n = n, d.k = k;
  const size_t row = d.transpose_b ? k : n, rows = d.transpose_b ? n : k;
  if (constant && bytes.flag()) d.ldb = row + bytes.below(4);
  const Values b(rows ? (unsigned __int128)(d.ldb ? d.ldb : row) * rows : 0), bias(n);
  const size_t blocks = d.b_q.block_size ? (k + d.b_q.block_size - 1) / d.b_q.block_size : 1;
  const Values scales((unsigned __int128)blocks * n);
  const std::vector<int32_t> zeros(blocks <= 16 && n <= 4096 ? blocks * n : 0, int32_t(bytes.below(20)) - 10);
  if (quantized && (d.b_q.block_size || bytes.flag())) {
    // Positive, in each of the three types.
    for (float* s = const_cast<float*>(scales.data()); blocks * n <= 1 << 16 && s < scales.data() + blocks * n; ++s)
      *s = 0.0156737f;
    d.b_q.scales = scales.data(), d.b_q.axis = d.transpose_b ? 0 : 1;
    if (!zeros.empty() && bytes.flag()) d.b_q.zero_points = zeros.data();
  }
  skua_op* op = nullptr;
  if (!made(skua_gemm_create(context(), &d, constant ? b.data() : nullptr, with_bias ? bias.data() : nullptr, &op), op))
    return 0;

  skua_tensor inputs[3];
  const uint32_t batch = bytes.below(4);
  const size_t n_inputs = skua_op_input_count(op);
  size_t count = 0;
  inputs[count++] = d.transpose_a ? matrix(bytes, d.a_type, k, m, batch) : matrix(bytes, d.a_type, m, k, batch);
  if (!constant)
    inputs[count++] = d.transpose_b ? matrix(bytes, d.b_type, n, k, batch) : matrix(bytes, d.b_type, k, n, batch);
  if (count < n_inputs) inputs[count++] = matrix(bytes, d.c_type, m, n, batch);
  // beta reads C: planned only, since run() here leaves C unset.
  if (d.beta == 0) plan_and_run(op, inputs, n_inputs);
  skua_op_destroy(op);
  return 0;
}
