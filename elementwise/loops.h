// The loop nest of all elementwise operators: one output, one to three inputs, any strides, inputs that repeat along
// dimensions (stride 0).
//
// A plan sorts and merges the dimensions until a row, the innermost loop, is as long as the strides allow, and picks
// one of two ways to feed the kernels:
//
//   rows         a call takes a piece of a long row, or many shorter ones with a step between them
//   joined rows  a call takes several short rows as if they were one; the usual case is a vector along few channels:
//                x[M][C] + y[C] runs as x[M*C] + (y repeated to about 500 elements in a buffer), in whole vectors of
//                the output's lines
//
// An operand that cannot be read as a vector in either way (strided along the row, or with holes between joined rows)
// is staged in a buffer on the stack; one whose buffer is already right (it repeats) is not copied again.
#pragma once
#include "core/op.h"

namespace skua {

constexpr uint32_t kMostOperands = 4;   // the output is operand 0
constexpr size_t kStage = 512;          // elements in a staging buffer: four of them are 8 KiB of stack
constexpr size_t kLongRow = 4096;       // elements; longer rows are cut, shorter ones are not

enum class Feed : uint8_t {
  vector,  // read or written where it is
  scalar,  // one value for a row, and the kernel takes it so
  staged,  // through a buffer
};

struct Loops {
  uint32_t operands, rank;                          // rank: loops outside of a row
  uint8_t size[kMostOperands];                      // bytes of an element: 4, 2 or 1
  size_t row;                                       // elements
  // units are rows of the first loop, not elements; joined: seen as one by a call
  bool by_rows, joined;
  size_t units;                                     // per turn of the loops outside: row, or extent[0]
  size_t most;                                      // units per call (joined: that a buffer holds)
  // joined, and every staged operand repeats: so many buffers of units are one call
  size_t buffers;
  size_t elements;                                  // in all
  size_t extent[SKUA_MAX_RANK];                     // first loop = next to the row
  size_t step[SKUA_MAX_RANK][kMostOperands];        // elements
  size_t row_step[kMostOperands];
  Feed feed[kMostOperands];
  bool staged;                                      // any of them
  bool one;                                         // one row that a call takes whole
};

// `rows` rows of n elements; at[0]: output. A staged operand's pointer is its buffer, with n values in order (there is
// one row then).
struct RowArgs {
  size_t n, rows;
  char* at[kMostOperands];
  const size_t* step;   // elements between rows, by operand
  const uint8_t* size;  // bytes of an element, by operand
  char* row(uint32_t o, size_t r) const { return at[o] + r * step[o] * size[o]; }
};
using RowFn = void (*)(const void* op, const RowArgs& row);

// tensors[0] is the output, the others broadcast to it. scalars: bit i set = the row function takes operand i as one
// value.
// most: elements that a call may take at most (SIZE_MAX = any), e.g. to have a second function find them in the
// first-level cache.
void plan_loops(const skua_tensor* const* tensors, uint32_t operands, uint32_t scalars, size_t most, Loops& loops);

// With one worker, all of it is one call of the kernel: operators make it themselves, a run of few elements is hardly
// more.
inline bool one_call(const RunArgs& args, const Loops& l) { return l.one && args.concurrency() == 1; }
// Runs fn over everything, in pieces on the executor. base: kMostOperands pointers, the output first. The kernels are
// those that fn uses.
void run_loops(const RunArgs& args, const Loops& loops, char* const* base, double cycles_per_element, RowFn fn,
               const void* op, const Kernel* kernel, const Kernel* second = nullptr);

// Shape of inputs of this type broadcast against each other, aligned at the innermost dimension; a status that names
// the input that does not fit.
skua_status broadcast_shape(const skua_op* op, skua_dtype type, const PlanShapes& shapes, skua_tensor& out);

// A dense tensor of another's extents.
inline skua_tensor dense_like(const skua_tensor& x, skua_dtype type) {
  skua_tensor y = x;
  for (size_t& stride : y.stride) stride = 0;
  y.type = type;
  return y;
}

void explain_loops(const Loops& loops, Text& text);

}  // namespace skua
