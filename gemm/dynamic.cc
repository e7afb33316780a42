// Products of a quantised A: first every row becomes bytes in the workspace, then the rows meet panels of weights. See
// dynamic.h.
#include "gemm/dynamic.h"

#include <math.h>
#include "core/activation.h"

namespace skua {
namespace {

using Plan = DynamicPlan;
using Run = DynamicRun;

const DynamicOp& op_of(const skua_plan* plan) { return *static_cast<const DynamicOp*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }
const GemmNibblesTable& nibbles_of(const Kernel* kernel) { return code_of<GemmNibblesTableFn>(kernel)(); }

const Kernel* nibbles_kernel(const skua_context* ctx, uint32_t nr) {
  return kernel_of_width(ctx, gemm_dynamic_tables, 0, Element::s4, nr);
}

// s4: up to so many rows every few of them take nibbles apart again, where the kernel has no tiles of bytes any number.
// Beyond, a part of the depth becomes bytes that leave half of L1 to all else, for so many rows that sums and A stay in
// L2.
// 7: more make groups that tiles of bytes have
size_t most_few(const Kernel* kernel) {
  return nibbles_of(kernel).add_rows ? max(size_t(2) * kernel->mr, 7) : SIZE_MAX;
}
// Of many rows alone; NULL = none, or the filter names the other.
const Kernel* rows_kernel(const skua_context* ctx, const DynamicConfig& c, size_t rows, const Kernel* few) {
  const Kernel* k = rows < 16 || c.block % 64 ? nullptr
                                              : find_kernel(ctx, gemm_dynamic_tables, KernelKind::gemm_nibbles,
                                                            kNibblesRows, Element::s4);
  const auto named = [&](const Kernel* kernel) { return ctx->filter[0] && glob_match(ctx->filter, kernel->name); };
  return k && k->nr == c.nr && nibbles_of(few).add_rows && (named(k) || !named(few)) ? k : nullptr;
}
constexpr size_t kStrip = 192, kPartBytes = 16384;
size_t part_blocks(const DynamicConfig& c) { return min(dynamic_blocks(c), max(kPartBytes / c.nr / c.block, 1)); }
size_t part_bytes(const DynamicConfig& c) { return round_up(part_blocks(c) * c.block * c.nr, 64); }

skua_status open(skua_op* base) {
  DynamicOp& op = *static_cast<DynamicOp*>(base);
  const DynamicConfig& c = op.config;
  size_t vectors = 0, total = 0;
  const bool s4 = c.b_type == Element::s4;
  const auto is_float = [](Element e) { return e == Element::f32 || e == Element::f16 || e == Element::bf16; };
  const bool sane =
      c.n && c.k && c.n <= SIZE_MAX / 512 && c.k <= (uint64_t(1) << 31) && is_float(c.a_type) &&
      (c.c_type == Element::f32 || c.c_type == c.a_type) && is_float(c.scale_type) && (s4 || c.b_type == Element::s8) &&
      (s4 || c.in_floats ? c.block >= 8 && c.block % 8 == 0 && c.block <= 32768 && c.nr && c.nr <= 256 : !c.block) &&
      (s4 || !c.has_zeros) &&
      (c.in_floats ? c.in_floats == 1 && c.format.nr == c.nr && c.format.kr == 1 && c.format.element == Element::f32 &&
                         c.format.vector
                   : s4 || (c.format.nr && c.format.vector && c.format.kr));
  if (!sane || !dynamic_sizes(c, vectors, total) || total != op.weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "gemm: packed weights have a wrong size");
  SKUA_TRY(check_activation("gemm", c.activation));
  const Kernel* kernel = c.in_floats ? (weights_tile(op.ctx, c, 1, &c.format) ? weights_kernel(op.ctx, c) : nullptr)
                         : s4        ? nibbles_kernel(op.ctx, c.nr)
                                     : dynamic_tile(op.ctx, c, 1, &c.format, c.unsigned_a);
  if (!kernel)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                "gemm: weights are packed for panels of %u columns; this context (%s) has no such kernel",
                s4 || c.in_floats ? c.nr : c.format.nr, skua_context_isa(op.ctx));
  Activation activation;
  SKUA_TRY(resolve_activation(base, c.activation, activation));
  if (activation.kernel)
    return SKUA_UNSUPPORTED_(
        "gemm: epilogue.activation.kind is no clamp: with quantised weights, apply it as a unary operator");
  op.low = activation.low;
  op.high = activation.high;
  const auto* w = static_cast<const float*>(op.weights);
  op.bias = c.has_bias ? w : nullptr;
  op.scales = w + dynamic_vector(c);
  op.sums = w + 2 * dynamic_vector(c);
  op.panels = static_cast<const char*>(op.weights) + vectors;
  op.above_least = !s4 && !c.in_floats && all_above_least(kernel, op.panels, total - vectors);
  op.n_inputs = op.n_outputs = 1;
  return SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const DynamicOp& op = *static_cast<const DynamicOp*>(base);
  const DynamicConfig& c = op.config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.a_type)));
  const skua_tensor& a = s.inputs[0];
  if (a.rank < 2) return SKUA_INVALID("gemm: input 0 has rank %u, must be 2 or more", a.rank);
  if (a.shape[a.rank - 1] != c.k)
    return SKUA_INVALID("gemm: input 0 has K = %zu, the weights have %zu", a.shape[a.rank - 1], size_t(c.k));
  if (c.k > 1 && a.stride[a.rank - 1] != 1)
    return SKUA_INVALID("gemm: input 0 has innermost stride %zu, must be 1", a.stride[a.rank - 1]);
  p.outputs[0] = tensor(skua_dtype(c.c_type), a.rank);
  // One leading dimension may be a batch.
  p.m = a.shape[a.rank - 2];
  p.lda = a.stride[a.rank - 2];
  p.batches = 1;
  p.a_batch = 0;
  for (uint32_t d = 0; d + 1 < a.rank; ++d) p.outputs[0].shape[d] = a.shape[d];
  p.outputs[0].shape[a.rank - 1] = size_t(c.n);
  for (uint32_t d = 0; d + 2 < a.rank; ++d) {
    if (a.shape[d] == 1) continue;
    if (p.batches != 1)
      return SKUA_UNSUPPORTED_(
          "gemm: input 0 has two batch dimensions, with quantised weights one may be larger than 1: reshape it");
    p.batches = a.shape[d];
    p.a_batch = a.stride[d];
  }
  if (c.in_floats) return weights_plan(op, p);
  size_t rows = 0;
  if (!mul(p.m, p.batches, rows) || !mul(rows, dynamic_depth(c), p.rows_bytes) ||
      !mul(rows, sizeof(GemmRowQuant), p.quant_bytes) || p.rows_bytes > SIZE_MAX / 4)
    return SKUA_INVALID("gemm: the quantised rows are larger than the address space");
  p.rows_bytes = round_up(p.rows_bytes, 64);
  p.quant_bytes = round_up(p.quant_bytes, 64);
  p.sums_bytes = c.has_zeros ? round_up(rows * dynamic_blocks(c) * sizeof(int32_t), 64) : 0;
  p.quantize = find_kernel(op.ctx, gemm_dynamic_tables, KernelKind::gemm_quantize, 0, c.a_type);
  p.kernel = p.few =
      c.b_type == Element::s4 ? nibbles_kernel(op.ctx, c.nr) : dynamic_tile(op.ctx, c, rows, &c.format, c.unsigned_a);
  if (!p.quantize || !p.kernel)
    return SKUA_UNSUPPORTED_("gemm: a_type is %s, which is not in this build", skua_dtype_name(skua_dtype(c.a_type)));
  if (c.b_type == Element::s4)
    p.scratch = rows <= most_few(p.few) ? 0 : part_bytes(c) + round_up(min(rows, kStrip) * c.nr * sizeof(float), 64);
  else
    p.scratch = round_up(
        staging(p.kernel, c.unsigned_a ? Element::u8 : Element::s8, c.c_type, false, rows, size_t(c.n), 1, size_t(c.k))
            .bytes,
        64);
  // Zen 4: 1x4096x4096 0.81 of the time, in blocks of 32 0.85; two rows take as long.
  if (c.b_type == Element::s4)
    if (const Kernel* many = rows_kernel(op.ctx, c, rows, p.few)) p.kernel = many;
  const Machine m = machine_for(p.kernel->isa);
  p.fetched_by_core = kArch == Arch::x86_64 && m.streams > 2;
  p.pages = asks_by_pages(m, double(c.n) * double(c.k) / 2);
  p.algorithm = p.scratch && c.b_type == Element::s4 ? "quantize_and_multiply_s4_by_bytes"
                : c.b_type == Element::s4            ? "quantize_and_multiply_s4"
                                                     : "quantize_and_multiply_s8";
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op*, skua_plan* out) {
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& y = p.outputs[0];
  if (y.shape[y.rank - 1] > 1 && y.stride[y.rank - 1] != 1)
    return SKUA_INVALID("gemm: output 0 has innermost stride %zu, must be 1", y.stride[y.rank - 1]);
  p.ldc = y.stride[y.rank - 2];
  p.c_batch = 0;
  for (uint32_t d = 0; d + 2 < y.rank; ++d)
    if (y.shape[d] != 1) p.c_batch = y.stride[d];
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const Plan& p = plan_of(plan);
  return add_sat(p.rows_bytes + p.quant_bytes + p.sums_bytes, mul_sat(p.scratch, concurrency));
}

