#include "tests/support/support.h"
#include "core/op.h"
#include "dispatch/isa.h"
#include "gpu/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

namespace skua_test {

bool small() {
  static const bool value = [] {
    const char* e = std::getenv("SKUA_TEST_SMALL");
    return e && *e && *e != '0';
  }();
  return value;
}

uint32_t Rng::next() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  const uint64_t x = state ^ state >> 22;
  return uint32_t(x >> (22 + (x >> 61)));
}
float Rng::uniform(float low, float high) { return low + (high - low) * (float(next() >> 8) / 16777216.0f); }
int Rng::integer(int low, int high) { return low + int(next() % (uint32_t(high - low) + 1)); }

// ---- memory ---------------------------------------------------------------------------------------------------------
namespace {
constexpr unsigned char kCanary = 0xc5;
size_t page() {
  static const size_t size = size_t(sysconf(_SC_PAGESIZE));
  return size;
}
// An emulator that faults on the lanes a masked load leaves out (qemu with AVX2) gets room behind the operands before
// the guard page.
size_t room_behind() {
  static const size_t bytes =
      std::getenv("SKUA_TEST_ROOM") ? std::strtoul(std::getenv("SKUA_TEST_ROOM"), nullptr, 10) : 0;
  return bytes;
}
size_t pages(size_t bytes) { return (bytes + page() - 1) / page() * page(); }
}  // namespace

Guarded::Guarded(size_t floats, bool at_end) : Guarded(bytes(floats * sizeof(float), sizeof(float), at_end)) {}

Guarded Guarded::bytes(size_t size, size_t align, bool at_end, size_t skip) {
  Guarded g;
  const size_t slack = align > page() ? align : 0;
  g.size_ = size;
  g.open_size_ = pages(size + skip + (at_end ? align : 0) + room_behind()) + slack;
  if (g.open_size_ == 0) g.open_size_ = page();
  g.map_size_ = g.open_size_ + 2 * page();
  void* map = mmap(nullptr, g.map_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    std::perror("mmap");
    std::abort();
  }
  g.map_ = static_cast<unsigned char*>(map);
  g.open_ = g.map_ + page();
  if (mprotect(g.open_, g.open_size_, PROT_READ | PROT_WRITE)) std::abort();
  if (at_end)
    g.at_ = reinterpret_cast<unsigned char*>(
        reinterpret_cast<uintptr_t>(g.open_ + g.open_size_ - size - room_behind()) & ~uintptr_t(align - 1));
  else g.at_ = g.open_ + skip;
  const size_t before = std::min<size_t>(size_t(g.at_ - g.open_), 256),
               behind = std::min<size_t>(size_t(g.open_ + g.open_size_ - g.at_) - size, 256);
  std::memset(g.at_ - before, kCanary, before);
  std::memset(g.at_ + size, kCanary, behind);
  return g;
}

Guarded::Guarded(Guarded&& from) noexcept
    : map_(std::exchange(from.map_, nullptr)),
      open_(from.open_),
      at_(from.at_),
      map_size_(from.map_size_),
      open_size_(from.open_size_),
      size_(from.size_) {}
Guarded::~Guarded() {
  if (map_) munmap(map_, map_size_);
}
void Guarded::read_only() { mprotect(open_, open_size_, PROT_READ); }
bool Guarded::untouched_outside() const {
  const size_t before = std::min<size_t>(size_t(at_ - open_), 256),
               behind = std::min<size_t>(size_t(open_ + open_size_ - at_) - size_, 256);
  return std::all_of(at_ - before, at_, [](unsigned char c) { return c == kCanary; }) &&
         std::all_of(at_ + size_, at_ + size_ + behind, [](unsigned char c) { return c == kCanary; });
}

// ---- instruction sets, contexts -------------------------------------------------------------------------------------
namespace {
const std::vector<skua_kernel_info>& registry() {  // without calls
  static const std::vector<skua_kernel_info> all = [] {
    std::vector<skua_kernel_info> infos(skua_kernel_count());
    for (size_t i = 0; i < infos.size(); ++i) SKUA_EXPECT_OK(skua_kernel_at(i, &infos[i]));
    return infos;
  }();
  return all;
}
bool has_kernels(const char* isa, skua_dtype type) {
  for (const skua::IsaEntry& entry : skua::kIsas)
    // it may convert from f32, no more
    if (type == SKUA_DTYPE_F32 && entry.type != skua::Element::f32 && !std::strcmp(isa, entry.name)) return false;
  return std::any_of(registry().begin(), registry().end(),
                     [&](const skua_kernel_info& info) { return info.type == type && !std::strcmp(info.isa, isa); });
}
std::vector<skua_dtype> built_types() {
  std::vector<skua_dtype> types;
#define SKUA_TYPE(cpp, name) types.push_back(skua_dtype(skua::element_of<cpp>));
  using skua::bf16, skua::f16;
  SKUA_FOR_TYPES(SKUA_TYPE)
#undef SKUA_TYPE
  return types;
}
}  // namespace

