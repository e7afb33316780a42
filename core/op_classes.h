// Operators whose packed weights can be read back; ended by NULL.
#pragma once
#include "core/op.h"

namespace skua {
extern const OpClass gemm_class, conv2d_class, conv2d_transpose_class, inverted_residual_class, norm_class,
    gemm_dynamic_class, conv2d_int8_class, conv2d_transpose_int8_class, depthwise_int8_class;
inline constexpr const OpClass* op_classes[] = {
#ifdef SKUA_BUILT_gemm
    &gemm_class,
#endif
#if defined(SKUA_BUILT_gemm) && defined(SKUA_TYPE_s8)
    &gemm_dynamic_class,
#endif
#ifdef SKUA_BUILT_conv
    &conv2d_class, &conv2d_transpose_class, &inverted_residual_class,
#endif
#if defined(SKUA_BUILT_conv) && defined(SKUA_TYPE_s8)
    &conv2d_int8_class, &conv2d_transpose_int8_class, &depthwise_int8_class,
#endif
#ifdef SKUA_BUILT_normalize
    &norm_class,
#endif
    nullptr};
}  // namespace skua