void quantize_task(void* arg, size_t index, uint32_t) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = *r.p;
  const DynamicConfig& c = r.op->config;
  const size_t depth = dynamic_depth(c), blocks = c.b_type == Element::s4 ? dynamic_blocks(c) : 0, rows = p.rows();
  for (size_t m = piece_begin(rows, r.row_pieces, index); m < piece_begin(rows, r.row_pieces, index + 1); ++m)
    code_of<GemmQuantizeFn>(p.quantize)(size_t(c.k), dynamic_a(r, m), c.unsigned_a, r.rows + m * depth, depth,
                                        r.quant[m], c.block, r.sums ? r.sums + m * blocks : nullptr);
}

GemmNibbles panel_of(const Run& r, size_t panel) {
  const DynamicOp& op = *r.op;
  const DynamicConfig& c = op.config;
  const size_t first = panel * c.nr;
  GemmNibbles t = {};
  t.a_step = dynamic_depth(c);
  t.sums_step = t.blocks = dynamic_blocks(c);
  t.block = c.block;
  t.scale_type = c.scale_type;
  t.b = op.panels + panel * t.blocks * dynamic_block_bytes(c);
  t.column_sums = op.sums + first;
  t.bias = op.bias ? op.bias + first : nullptr;
  t.c_type = c.c_type;
  t.n = min(c.nr, size_t(c.n) - first);
  t.low = op.low;
  t.high = op.high;
  t.fetched_by_core = r.p->fetched_by_core;
  t.pages = r.p->pages;
  return t;
}
void rows_of(const Run& r, size_t m, size_t count, size_t panel, GemmNibbles& t, void** to) {
  const DynamicConfig& c = r.op->config;
  for (size_t i = 0; i < count; ++i) to[i] = at(dynamic_c(r, m + i), c.c_type, ptrdiff_t(panel * c.nr));
  t.c = to;
  t.rows = r.quant + m;
}

