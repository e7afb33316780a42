// The matrix product as an operator. See skua/gemm.h for the formula, gemm/README.md for the way through.
#include <skua/gemm.h>

#include "gemm/gemm_op.h"

namespace skua {
namespace {

struct Plan : skua_plan, GemmShape {
  size_t b_batches;          // different B's
  size_t kc;
  bool in_place;             // B is read where it is, only its last panel is packed
  bool by_panel;             // B is packed a panel at a time, by the task that multiplies it
  bool transposed;           // B lies transposed and is read where it is: `kernel` is no tile, but gemm_transposed
  bool row;                  // one row and a packed B that is not fetched ahead
  OnlyRow only;              // and there is nothing beside it; for one worker
  const Kernel *pack_a, *pack_b;  // NULL where nothing is packed
  size_t packed_a, packed_b;      // bytes of workspace: per batch of A, per B
  size_t panel;                   // per worker: by_panel
  size_t columns;                 // of bytes: where in the latter offsets and scales of the columns are
  size_t width_a;                 // elements from a row of the packed A to the next
  Staging staging;
  double cycles;                  // predicted
  OnCores tiles;
  KeptGrid grid;
};

const GemmOp& op_of(const skua_plan* plan) { return *static_cast<const GemmOp*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

skua_status open(skua_op* base) {
  GemmOp& op = *static_cast<GemmOp*>(base);
  const GemmConfig& c = op.config;
  size_t packed = 0, bytes = 0;
  const bool quantized = is_int8(c.a_type);
  bool ok = c.n <= SIZE_MAX / 64 && c.k <= SIZE_MAX / 64;
  ok = ok && (quantized ? gemm_open_bytes(op)
                        : (c.c_type == Element::f32 || c.c_type == c.a_type) &&
                              (c.b_type == Element::f32 || c.b_type == c.a_type));
  if (ok && c.constant_b)
    ok = c.format.vector && c.format.nr && c.format.kr && packed_bytes(c.format, size_t(c.n), size_t(c.k), packed);
  ok = ok && mul(gemm_bias_floats(c), sizeof(float), bytes) && add(bytes, packed, bytes) && bytes == op.weights_size &&
       c.residual <= SKUA_RESIDUAL_AFTER_ACTIVATION;
  if (!ok) return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "gemm: packed weights have a wrong size");
  SKUA_TRY(check_activation("gemm", c.activation));
  const Kernel* tile = c.constant_b ? choose_tile(op.ctx, 1, 1, 1, &c.format, nullptr, nullptr, types_of(c)) : nullptr;
  if (c.constant_b && !tile)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                "gemm: weights are packed as %s for panels of %u columns and vectors of %u, %u of the depth together; "
                "this context (%s) has no such kernel",
                skua_dtype_name(skua_dtype(c.format.element)), c.format.nr, c.format.vector, c.format.kr,
                skua_context_isa(op.ctx));
  if (c.a_type != Element::f32 && !quantized && !find_kernel(op.ctx, gemm_tables, KernelKind::gemm_rows, -1, c.a_type))
    return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  op.n_inputs = 1 + !c.constant_b + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  const float* w = static_cast<const float*>(op.weights);
  if (quantized) {
    op.offset = gemm_bias_floats(c) ? reinterpret_cast<const int32_t*>(w) : nullptr;
    const size_t vector = round_up(size_t(c.n), 16);
    op.scale = c.constant_b ? w + vector : nullptr;
    if (c.q.rounding != SKUA_ROUNDING_FLOAT) {
      if (c.constant_b) op.shift = reinterpret_cast<const int32_t*>(w + 2 * vector);
      if (!are_fixed_scales(&c.q.fixed.multiplier, &c.q.fixed.shift, 1) ||
          (op.shift && !are_fixed_scales(reinterpret_cast<const int32_t*>(op.scale), op.shift, vector)))
        return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "gemm: the packed multipliers are outside of their bounds");
    } else {
      op.fits = op.scale ? scales_fit(op.scale, size_t(c.n)) : c.q.scale < 1;
    }
    if (c.q.each_zero && c.constant_b)
      op.b_zeros = reinterpret_cast<const int32_t*>(w + (gemm_column_vectors(c) - 1) * vector);
    op.small = c.small;
    op.activation.low = c.q.low;
    op.activation.high = c.q.high;
  } else {
    op.bias = c.has_bias ? w : nullptr;
  }
  op.packed = c.constant_b ? w + gemm_bias_floats(c) : nullptr;
  op.above_least = quantized && tile && all_above_least(tile, op.packed, packed);
  return quantized ? SKUA_STATUS_OK : resolve_activation(&op, c.activation, op.activation);
}

