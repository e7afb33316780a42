// Operators that this build leaves out answer SKUA_STATUS_UNSUPPORTED and say so; the same for calls that no device of
// this build offers.
#include <skua/skua.h>
#include "core/error.h"

using namespace skua;

namespace {
[[maybe_unused]] skua_status absent(const char* what, const char* with, skua_op** out) {
  if (out) *out = nullptr;
  return SKUA_UNSUPPORTED_("%s: not in this build, whose SKUA_OPS lack %s", what, with);
}
[[maybe_unused]] skua_status cpu_only(const char* what) {
  return SKUA_UNSUPPORTED_("%s: only contexts on a GPU have it, and this build has no GPU backend", what);
}
}  // namespace

extern "C" {

#ifndef SKUA_BUILT_gemm
skua_status skua_gemm_create(skua_context*, const skua_gemm_desc*, const void*, const void*, skua_op** out) {
  return absent("gemm", "gemm", out);
}
skua_status skua_gemm_f32(skua_context*, size_t, size_t, size_t, const float*, size_t, const float*, size_t, float*,
                          size_t, const skua_executor*) {
  return absent("gemm_f32", "gemm", nullptr);
}
#endif
#ifndef SKUA_BUILT_conv
skua_status skua_conv2d_create(skua_context*, const skua_conv2d_desc*, const void*, const void*, skua_op** out) {
  return absent("conv2d", "conv", out);
}
skua_status skua_conv2d_transpose_create(skua_context*, const skua_conv2d_transpose_desc*, const void*, const void*,
                                         skua_op** out) {
  return absent("conv2d_transpose", "conv", out);
}
skua_status skua_inverted_residual_create(skua_context*, const skua_inverted_residual_desc*, const void* const*,
                                          const void* const*, skua_op** out) {
  return absent("inverted_residual", "conv", out);
}
#endif
#ifndef SKUA_BUILT_pooling
skua_status skua_pool2d_create(skua_context*, const skua_pool2d_desc*, skua_op** out) {
  return absent("pool2d", "pooling", out);
}
#endif
#ifndef SKUA_BUILT_elementwise
skua_status skua_unary_create(skua_context*, const skua_unary_desc*, skua_op** out) {
  return absent("unary", "elementwise", out);
}
skua_status skua_binary_create(skua_context*, const skua_binary_desc*, skua_op** out) {
  return absent("binary", "elementwise", out);
}
skua_status skua_select_create(skua_context*, const skua_select_desc*, skua_op** out) {
  return absent("select", "elementwise", out);
}
skua_status skua_convert_create(skua_context*, const skua_convert_desc*, skua_op** out) {
  return absent("convert", "elementwise", out);
}
#endif
#ifndef SKUA_BUILT_normalize
skua_status skua_softmax_create(skua_context*, const skua_softmax_desc*, skua_op** out) {
  return absent("softmax", "normalize", out);
}
skua_status skua_norm_create(skua_context*, const skua_norm_desc*, const float*, const float*, const float*,
                             const float*, skua_op** out) {
  return absent("norm", "normalize", out);
}
#endif
#ifndef SKUA_BUILT_reduce
skua_status skua_reduce_create(skua_context*, const skua_reduce_desc*, skua_op** out) {
  return absent("reduce", "reduce", out);
}
#endif
#ifndef SKUA_BUILT_resize
skua_status skua_resize2d_create(skua_context*, const skua_resize2d_desc*, skua_op** out) {
  return absent("resize2d", "resize", out);
}
#endif
#ifndef SKUA_BUILT_data
skua_status skua_transpose_create(skua_context*, const skua_transpose_desc*, skua_op** out) {
  return absent("transpose", "data", out);
}
skua_status skua_layout_create(skua_context*, const skua_layout_desc*, skua_op** out) {
  return absent("layout", "data", out);
}
skua_status skua_pad_create(skua_context*, const skua_pad_desc*, skua_op** out) { return absent("pad", "data", out); }
skua_status skua_slice_create(skua_context*, const skua_slice_desc*, skua_op** out) {
  return absent("slice", "data", out);
}
skua_status skua_concat_create(skua_context*, const skua_concat_desc*, skua_op** out) {
  return absent("concat", "data", out);
}
skua_status skua_rearrange_create(skua_context*, const skua_rearrange_desc*, skua_op** out) {
  return absent("rearrange", "data", out);
}
#endif
#ifndef SKUA_BUILT_gpu
skua_status skua_context_save_programs(skua_context*) { return cpu_only("context_save_programs"); }
skua_status skua_device_buffer_create(skua_context*, size_t, skua_device_buffer** out) {
  if (out) *out = nullptr;
  return cpu_only("device_buffer_create");
}
skua_status skua_device_buffer_import(skua_context*, uint64_t, size_t, size_t, skua_device_buffer** out) {
  if (out) *out = nullptr;
  return cpu_only("device_buffer_import");
}
skua_status skua_device_buffer_write(skua_device_buffer*, size_t, const void*, size_t) {
  return cpu_only("device_buffer_write");
}
skua_status skua_device_buffer_read(const skua_device_buffer*, size_t, void*, size_t) {
  return cpu_only("device_buffer_read");
}
skua_status skua_device_buffer_map(skua_device_buffer*, size_t, size_t, void** data) {
  if (data) *data = nullptr;
  return cpu_only("device_buffer_map");
}
skua_status skua_device_buffer_unmap(skua_device_buffer*, void*) { return cpu_only("device_buffer_unmap"); }
void skua_device_buffer_destroy(skua_device_buffer*) {}
skua_status skua_stream_create(skua_context*, skua_stream** out) {
  if (out) *out = nullptr;
  return cpu_only("stream_create");
}
void skua_stream_destroy(skua_stream*) {}
skua_status skua_plan_enqueue(const skua_plan*, const skua_buffer*, size_t, const skua_buffer*, size_t,
                              const skua_buffer*, skua_stream*) {
  return cpu_only("plan_enqueue");
}
skua_status skua_stream_submit(skua_stream*) { return cpu_only("stream_submit"); }
skua_status skua_stream_wait(skua_stream*) { return cpu_only("stream_wait"); }
skua_status skua_event_record(skua_stream*, skua_event** out) {
  if (out) *out = nullptr;
  return cpu_only("event_record");
}
skua_status skua_stream_wait_event(skua_stream*, skua_event*) { return cpu_only("stream_wait_event"); }
skua_status skua_event_nanoseconds(const skua_event*, const skua_event*, double*) {
  return cpu_only("event_nanoseconds");
}
void skua_event_destroy(skua_event*) {}
#endif

}  // extern "C"