namespace {
std::vector<const char*> usable_isas() {
  std::vector<const char*> names;
  const char *cap = std::getenv("SKUA_MAX_ISA"), *from = std::getenv("SKUA_TEST_FROM_ISA");
  for (size_t i = 0; i < skua_isa_count(); ++i) {
    skua_isa_info info;
    if (skua_isa_at(i, &info) != SKUA_STATUS_OK) break;
    if (from && !std::strcmp(from, info.name)) names.clear();
    if (info.compiled && info.detected) names.push_back(info.name);
    if (cap && !std::strcmp(cap, info.name)) break;
  }
  return names;
}
}  // namespace

bool usable(const char* isa) {
  const std::vector<const char*> names = usable_isas();
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return !std::strcmp(name, isa); });
}
std::vector<const char*> isas(skua_dtype type) {
  std::vector<const char*> names = usable_isas();
  names.erase(std::remove_if(names.begin(), names.end(), [&](const char* name) { return !has_kernels(name, type); }),
              names.end());
  return names;
}

std::vector<skua_dtype> float_types() { return built_types(); }
std::vector<skua_dtype> int8_types() {
  std::vector<skua_dtype> types;
#define SKUA_TYPE(cpp, name) types.push_back(skua_dtype(skua::element_of<cpp>));
  SKUA_FOR_INT8(SKUA_TYPE)
#undef SKUA_TYPE
  return types;
}
std::vector<skua_dtype> half_types() {
  std::vector<skua_dtype> types = built_types();
  types.erase(types.begin());
  return types;
}

float rounded(skua_dtype type, float value) {
  skua::f16 h;
  skua::bf16 b;
  if (type == SKUA_DTYPE_F16) return skua::narrow(value, h), skua::widen(h);
  if (type == SKUA_DTYPE_BF16) return skua::narrow(value, b), skua::widen(b);
  int8_t s;
  uint8_t u;
  if (type == SKUA_DTYPE_S8) return skua::narrow(value, s), skua::widen(s);
  if (type == SKUA_DTYPE_U8) return skua::narrow(value, u), skua::widen(u);
  return value;
}

double half_ulp(skua_dtype type, double value) {
  if (type == SKUA_DTYPE_F32 || std::isnan(value) || std::isinf(value)) return 0;
  int exponent;
  std::frexp(value, &exponent);
  if (type == SKUA_DTYPE_F16) return std::ldexp(1.0, std::max(exponent, -13) - 12);
  return std::ldexp(1.0, std::max(exponent, -125) - 9);
}

std::vector<skua_kernel_info> kernels(const std::string& prefix) {
  std::vector<skua_kernel_info> found;
  for (const skua_kernel_info& info : registry())
    if (!std::strncmp(info.name, prefix.c_str(), prefix.size()) && info.usable && usable(info.isa))
      found.push_back(info);
  return found;
}

namespace {
thread_local int running;  // this thread is inside skua_plan_run()
thread_local size_t allocated_while_running;

struct Block {
  Guarded memory;
  size_t size;
};

void* guarded_alloc(void* ctx, size_t size, size_t align) {
  auto* context = static_cast<Context*>(ctx);
  if (running) ++allocated_while_running;
  EXPECT_GT(size, 0u);
  EXPECT_TRUE(align && (align & (align - 1)) == 0 && align <= size_t(2) << 20) << "alignment " << align;
  const size_t header = std::max(align, sizeof(Block*));  // ends with the address of the book's entry
  auto* block = new Block{Guarded::bytes(size + header, header), size};
  unsigned char* data = static_cast<unsigned char*>(block->memory.memory()) + header;
  std::memset(data, 0xff, size);
  std::memcpy(data - sizeof block, &block, sizeof block);
  __atomic_add_fetch(&context->live, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&context->taken, 1, __ATOMIC_RELAXED);
  return data;
}

void guarded_free(void* ctx, void* memory, size_t size) {
  auto* context = static_cast<Context*>(ctx);
  if (running) ++allocated_while_running;
  Block* block;
  std::memcpy(&block, static_cast<unsigned char*>(memory) - sizeof block, sizeof block);
  EXPECT_EQ(size, block->size) << "free with another size than alloc's";
  EXPECT_TRUE(block->memory.untouched_outside()) << "bytes behind a block of " << size << " were written";
  delete block;
  __atomic_sub_fetch(&context->live, 1, __ATOMIC_RELAXED);
}
}  // namespace

