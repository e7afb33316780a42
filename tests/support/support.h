// What the operators' tests share: memory against guard pages, contexts, tensors with values, and run(), which checks
// the contract of every run.
#pragma once
#include <gtest/gtest.h>
#include <skua/skua.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace skua_test {

// SKUA_TEST_SMALL=1: an emulated core; every kernel and its tails, few sizes.
bool small();

#define SKUA_EXPECT_OK(call)                                                                         \
  do {                                                                                               \
    const skua_status skua_status_ = (call);                                                         \
    EXPECT_EQ(skua_status_, SKUA_STATUS_OK) << skua_status_name(skua_status_) << ": " << skua_error_text(); \
  } while (0)

struct Rng {
  explicit Rng(uint32_t seed) : state(seed * 2654435769u + 1) {}
  uint32_t next();
  float uniform(float low, float high);  // [low, high)
  int integer(int low, int high);        // low..high
  uint64_t state;
};

// Zeroed memory with an inaccessible page directly behind it (at_end), or directly before it. The other side has a few
// bytes up to the page's border, which check() compares with what they held.
class Guarded {
 public:
  explicit Guarded(size_t floats, bool at_end = true);
  // Bytes; the start is rounded down to `align`, so what follows the end and precedes the page is fewer than `align`
  // bytes.
  static Guarded bytes(size_t size, size_t align, bool at_end = true, size_t skip = 0);
  Guarded(Guarded&&) noexcept;
  Guarded& operator=(Guarded&&) = delete;
  ~Guarded();
  float* data() { return reinterpret_cast<float*>(at_); }
  void* memory() { return at_; }
  size_t size() const { return size_ / sizeof(float); }
  void read_only();
  bool untouched_outside() const;  // the accessible bytes before and behind still hold what the constructor wrote

 private:
  Guarded() = default;
  unsigned char *map_ = nullptr, *open_ = nullptr, *at_ = nullptr;
  size_t map_size_ = 0, open_size_ = 0, size_ = 0;
};

// Whether this machine has the instruction set, SKUA_MAX_ISA allows it, and it is not below SKUA_TEST_FROM_ISA: what
// another run of the same program covers is left out.
bool usable(const char* isa);
// Usable instruction sets of this machine that have kernels for the type, lowest first.
std::vector<const char*> isas(skua_dtype type = SKUA_DTYPE_F32);

// The float types of this build, f32 first; and those of 16 bits alone.
std::vector<skua_dtype> float_types();
std::vector<skua_dtype> half_types();
// s8 and u8, where the build has them.
std::vector<skua_dtype> int8_types();
// The nearest value of the type (f32: as it is).
float rounded(skua_dtype type, float value);
// Half the distance between neighbours of the type around the value: what storing a result adds to its error. 0 for
// f32, whose bounds hold it already.
double half_ulp(skua_dtype type, double value);

// The registered kernels of usable instruction sets whose name begins so.
std::vector<skua_kernel_info> kernels(const std::string& prefix);

// The GPUs of this machine, software ones too. Empty skips a test visibly, where SKUA_TEST_GPU=required says that
// OpenCL and Vulkan must be there it fails.
std::vector<skua_device_info> gpu_devices();
#define SKUA_NEED_GPU(devices)                                                                                        \
  const std::vector<skua_device_info> devices = skua_test::gpu_devices();                                              \
  if (devices.empty()) GTEST_SKIP() << "no GPU driver"

// A context whose allocations end against guard pages, are filled with NaN, and are counted: the destructor expects
// them all back, run() expects none.
struct Context {
  explicit Context(const char* max_isa = nullptr, const char* kernel_filter = nullptr);
  explicit Context(const skua_device_info& device, const char* kernel_filter = nullptr);
  explicit Context(const skua_opencl_objects& given);
  explicit Context(const skua_vulkan_objects& given);
  ~Context();
  Context(const Context&) = delete;
  operator skua_context*() const { return context; }
  skua_context* context = nullptr;
  size_t live = 0, taken = 0;  // blocks not yet returned; blocks ever taken
};

// Destroys what it holds.
struct Op {
  Op() = default;
  Op(Op&& from) noexcept : op(from.op) { from.op = nullptr; }
  ~Op() { skua_op_destroy(op); }
  operator const skua_op*() const { return op; }
  skua_op** operator&() { return &op; }
  skua_op* op = nullptr;
};

