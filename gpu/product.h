// Products and convolutions on a device, what gemm.cc and conv.cc share: numbers in elements become the arguments of a
// kernel of gpu/kernels/product.h.
#pragma once
#include "core/quantize.h"
#include "gpu/choice.h"
#include "gpu/maps.h"

namespace skua::gpu {

// An operator with weights: what open() uploads.
struct WeightedOp : skua_op {
  skua_device_buffer *weights_there, *bias_there;  // NULL = none
};

// Bytes of op->weights for a bias of `bias` floats in front of n elements, as upload_weights() wants them; false:
// overflow.
bool weights_bytes(size_t bias, Element element, size_t n, size_t& bytes);
inline size_t bias_bytes(size_t bias) { return round_up(bias * sizeof(float), 64); }
skua_status upload_weights(WeightedOp& op, size_t bias, Element element, size_t n);
inline Texels texels_of(Element e) {
  return e == Element::f32 ? Texels::f32 : e == Element::f16 ? Texels::f16 : Texels::none;
}
inline bool has_texels(const skua_device_buffer* weights) { return weights && weights->texels != Texels::none; }
// The text's form for weights as texels; NULL if there is none.
const KernelText* image_of(const KernelTexts& texts, const KernelText* text);
void free_weights(skua_op* op);  // OpClass::close

// to[i] = from[i * step], n elements of `type` as `as`.
void pack_row(size_t n, const void* from, size_t step, Element type, void* to, Element as);

// Of bytes: the result's type, zero points as the tensors have them, bounds of the result less its zero point (of
// floats: real ones), the scale of sums where B is an input.
struct ProductBytes {
  Element result, b;  // b: as given
  int32_t a_zero, b_zero, zero;
  float low, high, scale;
  bool each_zero;  // of constant B: a zero point for each column
  QuantizedResidual residual;
  uint32_t rounding;
  FixedScale fixed;  // in place of scale
};
// A kernel takes all bytes as s8, u8 q as q - 128.
inline int32_t flip_of(Element e) { return e == Element::u8 ? int32_t(0x80808080u) : 0; }
inline int32_t zero_of(Element e, int32_t zero_point) { return zero_point - (e == Element::u8 ? 128 : 0); }
// 0 float, 1 rounded twice, 2 once: FIXED of the kernels of bytes.
inline int32_t fixed_code(uint32_t rounding) {
  return rounding == SKUA_ROUNDING_FLOAT ? 0 : rounding == SKUA_ROUNDING_SINGLE ? 2 : 1;
}
// Bits of column j's scale, or multiplier and shift, where kernels of bytes look for them; `columns` in all.
void set_scale(int32_t* start, size_t columns, size_t j, uint32_t rounding, float scale, FixedScale fixed);
inline int32_t r_zero_of(const ProductBytes& q) { return zero_of(q.result, q.residual.zero_point); }
// C0 of the kernels of bytes.
inline int32_t result_code(Element e) {
  return e == Element::f16 ? 1 : e == Element::f32 ? 2 : e == Element::bf16 ? 4 : 0;
}
// Constant weights [columns rounded up to 4][ceil(k / 4)] words: of column j, from[k * step_k] for k < depth, flipped,
// then b_zero of the flipped. Returns the sum of the first.
int32_t pack_column(size_t depth, const int8_t* from, size_t step_k, Element type, int32_t zero, size_t columns,
                    size_t j, int8_t* to);

struct Product {
  bool conv, transposed, constant, bias;
  bool half;  // numerics lets f16 be summed in f16
  bool texels;  // the weights' buffer has them
  bool wide;    // C and the residual are f32, A and B of 16 bits
  Element element;
  ProductBytes q;  // where that is s8 or u8
  size_t m, n, k, z;  // per batch or group; k of one tap
  // of a product
  size_t a_m, a_k, a_z, b_k, b_n, b_z, c_m, c_z, r_m, r_z;
  float alpha, beta;
  // of a convolution
  size_t batch, out_w, out_h, in_w, in_h, kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top,
      pad_left;
  MapSteps a, c, r;
  uint32_t residual;
  Fused activation;
};

// A product ready to be recorded: offsets are missing. What recording reads comes first, in few cache lines: a network
// returns to a plan when its own work has driven it out of the caches.
struct ProductStep {
  const KernelText* text;
  const Program* program;
  Groups groups;
  uint32_t n_arguments;
  int32_t arguments[kMaxArguments];
  bool bytes, constant, conv;
  uint8_t element, result;                     // bytes of an element of A and B, of C and the residual
  bool vector_a, vector_b, vector_c, along_k;  // along_k: B^T is read by vectors of its rows
  bool named;  // by the kernel filter
  ProductKind kind;
  WorkGroup group;
};

// aligned: offsets of A, B, C and the residual are multiples of 4 elements. Chooses a kernel, which the context's
// filter may name, or its kind, and compiles it. choice: of a plan that has one product.
skua_status make_product(const skua_op* op, const Product& p, bool aligned, ProductStep& to, Choice* choice = nullptr);
struct ProductOffsets {
  size_t a, b, c, r;  // elements
};
// bindings: A, B, bias, residual, C; of bytes A, B, what sums start with, scales, C, residual.
skua_status record_product(const skua_plan* plan, const Product& p, const ProductStep& step, const ProductOffsets& at,
                           const Binding (&bindings)[6], skua_stream* stream);
void explain_storage(const skua_plan* plan, const KernelText& kernel, bool texels, Text& text);
// Why maps of e are summed in f32, behind these words; other: where numerics, device and vectors would let f16 sum f16.
const char* why_f32_sums(const skua_op* op, Element e, bool fast, bool vectors, const char* other);
void explain_product(const skua_plan* plan, const Product& p, const ProductStep& step, Text& text);

// Element `b` of a run's binding; NULL where there is no such operand.
inline size_t offset_of(const skua_buffer& b, Element e) { return b.offset / element_bytes(e); }
}  // namespace skua::gpu
