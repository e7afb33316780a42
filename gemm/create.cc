// Checks of the product's descriptor, and packing of a constant B. See skua/gemm.h.
#include "gemm/dynamic.h"
#include "gemm/gemm_op.h"
#include "gpu/operators.h"

namespace skua {
namespace {

// wanted: which packed format (Choice), kAskTuned for what was measured to be best; out is NULL when there is no such.
skua_status make(const skua_context* context, const skua_gemm_desc& d, const void* b, const void* bias, uint32_t wanted,
                 skua_op** out) {
  GemmConfig c;
  memset(&c, 0, sizeof c);
  c.transpose_a = d.transpose_a; c.transpose_b = d.transpose_b;
  c.constant_b = b != nullptr; c.has_bias = bias != nullptr;
  c.a_type = Element(d.a_type); c.b_type = Element(d.b_type); c.c_type = Element(d.c_type);
  c.numerics = uint8_t(d.numerics);
  c.residual = uint32_t(d.epilogue.residual);
  c.alpha = d.alpha; c.beta = d.beta;
  c.activation = d.epilogue.activation;
  c.n = d.n; c.k = d.k;
  const GemmTypes types = types_of(c);
  size_t packed = 0, bytes = 0;
  const Kernel* pack = nullptr;
  uint64_t key = 0;
  if (b) {
    // Candidates: the panels of each tile.
    key = creation_key(context, gemm_class.id, &c, sizeof c, d.hint_m, 1);
    Choice choice = {wanted == kAskTuned ? tuned_creation(context, key) : wanted, 0};
    const Kernel* tile = choose_tile(context, d.hint_m ? d.hint_m : 64, d.n, d.k, nullptr, nullptr, &choice, types);
    if (!tile && wanted && wanted != kAskTuned) return SKUA_STATUS_OK;
    if (!tile && choice.wanted) tile = choose_tile(context, d.hint_m, d.n, d.k, nullptr, nullptr, nullptr, types);
    if (tile) {
      c.format = format_of(tile);
      pack = find_pack(context, Element(d.b_type), c.format.element, c.format.kr);
    }
    if (!pack) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  }
  if ((b && !packed_bytes(c.format, d.n, d.k, packed)) || !mul(gemm_bias_floats(c), sizeof(float), bytes) ||
      !add(bytes, packed, bytes) || bytes > SIZE_MAX / 2)
    return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
  skua_op* base;
  SKUA_TRY(new_op(gemm_class, context, 0, 1, bytes, &base));
  GemmOp& op = *static_cast<GemmOp*>(base);
  op.creation_key = key;
  memcpy(&op.config, &c, sizeof c);
  float* w = static_cast<float*>(op_weights(base));
  if (bias) {
    memcpy(w, bias, d.n * sizeof(float));
    memset(w + d.n, 0, (gemm_bias_floats(c) - d.n) * sizeof(float));
    w += gemm_bias_floats(c);
  }
  if (b) {
    note_use(pack);
    const size_t dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense, stride_k = d.transpose_b ? 1 : ldb,
                 stride_n = d.transpose_b ? ldb : 1;
    for (size_t p = 0; p < panel_count(c.format, d.n); ++p)
      code_of<GemmPackFn>(pack)(d.k, panel_columns(c.format, d.n, p), panel_width(c.format, d.n, p),
                                at(b, Element(d.b_type), ptrdiff_t(p * c.format.nr * stride_n)), stride_k, stride_n,
                                at(static_cast<void*>(w), c.format.element, ptrdiff_t(panel_offset(c.format, p, d.k))));
  }
  return open_op(base, out);
}

}  // namespace

skua_status gemm_remake(const skua_op* base, const skua_tensor* inputs, uint32_t wanted, skua_op** out) {
  const GemmConfig& c = static_cast<const GemmOp*>(base)->config;
  *out = nullptr;
  if (!c.constant_b || base->ctx->filter[0] || is_int8(c.a_type)) return SKUA_STATUS_OK;
  skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  d.a_type = skua_dtype(c.a_type); d.b_type = skua_dtype(c.b_type); d.c_type = skua_dtype(c.c_type);
  d.numerics = skua_numerics(c.numerics);
  d.transpose_a = c.transpose_a; d.transpose_b = c.transpose_b;
  d.alpha = c.alpha; d.beta = c.beta;
  d.epilogue = {c.activation, skua_residual(c.residual)};
  d.n = size_t(c.n); d.k = size_t(c.k);
  d.hint_m = inputs[0].shape[inputs[0].rank - (c.transpose_a ? 1 : 2)];
  const size_t bytes = d.n * max(d.k, 1) * sizeof(float);
  if (!d.hint_m) return SKUA_STATUS_OK;
  void* b = allocate(base->ctx, bytes, 64);
  if (!b) return out_of_memory("gemm", bytes);
  memset(b, 0x3c, bytes);
  const skua_status s = make(base->ctx, d, b, c.has_bias ? b : nullptr, wanted, out);
  release(base->ctx, b, bytes);
  return s;
}

}  // namespace skua

