// Products of bytes: checks of the descriptor, packing of a constant B, what is read from a blob. See skua/gemm.h for
// the formula.
#include "gemm/gemm_op.h"
#include "gpu/operators.h"

namespace skua {

void gemm_offsets(const GemmQuantized& q, const Kernel* tile, size_t n, size_t depth, const int32_t* bias,
                  int32_t* offset, const int32_t* b_zeros) {
  const uint32_t a_zero = uint32_t(q.a_zero + table_of(tile).a_shift);
  for (size_t j = 0; j < n; ++j)
    offset[j] = int32_t((bias ? uint32_t(bias[j]) : 0) -
                        a_zero * (uint32_t(offset[j]) - uint32_t(depth) * uint32_t(b_zeros ? b_zeros[j] : q.b_zero)));
}

bool gemm_open_bytes(GemmOp& op) {
  const GemmConfig& c = op.config;
  return is_int8(c.b_type) && unsigned(c.c_type) <= unsigned(Element::u8) && c.alpha == 1 && c.beta == 0 &&
         c.q.low <= c.q.high && c.q.rounding <= SKUA_ROUNDING_SINGLE &&
         ((c.residual == SKUA_RESIDUAL_NONE && c.q.rounding == SKUA_ROUNDING_FLOAT) || is_int8(c.c_type)) &&
         (!c.constant_b || is_int8(c.format.element));
}

skua_status gemm_create_bytes(skua_context* context, const skua_gemm_desc& d, const void* b, const int32_t* bias,
                              skua_op** out) {
  SKUA_TRY(need_int8("gemm", "a_type", d.a_type));
  if (!is_int8(Element(d.b_type)))
    return SKUA_UNSUPPORTED_("gemm: b_type is %s, must be s8 or u8 where a_type is %s", skua_dtype_name(d.b_type),
                             skua_dtype_name(d.a_type));
  const Element result = Element(d.c_type);
  if (!is_int8(result)) SKUA_TRY(need_float("gemm", "c_type", d.c_type, true));
  SKUA_TRY(need_quantization("gemm", "a_q", d.a_q, d.a_type));
  SKUA_TRY(check_gemm_shape(d, b, bias));
  if (b) SKUA_TRY(need_weight_quantization("gemm", "b_q", d.b_q, d.b_type, d.n, d.transpose_b ? 0 : 1));
  else SKUA_TRY(need_quantization("gemm", "b_q", d.b_q, d.b_type));
  SKUA_TRY(need_quantization_of("gemm", "c_q", d.c_q, d.c_type));
  if (d.alpha != 1 || d.beta != 0)
    return SKUA_UNSUPPORTED_("gemm: alpha is %g and beta is %g; with a_type %s they are 1 and 0", double(d.alpha),
                             double(d.beta), skua_dtype_name(d.a_type));
  Requantize to;
  SKUA_TRY(quantized_epilogue("gemm", d.epilogue, result, d.c_q, to, true));
  QuantizedResidual residual;
  SKUA_TRY(quantized_residual("gemm", d.epilogue, result, d.c_q, d.residual_q, residual));
  SKUA_TRY(need_requantization("gemm", d.requantization, result, b ? d.n : 1, d.epilogue.residual));
  SKUA_ON_GPU(context, create_gemm_bytes(context, d, to, residual, b, bias, out));

  GemmConfig c;
  memset(&c, 0, sizeof c);
  c.transpose_a = d.transpose_a; c.transpose_b = d.transpose_b;
  c.constant_b = b != nullptr; c.has_bias = bias != nullptr;
  c.a_type = Element(d.a_type); c.b_type = Element(d.b_type); c.c_type = Element(d.c_type);
  c.numerics = uint8_t(d.numerics);
  c.alpha = 1;
  c.activation = d.epilogue.activation;
  c.residual = uint32_t(d.epilogue.residual);
  c.n = d.n; c.k = d.k;
  c.q.a_zero = d.a_q.zero_point;
  const int32_t* const zeros = b && d.b_q.scales ? d.b_q.zero_points : nullptr;
  for (size_t j = 1; zeros && j < d.n; ++j) c.q.each_zero |= zeros[j] != zeros[0];
  if (!c.q.each_zero) c.q.b_zero = !d.b_q.scales ? d.b_q.zero_point : d.b_q.zero_points ? d.b_q.zero_points[0] : 0;
  c.q.zero = to.zero_point;
  c.q.low = to.low;
  c.q.high = to.high;
  const auto scale_of = [&](size_t j) { return sum_scale(d.a_q, d.b_q, j, result, d.c_q); };
  c.q.scale = scale_of(0);
  c.q.rounding = uint32_t(d.requantization.rounding);
  const auto fixed_of = [&](size_t j) { return sum_scale_fixed(d.a_q, d.b_q, j, d.c_q, d.requantization); };
  if (c.q.rounding != SKUA_ROUNDING_FLOAT) c.q.fixed = fixed_of(0);
  c.q.residual = residual;

  const Kernel *tile = nullptr, *pack = nullptr;
  size_t packed = 0, bytes = 0;
  if (b) {
    tile = choose_tile(context, d.hint_m ? d.hint_m : 64, d.n, d.k, nullptr, nullptr, nullptr, types_of(c));
    if (tile) {
      c.format = format_of(tile);
      pack = find_pack(context, c.b_type, c.format.element, c.format.kr);
    }
    if (!pack) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  }
  if ((b && !packed_bytes(c.format, d.n, d.k, packed)) || !mul(gemm_bias_floats(c), sizeof(float), bytes) ||
      !add(bytes, packed, bytes) || bytes > SIZE_MAX / 2)
    return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
  skua_op* base;
  SKUA_TRY(new_op(gemm_class, context, 0, 1, bytes, &base));
  // now that memory for so many columns is there
  c.small = b && sums_small(d.k, c.b_type == Element::s8 ? 128 : 255, bias, d.n);
  memcpy(&static_cast<GemmOp*>(base)->config, &c, sizeof c);
  auto* offset = static_cast<int32_t*>(op_weights(base));
  if (bytes) memset(offset, 0, gemm_bias_floats(c) * sizeof(float));
  if (!b) {
    if (bias) memcpy(offset, bias, d.n * sizeof *bias);
    return open_op(base, out);
  }
  float* scale = reinterpret_cast<float*>(offset) + round_up(d.n, 16);
  int32_t *multiplier = reinterpret_cast<int32_t*>(scale), *shift = multiplier + round_up(d.n, 16);
  for (size_t j = 0; j < d.n; ++j) {
    if (c.q.rounding == SKUA_ROUNDING_FLOAT) scale[j] = scale_of(j);
    else multiplier[j] = fixed_of(j).multiplier, shift[j] = fixed_of(j).shift;
  }
  char* panels = reinterpret_cast<char*>(offset) + gemm_bias_floats(c) * sizeof(float);
  note_use(pack);
  const size_t dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense, stride_k = d.transpose_b ? 1 : ldb,
               stride_n = d.transpose_b ? ldb : 1;
  for (size_t p = 0; p < panel_count(c.format, d.n); ++p)
    pack_bytes(pack)(d.k, panel_columns(c.format, d.n, p), panel_width(c.format, d.n, p),
                     at(b, c.b_type, ptrdiff_t(p * c.format.nr * stride_n)), stride_k, stride_n,
                     panels + panel_offset(c.format, p, d.k), offset + p * c.format.nr);
  gemm_offsets(c.q, tile, d.n, d.k, bias, offset, c.q.each_zero ? zeros : nullptr);
  int32_t* const packed_zeros = offset + gemm_bias_floats(c) - round_up(d.n, 16);
  for (size_t j = 0; c.q.each_zero && j < d.n; ++j) packed_zeros[j] = packed_zero(c.b_type, zeros[j], c.format.element);
  return open_op(base, out);
}

}  // namespace skua