// Rows m0..m1 of one panel, nibbles taken apart by each tile.
void few_rows(const Run& r, const GemmNibblesTable& tiles, size_t mr, size_t panel, size_t m0, size_t m1) {
  GemmNibbles t = panel_of(r, panel);
  void* to[8];
  size_t groups = ceil_div(m1 - m0, mr);
  // scaled sums of three rows are in registers
  if (!tiles.add_rows && t.block < 128) groups = max(groups, (m1 - m0) / 3);
  for (size_t g = 0; g < groups; ++g) {
    const size_t m = m0 + piece_begin(m1 - m0, groups, g), count = m0 + piece_begin(m1 - m0, groups, g + 1) - m;
    rows_of(r, m, count, panel, t, to);
    t.a = r.rows + m * t.a_step;
    t.sums = r.sums ? r.sums + m * t.sums_step : nullptr;
    tiles.at[count - 1](t);
  }
}
// At most kStrip rows, of parts of the depth that become bytes first; by `all` at once, if it is given.
void many_rows(const Run& r, const GemmNibblesTable& tiles, const GemmNibblesRows* all, size_t panel, size_t m0,
               size_t m1, char* scratch) {
  const DynamicConfig& c = r.op->config;
  GemmNibbles t = panel_of(r, panel);
  const size_t blocks = t.blocks, block_bytes = dynamic_block_bytes(c), part = part_blocks(c), rows = m1 - m0,
               groups = ceil_div(rows, tiles.add_rows);
  const char *const b = t.b, *const end = r.op->panels + ceil_div(size_t(c.n), c.nr) * blocks * block_bytes;
  float* const y = reinterpret_cast<float*>(scratch + part_bytes(c));
  t.bytes = scratch;
  for (size_t first = 0; first < blocks; first += part) {
    t.blocks = min(part, blocks - first);
    t.b = b + first * block_bytes;
    t.more = first != 0;
    for (size_t i = 0; i < t.blocks; ++i)
      tiles.unpack(t.b + i * block_bytes, t.block / 8, scratch + i * t.block * c.nr);
    if (all) {
      t.a = r.rows + m0 * t.a_step + first * t.block;
      t.sums = r.sums ? r.sums + m0 * t.sums_step + first : nullptr;
      t.y = y;
      all->add(t, rows);
      continue;
    }
    const char* next = t.b + t.blocks * block_bytes;
    for (size_t g = 0; g < groups; ++g) {
      const size_t m = piece_begin(rows, groups, g), count = piece_begin(rows, groups, g + 1) - m,
                   lines = t.blocks * t.block / 8 * 64;
      t.next = g * lines < t.blocks * block_bytes && size_t(end - next) >= lines ? next : nullptr;
      if (t.next) next += lines;
      t.a = r.rows + (m0 + m) * t.a_step + first * t.block;
      t.sums = r.sums ? r.sums + (m0 + m) * t.sums_step + first : nullptr;
      t.y = y + m * c.nr;
      tiles.add[count - 1](t);
    }
  }
  void* to[8];
  for (size_t m = 0, count; m < rows; m += count) {
    count = min(rows - m, 8);
    rows_of(r, m0 + m, count, panel, t, to);
    t.y = y + m * c.nr;
    tiles.finish(t, count);
  }
}

