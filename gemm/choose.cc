// What products cost, and what is chosen by it: tiles and tasks. See driver.h.
#include "gemm/driver.h"

namespace skua {
namespace {

// Rows of s8 become u8 in the tile, as they are spread.
bool flips(const GemmTileTable& tiles) { return tiles.a_shift && tiles.a == Element::s8 && tiles.b == Element::s8; }

// An only row of bytes that meets a panel after the other.
bool by_panel(const Kernel* tile) {
  return kArch == Arch::x86_64 && table_of(tile).bytes && !table_of(tile).pack_a && tile->isa != Isa::scalar;
}

// first: its rows bring the panel near.
double tile_cycles(const Machine& m, const Kernel* tile, size_t rows, size_t vectors, size_t depth,
                   double b_bytes_per_cycle, bool even, bool first) {
  const GemmTileTable& tiles = table_of(tile);
  const bool by_lane = tile->isa == Isa::neon || tile->isa == Isa::neon32 ||
                       (tiles.bytes && kArch != Arch::x86_64 && tile->isa != Isa::scalar);
  // of rows side by side, not one after the other
  const bool panels = tiles.pack_a && bytes_of_a(tiles) == element_bytes(tiles.a);
  if (panels) rows = tile->mr;  // all are multiplied
  // Widening B takes two instructions for a vector, but they overlap with waiting for it: measured at 4 to 24 rows.
  // Those to 512 bits take the ports of multiply-adds where logic has none of its own (Sapphire Rapids: 1x1000x512 of
  // f16 19 us from an L2 that gives it in 12).
  // Products of pairs of rows move each pair together where A is in place.
  const double multiplies = double(rows * vectors), pairs = tiles.rate == 8 && !tiles.pack_a ? 0.5 * double(rows) : 0,
               widen = kArch == Arch::x86_64 && tile->vector >= 16 && !m.logic_apart ? 2 : 0.75,
               widens = tiles.b != tiles.a && !tiles.bytes ? widen * double(vectors) : pairs;
  // of f16 by f16 on x86 each product broadcasts its element of A
  const bool in_halves = kArch == Arch::x86_64 && tiles.half_sums && rows > 1;
  const double of_a = panels ? 1.0 / tile->vector : by_lane ? 0.25 : in_halves ? double(vectors) : 1;
  const double loads = double(vectors) + double(rows) * of_a;
  double step = (multiplies + widens + (flips(tiles) && !m.logic_apart ? double(rows) : 0)) / m.fma_ports;
  // a vector load is two cycles of its own unless it is in halves
  if (m.in_order)
    step += loads * (tile->tuned_for == Core::a53 ? 1 : tile->tuned_for == Core::a55 && tiles.pack_a ? 0 : 2);
  if (const double c = loads / m.load_ports; c > step) step = c;
  if (const double c = (multiplies + loads + 3) / m.issue; c > step) step = c;
  // a load of A for each product (Zen 3: 9.4 cycles for 14 rows; why not 7.5 was not found)
  if (kArch == Arch::x86_64 && tile->isa == Isa::avx2 && vectors == 1 && rows > 6 && !tiles.bytes) step *= 1.25;
  // One accumulator, one multiply-add per step; a row of bytes has two to four for each vector, and products of five
  // cycles.
  const bool row = rows == 1 && by_panel(tile);
  if (const double c = !row ? m.fma_latency : vectors < 3 ? 5.0 / 4 : 5.0 / 2; c > step) step = c;
  step /= tiles.rate;
  const double stream = double(vectors * tile->vector * element_bytes(tiles.b)) / b_bytes_per_cycle;
  // Products of bytes and pairs are over so soon that loads of B show: measured at 4 to 8 rows of bytes, and at one of
  // half lines (Zen 5: 1x1000x4096 41 us by AVX-VNNI, 32 by lines). Not those of bytes by one a cycle (Zen 4: 6x64
  // multiplies out of L2 as out of L1).
  const bool soon = tiles.bytes ? (first || kArch != Arch::x86_64) && m.fma_ports > 1 && !(row && tile->vector >= 16)
                                : tile->isa == Isa::avx512bf16 && rows > 2;
  step = (stream > step ? stream : step) + (soon ? 0.15 * stream : 0);
  // requantised: measured on AVX-512
  if (tiles.bytes) return step * double(depth) + 10 + 3.4 * multiplies + (even ? 2 : 5) * double(rows);
  // sums that move on to floats between blocks
  const double moves = in_halves ? 4 * multiplies * double((max(depth, 1) - 1) / kSumBlock) : 0;
  // measured on AVX2 and AVX-512, C in L1
  return step * double(depth) + moves + 5 + 1.6 * multiplies + (even ? 0 : 5 * double(rows));
}

// Tiles of AMX: registers of 16 rows and 16 columns, two by two of them at a time, a product of 64 deep in 16 cycles.
// What brings them takes longer: 25 to 31 cycles (Sapphire Rapids, from L2). Of a tile its beginning and its stores do
// not hide. Of few rows the panels come while they are multiplied, a cycle and a half more for each row.
double register_cycles(const Kernel* tile, size_t m, size_t n, size_t depth, double cold) {
  const GemmTileTable& tiles = table_of(tile);
  const double steps = double(ceil_div(depth, tiles.kr)), wide = double(ceil_div(n, tile->vector)),
               panels = double(ceil_div(n, tile->nr)), groups = double(ceil_div(m, tile->mr));
  const double few = m < tile->mr ? 25 + 1.4 * double(max(m, 4) - 4) : 25 + (groups < 2 ? 17 : 0),
               stream = double(tile->vector) * tiles.kr * element_bytes(tiles.b) / cold *
                        (cold < machine_for(tile->isa).l2_bytes ? 1.08 : 1);  // slower than to vectors
  const double rows = tiles.pack_a ? double(m) * (steps * 8 + 8) : 0;  // copied: 7 to 12 cycles a line
  // configuration of the registers, and giving them back: 0.6 us of 1x120x32
  return wide * steps * max(few, stream) + (groups - 1) * wide * steps * 25 + groups * wide * 55 + rows + 60 * panels +
         900;
}

}  // namespace

double gemm_cycles(const Kernel* tile, size_t m, size_t n, size_t depth, bool cached, size_t taps, size_t line) {
  if (!m || !n) return 0;
  const Machine machine = machine_for(tile->isa);
  const GemmTileTable& tiles = table_of(tile);
  const unsigned element = element_bytes(tiles.b);
  const double bytes = double(n) * double(depth) * element;
  double cold = cached                              ? machine.l2_bytes
                : bytes > 0.75 * double(machine.l3) ? machine.memory_bytes
                : bytes > double(machine.l2)        ? machine.l3_bytes
                                                    : machine.l2_bytes;
  // From memory a single group of rows reads panels of 64 columns at 0.87 of the speed of panels of 48 (1x11008x4096 on
  // AVX-512; why was not found).
  if (m <= tile->mr && bytes > double(kSoon) && tiles.b == Element::f32 && tile->nr > 48) cold *= 0.87;
  // 1x1000x4096 650 us by AVX2, by AVX-512 590.
  if (m == 1 && machine.asks_by_pages && bytes > double(kSoon) && tiles.b == Element::f32 && tile->vector < 16)
    cold *= 0.92;
  if (tiles.enter) return register_cycles(tile, m, n, depth, cold);
  // Of a panel of bytes a little larger than L1 most is still there (measured: 5x5 of 32 channels).
  const double panel = double(tile->nr) * double(depth) * element / double(machine.l1),
               beyond = panel <= 1                 ? 0
                        : panel < 2 && tiles.bytes ? panel - 1
                                                   : 1;
  const double warm = 1 / ((1 - beyond) / 64 + beyond / machine.l2_bytes);
  auto columns = [&](size_t vectors) {
    const size_t tall = tiles.even[vectors - 1] ? tiles.even_rows[vectors - 1] : m + 1,
                 even = line ? m / line * (line / tall) : m / tall, left = m - even * tall,
                 groups = ceil_div(left, tile->mr);
    const size_t rows = groups ? ceil_div(left, groups) : tall;
    // AVX2's parts of whole tiles take a turn of the loop for each step, whole ones for four (Zen 3: five rows of 6x16
    // 0.82 of six, two of 3x32 0.8 to 0.95 of three). Of many rows they are few.
    const bool turns = kArch == Arch::x86_64 && tile->isa == Isa::avx2 && !tiles.bytes && m > 4 && m <= 16 &&
                       rows < tile->mr && vectors * tile->vector == tile->nr;
    const double least =
        turns ? double(depth) * double(vectors) / machine.fma_ports * (0.55 * double(tile->mr) + 0.4 * double(rows))
              : 0;
    const auto part = [&](double bytes, bool first) {
      return max(tile_cycles(machine, tile, rows, vectors, depth, bytes, false, first), least);
    };
    // The first group of rows brings the panel near; even rows come first.
    double cycles = even ? tile_cycles(machine, tile, tall, vectors, depth, cold, true, true) +
                               double(even - 1) * tile_cycles(machine, tile, tall, vectors, depth, warm, true, false)
                         : 0;
    if (groups && !even) cycles = part(cold, true);
    if (const size_t rest = even ? groups : max(groups, 1) - 1) cycles += double(rest) * part(warm, false);
    return cycles;
  };
  const size_t full = n / tile->nr, rest = ceil_div(n % tile->nr, tile->vector), panels = full + (rest != 0);
  // of bytes: twelve operations for four vectors of columns, two deep, three of them a cycle; a beginning and an end
  if (m == 1 && tiles.row_at_once && depth <= kWideRow) {
    // of 512 bits so few that loads show
    const double products = double(ceil_div(n, tile->vector)) * double(depth) / 2,
                 waits = tile->vector >= 16 ? 0.15 : 0;
    return max(products, bytes / cold) + waits * bytes / cold + 30 * double(ceil_div(n, size_t(4 * tile->vector))) + 30;
  }
  if (m == 1 && has_row(tile, n, depth)) {  // two panels at a time
    const size_t at_once = by_panel(tile) ? 1 : panels_at_once(tile, machine, n, depth),
                 vectors = ceil_div(n, tile->vector), two = at_once * tile->nr / tile->vector;
    const bool widens = tiles.b != tiles.a && !tiles.bytes;
    if (at_once == 2 && bytes <= (tiles.overlaps || widens ? double(machine.l2) : double(kSoon)) &&
        new_streams(tile, machine, n, depth))
      cold *= 0.6;
    // of the row, for each panel
    const bool sums = tiles.bytes && !tiles.flip_rows && tiles.b == Element::u8 && tile->element == Element::s8;
    const double row = sums ? double(panels) * (double(depth) / 64 + 12) : 0;
    // Each vector is widened on its way: half a line at a time a Zen 5 reads 100 GB/s of L3 so, 126 in pairs. Out of
    // the first level wider weights come sooner (20-480 of f16 0.20 us, made f32 0.16; 48-1152 1.0 and 1.4).
    if (widens && tile->vector < 16) cold *= 0.8;
    // Floats: a Sapphire Rapids reads 38 bytes a cycle of L2 by halves of a line, 47 by lines (672-168 4.4 and 3.6 us).
    if (kArch == Arch::x86_64 && !machine.logic_apart && tile->element == Element::f32 && tile->vector < 16 &&
        (cached || bytes <= double(machine.l2)))
      cold *= 0.8;
    const bool close = 4 * double(n) * double(depth) <= double(machine.l1);
    const double first = widens && tile->vector >= 16 && close ? 15 * double(vectors) : 0;
    return row + first + double(vectors / two) * tile_cycles(machine, tile, 1, two, depth, cold, false, true) +
           (vectors % two ? tile_cycles(machine, tile, 1, vectors % two, depth, cold, false, true) : 0);
  }
  // Caches fetch and write lines in pairs: where a panel ends inside a pair of C's, two panels meet in it.
  const size_t bytes_wide = tile->nr * sizeof(float), ends = panels - 1,
               meet = bytes_wide % 128 == 0 ? 0
                                            : ends - ends / (bytes_wide % 64 == 0   ? 2
                                                             : bytes_wide % 32 == 0 ? 4
                                                                                    : 8);
  const double pairs = double(m) * double(meet) * (double(m) * double(n) * 4 > double(machine.l2) ? 16 : 6);
  // Regions and ends of their lines are found again for each panel but the first: measured at 3x3 of 32 to 64 channels
  // on AVX-512.
  const double again =
      taps > 1 && tiles.bytes && !tiles.pack_a && kArch == Arch::x86_64 ? 20 * double(m) * double(panels - 1) : 0;
  // Rows that are flipped: before, or in the tile, for next to nothing where logic has ports of its own (Zen 5: seven
  // cycles a tile); else in no case for less than before.
  // Where products take those ports (Sapphire Rapids, one tap): rows written flipped against sums of rows, which each
  // vector of columns is then less by. 144-24 is 6% faster flipped, 512-32 11% slower.
  const bool apart = kArch != Arch::x86_64 || machine.logic_apart;
  const double pixel = double(depth) / double(taps);
  const double flipped = flips(tiles) && apart ? 1.2 * double(m) * double(panels)
                                               : double(m) * (apart ? pixel / 32 + 1 : pixel / 15 + 4);
  if (tiles.flip_rows || flips(tiles))
    return double(full) * columns(tile->nr / tile->vector) + (rest ? columns(rest) : 0) + flipped + again;
  if (tiles.bytes && tiles.b == Element::u8 && tile->element == Element::s8)  // sums of rows
    return double(full) * columns(tile->nr / tile->vector) + (rest ? columns(rest) : 0) +
           double(m) * (double(depth) / 64 + 12 + (apart ? 0 : 0.7 * double(ceil_div(n, tile->vector)))) + again;
  // about an instruction for each four bytes
  const double packing = tiles.pack_a ? double(m) * double(depth) * double(bytes_of_a(tiles)) / 4 : 0;
  // Half a vector of floats: those of 256 bits take 0.87 to 0.92 of the time (Sapphire Rapids, 4 and 8 outputs of 16 to
  // 128 inputs), which is a quarter less than their tiles of one vector count.
  const bool half_filled = machine.sapphire_rapids && tile->vector == 16 && tile->element == Element::f32 && n >= 4 &&
                           n <= 8 && taps <= 1;
  const double cycles = double(full) * columns(tile->nr / tile->vector) + (rest ? columns(rest) : 0);
  return (half_filled ? 1.4 : 1) * cycles + pairs + packing + again;
}

static const char* type_name(Element e) { return skua_dtype_name(skua_dtype(e)); }

// Whether a tile can serve; the reason why not is added to `text`.
static bool serves(const Kernel* k, const PackFormat* packed, const GemmTypes& types, Text* text) {
  const GemmTileTable& tiles = table_of(k);
  const char* no = nullptr;
  if (types.strict && tiles.half_sums) no = "it sums in half precision";
  else if (types.exact_b && tiles.b != Element::f32) no = "it rounds the weights";
  else if (types.b_zero && !tiles.sums_rows) no = "it takes no zero point of B";
  else if (types.segment % tiles.kr && ((tiles.enter && tiles.pack_a) || flips(tiles))) no = "rows are gathered anyway";
  else if (types.segment % tiles.kr && !tiles.bytes && !(tiles.enter ? types.gather > 0 : types.runs && tiles.overlaps))
    no = "it takes the depth in groups that the channels do not fill";
  else if (tiles.c != Element::f32 && tiles.c != types.c) no = "it writes another type";
  if (!no && (!packed || format_of(k) == *packed)) return true;
  if (!text) return false;
  text->add("    %s: turned down, ", k->name);
  if (no) text->add("%s\n", no);
  else if (packed->element != tiles.b)
    text->add("the weights are packed as %s, this tile reads %s\n", type_name(packed->element), type_name(tiles.b));
  else if (packed->nr != k->nr) text->add("the weights are packed for panels of %u columns\n", packed->nr);
  else if (packed->vector != k->vector) text->add("the weights are packed for vectors of %u columns\n", packed->vector);
  else
    text->add("the weights are packed with %u steps of the depth together, this tile reads %u\n", packed->kr, tiles.kr);
  return false;
}

// Kernels on bytes have tables of their own.
static Family tables_of([[maybe_unused]] Element e) {
#ifdef SKUA_TYPE_s8
  if (is_int8(e)) return gemm_int8_tables;
#endif
  return gemm_tables;
}

const Kernel* choose_tile(const skua_context* ctx, size_t m, size_t n, size_t depth, const PackFormat* format,
                          Text* text, Choice* choice, const GemmTypes& types) {
  struct Search {
    size_t m, n, depth;
    const PackFormat* format;
    Text* text;
    Choice* choice;
    const GemmTypes& types;
    const Kernel* best;
    bool halves;
    double cycles;
  } s = {m, n, depth, format, text, choice, types, nullptr,
         kArch == Arch::x86_64 && (ctx->isas & isa_bit(Isa::avx512)) && machine_for(Isa::avx512).fma_ports < 2,
         0};
  each_kernel(ctx, tables_of(types.a), KernelKind::gemm_tile, 0, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!serves(k, s.format, s.types, s.text)) return;
    if (s.choice && s.choice->skip()) return;
    const size_t m = table_of(k).runs && !table_of(k).pack_a && s.types.line && s.types.segment % table_of(k).kr == 0
                         ? s.m / s.types.line * rows_with_gaps(s.types.line, s.types.line_rows, k->mr)
                         : s.m;
    double cycles = gemm_cycles(k, m, s.n, s.depth, false, s.types.taps, table_of(k).overlaps ? s.types.line : 0);
    // A plan does not know its workers, and of two each has its part of these in L2, where wider vectors and products
    // in halves are faster, as they hardly are beyond it (Sapphire Rapids, two workers: 1x1000x1280 of f16 17 us in
    // halves and 42 else, 1x1000x1024 of floats 24 us by AVX-512 and 38 by AVX2; one worker, f16: 109 and 114).
    const double of_b = double(s.n) * double(s.depth) * element_bytes(table_of(k).b),
                 l2 = double(machine_for(k->isa).l2);
    if (s.m == 1 && of_b > l2 && of_b <= 2 * l2)
      cycles = 0.5 * (cycles + gemm_cycles(k, m, s.n, s.depth, true, s.types.taps));
    // not by the tile's loop (Zen 3: one pixel of 672-168 7.6 us, by 4x24 9.5)
    const bool by_row =
        s.m == 1 && double(s.n) * double(s.depth) * sizeof(float) <= double(kSoon) && has_row(k, s.n, s.depth);
    // little is fetched ahead: measured, a gain where rows are near only, a loss for few rows and where one vector of
    // columns is left, a panel of its own that reads all rows again
    if (table_of(k).near && !by_row) {
      const size_t rest = s.n % k->nr;
      const double b = double(s.n) * double(s.depth) * sizeof(float);
      const Machine m = machine_for(k->isa);
      // the core, of a B that one group of rows reads once (Zen 3: 2x1024x1024 0.93 of the time)
      const bool ahead_itself = s.m <= k->mr && m.streams > 2 && b <= double(kSoon);
      // Tiles of AVX-512 in two halves are level when quiet, and half the instructions: beside a busy thread of the
      // core they take a tenth to a quarter less (Zen 4: 7x7 with a stride of 2 of 224x224x3-64 2.48 ms and 2.22, 16x16
      // of 224x224x3-768 2.90 and 2.19).
      if (s.types.segment && s.types.segment <= 4) cycles *= kArch == Arch::x86_64 && s.halves ? 1.02 : 0.95;
      else if (s.m <= 32 && b > double(m.l2) && !ahead_itself)
        cycles *= 1.1;  // a stream of B (Zen 3: 20x3072x768 1.2 times as long as by 4x24, 32x1024x1024 1.1)
      // A slow L3 (Zen 3, by 4x24 from 1 MB on: 7x7 0.92 to 0.96 of the time, 14x14 0.95 to 1.0; from 2 MB on where
      // those leave a vector alone: 7x7x960-320 1.04).
      else if (!ahead_itself && m.l3_bytes < 20 && b > double(m.l2) * (s.n % (3 * k->vector) == k->vector ? 4 : 2))
        cycles *= 1 + 4 / double(s.m);
      else if (s.n > k->nr && rest && rest <= k->vector) cycles *= 1 + 0.8 * k->vector / double(s.n);
    }
    // A few rows of f16: half as much of B comes from beyond L2, and a vector of it is widened as it is loaded (Zen 3:
    // 8x1024x1024 195 us for 243, 20x3072x768 1.4 ms for 1.7, 3x3 of 14x14x512-512 with a stride of 2 3.3 for 4.2;
    // bf16, which takes two instructions, is level).
    if (k->isa == Isa::avx2 && table_of(k).b == Element::f16 && s.m <= 64) {
      const Machine m = machine_for(k->isa);
      if (double(s.n) * double(s.depth) * sizeof(float) > double(s.m <= 32 ? m.l2 : m.l3 / 8)) cycles *= 0.82;
    }
    // Pairs of bf16: panels of 48 columns are for a B beyond L2, which eight rows read less often; else those of 64 are
    // 1 to 5% faster (measured on a Zen 5).
    if (table_of(k).overlaps && k->nr < 64 &&
        double(s.n) * double(s.depth) * element_bytes(table_of(k).b) <= double(machine_for(k->isa).l2))
      cycles *= 1.04;
    // measured on a Zen 5, bf16 in pairs
    if (s.types.in_place && !reads_in_place(k, s.types.a, s.m)) cycles += 0.4 * double(s.n) * double(s.depth);
    if (s.types.segment % table_of(k).kr && table_of(k).overlaps) cycles *= s.types.run_waste;
    // To registers of AMX; the dot products of other sets gather too where channels are no multiple of four.
    // (Without copies: rows of taps in place.)
    if (s.types.segment % table_of(k).kr && table_of(k).enter &&
        (!table_of(k).bytes || s.types.segment % 4 == 0 || s.types.gather == 0))
      cycles = cycles * s.types.gather_waste + double(s.m) * s.types.gather;
    // Of one tap with a stride lines end within tiles, but not of rows that were copied (RowPointers::even_c): measured
    // on a Zen 5, 5 to 14%.
    if (kArch == Arch::x86_64 && table_of(k).bytes && !table_of(k).flip_rows && !table_of(k).pack_a &&
        !table_of(k).lines && s.types.line && !s.types.segment)
      cycles *= 1.06;
    if (s.text) s.text->add("    %s: %.0f cycles predicted\n", k->name, cycles);
    if (!s.best || cycles < s.cycles) { s.best = k; s.cycles = cycles; }
  }, &s, types.a, [](const Kernel* k, void* arg) {
    const auto& s = *static_cast<const Search*>(arg);
    return serves(k, s.format, s.types, nullptr);
  });
  return s.best;
}

