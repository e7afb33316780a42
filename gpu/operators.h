// Creation of operators on GPU contexts; the descriptors were checked by skua_<operator>_create().
#pragma once
#include <skua/skua.h>
#include "core/op.h"

// In skua_<operator>_create, after its checks: on a GPU context the call makes the operator.
#ifdef SKUA_BUILT_gpu
#define SKUA_ON_GPU(context, call) \
  if ((context)->gpu) return skua::gpu::call
#else
#define SKUA_ON_GPU(context, call)
#endif

namespace skua {
struct ConvConfig;
}

namespace skua::gpu {

skua_status create_unary(skua_context* context, const skua_unary_desc& d, skua_op** out);
skua_status create_gemm(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias, skua_op** out);
// conv2d, or conv2d_transpose as c.transposed says.
skua_status create_conv(const skua_context* ctx, const ConvConfig& c, skua_dtype weight_type, skua_weight_layout layout, const void* weights, const void* bias, skua_op** out);
skua_status create_pool(const skua_context* ctx, const skua_pool2d_desc& d, skua_op** out);

}  // namespace skua::gpu
