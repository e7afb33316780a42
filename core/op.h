// What every operator is made of. An operator is a config (plain data, no pointers), a block of packed weights
// (position independent), and a class of functions.
//
//   create   checks the descriptor, fills the config, packs the weights, open()                  <operator>.cc
//   open     from config + weights alone: derives pointers and kernels; a blob comes in here too
//   plan     shapes -> outputs, algorithm, kernel, blocks, workspace; fills a plain struct derived from skua_plan
//   run      computes
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <skua/op.h>
#include "core/context.h"
#include "dispatch/element.h"
#include "core/tuning.h"

namespace skua {

struct RunArgs;
struct RecordArgs;
struct Text;
namespace gpu {
struct KernelText;
}

// Shapes that a plan is made for; strides filled in.
struct PlanShapes {
  const skua_tensor* inputs;
  size_t n_inputs;
};

struct OpClass {
  const char* name;        // "conv2d": begins every error text
  uint32_t id;             // in blobs; never reused
  // what they are, for the text of an error where a descriptor says how many; NULL: they are always as many
  const char* inputs = nullptr;
  size_t op_size;          // sizeof the struct derived from skua_op
  size_t plan_size;        // sizeof the struct derived from skua_plan
  size_t config_offset;    // of the config inside the op
  size_t config_size;
  bool in_place = false;   // an output may be exactly an input
  skua_status (*open)(skua_op* op) = nullptr;
  // Fills plan->outputs (shapes; strides too if they are not dense), algorithm, kernel and the derived struct. What it
  // sees is dense or strided as given.
  skua_status (*plan)(const skua_op* op, const PlanShapes& shapes, skua_plan* plan) = nullptr;
  // After the outputs' strides are final (NULL if they do not matter): checks them, finishes the plan.
  skua_status (*finish)(const skua_op* op, skua_plan* plan) = nullptr;
  size_t (*workspace)(const skua_plan* plan, uint32_t concurrency) = nullptr;  // NULL = none
  void (*run)(const RunArgs& args) = nullptr;
  void (*explain)(const skua_plan* plan, Text& text) = nullptr;                // NULL = the standard lines only
  // For tuning: an operator with this one's config and made-up weights, packed in the format of candidate `wanted` of
  // its creation for these inputs; NULL in `out` when there is no such candidate. NULL = one format only.
  skua_status (*remake)(const skua_op* op, const skua_tensor* inputs, uint32_t wanted, skua_op** out) = nullptr;
  // What it does on a GPU context, instead of run or beside it: adds its dispatches to a stream. Its open() uploads
  // what close() frees.
  skua_status (*record)(const RecordArgs& args) = nullptr;
  void (*close)(skua_op* op) = nullptr;  // also of an op whose open() failed half way; NULL = nothing to free
};

// A function of gpu/ in a class, NULL in a build without it.
#ifdef SKUA_BUILT_gpu
#define SKUA_RECORD(function) function
#else
#define SKUA_RECORD(function) nullptr
#endif

// Fixed-capacity text sink for skua_plan_explain: counts what does not fit.
struct Text {
  char* at;
  size_t size, length;
  void add(const char* format, ...) __attribute__((format(printf, 2, 3)));
};

}  // namespace skua

struct skua_op {
  const skua::OpClass* cls;
  const skua_context* ctx;
  uint32_t n_inputs, n_outputs;  // n_inputs 0 = any
  const void* weights;           // packed; owned unless borrowed from a blob
  size_t weights_size;
  uint64_t creation_key;         // under which a measured packed format is remembered (tuning.h); 0 = none
  bool borrowed;
};

constexpr size_t kMaxPlanInputs = 4;  // an operator with more keeps its own list

// What a run checks of a buffer.
struct skua_span {
  size_t bytes;      // from the first element to one past the last; 0 = no elements
  uint32_t element;  // bytes of one
  bool dense;
};

