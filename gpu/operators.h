// Creation of operators on GPU contexts; the descriptors were checked by skua_<operator>_create().
#pragma once
#include <skua/skua.h>
#include "core/op.h"

// In skua_<operator>_create, after its checks: on a GPU context the call makes the operator.
#ifdef SKUA_BUILT_gpu
#define SKUA_ON_GPU_HERE(context, call) \
  if ((context)->gpu) return call
#define SKUA_ON_GPU(context, call) SKUA_ON_GPU_HERE(context, skua::gpu::call)
#else
#define SKUA_ON_GPU_HERE(context, call) (void)0
#define SKUA_ON_GPU(context, call) (void)0
#endif

namespace skua {
struct BinaryBytesConfig;
struct ConvConfig;
struct ConvQuantization;
struct Nest;
struct QuantizedResidual;
struct Requantize;
struct WeightSteps;
}

namespace skua::gpu {

struct Program;
enum class Texels : uint8_t;

// A kernel with its work-group and constants: what a plan keeps.
struct Chosen {
  const Program* program;
  const KernelText* text;
  uint16_t local[3];
};

// ---- classes of their own -------------------------------------------------------------------------------------------
skua_status create_unary(skua_context* context, const skua_unary_desc& d, skua_op** out);
skua_status create_gemm(const skua_context* ctx, const skua_gemm_desc& d, const void* b, const void* bias,
                        skua_op** out);
// conv2d, or conv2d_transpose as c.transposed says.
skua_status create_conv(const skua_context* ctx, const ConvConfig& c, skua_dtype weight_type, skua_weight_layout layout,
                        const void* weights, const void* bias, size_t hint_h, size_t hint_w, skua_op** out);
skua_status create_inverted_residual(const skua_context* ctx, const ConvConfig (&stages)[3],
                                     const skua_inverted_residual_desc& d, const void* const* weights,
                                     const void* const* biases, skua_op** out);
// Of s8 and u8: `to` and `bounds` are what their epilogues become.
skua_status create_gemm_bytes(const skua_context* ctx, const skua_gemm_desc& d, const Requantize& to,
                              const QuantizedResidual& residual, const void* b, const int32_t* bias, skua_op** out);
skua_status create_conv_bytes(const skua_context* ctx, const ConvConfig& c, skua_dtype result, const Requantize& bounds,
                              const ConvQuantization& q, const WeightSteps& steps, const void* weights,
                              const void* bias, skua_op** out);
skua_status create_pool(const skua_context* ctx, const skua_pool2d_desc& d, skua_op** out);
skua_status create_binary(skua_context* context, const skua_binary_desc& d, skua_op** out);
skua_status create_select(skua_context* context, const skua_select_desc& d, skua_op** out);
skua_status create_convert(skua_context* context, const skua_convert_desc& d, skua_op** out);

// Of bytes: bytes.cc.
skua_status create_convert_bytes(const skua_context* ctx, const skua_convert_desc& d, skua_op** out);
skua_status create_table(const skua_context* ctx, skua_dtype from, skua_dtype to, const uint8_t (&table)[256],
                         skua_op** out);
skua_status create_binary_bytes(const skua_context* ctx, const BinaryBytesConfig& c, skua_op** out);

// ---- for classes that the CPU has too: `plan` compiles, `record` records --------------------------------------------
// f32, f16 and bf16, where the build has them. Refuses others with a text that names the field.
skua_status need_gpu_type(const skua_context* ctx, const char* op, const char* field, skua_dtype type);

// s8 and u8 too
skua_status need_gpu_movable(const skua_context* ctx, const char* op, const char* field, skua_dtype type);

// A strided copy to output 0: from an input, from other elements of the output, or of one value.
struct CopyFrom {
  enum { input, output, value } kind;
  size_t index;    // of the input
  size_t offset;   // elements
  uint32_t bits;   // the value's, in the tensor's type
};
uint32_t bits_of(skua_dtype type, float value);  // f32, f16, bf16
skua_status plan_copy(skua_plan* plan, const Nest& nest, CopyFrom from, size_t to);
skua_status record_copy(const RecordArgs& args, const Nest& nest, CopyFrom from, size_t to);

// Over element i of row r and column c: x[r / per_block * x_block + r % per_block * n * inner + c + i * x_step].
struct SoftmaxShape {
  size_t outer, n, inner, per_block, x_block, y_block, x_step, y_step;
  bool logarithm;
  float scale;
};
skua_status plan_softmax(skua_plan* plan, const SoftmaxShape& shape, Chosen& chosen);
// Of bytes: x ^ flip rises with the exponential, `powers` are those of softmax_kernel.h.
struct SoftmaxOfBytes {
  const skua_device_buffer* powers;
  int32_t flip;
  float step;  // of the output
  Requantize to;
};
skua_status open_softmax_bytes(const skua_op* op, bool logarithm, const int32_t (&powers)[256],
                               skua_device_buffer** there);
skua_status record_softmax(const RecordArgs& args, const SoftmaxShape& shape, const Chosen& chosen,
                           const SoftmaxOfBytes* bytes = nullptr);

// Rows of which each has its own mean and variance. Elements of a row, and rows, are counted by three loops each,
// innermost first; steps in x, in y and of the channel, which only the innermost loop over rows changes.
struct NormShape {
  size_t extent[3], x[3], y[3], channel[3];
  size_t rows[3], row_x[3], row_y[3], row_channel;
  bool rms;
  float epsilon;
};
skua_status plan_norm(skua_plan* plan, const NormShape& shape, Chosen& chosen);
skua_status record_norm(const RecordArgs& args, const NormShape& shape, const Chosen& chosen,
                        const skua_device_buffer* factors, size_t channels);
// y = x * gamma + beta for channels along dimension `channel`.
skua_status plan_affine(skua_plan* plan, uint32_t channel);
skua_status record_affine(const RecordArgs& args, uint32_t channel, const skua_device_buffer* factors, size_t channels);
skua_status open_norm(const skua_context* ctx, const skua_op* op, skua_dtype type, const float* gamma,
                      const float* beta, size_t channels, skua_device_buffer** factors);
skua_status upload(const skua_op* op, const void* data, size_t size, skua_device_buffer** out, Texels texels = {});
void free_buffer(skua_device_buffer* buffer);

// Kept and reduced dimensions of a dense tensor, innermost first.
struct ReduceShape {
  size_t kept[3], kept_step[3], reduced[3], reduced_step[3];
  uint32_t kind;
  bool along_rows;  // neighbouring elements are reduced: a work-group for each result, else a thread
};
// With more than one part of each result these are in the workspace, and `joins` joins them.
struct ReduceStep {
  Chosen chosen, joins;
  size_t parts, share;  // share: elements of a part
  size_t workspace;     // bytes
};
skua_status plan_reduce(skua_plan* plan, const ReduceShape& shape, ReduceStep& step);
// Of bytes: zero points of `terms` terms, what the rest is multiplied by.
struct ReduceOfBytes {
  int32_t zeros, terms;
  float factor;
  Requantize to;
};
skua_status record_reduce(const RecordArgs& args, const ReduceShape& shape, const ReduceStep& step,
                          const ReduceOfBytes* bytes = nullptr);

struct ResizeShape {
  size_t images, planes, channels, in_h, in_w, out_h, out_w;
  size_t x_batch, x_plane, x_row, x_pixel, y_batch, y_plane, y_row, y_pixel;
  bool bilinear;
  uint32_t coordinates;
};
skua_status plan_resize(skua_plan* plan, const ResizeShape& shape, Chosen& chosen);
skua_status record_resize(const RecordArgs& args, const ResizeShape& shape, const Chosen& chosen);

}  // namespace skua::gpu
