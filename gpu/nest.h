// Elementwise work on GPUs: a thread for each 4 elements, or one, of tensors with any strides. elementwise/loops.h
// sorts and merges the dimensions as for the CPU; a kernel takes a row and three loops around it (gpu/kernels/nest.h),
// what is left is several dispatches.
#pragma once
#include "elementwise/loops.h"
#include "gpu/launch.h"

namespace skua::gpu {

// Moves elements of the type, f32 or of 16 bits, by `vector` of them.
inline const KernelText& copy_text(int vector, skua_dtype type) {
  return copy_texts
      .texts[(vector == 4 ? copy_f32_v4 : copy_f32_v1) + (type == SKUA_DTYPE_F32 ? 0 : copy_f16_v1 - copy_f32_v1)];
}

// What differs between elementwise operators.
struct NestKernel {
  const KernelText *v1, *v4;
  uint32_t operands;      // the output first, then the inputs
  // bit o: the kernel of 4 elements takes operand o as one value for a row (from a further binding, by elements)
  uint32_t scalars;
  int32_t constants[4];   // C2 .. C5; C0 = whether there is more than one row, C1 = the scalars
  int32_t arguments[8];   // behind the nest's
  uint32_t n_arguments;
};

// Loops, innermost first; steps in elements, by operand.
constexpr uint32_t kMostLoops = 8;
struct Steps {
  uint32_t rank;
  size_t extent[kMostLoops];
  ptrdiff_t step[kMostLoops][kMostOperands];
};

// The same as a kernel takes it.
struct Grid {
  uint32_t vector, scalars;
  int32_t n;                             // threads
  // of the row, in vectors, and of two loops around it; the third one's is not needed
  int32_t extent[3];
  int32_t step[kMostOperands][4];        // in vectors; a scalar's in elements
  uint32_t rounds;                       // loops outside of a dispatch
  size_t round_extent[kMostLoops];
  ptrdiff_t round_step[kMostLoops][kMostOperands];
};
// `most`: elements of a vector, 1 or 4. False: more than 2^31 elements.
bool make_grid(const Steps& steps, uint32_t operands, uint32_t scalars, uint32_t most, Grid& grid);
skua_status choose_grid(const skua_op* op, const NestKernel& kernel, const Grid& grid, Chosen& chosen);
// at: the operands' first elements; base: a launch that has the bindings.
// base has one binding for each operand, in their order; behind them those of operands that are scalars, a second time.
skua_status record_grid(const Launch& base, const NestKernel& kernel, const Grid& grid, const Chosen& chosen,
                        const size_t* at);

struct NestPlan : skua_plan {
  Steps steps;
  Grid grid;
  Chosen chosen;
};
// Operands: output 0, then the inputs, then `more`.
skua_status plan_nest(const skua_op* op, const NestKernel& kernel, NestPlan& plan, const skua_tensor* more = nullptr);
// own: f32 or s32 of the operator's, of which `more` are parts, `second` elements apart; where there are no `more`, the
// kernel's last binding.
skua_status record_nest(const RecordArgs& args, const NestKernel& kernel, const skua_device_buffer* own = nullptr,
                        size_t second = 0);

}  // namespace skua::gpu