// A tensor and its values. v covers the strided extent; strides all zero: dense. s32, s8 and u8 tensors hold integers
// (of quantised maps the stored ones). In memory the values have the tensor's type: make() rounds them to it, so that a
// reference sees what a kernel sees.
struct Data {
  skua_tensor t = {};
  std::vector<float> v;
};
skua_tensor shape(std::initializer_list<size_t> extents, skua_dtype type = SKUA_DTYPE_F32);
skua_tensor shape(const std::vector<size_t>& extents, skua_dtype type = SKUA_DTYPE_F32);
// Strides of a tensor whose dimension d has room for extents[d] + more[d] (the outermost's does not matter).
skua_tensor with_holes(const skua_tensor& t, const std::vector<size_t>& more);
skua_tensor resolved(const skua_tensor& t);          // strides filled in
size_t elements(const skua_tensor& t);
size_t extent(const skua_tensor& t);                 // elements from the first to one past the last
size_t offset(const skua_tensor& t, size_t flat);    // of the flat-th element in row-major order; strides filled in
Data make(std::initializer_list<size_t> shape, Rng&, float low = -1, float high = 1);
Data make(const skua_tensor& t, Rng&, float low = -1, float high = 1);  // values between elements are NaN
Data make_bytes(const skua_tensor& t, Rng&);         // s8, u8: all of the type's values, its ends oftener
Data make_integers(const skua_tensor& t, Rng&, int low = -8, int high = 8);
std::vector<float> dense(const Data& data);          // the values in row-major order
std::vector<double> dense_double(const Data& data);

// Plans and runs, and expects of every run: nothing outside the tensors is read or written (operands begin or end at an
// inaccessible page, or are aligned to their element only; inputs are read-only; bytes between strided rows and around
// keep their poison), no allocation, and the same bits from executors of 1, 2, 3 and 7 workers which take tasks in any
// order. Outputs and workspace hold NaN before. Returns the outputs.
//   outputs   strides to write to; empty: dense
//   before    values of the outputs before the run (for operators that read them)
// An operator of a GPU context gets its operands in device memory, enqueued on a stream of its own: bytes around and
// between keep what they held, and a second run gives the same bits.
std::vector<Data> run(const skua_op* op, const std::vector<Data>& inputs, const std::vector<skua_tensor>& outputs = {},
                      const std::vector<Data>& before = {});
// The same with output 0 in the memory of input `which`.
std::vector<Data> run_in_place(const skua_op* op, const std::vector<Data>& inputs, size_t which = 0);

// No two tasks of a run with so many workers write one byte, not even the same to it. For operators on the CPU whose
// tasks read no output.
void expect_tasks_apart(const skua_op* op, const std::vector<Data>& inputs, uint32_t workers);

// Elements before a tensor in its device buffer, so that kernels meet offsets that are no multiple of their vectors.
extern size_t gpu_skip;
// Work-groups that contexts made from now on start in a dimension of a dispatch; 0: as many as the device does.
extern size_t gpu_groups;
// Rows are reduced by subgroups where the device would not, and by local memory where it would. (OpenCL's texts fall
// back to local memory where the compiler has no subgroups.)
extern bool gpu_other_rows;

// sums[i] += x * w[i], and the same of their absolute values: what formulas go along.
void add_products(double x, const double* w, size_t n, double* sums);
void add_products(double x, const double* w, size_t n, double* sums, double* absolutes);
void add_products(int32_t x, const int32_t* w, size_t n, int64_t* sums);

// |got - want| <= bound for each element, in row-major order; NaN and infinities must match. One bound for all, or one
// each.
void expect_close(const Data& got, const std::vector<double>& want, const std::vector<double>& bound);
void expect_close(const Data& got, const std::vector<double>& want, double bound);
// The same bits in every element.
void expect_same_bits(const Data& got, const Data& want);

// An executor that calls tasks one after the other in a shuffled order, as any of its workers.
struct Shuffled {
  explicit Shuffled(uint32_t workers, uint32_t seed = 1);
  operator const skua_executor*() const { return &executor; }
  skua_executor executor;
  Rng rng;
  size_t tasks = 0;
};
// One that has real threads, started for each parallel_for.
struct Threaded {
  explicit Threaded(uint32_t workers);
  operator const skua_executor*() const { return &executor; }
  skua_executor executor;
};

// Counts calls of malloc and its kin on this thread between construction and count(). Always 0 under sanitizers, which
// own malloc.
struct MallocCount {
  MallocCount();
  ~MallocCount();
  size_t count() const;
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

}  // namespace skua_test