std::vector<skua_device_info> gpu_devices() {
  std::vector<skua_device_info> all(32), gpus;
  all.resize(std::min(skua_device_list(all.data(), all.size()), all.size()));
  [[maybe_unused]] bool has[3] = {};  // read where a backend is built
  for (const skua_device_info& info : all) {
    has[info.device.api] = true;
    if (info.device.api != SKUA_DEVICE_API_CPU) gpus.push_back(info);
  }
  [[maybe_unused]] static const bool told = [&] {  // once a program: where its GPU tests run
    std::string names;
    for (const skua_device_info& d : gpus)
      names += (names.empty() ? "" : "; ") +
               std::string(d.device.api == SKUA_DEVICE_API_OPENCL ? "OpenCL " : "Vulkan ") + d.name;
    std::fprintf(stderr, "GPU devices: %s%s\n", names.empty() ? "none" : names.c_str(),
                 gpus.empty() || has[SKUA_DEVICE_API_VULKAN] ? "" : "; no Vulkan");
    return true;
  }();
  const char* required = std::getenv("SKUA_TEST_GPU");
  if (required && !std::strcmp(required, "required")) {
#ifdef SKUA_GPU_OPENCL
    EXPECT_TRUE(has[SKUA_DEVICE_API_OPENCL]) << "SKUA_TEST_GPU=required, and there is no OpenCL device";
#endif
#ifdef SKUA_GPU_VULKAN
    EXPECT_TRUE(has[SKUA_DEVICE_API_VULKAN]) << "SKUA_TEST_GPU=required, and there is no Vulkan device";
#endif
  }
  return gpus;
}

namespace {
// Validation layers speak to the context's log.
void fail_on_warning(void*, skua_log_level level, const char* text) {
  if (level == SKUA_LOG_WARNING) ADD_FAILURE() << "the driver or a validation layer warns: " << text;
}
}  // namespace

Context::Context(const skua_device_info& device, const char* kernel_filter) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.log = fail_on_warning;
  options.allocator = {this, guarded_alloc, guarded_free};
  options.device = device.device;
  options.kernel_filter = kernel_filter;
  SKUA_EXPECT_OK(skua_context_create(&options, &context));
  if (context && gpu_other_rows) {
    context->gpu->about.subgroup_sums = !context->gpu->about.subgroup_sums;
    if (!context->gpu->about.subgroup) context->gpu->about.subgroup = 8;
  }
  if (context && gpu_groups)
    for (uint32_t& count : context->gpu->about.group_count) count = uint32_t(gpu_groups);
}
Context::Context(const skua_opencl_objects& given) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.allocator = {this, guarded_alloc, guarded_free};
  options.device.api = SKUA_DEVICE_API_OPENCL;
  options.opencl = &given;
  SKUA_EXPECT_OK(skua_context_create(&options, &context));
}
Context::Context(const skua_vulkan_objects& given) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.allocator = {this, guarded_alloc, guarded_free};
  options.device.api = SKUA_DEVICE_API_VULKAN;
  options.vulkan = &given;
  SKUA_EXPECT_OK(skua_context_create(&options, &context));
}
Context::Context(const char* max_isa, const char* kernel_filter) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.allocator = {this, guarded_alloc, guarded_free};
  options.max_isa = max_isa;
  options.kernel_filter = kernel_filter;
  SKUA_EXPECT_OK(skua_context_create(&options, &context));
}
Context::~Context() {
  skua_context_destroy(context);
  EXPECT_EQ(live, 0u) << "blocks were not returned to the allocator";
}

// ---- tensors --------------------------------------------------------------------------------------------------------
skua_tensor shape(const std::vector<size_t>& extents, skua_dtype type) {
  skua_tensor t = {};
  t.type = type;
  t.rank = uint32_t(extents.size());
  std::copy(extents.begin(), extents.end(), t.shape);
  return t;
}
skua_tensor shape(std::initializer_list<size_t> extents, skua_dtype type) {
  return shape(std::vector<size_t>(extents), type);
}

skua_tensor with_holes(const skua_tensor& t, const std::vector<size_t>& more) {
  skua_tensor s = t;
  size_t step = 1;
  for (uint32_t d = t.rank; d-- > 0;) {
    s.stride[d] = step;
    step *= (t.shape[d] ? t.shape[d] : 1) + (d < more.size() ? more[d] : 0);
  }
  return s;
}

