// Which kernels, how many tiles per block, and how long it will take.
#include "winograd/winograd.h"

namespace skua {

namespace {

#ifdef SKUA_TYPE_s8
Family tables_for(Element e) { return is_int8(e) ? winograd_int8_tables : winograd_tables; }
const Kernel* tile_of_bytes(const skua_context* ctx) {
  return find_kernel(ctx, gemm_int8_tables, KernelKind::gemm_tile, 0, Element::s8);
}
#else
Family tables_for(Element) { return winograd_tables; }
const Kernel* tile_of_bytes(const skua_context*) { return nullptr; }
#endif

// The first kernel of that kind for vectors of that length, 0: of any. V, U and M are laid out in vectors.
const Kernel* find(const skua_context* ctx, KernelKind kind, int variant, uint32_t vector, Element element) {
  struct Search {
    uint32_t vector;
    const Kernel* found;
  } s = {vector, nullptr};
  each_kernel(ctx, tables_for(element), kind, variant, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!s.found && (!s.vector || k->vector == s.vector)) s.found = k;
  }, &s, element, [](const Kernel* k, void* arg) {
    const auto& s = *static_cast<const Search*>(arg);
    return !s.vector || k->vector == s.vector;
  });
  return s.found;
}

// Along a dimension: points that clipped tiles drop, and the share of tiles that have them all.
struct Dropped {
  double points, tiles;
};
Dropped dropped(const WinogradTiles& t, size_t tiles) {
  const double longer = t.clip[0] ? t.longer : 0, others = t.clip[1] ? t.dilation - t.longer : 0,
               clipped = longer + others;
  return clipped > 0 ? Dropped{(longer * t.clip[0] + others * t.clip[1]) / clipped, 1 - clipped / double(tiles)}
                     : Dropped{0, 1};
}

double bytes_of_u(const WinogradPlan& p, const WinogradShape& s) {
  return double(winograd_products(p.variant) * winograd_channels(p.variant, s.in_channels, p.element)) *
         double(round_up(s.out_channels, p.tile->vector)) * element_bytes(p.element);
}