OnCores tiles_on_cores(const skua_context* ctx, const Kernel* tile) {
  return on_cores(ctx, tables_of(tile->element), tile, [](const Kernel* other, const Kernel* tile) {
    const GemmTileTable &x = table_of(other), &y = table_of(tile);
    if (y.bytes && (x.pack_a || y.pack_a)) return false;
    return format_of(other) == format_of(tile) && x.a == y.a && x.c == y.c &&
           (x.any_c == y.any_c || x.c == tile->element) && x.half_sums == y.half_sums && x.overlaps == y.overlaps;
  });
}

void explain_types(const Kernel* tile, skua_numerics numerics, const char* b, Text& text) {
  const GemmTileTable& tiles = table_of(tile);
  text.add("  %s as %s; sums %s", b, type_name(tiles.b),
           type_name(tiles.half_sums ? tile->element
                     : tiles.bytes   ? Element::s32
                                     : Element::f32));
  if (tiles.half_sums && numerics != SKUA_NUMERICS_FAST) text.add(", %zu terms at a time, then f32", kSumBlock);
  text.add("\n");
}

const Kernel* find_pack(const skua_context* ctx, Element from, Element to, unsigned kr) {
  return find_kernel(ctx, tables_of(from), KernelKind::gemm_pack, pack_variant(to, kr), from);
}