skua_tensor resolved(const skua_tensor& t) {
  const bool given = std::any_of(t.stride, t.stride + t.rank, [](size_t s) { return s != 0; });
  return given ? t : with_holes(t, {});
}

size_t elements(const skua_tensor& t) {
  return std::accumulate(t.shape, t.shape + t.rank, size_t(1), [](size_t a, size_t b) { return a * b; });
}

size_t extent(const skua_tensor& t) {
  if (!elements(t)) return 0;
  const skua_tensor r = resolved(t);
  size_t last = 1;
  for (uint32_t d = 0; d < r.rank; ++d) last += (r.shape[d] - 1) * r.stride[d];
  return last;
}

size_t offset(const skua_tensor& t, size_t flat) {
  size_t at = 0;
  for (uint32_t d = t.rank; d-- > 0; flat /= t.shape[d]) at += flat % t.shape[d] * t.stride[d];
  return at;
}

namespace {
// visit(flat, offset) for each element in row-major order; strides filled in.
template <class Visit> void each_element(const skua_tensor& t, Visit visit) {
  const size_t n = elements(t), line = t.rank ? t.shape[t.rank - 1] : 1, step = t.rank ? t.stride[t.rank - 1] : 0;
  for (size_t flat = 0; flat < n;)
    for (size_t i = 0, at = offset(t, flat); i < line; ++i, at += step) visit(flat++, at);
}
bool is_dense(const skua_tensor& t) {
  const skua_tensor dense = with_holes(t, {});
  return std::equal(t.stride, t.stride + t.rank, dense.stride);
}

template <class Value> Data fill(const skua_tensor& t, Value value) {
  Data data;
  data.t = resolved(t);
  data.v.assign(extent(t), std::numeric_limits<float>::quiet_NaN());
  each_element(data.t, [&](size_t, size_t at) { data.v[at] = value(); });
  return data;
}
}  // namespace

Data make(const skua_tensor& t, Rng& rng, float low, float high) {
  return fill(t, [&] { return rounded(t.type, rng.uniform(low, high)); });
}
Data make(std::initializer_list<size_t> extents, Rng& rng, float low, float high) {
  return make(shape(extents), rng, low, high);
}
Data make_bytes(const skua_tensor& t, Rng& rng) {
  const int low = t.type == SKUA_DTYPE_S8 ? -128 : 0;
  return fill(t,
              [&] { return float(rng.next() % 8 ? rng.integer(low, low + 255) : low + (rng.next() & 1 ? 255 : 0)); });
}
Data make_integers(const skua_tensor& t, Rng& rng, int low, int high) {
  return fill(t, [&] { return float(rng.integer(low, high)); });
}

std::vector<float> dense(const Data& data) {
  const skua_tensor t = resolved(data.t);
  std::vector<float> values(elements(t));
  each_element(t, [&](size_t i, size_t at) { values[i] = data.v[at]; });
  return values;
}
std::vector<double> dense_double(const Data& data) {
  const std::vector<float> values = dense(data);
  return {values.begin(), values.end()};
}

// ---- executors ------------------------------------------------------------------------------------------------------
Shuffled::Shuffled(uint32_t workers, uint32_t seed) : rng(seed) {
  executor = {this, workers, [](void* ctx, size_t count, skua_task task, void* arg) {
                auto& self = *static_cast<Shuffled*>(ctx);
                self.tasks += count;
                // A permutation without memory: i -> (i * step + start) mod count, with a step that has no factor in
                // common with count.
                size_t step = count > 1 ? 1 + self.rng.next() % (count - 1) : 1;
                while (std::gcd(step, count) != 1) ++step;
                size_t i = count ? self.rng.next() % count : 0;
                for (size_t done = 0; done < count; ++done, i = (i + step) % count)
                  task(arg, i, self.rng.next() % self.executor.concurrency);
              }};
}

Threaded::Threaded(uint32_t workers) {
  executor = {this, workers, [](void* ctx, size_t count, skua_task task, void* arg) {
                const uint32_t workers = static_cast<Threaded*>(ctx)->executor.concurrency;
                std::atomic<size_t> next{0};
                std::vector<std::thread> threads;
                for (uint32_t w = 0; w < workers; ++w)
                  threads.emplace_back([&, w] {
                    for (size_t i; (i = next++) < count;) task(arg, i, w);
                  });
                for (std::thread& t : threads) t.join();
              }};
}

size_t gpu_skip = 0;
size_t gpu_groups = 0;
bool gpu_other_rows = false;

