// The file of compiled programs: what was compiled is found again, and whatever is wrong with the file is logged,
// passed over and compiled anew.
#include <sys/stat.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "gpu/cache.h"
#include "tests/support/support.h"

using namespace skua_test;

namespace {

using Bytes = std::vector<unsigned char>;

Bytes read_file(const std::string& path) {
  Bytes bytes;
  if (FILE* f = std::fopen(path.c_str(), "rb")) {
    unsigned char part[4096];
    while (const size_t n = std::fread(part, 1, sizeof part, f)) bytes.insert(bytes.end(), part, part + n);
    std::fclose(f);
  }
  return bytes;
}
void write_file(const std::string& path, const Bytes& bytes) {
  FILE* f = std::fopen(path.c_str(), "wb");
  ASSERT_TRUE(f);
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), f), bytes.size());
  std::fclose(f);
}

// A context with a cache, which squares on the device.
struct Cached {
  Cached(const skua_device_info& device, const std::string& path) {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.device = device.device;
    o.program_cache = path.c_str();
    o.log = [](void* to, skua_log_level level, const char* text) {
      static_cast<Cached*>(to)->log += std::string(level == SKUA_LOG_WARNING ? "warning: " : "") + text + "\n";
    };
    o.log_ctx = this;
    SKUA_EXPECT_OK(skua_context_create(&o, &context));
  }
  ~Cached() { skua_context_destroy(context); }
  void work(float slope) {
    skua_unary_desc d = SKUA_UNARY_DESC_INIT;
    d.kind = SKUA_UNARY_LEAKY_RELU;
    d.a = slope;
    Op op;
    SKUA_EXPECT_OK(skua_unary_create(context, &d, &op));
    Data x;
    x.t = shape({64});
    for (int i = 0; i < 64; ++i) x.v.push_back(float(i - 32));
    const Data y = run(op, {x})[0];
    for (int i = 0; i < 64; ++i) EXPECT_EQ(y.v[size_t(i)], i < 32 ? slope * x.v[size_t(i)] : x.v[size_t(i)]);
  }
  bool said(const char* part) const { return log.find(part) != std::string::npos; }
  skua_context* context = nullptr;
  std::string log;
};

std::string path_for(const skua_device_info& device, const char* what) {
  return testing::TempDir() + "skua_programs_" + std::to_string(device.device.api) + "_" + what + "_" +
         std::to_string(getpid());
}

TEST(GpuCache, ColdAndWarm) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    const std::string path = path_for(device, "warm");
    std::remove(path.c_str());
    {
      Cached cold(device, path);
      cold.work(0.25f);
      EXPECT_TRUE(cold.said("does not exist yet")) << cold.log;
      SKUA_EXPECT_OK(skua_context_save_programs(cold.context));
      EXPECT_FALSE(cold.said("warning")) << cold.log;
    }
    const Bytes first = read_file(path);
    EXPECT_GT(first.size(), 40u);
    {
      Cached warm(device, path);
      warm.work(0.5f);
      EXPECT_TRUE(warm.said("read 1 entry")) << warm.log;
      EXPECT_FALSE(warm.said("warning")) << warm.log;
    }
    EXPECT_EQ(read_file(path), first) << "nothing was to be added";
    std::remove(path.c_str());
  }
  skua_context* cpu = nullptr;
  SKUA_EXPECT_OK(skua_context_create(nullptr, &cpu));
  EXPECT_EQ(skua_context_save_programs(cpu), SKUA_STATUS_UNSUPPORTED);
  EXPECT_EQ(skua_context_save_programs(nullptr), SKUA_STATUS_INVALID_ARGUMENT);
  skua_context_destroy(cpu);
}

TEST(GpuCache, DamagedAndForeign) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    const std::string path = path_for(device, "damaged");
    std::remove(path.c_str());
    { Cached(device, path).work(0.25f); }
    const Bytes good = read_file(path);
    ASSERT_GT(good.size(), 90u);
    struct Case {
      std::string what;
      Bytes bytes;
    };
    std::vector<Case> cases = {{"is empty", {}}, {"garbage", Bytes(1000, 0xa5)}};
    for (const size_t keep : {size_t(1), size_t(39), size_t(40), size_t(64), good.size() / 2, good.size() - 1})
      cases.push_back({"cut to " + std::to_string(keep), Bytes(good.begin(), good.begin() + long(keep))});
    for (const size_t at : {size_t(0), size_t(8), size_t(12), size_t(16), size_t(24), size_t(32), size_t(40),
                            size_t(56), size_t(70), good.size() / 2, good.size() - 9}) {
      Case c = {"byte " + std::to_string(at) + " differs", good};
      c.bytes[at] ^= 0x10;
      cases.push_back(c);
    }
    Case longer = {"longer", good};
    longer.bytes.push_back(0);
    cases.push_back(longer);
    for (const Case& c : cases) {
      SCOPED_TRACE(c.what);
      write_file(path, c.bytes);
      {
        Cached context(device, path);
        EXPECT_TRUE(context.said("warning") && context.said("ignored")) << context.log;
        if (&c == &cases[2] || &c == &cases.back()) context.work(0.25f);
      }
    }
    // The last of them compiled, and made the file whole again.
    Cached again(device, path);
    EXPECT_TRUE(again.said("read 1 entry")) << again.log;
    std::remove(path.c_str());
    // Where no file can be written: a log entry, and a status only for who asks.
    Cached nowhere(device, "/nowhere/programs");
    nowhere.work(0.25f);
    EXPECT_EQ(skua_context_save_programs(nowhere.context), SKUA_STATUS_IO_ERROR);
    // What is no file stays what it is.
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    {
      Cached pipe(device, path);
      pipe.work(0.25f);
      EXPECT_EQ(skua_context_save_programs(pipe.context), SKUA_STATUS_IO_ERROR);
    }
    struct stat about;
    ASSERT_EQ(stat(path.c_str(), &about), 0);
    EXPECT_TRUE(S_ISFIFO(about.st_mode));
    std::remove(path.c_str());
  }
}

