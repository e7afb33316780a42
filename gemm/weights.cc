// Products in float arithmetic of quantised weights: few rows make floats of the weights in registers, many rows
// multiply panels of floats made in the workspace. See dynamic.h.
#include "gemm/dynamic.h"

namespace skua {
namespace {

const GemmWeightsTable& table_of_weights(const Kernel* kernel) { return code_of<GemmWeightsTableFn>(kernel)(); }

// Rows up to which weights that are converted for every few rows cost less than a panel made f32.
size_t few(const Kernel* weights) { return max(weights->mr, 8); }

// Of the depth that is made f32 at a time. Parts leave L2 to A and C, so that each row group finds them near; but bytes
// come from memory faster as one long stream. Measured: AVX2 (Zen 3) 12x4096x4096 of nibbles 0.79 of the time, AVX-512
// (Zen 5) 32x4096x4096 of nibbles 0.9, of bytes 1.03. Sums go on in C, so that is of f32.
size_t part_of_depth(const DynamicConfig& c, const Kernel* tile) {
  const size_t k = size_t(c.k), of_set = tile->isa == Isa::avx2                                ? 512
                                         : tile->isa == Isa::avx512 && c.b_type == Element::s4 ? 256
                                                                                               : k;
  const size_t most = c.a_type == Element::f32 && c.c_type == Element::f32 ? of_set : k;
  return round_up(ceil_div(k, ceil_div(k, most)), 8);
}

GemmWeights panel_of(const DynamicRun& r, size_t panel) {
  const DynamicOp& op = *r.op;
  const DynamicConfig& c = op.config;
  GemmWeights t = {};
  t.b = op.panels + panel * dynamic_blocks(c) * dynamic_block_bytes(c);
  t.k = size_t(c.k);
  t.block = c.block;
  t.nr = c.nr;
  t.scale_type = c.scale_type;
  t.zeros = c.has_zeros;
  t.pages = r.p->pages;
  t.n = min(c.nr, size_t(c.n) - panel * c.nr);
  return t;
}

void few_rows(const DynamicRun& r, size_t m0, size_t m1, size_t p0, size_t p1) {
  const DynamicPlan& p = *r.p;
  const DynamicOp& op = *r.op;
  const DynamicConfig& c = op.config;
  const bool even = p.batches == 1 || p.quantize;
  note_use(p.weights);
  for (size_t panel = p0; panel < p1; ++panel)
    for (size_t m = m0; m < m1; m += 0) {
      GemmWeights t = panel_of(r, panel);
      const size_t first = panel * c.nr, left = even ? m1 - m : min(m1 - m, p.m - m % p.m), mr = p.weights->mr;
      t.rows = left > mr && left < 2 * mr ? (left + 1) / 2 : min(left, mr);
      void* to[16];
      for (size_t i = 0; i < t.rows; ++i) to[i] = at(dynamic_c(r, m + i), c.c_type, ptrdiff_t(first));
      t.a = p.quantize ? reinterpret_cast<const float*>(r.rows) + m * t.k : static_cast<const float*>(dynamic_a(r, m));
      t.a_step = p.quantize ? t.k : p.lda;
      t.c = to;
      t.c_type = c.c_type;
      t.bias = op.bias ? op.bias + first : nullptr;
      t.low = op.low;
      t.high = op.high;
      table_of_weights(p.weights).tile(t);
      m += t.rows;
    }
}

void many_rows(const DynamicRun& r, size_t m0, size_t m1, size_t p0, size_t p1, char* scratch) {
  const DynamicPlan& p = *r.p;
  const DynamicOp& op = *r.op;
  const DynamicConfig& c = op.config;
  const GemmSegment whole = {0, 0};
  GemmBlock g = {};
  g.tile = p.kernel;
  g.format = c.format;
  g.segment_count = 1;
  g.segments = &whole;
  g.alpha = 1;
  g.activation = {op.low, op.high, nullptr, 0, 0};
  g.a_step = ptrdiff_t(p.lda);
  g.c_step = ptrdiff_t(p.ldc);
  g.a_type = c.a_type;
  g.c_type = c.c_type;
  g.rows = p.quantize;
  g.packed = scratch;
  g.scratch = scratch + p.panel_bytes;
  note_use(p.weights);
  const size_t depth = size_t(c.k), part = part_of_depth(c, p.kernel);
  for (size_t panel = p0; panel < p1; ++panel) {
    GemmWeights t = panel_of(r, panel);
    const size_t first = panel * c.nr;
    g.n = t.n;
    g.bias = op.bias ? op.bias + first : nullptr;
    for (t.from = 0; t.from < depth; t.from = t.k) {
      t.k = min(t.from + part, depth);
      table_of_weights(p.weights).widen(t, reinterpret_cast<float*>(scratch));
      g.k = g.packed_depth = t.k - t.from;
      g.kc = depth_per_pass(p.kernel, 1, g.k, p.rows());
      g.goes_on = t.from > 0;
      g.unfinished = t.k < depth;
      run_block(g, m0, m1, 0, 1, [&](size_t m) {
        return RowPointers{at(dynamic_a(r, m), c.a_type, ptrdiff_t(t.from)),
                           at(dynamic_c(r, m), c.c_type, ptrdiff_t(first)), nullptr, p.m - m % p.m};
      });
    }
  }
}

void task(void* arg, size_t index, uint32_t worker) {
  const DynamicRun& r = *static_cast<const DynamicRun*>(arg);
  const DynamicPlan& p = *r.p;
  const size_t panels = ceil_div(size_t(r.op->config.n), r.op->config.nr), column = index % r.columns,
               piece = index / r.columns;
  const size_t m0 = piece_begin(p.rows(), r.row_pieces, piece), m1 = piece_begin(p.rows(), r.row_pieces, piece + 1);
  const size_t p0 = piece_begin(panels, r.columns, column), p1 = piece_begin(panels, r.columns, column + 1);
  if (p.panel_bytes) many_rows(r, m0, m1, p0, p1, r.scratch + worker * p.scratch);
  else few_rows(r, m0, m1, p0, p1);
}

}  // namespace

const Kernel* weights_kernel(const skua_context* ctx, const DynamicConfig& c) {
  return kernel_of_width(ctx, gemm_weights_tables, kWeightsVariant, c.b_type, c.format.vector);
}

const Kernel* weights_tile(const skua_context* ctx, const DynamicConfig& c, size_t m, const PackFormat* format) {
  GemmTypes types;
  types.a = c.a_type;
  types.c = c.c_type;
  types.strict = types.exact_b = true;  // f32 all through
  const Kernel* tile = choose_tile(ctx, m, size_t(c.n), size_t(c.k), format, nullptr, nullptr, types);
  const Kernel* weights =
      format || m > 8 ? nullptr
                      : find_kernel(ctx, gemm_weights_tables, KernelKind::gemm_nibbles, kWeightsVariant, c.b_type);
  if (!tile || !weights || (weights->vector == tile->vector && weights->vector != 8)) return tile;
  // Few rows never meet that tile; their weights become floats fastest in the longest vectors (Zen 4, where the model
  // streams one row by AVX2: 4096x4096 nibbles 0.97 ms, 0.70 with AVX-512). On AVX2 panels of two vectors fill the
  // registers with sums of four rows, of one and two rows those of three (Zen 3: one row of 4096x4096 bytes 1.1 ms,
  // with two 1.5; four rows 2.25 and 1.9).
  PackFormat panels = format_of(tile);
  panels.vector = uint16_t(weights->vector);
  panels.nr = uint16_t(panels.vector * (m <= 2 ? 3 : panels.vector == 16 ? 4 : 2));
  const Kernel* other = choose_tile(ctx, m, size_t(c.n), size_t(c.k), &panels, nullptr, nullptr, types);
  return other ? other : tile;
}

skua_status weights_plan(const DynamicOp& op, DynamicPlan& p) {
  const DynamicConfig& c = op.config;
  const size_t n = size_t(c.n), k = size_t(c.k);
  size_t rows = 0, bytes = 0;
  if (!mul(p.m, p.batches, rows)) return SKUA_INVALID("gemm: input 0 has more rows than the address space");
  p.weights = weights_kernel(op.ctx, c);
  const Kernel* tile = weights_tile(op.ctx, c, rows, &c.format);
  p.quantize = c.a_type == Element::f32 && c.c_type == Element::f32
                   ? nullptr
                   : find_kernel(op.ctx, gemm_tables, KernelKind::gemm_rows, -1, c.a_type);
  if (!p.weights || !tile || (!p.quantize && c.a_type != Element::f32))
    return SKUA_UNSUPPORTED_("gemm: no kernel in this build");
  p.quant_bytes = p.sums_bytes = p.rows_bytes = p.scratch = p.panel_bytes = 0;
  p.pages = asks_by_pages(machine_for(p.weights->isa),
                          double(n) * double(k) / (c.b_type == Element::s4 ? 2 : 1));
  if (rows <= few(p.weights)) {
    p.kernel = p.weights;
    if (!mul(rows * sizeof(float), k, bytes) || bytes > SIZE_MAX / 4)
      return SKUA_INVALID("gemm: the rows in f32 are larger than the address space");
    if (p.quantize) p.rows_bytes = round_up(bytes, 64);
    p.algorithm = "widen_in_registers";
  } else {
    p.kernel = tile;
    if (!mul(part_of_depth(c, tile), size_t(c.nr) * sizeof(float), bytes) || bytes > SIZE_MAX / 4)
      return SKUA_INVALID("gemm: a panel in f32 is larger than the address space");
    p.panel_bytes = round_up(bytes, 64);
    // The last panel may be narrower, and a narrow panel may take taller tiles of rows.
    const auto rows_for = [&](size_t columns) {
      return staging(tile, c.a_type, c.c_type, false, rows, columns, 1, k).bytes;
    };
    const size_t nr = size_t(c.nr), last = n % nr ? n % nr : nr;
    p.scratch = p.panel_bytes + round_up(max(rows_for(min(n, nr)), rows_for(last)), 64);
    p.algorithm = "widen_panels";
  }
  return SKUA_STATUS_OK;
}

void weights_run(const RunArgs& args, DynamicRun& r) {
  const DynamicPlan& p = *r.p;
  const DynamicConfig& c = r.op->config;
  const size_t rows = p.rows(), k = size_t(c.k), panels = ceil_div(size_t(c.n), c.nr);
  if (p.rows_bytes) {
    note_use(p.quantize);
    for (size_t m = 0; m < rows; ++m)
      code_of<GemmRowTableFn>(p.quantize)().widen(k, dynamic_a(r, m), reinterpret_cast<float*>(r.rows) + m * k);
  }
  // Panels first: each piece makes floats of its own weights. Rows too where panels are few.
  const double products = double(rows) * double(c.n) * double(k);
  const size_t wanted =
      args.concurrency() > 1 ? max(pieces_for(args, rows * panels, products / 16 / double(rows * panels)), 1) : 1;
  r.columns = min(panels, wanted);
  r.row_pieces = min(ceil_div(wanted, r.columns), ceil_div(rows, p.kernel->mr));
  parallel(args, r.row_pieces * r.columns, task, &r);
}

}  // namespace skua