// ---- run ------------------------------------------------------------------------------------------------------------
namespace {

constexpr uint32_t kPoison = 0x7fa57fa5;  // a NaN; each half is one of f16 (7fa5, and of bf16 too)

size_t element_size(const skua_tensor& t) { return skua_dtype_bits(t.type) / 8; }

// flush against a page behind, before, or neither and aligned to the element only
enum class Place { end, begin, odd };

Guarded place(const skua_tensor& t, Place where) {
  const size_t bytes = extent(t) * element_size(t);
  return Guarded::bytes(bytes, element_size(t), where == Place::end, where == Place::odd ? element_size(t) : 0);
}

// One value in memory.
void write(skua_dtype type, float value, unsigned char* to) {
  skua::f16 h;
  skua::bf16 b;
  const int32_t integer = type == SKUA_DTYPE_S32 ? int32_t(value) : 0;
  if (type == SKUA_DTYPE_S8) *to = static_cast<unsigned char>(static_cast<signed char>(value));
  else if (type == SKUA_DTYPE_U8) *to = static_cast<unsigned char>(value);
  else if (type == SKUA_DTYPE_F16) skua::narrow(value, h), std::memcpy(to, &h, 2);
  else if (type == SKUA_DTYPE_BF16) skua::narrow(value, b), std::memcpy(to, &b, 2);
  else if (type == SKUA_DTYPE_S32) std::memcpy(to, &integer, 4);
  else std::memcpy(to, &value, 4);
}
float read(skua_dtype type, const unsigned char* from) {
  skua::f16 h;
  skua::bf16 b;
  int32_t integer;
  float value;
  if (type == SKUA_DTYPE_S8) return float(static_cast<signed char>(*from));
  if (type == SKUA_DTYPE_U8) return float(*from);
  if (type == SKUA_DTYPE_F16) return std::memcpy(&h, from, 2), skua::widen(h);
  if (type == SKUA_DTYPE_BF16) return std::memcpy(&b, from, 2), skua::widen(b);
  if (type == SKUA_DTYPE_S32) return std::memcpy(&integer, from, 4), float(integer);
  return std::memcpy(&value, from, 4), value;
}

void poison(const skua_tensor& t, Guarded& memory) {
  auto* to = static_cast<unsigned char*>(memory.memory());
  const size_t size = element_size(t);
  for (size_t i = 0, n = extent(t); i < n; ++i) std::memcpy(to + i * size, &kPoison, size);
}

void put(const Data& data, Guarded& to) {
  const skua_tensor t = resolved(data.t);
  if (!is_dense(t)) poison(t, to);
  auto* const bytes = static_cast<unsigned char*>(to.memory());
  const size_t size = element_size(t);
  each_element(t, [&](size_t, size_t at) { write(t.type, data.v[at], bytes + at * size); });
}

Data get(const skua_tensor& shape, Guarded& from) {
  Data data;
  data.t = resolved(shape);
  data.v.assign(extent(shape), std::numeric_limits<float>::quiet_NaN());
  const auto* bytes = static_cast<const unsigned char*>(from.memory());
  const size_t size = element_size(shape);
  each_element(data.t, [&](size_t, size_t at) { data.v[at] = read(shape.type, bytes + at * size); });
  size_t spoiled = 0;
  if (!is_dense(data.t)) {
    std::vector<bool> element(data.v.size());
    each_element(data.t, [&](size_t, size_t at) { element[at] = true; });
    for (size_t i = 0; i < element.size(); ++i) spoiled += !element[i] && std::memcmp(bytes + i * size, &kPoison, size);
  }
  EXPECT_EQ(spoiled, 0u) << "values between the elements of an output were written";
  EXPECT_TRUE(from.untouched_outside()) << "bytes around an output were written";
  return data;
}

// Of two results of one plan; what get() holds between the elements is the same.
bool same_bits(const Data& a, const Data& b) {
  return a.v.size() == b.v.size() && (a.v.empty() || !std::memcmp(a.v.data(), b.v.data(), a.v.size() * sizeof(float)));
}

struct Plan {
  ~Plan() { skua_plan_destroy(plan); }
  skua_plan* plan = nullptr;
};

// One run. in_place: the input whose memory output 0 takes, or -1.
std::vector<Data> run_once(const skua_plan* plan, const std::vector<Data>& inputs,
                           const std::vector<skua_tensor>& outputs, const std::vector<Data>& before, int in_place,
                           Place where, const skua_executor* executor) {
  std::vector<Guarded> in, out;
  std::vector<skua_buffer> in_buffers, out_buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(place(inputs[i].t, where));
    put(inputs[i], in.back());
    if (int(i) != in_place) in.back().read_only();
    in_buffers.push_back(skua_host_buffer(in.back().memory()));
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    out.push_back(place(outputs[o], where));
    if (o < before.size()) {
      put(before[o], out.back());
    } else {
      poison(outputs[o], out.back());
    }
    out_buffers.push_back(o == 0 && in_place >= 0 ? in_buffers[size_t(in_place)]
                                                  : skua_host_buffer(out.back().memory()));
  }
  const size_t size = skua_plan_workspace(plan, executor ? executor->concurrency : 1);
  Guarded workspace = Guarded::bytes(size, SKUA_WORKSPACE_ALIGNMENT, where != Place::begin);
  std::memset(workspace.memory(), 0xff, size);
  const size_t allocated = allocated_while_running;
  {
    MallocCount mallocs;
    ++running;
    const skua_status status = skua_plan_run(plan, in_buffers.data(), in_buffers.size(), out_buffers.data(),
                                             out_buffers.size(), size ? workspace.memory() : nullptr, size, executor);
    --running;
    EXPECT_EQ(mallocs.count(), 0u) << "malloc was called inside a run";
    EXPECT_EQ(status, SKUA_STATUS_OK) << skua_error_text();
  }
  EXPECT_EQ(allocated_while_running, allocated) << "the context's allocator was called inside a run";
  EXPECT_TRUE(workspace.untouched_outside()) << "bytes around the workspace were written";
  std::vector<Data> results;
  for (size_t o = 0; o < outputs.size(); ++o)
    results.push_back(get(outputs[o], o == 0 && in_place >= 0 ? in[size_t(in_place)] : out[o]));
  return results;
}

