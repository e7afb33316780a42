// What would be chosen on devices that are not at hand: recorded descriptions, one or two of each vendor.
#include "gpu/choice.h"
#include "tests/support/support.h"

#ifdef SKUA_BUILT_gpu
namespace {
using namespace skua::gpu;

Description device(Vendor vendor, const char* name, uint32_t units, uint32_t threads, uint32_t local_bytes, uint32_t subgroup) {
  Description d = {};
  snprintf(d.info.name, sizeof d.info.name, "%s", name);
  d.info.compute_units = units;
  d.vendor = vendor;
  d.group_threads = threads;
  for (uint32_t& e : d.group_extent) e = threads;
  for (uint32_t& e : d.group_count) e = 65535;
  d.local_bytes = local_bytes;
  d.subgroup = subgroup;
  d.texels = 1 << 20;
  return d;
}
const Description kDevices[] = {
    device(Vendor::adreno, "Adreno (TM) 640", 2, 1024, 32768, 64),       device(Vendor::adreno, "Adreno (TM) 740", 6, 1024, 32768, 128),
    device(Vendor::mali, "Mali-G76", 12, 384, 32768, 8),                 device(Vendor::mali, "Mali-G78", 20, 512, 32768, 16),
    device(Vendor::mali, "Mali-T880", 4, 256, 32768, 4),                 device(Vendor::powervr, "PowerVR Rogue GE8320", 4, 512, 16384, 32),
    device(Vendor::apple, "Apple M1", 8, 1024, 32768, 32),               device(Vendor::nvidia, "NVIDIA H200", 132, 1024, 49152, 32),
    device(Vendor::nvidia, "NVIDIA GeForce RTX 3060", 28, 1024, 49152, 32), device(Vendor::intel, "Intel(R) UHD Graphics 620", 24, 256, 65536, 16),
    device(Vendor::amd, "AMD Radeon RX 6800", 60, 1024, 65536, 64),      device(Vendor::software, "llvmpipe", 2, 1024, 32768, 8),
    device(Vendor::unknown, "a device with small groups", 1, 64, 4096, 0),
};
const Description& named(const char* name) {
  for (const Description& d : kDevices)
    if (!strcmp(d.info.name, name)) return d;
  ADD_FAILURE() << name;
  return kDevices[0];
}
int first(const char* name, ProductSize s) { return choose_product(named(name), s).order[0]; }

// rows, columns, terms, batches; vectors, constant B, window
constexpr ProductSize kSquare = {4096, 4096, 4096, 1, true, false, false}, kPointwise = {56 * 56, 96, 24, 1, true, true, false}, kSmall = {49, 320, 960, 1, true, true, false},
                      kConnected = {1, 1000, 1280, 1, false, true, false}, kTaps = {56 * 56, 64, 576, 1, true, true, true}, kOdd = {300, 301, 77, 1, false, false, false};

TEST(gpu_choice, every_choice_can_run) {
  for (const Description& d : kDevices)
    for (const ProductSize& s : {kSquare, kPointwise, kSmall, kConnected, kTaps, kOdd}) {
      SCOPED_TRACE(d.info.name);
      const ProductChoice c = choose_product(d, s);
      ASSERT_GE(c.count, 1u);
      EXPECT_NE(c.why, nullptr);
      uint32_t seen = 0;
      for (uint32_t i = 0; i < c.count; ++i) {
        const int kind = c.order[i];
        EXPECT_FALSE(seen >> kind & 1) << product_kind_name(kind);
        seen |= 1u << kind;
        EXPECT_TRUE(s.vectors || (kind != kRows8 && kind != kTile128));
        EXPECT_TRUE(kind != kVector || (s.constant && !s.window && s.m <= 4));
        const WorkGroup g = product_group(d, ProductKind(kind), (s.n + 3) / 4);
        EXPECT_LE(uint32_t(g.local[0]) * g.local[1] * g.local[2], d.group_threads);
        EXPECT_LE(kind == kTile64 ? 8192u : kind == kTile128 ? 16384u : 0, d.local_bytes);
      }
      EXPECT_TRUE(seen & 1u << kRows4);  // serves everything
    }
}

TEST(gpu_choice, groups_of_maps_fit) {
  for (const Description& d : kDevices)
    for (size_t channels : {1, 2, 5, 9, 300}) {
      const WorkGroup g = map_group(d, channels);
      EXPECT_LE(uint32_t(g.local[0]) * g.local[1] * g.local[2], d.group_threads) << d.info.name;
      EXPECT_GE(g.local[0] * g.local[1], 1);
      EXPECT_EQ(g.local[2], 1);  // rows in z are not checked by the kernels
    }
}

TEST(gpu_choice, desktops_share_tiles_in_local_memory) {
  EXPECT_EQ(first("NVIDIA H200", kSquare), kTile128);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kSquare), kTile128);
  EXPECT_EQ(first("AMD Radeon RX 6800", kSquare), kTile128);
  EXPECT_EQ(first("Intel(R) UHD Graphics 620", kSquare), kTile64);
  EXPECT_EQ(first("Apple M1", kSquare), kTile64);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kTaps), kTile64);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kOdd), kTile64);
  EXPECT_EQ(first("NVIDIA H200", kSmall), kRows4);  // five tiles would leave the device idle
}