GemmPackFn pack_kernel(const skua_context* ctx, const Kernel** kernel) {
  const Kernel* k = find_pack(ctx, Element::f32, Element::f32);
  if (kernel) *kernel = k;
  return code_of<GemmPackFn>(k);
}

// All columns of a range; one that begins or ends inside a panel takes a narrower tile there.
static double range_cycles(const Kernel* tile, size_t rows, ColumnRange range, size_t depth) {
  const size_t ahead = range.from % tile->nr, head = ahead ? min(tile->nr - ahead, range.to - range.from) : 0,
               rest = range.to - range.from - head;
  return (head ? gemm_cycles(tile, rows, head, depth) : 0) + (rest ? gemm_cycles(tile, rows, rest, depth) : 0);
}

// Cycles for each row of C that workers write in parts: what a core fetches ahead behind its part another writes (Zen
// 4, two workers: 28x28x32-128 45 to 104 us by columns, 32 by rows; 56x56x16-128 101 and 68, 28x28x32-256 83 and 70).
constexpr double kPartOfRow = 40;

static TaskGrid cut(const RunArgs& args, const Kernel* tile, size_t m, size_t lines, size_t n, size_t depth,
                    size_t groups) {
  const double cycles = double(groups) * gemm_cycles(tile, m, n, depth);
  if (groups > 1) n = 1;  // no piece has part of a group
  const size_t panels = ceil_div(n, tile->nr), workers = args.workers(),
               most_rows = min(lines, ceil_div(m, tile->mr)), units = mul_sat(most_rows, panels);
  const size_t most = pieces_for(args, units, cycles / double(units));
  // A B beyond L2 comes anew for each piece of rows, and what is multiplied meanwhile does not hide it (Zen 3, two
  // workers, 49x512x2048: two pieces of columns 770 us, of rows 840, eight of rows 1180).
  const Machine machine = machine_for(tile->isa);
  const double column = double(depth) * element_bytes(table_of(tile).b),
               anew = column * double(n) > double(machine.l2) ? column / machine.l3_bytes : 0;
  TaskGrid best = {1, 1, tile->nr};
  double shortest = 0;
  const auto consider = [&](const TaskGrid& grid) {
    const size_t tasks = grid.rows * grid.columns, each = tasks / workers, rounds = ceil_div(tasks, workers);
    const bool even = tasks % workers == 0;
    // one worker has the wide pieces more often than another
    if (even && each % grid.columns && grid.columns % each) return;
    const size_t rows = ceil_div(lines, grid.rows) * (m / lines);  // of the longest piece
    // Neighbouring tasks are one worker's: all pieces of columns some times over, or some of them.
    const size_t of_one = !even ? 1 : min(each, grid.columns);
    double longest = 0;
    for (size_t i = 0; i < grid.columns; i += of_one) {
      double c = 0;
      for (size_t k = i; k < i + of_one; ++k) {
        const ColumnRange range = columns_of(grid, n, k);
        c += range_cycles(tile, rows, range, depth) + anew * double(range.to - range.from) +
             (grid.columns > 1 ? kPartOfRow * double(rows) : 0);
      }
      longest = longest < c ? c : longest;
    }
    // A slow worker holds up the others, on average by half a task; of cores that are alike one may have other work
    // too. (Zen 4, two workers, one core busy for 150 of 400 us: MobileNet V1 9.6 ms with 0.01, 8.5 with 0.1, 8.3 with
    // 0.3; both cores idle 5.69, 5.75, 5.80.) A task finds caches without its panels and rows (1 us).
    const double late = 1 + (cpu().kinds.alike ? 0.1 : 0.5) / double(rounds),
                 c = (longest / double(of_one) + 4000) * double(rounds) * late;
    if (shortest == 0 || c < shortest) shortest = c, best = grid;
  };
  for (size_t pieces = most; pieces > 1; pieces = pieces > workers ? pieces - workers : 1)
    for (size_t columns = 1; columns <= min(pieces, panels); columns *= 2) {
      consider({min(pieces / columns, most_rows), columns, tile->nr});
      if (m > 1 && panels % columns) consider({min(pieces / columns, most_rows), columns, tile->vector});
    }
  return best;
}

TaskGrid cut_tasks(const RunArgs& args, const KeptGrid& kept, const Kernel* tile, size_t m, size_t lines, size_t n,
                   size_t depth, size_t groups) {
  const uint32_t workers = args.workers();
  if (workers == 1) return {1, 1, tile->nr};
  if (workers > 255 || m >> 24) return cut(args, tile, m, lines, n, depth, groups);
  // The word: m 24 bits, workers 8; of the grid: rows 10, columns 12, grain 10.
  const uint64_t key = uint64_t(m) << 8 | workers, word = __atomic_load_n(&kept.word, __ATOMIC_RELAXED);
  if (word >> 32 == key) return {size_t(word >> 22 & 1023), size_t(word >> 10 & 4095), size_t(word & 1023)};
  const TaskGrid grid = cut(args, tile, m, lines, n, depth, groups);
  if (grid.rows < 1024 && grid.columns < 4096 && grid.grain < 1024)
    __atomic_store_n(&kept.word, key << 32 | uint64_t(grid.rows) << 22 | uint64_t(grid.columns) << 10 | grid.grain,
                     __ATOMIC_RELAXED);
  return grid;
}

}  // namespace skua