// A tensor in device memory, with bytes before and behind that must not change.
struct OnDevice {
  static constexpr size_t kAround = 256;
  OnDevice(skua_context* context, const skua_tensor& t, Guarded& host)
      : bytes(extent(t) * element_size(t)), skip(kAround + gpu_skip * element_size(t)) {
    image.assign(skip + bytes + kAround, kCanary);
    if (bytes) std::memcpy(image.data() + skip, host.memory(), bytes);
    SKUA_EXPECT_OK(skua_device_buffer_create(context, image.size(), &buffer));
    if (buffer) SKUA_EXPECT_OK(skua_device_buffer_write(buffer, 0, image.data(), image.size()));
  }
  OnDevice(OnDevice&& from) noexcept
      : image(std::move(from.image)), buffer(std::exchange(from.buffer, nullptr)), bytes(from.bytes), skip(from.skip) {}
  ~OnDevice() { skua_device_buffer_destroy(buffer); }
  skua_buffer at() const { return {nullptr, buffer, skip}; }
  void read(void* to, bool was_written) {
    std::vector<unsigned char> now(image.size());
    if (buffer) SKUA_EXPECT_OK(skua_device_buffer_read(buffer, 0, now.data(), now.size()));
    EXPECT_TRUE(!std::memcmp(now.data(), image.data(), skip) &&
                !std::memcmp(now.data() + skip + bytes, image.data() + skip + bytes, kAround))
        << "bytes around a tensor were written";
    EXPECT_TRUE(was_written || now == image) << "an input was written";
    if (to && bytes) std::memcpy(to, now.data() + skip, bytes);
  }
  std::vector<unsigned char> image;
  skua_device_buffer* buffer = nullptr;
  size_t bytes, skip;
};

std::vector<Data> run_on_gpu(const skua_plan* plan, const std::vector<Data>& inputs,
                             const std::vector<skua_tensor>& outputs, const std::vector<Data>& before, int in_place) {
  auto* const context = const_cast<skua_context*>(plan->op->ctx);
  std::vector<Guarded> out;
  std::vector<OnDevice> in_memory, out_memory;
  std::vector<skua_buffer> in_buffers, out_buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Guarded host = place(inputs[i].t, Place::end);
    put(inputs[i], host);
    in_memory.emplace_back(context, inputs[i].t, host);
    in_buffers.push_back(in_memory.back().at());
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    out.push_back(place(outputs[o], Place::end));
    if (o < before.size()) put(before[o], out.back());
    else poison(outputs[o], out.back());
    out_memory.emplace_back(context, outputs[o], out.back());
    out_buffers.push_back(o == 0 && in_place >= 0 ? in_buffers[size_t(in_place)] : out_memory.back().at());
  }
  skua_device_buffer* space = nullptr;
  if (const size_t size = skua_plan_workspace(plan, 1)) {
    SKUA_EXPECT_OK(skua_device_buffer_create(context, size, &space));
    const std::vector<unsigned char> ones(size, 0xff);
    if (space) SKUA_EXPECT_OK(skua_device_buffer_write(space, 0, ones.data(), size));
  }
  const skua_buffer workspace = {nullptr, space, 0};
  skua_stream* stream = nullptr;
  SKUA_EXPECT_OK(skua_stream_create(context, &stream));
  if (stream) {
    SKUA_EXPECT_OK(skua_plan_enqueue(plan, in_buffers.data(), in_buffers.size(), out_buffers.data(), out_buffers.size(),
                                     space ? &workspace : nullptr, stream));
    SKUA_EXPECT_OK(skua_stream_wait(stream));
  }
  skua_stream_destroy(stream);
  skua_device_buffer_destroy(space);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (int(i) != in_place) in_memory[i].read(nullptr, false);
  std::vector<Data> results;
  for (size_t o = 0; o < outputs.size(); ++o) {
    (o == 0 && in_place >= 0 ? in_memory[size_t(in_place)] : out_memory[o]).read(out[o].memory(), true);
    results.push_back(get(outputs[o], out[o]));
  }
  return results;
}

