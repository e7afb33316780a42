// What elementwise operators on quantised bytes share beside core/quantize.h.
#pragma once
#include <skua/elementwise.h>
#include "core/families.h"
#include "core/quantize.h"

namespace skua {

inline bool is_bytes(skua_dtype type) { return is_int8(Element(type)); }
inline int32_t first_of(skua_dtype type) { return least_of(Element(type)); }
inline int32_t last_of(skua_dtype type) { return greatest_of(Element(type)); }

// A tensor of s8 or u8 with one scale, in a build that has them.
inline skua_status need_bytes(const char* op, const char* type_field, skua_dtype type, const char* field,
                              const skua_quantization& q) {
  SKUA_TRY(need_int8(op, type_field, type));
  return need_quantization(op, field, q, type);
}

// NULL in builds without s8.
inline const Kernel* find_byte_kernel(const skua_context* ctx, KernelKind kind, int variant, Element element) {
#ifdef SKUA_TYPE_s8
  return find_kernel(ctx, bytes_tables, kind, variant, element);
#else
  (void)ctx, (void)kind, (void)variant, (void)element;
  return nullptr;
#endif
}

// Of a binary function of bytes: kind is a skua_binary_kind, docs/quantization.md says what a, b and c are.
struct BinaryBytesConfig {
  uint32_t kind, type;
  float a, b, c;
  int32_t x_zero, y_zero;
  Requantize to;
};

skua_status create_unary_bytes(skua_context* context, const skua_unary_desc& desc, skua_op** out);
skua_status create_binary_bytes(skua_context* context, const skua_binary_desc& desc, skua_op** out);

}  // namespace skua