// Cycles on one thread with blocks of this size. The constants are fits, in cycles, to cores with 2 vector
// multiply-adds per cycle.
double cycles(const WinogradPlan& p, const WinogradShape& s, const Machine& m, size_t block) {
  const double mean = (winograd_height(p.variant) + winograd_width(p.variant)) / 2.0 - 2,
               mean_out = (winograd_rows(p.variant) + winograd_columns(p.variant)) / 2.0,
               points = double(winograd_points(p.variant)), lanes = p.tile->vector;
  const double bytes = element_bytes(p.element);  // of a value of V and U
  const double blocks = double(ceil_div(p.tiles, block)), oc = double(round_up(s.out_channels, p.tile->vector));
  const double u_bytes = bytes_of_u(p, s), ic = u_bytes / (points * oc * bytes), line = double(kWinogradLine),
               in_line = double(winograd_parts(p.variant) * ceil_div(s.in_channels, kWinogradLine)) * line * bytes,
               out_line = double(ceil_div(s.out_channels, kWinogradLine)) * line * 4;
  const double block_bytes = points * double(block) * (in_line > out_line ? in_line : out_line);
  // what does not fit costs less where the level behind is fast: measured with 31 and 117 GB/s
  const double in_l2 = block_bytes / double(m.l2), fast = m.l3_bytes > 12 ? m.l3_bytes / 12 : 1,
               far_level = 1 / (fast * fast * fast);
  // There it also costs no more once little of it fits (Zen 3, whose L2 is 512 KiB: 28x28x256-512 7.9 ms with 7 tiles
  // of 0.8 MB, 6.2 with 25).
  const auto beyond = [&](double from) { return in_l2 <= from ? 0 : fast > 1 && in_l2 > from + 1 ? 1 : in_l2 - from; };

  const double vectors = double(p.tile->nr) / lanes;
  // Of bytes: on x86 two channels by one instruction, or by a product and an addition, three of which start at once (of
  // 512 bits 2.4); on Arm one by the only pipe that multiplies integers.
  const bool integer = p.element == Element::s16;
  // Zen 5 moves and adds beside its multiply-adds; of few channels all of this is half of the time (16: a sixth less
  // than elsewhere).
  const bool apart = m.logic_apart && fast > 1 && !integer;
  const double rate = double(code_of<WinogradProductTableFn>(p.tile)().rate);
  const double together = double(winograd_together(p.element));
  // AVX2's tiles of fewer rows than six are longer loops for what they multiply, beside a busy thread of the core above
  // all
  const double around = lanes == 8 ? 8 : 4;
  const auto product = [&](double r, Core core) {  // of r rows and one group
    const double multiplies = r * vectors, operations = rate < 2 ? multiplies * together : multiplies;
    double step = !integer || lanes >= 16 || rate >= 2 ? multiplies * together / (rate * m.fma_ports)
                  : together > 1                       ? operations / 3.1
                                                       : multiplies;
    if (const double issue =
            ((lanes >= 16 && operations == multiplies ? multiplies : operations + multiplies / vectors) + vectors +
             around) /
            m.issue;
        issue > step)
      step = issue;
    // every multiply-add of a group of one vector loads its value of V
    if (const double loads = (r + vectors) / m.load_ports; lanes >= 16 && loads > step) step = loads;
    // Loads take turns with multiply-adds, those of 128 bits two: of bytes there are half as many.
    if (m.in_order) step += (vectors + r / 4) * (integer || core == Core::a53 ? 1 : core == Core::a55 ? 0 : 2);
    // one accumulator, one multiply-add per step; VNNI's take five cycles, four where 512 bits are two halves
    if (const double latency = rate < 2 || m.fma_ports < 2 ? m.fma_latency : 5; latency > step) step = latency;
    return step * ic / together + 30 +
           (apart ? 1 : 2) * multiplies * (p.element != Element::f16 ? 1 : 1 + ic / double(kWinogradHalfDepth));
  };
  const size_t mr = p.tile->mr;
  const auto products = [&](double tiles) {  // of one point; run.cc has the parts
    const size_t n = size_t(tiles + 0.99), pieces = ceil_div(n, mr);
    if (!p.full) return double(pieces) * product(pieces ? tiles / double(pieces) : 0, p.tile->tuned_for);
    return double(n / mr) * product(double(mr), p.tile->tuned_for) + (n % mr ? product(double(n % mr), Core::any) : 0);
  };
  // A point that a clip drops is one of the tiles that are not clipped.
  const Dropped y = dropped(p.y, p.tiles_y), x = dropped(p.x, p.tiles_x);
  const double height = winograd_height(p.variant), width = winograd_width(p.variant),
               tiles = p.full && block < p.tiles ? double(block) : double(p.tiles) / blocks;
  const double all_points = (height - y.points) * (width - x.points) * products(tiles) +
                            y.points * (width - x.points) * products(tiles * y.tiles) +
                            (height - y.points) * x.points * products(tiles * x.tiles) +
                            y.points * x.points * products(tiles * y.tiles * x.tiles);
  const double multiply =
      double(p.tiles) / tiles * (oc / double(p.tile->nr)) * all_points * (1 + 0.3 * far_level * beyond(0.5));
  // U streams through once per block; most of the shorter of the two hides behind the longer: measured, four fifths of
  // the stream, nine tenths of the products.
  const double in_l3 = u_bytes / double(m.l3), s16_lost = m.s16_lost / double(m.l3);
  const bool crowded = integer && s16_lost < m.l3_lost;
  const double lost = crowded ? s16_lost : m.l3_lost, own = crowded ? 0.4 * lost : m.l3_own,
               of_memory = m.l3 <= m.l2 || in_l3 < own ? 0 : in_l3 < lost ? (in_l3 - own) / (lost - own) : 1;
  const double from = u_bytes + block_bytes < double(m.l2)
                          ? m.l2_bytes
                          : 1 / (of_memory / m.memory_bytes + (1 - of_memory) / (0.8 * m.l3_bytes));
  const double stream = blocks * u_bytes / from;
  const double products_and_stream = multiply > stream ? multiply + 0.2 * stream : stream + 0.1 * multiply;

  // Arithmetic, and lines of V and M that move between L1 and L2, farther when a block does not fit.
  const double far = 1 + 2.2 * far_level * beyond(0.25), slower = (apart ? 1.5 : 2) / m.fma_ports,
               in_lanes = p.in->vector, out_lanes = p.out->vector;
  const double in = double(winograd_products(p.variant)) *
                    ((2.6 + 0.35 * mean) * slower + 0.65 * mean * in_lanes / 16 * bytes / 4) * far *
                    double(ceil_div(s.in_channels, p.in->vector));
  const bool sapphire_rapids = lanes >= 16 && m.sapphire_rapids && !integer,
             strided = winograd_stride(p.variant) > 1, half = p.element == Element::f16;
  // With a stride of 2 pixels two apart are four transforms (Zen 5: 250 cycles more for each line, at 16 to 64
  // channels; Zen 3, whose vectors are half as long: 750 at 16; Sapphire Rapids, 16 to 256: 150, of f16 none).
  const double parted = strided && (apart || (sapphire_rapids && !half))
                            ? (apart ? 250 : 150) * 16 / in_lanes * far * double(ceil_div(s.in_channels, kWinogradLine))
                            : 0;
  const double out =
      points * ((0.5 + 0.75 * mean_out) * slower + 0.3 * mean_out * out_lanes / 16) * far * oc / out_lanes;
  // the workspace comes from wherever the operators before left it: often from L2
  const double cold = 0.4 * block_bytes / (0.8 * m.l3_bytes);
  const double all = products_and_stream + double(p.tiles) * (in + parted + 30 + out + 40) + cold;
  // Sapphire Rapids, products of 512 bits, while the direct form takes what the model says: 0.77 to 0.87 of this (3x3
  // and 5x5 of 14x14 to 56x56, maps of f32 and f16), of f16 0.83 to 0.95, most where channels are few; F(6,3) 1.06 to
  // 1.5 where its weights, which are 1.8 times those of F(4,3), are beyond L2; with a stride of 2 all of it.
  if (!sapphire_rapids || strided) return all;
  return all * (half ? 0.93 : p.variant == WinogradVariant::f6x6 && u_bytes > double(m.l2) ? 1.3 : 0.87);
}

