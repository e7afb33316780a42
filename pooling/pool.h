// What a pooling operator is told, and the shapes that every plan of one begins with, on any device. See skua/pool.h.
#pragma once
#include <skua/pool.h>
#include "core/window.h"

namespace skua {

struct PoolConfig {
  skua_dtype type;
  skua_pool_kind kind;
  skua_layout layout;
  bool global, ceil_mode, count_padding;
  uint32_t kernel[2], stride[2], dilation[2];
  skua_padding padding;
  skua_activation activation;
  // Bytes: scale of the input over that of the output, zero points, bounds of the result (of a maximum as bytes).
  double ratio;
  int32_t zero, zero_point;
  float low, high;
};

// Steps of a feature map in elements.
struct PoolMap {
  size_t image, row, pixel, plane;  // NHWC: plane 0; NCHW: pixel 1
};

struct PoolShape {
  Window1d y, x;
  size_t batch, channels;
  PoolMap in;
};

PoolConfig pool_config(const skua_pool2d_desc& d);  // but for what bytes are quantised with
skua_status pool_quantization(const skua_pool2d_desc& d, PoolConfig& c);  // this
skua_status pool_map(const skua_op* op, const PoolConfig& c, const char* what, size_t index, const skua_tensor& t,
                     PoolMap& m);
// Fills the shapes of the outputs too.
skua_status pool_shape(const skua_op* op, const PoolConfig& c, const PlanShapes& s, PoolShape& p, skua_tensor* outputs);
}  // namespace skua
