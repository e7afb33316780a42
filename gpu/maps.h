// What operators on feature maps share on a device: steps, the fused activation, limits of the kernels' numbers.
#pragma once
#include "gpu/choice.h"
#include "gpu/launch.h"

namespace skua::gpu {

// The epilogue as the kernels take it: a skua_unary_kind or -1, and its parameters.
struct Fused {
  int32_t kind;
  float a, b;
};
Fused fused(const skua_activation& a);

// Steps of a feature map in elements.
struct MapSteps {
  size_t image, row, pixel, channel;
};
// Whether vectors of 4 channels can be read and written.
inline bool fours(const MapSteps& m) {
  return m.channel == 1 && m.image % 4 == 0 && m.row % 4 == 0 && m.pixel % 4 == 0;
}
inline int32_t pair(size_t h, size_t w) { return int32_t(h << 16 | w); }
// offset, image, row, pixel and channel of a map as arguments of a kernel of v channels a thread.
inline void add_map(Launch& l, uint32_t binding, int32_t offset, const MapSteps& m, int32_t v) {
  l.add_offset(binding, size_t(offset), uint32_t(v));
  const size_t steps[] = {m.image, m.row, m.pixel};
  for (size_t step : steps) l.add(int32_t(step) / v);
  l.add(int32_t(m.channel));
}

constexpr size_t kConvPlanBytes = 4096;  // room for a convolution's plan in that of an operator made of some
constexpr size_t kMostPair = 32767;  // of what pair() takes
struct Named {
  const char* name;
  size_t value;
};
skua_status need_pairs(const skua_op* op, const Named* values, size_t n);
// Every extent and step of the tensors must be an int32 for the kernels.
skua_status need_small(const skua_op* op, const skua_plan* plan);

}  // namespace skua::gpu