void nibbles_task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = *r.p;
  const DynamicConfig& c = r.op->config;
  const size_t rows = p.rows(), panels = ceil_div(size_t(c.n), c.nr), column = index % r.columns,
               piece = index / r.columns;
  const size_t m0 = piece_begin(rows, r.row_pieces, piece), m1 = piece_begin(rows, r.row_pieces, piece + 1),
               strips = ceil_div(m1 - m0, kStrip);
  const GemmNibblesTable& tiles = nibbles_of(p.few);
  const GemmNibblesRows* const all =
      p.kernel != p.few && m1 - m0 >= 16 * strips ? &code_of<GemmNibblesRowsFn>(p.kernel)() : nullptr;
  note_use(all ? p.kernel : p.few);
  if (all) all->enter();
  for (size_t panel = piece_begin(panels, r.columns, column); panel < piece_begin(panels, r.columns, column + 1);
       ++panel) {
    if (m1 - m0 <= most_few(p.few)) few_rows(r, tiles, p.few->mr, panel, m0, m1);
    else
      for (size_t i = 0; i < strips; ++i)
        many_rows(r, tiles, all, panel, m0 + piece_begin(m1 - m0, strips, i), m0 + piece_begin(m1 - m0, strips, i + 1),
                  r.scratch + worker * p.scratch);
  }
  if (all) all->leave();
}

