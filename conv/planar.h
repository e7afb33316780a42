// NCHW maps of bytes: converted in the workspace to dense NHWC maps, which the algorithms see, and back. (Those of
// floats: conv.cc.)
#pragma once
#include "conv/conv.h"

namespace skua {

struct PlanarMap {
  ConvMap map;      // the caller's
  size_t channels, bytes, element;  // bytes of the dense map, rounded up to whole lines, and of an element
};
struct PlanarMaps {
  PlanarMap in, out, residual;  // bytes 0: the layout is NHWC; of the residual, input 1, also that there is none
};

// With the strides of the shape those of dense maps. INVALID: larger than the address space.
skua_status planar_map(const skua_op* op, const ConvMap& map, size_t h, size_t w, size_t channels, Element element,
                       PlanarMap& to);
inline size_t planar_workspace(const PlanarMaps& p) {
  return add_sat(add_sat(p.in.bytes, p.out.bytes), p.residual.bytes);
}

// What a run begins and ends with. begin() gives the maps and the workspace that the algorithm is to use.
struct PlanarRun {
  const void *in, *residual;
  void *out, *workspace;
};
PlanarRun planar_begin(const RunArgs& args, const PlanarMaps& p);
void planar_end(const RunArgs& args, const PlanarMaps& p, const PlanarRun& run);

}  // namespace skua
