#include "gemm/driver.h"

#include <math.h>
#include <string.h>

namespace skua {

static GemmSegment* prepared_segments(const GemmBlock& g, const Staging& s) {  // behind the prepared rows
  return reinterpret_cast<GemmSegment*>(static_cast<char*>(g.scratch) +
                                        round_up(round_up(s.rows, g.tile->mr) * s.row_bytes, 64));
}

bool all_above_least(const Kernel* tile, const void* panels, size_t bytes) {
  return table_of(tile).adds_products && (!bytes || !memchr(panels, 0x80, bytes));
}

// Where rows of A stay while all panels pass. A tile reads 2 to 3 bytes of A in a cycle, asked for a tile ahead. An L3
// with many times as much to give does for L2, and every pass or turn less is a gain (1024x1024x1024 on Zen 5: 219
// GFLOP/s in two passes, 248 in one of all rows; Zen 3: 66 and 76).
static bool l3_is_near(const Machine& m) { return m.l3_bytes >= 16; }
static size_t bytes_near(const Machine& m) { return l3_is_near(m) ? max(m.l2 / 2, m.l3 / 4) : m.l2 / 2; }

size_t depth_per_pass(const Kernel* tile, size_t segment_count, size_t k, size_t rows) {
  // All row groups read the part of a panel that a pass covers, so it should stay in L2; a panel streams from there as
  // fast as the multiply-adds need it, while every pass more loads and stores C (512x512x512: 98% of the peak in one
  // pass, 89% in passes that fit L1).
  const size_t depth = segment_count * k;
  if (table_of(tile).bytes) return max(depth, 1);  // C cannot hold sums
  const Machine m = machine_for(tile->isa);
  // Of an L3 that brings A as fast as it is needed, B's part may have half of L2 (Zen 5: 2048x2048x2048 230 to 260
  // GFLOP/s, 128x4096x4096 240 to 249); else a quarter, and less where A's part is to fit as well.
  const bool near = l3_is_near(m);
  size_t kc = max(m.l2 / (near ? 2 : 4) / (size_t(tile->nr) * element_bytes(table_of(tile).b)), 256);
  if (!near && double(rows) * double(depth) * 4 > double(bytes_near(m))) kc = max(kc / 2, 256);
  if (depth <= kc + kc / (near ? 4 : 2)) return max(depth, 1);
  if (segment_count > 1 && k <= kc) {
    const size_t per_pass = kc / k, passes = ceil_div(segment_count, per_pass);
    return ceil_div(segment_count, passes) * k;
  }
  // equal passes; a multiple of 4 keeps by-lane kernels on one order of sums
  return round_up(ceil_div(k, ceil_div(k, kc)), max(table_of(tile).kr, 4));
}

void finish_rows(const GemmBlock& g, const RowPointers& row, size_t rows, size_t first, size_t columns) {
  const bool residual = g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
  // rows without a gap are one
  const size_t together =
                   g.c_step == ptrdiff_t(columns) && (!residual || g.residual_step == ptrdiff_t(columns)) ? rows : 1,
               n = columns * together;
  for (size_t r = 0; r < rows; r += together) {
    auto* c = static_cast<float*>(at(row.c, Element::f32, ptrdiff_t(first) + ptrdiff_t(r) * g.c_step));
    apply_row(g.activation, n, c);
    if (!residual) continue;
    const auto* from =
        static_cast<const float*>(at(row.residual, Element::f32, ptrdiff_t(first) + ptrdiff_t(r) * g.residual_step));
    for (size_t j = 0; j < n; ++j) c[j] += from[j];
  }
}

void Pass::begin(const GemmBlock& g) {
  count = 1;
  k = g.k;
  off = from;
  if (kc < g.k) {
    k = min(kc, g.k - from);
    from += k;
    if (from == g.k) from = 0;
  } else {
    count = g.k ? min(kc / g.k, g.segment_count - segment) : g.segment_count;
  }
}

bool Pass::next(const GemmBlock& g) {
  done += count * k;
  if (kc >= g.k) segment += count;
  else if (from == 0) ++segment;
  return done < g.segment_count * g.k;
}

Staging staging(const Kernel* tile, Element a, Element c, bool function, size_t m, size_t n, size_t segment_count,
                size_t k) {
  const GemmTileTable& tiles = table_of(tile);
  Staging s = {tiles.pack_a || tiles.a != a, (tiles.c != c && !tiles.any_c) || (function && c != Element::f32), 0, 0,
               0};
  if (!s.prepares && !s.strip) return s;
  const Machine machine = machine_for(tile->isa);
  const size_t depth = segment_count * k, b_bytes = mul_sat(mul_sat(n, depth), element_bytes(tiles.b)), mr = tile->mr;
  s.rows = max(m, 1);
  if (s.prepares) {
    // A line more than a power of two: rows in different sets of the caches. Without a gap rows are flipped or widened
    // as one.
    const size_t padded = tiles.bytes ? segment_count * round_up(k, tiles.pack_kr) : round_up(depth, tiles.pack_kr);
    s.row_bytes = max(padded, 1) * bytes_of_a(tiles);
    if (tiles.pack_a || (tiles.bytes && !tiles.flip_rows)) s.row_bytes = round_up(s.row_bytes, 64);
    if (s.row_bytes % 512 == 0) s.row_bytes += 64;
    if (takes_wide_rows(tiles)) s.row_bytes = max(padded, 1) * bytes_of_a(tiles);  // as they lie in their panels anyway
    // Whole tiles of rows that stay in L1 beside a part of B: few where they meet one panel only; where B comes from
    // beyond L2, as many as L2 holds take each panel.
    const size_t vectors = tile->nr / tile->vector, wide = min(ceil_div(max(n, 1), tile->vector), vectors),
                 tall = tiles.even[wide - 1] ? tiles.even_rows[wide - 1] : mr;
    // Where tiles widen rows, nothing is beside those of a turn's first tile, and turns are long: with turns of half of
    // L1, two tiles of a depth of 576, layers of two and three panels take 4% longer (Zen 3).
    // On Arm packed rows come from L2 in order, beside a panel in L1: one turn then has rows enough for what a panel
    // costs to begin.
    const bool from_l2 = tiles.pack_a && kArch != Arch::x86_64 && n > tile->nr;
    // a line a cycle: what does not stay in L1 is soon back, and fewer turns are 3 to 5% of such layers (Zen 5)
    const bool fast_l2 = machine.l2_bytes > 48;
    // A B from beyond L2 is read anew with every turn: an L3 that is near gives back what a longer turn pushes out of
    // L2 (1024 channels, 14x14 in one turn instead of two: 1 to 2%).
    // Of what fills a good part of that L3, or comes from memory, every turn less is worth rows from L3 (Zen 3, f16:
    // 128x4096x11008 395 ms in turns of 8 rows, 152 in one; 128x4096x4096 76 and 62).
    // The rows are each worker's own: those of all cores that share an L3, eight at most, have half of it.
    const bool once = tiles.widens && l3_is_near(machine) && double(b_bytes) > double(machine.l3) / 4;
    const size_t in_l2 = !tiles.widens ? machine.l2 / 2
                         : once        ? max(machine.l3 / (2 * min(max(cpu().cores, 2), 8)), machine.l2 / 2)
                                       : min(bytes_near(machine), machine.l2);
    const size_t fit = (b_bytes > machine.l2 / 2 || (tiles.flip_rows && n > tile->nr) ? in_l2
                        : n <= tile->nr           ? machine.l1 / (fast_l2 && !tiles.flip_rows ? 2 : 6)
                        : from_l2 || tiles.widens ? machine.l2 / 4
                                                  : machine.l1 / 2) /
                       s.row_bytes;
    const size_t most = tiles.pack_a ? round_up(max(fit, 4 * mr), mr * mr)
                                     : max(fit / tall, n <= tile->nr && !tiles.widens ? 1 : 2) * tall;
    if (s.rows > most) s.rows = most;
    // packed loops may read a step beyond
    s.bytes =
        round_up(round_up(s.rows, mr) * s.row_bytes, 64) + round_up(segment_count * sizeof(GemmSegment), 64) + 128;
  }
  if (s.strip) s.bytes += kStripFloats * (sizeof(float) + (tiles.c == Element::f32 ? 0 : element_bytes(tiles.c)));
  return s;
}

size_t scratch_on_cores(const OnCores& tiles, Element a, Element c, bool function, size_t m, size_t n,
                        size_t segment_count, size_t k) {
  size_t bytes = 0;
  for (const Kernel* tile : tiles.of) bytes = max(bytes, staging(tile, a, c, function, m, n, segment_count, k).bytes);
  return bytes;
}

// What a tile of bytes is told of its columns.
static void set_columns(const GemmBlock& g, size_t first, GemmTile& t) {
  t.scale = g.scale + first;
  t.offset = g.offset + first;
  t.column_sums = g.row_quant ? g.column_sums + first : nullptr;
  t.row_quant = g.row_quant;
  t.b_zero = g.b_zero;
  t.row_terms = nullptr;
  t.terms_known = false;
  t.zero = g.zero;
  t.fits = g.fits;
  t.above_least = g.above_least;
  t.shift = g.shift ? g.shift + first : nullptr;
  t.single = g.single;
  t.b_zeros = g.b_zeros ? g.b_zeros + first : nullptr;
  t.residual_by = g.residual_by;
  t.positive = g.fits && g.small && !g.row_quant && !g.shift && !g.residual && !g.b_zeros &&
               ((g.c_type == Element::s8 && g.zero == -128) || (g.c_type == Element::u8 && g.zero == 0));
}

void set_panel(const GemmBlock& g, const Pass& pass, const Staging& s, size_t panel, bool in_place, GemmTile& t) {
  const GemmTileTable& tiles = table_of(g.tile);
  const Element type = g.format.element;
  const size_t begin = panel * g.format.nr, first = first_column(g, panel), columns = end_column(g, panel) - first;
  const size_t of_panel = panel_width(g.format, g.n, panel), width = round_up(columns, g.format.vector);
  t.segments = s.prepares ? prepared_segments(g, s) : g.segments + pass.segment;
  t.segment_count = pass.count;
  t.k = pass.k;
  t.ldb = in_place ? g.ldb : of_panel * g.format.kr;
  t.b = in_place ? at(g.in_place, type, ptrdiff_t(pass.off * g.ldb + first))
                 : at(g.packed, type,
                      ptrdiff_t(panel_offset(g.format, panel, g.packed_depth) + pass.off * of_panel +
                                (first - begin) * g.format.kr));
  if constexpr (kTileRegisters) t.b_step = ptrdiff_t(panel_offset(g.format, 1, g.packed_depth) * element_bytes(type));
  t.n = columns;
  t.c_type = s.strip ? tiles.c : g.c_type;
  t.alpha = g.alpha; t.beta = s.strip ? 0 : g.beta;
  t.bias = g.bias ? g.bias + first : nullptr;
  t.residual_after = g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
  t.low = s.strip ? -INFINITY : g.activation.low; t.high = s.strip ? INFINITY : g.activation.high;
  t.a_step = s.prepares ? ptrdiff_t(s.row_bytes / bytes_of_a(tiles)) : g.a_step;
  t.c_step = s.strip ? ptrdiff_t(min(width, round_up(columns, 16))) : g.c_step;  // whole vectors of f32
  t.residual_step = g.residual_step;
  t.next = nullptr;
  t.halves = nullptr;
  t.halves_type = g.a_type;
  t.halves_step = g.a_step;
  t.room = SIZE_MAX;
  t.line = s.prepares && s.strip ? 0 : g.line;
  t.a_gap = s.prepares ? 0 : g.a_gap;
  t.dense = s.prepares || g.dense;
  if constexpr (kTileRegisters) t.behind = s.prepares ? 0 : g.behind;
  t.c_gap = s.strip ? 0 : g.c_gap;
  t.residual_gap = s.strip ? 0 : g.residual_gap;
  t.block = g.block_sums ? kSumBlock : SIZE_MAX;
  t.overlaps = g.overlaps;
  t.fhm = tiles.half_sums && cpu().fhm;
  if (tiles.bytes) set_columns(g, first, t);
}

void tiles_across_lines(const GemmBlock& g, const GemmTile& t, GemmTileFn tile) {
  const size_t mr = g.tile->mr,
               lines_of_b = ceil_div(size_t(g.format.nr) * g.format.kr * element_bytes(g.format.element), 64);
  const void *a[kMaxTileRows], *residual[kMaxTileRows];
  void* c[kMaxTileRows];
  GemmTile one = t;
  one.a = a; one.c = c;
  if (t.residual) one.residual = residual;
  one.rows = mr;
  const void *next_a = t.a[0], *next_residual = t.residual ? t.residual[0] : nullptr;
  void* next_c = t.c[0];
  size_t left = t.in_line;
  const auto go_on = [&](ptrdiff_t by_a, ptrdiff_t by_c, ptrdiff_t by_residual) {
    next_a = at(next_a, g.a_type, by_a);
    next_c = at(next_c, t.c_type, by_c);
    if (t.residual) next_residual = at(next_residual, t.c_type, by_residual);
  };
  for (size_t i = 0; i < t.groups; ++i) {
    for (size_t r = 0; r < mr; ++r) {
      a[r] = next_a; c[r] = next_c; residual[r] = next_residual;
      go_on(t.a_step, t.c_step, t.residual_step);
      if (--left) continue;
      left = t.line;
      go_on(t.a_gap, t.c_gap, t.residual_gap);
    }
    one.ahead = t.ahead && i < lines_of_b ? t.ahead + ptrdiff_t(i) * 64 : 0;
    tile(one);
    if (one.row_terms) one.row_terms += mr;
  }
}

uint16_t panels_together(const GemmBlock& g, const GemmTile& t, size_t left) {
  if (!table_of(g.tile).many_panels(t)) return 1;
  // Sapphire Rapids, AMX: 2048x2048x2048 in groups of 512 KB 0.78 of the time of one group, 1024x1024x1024 in one 0.93
  // of those of 256 KB, 128x4096x4096 in groups of 256 KB 0.63.
  const Machine m = machine_for(g.tile->isa);
  // A panel that stays in L1 leaves room for rows that several taps read: nothing comes from L2 but new ones.
  if (t.segment_count > 1 && size_t(t.b_step) <= m.l1 / 2) return 1;
  const size_t l2 = m.l2, all = left * size_t(t.b_step);
  return uint16_t(min(all <= l2 / 2 ? left : max(l2 / 8 / size_t(t.b_step), 1), UINT16_MAX));
}

void next_panel(const GemmBlock& g, size_t rows, GemmTile& t, void** c, const void** residual) {
  const size_t panels = kTileRegisters ? t.panels : 1, nr = g.format.nr * panels;
  t.b = at(t.b, g.format.element, ptrdiff_t(panel_offset(g.format, panels, g.packed_depth)));
  for (size_t r = 0; r < rows; ++r) {
    c[r] = at(c[r], g.c_type, ptrdiff_t(nr));
    if (t.residual) residual[r] = at(residual[r], g.c_type, ptrdiff_t(nr));
  }
  if (t.bias) t.bias += nr;
  t.next = nullptr;
  if (!table_of(g.tile).bytes) return;
  t.scale += nr;
  t.offset += nr;
  if (t.column_sums) t.column_sums += nr;
  if (t.shift) t.shift += nr;
  if (t.b_zeros) t.b_zeros += nr;
  t.terms_known = t.row_terms != nullptr;
}

// One row of bytes: where lines are asked for up to L3 alone it is level or loses (Sapphire Rapids: 1x4096x1024 162 us,
// so 170).
static bool asks_for_one_row(const Machine& m) { return m.fetch_near > double(m.l3); }

constexpr size_t kShortly = 3072;  // bytes ahead
constexpr ptrdiff_t kPages = 1;    // some: a tile that goes by pages knows how far
// of a little more, a part stays there that lines fetched ahead would push out
static bool beyond_l2(const Machine& m, double bytes) { return bytes > 1.5 * double(m.l2); }

ptrdiff_t bytes_ahead(const GemmBlock& g, const Pass& pass, Ahead fetch, size_t ldb, size_t panel, size_t p0, size_t p1,
                      bool in_place) {
  const unsigned element = element_bytes(g.format.element);
  if (fetch == Ahead::pages) return kPages;
  if (fetch == Ahead::soon) {
    const size_t wide = size_t(g.format.nr) * g.format.kr * element, row = size_t(g.format.vector) * element;
    const bool shortly = table_of(g.tile).bytes ? double(g.n) * double(g.packed_depth) <= double(kSoon)
                                                : row == 64 && g.format.element == Element::f32;
    // Measured, lines of 64 bytes; 32 bytes a step read as fast at both. Rows behind the first group read L2: a Zen 4
    // begins them sooner where more is on its way (XNNPACK over ours 20x3072x768 0.85 to 1.06, 16x4096x4096 1.23 to
    // 1.40, 12x2048x2048 1.57 to 1.52).
    const bool far =
        kArch == Arch::x86_64 && shortly && !table_of(g.tile).bytes && machine_for(g.tile->isa).streams > 2;
    return ptrdiff_t((far ? 16384 : shortly ? kShortly : 8192) / wide * ldb * element);
  }
  if (fetch == Ahead::none) return 0;
  const auto bytes = [&](size_t rows) { return ptrdiff_t(rows * (ldb / g.format.kr) * element); };
  size_t from = 0;  // of the only panel, where the pass begins
  if (p1 - p0 == 1 && pass.kc < g.segment_count * g.k) {
    from = g.segments[pass.segment].b + pass.off;
    if (pass.done + pass.count * pass.k < g.segment_count * g.k)
      return bytes(pass.kc < g.k ? pass.k : g.segments[pass.segment + pass.count].b - from);
  }
  if ((panel + 2) * g.format.nr > g.n || panel + 1 >= p1 + g.more_panels) return 0;
  return ptrdiff_t((in_place ? g.format.nr : panel_offset(g.format, 1, g.packed_depth)) * element) - bytes(from);
}

void prepare_segments(const GemmBlock& g, const Pass& pass, const Staging& s) {
  GemmSegment* to = prepared_segments(g, s);
  for (size_t i = 0; i < pass.count; ++i) to[i] = {ptrdiff_t(i * pass.k), g.segments[pass.segment + i].b};
}

void prepare_rows(const GemmBlock& g, const Pass& pass, const Staging& s, const void* const* a, size_t rows,
                  size_t index) {
  const GemmTileTable& tiles = table_of(g.tile);
  const GemmSegment* from = g.segments + pass.segment;
  char* to = static_cast<char*>(g.scratch) + index * s.row_bytes;
  if (rows_as_one(g, pass)) {
    const void* first = at(a[0], g.a_type, ptrdiff_t(pass.off));
    return tiles.pack_a(1, &first, from, 1, rows * pass.k, to);
  }
  if (tiles.pack_a) {
    const void* first[kMaxTileRows];
    for (size_t r = 0; r < rows; ++r) first[r] = at(a[r], g.a_type, ptrdiff_t(pass.off));
    return tiles.pack_a(rows, first, from, pass.count, pass.k, to);
  }
  for (size_t i = 0; tiles.flip_rows && i < pass.count; ++i)
    tiles.flip_rows(rows, pass.k, at(a[0], g.a_type, from[i].a), g.a_step, to + i * pass.k, ptrdiff_t(s.row_bytes));
  if (tiles.flip_rows) return;
  if (!index) note_use(g.rows);
  for (size_t i = 0; i < pass.count; ++i)
    code_of<GemmRowTableFn>(g.rows)().widen_rows(rows, pass.k, at(a[0], g.a_type, ptrdiff_t(pass.off) + from[i].a),
                                                 g.a_step, reinterpret_cast<float*>(to) + i * pass.k,
                                                 s.row_bytes / sizeof(float));
}

void finish_strip(const GemmBlock& g, const Staging& s, const GemmTile& t, const RowPointers& row, size_t index,
                  size_t rows, size_t first) {
  const Element type = table_of(g.tile).c;
  const GemmRowTable& kernel = code_of<GemmRowTableFn>(g.rows)();
  note_use(g.rows);
  const size_t step = size_t(t.c_step);
  float* sums = static_cast<float*>(strip_of(g, s, Element::f32)) + index * step;
  if (type != Element::f32) kernel.widen(rows * step, at(strip_of(g, s, type), type, ptrdiff_t(index * step)), sums);
  const bool any = g.residual != SKUA_RESIDUAL_NONE;
  // Rows without a gap are one.
  const size_t together = step == t.n && g.c_step == ptrdiff_t(step) && (!any || g.residual_step == ptrdiff_t(step))
                              ? rows
                              : 1,
               wide = together * step, n = together > 1 ? wide : t.n;
  constexpr size_t kAtOnce = 64;
  for (size_t r0 = 0; r0 < rows; r0 += kAtOnce * together, sums += kAtOnce * wide) {
    const size_t count = min(kAtOnce, (rows - r0) / together);
    void* c[kAtOnce];
    const void* residual[kAtOnce];
    for (size_t r = 0; r < count; ++r) {
      c[r] = at(row.c, g.c_type, ptrdiff_t(first) + ptrdiff_t(r0 + r) * g.c_step);
      if (any) residual[r] = at(row.residual, g.c_type, ptrdiff_t(first) + ptrdiff_t(r0 + r) * g.residual_step);
    }
    GemmFinish f = {count,
                    n,
                    sums,
                    wide,
                    c,
                    any ? residual : nullptr,
                    t.residual_after,
                    g.beta,
                    g.activation.low,
                    g.activation.high};
    if (g.activation.kernel) {
      if (t.residual_after) f.residual = nullptr;
      if (f.residual || f.beta != 0) kernel.finish_in_sums(f);
      if (wide == n) apply_row(g.activation, count * wide, sums);
      else
        for (size_t r = 0; r < count; ++r) apply_row(g.activation, n, sums + r * wide);
      f.residual = any && t.residual_after ? residual : nullptr;
      f.beta = 0;
    }
    kernel.finish(f);
  }
}

bool asks_by_pages(const Machine& m, double bytes) {
  return kArch == Arch::x86_64 && m.asks_by_pages && beyond_l2(m, bytes);
}
// AMX's tiles do so in one segment.
static bool asks_by_pages(const GemmBlock& g, double bytes) {
  const GemmTileTable& tiles = table_of(g.tile);
  return tiles.pages && !g.in_place && (!tiles.enter || g.segment_count == 1) &&
         asks_by_pages(machine_for(g.tile->isa), bytes);
}

// Beyond what is read without fetching ahead: as many streams as memory is read best.
static bool in_streams(const Kernel* tile, const Machine& m, size_t n, size_t depth) {
  return m.streams > 2 && table_of(tile).panels_at_once > 2 &&
         double(n) * double(depth) * element_bytes(table_of(tile).b) > double(kSoon);
}

// Two streams of whole lines, where the core fetches those ahead better than prefetches do: rows of half lines gain
// nothing, of quarters they lose (Zen 5). Pairs of bf16 lose on a Sapphire Rapids, out of memory (1x4096x4096 2.31 to
// 2.68 ms).
static bool in_lines(const Kernel* tile, const Machine& m) {
  const GemmTileTable& tiles = table_of(tile);
  return m.streams == 2 && tile->vector * tiles.kr * element_bytes(tiles.b) == 64 && (m.logic_apart || !tiles.overlaps);
}

bool has_row(const Kernel* tile, size_t n, size_t depth) {
  size_t elements = 0;
  const GemmTileTable& tiles = table_of(tile);
  if (!tiles.panels || (takes_wide_rows(tiles) && depth > kWideRow) || !mul(n, depth, elements)) return false;
  const Machine m = machine_for(tile->isa);
  if (elements > kSoon / element_bytes(tiles.b) && m.asks_by_pages && tiles.pages) return tiles.bytes;
  return elements <= kSoon / element_bytes(tiles.b) || in_lines(tile, m) || in_streams(tile, m, n, depth) ||
         (m.streams > 2 && tiles.row_at_once);
}

size_t panels_at_once(const Kernel* tile, const Machine& m, size_t n, size_t depth) {
  if (in_streams(tile, m, n, depth)) return table_of(tile).panels_at_once;
  // pairs of bf16: L3 brings two as fast as one
  return new_streams(tile, m, n, depth) && (tile->nr >= m.fma_latency * tile->vector ||
                                            (table_of(tile).overlaps && double(n) * double(depth) * 2 <= double(m.l2)))
             ? 1
             : 2;
}

static void row_tile(const GemmBlock& g, size_t p0, size_t p1, GemmTile& t) {
  const size_t first = p0 * g.format.nr;
  t.k = g.k;
  t.b = at(g.packed, g.format.element, ptrdiff_t(panel_offset(g.format, p0, g.packed_depth)));
  t.n = min(p1 * g.format.nr, g.n) - first;
  t.groups = t.n * t.k > 8192 ? panels_at_once(g.tile, machine_for(g.tile->isa), t.n, t.k) : 2;
  t.load_c = false;
  t.finish = true;
  t.block = g.block_sums ? kSumBlock : SIZE_MAX;
  t.fhm = false;
  t.c_type = g.c_type;
  t.alpha = g.alpha; t.beta = g.beta;
  t.bias = g.bias ? g.bias + first : nullptr;
  t.residual_after = g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
  t.low = g.activation.low; t.high = g.activation.high;
  t.hard_swish = false;
  if (table_of(g.tile).bytes) {
    static constexpr GemmSegment whole = {0, 0};
    set_columns(g, first, t);
    t.segments = &whole;
    t.segment_count = 1;
    t.near = true;
    t.ahead = 0;
    t.pages = false;
    if (t.n * t.k > size_t(1) << 20) {
      const Machine m = machine_for(g.tile->isa);
      if (asks_by_pages(g, double(t.n) * double(t.k))) t.ahead = kPages, t.pages = true;
      else if (asks_for_one_row(m) && beyond_l2(m, double(t.n) * double(t.k))) t.ahead = kShortly;
    }
    t.ldb = round_up(t.n, g.format.vector) * g.format.kr;  // of one panel
  }
}

// Of half types: tiles of f32 write f32, and so do others where a function follows.
static bool row_strip(const GemmTileTable& tiles, Element a, Element c, bool function) {
  return a != Element::f32 && !is_int8(a) && c != Element::f32 && (tiles.a != a || function);
}

size_t row_scratch(Element a, Element c, const Kernel* tile, bool function, size_t k) {
  const GemmTileTable& tiles = table_of(tile);
  return (tiles.a == a ? 0 : round_up(k * sizeof(float), 64)) +
         (row_strip(tiles, a, c, function) ? kStripFloats * sizeof(float) : 0);
}

void run_row(const GemmBlock& g, const RowPointers& row, size_t p0, size_t p1) {
  note_use(g.tile);
  const GemmTileTable& tiles = table_of(g.tile);
  const bool strip = row_strip(tiles, g.a_type, g.c_type, g.activation.kernel);
  const Staging s = {false, strip, 0, 0, strip ? row_scratch(g.a_type, g.c_type, g.tile, true, g.k) : 0};
  const void *a = row.a, *from = nullptr;
  if (tiles.a != g.a_type && !tiles.bytes) {
    note_use(g.rows);
    code_of<GemmRowTableFn>(g.rows)().widen(g.k, row.a, static_cast<float*>(g.scratch));
    a = g.scratch;
  }
  const size_t most = strip ? max(kStripFloats / g.format.nr, 1) : p1 - p0;
  if (g.activation.kernel) note_use(g.activation.kernel);
  for (size_t p = p0; p < p1; p += most) {
    const ptrdiff_t first = ptrdiff_t(p * g.format.nr);
    void* c = at(row.c, g.c_type, first);
    if (row.residual) from = at(row.residual, g.c_type, first);
    GemmTile t;
    row_tile(g, p, min(p + most, p1), t);
    if (strip) {
      c = strip_of(g, s, Element::f32);
      t.c_type = Element::f32;
      t.c_step = ptrdiff_t(t.n);
      t.low = -INFINITY; t.high = INFINITY;
      t.beta = 0;
      tiles.panels(t, a, c, nullptr);
      finish_strip(g, s, t, row, 0, 1, size_t(first));
      continue;
    }
    tiles.panels(t, a, c,
                 g.residual == SKUA_RESIDUAL_NONE || (g.activation.kernel && t.residual_after) ? nullptr : from);
    if (!g.activation.kernel) continue;
    finish_rows(g, {nullptr, c, from, 1}, 1, 0, t.n);
  }
}

void prepare_row(const GemmBlock& g, const Activation* activation, OnlyRow& row) {
  const GemmTileTable& tiles = table_of(g.tile);
  const bool staged = !tiles.bytes && row_scratch(g.a_type, g.c_type, g.tile, activation->kernel, g.k),
             late = activation->kernel && g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
  row.run = staged || late ? nullptr : tiles.panels;
  row.function = activation->kernel ? activation : nullptr;
  row_tile(g, 0, panel_count(g.format, g.n), row.tile);
}

Far what_is_far(const GemmBlock& g, size_t rows) {
  // rows of several segments overlap
  const double a = g.segment_count > 1 ? 0 : double(rows) * double(g.k) * element_bytes(g.a_type),
               c = double(rows) * double(g.n) * element_bytes(g.c_type);
  // most regions of a convolution: before anything is asked of the machine
  if (max(a, c) < double(256 << 10)) return {};
  const Machine m = machine_for(g.tile->isa);
  return {a > 2 * double(m.l2), c > (g.tile->vector < 16 || !l3_is_near(m) ? double(m.l2) : double(m.l3) / 4)};
}

bool b_is_small(const Kernel* tile, size_t n, size_t depth) {
  size_t floats = 0;
  return mul(n, depth, floats) && floats <= machine_for(tile->isa).l1 / 2 / sizeof(float);
}

bool fetches_near(const GemmBlock& g, size_t rows) {
  const bool bytes = table_of(g.tile).bytes;
  const double size = double(g.n) * double(g.packed_depth);
  // most regions of a convolution: before anything is asked of the machine
  if (rows > g.tile->mr || (bytes ? size <= double(1 << 20) : rows == 1 || g.format.element != Element::f32))
    return false;
  const Machine m = machine_for(g.tile->isa);
  if (rows == 1) return asks_for_one_row(m) && size <= double(m.l3);
  return size * element_bytes(g.format.element) <= m.fetch_near;
}

// One stream of B beside so few products that the core runs lines ahead by itself, and prefetches hold it up (Zen 4:
// 4096x4096 under 2 to 8 rows of f32 0.55 to 0.8 of the time, by AVX2 under 2 to 4 0.5 to 0.75, 1.7 times as long under
// 6; bytes of VNNI under 1 to 6 0.5 to 1, under two tiles of 6 0.75 to 1, under 8 1.2. Without VNNI, and halves, they
// are asked for).
static bool fetched_by_core(const GemmBlock& g, const Machine& m, size_t rows) {
  if (kArch != Arch::x86_64 || m.streams <= 2) return false;
  return table_of(g.tile).bytes ? rows <= 6 && g.tile->isa == Isa::avx512vnni
                                : g.format.element == Element::f32 && (rows <= 4 || g.tile->vector == 16);
}

Ahead fetch_ahead(const GemmBlock& g, size_t panels, size_t rows) {
  const double panel = double(g.format.nr) * double(g.packed_depth) * element_bytes(g.format.element),
               bytes = double(panels) * panel;
  if (rows > g.tile->mr) {
    // Fewer groups of rows than a row of B has lines leave some to be waited for (Zen 5, beside others: 12x4096x4096 of
    // f32 4.3 to 3.2 ms).
    const size_t lines = ceil_div(size_t(g.format.nr) * g.format.kr * element_bytes(g.format.element), 64);
    if (bytes > double(kSoon) && rows < lines * g.tile->mr)
      return asks_by_pages(g, bytes) ? Ahead::pages
             : table_of(g.tile).bytes && rows <= 2 * g.tile->mr &&
                     fetched_by_core(g, machine_for(g.tile->isa), g.tile->mr)
                 ? Ahead::none
                 : Ahead::soon;
    return bytes > 65536 ? Ahead::line : Ahead::none;
  }
  const bool near = fetches_near(g, rows);
  // a task's part of B is where all of it is; regions of a convolution find it in L2
  const double all = g.segment_count == 1 ? panel * double(g.n) / double(g.format.nr) : bytes;
  if (!near && all <= double(kSoon)) return Ahead::none;
  const Machine m = machine_for(g.tile->isa);
  // Of 8 MB at most up to four rows are as well off with lines to L1 shortly before (1024x1024: two 0.94, six 1.18,
  // eight 1.08), and tiles of AMX with ends beside products.
  if (asks_by_pages(g, all) && (all > double(kSoon) || (rows > 4 && !table_of(g.tile).enter))) return Ahead::pages;
  if (!near && bytes <= double(kSoon)) return Ahead::none;
  if (fetched_by_core(g, m, rows)) return Ahead::none;
  // panels: else the next one pushes itself out, which only an L3 that is near gives back in time
  if (bytes > double(48 << 20) && ((near && g.format.element == Element::f32) || panel < double(m.l2 / 3)))
    return Ahead::next;
  // more than 4 are multiplied as fast as L3 brings the next
  return bytes > double(kSoon) || (near && rows <= 4 && beyond_l2(m, bytes)) ? Ahead::soon : Ahead::none;
}

size_t rows_per_turn(const GemmBlock& g, size_t rows, size_t even) {
  const Machine machine = machine_for(g.tile->isa);
  const size_t l2 = machine.l2, depth = min(g.kc, g.packed_depth);
  constexpr size_t kTurn = 168;  // whole tiles of 6 and of 14
  if (g.kc >= g.packed_depth && rows > kTurn && double(rows) * double(g.n) * sizeof(float) > double(l2 / 2) &&
      b_is_small(g.tile, g.n, g.packed_depth))
    return even < kTurn ? (kTurn + even - 1) / even * even : kTurn;  // whole lines
  // AMX: 128x4096x4096 of bytes in one turn 0.75 of the time of two
  const size_t element = kTileRegisters && table_of(g.tile).enter ? element_bytes(g.a_type) : sizeof(float);
  const size_t fit = max(bytes_near(machine) / element / max(depth, 1), 64);
  if (rows <= fit + fit / 4 || g.segment_count > 1) return rows;  // the rows of several segments overlap
  const size_t tall = table_of(g.tile).even_rows[g.format.nr / g.format.vector - 1];
  return round_up(ceil_div(rows, ceil_div(rows, fit)), max(tall, 1));
}

}  // namespace skua