// What every task of a product shares. Fields by name: zeroing all of them first would take as long as a small product.
GemmBlock block_of(const Plan& p, const GemmOp& op, const GemmSegment* whole) {
  return {.tile = p.kernel,
          .format = format_of(p.kernel),
          .n = p.n,
          .segment_count = 1,
          .k = p.k,
          .segments = whole,
          .kc = p.kc,
          .packed = op.packed,
          .packed_depth = p.k,
          .in_place = nullptr,
          .ldb = 0,
          .alpha = op.config.alpha,
          .beta = op.config.beta,
          .bias = op.bias,
          .activation = op.activation,
          .residual = skua_residual(op.config.residual),
          .a_step = 0,
          .c_step = 0,
          .residual_step = 0,
          .more_panels = 0,
          .a_type = op.config.a_type,
          .c_type = op.config.c_type,
          .block_sums = op.config.numerics != SKUA_NUMERICS_FAST,
          .rows = nullptr,
          .scratch = nullptr,
          .scale = op.scale,
          .offset = op.offset,
          .b_zero = op.b_zeros ? 1 : packed_zero(op.config.b_type, op.config.q.b_zero, table_of(p.kernel).b),
          .zero = op.config.q.zero,
          .fits = op.fits,
          .small = op.small,
          .above_least = op.above_least,
          .shift = op.shift,
          .single = op.config.q.rounding == SKUA_ROUNDING_SINGLE,
          .residual_by = op.config.q.residual,
          .b_zeros = op.b_zeros};
}

