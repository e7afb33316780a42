#include "conv/planar.h"

namespace skua {
namespace {

// to[c * to_step + r] = from[r * from_step + c], steps in elements. Bytes in blocks of 8x8, in eight registers.
template <class T> void transpose(size_t rows, size_t columns, const T* from, size_t from_step, T* to, size_t to_step) {
  size_t whole = 0;
  if constexpr (sizeof(T) == 1 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) {
    whole = rows / 8 * 8;
    const size_t wide = columns / 8 * 8;
    for (size_t r = 0; r < whole; r += 8)
      for (size_t c = 0; c < wide; c += 8) {
        // Written out: not every compiler would keep the eight in registers.
        const auto row = [&](size_t i) {
          uint64_t x;
          memcpy(&x, from + (r + i) * from_step + c, 8);
          return x;
        };
        const auto swap = [](uint64_t& x, uint64_t& y, int shift, uint64_t mask) {
          const uint64_t t = (y ^ x >> shift) & mask;
          y ^= t;
          x ^= t << shift;
        };
        const auto put = [&](size_t i, uint64_t x) { memcpy(to + (c + i) * to_step + r, &x, 8); };
        uint64_t a0 = row(0), a1 = row(1), a2 = row(2), a3 = row(3), a4 = row(4), a5 = row(5), a6 = row(6), a7 = row(7);
        const uint64_t words = 0xffffffffu, halves = 0x0000ffff0000ffffu, bytes = 0x00ff00ff00ff00ffu;
        swap(a0, a4, 32, words), swap(a1, a5, 32, words), swap(a2, a6, 32, words), swap(a3, a7, 32, words);
        swap(a0, a2, 16, halves), swap(a1, a3, 16, halves), swap(a4, a6, 16, halves), swap(a5, a7, 16, halves);
        swap(a0, a1, 8, bytes), swap(a2, a3, 8, bytes), swap(a4, a5, 8, bytes), swap(a6, a7, 8, bytes);
        put(0, a0), put(1, a1), put(2, a2), put(3, a3), put(4, a4), put(5, a5), put(6, a6), put(7, a7);
      }
    for (size_t c = wide; c < columns; ++c)
      for (size_t r = 0; r < whole; ++r) to[c * to_step + r] = from[r * from_step + c];
  }
  for (size_t c0 = 0; c0 < columns; c0 += 16)  // the lines of both sides stay in the first-level cache
    for (size_t r = whole; r < rows; ++r)
      for (size_t c = c0; c < min(c0 + 16, columns); ++c) to[c * to_step + r] = from[r * from_step + c];
}
void transpose_elements(size_t bytes, size_t rows, size_t columns, const void* from, size_t from_step, void* to,
                        size_t to_step) {
  if (bytes == 1)
    transpose(rows, columns, static_cast<const uint8_t*>(from), from_step, static_cast<uint8_t*>(to), to_step);
  else if (bytes == 2)
    transpose(rows, columns, static_cast<const uint16_t*>(from), from_step, static_cast<uint16_t*>(to), to_step);
  else transpose(rows, columns, static_cast<const uint32_t*>(from), from_step, static_cast<uint32_t*>(to), to_step);
}

// Stretches of pixels of one image. Lines without a gap are one.
struct Convert {
  const PlanarMap* p;
  char *planes, *dense;
  bool to_dense;
  size_t lines, width, per_line;  // of an image; stretches
};
constexpr size_t kStretch = 256;  // pixels

void task(void* arg, size_t index, uint32_t) {
  const Convert& c = *static_cast<const Convert*>(arg);
  const PlanarMap& p = *c.p;
  const size_t stretch = index % c.per_line, y = index / c.per_line % c.lines, n = index / c.per_line / c.lines;
  const size_t x = stretch * kStretch, count = min(kStretch, c.width - x);
  char* const planes = c.planes + (n * p.map.image + y * p.map.row + x) * p.element;
  char* const dense = c.dense + ((n * c.lines + y) * c.width + x) * p.channels * p.element;
  if (c.to_dense) transpose_elements(p.element, p.channels, count, planes, p.map.plane, dense, p.channels);
  else transpose_elements(p.element, count, p.channels, dense, p.channels, planes, p.map.plane);
}
void convert(const RunArgs& args, const PlanarMap& p, const void* planes, void* dense, bool to_dense) {
  Convert c = {&p, static_cast<char*>(const_cast<void*>(planes)), static_cast<char*>(dense), to_dense, p.map.h, p.map.w,
               0};
  if (p.map.row == p.map.w || p.map.h == 1) c.width *= c.lines, c.lines = 1;
  c.per_line = ceil_div(c.width, kStretch);
  parallel(args, p.map.batch * c.lines * c.per_line, task, &c);
}

}  // namespace

skua_status planar_map(const skua_op* op, const ConvMap& map, size_t h, size_t w, size_t channels, Element element,
                       PlanarMap& to) {
  to = {map, channels, 0, element_bytes(element)};
  to.map.h = h;
  to.map.w = w;
  size_t bytes = 0;
  if (!mul(map.batch, h, bytes) || !mul(bytes, w, bytes) || !mul(bytes, channels, bytes) ||
      !mul(bytes, to.element, bytes) || bytes > SIZE_MAX / 4)
    return SKUA_INVALID("%s: the feature maps are larger than the address space", op->cls->name);
  to.bytes = round_up(max(bytes, 1), 64);
  return SKUA_STATUS_OK;
}

PlanarRun planar_begin(const RunArgs& args, const PlanarMaps& p) {
  PlanarRun r = {args.in<char>(0), args.plan->n_inputs > 1 ? args.in<char>(1) : nullptr, args.out<char>(0),
                 args.workspace};
  if (!p.in.bytes) return r;
  auto* const space = static_cast<char*>(args.workspace);
  convert(args, p.in, r.in, space, true);
  char *const out = space + p.in.bytes, *const residual = out + p.out.bytes;
  if (p.residual.bytes) convert(args, p.residual, r.residual, residual, true);
  return {space, p.residual.bytes ? residual : nullptr, out, residual + p.residual.bytes};
}

void planar_end(const RunArgs& args, const PlanarMaps& p, const PlanarRun& r) {
  if (p.in.bytes) convert(args, p.out, args.out<char>(0), r.out, false);
}

}  // namespace skua
