// What tests of operators on GPUs share: every device of the machine, every type that its kernels take, results beside
// the CPU's.
#pragma once
#include <skua/conv.h>

#include <functional>

#include "tests/support/support.h"

namespace skua_test {

// f32, and f16 and bf16 where the build has them. bf16 has f16's kernels and differs in how elements are read and
// written: a test that costs many programs may leave it out, and what simulates a device does.
std::vector<skua_dtype> gpu_types(bool bf16 = true);
bool gpu_has(skua_dtype type);  // of gpu_types()
std::vector<skua_dtype> gpu_types_of(skua_dtype type);  // it alone, where gpu_types() has it

// The context of a device, by kernels of these names: the same for all of a test, at whose end it goes, so that what
// its cases have in common is compiled once. gpu_groups and gpu_other_rows make another.
Context& shared_gpu(const skua_device_info& device, const std::string& filter = {});

// body(context) for every device, a shared one; skips where there is none.
void on_every_gpu(const std::function<void(Context& gpu)>& body);

// body(context, type) for every device, every filter and type, in a shared context: tests do not depend on what a
// device would choose.
void by_every_kernel(const std::vector<const char*>& filters, const std::vector<skua_dtype>& types,
                     const std::function<void(Context& gpu, skua_dtype type)>& body);

using Shape = std::vector<size_t>;
// Where tensors have holes in the second pass: nowhere, behind dimension 0's elements, in all dimensions.
enum class Holes { none, outer, all };
using MakeOp = std::function<skua_status(skua_context* context, skua_dtype type, skua_op** op)>;
using CheckData = std::function<void(const Data& got, const Data& want)>;

// Makes the operator on the CPU and on every device, in every type, and checks output 0 for every list of input shapes:
// dense at offsets that suit vectors, then with holes, in the output too, at offsets that do not.
void compare_on_gpus(const std::vector<std::vector<Shape>>& inputs, Holes holes, const MakeOp& make_op,
                     const CheckData& check = expect_same_bits, const std::vector<skua_dtype>& types = gpu_types());

// What explains the operator's plan for inputs of this shape has these words.
void expect_explained(const skua_op* op, const skua_tensor& x, const char* words);

// A square convolution, padded as SAME; and the transposed one of the same fields, an element more of output where its
// stride is not 1.
skua_conv2d_desc conv_desc(uint32_t kernel, uint32_t in, uint32_t out, uint32_t stride, uint32_t groups);
skua_conv2d_transpose_desc transposed_desc(const skua_conv2d_desc& d);

}  // namespace skua_test
