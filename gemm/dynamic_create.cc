// Checks and packing of products with quantised weights. See dynamic.h.
#include "core/quantize.h"
#include "gemm/dynamic.h"

namespace skua {

const Kernel* dynamic_nibbles(const skua_context* ctx);

namespace {

// The eight values of steps k..k+7 of one column, the first in the lowest nibble, zeros behind the depth. B is [K][N] of nibbles or, transposed, [N][K].
struct Nibbles {
  const uint8_t* b;
  size_t k_count, ldb;
  bool transposed;
  uint32_t eight(size_t k, size_t n) const {
    const size_t count = min(k_count - k, 8);
    uint32_t x = 0;
    if (transposed) {
      const uint8_t* p = b + (n * ldb + k) / 2;
      if (count == 8) {
        __builtin_memcpy(&x, p, 4);
        return x;
      }
      for (size_t i = 0; i < count; ++i) x |= uint32_t(p[i / 2] >> i % 2 * 4 & 15) << 4 * i;
    } else {
      for (size_t i = 0; i < count; ++i) x |= uint32_t(b[((k + i) * ldb + n) / 2] >> n % 2 * 4 & 15) << 4 * i;
    }
    return x;
  }
};

uint32_t spread(uint32_t x) {  // four nibbles to the low nibbles of four bytes
  x = (x | x << 8) & 0x00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f;
}
int32_t sum_of(uint32_t x) {  // of eight nibbles, two's complement
  x ^= 0x88888888;
  return int32_t(((x & 0x0f0f0f0f) + (x >> 4 & 0x0f0f0f0f)) * 0x01010101u >> 24) - 64;
}

// 32 values of one column that lie together, to its place in four steps of a panel, `step` bytes apart; returns their sum.
using Bytes = uint8_t __attribute__((vector_size(16)));
using Words = uint64_t __attribute__((vector_size(16)));
int32_t put_32(const uint8_t* from, char* to, size_t step) {
  Bytes x;
  __builtin_memcpy(&x, from, 16);
  const Bytes even = x & 15, odd = x >> 4;
  const Words first = Words(__builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  const Words second = Words(__builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
  const Words a = first | first >> 28, b = second | second >> 28;  // eight bytes of a nibble each to four of two
  for (int i = 0; i < 4; ++i) {
    const uint32_t nibbles = uint32_t(i < 2 ? a[i] : b[i - 2]);
    __builtin_memcpy(to + size_t(i) * step, &nibbles, 4);
  }
  const Words sums = Words((even ^ 8) + (odd ^ 8));  // each 0..30
  const uint64_t pair = sums[0] + sums[1], odds = 0x00ff00ff00ff00ff;
  return int32_t(((pair & odds) + (pair >> 8 & odds)) * 0x0001000100010001 >> 48) - 32 * 8;
}

void put_scale(float scale, Element type, void* to) {
  if (type == Element::f16) narrow(scale, *static_cast<f16*>(to));
  else if (type == Element::bf16) narrow(scale, *static_cast<bf16*>(to));
  else *static_cast<float*>(to) = scale;
}
float rounded(float scale, Element type) {
  f16 h;
  bf16 b;
  if (type == Element::f16) return narrow(scale, h), widen(h);
  if (type == Element::bf16) return narrow(scale, b), widen(b);
  return scale;
}

void pack_nibbles(const DynamicConfig& c, const skua_gemm_desc& d, const void* b, float* sums, char* to) {
  const size_t n = size_t(c.n), blocks = dynamic_blocks(c), dense = d.transpose_b ? d.k : d.n;
  const Nibbles from = {static_cast<const uint8_t*>(b), size_t(c.k), d.ldb ? d.ldb : dense, d.transpose_b};
  const skua_quantization& q = d.b_q;
  for (size_t first = 0; first < n; first += c.nr)
    for (size_t block = 0; block < blocks; ++block, to += dynamic_block_bytes(c)) {
      const size_t columns = min(c.nr, n - first), k0 = block * c.block, steps = c.block / 8;
      char* const scales = to + size_t(c.nr) * c.block / 2;
      char* const zeros = scales + c.nr * element_bytes(c.scale_type);
      if (columns < c.nr || k0 + c.block > c.k) memset(to, 0, dynamic_block_bytes(c));
      for (size_t j = 0; j < columns; ++j) {
        const size_t channel = first + j, at = q.block_size ? channel * blocks + block : channel;
        int32_t sum = 0;
        size_t s = 0;
        for (; from.transposed && s + 4 <= steps && k0 + s * 8 + 32 <= c.k; s += 4) sum += put_32(from.b + (channel * from.ldb + k0 + s * 8) / 2, to + (s * c.nr + j) * 4, size_t(c.nr) * 4);
        for (; s < steps && k0 + s * 8 < c.k; ++s) {
          const uint32_t x = from.eight(k0 + s * 8, channel), nibbles = spread(x & 0xffff) | spread(x >> 16) << 4;
          __builtin_memcpy(to + (s * c.nr + j) * 4, &nibbles, 4);
          sum += sum_of(x);
        }
        const float scale = rounded(q.scales ? quantization_scale(q, at) : q.scale, c.scale_type);
        put_scale(scale, c.scale_type, scales + j * element_bytes(c.scale_type));
        if (c.has_zeros) {
          const float zero = scale * float(q.zero_points[at]);
          __builtin_memcpy(zeros + j * sizeof(float), &zero, sizeof zero);
        }
        sums[channel] += scale * float(sum);
      }
    }
}

void pack_rows(const DynamicConfig& c, const skua_gemm_desc& d, const int8_t* b, char* to) {  // of bytes
  const size_t n = size_t(c.n), k = size_t(c.k), ldb = d.ldb ? d.ldb : d.transpose_b ? k : n, stride_k = d.transpose_b ? 1 : ldb, stride_n = d.transpose_b ? ldb : 1;
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
      for (size_t j = 0; j < columns; ++j) put_scale(d.b_q.scales ? d.b_q.scales[first + j] : d.b_q.scale, Element::f32, to + j * sizeof(float));
      to += size_t(c.nr) * sizeof(float);
    }
}

}  // namespace

skua_status dynamic_create(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias, skua_op** out) {
  const bool s4 = d.b_type == SKUA_DTYPE_S4;
  if (!s4 && d.b_type != SKUA_DTYPE_S8) return SKUA_UNSUPPORTED_("gemm: b_type is %s, with quantize_a it is s8 or s4", skua_dtype_name(d.b_type));
  SKUA_TRY(need_float("gemm", "a_type", d.a_type));
  SKUA_TRY(need_same_type_or_f32("gemm", "c_type", d.c_type, "a_type", d.a_type));
  if (!b) return SKUA_UNSUPPORTED_("gemm: b is NULL, with quantised weights B must be constant");
  if (!d.n || !d.k) return SKUA_INVALID("gemm: n is %zu and k is %zu, a constant B needs both", d.n, d.k);
  if (d.transpose_a) return SKUA_UNSUPPORTED_("gemm: transpose_a with quantised weights");
  if (d.alpha != 1 || d.beta != 0) return SKUA_UNSUPPORTED_("gemm: alpha is %g and beta %g, with quantised weights they must be 1 and 0", double(d.alpha), double(d.beta));
  SKUA_TRY(check_epilogue("gemm", d.epilogue));
  if (d.epilogue.residual != SKUA_RESIDUAL_NONE) return SKUA_UNSUPPORTED_("gemm: epilogue.residual is %d, with quantised weights there is none", int(d.epilogue.residual));
  SKUA_TRY(need_unquantized("gemm", "a_q", d.a_q));
  SKUA_TRY(need_unquantized("gemm", "c_q", d.c_q));
  SKUA_TRY(need_weight_quantization("gemm", "b_q", d.b_q, d.b_type, d.n, d.transpose_b ? 0 : 1, s4 ? d.k : 0, s4 && d.b_q.zero_points));
  if (d.n > SIZE_MAX / 512 || d.k > (size_t(1) << 31) || (!s4 && d.quantize_a && d.k > 65536)) return SKUA_UNSUPPORTED_("gemm: n is %zu and k is %zu, too large with quantised weights", d.n, d.k);
  const size_t dense = d.transpose_b ? d.k : d.n, ldb = d.ldb ? d.ldb : dense, rows = d.transpose_b ? d.n : d.k;
  size_t reach = 0;
  if (ldb < dense) return SKUA_INVALID("gemm: ldb is %zu, must be %zu or more", d.ldb, dense);
  if (s4 && ldb % 2 && rows > 1) return SKUA_INVALID("gemm: rows of B are %zu values of s4 apart, must be an even number: a row begins at a byte", ldb);
  if (!mul(rows - 1, ldb, reach) || !add(reach, dense, reach) || reach > SIZE_MAX / 8) return SKUA_INVALID("gemm: B of %zu rows is larger than the address space", rows);
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
  if (!dynamic_sizes(c, vectors, total)) return SKUA_INVALID("gemm: B of %zu x %zu is larger than the address space", d.k, d.n);
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
    pack_bytes(pack)(d.k, panel_columns(c.format, d.n, p), panel_width(c.format, d.n, p), at(b, Element::s8, ptrdiff_t(p * c.format.nr * stride_n)), stride_k, stride_n,
                     at(static_cast<void*>(panels), c.format.element, ptrdiff_t(panel_offset(c.format, p, d.k))), sums + p * c.format.nr);
  for (size_t j = 0; j < d.n; ++j) {
    w[vector + j] = d.b_q.scales ? d.b_q.scales[j] : d.b_q.scale;
    offsets[j] = -table_of(kernel).a_shift * sums[j];
  }
  return open_op(base, out);
}

}  // namespace skua