// Rows up to which a B that lies transposed is read where it is. Of f32 as many as B comes from L1 for all rows but the
// first: a vector's rows of it (measured on a Sapphire Rapids, time over that of packing, of a B that begins amid lines
// of 64 bytes: AVX-512, 128 to 256 deep 0.75 for four rows, 0.91-0.98 for six, 1.1 for eight; 1024 deep four 1.2; of
// one on lines 0.4, 0.6, 0.75 and 0.5; AVX2, 128 deep, four 0.65, eight 1.0). Of 64 steps sums over lanes are most of
// it (eight 1.3). Halves are widened for every two rows: four take 41 us and packed 75, eight 102 and 77.
size_t few_rows(const Kernel* kernel, size_t k) {
  const bool f32 = kernel->element == Element::f32;
  const double b = double(k) * kernel->vector * element_bytes(kernel->element),
               l1 = double(machine_for(kernel->isa).l1);
  if (f32 && kernel->vector == 16 && k >= 128 && b <= l1 / 2) return 6;
  return f32 && b > l1 ? 2 : 4;
}
// A few rows by a B that lies transposed: NULL where tiles are as well off.
const Kernel* transposed_kernel(const GemmOp& op, const Plan& p) {
  const GemmConfig& c = op.config;
  if (c.constant_b || !c.transpose_b || is_int8(c.a_type)) return nullptr;
  if (c.numerics == SKUA_NUMERICS_STRICT) return nullptr;  // which keeps each element one chain
  if (op.activation.kernel && c.c_type != Element::f32) return nullptr;  // rounded once, behind the function
  // The longest vector that the columns fill; scalar code beside scalar tiles only.
  struct Search {
    size_t n, least;
    const Kernel* found;
  } search = {p.n, min(p.kernel->vector, 2), nullptr};
  each_kernel(op.ctx, gemm_tables, KernelKind::gemm_transposed, -1, [](const Kernel* k, void* arg) {
    auto* s = static_cast<Search*>(arg);
    if (!s->found && s->n >= k->vector && s->least <= k->vector) s->found = k;
  }, &search, c.a_type);
  const Kernel* const kernel = search.found;
  if (!kernel) return nullptr;
  const char* const filter = op.ctx->filter;
  const bool tile = glob_match(filter, p.kernel->name), named = glob_match(filter, kernel->name);
  if (filter[0] && tile != named) return named ? kernel : nullptr;
  return p.m <= few_rows(kernel, p.k) ? kernel : nullptr;
}
// A load for each multiply-add, and L elements' sums over their lanes; or what brings B.
double transposed_cycles(const Plan& p, Element b) {
  const Machine m = machine_for(p.kernel->isa);
  const double outputs = double(p.m) * double(p.n), bytes = double(p.n) * double(p.k) * element_bytes(b);
  return max(outputs * (double(p.k) / (2 * double(p.kernel->vector)) + 5),
             bytes / (bytes <= double(m.l2) ? m.l2_bytes : m.l3_bytes));
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const GemmOp& op = *static_cast<const GemmOp*>(base);
  const GemmConfig& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(gemm_shape(base, c, s, p, p.outputs[0]));
  p.b_batches = 1;
  for (size_t d = 0; d < p.batch_rank && !c.constant_b; ++d) p.b_batches *= p.b_step[d] ? p.batch[d] : 1;
  p.kernel = choose_tile(op.ctx, p.m, p.n, p.k, c.constant_b ? &c.format : nullptr, nullptr, &p.choice, types_of(c));
  if (!p.kernel) return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  const PackFormat f = format_of(p.kernel);
  p.pack_a = c.transpose_a ? find_pack(op.ctx, c.a_type, c.a_type) : nullptr;
  const Kernel* const transposed = transposed_kernel(op, p);
  p.transposed = transposed != nullptr;
  p.pack_b = c.constant_b || transposed
                 ? nullptr
                 : find_pack(op.ctx, is_int8(c.a_type) ? c.b_type : c.a_type, f.element, f.kr);
  if ((c.transpose_a && !p.pack_a) || (!c.constant_b && !transposed && !p.pack_b))
    return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  p.tiles = tiles_on_cores(op.ctx, p.kernel);
  p.staging = staging(p.kernel, c.a_type, c.c_type, op.activation.kernel, p.m, p.n, 1, p.k);
  // beta reads C, so C cannot hold partial sums
  p.kc = c.beta != 0 ? max(p.k, 1) : depth_per_pass(p.kernel, 1, p.k, p.m);
  const bool bytes_tile = table_of(p.kernel).bytes;
  p.row = c.constant_b && p.m == 1 && (!p.staging.bytes || bytes_tile || c.a_type == c.c_type) &&
          has_row(p.kernel, p.n, p.k);
  if (p.row && p.staging.bytes && !bytes_tile)
    p.staging.bytes = round_up(row_scratch(c.a_type, c.c_type, p.kernel, op.activation.kernel, p.k), 64);
  if (!p.row) p.staging.bytes = scratch_on_cores(p.tiles, c.a_type, c.c_type, op.activation.kernel, p.m, p.n, 1, p.k);
  p.in_place = !c.constant_b && !c.transpose_b && reads_in_place(p.kernel, c.a_type, p.m);
  // Few rows, or many products (attention): who multiplies a panel packs it, which stays in L1 so. Rows that are
  // prepared would be so for each panel; tasks that share a panel would pack it each.
  constexpr size_t kFewRows = 64, kManyBatches = 16;
  p.by_panel = !c.constant_b && !p.in_place && !transposed && !is_int8(c.a_type) && p.b_batches == p.batches &&
               (p.m <= kFewRows || p.batches >= kManyBatches) &&
               (p.m <= p.kernel->mr || table_of(p.kernel).a == c.a_type);
  size_t bytes = 0;
  bool ok = true;
  if (c.transpose_a) {
    p.width_a = round_up(p.k, p.pack_a->vector);
    ok = mul(p.m, p.width_a, p.packed_a) && mul(p.packed_a, element_bytes(c.a_type), p.packed_a);
  }
  if (ok && !c.constant_b && !transposed && (!p.in_place || p.n % f.vector))
    ok = packed_bytes(f,
                      p.in_place   ? panel_columns(f, p.n, panel_count(f, p.n) - 1)
                      : p.by_panel ? min(p.n, f.nr)
                                   : p.n,
                      p.k, p.by_panel ? p.panel : p.packed_b);
  p.panel = round_up(p.panel, 64);
  size_t total_a = 0, total_b = 0, columns = 0;
  p.packed_a = round_up(p.packed_a, 64);
  p.packed_b = round_up(p.packed_b, 64);
  if (!c.constant_b && is_int8(c.a_type)) {  // offsets and scales of the columns behind the panels
    p.columns = p.packed_b;
    ok = ok && mul(round_up(p.n, 16), gemm_column_vectors(c) * 4, columns) && add(p.packed_b, columns, p.packed_b);
  }
  ok = ok && mul(p.packed_a, p.batches, total_a) && mul(p.packed_b, p.b_batches, total_b) &&
       add(total_a, total_b, bytes) && bytes <= SIZE_MAX / 2 && p.staging.bytes <= SIZE_MAX / 4 &&
       p.panel <= SIZE_MAX / 4;
  if (!ok) return SKUA_INVALID("gemm: the packed operands are larger than the address space");
  if (transposed) p.kernel = transposed, p.staging = {}, p.kc = max(p.k, 1), p.choice = {};  // of tiles
  p.cycles = transposed ? transposed_cycles(p, c.a_type) : gemm_cycles(p.kernel, p.m, p.n, p.k);
  if (p.row && p.batches == 1 && !p.packed_a) prepare_row(block_of(p, op, nullptr), &op.activation, p.only);
  p.algorithm = c.constant_b ? "packed"
                : p.in_place ? "in_place"
                : transposed ? "rows_by_rows"
                             : "pack_and_multiply";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op*, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  return gemm_output(p.outputs[0], p);
}