TEST(gpu_choice, phones_keep_tiles_in_registers) {
  for (const char* name : {"Adreno (TM) 640", "Adreno (TM) 740", "Mali-G76", "Mali-G78", "Mali-T880"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(first(name, kSquare), kRows8);
    EXPECT_EQ(first(name, kOdd), kRows4);
  }
  EXPECT_EQ(first("Mali-G76", kSmall), kRows4);
  EXPECT_EQ(first("PowerVR Rogue GE8320", kSquare), kRows4);
  EXPECT_EQ(product_group(named("PowerVR Rogue GE8320"), kRows4, 64).local[0] * product_group(named("PowerVR Rogue GE8320"), kRows4, 64).local[1], 32);
}

TEST(gpu_choice, weights_as_images_on_phones_with_a_cache_for_textures) {
  for (const Description& d : kDevices) {
    SCOPED_TRACE(d.info.name);
    const bool image = d.vendor == Vendor::adreno || d.vendor == Vendor::powervr;
    for (const size_t texels : {size_t(1), size_t(1) << 20}) {
      const StorageChoice c = choose_storage(d, texels);
      EXPECT_EQ(c.first, image ? Storage::image : Storage::buffer);
      EXPECT_TRUE(c.both);
      EXPECT_NE(c.why, nullptr);
    }
    EXPECT_EQ(choose_storage(d, (1 << 20) + 1).first, Storage::buffer);
    EXPECT_FALSE(choose_storage(d, (1 << 20) + 1).both);
    Description none = d;
    none.texels = 0;
    EXPECT_FALSE(choose_storage(none, 1).both);
  }
}

TEST(gpu_choice, winograd_where_it_saves_more_than_it_moves) {
  const auto form = [&](const char* name, WinogradSize s, uint32_t allowed = 6) { return choose_winograd(named(name), s, allowed); };
  constexpr WinogradSize wide = {1, 28, 28, 256, 256}, narrow = {1, 112, 112, 32, 32}, few = {32, 2, 2, 512, 512}, deep = {1, 28, 28, 512, 512}, tiny = {1, 7, 7, 512, 512};
  for (const char* name : {"Adreno (TM) 740", "Mali-G78", "NVIDIA GeForce RTX 3060", "AMD Radeon RX 6800", "Apple M1"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(form(name, wide), WinogradForm::f4x4);
    EXPECT_EQ(form(name, wide, 0), WinogradForm::none);
    EXPECT_EQ(form(name, deep, 1u << int(WinogradForm::f2x2)), WinogradForm::f2x2);
    EXPECT_EQ(form(name, narrow), WinogradForm::none);  // the transformed tiles are more than is saved
  }
  EXPECT_EQ(form("Mali-G76", few), WinogradForm::f2x2);           // tiles of 4 would be three quarters outside
  EXPECT_EQ(form("NVIDIA H200", tiny), WinogradForm::none);       // would leave it idle
  for (const char* name : {"llvmpipe", "a device with small groups"}) EXPECT_EQ(form(name, wide), WinogradForm::none);
}

TEST(gpu_choice, products_of_bytes_stay_in_registers) {
  for (const Description& d : kDevices)
    for (ProductSize s : {kSquare, kSmall, kConnected, kTaps, kOdd}) {
      s.bytes = true;
      const ProductChoice c = choose_product(d, s);
      for (uint32_t i = 0; i < c.count; ++i) EXPECT_TRUE(c.order[i] == kRows4 || c.order[i] == kRows8) << d.info.name;
    }
}

TEST(gpu_choice, subgroups_leave_few_sums) {
  for (Description d : kDevices)
    for (const uint32_t threads : {32, 64, 128, 256}) {
      SCOPED_TRACE(d.info.name);
      d.subgroup_sums = false;
      EXPECT_FALSE(choose_subgroups(d, threads));
      d.subgroup_sums = true;
      EXPECT_EQ(choose_subgroups(d, threads), d.subgroup && threads / d.subgroup <= 16);
      d.subgroup = 1;
      EXPECT_FALSE(choose_subgroups(d, threads));
    }
}

TEST(gpu_choice, sums_of_f16_where_they_are_allowed_and_there_is_an_instruction) {
  for (Description d : kDevices)
    for (const bool arithmetic : {false, true})
      for (ProductSize s : {kSquare, kSmall, kConnected, kTaps, kOdd})
        for (const bool allowed : {false, true}) {
          d.f16_arithmetic = arithmetic;
          s.half = allowed;
          for (int kind = 0; kind < kProductKinds; ++kind)
            EXPECT_EQ(choose_half(d, s, ProductKind(kind)), allowed && arithmetic && s.vectors && (kind == kRows4 || kind == kRows8)) << d.info.name << product_kind_name(kind);
        }
}

TEST(gpu_choice, a_row_is_shared_by_threads) {
  for (const char* name : {"Adreno (TM) 740", "Mali-G78", "NVIDIA H200", "Intel(R) UHD Graphics 620", "AMD Radeon RX 6800"}) EXPECT_EQ(first(name, kConnected), kVector) << name;
  EXPECT_EQ(first("llvmpipe", kConnected), kRows4);
  EXPECT_EQ(first("a device with small groups", kConnected), kRows4);
}

}  // namespace
#endif
