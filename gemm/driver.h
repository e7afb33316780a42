// What every operator that ends in a matrix product shares: the packed format, the choice of a tile, and the loop nest over tiles.
#pragma once
#include "core/activation.h"
#include "core/families.h"
#include "core/op.h"
#include "gemm/gemm_kernel.h"

namespace skua {

// ---- packed B ------------------------------------------------------------------------------------------------------------------
// Panels of `nr` columns, each [depth][width]; width = nr, in the last panel the columns left rounded up to `vector`. Equal formats mean
// interchangeable packed weights.
struct PackFormat {
  uint32_t nr, vector;
};
inline size_t panel_count(const PackFormat& f, size_t n) { return ceil_div(n, f.nr); }
inline size_t panel_columns(const PackFormat& f, size_t n, size_t panel) { return min(f.nr, n - panel * f.nr); }
inline size_t panel_width(const PackFormat& f, size_t n, size_t panel) { return round_up(panel_columns(f, n, panel), f.vector); }
inline size_t packed_floats(const PackFormat& f, size_t n, size_t depth) { return depth * round_up(n, f.vector); }
inline size_t panel_offset(const PackFormat& f, size_t panel, size_t depth) { return panel * f.nr * depth; }

// ---- choice --------------------------------------------------------------------------------------------------------------------
// Cycles of C[m x n] += A * B at this depth with this tile, from the ports, the latency and the bandwidth B streams through. cached: B was used just before.
double gemm_cycles(const Kernel* tile, size_t m, size_t n, size_t depth, bool cached = false);

// The cheapest tile that the context may use; with `format`, among those of that format. NULL if there is none. With text, every candidate
// and its predicted cycles is added to it.
const Kernel* choose_tile(const skua_context* ctx, size_t m, size_t n, size_t depth, const PackFormat* format, Text* text = nullptr, Choice* choice = nullptr);
inline PackFormat format_of(const Kernel* tile) { return {tile->nr, tile->vector}; }
GemmPackFn pack_kernel(const skua_context* ctx, const Kernel** kernel);  // of the highest instruction set

// ---- the loop nest -------------------------------------------------------------------------------------------------------------
constexpr size_t kMaxTileRows = 16;

// A product whose rows may be anywhere. It goes over segment_count * k of the depth; see gemm_kernel.h.
struct GemmBlock {
  const Kernel* tile;
  PackFormat format;
  size_t n;                    // columns of B
  size_t segment_count, k;
  const GemmSegment* segments;
  size_t kc;                   // depth of one pass, so that a panel's part stays in L2; whole segments, or a part of one
  const float* packed;         // panels
  size_t packed_depth;         // of the panels, whatever part of it the segments cover
  const float* in_place;       // row-major B read where it is, for panels whose last vector is whole; NULL = packed only
  size_t ldb;
  float alpha, beta;
  const float* bias;           // round_up(n, vector) values, or NULL
  Activation activation;
  skua_residual residual;
  ptrdiff_t a_step, c_step, residual_step;  // from a row to the next where rows are even
  size_t more_panels;          // that follow in calls of their own: the next one is fetched ahead all the same
};
size_t depth_per_pass(const Kernel* tile, size_t segment_count, size_t k, size_t rows = 0);  // rows that read A where it is; 0 = it is close

// Pointers of one row of C, A and the residual (residual NULL without one), column 0; `even` rows from here on, 1 or more, follow at the block's steps.
struct RowPointers {
  const float* a;
  float* c;
  const float* residual;
  size_t even;
};

// What a tile does not do: activations that are no clamp, and the residual after them. Rows by pointers; or, `even` of them, by steps.
void finish_rows(const GemmBlock& g, const GemmTile& t, size_t rows, bool even);
bool b_is_small(const Kernel* tile, size_t n, size_t depth);  // stays in L1 beside rows of A and C
// Rows that take all panels before the next do: all, a panel stays close meanwhile; but few of a C larger than L2 where B is small, so that C is written in order.
size_t rows_per_turn(const GemmBlock& g, size_t rows, size_t even);

// What is fetched into L2 ahead of its use: nothing where these panels stay in L2 or nearly so; a line of each row of the next panel with each group of rows; and for the only
// group all lines, `soon` (8 KB on: costs L3 3%, at 8 rows memory gives 1.5 times as much) or, of a B that is likely to come from memory, of the `next` panel (another 1.1; L3 0.8).
enum class Ahead { none, line, soon, next };
Ahead fetch_ahead(const GemmBlock& g, size_t panels, bool one_group);

// Rows [m0, m1) times panels [p0, p1). `row(m)` gives a row's pointers.
template <class Row> void run_block(const GemmBlock& g, size_t m0, size_t m1, size_t p0, size_t p1, Row row) {
  const GemmTileTable& tiles = code_of<GemmTileTableFn>(g.tile)();
  const size_t mr = g.tile->mr, depth = g.segment_count * g.k;
  if (m1 == m0) return;
  note_use(g.tile);
  if (g.activation.kernel) note_use(g.activation.kernel);
  const size_t per_turn = p1 - p0 > 1 ? rows_per_turn(g, m1 - m0, row(m0).even) : m1 - m0;
  const Ahead fetch = fetch_ahead(g, p1 - p0 + g.more_panels, m1 - m0 <= mr);
  size_t segment = 0, from = 0, done = 0;  // where the pass begins
  do {
    // One pass: several whole segments, or a part of one.
    size_t count = 1, k = g.k, off = from;
    if (g.kc < g.k) {
      k = min(g.kc, g.k - from);
      from += k;
      if (from == g.k) from = 0;
    } else {
      count = g.k ? min(g.kc / g.k, g.segment_count - segment) : g.segment_count;
    }
    for (size_t turn = m0; turn < m1; turn += per_turn)
      for (size_t p = p0, end = min(turn + per_turn, m1); p < p1; ++p) {
        const size_t columns = panel_columns(g.format, g.n, p), width = round_up(columns, g.format.vector), first = p * g.format.nr;
        const bool in_place = g.in_place && columns == width;
        const float* a[kMaxTileRows];
        float* c[kMaxTileRows];
        const float* residual[kMaxTileRows];
        GemmTile t;
        t.a = a; t.c = c;
        t.segments = g.segments + segment;
        t.segment_count = count;
        t.k = k;
        t.ldb = in_place ? g.ldb : width;
        t.b = in_place ? g.in_place + off * g.ldb + first : g.packed + panel_offset(g.format, p, g.packed_depth) + off * width;
        t.n = columns;
        t.load_c = done != 0;
        t.finish = done + count * k == depth;
        t.alpha = g.alpha; t.beta = g.beta;
        t.bias = g.bias ? g.bias + first : nullptr;
        const float* const* rest = g.residual != SKUA_RESIDUAL_NONE && t.finish ? residual : nullptr;
        const bool apart = t.finish && g.activation.kernel, late = apart && g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
        const bool laps = !apart && !t.load_c && g.beta == 0;
        t.residual_after = g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION;
        t.low = g.activation.low; t.high = g.activation.high;
        t.a_step = g.a_step; t.c_step = g.c_step; t.residual_step = g.residual_step;
        const size_t vectors = width / g.format.vector, tall = tiles.even_rows[vectors - 1];
        const bool whole_rows = (fetch == Ahead::soon || fetch == Ahead::next) && width == g.format.nr;
        const GemmTileFn* fn = whole_rows ? tiles.row : tiles.at + (vectors - 1) * mr;
        const GemmTileFn even = whole_rows ? nullptr : tiles.even[vectors - 1];
        // The next panel is fetched into L2 while this one is multiplied: a line of each of its rows with every group of rows, all lines if there is one group only.
        t.ahead = 0;
        if (fetch == Ahead::soon) t.ahead = ptrdiff_t(2048 / g.format.nr * t.ldb);
        else if (fetch != Ahead::none && (p + 2) * g.format.nr <= g.n && p + 1 < p1 + g.more_panels) t.ahead = ptrdiff_t(in_place ? g.format.nr : g.format.nr * g.packed_depth);
        size_t line = 0;
        for (size_t m = turn; m < end;) {
          size_t rows = 0, run = 0;
          do {
            const RowPointers q = row(m + rows);
            a[rows] = q.a + off;
            c[rows] = q.c + first;
            residual[rows] = q.residual ? q.residual + first : nullptr;
            if (!rows) {
              run = min(q.even, end - m);
              t.groups = even ? run / tall : 0;
              if (t.groups && apart) t.groups = min(t.groups, max(4096 / (tall * columns), 1));  // the activation reads C from L1
            }
          } while (!t.groups && ++rows < (end - m < 2 * mr ? (end - m > mr ? (end - m + 1) / 2 : end - m) : mr));
          t.residual = late ? nullptr : rest;
          if (t.groups) even(t);
          else fn[rows - 1](t);
          if (t.groups) rows = t.groups * tall;
          // Most of a tile's rows are left: a whole tile computes some of the rows before again, to the same bits.
          if (laps && t.groups && 3 * (run - rows) >= 2 * tall) {
            const ptrdiff_t back = ptrdiff_t(run - tall);
            a[0] += back * t.a_step;
            c[0] += back * t.c_step;
            if (residual[0]) residual[0] += back * t.residual_step;
            t.groups = 1;
            even(t);
            rows = run;
          }
          t.residual = rest;
          if (apart) finish_rows(g, t, rows, t.groups != 0);
          m += rows;
          line += t.groups ? t.groups : 1;
          t.ahead = t.ahead && line * 16 < g.format.nr ? t.ahead + ptrdiff_t(t.groups ? t.groups : 1) * 16 : 0;
        }
      }
    done += count * k;
    if (g.kc >= g.k) segment += count;
    else if (from == 0) ++segment;
  } while (done < depth);
}

// The only row of C times panels [p0, p1), without the loop nest. B is packed, in one segment, and no larger than what is read without fetching ahead: has_row().
bool has_row(const Kernel* tile, size_t n, size_t depth);
void run_row(const GemmBlock& g, const RowPointers& row, size_t p0, size_t p1);

// How rows and panels are cut into tasks: nearly equal pieces of both, as many for each worker. Every piece of rows streams all of its panels, so the model decides. m rows in
// `row_units` parts that may be cut apart; `cycles` for all of them.
struct TaskGrid {
  size_t rows, columns;  // pieces
};
TaskGrid cut_tasks(const RunArgs& args, const Kernel* tile, size_t m, size_t row_units, size_t n, size_t depth, double cycles);

}  // namespace skua