size_t worker_bytes(const Plan& p) { return round_up(p.staging.bytes, 64) + p.panel; }
size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const Plan& p = plan_of(plan);
  return add_sat(p.packed_a * p.batches + p.packed_b * p.b_batches, mul_sat(worker_bytes(p), concurrency));
}

struct Run {
  const RunArgs* args;
  const void *a, *b, *residual;
  void* c;
  char *packed_a, *packed_b, *scratch;
  const Kernel* rows;
  TaskGrid grid;
  size_t pieces;
};

size_t batch_offset(const Plan& p, const size_t* step, size_t batch) {
  size_t offset = 0;
  for (size_t d = p.batch_rank; d-- > 0; batch /= p.batch[d]) offset += batch % p.batch[d] * step[d];
  return offset;
}
// Which of the different B's a batch index uses; and where the B of that number begins.
size_t b_index(const Plan& p, size_t batch) {
  size_t index = 0, scale = 1;
  for (size_t d = p.batch_rank; d-- > 0; batch /= p.batch[d]) {
    if (!p.b_step[d]) continue;
    index += batch % p.batch[d] * scale;
    scale *= p.batch[d];
  }
  return index;
}
size_t b_begin(const Plan& p, size_t index) {
  size_t offset = 0;
  for (size_t d = p.batch_rank; d-- > 0;) {
    if (!p.b_step[d]) continue;
    offset += index % p.batch[d] * p.b_step[d];
    index /= p.batch[d];
  }
  return offset;
}

// A panel of bytes, and what a tile is told of its columns.
void pack_bytes_panel(const Run& r, size_t which, size_t panel) {
  const Plan& p = plan_of(r.args->plan);
  const GemmOp& op = op_of(r.args->plan);
  const PackFormat f = format_of(p.kernel);
  const size_t stride_k = op.config.transpose_b ? 1 : p.ldb, stride_n = op.config.transpose_b ? p.ldb : 1,
               first = panel * f.nr, width = panel_width(f, p.n, panel);
  char* to = r.packed_b + which * p.packed_b;
  auto* offset = reinterpret_cast<int32_t*>(to + p.columns) + first;
  float* scale = reinterpret_cast<float*>(to + p.columns) + round_up(p.n, 16) + first;
  memset(offset, 0, width * sizeof *offset);
  pack_bytes(p.pack_b)(p.k, panel_columns(f, p.n, panel), width,
                       at(r.b, op.config.b_type, ptrdiff_t(b_begin(p, which) + first * stride_n)), stride_k, stride_n,
                       to + panel_offset(f, panel, p.k), offset);
  gemm_offsets(op.config.q, p.kernel, panel_columns(f, p.n, panel), p.k, op.offset ? op.offset + first : nullptr,
               offset);
  if (op.config.q.rounding != SKUA_ROUNDING_FLOAT) {
    int32_t *multiplier = reinterpret_cast<int32_t*>(scale), *shift = multiplier + round_up(p.n, 16);
    for (size_t j = 0; j < width; ++j) multiplier[j] = op.config.q.fixed.multiplier, shift[j] = op.config.q.fixed.shift;
    return;
  }
  for (size_t j = 0; j < width; ++j) scale[j] = op.config.q.scale;
}