// Whatever a driver compiles into a program makes another key; where the texts lie does not.
TEST(GpuCache, Keys) {
  using namespace skua::gpu;
  const uint32_t words[] = {1, 2, 3}, other_words[] = {1, 2, 4};
  KernelText text = {};
  text.name = "t";
  text.source = "kernel void t() {}";
  text.options = "-DV=1";
  text.spirv = words;
  text.spirv_bytes = sizeof words;
  for (const bool spirv : {false, true}) {
    SCOPED_TRACE(spirv);
    const auto key = [&](const KernelText& t, uint16_t local, int32_t constant, const char* prelude) {
      ProgramKey k = {&t, {1, 1, local}, {}};
      k.constants[kMaxConstants - 1] = constant;
      return cache_key(k, spirv, prelude);
    };
    const CacheKey first = key(text, 1, 0, "#define A 1\n");
    const auto same = [&](CacheKey k) { return k.a == first.a && k.b == first.b; };
    const std::string source = text.source, options = text.options, prelude = "#define A 1\n";
    KernelText copy = text;
    copy.source = source.c_str();
    copy.options = options.c_str();
    EXPECT_TRUE(same(key(copy, 1, 0, prelude.c_str())));
    EXPECT_FALSE(same(key(text, 2, 0, prelude.c_str()))) << "work-group";
    EXPECT_FALSE(same(key(text, 1, 1, prelude.c_str()))) << "constant";
    copy.options = "-DV=4";
    EXPECT_FALSE(same(key(copy, 1, 0, prelude.c_str()))) << "options";
    copy = text;
    copy.source = "kernel void u() {}";
    copy.spirv = other_words;
    EXPECT_FALSE(same(key(copy, 1, 0, prelude.c_str()))) << "text";
    EXPECT_EQ(same(key(text, 1, 0, "#define A 2\n")), spirv) << "prelude: SPIR-V holds its own";
    const ProgramKey k = {&text, {1, 1, 1}, {}};
    const CacheKey with_ours = cache_key(k, spirv), as_told = cache_key(k, spirv, kernel_prelude);
    EXPECT_TRUE(with_ours.a == as_told.a && with_ours.b == as_told.b);
  }
}

struct Writer {
  skua_device_info device;
  std::string path;
  int failures;
};

// Several contexts write one file while others read it: nobody ever sees half of it.
TEST(GpuCache, Concurrent) {
  SKUA_NEED_GPU(devices);
  for (const skua_device_info& device : devices) {
    SCOPED_TRACE(device.name);
    Writer writer = {device, path_for(device, "concurrent"), 0};
    std::remove(writer.path.c_str());
    pthread_t threads[3];
    for (pthread_t& t : threads)
      pthread_create(&t, nullptr, [](void* arg) -> void* {
        auto* w = static_cast<Writer*>(arg);
        for (int i = 0; i < 4; ++i) {
          Cached c(w->device, w->path);
          skua_unary_desc d = SKUA_UNARY_DESC_INIT;
          d.kind = skua_unary_kind(SKUA_UNARY_RELU + i % 2);
          const skua_tensor t = skua_tensor_1d(SKUA_DTYPE_F32, 64);
          skua_op* op = nullptr;
          skua_plan* plan = nullptr;
          const bool ok = skua_unary_create(c.context, &d, &op) == SKUA_STATUS_OK &&
                          skua_op_plan(op, &t, 1, nullptr, 0, &plan) == SKUA_STATUS_OK &&
                          skua_context_save_programs(c.context) == SKUA_STATUS_OK;
          if (!ok || c.said("warning")) __atomic_fetch_add(&w->failures, 1, __ATOMIC_RELAXED);
          skua_plan_destroy(plan);
          skua_op_destroy(op);
        }
        return nullptr;
      }, &writer);
    for (const pthread_t t : threads) pthread_join(t, nullptr);
    EXPECT_EQ(writer.failures, 0);
    std::remove(writer.path.c_str());
  }
}

}  // namespace
