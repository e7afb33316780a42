// Depthwise convolution: the packed format and the packing, the cost model, the choice of a kernel.
#include "depthwise/blocks.h"

namespace skua {
using namespace depthwise;
namespace {

bool has_format(const Kernel* k, DepthwiseFormat f) {
  return k->vector == f.vector && k->element == f.element && summed_in(k) == f.weights;
}
// Whole groups in vectors, the last of which may overlap the one before, or of floats whole vectors in groups; one of
// several groups takes a permutation, which instruction sets of 4 lanes have not.
bool holds_groups(const Kernel* k, size_t channels, size_t group) {
  const bool several = k->vector % group == 0,
             some = group % k->vector == 0 && group <= kMostGrouped && k->element == Element::f32;
  return channels >= k->vector && channels % group == 0 && (k->vector > 4 ? several || some : k->vector == group);
}

// Why a kernel of one window, a tile or by rows, cannot compute this shape; NULL if it can.
const char* unfit(const Kernel* k, const DepthwiseShape& s) {
  const size_t kernel = k->variant / 10, stride = k->variant % 10;
  if (s.kernel_h != kernel || s.kernel_w != kernel || s.stride_h != stride || s.stride_w != stride)
    return "another kernel or stride";
  if (s.dilation_h != 1 || s.dilation_w != 1) {
    if (is_rows(k) || s.multiplier > 1 || phases_y(s) * phases_x(s) > kMostPhases) return "dilated";
    // Of less than two outputs each way kernels for any shape are faster (Zen 5: 7x7x256 of 3x3 with a dilation of 4
    // 2.6 us, in phases 3.7; 14x14x512 with 6 27 and 23); grouped there are none.
    if (s.group == 1 && (s.out_h < 2 * size_t(s.dilation_h) || s.out_w < 2 * size_t(s.dilation_w)))
      return "dilated so far that its phases are pixels";
    for (size_t y = 0; y < phases_y(s); ++y)
      for (size_t x = 0; x < phases_x(s); ++x)
        if (const char* why = unfit(k, float_phase(s, element_bytes(k->element), y, x))) return why;
    return nullptr;
  }
  if (s.out_channels() < k->vector) return "fewer channels than a vector";
  if (s.group > 1 && !holds_groups(k, s.channels, s.group)) return "vectors do not hold whole groups";
  if (s.group > 1 && s.group < k->vector && code_of<DepthwiseTileTableFn>(k)().one_group)
    return "a vector holds several groups";
  if (is_rows(k) && s.multiplier > 1) return "a multiplier above 1";
  if (is_rows(k) && (s.pad_left > 1 || (s.out_w - 1) * stride + kernel > s.in_w + s.pad_left + 1))
    return "more than a column of taps is outside at a side";
  if (s.pad_left >= kernel || (s.out_w - 1) * stride + kernel > s.in_w + s.pad_left + kernel - 1)
    return "as much padding as kernel";
  return nullptr;
}

}  // namespace

DepthwiseFormat depthwise_format(const skua_context* ctx, size_t out_channels, Element element, bool f32_sums) {
  struct Search {
    const char* filter;
    size_t channels;
    DepthwiseFormat format;
    bool f32_sums, forced;
  } s = {ctx->filter, out_channels, {}, f32_sums, false};
  const auto visit = [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (s.f32_sums && summed_in(k) != Element::f32) return;
    const bool forced = s.filter[0] && glob_match(s.filter, k->name);
    // Highest instruction set first: the first whose vectors are filled; else the shortest that is a vector at all.
    // What the filter names comes before that.
    const size_t vector = s.format.vector;
    if (forced > s.forced || !vector ||
        (forced == s.forced && vector > s.channels && k->vector < vector && k->vector > 1))
      s.format = {k->vector, summed_in(k), k->element};
    s.forced |= forced;
  };
  const auto usable = [](const Kernel* k, void* arg) {
    return !static_cast<const Search*>(arg)->f32_sums || summed_in(k) == Element::f32;
  };
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_any, -1, visit, &s, element, usable);
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_row, -1, visit, &s, element, usable);
  each_kernel(ctx, depthwise_tables, KernelKind::depthwise_tile, -1, visit, &s, element, usable);
  return s.format;
}

