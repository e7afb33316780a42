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

bool is_desktop(const Description& d) { return d.vendor == Vendor::nvidia || d.vendor == Vendor::amd || d.vendor == Vendor::intel || d.vendor == Vendor::apple; }

}  // namespace

const char* product_kind_name(int kind) {
  static const char* const names[] = {"rows4", "rows8", "tile64", "tile128", "vector"};
  return kind >= 0 && kind < kProductKinds ? names[kind] : "";
}

ProductChoice choose_product(const Description& d, const ProductSize& s) {
  const size_t units = d.info.compute_units ? d.info.compute_units : 1;
  const bool group256 = d.group_threads >= 256 && (!d.group_extent[0] || d.group_extent[0] >= 16) && (!d.group_extent[1] || d.group_extent[1] >= 16);
  const bool tiles = group256 && d.local_bytes >= 8192 && !s.bytes, large = group256 && d.local_bytes >= 16384 && s.vectors && !s.bytes;
  const bool vector = group256 && d.local_bytes >= 4096 && s.constant && !s.window && s.m <= 4 && !s.bytes;
  const size_t blocks64 = over(s.m, 64) * over(s.n, 64) * s.z, blocks128 = over(s.m, 128) * over(s.n, 128) * s.z;
  const size_t threads8 = over(s.m, 8) * over(s.n, 4) * s.z;
  int first = kRows4;
  const char* why = "few sums, or a device of unknown kind: the smallest tile gives the most threads";
  if (vector && s.k >= 64 && d.vendor != Vendor::software) {
    first = kVector;
    why = "few rows: threads share the sums of a column";
  } else if (is_desktop(d) && large && d.vendor != Vendor::intel && d.vendor != Vendor::apple && s.m >= 128 && s.n >= 96 && blocks128 >= 2 * units) {
    first = kTile128;
    why = "large enough for two tiles of 128 in local memory on every compute unit";
  } else if (is_desktop(d) && tiles && s.m >= 32 && s.n >= 32 && s.k >= 16 && 2 * blocks64 >= units) {
    first = kTile64;
    why = "large enough for tiles of 64 in local memory on half of the compute units";
  } else if (s.vectors && (d.vendor == Vendor::adreno || d.vendor == Vendor::mali || d.vendor == Vendor::nvidia || d.vendor == Vendor::amd) && s.m >= 8 &&
             threads8 >= units * (d.vendor == Vendor::mali ? 1024 : 768)) {  // the occupancy that hides the loads
    first = kRows8;
    why = "enough threads on every compute unit for 8 rows each";
  }
  ProductChoice c = {};
  c.why = why;
  c.order[c.count++] = uint8_t(first);
  const bool can[] = {true, s.vectors, tiles, large, vector};
  for (uint8_t kind = 0; kind < kProductKinds; ++kind)
    if (can[kind] && kind != first) c.order[c.count++] = kind;
  return c;
}

bool choose_half(const Description& d, const ProductSize& s, ProductKind kind) { return s.half && s.vectors && d.f16_arithmetic && (kind == kRows4 || kind == kRows8); }

// What the field found: phones of these two families read weights faster as textures, whose cache is apart from that of buffers and that threads share; elsewhere one cache serves both.
StorageChoice choose_storage(const Description& d, size_t texels) {
  const bool textures = d.vendor == Vendor::adreno || d.vendor == Vendor::powervr;
  if (texels == 0 || texels > d.texels) return {Storage::buffer, false, textures ? "more texels than the device takes of a buffer" : "one cache serves buffers and textures"};
  if (textures) return {Storage::image, true, "textures have a cache of their own"};
  return {Storage::buffer, true, "one cache serves buffers and textures"};
}

const char* winograd_form_name(WinogradForm form) { return form == WinogradForm::f4x4 ? "winograd_f4x4" : form == WinogradForm::f2x2 ? "winograd_f2x2" : "none"; }

// Time in operations that the device could do meanwhile. Directly an output costs 2 * 9 * in * out, by Winograd 2 * p * in * out with p products for each output and pair of channels (36 for 16,
// or 16 for 4, more where tiles hang over the edge), and its transformed values and products are written and read once: 2 * 4 * p * (in + out) bytes. Devices do 15 to 35 operations of f32 for
// each byte of their memory (data sheets: H200 16, Adreno 640 26, GeForce RTX 3060 35). Arithmetic only: not measured, so Winograd must win by a third, and fill the device.
WinogradForm choose_winograd(const Description& d, const WinogradSize& s, uint32_t allowed) {
  constexpr double kOperationsPerByte = 30, kMargin = 4.0 / 3;
  if (d.vendor == Vendor::software || d.vendor == Vendor::unknown || d.info.is_software) return WinogradForm::none;
  const double in = double(s.in_channels), out = double(s.out_channels), pixels = double(s.batch) * double(s.out_h) * double(s.out_w);
  const size_t units = d.info.compute_units ? d.info.compute_units : 1;
  WinogradForm best = WinogradForm::none;
  double least = 2 * 9 * in * out / kMargin;
  constexpr WinogradForm forms[] = {WinogradForm::f2x2, WinogradForm::f4x4};
  for (const WinogradForm form : forms) {
    const size_t m = form == WinogradForm::f4x4 ? 4 : 2, points = (m + 2) * (m + 2), tiles = over(s.out_h, m) * over(s.out_w, m) * s.batch;
    if (!(allowed >> int(form) & 1) || pixels == 0 || over(tiles, 8) * over(s.out_channels, 4) * points < 256 * units) continue;
    const double p = double(tiles) * double(points) / pixels, cost = 2 * p * in * out + kOperationsPerByte * 8 * p * (in + out);
    if (cost >= least) continue;
    best = form;
    least = cost;
  }
  return best;
}

// What the subgroups leave is added one by one: of 16 at most, which no tree in local memory would do in fewer steps that wait for one another, and no sum is longer for it than the bounds allow.
bool choose_subgroups(const Description& d, uint32_t threads) { return d.subgroup_sums && d.subgroup > 1 && threads <= 16 * d.subgroup; }

WorkGroup product_group(const Description& d, ProductKind kind, size_t columns) {
  if (kind == kTile64 || kind == kTile128 || kind == kVector) return {{16, 16, 1}};
  const uint32_t threads = threads_of(d);
  const uint16_t x = columns > 8 ? 16 : columns > 4 ? 8 : 4;  // few shapes: each is a program of its own
  return {{x, uint16_t(threads > x ? threads / x : 1), 1}};
}

WorkGroup map_group(const Description& d, size_t channels) {
  const uint32_t threads = threads_of(d);
  const uint16_t x = channels > 8 ? 16 : channels > 4 ? 8 : channels > 1 ? 4 : 1;
  return {{x, uint16_t(threads > x ? threads / x : 1), 1}};
}

}  // namespace skua::gpu
