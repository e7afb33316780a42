#include "gpu/choice.h"

namespace skua::gpu {
namespace {

size_t over(size_t n, size_t by) { return (n + by - 1) / by; }
uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Threads of a work-group without local memory: what the field found good per vendor, and what the device allows.
uint32_t threads_of(const Description& d) {
  uint32_t n = 64;
  switch (d.vendor) {
    case Vendor::adreno: n = 128; break;   // two waves of 64, or one of 128
    case Vendor::nvidia: n = 128; break;
    case Vendor::amd: n = 128; break;
    case Vendor::powervr: n = 32; break;
    case Vendor::apple: n = 64; break;
    case Vendor::intel: n = 64; break;
    case Vendor::mali: n = 64; break;
    default: break;
  }
  return d.group_threads ? least(n, d.group_threads) : n;
}

bool is_desktop(const Description& d) {
  return d.vendor == Vendor::nvidia || d.vendor == Vendor::amd || d.vendor == Vendor::intel ||
         d.vendor == Vendor::apple;
}

}  // namespace

const char* product_kind_name(int kind) {
  static const char* const names[] = {"rows4", "rows8", "tile16", "tile16x32", "tile32", "tile64", "tile128", "vector"};
  return kind >= 0 && kind < kProductKinds ? names[kind] : "";
}

const ProductTile* product_tile(int kind) {
  static constexpr ProductTile tiles[] = {{16, 16, 4, 4, 8, 1, 18432, {0.22f, 0.28f, 0.28f}},
                                          {16, 32, 8, 4, 8, 2, 26624, {0.24f, 0.36f, 0.45f}},
                                          {32, 32, 8, 8, 8, 2, 17408, {0.32f, 0.37f, 0.55f}},
                                          {64, 64, 16, 16, 16, 2, 17408, {0.46f, 0.57f, 0.64f}},
                                          {128, 128, 16, 16, 8, 1, 8320, {0.73f, 1.03f, 1.05f}}};
  return kind >= kTile16 && kind <= kTile128 ? &tiles[kind - kTile16] : nullptr;
}

namespace {

// Of bytes the depth counts in words, four products an instruction, of which NVIDIA's units start half as many as f32
// multiply-adds.
constexpr double kDotRate = 0.5;
double terms_of(const ProductSize& s) { return double(s.bytes ? over(s.k, 4) : s.k); }

// What the unit with the most work-groups could multiply meanwhile: the whole tiles, at their rate, and what a
// work-group takes to begin and to end. Fitted to times of an H100, most of which it meets within an eighth; tiles of
// 16 in large squares were taken to be slower, not measured.
double tile_cost(const ProductTile& t, const ProductSize& s, size_t units) {
  constexpr double kBegin = 20, kEnd = 6e4;  // of the depth; of a work-group
  const size_t groups = over(over(s.m, t.rows) * over(s.n, t.columns) * s.z, units);
  double rate = double(t.rate[groups > 2 ? 2 : groups > 1]);
  if (s.bytes && rate > kDotRate) rate = kDotRate;
  return double(groups) * (t.rows * t.columns * (terms_of(s) + kBegin) / rate + kEnd);
}

// By register tiles; sums want 8192 on a unit to hide their latency. Of bytes, ResNet-50 took an H100 three times as
// long as that says (4.3 ms): a load of one word for each row and 4 columns.
double rows_cost(const ProductSize& s, size_t units) {
  constexpr double kInFlight = 8192;
  const double results = double(s.m) * double(s.n) * double(s.z) / double(units),
               busy = results > kInFlight ? results : kInFlight;
  return terms_of(s) * busy / (s.bytes ? kDotRate / 3 : 1);
}

}  // namespace

ProductChoice choose_product(const Description& d, const ProductSize& s) {
  const size_t units = d.info.compute_units ? d.info.compute_units : 1;
  const bool group256 = d.group_threads >= 256 && (!d.group_extent[0] || d.group_extent[0] >= 16) &&
                        (!d.group_extent[1] || d.group_extent[1] >= 16);
  // OpenCL's text has another form
  const bool dots = s.constant && s.vectors && (s.sixteens || !s.window) && (d.integer_dot || d.opencl);
  const auto tile = [&](int kind) {
    return group256 && d.local_bytes >= product_tile(kind)->local_bytes &&
           (s.bytes ? dots && kind != kTile128 : (s.vectors || kind == kTile64) && !(s.window && kind == kTile128));
  };
  const auto cost = [&](int kind) { return tile_cost(*product_tile(kind), s, units); };
  int shortest = kTile64;
  for (int kind = kTile16; kind <= kTile128; ++kind)
    if (tile(kind) && cost(kind) < cost(shortest)) shortest = kind;
  const bool vector = group256 && d.local_bytes >= 4096 && s.constant && !s.window && s.m <= 4 && !s.bytes;
  const size_t blocks64 = over(s.m, 64) * over(s.n, 64) * s.z;
  const size_t threads8 = over(s.m, 8) * over(s.n, 4) * s.z;
  int first = kRows4;
  const char* why = "few sums, or a device of unknown kind: the smallest tile gives the most threads";
  if (vector && s.k >= 64 && d.vendor != Vendor::software) {
    first = kVector;
    why = "few rows: threads share the sums of a column";
  } else if ((d.vendor == Vendor::nvidia || d.vendor == Vendor::amd) && tile(kTile64) && (s.bytes || s.m >= 8) &&
             s.n >= 8 && s.k >= 16 && (!s.bytes || cost(shortest) < rows_cost(s, units))) {
    first = shortest;
    why = "the tile in local memory that keeps the busiest compute unit shortest";
  } else if (is_desktop(d) && tile(kTile64) && !s.bytes && s.m >= 32 && s.n >= 32 && s.k >= 16 &&
             2 * blocks64 >= units) {
    first = kTile64;
    why = "large enough for tiles of 64 in local memory on half of the compute units";
  } else if (s.vectors &&
             (d.vendor == Vendor::adreno || d.vendor == Vendor::mali || d.vendor == Vendor::nvidia ||
              d.vendor == Vendor::amd) &&
             s.m >= 8 &&
             threads8 >= units * (d.vendor == Vendor::mali ? 1024 : 768)) {  // the occupancy that hides the loads
    first = kRows8;
    why = "enough threads on every compute unit for 8 rows each";
  }
  ProductChoice c = {};
  c.why = why;
  c.order[c.count++] = uint8_t(first);
  const bool can[] = {true,          s.vectors,     tile(kTile16),  tile(kTile16x32),
                      tile(kTile32), tile(kTile64), tile(kTile128), vector};
  for (uint8_t kind = 0; kind < kProductKinds; ++kind)
    if (can[kind] && kind != first) c.order[c.count++] = kind;
  return c;
}

bool choose_half(const Description& d, const ProductSize& s, ProductKind kind) {
  return s.half && s.vectors && d.f16_arithmetic && (kind == kRows4 || kind == kRows8);
}

// What the field found: phones of these two families read weights faster as textures, whose cache is apart from that of
// buffers and that threads share; elsewhere one cache serves both.
StorageChoice choose_storage(const Description& d, size_t texels) {
  const bool textures = d.vendor == Vendor::adreno || d.vendor == Vendor::powervr;
  if (texels == 0 || texels > d.texels)
    return {Storage::buffer, false,
            textures ? "more texels than the device takes of a buffer" : "one cache serves buffers and textures"};
  if (textures) return {Storage::image, true, "textures have a cache of their own"};
  return {Storage::buffer, true, "one cache serves buffers and textures"};
}

const char* winograd_form_name(WinogradForm form) {
  return form == WinogradForm::f4x4 ? "winograd_f4x4" : form == WinogradForm::f2x2 ? "winograd_f2x2" : "none";
}

namespace {

// While a byte comes from memory. By data sheets devices do 7 to 17 (H100 11, Adreno 640 13, GeForce RTX 3060 17), and
// products on an H100 keep to 0.6 of the rates of tile_cost().
double multiplications_per_byte(const Description& d) { return d.vendor == Vendor::nvidia ? 5 : 15; }

// What the unit with the most work does during a product by its first choice, in multiplications; at least until the
// weights, of f32, have come. A row of threads reads weights for itself.
double product_cost(const Description& d, const ProductSize& s) {
  constexpr double kVectorRate = 0.08;
  const size_t units = d.info.compute_units ? d.info.compute_units : 1;
  const int kind = choose_product(d, s).order[0];
  const double columns = double(s.n) * double(s.z) / double(units), results = double(s.m) * columns,
               weights = multiplications_per_byte(d) * 4 * double(s.k) * columns;
  const ProductTile* const tile = product_tile(kind);
  const double cost = tile              ? tile_cost(*tile, s, units)
                      : kind == kVector ? double(s.k) * results / kVectorRate
                                        : rows_cost(s, units);
  return cost > weights ? cost : weights;
}

}  // namespace

// Directly a layer is one product, of 9 * in terms; by Winograd a batch of them, of `in` terms for each of the tiles'
// points (36 for 16 outputs, or 16 for 4, more where tiles hang over the edge), between two transforms, whose values
// and results are written and read once: 8 bytes a channel. On an H100 a dispatch takes 2 us, in multiplications of a
// unit, and with NVIDIA's OpenCL the host cannot enqueue one in less than 5 to 7. Measured there; elsewhere Winograd
// must win by a third.
WinogradForm choose_winograd(const Description& d, const WinogradSize& s, uint32_t allowed) {
  if (d.vendor == Vendor::software || d.vendor == Vendor::unknown || d.info.is_software) return WinogradForm::none;
  constexpr double kDispatch = 3.5e5, kEnqueue = 1.4e6;
  const bool measured = d.vendor == Vendor::nvidia;
  const double units = d.info.compute_units ? d.info.compute_units : 1;
  const auto time = [&](int dispatches, double cost) {
    const double device = dispatches * kDispatch + cost, host = measured && d.opencl ? dispatches * kEnqueue : 0;
    return device > host ? device : host;
  };
  const size_t pixels = s.batch * s.out_h * s.out_w, in = s.in_channels, out = s.out_channels;
  WinogradForm best = WinogradForm::none;
  double least = time(1, product_cost(d, {pixels, out, 9 * in, 1, in % 4 == 0 && out % 4 == 0, true, true})) /
                 (measured ? 1 : 4.0 / 3);
  constexpr WinogradForm forms[] = {WinogradForm::f2x2, WinogradForm::f4x4};
  for (const WinogradForm form : forms) {
    const size_t m = form == WinogradForm::f4x4 ? 4 : 2, points = (m + 2) * (m + 2),
                 tiles = over(s.out_h, m) * over(s.out_w, m) * s.batch;
    if (!(allowed >> int(form) & 1) || pixels == 0) continue;
    const double traffic = multiplications_per_byte(d) * 8 * double(points * tiles) * double(in + out) / units;
    const double cost =
        time(3, product_cost(d, {tiles, over(out, 4) * 4, over(in, 4) * 4, points, true, true, false}) + traffic);
    if (cost >= least) continue;
    best = form;
    least = cost;
  }
  return best;
}

// What the subgroups leave is added one by one: of 16 at most, which no tree in local memory would do in fewer steps
// that wait for one another, and no sum is longer for it than the bounds allow.
bool choose_subgroups(const Description& d, uint32_t threads) {
  return d.subgroup_sums && d.subgroup > 1 && threads <= 16 * d.subgroup;
}

// A global average of 224 x 224 x 256 by 512 threads took an H100 some 0.1 us for each load of a thread, and a dispatch
// takes it 2 us (OpenCL's host 5 to 7): worth it from 128 loads on. Parts are as many as give a unit 1024 threads, four
// loads of each on their way, which is what memory needs; but no more than leave a part as many terms as there are
// parts, so that joining takes no longer.
size_t choose_parts(const Description& d, size_t n, size_t groups, uint32_t threads, uint32_t slices) {
  // Vulkan may not tell the units: idle groups cost less than idle units
  constexpr size_t kLoads = 128, kThreads = 1024, kUnknownUnits = 16;
  if (n / slices < kLoads) return 1;
  const size_t wanted = (d.info.compute_units ? d.info.compute_units : kUnknownUnits) * kThreads / (groups * threads);
  size_t parts = 1;
  while (parts < wanted && (parts + 1) * (parts + 1) <= n) ++parts;
  return parts;
}

// Phones have 64 registers a thread (Mali), or fewer threads for each one more (Adreno).
bool choose_blocks(const Description& d) {
  return d.vendor == Vendor::nvidia || d.vendor == Vendor::amd || d.vendor == Vendor::software;
}

// Local memory of phones may be no nearer than the cache (Mali's is memory).
bool choose_squares(const Description& d) {
  return (is_desktop(d) || d.vendor == Vendor::software) && d.group_threads >= 256 && d.local_bytes >= 4 * 32 * 33;
}

WorkGroup product_group(const Description& d, ProductKind kind, size_t columns) {
  if (product_tile(kind)) return {{16, 16, 1}};
  if (kind == kVector) {  // as many columns as leave two groups for every unit
    uint16_t x = 16;
    while (x > 2 && over(columns, x) < 2 * size_t(d.info.compute_units)) x /= 2;
    return {{x, uint16_t(256 / x), 1}};
  }
  const uint32_t threads = threads_of(d);
  const uint16_t x = columns > 8 ? 16 : columns > 4 ? 8 : 4;  // few shapes: each is a program of its own
  return {{x, uint16_t(threads > x ? threads / x : 1), 1}};
}

WorkGroup map_group(const Description& d, size_t channels) {
  const uint32_t threads = threads_of(d);
  // A warp that reads neighbours only, where it has no fewer of them: halves are read 10 to 30% faster by an H100.
  const bool warps = d.vendor == Vendor::nvidia && channels >= 32 && over(channels, 32) * 2 == over(channels, 16);
  const uint16_t x = warps ? 32 : channels > 8 ? 16 : channels > 4 ? 8 : channels > 1 ? 4 : 1;
  return {{x, uint16_t(threads > x ? threads / x : 1), 1}};
}

}  // namespace skua::gpu