DepthwiseFormat grouped_format(const skua_context* ctx, size_t channels, size_t group, Element element) {
  struct Search {
    const char* filter;
    size_t channels, group;
    DepthwiseFormat format;
    bool forced;
  } s = {ctx->filter, channels, group, {}, false};
  each_kernel(ctx, depthwise_tables, KernelKind::grouped_tile, -1, [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    const bool fits = holds_groups(k, s.channels, s.group), forced = s.filter[0] && glob_match(s.filter, k->name);
    if (fits && (!s.format.vector || forced > s.forced)) s.format = {k->vector, summed_in(k), k->element};
    s.forced |= fits && forced;
  }, &s, element);
  return s.format;
}

size_t depthwise_packed_floats(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels,
                               DepthwiseFormat format) {
  size_t taps, values, bytes;
  if (!format.vector || (format.weights != Element::f32 && format.weights != Element::f16)) return 0;
  if (!mul(kernel_h, kernel_w, taps) || !mul(taps, group, taps) || !add(taps, 1, taps) ||
      !mul(taps, vectors_of(out_channels, format.vector), values) || !mul(values, format.vector, values))
    return 0;
  return mul(values, element_bytes(format.weights), bytes) && bytes <= SIZE_MAX / 2 ? ceil_div(bytes, sizeof(float))
                                                                                    : 0;
}

namespace {

template <class W>
void pack(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels, size_t vector, const float* weights,
          const WeightSteps& steps, const float* bias, W* packed) {
  for (size_t v = 0; v < vectors_of(out_channels, vector); ++v) {
    const size_t first = vector_begin(out_channels, vector, v), n = min(vector, out_channels);
    for (size_t i = 0; i < vector; ++i) narrow(bias && i < n ? bias[first + i] : 0.0f, *packed++);
    for (size_t ky = 0; ky < kernel_h; ++ky)
      for (size_t j = 0; j < group; ++j)
        for (size_t kx = 0; kx < kernel_w; ++kx)
          for (size_t i = 0; i < vector; ++i)
            narrow(i < n ? weights[(first + i) * steps.o + j * steps.i + ky * steps.y + kx * steps.x] : 0.0f,
                   *packed++);
  }
}

}  // namespace

void depthwise_pack(size_t kernel_h, size_t kernel_w, size_t group, size_t out_channels, DepthwiseFormat format,
                    const float* weights, const WeightSteps& steps, const float* bias, float* packed) {
  if (format.weights == Element::f16)
    pack(kernel_h, kernel_w, group, out_channels, format.vector, weights, steps, bias, reinterpret_cast<f16*>(packed));
  else pack(kernel_h, kernel_w, group, out_channels, format.vector, weights, steps, bias, packed);
}

static double larger(double a, double b) { return a > b ? a : b; }  // fmax() would make a C program link libm
static double smaller(double a, double b) { return a < b ? a : b; }
constexpr double kWindow = 224;  // instructions that out-of-order cores look ahead: a Zen 3, of which others have more