void pack_panel(const Run& r, size_t which, size_t panel, void* to) {
  const Plan& p = plan_of(r.args->plan);
  const GemmConfig& c = op_of(r.args->plan).config;
  const PackFormat f = format_of(p.kernel);
  const size_t stride_k = c.transpose_b ? 1 : p.ldb, stride_n = c.transpose_b ? p.ldb : 1;
  code_of<GemmPackFn>(p.pack_b)(p.k, panel_columns(f, p.n, panel), panel_width(f, p.n, panel),
                                at(r.b, c.a_type, ptrdiff_t(b_begin(p, which) + panel * f.nr * stride_n)), stride_k,
                                stride_n, to);
}

void pack_b_task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  const GemmConfig& c = op_of(r.args->plan).config;
  const PackFormat f = format_of(p.kernel);
  const size_t panels = p.in_place ? 1 : panel_count(f, p.n), which = index / panels;
  const size_t panel = p.in_place ? panel_count(f, p.n) - 1 : index % panels;
  void* to = r.packed_b + which * p.packed_b;
  if (is_int8(c.a_type)) return pack_bytes_panel(r, which, panel);
  pack_panel(r, which, panel, p.in_place ? to : at(to, f.element, ptrdiff_t(panel_offset(f, panel, p.k))));
}

void pack_a_task(void* arg, size_t index, uint32_t) {  // stored [K, M]: rows of K with a stride of round_up(K, vector)
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  const Element type = op_of(r.args->plan).config.a_type;
  const size_t batch = index / r.pieces, piece = index % r.pieces;
  const size_t m0 = piece_begin(p.m, r.pieces, piece), m1 = piece_begin(p.m, r.pieces, piece + 1);
  const void* from = at(r.a, type, ptrdiff_t(batch_offset(p, p.a_step, batch) + m0));
  void* to = at(static_cast<void*>(r.packed_a + batch * p.packed_a), type, ptrdiff_t(m0 * p.width_a));
  if (is_int8(type)) pack_bytes(p.pack_a)(m1 - m0, p.k, p.width_a, from, 1, p.lda, to, nullptr);
  else code_of<GemmPackFn>(p.pack_a)(m1 - m0, p.k, p.width_a, from, 1, p.lda, to);
}

