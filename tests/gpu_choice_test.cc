// What would be chosen on devices that are not at hand: recorded descriptions, one or two of each vendor.
#include "gpu/choice.h"
#include "tests/support/support.h"

#ifdef SKUA_BUILT_gpu
namespace {
using namespace skua::gpu;

Description device(Vendor vendor, const char* name, uint32_t units, uint32_t threads, uint32_t local_bytes,
                   uint32_t subgroup) {
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
    device(Vendor::adreno, "Adreno (TM) 640", 2, 1024, 32768, 64),
    device(Vendor::adreno, "Adreno (TM) 740", 6, 1024, 32768, 128),
    device(Vendor::mali, "Mali-G76", 12, 384, 32768, 8),
    device(Vendor::mali, "Mali-G78", 20, 512, 32768, 16),
    device(Vendor::mali, "Mali-T880", 4, 256, 32768, 4),
    device(Vendor::powervr, "PowerVR Rogue GE8320", 4, 512, 16384, 32),
    device(Vendor::apple, "Apple M1", 8, 1024, 32768, 32),
    device(Vendor::nvidia, "NVIDIA H100", 132, 1024, 49152, 32),
    device(Vendor::nvidia, "NVIDIA GeForce RTX 3060", 28, 1024, 49152, 32),
    device(Vendor::intel, "Intel(R) UHD Graphics 620", 24, 256, 65536, 16),
    device(Vendor::amd, "AMD Radeon RX 6800", 60, 1024, 65536, 64),
    device(Vendor::software, "llvmpipe", 2, 1024, 32768, 8),
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
constexpr ProductSize kSquare = {4096, 4096, 4096, 1, true, false, false},
                      kPointwise = {56 * 56, 96, 24, 1, true, true, false},
                      kSmall = {49, 320, 960, 1, true, true, false},
                      kConnected = {1, 1000, 1280, 1, false, true, false},
                      kTaps = {56 * 56, 64, 576, 1, true, true, true}, kOdd = {300, 301, 77, 1, false, false, false};

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
        EXPECT_TRUE(s.vectors || kind == kRows4 || kind == kTile64 || kind == kVector);
        EXPECT_TRUE(kind != kVector || (s.constant && !s.window && s.m <= 4));
        EXPECT_TRUE(kind != kTile128 || !s.window);
        const WorkGroup g = product_group(d, ProductKind(kind), (s.n + 3) / 4);
        EXPECT_LE(uint32_t(g.local[0]) * g.local[1] * g.local[2], d.group_threads);
        EXPECT_LE(product_tile(kind) ? product_tile(kind)->local_bytes : 0, d.local_bytes);
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
  EXPECT_EQ(first("NVIDIA H100", kSquare), kTile128);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kSquare), kTile128);
  EXPECT_EQ(first("AMD Radeon RX 6800", kSquare), kTile128);
  EXPECT_EQ(first("Intel(R) UHD Graphics 620", kSquare), kTile64);
  EXPECT_EQ(first("Apple M1", kSquare), kTile64);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kTaps), kTile32);
  EXPECT_EQ(first("NVIDIA GeForce RTX 3060", kOdd), kTile64);
  // What was fastest on an H100, or within a few hundredths: MobileNets, ResNet-50, squares.
  const struct { size_t m, n, k; int kind; } measured[] = {
      {49, 512, 2048, kTile16}, {49, 512, 4608, kTile16}, {49, 160, 960, kTile16}, {196, 96, 576, kTile16},
      {196, 512, 512, kTile16x32}, {784, 128, 1152, kTile16}, {49, 2048, 1024, kTile16x32},
      {3136, 64, 576, kTile16x32}, {784, 192, 32, kTile16x32}, {3136, 256, 64, kTile32}, {12544, 64, 32, kTile64},
      {1024, 1024, 1024, kTile64}, {2048, 2048, 2048, kTile128}, {4096, 4096, 4096, kTile128}};
  for (const auto& s : measured)
    EXPECT_EQ(first("NVIDIA H100", {s.m, s.n, s.k, 1, true, true, false}), s.kind)
        << s.m << " x " << s.n << " x " << s.k;
  EXPECT_EQ(first("NVIDIA H100", {112 * 112, 32, 27, 1, false, true, true}), kTile64);  // first layers: A by elements
  EXPECT_EQ(first("NVIDIA H100", {5, 64, 64, 1, true, true, false}), kRows4);
}

