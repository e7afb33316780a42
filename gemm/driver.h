// What every operator that ends in a matrix product shares: the packed format, the choice of a tile, and the loop nest
// over tiles.
#pragma once
#include <skua/elementwise.h>
#include "core/activation.h"
#include "core/families.h"
#include "core/op.h"
#include "core/quantize.h"
#include "gemm/gemm_kernel.h"

namespace skua {

// ---- packed B -------------------------------------------------------------------------------------------------------
// Panels of `nr` columns, each [depth / kr][width][kr]; width = nr, in the last panel the columns left rounded up to
// `vector`. Equal formats mean interchangeable packed weights.
struct PackFormat {
  uint16_t nr, vector;
  Element element;
  uint8_t kr;       // steps of the depth that lie together; the depth is rounded up to them
  int16_t a_shift;  // of the tiles of bytes that the offsets beside the panels are for
};
inline bool operator==(const PackFormat& x, const PackFormat& y) {
  return x.nr == y.nr && x.vector == y.vector && x.element == y.element && x.kr == y.kr && x.a_shift == y.a_shift;
}
inline size_t panel_count(const PackFormat& f, size_t n) { return ceil_div(n, f.nr); }
inline size_t panel_columns(const PackFormat& f, size_t n, size_t panel) { return min(f.nr, n - panel * f.nr); }
inline size_t panel_width(const PackFormat& f, size_t n, size_t panel) {
  return round_up(panel_columns(f, n, panel), f.vector);
}
inline size_t packed_floats(const PackFormat& f, size_t n, size_t depth) {
  return ceil_div(round_up(depth, f.kr) * round_up(n, f.vector) * element_bytes(f.element), sizeof(float));
}
inline bool packed_bytes(const PackFormat& f, size_t n, size_t depth, size_t& bytes) {  // false: overflow
  return mul(round_up(depth, f.kr), round_up(n, f.vector), bytes) && mul(bytes, element_bytes(f.element), bytes);
}
// elements
inline size_t panel_offset(const PackFormat& f, size_t panel, size_t depth) {
  return panel * f.nr * round_up(depth, f.kr);
}
// Bytes on from an address of elements.
inline const void* at(const void* p, Element e, ptrdiff_t elements) {
  return static_cast<const char*>(p) + elements * ptrdiff_t(element_bytes(e));
}
inline void* at(void* p, Element e, ptrdiff_t elements) {
  return static_cast<char*>(p) + elements * ptrdiff_t(element_bytes(e));
}

// ---- choice ---------------------------------------------------------------------------------------------------------
// Cycles of C[m x n] += A * B at this depth with this tile, from the ports, the latency and the bandwidth B streams
// through. cached: B was used just before.
// taps: of the depth, when each element of A is prepared once for all of them. line: rows that are even, then others of
// another line; 0: all are.
double gemm_cycles(const Kernel* tile, size_t m, size_t n, size_t depth, bool cached = false, size_t taps = 1,
                   size_t line = 0);

// What a tile must be able to do beside its shape.
struct GemmTypes {
  Element a = Element::f32, c = Element::f32;  // in memory
  bool strict = false;                         // SKUA_NUMERICS_STRICT: sums in f32
  size_t segment = 0;                          // depth of each of several segments; 0 = one segment
  bool exact_b = false;                        // constant weights of f32 stay f32
  bool b_zero = false;                         // bytes: B has a zero point (of u8; s8 is symmetric)
  size_t taps = 1;                             // see gemm_cycles()
  // rows without a gap, and with the gap behind them in A; 0 = there is none
  size_t line = 0, line_rows = 0;
  bool runs = false;                           // taps of a row lie next to each other: a segment may be several
  // products of all taps of a row over those that have a pixel, in an image narrower than the kernel
  double run_waste = 1;
  // where taps do not fill groups of the depth: cycles to copy those of a row together; products of all of them over
  // those that have a pixel
  double gather = 0, gather_waste = 1;
  // B is an input that some tiles read where it is; others have it packed in each run
  bool in_place = false;
};

// What a line of rows costs a tile that takes runs: it multiplies the rows of the gap too, or begins again with each
// line.
// fewer than mr are copied
inline size_t rows_with_gaps(size_t line, size_t with_gap, size_t mr) {
  return min(line < mr ? 2 * mr : round_up(line, mr), max(line, with_gap));
}

// The cheapest tile that the context may use; with `format`, among those of that format. NULL if there is none. A
// kernel filter that leaves none is ignored.
// With text, every candidate and its predicted cycles is added to it.
const Kernel* choose_tile(const skua_context* ctx, size_t m, size_t n, size_t depth, const PackFormat* format,
                          Text* text = nullptr, Choice* choice = nullptr, const GemmTypes& types = {});
inline const GemmTileTable& table_of(const Kernel* tile) { return code_of<GemmTileTableFn>(tile)(); }
// The zero point of B as it lies in panels of that format, from that of B as given.
inline int32_t packed_zero(Element given, int32_t zero, Element packed) {
  return given == packed ? zero : given == Element::s8 ? zero + 128 : zero - 128;
}
inline PackFormat format_of(const Kernel* tile) {
  return {tile->nr, tile->vector, table_of(tile).b, table_of(tile).kr, table_of(tile).a_shift};
}
// A few rows use each element of B once or twice: packing would cost more than it saves.
inline bool reads_in_place(const Kernel* tile, Element b, size_t m) {
  return m <= 64 && table_of(tile).b == b && table_of(tile).kr == 1 && !is_int8(b);
}
// Of the highest instruction set; NULL if there is none from that type to that format.
const Kernel* find_pack(const skua_context* ctx, Element from, Element to, unsigned kr = 1);
GemmPackFn pack_kernel(const skua_context* ctx, const Kernel** kernel);  // f32 to f32
// of find_pack() from s8 or u8
inline GemmPackBytesFn pack_bytes(const Kernel* pack) { return code_of<GemmPackBytesFn>(pack); }
// of B ("weights packed") and of the sums
void explain_types(const Kernel* tile, skua_numerics numerics, const char* b, Text& text);

// On a chip of several kinds of cores: the tile, and those of in-order cores for the same panels.
OnCores tiles_on_cores(const skua_context* ctx, const Kernel* tile);

// ---- the loop nest --------------------------------------------------------------------------------------------------
constexpr bool kTileRegisters = kArch == Arch::x86_64;  // there may be AMX
constexpr size_t kMaxTileRows = 16, kTermRows = 504;  // whole tiles of 6, 8, 12 and 14

// A product whose rows may be anywhere. It goes over segment_count * k of the depth; see gemm_kernel.h.
struct GemmBlock {
  const Kernel* tile;
  PackFormat format;
  size_t n;                    // columns of B
  size_t segment_count, k;
  const GemmSegment* segments;
  // depth of one pass, so that a panel's part stays in L2; whole segments, or a part of one
  size_t kc;
  const void* packed;          // panels
  size_t packed_depth;         // of the panels, whatever part of it the segments cover
  // row-major B of the format's type read where it is, for panels whose last vector is whole; NULL = packed only
  const void* in_place;
  size_t ldb;
  float alpha, beta;
  const float* bias;           // round_up(n, vector) values, or NULL
  Activation activation;
  skua_residual residual;
  ptrdiff_t a_step, c_step, residual_step;  // from a row to the next where rows are even
  size_t more_panels;          // that follow in calls of their own: the next one is fetched ahead all the same
  Element a_type, c_type;      // of A, of C and the residual, in memory
  bool overlaps = false;       // see GemmTile::overlaps
  size_t behind = 0;           // see GemmTile::behind
  bool block_sums;             // sums of a tile in half precision go to f32 after kSumBlock terms
  const Kernel* rows;          // gemm_rows of a_type, where C's strips need it
  void* scratch;               // this worker's staging().bytes, 64-byte aligned; unused where that is 0
  // Tiles of bytes: of all columns and rows, see GemmTile. bias is NULL without row_quant; activation is its low and
  // high, alpha 1, beta 0.
  const float* scale = nullptr;
  const int32_t* offset = nullptr;
  const int32_t* column_sums = nullptr;
  const GemmRowQuant* row_quant = nullptr;  // of row 0 of the m that run_block counts
  int32_t b_zero = 0, zero = 0;
  bool fits = false;           // scales_fit()
  bool small = false;          // sums_small()
  bool above_least = false;    // all_above_least()
  const int32_t* shift = nullptr;
  bool single = false;
  QuantizedResidual residual_by = {0, 0};
  const int32_t* b_zeros = nullptr;
  // Lines of even rows: after so many rows there is a gap, in elements, and RowPointers::even is to the end of the
  // line. line = 0: rows are as they are.
  size_t line = 0;
  ptrdiff_t a_gap = 0, c_gap = 0, residual_gap = 0;
  bool dense = false;          // see GemmTile::dense
  bool prepared = false;       // rows lie as pack_a leaves them: takes_wide_rows()
  size_t from = 0, to = SIZE_MAX;  // columns of this task, where it begins or ends inside a panel
  // of a longer depth: C has sums of what came before; what comes after adds to them. C of f32, nothing staged
  bool goes_on = false, unfinished = false;
};
constexpr size_t kSumBlock = 64;
// No sum of `depth` products reaches 2^23: see GemmTile::positive. |a| is 255 at most less its zero point; b: the most
// that B is in amount; bias NULL: 0.
inline bool sums_small(size_t depth, size_t b, const int32_t* bias, size_t n) {
  if (depth >= 1 << 15) return false;
  const int32_t most = (1 << 23) - int32_t(depth * 255 * b < 1 << 23 ? depth * 255 * b : 1 << 23);
  bool small = true;
  for (size_t j = 0; bias && j < n; ++j) small &= bias[j] < most && bias[j] > -most;
  return small && most > 0;
}
// See GemmTile::above_least; of panels for this tile, if it asks.
bool all_above_least(const Kernel* tile, const void* panels, size_t bytes);
// All below 1: see GemmTile::fits.
inline bool scales_fit(const float* scale, size_t n) {
  bool fit = true;
  for (size_t j = 0; j < n; ++j) fit &= scale[j] < 1;
  return fit;
}
// rows that read A where it is; 0 = it is close
size_t depth_per_pass(const Kernel* tile, size_t segment_count, size_t k, size_t rows = 0);

// Pointers of one row of C, A and the residual (residual NULL without one), column 0; `even` rows from here on, 1 or
// more, follow at the block's steps. even_c: of C and the residual, where it is known to be more; rows of A that were
// copied are even anyway.
struct RowPointers {
  const void* a;
  void* c;
  const void* residual;
  size_t even;
  size_t even_c = 0;
};

// Where tile and memory differ in type, or the tile wants A in its own order, rows pass through the workspace: turns of
// rows are prepared once for all their panels, and C comes through a strip of f32 that stays in L1, from where the
// gemm_rows kernel finishes it.
struct Staging {
  bool prepares, strip;
  size_t rows;       // of a turn
  size_t row_bytes;  // of a prepared row, or the part of a panel that is a row's
  size_t bytes;      // of a worker's scratch; 0 = nothing is staged
};
constexpr size_t kStripFloats = 4096;
// function: the activation is no clamp.
// the bytes that any of the tiles takes
size_t scratch_on_cores(const OnCores& tiles, Element a, Element c, bool function, size_t m, size_t n,
                        size_t segment_count, size_t k);
Staging staging(const Kernel* tile, Element a, Element c, bool function, size_t m, size_t n, size_t segment_count,
                size_t k);

// One pass over the depth: whole segments, or a part of one.
struct Pass {
  size_t kc;
  size_t segment, from, done;  // where it begins
  size_t count, k, off;        // segments, and the depth of each from `off` on
  void begin(const GemmBlock& g);
  bool next(const GemmBlock& g);  // false: that was the last one
};

// What a tile does not do: activations that are no clamp, and the residual after them. `rows` even ones, of these
// columns of C.
void finish_rows(const GemmBlock& g, const RowPointers& row, size_t rows, size_t first, size_t columns);
struct Far {
  bool a, c;
};
Far what_is_far(const GemmBlock& g, size_t rows);  // of these rows, for GemmTile
bool b_is_small(const Kernel* tile, size_t n, size_t depth);  // stays in L1 beside rows of A and C
// Rows that take all panels before the next do: all, a panel stays close meanwhile; but few of a C larger than L2 where
// B is small, so that C is written in order.
size_t rows_per_turn(const GemmBlock& g, size_t rows, size_t even);

// What is fetched into L2 ahead of its use: nothing of small B; a line of each row of the next panel with each group of
// rows (in a network B comes from beyond L2 whatever its size); and for the only group, or the first of few, all lines,
// `soon` (3 or 8 KB on: costs L3 3%, at 8 rows memory gives 1.5 times as much) or, of a B that is likely to come from
// memory, of the `next` panel where L2 holds two (another 1.1; L3 0.8; one that pushes itself out takes 1.3 times as
// long as `soon`).
// pages: lines of four pages in turn, where that is faster than any of these (gemm/ahead.h).
constexpr size_t kSoon = size_t(8) << 20;  // bytes of B from which the first group of a few rows fetches ahead
enum class Ahead { none, line, soon, next, pages };
Ahead fetch_ahead(const GemmBlock& g, size_t panels, size_t rows);
// whether few rows ask for so much of B so
bool asks_by_pages(const Machine& m, double bytes);
// a few rows' lines, to L1: one row of floats, or of bytes from memory, is as fast as they come and gains nothing
// (1x1000x2048 loses a third)
bool fetches_near(const GemmBlock& g, size_t rows);

// The columns of a panel that are this task's.
inline size_t first_column(const GemmBlock& g, size_t panel) { return max(panel * g.format.nr, g.from); }
inline size_t end_column(const GemmBlock& g, size_t panel) {
  return min(panel * g.format.nr + panel_columns(g.format, g.n, panel), g.to);
}
// Even rows beyond the ends of lines by tiles that take pointers, for tables that take no lines: even rows leave too
// much of a short line to tiles whose rows are asked for one by one (Zen 4, bytes: 3x3 of 14x14x8-8 4.5 us, so 2.5, of
// 28x28x16-16 18.4 and 11.8, of 7x7x16-64 2.9 and 2.6; lines of 48 and more gain nothing).
constexpr size_t kShortLine = 48;
void tiles_across_lines(const GemmBlock& g, const GemmTile& t, GemmTileFn tile);
// The panel and the pass of a tile; what does not differ from one of the block's tiles to the next.
void set_panel(const GemmBlock& g, const Pass& pass, const Staging& s, size_t panel, bool in_place, GemmTile& t);
// The same of the panel behind t.panels of whole width, for a tile that took `rows` rows by pointers (even ones: 1).
void next_panel(const GemmBlock& g, size_t rows, GemmTile& t, void** c, const void** residual);
// Of `left` panels of whole width those that a call takes with all its rows (GemmTile::panels): what rows after rows
// read of B stays in L2.
uint16_t panels_together(const GemmBlock& g, const GemmTile& t, size_t left);
// How far on in B, for the next panel: a line of each of its rows with every group of rows, all lines if there is one
// group only.
// What comes next may be the next pass's part of the only panel. b: the pass's first row of it.
ptrdiff_t bytes_ahead(const GemmBlock& g, const Pass& pass, Ahead fetch, size_t ldb, size_t panel, size_t p0, size_t p1,
                      bool in_place);

// Where a tile that writes this type puts its sums: the strip, or what lies before it and is widened to it.
inline void* strip_of(const GemmBlock& g, const Staging& s, Element type) {
  return static_cast<char*>(g.scratch) + s.bytes -
         kStripFloats * (type == Element::f32 ? sizeof(float) : sizeof(float) + element_bytes(type));
}
void prepare_segments(const GemmBlock& g, const Pass& pass, const Staging& s);  // of prepared rows; first
// Even rows without a gap, in A and as pack_a leaves them.
inline bool rows_as_one(const GemmBlock& g, const Pass& pass) {
  const GemmTileTable& tiles = table_of(g.tile);
  return takes_wide_rows(tiles) && pass.count == 1 && g.a_step == ptrdiff_t(pass.k) && pass.k % tiles.pack_kr == 0;
}
// Prepares rows of a turn for the pass, the first its `index`-th: even ones from a[0] on, or with pack_a up to mr rows
// by pointers where they are not as one.
void prepare_rows(const GemmBlock& g, const Pass& pass, const Staging& s, const void* const* a, size_t rows,
                  size_t index);
// Even rows of the strip, from its `index`-th on, to C.
void finish_strip(const GemmBlock& g, const Staging& s, const GemmTile& t, const RowPointers& row, size_t index,
                  size_t rows, size_t first);

// Rows [m0, m1) times panels [p0, p1). `row(m)` gives a row's pointers. has_lines: GemmBlock::line may be set.
template <bool has_lines = false, class Row>
void run_block(const GemmBlock& g, size_t m0, size_t m1, size_t p0, size_t p1, Row row) {
  const GemmTileTable& tiles = table_of(g.tile);
  const size_t mr = g.tile->mr, depth = g.segment_count * g.k;
  if (m1 == m0) return;
  note_use(g.tile);
  if (g.activation.kernel) note_use(g.activation.kernel);
  const bool in_tile = tiles.hard_swish && (g.c_type == Element::f32 || tiles.any_c) && g.alpha == 1 && g.beta == 0 &&
                       g.activation.kernel && g.activation.kernel->variant == SKUA_UNARY_HARD_SWISH;
  const Staging s = g.prepared ? Staging{}
                               : staging(g.tile, g.a_type, g.c_type, g.activation.kernel && !in_tile, m1 - m0, g.n,
                                         g.segment_count, g.k);
  // Tiles widen rows themselves: of the first panel, a tile ahead. once: rows meet no other panel, and make room for
  // those after the next.
  // rows shorter than a vector are widened many at once
  const bool widens =
      s.prepares && tiles.widens && g.k >= g.format.vector && g.segment_count == 1 && row(m0).even >= m1 - m0;
  const size_t two =
      widens ? 2 * size_t(tiles.even_rows[ceil_div(end_column(g, p0) - first_column(g, p0), g.format.vector) - 1]) : 0;
  const bool once = widens && p1 - p0 == 1 && s.rows >= two;
  // a store of part of a vector whose rest meets memory nobody ever wrote takes as long as a page fault, each time
  if (once) static_cast<char*>(g.scratch)[two * s.row_bytes + 63] = 0;
  size_t per_turn = s.bytes && !once ? s.rows : p1 - p0 > 1 ? rows_per_turn(g, m1 - m0, row(m0).even) : m1 - m0;
  int32_t row_terms[kTermRows];  // bytes: what the first panel's tiles find of their rows
  const bool keeps_terms = g.b_zero && p1 - p0 > 1;
  if (keeps_terms) per_turn = min(per_turn, kTermRows);
  void* strip = s.strip ? strip_of(g, s, tiles.c) : nullptr;
  const Ahead fetch = fetch_ahead(g, p1 - p0 + g.more_panels, m1 - m0);
  const bool near = fetches_near(g, m1 - m0);
  const Far far = what_is_far(g, m1 - m0);
  // behind the panels of whole width
  const size_t whole_end = p1 - (end_column(g, p1 - 1) - first_column(g, p1 - 1) < g.format.nr);
  Pass pass = {};
  pass.kc = g.c_type == Element::f32 && !s.strip && !tiles.bytes ? g.kc : max(depth, 1);  // sums stay in f32, or s32
  if (tiles.enter) tiles.enter(min(m1 - m0, mr));
  do {
    pass.begin(g);
    const bool finish = !g.unfinished && pass.done + pass.count * pass.k == depth,
               apart = finish && g.activation.kernel && !s.strip && !in_tile;
    if (s.prepares) prepare_segments(g, pass, s);
    for (size_t turn = m0; turn < m1; turn += per_turn) {
      const size_t end = min(turn + per_turn, m1);
      const bool as_one = rows_as_one(g, pass);
      if (s.prepares && !widens)
        for (size_t m = turn, rows = 0; m < end; m += rows) {
          const void* a[kMaxTileRows];
          const RowPointers q = row(m);
          a[0] = q.a;
          rows = min(tiles.pack_a && !as_one ? mr : q.even, end - m);
          if (tiles.pack_a && !as_one)
            for (size_t i = 1; i < rows; ++i) a[i] = row(m + i).a;
          prepare_rows(g, pass, s, a, rows, m - turn);
        }
      for (size_t p = p0; p < p1; ++p) {
        const size_t first = first_column(g, p), columns = end_column(g, p) - first,
                     width = round_up(columns, g.format.vector);
        const bool in_place = g.in_place && columns == width;
        const void* a[kMaxTileRows];
        void* c[kMaxTileRows];
        const void* residual[kMaxTileRows];
        GemmTile t;
        t.a = a; t.c = c;
        set_panel(g, pass, s, p, in_place, t);
        if (s.prepares && !tiles.pack_a && !widens && p == p0 && end < m1 && pass.count == 1 &&
            g.a_step == ptrdiff_t(pass.k))
          t.next = row(end).a;
        if (once) t.room = 2;
        t.load_c = g.goes_on || pass.done != 0;
        t.finish = finish;
        t.residual = g.residual != SKUA_RESIDUAL_NONE && finish && !s.strip &&
                             !(apart && g.residual == SKUA_RESIDUAL_AFTER_ACTIVATION)
                         ? residual
                         : nullptr;
        if (in_tile) t.low = -3;
        t.hard_swish = in_tile;
        const bool laps = !t.load_c && t.beta == 0 && !tiles.pack_a;
        const size_t vectors = width / g.format.vector;
        const bool whole_rows = fetch >= Ahead::soon && width == g.format.nr;
        const bool walks = has_lines && g.line && g.line < kShortLine && !tiles.lines && !g.row_quant && !s.prepares &&
                           !s.strip && !whole_rows;
        const size_t tall = walks ? mr : max(tiles.even_rows[vectors - 1], 1);
        const GemmTileFn* fn = whole_rows ? tiles.row : tiles.at + (vectors - 1) * mr;
        GemmTileFn even = whole_rows ? nullptr : tiles.even[vectors - 1];
        if constexpr (kTileRegisters) t.entered = uint16_t(min(m1 - m0, mr)), t.panels = 1;
        t.near = near;
        t.pages = fetch == Ahead::pages;
        t.a_far = far.a && p == p0 && !s.prepares;
        t.c_far = far.c && !s.strip;
        t.ahead = bytes_ahead(g, pass, fetch, t.ldb, p, p0, p1, in_place);
        size_t fetched = 0;
        const bool lines = has_lines && t.line && (tiles.lines || walks);
        if (!lines) t.line = 0;
        // at row m, the index-th of the strip
        const auto point = [&](size_t i, size_t m, size_t index) __attribute__((always_inline)) {
          const RowPointers q = row(m);
          a[i] = s.prepares ? static_cast<const char*>(g.scratch) + (once ? i : m - turn) * s.row_bytes
                            : at(q.a, g.a_type, ptrdiff_t(pass.off));
          c[i] = s.strip ? at(strip, tiles.c, ptrdiff_t(index) * t.c_step) : at(q.c, g.c_type, ptrdiff_t(first));
          residual[i] = q.residual ? at(q.residual, g.c_type, ptrdiff_t(first)) : nullptr;
          if (widens && p == p0 && !i) t.halves = at(q.a, g.a_type, ptrdiff_t(pass.off) + g.segments[0].a);
          return tiles.bytes && s.prepares && !lines ? max(q.even, q.even_c) : q.even;
        };
        const size_t most = s.strip ? max(kStripFloats / width / tall, 1) * tall : end - turn;
        for (size_t m = turn; m < end;) {
          size_t rows = 0, run = 0;
          do {
            const size_t even_rows = point(rows, m + rows, rows);
            if (!rows) {
              t.in_line = even_rows;
              run = min(lines || (s.prepares && s.strip) ? end - m : min(even_rows, end - m), most);
              // packed rows: what follows begins with a panel
              if (kTileRegisters && tiles.runs && tiles.pack_a && run < end - m) run -= run % mr;
              t.groups = walks ? run / mr - (run > mr && run % mr) : !even || !run ? 0 : tiles.runs ? 1 : run / tall;
              // A last row alone would read the panel for itself, of bytes and pairs twice as long as it multiplies:
              // the last tile's rows and this one are two halves.
              if ((tiles.bytes || tiles.overlaps) && !tiles.pack_a && tall == mr && t.groups && run == end - m &&
                  run == t.groups * tall + 1)
                --t.groups;
            }
          } while (!t.groups &&
                   ++rows < (end - m < 2 * mr && !tiles.pack_a ? (end - m > mr ? (end - m + 1) / 2 : end - m)
                                                               : min(mr, end - m)));
          t.row_quant = g.row_quant ? g.row_quant + m : nullptr;
          if (keeps_terms) t.row_terms = row_terms + (m - turn), t.terms_known = p > p0;
          t.rows = t.groups ? run : rows;
          if (widens && p == p0 && !t.groups) {
            const void* from = row(m).a;
            prepare_rows(g, pass, s, &from, rows, once ? 0 : m - turn);
          }
          if (t.groups) rows = tiles.runs ? run : t.groups * tall;
          const bool once_all = rows == end - turn && columns == g.format.nr && !widens && !s.strip && !g.in_place;
          const auto together = [&]() -> uint16_t {
            if constexpr (kTileRegisters)
              if (once_all && t.groups && tiles.many_panels) return panels_together(g, t, whole_end - p);
            return 1;
          };
          size_t taken = together();
          if constexpr (kTileRegisters) t.panels = uint16_t(taken);
          if (t.groups) walks ? tiles_across_lines(g, t, fn[mr - 1]) : even(t);
          else fn[rows - 1](t);
          // Most of a tile's rows are left: a whole tile computes some of the rows before again, to the same bits.
          if (const size_t left = run - rows; laps && t.groups && left < tall && 3 * left >= 2 * tall &&
                                              (left > mr || left * vectors < (tiles.bytes ? 10 : 8))) {
            const size_t back = run - tall;
            if (g.row_quant) t.row_quant += back;
            if (keeps_terms) t.row_terms += back;
            t.in_line = point(0, m + back, back);
            t.groups = 1;
            walks ? tiles_across_lines(g, t, fn[mr - 1]) : even(t);
            rows = run;
          }
          for (size_t i = 0, even_rows = 0; s.strip && i < rows; i += even_rows) {
            const RowPointers q = row(m + i);
            even_rows = min(q.even, rows - i);
            finish_strip(g, s, t, q, i, even_rows, first);
          }
          // Panels that one call takes with all rows differ by where they are.
          while (once_all && p + taken < whole_end) {
            next_panel(g, t.groups ? 1 : rows, t, c, residual);
            p += taken;
            taken = together();
            if constexpr (kTileRegisters) t.panels = uint16_t(taken);
            t.ahead = bytes_ahead(g, pass, fetch, t.ldb, p, p0, p1, false);
            if (t.groups) walks ? tiles_across_lines(g, t, fn[mr - 1]) : even(t);
            else fn[rows - 1](t);
          }
          p += taken - 1;
          m += rows;
          // the rest finds B in L2
          if (whole_rows) fn = tiles.at + (vectors - 1) * mr, even = tiles.even[vectors - 1], t.ahead = 0;
          fetched += t.groups ? t.groups : 1;
          t.ahead = t.ahead && fetched * 64 < size_t(g.format.nr) * g.format.kr * element_bytes(g.format.element)
                        ? t.ahead + ptrdiff_t(t.groups ? t.groups : 1) * 64
                        : 0;
        }
      }
      for (size_t m = turn, rows = 0; apart && m < end; m += rows) {
        const RowPointers q = row(m);
        rows = min(q.even, end - m);
        finish_rows(g, q, rows, first_column(g, p0), end_column(g, p1 - 1) - first_column(g, p0));
      }
    }
  } while (pass.next(g));
  if (tiles.leave) tiles.leave();
}

// The only row of C times panels [p0, p1), without the loop nest. B is packed, in one segment, and of a size and form
// that is read without fetching ahead: has_row().
bool has_row(const Kernel* tile, size_t n, size_t depth);
// Panels that it takes side by side. Two are twice the chains of sums; but they are two streams that begin anew with
// every pair, which costs nearly half of the speed where L2 gives almost a line a cycle and there are many. One panel
// of as many vectors as a sum's latency keeps up with L2, as one stream through all (Zen 5: 48-1152 1.32 us instead of
// 1.83, 168-672 2.5 instead of 3.7).
inline bool new_streams(const Kernel* tile, const Machine& m, size_t n, size_t depth) {
  return m.l2_bytes > 48 && n > 4 * tile->nr &&
         double(n) * double(depth) * element_bytes(table_of(tile).b) > double(m.l1);
}
size_t panels_at_once(const Kernel* tile, const Machine& m, size_t n, size_t depth);
void run_row(const GemmBlock& g, const RowPointers& row, size_t p0, size_t p1);
size_t row_scratch(Element a, Element c, const Kernel* tile, bool function, size_t k);  // bytes that it takes
// The same as part of a plan, for all panels and one worker: what is between a run and the product would take as long
// as a small product.
struct OnlyRow {
  // NULL: there are more rows, they pass through the workspace, or a residual follows a function
  GemmRowFn run;
  const Activation* function;  // of the operator; NULL: the clamp is all
  GemmTile tile;
};
void prepare_row(const GemmBlock& g, const Activation* activation, OnlyRow& row);
inline void run_only(const OnlyRow& row, const Kernel* tile, const void* a, void* c, const void* residual) {
  note_use(tile);
  row.run(row.tile, a, c, residual);
  if (!row.function) return;
  note_use(row.function->kernel);
  apply_row(*row.function, row.tile.n, c);
}

// How rows and columns are cut into tasks: nearly equal pieces of both, as many for each worker. Every piece of rows
// streams all of its panels, so the model decides. m rows on `lines` that stay whole, for each of `groups` of columns.
// Pieces of columns are whole panels, or whole vectors where shares of panels are unequal.
struct TaskGrid {
  size_t rows, columns;  // pieces
  size_t grain;          // columns that stay together
};
struct ColumnRange {
  size_t from, to;
};
inline ColumnRange columns_of(const TaskGrid& grid, size_t n, size_t piece) {
  const size_t units = ceil_div(n, grid.grain);
  return {piece_begin(units, grid.columns, piece) * grid.grain,
          min(piece_begin(units, grid.columns, piece + 1) * grid.grain, n)};
}
// The model takes as long as a small product, so a plan keeps the grid of its last number of rows and workers. Runs at
// once write the same.
struct KeptGrid {
  mutable uint64_t word;  // 0: none
};
TaskGrid cut_tasks(const RunArgs& args, const KeptGrid& kept, const Kernel* tile, size_t m, size_t lines, size_t n,
                   size_t depth, size_t groups = 1);

}  // namespace skua
