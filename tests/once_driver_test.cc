// The loop nest of products around tiles that compute nothing and say what they were told: around one that needs the
// core in a state of its own (GemmTileTable::enter, leave), as AMX is not on every machine; and around tiles of every
// kind, which of rows, columns and depth they get. Nothing is read or written, so products are as large as any.
#include <gtest/gtest.h>

#include <stdlib.h>

#include <map>
#include <random>
#include <vector>

#include "core/families.h"
#include "gemm/driver.h"
#include "tests/support/support.h"

namespace {

using skua::Element;

int inside, entered, tiles_inside, tiles_outside;
skua::GemmTileTable table;

void enter(size_t) { ++inside, ++entered; }
void leave() { --inside; }
void tile(const skua::GemmTile&) { ++(inside == 1 ? tiles_inside : tiles_outside); }
void pack_rows(size_t, const void* const*, const skua::GemmSegment*, size_t, size_t, void*) {}
const skua::GemmTileTable& fake() { return table; }

constexpr uint16_t kRows = 4, kColumns = 8;

// m rows from panel p0 on, of `segments` segments of k each in passes of kc; prepares: rows of A pass through the
// workspace.
void run(size_t m, size_t n, size_t p0, size_t segments, size_t k, size_t kc, bool prepares) {
  table = {};
  for (auto& at : table.at) at = tile;
  for (auto& row : table.row) row = tile;
  for (size_t v = 0; v < 8; ++v) table.even[v] = v % 2 ? nullptr : tile, table.even_rows[v] = kRows;
  table.enter = enter, table.leave = leave;
  if (prepares) table.pack_a = pack_rows;
  const skua::Kernel kernel = {"fake",
                               "gemm",
                               "", skua::KernelKind::gemm_tile, skua::Isa::scalar, 0, kRows, kColumns, 4,
                               reinterpret_cast<skua::AnyCode>(static_cast<skua::GemmTileTableFn>(fake))};
  const std::vector<skua::GemmSegment> where(segments);
  std::vector<float> a(64), b(1 << 14);
  alignas(64) static char scratch[1 << 20];
  skua::GemmBlock g = {};
  g.tile = &kernel;
  g.format = skua::format_of(&kernel);
  g.n = n;
  g.segment_count = segments, g.k = k, g.kc = kc;
  g.segments = where.data();
  g.packed = b.data();
  g.packed_depth = segments * k;
  g.a_type = g.c_type = Element::f32;
  g.scratch = scratch;
  inside = entered = tiles_inside = tiles_outside = 0;
  skua::run_block(g, 0, m, p0, skua::panel_count(g.format, n), [&](size_t row) {
    return skua::RowPointers{a.data(), b.data(), nullptr, m - row};
  });
}

TEST(Driver, EveryBlockLeavesWhatItEntered) {
  for (const bool prepares : {false, true})
    for (const size_t m : {0, 1, 3, 4, 21, 300})
      for (const size_t n : {1, 8, 20})
        for (const size_t segments : {1, 3})
          for (const size_t kc : {4, 16, 48}) {
            SCOPED_TRACE(testing::Message() << m << " rows, " << n << " columns, " << segments
                                            << " segments, passes of " << kc << (prepares ? ", packed" : ""));
            run(m, n, n / 20, segments, 16, kc, prepares);
            EXPECT_EQ(inside, 0);
            EXPECT_EQ(entered, m ? 1 : 0);
            EXPECT_EQ(tiles_outside, 0);
            EXPECT_EQ(tiles_inside > 0, m > 0);
          }
}

// ---- what tiles are told --------------------------------------------------------------------------------------------
struct Kind {
  const char* name;
  uint16_t mr, nr, vector;
  uint8_t kr, tall;  // tall: even rows of fewer vectors than all
  bool bytes, packs, runs, lines, many_panels;
};
constexpr Kind kKinds[] = {
    {"floats of AVX2", 6, 16, 8, 1, 14, false, false, false, false, false},
    {"floats in lines", 8, 48, 16, 1, 24, false, false, false, true, false},
    {"floats packed for lanes", 4, 12, 4, 1, 4, false, true, false, false, false},
    {"bytes", 6, 64, 16, 4, 12, true, false, false, false, false},
    {"bytes packed for i8mm", 8, 12, 4, 8, 8, true, true, false, false, false},
    {"bytes of AMX", 16, 32, 16, 64, 16, true, false, true, true, true},
    {"bytes packed for AMX", 16, 32, 16, 64, 16, true, true, true, true, true},
    {"bf16 of AMX", 16, 32, 16, 32, 16, false, false, true, true, true},
};

// Rows at addresses where nothing is: lines of even ones, then a gap.
struct Matrix {
  const char* base;
  ptrdiff_t step, line, gap;  // bytes, rows, bytes
  const char* row(size_t i) const { return base + ptrdiff_t(i) * step + ptrdiff_t(i) / line * gap; }
  struct Place {
    size_t row, byte;
  };
  Place place(const void* p) const {
    const ptrdiff_t off = static_cast<const char*>(p) - base, whole = line * step + gap, rest = off % whole;
    return {size_t(off / whole * line + rest / step), size_t(rest % step)};
  }
};
// Addresses that 32 bits have, too.
const char* const kColumns0 = reinterpret_cast<const char*>(uintptr_t(0x08000000));  // bias, scales, offsets
const char* const kB0 = reinterpret_cast<const char*>(uintptr_t(0x10000000));
const char* const kInPlace0 = reinterpret_cast<const char*>(uintptr_t(0x20000000));
const char* const kA0 = reinterpret_cast<const char*>(uintptr_t(0x40000000));
const char* const kC0 = reinterpret_cast<const char*>(uintptr_t(0x80000000));
template <class T> const T* of_column(size_t j) { return reinterpret_cast<const T*>(kColumns0) + j; }

// What tiles are told about a product, and what came of it.
struct Told {
  skua::Kernel kernel;
  skua::GemmTileTable tiles;
  skua::GemmBlock g;
  std::vector<skua::GemmSegment> segments;
  std::vector<char> scratch;
  Matrix a, c;
  size_t rows, inside;
  struct Panel {
    size_t from, depth;
    std::vector<size_t> rows;
  };
  std::map<const void*, Panel> packed;  // of A
  std::vector<size_t> done;             // of the depth, [row][panel]
  std::vector<int> begun;               // so often: a tile of even rows may begin among those that are done
  const char* complaint;                // the first one

