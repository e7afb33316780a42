// The loop nest of products around a tile that needs the core in a state of its own (GemmTileTable::enter, leave), by
// one that computes nothing and says where it is called: AMX is not on every machine.
#include <gtest/gtest.h>

#include <vector>

#include "core/families.h"
#include "gemm/driver.h"

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