double depthwise_cycles(const Kernel* k, const DepthwiseShape& s) {
  if (!s.out_h || !s.out_w) return 0;
  if (by_phases(s, k))
    return double(phases_y(s) * phases_x(s)) * depthwise_cycles(k, float_phase(s, element_bytes(k->element), 0, 0));
  const Machine m = machine_for(k->isa);
  // 512 bits in two steps: a Zen 4, which stores 256 a cycle
  const bool in_halves = kArch == Arch::x86_64 && k->vector == 16 && m.fma_ports < 2;
  const double vectors = double(vectors_of(s.out_channels(), k->vector)), taps = double(s.kernel_h) * s.kernel_w;
  auto bound = [&](double multiplies, double loads, double stores) {
    // a vector load goes beside nothing unless it is in halves
    if (m.in_order) return multiplies + 2 * stores + loads * (k->tuned_for == Core::any ? 2 : 1);
    double c = (multiplies + 2 * stores) / m.fma_ports;  // the clamp runs where multiply-adds do
    c = larger(c, (loads + stores) / m.load_ports);
    return larger(c, (multiplies + 2 * loads + 2 * stores) / m.issue);
  };
  // Sums that are few wait for their latency, but for what the core does ahead of them. (Zen 3: one output of 7x7, 64
  // vectors, 6.2 us in a tile, 2.5 four vectors at once.)
  auto wait = [&](double cycles, double instructions) {
    return m.in_order ? cycles : larger(cycles, taps * m.fma_latency / larger(kWindow / instructions, 1));
  };
  const double each = element_bytes(k->element), line = each * k->vector / 64;  // of the cache, in a vector
  const size_t apart = s.in_pixel * size_t(each);
  // Of the first level, those that pixels share: they are fewer where pixels are a power of two apart.
  const size_t sets = max(m.l1 / 8 / max(apart & -apart, 64), 1);
  // outputs for a pixel
  const double images = double(s.batch), pixels = double(s.in_h) * double(s.in_w),
               served = smaller(1.0 / (double(s.stride_h) * s.stride_w),
                                double(s.out_h) * double(s.out_w) / larger(pixels, 1));
  // reread: times that an input line comes from the second-level cache; lines of a tile at once
  double compute = 0, calls = 0, reread = 1, lines = 0;
  if (is_tile(k)) {
    const size_t tiles = tiles_of(s, k);
    const double columns = double(s.out_w) / double(tiles), in_columns = (columns - 1) * s.stride_w + s.kernel_w;
    auto band = [&](size_t rows) {
      const double in_rows = double(rows - 1) * s.stride_h + s.kernel_h;
      lines = in_rows * in_columns;
      const double outputs = double(rows) * columns;
      reread = lines / outputs * served;
      if (s.group == 1)
        return double(tiles) * wait(bound(outputs * taps, lines + taps + 1, outputs), outputs * taps + lines + taps);
      // Permutations of 512-bit vectors take a port of the multiply-adds.
      // Rows of taps outside the image are passed over. (Of AVX2 products of 7x7x1024 in 32 groups are 3% faster all
      // the same.)
      const double outside =
          double(s.pad_top) +
          double(max((s.out_h - 1) * s.stride_h + s.kernel_h, s.in_h + s.pad_top) - s.in_h - s.pad_top);
      const double inside =
          kArch == Arch::x86_64 && k->vector > 8 ? 1 - smaller(outside / (double(s.out_h) * s.kernel_h), 0.5) : 1;
      const double multiplies = double(rows) * columns * taps * inside, inputs = in_rows * in_columns * inside,
                   permutes = k->vector > 8 && s.group < k->vector ? inputs : 0;
      // Rows of inputs that serve one row of outputs wait for the latency of its sums where these are few.
      const double single = rows == 1 ? double(s.kernel_h) : 2 * double(s.stride_h),
                   waits = larger(m.fma_latency - columns / m.fma_ports, 0) * single * double(s.kernel_w);
      // Loads of 512 bits in halves take 1.65 cycles (Zen 4: with a stride of two a load for 1.3 products, 1.2 cycles
      // for a product). Groups that are products of their own are no faster where their pixels share sets (28x28x512 in
      // 16 groups 580 us by tiles, 696 by products).
      const double loads = inputs + taps * double(rows),
                   slow = in_halves && s.group > k->vector && apart % 2048 ? 1.65 * loads : 0;
      // Where a tile's pixels share few sets of the first level each input comes from the second (Zen 5: 14x14x1024 in
      // 32 groups, stride 2, 166 us, by products 130; 28x28x1024 688 and 546. Sapphire Rapids: 14x14x512 64 and 84,
      // 14x14x1024 270 and 225; its L2 gives 47 bytes).
      const bool pushed_out = kArch == Arch::x86_64 && !in_halves && s.group >= k->vector && inputs > 12 * double(sets);
      const double again = pushed_out ? 0.9 * inputs * 64 / larger(m.l2_bytes, 47) : 0;
      // Broadcasts that are part of a product cost less, a tile that is not whole more (28x28x64 in 4 groups, stride 2:
      // 34.3 us by 1x7, 35.8 by 2x7; outputs of 8x8 7.5 and 6.7).
      const double broadcasts = in_halves && k->mr == 1 && s.stride_w == 2 ? s.out_w % k->nr ? 1.1 : 0.95 : 1;
      return broadcasts * double(tiles) *
             (larger(bound((multiplies + permutes) * double(s.group), loads * double(s.group), double(rows) * columns),
                     larger(slow, again) * double(s.group)) +
              waits * double(s.group));
    };
    compute = s.out_h % k->mr ? band(s.out_h % k->mr) : 0;
    if (s.out_h >= k->mr) compute += double(s.out_h / k->mr) * band(k->mr);
    calls = double(tiles) * double(ceil_div(s.out_h, k->mr));
  } else if (is_rows(k)) {
    // Each of three rows: inputs and taps, and sums that are read but at first and written but at last; the bias.
    // A row of sums leaves the first level until the next one is read. (Sapphire Rapids: 22 to 27 cycles an output of
    // AVX-512, by tiles 13 to 16; of AVX2 11 to 13 and 9 to 11. Vectors of a quarter of a line do not wait for it.)
    const double back = line < 0.5 ? 1 : m.write_back;
    compute = double(s.out_h) * double(s.out_w) *
              (bound(taps, 3 * (2 + 1.0 / k->nr) + (taps + 1) / k->nr + 4, 1) + 3 * line * back * (in_halves ? 2 : 1));
    calls = double(s.in_h) * (1 + double(ceil_div(s.out_w, k->nr)) / 4);
  } else {
    const size_t reach = span(s.kernel_w, s.dilation_w),
                 inner = s.in_w >= reach ? min((s.in_w - reach) / s.stride_w + 1, s.out_w) : 0,
                 together = inner / k->nr * k->nr;
    const double alone = double(s.out_w - together);
    const double at_once = s.out_channels() >= 4 * size_t(k->vector) ? 4 : 1;  // vectors of one output
    compute = double(s.out_h) *
              (double(together / k->nr) * wait(bound(double(k->nr) * taps, double(k->nr + 1) * taps + taps, k->nr),
                                               double(2 * k->nr + 1) * taps) +
               alone * wait(at_once * bound(taps, 3 * taps, 1), 3 * at_once * taps) / at_once);
    calls = double(s.out_h) * (alone + double(together / k->nr));
    const double outputs = together ? k->nr : 1;
    lines = double(s.kernel_h) * ((outputs - 1) * s.stride_w + s.kernel_w);
    reread = lines / outputs * served;
    // windows of neighbours share no pixel: measured on a Zen 5, 56x56x256 of 3x3 with a dilation of 2 262 us, in
    // phases 143
    if (is_dilated(s)) compute *= 1.5;
  }
  // With strides of 2 these inputs are no stream: each of the reads takes a cycle and a quarter and what it brings at
  // 45 bytes a cycle, all a seventh more where pixels share few sets of the first level
  // (Zen 5, AVX-512: 13.5 to 15 cycles an output, and 16 to 18; by rows of input 14 to 15).
  const bool scattered = kArch == Arch::x86_64 && s.group == 1 && s.stride_w > 1 && !is_rows(k);
  if (scattered)
    compute =
        larger(compute, double(s.out_h) * double(s.out_w) * reread * s.stride_h * s.stride_w * (1.25 + 64 * line / 45));
  const double in = images * pixels * double(s.channels) * each,
               out = images * double(s.out_h) * double(s.out_w) * double(s.out_channels()) * each;
  // Pixels a power of two apart fall into few sets of the first level. Where a tile's lines need many more ways than
  // these have, each comes again for every vector in it, at half of the speed
  // (measured on Zen 3: 14x14x512 at stride 2, tiles of 2x3 outputs 22 us; 28x28x512 106). Without a tile each comes
  // again for every tap (Zen 4: 14x14x512 44 us, in tiles 22).
  if (kArch == Arch::x86_64 && m.l1 <= 32 << 10 && !uses_strip(s, k)) {
    if (is_tile(k)) {
      if (s.stride_w > 1 && lines >= 12 * double(sets)) reread *= 2 * larger(64 / (each * k->vector), 1);
    } else if (lines > 8 * double(sets)) reread = 2 * taps * served;
  }
  double traffic = (in * reread + 2 * out) / m.l2_bytes;  // what is written is read before
  // A dilated window touches rows far apart, which no tile shares (Sapphire Rapids: 33x33x960 dilated by 2 650 to 710
  // us, in phases 490 to 560).
  const bool far_apart =
      kArch == Arch::x86_64 && m.write_back > 1 && k->kind == KernelKind::depthwise_any && is_dilated(s);
  const double apart_rows = far_apart ? 1.25 : 1;
  if (in + out > double(m.l2))
    traffic = larger(traffic, apart_rows * (in + 2 * out) / (in + out > double(m.l3) ? m.memory_bytes : m.l3_bytes));
  double cycles = larger(compute * vectors * images, traffic) *
                      (scattered && apart % (line < 0.5 ? 2048 : 512) == 0 && !uses_strip(s, k) ? 1.15 : 1) +
                  25 * calls * images + 200;
  if (uses_strip(s, k)) cycles += in * double(s.multiplier) / (s.multiplier > 1 ? 2 : m.l2_bytes);
  return cycles;
}