void multiply_task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  const GemmOp& op = op_of(r.args->plan);
  const size_t columns = index % r.grid.columns, rows = index / r.grid.columns % r.grid.rows,
               batch = index / r.grid.columns / r.grid.rows;
  const GemmSegment whole = {0, 0};
  GemmBlock g = block_of(p, op, &whole);
  const PackFormat f = g.format;
  if (!g.packed) {
    const size_t which = b_index(p, batch);
    g.packed = r.packed_b + which * p.packed_b;
    if (is_int8(op.config.a_type)) {
      g.offset = reinterpret_cast<const int32_t*>(static_cast<const char*>(g.packed) + p.columns);
      g.scale = reinterpret_cast<const float*>(g.offset) + round_up(p.n, 16);
      if (op.config.q.rounding != SKUA_ROUNDING_FLOAT)
        g.shift = reinterpret_cast<const int32_t*>(g.scale) + round_up(p.n, 16);
    }
    if (p.in_place) {
      g.in_place = at(r.b, f.element, ptrdiff_t(batch_offset(p, p.b_step, batch)));
      g.ldb = p.ldb;
      // only the last panel is there
      if (p.packed_b) g.packed = at(g.packed, f.element, -ptrdiff_t(panel_offset(f, panel_count(f, p.n) - 1, p.k)));
    }
  }
  const Element a_type = op.config.a_type, c_type = op.config.c_type;
  const void* a =
      r.packed_a ? r.packed_a + batch * p.packed_a : at(r.a, a_type, ptrdiff_t(batch_offset(p, p.a_step, batch)));
  const size_t lda = r.packed_a ? p.width_a : p.lda;
  void* c = at(r.c, c_type, ptrdiff_t(batch_offset(p, p.c_step, batch)));
  const void* residual = r.residual ? at(r.residual, c_type, ptrdiff_t(batch_offset(p, p.r_step, batch))) : nullptr;
  const ColumnRange range = columns_of(r.grid, p.n, columns);
  const size_t p0 = range.from / f.nr, p1 = ceil_div(range.to, f.nr);
  g.from = range.from;
  g.to = range.to;
  char* const own = r.scratch + worker * worker_bytes(p);
  g.scratch = own;
  g.rows = r.rows;
  if (p.row) return run_row(g, {a, c, residual, 1}, p0, p1);
  g.tile = p.tiles.here();
  g.a_step = ptrdiff_t(lda);
  g.dense = r.packed_a || lda == p.k;
  g.c_step = ptrdiff_t(p.ldc);
  g.residual_step = ptrdiff_t(p.ldr);
  const size_t m0 = piece_begin(p.m, r.grid.rows, rows), m1 = piece_begin(p.m, r.grid.rows, rows + 1);
  for (size_t panel = p0, next; panel < p1; panel = next) {
    next = p.by_panel ? panel + 1 : p1;
    if (p.by_panel) {
      void* const to = own + (worker_bytes(p) - p.panel);
      pack_panel(r, b_index(p, batch), panel, to);
      g.packed = at(to, f.element, -ptrdiff_t(panel_offset(f, panel, p.k)));
    }
    run_block(g, m0, m1, panel, next, [&](size_t m) {
      return RowPointers{at(a, a_type, ptrdiff_t(m * lda)), at(c, c_type, ptrdiff_t(m * p.ldc)),
                         residual ? at(residual, c_type, ptrdiff_t(m * p.ldr)) : nullptr, p.m - m};
    });
  }
}