struct skua_plan {
  const skua_op* op;
  size_t n_inputs, n_outputs;
  bool in_caller_memory;
  bool confirmed;                 // by measurement: the model's choice
  // by the kernel filter, by another name than its algorithm's or kernel's: of a part, or of a kind of kernels
  bool named;
  const char* algorithm;          // "winograd_f4x4"
  const skua::Kernel* kernel;     // the one that does most of the work
  const skua::gpu::KernelText* text;  // on a GPU, instead of it
  skua::Choice choice;            // of the candidate; choosers ask it
  skua_tensor inputs[kMaxPlanInputs];
  const skua_tensor* all_inputs;  // n_inputs shapes: `inputs`, or the derived plan's own list
  skua_tensor outputs[2];
  skua_span input_spans[kMaxPlanInputs], output_spans[2];
  // What fill_plan() finds so that most runs need few checks:
  bool plain;                     // one output, at most kMaxPlanInputs inputs, all of them dense and with elements
  uint8_t shares;                 // plain: bit i set = input i may be exactly the output
  size_t workspace;               // bytes for one worker
};

namespace skua {

skua_span span_of(const skua_tensor& t);

constexpr uint32_t kMostWorkers = 1 << 16;

struct RunArgs {
  const skua_plan* plan;
  const skua_buffer* inputs;
  const skua_buffer* outputs;
  void* workspace;
  const skua_executor* executor;  // NULL = this thread

  template <class T>
  const T* in(size_t i) const {
    return reinterpret_cast<const T*>(static_cast<const char*>(inputs[i].host) + inputs[i].offset);
  }
  template <class T>
  T* out(size_t i) const {
    return reinterpret_cast<T*>(static_cast<char*>(outputs[i].host) + outputs[i].offset);
  }
  uint32_t concurrency() const { return executor && executor->concurrency ? executor->concurrency : 1; }
  // Those that work is cut for, so that no multiple of them wraps; the workspace is for all.
  uint32_t workers() const { return concurrency() < kMostWorkers ? concurrency() : kMostWorkers; }
};

struct RecordArgs {
  const skua_plan* plan;
  const skua_buffer* inputs;
  const skua_buffer* outputs;
  const skua_buffer* workspace;  // NULL where none is needed
  skua_stream* stream;
};

// Runs task(arg, i, worker) for i in [0, count): on the executor, or here when there is one piece only.
inline void parallel(const RunArgs& args, size_t count, skua_task task, void* arg) {
  if (count > 1 && args.executor) return args.executor->parallel_for(args.executor->ctx, count, task, arg);
  for (size_t i = 0; i < count; ++i) task(arg, i, 0);
}

// Pieces to cut `units` of work into, when one unit costs `cycles_per_unit`: one below ~2.5 microseconds in all
// (kAlone), so that a small operator does not pay for another core's cache lines; else at least half of that each, four
// per worker at most, so that fast and slow cores both stay busy, and as many for each worker. Executors give a worker
// neighbouring pieces first: pieces in the order of the outputs find in its cache what it wrote in the operator before.
// What one worker does alone it reads from the caches of all: 10 GB/s on a Xeon (measured), which is why the limit is
// low.
constexpr double kAlone = 8e3;  // cycles
size_t pieces_for(const RunArgs& args, size_t units, double cycles_per_unit);
// The i-th of `pieces` nearly equal parts of [0, units): begin; the end is the next one's begin.
inline size_t piece_begin(size_t units, size_t pieces, size_t i) {
  return size_t((unsigned long long)units * i / pieces);
}

// ---- sizes ----------------------------------------------------------------------------------------------------------
inline bool mul(size_t a, size_t b, size_t& out) { return !__builtin_mul_overflow(a, b, &out); }
inline bool add(size_t a, size_t b, size_t& out) { return !__builtin_add_overflow(a, b, &out); }
// Saturating: SIZE_MAX for what does not fit, which no workspace can be.
inline size_t mul_sat(size_t a, size_t b) { size_t r; return mul(a, b, r) ? r : SIZE_MAX; }
inline size_t add_sat(size_t a, size_t b) { size_t r; return add(a, b, r) ? r : SIZE_MAX; }
constexpr size_t round_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }
inline size_t ceil_div(size_t a, size_t b) { return a / b + (a % b != 0); }
inline size_t min(size_t a, size_t b) { return a < b ? a : b; }
inline size_t max(size_t a, size_t b) { return a > b ? a : b; }
// of cycles, which may be more than a size
template <class T> requires(__is_same(T, double))
inline T max(T a, T b) { return a > b ? a : b; }