using namespace skua;

skua_status skua::check_gemm_shape(const skua_gemm_desc& d, const void* b, const void* bias) {
  if (unsigned(d.numerics) > SKUA_NUMERICS_FAST) return SKUA_INVALID("gemm: numerics is %d, unknown", int(d.numerics));
  if (!b && d.k)
    return SKUA_INVALID("gemm: b is NULL but k is %zu; k belongs to a constant B, leave it 0 for B as an input", d.k);
  if (!b && !bias && d.n)
    return SKUA_INVALID("gemm: b and bias are NULL but n is %zu; n belongs to a constant B or a bias", d.n);
  if (!b && d.ldb)
    return SKUA_INVALID(
        "gemm: b is NULL but ldb is %zu; ldb belongs to a constant B, the strides of an input are in its tensor",
        d.ldb);
  if (b && (!d.n || !d.k)) return SKUA_INVALID("gemm: n is %zu and k is %zu, a constant B needs both", d.n, d.k);
  if (bias && !d.n) return SKUA_INVALID("gemm: n is 0, a bias needs it");
  const size_t dense = d.transpose_b ? d.k : d.n;
  if (b && d.ldb && d.ldb < dense) return SKUA_INVALID("gemm: ldb is %zu, must be %zu or more", d.ldb, dense);
  if (size_t rows = d.transpose_b ? d.n : d.k, reach = 0;
      b && d.ldb && (!mul(rows - 1, d.ldb, reach) || !add(reach, dense, reach) || reach > SIZE_MAX / 8))
    return SKUA_INVALID("gemm: ldb is %zu, B of %zu rows is larger than the address space", d.ldb, rows);
  if (d.n > SIZE_MAX / 64 || d.k > SIZE_MAX / 64) return SKUA_INVALID("gemm: n or k is larger than the address space");
  return SKUA_STATUS_OK;
}

extern "C" {

skua_status skua_gemm_create(skua_context* context, const skua_gemm_desc* desc, const void* b, const void* bias,
                             skua_op** out) {
  skua_gemm_desc d;
  SKUA_TRY(read_desc("gemm", context, desc, d, out));
  if (d.quantize_a && (d.a_type == SKUA_DTYPE_S8 || d.a_type == SKUA_DTYPE_U8))
    return SKUA_INVALID("gemm: quantize_a is set, but a_type is %s: it is bytes as it is", skua_dtype_name(d.a_type));
  if (d.a_type == SKUA_DTYPE_S8 || d.a_type == SKUA_DTYPE_U8)
    return gemm_create_bytes(context, d, b, static_cast<const int32_t*>(bias), out);
  if (context->gpu && (d.b_type == SKUA_DTYPE_S8 || d.b_type == SKUA_DTYPE_S4) && skua_dtype_bits(d.a_type) >= 16)
    return SKUA_UNSUPPORTED_("gemm: b_type is %s; on a GPU, with a_type %s, it is f32 or a_type",
                             skua_dtype_name(d.b_type), skua_dtype_name(d.a_type));
#ifdef SKUA_TYPE_s8
  if (d.quantize_a || ((d.b_type == SKUA_DTYPE_S8 || d.b_type == SKUA_DTYPE_S4) && skua_dtype_bits(d.a_type) >= 16 &&
                       d.a_type != SKUA_DTYPE_S32))
    return dynamic_create(context, d, b, bias, out);
#else
  if (d.quantize_a) return SKUA_UNSUPPORTED_("gemm: quantize_a is set, which this build leaves out (SKUA_TYPES: s8)");
#endif
  SKUA_TRY(need_float("gemm", "a_type", d.a_type, true));
  if (b) SKUA_TRY(need_same_type_or_f32("gemm", "b_type", d.b_type, "a_type", d.a_type));
  else SKUA_TRY(need_same_type("gemm", "b_type of a B that is an input", d.b_type, "a_type", d.a_type));
  SKUA_TRY(need_same_type_or_f32("gemm", "c_type", d.c_type, "a_type", d.a_type));
  SKUA_TRY(need_unquantized("gemm", "a_q", d.a_q));
  SKUA_TRY(need_unquantized("gemm", "b_q", d.b_q));
  SKUA_TRY(need_unquantized("gemm", "c_q", d.c_q));
  SKUA_TRY(need_no_requantization("gemm", d.residual_q, d.requantization));
  SKUA_TRY(check_epilogue("gemm", d.epilogue));
  SKUA_TRY(check_gemm_shape(d, b, bias));
  SKUA_ON_GPU(context, create_gemm(context, d, b, bias, out));
  return make(context, d, b, bias, kAskTuned, out);
}

}  // extern "C"