void transposed_task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = plan_of(r.args->plan);
  const GemmOp& op = op_of(r.args->plan);
  const Element a_type = op.config.a_type, c_type = op.config.c_type;
  const size_t column = index % r.grid.columns, batch = index / r.grid.columns;
  const void* const b = at(r.b, a_type, ptrdiff_t(batch_offset(p, p.b_step, batch)));
  const void* const a0 =
      r.packed_a ? r.packed_a + batch * p.packed_a : at(r.a, a_type, ptrdiff_t(batch_offset(p, p.a_step, batch)));
  const size_t lda = r.packed_a ? p.width_a : p.lda;
  void* const c0 = at(r.c, c_type, ptrdiff_t(batch_offset(p, p.c_step, batch)));
  const void* const residual0 =
      r.residual ? at(r.residual, c_type, ptrdiff_t(batch_offset(p, p.r_step, batch))) : nullptr;
  const bool function = op.activation.kernel != nullptr,
             after = op.config.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
  const void *a[kTransposedRows], *residual[kTransposedRows];
  void* c[kTransposedRows];
  GemmTile t = {};
  t.a = a, t.c = c;
  t.k = p.k;
  t.ldb = p.ldb;
  t.c_type = c_type;
  t.finish = true;
  t.alpha = op.config.alpha, t.beta = op.config.beta;
  t.residual = residual0 && !(function && after) ? residual : nullptr;
  t.residual_after = after;
  t.low = op.activation.low, t.high = op.activation.high;
  const ColumnRange range = columns_of(r.grid, p.n, column);
  t.n = range.to - range.from;
  t.b = at(b, a_type, ptrdiff_t(range.from * p.ldb));
  t.bias = op.bias ? op.bias + range.from : nullptr;
  note_use(p.kernel);
  for (size_t m = 0; m < p.m; m += t.rows) {
    t.rows = min(p.m - m, kTransposedRows);
    for (size_t i = 0; i < t.rows; ++i) {
      a[i] = at(a0, a_type, ptrdiff_t((m + i) * lda));
      c[i] = at(c0, c_type, ptrdiff_t((m + i) * p.ldc + range.from));
      residual[i] = residual0 ? at(residual0, c_type, ptrdiff_t((m + i) * p.ldr + range.from)) : nullptr;
    }
    code_of<GemmTileFn>(p.kernel)(t);
  }
  if (!function) return;
  GemmBlock g = {};
  g.activation = op.activation;
  g.residual = skua_residual(op.config.residual);
  g.c_step = ptrdiff_t(p.ldc), g.residual_step = ptrdiff_t(p.ldr);
  note_use(op.activation.kernel);
  finish_rows(g, {nullptr, c0, residual0, p.m}, p.m, range.from, range.to - range.from);
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  const GemmOp& op = op_of(args.plan);
  if (!p.m || !p.n || !p.batches) return;
  if (p.only.run && (args.concurrency() == 1 || p.cycles < kAlone))
    return run_only(p.only, p.kernel, args.in<void>(0), args.out<void>(0),
                    op.config.residual ? args.in<void>(1) : nullptr);
  Run r = {};
  r.args = &args;
  r.a = args.in<void>(0);
  r.b = op.config.constant_b ? nullptr : args.in<void>(1);
  r.residual = op.config.residual ? args.in<void>(args.plan->n_inputs - 1) : nullptr;
  r.c = args.out<void>(0);
  auto* space = static_cast<char*>(args.workspace);
  r.packed_a = p.packed_a ? space : nullptr;
  r.packed_b = space + p.packed_a * p.batches;
  r.scratch = r.packed_b + p.packed_b * p.b_batches;
  if (p.staging.bytes && !is_int8(op.config.a_type))
    r.rows = find_kernel(op.ctx, gemm_tables, KernelKind::gemm_rows, -1, op.config.a_type);
  if (p.packed_a) {
    note_use(p.pack_a);
    r.pieces = pieces_for(args, ceil_div(p.m, 16), double(p.k) * 16);
    parallel(args, r.pieces * p.batches, pack_a_task, &r);
  }
  if (p.packed_b || p.panel) note_use(p.pack_b);
  if (p.packed_b) {
    parallel(args, p.b_batches * (p.in_place ? 1 : panel_count(format_of(p.kernel), p.n)), pack_b_task, &r);
  }
  if (p.transposed) {
    const size_t columns = ceil_div(p.n, kTransposedColumns),
                 pieces = pieces_for(args, columns * p.batches, p.cycles / double(columns));
    r.grid = {1, min(ceil_div(pieces, p.batches), columns), kTransposedColumns};
  } else if (p.by_panel) {
    const size_t nr = p.kernel->nr, panels = ceil_div(p.n, nr);
    const double packing = double(p.k) * double(nr) / 2;
    const size_t pieces = pieces_for(args, panels * p.batches, p.cycles / double(panels) + packing);
    r.grid = {1, min(ceil_div(pieces, p.batches), panels), nr};
  } else {
    r.grid = cut_tasks(args, p.grid, p.kernel, p.m, p.m, p.n, p.k);
  }
  parallel(args, p.batches * r.grid.rows * r.grid.columns, p.transposed ? transposed_task : multiply_task, &r);
}

void explain(const skua_plan* plan, Text& text) {
  const Plan& p = plan_of(plan);
  const GemmOp& op = op_of(plan);
  const Machine m = machine_for(p.kernel->isa);
  const double flops = 2.0 * double(p.m) * double(p.n) * double(p.k), cycles = p.cycles;
  text.add("  M %zu, N %zu, K %zu, batches %zu", p.m, p.n, p.k, p.batches);
  if (p.transposed)
    return text.add("; B read as it lies, %u rows of it at a time; sums in f32\n  predicted %.1f flops per cycle, "
                    "roofline %.1f\n  candidates:\n    rows_by_rows with %s: %.0f cycles predicted\n",
                    p.kernel->vector, cycles > 0 ? flops / cycles : 0, 2 * m.fma_ports * p.kernel->vector,
                    p.kernel->name, cycles);
  text.add("; tile %ux%u, %zu of K per pass\n", p.kernel->mr, p.kernel->nr, p.kc);
  if (cycles > 0)
    text.add("  predicted %.1f flops per cycle, roofline %.1f\n", flops / cycles,
             2 * m.fma_ports * p.kernel->vector * double(table_of(p.kernel).rate));
  if (!p.row) explain_cores(p.tiles, text);
  explain_types(p.kernel, skua_numerics(op.config.numerics),
                op.config.constant_b ? "weights packed"
                : p.in_place         ? "B read"
                                     : "B packed",
                text);
  text.add("  candidates:\n");
  choose_tile(op.ctx, p.m, p.n, p.k, op.config.constant_b ? &op.config.format : nullptr, &text, nullptr,
              types_of(op.config));
}

}  // namespace

