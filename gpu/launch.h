// From an operator's plan to a dispatch: the kernel it chose, compiled, and the bindings and arguments of one launch.
#pragma once
#include "core/op.h"
#include "gpu/device.h"
#include "gpu/kernel_texts.h"
#include "gpu/operators.h"

namespace skua::gpu {

// Compiles it, or finds it compiled.
skua_status choose(const skua_op* op, const ProgramKey& key, Chosen& chosen);

// The entry of `first` (that of f32) for the type, of a text whose types have `variants` entries each.
inline const KernelText& text_of(const KernelTexts& texts, int first, int variants, skua_dtype type) {
  return texts.texts[first + (type == SKUA_DTYPE_F16 ? 1 : type == SKUA_DTYPE_BF16 ? 2 : 0) * variants];
}

// Threads of a work-group for kernels whose threads stand in a line.
uint16_t line_threads(const Description& about);

inline int32_t bits_of(float value) {
  int32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

// A reduction's dispatch: of all, of the parts that its terms are cut into (choose_parts()), or of their results, which
// are joined. Numbers of gpu/kernels/parts.h.
enum class Part : int32_t { all, gives, joins };

struct Groups {
  size_t count[3];
};
// Starts that many work-groups. What is more than the device starts in a dimension at once becomes further dispatches;
// where each begins is told in three arguments behind the kernel's own, which GROUP and GLOBAL of its text add.
skua_status start(const skua_op* op, const KernelText& text, Dispatch& dispatch, const Groups& groups,
                  skua_stream* stream);

struct Launch {
  explicit Launch(const RecordArgs& record_args) : args(record_args) {}

  // Binds the memory, the next of the kernel's. Returns where the first element is, in elements of the buffer;
  // remembers a status when that does not fit 32 bits.
  int32_t bind(const skua_buffer& buffer, const skua_span& span, bool written);
  int32_t input(size_t i);
  int32_t output(size_t i);
  // Floats of the operator's own.
  void bind_own(const skua_device_buffer* buffer) {
    element[dispatch.n_bindings] = 4;
    dispatch.bindings[dispatch.n_bindings++] = {buffer, 0, buffer->size, false};
  }
  // The same memory again, under another type.
  void bind_again(uint32_t binding) {
    element[dispatch.n_bindings] = element[binding];
    dispatch.bindings[dispatch.n_bindings++] = dispatch.bindings[binding];
  }
  // The argument that tells where in the buffer of a binding the kernel begins: `at` elements from its start, counted
  // in vectors of `vector`.
  void add_offset(uint32_t binding, size_t at, uint32_t vector = 1) {
    dispatch.bindings[binding].argument = uint8_t(dispatch.n_arguments);
    dispatch.bindings[binding].unit = uint8_t(element[binding] * vector);
    add(int32_t(at / vector));
  }
  void add_size(size_t argument) { dispatch.arguments[dispatch.n_arguments++] = int32_t(argument); }
  void add(int32_t argument) { dispatch.arguments[dispatch.n_arguments++] = argument; }

  // Work-groups for so many threads.
  skua_status record(const Chosen& kernel, size_t x, size_t y = 1, size_t z = 1);
  skua_status record_groups(const Chosen& kernel, const Groups& groups);

  const RecordArgs& args;
  Dispatch dispatch = {};
  uint8_t element[kMaxBindings] = {};  // bytes; 0: bound whole
  skua_status status = SKUA_STATUS_OK;
};

}  // namespace skua::gpu
