// Checks and packing of products with quantised weights. See dynamic.h.
#include "core/quantize.h"
#include "gemm/dynamic.h"

namespace skua {

const Kernel* dynamic_nibbles(const skua_context* ctx);

namespace {

void pack_rows(const DynamicConfig& c, const skua_gemm_desc& d, const int8_t* b, char* to) {  // of bytes
  const size_t n = size_t(c.n), k = size_t(c.k),
               ldb = d.ldb           ? d.ldb
                     : d.transpose_b ? k
                                     : n,
               stride_k = d.transpose_b ? 1 : ldb, stride_n = d.transpose_b ? ldb : 1;
  for (size_t first = 0; first < n; first += c.nr)
    for (size_t k0 = 0; k0 < k; k0 += c.block) {
      memset(to, 0, dynamic_block_bytes(c));
      const size_t columns = min(c.nr, n - first), steps = min(c.block, k - k0);
      const int8_t* from = b + k0 * stride_k + first * stride_n;
      if (stride_n == 1) {
        for (size_t s = 0; s < steps; ++s) memcpy(to + s * c.nr, from + s * stride_k, columns);
      } else {
        for (size_t j = 0; j < columns; ++j)
          for (size_t s = 0; s < steps; ++s) to[s * c.nr + j] = char(from[j * stride_n + s * stride_k]);
      }
      to += size_t(c.nr) * c.block;
      for (size_t j = 0; j < columns; ++j)
        memcpy(to + j * sizeof(float), d.b_q.scales ? d.b_q.scales + first + j : &d.b_q.scale, sizeof(float));
      to += size_t(c.nr) * sizeof(float);
    }
}

}  // namespace

skua_status dynamic_create(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias,
                           skua_op** out) {
  const bool s4 = d.b_type == SKUA_DTYPE_S4;
  if (!s4 && d.b_type != SKUA_DTYPE_S8)
    return SKUA_UNSUPPORTED_("gemm: b_type is %s, with quantize_a it is s8 or s4", skua_dtype_name(d.b_type));
  SKUA_TRY(need_float("gemm", "a_type", d.a_type));
  SKUA_TRY(need_same_type_or_f32("gemm", "c_type", d.c_type, "a_type", d.a_type));
  if (!b) return SKUA_UNSUPPORTED_("gemm: b is NULL, with quantised weights B must be constant");
  if (!d.n || !d.k) return SKUA_INVALID("gemm: n is %zu and k is %zu, a constant B needs both", d.n, d.k);
  if (d.transpose_a) return SKUA_UNSUPPORTED_("gemm: transpose_a with quantised weights");
  if (d.alpha != 1 || d.beta != 0)
    return SKUA_UNSUPPORTED_("gemm: alpha is %g and beta %g, with quantised weights they must be 1 and 0",
                             double(d.alpha), double(d.beta));
  SKUA_TRY(check_epilogue("gemm", d.epilogue));
  if (d.epilogue.residual != SKUA_RESIDUAL_NONE)
    return SKUA_UNSUPPORTED_("gemm: epilogue.residual is %d, with quantised weights there is none",
                             int(d.epilogue.residual));
  SKUA_TRY(need_unquantized("gemm", "a_q", d.a_q));
  SKUA_TRY(need_unquantized("gemm", "c_q", d.c_q));
  SKUA_TRY(need_no_requantization("gemm", d.residual_q, d.requantization));
  // Sizes before scales, of which there are as many as these say.
  const size_t most_k = !s4 && d.quantize_a ? 65536 : size_t(1) << 31, most_n = SIZE_MAX / 512;
  if (d.n > most_n || d.k > most_k)
    return SKUA_UNSUPPORTED_("gemm: n is %zu and k is %zu, must be %zu and %zu at most with these weights", d.n, d.k,
                             most_n, most_k);
  const size_t dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense, rows = d.transpose_b ? d.n : d.k;
  size_t reach = 0;
  if (ldb < dense) return SKUA_INVALID("gemm: ldb is %zu, must be %zu or more", d.ldb, dense);
  if (!mul(rows - 1, ldb, reach) || !add(reach, dense, reach) || reach > SIZE_MAX / 8)
    return SKUA_INVALID("gemm: B of %zu rows is larger than the address space", rows);
  SKUA_TRY(need_weight_quantization("gemm", "b_q", d.b_q, d.b_type, d.n, d.transpose_b ? 0 : 1, s4 ? d.k : 0,
                                    s4 && d.b_q.zero_points));
  if (s4 && ldb % 2 && rows > 1)
    return SKUA_INVALID(
        "gemm: ldb is %zu, so rows of B of s4 are %zu values apart; must be an even number: a row begins at a byte",
        d.ldb, ldb);
  DynamicConfig c;
  memset(&c, 0, sizeof c);
  c.a_type = Element(d.a_type); c.b_type = Element(d.b_type); c.c_type = Element(d.c_type);
  c.scale_type = Element(d.b_q.scale_type);
  c.has_bias = bias != nullptr;
  c.activation = d.epilogue.activation;
  c.n = d.n; c.k = d.k;
  const Kernel *kernel = nullptr, *pack = nullptr;
  c.in_floats = !d.quantize_a;
  if (s4 || c.in_floats) {
    // One scale for the whole depth: blocks short enough for sums of 32 bits.
    c.block = d.b_q.block_size ? d.b_q.block_size : uint32_t(min(round_up(d.k, 32), 32768));
    c.has_zeros = d.b_q.zero_points != nullptr;
  }
  if (c.in_floats) {
    kernel = weights_tile(ctx, c, d.hint_m ? d.hint_m : 64, nullptr);
    if (kernel) c.format = format_of(kernel);
    if (!kernel || !weights_kernel(ctx, c)) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
    c.nr = c.format.nr;
  } else if (s4) {
    kernel = dynamic_nibbles(ctx);
    if (!kernel) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
    c.nr = kernel->nr;
    c.unsigned_a = code_of<GemmNibblesTableFn>(kernel)().unsigned_a;
  } else {
    // Rows of the sign that the tiles take as it is.
    for (int i = 0; i < 2; ++i) {
      const bool is_unsigned = i == 0;
      kernel = dynamic_tile(ctx, c, d.hint_m ? d.hint_m : 64, nullptr, is_unsigned);
      if (!kernel) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
      c.format = format_of(kernel);
      c.unsigned_a = is_unsigned;
      if (!table_of(kernel).a_shift && c.format.element == Element::s8) break;
    }
    pack = find_pack(ctx, Element::s8, c.format.element, c.format.kr);
    if (!pack) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  }
  size_t vectors = 0, total = 0;
  if (!dynamic_sizes(c, vectors, total))
    return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
  skua_op* base;
  SKUA_TRY(new_op(gemm_dynamic_class, ctx, 1, 1, total, &base));
  memcpy(&static_cast<DynamicOp*>(base)->config, &c, sizeof c);
  const size_t vector = dynamic_vector(c);
  auto* w = static_cast<float*>(op_weights(base));
  char* panels = reinterpret_cast<char*>(w) + vectors;
  memset(static_cast<void*>(w), 0, vectors);
  if (bias) memcpy(w, bias, d.n * sizeof(float));
  if (s4) pack_nibbles(c, d, b, w + 2 * vector, panels);
  else if (c.in_floats) pack_rows(c, d, static_cast<const int8_t*>(b), panels);
  if (s4 || c.in_floats) return open_op(base, out);
  auto *sums = reinterpret_cast<int32_t*>(w + 2 * vector), *offsets = sums + vector;
  const size_t stride_k = d.transpose_b ? 1 : ldb, stride_n = d.transpose_b ? ldb : 1;
  note_use(pack);
  for (size_t p = 0; p < panel_count(c.format, d.n); ++p)
    pack_bytes(pack)(d.k, panel_columns(c.format, d.n, p), panel_width(c.format, d.n, p),
                     at(b, Element::s8, ptrdiff_t(p * c.format.nr * stride_n)), stride_k, stride_n,
                     at(static_cast<void*>(panels), c.format.element, ptrdiff_t(panel_offset(c.format, p, d.k))),
                     sums + p * c.format.nr);
  for (size_t j = 0; j < d.n; ++j) {
    w[vector + j] = d.b_q.scales ? d.b_q.scales[j] : d.b_q.scale;
    offsets[j] = -table_of(kernel).a_shift * sums[j];
  }
  return open_op(base, out);
}

}  // namespace skua