void bytes_task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const Plan& p = *r.p;
  const DynamicOp& op = *r.op;
  const DynamicConfig& c = op.config;
  const size_t rows = p.rows(), n = size_t(c.n), depth = dynamic_depth(c), column = index % r.columns,
               piece = index / r.columns;
  const ColumnRange range = columns_of({r.row_pieces, r.columns, r.grain}, n, column);
  const GemmSegment whole = {0, 0};
  GemmBlock g = {};
  g.tile = p.kernel;
  g.format = c.format;
  g.n = n;
  g.segment_count = 1;
  g.k = size_t(c.k);
  g.segments = &whole;
  g.kc = g.k;
  g.packed = op.panels;
  g.packed_depth = g.k;
  g.alpha = 1;
  g.bias = op.bias;
  g.activation = {op.low, op.high, nullptr, 0, 0};
  g.a_step = ptrdiff_t(depth);
  g.dense = true;
  g.c_step = ptrdiff_t(p.ldc);
  g.a_type = c.unsigned_a ? Element::u8 : Element::s8;
  g.c_type = c.c_type;
  g.scratch = r.scratch + worker * p.scratch;
  g.scale = op.scales;
  g.column_sums = reinterpret_cast<const int32_t*>(op.sums);
  g.offset = g.column_sums + dynamic_vector(c);
  g.row_quant = r.quant;
  g.b_zero = packed_zero(Element::s8, 0, c.format.element);
  g.above_least = op.above_least;
  if (rows == 1 && table_of(p.kernel).row_at_once && has_row(p.kernel, n, g.k))
    return run_row(g, {r.rows, dynamic_c(r, 0), nullptr, 1}, range.from / c.format.nr, ceil_div(range.to, c.format.nr));
  g.from = range.from;
  g.to = range.to;
  run_block(g, piece_begin(rows, r.row_pieces, piece), piece_begin(rows, r.row_pieces, piece + 1),
            range.from / c.format.nr, ceil_div(range.to, c.format.nr), [&](size_t m) {
              return RowPointers{r.rows + m * depth, dynamic_c(r, m), nullptr, p.m - m % p.m};
            });
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  const DynamicOp& op = op_of(args.plan);
  const DynamicConfig& c = op.config;
  const size_t rows = p.rows(), n = size_t(c.n);
  if (!rows) return;
  auto* space = static_cast<char*>(args.workspace);
  Run r = {&p,
           &op,
           args.in<char>(0),
           args.out<char>(0),
           reinterpret_cast<uint8_t*>(space),
           reinterpret_cast<GemmRowQuant*>(space + p.rows_bytes),
           p.sums_bytes ? reinterpret_cast<int32_t*>(space + p.rows_bytes + p.quant_bytes) : nullptr,
           space + p.rows_bytes + p.quant_bytes + p.sums_bytes,
           1,
           1,
           p.kernel->nr};
  if (c.in_floats) return weights_run(args, r);
  note_use(p.quantize);
  r.row_pieces = max(min(pieces_for(args, rows, double(c.k) * 0.6), rows), 1);
  parallel(args, r.row_pieces, quantize_task, &r);
  const double products = double(rows) * double(n) * double(c.k);
  if (c.b_type == Element::s8) {
    const TaskGrid grid = cut_tasks(args, p.grid, p.kernel, rows, rows, n, size_t(c.k));
    r.row_pieces = grid.rows;
    r.columns = grid.columns;
    r.grain = grid.grain;
    return parallel(args, r.row_pieces * r.columns, bytes_task, &r);
  }
  // Panels first: each piece reads its own weights once. Rows too where panels are few.
  const size_t panels = ceil_div(n, c.nr),
               wanted = args.concurrency() > 1
                            ? max(pieces_for(args, rows * panels, products / 64 / double(rows * panels)), 1)
                            : 1;
  r.columns = min(panels, wanted);
  r.row_pieces = min(ceil_div(wanted, r.columns), ceil_div(rows, p.kernel->mr));
  parallel(args, r.row_pieces * r.columns, nibbles_task, &r);
}

