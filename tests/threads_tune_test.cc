// Tuning while others plan, run and tune: in one context, in several, and in several processes that share a file.
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "tests/support/operators.h"

using namespace skua_test;

namespace {

void plan(const skua_op* op, const skua_tensor (&in)[2]) {
  skua_plan* made = nullptr;
  SKUA_EXPECT_OK(skua_op_plan(op, in, 2, nullptr, 0, &made));
  skua_plan_destroy(made);
}

void tune(skua_context* context, size_t n, const skua_executor* executor = nullptr) {
  const skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
  Op op;
  SKUA_EXPECT_OK(skua_gemm_create(context, &d, nullptr, nullptr, &op));
  const skua_tensor in[2] = {shape({8, 8}), shape({8, n})};
  skua_tune_options o = SKUA_TUNE_OPTIONS_INIT;
  o.max_milliseconds = 1;
  o.executor = executor;
  SKUA_EXPECT_OK(skua_op_tune(op.op, in, 2, &o));
  plan(op, in);
}

std::set<std::string> keys(const std::string& path) {
  std::set<std::string> all;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) EXPECT_TRUE(all.insert(line.substr(0, 16)).second) << line;
  return all;
}

struct File {
  char folder[64] = "/tmp/skua-tune-XXXXXX";
  std::string path;
  File() {
    EXPECT_NE(mkdtemp(folder), nullptr);
    path = std::string(folder) + "/cache";
  }
  ~File() {
    unlink(path.c_str());
    rmdir(folder);
  }
  skua_context* open() const {
    skua_context_options o = SKUA_CONTEXT_OPTIONS_INIT;
    o.tuning_cache = path.c_str();
    o.log = [](void*, skua_log_level level, const char* text) { EXPECT_EQ(level, SKUA_LOG_INFO) << text; };
    skua_context* context = nullptr;
    SKUA_EXPECT_OK(skua_context_create(&o, &context));
    return context;
  }
};

TEST(Tune, ThreadsOfOneContextAndOfSeveral) {
  File file;
  skua_context* shared = file.open();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    const skua_gemm_desc d = SKUA_GEMM_DESC_INIT;
    Op op;
    SKUA_EXPECT_OK(skua_gemm_create(shared, &d, nullptr, nullptr, &op));
    while (!stop)
      for (size_t n : {64, 65, 66, 67}) plan(op, {shape({8, 8}), shape({8, n})});
  });
  std::vector<std::thread> writers;
  for (size_t t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      skua_context* own = t < 2 ? shared : file.open();
      Threaded two(2);
      for (size_t i = 0; i < 3; ++i)
        tune(own, 64 + t * 3 + i, i == 1 ? static_cast<const skua_executor*>(two) : nullptr);
      if (own != shared) skua_context_destroy(own);
    });
  for (std::thread& w : writers) w.join();
  stop = true;
  reader.join();
  skua_context_destroy(shared);
  EXPECT_EQ(keys(file.path).size(), 12u);
}

TEST(Tune, ProcessesShareAFile) {
  File file;
  std::vector<pid_t> children;
  for (size_t p = 0; p < 4; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (!child) {
      skua_context* context = file.open();
      for (size_t i = 0; i < 3; ++i) tune(context, 64 + p * 3 + i);
      skua_context_destroy(context);
      _exit(testing::Test::HasFailure());
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(keys(file.path).size(), 12u);
}

}  // namespace