const Kernel* depthwise_choose(const skua_context* ctx, const DepthwiseShape& shape, DepthwiseFormat format, Text* text,
                               Choice* choice) {
  struct Search {
    const DepthwiseShape* shape;
    DepthwiseFormat format;
    Text* text;
    Choice* choice;
    const char* filter;
    bool named;  // the filter names kernels that fit, of whatever kind: only these are candidates
    const Kernel* best;
    double cycles;
    bool fits(const Kernel* k) const {
      size_t bytes;
      return has_format(k, format) && (k->kind == KernelKind::depthwise_any || !unfit(k, *shape)) &&
             worker_bytes(*shape, k, 1, bytes);
    }
  } s = {&shape, format, text, choice, ctx->filter, false, nullptr, 0};
  auto visit = [](const Kernel* k, void* arg) {
    auto& s = *static_cast<Search*>(arg);
    if (!has_format(k, s.format)) return;
    if (const char* why = k->kind != KernelKind::depthwise_any ? unfit(k, *s.shape) : nullptr) {
      if (s.text) s.text->add("    %s: turned down, %s\n", k->name, why);
      return;
    }
    if (!s.fits(k) || (s.named && !glob_match(s.filter, k->name))) return;
    if (s.choice && s.choice->skip()) return;
    const double cycles = depthwise_cycles(k, *s.shape);
    if (s.text) s.text->add("    %s: %.0f cycles predicted\n", k->name, cycles);
    if (!s.best || cycles < s.cycles) { s.best = k; s.cycles = cycles; }
  };
  const auto usable = [](const Kernel* k, void* arg) { return has_format(k, static_cast<const Search*>(arg)->format); };
  if (shape.group > 1) {
    each_kernel(ctx, depthwise_tables, KernelKind::grouped_tile, -1, visit, &s, format.element, usable);
    return s.best;
  }
  const auto each = [&](void (*f)(const Kernel*, void*)) {
    each_kernel(ctx, depthwise_tables, KernelKind::depthwise_row, -1, f, &s, format.element, usable);
    each_kernel(ctx, depthwise_tables, KernelKind::depthwise_tile, -1, f, &s, format.element, usable);
    each_kernel(ctx, depthwise_tables, KernelKind::depthwise_any, -1, f, &s, format.element, usable);
  };
  if (ctx->filter[0])
    each([](const Kernel* k, void* arg) {
      auto& s = *static_cast<Search*>(arg);
      s.named |= glob_match(s.filter, k->name) && s.fits(k);
    });
  each(visit);
  return s.best;
}

}  // namespace skua