  size_t panels() const { return skua::panel_count(g.format, g.n); }
  size_t depth() const { return g.segment_count * g.k; }
  void need(bool holds, const char* what) {
    if (!holds && !complaint) complaint = what;
  }
  bool is_in_place(const skua::GemmTile& t) const { return g.in_place && t.b >= g.in_place; }
  ptrdiff_t of_a() const { return element_bytes(g.a_type); }
  ptrdiff_t of_b() const { return element_bytes(g.format.element); }
  ptrdiff_t of_c() const { return element_bytes(g.c_type); }
};
Told* told;

void pack_and_tell(size_t rows, const void* const* a, const skua::GemmSegment* segments, size_t count, size_t k,
                   void* panel) {
  told->need(rows <= told->kernel.mr, "more rows of A than a panel has");
  Told::Panel& p = told->packed[panel];
  p = {told->a.place(a[0]).byte / size_t(told->of_a()) + size_t(segments[0].a), count * k, {}};
  for (size_t r = 0; r < rows; ++r) p.rows.push_back(told->a.place(a[r]).row);
}

size_t by_pages;  // tiles

// Panels [panel, panel + count) from column `first` on.
void check_columns(const skua::GemmTile& t, size_t first, size_t panel, size_t count) {
  const skua::GemmBlock& g = told->g;
  told->need(first == skua::first_column(g, panel), "a tile begins at another column than its panel");
  for (size_t i = 0; i < count; ++i)
    told->need(t.n == skua::end_column(g, panel + i) - skua::first_column(g, panel + i), "columns left out");
  told->need(count == 1 || t.n == g.format.nr, "several panels, not all whole");
  told->need(count == 1 || t.b_step == ptrdiff_t(skua::panel_offset(g.format, 1, g.packed_depth)) * told->of_b(),
             "panels are elsewhere");
  told->need(!g.bias || t.bias == of_column<float>(first), "bias of another column");
  told->need(!told->tiles.bytes || (t.scale == of_column<float>(first) && t.offset == of_column<int32_t>(first)),
             "scales of another column");
  const bool in_place = told->is_in_place(t);
  told->need(t.ldb == (in_place ? g.ldb : skua::panel_width(g.format, g.n, panel) * g.format.kr),
             "another width of the panel");
  if (in_place) {
    const auto elements = size_t(static_cast<const char*>(t.b) - kInPlace0) / sizeof(float);
    told->need(t.n % g.format.vector == 0 && elements % g.ldb == first, "other columns read in place");
  }
  told->need(!in_place || !t.pages, "lines of pages asked for where rows are apart");
  by_pages += t.pages;
}

// The depth before the tile's, by where it reads B. Segments of B are rounded up.
size_t depth_before(const skua::GemmTile& t, size_t first, size_t panel) {
  const skua::GemmBlock& g = told->g;
  if (told->is_in_place(t))
    return size_t(static_cast<const char*>(t.b) - kInPlace0) / sizeof(float) / g.ldb + t.segments[0].b;
  const ptrdiff_t elements = (static_cast<const char*>(t.b) - kB0) / told->of_b(),
                  begin = ptrdiff_t(skua::panel_offset(g.format, panel, g.packed_depth)),
                  column = ptrdiff_t(first % g.format.nr) * g.format.kr;
  const size_t row = size_t(elements - begin - column) / skua::panel_width(g.format, g.n, panel) + t.segments[0].b,
               segment = skua::round_up(g.k, g.format.kr);
  return row / segment * g.k + row % segment;
}

// The rows that the tile multiplies, by where it reads A.
std::vector<size_t> rows_of_a(const skua::GemmTile& t, size_t rows, bool even, size_t before) {
  std::vector<size_t> of;
  if (told->tiles.pack_a) {
    for (size_t r = 0; r < rows; r += told->kernel.mr) {
      const auto found = told->packed.find(static_cast<const char*>(t.a[0]) +
                                           r * size_t(t.a_step) * skua::bytes_of_a(told->tiles));
      told->need(found != told->packed.end(), "rows of A that were not packed");
      if (found == told->packed.end()) break;
      const Told::Panel& p = found->second;
      told->need(p.from == before && p.depth == t.segment_count * t.k, "another part of packed A's depth");
      of.insert(of.end(), p.rows.begin(), p.rows.end());
    }
    return of;
  }
  for (size_t r = 0; r < rows; ++r) {
    const size_t gaps = even && t.line && r >= t.in_line ? 1 + (r - t.in_line) / t.line : 0;
    const auto* at = static_cast<const char*>(even ? t.a[0] : t.a[r]);
    if (even) at += (ptrdiff_t(r) * t.a_step + ptrdiff_t(gaps) * t.a_gap) * told->of_a();
    const Matrix::Place place = told->a.place(at);
    told->need(place.byte / size_t(told->of_a()) + size_t(t.segments[0].a) == before, "another part of A's depth");
    of.push_back(place.row);
  }
  return of;
}

void check_tile(const skua::GemmTile& t, size_t rows, bool even) {
  told->need(!told->tiles.enter || told->inside == 1, "not entered");
  told->need(!told->tiles.enter || t.entered == skua::min(told->rows, told->kernel.mr), "entered for other rows");
  const size_t first = told->c.place(t.c[0]).byte / size_t(told->of_c()), panel = first / told->g.format.nr,
               panels = even && told->tiles.many_panels ? t.panels : 1, before = depth_before(t, first, panel),
               after = before + t.segment_count * t.k;
  check_columns(t, first, panel, panels);
  told->need(t.finish == (after == told->depth()), "ended before all of the depth, or not behind it");
  const std::vector<size_t> of = rows_of_a(t, rows, even, before);
  told->need(of.size() >= rows, "fewer rows of A than of C");
  if (told->complaint) return;
  for (size_t r = 0; r < rows; ++r) {
    const size_t gaps = even && t.line && r >= t.in_line ? 1 + (r - t.in_line) / t.line : 0;
    const auto* at = static_cast<const char*>(even ? t.c[0] : t.c[r]);
    if (even) at += (ptrdiff_t(r) * t.c_step + ptrdiff_t(gaps) * t.c_gap) * told->of_c();
    const Matrix::Place place = told->c.place(at);
    told->need(place.row == of[r] && place.byte / size_t(told->of_c()) == first, "a row of C gets another's sums");
    if (told->complaint) return;
    for (size_t i = 0; i < panels; ++i) {
      const size_t at_panel = place.row * told->panels() + panel + i;
      size_t& done = told->done[at_panel];
      told->need(before || ++told->begun[at_panel] <= 2, "a row is multiplied by a panel again and again");
      told->need(t.load_c ? done == before : before == 0, "a part of the depth left out, or twice");
      done = after;
    }
  }
}
void tile_by_rows(const skua::GemmTile& t) { check_tile(t, t.rows, false); }
template <int vectors> void tile_of_even(const skua::GemmTile& t) {
  check_tile(t, told->tiles.runs ? t.rows : t.groups * told->tiles.even_rows[vectors - 1], true);
}

struct Draw {
  std::mt19937 random;
  size_t of(size_t least, size_t most) { return least + random() % (most - least + 1); }
  bool once_in(size_t n) { return random() % n == 0; }
  size_t few_or(size_t most) { return of(1, once_in(2) ? skua::min(most, 40) : most); }
};

void make_tiles(const Kind& kind, Draw& draw, Told& p) {
  constexpr skua::GemmTileFn evens[] = {tile_of_even<1>, tile_of_even<2>, tile_of_even<3>, tile_of_even<4>};
  for (auto& at : p.tiles.at) at = tile_by_rows;
  for (auto& row : p.tiles.row) row = tile_by_rows;
  for (size_t v = 0, vectors = kind.nr / kind.vector; v < vectors; ++v) {
    p.tiles.even[v] = kind.runs || !draw.once_in(8) ? evens[v] : nullptr;
    p.tiles.even_rows[v] = p.tiles.even[v] && v + 1 < vectors ? kind.tall : uint8_t(kind.mr);
  }
  p.tiles.a = p.tiles.b = kind.bytes ? Element::s8 : kind.kr > 1 ? Element::bf16 : Element::f32;
  p.tiles.any_c = p.tiles.pages = true;
  p.tiles.kr = kind.kr;
  p.tiles.bytes = kind.bytes, p.tiles.runs = kind.runs, p.tiles.lines = kind.lines;
  if (kind.packs) p.tiles.pack_a = pack_and_tell, p.tiles.pack_kr = kind.kr;
  if (kind.many_panels) p.tiles.many_panels = [](const skua::GemmTile& t) { return t.n == told->kernel.nr; };
  if (kind.runs) p.tiles.enter = [](size_t) { ++told->inside; }, p.tiles.leave = [] { --told->inside; };
  const skua::GemmTileTableFn table = []() -> const skua::GemmTileTable& { return told->tiles; };
  p.kernel.name = kind.name, p.kernel.kind = skua::KernelKind::gemm_tile, p.kernel.isa = skua::Isa::scalar;
  p.kernel.mr = kind.mr, p.kernel.nr = kind.nr, p.kernel.vector = kind.vector;
  p.kernel.code = reinterpret_cast<skua::AnyCode>(table);
}

// `lines`: GemmBlock::line is set; else lines are what rows happen to be.
void make_product(const Kind& kind, Draw& draw, bool lines, Told& p) {
  skua::GemmBlock& g = p.g;
  g.tile = &p.kernel;
  g.format = skua::format_of(&p.kernel);
  g.a_type = p.tiles.a;
  g.c_type = draw.once_in(2) ? p.tiles.a : Element::f32;
  g.alpha = 1;
  const bool in_place = kind.kr == 1 && draw.once_in(4);
  p.rows = draw.few_or(in_place ? 64 : 1500);
  g.n = draw.few_or(in_place || draw.once_in(4) ? 3000 : 300);
  g.segment_count = draw.once_in(2) ? 1 : draw.of(2, 9);
  g.k = draw.few_or(g.segment_count == 1 ? 6000 : 700);
  if (!kind.bytes || draw.once_in(3)) g.k = skua::round_up(g.k, kind.kr);  // of floats nothing is behind a segment
  const size_t k_of_b = skua::round_up(g.k, kind.kr);
  for (size_t i = 0; i < g.segment_count; ++i) p.segments.push_back({ptrdiff_t(i * g.k), i * k_of_b});
  g.segments = p.segments.data();
  g.packed = kB0;
  if (in_place) g.in_place = kInPlace0, g.ldb = g.n + draw.of(0, 40);
  g.packed_depth = g.segment_count * k_of_b;
  g.bias = kind.bytes ? nullptr : of_column<float>(0);
  g.scale = of_column<float>(0);
  g.offset = of_column<int32_t>(0);
  g.kc = p.depth();  // parts of segments, or several
  if (!kind.bytes && kind.kr == 1 && !draw.once_in(3))
    g.kc = g.segment_count == 1 || draw.once_in(2) ? skua::round_up(draw.few_or(g.k), 4)
                                                   : draw.of(1, g.segment_count) * g.k;
  g.a_step = ptrdiff_t(p.depth() + draw.of(0, 70));
  g.c_step = ptrdiff_t(g.n + draw.of(0, 40));
  const ptrdiff_t line = ptrdiff_t(draw.few_or(skua::min(p.rows, 200))), gap_a = ptrdiff_t(draw.of(0, 5)) * g.a_step,
                  gap_c = ptrdiff_t(draw.of(0, 5)) * g.c_step;
  p.a = {kA0, g.a_step * p.of_a(), line, gap_a * p.of_a()};
  p.c = {kC0, g.c_step * p.of_c(), line, gap_c * p.of_c()};
  if (lines) g.line = size_t(line), g.a_gap = gap_a, g.c_gap = gap_c;
  g.dense = draw.once_in(2);
  if (g.n > kind.vector && draw.once_in(4)) {  // a task of some columns
    g.from = draw.of(0, (g.n - 1) / kind.vector) * kind.vector;
    g.to = skua::min(g.n, g.from + draw.few_or(g.n) / kind.vector * kind.vector + kind.vector);
  }
  p.scratch.resize(
      skua::staging(&p.kernel, g.a_type, g.c_type, false, p.rows, g.n, g.segment_count, g.k).bytes + 64);
  g.scratch = reinterpret_cast<void*>(skua::round_up(reinterpret_cast<uintptr_t>(p.scratch.data()), 64));
  p.done.resize(p.rows * p.panels());
  p.begun.resize(p.done.size());
}

// One that asks for lines of pages, wherever this runs.
[[maybe_unused]] const int chip = skua::kArch == skua::Arch::x86_64 ? setenv("SKUA_CORE", "sapphire-rapids", 0) : 0;

TEST(Driver, EveryRowMeetsEveryColumnOverAllOfTheDepth) {
  Draw draw = {std::mt19937(20261130)};
  const size_t products = skua_test::small() ? 40 : 200;
  for (size_t i = 0; i < products && !HasFailure(); ++i)
    for (const Kind& kind : kKinds) {
      if (!skua::kTileRegisters && kind.runs) continue;
      Told p = {};
      told = &p;
      const bool lines = draw.once_in(2);
      make_tiles(kind, draw, p);
      make_product(kind, draw, lines, p);
      const skua::GemmBlock& g = p.g;
      const size_t p0 = g.from / g.format.nr, p1 = skua::ceil_div(skua::min(g.to, g.n), g.format.nr),
                   line = size_t(p.a.line);
      SCOPED_TRACE(testing::Message() << kind.name << ": " << p.rows << " rows in " << (lines ? "even " : "")
                                      << "lines of " << line << ", " << g.segment_count << " x " << g.k
                                      << " deep in passes of " << g.kc << ", panels " << p0 << " to " << p1 << " of "
                                      << g.n << " columns");
      const auto row = [&](size_t m) {
        return skua::RowPointers{p.a.row(m), const_cast<char*>(p.c.row(m)), nullptr,
                                 skua::min(line - m % line, p.rows - m), p.c.gap ? 0 : p.rows - m};
      };
      lines ? skua::run_block<true>(g, 0, p.rows, p0, p1, row) : skua::run_block(g, 0, p.rows, p0, p1, row);
      EXPECT_STREQ(p.complaint, nullptr);
      EXPECT_EQ(p.inside, 0u);
      size_t wrong = 0;
      for (size_t at = 0; at < p.done.size(); ++at) {
        const size_t panel = at % p.panels();
        wrong += p.done[at] != (panel >= p0 && panel < p1 ? p.depth() : 0);
      }
      EXPECT_EQ(wrong, 0u) << "rows of panels that are not done, or not of this task";
    }
  EXPECT_TRUE(by_pages > 0 || !skua::kTileRegisters);
}

// Of every tile of the build, whatever the machine has.
TEST(Driver, TilesThatEnterLeave) {
  size_t count = 0;
  const auto check = [&](const skua::KernelTable* const* family) {
    for (; *family; ++family)
      for (size_t i = 0; i < (*family)->count; ++i) {
        const skua::Kernel& kernel = (*family)->kernels[i];
        if (kernel.kind != skua::KernelKind::gemm_tile) continue;
        const skua::GemmTileTable& t = skua::table_of(&kernel);
        EXPECT_EQ(t.enter != nullptr, t.leave != nullptr) << kernel.name;
        EXPECT_FALSE(t.enter && t.panels) << kernel.name << ": run_row() and run_only() enter nothing";
        ++count;
      }
  };
  check(skua::gemm_tables);
#ifdef SKUA_TYPE_s8
  check(skua::gemm_int8_tables);
#endif
  EXPECT_GT(count, 0u);
}

}  // namespace