const OpClass gemm_class = {
    .name = "gemm", .id = 1,
    .inputs = "A, B unless it is constant, the residual if there is one",
    .op_size = sizeof(GemmOp), .plan_size = sizeof(Plan), .config_offset = offsetof(GemmOp, config),
    .config_size = sizeof(GemmConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain, .remake = gemm_remake,
};

}  // namespace skua

using namespace skua;

extern "C" {

skua_status skua_gemm_f32(skua_context* context, size_t m, size_t n, size_t k, const float* a, size_t lda,
                          const float* b, size_t ldb, float* c, size_t ldc, const skua_executor* executor) {
  if (!context) return SKUA_INVALID("gemm_f32: context is NULL");
  if (context->gpu)
    return SKUA_UNSUPPORTED_(
        "gemm_f32: the context is on a GPU, the matrices are in the host's memory: use skua_gemm_create()");
  if (m && n && k && lda < k) return SKUA_INVALID("gemm_f32: lda is %zu, must be %zu or more", lda, k);
  if (m && n && k && ldb < n) return SKUA_INVALID("gemm_f32: ldb is %zu, must be %zu or more", ldb, n);
  if (m && n && ldc < n) return SKUA_INVALID("gemm_f32: ldc is %zu, must be %zu or more", ldc, n);
  if (m && n && k && !a) return SKUA_INVALID("gemm_f32: a is NULL");
  if (m && n && k && !b) return SKUA_INVALID("gemm_f32: b is NULL");
  if (m && n && !c) return SKUA_INVALID("gemm_f32: c is NULL");
  // The operator in this frame's memory: the same checks and the same path, without its allocations.
  GemmOp op;
  memset(static_cast<void*>(&op), 0, sizeof op);
  op.cls = &gemm_class;
  op.ctx = context;
  op.config.alpha = 1;
  SKUA_TRY(open(&op));
  skua_tensor shapes[2] = {skua_tensor_2d(SKUA_DTYPE_F32, m, k), skua_tensor_2d(SKUA_DTYPE_F32, k, n)};
  shapes[0].stride[0] = max(lda, 1); shapes[0].stride[1] = 1;
  shapes[1].stride[0] = max(ldb, 1); shapes[1].stride[1] = 1;
  skua_tensor result = skua_tensor_2d(SKUA_DTYPE_F32, m, n);
  result.stride[0] = max(ldc, 1); result.stride[1] = 1;
  alignas(16) char memory[round_up(sizeof(Plan), 16)];  // as skua_op_plan_size() has it
  skua_plan* plan;
  SKUA_TRY(skua_op_plan_init(&op, shapes, 2, &result, 1, memory, sizeof memory, &plan));
  // by the names that this function's caller knows; the plan has found that all of this fits the address space
  const auto apart = [&](const float* x, size_t rows, size_t ld, size_t columns) {
    const auto from = reinterpret_cast<uintptr_t>(x), to = reinterpret_cast<uintptr_t>(c);
    if (!rows || !columns || !m || !n) return true;
    return from + ((rows - 1) * ld + columns) * sizeof(float) <= to ||
           to + ((m - 1) * ldc + n) * sizeof(float) <= from;
  };
  const char* const meets = !apart(a, m, lda, k) ? "a" : !apart(b, k, ldb, n) ? "b" : nullptr;
  if (meets) return SKUA_INVALID("gemm_f32: c overlaps %s", meets);
  const size_t bytes = skua_plan_workspace(plan, executor ? executor->concurrency : 1);
  void* space = nullptr;
  if (bytes && !(space = allocate(context, bytes, SKUA_WORKSPACE_ALIGNMENT))) return out_of_memory("gemm_f32", bytes);
  const skua_buffer inputs[2] = {skua_host_buffer(a), skua_host_buffer(b)}, output = skua_host_buffer(c);
  const skua_status s = skua_plan_run(plan, inputs, 2, &output, 1, space, bytes, executor);
  release(context, space, bytes);
  return s;
}

}  // extern "C"