// False: too many.
bool cut_tiles(size_t out, size_t dilation, int outputs, WinogradTiles& t, size_t& tiles) {
  if (out > UINT32_MAX || dilation > UINT32_MAX) return false;
  t.outputs = uint32_t(outputs);
  t.dilation = uint32_t(dilation);
  t.longer = uint32_t(out % dilation);
  for (uint32_t other = 0; other < 2; ++other) {
    const size_t n = out / dilation + (other ? 0 : 1);
    t.tiles[other] = uint32_t(ceil_div(n, size_t(outputs)));
    t.clip[other] = other || t.longer ? uint8_t(t.tiles[other] * size_t(outputs) - n) : uint8_t(0);
  }
  tiles = size_t(t.longer) * t.tiles[0] + (dilation - t.longer) * t.tiles[1];
  return tiles <= UINT32_MAX;
}

}  // namespace

PackFormat winograd_int8_format(const skua_context* ctx, double* rate) {
  const Kernel* k = find(ctx, KernelKind::winograd_product, 0, 0, Element::s8);
  if (k && rate) *rate = double(code_of<WinogradProductTableFn>(k)().rate) * k->vector;
  const uint16_t vector = k ? k->vector : 0;
  return {vector, vector, Element::s16, uint8_t(winograd_together(Element::s16)), 0};
}

PackFormat winograd_half_format(const skua_context* ctx) {
  const Kernel* k = find_kernel(ctx, winograd_tables, KernelKind::winograd_product, 0, Element::f16);
  const uint16_t vector = k ? k->vector : 0;
  return {vector, vector, Element::f16, 1, 0};
}

bool winograd_plan(const skua_context* ctx, WinogradVariant variant, const WinogradShape& s, const PackFormat& format,
                   WinogradPlan* plan, Choice* choice) {
  WinogradPlan& p = *plan;
  p = {};
  p.variant = variant;
  p.element = format.element;
  if (format.kr != winograd_together(p.element)) return false;
  const bool half = p.element == Element::f16, bytes = p.element == Element::s16;
  const uint32_t vector = half || bytes ? 0 : format.vector;
  p.in =
      find(ctx, KernelKind::winograd_in, int(winograd_input(variant)) + (half ? kWinogradHalf : 0), vector, s.element);
  p.tile = find(ctx, KernelKind::winograd_product, 0, format.vector, bytes ? Element::s8 : p.element);
  p.out = find(ctx, KernelKind::winograd_out, int(winograd_output(variant)), vector, bytes ? Element::s8 : s.element);
  if (!p.in || !p.tile || !p.out) return false;
  p.full = code_of<WinogradProductTableFn>(p.tile)().full;
  p.on_cores = on_cores(ctx, tables_for(s.element), p.tile, [](const Kernel* other, const Kernel* tile) {
    return other->mr == tile->mr && other->nr == tile->nr;
  });
  if (bytes) {
    p.rows = tile_of_bytes(ctx);
    if (!p.rows) return false;
  } else if (s.element != Element::f32) {
    p.out_f32 = find(ctx, KernelKind::winograd_out, int(variant), vector, Element::f32);
    p.rows = find_kernel(ctx, gemm_tables, KernelKind::gemm_rows, 0, s.element);
    if (!p.out_f32 || !p.rows) return false;
  }
  if (!cut_tiles(s.out_h, s.dilation_h, winograd_rows(variant), p.y, p.tiles_y) ||
      !cut_tiles(s.out_w, s.dilation_w, winograd_columns(variant), p.x, p.tiles_x) ||
      !mul(p.tiles_y, p.tiles_x, p.tiles) || !mul(p.tiles, s.batch, p.tiles) || p.tiles > UINT32_MAX ||
      s.in_channels > SIZE_MAX / 65536)
    return false;
  if (!p.tiles) {
    p.block = 1;
    return true;
  }
  const Machine m = machine_for(p.tile->isa);
  p.pages = m.asks_by_pages && bytes_of_u(p, s) > double(m.l2 / 2);  // with its tiles, beyond L2
  size_t last = 0;
  constexpr size_t candidates[] = {8, 12, 16, 20, 24, 28, 40, 56, 84, kWinogradBlock};
  for (size_t most : candidates) {
    const size_t even = ceil_div(p.tiles, ceil_div(p.tiles, most)),
                 block = p.full ? round_up(even, size_t(p.tile->mr)) : even;
    if (block == last) continue;
    last = block;
    if (choice && choice->skip()) continue;
    const double c = cycles(p, s, m, block);
    if (p.block && c >= p.cycles) continue;
    p.block = block;
    p.cycles = c;
  }
  // A worker's V and M are far from the end of the address space.
  size_t floats;
  return p.block &&
         mul(winograd_points(variant) * p.block,
             winograd_parts(variant) * round_up(s.in_channels, kWinogradLine) + round_up(s.out_channels, kWinogradLine),
             floats) &&
         floats <= SIZE_MAX / 1024;
}

}  // namespace skua
