// One strided copy: every operator of this folder is one or several of them. See data/README.md.
#pragma once
#include "core/nest.h"
#include "data/copy_kernel.h"

namespace skua {

struct CopyKernels {
  size_t element;  // bytes
  const Kernel *rows, *transposed, *strided;
};
// For elements of this type; UNSUPPORTED if the build has none.
skua_status find_copy_kernels(const skua_op* op, skua_dtype type, CopyKernels& to);
template <class Op>
skua_status open_copies(skua_op* op) {
  return find_copy_kernels(op, skua_dtype(static_cast<Op*>(op)->config.type), static_cast<Op*>(op)->kernels);
}

// A nest in the form that a kernel takes: the last two dimensions are the kernel's, the others are walked around it.
struct Copy {
  Nest nest;
  const Kernel* kernel;
  size_t element;     // bytes
  size_t lines;       // product of all extents but the last
  size_t group;       // lines that stay together
  size_t elements;    // 0 = nothing to do
};
Copy make_copy(const CopyKernels& kernels, const Nest& nest);

// Part `piece` of `pieces` of the copy; any number of pieces.
void run_copy(const Copy& copy, const void* x, void* y, size_t piece, size_t pieces);

// All of it, cut over the executor.
void run_copy(const RunArgs& args, const Copy& copy, const void* x, void* y);

// Cycles per element, for cutting work.
double copy_cycles(const Copy& copy);

// Elements of 32, 16 and 8 bits.
skua_status need_movable(const char* op, skua_dtype type);

}  // namespace skua
