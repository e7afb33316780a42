// Shapes of a product: what every plan of one begins with, on any device. See skua/gemm.h.
#include "gemm/gemm_op.h"

namespace skua {
namespace {

// Leading dimensions of x against the output's batch, aligned at the end: elements per batch index.
void batch_steps(const skua_tensor& x, size_t batch_rank, size_t* step) {
  for (size_t d = 0; d < batch_rank; ++d) {
    const size_t behind = batch_rank - d + 2;  // this dimension counted from the end of the shape
    step[d] = behind <= x.rank && x.shape[x.rank - behind] != 1 ? x.stride[x.rank - behind] : 0;
  }
}

skua_status matrix(const skua_op* op, const PlanShapes& s, size_t i, Element type) {
  SKUA_TRY(need_type(op, s, i, skua_dtype(type)));
  const skua_tensor& t = s.inputs[i];
  if (t.rank < 2) return SKUA_INVALID("gemm: input %zu has rank %u, must be 2 or more", i, t.rank);
  if (t.shape[t.rank - 1] > 1 && t.stride[t.rank - 1] != 1)
    return SKUA_INVALID("gemm: input %zu has innermost stride %zu, must be 1", i, t.stride[t.rank - 1]);
  return SKUA_STATUS_OK;
}

}  // namespace

skua_status gemm_shape(const skua_op* base, const GemmConfig& c, const PlanShapes& s, GemmShape& p, skua_tensor& y) {
  const skua_tensor& a = s.inputs[0];
  SKUA_TRY(matrix(base, s, 0, c.a_type));
  p.m = a.shape[a.rank - (c.transpose_a ? 1 : 2)];
  p.k = a.shape[a.rank - (c.transpose_a ? 2 : 1)];
  p.lda = a.stride[a.rank - 2];
  uint32_t rank = a.rank;
  if (c.constant_b) {
    p.n = size_t(c.n);
    if (p.k != c.k) return SKUA_INVALID("gemm: input 0 has K = %zu, the weights have %zu", p.k, size_t(c.k));
  } else {
    SKUA_TRY(matrix(base, s, 1, is_int8(c.a_type) ? c.b_type : c.a_type));
    const skua_tensor& b = s.inputs[1];
    p.n = b.shape[b.rank - (c.transpose_b ? 2 : 1)];
    const size_t k = b.shape[b.rank - (c.transpose_b ? 1 : 2)];
    if (k != p.k) return SKUA_INVALID("gemm: input 0 has K = %zu, input 1 has %zu", p.k, k);
    if (c.has_bias && p.n != c.n) return SKUA_INVALID("gemm: input 1 has N = %zu, the bias has %zu", p.n, size_t(c.n));
    p.ldb = b.stride[b.rank - 2];
    rank = b.rank > rank ? b.rank : rank;
  }
  y = tensor(skua_dtype(c.c_type), rank);
  y.shape[rank - 2] = p.m;
  y.shape[rank - 1] = p.n;
  p.batch_rank = rank - 2;
  p.batches = 1;
  for (uint32_t d = 0; d < p.batch_rank; ++d) {
    size_t extent = 1;
    for (size_t i = 0; i < size_t(1) + !c.constant_b; ++i) {
      const skua_tensor& t = s.inputs[i];
      const uint32_t behind = rank - d;
      const size_t e = behind <= t.rank ? t.shape[t.rank - behind] : 1;
      if (e != 1 && extent != 1 && e != extent)
        return SKUA_INVALID("gemm: input %zu has batch extent %zu where the other has %zu", i, e, extent);
      if (e != 1) extent = e;
    }
    y.shape[d] = p.batch[d] = extent;
    if (!mul(p.batches, extent, p.batches)) return SKUA_INVALID("gemm: the batch is larger than the address space");
  }
  batch_steps(a, p.batch_rank, p.a_step);
  if (!c.constant_b) batch_steps(s.inputs[1], p.batch_rank, p.b_step);
  if (c.residual != SKUA_RESIDUAL_NONE) {
    const size_t i = s.n_inputs - 1;
    SKUA_TRY(matrix(base, s, i, c.c_type));
    SKUA_TRY(need_same_shape(base, s, i, y));
    p.ldr = s.inputs[i].stride[rank - 2];
    batch_steps(s.inputs[i], p.batch_rank, p.r_step);
  }
  return SKUA_STATUS_OK;
}

skua_status gemm_output(const skua_tensor& y, GemmShape& p) {
  if (y.shape[y.rank - 1] > 1 && y.stride[y.rank - 1] != 1)
    return SKUA_INVALID("gemm: output 0 has innermost stride %zu, must be 1", y.stride[y.rank - 1]);
  p.ldc = y.stride[y.rank - 2];
  batch_steps(y, p.batch_rank, p.c_step);
  return SKUA_STATUS_OK;
}

}  // namespace skua