void explain(const skua_plan* plan, Text& text) {
  const Plan& p = plan_of(plan);
  const DynamicConfig& c = op_of(plan).config;
  if (c.in_floats)
    return text.add(
        "  M %zu, N %zu, K %zu; weights packed as %s, a scale (%s) for every %u of the depth%s; %s; sums f32\n",
        p.rows(), size_t(c.n), size_t(c.k), skua_dtype_name(skua_dtype(c.b_type)),
        skua_dtype_name(skua_dtype(c.scale_type)), c.block, c.has_zeros ? " and a zero point" : "",
        p.panel_bytes ? "panels become f32 in the workspace" : "they become f32 in registers");
  text.add("  M %zu, N %zu, K %zu; rows of A become %s, each with its scale and zero point\n", p.rows(), size_t(c.n),
           size_t(c.k), c.unsigned_a ? "u8" : "s8");
  if (c.b_type == Element::s4)
    text.add("  weights packed as s4, a scale (%s) for every %u of the depth%s; sums of a block s32, of blocks f32\n",
             skua_dtype_name(skua_dtype(c.scale_type)), c.block, c.has_zeros ? " and a zero point" : "");
  else
    text.add("  weights packed as %s, %u of the depth together; sums s32\n",
             skua_dtype_name(skua_dtype(c.format.element)), c.format.kr);
}

}  // namespace

bool dynamic_sizes(const DynamicConfig& c, size_t& vectors, size_t& total) {
  size_t panels = 0;
  if (!mul(dynamic_vector(c), 4 * sizeof(float), vectors)) return false;
  if (c.b_type == Element::s8 && !c.in_floats) {
    if (!packed_bytes(c.format, size_t(c.n), size_t(c.k), panels)) return false;
  } else if (!mul(dynamic_block_bytes(c), dynamic_blocks(c), panels) ||
             !mul(panels, ceil_div(size_t(c.n), c.nr), panels)) {
    return false;
  }
  return add(vectors, round_up(panels, 64), total) && total <= SIZE_MAX / 2;
}

const Kernel* dynamic_tile(const skua_context* ctx, const DynamicConfig& c, size_t m, const PackFormat* format,
                           bool is_unsigned) {
  GemmTypes types;
  types.a = is_unsigned ? Element::u8 : Element::s8;
  types.c = c.c_type;
  return choose_tile(ctx, m, size_t(c.n), size_t(c.k), format, nullptr, nullptr, types);
}
const Kernel* kernel_of_width(const skua_context* ctx, Family family, uint16_t variant, Element type, uint32_t width) {
  struct Search {
    uint32_t width;
    const Kernel* best;
    bool fits(const Kernel* k) const { return !width || (k->nr ? k->nr == width : width % k->vector == 0); }
  } s = {width, nullptr};
  each_kernel(ctx, family, KernelKind::gemm_nibbles, variant, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!s.fits(k)) return;
    // Of the highest set: it comes first. A second one of that set is for logic apart.
    if (!s.best || (k->isa == s.best->isa && machine_for(k->isa).logic_apart)) s.best = k;
  }, &s, type, [](const Kernel* k, void* arg) { return static_cast<const Search*>(arg)->fits(k); });
  return s.best;
}
const Kernel* dynamic_nibbles(const skua_context* ctx) { return nibbles_kernel(ctx, 0); }

extern const OpClass gemm_dynamic_class;
const OpClass gemm_dynamic_class = {
    .name = "gemm", .id = 27,
    .op_size = sizeof(DynamicOp), .plan_size = sizeof(Plan), .config_offset = offsetof(DynamicOp, config),
    .config_size = sizeof(DynamicConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};

}  // namespace skua