std::vector<Data> run_all(const skua_op* op, const std::vector<Data>& inputs, const std::vector<skua_tensor>& wanted,
                          const std::vector<Data>& before, int in_place) {
  if (!op) {
    ADD_FAILURE() << "run: op is NULL";
    return {};
  }
  std::vector<skua_tensor> shapes;
  for (const Data& d : inputs) shapes.push_back(d.t);
  Plan plan;
  const skua_status status = skua_op_plan(op, shapes.data(), shapes.size(), wanted.empty() ? nullptr : wanted.data(),
                                          wanted.size(), &plan.plan);
  EXPECT_EQ(status, SKUA_STATUS_OK) << skua_error_text();
  if (!plan.plan) return {};
  std::vector<skua_tensor> outputs(skua_op_output_count(op));
  SKUA_EXPECT_OK(skua_plan_outputs(plan.plan, outputs.data(), outputs.size()));

  if (op->ctx->gpu) {
    std::vector<Data> first = run_on_gpu(plan.plan, inputs, outputs, before, in_place);
    const std::vector<Data> second = run_on_gpu(plan.plan, inputs, outputs, before, in_place);
    for (size_t o = 0; o < first.size(); ++o)
      EXPECT_TRUE(same_bits(first[o], second[o]))
          << "output " << o << ": a second run gives other bits; kernel " << skua_plan_kernel(plan.plan);
    return first;
  }

  struct Case {
    Place where;
    uint32_t workers;  // 0: no executor
  };
  const std::vector<Case> all = {
      {Place::end, 0}, {Place::begin, 1}, {Place::odd, 2}, {Place::end, 3}, {Place::begin, 7}};
  const std::vector<Case> few = {{Place::end, 0}, {Place::begin, 7}, {Place::odd, 2}};
  std::vector<Data> first;
  for (const Case& c : small() ? few : all) {
    Shuffled executor(c.workers ? c.workers : 1, c.workers);
    std::vector<Data> got =
        run_once(plan.plan, inputs, outputs, before, in_place, c.where, c.workers ? &executor.executor : nullptr);
    if (first.empty()) first = std::move(got);
    else
      for (size_t o = 0; o < got.size(); ++o)
        EXPECT_TRUE(same_bits(first[o], got[o]))
            << "output " << o << ": " << c.workers << " workers give other bits than one; kernel "
            << skua_plan_kernel(plan.plan);
  }
  return first;
}

}  // namespace

std::vector<Data> run(const skua_op* op, const std::vector<Data>& inputs, const std::vector<skua_tensor>& outputs,
                      const std::vector<Data>& before) {
  return run_all(op, inputs, outputs, before, -1);
}
std::vector<Data> run_in_place(const skua_op* op, const std::vector<Data>& inputs, size_t which) {
  return run_all(op, inputs, {resolved(inputs[which].t)}, {}, int(which));
}

namespace {
// Runs each task over an output of one byte, and over one of another: what differs from both is what the task wrote.
struct Apart {
  skua_executor executor;
  unsigned char* output;
  std::vector<unsigned char> writers;
  size_t tasks = 0;
};
void run_apart(void* ctx, size_t count, skua_task task, void* arg) {
  auto& self = *static_cast<Apart*>(ctx);
  std::vector<unsigned char> wrote(self.writers.size());
  for (size_t i = 0; i < count; ++i, ++self.tasks) {
    std::fill(wrote.begin(), wrote.end(), 0);
    for (const int poison : {0x5a, 0xa5}) {
      std::memset(self.output, poison, wrote.size());
      task(arg, i, uint32_t(i) % self.executor.concurrency);
      for (size_t b = 0; b < wrote.size(); ++b) wrote[b] |= self.output[b] != poison;
    }
    for (size_t b = 0; b < wrote.size(); ++b)
      self.writers[b] = static_cast<unsigned char>(std::min(2, self.writers[b] + wrote[b]));
  }
}
}  // namespace