TEST(gpu_choice, phones_keep_tiles_in_registers) {
  for (const char* name : {"Adreno (TM) 640", "Adreno (TM) 740", "Mali-G76", "Mali-G78", "Mali-T880"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(first(name, kSquare), kRows8);
    EXPECT_EQ(first(name, kOdd), kRows4);
  }
  EXPECT_EQ(first("Mali-G76", kSmall), kRows4);
  EXPECT_EQ(first("PowerVR Rogue GE8320", kSquare), kRows4);
  EXPECT_EQ(product_group(named("PowerVR Rogue GE8320"), kRows4, 64).local[0] *
                product_group(named("PowerVR Rogue GE8320"), kRows4, 64).local[1],
            32);
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
  const auto form = [&](const char* name, WinogradSize s, uint32_t allowed = 6) {
    return choose_winograd(named(name), s, allowed);
  };
  constexpr WinogradSize wide = {1, 28, 28, 256, 256}, narrow = {1, 112, 112, 16, 16}, few = {32, 2, 2, 512, 512},
                         deep = {1, 28, 28, 512, 512}, tiny = {1, 7, 7, 512, 512};
  for (const char* name :
       {"Adreno (TM) 740", "Mali-G78", "NVIDIA GeForce RTX 3060", "AMD Radeon RX 6800", "Apple M1"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(form(name, wide), WinogradForm::f4x4);
    EXPECT_EQ(form(name, wide, 0), WinogradForm::none);
    EXPECT_EQ(form(name, deep, 1u << int(WinogradForm::f2x2)), WinogradForm::f2x2);
    EXPECT_EQ(form(name, narrow), WinogradForm::none);  // the transformed tiles are more than is saved
  }
  EXPECT_EQ(form("Mali-G76", few), WinogradForm::f2x2);           // tiles of 4 would be three quarters outside
  // As measured there, by Vulkan and by OpenCL, where three dispatches cost the host more: worth it for long sums,
  // which leave most of the device idle, and for large layers.
  Description cl = named("NVIDIA H100");
  cl.opencl = 3;
  constexpr struct { WinogradSize size; WinogradForm vulkan, opencl; } measured[] = {
      {{1, 56, 56, 64, 64}, WinogradForm::f4x4, WinogradForm::none},
      {{1, 28, 28, 128, 128}, WinogradForm::f4x4, WinogradForm::none},
      {{1, 7, 7, 512, 512}, WinogradForm::f2x2, WinogradForm::f2x2},
      {{1, 112, 112, 64, 64}, WinogradForm::f4x4, WinogradForm::f4x4},
      {{1, 56, 56, 256, 256}, WinogradForm::f4x4, WinogradForm::f4x4},
      {{16, 28, 28, 128, 128}, WinogradForm::f4x4, WinogradForm::f4x4},
      {{1, 28, 28, 32, 32}, WinogradForm::none, WinogradForm::none},
      {{1, 14, 14, 128, 128}, WinogradForm::f4x4, WinogradForm::none},
      {{1, 112, 112, 16, 16}, WinogradForm::none, WinogradForm::none},
      {{1, 5, 5, 1024, 1024}, WinogradForm::f2x2, WinogradForm::f2x2}};
  for (const auto& m : measured) {
    EXPECT_EQ(form("NVIDIA H100", m.size), m.vulkan) << m.size.out_h << " " << m.size.in_channels;
    EXPECT_EQ(choose_winograd(cl, m.size, 6), m.opencl) << m.size.out_h << " " << m.size.in_channels;
  }
  EXPECT_NE(choose_winograd(cl, {1, 14, 14, 256, 256}, 6), WinogradForm::none);
  // half the time of the direct one, measured
  EXPECT_EQ(choose_winograd(cl, {4, 56, 56, 64, 64}, 6), WinogradForm::f4x4);
  EXPECT_EQ(form("Adreno (TM) 740", tiny), WinogradForm::none);  // its memory would be reading transformed weights
  for (const char* name : {"llvmpipe", "a device with small groups"}) EXPECT_EQ(form(name, wide), WinogradForm::none);
}

// In local memory where few results leave most of a device idle and the depth can be shared; phones, whose local memory
// is no nearer than what a register tile reads, and what was not measured keep to registers.
TEST(gpu_choice, products_of_bytes) {
  for (Description d : kDevices)
    for (const bool dot : {false, true})
      for (ProductSize s : {kSquare, kSmall, kConnected, kTaps, kOdd}) {
        SCOPED_TRACE(d.info.name);
        s.bytes = true;
        d.integer_dot = dot;
        const bool shared = dot && s.constant && s.vectors && !s.window;
        const ProductChoice c = choose_product(d, s);
        for (uint32_t i = 0; i < c.count; ++i) {
          EXPECT_NE(c.order[i], kVector);
          EXPECT_NE(c.order[i], kTile128);
          EXPECT_TRUE(shared || c.order[i] == kRows4 || c.order[i] == kRows8);
        }
        if (d.vendor != Vendor::nvidia && d.vendor != Vendor::amd) {
          EXPECT_TRUE(c.order[0] == kRows4 || c.order[0] == kRows8);
        }
      }
  const auto of_bytes = [](const char* name, ProductSize s, bool sixteens = true) {
    Description d = named(name);
    d.integer_dot = true;
    s.bytes = true;
    s.sixteens = sixteens;
    return int(choose_product(d, s).order[0]);
  };
  for (const char* name : {"NVIDIA H100", "NVIDIA GeForce RTX 3060", "AMD Radeon RX 6800"}) {
    SCOPED_TRACE(name);
    for (const ProductSize& s :
         {ProductSize{49, 512, 4608, 1, true, true, true}, {1, 1000, 2048, 1, true, true, false}}) {
      const int kind = of_bytes(name, s);
      EXPECT_TRUE(kind == kTile16 || kind == kTile16x32);
    }
    EXPECT_EQ(of_bytes(name, {49, 512, 4608, 1, true, true, true}, false), kRows4);
    // a tile would begin and end for 4 words
    const int brief = of_bytes(name, {112 * 112, 96, 16, 1, true, true, false});
    EXPECT_TRUE(brief == kRows4 || brief == kRows8);
    Description cl = named(name);
    cl.opencl = 3;
    ProductSize s = {49, 512, 2048, 1, true, true, false};
    s.bytes = true;
    EXPECT_NE(choose_product(cl, s).order[0], kRows4);
    cl.opencl = 0;
    EXPECT_EQ(choose_product(cl, s).order[0], kRows4);  // no instruction, and no other form of the text
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

TEST(gpu_choice, long_reductions_of_few_results_in_parts) {
  const Description& h100 = named("NVIDIA H100");
  // Global averages of maps of 256 and of 1024 channels, by groups of 16 vectors of channels and 8 slices.
  EXPECT_EQ(choose_parts(h100, 224 * 224, 4, 128, 8), 224u);
  EXPECT_EQ(choose_parts(h100, 56 * 56, 4, 128, 8), 56u);
  EXPECT_EQ(choose_parts(h100, 224 * 224, 4 * 64, 128, 8), 4u);  // of 64 images
  EXPECT_EQ(choose_parts(h100, 7 * 7, 16, 128, 8), 1u);          // those of networks are bound by the launch
  EXPECT_EQ(choose_parts(h100, 28 * 28, 4, 128, 8), 1u);
  EXPECT_EQ(choose_parts(h100, 224 * 224, 4096, 128, 8), 1u);    // the device is full
  EXPECT_EQ(choose_parts(h100, 1 << 22, 1, 256, 256), 528u);     // one sum
  for (Description d : kDevices)
    for (const size_t n : {size_t(1), size_t(4087), size_t(1) << 22})
      for (const size_t groups : {1, 100, 1 << 20})
        for (const uint32_t units : {d.info.compute_units, 0u}) {
          d.info.compute_units = units;
          const size_t parts = choose_parts(d, n, groups, 64, 16);
          EXPECT_GE(parts, 1u) << d.info.name;
          EXPECT_LE(parts * parts, n) << d.info.name;
          // none of which is empty: what is explained is what is recorded
          EXPECT_EQ((n + (n + parts - 1) / parts - 1) / ((n + parts - 1) / parts), parts) << d.info.name;
          EXPECT_TRUE(n < 16 * 128 ? parts == 1 : groups > 1 || parts > 1) << d.info.name;
        }
}

TEST(gpu_choice, copies_by_squares_where_local_memory_is_near) {
  for (const Description& d : kDevices)
    EXPECT_EQ(choose_squares(d), d.vendor == Vendor::apple || d.vendor == Vendor::nvidia || d.vendor == Vendor::intel ||
                                     d.vendor == Vendor::amd || d.vendor == Vendor::software)
        << d.info.name;
}

TEST(gpu_choice, sums_of_f16_where_they_are_allowed_and_there_is_an_instruction) {
  for (Description d : kDevices)
    for (const bool arithmetic : {false, true})
      for (ProductSize s : {kSquare, kSmall, kConnected, kTaps, kOdd})
        for (const bool allowed : {false, true}) {
          d.f16_arithmetic = arithmetic;
          s.half = allowed;
          for (int kind = 0; kind < kProductKinds; ++kind)
            EXPECT_EQ(choose_half(d, s, ProductKind(kind)),
                      allowed && arithmetic && s.vectors && (kind == kRows4 || kind == kRows8))
                << d.info.name << product_kind_name(kind);
        }
}

TEST(gpu_choice, a_row_is_shared_by_threads) {
  for (const char* name :
       {"Adreno (TM) 740", "Mali-G78", "NVIDIA H100", "Intel(R) UHD Graphics 620", "AMD Radeon RX 6800"})
    EXPECT_EQ(first(name, kConnected), kVector) << name;
  EXPECT_EQ(first("llvmpipe", kConnected), kRows4);
  EXPECT_EQ(first("a device with small groups", kConnected), kRows4);
}

}  // namespace
#endif