size_t element_count(const skua_tensor& t);       // product of the shape; the shape was checked
// strides are row-major without holes (dimensions of extent 1 do not count)
bool is_dense(const skua_tensor& t);
void set_dense(skua_tensor& t);                   // fills the strides
inline skua_tensor tensor(skua_dtype type, uint32_t rank) {
  skua_tensor t = {};
  t.type = type;
  t.rank = rank;
  return t;
}

// ---- making ops -----------------------------------------------------------------------------------------------------
// Copies a caller's descriptor after checking struct_size.
skua_status check_desc(const char* op, const void* desc, size_t struct_size_seen, size_t struct_size_here);
template <class Desc>
skua_status read_desc(const char* op, skua_context* ctx, const Desc* desc, Desc& to, skua_op** out) {
  if (!out) return SKUA_INVALID("%s: out is NULL", op);
  *out = nullptr;
  if (!ctx) return SKUA_INVALID("%s: context is NULL", op);
  if (!desc) return SKUA_INVALID("%s: desc is NULL", op);
  SKUA_TRY(check_desc(op, desc, desc->struct_size, sizeof(Desc)));
  to = *desc;
  return SKUA_STATUS_OK;
}

// One of the float types of this build. or_bytes: the text names s8 and u8 too, which the operator takes by another
// way.
skua_status need_float(const char* op, const char* field, skua_dtype type, bool or_bytes = false);
skua_status need_same_type(const char* op, const char* field, skua_dtype type, const char* other_field,
                           skua_dtype wanted);
skua_status need_same_type_or_f32(const char* op, const char* field, skua_dtype type, const char* other_field,
                                  skua_dtype wanted);
// A quantisation on a tensor that is not quantised would be ignored: refused instead.
skua_status need_unquantized(const char* op, const char* field, const skua_quantization& q);
const char* activation_name(skua_activation_kind kind);  // "HARD_SWISH"
skua_status check_activation(const char* op, const skua_activation& a, const char* field = "activation");
skua_status check_epilogue(const char* op, const skua_epilogue& e);

skua_status wrong_number_of_inputs(const OpClass& cls, size_t n_inputs, size_t wanted);

// A zeroed op of this class with `weights_size` bytes for packed weights (64-byte aligned, or huge-page aligned when
// large), or a status. Fill config and weights, then open_op().
skua_status new_op(const OpClass& cls, const skua_context* ctx, uint32_t n_inputs, uint32_t n_outputs,
                   size_t weights_size, skua_op** out);
inline void* op_weights(skua_op* op) { return const_cast<void*>(op->weights); }
// open(); on failure the op is destroyed.
skua_status open_op(skua_op* op, skua_op** out);
// What the blobs of a class hold, whether this build has it or not; "" of an id that has none.
const char* packed_operator(uint32_t class_id);

// ---- checking a plan's inputs ---------------------------------------------------------------------------------------
// "conv2d: input 0 has rank 3, must be 4"
skua_status need_rank(const skua_op* op, const PlanShapes& s, size_t i, uint32_t rank);
skua_status need_type(const skua_op* op, const PlanShapes& s, size_t i, skua_dtype type);
skua_status need_dense(const skua_op* op, const PlanShapes& s, size_t i);
skua_status need_same_shape(const skua_op* op, const PlanShapes& s, size_t i, const skua_tensor& t);

}  // namespace skua