void expect_tasks_apart(const skua_op* op, const std::vector<Data>& inputs, uint32_t workers) {
  std::vector<skua_tensor> shapes;
  for (const Data& d : inputs) shapes.push_back(d.t);
  Plan plan;
  SKUA_EXPECT_OK(skua_op_plan(op, shapes.data(), shapes.size(), nullptr, 0, &plan.plan));
  if (!plan.plan) return;
  skua_tensor y;
  SKUA_EXPECT_OK(skua_plan_outputs(plan.plan, &y, 1));
  std::vector<Guarded> in;
  std::vector<skua_buffer> buffers;
  for (const Data& d : inputs) {
    in.push_back(place(d.t, Place::end));
    put(d, in.back());
    buffers.push_back(skua_host_buffer(in.back().memory()));
  }
  Guarded out = place(y, Place::end),
          workspace = Guarded::bytes(skua_plan_workspace(plan.plan, workers), SKUA_WORKSPACE_ALIGNMENT, true);
  Apart apart = {{nullptr, workers, run_apart},
                 static_cast<unsigned char*>(out.memory()),
                 std::vector<unsigned char>(extent(y) * element_size(y))};
  apart.executor.ctx = &apart;
  const skua_buffer output = skua_host_buffer(out.memory());
  const size_t size = skua_plan_workspace(plan.plan, workers);
  SKUA_EXPECT_OK(skua_plan_run(plan.plan, buffers.data(), buffers.size(), &output, 1,
                               size ? workspace.memory() : nullptr, size, &apart.executor));
  if (!apart.tasks) return;  // done by the caller
  const auto twice = std::find(apart.writers.begin(), apart.writers.end(), 2);
  EXPECT_EQ(twice, apart.writers.end()) << "two of " << apart.tasks << " tasks write byte "
                                        << twice - apart.writers.begin() << "; kernel " << skua_plan_kernel(plan.plan);
  EXPECT_EQ(std::count(apart.writers.begin(), apart.writers.end(), 0), 0)
      << "bytes that no task writes; kernel " << skua_plan_kernel(plan.plan);
}

// ---- comparison -----------------------------------------------------------------------------------------------------
namespace {
std::string index_text(const skua_tensor& t, size_t flat) {
  std::string text;
  for (uint32_t d = t.rank; d-- > 0; flat /= t.shape[d])
    text = std::to_string(flat % t.shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}
}  // namespace

void expect_close(const Data& got, const std::vector<double>& want, const std::vector<double>& bound) {
  const skua_tensor t = resolved(got.t);
  ASSERT_EQ(elements(t), want.size());
  ASSERT_TRUE(bound.size() == want.size() || bound.size() == 1);
  size_t wrong = 0;
  each_element(t, [&](size_t i, size_t at) {
    const double g = double(got.v[at]), w = want[i], b = bound[bound.size() == 1 ? 0 : i];
    if (std::fabs(g - w) <= b && !std::isinf(g)) return;  // neither is NaN
    const double limit = double(rounded(got.t.type, float(w)));
    const bool good = std::isnan(w)       ? std::isnan(g)
                      : std::isinf(limit) ? g == limit || std::fabs(g - w) <= b
                                          : std::fabs(g - w) <= b;
    if (!good && ++wrong <= 4)
      ADD_FAILURE() << "element " << index_text(t, i) << " is " << g << ", must be " << w << " within " << b
                    << "; off by " << g - w;
  });
  EXPECT_EQ(wrong, 0u) << "of " << want.size() << " elements";
}
void expect_close(const Data& got, const std::vector<double>& want, double bound) {
  expect_close(got, want, std::vector<double>{bound});
}

void expect_same_bits(const Data& got, const Data& want) {
  ASSERT_EQ(elements(got.t), elements(want.t));
  const std::vector<float> a = dense(got), b = dense(want);
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], 4) && ++wrong <= 4)
      ADD_FAILURE() << "element " << index_text(got.t, i) << " is " << a[i] << ", must have the bits of " << b[i];
  EXPECT_EQ(wrong, 0u) << "of " << a.size() << " elements";
}

}  // namespace skua_test
