// Elementwise work on GPUs: a thread for each 4 elements, or one, of tensors with any strides. elementwise/loops.h sorts and merges the dimensions as for the CPU; a kernel takes a row and
// three loops around it (gpu/kernels/nest.h), what is left is several dispatches.
#pragma once
#include "elementwise/loops.h"
#include "gpu/launch.h"

namespace skua::gpu {

// What differs between elementwise operators.
struct NestKernel {
  const KernelText *v1, *v4;
  uint32_t operands;      // the output first, then the inputs
  uint32_t scalars;       // bit o: the kernel of 4 elements takes operand o as one value for a row (from a further binding, by elements)
  int32_t constants[4];   // C2 .. C5; C0 = whether there is more than one row, C1 = the scalars
  int32_t arguments[4];   // behind the nest's
  uint32_t n_arguments;
};

struct Nest {
  uint32_t vector, scalars;
  int32_t n;                                           // threads
  int32_t extent[3];                                   // of the row, in vectors, and of the loops around it
  int32_t step[kMostOperands][4];                      // in vectors; a scalar's in elements
  uint32_t rounds;                                     // loops outside of a dispatch
  size_t round_extent[SKUA_MAX_RANK], round_step[SKUA_MAX_RANK][kMostOperands];
};

struct NestPlan : skua_plan {
  Nest nest;
  Chosen chosen;
};

skua_status plan_nest(const skua_op* op, const NestKernel& kernel, NestPlan& plan);
skua_status record_nest(const RecordArgs& args, const NestKernel& kernel);

}  // namespace skua::gpu
